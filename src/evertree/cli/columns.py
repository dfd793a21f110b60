"""What was understood of a file: which columns are numbers, which categories of how many values.

All of it is told by the first batch of rows, so it costs the same for a file of any length.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from evertree.streams import Batch, Source

_SHOWN = 12  # columns in one line
_ENOUGH = 20  # values: among fewer it is no wonder that all are different
_ALMOST_ALL = 0.9


@dataclass(frozen=True)
class Column:
    """A feature as it was read: `values` counts the different ones of a category."""

    name: str
    values: int | None = None  # None: a column of numbers
    rows: int = 0  # that have a value
    date: bool = False

    def __str__(self) -> str:
        """Say it in a few words.

        >>> print(Column("age"), Column("city", values=3, rows=100), sep=" · ")
        age: number · city: category, 3 values
        """
        if self.values is None:
            return f"{self.name}: number"
        return f"{self.name}: category, {self.values:,} value{'' if self.values == 1 else 's'}"

    @property
    def tells_rows_apart(self) -> bool:
        """Whether almost every row has a value of its own, as with an id or a moment."""
        return (
            self.values is not None
            and self.rows >= _ENOUGH
            and self.values >= _ALMOST_ALL * self.rows
        )


def columns_of(source: Source, first: Batch | None) -> list[Column]:
    """Describe the features of a source by its first rows. O(rows)."""
    categorical = set(source.categorical)
    return [
        _category(source, j, first) if j in categorical else Column(name)
        for j, name in enumerate(source.features)
    ]


def _category(source: Source, j: int, first: Batch | None) -> Column:
    name = source.features[j]
    if first is None:
        return Column(name, values=0)
    present = first.X[:, j][~np.isnan(first.X[:, j])]
    texts = source.categories.get(name, {})
    return Column(name, len(np.unique(present)), len(present), _is_date(next(iter(texts), "")))


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text.removesuffix("Z"))
    except ValueError:
        return False
    return True


def in_one_line(columns: list[Column], rows: int, shown: int | None = _SHOWN) -> str:
    """Say what the columns are, by so many rows; None shows all of them.

    >>> in_one_line([Column("age"), Column("city", 2, 50)], 50)
    'columns, by the first 50 rows: age: number · city: category, 2 values'
    """
    texts = [str(column) for column in columns[:shown]]
    if len(texts) < len(columns):
        texts.append(f"{len(columns) - len(texts)} more")
    return f"columns, by the first {rows:,} rows: {' · '.join(texts)}"


def warning_of(columns: list[Column]) -> str | None:
    """Warn of categories in which almost every row is different: nothing can be learned there.

    >>> print(warning_of([Column("age"), Column("day", 99, 100, date=True)]))
    almost every row has a value of its own in day: nothing can be learned from it; leave it out \
with --drop day, or name it as the time of the rows with --time day
    >>> warning_of([Column("city", 3, 100)])
    """
    odd = [column for column in columns if column.tells_rows_apart]
    if not odd:
        return None
    it = "it" if len(odd) == 1 else "them"
    names = [column.name for column in odd]
    dates = [column.name for column in odd if column.date]
    advice = f"leave {it} out with --drop {shlex.quote(','.join(names))}"
    if dates:
        date = "it" if len(odd) == 1 else dates[0]
        advice += f", or name {date} as the time of the rows with --time {shlex.quote(dates[0])}"
    return (
        f"almost every row has a value of its own in {', '.join(names)}: nothing can be learned "
        f"from {it}; {advice}"
    )
