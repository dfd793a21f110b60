"""Tables of any kind give the same numbers, and what cannot be read is refused by name."""

import datetime as dt
import decimal
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evertree import EverTree, EverTreeClassifier, ExampleNotFound, InvalidExample
from evertree.encoding import category_code
from evertree.frames import is_frame, read_frame

NAN = float("nan")
UTC = dt.timezone.utc
BORN = dt.datetime(1990, 1, 2, 3, 4, 5, 6)
COLUMNS = {
    "age": [31, None, 62, 44],
    "score": [0.5, 1.5, None, -0.0],
    "member": [True, False, None, True],
    "city": ["Oslo", None, "Bergen", "Oslo"],
    "born": [BORN, None, dt.datetime(1960, 5, 5), dt.datetime(9999, 12, 31)],
    "seen": [dt.datetime(2024, 1, 1, tzinfo=UTC), None, None, dt.datetime(2025, 1, 1, tzinfo=UTC)],
    "stay": [dt.timedelta(days=1), None, dt.timedelta(microseconds=7), dt.timedelta()],
}
Y = ["buys", "buys", "leaves", "leaves"]
KINDS = ["number", "number", "number", "text", "moment", "moment with a time zone", "duration"]
FORMS = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda c: pd.DataFrame(c).convert_dtypes(),
    "pandas categories": lambda c: pd.DataFrame(c).astype(
        {k: "category" for k in c if k == "city"}
    ),
    "pandas with pyarrow": lambda c: pa.table(c).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas objects": lambda c: pd.DataFrame(c, dtype=object),
    "polars": pl.DataFrame,
    "polars categories": lambda c: pl.DataFrame(c).with_columns(
        pl.col(k).cast(pl.Categorical) for k in c if k == "city"
    ),
    "polars enum": lambda c: pl.DataFrame(c).with_columns(
        pl.col(k).cast(pl.Enum(["Bergen", "Oslo"])) for k in c if k == "city"
    ),
    "pyarrow": pa.table,
    "pyarrow dictionary": lambda c: pa.table(
        {k: pa.array(v).dictionary_encode() if k == "city" else pa.array(v) for k, v in c.items()}
    ),
    "dicts": lambda c: [dict(zip(c, row, strict=True)) for row in zip(*c.values(), strict=True)],
    "dicts without what is missing": lambda c: [
        {k: v for k, v in zip(c, row, strict=True) if v is not None}
        for row in zip(*c.values(), strict=True)
    ],
}
FRAMES = [name for name in FORMS if "dicts" not in name]
NUMBERS = [
    [31, 0.5, 1, category_code("Oslo"), 631249445000006, 1704067200e6, 86_400e6],
    [math.nan, 1.5, 0, math.nan, math.nan, math.nan, math.nan],
    [62, math.nan, math.nan, category_code("Bergen"), -304819200e6, math.nan, 7],
    [44, 0, 1, category_code("Oslo"), 253402214400e6, 1735689600e6, 0],
]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_model(form):
    table = FORMS[form](COLUMNS)
    model = EverTreeClassifier().fit(table, Y)
    rows, labels, _ = model._ledger.examples()
    # Dicts name their columns as they come, which is not always in the order of the others.
    order = [model.feature_names_in_.tolist().index(name) for name in COLUMNS]
    np.testing.assert_array_equal(rows[:, order], NUMBERS)
    assert [model._kinds[j] for j in order] == KINDS
    assert labels == Y
    assert model.tree_.limits.categorical == (order[3],)
    assert model.predict(table).tolist() == Y
    for other in FORMS.values() if order == sorted(order) else []:
        assert model.predict_proba(other(COLUMNS)).tolist() == model.predict_proba(table).tolist()
    model.forget(table, Y)
    assert len(model.tree_) == 0


@pytest.mark.parametrize("form", FRAMES)
def test_the_bare_tree_reads_them_too(form):
    table = FORMS[form](COLUMNS)
    tree, same = (EverTree(7, categorical=[3]) for _ in range(2))
    tree.insert_many(table, Y)
    same.insert_many(NUMBERS, Y)
    assert tree.digest() == same.digest()
    assert tree.label_many(table).tolist() == same.label_many(NUMBERS).tolist()
    tree.delete_many(table, Y)
    assert len(tree) == 0
    with pytest.raises(InvalidExample, match="column 'city' has categories"):
        EverTree(7).insert_many(table, Y)
    with pytest.raises(InvalidExample, match="each row of X has 7 values"):
        EverTree(6).insert_many(table, Y)


