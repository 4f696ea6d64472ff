"""Parameters at the ends of the double range, where a product overflows or underflows but the answer does not."""

from __future__ import annotations

import signal
import sys
import time

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
import processes
from high_precision import theta as exact_theta
from hockeystick import federated, last_iterate

FEDAVG = {
    "rounds": 100,
    "local_steps": 5,
    "num_clients": 50,
    "clip_norm": 1.0,
    "noise_std": 1.0,
    "smoothness": 1.0,
    "learning_rate": 0.01,
}
FEDPROX = FEDAVG | {"smoothness": 1.0, "learning_rate": 0.1, "prox": 2.0}


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e160, 1e200])
@pytest.mark.parametrize("schedule", ["constant", "cyclic", "stagewise", "continuous"])
def test_fedavg_scales(schedule: str, scale: float) -> None:
    """Only learning_rate V/sigma counts where smoothness is 0: neither factor may overflow or underflow alone."""
    plain = FEDAVG | {"smoothness": 0.0, "schedule": schedule}
    expected = federated.fedavg_gdp(**plain)
    scaled = plain | {"learning_rate": 0.01 * scale, "clip_norm": 1 / scale}
    np.testing.assert_allclose(federated.fedavg_gdp(**scaled), expected, rtol=1e-13)
    scaled = plain | {"noise_std": scale, "clip_norm": scale}
    np.testing.assert_allclose(federated.fedavg_gdp(**scaled), expected, rtol=1e-13)


def test_fedprox_scales() -> None:
    """Multiplying prox and smoothness and dividing the learning rate leaves V/(prox sigma)."""
    expected = federated.fedprox_gdp(**FEDPROX)
    scaled = FEDPROX | {"prox": 2e200, "smoothness": 1e200, "learning_rate": 1e-201, "clip_norm": 1e200}
    np.testing.assert_allclose(federated.fedprox_gdp(**scaled), expected, rtol=1e-13)


def test_projected_sgd_scales() -> None:
    """The diameter over the step's noise is finite where learning_rate times noise is not."""
    arguments = {"index": 1, "num_records": 2, "learning_rate": 1e154, "lipschitz": 1e155, "smoothness": 0.0}
    reach = mp.mpf(1.7e308) / (mp.mpf(1e154) * mp.mpf(1e155))
    expected = exact_theta(mp.mpf(0.01), mp.mpf(2)) * exact_theta(mp.mpf(0.01), reach)
    computed = last_iterate.pnsgd_gaussian(0.01, **arguments, noise_std=1e155, diameter=1.7e308)
    np.testing.assert_allclose(computed, float(expected), rtol=1e-12)
    expected = (1 - mp.exp((mp.mpf(0.01) - 2) / 2)) * (1 - mp.exp((mp.mpf(0.01) - reach) / 2))
    computed = last_iterate.pnsgd_laplace(0.01, **arguments, noise_scale=1e155, diameter=1.7e308)
    np.testing.assert_allclose(computed, float(expected), rtol=1e-12)


def test_rdp_with_a_tiny_kappa() -> None:
    """At eps of the order of a kappa that underflows, exp(-(eps - kappa)^2/(4 kappa)) is neither 0 nor 1."""
    arguments = {"index": 1, "num_records": 2, "learning_rate": 0.1, "noise_std": 1e200, "lipschitz": 1.0}
    kappa = 2 * mp.mpf(1e200) ** -2
    expected = mp.exp(-((mp.mpf(1e-200) - kappa) ** 2) / (4 * kappa))
    np.testing.assert_allclose(last_iterate.pnsgd_rdp(1e-200, **arguments, smoothness=1.0), float(expected), rtol=1e-12)


@pytest.mark.parametrize("convexity", [3.0, 20.921416088789627])
def test_cancelled_step_is_not_taken_for_perfect_contraction(convexity: float) -> None:
    """At learning_rate = 2/(beta + rho), beta = rho, M is 0 only up to rounding, which never makes delta 0."""
    noise = {"noise_std": 1e-8, "lipschitz": 1e-8, "diameter": 1.0}
    step = {"learning_rate": 1 / convexity, "smoothness": convexity, "strong_convexity": convexity}
    assert last_iterate.pnsgd_gaussian(0.5, index=1, num_records=2, **step, **noise) > 0


def test_a_positive_delta_is_never_zero() -> None:
    """Where delta underflows, the smallest double stands for it: 0 would claim pure differential privacy."""
    assert hs.gdp_delta(0.01, 1.0) == 5e-324
    assert federated.fedavg_delta(50.0, **(FEDAVG | {"noise_std": 100.0})) == 5e-324
    sgd = {"num_records": 4000, "learning_rate": 0.5, "lipschitz": 1.0, "smoothness": 0.5, "diameter": 1.0}
    assert last_iterate.pnsgd_gaussian(1.0, index=1, noise_std=2.0, **sgd) == 5e-324
    assert last_iterate.pnsgd_laplace(9.0, index=1, noise_scale=2.0, **sgd) == 0  # exactly


def test_hidden_values_are_refused() -> None:
    """A masked array would show its hidden values; a huge integer gets the argument's domain."""
    with pytest.raises(TypeError, match="mu must be a real number"):
        hs.gdp_delta(np.ma.array([1.0, 3.0], mask=[False, True]), 1.0)
    with pytest.raises(ValueError, match="rounds must be an integer"):
        federated.fedavg_gdp(**(FEDAVG | {"rounds": 10**400}))


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize(
    "call",
    [
        (
            "federated.fedavg_gdp(rounds=[10**6] * 200, local_steps=100, num_clients=1, clip_norm=1.0, noise_std=1.0, "
            "smoothness=1e3, learning_rate=1.0, schedule='continuous', diameter=1e-3, num_threads=1)"
        ),
        "hs.shifted_interpolation([1.001] * 10**7, [1.0] * 10**7, diameter=1e6)",
        "hs.gdp_epsilon([[1e-300]] * 2000, [1e-5] * 2000, num_threads=1)",  # by the scalar code: a microsecond or more each
        "hs.dpsgd_epsilon([0.5 + 1e-6 * k for k in range(10**6)], 0.001, 100, 1e-5, num_threads=1)",
    ],
)
def test_interrupt_ends_a_long_call(call: str) -> None:
    """Ctrl-C ends a long compiled call as KeyboardInterrupt, long before it is done."""
    code = (
        f"import hockeystick as hs\nfrom hockeystick import federated\nprint('go', flush=True)\n{call}\nprint('done')"
    )
    with processes.child([sys.executable, "-c", code]) as process:
        assert process.stdout.readline() == "go\n"
        time.sleep(1.5)  # into the compiled call
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=processes.seconds(60))
    assert "done" not in out
    assert "KeyboardInterrupt" in errors
