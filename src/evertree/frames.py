"""Tables with named columns: what each column holds, as numbers or as categories.

Reads DataFrames (pandas, polars, pyarrow: whatever narwhals knows), lists of dicts and arrays of
objects, a column at a time. Numbers, booleans, moments and durations become float64 without losing
anything: a moment is the microseconds since 1970 (in UTC where it has a time zone), a duration its
microseconds. Texts and categories stay what they are until `codes` gives each its number. Anything
else is refused by the name of its column. Knows the encoding of single values; nothing of trees.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from evertree import extras
from evertree.encoding import WHOLE_LIMIT, Encoder, Floats, Rows, category_code, number, say, show
from evertree.errors import EvertreeError, InvalidExample, MissingExtra

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

NUMBER: Final = "number"
MOMENT: Final = "moment"
ZONED: Final = "moment with a time zone"
DURATION: Final = "duration"
TEXT: Final = "text"
CATEGORY: Final = "category"  # of a type of categories, or named as one; a TEXT is one by itself
EMPTY: Final = "missing values only"
CATEGORIES: Final = frozenset({TEXT, CATEGORY})

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (moments without a zone count from here)
_EPOCH_UTC: Final = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_WAY_OUT: Final = "turn it into numbers, texts or categories, or leave it out"
_NUMBERS: Final = (bool, int, float, np.bool_, np.integer, np.floating)


class Column(NamedTuple):
    """One column: float64 with nan where missing; of categories the values, None where missing."""

    name: Hashable
    kind: str
    values: Floats | list[Any]


# --- tables into columns


def is_frame(table: object) -> bool:
    """Tell whether `table` is a DataFrame that narwhals can read. O(1).

    >>> is_frame([[1.0]]), is_frame(np.ones((1, 1)))
    (False, False)
    """
    if not _looks_like_frame(table):
        return False  # without asking narwhals, which takes longer to import than a tree to build
    narwhals = _narwhals()
    return narwhals is not None and bool(narwhals.dependencies.is_into_dataframe(table))


def _looks_like_frame(table: object) -> bool:
    kind = type(table)
    return hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "__dataframe__")


def read_frame(frame: Any) -> list[Column]:
    """Read a DataFrame, column by column. O(n·d)."""
    narwhals = _load_narwhals()
    try:
        table = narwhals.from_native(frame, eager_only=True)
        return [_of_series(series, narwhals) for series in table.iter_columns()]
    except (EvertreeError, MemoryError):
        raise
    except Exception as error:
        raise InvalidExample(
            f"X cannot be read ({say(error)}): "
            "a table has columns of different names, each of one plain type"
        ) from error


def read_dicts(rows: Sequence[Mapping[Hashable, Any]]) -> list[Column]:
    """Read a list of dicts; a key that a row does not have is missing there. O(n·d).

    >>> [(c.name, c.kind) for c in read_dicts([{"age": 31, "city": "Oslo"}, {"age": 62}])]
    [('age', 'number'), ('city', 'text')]
    """
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InvalidExample(
                f"X[{i}] is {show(row)} ({type(row).__name__}): the rows before it are dicts; "
                "give all of them as dicts, or none"
            )
    names = dict.fromkeys(name for row in rows for name in row)
    return [of_values(name, [row.get(name) for row in rows]) for name in names]


def read_objects(table: npt.NDArray[np.object_]) -> list[Column]:
    """Read a two-dimensional array of objects; a column is named by its position. O(n·d)."""
    return [of_values(j, table[:, j].tolist()) for j in range(table.shape[1])]


def of_values(name: Hashable, values: list[Any]) -> Column:
    """Find out what a list of plain values is, which must be of one kind. O(n).

    >>> of_values("age", [31, None, 62.5])
    Column(name='age', kind='number', values=array([31. ,  nan, 62.5]))
    >>> of_values("age", [31, "old"])
    Traceback (most recent call last):
    ...
    evertree.errors.InvalidExample: column 'age' has a number (31) in row 0 and a text ('old') in \
