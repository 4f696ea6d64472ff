"""Silos of different weight: the losses N p_i f_i of Appendix H of Lowy and Razaviyayn 2023."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("numba")

from hockeystick import isrl, simulate

FEATURES = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, -1.0], [0.2, 0.1], [-0.6, 0.3]])
LABELS = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
SIZES, WEIGHTS = [2, 2, 1], [0.5, 0.3, 0.2]


def problem(loss: str = "logistic", **more: object) -> simulate.Problem:
    """Return three silos."""
    return simulate.Problem(loss, FEATURES, LABELS, SIZES, feature_bound=1.0, **more)  # type: ignore[arg-type]


def step(silos: simulate.Problem, clip: float = math.inf) -> np.ndarray:
    """Return the gradient of one noiseless step from a fixed model."""
    algorithm = simulate.NoisyMinibatchSGD(learning_rate=1.0, clip_norm=clip, records=simulate.EveryRound())
    start = np.array([0.3, -0.2])
    return start - simulate.run(algorithm, silos, rounds=1, seed=1, initial=start).last_iterates[0]


def gradients(factors: np.ndarray, clip: float = math.inf) -> np.ndarray:
    """Return the mean over silos of the means of clipped gradients of factor times logistic loss, by definition."""
    score = FEATURES @ np.array([0.3, -0.2])
    each = (1 / (1 + np.exp(-score)) - LABELS)[:, None] * FEATURES * np.repeat(factors, SIZES)[:, None]
    each *= np.minimum(1.0, clip / np.linalg.norm(each, axis=1))[:, None]
    return np.mean([part.mean(axis=0) for part in np.split(each, np.cumsum(SIZES)[:-1])], axis=0)


def test_steps_follow_the_weighted_objective() -> None:
    """A full batch's step is the gradient of sum p_i F_i; gradients are clipped after they are weighted."""
    factors = 3 * np.array(WEIGHTS)
    weighted = problem(weights=WEIGHTS)
    np.testing.assert_allclose(step(weighted), gradients(factors), rtol=1e-12)
    np.testing.assert_allclose(step(weighted, 0.3), gradients(factors, 0.3), rtol=1e-12)
    assert (step(problem(weights=[1 / 3] * 3)) == step(problem())).all()


def test_constants_are_those_of_the_weighted_losses() -> None:
    """Smoothness, strong convexity and Lipschitz constant are `isrl.reweighted_constants`; the guarantee is that of the clip norm."""
    weighted, plain = problem(weights=WEIGHTS), problem()
    expected = isrl.reweighted_constants(WEIGHTS, lipschitz=1.0, smoothness=0.25)
    assert weighted.smoothness == pytest.approx(expected.smoothness)
    assert weighted.lipschitz == pytest.approx(expected.lipschitz)
    quadratic = simulate.Problem("quadratic", FEATURES, None, SIZES, curvature=2.0, weights=WEIGHTS)
    expected = isrl.reweighted_constants(WEIGHTS, lipschitz=1.0, strong_convexity=2.0, smoothness=2.0)
    assert (quadratic.smoothness, quadratic.strong_convexity) == pytest.approx(
        (expected.smoothness, expected.strong_convexity)
    )
    algorithm = simulate.NoisyMinibatchSGD(
        learning_rate=0.1, clip_norm=1.0, noise_std=4.0, records=simulate.EveryRound()
    )
    spent = [algorithm.guarantee(silos, rounds=3).epsilon(3, 1e-5) for silos in (weighted, plain)]
    assert spent[0] == spent[1]


def test_weights_stay_with_their_silos() -> None:
    """A record replaced leaves the weights; pooled silos have none."""
    weighted = problem(weights=WEIGHTS)
    assert weighted.replace_record(1, [0.1, 0.1], 1.0).weights == WEIGHTS
    with pytest.raises(ValueError, match="weights must not be given for records that are pooled"):
        weighted.pooled()
    assert problem().pooled().num_silos == 1


@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.5, 0.3, 0.1], [0.6, 0.6, -0.2], [0.5, 0.5, 0.0]])
def test_refused_weights(weights: list[float]) -> None:
    """Weights are positive, sum to 1, and are as many as the silos."""
    with pytest.raises(ValueError, match="weights"):
        problem(weights=weights)
