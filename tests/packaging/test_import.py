"""`import evertree` is quick, brings in numpy alone, and its types are found."""

import subprocess
import sys
from importlib import resources

import smoke

TIMES = """
import time
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
"""


def import_s(module):
    return float(run(TIMES.format(module=module)))


def run(code):
    # -I: nothing of this folder or of this user is looked at on the way.
    command = [sys.executable, "-I", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_import_takes_at_most_three_times_that_of_numpy():
    # The least of several, taken in turns: what the machine does besides only adds.
    numpy_s = evertree_s = float("inf")
    for _ in range(8):
        numpy_s = min(numpy_s, import_s("numpy"))
        evertree_s = min(evertree_s, import_s("evertree"))
    assert evertree_s <= 3 * numpy_s, f"{evertree_s / numpy_s:.2f} times numpy"


def test_import_needs_numpy_and_nothing_else():
    names = "{name.partition('.')[0] for name in sys.modules}"
    code = f"import sys, numpy; before = {names}; import evertree; print(*({names} - before))"
    assert set(run(code).split()) - sys.stdlib_module_names == {"evertree"}


def test_types_are_in_the_package():
    package = resources.files("evertree")
    assert (package / "py.typed").is_file()
    assert (package / "_core.pyi").is_file()


def test_the_session_of_the_wheels():
    smoke.main()
