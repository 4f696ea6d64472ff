"""Contours in slices of the losses: few steps of rare samples, whose losses have many scales."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

import hockeystick as hs
import pairs

CELLS = [  # sigma, rate, eps: in the bulk of the losses, among large ones, beyond all usual ones
    (0.5, 0.001, 1.1),
    (0.75, 0.001, 0.1),
    (1.0, 0.01, 0.0),
    (1.0, 0.01, 0.05),
    (1.0, 0.01, 1.0),
    (1.0, 0.01, 8.0),
    (1.2, 1e-4, 0.01),
    (2.0, 0.001, 0.004),
    (0.3, 1e-5, 2.0),
]
DIGITS = {2: 1e-9, 3: 1e-7}  # of the reference, by steps, relatively


def bracket(sigma, rate, steps, eps=None, delta=None):
    """Return what the contour of removing a record says of delta or of epsilon."""
    ledger = [("gaussian", [1.0 / sigma], rate, float(steps))]
    return pairs.contour_bracket(ledger, True, delta is not None, eps if delta is None else delta)


def one_step(sigma, rate, y):
    """Return delta(y) of one step, the closed form: P(x > t) - e^y Q(x > t) where the loss at t is y."""
    inside = y > np.log1p(-rate)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        t = 0.5 + sigma**2 * np.log(np.expm1(y) / rate + 1.0)
        above, shifted = ndtr(-t / sigma), ndtr((1.0 - t) / sigma)
        value = rate * (shifted - above) - np.expm1(y) * above
        deep = (
            np.exp(np.log(rate) + log_ndtr((1.0 - t) / sigma)) - np.exp(y + np.log1p(-(1 - rate) * np.exp(-y))) * above
        )
    value = np.where(y > 1.0, deep, value)
    return np.where(inside, value, -np.expm1(y))


def grid(sigma, rate, points):
    """Return losses and P-masses of points x, by the trapezoid rule: as fine as the bulk of the losses, it converges exponentially."""
    x = np.linspace(-9.5 * sigma, 1.0 + 18.0 * sigma, points)
    t = (2 * x - 1) / (2 * sigma**2)
    losses = np.where(t < 30, np.log1p(rate * np.expm1(np.minimum(t, 30.0))), t + np.log(rate))
    masses = np.exp(losses - x**2 / (2 * sigma**2)) / (sigma * np.sqrt(2 * np.pi)) * (x[1] - x[0])
    return losses, masses


def exact_delta(sigma, rate, steps, eps):
    """Return delta of two or three steps: the closed form of one, integrated over the losses of the others."""
    losses, masses = grid(sigma, rate, 600_000 if steps == 2 else 2400)
    if steps == 2:
        return float(masses @ one_step(sigma, rate, eps - losses))
    return float(
        sum(
            mass * (masses @ one_step(sigma, rate, eps - loss - losses))
            for loss, mass in zip(losses, masses, strict=True)
        )
    )


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("sigma", "rate", "eps", "steps"), [(*cell, 2) for cell in CELLS] + [(1.0, 0.05, 0.3, 3), (0.8, 0.05, 5.0, 3)]
)
def test_deltas_agree_with_integrals(sigma, rate, eps, steps):
    """The bracket is narrow and has the integral over the losses of all steps but one."""
    exact = exact_delta(sigma, rate, steps, eps)
    found = bracket(sigma, rate, steps, eps=eps)
    assert found["lower"] <= exact * (1 + DIGITS[steps])
    assert found["upper"] >= exact * (1 - DIGITS[steps])
    assert found["upper"] <= found["lower"] * (1 + 1e-6)


@pytest.mark.parametrize(("sigma", "rate", "eps"), [cell for cell in CELLS if cell[2] > 0])
def test_epsilons_invert_deltas(sigma, rate, eps):
    """Delta at either end of epsilon's bracket is on its side."""
    delta = exact_delta(sigma, rate, 2, eps)
    found = bracket(sigma, rate, 2, delta=delta)
    assert found["lower"] <= eps * (1 + DIGITS[2]) + 1e-12
    assert found["upper"] >= eps * (1 - DIGITS[2]) - 1e-12
    assert found["upper"] - found["lower"] <= 1e-6 * eps


def test_most_of_these_are_asked_in_slices():
    """The cells are those that slices are for."""
    found = [bracket(sigma, rate, 2, eps=eps)["slices"] for sigma, rate, eps in CELLS]
    assert sum(count > 0 for count in found) >= len(CELLS) - 2


@functools.cache
def sharp(sigma, rate, steps, eps):
    """Return the bracket of a line without slices: of two entries that differ by nothing, a ledger of which has none."""
    ledger = [("gaussian", [1.0 / sigma], rate, steps - 1.0), ("gaussian", [1.0 / sigma], rate, 1.0)]
    return pairs.contour_bracket(ledger, True, False, eps)


@given(
    sigma=st.floats(0.3, 3.0),
    log_rate=st.floats(-11.5, -0.8),
    steps=st.integers(2, 400),
    log_eps=st.floats(-6.0, 2.0),
)
def test_slices_agree_with_one_line(sigma, log_rate, steps, log_eps):
    """Both brackets of one delta overlap, whichever way it was found."""
    rate, eps = float(np.exp(log_rate)), float(np.exp(log_eps))
    found, plain = bracket(sigma, rate, steps, eps=eps), sharp(sigma, rate, float(steps), eps)
    if found is None or plain is None:
        return
    assert found["log_lower"] <= plain["log_upper"] + 1e-12 * abs(plain["log_upper"])
    assert plain["log_lower"] <= found["log_upper"] + 1e-12 * abs(found["log_upper"])


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
def test_a_delta_does_not_depend_on_what_was_asked_before():
    """Cells asked in one order or the other, or alone, have the same answers to the last bit."""
    steps, eps = (a.ravel() for a in np.meshgrid([2.0, 3, 5, 9, 14, 30], np.geomspace(0.01, 6.0, 9)))
    together = hs.dpsgd_delta(1.0, 0.01, steps, eps)
    backwards = hs.dpsgd_delta(1.0, 0.01, steps[::-1], eps[::-1])[::-1]
    alone = [float(hs.dpsgd_delta(1.0, 0.01, t, e)) for t, e in zip(steps, eps, strict=True)]
    np.testing.assert_array_equal(together, backwards)
    np.testing.assert_array_equal(together, alone)


def test_deltas_fall_in_eps_and_rise_in_steps():
    """Certified upper ends follow the exact curve closely enough to be monotone on a coarse grid."""
    deltas = hs.dpsgd_delta(0.8, 0.001, np.arange(2.0, 40.0)[:, None], np.geomspace(0.01, 5.0, 30))
    assert np.all(np.diff(deltas, axis=1) < 0)
    assert np.all(np.diff(deltas, axis=0) > 0)


def test_the_method_names_the_slices():
    """An answer by slices says so."""
    accountant = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 3)
    found = accountant.delta_bracket(0.05)
    assert "slices of the losses" in found.method
    assert found.status == "certified"
