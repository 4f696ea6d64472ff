"""Privacy filters: adversaries that choose by what they see stay within the guarantee, computed exactly on small trees."""

import copy
import json
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
import refused_calls
from enumeration import either, hockey_stick, product, renyi

BINS = np.array([-np.inf, -0.6, 0.3, 1.2, np.inf])
DISCRETE = [
    hs.Discrete([0.6, 0.4], [0.4, 0.6]),
    hs.Discrete([0.5, 0.3, 0.2], [0.45, 0.25, 0.3]),
    hs.Discrete([0.9, 0.1], [0.8, 0.2]),
    hs.PoissonSampled(hs.Discrete([0.8, 0.2], [0.2, 0.8]), 0.25),
    hs.Discrete([0.7, 0.3], [0.3, 0.7]),
]


LIMITS = [(1.0, 1e-5, 50.0), (8.0, 1e-9, 20.0), (0.1, 1e-200, 2e5)]


@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
@pytest.mark.parametrize(("epsilon", "delta", "noise"), LIMITS)
def test_filters_lose_nothing(epsilon, delta, noise, adjacency):
    """As many steps fit as the accountant, or the conversion from rho, allows for steps fixed in advance; a budget is made of its epsilon."""
    step = hs.Gaussian(noise)
    budget = hs.GaussianFilter(epsilon=epsilon, delta=delta, adjacency=adjacency)
    fixed = hs.Accountant(adjacency).remaining(step, epsilon=epsilon, delta=delta)
    assert budget.remaining(step) == fixed > 10
    concentrated = hs.ZeroConcentratedFilter.of_epsilon(epsilon, delta)
    count = concentrated.remaining(step)
    assert count == int(concentrated.rho * 2 * noise**2 * (1 + 1e-13))
    assert hs.zcdp_epsilon((count + 1) / (2 * noise**2), delta) > epsilon
    for made in (budget, concentrated):
        assert epsilon * (1 - 1e-9) < made.epsilon(delta) <= epsilon


@given(st.floats(1.01, 1000.0), st.floats(1e-3, 50.0), st.floats(-300.0, -0.01))
def test_renyi_conversion(order, divergence, log10_delta):
    """Epsilon is Proposition 12 of Canonne, Kamath and Steinke (2020) rounded up; the budget from epsilon is its inverse."""
    delta = 10.0**log10_delta
    found = hs.RenyiFilter(divergence, order=order).epsilon(delta)
    with mp.workdps(40):
        a, d, e = mp.mpf(order), mp.mpf(delta), mp.mpf(found)
        below = mp.exp((a - 1) * (divergence - e)) / (a - 1) * (1 - 1 / a) ** a
        truth = divergence + mp.log(1 - 1 / a) - (mp.log(d) + mp.log(a)) / (a - 1)
        assert below <= d
        assert found == 0 or found <= truth + mp.mpf(2) ** -40 * (1 + divergence + abs(truth))
    if found > 1e-3:
        back = hs.RenyiFilter(order=order, epsilon=found, delta=delta)
        assert back.epsilon(delta) <= found
        assert back.budget == pytest.approx(divergence, rel=1e-9, abs=1e-12 * (1 + found))


CONCENTRATED = [hs.ZeroConcentratedDP(0.125, 0.0625), hs.ZeroConcentratedDP(0.01, delta=3e-8), hs.Gaussian(9.0)]
PLANNED, MENU = [hs.Gaussian(9.0), hs.Laplace(20.0)], [DISCRETE[1], hs.Gaussian(9.0)]
PLAN = hs.Accountant().compose(PLANNED[0], 30).compose(PLANNED[1], 50)
FILTERS = {
    "gaussian": (lambda: hs.GaussianFilter(1.5), st.builds(hs.Gaussian, st.floats(1.0, 50.0))),
    "renyi": (lambda: hs.RenyiFilter(1.0, order=3), st.sampled_from([*DISCRETE, hs.Laplace(3.0), hs.Gaussian(4.0)])),
    "concentrated": (lambda: hs.ZeroConcentratedFilter(0.5, xi=0.1, delta=9e-7), st.sampled_from(CONCENTRATED)),
    "planned": (lambda: hs.PlannedFilter(PLAN), st.sampled_from(PLANNED)),
    "menu": (lambda: hs.MenuFilter(MENU, epsilon=9.0, delta=1e-6), st.sampled_from(MENU)),
}


