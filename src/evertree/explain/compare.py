"""What changed between two moments of a tree, and why.

Both are followed from the root down for as long as the splits are the same. Where they part, the
old and the new split are measured on the rows of both moments: that is the reason.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from evertree.encoding import show
from evertree.errors import EvertreeError, InvalidParameter
from evertree.explain.rows import rows_of
from evertree.outline import Categories, Words, is_missing, majority, subtree_size, tree_of

if TYPE_CHECKING:
    from evertree.limits import Limits
    from evertree.tree import Examples, Node

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A tree at one moment, as `diff` compares it. It does not change when the tree does.

    Names and kinds of the features are there if an estimator knew them.
    """

    limits: Limits
    nodes: tuple[Node, ...] = field(repr=False)
    digest: str
    examples: Examples = field(repr=False)
    feature_names_in_: tuple[str, ...] | None = None
    feature_kinds_: tuple[str, ...] | None = None


def snapshot(tree: Any) -> Snapshot:
    """Keep a tree as it is now, to compare it later with `diff`.

    O(n·(d + log n) + nodes · labels): splits and rows are copied.

    >>> from evertree import EverTree
    >>> tree = EverTree(n_features=1)
    >>> ids = tree.insert_many([[31.0], [62.0]], ["yes", "no"])
    >>> before = snapshot(tree)
    >>> tree.delete(id=1)
    >>> len(before.nodes), len(tree.nodes())
    (3, 1)
    """
    ever = tree_of(tree)
    version = ever.stats()
    names = getattr(tree, "feature_names_in_", None)
    found = Snapshot(
        ever.limits,
        tuple(ever.nodes()),
        ever.digest(),
        rows_of(ever),
        None if names is None else tuple(map(str, names)),
        getattr(tree, "feature_kinds_", None),
    )
    if ever.stats() != version:
        raise EvertreeError(
            "the tree was changed by another thread while it was read: hold the writers back "
            "meanwhile"
        )
    return found


# --- what changed


@dataclass(frozen=True)
class Change:
    """One node that is not what it was.

    where             the tests that lead to it from the root, in words; none for the root itself
    kind              "split replaced", "leaf split", "split became leaf" or "answer changed"
    before, after     in words: the test of a split, or the label of a leaf
    node_before, node_after     its id in the list of nodes of each moment
    size_before, size_after     its examples
    nodes_before, nodes_after   the nodes of the subtree that it is the top of
    gains_before, gains_after   what the old and the new split gain (Gini), both measured on the
                      rows of that moment; None where there is no such split or no row
    overtaken_by      what the new split gains more than the old one, on the rows of now; or None
    why               the reason, in words
    """

    where: tuple[str, ...]
    kind: str
    before: str
    after: str
    node_before: int
    node_after: int
    size_before: int
    size_after: int
    nodes_before: int
    nodes_after: int
    gains_before: tuple[float | None, float | None]
    gains_after: tuple[float | None, float | None]
    overtaken_by: float | None
    why: str

    def __str__(self) -> str:
        """Say it in four lines."""
        nodes = f"{_plural(self.nodes_before, 'node')} -> {_plural(self.nodes_after, 'node')}"
        return (
            f"{' and '.join(self.where) or 'root'}: {self.kind} ({nodes})\n"
            f"  before  {self.before}, {_plural(self.size_before, 'example')}\n"
            f"  after   {self.after}, {_plural(self.size_after, 'example')}\n"
            f"  why     {self.why}"
        )


@dataclass(frozen=True)
class Diff:
    """What changed between two moments of a tree; `str()` of it is a report.

    `unchanged` counts the nodes that have the same split or answer as before; `inserted`, `deleted`
    and `corrected` the rows that came, went, or got another value under the same id.
    """

    changes: tuple[Change, ...]
    unchanged: int
    size_before: int
    size_after: int
    inserted: int
    deleted: int
    corrected: int

    def __str__(self) -> str:
        """Write a report."""
        rows = (
            f"{_plural(self.size_before, 'example')} -> {self.size_after} "
            f"({self.inserted} in, {self.deleted} out, {self.corrected} corrected)"
        )
        head = f"{_plural(len(self.changes), 'change')}, {self.unchanged} nodes as before; {rows}"
        return "\n".join([head, *map(str, self.changes)])


