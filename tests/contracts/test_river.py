"""evertree.river.EverTreeClassifier is a river classifier that can also unlearn."""

import datetime as dt
import inspect
import math
import pickle
import random

import numpy as np
import pandas as pd
import pytest
from river import checks, compose, datasets, evaluate, metrics, preprocessing, utils

import evertree
from evertree import EverTree, ExampleNotFound, InvalidExample, InvalidParameter
from evertree.encoding import category_code
from evertree.estimators.ledger import Ledger
from evertree.river import EverTreeClassifier

NAN = float("nan")


def stream(seed, n, features=4):
    """Rows of numbers, texts and booleans; features come and go."""
    rng = random.Random(seed)
    for i in range(n):
        x = {"n": rng.randrange(8) / 2, "t": rng.choice("abc"), "b": rng.random() < 0.5}
        x |= {f"late{j}": rng.random() for j in range(features) if i > 20 * (j + 1)}
        y = (x["n"] > 2) ^ (x["t"] == "a") ^ (rng.random() < 0.1)
        yield {k: v for k, v in x.items() if rng.random() < 0.9}, y


# --- river's own checks

CHECKS = list(checks.yield_checks(EverTreeClassifier()))


def test_no_check_is_left_out():
    assert EverTreeClassifier()._unit_test_skips() == set()
    assert len(CHECKS) > 25


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_river_finds_nothing(check):
    random.seed(0)  # some of river's checks shuffle
    check(EverTreeClassifier())


# --- the same tree


def test_answers_are_those_of_the_bare_tree():
    rows = [(x, y) for x, y in stream(1, 300) if len(x) == 3 and not any(k[0] == "l" for k in x)]
    rows += [({"n": x["n"], "t": x["t"], "b": x["b"]}, y) for x, y in rows] * 5
    model, tree = EverTreeClassifier(max_gap=0.2), EverTree(3, categorical=[2], max_gap=0.2)
    assert len(rows) > 50
    for x, y in rows:
        row = [x["b"], x["n"], x["t"]]  # in the order of the names
        if len(tree):
            assert model.predict_one(x) == tree.label(row)
            shares = model.predict_proba_one(x)
            counts = tree.label_counts(row)
            assert {k: v for k, v in shares.items() if v} == {
                k: c / sum(counts.values()) for k, c in counts.items()
            }
            assert list(shares) == list(model._labels)
        model.learn_one(x, y)
        tree.insert(row, y)
    assert model.tree.digest() == tree.digest()


def test_before_and_after_everything():
    model = EverTreeClassifier()
    assert model.predict_one({"a": 1}) is None
    assert model.predict_proba_one({"a": 1}) == {}
    model.learn_one({"a": 1}, "x")
    model.unlearn_one({"a": 1}, "x")
    assert model.predict_one({"a": 1}) is None
    assert model.predict_proba_one({}) == {}


# --- unlearning


@pytest.mark.parametrize("seed", range(5))
def test_unlearned_is_as_if_never_learned(seed):
    rows = list(stream(seed, 150))
    model, never = EverTreeClassifier(), EverTreeClassifier()
    for x, y in rows:
        model.learn_one(x, y)
    gone = set(random.Random(seed).sample(range(150), 70))
    for i in sorted(gone, key=hash):
        model.unlearn_one(*rows[i])
    assert model.tree.certify().ok
    for i, (x, y) in enumerate(rows):
        if i not in gone:
            never.learn_one(x, y)
    assert_same_after_rebuild(model, never)


def assert_same_after_rebuild(*models):
    for model in models:
        model.rebuild()
    assert len({model.tree.digest() for model in models}) == 1
    assert len({tuple(model._layout.places.items()) for model in models}) == 1


