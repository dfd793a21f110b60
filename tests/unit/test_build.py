"""Build against a slow twin: every node of trees of all kinds, and always exactly.

The twin below is written with numpy for sets that are too large for the reference, and is itself
compared with the reference on small ones. It decides by fractions wherever doubles are close.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from evertree import EverTree
from reference import Reference
from streams_for_tests import SEED

NAN = math.nan
TOL = Fraction(1, 10**12)
Labels = list[Any]

# ----------------------------------------------------------------------------------------- the twin


def middle(low: float, high: float) -> float:
    value = float((Fraction(low) + Fraction(high)) / 2) + 0.0
    return value if value < high else low


def purity(left: Counter, right: Counter) -> Fraction:
    """n minus the mass that is left, exactly."""
    sides = [[int(c) for c in side] for side in (left, right)]
    return sum(Fraction(sum(c * c for c in side), sum(side)) for side in sides)


@dataclass
class Splits:
    """The candidates of one feature, in the order that decides ties."""

    left: np.ndarray  # class counts of the left side, a row per candidate
    values: list[float]  # the last value on the left, or the category
    nexts: list[float]  # the first value on the right, or nan
    missing_left: list[bool]


class Twin:
    """Algorithm 2 for arrays."""

    def __init__(
        self, X: np.ndarray, y: Labels, categorical: tuple[int, ...] = (), **limits: Any
    ) -> None:
        self.X, self.categorical = X + 0.0, categorical
        self.names = list(dict.fromkeys(y))
        number = {name: i for i, name in enumerate(self.names)}
        self.y = np.array([number[label] for label in y], dtype=np.intp)
        self.k1 = limits.get("min_samples_split", 2)
        self.h = limits.get("max_depth")
        self.alpha = Fraction(limits.get("min_impurity", 0.01))

    def nodes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        stack = [(np.arange(len(self.y)), None, 0, "")]
        while stack:
            rows, parent, depth, side = stack.pop()
            node = self.node(rows, parent, depth)
            node["id"] = len(found)
            if parent is not None:
                found[parent][side] = node["id"]
            found.append(node)
            if node["feature"] is not None:
                goes_left = self.goes_left(node, self.X[rows, node["feature"]])
                stack.append((rows[~goes_left], node["id"], depth + 1, "right"))
                stack.append((rows[goes_left], node["id"], depth + 1, "left"))
        return found

    def node(self, rows: np.ndarray, parent: int | None, depth: int) -> dict[str, Any]:
        counts = np.bincount(self.y[rows], minlength=len(self.names))
        named = {self.names[c]: int(n) for c, n in enumerate(counts) if n}
        split = None if self.stops(counts, depth) else self.best(rows, counts)
        of_splits = ("feature", "threshold", "category", "missing_left", "left", "right")
        node = dict.fromkeys(of_splits) | {"parent": parent, "depth": depth, "counts": named}
        return node | (split or {})

    def stops(self, counts: np.ndarray, depth: int) -> bool:
        n = int(counts.sum())
        gini = 1 - Fraction(sum(int(c) ** 2 for c in counts), n * n) if n else 0
        small = n < self.k1 or depth == self.h
        return small or gini == 0 or gini <= self.alpha / 2 + TOL

    def best(self, rows: np.ndarray, counts: np.ndarray) -> dict[str, Any] | None:
        """The split of largest purity; of several the first."""
        per_feature = [self.splits(j, rows) for j in range(self.X.shape[1])]
        rough = [rough_purity(splits.left, counts) for splits in per_feature]
        top = max((float(r.max()) for r in rough if r.size), default=None)
        if top is None:
            return None
        best, best_purity = None, Fraction(-1)
        for j, splits in enumerate(per_feature):
            for i in np.flatnonzero(rough[j] >= top - 1e-9 * len(rows)):
                exact = purity(splits.left[i], counts - splits.left[i])
                if exact > best_purity:
                    best, best_purity = (j, splits, i), exact
        return self.described(*best, int(counts.sum()))

    def described(self, j: int, splits: Splits, i: int, n: int) -> dict[str, Any]:
        value, following = splits.values[i], splits.nexts[i]
        if j in self.categorical:
            category = value if math.isnan(value) else int(value)
            return {"feature": j, "category": category, "missing_left": math.isnan(value)}
        threshold = value if math.isnan(following) else middle(value, following)
        missing_left = splits.missing_left[i]
        if missing_left is None:  # none is missing: the side of the larger child
            missing_left = bool(2 * splits.left[i].sum() >= n)
        return {"feature": j, "threshold": threshold, "missing_left": missing_left}

    def splits(self, j: int, rows: np.ndarray) -> Splits:
        column, labels = self.X[rows, j], self.y[rows]
        values, place = np.unique(column, return_inverse=True)  # nan is one value, the last
        table = np.zeros((len(values), len(self.names)), dtype=np.int64)
        np.add.at(table, (place, labels), 1)
        if len(values) < 2:
            return Splits(table[:0], [], [], [])
        if j in self.categorical:
            return Splits(table, values.tolist(), [NAN] * len(values), [])
        return real_splits(table, values)

    def goes_left(self, node: dict[str, Any], column: np.ndarray) -> np.ndarray:
        if node["category"] is None:
            below = column <= node["threshold"]
            return below | (np.isnan(column) & node["missing_left"])
        return np.isnan(column) if node["missing_left"] else column == node["category"]


def real_splits(table: np.ndarray, values: np.ndarray) -> Splits:
    some_missing = math.isnan(values[-1])
    below = np.cumsum(table, axis=0)
    if not some_missing:
        return Splits(
            below[:-1], values[:-1].tolist(), values[1:].tolist(), [None] * (len(values) - 1)
        )
    present, missing = values[:-1].tolist(), table[-1]
    left, lows, nexts, sides = [], [], [], []
    for i, low in enumerate(present):
        last = i + 1 == len(present)
        for with_missing in (False,) if last else (True, False):
            left.append(below[i] + missing if with_missing else below[i])
            lows.append(low)
            nexts.append(NAN if last else present[i + 1])
            sides.append(with_missing)
    return Splits(np.array(left), lows, nexts, sides)


def rough_purity(left: np.ndarray, counts: np.ndarray) -> np.ndarray:
    right = counts - left
    of_left, of_right = (
        (left.astype(float) ** 2).sum(axis=1),
        (right.astype(float) ** 2).sum(axis=1),
    )
    return of_left / left.sum(axis=1) + of_right / right.sum(axis=1)


# ---------------------------------------------------------------------------------------- comparing


def plain(nodes: list[dict[str, Any]]) -> list[tuple]:
    """Nodes that can be compared: thresholds to the last digit, nan as a word, counts in order."""
    keys = ("id", "parent", "depth", "feature", "missing_left", "left", "right")
    return [
        (
            *(node[key] for key in keys),
            digits(node["threshold"]),
            digits(node["category"]),
            sorted((repr(y), n) for y, n in node["counts"].items()),
        )
        for node in nodes
    ]


def digits(value: float | None) -> str:
    """Every digit of a number, but not the sign of zero, which has a test of its own."""
    return repr(value + 0.0 if isinstance(value, float) else value)


def built(X: np.ndarray, y: Labels, categorical: tuple[int, ...] = (), **limits: Any) -> EverTree:
    tree = EverTree(X.shape[1], categorical=categorical, **limits)
    tree.insert_many(X, y)
    tree.rebuild()
    return tree


def assert_same(
    X: np.ndarray, y: Labels, seed: int, categorical: tuple[int, ...] = (), **limits: Any
) -> int:
    """The core's tree is the twin's; gives back how many nodes it has."""
    found = plain(built(X, y, categorical, **limits).nodes())
    wanted = plain(Twin(X, y, categorical, **limits).nodes())
    for ours, theirs in zip(found, wanted, strict=False):
        assert ours == theirs, (seed, categorical, limits)
    assert len(found) == len(wanted), (seed, categorical, limits)
    return len(found)


# --------------------------------------------------------------------------------------------- sets

LIMITS = (
    {},
    {"min_impurity": 0.0},
    {"max_depth": 3, "min_impurity": 0.2},
    {"min_samples_split": 6},
    {"min_impurity": 0.32, "min_samples_split": 3, "max_depth": 8},
)


def random_set(
    rng: np.random.Generator, n: int
) -> tuple[np.ndarray, Labels, tuple[int, ...], dict]:
    """Rows with ties or without, with missing values or without, of any kind and many classes."""
    d = int(rng.integers(1, 5))
    columns, categorical = [], []
    for j in range(d):
        kind = rng.integers(5)
        n_values = int(rng.choice([2, 3, 8, 60, n]))
        if kind == 0:
            columns.append(rng.normal(size=n))
        elif kind == 1:
            columns.append(rng.integers(0, n_values, n) / 4 - 1.0)
        elif kind == 2:
            columns.append(rng.choice(EXTREMES, n))
        else:
            columns.append(rng.integers(0, n_values, n).astype(float))
            categorical.append(j)
    X = np.column_stack(columns)
    X[rng.random(X.shape) < rng.choice([0.0, 0.0, 0.1, 0.6])] = NAN
    n_classes = int(rng.choice([2, 2, 3, 7, 30, n]))
    y = np.arange(n) if n_classes == n else rng.integers(0, n_classes, n)
    follows = rng.random(n) < 0.6
    if n_classes < n:
        y = np.where(follows, np.clip(columns[0], -1e6, 1e6).astype(int) % n_classes, y)
    return X, y.tolist(), tuple(categorical), LIMITS[int(rng.integers(len(LIMITS)))]


TINY, HUGE = 5e-324, 1.7976931348623157e308
NEIGHBOURS = (math.nextafter(1.0, 0.0), 1.0, math.nextafter(1.0, 2.0))
SUBNORMAL = (TINY, -TINY, 2 * TINY, -3 * TINY, 1e-310, 2.2250738585072014e-308)
EXTREMES = np.array([0.0, -0.0, *SUBNORMAL, *NEIGHBOURS, HUGE, -HUGE, 1e308, -1e308, 2.0**53])


@pytest.mark.parametrize("part", range(6))
def test_the_twin_is_the_reference(part: int):
    """The slow twin is compared with a slower one, so that it can be believed."""
    for seed in range(SEED + 10 * part, SEED + 10 * part + 10):
        X, y, categorical, limits = random_set(np.random.default_rng(seed), n=14)
        reference = Reference(X.shape[1], categorical=categorical, **limits)
        reference.update(
            insert=[(tuple(row), label) for row, label in zip(X.tolist(), y, strict=True)]
        )
        reference.rebuild()
        twin = Twin(X, y, categorical, **limits)
        assert plain(twin.nodes()) == plain(reference.nodes()), (seed, categorical, limits)


@pytest.mark.parametrize("n", [2, 5, 17, 60, 400])
def test_small_sets(n: int):
    for seed in range(SEED, SEED + (20 if n == 400 else 60)):
        X, y, categorical, limits = random_set(np.random.default_rng(1000 * n + seed), n)
        assert_same(X, y, seed, categorical, **limits)


@pytest.mark.parametrize("order", ["sorted", "reversed", "one by one", "in batches", "in and out"])
def test_the_order_does_not_matter(order: str):
    for seed in range(SEED, SEED + 25):
        rng = np.random.default_rng(seed)
        X, y, categorical, limits = random_set(rng, n=90)
        wanted = built(X, y, categorical, **limits).digest()
        tree = EverTree(X.shape[1], categorical=categorical, **limits)
        insert_in_order(tree, X, y, order, rng)
        tree.rebuild()
        assert tree.digest() == wanted, (seed, order, categorical, limits)


def insert_in_order(
    tree: EverTree, X: np.ndarray, y: Labels, order: str, rng: np.random.Generator
) -> None:
    rows = rng.permutation(len(y))
    if order in {"sorted", "reversed"}:
        rows = np.argsort(X[:, 0], kind="stable")[:: 1 if order == "sorted" else -1]
    size = {"sorted": len(y), "reversed": len(y), "in batches": 13}.get(order, 1)
    for at in range(0, len(rows), size):
        part = rows[at : at + size]
        tree.insert_many(X[part], [y[i] for i in part])
        if order == "in and out":
            tree.insert(X[part[0]], "passing through")
            tree.delete(X[part[0]], "passing through")


# ----------------------------------------- sets where both forms of a feature, and the switch, work


def forms(seed: int, n: int, n_classes: int, n_values: list[int], missing: float) -> tuple:
    """Features of as many values as given, noisy labels: deep trees.

    0 stands for a continuous feature; below 0, most rows have the same of the values.
    """
    rng = np.random.default_rng(seed)
    columns = [
        rng.normal(size=n) if m == 0 else rng.integers(0, abs(m), n).astype(float) for m in n_values
    ]
    for column, m in zip(columns, n_values, strict=True):
        if m < 0:
            column[rng.random(n) < 0.8] = abs(m) // 2
    X = np.column_stack(columns)
    height = sum(c / max(1, abs(m)) for c, m in zip(columns, n_values, strict=True))
    y = np.digitize(height, np.quantile(height, np.linspace(0, 1, n_classes + 1)[1:-1]))
    y = np.where(rng.random(n) < 0.15, rng.integers(0, n_classes, n), y)
    X[rng.random(X.shape) < missing] = NAN
    return X, y.tolist()


FORMS = [
    # n, classes, values of each feature, categorical, share missing, limits
    (5_000, 2, [3, 5, 2, 7], (), 0.0, {}),
    (5_000, 2, [3, 5, 2, 7], (0, 3), 0.1, {}),
    (6_000, 3, [40, 4, 0], (1,), 0.05, {}),
    (8_000, 2, [300, 12, 700], (0,), 0.1, {"min_samples_split": 10}),
    (5_000, 12, [6, 20, 3, 0], (1, 2), 0.1, {"min_samples_split": 8}),
    (20_000, 2, [2, 2, 2, 2, 2, 2, 2, 2, 2, 2], (), 0.02, {}),
    (8_000, 23, [-40, 20, -3, 0], (1,), 0.05, {"min_samples_split": 20}),
    (9_000, 16, [-9, -30, 12], (), 0.0, {"min_samples_split": 20}),
    (12_000, 70, [30, -25, 9], (2,), 0.1, {"min_samples_split": 30}),
    (30_000, 2, [5_000, 3_000, 9], (2,), 0.0, {"max_depth": 9}),
    (30_000, 2, [4_097, 4_096, 4_095], (1,), 0.1, {"max_depth": 7}),
]


@pytest.mark.parametrize("case", range(len(FORMS)))
def test_large_sets_of_few_values(case: int):
    n, n_classes, n_values, categorical, missing, limits = FORMS[case]
    X, y = forms(SEED + case, n, n_classes, n_values, missing)
    n_nodes = assert_same(X, y, SEED + case, categorical, **limits)
    assert n_nodes > 100, "deep enough to pass from counting to sorting"


# ----------------------------------------------- sets whose values are counted in bins, and refined


def many_values(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    """A column of thousands of values, of a kind that bins might get wrong."""
    if kind == "normal":
        return rng.normal(size=n)
    if kind == "single":  # what a float can say
        return rng.normal(size=n).astype(np.float32).astype(float)
    if kind == "whole":
        return rng.integers(-9_000, 9_000, n).astype(float)
    if kind == "heavy":  # half of the rows share three values
        return np.where(rng.random(n) < 0.5, rng.integers(0, 3, n) / 7, rng.normal(size=n))
    if kind == "close":  # apart by their last bits alone, but for one that is far away
        return np.append(1.0 + rng.integers(0, 4_000, n - 1) * 2.0**-52, 1e300)
    return np.exp(rng.normal(size=n) * 50) * rng.choice([-1.0, 1.0], n)  # of all sizes


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0])
def test_large_sets_of_many_values(noise: float):
    """With noise alone, no cut stands out, and the best may be within any bin."""
    rng = np.random.default_rng(SEED + int(10 * noise))
    kinds = ["normal", "single", "whole", "heavy", "close", "sizes"]
    X = np.column_stack([many_values(rng, 9_000, kind) for kind in kinds])
    ranks = X.argsort(axis=0, kind="stable").argsort(axis=0)
    y = np.where(rng.random(9_000) < noise, rng.integers(0, 2, 9_000), ranks.sum(axis=1) > 27_000)
    limits = {"max_depth": 9, "min_samples_split": 40}
    found = plain(built(X, y.tolist(), **limits).nodes())
    assert found == plain(Twin(X, y.tolist(), **limits).nodes())
    assert len(found) > 50


@pytest.mark.parametrize("far", [1e300, -1e300, 1e-300])
def test_few_values_far_from_all_others(far: float):
    """Bins begin at some of the values, and most times none of these is far away."""
    rng = np.random.default_rng(SEED)
    n, n_far = 60_000, 10
    is_far = np.arange(n) < n_far
    X = np.where(is_far, far, 1.0 + rng.integers(0, 4_000, n) * 2.0**-52).reshape(-1, 1)
    for _ in range(5):
        order = rng.permutation(n)
        nodes = built(X[order], is_far[order].tolist(), max_depth=1, min_impurity=0).nodes()
        far_away, all_others = {True: n_far}, {False: n - n_far}
        assert far_away in (nodes[1]["counts"], nodes[2]["counts"]), SEED
        assert all_others in (nodes[1]["counts"], nodes[2]["counts"]), SEED


@pytest.mark.parametrize("n_classes", [2, 3, 12])
@pytest.mark.parametrize("case", ["real", "real of few values", "missing", "categorical"])
def test_rows_that_repeat(case: str, n_classes: int):
    """Equal rows of one class are gone through as one; equal rows of two classes are two."""
    rng = np.random.default_rng(SEED + n_classes)
    n, n_different, n_often = 9_000, 2_000, 40
    table = rng.normal(size=(n_different, 6))
    table[:, 0] = rng.integers(0, 5, n_different)
    table[:, 1] = np.where(rng.random(n_different) < 0.8, 0.0, rng.integers(1, 300, n_different))
    if case != "real":
        table[:, 2:] = table[:, 2:].round(1)
    if case == "missing":
        table[rng.random(table.shape) < 0.1] = NAN
    X = table[rng.integers(0, np.where(rng.random(n) < 0.85, n_often, n_different))]
    noise = rng.integers(0, 4 * n_classes, n)
    y = np.where(noise < n_classes, noise, (X[:, 2] > 0) + (X[:, 0] > 2) * 1 % n_classes)
    categorical = (0,) if case == "categorical" else ()
    limits = {"max_depth": 9, "min_samples_split": 40}
    tree = built(X, y.tolist(), categorical, **limits)
    found = plain(tree.nodes())
    assert found == plain(Twin(X, y.tolist(), categorical, **limits).nodes())
    assert len(found) > 30
    assert tree.certify().ok
    tree.rebuild()
    assert plain(tree.nodes()) == found


def test_few_values_peeled_one_by_one():
    """Deep and lopsided: the larger side keeps the counts that remain, level after level."""
    n = 6_000
    rng = np.random.default_rng(SEED)
    X = np.column_stack([np.arange(n) % 40, np.arange(n) // 40 % 15]).astype(float)
    y = ((X[:, 0] % 2) ** 1 * (rng.random(n) < 0.9)).astype(int).tolist()
    for categorical in ((), (0,), (0, 1)):
        assert assert_same(X, y, SEED, categorical) > 80


# ---------------------------------------------------------------------------------- values and ties


@pytest.mark.parametrize("categorical", [False, True])
def test_neighbouring_values_are_separated(categorical: bool):
    values = sorted({abs(v) for v in EXTREMES if v == int(v) and abs(v) < 2**53} | {2.0**52, 3.0})
    if not categorical:
        values = sorted(set(EXTREMES.tolist()))
    for low, high in itertools.pairwise(values):
        X = np.array([[low], [high]])
        tree = built(X, ["low", "high"], (0,) if categorical else ())
        assert tree.label_many(X).tolist() == ["low", "high"], (low, high)
        assert_same(X, ["low", "high"], 0, (0,) if categorical else ())


def test_a_threshold_is_never_minus_zero():
    """-0.0 is turned into 0.0 at the door, so none may come out either."""
    tree = built(np.array([[-2 * TINY], [TINY]]), [0, 1])
    assert repr(tree.nodes()[0]["threshold"]) == "0.0"


def test_minus_zero_and_zero_are_one_value():
    X = np.array([[0.0], [-0.0], [0.0], [-0.0]])
    tree = built(X, [0, 1, 0, 1])
    assert len(tree.nodes()) == 1
    assert tree.digest() == built(-X, [0, 1, 0, 1]).digest()


def test_exact_ties_go_to_the_lowest_feature_and_value():
    for seed in range(SEED, SEED + 30):
        rng = np.random.default_rng(seed)
        column = rng.integers(0, 3, 12).astype(float)
        X = np.column_stack([column, 5 - column, column * 3, column])  # mirrored: the same splits
        y = rng.integers(0, 2, 12).tolist()
        for categorical in ((), (0, 1, 2, 3), (1,)):
            assert_same(X, y, seed, categorical)


def near_ties(rng: np.random.Generator, n: int, n_ones: int, count: int) -> list[tuple]:
    """Pairs of (rows, ones) of a left side whose purities are as close as can be, yet differ."""
    size = rng.integers(1, n, 3_000_000)
    ones = np.minimum(rng.integers(0, n_ones + 1, size.size), size)
    fits = n_ones - ones <= n - size
    size, ones = size[fits], ones[fits]
    score = ones**2 / size + (n_ones - ones) ** 2 / (n - size)
    order = np.argsort(score)
    gaps = np.diff(score[order])
    pairs = []
    for at in np.argsort(gaps):
        a, b = ((int(size[i]), int(ones[i])) for i in order[[at, at + 1]])
        if len(pairs) == count:
            break
        if exact_score(a, n, n_ones) != exact_score(b, n, n_ones):
            pairs.append((a, b))
    return pairs


def exact_score(left: tuple[int, int], n: int, n_ones: int) -> Fraction:
    size, ones = left
    return Fraction(ones**2, size) + Fraction((n_ones - ones) ** 2, n - size)


def side(n: int, n_ones: int, left: tuple[int, int]) -> np.ndarray:
    """A feature that is 0 for `left` and 1 elsewhere; the first n_ones rows have label 1."""
    size, ones = left
    column = np.ones(n)
    column[:ones] = 0.0
    column[n_ones : n_ones + size - ones] = 0.0
    return column


def test_near_ties_are_decided_exactly():
    """Doubles cannot tell these splits apart; fractions can."""
    n, n_ones = 90_001, 40_000
    rng = np.random.default_rng(SEED)
    y = [1] * n_ones + [0] * (n - n_ones)
    for a, b in near_ties(rng, n, n_ones, count=6):
        better = int(exact_score(b, n, n_ones) > exact_score(a, n, n_ones))
        for flipped in (False, True):
            pair = (b, a) if flipped else (a, b)
            X = np.column_stack([side(n, n_ones, left) for left in pair])
            root = built(X, y, max_depth=1).nodes()[0]
            assert root["feature"] == (better ^ flipped), (SEED, a, b, flipped)


# ----------------------------------------------------------------------------------------- promises


def test_the_first_batch_is_one_build():
    """The documentation of insert_many says so; rebuild() afterwards changes nothing."""
    for seed in range(SEED, SEED + 60):
        X, y, categorical, limits = random_set(np.random.default_rng(seed), n=50)
        tree = EverTree(X.shape[1], categorical=categorical, **limits)
        tree.insert_many(X, y)
        found = tree.digest()
        tree.rebuild()
        assert tree.digest() == found, (seed, categorical, limits)


def test_the_first_batch_is_one_build_below_min_impurity_too():
    """Build stops at half of min_impurity: a Gini of 0.375 need not be split, but Build does."""
    tree = EverTree(1, min_impurity=0.5)
    tree.insert_many([[0.0], [1.0], [2.0], [3.0]], [0, 0, 0, 1])
    n_nodes = len(tree.nodes())
    tree.rebuild()
    assert n_nodes == len(tree.nodes()) == 3


def test_a_set_that_cannot_be_separated_is_a_leaf():
    X = np.full((50, 3), [1.0, NAN, 2.0])
    tree = built(X, list(range(50)), (2,))
    assert len(tree.nodes()) == 1
    assert tree.nodes()[0]["counts"] == dict.fromkeys(range(50), 1)


def test_rebuild_forgets_the_history():
    for seed in range(SEED, SEED + 10):
        rng = random.Random(seed)
        tree, rows = EverTree(2, max_gap=0.5), {}
        for _ in range(300):
            if rows and rng.random() < 0.45:
                i = rng.choice(list(rows))
                tree.delete(id=i)
                del rows[i]
            else:
                x, y = [rng.randrange(9) / 2, rng.random()], rng.choice("abc")
                rows[tree.insert(x, y)] = (x, y)
        tree.rebuild()
        X, y = np.array([x for x, _ in rows.values()]), [y for _, y in rows.values()]
        assert plain(tree.nodes()) == plain(Twin(X, y).nodes()), seed
