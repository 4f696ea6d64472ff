"""What the compiled core refuses by itself, whoever calls it: each error names the argument, its value and its domain."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import hockeystick as hs
import pairs
from hockeystick import _core

PAIR = _core.discrete([0.6, 0.4], [0.4, 0.6])
STEPS = [(PAIR, 3.0)]
ONES = np.ones(2)
TINY = 4e-309  # 1/TINY overflows


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _core.gaussian(TINY), "noise_multiplier must be (above|at least) .*, not 4e-309"),
        (lambda: _core.laplace(TINY), "noise_multiplier must be (above|at least) .*, not 4e-309"),
        (lambda: hs.Gaussian(TINY), "noise_multiplier must be (above|at least) .*, not 4e-309"),
        (lambda: hs.Laplace(2 * TINY), "noise_multiplier must be at least .*, not 7.99"),
        (lambda: PAIR.masses(True, math.nan), "eps must be a number, not nan"),
        (lambda: PAIR.delta(True, math.nan), "eps must be a number, not nan"),
        (lambda: PAIR.one_step(True, False, math.nan), "value must be a number, not nan"),
        (lambda: PAIR.one_step(True, True, math.nan), "value must lie in .*, not nan"),
        (lambda: PAIR.one_step(True, True, -1.0), "value must lie in .*, not -1"),
        (lambda: _core.pld_bracket(STEPS, True, False, math.nan, 0.0, 1e-3), "value must be a number, not nan"),
        (lambda: _core.pld_bracket(STEPS, True, True, math.nan, 0.0, 1e-3), "value must lie in .*, not nan"),
        (lambda: _core.pld_bracket(STEPS, True, False, 1.0, -1.0, 1e-3), "interval must be 0 or positive .*, not -1"),
        (lambda: _core.pld_bracket(STEPS, True, False, 1.0, 0.0, math.nan), "tolerance must be positive .*, not nan"),
        (lambda: _core.pld_bracket(STEPS, True, False, 1.0, 0.0, 1e-3, math.nan), "floor must be non-negative, not"),
        (lambda: _core.contour_bracket([(_core.gaussian(1.0), 1.0)], True, False, math.nan), "value must be a number"),
        (lambda: _core.last_iterate_bounds([ONES] * 3, 1), "arguments must hold 10 arrays, not 3"),
        (lambda: _core.cyclic_bounds([ONES] * 3, 1), "arguments must hold 10 arrays, not 3"),
        (lambda: _core.sampled_bounds([], True, 1), "arguments must hold 10 arrays, not 0"),
        (lambda: _core.sampled_splits([ONES], True), "arguments must hold 10 arrays, not 1"),
        (lambda: _core.dpsgd_epsilon([], 1), "arguments must hold 4 arrays, not 0"),
        (lambda: _core.pnsgd_gaussian([], 1), "arguments must hold 9 arrays, not 0"),
        (lambda: _core.contraction_sum([], 1), "rounds must hold 3 arrays, not 0"),
        (lambda: _core.trusted_aggregator([ONES] * 2, [ONES] * 5, True, 1), "cells must hold 4 arrays, not 2"),
        (
            lambda: _core.constant_shifted_interpolation(0.9, 1.0, 1e17, 0.0, 1.0),
            "rounds must be an integer .*, not 1e",
        ),
        (
            lambda: _core.constant_shifted_interpolation(math.nan, 1.0, 9.0, 0.0, 1.0),
            "rho must be non-negative .*, not",
        ),
        (lambda: _core.fft_round_trip([]), "signal must hold two values or more, not 0"),
        (lambda: _core.drawn_copies(math.nan, 10.0, True), "draws must be an integer .*, not nan"),
        (lambda: _core.normalised([]), "law must have a positive sum, not 0"),
        (lambda: _core.shuffled(math.nan, 10.0, False), r"epsilon0 must lie in \(0, 20\], not nan"),
        (lambda: _core.privacy_profile([], [], [], True), "epsilons must not be empty"),
        (lambda: _core.privacy_profile([0.0], [math.nan], [0.5], True), r"remove\[0\] must lie in \[0, 1\], not nan"),
        (
            lambda: _core.privacy_profile([0.0], [0.5], [0.5, 0.1], True),
            "add must be as long as epsilons .1., not of length 2",
        ),
        (lambda: _core.binomial_upper_tail(math.nan, 0.5, 1.0), "trials must lie in .*, not nan"),
        (lambda: _core.replaced_allocation(STEPS, [], math.nan, 1.0, True), "num_steps must be an integer .*, not nan"),
        (lambda: _core.allocated_steps(STEPS, math.nan, 1.0, True), "num_steps must be an integer .*, not nan"),
        (lambda: _core.allocated_steps([], 3.0, 1.0, True), "steps must hold at least one"),
        (lambda: _core.mixture_of_gaussians(1.0, [math.nan], [1.0], True), "sensitivities must be 0 or in .*, not nan"),
        (lambda: _core.fixed_size_steps(STEPS, math.nan, 1.0, False, True, True), "dataset_size must be .*, not nan"),
        (lambda: _core.poisson_replaced_steps(STEPS, math.nan, True, True), "sampling_rate must lie in .*, not nan"),
        (lambda: _core.truncated_poisson_sampled(1.0, 9.0, math.nan, 2.0, 1, True), "sampling_rate must lie in"),
    ],
)
def test_refused(call, message):
    """A number outside its domain, and a call with too few arrays, is a ValueError that names the argument."""
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
def test_many_distinct_steps_are_affordable():
    """A thousand distinct sampled Gaussians are merged on a coarser grid: above and below the truth, in seconds of CPU time."""
    shifts = 1.0 + 1e-4 * np.arange(1000)
    steps = [(_core.poisson_sampled(_core.gaussian_of_shift(shift), 1e-3), 1.0) for shift in shifts]
    start = time.process_time()
    above, below = (_core.merge_discrete(steps, True, upper) for upper in (True, False))
    assert time.process_time() - start < 120.0  # some ten seconds for either on a quiet machine
    least, most = ([(_core.poisson_sampled(_core.gaussian_of_shift(s), 1e-3), 1000.0)] for s in (shifts[0], shifts[-1]))
    for eps in (0.1, 1.0):
        lower, upper = (pairs.one_step_delta("discrete", [*p, *q], 1.0, True, eps) for p, q in (below, above))
        assert lower <= _core.contour_bracket(most, True, False, eps)["upper"]
        assert _core.contour_bracket(least, True, False, eps)["lower"] <= upper
