"""Random streams, and what is drawn from them: words, numbers, batches and clients.

A stream is Philox4x64-10 (Salmon, Moraes, Dror and Shaw 2011), the same words as `numpy.random.Philox`. A word is a pure function of key and
counter, so that a stream needs no state that threads could share. The key is (seed, purpose), the counter (block, client 2^32 + local step,
round, run). A stream's state is an array of 11 words: key, counter, the current block of four, and how many of these are used.

Uniform numbers are (word // 2^11 + 1)/2^53, in (0, 1]. Bounded integers reject (Lemire 2019). Normal numbers are by the Box-Muller transform (1958),
as plain arithmetic, of which the compiler makes vectors; it has none of libm. Two uniform numbers u and v in (0, 1] give the independent normal
numbers sqrt(-2 log u) cos(2 pi v) and sqrt(-2 log u) sin(2 pi v). A block of a stream is four uniform numbers, so four normal ones. The largest is
sqrt(2 log 2^53) = 8.57; beyond lies a probability of 1e-17.
"""

from __future__ import annotations

import math

import numpy as np

from hockeystick.simulate.kernels import array_at, contracted, inlined, kernel, same_bits
from hockeystick.simulate.kernels.intrinsics import multiply_high, scratch, without_refcount
from hockeystick.simulate.running.rule import CYCLIC, EVERY, FIXED_SIZE, POISSON, SHUFFLED

STATE_WORDS = 11  # of a stream

# What a stream is for; the second word of its key.
CLIENTS, RECORDS, NOISE, STEP_NOISE, PROTOCOL, TREE, STOP, DROPOUT = range(8)

_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_ZERO, _ONE, _ELEVEN, _THIRTY_TWO = np.uint64(0), np.uint64(1), np.uint64(11), np.uint64(32)
_UNIT = 2.0**-53

PAIRS = 32  # that are transformed at once: enough for several vectors under way, few enough for the nearest cache

_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
# Taylor's coefficients of cos(2 pi r) and of sin(2 pi r)/r, in powers of r^2.
_COS = tuple((-1) ** i * (2.0 * math.pi) ** (2 * i) / math.factorial(2 * i) for i in range(9))
_SIN = tuple((-1) ** i * (2.0 * math.pi) ** (2 * i + 1) / math.factorial(2 * i + 1) for i in range(9))


@kernel
def next_block(stream: np.ndarray) -> tuple:
    """Return the next four words, and count."""
    k0, k1, c0, c1, c2, c3 = stream[0], stream[1], stream[2], stream[3], stream[4], stream[5]
    stream[2] = c0 + _ONE
    for _ in range(10):
        high_0, high_1 = multiply_high(_MULTIPLIER_0, c0), multiply_high(_MULTIPLIER_1, c2)
        c0, c1, c2, c3 = high_1 ^ c1 ^ k0, _MULTIPLIER_1 * c2, high_0 ^ c3 ^ k1, _MULTIPLIER_0 * c0
        k0, k1 = k0 + _WEYL_0, k1 + _WEYL_1
    return c0, c1, c2, c3


@kernel
def start(stream, seed, purpose, run, rnd, client, step):
    """Set a stream to its beginning."""
    stream[0], stream[1] = seed, np.uint64(purpose)
    stream[2] = _ZERO
    stream[3] = (np.uint64(client) << _THIRTY_TWO) | np.uint64(step)
    stream[4], stream[5] = np.uint64(rnd), np.uint64(run)
    stream[10] = np.uint64(4)


@inlined
def next_word(stream):
    """Return the next word."""
    position = stream[10]
    if position == np.uint64(4):
        stream[6], stream[7], stream[8], stream[9] = next_block(stream)
        position = _ZERO
    stream[10] = position + _ONE
    return stream[6 + np.int64(position)]


@inlined
def unit(word):
    """Return a word as a number in (0, 1]."""
    return (np.float64(word >> _ELEVEN) + 1.0) * _UNIT


