"""Losses that are not smooth: gradients are those of the Moreau envelope of Lowy and Razaviyayn 2023, values their own."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("numba")

from hockeystick import isrl, simulate

LOSSES = {"hinge": lambda u, y: np.maximum(0.0, 1.0 - (2 * y - 1) * u), "absolute": lambda u, y: abs(u - y)}
BOUND, BETA = 2.0, 12.0
X = np.array([[1.2, -0.5], [0.3, 1.9], [-1.0, 0.2]])
Y = np.array([1.0, 0.0, 1.0])


def stepped(loss: str, model: np.ndarray, record: int) -> tuple[np.ndarray, float]:
    """Return the gradient that one noiseless step of size 1 took, and the loss of the model."""
    problem = simulate.Problem(
        loss, X[record : record + 1], Y[record : record + 1], curvature=BETA, feature_bound=BOUND
    )
    algorithm = simulate.NoisyMinibatchSGD(learning_rate=1.0, clip_norm=math.inf, records=simulate.EveryRound())
    result = simulate.run(algorithm, problem, rounds=1, seed=1, initial=model)
    return model - result.last_iterates[0], float(result.loss()[0, 0])


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_those_of_the_envelope(loss: str) -> None:
    """The envelope's minimum over a fine grid of scores has its slope; the model's loss is the loss itself."""
    b = BETA / BOUND**2
    grid = np.linspace(-8, 8, 1_600_001)
    for model in ([0.0, 0.0], [1.0, 0.3], [-2.0, 1.0], [0.9, 0.1]):
        for record in range(3):
            score, label = float(X[record] @ model), Y[record]
            nearest = grid[np.argmin(LOSSES[loss](grid, label) + b / 2 * (score - grid) ** 2)]
            gradient, value = stepped(loss, np.array(model), record)
            np.testing.assert_allclose(gradient, b * (score - nearest) * X[record], atol=5e-5)
            assert value == pytest.approx(float(LOSSES[loss](np.array(score), label)), abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_constants_of_the_envelope(loss: str) -> None:
    """Differences of gradients stay below smoothness times the distance, and gradients below the Lipschitz constant."""
    problem = simulate.Problem(loss, X, Y, curvature=BETA, feature_bound=BOUND)
    assert (problem.smoothness, problem.lipschitz, problem.convex) == (BETA, BOUND, True)
    models = np.random.default_rng(2).uniform(-2, 2, (12, 2))
    for record in range(3):
        found = np.array([stepped(loss, model, record)[0] for model in models])
        apart = np.linalg.norm(models[:, None] - models, axis=2)
        change = np.linalg.norm(found[:, None] - found, axis=2)
        assert (change <= BETA * apart + 1e-9).all()
        assert (np.linalg.norm(found, axis=1) <= BOUND).all()


def test_smoothed_training() -> None:
    """Noisy SGD on a hinge loss with the smoothing of Theorem D.2 learns, and has the guarantee of any clipped loss."""
    beta = isrl.smoothing_parameter(
        lipschitz=1.0, diameter=10.0, silos_per_round=3, num_records=400, dimension=5, epsilon=20.0, delta=1e-5
    )
    plain = simulate.synthetic("hinge", sizes=[400] * 3, num_features=5, seed=3)
    problem = simulate.Problem("hinge", plain.features, plain.labels, plain.sizes, curvature=beta, feature_bound=1.0)
    algorithm = simulate.NoisyMinibatchSGD(
        learning_rate=1 / beta, clip_norm=1.0, noise_std=0.05, records=simulate.FixedSize(40), radius=5.0
    )
    result = simulate.run(algorithm, problem, rounds=60, seed=7)
    smooth = simulate.Problem("logistic", plain.features, plain.labels, plain.sizes)
    assert result.loss()[0, 0] < 0.8 < result.accuracy()[0, 0] + 0.15
    assert result.epsilon(1e-5)[0] == algorithm.guarantee(smooth, rounds=60).epsilon(60, 1e-5)


def test_smoothing_needs_a_bound() -> None:
    """Without a bound of the features the envelope is not defined, and that is said; labels of the hinge are classes."""
    for loss in LOSSES:
        with pytest.raises(ValueError, match="feature_bound must be given"):
            simulate.Problem(loss, X, Y)
    with pytest.raises(ValueError, match="labels must be given"):
        simulate.Problem("absolute", X, feature_bound=BOUND)
    with pytest.raises(ValueError, match=r"labels\[1\] must be an integer in \[0, 1\]"):
        simulate.Problem("hinge", X, [0.0, 2.0, 1.0], feature_bound=BOUND)
