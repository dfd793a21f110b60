"""The input models of the paper: what happens to an example when its turn comes.

An input model turns a source of examples into a stream of requests. Each begins with the first W
examples as one batch (one Build); from then on every example is first labelled, so that whoever
runs the stream can judge the answer, and then learned:

    incremental      lab(x_t), ins(x_t, y_t)
    sliding_window   lab(x_t), del(x_{t-W}, y_{t-W}), ins(x_t, y_t)
    random_update    lab(x_t), then with probability p ins(x_t, y_t), else del of an active example

The print deletes x_{t-W+1} (W - 1 examples would stay; paper/MAP.md, S34). In the random update
model an example whose turn is a deletion is labelled and never inserted, as printed: "for all t".
By time, a window holds what is younger than W. What has left it goes before x_t is labelled,
because the clock tells so and no label is needed for it.
"""

from __future__ import annotations

import copy
import heapq
import itertools
import math
import numbers
import random
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

import numpy as np

from evertree.encoding import show
from evertree.errors import InvalidExample, InvalidParameter
from evertree.streams.checks import count, share
from evertree.streams.requests import Delete, DeleteMany, Insert, InsertMany, Label, Request
from evertree.streams.source import Source

Pair: TypeAlias = tuple[Any, Any]  # x and y
Timed: TypeAlias = tuple[Any, Any, Any]  # x, y and time
Examples: TypeAlias = Source | Iterable[tuple[Any, ...]]

# A request is made a few times per example; this is NamedTuple's own way without its checks.
_new = tuple.__new__

_FIRST = (
    "it is how many examples are built as the first batch; the source comes after it, as in "
    "incremental(W=1000)(source)"
)
_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")


@dataclass(frozen=True)
class InputModel:
    """A way to turn examples into requests: call it with a source.

    The source is a `Source`, or anything that gives (x, y) or (x, y, time) tuples.
    """

    name: str
    requests: Callable[[Examples], Iterator[Request]] = field(repr=False)

    def __call__(self, source: Examples) -> Stream:
        """Make the stream of requests; nothing is read yet."""
        return Stream(self, source)


@dataclass(frozen=True)
class Stream:
    """The requests that an input model makes of a source; as often repeatable as the source is."""

    model: InputModel
    source: Examples = field(repr=False)

    @property
    def length(self) -> int | None:
        """How many examples there are, those of the first batch included; None if not known."""
        return self.source.length if isinstance(self.source, Source) else None

    def __iter__(self) -> Iterator[Request]:
        """Read the source from its beginning."""
        return self.model.requests(self.source)


# --- the three models


def incremental(W: int = 1000) -> InputModel:
    """Insert only: build the first W examples, then label and insert the others.

    O(1) per example besides reading it. W=0 builds nothing.

    >>> for request in incremental(W=2)([([1.0], "a"), ([2.0], "b"), ([3.0], "a")]):
    ...     print(request)
    InsertMany(X=[[1.0], [2.0]], y=['a', 'b'])
    Label(x=[3.0], y='a')
    Insert(x=[3.0], y='a')
    """
    first = count("W", W, 0, _FIRST)
    return InputModel(f"incremental(W={first})", lambda source: _incremental(source, first))


def sliding_window(W: int | str | timedelta) -> InputModel:
    """Keep the last W examples, or, for a W such as "7d" or timedelta(days=7), those of that time.

    O(1) per example besides reading it and O(log n) by time; keeps what is in the window. By time,
    the first batch is all that comes within W of the first example; the window ends at the latest
    time seen, so an example that comes late stays for what is left of its time.

    >>> for request in sliding_window(W=2)([([1.0], "a"), ([2.0], "b"), ([3.0], "a")]):
    ...     print(request)
    InsertMany(X=[[1.0], [2.0]], y=['a', 'b'])
    Label(x=[3.0], y='a')
    Delete(x=[1.0], y='a')
    Insert(x=[3.0], y='a')
    >>> sliding_window("7 days")
    Traceback (most recent call last):
    ...
    evertree.errors.InvalidParameter: W='7 days' is not a window: give a number of examples >= 1, \
a timedelta, or a time such as '7d', '12h', '30min', '45s', '500ms' or '2w'
    """
    if isinstance(W, (str, timedelta)):
        span = _span(W)
        return InputModel(
            f"sliding_window(W={W!s})" if isinstance(W, timedelta) else f"sliding_window(W={W!r})",
            lambda source: _time_window(source, span),
        )
    size = _size(W)
    return InputModel(f"sliding_window(W={size})", lambda source: _sliding_window(source, size))


def random_update(p: float = 0.5, seed: int = 0, W: int = 1000) -> InputModel:
    """Insert with probability p, else delete an active example, each equally likely.

    O(1) per example besides reading it; keeps the active set. The same seed makes the same
    requests. Where nothing is active, the example is inserted. With p = 1/2 the size of the active
    set is a random walk that starts at W.

    >>> stream = random_update(p=0.5, seed=3, W=2)([([float(t)], "a") for t in range(5)])
    >>> [type(request).__name__ for request in stream]
    ['InsertMany', 'Label', 'Insert', 'Label', 'Delete', 'Label', 'Delete']
    """
    first = count("W", W, 0, _FIRST)
    insert = share("p", p, "it is the probability that a request is an insertion; the paper's: 0.5")
    chosen = count("seed", seed, 0, "the requests follow from it")
    return InputModel(
        f"random_update(p={insert}, seed={chosen}, W={first})",
        lambda source: _random_update(source, first, insert, chosen),
    )


