"""What a mechanism is for a group of records that change together, of one person say, and the group's epsilon.

A group changes the input of a mechanism by up to k times what a record does. For noise, for choices by scores and for what is
zero-concentrated that is the same mechanism with other numbers; of Gaussian noise on a Poisson sample it is a mixture, since the number of the
group's records in a sample is binomial.

Where a step has no such mechanism, what is known of one record alone is chained over k data sets, each adjacent to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hockeystick._numeric.rounding import SHORT_SUM_UP, UP
from hockeystick._numeric.search import smallest_feasible
from hockeystick.accounting.composition import Composition
from hockeystick.mechanisms import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Dominating,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    MixtureOfGaussians,
    PermuteAndFlip,
    PoissonSampled,
    PrivateSelection,
    ZeroConcentratedDP,
)
from hockeystick.mechanisms.base import Adjacency, Mechanism

LARGEST = 1024.0  # of the epsilons of one record that are tried: powers of two
SLACK = 1e-9  # on a logarithm, for what rounding takes


def _less(value: float, size: int) -> float:
    """Return value/size, rounded down."""
    nearest = value / size
    return nearest if Fraction(nearest) * size <= value else math.nextafter(nearest, -math.inf)


def _more(value: float, size: int) -> float:
    """Return value * size, rounded up."""
    nearest = value * size
    return nearest if Fraction(nearest) >= Fraction(value) * size else math.nextafter(nearest, math.inf)


def of_group(step: Mechanism, size: int, adjacency: Adjacency) -> Mechanism | None:
    """Return the mechanism for a group; None if none is known, or its numbers leave their domains."""
    if size == 1:
        return step
    try:
        return OF_GROUP[type(step)](step, size, adjacency) if type(step) in OF_GROUP else None
    except (ValueError, OverflowError):
        return None


def _concentrated(step: ZeroConcentratedDP, size: int, _: Adjacency) -> Mechanism | None:
    if step.delta > 0.0:
        return None
    exact = step.xi > 0.0 and size <= 10**6
    common = math.fsum(size / i for i in range(1, size + 1)) if exact else size * (1.0 + math.log(size))
    return ZeroConcentratedDP(_more(_more(step.rho, size), size), step.xi * common * SHORT_SUM_UP)


def _sampled(step: PoissonSampled, size: int, adjacency: Adjacency) -> Mechanism | None:
    if step.sampling_rate == 0.0:
        return step
    if step.sampling_rate == 1.0:
        return of_group(step.mechanism, size, adjacency)
    if adjacency != "add_or_remove" or not isinstance(step.mechanism, Gaussian):
        return None
    return MixtureOfGaussians.of_group(step.mechanism.noise_multiplier, size, step.sampling_rate)


def _composed(step: Composed, size: int, adjacency: Adjacency) -> Mechanism | None:
    parts = [(of_group(part, size, adjacency), count) for part, count in step.steps]
    known = [(part, count) for part, count in parts if part is not None]
    return Composed(known) if len(known) == len(parts) else None


def _selected(step: PrivateSelection, size: int, adjacency: Adjacency) -> Mechanism | None:
    run = of_group(step.mechanism, size, adjacency)
    return None if run is None else PrivateSelection(run, step.count, step.mean, step.shape)


def _dominating(step: Dominating, size: int, adjacency: Adjacency) -> Mechanism | None:
    of_all = of_group(step.mechanism, size, adjacency) if step.grouped and step.failure == 0.0 else None
    return None if of_all is None else replace(step, mechanism=of_all, attained=None)


OF_GROUP: dict[type[Mechanism], Callable[[Any, int, Adjacency], Mechanism | None]] = {
    Gaussian: lambda step, size, _: Gaussian(_less(step.noise_multiplier, size)),
    Laplace: lambda step, size, _: Laplace(_less(step.noise_multiplier, size)),
    DiscreteGaussian: lambda step, size, _: DiscreteGaussian(step.noise_std, step.sensitivity * size),
    DiscreteLaplace: lambda step, size, _: DiscreteLaplace(step.inverse_scale, step.sensitivity * size),
    ExponentialMechanism: lambda step, size, _: ExponentialMechanism(_more(step.epsilon, size)),
    PermuteAndFlip: lambda step, size, _: PermuteAndFlip(_more(step.epsilon, size)),
    ZeroConcentratedDP: _concentrated,
    PoissonSampled: _sampled,
    Composed: _composed,
    PrivateSelection: _selected,
    Dominating: _dominating,
}


def has_chains(of_one: Composition) -> bool:
    """Say whether the data sets between two that differ by a group have the same accountant."""
    return of_one.adjacency == "replace" or of_one.num_records is None


def exact_epsilon(of_one: Composition, group_size: int, delta: float) -> float:
    """Return the epsilon of the group's own mechanisms; infinity if a step has none."""
    group: dict[Mechanism, int] = {}
    for step, count in of_one.ledger.items():
        of_all = of_group(step, group_size, of_one.adjacency)
        if of_all is None:
            return math.inf
        group[of_all] = group.get(of_all, 0) + count
    return Composition(group, of_one.adjacency).upper_epsilon(delta)


def chained_epsilon(of_one: Composition, group_size: int, delta: float) -> float:
    """Return the epsilon of group privacy, as `hockeystick.accounting.group_epsilon` says; infinity if no power of two up to 1024 is enough for one record."""
    if delta == 0.0:
        return group_size * of_one.upper_epsilon(0.0) * UP

    def excess(eps: float) -> float:
        ratio = math.log(group_size) if eps == 0.0 else _log_expm1(group_size * eps) - _log_expm1(eps)
        return of_one.upper_log_delta(eps) + ratio + SLACK - math.log(delta)

    return group_size * smallest_feasible(excess, most=LARGEST, tolerance=1e-6) * UP


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x))
