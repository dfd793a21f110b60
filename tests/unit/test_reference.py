"""The reference by itself: the paper's definitions on sets small enough to check by hand.

Each correction of the print (paper/MAP.md, "Slips") has a test here that fails without it.
"""

import copy
import itertools
import math
import random
import sys
from collections import Counter
from fractions import Fraction

import pytest

from reference import (
    Node,
    Reference,
    Split,
    gain,
    gini,
    mass_left,
    midpoint,
    size_class,
    tidy,
)

NAN = math.nan
HALF = Fraction(1, 2)


def one_feature(*pairs):
    """Examples of one feature from (x, y) pairs."""
    return [((float(x),), y) for x, y in pairs]


def depth_of(tree):
    return max(node["depth"] for node in tree.nodes())


def random_example(rng, n_values=4, labels=(0, 1), p_missing=0.0):
    x = tuple(NAN if rng.random() < p_missing else float(rng.randrange(n_values)) for _ in range(2))
    return x, rng.choice(labels)


def random_run(tree, rng, n_requests, p_delete=0.35, **kind):
    """Insert and delete at random; yield after every request."""
    active = []
    for _ in range(n_requests):
        if active and rng.random() < p_delete:
            tree.delete(*active.pop(rng.randrange(len(active))))
        else:
            active.append(random_example(rng, **kind))
            tree.insert(*active[-1])
        yield active


# ----------------------------------------------------------------------------------- Definition 2.1


def test_gini_by_hand():
    assert gini([]) == 0
    assert gini(one_feature((0, "a"))) == 0
    assert gini(one_feature((0, "a"), (0, "b"))) == HALF
    assert gini(one_feature((0, 0), (0, 1), (0, 1), (0, 1))) == 2 * Fraction(3, 4) * Fraction(1, 4)
    assert gini(one_feature((0, "a"), (0, "b"), (0, "c"))) == Fraction(2, 3)


def test_gain_by_hand():
    S = one_feature((1, 0), (2, 0), (3, 1), (4, 1))
    assert gain(S, Split(0, 2.5, missing_left=False)) == HALF
    # 1/2 - (1/4 · 0 + 3/4 · 4/9)
    assert gain(S, Split(0, 1.5, missing_left=False)) == Fraction(1, 6)
    assert gain(S, Split(0, 9.0, missing_left=False)) == 0
    assert gain([], Split(0, 0.0, missing_left=True)) == 0


def test_gain_of_a_category_is_one_against_the_rest():
    S = one_feature((0, "a"), (1, "b"), (2, "a"))
    assert gain(S, Split(0, 1.0, missing_left=False, categorical=True)) == Fraction(4, 9)
    assert gain(S, Split(0, 0.0, missing_left=False, categorical=True)) == Fraction(1, 9)


def test_gap_of_two_splits_is_their_difference_of_mass():
    rng = random.Random(1)
    for _ in range(50):
        S = [random_example(rng, labels="abc") for _ in range(rng.randint(2, 9))]
        sigma, tau = (Split(rng.randrange(2), rng.choice((0.5, 1.5)), False) for _ in range(2))
        assert gain(S, tau) - gain(S, sigma) == (mass_left(S, sigma) - mass_left(S, tau)) / len(S)


# ----------------------------------------------------------------------------------------- midpoint


TINY = 5e-324
BIG = sys.float_info.max


@pytest.mark.parametrize(
    ("low", "high", "middle"),
    [
        (1.0, 2.0, 1.5),
        (-3.0, 1.0, -1.0),
        (1.0, math.nextafter(1.0, 2.0), 1.0),
        (math.nextafter(1.0, 0.0), 1.0, math.nextafter(1.0, 0.0)),  # the middle rounds up to high
        (math.nextafter(2.0, 3.0), math.nextafter(math.nextafter(2.0, 3.0), 3.0), None),
        (BIG / 2, BIG, BIG * 0.75),  # low + high overflows
        (-BIG, BIG, 0.0),
        (math.nextafter(BIG, 0.0), BIG, math.nextafter(BIG, 0.0)),
        (0.0, TINY, 0.0),
        (-TINY, 0.0, -TINY),  # the middle rounds to zero, which is high
        (TINY, 3 * TINY, 2 * TINY),
        (TINY, 2 * TINY, TINY),  # 1.5 units round to even, which is high
        (2 * TINY, 3 * TINY, 2 * TINY),
        (-2 * TINY, TINY, 0.0),
        (1e-308, 3e-308, 2e-308),
        (1.0, 1e300, 5e299),
    ],
)
def test_midpoint(low, high, middle):
    t = midpoint(low, high)
    assert low <= t < high
    assert middle is None or t == middle
    assert math.copysign(1.0, t) == 1.0 or t < 0  # never -0.0


