"""What leaves the house answers as the tree does: each export runs in its own runtime."""

import itertools
import json
import math
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from evertree import (
    CannotExport,
    EmptyTree,
    EverTree,
    InvalidParameter,
    MissingExtra,
    category_code,
)
from evertree.export import (
    classes,
    export_dot,
    export_text,
    to_json,
    to_onnx,
    to_shap,
    to_sklearn,
    to_treelite,
)
from evertree.export.onnx import _model
from evertree.export.thresholds import Thresholds
from evertree.outline import Outline
from trees_for_export import LABELS, asking_rows, cases, random_rows, random_tree

EVERY_CASE = pytest.mark.parametrize(("seed", "kind", "labels"), cases())
EXPORTS = [export_text, export_dot, to_json, to_onnx, to_treelite, to_shap, to_sklearn, classes]


def same(found, expected):
    """Compare label by label: numpy would compare a tuple member by member."""
    return [(i, f, e) for i, (f, e) in enumerate(zip(found, expected, strict=True)) if f != e]


def shares_of(tree, rows):
    """The shares of the labels in the node that answers, straight from the tree."""
    names = classes(tree)
    counts = [tree.label_counts(x) for x in rows]
    return np.array([[c.get(y, 0) / sum(c.values()) for y in names] for c in counts])


def chain(n_splits):
    """A deep tree: every value has another label than its neighbours."""
    tree = EverTree(1)
    tree.insert_many([[float(i)] for i in range(n_splits)], [i % 2 for i in range(n_splits)])
    return tree


@pytest.fixture(scope="module")
def all_trees():
    return [random_tree(*case) for case in cases()]


def test_the_trees_have_everything_that_is_hard(all_trees):
    nodes = [node for tree in all_trees for node in tree.nodes()]
    leaves = [node for node in nodes if node["feature"] is None]
    counts = [sorted(node["counts"].values(), reverse=True) for node in leaves]
    assert any(not c for c in counts), "no leaf is empty"
    assert any(len(c) > 1 and c[0] == c[1] for c in counts), "no leaf is tied"
    assert {node["missing_left"] for node in nodes} == {True, False, None}
    assert any(node["category"] is not None and math.isnan(node["category"]) for node in nodes)
    assert any(
        node["threshold"] is not None and float(np.float32(node["threshold"])) != node["threshold"]
        for node in nodes
    )


# ------------------------------------------------------------------------------------ to the reader


def follow_text(text, x, names):
    """Read the indented text as a person would."""
    lines = text.split("\n")
    at, depth = 0, 0
    while True:
        line = lines[at][4 * depth :]
        if line.startswith("label "):
            return line[len("label ") :].rpartition("  ")[0]
        if holds(line, x, names):
            depth += 1
            at += 1
        else:
            at += 1
            while lines[at].startswith("|   " * (depth + 1)):
                at += 1


def holds(condition, x, names):
    name, _, rest = condition.partition(" ")
    value = x[names.index(name)]
    if rest in {"is missing", "is not missing"}:
        return math.isnan(value) == (rest == "is missing")
    comparison, number, *or_missing = rest.split(" ")
    if math.isnan(value):
        return bool(or_missing)
    number = float(number)
    return {"<=": value <= number, ">": value > number, "=": value == number}.get(
        comparison, value != number
    )


@EVERY_CASE
def test_the_text_says_what_the_tree_does(seed, kind, labels):
    tree = random_tree(seed, kind, labels)
    names = [f"feature_{j}" for j in range(tree.limits.n_features)]
    text = export_text(tree, feature_names=names)
    rows = asking_rows(tree, seed, kind, n=60)
    found = [follow_text(text, x, names) for x in rows]
    assert not same(found, [repr(tree.label(x)) for x in rows]), seed


