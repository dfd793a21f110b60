"""Test-then-train: run a model over a stream, judge every answer, measure every call.

The loop does as little as it can: it makes the request, reads the clock before and after, and
appends answer and truth to two lists. Counting, statistics and audits happen once in `every`
examples, and no clock that measures the model runs meanwhile.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sized
from time import perf_counter
from typing import Any

from evertree.encoding import show
from evertree.errors import EmptyTree, InvalidParameter
from evertree.evaluate.metrics import NO_ANSWER, Confusion
from evertree.evaluate.models import Model, as_model, many
from evertree.evaluate.progress import Progress
from evertree.evaluate.result import Audit, Point, Result, Times
from evertree.streams import (
    Delete,
    DeleteMany,
    Insert,
    InsertMany,
    Label,
    Request,
    Source,
    Stream,
)
from evertree.streams.checks import count

_ANSWERS = "it counts answers"

Watcher = Callable[[Point], None]


def prequential(
    stream: Iterable[Request],
    model: Any,
    *,
    positive: Hashable | None = None,
    every: int = 1000,
    fading: float | None = None,
    audit_every: int | None = None,
    progress: bool | Watcher | None = None,
    name: str | None = None,
) -> Result:
    """Run a model over a stream and judge each answer before the model learns the truth.

    stream       requests, as an input model makes them: `sliding_window(1000)(source)`
    model        an EverTree, a baseline, `Refitted(...)`, `MoaModel(...)`, a river classifier, or
                 anything with label(x), insert(x, y) and delete(x, y)
    positive     the label whose F1 is wanted besides the macro F1
    every        a point of the course is made after so many answers; what is left at the end, if
                 less than half as many, is joined with the last point
    fading       also follow scores in which each answer counts this much less than the next one
    audit_every  call model.certify() after so many answers (at the next point); its time is not
                 counted
    progress     None: a line on a terminal, nothing elsewhere. A function is called at each point

    Costs what the model's calls cost, and about 0.5 µs per request, the making of it included:
    1.1 µs per example of the incremental model, 1.5 µs with a window (x86-64, Python 3.11).

    >>> from evertree import EverTree, evaluate, streams
    >>> source = streams.sea(n=3_000, seed=1, noise=0.0)
    >>> stream = streams.incremental(W=1_000)(source)
    >>> result = evaluate.prequential(stream, EverTree(source.n_features), positive=1)
    >>> result.examples, result.updates, result.accuracy > 0.9, result.f1 > 0.9
    (2000, 2000, True, True)
    """
    _check_stream(stream)
    subject = as_model(model)
    watch = _watcher(progress, stream)
    run = _Run(
        subject,
        positive=positive,
        every=count("every", every, rule=_ANSWERS),
        fading=_fading(fading),
        audit_every=_audit_every(audit_every, subject),
        watch=watch,
    )
    try:
        _follow(stream, subject, run)
    finally:
        if isinstance(watch, Progress):
            watch.end()
    return run.result(name or _name_of(model), _name_of_stream(stream))


def compare(
    stream: Iterable[Request], models: Mapping[str, Any], **options: Any
) -> dict[str, Result]:
    """Run several models over the same stream, one after the other; `options` as in `prequential`.

    >>> from evertree import evaluate, streams
    >>> stream = streams.incremental(W=0)(streams.sea(n=500, seed=1))
    >>> models = {"no change": evaluate.NoChange(), "majority": evaluate.MajorityClass()}
    >>> {name: result.examples for name, result in evaluate.compare(stream, models).items()}
    {'no change': 500, 'majority': 500}
    """
    if iter(stream) is stream:
        raise InvalidParameter(
            "the stream can be read only once, and each model needs it from the beginning: "
            "give what an input model returns, such as incremental(1000)(source)"
        )
    return {
        name: prequential(stream, model, name=name, **options) for name, model in models.items()
    }


def _follow(stream: Iterable[Request], model: Model, run: _Run) -> None:
    """Make every request. This is the loop that runs a million times."""
    clock = perf_counter
    label, insert, delete = model.label, model.insert, model.delete
    x: Any
    y: Any
    truths, answers, every = run.truths, run.answers, run.every
    label_s = learn_s = 0.0  # since the last point
    updates = 0
    for request in run.build(iter(stream)):
        kind = type(request)
        if kind is Label:
            x, y = request
            if len(answers) == every:
                run.close(label_s, learn_s, updates)
                label_s = learn_s = 0.0
                updates = 0
            start = clock()
            try:
                answer = label(x)
            except EmptyTree:
                answer = NO_ANSWER
            label_s += clock() - start
            answers.append(answer)
            truths.append(y)
        elif kind is Insert:
            x, y = request
            start = clock()
            insert(x, y)
            learn_s += clock() - start
            updates += 1
        elif kind is Delete:
            x, y = request
            start = clock()
            delete(x, y)
            learn_s += clock() - start
            updates += 1
        else:
            run.many(request)
    run.close(label_s, learn_s, updates, at_end=True)


class _Run:
    """What is known of a run so far."""

    def __init__(
        self,
        model: Model,
        *,
        positive: Hashable | None,
        every: int,
        fading: float | None,
        audit_every: int | None,
        watch: Watcher,
    ) -> None:
        self.model = model
        self.positive = positive
        self.every = every
        self.truths: list[Hashable] = []  # since the last point
        self.answers: list[Hashable] = []
        self.times = Times()
        self.points: list[Point] = []
        self._fading = fading
        self._audit_every = audit_every
        self._audited = 0
        self._watch = watch
        self._overall = Confusion()
        self._faded = Confusion()
        self._before = Times()  # as they were at the last point
        self._last_now = Confusion()  # what the last point counted by itself, and since when
        self._last_before = Times()
        self._built = 0
        self._insert_many = many(model, "insert_many")
        self._delete_many = many(model, "delete_many")

    def build(self, requests: Iterator[Request]) -> Iterator[Request]:
        """Make the first request if it is a batch, timed by itself; give the others."""
        first = next(requests, None)
        if not isinstance(first, InsertMany):
            return requests if first is None else itertools.chain([first], requests)
        start = perf_counter()
        self._insert_many(first.X, first.y)
        self.times.build_s = perf_counter() - start
        self._built = len(first.y)
        return requests

    def many(self, request: Request) -> None:
        """Make a request of many examples."""
        if not isinstance(request, (InsertMany, DeleteMany)):
            raise InvalidParameter(
                f"{show(request)} ({type(request).__name__}) is no request: a stream is made of "
                "Label, Insert, Delete, InsertMany and DeleteMany"
            )
        update = self._insert_many if isinstance(request, InsertMany) else self._delete_many
        start = perf_counter()
        update(request.X, request.y)
        self.times.learn_s += perf_counter() - start
        self.times.updates += len(request.y)

    def close(self, label_s: float, learn_s: float, updates: int, *, at_end: bool = False) -> None:
        """Make a point of what has happened since the last one."""
        self.times.label_s += label_s
        self.times.learn_s += learn_s
        self.times.updates += updates
        if not self.answers:
            return
        now = Confusion.of(self.truths, self.answers)
        self._overall.add(now)
        if self._fading is not None:
            self._faded.fade(self.truths, self.answers, self._fading)
        examples = (self.points[-1].examples if self.points else 0) + len(self.answers)
        audit = self._audit(examples)
        if at_end and self.points and 2 * len(self.answers) < self.every:
            # So few answers make a score of chance: they go to the point before, which is replaced.
            now.add(self._last_now)
            self._before = self._last_before
            audit = _both(self.points.pop().audit, audit)
        self.truths.clear()
        self.answers.clear()
        point = Point(
            examples=examples,
            now=now.scores(self.positive),
            overall=self._overall.scores(self.positive),
            faded=None if self._fading is None else self._faded.scores(self.positive),
            times=self.times.since(self._before),
            active=len(self.model) if isinstance(self.model, Sized) else None,
            stats=dict(self.model.stats()) if hasattr(self.model, "stats") else {},
            audit=audit,
            built=self._built,
        )
        self._last_now, self._last_before = now, self._before
        self._before = self.times.copy()
        self.points.append(point)
        self._watch(point)

    def _audit(self, examples: int) -> Audit | None:
        if self._audit_every is None or examples - self._audited < self._audit_every:
            return None
        self._audited = examples
        certificate = self.model.certify()  # type: ignore[attr-defined]  # checked at the start
        return Audit(certificate.ok, certificate.worst_gap, tuple(certificate.breaches))

    def result(self, name: str, stream: str) -> Result:
        """Give what was found."""
        labels = self._overall.labels()
        if self.positive is not None and labels and self.positive not in labels:
            warnings.warn(
                f"positive={show(self.positive)} was never true and never answered, so its F1 is "
                f"0: the labels are {show(labels)}",
                stacklevel=3,
            )
        return Result(
            name=name,
            stream=stream,
            positive=self.positive,
            points=tuple(self.points),
            confusion=self._overall,
            times=self.times,
        )


def _both(one: Audit | None, other: Audit | None) -> Audit | None:
    if one is None or other is None:
        return one or other
    return Audit(
        one.ok and other.ok,
        max(one.worst_gap, other.worst_gap),
        (*one.breaches, *other.breaches),
    )


# --- parameters


def _check_stream(stream: Any) -> None:
    if isinstance(stream, Source):
        raise InvalidParameter(
            f"{stream.name} is a source of examples, not a stream of requests: say what happens to "
            "each example, as in incremental(1000)(source)"
        )


def _fading(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1:
        return float(value)
    raise InvalidParameter(
        f"fading={show(value)} is not in (0, 1]: it is how much an answer counts against the next "
        "one; 0.999 looks back over about a thousand"
    )


def _audit_every(value: object, model: Model) -> int | None:
    if value is None:
        return None
    if not hasattr(model, "certify"):
        raise InvalidParameter(
            f"audit_every={show(value)}: {type(model).__name__} has no certify(), so it cannot be "
            "audited; leave audit_every out"
        )
    return count("audit_every", value, rule=_ANSWERS)


def _watcher(progress: bool | Watcher | None, stream: Iterable[Request]) -> Watcher:
    if callable(progress):
        return progress
    return Progress(progress, stream.length if isinstance(stream, Stream) else None)


def _name_of(model: Any) -> str:
    inner = getattr(model, "estimator", getattr(model, "model", None))
    return type(model if inner is None else inner).__name__


def _name_of_stream(stream: Iterable[Request]) -> str:
    if not isinstance(stream, Stream):
        return type(stream).__name__
    source = getattr(stream.source, "name", type(stream.source).__name__)
    return f"{stream.model.name} of {source}"
