"""The report of a run: one HTML file with its pictures inside; no script, no font, no network."""

from __future__ import annotations

import html
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evertree
from evertree.adaptive import AdaptiveTree
from evertree.encoding import Encoder
from evertree.evaluate import NO_ANSWER, Audit, Result, plot
from evertree.extras import load

if TYPE_CHECKING:
    from evertree.streams import Source
    from evertree.tree import EverTree

_CLASSES = 12  # a confusion matrix of more is no picture any more

_STYLE = """
:root { color-scheme: light; --ink: #1c2a33; --soft: #5c6b75; --line: #dfe5e8; --accent: #1f6f8b; }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 62rem; color: var(--ink);
       font: 16px/1.5 system-ui, sans-serif; background: #fff }
h1 { font-size: 1.7rem; margin: 0 } h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem }
p.about { color: var(--soft); margin: .25rem 0 1.5rem }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem }
.tile { border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem }
.tile b { display: block; font-size: 1.45rem; line-height: 1.2; color: var(--accent) }
.tile span { color: var(--soft); font-size: .85rem }
.good b { color: #2e7d4f } .bad b { color: #b03a2e }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .4rem .7rem; text-align: right; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { text-align: left }
th { color: var(--soft); font-weight: 600; font-size: .85rem }
tr.ours td { font-weight: 600; background: #f2f8fa }
.wide { overflow-x: auto } svg { width: 100%; height: auto }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem }
"""


def write_report(
    path: Path,
    results: list[Result],
    audit: Audit,
    tree: EverTree,
    source: Source,
    columns: str,
) -> None:
    """Write the report of a run; the first result is the tree's. Needs matplotlib.

    `columns` says what was understood of the source.
    """
    ours = results[0]
    about = (
        f"{ours.stream} · {source.n_features} features · {ours.examples:,} rows judged, each "
        "before it was learned"
    )
    if isinstance(tree, AdaptiveTree):
        about += f" · window: auto, now {window_in_words(tree.window)}"
    sections = [
        f"<h1>{_text(source.name)}</h1>",
        f'<p class="about">{_text(about)}</p>',
        _tiles(ours, audit, tree),
        f"<h2>Over time: {_text(_f1_name(ours))}, and the cost of an update</h2>",
        _svg(plot(results)),
        "<h2>All models</h2>",
        _comparison(results),
        "<h2>The tree over time</h2>",
        _svg(_draw_tree(ours)),
        "<h2>Which label was taken for which</h2>",
        _confusion(ours),
        _candidates(tree) if isinstance(tree, AdaptiveTree) else "",
        "<h2>What was read</h2>",
        f"<p>{_text(columns)}</p>",
        _breaches(ours, audit),
        _footer(tree),
    ]
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>evertree · {_text(source.name)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(sections)
        + "\n</body></html>\n"
    )
    path.write_text(page, encoding="utf-8")


def _footer(tree: EverTree) -> str:
    limits = tree.limits
    return (
        f"<footer>evertree {evertree.__version__}: max_gap {limits.max_gap}, min_impurity "
        f"{limits.min_impurity}, max_depth {limits.max_depth or 'without limit'}. "
        "Times are of the models' own calls, on the machine that ran them.</footer>"
    )


def _tiles(ours: Result, audit: Audit, tree: EverTree) -> str:
    stats = tree.stats()
    audits = len(ours.audits) + 1
    gap = max([audit.worst_gap, *(found.worst_gap for found in ours.audits)])
    good = audit.ok and all(found.ok for found in ours.audits)
    tiles = [
        ("", f"{ours.scores.score:.1%}", _f1_name(ours)),
        ("", f"{ours.accuracy:.1%}", "accuracy"),
        ("", f"{ours.kappa:.3f}", "Cohen's kappa"),
        ("", f"{ours.learn_us:.1f} µs", "per update"),
        ("", f"{ours.label_us:.2f} µs", "per label"),
        ("", f"{len(tree):,}", "active rows"),
        ("", f"{stats['nodes']:,}", f"nodes, depth {stats['depth']}"),
        ("", f"{stats['rebuilds']:,}", f"rebuilds of {stats['rows_rebuilt']:,} rows"),
        (
            "good" if good else "bad",
            "certified" if good else "BROKEN",
            f"worst gap {gap:.4f} of {tree.limits.max_gap} in {audits} audits",
        ),
    ]
    return (
        '<div class="tiles">'
        + "".join(
            f'<div class="tile {kind}"><b>{_text(value)}</b><span>{_text(title)}</span></div>'
            for kind, value, title in tiles
        )
        + "</div>"
    )


