"""EverTreeClassifier is a scikit-learn classifier, and the same tree as EverTree."""

import datetime as dt
import io
import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from evertree import (
    DuplicateId,
    EmptyTree,
    EverTree,
    EverTreeClassifier,
    ExampleNotFound,
    InvalidExample,
    InvalidParameter,
)
from evertree.estimators.ledger import Ledger

IRIS = load_iris()
NAN = float("nan")


def random_rows(seed, n, d=3, classes=3, missing=0.1):
    """Rows with ties, missing values and a category in the last place."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n, d)).astype(float)
    X[rng.random((n, d)) < missing] = np.nan
    return X, rng.integers(0, classes, n)


def bare(X, y, **limits):
    tree = EverTree(n_features=np.shape(X)[1], **limits)
    tree.insert_many(X, y)
    return tree


# --- scikit-learn's own checks


@pytest.mark.parametrize("parameters", [{}, {"window": 1000, "max_depth": 8}], ids=str)
def test_scikit_learn_finds_nothing(parameters):
    results = check_estimator(EverTreeClassifier(**parameters), on_skip=None)
    assert len(results) > 40
    # The one skipped needs a variable that must be set before scipy is imported: see below.
    assert {r["check_name"] for r in results if r["status"] != "passed"} <= {
        "check_array_api_input"
    }


def test_scikit_learn_finds_nothing_with_the_array_api():
    program = (
        "from sklearn.utils.estimator_checks import check_estimator\n"
        "from evertree import EverTreeClassifier\n"
        "results = check_estimator(EverTreeClassifier(), on_skip=None)\n"
        "assert all(r['status'] == 'passed' for r in results)\n"
    )
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


# --- the same tree


@pytest.mark.parametrize("names", [None, "abc"], ids=["ints", "texts"])
@pytest.mark.parametrize("n_asked", [1, 50, 500], ids="{} rows".format)
def test_answers_are_those_of_the_bare_tree(names, n_asked):
    X, y = random_rows(1, 400)
    y = y if names is None else np.array(list(names))[y]
    model = EverTreeClassifier(categorical_features=[2], max_depth=4).fit(X[:200], y[:200])
    tree = bare(X[:200], y[:200], categorical=[2], max_depth=4)
    for start in range(200, 400, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
        tree.insert_many(X[start : start + 50], y[start : start + 50])
    assert model.tree_.digest() == tree.digest()
    asked, _ = random_rows(2, n_asked, missing=0.3)
    assert model.predict(asked).tolist() == tree.label_many(asked).tolist()
    shares = model.predict_proba(asked)
    for x, found in zip(asked, shares, strict=True):
        counts = tree.label_counts(x)
        wanted = [counts.get(c, 0) / sum(counts.values()) for c in model.classes_.tolist()]
        assert found.tolist() == wanted
    assert (model.classes_[shares.argmax(axis=1)] == model.predict(asked)).all()


def test_an_emptied_leaf_answers_with_its_ancestor():
    X, y = [[1.0], [2.0], [3.0], [4.0]] * 5, ["a", "a", "b", "c"] * 5
    model = EverTreeClassifier(epsilon=100.0).fit(X, y)  # this rule hardly ever rebuilds
    model.forget([[4.0]] * 5, ["c"] * 5)
    assert model.tree_.nodes()[-1]["counts"] == {}
    many = np.full((500, 1), 4.0)
    assert model.predict_proba(many)[:1].tolist() == model.predict_proba(many[:1]).tolist()
    assert model.predict_proba(many)[0].tolist() == [0.0, 1.0, 0.0]


def test_arrays_follow_the_tree():
    """Whatever changes the tree, and whoever does it, the next answer is that of the new tree."""
    X, y = random_rows(11, 600, missing=0)
    model = EverTreeClassifier().fit(X[:300], y[:300])
    for change in (
        lambda: model.partial_fit(X[300:], y[300:]),
        model.tree_.rebuild,
        lambda: model.forget(X[:200], y[:200]),
        lambda: model.partial_fit([[9.0, 9.0, 9.0]], [7]),
        lambda: model.tree_.replace(next(i for i in range(200, 900) if i in model.tree_), X[5], 1),
        lambda: model.fit(X[100:400], y[100:400]),
        lambda: model.fit(X[100:400], 2 - y[100:400]),
    ):
        before = dict(vars(model))
        model.predict_proba(X)
        model.apply(X)
        assert vars(model) == before
        change()
        by_row = np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(600)])
        assert model.predict_proba(X).tolist() == by_row.tolist()
        assert len(model.tree_.nodes()) == model.decision_path(X).shape[1]


def test_leaves_paths_and_sizes():
    X, y = random_rows(3, 300)
    model = EverTreeClassifier(categorical_features=[2]).fit(X, y)
    nodes = model.tree_.nodes()
    leaves, paths = model.apply(X), model.decision_path(X)
    assert paths.shape == (300, len(nodes))
    sizes = np.asarray(paths.sum(axis=0)).ravel()
    assert sizes.tolist() == [sum(node["counts"].values()) for node in nodes]
    for i, leaf in enumerate(leaves):
        assert nodes[leaf]["feature"] is None
        on_path, node = set(), leaf
        while node is not None:
            on_path.add(node)
            node = nodes[node]["parent"]
        assert set(paths[i].indices) == on_path
    assert model.get_depth() == max(node["depth"] for node in nodes)
    assert model.get_n_leaves() == sum(node["feature"] is None for node in nodes)


def test_importances_are_those_of_scikit_learns_exact_tree():
    # Thresholds without ties, so that both trees are the same.
    rng = np.random.default_rng(5)
    X = rng.normal(size=(500, 4))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    ours = EverTreeClassifier(min_impurity=0, max_depth=3).fit(X, y)
    theirs = DecisionTreeClassifier(max_depth=3).fit(X, y)
    assert ours.feature_importances_ == pytest.approx(theirs.feature_importances_)
    assert ours.feature_importances_.sum() == pytest.approx(1)
    assert EverTreeClassifier().fit([[1.0], [2.0]], [0, 0]).feature_importances_.tolist() == [0.0]


def test_certify_and_score():
    model = EverTreeClassifier().fit(*load_iris(return_X_y=True))
    assert model.certify().ok
    assert model.score(IRIS.data, IRIS.target) > 0.98


# --- forgetting


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=30, deadline=None)
def test_forgotten_is_as_if_never_seen(seed, by_id):
    rng = np.random.default_rng(seed)
    X, y = random_rows(seed, 60)
    gone = rng.random(60) < rng.random()
    ids = rng.permutation(1000)[:60]
    model = EverTreeClassifier(categorical_features=[2]).fit(X[:30], y[:30], ids=ids[:30])
    model.partial_fit(X[30:], y[30:], ids=ids[30:])
    if by_id:
        model.forget(ids=ids[gone])
    else:
        model.forget(X[gone], y[gone])
    assert model.certify().ok
    model.tree_.rebuild()
    never = bare(X[~gone], y[~gone], categorical=[2])
    assert model.tree_.digest() == never.digest()


def test_forgetting_is_all_or_nothing():
    X, y = random_rows(4, 50)
    model = EverTreeClassifier().fit(X, y, ids=range(50))
    digest = model.tree_.digest()
    with pytest.raises(ExampleNotFound, match=r"X\[2\]"):
        model.forget([*X[:2].tolist(), [99.0, 0, 0]], [*y[:2].tolist(), 0])
    with pytest.raises(ExampleNotFound, match="77"):
        model.forget(ids=[1, 77])
    with pytest.raises(InvalidExample, match="either X and y"):
        model.forget(X[:1])
    with pytest.raises(InvalidExample, match="either X and y"):
        model.forget(X[:1], y[:1], ids=[0])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.forget(X[:2], y[:1])
    for nothing in ((X[:0], y[:0]), (X[:0].astype(object), []), (pd.DataFrame(X[:0]), y[:0])):
        model.forget(*nothing)
    model.forget(ids=[])
    assert model.tree_.digest() == digest
    with pytest.raises(NotFittedError):
        EverTreeClassifier().forget(X, y)


def test_everything_can_be_forgotten_and_learned_again():
    X, y = random_rows(6, 40)
    model = EverTreeClassifier().fit(X, y).forget(X, y)
    for answer in (model.predict, model.predict_proba):
        with pytest.raises(EmptyTree):
            answer(np.ones((200, 3)))
    assert model.partial_fit(X, y).tree_.digest() == bare(X, y).digest()


# --- windows


@pytest.mark.parametrize("ids", [False, True], ids=["", "with ids"])
@pytest.mark.parametrize("batch", [1, 7, 30, 200])
def test_a_window_holds_the_last_rows(batch, ids):
    X, y = random_rows(7, 300)
    model = EverTreeClassifier(window=50)
    names = np.random.default_rng(0).permutation(300)
    for start in range(0, 300, batch):
        rows = slice(start, start + batch)
        model.partial_fit(X[rows], y[rows], ids=names[rows] if ids else None)
        last = slice(max(0, min(start + batch, 300) - 50), start + batch)
        assert len(model.tree_) == len(X[last])
    assert model.certify().ok
    model.tree_.rebuild()
    assert model.tree_.digest() == bare(X[250:], y[250:]).digest()
    if ids:
        assert all((name in model.tree_) == (i >= 250) for i, name in enumerate(names))
    assert len(EverTreeClassifier(window=50).fit(X, y).tree_) == 50


def test_a_window_knows_forgotten_rows_and_ids_used_again():
    X = np.arange(6.0).reshape(-1, 1)
    model = EverTreeClassifier(window=3).fit(X[:3], [0, 1, 0], ids=[10, 11, 12])
    model.forget(X[:1], [0])  # by value: the model does not learn that it was id 10
    model.partial_fit(X[3:4], [1], ids=[10])  # the id comes again, as the youngest
    model.partial_fit(X[4:5], [0], ids=[13])
    assert [i for i in range(10, 14) if i in model.tree_] == [10, 12, 13]


def test_a_window_that_cannot_drop_the_old_does_not_take_the_new(monkeypatch):
    X, y = random_rows(7, 30)
    model = EverTreeClassifier(window=20).fit(X[:20], y[:20])
    delete_many = Ledger.delete_many

    def interrupted_once(self, *request, **ids):
        monkeypatch.setattr(Ledger, "delete_many", delete_many)
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "delete_many", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[20:], y[20:])
    model.tree_.rebuild()
    assert model.tree_.digest() == bare(X[:20], y[:20]).digest()


def test_ids_must_be_free_and_failing_changes_nothing():
    X, y = random_rows(8, 20)
    model = EverTreeClassifier(window=20).fit(X, y, ids=range(20))
    digest = model.tree_.digest()
    with pytest.raises(DuplicateId, match=r"ids\[1\]=3"):
        model.partial_fit(X[:2], y[:2], ids=[30, 3])
    with pytest.raises(InvalidExample, match="ids has 1"):
        model.partial_fit(X[:2], y[:2], ids=[30])
    with pytest.raises(InvalidExample, match="inf"):
        model.partial_fit([[1.0, float("inf"), 0.0]], [0])
    assert model.tree_.digest() == digest


# --- labels


def as_objects(*labels):
    result = np.empty(len(labels), dtype=object)
    result[:] = labels
    return result


LABELS = {
    "bool": np.array([True, False, True]),
    "int8": np.array([3, -1, 3], dtype=np.int8),
    "whole floats": np.array([1.0, 2.0, 1.0]),
    "text": np.array(["yes", "no", "yes"]),
    "bytes": np.array([b"yes", b"no", b"yes"]),
    "pandas text": pd.Series(["yes", "no", "yes"]),
    "pandas categories": pd.Series(["yes", "no", "yes"], dtype="category"),
    "tuples": [("a", 1), ("b", 2), ("a", 1)],
    "frozensets": [frozenset("ab"), frozenset("c"), frozenset("ab")],
    "None and text": [None, "no", None],
    "ints and text": [1, "no", 1],
    "objects": as_objects((1, 2), "x", (1, 2)),
    "datetime64": np.array(["2020-01-01", "2021-01-01", "2020-01-01"], dtype="M8[ns]"),
    "pandas moments": pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01", "2020-01-01"])),
    "dates": [dt.date(2020, 1, 1), dt.date(2021, 1, 1), dt.date(2020, 1, 1)],
}


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS.keys())
def test_labels_of_any_hashable_type(y):
    X = [[1.0], [2.0], [1.0]]
    model = EverTreeClassifier().fit(X, y)
    assert model.predict(X).tolist() == list(y)
    assert model.predict(X).dtype == model.classes_.dtype
    assert model.predict_proba(X).max(axis=1).tolist() == [1.0, 1.0, 1.0]
    model.forget(X[:1], y[:1])
    assert len(model.partial_fit(X[:1], y[:1]).tree_) == 3


def test_classes_are_sorted_as_ties_are_settled():
    y = ["b", 2, ("t",), 10, None]
    model = EverTreeClassifier().fit([[0.0]] * 5, y)
    assert model.classes_.tolist() == [None, 2, 10, "b", ("t",)]
    assert model.predict([[0.0]]).tolist() == [None]


def test_declared_classes_are_a_promise_and_others_grow():
    declared = EverTreeClassifier().partial_fit([[1.0]], ["a"], classes=["c", "a", "b"])
    assert declared.predict_proba([[1.0]]).tolist() == [[1.0, 0.0, 0.0]]
    with pytest.raises(InvalidExample, match="'z' is not one of the classes"):
        declared.partial_fit([[1.0]], ["z"])
    with pytest.raises(InvalidParameter, match="first call"):
        declared.partial_fit([[1.0]], ["a"], classes=["a", "b"])
    with pytest.raises(InvalidExample, match="'z' is not one of the classes"):
        EverTreeClassifier().partial_fit([[1.0]], ["z"], classes=["a"])
    open_ = EverTreeClassifier().fit([[1.0]], [2]).partial_fit([[2.0]], [1])
    assert open_.classes_.tolist() == [1, 2]
    assert open_.partial_fit([[3.0]], ["late"]).classes_.tolist() == [1, 2, "late"]
    assert open_.predict([[1.0], [2.0], [3.0]]).tolist() == [2, 1, "late"]


@pytest.mark.parametrize("y", [[[0], [1, 2]], as_objects([0], [1]), [NAN, "a"], [{}, {}]], ids=str)
def test_what_is_no_label_is_refused(y):
    with pytest.raises(ValueError, match=r"label|shape|inhomogeneous"):
        EverTreeClassifier().fit([[0.0], [1.0]], y)


# --- parameters


BAD_PARAMETERS = [
    ({"max_gap": 0}, "max_gap=0"),
    ({"min_impurity": 2}, "min_impurity=2"),
    ({"min_samples_split": 1}, "min_samples_split=1"),
    ({"max_depth": -1}, "max_depth=-1"),
    ({"epsilon": "x"}, "epsilon='x'"),
    ({"window": 0}, "window=0"),
    ({"window": 2.5}, "window=2.5"),
    ({"window": True}, "window=True"),
    ({"n_jobs": 0}, "n_jobs=0"),
    ({"n_jobs": "all"}, "n_jobs='all'"),
    ({"categorical_features": "city"}, "categorical_features='city'"),
    ({"categorical_features": ["city"]}, "categorical_features="),
    ({"categorical_features": [3]}, r"categorical\[0\]=3"),
    ({"categorical_features": [True]}, "categorical_features="),
]


@pytest.mark.parametrize(("parameters", "says"), BAD_PARAMETERS, ids=str)
def test_a_parameter_that_makes_no_sense_is_refused_in_fit(parameters, says):
    model = EverTreeClassifier().fit([[0.0, 0.0], [1.0, 1.0]], [0, 1])
    digest = model.tree_.digest()
    model.set_params(**parameters)
    with pytest.raises(InvalidParameter, match=says):
        model.fit([[0.0, 1.0], [5.0, 6.0]], [0, 1])
    assert model.tree_.digest() == digest
    assert model.predict([[0.0, 0.0]]).tolist() == [0]


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = EverTreeClassifier().fit(pd.DataFrame({"a": [0.0, 1.0]}), [0, 1])
    with pytest.raises(InvalidExample, match="inf"):
        model.fit([[0.0, 1.0], [1.0, float("inf")]], ["x", "y"])
    assert model.n_features_in_ == 1
    assert model.feature_names_in_.tolist() == ["a"]
    assert model.predict(pd.DataFrame({"a": [1.0]})).tolist() == [1]


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
def test_n_jobs_changes_nothing_but_time(n_jobs):
    X, y = random_rows(9, 200)
    model = EverTreeClassifier(n_jobs=n_jobs).fit(X, y)
    assert model.tree_.digest() == bare(X, y).digest()


def test_n_jobs_reaches_a_tree_that_takes_it(monkeypatch):
    class Parallel(EverTree):
        def __init__(self, *limits, n_jobs=None, **more):
            super().__init__(*limits, **more)
            given.append(n_jobs)

    given = []
    monkeypatch.setattr("evertree.estimators.sklearn.EverTree", Parallel)
    EverTreeClassifier(n_jobs=2).fit([[1.0]], [0])
    assert given == [2]


# --- in company


def test_pipeline_and_grid_search():
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), EverTreeClassifier())
    grid = {"evertreeclassifier__max_gap": [0.05, 0.3], "evertreeclassifier__max_depth": [1, 4]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    assert search.best_params_["evertreeclassifier__max_depth"] == 4
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.88


def test_parallel_workers_give_the_same():
    X, y = IRIS.data, IRIS.target
    one = cross_validate(EverTreeClassifier(), X, y, cv=3, return_estimator=True)
    two = cross_validate(EverTreeClassifier(), X, y, cv=3, return_estimator=True, n_jobs=2)
    digests = [[m.tree_.digest() for m in r["estimator"]] for r in (one, two)]
    assert digests[0] == digests[1]


def test_calibration_and_bagging():
    X, y = load_breast_cancer(return_X_y=True)
    model = EverTreeClassifier(max_depth=4)
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X, y)
    assert calibrated.predict_proba(X).shape == (len(X), 2)
    assert calibrated.score(X, y) > 0.93
    assert BaggingClassifier(model, n_estimators=5, random_state=0).fit(X, y).score(X, y) > 0.95


def test_clone_knows_parameters_and_no_rows():
    model = EverTreeClassifier(max_gap=0.2, window=7).fit(IRIS.data, IRIS.target)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(IRIS.data)


@pytest.mark.parametrize("way", ["pickle", "joblib"])
def test_a_copy_has_the_same_rows_ids_and_order(way):
    X, y = random_rows(10, 120)
    model = EverTreeClassifier(window=100, categorical_features=[2]).fit(X[:80], y[:80])
    model.partial_fit(X[80:], y[80:]).forget(X[50:55], y[50:55])
    if way == "pickle":
        copy = pickle.loads(pickle.dumps(model))  # noqa: S301  (our own)
    else:
        file = io.BytesIO()
        joblib.dump(model, file)
        copy = joblib.load(file)
    # The copy is freshly built; the model is not until it is told to.
    model.tree_.rebuild()
    assert copy.tree_.digest() == model.tree_.digest()
    assert copy.get_params() == model.get_params()
    for one in (model, copy):
        one.partial_fit(X[:10], y[:10])
        one.tree_.rebuild()
    assert copy.tree_.digest() == model.tree_.digest()


def test_ids_are_routed_as_metadata():
    X, y = IRIS.data, IRIS.target
    ids = np.random.default_rng(0).permutation(10_000)[: len(X)]
    with sklearn.config_context(enable_metadata_routing=True):
        model = EverTreeClassifier().set_fit_request(ids=True).set_partial_fit_request(ids=True)
        found = cross_validate(model, X, y, params={"ids": ids}, cv=3, return_indices=True,
                               return_estimator=True)  # fmt: skip
        for fitted, rows in zip(found["estimator"], found["indices"]["train"], strict=True):
            fitted.forget(ids=ids[rows[:-1]])
            assert ids[rows[-1]] in fitted.tree_
            assert len(fitted.tree_) == 1
        bagged = BaggingClassifier(model, n_estimators=2, bootstrap=False).fit(X, y, ids=ids)
        assert all(ids[0] in fitted.tree_ for fitted in bagged.estimators_)


# --- names of features


def test_names_are_remembered_and_watched():
    X = pd.DataFrame({"a": [0.0, 1.0], "b": [1.0, 0.0]})
    model = EverTreeClassifier().fit(X, [0, 1])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    for answer in (
        model.predict,
        model.predict_proba,
        model.apply,
        lambda Z: model.forget(Z, [0, 1]),
    ):
        with pytest.raises(ValueError, match="feature names should match"):
            answer(X.rename(columns={"b": "c"}))
    with pytest.warns(UserWarning, match="valid feature names"):
        assert model.predict(X.to_numpy()).tolist() == [0, 1]
    with pytest.raises(ValueError, match="3 features"), pytest.warns(match="valid"):
        model.predict(np.ones((2, 3)))
