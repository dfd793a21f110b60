"""EverTree: the tree as people use it. This file and adaptive.py alone know the compiled core.

The core does the work and answers with values and codes; this file checks parameters once, hands
the requests on, and turns codes into errors in words. Requests of one row are one call of the core
and one comparison, because they are the ones that a stream makes a million times.

Every method is all or nothing: when it raises, tree and active set are as they were.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, TypedDict, overload

import numpy as np
import numpy.typing as npt

from evertree import _core
from evertree.encoding import ID_LIMIT, Encoder, Ids, Labels, Row, Rows, show, token
from evertree.errors import (
    DuplicateId,
    EmptyTree,
    ExampleNotFound,
    InvalidExample,
)
from evertree.frames import matrix
from evertree.limits import Limits

_ABSENT: Final = object()  # None is a label like any other, so it cannot mean "not given"
_EMPTY: Final = _core.EMPTY
_INT64: Final = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Certificate:
    """What an audit found: whether every split is within `max_gap` of the best, and by how much.

    `breaches` says in words what is wrong, one sentence each; `worst_gap` is the largest loss of
    Gini gain at any split, `worst_node` the id of that node (None in a tree without splits).
    """

    ok: bool
    breaches: tuple[str, ...]
    worst_gap: float
    worst_node: int | None
    nodes: int


@dataclass(frozen=True, eq=False)
class Examples:
    """The examples of a tree at one moment, copied; the smallest id first."""

    ids: npt.NDArray[np.int64]
    X: npt.NDArray[np.float64]
    y: tuple[Any, ...]


class Node(TypedDict):
    """One node as plain data, as `EverTree.nodes` lists it."""

    id: int
    parent: int | None
    depth: int
    feature: int | None
    threshold: float | None
    category: float | None
    missing_left: bool | None
    left: int | None
    right: int | None
    counts: dict[Hashable, int]


class EverTree:
    """A decision tree that is a live view of the examples that are in now.

    n_features         how many numbers a row has
    categorical        positions of the features that are categories: texts, or whole numbers >= 0
    max_gap            β in (0, 1]: no split is further than this from the best one
    min_impurity       α in [0, 1]: a set with at least this Gini impurity is split. With 0 the
                       promises hold, but the amortised cost of an update has no bound any more
    min_samples_split  k + 1, at least 2: smaller sets are leaves
    max_depth          h, at least 0, or None for no limit
    epsilon            None for the certified rule. A number >= 0 is the counter rule of the paper,
                       for comparison; `certified` tells whether it still carries the guarantee
    n_jobs             threads for large builds: None for one, -1 for all processors. The tree is
                       the same with any number of them

    Promise: after every call, each split is within max_gap of the best split for the examples that
    are active then (`certify` checks it), and the same requests give the same tree everywhere.
    O(1) to make; memory is O(n·d) for n active examples.

    >>> tree = EverTree(n_features=2, categorical=[1])
    >>> ids = tree.insert_many([(31.0, 0), (62.0, 0), (38.0, 1)], ["yes", "no", "yes"])
    >>> tree.label((55.0, 1))
    'no'
    >>> tree.insert((45.0, "Oslo"), "no")
    3
    >>> EverTree(n_features=2, max_gap=1.5)
    Traceback (most recent call last):
    ...
    evertree.errors.InvalidParameter: max_gap=1.5 is not in (0, 1]: it is the largest loss of Gini \
