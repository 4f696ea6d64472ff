"""Filters and odometers: what they do not hold for, or cannot mean, is refused with a reason."""

import math

import pytest

import hockeystick as hs
import refused_calls

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
