"""The experiments: each kind of run against something slower, and a look at all tables and figures.

`make paper-quick` is what the last test runs.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier

from evertree import EverTree
from evertree.evaluate import Refitted, prequential
from evertree.streams import from_arrays
from experiments import published, runs, work
from experiments.data import SETS, synthetic
from experiments.figures import LAYOUTS
from experiments.plan import FULL, QUICK, TABLE_SETS, expected_seconds, incremental, jobs
from experiments.report import agreement, slips
from experiments.reproduce import collect, missing
from experiments.runs import Job, f1, f1_of_the_other
from experiments.tables import Found, all_tables
from experiments.work import Works
from peers import moa

PROJECT = Path(__file__).parents[2]
DATA = synthetic(SETS["KDDCUP99"], 400)  # numbers and categories
STREAMS = [("incremental", 60), ("window", 60), ("random", 60)]


def stream_of(job):
    source = from_arrays(DATA.X, DATA.y.tolist(), categorical=DATA.categorical)
    return runs.input_model(job)(source)


class TestRuns:
    @pytest.mark.parametrize(("stream", "W"), STREAMS)
    @pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
    def test_scikit_learn_in_batches_is_scikit_learn_row_by_row(self, stream, W, epsilon):
        job = Job("KDDCUP99", stream, W, "scikit-learn", epsilon, depth=4)
        record = runs.run(job, DATA)
        # evaluate's share has to be positive; the smallest one fits after every update, as 0 does.
        model = Refitted(DecisionTreeClassifier(max_depth=4, random_state=0), every=epsilon or 1e-9)
        expected = prequential(stream_of(job), model, positive=True)
        assert record["counts"]["judged"] == expected.examples == 340
        assert record["updates"] == expected.updates
        assert f1(record) == pytest.approx(100 * expected.f1)
        assert record["stats"]["fits"] == model.fits

    @pytest.mark.parametrize(("stream", "W"), STREAMS)
    @pytest.mark.parametrize(("learner", "value"), [("paper", 0.2), ("certified", 0.1)])
    def test_trees(self, stream, W, learner, value):
        job = Job("KDDCUP99", stream, W, learner, value, depth=4)
        rule = {"epsilon": value, "min_impurity": 0.0} if learner == "paper" else {"max_gap": value}
        tree = EverTree(41, DATA.categorical, max_depth=4, **rule)
        expected = prequential(stream_of(job), tree, positive=True)
        record = runs.run(job, DATA)
        assert f1(record) == pytest.approx(100 * expected.f1)
        assert f1_of_the_other(record) == pytest.approx(100 * expected.confusion.f1(False))
        assert record["stats"] == tree.stats()

    @pytest.mark.parametrize("learner", ["no change", "majority"])
    def test_baselines(self, learner):
        record = runs.run(Job("KDDCUP99", "incremental", 60, learner), DATA)
        truth = DATA.y[60:]
        if learner == "no change":
            said = DATA.y[59:-1]
        else:
            ones = np.cumsum(DATA.y)[59:-1]
            zeros = np.arange(60, 400) - ones
            said = np.where(ones == zeros, DATA.y[0], ones > zeros)
        assert f1(record) == pytest.approx(100 * f1_score(truth, said))
        assert f1_of_the_other(record) == pytest.approx(100 * f1_score(~truth, ~said))

    @pytest.mark.skipif(not moa.is_installed(), reason=moa.HOW_TO_GET_IT)
    @pytest.mark.parametrize("learner", ["EFDT", "HAT"])
    def test_moa(self, learner):
        data = synthetic(SETS["KDDCUP99"], 1_500)
        record = runs.run(Job("KDDCUP99", "incremental", 500, learner, 100), data)
        assert record["counts"]["judged"] == 1_000
        assert f1(record) > 60
        assert record["seconds"]["learn"] > 0


class TestPublished:
    def test_tables_agree_where_the_paper_repeats_itself(self):
        """Catches a slip of ours; the paper's own is the one exception."""
        for name, row in published.TABLE_2.items():
            assert row.efdt_seconds == published.TABLE_4[name].efdt
            if name != "Electricity":
                assert row.efdt_f1 == published.TABLE_5[name].efdt
        assert (
            published.TABLE_2["Electricity"].efdt_f1 == published.TABLE_5["Forest Covertype"].efdt
        )

    def test_every_row_is_in_every_table(self):
        names = set(published.TABLE_1)
        assert len(names) == 10
        for table in (published.TABLE_2, published.TABLE_3, published.TABLE_4, published.TABLE_5):
            assert set(table) == names
        assert set(published.MISSING) | set(TABLE_SETS) >= names


class TestPlan:
    def test_every_run_is_listed_once(self):
        listed = jobs(FULL, list(TABLE_SETS))
        assert len(listed) == len(set(listed))
        assert {job.data for job in listed} == set(TABLE_SETS)
        assert {job.value for job in listed if job.learner == "EFDT"} == {100, 500, 1000}
        assert all(expected_seconds(job, 1000) > 0 for job in listed)

    def test_a_look_lists_fewer_of_the_same(self):
        assert set(jobs(QUICK, ["Electricity"])) < set(jobs(FULL, ["Electricity"]))


