"""The kernels on a million elements, beside SciPy's special functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cases
import pytest

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.parametrize(("case", "library"), cases.offers(cases.HOCKEY_STICK), ids=str)
def test_kernel(benchmark: BenchmarkFixture, case: cases.Case, library: str) -> None:
    """Both libraries give the same numbers to what the SciPy expression can resolve."""
    case.run(benchmark, library)
