"""What speed is measured on: the paper's sets where they are, a synthetic stream elsewhere.

The sets are looked for in the folder that EVERTREE_DATA names, else in ../shared/data beside the
project. They are never part of the project.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

FOLDER = Path(
    os.environ.get("EVERTREE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)
FILES = {
    "Electricity": "electricity",
    "Weather": "weather",
    "INSECTS": "insects_incremental_gradual_balanced",
    "Poker (surrogate)": "poker_lsn_surrogate",
    "Poker (subset)": "poker_uci_subset_lsn",
    "KDD99": "kddcup99_10pct",
    "Covertype": "covtype",
}
# Label 1 of the paper's experiments: the majority class, or the male insects.
POSITIVE = {
    "Electricity": {"DOWN"},
    "Weather": {"1"},
    "INSECTS": {"3", "5", "12"},
    "Poker (surrogate)": {"0"},
    "Poker (subset)": {"0"},
    "KDD99": {"smurf."},
    "Covertype": {"2"},
}


@dataclass(frozen=True)
class Data:
    """Rows in their own order; `y` has all classes, `positive` the paper's two."""

    name: str
    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.int64]
    positive: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.X)

    @property
    def n_features(self) -> int:
        """How many numbers a row has."""
        return int(self.X.shape[1])

    def first(self, n: int) -> Data:
        """Return the first n rows, or all where there are fewer."""
        return Data(self.name, self.X[:n], self.y[:n], self.positive[:n])


def load(name: str) -> Data:
    """Read one set, categories as codes."""
    import pandas as pd  # noqa: PLC0415 - only where the files are

    frame = pd.read_parquet(FOLDER / f"{FILES[name]}.parquet")
    label = frame.pop("label")
    columns = [
        column.cat.codes if isinstance(column.dtype, pd.CategoricalDtype) else column
        for _, column in frame.items()
    ]
    X = np.ascontiguousarray(np.column_stack(columns), dtype=np.float64)
    y = pd.factorize(label)[0].astype(np.int64)
    return Data(name, X, y, label.astype(str).isin(POSITIVE[name]).to_numpy())


def available(*names: str, quick: bool = False) -> Iterator[Data]:
    """Yield those of the sets that are here, one at a time; the synthetic stream if none is."""
    found = [] if quick else [n for n in names if (FOLDER / f"{FILES[n]}.parquet").exists()]
    yield from map(load, found)
    if not found:
        yield synthetic(4_000 if quick else 40_000)


# --- made rows


def synthetic(n: int, d: int = 8, *, drifts: bool = True, seed: int = 0) -> Data:
    """Make a stream of two classes as one table."""
    X, positive = (np.concatenate(parts) for parts in zip(*chunks(n, d, drifts, seed), strict=True))
    return Data("synthetic", X, positive.astype(np.int64), positive)


def chunks(
    n: int, d: int, drifts: bool, seed: int = 0
) -> Iterator[tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]]:
    """Make the same stream a thousand rows at a time, for those who must not hold it whole.

    Noise blurs the border between the classes; where it drifts, the direction that separates them
    makes half a turn in n rows.
    """
    random = np.random.default_rng(seed)
    for start in range(0, n, 1000):
        X = random.normal(size=(min(1000, n - start), d))
        angle = np.pi * np.arange(start, start + len(X)) / n if drifts else np.full(len(X), 0.7)
        border = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle)
        yield X, border > random.normal(0, 0.3, len(X))


# --- for programs in other languages


def write_stream(
    path: Path,
    X: npt.NDArray[np.float64],
    y: npt.NDArray[np.int64] | npt.NDArray[np.bool_],
    categories: Sequence[int] = (),
) -> None:
    """Write a stream as plain little-endian numbers of eight bytes, whole numbers and float64.

    rows n · features d · classes · for each feature its number of categories (0: it is a number) ·
    X, row after row · y, as 0 ... classes - 1. `categories` may be left out if all are numbers.
    """
    kinds = np.array(categories or [0] * X.shape[1])
    head = np.concatenate([[*X.shape, int(y.max()) + 1], kinds])
    with path.open("wb") as file:
        file.write(head.astype("<i8").tobytes())
        file.write(X.astype("<f8", copy=False).data)
        file.write(y.astype("<i8").data)
