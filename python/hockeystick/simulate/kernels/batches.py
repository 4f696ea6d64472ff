"""Sums of clipped gradients of a batch, as products of matrices: of losses that are linear in the record, and of softmax.

The gradient of one record is slope(<x, w>, y) x, or the outer product of the logits' errors with x. Its norm is that of slope or errors
times |x|, so that no record's gradient is written down: scores are products of eight records with a model, and the sum is that of
eight records times what clipping leaves of their slopes. Records are taken in blocks that stay in the nearest cache between both
products, each read once from farther away: 4 operations for 8 bytes. A score's sum does not depend on its block, and records are added one
after another, so that blocks change no bit.
"""

from __future__ import annotations

import math

from hockeystick.simulate.kernels import contracted, inlined, losses
from hockeystick.simulate.kernels.vectors import (
    LANES,
    add_eight,
    add_eight_to_two,
    dot_eight,
    dot_eight_with_two,
    from_bits,
)

NEAREST = 2048  # numbers: half of a nearest cache of 32 KiB
# log 2 in two parts, of which the first has 20 bits, so that its multiples by integers up to 2^32 are exact.
_LOG_2_HIGH, _LOG_2_LOW = 0.6931467056274414, 4.7493250390316726e-07


@contracted
def exponential(x):
    """Return exp(x) within 2 units in the last place, as plain arithmetic, of which the compiler makes vectors; it has none of libm.

    x = k log 2 + r with |r| <= log(2)/2, and Taylor's polynomial of degree 13: its remainder is at most r^14/14! e^r < 7e-18. Arguments
    are moved into [-708, 709], in which no result is subnormal or infinite; NaN stays.
    """
    x = -708.0 if x < -708.0 else x  # noqa: FURB136 - unlike max and min, this keeps NaN
    x = 709.0 if x > 709.0 else x  # noqa: FURB136
    k = math.floor(x * 1.4426950408889634 + 0.5)  # 1/log 2
    r = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    p = 1.0 / 6227020800.0  # 1/13!
    p = (p * r + 1.0 / 479001600.0) * r + 1.0 / 39916800.0
    p = (p * r + 1.0 / 3628800.0) * r + 1.0 / 362880.0
    p = (p * r + 1.0 / 40320.0) * r + 1.0 / 5040.0
    p = (p * r + 1.0 / 720.0) * r + 1.0 / 120.0
    p = (p * r + 1.0 / 24.0) * r + 1.0 / 6.0
    p = (p * r + 0.5) * r + 1.0
    p = p * r + 1.0
    return p * from_bits((int(k) + 1023) << 52)  # times 2^k


@contracted
def _sigmoid(scores):
    """Turn scores into probabilities, in a loop of its own, of which the compiler makes vectors."""
    for k in range(scores.size):
        scores[k] = 1.0 / (1.0 + exponential(-scores[k]))


@inlined
def _slopes(kind, curvature, labels, rows, scores):
    """Turn scores into the derivatives of the losses with respect to them; those of hinge and absolute losses are their envelopes'."""
    if kind == losses.LOGISTIC:
        _sigmoid(scores)
    for k in range(scores.size):
        score, label = scores[k], labels[rows[k]]
        if kind == losses.LINEAR:
            scores[k] = 1.0
        elif kind == losses.HINGE:
            sign = 2.0 * label - 1.0
            scores[k] = -sign * min(max(curvature * (1.0 - sign * score), 0.0), 1.0)
        elif kind == losses.ABSOLUTE:
            scores[k] = min(max(curvature * (score - label), -1.0), 1.0)
        else:
            scores[k] = score - label


@inlined
def _clip(slopes, norms, rows, factor, weight, clip_norm):
    """Turn slopes into what the records are multiplied by; gradients whose norm overflows become 0, as in `clients.clip`."""
    for k in range(slopes.size):
        slope = factor * slopes[k]
        norm = abs(slope) * norms[rows[k]]
        kept = math.isfinite(norm) or clip_norm == math.inf
        slopes[k] = slope * (weight * (clip_norm / norm if norm > clip_norm else 1.0)) if kept else 0.0


@inlined
def _fill(count, rows):
    """Fill the last eight with the last record, and return how many there are then; what is added for it is a multiple by 0."""
    full = (count + LANES - 1) // LANES * LANES
    for k in range(count, full):
        rows[k] = rows[count - 1]
    return full


@inlined
def _products(few, features, w, rows, scores):
    """Write the scores of some rows."""
    if few:
        for k in range(rows.size):
            scores[k] = losses.dot(features[rows[k]], w)
    else:
        for k in range(0, rows.size, LANES):
            dot_eight(features, rows[k : k + LANES], w, scores[k : k + LANES])


@inlined
def _add_products(few, factors, features, rows, out):
    """Add multiples of some rows."""
    if few:
        for k in range(rows.size):
            losses.add(factors[k], features[rows[k]], out)
    else:
        for k in range(0, rows.size, LANES):
            add_eight(factors[k : k + LANES], features, rows[k : k + LANES], out)


