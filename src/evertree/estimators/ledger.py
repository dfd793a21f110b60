"""A tree, the order in which its examples came, and the tree in arrays while it lasts.

The order is what a window and a copy need: which example is the oldest, and with which examples the
same tree can be made again. Ids are appended when they come; one whose example has gone stays until
it is met or until such ids are the majority, because a deletion by value does not tell the id.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evertree.estimators.descend import Descent

if TYPE_CHECKING:
    from evertree.encoding import Floats, Ids, Labels
    from evertree.tree import EverTree


class Ledger:
    """An EverTree whose examples are known in the order of their arrival.

    >>> from evertree import EverTree
    >>> ledger = Ledger(EverTree(n_features=1))
    >>> ledger.insert_many(np.array([[31.0], [62.0], [47.0]]), ["yes", "no", "yes"])
    array([0, 1, 2])
    >>> ledger.delete_many(ids=[1])
    >>> ledger.oldest(2)
    [0, 2]
    """

    __slots__ = ("_arrivals", "_descent", "_descent_of", "tree")

    def __init__(self, tree: EverTree) -> None:
        self.tree = tree
        self._arrivals: deque[int] = deque()
        self._descent: Descent | None = None
        self._descent_of: object = None  # the state that it shows

    def insert(self, x: Any, y: Hashable) -> int:
        """Take one example in, as EverTree.insert does; return its id."""
        number = self.tree.insert(x, y)
        self._arrivals.append(number)
        return number

    def insert_many(
        self, rows: Floats, labels: Labels, ids: Ids | None = None
    ) -> npt.NDArray[np.int64]:
        """Take all rows in as one update, as EverTree.insert_many does; return their ids.

        An id of the caller's may have belonged to an example that is gone: then its old arrival
        must not count, and O(n) goes into finding out.
        """
        if ids is not None and len(self._arrivals) != len(self.tree):
            self._arrivals = deque(self._living())
        # An AdaptiveTree learns the end of a batch in pieces, to see which windows do well.
        found = self.tree.insert_first(rows, labels, ids)
        self._arrivals.extend(found.tolist())
        return found

    def delete(self, x: Any, y: Hashable) -> None:
        """Take one example out by value, as EverTree.delete does."""
        self.tree.delete(x, y)
        self._tidy()

    def delete_many(self, *request: Any, ids: Ids | None = None) -> None:
        """Take examples out as one update, by value or by ids, as EverTree.delete_many does."""
        if ids is None:
            self.tree.delete_many(*request)
        else:
            self.tree.delete_many(ids=ids)
        self._tidy()

    def oldest(self, n: int) -> list[int]:
        """List the ids of the n examples that came first. O(n), amortised."""
        return list(itertools.islice(self._living(), n))

    def examples(self) -> tuple[Floats, list[Hashable], npt.NDArray[np.int64]]:
        """Give rows, labels and ids of all examples, the oldest first. O(n·d)."""
        ids = list(self._living())
        examples = [self.tree.example(i) for i in ids]
        width = self.tree.limits.n_features
        rows = np.array([x for x, _ in examples], dtype=np.float64).reshape(len(ids), width)
        return rows, [y for _, y in examples], np.array(ids, dtype=np.int64)

    def descent(self, classes: Sequence[Hashable]) -> Descent:
        """Give the tree as arrays, laid out anew if it has changed. O(nodes · labels)."""
        # Whatever changes the tree is counted, also what is done to it without us.
        state = self.tree.stats(), list(classes)
        if self._descent is None or self._descent_of != state:
            self._descent = Descent(self.tree, classes)
            self._descent_of = state
        return self._descent

    def has_descent(self, classes: Sequence[Hashable]) -> bool:
        """Tell whether the tree is laid out already. O(nodes)."""
        return self._descent_of == (self.tree.stats(), list(classes))

    def _living(self) -> Iterator[int]:
        return (i for i in self._arrivals if i in self.tree)

    def _tidy(self) -> None:
        arrivals = self._arrivals
        if len(arrivals) > 2 * len(self.tree) + 1000:
            self._arrivals = deque(self._living())
        while self._arrivals and self._arrivals[0] not in self.tree:
            self._arrivals.popleft()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by examples: the copy is what Build gives for them. O(d·n·log n).

        It has the same examples, ids and limits, and keeps the same promise; where the original is
        a repaired tree, not one freshly built, the copy may have other splits; an AdaptiveTree
        judges its windows anew, by its last examples.
        """
        return _restored, (type(self.tree), self.tree.parameters(), *self.examples())


def _restored(
    kind: type[EverTree],
    parameters: dict[str, Any],
    rows: Floats,
    labels: list[Hashable],
    ids: npt.NDArray[np.int64],
) -> Ledger:
    ledger = Ledger(kind(**parameters))
    ledger.insert_many(rows, labels, ids)
    return ledger
