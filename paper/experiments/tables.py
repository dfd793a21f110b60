"""Tables 1 to 5: what is printed, what comes out here, and what the paper left out.

A cell without a number is a dash. F1 is in percent. "Rule" is the paper's tree (FuDyADT) as
evertree runs it; "certified" is evertree's own rule; "a window of its own" is AdaptiveTree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from experiments import published
from experiments.data import SETS, Data
from experiments.plan import BETAS, TABLE_SETS, WINDOW_DEPTHS, W, incremental, tuned_by_the_paper
from experiments.published import EPSILON, GRACE_PERIODS
from experiments.runs import Job, Learner, Record, best, f1, f1_of_the_other, seconds

NONE = "–"
PEERS: tuple[Learner, Learner] = ("HAT", "EFDT")


@dataclass(frozen=True)
class Block:
    """Rows of texts under a head."""

    head: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """Write it, the first column to the left and the others to the right."""
        rule = ["---", *["---:"] * (len(self.head) - 1)]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (self.head, rule, *self.rows))


@dataclass(frozen=True)
class Table:
    """A table of the paper: its own columns, those that it left out, and notes."""

    number: int
    title: str
    main: Block
    left_out: Block | None
    notes: list[str]

    def markdown(self) -> str:
        """Write it under a heading."""
        parts = [f"## Table {self.number}. {self.title}", "", self.main.markdown(), ""]
        if self.left_out is not None:
            parts += ["What the paper left out:", "", self.left_out.markdown(), ""]
        return "\n".join([*parts, *(f"- {note}" for note in self.notes), ""])


class Found:
    """The records, and the sets that they are of."""

    def __init__(self, records: dict[Job, Record], sets: dict[str, Data]) -> None:
        self.records = records
        self.sets = sets

    def get(self, job: Job) -> Record | None:
        """Give a record, or None if it was not run."""
        return self.records.get(job)

    def incremental(
        self, data: str, learner: Learner, value: float | None = None, depth: int | None = 10
    ) -> Record | None:
        """Give a record of the incremental model."""
        return self.get(incremental(data, learner, value, depth))

    def best_grace(self, data: str, learner: Learner) -> Record | None:
        """Give MOA's record with the best F1."""
        return best(self.graces(data, learner))

    def graces(self, data: str, learner: Learner) -> list[Record]:
        """Give MOA's records of all grace periods that were run."""
        records = [self.incremental(data, learner, grace) for grace in GRACE_PERIODS]
        return [record for record in records if record is not None]

    def same_time(self, data: str) -> Record | None:
        """Give the run with the smallest ε that took no longer than EFDT, as Table 2 was made."""
        efdt = self.best_grace(data, "EFDT")
        if efdt is None:
            return None
        quick = [
            record
            for job, record in self.records.items()
            if job == incremental(data, "paper", job.value) and seconds(record) <= seconds(efdt)
        ]
        return min(quick, key=lambda record: float(record["value"]), default=None)

    def tried(self) -> list[float]:
        """List the ε that were run on every set in the incremental model."""
        values = [
            {job.value for job in self.records if job == incremental(name, "paper", job.value)}
            for name in self.sets
        ]
        return sorted(value for value in set.intersection(*values) if value is not None)

    def in_window(self, data: str, depth: int) -> Record | None:
        """Give the run with ε = 0.5 over a window of 1,000, which is not the incremental model."""
        return self.get(Job(data, "window", W, "paper", EPSILON, depth))

    def table_sets(self) -> list[str]:
        """Name the rows of the tables: the paper's, and what is here besides."""
        return [*published.TABLE_1, *(name for name in TABLE_SETS if name not in published.TABLE_1)]

    def name(self, data: str) -> str:
        """Name a set as what it is here."""
        if data not in self.sets:
            return f"{data} (not here)"
        what = self.sets[data].what
        return data if what.startswith("real") else f"{data} ({what})"


def all_tables(found: Found) -> list[Table]:
    """Make the five tables."""
    return [table_1(found), table_2(found), table_3(found), table_4(found), table_5(found)]


# --- the five


def table_1(found: Found) -> Table:
    """Describe the sets."""
    rows = []
    for name in found.table_sets():
        printed = published.TABLE_1.get(name)
        cells = [f"{printed.d}", printed.examples, printed.class_1] if printed else [NONE] * 3
        rows.append([found.name(name), *cells, *_statistics(name, found.sets.get(name))])
    head = ["", "d, printed", "examples, printed", "class 1, printed"]
    block = Block([*head, "d", "examples", "class 1", "its share"], rows)
    left_out = Block(
        ["F1", "no change", "majority class"],
        [
            [found.name(name), *_cells(_simple(found, name), f1)]
            for name in found.table_sets()
            if name in found.sets
        ],
    )
    return Table(1, "Data sets", block, left_out, list(_notes_on_sets(found)))


