"""What can be run over a stream: the protocol, two baselines, and other people's models.

An `EverTree` is a model as it is. So is anything with `label`, `insert` and `delete`: that is the
door for learners in another language, such as MOA's behind a pipe (`moa`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from evertree.encoding import Labels, Row, show
from evertree.errors import ExampleNotFound, InvalidParameter
from evertree.evaluate.metrics import NO_ANSWER

Deletions: TypeAlias = Literal["refuse", "ignore"]


@runtime_checkable
class Model(Protocol):
    """What a stream asks of a model.

    `label` answers with NO_ANSWER, or raises EmptyTree, while there is nothing to answer from.
    `insert_many(X, y)` and `delete_many(X, y)` are used where they are there, `stats()` (of numbers
    by name), `certify()` and `len()` as well.
    """

    def label(self, x: Row) -> Hashable:
        """Answer with a label for x."""

    def insert(self, x: Row, y: Hashable) -> Any:
        """Learn one example."""

    def delete(self, x: Row, y: Hashable) -> Any:
        """Forget one example."""


def as_model(model: Any) -> Model:
    """Take a model as it is, or put river's learners into words of ours. O(1)."""
    if isinstance(model, Model):
        return model
    if hasattr(model, "learn_one") and hasattr(model, "predict_one"):
        return RiverModel(model)
    if hasattr(model, "fit") and hasattr(model, "predict"):
        raise InvalidParameter(
            f"{type(model).__name__} learns from a whole table: say how often it is to be fitted "
            f"again, as in Refitted({type(model).__name__}(...), every=1000)"
        )
    raise InvalidParameter(
        f"{show(model)} ({type(model).__name__}) is not a model: it has no label(x), insert(x, y) "
        "and delete(x, y), nor learn_one and predict_one"
    )


# --- baselines


class NoChange:
    """Answers with the label that was inserted last. O(1) per request.

    On a stream whose labels come in runs it is hard to beat: it belongs into every table.

    >>> model = NoChange()
    >>> model.insert([31.0], "yes")
    >>> model.label([62.0])
    'yes'
    """

    def __init__(self) -> None:
        self._last: Hashable = NO_ANSWER

    def label(self, x: Row) -> Hashable:  # noqa: ARG002
        """Answer with the last label."""
        return self._last

    def insert(self, x: Row, y: Hashable) -> None:  # noqa: ARG002
        """Remember the label."""
        self._last = y

    def insert_many(self, X: Iterable[Row], y: Labels) -> None:  # noqa: ARG002
        """Remember the last of the labels."""
        self._last = y[-1]

    def delete(self, x: Row, y: Hashable) -> None:
        """Forget nothing: the last label stays the last."""


class MajorityClass:
    """Answers with the most frequent label of the active set, of equals the first that came in.

    O(labels) to label, O(1) to insert and delete.

    >>> model = MajorityClass()
    >>> for y in ("yes", "no", "no"):
    ...     model.insert([31.0], y)
    >>> model.label([62.0])
    'no'
    """

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()

    def label(self, x: Row) -> Hashable:  # noqa: ARG002
        """Answer with the most frequent label."""
        return max(self._counts, key=self._counts.__getitem__, default=NO_ANSWER)

    def insert(self, x: Row, y: Hashable) -> None:  # noqa: ARG002
        """Count the label."""
        self._counts[y] += 1

    def delete(self, x: Row, y: Hashable) -> None:
        """Count the label no more."""
        if not self._counts[y]:
            raise _not_active(x, y)
        self._counts[y] -= 1
        if not self._counts[y]:
            del self._counts[y]


# --- other people's models


