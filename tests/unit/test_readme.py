"""The README's session runs as printed, and its links lead somewhere."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.name for path in ROOT.glob("*.md"))


def test_the_session_runs_as_printed():
    # A line that ends in a backslash goes on in the next: the page is narrower than the message.
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("\\\n", "")
    session = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
    assert len(session.examples) > 10
    said: list[str] = []
    result = doctest.DocTestRunner().run(session, out=said.append)
    assert not result.failed, "".join(said)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)\)", text)
    missing = [t for t in targets if "://" not in t and not (ROOT / t).exists()]
    assert not missing


def test_the_two_commands_come_first():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first_block = text.split("```")[1]
    assert re.findall(r"^make (\w+)", first_block, re.MULTILINE) == ["demo", "test"]
