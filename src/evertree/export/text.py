"""For people to read: the tree as indented text, and as a graph in the language of Graphviz.

Nothing here calls itself: a tree may be as deep as it has examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from evertree.encoding import show
from evertree.outline import Categories, Outline, checked_depth

if TYPE_CHECKING:
    from evertree.tree import Node

_LINE_END = "\\n"  # as Graphviz writes it: a backslash and an n


def export_text(
    tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    max_depth: int | None = None,
    categories: Categories | None = None,
    digits: int | None = None,
) -> str:
    """Write the tree as indented text, one line per branch.

    O(nodes · (labels + depth)). Thresholds are written in full, so the text says exactly what the
    tree does; `digits=4` rounds them to 4 significant digits, for eyes only. Labels and categories
    of more than 60 characters are shortened. `tree` is an EverTree, or an estimator that keeps one
    as `tree_`; a moment, where the estimator knows one, is written as a date. Below `max_depth`
    nodes are counted, not written. An empty leaf says that it is empty, and has the label of its
    nearest ancestor that is not.

    A tree keeps no text of a category, only a code of 53 bits (`category_code`), so that nothing is
    left of a text whose rows are deleted. `categories` names the texts that may occur, by feature
    or for all of them; a code that none of them has stays a number.

    >>> from evertree import EverTree
    >>> tree = EverTree(n_features=2, categorical=[1])
    >>> ids = tree.insert_many([[31, 0], [62, 0], [35, 1], [58, 1]], ["yes", "no", "yes", "yes"])
    >>> print(export_text(tree, feature_names=["age", "country"]))
    age <= 60.0 or missing
    |   label 'yes'  {'yes': 3}
    age > 60.0
    |   label 'no'  {'no': 1}
    >>> print(export_text(tree, max_depth=0))
    … 3 nodes

    >>> cities = EverTree(n_features=1, categorical=[0])
    >>> ids = cities.insert_many([["Oslo"], ["Bergen"]], ["yes", "no"])
    >>> print(export_text(cities, feature_names=["city"], categories={"city": ["Oslo", "Bergen"]}))
    city = 'Oslo'
    |   label 'yes'  {'yes': 1}
    city != 'Oslo' or missing
    |   label 'no'  {'no': 1}
    """
    outline = Outline.of(tree, feature_names, categories, digits)
    return "\n".join(_lines(outline, checked_depth(max_depth)))


def export_dot(
    tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    max_depth: int | None = None,
    categories: Categories | None = None,
    digits: int | None = None,
) -> str:
    r"""Write the tree in the DOT language, for Graphviz and whatever else reads it.

    O(nodes · labels). The left branch of a split is the one for which its test holds. `dot -Tsvg`
    makes a picture of it; nothing has to be installed to write it. Names, `categories` and `digits`
    are those of `export_text`.

    >>> from evertree import EverTree
    >>> tree = EverTree(n_features=1)
    >>> ids = tree.insert_many([[31.0], [62.0]], ["yes", "no"])
    >>> print(export_dot(tree, feature_names=["age"]))
    digraph tree {
      node [shape=box, style="rounded,filled", fillcolor=white, fontname="sans-serif"];
      edge [fontname="sans-serif"];
      0 [label="age <= 46.5 or missing\n2 examples"];
      1 [label="'yes'\n1 example", fillcolor="#f5b87b"];
      2 [label="'no'\n1 example", fillcolor="#8bb0d1"];
      0 -> 1 [label="yes"];
      0 -> 2 [label="no"];
    }
    """
    outline = Outline.of(tree, feature_names, categories, digits)
    deepest = checked_depth(max_depth)
    shown = [n for n in outline.nodes if deepest is None or n["depth"] <= deepest]
    nodes = [f"  {n['id']} [{_attributes(outline, n, deepest)}];" for n in shown]
    edges = [
        f'  {n["parent"]} -> {n["id"]} [label="{_side(outline, n)}"];'
        for n in shown
        if n["parent"] is not None
    ]
    head = (
        "digraph tree {\n"
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="sans-serif"];\n'
        '  edge [fontname="sans-serif"];'
    )
    return "\n".join([head, *nodes, *edges, "}"])


# --- text


def _lines(outline: Outline, deepest: int | None) -> list[str]:
    lines: list[str] = []
    # Heads and nodes still to be written, the next one last.
    pending: list[tuple[str | None, Node]] = [(None, outline.nodes[0])]
    while pending:
        head, node = pending.pop()
        if head is not None:
            lines.append("|   " * (node["depth"] - 1) + head)
        indent = "|   " * node["depth"]
        if node["feature"] is None:
            lines.append(f"{indent}label {show(outline.answer(node['id']))}  {_counts(node)}")
        elif deepest is not None and node["depth"] >= deepest:
            lines.append(f"{indent}… {outline.size(node)} nodes")
        else:
            left, right = cast("int", node["left"]), cast("int", node["right"])
            pending.append((outline.otherwise(node), outline.nodes[right]))
            pending.append((outline.test(node), outline.nodes[left]))
    return lines


def _counts(node: Node) -> str:
    if not node["counts"]:
        return "(empty)"
    return "{" + ", ".join(f"{show(k)}: {n}" for k, n in node["counts"].items()) + "}"


# --- graph


def _attributes(outline: Outline, node: Node, deepest: int | None) -> str:
    n = sum(node["counts"].values())
    lines = [f"{n} example{'' if n == 1 else 's'}"]
    colour = ""
    if node["feature"] is None:
        lines.insert(0, show(outline.answer(node["id"])))
        colour = f', fillcolor="{outline.colour(node)}"'
    else:
        lines.insert(0, outline.test(node))
        if deepest is not None and node["depth"] >= deepest:
            lines.append(f"… {outline.size(node) - 1} nodes below")
    return f'label="{_LINE_END.join(map(_escape, lines))}"{colour}'


def _side(outline: Outline, node: Node) -> str:
    parent = outline.nodes[cast("int", node["parent"])]
    return "yes" if parent["left"] == node["id"] else "no"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
