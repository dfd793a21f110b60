"""Where the paper's sets come from: any folder, any format, or a server; checked every time."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evertree.errors import InvalidFile
from experiments import data
from experiments.data import DataSet, File, NotHere, checksum, download, folders, load, read

FRAME = pd.DataFrame(
    {
        "day": [1, 2, 7, 1, 3],
        "kind": ["tcp", "udp", "tcp", "icmp", "udp"],
        "price": [0.1, 0.25, -0.0, 3.5, 1e-3],
        "label": ["UP", "DOWN", "UP", "UP", "DOWN"],
    }
)
ARFF = """@relation little
@attribute day {1,2,3,4,5,6,7}
@attribute kind {tcp,udp,icmp}
@attribute price real
@attribute class {UP,DOWN}
@data
1,tcp,0.1,UP
2,udp,0.25,DOWN
7,tcp,-0.0,UP
1,icmp,3.5,UP
3,udp,0.001,DOWN
"""


def a_set(**changes):
    plain = DataSet("Little", frozenset({"UP"}), 3, (File("little", "?"),), categorical=(1,))
    sha256 = checksum(data.of_frame(plain, FRAME))
    return replace(plain, files=(replace(File("little", sha256), **changes),))


def write(kind, folder, stem="little"):
    path = folder / f"{stem}.{kind}"
    if kind == "parquet":
        FRAME.astype({"price": np.float32, "kind": "category"}).to_parquet(path)
    elif kind == "csv":
        FRAME.to_csv(path, index=False)
    else:
        path.write_text(ARFF)
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv", "arff"])
def test_every_format_is_the_same_set(kind, tmp_path):
    write(kind, tmp_path)
    found = load(a_set(), [tmp_path])
    assert found.X.tolist() == pytest.approx(
        np.array([[1, 1, 0.1], [2, 2, 0.25], [7, 1, 0], [1, 0, 3.5], [3, 2, 0.001]]), rel=1e-6
    )
    assert found.y.tolist() == [True, False, True, True, False]
    assert found.categories == (0, 3, 0)
    assert found.categorical == [1]
    assert not np.signbit(found.X).any()


def test_the_first_folder_that_has_it_counts(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    path = write("csv", tmp_path / "b")
    assert data.find(a_set(), [tmp_path / "a", tmp_path / "b"])[1] == path
    path = write("parquet", tmp_path / "a")
    assert data.find(a_set(), [tmp_path / "a", tmp_path / "b"])[1] == path


def test_another_content_is_refused(tmp_path):
    changed = FRAME.copy()
    changed.loc[3, "price"] = 3.6
    changed.to_parquet(tmp_path / "little.parquet")
    with pytest.raises(InvalidFile, match=r"little.parquet is not Little as it is known here"):
        load(a_set(), [tmp_path])
    FRAME.drop(columns="day").to_parquet(tmp_path / "little.parquet")
    with pytest.raises(InvalidFile, match="has 2 columns before the label, Little has 3"):
        load(replace(a_set(), categorical=(0,)), [tmp_path])


def test_where_only_labels_are_known_they_are_checked(tmp_path):
    labels = checksum(data.of_frame(a_set(), FRAME), only_labels=True)
    dataset = a_set(sha256=labels, only_labels=True)
    changed = FRAME.assign(price=7.0)
    changed.to_parquet(tmp_path / "little.parquet")
    assert len(load(dataset, [tmp_path])) == 5
    changed.iloc[::-1].to_parquet(tmp_path / "little.parquet")
    with pytest.raises(InvalidFile, match="is not Little"):
        load(dataset, [tmp_path])


def test_what_is_nowhere_says_what_to_do(tmp_path, monkeypatch):
    with pytest.raises(NotHere, match=r"Little is not here.*Put it as little \(\.parquet"):
        load(a_set(), [tmp_path])
    with pytest.raises(NotHere, match=r"poker-lsn.arff of MOA's data sets"):
        load(data.SETS["Poker"], [tmp_path])
    monkeypatch.setenv("EVERTREE_DATA", str(tmp_path / "none"))
    with pytest.raises(NotHere, match="is not a folder"):
        folders()
    assert folders(tmp_path)[0] == tmp_path


@pytest.mark.parametrize("name", data.SETS)
def test_made_rows_have_the_shape_of_the_set(name):
    made = data.synthetic(data.SETS[name], 200)
    assert made.X.shape == (200, data.SETS[name].d)
    assert made.categorical == list(data.SETS[name].categorical)
    assert 20 < made.y.sum() < 180
    assert made.what == "synthetic"


@pytest.mark.parametrize("name", ["Electricity", "NOAA Weather", "INSECTS v2"])
def test_the_real_sets(name):
    """Load refuses what does not have the checksum; a part of it does not have it."""
    dataset = data.SETS[name]
    found = data.find(dataset, folders())
    if found is None:
        pytest.skip(f"{name} is not here (EVERTREE_DATA)")
    assert len(load(dataset, folders(), may_download=False)) > 18_000
    file, path = found
    table = read(dataset, path)
    with pytest.raises(InvalidFile):
        data.check(dataset, file, data.Table(table.columns, table.labels[:-1]), "a part")


# --- downloading, from a server on this machine


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve what is put into `pages`, as OpenML's and UCI's servers would."""
    pages: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = pages.get(self.path)
            self.send_response(404 if content is None else 200)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{serving.server_port}"
        monkeypatch.setattr(data, "OPENML", f"{address}/api/v1/json/data")
        monkeypatch.setattr(data, "DOWNLOADS", tmp_path / "downloads")
        try:
            yield address, pages
        finally:
            serving.shutdown()
            thread.join()


