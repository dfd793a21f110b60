"""Every question, one after the other, each in a process of its own. See report.py for what stays.

python benchmarks/run.py [--quick] [build stream ...]; `make bench` asks them all.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from report import QUESTIONS

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Ask; answer with the number of questions that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="question", help=f"of {QUESTIONS}")
    parser.add_argument("--quick", action="store_true", help="a small version, to see that it runs")
    given = parser.parse_args()
    if unknown := sorted(set(given.questions) - set(QUESTIONS)):
        parser.error(f"{', '.join(unknown)}: the questions are {', '.join(QUESTIONS)}")
    flags = ["--quick"] if given.quick else []
    failed = 0
    for name in given.questions or QUESTIONS:
        print(f"\n{name}", flush=True)
        command = [sys.executable, str(HERE / f"{name}.py"), *flags]
        failed += subprocess.run(command, check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
