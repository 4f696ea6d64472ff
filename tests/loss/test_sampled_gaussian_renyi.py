"""Renyi divergences of sampled Gaussian noise at orders that are no integers, against quadrature."""

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs


@pytest.mark.share(12, by_day=3)
@pytest.mark.parametrize(("noise", "rate"), [(0.2, 1e-6), (0.5, 0.999), (1.3, 1e-3), (20.0, 0.5), (300.0, 0.9)])
@pytest.mark.parametrize("order", [1.05, 1.3, 2.5, 10.9, 60.5])
def test_rdp_of_sampled_gaussian_between_integers(noise, rate, order):
    """Above quadrature, and near it."""
    with mp.workdps(20):
        r = 1 / mp.mpf(noise)
        ratio = lambda x: 1 - mp.mpf(rate) + rate * mp.exp(r * x - r * r / 2)
        points = mp.linspace(-18, 18 + order * r, 12 + int(order * r / 6))
        truth = mp.log(mp.quad(lambda x: mp.npdf(x) * ratio(x) ** order, points)) / (order - 1)
    found = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), rate)).rdp(order)
    assert truth * (1 - mp.mpf("1e-13")) <= found
    assert found <= truth * (1 + mp.mpf("1e-6")) + mp.mpf("1e-10")


@pytest.mark.parametrize(
    ("noise", "rate"), [(0.03, 0.1), (0.6, 1e-3), (1.0, 5e-324), (2.0, 0.3), (1e6, 0.5), (1e-5, 0.01)]
)
def test_divergences_do_not_fall_with_the_order(noise, rate):
    """Neither where the sum would be too long, nor where its error is the whole, nor at integers."""
    step = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), rate))
    found = step.rdp(np.array([1.0, 1.0005, 1.05, 1.5, 1.99, 2.0, 2.01, 2.5, 3.0, 3.5, 16.0, 16.5, 64.0, 64.5]))
    assert (np.diff(found) >= -1e-6 * found[1:] - 1e-9).all()
    assert (found >= 0).all()
