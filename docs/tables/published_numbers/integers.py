"""Published numbers of noise on the integers and of secure aggregation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import hockeystick as hs
from hockeystick import training
from published_numbers.value import Ends, Value, epsilon

DISCRETE = "Kairouz, Liu and Steinke 2021 (2102.06387)"
SKELLAM = "Agarwal, Kairouz and Liu 2021 (2110.04995)"
COMPUTED = "; computed by google-research/federated, distributed_dp/accounting_utils.py"


def aggregation(
    noise: Literal["discrete_gaussian", "skellam"],
    *,
    clients: int,
    dimension: int,
    clip_norm: float,
    granularity: float,
    noise_std: float,
    rounds: int,
) -> Callable[[], Ends]:
    """Return a function that gives the ends of epsilon at delta 1e-5 of secure aggregation."""

    def ends() -> Ends:
        found = training.secure_aggregation_parameters(
            num_clients=clients,
            dropouts=0,
            rounds=rounds,
            dimension=dimension,
            clip_norm=clip_norm,
            client_noise_std=noise_std,
            granularity=granularity,
            bits=20,
            noise=noise,
        )
        return hs.Accountant().compose(found.mechanism, found.steps).epsilon_bracket(1e-5)[:2]

    return ends


LARGE = {"clients": 100, "dimension": 256, "clip_norm": 10.0, "granularity": 0.01, "noise_std": 2.0, "rounds": 1}
COARSE = {"clients": 1000, "dimension": 1024, "clip_norm": 1.0, "granularity": 0.05, "noise_std": 0.1, "rounds": 20}
IN_WORDS = {
    "large": "100 clients, 256 coordinates, norm 10, granularity .01, noise 2 each, one round",
    "coarse": "1000 clients, 1024 coordinates, norm 1, granularity .05, noise .1 each, 20 rounds",
}

VALUES = [
    Value(
        f"distributed discrete Gaussian, {IN_WORDS['large']}: ε at δ = 1e-5",
        DISCRETE + COMPUTED,
        "2.1693506367839714",
        "upper bound",
        aggregation("discrete_gaussian", **LARGE),
        "ours has the losses of the sum of the noise",
    ),
    Value(
        f"the same, {IN_WORDS['coarse']}",
        DISCRETE + COMPUTED,
        "9.99169148004294",
        "upper bound",
        aggregation("discrete_gaussian", **COARSE),
        "ours has the losses of the sum of the noise",
    ),
    Value(
        f"Skellam, {IN_WORDS['large']}: ε at δ = 1e-5",
        SKELLAM + COMPUTED,
        "2.1693509354780254",
        "upper bound",
        aggregation("skellam", **LARGE),
        "another bound of the divergences, by the curvature of the noise",
    ),
    Value(
        f"the same, {IN_WORDS['coarse']}",
        SKELLAM + COMPUTED,
        "9.994070230042894",
        "upper bound",
        aggregation("skellam", **COARSE),
        "another bound of the divergences, by the curvature of the noise",
    ),
    Value(
        "discrete Gaussian noise 2, ten times: ε at δ = 1e-6",
        "Canonne, Kamath and Steinke 2020 (2004.00010); computed by dp_accounting 0.6.0, PLD with intervals of 1e-4",
        "8.303280558012364",
        "exact",
        epsilon(1e-6, (hs.DiscreteGaussian(2.0), 10)),
    ),
]
