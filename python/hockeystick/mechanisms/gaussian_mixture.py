"""Gaussian noise on a query whose sensitivity is random: groups of records under Poisson sampling, matrix mechanisms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

import hockeystick._core as core
from hockeystick._checks import (
    at_most,
    count_at_most,
    count_scalar,
    distribution,
    positive_scalar,
    probability_scalar,
    real,
    vector,
)
from hockeystick._checks.shown import shown
from hockeystick._numeric.binomial import LEAST_PROBABILITY, group_in_batch
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism

__all__ = ["MixtureOfGaussians"]

LARGEST_GROUP = 1000


@dataclass(frozen=True)
class MixtureOfGaussians(Mechanism):
    """Gaussian noise on a sum that a record moves by one of several distances, at random.

    Only under ``adjacency="add_or_remove"``.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise in each coordinate, in the unit of the sensitivities, which are L2 (Euclidean); positive and finite.
    sensitivities : sequence of float
        How far the record moves the sum at most, for each possible choice of the mechanism; 0, or in [1e-9, 1e4] noise multipliers.
    probabilities : sequence of float
        Of each choice: as many, non-negative, summing to 1 within 1e-12. The choice is secret.

    Notes
    -----
    The pair is sum_k p_k N(s_k, noise_multiplier^2) and N(0, noise_multiplier^2), and it dominates that of vectors of norms at
    most s_k: the proof is in loss/gaussian_mixture.hpp. The probability of sensitivity 0 is rounded to the complement of a double,
    down for upper ends and up for lower ones. Choquette-Choo, Ganesh, Steinke and Thakurta 2024, for matrix mechanisms.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.mechanisms.MixtureOfGaussians(1.0, [0.0, 1.0, 2.0], [0.5, 0.25, 0.25]).sensitivities
    (0.0, 1.0, 2.0)
    """

    noise_multiplier: float
    sensitivities: Sequence[float]
    probabilities: Sequence[float]
    _assumes: ClassVar[tuple[str, ...]] = (
        "mixture: every step draws its choice of sensitivity anew, as the probabilities say, and the choice is secret",
    )

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(noise_multiplier=positive_scalar)
        sensitivities = vector("sensitivities", real("sensitivities", self.sensitivities))
        shifts = sensitivities / self.noise_multiplier
        if not ((sensitivities == 0) | ((shifts >= 1e-9) & (shifts <= 1e4))).all():
            raise ValueError(
                f"sensitivities must be 0 or in [1e-9, 1e4] noise multipliers, not {shown(self.sensitivities)}"
            )
        self._set(sensitivities=tuple(sensitivities.tolist()))
        self._check(probabilities=distribution)
        if len(self.probabilities) != len(self.sensitivities):
            raise ValueError(
                f"probabilities must be as many as sensitivities ({len(self.sensitivities)}), not {len(self.probabilities)}"
            )

    @classmethod
    def of_group(cls, noise_multiplier: float, group_size: int, sampling_rate: float) -> Self:
        """Return Gaussian noise on a Poisson sample, where a group of records is added or removed as one.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation over the sensitivity to one record.
        group_size : int
            Number of records of the group, say of a user; in [1, 1000].
        sampling_rate : float
            Probability of each record, in [0, 1].

        Returns
        -------
        MixtureOfGaussians
            A sum moves by as many sensitivities as there are records of the group in the sample: a binomial number.

        Raises
        ------
        ValueError
            If an argument is outside its domain.

        Examples
        --------
        >>> import hockeystick as hs
        >>> hs.mechanisms.MixtureOfGaussians.of_group(1.0, 2, 0.5).probabilities
        (0.25, 0.5, 0.25)
        """
        size = count_at_most("group_size", group_size, "the largest supported", LARGEST_GROUP)
        rate = probability_scalar("sampling_rate", sampling_rate)
        if rate in (0.0, 1.0):
            return cls(noise_multiplier, [rate * size], [1.0])
        logs = [
            math.log(math.comb(size, k)) + k * math.log(rate) + (size - k) * math.log1p(-rate) for k in range(size + 1)
        ]
        return cls(noise_multiplier, range(size + 1), [max(math.exp(x), LEAST_PROBABILITY) for x in logs])

    @classmethod
    def of_group_in_batch(cls, noise_multiplier: float, group_size: int, num_records: int, batch_size: int) -> Self:
        """Return Gaussian noise on a batch of fixed size, drawn without replacement, where a group is added or removed as one.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation over the sensitivity to one record.
        group_size : int
            Number of records of the group, say of a user; in [1, 1000].
        num_records : int
            Number of records, those of the group included.
        batch_size : int
            Number of records drawn, at most as many as there are without the group.

        Returns
        -------
        MixtureOfGaussians
            As many records of the group as are in the batch, a hypergeometric number, are there in place of others, each
            of which moves a sum by two sensitivities: attained where all others are opposite to the group's.

        Raises
        ------
        ValueError
            If an argument is outside its domain.

        Examples
        --------
        >>> import hockeystick as hs
        >>> hs.mechanisms.MixtureOfGaussians.of_group_in_batch(1.0, 2, 4, 2).sensitivities
        (0.0, 2.0, 4.0)
        """
        size = count_at_most("group_size", group_size, "the largest supported", LARGEST_GROUP)
        dataset, batch = count_scalar("num_records", num_records), count_scalar("batch_size", batch_size)
        at_most("batch_size", batch, "num_records less group_size", dataset - size)
        shares = group_in_batch(size, dataset, batch)
        most = min(size, batch)
        probabilities = np.maximum(shares[: most + 1], LEAST_PROBABILITY).tolist()
        return cls(noise_multiplier, [2.0 * k for k in range(most + 1)], probabilities)

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if adjacency != "add_or_remove":
            raise self._refusal(
                adjacency, "the pair is that of a record added or removed; use adjacency='add_or_remove'"
            )
        choices = list(self.sensitivities), list(self.probabilities)
        return [(core.mixture_of_gaussians(self.noise_multiplier, *choices, upper), 1.0)]
