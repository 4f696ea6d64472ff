"""Users with several records: both ways of drawing batches against tails of their own laws, and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr
from scipy.stats import binom

import hockeystick as hs
from hockeystick.training import user_level_parameters

SETTINGS = {
    "users": 1000,
    "records": 3000,
    "records_per_user": 4,
    "batch_size": 300,
    "users_per_step": 100,
    "steps": 1,
    "noise_multiplier": 1.5,
}


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


@pytest.mark.parametrize("noise", [0.8, 1.5, 4.0])
@pytest.mark.parametrize("held", [1, 2, 5, 30])
@pytest.mark.parametrize("batch_size", [3, 60, 300])
def test_one_step_is_exact(noise, held, batch_size):
    """Delta of one step of either way is, in the worse direction, that of its own two laws."""
    training = user_level_parameters(
        **SETTINGS
        | {
            "records": 600,
            "records_per_user": held,
            "batch_size": batch_size,
            "noise_multiplier": noise,
            "users_per_step": batch_size,
        }
    )
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
    one = user_level_parameters(**SETTINGS | {"records": 1000, "records_per_user": 1, "batch_size": 100, "steps": 50})
    record = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.5), 0.1), 50)
    for way in one:
        assert way.accountant().epsilon(1e-5) == pytest.approx(record.epsilon(1e-5), rel=1e-6)
    training = user_level_parameters(**SETTINGS | {"steps": 50})
    by_records, by_users = (way.accountant().epsilon(1e-5) for way in training)
    assert by_users < by_records
    grown = [
        user_level_parameters(**SETTINGS | {"steps": 50, "records_per_user": k}).example_sampling for k in (4, 5, 9)
    ]
    spent = [way.accountant().epsilon(1e-5) for way in grown]
    assert sorted(spent) == spent
    for way in training:
        assert way.adjacency == "add_or_remove"
        assert way.steps == 50
        assert "one user with all its records" in way.privacy_unit
        assert any("50 steps" in line for line in way.assumptions)


REJECTED = {
    "too many records": ({"records": 5000}, r"records must be at most users times records_per_user \(4000\), not 5000"),
    "a batch too large": ({"batch_size": 3001}, r"batch_size must be at most records \(3000\), not 3001"),
    "too many users": ({"users_per_step": 1001}, r"users_per_step must be at most users \(1000\), not 1001"),
    "too large a group": ({"records_per_user": 1001}, "group_size must be at most 1000"),
    "no noise": ({"noise_multiplier": 0.0}, "noise_multiplier must be positive"),
    "no steps": ({"steps": 0}, "steps must be an integer"),
}


@pytest.mark.parametrize("reason", REJECTED)
def test_rejected(reason):
    """What cannot be meant is refused in words."""
    changed, words = REJECTED[reason]
    with pytest.raises(ValueError, match=words):
        user_level_parameters(**SETTINGS | changed)
