"""Time every mechanism beside dp_accounting and print the ratios: python bench/mechanisms.py [--rounds N].

The question is epsilon at delta = 1e-6 after a hundred steps, asked cold: the noise is new each time. Ours and dp_accounting's
PLDAccountant with its default interval, where it has the event, take turns in one process; medians of processor time. Before
anything is timed the answers are compared: the peer's is an upper bound, and ours is that or less, by at most 2 %, but for the width of a bracket.
A new mechanism needs a line in MECHANISMS.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import peers
import ratios

import hockeystick as hs
from hockeystick import mechanisms, selection
from hockeystick.mechanisms.base import Adjacency

STEPS, DELTA, ALLOWED = 100, 1e-6, 0.02


class Case(NamedTuple):
    """A mechanism whose noise is multiplied by a number, the adjacency, and the peer's event if it has one."""

    ours: Callable[[float], mechanisms.Mechanism]
    peer: Callable[[Any, float], Any] | None = None  # given the module dp_event
    adjacency: Adjacency = "add_or_remove"


def sampled_pair(x: float) -> hs.Discrete:
    return hs.Discrete([0.5 + 0.003 / x, 0.5 - 0.003 / x], [0.5, 0.5])


MECHANISMS: dict[str, Case] = {
    "Gaussian": Case(lambda x: hs.Gaussian(20 * x), lambda e, x: e.GaussianDpEvent(20 * x)),
    "Gaussian, replace": Case(lambda x: hs.Gaussian(20 * x), lambda e, x: e.GaussianDpEvent(20 * x), "replace"),
    "Laplace": Case(lambda x: hs.Laplace(20 * x), lambda e, x: e.LaplaceDpEvent(20 * x)),
    "DiscreteGaussian": Case(lambda x: hs.DiscreteGaussian(20 * x)),
    "DiscreteGaussianVector": Case(lambda x: hs.DiscreteGaussianVector(40 * x, 2.0, 1000)),
    "DistributedDiscreteGaussian": Case(lambda x: hs.DistributedDiscreteGaussian(2 * x, 100, 1.0, 1000)),
    "Skellam": Case(lambda x: hs.Skellam(400 * x, 1.0, 1)),
    "DiscreteLaplace": Case(lambda x: hs.DiscreteLaplace(0.05 / x), lambda e, x: e.DiscreteLaplaceDpEvent(0.05 / x, 1)),
    "RandomizedResponse": Case(
        lambda x: hs.RandomizedResponse(0.95 * x, 4), None, "replace"
    ),  # the peer's ignores the count
    "ApproximateDP": Case(lambda x: hs.ApproximateDP(0.05 / x, 1e-9)),
    "Discrete": Case(sampled_pair),
    "DiscretePairs": Case(lambda x: hs.DiscretePairs(sampled_pair(x), hs.Discrete([0.502, 0.498], [0.5, 0.5]))),
    "Composed": Case(lambda x: hs.Composed([(hs.Gaussian(20 * x), 1), (hs.Laplace(40 * x), 1)])),
    "ExponentialMechanism": Case(lambda x: hs.ExponentialMechanism(0.05 / x)),
    "PermuteAndFlip": Case(lambda x: hs.PermuteAndFlip(0.05 / x)),
    "PrivacyProfile": Case(lambda x: hs.PrivacyProfile([0.0, 0.05 / x], [0.03, 1e-9])),
    "AboveThreshold": Case(lambda x: selection.AboveThreshold(100 * x, 200 * x)),
    "GaussianAboveThreshold": Case(lambda x: selection.GaussianAboveThreshold(100 * x, 200 * x, 1000)),
    "GaussianNoisyMaximum": Case(lambda x: selection.GaussianNoisyMaximum(100 * x, 1000)),
    "LaplaceNoisyMaximum": Case(lambda x: selection.LaplaceNoisyMaximum(100 * x)),
    "OptimalPartitions": Case(lambda x: selection.OptimalPartitions(0.05 / x, 1e-9)),
    "ThresholdedPartitions": Case(lambda x: selection.ThresholdedPartitions(hs.Laplace(20 * x), 500 * x)),
    "RandomAllocation": Case(lambda x: hs.RandomAllocation(hs.Gaussian(4 * x), 100)),
    "RandomAllocation, Laplace": Case(lambda x: hs.RandomAllocation(hs.Laplace(4 * x), 100)),
    "RandomAllocation, replace": Case(lambda x: hs.RandomAllocation(hs.Gaussian(4 * x), 100), None, "replace"),
    "Shuffled": Case(lambda x: hs.Shuffled(0.5 / x, 10_000), None, "replace"),
    "ZeroConcentratedDP": Case(lambda x: hs.ZeroConcentratedDP(1e-3 / x)),
    "Staircase": Case(lambda x: hs.Staircase(0.05 / x)),
    "TradeOff": Case(lambda x: hs.TradeOff([0.0, 0.48, 1.0], [1.0, 0.5 - 0.01 / x, 0.0])),
    "TruncatedLaplace": Case(lambda x: hs.TruncatedLaplace(20 * x, 400 * x)),
    "RenyiDP": Case(lambda x: hs.RenyiDP([2.0, 8.0, 32.0], [1e-3 / x, 4e-3 / x, 16e-3 / x])),
    "PrivateSelection": Case(lambda x: hs.PrivateSelection(hs.Gaussian(200 * x), 1, 5.0)),
    "MixtureOfGaussians": Case(
        lambda x: hs.MixtureOfGaussians(4 * x, [0, 1, 2], [0.8, 0.15, 0.05]),
        lambda e, x: e.MixtureOfGaussiansDpEvent(4 * x, [0, 1, 2], [0.8, 0.15, 0.05]),
    ),
    "PoissonSampled, Gaussian": Case(
        lambda x: hs.PoissonSampled(hs.Gaussian(x), 0.01),
        lambda e, x: e.PoissonSampledDpEvent(0.01, e.GaussianDpEvent(x)),
    ),
    "PoissonSampled, Composed": Case(
        lambda x: hs.PoissonSampled(hs.Composed([(hs.Gaussian(2 * x), 1), (hs.Laplace(4 * x), 1)]), 0.01)
    ),
    "PoissonSampled, Gaussian, replace": Case(
        lambda x: hs.PoissonSampled(hs.Gaussian(x), 0.01),
        lambda e, x: e.PoissonSampledDpEvent(0.01, e.GaussianDpEvent(x)),
        "replace",
    ),
    "PoissonSampled, Laplace": Case(
        lambda x: hs.PoissonSampled(hs.Laplace(x), 0.01),
        lambda e, x: e.PoissonSampledDpEvent(0.01, e.LaplaceDpEvent(x)),
    ),
    "FixedSizeSampled": Case(
        lambda x: hs.FixedSizeSampled(hs.Gaussian(2 * x), 1000, 10, replacement=False), None, "replace"
    ),
    "TruncatedPoissonSampled": Case(
        lambda x: hs.TruncatedPoissonSampled(hs.Gaussian(x), 1000, 0.01, 30),
        lambda e, x: e.TruncatedSubsampledGaussianDpEvent(1000, 0.01, 30, x),
    ),
    "TruncatedPoissonSampled, zeroed out": Case(
        lambda x: hs.TruncatedPoissonSampled(hs.Gaussian(x), 1000, 0.01, 30, zeroed_out=True)
    ),
}


