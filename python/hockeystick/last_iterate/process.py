"""The arguments that all bounds of projected noisy SGD share."""

from __future__ import annotations

from numpy.typing import ArrayLike

from hockeystick._checks import Array, Grid


def check_process(  # noqa: PLR0917, in the order of its callers' arguments
    grid: Grid,
    learning_rate: ArrayLike,
    name: str,
    noise: ArrayLike,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike,
    diameter: ArrayLike,
) -> tuple[Array, ...]:
    """Check them in their order; `name` is that of the noise."""
    arrays = (
        grid.positive("learning_rate", learning_rate),
        grid.positive(name, noise),
        grid.positive("lipschitz", lipschitz),
        grid.non_negative("smoothness", smoothness),
        grid.non_negative("strong_convexity", strong_convexity),
        grid.positive_or_infinite("diameter", diameter),
    )
    grid.require(
        lambda b, r: r <= b,
        "strong_convexity must be at most smoothness",
        smoothness=arrays[3],
        strong_convexity=arrays[4],
    )
    return arrays
