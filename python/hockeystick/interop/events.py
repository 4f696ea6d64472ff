"""Events of dp_accounting as mechanisms, read by class name and fields; dp_accounting itself is not needed.

An event is one of its `DpEvent` objects, or what its `to_named_tuple` returns. The name of the class and the whole set
of its fields must be known, since releases disagree about both under one version number: whatever else there is (a
new field, too) is unsupported rather than guessed.

Three relations: "add_or_remove", "replace", and "replace_special", in which a record is replaced by a special one that
contributes nothing (Kairouz et al. 2021, Definition 1.1). Noise added to sums, with Poisson sampling too, leaks under the
third exactly what it leaks under the first: given the other records' coins, the two data sets differ by one summand.

Poisson samples of what is zero-concentrated have bounds of their Renyi divergences where a record is added or removed. With the record the output has the law M = (1 - q) Q + q P, without it Q. Divergences are jointly quasi-convex, so that the other
records may be taken as given. Let r = P/Q. For orders a = 2, 3, ...

- of M from Q: E_Q (1 - q + q r)^a is a binomial sum of the moments E_Q r^k, which are 1 for k = 0, 1 and at most e^{(k - 1)(xi + k rho)}
  for others. Gaussian noise with 1/(2 sigma^2) = rho attains it, xi being 0;
- of Q from M: E_Q (1 + t)^{-n} with n = a - 1 and t = q (r - 1) > -q. As E_Q t = 0, this is 1 + E_Q R(t) t^2 with
  R(t) = n (n + 1) int_0^1 (1 - u) (1 + u t)^{-n-2} du, which falls with t. So it is at most 1 + R(-q) q^2 E_Q (r - 1)^2, where
  E_Q (r - 1)^2 <= e^{xi + 2 rho} - 1 and R(-q) q^2 = (1 - q)^{-n} - 1 - n q <= n (n + 1) q^2 (1 - q)^{-n-2}/2. The divergence is at most
  log 1/(1 - q), too, since M >= (1 - q) Q.

Both are at most xi + a rho, that of the mechanism without sampling.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from inspect import Parameter, signature
from typing import Any, Literal, TypeAlias

import numpy as np

from hockeystick._checks import count_scalar, non_negative_scalar, positive_scalar, probability_scalar
from hockeystick._numeric.rounding import DOWN, UP
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.zcdp import zcdp_rho
from hockeystick.correlated_noise import tree_sensitivity
from hockeystick.mechanisms import (
    ApproximateDP,
    Composed,
    Discrete,
    DiscreteGaussian,
    DiscreteGaussianVector,
    DiscreteLaplace,
    ExponentialMechanism,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    MixtureOfGaussians,
    PermuteAndFlip,
    PoissonSampled,
    PrivateSelection,
    RandomAllocation,
    RandomizedResponse,
    RenyiDP,
    TruncatedPoissonSampled,
    ZeroConcentratedDP,
)
from hockeystick.mechanisms.base import Adjacency, Mechanism

__all__ = ["UnsupportedEvent", "accountant_of", "steps_of"]

Relation: TypeAlias = Literal["add_or_remove", "replace", "replace_special"]
RELATIONS: dict[Relation, str] = {  # with dp_accounting's names
    "add_or_remove": "ADD_OR_REMOVE_ONE",
    "replace": "REPLACE_ONE",
    "replace_special": "REPLACE_SPECIAL",
}
Steps: TypeAlias = list[tuple[Mechanism, int]]

ORDERS = (*range(2, 65), 80, 96, 128, 192, 256, 384, 512, 768, 1024)
MARGIN = 1.0 + 1e-9  # exponents of up to 10^6 lose 1e-10 by rounding
SMALLEST = 1e-300  # of rho and q; raising either raises the bound
NON_PRIVATE = ApproximateDP(0.0, 1.0)  # delta is 1 at every epsilon


class UnsupportedEvent(ValueError):
    """An event for which there is no mechanism.

    Attributes
    ----------
    event : object
        The innermost one that is to blame.
    reason : str
        Why.
    """

    def __init__(self, event: Any, reason: str) -> None:
        """Keep both."""
        super().__init__(f"{event!r} is not supported: {reason}")
        self.event = event
        self.reason = reason


def _refuse(relation: Relation, refused: Relation, why: str) -> None:
    if relation == refused:
        others = " or ".join(f"`{name}`" for each, name in RELATIONS.items() if each != refused)
        raise ValueError(f"neighboring_relation must be {others}: {why}")


def adjacency_of(relation: Relation) -> Adjacency:
    """Return the adjacency whose pairs are those of a relation."""
    return "replace" if relation == "replace" else "add_or_remove"


def accountant_of(event: Any, *, relation: Relation = "add_or_remove") -> Accountant:
    """Return an accountant that has composed an event.

    Parameters
    ----------
    event : DpEvent or named tuple
        An event of dp_accounting (jax_privacy's are such), or what its `to_named_tuple` returns.
    relation : {"add_or_remove", "replace", "replace_special"}
        Which data sets are adjacent.

    Returns
    -------
    Accountant
        Every answer of which is certified.

    Raises
    ------
    UnsupportedEvent
        A ValueError, if the event is unknown, or has no proven dominating pair under this relation.

    Examples
    --------
    >>> from collections import namedtuple
    >>> event = namedtuple("Event", "module_name class_name noise_multiplier")
    >>> accountant_of(event("dp_accounting.dp_event", "GaussianDpEvent", 2.0)).ledger
    mappingproxy({Gaussian(noise_multiplier=2.0): 1})
    """
    accountant = Accountant(adjacency_of(relation))
    for mechanism, count in steps_of(event, relation):
        accountant.compose(mechanism, count)
    return accountant


def steps_of(event: Any, relation: Relation) -> Steps:
    """Return the mechanisms of an event, each with its count.

    Parameters
    ----------
    event : DpEvent or named tuple
        As for `accountant_of`.
    relation : {"add_or_remove", "replace", "replace_special"}
        Which data sets are adjacent.

    Returns
    -------
    list of (Mechanism, int)
        Empty if nothing leaks; `ApproximateDP(0, 1)` stands for what is not private at all.

    Raises
    ------
    UnsupportedEvent
        As for `accountant_of`.

    Examples
    --------
    >>> from collections import namedtuple
    >>> event = namedtuple("Event", "class_name noise_multiplier")
    >>> steps_of(event("LaplaceDpEvent", 2.0), "replace")
    [(Laplace(noise_multiplier=2.0), 1)]
    """
    name, values = _structure(event)
    if name not in _READERS:
        raise UnsupportedEvent(event, f"hockeystick knows no mechanism for {name}")
    if set(values) != set(fields := _FIELDS[name]):
        expected = ", ".join(fields) or "none"
        raise UnsupportedEvent(event, f"the fields of {name} must be {expected}, not {', '.join(values) or 'none'}")
    try:
        steps = _READERS[name](relation, *(values[field] for field in fields))
        for mechanism, _ in steps:
            Accountant(adjacency_of(relation))._checked(mechanism, 1)
    except UnsupportedEvent:
        raise
    except (ValueError, TypeError) as error:  # an argument outside its domain, or no pair under this adjacency
        raise UnsupportedEvent(event, str(error)) from error
    return steps


def _structure(event: Any) -> tuple[str, dict[str, Any]]:
    """Return the name of an event's class and its fields."""
    attributes = getattr(type(event), "__attrs_attrs__", None)
    if attributes is not None:
        return type(event).__name__, {field.name: getattr(event, field.name) for field in attributes}
    named = getattr(event, "class_name", None)
    if isinstance(event, tuple) and isinstance(named, (str, bytes)):
        name = named.decode() if isinstance(named, bytes) else named
        fields = [field for field in getattr(event, "_fields", ()) if field not in ("module_name", "class_name")]
        return name, {field: getattr(event, field) for field in fields}
    return type(event).__name__, vars(event) if hasattr(event, "__dict__") else {}


def _repeated(relation: Relation, event: Any, count: int) -> Steps:
    count = count_scalar("count", count, 0)
    return [(mechanism, times * count) for mechanism, times in steps_of(event, relation) if count]


def _composed(relation: Relation, events: Sequence[Any]) -> Steps:
    return [step for event in events for step in steps_of(event, relation)]


def _inner(event: Any, relation: Relation) -> tuple[Steps, bool]:
    """Return what is sampled or searched, and whether that is nothing, or not private: so is its sample, then."""
    steps = steps_of(event, relation)
    if NON_PRIVATE in dict(steps):
        return [(NON_PRIVATE, 1)], True
    return steps, not steps


def _poisson(relation: Relation, sampling_probability: float, event: Any) -> Steps:
    inner, is_plain = _inner(event, relation)
    if sampling_probability in {0, 1} or is_plain:
        return inner if sampling_probability else []
    if any(isinstance(mechanism, ZeroConcentratedDP) for mechanism, _ in inner):
        together = _concentrated(relation, inner)
        return [(concentrated_sample(together.rho, sampling_probability, together.xi), 1)]
    return [(PoissonSampled(_one(inner, relation), sampling_probability), 1)]


def _allocated(relation: Relation, event: Any, num_selected: int, num_steps: int) -> Steps:
    """Read so many steps of all, a uniform subset for each record."""
    inner, is_plain = _inner(event, relation)
    if is_plain or count_scalar("num_selected", num_selected, 0) == 0:
        return inner if num_selected else []
    return [(RandomAllocation(_one(inner, relation), num_steps, num_selected), 1)]


def _concentrated(relation: Relation, steps: Steps) -> ZeroConcentratedDP:
    """Return rho and xi of Gaussian and zero-concentrated releases of one sample together."""
    if relation != "add_or_remove":
        raise ValueError("a sample of what is zero-concentrated has a bound under `ADD_OR_REMOVE_ONE` alone")
    if not all(isinstance(mechanism, (Gaussian, ZeroConcentratedDP)) for mechanism, _ in steps):
        raise ValueError("on one sample, zero-concentrated releases may stand beside Gaussian ones alone")
    xi = math.fsum(count * mechanism.xi for mechanism, count in steps if isinstance(mechanism, ZeroConcentratedDP))
    accountant = Accountant("add_or_remove")
    for mechanism, count in steps:
        without_xi = ZeroConcentratedDP(mechanism.rho) if isinstance(mechanism, ZeroConcentratedDP) else mechanism
        accountant.compose(without_xi, count)
    return ZeroConcentratedDP(zcdp_rho(accountant), xi * UP)


def concentrated_sample(rho: float, sampling_rate: float, xi: float = 0.0) -> RenyiDP:
    """Return the bounds of a sample of rate in (0, 1) of a mechanism with (xi, rho)-zCDP."""
    rho = max(non_negative_scalar("rho", rho), SMALLEST)
    q = max(probability_scalar("sampling_rate", sampling_rate), SMALLEST)
    xi = non_negative_scalar("xi", xi)
    bounds = (_divergence(order, rho, xi, q) for order in ORDERS)
    return RenyiDP(ORDERS, list(itertools.accumulate(bounds, max)))


def _divergence(order: int, rho: float, xi: float, q: float) -> float:
    removed = np.logaddexp(0.0, _binomial_sum(order, rho, xi, q)) / (order - 1)
    added = np.logaddexp(0.0, _remainder(order - 1, q) + _log_expm1(xi + 2.0 * rho)) / (order - 1)
    least = min(max(removed, min(added, -math.log1p(-q))), xi + order * rho)
    return math.nextafter(least * MARGIN, math.inf)


def _binomial_sum(order: int, rho: float, xi: float, q: float) -> float:
    """Return the logarithm of E_Q (1 - q + q r)^a - 1, in which the powers' weights cancel the 1."""
    terms = [
        math.log(math.comb(order, k))
        + k * math.log(q)
        + (order - k) * math.log1p(-q)
        + _log_expm1((k - 1) * (xi + k * rho))
        for k in range(2, order + 1)
    ]
    return float(np.logaddexp.reduce(terms))


def _remainder(n: int, q: float) -> float:
    """Return an upper bound of log R(-q) q^2; where n q is small, the difference of the exact form would cancel."""
    if n * q > 0.01 and n * -math.log1p(-q) < 700.0:
        return math.log(math.expm1(-n * math.log1p(-q)) - n * q)
    return math.log(0.5 * n * (n + 1)) + 2.0 * math.log(q) - (n + 2) * math.log1p(-q)


def _log_expm1(x: float) -> float:
    return math.log(math.expm1(x)) if x < 30.0 else x + math.log1p(-math.exp(-x))


def _fixed_size(
    relation: Relation, source_dataset_size: int, sample_size: int, event: Any, *, replacement: bool = False
) -> Steps:
    _refuse(relation, "replace_special", "a special record takes a place in it, for which a fixed size has no pair")
    inner, is_plain = _inner(event, "replace")
    empty = inner and count_scalar("sample_size", sample_size, 0) == 0
    if empty and count_scalar("source_dataset_size", source_dataset_size):
        return []
    return inner if is_plain else [(FixedSizeSampled(_one(inner), source_dataset_size, sample_size, replacement), 1)]


def _repeat_and_select(relation: Relation, event: Any, mean: float, shape: float) -> Steps:
    """Read a search: the best of a random number of runs, Poisson if the shape is infinite."""
    inner, is_plain = _inner(event, relation)
    if is_plain:
        return inner
    run, count = inner[0] if len(inner) == 1 else (_one(inner), 1)
    return [(PrivateSelection(run, count, mean, None if shape == math.inf else shape), 1)]


def _one(steps: Steps, relation: Relation = "add_or_remove") -> Mechanism:
    """Return what is run on one sample as one mechanism: Gaussian releases of the same sample are one, of less noise."""
    alone, all_gaussian = len(steps) == 1 and steps[0][1] == 1, all(isinstance(run, Gaussian) for run, _ in steps)
    if not (all_gaussian or (alone and isinstance(steps[0][0], Laplace))):
        _refuse(relation, "replace_special", "only in a sum with noise is a special record known to be as good as none")
    if alone:
        return steps[0][0]
    if not all_gaussian:
        return Composed(steps)
    shift = math.hypot(*(math.sqrt(count) / mechanism.noise_multiplier for mechanism, count in steps))  # type: ignore[attr-defined]
    return Gaussian(DOWN / shift)  # less noise than rounding may have added


def _unless(open_book: bool, kind: Callable[..., Mechanism], *arguments: Any) -> Steps:
    """Return one step of a mechanism, unless its arguments say that it is not private at all."""
    return [(NON_PRIVATE if open_book else kind(*arguments), 1)]


def _choice(kind: Callable[[float], Mechanism], epsilon: float) -> Steps:
    return [] if epsilon == 0 else _unless(epsilon == math.inf, kind, epsilon)


def _discrete_gaussian(relation: Relation, sigma: float, sensitivity: float, dimension: int | None) -> Steps:
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
    return _by_rho(math.nextafter(0.5 * moved * moved * UP, math.inf), 0.0)


def _by_rho(rho: float, xi: float) -> Steps:
    """Read a bound xi + rho a of the Renyi divergences of all orders a."""
    if math.inf in (rho, xi):
        return [(NON_PRIVATE, 1)]
    return [(ZeroConcentratedDP(rho, xi), 1)] if rho != 0 or xi != 0 else []


def _mixture(
    relation: Relation, standard_deviation: float, sensitivities: Sequence[float], sampling_probs: Sequence[float]
) -> Steps:
    """Read a mixture of Gaussians."""
    _refuse(relation, "replace", "the event says what one record adds to a sum, not how two are sampled")
    if not any(sensitivities):
        return []
    return _unless(standard_deviation == 0, MixtureOfGaussians, standard_deviation, sensitivities, sampling_probs)


def _truncated(
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


def _tree(relation: Relation, noise_multiplier: float, step_counts: int | Sequence[int]) -> Steps:
    """Read tree aggregation over one epoch."""
    _refuse(relation, "add_or_remove", "a record more would move the others to other steps")
    longest = max(step_counts, default=0) if isinstance(step_counts, Sequence) else step_counts
    if longest == 0:
        return []
    sensitivity = tree_sensitivity(longest, participation="single")  # the record is in one tree of the epoch
    return [(NON_PRIVATE if noise_multiplier == 0 else sensitivity.mechanism(noise_multiplier).mechanism, 1)]


def _randomized_response(relation: Relation, noise_parameter: float, num_buckets: int) -> Steps:
    """Read randomised response; a special record answers uniformly."""
    _refuse(relation, "add_or_remove", "a response is replaced, not added or removed")
    if num_buckets == 1:
        return []
    response = RandomizedResponse(noise_parameter, num_buckets)
    if relation != "replace_special":
        return [(response, 1)]
    other = response.noise_probability / response.num_buckets  # the special record answers uniformly
    rest = (num_buckets - 1) * other
    answer = Discrete([1.0 - rest, rest], [1.0 / num_buckets, 1.0 - 1.0 / num_buckets])
    return [(answer, 1)]


def _permute_and_flip(relation: Relation, epsilon: float) -> Steps:
    """Read permute-and-flip, whose curve is that of Laplace noise at distance epsilon."""
    _refuse(
        relation, "replace", "dp_accounting's accountants differ about whether epsilon is doubled where one is replaced"
    )
    return _choice(PermuteAndFlip, epsilon)


_READERS: dict[str, Callable[..., Steps]] = {  # parameters are the relation and the event's fields
    "NoOpDpEvent": lambda _: [],
    "NonPrivateDpEvent": lambda _: [(NON_PRIVATE, 1)],
    "GaussianDpEvent": lambda _, noise_multiplier: _unless(noise_multiplier == 0, Gaussian, noise_multiplier),
    "LaplaceDpEvent": lambda _, noise_multiplier: _unless(noise_multiplier == 0, Laplace, noise_multiplier),
    "DiscreteLaplaceDpEvent": lambda _, noise_parameter, sensitivity: _unless(
        noise_parameter == 0, DiscreteLaplace, noise_parameter, sensitivity
    ),
    "MixtureOfGaussiansDpEvent": _mixture,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
    "RandomizedResponseDpEvent": _randomized_response,
    "EpsilonDeltaDpEvent": lambda _, epsilon, delta: _unless(
        epsilon == math.inf or delta == 1, ApproximateDP, epsilon, delta
    ),
    "ZCDpEvent": lambda _, rho, xi: _by_rho(rho, xi),
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "ExponentialMechanismDpEvent": lambda _, epsilon: _choice(ExponentialMechanism, epsilon),
    "PermuteAndFlipDpEvent": _permute_and_flip,
    "RepeatAndSelectDpEvent": _repeat_and_select,
    "SingleEpochTreeAggregationDpEvent": _tree,
    "SelfComposedDpEvent": _repeated,
    "ComposedDpEvent": _composed,
    "PoissonSampledDpEvent": _poisson,
    "RandomAllocationDpEvent": _allocated,
    "SampledWithoutReplacementDpEvent": _fixed_size,
    "SampledWithReplacementDpEvent": partial(_fixed_size, replacement=True),
}
_FIELDS = {
    name: [field for field, kind in signature(read).parameters.items() if kind.kind != Parameter.KEYWORD_ONLY][1:]
    for name, read in _READERS.items()
}