@pytest.mark.parametrize("name", FILTERS)
@given(data=st.data())
def test_bookkeeping(name, data):
    """What would exceed raises and changes nothing; what remains fits to the last step; a state is the filter."""
    make, mechanisms = FILTERS[name]
    budget = make()
    for _ in range(6):
        step, count = data.draw(mechanisms), data.draw(st.integers(1, 40))
        before, room = budget.state_dict(), budget.remaining(step)
        assert budget.would_exceed(step, count) == (count > room)
        if count > room:
            with pytest.raises(hs.BudgetExceededError, match=f"; {room} would fit"):
                budget.spend(step, count)
            assert budget.state_dict() == before
        else:
            assert budget.spend(step, count).remaining(step) == room - count
        again = type(budget).from_state_dict(json.loads(json.dumps(budget.state_dict())))
        assert again.state_dict() == budget.state_dict()
        assert again.remaining(step) == budget.remaining(step)
        assert len(again) == len(budget) == sum(budget.ledger.values())
        assert again.epsilon(1e-6) == budget.epsilon(1e-6) == make().epsilon(1e-6)


def test_limits():
    """Nothing costs nothing; what has no bound never fits; noise beyond the doubles' squares is counted as none or all."""
    largest = 2**53
    for budget in (hs.GaussianFilter(1.0), hs.RenyiFilter(1.0, order=2)):
        silent = hs.PoissonSampled(hs.Gaussian(1.0), 0.0)
        assert budget.remaining(silent) == largest
        assert budget.spend(silent, 5).remaining(silent) == largest - 5
        assert budget.spend(silent, largest - 5).remaining(silent) == 0
        assert budget.would_exceed(silent)
        with pytest.raises(hs.BudgetExceededError, match="; 0 would fit"):
            budget.spend(silent)
        assert budget.remaining(hs.Gaussian(1e-300)) == 0
        assert budget.remaining(hs.Gaussian(1e300)) == largest
        assert budget.would_exceed(hs.Gaussian(1e-300))
        assert bool(type(budget).from_state_dict(budget.state_dict()))
    assert hs.RenyiFilter(1e100, order=2).would_exceed(hs.ApproximateDP(0.1, 1e-9))
    assert hs.RenyiFilter(1.0, order=2).epsilon(0.0) == hs.GaussianFilter(1.0).epsilon(0.0) == math.inf
    assert hs.RenyiFilter(1e-9, order=2).epsilon(0.5) == 0.0


FIXED = hs.FixedSizeSampled(hs.Gaussian(2.0), 100, 5, replacement=False)


@pytest.mark.parametrize(
    "step", [FIXED, hs.PoissonSampled(hs.Gaussian(2.0), 0.05), hs.ExponentialMechanism(0.1)], ids=repr
)
def test_samples_of_replaced_records(step):
    """A filter spends the divergence of sampled steps, and what it lets through keeps the epsilon of its budget."""
    budget = hs.RenyiFilter(order=6, epsilon=2.0, delta=1e-5, adjacency="replace")
    count = budget.remaining(step)
    assert count >= 3
    assert budget.spend(step, count).would_exceed(step, 1)
    whole = hs.Accountant("replace").compose(step, count)
    assert count * hs.Accountant("replace").compose(step).rdp(6.0) == pytest.approx(whole.rdp(6.0), rel=1e-9)
    assert whole.rdp(6.0) <= budget.budget * (1 + 1e-9)
    assert whole.epsilon(1e-5) <= 2.0 * (1 + 1e-9)


EMPTY = {name: make for name, (make, _) in FILTERS.items()} | {
    "menu of one": lambda: hs.MenuFilter([hs.Gaussian(9.0)], epsilon=2.0, delta=1e-5),
    "Renyi odometer": lambda: hs.RenyiOdometer(delta=1e-5),
    "zero-concentrated odometer": lambda: hs.ZeroConcentratedOdometer(delta=1e-5, rho=0.2, failure=1e-6),
}


