"""What is shown while a model runs: figures in place on a terminal, a line now and then elsewhere.

The figures in place need rich (the extra `cli`); without it there are lines on a terminal, too.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from evertree.errors import MissingExtra
from evertree.extras import load

if TYPE_CHECKING:
    from evertree.evaluate import Audit, Point

_BARS = " ▁▂▃▄▅▆▇█"
_SECONDS = 2.0  # between two lines


class View(Protocol):
    """Shows the points of a run, until its end."""

    def show(self, point: Point) -> None:
        """Show one point."""

    def end(self) -> None:
        """Show nothing any more."""


def view_of(name: str, length: int | None) -> View:
    """Choose the view: in place where it can be, lines elsewhere."""
    if not sys.stderr.isatty():
        return Lines(name, length)
    try:
        return InPlace(name, length)
    except MissingExtra:
        return Lines(name, length)


def figures(point: Point, last_audit: Audit | None, length: int | None) -> list[tuple[str, str]]:
    """Say in words and numbers what a point shows."""
    of = "" if length is None else f" of about {max(length - point.built, point.examples):,}"
    now, overall = point.now, point.overall
    updates = point.times.updates
    rows = [
        ("rows judged", f"{point.examples:,}{of}"),
        ("F1 now · overall", f"{now.score:.1%} · {overall.score:.1%}"),
        ("accuracy overall", f"{overall.accuracy:.1%}"),
        ("µs per update", f"{point.times.learn_s / updates * 1e6:.1f}" if updates else "–"),
    ]
    if point.active is not None:
        rows.append(("active rows", f"{point.active:,}"))
    rows += [
        (title, f"{point.stats[name]:,}")
        for name, title in (("nodes", "nodes"), ("rebuilds", "rebuilds"))
        if name in point.stats
    ]
    if last_audit is not None:
        mark = "✓" if last_audit.ok else "✗"
        rows.append(("certificate", f"{mark} worst gap {last_audit.worst_gap:.4f}"))
    return rows


class Lines:
    """One line every few seconds, on stderr."""

    def __init__(self, name: str, length: int | None) -> None:
        self._name, self._length = name, length
        self._audit: Audit | None = None
        self._next = time.monotonic() + _SECONDS

    def show(self, point: Point) -> None:
        """Write a line, if the last one is old enough."""
        self._audit = point.audit or self._audit
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _SECONDS
            texts = (f"{title} {text}" for title, text in figures(point, self._audit, self._length))
            sys.stderr.write(f"{self._name}: {', '.join(texts)}\n")

    def end(self) -> None:
        """Leave the lines where they are."""


class InPlace:
    """Figures that change in place, with the course of F1, by rich."""

    def __init__(self, name: str, length: int | None) -> None:
        self._table: Any = load("rich.table", "cli", "the live view")
        console = load("rich.console", "cli", "the live view").Console(stderr=True)
        self._live = load("rich.live", "cli", "the live view").Live(
            console=console, refresh_per_second=8, transient=True
        )
        self._name, self._length = name, length
        self._course: deque[float] = deque(maxlen=48)
        self._audit: Audit | None = None

    def show(self, point: Point) -> None:
        """Draw over the last picture."""
        self._audit = point.audit or self._audit
        self._course.append(point.now.score)
        table = self._table.Table(title=self._name, show_header=False, title_justify="left")
        for title, text in figures(point, self._audit, self._length):
            table.add_row(title, text)
        table.add_row("F1 over time", course(self._course))
        if self._length:
            # What was built at once is done before the first row is judged.
            table.add_row("progress", bar(point.examples / max(self._length - point.built, 1)))
        self._live.start()  # nothing happens if it has started
        self._live.update(table)

    def end(self) -> None:
        """Take the figures off the screen: a table of all models comes at the end."""
        self._live.stop()


def course(values: deque[float]) -> str:
    """Draw values between 0 and 1 as bars, between the lowest and the highest of them.

    >>> course(deque([0.5, 0.75, 1.0]))
    ' ▄█'
    """
    low, high = min(values), max(values)
    spread = (high - low) or 1.0
    return "".join(_BARS[round((value - low) / spread * (len(_BARS) - 1))] for value in values)


def bar(share: float, width: int = 40) -> str:
    """Draw how much is done.

    >>> bar(0.5, width=10)
    '█████─────  50%'
    """
    done = min(max(share, 0.0), 1.0)
    full = round(done * width)
    return "█" * full + "─" * (width - full) + f" {done:4.0%}"
