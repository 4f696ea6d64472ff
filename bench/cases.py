"""What is measured: the calls that ratios.py times, whose answers test_bench_cases.py holds against the peer's."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import expressions
import numpy as np

import hockeystick as hs
from hockeystick import federated, last_iterate

Function = Callable[..., Any]

MILLION = 10**6
LIBRARIES = ("hockeystick", "hockeystick, 2 threads", "scipy")


@dataclass(frozen=True)
class Case:
    """One calculation, ours and the peer's, on the same inputs.

    ``arguments(n)`` are the inputs for n cells; those for a smaller n are the beginning of those for a larger one.
    The peer is None where no expression is feasible, and runs on `peer_size` cells where more would take too long. A
    case of size 1 is one number, and takes as long as its rounds do.
    """

    name: str
    arguments: Callable[[int], tuple[Any, ...]]
    ours: Function
    peer: Function | None = None
    two_threads: Function | None = None
    size: int = MILLION
    peer_size: int = MILLION
    rtol: float = 1e-9
    atol: float = 0.0
    goals: dict[str, float] = field(default_factory=dict)  # least ratio to the peer, by instruction set

    def check(self, library):
        """Raise AssertionError unless ours and the peer agree with a library on its first cells."""
        call = self.function(library)
        result = call(*self.arguments(self.cells(library)))
        for function in (self.ours, self.peer):
            if function is not None:
                expected = np.atleast_1d(function(*self.arguments(min(self.peer_size, 10_000))))
                np.testing.assert_allclose(
                    np.atleast_1d(result)[: len(expected)], expected, rtol=self.rtol, atol=self.atol
                )

    def __str__(self):
        """Return the name, by which pytest lists the case."""
        return self.name

    def function(self, library):
        """Return what a library offers, None if nothing."""
        return {"hockeystick": self.ours, "hockeystick, 2 threads": self.two_threads, "scipy": self.peer}[library]

    def cells(self, library):
        """Return the number of cells that a library is timed on."""
        return min(self.size, self.peer_size) if library == "scipy" else self.size


def offers(cases):
    """Return each case with each library that has something to offer for it."""
    return [(case, library) for case in cases for library in LIBRARIES if case.function(library) is not None]


@cache
def _uniform(seed, low, high, n):
    return np.random.default_rng(seed).uniform(low, high, n)


def _eps_and_r(n, low=0.0):
    """Return eps in [low, 8] and r from 0.1 to 10, logarithmically: noise multipliers from 0.1 to 10."""
    return _uniform(1, low, 8.0, n), np.exp(_uniform(2, np.log(0.1), np.log(10.0), n))


def _delta(n):
    return np.exp(_uniform(3, np.log(1e-12), np.log(0.3), n))


def _theta_two_threads(eps, r):
    """Evaluate halves in two Python threads: ufuncs release the GIL."""
    out, half = np.empty_like(eps), len(eps) // 2
    parts = (slice(half), slice(half, None))
    list(_pool().map(lambda part: hs.theta(eps[part], r[part], out=out[part]), parts))
    return out


@cache
def _pool():
    return ThreadPoolExecutor(2)


def _x(n):
    return (_uniform(4, -10.0, 10.0, n),)


def _by_roots(peer):
    """Return a peer that finds roots, None where SciPy has no vectorised way."""
    return peer if expressions.HAS_ROOTS else None


HOCKEY_STICK = (
    Case(
        "theta",
        _eps_and_r,
        hs.theta,
        expressions.theta,
        _theta_two_threads,
        rtol=1e-6,
        atol=1e-12,
        goals={"v4": 8.0, "v3": 5.0},
    ),
    Case("theta, eps of both signs", partial(_eps_and_r, low=-8.0), hs.theta, expressions.theta, rtol=1e-6, atol=1e-12),
    Case("log_theta", _eps_and_r, hs.log_theta, expressions.log_theta, rtol=1e-8),
    Case("q", _x, hs.q, expressions.q),
    Case("log_q", _x, hs.log_q, expressions.log_q),
    Case("q_inv", lambda n: (_uniform(5, 0.0, 1.0, n),), hs.q_inv, expressions.q_inv, atol=1e-12),
    Case(
        "theta_inverse",
        lambda n: (_eps_and_r(n, 0.5)[0], _delta(n)),
        hs.theta_inverse,
        _by_roots(expressions.theta_inverse),
        peer_size=10_000,
    ),
    Case(
        "gaussian_epsilon",
        lambda n: (_eps_and_r(n)[1], _delta(n)),
        hs.gaussian_epsilon,
        _by_roots(expressions.gaussian_epsilon),
        peer_size=10_000,
        atol=1e-9,
    ),
)


def _rounds(low, n):
    return _uniform(6, 0.0, 1.0, n), _uniform(7, low, 1.0, n)


def _constant_rounds(rounds):
    """Return the case of constants; the peer must materialise them, which stops at 1e6 rounds."""
    peer = expressions.constant_contraction_sum if rounds <= MILLION else None
    ours = lambda first, eta, rounds: hs.contraction_sum(first, eta, rounds=rounds)
    return Case(f"contraction_sum, constant, T = {rounds:.0e}", lambda _: (0.5, 1 - 1e-7, rounds), ours, peer, size=1)


def _array_rounds(rounds, low, name):
    name = f"contraction_sum, {name}, T = {rounds:.0e}"
    return Case(name, lambda _: _rounds(low, rounds), hs.contraction_sum, expressions.contraction_sum, size=1)


# With eta near 1 every round counts; with eta down to 0.5 the sum is known after a hundred.
CONTRACTION = (
    *(_constant_rounds(rounds) for rounds in (10**3, 10**6, 10**9)),
    *(_array_rounds(rounds, 1 - 1e-6, "eta near 1") for rounds in (10**3, 10**6)),
    *(_array_rounds(rounds, 0.5, "eta above 1/2") for rounds in (10**3, 10**6)),
)


def _drifts(_):
    return _uniform(8, 0.9, 1.15, MILLION), _uniform(9, 0.0, 1.0, MILLION)


def _hard_drifts(_):
    """Return the sequence on which trying every start one by one is slowest: blocks merge over thousands of rounds."""
    return np.full(20_000, 1.0001), np.full(20_000, 0.1)


SHIFTED_INTERPOLATION = (
    Case("shifted_interpolation, T = 1e+06", _drifts, hs.shifted_interpolation, size=1),
    Case(
        "shifted_interpolation, diameter, T = 1e+06", _drifts, partial(hs.shifted_interpolation, diameter=3.0), size=1
    ),
    Case(
        "shifted_interpolation, hard, T = 2e+04",
        _hard_drifts,
        partial(hs.shifted_interpolation, diameter=1000.0),
        size=1,
    ),
)


def _noise(n):
    """Return one standard deviation per 10,000 cells of a grid."""
    return np.geomspace(1.0, 10.0, 100)[: n // 10_000]


def _named(function, names, **constants):
    """Return a function of arrays by their places, which have these names, on one thread unless more are asked for."""

    def call(*arrays, num_threads=1):
        return function(**dict(zip(names.split(), arrays, strict=True)), **constants, num_threads=num_threads)

    return call


def _last_axis_is_the_round(function):
    return lambda *, noise_std, **others: function(noise_std=noise_std[..., np.newaxis], **others)


def _delta_of(function):
    return lambda **arguments: function(**arguments).delta


DESCENT = {"learning_rate": 0.5, "lipschitz": 1.0, "smoothness": 0.5}
AGGREGATOR = {"num_users": 1000, "batch_size": 10, "learning_rate": 0.5, "lipschitz": 1.0, "radius": 0.1}
AGGREGATOR |= {"loss": "convex"}
FEDERATION = {"num_clients": 50, "clip_norm": 1.0, "smoothness": 1.0, "learning_rate": 0.01}
AXES = "rounds local_steps noise_std"


def _federation(n):
    return 10.0 * np.arange(1, 101)[:, np.newaxis], np.arange(1.0, 101.0), _noise(n)[:, np.newaxis, np.newaxis]


def _records(n):
    return np.linspace(0.0, 5.0, 100), np.arange(1.0, 101.0)[:, np.newaxis], _noise(n)[:, np.newaxis, np.newaxis]


def _profiles(n):
    return np.linspace(0.0, 5.0, 10_000), _noise(n)[:, np.newaxis]


def _mu_and_eps(n):
    return _eps_and_r(n)[::-1]


def _mu_and_rate(n):
    return _eps_and_r(n)[1], _uniform(5, 0.0, 1.0, n)


def _grid(
    name,
    arguments,
    ours,
    peer,
    peer_size=MILLION,
):
    return Case(
        name,
        arguments,
        partial(ours, num_threads=1),
        peer,
        partial(ours, num_threads=2),
        peer_size=peer_size,
        rtol=1e-6,
        atol=1e-12,
        goals={"v4": 6.0, "v3": 4.0},
    )


def _record_grid(name, arguments, names, **constants):
    """Return the grid of a bound of the last iterate for one of 100 records."""
    ours = _named(getattr(last_iterate, name), names, num_records=100, **DESCENT, **constants)
    return _grid(name, arguments, ours, getattr(expressions, name))


CLOSED_FORMS = (
    _grid("gdp_delta", _mu_and_eps, hs.gdp_delta, expressions.gdp_delta),
    _grid(
        "gdp_epsilon",
        lambda n: (_eps_and_r(n)[1], _delta(n)),
        hs.gdp_epsilon,
        _by_roots(expressions.gdp_epsilon),
        peer_size=10_000,
    ),
    _grid("gdp_trade_off", _mu_and_rate, hs.gdp_trade_off, expressions.gdp_trade_off),
    _grid("gdp_advantage", lambda n: _eps_and_r(n)[1:], hs.gdp_advantage, expressions.gdp_advantage),
    _grid(
        "fedavg_delta",
        _federation,
        _named(federated.fedavg_delta, AXES, epsilon=1.0, **FEDERATION),
        expressions.fedavg_delta,
    ),
    _record_grid("pnsgd_gaussian", _records, "epsilon index noise_std", diameter=1.0),
    _record_grid("pnsgd_laplace", _records, "epsilon index noise_scale", diameter=1.0),
    _record_grid("pnsgd_rdp", _records, "epsilon index noise_std"),
    _grid(
        "trusted_aggregator",
        _profiles,
        _named(_last_axis_is_the_round(federated.trusted_aggregator), "epsilon noise_std", **AGGREGATOR),
        expressions.trusted_aggregator,
    ),
)


def _hidden(n):
    """Return eps, the record's step among a hundred, noise and diameter, from what hides nothing to what hides all."""
    index = np.ceil(_uniform(11, 0.0, 100.0, n))
    noise, diameter = (np.exp(_uniform(seed, -1.0, 2.0, n)) for seed in (12, 13))
    return _uniform(10, 0.0, 5.0, n), index, noise, diameter


