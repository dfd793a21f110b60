"""Sequences made to hurt: the lower bounds of the paper, and every corner that we could think of.

Audited after every request where the tree is small, now and then where it is large.
"""

from __future__ import annotations

import itertools
import math
import random
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from evertree import EverTree
from evertree.errors import EmptyTree, ExampleNotFound
from streams_for_tests import SEED, AuditedTree, Example, X, tree_of

RULES = [
    pytest.param({}, id="certified"),
    pytest.param({"min_impurity": 0.3, "epsilon": 0.01}, id="epsilon"),
]


# --------------------------------------------------------------- Section 4: the space bound (INDEX)


def bits(number: int, width: int) -> list[float]:
    return [float(number >> place & 1) for place in range(width)]


def group(A: np.ndarray, i: int, k: int) -> list[Example]:
    """The 2k examples of group i (from 1): Alice's row i of A, or one of the D groups behind."""
    N, D = A.shape
    code = bits(i, math.ceil(math.log2(N + D) + 1))
    rows = []
    for h in range(1, 2 * k + 1):
        y = int(h > k)
        if i <= N:
            values = [float(a if y else 1 - a) for a in A[i - 1]]
        else:
            values = [float(j != i - N and h % 2 == 0) for j in range(1, D + 1)]
        rows.append((tuple(values + code), y))
    return rows


def ask_bob(A: np.ndarray, kappa: int, ell: int, k: int, seed: int, **options: object) -> int:
    """Alice inserts every group; Bob deletes all but two of them and asks for the label of 1."""
    N, D = A.shape
    groups = {i: group(A, i, k) for i in range(1, N + D + 1)}
    width = len(groups[1][0][0])
    bob = AuditedTree(width, seed=seed, min_samples_split=k + 1, **options)
    bob.insert_many([row for rows in groups.values() for row in rows])
    rest = [row for i in groups if i not in {kappa, N + ell} for row in groups[i]]
    random.Random(seed).shuffle(rest)
    for row in rest:
        bob.delete(*row)
    assert len(bob) == 4 * k, bob.where()
    root = bob.tree.nodes()[0]
    assert root["feature"] == ell - 1, (bob.where(), kappa, ell, root)
    return bob.tree.label((1.0,) * width)


INDEX = [
    # N, D, k, h, kinds and limits; beta < 1/24, k even
    (6, 5, 2, None, {"max_gap": 0.04}),
    (5, 6, 2, 1, {"max_gap": 0.041, "min_impurity": 0.4}),
    (4, 7, 4, None, {"max_gap": 0.02, "min_impurity": 0.0}),
    (7, 3, 6, 2, {"max_gap": 0.04, "min_impurity": 0.5}),
    (5, 5, 2, None, {"max_gap": 0.04, "min_impurity": 0.5, "epsilon": 0.019}),
]


@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.parametrize("case", range(len(INDEX)))
def test_bob_knows_every_bit_of_alice(case: int, categorical: bool):
    N, D, k, h, limits = INDEX[case]
    seed = SEED + case
    A = np.random.default_rng(seed).integers(0, 2, (N, D))
    width = len(group(A, 1, k)[0][0])
    options = {"max_depth": h, "categorical": range(width) if categorical else (), **limits}
    assert EverTree(1, **limits, min_samples_split=k + 1).certified
    for kappa, ell in itertools.product(range(1, N + 1), range(1, D + 1)):
        answer = ask_bob(A, kappa, ell, k, seed, **options)
        assert answer == A[kappa - 1, ell - 1], (seed, case, kappa, ell, A.tolist())


@pytest.mark.parametrize("filled", [0, 1])
def test_bob_knows_every_bit_of_a_constant_matrix(filled: int):
    A = np.full((3, 3), filled)
    for kappa, ell in itertools.product((1, 2, 3), repeat=2):
        assert ask_bob(A, kappa, ell, 2, SEED, max_gap=0.04) == filled, (SEED, kappa, ell)


# ------------------------------------------------------------------------ Section 4: the time bound


