"""Hooks of the site: before anything is rendered, every page is run; a page that lies stops it.

The pictures that a page's code has written become files of the site. Where a page says
<!-- results: Build -->, it shows that part of benchmarks/results as it is at the moment.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import sessions

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

PICTURES = sessions.ROOT / "build" / "pages"
RESULTS = sessions.ROOT / "benchmarks" / "results"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Run every page, and take its pictures in."""
    os.environ["MPLBACKEND"] = "agg"  # pictures are written, not shown
    shutil.rmtree(PICTURES, ignore_errors=True)
    for page in list(files.documentation_pages()):
        folder = PICTURES / Path(page.src_uri).with_suffix("")
        if wrong := sessions.run(Path(page.abs_src_path or ""), folder):
            raise PluginError(f"{page.src_uri} does not do what it says:\n{wrong}")
        for picture in sorted(folder.glob("*.png")):
            files.append(File.generated(config, picture.name, abs_src_path=str(picture)))
    for picture in sorted(RESULTS.glob("*.png")):
        files.append(File.generated(config, picture.name, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the results in that a page asks for, and tell code and what it printed apart."""
    coloured = markdown.replace("```python\n>>> ", "```pycon\n>>> ")
    return re.sub(r"<!-- results: (\w+) -->", lambda asked: results(asked[1]), coloured)


def results(part: str) -> str:
    """Give one part of the results: its table without the notes, and where it was measured."""
    text = (RESULTS / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {part}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise PluginError(f"benchmarks/results/README.md has no part '{part}'")
    lines = found[1].splitlines()
    table = [line.rsplit(" | ", 1)[0] + " |" for line in lines if line.startswith("| ")]
    measured = next(line for line in lines if line.startswith("Commit"))
    rule = "|---" * (table[0].count("|") - 1) + "|"
    return "\n".join([table[0], rule, *table[1:], "", f"<small>{measured}</small>"])
