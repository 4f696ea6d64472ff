"""The cases of cases.py beside SciPy's expressions: kernels, grids of closed forms, hidden states, contractions, shifted interpolation."""

import math

import brackets
import cases
import numpy as np
import pytest

ALL = [*cases.HOCKEY_STICK, *cases.CONTRACTION, *cases.CLOSED_FORMS, *cases.HIDDEN_STATES]


@pytest.mark.share(3)
@pytest.mark.parametrize(("case", "library"), cases.offers(ALL), ids=str)
def test_case(case, library):
    """Libraries and threads give the same numbers, to what the expression can resolve; the chain is answered within its tolerance."""
    case.check(library)


@pytest.mark.parametrize("case", cases.SHIFTED_INTERPOLATION, ids=lambda case: case.name)
def test_shifted_interpolation(case):
    """The shifts are those whose squares sum to the value, and the weights a legal certificate that closes the gap.

    It takes O(T), and O(T log T) with a diameter even where blocks merge over thousands of rounds.
    """
    optimum = case.ours(*case.arguments(1))
    assert np.isclose(np.sum(optimum.shifts**2), optimum.value, rtol=1e-9)
    assert np.all((optimum.weights >= 0) & (optimum.weights <= 1))
    assert optimum.weights[-1] == 1


# The rows of brackets.py answer, and its widths are numbers.


@pytest.mark.parametrize("name", brackets.ROWS)
def test_a_row_answers(name):
    """One cell of each row has a bracket, a width and a share of pairs between 0 and 1."""
    found = brackets.measure(name, next(brackets.cells(1, seed=0)))
    assert 0.0 <= found.pairs <= 1.0
    assert not math.isnan(found.width)
    assert found.upper > 0.0