def test_the_text_is_cut_at_a_depth():
    tree = random_tree(1)
    text = export_text(tree, max_depth=2)
    assert max(line.count("|   ") for line in text.split("\n")) <= 2
    cut = sum(int(n) for n in re.findall(r"… (\d+) nodes", text))
    above = len([n for n in tree.nodes() if n["depth"] < 2])
    leaves = len([n for n in tree.nodes() if n["depth"] == 2 and n["feature"] is None])
    assert above + leaves + cut == len(tree.nodes())


def follow_dot(text, x, names):
    nodes = dict(re.findall(r'^  (\d+) \[label="((?:[^"\\]|\\.)*)"', text, re.MULTILINE))
    edges = re.findall(r'^  (\d+) -> (\d+) \[label="(\w+)"\];', text, re.MULTILINE)
    children = {(parent, side): child for parent, child, side in edges}
    at = "0"
    while (at, "yes") in children:
        condition = nodes[at].split("\\n")[0]
        at = children[at, "yes" if holds(condition, x, names) else "no"]
    return nodes[at].split("\\n")[0]


@pytest.mark.parametrize("kind", ["real", "categorical", "mixed"])
def test_the_graph_says_what_the_tree_does(kind):
    tree = random_tree(3, kind, "two")
    names = [f"x{j}" for j in range(tree.limits.n_features)]
    text = export_dot(tree)
    rows = asking_rows(tree, 3, kind, n=60)
    assert not same([follow_dot(text, x, names) for x in rows], [repr(tree.label(x)) for x in rows])


def test_a_graph_quotes_what_has_to_be_quoted():
    tree = EverTree(1)
    tree.insert_many([[0.0], [1.0]], ['say "a\\b"', "line\nend"])
    text = export_dot(tree, feature_names=['the "x" \\ y'])
    assert '0 [label="the \\"x\\" \\\\ y <= 0.5' in text
    # Outside of quoted strings there is nothing but the words of the language.
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "S", text)
    assert '"' not in bare
    assert "\\" not in bare


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_the_graph():
    text = export_dot(random_tree(4, "mixed", "texts"))
    done = subprocess.run(["dot", "-Tsvg"], input=text, text=True, capture_output=True, check=True)  # noqa: S607
    assert "<svg" in done.stdout


# -------------------------------------------------------------------------------- to other programs


def follow_json(document, x):
    node = document["nodes"][0]
    while "label" not in node:
        value = x[node["feature"]]
        if math.isnan(value):
            side = "missing"
        elif node["test"] == "<=":
            side = "left" if value <= node["value"] else "right"
        elif node["test"] == "=":
            side = "left" if value == node["value"] else "right"
        else:
            side = "right"
        node = document["nodes"][node[side] if side != "missing" else node["missing"]]
    return document["labels"][node["label"]]


@EVERY_CASE
def test_json_says_what_the_tree_does(seed, kind, labels):
    tree = random_tree(seed, kind, labels)
    if labels == "many kinds":
        with pytest.raises(CannotExport, match=r"\('a', 1\) \(tuple\) has no form in JSON"):
            to_json(tree)
        return
    document = json.loads(to_json(tree), parse_constant=pytest.fail)
    rows = asking_rows(tree, seed, kind)
    assert not same([follow_json(document, x) for x in rows], tree.label_many(rows).tolist()), seed


@EVERY_CASE
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_onnxruntime_says_what_the_tree_does(seed, kind, labels, dtype):
    runtime = pytest.importorskip("onnxruntime")
    tree = random_tree(seed, kind, labels)
    by_position = labels == "many kinds"
    if by_position:
        with pytest.raises(CannotExport, match="labels='position'"):
            to_onnx(tree)
    model = to_onnx(tree, dtype=dtype, labels="position" if by_position else "own")
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    rows = asking_rows(tree, seed, kind).astype(dtype)
    found, shares = session.run(["label", "probabilities"], {"X": rows})
    exact = rows.astype(np.float64)
    expected = tree.label_many(exact).tolist()
    names = classes(tree)
    found = [names[i] for i in found] if by_position else found.tolist()
    assert not same(found, expected), seed
    np.testing.assert_allclose(shares, shares_of(tree, exact), rtol=1e-6)
    # One row at a time takes another way through the runtime.
    for x, label in zip(rows[:20], expected, strict=False):
        (one,) = session.run(["label"], {"X": x[np.newaxis]})
        assert (names[one[0]] if by_position else one.tolist()[0]) == label


