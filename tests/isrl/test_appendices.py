"""Rates, rounds and parameters of the appendices, written out again from the print, with what is misprinted mended."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hockeystick import isrl, published
from silo_arguments import accelerated, close

SILO = {"lipschitz": 1.5, "smoothness": 3.0, "num_records": 2000, "silos_per_round": 10, "dimension": 50}
BUDGET = {"epsilon": 0.5, "delta": 1e-6}
L, BETA, N, M, D_ = 1.5, 3.0, 2000, 10, 50
EPS, LOG = 0.5, math.log(1e6)


def test_shuffled_one_pass_of_strongly_convex_losses() -> None:
    """Equation 40 with 1/mu in its first term, and the batch size of its proof."""
    rate = isrl.sdp_one_pass_rate_sc(
        **SILO, **BUDGET, gradient_std=0.7, strong_convexity=0.3, num_silos=40, heterogeneity=2.0
    )
    kappa = BETA / 0.3
    close(rate.statistical, 0.7**2 / (0.3 * N * M))
    close(rate.private, L**2 / 0.3 * math.sqrt(kappa) * D_ * LOG / (EPS * N * M) ** 2)
    close(rate.participation, 4.0 / (0.3 * math.sqrt(kappa) * M) * (1 - 9 / 39))
    size = isrl.sdp_batch_size_sc(**SILO, **BUDGET, gradient_std=0.7, strong_convexity=0.3, initial_gap=2.0)
    inside = 0.3 * 2.0 * min((EPS * N * M) ** 2 / (L**2 * D_ * LOG), N * M / 0.49)
    close(size, N / (math.sqrt(kappa) * math.log(inside)))


def test_rounds_of_shuffled_sgd() -> None:
    """Theorem G.1's rounds make every term of its proof as small as its rate; the printed third term does not."""
    setting = {"smoothness": 1e-6, "diameter": 1.0, "lipschitz": 1.0, "silos_per_round": 100, "num_silos": 100}
    small = setting | {"num_records": 10, "epsilon": 0.1, "dimension": 2}
    needed, printed = isrl.shuffle_rounds(**small), published.shuffle_rounds(**small)
    close(needed, max(100.0**2 / 100, 1, min(1000, 100**2 / 2)))
    close(printed, max(100.0, 1, min(10, 100**2 / 200)))
    rate = 1 / math.sqrt(1000) + math.sqrt(2) / 100  # of Theorem 5.1, logarithms left out
    assert 1 / math.sqrt(needed) < rate < 2.2 / math.sqrt(printed)  # L D/sqrt(R), of its proof
    strong = setting | {"num_records": 10, "epsilon": 0.1, "dimension": 2, "smoothness": 4.0, "strong_convexity": 0.5}
    close(isrl.shuffle_rounds(**strong), max(100, 1, 1000, 64 * math.log(4 * 0.5 * 100**2 / 2)))