row 1: a column is of one kind; turn it into numbers, texts or categories, or leave it out
    """
    first: dict[str, int] = {}
    for i, value in enumerate(values):
        if not is_missing(value):
            first.setdefault(kind_of(name, value), i)
    if len(first) > 1:
        (a, i), (b, j), *_ = first.items()
        raise InvalidExample(
            f"column {show(name)} has a {a} ({show(values[i])}) in row {i} and a {b} "
            f"({show(values[j])}) in row {j}: a column is of one kind; {_WAY_OUT}"
        )
    kind = next(iter(first), EMPTY)
    if kind in CATEGORIES:
        return Column(name, kind, [None if is_missing(value) else value for value in values])
    numbers = (np.nan if is_missing(value) else value_of(name, value) for value in values)
    return Column(name, kind, np.fromiter(numbers, dtype=np.float64, count=len(values)))


# --- columns into numbers


def matrix(encoder: Encoder, X: Rows) -> Floats:
    """Read all rows of a batch, given in any form, as one valid float64 array. O(n·d)."""
    if _looks_like_frame(X) and _narwhals() is None:
        return _matrix_of_numbers(encoder, X)
    if not is_frame(X):
        return encoder.matrix(X)
    columns = read_frame(X)
    encoder.check_width(len(columns), "each row of X", X)
    return numbers_of(columns, encoder.categorical, len(X))


def _matrix_of_numbers(encoder: Encoder, frame: Any) -> Floats:
    """Read a DataFrame without narwhals, by way of numpy: columns of numbers, and no others."""
    try:
        return encoder.matrix(frame)
    except InvalidExample as error:
        raise InvalidExample(
            f"{error}. Other columns than numbers are read with narwhals, which is not installed: "
            'pip install "evertree[sklearn]"'
        ) from error


def numbers_of(columns: Sequence[Column], categorical: Iterable[int], n_rows: int) -> Floats:
    """Give the columns as one valid float64 array, with codes in the categorical ones. O(n·d).

    >>> numbers_of([of_values("age", [31, 62]), of_values("city", ["Oslo", None])], [1], 2).shape
    (2, 2)
    >>> numbers_of([of_values("city", ["Oslo", None])], [], 2)
    Traceback (most recent call last):
    ...
    evertree.errors.InvalidExample: column 'city' has categories ('Oslo', ...) and is not a \
categorical feature: name it as one, or turn it into numbers
    """
    positions = set(categorical)
    # Filled by column, as they come, and turned at once: the core wants rows.
    by_column = np.empty((len(columns), n_rows))
    for j, column in enumerate(columns):
        by_column[j] = codes(column) if j in positions else _numbers(column)
    values = np.ascontiguousarray(by_column.T)
    names = [show(column.name) for column in columns]
    Encoder(len(columns), sorted(positions)).check(
        values, lambda i, j: f"column {names[j]} in row {i}"
    )
    return values


def codes(column: Column) -> Floats:
    """Give each category its number, nan where it is missing; numbers are codes already. O(n).

    >>> codes(Column("zone", CATEGORY, [3, None])).tolist()
    [3.0, nan]
    """
    if column.kind not in CATEGORIES:
        return np.asarray(column.values)
    table = {
        value: np.nan if value is None else code_of(column.name, value)
        for value in set(column.values)
    }
    return np.fromiter(map(table.__getitem__, column.values), np.float64, len(column.values))


def _numbers(column: Column) -> Floats:
    if column.kind not in CATEGORIES:
        return np.asarray(column.values)
    example = next(value for value in column.values if value is not None)
    raise InvalidExample(
        f"column {show(column.name)} has categories ({show(example)}, ...) and is not a "
        "categorical feature: name it as one, or turn it into numbers"
    )


def check_text(column: Column, since: str) -> None:
    """Refuse a column without texts where texts were known, unless all is missing. O(n).

    Its numbers would be taken for codes, and equal none of the texts that look like them.

    >>> check_text(of_values("zip", [150, 5003]), "in fit")
    Traceback (most recent call last):
    ...
    evertree.errors.InvalidExample: column 'zip' has numbers (150, ...) and was text in fit: give \