def diff(
    before: Any,
    after: Any,
    *,
    feature_names: Sequence[str] | None = None,
    categories: Categories | None = None,
    digits: int | None = None,
) -> Diff:
    """Tell which nodes of a tree changed between two moments, and why.

    Each moment is a `snapshot`, or a tree as it is now. Both are followed from the root for as long
    as the splits are the same; where they part is a change, and what lies below is replaced with
    it. O(n·depth + nodes) after the snapshots are made. `categories` names the texts that may
    occur, and `digits` rounds thresholds, as in `export_text`.

    >>> from evertree import EverTree
    >>> tree = EverTree(n_features=2)
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> ids = tree.insert_many(X, ["no", "no", "yes", "yes"])     # the first feature decides
    >>> before = snapshot(tree)
    >>> for i, x in zip(ids, X):
    ...     tree.replace(i, x, "yes" if x[1] else "no")           # now it is the second
    >>> print(diff(before, tree))
    1 change, 0 nodes as before; 4 examples -> 4 (0 in, 0 out, 2 corrected)
    root: split replaced (3 nodes -> 3 nodes)
      before  x0 <= 0.5 or missing, 4 examples
      after   x1 <= 0.5 or missing, 4 examples
      why     on the rows of now x1 <= 0.5 or missing gains 0.5000 and x0 <= 0.5 or missing \
0.0000: overtaken by 0.5000 (before: 0.0000 and 0.5000)
    """
    moments = [m if isinstance(m, Snapshot) else snapshot(m) for m in (before, after)]
    then, now = moments
    for name in ("n_features", "categorical"):
        values = [getattr(moment.limits, name) for moment in moments]
        if values[0] != values[1]:
            raise InvalidParameter(
                f"before has {name}={values[0]} and after {name}={values[1]}: two moments of one "
                "tree can be compared, or two trees of the same features"
            )
    words = Words.of(now, now.limits.n_features, feature_names, categories, digits)
    changes, unchanged = _Comparison(then, now, words).run()
    return Diff(
        tuple(changes),
        unchanged,
        _size(then.nodes[0]),
        _size(now.nodes[0]),
        *_traffic(then.examples, now.examples),
    )


class _Pair(NamedTuple):
    """The same place in both trees, with the rows that come there."""

    then: Node
    now: Node
    rows_then: Integers
    rows_now: Integers
    where: tuple[str, ...]


class _Comparison:
    """Two moments of a tree, walked through together."""

    def __init__(self, then: Snapshot, now: Snapshot, words: Words) -> None:
        self._then, self._now, self._words = then, now, words

    def run(self) -> tuple[list[Change], int]:
        changes: list[Change] = []
        unchanged = 0
        pending = [_Pair(self._then.nodes[0], self._now.nodes[0], *self._all_rows(), ())]
        while pending:
            pair = pending.pop()
            kind = _kind(pair.then, pair.now)
            if kind is not None:
                changes.append(self._change(pair, kind))
                continue
            unchanged += 1
            if pair.now["feature"] is not None:
                pending += reversed(self._children(pair))
        return changes, unchanged

    def _all_rows(self) -> tuple[Integers, Integers]:
        then, now = (np.arange(len(m.examples.y)) for m in (self._then, self._now))
        return then, now

    def _children(self, pair: _Pair) -> list[_Pair]:
        left_then, right_then = _divide(self._then.examples, pair.rows_then, pair.then)
        left_now, right_now = _divide(self._now.examples, pair.rows_now, pair.now)
        return [
            self._child(pair, "left", left_then, left_now),
            self._child(pair, "right", right_then, right_now),
        ]

    def _child(
        self,
        pair: _Pair,
        side: Literal["left", "right"],
        rows_then: Integers,
        rows_now: Integers,
    ) -> _Pair:
        return _Pair(
            self._then.nodes[cast("int", pair.then[side])],
            self._now.nodes[cast("int", pair.now[side])],
            rows_then,
            rows_now,
            (*pair.where, self._words.condition(pair.now, left=side == "left")),
        )

    def _change(self, pair: _Pair, kind: str) -> Change:
        splits = (pair.then, pair.now)
        gains_then = _gains(self._then.examples, pair.rows_then, splits)
        gains_now = _gains(self._now.examples, pair.rows_now, splits)
        old, new = gains_now
        overtaken_by = None if old is None or new is None else new - old
        change = Change(
            where=pair.where,
            kind=kind,
            before=self._told(pair.then),
            after=self._told(pair.now),
            node_before=pair.then["id"],
            node_after=pair.now["id"],
            size_before=_size(pair.then),
            size_after=_size(pair.now),
            nodes_before=subtree_size(self._then.nodes, pair.then),
            nodes_after=subtree_size(self._now.nodes, pair.now),
            gains_before=gains_then,
            gains_after=gains_now,
            overtaken_by=overtaken_by,
            why="",
        )
        return dataclasses.replace(change, why=_why(change, pair, self._now.limits))

    def _told(self, node: Node) -> str:
        if node["feature"] is not None:
            return self._words.condition(node, left=True)
        return f"label {show(majority(node['counts']))}" if node["counts"] else "an empty leaf"


