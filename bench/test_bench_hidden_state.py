"""Hidden states: the smallest bound over a grid of cells, and the exact chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cases
import pytest

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.parametrize(("case", "library"), cases.offers(cases.HIDDEN_STATES), ids=str)
def test_hidden_states(benchmark: BenchmarkFixture, case: cases.Case, library: str) -> None:
    """A grid has the same values cell by cell; the chain is answered within its tolerance."""
    case.run(benchmark, library)
