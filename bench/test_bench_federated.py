"""A million cells of a privacy plan in one call, on one and two threads, beside NumPy and SciPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cases
import pytest

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.share(3)
@pytest.mark.parametrize(("case", "library"), cases.offers(cases.CLOSED_FORMS), ids=str)
def test_grid(benchmark: BenchmarkFixture, case: cases.Case, library: str) -> None:
    """A grid has the values of the same formula written in NumPy, whatever the number of threads."""
    case.run(benchmark, library)