texts, with .astype(str), or with dtype=str where the table is read
    """
    if column.kind in {TEXT, EMPTY}:
        return
    there = [value for value in np.asarray(column.values, object) if not is_missing(value)]
    if not there or any(isinstance(value, str) for value in there):
        return
    found = f"values of the kind {column.kind}"
    if column.kind in {NUMBER, CATEGORY}:
        first = int(there[0]) if column.kind == NUMBER and there[0].is_integer() else there[0]
        found = f"{'numbers' if column.kind == NUMBER else 'categories'} ({show(first)}, ...)"
    raise InvalidExample(
        f"column {show(column.name)} has {found} and was text {since}: "
        "give texts, with .astype(str), or with dtype=str where the table is read"
    )


# --- one value


def is_missing(value: object) -> bool:
    """Tell whether a value stands for none: None, nan, or pandas' NA and NaT. O(1).

    >>> is_missing(None), is_missing(float("nan")), is_missing(0), is_missing("")
    (True, True, False, False)
    """
    if value is None or isinstance(value, (float, np.floating)):
        return value is None or value != value  # noqa: PLR0124  (nan alone does not equal itself)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return type(value).__name__ in {"NAType", "NaTType"}


def kind_of(name: Hashable, value: object) -> str:
    """Tell the kind of a value that is not missing, or refuse it by name. O(1).

    >>> kind_of("when", dt.date(2024, 2, 29)), kind_of("city", "Oslo"), kind_of("open", True)
    ('moment', 'text', 'number')
    >>> kind_of("tags", {"a"})
    Traceback (most recent call last):
    ...
    evertree.errors.InvalidExample: column 'tags' has {'a'} (set): a feature is a number, a \
