"""Sources that are made up, with drift: the ones that stream learning is usually tried on.

Each follows from its seed alone. Drawn in blocks of a fixed size, so the examples do not depend on
how they are read. `n=None` goes on for ever.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evertree.errors import InvalidParameter
from evertree.streams.checks import count, share
from evertree.streams.source import Batch, Source

Floats: TypeAlias = npt.NDArray[np.float64]
# From a random generator: a function that makes the block of examples at these moments (0, 1, ...).
Block: TypeAlias = Callable[[npt.NDArray[np.int64]], tuple[Floats, list[Any]]]

_BLOCK = 1024
_NOISE = "it is the share of what is wrong on purpose"
_SEA_LIMITS = (8.0, 9.0, 7.0, 9.5)
# Which of the 7 lamps are on for the digits 0 to 9.
_LAMPS = np.array(
    [
        [int(lamp) for lamp in digit]
        for digit in [
            "1110111",
            "0010010",
            "1011101",
            "1011011",
            "0111010",
            "1101011",
            "1101111",
            "1010010",
            "1111111",
            "1111011",
        ]
    ],
    dtype=np.float64,
)


def sea(
    n: int | None = None, *, seed: int = 0, change_every: int = 10_000, noise: float = 0.1
) -> Source:
    """SEA concepts: the label says if x0 + x1 is at most 8, then 9, 7, 9.5, 8, ...

    Three features, uniform in [0, 10); x2 means nothing. The limit changes all at once every
    `change_every` examples (Street and Kim, 2001); `noise` is the share of labels that are wrong.
    O(1) per example.

    >>> next(iter(sea(seed=1)))
    Example(x=array([5.11821625, 9.50463696, 1.44159613]), y=0, time=None)
    """
    period, wrong_share = count("change_every", change_every), share("noise", noise, _NOISE)

    def start(rng: np.random.Generator) -> Block:
        def block(moments: npt.NDArray[np.int64]) -> tuple[Floats, list[Any]]:
            X = rng.random((len(moments), 3)) * 10
            limit = np.array(_SEA_LIMITS)[moments // period % 4]
            wrong = rng.random(len(moments)) < wrong_share
            return X, ((X[:, 0] + X[:, 1] <= limit) ^ wrong).astype(int).tolist()

        return block

    return _source("sea", 3, start, n, seed)


def hyperplane(
    n: int | None = None,
    *,
    seed: int = 0,
    n_features: int = 10,
    n_drifting: int = 2,
    change: float = 0.001,
    turn: float = 0.1,
    noise: float = 0.05,
) -> Source:
    """Rotating hyperplane: the label says on which side of a slowly turning plane x lies.

    Features are uniform in [0, 1). The first `n_drifting` weights move by `change` per example, and
    at each example reverse with probability `turn` (Hulten, Spencer and Domingos, 2001). O(d) per
    example.

    >>> [example.y for example in hyperplane(5, seed=1)]
    [0, 1, 0, 1, 1]
    """
    d = count("n_features", n_features)
    moving = count("n_drifting", n_drifting, 0)
    if moving > d:
        raise InvalidParameter(f"n_drifting={moving} is more than n_features={d}")
    wrong_share, turning = share("noise", noise, _NOISE), share("turn", turn, "it is a probability")

    def start(rng: np.random.Generator) -> Block:
        weights = rng.random(d)
        direction = np.ones(moving)

        def block(moments: npt.NDArray[np.int64]) -> tuple[Floats, list[Any]]:
            nonlocal weights, direction
            m = len(moments)
            X = rng.random((m, d))
            signs = direction * np.cumprod(np.where(rng.random((m, moving)) < turning, -1, 1), 0)
            course = np.repeat(weights[np.newaxis], m, axis=0)
            course[:, :moving] += change * np.cumsum(signs, axis=0)
            above = (X * course).sum(axis=1) >= course.sum(axis=1) / 2
            weights, direction = course[-1], signs[-1]
            return X, (above ^ (rng.random(m) < wrong_share)).astype(int).tolist()

        return block

    return _source("hyperplane", d, start, n, seed)


def random_rbf(
    n: int | None = None,
    *,
    seed: int = 0,
    n_features: int = 10,
    n_classes: int = 2,
    n_centres: int = 50,
    speed: float = 0.0001,
) -> Source:
    """Random RBF with moving centres: the label is that of the centre around which x was drawn.

    Centres lie in the unit cube, have a weight, a spread and a label, and each moves on a straight
    line by `speed` per example, reflected at the faces of the cube. O(d) per example.

    >>> sorted({example.y for example in random_rbf(200, seed=1, n_classes=3)})
    [0, 1, 2]
    """
    d, classes = count("n_features", n_features), count("n_classes", n_classes, 2)
    centres = count("n_centres", n_centres, classes)

    def start(rng: np.random.Generator) -> Block:
        places = rng.random((centres, d))
        # Every class has a centre; the others are as they come.
        labels = np.concatenate([np.arange(classes), rng.integers(0, classes, centres - classes)])
        weights = rng.random(centres)
        spread = rng.random(centres)
        paths = _directions(rng, centres, d)

        def block(moments: npt.NDArray[np.int64]) -> tuple[Floats, list[Any]]:
            m = len(moments)
            chosen = rng.choice(centres, m, p=weights / weights.sum())
            way = places[chosen] + paths[chosen] * (speed * moments)[:, np.newaxis]
            # Reflected at 0 and 1: a triangle wave of period 2.
            where = 1 - np.abs(1 - way % 2)
            length = rng.normal(0, 1, m) * spread[chosen]
            X = where + _directions(rng, m, d) * length[:, np.newaxis]
            return X, labels[chosen].tolist()

        return block

    return _source("random_rbf", d, start, n, seed)


def led(
    n: int | None = None,
    *,
    seed: int = 0,
    change_every: int = 10_000,
    n_drifting: int = 7,
    noise: float = 0.1,
) -> Source:
    """LED digits with drift: the label is the digit that 7 of 24 lamps show; 17 mean nothing.

    Every `change_every` examples, `n_drifting` of the 7 lamps change places with lamps that mean
    nothing. `noise` is the chance of each of the 7 to be wrong. Ten labels, 0 to 9; features are 0
    or 1. O(1) per example.

    >>> example = next(iter(led(seed=1, noise=0.0)))
    >>> example.x[:7], example.y
    (array([0., 1., 1., 1., 0., 1., 0.]), 4)
    """
    period, wrong_share = count("change_every", change_every), share("noise", noise, _NOISE)
    moving = count("n_drifting", n_drifting, 0)
    if moving > 7:
        raise InvalidParameter(f"n_drifting={moving} is more than the 7 lamps of a digit")

    def start(rng: np.random.Generator) -> Block:
        # Where each of the 24 lamps stands, one row per concept; grown as concepts are reached.
        concepts = [np.arange(24)]

        def block(moments: npt.NDArray[np.int64]) -> tuple[Floats, list[Any]]:
            m = len(moments)
            digits = rng.integers(0, 10, m)
            lamps = rng.integers(0, 2, (m, 24)).astype(np.float64)
            lamps[:, :7] = np.abs(_LAMPS[digits] - (rng.random((m, 7)) < wrong_share))
            while len(concepts) <= moments[-1] // period:
                concepts.append(_exchanged(rng, concepts[-1], moving))
            X = np.empty_like(lamps)
            np.put_along_axis(X, np.array(concepts)[moments // period], lamps, axis=1)
            return X, digits.tolist()

        return block

    return _source("led", 24, start, n, seed)


def _exchanged(
    rng: np.random.Generator, places: npt.NDArray[np.int64], moving: int
) -> npt.NDArray[np.int64]:
    after: npt.NDArray[np.int64] = places.copy()
    shown, idle = rng.permutation(7)[:moving], 7 + rng.permutation(17)[:moving]
    after[shown], after[idle] = places[idle], places[shown]
    return after


def _directions(rng: np.random.Generator, m: int, d: int) -> Floats:
    found = rng.normal(0, 1, (m, d))
    unit: Floats = found / np.linalg.norm(found, axis=1, keepdims=True)
    return unit


# --- all of them


def _source(
    name: str,
    n_features: int,
    start: Callable[[np.random.Generator], Block],
    n: int | None,
    seed: int,
) -> Source:
    length = None if n is None else count("n", n, 0)
    number = count("seed", seed, 0)

    def read() -> Iterator[Batch]:
        block = start(np.random.default_rng(number))
        for first in itertools.count(0, _BLOCK) if length is None else range(0, length, _BLOCK):
            # Whole blocks are drawn, so that the first n are the same for every n.
            X, y = block(np.arange(first, first + _BLOCK))
            m = _BLOCK if length is None else min(_BLOCK, length - first)
            yield Batch(np.ascontiguousarray(X[:m]), y[:m])

    features = tuple(f"x{j}" for j in range(n_features))
    return Source(name=f"{name}(seed={number})", features=features, read=read, length=length)
