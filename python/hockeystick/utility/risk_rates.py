"""Upper rates of the risk and the lower ones that match them, side by side: all of them orders of magnitude."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from hockeystick import isrl
from hockeystick._checks import at_most, positive_scalar
from hockeystick.utility.settings import Problem, checked_inputs, without_nan

__all__ = ["RatePair", "RiskRates", "risk_rates"]


class RatePair(NamedTuple):
    """An upper rate of an algorithm and the lower rate that no algorithm of the same privacy undercuts, in order.

    Attributes
    ----------
    algorithm, notion : str
        Whose rate, and which privacy.
    objective : {"population", "empirical"}
        Whose excess risk.
    upper_source, lower_source : str
        Theorems of Lowy and Razaviyayn 2023.
    upper, lower : float
        The rates, each with the constant 1 in place of one that is not known; NaN where there is none.
    rounds : float
        Rounds in which the upper rate is reached, in order; NaN where the theorem says nothing.
    remark : str
        When the lower rate applies, or why there is none.
    """

    algorithm: str
    notion: str
    objective: str
    upper_source: str
    upper: float
    rounds: float
    lower_source: str
    lower: float
    remark: str


@dataclass(frozen=True)
class RiskRates:
    """Rates of one problem; prints as a table.

    Parameters
    ----------
    problem : Problem
        The inputs, with what was left out filled in; its max_rounds and max_batch_size mean nothing here.
    pairs : tuple of RatePair
        In the order of the paper's Figure 3.
    """

    problem: Problem
    pairs: tuple[RatePair, ...]

    def __str__(self) -> str:
        """Return the table."""
        kind = "strongly convex" if self.problem.strong_convexity > 0 else "convex"
        head = f"{'algorithm':<26}{'privacy':<14}{'risk':<12}{'upper':>10}{'from':>7}{'lower':>10}{'from':>7}{'ratio':>8}{'rounds':>10}"
        lines = [
            f"Orders of magnitude for {kind} losses: constants are 1 in place of unknown ones; neither column is a bound",
            "",
            head,
            *map(_line, self.pairs),
        ]
        remarks = dict.fromkeys(f"{pair.algorithm}: {pair.remark}" for pair in self.pairs if pair.remark)
        return "\n".join([*lines, *([""] if remarks else []), *remarks])

    def to_dict(self) -> dict[str, Any]:
        """Return the rates as plain numbers and words, for JSON; None where there is no number."""
        unused = ("max_rounds", "max_batch_size")  # of plans, which risk_rates does not take
        inputs = {name: value for name, value in vars(self.problem).items() if name not in unused}
        return {"inputs": inputs, "order_only": True, "pairs": [without_nan(pair._asdict()) for pair in self.pairs]}


def _line(pair: RatePair) -> str:
    def cell(value: float, width: int) -> str:
        return f"{'-' if math.isnan(value) else format(value, '.3g'):>{width}}"

    return (
        f"{pair.algorithm:<26}{pair.notion:<14}{pair.objective:<12}{cell(pair.upper, 10)}{pair.upper_source:>7}"
        f"{cell(pair.lower, 10)}{pair.lower_source:>7}{cell(pair.upper / pair.lower, 8)}{cell(pair.rounds, 10)}"
    )


def risk_rates(
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
    silos_per_round: int | None = None,
    gradient_std: float | None = None,
    heterogeneity: float | None = None,
) -> RiskRates:
    r"""Return the rates of the excess risk that private algorithms reach, beside those that none can undercut.

    Parameters
    ----------
    num_silos, num_records, dimension : int
        N, n, d.
    lipschitz, diameter, smoothness : float
        L, D, beta; positive.
    strong_convexity : float
        mu, in [0, smoothness].
    epsilon, delta : float
        Budget; epsilon positive, delta in (0, 1).
    silos_per_round : int, optional
        M; all if not given. Lower rates are those of M = N.
    gradient_std : float, optional
        phi, at most L; L if not given.
    heterogeneity : float, optional
        upsilon, positive; L if not given. Without effect for M = N.

    Returns
    -------
    RiskRates
        Pairs of rates; orders of magnitude, never bounds.

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    Figure 3 of Lowy and Razaviyayn 2023, with the logarithms. A lower rate with C > 1 is that of algorithms as compositional as the
    upper one's: a single pass of R disjoint batches has C^2 = R. Rounds are `isrl.mb_sgd_rounds`, `isrl.shuffle_rounds`, `isrl.erm_rounds` for full batches, and
    n/K for a single pass. Bounds with their constants are in `compare`; the two are not to be ranked together.

    Examples
    --------
    >>> from hockeystick import format_upper, utility
    >>> rates = utility.risk_rates(
    ...     num_silos=25, num_records=1000, dimension=10, lipschitz=1.0, diameter=2.0, smoothness=1.0, epsilon=1.0, delta=1e-5
    ... )
    >>> pair = rates.pairs[0]
    >>> print(f"{pair.algorithm}: {format_upper(pair.upper, '.4f')} ({pair.upper_source}) against {pair.lower:.4f} ({pair.lower_source})")
    MB-SGD: 0.0170 (2.1) against 0.0139 (2.2)
    """
    problem = checked_inputs(Problem, {**locals(), "max_rounds": 1, "max_batch_size": None})
    phi = problem.lipschitz if gradient_std is None else positive_scalar("gradient_std", gradient_std)
    at_most("gradient_std", phi, "lipschitz", problem.lipschitz)
    upsilon = problem.lipschitz if heterogeneity is None else positive_scalar("heterogeneity", heterogeneity)
    inputs = _Inputs(**vars(problem), gradient_std=phi, heterogeneity=upsilon, initial_gap=problem.gap)
    return RiskRates(problem, _pairs(inputs))


@dataclass(frozen=True)
class _Inputs(Problem):
    """The inputs of a plan, and what else the functions of `isrl` take, by the names that they have for it."""

    gradient_std: float
    heterogeneity: float
    initial_gap: float


def _pairs(inputs: _Inputs) -> tuple[RatePair, ...]:
    total = inputs.num_silos * inputs.num_records
    erm = inputs.of(isrl.erm_rounds, batch_size=inputs.num_records)
    own = inputs.of(isrl.excess_risk_rate_iid, silos_per_round=total, num_records=1)
    rounds, shuffled = inputs.of(isrl.mb_sgd_rounds), inputs.of(isrl.shuffle_rounds)
    lower, empirical = _lower(inputs, "2.2"), _lower(inputs, "F.3", problem="empirical")
    central = _lower(inputs, "D.6", notion="central")
    alone = _lower(inputs, "2.2", num_silos=total, num_records=1)
    one_pass, shuffled_pass = _single_passes(inputs)
    return (
        _pair("MB-SGD", "inter-silo", "2.1", inputs.of(isrl.excess_risk_rate_iid), rounds, lower),
        one_pass,
        _pair("accelerated MB-SGD", "inter-silo", "4.1", inputs.of(isrl.erm_rate), erm, empirical),
        _pair("shuffled MB-SGD", "shuffle", "5.1", inputs.of(isrl.shuffle_rate), shuffled, central),
        shuffled_pass,
        _pair("MB-SGD, n = 1", "local", "2.1", own, math.nan, alone),
    )


def _pair(  # noqa: PLR0917, in the order of its fields
    algorithm: str, notion: str, source: str, upper: isrl.Rate, rounds: float, lower: tuple[str, float, str, str]
) -> RatePair:
    lower_source, value, objective, remark = lower
    reached = float(upper.value)
    return RatePair(algorithm, notion, objective, source, reached, float(rounds), lower_source, value, remark)


def _lower(inputs: _Inputs, source: str, **others: Any) -> tuple[str, float, str, str]:
    """Return a lower rate with its theorem, its objective and a remark; NaN with the reason where it does not apply."""
    objective = others.get("problem", "population")
    silos = others.get("num_silos", inputs.num_silos)
    if others.get("notion") != "central" and inputs.epsilon > math.sqrt(silos):
        return source, math.nan, objective, f"Theorem {source} needs epsilon <= sqrt(N)"
    everybody = "num_silos" in others or inputs.silos_per_round == inputs.num_silos
    few = "" if everybody else "the lower rate is that of M = N"
    return source, float(inputs.of(isrl.risk_lower_bound, **others).value), objective, few


def _single_passes(inputs: _Inputs) -> tuple[RatePair, RatePair]:
    """Return the accelerated single pass for unequal silos, without and with a shuffler."""
    rates: list[Callable[..., Any]]
    sizes: list[Callable[..., Any]]
    if inputs.strong_convexity > 0:
        rates = [isrl.one_pass_rate_sc, isrl.sdp_one_pass_rate_sc]
        sizes = [isrl.one_pass_batch_size_sc, isrl.sdp_batch_size_sc]
    else:
        rates = [isrl.one_pass_rate, isrl.sdp_one_pass_rate]
        sizes = [isrl.one_pass_batch_size, isrl.sdp_batch_size]
    upper, shuffled = map(inputs.of, rates)
    rounds, shuffled_rounds = (_rounds(inputs, size) for size in sizes)
    constant = 1.0 if math.isnan(rounds) else math.sqrt(rounds)
    source, value, objective, remark = _lower(inputs, "2.2", compositionality=constant)
    least = "the lower rate needs an epsilon of order 1/n or few silos"
    lower = source, value, objective, "; ".join(filter(None, (remark, least)))
    central = _lower(inputs, "D.6", notion="central")
    return (
        _pair("one-pass AC-SA", "inter-silo", "3.1", upper, rounds, lower),
        _pair("shuffled one-pass AC-SA", "shuffle", "5.2", shuffled, shuffled_rounds, central),
    )


def _rounds(inputs: _Inputs, batch_size: Callable[..., Any]) -> float:
    """Return how many batches of the theorem's size a silo has, at least 1; NaN if it has too few records for a logarithm."""
    records = inputs.num_records
    try:
        return records / min(max(float(inputs.of(batch_size)), 1.0), float(records))
    except ValueError:
        return math.nan
