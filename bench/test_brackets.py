"""The rows of brackets.py answer, and its widths are numbers."""

import math

import brackets
import pytest


@pytest.mark.parametrize("name", brackets.ROWS)
def test_a_row_answers(name):
    """One cell of each row has a bracket, a width and a share of pairs between 0 and 1."""
    found = brackets.measure(name, next(brackets.cells(1, seed=0)))
    assert 0.0 <= found.pairs <= 1.0
    assert not math.isnan(found.width)
    assert found.upper > 0.0
