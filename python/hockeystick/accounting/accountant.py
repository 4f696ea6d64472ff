"""The accountant: what a sequence of mechanisms leaks in all, certified."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

import hockeystick.accounting.renyi.divergence as renyi
import hockeystick.accounting.renyi.private_selection  # noqa: F401, teaches `renyi` the divergences of a selection
from hockeystick._checks import (
    DELTA,
    LARGEST_COUNT,
    NON_NEGATIVE_OR_INFINITE,
    Grid,
    Result,
    count_scalar,
    implausible,
    scalar,
)
from hockeystick._numeric.search import last_whole
from hockeystick.accounting import engines
from hockeystick.accounting.bracket import Bracket
from hockeystick.accounting.composition import Composition
from hockeystick.accounting.epsilon_curve import epsilons_by_step
from hockeystick.accounting.explanation import Explanation, explanation
from hockeystick.accounting.ledger import Ledger
from hockeystick.accounting.query import each, num_records
from hockeystick.accounting.trade_off import false_negative_rates
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.orders import LARGEST_ORDER

__all__ = ["Accountant"]


class Accountant(Ledger):
    """What a sequence of mechanisms leaks in all.

    Parameters
    ----------
    adjacency : {"add_or_remove", "replace"}
        Which data sets are adjacent.
    engine : {"auto", "contour", "pld"}
        "auto" takes an exact formula where there is one (Gaussian steps, a single step), else the contour engine, else
        discretised privacy losses. The others force one engine, to check it against another.

    Raises
    ------
    ValueError
        If a word is not one of these.

    Notes
    -----
    `delta`, `epsilon` and `log_delta` are certified upper ends: discretisation, truncation, quadrature and rounding are
    included. `delta_bracket` and `epsilon_bracket` have both ends, `explain` says how they were found. Both directions
    of adjacency are computed, and the larger counts.

    Composition is for a sequence of mechanisms fixed in advance. Choosing the noise of a step from the results of
    earlier ones needs a privacy filter: `GaussianFilter`, `RenyiFilter`. Queries change nothing, and order does not matter
    to them.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 100)
    >>> print(f"{training.epsilon(1e-5):.2f}")
    0.72
    """

    def delta(self, eps: ArrayLike) -> Result:
        """Return the certified upper end of delta at `eps`.

        Parameters
        ----------
        eps : array_like
            Non-negative; infinity is legal.

        Returns
        -------
        ndarray or float
            An upper bound of delta(eps), exactly 0 beyond the largest possible loss.

        Raises
        ------
        ValueError
            If eps is outside its domain, or a forced engine has no answer.
        """
        upper = each("eps", eps, NON_NEGATIVE_OR_INFINITE, lambda x: self._upper(for_epsilon=False, value=x))
        implausible.warn(implausible.eps_like_delta(eps))
        return upper

    def epsilon(self, delta: ArrayLike) -> Result:
        """Return the certified upper end of the smallest epsilon >= 0 at `delta`.

        Parameters
        ----------
        delta : array_like
            In [0, 1); 0 asks for pure differential privacy, the largest possible loss.

        Returns
        -------
        ndarray or float
            An upper bound of epsilon, infinity where no epsilon will do.

        Raises
        ------
        ValueError
            If delta is outside its domain, or a forced engine has no answer.
        """
        upper = each("delta", delta, DELTA, lambda x: self._upper(for_epsilon=True, value=x))
        implausible.warn(implausible.large_delta(delta, num_records(self._ledger)))
        return upper

    def log_delta(self, eps: ArrayLike) -> Result:
        """Return the certified upper end of log delta at `eps`.

        Parameters
        ----------
        eps : array_like
            Non-negative; infinity is legal.

        Returns
        -------
        ndarray or float
            An upper bound of log delta(eps), minus infinity where delta is 0. At any depth for Gaussian steps; others
            stop at about -744, where delta leaves the doubles.

        Raises
        ------
        ValueError
            If eps is outside its domain, or a forced engine has no answer.
        """
        return each("eps", eps, NON_NEGATIVE_OR_INFINITE, self._log_delta)

    def delta_bracket(self, eps: float) -> Bracket:
        """Return certified ends of delta at `eps`.

        Parameters
        ----------
        eps : float
            Non-negative; infinity is legal.

        Returns
        -------
        Bracket
            delta(eps) lies between the ends; `method` names the engine that found the upper one.

        Raises
        ------
        ValueError
            If eps is outside its domain, or a forced engine has no answer.
        """
        eps = scalar("eps", eps, *NON_NEGATIVE_OR_INFINITE)
        implausible.warn(implausible.eps_like_delta(eps))
        return engines.bracket(*self._ask(engines.Question(False, eps)))

    def epsilon_bracket(self, delta: float) -> Bracket:
        """Return certified ends of the smallest epsilon >= 0 at `delta`.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        Bracket
            epsilon lies between the ends; `method` names the engine that found the upper one.

        Raises
        ------
        ValueError
            If delta is outside its domain, or a forced engine has no answer.
        """
        delta = scalar("delta", delta, *DELTA)
        implausible.warn(implausible.large_delta(delta, num_records(self._ledger)))
        return engines.bracket(*self._ask(engines.Question(True, delta)))

    def explain(self, *, eps: float | None = None, delta: float | None = None) -> Explanation:
        """Return how a number is found: the method, the direction that won, the errors by origin, the assumptions.

        Parameters
        ----------
        eps : float, optional
            Explain delta at this epsilon.
        delta : float, optional
            Explain epsilon at this delta. Exactly one of the two must be given.

        Returns
        -------
        Explanation
            Prints as text.

        Raises
        ------
        ValueError
            If not exactly one argument is given, or it is outside its domain.
        """
        if (eps is None) == (delta is None):
            msg = f"exactly one of eps and delta must be given, not eps={eps}, delta={delta}"
            raise ValueError(msg)
        if eps is not None:
            question = engines.Question(False, scalar("eps", eps, *NON_NEGATIVE_OR_INFINITE))
        else:
            question = engines.Question(True, scalar("delta", cast(float, delta), *DELTA))
        return explanation(self._ledger, self._adjacency, *self._ask(question))

    def trade_off(self, fpr: ArrayLike) -> Result:
        """Return a certified lower bound on the false-negative rate of every membership test.

        Parameters
        ----------
        fpr : array_like
            False-positive rate in [0, 1].

        Returns
        -------
        ndarray or float
            No test with this false-positive rate has a smaller false-negative rate.

        Raises
        ------
        ValueError
            If fpr is outside its domain, or a forced engine has no answer.

        Notes
        -----
        Dong, Roth and Su 2022: the supremum over eps >= 0 of max(0, 1 - delta - e^eps fpr,
        e^-eps (1 - delta - fpr)). Any set of eps gives a lower bound; this one is refined around the maximum.
        """
        rates = Grid(None, "raise").probability("fpr", fpr)
        return false_negative_rates(self._upper_delta, self._upper_epsilon, rates)[()]

    def advantage(self) -> float:
        """Return a certified upper bound on the membership advantage, true-positive minus false-positive rate.

        Returns
        -------
        float
            delta(0), the total variation distance.
        """
        return self._upper_delta(0.0)

    def rdp(self, order: ArrayLike) -> Result:
        """Return a certified upper bound of the Renyi divergence.

        Parameters
        ----------
        order : array_like
            Renyi order, in [1, 1e5]; 1 is the Kullback-Leibler divergence.

        Returns
        -------
        ndarray or float
            Sum over the steps of the larger of both directions, in nats. Exact up to rounding for Gaussian, Laplace
            and discrete mechanisms, and for sampled ones at integer orders; between them the chord of the convex
            (order - 1) D, an upper bound. Discrete Gaussian noise has the bound of the Gaussian one; the exponential
            mechanism the supremum over its intervals; mechanisms known by a Renyi divergence have that one.

        Raises
        ------
        ValueError
            If order is outside its domain, or the ledger holds what no bound is implemented for: Poisson samples of Gaussian noise
            of which a record is replaced, of an exponential mechanism or of several releases, truncated ones, batches of fixed size where a
            record is replaced or drawn with replacement, mixtures of several shifts, random allocation, estimates.

        Notes
        -----
        Mironov 2017; Mironov, Talwar and Zhang 2019 for Poisson sampling. Given for comparison: `epsilon` is tighter than any conversion from here.
        """
        domain = (lambda x: (x >= 1) & (x <= LARGEST_ORDER), f"lie in [1, {LARGEST_ORDER:.0f}]")
        return each("order", order, domain, lambda x: renyi.of_ledger(self._ledger, self._adjacency, x))

    def epsilon_curve(self, delta: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return epsilon after every step, in the order of composition.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        ndarray
            As many certified upper ends as there are steps; they never fall.

        Raises
        ------
        ValueError
            If delta is outside its domain, or there are more than 10^6 steps.
        """
        delta = scalar("delta", delta, *DELTA)
        return epsilons_by_step(self._runs, self._adjacency, self._engine, delta)

    def would_exceed(self, mechanism: Mechanism, count: int = 1, *, epsilon: float, delta: float) -> bool:
        """Say whether composing these steps would leave the budget; nothing is composed.

        Parameters
        ----------
        mechanism : Mechanism
            What each step would release.
        count : int
            How many equal steps, in [1, 2^53].
        epsilon : float
            Budget, non-negative; infinity is legal.
        delta : float
            Budget, in [0, 1).

        Returns
        -------
        bool
            True if the certified epsilon at `delta` would be larger than `epsilon`.

        Raises
        ------
        ValueError
            If an argument is outside its domain, or the mechanism does not support this adjacency.
        """
        count = self._checked(mechanism, count)
        epsilon = scalar("epsilon", epsilon, *NON_NEGATIVE_OR_INFINITE)
        delta = scalar("delta", delta, *DELTA)
        return self._epsilon_with(mechanism, count, delta) > epsilon

    def remaining(self, mechanism: Mechanism, *, epsilon: float, delta: float) -> int:
        """Return how many steps of a mechanism still fit into the budget.

        Parameters
        ----------
        mechanism : Mechanism
            What each step would release.
        epsilon : float
            Budget, non-negative; infinity is legal.
        delta : float
            Budget, in [0, 1).

        Returns
        -------
        int
            The largest count after which the certified epsilon at `delta` is at most `epsilon`; 0 if not even one step
            fits, or the budget is spent already. Where there is no limit (a mechanism that leaks nothing, such as one at
            sampling rate 0), the largest count that `compose` takes, 2^53 less the steps composed.

        Raises
        ------
        ValueError
            If an argument is outside its domain, or the mechanism does not support this adjacency.
        """
        self._checked(mechanism, 1)
        epsilon = scalar("epsilon", epsilon, *NON_NEGATIVE_OR_INFINITE)
        delta = scalar("delta", delta, *DELTA)
        most = LARGEST_COUNT - self._ledger.get(mechanism, 0)
        if epsilon == math.inf or engines.leaks_nothing(mechanism, self._adjacency):
            return most if self._upper_epsilon(delta) <= epsilon else 0
        return last_whole(lambda count: self._epsilon_with(mechanism, int(count), delta) - epsilon, most)

    def _ask(self, question: engines.Question) -> tuple[list[engines.Answer], str]:
        composition = self._composition()
        return engines.answers(composition, question, self._engine, upper_only=False), composition.status

    def _upper(self, *, for_epsilon: bool, value: float) -> float:
        return engines.upper_end(self._composition(), engines.Question(for_epsilon, value), self._engine)

    def _upper_delta(self, eps: float) -> float:
        return self._upper(for_epsilon=False, value=eps)

    def _upper_epsilon(self, delta: float) -> float:
        return self._upper(for_epsilon=True, value=delta)

    def _log_delta(self, eps: float) -> float:
        return engines.log_delta(self._composition(), eps, self._engine)

    def _epsilon_with(self, mechanism: Mechanism, count: int, delta: float) -> float:
        total = count_scalar("count", self._ledger.get(mechanism, 0) + count)
        composition = Composition({**self._ledger, mechanism: total}, self._adjacency)
        return engines.upper_end(composition, engines.Question(True, delta), self._engine)
