"""A river pipeline that can forget: rides of a bike hire, in a window of two weeks.

Will a ride end at another station than it began? Each ride comes as a dict, is turned into
features by a river pipeline, and is answered before it is learned. river's own `TimeRolling`
holds the tree and makes it unlearn every ride that is older than two weeks: no other classifier
of river's can do that. Half way a rain sensor goes live, and from then on rides have a feature
more; in the last third there is a new rule in town.

    python examples/river_pipeline.py [--rides 9000] [--out build/examples]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from river import compose, metrics, tree, utils

from evertree.river import EverTreeClassifier

Ride = dict[str, Any]
PERIOD = timedelta(days=14)
NOISE = 0.05


def rides(n: int, seed: int) -> Iterator[tuple[Ride, str]]:
    """Make rides over four months, with what became of each."""
    rng = random.Random(seed)  # noqa: S311  (a simulation)
    start = datetime(2026, 4, 1)  # noqa: DTZ001  (a town has one time)
    for i in range(n):
        when = start + timedelta(days=120 * i / n)
        rain = rng.random() < 0.3
        ride: Ride = {
            "began": when,
            "station": rng.choice(["harbour", "park", "campus", "old town"]),
            "member": rng.random() < 0.6,
            "battery": round(rng.uniform(20, 100)),
        }
        if i >= n // 2:
            ride["rain mm"] = round(rng.expovariate(1.0) + 0.2, 1) if rain else 0.0
        commutes = ride["member"] and when.weekday() < 5 and when.hour in range(6, 19)
        away = commutes or ride["station"] == "harbour"
        if i >= 2 * n // 3:  # returning to the same station has become free of charge
            away = commutes and ride["station"] != "campus" and not rain
        yield ride, "away" if away != (rng.random() < NOISE) else "back"


def clock(ride: Ride) -> Ride:
    """Give what the time of day has to say."""
    began: datetime = ride["began"]
    return {"hour": began.hour, "weekend": began.weekday() >= 5}


def pipeline() -> compose.TransformerUnion:
    """Make the features of a ride: those of the clock, and all that it brings but the moment."""
    return compose.FuncTransformer(clock) + compose.Discard("began")


def follow(n: int, every: int) -> tuple[dict[str, list[float]], Any]:
    """Answer each ride, then learn it: with a window, without one, and as river's own tree does."""
    features: Any = pipeline()
    window: Any = utils.TimeRolling(EverTreeClassifier, period=PERIOD, max_depth=8)
    everything = EverTreeClassifier(max_depth=8)
    adaptive: Any = tree.HoeffdingAdaptiveTreeClassifier(seed=1)
    models: dict[str, Any] = {
        "evertree, two weeks": window,
        "evertree, everything": everything,
        "river HAT": adaptive,
    }
    right: dict[str, list[float]] = {name: [] for name in models}
    recent: dict[str, Any] = {
        name: utils.Rolling(metrics.Accuracy, window_size=every) for name in models
    }
    for number, (ride, truth) in enumerate(rides(n, seed=8), start=1):
        x = features.transform_one(ride)
        for name, model in models.items():
            recent[name].update(truth, model.predict_one(x))
            if number % every == 0:
                right[name].append(recent[name].get())
        window.update(x, truth, t=ride["began"])
        everything.learn_one(x, truth)
        adaptive.learn_one(x, truth)
    return right, window


def draw(right: dict[str, list[float]], n: int, every: int, path: Path) -> None:
    """Draw how often each was right."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    ax = figure.subplots()
    for (name, course), colour in zip(
        right.items(), ("#00897b", "#ef9234", "#8a6bbf"), strict=True
    ):
        at = range(every, every * (len(course) + 1), every)
        ax.plot(at, course, color=colour, label=name)
    for moment, event in ((n // 2, "the rain sensor"), (2 * n // 3, "returning is free")):
        ax.axvline(moment, color="#cccccc", linewidth=0.8, zorder=0)
        ax.text(moment, 1.0, f" {event}", color="#777777", fontsize="small", va="bottom")
    ax.set(xlabel="rides", ylabel=f"right, last {every}", xlim=(0, n), ylim=(0.5, 1.0))
    ax.legend(frameon=False, loc="lower left")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def main(arguments: list[str] | None = None) -> int:
    """Run it; the exit code tells whether the guarantee held."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rides", type=int, default=9_000, help="how many (9000)")
    parser.add_argument("--out", type=Path, default=Path("build/examples"))
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    every = max(options.rides // 24, 1)
    right, window = follow(options.rides, every)
    cut = 2 * len(next(iter(right.values()))) // 3
    print(f"{'':24}before the new rule   after it")
    for name, course in right.items():
        before, after = course[:cut], course[cut:]
        print(f"{name:24}{sum(before) / len(before):19.1%}{sum(after) / len(after):11.1%}")

    print(f"\nIn the window: {len(window.tree):,} rides of the last {PERIOD.days} days.")
    wet, dry = {"rain mm": 2.0}, {"rain mm": 0.0}
    commuter = {"hour": 8, "weekend": False, "station": "park", "member": True, "battery": 80}
    print(f"A commuter in the rain: {window.predict_one(commuter | wet)}")
    print(f"A commuter on a dry day: {window.predict_one(commuter | dry)}")
    certificate = window.tree.certify()
    print(f"Every split within 0.1 of the best: {certificate.ok}.")
    draw(right, options.rides, every, options.out / "river_pipeline.png")
    print(f"Picture: {options.out / 'river_pipeline.png'}")
    return 0 if certificate.ok else 1


if __name__ == "__main__":
    sys.exit(main())
