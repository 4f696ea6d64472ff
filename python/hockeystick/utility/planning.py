"""Which noise, rounds, batch and participation keep a federated training within a budget, and which of them is best.

Every setting is certified for the budget; settings are compared by an explicit bound on the excess risk, whose assumptions
(convex, Lipschitz and smooth losses, independent records) the budget does not share.
"""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from hockeystick import _checks
from hockeystick._search import Probe, narrow
from hockeystick.isrl import noisy_mb_sgd_accountant, noisy_mb_sgd_sigma, shuffled_mb_sgd_sigma
from hockeystick.isrl.risk import smallest_risk
from hockeystick.kernels import theta_inverse
from hockeystick.utility._sweep_plan import sweep_plan, toml
from hockeystick.utility.trusted_aggregator import trusted_aggregator_delta, trusted_aggregator_excess_risk

__all__ = ["Plan", "Setting", "plan"]

Trust: TypeAlias = Literal["central", "inter-silo", "shuffle", "last-iterate"]
TRUST: tuple[Trust, ...] = get_args(Trust)

MOST_ROUND_COUNTS = 6  # numbers of rounds that are tried, each half of the one before
MOST_BATCH_SIZES = 3  # the same for batch sizes, a quarter of the one before
DIGITS = 4  # of the noise, rounded up, so that what is printed is what is certified

PROMISES: dict[Trust, str] = {
    "central": "one record replaced, against who sees every round's model; the server is trusted with records",
    "inter-silo": "one record replaced, against everybody but its silo, the server included; each round is charged to every silo",
    "shuffle": "one record replaced, against who sees the shuffled messages; every participating silo sends one record's gradient",
    "last-iterate": "one silo (user) replaced, against who sees the last model only; the aggregator is trusted",
}


class Setting(NamedTuple):
    """One feasible setting.

    Attributes
    ----------
    noise_std : float
        Standard deviation per coordinate of the noise: on each silo's mean gradient, or under "central" on that of the pooled batch.
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


@dataclass(frozen=True)
class Problem:
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


@dataclass(frozen=True)
class Plan:
    """Feasible settings of a training, the smallest risk bound first; prints as a table.

    Parameters
    ----------
    trust : str
        The trust model.
    problem : Problem
        The inputs, with what was left out filled in.
    settings : tuple of Setting
        At least one.
    """

    trust: Trust
    problem: Problem
    settings: tuple[Setting, ...]

    @property
    def best(self) -> Setting:
        """The setting with the smallest risk bound."""
        return self.settings[0]

    @property
    def promise(self) -> str:
        """What the certified epsilon is about."""
        return PROMISES[self.trust]

    def __str__(self) -> str:
        """Return the table."""
        head = (
            f"{self.trust}: epsilon <= {self.problem.epsilon:g} at delta = {self.problem.delta:g}\n({self.promise})\n\n"
            f"{'noise std':>10} {'rounds':>8} {'batch':>8} {'silos':>8} {'step':>10} {'epsilon':>9} {'risk bound':>11}\n"
        )
        return head + "\n".join(
            f"{s.noise_std:>10.4g} {s.rounds:>8} {s.batch_size:>8} {s.silos_per_round:>8} {s.learning_rate:>10.3g} "
            f"{_up(s.epsilon, 5):>9g} {s.risk_bound:>11.4g}"
            for s in self.settings
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain numbers and words, for JSON."""
        return {
            "trust": self.trust,
            "promise": self.promise,
            "inputs": dict(vars(self.problem)),
            "settings": [setting._asdict() for setting in self.settings],
        }

    def sweep(self) -> dict[str, Any]:
        """Return a sweep plan around the settings: certified privacy and risk bound over noise, rounds and batches.

        Returns
        -------
        dict
            For `hockeystick.sweep.run`.

        Raises
        ------
        ValueError
            For "shuffle", whose noise no array function accounts for.
        """
        return sweep_plan(self)

    def sweep_toml(self) -> str:
        """Return `sweep` as a TOML file's text."""
        return toml(self.sweep())