def test_a_feature_goes_with_its_last_row():
    model, never = EverTreeClassifier(), EverTreeClassifier()
    for x, y in [({"a": 1, "name": "Ada"}, 0), ({"a": 2}, 1)]:
        model.learn_one(x, y)
    model.unlearn_one({"a": 1, "name": "Ada"}, 0)
    never.learn_one({"a": 2}, 1)
    assert_same_after_rebuild(model, never)
    assert pickle.dumps(model._layout) == pickle.dumps(never._layout)
    assert b"name" not in pickle.dumps(model._layout)


def test_only_what_was_learned_can_be_unlearned():
    model = EverTreeClassifier()
    model.learn_one({"a": 1, "t": "x"}, True)
    digest = model.tree.digest()
    for x, y, says in [
        ({"a": 2, "t": "x"}, True, "no active example has"),
        ({"a": 1, "t": "x"}, False, "no active example has"),
        ({"a": 1}, True, "no active example has"),
        ({"a": 1, "t": "x", "z": 0}, True, "the feature 'z'"),
    ]:
        with pytest.raises(ExampleNotFound, match=says):
            model.unlearn_one(x, y)
    assert model.tree.digest() == digest
    model.unlearn_one({"t": "x", "a": 1.0, "z": None}, True)  # z is as missing as it was
    assert len(model.tree) == 0


# --- windows of river


def in_window(window, **parameters):
    """Put a model into a window of river's, which took a model before it took a class."""
    wrapper = utils.TimeRolling if "period" in window else utils.Rolling
    if "cls" in inspect.signature(wrapper).parameters:
        return wrapper(EverTreeClassifier, **window, **parameters)
    return wrapper(EverTreeClassifier(**parameters), **window)


@pytest.mark.parametrize("window", [1, 30])
def test_rolling(window):
    rows = list(stream(7, 200))
    rolling = in_window({"window_size": window}, max_gap=0.05)
    for i, (x, y) in enumerate(rows):
        rolling.update(x, y)
        assert len(rolling.tree) == min(i + 1, window)
    assert rolling.tree.certify().ok
    assert rolling.max_gap == 0.05
    last = EverTreeClassifier(max_gap=0.05)
    for x, y in rows[-window:]:
        last.learn_one(x, y)
    assert_same_after_rebuild(rolling.obj, last)


def test_time_rolling():
    start, period = dt.datetime(2024, 1, 1), dt.timedelta(days=3)
    rolling = in_window({"period": period})
    for day, label in enumerate(["a", "b", "c", "d", "e"]):
        rolling.update({"day": day}, label, t=start + dt.timedelta(days=day))
    assert set(rolling.predict_proba_one({"day": 4})) == {"c", "d", "e"}
    assert rolling.predict_one({"day": 0}) == "c"
    rolling.update({"day": 100}, "z", t=start + dt.timedelta(days=100))
    assert rolling.predict_proba_one({"day": 4}) == {"z": 1.0}


def test_a_window_follows_a_change():
    """After the meaning of a feature turns round, the window is right again within its length."""
    rolling = in_window({"window_size": 50})
    keeps_all = EverTreeClassifier()
    for i in range(400):
        x, y = {"a": i % 10}, (i % 10 > 4) ^ (i >= 200)
        rolling.update(x, y)
        keeps_all.learn_one(x, y)
    queries = [({"a": a}, a <= 4) for a in range(10)]
    assert all(rolling.predict_one(x) == y for x, y in queries)
    assert not all(keeps_all.predict_one(x) == y for x, y in queries)


# --- features


def test_features_come_and_go():
    model = EverTreeClassifier()
    rows = [{f"f{i}": "text" if i % 2 else 1.0, "always": i} for i in range(100)]
    trees = set()
    for i, x in enumerate(rows):
        model.learn_one(x, i % 3)
        assert len(model.tree) == i + 1
        trees.add(model.tree)
    # The places double, so d features cost O(log d) new trees.
    assert model.tree.limits.n_features <= 2 * 101
    assert len(trees) <= 2 * math.log2(101)
    assert model.predict_one({"f98": 1.0, "never": "seen"}) in {0, 1, 2}
    for i, x in enumerate(rows):
        model.unlearn_one(x, i % 3)
    assert len(model.tree) == 0


