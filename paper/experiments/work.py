"""Doing the runs: two at a time, the long ones first, and none a second time.

A record is kept under a name made of all that it depends on: the job, the rows, and the program
(the installed package and the file that does the runs). So an interrupted `make paper` goes on
where it stopped, and nothing is taken over from another engine.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evertree
from experiments import runs
from experiments.plan import expected_seconds

if TYPE_CHECKING:
    from experiments.data import Data
    from experiments.runs import Job, Record

KEPT_RUNS = Path(__file__).resolve().parents[2] / "build" / "paper-runs"


_sets: dict[str, Data] = {}  # of a worker


def _hand_over(sets: dict[str, Data]) -> None:
    _sets.update(sets)


def _one(job: Job) -> Record:
    data = _sets[job.data]
    return {**asdict(job), "rows": len(data), **runs.run(job, data)}


class Works:
    """Does jobs, or finds them done."""

    def __init__(self, sets: dict[str, Data], workers: int = 2, folder: Path = KEPT_RUNS) -> None:
        self.sets = sets
        self.folder = folder
        self.workers = workers
        self.engine = engine()

    def do(self, jobs: list[Job]) -> dict[Job, Record]:
        """Do all jobs; give the record of each."""
        found = {job: record for job in jobs if (record := self._kept(job)) is not None}
        missing = sorted(set(jobs) - set(found), key=lambda job: (-self._expected(job), str(job)))
        progress = Progress(sum(map(self._expected, missing)), len(jobs), len(found))
        for job, record in self._run(missing):
            path = self._path(job)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".part").write_text(json.dumps(record), encoding="utf-8")
            path.with_suffix(".part").rename(path)
            found[job] = record
            progress.done(self._expected(job), str(job))
        progress.end()
        return {job: found[job] for job in jobs}

    def _run(self, jobs: list[Job]) -> Iterator[tuple[Job, Record]]:
        with ProcessPoolExecutor(
            self.workers, initializer=_hand_over, initargs=(self.sets,)
        ) as pool:
            futures = {pool.submit(_one, job): job for job in jobs}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _expected(self, job: Job) -> float:
        return expected_seconds(job, len(self.sets[job.data]))

    def _kept(self, job: Job) -> Record | None:
        path = self._path(job)
        if not path.exists():
            return None
        record: Record = json.loads(path.read_text(encoding="utf-8"))
        return record

    def _path(self, job: Job) -> Path:
        about: dict[str, Any] = {**asdict(job), "rows": len(self.sets[job.data])}
        about |= {"what": self.sets[job.data].what, "engine": self.engine}
        text = json.dumps(about, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"


def engine() -> str:
    """Hash the programs that make a record: the package as it is installed, and `runs`."""
    digest = hashlib.sha256()
    package = Path(evertree.__file__).parent
    files = [path for path in package.rglob("*") if path.suffix in {".py", ".so", ".java"}]
    for path in [*sorted(files), Path(runs.__file__)]:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Progress:
    """One line on a terminal, a line now and then elsewhere: how far, and how long still."""

    SECONDS = 30.0  # between two lines where there is no terminal

    def __init__(self, cost: float, jobs: int, kept: int) -> None:
        self.cost, self.spent = max(cost, 1e-9), 0.0
        self.jobs, self.finished = jobs, kept
        self.started = self.shown = time.monotonic()
        self.live = sys.stderr.isatty()
        if kept:
            print(f"{kept} of {jobs} runs are there already", file=sys.stderr)

    def done(self, cost: float, name: str) -> None:
        """One more is done."""
        self.spent += cost
        self.finished += 1
        now = time.monotonic()
        if not self.live and now - self.shown < self.SECONDS:
            return
        self.shown = now
        left = (now - self.started) * (self.cost - self.spent) / self.spent
        share = self.spent / self.cost
        bar = "█" * int(20 * share) + "░" * (20 - int(20 * share))
        line = f"{bar} {share:4.0%} · {self.finished} of {self.jobs} · {_minutes(left)} left"
        width = os.get_terminal_size(sys.stderr.fileno()).columns if self.live else 200
        text = f"{line} · {name}"[: width - 1]
        sys.stderr.write(f"\r\033[K{text}" if self.live else f"{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Say how long it took."""
        took = _minutes(time.monotonic() - self.started)
        sys.stderr.write(f"{chr(13) if self.live else ''}{self.jobs} runs, {took}\n")


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
