"""The report: in plain words where we agree with the paper, where not, and why; then all tables.

Every sentence that depends on a number is made from that number, and says something else when the
number does. What is missing is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from experiments import published
from experiments.figures import LAYOUTS, MAIN, points, values_table
from experiments.plan import BETAS, FIGURE_SETS, TABLE_SETS, WINDOW_DEPTHS, W, dynamic, window_of
from experiments.published import EPSILON, TABLE_2, TABLE_4, TABLE_5
from experiments.runs import SEED, Learner, Record, f1, f1_of_the_other, ms_per_update, seconds
from experiments.tables import PEERS

if TYPE_CHECKING:
    from experiments.tables import Found, Table

NEAR = 1.0  # points of F1: nearer than this is agreement


def report(
    found: Found,
    tables: list[Table],
    about: dict[str, str],
    remarks: list[str],
    *,
    quick: bool = False,
) -> str:
    """Write the whole document. A quick one does not judge: its rows are not the paper's."""
    parts = [
        "# The paper's experiments",
        "",
        (
            f"Made by `make paper{'-quick' if quick else ''}`: Tables 1 to 5 and all figures of "
            "*Fully-Dynamic Decision Trees* (AAAI 2023), beside what the paper left out. What is "
            "called printed is the paper's value; all others were measured here. F1 is that of "
            "label 1, in percent, over all rows after the first W."
        ),
        "",
        *(f"- {name}: {value}" for name, value in about.items()),
        *(f"- {remark}" for remark in remarks),
        "",
    ]
    for title, sentences in (
        ("How it was run", circumstances_of(found)),
        *([] if quick else [("Where we agree, where not, and why", agreement(found))]),
        ("Slips of the print, and what is missing", slips(found)),
        ("EFDT and HAT", peers(found)),
        ("Baselines that the paper left out", baselines(found)),
        ("What the figures show", curves(found)),
        ("Times", times(found)),
    ):
        parts += [f"## {title}", "", *(f"- {sentence}" for sentence in sentences), ""]
    parts += [table.markdown() for table in tables]
    for layout in LAYOUTS:
        picture = f"![{layout.title}]({layout.name}.png)"
        parts += [
            f"## Figure {layout.number}. {layout.title} against ε",
            "",
            picture,
            "",
            values_table(found, layout),
        ]
    if (Path(__file__).resolve().parents[1] / "results" / "adversaries.png").exists():
        parts += [
            "## Section 4",
            "",
            (
                "The lower bounds as a game (`make adversaries`): "
                "[adversaries.png](adversaries.png), [adversaries.json](adversaries.json)."
            ),
            "",
        ]
    parts.append(
        "All runs: [runs.json](runs.json); the tables as data: [tables.json](tables.json)."
    )
    return "\n".join(parts) + "\n"


# --- sentences


def circumstances_of(found: Found) -> Iterator[str]:
    """Say what was set, and what was cut."""
    yield (
        "The rule is the paper's own (FuDyADT), α = β = 0, k = 1, h = 10 unless it says h = 5; the "
        f"first W rows are built, W = {window_of('Electricity')} for Electricity with deletions "
        f"and {W:,} otherwise. One pass over each set in its own order; random updates with "
        f"p = 1/2, one sequence (seed {SEED})."
    )
    yield (
        "The certified rule has evertree's α = 0.01, and h = 10 unless it says any depth; a window "
        "of its own is an AdaptiveTree, which chooses among certified trees. EFDT and HAT are "
        "MOA's, with all options as they come but the grace period."
    )
    schedules = sorted(
        {
            job.value
            for job in found.records
            if job.learner == "scikit-learn" and job.stream != "incremental" and job.value
        }
    )
    yield (
        "scikit-learn's tree, depth 10, is fitted anew when more than ε·s updates have come since "
        "its last fit to s rows; with deletions for ε = "
        f"{', '.join(f'{value:g}' for value in schedules)} alone, because fits are dear."
    )
    yield (
        "No change answers with the label inserted last, the majority class with the most frequent "
        "label of the rows that are in. Times per update count a deletion and an insertion as two."
    )


