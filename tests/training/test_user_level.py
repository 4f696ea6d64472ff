"""Users with several records: both ways of drawing batches against tails, selections of shared records against all of them."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr
from scipy.stats import binom

import hockeystick as hs
import refused_calls
from hockeystick.training import bound_owners, user_level_parameters

SETTINGS = {
    "num_users": 1000,
    "num_records": 3000,
    "records_per_user": 4,
    "batch_size": 300,
    "users_per_step": 100,
    "steps": 1,
    "noise_multiplier": 1.5,
}


def parameters(**changed):
    """Return the parameters of changed settings."""
    return user_level_parameters(**SETTINGS | changed)


def exact_delta(noise, counts, chances, eps):
    """Return the larger delta of both directions: a user's clip norms come in a random number, and their ratio of densities rises."""

    def log_ratio(y):
        return logsumexp((counts * y - counts**2 / 2) / noise**2, b=chances)

    found = []
    for sign in (1, -1):  # with the user from without, and back
        if log_ratio(-1e5) >= sign * eps:
            found.append(0.0)  # no outcome speaks for nobody by that much
            continue
        cut = brentq(lambda y, level=sign * eps: log_ratio(y) - level, -1e5, 1e5, xtol=1e-13, rtol=1e-15)
        mixed = chances @ ndtr(sign * (counts - cut) / noise)
        without = ndtr(-sign * cut / noise)
        found.append(mixed - math.exp(eps) * without if sign == 1 else without - math.exp(eps) * mixed)
    return max(found)


@pytest.mark.share(3)
@pytest.mark.parametrize("noise", [0.8, 1.5, 4.0])
@pytest.mark.parametrize("held", [1, 2, 5, 30])
@pytest.mark.parametrize("batch_size", [3, 60, 300])
def test_one_step_is_exact(noise, held, batch_size):
    """Delta of one step of either way is, in the worse direction, that of its own two laws."""
    drawn = {"batch_size": batch_size, "users_per_step": batch_size}
    training = parameters(num_records=600, records_per_user=held, noise_multiplier=noise, **drawn)
    for way, counts, rate in (
        (training.example_sampling, np.arange(held + 1), batch_size / 600),
        (training.user_sampling, np.arange(2), batch_size / 1000),
    ):
        chances = binom.pmf(counts, counts[-1], rate)
        for eps in (0.01, 0.4, 1.5, 4.0):
            exact = exact_delta(noise, counts, chances, eps)
            found = way.accountant().delta(eps)
            assert found >= exact * (1 - 1e-9) - 1e-15
            assert found == pytest.approx(exact, rel=1e-7, abs=1e-14)


def test_two_ways():
    """A user with one record is a record; drawing users leaks less; group privacy of one record says more than its mixture."""
    one = parameters(num_records=1000, records_per_user=1, batch_size=100, steps=50)
    record = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.5), 0.1), 50)
    for way in one:
        assert way.accountant().epsilon(1e-5) == pytest.approx(record.epsilon(1e-5), rel=1e-6)
    training = parameters(steps=50)
    by_records, by_users = (way.accountant().epsilon(1e-5) for way in training)
    assert by_users < by_records
    grown = [parameters(steps=50, records_per_user=k).example_sampling for k in (4, 5, 9)]
    spent = [way.accountant().epsilon(1e-5) for way in grown]
    assert sorted(spent) == spent
    for way in training:
        assert way.adjacency == "add_or_remove"
        assert way.steps == 50
        assert "one user with all its records" in way.privacy_unit
        assert any("50 steps" in line for line in way.assumptions)


SMALL = st.lists(st.sets(st.integers(0, 5), max_size=3), max_size=9)


def most_owned(owners, selected):
    """Return how many of the records selected the owner of the most has."""
    return max(Counter(owner for number in selected for owner in owners[number]).values(), default=0)


@given(SMALL, st.integers(1, 3))
def test_against_all_selections(owners, most):
    """The selection keeps the limit, nothing can be added, and the largest of all selections is within the two bounds."""
    found = bound_owners(owners, most)
    selected = found.selected.tolist()
    assert most_owned(owners, selected) == found.records_per_user <= most
    others = set(range(len(owners))) - set(selected)
    assert all(most_owned(owners, [*selected, number]) > most for number in others)
    largest = max(
        len(chosen)
        for size in range(len(owners) + 1)
        for chosen in itertools.combinations(range(len(owners)), size)
        if most_owned(owners, chosen) <= most
    )
    assert len(selected) <= largest <= found.at_most
    assert len(selected) * max([1, *map(len, owners)]) >= largest


def test_one_owner_each_is_the_best():
    """Where every record has one owner, each has its first records, and no selection has more."""
    owners = [[number % 7] for number in range(50)]
    found = bound_owners(owners, 3)
    assert found.selected.tolist() == list(range(21))
    assert found.at_most == 21


def test_a_list_of_owners_that_is_not_public_is_not_stable():
    """In a chain of shared records, another set is selected throughout if the first owner is not there."""
    chain = [(number, number + 1) for number in range(100)]
    with_first = set(bound_owners(chain, 1).selected.tolist())
    without = {number + 1 for number in bound_owners(chain[1:], 1).selected.tolist()}
    assert len(with_first) == len(without) == 50
    assert not with_first & without


def test_ends():
    """Nothing, records of nobody and owners named twice."""
    assert bound_owners([], 1).selected.size == 0
    assert bound_owners([[], []], 1)[1:] == (0, 2)
    assert bound_owners([["a", "a"]], 1).selected.tolist() == [0]
    many = np.random.default_rng(0).integers(0, 1000, (20_000, 2))
    found = bound_owners(many, 10)
    assert found.records_per_user == 10
    assert 4000 < found.selected.size <= found.at_most <= 10_000


REFUSED = r"""
parameters(num_records=5000) -> num_records must be at most num_users times records_per_user \(4000\), not 5000
parameters(batch_size=3001) -> batch_size must be at most num_records \(3000\), not 3001
parameters(users_per_step=1001) -> users_per_step must be at most num_users \(1000\), not 1001
parameters(records_per_user=1001) -> group_size must be at most .*\(1000\)
bound_owners([["a"], "Ada"], 1) -> TypeError: owners\[1\] must be the ids
bound_owners([1, 2], 1) -> TypeError: owners\[0\] must be the ids
bound_owners([[["a"]]], 1) -> TypeError: owners\[0\] must have hashable
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """What is outside its domain is named with its value, and wrong types are told from wrong values."""
    refused_calls.check(call, reason, {"parameters": parameters, "bound_owners": bound_owners})
