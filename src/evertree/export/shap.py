"""Into shap: the arrays that shap.TreeExplainer takes in place of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from evertree.export.thresholds import Thresholds
from evertree.outline import Outline


def to_shap(tree: Any) -> dict[str, Any]:
    """Make what shap.TreeExplainer takes as a model: it explains the shares of `classes(tree)`.

    O(nodes · labels), more where equality tests on categories follow each other (a test on a
    category becomes two on thresholds; importances are not touched by that). All numbers are
    float64. Needs nothing installed; explaining needs shap. Raises CannotExport for a category of
    2**24 or more, as the codes of texts are (`category_code`): number the texts 0, 1, 2, ... before
    they come into the tree.

    >>> import shap
    >>> from evertree import EverTree
    >>> from evertree.export import classes
    >>> tree = EverTree(n_features=2)
    >>> ids = tree.insert_many([[31.0, 5.0], [62.0, 5.0]], ["yes", "no"])
    >>> explainer = shap.TreeExplainer(to_shap(tree))
    >>> classes(tree), explainer.shap_values(np.array([[70.0, 5.0]]))[0].tolist()
    (['no', 'yes'], [[0.5, -0.5], [0.0, 0.0]])
    """
    outline = Outline.of(tree)
    written = Thresholds.of(outline)
    left, right = np.array(written.left, np.int32), np.array(written.right, np.int32)
    return {
        "internal_dtype": np.float64,
        "input_dtype": np.float64,
        "tree_output": "probability",
        "trees": [
            {
                "children_left": left,
                "children_right": right,
                "children_default": np.where(written.missing_left, left, right),
                "features": np.array(written.feature, np.int32),
                "thresholds": np.array(written.threshold),
                "values": outline.shares(written.origin),
                "node_sample_weight": np.array(written.weight),
            }
        ],
    }
