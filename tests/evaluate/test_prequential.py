"""Test-then-train: every answer is judged before its example is learned, and nothing is lost."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score
from sklearn.tree import DecisionTreeClassifier

from evertree import EverTree
from evertree.errors import EmptyTree, ExampleNotFound, InvalidParameter
from evertree.evaluate import (
    NO_ANSWER,
    MajorityClass,
    NoChange,
    Refitted,
    RiverModel,
    compare,
    plot,
    prequential,
)
from evertree.streams import (
    Delete,
    Insert,
    InsertMany,
    Label,
    from_arrays,
    incremental,
    random_update,
    sea,
    sliding_window,
)

SOURCE = sea(3_000, seed=5, change_every=700)
MODELS = [incremental(300), sliding_window(300), random_update(0.5, seed=1, W=300)]


def by_hand(stream, tree):
    """The same run, as one would write it down: truths and answers."""
    truths, answers = [], []
    for request in stream:
        if isinstance(request, Label):
            answers.append(tree.label(request.x))
            truths.append(request.y)
        elif isinstance(request, Insert):
            tree.insert(request.x, request.y)
        elif isinstance(request, Delete):
            tree.delete(request.x, request.y)
        else:
            tree.insert_many(request.X, request.y)
    return truths, answers


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_run_is_the_run_by_hand(model):
    truths, answers = by_hand(model(SOURCE), EverTree(3))
    tree = EverTree(3)
    result = prequential(model(SOURCE), tree, positive=1, every=400)
    assert result.examples == 2_700
    assert result.accuracy == pytest.approx(accuracy_score(truths, answers))
    assert result.f1 == pytest.approx(f1_score(truths, answers))
    assert result.f1_macro == pytest.approx(f1_score(truths, answers, average="macro"))
    assert [point.examples for point in result.points] == [400, 800, 1200, 1600, 2000, 2400, 2700]
    for i, point in enumerate(result.points):
        piece = slice(400 * i, min(400 * (i + 1), 2_700))
        assert point.now.accuracy == pytest.approx(accuracy_score(truths[piece], answers[piece]))
        so_far = slice(0, piece.stop)
        assert point.overall.f1 == pytest.approx(f1_score(truths[so_far], answers[so_far]))
    assert result.stats == tree.stats()
    assert result.updates == tree.stats()["inserts"] + tree.stats()["deletes"] - 300
    assert result.points[-1].active == len(tree)
    assert sum(point.times.updates for point in result.points) == result.updates


def test_a_short_end_is_joined_with_the_last_point():
    """2,700 answers: 600 leave 300, half a point, which stands; 500 leave 200, which do not."""
    stream = incremental(300)(SOURCE)
    truths, answers = by_hand(stream, EverTree(3))
    assert [p.examples for p in prequential(stream, NoChange(), every=600).points][-2:] == [
        2400,
        2700,
    ]
    shown = []
    options = {"every": 500, "audit_every": 100, "fading": 0.99}
    result = prequential(stream, EverTree(3), progress=shown.append, **options)
    assert [p.examples for p in result.points] == [500, 1000, 1500, 2000, 2700]
    last = result.points[-1]
    assert last.now.accuracy == pytest.approx(accuracy_score(truths[2000:], answers[2000:]))
    assert last.overall.accuracy == pytest.approx(accuracy_score(truths, answers))
    assert last.times.updates == 700
    assert sum(p.times.label_s for p in result.points) == pytest.approx(result.label_s)
    one = prequential(stream, EverTree(3), every=2700, fading=0.99)
    assert last.faded.accuracy == pytest.approx(one.points[-1].faded.accuracy)
    assert [p.examples for p in shown] == [500, 1000, 1500, 2000, 2500, 2700]
    gaps = [p.audit.worst_gap for p in shown[-2:]]
    assert last.audit.worst_gap == max(gaps), "neither of the two audits is lost"
    assert [p.examples for p in prequential(stream, NoChange(), every=9000).points] == [2700]


def test_times_are_told_apart(monkeypatch):
    now = 0.0  # a clock that only the model's work moves

    class Slow(NoChange):
        def label(self, x):
            spend(2e-4)
            return super().label(x)

        def insert(self, x, y):
            spend(1e-3)
            super().insert(x, y)

        def insert_many(self, X, y):
            spend(0.05)
            super().insert_many(X, y)

    def spend(seconds):
        nonlocal now
        now += seconds

    # The package exports the function by the name of its module.
    module = sys.modules["evertree.evaluate.prequential"]
    monkeypatch.setattr(module, "perf_counter", lambda: now)
    result = prequential(incremental(10)(sea(40)), Slow())
    assert result.build_s == pytest.approx(0.05)
    assert result.learn_us == pytest.approx(1_000)
    assert result.label_us == pytest.approx(200)
    assert result.updates == 30


def test_faded_scores():
    truths, answers = by_hand(incremental(300)(SOURCE), NoChange())
    result = prequential(incremental(300)(SOURCE), NoChange(), fading=0.99, every=400)
    weights = 0.99 ** np.arange(len(truths))[::-1]
    expected = accuracy_score(truths, answers, sample_weight=weights)
    assert result.points[-1].faded.accuracy == pytest.approx(expected)
    assert "accuracy_faded" in result.to_frame().columns


def test_audits():
    result = prequential(sliding_window(200)(SOURCE), EverTree(3), every=100, audit_every=500)
    assert [p.examples for p in result.points if p.audit] == [500, 1000, 1500, 2000, 2500]
    assert all(audit.ok and 0 <= audit.worst_gap <= 0.1 for audit in result.audits)
    with pytest.raises(InvalidParameter, match="NoChange has no certify"):
        prequential(incremental(10)(SOURCE), NoChange(), audit_every=100)


def test_a_breach_is_reported():
    """Far beyond the epsilon that carries the guarantee, audits find what is wrong and say so."""
    tree = EverTree(3, max_gap=0.01, epsilon=2.0)
    result = prequential(incremental(300)(SOURCE), tree, every=100, audit_every=100)
    assert not tree.certified
    assert any(not audit.ok and audit.breaches for audit in result.audits)


def test_only_a_first_batch_is_the_build():
    batch = InsertMany([[1.0], [2.0]], [0, 1])
    for requests, updates in (([batch], 0), ([batch, batch], 2), ([Insert([0.0], 0), batch], 3)):
        result = prequential(requests, EverTree(1))
        assert result.updates == updates
        assert (result.build_s > 0) == (requests[0] is batch)


def test_an_empty_tree_gives_no_answer():
    result = prequential(incremental(W=0)(sea(100)), EverTree(3))
    assert result.examples == 100
    assert sum(n for (_, answer), n in result.confusion.counts.items() if answer is NO_ANSWER) == 1


def test_a_window_by_time_that_runs_empty():
    source = from_arrays(np.arange(4.0).reshape(4, 1), ["a"] * 4, time=[0.0, 10.0, 20.0, 21.0])
    result = prequential(sliding_window("5s")(source), EverTree(1))
    assert dict(result.confusion.counts) == {("a", NO_ANSWER): 2, ("a", "a"): 1}


# ------------------------------------------------------------------------------------------- models


def test_baselines():
    examples = [([0.0], y) for y in "aabbbab"]
    truths, answers = by_hand(incremental(0)(examples), NoChange())
    assert answers == [NO_ANSWER, "a", "a", "b", "b", "b", "a"]
    _, answers = by_hand(incremental(0)(examples), MajorityClass())
    assert answers == [NO_ANSWER, "a", "a", "a", "a", "b", "a"]
    assert "".join(truths) == "aabbbab"


def test_the_majority_follows_deletions():
    model = MajorityClass()
    for y in "aab":
        model.insert([0.0], y)
    model.delete([0.0], "a")
    model.delete([0.0], "a")
    assert model.label([0.0]) == "b"
    with pytest.raises(ExampleNotFound):
        model.delete([0.0], "a")


@pytest.mark.parametrize("every", [1, 50, 0.5])
def test_refitted_is_fitted_to_the_active_set(every):
    """On schedule, and to exactly what a window holds."""
    fits = []

    class Spy(DecisionTreeClassifier):
        def fit(self, X, y):
            fits.append(sorted(zip(X[:, 0].tolist(), y, strict=True)))
            return super().fit(X, y)

    examples = [([float(t % 60)], t % 3) for t in range(260)]
    model = Refitted(Spy(random_state=0), every=every)
    result = prequential(sliding_window(100)(examples), model)
    expected, last, fitted = [], 0, 100
    for updates in range(321):  # a deletion, then an insertion, for each example
        active = examples[(updates + 1) // 2 : 100 + updates // 2]
        changes = updates - last
        if updates == 0 or (changes == every if every >= 1 else changes > every * fitted):
            expected.append(sorted((x[0], y) for x, y in active))
            last, fitted = updates, len(active)
    assert fits == expected
    assert model.fits == len(fits)
    assert result.stats == {"rebuilds": model.fits}
    assert result.points[-1].active == 100


def test_refitted_refuses():
    for every in (0, -1, 0.0, True, "x", math.nan):
        with pytest.raises(InvalidParameter, match="every="):
            Refitted(DecisionTreeClassifier(), every=every)
    model = Refitted(DecisionTreeClassifier(), every=10)
    assert model.label([1.0]) is NO_ANSWER
    model.insert([1.0], "a")
    assert model.label([1.0]) == "a", "the first example is fitted at once"
    with pytest.raises(ExampleNotFound):
        model.delete([1.0], 0)


class Counting:
    """What river's classifiers look like."""

    def __init__(self):
        self.seen = []

    def learn_one(self, x, y):
        self.seen.append((x, y))

    def predict_one(self, x):
        return self.seen[-1][1] if self.seen else None