def test_all_layouts_say_the_same():
    """However the features came, the same rows give the same answers after a fresh build."""
    rows = list(stream(3, 120, features=6))
    forward, backward = EverTreeClassifier(), EverTreeClassifier()
    for x, y in rows:
        forward.learn_one(x, y)
    for x, y in reversed(rows):
        backward.learn_one(x, y)
    assert_same_after_rebuild(forward, backward)


def test_kinds_of_features():
    rows = [
        ({"when": dt.datetime(2024, 1, 1), "zone": 7, "city": "Oslo", "on": True}, "a"),
        ({"when": dt.datetime(2024, 6, 1), "zone": 8, "city": "Bergen", "on": np.bool_(0)}, "b"),
        ({"when": None, "zone": 9, "city": NAN, "on": None}, "c"),
    ]
    model = EverTreeClassifier(nominal_attributes=("zone",))
    for x, y in rows:
        model.learn_one(x, y)
    kinds = {name: place.kind for name, place in model._layout.places.items()}
    assert kinds == {"when": "moment", "zone": "category", "city": "text", "on": "number"}
    assert [model.predict_one(x) for x, _ in rows] == ["a", "b", "c"]
    for x, says in [
        ({"when": 5}, "feature 'when' is a number, and was a moment"),
        ({"city": 150}, "feature 'city' is a number, and was a text until now.*with str"),
        ({"city": True}, "feature 'city' is a number, and was a text"),
        ({"on": "yes"}, "feature 'on' is a text, and was a number"),
        ({"on": [1]}, r"column 'on' has \[1\] \(list\)"),
        ({"on": math.inf}, "inf"),
        ({"new": {1}}, "column 'new'"),
        ({"zone": object()}, "column 'zone' has the category"),
        ({"new": 1, "on": math.inf}, "inf"),
        ({"new": 1, "other": 2, "more": 3, "on": 2**60}, "1152921504606846976"),
    ]:
        state = pickle.dumps(model)
        with pytest.raises(InvalidExample, match=says):
            model.learn_one(x, "a")
        assert pickle.dumps(model) == state
    for label in ([], NAN):
        with pytest.raises(InvalidExample, match="label"):
            model.learn_one({"new": 1}, label)
        assert pickle.dumps(model) == state


def test_a_text_stays_a_text_also_where_it_is_named():
    model = EverTreeClassifier(nominal_attributes=["zip", "zone"])
    model.learn_one({"zip": "0150", "zone": 7, "free": "a"}, "x")
    model.learn_many(pd.DataFrame({"zip": ["5003", None], "zone": [8, 9]}), pd.Series(["y", "y"]))
    for refused in (
        lambda: model.learn_one({"zip": 150}, "x"),
        lambda: model.predict_one({"zip": 150}),
        lambda: model.predict_proba_one({"free": 1.5}),
    ):
        with pytest.raises(InvalidExample, match="' is a number, and was a text until now"):
            refused()
    state = pickle.dumps(model)
    with pytest.raises(InvalidExample, match=r"column 'zip' has numbers \(150, ...\) and was text"):
        model.learn_many(pd.DataFrame({"zip": [150]}), pd.Series(["x"]))
    assert pickle.dumps(model) == state
    assert model.predict_one({"zip": None, "zone": 7}) in {"x", "y"}
    assert model.predict_many(pd.DataFrame({"zip": [None], "zone": [7]})).tolist()


def test_an_unseen_category_equals_none():
    model = EverTreeClassifier()
    for city, label in [("Oslo", "a"), ("Bergen", "b"), ("Bergen", "b")]:
        model.learn_one({"city": city}, label)
    split = model.tree.nodes()[0]["category"]
    other = "b" if split == category_code("Oslo") else "a"
    assert model.predict_one({"city": "never seen"}) == other


# --- batches


