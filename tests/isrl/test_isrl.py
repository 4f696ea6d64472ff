"""Inter-silo privacy: the specification's values, derivations by other means, and what is refused."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick import isrl, published

REL = 1e-6


def close(value: object, expected: object, rel: float = REL) -> None:
    """Compare numbers, or tuples of them."""
    np.testing.assert_allclose(np.asarray(value, dtype=float), np.asarray(expected, dtype=float), rtol=rel)


BUDGETS = {
    "central": (isrl.isrl_to_central(1.0, 1e-5), (1.0, 1e-5)),
    "central, pure": (isrl.isrl_to_central(0.3, 0.0), (0.3, 0.0)),
    "central, unequal": (isrl.isrl_to_central([1.0, 0.5], [1e-6, 1e-5]), (1.0, 1e-5)),
    "group 10": (isrl.group_privacy(0.1, 1e-8, 10), (1.0, 1.6337994e-07)),
    "group 100": (isrl.isrl_to_user_level(0.01, 1e-9, 100), (1.0, 1.7097047e-07)),
    "group 3": (isrl.group_privacy(1.0, 1e-10, 3), (3.0, 1.1107338e-09)),
    "advanced 100": (isrl.advanced_composition([0.1] * 100, [1e-8] * 100, 1e-6), (6.3082310, 2.0e-06)),
    "advanced 10": (isrl.advanced_composition([0.5] * 10, 0.0, 1e-5), (10.830742, 1e-5)),
    "per round": (isrl.per_round_budget(1.0, 1e-5, 50), (0.014311397, 1e-7)),
    "per round, lossy": (isrl.per_round_budget(6.0, 1e-6, 100), (0.055691978, 5e-9)),
    "subsampled": (isrl.subsampling_amplification(1.0, 1e-5, 0.1), (0.15856508, 1e-6)),
    "subsampled, rare": (isrl.subsampling_amplification(0.5, 1e-5, 0.01), (0.0064662613, 1e-7)),
    "parallel": (isrl.parallel_composition([1.0, 0.5], [1e-5, 1e-6]), (1.0, 1e-5)),
    "parallel, pure": (isrl.parallel_composition([0.2, 0.2], 0.0), (0.2, 0.0)),
    "transfer": (isrl.tv_transfer(1.0, 1e-6, 1e-7), (1.0, 1.3718282e-06)),
    "transfer, pure": (isrl.tv_transfer(0.0, 0.0, 0.1), (0.0, 0.2)),
    "shuffled": (
        isrl.shuffle_amplification(0.01, 1e-12, num_silos=10_000, num_records=100, slack=1e-6),
        (0.0025788357, 6.3931017e-06),
    ),
    "shuffled, one record": (
        isrl.shuffle_amplification(1.0, 1e-12, num_silos=10_000, slack=1e-6),
        (0.21402565, 1.0265043e-06),
    ),
    "shuffled 50 times": (
        isrl.shuffle_amplification_composed(0.005, 1e-15, num_silos=10_000, num_records=100, rounds=50),
        (0.049688399, 2.6445259e-07),
    ),
    "shuffled 20 times": (
        isrl.shuffle_amplification_composed(0.1, 1e-15, num_silos=50_000, num_records=10, rounds=20),
        (0.38384031, 6.9909182e-08),
    ),
}


@pytest.mark.parametrize("case", BUDGETS)
def test_budgets(case: str) -> None:
    """Budgets and their conversions have the specification's values."""
    close(*BUDGETS[case])


