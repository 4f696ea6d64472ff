"""How far one record moves what a matrix or a tree releases.

A matrix. One record moves some rows of x, the steps of a pattern, by vectors of norm at most 1; what is bounded is how far that moves C x,
C the strategy matrix. With X = C'C and the record in the steps of a pattern, the squared distance is the sum of X_ij <u_i, u_j> over the pattern, at
most that of |X_ij| (Choquette-Choo et al. 2022, arXiv 2211.06530), and attained if these X_ij are non-negative. Patterns whose
steps are at least b apart are too many to list. Three bounds, none of which needs a sign:

- Row by row (Choquette-Choo et al. 2023, arXiv 2306.08153): with u_i the largest sum of |X_ij| over j of a pattern that holds i,
  the sum is at most that of u_i over a pattern, and largest sums over patterns are dynamic programmes. Exact where columns
  at least b apart are orthogonal: then u_i = X_ii.
- By position: the m-th step of a pattern, from 0, is at m b or later, and the l-th and the m-th are at least (m - l) b
  apart. So the pair counts at most the largest |X_ij| with j >= m b and j - i >= (m - l) b. Exact where |X| falls with both and is
  X: a Toeplitz matrix with coefficients that are non-negative and never rise (Kalinin and Lampert 2024, arXiv 2405.13763).
- The second bound in closed form for Toeplitz matrices: X_ij is a partial sum of c_s c_(s+j-i), of min(p - (j - i), n - j) terms.
  Where coefficients are non-negative and never rise it is the distance of the pattern that begins at once.

The lower end is the distance of one pattern whose vectors are equal up to their signs, which are changed one by one as long as that helps. Rounding is added to the upper end and taken off the lower one, in units of what the
same sum has with |C|; of the columns of k steps that is at most k times the longest, and so k times the upper end.

A binary tree over the steps. The sensitivity is the root of the largest sum over nodes of squared counts. At level l a node has 2^l steps. Noise is released with nodes that are complete; a prefix sum is made of those at odd places
of their level, counted from 1, and only these need be counted if nothing else is used.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick._checks import STRICT, Array, choice, count_scalar, positive_scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import DOWN, UNIT
from hockeystick._statements import SENTENCES
from hockeystick.mechanisms import Dominating, Gaussian, Mechanism
from hockeystick.mechanisms.base import Adjacency

MAX_STARTS = 8  # of a search for signs

Participation: TypeAlias = Literal["single", "min_separation", "cyclic"]


class Pattern(NamedTuple):
    """Which steps one record may be in: `most` of them, at least (`cyclic`: exactly) `separation` apart."""

    cyclic: bool
    separation: int
    most: int

    def of_steps(self, num_steps: int) -> Pattern:
        """Return the same for so many steps, with no more participations than fit."""
        separation = min(self.separation, num_steps)
        return Pattern(self.cyclic, separation, min(self.most, -(-num_steps // separation)))

    def limits(self, num_steps: int) -> bool:
        """Say whether more participations would fit than there may be."""
        return self.most * self.separation < num_steps

    def allows(self, gap: int) -> bool:
        """Say whether two steps may be this far apart."""
        return gap > 0 and gap % self.separation == 0 if self.cyclic else gap >= self.separation

    def words(self, num_steps: int) -> str:
        """Return which steps a record is in at most."""
        if self.most == 1:
            return "at most one step"
        if self.cyclic:
            return f"some of the steps that are equal modulo {self.separation}"
        times = f", {self.most} of them at most" if self.limits(num_steps) else ""
        return f"steps that are at least {self.separation} apart{times}"

    def earliest(self) -> NDArray[np.int64]:
        """Return the steps of the pattern that begins at once and loses no time."""
        return np.arange(self.most) * self.separation


def pattern_of(participation: Participation, separation: int | None, most: int | None, num_steps: int) -> Pattern:
    """Return the pattern that the words and numbers mean."""
    choice("participation", participation, ("single", "min_separation", "cyclic"))
    if (separation is None) != (participation == "single"):
        raise ValueError(
            f'separation must be given, unless participation is "single", not {separation} with {shown(participation)}'
        )
    if most is not None and participation != "min_separation":
        raise ValueError(
            f'max_participations must be for participation="min_separation", not {most} with {shown(participation)}'
        )
    apart = num_steps if separation is None else count_scalar("separation", separation)
    limit = num_steps if most is None else count_scalar("max_participations", most)
    return Pattern(participation == "cyclic", apart, limit).of_steps(num_steps)


MAX_WORK = 4e9  # some ten seconds, and half a gigabyte for a dense matrix


class Sensitivity(NamedTuple):
    """How far one record moves C x, over the clip norm.

    Attributes
    ----------
    lower : float
        How far it does with updates in `steps` that are equal up to their signs, rounding included.
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


