"""Readers on small ugly files: what is right is read, what is wrong is named by line and column."""

from __future__ import annotations

import csv
import math
import random
from collections import Counter
from datetime import date, datetime, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertree import EverTree
from evertree.errors import InvalidExample, InvalidFile, InvalidParameter
from evertree.streams import from_arrays, from_frame, read_arff, read_csv, read_parquet

NAN = math.nan


def rows(source):
    """Rows and labels as plain values, nan as None (so that they can be compared)."""
    return [([None if math.isnan(v) else v for v in x.tolist()], y) for x, y, _ in source]


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# ---------------------------------------------------------------------------------------------- CSV


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b,y\n1,2,p\n3,4,q\n", [([1.0, 2.0], "p"), ([3.0, 4.0], "q")]),
        ("\ufeffa,b,y\n1,2,p\n", [([1.0, 2.0], "p")]),  # byte order mark
        ("a,b,y\r\n1,2,p\r\n", [([1.0, 2.0], "p")]),
        ("a,b,y\n1,2,p", [([1.0, 2.0], "p")]),  # no line end at the end
        ("a,b,y\n\n1,2,p\n\n\n", [([1.0, 2.0], "p")]),  # empty lines
        ('"a","b","y"\n"1","2","p, ""q"""\n', [([1.0, 2.0], 'p, "q"')]),
        ("a, b, y\n1, 2, p\n", [([1.0, 2.0], "p")]),
        (
            "a,b,y\n,?,p\nNA,nan,q\n1e3,-.5,p\n",
            [([None, None], "p"), ([None, None], "q"), ([1000.0, -0.5], "p")],
        ),
        (
            "a,b,y\nred,2,p\nblue,?,q\n,3,p\nred,4,p\n",
            [([0, 2.0], "p"), ([1, None], "q"), ([None, 3.0], "p"), ([0, 4.0], "p")],
        ),
        ('a,b,y\n1,2,"p\nq"\n3,4,r\n', [([1.0, 2.0], "p\nq"), ([3.0, 4.0], "r")]),
        ("a,b,y\n", []),
    ],
)
def test_csv(write, text, expected):
    assert rows(read_csv(write(text), label="y")) == expected


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("", 1, None, "is empty"),
        ("a,b,y\n1,2,p\n3,oops,q\n", 3, 2, r"column 2 \(b\): 'oops' is not a finite number"),
        ("a,b,y\n1,2,p\n3,inf,q\n", 3, 2, "'inf' is not a finite number"),
        ("a,b,y\n1,2,p\n3,1_0,q\n", 3, 2, "'1_0' is not a finite number"),
        ("a,b,y\n1,2,p\n3,1e999,q\n", 3, 2, "'1e999' is not a finite number"),
        ("a,b,y\n9007199254740993,2,p\n", 2, 1, "float64 cannot hold exactly"),
        ("a,b,y\n9007199254740992,2,p\n1, -123456789012345678,p\n", 3, 2, "float64 cannot hold"),
        ("a,b,y\n1,2\n", 2, None, "2 fields where 3 are expected"),
        ("a,b,y\n1,2,p,4\n", 2, None, "4 fields where 3 are expected"),
        ("a,b,y\n1,2,p\n1,2,\n", 3, 3, "'' means missing, and an example has a label"),
        ("a,b,a,y\n", 1, 3, "'a' is used twice"),
        # Quoted line ends: the line of the field itself, not of the row or of its end.
        ('a,b,y\n1,2,"p\nq"\n3,oops,r\n', 4, 2, "oops"),
        ('y,a,b\n"p\n\nq",1,2\n"r\r\ns",3,oops\n', 6, 3, "oops"),
        ('y,a,b\n\n\n"p",1,2\n"r\n\ns",oops,3\n', 7, 2, "oops"),
        ('a,b,y\n1,2,"p\n3,4,q\n', 2, None, "a quote that is not closed"),
        ('a,b,y\n1,2,"p"q\n', 2, None, "not CSV"),
        (b"a,b,y\n1,2,p\n3,4,\xff\n", 3, None, "not utf-8 text"),
        (b"\xff\xfea\x00", 1, None, "not utf-8 text"),
        ("a;y\n1;p\n", 1, None, "'a;y' is one column alone.*delimiter=';'"),
        ("a\ty\n1\tp\n", 1, None, r"is one column alone.*delimiter='\\t'"),
    ],
)
def test_bad_csv(write, text, line, column, says):
    with pytest.raises(InvalidFile, match=says) as caught:
        list(read_csv(write(text), label="y"))
    assert (caught.value.line, caught.value.column) == (line, column)
    assert "data.csv" in str(caught.value)