class Refitted:
    """A scikit-learn classifier that is fitted anew to the active set, every so often.

    every   an int: after so many updates. A float: after this share of the examples of the last
            fit has changed, as Algorithm 1 of the paper does at the root

    A first batch is fitted at once. Cost: that of fit(), and of predict() for one row.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = Refitted(DecisionTreeClassifier(), every=2)
    >>> model.insert_many([[31.0], [62.0]], ["yes", "no"])
    >>> model.label([70.0])
    'no'
    >>> model.insert([70.0], "yes"), model.label([70.0])
    (None, 'no')
    >>> model.insert([71.0], "yes"), model.label([70.0])
    (None, 'yes')
    """

    def __init__(self, estimator: Any, every: Any) -> None:
        whole = isinstance(every, int) and not isinstance(every, bool) and every >= 1
        if not (whole or (isinstance(every, float) and every > 0)):
            raise InvalidParameter(
                f"every={show(every)} is neither an int >= 1 (updates between two fits) nor a "
                "float > 0 (changes between two fits, as a share of the examples fitted)"
            )
        self.estimator = estimator
        self.every = every
        self.fits = 0
        self._active = _ActiveSet()
        self._updates = 0
        self._limit: float = 0  # more updates than this, and it is fitted: the first one is
        self._fitted = False

    def label(self, x: Row) -> Hashable:
        """Answer as the last fit does."""
        if not self._fitted:
            return NO_ANSWER
        answer = self.estimator.predict(np.asarray(x, dtype=np.float64).reshape(1, -1))[0]
        plain: Hashable = answer.item() if isinstance(answer, np.generic) else answer
        return plain

    def insert(self, x: Row, y: Hashable) -> None:
        """Take one example in."""
        self._active.insert(x, y)
        self._updated()

    def delete(self, x: Row, y: Hashable) -> None:
        """Take one example out."""
        self._active.delete(x, y)
        self._updated()

    def insert_many(self, X: Iterable[Row], y: Labels) -> None:
        """Take many examples in, and fit."""
        for row, label in zip(X, y, strict=True):
            self._active.insert(row, label)
        self._fit()

    def __len__(self) -> int:
        """Count the active examples. O(1)."""
        return len(self._active)

    def stats(self) -> dict[str, int]:
        """Count the fits as rebuilds. O(1)."""
        return {"rebuilds": self.fits}

    def _updated(self) -> None:
        self._updates += 1
        if self._updates > self._limit:
            self._fit()

    def _fit(self) -> None:
        self._updates = 0
        self._limit = self.every - 1 if isinstance(self.every, int) else self.every * len(self)
        self._fitted = len(self) > 0
        if self._fitted:
            self.estimator.fit(*self._active.table())
            self.fits += 1


class RiverModel:
    """A classifier of river's. It cannot forget: `deletions` says what becomes of a deletion.

    deletions   "refuse": an error. "ignore": the model goes on with all that it has seen

    Rows become dictionaries {0: x[0], 1: x[1], ...}, which takes about a microsecond.
    """

    def __init__(self, model: Any, deletions: Deletions = "refuse") -> None:
        self.model = model
        self.deletions = check_deletions(deletions)

    def label(self, x: Row) -> Hashable:
        """Answer as predict_one does."""
        answer: Hashable = self.model.predict_one(_as_dict(x))
        return NO_ANSWER if answer is None else answer

    def insert(self, x: Row, y: Hashable) -> None:
        """Learn one example."""
        self.model.learn_one(_as_dict(x), y)

    def delete(self, x: Row, y: Hashable) -> None:  # noqa: ARG002
        """Refuse, or do nothing."""
        if self.deletions == "refuse":
            name = type(self.model).__name__
            raise cannot_forget(name, f"RiverModel({name}(), deletions='ignore')")


def check_deletions(deletions: Deletions) -> Deletions:
    """Take what is to become of deletions, or refuse it."""
    if deletions not in {"refuse", "ignore"}:
        raise InvalidParameter(f"deletions={show(deletions)} is neither 'refuse' nor 'ignore'")
    return deletions


def cannot_forget(name: str, otherwise: str) -> InvalidParameter:
    """Say that a learner cannot delete, and how it is allowed to go on without."""
    return InvalidParameter(
        f"{name} cannot forget, and this stream deletes: run it over incremental(), or say "
        f"that it may go on with all it has seen, {otherwise}"
    )


def _as_dict(x: Row) -> dict[int, float]:
    return dict(enumerate(x.tolist() if isinstance(x, np.ndarray) else x))


class _ActiveSet:
    """Examples that are in now, found by value. O(d) per request."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[Any, Hashable]] = {}
        self._numbers: dict[tuple[bytes, Hashable], list[int]] = {}
        self._next = 0

    def insert(self, x: Row, y: Hashable) -> None:
        row = np.array(x, dtype=np.float64)
        self._rows[self._next] = row, y
        self._numbers.setdefault((row.tobytes(), y), []).append(self._next)
        self._next += 1

    def delete(self, x: Row, y: Hashable) -> None:
        key = np.array(x, dtype=np.float64).tobytes(), y
        numbers = self._numbers.get(key)
        if not numbers:
            raise _not_active(x, y)
        del self._rows[numbers.pop()]
        if not numbers:
            del self._numbers[key]

    def table(self) -> tuple[Any, list[Hashable]]:
        X = np.array([row for row, _ in self._rows.values()])
        return X, [y for _, y in self._rows.values()]

    def __len__(self) -> int:
        return len(self._rows)


def _not_active(x: Row, y: Hashable) -> ExampleNotFound:
    return ExampleNotFound(
        f"no active example has x={show(x)} and label {show(y)}: only what is in can be deleted"
    )


Many: TypeAlias = Callable[[Iterable[Row], Labels], Any]


def many(model: Any, name: str) -> Many:
    """Give `model.insert_many` or `delete_many`, or the same made of single requests."""
    found = getattr(model, name, None)
    if found is not None:
        batch: Many = found
        return batch
    one = getattr(model, name.removesuffix("_many"))

    def one_by_one(X: Iterable[Row], y: Labels) -> None:
        for x, label in zip(X, y, strict=True):
            one(x, label)

    return one_by_one
