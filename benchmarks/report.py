"""What a benchmark leaves behind: a line for each result, one JSON file, and the table of all.

Each question's file in benchmarks/results carries its own machine, versions, date and commit, so
that one question can be asked again without the others. README.md there is made from all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from measure import Options
from peers.moa import moa_version

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
QUICK_RESULTS = HERE.parent / "build" / "bench-quick"
QUESTIONS = ("build", "stream", "rule", "calls", "batches", "growth", "memory", "adaptive")
HAS_LONG = {"growth"}  # questions with a version that takes an hour
PACKAGES = ("evertree", "numpy", "scikit-learn", "river")
HEAD = """# Speed

Made by `make bench`; each part says where and when. A figure is a ratio within one run (× means
times faster), one thread on both sides unless it says otherwise, CPU time, the best of a few
repetitions that take turns.
"""
UNITS = {
    "s": (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)),
    "rows/s": (("M rows/s", 1e6), ("k rows/s", 1e3)),
    "bytes": (("MB", 1e6),),
    "%": (("%", 1.0),),
}


@dataclass(frozen=True)
class Row:
    """One result: what was measured on each side, the figure that counts, and its target."""

    data: str
    setting: str
    measured: dict[str, float]  # by name, ours first
    unit: str  # of what was measured, see UNITS
    figure: float | None = None  # what the target speaks of, by default a ratio
    figure_unit: str = "×"
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def target(self) -> str:
        """The target in words; empty where there is none."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g}{self.figure_unit}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}{self.figure_unit}"

    @property
    def verdict(self) -> str:
        """Whether the target is met; empty where there is none, or nothing was measured."""
        if self.figure is None or not self.target:
            return ""
        met = self.figure >= (self.at_least or 0) and self.figure <= (self.at_most or float("inf"))
        return "met" if met else "**not met**"

    def cells(self) -> list[str]:
        """Write the row of the table."""
        measured = [f"{name} {say(value, self.unit)}" for name, value in self.measured.items()]
        figure = "" if self.figure is None else f"{self.figure:.3g}{self.figure_unit}"
        verdict = [self.data, self.setting, figure, self.target, self.verdict]
        return [*verdict, ", ".join(measured), self.note]


def say(value: float, unit: str) -> str:
    """Write a number with the unit that suits its size."""
    scales = UNITS[unit]
    name, scale = next(((n, s) for n, s in scales if value >= s), scales[-1])
    digits = f"{value / scale:.3g}" if value < 1000 * scale else f"{value / scale:.0f}"
    return f"{digits} {name}"


def main(name: str, ask: Callable[[Options], Iterator[Row]]) -> None:
    """Ask one question from the command line, print and keep the answers."""
    options = _options(name)
    name = f"{name}-long" if options.long else name
    rows = []
    for row in ask(options):
        # Targets speak of the real sizes.
        rows.append(replace(row, at_least=None, at_most=None) if options.quick else row)
        print(" | ".join(cell for cell in rows[-1].cells() if cell), flush=True)
    options.results.mkdir(parents=True, exist_ok=True)
    answer = {**_circumstances(), "rows": [asdict(row) for row in rows]}
    text = json.dumps(answer, indent=1, ensure_ascii=False)
    (options.results / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    write_table(options.results)


def write_table(results: Path) -> None:
    """Make README.md of what is kept in the folder."""
    files = [file for name in QUESTIONS for file in (name, f"{name}-long")]
    kept = [file for file in files if (results / f"{file}.json").exists()]
    parts = [HEAD]
    for name in kept:
        answer = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
        parts.append(_part(name, answer, results))
    (results / "README.md").write_text("\n".join(parts), encoding="utf-8")


def _part(name: str, answer: dict[str, Any], results: Path) -> str:
    title = name.capitalize().replace("-", ", ")
    versions = ", ".join(f"{package} {version}" for package, version in answer["versions"].items())
    lines = [
        f"## {title}\n",
        f"Commit {answer['commit']}, {answer['date']}; {answer['machine']}; {versions}.\n",
        "| data | setting | figure | target | | measured | note |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [f"| {' | '.join(Row(**row).cells())} |" for row in answer["rows"]]
    if (results / f"{name}.png").exists():
        lines.append(f"\n![{title}]({name}.png)")
    return "\n".join([*lines, ""])


# --- circumstances


def _options(name: str) -> Options:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a small version, to see that it runs")
    if name in HAS_LONG:
        parser.add_argument("--long", action="store_true", help="ten times larger; takes an hour")
    parser.add_argument("--results", type=Path, help="where to keep the answers")
    parser.set_defaults(long=False)
    given = parser.parse_args()
    # A quick look must not take the place of a result.
    results = given.results or (QUICK_RESULTS if given.quick else RESULTS)
    return Options(quick=given.quick, long=given.long, results=results)


def _circumstances() -> dict[str, Any]:
    return {
        "commit": _commit(),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "machine": _machine(),
        "versions": _versions(),
    }


def _commit() -> str:
    """Name the commit, and whether anything but the results differs from it."""
    commit = _git("rev-parse", "--short", "HEAD") or "unknown"
    changed = _git("status", "--porcelain", "--", ":/", ":(exclude,top)benchmarks/results")
    return f"{commit} with changes" if changed else commit


def _git(*arguments: str) -> str:
    try:
        answer = subprocess.run(
            ["git", *arguments], cwd=HERE, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return answer.stdout.strip()


def _machine() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    cpu = re.search(r"model name\s*: (.*)", text)
    model = cpu[1] if cpu else platform.machine()
    python = f"Python {platform.python_version()}"
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, {python}"


def _versions() -> dict[str, str]:
    installed = {each.name: each.version for each in metadata.distributions()}
    return {name: installed[name] for name in PACKAGES if name in installed} | moa_version()