def test_midpoint_is_the_nearest_double_to_the_true_middle():
    rng = random.Random(2)
    for _ in range(500):
        scales = (2.0 ** rng.randint(-1074, 1023) for _ in range(2))
        low, high = sorted(rng.uniform(-1, 1) * scale for scale in scales)
        if low == high:
            continue
        t, true = midpoint(low, high), (Fraction(low) + Fraction(high)) / 2
        around = (math.nextafter(t, -math.inf), math.nextafter(t, math.inf))
        nearest = min(abs(Fraction(other) - true) for other in around)
        assert abs(Fraction(t) - true) <= nearest


def test_size_class_is_the_power_of_two_at_or_above():
    assert [size_class(s) for s in (0, 1, 2, 3, 4, 5, 8, 9, 1024, 1025)] == [
        *(0, 1, 2, 4, 4, 8, 8, 16, 1024, 2048)
    ]


# --------------------------------------------------------------------------------------- candidates


def candidates(S, n_features=1, categorical=()):
    return [tuple(s) for s in Reference(n_features, categorical).candidates(S)]


def test_candidates_of_real_values():
    assert candidates(one_feature((1, 0), (2, 0), (2, 1), (4, 0))) == [
        (0, 1.5, False, False),  # one left, three right: a missing value would go right
        (0, 3.0, True, False),
    ]
    assert candidates(one_feature((1, 0), (2, 0))) == [(0, 1.5, True, False)]  # equal sides: left
    assert candidates(one_feature((1, 0), (1, 1))) == []


def test_candidates_with_missing_values():
    S = one_feature((1, 0), (2, 0), (NAN, 1))
    assert candidates([(tidy(x), y) for x, y in S]) == [
        (0, 1.5, True, False),
        (0, 1.5, False, False),
        (0, 2.0, False, False),  # the missing against the present
    ]
    assert candidates(one_feature((NAN, 0), (NAN, 1))) == []
    assert candidates(one_feature((3, 0), (NAN, 1))) == [(0, 3.0, False, False)]


def test_candidates_of_categories():
    assert candidates(one_feature((3, 0), (1, 0), (3, 1)), categorical=[0]) == [
        (0, 1.0, False, True),
        (0, 3.0, False, True),
    ]
    found = candidates(one_feature((1, 0), (NAN, 0)), categorical=[0])
    assert [s[2:] for s in found] == [(False, True), (True, True)]
    assert found[0][1] == 1.0
    assert math.isnan(found[1][1])
    assert candidates(one_feature((NAN, 0), (NAN, 1)), categorical=[0]) == []


def test_every_candidate_separates_and_no_other_split_has_more_gain():
    """Definition 3.1 speaks of all (j, a): thresholds elsewhere give the same sides or none."""
    rng = random.Random(3)
    for _ in range(150):
        S = [random_example(rng, p_missing=0.2) for _ in range(rng.randint(1, 8))]
        tree = Reference(2, categorical=[1])
        sides = [s.sides(S) for s in tree.candidates(S)]
        assert all(left and right for left, right in sides)
        grid = [-1.0, 0.0, 0.25, 0.75, 1.0, 1.6, 2.0, 2.3, 3.0, 5.0]
        others = [Split(0, t, left) for t in grid for left in (True, False)]
        others += [Split(1, a, False, categorical=True) for a in grid]
        others += [Split(1, NAN, True, categorical=True)]
        best = max((gain(S, s) for s in tree.candidates(S)), default=Fraction(0))
        assert max(gain(S, s) for s in others) <= best


