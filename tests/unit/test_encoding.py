"""Rows, labels and ids become what the core takes, exactly, or are refused with place and value."""

import array
import collections
import decimal
import enum
import fractions
import itertools
import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest

from evertree.encoding import WHOLE_LIMIT, Encoder, category_code, show, token
from evertree.errors import DuplicateId, ExampleNotFound, InvalidExample

VALUES = [1.0, 0.0, 3.0]

SAME_ROW = {
    "list": [1.0, 0.0, 3.0],
    "tuple of int": (1, 0, 3),
    "mixed list": [True, 0.0, np.int8(3)],
    "numpy scalars": [np.float32(1), np.bool_(False), np.uint64(3)],
    "deque": collections.deque([1, 0, 3]),
    "UserList": collections.UserList([1.0, 0.0, 3.0]),
    "array.array of double": array.array("d", VALUES),
    "array.array of float": array.array("f", VALUES),
    "array.array of int": array.array("q", [1, 0, 3]),
    "memoryview": memoryview(array.array("d", VALUES)),
    "memoryview of bytes": memoryview(bytes([1, 0, 3])),
    "float16": np.array(VALUES, dtype=np.float16),
    "float32": np.array(VALUES, dtype=np.float32),
    "float64": np.array(VALUES),
    "longdouble": np.array(VALUES, dtype=np.longdouble),
    "int8": np.array(VALUES, dtype=np.int8),
    "int64": np.array(VALUES, dtype=np.int64),
    "uint64": np.array(VALUES, dtype=np.uint64),
    "big-endian float": np.array(VALUES, dtype=">f8"),
    "big-endian int": np.array(VALUES, dtype=">i4"),
    "every second": np.array([1.0, 9.0, 0.0, 9.0, 3.0, 9.0])[::2],
    "backwards": np.array([3.0, 0.0, 1.0])[::-1],
    "a column": np.array([[1.0, 9.0], [0.0, 9.0], [3.0, 9.0]])[:, 0],
    "masked array, nothing masked": np.ma.masked_array(VALUES),
}


@pytest.mark.parametrize("x", SAME_ROW.values(), ids=SAME_ROW.keys())
def test_a_row_of_any_form_becomes_the_same_numbers(x):
    row = Encoder(3, [2]).row(x)
    assert row.tolist() == VALUES
    assert_fit_for_the_core(row)


def assert_fit_for_the_core(values):
    assert type(values) is np.ndarray
    assert values.dtype == np.float64
    assert values.dtype.isnative
    assert values.flags.c_contiguous


def test_read_only_arrays_and_ranges_and_booleans():
    frozen = np.array(VALUES)
    frozen.setflags(write=False)
    assert Encoder(3).row(frozen).tolist() == VALUES
    assert Encoder(3).row(range(3)).tolist() == [0, 1, 2]
    assert Encoder(2).row(np.array([True, False])).tolist() == [1, 0]


def test_missing_values_are_kept_in_both_kinds_of_features():
    row = Encoder(2, [1]).row([math.nan, np.float32("nan")])
    assert np.isnan(row).all()


def test_an_object_with_array_is_asked_once():
    class Table:
        asked = 0

        def __array__(self, dtype=None, copy=None):
            self.asked += 1
            return np.array([[1, 2], [3, 4]])

    table = Table()
    assert Encoder(2).matrix(table).tolist() == [[1, 2], [3, 4]]
    assert table.asked == 1


def test_subclasses_of_numbers_count_by_what_they_hold():
    class Sly(float):
        def __float__(self):
            return math.inf

    class Slyer(int):
        def __index__(self):
            return 2**60

    class Colour(enum.IntEnum):
        RED = 3

    assert Encoder(3).row([Sly(1.0), Slyer(2), Colour.RED]).tolist() == [1, 2, 3]


