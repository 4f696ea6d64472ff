"""An upper end is never above that of a weaker setting: a smaller epsilon, a larger rate, less noise, more steps, no sampling, no allocation."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs

STEP = 1.25  # what a rate 2^(1/4) times as large may add where rates are rare
CHORDS = 1.01  # of the curve of an allocation, which is known at some points
ROUNDED = 1 + 1e-9  # both ends of a narrow bracket pay for rounding
ADJACENCIES = ["add_or_remove", "replace"]
pytestmark = pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")


def log_floats(low, high):
    """Return floats whose logarithms are spread evenly."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


RATES = log_floats(1e-10, 0.9)
SETTINGS = st.tuples(  # kind, noise, steps, delta
    st.sampled_from([hs.Gaussian, hs.Laplace]),
    log_floats(0.3, 30.0),
    log_floats(1, 1e6).map(int),
    log_floats(1e-40, 0.3),
)


def epsilon(step, steps, delta, adjacency):
    """Return the upper end of epsilon of equal steps."""
    return hs.Accountant(adjacency).compose(step, steps).epsilon(delta)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@given(setting=SETTINGS, rate=RATES, more=log_floats(1.0, 30.0))
def test_rate(adjacency, setting, rate, more):
    """Epsilon does not fall where the rate of Poisson samples rises; that of a wide bracket is known to a step of the grid of rates."""
    kind, noise, *asked = setting
    steps = [hs.PoissonSampled(kind(noise), q) for q in (rate, min(rate * more, 1.0))]
    found = [epsilon(step, *asked, adjacency) for step in steps]
    wide = hs.Accountant(adjacency).compose(steps[0], asked[0]).epsilon_bracket(asked[1]).lower < found[0] * (1 - 1e-3)
    assert found[0] <= found[1] * (STEP if wide else 1 + 1e-3) + 1e-12


@pytest.mark.share(2)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_rates_that_are_rare(adjacency):
    """Rates of 3e-10 to 3e-9 in 152616 steps at a delta of 4e-38: a wide bracket takes the end of a larger rate."""
    steps = [hs.PoissonSampled(hs.Gaussian(0.7499253130368225), 3e-10 * 1.2**k) for k in range(14)]
    found = [epsilon(step, 152616, 3.897e-38, adjacency) for step in steps]
    assert all(one <= other * STEP for one, other in itertools.pairwise(found))
    assert found[0] < 0.1


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@given(setting=SETTINGS, rate=st.just(1.0) | RATES, more=log_floats(1.0, 3.0))
def test_noise_and_steps(adjacency, setting, rate, more):
    """Epsilon does not rise where there is more noise, and does not fall where there are more steps."""
    kind, noise, steps, delta = setting
    found = epsilon(hs.PoissonSampled(kind(noise), rate), steps, delta, adjacency)
    noisier = epsilon(hs.PoissonSampled(kind(noise * more), rate), steps, delta, adjacency)
    longer = epsilon(hs.PoissonSampled(kind(noise), rate), math.ceil(steps * more), delta, adjacency)
    assert noisier <= found * ROUNDED + 1e-12
    assert found <= longer * ROUNDED + 1e-12


BASES = [
    hs.Gaussian(0.5),
    hs.Gaussian(2.0),
    hs.Laplace(0.5),
    hs.Laplace(2.0),
    hs.DiscreteLaplace(0.7),
    hs.DiscreteGaussian(1.5),
    hs.ExponentialMechanism(0.5),
    hs.PermuteAndFlip(0.5),
    hs.Composed([(hs.Gaussian(2.0), 1), (hs.Laplace(4.0), 2)]),
]
SAMPLERS = {
    "Poisson": lambda step: hs.PoissonSampled(step, 0.2),
    "fixed size": lambda step: hs.FixedSizeSampled(step, 40, 8, replacement=False),
    "allocation": lambda step: hs.RandomAllocation(step, 3),
    "truncated": lambda step: hs.TruncatedPoissonSampled(step, 40, 0.2, 9),
}


@pytest.mark.share(9, by_day=3)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("base", BASES, ids=repr)
def test_no_sampling(base, sampler, adjacency):
    """A sample, or an epoch of one release at a place drawn, leaks no more than the release itself where a record is replaced."""
    try:
        sampled = hs.Accountant(adjacency).compose(SAMPLERS[sampler](base))
    except (TypeError, ValueError):
        pytest.skip("not supported")
    whole = hs.Accountant("replace").compose(base)
    excess = CHORDS if sampler == "allocation" else ROUNDED
    for delta in (0.1, 1e-3, 1e-6, 1e-10):
        assert sampled.epsilon(delta) <= whole.epsilon(delta) * excess
    for eps in (0.0, 0.4, 1.0, 2.0, 4.0):
        assert sampled.delta(eps) <= whole.delta(eps) * excess + 1e-12