def test_csv_the_line_is_right_far_into_the_file(write):
    lines = ["a,y"] + [f'{i},"x\ny"' for i in range(10_000)]
    lines[9_001] = 'bad,"x\ny"'
    with pytest.raises(InvalidFile, match="bad") as caught:
        list(read_csv(write("\n".join(lines)), label="y"))
    assert (caught.value.line, caught.value.column) == (1 + 2 * 9_000 + 1, 1)


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r "), min_size=1)


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, st.floats(-1e6, 1e6)), min_size=1, max_size=20), st.data())
def test_csv_as_the_standard_library_writes_it(tmp_path_factory, examples, data):
    """Whatever csv.writer writes is read back; a bad number is found on the line that has it."""
    path = tmp_path_factory.mktemp("csv") / "data.csv"

    def read(rows):
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([("y", "a"), *rows])
        return list(read_csv(path, label="y", missing=(), categorical=()))

    assert [(y, x[0]) for x, y, _ in read(examples)] == examples
    bad = data.draw(st.integers(0, len(examples) - 1))
    with pytest.raises(InvalidFile) as caught:
        read([(y, "bad!" if i == bad else x) for i, (y, x) in enumerate(examples)])
    assert caught.value.column == 2
    assert "bad!" in path.read_text(encoding="utf-8").split("\n")[caught.value.line - 1]


def test_csv_chooses_columns(write):
    path = write("day,a,b,code,y\n2026-01-01,1,2,7,p\n2026-01-02T10:00:00Z,3,4,8,q\n")
    source = read_csv(path, label=-1, time="day", drop=["b"], categorical=["code"])
    assert source.features == ("a", "code")
    assert source.categorical == (1,)
    assert source.timed
    assert [(x.tolist(), y) for x, y, _ in source] == [([1.0, 0.0], "p"), ([3.0, 1.0], "q")]
    assert [e.time for e in source] == [
        datetime(2026, 1, 1),
        datetime(2026, 1, 2, 10, tzinfo=timezone.utc),
    ]
    assert source.categories == {"code": {"7": 0, "8": 1}}
    assert [e.time for e in read_csv(write("t,a,y\n1.5,2,p\n"), label="y", time="t")] == [1.5]


def test_csv_a_number_that_means_missing(write):
    path = write("a,b,y\n-999,1,p\n2,-999,q\n")
    assert rows(read_csv(path, label="y", missing=["-999"])) == [
        ([None, 1.0], "p"),
        ([2.0, None], "q"),
    ]
    assert rows(read_csv(path, label="y")) == [([-999.0, 1.0], "p"), ([2.0, -999.0], "q")]


def test_csv_without_a_header(write):
    source = read_csv(write("1;2;p\n3;4;q\n"), label="y", names=["a", "b", "y"], delimiter=";")
    assert rows(source) == [([1.0, 2.0], "p"), ([3.0, 4.0], "q")]


