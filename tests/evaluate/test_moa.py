"""MOA as a model: what it answers, what is said where it is missing, and where it fails.

MOA itself is needed by the last tests alone: `make build/peers/moa.jar` brings it.
"""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from evertree.cli import main
from evertree.errors import InvalidExample, InvalidParameter, MissingExtra
from evertree.evaluate import NO_ANSWER, MoaModel, prequential
from evertree.evaluate.moa import JAR_VARIABLE
from evertree.streams import Batch, Source, from_arrays, incremental, sea, sliding_window

JAR = Path(
    os.environ.get(JAR_VARIABLE, Path(__file__).parents[2] / "build" / "peers" / "moa.jar")
).resolve()

# Speaks as MoaPipe.java does, and repeats the last label: what the Python side sends is seen by it.
TWIN = f"""#!{sys.executable}
import struct, sys
read, write = sys.stdin.buffer.read, sys.stdout.buffer.write
d, classes = struct.unpack(">2i", read(8))
kinds = struct.unpack(f">{{d}}i", read(4 * d))
if "bad" in sys.argv[-1]:
    sys.exit("no such learner: " + sys.argv[-1])
write(bytes([1])); sys.stdout.flush()
last = -1
while request := read(1):
    row = struct.unpack(f">{{d}}d", read(8 * d))
    if request == bytes([1]):
        # The last feature asks for what the learner knows.
        write(struct.pack(">i", last if row[-1] >= 0 else kinds[0] - 3)); sys.stdout.flush()
    else:
        (last,) = struct.unpack(">i", read(4))
        assert 0 <= last < classes
"""


@pytest.fixture
def twin(tmp_path, monkeypatch):
    for name in ("java", "javac"):
        program = tmp_path / name
        program.write_text(TWIN)
        program.chmod(0o755)
    jar = tmp_path / "moa.jar"
    jar.touch()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv(JAR_VARIABLE, str(jar))


class TestPipe:
    def test_a_run_is_that_of_the_learner(self, twin):
        source = sea(600, seed=1)
        model = MoaModel.of(source, "twin")
        result = prequential(incremental(100)(source), model, positive=1)
        truths = [example.y for example in source]
        right = sum(a == b for a, b in itertools.pairwise(truths[99:]))
        assert result.accuracy == right / 500
        model.close()

    def test_before_the_first_example_there_is_no_answer(self, twin):
        model = MoaModel("twin", 1, ["a", "b"])
        assert model.label([1.0]) is NO_ANSWER
        model.insert([1.0], "b")
        assert model.label([1.0]) == "b"

    def test_categories_are_announced(self, twin):
        X = np.array([[7.0, 0.0], [9.0, 0.0], [7.0, 0.0], [8.0, 0.0]])
        source = from_arrays(X, ["p", "q", "p", "q"], categorical=[0])
        model = MoaModel.of(source, "twin")
        assert model.label([7.0, -1.0]) == "p"  # the twin answers with categories - 3
        with pytest.raises(InvalidExample, match="is not a row of 2 numbers"):
            model.label([])

    def test_what_it_was_not_made_for_is_refused(self, twin):
        model = MoaModel("twin", 2, ["a", "b"])
        with pytest.raises(InvalidExample, match="the label 'c' is none of those"):
            model.insert([1.0, 2.0], "c")
        with pytest.raises(InvalidExample, match="is not a row of 2 numbers"):
            model.label([1.0])
        with pytest.raises(InvalidParameter, match="labels is empty"):
            MoaModel("twin", 2, [])
        with pytest.raises(InvalidParameter, match="'maybe' is neither"):
            MoaModel("twin", 2, ["a"], deletions="maybe")

    def test_deletions_are_refused_or_ignored(self, twin):
        source = sea(20, seed=1)
        with pytest.raises(InvalidParameter, match="twin cannot forget"):
            prequential(sliding_window(5)(source), MoaModel.of(source, "twin"))
        model = MoaModel.of(source, "twin", deletions="ignore")
        assert prequential(sliding_window(5)(source), model).examples == 15

    def test_a_learner_that_ends_is_quoted(self, twin):
        with pytest.raises(InvalidParameter, match=r"ended with 'bad -x': no such learner: bad -x"):
            MoaModel("bad -x", 1, ["a"])

    def test_closed_is_closed(self, twin):
        model = MoaModel("twin", 1, ["a"])
        model.close()
        with pytest.raises(InvalidParameter, match="closed"):
            model.label([1.0])

    def test_a_source_without_rows(self, twin):
        source = Source("empty", ("a",), lambda: iter([Batch(np.empty((0, 1)), [])]))
        with pytest.raises(InvalidParameter, match="labels is empty"):
            MoaModel.of(source, "twin")


class TestMissing:
    def test_no_java(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(MissingExtra, match="apt-get install default-jdk-headless"):
            MoaModel("trees.EFDT", 1, ["a"])

    def test_no_jar(self, twin, tmp_path, monkeypatch):
        monkeypatch.setenv(JAR_VARIABLE, str(tmp_path / "none.jar"))
        with pytest.raises(MissingExtra, match=r"none.jar is not a file: .* pip download"):
            MoaModel("trees.EFDT", 1, ["a"])
        monkeypatch.delenv(JAR_VARIABLE)
        monkeypatch.setattr("evertree.evaluate.moa.find_spec", lambda _: None)
        with pytest.raises(MissingExtra, match=rf"&& export {JAR_VARIABLE}=\$PWD/.*/moa.jar$"):
            MoaModel("trees.EFDT", 1, ["a"])

    def test_the_command_says_so_before_it_runs(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setenv("PATH", str(tmp_path))
        assert main(["run", "none.csv", "--label", "y", "--compare", "moa"]) == 2
        assert "apt-get install default-jdk-headless" in capsys.readouterr().err


@pytest.mark.skipif(
    not (JAR.is_file() and shutil.which("javac")),
    reason="MOA is not here (make build/peers/moa.jar)",
)
class TestMoaItself:
    @pytest.fixture(autouse=True)
    def _jar(self, monkeypatch):
        monkeypatch.setenv(JAR_VARIABLE, str(JAR))

    @pytest.mark.parametrize("learner", ["trees.EFDT -g 100", "trees.HoeffdingAdaptiveTree"])
    def test_it_learns(self, learner):
        source = sea(3_000, seed=1, noise=0.0)
        result = prequential(incremental(500)(source), MoaModel.of(source, learner), positive=1)
        assert result.accuracy > 0.9

    def test_categories(self):
        X = np.array([[float(i % 5), 0.0] for i in range(2_000)])
        source = from_arrays(X, [int(i % 5 == 3) for i in range(2_000)], categorical=[0])
        result = prequential(incremental(0)(source), MoaModel.of(source, "trees.EFDT -g 100"))
        assert result.accuracy > 0.9

    def test_an_unknown_learner_is_refused(self):
        with pytest.raises(InvalidParameter, match=r"MOA has ended with 'trees\.Oak'"):
            MoaModel("trees.Oak", 1, ["a"])

    def test_the_command(self, tmp_path, capsys):
        rows = [",".join([*map(repr, e.x.tolist()), str(e.y)]) for e in sea(1_200, seed=1)]
        data = tmp_path / "data.csv"
        data.write_text("\n".join(["a,b,c,y", *rows]) + "\n")
        assert main(["run", str(data), "--label", "y", "--window", "500", "--compare", "moa"]) == 0
        line = next(s for s in capsys.readouterr().out.splitlines() if s.startswith("MOA EFDT"))
        assert 0.5 < float(line.split()[2]) <= 1
