"""Published numbers of trees, matrix mechanisms and their batches."""

from __future__ import annotations

import math
from collections.abc import Callable

import hockeystick as hs
from hockeystick import correlated_noise
from published_numbers.value import Ends, Value, epsilon

GBOARD_TREE = "Kairouz et al. 2021 (2103.00039); google-research/federated, dp_ftrl/blogpost_supplemental_privacy_accounting.ipynb"
GBOARD_BANDS = (
    "Choquette-Choo et al. 2023 (2306.08153); google-research/federated, mf_dpftrl_matrices/privacy_accounting.ipynb"
)
TREES = "Kairouz et al. 2021 (2103.00039), Appendix D; tensorflow/privacy, analysis/tree_aggregation_accountant_test.py"
LEVELS = "our upper end takes every level of the tree at its worst"
SAMPLES = "google-deepmind/jax_privacy, experimental/monte_carlo, 60,000 samples"


def tree(steps: int, times: int, separation: int) -> correlated_noise.Sensitivity:
    """Return the sensitivity of a tree whose records take part so often, at least so many steps apart."""
    return correlated_noise.tree_sensitivity(
        steps, participation="min_separation", separation=separation, max_participations=times
    )


def squared(steps: int, times: int, separation: int) -> Callable[[], Ends]:
    """Return a function that gives the ends of the squared sensitivity of a tree."""

    def ends() -> Ends:
        found = tree(steps, times, separation)
        return found.lower**2, found.upper**2

    return ends


def gboard() -> Ends:
    """Return epsilon of the tree of Gboard's Spanish model: 2000 rounds, six at most, 313 rounds between two of them."""
    mechanism = tree(2000, 6, 314).mechanism(7.0)
    return hs.Accountant().compose(mechanism).epsilon_bracket(1e-10)[:2]


def bins(bands: int, number: int, steps: int, noise: float, eps: float) -> Callable[[], Ends]:
    """Return a function that gives a bound of delta of balls-in-bins batches and the square-root strategy."""
    c = correlated_noise.square_root_coefficients(bands)
    return lambda: (
        0.0,
        correlated_noise.balls_in_bins(c, steps=steps, bins=number, noise_multiplier=noise).delta(eps),
    )


def separated(bands: int, rate: float, steps: int, noise: float, eps: float, *, warm: bool) -> Callable[[], Ends]:
    """Return a function that gives a bound of delta of b-min-separated batches and the square-root strategy, b the number of bands."""
    c = correlated_noise.square_root_coefficients(bands)
    setting = {"steps": steps, "separation": bands, "sampling_rate": rate, "noise_multiplier": noise}
    return lambda: (0.0, correlated_noise.min_separated_poisson(c, **setting, warm_start=warm).delta(eps))


VALUES = [
    Value(
        "Gboard, Spanish: a tree of 2000 rounds, noise 7, six rounds at most, 314 apart: ε at δ = 1e-10",
        GBOARD_TREE,
        "8.90",
        "upper bound",
        gboard,
        "converted from Rényi divergences",
    ),
    Value("squared sensitivity of a tree of 8 steps, one of them", TREES, "4", "exact", squared(8, 1, 8)),
    Value("of 9 steps, three of them, 4 apart", TREES, "11", "exact", squared(9, 3, 4), LEVELS),
    Value("of 7 steps, three of them, 3 apart", TREES, "9", "exact", squared(7, 3, 3), LEVELS),
    Value("of 24 steps, eight of them, 3 apart", TREES, "88", "exact", squared(24, 8, 3), LEVELS),
    Value(
        "Gboard, Spanish (Spain): 400 bands, rho = 0.1506840301548885: ε at δ = 1e-10",
        GBOARD_BANDS,
        "3.4240074094281336",
        "upper bound",
        epsilon(1e-10, (hs.Gaussian(1.0 / math.sqrt(2 * 0.1506840301548885)), 1)),
        "a grid of losses; the strategy itself is a file of 16 MB",
    ),
    Value(
        "balls in 16 bins, 16 bands, 64 steps, noise 4: δ at ε = .5",
        SAMPLES,
        "0.0614",
        "estimate",
        bins(16, 16, 64, 4.0, 0.5),
    ),
    Value(
        "balls in 64 bins, 8 bands, 128 steps, noise 4: δ at ε = .1",
        SAMPLES,
        "0.0206",
        "estimate",
        bins(8, 64, 128, 4.0, 0.1),
    ),
    Value(
        "4-min-separated batches, rate .05, 60 steps, 4 bands, noise 3: δ at ε = .1",
        SAMPLES,
        "0.0608",
        "estimate",
        separated(4, 0.05, 60, 3.0, 0.1, warm=False),
    ),
    Value(
        "8-min-separated batches, warm start, rate .05, 64 steps, 8 bands, noise 8: δ at ε = .1",
        SAMPLES,
        "0.0128",
        "estimate",
        separated(8, 0.05, 64, 8.0, 0.1, warm=True),
    ),
]
