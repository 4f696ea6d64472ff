"""Events of dp_accounting against enumerated laws and theorems at high precision; the package itself is not needed."""

import math
from collections import namedtuple

import mpmath
import numpy as np
import pytest

import effort
import hockeystick as hs
import refused_calls
from enumeration import renyi
from hockeystick.interop import events

FIELDS = {
    "GaussianDpEvent": "noise_multiplier",
    "LaplaceDpEvent": "noise_multiplier",
    "RandomizedResponseDpEvent": "noise_parameter num_buckets",
    "EpsilonDeltaDpEvent": "epsilon delta",
    "ZCDpEvent": "rho xi",
    "DiscreteGaussianDpEvent": "sigma sensitivity dimension",
    "ExponentialMechanismDpEvent": "epsilon",
    "PermuteAndFlipDpEvent": "epsilon",
    "RepeatAndSelectDpEvent": "event mean shape",
    "SampledWithoutReplacementDpEvent": "source_dataset_size sample_size event",
    "TruncatedSubsampledGaussianDpEvent": "dataset_size sampling_probability truncated_batch_size noise_multiplier",
    "PoissonSampledDpEvent": "sampling_probability event",
    "RandomAllocationDpEvent": "event num_selected num_steps",
    "SelfComposedDpEvent": "event count",
    "ComposedDpEvent": "events",
    "NonPrivateDpEvent": "",
    "NoOpDpEvent": "",
}


def event(name, *values):
    """Return what `to_named_tuple` gives of an event."""
    return namedtuple("Event", f"class_name {FIELDS[name]}")(name, *values)  # noqa: PYI024, fields by name


def accountant(*parts, relation="add_or_remove"):
    """Return our accountant of an event."""
    return events.accountant_of(event(*parts), relation=relation)


NOISE = event("GaussianDpEvent", 2.0)


@pytest.mark.parametrize("steps", [[(0.0, 0.0)], [(0.0, 0.0)] * 3])
def test_no_guarantee_is_needed_of_nothing(steps):
    """(0, 0) is exactly nothing."""
    spent = events.accountant_of(event("ComposedDpEvent", [event("EpsilonDeltaDpEvent", *step) for step in steps]))
    assert (spent.delta(0.0), spent.epsilon(0.0), spent.delta(math.inf)) == (0.0, 0.0, 0.0)


def test_guarantees_are_exact_at_their_edges():
    """(1, 0) and (2, 0) are 3 at delta 0, and with deltas 0.1 and 0.2 they are 3 at 1 - 0.9 * 0.8."""
    pure = [event("EpsilonDeltaDpEvent", epsilon, 0.0) for epsilon in (1.0, 2.0)]
    once, both = (events.accountant_of(event("ComposedDpEvent", part)) for part in (pure[:1], pure))
    assert (once.delta(1.0), once.epsilon(0.0)) == (0.0, 1.0)
    assert (both.delta(3.0), both.epsilon(0.0)) == (0.0, 3.0)
    loose = [event("EpsilonDeltaDpEvent", 1.0, 0.1), event("EpsilonDeltaDpEvent", 2.0, 0.2)]
    spent = events.accountant_of(event("ComposedDpEvent", loose))
    assert (spent.delta(3.0), spent.epsilon(0.28)) == (0.28, 3.0)
    assert spent.epsilon(0.2799999) == math.inf


# what is one mechanism, whose tests hold its numbers against enumerations and theorems


@pytest.mark.parametrize(
    ("parts", "mechanism"),
    [
        (("ExponentialMechanismDpEvent", 0.3), hs.ExponentialMechanism(0.3)),
        (("PermuteAndFlipDpEvent", 0.3), hs.PermuteAndFlip(0.3)),
        (("RandomizedResponseDpEvent", 0.5, 2), hs.RandomizedResponse(0.5, 2)),
        (("ZCDpEvent", 0.1, 0.3), hs.ZeroConcentratedDP(0.1, 0.3)),
        (("DiscreteGaussianDpEvent", 2.5, 2.0, 1), hs.DiscreteGaussian(2.5, 2)),
        (("DiscreteGaussianDpEvent", 2.5, 2.0, 2), hs.DiscreteGaussianVector(2.5, 2.0, 2)),
        (("DiscreteGaussianDpEvent", 1.0, 1.5, None), hs.DiscreteGaussianVector(1.0, 1.5)),
        (("RandomAllocationDpEvent", NOISE, 3, 10), hs.RandomAllocation(hs.Gaussian(2.0), 10, 3)),
        (
            ("SampledWithoutReplacementDpEvent", 1000, 20, NOISE),
            hs.FixedSizeSampled(hs.Gaussian(2.0), 1000, 20, replacement=False),
        ),
    ],
    ids=repr,
)
def test_mechanisms(parts, mechanism):
    """The event is the mechanism, under each relation that it supports, and so many of it where it is repeated."""
    relations = {
        "PermuteAndFlipDpEvent": ["add_or_remove", "replace_special"],
        "RandomizedResponseDpEvent": ["replace"],
        "SampledWithoutReplacementDpEvent": ["replace"],
        "RandomAllocationDpEvent": ["add_or_remove", "replace_special"],
    }
    for relation in relations.get(parts[0], ["add_or_remove", "replace", "replace_special"]):
        assert dict(accountant("SelfComposedDpEvent", event(*parts), 2, relation=relation).ledger) == {mechanism: 2}


