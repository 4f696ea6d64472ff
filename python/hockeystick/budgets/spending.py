"""What filters and odometers share: steps are paid for before they release anything, saved, and loaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

from hockeystick._checks import (
    DELTA,
    LARGEST_COUNT,
    NON_NEGATIVE_OR_INFINITE,
    OPEN_PROBABILITY,
    Domain,
    count_scalar,
    interval,
    positive_scalar,
    scalar,
)
from hockeystick._checks.shown import shown
from hockeystick._numeric.printing import format_upper
from hockeystick._numeric.rounding import SHORT_SUM
from hockeystick.accounting.state import dump_steps, load_runs, require_format
from hockeystick.accounting.steps import Record, Step, Steps
from hockeystick.mechanisms.base import LARGEST_ORDER, Adjacency, Mechanism

__all__ = ["BudgetExceededError"]

SLACK = SHORT_SUM  # by which the sum may pass the budget, relative: the rounding of both; the guarantees include it
BISECTIONS = 60  # of an odometer

SCALE = interval("[1e-100, 1e100]")  # whose square is a normal double
ORDER: Domain = (lambda x: 1.0 < x <= LARGEST_ORDER, f"be larger than 1 and at most {LARGEST_ORDER:.0f}")


def limit_of(
    name: str, given: float | None, epsilon: float | None, delta: float | None, largest: Callable[[float, float], float]
) -> float:
    """Return the budget that is given, or else the largest one that is (epsilon, delta)-DP."""
    if given is not None and epsilon is None and delta is None:
        return scalar(name, given, *SCALE)
    if given is None and epsilon is not None and delta is not None:
        return largest(positive_scalar("epsilon", epsilon), scalar("delta", delta, *OPEN_PROBABILITY))
    raise ValueError(
        f"either {name} or both epsilon and delta must be given, not {name}={shown(given)}, epsilon={shown(epsilon)}, delta={shown(delta)}"
    )


class BudgetExceededError(RuntimeError):
    """A release was asked for that the budget does not allow; nothing was spent."""


class Spending(Steps):
    """What is spent by steps that are chosen by what was released before."""

    _SETTINGS: ClassVar[tuple[str, ...]] = ()  # by which a new one is made, beside the adjacency

    def __init__(self, adjacency: Adjacency, record: Record = Record()) -> None:  # noqa: B008, it never changes
        self._costs: dict[Mechanism, tuple[float, ...]] = {}
        super().__init__(adjacency, record)

    def spend(self, mechanism: Mechanism, count: int = 1) -> Self:
        """Pay for steps before they release anything, and return the filter or odometer itself. Threads may spend at once.

        Parameters
        ----------
        mechanism : Mechanism
            What each step will release.
        count : int
            How many equal steps, in [0, 2^53].

        Returns
        -------
        GaussianFilter, RenyiFilter, ZeroConcentratedFilter, PlannedFilter, MenuFilter, RenyiOdometer or ZeroConcentratedOdometer
            The same object, so that calls can be chained.

        Raises
        ------
        BudgetExceededError
            If the steps do not fit into a filter: then nothing is spent, and nothing may be released. A cheaper step may still fit.
        ValueError
            If an argument is outside its domain, or this filter or odometer does not hold for the mechanism.
        """
        count = self._checked(mechanism, count)
        if count:
            self._change(self._paid, self._step(mechanism), count)  # a filter compares and pays in one step
        return self

    def state_dict(self) -> dict[str, Any]:
        """Return the filter or odometer as plain JSON values, with a version.

        Returns
        -------
        dict
            For `from_state_dict`, today or in a later release. Save it before the release that it pays for.
        """
        form = {"format": f"hockeystick.{type(self).__name__}", "version": 1, "adjacency": self._adjacency}
        return form | self._settings() | {"steps": dump_steps(self._counts().items())}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """Return the filter or odometer whose `state_dict` this is.

        Parameters
        ----------
        state : mapping
            What `state_dict` returned, perhaps through JSON.

        Returns
        -------
        GaussianFilter, RenyiFilter, ZeroConcentratedFilter, PlannedFilter, MenuFilter, RenyiOdometer or ZeroConcentratedOdometer
            Equal in every answer.

        Raises
        ------
        ValueError
            If the version is unknown, something is missing or wrong, or the steps exceed the budget of a filter.
        """
        require_format(state, f"hockeystick.{cls.__name__}", (1,), ("adjacency", *cls._SETTINGS, "steps"))
        loaded = cls._of_settings(state)
        for mechanism, count in load_runs(state["steps"]):
            loaded._load(mechanism, count)
        return loaded

    def _settings(self) -> dict[str, Any]:
        settings = {name: getattr(self, name) for name in self._SETTINGS}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}

    @classmethod
    def _of_settings(cls, state: Mapping[str, Any]) -> Self:
        return cls(**{name: state[name] for name in cls._SETTINGS}, adjacency=state["adjacency"])

    def _load(self, mechanism: Mechanism, count: int) -> None:
        """Spend what a state says was spent."""
        self.spend(mechanism, self._checked(mechanism, count, 1))

    def _checked(self, mechanism: Mechanism, count: int, least: int = 0) -> int:
        count = super()._checked(mechanism, count, least)
        self._cost(mechanism)  # refuses here rather than at a later call
        return count

    def _paid(self, record: Record, step: Step, count: int) -> Record:
        """Return the record after steps."""
        return record.plus(step, count)

    def _cost(self, mechanism: Mechanism) -> tuple[float, ...]:
        """Return what one step costs of each budget or at each order, computed once."""
        found = self._costs.get(mechanism)
        if found is None:
            found = self._costs[mechanism] = self._find_cost(mechanism)
        return found

    def _find_cost(self, mechanism: Mechanism) -> tuple[float, ...]:
        """Return what one step costs, or raise ValueError; a filter's rounding, and underflow below SCALE, stay within SLACK."""
        raise NotImplementedError


