"""AdaptiveTree: a tree that finds out by itself how many of the latest examples still help.

Several trees follow one store of examples in the compiled core, each with its own window; the one
that has been right most often of late answers. What is done with examples (insert, correct, delete,
label) is what EverTree does, so this file only says which trees there are and which of them is it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from evertree import _core
from evertree.encoding import Encoder, Row, show
from evertree.errors import InvalidParameter
from evertree.limits import Limits, whole
from evertree.tree import Certificate, EverTree, Examples, certificate

# A window is short-lived, so its tree need not be as close to the best: measured on the paper's
# data, 0.3 costs a third of the work of 0.1 and no accuracy.
_GAP_OF_WINDOWS: Final = 0.3
# Beside the full tree, one that cannot overfit: on noisy data it is the better one.
_SHALLOW: Final = 10
# Shorter windows cost little and are the first to see a change: they never rest.
_ALWAYS_AWAKE: Final = 1000

_WINDOW_RULE: Final = "is not an int >= 1: it is how many of the latest examples a tree holds"


@dataclass(frozen=True)
class Candidate:
    """One of the trees of an AdaptiveTree, and how it is doing.

    `window` is how many of the latest examples it holds (None: all), `accuracy` the share of
    examples that it labelled rightly before it learned them, the last five hundred counting most.
    Without a tree (`awake` is False) it costs nothing, and its accuracy is that of when it went to
    rest. `examples` counts what is in its window.
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
    """An EverTree that keeps as many of the latest examples as still help.

    n_features, categorical, min_impurity, min_samples_split, max_depth, n_jobs   as in EverTree
    max_gap     β of the trees that hold all examples; those of windows have 0.3, if that is more
    windows     how many of the latest examples the other trees hold
    max_window  forget what is older than so many examples; None keeps all

    The trees: one of all examples, one of all with at most 10 levels, and one for each window.
    Every insertion first tests them, and the tree that is best of late answers; one that has long
    been worse rests, and is built again when its time comes or things change.

    Examples are stored once, whatever the number of trees. Promise: after every call, each split of
    every tree that is awake is within its max_gap of the best one for its window (`certify` checks
    all of them). An insertion costs what it costs in each tree that is awake. One of `insert_many`
    is tested as a whole by the trees as they were, and then learned as a whole.

    >>> tree = AdaptiveTree(n_features=1, windows=[20])
    >>> for i in range(200):
    ...     _ = tree.insert([i % 10], "high" if (i % 10 > 4) == (i < 100) else "low")
    >>> tree.label([9]), tree.window, len(tree)
    ('low', 20, 200)
    """

    __slots__ = ("_candidates", "_max_window", "_panel", "_windows")

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
        self._candidates = _candidates(limits, self._windows, longest)
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
        """List all trees and how they are doing, the longest windows first. O(their number).

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
                accuracy=max(accuracy, 0.0),
                examples=examples,
                nodes=nodes,
            )
            for i, (one, (awake, accuracy, examples, nodes)) in enumerate(
                zip(self._candidates, self._panel.candidates(), strict=True)
            )
        ]

    def answers(self, x: Row) -> list[Any]:
        """Ask every tree for the label of x, in the order of `candidates`. O(depths).

        None stands for one that rests. Where they differ, something may be changing.

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
        return limits | {"windows": self._windows, "max_window": self._max_window}

    def examples(self) -> Examples:
        """Copy the examples that the tree that answers now holds; the smallest id first."""
        return super().examples()

    def certify(self) -> Certificate:
        """Audit every tree that is awake, each against the examples of its window.

        Costs as much as `EverTree.certify` for each of them. A breach names its tree; `worst_gap`,
        `worst_node` and `nodes` are those of the tree that answers.
        """
        audits = [certificate(found) for found in self._panel.certify()]
        answering = audits[self._panel.best()]
        breaches = [
            f"tree of {'all' if one.window is None else f'the last {one.window}'}: {breach}"
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


def _candidates(limits: Limits, windows: list[int], longest: int | None) -> list[_Chosen]:
    """Choose the trees, the longest windows first: of equally good ones the first answers."""
    chosen = [_Chosen(longest, limits.max_gap, limits.max_depth)]
    if limits.max_depth is None or limits.max_depth > _SHALLOW:
        chosen.append(_Chosen(longest, limits.max_gap, _SHALLOW))
    gap = max(limits.max_gap, _GAP_OF_WINDOWS)
    return chosen + [
        _Chosen(window, gap, limits.max_depth)
        for window in sorted(windows, reverse=True)
        if longest is None or window < longest
    ]


def _in_core(one: _Chosen, limits: Limits) -> tuple[int, float, float, int, int, bool]:
    depth = limits.max_depth_in_core if one.max_depth == limits.max_depth else one.max_depth
    return (
        -1 if one.window is None else one.window,
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
