"""Nothing bad comes in: every bad value, at every door, gets an error in words and changes nothing.

Each case is a value that is wrong in one way, and what the message has to say about it: the value
or its place, and the way out. Cases are made anew for each door, because some of them are used up
by being looked at.
"""

import array
import collections
import datetime as dt
import decimal
import fractions
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from evertree import (
    DuplicateId,
    EverTree,
    EvertreeError,
    ExampleNotFound,
    InvalidExample,
    InvalidParameter,
)

INF, NAN = math.inf, math.nan
GOOD = [0.5, -1.0, 3]


class Case(NamedTuple):
    name: str
    make: Callable[[], Any]
    says: tuple[str, ...]  # {x} stands for the place of the row, {id} for that of the id


def table(*cases):
    return [
        Case(name, value if callable(value) else (lambda value=value: value), says)
        for name, value, *says in cases
    ]


def names(cases):
    return [case.name for case in cases]


@pytest.fixture
def tree():
    tree = EverTree(n_features=3, categorical=[2])
    X = [[0.5, -1.0, 3], [1.5, NAN, 3], [2.5, 4.0, 0], [0.5, -1.0, NAN], [2.5, 4.0, 0]]
    tree.insert_many(X, ["yes", "no", "yes", "no", 7], ids=[0, 1, 2, 30, 31])
    return tree


def state(tree):
    examples = [(i, tree.example(i)) for i in range(50) if i in tree]
    return (
        tree.digest(),
        len(tree),
        tree.stats(),
        [(i, str(row.tolist()), label) for i, (row, label) in examples],
    )


def refuses(tree, error, built_in, says, call):
    """Check that `call` raises, says what it must, and leaves everything as it was."""
    before = state(tree)
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, built_in)
    assert isinstance(caught.value, EvertreeError)
    message = str(caught.value)
    for part in says:
        assert part in message, message
    assert len(message) < 700
    assert "\n" not in message
    assert state(tree) == before
    assert tree.label(GOOD) == "yes"


# --- objects that misbehave when they are looked at


class LengthRaises:
    def __len__(self):
        raise ZeroDivisionError("length")

    def __getitem__(self, j):
        return 1.0


class LengthIs:
    """Says one length, and has another number of members."""

    def __init__(self, says, has, member=1.0):
        self.says, self.has, self.member = says, has, member

    def __len__(self):
        return self.says

    def __getitem__(self, j):
        if j >= self.has:
            raise IndexError
        return self.member


class MemberRaises:
    def __init__(self, says=3):
        self.says = says

    def __len__(self):
        return self.says

    def __getitem__(self, j):
        raise ZeroDivisionError("member")


class IterRaises(MemberRaises):
    def __iter__(self):
        raise ZeroDivisionError("iter")


class Endless(MemberRaises):
    def __iter__(self):
        return itertools.repeat(1.0)


class Shrinks(collections.UserList):
    def __iter__(self):
        while self.data:
            yield self.data.pop()


class ArrayRaises:
    def __array__(self, dtype=None, copy=None):
        raise ZeroDivisionError("array")


class ArrayIs:
    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        return self.value


class FloatRaises:
    def __float__(self):
        raise ZeroDivisionError("float")


class FloatIs:
    """Looks like a number to float(), and is none."""

    def __init__(self, value):
        self.value = value

    def __float__(self):
        return self.value

    def __repr__(self):
        return f"FloatIs({self.value})"


class IndexRaises:
    def __index__(self):
        raise ZeroDivisionError("index")


class ReprRaises:
    def __repr__(self):
        raise ZeroDivisionError("repr")


class Inf(float):
    pass


class Text(str):
    __slots__ = ()


def deep():
    nested: list[Any] = [1.0, 2.0, 3.0]
    for _ in range(500):
        nested = [nested, 2.0, 3.0]
    return nested


def released():
    view = memoryview(array.array("d", [1, 2, 3]))
    view.release()
    return view


def masked(position):
    mask = [j == position for j in range(3)]
    return np.ma.masked_array([1.0, 2.0, 3.0], mask=mask)


STRUCTURED = np.zeros(3, dtype=[("a", float)])
LONG_THIRD = np.longdouble(1) / 3
LONGDOUBLE_IS_LONGER = np.finfo(np.longdouble).nmant > 52
WAY_OUT = "give a list, a tuple or a numpy array"
NUMBER = "a feature is a finite number, or nan where it is missing"