class Filter(Spending):
    """What filters do: add the costs of steps exactly, and compare before spending; a cost may have several parts, each with its budget."""

    def __init__(self, adjacency: Adjacency, *budgets: float) -> None:
        super().__init__(adjacency, Record(spent=(Fraction(0),) * len(budgets)))
        self._limits = tuple(Fraction(budget) * Fraction(1.0 + SLACK) for budget in budgets)

    def __repr__(self) -> str:
        """Return the budget, and how much of it is spent."""
        record = self._state
        return f"<{type(self).__name__}: {self._used(record.spent)} in {record.num_steps} steps; {self._adjacency}>"

    def would_exceed(self, mechanism: Mechanism, count: int = 1) -> bool:
        """Say whether these steps would leave the budget; nothing is spent.

        Parameters
        ----------
        mechanism : Mechanism
            What each step would release; it may have been chosen from what earlier steps released.
        count : int
            How many equal steps, in [0, 2^53].

        Returns
        -------
        bool
            True if `spend` would raise BudgetExceededError.

        Raises
        ------
        ValueError
            If an argument is outside its domain, or this filter does not hold for the mechanism.
        """
        count = self._checked(mechanism, count)
        return count > self._room(self._state, mechanism)

    def remaining(self, mechanism: Mechanism) -> int:
        """Return how many steps of a mechanism still fit.

        Parameters
        ----------
        mechanism : Mechanism
            What each step would release.

        Returns
        -------
        int
            The largest count that `spend` takes; 2^53 less the steps of it already paid for where there is no limit.

        Raises
        ------
        ValueError
            If this filter does not hold for the mechanism.
        """
        self._checked(mechanism, 1)
        return self._room(self._state, mechanism)

    def epsilon(self, delta: float) -> float:
        """Return the epsilon that holds at `delta` for everything the filter lets through, spent or not yet.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float
            An upper bound, rounding included. It belongs to the whole budget, and does not change with what is spent:
            when to stop may depend on the releases, so that a smaller number for those made so far would not be
            a guarantee.

        Raises
        ------
        ValueError
            If delta is outside its domain.
        """
        return self._epsilon(scalar("delta", delta, *DELTA))

    def _load(self, mechanism: Mechanism, count: int) -> None:
        if self.would_exceed(mechanism, self._checked(mechanism, count, 1)):
            raise ValueError(
                f"the steps of state must fit its budget, not {count} x {shown(mechanism)} after {shown(self)}"
            )
        self.spend(mechanism, count)

    def _paid(self, record: Record, step: Step, count: int) -> Record:
        """Return the record after steps, or raise BudgetExceededError."""
        room = self._room(record, step.mechanism)
        if count > room:
            raise BudgetExceededError(
                f"{count} x {shown(step.mechanism)} exceeds what is left of {shown(self)}; {room} would fit"
            )
        costs = zip(record.spent, self._cost(step.mechanism), strict=True)
        return record.plus(step, count)._replace(spent=tuple(spent + count * Fraction(cost) for spent, cost in costs))

    def _room(self, record: Record, mechanism: Mechanism) -> int:
        """Return how many steps fit: the sum of the costs is exact, whatever the order and the grouping."""
        most = LARGEST_COUNT - record.count_of(self._step(mechanism))
        for limit, spent, cost in zip(self._limits, record.spent, self._cost(mechanism), strict=True):
            if cost == math.inf:
                return 0
            if cost > 0.0:
                most = min(most, int((limit - spent) / Fraction(cost)))
        return most

    def _epsilon(self, delta: float) -> float:
        raise NotImplementedError

    def _used(self, spent: tuple[Fraction, ...]) -> str:
        """Return how much is spent of each budget, in words."""
        raise NotImplementedError


