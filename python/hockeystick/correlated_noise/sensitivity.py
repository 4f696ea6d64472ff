"""How far one record moves what a matrix or a tree releases."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, choice, count_scalar, positive_scalar
from hockeystick._statements import SENTENCES
from hockeystick.correlated_noise import matrices, trees
from hockeystick.correlated_noise.participation import Participation, pattern_of
from hockeystick.mechanisms import Dominating, Gaussian, Mechanism
from hockeystick.mechanisms.base import Adjacency

__all__ = ["Sensitivity", "matrix_sensitivity", "tree_sensitivity"]


class Sensitivity(NamedTuple):
    """How far one record moves C x, over the clip norm.

    Attributes
    ----------
    lower : float
        How far it does with equal updates in `steps`, rounding included.
    upper : float
        How far it can at most, rounding included. Where the ends agree to rounding this is the exact value.
    steps : tuple of int
        Steps, from 0, of a record that attains `lower`.
    method : str
        How the upper end was found.
    participation : str
        Which steps a record is in, in words.
    """

    lower: float
    upper: float
    steps: tuple[int, ...]
    method: str
    participation: str = "steps of the pattern that the sensitivity is for"

    def mechanism(self, noise_multiplier: float) -> Dominating:
        """Return what the whole training releases about one record.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the entries of z over the clip norm, positive and finite.

        Returns
        -------
        Dominating
            To be composed once. At most Gaussian noise of `noise_multiplier` over `upper`, rounded down; attained by that over `lower`.

        Raises
        ------
        ValueError
            If noise_multiplier is outside its domain.
        """
        noise_multiplier = positive_scalar("noise_multiplier", noise_multiplier)
        attained = Gaussian(math.nextafter(noise_multiplier / self.lower, math.inf)) if self.lower > 0.0 else None
        noise = Gaussian(math.nextafter(noise_multiplier / self.upper, 0.0))
        return matrix_mechanism(noise, attained, takes_part=self.participation, zeroed_out=True, grouped=True)


def matrix_mechanism(
    mechanism: Mechanism,
    attained: Mechanism | None = None,
    *,
    takes_part: str,
    zeroed_out: bool = False,
    failure: float = 0.0,
    adjacency: Adjacency | None = None,
    grouped: bool = False,
) -> Dominating:
    """Return what dominates a matrix mechanism, with what that assumes."""
    words = SENTENCES["matrix_mechanism"]
    assumes = (words["takes_part"].format(steps=takes_part), *words["assumes"])
    special = (words["zeroed_out"],) if zeroed_out else ()
    return Dominating(mechanism, attained, assumes, special, failure=failure, adjacency=adjacency, grouped=grouped)


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
        A tuple (lower, upper, steps, method, participation); `upper` is certified. The ends agree for "single", where columns `separation` apart
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
    >>> import hockeystick as hs
    >>> from hockeystick import correlated_noise
    >>> coefficients = correlated_noise.square_root_coefficients(8)
    >>> found = correlated_noise.matrix_sensitivity(coefficients, num_steps=100, participation="cyclic", separation=10)
    >>> print(hs.format_upper(found.upper, ".4f"), hs.format_lower(found.mechanism(5.0).mechanism.noise_multiplier, ".4f"))
    4.1454 1.2061
    """
    array, steps = strategy_of_steps(strategy, num_steps)
    pattern = pattern_of(participation, separation, max_participations, steps)
    found = matrices.dense(array, pattern) if num_steps is None else matrices.toeplitz(array, steps, pattern)
    return _sensitivity(found, pattern.words(steps))


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
        A tuple (lower, upper, steps, method, participation); `upper` is certified. The ends agree for "single", where it is the root of
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
    >>> epsilon = hs.Accountant().compose(one_tree, 5).epsilon(1e-6)
    >>> print(hs.format_lower(one_tree.mechanism.noise_multiplier, ".4f"), hs.format_upper(epsilon, ".2f"))
    3.1622 3.31
    """
    num_steps = count_scalar("num_steps", num_steps)
    pattern = pattern_of(participation, separation, max_participations, num_steps)
    nodes = choice("nodes", nodes, ("all", "prefix"))
    return _sensitivity(trees.tree(num_steps, pattern, prefixes_only=nodes == "prefix"), pattern.words(num_steps))


def strategy_array(strategy: ArrayLike, name: str = "strategy") -> Array:
    array = STRICT.finite(name, strategy)
    if array.ndim not in {1, 2} or not array.any():
        msg = f"{name} must have one or two dimensions and an entry that is not zero, not be of shape {array.shape}"
        raise ValueError(msg + (" and all zero" if array.ndim in {1, 2} else ""))
    return array


def strategy_of_steps(strategy: ArrayLike, num_steps: int | None) -> tuple[Array, int]:
    """Return a matrix or coefficients, and the number of steps, which only coefficients do not have themselves."""
    array = strategy_array(strategy)
    if (array.ndim == 1) != (num_steps is not None):
        what = "needs num_steps" if array.ndim == 1 else "has its number of steps, and takes no num_steps"
        msg = f"strategy of shape {array.shape} {what}"
        raise ValueError(msg)
    return array, array.shape[1] if num_steps is None else count_scalar("num_steps", num_steps)


def _sensitivity(found: matrices.Ends, participation: str) -> Sensitivity:
    return Sensitivity(found.lower, found.upper, tuple(found.steps.tolist()), found.method, participation)
