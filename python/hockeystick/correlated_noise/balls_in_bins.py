"""Matrix mechanisms with balls-in-bins batches: every record draws one of b bins, once and in secret, and is in the steps equal to it modulo b.

What dominates (`hockeystick.correlated_noise.conditional`, for the law of b that these batches have): with m_j the sum of the columns of |C| of the
steps of bin j, the pair of the mean over j of N(m_j, s^2 I), and N(0, s^2 I). Under the second one its likelihood ratio is the mean of
exp(g_j - G_jj/2) over j, with normal g of covariances G_jk = <m_j, m_k>/s^2.

By Kahane (1986) covariances K with K_jk >= G_jk for all j and k, j = k too, in place of G do not lower either hockey-stick divergence. Cut
the bins into blocks of m or m + 1 neighbours, and colour the blocks with k colours in turn. Tell the colour of a record's bin: that only raises
delta, which is then at most the mean of those of the colours (both divergences are jointly convex). Within a colour of N bins, raise
the covariances of two blocks to the largest of them, c, those of two bins of a block to a >= c, and variances to d >= a. Then
g_j = sqrt(c) x + sqrt(a - c) y_B + sqrt(d - a) z_j for the bin j of block B, with independent standard normal x, y and z. A block of m + 1 is the
mean over its subsets of m bins. Blocks then weigh at most 1/n, n = floor(N/(m + 1)) or 1 if that is 0, or N/m where all have m bins: their mean is one of means of n
blocks with equal weights. Both replacements only raise delta, by the same convexity. What is left is a Gaussian release of noise 1/sqrt(c), composed
with one random allocation, to n steps, of a Gaussian release of noise 1/sqrt(a - c) and a random allocation of noise 1/sqrt(d - a) to m steps.

So each pair (blocks, colours) gives a bound. One colour and blocks of one bin: exact where all bins have equal covariances. As many colours
as C has bands, and blocks of one bin: for a banded C, whose bins are orthogonal from there on. As many as bins: no sampling at all.
Blocks of several bins keep secret which of the correlated neighbours it is. Where noise is too little for an allocation, all of its steps are one:
a = d, or c = d.

Moments. The second, third and fourth moment of the likelihood ratio bound delta, too (`hockeystick.correlated_noise.ratio_moments`); that of order k is the mean over k bins of exp of the sum of
their G_jk. They take all covariances as they are, and are the better bound at large deltas where many bands are correlated.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Array, at_most, count_scalar
from hockeystick._checks.arguments import scalars
from hockeystick._numeric.rounding import UNIT
from hockeystick.accounting import Accountant
from hockeystick.correlated_noise.amplified import AmplifiedGuarantee
from hockeystick.correlated_noise.ratio_moments import NO_MOMENTS, uniform_moments
from hockeystick.correlated_noise.sensitivity import limit_work, matrix_mechanism, strategy_of_steps
from hockeystick.mechanisms import Composed, Gaussian, Mechanism, RandomAllocation
from hockeystick.mechanisms.base import Adjacency
from hockeystick.mechanisms.sampled import NOISE

MAX_BINS = 2048
MAX_BLOCK = 64
MAX_CUTS = 12
SAME = 1e-9  # taken off a shift, far more than covariances were raised for rounding
LEAST_ENTRY, LARGEST_ENTRY = 1e-150, 1e140  # of C over the noise: squares and their sums are normal numbers


def balls_in_bins(
    strategy: ArrayLike,
    *,
    steps: int | None = None,
    bins: int,
    noise_multiplier: float,
    adjacency: Adjacency = "add_or_remove",
    truncated: bool = False,
) -> AmplifiedGuarantee:
    """Return the guarantee of a matrix mechanism whose records each draw one of b bins for all epochs.

    Parameters
    ----------
    strategy : array_like
        C, of shape (rows, steps), or the coefficients of a lower triangular Toeplitz matrix, of shape (bands,). Absolute values count.
    steps : int, optional
        With coefficients, and only there: the number of steps.
    bins : int
        b, at most 2048 and the number of steps. Step t, from 0, has the records of bin t modulo b. A record's bin is uniform, drawn once, for
        itself, and kept secret; so the sizes of batches are random.
    noise_multiplier : float
        Standard deviation of the entries of z over the clip norm, positive and finite.
    adjacency : {"add_or_remove", "replace"}
        Whether a record is added or removed (zeroed out), or replaced.
    truncated : bool
        Whether bins above a size are cut, in every step anew, to uniform subsets of that size. A record that is removed is then gone, and those it displaced come back.

    Returns
    -------
    AmplifiedGuarantee
        Its `epsilon` and `delta` are certified upper bounds.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Batches and pair are those of Choquette-Choo, Ganesh, Haque, Steinke and Thakurta 2024 (arXiv 2410.06266), who estimate delta by sampling. This bound
    is certified, and needs no samples: the proof is in `hockeystick.correlated_noise.balls_in_bins`. It is the exact value of the pair where
    all bins have equal covariances, as for DP-SGD over one epoch. `estimate_balls_in_bins_delta` tells how far it is from the truth.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick import correlated_noise
    >>> coefficients = correlated_noise.square_root_coefficients(8)
    >>> found = correlated_noise.balls_in_bins(coefficients, steps=2000, bins=200, noise_multiplier=8.0)
    >>> unsampled = correlated_noise.matrix_sensitivity(
    ...     coefficients, steps=2000, participation="cyclic", separation=200
    ... ).mechanism(8.0)
    >>> print(hs.format_upper(found.epsilon(1e-6), ".3f"), hs.format_upper(hs.Accountant().compose(unsampled).epsilon(1e-6), ".3f"))
    0.453 2.345
    """
    noise, truncated = scalars(locals(), steps=None, bins=None)
    sums, error = bin_sums(strategy, steps, bins, noise / 2 if truncated else noise)
    covariances = sums.T @ sums * (1.0 + error)  # rounded up
    bins = len(covariances)
    attained = None if truncated else _attained(covariances, strategy)
    variances = np.diag(covariances)
    if attained is not None and variances.max() <= variances.min() * (1.0 + SAME):  # one allocation is exact
        cuts, moments = [_Cut(0.0, float(variances.max()), float(variances.max()), 1, bins)], NO_MOMENTS
    else:
        cuts, moments = _cuts(covariances), uniform_moments(covariances, 2.0 * error)
    drawn, made = drawn_bins(bins), (_composed(cut.releases()) for cut in cuts)
    known = (matrix_mechanism(each, attained, takes_part=drawn, truncated=truncated) for each in made)
    ledgers = tuple(Accountant(adjacency).compose(each) for each in known)
    moments = moments._replace(replaced=ledgers[0].adjacency == "replace")
    return AmplifiedGuarantee(ledgers, ledgers[0].premises, moments)


def drawn_bins(bins: int) -> str:
    """Return in which steps a record is, in words."""
    return f"the steps equal to its bin modulo {bins}; each record draws its bin, one of {bins}, uniformly, once, for itself and in secret"


def bin_sums(strategy: ArrayLike, num_steps: int | None, bins: int, noise_multiplier: float) -> tuple[Array, float]:
    """Return m_j/s of all bins j as columns, and what their products are off by, relative, at most."""
    array, steps = strategy_of_steps(strategy, num_steps)
    array = in_noise(np.abs(array), noise_multiplier)
    bins = count_scalar("bins", bins)
    at_most("bins", bins, "the number of steps and 2048,", min(steps, MAX_BINS))
    limit_work(float(array.shape[0] if array.ndim == 2 else steps) * bins * bins + steps * len(array))
    if array.ndim == 1:
        sums = np.zeros((steps, bins))
        for k, coefficient in enumerate(array[:steps]):
            step = np.arange(steps - k)
            sums[step + k, step % bins] += coefficient
    else:
        sums = np.stack([array[:, first::bins].sum(axis=1) for first in range(bins)], axis=1)
    return sums, 4 * (len(sums) + steps + 20) * UNIT


def in_noise(array: Array, noise_multiplier: float) -> Array:
    """Return entries over the noise; what is so small that squares might underflow is raised, which leaks no less."""
    with np.errstate(all="ignore"):
        shifts = np.where(array > 0.0, np.maximum(array / noise_multiplier, LEAST_ENTRY), 0.0)
    if not shifts.max() <= LARGEST_ENTRY:
        raise ValueError(
            f"noise_multiplier must be at least 1e-140 of the largest entry of strategy, {array.max()}, not {noise_multiplier}"
        )
    return shifts


class _Cut(NamedTuple):
    """Bins of one colour: their covariances between blocks and within a block, their own variance, a block's size, and the number of blocks."""

    between: float
    within: float
    own: float
    size: int
    blocks: int

    def releases(self) -> list[Mechanism]:
        """Return what composes to the pair of these covariances, rounded up."""
        together, step = _gaussian(self.between, 0.0), _gaussian(self.within, self.between)
        if self.within < self.own:
            step.append(RandomAllocation(_allocatable(self.own, self.within), self.size))
        elif self.blocks > 1 and step:
            step = [_allocatable(self.own, self.between)]
        if self.blocks > 1 and step:
            step = [RandomAllocation(_composed(step), self.blocks)]
        return together + step

    def log_second_moment(self) -> float:
        """Return the logarithm of the mean square of the likelihood ratio: the less, the less is likely to leak at any epsilon."""
        block = self.within - self.between + math.log1p(_expm1(self.own - self.within) / self.size)
        return self.between + math.log1p(_expm1(block) / self.blocks)


