"""Who takes part: the samplers of `participation`, compiled. Each draw is a pure function of its stream."""

from __future__ import annotations

import math

from hockeystick.simulate.kernels import inlined, kernel, streams
from hockeystick.simulate.kernels.views import borrow

EVERY, POISSON, FIXED_SIZE, WITH_REPLACEMENT, SHUFFLED, CYCLIC = range(6)


@inlined
def _swap(order, i, j):
    order[i], order[j] = order[j], order[i]


@kernel
def _poisson(stream, rate, population, out):
    """Skip geometrically: the gap before the next one is floor(log U / log(1 - rate))."""
    count, i = 0, 0
    scale = math.log1p(-rate) if rate < 1.0 else -math.inf
    while True:
        gap = math.log(streams.unit(streams.next_word(stream))) / scale
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
        j = i + streams.below(stream, population - i)
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
        _swap(order, i, i + streams.below(stream, population - i))
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
        if streams.unit(streams.next_word(stream)) > dropout:
            chosen[left] = chosen[i]
            left += 1
    return left


@kernel
def draw(stream, seed, purpose, run, client, index, kind, size, rate, population, order, out):
    """Write who takes part in draw number `index` to `out` and return how many do; `order` is the identity, before and after."""
    stream, order, out = borrow(stream), borrow(order), borrow(out)
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
        streams.start(stream, seed, purpose, run, index // parts, client, 0)
        return _shuffled(stream, (index % parts) * size, size, population, order, out)
    streams.start(stream, seed, purpose, run, index, client, 0)
    if kind == POISSON:
        return _poisson(stream, rate, population, out)
    if kind == FIXED_SIZE:
        return _without_replacement(stream, size, population, order, out)
    for i in range(size):
        out[i] = streams.below(stream, population)
    return size
