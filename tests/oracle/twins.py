"""Twins: the core and the reference, given the same requests and compared as a whole.

Whatever can be seen of the tree has to be equal after every request: every node, the labels of
probe rows, the number of examples, which ids are active, the audit, and how much was rebuilt. But
to look at the whole tree builds what it had put off, so it is not looked at after every one.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from evertree import EverTree
from evertree.errors import EmptyTree
from reference import Reference, gain

if TYPE_CHECKING:
    from collections.abc import Sequence

X = tuple[float, ...]
Example = tuple[X, Any]


def plain(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Nodes that can be compared with ==, where NaN does not equal NaN."""

    def is_missing(node: dict[str, Any]) -> bool:
        return node["category"] is not None and math.isnan(node["category"])

    return [node | {"category": "missing"} if is_missing(node) else node for node in nodes]


def gap_of(reference: Reference) -> float | None:
    """The worst gap of all splits by Definition 2.1; None without a split."""
    gaps = [
        gain(v.examples, reference.best(v.examples) or v.split) - gain(v.examples, v.split)
        for *_, v in reference.paths()
        if v.split is not None
    ]
    return float(max(gaps)) if gaps else None


class Twins:
    """One tree, held twice."""

    def __init__(self, n_features: int, **options: Any) -> None:
        self.n_features, self.options = n_features, options
        self.core = EverTree(n_features, **options)
        self.reference = Reference(n_features, **options)
        self.active: dict[int, Example] = {}  # by id, the last inserted last
        self.log: list[str] = [f"Twins({n_features}, **{options})"]

    # ------------------------------------------------------------------------------------- requests

    def insert(self, x: X, y: Any, id: int | None = None) -> None:
        self.log.append(f"insert({x}, {y!r}, id={id})")
        i = self.core.insert(x, y) if id is None else self.core.insert(x, y, id=id)
        self.reference.insert(x, y)
        self.active[i] = (x, y)

    def delete(self, x: X, y: Any) -> None:
        self.log.append(f"delete({x}, {y!r})")
        self.core.delete(x, y)
        self.reference.delete(x, y)
        del self.active[self.last_equal(x, y)]

    def delete_id(self, i: int) -> None:
        self.log.append(f"delete_id({i})")
        self.core.delete(id=i)
        self.reference.delete(*self.active.pop(i))

    def replace(self, i: int, x: X, y: Any) -> None:
        self.log.append(f"replace({i}, {x}, {y!r})")
        self.core.replace(i, x, y)
        self.reference.update(insert=[(x, y)], delete=[self.active.pop(i)])
        self.active[i] = (x, y)

    def insert_many(self, rows: list[Example]) -> None:
        self.log.append(f"insert_many({rows})")
        ids = self.core.insert_many(self.matrix(rows), [y for _, y in rows])
        self.reference.update(insert=rows)
        assert len(ids) == len(rows)
        self.active.update(zip(map(int, ids), rows, strict=True))

    def delete_many(self, rows: list[Example]) -> None:
        self.log.append(f"delete_many({rows})")
        self.core.delete_many(self.matrix(rows), [y for _, y in rows])
        self.reference.update(delete=rows)
        for row in rows:
            del self.active[self.last_equal(*row)]

    def delete_many_ids(self, ids: list[int]) -> None:
        self.log.append(f"delete_many_ids({ids})")
        self.core.delete_many(ids=ids)
        self.reference.update(delete=[self.active.pop(i) for i in ids])

    def rebuild(self) -> None:
        self.log.append("rebuild()")
        self.core.rebuild()
        self.reference.rebuild()

    # ------------------------------------------------------------------------------------ comparing

    def compare(self, probes: Sequence[X] = (), *, audit: bool = True) -> None:
        """Assert that the two are one."""
        core, reference, log = self.core, self.reference, self.log
        assert plain(core.nodes()) == plain(reference.nodes()), log
        assert len(core) == len(reference) == len(self.active), log
        assert all(i in core for i in self.active), log
        assert core.certified == reference.certified, log
        assert core.stats()["rebuilds"] == reference.rebuilds, log
        assert core.stats()["rows_rebuilt"] == reference.rows_rebuilt, log
        self.compare_labels(probes)
        self.compare_many_labels(probes)
        if audit:
            self.compare_audits()

    def compare_labels(self, probes: Sequence[X]) -> None:
        if not self.active:
            with pytest.raises(EmptyTree):
                self.core.label((0.0,) * self.n_features)
            return
        for x in probes:
            assert self.core.label(x) == self.reference.label(x), self.log
            assert self.core.label_counts(x) == self.reference.label_counts(x), self.log

    def compare_many_labels(self, probes: Sequence[X]) -> None:
        if self.active and probes:
            labels = [self.reference.label(x) for x in probes]
            assert list(self.core.label_many(np.array(probes))) == labels, self.log

    def compare_audits(self) -> None:
        certificate, breaches = self.core.certify(), self.reference.breaches()
        assert certificate.ok == (not breaches), (self.log, certificate, breaches)
        assert certificate.ok or not self.reference.certified, (self.log, breaches)
        worst = gap_of(self.reference)
        if worst is not None:
            assert certificate.worst_gap == pytest.approx(worst, abs=1e-9), self.log

    def compare_with_a_fresh_tree(self, seed: int) -> None:
        """After rebuild(), the digest is that of the same examples in any other order."""
        rows = list(self.active.values())
        random.Random(seed).shuffle(rows)
        fresh = EverTree(self.n_features, **self.options)
        for x, y in rows:
            fresh.insert(x, y)
        fresh.rebuild()
        self.rebuild()
        self.compare()
        assert self.core.digest() == fresh.digest(), (seed, self.log)

    # -------------------------------------------------------------------------------------- helpers

    def matrix(self, rows: list[Example]) -> np.ndarray:
        return np.array([x for x, _ in rows], dtype=float).reshape(len(rows), self.n_features)

    def last_equal(self, x: X, y: Any) -> int:
        """The id that goes when (x, y) is deleted by value."""

        def is_equal(other: Example) -> bool:
            same = (a == b or (a != a and b != b) for a, b in zip(other[0], x, strict=True))
            return other[1] == y and all(same)

        gone = next(i for i in reversed(self.active) if is_equal(self.active[i]))
        assert gone not in self.core, self.log
        return gone