@pytest.mark.parametrize(
    "labels", [pd.Series(Y), pl.Series(Y), pa.array(Y), pa.chunked_array([Y])], ids=type
)
def test_labels_of_any_library(labels):
    tree = EverTree(1)
    tree.insert_many([[1], [2], [3], [4]], labels)
    assert tree.label_many([[1], [4]]).tolist() == ["buys", "leaves"]
    model = EverTreeClassifier().fit([[1], [2], [3], [4]], labels)
    assert model.predict([[1], [4]]).tolist() == ["buys", "leaves"]


# --- categories


def test_a_category_is_known_by_itself_alone():
    one = EverTreeClassifier().fit(pd.DataFrame({"city": ["Oslo", "Bergen", "Oslo"]}), [0, 1, 0])
    two = EverTreeClassifier().fit(pl.DataFrame({"city": ["Bergen", "Oslo", "Oslo"]}), [1, 0, 0])
    assert one.tree_.digest() == two.tree_.digest()
    bare = EverTree(1, categorical=[0])
    for city, label in [("Oslo", 0), ("Bergen", 1), ("Oslo", 0)]:
        bare.insert([city], label)
    assert bare.digest() == one.tree_.digest()
    assert bare.label(["Bergen"]) == 1
    bare.delete([np.str_("Bergen")], 1)
    assert bare.label(["Bergen"]) == 0


def test_forgotten_categories_leave_nothing():
    cities = pd.DataFrame({"city": ["Ålesund", "Oslo", "Bergen", "Tromsø", "Oslo"], "n": range(5)})
    y = [0, 1, 0, 1, 0]
    model = EverTreeClassifier().fit(cities, y).forget(cities[:1], y[:1])
    model.tree_.rebuild()
    never = EverTreeClassifier().fit(cities[1:], y[1:])
    assert model.tree_.digest() == never.tree_.digest()


def test_an_unseen_category_equals_none():
    cities = pd.DataFrame({"city": ["a", "a", "b", "b", "c", "c"]})
    model = EverTreeClassifier().fit(cities, ["A", "A", "B", "B", "B", "B"])
    root = model.tree_.nodes()[0]
    assert root["category"] == category_code("a")
    unseen = pd.DataFrame({"city": ["never", None, "a"]})
    assert model.predict(unseen).tolist() == ["B", "B", "A"]
    with pytest.raises(ExampleNotFound):
        model.forget(unseen[:1], ["A"])


@pytest.mark.parametrize(
    "asked", [["zone"], [1], np.array([False, True]), (1,), pd.Index(["zone"])], ids=str
)
def test_categories_can_be_named(asked):
    X = pd.DataFrame({"age": [1, 2, 3], "zone": [7, 8, 9]})
    model = EverTreeClassifier(categorical_features=asked).fit(X, [0, 1, 0])
    assert model.tree_.limits.categorical == (1,)
    assert model.tree_.nodes()[0]["category"] == 8
    assert EverTreeClassifier().fit(X, [0, 1, 0]).tree_.limits.categorical == ()
    assert EverTreeClassifier(categorical_features=[]).fit(X, [0, 1, 0]).get_depth() == 2


def test_categories_of_other_types():
    X = pd.DataFrame({
        "bin": pd.cut([1, 2, 3, 4], 2),
        "code": pd.Categorical([-1, 2, -1, 2]),
        "half": pd.Categorical([0.5, 1.5, 0.5, None]),
    })  # fmt: skip
    model = EverTreeClassifier().fit(X, [0, 1, 2, 3])
    assert model.tree_.limits.categorical == (0, 1, 2)
    assert model.predict(X).tolist() == [0, 1, 2, 3]


def test_an_array_of_objects_is_read_by_column():
    X = np.array([[31, "Oslo"], [62, None], [None, "Bergen"]], dtype=object)
    model = EverTreeClassifier().fit(X, [0, 1, 2])
    assert model.tree_.limits.categorical == (1,)
    assert model.predict(X).tolist() == [0, 1, 2]
    with pytest.raises(InvalidExample, match="column 1 has categories"):
        EverTreeClassifier(categorical_features=None).fit(X, [0, 1, 2])


