"""What one client does in one round: a message for the server, which is a noisy gradient or a noisy model."""

from __future__ import annotations

import math
from typing import NamedTuple

from hockeystick.simulate.kernels import core, internal
from hockeystick.simulate.kernels.core import call_part, data_at, fields, part, pointer, row, rule_at
from hockeystick.simulate.kernels.user_loss import call_gradient, take, write_gradient
from hockeystick.simulate.running.rule import (
    LAPLACE,
    LEAST_CLIP_NORM,
    LINEAR_IN_RECORD,
    NOISE,
    OWN,
    PROTOCOL,
    RECORDS,
    SOFTMAX,
    STEP_NOISE,
    Data,
    Integers,
    Matrix,
    States,
    UpdateRule,
    Vector,
    Words,
)

CONSTANT, CYCLIC, STAGEWISE, CONTINUOUS = range(4)  # step sizes
SMALLEST_NORMAL = 2.0**-1022  # of noise, which rounding would change below


class Progress(NamedTuple):
    """Some runs, which are rows."""

    first_run: int
    states: States
    clip_norms: Matrix  # after each round, where they are learnt
    failed: Integers  # in which round, from 1, a run became non-finite
    sent: Matrix  # by each client, where threads share those of one run


class Work(NamedTuple):
    """The fields of `Progress`, and room for one thread's intermediate results in one or some of the runs at once, of which all vectors are rows."""

    first_run: int
    states: States
    clip_norms: Matrix
    failed: Integers
    sent: Matrix
    records_part: int  # addresses of the parts that are needed, else 0
    release_part: int
    point_part: int
    update_part: int
    stream: Words
    clients: Integers  # who takes part
    client_order: Integers  # the identity between draws
    records: Integers  # a batch
    record_order: Integers
    runs: Integers  # which runs they are
    at: Matrix  # the models that clients see
    messages: Matrix
    gradients: Matrix
    totals: Matrix  # of the messages
    before: Matrix  # the iterates before a round
    batch: Vector  # for sums over a batch
    record: Vector  # a record's gradient
    units: Vector
    noise: Vector  # of a clip norm that is learnt, and of the gradients


work_at = fields(Work)


@internal
def of_round(factors, rnd):
    """Return what a round's step or noise is multiplied by."""
    return factors[min(rnd, factors.size - 1)]


@internal
def step_size(rule, rnd, step):
    """Return the step size of a local step of a round, both from 0."""
    if rule.schedule == CYCLIC:
        return rule.learning_rate / (step + 1)
    if rule.schedule == STAGEWISE:
        return rule.learning_rate / (rnd + 1)
    if rule.schedule == CONTINUOUS:
        return rule.learning_rate / (rnd * max(rule.local_steps, 1) + step + 1)
    return rule.learning_rate * of_round(rule.step_factors, rnd)


@internal
def draw_batch(data, rule, client, index, seed, work):
    """Draw batch number `index` of a client; return its size."""
    population = data.offsets[client + 1] - data.offsets[client]
    kind, size, rate = rule.record_samplers[client], rule.record_sizes[client], rule.record_rates[client]
    order, out = pointer(work.record_order), pointer(work.records)
    stream, run = pointer(work.stream), work.runs[0]
    return core.draw(stream, seed, RECORDS, run, client, index, kind, size, rate, population, order, out)


@part
def add_records(data, rule, work, count, client, _, seed):  # noqa: ARG001 - as all parts
    """Add the clipped gradients of `count` records, weighted as their silo, encoded if there is a protocol."""
    data, rule, work = data_at(data), rule_at(rule), work_at(work)
    weight, record, size = 1.0 / rule.record_divisors[client], pointer(work.record), work.record.size
    clip_norm = math.inf if rule.clip_batch else rule.clip_norm
    for i in work.records[:count]:
        write_gradient(data, work.messages[0], data.offsets[client] + i, work.units, work.record)
        core.scale(data.factors[client], record, size)
        core.clip(clip_norm, record, size)
        if rule.protocol_levels > 0:
            levels, bits, rate = rule.protocol_levels, rule.protocol_bits, rule.protocol_rate
            core.encode_vector(pointer(work.stream), record, size, clip_norm, levels, bits, rate)
        core.add(weight, record, pointer(work.gradients), size)
    return 1


@part
def add_own(data, rule, work, count, client, _, seed):  # noqa: ARG001 - as all parts
    """Add the clipped gradients of `count` records of a loss of the user's own, from where its function put them."""
    data, rule, work = data_at(data), rule_at(rule), work_at(work)
    weight, size, kept = 1.0 / rule.record_divisors[client], work.record.size, 0
    clip_norm = math.inf if rule.clip_batch else rule.clip_norm
    for i in work.records[:count]:
        record = data.offsets[client] + i
        found = call_gradient(data.gradient, (work.messages[0], data.features[record], data.labels[record]))
        source = pointer(found)
        if found.size != size or found.strides[0] != found.itemsize:
            take(found, work.record)
            source = pointer(work.record)
        core.add_clipped(data.factors[client], clip_norm, weight, source, pointer(work.gradients), size)
        kept += found.size  # which is kept until then
    return kept


