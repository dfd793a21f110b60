"""The tree for targets that know only `x <= threshold`: equality becomes two thresholds.

"x = a" is "not x <= a - 1/2, but x <= a + 1/2", so what follows where x is not a stands in the tree
twice: once below a, once above. The copy above is the principal one: it carries the examples of the
split. The copy below counts (next to) none, so importances and SHAP values come out as those of the
tree with equality: along a path they are linear in what each feature contributes, and the shares of
"x is not a" are all in the principal copy.

Within a copy it is known between which codes x lies, and tests that are settled by that are left
out. So n equalities on one feature make at most n + 1 copies of what follows; on several features
these multiply, and beyond a million nodes of copies the tree is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

from evertree.errors import CannotExport
from evertree.export.large_codes import checked_category
from evertree.outline import Outline, is_missing

if TYPE_CHECKING:
    from evertree.tree import Node

_COPIES_MAX = 1_000_000  # nodes beyond those of the tree itself
_CATEGORY_BITS = 24  # the targets compare float32, which confuses larger codes
_NEXT_TO_NONE = 2.0**-50
_SCALE_MIN = 2.0**-1000
_BELOW_ALL = -1.0  # no category is that small: only a missing value can go left here


class _Codes(NamedTuple):
    """What is known of a categorical feature: low < code < high, or in the principal copy missing.

    The principal copy counts all examples of the node, also those whose code lies elsewhere.
    """

    low: float = -1.0
    high: float = math.inf
    is_principal: bool = True


class _Place(NamedTuple):
    """A node of the outline that is still to be written, and where."""

    node: Node
    parent: int = -1
    is_left: bool = False
    codes: dict[int, _Codes] = {}  # noqa: RUF012  (never changed, only replaced)
    scale: float = 1.0  # what an example of this node weighs here
    weight: float = 0.0  # what this node weighs


class _Test(NamedTuple):
    feature: int
    threshold: float
    missing_left: bool


@dataclass
class Thresholds:
    """A tree of thresholds as columns, parents before children; a leaf has -1 for its children.

    `origin` is the node of the outline that a node was made of, `weight` its examples: next to none
    in copies.
    """

    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    origin: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, outline: Outline) -> Thresholds:
        """Write the tree with thresholds alone. O(nodes written)."""
        written = cls()
        root = outline.nodes[0]
        pending = [_Place(root, weight=_size(root))]
        while pending:
            pending += written._write(pending.pop(), outline)
            if len(written.feature) > len(outline.nodes) + _COPIES_MAX:
                raise CannotExport(
                    f"more than {_COPIES_MAX} additional nodes would be needed to write equality "
                    "tests on categories as thresholds: limit max_depth, or use to_onnx or "
                    "to_treelite, which know equality"
                )
        return written

    def _write(self, place: _Place, outline: Outline) -> list[_Place]:
        """Write the node of one place; return the places of its children."""
        node = place.node
        if node["feature"] is None:
            self._add(place, None)
            return []
        split = _Split(place, outline)
        if node["threshold"] is not None:
            at = self._add(place, split.test(node["threshold"]))
            return [split.left(at, place.codes), split.right(at, place.codes)]
        return self._write_equality(place, split)

    def _write_equality(self, place: _Place, split: _Split) -> list[_Place]:
        category, known = split.category, split.known
        if not known.low < category < known.high:  # also where it is nan, for the missing ones
            if not known.is_principal:
                return [split.instead(right=True)]
            at = self._add(place, split.test(_BELOW_ALL))
            return [split.left(at, place.codes), split.right(at, place.codes)]
        any_below, any_above = known.low < category - 1, category + 1 < known.high
        if not (any_below or any_above or known.is_principal):
            return [split.instead(right=False)]
        children = []
        if any_below:
            # A missing value goes on to the second test, which knows its way.
            at = self._add(place, _Test(split.feature, category - 0.5, missing_left=False))
            children.append(split.copy(at))
            place = place._replace(parent=at, is_left=False)
        if not (any_above or known.is_principal):
            return [*children, split.left(place.parent, split.equal(), is_left=False)]
        at = self._add(place, split.test(category + 0.5))
        return [*children, split.left(at, split.equal()), split.right(at, split.above())]

    def _add(self, place: _Place, test: _Test | None) -> int:
        """Append a node, a leaf if it has no test, and hang it under its parent."""
        at = len(self.feature)
        feature, threshold, missing_left = test or _Test(-2, -2.0, missing_left=False)
        self.left.append(-1)
        self.right.append(-1)
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.missing_left.append(missing_left)
        self.origin.append(place.node["id"])
        self.weight.append(place.weight)
        self.depth.append(0 if place.parent < 0 else self.depth[place.parent] + 1)
        if place.parent >= 0:
            (self.left if place.is_left else self.right)[place.parent] = at
        return at


class _Split:
    """One split of the outline at one place, and the places of what follows it."""

    def __init__(self, place: _Place, outline: Outline) -> None:
        node = place.node
        self._place = place
        self._left = outline.nodes[cast("int", node["left"])]
        self._right = outline.nodes[cast("int", node["right"])]
        self.feature = cast("int", node["feature"])
        self.known = place.codes.get(self.feature, _Codes())
        self.category = math.nan if node["category"] is None else _category(outline, node)

    def test(self, threshold: float) -> _Test:
        return _Test(self.feature, threshold, bool(self._place.node["missing_left"]))

    def equal(self) -> dict[int, _Codes]:
        return self._knowing(self.category - 1, self.category + 1)

    def above(self) -> dict[int, _Codes]:
        return self._knowing(self.category, self.known.high)

    def _knowing(self, low: float, high: float) -> dict[int, _Codes]:
        return {**self._place.codes, self.feature: self.known._replace(low=low, high=high)}

    def left(self, at: int, codes: dict[int, _Codes], *, is_left: bool = True) -> _Place:
        return self._child(self._left, at, is_left, codes, self._place.scale)

    def right(self, at: int, codes: dict[int, _Codes]) -> _Place:
        return self._child(self._right, at, False, codes, self._place.scale)

    def copy(self, at: int) -> _Place:
        """Place the copy of what follows where the code is below the category."""
        scale = self._place.scale * (_NEXT_TO_NONE if self.known.is_principal else 1.0)
        if scale < _SCALE_MIN:
            raise CannotExport(
                "equality tests on more than 20 categorical features follow each other, which is "
                "too many to write as thresholds: use to_onnx or to_treelite, which know equality"
            )
        below = _Codes(self.known.low, self.category, is_principal=False)
        codes = {**self._place.codes, self.feature: below}
        return self._child(self._right, at, True, codes, scale)

    def instead(self, *, right: bool) -> _Place:
        """Place one child where the split itself would stand, with all of its weight."""
        child = self._right if right else self._left
        scale = self._place.weight / (_size(child) or 1.0)
        return self._place._replace(node=child, scale=scale)

    @staticmethod
    def _child(
        node: Node, at: int, is_left: bool, codes: dict[int, _Codes], scale: float
    ) -> _Place:
        # An empty leaf weighs next to nothing, not nothing: shap divides by what leaves weigh.
        return _Place(node, at, is_left, codes, scale, scale * (_size(node) or _NEXT_TO_NONE))


def _size(node: Node) -> float:
    return float(sum(node["counts"].values()))


def _category(outline: Outline, node: Node) -> float:
    if is_missing(node["category"]):
        return math.nan
    reason = "float32 confuses it with its neighbours"
    return checked_category(outline, node, _CATEGORY_BITS, reason, "to_onnx, which takes any code")
