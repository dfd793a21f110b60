"""Libraries that only some users need: loaded when they are used, and missed in words.

Knows the errors, nothing else.
"""

from __future__ import annotations

import importlib
from typing import Any

from evertree.errors import MissingExtra


def load(module: str, extra: str, purpose: str) -> Any:
    """Import a module of an optional library, or say how to get it.

    >>> load("math", "streams", "reading Parquet").gcd(6, 4)
    2
    >>> load("no_such_library", "streams", "reading Parquet")
    Traceback (most recent call last):
    ...
    evertree.errors.MissingExtra: reading Parquet needs no_such_library, which is not installed: \
pip install 'evertree[streams]' (in a clone: pip install '.[streams]')
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise MissingExtra(
            f"{purpose} needs {library}, which is not installed: pip install 'evertree[{extra}]' "
            f"(in a clone: pip install '.[{extra}]')"
        ) from error
