"""The benchmarks run, small, and keep what they find. No time is asserted.

Peers that are not installed are named in the rows, so this needs none of them.
"""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from data import Data, synthetic
from measure import growth_exponent
from report import QUESTIONS, Row
from rule import check_equal, plain_command
from stream import accuracy, f1

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_and_kept(question, tmp_path):
    script = str(BENCHMARKS / f"{question}.py")
    command = [sys.executable, script, "--quick", "--results", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    answer = json.loads((tmp_path / f"{question}.json").read_text(encoding="utf-8"))
    assert answer["rows"]
    assert {"commit", "date", "machine", "versions"} <= set(answer)
    for row in answer["rows"]:
        assert row["measured"] or "not installed" in row["note"]
        assert all(0 < value < math.inf for value in row["measured"].values()), row
    table = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert table.count("| synthetic |") == len(answer["rows"]) == len(done.stdout.splitlines())


def test_a_question_that_nobody_knows_is_refused():
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "run.py"), "speed"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "speed: the questions are build, stream" in done.stderr


@pytest.mark.parametrize(
    ("figure", "at_least", "at_most", "verdict"),
    [
        (10.0, 10.0, None, "met"),
        (9.9, 10.0, None, "**not met**"),
        (0.6, None, 0.6, "met"),
        (0.7, None, 0.6, "**not met**"),
        (None, 10.0, None, ""),
        (10.0, None, None, ""),
    ],
)
def test_a_target_is_met_or_not(figure, at_least, at_most, verdict):
    row = Row("set", "setting", {}, "s", figure=figure, at_least=at_least, at_most=at_most)
    assert row.verdict == verdict


def test_the_exponent_of_a_known_curve():
    sizes = [1e4, 1e5, 1e6]
    assert growth_exponent(sizes, [2 * math.log(n) ** 3 for n in sizes]) == pytest.approx(3)
    assert growth_exponent(sizes, [5.0, 5.0, 5.0]) == pytest.approx(0)


def test_f1_by_hand():
    truth = np.array([True, True, True, False, False])
    said = np.array([0, 1, 0, 1, 0], dtype=np.int8)  # the first row does not count
    assert f1(truth, said) == pytest.approx(0.5)
    assert accuracy(truth, said) == pytest.approx(0.5)


@pytest.mark.skipif(not shutil.which("g++"), reason="the plain version is compiled with g++")
class TestPlainTwin:
    @staticmethod
    def tied():
        """Few values and many equal rows: ties everywhere, and leaves that no split separates."""
        data = synthetic(1_500, d=3)
        return Data("tied", np.round(data.X) + 0.0, data.y, data.positive)

    def test_it_makes_the_same_tree_where_all_is_tied(self, tmp_path):
        data = self.tied()
        work = check_equal(data, plain_command(data, tmp_path), tmp_path / "predictions")
        assert work["rebuilds"] > 100

    def test_a_difference_is_noticed(self, tmp_path):
        data = self.tied()
        command = plain_command(data.first(1_400), tmp_path)
        with pytest.raises(AssertionError, match="plain"):
            check_equal(data, command, tmp_path / "predictions")
