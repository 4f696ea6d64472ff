"""What one client does in one round: a message for the server, which is a noisy gradient or a noisy model."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hockeystick.simulate.kernels import inlined, kernel, losses, streams
from hockeystick.simulate.kernels.intrinsics import LANES, without_refcount
from hockeystick.simulate.running.rule import LAPLACE

CONSTANT, CYCLIC, STAGEWISE, CONTINUOUS = range(4)  # step sizes


class Work(NamedTuple):
    """Room for one thread's intermediate results."""

    stream: np.ndarray
    chosen: np.ndarray
    order: np.ndarray  # the identity between draws
    units: np.ndarray
    gradient: np.ndarray
    record: np.ndarray
    message: np.ndarray
    factors: np.ndarray  # of the records in a batch
    errors: np.ndarray  # of the logits of eight records


@kernel
def workspace_size(data, rule, dimension):
    """Return how many integers and floats a workspace needs, the size of the largest silo, and the most draws of a batch.

    Draws with replacement may be more than the records that there are.
    """
    largest, most = 0, 0
    for i in range(data.offsets.size - 1):
        largest = max(largest, data.offsets[i + 1] - data.offsets[i])
        most = max(most, rule.record_sizes[i])
    most = max(most, largest) + LANES  # products take eight records at once
    return largest + most, data.hidden + data.outputs + 3 * dimension + most + LANES * (data.outputs + 2), largest, most


@kernel
def allocate(data, rule, dimension):
    """Return what a workspace is laid out in: the state of a stream, integers and floats."""
    integers, floats, _, _ = workspace_size(data, rule, dimension)
    return np.zeros(streams.STATE_WORDS, np.uint64), np.empty(integers, np.int64), np.empty(floats)


@inlined
def workspace(data, rule, dimension, memory):
    """Lay out a workspace in what was allocated, which the caller owns."""
    _, _, largest, most = workspace_size(data, rule, dimension)
    rng_state, integers, floats = without_refcount(memory)
    order = integers[:largest]
    for i in range(largest):
        order[i] = i
    gradient, record = floats[:dimension], floats[dimension : 2 * dimension]
    message = floats[2 * dimension : 3 * dimension]
    factors, rest = floats[3 * dimension : 3 * dimension + most], floats[3 * dimension + most :]
    units, errors = rest[: data.hidden + data.outputs], rest[data.hidden + data.outputs :]
    return Work(rng_state, integers[largest:], order, units, gradient, record, message, factors, errors)


@inlined
def of_round(factors, rnd):
    """Return what a round's step or noise is multiplied by."""
    return factors[min(rnd, factors.size - 1)]


@inlined
def step_size(rule, rnd, step):
    """Return the step size of a local step of a round, both from 0."""
    if rule.schedule == CYCLIC:
        return rule.learning_rate / (step + 1)
    if rule.schedule == STAGEWISE:
        return rule.learning_rate / (rnd + 1)
    if rule.schedule == CONTINUOUS:
        return rule.learning_rate / (rnd * max(rule.local_steps, 1) + step + 1)
    return rule.learning_rate * of_round(rule.step_factors, rnd)


@inlined
def clipping(norm, clip_norm):
    """Return min(1, clip_norm/norm), the factor with which a vector of this norm is clipped."""
    return clip_norm / norm if norm > clip_norm else 1.0


@inlined
def clip(vector, clip_norm):
    """Clip a vector; one whose norm overflows becomes 0, since a model that is not finite would tell of the record."""
    norm = math.sqrt(losses.dot(vector, vector))
    if math.isfinite(norm) or clip_norm == math.inf:
        losses.scale(clipping(norm, clip_norm), vector)
    else:
        for j in range(vector.size):
            vector[j] = 0.0


@kernel
def encode(stream, value, top, levels, bits, rate):
    """Return one party's share of a noisy sum, of a value in [0, top]: randomised rounding and binomial noise, both unbiased."""
    scaled = min(max(value * levels / top, 0.0), float(levels))  # a clipped vector's norm is rounded
    ones = math.floor(scaled)
    if streams.unit(streams.next_word(stream)) <= scaled - ones:
        ones += 1.0
    for _ in range(bits):
        if streams.unit(streams.next_word(stream)) <= rate:
            ones += 1.0
    return top / levels * (ones - rate * bits)


@kernel
def encode_vector(stream, vector, bound, levels, bits, rate):
    """Encode a vector of norm at most `bound` in place: its coordinates, moved into [0, 2 bound] and back."""
    for j in range(vector.size):
        vector[j] = encode(stream, vector[j] + bound, 2.0 * bound, levels, bits, rate) - bound


