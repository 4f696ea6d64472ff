"""Renyi divergences of a ledger: closed forms, quadrature, and what they say of epsilon."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
from compositions import MIXED, REPLACED, composed
from slow_values import committed


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.01), (0.8, 0.3), (3.0, 1e-4)])
@pytest.mark.parametrize("order", [2.0, 3.0, 7.0, 1.5, 4.4])
def test_rdp_of_sampled_gaussian(noise, rate, order):
    """Exact in the larger direction, at orders between integers as far as numbers near 1 have digits."""
    step = hs.PoissonSampled(hs.Gaussian(noise), rate)
    truth = max(committed("renyi_of_sampled_gaussian", 1 / noise, rate, order, forward) for forward in (True, False))
    found = composed((step, 10)).rdp(order)
    assert 10 * truth * (1 - 1e-14) <= found
    digits = 1e-10 if order == int(order) else 1e-8 + 1e-12 / ((order - 1) * float(truth))
    assert found <= 10 * truth * (1 + digits)


def test_rdp_closed_forms():
    """Gaussian a/(2 s^2), Laplace by its integral, (epsilon, 0)-DP by two terms, and sums over the ledger."""
    assert composed((hs.Gaussian(2.0), 8)).rdp([1.0, 2.0, 17.5]).tolist() == pytest.approx([1.0, 2.0, 17.5], rel=1e-13)
    for scale, order in itertools.product([0.2, 1.0, 1e3], [1.0, 1.1, 2.0, 30.0]):
        with mp.workdps(40):
            r, a = 1 / mp.mpf(scale), mp.mpf(order)
            # Outside of [0, r] the loss is r or -r; between, 2x - r with density e^{-(r - ...)}/2.
            moment = lambda s, r=r: (
                mp.exp(s * r) / 2
                + mp.exp(-(s + 1) * r) / 2
                + mp.quad(lambda x: mp.exp(s * (2 * x - r) - (r - x)) / 2, [0, r])
            )
            truth = mp.diff(lambda s, f=moment: mp.log(f(s)), 0) if a == 1 else mp.log(moment(a - 1)) / (a - 1)
        found = composed((hs.Laplace(scale), 1)).rdp(order)
        assert truth * (1 - mp.mpf("1e-13")) <= found <= truth * (1 + mp.mpf("1e-9"))
    p = 1 / (1 + math.exp(-0.5))
    truth = math.log(p**3 * (1 - p) ** -2 + (1 - p) ** 3 * p**-2) / 2
    assert composed((hs.ApproximateDP(0.5, 0.0), 1)).rdp(3.0) == pytest.approx(truth, rel=1e-12)
    assert composed((hs.ApproximateDP(0.5, 1e-9), 1)).rdp(3.0) == math.inf
    both = composed((hs.Gaussian(2.0), 1), (hs.Laplace(3.0), 2))
    parts = composed((hs.Gaussian(2.0), 1)).rdp(4.0) + 2 * composed((hs.Laplace(3.0), 1)).rdp(4.0)
    assert both.rdp(4.0) == pytest.approx(parts, rel=1e-13)


@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_rdp_of_every_mechanism(adjacency):
    """Divergences are finite but for infinite losses, do not fall with the order, and (order - 1) D is convex."""
    orders = np.array([1.0, 1.25, 2.0, 3.0, 5.0, 9.0])
    for mechanism in REPLACED if adjacency == "replace" else MIXED:
        found = composed((mechanism, 1), adjacency=adjacency).rdp(orders)
        if isinstance(mechanism, hs.ApproximateDP):
            assert np.all(found[1:] == math.inf)
            continue
        assert np.all((found > 0) & (found < math.inf))
        assert np.all(np.diff(found) >= -1e-5 * found[1:])
        slopes = np.diff((orders - 1) * found) / np.diff(orders)
        assert np.all(np.diff(slopes) >= -1e-4 * slopes[1:])


DEEP = {
    "alone": [(hs.ExponentialMechanism(0.02), 2049)],
    "beside noise": [(hs.ExponentialMechanism(0.1), 200), (hs.Gaussian(20.0), 10)],
}
STEPWISE = {  # steps, delta, and the epsilon of Renyi accounting of bounded ranges by others' programs
    "50 of 0.1": ([(hs.ExponentialMechanism(0.1), 50)], 1e-6, 1.6356),
    "1000 of 0.1": ([(hs.ExponentialMechanism(0.1), 1000)], 1e-6, 8.8373),
    "100 of 1": ([(hs.ExponentialMechanism(1.0), 100)], 1e-6, 36.36),
    "10000 of 0.05": ([(hs.ExponentialMechanism(0.05), 10_000)], 1e-9, 18.39),
    "beside noise": ([(hs.ExponentialMechanism(0.1), 200), (hs.Gaussian(20.0), 10)], 1e-6, 3.909),
    "of two kinds": ([(hs.ExponentialMechanism(0.1), 200), (hs.ExponentialMechanism(0.2), 50)], 1e-6, math.inf),
}


@pytest.mark.parametrize("name", DEEP)
def test_never_worse_than_renyi(name):
    """At tiny deltas compositions of exponential mechanisms are converted from the best order, which the answer names."""
    accountant, delta = composed(*DEEP[name], adjacency="replace"), 1e-60
    found = accountant.epsilon_bracket(delta)
    assert found.lower < found.upper
    assert "Renyi divergence of order" in found.method
    orders = 1 + np.geomspace(1e-2, 1e3, 400)
    log_delta = (orders - 1) * (accountant.rdp(orders) - found.upper + np.log1p(-1 / orders)) - np.log(orders)
    assert np.min(log_delta) == pytest.approx(math.log(delta), rel=1e-3)
    assert accountant.delta(found.upper) <= delta * (1 + 1e-3)
    assert accountant.log_delta(found.upper) <= math.log(delta) + 1e-3


@pytest.mark.parametrize("name", STEPWISE)
def test_better_than_renyi(name):
    """Exponential mechanisms, alone and beside other steps, have a bound below that of every order."""
    steps, delta, most = STEPWISE[name]
    accountant = composed(*steps, adjacency="replace")
    found = accountant.epsilon_bracket(delta)
    assert found.lower < found.upper <= most
    orders = 1 + np.geomspace(1e-2, 1e3, 400)
    converted = accountant.rdp(orders) + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    assert found.upper < converted.min()
    assert accountant.delta(found.upper) <= delta * (1 + 1e-3)
    if steps[0][1] <= 100:
        curve = accountant.epsilon_curve(delta)
        assert np.all(np.diff(curve) >= 0)
        assert curve[-1] == pytest.approx(found.upper, rel=1e-9)
