"""What the mechanisms of this room share: from a bound of delta to a privacy profile, the Gaussian curve, checks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from hockeystick._checks import Array, interval
from hockeystick._numeric.rounding import GAUSSIAN_TAIL, HANDFUL
from hockeystick.kernels import theta
from hockeystick.mechanisms.base import Adjacency
from hockeystick.mechanisms.privacy_profile import LARGEST_EPSILON, PrivacyProfile, ProfiledMechanism

GAUSSIAN_NOISE = interval("[0.01, 1e9]")  # its deviation over a sensitivity
CELLS = 400
SMALLEST_NORMAL = sys.float_info.min
SMALLEST = 1e-30  # delta is not followed further down


def profile_until(bound: Callable[[Array], Array], last: float, *special: float) -> PrivacyProfile:
    """Return the profile of upper bounds at epsilons from 0 to `last`, and at `special` ones: chords between them bound delta too.

    Delta is convex in e^epsilon and does not rise, which is all that is used: where the bound does, it is improved.
    """
    epsilons = np.unique(np.concatenate([np.linspace(0.0, last, CELLS + 1), [x for x in special if 0.0 < x < last]]))
    deltas = np.minimum.accumulate(np.clip(bound(epsilons), 0.0, 1.0))
    return PrivacyProfile(epsilons.tolist(), deltas.tolist())


def end_of(bound: Callable[[Array], Array], least: float = SMALLEST) -> float:
    """Return an epsilon at which a bound is no more than nothing, or `least`, or the largest epsilon that a profile takes."""
    end = 2.0**-10
    while end < LARGEST_EPSILON and float(bound(np.array([end]))[0]) > max(least, SMALLEST):
        end *= 1.25
    return min(end, LARGEST_EPSILON)


def gaussian_curve(eps: Array, distance: float) -> Array:
    """Return delta of Gaussian noise, rounded up."""
    found = np.asarray(theta(eps, distance * (1.0 + HANDFUL)))
    digits = 1.0 - np.log(np.maximum(found, SMALLEST_NORMAL))  # its relative error grows so
    return np.asarray(np.minimum(found * (1.0 + GAUSSIAN_TAIL * digits) + SMALLEST_NORMAL, 1.0))


class OneDirection(ProfiledMechanism):
    """A mechanism on queries or scores that a record may move in one direction only, if it is added or removed."""

    monotone: bool
    _moved: ClassVar[str]  # what is assumed if they do
    _for_one_adjacency: ClassVar[bool] = True

    @property
    def _moves(self) -> float:
        """By how much two of them differ more or less, in units of the sensitivity."""
        return 1.0 if self.monotone else 2.0

    def _said(self) -> str:
        raise NotImplementedError

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [self._said(), *([self._moved] if self.monotone else [])]

    def _require_adjacency(self, adjacency: Adjacency) -> None:
        if self.monotone and adjacency == "replace":
            raise self._refusal(
                adjacency, "a record that is replaced moves some of them up and others down; use monotone=False"
            )
