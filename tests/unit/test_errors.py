"""Every error is ours and a built-in, and reads as a sentence."""

import pickle

import pytest

import evertree
from evertree import errors

BUILT_INS = {
    "ExampleNotFound": KeyError,
    "DuplicateId": ValueError,
    "InvalidExample": ValueError,
    "InvalidFile": ValueError,
    "InvalidParameter": ValueError,
    "MissingExtra": ImportError,
    "EmptyTree": LookupError,
    "CannotExport": ValueError,
}


@pytest.mark.parametrize(("name", "built_in"), BUILT_INS.items())
def test_each_error_is_also_a_built_in(name, built_in):
    error = getattr(errors, name)
    assert issubclass(error, built_in)
    assert issubclass(error, errors.EvertreeError)
    assert getattr(evertree, name) is error


def test_the_list_above_is_complete():
    assert set(errors.__all__) == {*BUILT_INS, "EvertreeError"}


@pytest.mark.parametrize("name", BUILT_INS)
def test_an_error_reads_as_it_was_written(name):
    error = getattr(errors, name)("id=7: it's not there")
    assert str(error) == "id=7: it's not there"
    assert str(getattr(errors, name)()) == ""


@pytest.mark.parametrize("name", BUILT_INS)
def test_an_error_survives_pickling(name):
    error = pickle.loads(pickle.dumps(getattr(errors, name)("why")))  # noqa: S301
    assert type(error).__name__ == name
    assert str(error) == "why"


def test_where_a_file_is_wrong_survives_pickling():
    error = pickle.loads(pickle.dumps(errors.InvalidFile("why", line=3, column=7)))  # noqa: S301
    assert (str(error), error.line, error.column) == ("why", 3, 7)
