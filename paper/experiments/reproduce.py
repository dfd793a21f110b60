"""`make paper`: every table and figure of the paper, into paper/results.

`make paper-quick` is the same with the first rows of each set (made-up rows where a set is not
there) and fewer values of ε, into build/paper-quick: to see that everything works.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

# One thread per run. Read when numpy is imported, so it stands before.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from evertree.errors import EvertreeError  # noqa: E402
from experiments.data import DOWNLOADS, SETS, Data, NotHere, folders, load, synthetic  # noqa: E402
from experiments.figures import LAYOUTS, draw  # noqa: E402
from experiments.keep import RESULTS, circumstances, keep_json, keep_picture  # noqa: E402
from experiments.plan import FULL, QUICK, TABLE_SETS, Extent, jobs  # noqa: E402
from experiments.report import report  # noqa: E402
from experiments.tables import Found, all_tables  # noqa: E402
from experiments.work import KEPT_RUNS, Works  # noqa: E402
from peers import moa  # noqa: E402

QUICK_RESULTS = DOWNLOADS.parent / "paper-quick"


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for; the answer is the exit code."""
    options = _options(arguments)
    try:
        reproduce(
            QUICK if options.quick else FULL,
            options.results or (QUICK_RESULTS if options.quick else RESULTS),
            options.data,
            Workers(options.workers, options.runs),
        )
    except EvertreeError as error:
        print(f"paper: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\npaper: stopped; the next `make paper` goes on from here", file=sys.stderr)
        return 130
    return 0


class Workers(NamedTuple):
    """How many runs at the same time, and where finished ones are kept."""

    number: int = 2
    folder: Path = KEPT_RUNS


_WORKERS = Workers()


def reproduce(
    extent: Extent, folder: Path, named: Path | None = None, workers: Workers = _WORKERS
) -> None:
    """Find the data, do the runs, write tables, figures and report."""
    places = folders(named)
    sets, remarks = collect(extent, places)
    if moa.is_installed():
        moa.compile_driver()  # before two processes would do it at once
    else:
        extent = replace(extent, moa_sets=())
        remarks.append(f"EFDT and HAT are missing: {moa.HOW_TO_GET_IT}.")
    records = Works(sets, workers.number, workers.folder).do(jobs(extent, list(sets)))
    found = Found(records, sets)
    about = {**circumstances(), **moa.moa_version()}
    write(found, folder, about, remarks, quick=extent.rows is not None)
    if lost := missing(folder):
        raise NotHere(f"{folder} is not complete: {', '.join(lost)}")
    print(f"written: {folder / 'README.md'}")


def collect(extent: Extent, places: list[Path]) -> tuple[dict[str, Data], list[str]]:
    """Read every set that can be had, and say which cannot; a look makes rows of its own."""
    sets = {}
    for name in TABLE_SETS:
        data = _load(name, places, may_download=extent.rows is None)
        if data is None and extent.rows is not None:
            data = synthetic(SETS[name], extent.rows)
        if data is not None:
            sets[name] = data.first(extent.rows)
    if not sets:
        raise NotHere("none of the paper's data sets is here: the lines above say how to get them")
    if extent.rows is None:
        return sets, []
    return sets, [f"**A look, not a result**: the first {extent.rows:,} rows of each set alone."]


def _load(name: str, places: list[Path], *, may_download: bool) -> Data | None:
    try:
        return load(SETS[name], places, may_download=may_download)
    except NotHere as error:
        print(f"paper: {error}", file=sys.stderr)
        return None


def write(
    found: Found, folder: Path, about: dict[str, str], remarks: list[str], *, quick: bool = False
) -> None:
    """Write JSON, pictures and the report."""
    tables = all_tables(found)
    keep_json("tables", {"tables": [asdict(table) for table in tables]}, folder)
    keep_json("runs", {"runs": list(found.records.values())}, folder)
    for layout in LAYOUTS:
        keep_picture(layout.name, draw(found, layout), folder)
    text = report(found, tables, about, remarks, quick=quick)
    (folder / "README.md").write_text(text, encoding="utf-8")


def missing(folder: Path) -> list[str]:
    """Name the tables and figures that are not in a folder of results."""
    report_file = folder / "README.md"
    text = report_file.read_text(encoding="utf-8") if report_file.exists() else ""
    lost = [f"Table {n}" for n in range(1, 6) if f"\n## Table {n}. " not in text]
    for layout in LAYOUTS:
        shown = f"]({layout.name}.png)" in text and f"\n## Figure {layout.number}. " in text
        if not (shown and (folder / f"{layout.name}.png").exists()):
            lost.append(f"Figure {layout.number}")
    return lost + [name for name in ("runs.json", "tables.json") if not (folder / name).exists()]


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="reproduce", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a look at everything, no result")
    parser.add_argument("--data", type=Path, help="a folder with the data sets")
    parser.add_argument("--results", type=Path, help="where to write")
    parser.add_argument("--runs", type=Path, default=KEPT_RUNS, help="where finished runs are kept")
    parser.add_argument("--workers", type=int, default=2, help="runs at the same time (2)")
    options = parser.parse_args(arguments)
    if options.workers < 1:
        parser.error(f"--workers {options.workers} is not an int >= 1: it counts processes")
    return options


if __name__ == "__main__":
    sys.exit(main())
