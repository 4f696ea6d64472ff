"""What one client does in one round: a message for the server, which is a noisy gradient or a noisy model."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import Array
from hockeystick.simulate.kernels import inlined, kernel, losses, spliced, streams
from hockeystick.simulate.kernels.intrinsics import LANES
from hockeystick.simulate.running.rule import LAPLACE, LEAST_CLIP_NORM, Data, UpdateRule

CONSTANT, CYCLIC, STAGEWISE, CONTINUOUS = range(4)  # step sizes
SMALLEST_NORMAL = 2.0**-1022  # of noise, which rounding would change below


class Work(NamedTuple):
    """Room for one thread's intermediate results in one or two runs at once; of two, all vectors are rows of matrices."""

    stream: NDArray[np.uint64]
    clients: NDArray[np.int64]  # who takes part
    client_order: NDArray[np.int64]  # the identity between draws
    records: NDArray[np.int64]  # a batch
    record_order: NDArray[np.int64]
    runs: NDArray[np.int64]  # which runs they are
    at: Array  # the models that clients see
    messages: Array
    gradients: Array
    totals: Array  # of the messages
    before: Array  # the iterates before a round
    factors: Array  # of the records in a batch
    record: Array  # its gradient
    units: Array
    errors: Array  # of the logits of eight records
    noise: Array  # of a clip norm that is learnt, and of the gradients


class Progress(NamedTuple):
    """What the loops read and write of some runs, which are rows."""

    first_run: int
    states: Array
    clip_norms: Array  # after each round, where they are learnt
    failed: NDArray[np.int64]  # in which round, from 1, a run became non-finite
    sent: Array  # by each client, where threads share those of one run


def workspace(data: Data, rule: UpdateRule, dimension: int, runs: int) -> Work:
    """Make room. Draws with replacement may be more than the records that there are, and products take eight records at once."""
    silos, largest = data.offsets.size - 1, int(np.diff(data.offsets).max())
    most = max(largest, int(rule.record_sizes.max())) + LANES
    at, messages, gradients, totals, before = np.empty((5, runs, dimension))
    return Work(
        stream=np.zeros(streams.STATE_WORDS, np.uint64),
        clients=np.empty(silos, np.int64),
        client_order=np.arange(silos),
        records=np.empty(most, np.int64),
        record_order=np.arange(largest),
        runs=np.empty(runs, np.int64),
        at=at,
        messages=messages,
        gradients=gradients,
        totals=totals,
        before=before,
        factors=np.empty((runs, most)),
        record=np.empty(dimension),
        units=np.empty(data.hidden + data.outputs),
        errors=np.empty(LANES * (data.outputs + 2)),
        noise=np.empty(dimension + 1),
    )


@inlined
def of_round(factors, rnd):
    """Return what a round's step or noise is multiplied by."""
    return factors[min(rnd, factors.size - 1)]


@spliced
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
def clip(vector, clip_norm):
    """Clip a vector; one whose norm overflows becomes 0, since a model that is not finite would tell of the record."""
    norm = math.sqrt(losses.dot(vector, vector))
    if math.isfinite(norm) or clip_norm == math.inf:
        losses.scale(losses.clipping(norm, clip_norm), vector)
    else:
        losses.fill(0.0, vector)


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


@spliced
def _add_any(data, rule, w, client, count, weight, clip_norm, work, out):
    """Add the clipped gradients of records, weighted as their silo, encoded if there is a protocol."""
    for i in work.records[:count]:
        losses.gradient(data, w, data.offsets[client] + i, work.units, work.record)
        losses.scale(data.factors[client], work.record)
        clip(work.record, clip_norm)
        if rule.protocol_levels > 0:
            encode_vector(
                work.stream, work.record, clip_norm, rule.protocol_levels, rule.protocol_bits, rule.protocol_rate
            )
        losses.add(weight, work.record, out)


@spliced
def draw_batch(data, rule, client, index, run, seed, work):
    """Draw batch number `index` of a client; return its size."""
    population = data.offsets[client + 1] - data.offsets[client]
    kind, size, rate = rule.record_samplers[client], rule.record_sizes[client], rule.record_rates[client]
    order, out = work.record_order, work.records
    return streams.draw(
        work.stream, seed, streams.RECORDS, run, client, index, kind, size, rate, population, order, out
    )


