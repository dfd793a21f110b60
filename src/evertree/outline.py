"""The tree as others see it: nodes, labels in the order of ties, and what each node answers.

Everything that leaves the house (export), is drawn (plots) or is compared (explain) starts from an
Outline, so that the two rules which are easy to get wrong stand in one place: of labels equally
frequent the first in the order of ties wins, and an empty node answers with its nearest ancestor
that is not empty.

An Outline is a copy: the tree may change afterwards. Knows the tree; must not know who asks.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from evertree.encoding import Encoder, show
from evertree.errors import EmptyTree, InvalidParameter
from evertree.tree import EverTree, Node

# Of equal lightness, and different to eyes that don't see all colours; more labels use them again.
_COLOURS = ("4c86b8", "ef9234", "4fa35d", "c9568b", "8a6bbf", "a8873a", "3aa6a6", "d1605e")


@dataclass(frozen=True)
class Outline:
    """What a tree is at one moment. O(nodes · labels) to make.

    labels         every label in use, in the order of ties
    nodes          as `EverTree.nodes` lists them, parents before children
    answering      per node, the node whose counts it answers with: itself unless it is empty
    winners        per node, the position in `labels` of its answer
    feature_names  one for each feature

    >>> tree = EverTree(n_features=1)
    >>> ids = tree.insert_many([[31.0], [62.0], [62.0]], ["yes", "no", "yes"])
    >>> outline = Outline.of(tree, feature_names=["age"])
    >>> outline.labels, [outline.answer(i) for i in range(len(outline.nodes))]
    (('no', 'yes'), ['yes', 'yes', 'no'])
    """

    n_features: int
    categorical: tuple[int, ...]
    feature_names: tuple[str, ...]
    labels: tuple[Hashable, ...]
    nodes: tuple[Node, ...]
    answering: npt.NDArray[np.intp]
    winners: npt.NDArray[np.intp]

    @classmethod
    def of(cls, tree: Any, feature_names: Sequence[str] | None = None) -> Outline:
        """Read an EverTree, or an estimator that keeps one as `tree_`."""
        ever = tree_of(tree)
        nodes = tuple(ever.nodes())
        known = list(nodes[0]["counts"])
        if not known:
            raise EmptyTree("the tree has no examples, so it has nothing to show: insert one first")
        labels = tuple(known[i] for i in Encoder(1).order(known))
        answering = _answering(nodes)
        position = {label: i for i, label in enumerate(labels)}
        return cls(
            n_features=ever.limits.n_features,
            categorical=ever.limits.categorical,
            feature_names=names_of(tree, feature_names, ever.limits.n_features),
            labels=labels,
            nodes=nodes,
            answering=answering,
            winners=np.array([_winner(nodes[i]["counts"], position) for i in answering]),
        )

    def answer(self, node: int) -> Hashable:
        """Give the label that a row gets which ends in this node. O(1)."""
        return self.labels[int(self.winners[node])]

    def shares(self, nodes: Sequence[int] | npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        """Give the shares of the labels that these nodes answer with. O(nodes · labels)."""
        position = {label: i for i, label in enumerate(self.labels)}
        counts = np.zeros((len(nodes), len(self.labels)))
        for row, node in enumerate(nodes):
            for label, count in self.nodes[self.answering[node]]["counts"].items():
                counts[row, position[label]] = count
        counts /= counts.sum(axis=1, keepdims=True)
        return counts

    def test(self, node: Node) -> str:
        """Say which rows go left, e.g. "age <= 46.5 or missing". O(1)."""
        return condition(node, self.feature_names, left=True)

    def otherwise(self, node: Node) -> str:
        """Say which rows go right, e.g. "age > 46.5". O(1)."""
        return condition(node, self.feature_names, left=False)

    def size(self, node: Node) -> int:
        """Count a node and all below it. O(that number)."""
        return subtree_size(self.nodes, node)

    def colour(self, node: Node) -> str:
        """Give the colour of the node's answer, paler where labels are mixed, as "#rrggbb"."""
        winner = int(self.winners[node["id"]])
        counts = self.nodes[self.answering[node["id"]]]["counts"]
        share = counts[self.labels[winner]] / sum(counts.values())
        # From hardly a tint where no label stands out to a light one, on which text can be read.
        least = 1 / len(self.labels)
        strength = 0.65 * (0.15 + 0.85 * (share - least) / (1 - least) if least < 1 else 1.0)
        full = label_colour(winner)
        parts = (int(full[k : k + 2], 16) for k in (1, 3, 5))
        return "#" + "".join(f"{round(255 - strength * (255 - part)):02x}" for part in parts)


