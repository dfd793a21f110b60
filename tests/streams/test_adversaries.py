"""The lower-bound sequences as streams: the answers are forced, and the work has a bound."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import numpy as np
import pytest

from evertree import EverTree
from evertree.errors import InvalidParameter
from evertree.streams import (
    Delete,
    Insert,
    InsertMany,
    Label,
    apply,
    hidden_feature,
    index_game,
    index_width,
)
from experiments import adversaries
from experiments.keep import keep


@pytest.mark.parametrize(("N", "D", "k"), [(3, 4, 2), (4, 2, 4)])
def test_bob_reads_every_bit(N, D, k):
    A = np.random.default_rng(N).integers(0, 2, (N, D))
    for row, column in itertools.product(range(N), range(D)):
        tree = EverTree(index_width(N, D), max_gap=0.04, min_samples_split=k + 1)
        for request in index_game(A, row, column, k=k, seed=1):
            answer = apply(request, tree)
        assert isinstance(request, Label)
        assert answer == request.y == A[row, column]
        assert len(tree) == 4 * k
        assert tree.nodes()[0]["feature"] == column


def test_the_index_game_deletes_what_was_inserted():
    first, *rest, question = index_game(np.eye(3), 0, 1, seed=3)
    assert isinstance(first, InsertMany)
    assert all(isinstance(request, Delete) for request in rest)
    assert (question.x == 1).all()
    left = Counter((tuple(x), y) for x, y in zip(first.X, first.y, strict=True))
    left.subtract((tuple(x), y) for x, y in rest)
    assert min(left.values()) == 0
    assert left.total() == 8


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_hidden_feature_is_found_in_every_round(k):
    tree = EverTree(6, min_samples_split=k + 1)
    rounds, hidden = 40, Counter()
    for request in hidden_feature(6, rounds, k=k, seed=2):
        answer = apply(request, tree)
        if isinstance(request, Label):
            assert answer == request.y
            assert request.x.sum() == 3
            hidden[tree.nodes()[0]["feature"]] += 1
            assert len(tree) == 2 * k
    assert len(tree) == 0
    assert hidden.total() == rounds
    assert len(hidden) == 6, "every feature has its turn"
    stats = tree.stats()
    assert stats["inserts"] == stats["deletes"] == 2 * k * rounds
    # At most the 2k examples that are in are rebuilt per update: O(kd) against Omega(d/k).
    assert stats["rows_rebuilt"] <= 2 * k * 4 * k * rounds


def test_a_round_of_the_time_bound():
    kinds = [type(request) for request in hidden_feature(4, rounds=2, k=2)]
    assert kinds == ([Insert] * 4 + [Label] + [Delete] * 4) * 2


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: index_game([[0, 2]], 0, 0), "not a matrix of zeros and ones"),
        (lambda: index_game([[0, 1]], 1, 0), r"A has shape \(1, 2\): \(1, 0\) is no place in it"),
        (lambda: index_game([[0, 1]], 0, 0, k=3), "k=3 is not even"),
        (lambda: hidden_feature(1, 3), "d=1 is not an int >= 2"),
        (lambda: hidden_feature(4, -1), "rounds=-1 is not an int >= 0"),
    ],
)
def test_bad_parameters(make, says):
    with pytest.raises(InvalidParameter, match=says):
        list(make())


# --- what `make adversaries` measures


@pytest.mark.parametrize("d", [4, 32])
def test_the_work_lies_between_the_bounds(d):
    game = adversaries.time_game(d, rounds=50)
    assert game["right"] == game["questions"] == 50
    assert game["updates"] == 200
    assert game["lower"] <= game["values"] <= game["upper"]
    assert game["course"][-1][0] == 198, "the last question, before the last two deletions"
    assert game["course"][-1][1] <= game["values"]


def test_the_space_is_enough_for_every_bit():
    game = adversaries.space_game(4)
    assert game["right"] == game["asked"] == 16
    assert game["bits"] <= game["values"]


def test_the_picture_is_kept_with_its_numbers(tmp_path):
    found = {
        "time": [adversaries.time_game(d, rounds=5) for d in (4, 8)],
        "space": [adversaries.space_game(size) for size in (2, 3)],
    }
    picture = keep("game", found, adversaries.draw(found), tmp_path)
    assert picture.read_bytes().startswith(b"\x89PNG")
    kept = json.loads((tmp_path / "game.json").read_text())
    assert {"commit", "machine", "date"} < set(kept)
    assert kept["time"][0]["questions"] == 5
