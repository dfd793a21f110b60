"""What changed and why, and what would be said without some rows; nothing changes by asking."""

import math
from collections import Counter

import numpy as np
import pytest

from evertree import (
    EmptyTree,
    EverTree,
    EvertreeError,
    ExampleNotFound,
    InvalidExample,
    InvalidParameter,
    diff,
    influence,
    snapshot,
)
from trees_for_export import LABELS, random_rows, random_tree


def change_some(tree, seed, kind, n=60):
    rng = np.random.default_rng(seed + 500)
    names = LABELS["texts"]
    for x in random_rows(rng, n, kind):
        tree.insert(x, names[int(np.nan_to_num(x[0]) * 3 + rng.integers(2)) % len(names)])
    for i in rng.permutation(tree.examples().ids)[:n]:
        tree.delete(id=int(i))


def gini(labels):
    n = len(labels)
    return 1 - sum(c * c for c in Counter(labels).values()) / n**2 if n else 0.0


def gain_by_hand(tree, node_id, split):
    """The gain of a split on the rows of a node, one row at a time."""
    nodes = tree.nodes()

    def left(node, x):
        v = x[node["feature"]]
        if math.isnan(v):
            return node["missing_left"]
        return v <= node["threshold"] if node["threshold"] is not None else v == node["category"]

    sides = {True: [], False: []}
    for i in tree.examples().ids:
        x, y = tree.example(int(i))
        at = nodes[0]
        while at["id"] != node_id and at["feature"] is not None:
            at = nodes[at["left"] if left(at, x) else at["right"]]
        if at["id"] == node_id:
            sides[left(split, x)].append(y)
    both = sides[True] + sides[False]
    parts = sum(len(s) * gini(s) for s in sides.values())
    return gini(both) - parts / len(both)


# ----------------------------------------------------------------------------------------- diff


def test_a_change_is_told_in_the_words_of_the_estimator():
    pd, models = pytest.importorskip("pandas"), pytest.importorskip("evertree.estimators.sklearn")
    days = pd.to_datetime(["2026-04-11", "2026-04-13"] * 2)
    X = pd.DataFrame({"city": ["Oslo", "Oslo", "Bergen", "Bergen"], "day": days})
    model = models.EverTreeClassifier().fit(X, ["a", "a", "b", "b"])
    before = snapshot(model)
    model.forget(X, ["a", "a", "b", "b"]).partial_fit(X, ["a", "b", "a", "b"])
    after = snapshot(model)
    for now in (model, after):
        change = diff(before, now, categories={"city": ["Oslo", "Bergen"]}).changes[0]
        assert change.before in {"city = 'Oslo'", "city = 'Bergen'"}
        assert change.after == "day <= 2026-04-12T00:00 or missing"
    assert diff(before, after).changes[0].before.startswith("city = ")


def test_thresholds_of_a_change_can_be_rounded():
    tree = EverTree(1)
    before = snapshot(tree)
    tree.insert_many([[0.1], [0.2]], ["a", "b"])
    assert diff(before, tree).changes[0].after == "x0 <= 0.15000000000000002 or missing"
    assert diff(before, tree, digits=2).changes[0].after == "x0 <= 0.15 or missing"
    with pytest.raises(InvalidParameter, match="digits=0"):
        diff(before, tree, digits=0)


@pytest.mark.parametrize("kind", ["real", "categorical", "mixed"])
@pytest.mark.parametrize("seed", range(4))
def test_a_diff_accounts_for_every_node_and_measures_the_splits(seed, kind):
    tree = random_tree(seed, kind, max_gap=0.05)
    before, old_nodes = snapshot(tree), tree.nodes()
    change_some(tree, seed, kind)
    found = diff(before, tree)
    new_nodes = tree.nodes()
    assert found.changes, seed
    assert found.unchanged + sum(c.nodes_before for c in found.changes) == len(old_nodes)
    assert found.unchanged + sum(c.nodes_after for c in found.changes) == len(new_nodes)
    for change in found.changes:
        old, new = old_nodes[change.node_before], new_nodes[change.node_after]
        assert len(change.where) == old["depth"] == new["depth"]
        assert change.size_after == sum(new["counts"].values())
        if change.kind != "split replaced":
            continue
        by_hand = [gain_by_hand(tree, new["id"], split) for split in (old, new)]
        np.testing.assert_allclose(change.gains_after, by_hand, atol=1e-12)
        assert change.overtaken_by == pytest.approx(by_hand[1] - by_hand[0])
        # Build gives the best split, and from then on it is never worse than max_gap.
        assert change.overtaken_by > -0.05 - 1e-9
        assert ("overtaken by" in change.why) == (change.overtaken_by >= 0)


def test_nothing_changed():
    tree = random_tree(0)
    found = diff(tree, tree)
    assert found.changes == ()
    assert found.unchanged == len(tree.nodes())
    assert str(found).startswith("0 changes, ")
    assert (found.inserted, found.deleted, found.corrected) == (0, 0, 0)


