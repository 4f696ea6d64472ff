"""Rounds of some runs: each alone, two at once, with a clip norm that is learnt, or one run with its clients in blocks.

Sums have a fixed order, so that threads never change a bit. A run whose model is not finite after a round goes back to the iterate before it.
"""

from __future__ import annotations

import math

import llvmlite.binding
import numpy as np

from hockeystick.simulate.kernels import clients, inlined, kernel, losses, server, streams
from hockeystick.simulate.kernels.intrinsics import LANES, without_refcount
from hockeystick.simulate.running.rule import CYCLIC, EVERY, LEAST_CLIP_NORM, MODEL, Data, UpdateRule


@inlined
def participants(data, rule, rnd, run, seed, stream, order, out):
    """Write which clients take part in a round, and return how many."""
    kind, size, rate = rule.client_sampler, rule.client_size, rule.client_rate
    silos = data.offsets.size - 1
    count = streams.draw(stream, seed, streams.CLIENTS, run, 0, rnd, kind, size, rate, silos, order, out)
    if rule.dropout > 0.0:
        streams.start(stream, seed, streams.DROPOUT, run, rnd, 0, 0)
        count = streams.remaining(stream, rule.dropout, count, out)
    return count


@inlined
def divide(total, weight, rule, at):
    """Turn a sum of messages of this weight into their mean; without any, gradients are 0 and models stay."""
    if weight > 0.0:
        losses.scale(1.0 / weight, total)
    elif rule.local_steps > 0:
        losses.copy(at, total)


# Each run alone


@kernel
def _run(data, rule, state, first, last, run, seed, memory, order, chosen, total, before):
    """Run rounds [first, last); return 0, or the number, from 1, of the first round whose model is not finite, which is undone."""
    work = clients.workspace(data, rule, total.size, memory)
    data, rule, state = without_refcount(data), without_refcount(rule), without_refcount(state)
    order, chosen = without_refcount(order), without_refcount(chosen)
    total, before = without_refcount(total), without_refcount(before)
    count = 0
    for rnd in range(first, last):
        losses.copy(state[MODEL], before)
        if rnd == first or rule.client_sampler != EVERY or rule.dropout > 0.0:
            count = participants(data, rule, rnd, run, seed, work.stream, order, chosen)
        at = server.point(rule, state, rnd)
        for j in range(total.size):
            total[j] = 0.0
        weight = 0.0
        for i in range(count):
            clients.message(data, rule, at, chosen[i], rnd, run, seed, work, work.message)
            losses.add(rule.client_weights[chosen[i]], work.message, total)
            weight += rule.client_weights[chosen[i]]
        divide(total, weight, rule, at)
        if not server.update(rule, state, total, rnd, run, seed, work.stream):
            losses.copy(before, state[MODEL])
            return rnd + 1
    return 0


@kernel
def advance(data, rule, states, first, last, first_run, seed, failed):
    """Run rounds [first, last) of all runs that have not failed; `failed` says in which round, from 1, one does."""
    silos, dimension = data.offsets.size - 1, states.shape[2]
    memory = clients.allocate(data, rule, dimension)
    order, chosen = np.arange(silos), np.empty(silos, np.int64)
    total, before = np.empty(dimension), np.empty(dimension)
    for r in range(states.shape[0]):
        if failed[r] == 0:
            run = first_run + r
            failed[r] = _run(data, rule, states[r], first, last, run, seed, memory, order, chosen, total, before)


# Two runs at once, where both take the same records: every row is read once for both models. Each sum is that of one run alone, in the same order,
# so that no bit changes (see `intrinsics`).

FEWEST = LANES // 2  # records of a batch: for fewer, eight at once would cost more
# Where 16 sums of eight numbers fit into the processor's registers: with AVX-512 products take half the time, with AVX2 a little more.
FASTER_HERE = bool(llvmlite.binding.get_host_cpu_features().get("avx512f", False))


def can_pair(data: Data, rule: UpdateRule) -> bool:
    """Return whether all runs take the same records, in products of many rows with the models, and equally many steps."""
    fixed = [EVERY, CYCLIC]
    sizes = np.where(rule.record_samplers == EVERY, np.diff(data.offsets), rule.record_sizes)
    return bool(
        losses.is_linear.py_func(data.kind)
        and data.features.shape[1] >= LANES
        and sizes.min() >= FEWEST
        and np.isin(rule.record_samplers, fixed).all()
        and rule.client_sampler in fixed
        and rule.dropout == rule.protocol_levels == rule.tolerance == rule.clip_rate == 0
    )


