"""Speed as ratios within one run: every peer does the same job on the same rows in this process.

`make bench` prints the table and keeps it in benchmarks/results with machine and commit. Times of
different runs are not comparable; ratios of one run are. Each time is the best of a few.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
from data import Data, available
from river.tree import ExtremelyFastDecisionTreeClassifier
from sklearn.tree import DecisionTreeClassifier

import evertree
from evertree import EverTree

RESULTS = Path(__file__).parent / "results"
RIVER_ROWS = 6_000  # river needs half a millisecond a row; its cost grows with the tree


def best_of(repetitions: int, job: Callable[[], object]) -> float:
    """Seconds of the fastest repetition."""
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        job()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def bench_build(data: Data, max_depth: int | None) -> dict[str, object]:
    """Time Build against scikit-learn's exact tree: same rows, same depth, one thread each."""
    tree = EverTree(data.X.shape[1], min_impurity=0.0, max_depth=max_depth)
    tree.insert_many(data.X, data.y)
    ours = best_of(5, tree.rebuild)
    peer = DecisionTreeClassifier(max_depth=max_depth, random_state=0)
    theirs = best_of(3, lambda: peer.fit(data.X, data.y))
    return {
        "what": "build",
        "data": data.name,
        "setting": f"depth {max_depth or 'unlimited'}",
        "ours": f"{ours * 1e3:.1f} ms",
        "peer": f"scikit-learn {theirs * 1e3:.0f} ms",
        "ratio": theirs / ours,
        "note": f"nodes {tree.stats()['nodes']} / {peer.tree_.node_count}",
    }


def stream_evertree(data: Data, n: int) -> tuple[float, float]:
    """Label, then insert, row by row, with the defaults: seconds a row, and accuracy."""
    tree = EverTree(data.X.shape[1])
    rows, labels = list(data.X[:n]), data.positive[:n].tolist()
    tree.insert(rows[0], labels[0])
    right = 0
    start = time.perf_counter()
    for x, y in zip(rows[1:], labels[1:], strict=True):
        right += tree.label(x) == y
        tree.insert(x, y)
    return (time.perf_counter() - start) / (n - 1), right / (n - 1)


def stream_river(data: Data, n: int) -> tuple[float, float]:
    """Run river's EFDT over the same rows as dicts, made beforehand."""
    model = ExtremelyFastDecisionTreeClassifier()
    rows = [dict(enumerate(x)) for x in data.X[:n].tolist()]
    labels = data.positive[:n].tolist()
    right = 0
    start = time.perf_counter()
    for x, y in zip(rows, labels, strict=True):
        right += model.predict_one(x) == y
        model.learn_one(x, y)
    return (time.perf_counter() - start) / n, right / n


def bench_stream(data: Data) -> dict[str, object]:
    """Time test-then-train against river's EFDT over the first rows of the stream."""
    n = min(RIVER_ROWS, len(data.X))
    ours, our_accuracy = stream_evertree(data, n)
    whole, _ = stream_evertree(data, len(data.X))
    theirs, their_accuracy = stream_river(data, n)
    return {
        "what": "label + insert",
        "data": data.name,
        "setting": f"defaults, first {n} rows",
        "ours": f"{ours * 1e6:.1f} µs",
        "peer": f"river EFDT {theirs * 1e6:.0f} µs",
        "ratio": theirs / ours,
        "note": (
            f"accuracy {our_accuracy:.3f} / {their_accuracy:.3f}; "
            f"all {len(data.X)} rows: {whole * 1e6:.1f} µs"
        ),
    }


def commit() -> str:
    """Name the commit that is measured."""
    git = ["git", "describe", "--always", "--dirty"]
    answer = subprocess.run(git, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"


def main() -> None:
    """Run everything, print the table, keep the result."""
    rows: list[dict[str, object]] = []
    print(f"{'what':15} {'data':12} {'setting':26} {'evertree':>10} {'peer':>24} {'ratio':>7}")
    jobs: list[Callable[[], dict[str, object]]] = []
    for data in available("Electricity", "Weather", "INSECTS"):
        jobs += [lambda d=data, h=h: bench_build(d, h) for h in (10, None)]  # type: ignore[misc]
    jobs += [lambda d=d: bench_stream(d) for d in available("Electricity")]  # type: ignore[misc]
    for job in jobs:
        row = job()
        rows.append(row)
        print(
            f"{row['what']:15} {row['data']:12} {row['setting']:26} {row['ours']:>10} "
            f"{row['peer']:>24} {row['ratio']:6.1f}x  {row['note']}",
            flush=True,
        )
    RESULTS.mkdir(exist_ok=True)
    result = {
        "commit": commit(),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        "versions": {"evertree": evertree.__version__, "numpy": np.__version__},
        "rows": rows,
    }
    (RESULTS / "bench.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    print(f"kept in {RESULTS / 'bench.json'}", file=sys.stderr)


if __name__ == "__main__":
    main()
