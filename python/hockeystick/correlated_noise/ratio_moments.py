"""Delta of a mean of Gaussians against Gaussian noise, from the first moments of its likelihood ratio.

A record draws the steps that it takes part in; let m be the sum of these steps' columns of |C|, over the noise. With the record the outputs have the law P, the mean of N(m, I)
over its draws, and without it Q = N(0, I). More generally, P is any mean of laws N(m, I). Their ratio L = dP/dQ is the mean of exp(<m, z> - |m|^2/2) over m.
The i-th moment of L under Q is the mean of exp(sum of <m_j, m_k> over j < k <= i) over independent draws m_1, ..., m_i.

**Record removed.** delta = E(L - K)_+ with K = e^eps. For even a and 0 <= c < K, and for odd a with c = 0, (x - K)_+ <= C (x - c)^a for all x >= 0,
where C = (1/a) (1 - 1/a)^(a-1)/(K - c)^(a-1): both sides touch at x - c = (K - c) a/(a - 1). So delta <= C E(L - c)^a.

**Record added.** delta = E(1 - e^eps L)_+. Theorem: let s > 0, and let M = exp(s xi - s^2/2) with a standard normal xi be the ratio of Gaussian DP with mu = s. If
E(M - K)_+^2 >= E(L - K)^2, which is at least E(L - K)_+^2, with K = e^-eps, then delta is at most that of Gaussian DP with mu = s.

Proof. Let L not be constant, as otherwise delta = 0. f = log L is a convex function of z: with 0 < r < 1 the set {f <= r a + (1 - r) b} is convex and holds r {f <= a} + (1 - r) {f <= b}. So by
Ehrhard's inequality (1983) G = Phi^-1(F) is concave, with F the distribution function of log L: log L has the law of h(xi), h = G^-1 convex. A convex function less the linear one
log M crosses 0 at most twice, and L and M have the mean 1, so that L - M, along xi, has the signs (+, -), (-, +) or (+, -, +).
Let D(k) = E(k - L)_+ - E(k - M)_+. It is the integral up to k of the difference of both distribution functions, and vanishes at both ends. For the first signs
it is never positive; for the second never negative; for the third it is first not positive, and from some point on not negative. So if D(K) > 0, then D(k) >= 0 for all
k >= K. As the means are equal, D(k) = E(L - k)_+ - E(M - k)_+, so that E(L - K)_+^2 - E(M - K)_+^2 is twice the integral of D from K on. If D(K) > 0, this is positive, as D is
continuous; by the assumption it is at most 0. So D(K) <= 0, which is the claim times K.

**Record replaced.** With L' the ratio of the other record, which also is a mean of laws N(m, I), and any a: (L - e^eps L')_+ <= (L - e^a)_+ + e^a (1 - e^(eps - a) L')_+. So delta is at most
that of a record removed, at a, and e^a times that of one added, at eps - a.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

import hockeystick._core as core
from hockeystick._checks import Array
from hockeystick._numeric.rounding import MASS, SHORT_SUM, UNIT, UP
from hockeystick._numeric.search import SMALLEST, smallest_feasible

BY_MOMENTS = "moments of the likelihood ratio"
MAX_ORDER, MAX_TENSOR, MAX_WORK = 8, 2**24, 2e8
MAX_FOURTH = 256  # draws of which the fourth moment is taken, by about as many products of matrices
FARTHEST = 10.0  # a centre is near the mean of L, which is 1
NEAREST = 63 / 64  # of K: nearer to it 1 - c/K would cancel
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7)  # of epsilon, for the first of two records


class RatioMoments(NamedTuple):
    """Moments of a likelihood ratio under its second law.

    Attributes
    ----------
    moments : tuple of float
        Those of order 0, 1, 2, ...
    rounding : float
        What each is off by, relative, at most.
    replaced : bool
        Whether a record is replaced by one of opposite updates.
    """

    moments: tuple[float, ...]
    rounding: float
    replaced: bool = False

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta; 1 where the moments say nothing."""
        if len(self.moments) < 3 or epsilon == math.inf:
            return float(epsilon < math.inf)
        if self.replaced:
            parts = ((self._removed(share * epsilon), share * epsilon) for share in SHARES if share * epsilon < 700.0)
            found = (one + math.exp(a) * self._added(math.nextafter(epsilon - a, 0.0)) * UP for one, a in parts)
            return min([1.0, *found])
        return min(1.0, max(self._removed(epsilon), self._added(epsilon)))

    def step(self) -> str:
        """Return what the bound rests on, in words."""
        return f"a matrix mechanism whose likelihood ratio has moments of order 2, ... of {self.moments[2:]}"

    def _removed(self, epsilon: float) -> float:
        logs = [self._log_tail(order, 0.0, epsilon) for order in range(2, len(self.moments))]
        farthest = min(math.exp(min(epsilon, 700.0)), FARTHEST)
        for order in range(2, len(self.moments), 2):
            found = minimize_scalar(
                lambda centre, order=order: self._log_tail(order, centre, epsilon),
                bounds=(0.0, farthest * NEAREST),
                method="bounded",
            )
            logs.append(float(found.fun))
        return max(math.exp(min(logs) + MASS * (1.0 + min(epsilon, 1e6))), SMALLEST)

    def _log_tail(self, order: int, centre: float, epsilon: float) -> float:
        """Return log C E(L - c)^a."""
        terms = [math.comb(order, i) * m * (-centre) ** (order - i) for i, m in enumerate(self.moments[: order + 1])]
        mean = max(sum(terms), 0.0) + (self.rounding + SHORT_SUM) * sum(map(abs, terms))
        rest = (order - 1) * (math.log1p(-1.0 / order) - epsilon - math.log1p(-centre * math.exp(-epsilon)))
        return math.log(mean) - math.log(order) + rest

    def _added(self, epsilon: float) -> float:
        """Return delta of Gaussian DP with a mu that the theorem allows."""
        least = math.exp(-epsilon)
        second = self.moments[2] * (1.0 + self.rounding)
        total = second
        for _ in range(200):
            mu = math.sqrt(math.log(total)) * (1.0 + MASS)
            at = mu / 2.0 - epsilon / mu  # M <= K up to here
            square = math.exp(min(mu * mu, 709.0))
            below = square * ndtr(at - 2.0 * mu) - 2.0 * least * ndtr(at - mu) + least * least * ndtr(at)
            needed = second + below + MASS * (square * ndtr(at - 2.0 * mu) + least)
            if square >= needed:
                return float(core.gdp_delta([mu, epsilon], 1)) * (1.0 + 16.0 * MASS)
            total = needed * (1.0 + MASS)
        return 1.0


