"""What to say where a target cannot hold the code of a category, as it mostly is with texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from evertree.encoding import show
from evertree.errors import CannotExport

if TYPE_CHECKING:
    from evertree.outline import Outline
    from evertree.tree import Node


def checked_category(
    outline: Outline, node: Node, limit_bits: int, reason: str, other: str
) -> float:
    """Give the category of a split, or refuse it if it is not below 2**limit_bits. O(1)."""
    category = cast("int", node["category"])
    if category < 2**limit_bits:
        return float(category)
    feature = cast("int", node["feature"])
    name = show(outline.words.feature_names[feature])
    if outline.words.is_text(feature):
        whose = f"column {name} holds texts, which the tree stores as codes of 53 bits: category"
        way_out = "number the texts 0, 1, 2, ... before they come into the tree"
    else:
        whose = f"feature {name}: category"
        way_out = (
            "number the categories 0, 1, 2, ... (texts become codes of 53 bits: number them "
            "before they come into the tree)"
        )
    raise CannotExport(
        f"{whose} {category} is not below 2**{limit_bits}, and {reason}; {way_out}, or use {other}"
    )