@pytest.mark.parametrize("n_features", [1, 2])
def test_onnx_knows_chains_of_equalities(n_features):
    # onnxruntime makes one test of successive BRANCH_EQ on a feature, and that can be another tree.
    runtime = pytest.importorskip("onnxruntime")
    for seed in range(30):
        rng = np.random.default_rng(seed)
        tree = EverTree(n_features, range(n_features))
        rows = rng.integers(0, 7, (40, n_features)).astype(float)
        rows[rng.random(rows.shape) < 0.1] = np.nan
        tree.insert_many(rows, rng.integers(0, 5, 40))
        asked = np.array(list(itertools.product([*range(9), math.nan], repeat=n_features)))
        session = runtime.InferenceSession(to_onnx(tree).SerializeToString())
        found = session.run(["label"], {"X": asked})[0].tolist()
        assert not same(found, tree.label_many(asked).tolist()), seed


@pytest.mark.parametrize("kind", ["categorical", "mixed"])
@pytest.mark.parametrize("seed", range(5))
def test_missing_values_may_go_with_a_category(seed, kind, monkeypatch):
    # Trees send them with no category so far, but a node can say it, so exports have to know it.
    runtime, treelite = pytest.importorskip("onnxruntime"), pytest.importorskip("treelite")
    pytest.importorskip("sklearn")
    tree = random_tree(seed, kind)
    nodes = tree.nodes()
    for node in nodes[seed % 2 :: 2]:
        if node["category"] is not None:
            node["missing_left"] = True
    monkeypatch.setattr(EverTree, "nodes", lambda _: nodes)
    rows = asking_rows(tree, seed, kind)
    document = json.loads(to_json(tree))
    expected = [follow_json(document, x) for x in rows]
    assert expected != tree.label_many(rows).tolist()
    names = classes(tree)
    session = runtime.InferenceSession(to_onnx(tree).SerializeToString())
    assert not same(session.run(["label"], {"X": rows})[0].tolist(), expected)
    shares = treelite.gtil.predict(to_treelite(tree), rows, nthread=1).reshape(len(rows), -1)
    assert not same([names[i] for i in shares.argmax(axis=1)], expected)
    assert not same(to_sklearn(tree).predict(rows).tolist(), expected)


def test_onnx_keeps_the_winner_where_float32_sees_a_tie():
    runtime = pytest.importorskip("onnxruntime")
    tree = random_tree(0, "real", "two")
    outline = Outline.of(tree)
    # Counts that no test can insert: 2**25 + 1 of "b" and one less of "a", one share in float32.
    leaf = {**outline.nodes[0], "feature": None, "left": None, "right": None, "threshold": None}
    leaf["counts"] = {"b": 2**25 + 1, "a": 2**25}
    single = replace(outline, nodes=(leaf,), answering=np.array([0]), winners=np.array([1]))
    onnx = pytest.importorskip("onnx")
    model = _model(onnx, single, [b"a", b"b"], np.dtype("float64"))
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    assert session.run(["label"], {"X": np.zeros((1, 3))})[0].tolist() == ["b"]


@EVERY_CASE
def test_treelite_says_what_the_tree_does(seed, kind, labels):
    treelite = pytest.importorskip("treelite")
    tree = random_tree(seed, kind, labels)
    model = to_treelite(tree)
    again = treelite.Model.deserialize_bytes(model.serialize_bytes())
    rows, names = asking_rows(tree, seed, kind), classes(tree)
    for runs in (model, again):
        shares = treelite.gtil.predict(runs, rows, nthread=1).reshape(len(rows), -1)
        found = [names[i] for i in shares.argmax(axis=1)]
        assert not same(found, tree.label_many(rows).tolist()), seed
        np.testing.assert_array_equal(shares, shares_of(tree, rows))


