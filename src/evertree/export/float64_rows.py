"""A DecisionTreeClassifier of scikit-learn that is exact for float64 rows.

scikit-learn's trees compare float32 values with float64 thresholds. Rounding a row to float32 may
carry a value across a threshold. Here a value that would be carried across becomes the nearest
float32 number on its own side instead; all others are rounded as usual.

Imports scikit-learn at the top, and so is itself only imported on demand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted, validate_data

from evertree.errors import CannotExport

Floats = npt.NDArray[np.float64]


class _Sides(NamedTuple):
    """The thresholds of one feature, and the float32 numbers next to each of them."""

    thresholds: Floats
    below: Floats  # the largest float32 number that is not above the threshold
    above: Floats  # the smallest one above it

    @classmethod
    def of(cls, thresholds: Floats) -> _Sides:
        with np.errstate(over="ignore"):
            near = thresholds.astype(np.float32)
            below = np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near)
            above = np.nextafter(below, np.float32(np.inf))
        return cls(thresholds, below.astype(float), above.astype(float))


class Float64DecisionTreeClassifier(DecisionTreeClassifier):  # type: ignore[misc]
    """A DecisionTreeClassifier that takes the branch which the float64 value takes.

    Made by `to_sklearn`. A row is refused (CannotExport) if one of its values lies between two
    thresholds that have no float32 number between them. Sparse rows are refused by scikit-learn.
    """

    def predict(self, X: Any, check_input: bool = True) -> Any:
        """Give the label of each row. O(n·depth)."""
        return super().predict(self._same_side(X, check_input), check_input=False)

    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        """Give the shares of `classes_` in the leaf of each row. O(n·depth)."""
        return super().predict_proba(self._same_side(X, check_input), check_input=False)

    def apply(self, X: Any, check_input: bool = True) -> Any:
        """Give the leaf of each row. O(n·depth)."""
        return super().apply(self._same_side(X, check_input), check_input=False)

    def decision_path(self, X: Any, check_input: bool = True) -> Any:
        """Give the path of each row as a sparse matrix. O(n·depth)."""
        return super().decision_path(self._same_side(X, check_input), check_input=False)

    def _same_side(self, X: Any, check_input: bool) -> Any:
        check_is_fitted(self)
        if not check_input:
            return X
        rows = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
        with np.errstate(over="ignore"):
            rounded = rows.astype(np.float32)
        for feature, sides in self._thresholds().items():
            _put_on_side(rows[:, feature], rounded[:, feature], feature, sides)
        return rounded

    def _thresholds(self) -> dict[int, _Sides]:
        tree, known = getattr(self, "_known_sides", (None, {}))
        if tree is not self.tree_:  # the first call, or fitted anew
            used = np.flatnonzero(self.tree_.children_left >= 0)
            features, thresholds = self.tree_.feature[used], self.tree_.threshold[used]
            known = {
                int(j): _Sides.of(np.unique(thresholds[features == j])) for j in np.unique(features)
            }
            self._known_sides = self.tree_, known
        return known


def _put_on_side(
    values: Floats, rounded: npt.NDArray[np.float32], feature: int, sides: _Sides
) -> None:
    """Correct the rounded values that are on another side of some threshold than the value is."""
    # side s: thresholds[s - 1] < value <= thresholds[s]; nan counts as above all, before and after
    wanted = np.searchsorted(sides.thresholds, values)
    wrong = np.flatnonzero(np.searchsorted(sides.thresholds, rounded.astype(float)) != wanted)
    for i in wrong:
        side = wanted[i]
        rounded_up = rounded[i] > values[i]
        near = sides.below[side] if rounded_up else sides.above[side - 1]
        if np.searchsorted(sides.thresholds, near) != side:
            raise CannotExport(
                f"X[{i}][{feature}]={values[i]} lies between two thresholds that have no float32 "
                "number between them, and scikit-learn looks at nothing finer: scale the feature, "
                "or use to_onnx or to_treelite, which take float64"
            )
        rounded[i] = near