def _kind(then: Node, now: Node) -> str | None:
    """Name the change between two nodes at the same place; None if there is none."""
    if then["feature"] is None and now["feature"] is None:
        empty = not then["counts"], not now["counts"]
        same = empty[0] == empty[1] and (
            empty[0] or majority(then["counts"]) == majority(now["counts"])
        )
        return None if same else "answer changed"
    if then["feature"] is None:
        return "leaf split"
    if now["feature"] is None:
        return "split became leaf"
    return None if _split(then) == _split(now) else "split replaced"


def _split(node: Node) -> tuple[object, ...]:
    # nan does not equal itself, the split on missing values does
    category = "missing" if is_missing(node["category"]) else node["category"]
    return node["feature"], node["threshold"], category, node["missing_left"]


def _divide(examples: Examples, rows: Integers, node: Node) -> tuple[Integers, Integers]:
    values = examples.X[rows, cast("int", node["feature"])]
    real = node["threshold"] is not None
    holds = values <= node["threshold"] if real else values == node["category"]
    if node["missing_left"]:
        holds |= np.isnan(values)
    return rows[holds], rows[~holds]


def _gains(
    examples: Examples, rows: Integers, splits: Iterable[Node]
) -> tuple[float | None, float | None]:
    """Measure splits on the rows of a node: the Gini impurity that each takes away."""
    if not len(rows):
        return None, None
    old, new = (_gain(examples, rows, node) for node in splits)
    return old, new


def _gain(examples: Examples, rows: Integers, node: Node) -> float | None:
    if node["feature"] is None:
        return None
    left, right = _divide(examples, rows, node)
    lost = _mass(examples, rows) - _mass(examples, left) - _mass(examples, right)
    return lost / len(rows)


def _mass(examples: Examples, rows: Integers) -> float:
    counts = Counter(examples.y[i] for i in rows)
    return len(rows) * _gini(counts)


def _gini(counts: Mapping[Hashable, int]) -> float:
    n = sum(counts.values())
    return 1.0 - sum(count**2 for count in counts.values()) / n**2 if n else 0.0


def _size(node: Node) -> int:
    return sum(node["counts"].values())


def _traffic(then: Examples, now: Examples) -> tuple[int, int, int]:
    """Count the rows that came, went, or changed under the same id."""
    old, new = ({int(i): place for place, i in enumerate(m.ids)} for m in (then, now))
    both = old.keys() & new.keys()
    corrected = sum(not _same_row(then, old[i], now, new[i]) for i in both)
    return len(new) - len(both), len(old) - len(both), corrected


def _same_row(then: Examples, i: int, now: Examples, j: int) -> bool:
    return then.y[i] == now.y[j] and np.array_equal(then.X[i], now.X[j], equal_nan=True)


# --- in words


def _why(change: Change, pair: _Pair, limits: Limits) -> str:
    if change.kind == "split replaced":
        return _why_replaced(change)
    if change.kind == "answer changed":
        return f"labels {_counts(pair.then)} became {_counts(pair.now)}"
    was, is_now = _gini(pair.then["counts"]), _gini(pair.now["counts"])
    change_of_gini = f"Gini impurity {was:.4f} -> {is_now:.4f}"
    if change.kind == "leaf split":
        return f"{change_of_gini}: {_why_split(is_now, limits)}{_won(change.gains_after[1])}"
    return f"{change_of_gini}: {_why_leaf(change.size_after, is_now, limits)}"


def _why_split(gini: float, limits: Limits) -> str:
    if gini >= limits.min_impurity:
        return f"from min_impurity={limits.min_impurity} on a set is split"
    return "a part above was rebuilt, and a rebuild goes on down to min_impurity / 2"


def _won(gain: float | None) -> str:
    return "" if gain is None else f"; the split gains {gain:.4f}"


def _why_leaf(size: int, gini: float, limits: Limits) -> str:
    if size < limits.min_samples_split:
        return f"fewer than min_samples_split={limits.min_samples_split} examples are a leaf"
    if gini == 0:
        return "all its examples have one label"
    if gini <= limits.min_impurity / 2:
        return "a rebuild stops at min_impurity / 2"
    return "its examples are all equal, or lie at max_depth"


def _why_replaced(change: Change) -> str:
    old, new = change.gains_after
    if old is None or new is None or change.overtaken_by is None:
        return "no row is left to measure the two splits on"
    text = f"on the rows of now {change.after} gains {new:.4f} and {change.before} {old:.4f}: "
    by = change.overtaken_by
    if by >= 0:
        text += f"overtaken by {by:.4f}"
    else:
        # Build chose the new split when it was the best; rows have come and gone since.
        text += f"{-by:.4f} behind by now, but ahead when the node was rebuilt"
    if None not in change.gains_before:
        was_old, was_new = change.gains_before
        text += f" (before: {was_new:.4f} and {was_old:.4f})"
    return text


def _counts(node: Node) -> str:
    return "{" + ", ".join(f"{show(k)}: {n}" for k, n in node["counts"].items()) + "}"


def _plural(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
