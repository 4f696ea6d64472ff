"""Every mechanism: epsilon after a hundred steps, asked cold."""

from __future__ import annotations

import inspect
import itertools
from typing import TYPE_CHECKING

import mechanisms as bench
import pytest

from hockeystick import mechanisms, selection

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.share(3)
@pytest.mark.parametrize("name", bench.MECHANISMS)
def test_mechanism(benchmark: BenchmarkFixture, name: str) -> None:
    """The mechanism is answered, each time with noise that is new."""
    nudges = (1e-10 * k for k in itertools.count(1))
    ask = bench.ours(bench.MECHANISMS[name])
    assert 0.0 < benchmark(lambda: ask(next(nudges))) < 10.0


def test_none_is_left_out() -> None:
    """There is a line for every class of mechanisms."""
    timed = {type(case.ours(1.0)).__name__ for case in bench.MECHANISMS.values()}
    named = [getattr(room, name) for room in (mechanisms, selection) for name in room.__all__]
    kinds = {kind.__name__ for kind in named if inspect.isclass(kind) and issubclass(kind, mechanisms.Mechanism)}
    assert kinds - {"Mechanism", "Dominating"} == timed  # the latter adds words to another
