"""All algorithms under all trust models for one budget: which noise each needs, and which risk it is known to reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from hockeystick._checks import count_scalar, setting_warnings
from hockeystick.utility import algorithm_settings as tried
from hockeystick.utility.aggregator_settings import aggregated
from hockeystick.utility.comparison_rows import Comparison, Row
from hockeystick.utility.problem import Problem, checked_problem
from hockeystick.utility.search import Report, smallest
from hockeystick.utility.settings import Candidate, Setting, batches, pool_of, shuffled

__all__ = ["compare"]

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
            _with_pool(trust, "one-pass SGD", tried.one_pass, f"{CONVEX}; average of the models"),
            _with_pool(trust, "one-pass AC-SA", tried.accelerated, f"{CONVEX}; phi of isrl.acsa_bound"),
            _with_pool(trust, "multi-stage AC-SA", tried.multistage, f"{CONVEX}; stages of isrl.multistage_schedule"),
        )
    ),
    _with_pool(
        "central", "PNSGD, random stop", tried.random_stop, CONVEX,
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
    problem = checked_problem(
        num_silos=num_silos,
        num_records=num_records,
        dimension=dimension,
        lipschitz=lipschitz,
        diameter=diameter,
        smoothness=smoothness,
        strong_convexity=strong_convexity,
        epsilon=epsilon,
        delta=delta,
        max_rounds=max_rounds,
        silos_per_round=silos_per_round,
        max_batch_size=max_batch_size,
    )
    return _compared(problem, local_steps, num_rows, report)


def _compared(problem: Problem, local_steps: int, num_rows: int | None, report: Report | None) -> Comparison:
    local_steps = count_scalar("local_steps", local_steps)
    most = len(RANKED) if num_rows is None else count_scalar("num_rows", num_rows)
    setting_warnings.warn(setting_warnings.large_delta(problem.delta, problem.num_records * problem.num_silos), skip=1)
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
    return Row(
        algorithm.trust,
        algorithm.name,
        algorithm.protects,
        setting,
        algorithm.privacy_assumes,
        algorithm.risk_assumes,
        reason,
    )


def _without_bounds(problem: Problem, local_steps: int) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Return the rows of FedAvg and FedProx, for which no explicit bound on the risk is known, and those that do not apply."""
    everybody = problem.silos_per_round == problem.num_silos
    settings: tuple[tuple[str, str, Callable[[], Setting] | None, str], ...] = (
        (
            "last-iterate",
            "FedAvg",
            partial(tried.fedavg, problem, local_steps, averaged=problem.num_silos) if everybody else None,
            "nothing; every silo takes part in every round",
        ),
        (
            "last-iterate",
            "FedProx",
            partial(tried.fedprox, problem, local_steps) if everybody else None,
            "smooth losses; every silo takes part in every round",
        ),
        ("inter-silo", "FedAvg, uploads seen", partial(tried.fedavg, problem, local_steps, averaged=1), "nothing"),
    )
    rows = [
        Row(trust, name, "record", make() if make else None, assumes, "", NO_BOUND if make else EVERY_SILO)
        for trust, name, make, assumes in settings
    ]
    return tuple(row for row in rows if row.setting), tuple(row for row in rows if not row.setting)
