"""A line on the terminal that says how far a run is; nothing where there is no terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evertree.evaluate.result import Point

_SECONDS = 0.2  # between two lines, so that a fast run is not slowed down by them


class Progress:
    """Shows each point on stderr. `wanted=None`: on a terminal only. O(1), some times a second."""

    def __init__(self, wanted: bool | None, length: int | None) -> None:
        self._on = sys.stderr.isatty() if wanted is None else wanted
        self._length = length
        self._started = time.monotonic()
        self._shown = 0.0
        self._last: Point | None = None
        self._width = 0

    def __call__(self, point: Point) -> None:
        """Show this point, unless another was shown just now."""
        self._last = point
        now = time.monotonic()
        if self._on and now - self._shown >= _SECONDS:
            self._shown = now
            self._show(point)

    def end(self) -> None:
        """Show the last point, and end the line."""
        if self._on and self._last is not None:
            self._show(self._last)
            sys.stderr.write("\n")

    def _show(self, point: Point) -> None:
        of = "" if self._length is None else f" of {self._length - point.built:,}"
        score = f"F1 {point.overall.score:.3f}"
        rate = point.examples / max(time.monotonic() - self._started, 1e-9)
        text = f"{point.examples:,}{of} examples · {score} · {rate:,.0f} examples/s"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)
