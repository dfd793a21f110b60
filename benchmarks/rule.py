"""How fast is the paper's own rule? Against a plain C++ version that sorts anew at every node.

Both insert the same stream by the rule of Algorithm 1, epsilon=0.5, max_depth=10, min_impurity=0,
and must do the same: rebuild as often and as many rows, end with as many nodes, and label every row
alike before it comes in. Ours is driven row by row from Python, the plain one is all C++.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from data import Data, available, write_stream
from measure import Options, best_seconds, finish, progress, timed, tree_of
from report import Row, main

if TYPE_CHECKING:
    from evertree import EverTree

SETS = ("Electricity", "Weather", "INSECTS", "Covertype")
ROWS = 100_000  # of Covertype; the plain version would take minutes for all
EPSILON, MAX_DEPTH = 0.5, 10
SOURCE = Path(__file__).parent / "plain" / "plain.cpp"
# As the core is compiled: see CMakeLists.txt.
COMPILE = ["g++", "-std=c++20", "-O3", "-ffp-contract=off", "-fno-fast-math"]


def ask(options: Options) -> Iterator[Row]:
    """Compare every set."""
    with tempfile.TemporaryDirectory() as folder:
        for data in available(*SETS, quick=options.quick):
            progress(f"rule: {data.name}")
            yield against_plain(options, data.first(ROWS), Path(folder))


def against_plain(options: Options, data: Data, folder: Path) -> Row:
    """Time the insertions of a stream, after a pass that checks that both do the same."""
    setting = f"ε={EPSILON}, depth {MAX_DEPTH}, {len(data)} rows"
    if not shutil.which("g++"):
        return Row(data.name, setting, {}, "rows/s", note="g++ is not installed here")
    command = plain_command(data, folder)
    work = check_equal(data, command, folder / "predictions")
    jobs: dict[str, Callable[[], float]] = {
        "evertree": _insertions(data),
        "plain": lambda: float(_answer(command)["seconds"]),
    }
    seconds = best_seconds(options, jobs)
    return Row(
        data.name,
        setting,
        {name: work["rows_rebuilt"] / each for name, each in seconds.items()},
        "rows/s",
        figure=seconds["plain"] / seconds["evertree"],
        at_least=5,
        note=f"{work['rows_rebuilt']} rows in {work['rebuilds']} rebuilds, {work['nodes']} nodes, "
        "and all labels equal on both sides",
    )


def plain_command(data: Data, folder: Path) -> list[str]:
    """Compile the plain version and write the stream down for it; return how it is called."""
    plain, stream = folder / "plain", folder / "stream"
    if not plain.exists():
        subprocess.run([*COMPILE, "-o", str(plain), str(SOURCE)], check=True)
    write_stream(stream, data.X, data.positive)
    return [str(plain), str(stream), str(EPSILON), str(MAX_DEPTH)]


def check_equal(data: Data, command: list[str], predictions: Path) -> dict[str, int]:
    """Run both with labels; return the work. It must be the same, and so must all labels."""
    answer = _answer([*command, str(predictions)])
    tree = _tree(data)
    labels = [False]
    tree.insert(data.X[0], bool(data.positive[0]))
    for x, y in zip(data.X[1:], data.positive[1:].tolist(), strict=True):
        labels.append(tree.label(x))
        tree.insert(x, y)
    stats = tree.stats()
    for what in ("rebuilds", "rows_rebuilt", "nodes"):
        if stats[what] != answer[what]:
            raise AssertionError(f"{data.name}: {what} {stats[what]}, plain {answer[what]}")
    differ = np.flatnonzero(np.fromfile(predictions, dtype=np.int8) != np.array(labels))
    if differ.size:
        raise AssertionError(f"{data.name}: plain labels row {differ[0]} otherwise")
    return stats


def _insertions(data: Data) -> Callable[[], float]:
    rows, labels = list(data.X), data.positive.tolist()

    def insert_all() -> None:
        tree = _tree(data)
        for x, y in zip(rows, labels, strict=True):
            tree.insert(x, y)
        finish(tree, data.X)

    return timed(insert_all)


def _tree(data: Data) -> EverTree:
    return tree_of(data.n_features, epsilon=EPSILON, max_depth=MAX_DEPTH, min_impurity=0.0)


def _answer(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    main("rule", ask)
