"""One run: a learner over a data set in an input model, as a record of plain numbers.

A record has the four counts of label 1 (so the F1 of either class follows), seconds of building,
learning and labelling, and how many updates there were. Seconds are of the learner's calls alone:
what feeds it is not counted. MOA's are of its one pass, in a virtual machine that has just started,
without its start and without reading.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeClassifier

from data import write_stream
from evertree import AdaptiveTree, EverTree
from evertree.evaluate import MajorityClass, NoChange, prequential
from evertree.streams import (
    InputModel,
    Insert,
    InsertMany,
    Label,
    from_arrays,
    incremental,
    random_update,
    sliding_window,
)
from peers import moa

if TYPE_CHECKING:
    from experiments.data import Data

Learner: TypeAlias = Literal[
    "paper", "certified", "adaptive", "scikit-learn", "EFDT", "HAT", "no change", "majority"
]
Record: TypeAlias = dict[str, Any]
MOA_LEARNERS = {"EFDT": "trees.EFDT", "HAT": "trees.HoeffdingAdaptiveTree"}
SEED = 1


@dataclass(frozen=True)
class Job:
    """What is run. `value` is ε (paper, scikit-learn), β (certified) or the grace period (MOA)."""

    data: str
    stream: Literal["incremental", "window", "random"]
    W: int
    learner: Learner
    value: float | None = None
    depth: int | None = 10

    def __str__(self) -> str:
        value = "" if self.value is None else f" {self.value:g}"
        return f"{self.data} · {self.stream} {self.W} · {self.learner}{value}"


def run(job: Job, data: Data) -> Record:
    """Do one run."""
    if job.learner in MOA_LEARNERS:
        return _run_moa(job, data)
    if job.learner == "scikit-learn":
        return _run_refitted(job, data)
    return _run_model(job, data)


def input_model(job: Job) -> InputModel:
    """Give the input model of a job; each builds the first W examples first."""
    if job.stream == "incremental":
        return incremental(job.W)
    if job.stream == "window":
        return sliding_window(job.W)
    return random_update(0.5, SEED, job.W)


# --- what is a model already


def _run_model(job: Job, data: Data) -> Record:
    model = _model(job, data)
    stream = input_model(job)(from_arrays(data.X, data.y.tolist(), categorical=data.categorical))
    result = prequential(stream, model, every=len(data), progress=False)
    pairs = result.confusion.counts
    times = {"build": result.build_s, "learn": result.learn_s, "label": result.label_s}
    said = [sum(pairs[truth, answer] for truth in (True, False)) for answer in (True, False)]
    was = [sum(n for (truth, _), n in pairs.items() if truth is each) for each in (True, False)]
    both = pairs[True, True]
    counts = {"tp": both, "fp": said[0] - both, "fn": was[0] - both, "judged": result.examples}
    stats = model.stats() if isinstance(model, EverTree) else {}
    return {"counts": counts, "seconds": times, "updates": result.updates, "stats": stats}


def _model(job: Job, data: Data) -> Any:
    if job.learner == "no change":
        return NoChange()
    if job.learner == "majority":
        return MajorityClass()
    shape = {"n_features": data.X.shape[1], "categorical": data.categorical}
    if job.learner == "paper":
        # The paper's own setting, α = β = 0 and k = 1. β plays no part in this rule.
        return EverTree(**shape, epsilon=job.value, min_impurity=0.0, max_depth=job.depth)
    if job.learner == "adaptive":
        return AdaptiveTree(**shape)
    return EverTree(**shape, max_gap=job.value or 0.0, max_depth=job.depth)


# --- scikit-learn


def _run_refitted(job: Job, data: Data) -> Record:
    """Fit anew when more than ε·s updates have come since a fit to s examples, as at the root.

    Between two fits the answers do not change, so they are asked for together: one at a time,
    scikit-learn would need a hundred times as long.
    """
    refitted = _Refitted(job, data)
    # A row is named by its place: nothing else is needed to know which rows are in.
    requests: Any = input_model(job)(zip(range(len(data)), data.y.tolist(), strict=True))
    for request in requests:
        if isinstance(request, Label):
            refitted.asked.append(int(request.x))  # type: ignore[arg-type]  # a place
        elif isinstance(request, InsertMany):
            refitted.active = dict.fromkeys(request.X)
            refitted.fit()
        else:
            refitted.update(request.x, isinstance(request, Insert))
    refitted.answer()
    return refitted.record()


class _Refitted:
    def __init__(self, job: Job, data: Data) -> None:
        self.epsilon = job.value or 0.0
        self.data = data
        self.tree = DecisionTreeClassifier(max_depth=job.depth, random_state=0)
        self.active: dict[Any, None] = {}
        self.asked: list[int] = []  # and not answered yet
        self.places: list[int] = []
        self.answers: list[npt.NDArray[np.bool_]] = []
        self.seconds = {"build": 0.0, "learn": 0.0, "label": 0.0}
        self.updates = self.since = self.fits = 0
        self.limit = 0.0

    def update(self, place: int, is_insertion: bool) -> None:
        if is_insertion:
            self.active[place] = None
        else:
            del self.active[place]
        self.updates += 1
        self.since += 1
        if self.since > self.limit and self.active:
            self.answer()
            self.fit()

    def fit(self) -> None:
        start = time.perf_counter()
        rows = np.fromiter(self.active, dtype=np.intp, count=len(self.active))
        self.tree.fit(self.data.X[rows], self.data.y[rows])
        self.seconds["learn" if self.fits else "build"] += time.perf_counter() - start
        self.fits += 1
        self.since = 0
        self.limit = self.epsilon * len(rows)

    def answer(self) -> None:
        if self.asked:
            start = time.perf_counter()
            self.answers.append(self.tree.predict(self.data.X[self.asked]))
            self.seconds["label"] += time.perf_counter() - start
            self.places += self.asked
            self.asked.clear()

    def record(self) -> Record:
        counts = count(self.data.y[self.places], np.concatenate(self.answers))
        stats = {"fits": self.fits}
        return {
            "counts": counts,
            "seconds": self.seconds,
            "updates": self.updates,
            "stats": stats,
        }


# --- MOA


def _run_moa(job: Job, data: Data) -> Record:
    """Let MOA label and learn every row; the first W are learned, and not judged."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stream"
        write_stream(file, data.X, data.y, data.categories)
        found = moa.run(file, f"{MOA_LEARNERS[job.learner]} -g {job.value:.0f}", 0.0)
    # Its one clock is of labelling and learning together.
    seconds = {"build": 0.0, "learn": found.wall_seconds, "label": 0.0}
    counts = count(data.y[job.W :], found.predictions[job.W :] == 1)
    return {"counts": counts, "seconds": seconds, "updates": len(data), "stats": {}}