@pytest.mark.parametrize("limits", [{}, {"max_gap": 0.49, "min_impurity": 0.49, "max_depth": 1}])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_alternating_sequences_of_the_time_bound(k: int, limits: dict):
    """M^(j) in, questions, M^(j) out, for every j again and again: only x_j decides each time."""
    seed, d = SEED + k, 8
    rng = random.Random(seed)
    subject = AuditedTree(d, seed=seed, min_samples_split=k + 1, **limits)
    for j in [*range(d), *rng.sample(range(d), d)]:
        zeros = (0.0,) * d
        one = tuple(float(i == j) for i in range(d))
        rows = [(zeros, 0)] * k + [(one, 1)] * k
        rng.shuffle(rows)
        ids = [subject.insert(*row) for row in rows]
        assert subject.tree.nodes()[0]["feature"] == j, (subject.where(), j)
        for _ in range(10):
            ones = set(rng.sample(range(d), math.ceil(d / 2)))
            x = tuple(float(i in ones) for i in range(d))
            assert subject.tree.label(x) == int(j in ones), (subject.where(), j, x)
        for i in rng.sample(ids, len(ids)):
            subject.delete_id(i)
    with pytest.raises(EmptyTree):
        subject.tree.label(zeros)


# ----------------------------------------------------------------------------- XOR, gain 0 at first


@pytest.mark.parametrize("options", RULES)
@pytest.mark.parametrize("d", [2, 3, 4])
def test_parity_is_learned_and_followed(d: int, options: dict):
    """No first split gains anything; a split that separates is preferred to none."""
    seed = SEED + d
    rng = random.Random(seed)
    subject = AuditedTree(d, seed=seed, **options)
    corners = list(itertools.product((0.0, 1.0), repeat=d))
    for flipped in (0, 1):
        for x in rng.sample(corners * 3, 3 * len(corners)):
            subject.insert(x, (int(sum(x)) + flipped) % 2)
        if "epsilon" not in options:  # pure leaves: fewer than 1/alpha rows, so no other will do
            for x in corners:
                assert subject.tree.label(x) == (int(sum(x)) + flipped) % 2, (subject.where(), x)
        for i in rng.sample(list(subject.active), len(subject)):
            subject.delete_id(i)


def test_gain_zero_at_the_root_is_split():
    rows = [((a, b), int(a != b)) for a in (0.0, 1.0) for b in (0.0, 1.0)]
    tree = tree_of(rows, 2)
    assert [node["feature"] for node in tree.nodes()] == [0, 1, None, None, 1, None, None]
    assert [tree.label(x) for x, _ in rows] == [y for _, y in rows]


# --------------------------------------------------------------------- identical rows, mixed labels


@pytest.mark.parametrize("options", RULES)
def test_piles_of_identical_rows(options: dict):
    seed = SEED + 1
    rng = random.Random(seed)
    places: list[X] = [(0.0, 1.0), (0.0, 2.0), (math.nan, 2.0)]
    for n_piles in (1, 2, 3):
        subject = AuditedTree(2, seed=seed, categorical=[1], **options)
        for _ in range(150):
            subject.insert(rng.choice(places[:n_piles]), rng.choice("abc"))
        check_piles(subject, places[:n_piles])
        while len(subject):
            subject.delete(*rng.choice(list(subject.active.values())))


def check_piles(subject: AuditedTree, places: list[X]) -> None:
    """What cannot be separated is a leaf, with the majority of its pile."""
    subject.tree.rebuild()
    leaves = [node for node in subject.tree.nodes() if node["feature"] is None]
    assert len(leaves) == len(places), subject.where()
    for place in places:
        counts = Counter(y for x, y in subject.active.values() if x == place)
        assert subject.tree.label_counts(place) == counts, (subject.where(), place)
        first = min(y for y in counts if counts[y] == max(counts.values()))
        assert subject.tree.label(place) == first, (subject.where(), place)


