"""Matrix mechanisms whose batches are Poisson samples, step by step, by conditional composition.

What dominates the whole. Let b tell which steps a record is in, of any law that does not depend on the data. For updates u_j of norm at most 1, chosen
by earlier releases or not, (law of |C| b + z, law of z) dominates. Proof: by outcomes, the ratio of the probabilities with and without the record is the
mean over b of exp(g_b - Var(g_b)/2), with normal g_b of covariances <C(bu), C(b'u)>/sigma^2, at most <|C| b, |C| b'>/sigma^2. The mean of a
convex function of such a sum does not fall where covariances rise (Kahane 1986), and both hockey-stick divergences are such means. Updates that depend
on earlier rows: replace the last row's by 1, which does not lower the mean given the rest, then the row before, and so on; the rows after it
are by then of fixed covariances. It is attained where C has no negative entry and all updates are alike.

A record replaced. Let the other record's steps b have the same law, and its updates be u'_j. With the outputs z as reference the divergence is the mean of f(X - e^eps X'), f(x) = max(x, 0),
X the mean over b of exp(g_b - Var(g_b)/2) and X' that of exp(h_b - Var(h_b)/2). As f is convex, Kahane's proof says that this does not fall where covariances among the g rise, where those among
the h do, or where those of a g and an h fall. The first two are at most <|C| b, |C| b'>/sigma^2, and the last at least minus that: (law of |C| b + z, law of -|C| b + z) dominates, the pair of
opposite updates. Whether both records draw the same steps does not matter. What raises covariances of all patterns, or tells what has one law for both, raises this
divergence as it does the others.

Batches that are cut. Of a sample above a size those of the least fresh random numbers are kept. Given the numbers and all coins of others, a record that is in a step moves its sum by
u - v: u = 0 if it is cut, and v is the update of the record that it displaces, if any. If who is cut is treated later as if kept, no other batch changes. Then u - v is an update of norm at most 2, and all of
the above holds with half the noise: against the data set without the record, where those it displaced come back, and for u' - v in place of u - v where it is replaced.
If the others alone fill a batch with a probability of at most f in all steps together, f more than the delta of batches that are not cut is enough: given the others, either the record
displaces nobody, or delta is at most 1.

Coins that are ignored. Let a record throw its coin in every step, but heed it only where a rule of its own earlier coins, and of others of its own, allows, so that it sits out
the steps after one that it was in (b-min-separated participation, arXiv 2602.09338), leaves after k of them, or starts late by chance. Its pattern is nowhere above that of all
coins, nor are the covariances of patterns, so that by Kahane the pair of all coins, one Poisson sample in each step, dominates.

One step after the other (Choquette-Choo, Ganesh, Steinke and Thakurta 2024, arXiv 2310.15526, conditional composition). Given the rows before, a row of
|C| b + z is a mixture of Gaussians. Say that it is dominated by a mixture that is known beforehand, unless the rows before are in a set that has at most the
probability f in all, with the record and without it. Replace what follows such rows by independent noise: this changes
the law by at most f, and what is left is dominated by the composition of the mixtures. So delta is at most that of the composition and f.

The mixtures. A row moves by the sum of its |C_ij| over the steps j that the record was in. If each, given all others and the rows before, has at most the
probability q_j, the sum is at most, in law, one of independent terms with probabilities q_j. A mixture whose shifts are larger in law
dominates, again by Kahane. The q_j are what follows.

How likely a record took part in each step, given what was released before: bounds that fail with a small probability only. Everything
is in units of the noise, and by the above no entry of C is negative and all updates are 1. Let c_j be the column of
step j without the rows that are still to come, X_jl the product of c_j and c_l, and y the rows released. Given y and whether the record
was in each step other than j, the log-odds that it was in step j are, by Bayes,

    log(p/(1-p)) + <y, c_j> - X_jj/2 - (sum of X_jl over those other steps that it was in),

at most what they are without the last term. With the record, <y, c_j> is S + sqrt(X_jj) xi: xi a standard normal, and S the sum of X_jl over the
steps that it was in. Without it S = 0, and less is exceeded. The logarithm of the Gaussian tail Q is concave, with a slope of at least -h(x),
h(x) = (x + sqrt(x^2 + 4))/2 (Birnbaum 1942), so

    P(<y, c_j> > x sqrt(X_jj)) = E Q(x - S/sqrt(X_jj)) <= Q(x) E exp(h(x) S/sqrt(X_jj)) = Q(x) prod_l (1 - p + p exp(h(x) X_jl/sqrt(X_jj))).

An x is sought at which this is the probability that may fail; the inequality, checked at the x that is used, is what counts, not how x was found.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import Array, at_most
from hockeystick._checks.arguments import scalars
from hockeystick._numeric.rounding import GAUSSIAN_TAIL, UNIT, UP
from hockeystick.accounting import Accountant
from hockeystick.correlated_noise.balls_in_bins import in_noise
from hockeystick.correlated_noise.sensitivity import first_coefficients, matrix_mechanism, strategy_of_steps
from hockeystick.mechanisms import Composed, MixtureOfGaussians

CELLS = 2**14
LEAST_SHIFT = 1e-9  # of a MixtureOfGaussians, in noise multipliers
MAX_SHIFTS = 96


def sum_law(distances: Array, probabilities: Array, cell: float) -> Array:
    """Return the probabilities of 0, 1, ... cells, where each distance is rounded up to whole cells.

    A law that is reached by rounding values up has larger tail probabilities everywhere, and so has the mixture of Gaussians that is made of it.
    """
    places = np.ceil(distances / cell).astype(np.int64)
    law = np.zeros(int(places.sum()) + 1)
    law[0], reached = 1.0, 1
    for place, probability in zip(places, probabilities, strict=True):
        moved = law[:reached] * probability
        law[:reached] *= 1.0 - probability
        law[place : place + reached] += moved
        reached += int(place)
    law[1:] *= 1.0 + (4 * len(places) + 16) * UNIT
    return law


def largest_tails(laws: Iterable[Array]) -> Array:
    """Return the law whose tail probabilities are the largest of those of all laws."""
    tails = [np.cumsum(law[::-1])[::-1] for law in laws]
    longest = max(map(len, tails))
    most = np.max([np.pad(tail, (0, longest - len(tail))) for tail in tails], axis=0)
    law: Array = most - np.append(most[1:], 0.0)
    return law


def mixture(law: Array, cell: float) -> MixtureOfGaussians:
    """Return the mechanism whose sensitivity, in noise multipliers, has this law, with few sensitivities, rounded up."""
    places = np.flatnonzero(law[1:]) + 1
    masses = law[places]
    if places.size > MAX_SHIFTS:  # points in proportion to the cube root of the density, as for quantisers
        weights = np.cumsum(np.cbrt(masses))
        parts = np.minimum((weights / weights[-1] * MAX_SHIFTS).astype(np.int64), MAX_SHIFTS - 1)
        first = np.flatnonzero(np.diff(parts, prepend=-1))
        masses = np.add.reduceat(masses, first)
        places = places[np.append(first[1:], places.size) - 1]
    masses = masses * (1.0 + (CELLS + 64) * UNIT)
    rest = 1.0 - math.fsum(masses)
    for i in range(masses.size):
        if rest >= 0:  # else what was rounded up comes off the smallest sensitivities: 0 is too unlikely to give it
            break
        rest, masses[i] = min(0.0, rest + masses[i]), max(0.0, masses[i] + rest)
    shifts = np.maximum(places * cell * (1.0 + 4 * UNIT), LEAST_SHIFT)
    return MixtureOfGaussians(1.0, [0.0, *shifts.tolist()], [max(rest, 0.0), *masses.tolist()])


HALVINGS = 24
PRODUCTS = 1.0 + 1e-12  # by which products of columns are rounded up: more than the rounding of 1000 terms
ODDS = 1e-11  # more than what that takes from the log-odds, over the sum of the sizes of their terms


def posterior_bounds(products: Array, squares: Array, rate: float, failure: float) -> Array:
    """Return for each step a bound of the probability that a record was in it, whatever else it was in.

    Parameters
    ----------
    products : ndarray
        X_jl, one row for each step j, times `PRODUCTS`.
    squares : ndarray
        X_jj, likewise; where they are 0 no row has told anything of the step.
    rate : float
        p, in [0, 1].
    failure : float
        The probability with which each bound may fail.
    """
    chances = np.full(squares.shape, rate)
    known = squares > 0
    if rate in (0.0, 1.0) or not known.any():
        return chances
    roots = np.sqrt(squares[known])
    shifts = products[known] / roots[:, np.newaxis]
    x = _exceeded(shifts, rate, failure)
    prior = math.log(rate) - math.log1p(-rate)
    odds = prior + x * roots - squares[known] / 2.0
    odds += ODDS * (abs(prior) + x * roots + squares[known])
    with np.errstate(over="ignore"):
        chances[known] = np.minimum(1.0, UP / (1.0 + np.exp(-odds)))
    return chances


def _exceeded(shifts: Array, rate: float, failure: float) -> Array:
    """Return an x for each row at which the inequality holds; infinity if none was found."""
    high = 2.0 * shifts.sum(axis=1) + 2.0 * math.sqrt(-2.0 * math.log(failure)) + 2.0
    found = _log_exceeds(high, shifts, rate) <= math.log(failure)
    low = np.zeros_like(high)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        good = _log_exceeds(middle, shifts, rate) <= math.log(failure)
        low, high = np.where(good, low, middle), np.where(good, middle, high)
    return np.where(found, high, np.inf)


def _log_exceeds(x: Array, shifts: Array, rate: float) -> Array:
    """Return an upper bound of the logarithm of the right-hand side above."""
    tail = np.asarray(core.log_q(x), dtype=np.float64)
    slope = 0.5 * (x + np.sqrt(x * x + 4.0)) * UP
    terms = np.logaddexp(math.log1p(-rate), math.log(rate) + slope[:, np.newaxis] * shifts)
    sums = np.maximum(terms, 0.0).sum(axis=1)
    bound: Array = tail + sums + (2 * shifts.shape[1] + 16) * GAUSSIAN_TAIL * (sums - tail + 1.0)
    return bound


MAX_MIXTURES = 32
MAX_BANDS, MAX_ROWS = 512, 192  # some ten seconds


def conditional_composition(
    strategy: ArrayLike, *, steps: int | None = None, sampling_rate: float, noise_multiplier: float, failure: float
) -> Accountant:
    """Return the ledger of a matrix mechanism of which every step draws its own Poisson sample: of independent steps that dominate it.

    Parameters
    ----------
    strategy : array_like
        C, of shape (rows, steps), at most 192 of either; or the coefficients of a lower triangular Toeplitz matrix, of shape (bands,), at most
        512. Nothing of a row is released before the step of its last entry that is not 0. Absolute values count.
    steps : int, optional
        With coefficients, and only there: the number of steps.
    sampling_rate : float
        Probability of each record in each step, independently, in [0, 1].
    noise_multiplier : float
        Standard deviation of the entries of z over the clip norm, positive and finite.
    failure : float
        Probability, in (0, 1), with which the steps may not stand for the mechanism; part of delta, say a tenth of it.

    Returns
    -------
    Accountant
        Of all steps, failure included, for a record added or removed (zeroed out); more may be composed.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    After Choquette-Choo, Ganesh, Steinke and Thakurta 2024 (arXiv 2310.15526), with a proof for updates of any sign and dimension that are chosen
    by earlier releases: `hockeystick.correlated_noise.conditional`. The bound is good for much noise. For little noise, compare it with
    `cyclic_poisson`, which is a way to draw batches of its own, and with `matrix_sensitivity` without sampling; each alone is an upper bound.

    It covers records that ignore some of their coins by a rule of their earlier ones: that sit out the steps after one that they were in (b-min-separated
    participation, arXiv 2602.09338), or leave after so many. For the former, `min_separated_poisson` gains from it, and is mostly smaller.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick import correlated_noise
    >>> found = correlated_noise.conditional_composition(
    ...     correlated_noise.square_root_coefficients(4),
    ...     steps=1000,
    ...     sampling_rate=0.01,
    ...     noise_multiplier=8.0,
    ...     failure=1e-7,
    ... )
    >>> print(hs.format_upper(found.epsilon(1e-6), ".3f"))
    0.624
    """
    array, steps = strategy_of_steps(strategy, steps)
    rate, noise_multiplier, failure = scalars(locals(), steps=None, failure="inside")
    shifts = in_noise(np.abs(array), noise_multiplier) * UP
    with np.errstate(under="ignore"):
        if array.ndim == 2:
            independent = _matrix_steps(shifts, rate, failure)
        else:
            independent = _toeplitz_steps(shifts, steps, rate, failure)
    drawn = f"each step with probability {rate!r}, independently of all else, afresh and in secret"
    whole = matrix_mechanism(Composed(independent), takes_part=drawn, failure=failure, adjacency="add_or_remove")
    return Accountant("add_or_remove").compose(whole)


def _toeplitz_steps(
    c: Array, num_steps: int, rate: float, failure: float
) -> tuple[tuple[MixtureOfGaussians, int], ...]:
    """Return the steps of a Toeplitz matrix: one mixture, that of a row in the middle, has at least the tails of all."""
    c = first_coefficients(c, num_steps)
    bands = len(c)
    at_most("bands of strategy", bands, "the largest supported", MAX_BANDS)
    # X of a step k rows ago and of one g rows after that, for g from 1 - bands to bands - 1: of its first k rows.
    products = np.zeros((bands - 1, 2 * bands - 1))
    for gap in range(bands):
        partial = np.cumsum(c[: bands - gap] * c[gap:]) * PRODUCTS
        for k in range(1, bands):
            products[k - 1, bands - 1 - gap] = partial[min(k, bands - gap) - 1]  # an earlier step: its rows from gap on
            if gap < k:  # a later one, of which k - gap rows are out
                products[k - 1, bands - 1 + gap] = partial[min(k - gap, bands - gap) - 1]
    squares = products[:, bands - 1]
    chances = np.append(rate, posterior_bounds(products, squares, rate, failure / max(1, num_steps * (bands - 1))))
    kept = c > 0
    cell = float(c.sum()) / CELLS
    return ((mixture(sum_law(c[kept], chances[kept], cell), cell), num_steps),)


def _matrix_steps(shifts: Array, rate: float, failure: float) -> tuple[tuple[MixtureOfGaussians, int], ...]:
    """Return the steps of any matrix, whose rows are put in the order of their release, neighbours by the larger tails of all."""
    rows, num_steps = shifts.shape
    at_most("rows and steps of strategy", max(rows, num_steps), "the largest supported", MAX_ROWS)
    shifts = shifts[shifts.any(axis=1)]
    last = shifts.shape[1] - 1 - np.argmax(shifts[:, ::-1] > 0, axis=1)
    shifts = shifts[np.argsort(last, kind="stable")]
    each = failure / np.count_nonzero(shifts)
    cell = float(shifts.sum(axis=1).max()) / CELLS
    size = -(-len(shifts) // MAX_MIXTURES)
    steps: list[tuple[MixtureOfGaussians, int]] = []
    for first in range(0, len(shifts), size):
        group = range(first, min(first + size, len(shifts)))
        laws = [sum_law(shifts[row][shifts[row] > 0], _row_chances(shifts, row, rate, each), cell) for row in group]
        steps.append((mixture(largest_tails(laws), cell), len(group)))
    return tuple(steps)


def _row_chances(shifts: Array, row: int, rate: float, failure: float) -> Array:
    """Return for the steps of a row the bounds of the probabilities that the record was in them."""
    products = shifts[:row].T @ shifts[:row] * PRODUCTS
    mine = np.flatnonzero(shifts[row])
    return posterior_bounds(products[mine], products[mine, mine], rate, failure)
