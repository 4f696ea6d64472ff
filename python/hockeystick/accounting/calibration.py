"""One free parameter of a training, from a privacy budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hockeystick._checks import DELTA, LARGEST_COUNT, scalar
from hockeystick._numeric.printing import format_upper
from hockeystick._numeric.search import Probe, narrow
from hockeystick.accounting.accountant import Accountant

__all__ = ["calibrate"]

TOLERANCE = 1e-9


def calibrate(
    make_accountant: Callable[[Any], Accountant],
    *,
    epsilon: float,
    delta: float,
    bracket: tuple[float, float],
    integer: bool = False,
) -> float | int:
    """Return the value of one parameter that spends a budget, and never more.

    Parameters
    ----------
    make_accountant : callable
        Takes the parameter (an int if `integer`) and returns an `Accountant`. Epsilon must rise or fall with it all the
        way; which of the two is found out at the ends of the bracket.
    epsilon : float
        Budget, non-negative and finite.
    delta : float
        Budget, in [0, 1).
    bracket : (float, float)
        Two different finite values between which to look; integers if `integer`.
    integer : bool
        Look among integers only.

    Returns
    -------
    float or int
        The feasible value next to the infeasible ones, to 1e-9 of itself or exactly among integers. The certified
        ``make_accountant(x).epsilon(delta)`` was computed there and is at most `epsilon`. If both ends are feasible, the
        end that spends more.

    Raises
    ------
    ValueError
        If both ends of the bracket exceed the budget (the message has their epsilons), or an argument is outside its
        domain.
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
    """
    if not callable(make_accountant):
        msg = f"make_accountant must be callable, not {make_accountant!r}"
        raise TypeError(msg)
    epsilon = scalar("epsilon", epsilon, lambda x: 0 <= x < math.inf, "be non-negative and finite")
    delta = scalar("delta", delta, *DELTA)
    ends = _ends(bracket, integer=integer)

    def spent(x: float) -> float:
        accountant = make_accountant(round(x) if integer else x)
        if not isinstance(accountant, Accountant):
            msg = f"make_accountant must return an Accountant, not {accountant!r}"
            raise TypeError(msg)
        return float(accountant.epsilon(delta))

    at_ends = [spent(x) for x in ends]
    probes = [Probe(x, _excess(reached, epsilon)) for x, reached in zip(ends, at_ends, strict=True)]
    feasible = [probe for probe in probes if probe.excess <= 0]
    if not feasible:
        first, second = (f"{format_upper(reached)} at {x:g}" for x, reached in zip(ends, at_ends, strict=True))
        msg = (
            f"bracket must have an end whose epsilon at delta={delta} is at most {epsilon}, "
            f"not epsilons {first} and {second}; widen it"
        )
        raise ValueError(msg)
    if len(feasible) == len(probes):
        best = max(feasible, key=lambda probe: probe.excess)
    else:
        bad = next(probe for probe in probes if probe.excess > 0)
        best = narrow(lambda x: _excess(spent(x), epsilon), feasible[0], bad, tolerance=TOLERANCE, whole=integer)
    return round(best.x) if integer else best.x


def _ends(bracket: tuple[float, float], *, integer: bool) -> list[float]:
    try:
        low, high = bracket
    except (TypeError, ValueError):
        msg = f"bracket must be two numbers, not {bracket!r}"
        raise TypeError(msg) from None
    ends = [scalar("bracket", x, math.isfinite, "hold finite numbers") for x in (low, high)]
    if ends[0] == ends[1]:
        msg = f"bracket must hold two different numbers, not {bracket!r}"
        raise ValueError(msg)
    if integer and not all(x.is_integer() and abs(x) <= LARGEST_COUNT for x in ends):
        msg = f"bracket must hold integers of at most 2^53 if integer=True, not {bracket!r}"
        raise ValueError(msg)
    return ends


def _excess(reached: float, allowed: float) -> float:
    """Return a number of the sign of reached - allowed: of logarithms, which are straighter, where there are some."""
    if reached == allowed:
        return 0.0
    if 0.0 < reached < math.inf and allowed > 0.0:
        return math.log(reached / allowed) or math.copysign(5e-324, reached - allowed)
    return reached - allowed
