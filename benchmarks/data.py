"""What speed is measured on: the paper's sets where they are, a synthetic stream elsewhere.

The sets are looked for in the folder that EVERTREE_DATA names, else in ../shared/data beside the
project. They are never part of the project.
"""

from __future__ import annotations

import os
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
    "Poker": "poker_lsn_surrogate",
    "KDD99": "kddcup99_10pct",
    "Covertype": "covtype",
}
# Label 1 of the paper's experiments: the majority class, or the male insects.
POSITIVE = {
    "Electricity": {"DOWN"},
    "Weather": {"1"},
    "INSECTS": {"3", "5", "12"},
    "Poker": {"0"},
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


def synthetic(n: int = 40_000, d: int = 8, seed: int = 0) -> Data:
    """Make a drifting stream: the direction that separates the classes turns with time."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    angle = np.linspace(0, np.pi, n)
    positive = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle) > random.normal(0, 0.3, n)
    return Data("synthetic", X, positive.astype(np.int64), positive)


def available(*names: str) -> list[Data]:
    """Return those of the sets that are here, or the synthetic stream if none is."""
    found = [load(name) for name in names if (FOLDER / f"{FILES[name]}.parquet").exists()]
    return found or [synthetic()]
