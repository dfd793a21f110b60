"""A first session with an installed evertree, where nothing but numpy is beside it.

`make wheels` and cibuildwheel run it with each package that they made, in an environment of its
own. It is a program and no test of pytest's, which need not be there.
"""

import importlib.metadata
import sys

import evertree
from evertree import EverTree, ExampleNotFound

# Of the tree as it was maintained, and rebuilt: the same on every machine.
DIGEST = "f1e11351cb6e9266 5c62a8d5bb9b50de"


def examples(n):
    """Give examples that are the same wherever they are made: whole numbers, halved."""
    state = 1
    for _ in range(n):
        state = state * 6364136223846793005 % 2**64 + 1442695040888963407
        a, b, c = (state >> 20) % 1000, (state >> 32) % 1000, (state >> 44) % 5
        x = (a / 2, float("nan") if b % 17 == 0 else b / 2, c)
        yield x, ("high" if a + b > 1000 else "low") if c != 3 else "other"


def session():
    tree = EverTree(3, categorical=[2])
    rows = list(examples(3000))
    tree.insert_many([x for x, _ in rows[:1000]], [y for _, y in rows[:1000]])
    for number, (x, y) in enumerate(rows[1000:]):
        tree.insert(x, y)
        tree.delete(id=number)
    return tree


def main():
    tree = session()
    certificate = tree.certify()
    assert certificate.ok, certificate.breaches
    assert len(tree) == 1000
    maintained = tree.digest()
    tree.rebuild()
    found = f"{maintained[:16]} {tree.digest()[:16]}"
    assert found == DIGEST, f"another tree than elsewhere: {found}"
    said = ""
    try:
        tree.delete([1, 2, 3], "nothing")
    except ExampleNotFound as error:
        said = str(error)
    assert "only what is in can be deleted" in said
    assert evertree.__version__ == importlib.metadata.version("evertree")
    system = f"Python {sys.version.split()[0]}, {sys.platform}"
    sys.stdout.write(f"evertree {evertree.__version__}, {system}: works\n")


if __name__ == "__main__":
    main()
