"""A mechanism of one's own by its trade-off function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, boolean_scalar, vector
from hockeystick._checks.shown import shown
from hockeystick.mechanisms import trade_off_polygon, trade_off_tangents
from hockeystick.mechanisms.base import Adjacency
from hockeystick.mechanisms.privacy_profile import PrivacyProfile
from hockeystick.mechanisms.profiled import ProfiledMechanism

if TYPE_CHECKING:
    from typing_extensions import Self

TOLERANCE = 1e-12  # what rounding may make of a convex function below the diagonal


@dataclass(frozen=True)
class TradeOff(ProfiledMechanism):
    """A mechanism of one's own, by a trade-off function f that is a polygon: f-differential privacy.

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
    linear programming over the corners (mechanisms/trade_off_polygon.py), exactly; the doubles given count as exact. A test between two
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
    >>> step = hs.TradeOff([0.0, 0.25, 1.0], [1.0, 0.25, 0.0])
    >>> print(hs.format_upper(hs.Accountant().compose(step, 3).delta(1.0), ".4f"))
    0.4191
    """

    false_positive_rates: Sequence[float]
    false_negative_rates: Sequence[float]
    symmetric: bool = True

    _for_one_adjacency: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the arguments."""
        rates = vector("false_positive_rates", STRICT.probability("false_positive_rates", self.false_positive_rates))
        if rates[0] != 0.0 or not (np.diff(rates) > 0.0).all():
            msg = f"false_positive_rates must increase from 0, not be {shown(self.false_positive_rates)}"
            raise ValueError(msg)
        missed = vector("false_negative_rates", STRICT.probability("false_negative_rates", self.false_negative_rates))
        _require_trade_off(rates, missed)
        object.__setattr__(self, "symmetric", boolean_scalar("symmetric", self.symmetric))
        object.__setattr__(self, "false_positive_rates", tuple(rates.tolist()))
        object.__setattr__(self, "false_negative_rates", tuple(missed.tolist()))

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
        >>> step = hs.TradeOff.from_points(rates, hs.gdp_trade_off(0.5, rates))
        >>> print(hs.format_upper(hs.Accountant().compose(step).delta(0.5), ".4f"), hs.format_upper(hs.gdp_delta(0.5, 0.5), ".4f"))
        0.0535 0.0525
        """
        rates = vector("false_positive_rates", STRICT.probability("false_positive_rates", false_positive_rates))
        if not (np.diff(rates) > 0.0).all():
            msg = f"false_positive_rates must increase, not be {shown(false_positive_rates)}"
            raise ValueError(msg)
        missed = vector("false_negative_rates", STRICT.probability("false_negative_rates", false_negative_rates))
        _require_falling(rates, missed)
        steps = trade_off_tangents.steps(rates.tolist(), missed.tolist())
        return cls(*_doubles(trade_off_polygon.lower_hull(steps)), symmetric)

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
        >>> step = hs.TradeOff.from_function(lambda rate: float(hs.gdp_trade_off(0.2, rate)))
        >>> print(hs.format_upper(hs.Accountant().compose(step, 25).delta(1.0), ".5f"), hs.format_upper(hs.gdp_delta(1.0, 1.0), ".5f"))
        0.12702 0.12694
        """
        return cls(*_doubles(trade_off_tangents.of_function(function, accuracy, num_points)), symmetric)

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        which = "in both orders" if self.symmetric else "with and without the record, in this order"
        return [f"no test of adjacent data sets, {which}, is below the trade-off function given, for this adjacency"]

    def _profile(self, adjacency: Adjacency, *, upper: bool) -> PrivacyProfile:
        del adjacency  # the function is taken to be for the one in use
        pairs = zip(self.false_positive_rates, self.false_negative_rates, strict=True)
        points = [(Fraction(x), min(Fraction(y), 1 - Fraction(x))) for x, y in pairs]
        return trade_off_polygon.profile(trade_off_polygon.lower_hull(points), symmetric=self.symmetric, up=upper)


def _doubles(corners: list[trade_off_polygon.Corner]) -> tuple[list[float], list[float]]:
    """Return the coordinates of corners that are doubles."""
    return [float(x) for x, _ in corners], [float(y) for _, y in corners]


def _require_falling(rates: Array, missed: Array) -> None:
    """Refuse what no trade-off function has at these rates, convex or not."""
    if missed.size != rates.size:
        msg = (
            f"false_negative_rates must be as long as false_positive_rates ({rates.size}), not of length {missed.size}"
        )
        raise ValueError(msg)
    rise = np.diff(missed)
    if rise.size and rise.max() > 0.0:
        at = int(rise.argmax())
        msg = f"false_negative_rates must not rise, not by {rise[at]:g} from rate {rates[at]:g} to {rates[at + 1]:g}"
        raise ValueError(msg)
    excess = missed - (1.0 - rates)
    if excess.max() > TOLERANCE:
        at = int(excess.argmax())
        msg = f"false_negative_rates must be at most 1 - false_positive_rates, not {missed[at]:g} at rate {rates[at]:g}"
        raise ValueError(msg)


def _require_trade_off(rates: Array, missed: Array) -> None:
    """Refuse a polygon that is no trade-off function."""
    _require_falling(rates, missed)
    if missed[-1] != 0.0:
        msg = f"false_negative_rates must end with 0, not with {missed[-1]:g}"
        raise ValueError(msg)
    if rates.size > 2:
        share = (rates[1:-1] - rates[:-2]) / (rates[2:] - rates[:-2])
        excess = missed[1:-1] - ((1.0 - share) * missed[:-2] + share * missed[2:])
        if excess.max() > TOLERANCE:
            at = int(excess.argmax())
            msg = (
                f"false_negative_rates must be convex; at rate {rates[at + 1]:g} they are {excess[at]:g} above "
                f"the chord of {rates[at]:g} and {rates[at + 2]:g}"
            )
            raise ValueError(msg)
