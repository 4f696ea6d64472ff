"""Mechanisms whose dominating pair is that of a privacy profile, which they compute from their own parameters."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

from hockeystick.mechanisms.base import ADJACENCIES, Adjacency, CountedPair, Mechanism
from hockeystick.mechanisms.privacy_profile import PrivacyProfile

__all__ = ["ProfiledMechanism"]


class ProfiledMechanism(Mechanism):
    """A mechanism that says its delta at some epsilons."""

    def profile(self, adjacency: Adjacency = "add_or_remove") -> PrivacyProfile:
        """Return the profile that answers are computed from: upper bounds of delta, and chords between them.

        Parameters
        ----------
        adjacency : {"add_or_remove", "replace"}
            For mechanisms that hold for one adjacency both are the same.

        Returns
        -------
        PrivacyProfile
            Certified.
        """
        known: PrivacyProfile = self._known(adjacency, upper=True)
        return known

    def _profile(self, adjacency: Adjacency, *, upper: bool) -> PrivacyProfile | None:
        """Compute a profile that is nowhere below delta, or nowhere above it; None if no such lower one is known."""
        raise NotImplementedError

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        known = self._known(adjacency, upper=upper)
        return [] if known is None else known._pairs(adjacency, upper=upper)

    def _pair(self, adjacency: Adjacency) -> Any:
        return self._known(adjacency, upper=True)._pair(adjacency)

    def _known(self, adjacency: Adjacency, *, upper: bool) -> Any:
        key = ADJACENCIES[0] if self._for_one_adjacency else adjacency, upper
        if key not in self._profiles:
            self._profiles[key] = self._profile(adjacency, upper=upper)
        return self._profiles[key]

    @cached_property
    def _profiles(self) -> dict[tuple[str, bool], PrivacyProfile | None]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters alone, without what was computed from them."""
        return {field.name: self.__dict__[field.name] for field in dataclasses.fields(self)}  # type: ignore[arg-type]
