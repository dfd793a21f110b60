"""How time is taken: everyone does the same job in turn, and each one's best time counts.

Other programs disturb a machine for seconds at a time. Taking turns lets the noise hit all sides
alike, and the fastest of a few repetitions is the one that was disturbed least. What works in one
thread is timed by what it used of the processor, which waiting for others does not add to. Times of
different runs are not comparable; ratios within one run are.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

# One thread on both sides. Read when numpy and scikit-learn are imported, so it stands first.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from evertree import EverTree  # noqa: E402

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from evertree import AdaptiveTree

T = TypeVar("T")
ENOUGH_SECONDS = 20.0  # after two rounds, long comparisons get no further one
FEW_SECONDS = 4.0  # up to here, short ones go on: other people's load hits them harder


@dataclass(frozen=True)
class Options:
    """What a run is asked to do: `quick` for a look, `long` for what takes hours."""

    quick: bool
    long: bool
    results: Path

    @property
    def rounds(self) -> int:
        """How often each side repeats its job at least."""
        return 1 if self.quick else 5


def tree_of(n_features: int, *, jobs: int = 1, **parameters: Any) -> EverTree:
    """Make a tree that works in one thread, unless more are asked for."""
    return EverTree(n_features, n_jobs=jobs, **parameters)


def finish(tree: EverTree | AdaptiveTree, X: npt.NDArray[np.float64]) -> None:
    """Have all that was put off built: whoever asks for many labels does."""
    tree.label_many(X[:1])


def has(package: str) -> bool:
    """Tell whether a peer is installed here."""
    return find_spec(package) is not None


def timed(
    job: Callable[[], object], clock: Callable[[], float] = time.process_time
) -> Callable[[], float]:
    """Make a job that answers with its seconds of CPU time, or of another clock."""

    def run() -> float:
        start = clock()
        job()
        return clock() - start

    return run


def fastest(
    options: Options, jobs: Mapping[str, Callable[[], T]], seconds: Callable[[T], float]
) -> dict[str, T]:
    """Let the jobs take turns; return each one's answer of its fastest repetition."""
    best: dict[str, T] = {}
    start = time.perf_counter()
    for done in itertools.count():
        passed = time.perf_counter() - start
        if done >= 2 and passed > ENOUGH_SECONDS:
            break
        if done >= options.rounds and (options.quick or passed > FEW_SECONDS):
            break
        for name, job in jobs.items():
            answer = job()
            if name not in best or seconds(answer) < seconds(best[name]):
                best[name] = answer
    return best


def best_seconds(options: Options, jobs: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Return the fewest seconds of each job, which answers with its seconds."""
    return fastest(options, jobs, float)


def progress(text: str) -> None:
    """Say on stderr what is being done now."""
    print(f"  {time.strftime('%H:%M:%S')} {text} ...", file=sys.stderr, flush=True)


def growth_exponent(sizes: list[float], costs: list[float]) -> float:
    """Fit cost = c · (log n)^p by least squares; return p."""
    x = [math.log(math.log(n)) for n in sizes]
    y = [math.log(cost) for cost in costs]
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True))
    return covariance / sum((a - x_mean) ** 2 for a in x)
