"""How a number was found, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hockeystick.accounting.engines import Answer, bracket
from hockeystick.accounting.pld import Bracket
from hockeystick.mechanisms import (
    Adjacency,
    ApproximateDP,
    Composed,
    Discrete,
    DiscretePairs,
    ExponentialMechanism,
    FixedSizeSampled,
    Mechanism,
    MixtureOfGaussians,
    PermuteAndFlip,
    PoissonSampled,
    PrivacyProfile,
    PrivateSelection,
    RandomAllocation,
    RenyiDP,
    Shuffled,
    TruncatedPoissonSampled,
    ZeroConcentratedDP,
)

_ADJACENT = {
    "add_or_remove": "adjacent data sets differ by one record, added or removed",
    "replace": "adjacent data sets differ by one record, replaced; sensitivities are twice those of adding or removing",
}


@dataclass(frozen=True)
class Explanation:
    """How a number was found.

    Attributes
    ----------
    bracket : Bracket
        The number.
    method : str
        How the upper end was found.
    direction : str
        Which direction has the larger upper end: "remove" or "add"; "forward" or "reverse" of the pair under
        replacement; "both" where they are one.
    directions : mapping
        The bracket of each direction that was computed.
    shares : mapping
        Relative errors of delta in the winning direction, by origin ("alias", "truncation", "rounding", "smoothing",
        "missing"), as far as the engine tells them apart.
    assumptions : tuple of str
        What must be true of the algorithm for the number to hold.
    """

    bracket: Bracket
    method: str
    direction: str
    directions: Mapping[str, Bracket]
    shares: Mapping[str, float]
    assumptions: tuple[str, ...]

    def __str__(self) -> str:
        """Return a line for each."""
        shares = ", ".join(f"{name} {share:.1e}" for name, share in self.shares.items())
        lines = [
            f"between {self.bracket.lower!r} and {self.bracket.upper!r}, {self.bracket.status}",
            f"method: {self.method}",
            f"direction: {self.direction}",
            f"shares of the error: {shares or 'not told apart'}",
            *(f"assumes: {assumption}" for assumption in self.assumptions),
        ]
        return "\n".join(lines)


def explanation(ledger: Mapping[Mechanism, int], adjacency: Adjacency, found: list[Answer], status: str) -> Explanation:
    """Return what the answers say."""
    winner = found[0]
    directions = {answer.direction: Bracket(*answer[:3], status) for answer in found}
    return Explanation(
        bracket(found, status),
        winner.method,
        winner.direction,
        MappingProxyType(directions),
        MappingProxyType(dict(winner.shares)),
        tuple(dict.fromkeys(_assumptions(ledger, adjacency))),
    )


def _assumptions(ledger: Mapping[Mechanism, int], adjacency: Adjacency) -> Iterator[str]:
    yield "the sequence of mechanisms was fixed in advance"
    yield _ADJACENT[adjacency]
    for mechanism in ledger:
        for part in mechanism._within():
            yield from _of_mechanism(part)


def _of_mechanism(mechanism: Mechanism) -> Iterator[str]:
    name = type(mechanism).__name__
    if isinstance(mechanism, (PoissonSampled, TruncatedPoissonSampled, FixedSizeSampled, RandomAllocation)):
        yield from _of_sampler(mechanism)
    if isinstance(mechanism, MixtureOfGaussians):
        yield "mixture: every step draws its choice of sensitivity anew, as the probabilities say, and the choice is secret"
    if isinstance(mechanism, ExponentialMechanism):
        yield "exponential mechanism: no score moves by more than the sensitivity used; the bracket is that of its dominating pair"
    if isinstance(mechanism, PermuteAndFlip):
        yield "permute-and-flip: no score moves by more than the sensitivity used; the pair is that of all epsilon-DP mechanisms"
    if isinstance(mechanism, Shuffled):
        yield (
            "shuffling: each user sends one report by a randomiser of its own coins, every report is "
            f"{mechanism.epsilon0:g}-locally private, and only their multiset is seen"
        )
    if isinstance(mechanism, PrivateSelection):
        yield "private selection: the number of runs is secret and drawn anew, runs are independent, only the best one is released"
    if isinstance(mechanism, (PrivacyProfile, RenyiDP, ZeroConcentratedDP)):
        yield f"the numbers of {name} are upper bounds for this adjacency"
    if isinstance(mechanism, PrivacyProfile) and mechanism.status != "certified":
        yield "a privacy profile is an estimate by quadrature, with no proof of its error"
    if isinstance(mechanism, (ApproximateDP, Discrete, DiscretePairs)):
        yield f"the guarantee of {name} holds for this adjacency"


def _of_sampler(mechanism: Mechanism) -> Iterator[str]:
    if isinstance(mechanism, PoissonSampled):
        yield "Poisson sampling: every step draws its own sample, each record independently, and the sample is secret"
    if isinstance(mechanism, (PoissonSampled, FixedSizeSampled)) and isinstance(mechanism.mechanism, Composed):
        yield "all releases of a step that is composed are of one and the same sample"
    if isinstance(mechanism, TruncatedPoissonSampled):
        yield (
            "truncated Poisson sampling: every step draws its own sample, each record independently, of which a uniform "
            f"subset is kept if it has more than {mechanism.max_batch_size}; which is secret; a data set has at most "
            f"{mechanism.dataset_size} records"
        )
    if isinstance(mechanism, FixedSizeSampled):
        how = (
            "draws records independently, with replacement"
            if mechanism.replacement
            else "draws its own uniform sample without replacement"
        )
        yield f"fixed-size sampling: every step {how}, which is secret, of {mechanism.dataset_size} records"
    if isinstance(mechanism, RandomAllocation):
        yield (
            f"random allocation: in every epoch each record takes part in {mechanism.num_selected} of the "
            f"{mechanism.num_steps} steps, drawn uniformly and independently of all other records; the choice is secret"
        )
