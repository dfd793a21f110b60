"""What EverTree promises to those who call it: names, forms that are taken, answers, errors."""

import array
import gc
import math
import threading
import weakref

import numpy as np
import pytest

import evertree
from evertree import (
    Certificate,
    DuplicateId,
    EmptyTree,
    EverTree,
    EvertreeError,
    ExampleNotFound,
)

NAN = math.nan


def xor_tree():
    tree = EverTree(n_features=2)
    tree.insert_many([[0, 0], [0, 1], [1, 0], [1, 1]], ["even", "odd", "odd", "even"])
    return tree


# --- insert


def test_automatic_ids_are_one_more_than_the_largest_ever_used():
    tree = EverTree(1)
    assert tree.insert([1.0], "a") == 0
    assert tree.insert([1.0], "a", id=41) == 41
    assert tree.insert([2.0], "b") == 42
    tree.delete(id=42)
    assert tree.insert([2.0], "b") == 43
    assert tree.insert([2.0], "b", id=7) == 7
    assert tree.insert([2.0], "b") == 44


def test_an_id_can_be_used_again_after_its_example_is_gone():
    tree = EverTree(1)
    tree.insert([1.0], "a", id=5)
    tree.delete(id=5)
    assert tree.insert([2.0], "b", id=5) == 5
    assert tree.example(5)[1] == "b"


def test_numpy_ints_are_ids():
    tree = EverTree(1)
    i = tree.insert([1.0], "a", id=np.uint8(3))
    assert type(i) is int
    assert np.int64(3) in tree
    tree.replace(np.int32(3), [2.0], "b")
    assert tree.example(np.int64(3))[1] == "b"
    tree.delete(id=np.int16(3))
    assert len(tree) == 0


def test_the_last_id():
    tree = EverTree(1)
    assert tree.insert([1.0], "a", id=2**63 - 1) == 2**63 - 1
    assert 2**63 - 1 in tree
    for insert in (
        lambda: tree.insert([1.0], "a"),
        lambda: tree.insert_many([[1.0]], ["a"]),
    ):
        with pytest.raises(DuplicateId, match="no automatic id is left"):
            insert()
    assert len(tree) == 1
    assert tree.insert([1.0], "a", id=0) == 0
    assert tree.insert_many([[1.0]], ["a"], ids=[1]).tolist() == [1]


FORMS = {
    "list": [0.5, 2],
    "tuple": (0.5, 2),
    "float64": np.array([0.5, 2.0]),
    "float32": np.array([0.5, 2.0], dtype=np.float32),
    "float16": np.array([0.5, 2.0], dtype=np.float16),
    "big-endian": np.array([0.5, 2.0], dtype=">f8"),
    "every second": np.array([0.5, 9.0, 2.0, 9.0])[::2],
    "backwards": np.array([2.0, 0.5])[::-1],
    "array.array": array.array("d", [0.5, 2.0]),
    "array.array of float": array.array("f", [0.5, 2.0]),
    "memoryview": memoryview(array.array("d", [0.5, 2.0])),
    "memoryview, every second": memoryview(np.array([0.5, 9.0, 2.0, 9.0])[::2]),
    "numpy scalars": [np.float64(0.5), np.int64(2)],
    "masked array, nothing masked": np.ma.masked_array([0.5, 2.0]),
    "longdouble": np.array([0.5, 2.0], dtype=np.longdouble),
}


@pytest.mark.parametrize("x", FORMS.values(), ids=FORMS.keys())
def test_every_entry_point_takes_a_row_of_any_form(x):
    tree = EverTree(2, categorical=[1])
    tree.insert([0.25, 1], "other")
    i = tree.insert(x, "this")
    row, label = tree.example(i)
    assert (row.tolist(), label) == ([0.5, 2.0], "this")
    assert tree.label(x) == "this"
    assert tree.label_counts(x) == {"this": 1}
    tree.replace(i, x, "that")
    assert tree.label(x) == "that"
    tree.delete(x, "that")
    tree.insert_many([x, x], ["this", "this"])
    assert tree.label_many([x]).tolist() == ["this"]
    tree.delete_many([x, x], ["this", "this"])
    assert len(tree) == 1


