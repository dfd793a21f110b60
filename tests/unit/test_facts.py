"""What the certified rule rests on: Facts 1 to 3, and lemmas of the paper, on small sets."""

import itertools
from collections import Counter
from fractions import Fraction

import pytest

from reference import Split, gain, gini, mass, mass_lost


@pytest.mark.parametrize(("n_classes", "most"), [(2, 24), (3, 9), (4, 5)])
def test_fact_1_an_insertion_never_lowers_the_mass_and_raises_it_by_less_than_2(n_classes, most):
    for counts in itertools.product(range(most), repeat=n_classes):
        for y in range(n_classes):
            more = [n + (c == y) for c, n in enumerate(counts)]
            assert 0 <= mass(more) - mass(counts) < 2, (counts, y)


def test_fact_1_comes_as_near_to_2_as_one_likes():
    assert mass([1000, 1]) - mass([1000, 0]) > Fraction(199, 100)


@pytest.mark.parametrize(("n_classes", "most"), [(2, 12), (3, 5)])
def test_fact_2_no_set_has_less_mass_than_its_parts(n_classes, most):
    every = list(itertools.product(range(most), repeat=n_classes))
    for one, other in itertools.product(every, repeat=2):
        both = [a + b for a, b in zip(one, other, strict=True)]
        assert mass(both) >= mass(one) + mass(other), (one, other)


def allowed(gone, built, floor):
    """Give what all these deletions may take, of a set built with so many of each label."""
    labels = Counter(dict(enumerate(built)))
    return sum(mass_lost(labels, floor, y, d) for y, d in enumerate(gone))


def added(one, other):
    return tuple(a + b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("n_classes", "most"), [(2, 5), (3, 2)])
def test_fact_3_no_split_loses_more_than_all_labels_may(n_classes, most):
    """With the mass that this very split left as the floor: none can be higher."""
    every = list(itertools.product(range(most + 1), repeat=n_classes))
    masses = {side: mass(side) for side in every}
    deletions = {side: list(itertools.product(*(range(n + 1) for n in side))) for side in every}
    for left, right in itertools.combinations_with_replacement(every, 2):
        built = added(left, right)
        if 0 in built:
            continue
        least = {}  # of what is left, after so many deletions of each label
        for stay_left, stay_right in itertools.product(deletions[left], deletions[right]):
            stay, after = added(stay_left, stay_right), masses[stay_left] + masses[stay_right]
            least[stay] = min(least.get(stay, after), after)
        before = masses[left] + masses[right]
        for stay, after in least.items():
            gone = tuple(n - m for n, m in zip(built, stay, strict=True))
            assert before - after <= allowed(gone, built, before), (left, right, gone)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_fact_3_is_met_by_a_split_that_sends_what_goes_to_one_side(share):
    own, others, gone = 6_000, 4_000, 500
    with_them = round(others * (gone / own * (1 - share) + share))  # more of them than by chance
    before = mass([gone, with_them]) + mass([own - gone, others - with_them])
    loses = mass([gone, with_them])
    assert loses <= allowed((gone, 0), (own, others), before) < loses * Fraction(101, 100)


@pytest.mark.parametrize("rest", [(), (1,), (20, 3)])
def test_fact_3_asks_for_less_than_fact_1_and_never_for_more_than_there_was(rest):
    for own, others, gone in itertools.product((1, 7, 40), (1, 7, 40), range(50)):
        built = (own, others, *rest)
        for floor in (Fraction(0), mass(built) / 2, mass(built)):
            lost = allowed((gone,), built, floor)
            assert 0 <= lost <= min(2 * gone, mass([own, sum(built) - own])), (built, gone, floor)
            more = allowed((gone + 1,), built, floor)
            assert lost <= more <= lost + 2, (built, gone, floor)


def cells(n_cells, most):
    """Every way to put at most `most` examples into cells of equal (side, label)."""
    return [c for c in itertools.product(range(most + 1), repeat=n_cells) if sum(c) <= most]


@pytest.mark.parametrize(("n_classes", "most"), [(2, 5), (3, 3)])
def test_lemma_2_2_holds_with_3_for_the_gain_and_2_for_the_gini(n_classes, most):
    known = {}
    for c in cells(2 * n_classes, most):
        left, right = c[:n_classes], c[n_classes:]
        whole = [a + b for a, b in zip(left, right, strict=True)]
        n = max(sum(c), 1)
        known[c] = mass(whole) / n, (mass(whole) - mass(left) - mass(right)) / n
    for (c, (g, G)), (c_, (g_, G_)) in itertools.combinations(known.items(), 2):
        edits = sum(abs(a - b) for a, b in zip(c, c_, strict=True))
        distance = Fraction(edits, max(sum(c), sum(c_)))
        assert abs(g - g_) <= 2 * distance  # the print: 2.5, for two classes
        assert abs(G - G_) <= 3 * distance  # the print: 12, its proof 12.5


def test_lemma_a1_holds_for_any_number_of_classes():
    for counts in itertools.product(range(6), repeat=3):
        for y in range(3):
            more = [n + (c == y) for c, n in enumerate(counts)]
            n = sum(more)
            if n > 1:
                assert abs(mass(more) / n - mass(counts) / (n - 1)) < Fraction(2, n)


def test_lemma_a2_is_false_for_the_gini_of_one_side_which_is_what_it_says():
    S = [((0.0,), 0), ((0.0,), 1), *[((1.0,), 0)] * 98]
    left, left_ = S[:2], S[:1]
    assert abs(gini(left) - gini(left_)) == Fraction(1, 2) > Fraction(12, len(S))
    # What its proof shows is the same for the gain, and that is true.
    split = Split(0, 0.5, missing_left=False)
    assert abs(gain(S, split) - gain(S[:1] + S[2:], split)) <= Fraction(12, len(S))
