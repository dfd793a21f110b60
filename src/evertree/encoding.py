"""From what people have to what the core takes: rows, labels and ids. The only place that does it.

A row becomes float64 without losing anything: a value that float64 cannot hold exactly is refused,
not rounded. NaN is a missing value; infinities are refused; a category is a whole number from 0 to
2**53 - 1, or a text, which has such a number of its own. A label is any hashable that equals
itself. An id is an int from 0 to 2**63 - 1. Tables with named columns are read by frames.py.

What comes in may be anything, also an object that lies about its length or raises when it is looked
at: whatever happens, the caller gets an InvalidExample that names the place, the value, the rule
and the way out. Nothing here knows a tree.
"""

from __future__ import annotations

import array
import functools
import hashlib
import itertools
import numbers
import reprlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from evertree.errors import DuplicateId, EvertreeError, InvalidExample


class Frame(Protocol):
    """A DataFrame, or whatever else has columns that Arrow can read."""

    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Row: TypeAlias = Sequence[float | str] | npt.NDArray[Any]
Rows: TypeAlias = Sequence[Row] | npt.NDArray[Any] | Frame
Labels: TypeAlias = Sequence[Hashable] | npt.NDArray[Any]
Ids: TypeAlias = Sequence[int] | npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]

# float64 holds every whole number up to here, and not the next one.
WHOLE_LIMIT = 2**53
ID_LIMIT = 2**63

_A_NUMBER = "a feature is a finite number, or nan where it is missing"
_AN_ID = "an id is an int from 0 to 2**63 - 1, as insert() returns it"
_A_LABEL = "a label is a hashable value that equals itself, such as a text, a number or a tuple"
_KINDS = {
    "O": "an array of objects",
    "U": "text",
    "S": "bytes",
    "T": "text",
    "c": "complex numbers",
    "M": "dates",
    "m": "durations",
    "V": "a structured array",
}


