"""What the settings of a plan reach on data: simulated, where the risk bounds are worst cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick._checks import count_scalar
from hockeystick._checks.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hockeystick._checks import Array
    from hockeystick.simulate import Algorithm
    from hockeystick.simulate import Problem as Data
    from hockeystick.utility.settings import Problem, Setting, Trust

MOST_NUMBERS = 50_000_000  # of synthetic data: 400 MB
SIMULATED = ("central", "inter-silo")


def simulated_losses(
    trust: Trust, problem: Problem, settings: Sequence[Setting], data: Data | None, *, seed: int, num_runs: int
) -> Array:
    """Return the loss that every setting reaches in every run, shape (settings, num_runs)."""
    from hockeystick.simulate import run  # noqa: PLC0415 - numba is asked for when needed

    if trust not in SIMULATED:
        msg = f"trust must be {' or '.join(map(repr, SIMULATED))} for a simulated loss, not {shown(trust)}"
        raise ValueError(msg)
    num_runs = count_scalar("num_runs", num_runs)
    learned = synthetic_data(problem, seed) if data is None else data
    _check(problem, learned)
    if trust == "central":
        learned = learned.pooled()
    rows: list[Any] = []
    for setting in settings:
        algorithm = _algorithm(trust, problem, setting, learned.num_silos)
        result = run(algorithm, learned, rounds=setting.rounds, seed=seed, num_runs=num_runs)
        rows.append(result.loss()[-1])
    return np.array(rows)


def synthetic_data(problem: Problem, seed: int) -> Data:
    """Return logistic regression with as many silos, records and parameters as a plan has; features of norm 1 at most."""
    from hockeystick.simulate import synthetic  # noqa: PLC0415

    size = problem.num_silos * problem.num_records * problem.dimension
    if size > MOST_NUMBERS:
        msg = (
            f"num_silos num_records dimension must be at most {MOST_NUMBERS} for synthetic data, not {size}; give data"
        )
        raise ValueError(msg)
    sizes = [problem.num_records] * problem.num_silos
    return synthetic("logistic", sizes=sizes, num_features=problem.dimension, seed=seed)


def _check(problem: Problem, data: Data) -> None:
    expected = (problem.num_silos, problem.num_records, problem.dimension)
    given = (data.num_silos, min(data.sizes or (0,)), data.dimension)
    if given != expected or max(data.sizes or (0,)) != problem.num_records:
        msg = f"data must have num_silos, num_records and dimension of the plan, {expected}, not {given}"
        raise ValueError(msg)


def _algorithm(trust: Trust, problem: Problem, setting: Setting, num_silos: int) -> Algorithm:
    from hockeystick.simulate import EveryRound, FixedSize, NoisyMinibatchSGD  # noqa: PLC0415

    everybody = trust == "central" or setting.silos_per_round == num_silos
    return NoisyMinibatchSGD(
        learning_rate=setting.learning_rate,
        clip_norm=problem.lipschitz,
        noise_std=setting.noise_std,
        records=FixedSize(setting.batch_size),
        clients=EveryRound() if everybody else FixedSize(setting.silos_per_round),
        radius=problem.diameter / 2,
    )
