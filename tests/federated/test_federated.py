"""Federated bounds: the trusted aggregator's Theorem 2 and Corollary 3, Noisy-FedAvg and Noisy-FedProx by naive sums."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
import theorems
from hockeystick import _core, federated
from theorems import log_close

AGGREGATOR = {
    "num_users": 100,
    "batch_size": 10,
    "learning_rate": 0.5,
    "noise_std": 1.5,
    "lipschitz": 1.0,
    "radius": 1.0,
    "loss": "convex",
}
FEDAVG = {
    "rounds": 12,
    "local_steps": 5,
    "num_clients": 20,
    "clip_norm": 2.0,
    "noise_std": 0.5,
    "smoothness": 1.5,
    "learning_rate": 0.1,
}
FEDPROX = FEDAVG | {"prox": 2.0}
SCHEDULES = ("constant", "cyclic", "stagewise", "continuous")


def gdp(function: str, **arguments: object) -> mp.mpf:
    """Return the Gaussian-DP parameter by naive sums and 40-digit pooling."""
    diameter = arguments.pop("diameter", None)
    noise_std = arguments.pop("noise_std")
    with mp.workdps(40):
        rho, gamma = getattr(theorems, f"{function}_rounds")(**arguments)
        return theorems.gdp_parameter(
            rho, gamma, num_clients=arguments["num_clients"], noise_std=noise_std, diameter=diameter
        )


@pytest.mark.parametrize("eps", [0.0, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("loss", ["convex", "nonconvex"])
def test_trusted_aggregator(eps: float, loss: str) -> None:
    """Theorem 2 summed term by term: constants, remainders, one batch for all, one user a batch."""
    changes = [
        {},
        {"batch_size": 30},  # T = 3, ten users never take part
        {"batch_size": 100},
        {"batch_size": 1, "num_users": 37},
        {"num_users": 1, "batch_size": 1},
        {"noise_std": 0.2},
        {"noise_std": 40.0},
        {"radius": 30.0},
        {"radius": 1e-3},
    ]
    for change in changes:
        arguments = AGGREGATOR | {"loss": loss} | change
        reference = theorems.trusted_aggregator(eps, **arguments)
        assert log_close(federated.trusted_aggregator(eps, **arguments), reference), change


@pytest.mark.parametrize("eps", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("suffix", [1e-6, 0.1, 0.11, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("loss", ["convex", "nonconvex"])
def test_trusted_aggregator_random_stop(eps: float, suffix: float, loss: str) -> None:
    """Corollary 3's double sum term by term, over all rounds or the last ceil(suffix T)."""
    for change in (
        {},
        {"batch_size": 30},
        {"batch_size": 100},
        {"noise_std": 0.2},
        {"noise_std": 40.0},
        {"radius": 30.0},
    ):
        arguments = AGGREGATOR | {"loss": loss, "suffix": suffix} | change
        reference = theorems.trusted_aggregator_random_stop(eps, **arguments)
        assert log_close(federated.trusted_aggregator_random_stop(eps, **arguments), reference), change


@pytest.mark.parametrize("eps", [0.0, 0.3, 4.0])
@pytest.mark.parametrize("loss", ["convex", "nonconvex"])
def test_trusted_aggregator_schedules(eps: float, loss: str) -> None:
    """One value a round in any of the four arguments; equal values give the constants' result."""
    rng = np.random.default_rng(0)
    for names in (
        ["learning_rate"],
        ["noise_std"],
        ["lipschitz", "radius"],
        ["learning_rate", "noise_std", "lipschitz", "radius"],
    ):
        arguments = AGGREGATOR | {"loss": loss} | {name: AGGREGATOR[name] * rng.uniform(0.3, 2, 10) for name in names}
        reference = theorems.trusted_aggregator(eps, **arguments)
        assert log_close(federated.trusted_aggregator(eps, **arguments), reference), names
        for suffix in (0.3, 1.0):
            reference = theorems.trusted_aggregator_random_stop(eps, **arguments, suffix=suffix)
            assert log_close(federated.trusted_aggregator_random_stop(eps, **arguments, suffix=suffix), reference), (
                names
            )
    equal = AGGREGATOR | {
        name: np.full(10, AGGREGATOR[name]) for name in ("learning_rate", "noise_std", "lipschitz", "radius")
    }
    for function in (federated.trusted_aggregator, federated.trusted_aggregator_random_stop):
        np.testing.assert_allclose(function(eps, **equal), function(eps, **AGGREGATOR), rtol=1e-13)


