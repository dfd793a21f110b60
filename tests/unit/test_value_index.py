"""Values are indexed at the first deletion by value; until then the order of admission is kept."""

import numpy as np

from evertree import EverTree


def test_the_last_inserted_of_equals_goes_whatever_came_before():
    tree = EverTree(2)
    tree.insert_many([[1, 1], [2, 2], [1, 1], [3, 3]], ["a", "b", "a", "b"], ids=[40, 10, 30, 20])
    tree.delete(id=10)  # its place is free, and the next example gets it
    tree.insert([1, 1], "a", id=5)
    tree.replace(40, [1, 1], "a")  # now the last one
    for gone in (40, 5, 30):
        tree.delete([1, 1], "a")
        assert gone not in tree
    assert 20 in tree
    assert tree.certify().ok


def test_a_tree_that_indexes_late_is_the_same_as_one_that_indexes_early():
    random = np.random.default_rng(3)
    X = random.integers(0, 4, size=(400, 3)).astype(float)
    y = random.integers(0, 2, 400).tolist()
    early, late = EverTree(3), EverTree(3)
    early.insert(X[0], y[0])
    early.delete(X[0], y[0])
    late.insert(X[0], y[0])
    late.delete(id=0)
    for tree in (early, late):
        ids = tree.insert_many(X, y)
        tree.delete_many(ids=ids[::7])
        tree.delete_many(X[1:60:7], y[1:60:7])
        assert tree.certify().ok
    assert early.digest() == late.digest()
    assert [i in early for i in range(401)] == [i in late for i in range(401)]