NUMBERS = {
    "composition constant": (isrl.compositionality_constant([0.1] * 50, 1.0), 0.70710678),
    "composition constant of one pass": (isrl.compositionality_constant([1.0] * 10, 1.0), 3.1622777),
    "randomised response": (isrl.randomized_response_keep_prob(1.0, 2), 0.73105858),
    "randomised response of 10": (isrl.randomized_response_keep_prob(2.0, 10), 0.45085306),
    "clones": (isrl.clone_bound(0.5, 1000, 1e-4), 0.77961505),
    "all clones": (isrl.clone_bound(1.0, 10_000, 1e-6), 0.27209823),
    "binomial": (isrl.binomial_mechanism_delta(1.0, trials=10_000, probability=0.25, shift=10), 8.5399647e-07),
    "binomial, half": (isrl.binomial_mechanism_delta(1.0, trials=1000, probability=0.5, shift=5), 1.1314849e-04),
    "binomial bits": (isrl.calibrate_binomial_b(epsilon=1.0, delta=1e-6, num_messages=1000, levels=32), 99),
    "binomial bits, 500": (isrl.calibrate_binomial_b(epsilon=0.5, delta=1e-5, num_messages=500, levels=23), 282),
    "participation": (isrl.harmonic_participation({2: 0.5, 3: 0.5}, 5), (2.4, 2.3533936)),
    "weights": (
        isrl.reweighted_constants([0.5, 0.3, 0.2], lipschitz=1.0, strong_convexity=0.1, smoothness=1.0),
        (1.5, 0.06, 1.5),
    ),
    "equal weights": (
        isrl.reweighted_constants([1 / 3] * 3, lipschitz=1.0, strong_convexity=0.1, smoothness=1.0),
        (1.0, 0.1, 1.0),
    ),
    "heterogeneity": (isrl.heterogeneity([[2.0 - 1.0], [2.0 - 3.0]]), (1.0, 1.0)),
    "no heterogeneity": (isrl.heterogeneity([[1.0], [1.0]]).around_mean, 0.0),
    "sampled mean": (isrl.sampled_mean_variance([[1.0], [-1.0]], 1), 1.0),
    "sampled mean of 4": (isrl.sampled_mean_variance([[1.0], [-1.0], [0.0], [0.0]], 2), 0.16666667),
    "population": (isrl.population_bound(0.002, 0.85), 0.852),
    "population, less": (isrl.population_bound(0.0016, 0.27), 0.2716),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers(case: str) -> None:
    """Further formulas have the specification's values."""
    close(*NUMBERS[case])


def setting(names: str, values: tuple[float, ...], **more: object) -> dict[str, object]:
    """Return arguments by their names."""
    return dict(zip(names.split(), values, strict=True)) | more


STABILITY = "lipschitz rounds learning_rate num_records num_silos"
EMPIRICAL = "diameter learning_rate rounds dimension noise_std silos_per_round lipschitz"
GRADIENT = "gradient_std batch_size silos_per_round heterogeneity num_silos dimension noise_std"
RATE = "lipschitz diameter silos_per_round num_records dimension epsilon delta"
ONE_PASS = (
    "gradient_std diameter num_records silos_per_round smoothness lipschitz dimension epsilon delta num_silos "
    "heterogeneity"
)
BATCH = "lipschitz smoothness diameter num_records dimension epsilon delta silos_per_round"
BATCH_SC = (
    "num_records smoothness strong_convexity initial_gap epsilon silos_per_round lipschitz dimension delta gradient_std"
)
LOWER = "gradient_std diameter num_silos num_records lipschitz dimension epsilon"
ROUNDS = "smoothness diameter silos_per_round lipschitz num_records epsilon dimension"
ERM = "smoothness diameter lipschitz silos_per_round epsilon num_records dimension delta batch_size num_silos"
ERM_SC = (
    "smoothness strong_convexity initial_gap silos_per_round epsilon num_records lipschitz dimension delta batch_size "
    "num_silos"
)
STICH = "strong_convexity distance_squared rounds second_moment max_step"
FORMULAS = [
    (isrl.uniform_stability, setting(STABILITY, (1, 100, 0.1, 1000, 10), smoothness=1), 0.002),
    (isrl.uniform_stability, setting(STABILITY, (2, 50, 0.01, 500, 5), smoothness=1), 0.0016),
    (
        isrl.uniform_stability,
        setting(STABILITY, (1, 10**9, 0.1, 1000, 10), smoothness=1, strong_convexity=0.1),
        4 / (0.1 * 9999),
    ),
    (
        isrl.uniform_stability,
        setting(STABILITY, (2, 10**9, 0.1, 500, 5), smoothness=1, strong_convexity=0.5),
        0.012805122,
    ),
    (isrl.mb_sgd_empirical_bound, setting(EMPIRICAL, (2, 0.05, 50, 10, 1.597848, 25, 1)), 0.85053118),
    (isrl.mb_sgd_empirical_bound, setting(EMPIRICAL, (1, 0.01, 200, 5, 0.5, 10, 2)), 0.270625),
    (
        isrl.mb_sgd_empirical_bound,
        setting(EMPIRICAL, (2, 0.05, 500, 10, 0.2, 25, 1), strong_convexity=0.1),
        0.043163363,
    ),
    (
        isrl.mb_sgd_empirical_bound,
        setting(EMPIRICAL, (1, 0.1, 200, 5, 0.5, 10, 2), strong_convexity=0.5),
        0.20625876,
    ),
    (isrl.step_size_stich, setting(STICH, (0.1, 4, 500, 1.016, 0.5)), 0.18388934),
    (isrl.step_size_stich, setting(STICH, (0.5, 1, 50, 2, 0.25)), 0.22978418),
    (isrl.step_size_stich, setting(STICH, (0.5, 1, 50, 0, 0.25)), 0.25),
    (isrl.noisy_gradient_variance, setting(GRADIENT, (1, 10, 5, 2, 20, 10, 0.5)), 1.1515789),
    (isrl.noisy_gradient_variance, setting(GRADIENT, (1, 10, 20, 2, 20, 10, 0.5)), 0.13),
    (isrl.mb_sgd_rounds, setting(ROUNDS, (1, 2, 25, 1, 1000, 1, 10)), 25316.228),
    (isrl.mb_sgd_rounds, setting(ROUNDS, (2, 1, 10, 1, 500, 0.1, 50)), 544.72136),
    (isrl.mb_sgd_rounds, setting(ROUNDS, (1, 2, 25, 1, 1000, 1, 10), strong_convexity=0.1), 25000),
    (isrl.mb_sgd_rounds, setting(ROUNDS, (10, 1, 10, 1, 500, 0.05, 50), strong_convexity=0.1), 965.66275),
    (isrl.erm_rounds, setting(ERM, (100, 2, 1, 25, 1, 1000, 10, 1e-5, 100, 25)), 305.28367),
    (isrl.erm_rounds, setting(ERM, (None, None, 1, 25, 1, 1000, 10, 1e-5, 100, 25)), 465.9906),
    (isrl.erm_rounds, setting(ERM, (1, 1, 1, 10, 0.5, 2000, 50, 1e-6, 2000, 10)), 10.968968),
    (isrl.erm_rounds, setting(ERM, (None, 1, 1, 10, 0.5, 2000, 50, 1e-6, 2000, 10)), 120.31826),
    (isrl.erm_rounds, setting(ERM_SC, (10, 0.1, 1, 25, 1, 1000, 1, 10, 1e-5, 100, 25)), 124.29216),
    (isrl.erm_rounds, setting(ERM_SC, (1, 1, 1, 10, 0.5, 2000, 1, 50, 1e-6, 2000, 10)), 12.206073),
    (isrl.one_pass_batch_size, setting(BATCH, (1, 1, 2, 10_000, 10, 1, 1e-5, 25)), 258.36706),
    (isrl.one_pass_batch_size, setting(BATCH, (1, 10, 1, 2000, 50, 0.5, 1e-6, 10)), 117.19184),
    (isrl.sdp_batch_size, setting(BATCH, (1, 1, 2, 10_000, 10, 1, 1e-5, 25)), 237.99004),
    (isrl.sdp_batch_size, setting(BATCH, (1, 10, 1, 2000, 50, 0.5, 1e-6, 10)), 138.12851),
    (isrl.one_pass_batch_size_sc, setting(BATCH_SC, (10_000, 1, 0.1, 1, 1, 25, 1, 10, 1e-5, 1)), 312.27341),
    (isrl.one_pass_batch_size_sc, setting(BATCH_SC, (2000, 2, 0.5, 2, 0.5, 10, 1, 50, 1e-6, 1)), 104.38107),
    (isrl.acsa_bound, {"rounds": 10, "distance_squared": 10, "variance": 0.01, "smoothness": 1}, 0.38364),
    (isrl.acsa_bound, {"rounds": 200, "distance_squared": 10, "variance": 25, "smoothness": 1}, 1.83028),
]


@pytest.mark.parametrize(("function", "arguments", "expected"), FORMULAS)
def test_formulas(function: object, arguments: dict[str, object], expected: float) -> None:
    """Risk bounds, step sizes, batch sizes and rounds have the specification's values."""
    close(function(**arguments), expected, rel=1e-5)  # some are given with five digits


RATES = [
    (isrl.excess_risk_rate_iid, setting(RATE, (1, 2, 25, 1000, 10, 1, 1e-5)), 0.016941043),
    (isrl.excess_risk_rate_iid, setting(RATE, (1, 1, 10, 500, 50, 0.5, 1e-6)), 0.047387298),
    (isrl.excess_risk_rate_iid, setting(RATE, (1, 2, 25, 1000, 10, 1, 1e-5), strong_convexity=0.1), 4.460517e-4),
    (isrl.excess_risk_rate_iid, setting(RATE, (2, 1, 10, 500, 50, 0.5, 1e-6), strong_convexity=0.5), 0.010441927),
    (isrl.shuffle_rate, setting(RATE, (1, 2, 25, 1000, 10, 1, 1e-5), num_silos=25), 0.013507497),
    (isrl.shuffle_rate, setting(RATE, (1, 1, 10, 500, 50, 0.5, 1e-6), num_silos=20), 0.019398657),
    (
        isrl.hybrid_user_level_rate,
        setting("lipschitz diameter dimension num_records delta epsilon num_silos", (1, 1, 50, 500, 1e-6, 1, 10_000)),
        0.31646579,
    ),
    (
        isrl.hybrid_user_level_rate,
        setting("lipschitz diameter dimension num_records delta epsilon num_silos", (1, 1, 50, 500, 1e-6, 0.5, 10_000)),
        0.63293158,
    ),
    (isrl.one_pass_rate, setting(ONE_PASS, (1, 2, 10_000, 25, 1, 1, 10, 1, 1e-5, 25, 1)), (0.004, 0.0026701414, 0)),
    (
        isrl.one_pass_rate,
        setting(ONE_PASS, (1, 1, 2000, 10, 10, 1, 50, 0.5, 1e-6, 20, 2)),
        (0.0070710678, 0.03433482, 0.11106747),
    ),
    (
        isrl.sdp_one_pass_rate,
        setting(ONE_PASS, (1, 2, 10_000, 25, 1, 1, 10, 1, 1e-5, 25, 1)),
        (0.004, 0.0022655703, 0),
    ),
    (
        isrl.sdp_one_pass_rate,
        setting(ONE_PASS, (1, 1, 2000, 10, 10, 1, 50, 0.5, 1e-6, 20, 2)),
        (0.0070710678, 0.047698712, None),
    ),
    (isrl.risk_lower_bound, setting(LOWER, (1, 2, 25, 1000, 1, 10, 1)), 0.013914022),
    (isrl.risk_lower_bound, setting(LOWER, (1, 1, 10, 5, 1, 100_000, 0.5), compositionality=2), 1.1414214),
    (isrl.risk_lower_bound, setting(LOWER, (1, 2, 25, 1000, 1, 10, 1), strong_convexity=0.1), 4.008e-4),
    (
        isrl.risk_lower_bound,
        setting(LOWER, (1, 1, 10, 500, 1, 50, 0.5), strong_convexity=0.5, compositionality=2),
        4.05e-4,
    ),
    (isrl.risk_lower_bound, setting(LOWER, (0, 1, 10_000, 1, 1, 100, 1)), 0.1),
    (isrl.risk_lower_bound, setting(LOWER, (1, 1, 10, 500, 1, 50, 0.5), notion="central"), 0.016970563),
]


@pytest.mark.parametrize(("function", "arguments", "expected"), RATES)
def test_rates(function: object, arguments: dict[str, object], expected: object) -> None:
    """Rates have the specification's values and are flagged as such."""
    rate = function(**arguments)
    assert rate.order_only is True
    if isinstance(expected, tuple):
        for term, value in zip(rate, expected, strict=True):
            if value is not None:
                close(term, value)
    else:
        close(rate.value, expected)


ONE_PASS_SC = (
    "gradient_std strong_convexity num_records silos_per_round lipschitz smoothness dimension epsilon delta num_silos "
    "heterogeneity"
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1, 0.1, 10_000, 25, 1, 1, 10, 1, 1e-5, 25, 0), (4e-5, 1.4562827e-6, 0)),
        ((1, 0.5, 2000, 10, 1, 2, 50, 0.5, 1e-6, 20, 2), (1e-4, 2.7631021e-4, 0.21052632)),
    ],
)
def test_one_pass_rate_sc(values: tuple[float, ...], expected: tuple[float, ...]) -> None:
    """The strongly convex rate has 1/mu in its first term."""
    close(isrl.one_pass_rate_sc(**setting(ONE_PASS_SC, values)), expected)


