"""Long runs with an audit after every request: whatever comes, the tree stays certified.

`make test` audits at least 200,000 requests; EVERTREE_SOAK=1 makes millions, with new seeds.
At the end of each run rebuild() must give the digest of a new tree of the same rows, in any order.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from streams_for_tests import SOAK, STREAMS, Run, Source

N_AUDITS_LEAST = 5_000_000 if SOAK else 200_000
ROUNDS = 25 if SOAK else 1  # every round repeats the plan with other seeds

WORDS = ("no", "yes", "maybe", "perhaps", "never", "always", "often", "seldom")
MIXED_NAMES = (0, "a", None, (1, "b"), 2.5, False, "c", -1, frozenset({3}), b"d")

SOURCES = {
    "real": Source(drift=0.5),
    "few values": Source(n_values=4, n_classes=3, class_life=300),
    "categorical": Source(categorical=(0, 1, 2), n_values=5, n_classes=4, drift=1.0),
    "mixed": Source(n_features=4, categorical=(1, 3), n_classes=5, class_life=400, names=WORDS),
    "missing": Source(n_features=3, categorical=(1,), n_values=6, missing=0.2, n_classes=2),
    "missing real": Source(n_features=2, missing=0.3, n_classes=6, class_life=250, drift=0.3),
    "one feature": Source(n_features=1, noise=0.3, drift=0.5, names=("up", "down")),
    "noise": Source(n_features=3, n_values=8, noise=1.0, n_classes=3, names=MIXED_NAMES),
}

# alpha, beta, k + 1, h, and epsilons of the paper's rule that carry the guarantee.
LIMITS = [
    {},
    {"max_gap": 0.02, "min_impurity": 0.05, "max_depth": 6},
    {"max_gap": 0.3, "min_impurity": 0.2, "min_samples_split": 3},
    {"max_gap": 1.0, "min_impurity": 0.5, "max_depth": 2},
    {"max_gap": 0.05, "min_impurity": 0.0, "min_samples_split": 8},
    {"max_gap": 0.15, "min_impurity": 0.32, "min_samples_split": 5, "max_depth": 1},
    {"max_gap": 0.3, "min_impurity": 0.5, "epsilon": 0.09},
    {"max_gap": 0.1, "min_impurity": 0.25, "min_samples_split": 4, "epsilon": 0.045},
    {"max_gap": 1.0, "min_impurity": 1.0, "epsilon": 0.19},
    {"max_gap": 0.1, "min_impurity": 0.01, "max_depth": 4, "epsilon": 0.0},
]


def runs() -> list[Run]:
    """Every source under every stream; the limits and sizes take turns, so that all pairs meet."""
    plan = []
    pairs = itertools.product(range(ROUNDS), SOURCES, STREAMS)
    for seed, (turn, source, stream) in enumerate(pairs):
        for limits in (LIMITS[seed % 10], LIMITS[(3 * seed + 5 * turn + 7) % 10]):
            n_most = (20, 50, 90, 150)[(seed + len(plan)) % 4]
            plan.append(Run(stream, SOURCES[source], limits, 3_000, n_most, source, len(plan)))
    for turn in range(ROUNDS):
        plan.extend(larger_runs(seed=1_000_000 + 100 * turn))
    return plan


def larger_runs(seed: int) -> list[Run]:
    """Fewer requests on more rows: an audit costs more than n."""
    medium = [
        Run(stream, SOURCES[source], LIMITS[limits], 2_000, 300, source, seed + limits)
        for stream, source, limits in [
            ("sliding", "mixed", 0),
            ("random", "missing", 2),
            ("incremental", "few values", 1),
            ("batches", "categorical", 4),
            ("sliding", "noise", 6),
            ("random", "real", 7),
        ]
    ]
    six_classes = replace(SOURCES["missing"], n_classes=6)
    long_lived = replace(SOURCES["mixed"], class_life=900)
    large = [
        Run("batches", six_classes, LIMITS[0], 400, 2_000, "", seed + 20),
        Run("incremental", long_lived, LIMITS[0], 1_600, 1_500, "", seed + 21),
        Run("sliding", SOURCES["categorical"], LIMITS[2], 2_000, 900, "", seed + 22),
    ]
    return medium + large


RUNS = runs()


def name(run: Run) -> str:
    return f"{run.seed}-{run.stream}-{run.name or 'large'}-{run.n_most}"


def test_the_plan_adds_up():
    assert sum(run.length for run in RUNS) >= N_AUDITS_LEAST
    for limits in LIMITS:
        used = {run.stream for run in RUNS if run.options == limits}
        assert len(used) >= 3, (limits, used)
    assert any(run.n_most == 2_000 for run in RUNS)
    assert len({run.seed for run in RUNS}) == len(RUNS)


@pytest.mark.parametrize("run", RUNS, ids=name)
def test_certified_after_every_request(run: Run):
    subject = run.go()
    assert subject.tree.certified, run
    assert subject.audits == subject.requests == run.length, subject.where()
    subject.check_rebuilt(one_by_one=run.seed % 2 == 0)


def test_classes_appear_and_vanish_in_these_runs():
    """The sources do what the runs rely on: after a while all first classes are gone."""
    run = Run("sliding", SOURCES["few values"], {}, 2_000, 60, "few values", seed=5)
    first, last = set(), set()
    subject = run.go()
    example = run.source.examples(subject.seed)
    first = {example()[1] for _ in range(60)}
    last = {y for _, y in subject.active.values()}
    assert len(first) == 3, subject.where()
    assert first.isdisjoint(last) or len(first | last) > 3, (subject.where(), first, last)
    assert set(subject.tree.nodes()[0]["counts"]) == last, subject.where()
