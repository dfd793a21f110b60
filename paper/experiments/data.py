"""The paper's data sets: found in a folder, or downloaded; checked, and never part of the project.

Looked for, in this order: in the folder that EVERTREE_DATA (or --data) names, in ../shared/data
beside the project, and in build/data, where downloads are kept. A folder may hold a set as
<file>.parquet, <file>.arff or <file>.csv with a line of names, the label in the last column. What
is in none of them is downloaded from OpenML or UCI, if it is there.

Every set is compared with its checksum before it is used. That is taken over the content (rows in
their order, numbers as float32, categories and labels as texts), so it is the same for every
format and every writer.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evertree.errors import EvertreeError, InvalidFile
from evertree.streams import read_arff

PROJECT = Path(__file__).resolve().parents[2]
DOWNLOADS = PROJECT / "build" / "data"
OPENML = "https://www.openml.org/api/v1/json/data"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
KINDS = (".parquet", ".arff", ".csv")

Column = npt.NDArray[Any]  # of float64, or of texts where it is a category


class NotHere(EvertreeError, FileNotFoundError):
    """A data set is in no folder, and cannot be downloaded."""


@dataclass(frozen=True)
class File:
    """One form in which a set may be there."""

    stem: str
    sha256: str  # of its content; where only the labels are known, of those
    only_labels: bool = False
    what: str = "real"
    address: str | None = None  # "openml:ID", or an address of UCI's


@dataclass(frozen=True)
class DataSet:
    """A set of Table 1, under the paper's name, and what is label 1 in it."""

    name: str
    positive: frozenset[str]
    d: int
    files: tuple[File, ...]  # the first that is there is taken
    categorical: tuple[int, ...] = ()


@dataclass(frozen=True)
class Data:
    """Rows in their own order; `y` is the paper's label 1; `categories`: how many; 0: a number."""

    name: str
    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.bool_]
    categories: tuple[int, ...]
    what: str

    def __len__(self) -> int:
        return len(self.X)

    @property
    def categorical(self) -> list[int]:
        """Which features are categories."""
        return [j for j, count in enumerate(self.categories) if count]

    def first(self, n: int | None) -> Data:
        """Give the first n rows, or all."""
        if n is None:
            return self
        # A copy, so that the rest need not be kept.
        return replace(self, X=self.X[:n].copy(), y=self.y[:n].copy())


@dataclass(frozen=True)
class Table:
    """What a file holds, before it is known which label is 1."""

    columns: list[Column]
    labels: list[str]


SETS = {
    each.name: each
    for each in (
        DataSet(
            "Electricity",
            frozenset({"DOWN"}),
            8,
            (
                File(
                    "electricity",
                    "6232258f19d6f451ba69116279eb4b6d7610be19df8434c5f4a8142e9ba48dbb",
                    address="openml:151",
                ),
            ),
        ),
        DataSet(
            "Forest Covertype",
            frozenset({"2"}),
            54,
            (
                File(
                    "covtype",
                    "84a2c6c1d2756f2ae4ca3b7653570aff49fb91bedcac259b6bf19adf8153fa1b",
                    address=f"{UCI}/covtype/covtype.data.gz",
                ),
            ),
        ),
        DataSet(
            "INSECTS v2",
            frozenset({"3", "5", "12"}),
            33,
            (
                File(
                    "insects_incremental_gradual_balanced",
                    "5cf2f55c638f09bdf72abcf979d90cc25bd1a626de3aebfea63fcf256f9cfbd8",
                ),
            ),
        ),
        DataSet(
            "KDDCUP99",
            frozenset({"smurf."}),
            41,
            (
                File(
                    "kddcup99_10pct",
                    "033a3674eb56a2f2541d897fea0f314a5f28071842cbe1274460680229d9756b",
                    address=f"{UCI}/kddcup99-mld/kddcup.data_10_percent.gz",
                ),
            ),
            categorical=(1, 2, 3),
        ),
        DataSet(
            "NOAA Weather",
            frozenset({"1"}),
            8,
            (File("weather", "cf35d0d5e0038d1580eb6847822e068a586a122251bc83a2e9d4a96951c16f78"),),
        ),
        DataSet(
            "Poker",
            frozenset({"0"}),
            10,
            (
                # MOA's own file. Its labels are known, and so its labels are what is checked.
                File(
                    "poker-lsn",
                    "558a6f3ebdf64b28ee8c182356384609af58b9f0bb6b941432ba0934e36a2c8b",
                    only_labels=True,
                ),
                File(
                    "poker_lsn_surrogate",
                    "d8b64c3e9e8316b73ef375a0a6f22d8d21de9d7e99e7596e8183f1fc82dafa2b",
                    what="surrogate",
                ),
            ),
        ),
        DataSet(
            "Poker, 98k real rows",
            frozenset({"0"}),
            10,
            (
                File(
                    "poker_uci_subset_lsn",
                    "ef32269b9daf5b15511892d2a76c1daefbca5fb3d5e8d1516f72af04fb93e559",
                    what="real, a part",
                ),
            ),
        ),
    )
}
HOW_TO_GET = {
    "INSECTS v2": "INSECTS-incremental-gradual (balanced, 24,150 rows) of the USP DS repository",
    "NOAA Weather": "the NOAA weather set of the streaming literature, 18,159 rows, labels 1 and 2",
    "Poker": "poker-lsn.arff of MOA's data sets",
}


