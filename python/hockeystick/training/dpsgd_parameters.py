"""From a training's own settings to the numbers of DP-SGD."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from hockeystick._checks import POSITIVE, choice, count_scalar, implausible, positive_scalar, scalar

__all__ = ["DpsgdParameters", "dpsgd_parameters"]


class DpsgdParameters(NamedTuple):
    """The numbers that the accounting of DP-SGD takes; ``print(parameters.assumed)`` says what they assume.

    Attributes
    ----------
    noise_multiplier : float
        Noise standard deviation over clip norm.
    sampling_rate : float
        Probability of each record in each step.
    steps : int
        Optimiser steps.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.dpsgd_parameters(
    ...     dataset_size=60000, batch_size=600, epochs=10, clip_norm=1.0, noise_std=1.1
    ... )
    DpsgdParameters(noise_multiplier=1.1, sampling_rate=0.01, steps=1000)
    """

    noise_multiplier: float
    sampling_rate: float
    steps: int

    @property
    def assumed(self) -> str:
        """What must be true of the training for these numbers to describe it."""
        return (
            f"{self.steps} optimiser steps; in each, every record is drawn with probability {self.sampling_rate!r}, "
            "independently of all others and afresh (a shuffled or fixed-size batch is not that); each record's whole "
            "gradient is clipped once, whatever the micro-batches; the sum of the clipped gradients gets Gaussian noise "
            f"of {self.noise_multiplier!r} times the clip norm, once; data sets are adjacent if one record is added or "
            "removed; data set size and expected batch size are public, and a mean divides by the expected batch size, "
            "not by the drawn one."
        )


def dpsgd_parameters(
    *,
    dataset_size: int,
    batch_size: int,
    epochs: float,
    clip_norm: float,
    noise_std: float,
    noise_on: Literal["sum", "mean"] = "sum",
) -> DpsgdParameters:
    """Return noise multiplier, sampling rate and number of steps of a training.

    Parameters
    ----------
    dataset_size : int
        Number of records, at least 1.
    batch_size : int
        Expected number of records in the batch of one optimiser step, all workers and accumulated micro-batches
        together, in [1, dataset_size].
    epochs : float
        Passes over the data, positive. A pass takes dataset_size/batch_size steps, rounded up, as that of a data loader which keeps
        the last, smaller batch; part of a pass is rounded up, too. A loader that drops the last batch takes no more steps.
    clip_norm : float
        Largest norm of a record's gradient, positive and finite.
    noise_std : float
        Standard deviation of the noise in every coordinate, positive and finite.
    noise_on : {"sum", "mean"}
        Whether that is the noise added to the sum of the clipped gradients, or to their mean, the sum over `batch_size`.

    Returns
    -------
    DpsgdParameters
        A tuple (noise_multiplier, sampling_rate, steps); its property `assumed` says what it assumes of the training.

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.dpsgd_parameters(
    ...     dataset_size=50000, batch_size=1000, epochs=2, clip_norm=0.5, noise_std=0.001, noise_on="mean"
    ... )
    >>> print(training)
    DpsgdParameters(noise_multiplier=2.0, sampling_rate=0.02, steps=100)
    >>> print(hs.format_upper(hs.dpsgd_epsilon(*training, 1e-5), ".2f"))
    0.41
    """
    noise_on = choice("noise_on", noise_on, ("sum", "mean"))
    dataset_size = count_scalar("dataset_size", dataset_size)
    batch_size = count_scalar("batch_size", batch_size)
    if batch_size > dataset_size:
        msg = f"batch_size must be at most dataset_size ({dataset_size}), not {batch_size}"
        raise ValueError(msg)
    epochs = positive_scalar("epochs", epochs)
    clip_norm = positive_scalar("clip_norm", clip_norm)
    noise_std = positive_scalar("noise_std", noise_std)
    of_sum = noise_std * batch_size if noise_on == "mean" else noise_std
    multiplier = scalar("noise_std over clip_norm", of_sum / clip_norm, *POSITIVE)
    steps = steps_of(epochs, dataset_size, batch_size)
    if noise_on == "mean":
        implausible.warn(
            implausible.noise_of_mean(multiplier, noise_std, ("batch_size", batch_size), dataset_size),
        )
    return DpsgdParameters(multiplier, batch_size / dataset_size, steps)


def steps_of(epochs: float, dataset_size: int, batch_size: int) -> int:
    """Return the number of optimiser steps, a pass being a whole number of them."""
    passes = math.floor(epochs)
    part = (epochs - passes) * (dataset_size / batch_size)
    # A product that is an integer but for its rounding is that integer: 0.1 epochs of 10 steps are 1 step.
    rest = (
        round(part)
        if abs(part - round(part)) <= 1e-12 * (epochs + 1) * (dataset_size / batch_size)
        else math.ceil(part)
    )
    steps = passes * -(-dataset_size // batch_size) + rest
    return count_scalar("the number of steps", max(steps, 1))