@pytest.mark.parametrize("limit", [2**53, -(2**53)])
def test_whole_numbers_go_up_to_what_float64_holds(limit):
    beyond = limit + (1 if limit > 0 else -1)
    assert Encoder(1).row([limit]).tolist() == [limit]
    assert Encoder(1).row(np.array([limit])).tolist() == [limit]
    for x in ([beyond], np.array([beyond])):
        with pytest.raises(InvalidExample, match=str(beyond)):
            Encoder(1).row(x)


def test_a_large_unsigned_number_is_not_rounded():
    with pytest.raises(InvalidExample, match=str(2**64 - 1)):
        Encoder(1).row(np.array([2**64 - 1], dtype=np.uint64))


@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="longdouble is float64 here")
def test_a_longdouble_is_not_rounded():
    third = np.longdouble(1) / 3
    for x in (np.array([third]), [third]):
        with pytest.raises(InvalidExample, match="exactly"):
            Encoder(1).row(x)


def test_category_limits():
    encoder = Encoder(1, [0])
    assert encoder.row([2.0**53 - 1]).tolist() == [2.0**53 - 1]
    for bad in (-1, 0.5, 2.0**53, -1e-300, 1e300):
        with pytest.raises(InvalidExample, match="categorical"):
            encoder.row([bad])
    assert encoder.row([-0.0]).tolist() == [0.0]


# --- matrices

SAME_TABLE = {
    "lists": [[1, 2], [3, 4]],
    "tuples": ((1, 2), (3, 4)),
    "arrays in a list": [np.array([1, 2]), array.array("f", [3, 4])],
    "ranges": [range(1, 3), range(3, 5)],
    "int array": np.array([[1, 2], [3, 4]]),
    "fortran order": np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]),
    "big-endian": np.array([[1, 2], [3, 4]], dtype=">f4"),
    "every second row": np.array([[1.0, 2.0], [9.0, 9.0], [3.0, 4.0]])[::2],
    "memoryview": memoryview(np.array([[1.0, 2.0], [3.0, 4.0]])),
}


@pytest.mark.parametrize("X", SAME_TABLE.values(), ids=SAME_TABLE.keys())
def test_a_table_of_any_form_becomes_the_same_numbers(X):
    values = Encoder(2).matrix(X)
    assert values.tolist() == [[1, 2], [3, 4]]
    assert_fit_for_the_core(values)


@pytest.mark.parametrize("X", [[], (), np.empty((0, 2)), np.array([]), np.empty((0, 0))])
def test_an_empty_batch_has_no_rows(X):
    assert Encoder(2).matrix(X).shape == (0, 2)


def test_an_error_in_a_table_names_row_and_column():
    encoder = Encoder(3, [2])
    table = np.zeros((5, 3))
    table[3, 1] = -np.inf
    table[4, 0] = np.inf
    for X in (table, table.tolist(), list(table), table.astype(np.float32)):
        with pytest.raises(InvalidExample, match=r"X\[3\]\[1\] is -inf"):
            encoder.matrix(X)
    table[3:, :] = 0.25
    for X in (table, table.tolist()):
        with pytest.raises(InvalidExample, match=r"X\[3\]\[2\] is 0.25.*categorical"):
            encoder.matrix(X)


# --- labels


class Colour(enum.Enum):
    RED = "red"


GOOD_LABELS = [
    "yes",
    "",
    7,
    -(10**30),
    2.5,
    math.inf,
    True,
    None,
    b"raw",
    (1, ("a", None)),
    frozenset({1, 2}),
    fractions.Fraction(1, 3),
    decimal.Decimal("1.10"),
    1 + 2j,
    Colour.RED,
    int,
    ...,
]


@pytest.mark.parametrize("label", GOOD_LABELS, ids=repr)
def test_any_hashable_is_a_label(label):
    assert Encoder(1).label(label) is label


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.bytes_(b"a"), b"a"),
        (np.complex128(1j), 1j),
    ],
)
def test_numpy_scalars_are_kept_as_plain_values(given, kept):
    label = Encoder(1).label(given)
    assert label == kept
    assert type(label) is type(kept)


