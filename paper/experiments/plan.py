"""Which runs the tables and figures are made of, with the paper's parameters.

α = β = 0, k = 1, h = 10 (h = 5 beside it in the tables); the first W rows are built, W = 100 for
Electricity with deletions and 1,000 otherwise; p = 1/2; ε in [0, 2]; grace periods 100, 500, 1,000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from experiments.published import EPSILON, GRACE_PERIODS, TABLE_2
from experiments.runs import Job, Learner

TABLE_SETS = (
    "Electricity",
    "Forest Covertype",
    "INSECTS v2",
    "KDDCUP99",
    "NOAA Weather",
    "Poker",
    "Poker, 98k real rows",
)
FIGURE_SETS = TABLE_SETS[:-1]
W = 1000
BETAS = (0.05, 0.1, 0.2)
EPSILONS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)
WINDOW_DEPTHS = (10, 5, 4)  # 4 is h = 5 if h counts the vertices of a path, as it may
REFIT_EPSILONS = (0.1, 0.3, 1.0)  # scikit-learn is fitted on these schedules
TUNING = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)  # for Table 2: ε at EFDT's time


@dataclass(frozen=True)
class Extent:
    """How much is run: everything, or a look."""

    rows: int | None = None
    epsilons: tuple[float, ...] = EPSILONS
    refit_epsilons: tuple[float, ...] = REFIT_EPSILONS
    tuning: tuple[float, ...] = TUNING
    moa_sets: tuple[str, ...] = TABLE_SETS


FULL = Extent()
QUICK = Extent(
    rows=1_400,
    epsilons=(0.0, 0.1, 0.5, 1.0),
    refit_epsilons=(0.3, 1.0),
    tuning=(0.1, 0.5),
    moa_sets=("Electricity",),
)


def window_of(data: str) -> int:
    """W of the models with deletions."""
    return 100 if data == "Electricity" else W


def jobs(extent: Extent, here: list[str]) -> list[Job]:
    """List every run, each once, for the sets that are here."""
    every = [
        job for data in here for job in (*table_jobs(extent, data), *figure_jobs(extent, data))
    ]
    return list(dict.fromkeys(every))


def table_jobs(extent: Extent, data: str) -> Iterator[Job]:
    """List the runs of the incremental model, and some with a window that explain them."""
    if data in extent.moa_sets:
        for grace in GRACE_PERIODS:
            yield incremental(data, "EFDT", grace)
            yield incremental(data, "HAT", grace)
    yield incremental(data, "no change")
    yield incremental(data, "majority")
    for epsilon in sorted({EPSILON, tuned_by_the_paper(data)}):
        yield incremental(data, "paper", epsilon)
        yield incremental(data, "paper", epsilon, depth=5)
        yield incremental(data, "scikit-learn", epsilon)
    for epsilon in extent.tuning:
        yield incremental(data, "paper", epsilon)
    for beta in BETAS:
        yield incremental(data, "certified", beta)
    yield incremental(data, "certified", 0.1, depth=None)
    yield incremental(data, "adaptive", depth=None)
    for depth in WINDOW_DEPTHS:
        yield Job(data, "window", W, "paper", EPSILON, depth)


def figure_jobs(extent: Extent, data: str) -> Iterator[Job]:
    """List the runs with deletions."""
    if data not in FIGURE_SETS:
        return
    for stream in ("window", "random"):
        for epsilon in extent.epsilons:
            yield dynamic(data, stream, "paper", epsilon)
        for epsilon in extent.refit_epsilons:
            yield dynamic(data, stream, "scikit-learn", epsilon)
        for beta in BETAS:
            yield dynamic(data, stream, "certified", beta)
        yield dynamic(data, stream, "no change")
        yield dynamic(data, stream, "majority")


def tuned_by_the_paper(data: str) -> float:
    """Give the ε that Table 2 prints; a part of Poker takes Poker's."""
    return TABLE_2[data.partition(",")[0]].epsilon


def incremental(
    data: str, learner: Learner, value: float | None = None, depth: int | None = 10
) -> Job:
    """Make a job of the incremental model."""
    return Job(data, "incremental", W, learner, value, depth)


def dynamic(data: str, stream: str, learner: Learner, value: float | None = None) -> Job:
    """Make a job of a model with deletions: "window" or "random"."""
    return Job(data, "window" if stream == "window" else "random", window_of(data), learner, value)


# --- what a run will take


# Microseconds of Build for W rows at depth 10, roughly: long runs are started first.
_BUILD_US = {
    "Electricity": 15.0,
    "Forest Covertype": 700.0,
    "INSECTS v2": 650.0,
    "KDDCUP99": 60.0,
    "NOAA Weather": 330.0,
    "Poker": 180.0,
    "Poker, 98k real rows": 180.0,
}


def expected_seconds(job: Job, rows: int) -> float:
    """Guess how long a run takes. Only the order of the runs and the time left depend on it."""
    build = _BUILD_US[job.data]
    updates = 2 if job.stream == "window" else 1
    if job.learner in {"EFDT", "HAT"}:
        return 2 + rows * (15 + build / 30) / 1e6
    if job.learner in {"no change", "majority"}:
        return 0.1 + rows * 2 / 1e6
    if job.stream == "incremental":
        share = job.value if job.learner == "paper" and job.value else 0.3
        per_row = 4 + build / 100 / share if job.learner != "scikit-learn" else 3 + build / 50
        return 0.1 + rows * per_row / 1e6
    if job.learner == "scikit-learn":
        fit = 1000 + 8 * build
        return 0.1 + rows * (5 + updates * fit / (1 + (job.value or 0) * job.W)) / 1e6
    share = (job.value or 0) if job.learner == "paper" else 0.1
    return 0.1 + rows * (4 + updates * (1 + 2 * build / (1 + share * job.W))) / 1e6
