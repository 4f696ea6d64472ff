"""Which steps one record may be in."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import choice, count_scalar
from hockeystick._checks.shown import shown

Participation: TypeAlias = Literal["single", "min_separation", "cyclic"]


class Pattern(NamedTuple):
    """Which steps one record may be in: `most` of them, at least (`cyclic`: exactly) `separation` apart."""

    cyclic: bool
    separation: int
    most: int

    def of_steps(self, num_steps: int) -> Pattern:
        """Return the same for so many steps, with no more participations than fit."""
        separation = min(self.separation, num_steps)
        return Pattern(self.cyclic, separation, min(self.most, -(-num_steps // separation)))

    def limits(self, num_steps: int) -> bool:
        """Say whether more participations would fit than there may be."""
        return self.most * self.separation < num_steps

    def allows(self, gap: int) -> bool:
        """Say whether two steps may be this far apart."""
        return gap > 0 and gap % self.separation == 0 if self.cyclic else gap >= self.separation

    def words(self, num_steps: int) -> str:
        """Return which steps a record is in at most."""
        if self.most == 1:
            return "at most one step"
        if self.cyclic:
            return f"some of the steps that are equal modulo {self.separation}"
        times = f", {self.most} of them at most" if self.limits(num_steps) else ""
        return f"steps that are at least {self.separation} apart{times}"

    def earliest(self) -> NDArray[np.int64]:
        """Return the steps of the pattern that begins at once and loses no time."""
        return np.arange(self.most) * self.separation


def pattern_of(participation: Participation, separation: int | None, most: int | None, num_steps: int) -> Pattern:
    """Return the pattern that the words and numbers mean."""
    choice("participation", participation, ("single", "min_separation", "cyclic"))
    if (separation is None) != (participation == "single"):
        msg = (
            f'separation must be given, unless participation is "single", not {separation} with {shown(participation)}'
        )
        raise ValueError(msg)
    if most is not None and participation != "min_separation":
        msg = f'max_participations must be for participation="min_separation", not {most} with {shown(participation)}'
        raise ValueError(msg)
    apart = num_steps if separation is None else count_scalar("separation", separation)
    limit = num_steps if most is None else count_scalar("max_participations", most)
    return Pattern(participation == "cyclic", apart, limit).of_steps(num_steps)
