"""Trees with everything that is hard to export, and rows that ask about exactly that."""

from __future__ import annotations

import itertools

import numpy as np

from evertree import EverTree

CATEGORIES = 6
KINDS = {  # n_features, categorical
    "real": (3, ()),
    "categorical": (3, (0, 1, 2)),
    "mixed": (4, (1, 3)),
}
LABELS = {
    "texts": ["yes", "no", "perhaps", "é\n\"'"],
    "numbers": [7, -1, 40, 2**40],
    "one": ["only"],
    "two": ["b", "a"],
    "many kinds": [("a", 1), None, 2.5, "x"],
}


def random_rows(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    """Rows with ties, missing values, and values that float32 does not hold."""
    n_features, categorical = KINDS[kind]
    rows = np.where(
        rng.random((n, n_features)) < 0.5,
        rng.normal(size=(n, n_features)),
        rng.integers(-3, 4, size=(n, n_features)) / 7,
    )
    for j in categorical:
        rows[:, j] = rng.integers(0, CATEGORIES, size=n)
    rows[rng.random(rows.shape) < 0.15] = np.nan
    return rows


def random_tree(
    seed: int, kind: str = "mixed", labels: str = "texts", n: int = 250, **limits: object
) -> EverTree:
    """A tree with a history: after many deletions some leaves are empty and counts are tied."""
    rng = np.random.default_rng(seed)
    n_features, categorical = KINDS[kind]
    tree = EverTree(n_features, categorical, **({"max_gap": 0.5} | limits))
    names = LABELS[labels]
    rows = random_rows(rng, n, kind)
    # Half of the label follows from the row, so that there is something to find.
    hint = np.nan_to_num(rows[:, 0], nan=1.0) > 0.2
    chosen = np.where(rng.random(n) < 0.5, hint, rng.integers(0, len(names), n)) % len(names)
    ids = tree.insert_many(rows, [names[int(i)] for i in chosen])
    for i in rng.permutation(ids)[: n // 3]:
        tree.delete(id=int(i))
    return tree


def asking_rows(tree: EverTree, seed: int, kind: str, n: int = 300) -> np.ndarray:
    """Random rows; and rows at, just above and just below every threshold of the tree."""
    rng = np.random.default_rng(seed + 1000)
    rows = random_rows(rng, n, kind)
    for j in KINDS[kind][1]:  # categories that the tree has never seen
        rows[rng.random(n) < 0.1, j] = rng.integers(CATEGORIES, 3 * CATEGORIES)
    edges = []
    for node in tree.nodes():
        if node["threshold"] is None:
            continue
        t = node["threshold"]
        for value in (t, np.nextafter(t, np.inf), np.nextafter(t, -np.inf), float(np.float32(t))):
            row = rows[rng.integers(n)].copy()
            row[node["feature"]] = value
            edges.append(row)
    return np.concatenate([rows, np.array(edges).reshape(-1, rows.shape[1])])


def cases() -> list[tuple[int, str, str]]:
    """Each kind of tree with each kind of labels."""
    return [(s, k, names) for s, (k, names) in enumerate(itertools.product(KINDS, LABELS))]
