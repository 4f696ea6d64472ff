"""What the settings of a plan reach on data: simulated, where the risk bounds are worst cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick._checks import count_scalar

if TYPE_CHECKING:
    from hockeystick._checks import Array
    from hockeystick.simulate import Algorithm
    from hockeystick.simulate import Problem as Data
    from hockeystick.utility.planning import Plan
    from hockeystick.utility.settings import Setting

MOST_NUMBERS = 50_000_000  # of synthetic data: 400 MB
SIMULATED = ("central", "inter-silo")


def simulated_losses(plan: Plan, data: Data | None, *, seed: int, num_runs: int) -> Array:
    """Return the loss that every setting reaches in every run, shape (settings, num_runs)."""
    from hockeystick.simulate import run  # noqa: PLC0415 - numba is asked for when needed

    if plan.trust not in SIMULATED:
        msg = f"trust must be {' or '.join(map(repr, SIMULATED))} for a simulated loss, not {plan.trust!r}"
        raise ValueError(msg)
    num_runs = count_scalar("num_runs", num_runs)
    problem = synthetic_data(plan, seed) if data is None else data
    _check(plan, problem)
    if plan.trust == "central":
        problem = problem.pooled()
    rows: list[Any] = []
    for setting in plan.settings:
        algorithm = _algorithm(plan, setting, problem.num_silos)
        result = run(algorithm, problem, rounds=setting.rounds, seed=seed, num_runs=num_runs)
        rows.append(result.loss()[-1])
    return np.array(rows)


def synthetic_data(plan: Plan, seed: int) -> Data:
    """Return logistic regression with as many silos, records and parameters as the plan has; features of norm 1 at most."""
    from hockeystick.simulate import synthetic  # noqa: PLC0415

    inputs = plan.problem
    size = inputs.num_silos * inputs.num_records * inputs.dimension
    if size > MOST_NUMBERS:
        msg = (
            f"num_silos num_records dimension must be at most {MOST_NUMBERS} for synthetic data, not {size}; give data"
        )
        raise ValueError(msg)
    sizes = [inputs.num_records] * inputs.num_silos
    return synthetic("logistic", sizes=sizes, num_features=inputs.dimension, seed=seed)


def _check(plan: Plan, problem: Data) -> None:
    inputs = plan.problem
    expected = (inputs.num_silos, inputs.num_records, inputs.dimension)
    given = (problem.num_silos, min(problem.sizes or (0,)), problem.dimension)
    if given != expected or max(problem.sizes or (0,)) != inputs.num_records:
        msg = f"data must have num_silos, num_records and dimension of the plan, {expected}, not {given}"
        raise ValueError(msg)


def _algorithm(plan: Plan, setting: Setting, num_silos: int) -> Algorithm:
    from hockeystick.simulate import EveryRound, FixedSize, NoisyMinibatchSGD  # noqa: PLC0415

    everybody = plan.trust == "central" or setting.silos_per_round == num_silos
    return NoisyMinibatchSGD(
        learning_rate=setting.learning_rate,
        clip_norm=plan.problem.lipschitz,
        noise_std=setting.noise_std,
        records=FixedSize(setting.batch_size),
        clients=EveryRound() if everybody else FixedSize(setting.silos_per_round),
        radius=plan.problem.diameter / 2,
    )
