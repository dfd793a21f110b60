"""A request that fails leaves everything as it was: Ctrl-C in a long build, no memory.

Each case runs in a Python of its own (this file, as a program), because it is about signals and
limits of a whole process. What a child finds wrong is an assertion of the child, and its stderr
stands in the message.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evertree import EverTree

SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
SEED = 7
Operation = Callable[[EverTree], Any]


def state(tree: EverTree) -> tuple:
    """All that can be seen of a tree without asking for every example."""
    return tree.digest(), len(tree), tree.stats()


def run_child(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


# ------------------------------------------------------------------------------------------- Ctrl-C


@pytest.mark.parametrize(("into", "n_requests"), [("empty", 1), ("full", 5)])
def test_ctrl_c_during_a_long_build(into: str, n_requests: int):
    said = run_child("interrupt", into)
    assert said.count("KeyboardInterrupt") == 2 * n_requests, said


def test_other_signals_during_a_long_build():
    said = run_child("signals")
    assert said.split() == ["TimeoutError", "RuntimeError", "handled"], said


def noise(n: int, seed: int = SEED) -> tuple[np.ndarray, list[int]]:
    """Rows that take long to build: labels without a reason."""
    rng = np.random.default_rng(seed)
    return rng.random((n, 20)), rng.integers(0, 2, n).tolist()


def child_interrupt(into: str) -> None:
    # A program that was started in the background may have been told to ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    n = 60_000 if SANITIZED else 250_000
    # epsilon = 0: every request, also one of a single row, builds everything anew.
    tree = EverTree(20, epsilon=0.0)
    X, y = noise(n)
    tree.insert_many(X, y)
    duration = quickest_build(tree)
    more_X, more_y = noise(n // 20, seed=SEED + 1)
    requests: list[tuple[Operation, int]] = [  # and by how many rows they change the tree
        (EverTree.rebuild, 0),
        (lambda tree: tree.insert_many(more_X, more_y), len(more_y)),
        (lambda tree: tree.insert(more_X[0], "new label"), 1),
        (lambda tree: tree.delete(id=n // 2), -1),
        (lambda tree: tree.delete_many(ids=np.arange(0, n, 100)), -len(range(0, n, 100))),
    ]
    if into == "empty":
        tree, requests = EverTree(20), [(lambda tree: tree.insert_many(X, y), n)]
    for request, change in requests:
        for share in (0.1, 0.4):
            for attempt in range(8):
                if interrupted(tree, request, change, share * duration / (1 + attempt)):
                    break
                tree = EverTree(20, epsilon=tree.limits.epsilon)  # Ctrl-C was too late: once more
                if into == "full":
                    tree.insert_many(X, y)
    check_usable(tree, X, y)


def quickest_build(tree: EverTree) -> float:
    """Seconds that a build takes at least: other work on the machine only makes it slower."""
    durations = []
    for _ in range(2):
        start = time.perf_counter()
        tree.rebuild()
        durations.append(time.perf_counter() - start)
    return min(durations)


def interrupted(tree: EverTree, request: Operation, change: int, delay: float) -> bool:
    """SIGINT in the middle of the request: nothing has changed. False if it came after the end."""
    before, n_before, sent = state(tree), len(tree), []

    def press() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(delay, press)
    try:
        timer.start()
        request(tree)
        while True:  # too late for the request: Ctrl-C comes here
            time.sleep(0.01)
    except KeyboardInterrupt:
        late = time.perf_counter() - sent[0]
    if state(tree) != before:
        # Python raises what comes during the last moments, or afterwards, when all is done.
        assert len(tree) == n_before + change, (before, state(tree))
        return False
    assert late < 1.0, f"noticed after {late:.3f} s"
    print(f"KeyboardInterrupt noticed after {late * 1000:.0f} ms")  # noqa: T201
    return True


def check_usable(tree: EverTree, X: np.ndarray, y: list[int]) -> None:
    """The tree goes on as if nothing had been: what it holds is what a rebuild makes of it."""
    if len(tree) == 0:
        assert tree.insert([0.0] * 20, 1) == 0, "an interrupted batch has used up ids"
        assert tree.label([0.0] * 20) == 1
        return
    before = tree.digest()
    i = tree.insert([0.5] * 20, "once")
    assert i == len(y), "an interrupted batch has used up ids"
    assert "once" in tree.nodes()[0]["counts"]
    tree.delete(id=i)
    assert set(tree.nodes()[0]["counts"]) == {0, 1}
    assert tree.digest() == before
    assert tree.example(17)[0].tolist() == X[17].tolist()


def child_signals() -> None:
    """A handler may raise what it likes, may look the other way, and may not use the tree."""
    X, y = noise(60_000 if SANITIZED else 250_000)
    tree = EverTree(20)
    tree.insert_many(X, y)
    duration = quickest_build(tree)
    before = state(tree)

    def too_long(*_: object) -> None:
        raise TimeoutError

    def impolite(*_: object) -> None:
        tree.insert([0.0] * 20, 1)

    for handler, expected in ((too_long, TimeoutError), (impolite, RuntimeError)):
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, duration / 4)
        with pytest.raises(expected) as caught:
            tree.rebuild()
        assert state(tree) == before, expected
        print(type(caught.value).__name__)  # noqa: T201
    signal.signal(signal.SIGALRM, lambda *_: print("handled"))  # noqa: T201
    signal.setitimer(signal.ITIMER_REAL, duration / 4)
    tree.rebuild()
    assert tree.stats()["rebuilds"] == before[2]["rebuilds"] + 1


# ------------------------------------------------------------------------------------ out of memory


@pytest.mark.skipif(SANITIZED, reason="sanitizers reserve more addresses than any limit")
@pytest.mark.parametrize("operation", ["first batch", "second batch", "rebuild", "one by one"])
def test_out_of_memory(operation: str):
    said = run_child("memory", operation)
    assert "MemoryError" in said, said


@contextmanager
def memory_limit(megabytes: float) -> Iterator[None]:
    """No more than so much beyond what the process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + int(megabytes * 2**20)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def child_memory(operation: str) -> None:
    rng = np.random.default_rng(SEED)
    X, y = rng.random((40_000, 30)), rng.integers(0, 3, 40_000).tolist()
    tree = EverTree(30)
    if operation == "one by one":
        grow_until_full(tree, rng)
        return
    if operation != "first batch":
        tree.insert_many(X[:1500], y[:1500])
    if operation == "rebuild":
        tree = EverTree(30)
        tree.insert_many(X, y)
    request = EverTree.rebuild if operation == "rebuild" else lambda t: t.insert_many(X, y)
    for megabytes in (0.1, 0.5, 1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 1000):
        before = state(tree)
        try:
            with memory_limit(megabytes):
                request(tree)
        except MemoryError:
            print("MemoryError within", megabytes, "MB")  # noqa: T201
            assert state(tree) == before, megabytes
            assert len(tree) > 2000 or tree.certify().ok, tree.certify().breaches[:3]
        else:
            break
    else:
        pytest.fail("a gigabyte was not enough")
    check_same_as_fresh(tree, 30)