def test_ties_go_to_the_lowest_feature_then_threshold_then_missing_left():
    S = [((0.0, 0.0), 0), ((1.0, 1.0), 1)]
    assert Reference(2).best(S)[:2] == (0, 0.5)
    assert Reference(1).best(one_feature((0, 0), (1, 1), (2, 0)))[:2] == (0, 0.5)
    S = one_feature((0, 0), (1, 1), (NAN, 2))
    assert Reference(1).best([(tidy(x), y) for x, y in S]) == (0, 0.5, True, False)


# ----------------------------------------------------------------------------------- Definition 3.1


def broken(tree, split, *sides):
    """Give the root a split of the test's own choice."""
    children = tuple(Node(side, len(side)) for side in sides)
    tree.root = Node(tree.root.examples, len(tree), split=split, children=children)
    return tree


def test_breach_of_condition_2_in_words():
    S = [((0.0, 0.0), 0), ((1.0, 0.0), 0), ((0.0, 1.0), 1), ((1.0, 1.0), 1)]
    tree = Reference(2, min_impurity=0.6)
    tree.update(S)
    split = Split(0, 0.5, missing_left=True)
    assert broken(tree, split, *split.sides(S)).breaches() == [
        "node 0: split (0, 0.5) is 0.5 below (1, 0.5), max_gap is 0.1"
    ]


def test_breach_of_condition_1_at_a_leaf():
    tree = Reference(1)
    S = one_feature((0, 0), (1, 1))
    tree.root = Node(S, 2)
    assert tree.breaches() == [
        "node 0: 2 examples, gini 0.5, depth 0, is a leaf, min_impurity is 0.01"
    ]
    for limit in ({"min_samples_split": 3}, {"max_depth": 0}, {"min_impurity": 0.51}):
        tree = Reference(1, **limit)
        tree.root = Node(S, 2)
        assert tree.breaches() == []


@pytest.mark.parametrize(
    ("limits", "labels"),
    [({"min_samples_split": 3}, (0, 1)), ({}, (0, 0)), ({"max_depth": 0}, (0, 1))],
)
def test_breach_of_condition_1_at_an_internal_node(limits, labels):
    S = one_feature((0, labels[0]), (1, labels[1]))
    tree = Reference(1, **limits)
    tree.update(S)
    assert tree.breaches() == []
    split = Split(0, 0.5, missing_left=True)
    (words,) = broken(tree, split, *split.sides(S)).breaches()
    assert words.startswith("node 0: 2 examples")
    assert "is split" in words


def test_a_limit_is_met_by_its_decimal():
    """8/25 is not the double 0.32; both have to be split."""
    S = one_feature(*[(0, 0)] * 4, (1, 1))  # gini 8/25
    assert gini(S) == Fraction(8, 25) != Fraction(0.32)
    tree = Reference(1, min_impurity=0.32)
    tree.update(S)
    assert depth_of(tree) == 1


# ----------------------------------------------------------------------------------------- requests


def test_a_batch_is_applied_whole_and_repaired_once():
    tree = Reference(1)
    tree.update(one_feature((0, 0), (1, 1), (2, 0), (3, 1)))
    assert tree.rebuilds == 1
    assert tree.rows_rebuilt == 4
    before = tree.nodes()
    tree.update()
    assert tree.nodes() == before
    tree.update(insert=one_feature((2, 0)), delete=one_feature((2, 0)))
    assert tree.nodes() == before


def test_deleting_what_is_not_there_changes_nothing():
    tree = Reference(1)
    tree.update(one_feature((0, 0), (1, 1)))
    before = copy.deepcopy(tree.nodes())
    with pytest.raises(KeyError):
        tree.update(insert=one_feature((5, 5)), delete=one_feature((0, 0), (0, 0)))
    with pytest.raises(KeyError):
        tree.delete((0.0,), 1)
    assert tree.nodes() == before
    assert len(tree) == 2


def test_minus_zero_is_zero_and_missing_is_missing():
    tree = Reference(1)
    tree.insert((-0.0,), 0)
    tree.insert((float("nan"),), 1)
    tree.delete((0.0,), 0)
    tree.delete((-float("nan"),), 1)
    assert len(tree) == 0


