"""What a run has shown: scores and times, overall and over time; as a table, a picture, JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Hashable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from evertree.encoding import token
from evertree.evaluate.metrics import NO_ANSWER, Confusion, Scores
from evertree.extras import load


@dataclass
class Times:
    """Seconds spent in the model's calls, and how many updates they were."""

    build_s: float = 0.0  # the first batch
    learn_s: float = 0.0  # all other updates
    label_s: float = 0.0
    updates: int = 0

    def copy(self) -> Times:
        """Give the same times, apart from these."""
        return replace(self)

    def since(self, before: Times) -> Times:
        """Give what was spent since then."""
        return Times(
            self.build_s - before.build_s,
            self.learn_s - before.learn_s,
            self.label_s - before.label_s,
            self.updates - before.updates,
        )


@dataclass(frozen=True)
class Audit:
    """What `certify()` found."""

    ok: bool
    worst_gap: float
    breaches: tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """One moment of a run: `now` are the scores since the last point, `times` likewise."""

    examples: int  # answers judged so far
    now: Scores
    overall: Scores
    faded: Scores | None
    times: Times
    active: int | None
    stats: dict[str, int]
    audit: Audit | None
    built: int = 0  # examples of the first batch, which came before all answers


@dataclass(frozen=True)
class Result:
    """What a run has shown.

    The overall scores are `accuracy`, `kappa`, `f1_macro` and `f1` (of the label `positive`); the
    course is in `points`. Times are of the model's calls alone: `build_s` for the first batch,
    `learn_us` per update, `label_us` per answer.

    >>> from evertree import evaluate, streams
    >>> stream = streams.incremental(W=0)(streams.sea(n=2_500, seed=1, noise=0.0))
    >>> result = evaluate.prequential(stream, evaluate.NoChange(), positive=1)
    >>> [point.examples for point in result.points], round(result.accuracy, 3)
    ([1000, 2000, 2500], 0.579)
    """

    name: str
    stream: str
    positive: Hashable | None
    points: tuple[Point, ...] = field(repr=False)
    confusion: Confusion = field(repr=False)
    times: Times = field(repr=False)

    # --- overall

    @property
    def examples(self) -> int:
        """How many answers were judged."""
        return self.points[-1].examples if self.points else 0

    @property
    def updates(self) -> int:
        """How many insertions and deletions there were after the first batch."""
        return self.times.updates

    @property
    def scores(self) -> Scores:
        """All scores over the whole run."""
        return self.confusion.scores(self.positive)

    @property
    def accuracy(self) -> float:
        """Share of answers that were right."""
        return self.confusion.accuracy()

    @property
    def kappa(self) -> float:
        """Cohen's kappa over the whole run."""
        return self.confusion.kappa()

    @property
    def f1_macro(self) -> float:
        """Mean F1 of all classes over the whole run."""
        return self.confusion.f1_macro()

    @property
    def f1(self) -> float | None:
        """F1 of the label `positive` over the whole run; None if none was named."""
        return None if self.positive is None else self.confusion.f1(self.positive)

    @property
    def build_s(self) -> float:
        """Seconds for the first batch."""
        return self.times.build_s

    @property
    def learn_s(self) -> float:
        """Seconds in insertions and deletions after the first batch."""
        return self.times.learn_s

    @property
    def label_s(self) -> float:
        """Seconds in answers."""
        return self.times.label_s

    @property
    def learn_us(self) -> float:
        """Microseconds per insertion or deletion; nan where there were none."""
        return _per(self.times.learn_s, self.times.updates)

    @property
    def learn_us_per_example(self) -> float:
        """Microseconds of learning per answer: fair also to models that ignore deletions."""
        return _per(self.times.learn_s, self.examples)

    @property
    def label_us(self) -> float:
        """Microseconds per answer; nan where there were none."""
        return _per(self.times.label_s, self.examples)

    @property
    def stats(self) -> dict[str, int]:
        """What the model said of itself last: nodes, rebuilds, rows rebuilt, ..."""
        return self.points[-1].stats if self.points else {}

    @property
    def audits(self) -> tuple[Audit, ...]:
        """Every audit, in order."""
        return tuple(point.audit for point in self.points if point.audit is not None)

    def __str__(self) -> str:
        """Say it in one line."""
        score = f"macro F1 {self.f1_macro:.4f}" if self.f1 is None else f"F1 {self.f1:.4f}"
        return (
            f"{self.name}: {score}, accuracy {self.accuracy:.4f}, kappa {self.kappa:.4f} over "
            f"{self.examples:,} examples; {self.learn_us:.2f} µs per update, "
            f"{self.label_us:.2f} µs per label"
        )

    # --- as something else

    def rows(self) -> list[dict[str, Any]]:
        """Give the course as plain data, one flat dictionary per point. O(points)."""
        return [_row(point) for point in self.points]

    def to_frame(self) -> Any:
        """Give the course as a pandas DataFrame, one row per point (the extra `plot`)."""
        pd = load("pandas", "plot", "to_frame()")
        return pd.DataFrame(self.rows())

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Give everything as JSON, and write it to `path` if one is given. nan becomes null.

        >>> from evertree import evaluate, streams
        >>> stream = streams.incremental(W=0)(streams.sea(n=10, seed=1, noise=0.0))
        >>> json.loads(evaluate.prequential(stream, evaluate.NoChange()).to_json())["examples"]
        10
        """
        overall = {
            "name": self.name,
            "stream": self.stream,
            "positive": None if self.positive is None else _plain(self.positive),
            "examples": self.examples,
            "updates": self.updates,
            **asdict(self.scores),
            "build_s": self.build_s,
            "learn_s": self.learn_s,
            "label_s": self.label_s,
            "learn_us": self.learn_us,
            "label_us": self.label_us,
            "stats": self.stats,
            "audits": [asdict(audit) for audit in self.audits],
            "confusion": [
                {"truth": _plain(truth), "answer": _plain(answer), "count": count}
                for (truth, answer), count in self.confusion.counts.items()
            ],
            "points": self.rows(),
        }
        text = json.dumps(_without_nan(overall), indent=1, ensure_ascii=False, allow_nan=False)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the course as a matplotlib Figure, and save it to `path` if one is given."""
        return plot([self], path)


