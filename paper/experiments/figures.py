"""The five figures: F1 and time per update against ε, with deletions.

Numbered in the order in which the paper has them: 1 window (Electricity, INSECTS, Poker), 2 random
updates, times, 3 window (Covertype, KDD99, Weather), 4 random updates, F1, 5 random updates
(Covertype, KDD99, Weather). The paper draws one curve, its own rule; the others were left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from experiments.plan import BETAS, dynamic
from experiments.runs import Learner, Record, f1, ms_per_update

if TYPE_CHECKING:
    from experiments.tables import Found

MAIN = ("Electricity", "INSECTS v2", "Poker")
MORE = ("Forest Covertype", "KDDCUP99", "NOAA Weather")
TICKS = (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)
RULE, SKLEARN = "#1f6f8b", "#c8702a"
CERTIFIED = {0.05: "#1b5e20", 0.1: "#43a047", 0.2: "#a5d6a7"}
FLAT: dict[Learner, tuple[str, str]] = {
    "no change": ("#7d4f9e", ":"),
    "majority": ("#8a8a8a", "-."),
}


@dataclass(frozen=True)
class Layout:
    """Which panels a figure has; `down` puts one set in each row instead of each column."""

    number: int
    stream: str
    sets: tuple[str, ...]
    measures: tuple[str, ...]
    title: str
    down: bool = False

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"figure-{self.number}"


LAYOUTS = (
    Layout(1, "window", MAIN, ("F1", "time"), "Sliding window: F1 and time", down=True),
    Layout(2, "random", MAIN[:2], ("time",), "Random updates: time"),
    Layout(3, "window", MORE, ("F1", "time"), "Sliding window on other sets: F1 and time"),
    Layout(4, "random", MAIN, ("F1",), "Random updates: F1"),
    Layout(5, "random", MORE, ("F1", "time"), "Random updates on other sets: F1 and time"),
)


def draw(found: Found, layout: Layout) -> Figure:
    """Draw one figure."""
    measures, sets = len(layout.measures), len(layout.sets)
    rows, columns = (sets, measures) if layout.down else (measures, sets)
    figure = Figure(figsize=(4.3 * columns, 3.0 * rows + 0.9), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for i, measure in enumerate(layout.measures):
        for j, data in enumerate(layout.sets):
            axes = panels[j][i] if layout.down else panels[i][j]
            _panel(axes, found, layout.stream, data, measure)
    figure.suptitle(f"Figure {layout.number}. {layout.title} against ε")
    lines: dict[str, Any] = {}
    for axes in panels.flat:
        lines |= {
            label: line for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
    figure.legend(
        lines.values(),
        lines.keys(),
        loc="outside lower center",
        ncols=min(4, 2 * columns),
        frameon=False,
        fontsize="small",
    )
    return figure


def points(
    found: Found, stream: str, data: str, learner: Learner
) -> list[tuple[float, float, float]]:
    """Give ε, F1 and milliseconds per update of every run of a learner."""
    wanted = [
        record
        for job, record in found.records.items()
        if job == dynamic(data, stream, learner, job.value)
    ]
    ordered = sorted(wanted, key=lambda record: float(record["value"]))
    return [(record["value"], f1(record), ms_per_update(record)) for record in ordered]


def _panel(axes: Any, found: Found, stream: str, data: str, measure: str) -> None:
    place = 1 if measure == "F1" else 2
    axes.set_title(found.name(data), fontsize="medium")
    axes.set_xscale("symlog", linthresh=0.01, linscale=0.4)
    axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS], fontsize="small")
    axes.set_xticks([], minor=True)
    axes.set_xlim(-0.002, 2.4)
    axes.set_xlabel("ε", labelpad=0)
    axes.set_ylabel("F1 of class 1, %" if measure == "F1" else "ms per update")
    axes.grid(visible=True, alpha=0.25)
    if data not in found.sets:
        axes.text(0.5, 0.5, "not here", transform=axes.transAxes, ha="center")
        axes.set_yticks([])
        return
    values = _draw_curves(axes, found, stream, data, place)
    if measure == "F1":
        _limit(axes, values)
        _draw_flat(axes, found, stream, data)
    else:
        axes.set_yscale("log")


def _draw_curves(axes: Any, found: Found, stream: str, data: str, place: int) -> list[float]:
    """Draw what depends on ε, and the certified rule, which does not; give all values."""
    values = []
    curves: tuple[tuple[Learner, str, str, str], ...] = (
        ("paper", RULE, "o", "the paper's rule (its curve)"),
        ("scikit-learn", SKLEARN, "s", "scikit-learn, refitted on the same schedule"),
    )
    for learner, colour, marker, label in curves:
        curve = points(found, stream, data, learner)
        x, y = [point[0] for point in curve], [point[place] for point in curve]
        if place == 2:  # no time at all where no fit was due: a logarithm has no place for it
            y = [value or math.nan for value in y]
        width = 1.8 if learner == "paper" else 1.0
        axes.plot(x, y, f"{marker}-", color=colour, ms=3.5, lw=width, label=label, zorder=3)
        values += [value for value in y if not math.isnan(value)]
    for beta in BETAS:
        record = found.get(dynamic(data, stream, "certified", beta))
        if record is not None:
            value = f1(record) if place == 1 else ms_per_update(record)
            label = f"certified rule, β = {beta:g}"
            axes.axhline(value, color=CERTIFIED[beta], ls="--", lw=1.2, label=label, zorder=2)
            values.append(value)
    return values


def _limit(axes: Any, values: list[float]) -> None:
    if values:
        room = max(0.12 * (max(values) - min(values)), 0.3)
        axes.set_ylim(min(values) - room, max(values) + room)


def _draw_flat(axes: Any, found: Found, stream: str, data: str) -> None:
    """Draw the baselines; one that is far off is told at the edge, so that curves stay readable."""
    low, high = axes.get_ylim()
    for learner, (colour, style) in FLAT.items():
        record = found.get(dynamic(data, stream, learner))
        if record is None:
            continue
        y = f1(record)
        label = "no change (previous label)" if learner == "no change" else "majority class"
        axes.axhline(y, color=colour, ls=style, lw=1.2, label=label, zorder=1)
        if not low <= y <= high:
            arrow, edge = ("↓", 0.02) if y < low else ("↑", 0.93)
            place = 0.03 if learner == "no change" else 0.52
            text = f"{arrow} {learner} {y:.1f}"
            axes.text(place, edge, text, transform=axes.transAxes, color=colour, fontsize="x-small")
    axes.set_ylim(low, high)


def values_table(found: Found, layout: Layout) -> str:
    """Write the figure's numbers as Markdown, F1 and milliseconds per update."""
    lines = []
    for data in layout.sets:
        if data not in found.sets:
            continue
        curve = points(found, layout.stream, data, "paper")
        lines += [
            f"| {found.name(data)} | {' | '.join(f'ε = {epsilon:g}' for epsilon, _, _ in curve)} |",
            f"| --- |{' ---: |' * len(curve)}",
        ]
        for measure in layout.measures:
            name, place, form = ("F1", 1, ".2f") if measure == "F1" else ("ms per update", 2, ".2g")
            cells = " | ".join(f"{point[place]:{form}}" for point in curve)
            lines.append(f"| {name} | {cells} |")
        lines += ["", _others(found, layout, data), ""]
    return "\n".join(lines)


def _others(found: Found, layout: Layout, data: str) -> str:
    texts = [
        (f"certified β = {beta:g}", dynamic(data, layout.stream, "certified", beta))
        for beta in BETAS
    ]
    for epsilon, _, _ in points(found, layout.stream, data, "scikit-learn"):
        job = dynamic(data, layout.stream, "scikit-learn", epsilon)
        texts.append((f"scikit-learn at ε = {epsilon:g}", job))
    texts += [
        ("no change", dynamic(data, layout.stream, "no change")),
        ("majority class", dynamic(data, layout.stream, "majority")),
    ]
    return "Beside it: " + "; ".join(
        f"{name} {_figures(record, layout)}"
        for name, job in texts
        if (record := found.get(job)) is not None
    )


def _figures(record: Record, layout: Layout) -> str:
    figures = []
    if "F1" in layout.measures:
        figures.append(f"{f1(record):.2f}")
    if "time" in layout.measures:
        figures.append(f"{ms_per_update(record):.2g} ms")
    return " · ".join(figures)
