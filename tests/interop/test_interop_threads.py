"""Adapters under threads: other libraries' callers lose no step either."""

import copy
import pickle

import pytest

from hockeystick.interop import flower
from racing import race

CONFIG = flower.PrivacyConfig(1e-5, 1000, "add-or-remove-one", "poisson", 2.0)


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
