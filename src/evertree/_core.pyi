from collections.abc import Hashable
from typing import Final, final

import numpy as np
from numpy import typing as npt

from evertree.encoding import Encoder, Row

# Made by `make stubs` from the compiled module and bindings/stub.pat: change those.
#
# The compiled engine, as evertree.tree sees it. Answers are values and codes; words are found
# in Python. Every call is all or nothing, and safe from any thread.

@final
class Empty: ...

EMPTY: Final[Empty]  # the answer of a tree without examples

class Tree:
    def __init__(
        self,
        n_features: int,
        categorical: list[int],
        max_gap: float,
        min_impurity: float,
        min_samples_split: int,
        max_depth: int,  # -1: no limit
        epsilon: float,  # -1.0: the certified rule
        n_workers: int,
        encoder: Encoder,
    ) -> None: ...

    # The id; or -1: id in use, -2: no automatic id is left.
    def insert(self, x: Row, y: Hashable, id: int = -1) -> int: ...

    # False: not there.
    def delete_value(self, x: Row, y: Hashable) -> bool: ...
    def delete_id(self, id: int) -> bool: ...
    def replace(self, id: int, x: Row, y: Hashable) -> bool: ...

    # The ids; or p >= 0: ids[p] is in use, -2: no automatic ids are left.
    def insert_many(
        self, X: npt.NDArray[np.float64], y: list[Hashable], ids: npt.NDArray[np.int64] | None
    ) -> npt.NDArray[np.int64] | int: ...

    # -1; or the position of the first that is not there.
    def delete_many_values(self, X: npt.NDArray[np.float64], y: list[Hashable]) -> int: ...
    def delete_many_ids(self, ids: npt.NDArray[np.int64]) -> int: ...
    def label(self, x: Row) -> Hashable | Empty: ...

    # The label of row r is labels[codes[r]]. None: a value is infinite.
    def label_many(
        self, X: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.int32], list[Hashable]] | Empty | None: ...
    def label_counts(self, x: Row) -> dict[Hashable, int] | Empty: ...

    # breaches, worst gap, its node or -1, number of nodes
    def certify(self) -> tuple[list[str], float, int, int]: ...
    def rebuild(self) -> None: ...

    # canonical bytes of the tree, active labels in the order of ties
    def structure(self) -> tuple[bytes, list[Hashable]]: ...

    # parent, depth, feature, value, kind (0 leaf, 1 real, 2 categorical), missing_left, left,
    # right, counts
    def nodes(
        self,
    ) -> list[tuple[int, int, int, float, int, bool, int, int, dict[Hashable, int]]]: ...
    def stats(self) -> dict[str, int]: ...
    def size(self) -> int: ...
    def contains(self, id: int) -> bool: ...
    def example(self, id: int) -> tuple[npt.NDArray[np.float64], Hashable] | None: ...