# --- refused by name


class Strange:
    pass


REFUSED = {
    "list": ([[1], [2]], "column 'bad'"),
    "dict": ([{"a": 1}, {"a": 2}], "column 'bad'"),
    "time": ([dt.time(1), dt.time(2)], "column 'bad'"),
    "bytes": ([b"1", b"2"], "column 'bad'"),
    "decimal": ([decimal.Decimal("0.1"), decimal.Decimal(2)], "column 'bad'"),
    "huge int": ([1, 2**53 + 1], r"column 'bad' is 9007199254740993"),
    "nanoseconds": (
        np.array(["2020-01-01T00:00:00.000000001", "NaT"], dtype="M8[ns]"),
        "column 'bad' has a time of 1577836800000000",
    ),
    "a fine duration": (np.array([1, 5], dtype="m8[ns]"), "column 'bad' has a time of 0"),
}


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_column_that_cannot_be_read_is_named(case, library):
    values, says = REFUSED[case]
    frame = library({"good": [1.0, 2.0], "bad": values})
    tree = EverTree(2)
    for refused in (
        lambda: EverTreeClassifier().fit(frame, [0, 1]),
        lambda: tree.insert_many(frame, [0, 1]),
    ):
        with pytest.raises(InvalidExample, match=says):
            refused()
    assert len(tree) == 0


def test_a_value_that_the_tree_refuses_is_named_too():
    for frame, categorical, says in [
        (pd.DataFrame({"a": [1, np.inf]}), [], "column 'a' in row 1 is inf"),
        (pl.DataFrame({"a": [1, 2], "b": [3, -1]}), [1], "column 'b' in row 1 is -1.0: feature 1"),
    ]:
        with pytest.raises(InvalidExample, match=says):
            EverTreeClassifier(categorical_features=categorical).fit(frame, [0, 1])
        with pytest.raises(InvalidExample, match=says):
            EverTree(len(frame.columns), categorical).insert_many(frame, [0, 1])


def test_names_that_come_twice_are_refused():
    with pytest.raises(InvalidExample, match=r"X cannot be read \(DuplicateError.*'a' 2 times"):
        EverTree(2).insert_many(pd.DataFrame([[1, 2]], columns=["a", "a"]), [0])


OBJECTS = {
    "mixed": ([1, "a"], "has a number (1) in row 0 and a text ('a') in row 1"),
    "moments of two kinds": (
        [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=UTC)],
        "has a moment",
    ),
    "object": ([Strange(), 1], "(Strange)"),
    "complex": ([1j, 1], "1j (complex)"),
    "set": ([{1}, 1], "{1} (set)"),
    "a fine timestamp": ([pd.Timestamp(1, unit="ns"), None], "time of 0 microseconds"),
    "a fine datetime64": ([np.datetime64(1001, "ns"), None], "time of 1 microseconds"),
    "huge int": ([10**30, 1], "1000000000000000000000000000000"),
}


@pytest.mark.parametrize("form", [pd.DataFrame, lambda c: [{"bad": v} for v in c["bad"]]])
@pytest.mark.parametrize("case", OBJECTS)
def test_objects_that_cannot_be_read_are_named(case, form):
    values, says = OBJECTS[case]
    table = form({"bad": pd.Series(values, dtype=object)})
    with pytest.raises(InvalidExample) as error:
        EverTreeClassifier().fit(table, [0, 1])
    assert "column 'bad'" in str(error.value)
    assert says in str(error.value)


def test_a_category_must_look_the_same_tomorrow():
    frame = pd.DataFrame({"bad": pd.Categorical([Strange(), Strange()])})
    with pytest.raises(InvalidExample, match=r"column 'bad' has the category .*\(Strange\)"):
        EverTreeClassifier().fit(frame, [0, 1])