NO_MOMENTS = RatioMoments((), 0.0)


def least_epsilon(delta_of: Callable[[float], float], delta: float, most: float) -> float:
    """Return an upper bound of the epsilon at which a curve falls to delta, at most the one that is known."""
    if delta == 0.0 or most == 0.0 or not delta_of(most) <= delta:
        return most

    def excess(epsilon: float) -> float:
        return math.log(max(delta_of(epsilon), SMALLEST)) - math.log(delta)

    return min(most, smallest_feasible(excess, most=most, tolerance=1e-9, known=(most,)))


def uniform_moments(products: Array, error: float) -> RatioMoments:
    """Return moments where a record draws one of n sums of columns, each as likely.

    Parameters
    ----------
    products : Array
        <m_j, m_k> of all pairs of them, of shape (n, n).
    error : float
        What each product is off by, relative, at most.

    Returns
    -------
    RatioMoments
        As far as they are finite.
    """
    number = len(products)
    with np.errstate(all="ignore"):
        pairs = np.exp(products)
        moments = [1.0, 1.0, float(pairs.mean()), float(((pairs @ pairs) * pairs).sum()) / number**3]
        if number <= MAX_FOURTH:
            total = 0.0
            for row in pairs:
                square = pairs * row
                total += float(((square @ pairs) * (square * row[:, np.newaxis])).sum())
            moments.append(total / number**4)
    finite = next((order for order, moment in enumerate(moments) if not moment < math.inf), len(moments))
    rounding = (6.0 * float(products.max()) + 1.0) * error + 8 * (number + 100) * UNIT  # four draws have six products
    return RatioMoments(tuple(moments[:finite]), rounding)


