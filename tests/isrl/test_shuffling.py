"""Inter-silo privacy: shuffled messages, budgets that go back and forth, and binomial noise."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick import isrl, published
from silo_arguments import close


def test_epsilon_of_shuffled_sgd() -> None:
    """The noise for a target is certified at that target, nearly; few silos leave what each promises alone."""
    many = {"lipschitz": 1.0, "num_records": 1, "num_silos": 10**6, "silos_per_round": 10**6, "rounds": 100}
    noise = isrl.shuffled_mb_sgd_sigma(**many, epsilon=0.5, delta=1e-7).noise_std
    alone = isrl.noisy_mb_sgd_epsilon(
        noise_std=noise, lipschitz=1.0, num_records=1, batch_size=1, rounds=100, delta=1e-7
    )
    found = isrl.shuffled_mb_sgd_epsilon(**many, noise_std=noise, delta=1e-7)
    assert found <= min(0.5 * (1 + 2e-4), alone)
    few = many | {"num_silos": 50, "silos_per_round": 50}
    assert isrl.shuffled_mb_sgd_epsilon(**few, noise_std=noise, delta=1e-7) == alone


def test_nothing_small_or_large_is_lost() -> None:
    """Squares that underflow, exponentials that overflow, and noise that rounds to nothing are no way to lose privacy."""
    close(isrl.advanced_composition([1e-300] * 4, 0.0, 0.5).epsilon, 2e-300 * math.sqrt(2 * math.log(2)))
    assert isrl.one_pass_sigma(lipschitz=1e-320, batch_size=10**9, epsilon=100.0, delta=0.5) > 0
    lenient = {"lipschitz": 1.0, "num_records": 10**4, "num_silos": 10**6, "silos_per_round": 10**6, "delta": 9e-11}
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


def test_binomial_calibration_is_minimal() -> None:
    """One noise bit less does not meet the target."""
    target = {"epsilon": 1.0, "delta": 1e-4}
    b = isrl.calibrate_binomial_b(**target, num_messages=50, levels=5)
    spent = [isrl.binomial_mechanism_delta(1.0, trials=50 * x, probability=0.25, shift=5) for x in (b, b - 1)]
    assert spent[0] <= 1e-4 < spent[1]
