"""All algorithms under all trust models for one budget: which noise each needs, and which risk it is known to reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hockeystick._checks import count_scalar, setting_warnings
from hockeystick._numeric.printing import format_upper
from hockeystick.federated import fedavg_epsilon, fedavg_gdp, fedprox_epsilon, fedprox_gdp
from hockeystick.isrl import acsa_bound, multistage_schedule, noisy_mb_sgd_accountant, one_pass_sigma
from hockeystick.kernels import theta_inverse
from hockeystick.last_iterate import best_random_stop
from hockeystick.utility.settings import (
    EXTRA_NOISE,
    MAX_ROUND_COUNTS,
    Candidate,
    Pool,
    Problem,
    Report,
    Setting,
    aggregated,
    batches,
    checked_inputs,
    divided_down,
    least_noise,
    log_excess,
    pool_of,
    risk_of_batches,
    rounded_up,
    shuffled,
    smallest,
)

PROX = 2.0  # FedProx's coefficient, in units of the smoothness, which it must exceed


def single_pass(pool: Pool, rounds: int) -> tuple[int, int]:
    """Return the batch and the parties of each round of a single pass: records of all parties are used once at most."""
    if rounds <= pool.num_records:
        return min(pool.largest_batch, pool.num_records // rounds), pool.taking_part
    return 1, min(pool.taking_part, pool.num_parties * pool.num_records // rounds)


def one_pass_settings(
    problem: Problem, pool: Pool, risk: Callable[[int, int, float, int], tuple[float, float]]
) -> Iterator[Candidate]:
    """Try numbers of rounds for single passes with a step size and a risk that follow from rounds, batch, noise and parties."""
    total = pool.num_parties * pool.num_records
    for rounds in divided_down(min(problem.max_rounds, total), MAX_ROUND_COUNTS):
        batch, parties = single_pass(pool, rounds)
        budget = {"epsilon": problem.epsilon, "delta": problem.delta}
        noise = rounded_up(float(one_pass_sigma(lipschitz=problem.lipschitz, batch_size=batch, **budget)))
        step, bound = risk(rounds, batch, noise, parties)
        if bound < math.inf:
            yield Candidate(
                bound, partial(_one_pass_setting, problem, pool, (rounds, batch, parties), noise, step, bound)
            )


def _one_pass_setting(  # noqa: PLR0917, in the order of its fields
    problem: Problem, pool: Pool, sizes: tuple[int, int, int], noise: float, step: float, bound: float
) -> Setting:
    rounds, batch, parties = sizes
    once = noisy_mb_sgd_accountant(
        noise_std=noise, lipschitz=problem.lipschitz, num_records=batch, batch_size=batch, rounds=1
    )
    shown = problem.silos_per_round if pool.num_parties == 1 else parties
    return Setting(noise, rounds, batch, shown, step, float(once.epsilon(problem.delta)), bound)


def one_pass(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try mini-batch SGD with a single pass: gradients of the risk itself, of second moment L^2 + d sigma^2/M."""
    return one_pass_settings(
        problem, pool, lambda rounds, _, noise, parties: risk_of_batches(problem, rounds, noise, parties, math.inf)
    )


def _variance(problem: Problem, batch: int, noise: float, parties: int) -> float:
    """Return a bound on the mean squared error of a round's gradient, of independent records of norm L at most."""
    return (problem.lipschitz**2 / batch + problem.dimension * noise**2) / parties