class Encoder:
    """What one tree takes in: `n_features` numbers, some of which are codes of categories.

    >>> encoder = Encoder(n_features=2, categorical=(1,))
    >>> encoder.row((0.5, 3))
    array([0.5, 3. ])
    >>> encoder.row((0.5, 3.25))
    Traceback (most recent call last):
    ...
    evertree.errors.InvalidExample: x[1] is 3.25: feature 1 is categorical, its values are whole \
numbers from 0 to 2**53 - 1, texts, or nan where missing; number the categories 0, 1, 2, ...
    """

    __slots__ = ("_categorical", "_n_features")

    def __init__(self, n_features: int, categorical: Sequence[int] = ()) -> None:
        self._n_features = n_features
        self._categorical = np.array(categorical, dtype=np.intp)

    @property
    def categorical(self) -> list[int]:
        """Positions of the features that are codes of categories. O(their number)."""
        return [int(position) for position in self._categorical]

    # --- features

    def row(self, x: Row) -> Floats:
        """One valid row as float64, contiguous. O(d)."""
        values = self._values(x, "x")
        self.check(values.reshape(1, -1), lambda _, j: f"x[{j}]")
        return values

    def matrix(self, X: Rows) -> Floats:
        """All rows of a batch as one valid float64 array of shape (n, n_features). O(n·d)."""
        batch = _open(X, "X")
        if isinstance(batch, np.ndarray):
            values = self._table(batch)
        else:
            rows = [self._values(x, f"X[{i}]") for i, x in enumerate(batch.members)]
            values = np.array(rows, dtype=np.float64).reshape(len(rows), self._n_features)
        self.check(values, lambda i, j: f"X[{i}][{j}]")
        return values

    def is_ready(self, X: object) -> TypeGuard[Floats]:
        """Whether X is what `matrix` would make of it, but for infinities. O(1)."""
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.dtype.isnative
            and X.ndim == 2
            and X.shape[1] == self._n_features
            and X.flags.c_contiguous
            and not self._categorical.size
        )

    def _values(self, x: Row, place: str) -> Floats:
        """Read one row; its numbers are exact, but not yet known to be finite or categories."""
        row = _open(x, place)
        if not isinstance(row, np.ndarray):
            self.check_width(row.length, place, x)
            return np.array(self._numbers(list(row.members), place), dtype=np.float64)
        if row.ndim != 1:
            raise InvalidExample(
                f"{place} has shape {row.shape}: a row is 1-dimensional with "
                f"{self._n_features} values; for many rows use the *_many call"
            )
        self.check_width(len(row), place, x)
        return _exact(row, lambda index: f"{place}[{index[0]}]")

    def _numbers(self, members: list[Any], place: str) -> list[float]:
        if all(type(value) is float for value in members):
            return members
        texts = [j for j in self._categorical.tolist() if isinstance(members[j], str)]
        for j in texts:
            members[j] = category_code(members[j])
        return [number(value, f"{place}[{j}]") for j, value in enumerate(members)]

    def _table(self, rows: npt.NDArray[Any]) -> Floats:
        if rows.shape in {(0,), (0, 0)}:  # an empty list or frame: no rows, of any width
            return np.empty((0, self._n_features))
        if rows.ndim != 2:
            raise InvalidExample(
                f"X has shape {rows.shape}: a batch has one row per example, shape (n, "
                f"{self._n_features}); for one row write [x]"
            )
        self.check_width(rows.shape[1], "each row of X", rows)
        return _exact(rows, lambda index: f"X[{index[0]}][{index[1]}]")

    def check_width(self, found: int, place: str, value: object) -> None:
        """Refuse a row, or rows, of another number of values than the tree's. O(1)."""
        if found != self._n_features:
            raise InvalidExample(
                f"{place} has {found} values ({show(value)}): this tree has n_features="
                f"{self._n_features}; give as many, with nan where one is missing"
            )

    def check(self, values: Floats, place: Callable[[int, int], str]) -> None:
        """Refuse infinities, and codes that are none, by the place of row and feature. O(n·d)."""
        infinite = np.isinf(values)
        if infinite.any():
            i, j = _first(infinite)
            raise InvalidExample(
                f"{place(i, j)} is {values[i, j]}: {_A_NUMBER}; "
                "replace infinities by nan or by a large number"
            )
        if self._categorical.size:
            self._check_categories(values, place)

    def _check_categories(self, values: Floats, place: Callable[[int, int], str]) -> None:
        codes = values[:, self._categorical]
        whole = (codes >= 0) & (codes < WHOLE_LIMIT) & (codes == np.floor(codes))
        bad = ~(whole | np.isnan(codes))
        if bad.any():
            i, position = _first(bad)
            j = int(self._categorical[position])
            raise InvalidExample(
                f"{place(i, j)} is {values[i, j]}: feature {j} is categorical, its values are "
                "whole numbers from 0 to 2**53 - 1, texts, or nan where missing; "
                "number the categories 0, 1, 2, ..."
            )

    # --- labels

    def label(self, y: Hashable) -> Hashable:
        """Give the label to keep: `y` itself, or the plain Python value of a numpy scalar.

        >>> Encoder(1).label(np.int64(3))
        3
        """
        label = y.item() if isinstance(y, np.generic) and y.dtype.kind in "biufcSU" else y
        try:
            hash(label)
        except MemoryError:
            raise
        except Exception as error:
            raise InvalidExample(
                f"label {show(y)} cannot be hashed ({say(error)}): {_A_LABEL}"
            ) from error
        try:
            good = _equals_itself(label)
        except MemoryError:
            raise
        except Exception as error:
            raise InvalidExample(
                f"label {show(y)} cannot be compared ({say(error)}): {_A_LABEL}"
            ) from error
        if not good:
            raise InvalidExample(
                f"label {show(y)} does not equal itself: {_A_LABEL}; "
                "leave out examples without a label, or give them one of their own"
            )
        return label

    def labels(self, y: Labels, n: int) -> list[Hashable]:
        """Read the labels of a batch of n rows as they are; `label` judges them. O(n)."""
        batch = _open(y, "y")
        if isinstance(batch, np.ndarray) and batch.ndim != 1:
            raise InvalidExample(
                f"y has shape {batch.shape}: a batch has one label per row, shape ({n},); "
                "y.ravel() makes a column flat"
            )
        length = len(batch) if isinstance(batch, np.ndarray) else batch.length
        if length != n:
            raise InvalidExample(
                f"y has {length} labels, X has {n} rows: a batch has one label per row"
            )
        if not isinstance(batch, np.ndarray):
            return list(batch.members)
        return batch.tolist() if batch.dtype.kind in "biufcSU" else list(batch)

    def order(self, labels: list[Hashable]) -> list[int]:
        """Positions of `labels` in the order that breaks ties: type name, then value.

        Where values have no order, what they look like decides. Never depends on the order of
        `labels` themselves. O(m·log m) comparisons.

        >>> Encoder(1).order(["b", 2, "a", 10])
        [1, 3, 2, 0]
        """
        tokens = [token(label) for label in labels]
        # First by token alone: a type whose order is not total would keep an order of arrival.
        by_token = sorted(range(len(labels)), key=tokens.__getitem__)

        def compare(a: int, b: int) -> int:
            return _compare(labels[a], labels[b]) or _sign(tokens[a], tokens[b])

        return sorted(by_token, key=functools.cmp_to_key(compare))

    # --- ids

    def id(
        self, id: object, place: str = "id", malformed: type[EvertreeError] = InvalidExample
    ) -> int:
        """Give the id as a plain int. O(1)."""
        if isinstance(id, (int, np.integer)) and not isinstance(id, bool):
            number = int(id) if isinstance(id, np.integer) else int.__index__(id)
            if 0 <= number < ID_LIMIT:
                return number
        raise malformed(f"{place}={show(id)}: {_AN_ID}")

    def ids(
        self,
        ids: Ids,
        n: int | None,
        malformed: type[EvertreeError] = InvalidExample,
        repeated: type[EvertreeError] = DuplicateId,
    ) -> npt.NDArray[np.int64]:
        """Read the ids of a batch (of n rows, where given), all different. O(n·log n)."""
        batch = _open(ids, "ids")
        if isinstance(batch, np.ndarray) and batch.ndim != 1:
            raise InvalidExample(f"ids has shape {batch.shape}: give one flat sequence of ids")
        length = len(batch) if isinstance(batch, np.ndarray) else batch.length
        if n is not None and length != n:
            raise InvalidExample(
                f"ids has {length} ids, X has {n} rows: give one id per row, or ids=None"
            )
        if isinstance(batch, np.ndarray):
            found = _id_array(batch, malformed)
        else:
            plain = (self.id(i, f"ids[{p}]", malformed) for p, i in enumerate(batch.members))
            found = np.fromiter(plain, dtype=np.int64)
        _check_different(found, repeated)
        return found


