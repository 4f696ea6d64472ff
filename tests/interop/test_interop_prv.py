"""prv_accountant: triples, its mechanisms and ours, and its words for DP-SGD."""

import math
import types

import pytest

import hockeystick as hs
from hockeystick.interop import prv

STEP = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)


def named(name, **attributes):
    """Return an object of a class of this name."""
    return types.new_class(name, (types.SimpleNamespace,))(**attributes)


def test_triples_are_brackets():
    """Lower end, estimate and upper end are in this order, and the ends are those of the accountant."""
    accountant = prv.PRVAccountant(
        [STEP, hs.Laplace(10.0)], eps_error=0.1, delta_error=1e-9, max_self_compositions=[1, 1]
    )
    ours = hs.Accountant().compose(STEP, 1000).compose(hs.Laplace(10.0), 3)
    for triple, bracket in [
        (accountant.compute_epsilon(1e-6, [1000, 3]), ours.epsilon_bracket(1e-6)),
        (accountant.compute_delta(1.0, [1000, 3]), ours.delta_bracket(1.0)),
    ]:
        low, estimate, up = triple
        assert (low, up) == (bracket.lower, bracket.upper)
        assert low <= estimate <= up
    assert prv.PRVAccountant(hs.ApproximateDP(0.1, 1e-3)).compute_epsilon(1e-6) == (math.inf, math.inf, math.inf)


def test_a_composition_is_asked_several_times():
    """The composition has the triple of the accountant, and an estimate of delta between its ends."""
    accountant = prv.PRVAccountant([STEP, hs.Laplace(10.0)])
    composed = accountant.compute_composition([1000, 3])
    assert composed.compute_epsilon(1e-6, 1e-9, 0.1) == accountant.compute_epsilon(1e-6, [1000, 3])
    assert composed.compute_delta_estimate(1.0) == accountant.compute_delta(1.0, [1000, 3])[1]
    with pytest.raises(ValueError, match="must have 2 counts"):
        accountant.compute_composition([1])


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (named("PoissonSubsampledGaussianMechanism", p=0.01, sigma=1.0), STEP),
        (named("GaussianMechanism", mu=0.5), hs.Gaussian(2.0)),
        (named("LaplaceMechanism", mu=0.5), hs.Laplace(2.0)),  # mu is one over the scale
        (named("PureDPMechanism", eps=0.3), hs.ApproximateDP(0.3, 0.0)),
        (
            named("ApproximateDPMechanism", pure_dp=named("PureDPMechanism", eps=0.3), delta=1e-5),
            hs.ApproximateDP(0.3, 1e-5),
        ),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_known_mechanisms(theirs, ours):
    """Each of their mechanisms leaks what ours does."""
    of_theirs, of_ours = (prv.PRVAccountant(m).compute_delta(0.2, 20)[2] for m in (theirs, ours))
    assert of_theirs == pytest.approx(of_ours, rel=1e-9)


def test_their_classes():
    """Objects of prv_accountant itself are those mechanisms, and its upper end is not below our lower one."""
    peer = pytest.importorskip("prv_accountant")
    theirs = peer.PoissonSubsampledGaussianMechanism(sampling_probability=0.01, noise_multiplier=1.0)
    assert prv.mechanism_of(theirs) == STEP
    assert prv.mechanism_of(peer.ApproximateDPMechanism(0.3, 1e-5)) == hs.ApproximateDP(0.3, 1e-5)
    for their, our in [(peer.GaussianMechanism(2.0), 2.0), (peer.LaplaceMechanism(0.5), 2.0)]:
        assert prv.mechanism_of(their).noise_multiplier == pytest.approx(our, rel=1e-15)
    low, _, up = peer.PRVAccountant(theirs, 0.1, 1e-8, max_self_compositions=100).compute_epsilon(1e-5, 100)
    certified = prv.PRVAccountant(theirs).compute_epsilon(1e-5, 100)
    assert low <= certified[2]
    assert certified[0] <= up


def test_dpsgd():
    """Their words for DP-SGD: the same triple, and the least noise within the budget."""
    accountant = prv.DPSGDAccountant(noise_multiplier=1.0, sampling_probability=0.01, max_steps=5000)
    assert accountant.compute_epsilon(delta=1e-5, num_steps=1000) == prv.PRVAccountant(STEP).compute_epsilon(1e-5, 1000)
    sigma = prv.find_noise_multiplier(0.01, 1000, target_epsilon=2.0, target_delta=1e-5)
    epsilon = prv.DPSGDAccountant(sigma, 0.01, 1000).compute_epsilon(1e-5, 1000)[2]
    assert 2.0 * (1 - 1e-6) <= epsilon <= 2.0