@pytest.mark.parametrize("make", EMPTY.values(), ids=EMPTY)
def test_no_step_costs_nothing(make):
    """A count of 0 changes nothing and always fits; one that is negative, no integer or NaN is refused, as in a state is 0; which is the filter or the odometer."""
    spent, before = make().spend(hs.Gaussian(9.0), 2), make().spend(hs.Gaussian(9.0), 2).state_dict()
    budget = {} if hasattr(spent, "remaining") else {"epsilon": 50.0}
    assert spent.spend(hs.Gaussian(9.0), 0).spend(hs.Gaussian(9.0), 0.0).state_dict() == before
    assert not spent.would_exceed(hs.Gaussian(9.0), 0, **budget)
    for count in (-1, 0.5, math.nan, -math.inf):
        for refusing in (spent.spend, lambda *step: spent.would_exceed(*step, **budget)):
            with pytest.raises((ValueError, TypeError), match="count must be an integer"):
                refusing(hs.Gaussian(9.0), count)
    assert spent.state_dict() == before
    again = type(spent).from_state_dict(json.loads(json.dumps(before)))
    assert (again.state_dict(), repr(again)) == (before, repr(spent))  # with an odometer's epsilon
    with pytest.raises(ValueError, match="count must be an integer in"):
        type(spent).from_state_dict(before | {"steps": [{**before["steps"][0], "count": 0}]})


# Filters and odometers of zero-concentrated differential privacy: adversaries stay within the guarantee, failures included.


@settings(max_examples=12)
@given(st.floats(-6, 3), st.floats(-4, 3), st.floats(-200, -0.3), st.sampled_from([0.0, 1e-3, 2.0]))
def test_odometer_in_closed_form(log10_rho, log10_spent, log10_delta, xi):
    """At what it says the mean of the supermartingales over the half-normal law, by quadrature, is 1/delta, to rounding."""
    delta, rho, spent = 10.0**log10_delta, 10.0**log10_rho, 10.0**log10_spent
    found = hs.ZeroConcentratedOdometer(delta=delta, rho=rho).spend(hs.ZeroConcentratedDP(spent, xi)).epsilon
    with mp.workdps(40):
        square = -mp.log(mp.mpf(delta)) / mp.mpf(rho)
        z, c = mp.mpf(found) - xi - spent, spent + 1 / (2 * square)
        top, width = max(z / (2 * c), 0), 1 / mp.sqrt(c)
        nodes = sorted({mp.mpf(0), *(max(top + k * width, mp.mpf(0)) for k in (-12, -4, -1, 0, 1, 4, 12))})
        mean = mp.sqrt(2 / (mp.pi * square)) * mp.quad(lambda u: mp.exp(u * z - c * u * u + mp.log(delta)), nodes)
        assert 1 - mp.mpf(10) ** -12 <= mean
        assert mp.log(mean) <= mp.mpf(10) ** -9 * (1 - mp.log(delta))


def test_budgets_of_epsilon_beside_others():
    """What is set aside for xi and failures is not in rho."""
    budget = hs.ZeroConcentratedFilter.of_epsilon(1.0, 1e-5, xi=0.2, failure=5e-6)
    assert (budget.xi, budget.delta) == (0.2, 5e-6)
    assert 1.0 - 1e-9 < budget.epsilon(1e-5) <= 1.0
    assert budget.epsilon(5e-6) == math.inf


def test_three_budgets():
    """Each of the three budgets is one by itself."""
    budget = hs.ZeroConcentratedFilter(0.5, xi=0.1, delta=1e-6)
    assert budget.remaining(hs.ZeroConcentratedDP(0.1)) == 5
    assert budget.remaining(hs.ZeroConcentratedDP(0.1, 0.05)) == 2
    assert budget.remaining(hs.ZeroConcentratedDP(0.1, delta=3e-7)) == 3
    assert budget.remaining(hs.ApproximateDP(0.1, 2e-7)) == 5
    assert budget.remaining(hs.ApproximateDP(0.1, 0.1)) == 0
    assert budget.remaining(hs.ExponentialMechanism(0.2)) == 100
    assert budget.remaining(hs.Gaussian(1e300)) == 2**53
    budget.spend(hs.ZeroConcentratedDP(0.125, 0.0625))
    assert budget.would_exceed(hs.ZeroConcentratedDP(0.125, 0.0625))
    assert (budget.rho, budget.xi, budget.delta) == (0.5, 0.1, 1e-6)
    assert "rho 0.125 of 0.5, xi 0.0625 of 0.1, delta 0 of 1e-06 in 1 steps" in repr(budget)
    odometer = hs.ZeroConcentratedOdometer(delta=1e-5, rho=0.2, failure=1e-6).spend(hs.ApproximateDP(0.1, 4e-7), 2)
    assert (odometer.rho, odometer.failure) == (0.2, 1e-6)
    assert odometer.would_exceed(hs.ApproximateDP(0.1, 4e-7), epsilon=1e300)
    assert odometer.spend(hs.ApproximateDP(0.1, 4e-7)).epsilon == math.inf
    assert hs.ZeroConcentratedOdometer(delta=0.1).epsilon == 0.0
    assert hs.ZeroConcentratedOdometer(delta=0.1).spend(hs.Gaussian(1e300)).epsilon > 0.0
    assert hs.ZeroConcentratedOdometer(delta=0.1).spend(hs.ZeroConcentratedDP(0.0, 0.3)).epsilon == pytest.approx(0.3)