@inlined
def _gradients_of_two(data, rule, w, other, client, index, work, other_work):
    """Write both runs' mean clipped gradients of batch number `index`, which no random number decides."""
    count = clients.draw_batch(data, rule, client, index, 0, 0, work)
    clip_norm = math.inf if rule.clip_batch else rule.clip_norm
    out, other_out = work.gradient, other_work.gradient
    for j in range(out.size):
        out[j] = other_out[j] = 0.0
    weight, a, b = 1.0 / rule.record_divisors[client], work.factors, other_work.factors
    losses.add_linear_of_two(data, w, other, client, work.chosen, count, weight, clip_norm, a, b, out, other_out)
    if rule.clip_batch:
        clients.clip(out, rule.clip_norm)
        clients.clip(other_out, rule.clip_norm)


@inlined
def _messages_of_two(data, rule, at, other_at, client, rnd, run, seed, work, other_work):
    """Write what a client sends in two runs, as `clients.message`."""
    out, other = work.message, other_work.message
    losses.copy(at, out)
    losses.copy(other_at, other)
    for step in range(max(rule.local_steps, 1)):
        index = rnd * max(rule.local_steps, 1) + step
        _gradients_of_two(data, rule, out, other, client, index, work, other_work)
        clients.move(rule, at, client, rnd, step, run, seed, work, out)
        clients.move(rule, other_at, client, rnd, step, run + 1, seed, other_work, other)
    clients.seal(rule, at, client, rnd, run, seed, work, out)
    clients.seal(rule, other_at, client, rnd, run + 1, seed, other_work, other)


@kernel
def _run_two(data, rule, states, first, last, run, seed, memory, other_memory, vectors, order, chosen):
    """Run rounds [first, last) of two runs, up to the first in which one fails.

    Returns the round after the last, and the numbers, from 1, of the rounds in which the runs failed, or 0.
    """
    dimension = states.shape[2]
    a = clients.workspace(data, rule, dimension, memory)
    b = clients.workspace(data, rule, dimension, other_memory)
    data, rule, vectors = without_refcount(data), without_refcount(rule), without_refcount(vectors)
    state, other_state = without_refcount(states[0]), without_refcount(states[1])
    total, other_total, before, other_before = vectors[0], vectors[1], vectors[2], vectors[3]
    for rnd in range(first, last):
        losses.copy(state[MODEL], before)
        losses.copy(other_state[MODEL], other_before)
        count = participants(data, rule, rnd, run, seed, a.stream, order, chosen)
        at, other_at = server.point(rule, state, rnd), server.point(rule, other_state, rnd)
        for j in range(dimension):
            total[j] = other_total[j] = 0.0
        weight = 0.0
        for i in range(count):
            _messages_of_two(data, rule, at, other_at, chosen[i], rnd, run, seed, a, b)
            losses.add(rule.client_weights[chosen[i]], a.message, total)
            losses.add(rule.client_weights[chosen[i]], b.message, other_total)
            weight += rule.client_weights[chosen[i]]
        divide(total, weight, rule, at)
        divide(other_total, weight, rule, other_at)
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
def advance_pairs(data, rule, states, first, last, first_run, seed, failed):
    """Run rounds [first, last) of all runs that have not failed, as `advance`, two neighbours at once."""
    silos, dimension = data.offsets.size - 1, states.shape[2]
    memory, other = clients.allocate(data, rule, dimension), clients.allocate(data, rule, dimension)
    vectors, order, chosen = np.empty((4, dimension)), np.arange(silos), np.empty(silos, np.int64)
    for r in range(0, states.shape[0], 2):
        done, run, two = first, first_run + r, states[r : r + 2]
        if r + 1 < states.shape[0] and failed[r] == 0 and failed[r + 1] == 0:
            done, failed[r], failed[r + 1] = _run_two(
                data, rule, two, first, last, run, seed, memory, other, vectors, order, chosen
            )
        advance(data, rule, two, done, last, run, seed, failed[r : r + 2])


# A clip norm that is learnt: a round releases a noisy mean of clipped gradients, and a noisy count of those that were not clipped

SMALLEST_NORMAL = 2.0**-1022  # of noise, which rounding would change below


@inlined
def _release(data, rule, w, clip_norm, rnd, run, seed, work, noise, mean):
    """Write the noisy mean of a batch's clipped gradients, and return the noisy share of those of norm at most `clip_norm`.

    Both are parts of one Gaussian release, whose noise is one vector. As in `clients.clip`, a gradient whose norm overflows becomes
    0, and counts as clipped.
    """
    count = clients.draw_batch(data, rule, 0, rnd, run, seed, work)
    divisor = rule.record_divisors[0]
    for j in range(mean.size):
        mean[j] = noise[j] = 0.0
    noise[mean.size] = 0.0
    below = 0.0
    for i in work.chosen[:count]:
        losses.gradient(data, w, i, work.units, work.record)
        if math.sqrt(losses.dot(work.record, work.record)) <= clip_norm:
            below += 0.5
        else:
            below -= 0.5
            clients.clip(work.record, clip_norm)
        losses.add(1.0 / divisor, work.record, mean)
    streams.start(work.stream, seed, streams.NOISE, run, rnd, 0, 0)
    streams.add_normals(work.stream, 1.0, noise)
    losses.add(clip_norm * rule.noise_scales[0], noise[: mean.size], mean)
    return 0.5 + (below + rule.count_noise * noise[mean.size]) / divisor


