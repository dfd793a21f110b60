"""From fields of text to batches of numbers: what CSV and ARFF have in common.

A record is one row as texts, with the line it starts at. Each column has a kind that turns a whole
column of a batch into numbers, or names the first value that it cannot take; the table adds file,
line and column to that. Nothing is repaired: a value is read, is one of the texts that mean
"missing", or is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from evertree.encoding import WHOLE_LIMIT, show
from evertree.errors import InvalidFile, InvalidParameter
from evertree.streams.source import BATCH, Batch, Time


class Record(NamedTuple):
    """One row of a text file, and the line where it starts (from 1)."""

    line: int
    fields: Sequence[str]


class BadValue(Exception):
    """A column cannot take the value at this place of the batch; `reason` says why."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason


class Kind(Protocol):
    """What a column holds."""

    def read(self, texts: Sequence[str]) -> Any:
        """Turn the texts of one batch into values; raise BadValue for the first that is none."""


# --- kinds of columns


@dataclass(frozen=True)
class Number:
    """Finite numbers; nan where the text means that the value is missing."""

    missing: Collection[str]

    def read(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Read a column, all at once where nothing is odd about it."""
        # A text that means missing may look like a number: -999, say.
        if any(is_number(text) and text in texts for text in self.missing):
            return self._one_by_one(texts)
        try:
            values = np.array(list(map(float, texts)), dtype=np.float64)
        except ValueError:
            return self._one_by_one(texts)
        plain = np.abs(values) < WHOLE_LIMIT  # False for inf, for nan, and for what was rounded
        if plain.all() and "_" not in "".join(texts):
            return values
        return self._one_by_one(texts)

    def _one_by_one(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        values = np.empty(len(texts))
        for place, text in enumerate(texts):
            values[place] = math.nan if text in self.missing else _number(text, place)
        return values


@dataclass(frozen=True)
class Category:
    """Codes of texts: 0, 1, 2, ... in the order of `codes`, which grows unless it is `closed`."""

    missing: Collection[str]
    codes: dict[str, int]
    closed: bool = False

    def read(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Read a column; a text not seen before gets the next code."""
        values = np.empty(len(texts))
        for place, text in enumerate(texts):
            code = self.codes.get(text)
            if code is not None:
                values[place] = code
            elif text in self.missing:
                values[place] = math.nan
            elif self.closed:
                raise BadValue(place, _not_declared(text, self.codes))
            else:
                values[place] = self.codes[text] = len(self.codes)
        return values


@dataclass(frozen=True)
class LabelText:
    """Labels as they stand in the file; `declared` lists those that may occur, if not empty."""

    missing: Collection[str]
    declared: Collection[str] = ()

    def read(self, texts: Sequence[str]) -> list[str]:
        """Read a column of labels; none may be missing."""
        for label in dict.fromkeys(texts):
            if label in self.missing and label not in self.declared:
                raise BadValue(
                    texts.index(label),
                    f"{show(label)} means missing, and an example has a label: leave the row out",
                )
            if self.declared and label not in self.declared:
                raise BadValue(texts.index(label), _not_declared(label, self.declared))
        return list(texts)


class TimeText:
    """Times: numbers, or dates in ISO form such as 2026-11-16 or 2026-11-16T08:30:00+01:00."""

    def read(self, texts: Sequence[str]) -> list[Time]:
        """Read a column of times; none may be missing."""
        return [_time(text, place) for place, text in enumerate(texts)]


def is_number(text: str) -> bool:
    """Tell whether Python takes a text for a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(text: str, place: int) -> float:
    try:
        value = math.inf if "_" in text else float(text)
    except ValueError:
        value = math.inf
    if not math.isfinite(value) and not math.isnan(value):
        raise BadValue(
            place,
            f"{show(text)} is not a finite number: correct it, name the column in categorical=, "
            "or name the text in missing=",
        )
    digits = text.strip().lstrip("+-")
    if abs(value) >= WHOLE_LIMIT and digits.isdigit() and int(digits) > WHOLE_LIMIT:
        raise BadValue(
            place,
            f"{show(text)} is a whole number that float64 cannot hold exactly (they go up to "
            "2**53): round it yourself, or name the column in categorical=",
        )
    return value


def _time(text: str, place: int) -> Time:
    try:
        number = float(text)
    except ValueError:
        pass
    else:
        if math.isfinite(number):
            return number
    try:
        # Python before 3.11 does not know the Z that stands for UTC.
        return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        raise BadValue(
            place,
            f"{show(text)} is neither a number nor a date such as 2026-11-16 or "
            "2026-11-16T08:30:00: every example of a timed source has a time",
        ) from None


def _not_declared(text: str, declared: Iterable[str]) -> str:
    names = list(declared)
    return (
        f"{show(text)} is not one of the declared values {', '.join(names[:8])}"
        f"{', ...' if len(names) > 8 else ''}: correct it, or add it to the declaration"
    )


# --- the table


@dataclass(frozen=True)
class TextTable:
    """Columns of a text file: which are features, which is the label, which the time."""

    path: Path
    names: Sequence[str]
    kinds: dict[int, Kind]  # of the features, by position in the file, in the order of features
    label: int
    label_kind: LabelText
    time: int | None
    line_of: Callable[[Record, int], int]  # the line on which a field of a record starts

    def batches(self, records: Iterator[Record]) -> Iterator[Batch]:
        """Turn records into batches; raise InvalidFile at the first value that is wrong."""
        while batch := self._take(records):
            columns = list(zip(*(record.fields for record in batch), strict=True))
            X = np.empty((len(batch), len(self.kinds)))
            for j, (position, kind) in enumerate(self.kinds.items()):
                X[:, j] = self._read(kind, columns, position, batch)
            y = self._read(self.label_kind, columns, self.label, batch)
            times = None if self.time is None else self._read(TimeText(), columns, self.time, batch)
            yield Batch(X, y, times)

    def _take(self, records: Iterator[Record]) -> list[Record]:
        batch = []
        for record in records:
            if len(record.fields) != len(self.names):
                raise InvalidFile(
                    f"{self.path}, line {record.line}: {len(record.fields)} fields where "
                    f"{len(self.names)} are expected ({show(list(record.fields))}): every row has "
                    "one field per column; look for a delimiter without quotes",
                    line=record.line,
                )
            batch.append(record)
            if len(batch) == BATCH:
                break
        return batch

    def _read(self, kind: Kind, columns: Any, position: int, batch: list[Record]) -> Any:
        try:
            return kind.read(columns[position])
        except BadValue as bad:
            line = self.line_of(batch[bad.place], position)
            raise InvalidFile(
                f"{self.path}, line {line}, column {position + 1} ({self.names[position]}): "
                f"{bad.reason}",
                line=line,
                column=position + 1,
            ) from None


def find_column(name: Any, names: Sequence[str], argument: str) -> int:
    """Give the position of a column that is named, or counted from 0 (or from the end: -1).

    Digits are a position where no column has that name: on a command line everything is text.

    >>> find_column("b", ["a", "b"], "label"), find_column(-1, ["a", "b"], "label")
    (1, 1)
    >>> find_column("1", ["a", "b"], "label"), find_column("1", ["1", "b"], "label")
    (1, 0)
    """
    if isinstance(name, str) and name in names:
        return list(names).index(name)
    digits = isinstance(name, str) and name.isascii() and name.isdecimal()
    place = int(name) if digits else name
    if isinstance(place, int) and -len(names) <= place < len(names):
        return place % len(names)
    raise InvalidParameter(
        f"{argument}={show(name)} is not a column: there are {len(names)}, "
        f"{', '.join(map(str, names[:12]))}{', ...' if len(names) > 12 else ''}; give one of these "
        "names, or its position from 0"
    )


def feature_columns(
    names: Sequence[str],
    label: str | int,
    time: str | int | None,
    drop: Collection[str | int],
) -> tuple[int, int | None, list[int]]:
    """Sort the columns out: the positions of the label, of the time, and of the features."""
    label_at = find_column(label, names, "label")
    time_at = None if time is None else find_column(time, names, "time")
    gone = {find_column(name, names, "drop") for name in listed("drop", drop)}
    features = [j for j in range(len(names)) if j not in {label_at, time_at, *gone}]
    if not features:
        raise InvalidParameter(
            f"no column is left as a feature (label={show(label)}, time={show(time)}, "
            f"drop={show(list(drop))}): a row has at least one"
        )
    return label_at, time_at, features


def category_columns(
    categorical: Collection[str | int], names: Sequence[str], features: Sequence[int]
) -> set[int]:
    """Find the features that are named as categories."""
    chosen = set()
    for name in listed("categorical", categorical):
        position = find_column(name, names, "categorical")
        if position not in features:
            raise InvalidParameter(
                f"categorical={show(name)} is no feature but the label, the time or left out: "
                "name features only"
            )
        chosen.add(position)
    return chosen


def listed(name: str, values: Collection[Any]) -> Collection[Any]:
    """Take a list, and refuse a text: its letters would be taken one by one."""
    if isinstance(values, str):
        raise InvalidParameter(f"{name}={show(values)} is not a list: write [{values!r}]")
    return values


def lines_of(path: Path, encoding: str, newline: str | None = None) -> Iterator[str]:
    """Read a text file line by line; refuse the first line that is not of this encoding.

    What cannot be decoded becomes a surrogate first. This way the line is known: a decoder that
    fails only knows how many bytes it has read.
    """
    # utf-8-sig is UTF-8 with or without a byte order mark.
    codec = "utf-8-sig" if encoding.lower() in {"utf-8", "utf8"} else encoding
    try:
        file = path.open(encoding=codec, errors="surrogateescape", newline=newline)
    except LookupError:
        raise InvalidParameter(
            f"encoding={show(encoding)} is not an encoding that Python knows: try 'utf-8'"
        ) from None
    number = 0
    with file:
        try:
            for number, line in enumerate(file, start=1):
                if not line.isascii() and any("\udc80" <= letter <= "\udcff" for letter in line):
                    raise _not_text(path, number, encoding)
                yield line
        except UnicodeError:
            raise _not_text(path, number + 1, encoding) from None


def _not_text(path: Path, line: int, encoding: str) -> InvalidFile:
    return InvalidFile(
        f"{path}, line {line}: not {encoding} text: name the encoding of the file, as in "
        "encoding='latin-1'",
        line=line,
    )
