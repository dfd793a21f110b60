"""Errors of the library name its arguments; on a command line they have to name the options."""

from __future__ import annotations

import ast
import re
import shlex

_ARGUMENTS = (
    "categorical",
    "delimiter",
    "drop",
    "encoding",
    "every",
    "label",
    "max_depth",
    "max_gap",
    "missing",
    "names",
    "positive",
    "seed",
    "time",
)
_OTHER_NAMES = {"every": "refit-every"}
# An argument with its value: a text, a list, or what goes on to the next space or punctuation. Not
# inside of quotes or of a path, where it is a value of the user's.
_ARGUMENT = re.compile(
    rf"""(?<![\w'"/.])({"|".join(_ARGUMENTS)})=('[^']*'|"[^"]*"|\[[^\]]*\]|[^\s,:;)]*)"""
)


def with_options(message: str) -> str:
    """Name options where a message names arguments of a function.

    >>> with_options("leave it out with drop=['a', 'b c'], or try encoding='latin-1'")
    "leave it out with --drop 'a,b c', or try --encoding latin-1"
    >>> with_options("max_gap=2.0 is not in (0, 1]; name the text in missing=")
    '--max-gap 2.0 is not in (0, 1]; name the text in --missing'
    """
    return _ARGUMENT.sub(_option, message)


def _option(match: re.Match[str]) -> str:
    option = "--" + _OTHER_NAMES.get(match[1], match[1].replace("_", "-"))
    if match[2] in {"None", "[]"}:
        return f"no {option}"
    if match[2] == "[...]":
        return f"{option} a,b,c"
    value = _plain(match[2])
    return f"{option} {shlex.quote(value)}" if value else option


def _plain(text: str) -> str:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # shortened, or no text at all
    if isinstance(value, list):
        return ",".join(map(str, value))
    # A tab is easier to read, and to type, as it was written.
    return text[1:-1] if isinstance(value, str) and not value.isprintable() else str(value)
