"""How fast is Build? Against scikit-learn's exact tree, and two threads against one.

Same rows, all classes, same depth, min_impurity=0, so both make the best split everywhere. The
trees are equal up to ties, where scikit-learn chooses at random: the node counts show it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from data import FILES, Data, available, synthetic
from measure import Options, best_seconds, has, progress, timed, tree_of
from report import Row, main

if TYPE_CHECKING:
    from evertree import EverTree

DEPTHS = (10, None)
MANY_ROWS = 100_000  # from here on a second thread has to pay


def ask(options: Options) -> Iterator[Row]:
    """Compare every set at both depths, then the threads on the large ones."""
    for data in available(*FILES, quick=options.quick):
        for max_depth in DEPTHS:
            progress(f"build: {data.name}, {_depth(max_depth)}")
            yield against_sklearn(options, data, max_depth)
            if len(data) >= MANY_ROWS:
                yield two_threads(options, data, max_depth)
    data = synthetic(4_000 if options.quick else 300_000, 20)
    for max_depth in DEPTHS:
        progress(f"build: synthetic, {_depth(max_depth)}, threads")
        yield two_threads(options, data, max_depth)


def against_sklearn(options: Options, data: Data, max_depth: int | None) -> Row:
    """Time `rebuild` against `DecisionTreeClassifier.fit`."""
    setting = f"{_depth(max_depth)}, scikit-learn"
    if not has("sklearn"):
        return Row(data.name, setting, {}, "s", note="scikit-learn is not installed here")
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 - only where it is installed

    tree = _filled(data, max_depth, jobs=1)
    peer = DecisionTreeClassifier(max_depth=max_depth, random_state=0)
    jobs = {
        "evertree": timed(tree.rebuild),
        "scikit-learn": timed(lambda: peer.fit(data.X, data.y)),
    }
    seconds = best_seconds(options, jobs)
    is_large_and_shallow = data.name in {"Covertype", "KDD99"} and max_depth == 10
    return Row(
        data.name,
        setting,
        seconds,
        "s",
        figure=seconds["scikit-learn"] / seconds["evertree"],
        at_least=25 if is_large_and_shallow else 10,
        note=f"nodes {tree.stats()['nodes']} / {peer.tree_.node_count}",
    )


def two_threads(options: Options, data: Data, max_depth: int | None) -> Row:
    """Time `rebuild` in two threads against one; the trees must be equal to the bit.

    Two models that are rebuilt side by side, with nothing in common, show what the machine has to
    give: on a shared one a second core is not always there.
    """
    setting = f"{_depth(max_depth)}, 2 threads against 1"
    one, other, two = (_filled(data, max_depth, jobs) for jobs in (1, 1, 2))
    wall = time.perf_counter  # CPU time would add the threads up
    jobs = {
        "2 threads": timed(two.rebuild, wall),
        "1": timed(one.rebuild, wall),
        "2 models at once": timed(lambda: _side_by_side(one, other), wall),
    }
    seconds = best_seconds(options, jobs)
    ceiling = 2 * seconds["1"] / seconds["2 models at once"]
    if one.digest() != two.digest():
        raise AssertionError(f"{data.name}: two threads make another tree than one")
    return Row(
        data.name,
        setting,
        seconds,
        "s",
        figure=seconds["1"] / seconds["2 threads"],
        at_least=1.7,
        note=f"{len(data)} rows, same digest; two models at once: {ceiling:.2f}×",
    )


def _side_by_side(one: EverTree, other: EverTree) -> None:
    thread = threading.Thread(target=other.rebuild)
    thread.start()
    one.rebuild()
    thread.join()


def _filled(data: Data, max_depth: int | None, jobs: int) -> EverTree:
    tree = tree_of(data.n_features, jobs=jobs, min_impurity=0.0, max_depth=max_depth)
    tree.insert_many(data.X, data.y)
    return tree


def _depth(max_depth: int | None) -> str:
    return f"depth {max_depth or 'unlimited'}"


if __name__ == "__main__":
    main("build", ask)