def test_unequal_silos() -> None:
    """Theorem H.1: rates, step and rounds."""
    xi = published.silo_xi(
        num_records=[1000, 500, 2000], epsilons=[1.0, 0.5, 2.0], deltas=[1e-5, 1e-5, 1e-6], rounds=50
    )
    t = float(xi.mean()) / 2.4
    silos = ((1000, 1.0, 1e-5), (500, 0.5, 1e-5), (2000, 2.0, 1e-6))
    close(xi, [math.log(125 / delta) * math.log(2 / delta) / (n * eps) ** 2 for n, eps, delta in silos])
    setting = {"lipschitz": 2.0, "diameter": 3.0, "silos_per_round": 2.4, "num_records": 500, "dimension": 7}
    rate = isrl.unequal_silos_rate(**setting, effective_noise=t)
    close((rate.statistical, rate.private), (6 / math.sqrt(1200), 6 * math.sqrt(7 * t)))
    strong = isrl.unequal_silos_rate(**setting, effective_noise=t, strong_convexity=0.1)
    close((strong.statistical, strong.private), (40 / 1200, 40 * 7 * t))
    found = isrl.unequal_silos_empirical_rate(
        lipschitz=2.0, strong_convexity=0.1, rounds=300, dimension=7, effective_noise=t
    )
    close(found, 40 * (1 / 300 + 7 * t))
    step = isrl.unequal_silos_step(**setting, smoothness=1.0, rounds=300, effective_noise=t)
    close(step, min(1.0, 3 / (2 * math.sqrt(300)) * min(math.sqrt(1200 / 300), 1, math.sqrt(1 / (7 * 300 * t)))))
    rounds = isrl.unequal_silos_rounds(**setting, smoothness=5.0, effective_noise=t)
    close(rounds, 7.5 * min(math.sqrt(1200), 1 / math.sqrt(7 * t)) + min(1200, 1 / (7 * t)))
    printed = published.unequal_silos_rounds(**setting, smoothness=5.0, effective_noise=t)
    close(printed, 7.5 * min(math.sqrt(1200), math.sqrt(7 * t)) + min(1200, 1 / (7 * t)))
    strongly = isrl.unequal_silos_rounds(**setting, smoothness=5.0, effective_noise=t, strong_convexity=0.1)
    close(strongly, 100 * math.log(5 * 0.1 * 9 / (4 * 7 * t)) + 1200)
    for value in (1e-9, 1e-3, 1.0):  # the optimisation term beta D^2/R is at most the rate
        exact = isrl.unequal_silos_rounds(**setting, smoothness=1e6, effective_noise=value)
        at_most = isrl.unequal_silos_rate(**setting, effective_noise=value).value
        assert 1e6 * 9 / exact <= at_most * (1 + 1e-9)


def test_smoothing() -> None:
    """The envelope's L^2/beta is the rate; for the empirical risk the printed beta lacks the logarithm only."""
    setting = {"lipschitz": 1.5, "diameter": 2.0, "silos_per_round": 10, "num_records": 2000, "dimension": 50, **BUDGET}
    rate = 3 / math.sqrt(M) * (1 / math.sqrt(N) + math.sqrt(D_ * LOG) / (EPS * N))
    close(isrl.smoothing_parameter(**setting), L**2 / rate)
    mu = 0.2
    close(isrl.smoothing_parameter(**setting, strong_convexity=mu), mu * M / (1 / N + D_ * LOG / (EPS * N) ** 2))
    printed = EPS * N * math.sqrt(M) * L / (math.sqrt(D_) * 2)
    close(isrl.smoothing_parameter(**setting, problem="empirical"), printed / math.sqrt(LOG))
    printed = mu * M * (EPS * N) ** 2 / D_
    close(isrl.smoothing_parameter(**setting, problem="empirical", strong_convexity=mu), printed / LOG)


def test_rounds_of_empirical_risk_without_smoothness() -> None:
    """Theorem F.2.2 has the rounds of F.2.1, and a logarithm that it does not state."""
    setting = {"lipschitz": 1.0, "silos_per_round": 25, "num_silos": 25, "num_records": 1000, "batch_size": 1000}
    setting |= {"epsilon": 1.0, "delta": 1e-5, "dimension": 10}
    expected = math.sqrt(25) * 1000 / math.sqrt(10 * math.log(1e5))
    close(isrl.erm_rounds(**setting, strong_convexity=0.1), expected)
    close(isrl.erm_rounds(**setting), expected)


