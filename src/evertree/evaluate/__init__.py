"""Evaluation: how good a model is on a stream, and what it costs.

>>> from evertree import EverTree, evaluate, streams
>>> source = streams.sea(n=3_000, seed=1)
>>> stream = streams.sliding_window(W=500)(source)
>>> result = evaluate.prequential(stream, EverTree(source.n_features), audit_every=1_000)
>>> result.examples, all(audit.ok for audit in result.audits)
(2500, True)
"""

from evertree.evaluate.metrics import NO_ANSWER, Confusion, Scores
from evertree.evaluate.moa import MoaModel
from evertree.evaluate.models import MajorityClass, Model, NoChange, Refitted, RiverModel
from evertree.evaluate.prequential import compare, prequential
from evertree.evaluate.result import Audit, Point, Result, Times, plot

__all__ = [
    "NO_ANSWER",
    "Audit",
    "Confusion",
    "MajorityClass",
    "MoaModel",
    "Model",
    "NoChange",
    "Point",
    "Refitted",
    "Result",
    "RiverModel",
    "Scores",
    "Times",
    "compare",
    "plot",
    "prequential",
]