class TestWork:
    def test_nothing_is_done_twice(self, tmp_path, monkeypatch):
        data = {"KDDCUP99": DATA}
        wanted = [incremental("KDDCUP99", "no change"), incremental("KDDCUP99", "majority")]
        wanted = [replace(job, W=60) for job in wanted]
        first = Works(data, 2, tmp_path).do(wanted)
        assert list(first) == wanted
        monkeypatch.setattr(Works, "_run", lambda self, missing: iter((missing and 1 / 0) or ()))
        assert Works(data, 2, tmp_path).do(wanted) == first
        for change in ({"engine": "another"}, {"sets": {"KDDCUP99": DATA.first(300)}}):
            works = Works(data, 2, tmp_path)
            for name, value in change.items():
                setattr(works, name, value)
            with pytest.raises(ZeroDivisionError):
                works.do(wanted)

    def test_a_run_that_fails_says_so(self, tmp_path):
        broken = Job("KDDCUP99", "window", 0, "majority")
        with pytest.raises(ValueError, match="W=0 is not a window"):
            Works({"KDDCUP99": DATA}, 2, tmp_path).do([broken])

    def test_the_engine_is_what_is_installed(self):
        assert work.engine() == work.engine()
        assert len(work.engine()) == 64


def record_of(score, other=None):
    """Make a record with this F1, of either class."""
    tp, wrong = 1_000, round(2_000 * (100 / score - 1))
    tn = tp if other is None else round(wrong / 2 / (100 / other - 1))
    counts = {"tp": tp, "fp": wrong, "fn": 0, "judged": tp + wrong + tn}
    return {"counts": counts, "seconds": {"learn": 1.0}, "updates": 10, "value": 0.5}


class TestWords:
    """Sentences follow the numbers."""

    def found(self, *, here, window=80.0, name="Electricity", up=None):
        records = {
            incremental(name, "paper", 0.5): record_of(here, up),
            Job(name, "window", 1000, "paper", 0.5, 5): record_of(window),
        }
        return Found(records, {name: replace(DATA, what="real")})

    def test_agreement(self):
        (text,) = agreement(self.found(here=82.1))
        assert "agrees, 82.1" in text
        assert "With other settings" not in text

    def test_a_difference(self):
        (text,) = agreement(self.found(here=77.0))
        assert "**differs**, 77.0" in text
        assert "looks like" not in text

    def test_a_difference_that_a_window_explains(self):
        (text,) = agreement(self.found(here=87.0, window=92.8, name="INSECTS v2"))
        assert "**differs**" in text
        assert "looks like a run in which old rows are deleted" in text

    def test_the_class_that_is_1(self):
        assert "DOWN, the majority, is nearer" in next(slips(self.found(here=82.1, up=74.0)))
        assert ": UP is nearer" in next(slips(self.found(here=74.0, up=82.1)))

    def test_the_copied_row(self):
        texts = list(slips(self.found(here=82.1)))
        assert any("the row of Electricity is the copy" in text for text in texts)

    def test_what_is_missing_is_named(self):
        texts = list(slips(self.found(here=82.1)))
        assert any(text.startswith("Not here") and "INSECTS v5" in text for text in texts)

    def test_tables_with_nothing_in_them_have_dashes(self):
        tables = all_tables(Found({}, {"Electricity": replace(DATA, what="real")}))
        assert [table.number for table in tables] == [1, 2, 3, 4, 5]
        assert all("–" in table.markdown() for table in tables)


def test_without_data_rows_are_made(tmp_path, capsys):
    sets, remarks = collect(QUICK, [tmp_path])
    assert {data.what for data in sets.values()} == {"synthetic"}
    assert list(sets) == list(TABLE_SETS)
    assert "not a result" in remarks[0]
    assert "Electricity is not here" in capsys.readouterr().err


def test_a_full_run_takes_every_row(tmp_path, monkeypatch):
    def load(about, places, *, may_download):
        assert (places, may_download) == ([tmp_path], True)
        return synthetic(about, 1_500)

    monkeypatch.setattr("experiments.reproduce.load", load)
    sets, remarks = collect(FULL, [tmp_path])
    assert list(sets) == list(TABLE_SETS)
    assert {len(data) for data in sets.values()} == {1_500}
    assert remarks == []


def test_a_look_at_everything(tmp_path):
    """What `make paper-quick` does: every table, every figure, machine and commit."""
    results = tmp_path / "results"
    command = [sys.executable, "-m", "experiments.reproduce", "--quick", "--results", str(results)]
    path = os.pathsep.join(str(PROJECT / folder) for folder in ("paper", "benchmarks"))
    done = subprocess.run(
        [*command, "--runs", str(tmp_path / "runs")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    assert missing(results) == []
    words = (results / "README.md").read_text()
    assert "Made by `make paper-quick`" in words
    assert "Where we agree" not in words, "a few rows, or made-up ones, are no ground to judge on"

    found = json.loads((results / "runs.json").read_text())
    assert {"commit", "machine", "date", "runs"} <= set(found)
    here = list(TABLE_SETS)
    extent = QUICK if moa.is_installed() else replace(QUICK, moa_sets=())
    assert len(found["runs"]) == len(jobs(extent, here))
    tables = json.loads((results / "tables.json").read_text())["tables"]
    assert [table["number"] for table in tables] == [1, 2, 3, 4, 5]
    for table in tables:
        width = len(table["main"]["head"])
        assert all(len(row) == width for row in table["main"]["rows"])
        assert len(table["main"]["rows"]) >= len(published.TABLE_1)
    for layout in LAYOUTS:
        content = (results / f"{layout.name}.png").read_bytes()
        width, height = struct.unpack(">2I", content[16:24])
        assert content.startswith(b"\x89PNG")
        assert width > 900
        assert height > 400

    (results / "figure-3.png").unlink()
    text = (results / "README.md").read_text()
    (results / "README.md").write_text(text.replace("## Table 4. ", "## "))
    assert missing(results) == ["Table 4", "Figure 3"]