gain that a split may have; 0.1 is the default
    """

    __slots__ = (
        "__weakref__",
        "_core",
        "_encoder",
        "_insert",
        "_label",
        "_limits",
    )

    def __init__(
        self,
        n_features: int,
        categorical: Iterable[int] = (),
        max_gap: float = 0.1,
        min_impurity: float = 0.01,
        min_samples_split: int = 2,
        max_depth: int | None = None,
        epsilon: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        limits = Limits.checked(
            n_features,
            categorical,
            max_gap,
            min_impurity,
            min_samples_split,
            max_depth,
            epsilon,
            n_jobs,
        )
        encoder = Encoder(limits.n_features, limits.categorical)
        core = _core.Tree(
            limits.n_features,
            list(limits.categorical),
            limits.max_gap,
            limits.min_impurity,
            limits.min_samples_split_in_core,
            limits.max_depth_in_core,
            -1.0 if limits.epsilon is None else limits.epsilon,
            limits.n_jobs,
            encoder,
        )
        self._follow(core, limits, encoder)

    def _follow(self, core: _core.Tree | _core.Panel, limits: Limits, encoder: Encoder) -> None:
        self._core = core
        self._limits = limits
        self._encoder = encoder
        # The two calls of a stream, found once instead of a million times.
        self._insert = self._core.insert
        self._label = self._core.label

    # --- requests

    def insert(self, x: Row, y: Hashable, id: int | None = None) -> int:
        """Take one example into the active set; return its id.

        Amortised O(d·log³n / β²); a single call may rebuild the tree. `x` is any sequence of
        n_features numbers (nan where one is missing, texts where they are categories), `y` any
        hashable label. Without `id` the example gets one more than the largest id ever used.
        Raises DuplicateId if `id` is in use, InvalidExample if row, label or id is not valid.

        >>> tree = EverTree(n_features=1)
        >>> tree.insert([31.0], "yes"), tree.insert([62.0], "no", id=42), tree.insert([62.0], "no")
        (0, 42, 43)
        """
        found = self._insert(x, y) if id is None else self._insert(x, y, self._encoder.id(id))
        if found < 0:
            raise _no_id(found, id)
        return found

    @overload
    def delete(self, x: Row, y: Hashable) -> None: ...
    @overload
    def delete(self, *, id: int) -> None: ...
    def delete(self, x: Any = _ABSENT, y: Any = _ABSENT, *, id: Any = _ABSENT) -> None:
        """Take one example out of the active set: by value, `delete(x, y)`, or by `delete(id=i)`.

        Amortised O(d·log³n / β²); a single call may rebuild the tree, and the first one by value
        indexes all values, O(n·d). Among equal examples the one inserted last goes. Missing equals
        missing, and -0.0 equals 0.0. Raises ExampleNotFound if it is not there.

        >>> tree = EverTree(n_features=1)
        >>> ids = tree.insert_many([[31.0], [62.0], [62.0]], ["yes", "no", "no"])
        >>> tree.delete([62.0], "no")
        >>> tree.delete(id=1)
        >>> tree.label([70.0])
        'yes'
        >>> tree.delete([62.0], "no")
        Traceback (most recent call last):
        ...
        evertree.errors.ExampleNotFound: no active example has x=[62.0] and label 'no': only what \
is in can be deleted; compare the values, or delete by the id that insert() returned
        """
        if id is not _ABSENT and x is _ABSENT and y is _ABSENT:
            if not self._core.delete_id(self._encoder.id(id, "id", ExampleNotFound)):
                raise _no_such_id(id)
        elif id is _ABSENT and x is not _ABSENT and y is not _ABSENT:
            if not self._core.delete_value(x, y):
                self._encoder.label(y)  # what can't be a label at all is refused as such
                raise ExampleNotFound(
                    f"no active example has x={show(x)} and label {show(y)}: only what is in can "
                    "be deleted; compare the values, or delete by the id that insert() returned"
                )
        else:
            raise InvalidExample(
                f"delete() was given {_given(x=x, y=y, id=id)}: name one example, "
                "by value with delete(x, y) or by id with delete(id=i)"
            )

    def replace(self, id: int, x: Row, y: Hashable) -> None:
        """Correct an example: it keeps its id and gets a new row and label.

        Amortised O(d·log³n / β²); a deletion and an insertion with one repair. Raises
        ExampleNotFound if no active example has this id.

        >>> tree = EverTree(n_features=1)
        >>> i = tree.insert([31.0], "yes")
        >>> tree.replace(i, [31.0], "no")
        >>> tree.label([31.0]), len(tree)
        ('no', 1)
        """
        if not self._core.replace(self._encoder.id(id), x, y):
            raise _no_such_id(id)

    def insert_many(self, X: Rows, y: Labels, ids: Ids | None = None) -> npt.NDArray[np.int64]:
        """Take all rows of X in as one update; return their ids.

        Less work than row by row: the tree is repaired once, after all rows are in, and
        the promise holds then. The first batch of a tree is one Build,
        O(d·n·(log n + height)). An empty batch changes nothing. X may be a DataFrame: its columns
        are taken by position, missing values as nan, booleans and moments as numbers.

        >>> tree = EverTree(n_features=1)
        >>> tree.insert_many([[31.0], [62.0]], ["yes", "no"])
        array([0, 1])
        >>> tree.insert_many([[45.0]], ["no"], ids=[1])
        Traceback (most recent call last):
        ...
        evertree.errors.DuplicateId: ids[0]=1 is in use: an id belongs to one active example; \
