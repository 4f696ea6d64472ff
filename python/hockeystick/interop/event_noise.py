"""Events of noise as our mechanisms, without sampling or composition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from hockeystick._checks import count_scalar, non_negative_scalar, positive_scalar
from hockeystick._numeric.rounding import UP
from hockeystick.correlated_noise import tree_sensitivity
from hockeystick.mechanisms import (
    ApproximateDP,
    Discrete,
    DiscreteGaussian,
    DiscreteGaussianVector,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    MixtureOfGaussians,
    PermuteAndFlip,
    RandomizedResponse,
    TruncatedPoissonSampled,
    ZeroConcentratedDP,
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


def discrete_gaussian(relation: Relation, sigma: float, sensitivity: float, dimension: int | None) -> Steps:
    """Read discrete Gaussian noise on one integer, or on a vector of integers; where it cannot move, or sigma is beyond our domain, by its rho.

    In these cases coordinate j moves by s_j, and its divergence of order a is at most a s_j^2/(2 sigma^2) (Canonne,
    Kamath and Steinke 2020, Proposition 5). Divergences of independent coordinates add up to a times |s|^2/(2 sigma^2).
    """
    sensitivity = non_negative_scalar("sensitivity", sensitivity)
    dimension = None if dimension is None else count_scalar("dimension", dimension)
    if sensitivity == 0.0:
        return []
    if sigma == 0:
        return [(NON_PRIVATE, 1)]
    if dimension == 1 and sensitivity.is_integer():
        return [(DiscreteGaussian(sigma, int(sensitivity)), 1)]
    if 1.0 <= sensitivity <= 1e9 and 1e-3 <= sigma <= 1e5:
        return [(DiscreteGaussianVector(sigma, sensitivity, dimension), 1)]
    moved = (2.0 if relation == "replace" else 1.0) * sensitivity / positive_scalar("sigma", sigma)
    return concentrated(relation, math.nextafter(0.5 * moved * moved * UP, math.inf), 0.0)


def concentrated(relation: Relation, rho: float, xi: float) -> Steps:
    """Read a bound xi + rho a of the Renyi divergences of all orders a."""
    del relation
    if math.inf in (rho, xi):
        return [(NON_PRIVATE, 1)]
    return [(ZeroConcentratedDP(rho, xi), 1)] if rho != 0 or xi != 0 else []


def mixture(
    relation: Relation, standard_deviation: float, sensitivities: Sequence[float], sampling_probs: Sequence[float]
) -> Steps:
    """Read a mixture of Gaussians."""
    if relation == "replace":
        msg = (
            "neighboring_relation must be `ADD_OR_REMOVE_ONE` or `REPLACE_SPECIAL`: the event says what one record adds to a "
            "sum, not how two that are exchanged are sampled"
        )
        raise ValueError(msg)
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
    if sampling_probability == 0 or count_scalar("truncated_batch_size", truncated_batch_size, 0) == 0:
        return []
    if noise_multiplier == 0:
        return [(NON_PRIVATE, 1)]
    noise = Gaussian(noise_multiplier)
    zeroed_out = relation == "replace_special"  # a special record that is sampled takes a place in the batch
    step = TruncatedPoissonSampled(noise, dataset_size, sampling_probability, truncated_batch_size, zeroed_out)
    return [(step, 1)]


def tree(relation: Relation, noise_multiplier: float, step_counts: int | Sequence[int]) -> Steps:
    """Read tree aggregation over one epoch."""
    if relation == "add_or_remove":
        msg = "a record more would move the others to other steps"
        raise ValueError(msg)
    longest = max(step_counts, default=0) if isinstance(step_counts, Sequence) else step_counts
    if longest == 0:
        return []
    sensitivity = tree_sensitivity(longest, participation="single")  # the record is in one tree of the epoch
    return [(NON_PRIVATE if noise_multiplier == 0 else sensitivity.mechanism(noise_multiplier).mechanism, 1)]


def randomized_response(relation: Relation, noise_parameter: float, num_buckets: int) -> Steps:
    """Read randomised response; a special record answers uniformly."""
    if relation == "add_or_remove":
        msg = "neighboring_relation must be `REPLACE_ONE` or `REPLACE_SPECIAL`: a response is replaced, not added or removed"
        raise ValueError(msg)
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


def exponential(relation: Relation, epsilon: float) -> Steps:
    """Read the exponential mechanism, whose losses lie in an interval of length epsilon."""
    del relation
    return _choice(ExponentialMechanism, epsilon)


def permute_and_flip(relation: Relation, epsilon: float) -> Steps:
    """Read permute-and-flip, whose curve is that of Laplace noise at distance epsilon."""
    if relation == "replace":
        msg = (
            "neighboring_relation must be `ADD_OR_REMOVE_ONE` or `REPLACE_SPECIAL`: epsilon is taken for one relation, and as "
            "dp_accounting's two accountants differ about replacement, the event does not say whether it is doubled there"
        )
        raise ValueError(msg)
    return _choice(PermuteAndFlip, epsilon)


def _choice(kind: Callable[[float], Mechanism], epsilon: float) -> Steps:
    if epsilon == 0:
        return []
    return [(NON_PRIVATE if epsilon == math.inf else kind(epsilon), 1)]