ROWS = table(
    # the wrong number of values
    ("too short", [1.0, 2.0], "{x} has 2 values", "n_features=3", "nan where one is missing"),
    ("too long", [1.0] * 4, "{x} has 4 values", "n_features=3"),
    ("empty list", [], "{x} has 0 values", "n_features=3"),
    ("empty tuple", (), "{x} has 0 values"),
    ("empty array", np.array([]), "{x} has 0 values"),
    ("short array", np.ones(2), "{x} has 2 values", "[1., 1.]"),
    ("long float32 array", np.ones(5, dtype=np.float32), "{x} has 5 values"),
    ("short array.array", array.array("d", [1.0]), "{x} has 1 values"),
    ("short memoryview", memoryview(b"ab"), "{x} has 2 values"),
    ("long range", range(10**9), "{x} has 1000000000 values", "range("),
    ("a million values", lambda: [1.0] * 10**6, "{x} has 1000000 values"),
    # not a sequence of values
    ("None", None, "{x} is None", WAY_OUT),
    ("a number", 5, "{x} is 5", WAY_OUT),
    ("a float", 2.5, "{x} is 2.5", WAY_OUT),
    ("a bool", True, "{x} is True", WAY_OUT),
    ("nan itself", NAN, "{x} is nan", WAY_OUT),
    ("text", "abc", "{x} is 'abc'", WAY_OUT),
    ("text of a kind", Text("abc"), "abc", WAY_OUT),
    ("bytes", b"abc", "{x} is b'abc'", WAY_OUT),
    ("bytearray", bytearray(b"abc"), "bytearray", WAY_OUT),
    ("set", {1.0, 2.0, 3.0}, "set", "no positions", WAY_OUT),
    ("frozenset", frozenset({1.0, 2.0, 3.0}), "frozenset", "no positions", WAY_OUT),
    ("dict", {0: 1.0, 1: 2.0, 2: 3.0}, "dict", "no positions", WAY_OUT),
    ("dict values", {0: 1.0}.values, "dict_values", WAY_OUT),
    ("generator", lambda: (v for v in (1.0, 2.0, 3.0)), "generator", WAY_OUT),
    ("map", lambda: map(float, (1, 2, 3)), "map", WAY_OUT),
    ("a type", lambda: list, "<class 'list'>", WAY_OUT),
    ("a function", lambda: deep, "function", WAY_OUT),
    ("ellipsis", lambda: ..., "Ellipsis", WAY_OUT),
    ("numpy scalar", np.float64(1.0), "{x}", "shape ()", "1-dimensional"),
    # arrays of the wrong shape
    ("0-d array", np.array(1.0), "{x} has shape ()", "1-dimensional", "*_many"),
    ("one row of a table", np.ones((1, 3)), "{x} has shape (1, 3)", "*_many"),
    ("a column", np.ones((3, 1)), "{x} has shape (3, 1)", "*_many"),
    ("3-d array", np.ones((3, 3, 3)), "{x} has shape (3, 3, 3)", "*_many"),
    ("2-d memoryview", memoryview(np.ones((3, 3))), "{x} has shape (3, 3)", "*_many"),
    # values that are no numbers
    ("text inside", [1.0, "abc", 3], "{x}[1] is 'abc' (str)", NUMBER),
    ("numeric text inside", [1.0, "2.5", 3], "{x}[1] is '2.5'", "float or an int first"),
    ("bytes inside", [1.0, b"2", 3], "{x}[1] is b'2'", NUMBER),
    ("None inside", (1.0, None, 3), "{x}[1] is None", "float('nan') for missing"),
    ("complex inside", [1.0, 2j, 3], "{x}[1] is 2j (complex)", NUMBER),
    ("list inside", [1.0, [2.0], 3], "{x}[1] is [2.0] (list)", NUMBER),
    ("array inside", [1.0, np.array([2.0]), 3], "{x}[1] is array([2.])", NUMBER),
    ("0-d array inside", [1.0, np.array(2.0), 3], "{x}[1] is array(2.)", NUMBER),
    ("Fraction inside", [1.0, fractions.Fraction(1, 3), 3], "{x}[1] is Fraction(1, 3)", NUMBER),
    ("Decimal inside", [1.0, decimal.Decimal("0.1"), 3], "{x}[1] is Decimal('0.1')", NUMBER),
    ("date inside", [1.0, dt.date(2024, 2, 29), 3], "{x}[1] is datetime.date", NUMBER),
    ("datetime64 inside", [1.0, np.datetime64("2024-02-29"), 3], "{x}[1]", "2024-02-29", NUMBER),
    ("complex64 inside", [1.0, np.complex64(1), 3], "{x}[1]", "complex64", NUMBER),
    ("np.str_ inside", [1.0, np.str_("2"), 3], "{x}[1]", "'2'", NUMBER),
    ("masked constant inside", [1.0, np.ma.masked, 3], "{x}[1]", "masked", NUMBER),
    ("object inside", lambda: [1.0, object(), 3], "{x}[1]", "(object)", NUMBER),
    ("a type inside", [1.0, float, 3], "{x}[1] is <class 'float'>", NUMBER),
    ("nested deeply", deep, "{x}[0]", "(list)", NUMBER),
    ("huge int inside", [1.0, 10**5000, 3], "{x}[1]", "2**53", "round it yourself"),
    ("2**53 + 1", [1.0, 2**53 + 1, 3], "{x}[1] is 9007199254740993", "round it yourself"),
    ("-2**53 - 1", [1.0, -(2**53) - 1, 3], "{x}[1] is -9007199254740993", "2**53"),
    # values that are infinite
    ("inf", [1.0, INF, 3], "{x}[1] is inf", NUMBER, "replace infinities"),
    ("-inf in a tuple", (-INF, 2.0, 3), "{x}[0] is -inf", NUMBER),
    ("inf of a subclass", [1.0, Inf(INF), 3], "{x}[1] is inf", NUMBER),
    ("inf among ints", [1, 2, INF], "{x}[2] is inf", NUMBER),
    ("inf in an array", np.array([1.0, INF, 3.0]), "{x}[1] is inf", NUMBER),
    ("inf in float32", np.array([1.0, -INF, 3.0], dtype=np.float32), "{x}[1] is -inf", NUMBER),
    ("inf in float16", np.array([INF, 0, 3.0], dtype=np.float16), "{x}[0] is inf", NUMBER),
    ("inf in big-endian", np.array([1.0, INF, 3.0], dtype=">f8"), "{x}[1] is inf", NUMBER),
    ("inf in array.array", array.array("d", [1.0, INF, 3]), "{x}[1] is inf", NUMBER),
    ("inf in every second", np.array([1.0, 0, INF, 0, 3.0])[::2], "{x}[1] is inf", NUMBER),
    # arrays of the wrong type
    ("object array", np.array([1.0, "a", None], dtype=object), "objects", "dtype=object", "astype"),
    ("floats as objects", np.array([1.0, 2.0, 3.0], dtype=object), "objects", "astype(float)"),
    ("complex array", np.array([1, 2j, 3]), "complex numbers", "dtype=complex128", "astype"),
    ("date array", np.array(["2024-02-29"] * 3, dtype="M8[D]"), "dates", "dtype=datetime64[D]"),
    ("duration array", np.array([1, 2, 3], dtype="m8[s]"), "durations", "timedelta64[s]"),
    ("text array", np.array(["1", "2", "3"]), "text", "dtype=<U1", "astype(float)"),
    ("bytes array", np.array([b"1", b"2", b"3"]), "bytes", "dtype=|S1", "astype(float)"),
    ("structured array", STRUCTURED, "structured array", "give an array of numbers"),
    ("int64 array", np.array([1, 2**53 + 1, 3]), "{x}[1]", "9007199254740993", "round it"),
    ("negative int64 array", np.array([-(2**63), 2, 3]), "{x}[0]", "-9223372036854775808"),
    ("uint64 array", np.array([1, 2**64 - 1, 3], dtype="u8"), "{x}[1]", "18446744073709551615"),
    ("masked array", lambda: masked(1), "{x}[1] is masked", "filled"),
    ("masked category", lambda: masked(2), "{x}[2] is masked", "filled"),
    ("released memoryview", released, "{x}", "released", WAY_OUT),
    # no categories
    ("negative category", [1.0, 2.0, -1], "{x}[2] is -1.0", "feature 2 is categorical"),
    ("fractional category", [1.0, 2.0, 0.5], "{x}[2] is 0.5", "number the categories"),
    ("category of 2**53", [1.0, 2.0, 2**53], "{x}[2] is 9007199254740992.0", "2**53 - 1"),
    ("huge category", np.array([1.0, 2.0, 1e300]), "{x}[2] is 1e+300", "categorical"),
    ("negative int category", np.array([1, 2, -7]), "{x}[2] is -7.0", "categorical"),
    ("tiny category", (1.0, 2.0, 5e-324), "{x}[2] is 5e-324", "categorical"),
    ("infinite category", [1.0, 2.0, INF], "{x}[2] is inf", NUMBER),
    # objects that misbehave
    ("length raises", LengthRaises, "{x}", "ZeroDivisionError: length", WAY_OUT),
    ("length is negative", lambda: LengthIs(-3, 3), "{x}", "ValueError", WAY_OUT),
    ("length is no int", lambda: LengthIs("three", 3), "{x}", "TypeError", WAY_OUT),
    ("length is enormous", lambda: LengthIs(2**62, 3), f"{{x}} has {2**62} values", "n_features=3"),
    ("says 3, has 2", lambda: LengthIs(3, 2), "{x}", "has not the 3 members", WAY_OUT),
    ("says 3, has 4", lambda: LengthIs(3, 4), "{x}", "has not the 3 members", WAY_OUT),
    ("endless", Endless, "{x}", "has not the 3 members", WAY_OUT),
    ("shrinks", lambda: Shrinks([1.0, 2.0]), "{x}", "2 values", "n_features=3"),
    ("member raises", MemberRaises, "{x}", "ZeroDivisionError: member", WAY_OUT),
    ("iter raises", IterRaises, "{x}", "ZeroDivisionError: iter", WAY_OUT),
    ("__array__ raises", ArrayRaises, "{x}", "ZeroDivisionError: array", WAY_OUT),
    ("__array__ gives text", lambda: ArrayIs("abc"), "{x}", "ValueError", WAY_OUT),
    ("__array__ gives None", lambda: ArrayIs(None), "{x}", "ValueError", WAY_OUT),
    ("__array__ of objects", lambda: ArrayIs(np.array([{}] * 3)), "objects", "astype(float)"),
    ("__array__ of inf", lambda: ArrayIs(np.array([0, INF, 0])), "{x}[1] is inf", NUMBER),
    ("__float__ raises", lambda: [1.0, FloatRaises(), 3], "{x}[1]", "(FloatRaises)", NUMBER),
    ("__float__ gives inf", lambda: [1.0, FloatIs(INF), 3], "{x}[1] is FloatIs(inf)", NUMBER),
    ("__float__ gives nan", lambda: [1.0, FloatIs(NAN), 3], "{x}[1] is FloatIs(nan)", NUMBER),
    ("__float__ gives text", lambda: [1.0, FloatIs("2"), 3], "{x}[1] is FloatIs(2)", NUMBER),
    ("__index__ raises", lambda: [1.0, IndexRaises(), 3], "{x}[1]", "(IndexRaises)", NUMBER),
    ("repr raises", lambda: [1.0, ReprRaises(), 3], "{x}[1]", "(ReprRaises)", NUMBER),
    ("repr raises outside", ReprRaises, "{x}", "ReprRaises", WAY_OUT),
)
if LONGDOUBLE_IS_LONGER:
    ROWS += table(
        ("longdouble", np.array([LONG_THIRD] * 3), "{x}[0]", "exactly", "round it yourself"),
        ("longdouble inside", [1.0, LONG_THIRD, 3], "{x}[1]", "exactly", "round it yourself"),
        ("longdouble beyond", np.array([np.longdouble("1e400"), 1, 1]), "{x}[0]", "exactly"),
    )

