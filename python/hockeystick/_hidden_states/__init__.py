"""What the bounds for a last model share: contractions, random participation, and the smallest of several bounds."""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick._hidden_states.contraction import ShiftedInterpolation, contraction_sum, shifted_interpolation
from hockeystick._hidden_states.finite_kernels import contraction_coefficient, nonlinear_contraction

__all__ = [
    "ShiftedInterpolation",
    "contraction_coefficient",
    "contraction_sum",
    "nonlinear_contraction",
    "shifted_interpolation",
]

open_room(__name__)
