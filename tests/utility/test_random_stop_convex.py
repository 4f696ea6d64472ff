"""The risk after a random round without strong convexity: its formula, and runs that stay below it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hockeystick import utility

CELL = {"num_users": 400, "batch_size": 4, "dimension": 5, "noise_std": 1.5, "gradient_bound": 1.0, "radius": 1.0}


def test_formula() -> None:
    """The best step gives 2 rho sqrt((G^2 + d sigma^2/m)/T); every other step more."""
    moment, rounds = 1 + 5 * 2.25 / 4, 100
    best = utility.random_stop_excess_risk_convex(**CELL)
    assert best == pytest.approx(2 * math.sqrt(moment / rounds), rel=1e-12)
    step = 2 / math.sqrt(moment * rounds)
    others = utility.random_stop_excess_risk_convex(**CELL, learning_rate=step * np.array([0.5, 1.0, 3.0]))
    assert others[1] == pytest.approx(best, rel=1e-12)
    assert min(others[0], others[2]) > best


@pytest.mark.parametrize("step", [0.02, 0.2, 2.0])
def test_runs_stay_below(step: float) -> None:
    """Noisy steps on |w - a| with users' signs drawn at random: the mean risk of all models is below the bound."""
    rng, d, batch, rounds, target = np.random.default_rng(1), 5, 4, 100, np.full(5, 0.4)
    w, risks = np.zeros((2000, d)), []
    w[:, 0] = -1.0
    for _ in range(rounds):
        offset = w - target
        gradient = offset / np.maximum(np.linalg.norm(offset, axis=1, keepdims=True), 1e-12)
        w = w - step * (gradient + 1.5 / math.sqrt(batch) * rng.standard_normal(w.shape))
        w /= np.maximum(1.0, np.linalg.norm(w, axis=1, keepdims=True))
        risks.append(np.linalg.norm(w - target, axis=1).mean())
    assert np.mean(risks) < utility.random_stop_excess_risk_convex(**CELL, learning_rate=step)


def test_refused() -> None:
    """More users in a batch than there are, and NaN where asked."""
    with pytest.raises(ValueError, match="batch_size must be at most num_users"):
        utility.random_stop_excess_risk_convex(**(CELL | {"batch_size": 500}))
    assert np.isnan(utility.random_stop_excess_risk_convex(**(CELL | {"radius": -1.0}), on_error="nan"))
