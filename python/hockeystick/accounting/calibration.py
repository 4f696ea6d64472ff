"""One free parameter of a training, from a privacy budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hockeystick._checks import DELTA, LARGEST_COUNT, non_negative_scalar, probability_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.printing import format_upper
from hockeystick._numeric.search import Probe, narrow
from hockeystick.accounting.privacy_curve import Curve, true_positive_rates

__all__ = ["calibrate"]

TOLERANCE = 1e-9


def calibrate(
    make_accountant: Callable[[Any], Any],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    advantage: float | None = None,
    tpr: float | None = None,
    fpr: float | None = None,
    bracket: tuple[float, float],
    integer: bool = False,
) -> float | int:
    """Return the value of one parameter that spends a budget, and never more.

    The budget is an epsilon at a delta; or the advantage of a membership attack; or its true-positive rate at a false-positive rate.

    Parameters
    ----------
    make_accountant : callable
        Takes the parameter (an int if `integer`) and returns an `Accountant`, or another guarantee with methods `epsilon` and `delta`. What is spent must rise or fall with it all the
        way; which of the two is found out at the ends of the bracket.
    epsilon : float, optional
        Budget, non-negative and finite, together with `delta`.
    delta : float, optional
        Budget, in [0, 1).
    advantage : float, optional
        Budget, in [0, 1]: the largest true-positive less false-positive rate of any membership attack, `Accountant.advantage`.
    tpr : float, optional
        Budget, in [0, 1], together with `fpr`: the largest true-positive rate of any membership attack, `hockeystick.risk.true_positive_rate`.
    fpr : float, optional
        Its false-positive rate, in [0, 1] and at most `tpr`.
    bracket : (float, float)
        Two different finite values between which to look; integers if `integer`.
    integer : bool
        Look among integers only.

    Returns
    -------
    float or int
        The feasible value next to the infeasible ones, to 1e-9 of itself or exactly among integers. The certified
        ``make_accountant(x).epsilon(delta)``, or what else is the budget, was computed there and is within it. If both ends are
        feasible, the end that spends more.

    Raises
    ------
    ValueError
        If both ends of the bracket exceed the budget (the message has what they spend), not exactly one budget is given, or
        an argument is outside its domain.
    TypeError
        If an argument is of the wrong type, or `make_accountant` returns something else.

    Examples
    --------
    >>> import hockeystick as hs
    >>> def training(noise_multiplier):
    ...     return hs.Accountant().compose(hs.Gaussian(noise_multiplier), 100)
    >>> noise_multiplier = hs.calibrate(training, epsilon=1.0, delta=1e-5, bracket=(1.0, 100.0))
    >>> print(hs.format_upper(noise_multiplier, ".6f"), training(noise_multiplier).epsilon(1e-5) <= 1.0)
    37.306317 True

    So that no attack that accuses one record in a thousand wrongly finds more than one in a hundred:

    >>> print(hs.format_upper(hs.calibrate(training, tpr=0.01, fpr=0.001, bracket=(1.0, 1000.0)), ".4f"))
    13.0910
    """
    if not callable(make_accountant):
        raise TypeError(f"make_accountant must be callable, not {shown(make_accountant)}")
    budget = _budget(epsilon=epsilon, delta=delta, advantage=advantage, tpr=tpr, fpr=fpr)
    ends = _ends(bracket, integer=integer)

    def spent(x: float) -> float:
        accountant = make_accountant(round(x) if integer else x)
        if not all(
            callable(getattr(accountant, name, None)) for name in ("epsilon", "delta")
        ):  # a mechanism has numbers
            raise TypeError(
                f"make_accountant must return an Accountant, or a guarantee with methods epsilon and delta, not {shown(accountant)}"
            )
        return budget.spent(accountant)

    at_ends = [spent(x) for x in ends]
    probes = [Probe(x, _excess(reached, budget.allowed)) for x, reached in zip(ends, at_ends, strict=True)]
    feasible = [probe for probe in probes if probe.excess <= 0]
    if not feasible:
        first, second = (f"{format_upper(reached)} at {x:g}" for x, reached in zip(ends, at_ends, strict=True))
        raise ValueError(
            f"bracket must have an end whose {budget.name} is at most {budget.allowed}, not {first} and {second}; widen it"
        )
    if len(feasible) == len(probes):
        best = max(feasible, key=lambda probe: probe.excess)
    else:
        bad = next(probe for probe in probes if probe.excess > 0)
        best = narrow(lambda x: _excess(spent(x), budget.allowed), feasible[0], bad, tolerance=TOLERANCE, whole=integer)
    return round(best.x) if integer else best.x


@dataclass(frozen=True)
class Budget:
    """What may be spent, its name, and what a guarantee spends of it."""

    name: str
    allowed: float
    spent: Callable[[Any], float]


def _budget(**arguments: Any) -> Budget:
    """Return the one budget that was given."""
    given = {name: value for name, value in arguments.items() if value is not None}
    if given.keys() == {"advantage"}:
        return Budget(
            "advantage", probability_scalar("advantage", given["advantage"]), lambda found: float(found.delta(0.0))
        )
    if given.keys() == {"epsilon", "delta"}:
        delta, epsilon = scalar("delta", given["delta"], *DELTA), non_negative_scalar("epsilon", given["epsilon"])
        return Budget(f"epsilon at delta={delta}", epsilon, lambda accountant: float(accountant.epsilon(delta)))
    if given.keys() == {"tpr", "fpr"}:
        fpr = probability_scalar("fpr", given["fpr"])
        tpr = scalar("tpr", given["tpr"], lambda x: fpr <= x <= 1, f"lie in [fpr, 1] = [{fpr}, 1]")

        def found(accountant: Any) -> float:
            return float(true_positive_rates(Curve(accountant.delta, accountant.epsilon), np.array([fpr]))[0])

        return Budget(f"true-positive rate at fpr={fpr}", tpr, found)
    words = ", ".join(f"{name}={value}" for name, value in given.items()) or "none"
    raise ValueError(f"one budget must be given: epsilon and delta, or advantage, or tpr and fpr; not {words}")


def _ends(bracket: tuple[float, float], *, integer: bool) -> list[float]:
    try:
        low, high = bracket
    except (TypeError, ValueError):
        raise TypeError(f"bracket must be two numbers, not {shown(bracket)}") from None
    ends = [scalar("bracket", x, math.isfinite, "hold finite numbers") for x in (low, high)]
    if ends[0] == ends[1]:
        raise ValueError(f"bracket must hold two different numbers, not {shown(bracket)}")
    if integer and not all(x.is_integer() and abs(x) <= LARGEST_COUNT for x in ends):
        raise ValueError(f"bracket must hold integers of at most 2^53 if integer=True, not {shown(bracket)}")
    return ends


def _excess(reached: float, allowed: float) -> float:
    """Return a number of the sign of reached - allowed: of logarithms, which are straighter, where there are some."""
    if reached == allowed:
        return 0.0
    if 0.0 < reached < math.inf and allowed > 0.0:
        return math.log(reached / allowed) or math.copysign(5e-324, reached - allowed)
    return reached - allowed