def test_deleting_everything_and_starting_again():
    tree = Reference(1)
    S = one_feature(*[(i, i % 2) for i in range(6)])
    for e in S:
        tree.insert(*e)
    for e in S:
        tree.delete(*e)
    assert tree.nodes() == Reference(1).nodes()
    tree.insert((1.0,), 0)
    assert tree.label((1.0,)) == 0


def test_rebuild_forgets_the_history():
    rng = random.Random(4)
    tree = Reference(2, epsilon=1.0)
    *_, active = random_run(tree, rng, 40)
    rng.shuffle(active)
    fresh = Reference(2, epsilon=1.0)
    fresh.update(active)
    tree.rebuild()
    assert tree.nodes() == fresh.nodes()


def test_nodes_are_plain_data():
    tree = Reference(2, categorical=[1])
    tree.update([((0.0, 3.0), "a"), ((0.0, NAN), "b"), ((1.0, NAN), "c")])
    assert [node["feature"] for node in tree.nodes()] == [0, 1, None, None, None]
    assert tree.nodes()[0] == {
        "id": 0,
        "parent": None,
        "depth": 0,
        "feature": 0,
        "threshold": 0.5,
        "category": None,
        "missing_left": True,
        "left": 1,
        "right": 4,
        "counts": {"a": 1, "b": 1, "c": 1},
    }
    assert tree.nodes()[1]["category"] == 3
    assert tree.nodes()[2]["parent"] == 1


# ------------------------------------------------------------------------------------------- labels


def test_a_tie_goes_to_the_label_that_sorts_first_not_to_the_first_seen():
    for labels, first in [
        ((2, 1), 1),
        (("b", "a"), "a"),
        (("a", 7), 7),  # int before str
        ((1, 0.5), 0.5),  # float before int
        ((None, False), None),  # NoneType before bool
        ((2j, 1j), 1j),  # no order: by repr
        (((1, "x"), (1, 2)), (1, "x")),  # no order between these two
    ]:
        tree = Reference(1)
        tree.update([((0.0,), y) for y in labels])
        assert tree.label((0.0,)) == first


def test_equal_labels_are_one_label():
    tree = Reference(1)
    tree.update([((0.0,), 1), ((0.0,), True), ((0.0,), 1.0), ((0.0,), "x")])
    assert tree.label_counts((0.0,)) == {1: 3, "x": 1}
    assert type(tree.label((0.0,))) is int
    tree.delete((0.0,), True)
    assert tree.label_counts((0.0,)) == {1: 2, "x": 1}


def test_an_empty_leaf_answers_with_its_nearest_ancestor():
    tree = Reference(1, max_gap=1.0)
    tree.update(one_feature(*[(0, "a")] * 2, *[(1, "c")] * 3, (2, "b")))
    tree.update(delete=one_feature(*[(0, "a")] * 2))
    assert tree.path((0.0,))[-1].examples == []
    assert tree.label_counts((0.0,)) == {"b": 1, "c": 3}
    assert tree.label((0.0,)) == "c"
    with pytest.raises(LookupError):
        Reference(1).label((0.0,))


# -------------------------------------------------------------------------- the promise, both rules


SETTINGS = [
    {},
    {"max_gap": 0.05},
    {"max_gap": 0.3, "min_impurity": 0.32},
    {"max_gap": 1.0, "min_impurity": 0.0},
    {"min_samples_split": 4, "max_depth": 3},
    {"max_depth": 1},
    {"max_depth": 0},
    {"epsilon": 0.0},
    {"epsilon": 0.0019},
    {"epsilon": 0.047, "min_impurity": 0.25},
    {"epsilon": 0.19, "min_impurity": 1.0, "max_gap": 0.5, "min_samples_split": 4},
    {"epsilon": 0.11, "min_impurity": 0.6, "max_gap": 0.25, "max_depth": 2},
]


@pytest.mark.parametrize("kind", ["real", "categorical", "mixed, missing, three classes"])
@pytest.mark.parametrize("limits", SETTINGS, ids=str)
def test_both_rules_keep_the_promise_after_every_request(limits, kind):
    categorical = {"real": (), "categorical": (0, 1)}.get(kind, (1,))
    options = {"p_missing": 0.15, "labels": "abc"} if "missing" in kind else {}
    tree = Reference(2, categorical, **limits)
    assert tree.certified
    for seed in range(2):
        for _ in random_run(tree, random.Random(seed), 35, **options):
            assert not (breaches := tree.breaches()), (seed, breaches[0])


