"""The search for the smallest epsilon at which a delta is small enough: against closed forms, from the safe side."""

import math

import pytest

from hockeystick._numeric.search import smallest_feasible


@pytest.mark.parametrize("scale", [1e-4, 0.1, 1.0, 37.0, 2e3])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-9])
def test_against_the_closed_form(scale, delta, tolerance):
    """exp(-eps/scale) is delta at -scale log delta: the end is on the safe side, within the tolerance."""
    truth = -scale * math.log(delta)
    found = smallest_feasible(lambda eps: math.exp(-eps / scale) - delta, most=2.0**19, tolerance=tolerance)
    assert math.exp(-found / scale) <= delta
    assert found == pytest.approx(truth, rel=2 * tolerance)


def test_the_ends():
    """0 where nothing is needed, and infinity where nothing up to the limit suffices, or the excess is infinite."""
    assert smallest_feasible(lambda _: 0.0, most=1e4, tolerance=1e-3) == 0.0
    assert smallest_feasible(lambda eps: 1e5 - eps, most=1e4, tolerance=1e-3) == math.inf
    assert smallest_feasible(lambda _: math.inf, most=1e4, tolerance=1e-3) == math.inf


def test_a_jump():
    """A certificate may be infinite up to where it holds."""
    found = smallest_feasible(lambda eps: math.inf if eps < 300.0 else -1.0, most=1e4, tolerance=1e-6)
    assert 300.0 <= found <= 300.0 * (1 + 1e-6)


def test_what_is_known_is_where_it_begins():
    """Points that cost nothing leave the end where it is, and no point beyond the first feasible one is asked."""
    asked = []

    def excess(eps):
        asked.append(eps)
        return 70.0 - eps

    assert smallest_feasible(excess, most=1e4, tolerance=1e-3, known=[0.0, 60.0, 80.0, 500.0]) == pytest.approx(
        70.0, rel=1e-3
    )
    assert all(60.0 <= eps <= 80.0 for eps in asked if eps not in (0.0, 500.0))
