"""Projection onto a ball: the bound of its contraction coefficient against integrals in two dimensions and mpmath in more."""

import math

import numpy as np
import pytest

import effort
import hockeystick as hs
from hockeystick import last_iterate
from slow_values import BALLS, committed


def divergence_in_the_plane(eps: np.ndarray, p: np.ndarray, q: np.ndarray, radius: float) -> np.ndarray:
    """Return the divergence of two projected Gaussians around p and q in the plane, by polar quadrature."""
    angles = 2 * np.pi * (np.arange(720) + 0.5) / 720
    directions = np.stack([np.cos(angles), np.sin(angles)])
    nodes, weights = np.polynomial.legendre.leggauss(120)
    rho = radius * (nodes + 1) / 2
    laws = []
    for mean in (p, q):
        along = mean @ directions
        beyond = np.exp(-0.5 * (mean @ mean - along**2)) / (2 * np.pi)
        tail = np.exp(-0.5 * (radius - along) ** 2) + along * math.sqrt(2 * np.pi) * hs.q(radius - along)
        inside = np.exp(-0.5 * (rho[:, None] ** 2 - 2 * rho[:, None] * along + mean @ mean)) / (2 * np.pi)
        laws.append((beyond * tail, inside * (rho * weights * radius / 2)[:, None]))
    assert sum(part.sum() for part in laws[0]) * 2 * np.pi / 720 == pytest.approx(1, abs=1e-9)
    gamma = np.exp(eps)[:, None]
    positive = np.maximum(laws[0][0] - gamma * laws[1][0], 0).sum(1)
    positive += np.maximum(laws[0][1] - gamma[..., None] * laws[1][1], 0).sum((1, 2))
    return positive * 2 * np.pi / 720


@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 200])
@pytest.mark.parametrize(("a", "radius"), BALLS)
def test_largest_loss(dimension: int, a: float, radius: float) -> None:
    """The bound vanishes from the largest loss on, and not before."""
    loss = float(committed("largest_loss_on_a_ball", a, radius, dimension))
    below, above = last_iterate.ball_contraction(
        [loss * (1 - 1e-9), loss * (1 + 1e-3) + 1e-3], image_radius=a, radius=radius, dimension=dimension, noise_std=1.0
    )
    assert below > 0
    assert above == 0


def test_pairs_of_means_in_the_plane() -> None:
    """No pair of means exceeds the bound; antipodal ones meet it where the best half-plane cuts the ball."""
    rng = np.random.default_rng(8)
    eps = np.array([0.0, 0.3, 1.0, 2.0, 3.0, 4.0])
    for k in range(effort.at_night(150, by_day=30)):
        radius, share = rng.uniform(0.3, 2.0), rng.uniform(0.3, 1.3)
        a = share * radius
        first = rng.normal(size=2)
        first *= a / np.linalg.norm(first) * rng.choice([1.0, rng.uniform()])
        second = -first if k % 3 == 0 else rng.normal(size=2)
        second *= min(1.0, a / np.linalg.norm(second))
        bound = last_iterate.ball_contraction(eps, image_radius=a, radius=radius, dimension=2, noise_std=1.0)
        exact = divergence_in_the_plane(eps, first, second, radius)
        assert np.all(bound >= exact * (1 - 1e-3) - 1e-9), (radius, a, first, second)
    pole = np.array([1.0, 0.0])
    near = float(committed("largest_loss_on_a_ball", 1.0, 1.0, 2)) - 0.02
    assert divergence_in_the_plane(np.array([near]), pole, -pole, 1.0)[0] > 1e-6
    tight = last_iterate.ball_contraction(1.0, image_radius=1.0, radius=1.0, dimension=2, noise_std=1.0)
    assert tight <= divergence_in_the_plane(np.array([1.0]), pole, -pole, 1.0)[0] * 1.01


def test_on_an_interval_it_is_above_the_exact_coefficient() -> None:
    """In one dimension the coefficient is known."""
    rng = np.random.default_rng(9)
    n = 2000
    eps, radius, noise = rng.uniform(0, 5, n), 10 ** rng.uniform(-1, 1, n), 10 ** rng.uniform(-1, 1, n)
    a = radius * rng.uniform(0.1, 2, n)
    exact = last_iterate.projected_contraction(eps, image_low=-a, image_high=a, diameter=2 * radius, noise_std=noise)
    bound = last_iterate.ball_contraction(eps, image_radius=a, radius=radius, dimension=1, noise_std=noise)
    assert np.all(bound >= exact * (1 - 1e-12))
    assert np.any((exact == 0) & (bound == 0))


def test_best_knows_the_ball() -> None:
    """One dimension is the interval; the bound rises with the dimension up to that of no ball at all."""
    process = {"index": 1, "num_records": 2, "learning_rate": 1.0, "noise_std": 1.0, "lipschitz": 0.05}
    process |= {"smoothness": 0.0, "diameter": 1.0}
    eps = 0.5
    one = last_iterate.best(eps, **process, one_dimensional=True)
    balls = last_iterate.best(eps, **process, ball_dimension=[1, 2, 3, 10, 10**6])
    np.testing.assert_allclose(balls.bounds["projected"][0], one.bounds["projected"], rtol=1e-12)
    assert np.all(np.diff(balls.bounds["projected"]) >= 0)
    last = balls.bounds["projected"][-1]
    np.testing.assert_allclose(last, balls.bounds["hybrid"][-1], rtol=1e-12)
    assert last > balls.bounds["projected"][1]