def dense(strategy: Array, pattern: Pattern) -> Sensitivity:
    """Return the sensitivity of a matrix whose columns are the steps."""
    rows, num_steps = strategy.shape
    picks = pattern.most if pattern.limits(num_steps) else 1
    limit_work(num_steps * rows if pattern.most == 1 else num_steps**2 * (rows / 10 + picks))
    scale = float(np.abs(strategy).max())
    scaled = strategy / scale  # a square neither overflows nor, next to 1, matters if it underflows
    if pattern.most == 1:
        squares = (scaled**2).sum(axis=0)
        square, candidates, method = float(squares.max()), [squares.argmax(keepdims=True)], "longest column"
    else:
        gram = np.abs(scaled.T @ scaled)
        gram += rows * UNIT * (gram if (scaled >= 0).all() else np.abs(scaled).T @ np.abs(scaled))
        square, candidates, method = (_cyclic if pattern.cyclic else _separated)(gram, pattern)
    lengths = [_longest_sum(scaled[:, steps]) for steps in candidates]
    best = int(np.argmax(lengths))
    upper = _root_up(square, rows + 2 * num_steps)
    cancels = bool((scaled < 0).any())
    return _of_ends(lengths[best], upper, scale, candidates[best], method, rows=rows, cancels=cancels)


def _longest_sum(columns: Array) -> float:
    """Return the length of a sum of columns whose signs no single change makes better, the best of some."""
    gram = columns.T @ columns
    starts = [np.ones(len(gram))]
    if (gram < 0.0).any():
        starts += list(np.where(gram[:MAX_STARTS] < 0.0, -1.0, 1.0))
    for signs in starts:
        for _ in range(len(gram) ** 2):
            gains = np.diagonal(gram) - signs * (gram @ signs)
            changed = int(gains.argmax())
            if not gains[changed] > 0.0:
                break
            signs[changed] *= -1.0
    return max(float(np.linalg.norm(columns @ signs)) for signs in starts)


def _cyclic(gram: Array, pattern: Pattern) -> tuple[float, list[NDArray[np.int64]], str]:
    """Return the largest squared sensitivity of all patterns, and the one that has it."""
    candidates = [np.arange(first, len(gram), pattern.separation) for first in range(pattern.separation)]
    sums = [float(gram[np.ix_(steps, steps)].sum()) for steps in candidates]
    return max(sums), [candidates[int(np.argmax(sums))]], "all patterns"


def _separated(gram: Array, pattern: Pattern) -> tuple[float, list[NDArray[np.int64]], str]:
    """Return the least bound of the squared sensitivity, and patterns that may attain it."""
    steps, (_, apart, most) = np.arange(len(gram)), pattern
    beside = np.where(np.abs(np.subtract.outer(steps, steps)) >= apart, gram, 0.0)
    others = most - 1 if pattern.limits(len(gram)) else most
    weights = np.diagonal(gram) + _last(_largest_sums(beside, apart, others))[:, -1]
    square = float(_last(_largest_sums(weights[np.newaxis], apart, most))[0, -1])
    candidates = [_largest_pattern(weights, apart, most), pattern.earliest()]
    if not beside.any():
        return square, candidates, "orthogonal columns"
    by_position = _by_position(gram, pattern)
    if by_position <= square:
        return by_position, candidates, "largest products by position"
    return square, candidates, "dynamic programme over rows"