def test_csv_a_bad_time(write):
    with pytest.raises(InvalidFile, match="neither a number nor a date") as caught:
        list(read_csv(write("t,a,y\n2026-13-01,2,p\n"), label="y", time="t"))
    assert (caught.value.line, caught.value.column) == (2, 1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"label": "z"}, "label='z' is not a column: there are 2, a, y"),
        ({"label": 5}, "label=5 is not a column"),
        ({"label": None}, "label=None is not a column"),
        ({"label": "y", "drop": ["a"]}, "no column is left as a feature"),
        ({"label": "y", "categorical": "a"}, r"categorical='a' is not a list: write \['a'\]"),
        ({"label": "3"}, "label='3' is not a column"),
        ({"label": "y", "categorical": ["y"]}, "categorical='y' is no feature"),
        ({"label": "y", "drop": "a"}, r"drop='a' is not a list"),
        ({"label": "y", "missing": "NA"}, r"missing='NA' is not a list"),
        ({"label": "y", "delimiter": ";;"}, "delimiter=';;' is not one letter"),
        ({"label": "y", "encoding": "klingon"}, "not an encoding"),
    ],
)
def test_csv_bad_parameters(write, options, says):
    with pytest.raises(InvalidParameter, match=says):
        list(read_csv(write("a,y\n1,p\n"), **options))


def test_a_file_that_is_not_there(tmp_path):
    for read in (read_csv, read_arff, read_parquet):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "none", label="y")


def test_other_encodings(write):
    source = read_csv(write("a,y\n1,caf\u00e9\n".encode("latin-1")), label="y", encoding="latin-1")
    assert rows(source) == [([1.0], "caf\u00e9")]
    path = write("a,y\n1,p\n2,q\n".encode("utf-16"))
    assert rows(read_csv(path, label="y", encoding="utf-16")) == [([1.0], "p"), ([2.0], "q")]
    path.write_bytes(path.read_bytes()[:-1])  # half a letter
    with pytest.raises(InvalidFile, match="not utf-16 text"):
        list(read_csv(path, label="y", encoding="utf-16"))
    with pytest.raises(InvalidParameter, match="not an encoding"):
        read_arff(path, encoding="klingon")


# --------------------------------------------------------------------------------------------- ARFF

HEAD = """% a comment
@RELATION 'people and more'

@attribute age  REAL
@Attribute 'home country' {DE, "New Zealand", 'Cote d\\'Ivoire'}
@attribute "class" {yes, no}
@DATA
"""


def test_arff(write):
    path = write(
        "\ufeff"
        + HEAD.replace("\n", "\r\n")
        + "31, DE , yes\r\n% a comment\r\n\r\n?,?,no\r\n1e2,'New Zealand',no\n"
        + "-1,\"Cote d'Ivoire\",'yes'",
        "data.arff",
    )
    source = read_arff(path)
    assert source.features == ("age", "home country")
    assert source.categorical == (1,)
    assert source.categories == {"home country": {"DE": 0, "New Zealand": 1, "Cote d'Ivoire": 2}}
    assert rows(source) == [
        ([31.0, 0.0], "yes"),
        ([None, None], "no"),
        ([100.0, 1.0], "no"),
        ([-1.0, 2.0], "yes"),
    ]
    assert read_arff(path, label="age", drop=["class"]).features == ("home country",)


ATTRIBUTES = "@relation r\n@attribute a numeric\n@attribute b {x,y}\n@attribute c {p,q}\n"


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("", None, None, "has no @data line"),
        ("@relation r\n@attribute a numeric\n", None, None, "has no @data line"),
        ("@relation r\n@data\n", 2, None, "before the first @attribute"),
        ("@relation r\nage,b\n", 2, None, "none of @relation, @attribute, @data"),
        ("@relation r\n@attribute a\n", 2, None, "is not '@attribute name type'"),
        ("@relation r\n@attribute a {x,y\n", 2, None, "no closing }"),
        ("@relation r\n@attribute a {x,x}\n", 2, None, "declared twice"),
        ("@relation r\n@attribute a real\n@attribute a real\n", 3, None, "declared twice"),
        (
            ATTRIBUTES + "@data\n1,x,p\n1,z,p\n",
            7,
            2,
            r"\(b\): 'z' is not one of the declared values x, y",
        ),
        (ATTRIBUTES + "@data\n1,x,r\n", 6, 3, "'r' is not one of the declared values p, q"),
        (ATTRIBUTES + "@data\n\n% c\none,x,p\n", 8, 1, "'one' is not a finite number"),
        (ATTRIBUTES + "@data\n1,x,?\n", 6, 3, "an example has a label"),
        (ATTRIBUTES + "@data\n1,x\n", 6, None, "2 fields where 3 are expected"),
        (ATTRIBUTES + "@data\n{0 1, 2 p}\n", 6, None, "a sparse row"),
        (ATTRIBUTES + "@data\n1,x,p,{5}\n", 6, 4, "the weight of a row"),
        (ATTRIBUTES + "@data\n1,'x,p\n", 6, 2, "a quote that is not closed"),
        (ATTRIBUTES.encode() + b"@data\n1,x,p\n1,\xff,p\n", 7, None, "not utf-8 text"),
    ],
)
def test_bad_arff(write, text, line, column, says):
    with pytest.raises(InvalidFile, match=says) as caught:
        list(read_arff(write(text, "data.arff")))
    assert (caught.value.line, caught.value.column) == (line, column)


