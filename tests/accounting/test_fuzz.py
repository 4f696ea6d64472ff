"""Cells of DP-SGD over the whole legal domain: no exception, no NaN, and bounded work."""

from __future__ import annotations

import math
import random
import warnings
from concurrent.futures import ThreadPoolExecutor

import effort
from hockeystick import _core

MOST_WORK = 1e9  # points visited; a core does about 1e9 a second


def cells(count):
    """Return noise multipliers from 1e-3 to 1e6, rates 0, 1 and from 1e-12 to 1, steps to 1e9, deltas from 1e-300 to 0.9."""
    rng = random.Random(20261121)
    spread = lambda low, high: math.exp(rng.uniform(math.log(low), math.log(high)))
    rate = lambda: rng.choice([0.0, 1.0, rng.random(), spread(1e-12, 1.0), spread(1e-5, 1.0)])
    return [(spread(1e-3, 1e6), rate(), float(int(spread(1.0, 1e9))), spread(1e-300, 0.9)) for _ in range(count)]


def test_every_legal_cell_is_answered_with_bounded_work():
    """Epsilon is finite or infinite but a number, never above the unsampled Gaussian's, and no cell costs more than the cap."""
    asked = cells(effort.at_night(10_000, by_day=1_000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda cell: _core.dpsgd_epsilon_work(*cell), asked, chunksize=50))
    for (sigma, rate, steps, delta), (epsilon, work) in zip(asked, answers, strict=True):
        assert epsilon >= 0.0, (sigma, rate, steps, delta)
        assert work <= MOST_WORK, (sigma, rate, steps, delta)
        unsampled = _core.dpsgd_epsilon_work(sigma, 1.0, steps, delta)[0]
        assert epsilon <= unsampled
        if rate == 0.0:
            assert epsilon == 0.0