@inlined
def is_linear(kind):
    """Return whether a record's gradient is a multiple of the record."""
    return kind <= losses.LINEAR_IN_RECORD or losses.HINGE <= kind <= losses.ABSOLUTE


@inlined
def add_linear(data, w, client, rows, count, weight, clip_norm, scores, out):
    """Add the clipped gradients of the first `count` of a silo's rows, numbered in it; `rows` and `scores` have room for seven more."""
    for k in range(count):
        rows[k] += data.offsets[client]
    few = w.size < LANES or count < LANES // 2  # eight at once would cost more
    full = count if few else _fill(count, rows)
    block = max(LANES, NEAREST // w.size // LANES * LANES)
    for first in range(0, full, block):
        last = min(first + block, full)
        mine, factors = rows[first:last], scores[first:last]
        _products(few, data.features, w, mine, factors)
        _slopes(data.kind, data.curvature, data.labels, mine, factors)
        _clip(factors, data.norms, mine, data.factors[client], weight, clip_norm)
        for k in range(count - first, last - first):
            factors[k] = 0.0
        _add_products(few, factors, data.features, mine, out)


@inlined
def add_linear_of_two(data, w, other, client, rows, count, weight, clip_norm, scores, other_scores, out, other_out):
    """Add the clipped gradients of the same rows at two models; a row is read once for both, and every bit is as in `add_linear`."""
    for k in range(count):
        rows[k] += data.offsets[client]
    full, factor = _fill(count, rows), data.factors[client]
    block = max(LANES, NEAREST // w.size // LANES * LANES)
    for first in range(0, full, block):
        last = min(first + block, full)
        mine, a, b = rows[first:last], scores[first:last], other_scores[first:last]
        for k in range(0, mine.size, LANES):
            eight = mine[k : k + LANES]
            dot_eight_with_two(data.features, eight, w, other, a[k : k + LANES], b[k : k + LANES])
        for factors in (a, b):
            _slopes(data.kind, data.curvature, data.labels, mine, factors)
            _clip(factors, data.norms, mine, factor, weight, clip_norm)
            for k in range(count - first, last - first):
                factors[k] = 0.0
        for k in range(0, mine.size, LANES):
            eight = mine[k : k + LANES]
            add_eight_to_two(a[k : k + LANES], b[k : k + LANES], data.features, eight, out, other_out)


@contracted
def _probabilities(logits, outputs, top, totals):
    """Turn the logits of eight records, class by class, into probabilities."""
    for k in range(top.size):
        top[k], totals[k] = logits[k], 0.0
    for c in range(1, outputs):
        for k in range(top.size):
            top[k] = max(top[k], logits[c * LANES + k])
    for c in range(outputs):
        for k in range(top.size):
            logits[c * LANES + k] = exponential(logits[c * LANES + k] - top[k])
            totals[k] += logits[c * LANES + k]
    for c in range(outputs):
        for k in range(top.size):
            logits[c * LANES + k] /= totals[k]


@inlined
def _clip_errors(logits, outputs, norms, rows, count, factor, weight, clip_norm):
    """Turn the errors of eight records into what these are multiplied by, those from number `count` on into 0."""
    for k in range(rows.size):
        square = 0.0
        for c in range(outputs):
            square += logits[c * LANES + k] ** 2
        norm = abs(factor) * math.sqrt(square) * norms[rows[k]]
        kept = k < count and (math.isfinite(norm) or clip_norm == math.inf)
        left = factor * (weight * (clip_norm / norm if norm > clip_norm else 1.0))
        for c in range(outputs):
            logits[c * LANES + k] = logits[c * LANES + k] * left if kept else 0.0


@inlined
def add_softmax(data, w, client, rows, count, weight, clip_norm, room, out):
    """Add the clipped gradients of the first `count` of a silo's rows; `room` is for eight times two more numbers than there are classes."""
    for k in range(count):
        rows[k] += data.offsets[client]
    outputs, size = data.outputs, data.features.shape[1]
    top, totals = room[outputs * LANES : (outputs + 1) * LANES], room[(outputs + 1) * LANES : (outputs + 2) * LANES]
    for first in range(0, _fill(count, rows), LANES):
        mine = rows[first : first + LANES]
        for c in range(outputs):
            dot_eight(data.features, mine, w[c * size : (c + 1) * size], room[c * LANES : (c + 1) * LANES])
        _probabilities(room, outputs, top, totals)
        for k in range(LANES):
            room[int(data.labels[mine[k]]) * LANES + k] -= 1.0
        _clip_errors(room, outputs, data.norms, mine, count - first, data.factors[client], weight, clip_norm)
        for c in range(outputs):
            add_eight(room[c * LANES : (c + 1) * LANES], data.features, mine, out[c * size : (c + 1) * size])
