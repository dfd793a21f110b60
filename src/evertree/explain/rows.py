"""The rows that a tree speaks of: all, or those of the window that answers in an AdaptiveTree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evertree.adaptive import AdaptiveTree

if TYPE_CHECKING:
    from evertree.tree import EverTree, Examples


def rows_of(tree: EverTree) -> Examples:
    """Copy the rows of the tree that answers; the smallest id first. O(n·(d + log n))."""
    return tree.examples(answering=True) if isinstance(tree, AdaptiveTree) else tree.examples()