def _comparison(results: list[Result]) -> str:
    rows = [
        [
            result.name,
            f"{result.scores.score:.4f}",
            f"{result.accuracy:.4f}",
            f"{result.kappa:.4f}",
            f"{result.learn_us_per_example:.2f}",
            f"{result.label_us:.2f}",
        ]
        for result in results
    ]
    head = ["model", _f1_name(results[0]), "accuracy", "kappa", "µs to learn a row", "to label it"]
    return _table(head, rows, "ours")


def _confusion(ours: Result) -> str:
    seen = ours.confusion.labels()
    labels = [seen[place] for place in Encoder(1).order(seen)]
    if len(labels) > _CLASSES:
        return f"<p>{len(labels)} labels: too many for a table; they are in the JSON.</p>"
    answers = [*labels, NO_ANSWER]
    counts = ours.confusion.counts
    rows = [
        [f"was {label}", *(f"{counts[label, answer]:,}" for answer in answers)] for label in labels
    ]
    return _table(["", *(f"said {label}" for label in labels), "no answer"], rows)


def _candidates(tree: AdaptiveTree) -> str:
    rows = [
        [
            window_in_words(one.window),
            "no limit" if one.max_depth is None else str(one.max_depth),
            f"{one.max_gap}",
            f"{one.accuracy:.1%}",
            f"{one.examples:,}",
            f"{one.nodes:,}",
            "answers" if one.answering else "awake" if one.awake else "rests",
        ]
        for one in tree.candidates()
    ]
    head = ["tree of", "max_depth", "max_gap", "accuracy of late", "examples", "nodes", "now"]
    return "<h2>The trees to choose from, as they are now</h2>" + _table(head, rows)


def _table(head: list[str], rows: list[list[str]], first: str = "") -> str:
    def line(tag: str, cells: list[str], kind: str = "") -> str:
        return (
            f'<tr class="{kind}">' + "".join(f"<{tag}>{_text(c)}</{tag}>" for c in cells) + "</tr>"
        )

    body = [line("td", row, first if number == 0 else "") for number, row in enumerate(rows)]
    return f'<div class="wide"><table>{line("th", head)}{"".join(body)}</table></div>'


def _breaches(ours: Result, audit: Audit) -> str:
    found = [*audit.breaches, *(text for each in ours.audits for text in each.breaches)]
    if not found:
        return ""
    items = "".join(f"<li>{_text(text)}</li>" for text in found[:20])
    return f"<h2>Breaches of the guarantee</h2><ul>{items}</ul>"


# --- pictures


def _draw_tree(ours: Result) -> Any:
    figure = load("matplotlib.figure", "cli", "--report").Figure(
        figsize=(9, 3), layout="constrained"
    )
    size, rebuilds = figure.subplots(1, 2)
    examples = [point.examples for point in ours.points]
    size.plot(examples, [point.active for point in ours.points], label="active rows")
    size.plot(examples, [point.stats["nodes"] for point in ours.points], label="nodes")
    size.legend(frameon=False, fontsize="small")
    rows = [point.stats["rows_rebuilt"] for point in ours.points]
    updates = [point.times.updates for point in ours.points]
    share = [
        (now - before) / max(count, 1)
        for before, now, count in zip(rows[:-1], rows[1:], updates[1:], strict=True)
    ]
    rebuilds.plot(examples[1:], share)
    rebuilds.set_ylabel("rows rebuilt per update")
    for axes in (size, rebuilds):
        axes.set_xlabel("examples")
        axes.grid(visible=True, alpha=0.3)
    return figure


def _svg(figure: Any) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    # Without the XML head: inside of HTML the picture begins with its own element.
    picture = text.getvalue()
    return picture[picture.index("<svg") :]


# --- words


def _text(value: object) -> str:
    return html.escape(str(value))


def window_in_words(window: int | None) -> str:
    """Say which rows a window holds.

    >>> window_in_words(1000)
    'the last 1,000 rows'
    """
    return "all rows" if window is None else f"the last {window:,} rows"


def _f1_name(result: Result) -> str:
    return "mean F1 of all labels" if result.positive is None else f"F1 of {result.positive}"
