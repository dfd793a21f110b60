"""Sessions: the code of a page, run as a reader would run it.

A page of documentation is one session: its Python blocks run one after the other, in a folder of
their own, and must print what the page prints under them. Its commands are run, too (those that
install or make something are only checked: the extra, the target must exist). The tests run every
page; `make docs` does it again, and shows the pictures that a page has written.

Knows the form of a page, and nothing of the site.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.metadata
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from evertree.cli import main as evertree

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^(\s*)```+\s*([\w-]*)")


class Block(NamedTuple):
    """A block of code: its language, the line it begins at (from 1), its lines."""

    language: str
    line: int
    lines: list[str]


def blocks(text: str) -> Iterator[Block]:
    """Give every fenced block of a page. O(length)."""
    inside: Block | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        fence = _FENCE.match(line)
        if fence is None:
            if inside is not None:
                inside.lines.append(line)
        elif inside is None:
            inside = Block(fence[2], number + 1, [])
        else:
            yield inside
            inside = None


def run(page: Path, folder: Path) -> str:
    """Run the code of a page in a folder; give what is wrong, in words: nothing, if all is well.

    Costs what the page's code costs.
    """
    text = page.read_text(encoding="utf-8")
    with _inside(folder):
        return _run_python(page.name, text) + _run_commands(page.name, text)


def _run_python(name: str, text: str) -> str:
    # All other lines are made empty, so that lines keep their numbers. A line that ends in a
    # backslash goes on in the next: the page is narrower than the message.
    lines = [""] * len(text.splitlines())
    for block in blocks(text):
        if block.language == "python":
            if not block.lines[0].startswith(">>> "):
                return f"{name}:{block.line}: a block of Python begins with >>>\n"
            lines[block.line - 1 : block.line - 1 + len(block.lines)] = block.lines
    code = ("\n".join(lines) + "\n").replace("\\\n", "")
    session = doctest.DocTestParser().get_doctest(code, {"__name__": "__main__"}, name, name, 0)
    said: list[str] = []
    doctest.DocTestRunner().run(session, out=said.append)
    return "".join(said)


# --- commands


def _run_commands(name: str, text: str) -> str:
    wrong = ""
    for block in blocks(text):
        if block.language == "console":
            for line in block.lines:
                said = _run_command(line.removeprefix("$ ").partition("  #")[0])
                wrong += f"{name}:{block.line}: {line}: {said}\n" if said else ""
    return wrong


def _run_command(line: str) -> str:
    program, *arguments = shlex.split(line)
    if program == "evertree":
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = evertree(arguments)
        return f"ends with code {code}: {said.getvalue()}" if code else ""
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return _missing({a for a in arguments if "=" not in a} - set(targets))
    if line.startswith("pip install "):
        known = importlib.metadata.metadata("evertree").get_all("Provides-Extra") or []
        asked = [names.split(",") for names in re.findall(r"\[(.*?)\]", line)]
        return _missing({extra for extras in asked for extra in extras} - set(known))
    if program == "python" and Path(arguments[0]).parts[0] == "examples":
        command = [sys.executable, *arguments, "--out", str(Path.cwd())]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
        return done.stderr or (f"ends with code {done.returncode}" if done.returncode else "")
    return "only evertree, make, pip install and python examples/... can be shown"


def _missing(names: set[str]) -> str:
    return f"there is no {', '.join(sorted(names))}" if names else ""


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
