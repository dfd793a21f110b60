"""What does one call cost? label(x), insert(x, y) that rebuilds nothing, and a whole table at once.

The single calls are given in µs and as multiples of a call through the same border that does
nothing, `size()` of the core, since µs of different machines are not comparable. The loop of
Python around the calls is counted in. The table is labelled by trees of both depths against
scikit-learn's `predict`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from data import FILES, Data, available
from measure import Options, best_seconds, has, progress, timed, tree_of
from report import Row, main

if TYPE_CHECKING:
    from evertree import EverTree

GROUP = 200  # calls that are timed together: few, so that most groups rebuild nothing


def ask(options: Options) -> Iterator[Row]:
    """Time single calls on the first set, and tables on all of them."""
    for position, data in enumerate(available(*FILES, quick=options.quick)):
        if position == 0:
            progress(f"calls: {data.name}, one row")
            yield from single_calls(options, data)
        for max_depth in (10, None):
            progress(f"calls: {data.name}, label_many, depth {max_depth or 'unlimited'}")
            yield against_predict(options, data, max_depth)


def single_calls(options: Options, data: Data) -> Iterator[Row]:
    """Time label and insert on a tree of all rows, with rows that it knows.

    Several times: what disturbs a machine lasts longer than a few hundred calls.
    """
    best: dict[str, float] = {}
    for _ in range(1 if options.quick else 12):
        tree = tree_of(data.n_features)
        tree.insert_many(data.X, data.positive)
        for seed in range(20 if options.quick else 200):
            for name, seconds in _one_group(tree, data, seed).items():
                best[name] = min(best.get(name, seconds), seconds)
    yield _call_row(data, "label(x), numpy row", best["label"], best["size"], 0.6)
    yield _call_row(data, "insert(x, y), no rebuild", best["insert"], best["size"], 1.0)


def _one_group(tree: EverTree, data: Data, seed: int) -> dict[str, float]:
    """Seconds per call over a few rows; without insertions if one of them rebuilt something."""
    chosen = np.random.default_rng(seed).integers(len(data), size=GROUP)
    rows, labels = [data.X[i] for i in chosen], data.positive[chosen].tolist()
    seconds = {"label": timed(partial(_label_all, tree, rows))()}
    seconds["size"] = timed(partial(_size_all, tree))()
    before = tree.stats()["rebuilds"]
    insert = timed(partial(_insert_all, tree, rows, labels))()
    if tree.stats()["rebuilds"] == before:
        seconds["insert"] = insert
    return {name: each / GROUP for name, each in seconds.items()}


def _label_all(tree: EverTree, rows: list[npt.NDArray[np.float64]]) -> None:
    for x in rows:
        tree.label(x)


def _insert_all(tree: EverTree, rows: list[npt.NDArray[np.float64]], labels: list[bool]) -> None:
    for x, y in zip(rows, labels, strict=True):
        tree.insert(x, y)


def _size_all(tree: EverTree) -> None:
    size = tree._core.size  # noqa: SLF001 - the cheapest call that crosses the border
    for _ in repeat(None, GROUP):
        size()


def _call_row(data: Data, setting: str, seconds: float, empty: float, at_most: float) -> Row:
    return Row(
        data.name,
        setting,
        {"evertree": seconds, "empty call": empty},
        "s",
        figure=seconds * 1e6,
        figure_unit=" µs",
        at_most=at_most,
        note=f"{seconds / empty:.1f} empty calls",
    )


def against_predict(options: Options, data: Data, max_depth: int | None) -> Row:
    """Time `label_many` against `predict` of scikit-learn's tree of the same depth."""
    setting = f"label_many, depth {max_depth or 'unlimited'}"
    if not has("sklearn"):
        return Row(data.name, setting, {}, "s", note="scikit-learn is not installed here")
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 - only where it is installed

    tree = tree_of(data.n_features, min_impurity=0.0, max_depth=max_depth)
    tree.insert_many(data.X, data.y)
    peer = DecisionTreeClassifier(max_depth=max_depth, random_state=0).fit(data.X, data.y)
    converted = data.X.astype(np.float32)
    jobs = {
        "evertree": timed(lambda: tree.label_many(data.X)),
        "scikit-learn": timed(lambda: peer.predict(data.X)),
        # It computes in float32: this is its time without the conversion.
        "of float32": timed(lambda: peer.predict(converted)),
    }
    seconds = best_seconds(options, jobs)
    return Row(
        data.name,
        setting,
        {name: each / len(data) for name, each in seconds.items()},
        "s",
        figure=seconds["scikit-learn"] / seconds["evertree"],
        at_least=1.5,
        note=f"of float32 {seconds['of float32'] / seconds['evertree']:.2f}×",
    )


if __name__ == "__main__":
    main("calls", ask)
