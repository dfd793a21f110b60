"""Electricity prices that change their reasons: a window of 60 days beside two trees without one.

Will the price of this half hour be above the day's average? In the first part of this made-up
market demand decides, then wind farms come, then gas becomes dear. Three trees answer before they
are told: one was fitted to the first 60 days, one keeps everything, one keeps the last 60 days.

    python examples/price_drift.py [--days 540] [--out build/examples]
"""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from evertree import EverTree, evaluate, export_text, streams

FEATURES = ("hour", "weekday", "demand GW", "wind GW", "gas EUR", "temperature")
WINDOW = timedelta(days=60)
PER_DAY = 48
NOISE = 0.05  # so many answers are wrong in the data itself
Floats = npt.NDArray[np.float64]


def market(days: int, seed: int) -> streams.Source:
    """Make the half hours of a market whose prices follow demand, then wind, then gas."""
    rng = np.random.default_rng(seed)
    n = days * PER_DAY
    step = np.arange(n)
    hour, day = step % PER_DAY / 2, step // PER_DAY
    season = np.cos(2 * np.pi * day / 365)
    temperature = 9 - 10 * season + 4 * np.sin((hour - 9) / 24 * 2 * np.pi) + rng.normal(0, 2, n)
    demand = 45 + 9 * np.sin((hour - 8) / 24 * 2 * np.pi) - 0.4 * (temperature - 9)
    demand += np.where(day % 7 >= 5, -6, 0) + rng.normal(0, 2, n)
    wind = np.clip(12 + slow(rng, n, 0.02) * 8, 0, 30)
    gas = 24 + 6 * slow(rng, n, 0.002) + np.where(day >= days * 2 // 3, 18, 0)
    x = np.column_stack([hour, day % 7, demand, wind, gas, temperature]).round(2)
    above = price_pressure(days, day, demand, wind, gas) > 0
    above ^= rng.random(n) < NOISE
    start = np.datetime64("2025-01-01T00:00")
    return streams.from_arrays(
        x,
        np.where(above, "above", "below"),
        time=start + step * np.timedelta64(30, "m"),
        features=FEATURES,
        name="half hours",
    )


def price_pressure(
    days: int, day: npt.NDArray[np.int64], demand: Floats, wind: Floats, gas: Floats
) -> Floats:
    """Say what makes a price: another thing in each third of the time."""
    by_demand = demand - 46
    by_wind = 13 - wind + 0.2 * (demand - 46)
    by_gas = 0.6 * (gas - 42) + 0.5 * (demand - 46) - 0.3 * (wind - 12)
    third = np.minimum(3 * day // days, 2)
    pressure: Floats = np.choose(third, [by_demand, by_wind, by_gas])
    return pressure


def slow(rng: np.random.Generator, n: int, speed: float) -> Floats:
    """Draw something that wanders and returns."""
    value, steps = 0.0, rng.normal(0, np.sqrt(2 * speed), n)
    wandering = np.empty(n)
    for i in range(n):
        value += steps[i] - speed * value
        wandering[i] = value
    return wandering


class FittedOnce(EverTree):
    """A tree that learns its first batch and no more: what a model is that nobody looks after."""

    def insert(self, x: Any, y: Any, id: int | None = None) -> int:  # noqa: ARG002
        """Learn nothing."""
        return -1


def follow(source: streams.Source, tree: EverTree) -> list[evaluate.Result]:
    """Let the three trees answer over the same half hours, the given one with the window."""
    last, everything = streams.sliding_window(WINDOW), streams.incremental(WINDOW.days * PER_DAY)
    d = source.n_features
    runs = [
        ("the last 60 days", last, tree),
        ("everything", everything, EverTree(d, max_depth=10)),
        ("fitted once", everything, FittedOnce(d, max_depth=10)),
    ]
    return [
        evaluate.prequential(model(source), each, every=PER_DAY * 10, name=name, progress=False)
        for name, model, each in runs
    ]


def tell(results: list[evaluate.Result], days: int) -> None:
    """Print how often each was right, in each part of the time and in all."""
    print(f"{'':18}{'demand decides':>16}{'wind decides':>16}{'gas decides':>16}{'in all':>10}")
    for result in results:
        rows = np.array([point.examples for point in result.points])
        right = np.array([point.now.accuracy for point in result.points])
        third = 3 * (rows / PER_DAY + WINDOW.days) // (days + 1)
        parts = [f"{right[third == part].mean():16.1%}" for part in range(3)]
        print(f"{result.name:18}{''.join(parts)}{result.accuracy:10.1%}")


def draw(results: list[evaluate.Result], days: int, path: Path) -> None:
    """Draw how often each was right, over time."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    ax: Any = figure.subplots()
    opened = datetime(2025, 1, 1)  # noqa: DTZ001  (a market has one time)
    start = opened + WINDOW
    for result, colour in zip(results, ("#00897b", "#ef9234", "#8a8a8a"), strict=True):
        when = [start + timedelta(days=p.examples / PER_DAY) for p in result.points]
        right = [point.now.accuracy for point in result.points]
        ax.plot(when, right, color=colour, label=f"{result.name} ({result.accuracy:.1%})")
    for part, reason in enumerate(("demand decides", "wind decides", "gas decides")):
        begin = max(start, opened + timedelta(days=part * days / 3))
        ax.axvline(begin, color="#cccccc", linewidth=0.8, zorder=0)
        ax.text(begin, 1.0, f" {reason}", color="#777777", fontsize="small", va="bottom")
    ax.set_xlim(start, opened + timedelta(days=days))
    ax.set_ylim(top=1.0)
    ax.set_ylabel("right, in ten days")
    ax.legend(frameon=False, loc="lower left")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def main(arguments: list[str] | None = None) -> int:
    """Run it; the exit code tells whether the guarantee held."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--days", type=int, default=540, help="how long the market is open (540)")
    parser.add_argument("--out", type=Path, default=Path("build/examples"))
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    source = market(options.days, seed=12)
    tree = EverTree(source.n_features, max_depth=10)
    results = follow(source, tree)
    tell(results, options.days)
    print(f"\nOf the last 60 days ({len(tree):,} half hours) the tree says, in short:")
    print(export_text(tree, feature_names=FEATURES, max_depth=2))
    certificate = tree.certify()
    print(f"\nEvery split within {tree.limits.max_gap} of the best: {certificate.ok}.")
    draw(results, options.days, options.out / "price_drift.png")
    print(f"Picture: {options.out / 'price_drift.png'}")
    return 0 if certificate.ok else 1


if __name__ == "__main__":
    sys.exit(main())
