"""What the compiled core refuses by itself, whoever calls it: each error names the argument, its value and its domain."""

from __future__ import annotations

import math

import numpy as np
import pytest

import refused_calls
from hockeystick import _core

PAIR = _core.discrete([0.6, 0.4], [0.4, 0.6])
STEPS = [(PAIR, 3.0)]
NAMES = vars(_core) | {"PAIR": PAIR, "STEPS": STEPS, "ONES": np.ones(2), "nan": math.nan}
TABLE = r"""
gaussian(4e-309) -> noise_multiplier must be (above|at least) .*, not 4e-309
laplace(4e-309) -> noise_multiplier must be (above|at least) .*, not 4e-309
PAIR.masses(True, nan) -> eps must be a number, not nan
PAIR.delta(True, nan) -> eps must be a number, not nan
PAIR.one_step(True, False, nan) -> value must be a number, not nan
PAIR.one_step(True, True, nan) -> value must lie in .*, not nan
PAIR.one_step(True, True, -1.0) -> value must lie in .*, not -1
pld_bracket(STEPS, True, False, nan, 0.0, 1e-3) -> value must be a number, not nan
pld_bracket(STEPS, True, True, nan, 0.0, 1e-3) -> value must lie in .*, not nan
pld_bracket(STEPS, True, False, 1.0, -1.0, 1e-3) -> interval must be 0 or positive .*, not -1
pld_bracket(STEPS, True, False, 1.0, 0.0, nan) -> tolerance must be positive .*, not nan
pld_bracket(STEPS, True, False, 1.0, 0.0, 1e-3, nan) -> floor must be non-negative, not
contour_bracket([(gaussian(1.0), 1.0)], True, False, nan) -> value must be a number
last_iterate_bounds([ONES] * 3, 1) -> arguments must hold 10 arrays, not 3
cyclic_bounds([ONES] * 3, 1) -> arguments must hold 10 arrays, not 3
sampled_bounds([], True, 1) -> arguments must hold 10 arrays, not 0
sampled_splits([ONES], True) -> arguments must hold 10 arrays, not 1
dpsgd_epsilon([], 1) -> arguments must hold 4 arrays, not 0
pnsgd_gaussian([], 1) -> arguments must hold 9 arrays, not 0
contraction_sum([], 1) -> rounds must hold 3 arrays, not 0
trusted_aggregator([ONES] * 2, [ONES] * 5, True, 1) -> cells must hold 4 arrays, not 2
constant_shifted_interpolation(0.9, 1.0, 1e17, 0.0, 1.0) -> rounds must be an integer .*, not 1e
constant_shifted_interpolation(nan, 1.0, 9.0, 0.0, 1.0) -> rho must be non-negative .*, not
fft_round_trip([]) -> signal must hold two values or more, not 0
normalised([]) -> law must have a positive sum, not 0
shuffled(nan, 10.0, False) -> epsilon0 must lie in \(0, 20\], not nan
privacy_profile([], [], [], True) -> epsilons must not be empty
privacy_profile([0.0], [nan], [0.5], True) -> remove\[0\] must lie in \[0, 1\], not nan
privacy_profile([0.0], [0.5], [0.5, 0.1], True) -> add must be as long as epsilons .1., not of length 2
binomial_upper_tail(nan, 0.5, 1.0) -> trials must lie in .*, not nan
replaced_allocation(STEPS, [], nan, 1.0, True) -> num_steps must be an integer .*, not nan
allocated_steps(STEPS, nan, 1.0, True) -> num_steps must be an integer .*, not nan
allocated_steps([], 3.0, 1.0, True) -> steps must hold at least one
allocated_steps([(gaussian(1e-300), 1.0)], 3.0, 1.0, True) -> must lie in
allocated_steps([(gaussian(1e300), 1.0)], 3.0, 1.0, True) -> must lie in
allocated_steps([(gaussian(1.0), 1.0)], -1.0, 1.0, True) -> num_steps must be an integer
allocated_steps([(gaussian(1.0), 1.0)], 0.0, 1.0, True) -> num_steps must be an integer
mixture_of_gaussians(1.0, [nan], [1.0], True) -> sensitivities must be 0 or in .*, not nan
fixed_size_steps(STEPS, nan, 1.0, False, True, True) -> dataset_size must be .*, not nan
fixed_size_steps([(gaussian(1.0), 1.0)], 10.0, nan, True, False, True) -> batch_size must be .*, not nan
poisson_replaced_steps(STEPS, nan, True, True) -> sampling_rate must lie in .*, not nan
truncated_poisson_sampled(1.0, 9.0, nan, 2.0, 1, True) -> sampling_rate must lie in
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(TABLE))
def test_refused(call, reason):
    """A number outside its domain, and a call with too few arrays, is a ValueError that names the argument."""
    refused_calls.check(call, reason, NAMES)


@pytest.mark.slow
def test_many_distinct_steps_are_affordable():
    """Four hundred distinct sampled Gaussians are merged on a coarser grid: above and below the truth."""
    shifts = 1.0 + 1e-4 * np.arange(400)
    steps = [(_core.poisson_sampled(_core.gaussian_of_shift(shift), 1e-3), 1.0) for shift in shifts]
    above, below = (_core.merge_discrete(steps, True, upper) for upper in (True, False))
    least, most = ([(_core.poisson_sampled(_core.gaussian_of_shift(s), 1e-3), 400.0)] for s in (shifts[0], shifts[-1]))
    for eps in (0.1, 1.0):
        lower, upper = (_core.discrete(*masses).delta(True, eps) for masses in (below, above))
        assert lower <= _core.contour_bracket(most, True, False, eps)["upper"]
        assert _core.contour_bracket(least, True, False, eps)["lower"] <= upper
