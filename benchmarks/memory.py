"""How much memory does a tree need? Peak of the process over that of the bare interpreter.

A million rows of 20 features come from a generator, a thousand at a time, so that the input does
not count; what they weigh as float64 is the measure. Whole numbers are packed, and what that
saves may be used for rebuilds. Each question has a process of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from data import chunks
from measure import Options, progress, tree_of
from report import Row, main

FEATURES = 20


def ask(options: Options) -> Iterator[Row]:
    """Measure a stream of insertions and a full rebuild."""
    n = 20_000 if options.quick else 1_000_000
    progress("memory: row by row")
    resident, peak = _in_own_process(stream_bytes, n)
    yield _row("row by row, at the end", n, resident, 1.5)
    yield _row("row by row, peak with the rebuilds on the way", n, peak, 2.5)
    progress("memory: row by row, whole numbers")
    resident, peak = _in_own_process(partial(stream_bytes, whole=True), n)
    yield _row("row by row, whole numbers, at the end", n, resident, 1.5)
    yield _row("row by row, whole numbers, peak", n, peak, 2.5)
    progress("memory: full rebuild")
    (peak,) = _in_own_process(rebuild_peak, n)
    yield _row("full rebuild, peak", n, peak, 2.5)


def stream_bytes(n: int, whole: bool = False) -> tuple[int, int]:
    """Insert row by row; return what is held at the end, and the peak, over what was there.

    Whole numbers have up to four digits.
    """
    before = resident_bytes()
    tree = tree_of(FEATURES)
    for X, positive in chunks(n, FEATURES, drifts=False):
        rows = np.floor(1000 * X) if whole else X
        for x, y in zip(rows, positive.tolist(), strict=True):
            tree.insert(x, y)
    return resident_bytes() - before, peak_bytes() - before


def rebuild_peak(n: int) -> tuple[int]:
    """Fill the tree in batches, then rebuild it; return the peak of the rebuild."""
    before = resident_bytes()
    tree = tree_of(FEATURES)
    for X, positive in chunks(n, FEATURES, drifts=False):
        tree.insert_many(X, positive)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    tree.rebuild()
    return (peak_bytes() - before,)


def resident_bytes() -> int:
    """Return the resident size now."""
    return _status("VmRSS")


def peak_bytes() -> int:
    """Return the largest resident size so far, as Linux counts it for this program alone."""
    # Not ru_maxrss, which begins with the size of the process that started this one.
    return _status("VmHWM")


def _status(field: str) -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(rf"{field}:\s*(\d+) kB", status)
    if found is None:
        raise OSError(f"the kernel does not tell {field}: memory cannot be measured here")
    return int(found[1]) * 1024


def _in_own_process(job: Callable[[int], tuple[int, ...]], n: int) -> tuple[int, ...]:
    # spawn, not fork: a fork would begin with all that this process holds.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(job, n).result()


def _row(what: str, n: int, held: int, at_most: float) -> Row:
    raw = n * FEATURES * 8
    return Row(
        "synthetic",
        f"{what}, {n} rows of {FEATURES} features",
        {"held": held, "rows as float64": raw},
        "bytes",
        figure=held / raw,
        figure_unit="× the raw rows",
        at_most=at_most,
    )


if __name__ == "__main__":
    main("memory", ask)
