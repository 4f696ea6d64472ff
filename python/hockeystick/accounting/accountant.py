"""The accountant: what a sequence of mechanisms leaks in all, certified."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

import hockeystick.accounting.renyi.divergence as renyi
import hockeystick.accounting.renyi.private_selection  # noqa: F401, teaches `renyi` the divergences of a selection
from hockeystick._checks import (
    DELTA,
    LARGEST_COUNT,
    NON_NEGATIVE_OR_INFINITE,
    Doubles,
    Result,
    count_scalar,
    implausible,
    scalar,
)
from hockeystick._numeric.search import last_whole
from hockeystick._statements import Format
from hockeystick.accounting import engines
from hockeystick.accounting.composition import Composition
from hockeystick.accounting.epsilon_curve import epsilons_by_step
from hockeystick.accounting.questions import Questions, each, num_records
from hockeystick.accounting.statement import guaranteed, stated
from hockeystick.mechanisms.base import LARGEST_ORDER, Mechanism

__all__ = ["Accountant"]


class Accountant(Questions):
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

    @overload
    def rdp(self, order: float) -> float: ...
    @overload
    def rdp(self, order: ArrayLike) -> Doubles: ...
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
            and discrete mechanisms, and for Poisson samples of noise, a record added or removed, at integer orders; between them the chord of
            the convex (order - 1) D, an upper bound. Discrete Gaussian noise has the bound of the Gaussian one, which where a record of
            its samples is replaced is that of the noise without sampling; the exponential
            mechanism the supremum over its intervals; mechanisms known by a Renyi divergence have that one. All others (samples
            where a record is replaced, batches of fixed size, truncated samples, mixtures, random allocation, profiles) have the integral of
            their curve, within 1e-5 of the pair's divergence. At orders so large that it needs probabilities below 1e-280 it is that of the
            noise without sampling. Infinity where a loss is infinite.

        Raises
        ------
        ValueError
            If order is outside its domain, or the ledger holds estimates.

        Notes
        -----
        Mironov 2017; Mironov, Talwar and Zhang 2019 for Poisson sampling; docs/core/loss.md for the integral. `epsilon` and `delta` convert these
        divergences wherever their engines have no sharper bound, and `explain` names the order.

        Examples
        --------
        >>> import hockeystick as hs
        >>> rounds = hs.Accountant("replace").compose(hs.FixedSizeSampled(hs.Gaussian(2.0), 1000, 20, replacement=False), 100)
        >>> print(hs.format_upper(rounds.rdp(4.0), ".4f"))
        0.2255
        """
        domain = (lambda x: (x >= 1) & (x <= LARGEST_ORDER), f"lie in [1, {LARGEST_ORDER:.0f}]")
        ledger = self._counts()
        return each("order", order, domain, lambda x: renyi.of_ledger(ledger, self._adjacency, x))

    def statement(
        self,
        delta: float,
        *,
        format: Format = "text",
        released: str | None = None,
        unit: str | None = None,
    ) -> str:
        """Return a privacy statement: text to paste into a model card, a paper or a registry.

        Parameters
        ----------
        delta : float
            In [0, 1).
        format : {"text", "markdown", "latex", "json"}
            How it is written; "json" is an entry of a registry of deployments.
        released : str, optional
            What is released and to whom, in your words. The numbers hold for all outputs.
        unit : str, optional
            What is added, removed or replaced in adjacent data sets, in your words: "one patient", "one user". The noise must have been
            scaled to what one of these can change. By default what the steps say (`premises`), else one record.

        Returns
        -------
        str
            What is promised, to whom, under which assumptions, what is not covered, and the code that gives it again. Upper ends of
            epsilon are rounded up, lower ends down.

        Raises
        ------
        ValueError
            If an argument is outside its domain, or a number is only an estimate.
        TypeError
            If an argument is of the wrong type.

        Examples
        --------
        >>> import hockeystick as hs
        >>> rounds = hs.Accountant("replace").compose(hs.Gaussian(10.0), 20)
        >>> print(rounds.statement(1e-6, unit="one patient").splitlines()[3])
        What is released is (ε, δ)-differentially private with ε = 4.264 at δ = 1e-06, with
        """
        delta = scalar("delta", delta, *DELTA)
        implausible.warn(implausible.large_delta(delta, num_records(self.ledger)))
        return stated(guaranteed(self, delta), delta, format, released, unit)

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
        implausible.warn(implausible.large_delta(delta, num_records(self.ledger)))
        return epsilons_by_step(self._state, self._adjacency, self._engine, delta)

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
        return self._epsilon_with(self._composition(), mechanism, count, delta) > epsilon

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
        composed = self._composition()
        most = LARGEST_COUNT - composed.ledger.get(mechanism, 0)
        if epsilon == math.inf or engines.leaks_nothing(mechanism, self._adjacency):
            return most if self._upper_epsilon(composed, delta) <= epsilon else 0
        return last_whole(lambda count: self._epsilon_with(composed, mechanism, int(count), delta) - epsilon, most)

    def _epsilon_with(self, composed: Composition, mechanism: Mechanism, count: int, delta: float) -> float:
        total = count_scalar("count", composed.ledger.get(mechanism, 0) + count)
        return self._upper_epsilon(Composition({**composed.ledger, mechanism: total}, self._adjacency), delta)