@inlined
def below(stream, bound):
    """Return a uniform integer in [0, bound), without modulo bias."""
    size = np.uint64(bound)
    word = next_word(stream)
    if word * size < size:
        threshold = (_ZERO - size) % size
        while word * size < threshold:
            word = next_word(stream)
    return np.int64(multiply_high(word, size))


@kernel
def add_laplace(stream, scale, out):
    """Add independent Laplace numbers of scale `scale`: an exponential one with a bit that its uniform number leaves unused."""
    for j in range(out.size):
        word = next_word(stream)
        size = -scale * math.log(unit(word))
        out[j] += size if word & _ONE else -size


@contracted
def logarithm(x):
    """Return log x for a normal number x > 0, within 2 units in the last place.

    x = 2^k m with m in [sqrt(1/2), sqrt(2)), and log m = 2 artanh(s) with s = (m - 1)/(m + 1), |s| < .172, whose series is cut after
    s^21: the rest is less than 1e-18 of the sum.
    """
    bits = same_bits(x, np.int64)
    k = (bits - _ROOT_HALF) >> 52
    m = same_bits(bits - (k << 52), np.float64)
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
    stream, out = without_refcount(stream), without_refcount(out)
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


# Who takes part: the samplers of `participation`. Each draw is a pure function of its stream.


@inlined
def _swap(order, i, j):
    order[i], order[j] = order[j], order[i]


@kernel
def _poisson(stream, rate, population, out):
    """Skip geometrically: the gap before the next one is floor(log U / log(1 - rate))."""
    count, i = 0, 0
    scale = math.log1p(-rate) if rate < 1.0 else -math.inf
    while True:
        gap = math.log(unit(next_word(stream))) / scale
        if gap >= population - i:
            return count
        i += int(gap)
        out[count] = i
        count += 1
        i += 1


@inlined
def _without_replacement(stream, size, population, order, out):
    """Swap the first `size` places of the identity as Fisher and Yates do, and undo it: a draw must not depend on earlier ones."""
    for i in range(size):
        j = i + below(stream, population - i)
        _swap(order, i, j)
        out[i] = j  # for the way back
    for i in range(size - 1, -1, -1):
        j = out[i]
        out[i] = order[i]
        _swap(order, i, j)
    return size


@kernel
def _shuffled(stream, first, size, population, order, out):
    """Shuffle all, take one part, and restore the identity."""
    for i in range(population - 1):
        _swap(order, i, i + below(stream, population - i))
    for i in range(size):
        out[i] = order[first + i]
    for i in range(population):
        order[i] = i
    return size


@kernel
def remaining(stream, dropout, count, chosen):
    """Keep each of the first `count` with probability 1 - dropout, in their order; return how many are left."""
    left = 0
    for i in range(count):
        if unit(next_word(stream)) > dropout:
            chosen[left] = chosen[i]
            left += 1
    return left


@kernel
def draw(stream, seed, purpose, run, client, index, kind, size, rate, population, order, out):
    """Write who takes part in draw number `index` to `out` and return how many do; `order` is the identity, before and after."""
    stream, order, out = without_refcount(stream), without_refcount(order), without_refcount(out)
    if kind == EVERY:
        for i in range(population):
            out[i] = i
        return population
    if kind == CYCLIC:
        for i in range(size):
            out[i] = (index * size + i) % population
        return size
    if kind == SHUFFLED:
        parts = population // size
        start(stream, seed, purpose, run, index // parts, client, 0)
        return _shuffled(stream, (index % parts) * size, size, population, order, out)
    start(stream, seed, purpose, run, index, client, 0)
    if kind == POISSON:
        return _poisson(stream, rate, population, out)
    if kind == FIXED_SIZE:
        return _without_replacement(stream, size, population, order, out)
    for i in range(size):
        out[i] = below(stream, population)
    return size
