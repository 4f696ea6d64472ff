"""Ask the core's engines about a composition, and put their answers in words.

The core alone chooses the engine (accounting/engine.hpp), the same way for every caller. This module names the method
of each answer. If a mechanism has Renyi divergences but no pair, the core is not asked: the answer is converted from
the sum of the divergences. If it has both, the smaller upper end counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import hockeystick._core as core
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import DOWN, FUNCTIONS, GAUSSIAN_TAIL, UP
from hockeystick.accounting.bracket import Bracket, describe
from hockeystick.accounting.composition import Composition
from hockeystick.accounting.renyi import conversion
from hockeystick.mechanisms.base import Adjacency, Mechanism

Engine: TypeAlias = Literal["auto", "contour", "pld"]
ENGINES = ("auto", "contour", "pld")

SMALLEST_NORMAL = 1e-300  # above it a delta has all its digits; below 2e-308 doubles lose them

ONE_STEP = ("exact formula of one step", "formula of one step, by pairs above and below", "gaussian closed form")


class Question(NamedTuple):
    """Delta at an epsilon, or epsilon at a delta."""

    for_epsilon: bool
    value: float


class Answer(NamedTuple):
    """The bracket of one direction, the method it comes from, and where its width comes from."""

    lower: float
    upper: float
    method: str
    shares: Mapping[str, float]  # relative errors of delta by their origin; empty if the method does not tell them
    direction: str = ""
    log_delta: float | None = None  # upper end of log delta, if the engine knows it even where delta underflows
    tried: tuple[str, ...] = ()  # what the contour engine tried, in order


def answers(composition: Composition, question: Question, engine: Engine, *, upper_only: bool) -> list[Answer]:
    """Return an answer for each direction, the largest upper end first; with `upper_only`, lower ends are 0."""
    if composition.failure == 0.0:
        return _holding(composition, question, engine, upper_only=upper_only)
    found = _with_failure(composition, question, engine)
    if not upper_only:
        known = max(answer.lower for answer in _holding(composition, question, engine, upper_only=False))
        found[0] = found[0]._replace(lower=min(known, found[0].upper))
    return found


def _with_failure(composition: Composition, question: Question, engine: Engine) -> list[Answer]:
    """Return upper ends: where nothing fails, P(S) <= e^eps Q(S) + delta, and so delta + failure bounds all of P."""
    if question.for_epsilon:
        left = (question.value - composition.failure) * DOWN
        if left < 0.0:
            return [Answer(0.0, math.inf, "probability of failure", {}, "both")]
        return _holding(composition, Question(True, left), engine, upper_only=True)
    found = _holding(composition, question, engine, upper_only=True)
    return [
        answer._replace(upper=min(1.0, (answer.upper + composition.failure) * UP), log_delta=None) for answer in found
    ]


def _holding(composition: Composition, question: Question, engine: Engine, *, upper_only: bool) -> list[Answer]:
    """Return the answers where nothing fails."""
    if composition.by_renyi_alone:
        return [_by_renyi(composition, question, engine)]
    found = composition.accountant(upper_only=upper_only).answers(*question, engine, upper_only)
    words = [_in_words(answer, question, composition) for answer in found]
    if not composition.by_renyi_too or engine != "auto":
        return words
    other = _by_renyi(composition, question, engine)
    smaller = [answer if answer.upper <= other.upper else other._replace(lower=answer.lower) for answer in words]
    return sorted(smaller, key=lambda answer: -answer.upper)


def upper_end(composition: Composition, question: Question, engine: Engine) -> float:
    """Return the largest upper end of both directions, or raise ValueError if a mechanism is only estimated."""
    require_certified(composition)
    if composition.failure > 0.0:
        return _with_failure(composition, question, engine)[0].upper
    if composition.by_renyi_alone:
        return _by_renyi(composition, question, engine).upper
    upper = float(composition.accountant(upper_only=True).answers(*question, engine, True)[0].upper)
    if composition.by_renyi_too and engine == "auto":
        return min(upper, _by_renyi(composition, question, engine).upper)
    return upper


def leaks_nothing(mechanism: Mechanism, adjacency: Adjacency) -> bool:
    """Say whether a step certainly does not depend on the records."""
    return (
        mechanism._has_pair
        and mechanism._added_failure() == 0.0
        and not any(pair.leaks for pair, _ in mechanism._pairs(adjacency))
    )


def require_certified(composition: Composition) -> None:
    """Raise ValueError if a mechanism is only estimated."""
    if composition.status != "certified":
        msg = "a mechanism here is only estimated, so that no bound can be certified; delta_bracket, epsilon_bracket and explain answer"
        raise ValueError(msg)


def bracket(found: list[Answer], status: str) -> Bracket:
    """Return the bracket of the composition from those of its directions, the largest upper end first."""
    lower, upper = max(answer.lower for answer in found), found[0].upper
    if not 0 <= lower <= upper:
        msg = f"the bracket [{lower}, {upper}] is empty. This is a bug in hockeystick."
        raise RuntimeError(msg)
    return Bracket(lower, upper, found[0].method, status)


def log_delta(composition: Composition, eps: float, engine: Engine) -> float:
    """Return the upper end of log delta, even of a delta that underflows if steps are Gaussian or a contour answers."""
    require_certified(composition)
    found = answers(composition, Question(False, eps), engine, upper_only=True)
    exact = composition.failure == 0.0 and not composition.by_renyi_alone
    if 0.0 < found[0].upper < SMALLEST_NORMAL and exact:
        steps = composition.steps(upper=True)
        if len(steps) == 1 and steps[0][0].is_gaussian:
            log_theta = float(core.log_theta(eps * (1 - FUNCTIONS), steps[0][0].gaussian_shift))
            return log_theta * (1 - GAUSSIAN_TAIL)
    return max(map(_log_upper, found))


def _by_renyi(composition: Composition, question: Question, engine: Engine) -> Answer:
    """Answer by converting the sum of the Renyi divergences."""
    if engine != "auto":
        msg = f"engine={shown(engine)} has no answer where a mechanism is known by its Renyi divergences alone; use engine='auto'"
        raise ValueError(msg)
    upper, order = conversion.best(composition.ledger, composition.adjacency, *question)
    return Answer(0.0, upper, f"Renyi divergence of order {order:.4g}", {}, "both")


def _in_words(answer: core.Answer, question: Question, composition: Composition) -> Answer:
    shares: dict[str, float] = {}
    log_upper = None
    method = answer.method
    if method == "contour":
        method = _contour_method(answer)
        shares = {name: getattr(answer, name) for name in ("alias", "truncation", "rounding", "smoothing", "missing")}
        log_upper = None if question.for_epsilon else answer.log_upper
    elif method == "pld":
        method = describe(answer.upper, answer.interval, coarsened=answer.coarsened)
    elif method == "renyi":
        method = f"Renyi divergence of order {answer.order:.4g}"
    elif method in ONE_STEP:
        shares = {"rounding": max(_width(answer) - answer.pairs, 0.0)}
    if answer.pairs > 0.0:
        shares["pairs"] = answer.pairs
    return Answer(answer.lower, answer.upper, method, shares, composition.name_of(answer), log_upper, _tried(answer))


def _contour_method(answer: core.Answer) -> str:
    if answer.nodes == 0:
        return f"Chernoff's bound at tilt {answer.tilt:.3g}" if answer.tilt else "beyond the largest loss"
    where = f"in {answer.slices} slices of the losses" if answer.slices else f"at tilt {answer.tilt:.3g}"
    return f"contour, {answer.nodes} nodes {where}"


def _tried(answer: core.Answer) -> tuple[str, ...]:
    return tuple(f"{name}, {nodes} nodes, [{lower!r}, {upper!r}]" for name, lower, upper, nodes in answer.tried)


def _width(answer: core.Answer) -> float:
    return 0.0 if answer.lower == answer.upper else (answer.upper - answer.lower) / answer.upper


def _log_upper(answer: Answer) -> float:
    """Return the upper end of log delta in one direction."""
    if answer.upper == 0.0:
        return -math.inf
    if answer.upper < SMALLEST_NORMAL and answer.log_delta is not None:
        return answer.log_delta
    return math.nextafter(math.log(answer.upper), math.inf)