def test_heterogeneity_that_is_harmless() -> None:
    """Remarks E.1 and G.1 as printed, but for ln^2 in G.1; at the threshold the rate's last term is the sum of the others."""
    setting = {**SILO, **BUDGET, "gradient_std": 0.7, "num_silos": 40}
    left = math.sqrt(39 / 30)
    bracket = (L**3 * 4 * BETA**2) ** 0.2 * M**0.2 * (D_ * LOG) ** 0.3 / (N * EPS) ** 0.6
    bracket += 0.7 * (BETA * 2 / L) ** 0.2 * (EPS**2 * M / (N**3 * D_ * LOG)) ** 0.1
    close(isrl.harmless_heterogeneity(**setting, diameter=2.0), left * bracket)
    kappa = BETA / 0.3
    for shuffled, divided in ((False, 1), (True, M)):
        square = math.sqrt(kappa) * (0.49 / N + math.sqrt(kappa) * L**2 * D_ * LOG / ((EPS * N) ** 2 * divided))
        found = isrl.harmless_heterogeneity(**setting, strong_convexity=0.3, shuffled=shuffled)
        close(found, left * math.sqrt(square))
    for shuffled, rate in ((False, isrl.one_pass_rate), (True, isrl.sdp_one_pass_rate)):
        most = isrl.harmless_heterogeneity(**setting, diameter=2.0, shuffled=shuffled)
        at = rate(**setting, diameter=2.0, heterogeneity=most)
        close(at.participation, at.statistical + at.private)
    assert isrl.harmless_heterogeneity(**(setting | {"num_silos": 10}), diameter=2.0) == math.inf


def test_parameters_of_accelerated_sgd() -> None:
    """The bound at phi is that of `acsa_bound`, and no other phi of 2 beta or more has a smaller one; lambda is V/(D sqrt R)."""
    rounds, distance, variance, beta = 200, 10.0, 25.0, 1.0
    found = isrl.accelerated_parameters(rounds=rounds, distance_squared=distance, variance=variance, smoothness=beta)
    bound = lambda phi: 2 * phi * distance / (rounds * (rounds + 1)) + variance * (rounds + 2) / (3 * phi)
    close(
        bound(found.phi), isrl.acsa_bound(rounds=rounds, distance_squared=distance, variance=variance, smoothness=beta)
    )
    assert all(bound(found.phi) <= bound(phi) for phi in np.geomspace(2 * beta, 1e6, 1000))
    close(found.regularization, 5 / math.sqrt(10 * 200))
    still = isrl.accelerated_parameters(rounds=10, distance_squared=1.0, variance=0.01, smoothness=3.0)
    close((still.phi, still.regularized_phi), (6.0, 6.0 + 2 * 0.1 / math.sqrt(10)))


def test_stages() -> None:
    """Every stage of the corrected schedule halves the gap. Lemma E.2's order."""
    setting = {"smoothness": 10.0, "strong_convexity": 0.1, "gradient_std": 2.0, "initial_gap": 5.0, "rounds": 200_000}
    stages = isrl.multistage_schedule(**setting)
    losses = {"strong_convexity": 0.1, "variance": 4.0, "initial_gap": 5.0}
    assert len(stages) > 3
    for k in range(1, len(stages) + 1):
        assert isrl.multistage_bound(stages[:k], **losses) <= 5.0 * 2.0**-k
    rate = isrl.multistage_rate(smoothness=10.0, strong_convexity=0.1, variance=4.0, initial_gap=5.0, rounds=50)
    close(rate, 5 * math.exp(-5) + 4 / 5)


def test_multistage_bound_by_simulation() -> None:
    """On a quadratic with Gaussian gradients, by mean over runs, the gap stays below the bound."""
    rng, runs, curvature = np.random.default_rng(5), 400, np.array([0.1, 1.0, 10.0])
    stages, deviation, mu = [(60, 40.0), (80, 80.0)], 0.5, 0.1
    held = np.ones((runs, 3))
    gap = float(curvature.sum()) / 2
    for length, phi in stages:
        held = accelerated(length, phi, mu, lambda w: w * curvature + rng.normal(0, deviation, w.shape), held)
    reached = (held**2 @ curvature).mean() / 2
    assert reached <= isrl.multistage_bound(stages, strong_convexity=mu, variance=3 * deviation**2, initial_gap=gap)


