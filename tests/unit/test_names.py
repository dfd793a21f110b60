"""Every name of the package is there, and what not everybody needs is not loaded before."""

import subprocess
import sys

import pytest

import evertree


@pytest.mark.parametrize("name", evertree.__all__)
def test_every_name_is_there(name):
    assert getattr(evertree, name) is not None
    assert name in dir(evertree)


@pytest.mark.parametrize("room", ["evaluate", "explain", "export", "plots", "streams"])
def test_a_room_is_entered_on_demand(room):
    code = (
        "import sys, evertree\n"
        f"assert 'evertree.{room}' not in sys.modules\n"
        f"assert evertree.{room}.__name__ == 'evertree.{room}'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_all_names_at_once_need_no_extra():
    code = (
        "import sys\n"
        "sys.modules['sklearn'] = None\n"
        "from evertree import *\n"
        "assert category_code(7) == 7.0\n"
        "assert export_text\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = evertree.no_such_name
