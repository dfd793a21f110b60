"""The types of the compiled module, as they are checked in, are those of the module itself."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUB = ROOT / "src" / "evertree" / "_core.pyi"

pytest.importorskip("nanobind")
pytest.importorskip("ruff")


def functions(path):
    """Names, arguments and defaults of what a stub declares; types apart."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    types = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return {
        (c.name, f.name): ([a.arg for a in f.args.args], [ast.unparse(d) for d in f.args.defaults])
        for c in types
        for f in c.body
        if isinstance(f, ast.FunctionDef)
    }


def test_the_stub_is_what_make_stubs_makes(tmp_path):
    made = tmp_path / "_core.pyi"
    subprocess.run([sys.executable, ROOT / "bindings" / "make_stub.py", made], check=True)
    assert made.read_text(encoding="utf-8") == STUB.read_text(encoding="utf-8"), "run `make stubs`"


def test_what_we_know_better_than_nanobind_are_types_alone(tmp_path):
    # stub.pat replaces whole lines, so a change in the module could hide behind it.
    raw = tmp_path / "_core.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "evertree._core", "-o", raw]
    subprocess.run(command, check=True)
    assert functions(raw) == functions(STUB)
    assert len(functions(STUB)) > 35
