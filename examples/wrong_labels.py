"""Wrong labels, found and corrected: a station of a factory mixed up its stickers for days.

A tree learns from the measurements of every part which ones fail in the final test. Some days
later the figures are odd. Station by station and day by day, the tree is asked what it would say
without those parts (they are deleted, labelled, and put back), and four days of one station stand
out. The parts are tested again; `replace` corrects each label under the id it has, and the tree
follows at once.

    python examples/wrong_labels.py [--parts 12000] [--out build/examples]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from evertree import EverTree

STATIONS, DAYS = 5, 8
MIXED_UP = (3, (3, 4, 5, 6))  # station, days
FEATURES = ("weight", "torque", "gap", "temperature")


class Parts(NamedTuple):
    """Parts as they were measured, what was noted about them, and what is true."""

    x: npt.NDArray[np.float64]
    noted: npt.NDArray[np.str_]
    true: npt.NDArray[np.str_]
    station: npt.NDArray[np.int64]
    day: npt.NDArray[np.int64]

    def batch(self, station: int, day: int) -> npt.NDArray[np.int64]:
        """Give the parts of a station on a day."""
        return np.flatnonzero((self.station == station) & (self.day == day))


def produce(n: int, seed: int) -> Parts:
    """Make parts; at one station the stickers are mixed up for some days."""
    rng = np.random.default_rng(seed)
    x = rng.normal([120, 8, 0.3, 21], [2, 0.5, 0.05, 3], (n, 4)).round(3)
    fails = (x[:, 1] < 7.6) | ((x[:, 2] > 0.36) & (x[:, 3] > 20)) | (rng.random(n) < 0.01)
    true = np.where(fails, "fails", "holds")
    station, day = rng.integers(0, STATIONS, n), np.arange(n) * DAYS // n
    mixed = (station == MIXED_UP[0]) & np.isin(day, MIXED_UP[1])
    noted = np.where(mixed ^ fails, "fails", "holds")
    return Parts(x, noted, true, station, day)


def agreement(tree: EverTree, parts: Parts, batch: npt.NDArray[np.int64]) -> float:
    """Tell how far the rest of the table agrees with what was noted about these parts."""
    tree.delete_many(ids=batch)
    said = tree.label_many(parts.x[batch])
    tree.insert_many(parts.x[batch], parts.noted[batch], ids=batch)
    return float(np.mean(said == parts.noted[batch]))


def survey(tree: EverTree, parts: Parts) -> npt.NDArray[np.float64]:
    """Ask for every station and day."""
    return np.array(
        [[agreement(tree, parts, parts.batch(s, d)) for d in range(DAYS)] for s in range(STATIONS)]
    )


def show(found: npt.NDArray[np.float64]) -> None:
    """Print the survey as a table, what stands out marked."""
    print("station " + "".join(f"   day {day}" for day in range(DAYS)))
    for station, row in enumerate(found):
        cells = (f"{share:7.1%}{'!' if share < 0.7 else ' '}" for share in row)
        print(f"   {station}    {''.join(cells)}")


def draw(before: npt.NDArray[np.float64], after: npt.NDArray[np.float64], path: Path) -> None:
    """Draw both surveys, beside each other."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, found, title in zip(axes, (before, after), ("as noted", "corrected"), strict=True):
        image = ax.imshow(found, cmap="RdYlGn", vmin=0.0, vmax=1.0, aspect="auto")
        for (station, day), share in np.ndenumerate(found):
            style = {"ha": "center", "va": "center", "fontsize": "small", "color": "white"}
            ax.text(day, station, f"{share:.0%}", **style)
        ax.set(title=title, xlabel="day", xticks=range(DAYS), yticks=range(STATIONS))
    axes[0].set_ylabel("station")
    figure.colorbar(image, ax=axes, label="agrees with the rest")
    figure.savefig(path, dpi=130)


def main(arguments: list[str] | None = None) -> int:
    """Run it; the exit code tells whether the corrected tree is the one of the true labels."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", type=int, default=12_000, help="how many parts (12000)")
    parser.add_argument("--out", type=Path, default=Path("build/examples"))
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)

    parts, fresh = produce(options.parts, seed=1), produce(options.parts // 2, seed=2)
    tree = EverTree(len(FEATURES), max_depth=8)
    tree.insert_many(parts.x, parts.noted)  # the ids are 0, 1, 2, ...
    before = survey(tree, parts)
    print("How far does the rest of the factory agree with each station's notes?")
    show(before)
    score = np.mean(tree.label_many(fresh.x) == fresh.true)

    suspects = [parts.batch(int(s), int(d)) for s, d in np.argwhere(before < 0.7)]
    corrected = 0
    for i in np.concatenate(suspects) if suspects else []:
        if parts.noted[i] != parts.true[i]:  # the part is tested again
            tree.replace(int(i), parts.x[i], parts.true[i])
            parts.noted[i] = parts.true[i]
            corrected += 1
    better = np.mean(tree.label_many(fresh.x) == fresh.true)
    print(f"\n{corrected} labels corrected in {len(suspects)} batches, one by one.")
    print(f"Right about parts it has never seen: {score:.1%} before, {better:.1%} after.")
    show(after := survey(tree, parts))
    draw(before, after, options.out / "wrong_labels.png")

    tree.rebuild()
    right = EverTree(len(FEATURES), max_depth=8)
    right.insert_many(parts.x, parts.true)
    same = tree.digest() == right.digest()
    print(f"\nRebuilt, it is the tree of the true labels: {same}.")
    print(f"Picture: {options.out / 'wrong_labels.png'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
