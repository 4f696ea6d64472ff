"""Truncated Poisson samples, also where a record is zeroed out: the labels of every smaller data set, a peer's, tails."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import effort
import hockeystick as hs
from enumeration import bracket, directions, encloses, hockey_stick, noisy_sum, normal_law, truncated
from hockeystick._core import binomial_upper_tail
from hockeystick.mechanisms.base import ADJACENCIES

STEP = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 0.05, 18)


def divergence(kept, moved, shift, gamma):
    """Return E_gamma of kept N(0, 1) + moved N(shift, 1) against N(0, 1), by the point where their ratio is gamma."""
    if gamma <= kept or moved == 0:
        return max(kept + moved - gamma, 0.0)
    cut = math.log((gamma - kept) / moved) / shift + shift / 2
    return (kept - gamma) * ndtr(-cut) + moved * ndtr(shift - cut)


def rows_where_it_comes(others, rate, most):
    """Return (weight, kept, moved) of the lemma's labels: fewer others than leave one place, one place, none."""
    law, everybody = binom(others, rate), binom(others + 1, rate)
    last, full = float(law.pmf(most - 1)), float(law.sf(most - 1))
    extra = float(everybody.sf(most)) * most / (others + 1)
    rows = [(float(law.cdf(most - 2)), 1 - rate, rate)]
    rows += [(last, 1 - rate, rate + extra / last)] if last > 0 else []
    return rows + ([(full, 1 - extra / full, 0.0)] if full > 0 else [])


def rows_where_it_is_zeroed_out(others, rate, most):
    """Return the same of the labels where a record is zeroed out: fewer others than leave one place, one place, none."""
    law = binom(others, rate)
    last, full = float(law.pmf(most - 1)), float(law.sf(most - 1))
    extra = float(binom(others + 1, rate).sf(most)) * most / (others + 1)
    rows = [(float(law.cdf(most - 2)), rate), (full - extra, 0.0)]
    rows += [(last + extra, (rate * last + extra) / (last + extra))] if last + extra > 0 else []
    return [(weight, 1 - moved, moved) for weight, moved in rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("zeroed_out", "rows_by_number", "largest_shift", "least"),
    [(False, rows_where_it_comes, 4, 2000), (True, rows_where_it_is_zeroed_out, 6, 10_000)],
)
def test_every_smaller_data_set_leaks_less(zeroed_out, rows_by_number, largest_shift, least):
    """The pair lies above the labelled one of every number of other records, at every gamma."""
    rng = np.random.default_rng(6 if zeroed_out else 5)
    compared = 0
    for _ in range(effort.at_night(80, by_day=30)):
        others, rate, shift = int(rng.integers(2, 60)), rng.uniform(0.01, 0.9), rng.uniform(0.3, largest_shift)
        most = int(rng.integers(1, others + 1))
        step = hs.TruncatedPoissonSampled(hs.Gaussian(1 / shift), others + 1, rate, most, zeroed_out=zeroed_out)
        pair = step._pair("add_or_remove")
        if not zeroed_out and (len(pair.parameters) < 6 or pair.parameters[2] == 0):  # the pair of a displaced record
            continue
        numbers = [rows_by_number(number, rate, most) for number in range(1, others + 1)]
        for gamma in np.concatenate([np.exp(rng.uniform(-2, 4, 4)), 1 - rate * rng.uniform(0, 1, 3)]):
            eps = math.log(gamma)
            found = pair.one_step(gamma >= 1, False, abs(eps))[1]
            if gamma < 1:  # the curve is that of the reverse direction
                found = 1 - gamma + gamma * found
            for rows in numbers:
                shown = sum(weight * divergence(*row, shift, gamma) for weight, *row in rows)
                assert shown <= found * (1 + 1e-9) + 1e-12
                compared += 1
    assert compared > effort.at_night(least, by_day=least // 4)


def upper(step, forward, eps):
    """Return the certified delta of one step in one direction."""
    return step._pair("add_or_remove").one_step(forward, False, eps)[1]


def test_a_record_that_leaves_is_not_enough():
    """A data set of clear labels leaks more, where a record is zeroed out, than the pair of a record that leaves allows."""
    others, rate, most, shift = 3, 0.5, 2, 40.0
    leaves = hs.TruncatedPoissonSampled(hs.Gaussian(1 / shift), others + 1, rate, most)
    zeroed = hs.TruncatedPoissonSampled(hs.Gaussian(1 / shift), others + 1, rate, most, zeroed_out=True)
    edges = np.linspace(-4, 4, 40_001)
    p, q = (
        noisy_sum(truncated([1.0] * others + [mine], rate, most), edges, lambda x: ndtr(x * shift))
        for mine in (-1 / 3, 0.0)
    )
    eps = math.log(2)  # gamma = 1/2 = 1 - rate, from the other side
    attained = hockey_stick(q, p, eps)
    assert attained <= upper(zeroed, False, eps)
    assert attained > upper(leaves, False, eps)


def test_state():
    """A state holds the word; one of an older version, without it, is of a record that comes or goes."""
    step = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.05, 9, zeroed_out=True)
    accountant = hs.Accountant().compose(step, 3)
    state = accountant.state_dict()
    assert hs.Accountant.from_state_dict(state).ledger == accountant.ledger
    del state["steps"][0]["mechanism"]["zeroed_out"]
    older = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.05, 9)
    assert hs.Accountant.from_state_dict(state).ledger == {older: 3}


