"""The trusted aggregator's corollaries: excess risk, delta, and where a run may stop."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hockeystick import federated, utility

PROCESS = {"num_users": 60, "batch_size": 3, "noise_std": 1.5, "lipschitz": 1.0, "radius": 1.0}
DELTA = PROCESS | {"smoothness": 1.0, "strong_convexity": 0.5}


def test_delta_charges_steps_that_expand() -> None:
    """With more smoothness the first steps expand: the delta lies between Theorem 2's for convex and for other losses."""
    rounds = np.arange(1.0, 21.0)
    arguments = PROCESS | {"learning_rate": 2.0 / rounds}
    low = federated.trusted_aggregator(0.3, **arguments, loss="convex")
    high = federated.trusted_aggregator(0.3, **arguments, loss="nonconvex")
    assert low < utility.trusted_aggregator_delta(0.3, **DELTA | {"smoothness": 2.5}) < high


def test_delta_grid() -> None:
    """Cells of a grid are those of single calls, and NaN outside the domain."""
    noise = np.array([[1.0], [2.0]])
    grid = utility.trusted_aggregator_delta(1.0, **DELTA | {"noise_std": noise, "batch_size": [1, 3, 60]})
    assert grid.shape == (2, 3)
    assert grid[1, 2] == utility.trusted_aggregator_delta(1.0, **DELTA | {"noise_std": 2.0, "batch_size": 60})
    out = utility.trusted_aggregator_delta(1.0, **DELTA | {"batch_size": [3, 61]}, on_error="nan")
    assert np.isnan(out).tolist() == [False, True]
    assert np.isnan(utility.trusted_aggregator_delta(-1.0, **DELTA, on_error="nan"))
    assert np.isnan(utility.random_stop_excess_risk_convex(**STOPPED | {"radius": -1.0}, on_error="nan"))


def test_random_stop_rate_is_not_below_the_harmonic_sum() -> None:
    """For every number of rounds up to 1000 the noise's term is H_T/T, in fractions, rounded up; it is 1 after one round."""
    rounds = np.arange(1, 1001)
    changes = {"num_users": rounds, "batch_size": 1, "dimension": 2, "noise_std": 1.0, "gradient_bound": 1.0}
    rate = utility.random_stop_excess_risk_rate(**DELTA | changes | {"strong_convexity": 1.0})
    harmonic = Fraction(0)
    for t, found in zip(rounds.tolist(), rate.private.tolist(), strict=True):
        harmonic += Fraction(1, t)
        assert harmonic / t <= Fraction(found) <= harmonic / t * (1 + Fraction(1, 10**13)), t
    assert rate.private[0] == pytest.approx(1.0, rel=1e-14)
    assert rate.order_only


STOPPED = {"num_users": 400, "batch_size": 4, "dimension": 5, "noise_std": 1.5, "gradient_bound": 1.0, "radius": 1.0}


def test_convex_random_stop() -> None:
    """The best step gives 2 rho sqrt((G^2 + d sigma^2/m)/T); every other step more."""
    moment, rounds = 1 + 5 * 2.25 / 4, 100
    best = utility.random_stop_excess_risk_convex(**STOPPED)
    assert best == pytest.approx(2 * math.sqrt(moment / rounds), rel=1e-12)
    step = 2 / math.sqrt(moment * rounds)
    others = utility.random_stop_excess_risk_convex(**STOPPED, learning_rate=step * np.array([0.5, 1.0, 3.0]))
    assert others[1] == pytest.approx(best, rel=1e-12)
    assert min(others[0], others[2]) > best
