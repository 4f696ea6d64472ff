"""A plan of one training: the fixed part of a sweep's plan, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from hockeystick._checks import DELTA, choice, scalar
from hockeystick.simulate.running.views import VIEWS, View
from hockeystick.sweep.errors import PlanError
from hockeystick.sweep.plan.axes import scalar as plan_scalar
from hockeystick.sweep.plan.axes import shorten
from hockeystick.sweep.plan.plan import read
from hockeystick.sweep.trainings.settings import OF_EPSILON, Training, kinds, training

SECTIONS = ("title", "fixed")


class Asked(NamedTuple):
    """A training, and of what its epsilon is asked: at which delta, if at all, and who sees what."""

    training: Training
    delta: float | None
    released: View | None


def load_one(plan: str | os.PathLike[str] | Mapping[str, Any]) -> Asked:
    """Return the training of a TOML file or of a mapping with the same content, and of what its epsilon is asked."""
    source = plan if isinstance(plan, Mapping) else read(plan)
    for section in source:
        if section not in SECTIONS:
            hint = "; hockeystick sweep run takes plans of many" if section in ("axes", "zip", "outputs") else ""
            message = f"{section} must be left out: a plan of one training has {' and '.join(SECTIONS)}{hint}"
            raise PlanError(message)
    fixed = source.get("fixed")
    if not isinstance(fixed, Mapping):
        message = f"fixed must be a table with the settings of a training, not {shorten(fixed)}"
        raise PlanError(message)
    settings = {name: plan_scalar(f"fixed.{name}", value) for name, value in fixed.items()}
    delta, released = (settings.pop(name, None) for name in OF_EPSILON)
    for name in settings:
        if name not in kinds():
            message = f"fixed.{name} is no setting of a training; they are {', '.join([*OF_EPSILON, *sorted(kinds())])}"
            raise PlanError(message)
    try:
        told = training(settings)
        at = None if delta is None else scalar("delta", delta, *DELTA)  # type: ignore[arg-type]
        view: Any = None if released is None else choice("released", str(released), VIEWS)
    except (ValueError, TypeError) as error:
        message = f"fixed: {error}"
        raise PlanError(message) from error
    for name in settings:
        if name not in told.used:
            message = f"fixed.{name} must be left out: neither {settings['algorithm']} nor these data have it"
            raise PlanError(message)
    return Asked(told, at, view)