@pytest.mark.parametrize("lipschitz", [0.5, 2.0, 10.0])
def test_a_shrinking_ball_hides_no_more_than_a_chain_shows(lipschitz: float) -> None:
    """With radii 10 and 0.1, the sign of the last model of an exact two-round chain gains no more than delta."""
    z, weight = np.polynomial.hermite_e.hermegauss(200)
    weight = weight / weight.sum()
    clipped = np.clip(
        z[:, None] + lipschitz * np.array([1.0, 0.0]), -10, 10
    )  # the user in the first, in the second round
    rises = 1 - hs.q(clipped + lipschitz * np.array([0.0, 1.0]))  # the model after the second round is positive
    positive = (weight @ rises).mean()
    attack = positive - math.e * (1 - positive)  # the other data set flips the sign
    arguments = {"num_users": 2, "batch_size": 1, "learning_rate": 1.0, "noise_std": 1.0, "lipschitz": lipschitz}
    delta = federated.trusted_aggregator(1.0, **arguments, radius=[10.0, 0.1], loss="convex", smoothness=0.0)
    assert attack <= delta
    assert lipschitz == 0.5 or attack > 0.7
    # the radius of the last round alone does not matter
    assert delta == federated.trusted_aggregator(1.0, **arguments, radius=10.0, loss="convex") or lipschitz < 10


def test_suffix_of_the_last_round_is_no_stop() -> None:
    """A suffix of one round stops after the last: both functions agree."""
    stopped = federated.trusted_aggregator_random_stop(0.7, **AGGREGATOR, suffix=0.01)
    np.testing.assert_allclose(stopped, federated.trusted_aggregator(0.7, **AGGREGATOR), rtol=1e-14)


def test_schedule_shapes() -> None:
    """The last axis of the four arguments is the round; leading axes broadcast with the other arguments."""
    rates = np.linspace(0.1, 0.5, 6)
    grid = AGGREGATOR | {"learning_rate": rates[:, None]}  # (6, 1): constants
    table = federated.trusted_aggregator(np.array([[0.1], [1.0]]), **grid)
    assert table.shape == (2, 6)
    for j, rate in enumerate(rates):
        assert table[1, j] == federated.trusted_aggregator(1.0, **(AGGREGATOR | {"learning_rate": rate}))
    for wrong in (np.full(7, 0.5), np.full((2, 9), 0.5)):
        with pytest.raises(ValueError, match="learning_rate"):
            federated.trusted_aggregator(1.0, **(AGGREGATOR | {"learning_rate": wrong}))


def test_more_users_per_round_are_more_private() -> None:
    """Figure 2 of the paper: a larger batch lowers delta, over eps."""
    eps = np.linspace(0.05, 1.5, 20)
    curves = [federated.trusted_aggregator(eps, **(AGGREGATOR | {"batch_size": m})) for m in (10, 20, 30)]
    assert np.all(curves[0] > curves[1])
    assert np.all(curves[1] > curves[2])


def test_nonconvex_is_never_more_private() -> None:
    """Dropping convexity can only raise delta."""
    eps = np.linspace(0, 5, 20)
    for function in (federated.trusted_aggregator, federated.trusted_aggregator_random_stop):
        assert np.all(function(eps, **(AGGREGATOR | {"loss": "nonconvex"})) >= function(eps, **AGGREGATOR))


def test_step_size_is_checked_where_it_can_be() -> None:
    """A convex loss with known smoothness needs learning_rate <= 2/smoothness; a non-convex one needs nothing."""
    federated.trusted_aggregator(1.0, **AGGREGATOR, smoothness=4.0)
    for function in (federated.trusted_aggregator, federated.trusted_aggregator_random_stop):
        with pytest.raises(ValueError, match=r"learning_rate.*0\.5.*smoothness.*4\.1"):
            function(1.0, **AGGREGATOR, smoothness=4.1)
        with pytest.raises(ValueError, match="learning_rate"):
            function(1.0, **(AGGREGATOR | {"learning_rate": np.r_[np.full(9, 0.1), 0.6]}), smoothness=4.0)
        function(1.0, **(AGGREGATOR | {"loss": "nonconvex"}), smoothness=4.1)


