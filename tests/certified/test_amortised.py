"""Lemma 3.6 as counted work: the rows that T updates rebuild, on sequences made to rebuild often.

The bound, from a tree that Build has just made (all counters are 0) and for T updates, where an
update is one inserted or deleted row, alone or in a batch:

    rows rebuilt  <=  T * (2/eps + 1) * (ceil(log2 n) + 1),     n = the most rows ever in.

1. What a firing costs. v is where the rule fires, u what is rebuilt, s and c are size at the last
   build and updates since. |S_u| <= s(u) + c(u), because each update moves the size by one (the
   paper's 2*s(u) needs c <= eps*s, which the certified rule does not promise). s(u) <= 2*s(v) by
   the size class, s(v) <= c(v)/eps by 2., c(v) <= c(u) because u is above v.
   Together |S_u| <= (2/eps + 1) * c(u). (An empty tree has s = 0 and |S_u| = c.)

2. What must have happened at v before it fires: c(v) >= eps*s(v), where M is the mass n*g, which an
   insertion raises by less than 2 and a deletion lowers by less than 2:
   - gap: M_sigma - floor starts at 0, rises by at most 2 per update and must exceed beta*n, where
     n >= s - c. So 2c > beta*(s - c): eps = beta/(2 + beta).
   - a leaf has to be split that Build left for g <= alpha/2. With a insertions and b deletions
     alpha*(s + a - b) <= M <= alpha*s/2 + 2a, so alpha*s/2 <= (2 - alpha)*a + alpha*b <= 2c:
     eps = alpha/4. One that Build left for s <= k: c >= 1 >= s/(k + 1).
   - an internal node has become pure. It had M > alpha*s/2, and deletions take less than 2 each:
     eps = alpha/4. Or it has at most k rows, of at least k + 1: c >= s - k >= s/(k + 1).
   - an internal node has lost more than half of its rows: c > s/2.
   - the paper's rule: c > epsilon*s.
   So eps = min(beta/(2 + beta), alpha/4, 1/(k + 1)); with alpha >= 4*beta/(2 + beta) and k = 1 it
   is beta/(2 + beta) alone. Not covered: a leaf that Build left because its rows were all equal.
   Definition 3.1 wants it split as soon as one differs: the last test here.

3. How often an update is charged. The sum of c(u) over all rebuilds counts, for each update, the
   nodes of its path that are rebuilt later as u. Two of them are never of one size class
   ceil(log2 s): the lower one goes first, and if the upper one were of its class it would have been
   taken instead. Sizes 1 to n have ceil(log2 n) + 1 classes; size 0 is the empty tree only.

For n >= 4 this is below the T * (4/eps) * ceil(log2 n) that the paper's constants give.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from evertree import EverTree
from streams_for_tests import SEED, Example, X, table

GAP_RULES = {"max_gap": 0.1, "min_impurity": 0.2}  # eps = beta/(2 + beta): the gap is what fires
DEFAULTS = {"max_gap": 0.1, "min_impurity": 0.01}  # eps = alpha/4
PAPER = {"max_gap": 0.1, "min_impurity": 0.25, "epsilon": 0.045}


def epsilon_of(options: dict[str, Any]) -> float:
    """How many updates per row of the last build it takes at least until a rule fires."""
    if options.get("epsilon"):
        return options["epsilon"]
    beta, alpha = options["max_gap"], options["min_impurity"]
    return min(beta / (2 + beta), alpha / 4, 1 / options.get("min_samples_split", 2))


@dataclass(repr=False)
class Meter:
    """A tree that Build has just made, the updates since then, and what they cost."""

    rows: list[Example]
    options: dict[str, Any]
    updates: int = 0
    active: dict[int, Example] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.n_features = len(self.rows[0][0])
        self.tree = EverTree(self.n_features, **self.options)
        ids = self.tree.insert_many(*table(self.rows, self.n_features))
        self.active = dict(zip(ids.tolist(), self.rows, strict=True))
        self.tree.rebuild()
        self.n_most = len(self.rows)
        self.rows_at_start = self.tree.stats()["rows_rebuilt"]

    def insert(self, x: X, y: Any) -> int:
        i = self.tree.insert(x, y)
        self.active[i] = (x, y)
        self._count(1)
        return i

    def delete(self, i: int) -> None:
        self.tree.delete(id=i)
        del self.active[i]
        self._count(1)

    def replace(self, i: int, x: X, y: Any) -> None:
        self.tree.replace(i, x, y)
        self.active[i] = (x, y)
        self._count(2)

    def insert_many(self, rows: list[Example]) -> list[int]:
        ids = self.tree.insert_many(*table(rows, self.n_features)).tolist()
        self.active.update(zip(ids, rows, strict=True))
        self._count(len(rows))
        return ids

    def delete_many(self, ids: list[int]) -> None:
        self.tree.delete_many(ids=ids)
        for i in ids:
            del self.active[i]
        self._count(len(ids))

    def _count(self, n_rows: int) -> None:
        self.updates += n_rows
        self.n_most = max(self.n_most, len(self.active))

    @property
    def rows_rebuilt(self) -> int:
        return self.tree.stats()["rows_rebuilt"] - self.rows_at_start

    def check(self, seed: int) -> None:
        eps, classes = epsilon_of(self.options), math.ceil(math.log2(self.n_most)) + 1
        bound = self.updates * (2 / eps + 1) * classes
        assert self.rows_rebuilt <= bound, (
            f"seed {seed}: {self.updates} updates rebuilt {self.rows_rebuilt} rows, "
            f"{self.rows_rebuilt / self.updates:.1f} each; the bound is {bound / self.updates:.1f} "
            f"(n {self.n_most}, eps {eps:.4f}, {self.options})"
        )


# ---------------------------------------------------------------------------------------- scenarios
# Each takes n, limits and a seed, and gives back a Meter that has seen its updates.

Scenario = Callable[[int, dict[str, Any], random.Random], Meter]


def halving(n: int, rng: random.Random) -> list[Example]:
    """Noisy rows whose best splits halve them again and again, each leaving plenty of mass."""
    levels = max(2, int(math.log2(n)) - 5)
    rows = []
    for _ in range(n):
        bits = [float(rng.random() < 0.5) for _ in range(levels)]
        chance = 0.5 + sum((b - 0.5) * 0.35 * 0.6**j for j, b in enumerate(bits))
        rows.append((tuple(bits), int(rng.random() < chance)))
    return rows


def one_leaf_in_and_out(n: int, options: dict[str, Any], rng: random.Random) -> Meter:
    """All updates on one path: every size class on it fires as often as it can."""
    meter = Meter(halving(n, rng), options)
    zeros = (0.0,) * meter.n_features
    # Deletions lower every floor, of the common label they hardly lower the mass.
    for _ in range(n // 4):
        meter.delete(meter.insert(zeros, 0))
    return meter


def two_concepts(n: int, options: dict[str, Any], rng: random.Random) -> Meter:
    """Feature 0 says the label, then row by row feature 1 does, and back."""
    rows = [((rng.random(), rng.random()), 0) for _ in range(n)]
    meter = Meter([(x, int(x[0] > 0.5)) for x, _ in rows], options)
    for concept in (1, 0):
        for i in rng.sample(list(meter.active), n // 2):
            x = meter.active[i][0]
            meter.replace(i, x, int(x[concept] > 0.5))
    return meter


def moving_border(n: int, options: dict[str, Any], rng: random.Random) -> Meter:
    """A window over rows whose border between the labels wanders, with noise."""
    moments = range(2 * n)
    border = [0.5 + 0.4 * math.sin(3 * t / n) for t in moments]
    xs = [rng.random() for _ in moments]
    ys = [int(x > b) ^ int(rng.random() < 0.2) for x, b in zip(xs, border, strict=True)]
    rows = [((x, float(t % 7)), y) for x, t, y in zip(xs, moments, ys, strict=True)]
    meter = Meter(rows[:n], options)
    for oldest, row in enumerate(rows[n:]):
        meter.insert(*row)
        meter.delete(oldest)
    return meter


def sorted_in_and_out(n: int, options: dict[str, Any], rng: random.Random) -> Meter:
    """Time as a feature: every new row lies beyond all others, every old one before them."""
    block = max(2, n // 50)
    row = lambda t: ((float(t),), t // block % 2 ^ int(rng.random() < 0.15))  # noqa: E731
    meter = Meter([row(t) for t in range(n // 2)], options)
    for t in range(n // 2, n):
        meter.insert(*row(t))
    for i in list(meter.active)[: n // 2]:
        meter.delete(i)
    return meter


def pure_and_impure(n: int, options: dict[str, Any], rng: random.Random) -> Meter:
    """One set that becomes impure enough to be split, then pure again, and so on."""
    meter = Meter([((rng.random(),), 0) for _ in range(n)], options)
    for _ in range(3):
        strangers = []
        while len(meter.tree.nodes()) == 1:
            strangers.append(meter.insert((2.0,), 1))
        for i in strangers:
            meter.delete(i)
    return meter


def at_k(n: int, options: dict[str, Any], rng: random.Random) -> Meter:
    """|S| = k and k + 1 in turns, at a leaf of a large tree and with the whole tree."""
    k = options.get("min_samples_split", 2) - 1
    meter = Meter([((float(i),), i // k % 2 if i < 30 * k else 0) for i in range(n)], options)
    for turn in range(500):
        meter.delete(meter.insert((10.5 * k,), turn % 2))
    meter.delete_many(list(meter.active)[k:])
    for turn in range(500):
        meter.delete(meter.insert((-1.0,), turn % 2))
    return meter


def cascade(n: int, options: dict[str, Any], rng: random.Random) -> Meter:
    """A chain of slowly shrinking nodes, all updates at its end.

    Labels in blocks of 25 rows: each level peels one block, and at each level the rule is due at
    another update. Without the paper's proactive choice, hundreds of levels of one size class would
    be rebuilt one after the other, each at nearly full size.
    """
    meter = Meter([((float(i),), i // 25 % 2) for i in range(n)], options | {"max_depth": 400})
    for _ in range(n // 4):
        meter.delete(meter.insert((n + 0.5,), (n - 1) // 25 % 2))
    return meter


def parity_flips(n: int, options: dict[str, Any], rng: random.Random) -> Meter:
    """XOR, whose first split gains nothing, with every label turned over one by one."""
    corners = [(a, b, c) for a in (0.0, 1.0) for b in (0.0, 1.0) for c in (0.0, 1.0)]
    xs = [corners[i % 8] for i in range(n)]
    meter = Meter([(x, int(sum(x)) % 2) for x in xs], options)
    for i in rng.sample(list(meter.active), n):
        x, y = meter.active[i]
        meter.replace(i, x, 1 - y)
    return meter


def down_to_nothing(n: int, options: dict[str, Any], rng: random.Random) -> Meter:
    """Everything out, at random, and in again, at random."""
    meter = Meter(halving(n, rng), options)
    for i in rng.sample(list(meter.active), n):
        meter.delete(i)
    for row in meter.rows:
        meter.insert(*row)
    return meter


def in_batches(n: int, options: dict[str, Any], rng: random.Random) -> Meter:
    """Batches of all sizes; each row of a batch counts as an update."""
    meter = Meter(halving(n, rng), options)
    zeros = (0.0,) * meter.n_features
    while meter.updates < 2 * n:
        size = rng.randint(1, n // 20)
        meter.delete_many(rng.sample(list(meter.active), size))
        some = rng.sample(meter.rows, size)
        meter.insert_many([(zeros, 0) if rng.random() < 0.5 else row for row in some])
    return meter


SCENARIOS: list[Scenario] = [
    one_leaf_in_and_out,
    two_concepts,
    moving_border,
    sorted_in_and_out,
    pure_and_impure,
    at_k,
    cascade,
    parity_flips,
    down_to_nothing,
    in_batches,
]
LIMITS = {
    "gap": GAP_RULES,
    "defaults": DEFAULTS,
    "paper": PAPER,
    "k=20": {"max_gap": 0.2, "min_impurity": 0.4, "min_samples_split": 21},
}


def plan() -> list[tuple[Scenario, int, str]]:
    """All limits up to n = 10^4; at 10^5 those whose bound is the tightest."""
    small = [(s, n, name) for n in (1_000, 10_000) for s in SCENARIOS for name in LIMITS]
    large = [(s, 100_000, "gap") for s in SCENARIOS]
    return [*small, *large, (one_leaf_in_and_out, 100_000, "paper"), (cascade, 100_000, "paper")]


@pytest.mark.parametrize(
    ("scenario", "n", "limits"), plan(), ids=lambda p: getattr(p, "__name__", str(p))
)
def test_rows_rebuilt_stay_under_the_bound(scenario: Scenario, n: int, limits: str):
    seed = SEED + n
    meter = scenario(n, LIMITS[limits], random.Random(seed))
    assert meter.updates > 0
    meter.check(seed)


def test_the_bound_is_the_one_that_is_promised():
    """With these limits it is beta/(2 + beta) that counts, and the constant is not above 4/eps."""
    beta = GAP_RULES["max_gap"]
    assert epsilon_of(GAP_RULES) == beta / (2 + beta)
    for options in LIMITS.values():
        for n in (4, 5, 1_000, 100_000):
            eps, log_n = epsilon_of(options), math.ceil(math.log2(n))
            assert (2 / eps + 1) * (log_n + 1) <= 4 / eps * log_n


@pytest.mark.parametrize("limits", ["gap", "paper"])
def test_equal_rows_with_mixed_labels_cost_little(limits: str):
    """Equal rows with mixed labels come and go; no split can tell them apart."""
    n = 10_000
    meter = Meter([((0.0,), i % 2) for i in range(n)], LIMITS[limits])
    ids = list(meter.active)
    for turn in range(2_000):
        meter.delete(ids.pop())
        ids.insert(0, meter.insert((0.0,), turn % 2))
    meter.check(seed=0)


@pytest.mark.parametrize("limits", ["gap", "paper"])
def test_an_odd_row_beside_equal_rows_is_the_known_exception(limits: str):
    """A pile of equal rows with mixed labels, and one row that differs, in and out on either side.

    Definition 3.1 wants the pile split from it at once, however large the pile is: the bound does
    not hold here (paper/MAP.md, section 3). One rebuild of the pile for an insertion is the most.
    """
    n = 2_000
    meter = Meter([((0.0,), i % 2) for i in range(n)], LIMITS[limits])
    for turn in range(100):
        meter.delete(meter.insert(((1.0,), (-1.0,))[turn % 2], 0))
        assert meter.tree.certify().ok
    assert meter.rows_rebuilt <= meter.updates // 2 * (n + 1)
