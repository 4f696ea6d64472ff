"""The guarantee of a user with all its records, by samples of records or of users, and the records that belong to several users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import count_scalar
from hockeystick._checks.arguments import scalars
from hockeystick._checks.shown import shown
from hockeystick.mechanisms import Gaussian, MixtureOfGaussians, PoissonSampled
from hockeystick.mechanisms.base import Mechanism
from hockeystick.training.federated_setup import FederatedParameters

__all__ = ["OwnedSelection", "UserLevelParameters", "bound_owners", "user_level_parameters"]


class UserLevelParameters(NamedTuple):
    """The user-level guarantees of DP-SGD with batches of records and with batches of users.

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
    ...     num_users=1000, num_records=3000, records_per_user=4, batch_size=30, users_per_step=10, steps=500, noise_multiplier=2.0
    ... )
    >>> training.user_sampling.mechanism
    PoissonSampled(mechanism=Gaussian(noise_multiplier=2.0), sampling_rate=0.01)
    """

    example_sampling: FederatedParameters
    user_sampling: FederatedParameters


def user_level_parameters(
    *,
    num_users: int,
    num_records: int,
    records_per_user: int,
    batch_size: int,
    users_per_step: int,
    steps: int,
    noise_multiplier: float,
) -> UserLevelParameters:
    """Return the user-level guarantees of DP-SGD with batches of records and with batches of users.

    Parameters
    ----------
    num_users : int
        Number of users, at least 1; public.
    num_records : int
        Number of records of all users together that the training may use, at least 1; public.
    records_per_user : int
        Largest number of records of one user among them, in [1, 1000]; what a user has beyond that is left out before the training.
    batch_size : int
        Expected number of records of a step where records are drawn, in [1, num_records].
    users_per_step : int
        Expected number of users of a step where users are drawn, in [1, num_users].
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
    ...     num_users=10_000, num_records=40_000, records_per_user=5, batch_size=400, users_per_step=100, steps=1000, noise_multiplier=3.0
    ... )
    >>> for way in training:
    ...     print(hs.format_upper(way.accountant().epsilon(1e-6), ".2f"))
    2.53
    0.45
    """
    pairs = (("batch_size", "num_records"), ("users_per_step", "num_users"))
    num_users, num_records, held, batch_size, users_per_step, steps, noise_multiplier = scalars(locals(), pairs)
    if num_records > num_users * held:
        raise ValueError(
            f"num_records must be at most num_users times records_per_user ({num_users * held}), not {num_records}"
        )
    by_example, by_user = batch_size / num_records, users_per_step / num_users
    limit = f"no user has more than {held} records among those drawn from, chosen before the training"
    mixture = MixtureOfGaussians.of_group(noise_multiplier, held, by_example)
    sample = PoissonSampled(Gaussian(noise_multiplier), by_user)
    return UserLevelParameters(
        _drawn("record", by_example, mixture, steps, limit, *_CLIPPED_RECORDS),
        _drawn("user", by_user, sample, steps, *_CLIPPED_USERS),
    )


def _drawn(what: str, rate: float, mechanism: Mechanism, steps: int, *clipped: str) -> FederatedParameters:
    """Return what steps leak in which each record, or user, is drawn with this rate."""
    drawn = f"{steps} steps; in each, every {what} is drawn with probability {rate!r}, independently of all others and afresh"
    return FederatedParameters(mechanism, _UNIT, "add_or_remove", steps, (drawn, *clipped, *_SHARED))


_UNIT = "one user with all its records, against who sees all models"
_CLIPPED_RECORDS = (
    "each record's gradient is clipped for itself, and depends on no other record",
    "a record may have several owners (`bound_owners`) if who owns what is public, and adjacency means that the user's records contribute nothing",
)
_CLIPPED_USERS = (
    "all that a user contributes to a step, by whichever of its records, is clipped as one vector, which depends on no records of others",
    "every record belongs to one user",
)
_SHARED = (
    "the sum of the clipped vectors gets Gaussian noise once, of the multiplier given; a mean divides by the expected number, not by the number drawn",
    "who or what is drawn is secret; the sampling rate is public, and the same with the user and without",
    "trainings are adjacent if one user is added or removed with all its records",
)


class OwnedSelection(NamedTuple):
    """Records of which nobody owns more than so many.

    Attributes
    ----------
    selected : ndarray of int
        Numbers of the records, increasing.
    records_per_user : int
        The largest number of them that somebody owns: the size of the group in `MixtureOfGaussians.of_group`.
    at_most : int
        No selection within the limit has more records than this.

    Examples
    --------
    >>> from hockeystick.training import bound_owners
    >>> bound_owners([["Ada"], ["Ada", "Bo"], ["Bo", "Cy"]], 1)
    OwnedSelection(selected=array([0, 2]), records_per_user=1, at_most=3)
    """

    selected: NDArray[np.int64]
    records_per_user: int
    at_most: int


def bound_owners(owners: Iterable[Iterable[Hashable]], most: int) -> OwnedSelection:
    """Return a selection of records in which every user owns at most so many, each record being owned by any number of users.

    Parameters
    ----------
    owners : iterable of iterables of hashable
        For each record, the ids of its owners; none is legal, and an owner who is named twice counts once.
    most : int
        Largest number of selected records of one owner, at least 1.

    Returns
    -------
    OwnedSelection
        A tuple (selected, records_per_user, at_most).

    Raises
    ------
    ValueError
        If `most` is outside its domain.
    TypeError
        If an argument is of the wrong type, or an id is not hashable.

    Notes
    -----
    Records with fewer owners come first, else the order is as given; each is taken if all its owners have room. Nothing can be added to what is taken. `at_most` is
    `most` for each owner without room, and one for each record taken of which every owner has room: any selection has at most that many
    records with an owner of the first kind, and all other records were taken. A record with w owners takes the place of w others at most,
    so that at least a share 1/w of the largest selection is taken, w being the largest number of owners.

    Ganesh and others 2025 (arXiv 2503.03622) have the setting and a greedy selection. **Who owns what must be public**, the same in adjacent data sets, which
    differ in what the records of one owner say, or in that these contribute nothing. If an owner could vanish from the list of owners,
    others' records would be selected in turn: a chain of records, each shared by two neighbours, changes altogether.

    Examples
    --------
    >>> from hockeystick.training import bound_owners
    >>> e_mails = [("Ada", "Bo"), ("Ada", "Cy"), ("Ada", "Bo", "Cy"), ("Bo",), ("Cy", "Bo")]
    >>> selection = bound_owners(e_mails, 2)
    >>> selection.selected, selection.records_per_user
    (array([0, 1, 3]), 2)
    """
    most = count_scalar("most", most)
    sets = [_distinct(number, given) for number, given in enumerate(owners)]
    held: Counter[Hashable] = Counter()
    taken = []
    for number in sorted(range(len(sets)), key=lambda number: len(sets[number])):
        if all(held[owner] < most for owner in sets[number]):
            held.update(sets[number])
            taken.append(number)
    full = {owner for owner, count in held.items() if count == most}
    free = sum(1 for number in taken if full.isdisjoint(sets[number]))
    at_most = min(len(sets), most * len(full) + free)
    return OwnedSelection(np.array(sorted(taken), dtype=np.int64), max(held.values(), default=0), at_most)


def _distinct(number: int, owners: Iterable[Hashable]) -> Sequence[Hashable]:
    """Return the owners of a record, each once."""
    if isinstance(owners, (str, bytes)) or not isinstance(owners, Iterable):
        raise TypeError(
            f"owners[{number}] must be the ids of the owners of one record, such as a list, not {shown(owners)}"
        )
    try:
        return tuple(dict.fromkeys(owners))
    except TypeError as error:
        raise TypeError(f"owners[{number}] must have hashable ids, not {shown(owners)}") from error