@pytest.mark.parametrize("options", RULES)
def test_an_odd_row_in_and_out_of_a_pile(options: dict):
    """Definition 3.1 wants a split as soon as one row differs, on whichever side it comes in."""
    subject = AuditedTree(1, seed=SEED, **options)
    subject.insert_many([((0.0,), y) for y in "ab" * 40])
    for turn in range(60):
        odd = ((1.0,), (-1.0,), (math.nan,), (5e-324,))[turn % 4]
        i = subject.insert(odd, "ab"[turn % 2])
        assert subject.tree.label_counts(odd) == {"ab"[turn % 2]: 1}, (subject.where(), odd)
        assert subject.tree.label_counts((0.0,)) == {"a": 40, "b": 40}, (subject.where(), odd)
        subject.delete_id(i)
    subject.check_rebuilt()


# ------------------------------------------------------------------------- one peeled row per level


def alternating(n: int) -> list[Example]:
    """Labels in turns along one feature: the best split takes off a single row, at every level."""
    return [((float(i),), i % 2) for i in range(n)]


@pytest.mark.parametrize("order", ["up", "down", "shuffled"])
def test_a_chain_grows_and_shrinks(order: str):
    rows = alternating(70)
    rng = random.Random(SEED)
    subject = AuditedTree(1, seed=SEED)
    if order == "shuffled":
        rng.shuffle(rows)
    for row in rows if order != "down" else reversed(rows):
        subject.insert(*row)
    subject.tree.rebuild()
    assert subject.tree.stats()["depth"] == 69, subject.where()
    for row in rows:
        assert subject.tree.label(row[0]) == row[1], subject.where()
    for i in rng.sample(list(subject.active), 60):
        subject.delete_id(i)
    subject.check_rebuilt()


DEEP_CHAIN = """
import threading
import numpy as np
from evertree import EverTree

LEVELS = 20_000
X, y = np.arange(LEVELS + 1.0).reshape(-1, 1), [i % 2 for i in range(LEVELS + 1)]


def fresh(rows):
    tree = EverTree(1)
    tree.insert_many(X[rows], [y[i] for i in rows])
    return tree


def chain():
    tree = fresh(np.arange(LEVELS + 1))
    assert tree.stats()["depth"] == LEVELS, tree.stats()
    nodes = tree.nodes()
    assert len(nodes) == tree.stats()["nodes"] == 2 * LEVELS + 1
    assert max(node["depth"] for node in nodes) == LEVELS
    assert all(node["left"] == node["id"] + 1 for node in nodes if node["left"] is not None)
    assert tree.digest() == fresh(np.arange(LEVELS, -1, -1)).digest()
    for i in (0, 1, 2, LEVELS // 2, LEVELS - 1, LEVELS):
        assert tree.label([float(i)]) == i % 2
    assert tree.label_many(X[::40]).tolist() == y[::40]
    gone = {0, 1, 7, LEVELS // 3, LEVELS - 2, LEVELS}
    for i in gone:
        tree.delete(X[i], y[i])
    tree.replace(5000, [5000.25], y[5000])
    tree.replace(5000, [5000.0], y[5000])
    tree.insert([0.5], 1)
    tree.delete([0.5], 1)
    tree.rebuild()
    left = np.array([i for i in range(LEVELS + 1) if i not in gone])
    again = fresh(left)
    assert tree.digest() == again.digest()
    tree.delete_many(ids=left)
    assert len(tree) == 0 and tree.digest() == EverTree(1).digest()
    del tree, again
    print("no stack was needed")


# A stack of 256 kB: twenty thousand frames of any function would not fit.
threading.stack_size(256 * 1024)
thread = threading.Thread(target=chain)
thread.start()
thread.join()
"""


