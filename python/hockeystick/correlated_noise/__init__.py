"""Noise that is correlated between steps: matrix mechanisms, banded ones with sampling, and tree aggregation.

Each step t adds up clipped updates into x_t; what is released, or could be computed from the releases, is C x + z, with
a strategy matrix C and independent normal entries of z. One record is in some of the steps, and moves x there by vectors
of norm at most the clip norm. C x then moves by at most the sensitivity times the clip norm, and the whole training is one
Gaussian mechanism, however many steps it has.

Assumptions of all functions here:

- A record takes part in steps that are known or do not depend on the data, in a pattern as described. A training must enforce
  that; `check_participants` tells afterwards.
- Adjacency "add_or_remove" means that the record's updates are there or are zero, while the batches of all others stay as they are
  (zero-out). Under "replace" its updates become others in the same steps; the accountant takes twice the sensitivity.
- Updates may be chosen by earlier releases, if what belongs to a row of C is not released before the step of the row's last
  non-zero entry, as in a lower triangular matrix or a tree. Proof: given the past, a step's releases are Gaussians at a known
  distance; squared distances add up to at most the squared sensitivity on every path; this is what `GaussianFilter` shows to suffice.
  (Denisov et al. 2022, arXiv 2202.08312, Theorem 2.1.)
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, at_most, choice, count_scalar, positive_scalar, probability_scalar
from hockeystick.correlated_noise import matrices, trees
from hockeystick.correlated_noise.participation import Participation, pattern_of
from hockeystick.mechanisms import Gaussian, PoissonSampled

__all__ = [
    "Sensitivity",
    "check_participants",
    "cyclic_poisson",
    "matrix_sensitivity",
    "square_root_coefficients",
    "tree_sensitivity",
]


class Sensitivity(NamedTuple):
    """How far one record moves C x, over the clip norm.

    Attributes
    ----------
    lower : float
        How far it does with equal updates in `steps`, to rounding.
    upper : float
        How far it can at most, rounding included. Where the ends agree to rounding this is the exact value.
    steps : tuple of int
        Steps, from 0, of a record that attains `lower`.
    method : str
        How the upper end was found.
    """

    lower: float
    upper: float
    steps: tuple[int, ...]
    method: str

    def mechanism(self, noise_multiplier: float) -> Gaussian:
        """Return what the whole training releases about one record.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the entries of z over the clip norm, positive and finite.

        Returns
        -------
        Gaussian
            To be composed once; its noise multiplier is `noise_multiplier` over `upper`, rounded down.

        Raises
        ------
        ValueError
            If noise_multiplier is outside its domain.
        """
        noise_multiplier = positive_scalar("noise_multiplier", noise_multiplier)
        return Gaussian(math.nextafter(noise_multiplier / self.upper, 0.0))


def matrix_sensitivity(
    strategy: ArrayLike,
    *,
    num_steps: int | None = None,
    participation: Participation,
    separation: int | None = None,
    max_participations: int | None = None,
) -> Sensitivity:
    """Return the sensitivity of a matrix mechanism, C x + z.

    Parameters
    ----------
    strategy : array_like
        C, of shape (rows, steps). Or the coefficients of a lower triangular Toeplitz matrix, of shape (bands,), the
        diagonal's first. Finite, and not all zero.
    num_steps : int, optional
        With coefficients, and only there: the number of steps.
    participation : {"single", "min_separation", "cyclic"}
        Which steps one record is in: at most one; steps at least `separation` apart; or some of those that are equal modulo
        `separation`, as when a data set is passed over in a fixed order.
    separation : int, optional
        At least 1; for the last two, and required there.
    max_participations : int, optional
        For "min_separation": in how many steps a record is at most; as many as fit by default.

    Returns
    -------
    Sensitivity
        A tuple (lower, upper, steps, method); `upper` is certified. The ends agree for "single", where columns `separation` apart
        are orthogonal (a band no wider than that), for "cyclic" where C'C has no negative entries, and for coefficients
        that are non-negative and never rise.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the work would take more than some ten seconds.

    Notes
    -----
    Choquette-Choo et al. 2022 (arXiv 2211.06530) and 2023 (2306.08153); Kalinin and Lampert 2024 (2405.13763), Theorem 2. Where
    C'C has negative entries their absolute values are taken, which no dimension of the updates exceeds.

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> coefficients = correlated_noise.square_root_coefficients(8)
    >>> found = correlated_noise.matrix_sensitivity(coefficients, num_steps=100, participation="cyclic", separation=10)
    >>> print(f"{found.upper:.4f} {found.mechanism(5.0).noise_multiplier:.4f}")
    4.1453 1.2062
    """
    array = _strategy_array(strategy)
    if (array.ndim == 1) != (num_steps is not None):
        what = "needs num_steps" if array.ndim == 1 else "has its number of steps, and takes no num_steps"
        msg = f"strategy of shape {array.shape} {what}"
        raise ValueError(msg)
    steps = array.shape[1] if num_steps is None else count_scalar("num_steps", num_steps)
    pattern = pattern_of(participation, separation, max_participations, steps)
    found = matrices.dense(array, pattern) if num_steps is None else matrices.toeplitz(array, steps, pattern)
    return _sensitivity(found)


def tree_sensitivity(
    num_steps: int,
    *,
    participation: Participation,
    separation: int | None = None,
    max_participations: int | None = None,
    nodes: Literal["all", "prefix"] = "all",
) -> Sensitivity:
    """Return the sensitivity of tree aggregation over one tree, as DP-FTRL uses it.

    Parameters
    ----------
    num_steps : int
        Steps until the tree is restarted, at most 2^22 unless a record is in one only. If a tree is completed by empty steps to
        a power of two, that power.
    participation : {"single", "min_separation", "cyclic"}
        Which steps of the tree one record is in: see `matrix_sensitivity`.
    separation : int, optional
        At least 1; for the last two, and required there.
    max_participations : int, optional
        For "min_separation": in how many steps of the tree a record is at most; as many as fit by default.
    nodes : {"all", "prefix"}
        Which nodes are computed from: every complete one, as where the estimates of all nodes below are averaged (Honaker 2015); or
        those alone that make up prefix sums.

    Returns
    -------
    Sensitivity
        A tuple (lower, upper, steps, method); `upper` is certified. The ends agree for "single", where it is the root of
        the number of levels, floor(log2 num_steps) + 1, and for "cyclic".

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Kairouz et al. 2021 (arXiv 2103.00039), Appendix D. The noise of each node has one standard deviation; averaging what is released
    changes utility only. Trees after a restart have noise of their own: compose one `Gaussian` for each tree that a record is
    in, one in all if it is in one tree only.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick import correlated_noise
    >>> one_tree = correlated_noise.tree_sensitivity(1000, participation="single").mechanism(10.0)
    >>> print(f"{one_tree.noise_multiplier:.4f} {hs.Accountant().compose(one_tree, 5).epsilon(1e-6):.2f}")
    3.1623 3.31
    """
    num_steps = count_scalar("num_steps", num_steps)
    pattern = pattern_of(participation, separation, max_participations, num_steps)
    nodes = choice("nodes", nodes, ("all", "prefix"))
    return _sensitivity(trees.tree(num_steps, pattern, prefixes_only=nodes == "prefix"))


def cyclic_poisson(
    strategy: ArrayLike, *, num_steps: int, separation: int, sampling_rate: float, noise_multiplier: float
) -> tuple[PoissonSampled, int]:
    """Return the DP-SGD that a banded matrix mechanism equals if its batches are Poisson samples of parts in turn.

    Parameters
    ----------
    strategy : array_like
        C, square, of shape (steps, steps), or the coefficients of a lower triangular Toeplitz matrix, of shape (bands,). Lower triangular with
        at most `separation` bands: entries are zero above the diagonal, and `separation` rows below it and further.
    num_steps : int
        The number of steps.
    separation : int
        Into how many parts, b, the records are divided once, independently of the data; step t samples from part t mod b.
    sampling_rate : float
        Probability of each record of the part whose turn it is, in [0, 1]: for batches of B records expected of m, b B/m.
    noise_multiplier : float
        Standard deviation of the entries of z over the clip norm, positive and finite.

    Returns
    -------
    (PoissonSampled, int)
        Mechanism and count, for `Accountant.compose`: noise over the largest column norm of C, ceil(num_steps/b) times.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or C is no such matrix.

    Notes
    -----
    Choquette-Choo et al. 2023 (arXiv 2306.08153), BandMF with cyclic Poisson sampling. Proof: a record of part r can be in steps r, r + b,
    ... only, whose columns lie in different rows. Given all earlier releases and who else takes part, the rows from t to t + b - 1
    are Gaussian noise around values that are known but for the column at t times the record's update, if it is drawn: a Poisson
    sampled Gaussian at a distance of at most the norm of that column.

    A record that is added or removed must leave the parts of all others as they are.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick import correlated_noise
    >>> step, count = correlated_noise.cyclic_poisson(
    ...     correlated_noise.square_root_coefficients(8), num_steps=2000, separation=8, sampling_rate=0.08, noise_multiplier=2.0
    ... )
    >>> count, round(hs.Accountant().compose(step, count).epsilon(1e-6), 2)
    (250, 4.89)
    """
    array = _strategy_array(strategy)
    num_steps = count_scalar("num_steps", num_steps)
    separation = count_scalar("separation", separation)
    sampling_rate = probability_scalar("sampling_rate", sampling_rate)
    noise_multiplier = positive_scalar("noise_multiplier", noise_multiplier)
    if array.ndim == 2 and array.shape != (num_steps, num_steps):
        msg = f"strategy must be of shape ({num_steps}, {num_steps}), not {array.shape}"
        raise ValueError(msg)
    below = np.subtract.outer(np.arange(num_steps), np.arange(num_steps)) if array.ndim == 2 else np.arange(array.size)
    if array[(below < 0) | (below >= separation)].any():
        msg = f"strategy must be lower triangular with at most {separation} bands, the separation"
        raise ValueError(msg)
    form = num_steps if array.ndim == 1 else None
    largest_column = matrix_sensitivity(array, num_steps=form, participation="single")
    return PoissonSampled(largest_column.mechanism(noise_multiplier), sampling_rate), -(-num_steps // separation)


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
                msg = f"participants[{step}] must not have {one!r}, which was in step {last[one]}, {times[one]} times in all"
                raise ValueError(msg)
            last[one] = step


def square_root_coefficients(bands: int) -> Array:
    """Return the first coefficients of the square root of the matrix of prefix sums.

    Parameters
    ----------
    bands : int
        How many, at least 1; as many as there are steps for the root itself, fewer for a banded strategy.

    Returns
    -------
    ndarray
        Of shape (bands,): binomial(2j, j)/4^j, falling.

    Raises
    ------
    ValueError
        If bands is outside its domain.

    Notes
    -----
    Fichtenberger, Henzinger and Upadhyay 2022 (arXiv 2202.11205); banded by Kalinin and Lampert 2024 (arXiv 2405.13763).

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> correlated_noise.square_root_coefficients(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    bands = count_scalar("bands", bands)
    at_most("bands", bands, "the largest supported", 2.0**24)
    places = np.arange(1, bands)
    return np.cumprod(np.concatenate([[1.0], 1.0 - 0.5 / places]))


def _strategy_array(strategy: ArrayLike) -> Array:
    array = STRICT.finite("strategy", strategy)
    if array.ndim not in {1, 2} or not array.any():
        msg = f"strategy must have one or two dimensions and an entry that is not zero, not be of shape {array.shape}"
        raise ValueError(msg + (" and all zero" if array.ndim in {1, 2} else ""))
    return array


def _sensitivity(found: matrices.Ends) -> Sensitivity:
    return Sensitivity(found.lower, found.upper, tuple(found.steps.tolist()), found.method)