boolean, a text, a moment or a duration; turn it into numbers, texts or categories, or leave it out
    """
    if isinstance(value, (dt.timedelta, np.timedelta64)):
        return DURATION  # asked first: to numpy, a duration is an integer
    if isinstance(value, _NUMBERS):
        return NUMBER
    if isinstance(value, str):
        return TEXT
    if isinstance(value, dt.datetime):
        return MOMENT if value.tzinfo is None else ZONED
    if isinstance(value, (dt.date, np.datetime64)):
        return MOMENT
    raise InvalidExample(
        f"column {show(name)} has {show(value)} ({type(value).__name__}): a feature is a number, "
        f"a boolean, a text, a moment or a duration; {_WAY_OUT}"
    )


def value_of(name: Hashable, value: Any) -> float:
    """Give a number, a moment or a duration as a float, exactly. O(1).

    >>> value_of("when", dt.date(1970, 1, 2))
    86400000000.0
    """
    if isinstance(value, (np.datetime64, np.timedelta64)):
        whole = value.astype("M8[us]" if isinstance(value, np.datetime64) else "m8[us]")
        return _microseconds(name, int(whole.astype(np.int64)), inexact=bool(whole != value))
    if isinstance(value, dt.datetime):
        since = value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)
    elif isinstance(value, dt.date):
        since = dt.datetime.combine(value, dt.time()) - _EPOCH
    elif isinstance(value, dt.timedelta):
        since = value
    else:
        return number(value, f"column {show(name)}")
    # pandas' own classes have nanoseconds on top of what datetime knows.
    nanoseconds = getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0)
    return _microseconds(name, since // _MICROSECOND, inexact=bool(nanoseconds))


def _microseconds(name: Hashable, count: int, *, inexact: bool) -> float:
    return float(_whole_microseconds(name, np.array([count]), np.array([inexact]))[0])


def code_of(name: Hashable, category: Any) -> float:
    """Give the number of a category of the column `name`. O(its length).

    >>> code_of("zone", 3)
    3.0
    """
    # What looks different in every process can't be known again by what it looks like.
    own_look: object = type(category).__repr__
    if own_look is object.__repr__:
        raise InvalidExample(
            f"column {show(name)} has the category {show(category)} "
            f"({type(category).__name__}): a category is told by its repr; give texts or numbers"
        )
    return category_code(category)


# --- series of narwhals


def _narwhals() -> Any:
    """Give the module, or None where it is not installed."""
    try:
        return _load_narwhals()
    except MissingExtra:
        return None


def _load_narwhals() -> Any:
    return extras.load("narwhals.stable.v2", "sklearn", "reading a DataFrame")


def _of_series(series: nw.Series[Any], narwhals: Any) -> Column:
    present = series.drop_nulls()
    if not len(present):
        return Column(series.name, EMPTY, np.full(len(series), np.nan))
    if series.dtype == narwhals.Object:
        missing = series.is_null().to_list()
        values = [None if gone else v for v, gone in zip(series.to_list(), missing, strict=True)]
        return of_values(series.name, values)
    kind, read = _reader(series, narwhals)
    found = read(series.name, present)
    if kind == CATEGORY and all(isinstance(value, str) for value in set(found)):
        kind = TEXT
    if len(present) == len(series):
        return Column(series.name, kind, found)
    there = ~series.is_null().to_numpy().astype(bool)
    filled: npt.NDArray[Any] = np.full(len(series), None if kind in CATEGORIES else np.nan)
    filled[there] = found
    return Column(series.name, kind, filled.tolist() if kind in CATEGORIES else filled)


_Reader = Callable[[Hashable, "nw.Series[Any]"], Any]


def _reader(series: nw.Series[Any], narwhals: Any) -> tuple[str, _Reader]:
    """Choose how a series without nulls is read."""
    dtype = series.dtype
    if dtype.is_float():
        return NUMBER, lambda _, s: s.cast(narwhals.Float64).to_numpy()
    if dtype.is_integer():
        return NUMBER, _integers
    if dtype == narwhals.Boolean:
        return NUMBER, lambda _, s: s.cast(narwhals.Int8).cast(narwhals.Float64).to_numpy()
    if isinstance(dtype, (narwhals.String, narwhals.Categorical, narwhals.Enum)):
        kind = TEXT if isinstance(dtype, narwhals.String) else CATEGORY
        return kind, lambda _, s: _as_objects(s.to_list())
    if isinstance(dtype, (narwhals.Datetime, narwhals.Date)):
        zoned = getattr(dtype, "time_zone", None) is not None
        return ZONED if zoned else MOMENT, _moments
    if dtype == narwhals.Duration:
        return DURATION, _durations
    raise InvalidExample(
        f"column {show(series.name)} is of type {dtype}: a feature is a number, a boolean, a text, "
        f"a category, a moment or a duration; {_WAY_OUT}"
    )


def _as_objects(values: list[Any]) -> npt.NDArray[np.object_]:
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def _integers(name: Hashable, series: nw.Series[Any]) -> Floats:
    for extreme in (series.min(), series.max()):
        if abs(int(extreme)) > WHOLE_LIMIT:
            number(int(extreme), f"column {show(name)}")  # refuses it, in words
    return series.to_numpy().astype(np.float64)


def _moments(name: Hashable, series: nw.Series[Any]) -> Floats:
    nanoseconds = getattr(series.dtype, "time_unit", None) == "ns"
    inexact = series.dt.timestamp("ns").to_numpy() % 1000 != 0 if nanoseconds else None
    return _whole_microseconds(name, series.dt.timestamp("us").to_numpy(), inexact)


def _durations(name: Hashable, series: nw.Series[Any]) -> Floats:
    nanoseconds = getattr(series.dtype, "time_unit", None) == "ns"
    inexact = series.dt.total_nanoseconds().to_numpy() % 1000 != 0 if nanoseconds else None
    return _whole_microseconds(name, series.dt.total_microseconds().to_numpy(), inexact)


def _whole_microseconds(
    name: Hashable, counts: npt.NDArray[Any], inexact: npt.NDArray[np.bool_] | None
) -> Floats:
    floats = counts.astype(np.float64)
    changed = floats.astype(np.int64) != counts
    if inexact is not None:
        changed |= inexact
    if changed.any():
        i = int(np.argmax(changed))
        raise InvalidExample(
            f"column {show(name)} has a time of {counts[i]} microseconds and a fraction or too "
            "many digits: times are kept as float64, in whole microseconds; "
            "round them, or give numbers of your own"
        )
    return floats
