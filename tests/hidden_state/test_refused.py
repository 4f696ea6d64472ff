"""Contractions and bounds of hidden states: what is outside their domains is refused with its name, its value and a reason."""

import math

import numpy as np
import pytest

import hockeystick as hs
import refused_calls
from hockeystick import federated, last_iterate

FLIP = [[0.75, 0.25], [0.25, 0.75]]
NAMES = {
    **vars(last_iterate),
    "math": math,
    "np": np,
    "federated": federated,
    "FLIP": FLIP,
    "SUM": {"first": 0.5, "eta": 0.5, "rounds": 3},
    "SHIFTS": {"rho": 1.0, "gamma": 1.0, "rounds": 3},
    "STEPS": {"order": 2.0, "distance": 1.0, "noise_std": 1.0, "steps": 3},
    "ONCE": {"index": 20, "num_records": 25, "learning_rate": 0.5, "noise_std": 1.0, "lipschitz": 1.0, "smoothness": 0.5, "diameter": 1.5},
    "OFTEN": {"epsilon": 1.0, "index": 1, "period": 2, "rounds": 10, "learning_rate": 1.0, "noise_std": 1.0, "lipschitz": 0.25, "smoothness": 0.5, "diameter": 2.0},
    "RANDOM": {"rounds": 10, "learning_rate": 1.0, "noise_std": 1.0, "lipschitz": 0.25, "smoothness": 0.5, "diameter": 2.0},
    "USERS": {"num_users": 120, "batch_size": 10, "learning_rate": 0.5, "noise_std": 1.5, "lipschitz": 1.0, "radius": 1.0, "loss": "convex"},
}  # fmt: skip
REFUSED = r"""
shifted_interpolation(**SHIFTS | {"initial_gap": math.inf}) -> initial_gap .* inf
contraction_sum(**SUM | {"first": math.inf}) -> first .* inf
contraction_sum(**SUM | {"weights": -1.0}) -> weights .* -1.0
contraction_sum(**SUM | {"weights": math.inf}) -> weights .* inf
contraction_sum(**SUM | {"rounds": 0}) -> rounds must be an integer .* 0
contraction_sum(**SUM | {"num_threads": 0}) -> num_threads .* 0
contraction_sum(**SUM | {"on_error": "ignore"}) -> on_error .* 'ignore'
contraction_sum(0.5, [[0.1, 0.2, 0.3], [0.1, 0.2, 1.3]]) -> eta\[1, 2\]
contraction_sum(0.5, 0.5) -> first, eta and weights must have the rounds as their last axis
contraction_sum([], []) -> first, eta and weights
contraction_sum([[]], 0.5) -> first, eta and weights
shifted_interpolation(**SHIFTS | {"rho": math.inf}) -> rho .* inf
shifted_interpolation(**SHIFTS | {"rho": [1.0, 1.0]}) -> rho must be a scalar, .* \(2,\)
shifted_interpolation(**SHIFTS | {"gamma": math.inf}) -> gamma .* inf
shifted_interpolation(**SHIFTS | {"rounds": 0}) -> rounds .* 0
shifted_interpolation(**SHIFTS | {"initial_gap": -1.0}) -> initial_gap .* -1.0
shifted_interpolation(**SHIFTS | {"initial_gap": [1.0]}) -> initial_gap must be a scalar, .* \(1,\)
shifted_interpolation(**SHIFTS | {"diameter": 0.0}) -> diameter .* 0.0
shifted_interpolation(**SHIFTS | {"diameter": 1.0, "initial_gap": 2.0}) -> diameter must be at least initial_gap, not 1.0
shifted_interpolation([1.0] * 4, [1.0, 1.0, -1.0, 1.0]) -> gamma\[2\].*-1
shifted_interpolation(1.0, 1.0) -> rho and gamma must be one-dimensional
shifted_interpolation([1.0], [1.0, 2.0]) -> rho and gamma
shifted_interpolation([], []) -> rho and gamma
shifted_interpolation([[1.0]], [[1.0]]) -> rho and gamma
shifted_interpolation(1.0, [1.0]) -> rho and gamma
shifted_interpolation(1.0, 0.1, rounds=10**9).shifts -> 1000000000
contraction_coefficient([[0.5, 0.6], [0.5, 0.5]], 1.0) -> kernel\[0\] must sum to 1 within 1e-09, not to 1.1
contraction_coefficient([[0.5, 0.5], [-0.1, 1.1]], 1.0) -> kernel\[1, 0\] must lie in \[0, 1\], not -0.1
contraction_coefficient([[0.5, math.nan], [0.5, 0.5]], 1.0) -> kernel\[0, 1\] must lie in \[0, 1\], not nan
contraction_coefficient([[math.inf, 0.5]], 1.0) -> kernel\[0, 0\] must lie in \[0, 1\], not inf
contraction_coefficient(np.zeros((0, 3)), 1.0) -> not of shape \(0, 3\)
nonlinear_contraction([[0.5, 0.6], [0.5, 0.5]], 1.0, 0.5) -> kernel\[0\] must sum to 1 within 1e-09
nonlinear_contraction([[0.5, 0.5], [1.0]], 1.0, 0.5) -> TypeError: kernel must be a matrix of numbers whose rows have one length
nonlinear_contraction([0.5, 0.5], 1.0, 0.5) -> kernel must be a matrix with at least one row and one column, not of shape \(2,\)
pnsgd_lipschitz(learning_rate=1.99, smoothness=1.0, strong_convexity=0.1) -> learning_rate must be at most 2/\(smoothness \+ strong_convexity\)
pnsgd_gaussian(1.0, **ONCE | {"learning_rate": 1.99, "smoothness": 1.0, "strong_convexity": 0.1}) -> learning_rate must be at most
iteration_rdp(**STEPS | {"order": 1.0}) -> order must be above 1
iteration_rdp(**STEPS | {"order": math.inf}) -> order must be above 1 and finite
iteration_rdp(**STEPS | {"lipschitz": math.nan}) -> lipschitz must be non-negative
best(1.0, **ONCE | {"index": 26}) -> index must lie
best(1.0, **ONCE | {"strong_convexity": 0.6}) -> strong_convexity must be at most smoothness
best(1.0, **ONCE | {"noise_scale": 1.0}) -> TypeError: exactly one of noise_std
best(1.0, **ONCE | {"noise_std": None}) -> TypeError: exactly one of noise_std
best(1.0, **ONCE | {"one_dimensional": 1}) -> TypeError: one_dimensional must be
best(1.0, **ONCE | {"diameter": [1.0, -1.0]}) -> diameter\[1\].*-1.0
best(1.0, **ONCE | {"one_dimensional": True, "ball_dimension": 3}) -> TypeError: ball_dimension must not be given together with
best(1.0, **ONCE | {"noise_std": None, "noise_scale": 1.0, "ball_dimension": 3}) -> TypeError: ball_dimension must not be given together with
best_cyclic(**OFTEN | {"index": 11}) -> index must lie in
best_cyclic(**OFTEN | {"strong_convexity": 0.6}) -> strong_convexity must be at most smoothness
federated.best(1.0, **USERS | {"strong_convexity": 0.1}) -> strong_convexity must be 0, or at most
federated.best(1.0, **USERS | {"suffix": 0.0}) -> suffix must lie
federated.best(1.0, **USERS | {"noise_std": [1.0, 1.0]}) -> the last axis of noise_std is the round
federated.best(1.0, **USERS | {"smoothness": 5.0}) -> learning_rate must be at most
federated.best_sampled(1.0, rounds=3, **USERS | {"batch_size": 121}) -> batch_size must be at most num_users
federated.best_sampled(1.0, rounds=3, **USERS | {"smoothness": 5.0}) -> learning_rate must be at most 2/smoothness
federated.best_sampled(1.0, rounds=3, **USERS | {"loss": "nonconvex"}) -> smoothness must be given for a nonconvex loss
federated.best_sampled(1.0, rounds=3, **USERS | {"strong_convexity": 0.1}) -> strong_convexity must be 0, or at most
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call: str, reason: str) -> None:
    """Each call names its argument, and says what it must be."""
    refused_calls.check(call, reason, NAMES)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda: hs.contraction_sum(0.5, [0.5, 2.0, 0.5], rounds=[3, 3, 0], on_error="nan"), [False, True, True]),
        (lambda: hs.contraction_sum([[0.5, 0.5, 0.5], [0.5, -1.0, 0.5]], 0.5, on_error="nan"), [False, True]),
        (lambda: hs.contraction_coefficient(FLIP, [-1.0, 1.0], on_error="nan"), [True, False]),
        (lambda: hs.nonlinear_contraction(FLIP, [0.1, -1.0, 0.1], [0.1, 0.1, math.nan], on_error="nan"), [False, True, True]),
        (lambda: last_iterate.iteration_rdp(**NAMES["STEPS"] | {"order": [2.0, 0.5]}, on_error="nan"), [False, True]),
        (lambda: last_iterate.best(0.5, **NAMES["ONCE"] | {"diameter": [1.0, -1.0]}, on_error="nan"), [False, True]),
        (lambda: last_iterate.best_sampled(1.0, sampling_rate=[-0.1, 0.5], **NAMES["RANDOM"], on_error="nan"), [True, False]),
    ],
)  # fmt: skip
def test_cells_outside_the_domain_alone_are_nan(found, expected) -> None:
    """Other cells have their values, and a cell outside has no method."""
    result = found()
    assert np.isnan(getattr(result, "delta", result)).tolist() == expected
    assert [name == "" for name in getattr(result, "method", np.where(expected, "", "a"))] == expected
