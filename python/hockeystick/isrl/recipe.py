"""A ready run of each algorithm: what the theorems prescribe for a problem, with the accountant's noise."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from hockeystick._checks import choice, count_scalar, interval, non_negative_scalar, positive_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick.isrl.acceleration import accelerated_parameters, multistage_schedule
from hockeystick.isrl.noise import noisy_mb_sgd_sigma, one_pass_sigma
from hockeystick.isrl.rounds_and_steps import (
    erm_rounds,
    mb_sgd_rounds,
    one_pass_batch_size,
    one_pass_batch_size_sc,
    step_size_convex,
)
from hockeystick.isrl.unequal_silos import noisy_gradient_variance

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Recipe", "recipe"]

Name: TypeAlias = Literal["mb_sgd", "mb_sgd_with_replacement", "one_pass", "erm", "multistage"]


class Recipe(NamedTuple):
    """A run that is ready: ``simulate.run(recipe.algorithm, problem, rounds=recipe.rounds, seed=0)``.

    Attributes
    ----------
    algorithm : simulate.NoisyMinibatchSGD, simulate.AcceleratedMinibatchSGD or simulate.MultistageMinibatchSGD
        With its noise, batches and steps.
    rounds : int
        R.
    batch_size : int
        K, of every silo in a round.
    noise_std : float
        Of each silo's mean gradient, per coordinate.
    """

    algorithm: Any
    rounds: int
    batch_size: int
    noise_std: float


class _Setting(NamedTuple):
    """What the theorems ask of a problem, a budget and a domain."""

    lipschitz: float
    smoothness: float
    num_silos: int
    num_records: int
    dimension: int
    diameter: float
    epsilon: float
    delta: float
    regularization: float

    def of(self, *names: str) -> dict[str, Any]:
        """Return some of it, all silos taking part."""
        known = self._asdict() | {"silos_per_round": self.num_silos}
        return {name: known[name] for name in names}

    def sigma(self, batch_size: int, rounds: int, *, replacement: bool = False) -> float:
        """Return the least noise of batches that are drawn afresh in every round."""
        budget = self.of("lipschitz", "num_records", "epsilon", "delta")
        return noisy_mb_sgd_sigma(**budget, batch_size=batch_size, rounds=rounds, replacement=replacement)

    def variance(self, batch_size: int, noise_std: float) -> float:
        """Return the mean squared error of a round's gradient: records' gradients are within L of their mean."""
        silos = self.of("silos_per_round", "num_silos", "dimension")
        spread = {"gradient_std": self.lipschitz, "heterogeneity": self.lipschitz, "batch_size": batch_size}
        return float(noisy_gradient_variance(**silos, **spread, noise_std=noise_std))


def recipe(
    algorithm: Name,
    budget: Sequence[float],
    problem: Any,
    *,
    radius: float = 1.0,
    rounds: int | None = None,
    batch_size: int | None = None,
    regularization: float = 0.0,
) -> Recipe:
    r"""Return a ready run of an algorithm of the paper: rounds, batch size, noise and steps for a budget and a problem.

    Parameters
    ----------
    algorithm : {"mb_sgd", "mb_sgd_with_replacement", "one_pass", "erm", "multistage"}
        Noisy mini-batch SGD (Algorithm 2), its batches drawn without or with replacement; accelerated SGD in one pass over disjoint batches
        (Theorem E.1); accelerated SGD for the empirical risk, many passes (Theorem F.1); accelerated SGD in stages, in one pass.
    budget : isrl.Budget or pair of float
        Epsilon, positive, and delta, in (0, 1), of every silo towards everybody else, when one of its records is replaced.
    problem : simulate.Problem
        Convex and smooth, with a public Lipschitz constant (`feature_bound`). All silos take part in all rounds.
    radius : float
        Of the ball that models are projected onto, positive.
    rounds : int, optional
        R, for the algorithms that draw batches afresh; by default what the theorem prescribes.
    batch_size : int, optional
        K, in [1, records of the smallest silo]; by default what the theorem prescribes.
    regularization : float
        lambda of "multistage", which needs strong convexity: lambda/2 times the squared distance to the start is added to the loss; >= 0.

    Returns
    -------
    Recipe
        The noise is the accountant's, so that ``result.epsilon(delta)`` keeps the budget.

    Raises
    ------
    ValueError
        If an argument is outside its domain, the problem lacks a constant, or the records do not suffice for one stage.
    TypeError
        If an argument is of the wrong type.
    ImportError
        If numba is not installed.

    Notes
    -----
    Lowy and Razaviyayn 2023, with the corrections that `hockeystick papers 003` lists. Steps: `step_size_convex`, `accelerated_parameters`,
    `multistage_schedule`, at the `noisy_gradient_variance` of gradients of norm L.

    Examples
    --------
    >>> from hockeystick import isrl, simulate
    >>> problem = simulate.synthetic("logistic", sizes=[1000] * 25, num_features=20, seed=1)
    >>> ready = isrl.recipe("erm", (2.0, 1e-6), problem)
    >>> result = simulate.run(ready.algorithm, problem, rounds=ready.rounds, seed=0)
    >>> bool(result.epsilon(1e-6)[-1] <= 2.0)
    True
    """
    choice("algorithm", algorithm, get_args(Name))
    setting = _setting(budget, problem, radius, regularization)
    size = None if batch_size is None else count_scalar("batch_size", batch_size)
    if size is not None and size > setting.num_records:
        raise ValueError(
            f"batch_size must be at most {setting.num_records}, the records of the smallest silo, not {size}"
        )
    if rounds is not None and algorithm in ("one_pass", "multistage"):
        raise ValueError(
            f"rounds must not be given for {shown(algorithm)}: one pass has num_records // batch_size rounds"
        )
    if regularization and algorithm != "multistage":
        raise ValueError(
            f"regularization must be 0 for {shown(algorithm)}, not {regularization}: it is that of 'multistage'"
        )
    asked = None if rounds is None else count_scalar("rounds", rounds)
    shared = {"clip_norm": setting.lipschitz, "radius": setting.diameter / 2.0}
    if algorithm in ("mb_sgd", "mb_sgd_with_replacement"):
        return _mb_sgd(setting, shared, asked, size, replacement=algorithm == "mb_sgd_with_replacement")
    if algorithm == "erm":
        return _erm(setting, shared, asked, size)
    return _one_pass(setting, shared, size, stages=algorithm == "multistage", convexity=float(problem.strong_convexity))


def _setting(budget: Sequence[float], problem: Any, radius: float, regularization: float) -> _Setting:
    if not isinstance(budget, (tuple, list)) or len(budget) != 2:
        raise ValueError(f"budget must be a pair, epsilon and delta, not {shown(budget)}")
    epsilon, delta = positive_scalar("budget[0]", budget[0]), scalar("budget[1]", budget[1], *interval("(0, 1)"))
    for name in ("lipschitz", "smoothness"):
        if not getattr(problem, name, None):
            raise ValueError(
                f"problem must have a positive public {name}: not every loss has one, and some need a feature_bound"
            )
    if not problem.convex:
        raise ValueError(f"problem must be convex, not {shown(problem)}")
    return _Setting(
        problem.lipschitz,
        problem.smoothness,
        problem.num_silos,
        min(problem.sizes),
        problem.dimension,
        2.0 * positive_scalar("radius", radius),
        epsilon,
        delta,
        non_negative_scalar("regularization", regularization),
    )


def _simulate() -> Any:
    """Return the room above this one, whose algorithms a recipe is made for."""
    return import_module("hockeystick.simulate")


def _mb_sgd(
    setting: _Setting, shared: dict[str, Any], rounds: int | None, size: int | None, *, replacement: bool
) -> Recipe:
    names = ["smoothness", "diameter", "lipschitz", "silos_per_round", "num_records", "epsilon", "dimension"]
    rounds = rounds or math.ceil(mb_sgd_rounds(**setting.of(*names)))
    least = setting.epsilon * setting.num_records / (4.0 * math.sqrt(2.0 * rounds * math.log(2.0 / setting.delta)))
    size = size or min(max(math.ceil(least), 1), setting.num_records)  # the least of Theorem 2.1
    sigma = setting.sigma(size, rounds, replacement=replacement)
    names = ["diameter", "lipschitz", "num_records", "num_silos", "silos_per_round", "dimension", "smoothness"]
    step = float(step_size_convex(**setting.of(*names), rounds=rounds, noise_std=sigma))
    room = _simulate()
    records = room.WithReplacement(size) if replacement else room.FixedSize(size)
    algorithm = room.NoisyMinibatchSGD(learning_rate=step, noise_std=sigma, records=records, **shared)
    return Recipe(algorithm, rounds, size, sigma)


def _erm(setting: _Setting, shared: dict[str, Any], rounds: int | None, size: int | None) -> Recipe:
    size = size or setting.num_records
    names = [
        "lipschitz",
        "silos_per_round",
        "num_silos",
        "num_records",
        "epsilon",
        "delta",
        "dimension",
        "diameter",
        "smoothness",
    ]
    rounds = rounds or math.ceil(erm_rounds(**setting.of(*names), batch_size=size))
    sigma = setting.sigma(size, rounds)
    records = _simulate().FixedSize(size)
    return Recipe(_accelerated(setting, shared, records, rounds, sigma), rounds, size, sigma)


def _one_pass(setting: _Setting, shared: dict[str, Any], size: int | None, *, stages: bool, convexity: float) -> Recipe:
    convexity += setting.regularization
    smoothness = setting.smoothness + setting.regularization
    gap = setting.lipschitz * setting.diameter + setting.regularization * setting.diameter**2 / 2.0
    if stages and convexity == 0.0:
        raise ValueError(
            "regularization must be positive for 'multistage' on a problem that is not strongly convex, not 0"
        )
    if size is None and stages:
        names = ["num_records", "epsilon", "delta", "silos_per_round", "lipschitz", "dimension"]
        strong = {"smoothness": smoothness, "strong_convexity": convexity, "initial_gap": gap}
        size = round(float(one_pass_batch_size_sc(**setting.of(*names), **strong, gradient_std=setting.lipschitz)))
    if size is None:
        names = [
            "lipschitz",
            "smoothness",
            "diameter",
            "num_records",
            "dimension",
            "epsilon",
            "delta",
            "silos_per_round",
        ]
        size = round(float(one_pass_batch_size(**setting.of(*names))))
    size = min(max(size, 1), setting.num_records)
    rounds = setting.num_records // size
    sigma = float(one_pass_sigma(**setting.of("lipschitz", "epsilon", "delta"), batch_size=size))
    records = _simulate().Cyclic(size)
    if not stages:
        return Recipe(_accelerated(setting, shared, records, rounds, sigma), rounds, size, sigma)
    deviation = math.sqrt(setting.variance(size, sigma))
    planned = multistage_schedule(
        smoothness=smoothness, strong_convexity=convexity, gradient_std=deviation, initial_gap=gap, rounds=rounds
    )
    algorithm = _simulate().MultistageMinibatchSGD(
        stages=planned,
        noise_std=sigma,
        records=records,
        strong_convexity=convexity,
        regularization=setting.regularization,
        **shared,
    )
    return Recipe(algorithm, sum(stage.rounds for stage in planned), size, sigma)


def _accelerated(setting: _Setting, shared: dict[str, Any], records: Any, rounds: int, sigma: float) -> Any:
    found = accelerated_parameters(
        rounds=rounds,
        distance_squared=setting.diameter**2,
        variance=setting.variance(records.size, sigma),
        smoothness=setting.smoothness,
    )
    return _simulate().AcceleratedMinibatchSGD(scale=float(found.phi), noise_std=sigma, records=records, **shared)
