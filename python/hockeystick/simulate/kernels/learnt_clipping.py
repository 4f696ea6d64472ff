"""Rounds whose clip norm is learnt: a noisy mean of clipped gradients, and a noisy count of those that were not clipped."""

from __future__ import annotations

import math

import numpy as np

from hockeystick.simulate.kernels import clients, inlined, kernel, losses, normals, server, streams
from hockeystick.simulate.kernels.views import borrow, borrow_data, borrow_rule
from hockeystick.simulate.running.rule import LEAST_CLIP_NORM, MODEL

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
    normals.add_normals(work.stream, 1.0, noise)
    losses.add(clip_norm * rule.noise_scales[0], noise[: mean.size], mean)
    return 0.5 + (below + rule.count_noise * noise[mean.size]) / divisor


@kernel
def _run(data, rule, state, first, last, run, seed, words, integers, floats, noise, mean, before, clip_norms):
    """Run rounds [first, last); return 0, or the number, from 1, of the first round that fails, which is undone."""
    work = clients.workspace(data, rule, mean.size, words, integers, floats)
    data, rule, state, clip_norms = borrow_data(data), borrow_rule(rule), borrow(state), borrow(clip_norms)
    noise, mean, before = borrow(noise), borrow(mean), borrow(before)
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
def advance(data, rule, states, first, last, first_run, seed, failed, clip_norms):
    """Run rounds [first, last) of all runs that have not failed, as `loops.advance`; write the clip norm after each round."""
    dimension = states.shape[2]
    num_integers, num_floats, _, _ = clients.room(data, rule, dimension)
    words, integers, floats = np.zeros(streams.WORDS, np.uint64), np.empty(num_integers, np.int64), np.empty(num_floats)
    noise, mean, before = np.empty(dimension + 1), np.empty(dimension), np.empty(dimension)
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
                noise,
                mean,
                before,
                clip_norms[r],
            )
