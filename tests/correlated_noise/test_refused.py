"""Correlated noise: what has no sensitivity, no bound and no estimate is refused with the argument's name."""

import math

import numpy as np
import pytest

import refused_calls
from hockeystick import correlated_noise

POISSON = {"steps": 4, "separation": 2, "sampling_rate": 0.1, "noise_multiplier": 1.0}
SEPARATED = {"strategy": [1.0, 0.5], "steps": 4, "separation": 2, "sampling_rate": 0.5, "noise_multiplier": 1.0}
IN_BINS = {"strategy": [1.0, 0.5], "steps": 4, "bins": 2, "noise_multiplier": 1.0, "epsilon": 0.1, "seed": 1}
NAMES = {
    **vars(correlated_noise),
    "math": math,
    "np": np,
    "SHIFT": np.eye(4, k=1),
    "POISSON": POISSON,
    "SEPARATED": SEPARATED,
    "APART": {**SEPARATED, "epsilon": 0.1, "seed": 1},
    "IN_BINS": IN_BINS,
    "BINS": {"bins": 1, "noise_multiplier": 1.0},
    "TINY": {"strategy": [1.0], "steps": 4, "noise_multiplier": 1e-200},
    "EVERY": {"strategy": np.eye(3), "sampling_rate": 0.1, "noise_multiplier": 1.0, "failure": 1e-6},
}
REFUSED = r"""
matrix_sensitivity([], participation="single") -> dimensions and an entry
matrix_sensitivity(np.zeros((2, 2)), participation="single") -> all zero
matrix_sensitivity(np.ones((2, 2, 2)), participation="single") -> one or two dimensions
matrix_sensitivity([1.0], participation="single") -> needs steps
matrix_sensitivity(np.eye(2), participation="single", steps=2) -> takes no steps
matrix_sensitivity(np.eye(2), participation="often") -> participation must be
matrix_sensitivity(np.eye(2), participation="cyclic") -> separation must be given
matrix_sensitivity(np.eye(2), participation="single", separation=2) -> separation must be given
matrix_sensitivity(np.eye(2), participation="cyclic", separation=1, max_participations=1)
    -> max_participations must be for
matrix_sensitivity(np.eye(2), participation="min_separation", separation=1, max_participations=0)
    -> max_participations must be an
matrix_sensitivity(np.ones(10**5), steps=10**5, participation="cyclic", separation=1) -> must need at most
tree_sensitivity(2, participation="single").mechanism(0.0) -> noise_multiplier must be
tree_sensitivity(2**22 + 1, participation="cyclic", separation=2**21) -> steps must be at most
tree_sensitivity(4, participation="single", nodes="left") -> nodes must be
cyclic_poisson(SHIFT, **POISSON) -> lower triangular
cyclic_poisson([1, 1, 1], **POISSON) -> at most 2 bands
cyclic_poisson(np.ones((4, 3)), **POISSON) -> of shape \(4, 4\)
conditional_composition(**EVERY | {"strategy": [0.0, 1.0], "steps": 1}) -> not zero among its first 1
conditional_composition(**EVERY | {"noise_multiplier": 1e-200}) -> noise_multiplier must be at least
conditional_composition(**EVERY | {"strategy": [1.0]}) -> needs steps
conditional_composition(**EVERY | {"strategy": np.eye(3), "steps": 3}) -> takes no steps
conditional_composition(**EVERY | {"strategy": np.eye(193)}) -> rows and steps of strategy must be at most
conditional_composition(**EVERY | {"strategy": np.ones(513), "steps": 600}) -> bands of strategy must be at most
inverse_sensitivity([1.0, -3.0], steps=2000, participation="single") -> well-conditioned
inverse_sensitivity([[1.0, 2.0]], steps=None, participation="single") -> must be square
strategy_of_inverse([0.0, 1.0], steps=4) -> first coefficient that is not 0
strategy_of_inverse([1.0, -3.0], steps=2000) -> well-conditioned
strategy_of_inverse([1e-9, 1.0], steps=40) -> well-conditioned
strategy_of_inverse([0.0], steps=4) -> inverse must have one or two dimensions
strategy_of_inverse([1.0], steps=None) -> needs steps
strategy_of_inverse([[1.0]], steps=4) -> takes no steps
strategy_of_inverse([[1.0, 2.0]], steps=None) -> must be square
strategy_of_inverse([[1.0, 1.0], [1.0, 1.0]], steps=None) -> singular
strategy_of_inverse([[1.0, 0.0], [1.0, 1e-12]], steps=None) -> well-conditioned
strategy_of_inverse([1e-309, 5e-310], steps=3) -> inverse must not be so small
strategy_of_inverse(np.eye(2) * 3e-309, steps=None) -> inverse must not be so small
buffered_coefficients([0.5, 0.6, 0.1], [0.1, 0.2], steps=3) -> scales must be one number or as long
buffered_coefficients([0.5], [0.1], steps=2**25) -> steps must be at most
buffered_coefficients([], [], steps=3) -> decays must be one-dimensional and not empty
buffered_coefficients([1.0, 1.0], [1e308, 1e308], steps=3) -> scales must
balls_in_bins(**BINS | {"strategy": [1.0]}) -> needs steps
balls_in_bins(**BINS | {"strategy": [[1.0]], "steps": 1}) -> takes no steps
balls_in_bins(**BINS | {"strategy": [0.0], "steps": 4}) -> not zero
balls_in_bins(**BINS | {"strategy": [1.0], "steps": 4, "bins": 5}) -> bins must be at most
balls_in_bins(**BINS | TINY) -> noise_multiplier must be at least
estimate_balls_in_bins_delta(**IN_BINS | TINY) -> noise_multiplier must be at least
estimate_min_separation_delta(**APART | TINY) -> noise_multiplier must be at least
estimate_min_separation_delta(**APART | {"separation": 1})
    -> bands of strategy must be at most separation \(1\), not 2
estimate_min_separation_delta(**APART | {"strategy": [[1.0, 0.0], [0.0, 1.0]]}) -> strategy must
estimate_min_separation_delta(**APART | {"samples": 1}) -> samples must
estimate_min_separation_delta(**APART | {"confidence": 1.0}) -> confidence must
estimate_balls_in_bins_delta(**IN_BINS | {"samples": 1}) -> samples must
estimate_balls_in_bins_delta(**IN_BINS | {"confidence": 1.0}) -> confidence must
estimate_min_separation_delta(**APART | {"steps": 2**40}) -> steps must be at most the largest supported
min_separated_poisson(**SEPARATED | {"separation": 1}) -> at most 1 bands, the separation
min_separated_poisson(**SEPARATED | {"steps": 2**40}) -> steps must be at most the largest supported
min_separated_poisson(**SEPARATED | {"strategy": [[1.0, 0.0], [0.0, 1.0]]}) -> strategy must be of shape \(4, 4\)
min_separated_poisson(**SEPARATED | {"warm_start": 1}) -> TypeError: warm_start must be True or False
min_separated_poisson(**SEPARATED).delta(-1.0) -> epsilon must
min_separated_poisson(**SEPARATED).epsilon(1.0) -> delta must
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call: str, reason: str) -> None:
    """Every argument is named, with its domain; wrong types are told from wrong values."""
    refused_calls.check(call, reason, NAMES)