def records_part(data: Data, rule: UpdateRule) -> int:
    """Return the address of what adds a batch record by record, 0 where the core does it as products of matrices."""
    if rule.protocol_levels == 0 and data.kind in (*LINEAR_IN_RECORD, SOFTMAX):
        return 0
    return add_own() if rule.protocol_levels == 0 and data.kind == OWN else add_records()


@internal
def batch_gradients(data, rule, runs, client, index, seed, work):
    """Write the means of the clipped gradients of batch number `index`, at the models in the messages' place."""
    count = draw_batch(data, rule, client, index, seed, work)
    core.clear(pointer(work.gradients), runs * work.record.size)
    if work.records_part == 0:
        weight, clip_norm = 1.0 / rule.record_divisors[client], math.inf if rule.clip_batch else rule.clip_norm
        models, rows, outs = pointer(work.messages), pointer(work.records), pointer(work.gradients)
        core.add_batch(pointer(data), models, runs, client, rows, count, weight, clip_norm, pointer(work.batch), outs)
    else:
        if rule.protocol_levels > 0:
            core.start_stream(pointer(work.stream), seed, PROTOCOL, work.runs[0], index, client, 0)
        call_part(work.records_part, data, rule, work, count, client, 0, seed)
    if rule.clip_batch:
        for r in range(runs):
            core.clip(rule.clip_norm, row(work.gradients, r), work.record.size)


@internal
def move(rule, r, client, rnd, step, seed, work):
    """Take a local step by a run's gradient, or send this; return whether there may be another step."""
    at, gradient, out, size = row(work.at, r), row(work.gradients, r), row(work.messages, r), work.record.size
    if rule.local_steps == 0:
        core.copy(gradient, out, size)
        return False
    if rule.step_noise > 0.0:
        core.start_stream(pointer(work.stream), seed, STEP_NOISE, work.runs[r], rnd, client, step)
        core.add_normals(pointer(work.stream), rule.step_noise, gradient, size)
    if rule.tolerance > 0.0 and core.residual(rule.prox, gradient, at, out, size) <= rule.tolerance:
        return False
    core.step(step_size(rule, rnd, step), rule.prox, gradient, at, out, size)
    return True


@internal
def seal(rule, r, client, rnd, seed, work):
    """Turn what a client computed into what it sends: within reach, and noisy."""
    out, size = row(work.messages, r), work.record.size
    if rule.reach < math.inf:
        core.keep_within(rule.reach, row(work.at, r), row(work.gradients, r), out, size)
    scale = rule.noise_scales[client] * of_round(rule.noise_factors, rnd)
    if scale > 0.0:
        core.start_stream(pointer(work.stream), seed, NOISE, work.runs[r], rnd, client, 0)
        if rule.noise == LAPLACE:
            core.add_laplace(pointer(work.stream), scale, out, size)
        else:
            core.add_normals(pointer(work.stream), scale, out, size)


@internal
def write_messages(data, rule, runs, client, rnd, seed, work):
    """Write what a client sends in each run after seeing its model: a noisy gradient or, after local steps, a noisy model."""
    core.copy(pointer(work.at), pointer(work.messages), runs * work.record.size)
    more, step = True, 0
    while more and step < max(rule.local_steps, 1):
        batch_gradients(data, rule, runs, client, rnd * max(rule.local_steps, 1) + step, seed, work)
        for r in range(runs):
            more = move(rule, r, client, rnd, step, seed, work)
        step += 1
    for r in range(runs):
        seal(rule, r, client, rnd, seed, work)


# A clip norm that is learnt: a round releases a noisy mean of clipped gradients, and a noisy count of those that were not clipped


@part
def release_learnt(data, rule, work, r, _, rnd, seed):
    """Write the noisy mean of a batch's clipped gradients to the totals, and the next clip norm; return whether this can be used.

    The clip norm follows the noisy share of the gradients that are no longer than it. Mean and share are parts of one Gaussian release, whose
    noise is one vector. As in `clip`, a gradient whose norm overflows becomes 0, and counts as clipped.
    """
    data, rule, work = data_at(data), rule_at(rule), work_at(work)
    clip_norm = rule.clip_norm if rnd == 0 else work.clip_norms[r, rnd - 1]
    mean, noise, record = pointer(work.totals), pointer(work.noise), pointer(work.record)
    size, divisor, below = work.record.size, rule.record_divisors[0], 0.0
    count = draw_batch(data, rule, 0, rnd, seed, work)
    for i in work.records[:count]:
        write_gradient(data, work.at[0], i, work.units, work.record)
        below += 0.5 if core.norm(record, size) <= clip_norm else -0.5
        core.clip(clip_norm, record, size)
        core.add(1.0 / divisor, record, mean, size)
    core.clear(noise, size + 1)
    core.start_stream(pointer(work.stream), seed, NOISE, work.runs[0], rnd, 0, 0)
    core.add_normals(pointer(work.stream), 1.0, noise, size + 1)
    core.add(clip_norm * rule.noise_scales[0], noise, mean, size)
    share = 0.5 + (below + rule.count_noise * work.noise[size]) / divisor
    clip_norm *= math.exp(-rule.clip_rate * (share - rule.quantile))
    work.clip_norms[r, rnd] = clip_norm
    return LEAST_CLIP_NORM <= clip_norm < math.inf and clip_norm * rule.noise_scales[0] >= SMALLEST_NORMAL
