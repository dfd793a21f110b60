"""Streams of requests for the tests, and a tree that is audited after every one of them.

A failure is one integer: everything here follows from a seed, and every assertion names it.
EVERTREE_SOAK=1 asks for many more runs; EVERTREE_SEED=... shifts all seeds.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evertree import EverTree

SOAK = os.environ.get("EVERTREE_SOAK") == "1"
SEED = int(os.environ.get("EVERTREE_SEED", random.SystemRandom().randrange(2**32) if SOAK else 0))

X = tuple[float, ...]
Example = tuple[X, Hashable]


def table(rows: Sequence[Example], n_features: int) -> tuple[np.ndarray, list[Hashable]]:
    """Rows and labels as the *_many calls take them."""
    values = np.array([x for x, _ in rows], dtype=float).reshape(len(rows), n_features)
    return values, [y for _, y in rows]


def tree_of(rows: Sequence[Example], n_features: int, **options: Any) -> EverTree:
    """Make a tree of these rows in one Build."""
    tree = EverTree(n_features, **options)
    tree.insert_many(*table(rows, n_features))
    return tree


# ------------------------------------------------------------------------------------------- a tree


class AuditedTree:
    """A tree, what should be in it, and an audit after every request.

    `seed` only stands in the messages. `audit_every` is for trees too large to audit each time.
    """

    def __init__(
        self, n_features: int, *, seed: int = 0, audit_every: int = 1, **options: Any
    ) -> None:
        self.n_features, self.seed, self.options = n_features, seed, options
        self.audit_every = audit_every
        self.tree = EverTree(n_features, **options)
        self.active: dict[int, Example] = {}  # by id, the last inserted last
        self.equals: dict[Example, list[int]] = {}  # ids by value, the last inserted last
        self.requests = self.audits = 0
        self.worst_gap = 0.0

    def __len__(self) -> int:
        return len(self.active)

    # --- requests

    def insert(self, x: X, y: Hashable) -> int:
        i = self.tree.insert(x, y)
        self._enter(i, (x, y))
        self.done()
        return i

    def delete(self, x: X, y: Hashable) -> None:
        """Delete by value: of equal examples the last inserted goes."""
        self.tree.delete(x, y)
        i = self.equals[_key((x, y))][-1]
        assert i not in self.tree, (self.where(), i)
        self._leave(i)
        self.done()

    def delete_id(self, i: int) -> None:
        self.tree.delete(id=i)
        self._leave(i)
        self.done()

    def replace(self, i: int, x: X, y: Hashable) -> None:
        self.tree.replace(i, x, y)
        self._leave(i)
        self._enter(i, (x, y))
        self.done()

    def insert_many(self, rows: Sequence[Example]) -> list[int]:
        ids = [int(i) for i in self.tree.insert_many(*table(rows, self.n_features))]
        for i, row in zip(ids, rows, strict=True):
            self._enter(i, row)
        self.done()
        return ids

    def delete_many(self, ids: Iterable[int]) -> None:
        ids = list(ids)
        self.tree.delete_many(ids=ids)
        for i in ids:
            self._leave(i)
        self.done()

    def delete_many_values(self, rows: Sequence[Example]) -> None:
        self.tree.delete_many(*table(rows, self.n_features))
        for row in rows:
            self._leave(self.equals[_key(row)][-1])
        self.done()

    def _enter(self, i: int, row: Example) -> None:
        self.active[i] = row
        self.equals.setdefault(_key(row), []).append(i)

    def _leave(self, i: int) -> None:
        key = _key(self.active.pop(i))
        self.equals[key].remove(i)
        if not self.equals[key]:
            del self.equals[key]

    # --- checks

    def where(self) -> str:
        return f"seed {self.seed}, request {self.requests}, n {len(self.active)}, {self.options}"

    def done(self) -> None:
        """Audit what the last request left behind."""
        self.requests += 1
        if self.requests % self.audit_every == 0:
            self.audit()

    def audit(self) -> None:
        certificate = self.tree.certify()
        assert certificate.ok, (self.where(), certificate.breaches[:3])
        assert len(self.tree) == len(self.active), self.where()
        self.audits += 1
        self.worst_gap = max(self.worst_gap, certificate.worst_gap)

    def check_rebuilt(self, *, one_by_one: bool = False) -> None:
        """After rebuild(), nothing but the rows matters: a new tree of them has the same digest."""
        rows = list(self.active.values())
        random.Random(self.seed).shuffle(rows)
        fresh = EverTree(self.n_features, **self.options)
        if one_by_one:
            for x, y in rows:
                fresh.insert(x, y)
        else:
            fresh.insert_many(*table(rows, self.n_features))
        fresh.rebuild()
        self.tree.rebuild()
        self.audit()
        assert self.tree.digest() == fresh.digest(), self.where()


def _key(row: Example) -> Example:
    """A value that equals another exactly when the tree takes them for equal."""
    x, y = row
    return tuple(None if math.isnan(v) else v + 0.0 for v in x), y  # type: ignore[return-value]


# ------------------------------------------------------------------------------------------ sources


@dataclass(frozen=True)
class Source:
    """Where rows come from: kinds of features, how many values, how often one is missing.

    The label mostly follows from the row, so that trees have something to say. `drift` turns the
    rule in the course of a run. The classes that occur are a window of `n_classes` that moves on
    every `class_life` rows: classes appear and, as their rows go, vanish.
    """

    n_features: int = 3
    categorical: tuple[int, ...] = ()
    n_values: int = 0  # 0: continuous
    missing: float = 0.0
    n_classes: int = 2
    noise: float = 0.1
    drift: float = 0.0  # turns per 1,000 rows
    class_life: int = 0  # 0: for ever
    names: tuple[Hashable, ...] = tuple(range(12))

    def examples(self, seed: int) -> Callable[[], Example]:
        """Give a function whose every call gives the next row."""
        rng = random.Random(seed)
        moment = 0

        def example() -> Example:
            nonlocal moment
            moment += 1
            values = [self._value(rng, j) for j in range(self.n_features)]
            y = self._label(rng, values, moment)
            x = tuple(math.nan if rng.random() < self.missing else v for v in values)
            return x, y

        return example

    def _value(self, rng: random.Random, j: int) -> float:
        if j in self.categorical:
            return float(rng.randrange(self.n_values or 6))
        if self.n_values:
            return rng.randrange(self.n_values) / 2 - 1.0
        return rng.random()

    def _label(self, rng: random.Random, values: list[float], moment: int) -> Hashable:
        angle = moment * self.drift * math.tau / 1000
        if rng.random() < self.noise:
            number = rng.randrange(self.n_classes)
        else:
            u, v = values[0], values[-1]
            height = math.cos(angle) * u + math.sin(angle) * v
            number = int(height * 1.7 * self.n_classes) % self.n_classes
        if self.class_life:
            number += moment // self.class_life
        return self.names[number % len(self.names)]


# ------------------------------------------------------------------------------------------ streams
# A stream makes one request at a time of an AuditedTree. Each keeps about `n_most` rows in.

Stream = Callable[[AuditedTree, random.Random, Callable[[], Example], int], None]


def incremental(
    subject: AuditedTree, rng: random.Random, example: Callable[[], Example], n_most: int
) -> None:
    """Insertions only, until it is full; then everything goes at once and it starts again."""
    if len(subject) >= n_most:
        subject.delete_many(subject.active)
    else:
        subject.insert(*example())


def sliding_window(
    subject: AuditedTree, rng: random.Random, example: Callable[[], Example], n_most: int
) -> None:
    """The newest row in, the oldest out."""
    if len(subject) > n_most:
        subject.delete_id(next(iter(subject.active)))
    else:
        subject.insert(*example())


def random_update(
    subject: AuditedTree, rng: random.Random, example: Callable[[], Example], n_most: int
) -> None:
    """Insertion or deletion of a random row, by value or by id, as likely; corrections too."""
    n = len(subject)
    if n == 0 or rng.random() < (0.6 if n < n_most else 0.4):
        subject.insert(*example())
        return
    i = rng.choice(list(subject.active))
    way = rng.random()
    if way < 0.4:
        subject.delete_id(i)
    elif way < 0.8:
        subject.delete(*subject.active[i])
    else:
        subject.replace(i, *example())


def batches(
    subject: AuditedTree, rng: random.Random, example: Callable[[], Example], n_most: int
) -> None:
    """Anything at all, mostly many rows at once; now and then a whole class vanishes."""
    few = rng.sample(list(subject.active), min(len(subject), rng.randint(1, 1 + n_most // 4)))
    if len(subject) < n_most and rng.random() < 0.6:
        subject.insert_many([example() for _ in range(rng.randint(0, 1 + n_most // 3))])
    elif few and rng.random() < 0.1:
        y = subject.active[few[0]][1]
        subject.delete_many([i for i, row in subject.active.items() if row[1] == y])
    elif few and rng.random() < 0.3:
        subject.delete_many_values([subject.active[i] for i in few])
    elif few and rng.random() < 0.6:
        subject.delete_many(few)
    else:
        random_update(subject, rng, example, n_most)


STREAMS: dict[str, Stream] = {
    "incremental": incremental,
    "sliding": sliding_window,
    "random": random_update,
    "batches": batches,
}


@dataclass(frozen=True)
class Run:
    """One long run: a source, a stream, limits, how many requests, how many rows at most."""

    stream: str
    source: Source
    options: dict[str, Any]
    length: int
    n_most: int
    name: str = ""
    seed: int = field(default=0)

    def go(self) -> AuditedTree:
        """Make all requests, each followed by an audit."""
        seed = SEED + self.seed
        rng = random.Random(seed)
        example = self.source.examples(seed)
        subject = AuditedTree(
            self.source.n_features,
            seed=seed,
            categorical=self.source.categorical,
            **self.options,
        )
        step = STREAMS[self.stream]
        while subject.requests < self.length:
            step(subject, rng, example, self.n_most)
        return subject
