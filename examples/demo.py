"""Watch the tree follow a stream that changes its mind.

A synthetic stream of 6 features, seeded: the rule behind the labels turns slowly, and now and then
it changes all at once. The tree sees every example before it may learn it (label, then insert) and
keeps only the last WINDOW: each new example pushes the oldest one out (delete). So F1 falls at each
change and recovers as soon as the old examples are gone. Every so often the tree is audited from
scratch: no split may be further than max_gap from the best one, ever.

At the end a proof of forgetting: the tree is rebuilt, and compared with a new tree that has seen
nothing but the examples still in the window.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evertree import EverTree

SEED = 7
WINDOW = 2_000
SECONDS = 15.0
FEATURES = 6
NOISE = 0.03  # this share of the labels is wrong, so no tree can be perfect
CHUNK = 250  # examples between two pictures
PHASE = 20_000  # examples between two sudden changes
BARS = " ▁▂▃▄▅▆▇█"


class Picture(NamedTuple):
    """What is shown of one moment."""

    seen: int
    active: int
    nodes: int
    depth: int
    f1: float
    update_us: float
    rebuilds: int
    worst_gap: float
    ok: bool


class Progress:
    """The figures of a run: how often the tree was right, how long it took."""

    def __init__(self) -> None:
        self.recent: deque[tuple[bool, bool]] = deque(maxlen=1_000)
        self.all = [0, 0, 0]  # both yes, said yes, was yes
        self.updates = 0
        self.update_ns = 0
        self.label_ns = 0
        self.worst_gap = 0.0
        self.audits = 0
        self.breaches: list[str] = []

    def judge(self, said: bool, was: bool) -> None:
        """Remember one answer and the truth."""
        self.recent.append((said, was))
        for position, hit in enumerate((said and was, said, was)):
            self.all[position] += hit

    def f1_now(self) -> float:
        """F1 of "yes" over the last thousand answers."""
        pairs = list(self.recent)
        return f1(
            sum(s and w for s, w in pairs), sum(s for s, _ in pairs), sum(w for _, w in pairs)
        )

    def f1_overall(self) -> float:
        """F1 of "yes" over the whole run."""
        return f1(*self.all)


def f1(both: int, said: int, was: int) -> float:
    """F1 from counts: both yes, said yes, was yes."""
    return 2 * both / (said + was) if said + was else 0.0


def drifting(seed: int) -> Iterator[tuple[npt.NDArray[np.float64], bool]]:
    """Give examples for ever: yes on one side of a line that turns, and jumps at each phase."""
    generator = np.random.default_rng(seed)
    for seen in range(sys.maxsize):
        if seen % PHASE == 0:  # two other features matter now
            chosen = generator.choice(FEATURES, 2, replace=False)
            weights = generator.normal(size=2)
        weights += 0.002 * generator.normal(size=2)
        x = generator.normal(size=FEATURES)
        yield x, bool((x[chosen] @ weights > 0) != (generator.random() < NOISE))


def step(
    tree: EverTree, window: deque[int], x: npt.NDArray[np.float64], y: bool, run: Progress
) -> None:
    """Follow the stream by one example: label it, then let it in and the oldest out."""
    start = time.perf_counter_ns()
    said = tree.label(x)
    labelled = time.perf_counter_ns()
    window.append(tree.insert(x, y))
    tree.delete(id=window.popleft())
    end = time.perf_counter_ns()
    run.judge(said, y)
    run.updates += 2
    run.label_ns += labelled - start
    run.update_ns += end - labelled


def audit(tree: EverTree, run: Progress) -> None:
    """Check the guarantee from scratch; its time is not counted as the stream's."""
    certificate = tree.certify()
    run.audits += 1
    run.worst_gap = max(run.worst_gap, certificate.worst_gap)
    run.breaches += certificate.breaches


def look(tree: EverTree, run: Progress, seen: int) -> Picture:
    """Take the picture of this moment."""
    stats = tree.stats()
    return Picture(
        seen=seen,
        active=len(tree),
        nodes=stats["nodes"],
        depth=stats["depth"],
        f1=run.f1_now(),
        update_us=run.update_ns / run.updates / 1_000,
        rebuilds=stats["rebuilds"],
        worst_gap=run.worst_gap,
        ok=not run.breaches,
    )


# --- what it looks like