# --- figures of a record


def count(truth: npt.NDArray[np.bool_], said: npt.NDArray[np.bool_]) -> dict[str, int]:
    """Count answers: both, said only, was only, and all."""
    return {
        "tp": int(np.sum(truth & said)),
        "fp": int(np.sum(~truth & said)),
        "fn": int(np.sum(truth & ~said)),
        "judged": len(truth),
    }


def f1(record: Record) -> float:
    """F1 of label 1, in percent."""
    counts = record["counts"]
    return _f1(counts["tp"], counts["fp"] + counts["fn"])


def f1_of_the_other(record: Record) -> float:
    """F1 of label 0, in percent: what it would be if the other class were called 1."""
    counts = record["counts"]
    wrong = counts["fp"] + counts["fn"]
    return _f1(counts["judged"] - counts["tp"] - wrong, wrong)


def _f1(both: int, wrong: int) -> float:
    return 200 * both / max(1, 2 * both + wrong)


def seconds(record: Record) -> float:
    """Total seconds: building, learning and labelling."""
    return float(sum(record["seconds"].values()))


def ms_per_update(record: Record) -> float:
    """Milliseconds per insertion or deletion after the first batch."""
    return float(1000 * record["seconds"]["learn"] / max(1, record["updates"]))


def best(records: Iterable[Record]) -> Record | None:
    """Give the record with the highest F1, of equals the first."""
    return max(records, key=f1, default=None)
