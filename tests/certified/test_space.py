"""Emptied leaves do not pile up: a subtree that has lost more than half of its rows is rebuilt.

The gap rule alone would leave every split in place for as long as it is good, however few examples
remain below it; with max_gap=1 it never fires at all.
"""

from evertree import EverTree


def test_what_has_shrunk_to_less_than_half_is_rebuilt():
    tree = EverTree(n_features=1, max_gap=1.0)
    ids = tree.insert_many([[float(i)] for i in range(1000)], [i % 2 for i in range(1000)])
    nodes = tree.stats()["nodes"]
    tree.delete_many(ids=ids[::2][:450])
    assert tree.stats()["nodes"] >= nodes // 2
    tree.delete_many(ids=[i for i in ids[:980] if i in tree])
    assert tree.stats()["nodes"] <= 2 * len(tree)


def test_chains_that_came_and_went_leave_no_nodes_behind():
    """Regions are filled with a chain of peeled rows, one by one, and emptied to two."""
    size = 40

    def row(region, column=None):
        return (float(region), *(float(j == column) for j in range(size)))

    tree = EverTree(n_features=1 + size, max_gap=0.5, min_impurity=0.001)
    tree.insert_many([row(r) for r in range(7 * size)], [r % 2 for r in range(7 * size)])
    tree.delete_many(
        [row(r) for r in range(size, 7 * size)], [r % 2 for r in range(size, 7 * size)]
    )
    for region in range(size):
        chain = [row(region)] * size + [row(region, j) for j in range(size)]
        ids = tree.insert_many(chain, [0] * size + [1] * size)
        tree.delete_many(ids=ids[1:-1])
        assert tree.certify().ok
    assert len(tree) == 3 * size
    assert tree.stats()["nodes"] <= 4 * len(tree)
