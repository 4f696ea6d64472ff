"""Closed forms on grids: the same numbers whatever the layout, as mpmath has them; and what is outside of their domains."""

import re
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import high_precision as exact
import hockeystick as hs
from hockeystick import federated, isrl, last_iterate, published, utility
from theorems import log_close

pytestmark = pytest.mark.filterwarnings("ignore::hockeystick.published.UnsoundBoundWarning")

FEDERATION = {
    "rounds": 20.0, "local_steps": 7.0, "num_clients": 30.0, "clip_norm": 1.0, "noise_std": 1.5, "smoothness": 1.0, "learning_rate": 0.05,
}  # fmt: skip
AGGREGATOR = {
    "num_users": 100.0, "batch_size": 7.0, "learning_rate": 0.5, "noise_std": 1.5, "lipschitz": 1.0, "radius": 1.0,
}  # fmt: skip
DESCENT = {
    "index": 3.0, "num_records": 40.0, "learning_rate": 0.5, "smoothness": 0.5, "strong_convexity": 0.1, "lipschitz": 1.0, "diameter": 1.0,
}  # fmt: skip
RISK = {
    "num_users": 1000.0, "batch_size": 10.0, "dimension": 7.0, "noise_std": 0.5, "gradient_bound": 2.0, "gradient_std": 1.0, "smoothness": 3.0,
    "strong_convexity": 0.5,
}  # fmt: skip
SILOS = {
    "diameter": 2.0, "rounds": 50.0, "lipschitz": 1.0, "num_records": 1000.0, "num_silos": 30.0, "silos_per_round": 8.0, "dimension": 10.0,
    "noise_std": 0.3, "smoothness": 1.0, "strong_convexity": 0.25,
}  # fmt: skip


def without(name: str) -> dict[str, float]:
    """Return the process without an argument."""
    return {key: value for key, value in DESCENT.items() if key != name}


FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "gdp_delta": (hs.gdp_delta, {"mu": 1.0, "epsilon": 1.0}),
    "gdp_epsilon": (hs.gdp_epsilon, {"mu": 1.0, "delta": 1e-5}),
    "gdp_trade_off": (hs.gdp_trade_off, {"mu": 1.0, "fpr": 0.1}),
    "gdp_rdp": (hs.gdp_rdp, {"mu": 1.0, "order": 2.0}),
    "gdp_advantage": (hs.gdp_advantage, {"mu": 1.0}),
    "zcdp_delta": (hs.zcdp_delta, {"rho": 0.5, "epsilon": 1.0, "xi": 0.1}),
    "zcdp_epsilon": (hs.zcdp_epsilon, {"rho": 0.5, "delta": 1e-5, "xi": 0.1}),
    "fedavg_gdp": (federated.fedavg_gdp, FEDERATION),
    "fedavg_gdp, cyclic": (federated.fedavg_gdp, FEDERATION | {"schedule": "cyclic"}),
    "fedavg_gdp, diameter": (federated.fedavg_gdp, FEDERATION | {"diameter": 0.3}),
    "fedavg_delta": (federated.fedavg_delta, {"epsilon": 0.5} | FEDERATION),
    "fedavg_delta, stagewise": (federated.fedavg_delta, {"epsilon": 0.5} | FEDERATION | {"schedule": "stagewise"}),
    "fedavg_epsilon": (federated.fedavg_epsilon, {"delta": 1e-5} | FEDERATION),
    "fedprox_gdp": (federated.fedprox_gdp, FEDERATION | {"prox": 2.0}),
    "fedprox_delta": (federated.fedprox_delta, {"epsilon": 0.5} | FEDERATION | {"prox": 2.0}),
    "fedprox_epsilon": (federated.fedprox_epsilon, {"delta": 1e-5} | FEDERATION | {"prox": 2.0, "diameter": 0.1}),
    "published.fedavg_gdp": (published.fedavg_gdp, FEDERATION),
    "published.fedavg_gdp, cyclic": (published.fedavg_gdp, FEDERATION | {"schedule": "cyclic", "c": 1.2}),
    "published.fedprox_gdp": (published.fedprox_gdp, FEDERATION | {"prox": 2.0}),
    "pnsgd_gaussian": (last_iterate.pnsgd_gaussian, {"epsilon": 0.5, "noise_std": 2.0} | DESCENT),
    "pnsgd_laplace": (last_iterate.pnsgd_laplace, {"epsilon": 0.2, "noise_scale": 2.0} | DESCENT),
    "pnsgd_rdp": (last_iterate.pnsgd_rdp, {"epsilon": 0.5, "noise_std": 2.0} | without("diameter")),
    "pnsgd_random_stop": (last_iterate.pnsgd_gaussian_random_stop, {"epsilon": 0.5, "noise_std": 2.0} | without("index")),
    "trusted_aggregator": (federated.trusted_aggregator, {"epsilon": 0.5, **AGGREGATOR, "loss": "convex"}),
    "trusted_aggregator_random_stop": (
        federated.trusted_aggregator_random_stop, {"epsilon": 0.5, **AGGREGATOR, "loss": "nonconvex", "suffix": 0.4},
    ),
    "utility.risk": (utility.trusted_aggregator_excess_risk, RISK),
    "isrl.risk": (isrl.mb_sgd_risk_bound, SILOS),
}  # fmt: skip
WHOLE = (
    "rounds", "local_steps", "num_clients", "num_users", "batch_size", "index", "num_records", "num_silos", "dimension",
)  # fmt: skip
PER_ROUND = ("learning_rate", "noise_std", "lipschitz", "radius")


