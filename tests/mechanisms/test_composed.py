"""Several releases of one sample: pairs above and below against closed forms, enumeration, and integrals over the outcomes of all parts."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
import pairs
import slow_values
from enumeration import bracket, either, encloses, hockey_stick, product
from hockeystick import _core

MIXED = hs.Composed([(hs.Gaussian(2.0), 1), (hs.Laplace(5.0), 3)])


def laws(size):
    """Return a strategy for laws of some outcomes."""
    return st.lists(st.floats(0.02, 1.0), min_size=size, max_size=size).map(lambda w: [x / math.fsum(w) for x in w])


@pytest.mark.parametrize(("shift", "count"), [(0.5, 2.0), (3.0, 10.0), (0.001, 1.0), (0.02, 1000.0)])
def test_pairs_enclose_gaussians(shift, count):
    """Composed on a grid, Gaussian steps lie between pairs that are laws and close: against the closed form, at any depth."""
    mu = shift * math.sqrt(count)
    entries = [("gaussian", [shift], 1.0, count)]
    bounds = {upper: _core.merge_discrete(pairs.steps(entries), True, upper) for upper in (False, True)}
    for pair in bounds.values():
        for law in pair:
            assert min(law) >= 0
            assert math.fsum(law) == pytest.approx(1.0, abs=1e-13)
    for deviations in (-3.0, -1.0, 0.0, 1.0, 3.0, 8.0, 15.0):
        eps = mu * mu / 2 + deviations * mu
        lower, upper = (_core.discrete(*masses).delta(True, eps) for masses in bounds.values())
        truth = float(hs.theta(eps, mu))
        assert lower <= truth <= upper
        if deviations <= 3.0:
            assert upper - lower <= 3e-2 * truth


@given(p=laws(3), q=laws(3), r=laws(2), s=laws(2), count=st.integers(1, 4), eps=st.floats(-2.0, 4.0))
def test_pairs_enclose_discrete_mechanisms(p, q, r, s, count, eps):  # noqa: PLR0917
    """A composition of discrete pairs, enumerated, lies between its two pairs, in both directions and for negative epsilon."""
    entries = [("discrete", [*p, *q], 1.0, float(count)), ("discrete", [*r, *s], 1.0, 1.0)]
    both = product(*[p] * count, r), product(*[q] * count, s)
    for forward in (True, False):
        merged = (_core.merge_discrete(pairs.steps(entries), forward, above) for above in (False, True))
        found = [_core.discrete(*masses).delta(True, eps) for masses in merged]
        encloses(found, hockey_stick(*both[:: 1 if forward else -1], eps), 1e-12, 1e-13)


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
@given(
    bits=laws(2), noise=st.floats(0.3, 2.0), rate=st.floats(0.05, 0.9), steps=st.integers(1, 2), eps=st.floats(0.0, 3.0)
)
def test_sampled_composition_by_enumeration(bits, noise, rate, steps, eps):
    """A discrete pair and discrete Laplace noise released from one sample: both directions, one and two rounds."""
    step = hs.Composed([(hs.Discrete(bits, bits[::-1]), 1), (hs.DiscreteLaplace(noise), 1)])
    end = 1 / (1 + math.exp(-noise))
    without = product(bits[::-1], [end, 1 - end])  # noise of sensitivity 1 has two outcomes
    mixed = (1 - rate) * without + rate * product(bits, [1 - end, end])
    found = bracket(hs.PoissonSampled(step, rate), eps, steps)
    encloses(found, either(product(*[mixed] * steps), product(*[without] * steps), eps), 1e-9, 1e-12)
    assert found.upper - found.lower <= 0.05 * found.upper + 1e-6


def test_gaussian_releases_are_one():
    """Gaussian releases of one sample are one with less noise, in closed form, whatever the sampler; so are nested samples."""
    several, one = hs.Composed([(hs.Gaussian(2.0), 3), (hs.Gaussian(2.0), 1)]), hs.Gaussian(1.0)
    poisson = [hs.PoissonSampled(noise, 0.01) for noise in (several, one)]
    fixed = [hs.FixedSizeSampled(noise, 100, 5, replacement=False) for noise in (several, one)]
    nested = [hs.PoissonSampled(hs.PoissonSampled(one, 0.5), 0.02), hs.PoissonSampled(one, 0.01)]
    for steps in (poisson, fixed, nested):
        for adjacency in ("add_or_remove", "replace"):
            found = [hs.Accountant(adjacency).compose(step, 50).epsilon(1e-5) for step in steps]
            assert found[0] == pytest.approx(found[1], rel=1e-9)


SAMPLED = [hs.PoissonSampled(MIXED, 0.05), hs.FixedSizeSampled(MIXED, 100, 5, replacement=False)]


@pytest.mark.parametrize("mechanism", SAMPLED, ids=repr)
@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_both_ways_of_asking(mechanism, adjacency):
    """The discretised losses' own bracket overlaps the accountant's."""
    accountant = hs.Accountant(adjacency).compose(mechanism, 20)
    pld = hs.PrivacyLossDistribution.from_mechanism(mechanism, adjacency=adjacency).self_compose(20)
    for one, other in (
        (accountant.delta_bracket(0.5), pld.delta_bracket(0.5)),
        (accountant.epsilon_bracket(1e-6), pld.epsilon_bracket(1e-6)),
    ):
        assert max(one.lower, other.lower) <= min(one.upper, other.upper)
        widest = 0.4 if isinstance(mechanism, hs.FixedSizeSampled) else 0.05  # whose steps need not attain their curve
        attained = adjacency == "add_or_remove" or isinstance(mechanism, hs.FixedSizeSampled)  # else not known to be
        assert not attained or one.upper - one.lower <= widest * one.upper


def test_order_of_the_parts_does_not_matter():
    """Whatever order the releases of one sample come in."""
    epsilons = [
        hs.Accountant().compose(hs.PoissonSampled(hs.Composed(parts), 0.1), 10).epsilon(1e-6)
        for parts in itertools.permutations(MIXED.steps)
    ]
    assert epsilons[0] == pytest.approx(epsilons[1], rel=1e-9)


@pytest.mark.parametrize(("delta", "count"), [(0.6, 2), (0.1, 2), (1e-4, 100), (1.0, 2)])
def test_releases_that_may_fail(delta, count):
    """Failures of several releases of one sample are as likely as at least one of them, not as their sum."""
    failing = hs.Composed([(hs.ApproximateDP(0.0, delta), count)])
    found = bracket(hs.PoissonSampled(failing, 0.1), 0.5)
    expected = -0.1 * math.expm1(count * math.log1p(-delta)) if delta < 1.0 else 0.1
    encloses(found, expected, slack=1e-9)
    assert found.upper <= expected * (1 + 1e-6)


# Gauss-Legendre on [-1, 1], for the losses of Laplace noise between its atoms
NODES, WEIGHTS = np.polynomial.legendre.leggauss(10)


def laplace_outcomes(scale):
    """Return the losses of Laplace noise and their masses without the record: two atoms, and nodes in between."""
    r = 1.0 / scale
    losses = np.concatenate([[-r, r], r * NODES])
    return losses, np.concatenate([[0.5, 0.5 * math.exp(-r)], 0.25 * r * WEIGHTS * np.exp(-0.5 * (r + r * NODES))])


def outcomes(sigma, scales):
    """Return base losses and masses of Gaussian noise and of Laplace noise of each scale, on one record."""
    x = np.linspace(-12.0, 12.0, 73)
    losses, masses = x / sigma - 0.5 / sigma**2, np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    for scale in scales:
        more, weights = laplace_outcomes(scale)
        losses, masses = np.add.outer(losses, more).ravel(), np.multiply.outer(masses, weights).ravel()
    return losses, masses / math.fsum(masses.tolist())


class Reference:
    """The transform of a sample's loss on one line, and with it delta by an inversion integral, in plain NumPy."""

    def __init__(self, sigma, scales, rate, direction, tilt):
        losses, masses = outcomes(sigma, scales)
        mixed = np.log1p(rate * np.expm1(losses))
        self.tilt, self.loss = tilt, mixed if direction == "remove" else -mixed
        self.p = masses * np.exp(mixed) if direction == "remove" else masses
        tilted = self.p * np.exp(tilt * self.loss)
        self.log_moment = math.log(tilted.sum())
        self.weights = tilted / tilted.sum()
        self.mean = float(self.weights @ self.loss)
        self.deviation = math.sqrt(self.weights @ (self.loss - self.mean) ** 2)

    def delta(self, steps, deviations):
        """Return (eps, delta) at a distance from the tilted mean; None where a few hundred nodes are not enough."""
        spread = self.deviation * math.sqrt(steps)
        eps = steps * self.mean + deviations * spread
        if eps <= 0.0:
            return None
        h = 2 * math.pi / (60.0 * spread + 40.0 / self.tilt)
        omega, total, phi = 0.0, 0.5 / (self.tilt * (self.tilt + 1.0)), 1.0
        for k in range(1, 400):
            omega = k * h
            phi = complex(self.weights @ np.exp(1j * omega * (self.loss - self.mean)))
            s = complex(self.tilt, omega)
            total += (phi**steps * np.exp(-1j * omega * (eps - steps * self.mean)) / (s * (s + 1.0))).real
            if abs(phi) ** steps < 1e-13:
                break
        else:
            return None
        return eps, h / math.pi * total * math.exp(steps * self.log_moment - self.tilt * eps)


