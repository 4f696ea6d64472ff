"""Which noise a function is asked about."""

from __future__ import annotations

from numpy.typing import ArrayLike


def noise_given(noise_std: ArrayLike | None, noise_scale: ArrayLike | None) -> tuple[str, ArrayLike]:
    """Return the name and the value of the one that was given."""
    if noise_std is not None and noise_scale is None:
        return "noise_std", noise_std
    if noise_scale is not None and noise_std is None:
        return "noise_scale", noise_scale
    msg = "exactly one of noise_std (Gaussian noise) and noise_scale (Laplace noise) must be given"
    raise TypeError(msg)
