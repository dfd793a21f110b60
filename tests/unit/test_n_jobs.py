"""Threads change how long a build takes, and nothing else."""

import os

import numpy as np
import pytest

from evertree import EverTree, InvalidParameter
from evertree.limits import Limits


def table(n, d, n_values, n_classes, missing, seed):
    random = np.random.default_rng(seed)
    X = random.integers(0, n_values, size=(n, d)).astype(float)
    X[random.random(X.shape) < missing] = np.nan
    noise = random.integers(0, 3 * n_classes, n)
    y = np.where(noise < n_classes, noise, X[:, 1] > n_values / 2).astype(int)
    return X, y.tolist()


# From 2**18 values on, a build is shared.
@pytest.mark.parametrize(
    ("n_values", "n_classes", "missing"),
    [(3, 2, 0.01), (10**6, 2, 0.01), (10**6, 2, 0.0), (40, 5, 0.01)],
)
def test_the_tree_is_the_same(n_values, n_classes, missing, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    X, y = table(7_000, 40, n_values, n_classes, missing, seed=n_values + n_classes)
    digests = set()
    for n_jobs in (None, 2, -1):
        tree = EverTree(40, categorical=[7], max_depth=12, n_jobs=n_jobs)
        tree.insert_many(X[:6_900], y[:6_900])
        for x, label in zip(X[6_900:], y[6_900:], strict=True):
            tree.insert(x, label)
        tree.delete_many(X[:50], y[:50])
        digests.add(tree.digest())
    assert len(digests) == 1


def test_the_tree_is_the_same_where_most_values_are_common(monkeypatch):
    # Rows list what is not common; large walks through the lists are shared. Not every worker sees
    # that the last feature has too many values, and which one does depends on the clock.
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    random = np.random.default_rng(5)
    n, d = 30_000, 12
    X = np.where(random.random((n, d)) < 0.8, 0.0, random.integers(1, 6, size=(n, d)))
    X[:, 0] = random.integers(0, 4, n)
    X[n // 2 :, -1] = random.random(n - n // 2)
    y = ((X[:, 0] > 1) + (X[:, 1] > 2) + (random.random(n) < 0.1)).astype(int).tolist()
    digests = set()
    for n_jobs in (None, 2, -1, 2):
        tree = EverTree(d, max_depth=8, n_jobs=n_jobs)
        tree.insert_many(X, y)
        digests.add(tree.digest())
    assert len(digests) == 1
    assert tree.certify().ok


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_tree_is_the_same_where_rows_repeat(n_classes, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    X, y = table(4_000, 12, 50, n_classes, 0.0, seed=n_classes)
    X[:, 0] += np.random.default_rng(1).random(4_000)
    random = np.random.default_rng(2)
    often = random.integers(0, np.where(random.random(60_000) < 0.85, 50, 4_000))
    digests = set()
    for n_jobs in (None, 2, -1):
        tree = EverTree(12, max_depth=12, n_jobs=n_jobs)
        tree.insert_many(X[often], [y[i] for i in often])
        digests.add(tree.digest())
        tree.rebuild()
        digests.add(tree.digest())
    assert len(digests) == 1
    assert tree.certify().ok


def test_of_equal_splits_in_bins_of_different_workers_the_lowest_is_taken(monkeypatch):
    # Cutting off the one side leaves as much as cutting off the other, each within a bin.
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    random = np.random.default_rng(3)
    n, d = 40_000, 12
    X = random.normal(size=(n, d))
    X[:, 1] = random.permutation(np.arange(n)) - (n - 1) / 2
    y = (np.abs(X[:, 1]) > 12_345).tolist()
    for n_jobs in (None, 2, -1):
        tree = EverTree(d, max_depth=2, n_jobs=n_jobs)
        tree.insert_many(X, y)
        root = tree.nodes()[0]
        assert (root["feature"], root["threshold"]) == (1, -12_345.0)


def test_features_without_bins_are_not_looked_at_within_bins(monkeypatch):
    # Where the rare flag is constant, no score of a counted feature is known, and where a class is
    # rare, all of them are next to nothing: neither may pass for a bin that deserves a look.
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    random = np.random.default_rng(4)
    n = 300_000
    flags = (random.random((n, 3)) < [0.05, 0.1, 0.2]).astype(float)
    groups = random.integers(0, 5, size=(n, 2)).astype(float)
    rare = random.random(n) < 0.0005
    often = (flags[:, 0] == 1) ^ (random.random(n) < 0.3)
    for y, limit in ((rare, 0.0), (often, 0.01)):
        digests = set()
        for n_jobs in (None, 2, -1):
            tree = EverTree(5, categorical=[3, 4], min_impurity=limit, max_depth=4, n_jobs=n_jobs)
            tree.insert_many(np.column_stack([flags, groups]), y.tolist())
            digests.add(tree.digest())
        assert len(digests) == 1
        assert tree.certify().ok


@pytest.mark.parametrize("odd", ["far", "missing", "different"])
def test_what_one_worker_alone_has_seen_of_a_feature_is_known_to_all(odd, monkeypatch):
    # Bins are found chunk by chunk of the rows, and all that is odd lies in one of them.
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    random = np.random.default_rng(6)
    n, d = 60_000, 6
    X = random.normal(size=(n, d))
    X[:, 1] = 1.0 + random.integers(0, 4_000, n) * 2.0**-52 if odd != "different" else 1.0
    for first in (0, n - 10):
        rows = X.copy()
        rows[first : first + 10, 1] = {"far": -1e300, "missing": np.nan, "different": 2.0}[odd]
        strange = np.zeros(n, dtype=bool)
        strange[first : first + 10] = True
        digests = set()
        for n_jobs in (None, 2, -1):
            tree = EverTree(d, max_depth=2, min_impurity=0.0, n_jobs=n_jobs)
            tree.insert_many(rows, strange.tolist())
            digests.add(tree.digest())
        root, left, right = tree.nodes()[:3]
        assert root["feature"] == 1
        assert {True: 10} in (left["counts"], right["counts"])
        assert len(digests) == 1
        assert tree.certify().ok


def test_how_many_threads(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    found = [Limits.checked(1, n_jobs=n).n_jobs for n in (None, 1, 3, 100, -1, -2, -100)]
    assert found == [1, 1, 3, 4, 4, 3, 1]


@pytest.mark.parametrize("n_jobs", [0, 1.0, True, "2", -0.0])
def test_what_is_no_number_of_threads(n_jobs):
    with pytest.raises(InvalidParameter, match="is neither None nor an int other than 0"):
        EverTree(1, n_jobs=n_jobs)
