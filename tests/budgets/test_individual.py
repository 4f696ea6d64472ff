"""Individual filters: what is released about one record, by integrals over all paths, is at most the guarantee."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs

LINE = np.linspace(-14.0, 18.0, 6001)
STEP = LINE[1] - LINE[0]


def density(y, mean=0.0):
    """Return the density of N(mean, 1)."""
    return np.exp(-((y - mean) ** 2) / 2) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_gaussian_rounds_stay_within_mu(seed, adjacency):
    """A record whose second vector depends on the first release: delta of both, exactly, is at most that of mu-GDP.

    Each path is a record of its own in one filter. Where it is replaced, two records with filters of their own pull apart.
    """
    rng = np.random.default_rng(seed)
    mu, first = rng.uniform(0.5, 2.0), rng.uniform(0.05, 0.45, 2)
    moved = np.zeros(LINE.size)
    for start, side in zip(first, (1.0, -1.0), strict=True):
        if adjacency == "add_or_remove" and side < 0:
            continue
        budget = hs.IndividualFilter(hs.GaussianFilter(mu, adjacency=adjacency), LINE.size)
        assert budget.admit(np.full(LINE.size, start * mu), 1.0).all()
        wanted = mu * (0.4 + 0.5 * np.sin(LINE * rng.uniform(0.2, 3.0) + rng.uniform(0, 6)) ** 2)
        moved += np.where(budget.admit(wanted, 1.0), wanted, 0.0)
    before = mu * (first[0] if adjacency == "add_or_remove" else first.sum())
    loss = before * LINE - before**2 / 2
    for eps in (0.0, 0.3, 1.0, 2.0, 4.0):
        found = STEP * np.sum(density(LINE, before) * hs.theta(eps - loss, moved))
        assert found <= hs.gdp_delta(mu, eps) * (1 + 1e-9)


def sampled_divergence(order, distance, rate, *, forward):
    """Return the divergence of a sampled record at a distance, by quadrature."""
    y = np.linspace(-30.0, 30.0 + 2 * order * float(np.max(distance)), 60001)
    with_record = np.log(rate) + distance * y - distance**2 / 2
    mixed = np.logaddexp(with_record, np.log1p(-rate))  # log of M/Q
    exponents = (order if forward else 1.0 - order) * mixed
    h = y[1] - y[0]
    return math.log(h * np.sum(np.exp(exponents) * density(y))) / (order - 1)


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("forward", [True, False])
def test_sampled_rounds_stay_within_the_budget(seed, forward):
    """Two rounds on samples, the second vector chosen by the first release: the divergence, integrated, is at most the budget."""
    rng = np.random.default_rng(seed)
    order, rate, first = float(rng.choice([2, 4, 8])), rng.uniform(0.05, 0.5), rng.uniform(0.2, 0.8)
    one = sampled_divergence(order, first, rate, forward=True)
    limit = one * rng.uniform(1.3, 3.0)
    budget = hs.IndividualFilter(hs.RenyiFilter(limit, order=order), LINE.size)
    assert budget.admit(np.full(LINE.size, first), 1.0, sampling_rate=rate).all()
    levels = rng.uniform(0.0, 1.2, 5)  # a few, so that their divergences are few
    which = np.digitize(LINE, np.sort(rng.normal(0.0, 1.0, 4)))
    admitted = budget.admit(levels[which], 1.0, sampling_rate=rate)
    then = np.array([sampled_divergence(order, level, rate, forward=forward) for level in levels])[which] * admitted
    mixed = np.logaddexp(np.log(rate) + first * LINE - first**2 / 2, np.log1p(-rate))
    power = order if forward else 1.0 - order
    total = STEP * np.sum(np.exp(power * mixed + (order - 1) * then) * density(LINE))
    assert math.log(total) / (order - 1) <= limit * (1 + 1e-9)
    assert admitted.sum() > 0 or levels.min() > first


@given(
    st.floats(1e-4, 8.0), st.sampled_from([1e-3, 0.01, 0.2, 0.9]), st.sampled_from([2, 3, 8, 32]), st.floats(0.1, 10.0)
)
def test_cost_of_samples(distance, rate, order, noise):
    """A sampled record spends at least the divergence of its own distance, by its binomial sum, and that of one 0.6 % larger at most."""
    budget = hs.IndividualFilter(hs.RenyiFilter(1e90, order=order), 1)
    assert budget.admit([distance * noise], noise, sampling_rate=rate).all()
    (spent,) = budget.spent
    with mp.workdps(40):
        at = [_removed(mp.mpf(distance) * factor, mp.mpf(rate), order) for factor in (1 - 1e-15, 2 ** (1 / 127))]
    assert at[0] <= spent <= at[1] * (1 + 1e-8)


def _removed(distance, rate, order):
    """Return the divergence of order n of a sampled record from none: the larger direction (Mironov, Talwar and Zhang 2019, Theorem 5)."""
    terms = [
        mp.binomial(order, k) * rate**k * (1 - rate) ** (order - k) * mp.exp(k * (k - 1) * distance**2 / 2)
        for k in range(order + 1)
    ]
    return mp.log(mp.fsum(terms)) / (order - 1)


def test_full_rounds_are_those_of_the_filters():
    """Of equal norms as many rounds fit as the filter of the budget allows for such noise, to the last one."""
    for adjacency in ("add_or_remove", "replace"):
        for budget, noise in (
            (hs.GaussianFilter(1.0, adjacency=adjacency), 30.0),
            (hs.GaussianFilter(epsilon=2.0, delta=1e-6, adjacency=adjacency), 47.0),
            (hs.RenyiFilter(0.7, order=6, adjacency=adjacency), 51.3),
        ):
            individual, rounds = hs.IndividualFilter(budget, 2), 0
            while individual.admit([1.0, 0.5], noise)[0]:
                rounds += 1
            assert rounds == budget.remaining(hs.Gaussian(noise)) > 100
            assert individual.epsilon(1e-6) == budget.epsilon(1e-6)


@given(st.lists(st.floats(1e-6, 3.0), min_size=1, max_size=60))
def test_sums_are_above_the_exact_ones(norms):
    """What is spent is at least the exact sum of squares of the rounds admitted, and hardly more."""
    budget = hs.IndividualFilter(hs.GaussianFilter(5.0), 1)
    exact = mp.mpf(0)
    with mp.workdps(60):
        for norm in norms:
            if budget.admit([norm], 0.7)[0]:
                exact += (mp.mpf(norm) / mp.mpf(0.7)) ** 2
        assert exact <= budget.spent[0] <= exact * (1 + mp.mpf(2) ** -49)
        assert exact <= mp.mpf(5.0) ** 2 * (1 + mp.mpf(2) ** -47)


def test_a_million_records():
    """A round of a million records with norms of their own takes seconds at most, sampled or not."""
    norms = np.minimum(np.random.default_rng(1).lognormal(-1.0, 1.0, 10**6), 1.0)
    norms[:3] = (0.0, 1.0, 5e-324)
    budget = hs.IndividualFilter(hs.RenyiFilter(0.3, order=4), norms.size)
    first = budget.admit(norms, 1.0, sampling_rate=0.01)
    assert first.all()
    assert budget.spent[0] == 0.0 < budget.spent[2]
    second = budget.admit(norms, 2.0)
    assert second[0]
    assert not second[1]
    assert second[norms < 0.2].all()
    again = hs.IndividualFilter(budget.budget, norms.size, spent=budget.spent)
    assert (again.admit(norms, 4.0) == budget.admit(norms, 4.0)).all()
    assert "1000000 records, each with <RenyiFilter: 0 of 0.3" in repr(again)


def test_ends():
    """No norm and a sample of nobody cost nothing even where all is spent; an infinite norm is never admitted."""
    budget = hs.IndividualFilter(hs.RenyiFilter(1.0, order=2), 3, spent=[math.inf, 1.0, 0.0])
    assert budget.admit([0.0, 0.0, math.inf], 1.0).tolist() == [True, True, False]
    assert budget.admit([1.0, 1.0, math.inf], 1.0, sampling_rate=0.0).all()
    assert budget.admit([1.0, 1e-9, 1e-9], 1e9).tolist() == [False, True, True]
    assert budget.admit([0.0, 1e200, 1e200], 1e-200, sampling_rate=0.5).tolist() == [True, False, False]
    assert len(budget) == 3