# The odometer: whatever is chosen by what was seen, the loss passes what it says with probability delta at most.


@pytest.mark.parametrize(
    "odometer",
    [hs.RenyiOdometer(delta=0.1), hs.ZeroConcentratedOdometer(delta=0.1, rho=1.0)],
    ids=lambda each: type(each).__name__,
)
def test_many_looks(odometer):
    """Over a long training that is looked at after every step, Gaussian losses pass with probability delta at most, and not far less."""
    delta, noise, runs, rng = 0.1, 20.0, 4000, np.random.default_rng(8)
    looks = np.unique(np.geomspace(1, 4000, 300).astype(int))
    said = np.array([copy.copy(odometer).spend(hs.Gaussian(noise), int(n)).epsilon for n in looks])
    moved = np.diff(looks, prepend=0) / noise**2
    losses = np.cumsum(moved / 2 + np.sqrt(moved) * rng.normal(size=(runs, looks.size)), axis=1)
    assert delta / 10 < (losses > said).any(axis=1).mean() <= delta
    ignoring_looks = np.array([hs.zcdp_epsilon(n / noise**2 / 2, delta) for n in looks])
    assert (losses > ignoring_looks).any(axis=1).mean() > delta  # what holds at one look does not hold at all


@given(st.floats(1.01, 1e4), st.floats(0.3, 1e4), st.integers(1, 10**6), st.floats(-300, -0.01))
def test_one_order_in_closed_form(order, noise, count, log10_delta):
    """With one order the number is the divergence plus log(1/delta)/(order - 1), rounded up by little."""
    delta = 10.0**log10_delta
    found = hs.RenyiOdometer(delta=delta, orders=[order]).spend(hs.Gaussian(noise), count).epsilon
    with mp.workdps(40):
        truth = count * mp.mpf(order) / (2 * mp.mpf(noise) ** 2) - mp.log(mp.mpf(delta)) / (mp.mpf(order) - 1)
        assert truth <= found <= truth * (1 + mp.mpf(10) ** -11)


@given(st.lists(st.floats(0.5, 100.0), min_size=1, max_size=4), st.floats(-30, -1))
def test_mixture_of_orders(noises, log10_delta):
    """At what it says the mean of the supermartingales is 1/delta, to rounding; the best single order says no less, but for its weight."""
    orders, delta = [1.5, 2.0, 5.0, 30.0], 10.0**log10_delta
    odometer = hs.RenyiOdometer(delta=delta, orders=orders)
    for noise in noises:
        odometer.spend(hs.Gaussian(noise))
    with mp.workdps(40):
        half = sum(1 / mp.mpf(noise) ** 2 for noise in noises) / 2
        mean = sum(mp.exp((a - 1) * (mp.mpf(odometer.epsilon) - a * half)) for a in map(mp.mpf, orders)) / len(orders)
        assert 1 / mp.mpf(delta) <= mean <= (1 + mp.mpf(10) ** -6) / mp.mpf(delta)
    best = min(
        _spent(hs.RenyiOdometer(delta=delta / len(orders), orders=[order]), odometer.ledger).epsilon for order in orders
    )
    assert odometer.epsilon <= best * (1 + 1e-12)


def _spent(account, ledger):
    for step, count in ledger.items():
        (account.compose if isinstance(account, hs.Accountant) else account.spend)(step, count)
    return account