@spliced
def batch_gradients(data, rule, runs, client, index, seed, work):
    """Write the means of the clipped gradients of batch number `index`, at the models in the messages' place."""
    run, w, out = work.runs[0], work.messages[0], work.gradients[0]
    count = draw_batch(data, rule, client, index, run, seed, work)
    weight = 1.0 / rule.record_divisors[client]
    clip_norm = math.inf if rule.clip_batch else rule.clip_norm
    for r in range(runs):
        losses.fill(0.0, work.gradients[r])
    if losses.is_linear(data.kind) and rule.protocol_levels == 0:
        at, factors, outs = work.messages, work.factors, work.gradients
        losses.add_linear(data, at, runs, client, work.records, count, weight, clip_norm, factors, outs)
    elif data.kind == losses.SOFTMAX and rule.protocol_levels == 0 and data.features.shape[1] >= LANES:
        losses.add_softmax(data, w, client, work.records, count, weight, clip_norm, work.errors, out)
    else:
        if rule.protocol_levels > 0:
            streams.start(work.stream, seed, streams.PROTOCOL, run, index, client, 0)
        _add_any(data, rule, w, client, count, weight, clip_norm, work, out)
    if rule.clip_batch:
        for r in range(runs):
            clip(work.gradients[r], rule.clip_norm)


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


@spliced
def move(rule, r, client, rnd, step, seed, work):
    """Take a local step by a run's gradient, or send this; return whether there may be another step."""
    at, gradient, out = work.at[r], work.gradients[r], work.messages[r]
    if rule.local_steps == 0:
        losses.copy(gradient, out)
        return False
    if rule.step_noise > 0.0:
        streams.start(work.stream, seed, streams.STEP_NOISE, work.runs[r], rnd, client, step)
        streams.add_normals(work.stream, rule.step_noise, gradient)
    if rule.tolerance > 0.0 and residual(rule.prox, gradient, at, out) <= rule.tolerance:
        return False
    rate, prox = step_size(rule, rnd, step), rule.prox
    for j in range(out.size):
        out[j] -= rate * (gradient[j] + prox * (out[j] - at[j]))
    return True


@spliced
def seal(rule, r, client, rnd, seed, work):
    """Turn what a client computed into what it sends: within reach, and noisy."""
    out = work.messages[r]
    if rule.reach < math.inf:
        keep_within(rule.reach, work.at[r], work.gradients[r], out)
    scale = rule.noise_scales[client] * of_round(rule.noise_factors, rnd)
    if scale > 0.0:
        streams.start(work.stream, seed, streams.NOISE, work.runs[r], rnd, client, 0)
        if rule.noise == LAPLACE:
            streams.add_laplace(work.stream, scale, out)
        else:
            streams.add_normals(work.stream, scale, out)


@spliced
def write_messages(data, rule, runs, client, rnd, seed, work):
    """Write what a client sends in each run after seeing its model: a noisy gradient or, after local steps, a noisy model."""
    for r in range(runs):
        losses.copy(work.at[r], work.messages[r])
    more, step = True, 0
    while more and step < max(rule.local_steps, 1):
        batch_gradients(data, rule, runs, client, rnd * max(rule.local_steps, 1) + step, seed, work)
        for r in range(runs):
            more = move(rule, r, client, rnd, step, seed, work)
        step += 1
    for r in range(runs):
        seal(rule, r, client, rnd, seed, work)


# A clip norm that is learnt: a round releases a noisy mean of clipped gradients, and a noisy count of those that were not clipped


@spliced
def release(data, rule, clip_norms, rnd, seed, work):
    """Write the noisy mean of a batch's clipped gradients to the totals, and the next clip norm; return whether this can be used.

    The clip norm follows the noisy share of the gradients that are no longer than it. Mean and share are parts of one Gaussian release, whose
    noise is one vector. As in `clip`, a gradient whose norm overflows becomes 0, and counts as clipped.
    """
    clip_norm = rule.clip_norm if rnd == 0 else clip_norms[rnd - 1]
    run, mean, noise, divisor, below = work.runs[0], work.totals[0], work.noise, rule.record_divisors[0], 0.0
    count = draw_batch(data, rule, 0, rnd, run, seed, work)
    for i in work.records[:count]:
        losses.gradient(data, work.at[0], i, work.units, work.record)
        if math.sqrt(losses.dot(work.record, work.record)) <= clip_norm:
            below += 0.5
        else:
            below -= 0.5
            clip(work.record, clip_norm)
        losses.add(1.0 / divisor, work.record, mean)
    losses.fill(0.0, noise)
    streams.start(work.stream, seed, streams.NOISE, run, rnd, 0, 0)
    streams.add_normals(work.stream, 1.0, noise)
    losses.add(clip_norm * rule.noise_scales[0], noise[: mean.size], mean)
    share = 0.5 + (below + rule.count_noise * noise[mean.size]) / divisor
    clip_norm *= math.exp(-rule.clip_rate * (share - rule.quantile))
    clip_norms[rnd] = clip_norm
    return LEAST_CLIP_NORM <= clip_norm < math.inf and clip_norm * rule.noise_scales[0] >= SMALLEST_NORMAL