ROW_DOORS = {
    "insert": ("x", lambda tree, x: tree.insert(x, "yes")),
    "insert with id": ("x", lambda tree, x: tree.insert(x, "yes", id=99)),
    "insert, new label": ("x", lambda tree, x: tree.insert(x, "never seen")),
    "replace": ("x", lambda tree, x: tree.replace(30, x, "yes")),
    "delete": ("x", lambda tree, x: tree.delete(x, "yes")),
    "label": ("x", lambda tree, x: tree.label(x)),
    "label_counts": ("x", lambda tree, x: tree.label_counts(x)),
    "insert_many": ("X[1]", lambda tree, x: tree.insert_many([GOOD, x], ["yes", "no"])),
    "delete_many": ("X[1]", lambda tree, x: tree.delete_many([GOOD, x], ["yes", "no"])),
    "label_many": ("X[1]", lambda tree, x: tree.label_many((GOOD, x))),
}


@pytest.mark.parametrize("door", ROW_DOORS)
@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_bad_row(tree, case, door):
    place, call = ROW_DOORS[door]
    says = [part.replace("{x}", place) for part in case.says]
    x = case.make()
    refuses(tree, InvalidExample, ValueError, says, lambda: call(tree, x))


def test_the_table_is_long_enough():
    assert len(ROWS) >= 80
    assert len(set(names(ROWS))) == len(ROWS)


