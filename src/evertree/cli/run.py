"""`evertree run data.csv --label class`: follow a file, watch how well the tree does, compare.

Each example of the file is labelled before it is learned. What is shown on the way: how far it is,
F1 now and overall, active rows, nodes, rebuilds, time per update, and the certificate. At the end a
table of all models, and with --report one HTML file that needs nothing else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

from evertree.adaptive import AdaptiveTree
from evertree.cli.report import write_report
from evertree.cli.view import view_of
from evertree.encoding import show
from evertree.errors import InvalidParameter
from evertree.evaluate import (
    Audit,
    MajorityClass,
    MoaModel,
    NoChange,
    Refitted,
    Result,
    RiverModel,
    prequential,
)
from evertree.evaluate.moa import find_moa
from evertree.extras import load
from evertree.streams import (
    InputModel,
    Source,
    Stream,
    incremental,
    random_update,
    read_arff,
    read_csv,
    read_parquet,
    sliding_window,
)
from evertree.tree import EverTree

_FIRST = 1000
_WINDOW = "1000"
_AUTO = "auto"
_AUDITED_OFTEN = 20_000  # up to so many active rows an audit is quick enough to be made on the way


def add(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "run",
        help="follow a file: label each row, then learn it; show how well the tree does",
        description="Label each row of a file before it is learned, and show how well that goes.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("file", type=Path, help="a .csv, .tsv, .parquet or .arff file")
    parser.add_argument("--label", help="the column to predict (needed, but for .arff: the last)")
    parser.add_argument("--positive", help="the label whose F1 is shown; else the mean of all F1")
    parser.add_argument("--time", help="the column with the time of each row")
    parser.add_argument("--categorical", type=_names, help="columns that are categories: a,b,c")
    parser.add_argument("--drop", type=_names, default=[], help="columns to leave out: a,b,c")
    parser.add_argument(
        "--model",
        choices=["incremental", "window", "random"],
        help="what happens to rows: all stay, the last ones stay, or random ones are deleted "
        "(window, if --window is given, else incremental)",
    )
    parser.add_argument("--window", help="how much stays: rows (1000), time (7d, 12h) or auto")
    parser.add_argument("--first", type=int, help="rows built at once before the first is judged")
    parser.add_argument("--seed", type=int, default=0, help="of --model random")
    parser.add_argument("--max-gap", type=float, default=0.1, help="how far from the best split")
    parser.add_argument("--max-depth", type=int, help="how deep the tree may be (no limit)")
    parser.add_argument(
        "--compare", type=_names, default=[], help="other models to run: river,sklearn,moa"
    )
    parser.add_argument(
        "--refit-every", type=int, default=1000, help="updates between two fits of sklearn (1000)"
    )
    parser.add_argument("--report", type=Path, help="write an HTML report to this file")
    parser.add_argument("--json", type=Path, help="write the tree's result as JSON to this file")


def run(options: argparse.Namespace) -> int:
    """Do it."""
    if options.model == "window" and options.window is None:
        options.window = _WINDOW
    model = _input_model(options)
    others = {name: _peer(name, options) for name in options.compare}
    if options.report:
        load("matplotlib", "cli", "--report")  # missed now, and not after the whole run
    source = _open(options)
    stream = model(source)
    length = source.length or _rows_about(options.file)
    kind = AdaptiveTree if options.window == _AUTO else EverTree
    tree = kind(
        source.n_features,
        source.categorical,
        max_gap=options.max_gap,
        max_depth=options.max_depth,
    )
    positive = _positive(source, options.positive)
    models = {"evertree": tree, "no change": NoChange(), "majority class": MajorityClass()}
    for name, peer in others.items():
        models[_TITLES[name]] = peer(source)
    results = [
        _run_one(name, each, stream, length, positive, options) for name, each in models.items()
    ]
    certificate = tree.certify()
    audit = Audit(certificate.ok, certificate.worst_gap, certificate.breaches)
    _check_judged(results[0], source)
    _tell(results, audit, tree)
    if options.json:
        results[0].to_json(options.json)
    if options.report:
        write_report(options.report, results, audit, tree, source)
        sys.stdout.write(f"report: {options.report}\n")
    return 0 if audit.ok and all(found.ok for found in results[0].audits) else 1


# --- what was asked for


def _open(options: argparse.Namespace) -> Source:
    path: Path = options.file
    kind = path.suffix.lower()
    if kind == ".arff":
        label = -1 if options.label is None else options.label
        return read_arff(path, label, time=options.time, drop=options.drop)
    if kind not in {".csv", ".tsv", ".parquet"}:
        raise InvalidParameter(f"{path} ends with none of .csv, .tsv, .parquet and .arff")
    if options.label is None:
        raise InvalidParameter("--label is missing: name the column to predict")
    if kind == ".parquet":
        return read_parquet(
            path,
            options.label,
            time=options.time,
            drop=options.drop,
            categorical=options.categorical or (),
        )
    return read_csv(
        path,
        options.label,
        time=options.time,
        drop=options.drop,
        categorical="infer" if options.categorical is None else options.categorical,
        delimiter="\t" if kind == ".tsv" else ",",
    )


def _input_model(options: argparse.Namespace) -> InputModel:
    first = _FIRST if options.first is None else options.first
    kind = options.model or ("incremental" if options.window is None else "window")
    if kind == "window" and options.window == _AUTO:
        return incremental(first)  # the tree itself decides what still helps
    if kind == "window":
        if options.first is not None:
            raise InvalidParameter("--first does not go with a window: the first batch fills it")
        return sliding_window(_window(options.window, options.time))
    if options.window is not None:
        raise InvalidParameter(f"--window does not go with --model {kind}: use --model window")
    return incremental(first) if kind == "incremental" else random_update(0.5, options.seed, first)


def _window(text: str, time: str | None) -> int | str:
    if text.isdecimal():
        return int(text)
    if time is None:
        raise InvalidParameter(
            f"--window {text} is a time: name the column with the time of each row by --time"
        )
    return text


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _positive(source: Source, text: str | None) -> Hashable | None:
    """Find the label that the text names: labels of a file may be numbers or booleans."""
    if text is None:
        return None
    batch = next(source.batches(), None)
    for label in {} if batch is None else dict.fromkeys(batch.y):
        if str(label) == text:
            found: Hashable = label
            return found
    return text


def _rows_about(path: Path) -> int | None:
    """Count the lines of a text file: about as many rows, for the progress alone."""
    lines = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            lines += chunk.count(b"\n")
    return lines or None


# --- models to compare with

_TITLES = {
    "moa": "MOA EFDT",
    "river": "river HAT",
    "sklearn": "scikit-learn, refitted",
}


def _peer(name: str, options: argparse.Namespace) -> Callable[[Source], Any]:
    """Give a function that makes the model once the source is known. Unknown names are refused."""
    if name == "river":
        tree = load("river.tree", "river", "--compare river")
        # river's trees cannot forget: they go on with all they have seen, as they are meant to.
        return lambda source: RiverModel(
            tree.HoeffdingAdaptiveTreeClassifier(
                seed=0, nominal_attributes=list(source.categorical) or None
            ),
            deletions="ignore",
        )
    if name == "sklearn":
        sklearn_tree = load("sklearn.tree", "sklearn", "--compare sklearn")
        return lambda _: Refitted(
            sklearn_tree.DecisionTreeClassifier(random_state=0, max_depth=options.max_depth),
            every=options.refit_every,
        )
    if name == "moa":
        find_moa()  # before the tree has run for an hour
        return lambda source: MoaModel.of(source, "trees.EFDT", deletions="ignore")
    raise InvalidParameter(f"--compare {show(name)} is none of river, sklearn and moa")


# --- running, and telling


def _run_one(
    name: str,
    model: Any,
    stream: Stream,
    length: int | None,
    positive: Hashable | None,
    options: argparse.Namespace,
) -> Result:
    every = 500 if length is None else max(20, min(1000, length // 100))
    window = options.window or ""
    often = window.isdecimal() and int(window) <= _AUDITED_OFTEN
    audit_every = every * 5 if often and isinstance(model, EverTree) else None
    view = view_of(name, length)
    try:
        return prequential(
            stream,
            model,
            positive=positive,
            every=every,
            audit_every=audit_every,
            progress=view.show,
            name=name,
        )
    finally:
        view.end()


def _check_judged(result: Result, source: Source) -> None:
    if not result.examples:
        raise InvalidParameter(
            f"{source.name} has no more rows than the first batch, so none was left to be judged: "
            "choose a smaller --first or --window"
        )


def _tell(results: list[Result], audit: Audit, tree: EverTree) -> None:
    stats = tree.stats()
    say = sys.stdout.write
    say(f"{'':24} {'F1':>7} {'accuracy':>9} {'kappa':>7} {'µs to learn':>12} {'to label':>9}\n")
    for result in results:
        say(
            f"{result.name:24} {result.scores.score:7.4f} {result.accuracy:9.4f} "
            f"{result.kappa:7.4f} {result.learn_us_per_example:12.2f} {result.label_us:9.2f}\n"
        )
    say(
        f"evertree: {len(tree):,} active rows, {stats['nodes']:,} nodes, depth {stats['depth']}, "
        f"{stats['rebuilds']:,} rebuilds, {results[0].learn_us:.2f} µs per update\n"
        f"certificate: {'holds' if audit.ok else 'BROKEN'}, worst gap {audit.worst_gap:.4f} of "
        f"{tree.limits.max_gap} allowed\n"
    )
    if isinstance(tree, AdaptiveTree):
        say(f"window: {_in_words(tree.window)} answer now\n")
    for breach in audit.breaches[:3]:
        say(f"  {breach}\n")


def _in_words(window: int | None) -> str:
    return "all rows" if window is None else f"the last {window:,} rows"
