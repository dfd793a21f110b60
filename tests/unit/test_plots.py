"""Pictures show what is there: boxes, answers, cuts and columns, checked by what was drawn."""

import sys

import numpy as np
import pytest

from evertree import EmptyTree, EverTree, InvalidParameter, MissingExtra
from evertree.outline import Outline
from evertree.plots import plot_history, plot_tree
from trees_for_export import random_tree

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    pyplot.close("all")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def boxes(ax):
    kind = matplotlib.patches.FancyBboxPatch
    return [patch for patch in ax.patches if isinstance(patch, kind)]


@pytest.mark.parametrize("kind", ["real", "categorical", "mixed"])
def test_every_node_has_a_box_in_its_colour(kind):
    tree = random_tree(1, kind, n=100)
    drawn = boxes(plot_tree(tree, max_depth=None))
    outline = Outline.of(tree)
    assert len(drawn) == len(outline.nodes)
    for box, node in zip(drawn, outline.nodes, strict=True):
        assert matplotlib.colors.to_hex(box.get_facecolor()) == outline.colour(node)


@pytest.mark.parametrize("seed", range(3))
def test_no_two_boxes_overlap(seed):
    drawn = boxes(plot_tree(random_tree(seed, n=100), max_depth=None))
    places = [(b.get_x(), b.get_x() + b.get_width(), b.get_y()) for b in drawn]
    for i, (left, right, y) in enumerate(places):
        for other_left, other_right, other_y in places[:i]:
            assert y != other_y or right < other_left or other_right < left


def test_the_text_stays_in_its_box():
    ax = plot_tree(random_tree(2, "mixed"), feature_names=["i", "wwwwwwwwww", "a b", "mmmmm"])
    ax.figure.canvas.draw()
    titles = [t for t in ax.texts if t.get_text().startswith(("i ", "www", "a b", "mmm"))]
    assert titles
    extents = [box.get_window_extent() for box in boxes(ax)]
    for title in titles:
        own = title.get_window_extent()
        assert any(e.x0 <= own.x0 and own.x1 <= e.x1 and e.y0 <= own.y0 <= e.y1 for e in extents), (
            title.get_text()
        )


def test_what_lies_below_is_cut_and_counted():
    tree = random_tree(3)
    ax = plot_tree(tree, max_depth=2)
    drawn = [n for n in tree.nodes() if n["depth"] <= 2]
    assert len(boxes(ax)) == len(drawn)
    cut = [t for t in texts(ax) if t.startswith("… ")]
    below = sum(int(t.split()[1]) for t in cut)
    assert cut
    assert below == len(tree.nodes()) - len(drawn)


def test_empty_leaves_are_dashed():
    tree = next(
        t
        for t in (random_tree(s, n=100) for s in range(40))
        if any(not n["counts"] for n in t.nodes())
    )
    ax = plot_tree(tree, max_depth=None)
    dashed = [box for box in boxes(ax) if box.get_linestyle() == "--"]
    assert len(dashed) == sum(not n["counts"] for n in tree.nodes())
    assert texts(ax).count("empty") == len(dashed)


def test_a_tree_fits_into_the_axes_it_is_given():
    _, ax = pyplot.subplots(figsize=(4, 3))
    assert plot_tree(random_tree(4), ax=ax, max_depth=5) is ax
    assert max(text.get_fontsize() for text in ax.texts) < 5
    low, high = ax.get_xlim()
    assert all(low <= b.get_x() and b.get_x() + b.get_width() <= high for b in boxes(ax))


def test_names_that_look_like_formulas_are_drawn_as_they_are():
    tree = EverTree(1)
    tree.insert_many([[0.0], [1.0]], ["$x$", "$\\broken"])
    ax = plot_tree(tree, feature_names=["$\\frac"])
    ax.figure.canvas.draw()
    assert "$\\frac ≤ 0.5" in texts(ax)


@pytest.mark.parametrize(
    ("rows", "labels", "says"),
    [
        ([[0.0], [1.0]], "ab", "x0 ≤ 0.5"),
        ([[0.0], [1.0], [np.nan]], "aba", "x0 ≤ 0.5 or missing"),
        ([[0.0], [1.0], [np.nan]], "abb", "x0 ≤ 0.5 (missing: no)"),
    ],
)
def test_where_missing_values_go_is_drawn_if_there_are_any(rows, labels, says):
    tree = EverTree(1)
    tree.insert_many(rows, list(labels))
    assert says in texts(plot_tree(tree))


def test_a_split_on_missing_values_is_drawn():
    tree = EverTree(1, categorical=[0])
    tree.insert_many([[np.nan], [np.nan], [1.0], [2.0]], list("aabb"))
    assert "x0 missing" in texts(plot_tree(tree))


