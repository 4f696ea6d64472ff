"""Which engine answers for a composition, in one place.

The first that applies: nothing composed; one step (all Gaussian steps are one), by its exact formula; an epsilon beyond the
largest loss; the contour engine; discretised privacy losses. Each direction is answered alone, the larger counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import hockeystick._core as core
from hockeystick._numeric.rounding import DOWN, FUNCTIONS, GAUSSIAN_TAIL, UP
from hockeystick.accounting.bracket import TOLERANCE, Bracket, describe
from hockeystick.accounting.composition import Composition as Composition  # noqa: PLC0414, asked for here
from hockeystick.accounting.renyi import conversion
from hockeystick.mechanisms.base import Entry

Engine: TypeAlias = Literal["auto", "contour", "pld"]
ENGINES = ("auto", "contour", "pld")

Ask: TypeAlias = "Callable[[list[Entry], bool, Question], Answer | None]"

SMALLEST_EPSILON_WIDTH = 1e-9
SMALLEST_NORMAL = 1e-300  # above it deltas have all their digits
NEARLY_ONE = 1 + 1e-9  # far more than the rounding of tails
# The shift between a Gaussian step's two laws without the sampling, over its first parameter: mixing is jointly convex.
UNSAMPLED = {"gaussian": 1.0, "fixed_size_gaussian": 1.0, "replaced_gaussian": 2.0}


class Question(NamedTuple):
    """Delta at an epsilon, or epsilon at a delta."""

    for_epsilon: bool
    value: float

    @property
    def widest(self) -> float:
        """The largest upper end that says nothing."""
        return math.inf if self.for_epsilon else 1.0


class Answer(NamedTuple):
    """What one engine found for one direction."""

    lower: float
    upper: float
    method: str
    shares: Mapping[str, float]  # relative errors of delta by their origin, where the engine tells
    direction: str = ""
    log_delta: float | None = None  # upper end of log delta, where the engine knows it below the doubles

    def narrow_enough(self, question: Question) -> bool:
        """Say whether a second engine is not worth its time."""
        least = SMALLEST_EPSILON_WIDTH if question.for_epsilon else 0.0
        return self.upper < math.inf and self.upper - self.lower <= max(TOLERANCE * self.upper, least)


def answers(composition: Composition, question: Question, engine: Engine, *, upper_only: bool) -> list[Answer]:
    """Return what is known for each direction, the largest upper end first; lower ends are 0 if not asked for."""
    if not composition.entries(upper=True):
        return [Answer(0.0, 0.0, "nothing composed", {}, "both")]
    if any(kind == "renyi" for kind, *_ in composition.others):
        return [_by_renyi(composition, question, engine)]
    found: list[Answer] = []
    for name, forward in composition.directions().items():
        known = max((answer.upper for answer in found), default=0.0)
        answer = _one_direction(composition, forward, question, engine, known, upper_only=upper_only)
        found.append(answer._replace(direction=name, lower=0.0 if upper_only else answer.lower))
    return sorted(found, key=lambda answer: -answer.upper)


def upper_end(composition: Composition, question: Question, engine: Engine) -> float:
    """Return the larger upper end of all directions, if it is certified."""
    require_certified(composition)
    return answers(composition, question, engine, upper_only=True)[0].upper


def require_certified(composition: Composition) -> None:
    """Raise ValueError if a mechanism is only estimated."""
    if composition.status != "certified":
        msg = "a mechanism here is only estimated, so that no bound can be certified; delta_bracket, epsilon_bracket and explain answer"
        raise ValueError(msg)


def _by_renyi(composition: Composition, question: Question, engine: Engine) -> Answer:
    """Convert the sum of the Renyi divergences, all that is known of some mechanism."""
    if engine != "auto":
        msg = f"engine={engine!r} has no answer where a mechanism is known by its Renyi divergences alone; use engine='auto'"
        raise ValueError(msg)
    upper, order = conversion.best(composition.ledger, composition.adjacency, *question)
    return Answer(0.0, upper, f"Renyi divergence of order {order:.4g}", {}, "both")


def bracket(found: list[Answer], status: str) -> Bracket:
    """Return the larger of all directions."""
    lower, upper = max(answer.lower for answer in found), found[0].upper
    if not 0 <= lower <= upper:
        msg = f"the bracket [{lower}, {upper}] is empty. This is a bug in hockeystick."
        raise RuntimeError(msg)
    return Bracket(lower, upper, found[0].method, status)


def _one_direction(
    composition: Composition, forward: bool, question: Question, engine: Engine, known: float, *, upper_only: bool
) -> Answer:
    """Answer for a direction; roughly, if that shows it to be no larger than what is `known` of the other one."""
    exact = None
    if engine != "pld":
        exact = _exact(composition, forward, question, one_step=engine == "auto", upper_only=upper_only)
    if exact is not None:
        return exact
    best = Answer(0.0, question.widest, "none", {})
    if engine in ("auto", "contour"):
        best = _better(best, _both_ends(_contour, composition, forward, question, upper_only=upper_only))
    for pld in (_rough_pld, _pld) if known > 0.0 else (_pld,):
        if engine != "contour" and best.upper > known and not best.narrow_enough(question):
            best = _better(best, _both_ends(pld, composition, forward, question, upper_only=upper_only))
    if engine == "auto" and not best.narrow_enough(question):
        best = _better(best, _unsampled(composition, forward, question))
        best = _better(best, _near_the_largest_loss(composition, forward, question))
        best = _better(best, _at_zero(composition, forward, question))
    if engine == "contour" and best.method == "none":
        msg = f"engine='contour' has no answer for this composition at {question.value}; use engine='auto'"
        raise ValueError(msg)
    return best


def _better(one: Answer, other: Answer | None) -> Answer:
    """Return the intersection of two brackets, under the name of the better upper end."""
    if other is None:
        return one
    winner = other if other.upper <= one.upper else one
    return winner._replace(lower=max(one.lower, other.lower))


def _both_ends(
    ask: Ask, composition: Composition, forward: bool, question: Question, *, upper_only: bool
) -> Answer | None:
    """Ask an engine; a second time for the lower end where rounding made the upper end's steps leak more than the true ones."""
    above = ask(composition.entries(upper=True), forward, question)
    if above is None or upper_only:
        return above
    if composition.is_exact:
        return above
    entries = composition.entries(upper=False)
    below = ask(entries, forward, question) if entries else None
    return above._replace(lower=0.0 if below is None else min(below.lower, above.upper))


