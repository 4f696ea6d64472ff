"""Pairs of discrete distributions that are known up to rounding, moved so that they leak certainly more, or certainly less."""

from __future__ import annotations

import math

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.rounding import UP

# If the outcomes of positive loss have more than so many times the mass of all others, the others cannot pay for the move.
TELLING = 2.0**10


def widen(losses: Array, p: Array, q: Array, error: float) -> tuple[Array, Array]:
    """Return a pair that leaks no less than the true one, of which every tail of p and of q is known up to a relative error.

    P's masses of positive losses (infinite ones included) and Q's of negative ones are raised by that share, the others lowered;
    sums stay. So P(A) - e^eps Q(A) of the upper outcomes A, eps >= 0, rises by error P(A), which is more than it is off by; for
    eps < 0 the same is seen from the lower outcomes. Where the others are too few to give that much, the raised outcomes nearest
    to loss 0 give the rest. Then P(A) rises as before or is all that is left beside the others, whose own error is taken off them.
    """
    return _moved(losses, p, error), _moved(-losses, q, error)


def narrow(losses: Array, p: Array, q: Array, error: float) -> tuple[Array, Array] | None:
    """Return a pair that leaks no more than the true one, by the opposite moves, or None where they could change the order of losses."""
    telling = [_telling(losses, p), _telling(-losses, q)]
    if any(gain > TELLING * spare for gain, spare in telling):
        return None
    least = min(np.abs(losses[losses != 0.0]), default=math.inf)
    if least <= 4.0 * error * (1.0 + max(gain / spare for gain, spare in telling)):
        return None
    return _moved(losses, p, -error), _moved(-losses, q, -error)


def _telling(losses: Array, law: Array) -> tuple[float, float]:
    """Return the mass of the outcomes of positive loss, and that of all others."""
    return math.fsum(law[losses > 0.0].tolist()), math.fsum(law[losses <= 0.0].tolist())


def _moved(losses: Array, law: Array, error: float) -> Array:
    """Return a law whose masses of positive losses are raised by a share; see `widen`. A negative share lowers them."""
    gain, spare = _telling(losses, law)
    if gain <= TELLING * spare:
        return np.asarray(
            law * np.where(losses > 0.0, 1.0 + error, 1.0 - error * (gain / spare if gain > 0.0 else 0.0))
        )
    moved = law * np.where(losses > 0.0, 1.0 + error, 1.0 - error)
    excess = error * (gain - spare)
    positive = np.flatnonzero(losses > 0.0)
    for outcome in positive[np.argsort(losses[positive], kind="stable")]:
        given = min(float(moved[outcome]), excess)
        moved[outcome] = (moved[outcome] - given) * UP
        excess -= given
    return np.asarray(np.minimum(moved, 1.0))