def test_counts_alone_are_no_change():
    tree = EverTree(1)
    tree.insert_many([[0.0], [1.0]], ["a", "b"])
    before = snapshot(tree)
    tree.insert([0.0], "a")
    found = diff(before, tree)
    assert found.changes == ()
    assert (found.inserted, found.deleted, found.size_after) == (1, 0, 3)


def test_a_leaf_is_split_and_merged_again():
    tree = EverTree(1)
    tree.insert_many([[0.0], [1.0]], ["a", "a"])
    one = snapshot(tree)
    tree.replace(1, [1.0], "b")
    two = snapshot(tree)
    tree.delete(id=1)
    there, back = diff(one, two), diff(two, tree)
    (split,), (merged,) = there.changes, back.changes
    assert (split.kind, split.before) == ("leaf split", "label 'a'")
    assert split.gains_after == (None, 0.5)
    assert split.why == (
        "Gini impurity 0.0000 -> 0.5000: from min_impurity=0.01 on a set is split; "
        "the split gains 0.5000"
    )
    assert there.corrected == 1
    assert (merged.kind, merged.after) == ("split became leaf", "label 'a'")
    assert merged.why == (
        "Gini impurity 0.5000 -> 0.0000: fewer than min_samples_split=2 examples are a leaf"
    )
    assert back.deleted == 1


def of_rows(rows, labels, **limits):
    tree = EverTree(1, **limits)
    tree.insert_many(rows, list(labels))
    return tree


@pytest.mark.parametrize(
    ("rows", "labels", "limits", "says"),
    [
        ([[0], [0], [1]], "aaa", {}, "all its examples have one label"),
        ([[0], [0]], "ab", {}, "are all equal, or lie at max_depth"),
        ([[0], [1]], "ab", {"max_depth": 0}, "are all equal, or lie at max_depth"),
        (
            [[0]] * 9 + [[1]],
            "aaaaaaaaab",
            {},
            "Gini impurity 0.4444 -> 0.1800: a rebuild stops at min_impurity / 2",
        ),
    ],
)
def test_why_a_node_is_a_leaf(rows, labels, limits, says):
    before = of_rows([[0], [0], [1]], "aab", min_impurity=0.4)
    after = of_rows(rows, labels, min_impurity=0.4, **limits)
    (change,) = diff(before, after).changes
    assert change.kind == "split became leaf"
    assert says in change.why


def test_why_a_node_is_split_that_need_not_be():
    before = of_rows([[0], [0], [1]], "aaa", min_impurity=0.5)
    after = of_rows([[0], [0], [1]], "aab", min_impurity=0.5)  # Gini 4/9
    (change,) = diff(before, after).changes
    assert "a rebuild goes on down to min_impurity / 2; the split gains 0.4444" in change.why


def test_the_answer_of_a_leaf_changes():
    tree = EverTree(1)
    tree.insert_many([[0.0]] * 3, ["a", "a", "b"])
    before = snapshot(tree)
    tree.insert_many([[0.0]] * 2, ["b", "b"])
    (change,) = diff(before, tree).changes
    assert change.kind == "answer changed"
    assert (change.before, change.after) == ("label 'a'", "label 'b'")
    assert change.why == "labels {'a': 2, 'b': 1} became {'a': 2, 'b': 3}"


def test_a_tree_that_was_empty():
    tree = EverTree(1)
    before = snapshot(tree)
    tree.insert_many([[0.0], [1.0]], ["a", "b"])
    (change,) = diff(before, tree).changes
    assert (change.kind, change.before, change.size_before) == ("leaf split", "an empty leaf", 0)
    assert change.gains_before == (None, None)


def test_splits_on_missing_categories_equal_each_other():
    tree = EverTree(1, categorical=[0])
    tree.insert_many([[math.nan], [1.0], [2.0]], ["a", "b", "b"])
    assert math.isnan(tree.nodes()[0]["category"])
    assert diff(snapshot(tree), tree).changes == ()


def test_names_stand_in_the_report():
    tree = EverTree(2)
    tree.insert_many([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 2, 3])
    before = snapshot(tree)
    tree.delete(id=3)
    text = str(diff(before, tree, feature_names=["age", "height"]))
    assert "age > 0.5: split became leaf" in text
    with pytest.raises(InvalidParameter, match="one name for each of the 2 features"):
        diff(before, tree, feature_names=["age"])


def test_rows_with_ids_of_ones_own_are_found():
    tree = EverTree(2)
    rows = [[0, 0], [0, 1], [1, 0], [1, 1]]
    ids = [10**15, 7, 10**6, 99]
    tree.insert_many(rows, ["n", "n", "y", "y"], ids=ids)
    before = snapshot(tree)
    for i, x in zip(ids, rows, strict=True):
        tree.replace(i, x, "y" if x[1] else "n")
    found = diff(before, tree)
    assert (found.inserted, found.deleted, found.corrected) == (0, 0, 2)
    assert found.changes[0].overtaken_by == 0.5


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"n_features": 2}, "n_features=1 and after n_features=2"),
        (
            {"n_features": 1, "categorical": [0]},
            r"categorical=\(\) and after categorical=\(0,\)",
        ),
    ],
)
def test_trees_of_other_features_are_not_compared(other, says):
    with pytest.raises(InvalidParameter, match=says):
        diff(EverTree(1), EverTree(**other))