def ours(case: Case) -> Callable[[float], float]:
    """Return our answer for a relative change of the noise."""
    return lambda nudge: hs.Accountant(case.adjacency).compose(case.ours(1 + nudge), STEPS).epsilon(DELTA)


def theirs(case: Case) -> Callable[[float], float]:
    """Return dp_accounting's answer for a relative change of the noise."""
    import dp_accounting  # noqa: PLC0415, a peer
    from dp_accounting.pld import PLDAccountant  # noqa: PLC0415

    relations = dp_accounting.NeighboringRelation
    relation = relations.REPLACE_ONE if case.adjacency == "replace" else relations.ADD_OR_REMOVE_ONE
    event = case.peer
    assert event is not None
    return lambda nudge: (
        PLDAccountant(relation).compose(event(dp_accounting.dp_event, 1 + nudge), STEPS).get_epsilon(DELTA)
    )


def measure(names: list[str], rounds: int) -> Iterator[str]:
    """Return a line of the table for each mechanism."""
    peer_is_there = importlib.util.find_spec("dp_accounting") is not None
    for name in names:
        ratios.log(name)
        case = MECHANISMS[name]
        calls = {"ours": ours(case)} | ({"peer": theirs(case)} if case.peer is not None and peer_is_there else {})
        answers = peers.take_turns(calls, rounds)
        mine, other = answers["ours"], answers.get("peer")
        if other and not (1 - ALLOWED) * other["value"] <= mine["value"] <= (1 + peers.OUR_ERROR) * other["value"]:
            message = f"{name}: {mine['value']} against {other['value']}"
            raise ValueError(message)
        peer = f"{other['value']:.4f} | {peers.duration(other['median'])}" if other else " | "
        ratio = ratios.ratio(other["median"], mine["median"]) if other else ""
        yield f"| {name} | {hs.format_upper(mine['value'], '.4f')} | {peers.duration(mine['median'])} | {peer} | {ratio} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="turns that everybody gets (default: 5)")
    parser.add_argument("--only", choices=list(MECHANISMS), nargs="*", help="not all mechanisms")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # the peer's
    sys.stdout.write(
        "| mechanism | epsilon | time | dp_accounting's epsilon | its time | ratio |\n|---|--:|--:|--:|--:|--:|\n"
    )
    for line in measure(arguments.only or list(MECHANISMS), arguments.rounds):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