@EVERY_CASE
def test_scikit_learn_says_what_the_tree_does(seed, kind, labels):
    sklearn_tree = pytest.importorskip("sklearn.tree")
    tree = random_tree(seed, kind, labels)
    classifier = to_sklearn(tree)
    assert isinstance(classifier, sklearn_tree.DecisionTreeClassifier)
    rows = asking_rows(tree, seed, kind)
    expected = tree.label_many(rows).tolist()
    for runs in (classifier, pickle.loads(pickle.dumps(classifier))):  # noqa: S301
        assert not same(runs.predict(rows).tolist(), expected), seed
        np.testing.assert_array_equal(runs.predict_proba(rows), shares_of(tree, rows))
    leaves = classifier.apply(rows)
    assert (classifier.tree_.children_left[leaves] == -1).all()
    assert classifier.decision_path(rows).shape == (len(rows), classifier.tree_.node_count)


def importances(tree):
    """The normalized total of what each feature gains, from the counts of the nodes."""
    nodes, gains = tree.nodes(), np.zeros(tree.limits.n_features)

    def mass(node):
        counts = np.array(list(node["counts"].values()), dtype=float)
        return counts.sum() - (counts**2).sum() / counts.sum() if len(counts) else 0.0

    for node in nodes:
        if node["feature"] is not None:
            below = mass(nodes[node["left"]]) + mass(nodes[node["right"]])
            gains[node["feature"]] += mass(node) - below
    return gains / gains.sum()


@pytest.mark.parametrize("kind", ["real", "categorical", "mixed"])
def test_scikit_learn_has_the_importances_of_the_tree(kind):
    pytest.importorskip("sklearn")
    tree = random_tree(11, kind)
    np.testing.assert_allclose(to_sklearn(tree).feature_importances_, importances(tree), rtol=1e-9)


def test_scikit_learn_draws_and_prints_the_classifier():
    sklearn_tree = pytest.importorskip("sklearn.tree")
    classifier = to_sklearn(random_tree(12, "mixed"))
    assert "class: " in sklearn_tree.export_text(classifier)
    assert classifier.get_depth() >= 3
    assert classifier.score(np.zeros((2, 4)), classifier.predict(np.zeros((2, 4)))) == 1.0


def test_scikit_learn_fits_the_classifier_anew():
    pytest.importorskip("sklearn")
    classifier = to_sklearn(random_tree(12, "real"))
    rng = np.random.default_rng(0)
    rows, answers = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    classifier.predict(np.zeros((1, 3)))
    classifier.fit(rows, answers)
    np.testing.assert_array_equal(classifier.predict(rows.astype(np.float32)), answers)


def test_scikit_learn_refuses_what_float32_cannot_tell_apart():
    pytest.importorskip("sklearn")
    tree = EverTree(1)
    values = 1.0 + np.arange(4) * 2.0**-40
    tree.insert_many(values[:, np.newaxis], ["a", "b", "a", "b"])
    classifier = to_sklearn(tree)
    with pytest.raises(CannotExport, match=r"X\[1\]\[0\]=1.0000000000009\d+ lies between two"):
        classifier.predict([[1.0], [values[1]]])
    assert classifier.predict([[0.5], [1.5]]).tolist() == ["a", "b"]


@pytest.mark.parametrize("huge", [1e39, -1e39, 1e300])
def test_scikit_learn_takes_values_beyond_float32(huge):
    pytest.importorskip("sklearn")
    tree = EverTree(1)
    tree.insert_many([[0.0], [huge], [2 * huge]], ["a", "b", "c"])
    classifier = to_sklearn(tree)
    rows = [[0.0], [2 * huge], [1.0], [-1.0], [1e38], [-1e38]]
    assert classifier.predict(rows).tolist() == tree.label_many(rows).tolist()
    with pytest.raises(CannotExport, match="no float32 number between them"):
        classifier.predict([[huge]])