def test_a_column_stays_what_it_was():
    model = EverTreeClassifier().fit(
        pd.DataFrame({"when": [dt.datetime(2020, 1, 1), None], "n": [1, 2], "e": [None, None]}),
        [0, 1],
    )
    good = {"when": [dt.datetime(2020, 1, 1)], "n": [1], "e": [0.5]}
    assert model.predict(pd.DataFrame(good)).tolist() == [0]
    for name, values, says in [
        ("when", [5.0], "column 'when' is a number, and was a moment"),
        (
            "when",
            [dt.datetime(2021, 1, 1, tzinfo=UTC)],
            "column 'when' is a moment with a time zone",
        ),
        ("n", [dt.timedelta(1)], "column 'n' is a duration, and was a number"),
        ("n", ["one"], "column 'n' has categories"),
    ]:
        with pytest.raises(InvalidExample, match=says):
            model.predict(pd.DataFrame(good | {name: values}))
    model.partial_fit(pd.DataFrame(good), [0])  # now `e` has shown what it is
    with pytest.raises(InvalidExample, match="column 'e' is a duration, and was a number"):
        model.predict(pd.DataFrame(good | {"e": [dt.timedelta(1)]}))


ZIPS = {"zip": ["0150", "5003", None], "n": [1, 2, 3]}
NO_TEXTS = {
    "numbers": ([150, 5003, 1], r"column 'zip' has numbers \(150, ...\) and was text in fit"),
    "halves": ([0.5, None, 1.0], r"has numbers \(0.5, ...\)"),
    "booleans": ([True, False, True], r"has numbers \(1, ...\)"),
    "moments": ([BORN, BORN, None], "has values of the kind moment and was text"),
    "categories": (pd.Categorical([150, 5003, None]), r"has categories \(150, ...\)"),
}


@pytest.mark.parametrize("case", NO_TEXTS)
@pytest.mark.parametrize("categorical", ["from_dtype", ["zip"]], ids=str)
def test_a_column_of_text_stays_one(case, categorical):
    model = EverTreeClassifier(categorical_features=categorical).fit(pd.DataFrame(ZIPS), [0, 1, 0])
    values, says = NO_TEXTS[case]
    wrong = pd.DataFrame(ZIPS | {"zip": values})
    digest = model.tree_.digest()
    for refused in (
        lambda: model.predict(wrong),
        lambda: model.predict_proba(wrong),
        lambda: model.partial_fit(wrong, [0, 1, 0]),
        lambda: model.forget(wrong, [0, 1, 0]),
    ):
        with pytest.raises(InvalidExample, match=says) as error:
            refused()
        assert "astype(str), or with dtype=str" in str(error.value)
    assert model.tree_.digest() == digest
    assert model.feature_kinds_ == ("text", "number")


@pytest.mark.parametrize(
    "zips",
    [
        ["0150", None, "9999"],
        pd.Categorical(["5003", None, "0150"]),
        [None, None, None],
        [NAN, NAN, NAN],
        pd.Categorical(["0150", 7, None]),
    ],
    ids=str,
)
def test_texts_and_missing_values_are_taken_where_text_was(zips):
    model = EverTreeClassifier().fit(pd.DataFrame(ZIPS), [0, 1, 0])
    more = pd.DataFrame(ZIPS | {"zip": zips})
    assert len(model.predict(more)) == 3
    assert len(model.partial_fit(more, [0, 1, 0]).tree_) == 6
    nans = pl.DataFrame({"zip": [NAN, NAN], "n": [1, 2]})
    assert len(model.predict(nans)) == 2


def test_an_array_of_numbers_is_no_text_either():
    X = np.array([["0150", 1], ["5003", 2]], dtype=object)
    model = EverTreeClassifier().fit(X, [0, 1])
    with pytest.raises(InvalidExample, match=r"column 0 has numbers \(150, ...\) and was text"):
        model.predict(np.array([[150, 1], [5003, 2]]))
    assert model.predict(np.array([[NAN, 1.0]])).shape == (1,)


def test_categories_that_were_numbers_stay_numbers():
    X = pd.DataFrame({"zone": [7, 8, 9]})
    model = EverTreeClassifier(categorical_features=["zone"]).fit(X, [0, 1, 0])
    assert model.predict(X).tolist() == [0, 1, 0]
    model = EverTreeClassifier().fit(X.astype("category"), [0, 1, 0])
    assert model.feature_kinds_ == ("category",)
    assert model.predict(X).tolist() == [0, 1, 0]


