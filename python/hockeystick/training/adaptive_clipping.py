"""Clipping at a norm that is learnt: how the noise of a round is split between the updates and the count."""

from __future__ import annotations

import math
from fractions import Fraction

from hockeystick._checks import positive_scalar
from hockeystick._checks.shown import shown

__all__ = ["adaptive_clipping_noise"]


def adaptive_clipping_noise(noise_multiplier: float, count_noise: float) -> float:
    r"""Return the noise multiplier of the updates that leaves room for the count that a clip norm is learnt from.

    A round of DP-SGD or DP-FedAvg with a learnt clip norm C releases two sums: that of the clipped updates, with noise of
    standard deviation C times the number returned, and that of b - 1/2, with noise of `count_noise`, where b is 1 for an
    update of norm at most C and 0 for any other. Together they are one `Gaussian(noise_multiplier)`, and that is what an
    `Accountant` is to be told, once a round.

    Parameters
    ----------
    noise_multiplier : float
        Of the whole round; positive and finite.
    count_noise : float
        Standard deviation of the noise on the sum of b - 1/2, in records or clients; finite, and above half the
        `noise_multiplier`. Andrew and others take a twentieth of those expected in a round.

    Returns
    -------
    float
        The smallest double that is not below :math:`(z^{-2} - (2 \sigma_b)^{-2})^{-1/2}`.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the noise of the updates would be beyond the doubles.
    TypeError
        If an argument is not a real number.

    Notes
    -----
    A record or client that is added or removed moves the first sum by at most C and the second by exactly 1/2; in
    deviations of the noise by at most :math:`(z_\Delta^{-2} + (2 \sigma_b)^{-2})^{1/2} = 1/z` together. One that is
    replaced, be it by an update of zero that is counted, moves them by at most twice that, which ``Accountant("replace")``
    charges. A plain sum of b moves by 1 and needs more noise. Neither sum may be divided by the number of those who took
    part, unless that is public. The next clip norm may depend on all that was released, and on nothing else of the data.
    The page on mechanisms has the proof.

    References
    ----------
    Andrew, Thakkar, McMahan and Ramaswamy 2021, Differentially private learning with adaptive clipping, Theorem 1.

    Examples
    --------
    A thousand rounds with a hundredth of all clients each:

    >>> import hockeystick as hs
    >>> updates = hs.training.adaptive_clipping_noise(noise_multiplier=1.0, count_noise=5.0)
    >>> print(f"{updates:.5f}")
    1.00504
    >>> rounds = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 1000)  # not Gaussian(updates)
    """
    z = positive_scalar("noise_multiplier", noise_multiplier)
    count = positive_scalar("count_noise", count_noise)
    whole, part = Fraction(z) ** 2, (2 * Fraction(count)) ** 2  # exact, so that nothing cancels near the pole
    if part <= whole:
        raise ValueError(f"count_noise must be above half the noise_multiplier ({shown(z)}), not {shown(count)}")
    square = whole * part / (part - whole)
    try:
        return _root_above(square)
    except OverflowError:
        raise ValueError(
            f"count_noise must be larger for a noise_multiplier of {shown(z)}: with {shown(count)} "
            "the noise of the updates is beyond the doubles"
        ) from None


def _root_above(square: Fraction) -> float:
    """Return the smallest double whose square is at least the one given, or raise OverflowError."""
    shift = max(0, 128 + square.denominator.bit_length() - square.numerator.bit_length())
    shift += shift % 2  # the root of a power of two is one
    root = Fraction(math.isqrt((square.numerator << shift) // square.denominator), 1 << shift // 2)
    above = float(root)
    while Fraction(above) ** 2 < square:
        above = math.nextafter(above, math.inf)
        if above == math.inf:
            raise OverflowError
    return above