@EVERY_CASE
def test_shap_explains_what_the_tree_says(seed, kind, labels):
    shap = pytest.importorskip("shap")
    tree = random_tree(seed, kind, labels)
    explainer = shap.TreeExplainer(to_shap(tree))
    rows, names = asking_rows(tree, seed, kind, n=100), classes(tree)
    shares = np.asarray(explainer.model.predict(rows)).reshape(len(rows), -1)
    np.testing.assert_allclose(shares, shares_of(tree, rows), atol=1e-12)
    assert not same([names[i] for i in shares.argmax(axis=1)], tree.label_many(rows).tolist()), seed
    # What the features contribute adds up to the answer.
    values = np.asarray(explainer.shap_values(rows)).reshape(*rows.shape, len(names))
    total = values.sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, shares, atol=1e-9)


def test_shap_explains_against_a_background():
    shap = pytest.importorskip("shap")
    tree = random_tree(5, "mixed")
    rows = random_rows(np.random.default_rng(5), 40, "mixed")
    explainer = shap.TreeExplainer(to_shap(tree), data=rows[:20])
    explanation = explainer(rows[20:])
    total = explanation.values.sum(axis=1) + explanation.base_values
    np.testing.assert_allclose(total, shares_of(tree, rows[20:]), atol=1e-6)


def expectation(tree, x, known):
    """The expected shares if only `known` features are known: the slow twin of shap's walk."""
    nodes, names = tree.nodes(), classes(tree)

    def value(i):
        node = nodes[i]
        if node["feature"] is None:
            counts, up = node["counts"], node
            while not counts:
                up = nodes[up["parent"]]
                counts = up["counts"]
            return np.array([counts.get(y, 0) / sum(counts.values()) for y in names])
        left, right = nodes[node["left"]], nodes[node["right"]]
        if node["feature"] in known:
            v = x[node["feature"]]
            holds = v <= node["threshold"] if node["category"] is None else v == node["category"]
            holds = node["missing_left"] if math.isnan(v) else holds
            return value((left if holds else right)["id"])
        n_left, n_right = (sum(side["counts"].values()) for side in (left, right))
        below = n_left * value(left["id"]) + n_right * value(right["id"])
        return below / (n_left + n_right)

    return value(0)


@pytest.mark.parametrize("kind", ["real", "categorical", "mixed"])
def test_shap_values_are_those_of_the_tree_with_equality(kind):
    shap = pytest.importorskip("shap")
    tree = random_tree(21, kind, "two", n=120)
    d = tree.limits.n_features
    rows = asking_rows(tree, 21, kind, n=15)[:15]
    found = np.asarray(shap.TreeExplainer(to_shap(tree)).shap_values(rows)).reshape(15, d, 2)
    for x, values in zip(rows, found, strict=True):
        for j in range(d):
            others = [k for k in range(d) if k != j]
            exact = np.zeros(2)
            for size in range(d):
                weight = math.factorial(size) * math.factorial(d - size - 1) / math.factorial(d)
                for known in itertools.combinations(others, size):
                    gain = expectation(tree, x, {*known, j}) - expectation(tree, x, known)
                    exact += weight * gain
            np.testing.assert_allclose(values[j], exact, atol=1e-9)


# ----------------------------------------------------------------------- equality by two thresholds


def test_equalities_on_one_feature_do_not_multiply():
    tree = EverTree(1, categorical=[0])
    n = 60
    tree.insert_many([[float(i)] for i in range(n)], list(range(n)))
    written = Thresholds.of(Outline.of(tree))
    assert len(tree.nodes()) == 2 * n - 1
    assert len(written.feature) < n * n


def test_equalities_on_many_features_are_refused_at_a_limit(monkeypatch):
    monkeypatch.setattr("evertree.export.thresholds._COPIES_MAX", 50)
    with pytest.raises(CannotExport, match="more than 50 additional nodes"):
        to_shap(random_tree(2, "categorical"))


