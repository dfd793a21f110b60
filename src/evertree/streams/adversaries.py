"""Section 4 of the paper as streams: the sequences behind its two lower bounds.

Both speak the requests of every other stream, so a tree can be run on them and its work counted.
Slips of the print are corrected as listed in paper/MAP.md (S25 to S30).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from evertree.encoding import show
from evertree.errors import InvalidParameter
from evertree.streams.checks import count
from evertree.streams.requests import Delete, Insert, InsertMany, Label, Request


def index_width(N: int, D: int) -> int:
    """How many features the examples of `index_game` have: D bits of Alice's, and a number."""
    return D + math.ceil(math.log2(N + D) + 1)


def index_game(
    A: npt.ArrayLike, row: int, column: int, *, k: int = 2, seed: int = 0
) -> Iterator[Request]:
    """Theorem 4.1, the space bound: Bob reads A[row, column] off a tree that Alice has made.

    Alice's N×D bits become 2k·(N+D) examples, inserted as one batch. Bob deletes, in random order,
    all but the two groups of 2k that speak of his bit, and asks for the label of (1, ..., 1). A
    tree with max_gap < 1/24, min_impurity <= 1/2 and min_samples_split = k + 1 must answer with the
    bit; it does so for every bit, hence it keeps all N·D of them. k is even.

    >>> from evertree import EverTree
    >>> from evertree.streams.requests import apply
    >>> A = np.array([[0, 1], [1, 1]])
    >>> tree = EverTree(index_width(2, 2), max_gap=0.04, min_samples_split=3)
    >>> [apply(request, tree) for request in index_game(A, 0, 1)][-1], A[0, 1].item()
    (1, 1)
    """
    bits = np.asarray(A)
    if bits.ndim != 2 or bits.size == 0 or not np.isin(bits, (0, 1)).all():
        raise InvalidParameter(f"A={show(A)} is not a matrix of zeros and ones")
    if not (0 <= row < bits.shape[0] and 0 <= column < bits.shape[1]):
        raise InvalidParameter(f"A has shape {bits.shape}: ({row}, {column}) is no place in it")
    if k < 2 or k % 2:
        raise InvalidParameter(
            f"k={show(k)} is not even and positive: with an odd k another column gains as much"
        )
    N, D = bits.shape
    groups = [_group(bits, i, k) for i in range(1, N + D + 1)]
    every = [example for group in groups for example in group]
    yield InsertMany([x for x, _ in every], [y for _, y in every])
    asked = {row, N + column}
    rest = [example for i, group in enumerate(groups) if i not in asked for example in group]
    random.Random(seed).shuffle(rest)  # noqa: S311  (a simulation, nothing secret)
    for x, y in rest:
        yield Delete(x, y)
    yield Label(np.ones(index_width(N, D)), int(bits[row, column]))


def _group(
    bits: npt.NDArray[np.int64], i: int, k: int
) -> list[tuple[npt.NDArray[np.float64], int]]:
    """Make the 2k examples of group i (from 1): a row of Alice's, or one of D that tell columns."""
    N, D = bits.shape
    code = [i >> place & 1 for place in range(index_width(N, D) - D)]
    examples = []
    for h in range(1, 2 * k + 1):
        y = int(h > k)
        if i <= N:
            values = bits[i - 1] if y else 1 - bits[i - 1]
        else:
            values = np.array([int(j != i - N and h % 2 == 0) for j in range(1, D + 1)])
        examples.append((np.concatenate([values, code]).astype(np.float64), y))
    return examples


def hidden_feature(d: int, rounds: int, *, k: int = 1, seed: int = 0) -> Iterator[Request]:
    """Theorem 4.2, the time bound: in each round another one of d features, at random, decides.

    A round inserts k rows of zeros labelled 0 and k rows with a one at place j labelled 1, asks for
    the label of a random row of which half are ones, and deletes everything: 4k updates and one
    question. The label is x_j, and j can be found only by looking: whoever answers right more often
    than by chance reads Ω(d) values per round, Ω(nd) for n updates (k is a constant).

    >>> from evertree import EverTree
    >>> from evertree.streams.requests import apply
    >>> tree = EverTree(n_features=8)
    >>> answers = [(apply(request, tree), request.y) for request in hidden_feature(8, rounds=1)]
    >>> answers[2]  # after two insertions, the question
    (0, 0)
    """
    d, rounds, k = count("d", d, 2), count("rounds", rounds, 0), count("k", k)
    rng = random.Random(seed)  # noqa: S311  (a simulation, nothing secret)
    for _ in range(rounds):
        j = rng.randrange(d)
        one = np.zeros(d)
        one[j] = 1.0
        examples = [(np.zeros(d), 0)] * k + [(one, 1)] * k
        for x, y in rng.sample(examples, 2 * k):
            yield Insert(x, y)
        question = np.zeros(d)
        question[rng.sample(range(d), math.ceil(d / 2))] = 1.0
        yield Label(question, int(question[j]))
        for x, y in rng.sample(examples, 2 * k):
            yield Delete(x, y)
