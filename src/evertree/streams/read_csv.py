"""Read a CSV file as a source, with the standard library alone.

The first line names the columns. A quoted field may hold delimiters and line ends; the line that an
error names is the one on which the field itself starts.
"""

from __future__ import annotations

import csv
import itertools
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evertree.encoding import show
from evertree.errors import InvalidFile, InvalidParameter
from evertree.streams.source import Source
from evertree.streams.text import (
    Category,
    Kind,
    LabelText,
    Number,
    Record,
    TextTable,
    category_columns,
    feature_columns,
    is_number,
    lines_of,
    listed,
)

MISSING = ("", "?", "NA", "nan", "NaN")
_DELIMITERS = (";", "\t", "|", ",")  # those that are often met
_SAMPLE = 100  # rows that are looked at to tell numbers from categories
_LINE_END = re.compile(r"\r\n|\r|\n")


def read_csv(
    path: str | os.PathLike[str],
    label: str | int,
    *,
    time: str | int | None = None,
    categorical: Collection[str | int] | Literal["infer"] = "infer",
    drop: Collection[str | int] = (),
    missing: Collection[str] = MISSING,
    names: Sequence[str] | None = None,
    delimiter: str = ",",
    encoding: str = "utf-8",
) -> Source:
    r"""Make a source of a CSV file. Looks at the first rows only; each reading streams the file.

    label        the column to predict, by name or position; its texts are the labels
    time         the column with the time: a number, or a date in ISO form
    categorical  columns that are categories. "infer": those that hold no number in the first 100
                 rows. A column that holds a number there is one of numbers, and a text in it an
                 error. Texts get the codes 0, 1, 2, ... in the order in which they appear
    drop         columns to leave out
    missing      texts that mean that a value is missing
    names        names of the columns of a file whose first line is no header

    Raises InvalidFile with line and column for the first thing that is wrong.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "people.csv"
    >>> _ = path.write_text("age,country,buys\n31,DE,yes\n?,FR,no\n")
    >>> source = read_csv(path, label="buys")
    >>> source.features, source.categorical
    (('age', 'country'), (1,))
    >>> [(x.tolist(), y) for x, y, _ in source]
    [([31.0, 0.0], 'yes'), ([nan, 1.0], 'no')]
    >>> source.categories
    {'country': {'DE': 0, 'FR': 1}}
    >>> folder.cleanup()
    """
    if len(delimiter) != 1:
        raise InvalidParameter(f"delimiter={show(delimiter)} is not one letter, such as ',' or ';'")
    listed("missing", missing)
    file = _CsvFile(Path(path), delimiter, encoding, names)
    header, sample = file.look()
    label_at, time_at, features = feature_columns(header, label, time, drop)
    if categorical == "infer":
        chosen = {j for j in features if _holds_no_number([row[j] for row in sample], missing)}
    else:
        chosen = category_columns(categorical, header, features)

    codes: dict[int, dict[str, int]] = {j: {} for j in features if j in chosen}
    kinds: dict[int, Kind] = {
        j: Category(missing, codes[j]) if j in codes else Number(missing) for j in features
    }
    table = TextTable(
        file.path, header, kinds, label_at, LabelText(missing), time_at, _line_of_field
    )
    return Source(
        name=file.path.name,
        features=tuple(header[j] for j in features),
        read=lambda: table.batches(file.records()),
        categorical=tuple(place for place, j in enumerate(features) if j in codes),
        timed=time_at is not None,
        categories={header[j]: codes[j] for j in codes},
    )


@dataclass(frozen=True)
class _CsvFile:
    path: Path
    delimiter: str
    encoding: str
    names: Sequence[str] | None

    def look(self) -> tuple[list[str], list[Sequence[str]]]:
        """Give the names of the columns, and the first rows that have as many fields."""
        records = self._all_records()
        if self.names is None:
            first = next(records, None)
            if first is None:
                raise InvalidFile(f"{self.path} is empty: its first line names the columns", line=1)
            header = [name.strip() for name in first.fields]
        else:
            header = list(self.names)
        self._check_names(header)
        self._check_delimiter(header)
        sample = itertools.islice(records, _SAMPLE)
        return header, [row.fields for row in sample if len(row.fields) == len(header)]

    def records(self) -> Iterator[Record]:
        """Give the rows, without the header."""
        records = self._all_records()
        return records if self.names is not None else itertools.islice(records, 1, None)

    def _all_records(self) -> Iterator[Record]:
        lines = lines_of(self.path, self.encoding, newline="")
        rows = csv.reader(lines, delimiter=self.delimiter, skipinitialspace=True, strict=True)
        line = 1
        while True:
            try:
                fields = next(rows, None)
            except csv.Error as error:
                raise InvalidFile(
                    f"{self.path}, line {line}: the row that starts here is not CSV ({error}): "
                    "look for a quote that is not closed, or not doubled",
                    line=line,
                ) from None
            if fields is None:
                return
            if fields:  # an empty line is no row
                yield Record(line, fields)
            line = rows.line_num + 1

    def _check_names(self, header: list[str]) -> None:
        twice = [name for place, name in enumerate(header) if name in header[:place]]
        if twice:
            place = len(header) - header[::-1].index(twice[0])
            raise InvalidFile(
                f"{self.path}, line 1, column {place}: the name {show(twice[0])} is used twice: "
                "columns have different names; give them with names=[...] if there is no header",
                line=1,
                column=place,
            )

    def _check_delimiter(self, header: list[str]) -> None:
        other = next((d for d in _DELIMITERS if d in header[0]), None) if len(header) == 1 else None
        if other is not None:
            raise InvalidFile(
                f"{self.path}, line 1: {show(header[0])} is one column alone, and a table has a "
                f"label and a feature: its delimiter may be another one, as in delimiter={other!r}",
                line=1,
            )


def _line_of_field(record: Record, position: int) -> int:
    before = record.fields[:position]
    return record.line + sum(len(_LINE_END.findall(field)) for field in before)


def _holds_no_number(texts: Sequence[str], missing: Collection[str]) -> bool:
    present = [text for text in texts if text not in missing]
    return bool(present) and not any(map(is_number, present))