def test_it_rises_and_is_above_the_accountant():
    """Spending never lowers it; it costs more than steps fixed in advance, and less than twice at moderate budgets."""
    odometer, before = hs.RenyiOdometer(delta=1e-6), 0.0
    assert odometer.epsilon == 0.0
    for noise in (30.0, 10.0, 50.0, 8.0):
        assert odometer.would_exceed(hs.Gaussian(noise), 10, epsilon=before)
        after = odometer.spend(hs.Gaussian(noise), 10).epsilon
        assert not odometer.would_exceed(hs.PoissonSampled(hs.Gaussian(1.0), 0.0), epsilon=after)
        assert after > before
        before = after
    fixed = _spent(hs.Accountant(), odometer.ledger).epsilon(1e-6)
    assert fixed < odometer.epsilon < 2 * fixed
    batches = hs.FixedSizeSampled(hs.Gaussian(2.0), 100, 5, replacement=False)
    replaced = hs.RenyiOdometer(delta=1e-6, adjacency="replace").spend(batches, 50)
    first = replaced.epsilon
    assert hs.Accountant("replace").compose(batches, 50).epsilon(1e-6) <= first < replaced.spend(batches, 200).epsilon


def test_ends_of_odometers():
    """Nothing costs nothing; what has no bound costs everything."""
    silent = hs.PoissonSampled(hs.Gaussian(1.0), 0.0)
    odometer = hs.RenyiOdometer(delta=0.1, orders=[2, 3], adjacency="replace").spend(silent, 7)
    assert (odometer.epsilon, len(odometer), odometer.delta, odometer.orders) == (0.0, 7, 0.1, (2.0, 3.0))
    assert odometer.would_exceed(hs.ApproximateDP(0.1, 1e-9), epsilon=1e300)
    assert not odometer.would_exceed(hs.ApproximateDP(0.1, 1e-9), epsilon=math.inf)
    assert len(odometer) == 7
    odometer.spend(hs.Gaussian(4.0), 3)
    assert f"epsilon {hs.format_upper(odometer.epsilon)} at delta 0.1 in 10 steps" in repr(odometer)


# Filters and odometers: what they do not hold for, or cannot mean, is refused with a reason.