def test_step_size_on_error_nan() -> None:
    """on_error="nan" withholds the bound in exactly the cells whose step is too large."""
    for function in (federated.trusted_aggregator, federated.trusted_aggregator_random_stop):
        grid = AGGREGATOR | {"learning_rate": np.array([[0.5], [0.6], [0.4]])}
        assert np.isnan(function(1.0, **grid, smoothness=4.0, on_error="nan")).tolist() == [False, True, False]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("diameter", [None, 0.05, 1.0])
def test_fedavg(schedule: str, diameter: float | None) -> None:
    """rho_t and gamma_t by naive products and sums, then the optimum at 40 digits."""
    changes = [
        {},
        {"rounds": 1},
        {"rounds": 2, "local_steps": 1},
        {"local_steps": 30},
        {"smoothness": 0.0},
        {"smoothness": 1e-3},
        {"smoothness": 60.0},
        {"num_clients": 1, "noise_std": 3.0},
        {"learning_rate": 1e-4},
        {"rounds": 40, "learning_rate": 1.0},
    ]
    for change in changes:
        arguments = FEDAVG | {"schedule": schedule} | change
        reference = gdp("fedavg", **arguments, diameter=diameter)
        computed = federated.fedavg_gdp(**arguments, diameter=diameter)
        assert math.isclose(computed, reference, rel_tol=1e-12), (change, computed, mp.nstr(reference, 20))


@pytest.mark.parametrize("diameter", [None, 0.05, 1.0])
def test_fedprox(diameter: float | None) -> None:
    """Rho = x_K and gamma by their recursions, then the optimum at 40 digits; also at learning_rate = 1/prox."""
    changes = [
        {},
        {"rounds": 1},
        {"local_steps": 1},
        {"local_steps": 200},
        {"smoothness": 0.0},
        {"smoothness": 1.999999},
        {"learning_rate": 0.5},
        {"learning_rate": 1e-4},
        {"prox": 10.0},
        {"rounds": 60},
    ]
    for change in changes:
        arguments = FEDPROX | change
        reference = gdp("fedprox", **arguments, diameter=diameter)
        computed = federated.fedprox_gdp(**arguments, diameter=diameter)
        assert math.isclose(computed, reference, rel_tol=1e-12), (change, computed, mp.nstr(reference, 20))


@pytest.mark.parametrize("function", ["fedavg", "fedprox"])
def test_delta_and_epsilon(function: str) -> None:
    """The deltas and epsilons are those of the Gaussian-DP parameter."""
    good = FEDAVG if function == "fedavg" else FEDPROX
    for extra in ({}, {"diameter": 0.3}) + (({"schedule": "continuous"},) if function == "fedavg" else ()):
        mu = getattr(federated, f"{function}_gdp")(**good, **extra)
        for eps in (0.0, 1.0, 30.0):
            assert getattr(federated, f"{function}_delta")(eps, **good, **extra) == hs.gdp_delta(mu, eps)
        for delta in (1e-100, 1e-5, 0.5):
            assert getattr(federated, f"{function}_epsilon")(delta, **good, **extra) == hs.gdp_epsilon(mu, delta)


def test_constant_schedule_is_plain_composition() -> None:
    """Without a diameter constant and cyclic steps cost sqrt(T) rounds' worth, whatever the smoothness."""
    for schedule, total in (("constant", 0.5), ("cyclic", 0.1 * sum(1 / k for k in range(1, 6)))):
        one = 2 * 2.0 * total / (math.sqrt(20) * 0.5)
        for smoothness in (0.0, 1e-8, 1.0, 1e6):
            arguments = FEDAVG | {"schedule": schedule, "smoothness": smoothness, "rounds": 10**9}
            np.testing.assert_allclose(federated.fedavg_gdp(**arguments), one * math.sqrt(1e9), rtol=1e-13)