def _largest_sums(weights: Array, apart: int, most: int) -> Iterator[Array]:
    """Yield, for 0 to `most` picks, the largest sum of each row up to each column; only once if as many as fit are allowed."""
    num_steps = weights.shape[1]
    if most * apart >= num_steps:
        best = np.empty_like(weights)
        for i in range(num_steps):
            taken = weights[:, i] + (best[:, i - apart] if i >= apart else 0.0)
            best[:, i] = np.maximum(taken, best[:, i - 1]) if i else taken
        yield best
        return
    best = np.zeros_like(weights)
    yield best
    for _ in range(most):
        taken = weights.copy()
        taken[:, apart:] += best[:, :-apart]
        best = np.maximum.accumulate(taken, axis=1)
        yield best


def _last(tables: Iterator[Array]) -> Array:
    return deque(tables, maxlen=1)[0]


def _largest_pattern(weights: Array, apart: int, most: int) -> NDArray[np.int64]:
    """Return the steps whose weights have the largest sum."""
    tables = list(_largest_sums(weights[np.newaxis], apart, most))
    steps: list[int] = []
    i = len(weights) - 1
    while i >= 0 and len(steps) < most:
        best = tables[max(0, len(tables) - 1 - len(steps))][0]
        if i and best[i] == best[i - 1]:
            i -= 1
        else:
            steps.append(i)
            i -= apart
    return np.array(steps[::-1], np.int64)


def _by_position(gram: Array, pattern: Pattern) -> float:
    num_steps, (_, apart, most) = len(gram), pattern
    by_gap = np.array([np.pad(np.diagonal(gram, gap), (gap, 0)) for gap in range(num_steps)])  # at [gap, later]
    alone = np.maximum.accumulate(by_gap[0, ::-1])[::-1]
    largest = np.maximum.accumulate(np.maximum.accumulate(by_gap[::-1, ::-1], axis=0), axis=1)[::-1, ::-1]
    steps = pattern.earliest()
    pairs = (float(largest[n * apart, steps[n:]].sum()) for n in range(1, most))
    return float(alone[steps].sum()) + 2 * math.fsum(pairs)


def toeplitz(coefficients: Array, num_steps: int, pattern: Pattern) -> Sensitivity:
    """Return the sensitivity of the lower triangular matrix with these coefficients on its diagonals."""
    coefficients = first_coefficients(coefficients, num_steps)
    bands, (_, apart, most) = len(coefficients), pattern
    scale = float(np.abs(coefficients).max())
    c = coefficients / scale
    falling = most > 1 and bool((c >= 0).all() and (np.diff(c) <= 0).all())
    limit_work((bands**2 if most > 1 and not falling else 0) + most * bands + 100 * num_steps)
    steps, moved = pattern.earliest(), np.zeros(num_steps)
    for step in steps:
        moved[step : step + bands] += c[: num_steps - step]
    if falling:  # the pattern that begins at once attains the bound by position: no other products need be looked at
        upper = _root_up(float(moved @ moved), num_steps + 2 * most)
    else:
        upper = _root_up(_products_by_position(c, num_steps, pattern), bands + most)
    method = (
        "longest column" if most == 1 else "orthogonal columns" if bands <= apart else "largest products by position"
    )
    length, cancels = float(np.linalg.norm(moved)), bool((c < 0).any())
    return _of_ends(length, upper, scale, steps, method, rows=num_steps, cancels=cancels)