def test_a_river_model():
    model = Counting()
    result = prequential(
        incremental(2)([([1.0, 2.0], "a"), ([3.0, 4.0], "b"), ([5.0, 6.0], "a")]), model
    )
    assert model.seen[0] == ({0: 1.0, 1: 2.0}, "a")
    assert len(model.seen) == 3
    assert dict(result.confusion.counts) == {("a", "b"): 1}
    assert result.name == "Counting"
    with pytest.raises(InvalidParameter, match="Counting cannot forget"):
        prequential(sliding_window(1)(SOURCE), Counting())
    forgiving = prequential(sliding_window(1)(sea(10)), RiverModel(Counting(), deletions="ignore"))
    assert forgiving.examples == 9
    with pytest.raises(InvalidParameter, match="neither 'refuse' nor 'ignore'"):
        RiverModel(model, deletions="maybe")


def test_a_real_river_model():
    tree = pytest.importorskip("river.tree")
    result = prequential(incremental(300)(SOURCE), tree.HoeffdingTreeClassifier(grace_period=50))
    assert result.accuracy > 0.7


def test_any_object_with_three_methods_is_a_model():
    class Constant:
        def label(self, x):
            return 1

        def insert(self, x, y):
            assert len(x) == 3

        def delete(self, x, y):
            assert len(x) == 3

    for model in MODELS:
        assert prequential(model(SOURCE), Constant()).accuracy > 0.2


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (lambda: prequential(SOURCE, NoChange()), "is a source of examples, not a stream"),
        (lambda: prequential([1], NoChange()), "1 .int. is no request"),
        (lambda: prequential([], DecisionTreeClassifier()), r"Refitted\(DecisionTreeClassifier"),
        (lambda: prequential([], 7), "is not a model"),
        (lambda: prequential([], NoChange(), every=0), "every=0 is not an int >= 1"),
        (lambda: prequential([], NoChange(), fading=0), r"fading=0 is not in \(0, 1\]"),
        (lambda: compare(iter([]), {}), "can be read only once"),
    ],
)
def test_bad_parameters(run, says):
    with pytest.raises(InvalidParameter, match=says):
        run()


