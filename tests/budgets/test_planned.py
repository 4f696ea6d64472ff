"""A plan of steps in any order, and a menu: adversaries stay within the guarantee, and a choice between plans does not."""

import functools
import itertools
import json
import math
from fractions import Fraction

import pytest

import hockeystick as hs
from hockeystick.budgets import ledger_file

F = Fraction
LAWS = {
    "coin": ((F(3, 5), F(2, 5)), (F(2, 5), F(3, 5))),
    "bent coin": ((F(3, 4), F(1, 4)), (F(1, 2), F(1, 2))),
    "three": ((F(1, 2), F(3, 10), F(1, 5)), (F(3, 10), F(3, 10), F(2, 5))),
    "tell-tale": ((F(1, 20), F(19, 20), F(0)), (F(0), F(19, 20), F(1, 20))),
}


def hockey_stick(law, t):
    """Return the sum of (p - t q)_+ exactly."""
    return sum((max(p - t * q, F(0)) for p, q in law), F(0))


def product(names):
    """Return the law of steps in a row."""
    law = [(F(1), F(1))]
    for name in names:
        law = [(a * p, b * q) for (a, b), (p, q) in itertools.product(law, zip(*LAWS[name], strict=True))]
    return law


def test_a_choice_between_plans_is_not_free():
    """Who chooses the second step from a coin and a tell-tale by what the first one showed leaks more than both plans."""
    t, first = F(3, 2), LAWS["coin"]
    plans = [hockey_stick(product(("coin", second)), t) for second in ("coin", "tell-tale")]
    chosen = sum(
        (p * max(hockey_stick(product((second,)), t * q / p) for second in ("coin", "tell-tale")))
        for p, q in zip(*first, strict=True)
    )
    assert chosen > max(plans)


@functools.cache
def dearest(units, costs, t):
    """Return the largest divergence of all strategies that choose steps from a menu and spend so many units."""
    found = max(F(1) - t, F(0))
    for name, cost in costs:
        if cost <= units:
            laws = zip(*LAWS[name], strict=True)
            found = max(found, sum((p * dearest(units - cost, costs, t * q / p) if p else F(0) for p, q in laws), F(0)))
    return found


