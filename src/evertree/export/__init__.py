"""Take the tree out: as text, as a graph, as JSON, and into the runtimes of others.

What leaves gives the very same label as `EverTree.label` for every row, ties, missing values and
categories included. What a target cannot say is said in another way where there is one, and refused
with CannotExport where there is none. Each target has its own file; packages that only some of
them need come with the extra `evertree[export]`.
"""

from evertree.export.data import classes, to_json
from evertree.export.onnx import to_onnx
from evertree.export.shap import to_shap
from evertree.export.sklearn import to_sklearn
from evertree.export.text import export_dot, export_text
from evertree.export.treelite import to_treelite

__all__ = [
    "classes",
    "export_dot",
    "export_text",
    "to_json",
    "to_onnx",
    "to_shap",
    "to_sklearn",
    "to_treelite",
]
