"""The ledger knows the order of arrival, whatever comes and goes; beside it a plain list."""

import copy

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evertree import EverTree, ExampleNotFound
from evertree.estimators.ledger import Ledger

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=4)
REQUESTS = st.one_of(
    st.tuples(st.just("insert"), ROWS),
    st.tuples(st.just("insert with ids"), ROWS),
    st.tuples(st.just("delete one"), ROWS),
    st.tuples(st.just("delete values"), ROWS),
    st.tuples(st.just("delete oldest"), ROWS),
)


class Plain:
    """The examples as a list of (id, x, y), in the order of arrival."""

    def __init__(self):
        self.examples = []
        self.ids_used = -1

    def insert(self, rows, ids=None):
        for position, (x, y) in enumerate(rows):
            number = self.ids_used + 1 if ids is None else ids[position]
            self.ids_used = max(self.ids_used, number)
            self.examples.append((number, x, y))

    def delete(self, x, y):
        """Delete the last of equal examples; tell whether there was one."""
        equal = [e for e in self.examples if e[1:] == (x, y)]
        if equal:
            self.examples.remove(equal[-1])
        return bool(equal)


@given(st.lists(REQUESTS, max_size=30))
@settings(max_examples=80, deadline=None)
def test_as_a_plain_list_does(requests):
    ledger, plain = Ledger(EverTree(n_features=1)), Plain()
    for request, rows in requests:
        X = np.array([[x] for x, _ in rows], dtype=np.float64)
        y = [label for _, label in rows]
        if request == "insert":
            ledger.insert_many(X, y)
            plain.insert(rows)
        elif request == "insert with ids":  # the smallest that are free: they come again and again
            taken = {number for number, _, _ in plain.examples}
            ids = [i for i in range(len(taken) + len(rows)) if i not in taken][: len(rows)]
            ledger.insert_many(X, y, ids)
            plain.insert(rows, ids)
        elif request == "delete one":
            there = plain.delete(*rows[0])
            try:
                ledger.delete(X[0], y[0])
            except ExampleNotFound:
                assert not there
            else:
                assert there
        elif request == "delete values":
            before = list(plain.examples)
            if all(plain.delete(*row) for row in rows):
                ledger.delete_many(X, y)
            else:
                plain.examples = before
        else:
            n = min(len(rows), len(plain.examples))
            ledger.delete_many(ids=ledger.oldest(n))
            del plain.examples[:n]
        assert ledger.oldest(1000) == [number for number, _, _ in plain.examples]
    for one in (ledger, copy.deepcopy(ledger)):
        rows, labels, ids = one.examples()
        found = zip(ids.tolist(), rows[:, 0].tolist(), labels, strict=True)
        assert list(found) == plain.examples


def test_what_has_gone_does_not_pile_up():
    ledger = Ledger(EverTree(n_features=1))
    ledger.insert([0.0], 0)
    for i in range(5000):
        ledger.insert([1.0 + i % 7], 1)
        ledger.delete([1.0 + i % 7], 1)
    assert ledger.oldest(5) == [0]
    assert len(ledger._arrivals) < 2000
