"""Understand the tree: what changed in it and why, and what it would say without some rows.

Nothing here changes the tree that it looks at.
"""

from evertree.explain.compare import Change, Diff, Snapshot, diff, snapshot
from evertree.explain.leave_out import Influence, influence

__all__ = ["Change", "Diff", "Influence", "Snapshot", "diff", "influence", "snapshot"]
