"""Batches of records that are drawn from one of several sets in turn, and a check of who took part."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick._checks import Array, count_scalar, probability_scalar
from hockeystick._checks.arguments import scalars
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import DOWN, UNIT, UP
from hockeystick.correlated_noise.balls_in_bins import LEAST_ENTRY
from hockeystick.correlated_noise.sensitivity import (
    Participation,
    first_coefficients,
    matrix_mechanism,
    matrix_sensitivity,
    pattern_of,
    strategy_array,
)
from hockeystick.mechanisms import Composed, Dominating, Gaussian, Mechanism, PoissonSampled, TruncatedPoissonSampled

MAX_KINDS = 32  # of columns whose lengths differ
SAME_LENGTH = 1e-12  # columns whose lengths differ by less, relative, are charged as one


def cyclic_poisson(
    strategy: ArrayLike, *, steps: int, separation: int, sampling_rate: float, noise_multiplier: float
) -> tuple[Dominating, int]:
    """Return the DP-SGD step and count equivalent to a banded matrix mechanism with cyclic Poisson sampling.

    Parameters
    ----------
    strategy : array_like
        C, square, of shape (steps, steps), or the coefficients of a lower triangular Toeplitz matrix, of shape (bands,). Lower triangular with
        at most `separation` bands: entries are zero above the diagonal, and `separation` rows below it and further.
    steps : int
        The number of steps.
    separation : int
        Into how many parts, b, the records are divided once, independently of the data; step t samples from part t mod b.
    sampling_rate : float
        Probability of each record of the part whose turn it is, in [0, 1]: for batches of B records expected of m, b B/m.
    noise_multiplier : float
        Standard deviation of the entries of z over the clip norm, positive and finite.

    Returns
    -------
    (Dominating, int)
        Mechanism and count, for `Accountant.compose`: one sample and ceil(steps/b), if all columns of a part have one norm; else all samples of the
        training, and 1. Attained where one part has the longest columns, as that of a Toeplitz matrix which begins.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or C is no such matrix.

    Notes
    -----
    Choquette-Choo et al. 2023 (arXiv 2306.08153), BandMF with cyclic Poisson sampling. Proof: a record of part r can be in steps r, r + b,
    ... only, whose columns lie in different rows. Given all earlier releases and who else takes part, the rows from t to t + b - 1
    are Gaussian noise around values that are known but for the column at t times the record's update, if it is drawn: a Poisson
    sampled Gaussian at a distance of at most the norm of that column, attained by updates at the clip norm. Records of all parts are dominated by
    the longest columns of any, the second longest of any, and so on.

    A record that is added or removed must leave the parts of all others as they are.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick import correlated_noise
    >>> step, count = correlated_noise.cyclic_poisson(
    ...     correlated_noise.square_root_coefficients(8), steps=2000, separation=8, sampling_rate=0.08, noise_multiplier=2.0
    ... )
    >>> print(count, f"{hs.Accountant().compose(step, count).epsilon_bracket(1e-6):.2f}")
    250 4.90
    """
    rate = probability_scalar("sampling_rate", sampling_rate)
    drawn = f"from the part whose turn it is each record is drawn with probability {rate!r}, independently of all else, afresh and in secret"
    bands = banded(strategy, steps, separation, noise_multiplier)
    return _part_steps(bands, lambda noise: PoissonSampled(noise, rate), drawn)


def cyclic_truncated_poisson(
    strategy: ArrayLike,
    *,
    steps: int,
    separation: int,
    sampling_rate: float,
    noise_multiplier: float,
    part_size: int,
    max_batch_size: int,
    zeroed_out: bool = False,
) -> tuple[Dominating, int]:
    """Return the DP-SGD with batches of bounded size that a banded matrix mechanism equals if they are samples of parts in turn.

    Parameters
    ----------
    strategy : array_like
        C, or its coefficients: see `cyclic_poisson`.
    steps : int
        The number of steps.
    separation : int
        Into how many parts, b, the records are divided once, independently of the data; step t samples from part t mod b.
    sampling_rate : float
        Probability of each record of the part whose turn it is, in [0, 1].
    noise_multiplier : float
        Standard deviation of the entries of z over the clip norm, positive and finite.
    part_size : int
        Number of records of the largest part, of the larger of two adjacent data sets, or an upper bound of it.
    max_batch_size : int
        How many records of a sample are kept at most: a uniform subset, if there are more.
    zeroed_out : bool
        As in `TruncatedPoissonSampled`. By default a record that is removed is gone, and those it displaced come back: unlike elsewhere in this
        package, batches of others change. If true, it keeps its place and contributes nothing (zero-out adjacency); the default does not cover that.

    Returns
    -------
    (Dominating, int)
        Mechanism and count, for `Accountant.compose`: as those of `cyclic_poisson`.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or C is no such matrix.

    Notes
    -----
    Proof: that of `cyclic_poisson`, but for the last step. The batches of the other parts do not depend on the record, nor do later ones of its own part, which are drawn
    anew. So, given them and all earlier releases, the rows from t to t + b - 1 are noise around known values and the column at t times the sum of one truncated
    sample: along the column, that sum with noise over its norm, and nothing across. Truncation must not depend on earlier steps.

    A record that is added or removed must leave the parts of all others as they are.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick import correlated_noise
    >>> step, count = correlated_noise.cyclic_truncated_poisson(
    ...     correlated_noise.square_root_coefficients(8),
    ...     steps=2000,
    ...     separation=8,
    ...     sampling_rate=0.08,
    ...     noise_multiplier=2.0,
    ...     part_size=6250,
    ...     max_batch_size=600,
    ... )
    >>> print(count, hs.format_upper(hs.Accountant().compose(step, count).epsilon(1e-6), ".2f"))
    250 4.90
    """
    part_size = count_scalar("part_size", part_size)
    drawn = (
        f"from the part whose turn it is, of at most {part_size} records, each is drawn with probability {sampling_rate!r}, independently of all else, "
        f"afresh and in secret, and of more than {max_batch_size} a uniform subset is kept"
    )

    def truncated(noise: Gaussian) -> TruncatedPoissonSampled:
        return TruncatedPoissonSampled(noise, part_size, sampling_rate, max_batch_size, zeroed_out)

    bands = banded(strategy, steps, separation, noise_multiplier)
    return _part_steps(bands, truncated, drawn, zeroed_out=zeroed_out)


def _part_steps(
    bands: Banded, sampled: Callable[[Gaussian], Mechanism], takes_part: str, *, zeroed_out: bool = False
) -> tuple[Dominating, int]:
    """Return what dominates the samples of parts in turn, and how often: the i-th longest column of any part, for each i; attained is one part's."""
    array, steps, apart, noise = bands
    rows = np.minimum(len(array), steps - np.arange(steps))  # of each column of coefficients
    rounding = (len(array) + 16) * UNIT
    with np.errstate(under="ignore"):
        squares = np.square(array / (scale := float(np.abs(array).max())))
        lengths = np.sqrt(squares.sum(axis=0) if array.ndim == 2 else np.cumsum(squares)[rows - 1])
        turns = np.pad(lengths, (0, -steps % apart)).reshape(-1, apart)  # a column a part
        turns = np.sort(turns, axis=0)[::-1]
        above, below = turns.max(axis=1), turns[:, int(np.square(turns).sum(axis=0).argmax())]
    upper = _releases(above * (1.0 + rounding), scale * UP / noise, -1, sampled)
    lower = _releases(below * (1.0 - rounding), scale * DOWN / noise, 1, sampled)
    once = len(upper) > 1 or [count for _, count in upper] != [count for _, count in lower]
    mechanism = Composed(upper) if once else upper[0][0]
    attained = (Composed(lower) if once else lower[0][0]) if lower else None
    takes_part = f"the steps of its part, one of {apart} in turn; the parts of others do not depend on it; {takes_part}"
    whole = matrix_mechanism(mechanism, attained, takes_part=takes_part, zeroed_out=zeroed_out)
    return whole, 1 if once else upper[0][1]


