"""Rows are stored in as few bytes as their values need, and come back as they went in."""

import numpy as np
import pytest

from evertree import EverTree

COLUMNS = {
    "whole": np.arange(0, 255.0),
    "rates": np.arange(0, 255) / 100,
    "rates of a float": (np.arange(0, 255) / 100).astype(np.float32),
    "prices": np.arange(-32_768, 32_767, 13) / 100,
    "prices of a float": (np.arange(-32_768, 32_767, 13) / 100).astype(np.float32),
    "thousandths": np.arange(0, 300) / 1000,
    "sums": np.arange(0, 100) * 0.1,  # 0.30000000000000004 is no hundredth
    "large": np.arange(0, 300) * 1e6 + 0.25,
}


@pytest.mark.parametrize("seed", range(3))
def test_values_come_back_in_any_order_of_rows(seed):
    random = np.random.default_rng(seed)
    X = np.column_stack([random.choice(values, 3_000) for values in COLUMNS.values()])
    X[random.random(X.shape) < 0.01] = np.nan
    X[0] = random.choice([0, 1, 2], X.shape[1])  # from here on, any of the forms
    y = random.integers(0, 2, len(X))
    tree = EverTree(X.shape[1])
    for x, label in zip(X[:500], y[:500].tolist(), strict=True):
        tree.insert(x, label)
    tree.insert_many(X[500:], y[500:])
    tree.delete_many(X[::3], y[::3])
    tree.rebuild()  # which also stores anew
    stays = np.arange(len(X)) % 3 != 0
    np.testing.assert_array_equal(tree.examples().X, X[stays])
    fresh = EverTree(X.shape[1])
    fresh.insert_many(X[stays], y[stays])
    assert tree.digest() == fresh.digest()
    assert tree.certify().ok
