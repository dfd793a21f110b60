"""`evertree run`: what it says, what it writes, and how it refuses."""

from __future__ import annotations

import io
import json
import re
import sys
from html.parser import HTMLParser
from importlib.metadata import entry_points

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evertree.cli import main, view
from evertree.evaluate import prequential
from evertree.streams import from_arrays, incremental, sea
from evertree.tree import EverTree

ROWS = [(*example.x.tolist(), example.y) for example in sea(1_500, seed=1)]


@pytest.fixture
def data(tmp_path):
    lines = [
        f"2026-01-{1 + i // 50:02d},{a!r},{b!r},{c!r},{'yes' if y else 'no'}"
        for i, (a, b, c, y) in enumerate(ROWS)
    ]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["day,a,b,c,bought", *lines]) + "\n")
    return path


def run(*arguments):
    return main(["run", *map(str, arguments)])


def test_a_run_says_what_the_library_says(data, capsys):
    assert run(data, "--label", "bought", "--drop", "day", "--positive", "yes", "--first", 500) == 0
    source = from_arrays([row[:3] for row in ROWS], ["yes" if row[3] else "no" for row in ROWS])
    expected = prequential(incremental(500)(source), EverTree(3), positive="yes")
    out = capsys.readouterr().out
    line = next(line for line in out.splitlines() if line.startswith("evertree "))
    assert line.split()[1:4] == [
        f"{v:.4f}" for v in (expected.f1, expected.accuracy, expected.kappa)
    ]
    assert "1,500 active rows" in out
    assert "certificate: holds, worst gap" in out
    assert "no change" in out
    assert "majority class" in out


@pytest.mark.parametrize(
    ("options", "active"),
    [
        (["--window", "200"], "200 active rows"),
        (["--model", "window"], "1,000 active rows"),
        (["--window", "auto"], "1,500 active rows"),
        (["--model", "window", "--window", "7d", "--time", "day"], "350 active rows"),
        (["--model", "random", "--first", "300", "--seed", "3"], "active rows"),
        (
            ["--model", "incremental", "--first", "300", "--max-gap", "0.5", "--max-depth", "2"],
            "depth 2",
        ),
    ],
)
def test_models(data, capsys, options, active):
    drop = [] if "--time" in options else ["--drop", "day"]
    assert run(data, "--label", "bought", *drop, *options) == 0
    assert active in capsys.readouterr().out


def test_every_kind_of_file(data, tmp_path, capsys):
    arff = tmp_path / "data.arff"
    rows = [",".join(line.split(",")[1:]) for line in data.read_text().splitlines()[1:]]
    head = [
        "@relation r",
        *(f"@attribute {name} real" for name in "abc"),
        "@attribute y {yes,no}",
        "@data",
    ]
    arff.write_text("\n".join([*head, *rows]))
    tsv = tmp_path / "data.tsv"
    tsv.write_text("\n".join(["a,b,c,y", *rows]).replace(",", "\t"))
    parquet = tmp_path / "data.parquet"
    fields = [row.split(",") for row in rows]
    columns = {name: [float(row[j]) for row in fields] for j, name in enumerate("abc")}
    pq.write_table(pa.table({**columns, "y": [row[3] for row in fields]}), parquet)
    scores = set()
    for file, options in ((arff, []), (tsv, ["--label", "y"]), (parquet, ["--label", "y"])):
        assert run(file, *options, "--window", 300) == 0
        scores.add(tuple(capsys.readouterr().out.splitlines()[1].split()[:4]))
    assert len(scores) == 1


class Page(HTMLParser):
    """Whether every element is closed, and what a browser would fetch."""

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.tags = [], [], set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag != "meta":
            self.open.append(tag)
        self.fetched += [
            v for n, v in attributes if n in {"src", "href", "xlink:href"} and not v.startswith("#")
        ]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.getpos())


