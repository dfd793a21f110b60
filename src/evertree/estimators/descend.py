"""The way down for many rows at once: the leaf of each row, its path, and what is counted there.

The core labels many rows at once, but tells the node of a row only by its counts and one at a time.
Here the tree is laid out in arrays, once per version, and all rows go down together, a level at a
time. The twin in the tests is `EverTree.label_counts`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evertree.errors import EmptyTree

if TYPE_CHECKING:
    from evertree.encoding import Floats
    from evertree.tree import EverTree

Positions = npt.NDArray[np.intp]


class Descent:
    """A tree as arrays, a node at each position of `EverTree.nodes`. O(nodes · labels) to make.

    >>> from evertree import EverTree
    >>> tree = EverTree(n_features=1)
    >>> ids = tree.insert_many([[31.0], [62.0], [62.0]], ["yes", "no", "yes"])
    >>> descent = Descent(tree, ["no", "yes"])
    >>> descent.leaves(np.array([[70.0], [20.0]]))
    array([2, 1])
    >>> descent.shares(np.array([[70.0], [20.0]]))
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    def __init__(self, tree: EverTree, classes: Sequence[Hashable]) -> None:
        nodes = tree.nodes()
        self.n_nodes = len(nodes)
        self.n_features = tree.limits.n_features
        self.parent = np.array([-1 if n["parent"] is None else n["parent"] for n in nodes])
        self.left = np.array([-1 if n["left"] is None else n["left"] for n in nodes])
        self.right = np.array([-1 if n["right"] is None else n["right"] for n in nodes])
        self.feature = np.array([-1 if n["feature"] is None else n["feature"] for n in nodes])
        self.missing_left = np.array([bool(n["missing_left"]) for n in nodes])
        self.by_category = np.array([n["category"] is not None for n in nodes])
        self.value = np.array(
            [n["threshold"] if n["category"] is None else n["category"] for n in nodes],
            dtype=np.float64,  # None, of a leaf, becomes nan
        )
        column = {label: position for position, label in enumerate(classes)}
        self.counts = np.zeros((len(nodes), len(classes)))
        for position, node in enumerate(nodes):
            for label, count in node["counts"].items():
                self.counts[position, column[label]] = count

    def leaves(self, X: Floats) -> Positions:
        """Give the leaf of each row. O(n·depth)."""
        node = np.zeros(len(X), dtype=np.intp)
        # A tree of one node has its rows where they belong.
        moving = np.arange(len(X)) if self.n_nodes > 1 else np.empty(0, dtype=np.intp)
        while moving.size:
            here = node[moving]
            x = X[moving, self.feature[here]]
            value = self.value[here]
            goes_left = np.where(self.by_category[here], x == value, x <= value)
            goes_left |= self.missing_left[here] & np.isnan(x)
            there = np.where(goes_left, self.left[here], self.right[here])
            node[moving] = there
            moving = moving[self.left[there] >= 0]
        return node

    def shares(self, X: Floats) -> Floats:
        """Give the share of each class in the node that labels the row. O(n·(depth + classes))."""
        node = self.leaves(X)
        size = self.counts.sum(axis=1)
        if not size[0]:
            raise EmptyTree("the tree has no examples, so it has no shares to give: insert one")
        while (empty := size[node] == 0).any():
            node[empty] = self.parent[node[empty]]
        shares: Floats = self.counts[node] / size[node, np.newaxis]
        return shares

    def paths(self, X: Floats) -> tuple[Positions, Positions]:
        """Give all nodes that the rows pass, as pairs of row and node. O(n·depth)."""
        node = self.leaves(X)
        row = np.arange(len(X))
        rows, nodes = [row], [node]
        while (inner := self.parent[node] >= 0).any():
            row, node = row[inner], self.parent[node[inner]]
            rows.append(row)
            nodes.append(node)
        return np.concatenate(rows), np.concatenate(nodes)

    def importances(self) -> Floats:
        """Give the share of each feature in the loss of Gini mass by all splits. O(nodes)."""
        size = self.counts.sum(axis=1)
        # mass = n - Σ count² / n, see ARCHITECTURE.md; an empty node has none
        mass = size - (self.counts**2).sum(axis=1) / np.maximum(size, 1)
        splits = np.flatnonzero(self.left >= 0)
        lost = mass[splits] - mass[self.left[splits]] - mass[self.right[splits]]
        total = np.bincount(self.feature[splits], weights=lost, minlength=self.n_features)
        share: Floats = total / total.sum() if total.sum() > 0 else np.zeros(self.n_features)
        return share
