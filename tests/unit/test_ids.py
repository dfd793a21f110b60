"""Ids, automatic and the caller's own, find their examples whatever was deleted in between."""

from __future__ import annotations

import numpy as np
import pytest

from evertree import DuplicateId, EverTree


@pytest.mark.parametrize("seed", range(6))
def test_every_id_finds_its_own_example(seed):
    random = np.random.default_rng(seed)
    tree, there, largest = EverTree(1), {}, -1
    for step in range(800):
        x = float(step)
        # Small ids of the caller's own are often those that the tree would give, or has given.
        own = int(random.integers(60)) if random.random() < 0.4 else None
        if there and random.random() < 0.45:
            gone = list(there)[random.integers(len(there))]
            tree.delete(id=gone)
            del there[gone]
        elif own in there:
            with pytest.raises(DuplicateId):
                tree.insert([x], step % 3, id=own)
        else:
            used = tree.insert([x], step % 3, id=own)
            assert used == (largest + 1 if own is None else own)
            there[used], largest = x, max(largest, used)
        assert len(tree) == len(there)
        asked = random.integers(-1, largest + 3, size=5).tolist()
        assert [i in tree for i in asked] == [i in there for i in asked]
    now = tree.examples()
    assert dict(zip(now.ids.tolist(), now.X[:, 0].tolist(), strict=True)) == there


def test_a_batch_with_ids_of_both_kinds():
    tree = EverTree(1)
    ids = [0, 1, 7, 3, 2, 5]  # some are the number of their place, some are not
    tree.insert_many([[float(i)] for i in ids], ids, ids=ids)
    tree.delete_many(ids=[1, 2, 5])
    again = tree.insert_many([[8.0], [9.0]], [8, 9])
    assert again.tolist() == [8, 9]
    now = tree.examples()
    assert now.ids.tolist() == now.X[:, 0].tolist() == list(now.y)
    assert sorted(now.ids.tolist()) == [0, 3, 7, 8, 9]
