"""Accuracy, F1 and kappa: the values of scikit-learn, for any answers."""

from __future__ import annotations

import math
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from evertree.evaluate import NO_ANSWER, Confusion

ANSWERS = st.one_of(
    *(
        st.lists(
            st.tuples(st.sampled_from(labels), st.sampled_from(labels)), min_size=1, max_size=60
        )
        for labels in (["a", "b"], ["a", "b", "c", "d"], [0, 1, 2, 3, 4, 5, 6])
    )
)


def same(ours, theirs):
    return ours == pytest.approx(theirs, abs=1e-12, nan_ok=True)


@settings(deadline=None)
@given(ANSWERS)
def test_the_values_are_those_of_scikit_learn(pairs):
    truths, answers = [t for t, _ in pairs], [a for _, a in pairs]
    ours = Confusion.of(truths, answers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where a value is not defined
        assert same(ours.accuracy(), sklearn_metrics.accuracy_score(truths, answers))
        assert same(ours.kappa(), sklearn_metrics.cohen_kappa_score(truths, answers))
        assert same(ours.f1_macro(), sklearn_metrics.f1_score(truths, answers, average="macro"))
        for label in {*truths, *answers}:
            theirs = sklearn_metrics.f1_score(
                truths, answers, labels=[label], average="macro", zero_division=0
            )
            assert same(ours.f1(label), theirs)


@settings(deadline=None)
@given(ANSWERS, ANSWERS)
def test_counts_add_up(first, second):
    added = Confusion.of(*zip(*first, strict=True))
    added.add(Confusion.of(*zip(*second, strict=True)))
    assert added.counts == Confusion.of(*zip(*first + second, strict=True)).counts


@settings(deadline=None)
@given(st.lists(ANSWERS, max_size=3), st.floats(0.1, 1.0))
def test_fading_is_a_weight_per_age(pieces, factor):
    """In pieces or at once: each answer counts factor ** (how many came after it)."""
    faded = Confusion()
    for piece in pieces:
        faded.fade(*zip(*piece, strict=True), factor)
    pairs = [pair for piece in pieces for pair in piece]
    for pair in set(pairs):
        ages = [len(pairs) - 1 - i for i, other in enumerate(pairs) if other == pair]
        assert faded.counts[pair] == pytest.approx(sum(factor**age for age in ages))


def test_no_answer_is_wrong_and_no_class():
    answers = Confusion.of(["a", "b", "a"], [NO_ANSWER, "b", "a"])
    assert answers.accuracy() == pytest.approx(2 / 3)
    assert answers.labels() == ["a", "b"]
    assert answers.f1("a") == pytest.approx(2 / 3)
    assert answers.f1_macro() == pytest.approx((2 / 3 + 1) / 2)
    # As scikit-learn has it when no answer is a class of its own.
    theirs = sklearn_metrics.cohen_kappa_score(["a", "b", "a"], ["none", "b", "a"])
    assert answers.kappa() == pytest.approx(theirs)
    assert repr(NO_ANSWER) == "NO_ANSWER"


def test_nothing_answered():
    nothing = Confusion()
    assert math.isnan(nothing.accuracy())
    assert math.isnan(nothing.kappa())
    assert math.isnan(nothing.f1_macro())
    assert nothing.f1("a") == 0.0


def test_labels_that_are_equal_are_one():
    assert Confusion.of([1, True, 1.0], [1.0, 1, True]).accuracy() == 1.0