@pytest.mark.share(6)
@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    ("sigma", "scales", "rate"), [(1.0, [3.0], 0.05), (2.0, [4.0, 4.0], 0.1), (5.0, [10.0, 7.0], 0.02)]
)
def test_brackets_hold_an_integral_over_the_outcomes(sigma, scales, rate, direction):
    """Delta of many steps is enclosed, and the bracket is narrow: against an inversion integral that shares no code."""
    compared = 0
    for steps in (300, 3000):
        scale = rate * math.sqrt(math.expm1(1.0 / sigma**2) * steps)
        for strength in (1.0, 2.5):
            found = Reference(sigma, scales, rate, direction, strength / scale).delta(steps, 0.3)
            if found is None or found[1] < 1e-100:
                continue
            eps, truth = found
            parts = [(hs.Gaussian(sigma), 1)] + [(hs.Laplace(scale_of), 1) for scale_of in scales]
            found = bracket(hs.PoissonSampled(hs.Composed(parts), rate), eps, steps)
            assert found.upper >= truth * (1 - 1e-9)
            if direction == "remove":  # the larger one
                encloses(found, truth, slack=1e-9, wide=1e-7)
            compared += 1
    assert compared >= 2


@pytest.mark.parametrize(("sigma", "scale", "rate"), slow_values.GAUSSIANS_BESIDE_LAPLACE)
def test_one_step_by_quadrature(sigma, scale, rate):
    """One step has an exact formula: delta against mpmath's integral of the Gaussian's divergence over the Laplace losses."""
    step = hs.PoissonSampled(hs.Composed([(hs.Gaussian(sigma), 1), (hs.Laplace(scale), 1)]), rate)
    for eps in slow_values.EPS_BESIDE_LAPLACE:
        truth = slow_values.committed("gaussian_beside_laplace_delta", sigma, scale, rate, eps)
        found = bracket(step, eps)
        encloses(found, truth)
        assert found.upper - found.lower <= 1e-9 * found.upper + 1e-300


