"""Privacy filters: adversaries that choose by what they see stay within the guarantee, computed exactly on small trees."""

import json
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs

DISCRETE = [
    hs.Discrete([0.6, 0.4], [0.4, 0.6]),
    hs.Discrete([0.5, 0.3, 0.2], [0.45, 0.25, 0.3]),
    hs.Discrete([0.9, 0.1], [0.8, 0.2]),
    hs.PoissonSampled(hs.Discrete([0.8, 0.2], [0.2, 0.8]), 0.25),
]


def two_steps(first, second, eps):
    """Return delta of a Gaussian at distance `first`, then one at a distance that `second` picks from the first release."""
    y, h = np.linspace(-12, 12 + first, 20001, retstep=True)
    loss = first * y - first**2 / 2
    density = np.exp(-((y - first) ** 2) / 2) / math.sqrt(2 * math.pi)
    distance = second(y)
    # (p1 p2 - e^eps q1 q2)_+ integrates, given y, to p1(y) theta(eps - loss(y), distance)
    return float(h * np.sum(density * hs.theta(eps - loss, distance)))


@pytest.mark.parametrize("eps", [0.0, 0.5, 2.0, 4.0])
def test_gaussian_filter_is_tight(eps):
    """Who spends all attains the guarantee; who stops early on some outputs stays below it."""
    mu, first = 1.3, 0.8
    rest = math.sqrt(mu**2 - first**2)
    limit = hs.gdp_delta(mu, eps)
    assert two_steps(first, lambda y: np.full_like(y, rest), eps) == pytest.approx(limit, rel=1e-9)
    for stop in (-1.0, 0.0, 1.0):
        assert two_steps(first, lambda y, c=stop: np.where(y > c, rest, 0.0), eps) < limit
        assert two_steps(first, lambda y, c=stop: np.where(y > c, 0.0, rest), eps) < limit


def test_spending_on_average_is_no_filter():
    """The bound must hold on every path: who keeps it only in the mean, under both laws, exceeds it."""
    mu, first, big = 1.0, 0.5, 3.0
    # the second step spends big^2 where both laws rarely go; P and Q agree on its probability by symmetry about first/2
    cut = 2.0
    chance = float(hs.q(cut - first / 2) + hs.q(cut + first / 2))
    assert first**2 + chance * big**2 < mu**2
    spent = two_steps(first, lambda y: np.where(abs(y - first / 2) > cut, big, 0.0), 3.0)
    assert spent > 2 * hs.gdp_delta(mu, 3.0)


@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_gaussian_filter_loses_nothing(adjacency):
    """As many steps fit as the accountant allows for steps fixed in advance."""
    for epsilon, delta, noise in ((1.0, 1e-5, 50.0), (8.0, 1e-9, 20.0), (0.1, 1e-200, 2e5)):
        budget = hs.GaussianFilter(epsilon=epsilon, delta=delta, adjacency=adjacency)
        assert epsilon * (1 - 1e-9) < budget.epsilon(delta) <= epsilon
        fixed = hs.Accountant(adjacency).remaining(hs.Gaussian(noise), epsilon=epsilon, delta=delta)
        assert budget.remaining(hs.Gaussian(noise)) == fixed > 10


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


def test_renyi_filter_bounds_the_accountant():
    """For steps fixed in advance the filter lets through no more than the accountant, and not much less."""
    step = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)
    fixed = hs.Accountant().remaining(step, epsilon=2.0, delta=1e-5)
    filtered = hs.RenyiFilter(order=8, epsilon=2.0, delta=1e-5).remaining(step)
    assert fixed / 3 < filtered < fixed


CONCENTRATED = [hs.ZeroConcentratedDP(0.125, 0.0625), hs.ZeroConcentratedDP(0.01, delta=3e-8), hs.Gaussian(9.0)]
PLANNED = [hs.Gaussian(9.0), hs.Laplace(20.0)]
PLAN = hs.Accountant().compose(PLANNED[0], 30).compose(PLANNED[1], 50)
BUDGETS = {
    "gaussian": (lambda: hs.GaussianFilter(1.5), st.builds(hs.Gaussian, st.floats(1.0, 50.0))),
    "renyi": (lambda: hs.RenyiFilter(1.0, order=3), st.sampled_from([*DISCRETE, hs.Laplace(3.0), hs.Gaussian(4.0)])),
    "concentrated": (lambda: hs.ZeroConcentratedFilter(0.5, xi=0.1, delta=9e-7), st.sampled_from(CONCENTRATED)),
    "planned": (lambda: hs.PlannedFilter(PLAN), st.sampled_from(PLANNED)),
    "menu": (lambda: hs.MenuFilter(DISCRETE[1:3], epsilon=9.0, delta=1e-6), st.sampled_from(DISCRETE[1:3])),
}


@pytest.mark.parametrize("name", BUDGETS)
@given(data=st.data())
def test_bookkeeping(name, data):
    """What would exceed raises and changes nothing; what remains fits to the last step; a state is the filter."""
    make, mechanisms = BUDGETS[name]
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


EMPTY = {
    "Gaussian filter": lambda: hs.GaussianFilter(1.0),
    "Renyi filter": lambda: hs.RenyiFilter(1.0, order=4),
    "zero-concentrated filter": lambda: hs.ZeroConcentratedFilter(1.0),
    "planned filter": lambda: hs.PlannedFilter(hs.Accountant().compose(hs.Gaussian(9.0), 3)),
    "menu filter": lambda: hs.MenuFilter([hs.Gaussian(9.0)], epsilon=2.0, delta=1e-5),
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
    assert (again.state_dict(), repr(again)) == (
        before,
        repr(spent),
    )  # with all settings, an odometer's epsilon among them
    with pytest.raises(ValueError, match="count must be an integer in"):
        type(spent).from_state_dict(before | {"steps": [{**before["steps"][0], "count": 0}]})
