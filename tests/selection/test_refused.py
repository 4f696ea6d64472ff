"""What the mechanisms that choose refuse: each error names the argument, its value and its domain."""

from __future__ import annotations

import math

import pytest

import hockeystick as hs
import refused_calls
from hockeystick import selection

NAMES = vars(selection) | {
    "hs": hs,
    "inf": math.inf,
    "replaced": lambda mechanism: hs.Accountant("replace").compose(mechanism),
}
TABLE = r"""
noisy_maximum("uniform", 1.0) -> noise must be one of
noisy_maximum("gaussian", 1.0) -> num_candidates must be given
noisy_maximum("gumbel", 0.0) -> noise_multiplier must be positive
noisy_maximum("gumbel", 1e-3) -> noise_multiplier must be at least
noisy_maximum("gaussian", 1.0, num_candidates=1) -> num_candidates must be an integer
replaced(GaussianNoisyMaximum(1.0, 5, True)) -> use monotone=False
GaussianNoisyMaximum(1e-3, 5) -> noise_multiplier must lie in \[0.01
GaussianNoisyMaximum(1.0, 5, 1) -> TypeError: monotone must be True or False
LaplaceNoisyMaximum(1e-3) -> noise_multiplier must be at least
replaced(LaplaceNoisyMaximum(1.0, True)) -> use monotone=False
AboveThreshold(-1.0, 1.0) -> threshold_noise must be positive
AboveThreshold(1.0, 0.0) -> query_noise must be positive
AboveThreshold(1.0, 1.0, 0) -> hits must be an integer
AboveThreshold(1.0, 1.0, 1.5) -> TypeError: hits must be an integer
AboveThreshold(1.0, 1.0, 1, "yes") -> TypeError: monotone must be True or False
AboveThreshold(1e-3, 1e-3) -> at most 600 together
replaced(AboveThreshold(1.0, 1.0, monotone=True)) -> use monotone=False
GaussianAboveThreshold(1.0, 1e-3, 5) -> query_noise must lie in \[0.01
GaussianAboveThreshold(1.0, 1.0, 0) -> num_queries must be an integer
OptimalPartitions(0.0, 0.1) -> epsilon must lie in
OptimalPartitions(1.0, 0.0) -> delta must lie in
OptimalPartitions(1.0, 0.1, 0) -> partitions must be an integer
OptimalPartitions(1.0, 0.1, 10**7) -> partitions must be at most
ThresholdedPartitions(3.0, 1.0) -> TypeError: noise must be Laplace or Gaussian
ThresholdedPartitions(hs.Laplace(1.0), inf) -> threshold must lie in
OptimalPartitions(1.0, 0.1).keep_probability(-1) -> users must be an integer
OptimalPartitions(1.0, 0.1).keep_probability(1.5) -> TypeError: users must be an integer
replaced(OptimalPartitions(1.0, 0.1)) -> adjacency='replace'
votes_renyi([3.0], 1.0, [2.0]) -> votes must be of shape
votes_renyi([3.0, -1.0], 1.0, [2.0]) -> votes\[1\] must
votes_renyi([3.0, 1.0], 0.0, [2.0]) -> noise must lie in
votes_renyi([3.0, 1.0], 1.0, [1.0]) -> orders must lie in
votes_epsilon([3.0, 1.0], 1.0, 0.0) -> delta must lie in
gaussian_votes("1") -> TypeError: noise must be a real number
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(TABLE))
def test_refused(call, reason):
    """Numbers outside their domains are named."""
    refused_calls.check(call, reason, NAMES)
