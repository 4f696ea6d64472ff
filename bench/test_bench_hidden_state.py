"""Hidden states: sums of contractions, shifted interpolation, the smallest bound over a grid of cells, and the exact chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cases
import numpy as np
import pytest

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.share(2)
@pytest.mark.parametrize(("case", "library"), cases.offers(cases.HIDDEN_STATES), ids=str)
def test_hidden_states(benchmark: BenchmarkFixture, case: cases.Case, library: str) -> None:
    """A grid has the same values cell by cell; the chain is answered within its tolerance."""
    case.run(benchmark, library)


@pytest.mark.parametrize(("case", "library"), cases.offers(cases.CONTRACTION), ids=str)
def test_contraction_sum(benchmark: BenchmarkFixture, case: cases.Case, library: str) -> None:
    """The sum is that of the cumulative product, constants at any depth and arrays, early exit or not."""
    case.run(benchmark, library)


@pytest.mark.parametrize("case", cases.SHIFTED_INTERPOLATION, ids=lambda case: case.name)
def test_shifted_interpolation(benchmark: BenchmarkFixture, case: cases.Case) -> None:
    """The shifts are those whose squares sum to the value, and the weights a legal certificate that closes the gap.

    It takes O(T), and O(T log T) with a diameter even where blocks merge over thousands of rounds.
    """
    benchmark.group = case.name
    optimum = benchmark(case.ours, *case.arguments(1))
    assert np.isclose(np.sum(optimum.shifts**2), optimum.value, rtol=1e-9)
    assert np.all((optimum.weights >= 0) & (optimum.weights <= 1))
    assert optimum.weights[-1] == 1