@pytest.mark.parametrize("labels", ["ab", "abc"])
def test_no_split_leaves_less_than_the_floor(labels):
    tree = Reference(2, max_gap=0.2)
    for _ in random_run(tree, random.Random(3), 60, labels=labels):
        for *_, v in tree.paths():
            least = min((mass_left(v.examples, s) for s in tree.candidates(v.examples)), default=0)
            assert tree.floor(v, 0) <= tree.floor(v) <= least


def test_certified_says_which_parameters_carry_the_promise():
    assert Reference(1).certified
    assert not Reference(1, epsilon=0.0, min_impurity=0.0).certified
    assert not Reference(1, epsilon=0.002).certified  # alpha/5
    assert not Reference(1, epsilon=0.5, min_impurity=1.0, max_gap=1.0).certified
    assert Reference(1, epsilon=0.25 / 2.25, min_impurity=1.0, max_gap=0.25).certified
    assert not Reference(1, epsilon=0.34, min_impurity=1.0, max_gap=1.0).certified  # 1/3
    k_2 = {"min_impurity": 1.0, "max_gap": 1.0, "min_samples_split": 4}
    assert [Reference(1, epsilon=e, **k_2).certified for e in (0.19, 0.25)] == [True, False]


def test_an_uncertified_epsilon_does_break_the_promise():
    tree = Reference(2, epsilon=1.0)
    run = random_run(tree, random.Random(5), 60)
    assert any(tree.breaches() for _ in run)


# --------------------------------------------------------------- slips: Algorithm 1 and Algorithm 2


class DepthAsPrinted(Reference):
    """Build(S, i): the index of the node that was found due, counted from 1."""

    def rebuild_at(self, u, path):
        vars(u).update(vars(self.build(u.examples, len(path))))


class DepthOfTheDueNode(Reference):
    """The same, counted from 0 as depths are: right whenever the due node is the rebuilt one."""

    def rebuild_at(self, u, path):
        vars(u).update(vars(self.build(u.examples, len(path) - 1)))


def runs_that_break(kind, seeds, n_requests, **limits):
    broke = 0
    for seed in seeds:
        tree = kind(2, **limits)
        run = random_run(tree, random.Random(seed), n_requests, n_values=6)
        broke += any(tree.breaches() for _ in run)
    return broke


@pytest.mark.parametrize("h", [2, 3])
def test_slip_line_10_the_printed_depth_breaks_feasibility(h):
    for rule in ({}, {"epsilon": 0.01, "min_impurity": 0.06, "max_gap": 0.3}):
        assert runs_that_break(DepthAsPrinted, range(8), 50, max_depth=h, **rule) == 8
        assert runs_that_break(Reference, range(8), 50, max_depth=h, **rule) == 0


def test_slip_line_10_the_depth_of_the_due_node_breaks_it_too():
    assert runs_that_break(DepthOfTheDueNode, range(6), 100, max_depth=3) == 6


def test_slip_line_10_with_h_1_the_printed_root_never_splits():
    S = one_feature((0, 0), (1, 1))
    for kind, depth in ((Reference, 1), (DepthAsPrinted, 0)):
        tree = kind(1, max_depth=1)
        tree.update(S)
        assert depth_of(tree) == depth


class AllThresholds(Reference):
    """Line 9 as printed, over all of [d] x R: also the splits that leave one side empty."""

    def candidates(self, S):
        yield from (Split(j, math.inf, missing_left=True) for j in range(self.n_features))
        yield from super().candidates(S)


def test_slip_line_9_equal_x_with_mixed_labels_would_be_split_for_ever():
    S = one_feature((0, 0), (0, 1))
    with pytest.raises(RecursionError):
        AllThresholds(1).update(S)
    tree = Reference(1)
    tree.update(S)
    assert depth_of(tree) == 0
    assert tree.breaches() == []


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_a_set_that_can_be_separated_again_is_split_at_once(epsilon):
    tree = Reference(1, epsilon=epsilon)
    tree.update(one_feature(*[(0, i % 2) for i in range(20)]))
    assert depth_of(tree) == 0
    tree.insert((1.0,), 0)
    assert depth_of(tree) == 1


