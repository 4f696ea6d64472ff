"""Sampling rates close to 1, where 1 - rate + rate e^t and its inverse cancel: each case once lay outside its own bracket."""

import math

import mpmath as mp
import pytest

import high_precision
import pairs


def laplace_add_delta(shift, rate, eps):
    """Return delta of sampled Laplace noise where a record is added: half of P has the largest loss, the rest by x."""
    shift, rate, eps = mp.mpf(shift), mp.mpf(rate), mp.mpf(eps)
    ratio = lambda x: 1 - rate + rate * mp.exp(2 * x - shift)  # of Q to P for 0 < x < shift
    end = (mp.log((mp.exp(-eps) - (1 - rate)) / rate) + shift) / 2
    atom = (1 - mp.exp(eps) * ratio(0)) / 2
    return atom + mp.quad(lambda x: mp.exp(-x) / 2 * (1 - mp.exp(eps) * ratio(x)), [0, end])


@pytest.mark.parametrize(("shift", "rate"), [(20.0, 1 - 1e-6), (25.0, 1 - 1e-9), (30.0, 1 - 1e-14)])
@pytest.mark.parametrize("below", [1e-3, 1e-6, 1e-9, 1e-11])
def test_delta_just_below_the_largest_loss_of_laplace_noise(shift, rate, below):
    """Both engines' brackets of one step hold the integral; they were [0, 0] where delta is 5e-7."""
    with mp.workdps(50):
        top = -mp.log(1 - mp.mpf(rate) + mp.mpf(rate) * mp.exp(-mp.mpf(shift)))
        eps = float(top) - below
        truth = laplace_add_delta(shift, rate, eps)
        one = pairs.pair("laplace", [shift], rate).one_step(False, False, eps)
        grid = pairs.pld_bracket([("laplace", [shift], rate, 1.0)], False, False, eps, 0.0, 1e-3)
        assert one[0] <= truth <= one[1]
        assert grid[0] <= truth <= grid[1]


def test_a_loss_that_is_nearly_certain_is_not_lowered():
    """At sigma = 1/28 every one of T added steps loses -log(1 - q), but for e^-95: epsilon is T of it and a Gaussian's."""
    rate, steps, mu = 0.9999999998232121, 1e5, 0.3
    found = pairs.pld_bracket(
        [("gaussian", [28.0], rate, steps), ("gaussian", [mu], 1.0, 1.0)], False, True, 1e-5, 0.0, 1e-3
    )
    with mp.workdps(40):
        certain = -mp.log1p(-mp.mpf(rate)) * steps
        rest = mp.findroot(lambda e: high_precision.theta(e, mu) - mp.mpf(10) ** -5, 1.1)
        assert found[0] <= certain + rest <= found[1]


@pytest.mark.parametrize("rate", [1 - 1e-6, 1 - 1e-9, 1 - 1e-12])
def test_moments_of_an_added_record_keep_their_digits(rate):
    """E (1 + z)^-2 at sigma = 0.2, which is ruled by losses close to -log(1 - q); their error was 1e5 times the stated one."""
    (value, error), _ = pairs.sampled_gaussian_nodes(0.2, rate, False, 2.0, 1.0, 0)
    with mp.workdps(40):
        sigma, odds = mp.mpf(0.2), mp.mpf(rate)
        inner = lambda x: 1 - odds + odds * mp.exp((2 * x - 1) / (2 * sigma**2))
        density = lambda x: mp.exp(-(x**2) / (2 * sigma**2)) / (sigma * mp.sqrt(2 * mp.pi))
        step = mp.mpf(1) / 200  # of a trapezoidal sum, right to e^{-2 pi pi sigma^2/step} and better
        total = step * mp.fsum(inner(k * step) ** -2 * density(k * step) for k in range(-1200, 600))
        assert abs(mp.log(total) - value) <= error
        assert error <= 1e-12


def test_a_removed_rare_record_near_the_largest_loss():
    """The unsampled loss carries the rounding of log q: near its bound that is more than an ulp of eps."""
    shift, rate, eps = 35.815076443661205, 5.685145872729031e-17, 0.18541598645165566
    with mp.workdps(40):
        loss = mp.log1p(mp.expm1(mp.mpf(eps)) / mp.mpf(rate))
        truth = -mp.mpf(rate) * mp.expm1((loss - mp.mpf(shift)) / 2)
    lower, upper = pairs.pair("laplace", [shift], rate).one_step(True, False, eps)
    assert lower <= truth <= upper


def test_decay_is_not_rounded_to_nothing():
    """Far out |phi| of nearly unsampled Gaussian losses is e^{-omega^2/2 sigma^2}, which the bound may not undercut."""
    sigma, h = 27.89004075115846, 128.25433904129966
    _, rows = pairs.sampled_gaussian_nodes(sigma, 0.9999999942127152, False, -0.3601468848511239, h, 2)
    assert rows[2][3] >= -((2 * h) ** 2) / (2 * sigma**2) * (1 + 1e-6)
    assert math.isfinite(rows[2][3])
