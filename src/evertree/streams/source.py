"""Where examples come from: a table with a label, read in batches and as often as one likes.

A source has `n_features` numbers per row; `categorical` lists the features that are codes of
categories, and `categories` what the codes stand for. What `EverTree` needs to know of a table is
thus known before its first row is read. No source holds more than one batch at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from evertree.encoding import Encoder, Labels, show
from evertree.errors import InvalidExample, InvalidParameter
from evertree.limits import Limits

Time: TypeAlias = float | datetime

BATCH = 4096  # rows read at a time: large enough to be quick, small enough to forget about


class Example(NamedTuple):
    """One labelled row, with its time where the source knows it."""

    x: npt.NDArray[np.float64]
    y: Hashable
    time: Time | None = None


class Batch(NamedTuple):
    """Some examples in a row; `times` is None where the source has no time."""

    X: npt.NDArray[np.float64]
    y: list[Any]
    times: list[Time] | None = None


@dataclass(frozen=True)
class Source:
    """Examples in their own order. Iterate over it for one at a time, or over `batches()`.

    `length` is None where it is not known without reading everything. `categories` has, for each
    feature whose values are texts, the code of each text that has been seen so far. Reading costs
    O(d) per example and holds one batch in memory.

    >>> source = from_arrays([[31.0], [62.0]], ["yes", "no"])
    >>> source.n_features, len(list(source)), next(iter(source))
    (1, 2, Example(x=array([31.]), y='yes', time=None))
    """

    name: str
    features: tuple[str, ...]
    read: Callable[[], Iterator[Batch]] = field(repr=False)
    categorical: tuple[int, ...] = ()
    length: int | None = None
    timed: bool = False
    categories: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)

    @property
    def n_features(self) -> int:
        """How many numbers a row has. O(1)."""
        return len(self.features)

    def batches(self) -> Iterator[Batch]:
        """Read from the beginning, a batch at a time."""
        return self.read()

    def relabelled(self, label: Callable[[Any], Hashable]) -> Source:
        """Make a source of the same rows with other labels: `label` is called with each old one.

        >>> source = from_arrays([[31.0], [62.0]], ["cat", "dog"]).relabelled("cat".__eq__)
        >>> [example.y for example in source]
        [True, False]
        """

        def read() -> Iterator[Batch]:
            for X, y, times in self.read():
                yield Batch(X, list(map(label, y)), times)

        return replace(self, read=read)

    def __iter__(self) -> Iterator[Example]:
        """Read from the beginning, one example at a time."""
        for X, y, times in self.read():
            none: list[Any] = [None] * len(y)
            yield from map(Example, X, y, times or none)


def from_arrays(
    X: npt.ArrayLike,
    y: Labels,
    *,
    time: npt.ArrayLike | None = None,
    categorical: Sequence[int] = (),
    features: Sequence[str] | None = None,
    name: str = "arrays",
) -> Source:
    """Make a source of a numpy array of rows (or what numpy takes for one), and their labels.

    O(1); rows become float64 when they are read, so a memory-mapped array stays on disk. `time`
    holds numbers or datetime64.

    >>> source = from_arrays(np.arange(6).reshape(3, 2), ["a", "b", "a"])
    >>> [example.y for example in source], source.features
    (['a', 'b', 'a'], ('x0', 'x1'))
    """
    rows = np.asanyarray(X)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InvalidExample(
            f"X has shape {rows.shape}: a table has one row per example and at least one column; "
            "X.reshape(-1, 1) makes a column of a flat array"
        )
    n, d = rows.shape
    codes = Limits.checked(d, categorical).categorical
    labels = Encoder(d).labels(y, n)
    times = None if time is None else _times(np.asarray(time), n)
    names = tuple(features) if features is not None else tuple(f"x{j}" for j in range(d))
    if len(names) != d or len(set(names)) != d:
        raise InvalidParameter(
            f"features={show(names)} does not name the {d} columns of X: give {d} different names"
        )

    def read() -> Iterator[Batch]:
        encoder = Encoder(d, codes)
        for start in range(0, n, BATCH):
            stop = min(start + BATCH, n)
            yield Batch(
                _checked(encoder, rows, start, stop),
                labels[start:stop],
                None if times is None else times[start:stop],
            )

    return Source(
        name=name,
        features=names,
        read=read,
        categorical=codes,
        length=n,
        timed=times is not None,
    )


def _checked(
    encoder: Encoder, rows: npt.NDArray[Any], start: int, stop: int
) -> npt.NDArray[np.float64]:
    try:
        return encoder.matrix(rows[start:stop])
    except InvalidExample as error:
        raise InvalidExample(f"in X[{start}:{stop}], counted from its beginning: {error}") from None


def _times(times: npt.NDArray[Any], n: int) -> list[Time]:
    if times.shape != (n,):
        raise InvalidExample(
            f"time has shape {times.shape}, X has {n} rows: give one time per row, shape ({n},)"
        )
    if times.dtype.kind == "M":
        missing, found = np.isnat(times), times.astype("datetime64[us]").tolist()
    elif times.dtype.kind in "iuf":
        missing, found = ~np.isfinite(times), times.tolist()
    else:
        raise InvalidExample(
            f"time[0] and the rest have dtype={times.dtype}: a time is a number or a datetime64; "
            "np.asarray(time, 'datetime64[us]') turns texts and datetimes into one"
        )
    if missing.any():
        place = int(np.argmax(missing))
        raise InvalidExample(
            f"time[{place}] is {times[place]}: every example of a timed source has a time; "
            "leave out the rows that have none"
        )
    return list(found)
