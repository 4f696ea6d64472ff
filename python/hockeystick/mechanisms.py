"""Mechanisms: what one step of an algorithm releases. Immutable, hashable, picklable; the repr rebuilds them.

`noise_multiplier` is the noise's standard deviation (Laplace: scale) over the sensitivity to adding or removing a
record. Under ``adjacency="replace"`` the sensitivity is twice that: the library shifts by 2/noise_multiplier itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hockeystick import _checks
from hockeystick._discrete_noise import DiscreteGaussian, DiscreteLaplace
from hockeystick._gaussian_mixture import MixtureOfGaussians
from hockeystick._noise import ADJACENCIES as ADJACENCIES  # noqa: PLC0414, exported from here
from hockeystick._noise import Adjacency as Adjacency  # noqa: PLC0414
from hockeystick._noise import Core, Gaussian, Laplace, Mechanism, refuse
from hockeystick._truncated_sampling import TruncatedPoissonSampled

__all__ = [
    "ApproximateDP",
    "Discrete",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscretePairs",
    "FixedSizeSampled",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "MixtureOfGaussians",
    "PoissonSampled",
    "RandomizedResponse",
    "TruncatedPoissonSampled",
]


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Randomised response: a uniform bucket with probability `noise_parameter`, else the true one.

    Only under ``adjacency="replace"``.

    Parameters
    ----------
    noise_parameter : float
        In [0, 1].
    num_buckets : int
        At least 2.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.RandomizedResponse(0.5, 4)
    RandomizedResponse(noise_parameter=0.5, num_buckets=4)
    """

    noise_parameter: float
    num_buckets: int

    def __post_init__(self) -> None:
        """Check the arguments."""
        object.__setattr__(self, "noise_parameter", _checks.probability_scalar("noise_parameter", self.noise_parameter))
        object.__setattr__(self, "num_buckets", _checks.count_scalar("num_buckets", self.num_buckets, 2))

    def _core(self, adjacency: Adjacency) -> Core:
        if adjacency != "replace":
            raise refuse(self, adjacency, "a response is replaced, not added or removed; use adjacency='replace'")
        other = self.noise_parameter / self.num_buckets
        true = (1.0 - self.noise_parameter) + other
        rest = other * (self.num_buckets - 2)
        return "discrete", [true, other, rest, other, true, rest], 1.0