@pytest.mark.parametrize(
    ("names", "epsilon", "delta"),
    [
        (("coin",), 2.0, 0.02),
        (("coin", "bent coin"), 2.0, 0.02),
        (("coin", "three"), 1.5, 0.05),
        (("three", "tell-tale"), 1.0, 0.3),
        (("coin", "bent coin", "three"), 1.7, 0.04),
    ],
    ids=str,
)
def test_a_menu_lets_through_what_the_best_strategy_may_spend(names, epsilon, delta):
    """No strategy exceeds delta by dynamic programming over exact laws, in either direction; one with a step more would."""
    menu = {name: hs.Discrete(*(list(map(float, law)) for law in LAWS[name])) for name in names}
    budget = hs.MenuFilter(list(menu.values()), epsilon=epsilon, delta=delta)
    costs = [budget._prices.costs[mechanism] for mechanism in menu.values()]
    for laws in (LAWS, {name: law[::-1] for name, law in LAWS.items()}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(globals(), "LAWS", laws)
            dearest.cache_clear()
            charged = tuple(zip(names, costs, strict=True))
            for curve, d in (
                (epsilon, delta),
                (budget.epsilon(2 * delta), 2 * delta),
                (budget.epsilon(delta / 4), delta / 4),
            ):
                assert curve == math.inf or dearest(budget._prices.units, charged, F(math.exp(curve))) <= d * (
                    1 + 1e-12
                )
            more = dearest(budget._prices.units + max(costs), charged, F(math.exp(epsilon)))
    dearest.cache_clear()
    assert more > delta


RARE, NOISES = hs.PoissonSampled(hs.Gaussian(4.0), 0.1), [hs.Gaussian(20.0), hs.Gaussian(30.0)]


@pytest.mark.share(3)
@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
@pytest.mark.parametrize(
    ("menu", "epsilon", "delta", "least"),
    [
        ([RARE], 2.0, 1e-8, 0.98),
        ([RARE], 8.0, 1e-12, 0.9),
        (NOISES, 2.0, 1e-5, 0.98),
        ([RARE, NOISES[0]], 2.0, 1e-5, 0.9),
        ([hs.Gaussian(6000.0)], 0.01, 1e-5, 0.99),
        ([hs.Gaussian(0.03)], 7000.0, 1e-5, 0.0),
        ([hs.ApproximateDP(600.0, 1e-9)], 4000.0, 1e-5, 0.0),
    ],
    ids=str,
)
def test_a_menu_beside_accountants(menu, epsilon, delta, least, adjacency):
    """One kind of step fits as often as in an accountant, but for the grid, and so does Gaussian noise of two kinds; what is mixed in advance keeps the budget."""
    limits, fixed = {"epsilon": epsilon, "delta": delta}, hs.Accountant(adjacency)
    budget = hs.MenuFilter(menu, adjacency=adjacency, **limits)
    for step in menu:
        alone = fixed.remaining(step, **limits)
        assert least * (alone - 1) <= budget.remaining(step) <= alone
    budget.spend(menu[0], budget.remaining(menu[0]) // 3)
    rest = budget.remaining(menu[-1])
    mixed = hs.Accountant(adjacency).compose(menu[0], budget.ledger.get(menu[0], 0)).compose(menu[-1], rest)
    for d in (delta / 4, delta, 2 * delta):
        assert mixed.epsilon_bracket(d).lower <= budget.epsilon(d)
    assert mixed.epsilon(delta) <= budget.epsilon(delta) * (1 + 1e-9) <= epsilon * (1 + 1e-9)


def test_bookkeeping():
    """What is spent of a plan is gone, and what is added to it later is not in it; the guarantee is the whole plan's from first to last."""
    coarse, fine = hs.PoissonSampled(hs.Gaussian(2.0), 0.01), hs.Laplace(20.0)
    plan = hs.Accountant("replace").compose(coarse, 30).compose(fine, 3)
    budget, epsilon = hs.PlannedFilter(plan), plan.epsilon(1e-6)
    plan.compose(fine)
    assert (budget.remaining(coarse), budget.remaining(fine), len(budget.plan)) == (30, 3, 33)
    assert budget.spend(fine, 2).spend(coarse, 30).epsilon(1e-6) == epsilon
    assert budget.would_exceed(coarse)
    assert repr(hs.PlannedFilter.from_state_dict(budget.state_dict())) == "<PlannedFilter: 32 of 33 steps; replace>"


def test_files_with_a_plan_that_was_written_run_by_run(tmp_path):
    """A file of clients' ledgers whose plan was written when states had every run is opened with the same plan as it is written today."""
    noises = (hs.Gaussian(20.0), hs.Gaussian(30.0))
    plan = hs.Accountant()
    for step in range(40):
        plan.compose(noises[step % 2])
    flat = [hs.Accountant().compose(noise).state_dict()["steps"][0] for noise in noises] * 20
    before = {**plan.state_dict(), "version": 1, "steps": flat}
    assert plan.state_dict()["version"] == 2
    budget = hs.PlannedFilter(plan)
    written = json.loads(json.dumps({"fresh": {**budget.state_dict(), "plan": before}}))
    assert ledger_file.decode_settings(ledger_file.Row(ledger_file._json(written))) == {"fresh": budget.state_dict()}
    path = tmp_path / "budget.sqlite"
    with hs.ClientLedgers(path, budget=budget, create=True) as ledgers:
        ledgers.enrol([1])
        ledgers.charge(1, noises[0], 3)
    assert hs.ClientLedgers(path, budget=hs.PlannedFilter(plan)).remaining(noises[0], 1) == 17