def audit(tree):
    """What the true Definition 3.1 says of a tree that was built in another way."""
    auditor = copy.copy(tree)
    auditor.__class__ = Reference
    return auditor.breaches()


XOR = [((float(a), float(b)), a ^ b) for a in (0, 1) for b in (0, 1)]


class OnlyWithGain(Reference):
    def best(self, S):
        split = super().best(S)
        return split if split is not None and gain(S, split) > 0 else None


def test_slip_line_9_a_split_is_better_than_none_even_at_gain_0():
    tree = Reference(2)
    tree.update(XOR)
    assert gain(XOR, tree.root.split) == 0
    assert depth_of(tree) == 2
    assert tree.breaches() == []
    tree = OnlyWithGain(2)
    tree.update(XOR)
    assert "is a leaf" in audit(tree)[0]
    with pytest.raises(RecursionError):  # and the print may choose an empty side: gain 0 as well
        AllThresholds(2).update(XOR)


def test_slip_line_8_the_logarithm_of_an_empty_set():
    """The first insertion into an empty tree: c = 1 > epsilon · 0, and the print asks for log 0."""
    with pytest.raises(ValueError, match=r"domain|positive"):
        2 ** math.ceil(math.log2(Reference(1).root.built_size))
    tree = Reference(1, epsilon=0.5)
    tree.insert((0.0,), 0)
    assert tree.root.built_size == 1


def test_slip_height_one_example_is_peeled_per_level():
    """Alternating labels on a line: g is about 1/2 everywhere, the gain 1/n, the height n - 1."""
    n = 24
    tree = Reference(1)
    tree.update(one_feature(*[(i, i % 2) for i in range(n)]))
    assert depth_of(tree) == n - 1
    assert gain(tree.root.examples, tree.root.split) < Fraction(1, n - 1)


# --------------------------------------------------------------------------------- slips: Lemma A.3


A, J = 40, 2
TWINS = [((0.0, 0.0), 0)] * A + [((0.0, 1.0), 1)] * J + [((1.0, 0.0), 1)] * J


def after_j_deletions(epsilon):
    """Two equal splits; the deletions take the impurity of the one that was not chosen."""
    tree = Reference(2, max_gap=0.09, max_depth=1, epsilon=epsilon)
    tree.update(TWINS)
    for _ in range(J):
        tree.delete((1.0, 0.0), 1)
    return tree


def test_slip_case_2_epsilon_up_to_beta_over_2_plus_beta_and_hardly_more():
    bound = 0.09 / 2.09
    assert after_j_deletions(bound).breaches() == []
    assert after_j_deletions(1.06 * bound).breaches() == [
        "node 0: split (0, 0.5) is 0.0907029 below (1, 0.5), max_gap is 0.09"
    ]


def test_slip_case_2_a_sum_above_beta_needs_no_term_above_beta():
    sigma, tau = (Split(j, 0.5, missing_left=True) for j in (0, 1))
    S = TWINS[:-J]
    grown, fallen = gain(S, tau) - gain(TWINS, tau), gain(TWINS, sigma) - gain(S, sigma)
    assert max(abs(grown), abs(fallen)) < grown + fallen  # beta between them: the print fails


def test_slip_case_1a_one_over_k_plus_1_not_one_over_k():
    k, before, after = 1, 1, 2
    distance = Fraction(after - before, max(after, before))
    assert distance == Fraction(1, k + 1) < Fraction(1, k)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_condition_1_needs_epsilon_below_one_over_k(k):
    """A leaf of k examples that gets one more: c/s = 1/k."""
    limits = {"min_samples_split": k + 1, "min_impurity": 0.01, "max_gap": 1.0}
    S = one_feature(*[(0, 0)] * k)
    for epsilon, ok in ((0.99 / k, True), (1.01 / k, False)):
        tree = Reference(1, epsilon=epsilon, **limits)
        tree.update(S)
        tree.insert((1.0,), 1)
        assert (tree.breaches() == []) is ok


# ------------------------------------------------------------------------ slips: Lemmas 3.4 and 3.6