# --- reading without trusting


class _Sequence(NamedTuple):
    """A sequence that is about to be read: how long it says it is, and its members one by one."""

    length: int
    members: Iterator[Any]


def _open(values: object, place: str) -> _Sequence | npt.NDArray[Any]:
    """Find out how to read `values`: an array as a whole, every other sequence one by one."""
    try:
        return _open_unguarded(values, place)
    except (EvertreeError, MemoryError):
        raise
    except Exception as error:
        raise _unreadable(values, place, error) from error


def _open_unguarded(values: Any, place: str) -> _Sequence | npt.NDArray[Any]:
    kind = type(values)
    if kind is list or kind is tuple:
        return _Sequence(len(values), _read(values, place, len(values)))
    if issubclass(kind, np.ma.MaskedArray):
        return _unmasked(values, place)
    if issubclass(kind, (str, bytes, bytearray)):
        raise _no_sequence(values, place, "text is not a sequence of values")
    if issubclass(kind, (array.array, memoryview)):
        return np.asarray(memoryview(values))
    if hasattr(kind, "__array__"):
        return np.asarray(values)
    if issubclass(kind, (Mapping, AbstractSet)):
        raise _no_sequence(values, place, "its members have no positions")
    if not (hasattr(kind, "__len__") and hasattr(kind, "__getitem__")):
        raise _no_sequence(values, place, "it is not a sequence")
    length = len(values)
    return _Sequence(length, _read(values, place, length))


def _read(values: Iterable[Any], place: str, length: int) -> Iterator[Any]:
    """Read one member at a time, so that whoever lies about its length can't make us read on."""
    count = 0
    try:
        iterator = iter(values)
        for member in itertools.islice(iterator, length):
            yield member
            count += 1
        more = any(True for _ in itertools.islice(iterator, 1))
    except (EvertreeError, MemoryError):
        raise
    except Exception as error:
        raise _unreadable(values, place, error) from error
    if count != length or more:
        raise _no_sequence(values, place, f"it has not the {length} members that it says it has")