def _releases(
    lengths: Array, factor: float, ends: Literal[-1, 1], sampled: Callable[[Gaussian], Mechanism]
) -> list[tuple[Mechanism, int]]:
    """Return samples of noise by the lengths of columns, which fall, neighbours alike: by the longest for ends = -1, else by the shortest."""
    kinds = np.split(lengths, np.flatnonzero(np.diff(lengths) < -SAME_LENGTH * lengths[:-1]) + 1)
    size = -(-len(kinds) // MAX_KINDS)
    merged = [np.concatenate(kinds[first : first + size]) for first in range(0, len(kinds), size)]
    shifts = [(factor * (group[0] if ends < 0 else group[-1]), group) for group in merged if group[0] > 0.0]
    kept = [(max(shift, LEAST_ENTRY), len(group)) for shift, group in shifts if ends < 0 or shift >= LEAST_ENTRY]
    return [(sampled(Gaussian(1.0 / shift * (1.0 + ends * 2 * UNIT))), count) for shift, count in kept]


class Banded(NamedTuple):
    """Arguments that were checked: a lower triangular matrix or coefficients of at most `separation` bands."""

    array: Array
    num_steps: int
    separation: int
    noise_multiplier: float

    def bands(self) -> int:
        """Return how many bands there are, or how many coefficients to the last that is not 0."""
        return 1 + int(_rows_below(self.array)[self.array != 0].max())

    def products(self) -> Array:
        """Return the inner products of each column of |C| with itself and those before, over the squared noise, rounded up: (steps, bands)."""
        bands, steps = self.bands(), self.num_steps
        below, columns = np.arange(bands)[:, np.newaxis], np.arange(steps)
        rows = np.minimum(below + columns, steps - 1)
        entries = self.array[rows, columns] if self.array.ndim == 2 else self.array[below]
        with np.errstate(all="ignore"):
            entries = np.where(below + columns < steps, np.abs(entries) / self.noise_multiplier, 0.0)
            products = np.zeros((steps, bands))
            for d in range(bands):
                products[d:, d] = (entries[: bands - d, d:] * entries[d:, : steps - d]).sum(axis=0)
            raised: Array = products * (1.0 + (bands + 20) * UNIT)
        return raised

    def largest_column(self) -> Gaussian:
        """Return the release of the largest column."""
        form = self.num_steps if self.array.ndim == 1 else None
        upper = matrix_sensitivity(self.array, steps=form, participation="single").upper
        return Gaussian(math.nextafter(self.noise_multiplier / upper, 0.0))


def banded(strategy: ArrayLike, steps: int, separation: int, noise_multiplier: float) -> Banded:
    """Check the arguments."""
    array = strategy_array(strategy)
    num_steps, separation, noise_multiplier = scalars(locals())
    if array.ndim == 2 and array.shape != (num_steps, num_steps):
        raise ValueError(f"strategy must be of shape ({num_steps}, {num_steps}), not {array.shape}")
    below = _rows_below(array)
    if array[(below < 0) | (below >= separation)].any():
        raise ValueError(f"strategy must be lower triangular with at most {separation} bands, the separation")
    array = first_coefficients(array, num_steps) if array.ndim == 1 else array
    return Banded(array, num_steps, separation, noise_multiplier)


def _rows_below(array: Array) -> NDArray[np.int64]:
    """Return by how many rows each entry is below the diagonal; coefficients are the entries of a column."""
    places = np.arange(len(array))
    return np.subtract.outer(places, places) if array.ndim == 2 else places


def check_participants(
    participants: Iterable[Iterable[Hashable]],
    *,
    participation: Participation,
    separation: int | None = None,
    max_participations: int | None = None,
) -> None:
    """Raise ValueError if anyone took part more than a sensitivity is for.

    Parameters
    ----------
    participants : iterable of iterables
        For each step, from 0, the ids of its records or clients, hashable.
    participation : {"single", "min_separation", "cyclic"}
        As given to `matrix_sensitivity` or `tree_sensitivity`.
    separation : int, optional
        As given there.
    max_participations : int, optional
        As given there.

    Returns
    -------
    None
        If nobody exceeded it.

    Raises
    ------
    ValueError
        Naming the step and the id, or if another argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> days = [["Ada", "Bo"], ["Cy"], ["Ada"]]
    >>> correlated_noise.check_participants(days, participation="min_separation", separation=2)
    """
    steps = [list(some) for some in participants]
    pattern = pattern_of(participation, separation, max_participations, max(1, len(steps)))
    last: dict[Hashable, int] = {}
    times: dict[Hashable, int] = {}
    for step, some in enumerate(steps):
        for one in some:
            times[one] = times.get(one, 0) + 1
            if times[one] > pattern.most or (one in last and not pattern.allows(step - last[one])):
                raise ValueError(
                    f"participants[{step}] must not have {shown(one)}, which was in step {last[one]}, {times[one]} times in all"
                )
            last[one] = step
