"""Utility: what no plan, comparison, rate or bound can be made of is refused with a reason."""

import math

import pytest

import refused_calls
from hockeystick import utility

SILOS = {"num_silos": 12, "num_records": 500, "dimension": 5, "lipschitz": 1.0, "diameter": 2.0, "smoothness": 1.0}
AGGREGATOR = {"num_users": 60, "batch_size": 3, "noise_std": 1.5, "smoothness": 1.0, "strong_convexity": 0.5}
NAMES = {
    **vars(utility),
    "math": math,
    "PLAN": {**SILOS, "trust": "inter-silo", "strong_convexity": 0.1, "epsilon": 2.0, "delta": 1e-5, "max_rounds": 8},
    "RATES": {**SILOS, "lipschitz": 1.5, "epsilon": 1.2, "delta": 1e-5, "gradient_std": 0.7, "heterogeneity": 2.0},
    "RISK": {**AGGREGATOR, "dimension": 7, "gradient_bound": 2.0, "gradient_std": 1.0, "smoothness": 3.0},
    "DELTA": {**AGGREGATOR, "lipschitz": 1.0, "radius": 1.0},
    "TRAINING": {
        "num_clients": 10, "num_records": 1000, "noise_std": 0.05, "lipschitz": 1.5, "smoothness": 1.0,
        "learning_rate": 0.5, "diameter": 0.04, "delta": 1e-6, "rounds": [1],
    },
}  # fmt: skip
REFUSED = r"""
analyses(**TRAINING | {"clients_per_round": 11}) -> clients_per_round must be at most num_clients \(10\)
analyses(**TRAINING | {"order": "other"}) -> order must be one of
analyses(**TRAINING | {"index": 2}) -> index must be 1 for order='random'
analyses(**TRAINING | {"order": "cyclic", "batch_size": 300}) -> must divide num_clients num_records
analyses(**TRAINING | {"order": "cyclic", "batch_size": 500, "index": 3})
    -> index must be at most the rounds of a pass \(2\)
analyses(**TRAINING | {"rounds": [3, 2]}) -> rounds must be one number, or increasing ones
analyses(**TRAINING | {"rounds": [0, 2]}) -> rounds\[0\] must be
analyses(**TRAINING | {"rounds": []}) -> rounds must be one number, or increasing ones
plan(**PLAN | {"trust": "nobody"}) -> trust must be one of
plan(**PLAN | {"lipschitz": 1e300}) -> lipschitz must lie in \[1e-60, 1e60\]
plan(**PLAN | {"strong_convexity": 2.0}) -> strong_convexity must be at most smoothness \(1\)
plan(**PLAN | {"max_batch_size": 501}) -> max_batch_size must be at most num_records \(500\)
plan(**PLAN | {"trust": "last-iterate", "strong_convexity": 0.0}) -> strong_convexity must be positive
plan(**PLAN | {"trust": "last-iterate", "silos_per_round": 1}) -> every silo takes part once
plan(**PLAN | {"trust": "shuffle"}) -> for the shuffler to help
trusted_aggregator_excess_risk(**RISK | {"batch_size": 2000}) -> at most num_users
trusted_aggregator_excess_risk(**RISK | {"strong_convexity": 0.0}) -> must be positive
trusted_aggregator_delta(1.0, **DELTA | {"num_users": 10**9}) -> must be at most 10000000
risk_rates(**RATES | {"gradient_std": 2.0}) -> gradient_std must be at most lipschitz \(1.5\)
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call: str, reason: str) -> None:
    """Arguments outside their domain are named, and so is what makes a plan impossible."""
    refused_calls.check(call, reason, NAMES)