def test_tails_at_any_depth():
    """Certified ends are ordered and the bracket stays narrow down to 1e-290, where a grid would end."""
    step = hs.PoissonSampled(hs.Composed([(hs.Gaussian(1.5), 1), (hs.Laplace(4.0), 2)]), 0.05)
    once = hs.Accountant().compose(step)
    deltas = [once.delta_bracket(eps) for eps in (1.0, 5.0, 10.0, 15.0, 20.0)]
    assert all(0.0 < one.lower <= one.upper <= one.lower * (1 + 1e-9) for one in deltas)
    assert all(later.upper < before.lower for before, later in itertools.pairwise(deltas))


@pytest.mark.parametrize("share", [True, False])
def test_the_gap_of_grids_is_no_gap_of_pairs(share):
    """What lies between the tables of a composition is numerical: "pairs" is for gaps that no computing mends."""
    parts = [(hs.Laplace(4.0), 2), (hs.Laplace(7.0), 1)] + ([(hs.Gaussian(3.0), 1)] if share else [])
    accountant = hs.Accountant().compose(hs.PoissonSampled(hs.Composed(parts), 0.05), 200)
    assert "pairs" not in accountant.explain(delta=1e-6).shares


@pytest.mark.parametrize("eps", [0.1, 1.0, 8.0])
def test_tails_that_no_density_reaches(eps):
    """Far beyond what a billion rare samples lose, delta is below the doubles: an answer, not an error."""
    step = hs.PoissonSampled(hs.Composed([(hs.Gaussian(10.0), 1), (hs.Laplace(100.0), 1)]), 1e-9)
    found = bracket(step, eps, 10**9)
    assert 0.0 <= found.lower <= found.upper <= 1e-300


