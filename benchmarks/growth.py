"""How does the cost of an update grow with the tree? The promise is O(log³ n), amortised.

n insertions into an empty tree, and a sliding window of n rows for as many updates (one deletion
and one insertion per row, until half of the rows are new), on synthetic streams that stay as they
are and that drift (half a turn in one run, whatever its size). The exponent p of c · (log n)^p is
fitted to the mean cost; caches that become too small count as growth, so the rows rebuilt per
update, which no machine can change, are told beside it. A single call may rebuild everything, so
the largest one is told as well.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data import chunks
from measure import Options, growth_exponent, has, progress, tree_of
from report import Row, main, say

FEATURES = 8
REPEAT_UP_TO = 30_000  # larger ones run for long enough to even the noise out
SIZES_QUICK = (1_000, 2_000, 4_000)
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
SIZES_LONG = (*SIZES, 3_000_000, 10_000_000)


@dataclass(frozen=True)
class Point:
    """What an update cost at one size: in the mean, and the longest anyone waited."""

    n: int
    seconds_mean: float
    seconds_max: float
    rows_rebuilt: float


def ask(options: Options) -> Iterator[Row]:
    """Run the four curves and draw them."""
    sizes = SIZES_QUICK if options.quick else SIZES_LONG if options.long else SIZES
    curves: dict[str, list[Point]] = {}
    for drifts in (False, True):
        for kind, run in (("insertions", insertions), ("sliding window", window)):
            name = f"{kind}, {'drifting' if drifts else 'stationary'}"
            curves[name] = []
            for n in sizes:
                progress(f"growth: {name}, {n}")
                repetitions = 1 if options.quick or n > REPEAT_UP_TO else 3
                curves[name].append(min((run(n, drifts) for _ in range(repetitions)), key=_mean))
            yield _row(name, curves[name])
    if has("matplotlib"):
        options.results.mkdir(parents=True, exist_ok=True)
        draw(curves, options.results / ("growth-long.png" if options.long else "growth.png"))


def insertions(n: int, drifts: bool) -> Point:
    """Insert row by row into an empty tree."""
    tree = tree_of(FEATURES)
    cpu, largest = 0.0, 0
    for X, positive in chunks(n, FEATURES, drifts):
        cpu -= time.process_time()
        for x, y in zip(X, positive.tolist(), strict=True):
            start = time.perf_counter_ns()
            tree.insert(x, y)
            largest = max(largest, time.perf_counter_ns() - start)
        cpu += time.process_time()
    cpu -= time.process_time()
    rows_rebuilt = tree.stats()["rows_rebuilt"]  # and what was put off is built
    cpu += time.process_time()
    return Point(n, cpu / n, largest / 1e9, rows_rebuilt / n)


def window(n: int, drifts: bool) -> Point:
    """Fill the window as one batch, then replace half of its rows, oldest first."""
    tree = tree_of(FEATURES)
    stream = chunks(n + n // 2, FEATURES, drifts)
    first = zip(*(next(stream) for _ in range(n // 1000)), strict=True)
    oldest = iter(tree.insert_many(*map(np.concatenate, first)).tolist())
    cpu, largest, built = 0.0, 0, tree.stats()["rows_rebuilt"]
    for X, positive in stream:
        cpu -= time.process_time()
        for x, y in zip(X, positive.tolist(), strict=True):
            start = time.perf_counter_ns()
            tree.delete(id=next(oldest))
            middle = time.perf_counter_ns()
            tree.insert(x, y)
            largest = max(largest, middle - start, time.perf_counter_ns() - middle)
        cpu += time.process_time()
    cpu -= time.process_time()
    rows_rebuilt = tree.stats()["rows_rebuilt"] - built
    cpu += time.process_time()
    return Point(n, cpu / n, largest / 1e9, rows_rebuilt / n)


def draw(curves: dict[str, list[Point]], path: Path) -> None:
    """Draw mean and largest cost over the size, both axes logarithmic."""
    import matplotlib as mpl  # noqa: PLC0415 - only where it is installed

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (mean, largest) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for name, points in curves.items():
        sizes = [point.n for point in points]
        mean.plot(sizes, [point.seconds_mean * 1e6 for point in points], "o-", label=name)
        largest.plot(sizes, [point.seconds_max * 1e3 for point in points], "o-", label=name)
    mean.plot(*_cubed_logarithm(curves), "k:", label="∝ log³ n")
    mean.set(title="mean update", ylabel="µs", yscale="log")
    largest.set(title="largest single call", ylabel="ms", yscale="log")
    for axes in (mean, largest):
        axes.set(xlabel="examples in the tree", xscale="log")
        axes.grid(visible=True, alpha=0.3)
    figure.legend(*mean.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _cubed_logarithm(curves: dict[str, list[Point]]) -> tuple[list[int], list[float]]:
    """Give log³ n, scaled to start where the dearest curve does."""
    points = max(curves.values(), key=lambda curve: curve[0].seconds_mean)
    scale = points[0].seconds_mean * 1e6 / np.log(points[0].n) ** 3
    return [p.n for p in points], [scale * np.log(p.n) ** 3 for p in points]


def _mean(point: Point) -> float:
    return point.seconds_mean


def _row(name: str, points: list[Point]) -> Row:
    largest = ", ".join(say(point.seconds_max, "s") for point in points)
    sizes = [float(point.n) for point in points]
    rebuilt = [point.rows_rebuilt for point in points]
    return Row(
        "synthetic",
        name,
        {f"n={point.n}:": point.seconds_mean for point in points},
        "s",
        figure=growth_exponent(sizes, [point.seconds_mean for point in points]),
        figure_unit=" (exponent of log n)",
        at_most=3,
        note=f"largest single calls {largest}; rows rebuilt per update "
        f"{', '.join(f'{each:.1f}' for each in rebuilt)}, exponent "
        f"{growth_exponent(sizes, rebuilt):.2f}",
    )


if __name__ == "__main__":
    main("growth", ask)