@pytest.mark.parametrize("door", ["label", "label_counts", "label_many", "delete"])
@pytest.mark.parametrize("case", ROWS[::7], ids=names(ROWS[::7]))
def test_an_empty_tree_looks_at_the_row_first(case, door):
    tree = EverTree(3, categorical=[2])
    with pytest.raises(InvalidExample):
        ROW_DOORS[door][1](tree, case.make())


# --- tables

BATCH = "one row per example"
TABLES = table(
    ("None", None, "X is None", WAY_OUT),
    ("a number", 7, "X is 7", WAY_OUT),
    ("text", "abc", "X is 'abc'", WAY_OUT),
    ("one row", [1.0, 2.0, 3.0], "X[0] is 1.0", WAY_OUT),
    ("one row as an array", np.ones(3), "X has shape (3,)", BATCH, "write [x]"),
    ("0-d", np.array(1.0), "X has shape ()", BATCH),
    ("3-d", np.ones((2, 3, 1)), "X has shape (2, 3, 1)", BATCH),
    ("too narrow", np.ones((2, 2)), "2 values", "n_features=3"),
    ("too wide", np.ones((2, 4)), "4 values", "n_features=3"),
    ("transposed", np.ones((3, 2)), "2 values", "n_features=3"),
    ("narrow and empty", np.ones((0, 2)), "2 values", "n_features=3"),
    ("no columns", np.ones((2, 0)), "0 values", "n_features=3"),
    ("ragged", [[1.0, 2.0, 3.0], [1.0, 2.0]], "X[1] has 2 values", "n_features=3"),
    ("ragged objects", np.array([[1.0], [1.0, 2.0]], dtype=object), "shape (2,)", BATCH),
    ("objects", np.full((2, 3), None), "X[0][0]", "objects", "astype(float)"),
    ("text table", np.full((2, 3), "1"), "X[0][0]", "text", "astype(float)"),
    ("dates", np.zeros((2, 3), dtype="M8[s]"), "X[0][0]", "dates"),
    ("complex", np.zeros((2, 3), dtype=complex), "X[0][0]", "complex"),
    ("structured", np.zeros((2, 3), dtype="f8,f8"), "X[0][0]", "structured"),
    ("inf", np.array([[0, 0, 0], [0, INF, 0]]), "X[1][1] is inf", NUMBER),
    ("big int", np.array([[0, 0, 0], [0, 2**60 + 1, 0]]), "X[1][1]", str(2**60 + 1), "exactly"),
    ("category", np.array([[0, 0, 0], [0, 0, -2]]), "X[1][2] is -2.0", "categorical"),
    ("masked", np.ma.masked_greater(np.arange(6.0).reshape(2, 3), 4), "X[1][2] is masked", "fill"),
    ("set of rows", lambda: {(1.0, 2.0, 3.0), (4.0, 5.0, 6.0)}, "set", WAY_OUT),
    ("dict of columns", lambda: {"a": [1.0], "b": [1.0], "c": [1.0]}, "dict", WAY_OUT),
    ("generator of rows", lambda: ([1.0, 2.0, 3.0] for _ in range(2)), "generator", WAY_OUT),
    ("length raises", LengthRaises, "X", "ZeroDivisionError", WAY_OUT),
    ("length lies", lambda: LengthIs(2, 5, GOOD), "has not the 2 members", WAY_OUT),
    ("length is enormous", lambda: LengthIs(2**62, 2, GOOD), f"not the {2**62} members", WAY_OUT),
    ("a billion numbers", range(10**9), "X[0] is 0 (int)", WAY_OUT),
    ("__array__ raises", ArrayRaises, "X", "ZeroDivisionError", WAY_OUT),
    ("__array__ of objects", lambda: ArrayIs(np.full((2, 3), "a", dtype=object)), "objects"),
    ("nested too deeply", [[[1.0, 2.0, 3.0]] * 3] * 2, "X[0][0]", "(list)", NUMBER),
)

TABLE_DOORS = {
    "insert_many": lambda tree, X: tree.insert_many(X, ["yes", "no"]),
    "insert_many with ids": lambda tree, X: tree.insert_many(X, ["yes", "no"], ids=[90, 91]),
    "delete_many": lambda tree, X: tree.delete_many(X, ["yes", "no"]),
    "label_many": lambda tree, X: tree.label_many(X),
}


@pytest.mark.parametrize("door", TABLE_DOORS)
@pytest.mark.parametrize("case", TABLES, ids=names(TABLES))
def test_bad_table(tree, case, door):
    X = case.make()
    refuses(tree, InvalidExample, ValueError, case.says, lambda: TABLE_DOORS[door](tree, X))


