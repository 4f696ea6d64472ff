"""A ledger handed to the compiled core: what it answers, in words.

The core alone chooses the engine (accounting/engine.hpp), the same way for every caller; here the method of each answer gets its name.
If a mechanism has Renyi divergences but no pair, the core is not asked: the answer is converted from the sum of the divergences. If it
has both, the smaller upper end counts.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import hockeystick._core as core
from hockeystick._checks import count_scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import DOWN, FUNCTIONS, GAUSSIAN_TAIL, UP, failure_of
from hockeystick._statements import say
from hockeystick.accounting import renyi_divergence as renyi
from hockeystick.accounting.brackets import Bracket, Explanation, describe
from hockeystick.accounting.privacy_curve import Curve
from hockeystick.mechanisms import Shuffled
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism, parts_of, plain
from hockeystick.mechanisms.premises import Premises, Status, joined
from hockeystick.mechanisms.renyi_bounded import RenyiMechanism

Engine: TypeAlias = Literal["auto", "contour", "pld"]
ENGINES = ("auto", "contour", "pld")

SMALLEST_NORMAL = 1e-300  # above it a delta has all its digits; below 2e-308 doubles lose them
ONE_STEP = ("exact formula of one step", "formula of one step, by pairs above and below", "gaussian closed form")
ORIGINS = ("alias", "truncation", "rounding", "smoothing", "missing")  # of the contour's errors


class Question(NamedTuple):
    """Delta at an epsilon, or epsilon at a delta."""

    for_epsilon: bool
    value: float


class Answer(NamedTuple):
    """The bracket of one direction, the method it comes from, and where its width comes from."""

    lower: float
    upper: float
    method: str
    direction: str
    errors: Mapping[str, float] = MappingProxyType({})  # by origin, in proportion; empty if they are not told apart
    numerical: float = 0.0  # width of the bracket of the pairs that dominate, over the upper end: what the errors make
    pairs: float = 0.0  # distance between these pairs and those that are attained, over the upper end
    log_delta: float | None = None  # upper end of log delta, if the engine knows it even where delta underflows
    tried: tuple[str, ...] = ()  # what the engine tried, in order


class _Held:
    """What one process keeps between questions. A child of a fork begins anew: a thread of its parent may hold this lock."""

    def __init__(self) -> None:
        self.accountants: dict[bool, core.Accountant] = {}  # by upper_only, since lower ends may cost much more
        self.lock = threading.RLock()  # a signal handler may ask while its thread is in here


class Composition:
    """A ledger that never changes, with its accountants in the core, which keep what they computed between questions."""

    def __init__(self, ledger: Mapping[Mechanism, int], adjacency: Adjacency, engine: Engine = "auto") -> None:
        """Take a ledger whose mechanisms support the adjacency."""
        self.ledger = self.holding = dict(ledger)
        self.adjacency: Adjacency = adjacency
        self.engine: Engine = engine
        self.failure = 0.0  # the probability that something fails, on either data set: it adds to every delta
        if any(type(step)._added_failure is not Mechanism._added_failure for step in ledger):
            self.holding = {}  # what is accounted for where nothing does
            for step, count in ledger.items():
                self.holding[step._holding()] = self.holding.get(step._holding(), 0) + count
            self.failure = failure_of([(count, step._added_failure()) for step, count in ledger.items()])
        parts = parts_of(ledger)
        self.status: Status = "certified" if all(part._certified for part in parts) else "estimate"
        sizes = (getattr(part, "num_users" if isinstance(part, Shuffled) else "num_records", None) for part in parts)
        self.num_records = max((size for size in sizes if size is not None), default=None)  # the most that is named
        self.by_renyi_alone = not all(step._has_pair for step in ledger)
        # Of some mechanisms both are known, and at a small delta the divergences may say more than the pair.
        known = self.status == "certified" and any(isinstance(part, RenyiMechanism) for part in parts)
        self.by_renyi_too = known and any(isinstance(step, RenyiMechanism) for step in plain(ledger))
        self.core_alone = self.failure == 0.0 and not self.by_renyi_alone and not self.by_renyi_too
        self._held: dict[int, _Held] = {}  # by process

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a copy or a pickle is made from; its accountants compute anew."""
        return Composition, (self.ledger, self.adjacency, self.engine)

    def plus(self, mechanism: Mechanism, count: int) -> Composition:
        """Return the composition with steps more, or raise ValueError if they are too many."""
        if not count:
            return self
        total = count_scalar("count", self.ledger.get(mechanism, 0) + count)
        return Composition({**self.ledger, mechanism: total}, self.adjacency, self.engine)

    def upper_delta(self, epsilon: float) -> float:
        """Return the largest upper end of delta in both directions."""
        return self._upper_end(Question(False, epsilon))

    def upper_epsilon(self, delta: float) -> float:
        """Return the largest upper end of epsilon in both directions."""
        return self._upper_end(Question(True, delta))

    def curve(self) -> Curve:
        """Return both as one value, which never changes."""
        return Curve(self.upper_delta, self.upper_epsilon)

    def upper_log_delta(self, epsilon: float) -> float:
        """Return the upper end of log delta, even of a delta that underflows if steps are Gaussian or a contour answers."""
        self.require_certified()
        found = self._answers(Question(False, epsilon), upper_only=True)
        exact = self.failure == 0.0 and not self.by_renyi_alone
        if 0.0 < found[0].upper < SMALLEST_NORMAL and exact:
            steps = self.steps(upper=True)
            if len(steps) == 1 and steps[0][0].is_gaussian:
                log_theta = float(core.log_theta(epsilon * (1 - FUNCTIONS), steps[0][0].gaussian_shift))
                return log_theta * (1 - GAUSSIAN_TAIL)
        return max(map(_log_upper, found))

    def bracket(self, question: Question) -> Bracket:
        """Return the bracket of what is asked, of both directions."""
        return self._joined(self._answers(question, upper_only=False))

    def explanation(self, question: Question) -> Explanation:
        """Return how the answer is found."""
        found = self._answers(question, upper_only=False)
        bracket, winner = self._joined(found), found[0]
        return Explanation(
            bracket,
            winner.method,
            winner.direction,
            MappingProxyType({answer.direction: Bracket(*answer[:3], self.status) for answer in found}),
            MappingProxyType(_shares(winner, bracket, 0.0 if question.for_epsilon else self.failure)),
            self.premises().to_check(),
            winner.tried,
        )

    def premises(self) -> Premises:
        """Return what the numbers rest on."""
        fixed = Premises(self.adjacency, assumptions=(say("assumed_fixed"),))
        steps = (step.premises(self.adjacency).times(count) for step, count in self.ledger.items())
        return joined(self.adjacency, (fixed, *steps))

    def require_certified(self) -> None:
        """Raise ValueError if a mechanism is only estimated."""
        if self.status != "certified":
            raise ValueError(
                "a mechanism here is only estimated, so that no bound can be certified; delta_bracket, epsilon_bracket and explain answer"
            )

    def steps(self, *, upper: bool) -> list[CountedPair]:
        """Return the steps for the upper or the lower end, with all Gaussian steps merged into one."""
        if self.failure > 0.0:
            raise ValueError("a ledger whose steps may fail has no pairs: the probability adds to every delta")
        return self._accountant(upper_only=upper).steps(upper)

    def _accountant(self, *, upper_only: bool) -> core.Accountant:
        """Return the core's accountant where nothing fails, which has steps for upper ends and, unless `upper_only`, for lower ends."""
        held = self._held.setdefault(os.getpid(), _Held())
        with held.lock:
            if upper_only not in held.accountants:
                accountant = core.Accountant()
                for upper in (True,) if upper_only else (True, False):
                    for mechanism, count in self.holding.items():
                        for pair, times in mechanism._pairs(self.adjacency, upper=upper):
                            if times > 0.0:
                                accountant.compose(pair, times * count, upper)
                held.accountants[upper_only] = accountant
            return held.accountants[upper_only]

    def _upper_end(self, question: Question) -> float:
        """Return the largest upper end of both directions, or raise ValueError if a mechanism is only estimated."""
        self.require_certified()
        if self.core_alone:  # its answer needs no words here
            return float(self._accountant(upper_only=True).answers(*question, self.engine, True)[0].upper)
        return self._answers(question, upper_only=True)[0].upper

    def _answers(self, question: Question, *, upper_only: bool) -> list[Answer]:
        """Return an answer for each direction, the largest upper end first; with `upper_only`, lower ends are 0."""
        if self.failure == 0.0:
            return self._holding(question, upper_only=upper_only)
        found = self._with_failure(question)
        if not upper_only:
            known = max(answer.lower for answer in self._holding(question, upper_only=False))
            found[0] = found[0]._replace(lower=min(known, found[0].upper))
        return found

    def _with_failure(self, question: Question) -> list[Answer]:
        """Return upper ends: where nothing fails, P(S) <= e^eps Q(S) + delta, and so delta + failure bounds all of P."""
        if question.for_epsilon:
            left = (question.value - self.failure) * DOWN
            if left < 0.0:
                return [Answer(0.0, math.inf, "probability of failure", "both")]
            return list(map(_of_upper_end, self._holding(Question(True, left), upper_only=True)))
        found = self._holding(question, upper_only=True)
        return [self._failing(_of_upper_end(answer)) for answer in found]

    def _failing(self, answer: Answer) -> Answer:
        """Return the answer about delta where something may fail."""
        upper = min(1.0, (answer.upper + self.failure) * UP)
        part = answer.upper / upper
        numerical, pairs = answer.numerical * part, answer.pairs * part
        return answer._replace(upper=upper, numerical=numerical, pairs=pairs, log_delta=None)

    def _holding(self, question: Question, *, upper_only: bool) -> list[Answer]:
        """Return the answers where nothing fails."""
        if self.by_renyi_alone:
            best = self._by_renyi(question)
            return [best if upper_only else best._replace(lower=min(self._attained(question), best.upper))]
        found = self._accountant(upper_only=upper_only).answers(*question, self.engine, upper_only)
        words = [self._in_words(answer, question) for answer in found]
        if not self.by_renyi_too or self.engine != "auto":
            return words
        other = self._by_renyi(question)
        smaller = [answer if answer.upper <= other.upper else other._replace(lower=answer.lower) for answer in words]
        return sorted(smaller, key=lambda answer: -answer.upper)

    def _by_renyi(self, question: Question) -> Answer:
        """Answer by converting the sum of the Renyi divergences."""
        if self.engine != "auto":
            raise ValueError(
                f"engine={shown(self.engine)} has no answer where a mechanism is known by its Renyi divergences alone; use engine='auto'"
            )
        upper, order = renyi.best(self.ledger, self.adjacency, *question)
        return Answer(0.0, upper, f"Renyi divergence of order {order:.4g}", "both")

    def _attained(self, question: Question) -> float:
        """Return what data sets attain that are known of some steps, where no pair dominates all."""
        accountant = core.Accountant()
        for mechanism, count in self.holding.items():
            for pair, times in mechanism._pairs(self.adjacency, upper=False):
                accountant.compose(pair, times * count, True)
                accountant.compose(pair, times * count, False)
        return max(answer.lower for answer in accountant.answers(*question, self.engine, False))

    def _joined(self, found: list[Answer]) -> Bracket:
        """Return the bracket of the composition from those of its directions, the largest upper end first."""
        lower, upper = max(answer.lower for answer in found), found[0].upper
        if not 0 <= lower <= upper:
            raise RuntimeError(f"the bracket [{lower}, {upper}] is empty. This is a bug in hockeystick.")
        return Bracket(lower, upper, found[0].method, self.status)

    def _in_words(self, answer: core.Answer, question: Question) -> Answer:
        method, errors, log_upper = answer.method, dict[str, float](), None
        if method == "contour":
            method = _contour_method(answer)
            errors = {name: getattr(answer, name) for name in ORIGINS}
            log_upper = None if question.for_epsilon else answer.log_upper
        elif method in {"pld", "pld of blocks"}:
            blocks = ", of the worst intervals of losses in blocks" if method == "pld of blocks" else ""
            method = describe(answer.upper, answer.interval, coarsened=answer.coarsened) + blocks
        elif method == "renyi":
            method = f"Renyi divergence of order {answer.order:.4g}"
        elif method in ONE_STEP:
            errors = {"rounding": 1.0}
        tried = tuple(
            f"{name}{f', {nodes} nodes' if nodes else ''}, [{lower!r}, {upper!r}]"
            for name, lower, upper, nodes in answer.tried
        )
        direction, ends = self._direction(answer), (answer.lower, answer.upper)
        return Answer(*ends, method, direction, errors, answer.numerical, answer.pairs, log_upper, tried)

    def _direction(self, answer: core.Answer) -> str:
        """Return the name of the direction that an answer is about."""
        if answer.both_directions:
            return "both"
        names = ("forward", "reverse") if self.adjacency == "replace" else ("remove", "add")
        return names[0 if answer.forward else 1]


