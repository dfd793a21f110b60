"""Hooks of the site: before anything is rendered, every page is run; a page that lies stops it.

The pictures that a page's code has written become files of the site.
"""

from __future__ import annotations

import os
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
    return files
