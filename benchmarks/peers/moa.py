"""MOA, the Java peer: is it here, and what does one of its learners do with a stream.

`make bench-peers` brings moa.jar (out of the wheel of capymoa) and, where there is none, Java. The
driver is Moa.java beside this file; it is compiled when it has changed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

DRIVER = Path(__file__).with_name("Moa.java")
FOLDER = DRIVER.parents[2] / "build" / "peers"
JAR = FOLDER / "moa.jar"
CLASS = FOLDER / "Moa.class"
HOW_TO_GET_IT = "MOA is not installed here: `make bench-peers` brings it"


@dataclass(frozen=True)
class Run:
    """One pass over a stream: its time, and the label that was given to each row before it came."""

    wall_seconds: float
    cpu_seconds: float
    predictions: npt.NDArray[np.int8]
    # Of the first pass, before the JVM was warm: its learning thread, and all its threads.
    cold_cpu_seconds: float | None = None
    cold_all_seconds: float | None = None


def is_installed() -> bool:
    """Tell whether MOA can run here."""
    return JAR.exists() and shutil.which("java") is not None and shutil.which("javac") is not None


def moa_version() -> dict[str, str]:
    """Name the versions of MOA's bearer and of Java, if both are here."""
    if not is_installed():
        return {}
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    found = re.search(r'version "([^"]+)"', java.stderr)
    capymoa = (FOLDER / "capymoa.version").read_text(encoding="utf-8").strip()
    return {"MOA of capymoa": capymoa, "Java": found[1] if found else "unknown"}


def run(stream: Path, learner: str, warm_up_seconds: float) -> Run:
    """Run a learner, such as "trees.EFDT -g 500", over a file of `data.write_stream`."""
    compile_driver()
    with tempfile.TemporaryDirectory() as folder:
        predictions = Path(folder) / "predictions"
        # One thread for the garbage collector too; the heap is large enough to hold every set.
        java = ["java", "-Xmx6g", "-XX:+UseSerialGC", "-cp", f"{JAR}:{FOLDER}", "Moa"]
        arguments = [str(stream), learner, str(warm_up_seconds), str(predictions)]
        answer = json.loads(_output([*java, *arguments]))
        labels = np.fromfile(predictions, dtype=np.int8)
    return Run(
        answer["wall_seconds"],
        answer["cpu_seconds"],
        labels,
        answer["cold_cpu_seconds"],
        answer["cold_all_seconds"],
    )


def compile_driver() -> None:
    """Compile the driver if it has changed; those who start several at once do it before."""
    if not CLASS.exists() or CLASS.stat().st_mtime < DRIVER.stat().st_mtime:
        _output(["javac", "-cp", str(JAR), "-d", str(FOLDER), str(DRIVER)])


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stderr.strip()}")
    return done.stdout
