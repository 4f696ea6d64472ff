"""What odometers share: steps are counted before they release anything, and a number says what they may have leaked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from hockeystick._checks import NON_NEGATIVE_OR_INFINITE, OPEN_PROBABILITY, count_scalar, scalar
from hockeystick._numeric.printing import format_upper
from hockeystick.accounting.state import dump_steps, load_steps, require_format
from hockeystick.accounting.steps import Steps
from hockeystick.mechanisms.base import Adjacency, Mechanism

if TYPE_CHECKING:
    from typing_extensions import Self

BISECTIONS = 60


class Odometer(Steps):
    """What odometers do: count steps, and say what they may have leaked."""

    _SETTINGS: ClassVar[tuple[str, ...]] = ()

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

    def spend(self, mechanism: Mechanism, count: int = 1) -> Self:
        """Count steps before they release anything, and return the odometer itself. Threads may spend at once.

        Parameters
        ----------
        mechanism : Mechanism
            What each step will release.
        count : int
            How many equal steps, in [1, 2^53].

        Returns
        -------
        RenyiOdometer or ZeroConcentratedOdometer
            The same object, so that calls can be chained.

        Raises
        ------
        ValueError
            If an argument is outside its domain, or this odometer has no bound for the mechanism.
        """
        count = self._checked(mechanism, count)
        self._change(lambda record: record.plus(mechanism, count))
        return self

    def would_exceed(self, mechanism: Mechanism, count: int = 1, *, epsilon: float) -> bool:
        """Say whether these steps would bring the odometer above a number; nothing is spent.

        Parameters
        ----------
        mechanism : Mechanism
            What each step would release; it may have been chosen from what earlier steps released.
        count : int
            How many equal steps, in [1, 2^53].
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
        ledger[mechanism] = count_scalar("count", ledger.get(mechanism, 0) + count)
        return self._epsilon(ledger) > scalar("epsilon", epsilon, *NON_NEGATIVE_OR_INFINITE)

    def state_dict(self) -> dict[str, Any]:
        """Return the odometer as plain JSON values, with a version.

        Returns
        -------
        dict
            For `from_state_dict`, today or in a later release. Save it before the release that it counts.
        """
        settings = {name: _plain(getattr(self, name)) for name in self._SETTINGS}
        form = {"format": f"hockeystick.{type(self).__name__}", "version": 1, "adjacency": self._adjacency}
        return form | settings | {"steps": dump_steps(self._counts().items())}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """Return the odometer whose `state_dict` this is.

        Parameters
        ----------
        state : mapping
            What `state_dict` returned, perhaps through JSON.

        Returns
        -------
        RenyiOdometer or ZeroConcentratedOdometer
            Equal in every answer.

        Raises
        ------
        ValueError
            If the version is unknown, or something is missing or wrong.
        """
        require_format(state, f"hockeystick.{cls.__name__}", (1,), ("adjacency", *cls._SETTINGS, "steps"))
        loaded = cls(**{name: state[name] for name in cls._SETTINGS}, adjacency=state["adjacency"])
        for mechanism, count in load_steps(state["steps"]):
            loaded.spend(mechanism, count)
        return loaded

    def _epsilon(self, ledger: Mapping[Mechanism, int]) -> float:
        """Return what a ledger may have leaked."""
        raise NotImplementedError


def _plain(value: float | Iterable[float]) -> float | list[float]:
    return list(value) if isinstance(value, Iterable) else value
