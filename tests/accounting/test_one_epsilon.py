"""Whoever prints an epsilon prints that of its `epsilon`: statements, explanations, reprs, and adapters."""

from __future__ import annotations

import json
import re

import pytest

import hockeystick as hs
from compositions import MIXED, REPLACED, composed
from hockeystick.interop import flower, opacus

DELTA = 1e-5
SAMPLED = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)
SMALL = [mechanism for mechanism in MIXED if not isinstance(mechanism, hs.RandomAllocation)]


def charged(budget):
    """Return the accountant or filter of a client that was charged thrice."""
    with hs.ClientLedgers(":memory:", **budget) as ledgers:
        ledgers.enrol([1, 2])
        ledgers.charge(1, hs.Gaussian(30.0), 3)
        return ledgers.account(1)


def of_flower():
    """Return the accountant behind Flower's."""
    accountant = flower.Accountant(flower.PrivacyConfig(DELTA, 1000, "add-or-remove-one", "poisson", 2.0))
    accountant.compose(flower.GaussianPrivacyEvent(1.0, 10, 1000), 50)
    assert (
        accountant.get_epsilon(DELTA) == accountant.get_privacy_spent().epsilon == accountant.accountant.epsilon(DELTA)
    )
    return accountant.accountant


def of_opacus():
    """Return the accountant behind Opacus'."""
    accountant = opacus.HockeyStickAccountant()
    accountant.history = [(1.0, 0.01, 50), (2.0, 0.02, 7)]
    assert accountant.get_epsilon(DELTA) == accountant.accountant().epsilon(DELTA)
    return accountant.accountant()


def of_dp_accounting():
    """Return the accountant behind dp_accounting's."""
    dp = pytest.importorskip("dp_accounting")
    from hockeystick.interop.dp_accounting import HockeyStickAccountant  # noqa: PLC0415 - needs dp_accounting

    accountant = HockeyStickAccountant().compose(dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0)), 50)
    assert accountant.get_epsilon(DELTA) == accountant.accountant.epsilon(DELTA)
    return accountant.accountant


LEDGERS = {
    **{f"{number} {type(m).__name__}": (lambda m=m: composed((m, 3))) for number, m in enumerate(MIXED)},
    **{
        f"replaced {number} {type(m).__name__}": (lambda m=m: composed((m, 3), adjacency="replace"))
        for number, m in enumerate(REPLACED)
    },
    "several": lambda: composed(*((m, 2) for m in SMALL[:3])),
    "by a grid": lambda: composed((SAMPLED, 20), engine="pld"),
    "Renyi alone": lambda: composed((hs.RenyiDP([2.0, 8.0], [0.01, 0.05]), 3), (SAMPLED, 2)),
    "zero-concentrated": lambda: composed((hs.ZeroConcentratedDP(0.01), 3)),
    "a client's": lambda: charged({"epsilon": 3.0, "delta": 1e-6}),
    "Flower's": of_flower,
    "Opacus'": of_opacus,
    "dp_accounting's": of_dp_accounting,
}


@pytest.mark.share(6, by_day=3)
@pytest.mark.parametrize("name", LEDGERS)
def test_accountants(name):
    """In words, in JSON, as a bracket and as the end of the curve it is one number, and it is rounded up where it is shortened."""
    accountant = LEDGERS[name]()
    epsilon, bracket = accountant.epsilon(DELTA), accountant.epsilon_bracket(DELTA)
    assert bracket.upper == epsilon == accountant.epsilon([DELTA, DELTA / 2])[0]
    text, entry = accountant.statement(DELTA), json.loads(accountant.statement(DELTA, format="json"))
    printed = re.search(r"ε = (\S+?),? at δ = 1e-05", text)[1]  # the first is that of one record
    assert printed == hs.format_upper(epsilon, ".4g")
    assert entry["dp_flavor"]["epsilon"] == epsilon
    explained = accountant.explain(delta=DELTA)
    assert explained.bracket.upper == epsilon
    assert f"and {hs.format_upper(epsilon)}, " in repr(explained)
    assert float(re.search(r"and (\S+), certified", str(explained))[1]) == epsilon
    assert f"upper={epsilon!r}" in repr(bracket)
    assert accountant.epsilon_curve(DELTA)[-1] == pytest.approx(epsilon, rel=1e-9)


ODOMETERS = {
    "RenyiOdometer": lambda: hs.RenyiOdometer(delta=DELTA).spend(SAMPLED, 100),
    "ZeroConcentratedOdometer": lambda: hs.ZeroConcentratedOdometer(delta=DELTA).spend(hs.Gaussian(20.0), 40),
}


@pytest.mark.parametrize("name", ODOMETERS)
def test_odometers(name):
    """What an odometer shows of itself is its epsilon, rounded up."""
    odometer = ODOMETERS[name]()
    assert re.search(r"epsilon (\S+) at delta 1e-05", repr(odometer))[1] == hs.format_upper(odometer.epsilon)


FILTERS = {
    "GaussianFilter": lambda: hs.GaussianFilter(epsilon=2.0, delta=DELTA),
    "RenyiFilter": lambda: hs.RenyiFilter(order=8, epsilon=2.0, delta=DELTA),
    "ZeroConcentratedFilter": lambda: hs.ZeroConcentratedFilter.of_epsilon(2.0, DELTA),
    "PlannedFilter": lambda: hs.PlannedFilter(composed((SAMPLED, 100))),
    "a client's": lambda: charged({"budget": hs.GaussianFilter(epsilon=2.0, delta=DELTA)}),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters(name):
    """The epsilon of a filter is that of what it was made from, and that of its copies, whatever is spent."""
    budget = FILTERS[name]()
    epsilon = budget.epsilon(DELTA)
    assert epsilon == (
        composed((SAMPLED, 100)).epsilon(DELTA) if name == "PlannedFilter" else pytest.approx(2.0, rel=1e-6)
    )
    assert epsilon <= 2.0 * (1 + 1e-15) or name == "PlannedFilter"
    loaded = type(budget).from_state_dict(json.loads(json.dumps(budget.state_dict())))
    assert loaded.epsilon(DELTA) == epsilon
    assert repr(loaded) == repr(budget)
    if name != "PlannedFilter" and not len(budget):
        alone = hs.IndividualFilter(budget, 3) if hasattr(budget, "mu") or hasattr(budget, "order") else None
        assert alone is None or alone.epsilon(DELTA) == epsilon
    budget.spend(SAMPLED if name in {"PlannedFilter", "RenyiFilter"} else hs.Gaussian(50.0))
    assert budget.epsilon(DELTA) == epsilon
