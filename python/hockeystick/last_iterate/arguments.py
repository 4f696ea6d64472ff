"""The arguments that all bounds of projected noisy SGD share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from hockeystick._checks import Array, Checks
from hockeystick._checks.arguments import arrays


def checked(arguments: Mapping[str, Any], grid: Checks, **others: None) -> list[Array]:
    """Check the arguments of a run in their order. A domain may have no end; one of two kinds of noise may not be given."""
    absent = {name: None for name in ("noise_std", "noise_scale") if arguments.get(name) is None}
    found = arrays(arguments, grid, diameter="positive_or_infinite", **absent, **others)
    check_convexity(grid, found["smoothness"], found["strong_convexity"])
    return list(found.values())


def check_convexity(grid: Checks, smoothness: Array, strong_convexity: Array) -> None:
    """Check that both can be of one loss."""
    rule = "strong_convexity must be at most smoothness"
    grid.require(lambda b, r: r <= b, rule, smoothness=smoothness, strong_convexity=strong_convexity)


def noise_given(noise_std: ArrayLike | None, noise_scale: ArrayLike | None) -> tuple[str, ArrayLike]:
    """Return the name and the value of the one that was given."""
    if noise_std is not None and noise_scale is None:
        return "noise_std", noise_std
    if noise_scale is not None and noise_std is None:
        return "noise_scale", noise_scale
    raise TypeError("exactly one of noise_std (Gaussian noise) and noise_scale (Laplace noise) must be given")


def check_index(grid: Checks, index: Array, num_records: Array) -> None:
    """Check the step in which the record is used."""
    grid.require(lambda i, n: i <= n, "index must lie in [1, num_records]", index=index, num_records=num_records)


def check_step(grid: Checks, learning_rate: Array, smoothness: Array, strong_convexity: Array) -> None:
    """Check that a step does not expand."""
    check_convexity(grid, smoothness, strong_convexity)
    rule = "learning_rate must be at most 2/(smoothness + strong_convexity)"
    step = {"learning_rate": learning_rate, "smoothness": smoothness, "strong_convexity": strong_convexity}
    grid.require(lambda e, b, r: e * (b + r) <= 2, rule, **step)
