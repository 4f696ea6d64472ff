"""The printed formulas, reproduced as printed, with their warnings."""

import math

import mpmath as mp
import numpy as np
import pytest

import federations
import theorems
from hockeystick import published
from hockeystick.published import UnsoundBoundWarning
from hockeystick.published.warning import quietly

FEDAVG, FEDPROX = (federation | {"rounds": 30} for federation in (federations.FEDAVG, federations.FEDPROX))
SCHEDULES = {"constant": {}, "cyclic": {"c": 1.2}, "stagewise": {}, "continuous": {"z": 1.5}}
CHANGES = [
    {}, {"rounds": 1}, {"rounds": 2}, {"local_steps": 1}, {"smoothness": 1e-6}, {"smoothness": 1.9}, {"noise_std": 30.0},
    {"rounds": 10**5},
]  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_fedavg(schedule: str) -> None:
    """Theorem 12 (a) to (d), to 1e-12, also for many rounds, where the printed powers overflow."""
    for change in CHANGES:
        arguments = FEDAVG | {"schedule": schedule} | SCHEDULES[schedule] | change
        with mp.workdps(50):
            reference = theorems.printed_fedavg(**arguments)
        assert math.isclose(quietly(published.fedavg_gdp, **arguments), reference, rel_tol=1e-12), change


def test_fedprox() -> None:
    """Theorem 15, to 1e-12."""
    for change in [*CHANGES, {"prox": 50.0, "learning_rate": 0.01}, {"learning_rate": 1.9}]:
        arguments = FEDPROX | change
        with mp.workdps(50):
            reference = theorems.printed_fedprox(**arguments)
        assert math.isclose(quietly(published.fedprox_gdp, **arguments), reference, rel_tol=1e-12), change


def test_no_smoothness_is_the_limit() -> None:
    """As L tends to 0 the printed (a) and Theorem 15 tend to what plain composition gives; L = 0 is that limit."""
    unit = 2 * 2.0 * 0.1 * 5 / (math.sqrt(20) * 0.5)
    value = quietly(published.fedavg_gdp, **(FEDAVG | {"smoothness": 0.0}))
    np.testing.assert_allclose(value, unit * math.sqrt(30), rtol=1e-12)
    unit = 2 * 2.0 / (math.sqrt(20) * 2.0 * 0.5)
    value = quietly(published.fedprox_gdp, **(FEDPROX | {"smoothness": 0.0}))
    np.testing.assert_allclose(value, unit * math.sqrt(30), rtol=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warnings(schedule: str) -> None:
    """Every unsound formula warns, at the caller's line; the stage-wise one is sound and does not."""
    arguments = FEDAVG | {"schedule": schedule} | SCHEDULES[schedule]
    if schedule == "stagewise":
        published.fedavg_gdp(**arguments)  # a warning would be an error
        return
    with pytest.warns(UnsoundBoundWarning, match="Theorem 12") as caught:
        published.fedavg_gdp(**arguments)
    assert caught[0].filename == __file__
    with pytest.warns(UnsoundBoundWarning, match="Theorem 15") as caught:
        published.fedprox_gdp(**FEDPROX)
    assert caught[0].filename == __file__