def agreement(found: Found) -> Iterator[str]:
    """Compare Table 5 with the runs, and look for what explains a difference."""
    for name in _here(found):
        record = found.incremental(name, "paper", EPSILON)
        if record is None:
            continue
        printed, here = TABLE_5[name].tree, f1(record)
        verdict = "agrees" if abs(here - printed) <= NEAR else "**differs**"
        text = f"{found.name(name)}, Table 5, ε = 0.5, h = 10: {verdict}, {here:.2f} here, "
        yield text + f"{printed:.2f} printed.{_explanation(found, name, printed, here)}"


def _explanation(found: Found, name: str, printed: float, here: float) -> str:
    if abs(here - printed) <= NEAR:
        return ""
    shallow = found.incremental(name, "paper", EPSILON, depth=5)
    others = {"h = 5": shallow}
    others |= {f"a window of 1,000 and h = {h}": found.in_window(name, h) for h in WINDOW_DEPTHS}
    values = {what: f1(record) for what, record in others.items() if record is not None}
    listed = ", ".join(f"{what} gives {value:.2f}" for what, value in values.items())
    near = [what for what, value in values.items() if abs(value - printed) <= NEAR]
    nearer = [
        what for what, value in values.items() if 2 * abs(value - printed) < abs(here - printed)
    ]
    why = ""
    if any("window" in what for what in near):
        why = (
            " So the printed value looks like a run in which old rows are deleted, not like the "
            "incremental model that the table names."
        )
    elif any("window" in what for what in nearer):
        why = " Runs in which old rows are deleted come nearer than the incremental model."
    elif near:
        why = f" The printed value is met by {near[0]}."
    elif not found.sets[name].what.startswith("real"):
        why = " The rows here are not the paper's, so the value is no test of it."
    return f" With other settings: {listed}.{why}"


def slips(found: Found) -> Iterator[str]:
    """Name the class that is 1, the row that is a copy, the sets that are missing."""
    electricity = found.incremental("Electricity", "paper", EPSILON)
    if electricity is not None:
        down, up = f1(electricity), f1_of_the_other(electricity)
        printed = TABLE_5["Electricity"].tree
        meant = "DOWN, the majority," if abs(down - printed) < abs(up - printed) else "UP"
        yield (
            f"Electricity: with DOWN as label 1 F1 is {down:.2f}, with UP {up:.2f}, printed is "
            f"{printed:.2f}: {meant} is nearer, though Table 1 prints UP and the text says "
            '"majority class". All values here are of DOWN unless they say UP.'
        )
    for a, b in _copies():
        yield (
            f"Table 2 prints the same pair of F1, {TABLE_2[a].efdt_f1} and {TABLE_2[a].tree_f1}, "
            f"for {a} and {b}; Table 5 prints {TABLE_5[a].efdt} and {TABLE_5[b].efdt} for EFDT, so "
            f"the row of {a if TABLE_5[a].efdt != TABLE_2[a].efdt_f1 else b} is the copy, and no "
            f"target. Here: {_same_time_text(found, a)}."
        )
    missing = [name for name in published.TABLE_1 if name not in found.sets]
    if missing:
        yield f"Not here, and so without a value: {', '.join(missing)}."
    for name, data in found.sets.items():
        if data.what == "surrogate":
            yield (
                f"{name} is a surrogate: the real labels in the real order, 12 % real rows, the "
                "others drawn so that labels and sort order fit. The part of real rows stands "
                "beside it; neither is the paper's set."
            )
        elif data.what == "synthetic":
            yield f"{name} is synthetic here: its values say nothing about the paper."


def _copies() -> list[tuple[str, str]]:
    names = list(TABLE_2)
    return [
        (a, b)
        for i, a in enumerate(names)
        for b in names[i + 1 :]
        if (TABLE_2[a].efdt_f1, TABLE_2[a].tree_f1) == (TABLE_2[b].efdt_f1, TABLE_2[b].tree_f1)
    ]


def _same_time_text(found: Found, name: str) -> str:
    efdt, rule = found.best_grace(name, "EFDT"), found.same_time(name)
    if efdt is None or rule is None:
        return "no run of both"
    return f"EFDT {f1(efdt):.2f}, the rule in the same time (ε = {rule['value']:g}) {f1(rule):.2f}"


