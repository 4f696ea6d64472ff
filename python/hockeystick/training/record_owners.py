"""Records that belong to several users: a selection of them in which nobody has more than so many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import count_scalar
from hockeystick._checks.shown import shown

__all__ = ["OwnedSelection", "bound_owners"]


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
        msg = f"owners[{number}] must be the ids of the owners of one record, such as a list, not {shown(owners)}"
        raise TypeError(msg)
    try:
        return tuple(dict.fromkeys(owners))
    except TypeError as error:
        msg = f"owners[{number}] must have hashable ids, not {shown(owners)}"
        raise TypeError(msg) from error
