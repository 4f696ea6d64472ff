"""Epsilon after every step of a composition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array, broadcast, thread_count
from hockeystick.accounting import engines
from hockeystick.accounting.composition import Composition
from hockeystick.mechanisms import Gaussian, PoissonSampled
from hockeystick.mechanisms.base import Adjacency, Mechanism

LONGEST = 10**6


def epsilons_by_step(
    runs: Sequence[tuple[Mechanism, int]], adjacency: Adjacency, engine: engines.Engine, delta: float
) -> Array:
    """Return the certified upper end after every step."""
    steps = sum(count for _, count in runs)
    if steps > LONGEST:
        msg = (
            f"epsilon_curve gives one number for each of {steps} steps; at most {LONGEST} will do: ask epsilon instead"
        )
        raise ValueError(msg)
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
    ledger: dict[Mechanism, int] = {}
    curve = []
    for mechanism, count in runs:
        for _ in range(count):
            ledger[mechanism] = ledger.get(mechanism, 0) + 1
            composition = Composition(ledger, adjacency)
            curve.append(engines.upper_end(composition, engines.Question(True, delta), engine))
    return np.array(curve)