def test_texts_and_rounded_thresholds_are_drawn():
    tree = EverTree(1, categorical=[0])
    tree.insert_many([["Oslo"], ["Oslo"], ["Bergen"]], ["a", "a", "b"])
    titles = texts(plot_tree(tree, feature_names=["city"], categories=["Oslo", "Bergen"]))
    assert {"city = Oslo", "city = Bergen"} & set(titles)
    assert f"city = {tree.nodes()[0]['category']}" in texts(plot_tree(tree, feature_names=["city"]))
    numbers = EverTree(1)
    numbers.insert_many([[123456.0], [123459.0]], ["a", "b"])
    assert "x0 ≤ 123500" in texts(plot_tree(numbers))
    with pytest.raises(InvalidParameter, match="neither the name nor the position"):
        plot_tree(tree, categories={"town": ["Oslo"]})


def test_many_labels_are_not_all_in_the_legend():
    tree = EverTree(1)
    tree.insert_many([[float(i)] for i in range(30)], list(range(30)))
    assert "… 18 more" in texts(plot_tree(tree))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_depth": -1}, "max_depth=-1 is neither None nor an int >= 0"),
        ({"max_depth": 2.5}, "max_depth=2.5 is neither None nor an int >= 0"),
        ({"precision": None}, "precision=None is not an int >= 1"),
        ({"feature_names": ["a"]}, "one name for each of the 4 features"),
    ],
)
def test_odd_arguments_of_a_picture_are_refused(options, says):
    with pytest.raises(InvalidParameter, match=says):
        plot_tree(random_tree(0), **options)


def test_an_empty_tree_has_no_picture():
    with pytest.raises(EmptyTree):
        plot_tree(EverTree(1))


# -------------------------------------------------------------------------------------- history

HISTORY = {
    "examples": [100, 200, 300, 400],
    "f1": [0.5, 0.6, None, 0.8],
    "f1_macro": [0.1, 0.1, 0.1, 0.1],
    "active": [100, 150, 150, 150],
    "rows_rebuilt": [100, 100, 350, 360],
    "worst_gap": [0.01, None, 0.05, None],
    "name": ["not", "a", "number", "column"],
}


def lines(figure):
    return {ax.get_ylabel(): ax.lines[0].get_xydata().tolist() for ax in figure.axes}


def as_rows(history):
    return [dict(zip(history, row, strict=True)) for row in zip(*history.values(), strict=True)]


class Result:
    def rows(self):
        return as_rows(HISTORY)


@pytest.mark.parametrize("form", ["mapping", "frame", "polars", "rows", "result"])
def test_every_form_of_a_history_is_drawn(form):
    history = HISTORY
    if form == "frame":
        history = pytest.importorskip("pandas").DataFrame(HISTORY)
    elif form == "polars":
        history = pytest.importorskip("polars").DataFrame(HISTORY)
    elif form == "rows":
        history = as_rows(HISTORY)
    elif form == "result":
        history = Result()
    drawn = lines(plot_history(history))
    assert list(drawn) == ["F1", "active rows", "rows rebuilt", "worst gap"]
    assert drawn["active rows"] == [[100, 100], [200, 150], [300, 150], [400, 150]]
    assert drawn["rows rebuilt"] == [[100, 100], [200, 0], [300, 250], [400, 10]]
    assert drawn["worst gap"] == [[100, 0.01], [300, 0.05]]
    assert np.isnan(drawn["F1"][2][1])


def test_what_is_there_is_drawn():
    drawn = lines(plot_history({"accuracy": [0.5, 0.75]}))
    assert drawn == {"accuracy": [[0, 0.5], [1, 0.75]]}


def test_a_history_of_a_real_run_is_drawn():
    tree, points = EverTree(1, max_gap=0.2), []
    for i in range(60):
        tree.insert([float(i * 7 % 13)], i % 3)
        if i % 10 == 9:
            gap = tree.certify().worst_gap
            points.append({"step": i, "active": len(tree), "worst_gap": gap} | tree.stats())
    drawn = lines(plot_history(points))
    assert [y for _, y in drawn["active rows"]] == [10, 20, 30, 40, 50, 60]
    assert sum(y for _, y in drawn["rows rebuilt"]) == tree.stats()["rows_rebuilt"]


def test_a_history_is_drawn_into_given_axes():
    figure, axes = pyplot.subplots(2, 2)
    assert plot_history(HISTORY, axes=axes) is figure
    assert [len(ax.lines) for ax in axes.ravel()] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("history", "says"),
    [
        (3, "history=3: give a result"),
        ({"x": [1]}, "none of them can be drawn"),
        ({"f1": [None, None]}, "none of them can be drawn"),
        ({"f1": ["a"]}, "is not a column of numbers"),
        ({"f1": [1.0], "active": [1, 2]}, "columns of different lengths"),
        ([{"f1": 1.0}, 3], "each point has to be a dict"),
    ],
)
def test_an_odd_history_is_refused(history, says):
    with pytest.raises(InvalidParameter, match=says):
        plot_history(history)


def test_too_few_axes_are_refused():
    _, ax = pyplot.subplots()
    with pytest.raises(InvalidParameter, match="4 panels are to be drawn"):
        plot_history(HISTORY, axes=ax)


@pytest.mark.parametrize("draw", [lambda: plot_tree(random_tree(0)), lambda: plot_history(HISTORY)])
def test_without_matplotlib_the_extra_is_named(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtra, match=r"needs matplotlib.*evertree\[plot\]"):
        draw()
