"""The tree as others see it: nodes, labels in the order of ties, and what each node answers.

Everything that leaves the house (export), is drawn (plots) or is compared (explain) starts from an
Outline, so that the two rules which are easy to get wrong stand in one place: of labels equally
frequent the first in the order of ties wins, and an empty node answers with its nearest ancestor
that is not empty. How a split is put into words stands here as well, in Words.

An Outline is a copy: the tree may change afterwards. Knows the tree; must not know who asks.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from evertree import frames
from evertree.encoding import Encoder, category_code, show
from evertree.errors import EmptyTree, InvalidParameter
from evertree.tree import EverTree, Node

# Texts that may occur: of each feature, by its name or position, or of all of them.
Categories: TypeAlias = Mapping[str | int, Iterable[Hashable]] | Iterable[Hashable]

# Of equal lightness, and different to eyes that don't see all colours; more labels use them again.
_COLOURS = ("4c86b8", "ef9234", "4fa35d", "c9568b", "8a6bbf", "a8873a", "3aa6a6", "d1605e")


@dataclass(frozen=True)
class Words:
    """How the features of a tree are called, and their values are written.

    feature_names  one for each feature
    kinds          what each feature holds, as frames.py calls it; none where that is not known
    texts          per feature, the categories whose codes are known
    digits         significant digits of thresholds; None writes them in full

    >>> words = Words.of(None, 2, ["age", "city"], {"city": ["Oslo", "Bergen"]}, digits=3)
    >>> words.texts[1][category_code("Oslo")], words.number(31.41592)
    ('Oslo', '31.4')
    """

    feature_names: tuple[str, ...]
    kinds: tuple[str, ...]
    texts: tuple[Mapping[float, Hashable], ...]
    digits: int | None

    @classmethod
    def of(
        cls,
        tree: Any,
        n_features: int,
        feature_names: Sequence[str] | None = None,
        categories: Categories | None = None,
        digits: int | None = None,
    ) -> Words:
        """Find the words for a tree, or an estimator that knows names and kinds itself."""
        names = names_of(tree, feature_names, n_features)
        kinds = tuple(getattr(tree, "feature_kinds_", None) or ())
        return cls(names, kinds, _texts(categories, names), _checked_digits(digits))

    def condition(self, node: Node, *, left: bool) -> str:
        """Say which rows go to one side of a split. O(1)."""
        feature = cast("int", node["feature"])
        name = " ".join(self.feature_names[feature].splitlines())
        if is_missing(node["category"]):
            return f"{name} is missing" if left else f"{name} is not missing"
        if node["threshold"] is not None:
            text = f"{name} {'<=' if left else '>'} {self.threshold(node)}"
        else:
            known = self.text(node)
            shown = node["category"] if known is None else show(known)
            text = f"{name} {'=' if left else '!='} {shown}"
        return f"{text} or missing" if node["missing_left"] == left else text

    def threshold(self, node: Node) -> str:
        """Write a threshold: a moment as a date, any other as a number. O(1)."""
        feature, threshold = cast("int", node["feature"]), cast("float", node["threshold"])
        kind = self.kinds[feature] if self.kinds else None
        if kind not in {frames.MOMENT, frames.ZONED}:
            return self.number(threshold)
        # Moments are whole microseconds, so down to the next one means the same.
        moment = np.datetime_as_string(np.datetime64(math.floor(threshold), "us"), unit="auto")
        # A date alone would be read as the whole day.
        time = "" if "T" in moment else "T00:00"
        return f"{moment}{time}{'Z' if kind == frames.ZONED else ''}"

    def number(self, value: float) -> str:
        """Write a number with so many significant digits as are asked for. O(1)."""
        if self.digits is None:
            return repr(value)
        # 17 digits are all that a float64 has; the largest ones must not be rounded up to inf.
        rounded = float(f"{value:.{min(self.digits, 17)}g}")
        return repr(rounded if math.isfinite(rounded) else value)

    def text(self, node: Node) -> Hashable:
        """Give the category of a split, where its code is known; else None. O(1)."""
        return self.texts[cast("int", node["feature"])].get(cast("float", node["category"]))

    def is_text(self, feature: int) -> bool:
        """Tell whether a feature is known to hold texts. O(1)."""
        return bool(self.kinds) and self.kinds[feature] == frames.TEXT


@dataclass(frozen=True)
class Outline:
    """What a tree is at one moment. O(nodes · labels) to make.

    labels         every label in use, in the order of ties
    nodes          as `EverTree.nodes` lists them, parents before children
    answering      per node, the node whose counts it answers with: itself unless it is empty
    winners        per node, the position in `labels` of its answer
    words          names of the features, and how values are written

    >>> tree = EverTree(n_features=1)
    >>> ids = tree.insert_many([[31.0], [62.0], [62.0]], ["yes", "no", "yes"])
    >>> outline = Outline.of(tree, feature_names=["age"])
    >>> outline.labels, [outline.answer(i) for i in range(len(outline.nodes))]
    (('no', 'yes'), ['yes', 'yes', 'no'])
    """

    n_features: int
    categorical: tuple[int, ...]
    words: Words
    labels: tuple[Hashable, ...]
    nodes: tuple[Node, ...]
    answering: npt.NDArray[np.intp]
    winners: npt.NDArray[np.intp]

    @classmethod
    def of(
        cls,
        tree: Any,
        feature_names: Sequence[str] | None = None,
        categories: Categories | None = None,
        digits: int | None = None,
    ) -> Outline:
        """Read an EverTree, or an estimator that keeps one as `tree_`."""
        ever = tree_of(tree)
        words = Words.of(tree, ever.limits.n_features, feature_names, categories, digits)
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
            words=words,
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
        return self.words.condition(node, left=True)

    def otherwise(self, node: Node) -> str:
        """Say which rows go right, e.g. "age > 46.5". O(1)."""
        return self.words.condition(node, left=False)

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


def _texts(
    categories: Categories | None, names: tuple[str, ...]
) -> tuple[Mapping[float, Hashable], ...]:
    """Give the known categories of each feature by their codes."""
    if categories is None:
        return ({},) * len(names)
    if not isinstance(categories, Mapping):
        return (_by_code(categories, "categories"),) * len(names)
    found: list[Mapping[float, Hashable]] = [{} for _ in names]
    for feature, texts in categories.items():
        position: Any = names.index(feature) if feature in names else feature
        is_whole = isinstance(position, (int, np.integer)) and not isinstance(position, bool)
        if not is_whole or not 0 <= position < len(names):
            raise InvalidParameter(
                f"categories has the key {show(feature)}, which is neither the name nor the "
                f"position of a feature: the features are {show(list(names))}"
            )
        found[position] = _by_code(texts, f"categories[{show(feature)}]")
    return tuple(found)


def _by_code(texts: object, place: str) -> dict[float, Hashable]:
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise InvalidParameter(
            f"{place}={show(texts)}: give a list of the texts that may occur, "
            "or a dict of such lists by feature"
        )
    # A column, or what is different in it, is good enough: what is missing there has no code.
    present = (text for text in texts if not frames.is_missing(text))
    # A text of numpy's is written as the text that it equals.
    plain = (str.__str__(text) if isinstance(text, str) else text for text in present)
    return {category_code(text): text for text in plain}


def _checked_digits(digits: object) -> int | None:
    if digits is None or (type(digits) is int and digits >= 1):
        return digits
    raise InvalidParameter(f"digits={show(digits)} is neither None nor an int >= 1")


def checked_depth(max_depth: object) -> int | None:
    """Check how far down is to be shown: None, for all, or an int >= 0."""
    if max_depth is None:
        return None
    if isinstance(max_depth, (int, np.integer)) and not isinstance(max_depth, bool):
        depth = int(max_depth)
        if depth >= 0:
            return depth
    raise InvalidParameter(f"max_depth={show(max_depth)} is neither None nor an int >= 0")