choose another, leave ids out to get free ones, or replace(1, x, y)
        """
        rows = matrix(self._encoder, X)
        labels = self._encoder.labels(y, len(rows))
        numbers = None if ids is None else self._encoder.ids(ids, len(rows))
        found = self._core.insert_many(rows, labels, numbers)
        if not isinstance(found, int):
            return found.view(np.int64)
        if numbers is None or found < 0:
            raise _no_id(found, None)
        raise id_in_use(f"ids[{found}]", int(numbers[found]), "ids")

    def insert_first(self, X: Rows, y: Labels, ids: Ids | None = None) -> npt.NDArray[np.int64]:
        """Take a whole table in, as `insert_many` does; an AdaptiveTree tests itself on its end."""
        return self.insert_many(X, y, ids)

    @overload
    def delete_many(self, X: Rows, y: Labels) -> None: ...
    @overload
    def delete_many(self, *, ids: Ids) -> None: ...
    def delete_many(self, X: Any = _ABSENT, y: Any = _ABSENT, *, ids: Any = _ABSENT) -> None:
        """Take many examples out as one update, by value or by id.

        Less work than one by one: the tree is repaired once, at the end, and the
        promise holds then. Raises ExampleNotFound, and deletes none, if one of them is not there
        (as often as it is named). An empty batch changes nothing.

        >>> tree = EverTree(n_features=1)
        >>> ids = tree.insert_many([[31.0], [62.0], [62.0]], ["yes", "no", "no"])
        >>> tree.delete_many([[62.0], [62.0]], ["no", "no"])
        >>> tree.delete_many(ids=[0])
        >>> len(tree)
        0
        """
        if ids is not _ABSENT and X is _ABSENT and y is _ABSENT:
            self._delete_many_ids(ids)
        elif ids is _ABSENT and X is not _ABSENT and y is not _ABSENT:
            self._delete_many_values(X, y)
        else:
            raise InvalidExample(
                f"delete_many() was given {_given(X=X, y=y, ids=ids)}: name the examples, "
                "by value with delete_many(X, y) or by id with delete_many(ids=ids)"
            )

    def _delete_many_ids(self, ids: Ids) -> None:
        numbers = self._encoder.ids(ids, None, ExampleNotFound, ExampleNotFound)
        position = self._core.delete_many_ids(numbers)
        if position >= 0:
            raise _no_such_id(int(numbers[position]), f"ids[{position}]")

    def _delete_many_values(self, X: Rows, y: Labels) -> None:
        rows = matrix(self._encoder, X)
        labels = self._encoder.labels(y, len(rows))
        position = self._core.delete_many_values(rows, labels)
        if position >= 0:
            for label in labels:
                self._encoder.label(label)
            raise ExampleNotFound(
                f"X[{position}]={show(rows[position].tolist())} with y[{position}]="
                f"{show(labels[position])} is not active, or not as often as this batch names it: "
                "only what is in can be deleted; nothing was, leave it out and try again"
            )

    # --- answers

    def label(self, x: Row) -> Any:
        """Label a row with the majority of its leaf.

        O(depth). Of labels equally frequent the one that sorts first wins, by type name, then by
        value. A leaf that has become empty answers with its nearest ancestor that is not. Raises
        EmptyTree if there are no examples.

        >>> tree = EverTree(n_features=1)
        >>> ids = tree.insert_many([[31.0], [62.0]], ["yes", "no"])
        >>> tree.label([40.0]), tree.label([50.0])
        ('yes', 'no')
        """
        found = self._label(x)
        if found is _EMPTY:
            raise _empty()
        return found

    def label_many(self, X: Rows) -> npt.NDArray[Any]:
        """Label every row of X, as one array.

        O(n·depth), without holding the GIL: many threads may label at once. The array is of bool,
        int64 or float64 when all labels of the tree are of that type, and else of objects.

        >>> tree = EverTree(n_features=1)
        >>> ids = tree.insert_many([[31.0], [62.0]], [7, 8])
        >>> tree.label_many([[20.0], [90.0], [30.0]])
        array([7, 8, 7])
        """
        # Infinities are found on the way down; who finds one has it named here.
        rows = X if self._encoder.is_ready(X) else matrix(self._encoder, X)
        found = self._core.label_many(rows)
        if isinstance(found, tuple):
            codes, labels = found
            return _as_array(labels)[codes]
        matrix(self._encoder, X)
        raise _empty()

    def label_counts(self, x: Row) -> dict[Any, int]:
        """Count the labels in the node that `label(x)` answers from.

        O(depth + labels). Raises EmptyTree if there are no examples.

        >>> tree = EverTree(n_features=1)
        >>> ids = tree.insert_many([[31.0], [31.0], [31.0]], ["yes", "no", "yes"])
        >>> tree.label_counts([31.0]) == {"yes": 2, "no": 1}
        True
        """
        found = self._core.label_counts(x)
        if isinstance(found, dict):
            return found
        raise _empty()

    # --- guarantee

    @property
    def certified(self) -> bool:
        """Whether the rule of this tree carries the guarantee. O(1).

        Always, under the certified rule. Under the paper's rule only for an epsilon below
        1 / min_samples_split and min_impurity / 5, and not above max_gap / (2 + max_gap).

        >>> EverTree(1).certified, EverTree(1, epsilon=0.5).certified
        (True, False)
        """
        return self._limits.certified

    def certify(self) -> Certificate:
        """Audit the tree from scratch, sharing no code with what maintains it.

        Slow by intent, O(d·n·depth·(log n + labels)) and more where values are many: it tries
        every split of every node. Changes nothing.

        >>> tree = EverTree(n_features=1)
        >>> ids = tree.insert_many([[31.0], [62.0]], ["yes", "no"])
        >>> tree.certify()
        Certificate(ok=True, breaches=(), worst_gap=0.0, worst_node=0, nodes=3)
        """
        _, (audit,) = self._core.certify()
        return certificate(audit)

    def rebuild(self) -> None:
        """Make the tree exactly what Build gives for the examples that are in now.

        O(d·n·(log n + height)). Afterwards nothing is left of an example that was deleted: the
        digest is that of a new tree of the same examples.

        >>> tree, fresh = EverTree(n_features=1), EverTree(n_features=1)
        >>> ids = tree.insert_many([[31.0], [62.0], [47.0]], ["yes", "no", "yes"])
        >>> tree.delete(id=2)
        >>> tree.rebuild()
        >>> ids = fresh.insert_many([[62.0], [31.0]], ["no", "yes"])
        >>> tree.digest() == fresh.digest()
        True
        """
        self._core.rebuild()

    def digest(self) -> str:
        """Hash splits, thresholds and counts: equal digests, equal trees. O(nodes · labels).

        A label counts by its type and its repr (numbers by their value), so the digests of two
        processes can be compared if the labels have a repr that stays the same.

        >>> EverTree(n_features=1).digest() == EverTree(n_features=1).digest()
        True
        """
        structure, labels = self._core.structure()
        digest = hashlib.sha256(structure)
        for label in labels:
            text = token(label).encode(errors="backslashreplace")
            digest.update(b"%d:" % len(text) + text)
        return digest.hexdigest()

    # --- looking in

    def __len__(self) -> int:
        """Count the active examples. O(1)."""
        return self._core.size()

    def __contains__(self, id: object) -> bool:
        """Tell whether an active example has this id. O(1)."""
        try:
            number = self._encoder.id(id)
        except InvalidExample:
            return False
        return self._core.contains(number)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by examples: the copy is what Build gives for them.

        O(d·n·(log n + height)). It has the same examples, ids and parameters, and keeps the same
        promise; where the original is a repaired tree, not one freshly built, the copy may have
        other splits.

        >>> import copy
        >>> tree = EverTree(n_features=1)
        >>> i = tree.insert([31.0], "yes", id=7)
        >>> twin = copy.deepcopy(tree)
        >>> tree.delete(id=7)
        >>> len(tree), len(twin), 7 in twin
        (0, 1, True)
        """
        return _restored, (type(self), self.parameters(), self._in_order(answering=False))

    def __repr__(self) -> str:
        """Say how large the tree is. O(nodes), for the depth."""
        stats = self._core.stats()
        return (
            f"<{type(self).__name__} of {self._limits.n_features} features: {len(self)} examples, "
            f"{stats['nodes']} nodes, depth {stats['depth']}>"
        )

    @property
    def limits(self) -> Limits:
        """The parameters that this tree was made with. O(1).

        >>> EverTree(n_features=2, max_depth=3).limits.max_depth
        3
        """
        return self._limits

    def parameters(self) -> dict[str, Any]:
        """Give what this tree was made with, to make another one like it. O(1).

        >>> tree = EverTree(n_features=2, max_depth=3)
        >>> EverTree(**tree.parameters()).limits == tree.limits
        True
        """
        return asdict(self._limits)

    def example(self, id: int) -> tuple[npt.NDArray[np.float64], Any]:
        """Give row and label of an active example; the row is a copy.

        O(d). Raises ExampleNotFound if no active example has this id.

        >>> tree = EverTree(n_features=2)
        >>> tree.example(tree.insert([31, 0.5], "yes"))
        (array([31. ,  0.5]), 'yes')
        """
        found = self._core.example(self._encoder.id(id, "id", ExampleNotFound))
        if found is None:
            raise _no_such_id(id)
        return found

    def examples(self) -> Examples:
        """Copy all active examples: ids, rows, labels; the smallest id first. O(n·(d + log n)).

        >>> tree = EverTree(n_features=1)
        >>> ids = tree.insert_many([[31.0], [62.0]], ["yes", "no"], ids=[9, 4])
        >>> now = tree.examples()
        >>> now.ids.tolist(), now.X.tolist(), now.y
        ([4, 9], [[62.0], [31.0]], ('no', 'yes'))
        """
        return self._examples(answering=False)

    def _examples(self, *, answering: bool) -> Examples:
        found = self._in_order(answering=answering)
        order = np.argsort(found.ids)
        return Examples(found.ids[order], found.X[order], tuple(found.y[i] for i in order))

    def _in_order(self, *, answering: bool) -> Examples:
        """Copy the examples in the order in which they came, where the core knows it."""
        ids, values, labels = self._core.examples(answering)
        rows = values.reshape(len(ids), self._limits.n_features)
        return Examples(ids.view(np.int64), rows, tuple(labels))

    def nodes(self) -> list[Node]:
        """List the tree as plain data, parents before children, left before right.

        O(nodes · labels). A node's `id` is its place in the list. A leaf has no feature; a split
        sends x left if x[feature] <= threshold, or if x[feature] == category (nan: if missing).

        >>> tree = EverTree(n_features=1)
        >>> ids = tree.insert_many([[31.0], [62.0]], ["yes", "no"])
        >>> root, left, right = tree.nodes()
        >>> root["feature"], root["threshold"], root["left"], root["right"]
        (0, 46.5, 1, 2)
        >>> left["counts"], left["parent"], left["depth"]
        ({'yes': 1}, 0, 1)
        """
        return [_node(i, fields) for i, fields in enumerate(self._core.nodes())]

    def stats(self) -> dict[str, int]:
        """Count what has been done, and what there is. O(nodes), for the depth.

        >>> tree = EverTree(n_features=1)
        >>> i = tree.insert([31.0], "yes")
        >>> sorted(tree.stats())
        ['deletes', 'depth', 'inserts', 'leaves', 'nodes', 'rebuilds', 'rows_rebuilt']
        """
        return self._core.stats()


