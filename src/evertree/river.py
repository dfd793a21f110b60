"""The tree for river: `from evertree.river import EverTreeClassifier`. Needs `evertree[river]`."""

from evertree.estimators.river import EverTreeClassifier

__all__ = ["EverTreeClassifier"]
