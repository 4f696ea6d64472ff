"""Descriptions of trainings: what describes none is refused with the argument's name and a reason."""

from __future__ import annotations

import math

import pytest

import hockeystick as hs
import refused_calls
from hockeystick import training

NAMES = {
    **vars(training),
    "hs": hs,
    "math": math,
    "FEDERATION": {
        "clients": 1000,
        "clients_per_round": 50,
        "rounds": 40,
        "clip_norm": 0.5,
        "noise_std": 0.75,
        "noise_on": "sum",
        "sampling": "poisson",
    },
    "SECURE": {
        "clients": 1000,
        "dropouts": 100,
        "rounds": 20,
        "dimension": 4096,
        "clip_norm": 1.0,
        "client_noise_std": 0.1,
        "granularity": 0.002,
        "bits": 20,
    },
    "USERS": {
        "users": 1000,
        "records": 3000,
        "records_per_user": 4,
        "batch_size": 300,
        "users_per_step": 100,
        "steps": 1,
        "noise_multiplier": 1.5,
    },
    "STATED": {"records": 60_000, "batch_size": 256, "epochs": 15, "noise_multiplier": 1.1, "delta": 1e-5},
}
REFUSED = r"""
hs.federated_parameters(**FEDERATION | {"clients_per_round": 1001}) -> at most clients
hs.federated_parameters(**FEDERATION | {"sampling": "all"}) -> with sampling
hs.federated_parameters(**FEDERATION | {"clients": 0}) -> clients must be
hs.federated_parameters(**FEDERATION | {"rounds": 0}) -> rounds must be
hs.federated_parameters(**FEDERATION | {"rounds": 2.5}) -> TypeError: rounds must be
hs.federated_parameters(**FEDERATION | {"clip_norm": math.inf}) -> clip_norm must be
hs.federated_parameters(**FEDERATION | {"noise_std": 0.0}) -> noise_std must be
hs.federated_parameters(**FEDERATION | {"noise_std": math.nan}) -> noise_std must be
hs.federated_parameters(**FEDERATION | {"noise_on": "server"}) -> noise_on must be
hs.federated_parameters(**FEDERATION | {"sampling": "uniform"}) -> sampling must be
hs.federated_parameters(**FEDERATION | {"sampling": True}) -> TypeError: sampling must be
hs.federated_parameters(**FEDERATION | {"noise_std": 1e+300, "clip_norm": 1e-300}) -> over clip_norm
secure_aggregation_parameters(**SECURE | {"dropouts": 1000}) -> dropouts must be at most clients - 1 \(999\), not 1000
secure_aggregation_parameters(**SECURE | {"dropouts": -1}) -> dropouts must be an integer in
secure_aggregation_parameters(**SECURE | {"bits": 12})
    -> bits must lie in \[13, 64\], as the noise of all clients has the deviation
secure_aggregation_parameters(**SECURE | {"bits": 65}) -> bits must lie in
secure_aggregation_parameters(**SECURE | {"granularity": 0.0}) -> granularity must be positive
secure_aggregation_parameters(**SECURE | {"beta": 1.0}) -> beta must lie in \(0, 1\), not 1
secure_aggregation_parameters(**SECURE | {"rounding": "stochastic"}) -> rounding must be one of
secure_aggregation_parameters(**SECURE | {"granularity": 1e-10, "bits": 64})
    -> clip_norm over granularity, rounded, must lie in \[1, 1e9\]
secure_aggregation_parameters(**SECURE | {"client_noise_std": 1000.0, "bits": 60})
    -> client_noise_std over granularity must lie in
secure_aggregation_parameters(**SECURE | {"granularity": 1e-320}) -> client_noise_std over granularity must be finite
secure_aggregation_parameters(**SECURE | {"clients": 10.5}) -> TypeError: clients must be an integer
user_level_parameters(**USERS | {"records": 5000})
    -> records must be at most users times records_per_user \(4000\), not 5000
user_level_parameters(**USERS | {"batch_size": 3001}) -> batch_size must be at most records \(3000\), not 3001
user_level_parameters(**USERS | {"users_per_step": 1001}) -> users_per_step must be at most users \(1000\), not 1001
user_level_parameters(**USERS | {"records_per_user": 1001}) -> group_size must be at most .*\(1000\)
user_level_parameters(**USERS | {"noise_multiplier": 0.0}) -> noise_multiplier must be positive
user_level_parameters(**USERS | {"steps": 0}) -> steps must be an integer
bound_owners([["a"]], 0) -> most must be an integer
bound_owners([["a"], "Ada"], 1) -> TypeError: owners\[1\] must be the ids
bound_owners([1, 2], 1) -> TypeError: owners\[0\] must be the ids
bound_owners([[["a"]]], 1) -> TypeError: owners\[0\] must have hashable
adaptive_clipping_noise(0.0, 1.0) -> noise_multiplier must be positive and finite, not 0.0
adaptive_clipping_noise(math.inf, 1.0) -> noise_multiplier must be positive and finite, not inf
adaptive_clipping_noise(math.nan, 1.0) -> noise_multiplier must be positive and finite, not nan
adaptive_clipping_noise("1", 1.0) -> TypeError: noise_multiplier must be a real number, not '1'
adaptive_clipping_noise(1.0, 0.0) -> count_noise must be positive and finite, not 0.0
adaptive_clipping_noise(1.0, math.inf) -> count_noise must be positive and finite, not inf
adaptive_clipping_noise(1.0, True) -> TypeError: count_noise must be a real number, not True
adaptive_clipping_noise(1.0, 0.5) -> count_noise must be above half the noise_multiplier \(1\.0\), not 0\.5
adaptive_clipping_noise(1.0, 0.1) -> count_noise must be above half the noise_multiplier \(1\.0\), not 0\.1
adaptive_clipping_noise(1.7e+308, math.nextafter(8.5e+307, math.inf)) -> count_noise .* beyond the doubles
hs.draw_participants(0.5, [1, 2]) -> TypeError: mechanism must be
hs.draw_participants(hs.Gaussian(1.0), [1, 2, 1]) -> each client once
hs.draw_participants(hs.Gaussian(1.0), [1], 7) -> TypeError: rng must be
hs.draw_participants(hs.RandomAllocation(hs.Gaussian(1.0), 2), [1]) -> draw_batches
hs.draw_batches(hs.Gaussian(1.0), [1]) -> TypeError: mechanism must be RandomAllocation
hs.draw_participants(hs.FixedSizeSampled(hs.Gaussian(1.0), 6, 3, replacement=False), range(7)) -> must be the 6 clients
hs.draw_participants(hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 6, 0.5, 3), range(7)) -> at most the 6 clients
hs.privacy_statement(**STATED | {"batch_size": 60001})
    -> batch_size must be at most the number of records \(60000\), not 60001
hs.privacy_statement(**STATED | {"steps": 3})
    -> exactly one of epochs and steps must be given, not epochs=15 and steps=3
hs.privacy_statement(**STATED | {"epochs": None})
    -> exactly one of epochs and steps must be given, not epochs=None and steps=None
hs.privacy_statement(**STATED | {"sampling_rate": 0.0}) -> sampling_rate must lie in \(0, 1\], not 0\.0
hs.privacy_statement(**STATED | {"sampling": "bernoulli"}) -> sampling must be one of
hs.privacy_statement(**STATED | {"format": "html"}) -> format must be one of
hs.privacy_statement(**STATED | {"delta": 0.0}) -> delta must lie in \(0, 1\), not 0\.0
hs.privacy_statement(**STATED | {"noise_multiplier": 0.0}) -> noise_multiplier must be positive and finite, not 0\.0
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """What is outside its domain is named with its value, and wrong types are told from wrong values."""
    refused_calls.check(call, reason, NAMES)