def _contour(entries: list[Entry], forward: bool, question: Question) -> Answer | None:
    """Ask the contour engine; None where it does not apply."""
    found = core.contour_bracket(entries, forward, *question)
    if found is None:
        return None
    shares = {name: found[name] for name in ("alias", "truncation", "rounding", "smoothing", "missing")}
    where = f"in {found['slices']} slices of the losses" if found["slices"] else f"at tilt {found['tilt']:.3g}"
    method = f"contour, {found['nodes']} nodes {where}"
    if found["nodes"] == 0:
        method = f"Chernoff's bound at tilt {found['tilt']:.3g}" if found["tilt"] else "beyond the largest loss"
    log_delta = None if question.for_epsilon else found["log_upper"]
    return Answer(found["lower"], found["upper"], method, shares, log_delta=log_delta)


def _rough_pld(entries: list[Entry], forward: bool, question: Question) -> Answer:
    """Ask for a bracket of any width."""
    return _pld(entries, forward, question, 1.0)


def _pld(entries: list[Entry], forward: bool, question: Question, tolerance: float = TOLERANCE) -> Answer:
    """Ask the engine of discretised privacy losses, which always answers."""
    lower, upper, interval, coarsened = core.pld_bracket(
        entries, forward, question.for_epsilon, question.value, 0.0, tolerance
    )[:4]
    return Answer(lower, upper, describe(upper, interval, coarsened=coarsened), {})


def _exact(
    composition: Composition, forward: bool, question: Question, *, one_step: bool, upper_only: bool
) -> Answer | None:
    """Return the answer of a closed form, or None if there is none."""
    entries = composition.entries(upper=True)
    if one_step and len(entries) == 1 and entries[0][3] == 1.0:
        exact = upper_only or composition.is_exact
        step = "exact formula of one step" if exact else "formula of one step, by pairs above and below"
        formula = step if composition.others else "gaussian closed form"
        above = core.one_step_bracket(*entries[0][:3], forward, *question)[1]
        below = [] if upper_only else composition.entries(upper=False)
        lower = min((core.one_step_bracket(*entry[:3], forward, *question)[0] for entry in below), default=0.0)
        return Answer(lower, above, formula, {"rounding" if exact else "pairs": _width(lower, above)})
    most, infinite = _limits(entries, forward)
    if not upper_only and not composition.is_exact:
        least, surely = _limits(composition.entries(upper=False), forward)
        most, infinite = (min(most[0], least[0]), most[1]), (min(infinite[0], surely[0]), infinite[1])
    if question.for_epsilon:
        if question.value < infinite[0]:
            return Answer(math.inf, math.inf, "mass of infinite loss", {})
        if question.value == 0.0:
            return Answer(max(most[0], 0.0), math.inf if infinite[1] > 0.0 else max(most[1], 0.0), "largest loss", {})
        if question.value >= _total_variation(entries, forward):
            return Answer(0.0, 0.0, "total variation", {})
    elif question.value > most[1] or question.value == math.inf:
        return Answer(*infinite, "beyond the largest loss", {})
    return None


