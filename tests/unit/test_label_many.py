"""Labels of many rows at once are those of the rows one by one, whatever the tree and the table."""

from __future__ import annotations

import numpy as np
import pytest

from evertree import EverTree

SHAPES = ["balanced", "one row a level", "a single leaf"]


def tree_and_rows(shape: str, *, missing: bool, category: bool):
    """Make a tree of 300 examples, and rows that are like them and others that are not."""
    random = np.random.default_rng(7)
    X = random.integers(0, 40, size=(300, 3)).astype(float)
    if missing:
        X[random.random(X.shape) < 0.2] = np.nan
    y = np.full(len(X), 1)
    if shape == "balanced":
        y = np.nan_to_num(X).sum(axis=1).astype(int) % 4
    elif shape == "one row a level":
        X[:, 0] = np.arange(len(X))
        y = np.arange(len(X)) % 2
    tree = EverTree(3, categorical=[2] if category else (), min_impurity=0.0)
    tree.insert_many(X, y)
    others = random.uniform(-10, 50, size=(200, 3)).round() * [1, 1, 0] + [0, 0, 3]
    return tree, np.concatenate([X, others])


@pytest.mark.parametrize("category", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_gets_the_labels_of_its_rows(shape, missing, category):
    tree, rows = tree_and_rows(shape, missing=missing, category=category)
    one_by_one = [tree.label(x) for x in rows]
    for n in (1, 2, 15, 16, 17, 33, len(rows)):
        assert tree.label_many(rows[:n]).tolist() == one_by_one[:n]
        assert tree.label_many(rows[-n:]).tolist() == one_by_one[-n:]


def test_one_part_of_a_long_table_may_have_missing_values():
    tree, rows = tree_and_rows("balanced", missing=True, category=False)
    table = np.nan_to_num(np.tile(rows, (40, 1)))
    table[9_000] = rows[np.isnan(rows).any(axis=1)][0]
    assert tree.label_many(table).tolist() == [tree.label(x) for x in table]
