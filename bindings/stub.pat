# What C++ calls an object, and Python knows better. `make stubs` puts it into the stub that nanobind
# makes of the compiled module; tests/packaging compares the result with what is checked in.

_core.__prefix__:
    # Made by `make stubs` from the compiled module and bindings/stub.pat: change those.
    #
    # The compiled engine, as evertree.tree sees it. Answers are values and codes; words are found
    # in Python. Every call is all or nothing, and safe from any thread.

EMPTY$:
    \from typing import Final, TypeAlias, final
    @final
    class Empty: ...

    EMPTY: Final[Empty]  # the answer of a tree without examples
    # breaches, worst gap, its node or -1, number of nodes
    Audit: TypeAlias = tuple[list[str], float, int, int]

Tree.__init__$:
    \from evertree.encoding import Encoder
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

(Tree|Panel)\.insert$:
    \from collections.abc import Hashable
    \from evertree.encoding import Row
    # The id; or -1: id in use, -2: no automatic id is left.
    def insert(self, x: Row, y: Hashable, id: int = -1) -> int: ...

(Tree|Panel)\.delete_value$:
    # False: not there.
    def delete_value(self, x: Row, y: Hashable) -> bool: ...

(Tree|Panel)\.replace$:
    def replace(self, id: int, x: Row, y: Hashable) -> bool: ...

(Tree|Panel)\.insert_many$:
    \import numpy as np
    \import numpy.typing as npt
    # The ids; or p >= 0: ids[p] is in use, -2: no automatic ids are left.
    def insert_many(
        self, X: npt.NDArray[np.float64], y: list[Hashable], ids: npt.NDArray[np.int64] | None
    ) -> npt.NDArray[np.int64] | int: ...

(Tree|Panel)\.delete_many_values$:
    # -1; or the position of the first that is not there.
    def delete_many_values(self, X: npt.NDArray[np.float64], y: list[Hashable]) -> int: ...

(Tree|Panel)\.delete_many_ids$:
    def delete_many_ids(self, ids: npt.NDArray[np.int64]) -> int: ...

(Tree|Panel)\.label$:
    def label(self, x: Row) -> Hashable | Empty: ...

(Tree|Panel)\.label_many$:
    # The label of row r is labels[codes[r]]. None: a value is infinite.
    def label_many(
        self, X: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.int32], list[Hashable]] | Empty | None: ...

(Tree|Panel)\.label_counts$:
    def label_counts(self, x: Row) -> dict[Hashable, int] | Empty: ...

Tree.certify$:
    # 0, for it is the only one, and its audit
    def certify(self) -> tuple[int, list[Audit]]: ...

Panel.__init__$:
    def __init__(
        self,
        n_features: int,
        categorical: list[int],
        # window (-1: all), max_gap, min_impurity, min_samples_split, max_depth (-1: no limit),
        # whether it may rest; the longest windows first
        candidates: list[tuple[int, float, float, int, int, bool]],
        n_workers: int,
        encoder: Encoder,
    ) -> None: ...

Panel.certify$:
    # which one answers; for each its audit, or None where it sleeps
    def certify(self) -> tuple[int, list[Audit | None]]: ...

Panel.candidates$:
    # awake, accuracy, examples, nodes
    def candidates(self) -> list[tuple[bool, float, int, int]]: ...

Panel.answers$:
    # EMPTY in the place of one that sleeps
    def answers(self, x: Row) -> list[Hashable | Empty]: ...

(Tree|Panel)\.structure$:
    # canonical bytes of the tree, active labels in the order of ties
    def structure(self) -> tuple[bytes, list[Hashable]]: ...

(Tree|Panel)\.nodes$:
    # parent, depth, feature, value, kind (0 leaf, 1 real, 2 categorical), missing_left, left,
    # right, counts
    def nodes(
        self,
    ) -> list[tuple[int, int, int, float, int, bool, int, int, dict[Hashable, int]]]: ...

(Tree|Panel)\.stats$:
    def stats(self) -> dict[str, int]: ...

(Tree|Panel)\.examples$:
    # ids, values row after row, labels: of all that are active, or of the tree that answers
    def examples(
        self, answering: bool
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], list[Hashable]]: ...

(Tree|Panel)\.example$:
    def example(self, id: int) -> tuple[npt.NDArray[np.float64], Hashable] | None: ...