class Odometer(Spending):
    """What odometers do: count steps, and say what they may have leaked."""

    def __init__(self, delta: float, adjacency: Adjacency) -> None:
        self._delta = scalar("delta", delta, *OPEN_PROBABILITY)
        super().__init__(adjacency)

    def __repr__(self) -> str:
        """Return what is spent."""
        ledger = self._counts()
        epsilon, steps = format_upper(self._epsilon(ledger)), sum(ledger.values())
        return (
            f"<{type(self).__name__}: epsilon {epsilon} at delta {self._delta:g} in {steps} steps; {self._adjacency}>"
        )

    @property
    def delta(self) -> float:
        """The probability that the loss is ever above what is said."""
        return self._delta

    @property
    def epsilon(self) -> float:
        """What has been spent so far, rounding included; 0 if nothing leaked, infinity if there is no bound."""
        return self._epsilon(self._counts())

    def would_exceed(self, mechanism: Mechanism, count: int = 1, *, epsilon: float) -> bool:
        """Say whether these steps would bring the odometer above a number; nothing is spent.

        Parameters
        ----------
        mechanism : Mechanism
            What each step would release; it may have been chosen from what earlier steps released.
        count : int
            How many equal steps, in [0, 2^53].
        epsilon : float
            Non-negative; infinity is legal.

        Returns
        -------
        bool
            True if `epsilon` would be larger. A run that stops there is (epsilon, delta)-DP.

        Raises
        ------
        ValueError
            If an argument is outside its domain, or this odometer has no bound for the mechanism.
        """
        count, ledger = self._checked(mechanism, count), self._counts()
        if count:
            ledger[mechanism] = count_scalar("count", ledger.get(mechanism, 0) + count)
        return self._epsilon(ledger) > scalar("epsilon", epsilon, *NON_NEGATIVE_OR_INFINITE)

    def _epsilon(self, ledger: Mapping[Mechanism, int]) -> float:
        """Return what a ledger may have leaked."""
        raise NotImplementedError
