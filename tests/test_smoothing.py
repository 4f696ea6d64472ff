"""Contours of losses whose characteristic function does not decay: atoms, rare large losses, smoothed by a small Gaussian."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick import _core

WIDTH = 2e-3  # of log delta; ten times what is usual


def contained(found, exact):
    """Say whether the bracket of log delta has the exact value, up to the digits of the reference."""
    slack = 1e-13 * abs(exact)
    return found["log_lower"] - slack <= exact <= found["log_upper"] + slack


def laplace_pairs_delta(r, eps):
    """Return delta of two Laplace steps: the closed form of one, integrated over the loss of the other."""

    def one(e):
        return max(0, 1 - mpmath.exp((e - r) / 2), 1 - mpmath.exp(e))

    atoms = mpmath.mpf(0.5) * one(eps - r) + mpmath.exp(-r) / 2 * one(eps + r)
    ends = sorted({-r, r, *(e for e in (eps - r, eps, eps + r) if -r < e < r)})
    # between the atoms the loss r - 2x, 0 < x < r, has density e^{-x}/2
    return atoms + mpmath.quad(lambda y: mpmath.exp(-(r - y) / 2) / 4 * one(eps - y), ends)


@pytest.mark.parametrize("r", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.77, 0.9])
def test_two_laplace_steps_agree_with_an_integral(r, share):
    """The bracket has the integral over one of the losses, and is narrow off the atoms."""
    eps = 2 * r * share
    with mpmath.workdps(30):
        exact = float(mpmath.log(laplace_pairs_delta(mpmath.mpf(r), mpmath.mpf(eps))))
    found = _core.contour_bracket([("laplace", [r], 1.0, 2.0)], True, False, eps)
    assert found["smoothing"] > 0.0
    assert contained(found, exact)
    assert found["log_upper"] - found["log_lower"] < WIDTH * max(1.0, abs(exact))


def discrete_delta(p, q, steps, eps):
    """Return delta of equal discrete steps by the multinomial law, in 50 digits."""
    total = mpmath.mpf(0)
    for counts in itertools.product(range(steps + 1), repeat=len(p) - 1):
        last = steps - sum(counts)
        if last < 0:
            continue
        paths = mpmath.factorial(steps) / mpmath.fprod(mpmath.factorial(n) for n in (*counts, last))
        masses = [mpmath.fprod(mpmath.mpf(x) ** n for x, n in zip(law, (*counts, last), strict=True)) for law in (p, q)]
        total += paths * max(masses[0] - mpmath.exp(eps) * masses[1], 0)
    return total


@given(
    weights=st.lists(st.floats(0.05, 1.0), min_size=6, max_size=6),
    steps=st.integers(1, 12),
    share=st.floats(0.0, 0.97),
    forward=st.booleans(),
    rate=st.sampled_from([1.0, 0.3, 0.01]),
)
def test_discrete_steps_agree_with_the_multinomial_law(weights, steps, share, forward, rate):
    """Three outcomes, sampled or not, up to twelve steps, in both directions: the bracket has the exact sum."""
    p, q = ([w / sum(part) for w in part] for part in (weights[:3], weights[3:]))
    mixed = [(1 - mpmath.mpf(rate)) * y + mpmath.mpf(rate) * x for x, y in zip(p, q, strict=True)]
    above, below = (mixed, q) if forward else (q, mixed)
    eps = share * steps * float(max(mpmath.log(x / y) for x, y in zip(above, below, strict=True)))
    found = _core.contour_bracket([("discrete", [*p, *q], rate, float(steps))], forward, False, eps)
    assert found is not None
    with mpmath.workdps(50):
        exact = discrete_delta(above, below, steps, mpmath.mpf(eps))
        assert exact == 0 or contained(found, float(mpmath.log(exact)))
    back = _core.contour_bracket([("discrete", [*p, *q], rate, float(steps))], forward, True, float(exact))
    if 1e-12 < exact < 0.5 and back is not None:
        assert back["lower"] - 1e-12 <= eps * (1 + 1e-12)
        assert back["upper"] + 1e-12 >= eps * (1 - 1e-9) or eps < 1e-9


@pytest.mark.parametrize("eps", [0.0, 0.5, 3.0, 9.0])
def test_smoothed_sums_agree_with_the_closed_form(eps):
    """A Gaussian step that a Laplace step of no account keeps from its own formula: theta, within the brackets."""
    found = _core.contour_bracket([("gaussian", [2.0], 1.0, 1.0), ("laplace", [1e-9], 1.0, 1.0)], True, False, eps)
    exact = float(_core.log_theta(eps, 2.0))
    assert found["log_lower"] - 1e-8 <= exact <= found["log_upper"] + 1e-8


def test_smoothing_is_charged_to_the_lower_end_only():
    """At an atom smoothing adds a first-order part, which the lower end gives up and the upper one keeps."""
    p, q = [0.75, 0.25], [0.25, 0.75]
    eps = 3 * math.log(3)  # the largest loss but one of five steps
    found = _core.contour_bracket([("discrete", [*p, *q], 1.0, 5.0)], True, False, eps)
    with mpmath.workdps(50):
        exact = float(mpmath.log(discrete_delta(p, q, 5, mpmath.mpf(eps))))
    assert contained(found, exact)
    assert found["smoothing"] > 0.0
    assert found["log_upper"] - found["log_lower"] < 0.02
