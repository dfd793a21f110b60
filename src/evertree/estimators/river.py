"""The tree as a river classifier, which can also unlearn: `unlearn_one`, `revert`.

A row is a dict. Its features may come and go: one that is not there is a missing value, and a new
one gets a place in the tree (see places.py). Every method is all or nothing, as those of the tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from evertree.encoding import Encoder, Floats, show
from evertree.errors import ExampleNotFound, MissingExtra
from evertree.estimators.ledger import Ledger
from evertree.estimators.places import Layout
from evertree.frames import CATEGORY, EMPTY, TEXT, is_missing, kind_of, read_frame
from evertree.limits import Limits
from evertree.tree import EverTree

try:
    from river import base
except ImportError as error:
    raise MissingExtra(
        'evertree.river needs river, which is not installed: pip install "evertree[river]"'
    ) from error

if TYPE_CHECKING:
    import pandas as pd

Features = Mapping[Hashable, Any]
_ENCODER = Encoder(1)  # for labels, which are the same in any tree


class EverTreeClassifier(base.MiniBatchClassifier):
    """A decision tree that learns and unlearns, each split always within `max_gap` of the best.

    Numbers and booleans are ordered features, moments and durations too (in microseconds); texts
    are categories, and so is every feature named in `nominal_attributes`. None and nan are missing.
    A category that is not known at prediction equals none of those in the tree. A feature stays
    what it was first, as long as the model knows it: a number where texts were is refused.

    The model keeps every row that it has learned and not unlearned: put it into `utils.Rolling` or
    `utils.TimeRolling` to follow a stream without end.

    Parameters
    ----------
    max_gap
        No split loses more Gini gain than this against the best one for the rows that are in.
    min_impurity
        A set with at least this Gini impurity is split.
    min_samples_split
        Smaller sets are leaves.
    max_depth
        Nodes at this depth are leaves; None is no limit.
    epsilon
        None for the certified rule; a number for the counter rule of the paper.
    nominal_attributes
        Names of features that are categories though they are numbers.

    Examples
    --------
    >>> from evertree.river import EverTreeClassifier
    >>> from river import datasets, evaluate, metrics

    >>> evaluate.progressive_val_score(datasets.Phishing(), EverTreeClassifier(), metrics.F1())
    F1: 87.22%

    >>> model = EverTreeClassifier()
    >>> model.learn_one({"age": 31, "city": "Oslo"}, "buys")
    >>> model.learn_one({"age": 62, "city": "Oslo"}, "leaves")
    >>> model.predict_one({"age": 60})
    'leaves'
    >>> model.unlearn_one({"age": 62, "city": "Oslo"}, "leaves")
    >>> model.predict_one({"age": 60})
    'buys'
    """

    def __init__(
        self,
        max_gap: float = 0.1,
        min_impurity: float = 0.01,
        min_samples_split: int = 2,
        max_depth: int | None = None,
        epsilon: float | None = None,
        nominal_attributes: Iterable[Hashable] | None = None,
    ) -> None:
        Limits.checked(1, (), max_gap, min_impurity, min_samples_split, max_depth, epsilon)
        self.max_gap = max_gap
        self.min_impurity = min_impurity
        self.min_samples_split = min_samples_split
        self.max_depth = max_depth
        self.epsilon = epsilon
        self.nominal_attributes = nominal_attributes
        self._nominal = frozenset(nominal_attributes or ())
        self._layout = Layout()
        self._ledger = Ledger(self._new_tree(self._layout))
        self._labels: Counter[Hashable] = Counter()  # how many active examples have each

    @property
    def tree(self) -> EverTree:
        """The EverTree itself, to look at and to certify; learn through the model."""
        return self._ledger.tree

    @property
    def _multiclass(self) -> bool:
        return True

    # --- learning and unlearning

    def learn_one(self, x: Features, y: Hashable) -> None:
        """Learn one row. Amortised O(d·log³n / β²); all or nothing."""
        label = _ENCODER.label(y)
        layout, ledger = self._layout, self._ledger
        if not x.keys() <= layout.places.keys():
            layout, ledger = self._with_features(self._new_kinds(x))
        ledger.insert(layout.row(x), label)
        self._layout, self._ledger = layout, ledger
        self._labels[label] += 1

    def unlearn_one(self, x: Features, y: Hashable) -> None:
        """Take back one row that was learned; raise ExampleNotFound if it is not there.

        Amortised O(d·log³n / β²). Among equal rows the one that was learned last goes.
        """
        unknown = [n for n, v in x.items() if n not in self._layout.places and not is_missing(v)]
        if unknown:
            raise ExampleNotFound(
                f"no active example has the feature {show(unknown[0])}: "
                "only what was learned can be unlearned; compare the names"
            )
        label = _ENCODER.label(y)
        self._ledger.delete(self._layout.row(x), label)
        self._labels[label] -= 1
        if not self._labels[label]:
            del self._labels[label]

    def update(self, x: Features, y: Hashable) -> None:
        """Learn one row: the name that `utils.Rolling` and `utils.TimeRolling` know."""
        self.learn_one(x, y)

    def revert(self, x: Features, y: Hashable) -> None:
        """Unlearn one row: the name that `utils.Rolling` and `utils.TimeRolling` know."""
        self.unlearn_one(x, y)

    def rebuild(self) -> None:
        """Make the model what it would be had nothing but the rows that are in ever come.

        O(d·n·(log n + height)). Features that only unlearned rows had are forgotten, too; the
        digest of `tree` is that of any other model with these rows after its rebuild().
        """
        rows, labels, ids = self._ledger.examples()
        layout = self._layout.needed(rows)
        self._ledger = self._moved(layout, rows, labels, ids)
        self._layout = layout

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn the rows of a DataFrame one after the other: the same as a loop of learn_one.

        All or nothing.
        """
        labels = [_ENCODER.label(label) for label in _ENCODER.labels(y, len(X))]
        columns = read_frame(X)
        new = [c for c in columns if c.kind != EMPTY and c.name not in self._layout.places]
        kinds = {
            c.name: CATEGORY if c.name in self._nominal and c.kind != TEXT else c.kind for c in new
        }
        layout, ledger = self._with_features(kinds)
        rows = layout.matrix(columns, len(X))
        learned = []
        try:
            for row, label in zip(rows, labels, strict=True):
                learned.append(ledger.insert(row, label))
        except BaseException:  # Ctrl-C, or no memory: the rows themselves are valid
            ledger.delete_many(ids=learned)
            raise
        self._layout, self._ledger = layout, ledger
        self._labels.update(labels)

    # --- answers

    def predict_one(self, x: Features, **_: Any) -> Any:
        """Label a row with the majority of its leaf; None if nothing is learned. O(depth)."""
        return self.tree.label(self._layout.row(x)) if self._labels else None

    def predict_proba_one(self, x: Features, **_: Any) -> dict[Any, float]:
        """Give the share of each label in the leaf of a row. O(depth + labels)."""
        if not self._labels:
            return {}
        counts = self.tree.label_counts(self._layout.row(x))
        size = sum(counts.values())
        return {label: counts.get(label, 0) / size for label in self._labels}

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Label every row of a DataFrame. O(n·depth)."""
        import pandas as pd  # noqa: PLC0415  (river itself works without)

        labels = self.tree.label_many(self._matrix(X)) if self._labels else [None] * len(X)
        return pd.Series(labels, index=X.index)

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Give the share of each label in the leaf of every row. O(nodes + n·(depth + labels))."""
        import pandas as pd  # noqa: PLC0415  (river itself works without)

        labels = list(self._labels)
        shares = self._ledger.descent(labels).shares(self._matrix(X)) if labels else None
        return pd.DataFrame(shares, columns=labels, index=X.index)

    def _matrix(self, X: pd.DataFrame) -> Floats:
        return self._layout.matrix(read_frame(X), len(X))

    # --- features that come

    def _new_kinds(self, x: Features) -> dict[Hashable, str]:
        """Find the kinds of features without a place; one that is missing waits for a value."""
        new = ((n, v) for n, v in x.items() if n not in self._layout.places and not is_missing(v))
        return {n: self._kind(n, v) for n, v in new}

    def _kind(self, name: Hashable, value: Any) -> str:
        nominal = name in self._nominal and not isinstance(value, str)
        return CATEGORY if nominal else kind_of(name, value)

    def _with_features(self, kinds: Mapping[Hashable, str]) -> tuple[Layout, Ledger]:
        """Give layout and tree with places for these features too; nothing of ours is changed."""
        layout = self._layout.with_features(kinds) if kinds else self._layout
        if layout.n_features == self._layout.n_features and (
            layout.categorical == self._layout.categorical
        ):
            return layout, self._ledger
        return layout, self._moved(layout, *self._ledger.examples())

    def _moved(self, layout: Layout, rows: Floats, labels: list[Any], ids: Any) -> Ledger:
        ledger = Ledger(self._new_tree(layout))
        ledger.insert_many(layout.moved(rows, self._layout), labels, ids)
        return ledger

    def _new_tree(self, layout: Layout) -> EverTree:
        return EverTree(
            layout.n_features,
            layout.categorical,
            self.max_gap,
            self.min_impurity,
            self.min_samples_split,
            self.max_depth,
            self.epsilon,
        )
