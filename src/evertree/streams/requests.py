"""What a stream asks of a model, one small tuple per request.

The three requests of the paper, ins(x, y), del(x, y) and lab(x), and the two that take many
examples as one update. An example is named by its value: of equal examples it makes no difference
which one goes. This file knows nothing else of ours but how a row may look.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy.typing as npt

    from evertree.encoding import Labels, Row


class Label(NamedTuple):
    """Label x. `y` is the truth: the model does not see it, whoever judges the answer does."""

    x: Row
    y: Hashable


class Insert(NamedTuple):
    """Take one example in."""

    x: Row
    y: Hashable


class Delete(NamedTuple):
    """Take one example out."""

    x: Row
    y: Hashable


class InsertMany(NamedTuple):
    """Take many examples in as one update; a stream begins with one of these."""

    X: Sequence[Row] | npt.NDArray[Any]
    y: Labels


class DeleteMany(NamedTuple):
    """Take many examples out as one update."""

    X: Sequence[Row] | npt.NDArray[Any]
    y: Labels


Request: TypeAlias = Label | Insert | Delete | InsertMany | DeleteMany


def apply(request: Request, model: Any) -> Any:
    """Make one request of a model; return what it answers. Costs what the model's own call costs.

    A model is an `EverTree`, or anything with these five methods.

    >>> from evertree import EverTree
    >>> tree = EverTree(n_features=1)
    >>> apply(Insert([31.0], "yes"), tree)
    0
    >>> apply(Label([30.0], "no"), tree)
    'yes'
    >>> apply(Delete([31.0], "yes"), tree)
    """
    if isinstance(request, Label):
        return model.label(request.x)
    if isinstance(request, Insert):
        return model.insert(request.x, request.y)
    if isinstance(request, Delete):
        return model.delete(request.x, request.y)
    if isinstance(request, InsertMany):
        return model.insert_many(request.X, request.y)
    return model.delete_many(request.X, request.y)