def values(name: str, like: float, rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw n legal values of an argument near an ordinary one."""
    if name in WHOLE:
        return np.maximum(1.0, np.floor(like * rng.uniform(0.3, 1.0, n)))
    return like * rng.uniform(0.5, 1.0, n)


def drawn(arguments: dict[str, Any], n: int) -> dict[str, np.ndarray]:
    """Draw n legal cells."""
    rng = np.random.default_rng(7)
    numbers = {name: like for name, like in arguments.items() if isinstance(like, float)}
    result = {name: values(name, like, rng, n) for name, like in numbers.items()}
    if "index" in result:
        result["num_records"] += 40.0
    if "num_users" in result:
        result["num_users"] += 10.0
    return result


def call(name: str, cells: dict[str, np.ndarray], **more: Any) -> np.ndarray:
    """Call a function; what may be a schedule gets its axis of rounds."""
    function, arguments = FUNCTIONS[name]
    words = {key: value for key, value in arguments.items() if not isinstance(value, float)}
    wide = {
        key: value[..., np.newaxis] if name.startswith("trusted") and key in PER_ROUND else value
        for key, value in cells.items()
    }
    return np.asarray(function(**wide, **words, **more))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_layouts(name: str) -> None:
    """Alone, strided, transposed, unaligned, by any number of threads: the same bits as next to each other. Numbers give a float."""
    n = 40 if "stagewise" in name else 2100
    cells = drawn(FUNCTIONS[name][1], n)
    plain = call(name, cells)
    assert np.isfinite(plain).all()
    for k in (0, 1, n // 2, n - 1):
        assert call(name, {key: value[k] for key, value in cells.items()}) == plain[k]
    np.testing.assert_array_equal(call(name, {key: value[::-3] for key, value in cells.items()}), plain[::-3])
    square = {key: value[: n // 20 * 20].reshape(-1, 20).T for key, value in cells.items()}
    np.testing.assert_array_equal(call(name, square), plain[: n // 20 * 20].reshape(-1, 20).T)
    raw = {
        key: np.frombuffer(b"-" + value.tobytes(), dtype=np.uint8)[1:].view(np.float64) for key, value in cells.items()
    }
    np.testing.assert_array_equal(call(name, raw), plain)
    for threads in (1, 2, 3, 7):
        np.testing.assert_array_equal(call(name, cells, num_threads=threads), plain)
    assert isinstance(FUNCTIONS[name][0](**FUNCTIONS[name][1]), float)


QUICK = [name for name in FUNCTIONS if "stagewise" not in name]  # that is computed cell by cell, which takes long


@pytest.mark.parametrize("name", [name for name in QUICK if len(FUNCTIONS[name][1]) > 1])
def test_axes(name: str) -> None:
    """Factors that are computed over their own axes, by any number of threads, give what a cell gives alone."""
    cells = drawn(FUNCTIONS[name][1], 300)
    names = list(cells)
    first, second = names[0], names[-1]
    for one, other in ((first, second), (second, first), (names[len(names) // 2], first)):
        if one == other:
            continue
        grid = {key: value[0] for key, value in cells.items()} | {
            one: cells[one][:, np.newaxis],
            other: cells[other][:200],
        }
        table = call(name, grid)
        assert table.shape == (300, 200)
        for threads in (1, 2, 7) if one == first else ():
            np.testing.assert_array_equal(call(name, grid, num_threads=threads), table)
        for i, j in ((0, 0), (299, 199), (17, 31)):
            cell = {key: value[0] for key, value in cells.items()} | {one: cells[one][i], other: cells[other][j]}
            assert call(name, cell) == table[i, j]


# For which infinity is legal, or is not tried.
INFINITE = ("delta", "suffix", "diameter", "epsilon", "mu", "fpr", "order", "rho", "xi")
BEYOND = {  # what only some functions refuse
    "pnsgd": {"index": [90.0], "learning_rate": [7.0], "smoothness": [0.04], "strong_convexity": [0.6], "diameter": [np.inf]},
    "fedprox": {"learning_rate": [1.1], "prox": [0.4]},
    "published.fedprox": {"prox": [0.4]},
    "trusted": {"num_users": [1.0], "batch_size": [210.0]},
    "utility.risk": {"batch_size": [2100.0]},
    "isrl.risk": {"silos_per_round": [0.5, 31.0]},
}  # fmt: skip


def bad_values(name: str, key: str) -> list[float]:
    """Return what a function refuses of an argument; a negative eps is that of a Gaussian curve. project/test_arguments has more."""
    found = [np.nan, *([] if (name, key) == ("gdp_delta", "epsilon") else [-1.0]), *([1.5] if key in WHOLE else [])]
    legal = key == "noise_std" and name.endswith("risk")
    found += [0.0] * (
        not legal and key in (*WHOLE, *PER_ROUND, "clip_norm", "prox", "noise_scale", "diameter", "suffix")
    )
    found += [1.1] * (key in ("delta", "suffix"))
    return found + [np.inf] * (key not in INFINITE) + BEYOND.get(name.split("_", maxsplit=1)[0], {}).get(key, [])


@pytest.mark.parametrize("name", QUICK)
def test_out_of_domain(name: str) -> None:
    """A bad number raises ValueError with its name, cell and value; with on_error="nan" it spoils its own cell only. Words and threads are checked."""
    cells = drawn(FUNCTIONS[name][1], 33)
    plain = call(name, cells)
    for option, bad in (("num_threads", -1), ("on_error", "skip")):
        with pytest.raises(ValueError, match=f"{option}.*{bad!r}"):
            call(name, cells, **{option: bad})
    for key in cells:
        for bad in bad_values(name, key):
            spoiled = {k: v.copy() for k, v in cells.items()}
            spoiled[key][5] = bad
            with pytest.raises(ValueError, match=key) as caught:
                call(name, spoiled)
            assert re.search(rf"{key}\[5|in cell \(5", str(caught.value)), (key, bad)
            with pytest.raises(ValueError, match=key) as caught:
                call(name, {k: v[5] for k, v in spoiled.items()})
            assert str(bad) in str(caught.value), (key, bad)
            result = call(name, spoiled, on_error="nan")
            assert np.isnan(result[5]), key
            np.testing.assert_array_equal(np.delete(result, 5), np.delete(plain, 5))


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name.startswith("trusted")])
@pytest.mark.parametrize("key", PER_ROUND)
@pytest.mark.parametrize("position", [0, 5, 9])
def test_bad_round(name: str, key: str, position: int) -> None:
    """One bad round raises with its index, or spoils its cell, wherever in the schedule it stands."""
    function, arguments = FUNCTIONS[name]
    good = arguments | {"batch_size": 10.0, "noise_std": 500.0}  # contracts at once
    rows = np.full((3, 10), good[key])
    rows[1, position] = -1.0
    with pytest.raises(ValueError, match=rf"{key}\[1, {position}\].*-1"):
        function(**(good | {key: rows}))
    assert np.isnan(function(**(good | {key: rows}), on_error="nan")).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("prefix", "key", "words"),
    [("trusted", "loss", ("Convex", "non-convex", "")), ("fed", "schedule", ("linear", "Constant", ""))],
)
def test_words_are_spelled_as_documented(prefix: str, key: str, words: tuple[str, ...]) -> None:
    """Losses and schedules have no other spelling, and are words."""
    for function, good in (FUNCTIONS[name] for name in FUNCTIONS if name.startswith(prefix)):
        for bad in words:
            with pytest.raises(ValueError, match=f"{key}.*'{bad}'"):
                function(**(good | {key: bad}))
        for bad in (None, ["convex"]):
            with pytest.raises(TypeError, match=key):
                function(**(good | {key: bad}))


def test_a_billion_users_records_or_rounds() -> None:
    """Constants cost the same for any number of them."""
    many = {"num_users": 1e9, "batch_size": 1.0, "num_records": 1e9, "rounds": 1e9}
    for name, (function, good) in FUNCTIONS.items():
        if "stagewise" not in name and not name.startswith(("gdp", "utility", "isrl")):
            found = function(**(good | {key: value for key, value in many.items() if key in good}))
            assert isinstance(found, float), name
            assert found >= 0, name


def test_fedprox_parameter() -> None:
    """Without a diameter mu is sqrt(T) times one round's, to 1e-13, for tiny and for large steps."""
    rng = np.random.default_rng(8)
    for _ in range(200):
        rounds, steps, clients = (float(np.ceil(np.exp(rng.uniform(0, 12)))) for _ in range(3))
        prox = float(np.exp(rng.uniform(-5, 5)))
        rate = float(np.exp(rng.uniform(-20, 0))) / prox
        value = federated.fedprox_gdp(
            rounds=rounds, local_steps=steps, num_clients=clients, clip_norm=1.0, noise_std=1.0,
            smoothness=0.5 * prox, learning_rate=rate, prox=prox,
        )  # fmt: skip
        with mp.workdps(40):
            forgotten = -mp.expm1(steps * mp.log1p(-mp.mpf(rate) * mp.mpf(prox)))
            expected = 2 / mp.sqrt(clients) / mp.mpf(prox) * forgotten * mp.sqrt(rounds)
            assert abs(value / expected - 1) < 1e-13


@pytest.mark.parametrize("prox", [1e-9, 1e-150, 1e-170, 1e-300, 5e-324])
@pytest.mark.parametrize("diameter", [None, 1e3, 0.2])
def test_fedprox_that_hardly_pulls(prox: float, diameter: float | None) -> None:
    """As prox tends to 0, FedProx of linear losses tends to FedAvg, with 1 - (1 - lr prox)^K ~ K lr prox."""
    linear = FEDERATION | {"smoothness": 0.0, "diameter": diameter}
    assert federated.fedprox_gdp(prox=prox, **linear) == pytest.approx(federated.fedavg_gdp(**linear), rel=1e-8)


def test_random_stop_sums() -> None:
    """The double geometric sum by its definition, for few and for many rounds."""
    for users, suffix, noise in ((50, 1.0, 1.5), (64, 0.5, 0.3), (999, 0.1, 5.0), (30000, 0.7, 20.0)):
        value = federated.trusted_aggregator_random_stop(
            0.3, num_users=users, batch_size=3, learning_rate=0.5, noise_std=noise, lipschitz=1.0, radius=1.0,
            loss="convex", suffix=suffix,
        )  # fmt: skip
        rounds = users // 3
        stops = int(np.ceil(suffix * rounds - 1e-9))
        with mp.workdps(50):
            root = mp.sqrt(3)
            eta = exact.theta(0.3, float(2 * root / (mp.mpf(0.5) * noise)))
            use = exact.theta(0.3, float(2 / (root * noise)))
            total = sum(
                mp.mpf(tau) if eta == 1 else (1 - eta**tau) / (1 - eta) for tau in range(rounds - stops + 1, rounds + 1)
            )
            expected = mp.mpf(3) / users * use * total / stops
        assert log_close(value, expected, 1e-12)
