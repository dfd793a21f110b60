"""`evertree run data.csv --label class`: follow a file, watch how well the tree does, compare.

Each example of the file is labelled before it is learned. What is shown on the way: how far it is,
F1 now and overall, active rows, nodes, rebuilds, time per update, and the certificate. At the end a
table of all models, and with --report one HTML file that needs nothing else.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import warnings
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

from evertree.adaptive import AdaptiveTree
from evertree.cli.columns import Column, columns_of, in_one_line, warning_of
from evertree.cli.report import window_in_words, write_report
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
from evertree.streams.read_csv import MISSING
from evertree.tree import EverTree

_FIRST = 1000
_WINDOW = "1000"
_AUTO = "auto"
_SHOWN = 12  # labels in an error
_CSV = (".csv", ".tsv")
# Options that only some kinds of files need; the others say by themselves what these would.
_KINDS = {
    "categorical": (*_CSV, ".parquet"),
    "delimiter": _CSV,
    "encoding": (*_CSV, ".arff"),
    "missing": _CSV,
    "names": _CSV,
}
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
    parser.add_argument(
        "--label",
        help="the column to predict, by name or position from 0 (needed, but for .arff: the last)",
    )
    parser.add_argument("--positive", help="the label whose F1 is shown; else the mean of all F1")
    parser.add_argument("--time", help="the column with the time of each row")
    parser.add_argument("--categorical", type=_names, help="columns that are categories: a,b,c")
    parser.add_argument("--drop", type=_names, default=[], help="columns to leave out: a,b,c")
    parser.add_argument(
        "--missing",
        type=_names,
        help="texts that mean missing, beside the empty one, ?, NA and nan",
    )
    parser.add_argument("--delimiter", help="between the fields of a .csv file (,)")
    parser.add_argument("--encoding", help="of a text file (utf-8)")
    parser.add_argument("--names", type=_names, help="columns of a file without a header: a,b,c")
    parser.add_argument(
        "--model",
        choices=["incremental", "window", "random"],
        help="what happens to rows: all stay, the last ones stay, or random ones are deleted "
        "(window, if --window is given, else incremental)",
    )
    parser.add_argument("--window", help="how much stays: rows (1000), time (7d, 12h) or auto")
    parser.add_argument("--first", type=int, help="rows built at once before the first is judged")
    parser.add_argument("--seed", type=int, default=0, help="of --model random")
    parser.add_argument(
        "--max-gap",
        type=float,
        help="how far from the best split (0.1; with --window auto 0.2, and 0.3 in windows)",
    )
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
    if options.window is not None and options.window.lower() == _AUTO:
        options.window = _AUTO
    model = _input_model(options)
    _check_can_be_written(options.report, "--report")
    _check_can_be_written(options.json, "--json")
    others = {name: _peer(name, options) for name in options.compare}
    if options.report:
        load("matplotlib", "cli", "--report")  # missed now, and not after the whole run
    source = _open(options)
    first = next(source.batches(), None)
    columns = columns_of(source, first)
    rows = 0 if first is None else len(first.y)
    _tell_columns(columns, rows)
    stream = model(source)
    length = source.length or _rows_about(options.file, options.names)
    tree = _tree(source, options)
    positive = _positive(source, options.positive)
    models = {"evertree": tree, "no change": NoChange(), "majority class": MajorityClass()}
    for name, peer in others.items():
        models[_TITLES[name]] = peer(source)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="positive=")  # it is said below, once
        results = [
            _run_one(name, each, stream, length, positive, options) for name, each in models.items()
        ]
    certificate = tree.certify()
    audit = Audit(certificate.ok, certificate.worst_gap, certificate.breaches)
    _check_judged(results[0], source, options)
    _warn_of_positive(results[0])
    _tell(results, audit, tree)
    if options.json:
        results[0].to_json(options.json)
    if options.report:
        all_columns = in_one_line(columns, rows, shown=None)
        write_report(options.report, results, audit, tree, source, all_columns)
        sys.stdout.write(f"report: {options.report}\n")
    return 0 if audit.ok and all(found.ok for found in results[0].audits) else 1


# --- what was asked for


def _tree(source: Source, options: argparse.Namespace) -> EverTree:
    is_auto = options.window == _AUTO
    limits: dict[str, Any] = {"max_depth": options.max_depth}
    if options.max_gap is not None:
        limits["max_gap"] = options.max_gap
        if is_auto:  # whoever names a gap gets it in every tree
            limits["window_gap"] = options.max_gap
    kind = AdaptiveTree if is_auto else EverTree
    return kind(source.n_features, source.categorical, **limits)


def _open(options: argparse.Namespace) -> Source:
    path: Path = options.file
    kind = path.suffix.lower()
    if kind not in {*_CSV, ".parquet", ".arff"}:
        raise InvalidParameter(f"{path} ends with none of .csv, .tsv, .parquet and .arff")
    for name, kinds in _KINDS.items():
        if getattr(options, name) is not None and kind not in kinds:
            raise InvalidParameter(
                f"--{name} does not go with {path.name}: a {kind} file says that by itself"
            )
    if kind == ".arff":
        return read_arff(
            path,
            -1 if options.label is None else options.label,
            time=options.time,
            drop=options.drop,
            encoding=options.encoding or "utf-8",
        )
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
        missing=(*MISSING, *(options.missing or ())),
        names=options.names,
        delimiter=_delimiter(options.delimiter, kind),
        encoding=options.encoding or "utf-8",
    )


def _delimiter(text: str | None, kind: str) -> str:
    if text is None:
        return "\t" if kind == ".tsv" else ","
    return "\t" if text == r"\t" else text  # as one can type it


def _input_model(options: argparse.Namespace) -> InputModel:
    first = _FIRST if options.first is None else options.first
    if first < 0:
        raise InvalidParameter(f"--first {first} is no number of rows: it is 0 or more")
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
    window = int(text) if text.isdecimal() else text
    try:
        sliding_window(window)
    except InvalidParameter:
        raise InvalidParameter(
            f"--window {text} is none of a number of rows (1000), a time (7d, 12h) and auto"
        ) from None
    if isinstance(window, str) and time is None:
        raise InvalidParameter(
            f"--window {text} is a time: name the column with the time of each row by --time"
        )
    return window


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _positive(source: Source, text: str | None) -> Hashable | None:
    """Find the label that the text names: labels of a file may be numbers or booleans.

    Most often it is in the first batch; one that no row has costs a reading, and not a whole run.
    """
    if text is None:
        return None
    seen: dict[Hashable, None] = {}
    for batch in source.batches():
        new: dict[Hashable, None] = dict.fromkeys(label for label in batch.y if label not in seen)
        for label in new:
            if str(label) == text:
                return label
        seen |= new
    labels = ", ".join(str(label) for label in itertools.islice(seen, _SHOWN))
    raise InvalidParameter(
        f"--positive {text} is a label that no row of {source.name} has: there are "
        f"{labels or 'none'}{', ...' if len(seen) > _SHOWN else ''}"
    )


def _check_can_be_written(path: Path | None, option: str) -> None:
    if path is None:
        return
    if path.is_dir():
        raise InvalidParameter(f"{option} {path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise InvalidParameter(f"{option} {path}: there is no folder {path.parent}; make it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidParameter(f"{option} {path} may not be written: choose another place")


def _rows_about(path: Path, names: list[str] | None) -> int | None:
    """Count the lines of a text file below its head: about as many rows, for progress alone."""
    head = 0 if names else 1
    lines, end = 0, b"\n"
    with path.open("rb") as file:
        if path.suffix.lower() == ".arff":
            starts = (line.strip().lower().startswith(b"@data") for line in file)
            head = next((number for number, start in enumerate(starts, 1) if start), 0)
            file.seek(0)
        while chunk := file.read(1 << 20):
            lines += chunk.count(b"\n")
            end = chunk[-1:]
    return lines + (end != b"\n") - head or None


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


def _check_judged(result: Result, source: Source, options: argparse.Namespace) -> None:
    if not result.examples:
        smaller = "--first" if options.window in {None, _AUTO} else "--window"
        raise InvalidParameter(
            f"{source.name} has no more rows than the first batch, so none was left to be judged: "
            f"choose a smaller {smaller}"
        )


def _warn_of_positive(result: Result) -> None:
    if result.positive is not None and result.positive not in result.confusion.labels():
        _note(
            f"--positive {result.positive} is a label of the first batch alone: no row that was "
            "judged has it, so its F1 is 0"
        )


def _tell_columns(columns: list[Column], rows: int) -> None:
    _note(in_one_line(columns, rows))
    if warning := warning_of(columns):
        _note(warning)


def _note(text: str) -> None:
    sys.stderr.write(f"evertree: {text}\n")


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
        say(f"window: {window_in_words(tree.window)} answer now\n")
    for breach in audit.breaches[:3]:
        say(f"  {breach}\n")