@pytest.mark.parametrize("wrong", [None, 3, "tree"])
def test_what_is_no_moment_is_refused(wrong):
    with pytest.raises(InvalidParameter, match="is neither an EverTree nor"):
        diff(EverTree(1), wrong)


def test_an_estimator_is_a_moment_too():
    class Estimator:
        tree_ = random_tree(0)

    assert diff(Estimator(), Estimator()).changes == ()


# ------------------------------------------------------------------------------------ influence


def state(tree, ids):
    return tree.digest(), [(tree.example(i)[0].tobytes(), tree.example(i)[1]) for i in ids]


@pytest.mark.parametrize("kind", ["real", "categorical", "mixed"])
@pytest.mark.parametrize("seed", range(3))
def test_influence_is_what_a_tree_of_the_other_rows_says(seed, kind):
    tree = random_tree(seed, kind)
    active = tree.examples()
    rng = np.random.default_rng(seed)
    gone = rng.permutation(active.ids)[:15]
    asked = random_rows(rng, 80, kind)
    before = tree.digest()
    found = influence(tree, gone, asked)
    assert tree.digest() == before
    fresh = EverTree(tree.limits.n_features, tree.limits.categorical, max_gap=0.5)
    kept = [i for i in active.ids if i not in set(gone.tolist())]
    for i in kept:
        fresh.insert(*tree.example(int(i)))
    fresh.rebuild()
    assert found.labels_without.tolist() == fresh.label_many(asked).tolist()
    assert found.labels_now.tolist() == tree.label_many(asked).tolist()
    assert found.changed.tolist() == (found.labels_with != found.labels_without).tolist()
    assert found.changed.any(), seed
    assert (found.shift >= 0).all()
    assert (found.shift <= 1).all()
    # Where the answer changes, some share has moved.
    assert (found.shift[found.changed] > 0).all()


def test_influence_of_nothing_is_nothing():
    tree = random_tree(1)
    found = influence(tree, [], random_rows(np.random.default_rng(1), 30, "mixed"))
    assert not found.changed.any()
    assert not found.shift.any()
    assert "0 of 30 answers" in str(found)


def test_a_later_delete_by_value_takes_the_same_row():
    tree = EverTree(1)
    tree.insert_many([[1.0], [1.0], [1.0], [2.0]], ["a", "a", "a", "b"])
    influence(tree, [0, 2], [[1.0]])
    tree.delete([1.0], "a")
    assert [i in tree for i in range(4)] == [True, True, False, True]


@pytest.mark.parametrize("broken", ["insert_many", "delete_many", "rebuild", "label_counts"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_whatever_fails_in_the_middle_the_tree_is_as_it_was(broken, error, monkeypatch):
    tree = random_tree(2)
    ids = tree.examples().ids.tolist()
    before = state(tree, ids)

    def fail(*_args, **_options):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(EverTree, broken, fail)
        with pytest.raises(error):
            influence(tree, ids[:3], np.zeros((2, 4)))
    assert state(tree, ids) == before


def test_influence_with_ids_of_ones_own():
    tree = EverTree(1)
    ids = [50, 2**60, 7]
    tree.insert_many([[1.0], [2.0], [3.0]], ["a", "b", "b"], ids=ids)
    found = influence(tree, [2**60, 7], [[3.0]])
    assert (found.labels_with.tolist(), found.labels_without.tolist()) == (["b"], ["a"])
    assert "without these 2 rows, 1 of 1 answers" in str(found)


@pytest.mark.parametrize(
    ("ids", "rows", "error", "says"),
    [
        ([5], [[0.0]], ExampleNotFound, "id=5 is not the id of an active example"),
        ([0, 0], [[0.0]], ExampleNotFound, "was given at position 0 already"),
        (["a"], [[0.0]], ExampleNotFound, "an id is an int"),
        ([0, 1], [[0.0]], EmptyTree, "without these rows the tree has none"),
        ([0], [[0.0, 1.0]], InvalidExample, "has 2 values"),
        ([0], [0.0], InvalidExample, "X"),
    ],
)
def test_odd_questions_are_refused(ids, rows, error, says):
    tree = EverTree(1)
    tree.insert_many([[0.0], [1.0]], ["a", "b"])
    before = tree.digest()
    with pytest.raises(error, match=says):
        influence(tree, ids, rows)
    assert tree.digest() == before


def test_a_tree_without_rows_says_nothing():
    with pytest.raises(EmptyTree):
        influence(EverTree(1), [], [[0.0]])


def test_a_writer_meanwhile_is_noticed(monkeypatch):
    tree = random_tree(3)
    nodes = EverTree.nodes

    def write_and_read(self):
        self.insert(np.zeros(4), "yes")
        return nodes(self)

    monkeypatch.setattr(EverTree, "nodes", write_and_read)
    with pytest.raises(EvertreeError, match="changed by another thread"):
        snapshot(tree)