def test_batches_are_the_same_rows():
    rows = [({"n": x["n"], "t": x["t"]}, y) for x, y in stream(5, 400) if {"n", "t"} <= x.keys()]
    X = pd.DataFrame([x for x, _ in rows], index=range(1000, 1000 + len(rows)))
    y = pd.Series([y for _, y in rows])
    one, many = EverTreeClassifier(), EverTreeClassifier()
    for x, label in rows[:200]:
        one.learn_one(x, label)
    many.learn_many(X[:100], y[:100])
    many.learn_many(X[100:200], y[100:200])
    assert many.tree.digest() == one.tree.digest()
    found = many.predict_many(X[200:])
    assert found.index.equals(X.index[200:])
    assert found.tolist() == [one.predict_one(x) for x, _ in rows[200:]]
    shares = many.predict_proba_many(X[200:])
    assert shares.to_dict("records") == [one.predict_proba_one(x) for x, _ in rows[200:]]
    assert EverTreeClassifier().predict_many(X).isna().all()
    assert EverTreeClassifier().predict_proba_many(X).shape == (len(X), 0)


def test_a_batch_is_learned_whole_or_not_at_all():
    model = EverTreeClassifier()
    model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series([0, 1]))
    state = pickle.dumps(model)
    for values, labels, says in [
        ([1.0, math.inf], [0, 1], "feature 'a' in row 1 is inf"),
        ([1.0, 2.0], [0, NAN], "label nan"),
        (["x", "y"], [0, 1], "feature 'a' is a text, and was a number"),
    ]:
        with pytest.raises(InvalidExample, match=says):
            model.learn_many(pd.DataFrame({"a": values, "b": [1, 2]}), pd.Series(labels))
        assert pickle.dumps(model) == state
    with pytest.raises(InvalidExample, match="2 rows"):
        model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series([0]))
    assert pickle.dumps(model) == state


def test_an_interrupted_batch_is_taken_back(monkeypatch):
    model = EverTreeClassifier()
    model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series([0, 1]))
    state = pickle.dumps(model)
    insert, calls = Ledger.insert, []

    def interrupted(self, x, y):
        calls.append(x)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return insert(self, x, y)

    monkeypatch.setattr(Ledger, "insert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn_many(pd.DataFrame({"a": [3.0] * 5}), pd.Series([2] * 5))
    assert pickle.dumps(model) == state
    assert model.predict_proba_one({"a": 1.0}).keys() == {0, 1}


def test_nominal_numbers_are_the_same_in_batches():
    values = [3, -1, 2.5, 3, None]
    one, many = (EverTreeClassifier(nominal_attributes=["c"]) for _ in range(2))
    for i, value in enumerate(values):
        one.learn_one({"c": value}, i % 2)
    many.learn_many(pd.DataFrame({"c": values}), pd.Series([0, 1, 0, 1, 0]))
    assert one.tree.digest() == many.tree.digest()


# --- in company


def test_pipeline_and_progressive_validation():
    model = compose.Pipeline(preprocessing.StandardScaler(), EverTreeClassifier(max_depth=8))
    score = evaluate.progressive_val_score(datasets.Phishing().take(500), model, metrics.Accuracy())
    assert score.get() > 0.8
    assert len(model["EverTreeClassifier"].tree) == 500


def test_a_copy_has_the_same_rows():
    model = EverTreeClassifier(max_depth=3)
    for x, y in stream(9, 100):
        model.learn_one(x, y)
    same = pickle.loads(pickle.dumps(model))  # noqa: S301  (our own)
    model.tree.rebuild()
    assert same.tree.digest() == model.tree.digest()
    x, y = next(stream(9, 1))
    same.unlearn_one(x, y)
    assert (len(same.tree), len(model.tree)) == (99, 100)


def test_bad_parameters_are_refused_at_once():
    with pytest.raises(InvalidParameter, match="max_gap=0"):
        EverTreeClassifier(max_gap=0)
    assert evertree.river.EverTreeClassifier is EverTreeClassifier