# ------------------------------------------------------------------ texts, moments, digits in words

CITIES = ["Oslo", "Bergen", "Tromsø"]


def tree_of_cities():
    tree = EverTree(2, categorical=[1])
    rows = [[0.1 + 0.2 * (i % 2), CITIES[i % 3]] for i in range(12)]
    tree.insert_many(rows, [f"{city}{x > 0.2}" for x, city in rows])
    return tree


@pytest.mark.parametrize(
    "categories",
    [
        {"city": CITIES},
        {1: np.array(CITIES)},
        {np.int64(1): CITIES},
        CITIES,
        (city for city in [*CITIES, None, math.nan, "never seen"]),
        {"city": CITIES, "x": [0.5]},
    ],
    ids=["name", "position", "position of numpy", "for all", "iterator", "and numbers"],
)
def test_texts_are_written_where_their_codes_occur(categories):
    tree, names = tree_of_cities(), ["x", "city"]
    codes = [str(n["category"]) for n in tree.nodes() if n["category"] is not None]
    categories = list(categories) if not isinstance(categories, dict) else categories
    assert codes
    for export in (export_text, export_dot):
        plain = export(tree, feature_names=names)
        named = export(tree, feature_names=names, categories=categories)
        for code in codes:
            assert f"city = {code}" in plain
            assert code not in named
        # With codes in place of the texts, it is the same document.
        for city in CITIES:
            named = named.replace(f"= {city!r}", f"= {category_code(city):.0f}")
        assert named == plain


def test_codes_without_a_name_stay_numbers():
    tree = tree_of_cities()
    first = next(n for n in tree.nodes() if n["category"] is not None)
    text = export_text(tree, categories={"x1": ["never seen"]})
    assert text == export_text(tree)
    assert f"x1 = {first['category']}" in text


def test_json_has_the_texts_beside_their_codes():
    document = json.loads(to_json(tree_of_cities(), categories=CITIES[:2]))
    tests = [node for node in document["nodes"] if node.get("test") == "="]
    assert tests
    known = {category_code(city): city for city in CITIES[:2]}
    for node in tests:
        assert node.get("category_text") == known.get(node["value"])
    assert not any("category_text" in n for n in json.loads(to_json(tree_of_cities()))["nodes"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"categories": {"town": ["Oslo"]}}, "categories has the key 'town', which is neither"),
        ({"categories": {2: ["Oslo"]}}, "the features are ['x0', 'x1']"),
        ({"categories": {True: ["Oslo"]}}, "categories has the key True"),
        ({"categories": {"x1": "Oslo"}}, "categories['x1']='Oslo': give a list of the texts"),
        ({"categories": "Oslo"}, "categories='Oslo': give a list"),
        ({"categories": 5}, "categories=5: give a list"),
        ({"digits": 0}, "digits=0 is neither None nor an int >= 1"),
        ({"digits": 2.0}, "digits=2.0 is neither"),
    ],
)
@pytest.mark.parametrize("export", [export_text, export_dot])
def test_odd_words_are_refused(export, options, says):
    with pytest.raises(InvalidParameter, match=re.escape(says)):
        export(tree_of_cities(), **options)


def test_thresholds_can_be_rounded_for_eyes():
    tree = EverTree(2)
    tree.insert_many([[0.1, 123456.0], [0.2, 0.0], [0.4, 0.0]], ["a", "b", "c"])
    full, rounded = export_text(tree), export_text(tree, digits=2)
    assert "x0 <= 0.15000000000000002" in full
    assert "x0 <= 0.15\n" in rounded
    assert "x0 <= 0.3" in export_dot(tree, digits=1)
    large = EverTree(1)
    large.insert_many([[123456.0], [123459.0]], ["a", "b"])
    assert "x0 <= 120000.0 or missing" in export_text(large, digits=2)
    assert export_text(large, digits=10**9) == export_text(large)
    huge = EverTree(1)
    huge.insert_many([[1.7e308], [1.78e308]], ["a", "b"])
    assert "inf" not in export_text(huge, digits=1)


