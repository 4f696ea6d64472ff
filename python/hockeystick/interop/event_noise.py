"""Events of noise as our mechanisms, without sampling or composition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from hockeystick.correlated_noise import tree_sensitivity
from hockeystick.mechanisms import (
    ApproximateDP,
    Discrete,
    DiscreteLaplace,
    Gaussian,
    MixtureOfGaussians,
    RandomizedResponse,
    TruncatedPoissonSampled,
)
from hockeystick.mechanisms.base import Mechanism

Relation: TypeAlias = Literal["add_or_remove", "replace", "replace_special"]
Steps: TypeAlias = list[tuple[Mechanism, int]]

NON_PRIVATE = ApproximateDP(0.0, 1.0)  # delta is 1 at every epsilon


def noise(kind: Callable[[float], Mechanism]) -> Callable[[Relation, float], Steps]:
    """Return a reader of the events of one kind of noise."""

    def read(relation: Relation, noise_multiplier: float) -> Steps:
        del relation
        return [(NON_PRIVATE if noise_multiplier == 0 else kind(noise_multiplier), 1)]

    return read


def discrete_laplace(relation: Relation, noise_parameter: float, sensitivity: int) -> Steps:
    """Read discrete Laplace noise."""
    del relation
    return [(NON_PRIVATE if noise_parameter == 0 else DiscreteLaplace(noise_parameter, sensitivity), 1)]


def mixture(
    relation: Relation, standard_deviation: float, sensitivities: Sequence[float], sampling_probs: Sequence[float]
) -> Steps:
    """Read a mixture of Gaussians."""
    del relation
    if not any(sensitivities):
        return []
    if standard_deviation == 0:
        return [(NON_PRIVATE, 1)]
    return [(MixtureOfGaussians(standard_deviation, sensitivities, sampling_probs), 1)]


def truncated(
    relation: Relation,
    dataset_size: int,
    sampling_probability: float,
    truncated_batch_size: int,
    noise_multiplier: float,
) -> Steps:
    """Read Gaussian noise on truncated Poisson samples."""
    if relation == "replace_special":
        msg = "a special record that is sampled takes a place in the batch: it is not as good as none"
        raise ValueError(msg)
    if sampling_probability == 0:
        return []
    if noise_multiplier == 0:
        return [(NON_PRIVATE, 1)]
    noise = Gaussian(noise_multiplier)
    return [(TruncatedPoissonSampled(noise, dataset_size, sampling_probability, truncated_batch_size), 1)]


def tree(relation: Relation, noise_multiplier: float, step_counts: int | Sequence[int]) -> Steps:
    """Read tree aggregation over one epoch."""
    if relation == "add_or_remove":
        msg = "a record more would move the others to other steps"
        raise ValueError(msg)
    longest = max(step_counts, default=0) if isinstance(step_counts, Sequence) else step_counts
    if longest == 0:
        return []
    sensitivity = tree_sensitivity(longest, participation="single")  # the record is in one tree of the epoch
    return [(NON_PRIVATE if noise_multiplier == 0 else sensitivity.mechanism(noise_multiplier), 1)]


def randomized_response(relation: Relation, noise_parameter: float, num_buckets: int) -> Steps:
    """Read randomised response; a special record answers uniformly."""
    if num_buckets == 1:
        return []
    response = RandomizedResponse(noise_parameter, num_buckets)
    if relation != "replace_special":
        return [(response, 1)]
    other = response.noise_parameter / response.num_buckets  # the special record answers uniformly
    rest = 1.0 / response.num_buckets
    answer = Discrete([1.0 - (num_buckets - 1) * other, (num_buckets - 1) * other], [rest, 1.0 - rest])
    return [(answer, 1)]


def approximate(relation: Relation, epsilon: float, delta: float) -> Steps:
    """Read an (epsilon, delta) guarantee."""
    del relation
    return [(NON_PRIVATE if epsilon == math.inf or delta == 1 else ApproximateDP(epsilon, delta), 1)]


def pure(relation: Relation, epsilon: float) -> Steps:
    """Read an epsilon guarantee."""
    return approximate(relation, epsilon, 0.0)
