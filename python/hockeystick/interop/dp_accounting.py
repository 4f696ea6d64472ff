"""dp_accounting: our accountant behind its `PrivacyAccountant`, and its privacy loss distributions to and fro.

.. code-block:: python

    accountant = HockeyStickAccountant()  # was: dp_accounting.pld.PLDAccountant()
"""

from __future__ import annotations

import copy
import math
import os
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hockeystick import risk
from hockeystick._checks import Checks, count_scalar
from hockeystick._checks.shown import shown
from hockeystick.accounting.accountant import Accountant
from hockeystick.interop.dp_accounting_pld import NEED, from_pld, to_pld
from hockeystick.interop.event_noise import NON_PRIVATE, Relation
from hockeystick.interop.events import UnsupportedEvent, adjacency_of, steps_of
from hockeystick.interop.gaussian_dp_estimate import largest_mu

try:
    from dp_accounting import NeighboringRelation, PrivacyAccountant
except ImportError:  # asked for when first needed

    class PrivacyAccountant:  # type: ignore[no-redef]
        """Stands in for the base class where dp_accounting is not installed."""

        def __init__(self, *_: Any) -> None:
            raise ImportError(NEED)

    NeighboringRelation = None


__all__ = ["HockeyStickAccountant", "from_pld", "to_pld"]

_RELATIONS: Mapping[str, Relation] = {
    "ADD_OR_REMOVE_ONE": "add_or_remove",
    "REPLACE_ONE": "replace",
    "REPLACE_SPECIAL": "replace_special",
}
# For the list of events that the base class keeps beside our accountant, and changes in place.
LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):  # Windows has no fork; a child's lock is free, and what it guards is whole
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
FALSE_POSITIVE_RATES = (1e-12, 0.5)  # those of which a Gaussian DP parameter is estimated


class HockeyStickAccountant(PrivacyAccountant):  # type: ignore[misc]
    """A dp_accounting `PrivacyAccountant` whose numbers are certified upper bounds.

    Parameters
    ----------
    neighboring_relation : dp_accounting.NeighboringRelation, optional
        ADD_OR_REMOVE_ONE by default.

    Notes
    -----
    Which events are known, and how they are recognised: `hockeystick.interop.events`. `accountant` is the one of
    hockeystick behind it, for brackets and explanations.

    Examples
    --------
    >>> from hockeystick import format_upper
    >>> import dp_accounting as dp
    >>> event = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0))
    >>> print(format_upper(HockeyStickAccountant().compose(event, 1000).get_epsilon(1e-5), ".3f"))
    1.829
    """

    def __init__(self, neighboring_relation: Any = None) -> None:
        """Start with nothing composed."""
        if neighboring_relation is None:
            neighboring_relation = getattr(NeighboringRelation, "ADD_OR_REMOVE_ONE", None)
        super().__init__(neighboring_relation)
        if not isinstance(neighboring_relation, NeighboringRelation):
            msg = f"neighboring_relation must be a NeighboringRelation, not {shown(neighboring_relation)}"
            raise TypeError(msg)
        self._relation = _RELATIONS[neighboring_relation.name]
        self.accountant = Accountant(adjacency_of(self._relation))

    def compose(self, event: Any, count: int = 1) -> Any:
        """Add an event, and return the accountant itself. Threads may compose at once.

        Parameters
        ----------
        event : dp_accounting.DpEvent
            What was released.
        count : int
            How often, at least 1.
        """
        with LOCK:
            return super().compose(event, count)

    @property
    def ledger(self) -> Any:
        """The events composed so far, as one."""
        with LOCK:
            return super().ledger

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle is made from: nothing that another thread goes on changing."""
        with LOCK:
            return copy.deepcopy(self.__dict__)

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        try:
            steps = [(mechanism, times * count) for mechanism, times in steps_of(event, self._relation)]
            for mechanism, times in steps:  # refused before anything is changed
                count_scalar("count", self.accountant.ledger.get(mechanism, 0) + times, 0)
        except UnsupportedEvent as error:
            return self.CompositionErrorDetails(error.event, error.reason)
        if do_compose:
            self.accountant._compose_together(steps)
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """Return the certified upper end of epsilon.

        Parameters
        ----------
        target_delta : float
            In [0, 1].

        Returns
        -------
        float
            Infinity if an event was not private.
        """
        if self._contains_non_dp_event:
            return math.inf
        return 0.0 if target_delta == 1 else float(self.accountant.epsilon(target_delta))

    def get_delta(self, target_epsilon: float) -> float:
        """Return the certified upper end of delta.

        Parameters
        ----------
        target_epsilon : float
            Non-negative.

        Returns
        -------
        float
            1 if an event was not private.
        """
        return float(self.accountant.delta(target_epsilon))

    def get_true_positive_rates(self, false_positive_rates: ArrayLike, deltas: ArrayLike | None = None) -> Any:
        """Return certified upper bounds of the true-positive rate of every membership test.

        Parameters
        ----------
        false_positive_rates : array_like
            In [0, 1].
        deltas : array_like, optional
            Where dp_accounting asks for epsilon. Not needed: the tangents are chosen near the rates.

        Returns
        -------
        ndarray or float
            No test with this false-positive rate has a larger true-positive rate. 1 if an event was not private.
        """
        del deltas
        rates = Checks(None, "raise").probability("false_positive_rates", false_positive_rates)
        if self._contains_non_dp_event:
            return np.ones(rates.shape)[()]
        return risk.true_positive_rate(self.accountant, rates)

    def get_gdp_parameter_estimate(
        self, false_positive_rates: ArrayLike | None = None, deltas: ArrayLike | None = None
    ) -> float:
        """Return mu for which no membership test is better than against mu-GDP, at false-positive rates of a range.

        Parameters
        ----------
        false_positive_rates : array_like, optional
            In (0, 1). The range is from the smallest to the largest of those that are at most 1/2; [1e-12, 1/2] by default.
        deltas : array_like, optional
            Where dp_accounting asks for epsilon. Not needed: the tangents are chosen near the range.

        Returns
        -------
        float
            A certified upper end for the whole range, between the rates that are given too (dp_accounting's estimate holds at the
            rates alone). Outside the range nothing is said: many mechanisms are mu-GDP for no mu. Infinity if an event was not
            private, or a loss is infinite with a probability above the smallest rate.

        Raises
        ------
        ValueError
            If no rate is at most 1/2, or one is outside (0, 1).
        """
        del deltas
        asked = FALSE_POSITIVE_RATES if false_positive_rates is None else false_positive_rates
        domain = (lambda x: (x > 0) & (x < 1), "lie in (0, 1)")
        rates = Checks(None, "raise").within("false_positive_rates", asked, domain).ravel()
        rates = rates[rates <= 0.5]
        if rates.size == 0:
            msg = f"false_positive_rates must have one of at most 0.5, not {shown(false_positive_rates)}"
            raise ValueError(msg)
        if self._contains_non_dp_event:
            return math.inf
        return largest_mu(self.accountant, float(rates.min()), float(rates.max()))

    @property
    def _contains_non_dp_event(self) -> bool:
        """Whether an event was not private: dp_accounting's own accountant has an attribute of this name."""
        return NON_PRIVATE in self.accountant.ledger