def tree_of(tree: Any) -> EverTree:
    """Find the EverTree: `tree` itself, or the `tree_` of an estimator. O(1)."""
    found = tree if isinstance(tree, EverTree) else getattr(tree, "tree_", None)
    if isinstance(found, EverTree):
        return found
    raise InvalidParameter(
        f"tree={show(tree)} is neither an EverTree nor a fitted estimator with an EverTree as tree_"
    )


def condition(node: Node, names: Sequence[str], *, left: bool) -> str:
    """Say which rows go to one side of a split. O(1)."""
    name = " ".join(names[cast("int", node["feature"])].splitlines())
    if is_missing(node["category"]):
        return f"{name} is missing" if left else f"{name} is not missing"
    if node["threshold"] is not None:
        text = f"{name} {'<=' if left else '>'} {node['threshold']!r}"
    else:
        text = f"{name} {'=' if left else '!='} {node['category']}"
    return f"{text} or missing" if node["missing_left"] == left else text


def subtree_size(nodes: Sequence[Node], top: Node) -> int:
    """Count a node and all below it. O(that number)."""
    # In a list with parents first and left before right, they stand side by side.
    end = top["id"] + 1
    while end < len(nodes) and nodes[end]["depth"] > top["depth"]:
        end += 1
    return end - top["id"]


def majority(counts: Mapping[Hashable, int]) -> Hashable:
    """Give the most frequent label; of several, the first in the order of ties."""
    labels = list(counts)
    in_order = [labels[i] for i in Encoder(1).order(labels)]
    return max(in_order, key=lambda label: counts[label])


def label_colour(position: int) -> str:
    """Give the colour of the label at this place in the order of ties, as "#rrggbb"."""
    return "#" + _COLOURS[position % len(_COLOURS)]


def is_missing(value: float | None) -> bool:
    """Whether a category is the one of the missing values."""
    return value is not None and math.isnan(value)


def _answering(nodes: Sequence[Node]) -> npt.NDArray[np.intp]:
    answering = np.arange(len(nodes))
    for node in nodes:
        # A parent stands before its children, so its own answer is known already.
        if not node["counts"] and node["parent"] is not None:
            answering[node["id"]] = answering[node["parent"]]
    return answering


def _winner(counts: dict[Hashable, int], position: dict[Hashable, int]) -> int:
    return min((-count, position[label]) for label, count in counts.items())[1]


def names_of(tree: Any, given: Sequence[str] | None, n_features: int) -> tuple[str, ...]:
    """Give the names of the features: those given, those the estimator knows, or x0, x1, ..."""
    names = given if given is not None else getattr(tree, "feature_names_in_", None)
    if names is None:
        return tuple(f"x{j}" for j in range(n_features))
    try:
        found = () if isinstance(names, str) else tuple(map(str, names))
    except TypeError:
        found = ()
    if len(found) != n_features:
        raise InvalidParameter(
            f"feature_names={show(names)}: give one name for each of the {n_features} features"
        )
    return found


def checked_depth(max_depth: object) -> int | None:
    """Check how far down is to be shown: None, for all, or an int >= 0."""
    if max_depth is None:
        return None
    if isinstance(max_depth, (int, np.integer)) and not isinstance(max_depth, bool):
        depth = int(max_depth)
        if depth >= 0:
            return depth
    raise InvalidParameter(f"max_depth={show(max_depth)} is neither None nor an int >= 0")
