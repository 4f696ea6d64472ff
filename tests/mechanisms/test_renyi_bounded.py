"""Mechanisms known by Renyi divergences: compositions against closed forms, a peer and enumeration."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from compositions import composed
from hockeystick import _core
from hockeystick.accounting import private_selection


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 20.0, 3000.0])
def test_zcdp_is_its_conversion(rho):
    """Any split of rho over steps gives the conversion of the sum, to the grid of the orders."""
    for count in (1, 7):
        accountant = composed((hs.ZeroConcentratedDP(rho / count), count))
        for delta in (1e-9, 1e-5, 0.01):
            truth = hs.zcdp_epsilon(rho, delta)
            assert truth * (1 - 1e-9) <= accountant.epsilon(delta) <= truth * (1 + 2e-3) + 1e-12
            assert hs.zcdp_delta(rho, truth + 0.1) * (1 - 1e-9) <= accountant.delta(truth + 0.1)


@given(
    masses=st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(0.01, 1.0)), min_size=2, max_size=8),
    order=st.floats(1.01, 50.0),
    raised=st.floats(0.0, 9e-4),
)
def test_pairs_of_each_direction_are_taken_alone(masses, order, raised):
    """The divergence of a direction is that of its own pair, whatever the other one is, and of masses above 1 with them."""
    p, q = (np.array(side) / sum(side) for side in zip(*masses, strict=True))
    pair = hs.Discrete(tuple(p), tuple(q))
    nothing = hs.Discrete((1.0,), (1.0,))
    truth = renyi(p, q, order)
    rounded = 1e-15 * order / (order - 1.0)  # the masses sum to 1 but for their last digits
    for pairs in (hs.DiscretePairs(pair, nothing), hs.DiscretePairs(nothing, pair), hs.DiscretePairs(pair, pair)):
        assert truth * (1 - 1e-12) - rounded <= composed((pairs, 1)).rdp(order) <= truth * (1 + 1e-9) + 1e-9
    above = _core.discrete_pairs(list(p * (1 + raised)), list(q), [1.0], [1.0])
    assert above.renyi(order, forward=True) >= renyi(p * (1 + raised), q, order) * (1 - 1e-12) - rounded


def renyi(p, q, order):
    """Return the Renyi divergence of order above 1 of masses that need not sum to 1, to 30 digits."""
    with mp.workdps(30):
        mass = mp.fsum(
            mp.mpf(x) ** order / mp.mpf(y) ** (order - 1.0) for x, y in zip(p.tolist(), q.tolist(), strict=True)
        )
        return float(mp.log(mass) / (order - 1.0))


@given(rho=st.floats(1e-4, 5.0), noise=st.floats(0.5, 20.0), delta=st.floats(1e-10, 0.1))
def test_mixed_ledgers_bound_gaussians(rho, noise, delta):
    """A Gaussian known by its rho alone, beside another known exactly, leaks no more than the bound of both."""
    exact = composed((hs.Gaussian(1 / math.sqrt(2 * rho)), 1), (hs.Gaussian(noise), 3)).epsilon(delta)
    found = composed((hs.ZeroConcentratedDP(rho), 1), (hs.Gaussian(noise), 3)).epsilon_bracket(delta)
    assert found.lower == pytest.approx(composed((hs.Gaussian(noise), 3)).epsilon(delta), rel=1e-6, abs=1e-9)
    assert found.upper >= exact
    assert found.status == "certified"
    assert found.method.startswith("Renyi divergence of order")


@given(
    noise=st.floats(0.5, 20.0),
    count=st.integers(1, 40),
    log10_failure=st.floats(-12.0, -0.3),
    eps=st.floats(0.01, 8.0),
    log10_delta=st.floats(-10.0, -0.05),
)
def test_failures_bound_noise_that_fails(noise, count, log10_failure, eps, log10_delta):
    """Gaussian noise that tells all with some probability leaks no more than the bound of what is approximately concentrated."""
    failure, delta = 10.0**log10_failure, 10.0**log10_delta
    step = hs.ZeroConcentratedDP(0.5 / noise**2 * (1 + 1e-15), delta=failure)
    failed = -math.expm1(count * math.log1p(-failure))
    exact = failed + (1 - failed) * hs.gdp_delta(math.sqrt(count) / noise, eps)
    found, holding = composed((step, count)), composed((hs.ZeroConcentratedDP(step.rho), count))
    assert found.delta(eps) >= exact * (1 - 1e-12)
    assert found.delta(eps) <= (failed + (1 - failed) * holding.delta(eps)) * (1 + 1e-9)
    leaked = failed + (1 - failed) * hs.gdp_delta(math.sqrt(count) / noise, found.epsilon(delta))
    assert leaked <= max(delta, failed) * (1 + 1e-12)
    assert (found.epsilon(delta) < math.inf) == (delta > failed)
    assert found.rdp(2.0) == math.inf


@given(epsilon=st.floats(0.01, 2.0), failure=st.floats(1e-9, 0.3), count=st.integers(1, 20), rho=st.floats(1e-4, 1.0))
def test_failures_beside_bounds(epsilon, failure, count, rho):
    """An (epsilon, delta)-DP step beside a bound: no less than the step alone has, and finite where its delta allows."""
    step = hs.ApproximateDP(epsilon, failure)
    beside, alone = composed((step, count), (hs.ZeroConcentratedDP(rho), 1)), composed((step, count))
    for eps in (0.0, 0.5 * epsilon * count, math.inf):
        assert beside.delta(eps) >= alone.delta_bracket(eps).lower
    failed = -math.expm1(count * math.log1p(-failure))
    assert failed * (1 - 1e-12) <= beside.delta(math.inf) <= failed * (1 + 1e-12)
    assert beside.epsilon(0.5 + 0.5 * failed) < math.inf
    assert composed((hs.ApproximateDP(0.0, 1.0), 1), (hs.ZeroConcentratedDP(rho), 1)).delta(math.inf) == 1.0


def test_orders_and_chords():
    """At the orders the numbers hold, between them the chord of (a - 1) D, below the first the first, beyond the last nothing."""
    step = hs.RenyiDP([2.0, 4.0], [0.1, 0.3])
    accountant = composed((step, 10))
    assert accountant.rdp(2.0) == pytest.approx(1.0)
    assert accountant.rdp(4.0) == pytest.approx(3.0)
    assert accountant.rdp(3.0) == pytest.approx(10 * (0.1 + 0.9) / 2 / 2)
    assert accountant.rdp(1.5) == pytest.approx(1.0)
    assert accountant.rdp(4.5) == math.inf
    by_hand = min(10 * d + math.log1p(-1 / a) - math.log(1e-6 * a) / (a - 1) for a, d in [(2.0, 0.1), (4.0, 0.3)])
    assert accountant.epsilon(1e-6) <= by_hand * (1 + 1e-12)
    assert accountant.epsilon(1e-6) == pytest.approx(by_hand, rel=1e-3)


def test_ends_of_the_questions():
    """Infinity, zero and a ledger that leaks nothing have their limits."""
    accountant = composed((hs.ZeroConcentratedDP(0.1), 2))
    assert accountant.epsilon(0.0) == math.inf
    assert accountant.delta(math.inf) == 0.0
    assert 0.0 < accountant.delta(1e3) < 1e-300
    nothing = composed((hs.ZeroConcentratedDP(0.0), 5))
    assert nothing.delta(0.0) == 0.0
    assert nothing.epsilon(0.0) == 0.0
    assert composed((hs.RenyiDP([2.0], [math.inf]), 1)).epsilon(0.1) == math.inf
    assert composed((hs.RenyiDP([2.0], [math.inf]), 1)).delta(3.0) == 1.0


def test_cumulant_of_a_laplace_step():
    """K of Laplace noise gives back its Renyi divergences, raised by the accuracy alone."""
    exact = composed((hs.Laplace(2.0), 1))

    def cumulant(s):
        a, r = s + 1.0, 0.5
        return math.log(a / (2 * a - 1) * math.exp((a - 1) * r) + (a - 1) / (2 * a - 1) * math.exp(-a * r))

    step = hs.RenyiDP.from_cumulant(cumulant, accuracy=1e-9)
    for order in (1.1, 2.0, 16.0, 1000.0):
        assert exact.rdp(order) * (1 - 1e-12) <= composed((step, 1)).rdp(order) <= exact.rdp(order) * (1 + 1e-3) + 1e-8
    assert composed((step, 30)).epsilon(1e-5) >= composed((hs.Laplace(2.0), 30)).epsilon(1e-5)


@pytest.mark.share(3)
@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 5.0, None])
@pytest.mark.parametrize("mean", [1.5, 10.0, 1000.0])
def test_selection_agrees_with_a_peer(shape, mean):
    """The Renyi curve of the best of Gaussian runs is that of dp_accounting, whose orders are the same here."""
    dp = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    orders = [1.5, 2.0, 5.0, 20.0, 64.0]
    peer = rdp.RdpAccountant(orders=[*private_selection.ORDERS])
    event = dp.dp_event.RepeatAndSelectDpEvent(dp.GaussianDpEvent(4.0), mean, math.inf if shape is None else shape)
    peer.compose(event)
    theirs = dict(zip(peer._orders, peer._rdp, strict=True))
    theirs = np.array([theirs[order] for order in orders])
    ours = composed((hs.PrivateSelection(hs.Gaussian(4.0), 1, mean, shape), 1)).rdp(orders)
    if shape is None:  # theirs takes (epsilon, delta) of a run from Renyi divergences, ours exactly
        assert (ours <= theirs * (1 + 1e-9)).all()
        assert (ours >= 0.1 * theirs).all()
    else:
        assert ours == pytest.approx(theirs, rel=1e-8)


@pytest.mark.parametrize("shape", [-0.7, 0.0, 1.0, 3.0])
@pytest.mark.parametrize("mean", [1.0, 1.01, 7.0, 1e6])
def test_mean_of_the_number_of_runs(shape, mean):
    """The success probability found for a mean gives at least that mean, by the sum over the distribution where it is short."""
    log_gamma = private_selection._log_success(shape, mean)
    found = math.exp(private_selection.log_mean(shape, log_gamma)) if log_gamma < 0 else 1.0
    assert found == pytest.approx(mean, rel=1e-9)
    if shape == 1.0 and mean > 1.0:
        assert math.exp(log_gamma) == pytest.approx(1 / mean, rel=1e-9)
    if shape == 0.0 and 1.0 < mean < 100.0:
        miss = -math.expm1(log_gamma)
        weights = [miss**k / k for k in range(1, 20000)]
        assert math.fsum(k * w for k, w in enumerate(weights, 1)) / math.fsum(weights) == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize("shape", [-0.5, 0.0, 0.5, 1.0, 3.0, None])
def test_selection_bounds_the_best_of_few_outcomes(shape):
    """The exact law of the best of randomly many randomised responses leaks less than the bound, at every order and epsilon."""
    mean, base = 5.0, hs.Discrete([0.6, 0.3, 0.1], [0.4, 0.35, 0.25])
    laws = []
    for law in (base.p, base.q):
        cdf = np.concatenate([[0.0], np.cumsum(law)])  # the largest outcome is best
        if shape is not None:  # by the generating function of the number of runs
            gamma = math.exp(private_selection._log_success(shape, mean))
            left = 1 - (1 - gamma) * cdf
            best = np.diff(np.log(left) / np.log(gamma) if shape == 0 else (left**-shape - 1) / (gamma**-shape - 1))
        else:
            best = np.diff(np.exp(mean * (cdf - 1)))
            best = np.append(best, math.exp(-mean))  # no run
        laws.append(best)
    p, q = laws
    selection = hs.PrivateSelection(base, 1, mean, shape)
    accountant = composed((selection, 1))
    for order in (1.3, 2.0, 8.0, 64.0):
        for a, b in ((p, q), (q, p)):
            assert np.log(np.sum(a**order * b ** (1 - order))) / (order - 1) <= accountant.rdp(order)
    for eps in (0.5, 1.5):
        assert np.maximum(p - math.exp(eps) * q, 0).sum() <= accountant.delta(eps)


def test_selection_of_pure_steps():
    """Geometric repetitions of an epsilon-DP run are close to 3 epsilon, as Liu and Talwar have it, at tiny deltas."""
    run = hs.ApproximateDP(0.5, 0.0)
    found = composed((hs.PrivateSelection(run, 1, 10.0, 1.0), 1)).epsilon(1e-300)
    assert 0.5 < found <= 3 * 0.5 + 0.1


SEVERAL = hs.Composed([(hs.Gaussian(3.0), 1), (hs.Laplace(6.0), 1)])
SAMPLED = {  # what federated learning samples, and the adjacency
    "replaced": (hs.PoissonSampled(hs.Gaussian(2.0), 0.02), "replace"),
    "with replacement": (hs.FixedSizeSampled(hs.Gaussian(20.0), 1000, 20, replacement=True), "replace"),
    "one more record": (hs.FixedSizeSampled(hs.Gaussian(20.0), 1000, 20, replacement=True), "add_or_remove"),
    "truncated": (hs.TruncatedPoissonSampled(hs.Gaussian(2.0), 1000, 0.02, 40), "replace"),
    "fixed size": (hs.FixedSizeSampled(hs.Gaussian(2.0), 1000, 20, replacement=False), "replace"),
    "several releases": (hs.PoissonSampled(SEVERAL, 0.02), "add_or_remove"),
    "a group": (hs.MixtureOfGaussians.of_group(4.0, 5, 0.02), "add_or_remove"),
    "allocation": (hs.RandomAllocation(hs.Gaussian(2.0), 50), "add_or_remove"),
}


@pytest.mark.share(8, by_day=4)
@pytest.mark.parametrize("name", SAMPLED)
def test_samples_in_selections_and_mixed_ledgers(name):
    """The best of several runs costs more than one run, and not much more than ten; beside zCDP, epsilon is at least that without it."""
    step, adjacency = SAMPLED[name]
    run = composed((step, 30), adjacency=adjacency)
    best = composed((hs.PrivateSelection(step, 30, mean=10.0, shape=1.0), 1), adjacency=adjacency)
    mixed = composed((step, 30), (hs.ZeroConcentratedDP(1e-3), 1), adjacency=adjacency)
    alone = run.epsilon_bracket(1e-6)
    assert alone.lower < best.epsilon(1e-6) < 10 * alone.upper + 4.0
    assert alone.lower < mixed.epsilon(1e-6) < 3 * alone.upper + 2.0
    orders = np.array([1.5, 2.0, 4.0, 16.0, 48.0])
    converted = run.rdp(orders) + np.log1p(-1 / orders) - (math.log(1e-6) + np.log(orders)) / (orders - 1)
    assert alone.lower <= converted.min()