def accelerated(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try accelerated SGD (AC-SA) with a single pass: its explicit bound, `isrl.acsa_bound`, for a start anywhere in the ball."""

    def risk(rounds: int, batch: int, noise: float, parties: int) -> tuple[float, float]:
        bound = acsa_bound(
            rounds=rounds,
            distance_squared=problem.diameter**2,
            variance=_variance(problem, batch, noise, parties),
            smoothness=problem.smoothness,
            strong_convexity=problem.strong_convexity,
        )
        return math.nan, min(float(bound), problem.lipschitz * problem.diameter)

    return one_pass_settings(problem, pool, risk)


def multistage(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try multi-stage AC-SA with a single pass: every stage of `isrl.multistage_schedule` halves the bound, from L D on.

    A stage starts with a risk of g at most, hence at a distance of r with r^2 <= 2g/mu, and ends with 2 phi r^2/(R(R+1)) +
    V^2 (R+2)/(3 phi). With phi >= s = sqrt(mu V^2 R(R+1)(R+2)/(3g)) the second term is at most that at s, and the first is at most
    its value at 2 beta, 8 beta g/(mu R(R+1)) <= g/4 for R >= 4 sqrt(2 beta/mu), or that at s. Both at s are 5V sqrt(g(R+2)/(3 mu R(R+1)))
    <= 0.26 g for R >= 512 V^2/(3 mu g); the second alone is a fifth of that. So the stage ends below g/2.
    """
    if problem.strong_convexity == 0.0:
        msg = "strong_convexity must be positive for multi-stage AC-SA, not 0"
        raise ValueError(msg)

    def risk(rounds: int, batch: int, noise: float, parties: int) -> tuple[float, float]:
        gap = problem.lipschitz * problem.diameter
        try:
            stages = multistage_schedule(
                smoothness=problem.smoothness,
                strong_convexity=problem.strong_convexity,
                gradient_std=math.sqrt(_variance(problem, batch, noise, parties)),
                initial_gap=gap,
                rounds=rounds,
            )
        except ValueError:  # the first stage does not fit
            return math.nan, math.inf
        return math.nan, gap * 0.5 ** len(stages)

    return one_pass_settings(problem, pool, risk)


def random_stop(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try projected noisy SGD with a single pass, of which only the model after a uniformly random step is seen."""
    total = pool.num_parties * pool.num_records
    for rounds in divided_down(min(problem.max_rounds, total), MAX_ROUND_COUNTS):
        batch = single_pass(pool, rounds)[0]
        yield Candidate(_stopped_risk(problem, rounds, 0.0)[1], partial(_stopped, problem, rounds, batch))


def _stopped_risk(problem: Problem, rounds: int, noise: float) -> tuple[float, float]:
    """Return the best step and the bound on the mean risk of the models after steps 1 to T.

    With c = L^2 + d sigma^2, 2 eta (F(w_r) - F*) is at most |w_r - w*|^2 - E|w_{r+1} - w*|^2 + eta^2 c. Summed over r = 1..T it is
    (D^2/eta + eta T c)/(2T), least at eta = D/sqrt(T c); a step above 1/beta would lose the contraction.
    """
    moment = problem.dimension * noise**2 + problem.lipschitz**2
    step = min(1.0 / problem.smoothness, problem.diameter / math.sqrt(rounds * moment))
    bound = problem.diameter**2 / (2.0 * step * rounds) + step * moment / 2.0
    return step, min(bound, problem.lipschitz * problem.diameter)


def _stopped(problem: Problem, rounds: int, batch: int) -> Setting:
    def excess(noise: float) -> float:
        found = best_random_stop(
            problem.epsilon,
            num_records=rounds,
            learning_rate=_stopped_risk(problem, rounds, noise)[0],
            noise_std=noise,
            lipschitz=problem.lipschitz / batch,
            smoothness=problem.smoothness,
            strong_convexity=problem.strong_convexity,
            diameter=problem.diameter,
        )
        return log_excess(float(found.delta), problem.delta)

    budget = {"epsilon": problem.epsilon, "delta": problem.delta}
    most = float(one_pass_sigma(lipschitz=problem.lipschitz, batch_size=batch, **budget)) * EXTRA_NOISE
    noise = rounded_up(least_noise(excess, most))
    while excess(noise) > 0.0:
        noise = rounded_up(noise * EXTRA_NOISE)  # rounding up the noise changes the step
    step, bound = _stopped_risk(problem, rounds, noise)
    return Setting(noise, rounds, batch, problem.silos_per_round, step, problem.epsilon, bound)


def local_step(problem: Problem, local_steps: int) -> float:
    """Return D/(L K sqrt T), with which all local steps together move by D sqrt(T) at most, or 1/beta if that is smaller."""
    free = problem.diameter / (problem.lipschitz * local_steps * math.sqrt(problem.max_rounds))
    return min(free, 1.0 / problem.smoothness)


def fedavg(problem: Problem, local_steps: int, *, averaged: int) -> Setting:
    """Return the noise of Noisy-FedAvg's uploads for the largest number of rounds; no bound on its risk is known.

    So many uploads are averaged before anybody sees them: all, or 1 where each is seen.
    """
    step = local_step(problem, local_steps)
    training = {"local_steps": local_steps, "num_clients": averaged, "learning_rate": step}
    return _uploaded(problem, fedavg_gdp, fedavg_epsilon, training)


def fedprox(problem: Problem, local_steps: int) -> Setting:
    """Return the same for Noisy-FedProx, with a proximal coefficient of twice the smoothness."""
    prox = PROX * problem.smoothness
    step = min(local_step(problem, local_steps), 1.0 / prox)
    training = {"local_steps": local_steps, "num_clients": problem.num_silos, "learning_rate": step, "prox": prox}
    return _uploaded(problem, fedprox_gdp, fedprox_epsilon, training)


def _uploaded(
    problem: Problem, gdp: Callable[..., Any], epsilon: Callable[..., Any], training: dict[str, float]
) -> Setting:
    """Return the noise with which mu, in proportion to its inverse, is that of the budget; its epsilon is checked."""
    training |= {"rounds": problem.max_rounds, "clip_norm": problem.lipschitz, "smoothness": problem.smoothness}
    noise = rounded_up(float(gdp(**training, noise_std=1.0)) / float(theta_inverse(problem.epsilon, problem.delta)))
    while (reached := float(epsilon(problem.delta, **training, noise_std=noise))) > problem.epsilon:
        noise = rounded_up(np.nextafter(noise, np.inf))
    step = training["learning_rate"]
    return Setting(noise, problem.max_rounds, problem.num_records, problem.num_silos, step, reached, math.nan)


SEEN = {
    "central": "who sees every round's model; the server is trusted with records",
    "last-iterate": "who sees the last model only; the aggregator is trusted",
    "inter-silo": "everybody but the record's silo, the server included",
    "shuffle": "who sees the shuffled messages",
    "local": "everybody, the record's own silo included; each record is a silo of its own",
}
UNRANKED = (
    "No explicit bound on the risk is known, so that these have no place above. Their noise is on uploaded models, and every silo",
    "takes part in every round with all its records, whatever the limits:",
)


class Row(NamedTuple):
    """One algorithm under one trust model.

    Attributes
    ----------
    trust, algorithm : str
        Names.
    protects : str
        What may be replaced: one "record", or one "silo" with all its records.
    setting : Setting or None
        The best setting, certified for the budget; None where there is none. Its risk bound is NaN where no explicit one is known.
    privacy_assumes, risk_assumes : str
        What the certified epsilon and the bound on the risk assume, beyond clipped gradients and fresh noise.
    reason : str
        Why there is no setting, or no bound on its risk; empty where there are both.
    """

    trust: str
    algorithm: str
    protects: str
    setting: Setting | None
    privacy_assumes: str
    risk_assumes: str
    reason: str

    @property
    def status(self) -> str:
        """What the numbers are worth."""
        if self.setting is None:
            return "no setting"
        bounded = not math.isnan(self.setting.risk_bound)
        return f"epsilon certified, {'explicit bound on the risk' if bounded else 'no bound on the risk'}"


@dataclass(frozen=True)
class Comparison:
    """Algorithms under all trust models; prints as a table.

    Parameters
    ----------
    problem : Problem
        The inputs, with what was left out filled in.
    ranked : tuple of Row
        With an explicit bound on the excess risk, the smallest first.
    unranked : tuple of Row
        Certified settings without such a bound: no rate takes its place.
    impossible : tuple of Row
        Without any setting, and why.
    calibrated, candidates : int
        How many settings had their noise calibrated, of how many; the others could not be among the best.
    """

    problem: Problem
    ranked: tuple[Row, ...]
    unranked: tuple[Row, ...]
    impossible: tuple[Row, ...]
    calibrated: int
    candidates: int

    def __str__(self) -> str:
        """Return the table."""
        problem = self.problem
        head = f"{'trust':<13}{'algorithm':<22}{'protects':<9}{'noise std':>10}{'rounds':>8}{'batch':>9}{'silos':>9}{'step':>10}{'epsilon':>10}"
        lines = [f"epsilon <= {problem.epsilon:g} at delta = {problem.delta:g}, each epsilon certified", ""]
        if self.ranked:
            lines += [f"{head}{'risk bound':>12}", *(f"{_cells(row)}{_bound(row)}" for row in self.ranked), ""]
        if self.unranked:
            lines += [*UNRANKED, head]
            lines += [*map(_cells, self.unranked), ""]
        if self.impossible:
            lines += [
                "Without a setting:",
                *(f"  {row.trust}, {row.algorithm}: {row.reason}" for row in self.impossible),
                "",
            ]
        shown = {row.trust for row in (*self.ranked, *self.unranked)}
        lines += ["Against:", *(f"  {trust}: {text}" for trust, text in SEEN.items() if trust in shown)]
        lines += ["Assumed beyond clipped gradients and fresh noise:"]
        return "\n".join([*lines, *_assumptions((*self.ranked, *self.unranked))])

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain numbers and words, for JSON; None where a number is not known."""
        parts = {name: getattr(self, name) for name in ("ranked", "unranked", "impossible")}
        rows = {name: [_plain(row) for row in part] for name, part in parts.items()}
        return {
            "inputs": dict(vars(self.problem)), **rows, "calibrated": self.calibrated, "candidates": self.candidates
        }  # fmt: skip


def _cells(row: Row) -> str:
    assert row.setting is not None
    s = row.setting
    step = "-" if math.isnan(s.learning_rate) else f"{s.learning_rate:.3g}"
    return (
        f"{row.trust:<13}{row.algorithm:<22}{row.protects:<9}{s.noise_std:>10.4g}{s.rounds:>8}{s.batch_size:>9}"
        f"{s.silos_per_round:>9}{step:>10} {format_upper(s.epsilon, '9.5g')}"
    )


def _bound(row: Row) -> str:
    assert row.setting is not None
    return " " + format_upper(row.setting.risk_bound, "11.4g")


def _assumptions(rows: tuple[Row, ...]) -> list[str]:
    """Return what each algorithm's numbers assume, once each."""
    told = {
        f"  {row.algorithm}: for the privacy {row.privacy_assumes}; for the risk {row.risk_assumes or row.reason}": None
        for row in rows
    }
    return list(told)


def _plain(row: Row) -> dict[str, Any]:
    known = {**row._asdict(), "status": row.status}
    if row.setting is not None:
        known["setting"] = {name: None if math.isnan(x) else x for name, x in row.setting._asdict().items()}
    return known


CONVEX = "convex, L-Lipschitz and beta-smooth losses, independent records"


class _Algorithm(NamedTuple):
    trust: str
    name: str
    candidates: Callable[[Problem], Iterable[Candidate]]
    risk_assumes: str
    protects: str = "record"
    privacy_assumes: str = "nothing"


def _with_pool(trust: str, name: str, search: Callable[..., Iterable[Candidate]], risk: str, **more: str) -> _Algorithm:
    return _Algorithm(trust, name, lambda problem: search(problem, pool_of(trust, problem)), risk, **more)


RANKED = (
    *(
        algorithm
        for trust in ("central", "inter-silo", "local")
        for algorithm in (
            _with_pool(trust, "MB-SGD", batches, f"{CONVEX}; average of the models"),
            _with_pool(trust, "one-pass SGD", one_pass, f"{CONVEX}; average of the models"),
            _with_pool(trust, "one-pass AC-SA", accelerated, f"{CONVEX}; phi of isrl.acsa_bound"),
            _with_pool(trust, "multi-stage AC-SA", multistage, f"{CONVEX}; stages of isrl.multistage_schedule"),
        )
    ),
    _with_pool(
        "central", "PNSGD, random stop", random_stop, CONVEX,
        privacy_assumes="convex and smooth losses; only the model after a random step is seen",
    ),
    _Algorithm("shuffle", "MB-SGD", shuffled, f"{CONVEX}; average of the models"),
    _Algorithm(
        "last-iterate", "trusted aggregator", aggregated, "strongly convex and smooth risk, minimum inside the ball",
        protects="silo", privacy_assumes="strongly convex and smooth losses; each silo takes part once",
    ),
)  # fmt: skip
NO_BOUND = "no explicit bound on the risk is known"
EVERY_SILO = "needs silos_per_round = num_silos: its theorem has every silo in every round"


def compare(
    *,
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
    local_steps: int = 5,
    num_rows: int | None = None,
    report: Report | None = None,
) -> Comparison:
    """Return the best setting of every algorithm under every trust model that one budget allows.

    Parameters
    ----------
    num_silos, num_records, dimension, lipschitz, diameter, smoothness, strong_convexity : int or float
        As in `plan`; strong_convexity may be 0 throughout.
    epsilon, delta, max_rounds, silos_per_round, max_batch_size : float or int
        As in `plan`.
    local_steps : int
        K of FedAvg and FedProx.
    num_rows : int, optional
        How many rows to rank at most; all if not given. Fewer take less time: what cannot be among them is not calibrated.
    report : callable, optional
        Called with the number of settings that are done, and that of all, after each.

    Returns
    -------
    Comparison
        Rows with an explicit bound on the excess risk, the smallest first; those without one, unranked; and what is not possible.

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    Every epsilon is certified. Risk bounds have all their constants: `isrl.mb_sgd_risk_bound` for many passes; the same without
    stability for a single one, whose gradients are those of the risk; `isrl.acsa_bound` of gradients with variance
    (L^2/K + d sigma^2)/M; halves of L D by `isrl.multistage_schedule`; D^2/(2 eta T) + eta (L^2 + d sigma^2)/2 for the random stop of
    projected noisy SGD, whose privacy is `last_iterate.best_random_stop`; `trusted_aggregator_excess_risk`. Orders of magnitude are
    in `risk_rates`, and never here. A bound of L D says nothing.

    Examples
    --------
    >>> from hockeystick import format_upper, utility
    >>> found = utility.compare(
    ...     num_silos=10,
    ...     num_records=2000,
    ...     dimension=20,
    ...     lipschitz=1.0,
    ...     diameter=2.0,
    ...     smoothness=1.0,
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ...     max_rounds=64,
    ...     num_rows=3,
    ... )
    >>> for row in found.ranked:
    ...     print(row.trust, row.algorithm, format_upper(row.setting.risk_bound, ".3g"))
    central one-pass AC-SA 0.0425
    inter-silo one-pass AC-SA 0.0887
    central PNSGD, random stop 0.252
    """
    problem = checked_inputs(Problem, locals())
    local_steps = count_scalar("local_steps", local_steps)
    most = len(RANKED) if num_rows is None else count_scalar("num_rows", num_rows)
    setting_warnings.warn(setting_warnings.large_delta(problem.delta, problem.num_records * problem.num_silos))
    reasons = [""] * len(RANKED)
    groups = [_candidates(number, problem, reasons) for number in range(len(RANKED))]
    best = smallest(groups, most, report)
    ranked = [_row(RANKED[number], setting) for number, setting in best.found if setting.risk_bound < math.inf]
    failed = {number for number, setting in best.found if setting.risk_bound == math.inf}
    none = [
        _row(RANKED[number], None, reasons[number])
        for number, group in enumerate(groups)
        if not group or number in failed
    ]
    unranked, refused = _without_bounds(problem, local_steps)
    return Comparison(
        problem, tuple(ranked), unranked, (*none, *refused), best.calibrated, sum(len(group) for group in groups)
    )


def _candidates(number: int, problem: Problem, reasons: list[str]) -> list[Candidate]:
    """Return what an algorithm tries; where it cannot be tried, note the reason."""

    def forgiving(candidate: Candidate) -> Setting:
        try:
            return candidate.evaluate()
        except ValueError as error:
            reasons[number] = str(error)
            return Setting(math.nan, 0, 0, 0, math.nan, math.nan, math.inf)

    try:
        found = list(RANKED[number].candidates(problem))
    except ValueError as error:
        reasons[number] = str(error)
        return []
    if not found:
        reasons[number] = "the first stage does not fit into max_rounds"
    return [Candidate(one.least_risk, partial(forgiving, one)) for one in found]


def _row(algorithm: _Algorithm, setting: Setting | None, reason: str = "") -> Row:
    trust, name, _, risk, protects, privacy = algorithm
    return Row(trust, name, protects, setting, privacy, risk, reason)


def _without_bounds(problem: Problem, local_steps: int) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Return the rows of FedAvg and FedProx, for which no explicit bound on the risk is known, and those that do not apply."""
    everybody = problem.silos_per_round == problem.num_silos
    averaged = partial(fedavg, problem, local_steps, averaged=problem.num_silos) if everybody else None
    proximal = partial(fedprox, problem, local_steps) if everybody else None
    uploads = partial(fedavg, problem, local_steps, averaged=1)
    settings: tuple[tuple[str, str, Callable[[], Setting] | None, str], ...] = (
        ("last-iterate", "FedAvg", averaged, "nothing; every silo takes part in every round"),
        ("last-iterate", "FedProx", proximal, "smooth losses; every silo takes part in every round"),
        ("inter-silo", "FedAvg, uploads seen", uploads, "nothing"),
    )
    rows = [
        Row(trust, name, "record", make() if make else None, assumes, "", NO_BOUND if make else EVERY_SILO)
        for trust, name, make, assumes in settings
    ]
    return tuple(row for row in rows if row.setting), tuple(row for row in rows if not row.setting)
