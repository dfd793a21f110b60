"""Places: where each named feature stands in the rows of a tree, when features come and go.

A tree has a fixed number of places, each for numbers or for categories. A new feature takes a spare
one; when there is none, all are laid out anew, in the order of the names, with as many to spare as
there are features of each kind. So d features, however they come, cost O(log d) moves.
Layouts never change: a new feature gives a new layout, and the old one is still good if it fails.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evertree.encoding import Encoder, Floats, show, token
from evertree.errors import InvalidExample
from evertree.frames import (
    CATEGORIES,
    CATEGORY,
    EMPTY,
    NUMBER,
    TEXT,
    Column,
    check_text,
    code_of,
    codes,
    is_missing,
    kind_of,
    value_of,
)

_NAN = float("nan")


class Place(NamedTuple):
    """A position in the row, and the kind of what stands there."""

    position: int
    kind: str


class Layout:
    """All places, and the spare ones.

    >>> layout = Layout().with_features({"city": "category", "age": "number"})
    >>> layout.n_features, layout.categorical, layout.row({"age": 31})
    (2, [1], [31.0, nan])
    """

    __slots__ = ("_spare", "categorical", "n_features", "places")

    def __init__(
        self,
        places: Mapping[Hashable, Place] | None = None,
        spare: tuple[Sequence[int], Sequence[int]] = ((0,), ()),
        n_features: int = 1,
        categorical: Sequence[int] = (),
    ) -> None:
        self.places = dict(places or {})
        self._spare = spare  # for numbers, for categories
        self.n_features = n_features  # at least one: a tree has no fewer
        self.categorical = list(categorical)

    def with_features(self, kinds: Mapping[Hashable, str]) -> Layout:
        """Give a layout in which these new features have a place as well. O(d·log d)."""
        names = sorted(kinds, key=token)
        wanted = (
            [n for n in names if kinds[n] not in CATEGORIES],
            [n for n in names if kinds[n] in CATEGORIES],
        )
        if any(len(w) > len(s) for w, s in zip(wanted, self._spare, strict=True)):
            return self._anew(kinds)
        taken = [
            pair
            for w, s in zip(wanted, self._spare, strict=True)
            for pair in zip(w, s, strict=False)
        ]
        places = {name: Place(position, kinds[name]) for name, position in taken}
        left = tuple(s[len(w) :] for w, s in zip(wanted, self._spare, strict=True))
        return Layout(self.places | places, (left[0], left[1]), self.n_features, self.categorical)

    def _anew(self, new: Mapping[Hashable, str]) -> Layout:
        kinds = {name: place.kind for name, place in self.places.items()} | dict(new)
        names = sorted(kinds, key=token)
        places = {name: Place(j, kinds[name]) for j, name in enumerate(names)}
        categories = [place.position for place in places.values() if place.kind in CATEGORIES]
        # The first layout has nothing to spare: most streams keep their features.
        n_numbers = len(names) - len(categories)
        spare = range(len(names), 2 * len(names)) if self.places else range(0)
        numbers_spare, categories_spare = spare[:n_numbers], spare[n_numbers:]
        return Layout(
            places,
            (numbers_spare, categories_spare),
            len(names) + len(spare),
            [*categories, *categories_spare],
        )

    def moved(self, rows: Floats, old: Layout) -> Floats:
        """Move rows of an old layout into this one. O(n·d)."""
        result = np.full((len(rows), self.n_features), np.nan)
        for name, place in self.places.items():
            if name in old.places:
                result[:, place.position] = rows[:, old.places[name].position]
        return result

    def needed(self, rows: Floats) -> Layout:
        """Give the layout for what is in these rows, with nothing to spare. O(n·d)."""
        there = [not np.isnan(column).all() for column in rows.T]
        places = self.places.items()
        return Layout().with_features({n: p.kind for n, p in places if there[p.position]})

    # --- rows

    def row(self, x: Mapping[Hashable, Any]) -> list[float]:
        """Put the values of a dict into their places; leave out what has none. O(d)."""
        row = [_NAN] * self.n_features
        for name, value in x.items():
            place = self.places.get(name)
            if place is None:
                continue
            if type(value) is float and place.kind == NUMBER:
                row[place.position] = value
            elif not is_missing(value):
                row[place.position] = _value(name, value, place.kind)
        return row

    def matrix(self, columns: Sequence[Column], n_rows: int) -> Floats:
        """Put columns into their places; leave out those that have none. All valid. O(n·d)."""
        result = np.full((n_rows, self.n_features), np.nan)
        for column in columns:
            place = self.places.get(column.name)
            if place is not None and column.kind != EMPTY:
                result[:, place.position] = _values(column, place.kind)
        name_at = {place.position: name for name, place in self.places.items()}
        Encoder(self.n_features, self.categorical).check(
            result, lambda i, j: f"feature {show(name_at[j])} in row {i}"
        )
        return result


def _value(name: Hashable, value: Any, kind: str) -> float:
    if kind == CATEGORY or (kind == TEXT and isinstance(value, str)):
        return code_of(name, value)
    found = kind_of(name, value)
    if found == kind:
        return value_of(name, value)
    raise _other_kind(name, found, kind)


def _values(column: Column, kind: str) -> Floats:
    if kind == TEXT:
        check_text(column, "until now")
    if kind in CATEGORIES:
        values = [None if is_missing(value) else value for value in list(column.values)]
        return codes(Column(column.name, CATEGORY, values))
    if column.kind == kind:
        return np.asarray(column.values)
    raise _other_kind(column.name, column.kind, kind)


def _other_kind(name: Hashable, found: str, known: str) -> InvalidExample:
    way_out = ", or make it a text with str()" if known == TEXT else ""
    return InvalidExample(
        f"feature {show(name)} is a {found}, and was a {known} until now: "
        f"a feature is of one kind; give the other one a name of its own{way_out}"
    )