def test_arff_types_that_are_no_features(write):
    path = write(
        "@relation r\n@attribute name string\n@attribute day date 'yyyy-MM-dd'\n@attribute a real\n"
        "@attribute y {p,q}\n@data\n'Ann, B.',2026-01-02,1,p\n",
        "data.arff",
    )
    with pytest.raises(
        InvalidParameter, match=r"of type string, which is no feature.*drop=\['name'\]"
    ):
        read_arff(path)
    (example,) = read_arff(path, drop=["name"], time="day")
    assert (example.x.tolist(), example.y, example.time) == ([1.0], "p", datetime(2026, 1, 2))


PIECES = [
    *(
        piece.encode()
        for piece in ('"', "'", ",", "\n", "\r", "\\", "{", "}", "%", "@data", " ", "?")
    ),
    *(
        piece.encode()
        for piece in ("1e999", "nan", "\t", "\u00e9", "\ufeff", "\u2028", "\x85", "\x0c")
    ),
    b"\x00",
    b"\xff",
]


@pytest.mark.parametrize("kind", ["csv", "arff"])
def test_broken_files_are_refused_and_nothing_else_happens(write, kind):
    """Whatever is done to a file: it is read, or refused with an error of ours."""
    rng = random.Random(7)
    good = (
        b'a,b,y\n1,2,p\n"3",4,"q\nr"\n?,,p\n'
        if kind == "csv"
        else ATTRIBUTES.encode() + b"@data\n1,x,p\n?,'y',q\n"
    )
    outcomes = Counter()
    for _ in range(600):
        content = bytearray(good)
        for _ in range(rng.randint(1, 2)):
            place = rng.randrange(len(content))
            content[place : place + rng.randint(0, 2)] = rng.choice(PIECES)
        path = write(bytes(content), f"broken.{kind}")
        try:
            list(read_csv(path, label=-1) if kind == "csv" else read_arff(path))
            outcomes["read"] += 1
        except (InvalidFile, InvalidParameter) as error:
            outcomes[type(error).__name__] += 1
    assert min(outcomes["read"], outcomes["InvalidFile"]) > 30, outcomes


# ------------------------------------------------------------------------------- Parquet and frames

TABLE = pa.table(
    {
        "a": pa.array([1, None, 3], pa.int32()),
        "b": pa.array([0.5, 1.5, None], pa.float32()),
        "flag": [True, False, None],
        "text": ["u", None, "v"],
        "code": pa.array(["n", "m", "n"]).dictionary_encode(),
        "money": [Decimal("1.25"), None, Decimal("2.50")],
        "y": ["p", "q", "p"],
    }
)
EXPECTED = [
    ([1.0, 0.5, 1.0, 0.0, 0.0, 1.25], "p"),
    ([None, 1.5, 0.0, None, 1.0, None], "q"),
    ([3.0, None, None, 1.0, 0.0, 2.5], "p"),
]


