"""The paper as code: Algorithms 1 and 2, the gain, and Definition 3.1 as a checker that speaks.

Read it with the paper open: the paper's names stand in the comments. It is slow on purpose. Every
node keeps the list of its examples, and whatever is asked (Gini, separability, the best split) is
computed from that list by the definition, in exact fractions. The core is compared with it, so it
imports nothing of ours. MAP.md says where it departs from the print, and why.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    X = tuple[float, ...]
    Example = tuple[X, Hashable]  # (x, y)

TOL = Fraction(1, 10**12)  # for limits, which are doubles: 0.32 is not 8/25. The core has the same
LEVELS_OF_PARTS = 3  # how far below a node its floor looks. The core has the same


class Split(NamedTuple):
    """σ = (j, a): x_j <= a goes left; of a categorical feature, x_j = a goes left."""

    feature: int  # j
    value: float  # a
    missing_left: bool
    categorical: bool = False

    def is_left(self, x: X) -> bool:
        """Tell whether succ(v, x) is the left child."""
        if math.isnan(x_j := x[self.feature]):
            return self.missing_left
        return x_j == self.value if self.categorical else x_j <= self.value

    def sides(self, S: list[Example]) -> tuple[list[Example], list[Example]]:
        """S_- and S_+."""
        return [e for e in S if self.is_left(e[0])], [e for e in S if not self.is_left(e[0])]


def gini(S: list[Example]) -> Fraction:
    """g(S) of Definition 2.1, 2p(1 - p); for any number of classes, 1 - Σ p²."""
    counts = Counter(y for _, y in S).values()
    return 1 - Fraction(sum(n * n for n in counts), len(S) ** 2) if S else Fraction(0)


def mass_left(S: list[Example], split: Split) -> Fraction:
    """|S_-| g(S_-) + |S_+| g(S_+)."""
    return sum((len(side) * gini(side) for side in split.sides(S)), Fraction(0))


def gain(S: list[Example], split: Split) -> Fraction:
    """G(S, j, a) of Definition 2.1."""
    return gini(S) - mass_left(S, split) / len(S) if S else Fraction(0)


def mass(counts: Iterable[int]) -> Fraction:
    """|S| g(S), from the number of examples with each label."""
    counts = list(counts)
    return sum(counts) - Fraction(sum(n * n for n in counts), sum(counts) or 1)


def mass_lost(built: Counter[Hashable], floor: Fraction, label: Hashable, gone: int) -> Fraction:
    """Bound what `gone` deletions of a label take from any split of those in `built` (Fact 3).

    All splits left at least `floor`. Two millionths of the set are taken from what that says of the
    label against the rest, so that the core's rounding does not matter: it does the same.
    """
    own, n = built[label], built.total()
    d, others = min(gone, own), n - own
    if d == 0:
        return Fraction(0)
    rest = mass(many for other, many in built.items() if other != label)
    as_two = mass([own, others])
    least = max(floor - rest, as_two - 2 * (mass(built.values()) - floor))
    y = n * (as_two - least) / 2 + Fraction(n * n, 10**6)  # n²/2 times what is gained at most
    root = root_above(y * y + 4 * d * (own - d) * y)
    side = n * (y + 2 * d * own + root) / (2 * (y + own * own))
    return 2 * d * (1 - d / min(side, Fraction(d + others)))


def root_above(square: Fraction) -> Fraction:
    """Give the square root, or what is above it by 1e-20."""
    return Fraction(math.isqrt(int(square * 10**40)) + 1, 10**20)


def midpoint(low: float, high: float) -> float:
    """Give the double nearest to the middle (never -0.0), or low where that is not below high."""
    middle = float((Fraction(low) + Fraction(high)) / 2) + 0.0
    return middle if middle < high else low


def size_class(s: int) -> int:
    """ŝ of Algorithm 1, line 8: the next power of two; 0 for 0, where the print has log 0."""
    return 1 << (s - 1).bit_length() if s else 0


def tidy(x: Sequence[float]) -> X:
    """One spelling per value: 0.0 for -0.0, and one NaN object, so that equal tuples are equal."""
    return tuple(math.nan if math.isnan(x_j) else x_j + 0.0 for x_j in x)


@dataclass(eq=False)
class Node:
    """A vertex v."""

    examples: list[Example]  # S_v
    built_size: int  # s(v)
    updates_since_build: int = 0  # c(v)
    gone: Counter[Hashable] = field(default_factory=Counter)  # labels of deletions since the build
    split: Split | None = None  # σ_v
    mass_at_build: Fraction = Fraction(0)  # left by σ_v, which was optimal: no split left less
    labels_at_build: Counter[Hashable] = field(default_factory=Counter)
    children: tuple[Node, ...] = ()
    is_stuck: bool = False  # a leaf only because no split separates its examples


class Reference:
    """The tree of the active multiset. With epsilon the paper's rule, without the certified one."""

    def __init__(
        self,
        n_features: int,  # d
        categorical: Sequence[int] = (),
        max_gap: float = 0.1,  # β
        min_impurity: float = 0.01,  # α
        min_samples_split: int = 2,  # k + 1
        max_depth: int | None = None,  # h
        epsilon: float | None = None,  # ε
    ) -> None:
        self.n_features, self.categorical = n_features, categorical
        self.alpha, self.beta = Fraction(min_impurity), Fraction(max_gap)
        self.k, self.h = min_samples_split - 1, math.inf if max_depth is None else max_depth
        self.epsilon = None if epsilon is None else Fraction(epsilon)
        self.certified = self.epsilon is None or (  # the limits of Theorem 3.2; MAP.md on the last
            self.epsilon < min(Fraction(1, self.k + 1), self.alpha / 5)
            and self.epsilon <= self.beta / (2 + self.beta)
        )
        self.rebuilds = self.rows_rebuilt = 0
        self.root = self.build([], 0)

    def update(self, insert: Sequence[Example] = (), delete: Sequence[Example] = ()) -> None:
        """Algorithm 1 for one request, or for many at once: apply them all, then repair."""
        labels = {y: y for _, y in self.root.examples}  # 1, 1.0 and True are one: the first seen
        arrived = [(tidy(x), labels.setdefault(y, y)) for x, y in insert]
        gone = [(tidy(x), y) for x, y in delete]
        if absent := Counter(gone) - Counter(self.root.examples):
            raise KeyError(next(iter(absent)))
        touched: set[Node] = set()
        for e, is_deletion in [(e, True) for e in gone] + [(e, False) for e in arrived]:
            for v in self.path(e[0]):  # line 2
                (v.examples.remove if is_deletion else v.examples.append)(e)  # line 3
                v.gone[e[1]] += is_deletion
                v.updates_since_build += 1  # line 6
                touched.add(v)
        self.repair(touched)

    def repair(self, touched: set[Node]) -> None:
        """Lines 5 to 12, on the paths of all requests: parents first, left before right."""
        rebuilt: set[Node] = set()
        for path in [path for path in self.paths() if path[-1] in touched]:
            if rebuilt.isdisjoint(path) and self.is_due(path):  # line 7
                s_hat = size_class(path[-1].built_size)  # line 8
                u = next(u for u in path if u.built_size <= s_hat)  # line 9
                self.rebuild_at(u, path)
                rebuilt.add(u)

    def rebuild_at(self, u: Node, path: list[Node]) -> None:
        """Lines 10 and 11, with the depth of u, the rebuilt node; the print has path[-1]'s."""
        self.rebuilds += 1
        self.rows_rebuilt += len(u.examples)
        vars(u).update(vars(self.build(u.examples, path.index(u))))

    def is_due(self, path: list[Node]) -> bool:
        """Line 7 for the last node of the path, by the paper's rule or by the certified one."""
        v, S = path[-1], path[-1].examples
        if self.epsilon is not None:
            is_counted_out = v.updates_since_build > (self.epsilon + TOL) * v.built_size
            return is_counted_out or (v.is_stuck and self.must_split(path, self.alpha - TOL))
        if v.split is None:  # built_size is 0 in an empty tree only: its first update is one Build
            return v.built_size == 0 < len(S) or self.must_split(path, self.alpha - TOL)
        is_far = mass_left(S, v.split) - self.floor(v) > (self.beta - TOL) * len(S)
        has_shrunk = 2 * len(S) < v.built_size  # no pile of emptied leaves: it bounds the space
        return is_far or has_shrunk or len(S) <= self.k or gini(S) == 0

    def floor(self, v: Node, levels: int = LEVELS_OF_PARTS) -> Fraction:
        """Bound from below what any split leaves of S_v: never less than of the parts of S_v."""
        if v.split is None:
            return Fraction(0)
        built, at_build = v.labels_at_build, v.mass_at_build
        lost = sum(mass_lost(built, at_build, y, v.gone[y]) for y in built)
        since_build = max(Fraction(0), at_build - lost)
        parts = (self.floor(child, levels - 1) for child in v.children if levels > 0)
        return max(since_build, sum(parts, Fraction(0)))

    def build(self, S: list[Example], depth: int) -> Node:
        """Algorithm 2, Build(S, η)."""
        r = Node(S, built_size=len(S))  # line 2
        is_pure = gini(S) == 0 or gini(S) <= self.alpha / 2 + TOL
        if len(S) <= self.k or is_pure or depth == self.h:  # line 3
            return r
        r.split = self.best(S)  # line 9
        if r.split is None:  # equal x with mixed labels: taken literally, Build would never end
            r.is_stuck = True
            return r
        r.mass_at_build = mass_left(S, r.split)
        r.labels_at_build = Counter(y for _, y in S)
        r.children = tuple(self.build(side, depth + 1) for side in r.split.sides(S))  # lines 10, 11
        return r

    def best(self, S: list[Example]) -> Split | None:
        """Of the splits that separate S, the first one of largest gain."""
        return max(self.candidates(S), key=lambda split: gain(S, split), default=None)

    def candidates(self, S: list[Example]) -> Iterator[Split]:
        """Every way to separate S by one feature, in the order that decides ties."""
        for j in range(self.n_features):
            present = sorted({x[j] for x, _ in S if not math.isnan(x[j])})
            has_missing = any(math.isnan(x[j]) for x, _ in S)
            if j in self.categorical:  # missing is one more category, the last
                categories = [*present, math.nan] if has_missing else present
                if len(categories) > 1:
                    yield from (Split(j, a, math.isnan(a), categorical=True) for a in categories)
                continue
            for t in (midpoint(low, high) for low, high in pairwise(present)):
                n_left = sum(x[j] <= t for x, _ in S)  # with none missing: where more of them go
                for missing_left in (True, False) if has_missing else (2 * n_left >= len(S),):
                    yield Split(j, t, missing_left)
            if has_missing and present:
                yield Split(j, present[-1], missing_left=False)  # the missing against the present

    def must_split(self, path: list[Node], alpha: Fraction) -> bool:
        """Condition 1 of Definition 3.1: has the last node of the path to be internal."""
        S, depth = path[-1].examples, len(path) - 1
        may_split = len(S) > self.k and gini(S) > 0 and depth < self.h
        return may_split and gini(S) >= alpha and any(True for _ in self.candidates(S))

    def breaches(self) -> list[str]:
        """Say in words where Definition 3.1 fails (its condition 3 is how `label` answers)."""
        found = []
        for i, path in enumerate(self.paths()):
            S, split, depth = path[-1].examples, path[-1].split, len(path) - 1
            what = f"node {i}: {len(S)} examples, gini {float(gini(S)):.6g}, depth {depth}"
            if split is None:
                if self.must_split(path, self.alpha + TOL):
                    found.append(f"{what}, is a leaf, min_impurity is {float(self.alpha)}")
                continue
            if len(S) <= self.k or gini(S) == 0 or depth >= self.h:
                found.append(f"{what}, is split, k is {self.k}, max_depth is {self.h}")
            best = self.best(S) or split
            if (gap := gain(S, best) - gain(S, split)) > self.beta + TOL:
                far = f"node {i}: split {split[:2]} is {float(gap):.6g} below {best[:2]}"
                found.append(f"{far}, max_gap is {float(self.beta)}")
        return found

    def path(self, x: X) -> list[Node]:
        """P_v(x): the nodes from the root to the leaf of x."""
        path = [self.root]
        while (v := path[-1]).split is not None:
            path.append(v.children[0 if v.split.is_left(x) else 1])
        return path

    def paths(self) -> Iterator[list[Node]]:
        """Give the path to every node, parents first, left before right."""
        stack = [[self.root]]
        while stack:
            yield (path := stack.pop())
            stack.extend([*path, child] for child in reversed(path[-1].children))

    def insert(self, x: X, y: Hashable) -> None:
        """ins(x, y)."""
        self.update(insert=[(x, y)])

    def delete(self, x: X, y: Hashable) -> None:
        """del(x, y); KeyError if it is not there."""
        self.update(delete=[(x, y)])

    def rebuild(self) -> None:
        """Build everything anew."""
        self.rebuild_at(self.root, [self.root])

    def label(self, x: X) -> Hashable:
        """lab(x): a majority label; of several the one that sorts first, by type name and value."""
        counts = self.label_counts(x)
        tied = [y for y, n in counts.items() if n == max(counts.values())]
        name = min(type(y).__name__ for y in tied)
        tied = [y for y in tied if type(y).__name__ == name]
        try:
            return min(tied)  # type: ignore[type-var]
        except TypeError:  # values without an order
            return min(tied, key=repr)

    def label_counts(self, x: X) -> dict[Hashable, int]:
        """Count the labels at the leaf of x or, where it is empty, at the nearest node above."""
        for v in reversed(self.path(tidy(x))):
            if v.examples:
                return dict(Counter(y for _, y in v.examples))
        raise LookupError("the tree is empty")

    def nodes(self) -> list[dict[str, Any]]:
        """Give the tree as plain data, parents first."""
        ids = {path[-1]: i for i, path in enumerate(self.paths())}
        of_splits = ("feature", "threshold", "category", "missing_left", "left", "right")
        rows: list[dict[str, Any]] = []
        for *above, v in self.paths():
            parent = ids[above[-1]] if above else None
            row = {"id": ids[v], "parent": parent, "depth": len(above), **dict.fromkeys(of_splits)}
            if v.split is not None:
                j, a, missing_left, categorical = v.split
                left, right = (ids[child] for child in v.children)
                row |= {"feature": j, "missing_left": missing_left, "left": left, "right": right}
                value = int(a) if categorical and not math.isnan(a) else a
                row["category" if categorical else "threshold"] = value
            rows.append(row | {"counts": dict(Counter(y for _, y in v.examples))})
        return rows

    def __len__(self) -> int:
        return len(self.root.examples)