def test_read_only_bool_int_and_range_rows():
    tree = EverTree(2)
    frozen = np.array([1.0, 0.0])
    frozen.setflags(write=False)
    for x in (frozen, np.array([True, False]), [True, False], np.array([1, 0], dtype=np.uint8)):
        assert tree.example(tree.insert(x, "a"))[0].tolist() == [1, 0]
    assert tree.example(tree.insert(range(2), "b"))[0].tolist() == [0, 1]
    assert tree.label(frozen) == "a"
    assert not frozen.flags.writeable


def test_a_row_is_copied_when_it_comes_in_and_when_it_goes_out():
    tree = EverTree(1)
    x = np.array([1.0])
    X = np.array([[2.0], [3.0]])
    ids = [tree.insert(x, "a"), *tree.insert_many(X, ["b", "c"])]
    x[0] = X[:] = 9.0
    tree.example(0)[0][:] = 8.0
    assert [tree.example(i)[0][0] for i in ids] == [1.0, 2.0, 3.0]


def test_tables_of_any_form():
    values = np.arange(12.0).reshape(4, 3)
    digests = set()
    for X in (
        values,
        values.tolist(),
        list(values),
        np.asfortranarray(values),
        values.astype(">i2"),
        values.astype(np.float32),
        np.repeat(values, 2, axis=0)[::2],
        memoryview(values),
    ):
        tree = EverTree(3)
        assert tree.insert_many(X, ["a", "b", "a", "b"]).tolist() == [0, 1, 2, 3]
        assert tree.label_many(X).tolist() == ["a", "b", "a", "b"]
        digests.add(tree.digest())
        tree.delete_many(X, np.array(["a", "b", "a", "b"]))
        assert len(tree) == 0
    assert len(digests) == 1


# --- values that are equal


def test_minus_zero_is_zero_and_missing_equals_missing():
    tree = EverTree(2, categorical=[1])
    tree.insert([-0.0, -0.0], "a")
    row, _ = tree.example(0)
    assert not np.signbit(row).any()
    tree.delete([0.0, 0], "a")
    odd_nan = np.frombuffer(np.uint64(0xFFF8_0000_0000_0001).tobytes(), dtype=np.float64)[0]
    tree.insert([NAN, odd_nan], "a")
    tree.delete([odd_nan, NAN], "a")
    assert len(tree) == 0


def test_of_equal_examples_the_last_inserted_is_deleted():
    tree = EverTree(1)
    for i in (5, 9, 2):
        tree.insert([1.0], "a", id=i)
    tree.delete([1.0], "a")
    assert (2 in tree, 9 in tree, 5 in tree) == (False, True, True)


@pytest.mark.parametrize("same", [(1, 1.0, True), (0, False, np.int8(0)), ("a", np.str_("a"))])
def test_labels_that_compare_equal_are_one_label(same):
    tree = EverTree(1)
    for y in same:
        tree.insert([1.0], y)
    counts = tree.label_counts([1.0])
    assert counts == {same[0]: len(same)}
    assert type(next(iter(counts))) is type(same[0])
    for y in reversed(same):
        tree.delete([1.0], y)
    assert len(tree) == 0


def test_a_label_is_represented_by_the_first_seen_while_it_is_active():
    tree = EverTree(1)
    tree.insert([1.0], 1.0)
    tree.delete([1.0], 1)
    tree.insert([1.0], True)
    assert tree.label([1.0]) is True


# --- labels


@pytest.mark.parametrize("y", [None, "", 0, (1, ("x",)), frozenset("ab"), b"b", 10**30, 1j, ...])
def test_any_hashable_is_a_label(y):
    tree = EverTree(1)
    i = tree.insert([1.0], y)
    assert tree.label([1.0]) == y
    assert tree.label_counts([1.0]) == {y: 1}
    assert tree.example(i)[1] == y
    assert tree.nodes()[0]["counts"] == {y: 1}
    assert tree.label_many([[1.0]])[0] == y
    tree.delete([1.0], y)
    tree.insert_many([[1.0], [2.0]], [y, "other"])
    tree.delete_many([[1.0]], [y])
    assert tree.label([1.0]) == "other"