def test_an_error_of_the_model_comes_through():
    with pytest.raises(ExampleNotFound):
        prequential([Delete([1.0, 2.0, 3.0], 0)], EverTree(3))

    class Broken(NoChange):
        def insert(self, x, y):
            raise EmptyTree("not in label")

    with pytest.raises(EmptyTree):
        prequential([Insert([1.0], 0)], Broken())


# ------------------------------------------------------------------------------------------ results


@pytest.fixture(scope="module")
def result():
    return prequential(
        sliding_window(300)(SOURCE), EverTree(3), positive=1, every=500, audit_every=1000
    )


def test_as_a_frame(result):
    frame = result.to_frame()
    assert frame["examples"].tolist() == [500, 1000, 1500, 2000, 2700]
    for column in (
        "accuracy",
        "f1",
        "kappa_overall",
        "learn_us",
        "nodes",
        "rows_rebuilt",
        "worst_gap",
    ):
        assert column in frame.columns
    assert frame["f1_overall"].iloc[-1] == pytest.approx(result.f1)


def test_as_json(result, tmp_path):
    text = result.to_json(tmp_path / "result.json")
    assert (tmp_path / "result.json").read_text() == text + "\n"
    data = json.loads(text)
    assert data["f1"] == pytest.approx(result.f1)
    assert data["stream"] == "sliding_window(W=300) of sea(seed=5)"
    assert sum(cell["count"] for cell in data["confusion"]) == 2_700
    assert len(data["points"]) == 5