def test_text_that_shows_later_is_remembered():
    model = EverTreeClassifier(categorical_features=["zip"])
    model.fit(pd.DataFrame({"zip": [None, None]}), [0, 1])
    model.partial_fit(pd.DataFrame({"zip": ["0150"]}), [0])
    with pytest.raises(InvalidExample, match="column 'zip' has numbers"):
        model.partial_fit(pd.DataFrame({"zip": [150]}), [0])


def test_dicts_are_watched_as_names_are():
    model = EverTreeClassifier().fit([{"a": 1, "b": 2}, {"a": 2}], [0, 1])
    assert model.predict([{"b": 2, "a": 1}, {"a": 2}]).tolist() == [0, 1]
    with pytest.raises(InvalidExample, match="the feature 'c', which was not there in fit"):
        model.predict([{"c": 1}])
    with pytest.raises(InvalidExample, match=r"X\[1\] is \[1, 2\]"):
        model.predict([{"a": 1}, [1, 2]])
    assert model.predict([{}]).tolist() == model.predict([{"a": None}]).tolist()
    assert EverTreeClassifier().fit([[1.0]], [0]).predict([{}]).tolist() == [0]
    with pytest.raises(InvalidExample, match="names of features are texts"):
        EverTreeClassifier().fit([{1: 2}], [0])


def test_tables_without_rows():
    model = EverTreeClassifier().fit(pd.DataFrame({"a": [1.0]}), [0])
    with pytest.raises(InvalidExample, match="0 rows"):
        model.predict(pd.DataFrame({"a": np.empty(0)}))
    tree = EverTree(1)
    assert tree.insert_many(pl.DataFrame({"a": []}), []).tolist() == []


def test_what_is_a_frame():
    assert all(is_frame(FORMS[form](COLUMNS)) for form in FRAMES)
    none = [[1]], np.ones((1, 1)), pd.Series([1]), pl.Series([1]), pa.array([1]), "text", None, 5
    assert not any(map(is_frame, none))
    assert [c.kind for c in read_frame(pl.DataFrame({"e": [None, None]}))] == [
        "missing values only"
    ]


# --- what is not installed


@pytest.mark.parametrize(
    ("missing", "code", "says"),
    [
        ("sklearn", "evertree.EverTreeClassifier", 'pip install "evertree[sklearn]"'),
        ("river", "evertree.river", 'pip install "evertree[river]"'),
        ("river", "from evertree.river import EverTreeClassifier", "evertree[river]"),
        (
            "narwhals",
            "import pandas; evertree.frames.read_frame(pandas.DataFrame([1]))",
            "evertree[sklearn]",
        ),
        (
            "narwhals",
            "import pandas; t = evertree.EverTree(1); t.insert_many(pandas.DataFrame(['a']), [0])",
            "evertree[sklearn]",
        ),
    ],
)
def test_a_missing_extra_is_named(missing, code, says):
    program = f"import sys; sys.modules[{missing!r}] = None; import evertree; {code}"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith(("evertree.errors.MissingExtra: ", "evertree.errors.InvalidExample: "))
    assert says in last


def test_numbers_are_read_without_narwhals(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals.stable.v2", None)
    tree = EverTree(2)
    tree.insert_many(pd.DataFrame({"a": [1, 2], "b": [0.5, NAN]}), [0, 1])
    tree.insert_many(pl.DataFrame({"a": [1, 2], "b": [0.5, None]}), [0, 1])
    assert tree.example(1)[0].tolist()[0] == 2
    assert len(tree) == 4


def test_importing_evertree_imports_nothing_else_and_is_quick():
    program = """if True:
        import sys, time
        start = time.process_time()
        import numpy
        numpy_done = time.process_time()
        import evertree
        evertree_done = time.process_time()
        loaded = {"sklearn", "river", "pandas", "polars", "pyarrow", "narwhals", "scipy"}
        assert not loaded & set(sys.modules), loaded & set(sys.modules)
        print((evertree_done - start) / (numpy_done - start))
    """
    times = [
        float(
            subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
        )
        for _ in range(3)
    ]
    assert min(times) < 3, f"importing evertree takes {min(times):.1f} times as long as numpy"