def _cyclic(n):
    """Return the same for a record that is used every ten rounds."""
    eps, index, *others = _hidden(n)
    return eps, np.minimum(index, 10), *others


def _chain(rounds):
    """Return the exact delta for a record of every round; the bracket must be as narrow as it is asked for."""
    bracket = last_iterate.chain_delta(
        1.0,
        gradient_map="logistic",
        record=0.5,
        neighbour=-0.5,
        rounds=rounds,
        learning_rate=0.5,
        noise_std=1.0,
        diameter=2.0,
    )
    assert bracket.upper - bracket.lower <= max(0.01 * bracket.upper, 1e-12)
    return bracket.upper


_best = _named(_delta_of(last_iterate.best), "epsilon index noise_std diameter", num_records=100, quick=True, **DESCENT)
_best_cyclic = _named(
    _delta_of(last_iterate.best_cyclic), "epsilon index noise_std diameter", period=10, rounds=100, **DESCENT
)

# The goals: 10 µs a cell of `best` on two threads; a second for a thousand rounds of `chain_delta`.
HIDDEN_STATES = (
    Case("last_iterate.best, 100 steps", _hidden, _best, two_threads=partial(_best, num_threads=2), size=MILLION // 10),
    Case(
        "last_iterate.best_cyclic, period 10, 100 rounds",
        _cyclic,
        _best_cyclic,
        two_threads=partial(_best_cyclic, num_threads=2),
        size=10,
        peer_size=10,
    ),
    Case("last_iterate.chain_delta, T = 1e+03", lambda _: (1000,), _chain, size=1),
)
