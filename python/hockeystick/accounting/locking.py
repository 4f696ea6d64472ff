"""Objects that threads, signal handlers, interrupts, copies and forks share, so that no change is lost, without a lock.

What may change is one immutable state. A change makes the state after the present one and publishes it by a single call of C: each state
has room for one successor, and whoever is the first to put one there has made the change. Others find it taken, and begin again from
what was put there. So a change is made or is not, wherever a thread, a signal handler or a KeyboardInterrupt comes in between: there is no
lock that could be left held and no mark that could be left set. A reader takes the present state, which nobody changes any more.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Generic, TypeVar

State = TypeVar("State")


class Moment(Generic[State]):
    """A state, and room for the moment after it."""

    __slots__ = ("after", "state")

    def __init__(self, state: State) -> None:
        self.state = state
        self.after: dict[int, Moment[State]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a copy or a pickle is made from: nothing comes after it."""
        return Moment, (self.state,)


class ThreadSafe(Generic[State]):
    """An object that several threads may change, ask, and copy while it changes."""

    def __init__(self, state: State) -> None:
        self._moment = Moment(state)  # one that was the last, or is

    @property
    def _state(self) -> State:
        """The present state."""
        moment = self._moment
        while moment.after:
            moment = moment.after[0]
        return moment.state

    def _change(self, step: Callable[..., State], *arguments: Any) -> None:
        """Put what `step` makes of the present state, and of arguments, in its place, or nothing if it raises; others may change it first, then `step` is called again."""
        try:
            while True:
                moment = self._moment
                while moment.after:
                    moment = moment.after[0]
                after = Moment(step(moment.state, *arguments))
                if moment.after.setdefault(0, after) is after:  # this is the change: one call, which nothing divides
                    self._moment = after  # lest readers have a long way; where this is late or left out, they go it
                    return
        finally:
            moment = after = None  # type: ignore[assignment] # an exception that is kept would keep all that comes after

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle is made from: the present state, and containers of its own."""
        moment = Moment(self._state)  # first: the containers then know all that it refers to, and perhaps more
        own = {
            n: copy.copy(v) if isinstance(v, (dict, list, ThreadSafe)) else v for n, v in self.__dict__.copy().items()
        }
        return own | {"_moment": moment}
