"""From a training's own settings to the numbers of DP-SGD."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from hockeystick._checks import POSITIVE, boolean_scalar, choice, count_scalar, implausible, positive_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick.training.batches import SAMPLINGS, batches_of, rate_of

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
    ...     records=60000, batch_size=600, epochs=10, noise_multiplier=1.1
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
    records: int | None = None,
    batch_size: int,
    epochs: float | None = None,
    steps: int | None = None,
    noise_multiplier: float | None = None,
    clip_norm: float | None = None,
    noise_std: float | None = None,
    noise_on: Literal["sum", "mean"] = "sum",
    sampling: Literal["poisson"] = "poisson",
    dataset_size: int | None = None,
    drop_last: bool = False,
) -> DpsgdParameters:
    """Return noise multiplier, sampling rate and number of steps of a training.

    Parameters
    ----------
    records : int
        Number of records, at least 1.
    batch_size : int
        Expected number of records in the batch of one optimiser step, all workers and accumulated micro-batches
        together, in [1, records].
    epochs : float, optional
        Passes over the data, positive. A pass takes records/batch_size steps, rounded up, as that of a data loader which keeps
        the last, smaller batch; part of a pass is rounded up, too.
    steps : int, optional
        Optimiser steps, at least 1. Exactly one of `epochs` and `steps` must be given.
    noise_multiplier : float, optional
        Standard deviation of the noise on the sum of the clipped gradients over the clip norm; positive and finite.
    clip_norm : float, optional
        Largest norm of a record's gradient, positive and finite.
    noise_std : float, optional
        Standard deviation of the noise in every coordinate, positive and finite; with `clip_norm` in place of `noise_multiplier`.
    noise_on : {"sum", "mean"}
        Whether `noise_std` is the noise added to the sum of the clipped gradients, or to their mean, the sum over `batch_size`.
    sampling : {"poisson"}
        How batches are made. The numbers returned are those of Poisson samples: any other word is refused, with what to ask instead.
    dataset_size : int, optional
        Another name of `records`.
    drop_last : bool
        Whether the data loader drops the last batch of a pass if it is smaller. A pass then takes records/batch_size steps, rounded
        down, and the sampling rate is one over them, as in Opacus: more than batch_size/records.

    Returns
    -------
    DpsgdParameters
        A tuple (noise_multiplier, sampling_rate, steps); its property `assumed` says what it assumes of the training.

    Raises
    ------
    ValueError
        If an argument is outside its domain, missing, or given beside another that says the same.
    TypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.dpsgd_parameters(
    ...     records=60000, batch_size=256, epochs=15, noise_multiplier=1.1
    ... )
    >>> print(training.steps, hs.format_upper(hs.dpsgd_epsilon(*training, 1e-5), ".3f"))
    3525 1.136
    >>> training = hs.dpsgd_parameters(
    ...     records=50000, batch_size=1000, epochs=2, clip_norm=0.5, noise_std=0.001, noise_on="mean"
    ... )
    >>> print(training)
    DpsgdParameters(noise_multiplier=2.0, sampling_rate=0.02, steps=100)
    >>> print(hs.format_upper(hs.dpsgd_epsilon(*training, 1e-5), ".2f"))
    0.41
    """
    noise_on = choice("noise_on", noise_on, ("sum", "mean"))
    _require_poisson(sampling)
    size, name = _one_of(("records", records), ("dataset_size", dataset_size))
    size = count_scalar(name, size)
    batch_size = count_scalar("batch_size", batch_size)
    if batch_size > size:
        msg = f"batch_size must be at most {name} ({size}), not {batch_size}"
        raise ValueError(msg)
    drop_last = boolean_scalar("drop_last", drop_last)
    length, called = _one_of(("epochs", epochs), ("steps", steps))
    if called == "epochs":
        number = steps_of(positive_scalar("epochs", length), size, batch_size, drop_last=drop_last)
    else:
        number = count_scalar("steps", length)
    multiplier = _multiplier(noise_multiplier, clip_norm, noise_std, batch_size if noise_on == "mean" else 1)
    if noise_on == "mean":
        if noise_std is None:
            msg = 'noise_on must be "sum" with noise_multiplier, which is that of the sum, not "mean"; give noise_std and clip_norm'
            raise ValueError(msg)
        doubt = implausible.noise_of_mean(multiplier, noise_std, ("batch_size", batch_size), size)
        implausible.warn(doubt)
    return DpsgdParameters(multiplier, rate_of(size, batch_size, drop_last=drop_last), number)


def _one_of(first: tuple[str, Any], second: tuple[str, Any]) -> tuple[Any, str]:
    """Return the one that is given, and its name."""
    given = [(value, name) for name, value in (first, second) if value is not None]
    if len(given) != 1:
        msg = f"exactly one of {first[0]} and {second[0]} must be given, not {first[0]}={first[1]} and {second[0]}={second[1]}"
        raise ValueError(msg)
    return given[0]


def _multiplier(noise_multiplier: float | None, clip_norm: float | None, noise_std: float | None, per: int) -> float:
    """Return the noise on the sum over the clip norm; `noise_std` is that of the sum over `per`."""
    clip_norm = None if clip_norm is None else positive_scalar("clip_norm", clip_norm)
    noise, name = _one_of(("noise_multiplier", noise_multiplier), ("noise_std", noise_std))
    noise = positive_scalar(name, noise)
    if name == "noise_multiplier":
        return noise
    if clip_norm is None:
        msg = "clip_norm must be given with noise_std, not None: the noise multiplier is their quotient"
        raise ValueError(msg)
    return scalar("noise_std over clip_norm", noise * per / clip_norm, *POSITIVE)


def _require_poisson(sampling: str) -> None:
    """Refuse other samplings, for which the numbers of Poisson samples would be too small."""
    choice("sampling", sampling, SAMPLINGS)
    if sampling != "poisson":
        instead = {
            "shuffled": "for shuffled batches ask shuffled_batches_epsilon",
            "fixed": "for batches of fixed size compose FixedSizeSampled in an Accountant",
            "unknown": "find out how batches are made; shuffled_batches_epsilon is that of ordinary data loaders",
        }[sampling]
        msg = f"sampling must be 'poisson' for these numbers, not {shown(sampling)}: they would be too small; {instead}"
        raise ValueError(msg)


def steps_of(epochs: float, dataset_size: int, batch_size: int, *, drop_last: bool = False) -> int:
    """Return the number of optimiser steps, a pass being a whole number of them."""
    passes, batches = math.floor(epochs), batches_of(dataset_size, batch_size, drop_last=drop_last)
    length = batches if drop_last else dataset_size / batch_size
    part = (epochs - passes) * length
    # A product that is an integer but for its rounding is that integer: 0.1 epochs of 10 steps are 1 step.
    rest = round(part) if abs(part - round(part)) <= 1e-12 * (epochs + 1) * length else math.ceil(part)
    steps = passes * batches + rest
    return count_scalar("the number of steps", max(steps, 1))