def test_decaying_schedules_stay_bounded() -> None:
    """Stage-wise and continuous decay: at most plain composition with the exact sums, which converges."""
    for schedule in ("stagewise", "continuous"):
        for smoothness in (0.0, 0.1, 1.0, 30.0):
            for rounds in (1, 2, 10, 100, 1000):
                arguments = FEDAVG | {"schedule": schedule, "smoothness": smoothness, "rounds": rounds}
                mu = federated.fedavg_gdp(**arguments)
                t = np.arange(rounds)[:, None]
                k = np.arange(5)
                eta = 0.1 / (t + 1) + 0 * k if schedule == "stagewise" else 0.1 / (5 * t + k + 1)
                plain = 2 * 2.0 * np.sqrt((eta.sum(axis=1) ** 2).sum()) / (math.sqrt(20) * 0.5)
                assert mu <= plain * (1 + 1e-13)
                if smoothness == 30.0:
                    np.testing.assert_allclose(mu, plain, rtol=1e-12)
                if schedule == "stagewise":  # sum of 1/(t+1)^2
                    assert mu <= 2 * 2.0 * 0.1 * 5 / (math.sqrt(20) * 0.5) * math.pi / math.sqrt(6) * (1 + 1e-12)


def test_diameter_bounds_every_number_of_rounds() -> None:
    """With a projection the parameter stops growing; an infinite diameter is none."""
    grid = FEDAVG | {"smoothness": 0.01}
    values = [federated.fedavg_gdp(**(grid | {"rounds": t}), diameter=0.5) for t in (10, 10**3, 10**6, 10**9)]
    assert values[1] == values[2] == values[3]
    assert federated.fedavg_gdp(**grid, diameter=np.inf) == federated.fedavg_gdp(**grid)


SIGNS = {"rounds": 1, "local_steps": 1, "clip_norm": 1, "noise_std": -1, "num_clients": -1, "smoothness": 1}
# More local steps shrink later rounds' continuous steps; more rounds of fading steps add more noise than signal.
NOT_MONOTONE = {("continuous", "local_steps"), ("continuous", "rounds"), ("stagewise", "rounds")}
MONOTONE = [
    (schedule, name, diameter)
    for schedule in SCHEDULES
    for name in SIGNS
    for diameter in (None, 0.2)
    # the diameter counts in units of the sensitivity, which clients and norm change
    if (schedule, name) not in NOT_MONOTONE and not (diameter and name in ("num_clients", "clip_norm"))
]


@pytest.mark.parametrize(("schedule", "name", "diameter"), MONOTONE)
def test_monotone(schedule: str, name: str, diameter: float | None) -> None:
    """More rounds, steps, clipping norm, smoothness: never more private; more noise, more clients: never less."""
    counts = name in ("rounds", "local_steps", "num_clients")
    values = np.arange(1, 30) if counts else FEDAVG[name] * np.linspace(0.01, 4, 30)
    mu = federated.fedavg_gdp(**(FEDAVG | {name: values, "schedule": schedule}), diameter=diameter)[:: SIGNS[name]]
    assert np.all(mu[1:] >= mu[:-1] * (1 - 1e-12))


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


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (_core.trusted_aggregator, 5),
        (_core.trusted_aggregator_random_stop, 5),
        (_core.trusted_aggregator_bounds, 6),
    ],
)
def test_core_refuses_arrays_that_end_before_the_rounds(function: Callable[..., np.ndarray], rows: int) -> None:
    """The compiled functions need a value for each of the ten rounds, or a constant."""
    cells = [np.array([value]) for value in (1.0, 100.0, 10.0, 1.0)]
    for length in (1, 10):
        assert 0 <= function(cells, [np.full((1, length), 0.5)] * rows, True, 1).flat[0] <= 1
    with pytest.raises(ValueError, match="must hold all rounds"):
        function(cells, [np.full((1, 9), 0.5)] * rows, True, 1)
    with pytest.raises(ValueError, match="wrong number of arrays"):
        function(cells, [np.full((1, 10), 0.5)] * (rows - 1), True, 1)