# set -> num_records, rounds, epsilon, delta, batch_size; least noise in units of 2L/K, its slack, epsilon at the printed noise
SLACK = {
    "A": ((1238, 35, 0.75, 1 / 1238**2, 443), 12.25, 30.8, 0.0187),
    "B": ((1238, 35, 6.0, 1 / 1238**2, 443), 2.107, 22.4, 0.174),
    "C": ((1000, 50, 1.0, 1e-5, 8), 0.8188, 7.8, 0.0257),
    "F": ((10_000, 100, 8.0, 1e-6, 10_000), 6.529, 25.7, None),
    "G": ((500, 20, 4.0, 1e-4, 500), 4.288, 23.8, None),
    "H": ((2000, 100, 0.5, 1e-6, 200), 8.447, 31.7, 0.0117),
}


@pytest.mark.parametrize("case", SLACK)
def test_slack_of_the_printed_noise(case: str) -> None:
    """The accountant needs the noise of the specification's table, and the printed noise spends the epsilon it says."""
    (records, rounds, epsilon, delta, batch), multiplier, slack, spent = SLACK[case]
    shape = {"lipschitz": 1.0, "num_records": records, "rounds": rounds}
    needed = isrl.noisy_mb_sgd_sigma(**shape, batch_size=batch, epsilon=epsilon, delta=delta)
    close(needed * batch / 2, multiplier, rel=1e-3)
    printed = published.noisy_mb_sgd_sigma(**shape, epsilon=epsilon, delta=delta)
    close(printed / needed, slack, rel=1e-2)
    if spent is not None:
        silo = isrl.noisy_mb_sgd_accountant(**shape, noise_std=printed, batch_size=batch)
        close(silo.epsilon(delta), spent, rel=1e-2)