def test_a_date_of_numpy_stays_a_date():
    # .item() of nanoseconds is a bare int: the day would be lost.
    day = np.datetime64("2024-02-29", "ns")
    assert Encoder(1).label(day) is day


@pytest.mark.parametrize(
    "y",
    [
        ["a", "b"],
        ("a", "b"),
        np.array(["a", "b"]),
        np.array(["a", "b"], dtype=object),
        collections.deque("ab"),
    ],
)
def test_labels_of_a_batch(y):
    assert Encoder(1).labels(y, 2) == ["a", "b"]
    with pytest.raises(InvalidExample, match="2 labels, X has 3 rows"):
        Encoder(1).labels(y, 3)


def test_labels_of_an_array_are_plain_values():
    labels = Encoder(1).labels(np.array([1, 2]), 2)
    assert [type(label) for label in labels] == [int, int]
    assert Encoder(1).labels(range(2), 2) == [0, 1]
    assert Encoder(1).labels([], 0) == []


# --- the order that breaks ties


def ordered(labels):
    return [labels[i] for i in Encoder(1).order(labels)]


def test_labels_sort_by_type_name_and_then_by_value():
    assert ordered(["b", 2, True, "a", 10, 1.5, b"z"]) == [True, b"z", 1.5, 2, 10, "a", "b"]


class Unordered:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"Unordered({self.name})"


def test_where_values_have_no_order_their_looks_decide():
    a, b, c = map(Unordered, "abc")
    assert ordered([c, a, b]) == [a, b, c]
    assert ordered([2j, 1j]) == [1j, 2j]


@pytest.mark.parametrize("seed", range(20))
def test_the_order_does_not_depend_on_arrival(seed):
    pool = [
        *[frozenset(c) for n in range(4) for c in itertools.combinations("abc", n)],
        *[(1, "a"), ("a", 1), (2, 3), (1, 2), (None,), ((1,), "x"), ()],
        *[1, 2.5, "x", None, True, b"", 1j, *map(Unordered, "dcba")],
    ]
    expected = ordered(pool)
    shuffled = random.Random(seed).sample(pool, len(pool))
    assert list(map(id, ordered(shuffled))) == list(map(id, expected))


def test_a_label_that_can_be_neither_compared_nor_shown_is_still_ordered():
    class Mute:
        def __lt__(self, other):
            raise ZeroDivisionError

        __gt__ = __lt__

        def __repr__(self):
            raise ZeroDivisionError

    assert len(ordered([Mute(), Mute(), 1])) == 3


# --- tokens


@pytest.mark.parametrize(
    "equals",
    [
        (1, 1.0, True, fractions.Fraction(1), decimal.Decimal("1.0"), 1 + 0j, np.longdouble(1)),
        (0.5, fractions.Fraction(1, 2), decimal.Decimal("0.50")),
        (0, 0.0, -0.0, False),
        ((1, 0.0), (True, False)),
        (frozenset({1, 2}), frozenset({2.0, True})),
        (10**400, fractions.Fraction(10**400)),
    ],
)
def test_equal_labels_have_one_token(equals):
    assert len({token(label) for label in equals}) == 1


def test_different_labels_have_different_tokens():
    labels = [*GOOD_LABELS, "1", 1, -1, 1.5, -math.inf, "None", b"yes", ("yes",), 10**5000]
    labels += [decimal.Decimal(10) ** 5000, 2 + 1j, (), ((),), frozenset(), ("a, b",), ("a", "b")]
    tokens = [token(label) for label in labels if label is not True]
    assert len(set(tokens)) == len(tokens)


def test_a_token_is_the_same_in_every_process():
    program = "from evertree.encoding import token; print(token(frozenset('abcdefgh')))"
    tokens = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in "12"
    }
    assert tokens == {f"{token(frozenset('abcdefgh'))}\n".encode()}


