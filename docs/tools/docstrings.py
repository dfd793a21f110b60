"""Docstrings as Markdown, for the site alone: in the source they stay as people read them there.

Two things look different in Markdown: a session (>>>) becomes a block of code, and two columns of
text (a name, what it means) become a table.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

# A name, or a few, then at least two spaces, then what it means.
_ENTRY = re.compile(r"^(\S+(?:, \S+)*)(?: {2,})(\S.*)$")


class AsMarkdown(griffe.Extension):  # type: ignore[misc]
    """What mkdocstrings is told of: every docstring that it finds goes through `as_markdown`."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """Rewrite the paragraphs that Markdown would spoil. O(length)."""
    paragraphs = re.split(r"\n\s*\n", docstring.strip("\n"))
    result: list[str] = []
    for paragraph in paragraphs:
        lines = paragraph.splitlines()
        if lines[0].startswith(">>> "):
            result.append("\n".join(["```pycon", *lines, "```"]))
        elif table := _table(lines):
            result.append(table)
        elif ">>> " in paragraph:  # the session follows without an empty line
            first = next(i for i, line in enumerate(lines) if line.startswith(">>> "))
            result += ["\n".join(lines[:first]), "\n".join(["```pycon", *lines[first:], "```"])]
        else:
            result.append(paragraph)
    return "\n\n".join(result).replace("```\n\n```pycon\n", "\n")


def _table(lines: list[str]) -> str:
    """Make a table of two columns, or nothing if the lines are none."""
    entries: list[list[str]] = []
    for line in lines:
        entry = _ENTRY.match(line)
        if entry:
            entries.append([entry[1], entry[2]])
        elif line.startswith("    ") and entries:
            entries[-1][1] += " " + line.strip()
        elif not entries and len(lines) > 1 and not line.startswith(" "):
            entries.append([line, ""])  # names on a line of their own, the meaning below
        else:
            return ""
    if len(entries) < 2 or not all(meaning for _, meaning in entries):
        return ""
    rows = [f"| {_names(names)} | {_cell(meaning)} |" for names, meaning in entries]
    return "\n".join(["| | |", "|---|---|", *rows])


def _names(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


def _cell(meaning: str) -> str:
    return meaning.replace("|", "\\|")
