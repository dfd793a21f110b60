"""Read Parquet files and data frames as sources, through Arrow (the extra `streams`).

Every frame that speaks the Arrow C stream interface will do: pandas, polars, pyarrow, DuckDB, ...
The types of the columns decide: numbers and booleans are numbers, texts and dictionaries are
categories, a null is a missing value. Other types are refused, or left out with drop.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evertree.encoding import WHOLE_LIMIT, show
from evertree.errors import EvertreeError, InvalidExample, InvalidFile, InvalidParameter
from evertree.extras import load
from evertree.streams.source import BATCH, Batch, Source
from evertree.streams.text import category_columns, feature_columns


def read_parquet(
    path: str | os.PathLike[str],
    label: str | int,
    *,
    time: str | int | None = None,
    categorical: Collection[str | int] = (),
    drop: Collection[str | int] = (),
) -> Source:
    """Make a source of a Parquet file. Reads the schema only; each reading streams the file.

    Columns of texts are categories anyway; `categorical` names columns of numbers that are codes.
    An error names the row, from 1, as its line.

    >>> import tempfile, pyarrow, pyarrow.parquet
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "people.parquet"
    >>> table = pyarrow.table({"age": [31, None], "country": ["DE", "FR"], "buys": ["yes", "no"]})
    >>> pyarrow.parquet.write_table(table, path)
    >>> [(x.tolist(), y) for x, y, _ in read_parquet(path, label="buys")]
    [([31.0, 0.0], 'yes'), ([nan, 1.0], 'no')]
    >>> folder.cleanup()
    """
    pa = load("pyarrow", "streams", "reading Parquet")
    pq = load("pyarrow.parquet", "streams", "reading Parquet")
    place = Path(path)

    def open_file() -> Any:
        try:
            return pq.ParquetFile(place)
        except pa.ArrowException as error:
            raise InvalidFile(f"{place} is not a Parquet file ({error})") from None

    def read() -> Iterator[Any]:
        with open_file() as file:
            try:
                yield from file.iter_batches(batch_size=BATCH)
            except (pa.ArrowException, OSError) as error:
                raise InvalidFile(f"{place} is damaged ({error}): get it again") from None

    with open_file() as file:
        schema, length = file.schema_arrow, file.metadata.num_rows

    def wrong(row: int, name: str, column: int, reason: str) -> InvalidFile:
        return InvalidFile(
            f"{place}, row {row + 1}, column {column + 1} ({name}): {reason}",
            line=row + 1,
            column=column + 1,
        )

    layout = _layout(schema, label, time, categorical, drop, wrong)
    return _source(place.name, layout, read, length)


def from_frame(
    frame: Any,
    label: str | int,
    *,
    time: str | int | None = None,
    categorical: Collection[str | int] = (),
    drop: Collection[str | int] = (),
    name: str = "frame",
) -> Source:
    """Make a source of a data frame: pandas, polars, an Arrow table, whatever speaks Arrow.

    The frame's index is left out. A one-way stream, such as a RecordBatchReader, can be read once.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31, 62], "country": ["DE", None], "buys": [True, False]})
    >>> [(x.tolist(), y) for x, y, _ in from_frame(frame, label="buys")]
    [([31.0, 0.0], True), ([62.0, nan], False)]
    """
    pa = load("pyarrow", "streams", "reading frames")
    if not hasattr(frame, "__arrow_c_stream__"):
        raise InvalidParameter(
            f"frame={show(frame)} ({type(frame).__name__}) does not speak Arrow: give a frame of "
            "pandas (2.2 or newer) or polars, or an Arrow table; arrays go to from_arrays(X, y)"
        )
    if type(frame).__module__.partition(".")[0] == "pandas":
        frame = frame.reset_index(drop=True)

    def reader() -> Any:
        try:
            return pa.RecordBatchReader.from_stream(frame)
        except pa.ArrowException as error:
            raise InvalidExample(
                f"the frame cannot be turned into Arrow ({error}): a column has values of one type"
            ) from None

    def read() -> Iterator[Any]:
        for batch in reader():
            for start in range(0, len(batch), BATCH):
                yield batch.slice(start, BATCH)

    def wrong(row: int, name: str, _: int, reason: str) -> InvalidExample:
        return InvalidExample(f"row {row} of the frame, column {show(name)}: {reason}")

    schema = frame.schema if isinstance(frame, pa.RecordBatchReader) else reader().schema
    layout = _layout(schema, label, time, categorical, drop, wrong)
    length = len(frame) if hasattr(frame, "__len__") else None
    return _source(name, layout, read, length)


# --- columns


@dataclass(frozen=True)
class _Layout:
    names: list[str]
    label: int
    time: int | None
    features: list[int]
    categorical: set[int]
    codes: dict[int, dict[str, int]]  # of the columns of texts
    wrong: Callable[[int, str, int, str], EvertreeError]

    def batch(self, record: Any, start: int) -> Batch:
        """Turn one record batch, whose first row is number `start`, into numbers."""
        X = np.empty((len(record), len(self.features)))
        for place, j in enumerate(self.features):
            column = record.column(j)
            X[:, place] = (
                _coded(column, self.codes[j]) if j in self.codes else self._number(column, j, start)
            )
        return Batch(X, self._labels(record, start), self._times(record, start))

    def _number(self, column: Any, j: int, start: int) -> npt.NDArray[np.float64]:
        pa = load("pyarrow", "streams", "reading Arrow data")
        try:
            values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            rounded = np.abs(values) >= WHOLE_LIMIT
            reason = "float64 cannot hold it exactly (whole numbers go up to 2**53): round it"
            raise self._wrong(column, rounded, j, start, reason) from None
        infinite = np.isinf(values)
        if infinite.any():
            reason = "a feature is finite, or missing: replace it by null or by a large number"
            raise self._wrong(column, infinite, j, start, reason)
        found: npt.NDArray[np.float64] = values
        return found

    def _wrong(
        self, column: Any, flags: npt.NDArray[np.bool_], j: int, start: int, reason: str
    ) -> EvertreeError:
        row = int(np.argmax(flags))
        return self.wrong(start + row, self.names[j], j, f"{column[row].as_py()}: {reason}")

    def _labels(self, record: Any, start: int) -> list[Any]:
        column = record.column(self.label)
        if column.null_count:
            reason = "an example has a label: leave out the rows without"
            raise self._wrong(column, _nulls(column), self.label, start, reason)
        # Each different label is made once; to_pylist() would make one object per row.
        encoded = column if _is_dictionary(column.type) else column.dictionary_encode()
        labels = encoded.dictionary.to_pylist()
        return [labels[code] for code in encoded.indices.to_numpy().tolist()]

    def _times(self, record: Any, start: int) -> list[Any] | None:
        if self.time is None:
            return None
        pa = load("pyarrow", "streams", "reading Arrow data")
        column = record.column(self.time)
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("us"))
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        if column.null_count:
            reason = "every example of a timed source has a time: leave out the rows without"
            raise self._wrong(column, _nulls(column), self.time, start, reason)
        times: list[Any] = column.to_pylist()
        return times


def _layout(
    schema: Any,
    label: str | int,
    time: str | int | None,
    categorical: Collection[str | int],
    drop: Collection[str | int],
    wrong: Callable[[int, str, int, str], EvertreeError],
) -> _Layout:
    names = list(schema.names)
    label_at, time_at, features = feature_columns(names, label, time, drop)
    texts = {j for j in features if _is_text(schema.field(j).type)}
    for j in features:
        if j not in texts and not _is_number(schema.field(j).type):
            raise InvalidParameter(
                f"column {show(names[j])} is of type {schema.field(j).type}, which is no feature: "
                f"features are numbers or texts; leave it out with drop=[{names[j]!r}]"
            )
    if time_at is not None and not _is_time(schema.field(time_at).type):
        raise InvalidParameter(
            f"time={show(time)} is a column of type {schema.field(time_at).type}: a time is a "
            "number, a date or a timestamp; convert it first"
        )
    chosen = category_columns(categorical, names, features)
    codes: dict[int, dict[str, int]] = {j: {} for j in features if j in texts}
    return _Layout(names, label_at, time_at, features, chosen | texts, codes, wrong)


def _source(
    name: str, layout: _Layout, read: Callable[[], Iterable[Any]], length: int | None
) -> Source:
    def batches() -> Iterator[Batch]:
        start = 0
        for record in read():
            yield layout.batch(record, start)
            start += len(record)

    return Source(
        name=name,
        features=tuple(layout.names[j] for j in layout.features),
        read=batches,
        categorical=tuple(p for p, j in enumerate(layout.features) if j in layout.categorical),
        length=length,
        timed=layout.time is not None,
        categories={layout.names[j]: layout.codes[j] for j in layout.codes},
    )


def _coded(column: Any, codes: dict[str, int]) -> npt.NDArray[np.float64]:
    """Code a column of texts; a text not seen before gets the next code."""
    pa = load("pyarrow", "streams", "reading Arrow data")
    if not _is_dictionary(column.type):
        column = column.cast(pa.large_string()).dictionary_encode()
    texts = column.dictionary.to_pylist()
    of_text = np.array([codes.setdefault(text, len(codes)) for text in texts], dtype=np.float64)
    places = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
    present = ~_nulls(column)
    values = np.full(len(column), np.nan)
    values[present] = of_text[places[present]]
    return values


def _nulls(column: Any) -> npt.NDArray[np.bool_]:
    nulls: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _is_dictionary(type_: Any) -> bool:
    return bool(load("pyarrow", "streams", "reading Arrow data").types.is_dictionary(type_))


def _is_text(type_: Any) -> bool:
    types = load("pyarrow", "streams", "reading Arrow data").types
    if _is_dictionary(type_):
        return _is_text(type_.value_type)
    return bool(
        types.is_string(type_)
        or types.is_large_string(type_)
        or getattr(types, "is_string_view", lambda _: False)(type_)
    )


def _is_number(type_: Any) -> bool:
    types = load("pyarrow", "streams", "reading Arrow data").types
    return any(
        test(type_)
        for test in (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)
    )


def _is_time(type_: Any) -> bool:
    types = load("pyarrow", "streams", "reading Arrow data").types
    return _is_number(type_) or types.is_timestamp(type_) or types.is_date(type_)