NAMES = {
    "hs": hs,
    "math": math,
    "GAUSSIAN": hs.GaussianFilter(1.0),
    "SAMPLED": hs.PoissonSampled(hs.Gaussian(1.0), 0.1),
    "PLANNED": hs.PlannedFilter(hs.Accountant().compose(hs.Laplace(20.0), 3)),
    "MENU": hs.MenuFilter([hs.Laplace(20.0)], epsilon=1.0, delta=1e-5),
    "ESTIMATED": hs.PrivacyProfile([0.0, 1.0], [0.1, 0.01], status="estimate"),
}
REFUSED = r"""
hs.GaussianFilter(1.0).spend(SAMPLED) -> without sampling
hs.GaussianFilter(1.0).remaining(hs.Laplace(9.0)) -> Gaussian noise
hs.RenyiFilter(1, order=2).spend(ESTIMATED) -> no bound
hs.RenyiFilter(1.0, order=2).spend(hs.RandomizedResponse(0.5, 2)) -> not supported
hs.GaussianFilter(1.0).spend(1.0) -> TypeError: mechanism must be
hs.GaussianFilter(1.0).spend(hs.Gaussian(9.0), True) -> TypeError: count must be
hs.GaussianFilter() -> either mu or
hs.GaussianFilter(1.0, epsilon=1.0, delta=0.1) -> either mu or
hs.GaussianFilter(epsilon=1.0) -> either mu or
hs.GaussianFilter(0.0) -> mu must lie
hs.GaussianFilter(math.nan) -> mu must lie
hs.GaussianFilter(1.0, adjacency="add") -> adjacency must be
hs.RenyiFilter(1.0, order=1) -> order must be larger
hs.RenyiFilter(order=2) -> either budget or
hs.RenyiFilter(order=2, epsilon=1.0, delta=1e-5) -> must leave a budget
hs.GaussianFilter(1.0).epsilon(1.0) -> delta must lie
hs.RenyiFilter.from_state_dict(hs.GaussianFilter(1.0).state_dict()) -> hockeystick.RenyiFilter
hs.GaussianFilter.from_state_dict(hs.GaussianFilter(1.0).spend(hs.Gaussian(2.0), 4).state_dict() | {"mu": 0.9})
    -> must fit its budget
hs.GaussianFilter.from_state_dict({name: value for name, value in hs.GaussianFilter(1.0).state_dict().items() if name != "steps"})
    -> must have steps
hs.ZeroConcentratedFilter(1.0).spend(SAMPLED) -> zero-concentrated
hs.ZeroConcentratedOdometer(delta=0.1).spend(SAMPLED) -> zero-concentrated
hs.ZeroConcentratedFilter(1.0).spend(hs.ApproximateDP(0, 1)) -> zero-concentrated
hs.ZeroConcentratedFilter(0.0) -> rho must lie
hs.ZeroConcentratedFilter(1.0, xi=-1.0) -> xi must be non-negative
hs.ZeroConcentratedFilter.of_epsilon(1.0, 1e-5, failure=1e-5) -> failure must lie
hs.ZeroConcentratedFilter.of_epsilon(1.0, 1e-5, xi=2.0) -> epsilon must leave a rho
hs.ZeroConcentratedOdometer(delta=0.1, rho=0.0) -> rho must be positive
hs.ZeroConcentratedOdometer(delta=0.1, failure=0.1) -> failure must lie
hs.RenyiOdometer(delta=0.1, orders=[]) -> one or more
hs.RenyiOdometer(delta=0.1, orders=[2, 2.0]) -> each once
hs.RenyiOdometer(delta=0.1, orders=[1]) -> orders must be larger
hs.RenyiOdometer(delta=0.1, adjacency="add") -> adjacency must be
hs.RenyiOdometer(delta=0.1).spend(hs.RandomizedResponse(0.5, 2)) -> not supported
hs.RenyiOdometer(delta=0.1).spend(1.0) -> TypeError: mechanism must be
hs.RenyiOdometer(delta=0.1).spend(hs.Gaussian(1.0), 2**53).spend(hs.Gaussian(1.0)) -> count must be
hs.RenyiOdometer(delta=0.1).would_exceed(hs.Gaussian(1.0), epsilon=math.nan) -> epsilon must be
hs.RenyiOdometer.from_state_dict(hs.GaussianFilter(1.0).state_dict()) -> hockeystick.RenyiOdometer
PLANNED.spend(hs.Laplace(21.0)) -> must be one of the plan
hs.PlannedFilter.from_state_dict(PLANNED.state_dict() | {"adjacency": "replace"}) -> adjacency of state
hs.PlannedFilter(hs.Laplace(20.0)) -> TypeError: plan must be an Accountant
hs.PlannedFilter(hs.Accountant().compose(ESTIMATED)) -> only estimated
MENU.spend(hs.Laplace(21.0)) -> must be one of the menu
hs.MenuFilter(hs.Laplace(20.0), epsilon=1.0, delta=1e-5) -> TypeError: menu must be a sequence of mechanisms
hs.MenuFilter([], epsilon=1.0, delta=1e-5) -> TypeError: menu must be a sequence of mechanisms
hs.MenuFilter([1.0], epsilon=1.0, delta=1e-5) -> TypeError: mechanism must be one of
hs.MenuFilter([hs.ZeroConcentratedDP(0.1)], epsilon=1.0, delta=1e-5) -> must have a dominating pair
hs.MenuFilter([ESTIMATED], epsilon=9.0, delta=0.9) -> menu must have certified steps
hs.MenuFilter([hs.Gaussian(0.1)], epsilon=1.0, delta=1e-5) -> menu must have steps of which 1 to 20000 fit, .* of which 0 do
hs.MenuFilter([hs.Gaussian(900.0)], epsilon=1.0, delta=1e-5) -> menu must have steps of which 1 to 20000 fit
hs.MenuFilter([hs.Gaussian(4.0), hs.Gaussian(200.0)], epsilon=1.0, delta=1e-5) -> costs more than 2000 times another
hs.MenuFilter([hs.Gaussian(9.0)], epsilon=0.0, delta=1e-5) -> epsilon must be positive
hs.IndividualFilter(1.0, 3) -> TypeError: budget must be
hs.IndividualFilter(hs.GaussianFilter(1.0).spend(hs.Gaussian(9)), 3) -> nothing spent
hs.IndividualFilter(GAUSSIAN, 3).admit([1, 2], 1.0) -> norms must be one for each record \(3\), not 2
hs.IndividualFilter(GAUSSIAN, 2).admit([1, -2], 1.0) -> norms\[1\] must be non-negative
hs.IndividualFilter(GAUSSIAN, 1).admit([math.nan], 1.0) -> norms\[0\] must be
hs.IndividualFilter(GAUSSIAN, 1).admit([1.0], 0.0) -> noise_std must be
hs.IndividualFilter(GAUSSIAN, 1).admit([1.0], 1.0, sampling_rate=0.5) -> need a RenyiFilter
hs.IndividualFilter(hs.RenyiFilter(1.0, order=2, adjacency="replace"), 1).admit([1.0], 1.0, sampling_rate=0.5)
    -> add_or_remove
hs.IndividualFilter(GAUSSIAN, 1).admit([1.0], 1.0, sampling_rate=1.5) -> sampling_rate must lie
hs.IndividualFilter(GAUSSIAN, 3, spent=[1.0]) -> spent must be one
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """What is outside its domain is named, and wrong types are told from wrong values."""
    refused_calls.check(call, reason, NAMES)


# Filters and odometers against adversaries: what is chosen by what was seen stays within the guarantee, exactly, on small trees.


TELL_TALE = hs.Discrete([0.05, 0.95, 0.0], [0.0, 0.95, 0.05])
ORDERS = np.concatenate([1 + np.geomspace(1e-6, 1.0, 60), np.geomspace(2.0, 400.0, 200)])


def laws_of(step):
    """Return the outcomes' probabilities with and without the record; a Gaussian is seen through BINS only."""
    if isinstance(step, hs.Gaussian):
        return tuple(-np.diff(hs.q(BINS - shift)) for shift in (1 / step.noise_multiplier, 0.0))
    if isinstance(step, hs.PoissonSampled):
        p, q, rate = np.array(step.mechanism.p), np.array(step.mechanism.q), step.sampling_rate
        return (1 - rate) * q + rate * p, q
    return np.array(step.p), np.array(step.q)


