"""Read an ARFF file, the format of Weka and MOA, as a source.

    @attribute age numeric
    @attribute country {DE, FR, 'New Zealand'}          nominal: coded 0, 1, 2 as declared
    @data
    31, DE, yes

Numeric (real, integer) and nominal attributes are features; text and dates are left out with drop,
or serve as label and time. `?` is missing. Sparse rows and weights are refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    feature_columns,
    lines_of,
)

_MISSING = ("?",)
# A quoted text with \\ escapes, or one without quotes; either may have spaces around it.
_FIELD = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^,'"{}]*?))\s*(,|$)""")
_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s'"{]+))\s*(\{.*|\S.*)""",
    re.IGNORECASE,
)
_NUMERIC = {"numeric", "real", "integer"}
_ESCAPE = re.compile(r"\\(.)")
_UNESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True)
class Attribute:
    """A declared column: its nominal values, or None and the name of its type."""

    name: str
    type: str
    values: tuple[str, ...] | None = None


def read_arff(
    path: str | os.PathLike[str],
    label: str | int = -1,
    *,
    time: str | int | None = None,
    drop: Collection[str | int] = (),
    encoding: str = "utf-8",
) -> Source:
    """Make a source of an ARFF file. Reads the declarations only; each reading streams the file.

    The label is the last attribute unless another is named, as in MOA. Raises InvalidFile with line
    and column for the first thing that is wrong.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "people.arff"
    >>> _ = path.write_text('''@relation people
    ... @attribute age numeric
    ... @attribute country {FR, DE}
    ... @attribute buys {yes, no}
    ... @data
    ... 31, DE, yes
    ... ?, FR, no
    ... ''')
    >>> source = read_arff(path)
    >>> [(x.tolist(), y) for x, y, _ in source], source.categorical
    ([([31.0, 1.0], 'yes'), ([nan, 0.0], 'no')], (1,))
    >>> folder.cleanup()
    """
    file = _ArffFile(Path(path), encoding)
    attributes, data_line = file.declarations()
    names = [attribute.name for attribute in attributes]
    label_at, time_at, features = feature_columns(names, label, time, drop)
    codes = {
        j: {text: code for code, text in enumerate(values)}
        for j in features
        if (values := attributes[j].values) is not None
    }
    kinds = {j: _kind(attributes[j], codes.get(j)) for j in features}
    table = TextTable(
        file.path,
        names,
        kinds,
        label_at,
        LabelText(_MISSING, attributes[label_at].values or ()),
        time_at,
        lambda record, _: record.line,
    )
    return Source(
        name=file.path.name,
        features=tuple(names[j] for j in features),
        read=lambda: table.batches(file.records(data_line)),
        categorical=tuple(place for place, j in enumerate(features) if j in codes),
        timed=time_at is not None,
        categories={names[j]: codes[j] for j in codes},
    )


def _kind(attribute: Attribute, codes: dict[str, int] | None) -> Kind:
    if codes is not None:
        return Category(_MISSING, codes, closed=True)
    if attribute.type in _NUMERIC:
        return Number(_MISSING)
    raise InvalidParameter(
        f"attribute {show(attribute.name)} is of type {attribute.type}, which is no feature: "
        f"features are numeric or nominal; leave it out with drop=[{attribute.name!r}]"
    )


@dataclass(frozen=True)
class _ArffFile:
    path: Path
    encoding: str

    def declarations(self) -> tuple[list[Attribute], int]:
        """Read the attributes; give them and the line of @data."""
        attributes: list[Attribute] = []
        for number, line in self._lines():
            word = line.split(None, 1)[0].lower()
            if word == "@data":
                if not attributes:
                    raise self._wrong(number, "@data comes before the first @attribute")
                return attributes, number
            if word == "@attribute":
                attributes.append(self._attribute(number, line, attributes))
            elif word != "@relation":
                raise self._wrong(
                    number, f"{show(line)} is none of @relation, @attribute, @data and % comment"
                )
        raise InvalidFile(
            f"{self.path} has no @data line: an ARFF file declares its attributes, then @data, "
            "then the rows"
        )

    def records(self, data_line: int) -> Iterator[Record]:
        """Read the rows."""
        for number, line in self._lines():
            if number > data_line:
                yield Record(number, self._fields(number, line))

    def _lines(self) -> Iterator[tuple[int, str]]:
        # Without empty lines and comments.
        for number, line in enumerate(lines_of(self.path, self.encoding), start=1):
            text = line.strip()
            if text and not text.startswith("%"):
                yield number, text

    def _attribute(self, number: int, line: str, before: Sequence[Attribute]) -> Attribute:
        match = _ATTRIBUTE.fullmatch(line)
        if match is None:
            raise self._wrong(
                number, f"{show(line)} is not '@attribute name type' or '@attribute name {{a, b}}'"
            )
        name = _text(match)
        if any(attribute.name == name for attribute in before):
            raise self._wrong(number, f"attribute {show(name)} is declared twice")
        declared = match[4].strip()
        if not declared.startswith("{"):
            return Attribute(name, declared.split()[0].lower())
        if not declared.endswith("}"):
            raise self._wrong(number, f"the values of {show(name)} have no closing }}")
        values = tuple(self._fields(number, declared[1:-1]))
        if len(set(values)) < len(values):
            raise self._wrong(number, f"a value of {show(name)} is declared twice")
        return Attribute(name, "nominal", values)

    def _fields(self, number: int, line: str) -> list[str]:
        if "'" not in line and '"' not in line and "{" not in line:
            return [field.strip() for field in line.split(",")]
        if line.startswith("{"):
            raise self._wrong(number, "a sparse row, {index value, ...}: write out every value")
        fields: list[str] = []
        position = 0
        while True:
            match = _FIELD.match(line, position)
            if match is None:
                raise self._wrong(
                    number,
                    f"{show(line[position:])} cannot be divided into fields: look for a quote that "
                    "is not closed, or for the weight of a row in braces, which is not read",
                    len(fields) + 1,
                )
            fields.append(_text(match))
            position = match.end()
            if not match[4]:
                return fields

    def _wrong(self, line: int, reason: str, column: int | None = None) -> InvalidFile:
        place = f"line {line}" if column is None else f"line {line}, column {column}"
        return InvalidFile(f"{self.path}, {place}: {reason}", line=line, column=column)


def _text(match: re.Match[str]) -> str:
    single, double, plain = match[1], match[2], match[3]
    if plain is not None:
        return plain
    quoted = single if single is not None else double
    return _ESCAPE.sub(lambda escape: _UNESCAPED.get(escape[1], escape[1]), quoted)
