"""Rounds of two runs at once, where both take the same records: every row is read once for both models.

Each sum is that of one run alone, in the same order, so that no bit changes (see `vectors`). It pays where 16 sums of eight numbers fit into
the processor's registers: with AVX-512 products take half the time, with AVX2 they would take a little more.
"""

from __future__ import annotations

import math

import llvmlite.binding
import numpy as np

from hockeystick.simulate.kernels import batches, clients, inlined, kernel, loops, losses, samplers, server, streams
from hockeystick.simulate.kernels.vectors import LANES
from hockeystick.simulate.kernels.views import borrow, borrow_data, borrow_rule
from hockeystick.simulate.running.rule import MODEL, Data, UpdateRule

FEWEST = LANES // 2  # records of a batch: for fewer, eight at once would cost more
PAYS = bool(llvmlite.binding.get_host_cpu_features().get("avx512f", False))


def fits(data: Data, rule: UpdateRule) -> bool:
    """Return whether all runs take the same records, in products of many rows with the models, and equally many steps."""
    fixed = [samplers.EVERY, samplers.CYCLIC]
    everyone = rule.record_samplers == samplers.EVERY
    sizes = np.where(everyone, np.diff(data.offsets), rule.record_sizes)
    return bool(
        batches.is_linear.py_func(data.kind)
        and data.features.shape[1] >= LANES
        and sizes.min() >= FEWEST
        and np.isin(rule.record_samplers, fixed).all()
        and rule.client_sampler in fixed
        and rule.dropout == rule.protocol_levels == rule.tolerance == rule.clip_rate == 0
    )


@inlined
def _gradients(data, rule, w, other, client, index, work, other_work):
    """Write both runs' mean clipped gradients of batch number `index`, which no random number decides."""
    count = clients.draw_batch(data, rule, client, index, 0, 0, work)
    clip_norm = math.inf if rule.clip_batch else rule.clip_norm
    out, other_out = work.gradient, other_work.gradient
    for j in range(out.size):
        out[j] = other_out[j] = 0.0
    weight, a, b = 1.0 / rule.record_divisors[client], work.factors, other_work.factors
    batches.add_linear_of_two(data, w, other, client, work.chosen, count, weight, clip_norm, a, b, out, other_out)
    if rule.clip_batch:
        clients.clip(out, rule.clip_norm)
        clients.clip(other_out, rule.clip_norm)


@inlined
def _messages(data, rule, at, other_at, client, rnd, run, seed, work, other_work):
    """Write what a client sends in two runs, as `clients.message`."""
    out, other = work.message, other_work.message
    losses.copy(at, out)
    losses.copy(other_at, other)
    for step in range(max(rule.local_steps, 1)):
        index = rnd * max(rule.local_steps, 1) + step
        _gradients(data, rule, out, other, client, index, work, other_work)
        clients.move(rule, at, client, rnd, step, run, seed, work, out)
        clients.move(rule, other_at, client, rnd, step, run + 1, seed, other_work, other)
    clients.seal(rule, at, client, rnd, run, seed, work, out)
    clients.seal(rule, other_at, client, rnd, run + 1, seed, other_work, other)


@kernel
def _two(data, rule, states, first, last, run, seed, words, integers, floats, vectors, order, chosen):
    """Run rounds [first, last) of two runs, up to the first in which one fails.

    Returns the round after the last, and the numbers, from 1, of the rounds in which the runs failed, or 0.
    """
    dimension = states.shape[2]
    a = clients.workspace(data, rule, dimension, words[0], integers[0], floats[0])
    b = clients.workspace(data, rule, dimension, words[1], integers[1], floats[1])
    data, rule, vectors = borrow_data(data), borrow_rule(rule), borrow(vectors)
    state, other_state = borrow(states[0]), borrow(states[1])
    total, other_total, before, other_before = vectors[0], vectors[1], vectors[2], vectors[3]
    for rnd in range(first, last):
        losses.copy(state[MODEL], before)
        losses.copy(other_state[MODEL], other_before)
        count = loops.participants(data, rule, rnd, run, seed, a.stream, order, chosen)
        at, other_at = server.point(rule, state, rnd), server.point(rule, other_state, rnd)
        for j in range(dimension):
            total[j] = other_total[j] = 0.0
        weight = 0.0
        for i in range(count):
            _messages(data, rule, at, other_at, chosen[i], rnd, run, seed, a, b)
            losses.add(rule.client_weights[chosen[i]], a.message, total)
            losses.add(rule.client_weights[chosen[i]], b.message, other_total)
            weight += rule.client_weights[chosen[i]]
        loops.divide(total, weight, rule, at)
        loops.divide(other_total, weight, rule, other_at)
        finite = server.update(rule, state, total, rnd, run, seed, a.stream)
        other_finite = server.update(rule, other_state, other_total, rnd, run + 1, seed, b.stream)
        if not finite:
            losses.copy(before, state[MODEL])
        if not other_finite:
            losses.copy(other_before, other_state[MODEL])
        if not (finite and other_finite):
            return rnd + 1, 0 if finite else rnd + 1, 0 if other_finite else rnd + 1
    return last, 0, 0


@kernel
def advance(data, rule, states, first, last, first_run, seed, failed):
    """Run rounds [first, last) of all runs that have not failed, as `loops.advance`, two neighbours at once."""
    silos, dimension = data.offsets.size - 1, states.shape[2]
    num_integers, num_floats, _, _ = clients.room(data, rule, dimension)
    words, integers = np.zeros((2, streams.WORDS), np.uint64), np.empty((2, num_integers), np.int64)
    floats, vectors = np.empty((2, num_floats)), np.empty((4, dimension))
    order, chosen = np.arange(silos), np.empty(silos, np.int64)
    for r in range(0, states.shape[0], 2):
        done = first
        if r + 1 < states.shape[0] and failed[r] == 0 and failed[r + 1] == 0:
            done, failed[r], failed[r + 1] = _two(
                data,
                rule,
                states[r : r + 2],
                first,
                last,
                first_run + r,
                seed,
                words,
                integers,
                floats,
                vectors,
                order,
                chosen,
            )
        loops.advance(data, rule, states[r : r + 2], done, last, first_run + r, seed, failed[r : r + 2])
