"""Batches of different sizes: against Theorem 2 for equal ones, the sum term by term, and exact mixtures."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm

import theorems
from hockeystick import federated

CELL = {"learning_rate": 0.5, "noise_std": 1.5, "lipschitz": 1.0, "radius": 1.0}


@pytest.mark.parametrize("loss", ["convex", "nonconvex"])
def test_equal_batches_are_theorem_2(loss: str) -> None:
    """Ten batches of ten users have the delta of the trusted aggregator, also with schedules."""
    steps = np.linspace(0.2, 0.9, 10)
    for changes in ({}, {"learning_rate": steps}, {"noise_std": 1 + steps, "lipschitz": 2 * steps}):
        arguments = CELL | changes | {"loss": loss}
        expected = federated.trusted_aggregator([0.0, 1.0], num_users=100, batch_size=10, **arguments)
        computed = federated.trusted_aggregator_batches([0.0, 1.0], batch_sizes=[10] * 10, **arguments)
        np.testing.assert_allclose(computed, expected, rtol=1e-11)


@pytest.mark.parametrize("eps", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("sizes", [[30, 30, 30, 10], [1], [5, 1, 17]])
def test_term_by_term(eps: float, sizes: list[int]) -> None:
    """The sum over batches to 50 digits."""
    with mp.workdps(50):
        total = mp.mpf(0)
        for t, size in enumerate(sizes):
            term = theorems.theta(mp.mpf(eps), 2 / (mp.sqrt(size) * 1.5)) * size / sum(sizes)
            for later in sizes[t + 1 :]:
                term *= theorems.theta(mp.mpf(eps), 2 * mp.sqrt(later) / (mp.mpf(0.5) * 1.5))
            total += term
        computed = federated.trusted_aggregator_batches(eps, batch_sizes=sizes, loss="convex", **CELL)
        assert theorems.log_close(computed, total)


@pytest.mark.share(3)
@pytest.mark.parametrize("last", [1, 5, 50])
@pytest.mark.parametrize("eps", [0.0, 0.5, 2.0, 4.0])
def test_exact_mixtures_stay_below(last: int, eps: float) -> None:
    """Linear losses in a wide ball: two mixtures of normal laws, whose delta by quadrature is never above the bound."""
    for slope in (0.5, 2.0, 4.0):
        sizes, std = (50, last), math.sqrt(1 / 50 + 1 / last)

        def excess(x: float, slope: float = slope, sizes: tuple[int, int] = sizes, std: float = std) -> float:
            p, q = (sum(m / sum(sizes) * norm.pdf(x, s * slope / m, std) for m in sizes) for s in (1, -1))
            return max(p - math.exp(eps) * q, 0.0)

        exact = integrate.quad(excess, -1, 30 * std, points=[0.0, std, 4 * std], limit=400)[0]
        bound = federated.trusted_aggregator_batches(
            eps, batch_sizes=sizes, learning_rate=1.0, noise_std=1.0, lipschitz=slope, radius=1e3, loss="convex"
        )
        assert exact <= bound * (1 + 1e-9)


def test_refused() -> None:
    """Sizes that are no counts, schedules of another length, steps that expand."""
    for changes, words in (
        ({"batch_sizes": [10, 0]}, r"batch_sizes\[1\] must be an integer"),
        ({"batch_sizes": []}, "batch_sizes must be one-dimensional and not empty"),
        ({"learning_rate": [0.5] * 3}, r"learning_rate must be a number or of shape \(2,\)"),
        ({"smoothness": 5.0}, "learning_rate must be at most 2/smoothness"),
        ({"loss": "concave"}, "loss must be one of"),
        ({"radius": -1.0}, "radius must be positive"),
    ):
        with pytest.raises(ValueError, match=words):
            federated.trusted_aggregator_batches(1.0, **({"batch_sizes": [10, 5], "loss": "convex"} | CELL | changes))