def test_accountant_of_the_specification() -> None:
    """The certified curve of a sample without replacement has the specification's values, composed and for one round."""

    def silo(rate: float, multiplier: float, rounds: int) -> hs.Accountant:
        batch = round(rate * 1000)
        return isrl.noisy_mb_sgd_accountant(
            noise_std=2 * multiplier / batch, lipschitz=1.0, num_records=1000, batch_size=batch, rounds=rounds
        )

    close(silo(0.05, 2.0, 100).epsilon(1e-5), 1.1983, rel=1e-3)
    close(silo(0.2, 4.0, 50).epsilon(1e-6), 1.7172, rel=1e-3)
    close(silo(0.1, 1.0, 1).delta([1.0, 0.5]), [2.0712e-4, 2.03254e-3], rel=1e-4)


def test_mb_sgd_noise_is_the_least() -> None:
    """The noise found is within the budget, 1e-6 less is not, and a full batch has the closed form of the Gaussian mechanism."""
    shape = {"lipschitz": 2.0, "num_records": 300, "rounds": 25}
    for batch in (300, 60):
        sigma = isrl.noisy_mb_sgd_sigma(**shape, batch_size=batch, epsilon=1.0, delta=1e-5)
        spent = [
            isrl.noisy_mb_sgd_accountant(**shape, batch_size=batch, noise_std=x).epsilon(1e-5)
            for x in (sigma, sigma * (1 - 1e-6))
        ]
        assert spent[0] <= 1.0 < spent[1]
    full = isrl.noisy_mb_sgd_sigma(**shape, batch_size=300, epsilon=1.0, delta=1e-5)
    assert full == pytest.approx(2 * 2.0 / 300 * 5 / float(hs.theta_inverse(1.0, 1e-5)), rel=1e-7)


def test_nearly_full_batches() -> None:
    """Where sampling helps by less than the engine's error the search still has an end to start from."""
    full = isrl.noisy_mb_sgd_sigma(
        lipschitz=1.0, num_records=100_000, batch_size=100_000, rounds=50, epsilon=1.0, delta=1e-6
    )
    nearly = isrl.noisy_mb_sgd_sigma(
        lipschitz=1.0, num_records=100_000, batch_size=99_999, rounds=50, epsilon=1.0, delta=1e-6
    )
    assert nearly == pytest.approx(full, rel=1e-3)


def test_little_noise_is_found_too() -> None:
    """A large epsilon needs far less noise than a full batch would, and the search goes there."""
    shape = {"lipschitz": 1.0, "num_records": 10_000, "batch_size": 1, "rounds": 2}
    sigma = isrl.noisy_mb_sgd_sigma(**shape, epsilon=8.0, delta=0.01)
    assert isrl.noisy_mb_sgd_accountant(**shape, noise_std=sigma).epsilon(0.01) <= 8.0


@given(st.floats(1e-3, 50.0), st.floats(1e-12, 0.5), st.integers(1, 10**6))
def test_one_pass_noise_is_certified(epsilon: float, delta: float, batch: int) -> None:
    """The accountant of one Gaussian release agrees that the budget is kept."""
    sigma = isrl.one_pass_sigma(lipschitz=3.0, batch_size=batch, epsilon=epsilon, delta=delta)
    release = hs.Accountant("replace").compose(hs.Gaussian(float(sigma) * batch / 3.0))
    assert release.epsilon(delta) <= epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta", "multiplier", "slack"),
    [
        (0.5, 1e-5, 7.032, 2.76),
        (1.0, 1e-5, 3.7306316, 2.60),
        (0.5, 1e-6, 8.0576185, None),
        (2.0, 1e-6, 2.230, 2.38),
        (4.0, 1e-6, 1.194, 2.22),
        (8.0, 1e-5, 0.600, 2.02),
    ],
)
def test_slack_of_one_pass(epsilon: float, delta: float, multiplier: float, slack: float | None) -> None:
    """One pass needs the analytic Gaussian mechanism's noise, 2 to 2.8 times less than is printed."""
    arguments = {"lipschitz": 1.0, "batch_size": 10, "epsilon": epsilon, "delta": delta}
    sigma = isrl.one_pass_sigma(**arguments)
    close(sigma * 10 / 2, multiplier, rel=1e-3)
    if slack is not None:
        close(published.one_pass_sigma(**arguments) / sigma, slack, rel=3e-3)


def test_unequal_silos() -> None:
    """Each silo has its own noise, and equal silos the same."""
    sigmas = isrl.silo_noise_sigmas(
        lipschitz=[1.0, 2.0, 1.0],
        num_records=[200, 100, 200],
        batch_sizes=[200, 100, 200],
        rounds=9,
        epsilons=[1.0, 0.5, 1.0],
        deltas=1e-5,
    )
    mechanism = [
        2 * lipschitz / n * 3 / float(hs.theta_inverse(e, 1e-5)) for lipschitz, n, e in ((1, 200, 1.0), (2, 100, 0.5))
    ]
    np.testing.assert_allclose(sigmas, [mechanism[0], mechanism[1], mechanism[0]], rtol=1e-7)


def test_mean_noise_is_exact() -> None:
    """Averages over random silos of unequal noise have the variance of the root mean square, by drawing them."""
    variances = np.array([1.0, 4.0, 9.0, 16.0, 0.25])
    harmonic = isrl.harmonic_participation({2: 1 / 3, 3: 1 / 3, 5: 1 / 3}, 5).harmonic
    expected = isrl.mean_noise_std(np.sqrt(variances)) ** 2 / harmonic
    close(expected, 2.0838889)
    rng = np.random.default_rng(11)
    draws = np.array([variances[rng.permutation(5)[:m]].sum() / m**2 for m in rng.choice([2, 3, 5], 40_000)])
    assert abs(draws.mean() - expected) < 5 * draws.std() / 200


def test_epsilon_grid() -> None:
    """The grid is the accountant cell by cell, and NaN where a cell is outside the domain."""
    arguments = {"lipschitz": 1.0, "num_records": 50, "rounds": [[1], [4]], "delta": 1e-5}
    grid = isrl.noisy_mb_sgd_epsilon(**arguments, noise_std=1.0, batch_size=[10, 50])
    one = isrl.noisy_mb_sgd_accountant(noise_std=1.0, lipschitz=1.0, num_records=50, batch_size=10, rounds=4)
    assert grid.shape == (2, 2)
    assert grid[1, 0] == one.epsilon(1e-5)
    again = isrl.noisy_mb_sgd_epsilon(**arguments, noise_std=[1.0, -1.0, 1.0], batch_size=[10, 10, 51], on_error="nan")
    assert np.isnan(again).tolist() == [[False, True, True]] * 2
    risk = isrl.mb_sgd_risk_bound(**RISK | {"noise_std": [0.1, -1.0], "silos_per_round": [[5], [11]]}, on_error="nan")
    assert np.isnan(risk).tolist() == [[False, True], [True, True]]


