"""What does a batch save? insert_many of 1,000 rows into 100,000, against the same one by one.

Ten batches follow each other in the order of the stream, into two trees with the same start, so
that the repairs that are due now and then are part of both sides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from data import Data, available, synthetic
from measure import Options, best_seconds, finish, progress, tree_of
from report import Row, main

if TYPE_CHECKING:
    from evertree import EverTree

SETS = ("Poker (surrogate)", "KDD99", "Covertype")
BATCHES = 10


def ask(options: Options) -> Iterator[Row]:
    """Compare on the sets that are large enough, and on the synthetic stream."""
    n_first, n_batch = (3_000, 100) if options.quick else (100_000, 1_000)
    n = n_first + BATCHES * n_batch
    large = (data.first(n) for data in available(*SETS) if len(data) >= n)
    for data in chain([] if options.quick else large, [synthetic(n)]):
        progress(f"batches: {data.name}")
        yield batch_against_single(options, data, n_first, n_batch)


def batch_against_single(options: Options, data: Data, n_first: int, n_batch: int) -> Row:
    """Time the same rows both ways; off the clock, each repetition fills its own tree."""
    jobs = {
        "insert_many": partial(_seconds, data, n_first, n_batch, _as_batch),
        "one by one": partial(_seconds, data, n_first, n_batch, _one_by_one),
    }
    seconds = best_seconds(options, jobs)
    work = [_rebuilt(data, n_first, n_batch, insert) for insert in (_as_batch, _one_by_one)]
    return Row(
        data.name,
        f"{n_batch} rows into {n_first}",
        {name: each / BATCHES for name, each in seconds.items()},
        "s",
        figure=seconds["one by one"] / seconds["insert_many"],
        at_least=10,
        note=f"rebuilt per row: {work[0]} in batches, {work[1]} one by one",
    )


def _seconds(
    data: Data, n_first: int, n_batch: int, insert: Callable[[EverTree, Data], None]
) -> float:
    tree = _filled(data, n_first)
    seconds = 0.0
    for batch in _batches(data, n_first, n_batch):
        begin = time.process_time()
        insert(tree, batch)
        finish(tree, data.X)
        seconds += time.process_time() - begin
    return seconds


def _rebuilt(
    data: Data, n_first: int, n_batch: int, insert: Callable[[EverTree, Data], None]
) -> str:
    """Count the builds and the rows in them, which both ways have to pay."""
    tree = _filled(data, n_first)
    before = tree.stats()
    for batch in _batches(data, n_first, n_batch):
        insert(tree, batch)
    after, n = tree.stats(), len(data) - n_first
    builds, rows = ((after[name] - before[name]) / n for name in ("rebuilds", "rows_rebuilt"))
    return f"{rows:.3g} rows in {builds:.2g} builds"


def _filled(data: Data, n_first: int) -> EverTree:
    tree = tree_of(data.n_features)
    tree.insert_many(data.X[:n_first], data.positive[:n_first])
    return tree


def _batches(data: Data, n_first: int, n_batch: int) -> Iterator[Data]:
    for start in range(n_first, len(data), n_batch):
        end = start + n_batch
        yield Data(data.name, data.X[start:end], data.y[start:end], data.positive[start:end])


def _as_batch(tree: EverTree, batch: Data) -> None:
    tree.insert_many(batch.X, batch.positive)


def _one_by_one(tree: EverTree, batch: Data) -> None:
    for x, y in zip(batch.X, batch.positive.tolist(), strict=True):
        tree.insert(x, y)


if __name__ == "__main__":
    main("batches", ask)