def test_ties_go_to_the_label_that_sorts_first_not_to_the_first_seen():
    for labels in (["b", "a", 2, 10], [10, "a", 2, "b"], [2, 10, "b", "a"]):
        tree = EverTree(1)
        tree.insert_many([[1.0]] * 4, labels)
        assert tree.label([1.0]) == 2
        tree.delete([1.0], 2)
        assert tree.label([1.0]) == 10
        tree.delete([1.0], 10)
        assert tree.label([1.0]) == "a"


def test_a_leaf_that_became_empty_answers_from_above():
    tree = EverTree(1, max_gap=1.0)
    tree.insert_many([[0.0]] * 9 + [[1.0]] * 2, ["a"] * 9 + ["b"] * 2)
    tree.delete([1.0], "b")
    tree.delete([1.0], "b")
    assert tree.label([1.0]) == "a"
    assert tree.label_counts([1.0]) == {"a": 9}


LABEL_TYPES = [
    ([True, False], np.dtype(bool)),
    ([1, -5], np.dtype(np.int64)),
    ([2**63 - 1, -(2**63)], np.dtype(np.int64)),
    ([0.5, 1.5], np.dtype(np.float64)),
    ([2**63, 1], np.dtype(object)),
    ([1, 0.5], np.dtype(object)),
    (["a", "b"], np.dtype(object)),
    ([(1, 2), (3, 4)], np.dtype(object)),
    ([True, 7], np.dtype(object)),
    ([None, ()], np.dtype(object)),
]


@pytest.mark.parametrize(("labels", "dtype"), LABEL_TYPES)
def test_label_many_gives_the_plainest_array(labels, dtype):
    tree = EverTree(1)
    tree.insert_many([[0.0], [1.0]], labels)
    found = tree.label_many([[1.0], [0.0], [1.0]])
    assert found.dtype == dtype
    assert found.shape == (3,)
    assert found.tolist() == [labels[1], labels[0], labels[1]]
    assert tree.label_many(np.empty((0, 1))).shape == (0,)


def test_label_many_forgets_the_type_of_labels_that_are_gone():
    tree = EverTree(1)
    tree.insert_many([[0.0], [1.0], [2.0]], ["gone", 7, 8])
    assert tree.label_many([[1.0]]).dtype == object
    tree.delete([0.0], "gone")
    assert tree.label_many([[1.0], [2.0]]).dtype == np.int64


def test_label_many_agrees_with_label():
    generator = np.random.default_rng(5)
    X = generator.integers(0, 6, (200, 3)).astype(float)
    X[generator.random(X.shape) < 0.1] = np.nan
    tree = EverTree(3, categorical=[1])
    tree.insert_many(X, generator.integers(0, 4, 200))
    queries = generator.integers(-1, 8, (100, 3)).astype(float)
    queries[:, 1] = abs(queries[:, 1])
    assert tree.label_many(queries).tolist() == [tree.label(x) for x in queries]
    assert [max(tree.label_counts(x).values()) for x in queries] == [
        tree.label_counts(x)[tree.label(x)] for x in queries
    ]


# --- empty trees and empty batches


def test_an_empty_tree_has_no_label():
    tree = EverTree(1)
    for ask in (
        lambda: tree.label([1.0]),
        lambda: tree.label_counts([1.0]),
        lambda: tree.label_many([[1.0]]),
    ):
        with pytest.raises(EmptyTree, match="insert one first"):
            ask()
        with pytest.raises(LookupError):
            ask()
    assert len(tree.label_many([])) == 0


def test_an_emptied_tree_is_like_a_new_one():
    tree = xor_tree()
    tree.delete_many(ids=range(4))
    with pytest.raises(EmptyTree):
        tree.label([0, 0])
    tree.rebuild()
    assert tree.digest() == EverTree(2).digest()
    assert tree.certify().ok


@pytest.mark.parametrize("X", [[], (), np.empty((0, 2)), np.array([])])
def test_empty_batches_change_nothing(X):
    tree = xor_tree()
    before = tree.digest(), tree.stats()
    assert tree.insert_many(X, []).tolist() == []
    assert tree.insert_many(X, np.array([]), ids=[]).dtype == np.int64
    tree.delete_many(X, [])
    tree.delete_many(ids=[])
    tree.delete_many(ids=np.array([]))
    assert (tree.digest(), tree.stats()) == before