def _restored(kind: type[EverTree], parameters: dict[str, Any], examples: Examples) -> EverTree:
    tree = kind(**parameters)
    tree.insert_first(examples.X, list(examples.y), examples.ids)
    return tree


# --- answers of the core


def certificate(audit: _core.Audit | None) -> Certificate:
    """Put the core's audit of one tree into a certificate; where there is no tree, of nothing."""
    breaches, worst_gap, worst_node, nodes = audit or ([], 0.0, -1, 0)
    return Certificate(
        ok=not breaches,
        breaches=tuple(breaches),
        worst_gap=worst_gap,
        worst_node=None if worst_node < 0 else worst_node,
        nodes=nodes,
    )


def _node(i: int, fields: tuple[int, int, int, float, int, bool, int, int, Any]) -> Node:
    parent, depth, feature, value, kind, missing_left, left, right, counts = fields
    leaf, real = kind == 0, kind == 1
    category = None if leaf or real else value if math.isnan(value) else int(value)
    return {
        "id": i,
        "parent": None if parent < 0 else parent,
        "depth": depth,
        "feature": None if leaf else feature,
        "threshold": value if real else None,
        "category": category,
        "missing_left": None if leaf else missing_left,
        "left": None if leaf else left,
        "right": None if leaf else right,
        "counts": counts,
    }


