"""Keep what an experiment has found: JSON with machine and commit, and its picture beside it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import evertree

RESULTS = Path(__file__).resolve().parents[1] / "results"


def keep(name: str, found: dict[str, Any], figure: Any, folder: Path = RESULTS) -> Path:
    """Write <name>.json and <name>.png; return the path of the picture."""
    keep_json(name, found, folder)
    return keep_picture(name, figure, folder)


def keep_json(name: str, found: dict[str, Any], folder: Path) -> Path:
    """Write <name>.json, with the circumstances first."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(_json({**circumstances(), **found}), encoding="utf-8")
    return path


def _json(found: dict[str, Any]) -> str:
    """Write one line per value and per member of a list: short enough to read, and to compare."""
    parts = []
    for name, value in found.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list):
            members = ",\n  ".join(json.dumps(member, ensure_ascii=False) for member in value)
            text = f"[\n  {members}\n ]"
        parts.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def keep_picture(name: str, figure: Any, folder: Path) -> Path:
    """Write <name>.png."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=120)
    return path


def circumstances() -> dict[str, str]:
    """Say what was measured, where and when."""
    python = f"Python {platform.python_version()}"
    system = f"{platform.machine()}, {platform.system()}"
    return {
        "commit": commit(),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "machine": f"{system}, {os.cpu_count()} processors{processor()}, {python}",
        "evertree": evertree.__version__,
    }


def processor() -> str:
    """Name the processor, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f" ({names[0]})" if names else ""


def commit() -> str:
    """Name the commit that is measured."""
    git = ["git", "describe", "--always", "--dirty"]
    folder = Path(__file__).parent
    answer = subprocess.run(git, capture_output=True, text=True, check=False, cwd=folder)
    return answer.stdout.strip() or "unknown"
