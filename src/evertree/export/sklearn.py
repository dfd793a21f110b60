"""Into scikit-learn: a fitted DecisionTreeClassifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evertree.export.thresholds import Thresholds
from evertree.extras import load
from evertree.outline import Outline, tree_of

_LIMIT = 2**63  # of int64


def to_sklearn(tree: Any) -> Any:
    """Make a fitted sklearn.tree.DecisionTreeClassifier that answers as the tree does.

    O(nodes · labels), more where equality tests on categories follow each other (a test on a
    category becomes two on thresholds). Needs `evertree[export]`. scikit-learn's trees look at rows
    as float32. The class of the answer is a subclass that first moves each value to a float32
    number on the same side of every threshold, so float64 rows take the very path that they take
    here; a row for which there is no such number is refused. Raises CannotExport for a category of
    2**24 or more, as the codes of texts are (`category_code`): number the texts 0, 1, 2, ... before
    they come into the tree, or use `to_onnx`.

    >>> from evertree import EverTree
    >>> tree = EverTree(n_features=1)
    >>> ids = tree.insert_many([[31.0], [62.0]], ["yes", "no"])
    >>> to_sklearn(tree).predict([[70.0]]).tolist()
    ['no']
    """
    load("sklearn", "export", "to_sklearn()")
    # A file of its own: a class that can be pickled stands at the top, and so does its import.
    from sklearn.tree._tree import NODE_DTYPE, Tree  # noqa: PLC0415

    from evertree.export.float64_rows import Float64DecisionTreeClassifier  # noqa: PLC0415

    limits = tree_of(tree).limits
    outline = Outline.of(tree)
    written = Thresholds.of(outline)
    classifier = Float64DecisionTreeClassifier(
        max_depth=limits.max_depth or None, min_samples_split=limits.min_samples_split
    )
    classifier.n_features_in_ = outline.n_features
    classifier.n_outputs_ = 1
    classifier.classes_ = _array(outline.labels)
    classifier.n_classes_ = np.int64(len(outline.labels))
    classifier.max_features_ = outline.n_features
    names = getattr(tree, "feature_names_in_", None)
    if names is not None:
        classifier.feature_names_in_ = np.array(names, dtype=object)
    classifier.tree_ = Tree(outline.n_features, np.array([len(outline.labels)], np.intp), 1)
    classifier.tree_.__setstate__(_state(outline, written, NODE_DTYPE))
    return classifier


def _state(outline: Outline, written: Thresholds, node_dtype: Any) -> dict[str, Any]:
    shares = outline.shares(written.origin)
    nodes = np.zeros(len(shares), dtype=node_dtype)
    nodes["left_child"] = written.left
    nodes["right_child"] = written.right
    nodes["feature"] = written.feature
    nodes["threshold"] = written.threshold
    nodes["missing_go_to_left"] = written.missing_left
    nodes["impurity"] = 1.0 - (shares**2).sum(axis=1)
    nodes["n_node_samples"] = np.round(written.weight)
    nodes["weighted_n_node_samples"] = written.weight
    return {
        "max_depth": max(written.depth),
        "node_count": len(nodes),
        "nodes": nodes,
        "values": np.ascontiguousarray(shares[:, np.newaxis, :]),
    }


def _array(labels: tuple[Any, ...]) -> npt.NDArray[Any]:
    """Make an array of the labels' own type where that keeps them as they are, else of objects."""
    kinds = set(map(type, labels))
    if kinds in ({bool}, {float}, {str}) or (
        kinds == {int} and all(-_LIMIT <= n < _LIMIT for n in labels)
    ):
        plain = np.array(labels)
        if plain.tolist() == list(labels):  # numpy drops a zero character at the end of a text
            return plain
    # One by one: numpy would take a tuple for a row of its own.
    result = np.empty(len(labels), dtype=object)
    for position, label in enumerate(labels):
        result[position] = label
    return result