def test_the_report_is_one_file(data, tmp_path, capsys):
    report, result = tmp_path / "out.html", tmp_path / "out.json"
    code = run(
        data, "--label", "bought", "--drop", "day", "--positive", "yes", "--window", 200,
        "--compare", "sklearn", "--refit-every", 200, "--report", report, "--json", result,
    )  # fmt: skip
    assert code == 0
    text = report.read_text()
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.fetched == [], "nothing comes from elsewhere"
    assert not {"script", "link", "iframe"} & page.tags
    assert "url(http" not in text
    assert text.count("<svg") == 2
    f1 = json.loads(result.read_text())["f1"]
    assert f"<b>{f1:.1%}</b><span>F1 of yes</span>" in text
    assert "certified" in text
    assert "scikit-learn, refitted" in text
    assert re.search(r"was yes</td><td>[\d,]+</td><td>[\d,]+</td>", text)
    assert f"report: {report}" in capsys.readouterr().out


def test_names_in_a_report_are_text(tmp_path):
    data = tmp_path / "<b>.csv"
    data.write_text(
        "a,y\n" + "\n".join(f"{i % 7},{'<i>' if i % 7 > 3 else '&'}" for i in range(200))
    )
    assert run(data, "--label", "y", "--window", 50, "--report", tmp_path / "out.html") == 0
    text = (tmp_path / "out.html").read_text()
    assert "<i>" not in text
    assert "<b>.csv" not in text
    assert "said &lt;i&gt;" in text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "--label is missing"),
        (["--label", "nothing"], "label='nothing' is not a column"),
        (
            ["--label", "bought", "--window", "auto", "--model", "random"],
            "--window does not go with --model random",
        ),
        (["--label", "bought", "--window", "7 moons", "--time", "day"], "W='7 moons' is not"),
        (["--label", "bought", "--window", "7d"], "by --time"),
        (["--label", "bought", "--compare", "magic"], "'magic' is none of river, sklearn and moa"),
        (["--label", "bought", "--max-gap", "2"], r"max_gap=2.0 is not in \(0, 1\]"),
        (["--label", "bought", "--first", "5000"], "none was left to be judged"),
        (
            ["--label", "bought", "--window", "10", "--first", "5"],
            "--first does not go with a window",
        ),
        (["--label", "bought", "--model", "random", "--window", "5"], "--window does not go with"),
    ],
)
def test_errors_speak(data, capsys, options, says):
    assert run(data, *options) == 2
    assert re.search(says, capsys.readouterr().err)


def test_bad_files(tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_text("a,y\n1,p\noops,q\n")
    assert run(data, "--label", "y") == 2
    assert "line 3, column 1 (a): 'oops'" in capsys.readouterr().err
    assert run(tmp_path / "none.csv", "--label", "y") == 2
    assert "No such file" in capsys.readouterr().err
    assert run(tmp_path / "data.xlsx", "--label", "y") == 2
    assert "ends with none of" in capsys.readouterr().err


def test_labels_that_are_numbers_are_found_by_their_text(tmp_path, capsys):
    path = tmp_path / "data.parquet"
    pq.write_table(
        pa.table({"a": [i % 5 for i in range(300)], "y": [i % 5 > 2 for i in range(300)]}), path
    )
    assert run(path, "--label", "y", "--positive", "True", "--window", 50) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[1] == "1.0000"


def test_the_program_is_installed(capsys):
    (script,) = entry_points(group="console_scripts", name="evertree")
    with pytest.raises(SystemExit, match="0"):
        script.load()(["--version"])
    assert capsys.readouterr().out.startswith("evertree ")


# --- the view


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_live_view_shows_every_figure(data, monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert run(data, "--label", "bought", "--drop", "day", "--window", 200) == 0
    for figure in (
        "rows judged",
        "F1 now · overall",
        "active rows",
        "nodes",
        "rebuilds",
        "µs per update",
        "✓ worst gap",
        "progress",
    ):
        assert figure in terminal.getvalue(), figure


def test_without_rich_there_are_lines(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert isinstance(view.view_of("tree", 10), view.InPlace)
    monkeypatch.setitem(sys.modules, "rich.table", None)
    assert isinstance(view.view_of("tree", 10), view.Lines)


def test_lines_come_now_and_then(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(view, "_SECONDS", 0.0)
    lines = view.view_of("tree", 1_000)
    prequential(incremental(500)(sea(1_000)), EverTree(3), every=100, progress=lines.show)
    lines.end()
    shown = sys.stderr.getvalue().splitlines()
    assert len(shown) == 5
    assert shown[0].startswith("tree: rows judged 100 of about 1,000, F1 now")