def peers(found: Found) -> Iterator[str]:
    """Compare MOA of today with what is printed of it, and with the rule."""
    for learner in PEERS:
        higher: list[str] = []
        lower: list[str] = []
        for name in _here(found):
            record = found.best_grace(name, learner)
            if record is not None:
                printed = TABLE_5[name].hat if learner == "HAT" else TABLE_5[name].efdt
                text = f"{found.name(name)} {f1(record):.2f} for {printed:.2f}"
                (higher if f1(record) > printed else lower).append(text)
        if higher or lower:
            yield (
                f"MOA's {learner} of today scores higher than printed on {len(higher)} of "
                f"{len(higher) + len(lower)} sets ({'; '.join(higher + lower)})."
            )
        else:
            yield f"MOA was not run here, so there is nothing to say of {learner}."
    yield from _consistently(found)


def _consistently(found: Found) -> Iterator[str]:
    pairs = {
        name: (f1(rule), f1(efdt))
        for name in _here(found)
        if (rule := found.same_time(name)) and (efdt := found.best_grace(name, "EFDT"))
    }
    if pairs:
        won = [name for name, (rule, efdt) in pairs.items() if rule > efdt]
        verdict = "holds" if len(won) == len(pairs) else "does not hold"
        yield (
            f'"Outperforms consistently EFDT" in the same time (Table 2) {verdict} here: the rule '
            f"is ahead on {len(won)} of {len(pairs)} sets{_listed(won)}."
        )
    triples = {
        name: (f1(rule), max(f1(record) for record in moa))
        for name in _here(found)
        if (rule := found.incremental(name, "paper", EPSILON))
        and (moa := [*found.graces(name, "EFDT"), *found.graces(name, "HAT")])
    }
    if triples:
        won = [name for name, (rule, moa_f1) in triples.items() if rule > moa_f1]
        yield (
            f"At ε = 0.5 (Table 5) the rule is ahead of both on {len(won)} of {len(triples)} sets"
            f"{_listed(won)}. Both label with naive Bayes in the leaves, the rule with the "
            "majority of the leaf."
        )


def baselines(found: Found) -> Iterator[str]:
    """Say what the simplest answers are worth, and what the certified rule is."""
    beaten = {}
    for name in _here(found):
        simple = found.incremental(name, "no change")
        trees = [
            record
            for job, record in found.records.items()
            if job.data == name
            and job.stream == "incremental"
            and job.learner not in {"no change", "majority"}
        ]
        if simple and trees and f1(simple) > max(map(f1, trees)):
            beaten[name] = f"{found.name(name)} ({f1(simple):.2f})"
    yield (
        f"To repeat the previous label beats every tree of the incremental model on {len(beaten)} "
        f"of {len(_here(found))} sets{_listed(beaten.values())}. Where it does, labels come in "
        "runs, and a high F1 alone says little about a tree."
    )
    yield from _simple_with_deletions(found)
    for beta in BETAS:
        yield from _certified(found, beta)
    yield from _against_refits(found)
    yield from _own_window(found)


def _own_window(found: Found) -> Iterator[str]:
    """Compare the tree that finds its own window with the best of all others."""
    ahead, behind = [], []
    for name in _here(found):
        ours = found.incremental(name, "adaptive", depth=None)
        others = [
            (f1(record), str(job.learner))
            for job, record in found.records.items()
            if job.data == name and job.stream == "incremental" and job.learner != "adaptive"
        ]
        if ours is None or not others:
            continue
        best, learner = max(others)
        if f1(ours) > best:
            ahead.append(f"{found.name(name)} {f1(ours):.2f}")
        else:
            behind.append(f"{found.name(name)} {f1(ours):.2f}, {learner} {best:.2f}")
    if ahead or behind:
        yield (
            "The tree that finds its own window, with its defaults, is ahead of every other run of "
            f"the incremental model on {len(ahead)} of {len(ahead) + len(behind)} sets"
            f"{_listed(ahead)}; not on the others{_listed(behind)}."
        )


def _simple_with_deletions(found: Found) -> Iterator[str]:
    simple: tuple[Learner, Learner] = ("no change", "majority")
    for stream, model in (("window", "a window"), ("random", "random updates")):
        beaten = []
        for name in (name for name in FIGURE_SETS if name in found.sets):
            others = [
                f1(record)
                for job, record in found.records.items()
                if job.learner not in simple
                and job == dynamic(name, stream, job.learner, job.value)
            ]
            for learner in simple:
                record = found.get(dynamic(name, stream, learner))
                if record is not None and others and f1(record) > max(others):
                    beaten.append(f"{found.name(name)}: {learner} {f1(record):.2f}")
        sets = f"{len(beaten)} sets{_listed(beaten)}"
        yield f"With {model}, a simple answer beats every tree on {sets}."