@kernel
def _run_learning(data, rule, state, first, last, run, seed, memory, noise, mean, before, clip_norms):
    """Run rounds [first, last); return 0, or the number, from 1, of the first round that fails, which is undone."""
    work = clients.workspace(data, rule, mean.size, memory)
    data, rule, state = without_refcount(data), without_refcount(rule), without_refcount(state)
    noise, mean, before = without_refcount(noise), without_refcount(mean), without_refcount(before)
    clip_norms = without_refcount(clip_norms)
    for rnd in range(first, last):
        clip_norm = rule.clip_norm if rnd == 0 else clip_norms[rnd - 1]
        losses.copy(state[MODEL], before)
        share = _release(data, rule, state[MODEL], clip_norm, rnd, run, seed, work, noise, mean)
        clip_norm *= math.exp(-rule.clip_rate * (share - rule.quantile))
        finite = server.update(rule, state, mean, rnd, run, seed, work.stream)
        noisy = clip_norm * rule.noise_scales[0] >= SMALLEST_NORMAL
        if not (finite and noisy and LEAST_CLIP_NORM <= clip_norm < math.inf):
            losses.copy(before, state[MODEL])
            return rnd + 1
        clip_norms[rnd] = clip_norm
    return 0


@kernel
def advance_learning(data, rule, states, first, last, first_run, seed, failed, clip_norms):
    """Run rounds [first, last) of all runs that have not failed, as `advance`; write the clip norm after each round."""
    dimension = states.shape[2]
    memory = clients.allocate(data, rule, dimension)
    noise, mean, before = np.empty(dimension + 1), np.empty(dimension), np.empty(dimension)
    for r in range(states.shape[0]):
        if failed[r] == 0:
            run, mine = first_run + r, clip_norms[r]
            failed[r] = _run_learning(data, rule, states[r], first, last, run, seed, memory, noise, mean, before, mine)


# One run, whose clients several threads share


@kernel
def begin(data, rule, state, rnd, run, seed, chosen):
    """Begin a round: write who takes part, and where they start from; return how many."""
    rng_state, order = np.zeros(streams.STATE_WORDS, np.uint64), np.arange(chosen.size)
    count = participants(data, rule, rnd, run, seed, rng_state, order, chosen)
    return count, server.point(rule, state, rnd)


@kernel
def _block(data, rule, at, chosen, start, stop, rnd, run, seed, memory, out):
    work = clients.workspace(data, rule, at.size, memory)
    data, rule, at, out = without_refcount(data), without_refcount(rule), without_refcount(at), without_refcount(out)
    for i in range(start, stop):
        clients.message(data, rule, at, chosen[i], rnd, run, seed, work, out[i])


@kernel
def messages(data, rule, at, chosen, start, stop, rnd, run, seed, out):
    """Write the messages of participants [start, stop)."""
    _block(data, rule, at, chosen, start, stop, rnd, run, seed, clients.allocate(data, rule, at.size), out)


@kernel
def end(rule, state, at, chosen, out, rnd, run, seed):
    """End a round: sum the messages in their order, and update; return whether the model is finite, else the iterate is as before."""
    total, before, weight = np.zeros(state.shape[1]), state[MODEL].copy(), 0.0
    for i in range(out.shape[0]):
        losses.add(rule.client_weights[chosen[i]], out[i], total)
        weight += rule.client_weights[chosen[i]]
    divide(total, weight, rule, at)
    finite = server.update(rule, state, total, rnd, run, seed, np.zeros(streams.STATE_WORDS, np.uint64))
    if not finite:
        losses.copy(before, state[MODEL])
    return finite


# Models and records


@kernel
def evaluate(data, models, loss, correct):
    """Write the mean loss of each model, and the share of records whose class it predicts."""
    units = np.empty(data.hidden + data.outputs)
    unused = np.empty(models.shape[1])
    count = data.labels.size
    for i in range(models.shape[0]):
        for row in range(count):
            loss[i] += losses.value(data, models[i], row, units, unused) / count
            if correct.size and losses.predict(data, models[i], row, units) == data.labels[row]:
                correct[i] += 1.0 / count


@kernel
def first_refused(data, model, longest):
    """Return the first record whose loss or gradient at a model is not finite, or whose gradient is longer; -1 if there is none."""
    out, units = np.empty(model.size), np.empty(data.hidden + data.outputs)
    for row in range(data.labels.size):
        loss = losses.value(data, model, row, units, out)
        losses.gradient(data, model, row, units, out)
        norm = 0.0
        for j in range(model.size):
            norm += out[j] * out[j]
        if not (math.isfinite(loss) and math.isfinite(norm) and math.sqrt(norm) <= longest):
            return row
    return -1
