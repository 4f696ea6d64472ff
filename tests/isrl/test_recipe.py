"""Recipes: runs that keep the budget, spend it, and learn."""

from typing import Any

import numpy as np
import pytest

from hockeystick import isrl

simulate = pytest.importorskip("hockeystick.simulate")
pytest.importorskip("numba")

BUDGET = isrl.Budget(2.0, 1e-6)
PROBLEM = simulate.synthetic("logistic", sizes=[1000] * 25, num_features=20, seed=1)


@pytest.mark.parametrize(
    ("name", "settings", "most"),
    [
        ("mb_sgd", {"rounds": 200}, 0.072),
        ("mb_sgd_with_replacement", {"rounds": 200}, 0.073),
        ("one_pass", {}, 0.043),
        ("erm", {}, 0.006),
        ("multistage", {"regularization": 0.1}, 0.041),
    ],
)
def test_recipes_keep_the_budget_and_learn(name: str, settings: dict[str, Any], most: float) -> None:
    """Epsilon of the run is the budget's, nearly all of it; the excess loss is at most what the same algorithms reached when they were set up by hand."""
    ready = isrl.recipe(name, BUDGET, PROBLEM, **settings)
    result = simulate.run(ready.algorithm, PROBLEM, rounds=ready.rounds, seed=0)
    assert 0.99 * BUDGET.epsilon <= result.epsilon(BUDGET.delta)[-1] <= BUDGET.epsilon
    exact = simulate.AcceleratedMinibatchSGD(
        scale=2 * PROBLEM.smoothness, clip_norm=2.0, noise_std=0.0, records=simulate.EveryRound(), radius=1.0
    )
    least = np.min(simulate.run(exact, PROBLEM, rounds=300, seed=0).loss())
    assert 0 <= result.loss()[..., -1].mean() - least <= most


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("sgd", {}, "algorithm must be "),
        ("erm", {"batch_size": 1001}, "batch_size must be at most 1000, the records of the smallest silo, not 1001"),
        ("erm", {"radius": 0.0}, "radius must be positive"),
        ("erm", {"regularization": 0.1}, "regularization must be 0 for 'erm', not 0.1"),
        ("one_pass", {"rounds": 3}, "rounds must not be given for 'one_pass'"),
        ("multistage", {}, "regularization must be positive for 'multistage'"),
        ("multistage", {"regularization": 0.1, "batch_size": 500}, "rounds must be at least "),
    ],
)
def test_what_is_no_recipe(name: Any, settings: dict[str, Any], message: str) -> None:
    """A wrong name or setting is named; too few records for a stage say how many rounds it takes."""
    with pytest.raises(ValueError, match=message):
        isrl.recipe(name, BUDGET, PROBLEM, **settings)


@pytest.mark.parametrize("budget", [2.0, (2.0,), (2.0, 1e-6, 0.1), (0.0, 1e-6), (2.0, 1.0)])
def test_what_is_no_budget(budget: Any) -> None:
    """A pair of a positive epsilon and a delta below 1."""
    with pytest.raises(ValueError, match="budget"):
        isrl.recipe("erm", budget, PROBLEM)


def test_problem_without_constants() -> None:
    """What is read off the data protects nobody."""
    private = simulate.Problem("logistic", np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="problem must have a positive public lipschitz"):
        isrl.recipe("erm", BUDGET, private)
    crooked = simulate.Problem("network", np.eye(4), [0, 1, 0, 1], hidden=2, feature_bound=1.0)
    with pytest.raises(ValueError, match="problem must "):
        isrl.recipe("erm", BUDGET, crooked)