def packed(kind, content):
    if kind == "gz":
        return gzip.compress(content)
    if kind == "zip":
        file = BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("inside", content)
        return file.getvalue()
    return content


@pytest.mark.parametrize("kind", ["plain", "gz", "zip"])
def test_from_uci(kind, server, tmp_path):
    address, pages = server
    pages["/little.data"] = packed(kind, FRAME.to_csv(index=False, header=False).encode())
    dataset = a_set(address=f"{address}/little.data")
    found = load(dataset, [tmp_path])
    assert found.y.sum() == 3
    del pages["/little.data"]  # the second time it is found where it was kept
    again = load(dataset, [tmp_path, tmp_path / "downloads"])
    assert np.array_equal(again.X, found.X)


def test_from_openml(server, tmp_path):
    address, pages = server
    pages["/api/v1/json/data/151"] = json.dumps(
        {"data_set_description": {"id": "151", "url": f"{address}/data/1/little.arff"}}
    ).encode()
    pages["/data/1/little.arff"] = ARFF.encode()
    assert load(a_set(address="openml:151"), [tmp_path]).categories == (0, 3, 0)
    assert [path.name for path in (tmp_path / "downloads").iterdir()] == ["little.parquet"]


def test_a_download_that_is_another_file_is_not_kept(server, tmp_path):
    address, pages = server
    pages["/little.data"] = FRAME.iloc[1:].to_csv(index=False, header=False).encode()
    with pytest.raises(InvalidFile, match=r"little\.data is not Little"):
        download(a_set(address=f"{address}/little.data"), tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("page", [None, b"no json", b"{}"])
def test_a_server_without_it_says_what_to_do(page, server, tmp_path):
    _, pages = server
    if page is not None:
        pages["/api/v1/json/data/151"] = page
    with pytest.raises(NotHere, match=r"openml:151 gave no file.*name that folder by --data"):
        load(a_set(address="openml:151"), [tmp_path])


def test_no_server(tmp_path):
    with pytest.raises(NotHere, match="gave no file"):
        load(a_set(address="http://127.0.0.1:1/little.data"), [tmp_path])


def test_nothing_downloaded_is_part_of_the_project():
    ignored = (Path(__file__).parents[2] / ".gitignore").read_text().splitlines()
    assert "build/" in ignored
    assert data.DOWNLOADS.parent.name == "build"