@dataclass(frozen=True)
class ApproximateDP(Mechanism):
    """Any (epsilon, delta)-DP mechanism, by its dominating pair (Kairouz, Oh and Viswanath 2015).

    Parameters
    ----------
    epsilon : float
        Non-negative; at most 600.
    delta : float
        In [0, 1].

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.ApproximateDP(0.5, 1e-6)
    ApproximateDP(epsilon=0.5, delta=1e-06)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        """Check the arguments."""
        epsilon = _checks.scalar("epsilon", self.epsilon, lambda x: 0 <= x <= 600, "lie in [0, 600]")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", _checks.probability_scalar("delta", self.delta))

    def _core(self, adjacency: Adjacency) -> Core:
        del adjacency  # the guarantee is taken to be for the one in use
        small = math.exp(-self.epsilon)
        high, low = (1.0 - self.delta) / (1.0 + small), (1.0 - self.delta) * small / (1.0 + small)
        return "discrete", [self.delta, high, low, 0.0, 0.0, low, high, self.delta], 1.0


@dataclass(frozen=True)
class Discrete(Mechanism):
    """A pair of discrete distributions, with its reverse for the other direction.

    Parameters
    ----------
    p, q : sequence of float
        Probabilities of the outcomes on either data set: of one length, non-negative, each summing to 1 within 1e-12.
        Where one is 0 and the other is not, the privacy loss is infinite.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.Discrete([0.75, 0.25], [0.25, 0.75])
    Discrete(p=(0.75, 0.25), q=(0.25, 0.75))
    """

    p: Sequence[float]
    q: Sequence[float]

    def __post_init__(self) -> None:
        """Check the arguments."""
        for name in ("p", "q"):
            object.__setattr__(self, name, _checks.distribution(name, getattr(self, name)))
        if len(self.p) != len(self.q):
            msg = f"q must be as long as p ({len(self.p)}), not of length {len(self.q)}"
            raise ValueError(msg)

    def _core(self, adjacency: Adjacency) -> Core:
        del adjacency
        return "discrete", self._pair(), 1.0

    def _pair(self) -> list[float]:
        """Return p, then q, each divided by its sum: what it lacks to 1 would be multiplied by the steps."""
        return [mass / math.fsum(law) for law in (self.p, self.q) for mass in law]


@dataclass(frozen=True)
class DiscretePairs(Mechanism):
    """A dominating pair of discrete distributions for each direction.

    For what is known only by its privacy losses, such as a mechanism of one's own; `Discrete` is one whose second pair is
    the reverse of the first.

    Parameters
    ----------
    remove, add : Discrete
        Their p and q: the pair that dominates a data set with the record against the one without, and the pair that
        dominates without against with. Under replacement, either order of the two data sets.

    Examples
    --------
    >>> import hockeystick as hs
    >>> pair = hs.Discrete([0.5, 0.5], [0.25, 0.75])
    >>> hs.DiscretePairs(pair, hs.Discrete(pair.q, pair.p)).add.p
    (0.25, 0.75)
    """

    remove: Discrete
    add: Discrete

    def __post_init__(self) -> None:
        """Check the arguments."""
        for name in ("remove", "add"):
            if not isinstance(getattr(self, name), Discrete):
                msg = f"{name} must be Discrete, not {getattr(self, name)!r}"
                raise TypeError(msg)

    def _core(self, adjacency: Adjacency) -> Core:
        del adjacency
        return "discrete_pairs", [float(len(self.remove.p)), *self.remove._pair(), *self.add._pair()], 1.0


_SAMPLED = (Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace, MixtureOfGaussians, Discrete, ApproximateDP)


@dataclass(frozen=True)
class PoissonSampled(Mechanism):
    """A mechanism run on a Poisson sample: each record is in it independently.

    Under ``adjacency="replace"`` only Gaussian noise.

    Parameters
    ----------
    mechanism : Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace, MixtureOfGaussians, Discrete or ApproximateDP
        What is run on the sample.
    sampling_rate : float
        Probability of each record, in [0, 1].

    Notes
    -----
    Zhu, Dong and Wang 2022. Where a record is replaced, with r = 1/noise_multiplier and N(m) the normal law of mean m and
    variance 1, the pair (1-q)N(0) + qN(r), (1-q)N(0) + qN(-r) dominates, and is attained; the proof is in
    replaced_loss.hpp.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.PoissonSampled(hs.Gaussian(1.0), 0.01)
    PoissonSampled(mechanism=Gaussian(noise_multiplier=1.0), sampling_rate=0.01)
    """

    mechanism: Mechanism
    sampling_rate: float

    def __post_init__(self) -> None:
        """Check the arguments."""
        if not isinstance(self.mechanism, _SAMPLED):
            names = ", ".join(kind.__name__ for kind in _SAMPLED)
            msg = f"mechanism must be one of {names}, not {self.mechanism!r}"
            raise TypeError(msg)
        object.__setattr__(self, "sampling_rate", _checks.probability_scalar("sampling_rate", self.sampling_rate))

    def _core(self, adjacency: Adjacency) -> Core:
        kind, parameters, rate = self.mechanism._core(adjacency)
        if adjacency == "add_or_remove" or self.sampling_rate in (0.0, 1.0):
            return kind, parameters, rate * self.sampling_rate
        if not isinstance(self.mechanism, Gaussian):
            raise refuse(self, adjacency, "a dominating pair is proven for Gaussian noise only")
        return "replaced_gaussian", [1.0 / self.mechanism.noise_multiplier, self.sampling_rate], 1.0


@dataclass(frozen=True)
class FixedSizeSampled(Mechanism):
    """Gaussian noise on a uniform sample of fixed size, drawn without replacement.

    Only under ``adjacency="replace"``.

    Parameters
    ----------
    mechanism : Gaussian
        What is run on the sample; noise_multiplier is over the add-or-remove sensitivity, as always.
    dataset_size : int
        Number of records, public.
    batch_size : int
        Number of records drawn, at most dataset_size.
    replacement : bool
        Must be False: drawing with replacement has no proven dominating pair here.

    Notes
    -----
    The dominating curve of Zhu, Dong and Wang 2022; see mechanism.hpp.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.FixedSizeSampled(hs.Gaussian(2.0), 1000, 50, replacement=False).batch_size
    50
    """

    mechanism: Mechanism
    dataset_size: int
    batch_size: int
    replacement: bool

    def __post_init__(self) -> None:
        """Check the arguments."""
        if not isinstance(self.mechanism, Gaussian):
            msg = f"mechanism must be Gaussian, not {self.mechanism!r}"
            raise TypeError(msg)
        object.__setattr__(self, "dataset_size", _checks.count_scalar("dataset_size", self.dataset_size))
        object.__setattr__(self, "batch_size", _checks.count_scalar("batch_size", self.batch_size))
        if self.batch_size > self.dataset_size:
            msg = f"batch_size must be at most dataset_size ({self.dataset_size}), not {self.batch_size}"
            raise ValueError(msg)
        if self.replacement is not False:
            msg = f"replacement must be False (with replacement there is no proven dominating pair), not {self.replacement!r}"
            raise ValueError(msg)

    def _core(self, adjacency: Adjacency) -> Core:
        if adjacency != "replace":
            raise refuse(
                self, adjacency, "the batch size would have to change with the data set; use adjacency='replace'"
            )
        kind, parameters, _ = self.mechanism._core(adjacency)
        if self.batch_size == self.dataset_size:
            return kind, parameters, 1.0
        return "fixed_size_gaussian", [*parameters, self.batch_size / self.dataset_size], 1.0
