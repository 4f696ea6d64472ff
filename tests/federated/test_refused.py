"""What the federated bounds refuse, and grids of many cells."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from federations import AGGREGATOR, FEDAVG, FEDPROX
from hockeystick import federated

FUNCTIONS = {
    "trusted_aggregator": {"eps": 1.0} | AGGREGATOR,
    "trusted_aggregator_random_stop": {"eps": 1.0, "suffix": 0.5} | AGGREGATOR,
    "fedavg_gdp": FEDAVG,
    "fedavg_delta": {"eps": 1.0} | FEDAVG,
    "fedavg_epsilon": {"delta": 1e-5} | FEDAVG,
    "fedprox_gdp": FEDPROX,
    "fedprox_delta": {"eps": 1.0} | FEDPROX,
    "fedprox_epsilon": {"delta": 1e-5} | FEDPROX,
}


POSITIVE = [0.0, -1.0, np.nan, np.inf]


COUNT = [0, -1, 1.5, np.nan, np.inf]


BAD = {
    "eps": [-0.1, np.nan],
    "delta": [-0.1, 1.1, np.nan],
    "suffix": [0.0, -0.5, 1.1, np.nan],
    "num_users": [*COUNT, 9],  # n < m
    "batch_size": [*COUNT, 101],
    "learning_rate": POSITIVE,
    "noise_std": POSITIVE,
    "lipschitz": POSITIVE,
    "radius": POSITIVE,
    "rounds": COUNT,
    "local_steps": COUNT,
    "num_clients": COUNT,
    "clip_norm": POSITIVE,
    "smoothness": [-1.0, np.nan, np.inf],
    "prox": [*POSITIVE, 1.5, 1.0],  # prox <= smoothness
}


CASES = [
    (f, name, bad)
    for f, arguments in FUNCTIONS.items()
    for name in arguments
    if name != "loss"
    for bad in BAD[name] + ([0.51] if name == "learning_rate" and "prox" in arguments else [])  # above 1/prox
]


@pytest.mark.parametrize(("function", "name", "bad"), CASES)
def test_out_of_domain(function: str, name: str, bad: float) -> None:
    """A bad number raises ValueError with its name and value; on_error="nan" spoils its own cell only."""
    call, good = getattr(federated, function), FUNCTIONS[function]
    with pytest.raises(ValueError, match=name) as caught:
        call(**(good | {name: bad}))
    assert str(bad) in str(caught.value)
    cells = np.array([good[name], bad, good[name]], dtype=float)
    if name in ("learning_rate", "noise_std", "lipschitz", "radius") and "batch_size" in good:
        cells = cells[:, None]  # the last axis is the round
    with pytest.raises(ValueError, match=name) as caught:
        call(**(good | {name: cells}))
    assert re.search(rf"{name}\[1|in cell \(1", str(caught.value))
    result = call(**(good | {name: cells}), on_error="nan")
    assert np.isnan(result).tolist() == [False, True, False]
    assert result[0] == result[2] == call(**good)


@pytest.mark.parametrize("function", ["trusted_aggregator", "trusted_aggregator_random_stop"])
@pytest.mark.parametrize("name", ["learning_rate", "noise_std", "lipschitz", "radius"])
@pytest.mark.parametrize("position", [0, 5, 9])
def test_bad_round(function: str, name: str, position: int) -> None:
    """One bad round raises with its index, or spoils its cell, wherever in the schedule it stands."""
    call, good = getattr(federated, function), FUNCTIONS[function] | {"noise_std": 500.0}  # contracts at once
    rows = np.tile(np.full(10, float(good[name])), (3, 1))
    rows[1, position] = -1.0
    with pytest.raises(ValueError, match=rf"{name}\[1, {position}\].*-1"):
        call(**(good | {name: rows}))
    assert np.isnan(call(**(good | {name: rows}), on_error="nan")).tolist() == [False, True, False]


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f.startswith("fed")])
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_bad_diameter(function: str, bad: float) -> None:
    """A diameter must be positive; infinity and None are legal."""
    call, good = getattr(federated, function), FUNCTIONS[function]
    with pytest.raises(ValueError, match="diameter") as caught:
        call(**good, diameter=bad)
    assert str(bad) in str(caught.value)
    assert np.isnan(call(**good, diameter=[1.0, bad, np.inf], on_error="nan")).tolist() == [False, True, False]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("bad", ["1", 1j, None, True], ids=["text", "complex", "None", "bool"])
def test_wrong_type(function: str, bad: object) -> None:
    """What is no real number raises TypeError with the argument's name; so does a missing argument."""
    call, good = getattr(federated, function), FUNCTIONS[function]
    for name in good:
        if name != "loss":
            with pytest.raises(TypeError, match=name):
                call(**(good | {name: bad}))
        if name != "suffix":
            with pytest.raises(TypeError, match=name):
                call(**{k: v for k, v in good.items() if k != name})


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f.startswith("trusted")])
def test_loss_is_an_assumption(function: str) -> None:
    """The loss has no default and no other spelling."""
    call, good = getattr(federated, function), FUNCTIONS[function]
    for bad in ("Convex", "non-convex", ""):
        with pytest.raises(ValueError, match=f"loss.*'{bad}'"):
            call(**(good | {"loss": bad}))
    for bad in (None, 1, ["convex"]):
        with pytest.raises(TypeError, match="loss"):
            call(**(good | {"loss": bad}))
    with pytest.raises(TypeError, match="loss"):
        call(**{k: v for k, v in good.items() if k != "loss"})


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f.startswith("fedavg")])
def test_schedule_is_a_known_name(function: str) -> None:
    """Schedules are spelled as documented."""
    call, good = getattr(federated, function), FUNCTIONS[function]
    for bad in ("linear", "Constant", ""):
        with pytest.raises(ValueError, match=f"schedule.*'{bad}'"):
            call(**good, schedule=bad)
    with pytest.raises(TypeError, match="schedule"):
        call(**good, schedule=None)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_grids_and_threads(function: str) -> None:
    """All arguments broadcast; any number of threads gives the bits of one; scalars give floats."""
    call, good = getattr(federated, function), FUNCTIONS[function]
    assert isinstance(call(**good), float)
    constants = (..., None) if "batch_size" in good else ...
    grid = good | {"noise_std": np.linspace(0.1, 3, 50)[:, None, None][constants]}
    if "batch_size" in good:
        grid |= {"num_users": np.arange(100, 120)[:, None], "batch_size": np.array([5, 10, 20])}
    else:
        grid |= {"rounds": np.arange(1, 21)[:, None], "clip_norm": np.array([0.1, 1.0, 10.0])}
        grid |= {"diameter": 0.2} | ({"schedule": "continuous"} if "prox" not in good else {})
    alone = call(**grid, num_threads=1)
    assert alone.shape == (50, 20, 3)
    for threads in (2, 7):
        np.testing.assert_array_equal(call(**grid, num_threads=threads), alone)
    for i, j, k in itertools.product((0, 49), (3, 19), (0, 2)):
        cell = {
            n: v
            if isinstance(v, str)
            else float(np.broadcast_to(np.squeeze(v, -1) if np.ndim(v) == 4 else v, alone.shape)[i, j, k])
            for n, v in grid.items()
        }
        assert call(**cell) == alone[i, j, k]


def test_a_billion_users_or_rounds() -> None:
    """Constants cost the same for any number of rounds."""
    for loss in ("convex", "nonconvex"):
        arguments = AGGREGATOR | {"num_users": 10**9, "batch_size": 1, "loss": loss}
        assert 0 <= federated.trusted_aggregator(0.5, **arguments) <= 1
        assert 0 <= federated.trusted_aggregator_random_stop(0.5, **arguments) <= 1
    for diameter in (None, 1.0):
        assert federated.fedavg_gdp(**(FEDAVG | {"rounds": 10**9}), diameter=diameter) > 0
        assert federated.fedprox_gdp(**(FEDPROX | {"rounds": 10**9, "local_steps": 10**9}), diameter=diameter) > 0