class Ledger(Reference):
    """Remembers (|S_u|, s(u), c(u)) of every rebuilt node."""

    def rebuild_at(self, u, path):
        self.__dict__.setdefault("entries", []).append(
            (len(u.examples), u.built_size, u.updates_since_build)
        )
        super().rebuild_at(u, path)


def test_slip_lemma_3_6_the_charges_are_not_bounded_by_the_number_of_builds_times_h():
    tree = Ledger(1, max_depth=1, epsilon=0.5)
    tree.update([((0.0,), 0)] * 20)
    tree.entries.clear()
    for _ in range(11):
        tree.insert((0.0,), 0)
    charged = sum(c for _, _, c in tree.entries)
    assert len(tree.entries) == 1
    assert charged == 11 > len(tree.entries) * tree.h  # the print: |B| · h
    assert charged <= 11 * (tree.h + 1)  # true: at most h + 1 counters rise per update


def test_slip_p1_there_is_one_size_class_more_than_log_n():
    """n = 1: ⌈log n⌉ = 0, and still one Build is charged to the only update."""
    tree = Ledger(1, epsilon=0.5)
    tree.insert((0.0,), 0)
    assert len(tree.entries) == 1 > math.ceil(math.log2(1))


def test_lemma_3_4_holds_under_the_papers_rule_only():
    rng = random.Random(6)
    tree = Reference(2, epsilon=0.25)
    for _ in random_run(tree, rng, 80):
        for path in tree.paths():
            v = path[-1]
            assert abs(len(v.examples) - v.built_size) <= Fraction(1, 4) * v.built_size
    tree = Reference(1)
    tree.insert((0.0,), 0)
    tree.update([((0.0,), 0)] * 50)
    assert tree.root.built_size == 1  # pure: nothing was due, ever


def test_what_pays_for_a_rebuild_under_the_certified_rule():
    """|S_u| <= s(u) + c(u), so |S_u| <= 2 s(u) (the paper's chain) or c(u) >= |S_u|/2."""
    for seed in range(4):
        tree = Ledger(2, max_gap=0.3)
        for _ in random_run(tree, random.Random(seed), 60):
            pass
        assert tree.entries
        for size, s, c in tree.entries:
            assert size <= s + c
            assert size <= 2 * s or 2 * c >= size


# ------------------------------------------------------------------------------- slips: Theorem 3.3


class RarestCategory(Reference):
    """The proof as printed: the best feature, then its category with the fewest examples."""

    def best(self, S):
        split = super().best(S)
        if split is None:
            return None
        values = Counter(x[split.feature] for x, _ in S)
        return split._replace(value=min(values, key=lambda a: (values[a], a)))


def test_slip_theorem_3_3_the_category_of_largest_gain_not_the_rarest():
    S = one_feature(*[(0, "a")] * 5, *[(1, "b")] * 5, (2, "a"))
    for kind, is_feasible in ((Reference, True), (RarestCategory, False)):
        tree = kind(1, categorical=[0], max_gap=0.3)
        tree.update(S)
        assert (audit(tree) == []) is is_feasible


# ---------------------------------------------------------------------- Section 4: the lower bounds


def index_set(A, k):
    """The examples of Alice for the matrix A, as {i: [(x, y), ...]}."""
    N, D = len(A), len(A[0])
    n_bits = math.ceil(math.log2(N + D) + 1)
    S = {}
    for i in range(1, N + D + 1):
        bits = tuple(float(i >> b & 1) for b in range(n_bits))
        S[i] = []
        for h in range(1, 2 * k + 1):
            if i <= N:
                x = tuple(float(a if h > k else 1 - a) for a in A[i - 1])
            else:
                x = tuple(float(j != i - N and h % 2 == 0) for j in range(1, D + 1))
            S[i].append((x + bits, int(h > k)))
    return S


def bob(tree, S, kappa, ell, D, *, repeat=True):
    """Delete whatever ends with other bits, knowing nothing of A; then label (1, ..., 1)."""
    N = len(S) - D
    for i in S.keys() - {kappa, N + ell}:
        bits = S[i][0][0][D:]
        for ones, y in itertools.product(itertools.product((0.0, 1.0), repeat=D), (0, 1)):
            while True:
                try:
                    tree.delete(ones + bits, y)
                except KeyError:
                    break
                if not repeat:
                    break
    return tree.label((1.0,) * tree.n_features)


