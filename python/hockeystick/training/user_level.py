"""The guarantee of a user with all its records, by samples of records and by samples of users."""

from __future__ import annotations

from typing import NamedTuple

from hockeystick._checks import count_scalar, positive_scalar
from hockeystick.mechanisms import Gaussian, MixtureOfGaussians, PoissonSampled
from hockeystick.training.federated_parameters import FederatedParameters

__all__ = ["UserLevelParameters", "user_level_parameters"]


class UserLevelParameters(NamedTuple):
    """What a training leaks about a user, in two ways of drawing batches.

    Attributes
    ----------
    example_sampling : FederatedParameters
        Records are drawn and clipped one by one (ELS): the sum moves by as many clip norms as records of the user are drawn.
    user_sampling : FederatedParameters
        Users are drawn, and all that a user contributes is clipped as one vector (ULS): the sum moves by one clip norm.

    Examples
    --------
    >>> from hockeystick.training import user_level_parameters
    >>> training = user_level_parameters(
    ...     users=1000, records=3000, records_per_user=4, batch_size=30, users_per_step=10, steps=500, noise_multiplier=2.0
    ... )
    >>> training.user_sampling.mechanism
    PoissonSampled(mechanism=Gaussian(noise_multiplier=2.0), sampling_rate=0.01)
    """

    example_sampling: FederatedParameters
    user_sampling: FederatedParameters


def user_level_parameters(
    *,
    users: int,
    records: int,
    records_per_user: int,
    batch_size: int,
    users_per_step: int,
    steps: int,
    noise_multiplier: float,
) -> UserLevelParameters:
    """Return what DP-SGD leaks about a user who holds several records, with batches of records and with batches of users.

    Parameters
    ----------
    users : int
        Number of users, at least 1; public.
    records : int
        Number of records of all users together that the training may use, at least 1; public.
    records_per_user : int
        Largest number of records of one user among them, in [1, 1000]; what a user has beyond that is left out before the training.
    batch_size : int
        Expected number of records of a step where records are drawn, in [1, records].
    users_per_step : int
        Expected number of users of a step where users are drawn, in [1, users].
    steps : int
        Optimiser steps, at least 1.
    noise_multiplier : float
        Standard deviation of the noise on the sum over the clip norm, that of a record or that of a user; positive and finite.

    Returns
    -------
    UserLevelParameters
        A tuple (example_sampling, user_sampling); both have a mechanism, steps, assumptions in words, and an `accountant()`. Data sets are adjacent
        if a user is added or removed with all its records.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or there are more records than users may have.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    Charles and others 2024 (arXiv 2401.10294). Where records are drawn, the number of the user's records in a batch is binomial, and the pair is a mixture of
    Gaussians, which is exact: `MixtureOfGaussians.of_group`, attained by records whose gradients are equal. Group privacy of the guarantee of one
    record, which holds for every mechanism (Chua and others 2024, arXiv 2407.07737), is larger. Which way trains better at the same epsilon depends on
    the gradients: a mean over a batch has noise of noise_multiplier clip norms over `batch_size` or `users_per_step`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick.training import user_level_parameters
    >>> training = user_level_parameters(
    ...     users=10_000, records=40_000, records_per_user=5, batch_size=400, users_per_step=100, steps=1000, noise_multiplier=3.0
    ... )
    >>> for way in training:
    ...     print(hs.format_upper(way.accountant().epsilon(1e-6), ".2f"))
    2.53
    0.45
    """
    users, records = count_scalar("users", users), count_scalar("records", records)
    held = count_scalar("records_per_user", records_per_user)
    if records > users * held:
        msg = f"records must be at most users times records_per_user ({users * held}), not {records}"
        raise ValueError(msg)
    batch_size = _part("batch_size", batch_size, "records", records)
    users_per_step = _part("users_per_step", users_per_step, "users", users)
    steps = count_scalar("steps", steps)
    noise_multiplier = positive_scalar("noise_multiplier", noise_multiplier)
    return UserLevelParameters(
        _by_examples(noise_multiplier, held, batch_size / records, steps),
        _by_users(noise_multiplier, users_per_step / users, steps),
    )


def _by_examples(noise_multiplier: float, held: int, rate: float, steps: int) -> FederatedParameters:
    assumptions = (
        f"{steps} steps; in each, every record is drawn with probability {rate!r}, independently of all others and afresh",
        f"no user has more than {held} records among those drawn from, chosen before the training",
        "each record's gradient is clipped for itself, and depends on no other record",
        "a record may have several owners (`bound_owners`) if who owns what is public, and adjacency means that the user's records contribute nothing",
        *_SHARED,
    )
    mixture = MixtureOfGaussians.of_group(noise_multiplier, held, rate)
    return FederatedParameters(mixture, _UNIT, "add_or_remove", steps, assumptions)


def _by_users(noise_multiplier: float, rate: float, steps: int) -> FederatedParameters:
    assumptions = (
        f"{steps} steps; in each, every user is drawn with probability {rate!r}, independently of all others and afresh",
        "all that a user contributes to a step, by whichever of its records, is clipped as one vector, which depends on no records of others",
        "every record belongs to one user",
        *_SHARED,
    )
    sample = PoissonSampled(Gaussian(noise_multiplier), rate)
    return FederatedParameters(sample, _UNIT, "add_or_remove", steps, assumptions)


def _part(name: str, value: int, of: str, whole: int) -> int:
    part = count_scalar(name, value)
    if part > whole:
        msg = f"{name} must be at most {of} ({whole}), not {part}"
        raise ValueError(msg)
    return part


_UNIT = "one user with all its records, against who sees all models"
_SHARED = (
    "the sum of the clipped vectors gets Gaussian noise once, of the multiplier given; a mean divides by the expected number, not by the number drawn",
    "who or what is drawn is secret; the sampling rate is public, and the same with the user and without",
    "trainings are adjacent if one user is added or removed with all its records",
)
