r"""A mechanism of one's own by its trade-off function: a polygon, and the privacy profile that says the same.

Let S be an event of probability x without a record, which fails with probability y with it. The guarantee is that every (x, y) lies on or
above a convex polygon. With gamma = e^epsilon,

.. math:: \delta(\epsilon) = \sup_S\, (1 - y - \gamma x) = \max_{\text{corners}}\, (1 - y - \gamma x),

because a linear function has its maximum over what lies above a convex polygon at a corner (Dong, Roth and Su 2022, Proposition 6). It
bends where gamma is the steepness of a side, so that the points there determine it. The other order of both data sets has the
mirrored polygon, of corners (y, x). The core computes it, and the tangents of a function (release/trade_off.hpp).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import STRICT, Array, at_most, boolean_scalar, count_scalar, interval, scalar, vector
from hockeystick._checks.shown import shown
from hockeystick.mechanisms.base import Adjacency
from hockeystick.mechanisms.privacy_profile import PrivacyProfile, ProfiledMechanism
from hockeystick.mechanisms.user_function import function_of_one_number, require_convex, require_falling

__all__ = ["TradeOff"]

FARTHEST = 36.7  # logit of the largest rate below 1
ROUNDING = 1e-15  # of values near 1: by how much a function may look wrong without being it


def _rates(count: int) -> list[float]:
    """Return false-positive rates from 0 to 1, closest to both ends."""
    logits = np.linspace(-FARTHEST, FARTHEST, count - 2)
    near_one = -np.expm1(-np.log1p(np.exp(-logits)))  # 1/(1 + e^logit)
    inner = np.where(logits < 0.0, 1.0 / (1.0 + np.exp(-logits)), 1.0 - near_one)
    rates: list[float] = np.unique(np.concatenate([[0.0], inner, [1.0]])).tolist()
    return rates


TOLERANCE = 1e-12  # what rounding may make of a convex function below the diagonal


@dataclass(frozen=True)
class TradeOff(ProfiledMechanism):
    """A mechanism of one's own, by a trade-off function f that is a polygon: f-differential privacy.

    Nothing doubles where a record is replaced.

    Parameters
    ----------
    false_positive_rates : sequence of float
        Where the polygon has its corners: increasing from 0, at most 1. A test says "the record was there" on an event; this is the event's
        probability without the record.
    false_negative_rates : sequence of float
        f there: no test of that false-positive rate misses the record less often. In [0, 1], not rising, at last 0, convex, and
        at most one less the false-positive rate. To 1e-12: what is above the chord of its neighbours, or above the diagonal,
        by less is moved down.
    symmetric : bool
        True if f bounds tests of both data sets against each other, whichever of them counts as the one without. Else the other
        order has the inverse of f.

    Notes
    -----
    Dong, Roth and Su 2022. The guarantee is that no test of adjacent data sets lies below the polygon. Its delta at all epsilons follows by
    linear programming over the corners (mechanisms/trade_off_function.py); the doubles given count as exact. A test between two
    corners of your own function is below the chord: corners that lie *on* a curved f make a polygon above it, which claims too much.
    `from_function` takes tangents and `from_points` steps, which are below. If symmetric, f and its inverse both hold, so does their maximum: where f(0) < 1, the inverse
    says that no loss is infinite in either order.

    The lower ends are those of a mechanism whose tests reach the polygon. Numbers near 1 hold about 16 digits of how far they are
    from it, so that a delta below 1e-16 is not told apart from 0 or from 1e-16; `PrivacyProfile` can say it.

    Noise whose tests at distance 1 have exactly the trade-off function f, and no smaller one at less, is canonical for f (Awan and Vadhan 2023): as a
    mechanism it *is* `TradeOff`. Tulap noise is canonical for (epsilon, delta), which is `ApproximateDP`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.mechanisms.TradeOff([0.0, 0.25, 1.0], [1.0, 0.25, 0.0])
    >>> print(hs.format_upper(hs.Accountant().compose(step, 3).delta(1.0), ".4f"))
    0.4191
    """

    false_positive_rates: Sequence[float]
    false_negative_rates: Sequence[float]
    symmetric: bool = True

    _for_one_adjacency: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the arguments."""
        rates, missed = _checked(self.false_positive_rates, self.false_negative_rates, from_zero=True)
        if missed[-1] != 0.0:
            raise ValueError(f"false_negative_rates must end with 0, not with {missed[-1]:g}")
        require_convex("false_negative_rates", "rate", rates, missed, TOLERANCE)
        self._check(symmetric=boolean_scalar)
        self._set(false_positive_rates=tuple(rates.tolist()))
        self._set(false_negative_rates=tuple(missed.tolist()))

    @classmethod
    def from_points(
        cls, false_positive_rates: ArrayLike, false_negative_rates: ArrayLike, *, symmetric: bool = True
    ) -> Self:
        """Return what is known if the trade-off function is at least some numbers at some rates, and nothing of it in between.

        Parameters
        ----------
        false_positive_rates : array_like of shape (n,)
            Increasing, in [0, 1].
        false_negative_rates : array_like of shape (n,)
            Lower bounds of f there: in [0, 1], not rising, and at most one less the false-positive rate.
        symmetric : bool
            As in the class.

        Returns
        -------
        TradeOff
            The largest convex function below the steps: between two rates f is at least its number at the right one, as it does not rise.

        Raises
        ------
        ValueError
            If the numbers leave their domains; the message says which.

        Examples
        --------
        >>> import hockeystick as hs
        >>> rates = [k / 1000 for k in range(1001)]
        >>> step = hs.mechanisms.TradeOff.from_points(rates, hs.gdp_trade_off(0.5, rates))
        >>> print(hs.format_upper(hs.Accountant().compose(step).delta(0.5), ".4f"), hs.format_upper(hs.gdp_delta(0.5, 0.5), ".4f"))
        0.0535 0.0525
        """
        rates, missed = _checked(false_positive_rates, false_negative_rates, from_zero=False)
        inside = (rates > 0.0) & (rates < 1.0)
        return cls(*core.trade_off_hull([0.0, *rates[inside]], [*missed[inside], 0.0]), symmetric)

    @classmethod
    def from_function(
        cls,
        function: Callable[[float], float],
        *,
        symmetric: bool = True,
        accuracy: float = 1e-12,
        num_points: int = 2000,
    ) -> Self:
        """Return the tangents of a trade-off function f, called at chosen rates, checked, and not kept.

        Parameters
        ----------
        function : callable
            f at a false-positive rate in [0, 1]: a Python function of one number, a numba cfunc or a scipy.LowLevelCallable of
            signature ``double (double)``.
        symmetric : bool
            As in the class.
        accuracy : float
            Relative error of the function, in [0, 0.1].
        num_points : int
            In [8, 10^5]. Twice as many make the excess of delta a quarter.

        Returns
        -------
        TradeOff
            A polygon below f. For a symmetric f, delta is close to that of f down to about 1e-14; for another one down to `accuracy`, because 1 minus f is what counts
            at small rates.

        Raises
        ------
        ValueError
            If the function leaves [0, 1], rises, is not convex, or lies above the diagonal; the message says where and by how much.

        Notes
        -----
        Beyond two of its points the line through both is below a convex function. Between neighbours the larger of the lines from the two
        sides is therefore a bound, whatever happens there. The values less and plus `accuracy` hold (1 - accuracy^2) f between them, which is convex and
        below f.

        Examples
        --------
        >>> import hockeystick as hs
        >>> step = hs.mechanisms.TradeOff.from_function(lambda rate: float(hs.gdp_trade_off(0.2, rate)))
        >>> print(hs.format_upper(hs.Accountant().compose(step, 25).delta(1.0), ".5f"), hs.format_upper(hs.gdp_delta(1.0, 1.0), ".5f"))
        0.12702 0.12694
        """
        ask = function_of_one_number("function", function)
        accuracy = scalar("accuracy", accuracy, *interval("[0, 0.1]"))
        num_points = count_scalar("num_points", num_points, 8)
        at_most("num_points", num_points, "the largest supported", 10**5)
        rates = _rates(num_points)
        values = np.array([float(ask(rate)) for rate in rates])
        allowed = 2.0 * accuracy * np.abs(values) + ROUNDING
        for rate, value, error in zip(rates, values, allowed, strict=True):
            if not -ROUNDING <= value <= 1.0 - rate + error:
                raise ValueError(f"function({rate:g}) must lie in [0, 1 - {rate:g}], not be {shown(float(value))}")
        require_falling("function", "rate", rates, values, allowed[1:])
        require_convex("function", "rate", rates, values, allowed[1:-1] + 2.0 * accuracy * values[:-2])
        lows = np.clip(values * (1.0 - accuracy), 0.0, 1.0 - np.array(rates))
        highs = np.minimum(values * (1.0 + accuracy), 1.0)
        lows[-1] = highs[-1] = 0.0
        return cls(*core.trade_off_tangents(rates, lows.tolist(), highs.tolist()), symmetric)

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        which = "in both orders" if self.symmetric else "with and without the record, in this order"
        return [f"no test of adjacent data sets, {which}, is below the trade-off function given, for this adjacency"]

    def _profile(self, adjacency: Adjacency, *, upper: bool) -> PrivacyProfile:
        del adjacency  # the function is taken to be for the one in use
        rates, missed = self.false_positive_rates, self.false_negative_rates
        return PrivacyProfile(*core.trade_off_profile(rates, missed, self.symmetric, upper))


def _checked(
    false_positive_rates: ArrayLike, false_negative_rates: ArrayLike, *, from_zero: bool
) -> tuple[Array, Array]:
    """Return both rates as arrays, or refuse what no trade-off function has at these rates, convex or not."""
    rates = vector("false_positive_rates", STRICT.probability("false_positive_rates", false_positive_rates))
    if (from_zero and rates[0] != 0.0) or not (np.diff(rates) > 0.0).all():
        start = " from 0" if from_zero else ""
        raise ValueError(f"false_positive_rates must increase{start}, not be {shown(false_positive_rates)}")
    missed = vector("false_negative_rates", STRICT.probability("false_negative_rates", false_negative_rates))
    if missed.size != rates.size:
        raise ValueError(
            f"false_negative_rates must be as long as false_positive_rates ({rates.size}), not of length {missed.size}"
        )
    require_falling("false_negative_rates", "rate", rates, missed)
    excess = missed - (1.0 - rates)
    if excess.max() > TOLERANCE:
        at = int(excess.argmax())
        raise ValueError(
            f"false_negative_rates must be at most 1 - false_positive_rates, not {missed[at]:g} at rate {rates[at]:g}"
        )
    return rates, missed
