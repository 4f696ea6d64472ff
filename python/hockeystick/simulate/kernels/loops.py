"""Rounds of some runs: one or two at once, or those of one run whose clients several threads share.

Sums have a fixed order, so that neither threads nor a run beside it change a bit. A run whose model is not finite after a round goes back to the
iterate before it. Where two runs take the same records, every row is read once for both models.
"""

from __future__ import annotations

import math

import llvmlite.binding
import numpy as np

from hockeystick.simulate.kernels import clients, inlined, kernel, losses, server, spliced, streams
from hockeystick.simulate.kernels.intrinsics import LANES, by_reference
from hockeystick.simulate.running.rule import CYCLIC, EVERY, MODEL, Data, UpdateRule

# Where 16 sums of eight numbers fit into the processor's registers: with AVX-512 products take half the time, with AVX2 a little more.
FASTER_HERE = bool(llvmlite.binding.get_host_cpu_features().get("avx512f", False))
WHOLE, SEND, COLLECT = range(3)  # rounds; what some clients send in one; the end of one for which all have sent


def can_pair(data: Data, rule: UpdateRule) -> bool:
    """Return whether all runs take the same records, in products of many rows with the models, and equally many steps."""
    fixed = [EVERY, CYCLIC]
    sizes = np.where(rule.record_samplers == EVERY, np.diff(data.offsets), rule.record_sizes)
    return bool(
        losses.is_linear.py_func(data.kind)
        and data.features.shape[1] >= LANES
        and sizes.min() >= losses.FEWEST
        and np.isin(rule.record_samplers, fixed).all()
        and rule.client_sampler in fixed
        and rule.dropout == rule.protocol_levels == rule.tolerance == rule.clip_rate == 0
    )


@spliced
def participants(data, rule, rnd, seed, work):
    """Write which clients take part in a round, and return how many."""
    kind, size, rate = rule.client_sampler, rule.client_size, rule.client_rate
    silos, run, order, out = data.offsets.size - 1, work.runs[0], work.client_order, work.clients
    count = streams.draw(work.stream, seed, streams.CLIENTS, run, 0, rnd, kind, size, rate, silos, order, out)
    if rule.dropout > 0.0:
        streams.start(work.stream, seed, streams.DROPOUT, run, rnd, 0, 0)
        count = streams.remaining(work.stream, rule.dropout, count, out)
    return count


@spliced
def mean_message(data, rule, progress, runs, count, rnd, seed, work, part, first, step):
    """Take the mean of what every `step`-th of `count` participants sends, from the `first` on; or note what each sends.

    Without any, gradients are 0 and models stay.
    """
    weight = 0.0
    for i in range(first, count, step):
        client = work.clients[i]
        if part == COLLECT:
            losses.copy(progress.sent[i], work.messages[0])
        else:
            clients.write_messages(data, rule, runs, client, rnd, seed, work)
        if part == SEND:
            losses.copy(work.messages[0], progress.sent[i])
        for k in range(runs):
            losses.add(rule.client_weights[client], work.messages[k], work.totals[k])
        weight += rule.client_weights[client]
    for k in range(runs):
        if weight > 0.0:
            losses.scale(1.0 / weight, work.totals[k])
        elif rule.local_steps > 0:
            losses.copy(work.at[k], work.totals[k])


@inlined
def alive(failed, group, first_run, runs):
    """Write which runs of a group have not failed, and return how many."""
    count = 0
    for r in range(group, min(group + runs.size, failed.size)):
        if failed[r] == 0:
            runs[count] = first_run + r
            count += 1
    return count


@spliced
def begin(rule, progress, runs, rnd, work):
    """Begin a round of some runs: keep the iterates, and write where clients start from."""
    for k in range(runs):
        state = progress.states[work.runs[k] - progress.first_run]
        losses.copy(state[MODEL], work.before[k])
        server.write_point(rule, state, rnd, work.at[k])
        losses.fill(0.0, work.totals[k])


@spliced
def end(rule, progress, runs, rnd, seed, learnt, work):
    """End a round of some runs by what clients sent; one whose model, or learnt clip norm, is not finite goes back. Return whether none does."""
    good = True
    for k in range(runs):
        r = work.runs[k] - progress.first_run
        state = progress.states[r]
        finite = server.update(rule, state, work.at[k], work.totals[k], rnd, work.runs[k], seed, work.stream)
        if not (finite and learnt):
            good = False
            losses.copy(work.before[k], state[MODEL])
            progress.failed[r] = rnd + 1
            if rule.clip_rate > 0.0:
                progress.clip_norms[r, rnd] = math.nan
    return good


@kernel
def advance(data, rule, progress, seed, first, last, work, part, start, step):
    """Run rounds [first, last) of all runs that have not failed, as many at once as the workspace has room for.

    Threads that share the clients of one run `SEND`, each every so many of them, and what was sent then is `COLLECT`ed.
    """
    data, rule, progress, work = by_reference(data), by_reference(rule), by_reference(progress), by_reference(work)
    for group in range(0, progress.failed.size, work.runs.size):
        count, runs = 0, alive(progress.failed, group, progress.first_run, work.runs)
        for rnd in range(first, last):
            if runs == 0:
                break
            if rnd == first or rule.client_sampler != EVERY or rule.dropout > 0.0:
                count = participants(data, rule, rnd, seed, work)
            begin(rule, progress, runs, rnd, work)
            learnt = True
            if rule.clip_rate > 0.0:
                learnt = clients.release(data, rule, progress.clip_norms[group], rnd, seed, work)
            else:
                mean_message(data, rule, progress, runs, count, rnd, seed, work, part, start, step)
            if part != SEND and not end(rule, progress, runs, rnd, seed, learnt, work):
                runs = alive(progress.failed, group, progress.first_run, work.runs)


# Models and records


@kernel
def evaluate(data, models, loss, correct):
    """Write the mean loss of each model, and the share of records whose class it predicts."""
    data = by_reference(data)
    units = np.empty(data.hidden + data.outputs)
    count = data.labels.size
    for i in range(models.shape[0]):
        for row in range(count):
            loss[i] += losses.value(data, models[i], row, units) / count
            if correct.size and losses.predict(data, models[i], row, units) == data.labels[row]:
                correct[i] += 1.0 / count


@kernel
def first_refused(data, model, longest):
    """Return the first record whose loss or gradient at a model is not finite, or whose gradient is longer; -1 if there is none."""
    data = by_reference(data)
    out, units = np.empty(model.size), np.empty(data.hidden + data.outputs)
    for row in range(data.labels.size):
        loss = losses.value(data, model, row, units)
        losses.gradient(data, model, row, units, out)
        norm = math.sqrt(losses.dot(out, out))
        if not (math.isfinite(loss) and math.isfinite(norm) and norm <= longest):
            return row
    return -1
