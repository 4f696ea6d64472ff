"""The exact proximal step of FedProx: its minimiser, its reach, and what is certified of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import hockeystick as hs
from hockeystick import simulate

EXACT: dict[str, Any] = {
    "learning_rate": 0.2, "local_steps": 5000, "clip_norm": 50.0, "prox": 1.3, "tolerance": 1e-12,
}  # fmt: skip


def test_least_squares_by_linear_equations() -> None:
    """Two clients, three rounds: each client's model solves a linear system, and the server averages them."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    problem = simulate.Problem("least_squares", x, y, [4, 5])
    w = np.zeros(3)
    for _ in range(3):
        models = []
        for part in (slice(0, 4), slice(4, 9)):
            a, b, n = x[part], y[part], len(y[part])
            models.append(np.linalg.solve(a.T @ a / n + 1.3 * np.eye(3), a.T @ b / n + 1.3 * w))
        w = np.mean(models, axis=0)
    result = simulate.run(simulate.NoisyFedProx(**EXACT), problem, rounds=3, seed=1)
    np.testing.assert_allclose(result.models[-1, 0], w, rtol=1e-9)


def test_logistic_by_scipy() -> None:
    """One client's round is the minimum that SciPy finds."""
    problem = simulate.synthetic("logistic", sizes=[12], num_features=4, seed=2)

    def objective(w: np.ndarray) -> float:
        scores = problem.features @ w
        losses = np.logaddexp(0, scores) - problem.labels * scores
        return float(losses.mean() + 0.65 * w @ w)

    best = minimize(objective, np.zeros(4), tol=1e-12, options={"gtol": 1e-9}).x
    result = simulate.run(simulate.NoisyFedProx(**EXACT), problem, rounds=1, seed=1)
    np.testing.assert_allclose(result.models[-1, 0], best, atol=1e-6)


@pytest.mark.parametrize("loss", ["least_squares", "linear"])
def test_reach(loss: str) -> None:
    """No round moves a model by more than clip_norm/prox, whatever the gradients and the steps."""
    problem = simulate.Problem(loss, 100 * np.ones((3, 2)), None if loss == "linear" else 100 * np.ones(3))
    for rate in (1e-5, 0.2, 10.0):  # too few steps, enough for one loss, divergence
        settings = EXACT | {"clip_norm": 0.26, "learning_rate": rate, "local_steps": 50}
        models = simulate.run(simulate.NoisyFedProx(**settings), problem, rounds=4, seed=1, record_every=1).models[:, 0]
        moves = np.linalg.norm(np.diff(models, axis=0), axis=1)
        assert np.all(moves <= 0.2 * (1 + 1e-12))


def test_guarantee() -> None:
    """Each round is a Gaussian of shift 2V/(m prox) over sigma/sqrt(m), whatever the smoothness and the steps."""
    problem = simulate.synthetic("logistic", sizes=[3] * 4, num_features=2, seed=1)
    settings = EXACT | {"clip_norm": 0.5, "noise_std": 0.3, "learning_rate": 5.0}
    guarantee = simulate.NoisyFedProx(**settings).guarantee(problem, rounds=7)
    mu = 2 * 0.5 / (4 * 1.3) * math.sqrt(4) / 0.3 * math.sqrt(7)
    assert guarantee.epsilon(7, 1e-5) == pytest.approx(hs.gdp_epsilon(mu, 1e-5), rel=1e-12)
    assert guarantee.epsilon(7, 1e-5) >= hs.gdp_epsilon(mu, 1e-5) * (1 - 1e-14)
    assert guarantee.released == "the averaged model of every round"


def test_attained_by_linear_losses() -> None:
    """Linear losses move the exact minimiser by V/prox, so that gamma is attained."""
    problem = simulate.Problem("linear", [[0.5], [0.5]], sizes=[1, 1])
    other = problem.replace_record(0, [-0.5])
    algorithm = simulate.NoisyFedProx(**(EXACT | {"clip_norm": 0.5}))
    one, two = (simulate.run(algorithm, p, rounds=1, seed=1).models[-1, 0, 0] for p in (problem, other))
    assert two - one == pytest.approx(algorithm.data_sensitivity(1, 2)[0], rel=1e-9)


@pytest.mark.parametrize("changes", [{"schedule": "cyclic"}, {"records": simulate.FixedSize(2)}])
def test_refused(changes: dict[str, Any]) -> None:
    """The proximal problem is of all records, and its solver's steps have no schedule."""
    with pytest.raises(ValueError, match="tolerance must be 0 unless"):
        simulate.NoisyFedProx(**EXACT, **changes)
    with pytest.raises(ValueError, match="tolerance must be non-negative and finite, not -1"):
        simulate.NoisyFedProx(**(EXACT | {"tolerance": -1.0}))
