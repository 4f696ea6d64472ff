"""The inputs of the front ends, a setting of a training, and the search for those with the smallest bounds on the risk.

They are found without calibrating the noise of those that cannot be among them.
"""

from __future__ import annotations

import decimal
import functools
import heapq
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from hockeystick._checks.arguments import Check
from hockeystick._numeric.printing import format_upper
from hockeystick.isrl.domains import scalars

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["Setting"]

SQUARED = (lambda x: 1e-60 <= x <= 1e60, "lie in [1e-60, 1e60]")  # the risk bounds multiply a few of these
DOMAINS = dict.fromkeys(("lipschitz", "diameter", "smoothness"), SQUARED)
OPTIONAL = {  # left out, as large as they may be
    "silos_per_round": "num_silos",
    "clients_per_round": "num_clients",
    "max_batch_size": "num_records",
    "batch_size": "num_records",
}
Inputs = TypeVar("Inputs", bound="DataclassInstance")


def checked_inputs(kind: type[Inputs], arguments: Mapping[str, Any], **domains: Check) -> Inputs:
    """Check the arguments of a dataclass's fields in their order and fill in what was left out; there may be other arguments."""
    given = {field.name: arguments[field.name] for field in fields(kind)}
    for name, limit in OPTIONAL.items():
        if name in given and given[name] is None:
            given[name] = given[limit]
    return kind(*scalars(given, (*OPTIONAL.items(), ("strong_convexity", "smoothness")), **(domains or DOMAINS)))


@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


class Arguments:
    """Checked inputs, by the names that functions have for them."""

    def of(self, function: Callable[..., Any], **others: Any) -> Any:
        """Call a function with those of the inputs that it takes, and with others, which come first."""
        known = {name: value for name, value in vars(self).items() if name in _parameters(function)}
        return function(**known | others)


@dataclass(frozen=True)
class Problem(Arguments):
    """The checked inputs of a plan."""

    num_silos: int
    num_records: int
    dimension: int
    lipschitz: float
    diameter: float
    smoothness: float
    strong_convexity: float
    epsilon: float
    delta: float
    max_rounds: int
    silos_per_round: int
    max_batch_size: int

    @property
    def gap(self) -> float:
        """L D, which no excess risk exceeds."""
        return self.lipschitz * self.diameter


Trust: TypeAlias = Literal["central", "inter-silo", "shuffle", "last-iterate"]
TRUST: tuple[Trust, ...] = get_args(Trust)
SEEN = {  # trust model -> against whom it protects
    "central": "who sees every round's model; the server is trusted with records",
    "last-iterate": "who sees the last model only; the aggregator is trusted",
    "inter-silo": "everybody but the record's silo, the server included",
    "shuffle": "who sees the shuffled messages",
    "local": "everybody, the record's own silo included; each record is a silo of its own",
}
DIGITS = 4  # of the noise, rounded up, so that what is printed is what is certified


class Setting(NamedTuple):
    """One feasible setting.

    Attributes
    ----------
    noise_std : float
        Standard deviation per coordinate of the noise: on each silo's mean gradient, or under "central" on that of the pooled
        batch.
    rounds : int
        Number of rounds T.
    batch_size : int
        Records K of each participating silo in a round; under "central" of all together.
    silos_per_round : int
        Participating silos m.
    learning_rate : float
        Step size; under "last-iterate" that of the first round, 1/strong_convexity, which falls as 1/t.
    epsilon : float
        Certified epsilon at the plan's delta.
    risk_bound : float
        Bound on the excess risk, at most L D, which every model of the ball meets.
    """

    noise_std: float
    rounds: int
    batch_size: int
    silos_per_round: int
    learning_rate: float
    epsilon: float
    risk_bound: float


HEAD = f"{'noise std':>10} {'rounds':>8} {'batch':>8} {'silos':>8} {'step':>10} {'epsilon':>9}"
BOUND = f" {'risk bound':>11}"


def cells(setting: Setting) -> str:
    """Return the columns of `HEAD` and `BOUND`, epsilon and the bound rounded up; nothing for a bound that is not known."""
    step = "-" if math.isnan(setting.learning_rate) else f"{setting.learning_rate:.3g}"
    bound = "" if math.isnan(setting.risk_bound) else " " + format_upper(setting.risk_bound, "11.4g")
    return (
        f"{setting.noise_std:>10.4g} {setting.rounds:>8} {setting.batch_size:>8} {setting.silos_per_round:>8} {step:>10} "
        f"{format_upper(setting.epsilon, '9.5g')}{bound}"
    )


def without_nan(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same for JSON, None where a number is not known."""
    return {name: None if isinstance(x, float) and math.isnan(x) else x for name, x in row.items()}


def rounded_up(value: float) -> float:
    """Return a number of few digits that is not below the value."""
    context = decimal.Context(prec=DIGITS, rounding=decimal.ROUND_CEILING)
    rounded = float(context.create_decimal_from_float(value))
    return rounded if rounded >= value else math.nextafter(rounded, math.inf)


class Candidate(NamedTuple):
    """A setting whose noise is still to be found, and a bound that its risk bound cannot undercut, whatever the noise."""

    least_risk: float
    evaluate: Callable[[], Setting]


Report: TypeAlias = Callable[[int, int], None]  # told after each candidate: how many are done, and of how many


class Found(NamedTuple):
    """The best setting of each group, by its number, the smallest risk bound first; and how many candidates had to be calibrated."""

    found: list[tuple[int, Setting]]
    calibrated: int


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
    for done, (least, number, place) in enumerate(order, 1):
        listed = heapq.nsmallest(most, (risk for risk, _, _ in best.values()))
        to_beat = [listed[-1]] if len(listed) == most else []  # else the list has room, and the group no setting yet
        to_beat += [best[number][0]] if number in best else []
        if not any(least > risk for risk in to_beat):
            setting = groups[number][place].evaluate()
            calibrated += 1
            rival = (setting.risk_bound, place, setting)
            best[number] = min(best.get(number, rival), rival, key=lambda one: one[:2])
        if report is not None:
            report(done, len(order))
    ranked = sorted((risk, number) for number, (risk, _, _) in best.items())[:most]
    return Found([(number, best[number][2]) for _, number in ranked], calibrated)
