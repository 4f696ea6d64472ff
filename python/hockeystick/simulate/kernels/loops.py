"""Rounds of some runs: one or eight at once, or those of one run whose clients several threads share.

Sums have a fixed order, so that neither threads nor runs beside it change a bit. A run whose model is not finite after a round goes back to the
iterate before it. Where runs take the same records, every row is read once for all models.
"""

from __future__ import annotations

import math

import llvmlite.binding
import numpy as np

from hockeystick.simulate.kernels import clients, core, internal, kernel, server
from hockeystick.simulate.kernels.clients import work_at
from hockeystick.simulate.kernels.core import call_part, data_at, pointer, row, rule_at
from hockeystick.simulate.kernels.user_loss import predicted, write_gradient, written_value
from hockeystick.simulate.running.rule import (
    ACCELERATED,
    CLIENTS,
    CYCLIC,
    DROPOUT,
    EVERY,
    LINEAR_IN_RECORD,
    MODEL,
    STREAM_WORDS,
    Data,
    UpdateRule,
)

BATCH_ROOM = 4096  # numbers for sums over batches, besides 16 models: record_losses.hpp
RUNS_AT_ONCE = 8  # where they take the same records: a vector holds one number of each
# Where eight sums of eight numbers leave room in the processor's registers.
FASTER_HERE = bool(llvmlite.binding.get_host_cpu_features().get("avx512f", False))
WHOLE, SEND, COLLECT = range(3)  # rounds; what some clients send in one; the end of one for which all have sent


def can_group(data: Data, rule: UpdateRule) -> bool:
    """Return whether all runs take the same records, whose gradients are multiples of them, and equally many steps."""
    fixed = [EVERY, CYCLIC]
    return bool(
        data.kind in LINEAR_IN_RECORD
        and np.isin(rule.record_samplers, fixed).all()
        and rule.client_sampler in fixed
        and rule.dropout == rule.protocol_levels == rule.tolerance == rule.clip_rate == 0
    )


@internal
def participants(data, rule, rnd, seed, work):
    """Write which clients take part in a round, and return how many."""
    stream, order, out, run = pointer(work.stream), pointer(work.client_order), pointer(work.clients), work.runs[0]
    kind, size, rate, silos = rule.client_sampler, rule.client_size, rule.client_rate, data.offsets.size - 1
    count = core.draw(stream, seed, CLIENTS, run, 0, rnd, kind, size, rate, silos, order, out)
    if rule.dropout > 0.0:
        core.start_stream(stream, seed, DROPOUT, run, rnd, 0, 0)
        count = core.remaining(stream, rule.dropout, count, out)
    return count


@internal
def mean_message(data, rule, runs, count, rnd, seed, work, part, first, step):
    """Take the mean of what every `step`-th of `count` participants sends, from the `first` on; or note what each sends.

    Without any, gradients are 0 and models stay.
    """
    weight, size = 0.0, work.record.size
    for i in range(first, count, step):
        client = work.clients[i]
        if part == COLLECT:
            core.copy(row(work.sent, i), pointer(work.messages), size)
        else:
            clients.write_messages(data, rule, runs, client, rnd, seed, work)
        if part == SEND:
            core.copy(pointer(work.messages), row(work.sent, i), size)
        core.add(rule.client_weights[client], pointer(work.messages), pointer(work.totals), runs * size)
        weight += rule.client_weights[client]
    if weight > 0.0:
        core.scale(1.0 / weight, pointer(work.totals), runs * size)
    elif rule.local_steps > 0:
        core.copy(pointer(work.at), pointer(work.totals), runs * size)


@internal
def alive(failed, group, first_run, runs):
    """Write which runs of a group have not failed, and return how many."""
    count = 0
    for r in range(group, min(group + runs.size, failed.size)):
        if failed[r] == 0:
            runs[count] = first_run + r
            count += 1
    return count


@internal
def begin(data, rule, work, runs, rnd, seed):
    """Begin a round of some runs: keep the iterates, and write where clients start from."""
    for k in range(runs):
        r = work.runs[k] - work.first_run
        core.copy(row(work.states[r], MODEL), row(work.before, k), work.record.size)
        core.copy(row(work.states[r], MODEL), row(work.at, k), work.record.size)
        if work.point_part != 0:
            call_part(work.point_part, data, rule, work, r, k, rnd, seed)
    core.clear(pointer(work.totals), runs * work.record.size)