def plan(
    *,
    trust: Trust,
    num_silos: int,
    num_records: int,
    dimension: int,
    lipschitz: float,
    diameter: float,
    smoothness: float,
    strong_convexity: float = 0.0,
    epsilon: float,
    delta: float,
    max_rounds: int,
    silos_per_round: int | None = None,
    max_batch_size: int | None = None,
    num_settings: int = 10,
) -> Plan:
    """Return the settings of a federated training that a budget allows, the smallest bound on the excess risk first.

    Parameters
    ----------
    trust : {"central", "inter-silo", "shuffle", "last-iterate"}
        Whom the budget protects against: see `Plan.promise`.
    num_silos : int
        Silos, or users, N.
    num_records : int
        Records of each silo, n. "last-iterate" protects the whole silo.
    dimension : int
        Number of parameters d.
    lipschitz : float
        Lipschitz constant L of each record's loss, to which its gradient is clipped; positive.
    diameter : float
        Diameter D of the ball of models, positive.
    smoothness : float
        Lipschitz constant beta of the gradient, positive.
    strong_convexity : float
        mu, in [0, smoothness]; positive for "last-iterate".
    epsilon : float
        Target, positive and finite.
    delta : float
        Target, in (0, 1).
    max_rounds : int
        Largest number of rounds.
    silos_per_round : int, optional
        Silos that take part in each round; all if not given. "last-iterate" tries all numbers up to it.
    max_batch_size : int, optional
        Largest number of records that a silo processes in a round; all if not given.
    num_settings : int
        How many settings to return at most.

    Returns
    -------
    Plan
        Settings, sorted; numbers of rounds are the limit and halves of it, batches quarters. Where some bounds tell something, those
        that do not are left out.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or no setting is feasible.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    Noise comes from `isrl.noisy_mb_sgd_sigma` ("central": the pooled records as one silo), `isrl.shuffled_mb_sgd_sigma`, or the inverse of
    `trusted_aggregator_delta`; risk from `isrl.mb_sgd_risk_bound`, or `trusted_aggregator_excess_risk` with D^2 + G^2/m <= L^2. The bounds
    are worst cases: they rank settings, and do not foretell a loss.

    Examples
    --------
    >>> from hockeystick import utility
    >>> found = utility.plan(
    ...     trust="inter-silo",
    ...     num_silos=10,
    ...     num_records=2000,
    ...     dimension=20,
    ...     lipschitz=1.0,
    ...     diameter=2.0,
    ...     smoothness=1.0,
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ...     max_rounds=100,
    ... )
    >>> found.best.rounds, found.best.batch_size, found.best.epsilon <= 1.0
    (100, 2000, True)
    """
    trust = _checks.choice("trust", trust, TRUST)
    problem = Problem(
        num_silos=_checks.count_scalar("num_silos", num_silos),
        num_records=_checks.count_scalar("num_records", num_records),
        dimension=_checks.count_scalar("dimension", dimension),
        lipschitz=_checks.positive_scalar("lipschitz", lipschitz),
        diameter=_checks.positive_scalar("diameter", diameter),
        smoothness=_checks.positive_scalar("smoothness", smoothness),
        strong_convexity=_checks.non_negative_scalar("strong_convexity", strong_convexity),
        epsilon=_checks.positive_scalar("epsilon", epsilon),
        delta=_checks.scalar("delta", delta, lambda x: 0 < x < 1, "lie in (0, 1)"),
        max_rounds=_checks.count_scalar("max_rounds", max_rounds),
        silos_per_round=num_silos
        if silos_per_round is None
        else _checks.count_scalar("silos_per_round", silos_per_round),
        max_batch_size=num_records
        if max_batch_size is None
        else _checks.count_scalar("max_batch_size", max_batch_size),
    )
    num_settings = _checks.count_scalar("num_settings", num_settings)
    _checks.at_most("strong_convexity", strong_convexity, "smoothness", smoothness)
    _checks.at_most("silos_per_round", problem.silos_per_round, "num_silos", num_silos)
    _checks.at_most("max_batch_size", problem.max_batch_size, "num_records", num_records)
    settings = sorted(_SEARCHES[trust](problem), key=lambda setting: setting.risk_bound)
    telling = [setting for setting in settings if setting.risk_bound < problem.lipschitz * problem.diameter]
    return Plan(trust, problem, tuple((telling or settings)[:num_settings]))


