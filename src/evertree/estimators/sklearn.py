"""The tree as a scikit-learn classifier, with one method more: `forget`.

X and y are read as scikit-learn's users know it: arrays, DataFrames, lists; names and number of
features are watched by scikit-learn itself. What is not a number is read by frames.py.
Every method that changes the model is all or nothing, as those of the tree are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from evertree.adaptive import AdaptiveTree
from evertree.encoding import Encoder, Floats, Ids, show
from evertree.errors import InvalidExample, InvalidParameter, MissingExtra
from evertree.estimators.ledger import Ledger
from evertree.frames import (
    CATEGORIES,
    CATEGORY,
    EMPTY,
    NUMBER,
    TEXT,
    Column,
    check_text,
    is_frame,
    numbers_of,
    read_dicts,
    read_frame,
    read_objects,
)
from evertree.tree import Certificate, EverTree

try:
    from scipy.sparse import csr_matrix
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        assert_all_finite,
        check_consistent_length,
        check_is_fitted,
        column_or_1d,
        validate_data,
    )
except ImportError as error:
    raise MissingExtra(
        "EverTreeClassifier needs scikit-learn 1.6 or newer, which is not installed: "
        'pip install "evertree[sklearn]"'
    ) from error

if TYPE_CHECKING:
    from evertree.estimators.descend import Descent, Positions

# Up to so many rows, asking the core row by row is quicker than numpy's way down.
_FEW_ROWS = 50
_NUMBERS = (bool, int, float, np.bool_, np.number)
_TAKE_NUMBERS = frozenset({NUMBER, CATEGORY, EMPTY})


class EverTreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A decision tree that learns and forgets, each split always within `max_gap` of the best.

    max_gap, min_impurity, min_samples_split, max_depth, epsilon
                          as in EverTree
    categorical_features  "from_dtype": columns of text or categories, in a DataFrame, in dicts or
                          in an array of objects. Or a list of positions or of names, or a mask;
                          in an array of numbers such a feature is whole numbers >= 0. None: none
    window                keep only the last so many examples; None keeps all. "auto": an
                          AdaptiveTree, which finds out how many of the latest ones still help
    n_jobs                threads for building; None is one, -1 all cores

    Missing values are values (nan, None). A category that is not known at prediction equals none of
    those in the tree. Moments and durations are numbers, in microseconds. A column that was text
    stays text: numbers in it are refused. The tree keeps codes, not texts (`category_code`):
    `export_text(model, categories=...)` names them.

    >>> from evertree import EverTreeClassifier
    >>> model = EverTreeClassifier().fit([[31], [62], [35], [58]], ["buys", "leaves"] * 2)
    >>> model.predict([[60]])
    array(['leaves'], dtype='<U6')
    >>> model.partial_fit([[61], [63]], ["buys", "buys"]).forget([[62]], ["leaves"])
    EverTreeClassifier()
    >>> model.predict([[62]]), model.certify().ok
    (array(['buys'], dtype='<U6'), True)
    """

    def __init__(
        self,
        max_gap: float = 0.1,
        min_impurity: float = 0.01,
        min_samples_split: int = 2,
        max_depth: int | None = None,
        epsilon: float | None = None,
        categorical_features: Any = "from_dtype",
        window: int | Literal["auto"] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.max_gap = max_gap
        self.min_impurity = min_impurity
        self.min_samples_split = min_samples_split
        self.max_depth = max_depth
        self.epsilon = epsilon
        self.categorical_features = categorical_features
        self.window = window
        self.n_jobs = n_jobs

    # --- learning and forgetting

    def fit(self, X: Any, y: Any, ids: Ids | None = None) -> EverTreeClassifier:
        """Learn X and y from scratch: one Build, O(d·n·(log n + height)).

        `ids`, one int per row, are names to forget rows by. With a window, only the last rows stay.
        """
        with _all_or_nothing(self):
            self._learn_first(X, y, None, ids)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, ids: Ids | None = None
    ) -> EverTreeClassifier:
        """Learn more rows, as one update; with a window, forget as many of the oldest.

        Amortised O(d·log³n / β²) per row, usually far less. `classes`, in the first call, fixes
        what labels may come; without it `classes_` grows with the labels. Raises InvalidExample
        for a label that is not one of the classes, DuplicateId for an id in use.

        >>> model = EverTreeClassifier(window=2)
        >>> len(model.partial_fit([[31], [62], [35]], ["yes", "no", "yes"]).tree_)
        2
        """
        with _all_or_nothing(self):
            if hasattr(self, "_ledger"):
                self._learn_more(X, y, classes, ids)
            else:
                self._learn_first(X, y, classes, ids)
        return self

    def forget(self, X: Any = None, y: Any = None, ids: Ids | None = None) -> EverTreeClassifier:
        """Delete rows, by value or by `ids`, as one update: all of them or, on an error, none.

        Amortised O(d·log³n / β²) per row; no rows at all are fine. Raises ExampleNotFound if one of
        them is not there, as often as it is named. After `tree_.rebuild()` the tree is what it
        would have been had the rows never come: its digest() proves it. `classes_` stays as it is.

        >>> model = EverTreeClassifier().fit([[31], [62]], ["yes", "no"], ids=[7, 8])
        >>> model.forget(ids=[8]).predict([[70]])
        array(['yes'], dtype='<U3')
        """
        check_is_fitted(self)
        if ids is not None and X is None and y is None:
            self._ledger.delete_many(ids=ids)
        elif ids is None and X is not None and y is not None:
            rows = self._rows(X, n_rows_min=0)
            labels = _flat(y)
            check_consistent_length(rows, labels)
            self._ledger.delete_many(rows, labels)
        else:
            raise InvalidExample(
                "forget() takes either X and y, to forget rows by value, or ids alone"
            )
        return self

    def _learn_first(self, X: Any, y: Any, classes: Any, ids: Ids | None) -> None:
        window = _checked_window(self.window)
        if y is None:
            validate_data(self, X, None, skip_check_array=True)  # says that y is required
        columns, n_rows = self._read(X, reset=True)
        labels = _checked_labels(y)
        self._kinds = _kinds(columns, self.n_features_in_)
        self._categorical = self._categorical_positions()
        self._classes_fixed = classes is not None
        self.classes_ = _classes(labels if classes is None else _flat(classes))
        if classes is not None:
            self._know_labels(labels)
        self._ledger = Ledger(self._new_tree())
        rows = self._numbers(columns, n_rows)
        self._insert(rows, labels, ids, window)

    def _learn_more(self, X: Any, y: Any, classes: Any, ids: Ids | None) -> None:
        window = _checked_window(self.window)
        if _is_auto(self.window) != isinstance(self.tree_, AdaptiveTree):
            raise InvalidParameter(
                f"window={show(self.window)} does not fit the model as it was made: 'auto' is a "
                "tree of its own kind; call fit() to start anew"
            )
        columns, n_rows = self._read(X, reset=False)
        rows = self._numbers(columns, n_rows)
        labels = _checked_labels(y)
        if EMPTY in self._kinds:  # what a column holds may show later than the column
            found = _kinds(columns, self.n_features_in_)
            self._kinds = [f if k == EMPTY else k for k, f in zip(self._kinds, found, strict=True)]
        if classes is not None and set(_flat(classes).tolist()) != set(self.classes_.tolist()):
            raise InvalidParameter(
                f"classes={show(classes)} are not those of the first call "
                f"({show(self.classes_.tolist())}): leave classes out after the first call"
            )
        self._know_labels(labels)
        self._insert(rows, labels, ids, window)

    def _insert(
        self, rows: Floats, labels: npt.NDArray[Any], ids: Ids | None, window: int | None
    ) -> None:
        check_consistent_length(rows, labels)
        if ids is not None:
            ids = Encoder(1).ids(ids, len(rows))
        ledger = self._ledger
        keep = slice(None) if window is None else slice(-window, None)
        surplus = 0 if window is None else len(ledger.tree) + min(len(rows), window) - window
        old = ledger.oldest(max(surplus, 0))
        new = ledger.insert_many(rows[keep], labels[keep], None if ids is None else ids[keep])
        if old:
            try:
                ledger.delete_many(ids=old)
            except BaseException:
                ledger.delete_many(ids=new)
                raise

    def _know_labels(self, labels: npt.NDArray[Any]) -> None:
        found, known = labels.tolist(), set(self.classes_.tolist())
        if known.issuperset(found):
            return
        if self._classes_fixed:
            unknown = next(label for label in found if label not in known)
            raise InvalidExample(
                f"label {show(unknown)} is not one of the classes "
                f"{show(self.classes_.tolist())} that the first partial_fit was given: "
                "name all of them there, or none"
            )
        self.classes_ = _classes(_joined(self.classes_, labels))

    def _new_tree(self) -> EverTree:
        limits: dict[str, Any] = {
            "max_gap": self.max_gap,
            "min_impurity": self.min_impurity,
            "min_samples_split": self.min_samples_split,
            "max_depth": self.max_depth,
            "n_jobs": self.n_jobs,
        }
        if not _is_auto(self.window):
            return EverTree(self.n_features_in_, self._categorical, **limits, epsilon=self.epsilon)
        if self.epsilon is not None:
            raise InvalidParameter(
                f"epsilon={show(self.epsilon)} does not go with window='auto', which follows the "
                "certified rule: leave one of them out"
            )
        # Whoever names max_gap gets it, in every tree.
        return AdaptiveTree(
            self.n_features_in_, self._categorical, **limits, window_gap=self.max_gap
        )

    # --- answers

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Label every row with the majority of its leaf. O(n·depth).

        Of labels equally frequent the first in `classes_` wins. Raises EmptyTree if every row has
        been forgotten.
        """
        check_is_fitted(self)
        labels = self.tree_.label_many(self._rows(X))
        return labels.astype(self.classes_.dtype, copy=False)

    def predict_proba(self, X: Any) -> Floats:
        """Give the share of each of `classes_` in the leaf of every row. O(n·(depth + classes)).

        The first call for many rows after an update lays the tree out in arrays, in addition
        O(nodes · classes).
        """
        check_is_fitted(self)
        rows = self._rows(X)
        if len(self.tree_) and not self._quicker_by_row(len(rows)):
            return self._arrays().shares(rows)
        classes = self.classes_.tolist()
        counts = [self.tree_.label_counts(row) for row in rows]
        found = np.array([[c.get(label, 0) for label in classes] for c in counts], dtype=np.float64)
        shares: Floats = found / found.sum(axis=1, keepdims=True)
        return shares

    def _quicker_by_row(self, n_rows: int) -> bool:
        if n_rows <= _FEW_ROWS:
            return True
        if self._ledger.has_descent(self.classes_.tolist()):
            return False
        # Laying a node out takes about half as long as asking for a row.
        return 2 * n_rows < self.tree_.stats()["nodes"]

    def apply(self, X: Any) -> Positions:
        """Give the leaf of every row, as its position in `tree_.nodes()`. O(n·depth).

        Positions hold until the next update.
        """
        check_is_fitted(self)
        return self._arrays().leaves(self._rows(X))

    def decision_path(self, X: Any) -> csr_matrix:
        """Mark the nodes that every row passes, in a sparse matrix. O(n·depth)."""
        check_is_fitted(self)
        rows = self._rows(X)
        row, node = self._arrays().paths(rows)
        shape = len(rows), self._arrays().n_nodes
        return csr_matrix((np.ones(len(row), dtype=np.int64), (row, node)), shape=shape)

    def get_depth(self) -> int:
        """Give the depth of the tree, 0 for a single leaf. O(nodes)."""
        check_is_fitted(self)
        return self.tree_.stats()["depth"]

    def get_n_leaves(self) -> int:
        """Count the leaves of the tree. O(nodes)."""
        check_is_fitted(self)
        return self.tree_.stats()["leaves"]

    def certify(self) -> Certificate:
        """Audit the tree from scratch: is every split within `max_gap` of the best? Slow by intent.

        >>> EverTreeClassifier().fit([[31], [62]], ["yes", "no"]).certify().worst_gap
        0.0
        """
        check_is_fitted(self)
        return self.tree_.certify()

    @property
    def feature_importances_(self) -> Floats:
        """The share of each feature in what all splits won. O(nodes · classes)."""
        check_is_fitted(self)
        return self._arrays().importances()

    @property
    def feature_kinds_(self) -> tuple[str, ...]:
        """What each feature holds: "number", "text", "category", "moment", "duration", ... O(d).

        >>> EverTreeClassifier().fit([{"city": "Oslo", "age": 31}], ["yes"]).feature_kinds_
        ('text', 'number')
        """
        check_is_fitted(self, "classes_")
        return tuple(self._kinds)

    @property
    def tree_(self) -> EverTree:
        """The EverTree itself, to look at, `rebuild()` and `digest()`; learn through the model."""
        check_is_fitted(self, "classes_")
        return self._ledger.tree

    def _arrays(self) -> Descent:
        return self._ledger.descent(self.classes_.tolist())

    # --- reading X

    def _rows(self, X: Any, n_rows_min: int = 1) -> Floats:
        """Read X as the numbers that the tree knows."""
        return self._numbers(*self._read(X, reset=False, n_rows_min=n_rows_min))

    def _read(
        self, X: Any, *, reset: bool, n_rows_min: int = 1
    ) -> tuple[list[Column] | npt.NDArray[Any], int]:
        """Read X as columns, or as an array of numbers where it is one; watch names and width."""
        if not reset and self._is_as_known(X):
            return X, len(X)
        if _is_list_of_dicts(X):
            columns = read_dicts(X)
            self._check_names([column.name for column in columns], reset=reset)
            if not reset:
                by_name = {column.name: column for column in columns}
                nothing = np.full(len(X), np.nan)
                columns = [by_name.get(n, Column(n, EMPTY, nothing)) for n in self._names()]
            return columns, len(X)
        if is_frame(X):
            validate_data(self, X, "no_validation", reset=reset, skip_check_array=True)
            if len(X) < n_rows_min:
                raise InvalidExample("X has 0 rows: a batch has at least one")
            return read_frame(X), len(X)
        objects = getattr(X, "dtype", None) == np.dtype(object)
        array = validate_data(
            self,
            X,
            reset=reset,
            dtype=None if objects else "numeric",
            ensure_min_samples=n_rows_min,
            ensure_all_finite=False,  # the tree takes nan, and refuses infinities by place
        )
        return (read_objects(array) if objects else array), len(array)

    def _is_as_known(self, X: Any) -> bool:
        """Tell whether there is nothing that scikit-learn's checks, 100 µs, would find."""
        return (
            type(X) is np.ndarray
            and X.dtype.kind in "biuf"
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    def _numbers(self, columns: list[Column] | npt.NDArray[Any], n_rows: int) -> Floats:
        if not isinstance(columns, list):
            if not _TAKE_NUMBERS.issuperset(self._kinds):
                for j, (name, kind) in enumerate(zip(self._names(), self._kinds, strict=True)):
                    _check_kind(Column(name, NUMBER, columns[:, j].astype(np.float64)), kind)
            return columns
        for column, kind in zip(columns, self._kinds, strict=True):
            _check_kind(column, kind)
        return numbers_of(columns, self._categorical, n_rows)

    def _check_names(self, found: list[Hashable], *, reset: bool) -> None:
        if not all(isinstance(name, str) for name in found):
            raise InvalidExample(f"the keys of X are {show(found)}: names of features are texts")
        if reset:
            self.feature_names_in_ = np.array(found, dtype=object)
            self.n_features_in_ = len(found)
            return
        unknown = [name for name in found if name not in set(self._names())]
        if unknown:
            raise InvalidExample(
                f"X has the feature {show(unknown[0])}, which was not there in fit: "
                f"the features are {show(self._names())}; leave it out, or fit again"
            )

    def _names(self) -> list[Hashable]:
        names = getattr(self, "feature_names_in_", None)
        return list(range(self.n_features_in_)) if names is None else names.tolist()

    def _categorical_positions(self) -> list[int]:
        asked = self.categorical_features
        if isinstance(asked, str) and asked == "from_dtype":
            return [j for j, kind in enumerate(self._kinds) if kind in CATEGORIES]
        if asked is None:
            return []
        names = self._names()
        members = np.asarray(asked)
        if members.ndim == 1 and members.dtype == bool and len(members) == len(names):
            return np.flatnonzero(members).tolist()
        if members.ndim == 1 and members.dtype.kind in "UO":
            positions = {name: j for j, name in enumerate(names)}
            if all(member in positions for member in members.tolist()):
                return [positions[member] for member in members.tolist()]
        if members.ndim == 1 and (members.dtype.kind in "iu" or not members.size):
            return [int(member) for member in members]  # EverTree checks them
        raise InvalidParameter(
            f"categorical_features={show(asked)} is neither 'from_dtype' nor None nor a list of "
            f"positions or names of features, nor a mask: the features are {show(names)}"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


@contextlib.contextmanager
def _all_or_nothing(model: EverTreeClassifier) -> Iterator[None]:
    """Put the attributes back on an error; the tree, changed last, takes care of itself."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise


# --- reading y


def _flat(y: Any) -> npt.NDArray[Any]:
    """Read labels, flat. Those that numpy would turn into something else stay what they are."""
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biufSUO":
        return y
    if isinstance(y, (list, tuple)):
        types = set(map(type, y))
        alike = types <= {str} or not types.isdisjoint({list, np.ndarray})
        if not alike and any(not issubclass(t, _NUMBERS) for t in types):
            return _objects(y)
    flat = np.asarray(column_or_1d(y, warn=True))
    # A moment of numpy's is another thing as a member of a list: it stays what it is.
    return _objects(flat) if flat.dtype.kind in "MmT" else flat


def _objects(values: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[Any]:
    objects = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):  # one by one: a tuple is a label, not a row
        objects[position] = value
    return objects


def _joined(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    alike = a.dtype.kind == b.dtype.kind or (a.dtype.kind in "biuf" and b.dtype.kind in "biuf")
    return np.concatenate([a, b]) if alike else _objects([*a.tolist(), *b.tolist()])


def _checked_labels(y: Any) -> npt.NDArray[Any]:
    """Read labels: those scikit-learn knows as it does, and any other hashable as an object."""
    labels = _flat(y)
    if labels.dtype == object:
        try:
            different: Iterable[Any] = set(labels.tolist())
        except Exception:  # noqa: BLE001  (one cannot be hashed: the encoder will say which)
            different = labels
        encoder = Encoder(1)
        for label in different:
            encoder.label(label)
    elif labels.dtype.kind not in "biuSU":  # these can be nothing but classes
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
    return labels


def _classes(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Sort the different labels, in the order in which the tree breaks ties."""
    different = list(dict.fromkeys(labels.tolist()))
    if labels.dtype != object:
        return np.sort(np.array(different, dtype=labels.dtype))
    return _objects([different[rank] for rank in Encoder(1).order(different)])


# --- checks


def _is_list_of_dicts(X: Any) -> bool:
    return isinstance(X, (list, tuple)) and bool(X) and isinstance(X[0], Mapping)


def _kinds(columns: list[Column] | npt.NDArray[Any], n_features: int) -> list[str]:
    if isinstance(columns, list):
        return [column.kind for column in columns]
    return [NUMBER] * n_features


def _check_kind(column: Column, known: str) -> None:
    if known == TEXT:
        check_text(column, "in fit")
        return
    # Any value can be a category, and a column without values can be anything. A category where
    # none is known is refused with its name when it is to become a number.
    anything = {CATEGORY, EMPTY}
    if known not in {column.kind, *anything} and column.kind not in {TEXT, *anything}:
        raise InvalidExample(
            f"column {show(column.name)} is a {column.kind}, and was a {known} in fit: "
            "give what it was, or fit again"
        )


def _is_auto(window: object) -> bool:
    return isinstance(window, str) and window == "auto"


def _checked_window(window: object) -> int | None:
    if window is None or _is_auto(window):
        return None
    if isinstance(window, (int, np.integer)) and not isinstance(window, bool) and window > 0:
        return int(window)
    raise InvalidParameter(
        f"window={show(window)} is none of None, 'auto' and an int >= 1: it is how many examples "
        "to keep"
    )
