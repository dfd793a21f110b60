"""Keep what an experiment has found: JSON with machine and commit, and its picture beside it."""

from __future__ import annotations

import json
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import evertree

RESULTS = Path(__file__).resolve().parents[1] / "results"


def keep(name: str, found: dict[str, Any], figure: Any, folder: Path = RESULTS) -> Path:
    """Write <name>.json and <name>.png; return the path of the picture."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "commit": commit(),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        "evertree": evertree.__version__,
    }
    text = json.dumps({**about, **found}, indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    picture = folder / f"{name}.png"
    figure.savefig(picture, dpi=120)
    return picture


def commit() -> str:
    """Name the commit that is measured."""
    git = ["git", "describe", "--always", "--dirty"]
    folder = Path(__file__).parent
    answer = subprocess.run(git, capture_output=True, text=True, check=False, cwd=folder)
    return answer.stdout.strip() or "unknown"
