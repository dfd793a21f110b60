"""What a tree would say without some of its rows: an exact copy is asked, with them and without."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evertree.encoding import Encoder, Ids, Rows
from evertree.errors import EmptyTree, ExampleNotFound
from evertree.explain.rows import rows_of
from evertree.outline import tree_of
from evertree.tree import EverTree

if TYPE_CHECKING:
    from evertree.limits import Limits
    from evertree.tree import Examples


@dataclass(frozen=True, eq=False)
class Influence:
    """What a tree says with some rows, and what it would say without them.

    labels_now        what the tree itself says
    labels_with       what an exact tree of all its rows says
    labels_without    what an exact tree of the other rows says
    changed           where the last two differ
    shift             how much the share of some label changes at most, in [0, 1], between them
    """

    labels_now: npt.NDArray[Any] = field(repr=False)
    labels_with: npt.NDArray[Any] = field(repr=False)
    labels_without: npt.NDArray[Any] = field(repr=False)
    changed: npt.NDArray[np.bool_] = field(repr=False)
    shift: npt.NDArray[np.float64] = field(repr=False)
    removed: int

    def __str__(self) -> str:
        """Say it in a sentence."""
        mean = self.shift.mean() if len(self.shift) else 0.0
        return (
            f"without these {self.removed} rows, {int(self.changed.sum())} of {len(self.changed)} "
            f"answers would be another; shares shift by {mean:.4f} on average, "
            f"{self.shift.max(initial=0.0):.4f} at most"
        )


def influence(tree: Any, ids: Ids, X_eval: Rows) -> Influence:
    """Tell what the tree would say about `X_eval` without the rows that have these ids.

    Both answers come from exact trees (what `rebuild` gives) of copied rows, one with and one
    without the rows in question: the difference is due to these rows, and not to how long ago a
    part of the tree was rebuilt. The tree itself is only read: digest, ids and the order of equal
    rows stay, also if this fails or is interrupted. That costs two builds and a copy of the rows,
    O(d·n·(log n + height)).

    >>> tree = EverTree(n_features=1)
    >>> ids = tree.insert_many([[31.0], [35.0], [62.0]], ["yes", "yes", "no"])
    >>> found = influence(tree, [2], [[30.0], [70.0]])
    >>> found.labels_with.tolist(), found.labels_without.tolist()
    (['yes', 'no'], ['yes', 'yes'])
    >>> print(found)
    without these 1 rows, 1 of 2 answers would be another; shares shift by 0.5000 on average, \
1.0000 at most
    """
    ever = tree_of(tree)
    limits = ever.limits
    rows = Encoder(limits.n_features, limits.categorical).matrix(X_eval)
    labels_now = ever.label_many(rows)
    named = Encoder(1).ids(ids, None, ExampleNotFound, ExampleNotFound)
    for i in named:
        ever.example(int(i))  # raises ExampleNotFound in words
    examples = rows_of(ever)
    # An AdaptiveTree answers from a window: other rows do not bear on what it says now.
    inside = named[np.isin(named, examples.ids)]
    if len(inside) == len(examples.ids):
        raise EmptyTree("without these rows the tree has none, so it would say nothing: name fewer")
    copy = _exact_copy(limits, examples)
    labels_with, shares_with = copy.label_many(rows), _shares(copy, rows)
    copy.delete_many(ids=inside)
    copy.rebuild()
    labels_without, shares_without = copy.label_many(rows), _shares(copy, rows)
    pairs = zip(labels_with, labels_without, strict=True)
    changed = np.array([bool(a != b) for a, b in pairs], dtype=bool)
    shift = np.array(list(map(_largest_change, shares_with, shares_without)), dtype=np.float64)
    return Influence(labels_now, labels_with, labels_without, changed, shift, len(named))


def _exact_copy(limits: Limits, examples: Examples) -> EverTree:
    copy = EverTree(**dataclasses.asdict(limits))
    copy.insert_many(examples.X, list(examples.y), examples.ids)
    return copy


def _shares(tree: EverTree, rows: npt.NDArray[np.float64]) -> list[dict[Hashable, float]]:
    found = []
    for x in rows:
        counts = tree.label_counts(x)
        n = sum(counts.values())
        found.append({label: count / n for label, count in counts.items()})
    return found


def _largest_change(a: dict[Hashable, float], b: dict[Hashable, float]) -> float:
    return max(abs(a.get(label, 0.0) - b.get(label, 0.0)) for label in a.keys() | b.keys())
