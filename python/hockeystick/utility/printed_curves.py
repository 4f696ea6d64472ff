"""The curves that papers print, to be compared with what holds, and never to be relied on."""

from __future__ import annotations

import math
import warnings
from functools import partial

import numpy as np

from hockeystick import federated, published
from hockeystick._checks import Array
from hockeystick.kernels import gaussian_epsilon
from hockeystick.utility.analysis_curves import (
    ABOVE,
    ONE_STEP,
    Curve,
    aggregation,
    aggregator_reason,
    federation,
    inverses,
    without,
)
from hockeystick.utility.training import Training

__all__ = ["printed_aggregator", "printed_fedavg", "printed_inter_silo"]


def printed_fedavg(training: Training, rounds: Array) -> Curve:
    """Return what Theorem 12(a) of Sun, Shen and Tao prints."""
    if not training.everybody:
        return without(rounds, "needs every client in every round")
    if training.smoothness == 0.0:
        return without(rounds, "needs a positive smoothness: the formula divides by it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", published.UnsoundBoundWarning)
        mu = published.fedavg_gdp(**federation(training, rounds))
    return Curve(np.asarray(gaussian_epsilon(mu, training.delta)))


def printed_aggregator(training: Training, rounds: Array) -> Curve:
    """Return Theorem 2 of Asoodeh, Chen, Calmon and Ozgur, up to the rounds in which no client takes part twice."""
    if reason := aggregator_reason(training):
        return without(rounds, reason)
    most = training.num_clients // training.clients_per_round

    def delta(count: int, eps: float) -> dict[str, float]:
        users = count * training.clients_per_round
        total = federated.trusted_aggregator(
            eps, num_users=users, **aggregation(training)
        )  # with m/users before the sum
        return {"delta": float(total) * users / training.num_clients}

    values = [
        inverses(partial(delta, count), training.delta)["delta"] if count <= most else np.nan
        for count in rounds.tolist()
    ]
    if np.isfinite(values).any():
        return Curve(np.array(values))
    above = any(math.isinf(value) for value in values)
    return Curve(
        np.array(values), ABOVE if above else f"holds up to round {most}, in which each client has taken part once"
    )


def printed_inter_silo(training: Training, rounds: Array) -> Curve:
    """Invert the noise of Theorem D.1 of Lowy and Razaviyayn, where its conditions on epsilon and the batch hold."""
    if training.local_steps > 1:
        return without(rounds, ONE_STEP.format(training.local_steps))
    if training.order == "cyclic":
        return without(rounds, "needs batches drawn at random; here the order is fixed")
    values = np.full(rounds.shape, np.nan)
    for place, count in enumerate(rounds.tolist()):
        budget = {"num_records": training.num_records, "rounds": count, "delta": training.delta}
        epsilon = (
            float(published.noisy_mb_sgd_sigma(lipschitz=training.lipschitz, epsilon=1.0, **budget))
            / training.noise_std
        )
        try:
            within = published.min_batch_size(epsilon=epsilon, **budget) <= training.batch_size
        except ValueError:
            within = False
        values[place] = epsilon if within else np.nan
    reason = (
        "holds for epsilon up to 2 ln(2/delta) and batches of at least K_min only" if np.isnan(values).all() else ""
    )
    return Curve(values, reason)
