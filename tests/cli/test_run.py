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
        (["--label", "nothing"], "--label nothing is not a column"),
        (["--label", "5"], "--label 5 is not a column: there are 5, day"),
        (
            ["--label", "bought", "--window", "auto", "--model", "random"],
            "--window does not go with --model random",
        ),
        (["--label", "bought", "--window", "7d"], "by --time"),
        (["--label", "bought", "--compare", "magic"], "'magic' is none of river, sklearn and moa"),
        (["--label", "bought", "--max-gap", "2"], r"--max-gap 2.0 is not in \(0, 1\]"),
        (["--label", "bought", "--first", "5000"], "left to be judged: choose a smaller --first$"),
        (
            ["--label", "bought", "--first", "5000", "--window", "auto"],
            "choose a smaller --first$",
        ),
        (["--label", "bought", "--window", "5000"], "choose a smaller --window$"),
        (["--label", "bought", "--first", "-1"], "--first -1 is no number of rows"),
        (["--label", "bought", "--drop", "day,a,b,c"], "--label bought, no --time, --drop day,a,b"),
        (["--label", "bought", "--categorical", "bought"], "--categorical bought is no feature"),
        (["--label", "bought", "--encoding", "klingon"], "--encoding klingon is not an encoding"),
        (["--label", "bought", "--delimiter", "ab"], "--delimiter ab is not one letter"),
        (["--label", "bought", "--delimiter", ";"], "delimiter may be another.*--delimiter ,"),
        (
            ["--label", "bought", "--positive", "bys"],
            "--positive bys is a label that no row of data.csv has: there are no, yes$",
        ),
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


@pytest.mark.parametrize("window", ["-5", "0", "7x", "1e3", "7 moons", "automatic"])
@pytest.mark.parametrize("time", [[], ["--time", "day"]])
def test_windows_that_are_none(data, capsys, window, time):
    assert run(data, "--label", "bought", *time, "--window", window) == 2
    says = f"--window {window} is none of a number of rows (1000), a time (7d, 12h) and auto\n"
    assert capsys.readouterr().err == f"evertree: {says}"


@pytest.mark.parametrize("option", ["--report", "--json"])
def test_what_cannot_be_written_is_refused_before_the_run(data, tmp_path, capsys, option):
    for place, says in (
        (tmp_path, "is a folder: name a file in it"),
        (tmp_path / "none" / "x", f"there is no folder {tmp_path / 'none'}"),
    ):
        assert run(data, "--label", "bought", option, place) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(f"evertree: {option} {place}")
        assert says in captured.err


def test_the_advice_of_readers_can_be_followed(tmp_path, capsys):
    data = tmp_path / "data.csv"
    rows = [f"{i % 7};{'Köln' if i % 7 > 3 else 'Ulm'}" for i in range(300)]
    data.write_bytes("\n".join(["a;y", *rows, "none;Ulm"]).encode("latin-1"))
    options = ["--label", "1", "--window", 50]
    for says, more in (
        ("delimiter may be another one, as in --delimiter ';'", ["--delimiter", ";"]),
        ("name the encoding of the file, as in --encoding latin-1", ["--encoding", "latin-1"]),
        ("name the column in --categorical, or name the text in --missing", ["--missing", "none"]),
    ):
        assert run(data, *options) == 2
        assert says in capsys.readouterr().err
        options += more
    assert run(data, *options) == 0
    assert "1.0000" in capsys.readouterr().out
    bare = tmp_path / "bare.tsv"
    bare.write_text("\n".join(f"{i % 7}\t{i % 7 > 3}" for i in range(300)))
    assert run(bare, "--names", "a,y", "--label", "y", "--delimiter", r"\t", "--window", 50) == 0


def test_options_that_a_file_has_no_use_for_are_refused(tmp_path, capsys):
    data = tmp_path / "data.arff"
    data.write_text("@relation r\n@attribute a real\n@attribute y {p,q}\n@data\n1,p\n")
    assert run(data, "--categorical", "nonexistent") == 2
    assert "--categorical does not go with data.arff" in capsys.readouterr().err
    assert run(tmp_path / "data.parquet", "--label", "y", "--encoding", "utf-8") == 2
    assert "--encoding does not go with data.parquet" in capsys.readouterr().err


def test_what_was_understood_is_said(tmp_path, capsys):
    data = tmp_path / "data.csv"
    lines = [
        f"2026-01-01T00:{i // 60:02d}:{i % 60:02d},{i % 5},{'abc'[i % 3]},{'pq'[i % 2]}"
        for i in range(300)
    ]
    data.write_text("\n".join(["when,n,city,y", *lines]))
    report = tmp_path / "out.html"
    assert run(data, "--label", "y", "--window", 100, "--report", report) == 0
    told, warned = capsys.readouterr().err.splitlines()
    understood = "when: category, 300 values · n: number · city: category, 3 values"
    assert told == f"evertree: columns, by the first 300 rows: {understood}"
    assert understood in report.read_text()
    assert "--drop when" in warned
    assert "--time when" in warned
    assert run(data, "--label", "y", "--window", 100, "--time", "when") == 0
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_positive_label_that_is_never_judged(tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_text(
        "a,y\n0,rare\n" + "".join(f"{1 + i % 7},{'pq'[i % 7 > 3]}\n" for i in range(200))
    )
    assert run(data, "--label", "y", "--window", 50, "--positive", "rare") == 0
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("evertree: --positive rare is a label of the first batch alone")


def test_the_report_of_a_tree_that_finds_its_window(data, tmp_path, capsys):
    report = tmp_path / "out.html"
    options = ["--label", "bought", "--drop", "day", "--window", "Auto", "--first", 300]
    assert run(data, *options, "--report", report) == 0
    window = re.search(r"window: (.*) answer now", capsys.readouterr().out)[1]
    text = report.read_text()
    assert f"window: auto, now {window}</p>" in text
    rows = re.findall(r"<tr[^>]*><td>((?:all|the last [\d,]+) rows)</td>.*?</tr>", text)
    assert rows == ["all rows"] * 2 + [f"the last {w} rows" for w in ("10,000", "1,000", "100")]
    assert text.count("<td>answers</td>") == 1


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
    assert shown[0].startswith("tree: rows judged 100 of about 500, F1 now")
    assert shown[-1].startswith("tree: rows judged 500 of about 500, F1 now")


@pytest.mark.parametrize("window", [["--window", "200"], ["--window", "7d", "--time", "day"]])
def test_progress_ends_at_the_end(data, monkeypatch, window):
    shares = []
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(view, "bar", lambda share: shares.append(share) or "")
    drop = [] if "--time" in window else ["--drop", "day"]
    assert run(data, "--label", "bought", *drop, *window) == 0
    assert shares[0] < 0.1
    assert shares[-1] == max(shares) == 1.0
