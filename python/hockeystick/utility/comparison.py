"""All algorithms under all trust models for one budget: which noise each needs, and which risk it is known to reach."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from hockeystick._checks import count_scalar, setting_warnings
from hockeystick.utility.algorithms import ALGORITHMS, PROX, Algorithm, uploaded
from hockeystick.utility.settings import (
    BOUND,
    HEAD,
    SEEN,
    Candidate,
    Problem,
    Report,
    Setting,
    cells,
    checked_inputs,
    smallest,
    without_nan,
)

__all__ = ["Comparison", "Row", "compare"]

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


def _cells(row: Row) -> str:
    assert row.setting is not None
    return f"{row.trust:<13}{row.algorithm:<22}{row.protects:<9}{cells(row.setting)}"


def _plain(row: Row) -> dict[str, Any]:
    setting = None if row.setting is None else without_nan(row.setting._asdict())
    return {**row._asdict(), "status": row.status, "setting": setting}


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
        head = f"{'trust':<13}{'algorithm':<22}{'protects':<9}{HEAD}"
        lines = [f"epsilon <= {self.problem.epsilon:g} at delta = {self.problem.delta:g}, each epsilon certified", ""]
        if self.ranked:
            lines += [f"{head}{BOUND}", *map(_cells, self.ranked), ""]
        if self.unranked:
            lines += [*UNRANKED, head, *map(_cells, self.unranked), ""]
        if self.impossible:
            refused = (f"  {row.trust}, {row.algorithm}: {row.reason}" for row in self.impossible)
            lines += ["Without a setting:", *refused, ""]
        shown = (*self.ranked, *self.unranked)
        trusts = {row.trust for row in shown}
        lines += ["Against:", *(f"  {trust}: {text}" for trust, text in SEEN.items() if trust in trusts)]
        lines += ["Assumed beyond clipped gradients and fresh noise:"]
        assumed = dict.fromkeys(
            f"  {row.algorithm}: for the privacy {row.privacy_assumes}; for the risk {row.risk_assumes or row.reason}"
            for row in shown
        )
        return "\n".join([*lines, *assumed])

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain numbers and words, for JSON; None where a number is not known."""
        parts = {name: getattr(self, name) for name in ("ranked", "unranked", "impossible")}
        rows = {name: [_plain(row) for row in part] for name, part in parts.items()}
        return {
            "inputs": dict(vars(self.problem)), **rows, "calibrated": self.calibrated, "candidates": self.candidates
        }  # fmt: skip


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
    most = len(ALGORITHMS) if num_rows is None else count_scalar("num_rows", num_rows)
    setting_warnings.warn(setting_warnings.large_delta(problem.delta, problem.num_records * problem.num_silos))
    reasons: dict[int, str] = {}
    groups = [_candidates(number, problem, reasons) for number in range(len(ALGORITHMS))]
    best = smallest(groups, most, report)
    ranked = [_row(ALGORITHMS[number], setting) for number, setting in best.found if setting.risk_bound < math.inf]
    failed = {number for number, setting in best.found if setting.risk_bound == math.inf}
    none = [
        _row(ALGORITHMS[number], None, reasons[number])
        for number, group in enumerate(groups)
        if not group or number in failed
    ]
    others = _without_bounds(problem, local_steps)
    unranked = tuple(row for row in others if row.setting)
    none += [row for row in others if not row.setting]
    return Comparison(problem, tuple(ranked), unranked, tuple(none), best.calibrated, sum(map(len, groups)))


def _candidates(number: int, problem: Problem, reasons: dict[int, str]) -> list[Candidate]:
    """Return what an algorithm tries; where it cannot be tried, note the reason."""

    def forgiving(candidate: Candidate) -> Setting:
        try:
            return candidate.evaluate()
        except ValueError as error:
            reasons[number] = str(error)
            return Setting(math.nan, 0, 0, 0, math.nan, math.nan, math.inf)

    reasons[number] = "the first stage does not fit into max_rounds"  # if it has no candidates and no other reason
    try:
        found = list(ALGORITHMS[number].settings(problem))
    except ValueError as error:
        reasons[number] = str(error)
        return []
    return [Candidate(one.least_risk, partial(forgiving, one)) for one in found]


def _row(algorithm: Algorithm, setting: Setting | None, reason: str = "") -> Row:
    trust, name, _, risk, protects, privacy = algorithm
    return Row(trust, name, protects, setting, privacy, risk, reason)


def _without_bounds(problem: Problem, local_steps: int) -> list[Row]:
    """Return the rows of FedAvg and FedProx, for which no explicit bound on the risk is known, also where they do not apply."""

    def row(trust: str, name: str, assumes: str, averaged: int, prox: float = 0.0) -> Row:
        applies = averaged == 1 or problem.silos_per_round == problem.num_silos
        setting = uploaded(problem, local_steps, averaged=averaged, prox=prox) if applies else None
        return Row(trust, name, "record", setting, assumes, "", NO_BOUND if applies else EVERY_SILO)

    everybody, pull = "every silo takes part in every round", PROX * problem.smoothness
    return [
        row("last-iterate", "FedAvg", f"nothing; {everybody}", problem.num_silos),
        row("last-iterate", "FedProx", f"smooth losses; {everybody}", problem.num_silos, pull),
        row("inter-silo", "FedAvg, uploads seen", "nothing", 1),
    ]
