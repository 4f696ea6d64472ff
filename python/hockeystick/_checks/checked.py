"""Immutable objects that put checked values in the place of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hockeystick._checks import Domain, scalar


class Checked:
    """A base of frozen dataclasses, for their ``__post_init__``."""

    def _set(self, **values: Any) -> None:
        """Put values in the place of those that were given; only before anybody else sees the object, which then never changes."""
        for name, value in values.items():  # `vars` would make each object a dictionary of its own
            object.__setattr__(self, name, value)

    def _check(self, **checks: Callable[[str, Any], Any] | Domain) -> None:
        """Check the arguments of these names in their order, each by a function of its name and value, or for the domain of a number."""
        for name, check in checks.items():
            value = getattr(self, name)
            self._set(**{name: scalar(name, value, *check) if isinstance(check, tuple) else check(name, value)})