# a random number of runs


@pytest.mark.share(3)
@pytest.mark.parametrize(("sigma", "mean", "order"), [(1000.0, 1e9, 50.0), (1000.0, 1e3, 20.0), (1.0, 1e3, 3.0)])
def test_searches_have_the_bound_of_the_theorem(sigma, mean, order):
    """A Poisson number of Gaussian runs: no divergence is below the least of Theorem 6 of Papernot and Steinke over all larger orders."""

    def theorem(a):
        eps = mpmath.log1p(1 / (a - 1))
        delta = mpmath.ncdf(0.5 / sigma - eps * sigma) - mpmath.exp(eps) * mpmath.ncdf(-0.5 / sigma - eps * sigma)
        return float(a / (2 * mpmath.mpf(sigma) ** 2) + mean * delta + mpmath.log(mean) / (a - 1))

    with mpmath.workdps(40):
        least = min(theorem(mpmath.mpf(order) + x) for x in [0.0, *np.geomspace(1e-3, 1e5, 3000)])
    found = accountant("RepeatAndSelectDpEvent", event("GaussianDpEvent", sigma), mean, math.inf).rdp(order)
    assert least * (1 - 1e-5) <= found <= 1.25 * least


def test_searches_of_several_releases_are_searches_of_all_of_them():
    """A run of two kinds of noise is their composition, of a Poisson number where the shape is infinite; nothing, and what is not private, stay what they are."""
    response = event("RandomizedResponseDpEvent", 0.3, 3)
    for shape, ours in ((2.0, 2.0), (0.0, 0.0), (math.inf, None)):
        found = accountant("RepeatAndSelectDpEvent", response, 5.0, shape, relation="replace")
        assert dict(found.ledger) == {hs.PrivateSelection(hs.RandomizedResponse(0.3, 3), 1, 5.0, ours): 1}
    parts = [event("GaussianDpEvent", 4.0), event("LaplaceDpEvent", 8.0)]
    both = accountant("RepeatAndSelectDpEvent", event("ComposedDpEvent", parts), 3.0, 1.0)
    run = hs.Composed([(hs.Gaussian(4.0), 1), (hs.Laplace(8.0), 1)])
    assert dict(both.ledger) == {hs.PrivateSelection(run, 1, 3.0, 1.0): 1}
    assert not accountant("RepeatAndSelectDpEvent", event("NoOpDpEvent"), 3.0, 1.0).ledger
    assert accountant("RepeatAndSelectDpEvent", event("NonPrivateDpEvent"), 3.0, 1.0).epsilon(0.5) == math.inf


# what is known by its Renyi divergences


@pytest.mark.share(3)
@pytest.mark.parametrize(("rate", "rho"), [(0.01, 0.5), (0.1, 0.03), (0.5, 0.06), (0.9, 1.0), (1e-5, 2.0)])
def test_samples_of_concentrated_mechanisms_bound_sampled_noise(rate, rho):
    """Gaussian noise of this rho has, at integer orders, the moments of the bound for removing a record."""
    step = events.concentrated_sample(rho, rate)
    for order, found in zip(step.orders, step.divergences, strict=True):
        if order > 64:
            break
        with mpmath.workdps(60):
            q, a = mpmath.mpf(rate), int(order)
            moments = [
                mpmath.binomial(a, k) * q**k * (1 - q) ** (a - k) * mpmath.exp(k * (k - 1) * mpmath.mpf(rho))
                for k in range(a + 1)
            ]
            exact = mpmath.log(mpmath.fsum(moments)) / (a - 1)
        assert found >= exact
        assert found <= order * rho * (1 + 2e-9)


def test_samples_of_concentrated_mechanisms_bound_all_pairs():
    """Random pairs of two or three outcomes, as concentrated as they are: neither direction of their sample exceeds the bound."""
    random = np.random.default_rng(3)
    grid = np.concatenate([1 + np.geomspace(1e-6, 1.0, 40), np.arange(2.0, 200.0), np.geomspace(200.0, 1e6, 200)])
    for _ in range(effort.at_night(25, by_day=8)):
        p, q = (
            law / law.sum()
            for law in np.exp(random.normal(0, random.choice([0.1, 1.0, 3.0]), (2, random.integers(2, 4))))
        )
        larger = np.maximum(renyi(p, q, grid), renyi(q, p, grid))
        xi = float(random.choice([0.0, 0.3, 0.9])) * larger.max()
        rho = 1.000001 * max(((larger - xi) / grid).max(), 0.0)
        rate = float(random.choice([1e-3, 0.01, 0.1, 0.5, 0.9]))
        mixed = rate * p + (1 - rate) * q
        step = events.concentrated_sample(rho, rate, xi * (1 + 1e-12))
        orders = np.array(step.orders)
        exact = np.maximum(renyi(mixed, q, orders), renyi(q, mixed, orders))
        assert (exact <= np.array(step.divergences) + 1e-13).all()