# --- ids

SAME_IDS = {
    "list": [5, 0, 2**63 - 1],
    "numpy ints": [np.int8(5), np.uint64(0), np.int64(2**63 - 1)],
    "int64": np.array([5, 0, 2**63 - 1]),
    "uint64": np.array([5, 0, 2**63 - 1], dtype=np.uint64),
    "big-endian": np.array([5, 0, 2**63 - 1], dtype=">i8"),
    "array.array": array.array("q", [5, 0, 2**63 - 1]),
}


@pytest.mark.parametrize("ids", SAME_IDS.values(), ids=SAME_IDS.keys())
def test_ids_of_any_form(ids):
    found = Encoder(1).ids(ids, 3)
    assert found.tolist() == [5, 0, 2**63 - 1]
    assert found.dtype == np.int64
    assert found.dtype.isnative


@pytest.mark.parametrize("ids", [[], (), range(0), np.array([]), np.array([], dtype=int)])
def test_no_ids(ids):
    assert Encoder(1).ids(ids, 0).dtype == np.int64
    assert len(Encoder(1).ids(ids, None)) == 0


def test_ids_of_a_batch_are_different():
    for ids in ([4, 7, 4], np.array([4, 7, 4], dtype=np.uint8)):
        with pytest.raises(DuplicateId, match=r"ids\[2\]=4 was given at position 0"):
            Encoder(1).ids(ids, 3)
        with pytest.raises(ExampleNotFound, match=r"ids\[2\]=4"):
            Encoder(1).ids(ids, None, ExampleNotFound, ExampleNotFound)


# --- in words


def test_show_never_fails_and_stays_short():
    class Rude:
        def __repr__(self):
            raise ZeroDivisionError

    deep = []
    for _ in range(100_000):
        deep = [deep]
    for value in (Rude(), [Rude()], 10**5000, "x" * 10**6, deep, list(range(10**5)), np.ones(9999)):
        text = show(value)
        assert 0 < len(text) < 300
        assert "\n" not in text
    while deep:  # taken apart by hand: some Pythons take it apart by recursion
        deep = deep.pop()


# --- categories


@pytest.mark.parametrize("whole", [0, 7, 7.0, np.int8(7), np.float32(7), True, WHOLE_LIMIT - 1])
def test_a_whole_number_is_its_own_code(whole):
    assert category_code(whole) == whole


@pytest.mark.parametrize(
    "category",
    ["Oslo", "", "7", b"7", -1, 0.5, WHOLE_LIMIT, 10**400, math.inf, None, ("a", 1), "\ud800"],
    ids=repr,
)
def test_any_other_category_has_a_code_of_its_own(category):
    code = category_code(category)
    assert 0 <= code < WHOLE_LIMIT
    assert code == math.floor(code)
    assert category_code(category) == code
    assert len({category_code(other) for other in ("Bergen", 7, -2, 1.5, category)}) == 5


def test_codes_are_the_same_in_every_process_and_version():
    assert category_code("Oslo") == 787437922348171.0
    assert category_code(np.str_("Oslo")) == category_code("Oslo")
    assert category_code(-1) == category_code(-1.0) == category_code(np.int64(-1))


def test_many_categories_have_different_codes():
    assert len({category_code(f"category {i}") for i in range(20_000)}) == 20_000


def test_a_text_is_a_category_where_one_is_expected():
    encoder = Encoder(3, [1])
    oslo = category_code("Oslo")
    assert encoder.row([1, "Oslo", 2.5]).tolist() == [1, oslo, 2.5]
    assert encoder.matrix([[1, "Oslo", 2], (1, 3, 2)]).tolist() == [[1, oslo, 2], [1, 3, 2]]
    with pytest.raises(InvalidExample, match=r"x\[2\] is 'Oslo' \(str\)"):
        encoder.row([1, 1, "Oslo"])