@pytest.mark.parametrize("eps", [0.2, 1.0, 3.0])
def test_two_steps_are_an_integral(eps):
    """Two steps are the mean of one step's curve over the losses of the other, label by label."""
    rate, last, excess, swapped = STEP._pair("add_or_remove").parameters[1:5]
    assert swapped == 0
    rows = [
        (1 - last * (1 + excess), 1 - rate, rate),
        (last, 1 - rate, rate * (1 + excess)),
        (last * excess, 1 - rate, 0.0),
    ]
    x, density = normal_law(-12, 13, 10_001)
    exact = 0.0
    for weight, kept, moved in rows:
        ratio = kept + moved * np.exp(x - 0.5)
        for other, *row in rows:
            curve = np.array([divergence(*row, 1.0, math.exp(eps) / r) for r in ratio])
            exact += weight * other * np.sum(density * ratio * curve)
    found = directions(STEP, eps, 2)[0]
    encloses(found, exact, slack=1e-6)
    assert found.upper <= exact * (1 + 1e-2)


@pytest.mark.parametrize("zeroed_out", [False, True])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_truncation_that_is_rare_costs_little(zeroed_out, adjacency):
    """A sample of 0.3 % truncations is close to a Poisson sample, where a bound by a shift of two sensitivities said 2.37."""
    step = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 1000, 0.01, 20, zeroed_out)
    found = hs.Accountant(adjacency).compose(step, 100).epsilon_bracket(1e-5)
    whole = hs.Accountant(adjacency).compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 100).epsilon(1e-5)
    assert found.lower <= whole * (1 + 1e-3) <= found.upper * (1 + 2e-3) <= 1.02 * whole


@pytest.mark.parametrize("zeroed_out", [False, True])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_large_batches_are_poisson_samples(zeroed_out, adjacency):
    """A batch for everybody is Poisson sampling; smaller ones leak more and more; nobody sampled leaks nothing."""

    def step(rate, most):
        return hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, rate, most, zeroed_out)

    assert step(0.05, 200)._pair(adjacency) == hs.PoissonSampled(hs.Gaussian(1.0), 0.05)._pair(adjacency)
    same = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 0.05, 12)._pair(adjacency) == step(0.05, 12)._pair(
        adjacency
    )
    assert same == (adjacency == "replace" or not zeroed_out)  # a record replaced leaks what it did
    bounds = [hs.Accountant(adjacency).compose(step(0.05, most), 20).epsilon(1e-5) for most in (200, 25, 18, 12)]
    assert all(low <= high * (1 + 1e-3) for low, high in itertools.pairwise(bounds))
    assert bounds[0] < bounds[2] < bounds[3]
    assert bracket(step(0.0, 1), 0.0, 20, adjacency).upper == 0
    if not zeroed_out:  # all are sampled, and one of them is kept
        assert bracket(step(1.0, 1), 1.0, 1, adjacency).upper == pytest.approx(float(hs.theta(1.0, 2)), rel=1e-11)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("trials", "rate", "least"),
    [
        (1, 0.5, 1),
        (2000, 0.5, 10),
        (10, 0.3, 10),
        (50, 0.5, 20),
        (999, 0.01, 20),
        (1000, 1e-7, 900),
        (10**5, 1e-3, 150),
    ],
)
def test_binomial_tails(trials, rate, least):
    """Never below the sum, and close to it; below the doubles at least 1e-300."""
    with mp.workdps(60):
        p, last = mp.mpf(rate), min(trials, least + 2000)
        terms = (mp.binomial(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(least, last + 1))
        truth = mp.fsum(terms)
        found = binomial_upper_tail(trials, rate, least)
        assert truth <= found <= max(truth * (1 + mp.mpf("1e-6")), mp.mpf("1.0001e-300"))


def test_binomial_tail_where_all_is_likely():
    """Far below the mean, and for numbers beyond what logarithms of factorials resolve, the bound is one; at the ends exact."""
    assert binomial_upper_tail(10**6, 0.5, 10) == 1
    assert binomial_upper_tail(2**53, 0.5, 2**52) == 1
    assert binomial_upper_tail(5, 0.5, 6) == binomial_upper_tail(5, 0.0, 1) == 0
    assert binomial_upper_tail(5, 1.0, 5) == 1


@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_rates_whose_product_underflows(adjacency):
    """A sample of a truncated sample that is all but empty has a bracket, of which the lower end is 0."""
    mechanism = hs.PoissonSampled(STEP, 1e-323)
    bracket = hs.Accountant(adjacency).compose(mechanism).delta_bracket(0.1)
    assert bracket.lower == 0.0 < bracket.upper < 1e-300