@pytest.mark.parametrize(
    ("moments", "zone", "says"),
    [
        (["2026-04-11", "2026-04-12"], None, "d <= 2026-04-11T12:00 or missing"),
        (["2026-04-11", "2026-04-13"], None, "d <= 2026-04-12T00:00 or missing"),
        (["2026-04-11", "2026-04-13"], "UTC", "d <= 2026-04-12T00:00Z or missing"),
        (["1969-12-31T23:59:59.999998", "1969-12-31T23:59:59.999999"], None, "59.999998 or"),
        (["1100-01-01", "1100-01-03"], None, "d <= 1100-01-02T00:00 or missing"),
    ],
)
def test_moments_are_written_as_dates(moments, zone, says):
    pd, models = pytest.importorskip("pandas"), pytest.importorskip("evertree.estimators.sklearn")
    column = pd.Series(np.array(moments, dtype="M8[us]")).dt.tz_localize(zone)
    frame = pd.DataFrame({"d": column})
    model = models.EverTreeClassifier().fit(frame, [0, 1])
    assert says in export_text(model)
    assert says in export_text(model, digits=2)
    # The tree itself knows numbers alone, and so do programs.
    threshold = model.tree_.nodes()[0]["threshold"]
    assert f"x0 <= {threshold!r}" in export_text(model.tree_)
    assert json.loads(to_json(model))["nodes"][0]["value"] == threshold


# ----------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "export", [to_shap, to_sklearn, to_treelite, lambda tree: to_onnx(tree, dtype="float32")]
)
def test_where_texts_cannot_go_they_are_spoken_of(export):
    models = pytest.importorskip("evertree.estimators.sklearn")
    model = models.EverTreeClassifier().fit([{"city": city} for city in CITIES], [0, 1, 2])
    with pytest.raises(CannotExport, match="column 'city' holds texts, which the tree stores as"):
        export(model)
    bare = tree_of_cities()
    with pytest.raises(CannotExport, match=r"feature 'x1': category \d+ is not below .* \(texts"):
        export(bare)


def test_onnx_takes_texts_by_their_codes():
    runtime = pytest.importorskip("onnxruntime")
    tree = tree_of_cities()
    session = runtime.InferenceSession(to_onnx(tree).SerializeToString())
    rows = [[0.1, city] for city in [*CITIES, "never seen"]]
    coded = np.array([[x, category_code(city)] for x, city in rows])
    assert session.run(["label"], {"X": coded})[0].tolist() == [tree.label(row) for row in rows]


@pytest.mark.parametrize(
    ("export", "category", "says"),
    [
        (to_shap, 2**24, r"category 16777216 is not below 2\*\*24"),
        (to_sklearn, 2**24, r"category 16777216 is not below 2\*\*24"),
        (lambda tree: to_onnx(tree, dtype="float32"), 2**24, "use dtype='float64'"),
        (to_treelite, 2**32, r"category 4294967296 is not below 2\*\*32"),
    ],
)
def test_categories_beyond_the_target_are_refused(export, category, says):
    tree = EverTree(1, categorical=[0])
    tree.insert_many([[category], [category + 1]], ["a", "b"])
    with pytest.raises(CannotExport, match=says):
        export(tree)


def test_onnx_in_float64_knows_large_categories():
    runtime = pytest.importorskip("onnxruntime")
    tree = EverTree(1, categorical=[0])
    largest = 2**53 - 1
    tree.insert_many([[largest], [largest - 1], [3]], [1, 2, 3])
    session = runtime.InferenceSession(to_onnx(tree).SerializeToString())
    rows = np.array([[largest], [largest - 1], [3], [4], [largest - 2]], dtype=float)
    assert session.run(["label"], {"X": rows})[0].tolist() == tree.label_many(rows).tolist()


