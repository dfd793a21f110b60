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

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evertree.encoding import category_code
from evertree.errors import (
    CannotExport,
    DuplicateId,
    EmptyTree,
    EvertreeError,
    ExampleNotFound,
    InvalidExample,
    InvalidFile,
    InvalidParameter,
    MissingExtra,
)
from evertree.tree import Certificate, EverTree

if TYPE_CHECKING:
    from evertree import river as river
    from evertree.adaptive import AdaptiveTree
    from evertree.estimators.sklearn import EverTreeClassifier as EverTreeClassifier
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

# Without EverTreeClassifier: `from evertree import *` would import scikit-learn, or fail without.
__all__ = [
    "AdaptiveTree",
    "CannotExport",
    "Certificate",
    "DuplicateId",
    "EmptyTree",
    "EverTree",
    "EvertreeError",
    "ExampleNotFound",
    "InvalidExample",
    "InvalidFile",
    "InvalidParameter",
    "MissingExtra",
    "__version__",
    "category_code",
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


# What not every user needs is imported when it is first asked for, and not before.
_LATER: dict[str, tuple[str, str | None]] = {
    "AdaptiveTree": ("evertree.adaptive", "AdaptiveTree"),
    "EverTreeClassifier": ("evertree.estimators.sklearn", "EverTreeClassifier"),
    "diff": ("evertree.explain", "diff"),
    "evaluate": ("evertree.evaluate", None),
    "explain": ("evertree.explain", None),
    "export": ("evertree.export", None),
    "export_dot": ("evertree.export", "export_dot"),
    "export_text": ("evertree.export", "export_text"),
    "influence": ("evertree.explain", "influence"),
    "plot_history": ("evertree.plots", "plot_history"),
    "plot_tree": ("evertree.plots", "plot_tree"),
    "plots": ("evertree.plots", None),
    "river": ("evertree.river", None),
    "snapshot": ("evertree.explain", "snapshot"),
    "streams": ("evertree.streams", None),
    "to_json": ("evertree.export", "to_json"),
    "to_onnx": ("evertree.export", "to_onnx"),
    "to_shap": ("evertree.export", "to_shap"),
    "to_sklearn": ("evertree.export", "to_sklearn"),
    "to_treelite": ("evertree.export", "to_treelite"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, member = _LATER[name]
    found = import_module(module)
    return found if member is None else getattr(found, member)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