# --- finding


def folders(named: Path | None = None) -> list[Path]:
    """Give the folders that are searched, in order."""
    chosen = named or (Path(os.environ["EVERTREE_DATA"]) if "EVERTREE_DATA" in os.environ else None)
    if chosen is not None and not chosen.is_dir():
        raise NotHere(f"{chosen} is not a folder: name the one with the data sets")
    return [*([chosen] if chosen else []), PROJECT.parent / "shared" / "data", DOWNLOADS]


def find(dataset: DataSet, places: list[Path]) -> tuple[File, Path] | None:
    """Find the file of a set."""
    for file in dataset.files:
        for folder in places:
            for kind in KINDS:
                path = folder / f"{file.stem}{kind}"
                if path.is_file():
                    return file, path
    return None


def load(dataset: DataSet, places: list[Path], *, may_download: bool = True) -> Data:
    """Read a set, from the first place that has it, and check it; else download it."""
    found = find(dataset, places)
    if found is None and may_download:
        found = download(dataset, DOWNLOADS)
    if found is None:
        raise _not_here(dataset, places, "it is in none of these folders")
    file, path = found
    table = read(dataset, path)
    check(dataset, file, table, str(path))
    return as_data(dataset, table, file.what)


def read(dataset: DataSet, path: Path) -> Table:
    """Read a file of any of the kinds."""
    if path.suffix == ".parquet":
        return of_frame(dataset, pd.read_parquet(path))
    if path.suffix == ".arff":
        return of_arff(dataset, path)
    return of_frame(dataset, pd.read_csv(path))


def of_frame(dataset: DataSet, frame: pd.DataFrame) -> Table:
    """Take a frame apart; its last column is the label."""
    columns = [_column(dataset, j, frame.iloc[:, j]) for j in range(frame.shape[1] - 1)]
    return Table(columns, [_text(label) for label in frame.iloc[:, -1]])


def of_arff(dataset: DataSet, path: Path) -> Table:
    """Read an ARFF file; nominal attributes that this set has as numbers become numbers."""
    source = read_arff(path)
    batches = list(source.batches())
    X = np.concatenate([batch.X for batch in batches])
    columns = []
    for j, name in enumerate(source.features):
        values: Any = X[:, j]
        if name in source.categories:
            texts = {code: text for text, code in source.categories[name].items()}
            values = [texts.get(code) for code in values.tolist()]
        columns.append(_column(dataset, j, pd.Series(values)))
    return Table(columns, [_text(label) for batch in batches for label in batch.y])


def _column(dataset: DataSet, j: int, values: pd.Series) -> Column:
    if j in dataset.categorical:
        return np.asarray(values.astype(str), dtype=object)
    return np.asarray(values.astype(np.float64)) + 0.0  # and no -0.0


def _text(label: Any) -> str:
    """Write a label as a text; 1.0 and 1 are one label."""
    if isinstance(label, (int, np.integer, float, np.floating)) and float(label).is_integer():
        return str(int(label))
    return str(label)


def as_data(dataset: DataSet, table: Table, what: str) -> Data:
    """Give categories numbers, in the order of their texts, and find the label 1."""
    columns, counts = [], []
    for values in table.columns:
        if values.dtype == object:
            texts, codes = np.unique(values.astype(str), return_inverse=True)
            columns.append(codes.astype(np.float64))
            counts.append(len(texts))
        else:
            columns.append(values)
            counts.append(0)
    y = np.array([label in dataset.positive for label in table.labels])
    X = np.ascontiguousarray(np.column_stack(columns))
    return Data(dataset.name, X, y, tuple(counts), what)