def test_json_has_no_nan():
    data = json.loads(prequential([], NoChange()).to_json())
    assert data["accuracy"] is None
    odd = prequential(incremental(0)([([0.0], ("t", 1)), ([0.0], None)]), NoChange())
    assert json.loads(odd.to_json())["confusion"][0]["answer"] is None


def test_as_a_picture(result, tmp_path):
    figure = result.plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    above, below = figure.axes
    (line,) = above.get_lines()
    assert line.get_xdata().tolist() == [500, 1000, 1500, 2000, 2700]
    assert line.get_ydata()[0] == pytest.approx(result.points[0].now.f1)
    assert below.get_ylabel() == "µs per update"
    assert len(plot([result, result]).axes[0].get_lines()) == 2


def test_in_one_line(result):
    assert str(result).startswith(f"EverTree: F1 {result.f1:.4f}, accuracy {result.accuracy:.4f}")


def test_a_positive_label_that_never_occurs_is_told():
    with pytest.warns(UserWarning, match="positive='1' was never true.*the labels are"):
        result = prequential(incremental(300)(SOURCE), EverTree(3), positive="1")
    assert result.f1 == 0.0


def test_compare():
    results = compare(
        incremental(300)(SOURCE), {"tree": EverTree(3), "last": NoChange()}, positive=1
    )
    assert [result.name for result in results.values()] == ["tree", "last"]
    assert results["tree"].accuracy > results["last"].accuracy


# ----------------------------------------------------------------------------------------- progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_only_on_a_terminal(monkeypatch):
    for stream, wanted, shown in (
        (io.StringIO(), None, False),
        (io.StringIO(), True, True),
        (Terminal(), None, True),
        (Terminal(), False, False),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        prequential(incremental(300)(SOURCE), NoChange(), progress=wanted)
        assert bool(stream.getvalue()) == shown
        if shown:
            assert "2,700 of 2,700 examples" in stream.getvalue()
            assert stream.getvalue().endswith("\n")


def test_progress_as_a_function():
    points = []
    prequential(incremental(300)(SOURCE), NoChange(), progress=points.append)
    assert [point.examples for point in points] == [1000, 2000, 2700]


# ----------------------------------------------------------------------------------- without extras

WITHOUT = """
import sys
for library in ("pandas", "pyarrow", "matplotlib", "sklearn"):
    sys.modules[library] = None
from evertree import EverTree, MissingExtra, evaluate, streams
result = evaluate.prequential(streams.sliding_window(50)(streams.sea(100)), EverTree(3))
assert result.examples == 50 and result.to_json()
for call in (
    result.to_frame,
    result.plot,
    lambda: streams.read_parquet("x", label="y"),
    lambda: streams.from_frame([], label="y"),
):
    try:
        call()
    except MissingExtra as error:
        print(error)
"""


def test_without_the_extras_everything_else_works():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        f"{purpose} needs {library}, which is not installed: pip install 'evertree[{extra}]' "
        f"(in a clone: pip install '.[{extra}]')"
        for purpose, library, extra in (
            ("to_frame()", "pandas", "plot"),
            ("plot()", "matplotlib", "plot"),
            ("reading Parquet", "pyarrow", "streams"),
            ("reading frames", "pyarrow", "streams"),
        )
    ]