@kernel
def _add_any(data, rule, w, first, client, chosen, weight, clip_norm, work, out):
    """Add the clipped gradients of records, weighted as their silo, encoded if there is a protocol."""
    for i in chosen:
        losses.gradient(data, w, first + i, work.units, work.record)
        losses.scale(data.factors[client], work.record)
        clip(work.record, clip_norm)
        if rule.protocol_levels > 0:
            encode_vector(
                work.stream, work.record, clip_norm, rule.protocol_levels, rule.protocol_bits, rule.protocol_rate
            )
        losses.add(weight, work.record, out)


@inlined
def draw_batch(data, rule, client, index, run, seed, work):
    """Draw batch number `index` of a client into `work.chosen`; return its size."""
    population = data.offsets[client + 1] - data.offsets[client]
    kind, size, rate = rule.record_samplers[client], rule.record_sizes[client], rule.record_rates[client]
    stream, order, out = work.stream, work.order, work.chosen
    return streams.draw(stream, seed, streams.RECORDS, run, client, index, kind, size, rate, population, order, out)


@inlined
def batch_gradient(data, rule, w, client, index, run, seed, work, out):
    """Write the mean of the clipped gradients of batch number `index`."""
    count = draw_batch(data, rule, client, index, run, seed, work)
    weight = 1.0 / rule.record_divisors[client]
    clip_norm = math.inf if rule.clip_batch else rule.clip_norm
    chosen = work.chosen[:count]
    for j in range(out.size):
        out[j] = 0.0
    if losses.is_linear(data.kind) and rule.protocol_levels == 0:
        losses.add_linear(data, w, client, work.chosen, count, weight, clip_norm, work.factors, out)
    elif data.kind == losses.SOFTMAX and rule.protocol_levels == 0 and data.features.shape[1] >= LANES:
        losses.add_softmax(data, w, client, work.chosen, count, weight, clip_norm, work.errors, out)
    else:
        if rule.protocol_levels > 0:
            streams.start(work.stream, seed, streams.PROTOCOL, run, index, client, 0)
        _add_any(data, rule, w, data.offsets[client], client, chosen, weight, clip_norm, work, out)
    if rule.clip_batch:
        clip(out, rule.clip_norm)


@inlined
def residual(prox, gradient, at, model):
    """Return the norm of the proximal problem's gradient."""
    total = 0.0
    for j in range(model.size):
        total += (gradient[j] + prox * (model[j] - at[j])) ** 2
    return math.sqrt(total)


@inlined
def keep_within(reach, at, room_for_move, model):
    """Shorten a model's move from `at` to the reach; one that is not finite becomes none, as in `clip`."""
    for j in range(model.size):
        room_for_move[j] = model[j] - at[j]
    clip(room_for_move, reach)
    for j in range(model.size):
        model[j] = at[j] + room_for_move[j]


@inlined
def move(rule, at, client, rnd, step, run, seed, work, out):
    """Take a local step by `work.gradient`, or send this; return whether there may be another step."""
    if rule.local_steps == 0:
        losses.copy(work.gradient, out)
        return False
    if rule.step_noise > 0.0:
        streams.start(work.stream, seed, streams.STEP_NOISE, run, rnd, client, step)
        streams.add_normals(work.stream, rule.step_noise, work.gradient)
    if rule.tolerance > 0.0 and residual(rule.prox, work.gradient, at, out) <= rule.tolerance:
        return False
    rate = step_size(rule, rnd, step)
    for j in range(out.size):
        out[j] -= rate * (work.gradient[j] + rule.prox * (out[j] - at[j]))
    return True


@inlined
def seal(rule, at, client, rnd, run, seed, work, out):
    """Turn what a client computed into what it sends: within reach, and noisy."""
    if rule.reach < math.inf:
        keep_within(rule.reach, at, work.gradient, out)
    scale = rule.noise_scales[client] * of_round(rule.noise_factors, rnd)
    if scale > 0.0:
        streams.start(work.stream, seed, streams.NOISE, run, rnd, client, 0)
        if rule.noise == LAPLACE:
            streams.add_laplace(work.stream, scale, out)
        else:
            streams.add_normals(work.stream, scale, out)


@inlined
def message(data, rule, at, client, rnd, run, seed, work, out):
    """Write what a client sends after seeing the model `at`: a noisy gradient or, after local steps, a noisy model."""
    losses.copy(at, out)
    for step in range(max(rule.local_steps, 1)):
        index = rnd * max(rule.local_steps, 1) + step
        batch_gradient(data, rule, out, client, index, run, seed, work, work.gradient)
        if not move(rule, at, client, rnd, step, run, seed, work, out):
            break
    seal(rule, at, client, rnd, run, seed, work, out)
