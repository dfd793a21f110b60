"""Into treelite: one tree whose leaves are the shares of the labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evertree.export.large_codes import checked_category
from evertree.extras import load
from evertree.outline import Outline, is_missing

if TYPE_CHECKING:
    from evertree.tree import Node

_CATEGORY_BITS = 32  # treelite keeps categories as uint32


def to_treelite(tree: Any) -> Any:
    """Make a treelite.Model that answers as the tree does; needs `evertree[export]`.

    O(nodes · labels). Thresholds and shares are float64, a categorical split is a category list.
    A treelite model knows no labels: it answers with the shares of `classes(tree)`, in their order,
    and the label is the first of the largest, `classes(tree)[shares.argmax()]`. Raises CannotExport
    for a category of 2**32 or more, as the codes of texts mostly are (`category_code`): number the
    texts 0, 1, 2, ... before they come into the tree, or use `to_onnx`.

    >>> import numpy as np
    >>> import treelite
    >>> from evertree import EverTree
    >>> from evertree.export import classes
    >>> tree = EverTree(n_features=1)
    >>> ids = tree.insert_many([[31.0], [62.0]], ["yes", "no"])
    >>> shares = treelite.gtil.predict(to_treelite(tree), np.array([[70.0]]))
    >>> classes(tree)[shares[0, 0].argmax()]
    'no'
    """
    building = load("treelite.model_builder", "export", "to_treelite()")
    outline = Outline.of(tree)
    n_labels = len(outline.labels)
    builder = building.ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=building.Metadata(
            num_feature=outline.n_features,
            task_type="kMultiClf",
            average_tree_output=False,
            num_target=1,
            num_class=[n_labels],
            leaf_vector_shape=(1, n_labels),
        ),
        tree_annotation=building.TreeAnnotation(num_tree=1, target_id=[0], class_id=[-1]),
        postprocessor=building.PostProcessorFunc(name="identity_multiclass"),
        base_scores=[0.0] * n_labels,
    )
    builder.start_tree()
    for node in outline.nodes:
        builder.start_node(node["id"])
        _fill(builder, outline, node)
        builder.data_count(sum(node["counts"].values()))
        builder.end_node()
    builder.end_tree()
    return builder.commit()


def _fill(builder: Any, outline: Outline, node: Node) -> None:
    if node["feature"] is None:
        builder.leaf(outline.shares([node["id"]])[0].tolist())
        return
    common = {
        "feature_id": node["feature"],
        "default_left": node["missing_left"],
        "left_child_key": node["left"],
        "right_child_key": node["right"],
    }
    if node["threshold"] is not None or is_missing(node["category"]):
        # No category is -1 or below: so only the missing values go where this test holds.
        threshold = -1.0 if node["threshold"] is None else node["threshold"]
        builder.numerical_test(threshold=threshold, opname="<=", **common)
    else:
        reason = "treelite would confuse it with another"
        other = "to_onnx, which takes any code"
        category = int(checked_category(outline, node, _CATEGORY_BITS, reason, other))
        builder.categorical_test(
            category_list=[category], category_list_right_child=False, **common
        )