def plot(results: list[Result], path: str | os.PathLike[str] | None = None) -> Any:
    """Draw the courses of several runs into one matplotlib Figure (the extra `plot`).

    Above: the score at each point, F1 of `positive` where one was named and else macro F1. Below:
    microseconds per update, on a logarithmic scale.
    """
    figure_module = load("matplotlib.figure", "plot", "plot()")
    figure = figure_module.Figure(figsize=(9, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    for place, result in enumerate(results):
        # The first is the one that the others are compared with: on top, and thicker.
        style = {"linewidth": 1.0 if place else 1.8, "zorder": 2 if place else 3}
        examples = [point.examples for point in result.points]
        score = [point.now.score for point in result.points]
        overall = result.scores.score
        above.plot(examples, score, label=f"{result.name} (overall {overall:.3f})", **style)
        times = [_per(point.times.learn_s, point.times.updates) for point in result.points]
        below.plot(examples, times, **style)
    positives = {result.positive for result in results}
    one = next(iter(positives)) if len(positives) == 1 else None
    above.set_ylabel("macro F1" if one is None else f"F1 of {one!r}")
    # Above the curves, which fill the room below.
    above.legend(
        fontsize="small", frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2
    )
    below.set_ylabel("µs per update")
    if any(result.times.learn_s for result in results):
        below.set_yscale("log")
    below.set_xlabel("examples")
    for axes in (above, below):
        axes.grid(visible=True, alpha=0.3)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


# --- plain data


def _row(point: Point) -> dict[str, Any]:
    row: dict[str, Any] = {"examples": point.examples, **_named(point.now, "")}
    row |= _named(point.overall, "_overall")
    if point.faded is not None:
        row |= _named(point.faded, "_faded")
    row |= {
        "updates": point.times.updates,
        "learn_us": _per(point.times.learn_s, point.times.updates),
        "learn_s": point.times.learn_s,
        "label_s": point.times.label_s,
        "active": point.active,
        **point.stats,
    }
    if point.audit is not None:
        row |= {"certified": point.audit.ok, "worst_gap": point.audit.worst_gap}
    return row


def _named(scores: Scores, suffix: str) -> dict[str, float]:
    return {f"{name}{suffix}": value for name, value in asdict(scores).items() if value is not None}


def _per(seconds: float, count: int) -> float:
    return seconds / count * 1e6 if count else math.nan


def _plain(label: Hashable) -> str | float | None:
    if label is NO_ANSWER:
        return None
    return label if isinstance(label, (str, int, float)) else token(label)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(member) for member in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