def test_a_chain_of_twenty_thousand_levels_needs_no_stack():
    done = subprocess.run(
        [sys.executable, "-c", DEEP_CHAIN], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "no stack was needed\n", done.stderr


# ----------------------------------------------------------------------------------- thrashing at k


@pytest.mark.parametrize("same_row", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 16, 50])
def test_thrashing_at_k(k: int, same_row: bool):
    """k rows are a leaf, k + 1 must be split; back and forth over that border."""
    seed = SEED + k
    rng = random.Random(seed)
    subject = AuditedTree(2, seed=seed, min_samples_split=k + 1)
    example = lambda n: ((rng.random(), float(n % 3)), n % 2)  # noqa: E731
    for n in range(k):
        subject.insert(*example(n))
    for turn in range(100):
        assert len(subject.tree.nodes()) == 1, subject.where()
        i = subject.insert(*(((0.5, 1.0), 1 - k % 2) if same_row else example(turn + k)))
        labels = {y for _, y in subject.active.values()}
        assert (len(subject.tree.nodes()) > 1) == (len(labels) > 1), subject.where()
        subject.delete_id(i if same_row else rng.choice(list(subject.active)))
    subject.check_rebuilt()


def test_thrashing_at_k_inside_a_large_tree():
    seed, k = SEED, 10
    rng = random.Random(seed)
    subject = AuditedTree(1, seed=seed, min_samples_split=k + 1, audit_every=10)
    subject.insert_many([((float(i),), i // 10 % 2) for i in range(1000)])
    # The leaf of 500 to 509 holds k rows of one label; one more, of another label, is one too many.
    for turn in range(300):
        i = subject.insert((500.5 + turn % 9,), 1 - 500 // 10 % 2)
        counts = subject.tree.label_counts((505.0,))
        assert len(counts) == 1 or sum(counts.values()) <= k, (subject.where(), counts)
        near = [j for j, (x, _) in subject.active.items() if 500 <= x[0] < 510]
        subject.delete_id(i if rng.random() < 0.9 else rng.choice(near))
    subject.check_rebuilt()


# ------------------------------------------------------------------- delete everything, start again


@pytest.mark.parametrize("options", [*RULES, pytest.param({"max_depth": 0}, id="h=0")])
def test_delete_everything_and_start_again(options: dict):
    seed = SEED + 3
    rng = random.Random(seed)
    subject = AuditedTree(2, seed=seed, categorical=[1], **options)
    nothing = EverTree(2, categorical=[1], **options).digest()
    for turn in range(12):
        n = (1, 2, 40)[turn % 3]
        rows = [((rng.random(), float(rng.randrange(3))), rng.choice("ab")) for _ in range(n)]
        for row in rows:
            subject.insert(*row)
        empty(subject, rng, turn)
        assert subject.tree.digest() == nothing, subject.where()
        assert subject.tree.stats()["nodes"] == 1, subject.where()
        for ask in (subject.tree.label, subject.tree.label_counts):
            with pytest.raises(EmptyTree):
                ask((0.5, 1.0))
        with pytest.raises(ExampleNotFound):
            subject.tree.delete(*rows[0])


def empty(subject: AuditedTree, rng: random.Random, turn: int) -> None:
    """One by one in three orders, by value, or all at once."""
    ids = list(subject.active)
    if turn % 5 == 0:
        subject.delete_many(ids)
    elif turn % 5 == 1:
        subject.delete_many_values(list(subject.active.values()))
    else:
        rng.shuffle(ids)
        for i in sorted(ids, reverse=turn % 2 == 0) if turn % 5 < 4 else ids:
            if turn % 2:
                subject.delete_id(i)
            else:
                subject.delete(*subject.active[i])


# ------------------------------------------------------------------------------------ insert sorted


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("block", [1, 7, 100])
def test_insert_sorted(block: int, descending: bool):
    """Rows in the order of their value, labels in blocks; then out again in the same order."""
    subject = AuditedTree(2, seed=SEED)
    numbers = list(range(240))
    for i in reversed(numbers) if descending else numbers:
        subject.insert((float(i), float(-i)), i // block % 2)
    for i in list(subject.active):
        subject.delete_id(i)
    subject.check_rebuilt()


@pytest.mark.parametrize("descending", [False, True])
def test_insert_sorted_a_lot(descending: bool):
    subject = AuditedTree(2, seed=SEED, audit_every=4_000)
    numbers = list(range(20_000))
    for i in reversed(numbers) if descending else numbers:
        subject.insert((float(i), float(i % 5)), i // 300 % 3)
    subject.audit()
    for i in numbers[:10_000]:
        subject.delete_id(i)
    subject.check_rebuilt()


# ------------------------------------------------------- deletions that take all that they may take


@pytest.mark.parametrize(
    ("going", "beside_them", "is_rebuilt"), [(175, 131, False), (180, 134, True)]
)
def test_a_split_that_loses_all_that_it_may(going: int, beside_them: int, is_rebuilt: bool):
    """Feature 0 separates what will go, with as many of the other label as Fact 3 knows possible.

    At first it leaves just more than feature 1, which is the split. At the last deletion the floor
    is what feature 0 leaves: had it been any higher, the gap would be beyond the limit.
    """
    set_apart, to_the_left, size = {0: going, 1: beside_them}, {0: 312, 1: 192}, {0: 600, 1: 400}
    rows = []
    for y, n in size.items():
        for i in range(n):  # those set apart are spread over both sides of feature 1
            is_set_apart = i * set_apart[y] // n != (i + 1) * set_apart[y] // n
            rows.append(((float(is_set_apart), float(i < to_the_left[y])), y))
    subject = AuditedTree(2, seed=SEED, max_depth=1)
    subject.insert_many(rows)
    assert subject.tree.nodes()[0]["feature"] == 1
    for x, y in rows:
        if x[0] == 1 and y == 0:
            subject.delete(x, y)  # and audits
    assert (subject.tree.nodes()[0]["feature"] == 0) == is_rebuilt
    if not is_rebuilt:
        assert 0.099 < subject.tree.certify().worst_gap <= 0.1


# -------------------------------------------------------------------- a hundred thousand equal rows


def test_a_hundred_thousand_duplicates():
    n, row = 100_000, [1.5, -0.0, math.nan]
    labels = ["a", "b", "a", "c"] * (n // 4)
    tree = EverTree(3, categorical=[1])
    for y in labels[: n // 2]:
        tree.insert(row, y)
    ids = tree.insert_many(np.full((n // 2, 3), row), labels[n // 2 :])
    assert ids.tolist() == list(range(n // 2, n))
    assert tree.label_counts([1.5, 0, math.nan]) == {"a": n // 2, "b": n // 4, "c": n // 4}
    assert tree.label(row) == "a"
    assert tree.stats()["nodes"] == 1
    check_duplicates_go(tree, row, n)


def check_duplicates_go(tree: EverTree, row: list[float], n: int) -> None:
    """By value the last inserted goes; by id any; in the middle a row that differs."""
    for last in range(n - 4, n - 4 - 4 * 3_000, -4):
        tree.delete(row, "a")
        assert last + 2 not in tree, last
        assert last in tree, last
        tree.delete(row, "a")
        tree.delete(id=last + 1)
        tree.delete(id=last + 3)
    left = n - 12_000
    assert tree.label_counts(row) == {"a": left // 2, "b": left // 4, "c": left // 4}
    odd = tree.insert([1.5, 0, 7.0], "b")
    assert tree.label([1.5, 0, 7.0]) == "b"
    assert tree.certify().ok
    tree.delete(id=odd)
    tree.delete_many(ids=[i for i in range(left) if i % 4 != 3])
    assert tree.label(row) == "c"
    assert tree.certify().ok
    tree.delete_many(np.full((left // 4, 3), row), ["c"] * (left // 4))
    assert len(tree) == 0


# ----------------------------------------------------------------------- a feature that is constant


@pytest.mark.parametrize("value", [0.0, 1e308, math.nan])
def test_a_constant_feature_is_never_split(value: float):
    seed = SEED + 4
    rng = random.Random(seed)
    subject = AuditedTree(3, seed=seed, categorical=[2] if value == 0.0 else ())
    for _ in range(300):
        if rng.random() < 0.3 and len(subject):
            subject.delete_id(rng.choice(list(subject.active)))
        else:
            x = rng.randrange(6)
            subject.insert((value, float(x), value), int(x > 2) ^ int(rng.random() < 0.2))
        used = {node["feature"] for node in subject.tree.nodes()}
        assert used <= {None, 1}, (subject.where(), used)
    subject.check_rebuilt()