def _halves(largest: int, most: int, divisor: int = 2) -> list[int]:
    """Return a number, its half, its quarter, ..., down to 1 at the furthest."""
    numbers = [largest // divisor**k for k in range(most) if largest >= divisor**k]
    return sorted(set(numbers), reverse=True)


def _up(value: float, digits: int = DIGITS) -> float:
    """Return a number of few digits that is not below the value."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    rounded = float(context.create_decimal_from_float(value))
    return rounded if rounded >= value else math.nextafter(rounded, math.inf)


def _batches(
    problem: Problem, *, num_silos: int, num_records: int, largest: int, taking_part: int
) -> Iterator[Setting]:
    """Try mini-batch SGD on silos of this size, of which so many count for the risk."""
    for rounds, batch in itertools.product(
        _halves(problem.max_rounds, MOST_ROUND_COUNTS), _halves(largest, MOST_BATCH_SIZES, 4)
    ):
        least = noisy_mb_sgd_sigma(
            lipschitz=problem.lipschitz,
            num_records=num_records,
            batch_size=batch,
            rounds=rounds,
            epsilon=problem.epsilon,
            delta=problem.delta,
        )
        noise = _up(least)
        silo = noisy_mb_sgd_accountant(
            noise_std=noise, lipschitz=problem.lipschitz, num_records=num_records, batch_size=batch, rounds=rounds
        )
        step, risk = _risk(problem, rounds, noise, taking_part, num_silos * num_records)
        shown = problem.silos_per_round if num_silos == 1 else taking_part
        yield Setting(noise, rounds, batch, shown, step, float(silo.epsilon(problem.delta)), risk)


def _risk(problem: Problem, rounds: int, noise: float, taking_part: int, total: int) -> tuple[float, float]:
    """Return the step size and `isrl.mb_sgd_risk_bound` there."""
    moment = problem.dimension * noise**2 / taking_part + problem.lipschitz**2
    numbers = (problem.diameter, rounds, problem.lipschitz, total, moment, problem.smoothness, problem.strong_convexity)
    best = smallest_risk(*(np.asarray(x, dtype=np.float64) for x in numbers))
    return float(best.learning_rate), min(float(best.bound), problem.lipschitz * problem.diameter)


def _central(problem: Problem) -> Iterator[Setting]:
    return _batches(
        problem,
        num_silos=1,
        num_records=problem.num_silos * problem.num_records,
        largest=problem.silos_per_round * problem.max_batch_size,
        taking_part=1,
    )


def _inter_silo(problem: Problem) -> Iterator[Setting]:
    return _batches(
        problem,
        num_silos=problem.num_silos,
        num_records=problem.num_records,
        largest=problem.max_batch_size,
        taking_part=problem.silos_per_round,
    )


def _shuffle(problem: Problem) -> Iterator[Setting]:
    for rounds in _halves(problem.max_rounds, MOST_ROUND_COUNTS):
        noise = _up(
            shuffled_mb_sgd_sigma(
                lipschitz=problem.lipschitz,
                num_records=problem.num_records,
                num_silos=problem.num_silos,
                silos_per_round=problem.silos_per_round,
                rounds=rounds,
                epsilon=problem.epsilon,
                delta=problem.delta,
            ).noise_std
        )
        total = problem.num_silos * problem.num_records
        step, risk = _risk(problem, rounds, noise, problem.silos_per_round, total)
        yield Setting(noise, rounds, 1, problem.silos_per_round, step, problem.epsilon, risk)


def _last_iterate(problem: Problem) -> Sequence[Setting]:
    if problem.strong_convexity == 0.0:
        msg = "strong_convexity must be positive for trust='last-iterate', whose risk bound needs it, not 0"
        raise ValueError(msg)
    sizes = _halves(problem.silos_per_round, 40)
    settings = [_one_pass(problem, size) for size in sizes if problem.num_silos // size <= problem.max_rounds]
    if not settings:
        msg = (
            f"max_rounds must be at least num_silos // silos_per_round = {problem.num_silos // sizes[0]}, "
            f"not {problem.max_rounds}: every silo takes part once"
        )
        raise ValueError(msg)
    return settings


def _one_pass(problem: Problem, size: int) -> Setting:
    """Return the least noise with which a single pass in batches of this size stays within the budget."""

    def excess(noise: float) -> float:
        delta = trusted_aggregator_delta(
            problem.epsilon,
            num_users=problem.num_silos,
            batch_size=size,
            noise_std=noise,
            lipschitz=problem.lipschitz,
            radius=problem.diameter / 2.0,
            smoothness=problem.smoothness,
            strong_convexity=problem.strong_convexity,
        )
        return math.log(max(float(delta), 5e-324) / problem.delta)

    # Without any later round to hide it, the user's own noise must do.
    most = 2.0 * problem.lipschitz / math.sqrt(size) / float(theta_inverse(problem.epsilon, problem.delta)) * 1.001
    noise = _up(_least(excess, most))
    risk = trusted_aggregator_excess_risk(
        num_users=problem.num_silos,
        batch_size=size,
        dimension=problem.dimension,
        noise_std=noise,
        gradient_bound=problem.lipschitz,
        gradient_std=0.0,
        smoothness=problem.smoothness,
        strong_convexity=problem.strong_convexity,
    )
    return Setting(
        noise_std=noise,
        rounds=problem.num_silos // size,
        batch_size=problem.num_records,
        silos_per_round=size,
        learning_rate=1.0 / problem.strong_convexity,
        epsilon=problem.epsilon,
        risk_bound=min(float(risk), problem.lipschitz * problem.diameter),
    )


def _least(excess: Callable[[float], float], most: float) -> float:
    """Return the smallest feasible noise found below a feasible one, to 1e-6."""
    good = Probe(most, excess(most))
    bad = Probe(most / 2.0, excess(most / 2.0))
    while bad.excess <= 0 and bad.x > most * 1e-6:
        good, bad = bad, Probe(bad.x / 2.0, excess(bad.x / 2.0))
    return good.x if bad.excess <= 0 else narrow(excess, good, bad, tolerance=1e-6).x


_SEARCHES: dict[str, Callable[[Problem], Iterator[Setting] | Sequence[Setting]]] = {
    "central": _central,
    "inter-silo": _inter_silo,
    "shuffle": _shuffle,
    "last-iterate": _last_iterate,
}
