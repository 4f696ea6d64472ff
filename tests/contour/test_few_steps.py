"""Few steps of rare samples: in slices of the losses, whose scales are many, and far down by the number of large losses."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator
from scipy.special import log_ndtr, logsumexp

import hockeystick as hs
import pairs


def losses_of(sigma, rate, x):
    """Return the losses log(1 - q + q e^t) of the outcomes x."""
    return np.logaddexp(np.log1p(-rate), np.log(rate) + (2 * x - 1) / (2 * sigma**2))


def log_one_step(sigma, rate, y):
    """Return log delta(y) of one step: log(P(x > t) - e^y Q(x > t)), where the loss at t is y."""
    inside = y > np.log1p(-rate) * (1 - 1e-12)
    with np.errstate(all="ignore"):
        log_growth = np.where(y > 30, y + np.log1p(-(1 - rate) * np.exp(-y)), np.log(np.expm1(y) + rate))
        t = 0.5 + sigma**2 * (log_growth - np.log(rate))
        # P - e^y Q = q (N1 - Q) - (e^y - 1) Q: both logarithms, the second the smaller one
        first = np.log(rate) + log_ndtr((1 - t) / sigma)
        second = log_growth + log_ndtr(-t / sigma)
        below = np.log(-np.expm1(np.minimum(y, -1e-300)))
        value = np.where(first > second, first + np.log(-np.expm1(np.minimum(second - first, -1e-300))), -np.inf)
    return np.where(inside & np.isfinite(value), value, below)


def outcomes(sigma, rate, eps):
    """Return losses and logarithms of P-masses, on a lattice fine enough for the slope of the density where one loss is eps."""
    kink = 0.5 + sigma**2 * (eps + math.log(1 / rate))
    start, end = -10 * sigma, kink + 14 * sigma
    x = np.linspace(start, end, max(1001, int(2.5 * (end - start) * kink / sigma**2)))
    losses = losses_of(sigma, rate, x)
    log_masses = losses - x**2 / (2 * sigma**2) + math.log((x[1] - x[0]) / (sigma * math.sqrt(2 * math.pi)))
    return losses, log_masses


def two_steps(sigma, rate, eps):
    """Return log delta of two steps: one integral over a closed form, by Gauss's rule on panels that shrink towards its kink.

    The kink is where the first loss alone is eps; around it log delta changes on the scale of a single small loss.
    """
    kink = 0.5 + sigma**2 * (eps + math.log1p(-(1 - rate) * math.exp(-eps)) - math.log(rate))
    width = min(0.25 * sigma, 4 * sigma**2 / max(kink, 10 * sigma))
    graded = np.geomspace(1e-13 * sigma, 3 * width, 140)
    ends = np.unique(
        np.concatenate([np.arange(-12 * sigma, kink + 14 * sigma, width), kink + graded, kink - graded, [kink]])
    )
    middle, half = 0.5 * (ends[1:] + ends[:-1]), 0.5 * (ends[1:] - ends[:-1])
    nodes, weights = np.polynomial.legendre.leggauss(16)
    x = (middle[:, None] + half[:, None] * nodes).ravel()
    losses = losses_of(sigma, rate, x)
    log_density = losses - x**2 / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))
    log_weights = np.log((half[:, None] * weights).ravel())
    return float(logsumexp(log_weights + log_density + log_one_step(sigma, rate, eps - losses)))


def exact_log_delta(sigma, rate, steps, eps):
    """Return log delta by a recursion over the steps, in logarithms: delta_{t+1}(y) = E delta_t(y - L), interpolated by cubics."""
    losses, log_masses = outcomes(sigma, rate, eps)
    least, scale = steps * math.log1p(-rate), -math.log1p(-rate)
    y = np.union1d(
        scale * np.sinh(np.linspace(np.arcsinh(least / scale), np.arcsinh((eps - least) / scale), 300)),
        np.linspace(least, eps - least, 300),
    )  # fine near 0, where delta bends on the scale of one loss
    known = log_one_step(sigma, rate, y)
    for _ in range(steps - 2):
        parts = np.array_split(y, 16)
        known = np.concatenate(
            [logsumexp(log_masses + interpolated(y, known, part[:, None] - losses), axis=1) for part in parts]
        )
    return float(logsumexp(log_masses + interpolated(y, known, eps - losses)))


def interpolated(y, known, at):
    """Return log delta at any points; below the grid delta is 1 - e^y."""
    below = np.log(-np.expm1(np.minimum(at, -1e-12)))
    return np.where(at <= y[0], below, PchipInterpolator(y, known)(np.clip(at, y[0], y[-1])))


def three_steps(sigma, rate, eps):
    """Return delta of three steps: the closed form of one, integrated over the losses of the others by the trapezoid rule."""
    x = np.linspace(
        -9.5 * sigma, 1.0 + 18.0 * sigma, 2400
    )  # as fine as the bulk of the losses it converges exponentially
    losses = losses_of(sigma, rate, x)
    masses = np.exp(losses - x**2 / (2 * sigma**2)) / (sigma * np.sqrt(2 * np.pi)) * (x[1] - x[0])
    one = lambda loss: np.exp(log_one_step(sigma, rate, eps - loss - losses))
    return float(sum(mass * (masses @ one(loss)) for loss, mass in zip(losses, masses, strict=True)))


def bracket(sigma, rate, steps, eps=None, delta=None):
    """Return what the contour of removing a record says of delta or of epsilon."""
    ledger = pairs.sampled_gaussians(sigma, rate, steps)
    return pairs.contour_bracket(ledger, True, delta is not None, eps if delta is None else delta)


TWO_STEPS = [  # sigma, rate, eps
    (2.0, 1e-3, 20.0),
    (1.0, 1e-5, 20.0),
    (4.0, 0.01, 5.0),
    (4.0, 0.0044, 0.0874),
    (6.0, 1e-4, 3.0),
    (20.0, 0.2, 1.0),
    (0.3, 1e-6, 15.0),
    (1.2, 0.05, 18.0),
]


def test_two_steps_lie_inside():
    """Log delta lies in the bracket, also of 30 random questions, and below 1e-300 the bracket is a hundredth of it or less."""
    random = np.random.default_rng(19)
    cells = [np.exp([random.uniform(-1.2, 3), random.uniform(-13, -1), random.uniform(-2, 3)]) for _ in range(30)]
    for sigma, rate, eps in [*TWO_STEPS, *map(tuple, cells)]:
        exact = two_steps(sigma, rate, eps)
        found = bracket(sigma, rate, 2, eps)
        assert found["log_lower"] <= exact + 1e-7, (sigma, rate, eps)
        assert found["log_upper"] >= exact - 1e-7, (sigma, rate, eps)
        if exact < -700:
            assert found["log_upper"] - found["log_lower"] <= 0.011 * abs(exact)


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "eps"),
    [(2.0, 1e-3, 4, 12.0), (4.0, 0.01, 4, 5.0), (1.0, 1e-4, 12, 12.0), (0.7, 0.01, 20, 15.0), (3.0, 0.003, 5, 3.0)],
)
def test_more_steps_lie_inside(sigma, rate, steps, eps):
    """The same by recursion, whose interpolation errs by less than 1e-4 of log delta."""
    exact = exact_log_delta(sigma, rate, steps, eps)
    found = bracket(sigma, rate, steps, eps)
    error = 0.02 + 1e-4 * abs(exact)
    assert found["log_lower"] <= exact + error
    assert found["log_upper"] >= exact - error
    assert found["log_upper"] - found["log_lower"] <= 0.011 * abs(exact)


def test_lower_ends_fall_with_the_noise():
    """The epsilon of many rare steps at a deep delta is narrow, and falls as the noise rises."""
    rate, steps, delta = 7.880451307206058e-06, 424349, 8.245604471992827e-28
    before = math.inf
    for sigma in (0.9, 1.0, 1.05, 1.3, 1.5):
        found = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(sigma), rate), steps).epsilon_bracket(delta)
        assert found.upper - found.lower <= 1e-3 * found.upper
        assert found.upper < before
        before = found.lower


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
DIGITS = {2: 1e-9, 3: 1e-7}  # of the references, by steps, relatively


def assert_narrow_around(found, exact, digits):
    """Check that a bracket of delta has the exact value, and is narrow."""
    assert found["lower"] <= exact * (1 + digits)
    assert found["upper"] >= exact * (1 - digits)
    assert found["upper"] <= found["lower"] * (1 + 1e-6)


@pytest.mark.parametrize(("sigma", "rate", "eps"), CELLS)
def test_deltas_and_epsilons_agree_with_integrals(sigma, rate, eps):
    """The bracket is narrow and has the integral over the losses of the other step; epsilon inverts it."""
    exact = math.exp(two_steps(sigma, rate, eps))
    assert_narrow_around(bracket(sigma, rate, 2, eps), exact, DIGITS[2])
    if eps == 0:
        return
    found = bracket(sigma, rate, 2, delta=exact)
    assert found["lower"] <= eps * (1 + DIGITS[2]) + 1e-12
    assert found["upper"] >= eps * (1 - DIGITS[2]) - 1e-12
    assert found["upper"] - found["lower"] <= 1e-6 * eps


@pytest.mark.share(2)
@pytest.mark.parametrize(("sigma", "rate", "eps"), [(1.0, 0.05, 0.3), (0.8, 0.05, 5.0)])
def test_three_steps_agree_with_integrals(sigma, rate, eps):
    """So do three steps."""
    assert_narrow_around(bracket(sigma, rate, 3, eps), three_steps(sigma, rate, eps), DIGITS[3])


def test_most_of_these_are_asked_in_slices():
    """The cells are those that slices are for."""
    found = [bracket(sigma, rate, 2, eps=eps)["slices"] for sigma, rate, eps in CELLS]
    assert sum(count > 0 for count in found) >= len(CELLS) - 2


@functools.cache
def sharp(sigma, rate, steps, eps):
    """Return the bracket of a line without slices: of two entries that differ by nothing, a ledger of which has none."""
    ledger = pairs.sampled_gaussians(sigma, rate, steps - 1) + pairs.sampled_gaussians(sigma, rate, 1)
    return pairs.contour_bracket(ledger, True, False, eps)


@given(
    sigma=st.floats(0.3, 3.0), log_rate=st.floats(-11.5, -0.8), steps=st.integers(2, 400), log_eps=st.floats(-6.0, 2.0)
)
def test_slices_agree_with_one_line(sigma, log_rate, steps, log_eps):
    """Both brackets of one delta overlap, whichever way it was found."""
    rate, eps = float(np.exp(log_rate)), float(np.exp(log_eps))
    found, plain = bracket(sigma, rate, steps, eps=eps), sharp(sigma, rate, float(steps), eps)
    if found is None or plain is None:
        return
    assert found["log_lower"] <= plain["log_upper"] + 1e-12 * abs(plain["log_upper"])
    assert plain["log_lower"] <= found["log_upper"] + 1e-12 * abs(found["log_upper"])
