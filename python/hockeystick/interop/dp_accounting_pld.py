"""Privacy loss distributions of dp_accounting, to and fro."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array, positive_scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import UP
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.composition import Composition
from hockeystick.mechanisms import Discrete, DiscretePairs

NEED = 'hockeystick.interop.dp_accounting needs dp_accounting: pip install ".[dp-accounting]" in a clone'

try:
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution
except ImportError:  # asked for when first needed
    pld_pmf = privacy_loss_distribution = None

__all__ = ["from_pld", "to_pld"]

LARGEST_GRID = 4_000_000  # points
TAIL = math.exp(-50.0)  # mass that `to_pld` sends to infinity in each step


def to_pld(accountant: Accountant, *, value_discretization_interval: float = 1e-4) -> Any:
    """Return an accountant's ledger as a privacy loss distribution of dp_accounting.

    Parameters
    ----------
    accountant : Accountant
        Of hockeystick; the `accountant` of a `HockeyStickAccountant` is one.
    value_discretization_interval : float
        Grid step of the privacy loss, positive.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Pessimistic: each step connects the dots of our certified deltas. Composed by dp_accounting, whose transforms
        are in doubles and not certified.

    Raises
    ------
    ValueError
        If the interval is not positive, or needs more than 4 million points for a step.
    ImportError
        If dp_accounting is not installed.

    Examples
    --------
    >>> import hockeystick as hs
    >>> pld = to_pld(hs.Accountant().compose(hs.Laplace(2.0), 4))
    >>> print(hs.format_upper(pld.get_epsilon_for_delta(0.01), ".2f"))
    1.86
    """
    if pld_pmf is None:
        raise ImportError(NEED)
    h = positive_scalar("value_discretization_interval", value_discretization_interval)
    composition = Composition(accountant.ledger, accountant.adjacency)
    composition.require_certified()
    steps = composition.steps(upper=True)
    symmetric = all(pair.symmetric for pair, _ in steps)
    total = None
    for pair, count in steps:
        directions = (True,) if symmetric else (True, False)
        step = privacy_loss_distribution.PrivacyLossDistribution(*(_dots(pair, up, h) for up in directions))
        repeated = step.self_compose(int(count)) if count > 1 else step
        total = repeated if total is None else total.compose(repeated)
    return privacy_loss_distribution.identity(h) if total is None else total


def _dots(pair: core.Pair, forward: bool, h: float) -> Any:
    """Return one direction of one step on the grid."""
    bottom, top = (-_highest(pair, not forward), _highest(pair, forward))
    if (top - bottom) / h > LARGEST_GRID:
        msg = f"value_discretization_interval={h} needs more than {LARGEST_GRID} points for losses from {bottom:g} to {top:g}"
        raise ValueError(msg)
    first, last = math.floor(bottom / h), math.ceil(top / h)
    deltas = [_delta(pair, forward, i * h) for i in range(first, last + 1)]
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(h, first, last, np.minimum.accumulate(deltas))


def _highest(pair: core.Pair, forward: bool) -> float:
    """Return a loss beyond which there is nothing, or next to nothing."""
    _, most, _, infinite = pair.limits(forward)
    spared = min(infinite * (1 + 1e-13) + TAIL, 1.0)
    return max(min(most, pair.one_step(forward, True, spared)[1]), 0.0)


def _delta(pair: core.Pair, forward: bool, eps: float) -> float:
    """Return the upper end of delta, at a negative eps by that of the other direction."""
    if eps >= 0:
        return float(pair.one_step(forward, False, eps)[1])
    other = pair.one_step(not forward, False, -eps)[1]
    return float(min((-math.expm1(eps) + math.exp(eps) * other) * UP, 1.0))


def from_pld(pld: Any) -> DiscretePairs:
    """Return a privacy loss distribution of dp_accounting as a mechanism of ours.

    Parameters
    ----------
    pld : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        A pessimistic one.

    Returns
    -------
    DiscretePairs
        A pair of discrete distributions for each direction, dominating wherever the distribution did. Mass that rounding
        has lost goes to infinite loss; losses so low that they do not fit a pair are raised.

    Raises
    ------
    ValueError
        If the distribution is optimistic, which bounds nothing from above, or has no mass.
    TypeError
        If it is not one of dp_accounting.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from dp_accounting.pld import privacy_loss_distribution
    >>> step = from_pld(privacy_loss_distribution.from_laplace_mechanism(2.0))
    >>> print(f"{hs.Accountant().compose(step, 4).epsilon_bracket(0.01):.2f}")
    1.86
    """
    pmfs = [getattr(pld, name, None) for name in ("_pmf_remove", "_pmf_add")]
    if None in pmfs:
        msg = f"pld must be a PrivacyLossDistribution of dp_accounting, not {shown(pld)}"
        raise TypeError(msg)
    return DiscretePairs(*(_pair(pmf.to_dense_pmf()) for pmf in pmfs if pmf is not None))


def _pair(pmf: Any) -> Discrete:
    """Return P and Q on the grid's losses, infinite loss, and outcomes of Q alone."""
    if not pmf._pessimistic_estimate:
        msg = "pld must be pessimistic: an optimistic one bounds nothing from above"
        raise ValueError(msg)
    p = np.maximum(np.asarray(pmf._probs, dtype=np.float64), 0.0)
    losses = (pmf._lower_loss + np.arange(p.size)) * pmf._discretization
    p, losses = _raised(p, losses)
    infinite = max(float(pmf._infinity_mass), 1.0 - math.fsum(p), 0.0)
    p = _without_lowest(p, math.fsum([*p, infinite, -1.0]))
    q = p * np.exp(-losses) * (1.0 - 1e-15)
    return Discrete([*p, infinite, 0.0], [*q, 0.0, max(1.0 - math.fsum(q), 0.0)])


def _without_lowest(p: Array, excess: float) -> Array:
    """Take what the masses exceed 1 by, through rounding, from the lowest losses: at any epsilon above them delta stays."""
    if excess <= 0.0:
        return p
    total = np.cumsum(p)
    last = min(int(np.searchsorted(total, excess)), p.size - 1)
    rest = np.maximum(total[last] - excess, 0.0)
    return np.concatenate([np.zeros(last), [rest], p[last + 1 :]])


def _raised(p: Array, losses: Array) -> tuple[Array, Array]:
    """Raise the lowest losses to the first at which Q has mass 1 at most, up to rounding; drop points without mass."""
    q = p * np.exp(-losses)
    q_from = np.cumsum(q[::-1])[::-1]
    p_below = np.cumsum(p) - p
    fits = q_from + p_below * np.exp(-losses) <= 1.0 + 5e-13  # half of what Discrete allows
    first = int(np.argmax(fits)) if fits.any() else p.size - 1
    p, losses = p[first:].copy(), losses[first:]
    p[0] += p_below[first]
    kept = p > 0
    return p[kept], losses[kept]
