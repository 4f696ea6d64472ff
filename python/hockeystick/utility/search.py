"""The settings with the smallest risk bounds, found without calibrating those that cannot be among them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from hockeystick.utility.aggregator_settings import aggregated
from hockeystick.utility.settings import Candidate, Problem, Setting, Trust, batches, pool_of, shuffled

__all__ = ["Found", "Report", "candidates_of", "smallest"]

Report: TypeAlias = Callable[[int, int], None]  # told after each candidate: how many are done, and of how many


class Found(NamedTuple):
    """The best setting of each group, by its number, the smallest risk bound first; and how many candidates had to be calibrated."""

    found: list[tuple[int, Setting]]
    calibrated: int


def candidates_of(trust: Trust, problem: Problem) -> Iterable[Candidate]:
    """Return what a trust model tries."""
    if trust == "last-iterate":
        return aggregated(problem)
    return shuffled(problem) if trust == "shuffle" else batches(problem, pool_of(trust, problem))


def smallest(groups: Sequence[Sequence[Candidate]], most: int, report: Report | None = None) -> Found:
    """Return the best setting of each of the best `most` groups of candidates, the smallest risk bound first.

    Candidates are taken in the order of what their risk cannot undercut. One is left out where its group has a setting that is
    as good, or where `most` groups have better ones: either way the answer is that of calibrating all.
    """
    order = sorted(
        (candidate.least_risk, number, place)
        for number, group in enumerate(groups)
        for place, candidate in enumerate(group)
    )
    best: dict[int, tuple[float, int, Setting]] = {}  # with the place, by which equal ones are ordered
    calibrated = 0
    for done, (least, number, place) in enumerate(order):
        limit = heapq.nsmallest(most, (risk for risk, _, _ in best.values()))
        hopeless = len(limit) == most and least > limit[-1]
        if not hopeless and not (number in best and least > best[number][0]):
            setting = groups[number][place].evaluate()
            calibrated += 1
            rival = (setting.risk_bound, place, setting)
            best[number] = min(best.get(number, rival), rival, key=lambda one: one[:2])
        if report is not None:
            report(done + 1, len(order))
    ranked = sorted((risk, number) for number, (risk, _, _) in best.items())[:most]
    return Found([(number, best[number][2]) for _, number in ranked], calibrated)