def orders_in_time(separation: int, bands: int, steps: int) -> list[int]:
    """Return the orders of the moments that are known in a second or two."""

    def work(order: int) -> float:
        each = float(separation) ** (order - 1) + 1024 * order**2 + 22 * order**3 * bands
        return (steps + separation) * each if separation**order <= MAX_TENSOR else math.inf

    orders = [order for order in range(2, MAX_ORDER + 1) if work(order) <= MAX_WORK]
    # Of odd orders only the third is worth its time where the next one is too long.
    return orders[:-1] if len(orders) > 2 and orders[-1] % 2 else orders


def min_separated_moments(
    products: Array, orders: list[int], *, separation: int, sampling_rate: float, first_steps: Array
) -> RatioMoments:
    """Return moments for b-min-separated batches.

    Parameters
    ----------
    products : Array
        In row t, <m_t, m_(t-d)> of columns of |C| over the squared noise for d = 0, 1, ..., of shape (steps, bands), at most `separation` bands.
    orders : list of int
        2, 3, ...
    separation, sampling_rate
        As in `min_separated_poisson`.
    first_steps : Array
        The law of the first step that a record may be in, from 0 on.

    Returns
    -------
    RatioMoments
        As far as they are finite.
    """
    moments = [1.0, 1.0]
    steps, bands = products.shape
    later = first_steps[0] + np.cumsum(first_steps[:0:-1])[::-1]
    with np.errstate(all="ignore"):
        weights = np.exp(products)
        for order in orders:
            waiting = _Waiting(order, separation)
            # A record that may not be in the first steps waits as if it had been in a step before them.
            for slot in range(1, len(first_steps)):
                waiting.join(slot, min(first_steps[slot] / later[slot - 1], 1.0), 1.0, {})
            for step in range(steps):
                waiting.leave(step % separation)
                near = {(step - d) % separation: weights[step, d] for d in range(1, min(step + 1, bands))}
                waiting.join(step % separation, sampling_rate, weights[step, 0], near)
            total = waiting.total()
            if not total < math.inf:
                break
            moments.append(total)
        pairs = 0.5 * len(moments) ** 2 * -(-steps // separation)  # of columns, one record's of which are orthogonal
        exponent = min(pairs * float(products[:, 0].max()), 1e9)
    return RatioMoments(tuple(moments), (128 * (steps + separation + 2) + 4 * (bands + 20) * exponent) * UNIT)


class _Waiting:
    """The moment of as many independent draws as there are `records`, while their steps go by: a weighted sum over who of them sits out.

    Two draws that take part in steps s and t count exp(<c_s, c_t>) for this pair of steps. Tensor k has the cases in which k of the records sit
    out: its indices are the last steps of these, modulo b, the earliest first.
    """

    def __init__(self, records: int, slots: int) -> None:
        """Let all records be free to join."""
        self.records = records
        shapes = [(slots,) * k for k in range(records + 1)]
        self.tensors = [np.moveaxis(np.zeros(shape), 0, -1) if shape else np.ones(()) for shape in shapes]

    def leave(self, slot: int) -> None:
        """Free the records that were last in the step of this index b steps ago: of all that sit out, they have sat out longest."""
        for k in range(self.records, 0, -1):
            self.tensors[k - 1] += self.tensors[k][slot]
            self.tensors[k][slot] = 0.0

    def join(self, slot: int, rate: float, own: float, near: dict[int, float]) -> None:
        """Let each free record join with probability `rate`. Two that join count `own`; one that joins and one that did so in another slot count `near[slot]`."""
        for k in range(self.records - 1, -1, -1):
            free = self.records - k
            weighted = self.tensors[k].copy()
            for joining in range(1, free + 1):
                for axis, (other, weight) in itertools.product(range(k), near.items()):
                    weighted[(slice(None),) * axis + (other,)] *= weight
                chance = math.comb(free, joining) * rate**joining * (1.0 - rate) ** (free - joining)
                of_pairs = np.power(own, joining * (joining - 1) // 2)
                places: Any = (..., *(slot,) * joining)
                np.multiply(weighted, chance * of_pairs, out=self.tensors[k + joining][places])
            self.tensors[k] *= (1.0 - rate) ** free

    def total(self) -> float:
        """Return the mean over all cases."""
        return float(sum(tensor.sum() for tensor in self.tensors))
