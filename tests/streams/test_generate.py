"""Generators: the same seed gives the same examples, labels mean what they say, and it drifts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from evertree import EverTree
from evertree.errors import InvalidParameter
from evertree.streams import hyperplane, led, random_rbf, sea

GENERATORS = [sea, hyperplane, random_rbf, led]


def table(source):
    batches = list(source.batches())
    return np.concatenate([b.X for b in batches]), np.array([y for b in batches for y in b.y])


@pytest.mark.parametrize("generate", GENERATORS)
def test_a_seed_gives_the_same_examples(generate):
    X, y = table(generate(3_000, seed=7))
    again_X, again_y = table(generate(3_000, seed=7))
    assert (again_X == X).all()
    assert (y == again_y).all()
    shorter_X, shorter_y = table(generate(1_500, seed=7))
    assert (shorter_X == X[:1_500]).all()
    assert (shorter_y == y[:1_500]).all()
    assert not (table(generate(1_500, seed=8))[0] == shorter_X).all()


@pytest.mark.parametrize("generate", GENERATORS)
def test_without_n_it_goes_on(generate):
    source = generate(seed=7)
    assert source.length is None
    X, y = table(generate(2_000, seed=7))
    for i, example in enumerate(itertools.islice(source, 2_000)):
        assert (example.x == X[i]).all()
        assert example.y == y[i]
    assert list(generate(0)) == []


def learned(X, y):
    """How well a tree of the first half knows the second."""
    half = len(X) // 2
    tree = EverTree(X.shape[1], min_samples_split=10)
    tree.insert_many(X[:half], y[:half].tolist())
    return (tree.label_many(X[half:]) == y[half:]).mean()


@pytest.mark.parametrize(
    ("source", "near", "far"),
    [
        # A piece in which nothing changes, and one of the same size with the change in its middle.
        (sea(8_000, change_every=4_000, noise=0.0, seed=1), slice(0, 4_000), slice(2_000, 6_000)),
        (led(8_000, change_every=4_000, noise=0.0, seed=1), slice(0, 4_000), slice(2_000, 6_000)),
    ],
)
def test_sudden_drift(source, near, far):
    X, y = table(source)
    assert learned(X[near], y[near]) > learned(X[far], y[far]) + 0.02


@pytest.mark.parametrize("generate", [hyperplane, random_rbf])
def test_gradual_drift(generate):
    """What was learned at the beginning is worth less at the end, and no less if nothing moves."""
    still, moving = {"n_features": 3, "change": 0.0}, {"n_features": 3, "change": 0.002}
    if generate is random_rbf:
        still, moving = {"n_centres": 6, "speed": 0.0}, {"n_centres": 6, "speed": 0.00007}
    assert abs(loss(generate, still)) < 0.02
    assert loss(generate, moving) > 0.1


def loss(generate, options):
    """Accuracy lost between examples 2,000 to 4,000 and the last 2,000, mean over four seeds."""
    losses = []
    for seed in range(1, 5):
        X, y = table(generate(12_000, seed=seed, **options))
        ends = np.r_[0:2_000, 10_000:12_000]
        losses.append(learned(X[:4_000], y[:4_000]) - learned(X[ends], y[ends]))
    return np.mean(losses)


def test_sea_labels_say_what_they_mean():
    X, y = table(sea(4_000, change_every=1_000, noise=0.0))
    limits = np.repeat([8.0, 9.0, 7.0, 9.5], 1_000)
    assert (y == (X[:, 0] + X[:, 1] <= limits)).all()
    assert 0 <= X.min() < X.max() < 10
    _, noisy = table(sea(4_000, change_every=1_000, noise=0.25))
    assert abs((noisy != y).mean() - 0.25) < 0.03


def test_led_shows_digits():
    X, y = table(led(2_000, change_every=1_000, n_drifting=0, noise=0.0))
    lamps = {digit: X[y == digit][:, :7] for digit in range(10)}
    assert all((shown == shown[0]).all() for shown in lamps.values())
    assert len({tuple(shown[0]) for shown in lamps.values()}) == 10
    assert lamps[8][0].sum() == 7
    assert lamps[1][0].sum() == 2
    assert set(np.unique(X)) == {0.0, 1.0}


def test_led_lamps_change_places():
    X, y = table(led(2_000, change_every=1_000, n_drifting=3, noise=0.0, seed=5))
    before, after = X[:1_000][y[:1_000] == 8], X[1_000:][y[1_000:] == 8]
    assert (before[:, :7] == 1).all()
    assert (after[:, :7] == 1).all(axis=0).sum() == 4, "three of seven have gone elsewhere"
    assert (after == 1).all(axis=0).sum() == 7


def test_rbf_has_every_class_and_moves_within_the_cube():
    X, y = table(random_rbf(3_000, n_classes=5, n_centres=5, speed=0.01, seed=2))
    assert set(y) == {0, 1, 2, 3, 4}
    assert abs(X.mean() - 0.5) < 0.1, "centres are reflected at the faces, not lost"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sea(-1), "n=-1 is not an int >= 0"),
        (lambda: sea(seed="x"), "seed='x' is not an int >= 0"),
        (lambda: sea(noise=2), r"noise=2 is not in \[0, 1\]"),
        (lambda: sea(change_every=0), "change_every=0 is not an int >= 1"),
        (lambda: hyperplane(n_features=2, n_drifting=3), "n_drifting=3 is more than n_features=2"),
        (lambda: random_rbf(n_classes=5, n_centres=4), "n_centres=4 is not an int >= 5"),
        (lambda: led(n_drifting=8), "n_drifting=8 is more than the 7 lamps"),
    ],
)
def test_bad_parameters(make, says):
    with pytest.raises(InvalidParameter, match=says):
        make()