# --- delete and replace


def test_delete_by_value_id_and_in_batches():
    tree = EverTree(1)
    tree.insert_many([[1.0], [1.0], [2.0], [3.0]], list("aabc"), ids=[10, 11, 12, 13])
    tree.delete([2.0], "b")
    tree.delete(id=13)
    tree.delete(x=[1.0], y="a")
    tree.delete_many(X=[[1.0]], y=["a"])
    assert len(tree) == 0


def test_a_batch_of_deletions_is_all_or_nothing():
    tree = EverTree(1)
    tree.insert_many([[1.0], [1.0], [2.0]], list("aab"))
    before = tree.digest()
    for delete, says in (
        (lambda: tree.delete_many([[1.0]] * 3, ["a"] * 3), r"X\[2\]=\[1.0\].*as often"),
        (lambda: tree.delete_many([[1.0], [2.0]], ["a", "a"]), r"X\[1\]=\[2.0\] with y\[1\]='a'"),
        (lambda: tree.delete_many(ids=[0, 7]), r"ids\[1\]=7"),
        (lambda: tree.delete_many(ids=[0, 1, 0]), r"ids\[2\]=0 was given at position 0"),
        (lambda: tree.delete_many(ids=[0, -1]), r"ids\[1\]=-1"),
    ):
        with pytest.raises(ExampleNotFound, match=says):
            delete()
        assert (len(tree), tree.digest()) == (3, before)
    tree.delete_many([[1.0], [2.0], [1.0]], ["a", "b", "a"])
    assert len(tree) == 0


def test_a_batch_of_insertions_is_all_or_nothing():
    tree = EverTree(1)
    tree.insert([1.0], "a", id=3)
    before = tree.digest()
    with pytest.raises(DuplicateId, match=r"ids\[1\]=3 is in use"):
        tree.insert_many([[1.0], [2.0]], ["a", "b"], ids=[4, 3])
    with pytest.raises(DuplicateId, match=r"ids\[1\]=4 was given at position 0"):
        tree.insert_many([[1.0], [2.0]], ["a", "b"], ids=[4, 4])
    assert (len(tree), tree.digest(), 4 in tree) == (1, before, False)
    assert tree.insert([1.0], "a") == 4


def test_replace_corrects_row_and_label_under_the_same_id():
    tree = EverTree(1)
    tree.insert_many([[1.0], [2.0]], ["a", "b"])
    tree.replace(0, [5.0], "c")
    row, label = tree.example(0)
    assert (row.tolist(), label, len(tree)) == ([5.0], "c", 2)
    with pytest.raises(ExampleNotFound):
        tree.delete([1.0], "a")
    tree.delete([5.0], "c")
    assert 0 not in tree


# --- looking in


@pytest.mark.parametrize(
    "thing", [-1, 1, 2**63, 2**200, 0.0, "0", None, True, [0], NAN, b"", object(), (0,), np.True_]
)
def test_only_an_active_id_is_in_the_tree(thing):
    tree = EverTree(1)
    tree.insert([1.0], "a")
    assert thing not in tree
    assert 0 in tree


def test_nodes_are_plain_data():
    tree = EverTree(2, categorical=[1])
    tree.insert_many([[0, 7], [0, 7], [1, NAN], [2, NAN]], ["a", "a", "b", "c"])
    nodes = tree.nodes()
    keys = [
        "id",
        "parent",
        "depth",
        "feature",
        "threshold",
        "category",
        "missing_left",
        "left",
        "right",
        "counts",
    ]
    assert all(list(node) == keys for node in nodes)
    assert [node["id"] for node in nodes] == list(range(len(nodes)))
    for node in nodes:
        assert node["parent"] is None or node["parent"] < node["id"]
        if node["feature"] is None:
            assert node["left"] is node["right"] is node["missing_left"] is None
            assert node["threshold"] is node["category"] is None
        else:
            left, right = nodes[node["left"]], nodes[node["right"]]
            assert left["id"] == node["id"] + 1
            assert left["parent"] == right["parent"] == node["id"]
            assert left["depth"] == right["depth"] == node["depth"] + 1
            assert (node["threshold"] is None) != (node["category"] is None)
            assert type(node["missing_left"]) is bool
            both = {**left["counts"]}
            for label, count in right["counts"].items():
                both[label] = both.get(label, 0) + count
            assert both == node["counts"]