def test_parquet(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(TABLE, path)
    source = read_parquet(path, label="y")
    assert (source.length, source.categorical) == (3, (3, 4))
    assert rows(source) == EXPECTED
    assert rows(source) == EXPECTED, "a source can be read again"


FRAMES = {
    "arrow": lambda: TABLE,
    "polars": lambda: pl.from_arrow(TABLE),
    "pandas": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype).set_index(
        pd.Index([7, 8, 9], name="i")
    ),
    "reader": lambda: TABLE.to_reader(max_chunksize=2),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames(kind):
    source = from_frame(FRAMES[kind](), label="y")
    assert source.features == ("a", "b", "flag", "text", "code", "money")
    assert rows(source) == EXPECTED


def test_codes_do_not_depend_on_batches():
    """Dictionaries of different pieces number the same texts differently; the codes here do not."""
    pieces = [
        pa.table({"c": pa.array(texts).dictionary_encode(), "y": [0] * len(texts)})
        for texts in (["b", "a"], ["a", "c", "b"])
    ]
    source = from_frame(pa.concat_tables(pieces), label="y")
    assert [x[0] for x, _, _ in source] == [0, 1, 1, 2, 0]


def test_times_of_frames():
    moments = [datetime(2026, 1, 1), datetime(2026, 1, 2)]
    for column, expected in (
        (pa.array(moments, pa.timestamp("ns")), moments),
        (pa.array([date(2026, 1, 1), date(2026, 1, 2)]), moments),
        (
            pa.array([m.replace(tzinfo=timezone.utc) for m in moments]),
            [m.replace(tzinfo=timezone.utc) for m in moments],
        ),
        (pa.array([1.5, 2.5]), [1.5, 2.5]),
    ):
        source = from_frame(pa.table({"a": [1, 2], "t": column, "y": [0, 1]}), label="y", time="t")
        assert [e.time for e in source] == expected
        assert source.features == ("a",)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"a": [1.0, math.inf]}, "row 1 of the frame, column 'a': inf: a feature is finite"),
        ({"a": [1, 2**53 + 1]}, "row 1 of the frame, column 'a': 9007199254740993: float64 cannot"),
        (
            {"a": [1, 2], "y": ["p", None]},
            "row 1 of the frame, column 'y': None: an example has a label",
        ),
        ({"a": [datetime(2026, 1, 1)] * 2}, r"of type timestamp\[us\], which is no feature"),
        ({"a": [[1], [2]]}, "which is no feature"),
    ],
)
def test_bad_frames(columns, says):
    with pytest.raises((InvalidExample, InvalidParameter), match=says):
        list(from_frame(pa.table({"y": ["p", "q"], **columns}), label="y"))


def test_bad_frame_times():
    table = pa.table({"a": [1, 2], "t": [1.0, None], "s": ["x", "y"], "y": [0, 1]})
    with pytest.raises(InvalidExample, match="row 1 of the frame, column 't'"):
        list(from_frame(table, label="y", time="t"))
    with pytest.raises(InvalidParameter, match="time='s' is a column of type string"):
        from_frame(table, label="y", time="s")
    with pytest.raises(InvalidParameter, match="does not speak Arrow"):
        from_frame({"a": [1]}, label="a")


def test_bad_parquet(tmp_path):
    path = tmp_path / "data.parquet"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidFile, match="is not a Parquet file"):
        read_parquet(path, label="y")
    pq.write_table(pa.table({"a": [1.0] * 5_000 + [math.inf], "y": [0] * 5_001}), path)
    with pytest.raises(InvalidFile, match=r"row 5001, column 1 \(a\): inf") as caught:
        list(read_parquet(path, label="y"))
    assert (caught.value.line, caught.value.column) == (5_001, 1)


