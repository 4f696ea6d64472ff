"""Selections of records with several owners, against all selections of small sets."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.training import bound_owners

SMALL = st.lists(st.sets(st.integers(0, 5), max_size=3), max_size=9)


def most_owned(owners, selected):
    """Return how many of the records selected the owner of the most has."""
    return max(Counter(owner for number in selected for owner in owners[number]).values(), default=0)


@given(SMALL, st.integers(1, 3))
def test_against_all_selections(owners, most):
    """The selection keeps the limit, nothing can be added, and the largest of all selections is within the two bounds."""
    found = bound_owners(owners, most)
    selected = found.selected.tolist()
    assert most_owned(owners, selected) == found.records_per_user <= most
    others = set(range(len(owners))) - set(selected)
    assert all(most_owned(owners, [*selected, number]) > most for number in others)
    largest = max(
        len(chosen)
        for size in range(len(owners) + 1)
        for chosen in itertools.combinations(range(len(owners)), size)
        if most_owned(owners, chosen) <= most
    )
    assert len(selected) <= largest <= found.at_most
    assert len(selected) * max([1, *map(len, owners)]) >= largest


def test_one_owner_each_is_the_best():
    """Where every record has one owner, each has its first records, and no selection has more."""
    owners = [[number % 7] for number in range(50)]
    found = bound_owners(owners, 3)
    assert found.selected.tolist() == list(range(21))
    assert found.at_most == 21


def test_a_list_of_owners_that_is_not_public_is_not_stable():
    """In a chain of shared records, another set is selected throughout if the first owner is not there."""
    chain = [(number, number + 1) for number in range(100)]
    with_first = set(bound_owners(chain, 1).selected.tolist())
    without = {number + 1 for number in bound_owners(chain[1:], 1).selected.tolist()}
    assert len(with_first) == len(without) == 50
    assert not with_first & without


def test_ends():
    """Nothing, records of nobody and owners named twice."""
    assert bound_owners([], 1).selected.size == 0
    assert bound_owners([[], []], 1)[1:] == (0, 2)
    assert bound_owners([["a", "a"]], 1).selected.tolist() == [0]
    many = np.random.default_rng(0).integers(0, 1000, (20_000, 2))
    found = bound_owners(many, 10)
    assert found.records_per_user == 10
    assert 4000 < found.selected.size <= found.at_most <= 10_000


REJECTED = {
    "no room": (ValueError, "most must be an integer", lambda: bound_owners([["a"]], 0)),
    "a name": (TypeError, r"owners\[1\] must be the ids", lambda: bound_owners([["a"], "Ada"], 1)),
    "a number": (TypeError, r"owners\[0\] must be the ids", lambda: bound_owners([1, 2], 1)),
    "lists": (TypeError, r"owners\[0\] must have hashable", lambda: bound_owners([[["a"]]], 1)),
}


@pytest.mark.parametrize("reason", REJECTED)
def test_rejected(reason):
    """What cannot be meant is refused in words."""
    error, words, call = REJECTED[reason]
    with pytest.raises(error, match=words):
        call()
