"""Adapters under threads: other libraries' callers lose no step either."""

from __future__ import annotations

import copy
import pickle

import pytest

from hockeystick.interop import flower, opacus
from racing import race

CONFIG = flower.PrivacyConfig(1e-5, 1000, "add-or-remove-one", "poisson", 2.0)


def test_flower():
    """Rounds and events agree, in every state that is saved meanwhile, and in what was spent."""
    accountant, event = flower.Accountant(CONFIG), flower.GaussianPrivacyEvent(1.0, 10, 1000)

    def look():
        loaded = flower.Accountant(CONFIG)
        loaded.load_state_dict(accountant.state_dict())
        assert loaded.num_releases == sum(count for _, count in loaded._state.compositions)
        for other in (copy.copy(accountant), pickle.loads(pickle.dumps(accountant))):
            assert other.num_releases == sum(entry["count"] for entry in other.state_dict()["compositions"])

    calls = race(lambda: accountant.compose(event), 200, meanwhile=look)
    rounds = sum(entry["count"] for entry in accountant.state_dict()["compositions"])
    assert accountant.num_releases == rounds == calls
    alone = flower.Accountant(CONFIG)
    alone.compose(event, calls)
    assert accountant.get_privacy_spent() == alone.get_privacy_spent()


def test_flower_spent_is_of_one_moment():
    """Epsilon and the number of releases belong together, though rounds are added meanwhile."""
    accountant, event, seen = flower.Accountant(CONFIG), flower.GaussianPrivacyEvent(1.0, 10, 1000), {}

    def look():
        spent = accountant.get_privacy_spent()
        seen[spent.num_releases] = spent.epsilon

    race(lambda: accountant.compose(event), 50, meanwhile=look)
    for rounds, epsilon in seen.items():
        alone = flower.Accountant(CONFIG)
        if rounds:
            alone.compose(event, rounds)
        assert alone.get_epsilon(1e-5) == epsilon


def test_opacus():
    """Steps of two noises by turns are all in the history."""
    accountant, steps = opacus.HockeyStickAccountant(), iter(range(10**9))

    def step():
        accountant.step(noise_multiplier=1.0 + next(steps) % 2, sample_rate=0.01)

    def look():
        other = pickle.loads(pickle.dumps(accountant))
        assert len(other) == sum(entry[2] for entry in other.state_dict()["history"])

    assert race(step, 500, meanwhile=look) == len(accountant)


def test_dp_accounting():
    """An event of two mechanisms is composed as one: their counts never differ, and no event is lost."""
    dp = pytest.importorskip("dp_accounting")
    from hockeystick.interop.dp_accounting import HockeyStickAccountant  # noqa: PLC0415 - needs dp_accounting

    accountant = HockeyStickAccountant()
    event = dp.ComposedDpEvent([dp.GaussianDpEvent(5.0), dp.LaplaceDpEvent(7.0)])

    def look():
        for each in (accountant, copy.copy(accountant), pickle.loads(pickle.dumps(accountant))):
            assert len(set(each.accountant.ledger.values())) <= 1
        other = pickle.loads(pickle.dumps(accountant))
        assert set(other.accountant.ledger.values()) <= {getattr(other.ledger, "count", 1)}

    calls = race(lambda: accountant.compose(event), 200)
    calls += race(lambda: accountant.compose(event), 30, meanwhile=look)
    assert accountant.ledger == dp.SelfComposedDpEvent(event, calls)
    assert list(accountant.accountant.ledger.values()) == [calls, calls]