def _statistics(name: str, data: Data | None) -> list[str]:
    if data is None:
        return [NONE] * 4
    positive = ", ".join(sorted(SETS[name].positive, key=lambda text: (len(text), text)))
    return [f"{data.X.shape[1]}", f"{len(data):,}", positive, f"{100 * data.y.mean():.2f} %"]


def _notes_on_sets(found: Found) -> Iterator[str]:
    yield (
        "Electricity: the text of the paper gives label 1 to the majority class, which is DOWN; "
        "its Table 1 says UP."
    )
    low = [
        name
        for name, data in found.sets.items()
        if name in published.TABLE_1 and f"{len(data) - 1:,}" == published.TABLE_1[name].examples
    ]
    if low:
        yield f"Printed one too low: the number of examples of {' and '.join(low)}."
    yield (
        "INSECTS v2 is taken to be the stream of 24,150 rows: it is the shortest of the five, and "
        "v2 has the shortest times in Table 4. The other four could not be had."
    )


def table_2(found: Found) -> Table:
    """EFDT and the paper's rule in the same time."""
    rows = []
    for name in found.table_sets():
        printed = published.TABLE_2.get(name)
        cells = [f"{value:.2f}" for value in printed] if printed else [NONE] * 5
        records = [
            found.best_grace(name, "EFDT"),
            found.incremental(name, "paper", _printed_epsilon(name)),
            found.same_time(name),
        ]
        efdt, as_printed, tuned = (_time_and_f1(record) for record in records)
        chosen = _epsilon_cell(found, records[2])
        rows.append([found.name(name), *cells, *efdt, *as_printed, chosen, *tuned])
    head = [
        "",
        *("EFDT s, printed", "EFDT F1, printed"),
        *("rule s, printed", "rule F1, printed", "ε, printed"),
        *("EFDT s", "EFDT F1"),
        *("rule s, printed ε", "rule F1, printed ε"),
        *("ε that takes no longer", "rule s", "rule F1"),
    ]
    return Table(
        2,
        "EFDT and the paper's tree in the same time: seconds and F1, incremental model",
        Block(head, rows),
        left_out(found, "F1; scikit-learn on the schedule of the printed ε", f1, _printed_epsilon),
        [
            _words(
                "The printed Electricity row repeats Covertype's F1 (83.64 and 90.33), so it is no",
                "target; Table 5 has 72.05 for EFDT on Electricity.",
            ),
            _words(
                "ε was tuned as in the paper, but among a few values",
                f"({', '.join(f'{value:g}' for value in found.tried())}): the smallest with which",
                "the rule took no longer than EFDT in this run; ≤: it is the smallest tried.",
            ),
        ],
    )


def table_3(found: Found) -> Table:
    """Compare grace periods."""
    rows = []
    for name in found.table_sets():
        printed = published.TABLE_3.get(name)
        cells = [NONE] * 2 if printed is None else [f"{printed.hat}", f"{printed.efdt}"]
        for learner in PEERS:
            chosen = found.best_grace(name, learner)
            cells.append(NONE if chosen is None else f"{chosen['value']:.0f}")
        for learner in PEERS:
            cells += _cells([found.incremental(name, learner, each) for each in GRACE_PERIODS], f1)
        rows.append([found.name(name), *cells])
    scores = [f"F1 of {name}, {grace}" for name in PEERS for grace in GRACE_PERIODS]
    return Table(
        3,
        "Grace periods with the best F1 (incremental model)",
        Block(["", "HAT, printed", "EFDT, printed", "HAT", "EFDT", *scores], rows),
        left_out(found, "F1; scikit-learn at ε = 0.5", f1),
        ["Of equal F1 the shortest grace period is named."],
    )


