"""What a comparison of algorithms and trust models holds, and how it is printed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from hockeystick._numeric.printing import format_upper
from hockeystick.utility.problem import Problem
from hockeystick.utility.settings import Setting

__all__ = ["Comparison", "Row"]

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