# --- labels


class HashRaises:
    def __hash__(self):
        raise ZeroDivisionError("hash")


class HashIsText:
    def __hash__(self):
        return "text"  # noqa: PLE0309  (on purpose)


class EqRaises:
    def __hash__(self):
        return hash("yes")

    def __eq__(self, other):
        raise ZeroDivisionError("eq")


class EqGives:
    """Collides with no label: one that answers for a known label would be that label."""

    def __init__(self, answer):
        self.answer = answer

    def __hash__(self):
        return 12345

    def __eq__(self, other):
        return self.answer


class NoBool:
    def __bool__(self):
        raise TypeError("boolean value is ambiguous")


class Frozen:
    __hash__ = None

    def __repr__(self):
        raise ZeroDivisionError("repr")


LABEL = "a label is a hashable value that equals itself"
LABELS = table(
    ("list", ["yes"], "['yes']", "unhashable", LABEL),
    ("dict", {"yes": 1}, "{'yes': 1}", "unhashable", LABEL),
    ("set", {1}, "{1}", "unhashable", LABEL),
    ("bytearray", bytearray(b"a"), "bytearray", "unhashable", LABEL),
    ("array", np.array([1]), "array([1])", "unhashable", LABEL),
    ("0-d array", np.array(1), "array(1)", "unhashable", LABEL),
    ("tuple with a list", (1, [2]), "(1, [2])", "unhashable", LABEL),
    ("writable memoryview", lambda: memoryview(bytearray(b"a")), "memory", "ValueError", LABEL),
    ("no hash, no repr", Frozen, "Frozen", "unhashable", LABEL),
    ("nan", NAN, "nan", "does not equal itself", LABEL),
    ("nan of numpy", np.float32("nan"), "nan", "does not equal itself", LABEL),
    ("nan of Decimal", decimal.Decimal("nan"), "NaN", "does not equal itself", LABEL),
    ("signalling nan", decimal.Decimal("snan"), "sNaN", LABEL),
    ("complex nan", complex(NAN, 0), "nan", "does not equal itself", LABEL),
    ("not a time", np.datetime64("NaT"), "NaT", "does not equal itself", LABEL),
    ("nan in a tuple", (1, NAN), "(1, nan)", "does not equal itself", LABEL),
    ("nan deep in a tuple", (1, ("a", (NAN,))), "nan", "does not equal itself", LABEL),
    ("nan in a frozenset", frozenset([NAN]), "nan", "does not equal itself", LABEL),
    ("masked constant", lambda: np.ma.masked, "masked", LABEL),
    ("structured scalar", lambda: np.zeros(1, dtype="f8,f8")[0], "unhashable", LABEL),
    ("hash raises", HashRaises, "HashRaises", "ZeroDivisionError: hash", LABEL),
    ("hash is text", HashIsText, "HashIsText", "TypeError", LABEL),
    ("eq raises", EqRaises, "EqRaises", "ZeroDivisionError: eq", LABEL),
    ("eq is never true", lambda: EqGives(False), "EqGives", "does not equal itself", LABEL),
    ("eq gives no bool", lambda: EqGives("yes"), "EqGives", "does not equal itself", LABEL),
    ("eq gives NA", lambda: EqGives(NoBool()), "EqGives", LABEL),
    ("eq gives an array", lambda: EqGives(np.array([True, False])), "EqGives", LABEL),
)

LABEL_DOORS = {
    "insert": lambda tree, y: tree.insert(GOOD, y),
    "insert with id": lambda tree, y: tree.insert(GOOD, y, id=99),
    "replace": lambda tree, y: tree.replace(30, GOOD, y),
    "delete": lambda tree, y: tree.delete(GOOD, y),
    "insert_many": lambda tree, y: tree.insert_many([GOOD, GOOD], ["never seen", y]),
    "delete_many": lambda tree, y: tree.delete_many([GOOD, GOOD], ["yes", y]),
}


@pytest.mark.parametrize("door", LABEL_DOORS)
@pytest.mark.parametrize("case", LABELS, ids=names(LABELS))
def test_bad_label(tree, case, door):
    y = case.make()
    refuses(tree, InvalidExample, ValueError, case.says, lambda: LABEL_DOORS[door](tree, y))


PER_ROW = "one label per row"
LABEL_BATCHES = table(
    ("too few", ["yes"], "1 labels", "2 rows", PER_ROW),
    ("too many", ["yes"] * 3, "3 labels", "2 rows", PER_ROW),
    ("none", [], "0 labels", "2 rows", PER_ROW),
    ("too few in an array", np.array([1]), "1 labels", "2 rows", PER_ROW),
    ("one label", "no", "y is 'no'", WAY_OUT),
    ("bytes", b"no", "y is b'no'", WAY_OUT),
    ("a number", 1, "y is 1", WAY_OUT),
    ("None", None, "y is None", WAY_OUT),
    ("a column", np.array([[1], [2]]), "y has shape (2, 1)", "ravel"),
    ("0-d", np.array(1), "y has shape ()", PER_ROW),
    ("set", {"yes", "no"}, "set", WAY_OUT),
    ("dict", {"yes": 1, "no": 2}, "dict", WAY_OUT),
    ("generator", lambda: (y for y in ("yes", "no")), "generator", WAY_OUT),
    ("masked", lambda: np.ma.masked_array([1, 2], mask=[False, True]), "y[1] is masked", "fill"),
    ("length raises", LengthRaises, "y", "ZeroDivisionError", WAY_OUT),
    ("length lies", lambda: LengthIs(2, 1), "has not the 2 members", WAY_OUT),
    ("length is enormous", lambda: LengthIs(2**62, 2), f"y has {2**62} labels", PER_ROW),
    ("member raises", lambda: MemberRaises(2), "y", "ZeroDivisionError", WAY_OUT),
    ("__array__ raises", ArrayRaises, "y", "ZeroDivisionError", WAY_OUT),
    ("a nan", np.array([1.0, NAN]), "nan", "does not equal itself", LABEL),
    ("a list", [1, [2]], "[2]", "unhashable", LABEL),
)


