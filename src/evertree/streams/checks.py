"""Parameters, checked once where they come in: taken, or refused with the rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from evertree.encoding import show
from evertree.errors import InvalidParameter


def count(name: str, value: Any, least: int = 1, rule: str = "") -> int:
    """Take a whole number from `least` on.

    >>> count("rounds", -1, least=0, rule="it is how often the game is played")
    Traceback (most recent call last):
    ...
    evertree.errors.InvalidParameter: rounds=-1 is not an int >= 0: it is how often the game is \
played
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= least:
        return int(value)
    raise InvalidParameter(f"{name}={show(value)} is not an int >= {least}{rule and f': {rule}'}")


def share(name: str, value: Any, rule: str) -> float:
    """Take a number in [0, 1]."""
    numeric = (int, float, np.integer, np.floating)
    if isinstance(value, numeric) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise InvalidParameter(f"{name}={show(value)} is not in [0, 1]: {rule}")
