"""Random streams: Philox4x64-10 (Salmon, Moraes, Dror and Shaw 2011), the same words as `numpy.random.Philox`.

A word is a pure function of key and counter, so that a stream needs no state that threads could share. The key is (seed,
purpose), the counter (block, client 2^32 + local step, round, run). A stream is an array of 11 words: key, counter, the
current block of four, and how many of these are used.

Uniform numbers are (word // 2^11 + 1)/2^53, in (0, 1]. Bounded integers reject (Lemire 2019). Normal numbers are in `normals`.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import types

from hockeystick.simulate.kernels import inlined, intrinsic, kernel

WORDS = 11  # of a stream

# What a stream is for; the second word of its key.
CLIENTS, RECORDS, NOISE, STEP_NOISE, PROTOCOL, TREE, STOP, DROPOUT = range(8)

_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_ZERO, _ONE, _ELEVEN, _THIRTY_TWO = np.uint64(0), np.uint64(1), np.uint64(11), np.uint64(32)
_UNIT = 2.0**-53


@intrinsic
def _multiply_high(typing_context, a, b):  # noqa: ARG001
    """Return the upper half of the product of two words; numba has no integers of 128 bits."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@kernel
def next_block(stream: np.ndarray) -> tuple:
    """Return the next four words, and count."""
    k0, k1, c0, c1, c2, c3 = stream[0], stream[1], stream[2], stream[3], stream[4], stream[5]
    stream[2] = c0 + _ONE
    for _ in range(10):
        high_0, high_1 = _multiply_high(_MULTIPLIER_0, c0), _multiply_high(_MULTIPLIER_1, c2)
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
    return np.int64(_multiply_high(word, size))


@kernel
def add_laplace(stream, scale, out):
    """Add independent Laplace numbers of scale `scale`: an exponential one with a bit that its uniform number leaves unused."""
    for j in range(out.size):
        word = next_word(stream)
        size = -scale * math.log(unit(word))
        out[j] += size if word & _ONE else -size