def concentrated(step, failure, share):
    """Return what is promised of a pair that fails with some probability, and its laws: those that tell all come last.

    A `share` of the divergence at order 2 is called xi, and rho is the least that holds beside it.
    """
    p, q = laws_of(step)
    larger = np.maximum(renyi(p, q, ORDERS), renyi(q, p, ORDERS))
    xi = share * float(np.interp(2.0, ORDERS, larger))
    beyond = np.abs(np.log(p / q)).max()  # divergences of all orders are below it
    rho = max(float(((larger - xi) / ORDERS).max()) * (1 + 1e-6), (beyond - xi) / 400, 0.0)
    laws = (np.append((1 - failure) * p, [failure, 0.0]), np.append((1 - failure) * q, [0.0, failure]))
    return hs.ZeroConcentratedDP(rho, xi, failure), laws


FAILING = [
    concentrated(DISCRETE[number], failure, share)
    for number, failure, share in [(0, 0.0, 0.0), (1, 0.004, 0.3), (2, 0.001, 0.0), (4, 0.01, 0.5)]
]


def leaves(spent, allowed, choose, depth):
    """Return the laws of all releases when `choose` picks each step by what came before, and `allowed` lets it through."""
    step, laws = choose()
    if depth == 0 or not allowed(spent, step):
        return np.ones(1), np.ones(1)
    after = json.dumps(spent.spend(step).state_dict())
    branches = [leaves(type(spent).from_state_dict(json.loads(after)), allowed, choose, depth - 1) for _ in laws[0]]
    return tuple(
        np.concatenate([weight * branch[side] for weight, branch in zip(laws[side], branches, strict=True)])
        for side in (0, 1)
    )


def gaussian_filter(rng):
    """Return a filter of Gaussian noise, its adversary, how far it goes, and a delta for each epsilon."""
    mu = rng.uniform(0.5, 3.0)

    def choose():
        step = hs.Gaussian(1 / (mu * rng.uniform(0.05, 0.7)))
        return step, laws_of(step)

    return hs.GaussianFilter(mu), choose, 5, {eps: hs.gdp_delta(mu, eps) * (1 + 1e-9) for eps in (0.0, 0.3, 1.0, 2.5)}


def renyi_filter(rng):
    """Return a filter of Renyi divergences, with the same."""
    order = float(rng.choice([1.5, 4.0, 9.0]))
    budget = hs.RenyiFilter(rng.uniform(0.2, 0.6) * order, order=order)

    def choose():
        step = DISCRETE[rng.integers(4)]
        return step, laws_of(step)

    return budget, choose, 7, {budget.epsilon(delta): delta for delta in (1e-4, 1e-2, 0.2)}


