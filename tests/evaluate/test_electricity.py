"""A number of the paper: Electricity in the incremental model (Table 5), where the data is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evertree import EverTree
from evertree.evaluate import MajorityClass, NoChange, prequential
from evertree.streams import incremental, read_parquet

FOLDER = Path(os.environ.get("EVERTREE_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILE = FOLDER / "electricity.parquet"

pytestmark = pytest.mark.skipif(not FILE.exists(), reason="Electricity is not here (EVERTREE_DATA)")


def f1(model):
    """F1 of label 1, the majority class, which is DOWN (paper/MAP.md, S31); others are 0."""
    source = read_parquet(FILE, label="label").relabelled(lambda y: int(y == "DOWN"))
    result = prequential(incremental(1_000)(source), model, positive=1)
    assert result.examples == 44_312
    return 100 * result.f1


def test_f1_is_the_published_one():
    """Table 5 says 82.12."""
    assert round(f1(EverTree(8, epsilon=0.5, max_depth=10, min_impurity=0.0)), 1) == 82.1


def test_baselines():
    """What the paper leaves out: to repeat the last label is better than its tree."""
    assert f1(NoChange()) == pytest.approx(87.3, abs=0.1)
    assert f1(MajorityClass()) == pytest.approx(73.2, abs=0.1)
