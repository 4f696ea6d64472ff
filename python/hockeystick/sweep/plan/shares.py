"""Shares of a plan, for jobs that know nothing of each other: which parts of the table each of n jobs computes.

A plan's cost varies along its axes, so a block of neighbouring parts would leave one job with all that is dear. A share
has every n-th part instead, and begins each round of n parts one place further on: where n divides the parts along an
axis, plain steps of n would meet the same values of that axis in every round.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hockeystick.sweep.errors import OutputError, PlanError
from hockeystick.sweep.plan.axes import shorten

_TEXT = re.compile(r"([1-9][0-9]{0,8}) of ([1-9][0-9]{0,8})")


@dataclass(frozen=True)
class Share:
    """The part of a plan that is one job's: the first of n is number 1."""

    number: int
    jobs: int

    def __str__(self) -> str:
        """Return what a manifest and a summary say."""
        return f"{self.number} of {self.jobs}"

    def shards(self, num_shards: int) -> list[int]:
        """Return the shards of this share; two shares differ by one shard at most."""
        return [index for index in range(num_shards) if (index + index // self.jobs) % self.jobs == self.number - 1]


def share_of(shards: object, num_shards: int) -> Share:
    """Return the share that a caller asks for, as (number, jobs)."""
    if not isinstance(shards, tuple | list) or len(shards) != 2 or any(type(value) is not int for value in shards):
        message = f"shards must be two integers, (number, jobs), not {shorten(shards)}"
        raise TypeError(message)
    number, jobs = shards
    if not 1 <= number <= jobs:
        message = f"shards must be (number, jobs) with 1 <= number <= jobs, not {shorten(tuple(shards))}"
        raise ValueError(message)
    if jobs > num_shards:
        message = f"shards must be for at most {num_shards} jobs, the parts of this plan, not {jobs}; a smaller shard_rows makes more"
        raise PlanError(message)
    return Share(number, jobs)


def stored_share(text: object, place: object) -> Share | None:
    """Return the share that the manifest of a place names, None for a run of the whole plan."""
    if text is None:
        return None
    found = _TEXT.fullmatch(text) if isinstance(text, str) else None
    if not found or int(found[1]) > int(found[2]):
        message = f"out must hold a run of a plan or of a share, not {place}: its manifest has share {shorten(text)}"
        raise OutputError(message)
    return Share(int(found[1]), int(found[2]))