@pytest.mark.parametrize("door", ["insert_many", "delete_many"])
@pytest.mark.parametrize("case", LABEL_BATCHES, ids=names(LABEL_BATCHES))
def test_bad_batch_of_labels(tree, case, door):
    y = case.make()
    call = getattr(tree, door)
    refuses(tree, InvalidExample, ValueError, case.says, lambda: call([GOOD, GOOD], y))


# --- ids

AN_ID = "an id is an int from 0 to 2**63 - 1"
IDS = table(
    ("-1", -1, "{id}=-1", AN_ID),
    ("-2", -2, "{id}=-2", AN_ID),
    ("2**63", 2**63, "{id}=9223372036854775808", AN_ID),
    ("-2**63", -(2**63), "{id}=-9223372036854775808", AN_ID),
    ("2**64", 2**64, "{id}=18446744073709551616", AN_ID),
    ("10**5000", 10**5000, "{id}=", AN_ID),
    ("uint64", np.uint64(2**63), "{id}=", "9223372036854775808", AN_ID),
    ("True", True, "{id}=True", AN_ID),
    ("False", False, "{id}=False", AN_ID),
    ("np.True_", np.True_, "{id}=", "True", AN_ID),
    ("1.0", 1.0, "{id}=1.0", AN_ID),
    ("1.5", 1.5, "{id}=1.5", AN_ID),
    ("np.float64", np.float64(1), "{id}=", "1.0", AN_ID),
    ("nan", NAN, "{id}=nan", AN_ID),
    ("inf", INF, "{id}=inf", AN_ID),
    ("text", "1", "{id}='1'", AN_ID),
    ("bytes", b"1", "{id}=b'1'", AN_ID),
    ("Fraction", fractions.Fraction(1), "{id}=Fraction(1, 1)", AN_ID),
    ("Decimal", decimal.Decimal(1), "{id}=Decimal('1')", AN_ID),
    ("complex", 1j, "{id}=1j", AN_ID),
    ("list", [1], "{id}=[1]", AN_ID),
    ("tuple", (1,), "{id}=(1,)", AN_ID),
    ("0-d array", np.array(1), "{id}=array(1)", AN_ID),
    ("a date", np.datetime64("2024-02-29"), "{id}=", "2024-02-29", AN_ID),
    ("an object", object, "{id}=", "object", AN_ID),
    ("index raises", IndexRaises, "{id}=", "IndexRaises", AN_ID),
    ("repr raises", ReprRaises, "{id}=", "ReprRaises", AN_ID),
)

ID_DOORS = {
    "insert": ("id", InvalidExample, lambda tree, i: tree.insert(GOOD, "yes", id=i)),
    "replace": ("id", InvalidExample, lambda tree, i: tree.replace(i, GOOD, "yes")),
    "insert_many": (
        "ids[1]",
        InvalidExample,
        lambda tree, i: tree.insert_many([GOOD, GOOD], ["yes", "no"], ids=[90, i]),
    ),
    "delete": ("id", ExampleNotFound, lambda tree, i: tree.delete(id=i)),
    "delete_many": ("ids[1]", ExampleNotFound, lambda tree, i: tree.delete_many(ids=[0, i])),
    "example": ("id", ExampleNotFound, lambda tree, i: tree.example(i)),
}


@pytest.mark.parametrize("door", ID_DOORS)
@pytest.mark.parametrize("case", IDS, ids=names(IDS))
def test_bad_id(tree, case, door):
    place, error, call = ID_DOORS[door]
    built_in = ValueError if error is InvalidExample else KeyError
    says = [part.replace("{id}", place) for part in case.says]
    i = case.make()
    refuses(tree, error, built_in, says, lambda: call(tree, i))
    assert i not in tree


@pytest.mark.parametrize("door", [door for door in ID_DOORS if door != "insert"])
def test_none_is_no_id(tree, door):
    place, error, call = ID_DOORS[door]
    built_in = ValueError if error is InvalidExample else KeyError
    refuses(tree, error, built_in, [f"{place}=None", AN_ID], lambda: call(tree, None))


ID_BATCHES = table(
    # container, InvalidExample at both doors
    ("a number", 5, "ids is 5", WAY_OUT),
    ("text", "01", "ids is '01'", WAY_OUT),
    ("set", {40, 41}, "set", WAY_OUT),
    ("dict", {40: 1, 41: 2}, "dict", WAY_OUT),
    ("generator", lambda: (i for i in (40, 41)), "generator", WAY_OUT),
    ("2-d", np.array([[40, 41]]), "ids has shape (1, 2)", "flat"),
    ("0-d", np.array(40), "ids has shape ()", "flat"),
    ("masked", lambda: np.ma.masked_array([40, 41], mask=[0, 1]), "ids[1] is masked", "fill"),
    ("length raises", LengthRaises, "ids", "ZeroDivisionError", WAY_OUT),
    ("length lies", lambda: LengthIs(2, 1, 40), "has not the 2 members", WAY_OUT),
    ("__array__ raises", ArrayRaises, "ids", "ZeroDivisionError", WAY_OUT),
)


