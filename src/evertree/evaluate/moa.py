"""Learners of MOA, the Java library of stream learners, as models: a JVM behind a pipe.

Needed are a Java with its compiler, 11 or newer, and moa.jar, which comes in the wheel of capymoa.
Neither is installed for you. The program on the other side is MoaPipe.java beside this file.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
import tempfile
import weakref
from collections.abc import Hashable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from evertree.encoding import Row, show
from evertree.errors import InvalidExample, InvalidParameter, MissingExtra
from evertree.evaluate.metrics import NO_ANSWER
from evertree.evaluate.models import Deletions, cannot_forget, check_deletions

if TYPE_CHECKING:
    from evertree.streams import Source

JAR_VARIABLE = "EVERTREE_MOA_JAR"
_PROGRAM = Path(__file__).with_name("MoaPipe.java")
_LABEL, _INSERT = b"\1", b"\2"
_HOW_TO_GET_JAVA = "on Debian: apt-get install default-jdk-headless"
_HOW_TO_GET_MOA = (
    "it comes in capymoa's wheel, which is a zip file: pip download --no-deps -d moa capymoa && "
    "python -m zipfile -e moa/capymoa-*.whl moa && "
    f"export {JAR_VARIABLE}=$PWD/moa/capymoa/jar/moa.jar"
)


class MoaModel:
    """A learner of MOA's. It cannot forget: `deletions` says what becomes of a deletion.

    learner     a learner and its options as MOA writes them: "trees.EFDT -g 500"
    n_features  how many numbers a row has
    labels      every label that will come: MOA wants to know them before the first example
    categories  for each feature that is a category, every value that will come; by position
    deletions   "refuse": an error. "ignore": the model goes on with all that it has seen

    Starting takes about a second, and each answer its way through a pipe and back, some ten
    microseconds and more: times of this model are not MOA's own. Raises MissingExtra, with the way
    to get them, where Java or moa.jar is missing. `close()` ends the JVM; so does forgetting it.

    >>> from evertree import evaluate, streams
    >>> source = streams.sea(n=5_000, seed=1)
    >>> model = evaluate.MoaModel.of(source, "trees.EFDT -g 500")  # doctest: +SKIP
    >>> result = evaluate.prequential(streams.incremental(W=1_000)(source), model)  # doctest: +SKIP
    >>> round(result.f1_macro, 3)  # doctest: +SKIP
    0.831
    """

    def __init__(
        self,
        learner: str,
        n_features: int,
        labels: Iterable[Hashable],
        categories: Mapping[int, Iterable[float]] | None = None,
        deletions: Deletions = "refuse",
    ) -> None:
        self.learner = learner
        self.deletions = check_deletions(deletions)
        self._labels: list[Hashable] = list(dict.fromkeys(labels))
        self._codes = {label: code for code, label in enumerate(self._labels)}
        self._places = {
            feature: {value: place for place, value in enumerate(dict.fromkeys(values))}
            for feature, values in (categories or {}).items()
        }
        self._row = struct.Struct(f">{n_features}d")
        self._n_features = n_features
        if not self._labels:
            raise InvalidParameter("labels is empty: MOA wants to know every label that will come")
        self._jvm = _Jvm(learner)
        kinds = [len(self._places.get(j, ())) for j in range(n_features)]
        self._jvm.send(struct.pack(f">{n_features + 2}i", n_features, len(self._labels), *kinds))
        self._jvm.receive(1)

    @classmethod
    def of(cls, source: Source, learner: str, deletions: Deletions = "refuse") -> MoaModel:
        """Make a model for a source; reads it once, for its labels and categories."""
        labels: dict[Hashable, None] = {}
        values: dict[int, dict[float, None]] = {j: {} for j in source.categorical}
        for X, y, _ in source.batches():
            labels.update(dict.fromkeys(y))
            for j, seen in values.items():
                seen.update(dict.fromkeys(np.unique(X[:, j][~np.isnan(X[:, j])]).tolist()))
        return cls(learner, source.n_features, labels, values, deletions)

    def label(self, x: Row) -> Hashable:
        """Answer with the class that MOA votes for."""
        self._jvm.send(_LABEL + self._packed(x))
        code: int = struct.unpack(">i", self._jvm.receive(4))[0]
        return NO_ANSWER if code < 0 else self._labels[code]

    def insert(self, x: Row, y: Hashable) -> None:
        """Learn one example."""
        code = self._codes.get(y)
        if code is None:
            raise InvalidExample(
                f"the label {show(y)} is none of those that this model was made for, "
                f"{show(self._labels)}: MOA has to know all labels from the beginning"
            )
        self._jvm.send(_INSERT + self._packed(x) + struct.pack(">i", code))

    def delete(self, x: Row, y: Hashable) -> None:  # noqa: ARG002
        """Refuse, or do nothing."""
        if self.deletions == "refuse":
            raise cannot_forget(self.learner, "MoaModel(..., deletions='ignore')")

    def close(self) -> None:
        """End the JVM. Whatever is asked afterwards is refused."""
        self._jvm.close()

    def _packed(self, x: Row) -> bytes:
        values: list[Any] = x.tolist() if isinstance(x, np.ndarray) else list(x)
        try:
            for feature, places in self._places.items():
                # A category that was not announced is missing: MOA has no place for it.
                values[feature] = places.get(values[feature], float("nan"))
            return self._row.pack(*values)
        except (struct.error, IndexError):
            raise InvalidExample(
                f"x={show(x)} is not a row of {self._n_features} numbers, as this model expects"
            ) from None


class _Jvm:
    """The process on the other side of the pipe. Whoever drops it ends it."""

    def __init__(self, learner: str) -> None:
        command = [*find_moa(), str(_PROGRAM), learner]
        self.learner = learner
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(  # noqa: S603 - the program is ours
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
        )
        self.close = weakref.finalize(self, _end, self._process, self._words)

    def send(self, message: bytes) -> None:
        """Write a request; it may wait in the buffer until an answer is wanted."""
        try:
            _pipe(self._process.stdin).write(message)
        except (OSError, ValueError):
            raise self._failed() from None

    def receive(self, size: int) -> bytes:
        """Wait for an answer."""
        try:
            _pipe(self._process.stdin).flush()
            answer = _pipe(self._process.stdout).read(size)
        except (OSError, ValueError):
            raise self._failed() from None
        if len(answer) < size:
            raise self._failed()
        return answer

    def _failed(self) -> InvalidParameter:
        if self._words.closed:
            return InvalidParameter("this model is closed: make another one")
        self._words.seek(0)
        words = self._words.read().decode(errors="replace").strip().splitlines()
        return InvalidParameter(
            f"MOA has ended with {show(self.learner)}: {words[0] if words else 'without a word'}; "
            'a learner is written as in MOA, "trees.EFDT -g 500"'
        )


def _pipe(end: IO[bytes] | None) -> IO[bytes]:
    if end is None:
        raise AssertionError("pipes were asked for")
    return end


def _end(process: subprocess.Popen[bytes], words: IO[bytes]) -> None:
    process.kill()  # it has nothing to save
    for end in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            _pipe(end).close()
    process.wait()
    words.close()


# --- what has to be there


def find_moa() -> list[str]:
    """Give the command that starts a Java program with MOA, or say what is missing. O(1)."""
    java = shutil.which("java")
    if java is None or shutil.which("javac") is None:
        raise MissingExtra(
            f"MOA needs Java with its compiler, and here is none: {_HOW_TO_GET_JAVA}"
        )
    return [java, "-XX:+UseSerialGC", "-cp", str(_find_jar())]


def _find_jar() -> Path:
    named = os.environ.get(JAR_VARIABLE)
    if named:
        if not Path(named).is_file():
            raise MissingExtra(f"{JAR_VARIABLE}={named} is not a file: {_HOW_TO_GET_MOA}")
        return Path(named)
    capymoa = find_spec("capymoa")
    for folder in capymoa.submodule_search_locations or () if capymoa else ():
        jar = Path(folder) / "jar" / "moa.jar"
        if jar.is_file():
            return jar
    raise MissingExtra(f"MOA needs moa.jar, and here is none: {_HOW_TO_GET_MOA}")
