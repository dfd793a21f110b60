"""Pictures: the tree itself, and how a run went. Drawn with matplotlib, the extra `evertree[plot]`.

Each function returns what it drew and leaves showing and saving to the caller.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from evertree.encoding import show
from evertree.errors import InvalidParameter
from evertree.extras import load
from evertree.outline import (
    Categories,
    Outline,
    Words,
    checked_depth,
    is_missing,
    label_colour,
    tree_of,
)

if TYPE_CHECKING:
    from evertree.tree import Node

# In inches, for a picture in full size; text is in points.
_LEVEL_HEIGHT, _BOX_HEIGHT, _BAR_HEIGHT = 1.0, 0.56, 0.07
_BOX_WIDTH_MIN, _CHARACTER_WIDTH, _GAP = 0.66, 0.087, 0.14
_MARGIN, _LEGEND_HEIGHT = 0.15, 0.45
_LEGEND_GAP, _LEGEND_CHARACTER_WIDTH = 0.45, 0.076
_TEXT, _SMALL_TEXT = 10.0, 9.0
_NAME_LENGTH_MAX = 28
_LEGEND_LENGTH_MAX = 12
_INK, _PALE = "#2b2b2b", "#6f6f6f"


def plot_tree(
    tree: Any,
    *,
    max_depth: int | None = 4,
    feature_names: Sequence[str] | None = None,
    precision: int = 4,
    ax: Any = None,
    categories: Categories | None = None,
) -> Any:
    """Draw the tree; return the matplotlib Axes.

    O(n·d + nodes · labels). Rows for which the test holds go left. A box has the colour of its
    answer, the paler the more mixed its labels are, and a bar with their shares. What lies below
    `max_depth` is cut and shown as "…" (None draws it all). Thresholds are rounded to `precision`
    significant digits: `export_text` has them in full, and knows `categories`, too: the texts that
    may occur, of which a tree keeps codes alone. Where a feature is missing in a row at all, its
    tests say on which side that counts: "or missing" goes left with the others, "(missing: no)"
    right. Without `ax`, a figure is made that is large enough.

    >>> from evertree import EverTree
    >>> tree = EverTree(n_features=1)
    >>> ids = tree.insert_many([[31.0], [62.0]], ["yes", "no"])
    >>> ax = plot_tree(tree, feature_names=["age"])    # ax.figure.savefig("tree.png") keeps it
    >>> [text.get_text() for text in ax.texts if "≤" in text.get_text()]
    ['age ≤ 46.5']
    """
    if type(precision) is not int or precision < 1:
        raise InvalidParameter(f"precision={show(precision)} is not an int >= 1")
    depth = checked_depth(max_depth)
    pyplot = load("matplotlib.pyplot", "plot", "plot_tree()")
    outline = Outline.of(tree, feature_names, categories, precision)
    drawing = _Drawing(outline, depth, _with_missing(tree))
    if ax is None:
        _, ax = pyplot.subplots(figsize=drawing.inches(), layout="constrained")
    drawing.draw(ax)
    return ax


def plot_history(history: Any, *, axes: Any = None) -> Any:
    """Draw how a run went: F1, active rows, rebuild work, worst gap; return the Figure.

    `history` is a result of `evertree.evaluate`, a DataFrame, a list of dicts, or a mapping from
    names to columns. What is there is drawn, one panel each: `f1` (else `f1_macro`, else
    `accuracy`), `active` (else `active_rows`, `rows`), `rows_rebuilt` as `EverTree.stats` counts
    it, drawn per step, and `worst_gap` as `EverTree.certify` finds it. The first of `examples`,
    `updates`, `requests`, `step` that is there is the time. Missing values leave a gap, except in
    `worst_gap`, where they mean that there was no audit. O(points).

    >>> history = {"examples": [1000, 2000], "f1": [0.81, 0.84], "active": [1000, 1000]}
    >>> [ax.get_ylabel() for ax in plot_history(history).axes]
    ['F1', 'active rows']
    """
    pyplot = load("matplotlib.pyplot", "plot", "plot_history()")
    columns = _columns(history)
    panels = [panel for panel in _PANELS if panel.column(columns) is not None]
    if not panels:
        known = ", ".join(name for panel in _PANELS for name in panel.names)
        raise InvalidParameter(
            f"history has the columns {show(list(columns))}: none of them can be drawn; "
            f"give at least one of {known}"
        )
    if axes is None:
        height = 0.6 + 1.6 * len(panels)
        _, axes = pyplot.subplots(
            len(panels), 1, figsize=(9, height), sharex=True, squeeze=False, layout="constrained"
        )
    places = np.ravel(axes)
    if len(places) < len(panels):
        raise InvalidParameter(
            f"axes={show(axes)}: {len(panels)} panels are to be drawn, give one Axes for each"
        )
    time_name, times = _times(columns)
    for ax, panel in zip(places, panels, strict=False):
        panel.draw(ax, times, columns)
    last = places[len(panels) - 1]
    last.set_xlabel(time_name)
    last.xaxis.set_major_formatter("{x:,.0f}")
    return places[0].figure


# --- the tree


class _Box(NamedTuple):
    """A node to be drawn: what stands in its box, and how wide that is."""

    node: Node
    is_cut: bool
    title: str
    width: float


class _Drawing:
    """A tree laid out in inches, the root at height 0, each subtree in a strip of its own."""

    def __init__(
        self, outline: Outline, max_depth: int | None, with_missing: npt.NDArray[np.bool_]
    ) -> None:
        self.outline = outline
        shown = [n for n in outline.nodes if max_depth is None or n["depth"] <= max_depth]
        self.boxes = {n["id"]: _box(outline, n, max_depth, with_missing) for n in shown}
        self.depth = max(n["depth"] for n in shown)
        self.any_cut = any(box.is_cut for box in self.boxes.values())
        self.strips = self._strips()
        self.centres = self._centres()

    def _strips(self) -> dict[int, float]:
        """Give the width that each subtree needs, children before parents."""
        strips: dict[int, float] = {}
        for i in reversed(self.boxes):
            below = sum(strips[child] for child in self._children(i))
            strips[i] = max(self.boxes[i].width + _GAP, below)
        return strips

    def _centres(self) -> dict[int, float]:
        centres = {0: self.strips[0] / 2}
        for i in self.boxes:
            children = self._children(i)
            at = centres[i] - sum(self.strips[child] for child in children) / 2
            for child in children:
                centres[child] = at + self.strips[child] / 2
                at += self.strips[child]
        return centres

    def _children(self, i: int) -> list[int]:
        box = self.boxes[i]
        if box.is_cut or box.node["feature"] is None:
            return []
        return [cast("int", box.node["left"]), cast("int", box.node["right"])]

    def inches(self) -> tuple[float, float]:
        below = 0.35 if self.any_cut else 0.0
        height = self.depth * _LEVEL_HEIGHT + _BOX_HEIGHT + _LEGEND_HEIGHT + below
        return max(self.strips[0], self._legend_width()) + 2 * _MARGIN, height + 2 * _MARGIN

    def draw(self, ax: Any) -> None:
        width, height = self.inches()
        ax.set_axis_off()
        middle = self.strips[0] / 2
        ax.set_xlim(middle - width / 2, middle + width / 2)
        top = _BOX_HEIGHT / 2 + _LEGEND_HEIGHT + _MARGIN
        ax.set_ylim(top - height, top)
        box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
        scale = min(box.width / width, box.height / height, 1.0)
        for i in self.boxes:
            for child, word in zip(self._children(i), ("yes", "no"), strict=False):
                self._draw_branch(ax, i, child, word, scale)
        for i in self.boxes:
            self._draw_box(ax, i, scale)
        self._draw_legend(ax, scale)

    def _place(self, i: int) -> tuple[float, float]:
        return self.centres[i], -_LEVEL_HEIGHT * self.boxes[i].node["depth"]

    def _draw_branch(self, ax: Any, parent: int, child: int, word: str, scale: float) -> None:
        (x0, y0), (x1, y1) = self._place(parent), self._place(child)
        y0, y1 = y0 - _BOX_HEIGHT / 2, y1 + _BOX_HEIGHT / 2
        ax.plot([x0, x1], [y0, y1], color=_PALE, linewidth=0.9 * scale, zorder=1)
        if parent == 0:
            style = {"color": _PALE, "fontsize": _SMALL_TEXT * scale, "zorder": 2}
            side = -1 if word == "yes" else 1
            x, y = (x0 + x1) / 2 + 0.12 * side, (y0 + y1) / 2 + 0.06
            ax.text(x, y, word, ha="right" if side < 0 else "left", va="center", **style)

    def _draw_box(self, ax: Any, i: int, scale: float) -> None:
        patches = load("matplotlib.patches", "plot", "plot_tree()")
        box, (x, y) = self.boxes[i], self._place(i)
        is_split = box.node["feature"] is not None and not box.is_cut
        n = sum(box.node["counts"].values())
        ax.add_patch(
            patches.FancyBboxPatch(
                (x - box.width / 2, y - _BOX_HEIGHT / 2),
                box.width,
                _BOX_HEIGHT,
                boxstyle="round,pad=0,rounding_size=0.06",
                facecolor=self.outline.colour(box.node),
                edgecolor=_PALE,
                linewidth=0.8 * scale,
                linestyle="-" if n else "--",
                zorder=3,
            )
        )
        style = {"ha": "center", "va": "center", "zorder": 4, "parse_math": False}
        weight = "normal" if is_split else "bold"
        ax.text(
            x, y + 0.14, box.title, fontsize=_TEXT * scale, color=_INK, fontweight=weight, **style
        )
        size = f"n = {n:,}" if n else "empty"
        ax.text(x, y - 0.06, size, fontsize=_SMALL_TEXT * scale, color=_INK, **style)
        self._draw_bar(ax, i, patches)
        if box.is_cut:
            below = f"… {self.outline.size(box.node) - 1:,} nodes"
            y -= _BOX_HEIGHT / 2 + 0.12
            ax.text(x, y, below, fontsize=_SMALL_TEXT * scale, color=_PALE, **style)

    def _draw_bar(self, ax: Any, i: int, patches: Any) -> None:
        """Draw the shares of the labels side by side, along the lower edge of the box."""
        box, (x, y) = self.boxes[i], self._place(i)
        counts = box.node["counts"]
        left, whole = x - box.width / 2 + 0.07, box.width - 0.14
        for position, label in enumerate(self.outline.labels):
            width = whole * counts.get(label, 0) / max(1, sum(counts.values()))
            if width:
                corner = (left, y - _BOX_HEIGHT / 2 + 0.06)
                colour = label_colour(position)
                ax.add_patch(
                    patches.Rectangle(corner, width, _BAR_HEIGHT, facecolor=colour, zorder=4)
                )
                left += width

    def _legend_names(self) -> list[str]:
        labels = self.outline.labels
        names = [_short(_name(label)) for label in labels[:_LEGEND_LENGTH_MAX]]
        return (
            names if len(names) == len(labels) else [*names, f"… {len(labels) - len(names)} more"]
        )

    def _legend_width(self) -> float:
        return sum(
            _LEGEND_GAP + _LEGEND_CHARACTER_WIDTH * len(name) for name in self._legend_names()
        )

    def _draw_legend(self, ax: Any, scale: float) -> None:
        patches = load("matplotlib.patches", "plot", "plot_tree()")
        x = self.strips[0] / 2 - self._legend_width() / 2 + 0.1
        y = _BOX_HEIGHT / 2 + _LEGEND_HEIGHT / 2 + 0.05
        for position, name in enumerate(self._legend_names()):
            if position < len(self.outline.labels) and not name.startswith("… "):
                colour = label_colour(position)
                ax.add_patch(patches.Rectangle((x, y - 0.06), 0.12, 0.12, facecolor=colour))
            ax.text(
                x + 0.18, y, name, fontsize=_TEXT * scale, color=_INK, va="center", parse_math=False
            )
            x += _LEGEND_GAP + _LEGEND_CHARACTER_WIDTH * len(name)


def _with_missing(tree: Any) -> npt.NDArray[np.bool_]:
    """Tell of each feature whether it is missing in any row."""
    return np.asarray(np.isnan(tree_of(tree).examples().X).any(axis=0))


def _box(
    outline: Outline, node: Node, max_depth: int | None, with_missing: npt.NDArray[np.bool_]
) -> _Box:
    is_split = node["feature"] is not None
    is_cut = is_split and max_depth is not None and node["depth"] >= max_depth
    if is_split and not is_cut:
        title = _test(outline.words, node, with_missing)
    else:
        title = _short(_name(outline.answer(node["id"])))
    n = sum(node["counts"].values())
    characters = max(len(title) * (1.0 if is_split else 1.1), 0.85 * len(f"n = {n:,}"))
    return _Box(node, is_cut, title, max(_BOX_WIDTH_MIN, 0.2 + _CHARACTER_WIDTH * characters))


def _test(words: Words, node: Node, with_missing: npt.NDArray[np.bool_]) -> str:
    feature = cast("int", node["feature"])
    name = _short(words.feature_names[feature])
    if is_missing(node["category"]):
        return f"{name} missing"
    if node["threshold"] is not None:
        text = f"{name} ≤ {words.threshold(node).removesuffix('.0')}"
    else:
        known = words.text(node)
        text = f"{name} = {node['category'] if known is None else _short(_name(known))}"
    if not with_missing[feature]:
        return text
    return f"{text} or missing" if node["missing_left"] else f"{text} (missing: no)"


def _name(label: Hashable) -> str:
    return label if isinstance(label, str) else show(label)


def _short(text: str) -> str:
    text = " ".join(text.split())
    half = _NAME_LENGTH_MAX // 2
    return text if len(text) <= _NAME_LENGTH_MAX else f"{text[:half]}…{text[-half + 1 :]}"


# --- the run


class _Panel(NamedTuple):
    """One quantity over time: the columns that may have it, and how it is drawn."""

    title: str
    names: tuple[str, ...]
    colour: int
    is_count: bool = False
    is_running_total: bool = False
    has_gaps: bool = False  # only some moments have a value, which then stands for a while

    def column(self, columns: Mapping[str, npt.NDArray[np.float64]]) -> str | None:
        """Find the first of the names that has a value at all."""
        found = (n for n in self.names if n in columns and not np.isnan(columns[n]).all())
        return next(found, None)

    def draw(
        self,
        ax: Any,
        times: npt.NDArray[np.float64],
        columns: Mapping[str, npt.NDArray[np.float64]],
    ) -> None:
        name = cast("str", self.column(columns))
        values = columns[name]
        if self.is_running_total:
            values = np.diff(values, prepend=0.0)
        if self.has_gaps:
            there = ~np.isnan(values)
            times, values = times[there], values[there]
        marker = "o" if self.has_gaps and len(values) < 100 else ""
        ax.plot(times, values, color=label_colour(self.colour), marker=marker, markersize=3, lw=1.4)
        ax.set_ylabel(_TITLES.get(name, self.title))
        ax.grid(visible=True, alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
        if name not in _SCORES:
            ax.set_ylim(bottom=0)
        if self.is_count:
            ax.yaxis.set_major_formatter("{x:,.0f}")


_SCORES = ("f1", "f1_macro", "accuracy")
_TITLES = {"f1_macro": "macro F1", "accuracy": "accuracy"}
_PANELS = (
    _Panel("F1", _SCORES, 0),
    _Panel("active rows", ("active", "active_rows", "rows"), 2, is_count=True),
    _Panel("rows rebuilt", ("rows_rebuilt",), 1, is_count=True, is_running_total=True),
    _Panel("worst gap", ("worst_gap",), 3, has_gaps=True),
)
_TIMES = ("examples", "updates", "requests", "step")


def _columns(history: Any) -> dict[str, npt.NDArray[np.float64]]:
    """Read the columns that can be drawn, in whatever form the history comes."""
    if hasattr(history, "columns"):  # a DataFrame, of pandas or another
        history = {str(name): history[name] for name in history.columns}
    elif callable(getattr(history, "rows", None)):
        history = history.rows()
    if isinstance(history, (list, tuple)):
        names = {name: None for point in history for name in _as_point(point)}
        history = {name: [point.get(name) for point in history] for name in names}
    if not isinstance(history, Mapping):
        raise InvalidParameter(
            f"history={show(history)}: give a result of evertree.evaluate, a DataFrame, a list of "
            "dicts, or a mapping from names to columns"
        )
    wanted = {name for panel in _PANELS for name in panel.names} | set(_TIMES)
    columns = {name: _numbers(name, history[name]) for name in history if name in wanted}
    if len({len(column) for column in columns.values()}) > 1:
        lengths = {name: len(column) for name, column in columns.items()}
        raise InvalidParameter(f"history has columns of different lengths: {show(lengths)}")
    return columns


def _as_point(point: Any) -> Mapping[str, Any]:
    if isinstance(point, Mapping):
        return point
    raise InvalidParameter(f"history has a member {show(point)}: each point has to be a dict")


def _numbers(name: str, column: Any) -> npt.NDArray[np.float64]:
    try:
        return np.array([math.nan if v is None else float(v) for v in column], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"history[{name!r}]={show(column)} is not a column of numbers"
        ) from error


def _times(
    columns: Mapping[str, npt.NDArray[np.float64]],
) -> tuple[str, npt.NDArray[np.float64]]:
    for name in _TIMES:
        if name in columns:
            return name, columns[name]
    return "step", np.arange(len(next(iter(columns.values()))), dtype=np.float64)
