"""Every page of the documentation does what it says: code runs as printed, links lead on."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import evertree
import sessions
from evertree import EverTree, EverTreeClassifier
from evertree.river import EverTreeClassifier as RiverClassifier

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
LINKING = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
IS_CODE = {"python", "console"}


def name(path):
    return str(path.relative_to(ROOT))


@pytest.fixture(autouse=True)
def pictures_are_written_and_not_shown(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_code_of_a_page_does_what_the_page_says(page, tmp_path):
    wrong = sessions.run(page, tmp_path)
    assert not wrong, wrong
    # What a page shows is there: beside it, made by its code, or by the benchmarks.
    shown = re.findall(r"!\[.*?\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    folders = (page.parent, tmp_path, ROOT / "benchmarks" / "results")
    assert not [p for p in shown if not any((folder / p).exists() for folder in folders)]


def test_no_block_of_code_is_left_out():
    blocks = [b for page in PAGES for b in sessions.blocks(page.read_text(encoding="utf-8"))]
    plain = [block for block in blocks if block.language not in IS_CODE]
    # Only the two commands at the head of the README are in neither language.
    assert [block.lines[0].split()[:2] for block in plain] == [["make", "demo"]]
    assert len(blocks) > 30


def test_a_page_that_lies_is_caught(tmp_path):
    page = tmp_path / "page.md"
    for lie, said in {
        "```python\n>>> 1 + 1\n3\n```\n": "Expected:\n    3\nGot:\n    2\n",
        "```python\nprint(1)\n```\n": "page.md:2: a block of Python begins with >>>",
        "```console\n$ pip install 'evertree[sklearn,none]'\n```\n": "there is no none",
        "```console\n$ make coffee\n```\n": "there is no coffee",
        "```console\n$ evertree run no.csv --label y\n```\n": "ends with code 2",
        "```console\n$ python examples/none.py\n```\n": "none.py",
        "```console\n$ rm x\n```\n": "only evertree, make",
    }.items():
        page.write_text(lie, encoding="utf-8")
        assert said in sessions.run(page, tmp_path)


@pytest.mark.parametrize("page", LINKING, ids=name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)", text)
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


def test_every_example_is_run_by_a_page():
    text = (DOCS / "examples.md").read_text(encoding="utf-8")
    examples = {path.name for path in (ROOT / "examples").glob("*.py")}
    shown = set(re.findall(r"^\$ python examples/(\w+\.py)", text, re.MULTILINE))
    assert len(shown) >= 5
    assert shown | {"demo.py"} == examples


def _is_call(member):
    return callable(member) or isinstance(member, property)


def test_the_cost_of_every_operation_is_told():
    told = set(re.findall(r"\w+", (DOCS / "costs.md").read_text(encoding="utf-8")))
    for thing in (EverTree, EverTreeClassifier, RiverClassifier):
        asked = {n for n, member in vars(thing).items() if n[0] != "_" and _is_call(member)}
        assert not asked - told - {"tree", "tree_"}
    functions = {n for n in evertree.__all__ if n[0].islower() and not n.startswith("__")}
    assert not functions - told


def test_the_two_commands_come_first():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first_block = text.split("```")[1]
    assert re.findall(r"^make (\w+)", first_block, re.MULTILINE) == ["demo", "test"]