def test_categories_in_nodes_are_ints_or_nan():
    tree = EverTree(1, categorical=[0])
    tree.insert_many([[3], [4]], ["a", "b"])
    root = tree.nodes()[0]
    assert (root["category"], type(root["category"]), root["threshold"]) == (3, int, None)
    assert root["missing_left"] is False
    tree = EverTree(2, categorical=[0])
    tree.insert_many([[NAN, 0], [NAN, 0], [1, 0], [2, 0]], ["a", "a", "b", "b"])
    root = tree.nodes()[0]
    assert math.isnan(root["category"])
    assert root["missing_left"] is True


def test_stats_count_what_was_done_and_what_there_is():
    tree = xor_tree()
    tree.insert([2.0, 2.0], "odd")
    tree.delete([2.0, 2.0], "odd")
    stats = tree.stats()
    assert set(stats) == {
        "inserts",
        "deletes",
        "rebuilds",
        "rows_rebuilt",
        "nodes",
        "leaves",
        "depth",
    }
    assert all(type(count) is int for count in stats.values())
    nodes = tree.nodes()
    assert stats["nodes"] == len(nodes)
    assert stats["leaves"] == sum(node["feature"] is None for node in nodes)
    assert stats["depth"] == max(node["depth"] for node in nodes)


def test_certificate():
    certificate = xor_tree().certify()
    assert isinstance(certificate, Certificate)
    assert certificate.ok
    assert certificate.breaches == ()
    assert 0 <= certificate.worst_gap <= 0.1
    assert certificate.worst_node in range(7)
    assert certificate.nodes == 7
    assert EverTree(1).certify() == Certificate(
        ok=True, breaches=(), worst_gap=0.0, worst_node=None, nodes=1
    )
    with pytest.raises(AttributeError):
        certificate.ok = False


def test_digest_knows_labels_and_forgets_history():
    def digest(labels):
        tree = EverTree(1)
        tree.insert_many([[0.0], [1.0]], labels)
        return tree.digest()

    assert digest(["a", "b"]) != digest(["a", "c"])
    assert digest(["a", "b"]) != digest(["b", "a"])
    assert digest(["1", "2"]) != digest([1, 2])
    assert digest([1, 2]) == digest([1.0, 2.0])
    assert digest([("a", "b"), "c"]) != digest([("a, 'b'",), "c"])
    assert len(digest(["\ud800", "lone surrogate"])) == 64
    tree = EverTree(1)
    tree.insert_many([[5.0], [1.0], [0.0], [0.5]], ["z", "b", "a", "a"])
    tree.delete_many([[5.0], [0.5]], ["z", "a"])
    tree.rebuild()
    assert tree.digest() == digest(["a", "b"])


def test_repr_is_short():
    assert repr(xor_tree()) == "<EverTree of 2 features: 4 examples, 7 nodes, depth 2>"


def test_version_and_names():
    assert evertree.__version__ == "0.1.0"
    assert all(hasattr(evertree, name) for name in evertree.__all__)


# --- parameters


def test_parameters_may_be_given_by_position_in_the_stated_order():
    limits = EverTree(3, [2], 0.2, 0.05, 4, 6, 0.5).limits
    assert (
        limits
        == EverTree(
            n_features=3,
            categorical=[2],
            max_gap=0.2,
            min_impurity=0.05,
            min_samples_split=4,
            max_depth=6,
            epsilon=0.5,
        ).limits
    )


def test_defaults():
    limits = EverTree(1).limits
    assert (limits.max_gap, limits.min_impurity, limits.min_samples_split) == (0.1, 0.01, 2)
    assert (limits.max_depth, limits.epsilon, limits.categorical) == (None, None, ())


@pytest.mark.parametrize(
    "categorical", [[2, 0], (0, 2), {0, 2}, np.array([0, 2]), range(0, 3, 2), iter([0, 2])]
)
def test_categorical_may_be_any_collection_of_positions(categorical):
    assert EverTree(3, categorical).limits.categorical == (0, 2)