def _cuts(covariances: Array) -> list[_Cut]:
    """Return the cuts into blocks, and their colours, whose second moments are least, and no sampling at all."""
    bins, own = len(covariances), float(covariances.max())
    others = covariances - np.diag(np.diag(covariances))
    found = set()
    for blocks in {count for size in range(1, MAX_BLOCK + 1) for count in (bins // size, -(-bins // size)) if count}:
        starts = -(-np.arange(blocks) * bins // blocks)
        sizes = np.diff(starts, append=bins)
        largest = np.maximum.reduceat(np.maximum.reduceat(others, starts, axis=0), starts, axis=1)
        inside, *apart = (float(largest.diagonal(distance).max()) for distance in range(blocks))
        for colours in range(1, blocks + 1):
            between = max(apart[colours - 1 :: colours], default=0.0)
            within = max(inside, between)
            if sizes.min() == 1 or _noise(own, within) < NOISE[0]:
                within = own
            if within == own and _noise(own, between) < NOISE[0]:
                between = own
            of_colours = np.pad(sizes, (0, -blocks % colours)).reshape(-1, colours).sum(axis=0)
            least = max(int(of_colours.min()) // int(sizes.max()), 1)
            found.add(_Cut(between, within, own, int(sizes.min()), least))
    unsampled = _Cut(0.0, own, own, 1, 1)
    best = sorted(found - {unsampled}, key=lambda cut: (cut.log_second_moment(), -cut.blocks))
    return [*best[:MAX_CUTS], unsampled]


def _composed(releases: list[Mechanism]) -> Mechanism:
    return releases[0] if len(releases) == 1 else Composed([(release, 1) for release in releases])


def _gaussian(variance: float, known: float) -> list[Mechanism]:
    """Return the release whose noise has what a variance has more than a known one; none if that is nothing."""
    return [Gaussian(_noise(variance, known))] if variance > known else []


def _allocatable(variance: float, known: float) -> Gaussian:
    """Return the same, with no more noise than an allocation knows."""
    return Gaussian(min(_noise(variance, known), NOISE[1]))


def _expm1(x: float) -> float:
    return math.expm1(min(x, 700.0))


def _attained(covariances: Array, strategy: ArrayLike) -> Mechanism | None:
    """Return what equal updates, or opposite ones of two records, attain if bins are orthogonal and C has no negative entry: longer sums of columns only leak more."""
    shift = math.sqrt(float(np.diag(covariances).min())) * (1.0 - SAME)
    alone = np.count_nonzero(covariances) == len(covariances) and shift > 0.0 and (np.asarray(strategy) >= 0.0).all()
    noise = 1.0 / shift if alone else 0.0
    return RandomAllocation(Gaussian(noise), len(covariances)) if NOISE[0] <= noise <= NOISE[1] else None


def _noise(variance: float, known: float) -> float:
    """Return one over the root of what a variance has more than a known one, rounded down; infinite if that is nothing."""
    return (
        1.0 / math.sqrt(math.nextafter(variance - known, math.inf)) * (1.0 - 4 * UNIT) if variance > known else math.inf
    )