def check_same_as_fresh(tree: EverTree, n_features: int) -> None:
    """A request that failed before does not show in the one that did not."""
    examples = [tree.example(i) for i in range(len(tree))]
    fresh = EverTree(n_features)
    fresh.insert_many(np.array([x for x, _ in examples]), [y for _, y in examples])
    fresh.rebuild()
    tree.rebuild()
    assert tree.digest() == fresh.digest()


def grow_until_full(tree: EverTree, rng: np.random.Generator) -> None:
    """Single rows until no more fits, three times over with a little more memory."""
    rows = rng.random((60_000, 30))
    for _ in range(3):
        n, failure = len(tree), None
        try:
            with memory_limit(4):
                for i in range(n, len(rows)):
                    tree.insert(rows[i], i % 2)
        except MemoryError as error:
            failure = error
        assert failure is not None, "there was room for everything"
        assert tree.stats()["inserts"] == len(tree) > n
        assert all(i in tree for i in range(len(tree)))
        assert len(tree) not in tree
        print("MemoryError at", len(tree), "rows")  # noqa: T201
    check_same_as_fresh(tree, 30)


# -------------------------------------------------------------------- every single allocation fails

FAILING_NEW = r"""
#include <cstdlib>
#include <new>
static long countdown = 0;  // 0: never
static long made = 0;
extern "C" void fail_at(long nth) { countdown = nth; made = 0; }
extern "C" long allocations() { return made; }
static void* take(std::size_t size) {
    ++made;
    return countdown > 0 && --countdown == 0 ? nullptr : std::malloc(size ? size : 1);
}
static void* take_or_throw(std::size_t size) {
    void* const taken = take(size);
    if (taken == nullptr) throw std::bad_alloc();
    return taken;
}
void* operator new(std::size_t size) { return take_or_throw(size); }
void* operator new[](std::size_t size) { return take_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return take(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return take(size); }
void operator delete(void* taken) noexcept { std::free(taken); }
void operator delete[](void* taken) noexcept { std::free(taken); }
void operator delete(void* taken, std::size_t) noexcept { std::free(taken); }
void operator delete[](void* taken, std::size_t) noexcept { std::free(taken); }
"""

