"""Rounds of some runs, or of one run with its clients in blocks. Sums have a fixed order, so that threads never change a bit."""

from __future__ import annotations

import math

import numpy as np

from hockeystick.simulate.kernels import clients, inlined, kernel, losses, samplers, server, streams
from hockeystick.simulate.kernels.views import borrow, borrow_data, borrow_rule
from hockeystick.simulate.running.rule import MODEL


@inlined
def participants(data, rule, rnd, run, seed, stream, order, out):
    """Write which clients take part in a round, and return how many."""
    kind, size, rate = rule.client_sampler, rule.client_size, rule.client_rate
    silos = data.offsets.size - 1
    count = samplers.draw(stream, seed, streams.CLIENTS, run, 0, rnd, kind, size, rate, silos, order, out)
    if rule.dropout > 0.0:
        streams.start(stream, seed, streams.DROPOUT, run, rnd, 0, 0)
        count = samplers.remaining(stream, rule.dropout, count, out)
    return count


@inlined
def divide(total, weight, rule, at):
    """Turn a sum of messages of this weight into their mean; without any, gradients are 0 and models stay."""
    if weight > 0.0:
        losses.scale(1.0 / weight, total)
    elif rule.local_steps > 0:
        losses.copy(at, total)


@kernel
def _run(data, rule, state, first, last, run, seed, words, integers, floats, order, chosen, total, before):
    """Run rounds [first, last); return 0, or the number, from 1, of the first round whose model is not finite, which is undone."""
    work = clients.workspace(data, rule, total.size, words, integers, floats)
    data, rule, state = borrow_data(data), borrow_rule(rule), borrow(state)
    order, chosen, total, before = borrow(order), borrow(chosen), borrow(total), borrow(before)
    count = 0
    for rnd in range(first, last):
        losses.copy(state[MODEL], before)
        if rnd == first or rule.client_sampler != samplers.EVERY or rule.dropout > 0.0:
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
    """Run rounds [first, last) of all runs that have not failed.

    A run whose model is not finite after a round goes back to the iterate before it, and `failed` says which round, from 1.
    """
    silos, dimension = data.offsets.size - 1, states.shape[2]
    num_integers, num_floats, _, _ = clients.room(data, rule, dimension)
    words, integers, floats = np.zeros(streams.WORDS, np.uint64), np.empty(num_integers, np.int64), np.empty(num_floats)
    order, chosen = np.arange(silos), np.empty(silos, np.int64)
    total, before = np.empty(dimension), np.empty(dimension)
    for r in range(states.shape[0]):
        if failed[r] == 0:
            failed[r] = _run(
                data,
                rule,
                states[r],
                first,
                last,
                first_run + r,
                seed,
                words,
                integers,
                floats,
                order,
                chosen,
                total,
                before,
            )


@kernel
def begin(data, rule, state, rnd, run, seed, chosen):
    """Begin a round: write who takes part, and where they start from; return how many."""
    words, order = np.zeros(streams.WORDS, np.uint64), np.arange(chosen.size)
    count = participants(data, rule, rnd, run, seed, words, order, chosen)
    return count, server.point(rule, state, rnd)


@kernel
def _block(data, rule, at, chosen, start, stop, rnd, run, seed, words, integers, floats, out):
    work = clients.workspace(data, rule, at.size, words, integers, floats)
    data, rule, at, out = borrow_data(data), borrow_rule(rule), borrow(at), borrow(out)
    for i in range(start, stop):
        clients.message(data, rule, at, chosen[i], rnd, run, seed, work, out[i])


@kernel
def messages(data, rule, at, chosen, start, stop, rnd, run, seed, out):
    """Write the messages of participants [start, stop)."""
    num_integers, num_floats, _, _ = clients.room(data, rule, at.size)
    words, integers, floats = np.zeros(streams.WORDS, np.uint64), np.empty(num_integers, np.int64), np.empty(num_floats)
    _block(data, rule, at, chosen, start, stop, rnd, run, seed, words, integers, floats, out)


@kernel
def end(rule, state, at, chosen, out, rnd, run, seed):
    """End a round: sum the messages in their order, and update; return whether the model is finite, else the iterate is as before."""
    total, before, weight = np.zeros(state.shape[1]), state[MODEL].copy(), 0.0
    for i in range(out.shape[0]):
        losses.add(rule.client_weights[chosen[i]], out[i], total)
        weight += rule.client_weights[chosen[i]]
    divide(total, weight, rule, at)
    finite = server.update(rule, state, total, rnd, run, seed, np.zeros(streams.WORDS, np.uint64))
    if not finite:
        losses.copy(before, state[MODEL])
    return finite


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