def concentrated_filter(rng):
    """Return a filter of rho, xi and failures, with the same."""
    budget = hs.ZeroConcentratedFilter(rng.uniform(0.6, 1.5), xi=rng.uniform(0.4, 0.8), delta=rng.uniform(0.012, 0.035))
    said = {budget.epsilon(delta): delta for delta in (0.04, 0.1, 0.2, 0.5)}
    return budget, lambda: FAILING[rng.integers(4)], 5, said


def planned_filter(rng):
    """Return a filter of four planned steps in any order, of which some tell all, with the divergences of the plan in a row."""
    steps = [(*DISCRETE, TELL_TALE)[k] for k in rng.integers(6, size=4)]
    plan = hs.Accountant()
    for step in steps:
        plan.compose(step)
    p, q = (product(*laws) for laws in zip(*map(laws_of, steps), strict=True))
    whole = {eps: either(p, q, eps) * (1 + 1e-12) for eps in np.log([0.5, 1.0, 1.5, 2.0, 4.0, 9.0])}

    def choose():
        step = steps[rng.integers(4)]
        return step, laws_of(step)

    return hs.PlannedFilter(plan), choose, 4, whole


def concentrated_odometer(rng):
    """Return an odometer of rho, xi and failures, with the same."""
    delta, epsilon = float(rng.choice([0.05, 0.15])), rng.uniform(4.0, 8.0)
    odometer = hs.ZeroConcentratedOdometer(delta=delta, rho=rng.choice([0.01, 0.3, 5.0]), failure=0.03)
    return odometer, lambda: FAILING[rng.integers(4)], 5, {epsilon: delta}


@pytest.mark.share(16, by_day=4)
@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize(
    "make",
    [gaussian_filter, renyi_filter, concentrated_filter, planned_filter, concentrated_odometer],
    ids=lambda f: f.__name__,
)
def test_whatever_is_chosen_by_what_was_seen(make, seed):
    """Delta of all releases is at most what is said, in both directions, failures included; so is a divergence that is a budget."""
    spent, choose, depth, said = make(np.random.default_rng(seed))
    limit = {"epsilon": next(iter(said))} if "odometer" in make.__name__ else {}
    p, q = leaves(spent, lambda spent, step: not spent.would_exceed(step, **limit), choose, depth)
    assert p.size > 4
    for one, other in ((p, q), (q, p)):
        for eps, delta in said.items():
            assert hockey_stick(one, other, eps) <= delta
        if isinstance(spent, hs.PlannedFilter):
            assert all(hockey_stick(one, other, eps) <= spent.delta(eps) * (1 + 1e-9) for eps in said if eps >= 0)
        if isinstance(spent, hs.RenyiFilter):
            assert renyi(one, other, [spent.order])[0] <= spent.budget * (1 + 1e-12)


ODOMETER_STEPS = [
    hs.Discrete([0.7, 0.3], [0.3, 0.7]),
    hs.Discrete([0.95, 0.05], [0.8, 0.2]),
    hs.Discrete([0.5, 0.3, 0.2], [0.3, 0.2, 0.5]),
    hs.PoissonSampled(hs.Discrete([0.8, 0.2], [0.2, 0.8]), 0.5),
]


def passed(odometer, choose, depth, *, forward, loss=0.0, probability=1.0):
    """Return the exact probability that the loss is ever above what the odometer says, over all releases."""
    if loss > odometer.epsilon:
        return probability
    if depth == 0:
        return 0.0
    step = ODOMETER_STEPS[choose(loss)]
    p, q = laws_of(step) if forward else laws_of(step)[::-1]
    after = copy.copy(odometer).spend(step)
    branches = ((loss + math.log(a / b), probability * a) for a, b in zip(p, q, strict=True))
    return sum(passed(after, choose, depth - 1, forward=forward, loss=own, probability=m) for own, m in branches)


@pytest.mark.share(2)
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_odometer_holds_for_adversaries(delta, forward):
    """Steps chosen by the loss so far, at random or to gamble, pass the odometer with probability delta at most."""
    rng = np.random.default_rng(4)
    odometers = [hs.RenyiOdometer(delta=delta, orders=orders) for orders in ([2.0], [1.5, 3.0, 6.0])]
    rules = [lambda _: int(rng.integers(4)), lambda loss: int(loss >= 0.5), lambda loss: 3 * (loss > 1.0)]
    chances = [passed(empty, rule, 6, forward=forward) for rule in rules for empty in odometers]
    assert delta / 20 < max(chances) <= delta  # and not by much less


# Individual filters: what is released about one record, by integrals over all paths, is at most the guarantee.


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