@pytest.mark.parametrize(("epsilon", "count"), [(0.15, 1), (0.15, 2), (1.0, 3)])
def test_coins_beside_gaussian_noise(epsilon, count):
    """A sample of Gaussian noise and pure mechanisms, whose pair is discrete, against its closed form."""
    sigma, rate = 3.0, 0.1
    parts = [(hs.ApproximateDP(epsilon, 0.0), count), (hs.Gaussian(sigma), 1)]
    ledger = hs.Accountant().compose(hs.PoissonSampled(hs.Composed(parts), rate))
    said = math.exp(epsilon) / (1.0 + math.exp(epsilon))  # that a coin tells the truth
    for eps in (0.0, 0.02, 0.05, 0.1):
        remove = add = 0.0
        for true in range(count + 1):
            base = math.comb(count, true) * (1 - said) ** true * said ** (count - true)
            loss = epsilon * (2 * true - count)
            # ratio of the laws at x: 1 - rate + rate e^(loss + x/sigma - 1/(2 sigma^2)); it grows with x
            for gamma, is_remove in ((math.exp(eps), True), (math.exp(-eps), False)):
                share = (gamma - 1.0 + rate) / rate
                x = sigma * (math.log(share) - loss) + 0.5 / sigma if share > 0.0 else -math.inf
                below, tilted = (0.5 * math.erfc(-t / math.sqrt(2.0)) for t in (x, x - 1.0 / sigma))
                if is_remove:
                    remove += base * ((1 - rate - gamma) * (1 - below) + rate * math.exp(loss) * (1 - tilted))
                else:
                    add += base * (below - ((1 - rate) * below + rate * math.exp(loss) * tilted) / gamma)
        found = ledger.delta_bracket(eps)
        encloses(found, max(remove, add), off=1e-14)
        assert found.upper - found.lower <= 1e-6


@pytest.mark.slow
def test_many_distinct_steps_are_affordable():
    """Four hundred distinct sampled Gaussians are merged on a coarser grid: above and below the truth."""
    shifts = 1.0 + 1e-4 * np.arange(400)
    steps = [(_core.poisson_sampled(_core.gaussian_of_shift(shift), 1e-3), 1.0) for shift in shifts]
    above, below = (_core.merge_discrete(steps, True, upper) for upper in (True, False))
    least, most = ([(_core.poisson_sampled(_core.gaussian_of_shift(s), 1e-3), 400.0)] for s in (shifts[0], shifts[-1]))
    for eps in (0.1, 1.0):
        lower, upper = (_core.discrete(*masses).delta(True, eps) for masses in (below, above))
        assert lower <= _core.contour_bracket(most, True, False, eps)["upper"]
        assert _core.contour_bracket(least, True, False, eps)["lower"] <= upper