def _as_array(labels: list[Any]) -> npt.NDArray[Any]:
    types = set(map(type, labels))
    if types in ({bool}, {float}) or (types == {int} and all(label in _INT64 for label in labels)):
        return np.array(labels)
    # One by one: numpy would take a tuple for a row of its own.
    result = np.empty(len(labels), dtype=object)
    for position, label in enumerate(labels):
        result[position] = label
    return result


def _empty() -> EmptyTree:
    return EmptyTree("the tree has no examples, so it has no label to give: insert one first")


def _no_such_id(id: object, place: str = "id") -> ExampleNotFound:
    return ExampleNotFound(
        f"{place}={show(id)} is not the id of an active example: it was never given out, or its "
        "example has been deleted; `i in tree` tells"
    )


def id_in_use(place: str, id: int, argument: str) -> DuplicateId:
    """Say that an id is taken."""
    return DuplicateId(
        f"{place}={id} is in use: an id belongs to one active example; choose another, "
        f"leave {argument} out to get free ones, or replace({id}, x, y)"
    )


def _no_id(code: int, id: int | None) -> DuplicateId:
    if code == -1 and id is not None:
        return id_in_use("id", int(id), "id")
    return DuplicateId(
        f"no automatic id is left: they are one more than the largest ever used and end at "
        f"{ID_LIMIT - 1}; give a free id yourself"
    )


def _given(**arguments: object) -> str:
    names = [name for name, value in arguments.items() if value is not _ABSENT]
    return " and ".join(names) or "nothing"
