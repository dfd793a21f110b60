"""A decision tree that is a live view of a table.

Insert, correct or delete any row, and at every moment every split is provably within `max_gap` of
the best split for the rows that are there now.

>>> from evertree import EverTree
>>> tree = EverTree(n_features=1)
>>> first = tree.insert([31.0], "yes")
>>> second = tree.insert([62.0], "no")
>>> tree.label([70.0])
'no'
>>> tree.delete([62.0], "no")
>>> tree.label([70.0])
'yes'
"""

from evertree.errors import (
    CannotExport,
    DuplicateId,
    EmptyTree,
    EvertreeError,
    ExampleNotFound,
    InvalidExample,
    InvalidParameter,
    MissingExtra,
)
from evertree.explain import diff, influence, snapshot
from evertree.export import (
    export_dot,
    export_text,
    to_json,
    to_onnx,
    to_shap,
    to_sklearn,
    to_treelite,
)
from evertree.plots import plot_history, plot_tree
from evertree.tree import Certificate, EverTree

__all__ = [
    "CannotExport",
    "Certificate",
    "DuplicateId",
    "EmptyTree",
    "EverTree",
    "EvertreeError",
    "ExampleNotFound",
    "InvalidExample",
    "InvalidParameter",
    "MissingExtra",
    "__version__",
    "diff",
    "export_dot",
    "export_text",
    "influence",
    "plot_history",
    "plot_tree",
    "snapshot",
    "to_json",
    "to_onnx",
    "to_shap",
    "to_sklearn",
    "to_treelite",
]

__version__ = "0.1.0"