RISK = {
    "diameter": 2.0,
    "rounds": 50,
    "lipschitz": 1.0,
    "num_records": 1000,
    "num_silos": 10,
    "silos_per_round": 10,
    "dimension": 10,
    "noise_std": 0.3,
    "smoothness": 1.0,
}


def test_step_of_the_specification() -> None:
    """The minimising step and both totals of the specification's example."""
    shape = RISK | {"num_silos": 25, "silos_per_round": 25, "noise_std": 1.597848}
    best = isrl.step_size_convex(**shape)
    close(best, 0.19855348)
    printed = published.step_size_convex(
        **{name: shape[name] for name in ("diameter", "rounds", "lipschitz", "num_records", "dimension", "smoothness")},
        silos_per_round=25,
        epsilon=1.0,
    )
    close(printed, 0.28284271)

    def total(step: float) -> float:
        stability = isrl.uniform_stability(
            lipschitz=1.0, rounds=50, learning_rate=step, num_records=1000, num_silos=25, smoothness=1.0
        )
        empirical = isrl.mb_sgd_empirical_bound(
            diameter=2.0,
            learning_rate=step,
            rounds=50,
            dimension=10,
            noise_std=1.597848,
            silos_per_round=25,
            lipschitz=1.0,
        )
        return isrl.population_bound(stability, empirical)

    close([total(printed), total(best)], [0.42840025, 0.40291411])
    close(isrl.mb_sgd_risk_bound(**shape), total(best))


@given(st.floats(0.0, 1.0), st.floats(0.01, 3.0), st.integers(1, 5000))
def test_risk_bound_is_the_sum_of_its_parts(convexity: float, noise: float, rounds: int) -> None:
    """With strong convexity the bound is that of some allowed step, and never above the convex one."""
    shape = RISK | {"noise_std": noise, "rounds": rounds}
    bound = isrl.mb_sgd_risk_bound(**shape, strong_convexity=convexity)
    assert 0 < bound <= isrl.mb_sgd_risk_bound(**shape) * (1 + 1e-12)


def test_strongly_convex_bound_tends_to_the_convex() -> None:
    """The bound is continuous at no strong convexity."""
    arguments = setting(EMPIRICAL, (2, 0.05, 50, 10, 1.6, 25, 1))
    convex = isrl.mb_sgd_empirical_bound(**arguments)
    close(isrl.mb_sgd_empirical_bound(**arguments, strong_convexity=1e-9), convex, rel=1e-8)


def test_empirical_bound_holds() -> None:
    """Noisy gradient descent of a linear loss stays below the bound, which is close."""
    rng, runs, steps, eta, sigma, d = np.random.default_rng(2), 4000, 40, 0.1, 0.5, 3
    slope = np.eye(d)[0]
    w, total = np.zeros((runs, d)), np.zeros((runs, d))
    for _ in range(steps):
        total += w
        w = w - eta * (slope + sigma * rng.standard_normal((runs, d)))
        w /= np.maximum(1.0, np.linalg.norm(w, axis=1, keepdims=True))
    gap = (total / steps @ slope).mean() + 1.0  # the ball has radius 1, and the best model is -slope
    bound = isrl.mb_sgd_empirical_bound(
        diameter=1.0, learning_rate=eta, rounds=steps, dimension=d, noise_std=sigma, silos_per_round=1, lipschitz=1.0
    )
    assert gap < bound < 3 * gap


def test_averaging_weights() -> None:
    """The specification's average of three iterates, and no overflow for many."""
    iterates = np.array([0.0, 0.5, 0.75])
    close(isrl.averaging_weights(strong_convexity=0.0, learning_rate=0.5, rounds=3) @ iterates, 0.41666667)
    close(isrl.averaging_weights(strong_convexity=1.0, learning_rate=0.5, rounds=3) @ iterates, 0.57142857)
    weights = isrl.averaging_weights(strong_convexity=1.0, learning_rate=0.9, rounds=100_000)
    close(weights[-2:], [0.09, 0.9])


def test_multistage_schedule() -> None:
    """The stages of the specification, with the product in the numerator."""
    common = {"strong_convexity": 0.1}
    first = isrl.multistage_schedule(smoothness=1.0, gradient_std=1.0, initial_gap=1.0, rounds=2000, **common)
    close(first, [(1707, 12887.572)])
    third = isrl.multistage_schedule(smoothness=10.0, gradient_std=2.0, initial_gap=5.0, rounds=20_000, **common)[2]
    close(third, (5462, 131874.6))


def test_moreau_envelope() -> None:
    """The envelope of |v| on [-1, 1] is the Huber function."""

    def prox(w: np.ndarray, beta: float) -> np.ndarray:
        return np.sign(w) * np.maximum(abs(w) - 1 / beta, 0)

    for w, value, gradient in ((0.2, 0.04, 0.4), (1.0, 0.75, 1.0)):
        envelope = isrl.moreau_envelope(lambda v: float(abs(v).sum()), prox, [w], 2.0)
        close([envelope.value, envelope.gradient[0]], [value, gradient])


def test_shuffled_sgd_of_the_specification() -> None:
    """The computable route gives the specification's noise and budgets."""
    for records, rounds, sigma, budgets in (
        (10, 10_000, 154.05277, (1.796436e-3, 0.088584698, 8.4992552e-15)),
        (10, 2_000_000, 2434.3506, (None, 0.0058902621, None)),
        (1, 10_000, 1550.9167, (None, None, None)),
    ):
        noise = isrl.shuffled_mb_sgd_sigma(
            lipschitz=1.0,
            num_records=records,
            num_silos=10_000,
            silos_per_round=10_000,
            rounds=rounds,
            epsilon=1.0,
            delta=1e-6,
        )
        close(noise.noise_std, sigma)
        found = (noise.round.epsilon, *noise.local)
        for value, expected in zip(found, budgets, strict=True):
            if expected is not None:
                close(value, expected, rel=2e-6)


