"""One release: exact delta, masses accurate in either tail, and the mechanisms' form."""

from __future__ import annotations

import math

import mpmath as mp
import pytest

import hockeystick as hs
import pairs

mp.mp.dps = 60


def gaussian_cdf(x):
    """Return P(N(0,1) <= x) at 60 digits in either tail."""
    return mp.erfc(-x / mp.sqrt(2)) / 2


def laplace_cdf(x):
    """Return P(Laplace <= x)."""
    return mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2


def exact_masses(cdf, shift, outcome, rate, forward, eps):  # noqa: PLR0917
    """Return p_below, p_above, q_below, q_above of the sampled pair, from the outcome of a loss of the unsampled one."""
    rate, eps, shift = mp.mpf(rate), mp.mpf(eps), mp.mpf(shift)
    inner = 1 + mp.expm1(eps if forward else -eps) / rate  # forward {x <= cut} is {L <= eps}, else the loss falls in x
    x = outcome(mp.log(inner), shift) if inner > 0 else -mp.inf
    base, shifted, base_up, shifted_up = cdf(x), cdf(x - shift), cdf(-x), cdf(shift - x)
    mixed, mixed_up = (1 - rate) * base + rate * shifted, (1 - rate) * base_up + rate * shifted_up
    return (mixed, mixed_up, base, base_up) if forward else (base_up, base, mixed_up, mixed)


def gaussian_outcome(loss, shift):
    """Return the outcome at which N(shift, 1) against N(0, 1) has a loss."""
    return loss / shift + shift / 2


def laplace_outcome(loss, shift):
    """Return the same for Laplace noise, between 0 and the shift."""
    return (loss + shift) / 2


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("rate", [1.0, 0.5, 0.01, 1e-5])
@pytest.mark.parametrize("shift", [0.02, 1.0, 3.0])
def test_gaussian_against_quadrature_free_tails(shift, rate, forward):
    """Masses and delta of the (sampled) Gaussian agree with 60 digits, in tails down to 1e-250."""
    parameters = ("gaussian", [shift], rate, forward)
    for eps in [-3.0, -0.3, -1e-3, 0.0, 1e-4, 0.004, 0.1, 1.0, 5.0, 20.0]:
        exact = exact_masses(gaussian_cdf, shift, gaussian_outcome, rate, forward, eps)
        got = pairs.one_step_masses(*parameters, eps)
        for value, truth in zip(got[:4], exact, strict=True):
            if truth < mp.mpf("1e-250"):
                assert value < 1e-249
                continue
            # the cut is right to a few ulps of eps, which l(eps) may magnify next to log(1 - q)
            inner = 1 + mp.expm1(eps if forward else -eps) / rate
            blur = float(1 + abs(mp.log(truth)) * (1 + 1 / (shift * max(rate, 0.01) * max(float(inner), 1e-3))))
            assert value == pytest.approx(float(truth), rel=1e-14 * blur)
        delta = exact[1] - mp.exp(eps) * exact[3]
        if delta > mp.mpf("1e-250"):
            blur = 1 + abs(math.log(delta)) / (shift * max(rate, 0.01))
            assert pairs.one_step_delta(*parameters, eps) == pytest.approx(float(delta), rel=2e-13 * blur)
        else:
            assert pairs.one_step_delta(*parameters, eps) < 1e-249


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("shift", [0.1, 1.0, 4.0])
def test_laplace_against_distribution_functions(shift, rate, forward):
    """Masses and delta of the (sampled) Laplace agree with 60 digits inside the support, and end with it."""
    parameters = ("laplace", [shift], rate, forward)
    low, high = pairs.one_step_support(*parameters)
    for share in [0.05, 0.3, 0.5, 0.8, 0.99]:
        eps = low + share * (high - low)
        exact = exact_masses(laplace_cdf, shift, laplace_outcome, rate, forward, eps)
        assert pairs.one_step_masses(*parameters, eps)[:4] == pytest.approx([float(x) for x in exact], rel=1e-12)
        delta = float(exact[1] - mp.exp(eps) * exact[3])
        assert pairs.one_step_delta(*parameters, eps) == pytest.approx(delta, rel=1e-11, abs=1e-16)
    assert pairs.one_step_delta(*parameters, high * (1 + 1e-12)) == pytest.approx(0.0, abs=1e-11)
    assert pairs.one_step_masses(*parameters, high * (1 + 1e-12))[:4] == (1.0, 0.0, 1.0, 0.0)
    assert pairs.one_step_masses(*parameters, low * (1 + 1e-12))[0] == pytest.approx(0.0, abs=1e-300)


@pytest.mark.parametrize("forward", [True, False])
def test_sampled_discrete_is_the_mixture(forward):
    """Poisson sampling of a pair with infinite losses equals the discrete pair of mixtures."""
    p, q, rate = [0.5, 0.3, 0.2, 0.0], [0.1, 0.3, 0.0, 0.6], 0.25
    mixed = [(1 - rate) * b + rate * a for a, b in zip(p, q, strict=True)]
    for eps in [-2.0, -0.25, 0.0, 0.1, 0.25, 0.287, 0.5, 2.0]:
        sampled = ("discrete", [*p, *q], rate, forward, eps)
        direct = ("discrete", [*mixed, *q], 1.0, forward, eps)
        assert pairs.one_step_delta(*sampled) == pytest.approx(pairs.one_step_delta(*direct), rel=1e-13, abs=1e-16)
        assert pairs.one_step_masses(*sampled) == pytest.approx(pairs.one_step_masses(*direct), rel=1e-13, abs=1e-16)


@pytest.mark.parametrize(("eps", "delta"), [(1.0, 2.0712e-4), (0.5, 2.03254e-3)])
def test_fixed_size_published_values(eps, delta):
    """One round at rate 0.1 and shift 1 has the values computed independently when the curve was derived."""
    pair = hs.FixedSizeSampled(hs.Gaussian(2.0), 10, 1, replacement=False)._pair("replace")
    assert pair.delta(True, eps) == pytest.approx(delta, rel=5e-5)


def test_fixed_size_is_the_larger_poisson_curve():
    """The fixed-size curve is the maximum of the two Poisson directions, and its own reverse."""
    for eps in [-2.0, -0.5, -0.05, 0.0, 0.05, 0.5, 2.0]:
        fixed = pairs.one_step_delta("fixed_size_gaussian", [1.0, 0.1], 1.0, True, eps)
        both = [pairs.one_step_delta("gaussian", [1.0], 0.1, forward, eps) for forward in (True, False)]
        assert fixed == pytest.approx(max(both), rel=1e-13)
        mirrored = pairs.one_step_delta("fixed_size_gaussian", [1.0, 0.1], 1.0, True, -eps)
        assert fixed == pytest.approx(-math.expm1(eps) + math.exp(eps) * mirrored, rel=1e-9)