def table_4(found: Found) -> Table:
    """Total times."""
    rows = []
    for name in found.table_sets():
        printed = published.TABLE_4.get(name)
        cells = [NONE] * 4
        if printed is not None:
            cells = [*(f"{value:.2f}" for value in printed), _ratio(printed.efdt, printed.tree)]
        hat, efdt = found.best_grace(name, "HAT"), found.best_grace(name, "EFDT")
        rule = found.incremental(name, "paper", EPSILON)
        ratio = NONE if efdt is None or rule is None else _ratio(seconds(efdt), seconds(rule))
        rows.append([found.name(name), *cells, *_cells([hat, efdt, rule], seconds), ratio])
    head = [
        "",
        *("HAT, printed", "EFDT, printed", "rule, printed", "EFDT : rule, printed"),
        *("HAT", "EFDT", "rule", "EFDT : rule"),
    ]
    return Table(
        4,
        "Total times in seconds (incremental model, ε = 0.5)",
        Block(head, rows),
        left_out(found, "seconds; scikit-learn at ε = 0.5", seconds),
        [
            _words(
                "Seconds of this machine, two runs side by side: compare ratios within a row,",
                "never seconds across machines.",
            ),
            _words(
                "HAT and EFDT with the grace period of their best F1; one pass of a virtual",
                "machine that has just started, without its start and without reading the rows.",
            ),
            "scikit-learn answers in batches, between two fits, which flatters its time.",
        ],
    )


def table_5(found: Found) -> Table:
    """F1 scores."""
    rows = []
    for name in found.table_sets():
        printed = published.TABLE_5.get(name)
        cells = [f"{value:.2f}" for value in printed] if printed else [NONE] * 3
        records = [
            found.best_grace(name, "HAT"),
            found.best_grace(name, "EFDT"),
            found.incremental(name, "paper", EPSILON),
            found.incremental(name, "paper", EPSILON, depth=5),
            *(found.in_window(name, depth) for depth in WINDOW_DEPTHS),
        ]
        rows.append([found.name(name), *cells, *_cells(records, f1)])
        if name == "Electricity" and name in found.sets:
            up = _cells(records, f1_of_the_other)
            rows.append(["Electricity, UP as class 1", *cells, *up])
    head = [
        "",
        *("HAT, printed", "EFDT, printed", "rule, printed"),
        *("HAT", "EFDT", "rule, h = 10", "rule, h = 5"),
        *(f"rule, window 1,000, h = {depth}" for depth in WINDOW_DEPTHS),
    ]
    return Table(
        5,
        "F1 (incremental model, ε = 0.5)",
        Block(head, rows),
        left_out(found, "F1; scikit-learn at ε = 0.5", f1),
        [
            _words(
                "HAT and EFDT with the grace period of their best F1 (Table 3). Both label with",
                "naive Bayes in the leaves, the trees here with the majority of the leaf.",
            ),
            "The columns with a window are not the incremental model: they delete.",
            "Electricity, UP as class 1: the same answers, judged as Table 1 of the paper says.",
        ],
    )


# --- what the paper left out


def _simple(found: Found, name: str) -> list[Record | None]:
    return [found.incremental(name, "no change"), found.incremental(name, "majority")]


def left_out(
    found: Found,
    title: str,
    figure: Callable[[Record], float],
    epsilon_of: Callable[[str], float | None] = lambda _: EPSILON,
) -> Block:
    """Give the baselines of the incremental model, h = 10 unless it says otherwise."""
    head = [
        title,
        *("no change", "majority class", "scikit-learn refitted"),
        *(f"certified β = {beta:g}" for beta in BETAS),
        *("certified β = 0.1, any depth", "a window of its own"),
    ]
    rows = []
    for name in found.table_sets():
        if name in found.sets:
            records = [
                *_simple(found, name),
                found.incremental(name, "scikit-learn", epsilon_of(name)),
                *(found.incremental(name, "certified", beta) for beta in BETAS),
                found.incremental(name, "certified", 0.1, depth=None),
                found.incremental(name, "adaptive", depth=None),
            ]
            rows.append([found.name(name), *_cells(records, figure)])
    return Block(head, rows)


def _printed_epsilon(name: str) -> float | None:
    return None if name in published.MISSING else tuned_by_the_paper(name)


# --- cells


def _cells(records: list[Record | None], figure: Callable[[Record], float]) -> list[str]:
    return [NONE if record is None else f"{figure(record):.2f}" for record in records]


def _time_and_f1(record: Record | None) -> list[str]:
    return [*_cells([record], seconds), *_cells([record], f1)]


def _epsilon_cell(found: Found, record: Record | None) -> str:
    if record is None:
        return NONE
    return f"{'≤ ' if record['value'] == found.tried()[0] else ''}{record['value']:g}"


def _ratio(a: float, b: float) -> str:
    return f"{a / b:.2f}" if b else NONE


def _words(*lines: str) -> str:
    return " ".join(lines)
