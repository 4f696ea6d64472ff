"""A plan of steps that may be run in any order, and left off at any time, as what was released suggests.

Let S be a finite list of steps. Step i has, whatever was released before, laws that are dominated by a pair (A_i, B_i) that is fixed: for every
t >= 0, H_t(P_i||Q_i) <= H_t(A_i||B_i), where H_t(P||Q) is the integral of (p - t q)_+. Somebody runs steps of S, each at most once; which one comes
next, its query, and whether any comes, depends on what was released before. Then for the laws P and Q of all releases and every t >= 0

    H_t(P||Q) <= H_t(product of A_i over S || product of B_i over S),

which is what an accountant computes of S composed in any order.

Proof, by induction on the number of steps in S. Who stops releases what does not depend on the data, which every pair dominates. Else let i be the
first step, y its release, and r(y) = p(y)/q(y). Given y, what follows is a run of the other steps, R = S less i, so that

    H_t(P||Q) = E_{y ~ P_i} H_{t/r(y)}(P | y || Q | y) <= E_{y ~ P_i} H_{t/r(y)}(A_R || B_R) = H_t(P_i x A_R || Q_i x B_R).

The right side does not depend on the run any more, and putting (A_i, B_i) in place of (P_i, Q_i), which it dominates, cannot lower it (Zhu, Dong and
Wang 2022, arXiv 2106.08567, Theorem 10: for a fixed order; the order is free because the product does not tell it). What is known by its
Renyi divergences alone is covered likewise: their sum over the steps that were run is at most that over S, at every order (filters.py).

The list must be fixed. Which of two lists is run may not depend on releases: after a first release that spoke for one data set one would choose the list
with the smaller losses, and else the one with the larger. The mean over the releases of the worse list is more than the worse of both
means; tests/budgets/test_planned.py has an example.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from hockeystick._checks.shown import shown
from hockeystick.accounting.accountant import Accountant, require_accountant
from hockeystick.accounting.steps import Record
from hockeystick.budgets.spending import Filter
from hockeystick.mechanisms.base import Mechanism

__all__ = ["PlannedFilter"]


class PlannedFilter(Filter):
    """A budget that is a list of steps, to be run in any order, and left off at any time.

    Parameters
    ----------
    plan : Accountant
        With all the steps that may be run; what is composed into it later is not in the plan.

    Raises
    ------
    TypeError
        If `plan` is no Accountant.
    ValueError
        If a step of the plan is only estimated.

    Notes
    -----
    The guarantee is that of the whole plan, by exact composition: nothing is lost to the freedom, and nothing is gained by running less. Which step of
    the plan comes next, its query, and whether any comes, may depend on what was released; what is in the plan may not. The proof is in
    budgets/planned_filter.py. What is one step of the plan, such as `RandomAllocation` or `Composed`, is run as one: nothing comes between its releases. A step that leaks less than one of the plan may be run in its place: spend the one of the plan.

    It assumes that `spend` comes before the release; and that which step comes next, and whether one does, depends on the data only
    through earlier releases (and coins of its own).

    Examples
    --------
    >>> import hockeystick as hs
    >>> coarse, fine = hs.PoissonSampled(hs.Gaussian(2.0), 0.01), hs.PoissonSampled(hs.Gaussian(1.0), 0.01)
    >>> budget = hs.budgets.PlannedFilter(hs.Accountant().compose(coarse, 1000).compose(fine, 500))
    >>> budget.spend(coarse, 10).spend(fine).spend(coarse, 5).remaining(fine)
    499
    >>> print(hs.format_upper(budget.epsilon(1e-6), ".3f"))
    1.728
    """

    _SETTINGS = ("plan",)

    def __init__(self, plan: Accountant) -> None:
        require_accountant("plan", plan)
        self._plan = Accountant.from_state_dict(plan.state_dict())
        estimated = next((mechanism for mechanism in self._plan.ledger if mechanism.status != "certified"), None)
        if estimated is not None:
            raise ValueError(f"plan must have certified steps alone, and {shown(estimated)} is only estimated")
        super().__init__(plan.adjacency)

    def __repr__(self) -> str:
        """Return how much of the plan is spent."""
        return f"<PlannedFilter: {len(self)} of {len(self._plan)} steps; {self._adjacency}>"

    @property
    def plan(self) -> Accountant:
        """An accountant of all the steps that may be run."""
        return Accountant.from_state_dict(self._plan.state_dict())

    def delta(self, epsilon: float) -> float:
        """Return the delta that holds at `epsilon` for everything the filter lets through, spent or not yet.

        Parameters
        ----------
        epsilon : float
            Non-negative; infinity is legal.

        Returns
        -------
        float
            The certified upper end of the whole plan.

        Raises
        ------
        ValueError
            If epsilon is outside its domain.
        """
        return float(self._plan.delta(epsilon))

    def _settings(self) -> dict[str, Any]:
        return {"plan": self._plan.state_dict()}

    @classmethod
    def _of_settings(cls, state: Mapping[str, Any]) -> Self:
        plan = Accountant.from_state_dict(state["plan"])
        if plan.adjacency != state["adjacency"]:
            raise ValueError(
                f"adjacency of state must be that of its plan, {shown(plan.adjacency)}, not {shown(state['adjacency'])}"
            )
        return cls(plan)

    def _epsilon(self, delta: float) -> float:
        return float(self._plan.epsilon(delta))

    def _find_cost(self, mechanism: Mechanism) -> tuple[float, ...]:
        if mechanism not in self._plan.ledger:
            raise ValueError(f"mechanism must be one of the plan, not {shown(mechanism)}")
        return ()

    def _room(self, record: Record, mechanism: Mechanism) -> int:
        """Return how many steps of the plan are left."""
        return self._plan.ledger[mechanism] - record.count_of(self._step(mechanism))