@pytest.mark.parametrize("door", ["insert_many", "delete_many"])
@pytest.mark.parametrize("case", ID_BATCHES, ids=names(ID_BATCHES))
def test_bad_batch_of_ids(tree, case, door):
    ids = case.make()
    arguments = ([GOOD, GOOD], ["yes", "no"]) if door == "insert_many" else ()
    call = getattr(tree, door)
    refuses(tree, InvalidExample, ValueError, case.says, lambda: call(*arguments, ids=ids))


ID_ARRAYS = table(
    ("floats", np.array([90.0, 91.0]), "ids[0]=", "dtype=float64", AN_ID),
    ("bools", np.array([True, False]), "ids[0]=", "dtype=bool", AN_ID),
    ("objects", np.array([90, 91], dtype=object), "ids[0]=90", "dtype=object", AN_ID),
    ("texts", np.array(["90", "91"]), "ids[0]=", "dtype=<U2", AN_ID),
    ("negative", np.array([90, -5]), "ids[1]=-5", AN_ID),
    ("too large", np.array([90, 2**63], dtype=np.uint64), "ids[1]=9223372036854775808", AN_ID),
)


@pytest.mark.parametrize("case", ID_ARRAYS, ids=names(ID_ARRAYS))
def test_bad_array_of_ids(tree, case):
    ids = case.make()
    X, y = [GOOD, GOOD], ["yes", "no"]
    insert = lambda: tree.insert_many(X, y, ids=ids)  # noqa: E731
    refuses(tree, InvalidExample, ValueError, case.says, insert)
    delete = lambda: tree.delete_many(ids=ids)  # noqa: E731
    refuses(tree, ExampleNotFound, KeyError, case.says, delete)


@pytest.mark.parametrize("ids", [[], [90], [90, 91, 92], range(3), np.array([90])])
def test_as_many_ids_as_rows(tree, ids):
    says = [f"ids has {len(ids)} ids", "2 rows", "one id per row"]
    insert = lambda: tree.insert_many([GOOD, GOOD], ["yes", "no"], ids=ids)  # noqa: E731
    refuses(tree, InvalidExample, ValueError, says, insert)


# --- good values, wrong moment

IN_USE = [
    ("insert", lambda tree: tree.insert(GOOD, "yes", id=30), ["id=30", "in use", "replace(30"]),
    (
        "insert_many",
        lambda tree: tree.insert_many([GOOD, GOOD], ["yes", "no"], ids=[3, 30]),
        ["ids[1]=30", "in use", "leave ids out"],
    ),
    (
        "insert_many, twice in a batch",
        lambda tree: tree.insert_many([GOOD, GOOD], ["yes", "no"], ids=[3, 3]),
        ["ids[1]=3", "position 0", "each id once"],
    ),
]


@pytest.mark.parametrize(("call", "says"), [c[1:] for c in IN_USE], ids=[c[0] for c in IN_USE])
def test_id_in_use(tree, call, says):
    refuses(tree, DuplicateId, ValueError, says, lambda: call(tree))


FAR = [9.0, 9.0, 9]
NOT_THERE = [
    ("other row", lambda tree: tree.delete(FAR, "yes"), ["[9.0, 9.0, 9]", "'yes'", "by the id"]),
    ("other label", lambda tree: tree.delete(GOOD, "no"), ["'no'", "only what is in"]),
    ("label never seen", lambda tree: tree.delete(GOOD, "maybe"), ["'maybe'", "only what is in"]),
    ("missing is not 0", lambda tree: tree.delete([0.5, -1.0, 0], "no"), ["only what is in"]),
    ("id", lambda tree: tree.delete(id=29), ["id=29", "`i in tree` tells"]),
    ("replace", lambda tree: tree.replace(29, GOOD, "yes"), ["id=29", "`i in tree` tells"]),
    ("example", lambda tree: tree.example(29), ["id=29", "`i in tree` tells"]),
    ("largest id", lambda tree: tree.delete(id=2**63 - 1), ["id=9223372036854775807"]),
    (
        "batch of rows",
        lambda tree: tree.delete_many([GOOD, FAR], ["yes", "yes"]),
        ["X[1]=[9.0, 9.0, 9.0]", "y[1]='yes'", "leave it out"],
    ),
    (
        "more often than there",
        lambda tree: tree.delete_many([GOOD, GOOD], ["yes", "yes"]),
        ["X[1]=[0.5, -1.0, 3.0]", "as often"],
    ),
    ("batch of ids", lambda tree: tree.delete_many(ids=[0, 29]), ["ids[1]=29"]),
    ("id twice", lambda tree: tree.delete_many(ids=[1, 0, 1]), ["ids[2]=1", "position 0"]),
]


@pytest.mark.parametrize(
    ("call", "says"), [c[1:] for c in NOT_THERE], ids=[c[0] for c in NOT_THERE]
)
def test_not_there(tree, call, says):
    refuses(tree, ExampleNotFound, KeyError, says, lambda: call(tree))


WHICH = [
    ("delete nothing", lambda tree: tree.delete(), ["nothing", "delete(x, y)", "delete(id=i)"]),
    ("delete row", lambda tree: tree.delete(GOOD), ["given x:", "delete(x, y)"]),
    ("delete label", lambda tree: tree.delete(y="yes"), ["given y:", "delete(x, y)"]),
    (
        "delete both",
        lambda tree: tree.delete(GOOD, "yes", id=0),
        ["x and y and id", "delete(id=i)"],
    ),
    ("delete row, id", lambda tree: tree.delete(GOOD, id=0), ["x and id", "delete(id=i)"]),
    ("delete_many nothing", lambda tree: tree.delete_many(), ["nothing", "delete_many(ids=ids)"]),
    ("delete_many rows", lambda tree: tree.delete_many([GOOD]), ["given X:", "delete_many(X, y)"]),
    (
        "delete_many both",
        lambda tree: tree.delete_many([GOOD], ["yes"], ids=[0]),
        ["X and y and ids", "delete_many(ids=ids)"],
    ),
]