def _unsampled(composition: Composition, forward: bool, question: Question) -> Answer | None:
    """Return the closed form of Gaussian steps as if none were sampled: sampling is a post-processing of that pair."""
    entries = composition.entries(upper=True)
    if any(kind not in UNSAMPLED for kind, _, _, _ in entries):
        return None
    mu = (
        math.hypot(*(math.sqrt(count) * UNSAMPLED[kind] * parameters[0] for kind, parameters, _, count in entries)) * UP
    )
    upper = core.one_step_bracket("gaussian", [mu], 1.0, forward, *question)[1]
    return Answer(0.0, upper, "gaussian closed form, without the sampling", {})


def _near_the_largest_loss(composition: Composition, forward: bool, question: Question) -> Answer | None:
    """Bound delta just below the largest loss, where no grid is fine enough: each step must be as near to its own."""
    entries = composition.entries(upper=True)
    most, infinite = _limits(entries, forward)
    if question.for_epsilon or not question.value <= most[1] < math.inf:
        return None
    gap = (most[1] - question.value) * UP
    near = 1.0
    for kind, parameters, rate, count in entries:
        highest = core.one_step_limits(kind, parameters, rate, forward)[0]
        above = core.one_step_masses(kind, parameters, rate, forward, highest - gap - abs(highest) * (UP - 1))[1]
        near *= min(above * NEARLY_ONE, 1.0) ** count
    return Answer(0.0, min(-math.expm1(-gap) * near * NEARLY_ONE + infinite[1], 1.0), "near the largest loss", {})


def _at_zero(composition: Composition, forward: bool, question: Question) -> Answer | None:
    """Bound delta by its largest value, where a grid has no digits left."""
    if question.for_epsilon:
        return None
    return Answer(0.0, _total_variation(composition.entries(upper=True), forward), "total variation", {})


def _width(lower: float, upper: float) -> float:
    return 0.0 if lower == upper else (upper - lower) / upper


def _limits(entries: list[Entry], forward: bool) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ends of the sum of the largest finite losses, and of the mass with an infinite one."""
    each = [(*core.one_step_limits(*entry[:3], forward), entry[3]) for entry in entries]
    if any(highest == math.inf for _, highest, _, _, _ in each):
        most = (math.inf, math.inf)
    else:
        error = math.fsum(abs(upper) * count for _, upper, _, _, count in each) * (UP - 1)
        low, high = (math.fsum(limits[i] * limits[4] for limits in each) for i in (0, 1))
        most = (low - error, high + error)
    finite = [_log_product([(limits[i], limits[4]) for limits in each]) for i in (2, 3)]
    return most, (max(0.0, -math.expm1(finite[0]) * DOWN), min(0.0 - math.expm1(finite[1]) * UP, 1.0))


def _total_variation(entries: list[Entry], forward: bool) -> float:
    """Return an upper bound of delta(0): one less the product of what each step's total variation lacks to one."""
    each = [(core.one_step_bracket(*entry[:3], forward, False, 0.0)[1], entry[3]) for entry in entries]
    return min(-math.expm1(_log_product(each)) * UP, 1.0)


def _log_product(each: Sequence[tuple[float, float]]) -> float:
    """Return the log of the product of (1 - mass)^count."""
    if any(mass >= 1.0 for mass, _ in each):
        return -math.inf
    return math.fsum(count * math.log1p(-mass) for mass, count in each)


def log_delta(composition: Composition, eps: float, engine: Engine) -> float:
    """Return the upper end of log delta; below the doubles too where all steps are Gaussian, or a contour answers."""
    require_certified(composition)
    found = answers(composition, Question(False, eps), engine, upper_only=True)
    if 0.0 < found[0].upper < SMALLEST_NORMAL and composition.mu is not None and not composition.others:
        log_theta = float(core.log_theta(eps * (1 - FUNCTIONS), composition.mu[1]))
        return log_theta * (1 - GAUSSIAN_TAIL)
    return max(map(_log_upper, found))


def _log_upper(answer: Answer) -> float:
    """Return the upper end of log delta in one direction."""
    if answer.upper == 0.0:
        return -math.inf
    if answer.upper < SMALLEST_NORMAL and answer.log_delta is not None:
        return answer.log_delta
    return math.nextafter(math.log(answer.upper), math.inf)