def _of_upper_end(answer: Answer) -> Answer:
    """Return an answer that was asked for its upper end alone, without errors unless an engine found a lower end as well."""
    return answer if answer.numerical < 1.0 else answer._replace(errors=MappingProxyType({}), numerical=0.0)


def _shares(answer: Answer, bracket: Bracket, failure: float) -> dict[str, float]:
    """Return the parts of the relative width of the bracket of both directions, by origin.

    The answer is that of the direction with the larger upper end. The other direction may have the larger lower end: what lies
    below that end is no part of the width, which shortens the part between the pairs first, as it is the lowest.
    """
    upper = bracket.upper
    width = (upper - bracket.lower) / upper if 0.0 < upper < math.inf else float(bracket.lower < upper)
    numerical = min(answer.numerical, width)
    whole = math.fsum(answer.errors.values()) or 1.0
    shares = {origin: numerical * (error / whole) for origin, error in answer.errors.items()}
    if answer.pairs > 0.0:
        shares["pairs"] = min(answer.pairs, width - numerical)
    if failure > 0.0:
        shares["failure"] = max(0.0, min(failure / upper, width - math.fsum(shares.values())))
    return shares


def _contour_method(answer: core.Answer) -> str:
    if answer.nodes == 0:
        return f"Chernoff's bound at tilt {answer.tilt:.3g}" if answer.tilt else "beyond the largest loss"
    where = f"in {answer.slices} slices of the losses" if answer.slices else f"at tilt {answer.tilt:.3g}"
    return f"contour, {answer.nodes} nodes {where}"


def _log_upper(answer: Answer) -> float:
    """Return the upper end of log delta in one direction."""
    if answer.upper == 0.0:
        return -math.inf
    if answer.upper < SMALLEST_NORMAL and answer.log_delta is not None:
        return answer.log_delta
    return math.nextafter(math.log(answer.upper), math.inf)
