"""The command ``hockeystick simulate``: a plan of one training, what it reaches, and what is certified about it."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hockeystick._checks import seed_scalar, setting_warnings
from hockeystick.cli import arguments

if TYPE_CHECKING:
    from hockeystick._checks import Array
    from hockeystick.simulate import Result
    from hockeystick.sweep.training_settings import Training

INTERRUPTED = 130  # the exit code after Ctrl-C
MAX_RECORDED = 20  # rounds, if no other number is given


def run(chosen: argparse.Namespace) -> int:
    """Run one training, and write what it reaches and what is certified of it."""
    from hockeystick import simulate  # noqa: PLC0415 - imports are paid for by this command only
    from hockeystick.sweep.trainings import load_one  # noqa: PLC0415

    told, delta, released = load_one(chosen.plan)
    arguments.tell(chosen, None if delta is None else setting_warnings.large_delta(delta, told.problem.num_records))
    if chosen.seed is not None:
        told = dataclasses.replace(told, seed=seed_scalar("seed", chosen.seed))
    if chosen.budget is not None and delta is None:
        raise ValueError(f"--budget must be left out where the plan has no delta, not be {chosen.budget}")
    for option in ("out", "plot", "checkpoint"):
        file: Path | None = getattr(chosen, option)
        if file is not None and (file.is_dir() or not file.parent.is_dir()):
            raise ValueError(f"--{option} must be a file in a folder that there is, not {file}")
    result = simulate.run(
        told.algorithm,
        told.problem,
        rounds=told.rounds,
        seed=told.seed,
        num_runs=told.num_runs,
        record_every=chosen.record_every or max(1, told.rounds // MAX_RECORDED),
        budget=None if chosen.budget is None or delta is None else (chosen.budget, delta),
        released=released,
        num_threads=chosen.num_threads,
        checkpoint=chosen.checkpoint,
    )
    certified, lines = _certified(result, delta)
    sys.stdout.writelines(f"{line}\n" for line in [*_reached(told, result), *lines])
    if chosen.out is not None:
        result.to_parquet(chosen.out, delta=delta if certified else None, test=told.test)
        sys.stdout.write(f"written to {chosen.out}\n")
    if chosen.plot is not None:
        from hockeystick.plot import training  # noqa: PLC0415

        training(result, delta=delta if certified else None, test=told.test).savefig(chosen.plot)
        sys.stdout.write(f"written to {chosen.plot}\n")
    return INTERRUPTED if result.stopped == "interrupted" else 0


def _reached(told: Training, result: Result) -> Iterator[str]:
    """Yield what was run, and loss and accuracy of what it releases."""
    yield repr(result.algorithm)
    yield f"{told.problem.num_records} records of {told.problem.num_silos} clients, seed {result.seed}"
    yield f"{result.completed} of {told.rounds} rounds, {result.num_runs} runs" + (
        "" if result.completed == told.rounds else f", stopped: {result.stopped}"
    )
    if not len(result.recorded):
        return
    tested = "these" if told.test is told.problem else f"{told.test.num_records} test records"
    yield f"loss = {_mean(result.loss()[-1])} on the records trained on"
    if told.test is not told.problem:
        yield f"loss = {_mean(result.loss(told.test)[-1])} on {tested}"
    if told.problem.classifies:
        yield f"accuracy = {_mean(result.accuracy(told.test)[-1])} on {tested}"


def _mean(values: Array) -> str:
    """Return the mean over runs with the 95 % interval of that mean, if there are several."""
    from hockeystick.sweep.trainings import half_width  # noqa: PLC0415

    if len(values) < 2:
        return f"{values[0]:.4g}"
    return f"{values.mean():.4g} +- {half_width(values):.2g} (95 % interval of the mean of {len(values)} runs)"


def _certified(result: Result, delta: float | None) -> tuple[bool, list[str]]:
    """Return whether an epsilon is certified, and the lines that say of what, or why not."""
    from hockeystick._numeric.printing import format_upper  # noqa: PLC0415
    from hockeystick.simulate import NoGuaranteeError  # noqa: PLC0415

    if delta is None:
        return False, ["epsilon: the plan has no delta, at which to tell it"]
    try:
        guarantee = result.guarantee()
        value = guarantee.epsilon(result.completed, delta)
    except NoGuaranteeError as error:
        return False, [f"epsilon: none is certified: {error}"]
    return True, [
        f"epsilon <= {format_upper(value, '.6g')} at delta = {delta}, certified for each run by itself",
        f"  covers {guarantee.released}; adjacency {guarantee.adjacency}",
        f"  by {guarantee.source}",
    ]