def test_shuffled_round_of_the_specification() -> None:
    """One round of the composed examples has the specification's epsilon."""
    one = isrl.shuffle_amplification(0.005, 1e-15, num_silos=10_000, num_records=100, slack=1e-9)
    close(one.epsilon, 0.0012100806)
    one = isrl.shuffle_amplification(0.1, 1e-15, num_silos=50_000, num_records=10, slack=5e-10)
    close(one.epsilon, 0.013995268)


def test_nothing_small_or_large_is_lost() -> None:
    """Squares that underflow, exponentials that overflow, and noise that rounds to nothing are no way to lose privacy."""
    close(isrl.advanced_composition([1e-300] * 4, 0.0, 0.5).epsilon, 2e-300 * math.sqrt(2 * math.log(2)))
    assert isrl.one_pass_sigma(lipschitz=1e-320, batch_size=10**9, epsilon=100.0, delta=0.5) > 0
    lenient = {"lipschitz": 1.0, "num_records": 10**4, "num_silos": 10**6, "silos_per_round": 10**6, "delta": 1e-9}
    for rounds in (1, 10):
        noise = isrl.shuffled_mb_sgd_sigma(**lenient, rounds=rounds, epsilon=1e5)
        assert math.isfinite(noise.noise_std)
        assert noise.noise_std > 0


def test_advanced_composition_gives_the_budget_back() -> None:
    """Rounds of the budget per round compose to less than the total."""
    for total, rounds, back in (((1.0, 1e-5), 50, 0.51031), ((6.0, 1e-6), 100, 3.31896)):
        one = isrl.per_round_budget(*total, rounds)
        composed = isrl.advanced_composition(np.full(rounds, one.epsilon), one.delta, total[1] / 2)
        close(composed, (back, total[1]), rel=2e-5)


@given(st.floats(0.01, 30.0), st.floats(1e-12, 0.1), st.integers(1, 10**5))
def test_user_level_round_trip(epsilon: float, delta: float, records: int) -> None:
    """The record-level budget gives back the budget of the silo, for every epsilon; the printed one is no larger."""
    record = isrl.user_level_to_isrl(epsilon, delta, records)
    close(isrl.isrl_to_user_level(*record, records), (epsilon, delta), rel=1e-9)
    if epsilon <= 1:
        assert published.user_level_to_isrl(epsilon, delta, records).delta <= record.delta * (1 + 1e-12)


@given(st.floats(0.0, 5.0), st.floats(1e-300, 0.5), st.integers(1, 200))
def test_group_privacy_is_the_sum(epsilon: float, delta: float, k: int) -> None:
    """Group privacy is the geometric sum, and the printed form is never smaller."""
    total = float(min(1, mp.mpf(delta) * mp.fsum(mp.exp(mp.mpf(epsilon) * j) for j in range(k))))
    found = isrl.group_privacy(epsilon, delta, k)
    assert found.delta == pytest.approx(total, rel=1e-9)
    assert found.delta <= published.group_privacy(epsilon, delta, k).delta * (1 + 1e-9)


def test_binomial_mechanism_against_the_definition() -> None:
    """The delta of binomial noise is the sum over all outcomes, in both directions."""
    trials, p, shift, epsilon = 30, 0.3, 4, 0.7
    mass = [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]
    at = lambda k: mass[k] if 0 <= k <= trials else 0.0
    outcomes = range(trials + shift + 1)
    one = sum(max(at(k) - math.exp(epsilon) * at(k - shift), 0.0) for k in outcomes)
    other = sum(max(at(k - shift) - math.exp(epsilon) * at(k), 0.0) for k in outcomes)
    value = isrl.binomial_mechanism_delta(epsilon, trials=trials, probability=p, shift=shift)
    assert value == pytest.approx(max(one, other), rel=1e-12)


def test_binomial_calibration_is_minimal() -> None:
    """One noise bit less does not meet the target."""
    target = {"epsilon": 1.0, "delta": 1e-4}
    b = isrl.calibrate_binomial_b(**target, num_messages=50, levels=5)
    spent = [isrl.binomial_mechanism_delta(1.0, trials=50 * x, probability=0.25, shift=5) for x in (b, b - 1)]
    assert spent[0] <= 1e-4 < spent[1]


def test_shuffled_vector_sum() -> None:
    """The sum of shuffled bits is unbiased, and its error is that of the specification."""
    rng = np.random.default_rng(4)
    vectors = rng.standard_normal((200, 3))
    vectors /= np.maximum(1.0, np.linalg.norm(vectors, axis=1, keepdims=True))
    runs = np.array(
        [
            isrl.shuffle_vector_sum(vectors, lipschitz=1.0, levels=20, noise_bits=8, probability=0.25, rng=rng)
            for _ in range(2000)
        ]
    )
    errors = runs - vectors.sum(axis=0)
    assert (abs(errors.mean(axis=0)) < 4 * errors.std(axis=0) / math.sqrt(2000)).all()
    assert 9.0 < (errors**2).sum(axis=1).mean() < 10.5


def accelerated(rounds: int, phi: float, convexity: float, gradient: object, start: np.ndarray) -> np.ndarray:
    """Run AC-SA (Algorithm 1) with steps 4 phi/(r(r+1)), unconstrained, on rows of independent runs."""
    w, average = start.copy(), start.copy()
    for r in range(1, rounds + 1):
        a, eta = 2 / (r + 1), 4 * phi / (r * (r + 1))
        middle = ((1 - a) * (convexity + eta) * average + a * ((1 - a) * convexity + eta) * w) / (
            eta + (1 - a**2) * convexity
        )
        w = (a * convexity * middle + ((1 - a) * convexity + eta) * w - a * gradient(middle)) / (convexity + eta)
        average = a * w + (1 - a) * average
    return average


@pytest.mark.parametrize(
    ("convexity", "expected"), [(0.0, (0.25, 0.5, 0.7265625)), (1.0, (0.2, 0.35238095, 0.47619048))]
)
def test_accelerated_sgd_of_the_specification(convexity: float, expected: tuple[float, ...]) -> None:
    """The iterates of the specification, on (w - 1)^2/2 from 0."""
    found = [accelerated(rounds, 2.0, convexity, lambda w: w - 1, np.zeros(1))[0] for rounds in (1, 2, 3)]
    close(found, expected)