def _unreadable(values: object, place: str, error: Exception) -> InvalidExample:
    return InvalidExample(
        f"{place} is {show(values)}, which cannot be read ({say(error)}): "
        "give a list, a tuple or a numpy array"
    )


def _no_sequence(values: object, place: str, reason: str) -> InvalidExample:
    return InvalidExample(
        f"{place} is {show(values)} ({type(values).__name__}): {reason}; "
        "give a list, a tuple or a numpy array"
    )


def _unmasked(values: np.ma.MaskedArray[Any, Any], place: str) -> npt.NDArray[Any]:
    mask = np.ma.getmaskarray(values)
    if mask.any():
        spot = "".join(f"[{i}]" for i in _first(mask))
        raise InvalidExample(
            f"{place}{spot} is masked: a masked value is neither there nor missing; "
            "fill it first, .filled(np.nan) for a missing feature"
        )
    return np.asarray(values)


def number(value: object, place: str) -> float:
    """Give a number as a float, without calling a __float__ or __index__ of the caller's."""
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, (np.integer, np.bool_)):
        value = value.item()
    if isinstance(value, int):
        whole = int.__index__(value)
        if -WHOLE_LIMIT <= whole <= WHOLE_LIMIT:
            return float(whole)
        raise _inexact(place, value)
    if isinstance(value, np.floating):
        number = float(value)
        if number == value or np.isnan(value):
            return number
        raise _inexact(place, value)
    if value is None:
        raise InvalidExample(f"{place} is None: {_A_NUMBER}; write float('nan') for missing")
    raise InvalidExample(
        f"{place} is {show(value)} ({type(value).__name__}): {_A_NUMBER}; "
        "turn it into a float or an int first"
    )


def _exact(values: npt.NDArray[Any], place: Callable[[tuple[int, ...]], str]) -> Floats:
    """Turn an array into contiguous float64, or say which value would have been changed by that."""
    kind = values.dtype.kind
    if kind not in "biuf":
        raise InvalidExample(
            f"{place((0,) * values.ndim)} and the rest are {_KINDS.get(kind, 'not numbers')} "
            f"(dtype={values.dtype}): {_A_NUMBER}; give an array of numbers, e.g. x.astype(float)"
        )
    with np.errstate(over="ignore"):
        floats = np.ascontiguousarray(values, dtype=np.float64)
    if kind in "iu" and values.dtype.itemsize == 8:
        # Compared in whole numbers: as floats, 2**53 + 1 would already look like 2**53.
        changed = values > WHOLE_LIMIT
        if kind == "i":
            changed |= values < -WHOLE_LIMIT
    elif kind == "f" and values.dtype.itemsize > 8:
        changed = (floats != values) & ~np.isnan(values)
    else:
        return floats
    if changed.any():
        index = _first(changed)
        raise _inexact(place(index), values[index])
    return floats


def _inexact(place: str, value: object) -> InvalidExample:
    return InvalidExample(
        f"{place} is {show(value)}: a feature is kept as float64, which cannot hold this number "
        "exactly (whole numbers go up to 2**53); round it yourself, or give codes as a category"
    )


def _id_array(members: npt.NDArray[Any], malformed: type[EvertreeError]) -> npt.NDArray[np.int64]:
    if not len(members):  # np.array([]) has the type float64, and no float in it
        return np.empty(0, dtype=np.int64)
    if members.dtype.kind not in "iu":
        raise malformed(f"ids[0]={show(members[0])} (dtype={members.dtype}): {_AN_ID}")
    bad = (members < 0) | (members >= ID_LIMIT) if members.dtype.kind == "u" else members < 0
    if bad.any():
        position = _first(bad)[0]
        raise malformed(f"ids[{position}]={members[position]}: {_AN_ID}")
    return np.ascontiguousarray(members, dtype=np.int64)


