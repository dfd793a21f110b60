"""The tree that finds its own window: does it beat MOA's trees, and what does it cost.

AdaptiveTree with its defaults labels and learns row by row from Python, over whole sets with the
paper's two classes. Beside it EFDT and HAT of MOA with each of three grace periods; of F1 the best
one counts, of time the fastest EFDT. Aimed at: the F1 that a prototype of five separate trees had,
less 0.3, and the time of EFDT as its virtual machine starts. Times of that machine when it has
learned the same stream before are told beside it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from data import Data, available, write_stream
from evertree import AdaptiveTree
from measure import Options, fastest, finish, progress
from peers import moa
from report import Row, main
from stream import GRACE_PERIODS, f1, test_then_train

if TYPE_CHECKING:
    from peers.moa import Run

# F1 of the prototype, in per cent.
AIM = {
    "Electricity": 92.2,
    "Weather": 82.2,
    "INSECTS": 94.1,
    "Poker (subset)": 97.8,
    "KDD99": 100.0,
    "Covertype": 95.4,
}
LEARNERS = {"EFDT": "trees.EFDT", "HAT": "trees.HoeffdingAdaptiveTree"}


def ask(options: Options) -> Iterator[Row]:
    """Run all learners over every set."""
    for data in available(*AIM, quick=options.quick):
        progress(f"adaptive: {data.name}")
        ours = fastest(options, {"evertree": partial(run_evertree, data)}, _cpu)["evertree"]
        peers = run_moa(options, data) if moa.is_installed() else {}
        yield quality(data, ours, peers)
        yield price(data, ours, peers)


def run_evertree(data: Data) -> Run:
    """Label and insert every row but the first."""
    tree = AdaptiveTree(data.n_features)
    rows, labels = list(data.X), data.positive.tolist()
    return test_then_train(tree.label, tree.insert, rows, labels, partial(finish, tree, data.X))


def run_moa(options: Options, data: Data) -> dict[str, Run]:
    """Run both learners with all grace periods."""
    runs = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stream"
        write_stream(file, data.X, data.positive)
        for name, learner in LEARNERS.items():
            # Only EFDT's time counts, so only EFDT is warmed up.
            warm_up_seconds = 0.3 if options.quick or name != "EFDT" else 4.0
            for grace in GRACE_PERIODS:
                progress(f"adaptive: {data.name}, MOA {name} -g {grace}")
                runs[f"{name} -g {grace}"] = moa.run(file, f"{learner} -g {grace}", warm_up_seconds)
    return runs


def quality(data: Data, ours: Run, peers: dict[str, Run]) -> Row:
    """Compare F1 of class 1; no change, the label of the row before, is the peer of all."""
    found = {"evertree": 100 * f1(data.positive, ours.predictions)}
    for learner in LEARNERS if peers else ():
        runs = [run for name, run in peers.items() if name.startswith(learner)]
        found[f"MOA {learner}"] = max(100 * f1(data.positive, run.predictions) for run in runs)
    found["no change"] = 100 * f1(data.positive[1:], data.positive[:-1].astype(np.int8))
    return Row(
        data.name,
        f"F1 of class 1, {len(data)} rows",
        found,
        "%",
        figure=found["evertree"],
        figure_unit=" %",
        at_least=round(AIM[data.name] - 0.3, 1) if data.name in AIM else None,
        note=_without(peers),
    )


def price(data: Data, ours: Run, peers: dict[str, Run]) -> Row:
    """Compare the time of a row with EFDT's, its virtual machine cold and all its threads."""
    efdt = {name: run for name, run in peers.items() if name.startswith("EFDT")}
    seconds = {"evertree": ours.cpu_seconds} | {
        name: run.cold_all_seconds for name, run in efdt.items() if run.cold_all_seconds is not None
    }
    warm = min((run.cpu_seconds for run in efdt.values()), default=0.0)
    return Row(
        data.name,
        f"MOA EFDT, first pass, all threads, {len(data)} rows",
        {name: each / (len(data) - 1) for name, each in seconds.items()},
        "s",
        figure=min(list(seconds.values())[1:]) / ours.cpu_seconds if len(seconds) > 1 else None,
        at_least=1,
        note=f"warm, one thread: {warm / ours.cpu_seconds:.2g}×" if efdt else _without(peers),
    )


def _without(peers: dict[str, Run]) -> str:
    return "" if peers else moa.HOW_TO_GET_IT


def _cpu(run: Run) -> float:
    return run.cpu_seconds


if __name__ == "__main__":
    main("adaptive", ask)