@internal
def end(data, rule, work, runs, rnd, seed, learnt):
    """End a round of some runs by what clients sent; one whose model, or learnt clip norm, is not finite goes back. Return whether none does."""
    good = True
    for k in range(runs):
        r = work.runs[k] - work.first_run
        state, size = work.states[r], work.record.size
        model = row(state, MODEL)
        if work.update_part != 0:
            call_part(work.update_part, data, rule, work, r, k, rnd, seed)
        else:
            server.move(rule, model, row(work.totals, k), size, rnd)
        finite = core.all_finite(model, size) != 0
        server.release(rule, state, size, rnd, work.runs[k], seed, pointer(work.stream))
        if not (finite and learnt):
            good = False
            core.copy(row(work.before, k), model, size)
            work.failed[r] = rnd + 1
            if rule.clip_rate > 0.0:
                work.clip_norms[r, rnd] = math.nan
    return good


@kernel
def advance(data, rule, work, seed, first, last, part, start, step):
    """Run rounds [first, last) of all runs that have not failed, as many at once as the workspace has room for.

    Threads that share the clients of one run `SEND`, each every so many of them, and what was sent then is `COLLECT`ed.
    """
    data, rule, work = data_at(data), rule_at(rule), work_at(work)
    for group in range(0, work.failed.size, work.runs.size):
        count, runs = 0, alive(work.failed, group, work.first_run, work.runs)
        for rnd in range(first, last):
            if runs == 0:
                break
            if rnd == first or rule.client_sampler != EVERY or rule.dropout > 0.0:
                count = participants(data, rule, rnd, seed, work)
            begin(data, rule, work, runs, rnd, seed)
            learnt = True
            if work.release_part != 0:
                learnt = call_part(work.release_part, data, rule, work, group, 0, rnd, seed) != 0
            else:
                mean_message(data, rule, runs, count, rnd, seed, work, part, start, step)
            if part != SEND and not end(data, rule, work, runs, rnd, seed, learnt):
                runs = alive(work.failed, group, work.first_run, work.runs)


def workspace(data: Data, rule: UpdateRule, runs: int, progress: clients.Progress) -> clients.Work:
    """Make room for some runs at once, and compile what they need. Draws with replacement may be more than the records that there are."""
    silos, largest, dimension = data.offsets.size - 1, int(np.diff(data.offsets).max()), progress.states.shape[2]
    learnt = rule.clip_rate > 0
    at, messages, gradients, totals, before = np.empty((5, runs, dimension))
    return clients.Work(
        *progress,
        records_part=0 if learnt else clients.records_part(data, rule),
        release_part=clients.release_learnt() if learnt else 0,
        point_part=server.accelerated_point() if rule.server == ACCELERATED else 0,
        update_part=server.update_part(rule),
        stream=np.zeros(STREAM_WORDS, np.uint64),
        clients=np.empty(silos, np.int64),
        client_order=np.arange(silos),
        records=np.empty(max(largest, int(rule.record_sizes.max())), np.int64),
        record_order=np.arange(largest),
        runs=np.empty(runs, np.int64),
        at=at,
        messages=messages,
        gradients=gradients,
        totals=totals,
        before=before,
        batch=np.empty(BATCH_ROOM + 16 * dimension),
        record=np.empty(dimension),
        units=np.empty(data.hidden + data.outputs),
        noise=np.empty(dimension + 1),
    )


# Models and records


@kernel
def evaluate(data, models, loss, correct):
    """Write the mean loss of each model, and the share of records whose class it predicts."""
    data = data_at(data)
    units = np.empty(data.hidden + data.outputs)
    count = data.labels.size
    for i in range(models.shape[0]):
        for record in range(count):
            loss[i] += written_value(data, models[i], record, units) / count
            if correct.size and predicted(data, models[i], record, units) == data.labels[record]:
                correct[i] += 1.0 / count


@kernel
def first_refused(data, model, longest):
    """Return the first record whose loss or gradient at a model is not finite, or whose gradient is longer; -1 if there is none."""
    data = data_at(data)
    out, units = np.empty(model.size), np.empty(data.hidden + data.outputs)
    for record in range(data.labels.size):
        loss = written_value(data, model, record, units)
        write_gradient(data, model, record, units, out)
        norm = core.norm(pointer(out), out.size)
        if not (math.isfinite(loss) and math.isfinite(norm) and norm <= longest):
            return record
    return -1
