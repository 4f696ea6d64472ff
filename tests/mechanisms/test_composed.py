"""Several releases of one sample: pairs above and below against closed forms, every small mechanism by enumeration, sampling."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
import pairs
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
    bits=laws(2),
    noise=st.floats(0.3, 2.0),
    rate=st.floats(0.05, 0.9),
    steps=st.integers(1, 2),
    eps=st.floats(0.0, 3.0),
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
    several = hs.Composed([(hs.Gaussian(2.0), 3), (hs.Gaussian(2.0), 1)])
    for one, other in (
        (hs.PoissonSampled(several, 0.01), hs.PoissonSampled(hs.Gaussian(1.0), 0.01)),
        (
            hs.FixedSizeSampled(several, 100, 5, replacement=False),
            hs.FixedSizeSampled(hs.Gaussian(1.0), 100, 5, replacement=False),
        ),
        (hs.PoissonSampled(hs.PoissonSampled(hs.Gaussian(1.0), 0.5), 0.02), hs.PoissonSampled(hs.Gaussian(1.0), 0.01)),
    ):
        for adjacency in ("add_or_remove", "replace"):
            found = [hs.Accountant(adjacency).compose(step, 50).epsilon(1e-5) for step in (one, other)]
            assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_one_sample_is_not_many():
    """Sampling a composition leaks more than composing samples: enumerated, both orders of the two are told apart."""
    p, q, rate, eps = [0.7, 0.3], [0.3, 0.7], 0.1, 0.2
    base = hs.Discrete(p, q)
    together, apart = (
        bracket(hs.PoissonSampled(hs.Composed([(base, 2)]), rate), eps),
        bracket(hs.PoissonSampled(base, rate), eps, 2),
    )
    without, mixed = product(q, q), [(1 - rate) * y + rate * x for x, y in zip(p, q, strict=True)]
    encloses(together, either((1 - rate) * without + rate * product(p, p), without, eps), slack=1e-9)
    encloses(apart, either(product(mixed, mixed), without, eps), slack=1e-9)
    assert together.lower > apart.upper


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


def test_deep_tails():
    """Deltas far below what a Fourier transform resolves: the unsampled composition bounds the sampled one."""
    accountant = hs.Accountant().compose(hs.PoissonSampled(MIXED, 0.5))
    whole = hs.Accountant().compose(MIXED)
    for eps in (4.0, 6.0, 8.0):
        inner = math.log1p(math.expm1(eps) / 0.5)
        found, truth = accountant.explain(eps=eps).directions["remove"], whole.delta_bracket(inner)
        assert found.lower <= 0.5 * truth.upper
        assert 0.5 * truth.lower <= found.upper
        assert found.upper <= 1.1 * 0.5 * truth.upper


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