def _certified(found: Found, beta: float) -> Iterator[str]:
    """Compare the certified rule with the paper's at its recommended ε, in the window."""
    pairs = _pairs(found, beta, 0.1)
    if pairs:
        ahead = sum(f1(ours) >= f1(rule) for ours, rule in pairs)
        factors = sorted(ms_per_update(ours) / ms_per_update(rule) for ours, rule in pairs)
        yield (
            f"The certified rule with β = {beta:g}, which keeps a guarantee, has at least the F1 "
            f"of the paper's rule with ε = 0.1, which keeps none, in {ahead} of {len(pairs)} runs "
            f"with deletions, at {factors[0]:.2g} to {factors[-1]:.2g} times its time per update."
        )


def _pairs(found: Found, beta: float, epsilon: float) -> list[tuple[Record, Record]]:
    pairs = []
    for stream in ("window", "random"):
        for name in FIGURE_SETS:
            ours = found.get(dynamic(name, stream, "certified", beta))
            rule = found.get(dynamic(name, stream, "paper", epsilon))
            if ours is not None and rule is not None:
                pairs.append((ours, rule))
    return pairs


def _against_refits(found: Found) -> Iterator[str]:
    gaps = {
        name: f1(rule) - f1(fitted)
        for name in _here(found)
        if (rule := found.incremental(name, "paper", EPSILON))
        and (fitted := found.incremental(name, "scikit-learn", EPSILON))
    }
    if gaps:
        listed = ", ".join(f"{found.name(name)} {gap:+.2f}" for name, gap in gaps.items())
        yield (
            "scikit-learn, fitted anew on the schedule that the rule has at its root (ε = 0.5), "
            "has no repairs below the root, and takes categories for numbers. The rule against "
            f"it, in points of F1: {listed}."
        )


def curves(found: Found) -> Iterator[str]:
    """Check what the text says about the figures."""
    for name in MAIN:
        curve = {point[0]: point[1:] for point in points(found, "window", name, "paper")}
        if not {0.0, 0.1, 1.0} <= set(curve):
            continue
        (exact, slow), (near, middle), (loose, fast) = (curve[x] for x in (0.0, 0.1, 1.0))
        said = "much more stable" if name.startswith("INSECTS") else "a fall by roughly 10 points"
        yield (
            f"{found.name(name)}, window: from ε = 0 to ε = 1 F1 goes from {exact:.1f} to "
            f"{loose:.1f} (said: {said}), and an update is {slow / fast:.0f} times as fast (said: "
            f"three orders of magnitude, for Electricity and Poker). At ε = 0.1 F1 is {near:.1f} "
            f"and an update {slow / middle:.0f} times as fast as at ε = 0, {middle:.2g} ms (said: "
            "F1 close to that of ε = 0, about 0.5 ms)."
        )
    for stream in ("window", "random"):
        falls = []
        for name in FIGURE_SETS:
            found_times = [point[2] for point in points(found, stream, name, "paper")]
            if len(found_times) > 1 and found_times[-1]:
                falls.append(found_times[0] / found_times[-1])
        if falls:
            yield (
                f"{'Window' if stream == 'window' else 'Random updates'}, all sets: an update with "
                f"the largest ε is {min(falls):.0f} to {max(falls):.0f} times as fast as with "
                "ε = 0."
            )


def times(found: Found) -> Iterator[str]:
    """Compare ratios."""
    yield (
        "Seconds were taken on this machine, two runs side by side; other load shows in them. Only "
        "ratios within this run mean something beside the paper's."
    )
    for name in _here(found):
        efdt, rule = found.best_grace(name, "EFDT"), found.incremental(name, "paper", EPSILON)
        if efdt is not None and rule is not None:
            printed = TABLE_4[name].efdt / TABLE_4[name].tree
            yield (
                f"{found.name(name)}: EFDT took {seconds(efdt) / seconds(rule):.1f} times as long "
                f"as the rule with ε = 0.5; printed {printed:.2f} times."
            )


def _here(found: Found) -> list[str]:
    """Name the sets that are in the paper and here."""
    return [name for name in TABLE_SETS if name in found.sets and name in TABLE_5]


def _listed(names: Iterable[str]) -> str:
    text = ", ".join(names)
    return f" ({text})" if text else ""