def _products_by_position(c: Array, num_steps: int, pattern: Pattern) -> float:
    """Return the bound by position of the squared sensitivity of a Toeplitz matrix."""
    bands, (cyclic, apart, most) = len(c), pattern
    terms = np.minimum(bands, num_steps - pattern.earliest())  # of the products of the column at a step
    running, square = np.zeros(bands), 0.0  # by number of terms: the largest |X| of this gap, or a larger one
    for gap in range(bands - 1 if most > 1 else 0, -1, -1):
        if cyclic and gap % apart:
            continue
        products = c[: bands - gap] * c[gap:]
        sums = np.abs(np.cumsum(products)) + bands * UNIT * np.cumsum(np.abs(products))
        sums = np.pad(np.maximum.accumulate(sums), (0, gap), mode="edge")
        running = np.maximum(running, sums) if gap and not cyclic else sums
        if gap % apart == 0 and gap // apart < most:
            pairs = float(running[terms[gap // apart :] - 1].sum())
            square += pairs if gap == 0 else 2 * pairs
    return square


def _root_up(square: float, additions: int) -> float:
    """Return the root of a sum of non-negative terms, above the rounding of so many additions."""
    return math.sqrt(square * (1 + (additions + 16) * UNIT)) * (1 + UNIT)


def _of_ends(
    length: float, upper: float, scale: float, steps: NDArray[np.int64], method: str, *, rows: int, cancels: bool
) -> Sensitivity:
    """Return both ends in units of the scale: the computed length of a sum of columns is taken below the rounding of its entries and squares."""
    rounding = (rows + len(steps) + 16) * UNIT * (len(steps) * upper if cancels else length)
    lower = max(0.0, min(length - rounding, upper))
    return Sensitivity(lower * scale * DOWN, math.nextafter(upper * scale, math.inf), tuple(steps.tolist()), method)


def limit_work(work: float) -> None:
    """Refuse what would take much more than ten seconds."""
    if work > MAX_WORK:
        raise ValueError(
            f"strategy must need at most {MAX_WORK:.0e} multiplications, not {work:.0e}: fewer steps, bands or participations"
        )


MAX_STEPS = 2**22  # some 100 MB


def tree(num_steps: int, pattern: Pattern, *, prefixes_only: bool) -> Sensitivity:
    """Return the sensitivity of tree aggregation."""
    if pattern.most == 1:  # the first step is in the first node of every level
        levels = math.sqrt(num_steps.bit_length())
        return Sensitivity(levels * DOWN, levels * (1 + UNIT), (0,), "levels")
    if num_steps > MAX_STEPS:
        raise ValueError(f"steps must be at most {MAX_STEPS}, not {num_steps}; use restarts")
    if not pattern.limits(num_steps):
        squares = cyclic_squares(num_steps, pattern.separation, prefixes_only=prefixes_only)
        first = int(squares.argmax())
        lower, steps = int(squares[first]), np.arange(first, num_steps, pattern.separation)
    else:
        steps = pattern.earliest()
        lower = _square(num_steps, steps, prefixes_only=prefixes_only)
    upper = lower if pattern.cyclic else _separated_bound(num_steps, pattern, prefixes_only=prefixes_only)
    method = "all patterns" if pattern.cyclic else "largest counts by level"
    return Sensitivity(math.sqrt(lower) * DOWN, math.sqrt(upper) * (1 + UNIT), tuple(steps.tolist()), method)


def cyclic_squares(num_steps: int, period: int, *, prefixes_only: bool) -> NDArray[np.int64]:
    """Return for each residue the sum of squared counts of the steps that have it modulo the period."""
    squares = np.zeros(min(period, num_steps), np.int64)
    steps = np.arange(num_steps)
    for level in range(num_steps.bit_length()):
        mine = steps[: num_steps >> level << level]
        if prefixes_only:
            mine = mine[(mine >> level) % 2 == 0]
        if 1 << level <= period:  # no node counts a record twice
            squares += np.bincount(mine % period, minlength=squares.size)
        else:
            counts = np.bincount((mine >> level) * period + mine % period, minlength=period)
            counts = np.pad(counts, (0, -len(counts) % period)).reshape(-1, period)
            squares += (counts**2).sum(axis=0)
    return squares


def _square(num_steps: int, steps: NDArray[np.int64], *, prefixes_only: bool) -> int:
    """Return the sum of squared counts of the steps."""
    total = 0
    for level in range(num_steps.bit_length()):
        nodes = steps[steps < num_steps >> level << level] >> level
        if prefixes_only:
            nodes = nodes[nodes % 2 == 0]
        total += int((np.bincount(nodes) ** 2).sum())
    return total


def _separated_bound(num_steps: int, pattern: Pattern, *, prefixes_only: bool) -> int:
    """Return the sum over levels of what full nodes would have.

    A node of w steps counts at most c = ceil(w/separation) of all k participations: squares of numbers up to c with sum k have
    at most the sum of k // c times c^2 and one more.
    """
    total = 0
    for level in range(num_steps.bit_length()):
        most = min(pattern.most, -(-(1 << level) // pattern.separation))
        full, rest = divmod(pattern.most, most)
        nodes = ((num_steps >> level) + 1) // 2 if prefixes_only else num_steps >> level
        total += nodes * most**2 if full >= nodes else full * most**2 + rest**2
    return total


def matrix_mechanism(
    mechanism: Mechanism,
    attained: Mechanism | None = None,
    *,
    takes_part: str,
    zeroed_out: bool = False,
    failure: float = 0.0,
    adjacency: Adjacency | None = None,
    grouped: bool = False,
    truncated: bool = False,
) -> Dominating:
    """Return what dominates a matrix mechanism, with what that assumes."""
    words = SENTENCES["matrix_mechanism"]
    cut = (words["truncated"],) if truncated else ()
    assumes = (words["takes_part"].format(steps=takes_part), *cut, *words["assumes"])
    special = (words["zeroed_out"],) if zeroed_out else ()
    return Dominating(mechanism, attained, assumes, special, failure=failure, adjacency=adjacency, grouped=grouped)


def matrix_sensitivity(
    strategy: ArrayLike,
    *,
    steps: int | None = None,
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
    steps : int, optional
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
    >>> found = correlated_noise.matrix_sensitivity(coefficients, steps=100, participation="cyclic", separation=10)
    >>> print(hs.format_upper(found.upper, ".4f"), hs.format_lower(found.mechanism(5.0).mechanism.noise_multiplier, ".4f"))
    4.1454 1.2061
    """
    array, steps = strategy_of_steps(strategy, steps)
    pattern = pattern_of(participation, separation, max_participations, steps)
    with np.errstate(under="ignore"):
        found = dense(array, pattern) if array.ndim == 2 else toeplitz(array, steps, pattern)
    return found._replace(participation=pattern.words(steps))


def tree_sensitivity(
    steps: int,
    *,
    participation: Participation,
    separation: int | None = None,
    max_participations: int | None = None,
    nodes: Literal["all", "prefix"] = "all",
) -> Sensitivity:
    """Return the sensitivity of tree aggregation over one tree, as DP-FTRL uses it.

    Parameters
    ----------
    steps : int
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
        the number of levels, floor(log2 steps) + 1, and for "cyclic".

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
    steps = count_scalar("steps", steps)
    pattern = pattern_of(participation, separation, max_participations, steps)
    nodes = choice("nodes", nodes, ("all", "prefix"))
    found = tree(steps, pattern, prefixes_only=nodes == "prefix")
    return found._replace(participation=pattern.words(steps))


def strategy_array(strategy: ArrayLike, name: str = "strategy") -> Array:
    """Return a matrix or coefficients that are finite and not all zero."""
    array = STRICT.finite(name, strategy)
    if array.ndim not in {1, 2} or not array.any():
        msg = f"{name} must have one or two dimensions and an entry that is not zero, not be of shape {array.shape}"
        raise ValueError(msg + (" and all zero" if array.ndim in {1, 2} else ""))
    return array


def first_coefficients(coefficients: Array, num_steps: int) -> Array:
    """Return those that count in so many steps, of which one at least is not zero."""
    if not coefficients[:num_steps].any():
        raise ValueError(f"strategy must have a coefficient that is not zero among its first {num_steps}, the steps")
    return coefficients[:num_steps]


def strategy_of_steps(strategy: ArrayLike, num_steps: int | None, name: str = "strategy") -> tuple[Array, int]:
    """Return a matrix or coefficients, and the number of steps, which only coefficients do not have themselves."""
    array = strategy_array(strategy, name)
    if (array.ndim == 1) != (num_steps is not None):
        what = "needs steps" if array.ndim == 1 else "has its number of steps, and takes no steps"
        raise ValueError(f"{name} of shape {array.shape} {what}")
    return array, array.shape[1] if num_steps is None else count_scalar("steps", num_steps)
