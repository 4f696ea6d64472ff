"""Inter-silo privacy: the noise that is found is certified, the least, and below the printed one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick import isrl, published
from silo_arguments import close

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
    shape = {"lipschitz": 1.0, "num_records": 100_000, "rounds": 50, "epsilon": 1.0, "delta": 1e-6}
    full, nearly = (isrl.noisy_mb_sgd_sigma(**shape, batch_size=batch) for batch in (100_000, 99_999))
    assert nearly == pytest.approx(full, rel=1e-3)


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
def test_little_noise_is_found_too() -> None:
    """A large epsilon needs far less noise than a full batch would, and the search goes there."""
    shape = {"lipschitz": 1.0, "num_records": 10_000, "batch_size": 1, "rounds": 2}
    sigma = isrl.noisy_mb_sgd_sigma(**shape, epsilon=8.0, delta=0.01)
    assert isrl.noisy_mb_sgd_accountant(**shape, noise_std=sigma).epsilon(0.01) <= 8.0


@given(st.floats(1e-3, 50.0), st.floats(1e-12, 0.5), st.integers(1, 10**6))
def test_one_pass_noise_is_certified(epsilon: float, delta: float, batch: int) -> None:
    """The accountant of one Gaussian release agrees that the budget is kept, and nearly spent."""
    sigma = isrl.one_pass_sigma(lipschitz=3.0, batch_size=batch, epsilon=epsilon, delta=delta)
    release = hs.Accountant("replace").compose(hs.Gaussian(float(sigma) * batch / 3.0))
    assert epsilon * (1 - 1e-6) <= release.epsilon(delta) <= epsilon


def test_unequal_silos() -> None:
    """Each silo has its own noise, and equal silos the same."""
    sizes = {"num_records": [200, 100, 200], "batch_sizes": [200, 100, 200], "rounds": 9}
    budgets = {"epsilons": [1.0, 0.5, 1.0], "deltas": 1e-5}
    sigmas = isrl.silo_noise_sigmas(lipschitz=[1.0, 2.0, 1.0], **sizes, **budgets)
    mechanism = [
        2 * lipschitz / n * 3 / float(hs.theta_inverse(e, 1e-5)) for lipschitz, n, e in ((1, 200, 1.0), (2, 100, 0.5))
    ]
    np.testing.assert_allclose(sigmas, [mechanism[0], mechanism[1], mechanism[0]], rtol=1e-7)