# --- checking


def checksum(table: Table, *, only_labels: bool = False) -> str:
    """Hash the content: the same for a CSV, an ARFF and a Parquet file of the same rows."""
    digest = hashlib.sha256()
    for values in [] if only_labels else table.columns:
        if values.dtype == object:
            digest.update("\n".join(values).encode())
        else:
            digest.update(values.astype("<f4").tobytes())
    digest.update("\n".join(table.labels).encode())
    return digest.hexdigest()


def check(dataset: DataSet, file: File, table: Table, where: str) -> None:
    """Refuse what is not the set that the results speak of."""
    if len(table.columns) != dataset.d:
        raise InvalidFile(
            f"{where} has {len(table.columns)} columns before the label, {dataset.name} has "
            f"{dataset.d}: it is another file"
        )
    found = checksum(table, only_labels=file.only_labels)
    if found != file.sha256:
        raise InvalidFile(
            f"{where} is not {dataset.name} as it is known here: the checksum of its "
            f"{len(table.labels):,} rows is {found[:12]}…, expected is {file.sha256[:12]}…; remove "
            "it to have it looked for elsewhere"
        )


# --- downloading


def download(dataset: DataSet, folder: Path) -> tuple[File, Path] | None:
    """Get a set from OpenML or UCI, check it, keep it as Parquet; None if neither has it."""
    file = next((file for file in dataset.files if file.address), None)
    if file is None or file.address is None:
        return None
    try:
        table = _download_table(dataset, file.address)
    except (urllib.error.URLError, TimeoutError, KeyError, json.JSONDecodeError) as error:
        raise _not_here(dataset, [folder], f"{file.address} gave no file ({error})") from error
    check(dataset, file, table, file.address)
    names = [f"x{j}" for j in range(dataset.d)]
    frame = pd.DataFrame(dict(zip(names, table.columns, strict=True)))
    frame["label"] = table.labels
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{file.stem}.parquet"
    # First beside it: an interrupted download leaves no half of a file under its name.
    frame.to_parquet(path.with_suffix(".part"))
    path.with_suffix(".part").rename(path)
    return file, path


def _download_table(dataset: DataSet, address: str) -> Table:
    source, _, number = address.partition(":")
    if source == "openml":
        about = json.loads(_get(f"{OPENML}/{number}"))
        content = _unpacked(_get(about["data_set_description"]["url"]))
        DOWNLOADS.mkdir(parents=True, exist_ok=True)
        path = DOWNLOADS / f"openml-{number}.arff"
        path.write_bytes(content)
        try:
            return of_arff(dataset, path)
        finally:
            path.unlink()
    return of_frame(dataset, pd.read_csv(io.BytesIO(_unpacked(_get(address))), header=None))


def _get(address: str) -> bytes:
    request = urllib.request.Request(address, headers={"User-Agent": "evertree-paper"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        content: bytes = answer.read()
    return content


def _unpacked(content: bytes) -> bytes:
    if content.startswith(b"\x1f\x8b"):
        return gzip.decompress(content)
    if content.startswith(b"PK\3\4"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.read(archive.namelist()[0])
    return content


def _not_here(dataset: DataSet, places: list[Path], why: str) -> NotHere:
    stems = " or ".join(file.stem for file in dataset.files)
    known = HOW_TO_GET.get(dataset.name)
    hint = f" It is {known}." if known else ""
    return NotHere(
        f"{dataset.name} is not here: {why}, looked in {', '.join(map(str, places))}.{hint} Put it "
        f"as {stems} (.parquet, .arff or .csv, the label last) into a folder and name that folder "
        "by --data or EVERTREE_DATA"
    )


# --- made rows


def synthetic(dataset: DataSet, n: int) -> Data:
    """Make rows of the same shape: for a look at the experiments where the set is not there."""
    rng = np.random.default_rng(sum(map(ord, dataset.name)))
    X = rng.normal(size=(n, dataset.d))
    counts = [5 if j in dataset.categorical else 0 for j in range(dataset.d)]
    for j in dataset.categorical:
        X[:, j] = rng.integers(0, counts[j], n)
    angle = np.pi * np.arange(n) / n
    border = X[:, 0] * np.cos(angle) + X[:, dataset.d - 1] * np.sin(angle)
    y = border > rng.normal(0, 0.3, n)
    return Data(dataset.name, X, y, tuple(counts), "synthetic")
