"""Q, log Q and its inverse at their limits, and by their symmetries; divergence/test_hockey_stick.py has the tables."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import hockeystick as hs

inf = np.inf


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (hs.q, -inf, 1.0),
        (hs.q, inf, 0.0),
        (hs.q, 0.0, 0.5),
        (hs.q, -0.0, 0.5),
        (hs.q, 1e300, 0.0),
        (hs.q, -1e300, 1.0),
        (hs.log_q, -inf, 0.0),
        (hs.log_q, inf, -inf),
        (hs.log_q, 0.0, -np.log(2)),
        (hs.log_q, -1e300, 0.0),
        (hs.log_q, 1e200, -inf),
        (hs.q_inv, 0.0, inf),
        (hs.q_inv, 1.0, -inf),
        (hs.q_inv, 0.5, 0.0),
    ],
)
def test_limits(function: np.ufunc, x: float, expected: float) -> None:
    """Infinities and ends of the domain give the limits, without any floating-point warning."""
    with np.errstate(all="raise"):
        assert function(x) == expected


@hypothesis.given(st.floats(-37, 37))
def test_reflection(x: float) -> None:
    """The two tails add up to one."""
    assert abs(hs.q(x) + hs.q(-x) - 1) <= 4e-16


@hypothesis.given(st.floats(-37, 37))
def test_logarithm(x: float) -> None:
    """Log Q is the logarithm of Q."""
    np.testing.assert_allclose(np.exp(hs.log_q(x)), hs.q(x), rtol=1e-13)


@hypothesis.given(st.floats(1e-300, 0.5))
def test_round_trip(p: float) -> None:
    """Q(q_inv(p)) = p, to the conditioning of Q in its tail."""
    x = hs.q_inv(p)
    np.testing.assert_allclose(hs.q(x), p, rtol=4e-15 * (1 + x * x))


@hypothesis.given(st.floats(0.5, 1.0, exclude_max=True))
def test_inverse_is_odd(p: float) -> None:
    """q_inv(1 - p) = -q_inv(p); 1 - p is exact above one half."""
    assert hs.q_inv(p) == -hs.q_inv(1 - p)


@hypothesis.given(st.floats(-40, 40), st.floats(-40, 40))
def test_monotone(x: float, y: float) -> None:
    """Q and log Q never increase by more than their error."""
    low, high = sorted((x, y))
    assert hs.q(high) <= hs.q(low) * (1 + 4e-15)
    assert hs.log_q(high) <= hs.log_q(low) * (1 - 4e-15)