def bob_is_right(tree, S, A):
    """Ask for every position, each time from the same snapshot."""
    return all(
        bob(copy.deepcopy(tree), S, kappa, ell, len(A[0])) == A[kappa - 1][ell - 1]
        for kappa, ell in positions(A)
    )


def positions(A):
    return [(kappa + 1, ell + 1) for kappa in range(len(A)) for ell in range(len(A[0]))]


def alice(A, k, **limits):
    S = index_set(A, k)
    tree = Reference(len(S[1][0][0]), max_gap=0.04, **limits)
    tree.update([e for examples in S.values() for e in examples])
    return tree, S


EVEN = 2  # the construction wants k even; k* = 1 is rounded up, and pure leaves are leaves anyway
MATRIX = [[1, 0, 1], [0, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    "limits",
    [{}, {"max_depth": 1}, {"min_samples_split": 3}, {"epsilon": 0.019, "min_impurity": 0.1}],
    ids=str,
)
def test_index_bob_reads_every_position(limits):
    assert bob_is_right(*alice(MATRIX, EVEN, **limits), MATRIX)


def test_index_bob_reads_every_matrix_of_two_by_two():
    for bits in itertools.product((0, 1), repeat=4):
        A = [list(bits[:2]), list(bits[2:])]
        assert bob_is_right(*alice(A, EVEN), A)


def gains_of(S, n_features):
    return [gain(S, Split(j, 0.5, missing_left=True)) for j in range(n_features)]


def test_index_the_gains_of_the_proof():
    S = index_set(MATRIX, EVEN)
    assert sum(map(len, S.values())) == 2 * EVEN * (3 + 3)  # the print: N · D · 2k
    for kappa, ell in positions(MATRIX):
        kept = S[kappa] + S[3 + ell]  # h in [2k]; the print: [k]
        gains = gains_of(kept, len(kept[0][0]))
        assert gains[:3] == [Fraction(1, 6 if j == ell else 8) for j in (1, 2, 3)]
        assert set(gains[3:]) == {0}
        with_k_only = S[kappa][:EVEN] + S[3 + ell][:EVEN]
        assert gini(with_k_only) == 0  # the print's set has one label and needs no tree


def test_slip_index_an_odd_k_spoils_the_construction():
    S = index_set(MATRIX, 1)
    gains = gains_of(S[1] + S[4], 3)  # kappa = 1, ell = 1
    assert gains[0] == Fraction(1, 6)
    assert max(gains[1:]) == HALF
    tree, S = alice(MATRIX, 1)
    assert not bob_is_right(tree, S, MATRIX)


def test_slip_index_alpha_above_one_half_lets_the_root_be_a_leaf():
    tree, S = alice(MATRIX, EVEN, min_impurity=1.0)
    assert not bob_is_right(tree, S, MATRIX)
    kept = Reference(tree.n_features, max_gap=0.04, min_impurity=0.51)
    kept.root = Node(S[1] + S[4], 8)  # one leaf, a tie: feasible, and both labels are
    assert kept.breaches() == []


def test_slip_index_one_deletion_per_value_leaves_the_copies():
    tree, S = alice(MATRIX, EVEN)
    bob(tree, S, 1, 1, 3, repeat=False)
    assert len(tree) > 2 * 2 * EVEN


@pytest.mark.parametrize("limits", [{}, {"epsilon": 0.09, "min_impurity": 0.49}], ids=str)
@pytest.mark.parametrize("k", [1, 3])
def test_theorem_4_2_the_alternating_sequence(k, limits):
    d = 4
    tree = Reference(d, max_gap=0.49, min_samples_split=k + 1, **limits)
    for j in (2, 0, 3, 3, 1):
        marked = tuple(float(i == j) for i in range(d))
        S = [((0.0,) * d, 0)] * k + [(marked, 1)] * k
        for e in S:
            tree.insert(*e)
        for x in itertools.product((0.0, 1.0), repeat=d):
            assert tree.label(x) == x[j]
        for e in S:
            tree.delete(*e)
        assert len(tree) == 0
