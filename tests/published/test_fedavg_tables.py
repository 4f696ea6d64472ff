"""Tables 3 and 4 of Sun, Shen and Tao 2024: the printed values, what refutes them, and where they hold."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick import federated, published
from hockeystick.published import UnsoundBoundWarning
from hockeystick.published.warning import quietly

STEPS = {"local_steps": 5, "learning_rate": 0.1}
DATA = STEPS | {"num_clients": 20, "clip_norm": 2.0}
OPEN = {"constant": {}, "cyclic": {"constant": 1.2}, "stagewise": {}, "continuous": {"constant": 1.5}}


@pytest.mark.parametrize("schedule", OPEN)
def test_table_3(schedule: str) -> None:
    """The entries with an open constant warn, the others are exact; test_paper_formulas has what is printed."""
    arguments = {"schedule": schedule} | OPEN[schedule]
    model = quietly(published.fedavg_model_sensitivity, [0, 2], smoothness=1.5, **STEPS, **arguments)
    data = quietly(published.fedavg_data_sensitivity, [0, 2], **DATA, **arguments)
    if OPEN[schedule]:
        with pytest.warns(UnsoundBoundWarning, match="Table 3"):
            published.fedavg_model_sensitivity(0, smoothness=1.5, **STEPS, **arguments)
        with pytest.warns(UnsoundBoundWarning, match="lacks the learning rate"):
            published.fedavg_data_sensitivity(0, **DATA, **arguments)
    else:  # exact
        steps = federated.step_sizes(rounds=3, schedule=schedule, **STEPS)[::2]
        np.testing.assert_allclose(model, federated.model_sensitivity(steps, smoothness=1.5), rtol=1e-13)
        found = federated.data_sensitivity(steps, num_clients=20, clip_norm=2.0)
        np.testing.assert_allclose(data, found, rtol=1e-13)


def test_table_3_of_fedprox() -> None:
    """Its entries are the limits for many local steps, never below what fewer give, and too small for steps above 1/prox."""
    rho = published.fedprox_model_sensitivity(smoothness=[0.0, 1.5], prox=2.0)
    np.testing.assert_allclose(rho, [1.0, 4.0], rtol=1e-15)
    gamma = published.fedprox_data_sensitivity(num_clients=20, clip_norm=2.0, prox=2.0)
    assert gamma == pytest.approx(0.1, rel=1e-15)
    for steps in ([0.5], [0.1] * 5, [0.3, 0.2, 0.1], [0.5, 0.25] * 200):
        assert federated.model_sensitivity(steps, smoothness=1.5, prox=2.0) <= 4.0 * (1 + 1e-12)
        assert federated.data_sensitivity(steps, num_clients=20, clip_norm=2.0, prox=2.0) <= gamma * (1 + 1e-12)
    step, pull, smoothness, norm = 0.9, 2.0, 1.0, 1.0  # below 1/(pull - smoothness)
    apart = step * 2 * norm  # of one client's models after one step on linear losses of norms V and -V
    assert apart > published.fedprox_data_sensitivity(num_clients=1, clip_norm=norm, prox=pull)
    assert step < 1 / (pull - smoothness)


def printed_bounds(round_index: int, **setting: float | str) -> published.StepSizeBounds:
    """Return the printed bounds of a round's accumulated steps."""
    usual = {"smoothness": 2.0, "learning_rate": 0.25, "schedule": "continuous"}
    return quietly(published.accumulated_step_size_bounds, round_index, **usual | setting)


@pytest.mark.parametrize("c", [1.0, 1.2, 1.5429])
@pytest.mark.parametrize("b", [0.6931, 0.85, 0.999])
def test_bounds_of_accumulated_steps_fail(c: float, b: float) -> None:
    """One local step of half 1/L: L eta = .5 lies below the lower and above the upper bound, for all printed constants."""
    bounds = printed_bounds(0, local_steps=1, schedule="cyclic", constant=c, b=b)
    true = float(federated.accumulated_step_size([0.25], smoothness=2.0))
    assert true == pytest.approx(0.25)
    assert bounds.lower > true * 1.29
    assert bounds.upper < true * 0.92
    np.testing.assert_allclose(bounds, (1 / (c * b * 2), (2 ** (c * 0.5) - 1) / (c * 2)), rtol=1e-14)


def test_bounds_of_accumulated_steps_in_later_rounds() -> None:
    """The printed expressions of continuous steps, by hand; the upper one fails in round 0 for the z of its own derivation."""
    bounds = printed_bounds(2, local_steps=3, constant=1.5, b=0.8)
    np.testing.assert_allclose(bounds, (((9 / 7) ** 0.6 - 1) / 2.4, ((10 / 7) ** 0.75 - 1) / 3), rtol=1e-14)
    z = (1 + 1 / 2) / math.log(3)  # sum of 1/j over the logarithm, K = 2, t = 0
    bounds = printed_bounds(0, local_steps=2, smoothness=1.0, learning_rate=0.1, constant=z, b=0.7)
    assert bounds.upper < federated.accumulated_step_size([0.1, 0.05], smoothness=1.0)


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(0, 60), st.floats(1e-3, 30.0))
def test_bounds_that_hold(local_steps: int, done: int, growth: float) -> None:
    """Those of the docstring, between a concave logarithm's chord and tangent; and the printed upper bound with c = 1 is a lower one."""
    steps = growth / np.arange(done + 1, done + local_steps + 1)
    true = float(federated.accumulated_step_size(steps, smoothness=1.0))
    total = float(np.sum(1 / np.arange(done + 1, done + local_steps + 1)))
    assert ((1 + growth) ** total - 1) * (1 - 1e-9) <= true <= math.expm1(growth * total) * (1 + 1e-9)
    if growth <= 1:
        power = ((done + local_steps + 1) / (done + 1)) ** growth - 1
        assert power * (1 - 1e-9) <= true


@given(st.floats(0.05, 20.0), st.floats(1e-9, 0.9), st.integers(1, 50))
def test_own_row_with_its_factor_suffices(epsilon: float, delta: float, rounds: int) -> None:
    """With 2 learning_rate K put back, the noise of the paper's row certifies (epsilon, delta) for stage-wise steps."""
    arguments = {"epsilon": epsilon, "delta": delta, "rounds": rounds, "num_clients": 4, "clip_norm": 1.5}
    noise = 2 * 0.1 * 3 * quietly(published.compared_noise_std, "sun2024", **arguments)
    mu = federated.fedavg_gdp(
        rounds=rounds, local_steps=3, num_clients=4, clip_norm=1.5, noise_std=noise, smoothness=10.0,
        learning_rate=0.1, schedule="stagewise",
    )  # fmt: skip
    assert hs.gdp_delta(mu, epsilon) <= delta


def test_table_4() -> None:
    """The printed orders warn that they are no bounds; test_paper_formulas has their values."""
    noise = {"epsilon": 0.5, "delta": 1e-3, "rounds": 100, "local_steps": 5, "num_clients": 9, "clip_norm": 2.0}
    with pytest.warns(UnsoundBoundWarning, match="orders without their constants"):
        published.compared_noise_std("shi2021", **noise)
    with pytest.warns(UnsoundBoundWarning, match="orders without their constants"):
        published.compared_rdp("zhang2022", 3.0, noise_std=4.0, rounds=10, local_steps=5, num_clients=9, clip_norm=2.0)