@pytest.mark.parametrize(
    ("rounds", "variance", "convexity"), [(5, 0.0, 0.0), (40, 0.5, 0.0), (200, 0.5, 0.1), (40, 4.0, 1.0)]
)
def test_accelerated_bound_holds(rounds: int, variance: float, convexity: float) -> None:
    """AC-SA on a quadratic with noisy gradients stays below its bound."""
    rng, beta, runs = np.random.default_rng(9), 1.0, 2000
    curvature = np.array([convexity, beta])
    start = np.full((runs, 2), 1.0)
    phi = max(2 * beta, math.sqrt(variance * rounds * (rounds + 1) * (rounds + 2) / 6 / 2.0))

    def gradient(w: np.ndarray) -> np.ndarray:
        return curvature * w + rng.standard_normal(w.shape) * math.sqrt(variance / 2)

    end = accelerated(rounds, phi, convexity, gradient, start)
    gap = (curvature * end**2).sum(axis=1).mean() / 2
    bound = isrl.acsa_bound(
        rounds=rounds, distance_squared=2.0, variance=variance, smoothness=beta, strong_convexity=convexity
    )
    assert gap < bound


def test_relative_rmse() -> None:
    """The specification's values, and no ratio to nothing."""
    close(isrl.relative_rmse([1, 2, 3], [1, 2, 4], mean=2), 0.70710678)
    assert isrl.relative_rmse([1, 2, 3], [1, 2, 3], mean=2) == 0.0
    with pytest.raises(ValueError, match="must not all equal the mean"):
        isrl.relative_rmse([2, 2], [1, 2], mean=2)
    with pytest.raises(ValueError, match="as long as targets"):
        isrl.relative_rmse([2, 3], [1], mean=2)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: isrl.group_privacy(0.1, 1e-8, 0), "group_size must be an integer"),
        (lambda: isrl.group_privacy(0.1, 1e-8, 1.5), "group_size must be an integer"),
        (lambda: isrl.group_privacy(-0.1, 1e-8, 2), "epsilon must be non-negative"),
        (lambda: isrl.isrl_to_user_level(0.1, 2.0, 2), "delta must lie in"),
        (lambda: isrl.user_level_to_isrl(0.0, 1e-5, 2), "epsilon must be positive"),
        (lambda: isrl.advanced_composition([0.1, 0.2], [1e-8] * 3, 1e-6), "as long as the others"),
        (lambda: isrl.advanced_composition([0.1], [1e-8], 0.0), r"slack must lie in \(0, 1\)"),
        (lambda: isrl.advanced_composition([0.1], [1e-8], 1.0), r"slack must lie in \(0, 1\)"),
        (lambda: isrl.advanced_composition([], [], 0.1), "not empty"),
        (lambda: isrl.per_round_budget(30.0, 1e-5, 50), r"epsilon must be at most 2 ln\(2/delta\)"),
        (lambda: isrl.subsampling_amplification(1.0, 1e-5, 0.0), r"sampling_rate must lie in \(0, 1\]"),
        (lambda: isrl.subsampling_amplification(1.0, 1e-5, 1.1), r"sampling_rate must lie in \(0, 1\]"),
        (lambda: isrl.compositionality_constant([0.1], 0.0), "epsilon must be positive"),
        (lambda: isrl.randomized_response_keep_prob(1.0, 1), "num_buckets must be an integer >= 2"),
        (lambda: isrl.tv_transfer(1.0, 0.0, -0.1), "total_variation must lie in"),
        (
            lambda: isrl.shuffle_amplification(0.01, 1e-8, num_silos=300, num_records=100, slack=3e-4),
            r"epsilon = 0.01, largest = 0.00755888",
        ),
        (
            lambda: isrl.shuffle_amplification_composed(0.1, 0.01, num_silos=100, num_records=10, rounds=2),
            "delta must be below",
        ),
        (lambda: isrl.clone_bound(0.01, 1000, 1e-4), "probability must be at least 16"),
        (lambda: isrl.clone_bound(1.1, 1000, 1e-4), r"probability must lie in \(0, 1\]"),
        (lambda: isrl.shuffled_mb_sgd_sigma(**SHUFFLED | {"silos_per_round": 20}), "for the shuffler to help"),
        (lambda: isrl.shuffled_mb_sgd_sigma(**SHUFFLED | {"silos_per_round": 2000}), "at most num_silos"),
        (lambda: isrl.shuffled_mb_sgd_sigma(**SHUFFLED | {"num_records": 10**6, "rounds": 1, "delta": 0.5}), "to help"),
        (lambda: isrl.binomial_mechanism_delta(1.0, trials=10, probability=1.0, shift=1), "probability must lie in"),
        (lambda: isrl.binomial_mechanism_delta(1.0, trials=10, probability=0.5, shift=0), "shift must be an integer"),
        (lambda: isrl.calibrate_binomial_b(**BITS | {"probability": 0.5}), r"probability must lie in \(0, 1/2\)"),
        (lambda: isrl.calibrate_binomial_b(**BITS | {"epsilon": 16.0}), "epsilon must lie in"),
        (lambda: isrl.calibrate_binomial_b(**BITS | {"delta": 0.5}), "delta must lie in"),
        (lambda: isrl.calibrate_binomial_b(**BITS | {"levels": 0}), "levels must be an integer"),
        (lambda: isrl.calibrate_binomial_b(**BITS | {"levels": 10**8}), "levels must be at most what"),
        (lambda: vector_sum([[2.0]]), "the norm of vectors must be at most lipschitz"),
        (lambda: vector_sum([1.0]), "vectors must have the shape"),
        (lambda: isrl.noisy_mb_sgd_sigma(**MB | {"batch_size": 2000}), r"batch_size must be at most num_records"),
        (lambda: isrl.noisy_mb_sgd_sigma(**MB | {"epsilon": 0.0}), "epsilon must be positive"),
        (lambda: isrl.noisy_mb_sgd_sigma(**MB | {"epsilon": math.inf}), "epsilon must be positive and finite"),
        (lambda: isrl.noisy_mb_sgd_sigma(**MB | {"delta": 0.0}), "delta must lie in"),
        (lambda: isrl.noisy_mb_sgd_sigma(**MB | {"delta": 1.0}), "delta must lie in"),
        (lambda: isrl.one_pass_sigma(lipschitz=1.0, batch_size=0, epsilon=1.0, delta=1e-5), "batch_size must be an"),
        (lambda: silos(num_records=[10, 20], batch_sizes=[10, 20, 30]), "as long as the others"),
        (lambda: isrl.harmonic_participation({2: 0.5, 3: 0.4}, 5), "must sum to 1"),
        (lambda: isrl.harmonic_participation({2: 0.5, 6: 0.5}, 5), "at most num_silos"),
        (lambda: isrl.harmonic_participation({0: 1.0}, 5), "participation must be an integer"),
        (lambda: isrl.reweighted_constants([0.5, 0.4], lipschitz=1.0, smoothness=1.0), "weights must sum to 1"),
        (lambda: isrl.reweighted_constants([1.5, -0.5], lipschitz=1.0, smoothness=1.0), "weights"),
        (
            lambda: isrl.reweighted_constants([1.0, 0.0], lipschitz=1.0, strong_convexity=0.1, smoothness=1.0),
            "weights must be positive",
        ),
        (lambda: isrl.balanced_batch_sizes([1000, 501], 7), "the same share of its records"),
        (lambda: isrl.balanced_batch_sizes([1000, 500], 501), "at most the smallest silo"),
        (lambda: isrl.heterogeneity([1.0, 2.0]), "gradients must have the shape"),
        (lambda: isrl.sampled_mean_variance([[1.0], [-1.0]], 3), "sample_size must be an integer in"),
        (
            lambda: isrl.uniform_stability(**setting(STABILITY, (1, 100, 2.0, 1000, 10)), smoothness=1),
            "learning_rate must be at most 1/smoothness",
        ),
        (
            lambda: isrl.uniform_stability(**setting(STABILITY, (1, 1, 0.1, 1, 1)), smoothness=1, strong_convexity=0.5),
            "must exceed 1",
        ),
        (lambda: isrl.population_bound(-0.1, 0.1), "stability must be non-negative"),
        (lambda: isrl.population_bound(0.1, -0.1), "empirical must be non-negative"),
        (
            lambda: isrl.mb_sgd_empirical_bound(**setting(EMPIRICAL, (2, 2, 50, 10, 1, 25, 1)), strong_convexity=0.5),
            "learning_rate must be below",
        ),
        (
            lambda: isrl.noisy_gradient_variance(**setting(GRADIENT, (1, 10, 30, 2, 20, 10, 0.5))),
            "silos_per_round must be at most num_silos",
        ),
        (lambda: isrl.step_size_stich(**setting(STICH, (0.1, 4, 500, 1, 11))), "max_step must be at most"),
        (lambda: isrl.step_size_stich(**setting(STICH, (0.0, 4, 500, 1, 1))), "strong_convexity must be positive"),
        (
            lambda: isrl.averaging_weights(strong_convexity=1.0, learning_rate=1.0, rounds=3),
            "learning_rate must be below",
        ),
        (lambda: isrl.averaging_weights(strong_convexity=1.0, learning_rate=0.1, rounds=10**9), "memory"),
        (
            lambda: isrl.multistage_schedule(
                smoothness=1.0, strong_convexity=0.1, gradient_std=1.0, initial_gap=1.0, rounds=100
            ),
            "rounds must be at least 1707",
        ),
        (
            lambda: isrl.one_pass_batch_size_sc(**setting(BATCH_SC, (10, 1, 0.1, 1e-6, 1, 25, 1, 10, 1e-5, 1))),
            "initial_gap must be larger",
        ),
        (
            lambda: isrl.erm_rounds(**setting(ERM, (1, None, 1, 10, 0.5, 2000, 50, 1e-6, 2000, 10))),
            "diameter must be given where smoothness is given",
        ),
        (
            lambda: isrl.erm_rounds(**setting(ERM_SC, (1, 1, None, 10, 0.5, 2000, 1, 50, 1e-6, 2000, 10))),
            "initial_gap must be given",
        ),
        (
            lambda: isrl.risk_lower_bound(**setting(LOWER, (1, 2, 25, 1000, 1, 10, 6.0))),
            r"epsilon must be at most sqrt\(num_silos\)",
        ),
        (
            lambda: isrl.risk_lower_bound(**setting(LOWER, (1, 2, 25, 1000, 1, 10, 1.0)), compositionality=0.0),
            "compositionality must be positive",
        ),
        (lambda: isrl.moreau_envelope(abs, lambda w, _: w, [0.1], 0.0), "smoothness must be positive"),
        (lambda: isrl.moreau_envelope(abs, lambda w, _: w[:0], [0.1], 1.0), "prox must return"),
    ],
)
def test_rejected(call: object, reason: str) -> None:
    """What is outside its domain is refused with a reason."""
    with pytest.raises(ValueError, match=reason):
        call()


