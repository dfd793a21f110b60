"""Streams: where examples come from, and what is asked of a tree when each one's turn comes.

A *source* gives examples (x, y, and a time where there is one): a file, a frame, arrays, a
generator. An *input model* turns a source into a *stream* of requests: insert, delete, label.
Whoever runs the stream makes the requests of a model, as `evertree.evaluate.prequential` does.

>>> from evertree import EverTree, streams
>>> source = streams.sea(n=2_000, seed=1)
>>> tree = EverTree(source.n_features)
>>> for request in streams.sliding_window(W=500)(source):
...     answer = streams.apply(request, tree)
>>> len(tree)
500
"""

from evertree.streams.adversaries import hidden_feature, index_game, index_width
from evertree.streams.generate import hyperplane, led, random_rbf, sea
from evertree.streams.input_models import (
    InputModel,
    Stream,
    incremental,
    random_update,
    sliding_window,
)
from evertree.streams.read_arff import read_arff
from evertree.streams.read_arrow import from_frame, read_parquet
from evertree.streams.read_csv import read_csv
from evertree.streams.requests import (
    Delete,
    DeleteMany,
    Insert,
    InsertMany,
    Label,
    Request,
    apply,
)
from evertree.streams.source import Batch, Example, Source, from_arrays

__all__ = [
    "Batch",
    "Delete",
    "DeleteMany",
    "Example",
    "InputModel",
    "Insert",
    "InsertMany",
    "Label",
    "Request",
    "Source",
    "Stream",
    "apply",
    "from_arrays",
    "from_frame",
    "hidden_feature",
    "hyperplane",
    "incremental",
    "index_game",
    "index_width",
    "led",
    "random_rbf",
    "random_update",
    "read_arff",
    "read_csv",
    "read_parquet",
    "sea",
    "sliding_window",
]