def test_damaged_parquet(tmp_path):
    path = tmp_path / "data.parquet"
    values = np.random.default_rng(0).random(20_000)
    pq.write_table(pa.table({"a": values, "y": [0] * 20_000}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[len(content) // 4 : len(content) // 2] = bytes(len(content) // 2 - len(content) // 4)
    path.write_bytes(content)
    with pytest.raises(InvalidFile, match="is damaged"):
        list(read_parquet(path, label="y"))


# ------------------------------------------------------------------------------------------- arrays


def test_arrays():
    times = np.array(["2026-01-01", "2026-01-02"], "datetime64[D]")
    source = from_arrays(
        np.array([[1, 2], [3, 4]], np.int32), np.array(["p", "q"]), time=times, categorical=[1]
    )
    assert [(x.tolist(), y, t) for x, y, t in source] == [
        ([1.0, 2.0], "p", datetime(2026, 1, 1)),
        ([3.0, 4.0], "q", datetime(2026, 1, 2)),
    ]
    assert (source.length, source.categorical, source.timed) == (2, (1,), True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([1.0, 2.0], [0, 1]), r"X has shape \(2,\)"),
        (([[1.0]], [0, 1]), "y has 2 labels, X has 1 rows"),
        (([["a"]], [0]), "are text"),
        (([[math.inf]], [0]), r"X\[0\]\[0\] is inf"),
    ],
)
def test_bad_arrays(arguments, says):
    with pytest.raises(InvalidExample, match=says):
        list(from_arrays(*arguments))


def test_bad_arrays_far_in():
    X = np.zeros((5_000, 2))
    X[4_999, 1] = math.inf
    with pytest.raises(
        InvalidExample, match=r"in X\[4096:5000\], counted from its beginning: X\[903\]\[1\] is inf"
    ):
        list(from_arrays(X, [0] * 5_000))


@pytest.mark.parametrize(
    ("time", "says"),
    [
        ([1.0], r"time has shape \(1,\)"),
        ([1.0, NAN], r"time\[1\] is nan"),
        (["a", "b"], "a time is a number"),
        (np.array(["2026-01-01", "NaT"], "datetime64[D]"), r"time\[1\] is NaT"),
    ],
)
def test_bad_times_of_arrays(time, says):
    with pytest.raises(InvalidExample, match=says):
        from_arrays([[1.0], [2.0]], [0, 1], time=time)


def test_categories_of_arrays():
    for bad in ([2], [-1], ["a"], [0, 0]):
        with pytest.raises(InvalidParameter, match="categorical"):
            from_arrays([[1.0, 2.0]], [0], categorical=bad)


def test_names_of_arrays():
    with pytest.raises(InvalidParameter, match="give 2 different names"):
        from_arrays([[1.0, 2.0]], [0], features=["a", "a"])


# ----------------------------------------------------------------------------- one table, every way


def test_every_reader_gives_the_same_examples(tmp_path, write):
    """One table as CSV, ARFF, Parquet, frames and arrays; the tree cannot tell them apart."""
    rng = np.random.default_rng(1)
    n = 6_000  # more than a batch
    numbers, codes = rng.normal(size=n), rng.integers(0, 3, n)
    codes[:3] = (0, 1, 2)  # in the order in which ARFF declares them
    texts, labels = (
        np.array(["u", "v", "w"])[codes].tolist(),
        np.where(numbers > codes - 1, "p", "q").tolist(),
    )
    table = pa.table({"a": numbers, "b": texts, "y": labels})
    lines = [f"{a!r},{b},{y}" for a, b, y in zip(numbers.tolist(), texts, labels, strict=True)]
    arff = [
        "@relation r",
        "@attribute a numeric",
        "@attribute b {u,v,w}",
        "@attribute y {p,q}",
        "@data",
        *lines,
    ]
    pq.write_table(table, tmp_path / "data.parquet")
    sources = {
        "csv": read_csv(write("\n".join(["a,b,y", *lines])), label="y"),
        "arff": read_arff(write("\n".join(arff), "data.arff")),
        "parquet": read_parquet(tmp_path / "data.parquet", label="y"),
        "polars": from_frame(pl.from_arrow(table), label="y"),
        "pandas": from_frame(table.to_pandas(), label="y"),
        "arrays": from_arrays(np.column_stack([numbers, codes]), labels, categorical=[1]),
    }
    digests = set()
    for source in sources.values():
        tree = EverTree(source.n_features, source.categorical, max_depth=4)
        for batch in source.batches():
            assert len(batch.y) <= 4_096
            tree.insert_many(batch.X, batch.y)
        tree.rebuild()
        digests.add(tree.digest())
    assert len(digests) == 1
