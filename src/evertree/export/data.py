"""For other programs to read: the tree as JSON, and the labels by position."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from evertree.encoding import show
from evertree.errors import CannotExport
from evertree.outline import Categories, Outline, is_missing

if TYPE_CHECKING:
    from evertree.tree import Node

_FORMAT = "evertree/1"


def classes(tree: Any) -> list[Any]:
    """List the labels in the order in which every export numbers them.

    O(nodes · labels). This is the order that settles ties: of labels equally frequent, the first
    wins. Models that answer with positions or with columns of shares mean positions in this list.

    >>> from evertree import EverTree
    >>> tree = EverTree(n_features=1)
    >>> ids = tree.insert_many([[31.0], [62.0]], ["yes", "no"])
    >>> classes(tree)
    ['no', 'yes']
    """
    return list(Outline.of(tree).labels)


def to_json(
    tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    categories: Categories | None = None,
) -> str:
    """Write the tree as JSON that any program can follow.

    O(nodes · labels). A row starts at node 0. At a split, a value is missing (then `missing` names
    the next node), or is compared: `"test": "<="` and `"test": "="` go to `left` if the comparison
    with `value` holds, and to `right` if not (`"test": "missing"` sends every value right). A leaf
    has `label`, the position of its answer in `labels`, and `counts` by position. Numbers are
    written in full. Raises CannotExport for labels that JSON does not know: it has texts, finite
    numbers, true, false and null.

    A category that came as a text is compared by its code: `value` is `category_code(text)`, and a
    program in another language looks codes up in a table of its own. The texts named in
    `categories` (by feature, or one list for all) stand beside their codes as `category_text`.

    >>> from evertree import EverTree
    >>> tree = EverTree(n_features=1)
    >>> ids = tree.insert_many([[31.0], [62.0]], ["yes", "no"])
    >>> document = json.loads(to_json(tree, feature_names=["age"]))
    >>> document["labels"], document["nodes"][1]
    (['no', 'yes'], {'label': 1, 'counts': [0, 1]})
    >>> document["nodes"][0]
    {'feature': 0, 'test': '<=', 'value': 46.5, 'left': 1, 'right': 2, 'missing': 1}

    >>> cities = EverTree(n_features=1, categorical=[0])
    >>> ids = cities.insert_many([["Oslo"], ["Bergen"]], ["yes", "no"])
    >>> document = json.loads(to_json(cities, categories=["Oslo", "Bergen"]))
    >>> document["nodes"][0]["category_text"]
    'Oslo'
    """
    outline = Outline.of(tree, feature_names, categories)
    document = {
        "format": _FORMAT,
        "features": list(outline.words.feature_names),
        "categorical": list(outline.categorical),
        "labels": [_plain(label) for label in outline.labels],
        "nodes": [_node(outline, node) for node in outline.nodes],
    }
    return json.dumps(document, allow_nan=False)


def _node(outline: Outline, node: Node) -> dict[str, Any]:
    if node["feature"] is None:
        return {
            "label": int(outline.winners[node["id"]]),
            "counts": [node["counts"].get(label, 0) for label in outline.labels],
        }
    real = node["threshold"] is not None
    fields: dict[str, Any] = {"feature": node["feature"], "test": "<=" if real else "="}
    if is_missing(node["category"]):
        fields["test"] = "missing"
    else:
        fields["value"] = node["threshold"] if real else node["category"]
        text = None if real else outline.words.text(node)
        if isinstance(text, str):
            fields["category_text"] = text
    missing = node["left"] if node["missing_left"] else node["right"]
    return fields | {"left": node["left"], "right": node["right"], "missing": missing}


def _plain(label: Hashable) -> Hashable:
    if label is None or type(label) in {str, int, bool}:
        return label
    if type(label) is float and math.isfinite(label):
        return label
    raise CannotExport(
        f"label {show(label)} ({type(label).__name__}) has no form in JSON, which knows texts, "
        "finite numbers, true, false and null: label the examples with such"
    )
