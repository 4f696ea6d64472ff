"""Printed formulas of the papers on projected noisy SGD and the trusted aggregator, what refutes them, and what holds instead."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import norm

import hockeystick as hs
import theorems
from federations import linear_losses_delta
from hockeystick import federated, last_iterate, published, utility
from hockeystick.published import UnsoundBoundWarning
from hockeystick.published.warning import quietly

STEP = {
    "num_records": 40, "learning_rate": 0.7, "noise_std": 1.0, "lipschitz": 1.0, "smoothness": 0.5,
    "strong_convexity": 0.2,
}  # fmt: skip
AGGREGATOR = {"learning_rate": 0.5, "noise_std": 1.5, "lipschitz": 1.0, "radius": 1.0}
RATE = {
    "num_users": 600, "batch_size": 3, "noise_std": 1.5, "lipschitz": 1.0, "smoothness": 2.0, "radius": 0.5,
    "gradient_bound": 1.0, "strong_convexity": 0.5,
}  # fmt: skip


@pytest.mark.parametrize("index", [1, 20, 39, 40])
def test_proposition_1(index: int) -> None:
    """It is e^(-(eps - kappa)^2/(4 kappa)) on both sides of kappa; above kappa it is the certified one, without a warning."""
    with mp.workdps(50):
        m, later = theorems.contraction(0.7, 0.5, 0.2), 40 - index
        kappa = 2 * m ** (later + 1) / later if later else mp.mpf(2)
        for eps in (0.0, 1e-4, float(kappa) / 2, float(kappa) * 1.01, float(kappa) + 3):
            printed = quietly(published.pnsgd_rdp, eps, index=index, **STEP)
            exact = mp.exp(-((mp.mpf(eps) - kappa) ** 2) / (4 * kappa))
            assert abs(printed / exact - 1) < 1e-11 or exact < 1e-300
            certified = last_iterate.pnsgd_rdp(eps, index=index, **STEP)
            if eps > kappa:
                published.pnsgd_rdp(eps, index=index, **STEP)
                assert certified == pytest.approx(printed, rel=1e-11)
            else:
                assert certified == 1
                with pytest.warns(UnsoundBoundWarning, match="says nothing for epsilon at most kappa"):
                    published.pnsgd_rdp(eps, index=index, **STEP)


def test_proposition_1_is_refuted() -> None:
    """Four deviations apart, kappa = 8: .135 is printed at eps = 1e-4, and two normal laws have 2 Phi(2) - 1 = .954 at 0."""
    cell = {"learning_rate": 1.0, "noise_std": 0.5, "lipschitz": 1.0, "smoothness": 0.0, "num_records": 1, "index": 1}
    printed = quietly(published.pnsgd_rdp, 1e-4, **cell)
    assert printed == pytest.approx(math.exp(-((8 - 1e-4) ** 2) / 32), rel=1e-12)
    assert printed < 0.136
    assert hs.theta(0.0, 4.0) - 1e-4 > 0.954
    assert hs.theta(0.0, 4.0) == pytest.approx(2 * norm.cdf(2) - 1, rel=1e-12)


def test_theorem_5_without_contraction() -> None:
    """Where no later step hides anything the printed series is infinite."""
    cell = STEP | {"learning_rate": 1e-3, "diameter": 1.0}
    assert published.pnsgd_gaussian_random_stop(0.0, **cell) == math.inf


def test_broken_number_of_rounds() -> None:
    """Figure 2, q = .3: the printed closed form with 10/3 rounds is 10/9 of the three rounds'; whole numbers are Theorem 2."""
    printed = quietly(published.trusted_aggregator, 0.0, num_users=100, batch_size=30, **AGGREGATOR)
    whole = federated.trusted_aggregator(0.0, num_users=100, batch_size=30, loss="convex", **AGGREGATOR)
    assert printed == pytest.approx(0.0968762, rel=1e-6)
    assert printed / whole == pytest.approx(10 / 9, rel=1e-6)
    for batch in (1, 10, 20, 100):
        expected = federated.trusted_aggregator(1.0, num_users=100, batch_size=batch, loss="convex", **AGGREGATOR)
        computed = published.trusted_aggregator(1.0, num_users=100, batch_size=batch, **AGGREGATOR)
        assert computed == pytest.approx(expected, rel=1e-11)


def test_smaller_last_batch_refutes_it() -> None:
    """A batch of 100 users and one of 1, linear losses: the exact delta, by quadrature, is 7000 times the printed one."""
    cell = {"learning_rate": 1.0, "noise_std": 1.0, "lipschitz": 3.0, "radius": 100.0}
    eps, exact = 3.0, linear_losses_delta(3.0, (100, 1), 3.0)
    printed = quietly(published.trusted_aggregator, eps, num_users=101, batch_size=100, **cell)
    certified = federated.trusted_aggregator_batches(eps, batch_sizes=[100, 1], loss="convex", **cell)
    assert printed * 7000 < exact < certified
    with pytest.warns(UnsoundBoundWarning, match="needs whole batches"):
        published.trusted_aggregator(eps, num_users=101, batch_size=100, **cell)


def test_corollary_2() -> None:
    """Twice the term for one coordinate, 2/d of it for d; sums over rounds by hand; a schedule of noise."""
    printed = quietly(published.random_stop_excess_risk_rate, **RATE)
    harmonic = sum(1 / t for t in range(1, 201))
    assert printed.statistical == pytest.approx(5 * math.log(200) / (0.5 * 200), rel=1e-12)
    assert printed.private == pytest.approx(2.25 * harmonic / (0.5 * 3 * 200), rel=1e-12)
    for dimension in (1, 2, 30):
        rate = utility.random_stop_excess_risk_rate(dimension=dimension, **RATE)
        assert rate.private == pytest.approx(dimension / 2 * printed.private, rel=1e-6)
    noise = np.linspace(0.5, 2.0, 200)
    by_hand = sum(s**2 / (0.5 * t) for t, s in enumerate(noise, 1)) / (3 * 200)
    assert quietly(published.random_stop_excess_risk_rate, **(RATE | {"noise_std": noise})).private == pytest.approx(
        by_hand
    )
    with pytest.raises(ValueError, match=r"noise_std must be a number or of shape \(200,\)"):
        published.random_stop_excess_risk_rate(**(RATE | {"noise_std": noise[1:]}))
    with pytest.warns(UnsoundBoundWarning, match="lacks its dimensions and a factor 1/2"):
        published.random_stop_excess_risk_rate(**RATE)
