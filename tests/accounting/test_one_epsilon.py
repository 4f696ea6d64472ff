"""Whoever prints an epsilon prints that of its `epsilon`: statements, explanations, reprs, and adapters."""

import json
import math
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
NOISE = hs.Gaussian(2.0)
AT_DELTA_0 = {
    "Poisson": lambda: composed((hs.PoissonSampled(NOISE, 60 / 1000), 40)),
    "Poisson, without the last": lambda: composed((hs.PoissonSampled(NOISE, 1 / 16), 40)),
    "shuffled": lambda: composed((NOISE, 3)),
    "fixed": lambda: composed((hs.FixedSizeSampled(NOISE, 1000, 60, replacement=False), 40), adjacency="replace"),
    "Laplace": lambda: composed((hs.Laplace(3.0), 5)),
    "unequal": lambda: composed((hs.PoissonSampled(NOISE, 0.06), 40), (hs.Laplace(9.0), 2), hs.DiscreteGaussian(4.0)),
    "group": lambda: composed((hs.MixtureOfGaussians.of_group(2.0, 4, 0.01), 100)),
    "allocation": lambda: composed(hs.RandomAllocation(NOISE, 4)),
    "concentrated": lambda: composed((hs.ZeroConcentratedDP(0.1), 3)),
    "selection": lambda: composed((hs.ExponentialMechanism(0.5), 20)),
}
CASES = [(name, DELTA) for name in LEDGERS] + [(name, delta) for delta in (1e-6, 0.0) for name in AT_DELTA_0]


@pytest.mark.share(6)
@pytest.mark.parametrize(("name", "delta"), CASES)
def test_accountants(name, delta):
    """In words, in JSON, as a bracket and as the end of the curve it is one number, and it is rounded up where it is shortened."""
    accountant = (LEDGERS | AT_DELTA_0)[name]()
    epsilon, bracket, text = accountant.epsilon(delta), accountant.epsilon_bracket(delta), accountant.statement(delta)
    if delta == 0.0 and epsilon == math.inf:
        assert "no finite ε" in " ".join(text.split())
        return
    assert bracket.upper == epsilon == accountant.epsilon([delta, 5e-6])[0]
    printed = re.search(rf"ε = (\S+?),? at δ = {delta:g}", " ".join(text.split()))[1]  # the first is that of one record
    assert printed == hs.format_upper(epsilon, ".4g")
    assert json.loads(accountant.statement(delta, format="json"))["dp_flavor"]["epsilon"] == epsilon
    explained = accountant.explain(delta=delta)
    assert explained.bracket == bracket
    assert f"and {hs.format_upper(epsilon)}, " in repr(explained)
    assert float(re.search(r"and (\S+), certified", str(explained))[1]) == epsilon
    assert f"upper={epsilon!r}" in repr(bracket)
    last = accountant.epsilon_curve(delta)[-1]
    assert last == (pytest.approx(epsilon, rel=1e-9) if name in LEDGERS else epsilon)


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
    "MenuFilter": lambda: hs.MenuFilter([hs.Gaussian(50.0)], epsilon=2.0, delta=DELTA),
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
