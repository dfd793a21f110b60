"""Many threads on one tree: no answer is torn, nobody waits for ever, and no update is lost.

Also what happens when a tree is used from inside its own update, and that the collector sees
through it. A deadlock ends the process with every thread's stack instead of hanging.
"""

from __future__ import annotations

import faulthandler
import gc
import random
import subprocess
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
import pytest

from evertree import EverTree
from evertree.errors import EmptyTree, InvalidExample
from streams_for_tests import SEED

DEADLOCK_SECONDS = 300.0


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """A timer in C: a thread that waits while it holds Python's lock stops this test as well."""
    faulthandler.dump_traceback_later(DEADLOCK_SECONDS, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


class Crew:
    """Threads that work until they are done, and readers that go on until all others are."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.over = threading.Event()
        self.workers: list[threading.Thread] = []
        self.readers: list[threading.Thread] = []
        self.reads: Counter = Counter()

    def work(self, task: Callable[[], None]) -> None:
        self.workers.append(threading.Thread(target=self._guarded, args=(task,), daemon=True))

    def read(self, question: Callable[[], None], name: str = "") -> None:
        def again_and_again() -> None:
            while not self.over.is_set():
                question()
                self.reads[name] += 1

        self.readers.append(
            threading.Thread(target=self._guarded, args=(again_and_again,), daemon=True)
        )

    def _guarded(self, task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:  # noqa: BLE001 (whatever it is, the test fails with it)
            self.errors.append(error)
            self.over.set()

    def run(self) -> None:
        for thread in [*self.readers, *self.workers]:
            thread.start()
        for thread in self.workers:
            thread.join(DEADLOCK_SECONDS)
        self.over.set()
        for thread in [*self.workers, *self.readers]:
            thread.join(DEADLOCK_SECONDS)
            assert not thread.is_alive(), "a thread waits for ever"
        if self.errors:
            raise self.errors[0]


# ----------------------------------------------------------------------------------- no torn answer


def test_label_many_answers_from_one_state():
    """Every place has 10 times 'a'; a batch brings 20 times 'b' everywhere, another takes them out:
    at any moment all places have one label."""
    places = np.arange(600.0).reshape(-1, 1)
    tree = EverTree(1)
    tree.insert_many(np.repeat(places, 10, axis=0), ["a"] * 6000)
    questions = np.tile(places, (10, 1))
    seen: Counter = Counter()

    def look() -> None:
        labels = tree.label_many(questions)
        assert (labels == labels[0]).all(), Counter(labels.tolist())
        seen[labels[0]] += 1

    def look_at_counts() -> None:
        counts = tree.label_counts([300.2])
        assert counts in ({"a": 6000}, {"a": 10, "b": 20}), counts

    def change() -> None:
        many, labels = np.repeat(places, 20, axis=0), ["b"] * 12_000
        for turn in range(25):
            ids = tree.insert_many(many, labels)
            if turn % 2:
                tree.delete_many(many, labels)
            else:
                tree.delete_many(ids=ids)

    crew = Crew()
    crew.work(change)
    for _ in range(4):
        crew.read(look)
    crew.read(look_at_counts)
    crew.run()
    assert seen["a"], seen
    assert seen["b"], "the readers never saw the other state: the test has tested nothing"


def test_what_was_put_off_is_built_for_whoever_comes_by():
    """Rows come from one place after the other, so most of each rebuild is put off."""
    rng = np.random.default_rng(SEED)
    n = 2000
    X = rng.normal(size=(n, 3)) + np.arange(n).reshape(-1, 1) // 100
    y = (X[:, 0] + 0.3 * rng.normal(size=n) > X[:, 1]).tolist()
    tree, undisturbed = EverTree(3), EverTree(3)
    tree.insert(X[0], y[0])
    undisturbed.insert(X[0], y[0])

    def learn() -> None:
        for row, label in zip(X[1:], y[1:], strict=True):
            tree.insert(row, label)

    def look_at_all() -> None:
        assert tree.certify().ok

    crew = Crew()
    crew.work(learn)
    for _ in range(3):
        crew.read(lambda: tree.label(X[np.random.default_rng().integers(n)]), "label")
    crew.read(lambda: tree.label_counts(X[0]), "label_counts")
    crew.read(lambda: tree.label_many(X[:50]), "label_many")
    crew.read(tree.stats, "stats")
    crew.read(look_at_all, "certify")
    crew.run()
    for row, label in zip(X[1:], y[1:], strict=True):
        undisturbed.insert(row, label)
    assert tree.digest() == undisturbed.digest(), SEED
    assert all(crew.reads.values()), crew.reads


def test_labels_appear_and_vanish_under_the_readers():
    """A label is only ever seen while it is, or may just have been, in use; nodes() adds up."""
    tree = EverTree(2, categorical=[1])
    tree.insert_many(*scatter(random.Random(SEED), 300, ["first", 1, None]))
    ever: set[Hashable] = {"first", 1, None}
    questions = scatter(random.Random(SEED + 1), 2000, [0])[0]

    def change() -> None:
        rng = random.Random(SEED + 2)
        generations: list[list[int]] = [list(range(300))]
        for turn in range(150):
            names = [("generation", turn), f"name {turn}", turn * 1000]
            ever.update(names)
            X, y = scatter(rng, 60, names)
            generations.append(tree.insert_many(X, y).tolist())
            if len(generations) > 3:
                tree.delete_many(ids=generations.pop(0))

    crew = Crew()
    crew.work(change)
    for name, question in questions_about(tree, questions, ever).items():
        crew.read(question, name)
        crew.read(question, name)
    crew.run()
    assert min(crew.reads.values()) > 0, crew.reads
    assert len(crew.reads) == 6, crew.reads


def scatter(rng: random.Random, n: int, names: list[Hashable]) -> tuple[np.ndarray, list[Hashable]]:
    X = np.array([(rng.random(), float(rng.randrange(5))) for _ in range(n)])
    return X, [names[int(x * 17 + c) % len(names)] for x, c in X]


def questions_about(
    tree: EverTree, X: np.ndarray, ever: set[Hashable]
) -> dict[str, Callable[[], None]]:
    def label() -> None:
        found = tree.label(X[0])
        assert found in ever, found

    def label_many() -> None:
        found = set(tree.label_many(X).tolist())
        assert found <= ever, found - ever

    def label_counts() -> None:
        found = tree.label_counts(X[1])
        assert set(found) <= ever, found
        assert min(found.values()) > 0, found

    def nodes() -> None:
        check_nodes(tree.nodes(), ever)

    def certify() -> None:
        assert tree.certify().ok, tree.certify().breaches[:3]

    def the_rest() -> None:
        stats = tree.stats()
        assert stats["nodes"] == 2 * stats["leaves"] - 1, stats
        assert len(tree.digest()) == len(tree.digest())
        assert len(tree) > 0

    questions = [label, label_many, label_counts, nodes, certify, the_rest]
    return {question.__name__: question for question in questions}


def check_nodes(nodes: list[Any], ever: set[Hashable]) -> None:
    """One state: every node's examples are those of its children."""
    for node in nodes:
        assert set(node["counts"]) <= ever, node
        if node["feature"] is not None:
            left, right = (Counter(nodes[node[side]]["counts"]) for side in ("left", "right"))
            assert left + right == Counter(node["counts"]), node


# ----------------------------------------------------------------------------------- no lost update


@pytest.mark.parametrize("epsilon", [None, 0.001])
def test_many_writers_and_readers(epsilon: float | None):
    """Whatever the threads did at the same time, the rows are those that they put in and left."""
    tree = EverTree(2, categorical=[1], epsilon=epsilon)
    own: list[dict[int, tuple]] = [{} for _ in range(6)]

    def writer(number: int) -> Callable[[], None]:
        rng = random.Random(SEED + number)
        return lambda: write(tree, own[number], rng, number)

    crew = Crew()
    for number in range(6):
        crew.work(writer(number))
    questions = scatter(random.Random(SEED), 500, [0])[0]

    def look() -> None:
        try:
            tree.label_many(questions)
            tree.label(questions[0])
        except EmptyTree:
            pass
        tree.digest()
        assert tree.certify().ok, tree.certify().breaches[:3]

    for _ in range(3):
        crew.read(look)
    crew.run()
    check_rows(tree, own, epsilon)


def write(tree: EverTree, own: dict[int, tuple], rng: random.Random, number: int) -> None:
    names = [f"{number}.{i}" for i in range(3)] + ["shared", number % 2]
    for turn in range(250):
        way = rng.random()
        if way < 0.35 or not own:
            (x,), (y,) = scatter(rng, 1, names)
            own[tree.insert(x.tolist(), y)] = (*x, y)
        elif way < 0.5:
            X, y = scatter(rng, rng.randint(0, 8), names)
            own.update(zip(tree.insert_many(X, y).tolist(), zip(*X.T, y, strict=True), strict=True))
        elif way < 0.7:
            i = rng.choice(list(own))
            del own[i]
            tree.delete(id=i)
        elif way < 0.8:
            gone = rng.sample(list(own), min(len(own), 5))
            tree.delete_many(ids=gone)
            for i in gone:
                del own[i]
        elif way < 0.98:
            i = rng.choice(list(own))
            (x,), (y,) = scatter(rng, 1, names)
            tree.replace(i, x.tolist(), y)
            own[i] = (*x, y)
        elif turn % 3 == 0:
            tree.rebuild()


def check_rows(tree: EverTree, own: list[dict[int, tuple]], epsilon: float | None) -> None:
    rows = {i: row for part in own for i, row in part.items()}
    assert len(rows) == sum(map(len, own)), "one id was given out twice"
    assert len(tree) == len(rows)
    for i, (*x, y) in rows.items():
        found, label = tree.example(i)
        assert (found.tolist(), label) == (x, y), (SEED, i)
    serial = EverTree(2, categorical=[1], epsilon=epsilon)
    for *x, y in rows.values():
        serial.insert(x, y)
    serial.rebuild()
    tree.rebuild()
    assert tree.certify().ok
    assert tree.digest() == serial.digest(), SEED
    assert set(tree.nodes()[0]["counts"]) == {row[-1] for row in rows.values()}


# ------------------------------------------------------------------ used from inside its own update


class Nosy:
    """A label that uses the tree in the middle of the tree's own work."""

    def __init__(self, tree: EverTree, way: str) -> None:
        self.tree, self.way = tree, way

    def use(self, way: str) -> None:
        if self.way == way:
            self.tree.insert([0.5], "from inside")

    def __hash__(self) -> int:
        self.use("hash")
        return 1

    def __eq__(self, other: object) -> bool:
        if self is not other:
            self.use("eq")
        self.use("eq itself")
        return self is other

    def __lt__(self, other: object) -> bool:
        self.use("lt")
        return id(self) < id(other)

    def __repr__(self) -> str:
        self.use("repr")
        return "Nosy"


@pytest.mark.parametrize("way", ["eq", "eq itself", "hash"])
def test_a_label_that_uses_the_tree_is_told_not_to(way: str):
    tree = EverTree(1)
    tree.insert([0.0], 1)  # its hash is 1: it will be compared with the label below
    with pytest.raises((RuntimeError, InvalidExample), match="in the middle of an update"):
        tree.insert([1.0], Nosy(tree, way))
    assert_only_what_came_from_inside(tree, {1: 1})
    assert tree.insert([2.0], "usable") in tree


def assert_only_what_came_from_inside(tree: EverTree, others: dict[object, int]) -> None:
    """What the label's code asks for while the tree is free is done; the refused row is not in."""
    counts = dict(tree.nodes()[0]["counts"])
    counts.pop("from inside", None)
    assert {type(label): n for label, n in counts.items()} == {
        type(label): n for label, n in others.items()
    }
    assert tree.certify().ok


@pytest.mark.parametrize("way", ["lt", "repr"])
def test_a_label_that_uses_the_tree_when_it_is_ordered(way: str):
    tree = EverTree(1)
    tree.insert_many([[0.0]], [Nosy(tree, way)])
    tree.insert([0.0], Nosy(tree, way))
    inside = len(tree) - 2
    try:
        tree.label([0.0])
    except RuntimeError as error:
        assert "in the middle of an update" in str(error)  # noqa: PT017 (an answer is right too)
    assert len(tree) >= 2 + inside
    assert tree.certify().ok


FINALISER = """
import faulthandler, gc
from evertree import EverTree
faulthandler.dump_traceback_later(60, exit=True)

class Owner:
    "Takes its row out of the tree when it dies; in a cycle, so the collector decides when."
    def __init__(self, tree):
        self.me, self.tree, self.row = self, tree, tree.insert([2.0], "owned")
    def __del__(self):
        try:
            self.tree.delete(id=self.row)
        except RuntimeError:
            refused.append(self.row)

refused = []
tree = EverTree(1)
tree.insert_many([[0.0], [1.0]], ["a", "b"])
questions = [tree.stats, tree.digest, tree.nodes, tree.certify, lambda: tree.example(0),
             lambda: tree.label([0.0]), lambda: tree.label_many([[0.0]]),
             lambda: tree.label_counts([0.0]), lambda: len(tree), lambda: 0 in tree]
for question in questions:
    for allocations in range(1, 60):  # the collector starts at each allocation of the question once
        gc.disable()
        gc.collect()
        Owner(tree)
        gc.set_threshold(allocations)
        gc.enable()
        question()
gc.disable()
gc.collect()
assert len(tree) == 2 + len(refused), (len(tree), refused)
assert tree.certify().ok
print("nobody waited for ever")
"""


def test_a_finaliser_that_deletes_a_row():
    """The collector may run such code at any moment, also while this thread reads the tree."""
    done = subprocess.run(
        [sys.executable, "-c", FINALISER], capture_output=True, text=True, check=False
    )
    assert done.stdout == "nobody waited for ever\n", done.stderr


# --------------------------------------------------------------------------------- reference cycles


class Label:
    """A label that may refer to anything."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.refers_to: object = None


def test_a_cycle_through_labels_is_collected():
    tree = EverTree(1)
    labels = [Label("a"), Label("b")]
    tree.insert_many([[0.0], [1.0], [2.0]], [*labels, "plain"])
    tree.label([0.0])
    for label in labels:
        label.refers_to = tree
    gone = [weakref.ref(tree), *map(weakref.ref, labels)]
    del tree, labels, label
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3


def test_a_label_lives_as_long_as_its_examples():
    tree = EverTree(1)
    label = Label("a")
    gone = weakref.ref(label)
    ids = tree.insert_many([[0.0], [1.0]], [label, label])
    tree.insert([0.5], "other")
    del label
    tree.label([0.0])
    tree.delete(id=int(ids[0]))
    gc.collect()
    assert gone() is not None
    tree.delete(id=int(ids[1]))
    tree.label([0.0])
    gc.collect()
    assert gone() is None, gc.get_referrers(gone())


def test_a_refused_batch_keeps_no_label():
    tree = EverTree(1)
    tree.insert([0.0], "a")
    label = Label("b")
    gone = weakref.ref(label)
    with pytest.raises(InvalidExample):
        tree.insert_many([[0.0], [1.0]], [label, []])
    del label
    gc.collect()
    assert gone() is None
    assert len(tree) == 1
