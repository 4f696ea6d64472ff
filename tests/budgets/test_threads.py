"""Filters and odometers under threads: comparing with the budget and paying are one step."""

from __future__ import annotations

import contextlib
import copy
import pickle

import pytest

import hockeystick as hs
from racing import race

STEP = hs.Gaussian(30.0)
FILTERS = {
    "GaussianFilter": lambda: hs.GaussianFilter(mu=1.0),
    "RenyiFilter": lambda: hs.RenyiFilter(budget=1.0, order=8),
}


@pytest.mark.parametrize("make", FILTERS.values(), ids=FILTERS)
def test_threads_spend_no_more_than_the_budget(make):
    """Of 16,000 steps that eight threads try, as many are let through as one thread could pay for, and all are counted."""
    budget, room, passed = make(), make().remaining(STEP), []

    def spend():
        with contextlib.suppress(hs.BudgetExceededError):
            budget.spend(STEP)
            passed.append(1)

    race(spend, 2000)
    assert len(passed) == len(budget) == room
    assert budget.remaining(STEP) == 0


@pytest.mark.parametrize("make", FILTERS.values(), ids=FILTERS)
def test_queries_see_one_ledger(make):
    """Saved, copied or asked while others spend, a filter has paid for as many steps as it counts."""
    budget, room = make(), make().remaining(STEP)

    def look():
        state = budget.state_dict()
        loaded = (type(budget).from_state_dict(state), copy.copy(budget), pickle.loads(pickle.dumps(budget)))
        assert all(len(each) + each.remaining(STEP) == room for each in loaded)

    race(lambda: budget.would_exceed(STEP) or budget.spend(STEP), 20, meanwhile=look)
    assert len(budget) + budget.remaining(STEP) == room


def test_threads_lose_no_step_of_an_odometer():
    """Eight threads spend 16,000 steps: the odometer says what it says after as many steps of one thread."""
    odometer, step = hs.RenyiOdometer(delta=1e-5), hs.PoissonSampled(hs.Gaussian(1.0), 0.01)
    calls = race(lambda: odometer.spend(step), 2000, meanwhile=lambda: (odometer.epsilon, repr(odometer)))
    assert len(odometer) == calls
    assert odometer.epsilon == hs.RenyiOdometer(delta=1e-5).spend(step, calls).epsilon


@pytest.mark.parametrize("make", FILTERS.values(), ids=FILTERS)
def test_a_copy_spends_for_itself(make):
    """What a shallow copy spends is not spent, and not counted, by the filter that it was made from."""
    budget = make().spend(STEP, 3)
    other = copy.copy(budget).spend(STEP, 5)
    assert (len(budget), len(other)) == (3, 8)
    assert budget.remaining(STEP) - other.remaining(STEP) == 5
