"""Epsilon after every step of a composition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array, broadcast, thread_count
from hockeystick.accounting import engines
from hockeystick.accounting.composition import Composition
from hockeystick.accounting.record import Record
from hockeystick.mechanisms import Gaussian, PoissonSampled
from hockeystick.mechanisms.base import Adjacency, Mechanism

LONGEST = 10**6


def epsilons_by_step(record: Record, adjacency: Adjacency, engine: engines.Engine, delta: float) -> Array:
    """Return the certified upper end after every step."""
    ledger = record.counts.totals()
    steps, mechanisms = sum(ledger.values()), list(ledger)
    if steps > LONGEST:
        msg = (
            f"epsilon_curve gives one number for each of {steps} steps; at most {LONGEST} will do: ask epsilon instead"
        )
        raise ValueError(msg)
    runs = [(mechanisms[number], count) for number, count in record.order.runs()]
    if len(runs) == 1 and engine == "auto" and adjacency == "add_or_remove":
        curve = _dpsgd_curve(*runs[0], delta)
    else:
        curve = _one_by_one(runs, adjacency, engine, delta)
    return np.minimum.accumulate(curve[::-1])[::-1]  # what holds after more steps holds after fewer


def _dpsgd_curve(mechanism: Mechanism, steps: int, delta: float) -> Array:
    """Return the curve of equal steps, those of DP-SGD by one call on all cores."""
    step = PoissonSampled(mechanism, 1.0) if isinstance(mechanism, Gaussian) else mechanism
    if not (isinstance(step, PoissonSampled) and isinstance(step.mechanism, Gaussian)):
        return _one_by_one([(mechanism, steps)], "add_or_remove", "auto", delta)
    cells = broadcast(
        np.array(step.mechanism.noise_multiplier),
        np.array(step.sampling_rate),
        np.arange(1.0, steps + 1.0),
        np.array(delta),
    )
    return core.dpsgd_epsilon(cells, thread_count(None))


def _one_by_one(
    runs: Sequence[tuple[Mechanism, int]], adjacency: Adjacency, engine: engines.Engine, delta: float
) -> Array:
    """Return the curve of a ledger that grows by one step at a time, and keeps what it computed of the steps before."""
    engines.require_certified(Composition({mechanism: 1 for mechanism, _ in runs}, adjacency))
    if not all(mechanism._has_pair and mechanism._added_failure() == 0.0 for mechanism, _ in runs):
        return _by_renyi(runs, adjacency, engine, delta)
    growing = core.Accountant()
    curve = []
    for mechanism, count in runs:
        pairs = [(pair, times) for pair, times in mechanism._pairs(adjacency, upper=True) if times > 0.0]
        for _ in range(count):
            for pair, times in pairs:
                growing.compose(pair, times, True)
            curve.append(growing.answers(True, delta, engine, True)[0].upper)
    return np.array(curve)


def _by_renyi(
    runs: Sequence[tuple[Mechanism, int]], adjacency: Adjacency, engine: engines.Engine, delta: float
) -> Array:
    """Return the curve where a mechanism has no pair: each ledger is asked anew."""
    ledger: dict[Mechanism, int] = {}
    curve = []
    for mechanism, count in runs:
        for _ in range(count):
            ledger[mechanism] = ledger.get(mechanism, 0) + 1
            curve.append(engines.upper_end(Composition(ledger, adjacency), engines.Question(True, delta), engine))
    return np.array(curve)