@pytest.mark.parametrize(("call", "says"), [c[1:] for c in WHICH], ids=[c[0] for c in WHICH])
def test_one_way_of_naming(tree, call, says):
    refuses(tree, InvalidExample, ValueError, says, lambda: call(tree))


# --- parameters

N_FEATURES = "how many numbers a row has"
CATEGORICAL = "positions of the features"
MAX_GAP = "is not in (0, 1]"
MIN_IMPURITY = "is not in [0, 1]"
MIN_SAMPLES = "is not an int >= 2"
MAX_DEPTH = "None means no limit"
EPSILON = "None, the default, is the certified rule"

PARAMETERS = [
    *[
        ("n_features", value, shown, N_FEATURES)
        for value, shown in [
            (0, "0"),
            (-1, "-1"),
            (2**31, "2147483648"),
            (10**5000, ""),
            (1.0, "1.0"),
            (NAN, "nan"),
            (True, "True"),
            ("3", "'3'"),
            (None, "None"),
            ([3], "[3]"),
            (np.float64(3), "3.0"),
            (np.array(3), "array(3)"),
            (3j, "3j"),
        ]
    ],
    *[
        ("categorical", value, shown, CATEGORICAL)
        for value, shown in [
            (None, "=None"),
            (1, "=1"),
            ("0", "[0]='0'"),
            ([3], "[0]=3"),
            ([-1], "[0]=-1"),
            ([0, 0], "[1]=0"),
            ([0, 1.0], "[1]=1.0"),
            ([True], "[0]=True"),
            ([None], "[0]=None"),
            ([[0]], "[0]=[0]"),
            (np.array([True, False, True]), "[0]="),
            ({"age": 0}, "[0]='age'"),
            ([10**5000], "[0]="),
        ]
    ],
    *[
        ("max_gap", value, shown, MAX_GAP)
        for value, shown in [
            (0, "=0"),
            (0.0, "=0.0"),
            (-0.1, "=-0.1"),
            (1.0000001, "=1.0000001"),
            (NAN, "=nan"),
            (INF, "=inf"),
            (True, "=True"),
            ("0.1", "='0.1'"),
            (None, "=None"),
            ([0.1], "=[0.1]"),
            (10**400, "="),
            (fractions.Fraction(1, 10), "=Fraction(1, 10)"),
            (np.float64(NAN), "nan"),
            (0.1j, "=0.1j"),
            (FloatIs(0.1), "=FloatIs(0.1)"),
        ]
    ],
    *[
        ("min_impurity", value, shown, MIN_IMPURITY)
        for value, shown in [
            (-1e-9, "=-1e-09"),
            (1.5, "=1.5"),
            (NAN, "=nan"),
            (-INF, "=-inf"),
            (False, "=False"),
            ("0", "='0'"),
            (None, "=None"),
            (np.array([0.1]), "=array([0.1])"),
        ]
    ],
    *[
        ("min_samples_split", value, shown, MIN_SAMPLES)
        for value, shown in [
            (1, "=1"),
            (0, "=0"),
            (-5, "=-5"),
            (2.0, "=2.0"),
            (0.1, "=0.1"),
            (True, "=True"),
            ("2", "='2'"),
            (None, "=None"),
            (NAN, "=nan"),
        ]
    ],
    *[
        ("max_depth", value, shown, MAX_DEPTH)
        for value, shown in [
            (-1, "=-1"),
            (1.0, "=1.0"),
            (INF, "=inf"),
            (NAN, "=nan"),
            (True, "=True"),
            ("3", "='3'"),
            ([], "=[]"),
        ]
    ],
    *[
        ("epsilon", value, shown, EPSILON)
        for value, shown in [
            (-0.1, "=-0.1"),
            (-1, "=-1"),
            (NAN, "=nan"),
            (INF, "=inf"),
            (True, "=True"),
            ("0.1", "='0.1'"),
            (10**400, "="),
            ([0.1], "=[0.1]"),
            (-5e-324, "=-5e-324"),
        ]
    ],
]


@pytest.mark.parametrize(
    ("name", "value", "shown", "rule"),
    PARAMETERS,
    ids=[f"{parameter[0]} {position}" for position, parameter in enumerate(PARAMETERS)],
)
def test_bad_parameter(name, value, shown, rule):
    with pytest.raises(InvalidParameter) as caught:
        EverTree(**{"n_features": 3, name: value})
    message = str(caught.value)
    assert message.startswith(name)
    assert shown in message
    assert rule in message
    assert len(message) < 700
    assert isinstance(caught.value, ValueError)


# --- objects that raise what is none of our errors


def test_a_label_that_cannot_be_compared_with_others(tree):
    class Shy:
        def __hash__(self):
            return hash("yes")

        def __eq__(self, other):
            if self is other:
                return True
            raise ZeroDivisionError

    before = state(tree)
    for door in LABEL_DOORS.values():
        with pytest.raises((EvertreeError, ZeroDivisionError)):
            door(tree, Shy())
        assert state(tree) == before


def test_keyboard_interrupt_passes_through(tree):
    class Interrupts:
        def __len__(self):
            return 3

        def __getitem__(self, j):
            raise KeyboardInterrupt

    before = state(tree)
    for _, call in ROW_DOORS.values():
        with pytest.raises(KeyboardInterrupt):
            call(tree, Interrupts())
        assert state(tree) == before