def test_printed_stability_and_lower_bound() -> None:
    """Lemma D.2 with M, N/M times the corrected one; the central lower bound with L^2/mu for L of the order of mu D."""
    setting = {"lipschitz": 2.0, "rounds": 50, "learning_rate": 0.01, "num_records": 500, "smoothness": 1.0}
    close(published.uniform_stability(**setting, silos_per_round=5), 2 * 4 * 50 * 0.01 / 2500)
    close(published.uniform_stability(**setting, silos_per_round=5, strong_convexity=0.5), 16 / (0.5 * 2499))
    assert published.uniform_stability(**setting, silos_per_round=5) == 4 * isrl.uniform_stability(
        **setting, num_silos=20
    )
    setting = {"lipschitz": 2.0, "diameter": 3.0, "gradient_std": 0.5, "num_silos": 10, "num_records": 100}
    setting |= {"dimension": 7}
    strong = {"epsilon": 0.5, "strong_convexity": 0.4}
    found = isrl.risk_lower_bound(**setting, **strong, notion="central", matched=True)
    close(found.private, 4 / 0.4 * 7 / (0.5 * 1000) ** 2)


def test_deletion_groups() -> None:
    """Two laws that are near a third: delta by all events is at most (1 + e^eps) delta at 2 eps, and can come close."""
    reference = np.array([0.5, 0.3, 0.2])
    first, second = np.array([0.7, 0.2, 0.1]), np.array([0.35, 0.35, 0.3])
    for epsilon in (0.0, 0.1, 0.3):
        near = max(
            float(np.maximum(a - math.exp(epsilon) * b, 0).sum())
            for law in (first, second)
            for a, b in ((law, reference), (reference, law))
        )
        group = isrl.deletion_to_group(epsilon, near)
        assert float(np.maximum(first - math.exp(group.epsilon) * second, 0).sum()) <= group.delta
    close(isrl.deletion_to_group(0.5, 1e-6), (1.0, (1 + math.exp(0.5)) * 1e-6))


def test_printed_shuffling() -> None:
    """Theorem G.1's noise with a constant, Corollary D.1's order, and the biased sum of Algorithms 4 and 5, which warn."""
    many = {"num_records": 10, "num_silos": 5000, "silos_per_round": 2000, "rounds": 100}
    with pytest.warns(published.UnsoundBoundWarning, match="constant of Theorem G.1"):
        sigma = published.shuffled_mb_sgd_sigma(**many, lipschitz=2.0, epsilon=0.7, delta=1e-6, constant=4.0)
    logs = math.log(100 * 2000**2 / (5000 * 1e-6)) * math.log(1e8) * math.log(1e6)
    close(sigma, 2 * math.sqrt(4 * 100 * 2000 * logs) / (10 * 5000 * 0.7))
    with pytest.warns(published.UnsoundBoundWarning, match="states an order"):
        order = published.shuffle_composed_epsilon(0.4, 1e-15, num_silos=50_000, num_records=10, compositionality=2.0)
    close(order, 0.4 * math.log(1 / 5e-10) * 4 / math.sqrt(50_000))
    rng = np.random.default_rng(1)
    vectors = rng.uniform(-0.4, 0.4, (30, 4))
    protocol = {"lipschitz": 1.0, "levels": 5, "noise_bits": 3, "probability": 0.25, "rng": rng}
    with pytest.warns(published.UnsoundBoundWarning, match="too large"):
        runs = [published.shuffle_vector_sum(vectors, **protocol) for _ in range(2000)]
    error = np.mean(runs, axis=0) - vectors.sum(axis=0)
    close(error, np.full(4, 29.0), rel=0.01)


def test_rate_of_the_empirical_risk() -> None:
    """Theorems 4.1 and F.1: the private term alone."""
    setting = {"lipschitz": 1.5, "diameter": 2.0, "silos_per_round": 10, "num_records": 2000, "dimension": 50, **BUDGET}
    rate = isrl.erm_rate(**setting)
    close((rate.statistical, rate.private), (0.0, 3 * math.sqrt(D_ * LOG) / (EPS * N * math.sqrt(M))))
    rate = isrl.erm_rate(**setting, strong_convexity=0.2)
    close((rate.statistical, rate.private), (0.0, L**2 / 0.2 * D_ * LOG / ((EPS * N) ** 2 * M)))
