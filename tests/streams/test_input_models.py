"""Every input model against a plain-Python model: which examples are active when a label is asked?

The plain model computes the active set of each moment from the definition, from all examples at
once; the stream has to arrive there by its requests.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertree import EverTree
from evertree.errors import InvalidExample, InvalidParameter
from evertree.streams import (
    Delete,
    DeleteMany,
    Insert,
    InsertMany,
    Label,
    apply,
    from_arrays,
    incremental,
    random_update,
    sliding_window,
)

# Few values, so that equal examples are common.
EXAMPLES = st.lists(
    st.tuples(
        st.tuples(st.integers(0, 2).map(float), st.sampled_from([0.0, math.nan])), st.booleans()
    ),
    max_size=40,
)
SEEDS = st.integers(0, 2**31)


class Multiset:
    """The active set as a Counter, and what it was whenever a label was asked."""

    def __init__(self) -> None:
        self.active: Counter = Counter()
        self.asked: list = []

    def insert(self, x, y):
        self.active[key(x, y)] += 1

    def delete(self, x, y):
        assert self.active[key(x, y)] > 0, "only what is in may be deleted"
        self.active[key(x, y)] -= 1

    def insert_many(self, X, y):
        for example in zip(X, y, strict=True):
            self.insert(*example)

    def delete_many(self, X, y):
        for example in zip(X, y, strict=True):
            self.delete(*example)

    def label(self, x):
        self.asked.append(+self.active)


def key(x, y):
    return tuple("nan" if math.isnan(v) else v for v in x), y


def run(stream):
    """Apply a stream to a Multiset: its moments, the questions, the requests."""
    model = Multiset()
    requests = list(stream)
    for request in requests:
        apply(request, model)
    questions = [key(*request) for request in requests if isinstance(request, Label)]
    return model, questions, requests


def multiset(examples):
    return Counter(key(x, y) for x, y, *_ in examples)


# --------------------------------------------------------------------------- incremental and window


@settings(deadline=None)
@given(EXAMPLES, st.integers(0, 45))
def test_incremental(examples, W):
    model, questions, requests = run(incremental(W)(examples))
    assert questions == [key(*example) for example in examples[W:]]
    assert model.asked == [multiset(examples[:t]) for t in range(W, len(examples))]
    assert +model.active == multiset(examples)
    assert [r for r in requests if isinstance(r, InsertMany)] == requests[
        : int(W > 0 < len(examples))
    ]


@settings(deadline=None)
@given(EXAMPLES, st.integers(1, 45))
def test_sliding_window(examples, W):
    model, questions, requests = run(sliding_window(W)(examples))
    assert questions == [key(*example) for example in examples[W:]]
    assert model.asked == [multiset(examples[t - W : t]) for t in range(W, len(examples))]
    assert +model.active == multiset(examples[-W:])
    # The order of the paper: lab, del, ins.
    assert [type(r) for r in requests[1:]] == [Label, Delete, Insert] * len(questions)


def test_the_first_batch_is_one_build():
    examples = [((float(i),), i % 2) for i in range(10)]
    for model in (incremental(10), sliding_window(10), random_update(W=10)):
        (request,) = model(examples)
        assert request == InsertMany([x for x, _ in examples], [y for _, y in examples])


@pytest.mark.parametrize(
    "model", [incremental(3), sliding_window(3), random_update(W=3), sliding_window("3s")]
)
def test_a_source_without_examples_makes_no_requests(model):
    assert list(model([])) == []


# ------------------------------------------------------------------------------------ random update


@settings(deadline=None)
@given(EXAMPLES, st.integers(0, 45), st.floats(0, 1), SEEDS)
def test_random_update(examples, W, p, seed):
    model, questions, requests = run(random_update(p, seed, W)(examples))
    assert questions == [key(*example) for example in examples[W:]]
    active = multiset(examples[:W])
    rest = requests[int(W > 0 < len(examples)) :]
    assert len(rest) == 2 * len(questions)
    for t, (label, update) in enumerate(zip(rest[::2], rest[1::2], strict=True), start=W):
        assert isinstance(label, Label)
        assert model.asked[t - W] == +active
        if isinstance(update, Insert):
            assert key(*update) == key(*examples[t]), "what is inserted is the example of the turn"
            active[key(*update)] += 1
        else:
            active[key(*update)] -= 1
    assert +model.active == +active
    assert repr(list(random_update(p, seed, W)(examples))) == repr(requests), (
        "same seed, same requests"
    )


def test_random_update_at_its_ends():
    examples = [((float(i),), 0) for i in range(9)]
    assert list(random_update(1.0, 5, W=4)(examples)) == list(incremental(4)(examples))
    kinds = [type(r) for r in random_update(0.0, 5, W=2)(examples)][2::2]
    # Two deletions empty it; then what comes is inserted, and deleted at the next turn.
    assert kinds == [Delete, Delete, Insert, Delete, Insert, Delete, Insert]


def test_random_update_inserts_with_probability_p():
    examples = [((0.0,), 0)] * 5_000
    for p in (0.2, 0.5, 0.9):
        requests = random_update(p, seed=1, W=4_000)(examples)
        inserts = sum(isinstance(r, Insert) for r in requests)
        assert abs(inserts - 1_000 * p) < 4 * math.sqrt(1_000 * p * (1 - p)), (p, inserts)


def test_random_update_deletes_each_active_example_equally_often():
    examples = [((float(i),), 0) for i in range(11)]
    deleted = Counter()
    for seed in range(3_000):
        *_, last = random_update(0.0, seed, W=10)(examples)
        deleted[last.x[0]] += 1
    assert sorted(deleted) == [float(i) for i in range(10)]
    chi_squared = sum((n - 300) ** 2 / 300 for n in deleted.values())
    assert chi_squared < 27.9, deleted  # 9 degrees of freedom, 1 in 1,000


def test_random_update_keeps_no_batch_alive_for_one_row():
    source = from_arrays(np.zeros((100, 2)), [0] * 100)
    requests = random_update(0.5, seed=1, W=50)(source)
    assert all(r.x.base is None for r in requests if isinstance(r, Delete))


# ------------------------------------------------------------------------------------------ by time

TIMED = st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=40)


def in_time(examples, t, span):
    """What a window of `span` holds, by definition, when example t is labelled."""
    now = max(time for *_, time in examples[: t + 1])
    return multiset(example for example in examples[:t] if now - example[2] < span)


@settings(deadline=None)
@given(TIMED, st.integers(1, 30), st.booleans())
def test_time_window(moments, span, dates):
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    unit = timedelta(seconds=1) if dates else 1.0
    examples = [((float(m),), y, start + m * unit if dates else float(m)) for m, y in moments]
    width = span * unit
    model, questions, _ = run(sliding_window(f"{span}s")(examples))
    first = examples[0][2] if examples else None
    built = len(list(itertools.takewhile(lambda e: e[2] - first < width, examples)))
    assert questions == [key(x, y) for x, y, _ in examples[built:]]
    assert model.asked == [in_time(examples, t, width) for t in range(built, len(examples))]


def test_time_window_of_seven_days():
    start = datetime(2026, 11, 1)
    examples = [((float(day),), "y", start + timedelta(days=day)) for day in (0, 1, 6, 7, 8, 30)]
    expected = [
        InsertMany([(0.0,), (1.0,), (6.0,)], ["y"] * 3),
        Delete((0.0,), "y"),  # exactly seven days old: out
        Label((7.0,), "y"),
        Insert((7.0,), "y"),
        Delete((1.0,), "y"),
        Label((8.0,), "y"),
        Insert((8.0,), "y"),
        DeleteMany([(6.0,), (7.0,), (8.0,)], ["y"] * 3),
        Label((30.0,), "y"),
        Insert((30.0,), "y"),
    ]
    for W in ("7d", "168h", "1w", " 7 d ", timedelta(days=7)):
        assert list(sliding_window(W)(examples)) == expected, W


def test_time_window_at_the_beginning_of_time():
    start = datetime(1, 1, 1, tzinfo=timezone.utc)
    examples = [((0.0,), 0, start), ((1.0,), 0, start + timedelta(days=1))]
    kinds = [type(request) for request in sliding_window("12h")(examples)]
    assert kinds == [InsertMany, Delete, Label, Insert]


def test_time_window_of_numpy_times():
    examples = [((0.0,), 0, np.int64(0)), ((1.0,), 0, np.float32(2.5)), ((2.0,), 0, 3)]
    kinds = [type(request) for request in sliding_window("3s")(examples)]
    assert kinds == [InsertMany, Delete, Label, Insert]


def test_time_window_without_times():
    for source in ([((1.0,), 0)], from_arrays([[1.0]], [0])):
        with pytest.raises(InvalidParameter, match=r"read_csv\(path, label=..., time='date'\)"):
            list(sliding_window("7d")(source))


def test_times_without_order():
    naive, aware = datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=timezone.utc)
    for a, b in ((1.0, naive), (naive, aware)):
        with pytest.raises(InvalidExample, match="have no order"):
            list(sliding_window("7d")([((1.0,), 0, a), ((1.0,), 0, b)]))
    with pytest.raises(InvalidExample, match="nan"):
        list(sliding_window("7d")([((1.0,), 0, math.nan)]))


# ------------------------------------------------------------------------------------ with the tree


@settings(max_examples=25, deadline=None)
@given(EXAMPLES, st.integers(1, 20), SEEDS)
def test_a_tree_follows_every_model(examples, W, seed):
    """The tree's active set is the plain model's after each request, and it stays certified."""
    timed = [(x, y, float(t)) for t, (x, y) in enumerate(examples)]
    for stream in (
        incremental(W),
        sliding_window(W),
        random_update(0.5, seed, W),
        sliding_window(f"{W}s"),
    ):
        tree, plain = EverTree(2), Multiset()
        for request in stream(timed):
            if not isinstance(request, Label):
                apply(request, tree)
                apply(request, plain)
                assert len(tree) == plain.active.total()
        assert tree.certify().ok
        rows = [([math.nan if v == "nan" else v for v in x], y) for x, y in plain.active.elements()]
        fresh = EverTree(2)
        fresh.insert_many([x for x, _ in rows], [y for _, y in rows])
        tree.rebuild()
        assert tree.digest() == fresh.digest()


def test_a_stream_can_be_read_again():
    stream = random_update(seed=3, W=5)(
        from_arrays(np.arange(40.0).reshape(20, 2), ["a", "b"] * 10)
    )
    assert repr(list(stream)) == repr(list(stream))
    assert stream.length == 20
    assert stream.model.name == "random_update(p=0.5, seed=3, W=5)"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: incremental(-1), "W=-1 is not an int >= 0"),
        (lambda: incremental([([1.0], 0)]), r"as in incremental\(W=1000\)\(source\)"),
        (lambda: sliding_window(0), "W=0 is not a window"),
        (lambda: sliding_window(True), "W=True is not a window"),
        (lambda: sliding_window(2.5), "W=2.5 is not a window"),
        (lambda: sliding_window("0d"), "W='0d' is not a window"),
        (lambda: sliding_window("7"), "W='7' is not a window"),
        (lambda: sliding_window("9" * 30 + "w"), "is not a window"),
        (lambda: sliding_window(timedelta(days=-1)), "is not a window"),
        (lambda: random_update(p=1.5), r"p=1.5 is not in \[0, 1\]"),
        (lambda: random_update(seed=-1), "seed=-1 is not an int >= 0"),
    ],
)
def test_bad_parameters(make, says):
    with pytest.raises(InvalidParameter, match=says):
        make()
