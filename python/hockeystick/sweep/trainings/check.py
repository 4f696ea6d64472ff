"""What is refused of a plan with trainings before its first cell runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hockeystick.sweep.errors import PlanError
from hockeystick.sweep.plan.functions import TRAININGS
from hockeystick.sweep.plan.plan import Output, Plan, Value
from hockeystick.sweep.trainings.settings import OF_EPSILON, training

CHUNK = 1024  # cells whose arguments are in memory together


def check(plan: Plan) -> None:
    """Refuse a plan with a training that cannot run: a setting is missing, unused or outside its domain, or memory does not suffice."""
    outputs = [output for output in plan.outputs if output.function.name in TRAININGS]
    import hockeystick.simulate.running.engine  # noqa: F401, PLC0415 - numba is missed before anything is written

    used, given, seen = {*OF_EPSILON}, set[str](), set[Any]()
    for cell, arguments in _cells(plan, outputs):
        key = tuple(sorted(arguments.items()))
        if key in seen:
            continue
        seen.add(key)
        try:
            used |= training(arguments).used
        except (ValueError, TypeError) as error:
            columns = plan.axis_columns(np.array([cell]))
            inputs = ", ".join(f"{name} = {column[0]}" for name, column in columns.items())
            message = f"cell {cell} ({inputs}): {error}"
            raise PlanError(message) from error
        given |= {*arguments}
    for name in sorted(given - used):
        message = f"{name} must be left out: no algorithm and no data of this plan have it"
        raise PlanError(message)


def _cells(plan: Plan, outputs: list[Output]) -> Iterator[tuple[int, dict[str, Value]]]:
    """Yield each cell with the arguments of each output that differ from those of another."""
    for start in range(0, plan.num_cells, CHUNK):
        cells = np.arange(start, min(start + CHUNK, plan.num_cells))
        columns = {name: column.tolist() for name, column in plan.axis_columns(cells).items()}
        for row, cell in enumerate(cells.tolist()):
            shared = plan.fixed | {name: column[row] for name, column in columns.items()}
            for output in outputs:
                arguments = shared | output.arguments
                taken = {*output.function.parameters} - {*OF_EPSILON}
                yield cell, {name: value for name, value in arguments.items() if name in taken}