SHUFFLED = {
    "lipschitz": 1.0,
    "num_records": 10,
    "num_silos": 1000,
    "silos_per_round": 1000,
    "rounds": 10,
    "epsilon": 1.0,
    "delta": 1e-6,
}
BITS = {"epsilon": 1.0, "delta": 1e-4, "num_messages": 50, "levels": 5}
MB = {"lipschitz": 1.0, "num_records": 1000, "batch_size": 10, "rounds": 5, "epsilon": 1.0, "delta": 1e-5}


def vector_sum(vectors: list[object]) -> object:
    """Sum vectors under the shuffler."""
    rng = np.random.default_rng(1)
    return isrl.shuffle_vector_sum(vectors, lipschitz=1.0, levels=2, noise_bits=1, probability=0.5, rng=rng)


def silos(**arguments: object) -> object:
    """Calibrate several silos."""
    return isrl.silo_noise_sigmas(lipschitz=1.0, rounds=1, epsilons=1.0, deltas=1e-5, **arguments)


@pytest.mark.parametrize(
    "call",
    [
        lambda: isrl.group_privacy(True, 1e-8, 2),
        lambda: isrl.group_privacy("0.1", 1e-8, 2),
        lambda: isrl.noisy_mb_sgd_sigma(**MB | {"rounds": 5.0}),
        lambda: isrl.noisy_mb_sgd_sigma(**MB | {"num_records": True}),
        lambda: isrl.shuffled_mb_sgd_sigma(**SHUFFLED | {"rounds": 2.0}),
        lambda: isrl.shuffle_vector_sum([[1.0]], lipschitz=1.0, levels=2, noise_bits=1, probability=0.5, rng=np.random),
    ],
)
def test_wrong_types(call: object) -> None:
    """Wrong types are told from wrong values."""
    with pytest.raises(TypeError):
        call()
