"""Every exception of evertree. Each is also a built-in, so a caller may catch either.

A message names the value, the rule and the way out. A call that raises has changed nothing.
This file knows no other of ours.
"""

from __future__ import annotations

__all__ = [
    "CannotExport",
    "DuplicateId",
    "EmptyTree",
    "EvertreeError",
    "ExampleNotFound",
    "InvalidExample",
    "InvalidFile",
    "InvalidParameter",
    "MissingExtra",
]


class EvertreeError(Exception):
    """What all errors of evertree have in common."""


class ExampleNotFound(EvertreeError, KeyError):
    """An example was asked for, or was to be deleted, that is not active."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which suits a key and spoils a sentence.
        return str(self.args[0]) if self.args else ""


class DuplicateId(EvertreeError, ValueError):
    """An example was to be inserted under an id that is in use."""


class InvalidExample(EvertreeError, ValueError):
    """A row, a label or an id is not what the tree can take in."""


class InvalidFile(EvertreeError, ValueError):
    """A file does not hold what it should. `line` and `column` count from 1; None: not known."""

    def __init__(
        self, message: str = "", *, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class InvalidParameter(EvertreeError, ValueError):
    """Something was asked for with parameters that make no sense."""


class MissingExtra(EvertreeError, ImportError):
    """A library is not installed that only some users need; the message names the extra."""


class CannotExport(EvertreeError, ValueError):
    """A tree was to be written in a form that cannot say what this tree says."""


class EmptyTree(EvertreeError, LookupError):
    """A label was asked of a tree without examples.

    A LookupError, because there is nothing to look the answer up in; not a ValueError, because
    the row that was asked about may be perfectly good.
    """
