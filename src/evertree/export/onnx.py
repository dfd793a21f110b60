"""Into ONNX: a TreeEnsembleRegressor of ONNX-ML for the shares, ArgMax and Gather for the label.

Not a TreeEnsembleClassifier: runtimes answer with the wrong label, or crash, where that one has one
or two classes, and what it does in a tie is nowhere written. ArgMax is: the first one wins, and the
labels stand in the order of ties.

Thresholds are float64 tensors, which need the operator set ai.onnx.ml 3.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from evertree.encoding import show
from evertree.errors import CannotExport, InvalidParameter
from evertree.export.large_codes import checked_category
from evertree.extras import load
from evertree.outline import Outline, is_missing

if TYPE_CHECKING:
    from evertree.tree import Node

_INT64 = range(-(2**63), 2**63)
_FLOAT32_WHOLE_BITS = 24  # float32 holds every whole number up to 2**24, and not the next one


def to_onnx(
    tree: Any,
    *,
    dtype: Literal["float64", "float32"] = "float64",
    labels: Literal["own", "position"] = "own",
) -> Any:
    """Make an onnx.ModelProto that answers as the tree does; needs `evertree[export]`.

    O(nodes · labels). Input `X` of shape (n, n_features), outputs `label` and `probabilities`, the
    shares of the labels in the order of `classes(tree)`, as float32. nan is a missing value. A text
    goes in as its code, `evertree.category_code(text)`; a moment or a duration as microseconds.

    With dtype="float64" every row of doubles takes the very path that it takes in the tree. With
    "float32", for runtimes that know no doubles, `X` is float32 and thresholds are rounded down to
    float32, which sends every float32 row the same way; rounding other rows to float32 beforehand
    may change their answer.

    ONNX answers with whole numbers or with texts. If the labels are neither, this raises
    CannotExport; labels="position" makes the model answer with positions in `classes(tree)`.

    >>> from evertree import EverTree
    >>> tree = EverTree(n_features=1)
    >>> ids = tree.insert_many([[31.0], [62.0]], ["yes", "no"])
    >>> from onnxruntime import InferenceSession
    >>> session = InferenceSession(to_onnx(tree).SerializeToString())
    >>> session.run(["label"], {"X": np.array([[70.0]])})
    [array(['no'], dtype=object)]
    """
    if dtype not in {"float64", "float32"}:
        raise InvalidParameter(f"dtype={show(dtype)} is neither 'float64' nor 'float32'")
    if labels not in {"own", "position"}:
        raise InvalidParameter(f"labels={show(labels)} is neither 'own' nor 'position'")
    onnx = load("onnx", "export", "to_onnx()")
    outline = Outline.of(tree)
    answers = list(range(len(outline.labels))) if labels == "position" else _answers(outline.labels)
    return _model(onnx, outline, answers, np.dtype(dtype))


def _answers(labels: tuple[Hashable, ...]) -> list[int] | list[bytes]:
    if all(type(label) is str for label in labels):
        return [_utf8(str(label)) for label in labels]
    numbers = [_whole(label) for label in labels]
    if None not in numbers:
        return [number for number in numbers if number is not None]
    odd = labels[numbers.index(None)]
    raise CannotExport(
        f"label {show(odd)} ({type(odd).__name__}): the labels of an ONNX model are either all "
        "texts or all whole numbers below 2**63; labels='position' answers with positions in "
        "evertree.export.classes(tree)"
    )


def _utf8(label: str) -> bytes:
    # onnxruntime ends a text at its first zero character.
    if "\0" in label or any("\ud800" <= character <= "\udfff" for character in label):
        raise CannotExport(
            f"label {show(label)} has a zero character or half a surrogate pair, which texts in "
            "ONNX cannot have; labels='position' answers with positions in "
            "evertree.export.classes(tree)"
        )
    return label.encode()


def _whole(label: Any) -> int | None:
    """Give the whole number that equals the label (1, 1.0 and True are one label), or None."""
    if isinstance(label, (bool, int)) or (isinstance(label, float) and label.is_integer()):
        number = int(label)
        return number if number in _INT64 else None
    return None


def _model(
    onnx: Any, outline: Outline, answers: list[int] | list[bytes], dtype: np.dtype[Any]
) -> Any:
    make, types = onnx.helper, onnx.TensorProto
    rows_type = types.DOUBLE if dtype == np.float64 else types.FLOAT
    label_type = types.STRING if isinstance(answers[0], bytes) else types.INT64
    n_labels = len(answers)
    steps = [
        make.make_node(
            "TreeEnsembleRegressor",
            ["X"],
            ["probabilities"],
            domain="ai.onnx.ml",
            **_ensemble(onnx, outline, dtype, rows_type),
        ),
        make.make_node("ArgMax", ["probabilities"], ["position"], axis=1, keepdims=0),
        make.make_node("Gather", ["labels", "position"], ["label"], axis=0),
    ]
    graph = make.make_graph(
        steps,
        "evertree",
        [make.make_tensor_value_info("X", rows_type, [None, outline.n_features])],
        [
            make.make_tensor_value_info("label", label_type, [None]),
            make.make_tensor_value_info("probabilities", types.FLOAT, [None, n_labels]),
        ],
        initializer=[make.make_tensor("labels", label_type, [n_labels], answers)],
    )
    opsets = [make.make_opsetid("", 13), make.make_opsetid("ai.onnx.ml", 3)]
    model = make.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="evertree")
    onnx.checker.check_model(model, full_check=True)
    return model


def _ensemble(onnx: Any, outline: Outline, dtype: np.dtype[Any], rows_type: int) -> dict[str, Any]:
    """Give the attributes of the one tree of the ensemble."""
    nodes, n_labels = outline.nodes, len(outline.labels)
    leaves = [node["id"] for node in nodes if node["feature"] is None]
    shares = _float32_shares(outline, leaves)

    branches = [_branch(node, nodes) for node in nodes]

    def tensor(name: str, values: npt.NDArray[Any]) -> Any:
        return onnx.helper.make_tensor(name, rows_type, [len(values)], values.astype(dtype))

    return {
        "n_targets": n_labels,
        "nodes_treeids": [0] * len(nodes),
        "nodes_nodeids": list(range(len(nodes))),
        "nodes_modes": [branch.mode for branch in branches],
        "nodes_featureids": [node["feature"] or 0 for node in nodes],
        "nodes_values_as_tensor": tensor("values", _values(outline, dtype)),
        "nodes_truenodeids": [branch.if_true for branch in branches],
        "nodes_falsenodeids": [branch.if_false for branch in branches],
        "nodes_missing_value_tracks_true": [int(branch.missing_is_true) for branch in branches],
        "target_treeids": [0] * shares.size,
        "target_nodeids": np.repeat(leaves, n_labels).tolist(),
        "target_ids": list(range(n_labels)) * len(leaves),
        "target_weights_as_tensor": tensor("weights", shares.ravel()),
    }


class _Branch(NamedTuple):
    mode: str
    if_true: int = 0
    if_false: int = 0
    missing_is_true: bool = False


def _branch(node: Node, nodes: Sequence[Node]) -> _Branch:
    if node["feature"] is None:
        return _Branch("LEAF")
    left, right = cast("int", node["left"]), cast("int", node["right"])
    missing_left = bool(node["missing_left"])
    if not _is_category(node):
        return _Branch("BRANCH_LEQ", left, right, missing_left)
    # Written as "is not", which is true of a missing value too. onnxruntime (1.21 to 1.31 at least)
    # makes one test of two successive BRANCH_EQ on a feature, also where that is another tree.
    if missing_left and not _is_second_equality(node, nodes):
        return _Branch("BRANCH_EQ", left, right, missing_left)
    return _Branch("BRANCH_NEQ", right, left, missing_is_true=True)


def _is_second_equality(node: Node, nodes: Sequence[Node]) -> bool:
    """Whether the parent has sent the missing values of this very feature to its other side."""
    if node["parent"] is None:
        return False
    parent = nodes[node["parent"]]
    return (
        parent["feature"] == node["feature"]
        and parent["right"] == node["id"]
        and bool(parent["missing_left"])
    )


def _is_category(node: Node) -> bool:
    return node["category"] is not None and not is_missing(node["category"])


def _values(outline: Outline, dtype: np.dtype[Any]) -> npt.NDArray[np.float64]:
    values = np.zeros(len(outline.nodes))
    for node in outline.nodes:
        if node["threshold"] is not None:
            values[node["id"]] = _threshold(node["threshold"], dtype)
        elif _is_category(node):
            values[node["id"]] = _category(outline, node, dtype)
        elif node["feature"] is not None:
            # No category is -1 or below: so only the missing values go where this test holds.
            values[node["id"]] = -1.0
    return values


def _threshold(threshold: float, dtype: np.dtype[Any]) -> float:
    if dtype == np.float64:
        return threshold
    with np.errstate(over="ignore"):
        rounded = np.float32(threshold)
    if float(rounded) > threshold:
        rounded = np.nextafter(rounded, np.float32(-np.inf))
    if np.isinf(rounded):
        raise CannotExport(
            f"threshold {threshold} is beyond float32: scale the feature, or use dtype='float64'"
        )
    return float(rounded)


def _category(outline: Outline, node: Node, dtype: np.dtype[Any]) -> float:
    if dtype == np.float64:
        return float(cast("int", node["category"]))
    reason = "float32 confuses it with its neighbours"
    return checked_category(outline, node, _FLOAT32_WHOLE_BITS, reason, "dtype='float64'")


def _float32_shares(outline: Outline, leaves: list[int]) -> npt.NDArray[np.float32]:
    """Round the shares to float32, in which the winner must still come first."""
    shares = outline.shares(leaves).astype(np.float32)
    rows, winners = np.arange(len(leaves)), outline.winners[leaves]
    # Two counts beyond 2**24 may become one share: the winner then gets one unit in the last place.
    lost = np.flatnonzero(shares.argmax(axis=1) != winners)
    shares[rows[lost], winners[lost]] = np.nextafter(shares[lost].max(axis=1), np.float32(2))
    return shares
