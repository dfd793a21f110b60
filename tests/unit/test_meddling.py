"""Objects that use the tree, or change, while the tree is looking at them.

A label or a row may use the tree from inside one of the tree's own calls. That works, or it is
refused with an error (while an update is half done, it has to be); it must not hang, crash or
leave the tree in pieces.
"""

import subprocess
import sys
import textwrap

import pytest

from evertree import EverTree

MISCHIEF = """
    import faulthandler, sys
    faulthandler.dump_traceback_later(40, exit=True)
    from evertree import EverTree

    STUBBORN = len(sys.argv) > 1      # lets the refusal through, instead of swallowing it
    tree = EverTree(2)
    START = [[0, 0], [0, 1], [1, 0], [1, 1]], ["even", "odd", "odd", "even"]
    tree.insert_many(*START)
    busy = False

    def meddle():
        global busy
        if busy:
            return
        busy = True
        try:
            i = tree.insert([0.5, 0.5], "even")
            tree.label([0.5, 0.5]), tree.label_many([[0, 1]]), tree.label_counts([0, 1])
            tree.replace(i, [0.25, 0.25], "odd")
            tree.rebuild(), tree.certify(), tree.digest(), tree.nodes(), tree.stats(), len(tree)
            tree.delete(id=i)
            tree.delete_many(ids=tree.insert_many([[0, 0]], ["even"]))
        except RuntimeError:
            if STUBBORN:
                raise
        finally:
            busy = False

    class Label:
        def __init__(self, name):
            self.name = name
        def __hash__(self):
            meddle()
            return hash(self.name)
        def __eq__(self, other):
            meddle()
            return getattr(other, "name", other) == self.name
        def __lt__(self, other):
            meddle()
            return self.name < other.name
        def __gt__(self, other):
            meddle()
            return self.name > other.name
        def __repr__(self):
            meddle()
            return self.name

    class Row:
        def __len__(self):
            meddle()
            return 2
        def __getitem__(self, j):
            meddle()
            if j > 1:
                raise IndexError
            return 0.75

    def use(x, y):
        i = tree.insert(x, y)
        tree.label(x), tree.label_counts(x), tree.label_many([x]), tree.nodes(), tree.digest()
        tree.replace(i, x, y)
        tree.delete(x, y)
        ids = tree.insert_many([x, x], [y, y])
        tree.delete_many([x], [y])
        tree.delete(id=ids[0])

    for y in (Label("even"), Label("new"), Label("newer"), "odd"):
        for x in (Row(), [0.75, 0.75]):
            before = len(tree)
            try:
                use(x, y)
            except (RuntimeError, ValueError):
                busy = True           # no more mischief while we tidy up
                tree.delete_many(ids=[i for i in range(4, 10**4) if i in tree])
                busy = False
    busy = True
    assert len(tree) == 4, len(tree)
    certificate = tree.certify()
    assert certificate.ok, certificate.breaches
    tree.rebuild()
    fresh = EverTree(2)
    fresh.insert_many(*START)
    assert tree.digest() == fresh.digest()
    print("well")
"""


@pytest.mark.parametrize("arguments", [[], ["stubborn"]], ids=["polite", "stubborn"])
def test_objects_that_use_the_tree_while_they_are_looked_at(arguments):
    # In a process of its own: what would go wrong is a deadlock or a crash.
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MISCHIEF), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stdout.strip() == "well", result.stderr
    assert result.returncode == 0


COLLECTED = """
    import faulthandler, gc
    faulthandler.dump_traceback_later(40, exit=True)
    from evertree import EverTree

    tree = EverTree(1)
    tree.insert_many([[1.0], [2.0]], ["a", "b"])

    class Rubbish:
        def __init__(self):
            self.myself = self        # only the garbage collector can take it away
        def __del__(self):
            tree.delete(id=tree.insert([3.0], "a"))

    gc.set_threshold(1)               # it comes at every chance: in the middle of any call
    for ask in (
        lambda: tree.example(0),
        lambda: tree.label([1.0]),
        lambda: tree.label_many([[1.0]]),
        lambda: tree.label_counts([1.0]),
        lambda: tree.stats(),
        lambda: tree.nodes(),
        lambda: tree.certify(),
        lambda: tree.digest(),
        lambda: (len(tree), 0 in tree, tree.limits, repr(tree)),
    ):
        for _ in range(300):
            Rubbish()
            ask()
    gc.disable()
    tree.delete_many(ids=[i for i in range(2, 10**5) if i in tree])
    assert len(tree) == 2 and tree.certify().ok
    print("well")
"""


def test_the_garbage_collector_may_come_in_the_middle_of_a_call():
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(COLLECTED)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stdout.strip() == "well", result.stderr[-2000:]


def test_a_label_that_can_be_hashed_now_and_then():
    class Moody:
        moody = False

        def __hash__(self):
            if self.moody:
                raise ZeroDivisionError
            return 5

    tree, label = EverTree(1), Moody()
    i = tree.insert([1.0], label)
    label.moody = True
    tree.delete(id=i)
    label.moody = False
    tree.insert([1.0], "other")
    i = tree.insert([2.0], label)
    assert tree.example(i)[1] is label
    assert tree.label([2.0]) is label
    assert tree.label([1.0]) == "other"
