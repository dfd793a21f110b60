"""The rows that are in a tree now, copied.

A tree finds rows by id, so ids are tried from the newest automatic one down until all rows are
found; rows with ids of the caller's own are found if they are named.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evertree.encoding import Encoder, Ids
from evertree.errors import EvertreeError

if TYPE_CHECKING:
    from evertree.tree import EverTree


@dataclass(frozen=True, eq=False)
class Examples:
    """The active rows of a tree at one moment: ids, values, labels."""

    ids: npt.NDArray[np.int64]
    X: npt.NDArray[np.float64]
    y: tuple[Hashable, ...]

    @classmethod
    def of(cls, tree: EverTree, ids: Ids | None = None) -> Examples | None:
        """Copy all active rows, or give None if some of them have ids that are not known.

        O(n·d), and O(insertions ever made) to find the ids where none are given.
        """
        version = _version(tree)
        found = _automatic_ids(tree) if ids is None else Encoder(1).ids(ids, None)
        if len(found) != len(tree):
            return None
        pairs = [tree.example(int(i)) for i in found]
        if _version(tree) != version:
            raise EvertreeError(
                "the tree was changed by another thread while its rows were read: "
                "hold the writers back meanwhile"
            )
        rows = np.array([x for x, _ in pairs]).reshape(len(pairs), tree.limits.n_features)
        return cls(found, rows, tuple(y for _, y in pairs))

    def by_id(self) -> dict[int, int]:
        """Give the position of each id. O(n)."""
        return {int(i): position for position, i in enumerate(self.ids)}


def _automatic_ids(tree: EverTree) -> npt.NDArray[np.int64]:
    """Find active ids from the newest that an insertion can have given out, downwards."""
    found: list[int] = []
    candidate, size = tree.stats()["inserts"] - 1, len(tree)
    while candidate >= 0 and len(found) < size:
        if candidate in tree:
            found.append(candidate)
        candidate -= 1
    return np.array(found[::-1], dtype=np.int64)


def _version(tree: EverTree) -> tuple[int, ...]:
    return tuple(tree.stats()[name] for name in ("inserts", "deletes", "rebuilds"))