class LiveView:
    """Figures that change in place, with the course of F1 beside them."""

    def __init__(self, max_gap: float) -> None:
        self.max_gap = max_gap
        self.course: deque[float] = deque(maxlen=48)
        self.height = 0

    def show(self, picture: Picture) -> None:
        """Draw over the last picture."""
        self.course.append(picture.f1)
        mark = "\033[32m✓\033[0m" if picture.ok else "\033[31m✗\033[0m"
        course = "".join(BARS[bar(value)] for value in self.course)
        lines = [
            "",
            f"  examples seen     {picture.seen:>12,}",
            f"  active examples   {picture.active:>12,}",
            f"  nodes · depth     {picture.nodes:>12,} · {picture.depth}",
            f"  F1, last 1,000    {picture.f1:>12.1%}   \033[36m{course}\033[0m",
            f"  µs per update     {picture.update_us:>12.1f}",
            f"  rebuilds          {picture.rebuilds:>12,}",
            f"  worst gap found   {picture.worst_gap:>12.4f}   {mark} allowed: {self.max_gap}",
            "",
        ]
        up = f"\033[{self.height}A" if self.height else ""
        sys.stdout.write(up + "".join(f"\033[2K{line}\n" for line in lines))
        sys.stdout.flush()
        self.height = len(lines)


class PlainView:
    """One line now and then, for a file or a pipe."""

    def __init__(self, every_s: float = 1.5) -> None:
        self.every_s = every_s
        self.next_s = 0.0

    def show(self, picture: Picture) -> None:
        """Write a line, if the last one is old enough."""
        now = time.monotonic()
        if now < self.next_s:
            return
        self.next_s = now + self.every_s
        print(
            f"seen {picture.seen:>7,} | active {picture.active:>5,} | nodes {picture.nodes:>4,} | "
            f"depth {picture.depth:>2} | F1 {picture.f1:6.1%} | "
            f"{picture.update_us:5.1f} µs per update | "
            f"rebuilds {picture.rebuilds:>6,} | worst gap {picture.worst_gap:.4f}",
            flush=True,
        )


def bar(value: float) -> int:
    """Give the height of a bar, from F1 = 0.5 (nothing) to F1 = 1 (full)."""
    return round(min(max((value - 0.5) * 2, 0.0), 1.0) * (len(BARS) - 1))


# --- the run


def follow(tree: EverTree, view: LiveView | PlainView, seconds: float) -> Progress:
    """Follow the stream for so many seconds."""
    stream = drifting(SEED)
    run = Progress()
    first = [next(stream) for _ in range(WINDOW)]
    window = deque(tree.insert_many([x for x, _ in first], [y for _, y in first]).tolist())
    end = time.monotonic() + seconds
    seen = WINDOW
    while time.monotonic() < end:
        for _ in range(CHUNK):
            step(tree, window, *next(stream), run)
        seen += CHUNK
        audit(tree, run)
        view.show(look(tree, run, seen))
    return run


def forget(tree: EverTree) -> bool:
    """Rebuild, and compare with a new tree that has seen only what is active now."""
    ids = [i for i in range(tree.stats()["inserts"]) if i in tree]
    examples = [tree.example(i) for i in ids]
    fresh = EverTree(FEATURES)
    fresh.insert_many([x for x, _ in examples], [y for _, y in examples])
    tree.rebuild()
    print(f"  digest of this tree, rebuilt   {tree.digest()[:32]}…")
    print(f"  digest of a new tree           {fresh.digest()[:32]}…")
    return tree.digest() == fresh.digest()


def main() -> int:
    """Run the demonstration; the exit code tells whether every promise was kept."""
    tree = EverTree(FEATURES)
    max_gap = tree.limits.max_gap
    print(f"evertree follows a stream that drifts; it keeps the last {WINDOW:,} examples.")
    print(f"Every {PHASE:,} examples the rule behind the labels changes at once (seed {SEED}).")
    in_place = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    view = LiveView(max_gap) if in_place else PlainView()
    run = follow(tree, view, SECONDS)
    certificate = tree.certify()
    print(
        f"{run.updates:,} updates, {run.update_ns / run.updates / 1_000:.1f} µs each; "
        f"{run.label_ns / (run.updates / 2) / 1_000:.1f} µs per label; "
        f"F1 over the whole run {run.f1_overall():.1%} ({NOISE:.0%} of the labels are noise)."
    )
    print(
        f"{run.audits} audits: worst gap {run.worst_gap:.4f} of {max_gap} allowed, "
        f"{len(run.breaches)} breaches. certify() now: ok={certificate.ok}, "
        f"{certificate.nodes} nodes."
    )
    print("Nothing is left of what was deleted:")
    forgotten = forget(tree)
    print("  the same tree, to the bit." if forgotten else "  they differ: this is a bug.")
    return 0 if forgotten and certificate.ok and not run.breaches else 1


if __name__ == "__main__":
    sys.exit(main())
