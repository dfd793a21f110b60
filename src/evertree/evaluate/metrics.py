"""How good answers are: accuracy, F1 and Cohen's kappa, all from one table of counts.

The values are those of scikit-learn for the same answers. Knows labels and numbers, nothing else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final


class _NoAnswer(Enum):
    NO_ANSWER = "no answer"

    def __repr__(self) -> str:
        return "NO_ANSWER"


NO_ANSWER: Final = _NoAnswer.NO_ANSWER
"""What a model answers that has nothing to answer from; it is counted, and never right."""


@dataclass(frozen=True)
class Scores:
    """How good some answers were. `f1` is that of one class, None where none was named."""

    accuracy: float
    kappa: float
    f1_macro: float
    f1: float | None = None

    @property
    def score(self) -> float:
        """The F1 to look at: that of the one class where one was named, else the mean of all."""
        return self.f1_macro if self.f1 is None else self.f1


@dataclass
class Confusion:
    """How often each (truth, answer) occurred; the counts may be weights.

    >>> answers = Confusion.of(["yes", "yes", "no", "no"], ["yes", "no", "no", "no"])
    >>> answers.accuracy(), answers.f1("no"), answers.kappa()
    (0.75, 0.8, 0.5)
    """

    counts: Counter[tuple[Hashable, Hashable]] = field(default_factory=Counter)

    @classmethod
    def of(cls, truths: Iterable[Hashable], answers: Iterable[Hashable]) -> Confusion:
        """Count pairs. O(n)."""
        return cls(Counter(zip(truths, answers, strict=True)))

    def add(self, other: Confusion) -> None:
        """Add the counts of other answers. O(different pairs)."""
        self.counts.update(other.counts)

    def fade(self, truths: Iterable[Hashable], answers: Iterable[Hashable], factor: float) -> None:
        """Count pairs one after the other; each makes all before it count `factor` as much. O(n).

        >>> faded = Confusion()
        >>> faded.fade(["yes", "yes", "no"], ["yes", "no", "no"], factor=0.5)
        >>> faded.counts[("yes", "yes")], faded.counts[("yes", "no")], faded.counts[("no", "no")]
        (0.25, 0.5, 1.0)
        """
        pairs = list(zip(truths, answers, strict=True))
        weights: dict[tuple[Hashable, Hashable], float] = dict(self.counts)
        shrunk = factor ** len(pairs)
        for pair in weights:
            weights[pair] *= shrunk
        for age, pair in enumerate(reversed(pairs)):
            weights[pair] = weights.get(pair, 0.0) + factor**age
        self.counts = Counter(weights)

    def total(self) -> float:
        """How many answers there were. O(different pairs)."""
        return sum(self.counts.values())

    def labels(self) -> list[Hashable]:
        """Every label that was true or answered, in the order of their first occurrence."""
        seen: dict[Hashable, None] = {}
        for pair in self.counts:
            seen.update(dict.fromkeys(pair))
        seen.pop(NO_ANSWER, None)
        return list(seen)

    def accuracy(self) -> float:
        """Share of answers that were right; nan where there are none."""
        return _ratio(self._right(), self.total())

    def f1(self, label: Hashable) -> float:
        """F1 of one class: the harmonic mean of precision and recall; 0 where it never occurs."""
        both = said = was = 0.0
        for (truth, answer), count in self.counts.items():
            both += count if truth == label and answer == label else 0
            said += count if answer == label else 0
            was += count if truth == label else 0
        return 2 * both / (said + was) if said + was else 0.0

    def f1_macro(self) -> float:
        """Mean F1 of all classes that were true or answered; nan where there are none."""
        said, was, both = self._said(), self._was(), self._both()
        values = [2 * both[label] / (said[label] + was[label]) for label in self.labels()]
        return _ratio(sum(values), len(values))

    def kappa(self) -> float:
        """Cohen's kappa: 1 is perfect, 0 is chance; nan where chance is always right."""
        total = self.total()
        said, was = self._said(), self._was()
        by_chance = _ratio(sum(was[label] * said[label] for label in was), total * total)
        return _ratio(self.accuracy() - by_chance, 1 - by_chance)

    def scores(self, positive: Hashable | None) -> Scores:
        """All of them at once; `positive` is the class that `f1` is of. O(different pairs)."""
        return Scores(
            accuracy=self.accuracy(),
            kappa=self.kappa(),
            f1_macro=self.f1_macro(),
            f1=None if positive is None else self.f1(positive),
        )

    def _right(self) -> float:
        return sum(count for (truth, answer), count in self.counts.items() if truth == answer)

    def _was(self) -> Counter[Hashable]:
        return _sums((truth, count) for (truth, _), count in self.counts.items())

    def _said(self) -> Counter[Hashable]:
        return _sums((answer, count) for (_, answer), count in self.counts.items())

    def _both(self) -> Counter[Hashable]:
        return _sums((t, count) for (t, answer), count in self.counts.items() if t == answer)


def _sums(counts: Iterable[tuple[Hashable, float]]) -> Counter[Hashable]:
    sums: Counter[Hashable] = Counter()
    for label, count in counts:
        sums[label] += count  # type: ignore[assignment]  # a Counter takes any numbers
    return sums


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else math.nan
