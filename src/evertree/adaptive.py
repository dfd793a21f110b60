"""AdaptiveTree: a tree that finds out by itself how many of the latest examples still help.

Several trees follow one store of examples in the compiled core, each with its own window; the one
that has been right most often of late answers. What is done with examples (insert, correct, delete,
label) is what EverTree does, so this file only says which trees there are and which of them is it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evertree import _core
from evertree.encoding import Encoder, Floats, Ids, Labels, Row, Rows, show
from evertree.errors import InvalidParameter
from evertree.frames import matrix
from evertree.limits import Limits, gap, whole
from evertree.tree import Certificate, EverTree, Examples, certificate, id_in_use

# Beside the full tree, one that cannot overfit: on noisy data it is the better one.
_SHALLOW: Final = 10
# Shorter windows cost little and are the first to see a change: they never rest.
_ALWAYS_AWAKE: Final = 1000
# No tree holds more, so nothing changes by cutting here.
_WINDOW_MAX: Final = 2**62
# Of a table, so many rows at the end test the trees before they learn them, in such pieces.
_TESTED: Final = 2000
_PIECE: Final = 100

_WINDOW_RULE: Final = "is not an int >= 1: it is how many of the latest examples a tree holds"


@dataclass(frozen=True)
class Candidate:
    """One of the trees of an AdaptiveTree, and how it is doing.

    `window` is how many of the latest examples it holds (None: all), `accuracy` the share of
    examples that it labelled rightly before it learned them, the last five hundred counting most (0
    before the first; one that has just been woken starts a little below the best). Without a tree
    (`awake` is False) it costs nothing, and its accuracy is that of when it went to rest.
    `examples` counts what is in its window.
    """

    window: int | None
    max_gap: float
    max_depth: int | None
    awake: bool
    answering: bool
    accuracy: float
    examples: int
    nodes: int


class AdaptiveTree(EverTree):
    """An EverTree that answers from as many of the latest examples as still help.

    n_features, categorical, min_impurity, min_samples_split, max_depth, n_jobs   as in EverTree
    max_gap     β of the trees that hold all examples
    window_gap  β of those that hold a window. They are short-lived, so it may be larger: on the
                paper's data 0.3 is a third of the work of 0.1, and costs no accuracy
    windows     how many of the latest examples the other trees hold
    max_window  forget what is older than so many examples; None keeps all

    The trees: one of all examples, one of all with at most 10 levels, and one for each window.
    Every insertion first tests them, and the tree that is best of late answers; one that has long
    been worse rests, and is built again when its time comes or things change.

    Examples are stored once, whatever the number of trees. Promise: after every call, each split of
    every tree that is awake is within its β of the best one for its window (`certify` checks all of
    them). An insertion costs what it costs in each tree that is awake, and the first after a label
    came or went sorts the labels. A batch of `insert_many` is tested as a whole by the trees as
    they were, and then learned as a whole. If all of a window is deleted, another tree answers.

    >>> tree = AdaptiveTree(n_features=1, windows=[20])
    >>> for i in range(200):
    ...     _ = tree.insert([i % 10], "high" if (i % 10 > 4) == (i < 100) else "low")
    >>> tree.label([9]), tree.window, len(tree)
    ('low', 20, 200)
    """

    __slots__ = ("_candidates", "_max_window", "_panel", "_window_gap", "_windows")

    def __init__(
        self,
        n_features: int,
        categorical: Iterable[int] = (),
        max_gap: float = 0.2,
        min_impurity: float = 0.01,
        min_samples_split: int = 2,
        max_depth: int | None = None,
        windows: Iterable[int] = (100, 1000, 10000),
        max_window: int | None = None,
        window_gap: float = 0.3,
        n_jobs: int | None = None,
    ) -> None:
        limits = Limits.checked(
            n_features,
            categorical,
            max_gap,
            min_impurity,
            min_samples_split,
            max_depth,
            None,
            n_jobs,
        )
        longest = None if max_window is None else whole("max_window", max_window, 1, _WINDOW_RULE)
        self._max_window = longest
        self._windows = _checked_windows(windows)
        self._window_gap = gap("window_gap", window_gap)
        self._candidates = _candidates(limits, self._windows, self._window_gap, longest)
        encoder = Encoder(limits.n_features, limits.categorical)
        self._panel = _core.Panel(
            limits.n_features,
            list(limits.categorical),
            [_in_core(candidate, limits) for candidate in self._candidates],
            limits.n_jobs,
            encoder,
        )
        self._follow(self._panel, limits, encoder)

    @property
    def window(self) -> int | None:
        """How many of the latest examples the tree that answers now holds; None for all. O(1)."""
        return self._candidates[self._panel.best()].window

    @property
    def limits(self) -> Limits:
        """The limits of the tree that answers now. O(1)."""
        one = self._candidates[self._panel.best()]
        return replace(self._limits, max_gap=one.max_gap, max_depth=one.max_depth)

    def candidates(self) -> list[Candidate]:
        """List all trees and how they are doing, the longest windows first.

        O(their number), and what updates have left to build.

        >>> [(one.window, one.awake) for one in AdaptiveTree(n_features=1).candidates()]
        [(None, True), (None, True), (10000, False), (1000, False), (100, False)]
        """
        best = self._panel.best()
        return [
            Candidate(
                window=one.window,
                max_gap=one.max_gap,
                max_depth=one.max_depth,
                awake=awake,
                answering=i == best,
                accuracy=accuracy,
                examples=examples,
                nodes=nodes,
            )
            for i, (one, (awake, accuracy, examples, nodes)) in enumerate(
                zip(self._candidates, self._panel.candidates(), strict=True)
            )
        ]

    def answers(self, x: Row) -> list[Any]:
        """Ask every tree for the label of x, in the order of `candidates`. O(depths).

        None stands for one that rests or whose window is empty. Where they differ, something may be
        changing.

        >>> tree = AdaptiveTree(n_features=1)
        >>> i = tree.insert([31.0], "yes")
        >>> tree.answers([40.0])
        ['yes', 'yes', None, None, None]
        """
        return [None if one is _core.EMPTY else one for one in self._panel.answers(x)]

    def parameters(self) -> dict[str, Any]:
        """Give what this tree was made with, to make another one like it. O(1)."""
        limits = super().parameters()
        del limits["epsilon"]
        return limits | {
            "windows": self._windows,
            "max_window": self._max_window,
            "window_gap": self._window_gap,
        }

    def examples(self, *, answering: bool = False) -> Examples:
        """Copy all active examples, or only those of the tree that answers; the smallest id first.

        >>> tree = AdaptiveTree(n_features=1, max_window=2)
        >>> ids = tree.insert_many([[31.0], [62.0], [47.0]], ["yes", "no", "yes"])
        >>> tree.examples().ids
        array([1, 2])
        """
        return self._examples(answering=answering)

    def insert_first(self, X: Rows, y: Labels, ids: Ids | None = None) -> npt.NDArray[np.int64]:
        """Take a table in so that the trees can be told apart: its last 2,000 rows test them.

        They go in a hundred at a time, so an error that is not of the rows themselves (Ctrl-C, no
        memory) takes all of them out again, but leaves what they have shown.
        """
        rows = matrix(self._encoder, X)
        labels = self._encoder.labels(y, len(rows))
        numbers = self._checked(rows, labels, ids)
        learned: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        start, stop = 0, max(0, len(rows) - _TESTED)
        try:
            while start < len(rows):
                stop = max(stop, min(start + _PIECE, len(rows)))
                piece = slice(start, stop)
                some = None if numbers is None else numbers[piece]
                learned.append(self.insert_many(rows[piece], labels[piece], some))
                start = stop
        except BaseException:
            self.delete_many(ids=np.concatenate(learned))
            raise
        return np.concatenate(learned)

    def _checked(
        self, rows: Floats, labels: list[Hashable], ids: Ids | None
    ) -> npt.NDArray[np.int64] | None:
        """Refuse a whole table for one bad label or id, by its place in it."""
        for label in labels:
            self._encoder.label(label)
        if ids is None:
            return None
        numbers = self._encoder.ids(ids, len(rows))
        for place, number in enumerate(numbers.tolist()):
            if number in self:
                raise id_in_use(f"ids[{place}]", number, "ids")
        return numbers

    def certify(self) -> Certificate:
        """Audit every tree that is awake, each against the examples of its window.

        Costs as much as `EverTree.certify` for each of them. A breach names its tree; `worst_gap`,
        `worst_node` and `nodes` are those of the tree that answers.
        """
        best, found = self._panel.certify()
        audits = [certificate(audit) for audit in found]
        answering = audits[best]
        breaches = [
            f"{one}: {breach}"
            for one, audit in zip(self._candidates, audits, strict=True)
            for breach in audit.breaches
        ]
        return Certificate(
            ok=not breaches,
            breaches=tuple(breaches),
            worst_gap=answering.worst_gap,
            worst_node=answering.worst_node,
            nodes=answering.nodes,
        )


@dataclass(frozen=True)
class _Chosen:
    window: int | None
    max_gap: float
    max_depth: int | None

    def __str__(self) -> str:
        held = "all" if self.window is None else f"the last {self.window}"
        depth = "" if self.max_depth is None else f", max_depth {self.max_depth}"
        return f"tree of {held}{depth}"


def _candidates(
    limits: Limits, windows: list[int], window_gap: float, longest: int | None
) -> list[_Chosen]:
    """Choose the trees, the longest windows first: of equally good ones the first answers."""
    chosen = [_Chosen(longest, limits.max_gap, limits.max_depth)]
    if limits.max_depth is None or limits.max_depth > _SHALLOW:
        chosen.append(_Chosen(longest, limits.max_gap, _SHALLOW))
    return chosen + [
        _Chosen(window, window_gap, limits.max_depth)
        for window in sorted(windows, reverse=True)
        if longest is None or window < longest
    ]


def _in_core(one: _Chosen, limits: Limits) -> tuple[int, float, float, int, int, bool]:
    depth = limits.max_depth_in_core if one.max_depth == limits.max_depth else one.max_depth
    return (
        -1 if one.window is None else min(one.window, _WINDOW_MAX),
        one.max_gap,
        limits.min_impurity,
        limits.min_samples_split_in_core,
        -1 if depth is None else depth,
        one.window is None or one.window > _ALWAYS_AWAKE,
    )


def _checked_windows(windows: object) -> list[int]:
    try:
        members = list(windows)  # type: ignore[call-overload]
    except TypeError as error:
        raise InvalidParameter(
            f"windows={show(windows)} is not a list: it says how many of the latest examples each "
            "tree holds, such as [100, 1000]"
        ) from error
    checked = [whole(f"windows[{i}]", w, 1, _WINDOW_RULE) for i, w in enumerate(members)]
    if len(set(checked)) < len(checked):
        raise InvalidParameter(
            f"windows={show(members)} names a window twice: each is a tree of its own; name it once"
        )
    return checked
