"""How fast is a stream, row by row from Python? Against the EFDT of MOA and of river.

Each row is labelled, then inserted. The paper's two classes, evertree with its defaults, MOA over
all rows with each of three grace periods (the fastest one counts), river over the first rows
because it needs about a millisecond a row. What evertree has put off is built before its clock
stops. Both peers get their rows in their own form before the clock starts, and MOA's virtual
machine is warm: it has learned the same stream, over and over, for four seconds. What the figure
would be in its first pass is told beside it. On the smaller sets evertree's turn is over in a
moment, and so is repeated for a second: whatever else the machine does then counts less. Where a
set has more classes, MOA is asked again with all of them; the targets are for two.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from data import Data, available, write_stream
from measure import Options, fastest, finish, has, progress, tree_of
from peers import moa
from peers.moa import Run
from report import Row, main

SETS = ("Electricity", "Weather", "INSECTS", "Covertype")
GRACE_PERIODS = (100, 500, 1000)
RIVER_ROWS = 3_000
TURN_SECONDS = 1.0

Labels: TypeAlias = npt.NDArray[np.bool_] | npt.NDArray[np.int64]


def ask(options: Options) -> Iterator[Row]:
    """Compare every set with both peers."""
    for data in available(*SETS, quick=options.quick):
        progress(f"stream: {data.name}, MOA")
        yield from against_moa(options, data, data.positive)
        if data.y.max() > 1:
            progress(f"stream: {data.name}, MOA, all classes")
            yield from against_moa(options, data, data.y)
        progress(f"stream: {data.name}, river")
        yield against_river(options, data.first(300 if options.quick else RIVER_ROWS))


def against_moa(options: Options, data: Data, labels: Labels) -> Iterator[Row]:
    """Time all rows, MOA warm and in its first pass. Without MOA the row says so."""
    ours = partial(run_evertree, data, labels)
    jobs: dict[str, Callable[[], Run]] = {"evertree": ours if options.quick else repeated(ours)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stream"
        if moa.is_installed():
            write_stream(file, data.X, labels)
            warm_up_seconds = 0.3 if options.quick else 4.0
            for grace in GRACE_PERIODS:
                learner = f"trees.EFDT -g {grace}"
                jobs[f"MOA -g {grace}"] = partial(moa.run, file, learner, warm_up_seconds)
        runs = fastest(options, jobs, _cpu)
    yield _row(data, labels, "MOA EFDT", runs, at_least=5, otherwise=moa.HOW_TO_GET_IT)
    if len(runs) > 1:
        yield _first_pass(data, labels, runs)


def _first_pass(data: Data, labels: Labels, runs: dict[str, Run]) -> Row:
    """Take MOA as it starts, with all that its virtual machine does: a stream comes only once."""
    ours, *theirs = runs.values()
    seconds = {"evertree": _cpu(ours)} | {
        name: run.cold_all_seconds for name, run in runs.items() if run.cold_all_seconds is not None
    }
    cold = [run.cold_all_seconds for run in theirs if run.cold_all_seconds is not None]
    return Row(
        data.name,
        f"MOA EFDT, first pass, all threads, {_how_many(labels)}",
        {name: each / (len(data) - 1) for name, each in seconds.items()},
        "s",
        figure=min(cold) / _cpu(ours),
        at_least=_for_two_classes(labels, 5),
        note="a fresh virtual machine, with the CPU time of its compiler and collector",
    )


def against_river(options: Options, data: Data) -> Row:
    """Time the first rows."""
    jobs = {"evertree": partial(run_evertree, data, data.positive)}
    if has("river"):
        jobs["river"] = partial(run_river, data)
    runs = fastest(options, jobs, _cpu)
    missing = "river is not installed here"
    return _row(data, data.positive, "river EFDT", runs, at_least=100, otherwise=missing)


def run_evertree(data: Data, labels: Labels) -> Run:
    """Label and insert every row but the first, which an empty tree cannot label."""
    tree = tree_of(data.n_features)
    at_the_end = partial(finish, tree, data.X)
    return test_then_train(tree.label, tree.insert, list(data.X), labels.tolist(), at_the_end)


def repeated(job: Callable[[], Run]) -> Callable[[], Run]:
    """Make a job of a shorter one, over and over; its run in the middle counts."""

    def run() -> Run:
        start, runs = time.perf_counter(), [job()]
        while time.perf_counter() - start < TURN_SECONDS:
            runs.append(job())
        return sorted(runs, key=_cpu)[len(runs) // 2]

    return run


def run_river(data: Data) -> Run:
    """Do the same with river, which wants a dict for a row."""
    from river.tree import ExtremelyFastDecisionTreeClassifier  # noqa: PLC0415 - where installed

    model: Any = ExtremelyFastDecisionTreeClassifier()
    rows = [dict(enumerate(x)) for x in data.X.tolist()]
    return test_then_train(model.predict_one, model.learn_one, rows, data.positive.tolist(), None)


def test_then_train(
    label: Callable[[Any], Any],
    learn: Callable[[Any, Any], Any],
    rows: list[Any],
    labels: list[Any],
    at_the_end: Callable[[], None] | None,
) -> Run:
    """Let any model label and learn every row but the first, which it only learns."""
    learn(rows[0], labels[0])
    predictions = [labels[0]]
    cpu, wall = time.process_time(), time.perf_counter()
    for x, y in zip(rows[1:], labels[1:], strict=True):
        predictions.append(label(x))
        learn(x, y)
    if at_the_end is not None:
        at_the_end()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Run(wall, cpu, np.array(predictions, dtype=np.int8))


def accuracy(truth: Labels, predictions: npt.NDArray[np.int8]) -> float:
    """Tell the share of rows, after the first, that were labelled right."""
    return float(np.mean(truth[1:] == predictions[1:]))


def f1(truth: npt.NDArray[np.bool_], predictions: npt.NDArray[np.int8]) -> float:
    """F1 of the positive class, after the first row; 0 where it never occurs."""
    is_positive, said_positive = truth[1:], predictions[1:] == 1
    both = np.sum(is_positive & said_positive)
    return float(2 * both / max(1, np.sum(is_positive) + np.sum(said_positive)))


def _row(
    data: Data,
    labels: Labels,
    peer: str,
    runs: dict[str, Run],
    at_least: float,
    otherwise: str,
) -> Row:
    ours, *theirs = runs.values()
    quality = [f"{name} {_quality(labels, run)}" for name, run in runs.items()]
    return Row(
        data.name,
        f"{peer}, {_how_many(labels)}",
        {name: _cpu(run) / (len(data) - 1) for name, run in runs.items()},
        "s",
        figure=min(map(_cpu, theirs)) / _cpu(ours) if theirs else None,
        at_least=_for_two_classes(labels, at_least),
        note="; ".join([*quality, *(_other_clocks(ours, theirs) if theirs else [otherwise])]),
    )


def _quality(labels: Labels, run: Run) -> str:
    right = f"accuracy {accuracy(labels, run.predictions):.3f}"
    if labels.dtype != np.bool_:
        return right
    return f"{right} F1 {f1(labels.astype(np.bool_), run.predictions):.3f}"


def _how_many(labels: Labels) -> str:
    classes = "" if labels.dtype == np.bool_ else f"all {labels.max() + 1} classes, "
    return f"{classes}{len(labels)} rows"


def _for_two_classes(labels: Labels, at_least: float) -> float | None:
    return at_least if labels.dtype == np.bool_ else None


def _other_clocks(ours: Run, theirs: list[Run]) -> Iterator[str]:
    """Say what the figure would be with another clock."""
    yield f"by wall time {min(run.wall_seconds for run in theirs) / ours.wall_seconds:.3g}×"
    cold = [run.cold_cpu_seconds for run in theirs if run.cold_cpu_seconds is not None]
    if cold:
        yield f"in MOA's first pass, its virtual machine cold, {min(cold) / _cpu(ours):.3g}×"


def _cpu(run: Run) -> float:
    return run.cpu_seconds


if __name__ == "__main__":
    main("stream", ask)
