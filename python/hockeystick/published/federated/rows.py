"""What the rows of Table 3 of Sun, Shen and Tao 2024 share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, choice
from hockeystick._checks.shown import shown
from hockeystick.federated.arguments import SCHEDULES, Schedule

__all__ = ["PAPER", "table_row"]

PAPER = "of Sun, Shen and Tao (2024)"


def table_row(
    round_index: ArrayLike, local_steps: ArrayLike, schedule: Schedule, constant: ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Check the round, the steps, and the constant that two of the rows leave open."""
    t = STRICT.count_or_zero("round_index", round_index)
    steps = STRICT.count("local_steps", local_steps)
    open_rows = ("cyclic", "continuous")
    if (constant is not None) != (choice("schedule", schedule, SCHEDULES) in open_rows):
        msg = f"constant must be given for the schedules {open_rows} and only there, not {shown(constant)} for schedule={shown(schedule)}"
        raise ValueError(msg)
    return t, steps, np.asarray(1.0) if constant is None else STRICT.positive("constant", constant)
