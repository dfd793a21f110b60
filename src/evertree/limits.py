"""What a tree may be: the paper's α, β, k, h and ε, checked once, when a tree is made.

A value that makes no sense is refused with the rule and the way out; none is guessed or clipped.
Knows how to write a value down (encoding) and the errors, nothing else.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from evertree.encoding import show
from evertree.errors import InvalidParameter

_FEATURES_MAX = 2**31 - 1
# No tree is larger or deeper than these, so nothing changes by cutting here.
_SAMPLES_MAX = 2**32 - 1
_DEPTH_MAX = 2**31 - 1

_RULES = {
    "n_features": "is not an int from 1 to 2**31 - 1: it is how many numbers a row has",
    "max_gap": "is not in (0, 1]: it is the largest loss of Gini gain that a split may have; "
    "0.1 is the default",
    "window_gap": "is not in (0, 1]: it is the largest loss of Gini gain that a split may have in "
    "the tree of a window; 0.3 is the default",
    "min_impurity": "is not in [0, 1]: a set with at least this Gini impurity is split; "
    "0.01 is the default",
    "min_samples_split": "is not an int >= 2: a set of fewer examples is a leaf; 2 is the default",
    "max_depth": "is neither None nor an int >= 0: nodes at this depth are leaves; "
    "None means no limit",
    "epsilon": "is neither None nor a finite number >= 0: it is the fraction of changes after "
    "which the paper's rule rebuilds; None, the default, is the certified rule",
    "n_jobs": "is neither None nor an int other than 0: it is how many threads a large build may "
    "use; None means 1, -1 all processors, -2 all but one",
}


@dataclass(frozen=True)
class Limits:
    """The parameters of one tree, as it uses them. O(1).

    >>> Limits.checked(3, categorical=[2, 0], max_depth=np.int64(4)).categorical
    (0, 2)
    """

    n_features: int
    categorical: tuple[int, ...]
    max_gap: float
    min_impurity: float
    min_samples_split: int
    max_depth: int | None
    epsilon: float | None
    n_jobs: int = 1

    @classmethod
    def checked(
        cls,
        n_features: object,
        categorical: object = (),
        max_gap: object = 0.1,
        min_impurity: object = 0.01,
        min_samples_split: object = 2,
        max_depth: object = None,
        epsilon: object = None,
        n_jobs: object = None,
    ) -> Limits:
        """Check every parameter; raise InvalidParameter at the first that is wrong."""
        width = _whole("n_features", n_features, 1, _FEATURES_MAX)
        return cls(
            n_features=width,
            categorical=_positions(categorical, width),
            max_gap=_max_gap(max_gap),
            min_impurity=_real("min_impurity", min_impurity, 0.0, 1.0),
            min_samples_split=_whole("min_samples_split", min_samples_split, 2),
            max_depth=None if max_depth is None else _whole("max_depth", max_depth, 0),
            epsilon=None if epsilon is None else _real("epsilon", epsilon, 0.0),
            n_jobs=_workers(n_jobs),
        )

    @property
    def certified(self) -> bool:
        """Whether the rule of a tree with these limits keeps every split within max_gap."""
        if self.epsilon is None:
            return True
        # In exact fractions: the limits are the doubles that were given.
        epsilon, alpha, beta = map(Fraction, (self.epsilon, self.min_impurity, self.max_gap))
        few_enough_for_leaves = epsilon < Fraction(1, self.min_samples_split)
        return few_enough_for_leaves and epsilon < alpha / 5 and epsilon <= beta / (2 + beta)

    @property
    def min_samples_split_in_core(self) -> int:
        """As the core takes it: cut to what it can hold."""
        return min(self.min_samples_split, _SAMPLES_MAX)

    @property
    def max_depth_in_core(self) -> int:
        """As the core takes it: cut to what it can hold, -1 for no limit."""
        return -1 if self.max_depth is None else min(self.max_depth, _DEPTH_MAX)


def whole(name: str, value: object, low: int, rule: str) -> int:
    """Check a whole number that is not a limit of a tree; `rule` says what is wrong with it."""
    return _whole(name, value, low, rule=rule)


def gap(name: str, value: object) -> float:
    """Check a β that is not that of one tree alone."""
    return _max_gap(value, name)


def _whole(name: str, value: object, low: float, high: float = math.inf, rule: str = "") -> int:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        number = int(value)
        if low <= number <= high:
            return number
    raise _wrong(name, value, rule)


def _real(name: str, value: object, low: float, high: float = math.inf) -> float:
    numeric = (int, float, np.integer, np.floating)
    if isinstance(value, numeric) and not isinstance(value, bool) and low <= value <= high:
        try:
            number = float(value)
        except OverflowError:  # an int beyond every float
            number = math.inf
        if math.isfinite(number):
            return number
    raise _wrong(name, value)


def _max_gap(value: object, name: str = "max_gap") -> float:
    number = _real(name, value, 0.0, 1.0)
    if number == 0:
        raise _wrong(name, value)
    return number


def _workers(n_jobs: object) -> int:
    """As many threads as were asked for; more than there are processors would only be slower."""
    processors = os.cpu_count() or 1
    number = 1 if n_jobs is None else _whole("n_jobs", n_jobs, -math.inf)
    if number == 0:
        raise _wrong("n_jobs", n_jobs)
    return min(number, processors) if number > 0 else max(1, processors + 1 + number)


def _positions(value: object, n_features: int) -> tuple[int, ...]:
    way_out = (
        "it lists the positions of the features that are codes of categories, such as [0, 3], "
        f"each an int from 0 to {n_features - 1}; for a mask write np.flatnonzero(mask)"
    )
    try:
        members = list(value)  # type: ignore[call-overload]
    except MemoryError:
        raise
    except Exception as error:
        raise _wrong("categorical", value, f"is not a list: {way_out}") from error
    rule = f"is not the position of a feature: {way_out}"
    seen: set[int] = set()
    for place, member in enumerate(members):
        position = _whole(f"categorical[{place}]", member, 0, n_features - 1, rule)
        if position in seen:
            raise _wrong(f"categorical[{place}]", member, f"is named twice: {way_out}")
        seen.add(position)
    return tuple(sorted(seen))


def _wrong(name: str, value: object, rule: str = "") -> InvalidParameter:
    return InvalidParameter(f"{name}={show(value)} {rule or _RULES[name]}")
