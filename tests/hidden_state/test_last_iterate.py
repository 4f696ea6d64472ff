"""Projected noisy SGD: Theorems 3 to 5 and Proposition 1 of Asoodeh, Diaz and Calmon, term by term."""

import math

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
import theorems
from hockeystick import last_iterate
from theorems import log_close

GAUSSIAN = {"num_records": 40, "learning_rate": 0.5, "noise_std": 2.0, "lipschitz": 1.0, "smoothness": 0.5}
GAUSSIAN |= {"strong_convexity": 0.1, "diameter": 1.0}
RDP = {k: v for k, v in GAUSSIAN.items() if k != "diameter"} | {"index": 20}
LAPLACE = {("noise_scale" if k == "noise_std" else k): v for k, v in GAUSSIAN.items()} | {"index": 20}
FUNCTIONS = {
    "pnsgd_gaussian": GAUSSIAN | {"index": 20},
    "pnsgd_laplace": LAPLACE,
    "pnsgd_gaussian_random_stop": GAUSSIAN,
    "pnsgd_rdp": RDP,
}


def settings(name: str) -> list[dict]:
    """Return the figures of the paper and the corners of the domain."""
    base = FUNCTIONS[name]
    noise = "noise_scale" if name == "pnsgd_laplace" else "noise_std"
    changes = [
        {},
        {"strong_convexity": 0.0},
        {"smoothness": 0.0, "strong_convexity": 0.0},  # linear losses: M = 1
        {"strong_convexity": 0.5},  # equal to the smoothness
        {"learning_rate": 2 / 0.6, "strong_convexity": 0.1},  # at the limit
        {noise: 1.0, "learning_rate": 0.7, "strong_convexity": 0.2},  # Figure 3
        {noise: 0.05},
        {noise: 300.0},
        {"lipschitz": 1e-3},
        {"num_records": 1, "index": 1},
        {"index": 40},
        {"index": 1, "num_records": 150},
    ]
    if name != "pnsgd_rdp":
        changes += [{"diameter": 30.0}, {"diameter": 1e-2}]
    return [{k: v for k, v in (base | c).items() if k in base} for c in changes]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("eps", [0.0, 1e-9, 0.05, 1.0, 3.0, 20.0])
def test_against_the_theorem(name: str, eps: float) -> None:
    """Every value is the theorem's to 1e-12 in log delta."""
    for arguments in settings(name):
        reference = getattr(theorems, name)(eps, **arguments)
        computed = getattr(last_iterate, name)(eps, **arguments)
        assert log_close(computed, reference, 1e-12), (arguments, computed, mp.nstr(reference, 20))


def test_laplace_is_pure_beyond_a_point() -> None:
    """Theorem 3: delta = 0 from eps = min(2L/v, M(b-a)/(eta v)) on, and not before."""
    m = float(theorems.contraction(0.5, 0.5, 0.1))
    limit = min(2 * 1.0 / 2.0, m * 1.0 / (0.5 * 2.0))
    assert last_iterate.pnsgd_laplace(limit * (1 + 1e-12), **LAPLACE) == 0
    assert last_iterate.pnsgd_laplace(limit * (1 - 1e-9), **LAPLACE) > 0


def test_random_stop_is_below_the_printed_limit() -> None:
    """Theorem 5 prints the infinite sum; the finite one is smaller, and tends to it."""
    for eps in (0.1, 1.0):
        arguments = GAUSSIAN | {"num_records": 30}
        value = last_iterate.pnsgd_gaussian_random_stop(eps, **arguments)
        r = theorems.contraction(0.5, 0.5, 0.1) / mp.mpf(0.5 * 2.0)
        printed = theorems.theta(mp.mpf(eps), mp.mpf(1)) / 30 / (1 - theorems.theta(mp.mpf(eps), r))
        assert value <= printed * mp.mpf(1 + 1e-14)
    long = last_iterate.pnsgd_gaussian_random_stop(1.0, **(GAUSSIAN | {"num_records": 10**9}))
    np.testing.assert_allclose(long, float(printed) * 30 / 1e9, rtol=1e-12)


@pytest.mark.parametrize("eps", [1e-4, 2.0, 7.999])
def test_renyi_route_says_nothing_below_kappa(eps: float) -> None:
    """Proposition 1 holds for eps > kappa only; below it delta is 1: the Gaussian mechanism can exceed the formula."""
    arguments = RDP | {"index": 40, "noise_std": 0.5}  # kappa = 8
    assert last_iterate.pnsgd_rdp(eps, **arguments) == 1
    if eps < 0.01:
        assert math.exp(-((eps - 8) ** 2) / 32) < hs.theta(eps, 4.0)
