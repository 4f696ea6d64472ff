"""The questions to an accountant about delta, epsilon and the trade-off function of what is composed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast, overload

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import DELTA, NON_NEGATIVE_OR_INFINITE, Domain, Doubles, Grid, Result, implausible, scalar
from hockeystick.accounting import engines
from hockeystick.accounting.bracket import Bracket
from hockeystick.accounting.composition import Composition
from hockeystick.accounting.explanation import Explanation, explanation
from hockeystick.accounting.ledger import Ledger
from hockeystick.accounting.tangents import Curve
from hockeystick.accounting.trade_off import false_negative_rates
from hockeystick.mechanisms import FixedSizeSampled, Shuffled, TruncatedPoissonSampled
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.premises import Premises


class Questions(Ledger):
    """The part of `Accountant` that answers in delta and epsilon."""

    @overload
    def delta(self, eps: float) -> float: ...
    @overload
    def delta(self, eps: ArrayLike) -> Doubles: ...
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
        composed = self._composition()
        upper = each("eps", eps, NON_NEGATIVE_OR_INFINITE, lambda x: self._upper_delta(composed, x))
        implausible.warn(implausible.eps_like_delta(eps))
        return upper

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike) -> Doubles: ...
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
        composed = self._composition()
        upper = each("delta", delta, DELTA, lambda x: self._upper_epsilon(composed, x))
        implausible.warn(implausible.large_delta(delta, num_records(composed.ledger)))
        return upper

    @overload
    def log_delta(self, eps: float) -> float: ...
    @overload
    def log_delta(self, eps: ArrayLike) -> Doubles: ...
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
        composed = self._composition()
        return each("eps", eps, NON_NEGATIVE_OR_INFINITE, lambda x: engines.log_delta(composed, x, self._engine))

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
        return self._bracket(self._composition(), engines.Question(False, eps))

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
        composed = self._composition()
        implausible.warn(implausible.large_delta(delta, num_records(composed.ledger)))
        return self._bracket(composed, engines.Question(True, delta))

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
        composed = self._composition()
        return explanation(composed.premises(), self._answers(composed, question), composed.status)

    @property
    def premises(self) -> Premises:
        """What the numbers rest on: adjacency, what is attained, failure probability, assumptions."""
        return self._composition().premises()

    @overload
    def trade_off(self, fpr: float) -> float: ...
    @overload
    def trade_off(self, fpr: ArrayLike) -> Doubles: ...
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
        return false_negative_rates(self._curve(), rates)[()]

    def advantage(self) -> float:
        """Return a certified upper bound on the membership advantage, true-positive minus false-positive rate.

        Returns
        -------
        float
            delta(0), the total variation distance.
        """
        return self._upper_delta(self._composition(), 0.0)

    def _curve(self) -> Curve:
        """Return the deltas of what is composed now, for `hockeystick.risk`."""
        composed = self._composition()
        return Curve(partial(self._upper_delta, composed), partial(self._upper_epsilon, composed))

    def _answers(self, composed: Composition, question: engines.Question) -> list[engines.Answer]:
        return engines.answers(composed, question, self._engine, upper_only=False)

    def _bracket(self, composed: Composition, question: engines.Question) -> Bracket:
        return engines.bracket(self._answers(composed, question), composed.status)

    def _upper_delta(self, composed: Composition, eps: float) -> float:
        return engines.upper_end(composed, engines.Question(False, eps), self._engine)

    def _upper_epsilon(self, composed: Composition, delta: float) -> float:
        return engines.upper_end(composed, engines.Question(True, delta), self._engine)


def each(name: str, value: ArrayLike, domain: Domain, function: Callable[[float], float]) -> Result:
    """Check every number and answer for each; a scalar for a scalar."""
    numbers = Grid(None, "raise").within(name, value, domain)
    if numbers.ndim == 0:
        return function(float(numbers))
    return np.array([function(x) for x in numbers.ravel().tolist()], dtype=np.float64).reshape(numbers.shape)


def num_records(ledger: Iterable[Mechanism]) -> int | None:
    """Return the least number of records that a mechanism names, None if none does."""
    sizes = []
    for mechanism in ledger:
        for part in mechanism._within() if mechanism._parts() else (mechanism,):
            if isinstance(part, (FixedSizeSampled, TruncatedPoissonSampled)):
                sizes.append(part.dataset_size)
            elif isinstance(part, Shuffled):
                sizes.append(part.num_users)
    return min(sizes, default=None)