def _incremental(source: Examples, W: int) -> Iterator[Request]:
    pairs = _pairs(source)
    yield from _first(list(itertools.islice(pairs, W)))
    for pair in pairs:
        yield _new(Label, pair)
        yield _new(Insert, pair)


def _sliding_window(source: Examples, W: int) -> Iterator[Request]:
    pairs = _pairs(source)
    window = deque(itertools.islice(pairs, W))
    yield from _first(window)
    for pair in pairs:
        yield _new(Label, pair)
        yield _new(Delete, window.popleft())
        yield _new(Insert, pair)
        window.append(pair)


def _random_update(source: Examples, W: int, p: float, seed: int) -> Iterator[Request]:
    chance = random.Random(seed).random  # noqa: S311  (a simulation, nothing secret)
    pairs = _pairs(source)
    active = [_apart(pair) for pair in itertools.islice(pairs, W)]
    yield from _first(active)
    for pair in pairs:
        yield _new(Label, pair)
        if chance() < p or not active:
            yield _new(Insert, pair)
            active.append(_apart(pair))
        else:
            position = int(chance() * len(active))
            active[position], active[-1] = active[-1], active[position]
            yield _new(Delete, active.pop())


def _apart(pair: Pair) -> Pair:
    # A row of a batch keeps the batch alive; here a few rows of every batch stay for long.
    return copy.copy(pair[0]), pair[1]


def _first(pairs: Iterable[Pair]) -> Iterator[Request]:
    X = [x for x, _ in pairs]
    if X:
        yield InsertMany(X, [y for _, y in pairs])


# --- by time


# One active example: time, its number (so that no x is ever compared), x and y.
_Entry: TypeAlias = tuple[Any, int, Any, Any]


def _time_window(source: Examples, span: timedelta) -> Iterator[Request]:
    examples = ((time, number, x, y) for number, (x, y, time) in enumerate(_timed(source)))
    window: list[_Entry] = []  # a heap, the oldest on top
    width, beyond = _fill(window, examples, span)
    yield from _first([entry[2:] for entry in sorted(window)])
    now = max(window)[0] if window else None
    for entry in itertools.chain(beyond, examples):
        now = _later(now, entry[0])
        yield from _expired(window, now, width)
        yield _new(Label, entry[2:])
        if now - entry[0] < width:
            heapq.heappush(window, entry)
            yield _new(Insert, entry[2:])


def _fill(
    window: list[_Entry], examples: Iterator[_Entry], span: timedelta
) -> tuple[Any, list[_Entry]]:
    """Take in what comes within `span` of the first example; give the first that does not."""
    width: Any = None
    for entry in examples:
        if width is None:
            start = entry[0]
            width = span.total_seconds() if isinstance(start, numbers.Real) else span
        _later(start, entry[0])
        if entry[0] - start >= width:
            return width, [entry]
        heapq.heappush(window, entry)
    return width, []


def _expired(window: list[_Entry], now: Any, width: Any) -> Iterator[Request]:
    gone = []
    while window and now - window[0][0] >= width:
        gone.append(heapq.heappop(window)[2:])
    if len(gone) == 1:
        yield _new(Delete, gone[0])
    elif gone:
        yield DeleteMany([x for x, _ in gone], [y for _, y in gone])


def _later(a: Any, b: Any) -> Any:
    try:
        return max(a, b)
    except TypeError:
        raise InvalidExample(
            f"the times {show(a)} and {show(b)} have no order: all times of a source are numbers, "
            "or all are dates, with a time zone or all without"
        ) from None


def _span(W: str | timedelta) -> timedelta:
    if isinstance(W, timedelta):
        span = W
    else:
        match = _SPAN.fullmatch(W)
        if match is None or match[2] not in _UNITS:
            raise _no_window(W)
        try:
            span = timedelta(seconds=float(match[1]) * _UNITS[match[2]])
        except OverflowError:
            raise _no_window(W) from None
    if span <= timedelta(0):
        raise _no_window(W)
    return span


# --- reading examples


def _pairs(source: Examples) -> Iterator[Pair]:
    if isinstance(source, Source):
        # By batches: zip makes the pairs without a step of ours in between.
        return itertools.chain.from_iterable(zip(X, y, strict=True) for X, y, _ in source.batches())
    return ((example[0], example[1]) for example in source)


def _timed(source: Examples) -> Iterator[Timed]:
    for example in source:
        if len(example) < 3 or example[2] is None:
            raise InvalidParameter(
                "a window by time needs the time of every example, and this source has none: name "
                "the column, as in read_csv(path, label=..., time='date'), or give (x, y, time)"
            )
        if isinstance(example[2], float) and math.isnan(example[2]):
            raise InvalidExample("a time is nan: every example of a window by time has a time")
        yield example[0], example[1], example[2]


def _size(W: Any) -> int:
    if isinstance(W, (int, np.integer)) and not isinstance(W, bool) and W > 0:
        return int(W)
    raise _no_window(W)


def _no_window(W: object) -> InvalidParameter:
    return InvalidParameter(
        f"W={show(W)} is not a window: give a number of examples >= 1, a timedelta, or a time "
        "such as '7d', '12h', '30min', '45s', '500ms' or '2w'"
    )
