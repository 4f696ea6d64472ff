"""Federated learning that releases its last model: certified bounds, adjacency by one user or record replaced.

`trusted_aggregator*` follow Asoodeh, Chen, Calmon and Ozgur 2021, "Differentially Private Federated Learning: An
Information-Theoretic Perspective"; every user takes part in exactly one round.

`fedavg_*` and `fedprox_*` follow Sun, Shen and Tao 2024, "Convergent Differential Privacy Analysis for General Federated
Learning: the f-DP Perspective" (theorems numbered as in the version whose Theorem 12 is the bound for Noisy-FedAvg), with the
exact per-round sums and the exact optimum of its shifted interpolation in place of the printed closed forms, some of which
are false (`hockeystick.published`). Every client takes part in every round. `model_sensitivity` and `data_sensitivity` are the two
sides of their Theorem 10, for any steps.

`best` is the smallest of all certified bounds of the trusted aggregator where users take part once, `best_sampled` where every
round draws its own batch.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.federated.fedavg import (
    GdpLimit,
    fedavg_delta,
    fedavg_epsilon,
    fedavg_gdp,
    fedavg_gdp_limit,
    fedprox_delta,
    fedprox_epsilon,
    fedprox_gdp,
)
from hockeystick.federated.sensitivities import accumulated_step_size, data_sensitivity, model_sensitivity, step_sizes
from hockeystick.federated.trusted_aggregator import (
    best,
    best_sampled,
    trusted_aggregator,
    trusted_aggregator_batches,
    trusted_aggregator_random_stop,
)

__all__ = [
    "GdpLimit",
    "accumulated_step_size",
    "best",
    "best_sampled",
    "data_sensitivity",
    "fedavg_delta",
    "fedavg_epsilon",
    "fedavg_gdp",
    "fedavg_gdp_limit",
    "fedprox_delta",
    "fedprox_epsilon",
    "fedprox_gdp",
    "model_sensitivity",
    "step_sizes",
    "trusted_aggregator",
    "trusted_aggregator_batches",
    "trusted_aggregator_random_stop",
]


open_room(__name__)