def test_numbers_of_numpy_are_parameters():
    limits = EverTree(
        np.int64(2),
        max_gap=np.float32(0.5),
        min_impurity=0,
        min_samples_split=np.uint8(3),
        max_depth=np.int16(0),
        epsilon=np.float64(1),
    ).limits
    assert (limits.n_features, limits.max_gap, limits.max_depth) == (2, 0.5, 0)
    assert all(
        type(value) in {int, float}
        for value in (limits.n_features, limits.max_gap, limits.min_samples_split, limits.epsilon)
    )


def test_limits_beyond_any_tree_are_taken_for_what_they_mean():
    tree = EverTree(1, min_samples_split=10**30, max_depth=10**30, epsilon=1e300)
    tree.insert_many([[0.0], [1.0]], ["a", "b"])
    assert len(tree.nodes()) == 1


def test_depth_zero_is_a_single_leaf():
    tree = EverTree(1, max_depth=0)
    tree.insert_many([[0.0], [1.0]], ["a", "b"])
    assert len(tree.nodes()) == 1


@pytest.mark.parametrize(
    ("parameters", "certified"),
    [
        ({}, True),
        ({"epsilon": 0}, True),
        ({"epsilon": 0.15}, False),
        # below alpha / 5, and at the limit itself not
        ({"epsilon": 0.0019, "min_impurity": 0.01}, True),
        ({"epsilon": 0.01 / 5, "min_impurity": 0.01}, False),
        # below 1 / (k + 1)
        ({"epsilon": 0.1, "min_impurity": 1.0, "max_gap": 1.0, "min_samples_split": 9}, True),
        ({"epsilon": 0.125, "min_impurity": 1.0, "max_gap": 1.0, "min_samples_split": 8}, False),
        # up to beta / (2 + beta) and not beyond; the double 2/3 lies below the fraction 2/3
        ({"epsilon": 1 / 4, "min_impurity": 1.0, "max_gap": 2 / 3}, False),
        ({"epsilon": 0.1, "min_impurity": 1.0, "max_gap": 0.25}, True),
        ({"epsilon": 0.12, "min_impurity": 1.0, "max_gap": 0.25}, False),
    ],
)
def test_the_tree_knows_whether_its_rule_carries_the_guarantee(parameters, certified):
    assert EverTree(1, **parameters).certified is certified


def test_properties_cannot_be_set():
    tree = EverTree(1)
    for name in ("certified", "limits", "max_gap"):
        with pytest.raises(AttributeError):
            setattr(tree, name, 0.5)


# --- life


def test_trees_go_away_with_their_labels():
    class Label:
        pass

    tree, label = EverTree(1), Label()
    tree.insert([1.0], label)
    gone = weakref.ref(tree), weakref.ref(label)
    del tree, label
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def test_a_label_is_let_go_when_its_last_example_is():
    class Label:
        pass

    tree, label = EverTree(1), Label()
    gone = weakref.ref(label)
    tree.insert([1.0], label)
    tree.insert([1.0], "stays")
    tree.delete([1.0], label)
    tree.rebuild()
    del label
    gc.collect()
    assert gone() is None


def test_many_threads_may_use_one_tree():
    tree = EverTree(2)
    generator = np.random.default_rng(3)
    X = generator.random((200, 2))
    tree.insert_many(X, (X[:, 0] > 0.5).tolist())
    failures = []

    def write(seed):
        own = np.random.default_rng(seed).random((40, 2))
        for x in own:
            tree.delete(id=tree.insert(x, bool(x[0] > 0.5)))

    def read(seed):
        for x in X[:60]:
            assert tree.label(x) in {True, False}
        assert tree.label_many(X).dtype == bool

    def guarded(work, seed):
        try:
            work(seed)
        except Exception as error:  # noqa: BLE001  (the main thread reports)
            failures.append(error)

    threads = [
        threading.Thread(target=guarded, args=(work, seed))
        for seed in range(2)
        for work in (write, read)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(tree) == 200
    assert tree.certify().ok


def test_every_error_can_be_caught_as_ours():
    with pytest.raises(EvertreeError):
        EverTree(1).label([1.0])
    with pytest.raises(KeyError):
        EverTree(1).delete(id=0)