def _check_different(ids: npt.NDArray[np.int64], repeated: type[EvertreeError]) -> None:
    by_value = np.argsort(ids, kind="stable")
    again = np.flatnonzero(ids[by_value][1:] == ids[by_value][:-1])
    if again.size:
        position = int(by_value[again + 1].min())
        first = int(np.flatnonzero(ids == ids[position])[0])
        raise repeated(
            f"ids[{position}]={ids[position]} was given at position {first} already: "
            "an id belongs to one example; give each id once"
        )


def _first(flags: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(flags)), flags.shape))


# --- categories


def category_code(category: Hashable) -> float:
    """Give the number of a category, a function of the category alone. O(its length).

    A whole number from 0 to 2**53 - 1 is its own code; anything else gets 53 bits of a hash of what
    it is and what it looks like. So no table of categories is kept: there is none to agree on
    between two trees, none that would remember a category whose examples are all deleted, and a
    category never seen equals no other. Two of a million categories share a code with probability
    1 in 18,000, and are then one category.

    >>> category_code(7), category_code("Oslo") == category_code("Oslo") != category_code("Bergen")
    (7.0, True)
    """
    if isinstance(category, str):
        category = str.__str__(category)  # a numpy text, say, is the text that it equals
    elif isinstance(category, (int, float, np.integer, np.floating, np.bool_)):
        whole = 0 <= category < WHOLE_LIMIT and float(category).is_integer()
        if whole and float(category) == category:
            return float(category)
    digest = hashlib.blake2b(token(category).encode(errors="backslashreplace"), digest_size=8)
    return float(int.from_bytes(digest.digest(), "big") >> 11)


# --- labels, compared


def _equals_itself(label: object) -> bool:
    same: object = label == label  # noqa: PLR0124  (that is the question)
    if not isinstance(same, (bool, np.bool_)) or not same:
        return False
    # A tuple looks at identity first and so hides a nan inside.
    return not isinstance(label, (tuple, frozenset)) or all(map(_equals_itself, label))


def _compare(a: object, b: object) -> int:
    """-1, 0, 1 by type name, then by value; 0 also where the two have no order."""
    names = type(a).__name__, type(b).__name__
    if names[0] != names[1]:
        return _sign(*names)
    if isinstance(a, frozenset):  # < means "is a subset of" there, which is no order to sort by
        return 0
    try:
        return _sign(a, b)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  (whatever a comparison raises, there is no order)
        return 0


def _sign(a: Any, b: Any) -> int:
    return bool(a > b) - bool(a < b)


def token(label: object) -> str:
    """Write a label down so that equal labels read the same, in every process. O(its length).

    >>> token(1) == token(1.0) == token(True)
    True
    >>> token((1, "a")), token(0.5)
    ("tuple(number 1/1, str 'a')", 'number 1/2')
    """
    if isinstance(label, numbers.Number):
        return _token_of_number(label)
    if type(label) is tuple:
        return f"tuple({', '.join(map(token, label))})"
    if type(label) is frozenset:
        return f"frozenset({', '.join(sorted(map(token, label)))})"
    try:
        return f"{type(label).__name__} {label!r}"
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  (a label need not be printable)
        return f"{type(label).__name__} without repr"


def _token_of_number(label: Any) -> str:
    try:
        plain = label.real if isinstance(label, complex) and label.imag == 0 else label
        if not isinstance(plain, (numbers.Rational, float)):
            plain = float(plain)  # a Decimal, say, that equals a float is one label with it
        if plain == label:
            exact = Fraction(plain)
            # In base 16, because Python writes very long numbers in no other base.
            return f"number {exact.numerator:x}/{exact.denominator:x}"
    except (ArithmeticError, TypeError, ValueError):
        pass  # an infinity, a complex number, a Decimal beyond float
    return f"{type(label).__name__} {label!r}"


# --- in words

_repr = reprlib.Repr()
_repr.maxother = _repr.maxstring = _repr.maxlong = 60
_repr.maxlevel = 3


def show(value: object) -> str:
    """Write a value for a message: short, and without failing, whatever it is."""
    try:
        return " ".join(_repr.repr(value).split())
    except Exception:  # noqa: BLE001  (a message must not fail over what it reports)
        return f"a {type(value).__name__} that cannot be shown"


def say(error: Exception) -> str:
    """Write an error for a message: short, and without failing."""
    try:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
    except Exception:  # noqa: BLE001  (likewise)
        return type(error).__name__
