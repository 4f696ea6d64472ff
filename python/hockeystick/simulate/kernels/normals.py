"""Normal numbers by the Box-Muller transform (1958), as plain arithmetic, of which the compiler makes vectors; it has none of libm.

Two uniform numbers u and v in (0, 1] give the independent normal numbers sqrt(-2 log u) cos(2 pi v) and sqrt(-2 log u) sin(2 pi v). A block
of a stream is four uniform numbers, so four normal ones. The largest is sqrt(2 log 2^53) = 8.57; beyond lies a probability of 1e-17.
"""

from __future__ import annotations

import math

from hockeystick.simulate.kernels import array_at, contracted, kernel
from hockeystick.simulate.kernels.streams import next_block, unit
from hockeystick.simulate.kernels.vectors import bits_of, from_bits
from hockeystick.simulate.kernels.views import borrow, scratch

PAIRS = 32  # that are transformed at once: enough for several vectors under way, few enough for the nearest cache

_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
# Taylor's coefficients of cos(2 pi r) and of sin(2 pi r)/r, in powers of r^2.
_COS = tuple((-1) ** i * (2.0 * math.pi) ** (2 * i) / math.factorial(2 * i) for i in range(9))
_SIN = tuple((-1) ** i * (2.0 * math.pi) ** (2 * i + 1) / math.factorial(2 * i + 1) for i in range(9))


@contracted
def logarithm(x):
    """Return log x for a normal number x > 0, within 2 units in the last place.

    x = 2^k m with m in [sqrt(1/2), sqrt(2)), and log m = 2 artanh(s) with s = (m - 1)/(m + 1), |s| < .172, whose series is cut after
    s^21: the rest is less than 1e-18 of the sum.
    """
    k = (bits_of(x) - _ROOT_HALF) >> 52
    m = from_bits(bits_of(x) - (k << 52))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 2.0 / 21.0
    p = (p * z + 2.0 / 19.0) * z + 2.0 / 17.0
    p = (p * z + 2.0 / 15.0) * z + 2.0 / 13.0
    p = (p * z + 2.0 / 11.0) * z + 2.0 / 9.0
    p = (p * z + 2.0 / 7.0) * z + 2.0 / 5.0
    p = p * z + 2.0 / 3.0
    return k * math.log(2.0) + (2.0 * s + s * z * p)


@contracted
def _transform(radii, angles, pairs):
    """Turn pairs of uniform numbers into pairs of normal ones.

    An angle is k/4 + r turns with |r| <= 1/8, exactly, where the polynomials' rests are below 3e-18; k tells which of the two is the cosine,
    and both signs.
    """
    for i in range(pairs):
        k = math.floor(4.0 * angles[i] + 0.5)
        r = angles[i] - 0.25 * k
        z = r * r
        even = (((_COS[8] * z + _COS[7]) * z + _COS[6]) * z + _COS[5]) * z + _COS[4]
        even = (((even * z + _COS[3]) * z + _COS[2]) * z + _COS[1]) * z + _COS[0]
        odd = (((_SIN[8] * z + _SIN[7]) * z + _SIN[6]) * z + _SIN[5]) * z + _SIN[4]
        odd = ((((odd * z + _SIN[3]) * z + _SIN[2]) * z + _SIN[1]) * z + _SIN[0]) * r
        quarter = int(k) & 3
        cosine, sine = (odd, even) if quarter & 1 else (even, odd)
        radius = math.sqrt(-2.0 * logarithm(radii[i]))
        radii[i] = radius * (-cosine if quarter == 1 or quarter == 2 else cosine)  # noqa: PLR1714 - compiles to vectors
        angles[i] = radius * (-sine if quarter >= 2 else sine)


@kernel
def add_normals(stream, scale, out):
    """Add independent normal numbers of standard deviation `scale`, from whole blocks."""
    stream, out = borrow(stream), borrow(out)
    radii, angles = array_at(scratch(PAIRS), (PAIRS,)), array_at(scratch(PAIRS), (PAIRS,))
    for first in range(0, out.size, 2 * PAIRS):
        pairs = min(PAIRS, (out.size - first + 1) // 2)
        for i in range(0, pairs, 2):
            a, b, c, d = next_block(stream)
            radii[i], angles[i], radii[i + 1], angles[i + 1] = unit(a), unit(b), unit(c), unit(d)
        _transform(radii, angles, pairs)
        for i in range(pairs):
            j = first + 2 * i
            out[j] += scale * radii[i]
            if j + 1 < out.size:
                out[j + 1] += scale * angles[i]