def test_samples_of_what_is_concentrated_beside_noise():
    """Releases of one sample add their rho and xi; a Laplace release beside them and replacement are refused."""
    rho, noise = event("ZCDpEvent", 0.1, 0.2), event("GaussianDpEvent", 4.0)
    spent = accountant(
        "PoissonSampledDpEvent", 0.1, event("ComposedDpEvent", [rho, event("SelfComposedDpEvent", noise, 2)])
    )
    (step,) = spent.ledger
    expected = events.concentrated_sample(0.1 + 2 / 32, 0.1, 0.2).divergences
    assert np.array(step.divergences) == pytest.approx(expected, rel=1e-9)
    for inner, relation, reason in [
        (event("ComposedDpEvent", [rho, event("LaplaceDpEvent", 4.0)]), "add_or_remove", "beside Gaussian ones alone"),
        (rho, "replace", "under `ADD_OR_REMOVE_ONE` alone"),
        (rho, "replace_special", "under `ADD_OR_REMOVE_ONE` alone"),
    ]:
        with pytest.raises(events.UnsupportedEvent, match=reason):
            accountant("PoissonSampledDpEvent", 0.1, inner, relation=relation)


# discrete Gaussian noise


def test_discrete_noise_without_noise_and_without_sensitivity():
    """Without noise nothing is private, a constant leaks nothing, and a sample of one integer is that of its pair."""
    assert accountant("DiscreteGaussianDpEvent", 0.0, 1.0, None).epsilon(0.5) == math.inf
    assert not accountant("DiscreteGaussianDpEvent", 1.0, 0.0, None).ledger
    assert accountant("DiscreteGaussianDpEvent", 1.0, 1e-200, None).epsilon(1e-6) >= 0.0
    assert len(accountant("DiscreteGaussianDpEvent", 1.0, 1e-200, None).ledger) == 1
    sampled = accountant("PoissonSampledDpEvent", 0.1, event("DiscreteGaussianDpEvent", 2.0, 1.0, 1))
    assert dict(sampled.ledger) == {hs.PoissonSampled(hs.DiscreteGaussian(2.0, 1), 0.1): 1}


def test_empty_batches_leak_nothing():
    """A batch of no record does not depend on the records."""
    noise = event("GaussianDpEvent", 1.0)
    assert not accountant("SampledWithoutReplacementDpEvent", 1000, 0, noise, relation="replace").ledger
    assert not accountant("TruncatedSubsampledGaussianDpEvent", 1000, 0.1, 0, 1.0).ledger
    assert not accountant("RandomAllocationDpEvent", noise, 0, 10).ledger


NAMES = {"event": event, "accountant": accountant}
REFUSED = r"""
accountant("PermuteAndFlipDpEvent", 1.0, relation="replace") -> must be `ADD_OR_REMOVE_ONE` or `REPLACE_SPECIAL`
accountant("PermuteAndFlipDpEvent", -1.0, relation="add_or_remove") -> epsilon must lie in \(0, 600\]
accountant("ZCDpEvent", -0.1, 0.0, relation="replace") -> rho must be non-negative
accountant("ZCDpEvent", 0.1, -0.1, relation="replace") -> xi must be non-negative
accountant("DiscreteGaussianDpEvent", -1.0, 1.0, None, relation="replace") -> sigma must be positive
accountant("DiscreteGaussianDpEvent", 1.0, 1.0, 0, relation="replace") -> dimension must be an integer
accountant("PoissonSampledDpEvent", 1.1, event("ZCDpEvent", 0.1, 0.0), relation="add_or_remove")
    -> sampling_rate must lie in \[0, 1\]
accountant("PoissonSampledDpEvent", 0.1, event("RepeatAndSelectDpEvent", event("GaussianDpEvent", 1.0), 2.0, 1.0), relation="replace")
    -> dominating pair
accountant("SampledWithoutReplacementDpEvent", 100, 10, event("ZCDpEvent", 0.1, 0.0), relation="replace")
    -> dominating pair
accountant("SampledWithoutReplacementDpEvent", 100, 10, event("PermuteAndFlipDpEvent", 0.1), relation="add_or_remove")
    -> must be `ADD_OR_REMOVE_ONE`
accountant("RandomAllocationDpEvent", event("ZCDpEvent", 0.1, 0.0), 1, 10, relation="replace_special") -> only in a sum
accountant("RandomAllocationDpEvent", event("GaussianDpEvent", 1.0), 11, 10) -> num_selected must be at most steps
accountant("RandomizedResponseDpEvent", 0.5, 1, relation="add_or_remove") -> must be `REPLACE_ONE` or `REPLACE_SPECIAL`
accountant("RepeatAndSelectDpEvent", event("GaussianDpEvent", 1.0), 0.5, 1.0, relation="replace") -> mean must lie in
accountant("RepeatAndSelectDpEvent", event("GaussianDpEvent", 1.0), 2.0, -1.0, relation="replace") -> shape must lie in
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """What is refused says why."""
    with pytest.raises(events.UnsupportedEvent, match=reason):
        eval(call, NAMES)
