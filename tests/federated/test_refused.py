"""Federated bounds: what is outside its domain is refused with its name and a reason; project/test_arguments has each number alone."""

import pytest

import federations
import refused_calls
from hockeystick import federated

BATCHES = {
    "batch_sizes": [10, 5], "learning_rate": 0.5, "noise_std": 1.5, "lipschitz": 1.0, "radius": 1.0, "loss": "convex",
}  # fmt: skip
NAMES = {**vars(federated), **vars(federations), "BATCHES": BATCHES}
REFUSED = r"""
fedavg_gdp(**FEDAVG | {"rounds": True}) -> TypeError: rounds
fedavg_gdp(**FEDAVG | {"noise_std": 1j}) -> TypeError: noise_std
trusted_aggregator(None, **AGGREGATOR) -> TypeError: epsilon must
model_sensitivity(0.1, smoothness=1.0) -> local steps as their last axis
model_sensitivity([], smoothness=1.0) -> local steps as their last axis
model_sensitivity([-0.1], smoothness=1.0) -> step_sizes\[0\] must be non-negative
model_sensitivity([0.1], smoothness=2.0, prox=2.0) -> prox must be above smoothness \(2.0\), not 2.0
data_sensitivity([0.6], num_clients=1, clip_norm=1.0, prox=2.0) -> at most 1/prox \(0.5\), not 0.6
step_sizes(rounds=1, local_steps=1, learning_rate=1.0, schedule="linear") -> schedule must be one of
trusted_aggregator_batches(1.0, **BATCHES | {"batch_sizes": [10, 0]}) -> batch_sizes\[1\] must be an integer
trusted_aggregator_batches(1.0, **BATCHES | {"batch_sizes": []}) -> batch_sizes must be one-dimensional and not empty
trusted_aggregator_batches(1.0, **BATCHES | {"learning_rate": [0.5] * 3})
    -> learning_rate must be a number or of shape \(2,\)
trusted_aggregator_batches(1.0, **BATCHES | {"smoothness": 5.0}) -> learning_rate must be at most 2/smoothness
trusted_aggregator_batches(1.0, **BATCHES | {"loss": "concave"}) -> loss must be one of
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call: str, reason: str) -> None:
    """An argument outside its domain is named, with its value and its domain."""
    refused_calls.check(call, reason, NAMES)