@pytest.mark.parametrize("odd", ["a\0", "\ud800"])
def test_texts_that_are_hard_to_keep(odd):
    pytest.importorskip("sklearn")
    tree, rows = EverTree(1), [[0.0], [1.0], [2.0]]
    names = ["a", odd, "é\u2028"]
    tree.insert_many(rows, names)
    assert to_sklearn(tree).predict(rows).tolist() == names
    document = json.loads(to_json(tree).encode("utf-8"))
    assert [follow_json(document, x) for x in rows] == names
    with pytest.raises(CannotExport, match="has a zero character or half a surrogate pair"):
        to_onnx(tree)


def test_a_threshold_beyond_float32_is_refused_there():
    tree = EverTree(1)
    tree.insert_many([[-1e300], [-1e299]], ["a", "b"])
    with pytest.raises(CannotExport, match="is beyond float32"):
        to_onnx(tree, dtype="float32")


@pytest.mark.parametrize("export", EXPORTS)
def test_an_empty_tree_has_nothing_to_export(export):
    with pytest.raises(EmptyTree, match="insert one first"):
        export(EverTree(1))


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("wrong", [None, 3, "tree", object()])
def test_what_is_no_tree_is_refused(export, wrong):
    with pytest.raises(InvalidParameter, match="is neither an EverTree nor"):
        export(wrong)


@pytest.mark.parametrize("export", EXPORTS)
def test_an_estimator_is_taken_by_its_tree(export):
    class Estimator:
        tree_ = random_tree(0, "real", "two")
        feature_names_in_ = ("a", "b", "c")

    export(Estimator())


def test_the_names_of_an_estimator_are_used():
    class Estimator:
        tree_ = random_tree(0, "real", "two")
        feature_names_in_ = np.array(["a", "b", "c"], dtype=object)

    assert re.match(r"[abc] ", export_text(Estimator()))
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame(random_rows(np.random.default_rng(0), 20, "real"), columns=[*"abc"])
    found = to_sklearn(Estimator()).predict(rows)
    assert found.tolist() == Estimator.tree_.label_many(rows.to_numpy()).tolist()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda t: export_text(t, feature_names=["a"]), "one name for each of the 3 features"),
        (lambda t: export_text(t, feature_names="abc"), "one name for each of the 3 features"),
        (lambda t: export_text(t, feature_names=3), "one name for each of the 3 features"),
        (lambda t: export_text(t, max_depth=-1), "max_depth=-1 is neither None nor an int >= 0"),
        (lambda t: export_dot(t, max_depth=True), "max_depth=True is neither"),
        (lambda t: to_onnx(t, dtype="float16"), "dtype='float16' is neither"),
        (lambda t: to_onnx(t, labels="names"), "labels='names' is neither"),
    ],
)
def test_odd_arguments_are_refused(call, says):
    with pytest.raises(InvalidParameter, match=re.escape(says)):
        call(random_tree(0, "real"))


@pytest.mark.parametrize(
    ("export", "package"), [(to_onnx, "onnx"), (to_treelite, "treelite"), (to_sklearn, "sklearn")]
)
def test_a_missing_package_names_the_extra(export, package, monkeypatch):
    for name in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"needs {package}.*evertree\[export\]"):
        export(random_tree(0, "real"))


def test_exports_change_nothing():
    tree = random_tree(0)
    before = tree.digest()
    for export in EXPORTS:
        export(tree)
    assert tree.digest() == before


@pytest.mark.parametrize("export", [export_text, export_dot, to_json, to_treelite, to_shap])
def test_a_deep_tree_is_exported(export):
    tree = chain(3000)
    assert max(n["depth"] for n in tree.nodes()) > 1000
    export(tree)


def test_all_labels_are_listed_in_the_order_of_ties():
    tree = EverTree(1)
    tree.insert_many([[0.0]] * 4, LABELS["many kinds"])
    assert classes(tree)[0] == tree.label([0.0])
