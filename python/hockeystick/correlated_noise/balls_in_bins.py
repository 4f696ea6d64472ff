"""Matrix mechanisms with balls-in-bins batches: every record draws one of b bins, once and in secret, and is in the steps equal to it modulo b.

What dominates (`hockeystick.correlated_noise.conditional`, for the law of b that these batches have): with m_j the sum of the columns of |C| of the
steps of bin j, the pair of the mean over j of N(m_j, s^2 I), and N(0, s^2 I). Under the second one its likelihood ratio is the mean of
exp(g_j - G_jj/2) over j, with normal g of covariances G_jk = <m_j, m_k>/s^2.

Equal covariances. If a is the largest G_jk of two bins and a + d the largest G_jj, covariances of a between bins, and a + d of each, are
nowhere smaller, so that by Kahane (1986) both hockey-stick divergences do not fall. Then g_j = sqrt(a) x + sqrt(d) x_j with independent standard
normal x, and the ratio is exp(sqrt(a) x - a/2) times the mean of exp(sqrt(d) x_j - d/2): one Gaussian release of noise 1/sqrt(a), composed
with one random allocation to b steps of noise 1/sqrt(d).

Bins told apart. Tell besides in which class a record's bin is, of r classes of the bins equal modulo r. That only raises delta, which is then at
most the mean of those of the classes (both divergences are jointly convex); in each, a and d are the largest of its own bins, and fewer
bins than b: at least floor(b/r). One of t steps leaks no more than one of t - 1, as it is the mean over the sets of t - 1. So every r gives a bound: r = 1
where all bins are alike, r near the number of bands for a banded C, whose bins are orthogonal from there on; r = b is no sampling at all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import DELTA, NON_NEGATIVE_OR_INFINITE, Array, at_most, count_scalar, positive_scalar, scalar
from hockeystick._numeric.rounding import UNIT
from hockeystick._statements import Format
from hockeystick.accounting import Accountant
from hockeystick.correlated_noise.sensitivity import limit_work, matrix_mechanism, strategy_of_steps
from hockeystick.mechanisms import Composed, Gaussian, Mechanism, RandomAllocation
from hockeystick.mechanisms.sampled import NOISE

MAX_BINS = 2048
SAME = 1e-9  # taken off a shift, far more than covariances were raised for rounding
LEAST_ENTRY, LARGEST_ENTRY = 1e-150, 1e140  # of C over the noise: squares and their sums are normal numbers


class BallsInBins(NamedTuple):
    """A matrix mechanism with balls-in-bins batches, as ledgers each of which is a bound.

    Attributes
    ----------
    ledgers : tuple of Accountant
        The whole training, for a record added or removed (zeroed out): any of them alone is an upper bound.
    """

    ledgers: tuple[Accountant, ...]

    def statement(self, delta: float, *, format: Format = "text", unit: str | None = None) -> str:
        """Return a privacy statement, that of the ledger with the least epsilon.

        Parameters
        ----------
        delta : float
            In [0, 1).
        format : {"text", "markdown", "latex", "json"}
            How it is written.
        unit : str, optional
            What is added or removed, in your words.

        Returns
        -------
        str
            Its epsilon is `epsilon(delta)`.
        """
        delta = scalar("delta", delta, *DELTA)
        best = min(self.ledgers, key=lambda ledger: float(ledger.epsilon(delta)))
        return best.statement(delta, format=format, unit=unit)

    def epsilon(self, delta: float) -> float:
        """Return a certified upper bound of epsilon, the least of the ledgers.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float
            Non-negative.

        Raises
        ------
        ValueError
            If delta is outside its domain.
        """
        delta = scalar("delta", delta, *DELTA)
        return min(float(ledger.epsilon(delta)) for ledger in self.ledgers)

    def delta(self, epsilon: float) -> float:
        """Return a certified upper bound of delta, the least of the ledgers.

        Parameters
        ----------
        epsilon : float
            Non-negative; infinity is legal.

        Returns
        -------
        float
            In [0, 1].

        Raises
        ------
        ValueError
            If epsilon is outside its domain.
        """
        epsilon = scalar("epsilon", epsilon, *NON_NEGATIVE_OR_INFINITE)
        return min(float(ledger.delta(epsilon)) for ledger in self.ledgers)


def balls_in_bins(strategy: ArrayLike, *, steps: int | None = None, bins: int, noise_multiplier: float) -> BallsInBins:
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

    Returns
    -------
    BallsInBins
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
    0.460 2.345
    """
    noise_multiplier = positive_scalar("noise_multiplier", noise_multiplier)
    covariances = bin_covariances(strategy, steps, bins, noise_multiplier)
    bins = len(covariances)
    ledgers = []
    for classes in sorted({min(2**k, bins) for k in range(bins.bit_length() + 1)}):
        shared, own = _largest_of_classes(covariances, classes)
        attained = _attained(covariances, strategy) if classes == 1 else None
        drawn = f"the steps equal to its bin modulo {bins}; each record draws its bin, one of {bins}, uniformly, once, for itself and in secret"
        releases = _releases(shared, own, bins // classes)
        mechanism = Composed([(release, 1) for release in releases]) if len(releases) > 1 else releases[0]
        known = matrix_mechanism(mechanism, attained, takes_part=drawn, adjacency="add_or_remove")
        ledgers.append(Accountant("add_or_remove").compose(known))
    return BallsInBins(tuple(ledgers))


def bin_covariances(strategy: ArrayLike, num_steps: int | None, bins: int, noise_multiplier: float) -> Array:
    """Return <m_j, m_k>/s^2 for all pairs of bins, rounded up."""
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
    covariances: Array = sums.T @ sums * (1.0 + 4 * (len(sums) + steps + 20) * UNIT)
    return covariances


def in_noise(array: Array, noise_multiplier: float) -> Array:
    """Return entries over the noise; what is so small that squares might underflow is raised, which leaks no less."""
    with np.errstate(all="ignore"):
        shifts = np.where(array > 0.0, np.maximum(array / noise_multiplier, LEAST_ENTRY), 0.0)
    if not shifts.max() <= LARGEST_ENTRY:
        msg = f"noise_multiplier must be at least 1e-140 of the largest entry of strategy, {array.max()}, not {noise_multiplier}"
        raise ValueError(msg)
    return shifts


def _largest_of_classes(covariances: Array, classes: int) -> tuple[float, float]:
    """Return the largest covariance of two bins of one class, and the largest variance less it, rounded up."""
    shared = 0.0
    for first in range(classes):
        block = covariances[first::classes, first::classes]
        shared = max(shared, float(np.max(block - np.diag(np.diag(block)), initial=0.0)))
    own = float(np.diag(covariances).max())
    return shared, max(0.0, math.nextafter(own - shared, math.inf))


def _releases(shared: float, own: float, bins: int) -> list[Mechanism]:
    """Return a Gaussian release of variance `shared` of its loss's exponent, and an allocation of `own`."""
    noise = min(_noise(own), NOISE[1])
    if bins == 1 or noise < NOISE[0]:
        return [Gaussian(_noise(math.nextafter(shared + own, math.inf)))]
    together: list[Mechanism] = [Gaussian(_noise(shared))] if shared > 0.0 else []
    return [*together, RandomAllocation(Gaussian(noise), bins)] if own > 0.0 else together


def _attained(covariances: Array, strategy: ArrayLike) -> Mechanism | None:
    """Return what equal updates attain if bins are orthogonal and C has no negative entry: longer sums of columns only leak more."""
    shift = math.sqrt(float(np.diag(covariances).min())) * (1.0 - SAME)
    alone = np.count_nonzero(covariances) == len(covariances) and shift > 0.0 and (np.asarray(strategy) >= 0.0).all()
    noise = 1.0 / shift if alone else 0.0
    return RandomAllocation(Gaussian(noise), len(covariances)) if NOISE[0] <= noise <= NOISE[1] else None


def _noise(variance: float) -> float:
    """Return one over the root of a variance, rounded down."""
    return 1.0 / math.sqrt(variance) * (1.0 - 4 * UNIT) if variance > 0.0 else math.inf