CHANGES = {
    "insert": lambda tree: tree.insert([0.1, 0.9, 3.0], "a"),
    "insert a new label": lambda tree: tree.insert([0.1, 0.9, 3.0], ("new", "label")),
    "insert under an id": lambda tree: tree.insert([0.1, 0.9, 3.0], "b", id=10_000),
    "delete by value": lambda tree: tree.delete(*tree.example(5)),
    "delete by id": lambda tree: tree.delete(id=5),
    "delete the last of a label": lambda tree: tree.delete(id=0),
    "replace": lambda tree: tree.replace(5, [0.1, 0.9, 3.0], "new"),
    "insert_many": lambda tree: tree.insert_many(*sample(80, SEED + 1)),
    "insert_many under ids": lambda tree: tree.insert_many(*sample(9, SEED), ids=range(900, 909)),
    "delete_many by value": lambda tree: tree.delete_many(*examples(tree, range(3, 60))),
    "delete_many by id": lambda tree: tree.delete_many(ids=range(3, 60)),
    "rebuild": EverTree.rebuild,
}
QUESTIONS = {
    "label": lambda tree: tree.label([0.1, 0.9, 3.0]),
    "label_many": lambda tree: tree.label_many(sample(30, SEED)[0]).tolist(),
    "label_counts": lambda tree: tree.label_counts([0.1, 0.9, 3.0]),
    "nodes": EverTree.nodes,
    "digest": EverTree.digest,
    "stats": EverTree.stats,
    "certify": EverTree.certify,
    "example": lambda tree: tree.example(5)[1],
}


@pytest.fixture(scope="module")
def failing_new(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library that makes the nth operator new fail."""
    compiler = shutil.which("g++")
    if compiler is None or SANITIZED or sys.platform != "linux":
        pytest.skip("needs g++ and no sanitizer, to put another operator new in front")
    folder = tmp_path_factory.mktemp("failing_new")
    source, library = folder / "failing_new.cpp", folder / "failing_new.so"
    source.write_text(FAILING_NEW, encoding="ascii")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library], check=True)
    return str(library)


@pytest.mark.parametrize("rule", ["certified", "epsilon"])
@pytest.mark.parametrize("change", CHANGES)
def test_every_allocation_of_a_change_fails_once(failing_new: str, change: str, rule: str):
    said = run_child("allocations", failing_new, change, rule, LD_PRELOAD=failing_new)
    assert int(said) > 0, said


def test_every_allocation_of_an_answer_fails_once(failing_new: str):
    said = run_child("answers", failing_new, LD_PRELOAD=failing_new)
    assert int(said) > 20, said


def sample(n: int, seed: int) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random(n), rng.integers(0, 4, n) / 2, rng.integers(0, 6, n)])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, rng.choice(["a", "b", "c"], n).tolist()


def examples(tree: EverTree, ids: range) -> tuple[np.ndarray, list[Any]]:
    found = [tree.example(i) for i in ids]
    return np.array([x for x, _ in found]), [y for _, y in found]


def small_tree(rule: str) -> EverTree:
    """Always the same tree, with memory of its own."""
    tree = EverTree(3, categorical=[2], epsilon=None if rule == "certified" else 0.0)
    tree.insert([0.3, 0.3, 0.0], "the only one")
    tree.insert_many(*sample(100, SEED))
    return tree


def everything(tree: EverTree) -> tuple:
    ids = [*range(200), *range(900, 909), 10_000]
    rows = [(i, tree.example(i)) for i in ids if i in tree]
    assert len(rows) == len(tree)
    return state(tree), [(i, x.tobytes(), y) for i, (x, y) in rows], repr(tree.nodes())


def child_allocations(library: str, name: str, rule: str) -> None:
    """Fail at the first allocation, at the second, ... until the change succeeds."""
    failing = ctypes.CDLL(library)
    before, wanted = everything(small_tree(rule)), small_tree(rule)
    CHANGES[name](wanted)
    nth = n_failed = 0
    while True:
        nth += 1
        tree = small_tree(rule)
        failing.fail_at(nth)
        try:
            CHANGES[name](tree)
        except MemoryError:
            failing.fail_at(0)
            n_failed += 1
        else:
            made = failing.allocations()
            failing.fail_at(0)
            assert made < nth, f"{name}: allocation {nth} failed and nobody noticed"
            break
        certificate = tree.certify()
        assert certificate.ok, (name, nth, certificate.breaches[:3])
        assert everything(tree) == before, f"{name} has changed the tree: allocation {nth} failed"
        CHANGES[name](tree)  # and now it works, as if nothing had been
        assert everything(tree)[1:] == everything(wanted)[1:], (name, nth)
        assert tree.digest() == wanted.digest(), (name, nth)
    print(n_failed)  # noqa: T201


def child_answers(library: str) -> None:
    """An answer that fails is not a wrong one, and the next is right."""
    failing = ctypes.CDLL(library)
    n_failed = 0
    for name, question in QUESTIONS.items():
        wanted = repr(question(small_tree("certified")))
        for nth in range(1, 10_000):
            tree = small_tree("certified")
            failing.fail_at(nth)
            try:
                found = question(tree)
            except MemoryError:
                failing.fail_at(0)
                n_failed += 1
                assert repr(question(tree)) == wanted, (name, nth)
                continue
            made = failing.allocations()
            failing.fail_at(0)
            assert repr(found) == wanted, (name, nth)
            if made < nth:
                break
    print(n_failed)  # noqa: T201


if __name__ == "__main__":
    children = {
        "interrupt": child_interrupt,
        "signals": child_signals,
        "memory": child_memory,
        "allocations": child_allocations,
        "answers": child_answers,
    }
    children[sys.argv[1]](*sys.argv[2:])
