"""What filters and odometers share: steps are paid for before they release anything, saved, and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from hockeystick.accounting.state import dump_steps, load_steps, require_format
from hockeystick.accounting.steps import Record, Steps
from hockeystick.mechanisms.base import Mechanism

if TYPE_CHECKING:
    from typing_extensions import Self


class Spending(Steps):
    """What is spent by steps that are chosen by what was released before."""

    _SETTINGS: ClassVar[tuple[str, ...]] = ()  # by which a new one is made, beside the adjacency

    def spend(self, mechanism: Mechanism, count: int = 1) -> Self:
        """Pay for steps before they release anything, and return the filter or odometer itself. Threads may spend at once.

        Parameters
        ----------
        mechanism : Mechanism
            What each step will release.
        count : int
            How many equal steps, in [1, 2^53].

        Returns
        -------
        GaussianFilter, RenyiFilter, ZeroConcentratedFilter, PlannedFilter, RenyiOdometer or ZeroConcentratedOdometer
            The same object, so that calls can be chained.

        Raises
        ------
        BudgetExceededError
            If the steps do not fit into a filter: then nothing is spent, and nothing may be released. A cheaper step may still fit.
        ValueError
            If an argument is outside its domain, or this filter or odometer does not hold for the mechanism.
        """
        count = self._checked(mechanism, count)
        self._change(lambda record: self._paid(record, mechanism, count))  # a filter compares and pays in one step
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
        GaussianFilter, RenyiFilter, ZeroConcentratedFilter, PlannedFilter, RenyiOdometer or ZeroConcentratedOdometer
            Equal in every answer.

        Raises
        ------
        ValueError
            If the version is unknown, something is missing or wrong, or the steps exceed the budget of a filter.
        """
        require_format(state, f"hockeystick.{cls.__name__}", (1,), ("adjacency", *cls._SETTINGS, "steps"))
        loaded = cls._of_settings(state)
        for mechanism, count in load_steps(state["steps"]):
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
        self.spend(mechanism, count)

    def _paid(self, record: Record, mechanism: Mechanism, count: int) -> Record:
        """Return the record after steps."""
        return record.plus(mechanism, count)
