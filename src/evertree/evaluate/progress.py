"""A line on the terminal that says how far a run is; nothing where there is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evertree.evaluate.result import Point

_SECONDS = 0.2  # between two lines, so that a fast run is not slowed down by them


def on_terminal(wanted: bool | None, length: int | None) -> Callable[[Point], None]:
    """Give a function that shows each point; `wanted=None` shows them on a terminal only."""
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        return lambda point: None  # noqa: ARG005
    return _Line(length)


class _Line:
    def __init__(self, length: int | None) -> None:
        self.length = length
        self.started = time.monotonic()
        self.shown = 0.0
        self.width = 0

    def __call__(self, point: Point) -> None:
        now = time.monotonic()
        last = self.length is not None and point.examples >= self.length
        if now - self.shown < _SECONDS and not last:
            return
        self.shown = now
        text = self.text(point, now - self.started)
        sys.stderr.write("\r" + text.ljust(self.width))
        sys.stderr.flush()
        self.width = len(text)

    def text(self, point: Point, seconds: float) -> str:
        of = "" if self.length is None else f" of {self.length:,}"
        scores = point.overall
        score = f"macro F1 {scores.f1_macro:.3f}" if scores.f1 is None else f"F1 {scores.f1:.3f}"
        rate = point.examples / seconds if seconds else 0.0
        return f"{point.examples:,}{of} examples · {score} · {rate:,.0f} examples/s"
