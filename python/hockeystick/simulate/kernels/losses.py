"""Losses of one record and their gradients, by hand; and sums of clipped gradients of a batch, as products of matrices.

`data` is a `rule.Data`; `w` is flat. Kinds that are linear in the record have the gradient slope(<x, w>, y) x.

Sums are of losses that are linear in the record, and of softmax. The gradient of one record is slope(<x, w>, y) x, or the outer product of the
logits' errors with x. Its norm is that of slope or errors times |x|, so that no record's gradient is written down: scores are products of eight
records with a model, and the sum is that of eight records times what clipping leaves of their slopes. Records are taken in blocks that stay in
the nearest cache between both products, each read once from farther away: 4 operations for 8 bytes. A score's sum does not depend on its block,
and records are added one after another, so that blocks change no bit.
"""

from __future__ import annotations

import math

import numpy as np

from hockeystick.simulate.kernels import contracted, inlined, kernel, reassociated, same_bits, spliced
from hockeystick.simulate.kernels.intrinsics import LANES, add_eight, dot_eight
from hockeystick.simulate.kernels.user_loss import call_gradient, call_predict, call_value

LINEAR, LEAST_SQUARES, LOGISTIC, QUADRATIC, SOFTMAX, NETWORK, HINGE, ABSOLUTE, OWN = range(9)
LINEAR_IN_RECORD = LOGISTIC  # the last kind that is

NEAREST = 2048  # numbers: half of a nearest cache of 32 KiB
FEWEST = LANES // 2  # records of a batch: for fewer, eight at once would cost more
# log 2 in two parts, of which the first has 20 bits, so that its multiples by integers up to 2^32 are exact.
_LOG_2_HIGH, _LOG_2_LOW = 0.6931467056274414, 4.7493250390316726e-07


@reassociated
def dot(a, b):
    """Return the inner product."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@inlined
def copy(source, target):
    """Copy numbers; assigning to a slice would compile NumPy's broadcasting."""
    for j in range(source.size):
        target[j] = source[j]


@inlined
def fill(number, target):
    """Write one number everywhere."""
    for j in range(target.size):
        target[j] = number


@inlined
def add(factor, source, target):
    """Add a multiple."""
    for j in range(source.size):
        target[j] += factor * source[j]


@inlined
def scale(factor, target):
    """Multiply by a number."""
    for j in range(target.size):
        target[j] *= factor


@inlined
def is_linear(kind):
    """Return whether a record's gradient is a multiple of the record."""
    return kind <= LINEAR_IN_RECORD or HINGE <= kind <= ABSOLUTE


@inlined
def slope(kind, curvature, score, label):
    """Return the derivative with respect to the score <x, w>; that of hinge and absolute losses is their envelopes'."""
    if kind == LINEAR:
        return 1.0
    if kind == LOGISTIC:
        return 1.0 / (1.0 + math.exp(-score)) - label
    if kind == HINGE:
        sign = 2.0 * label - 1.0
        return -sign * min(max(curvature * (1.0 - sign * score), 0.0), 1.0)
    if kind == ABSOLUTE:
        return min(max(curvature * (score - label), -1.0), 1.0)
    return score - label


@inlined
def _score_loss(kind, score, label):
    if kind == LINEAR:
        return score
    if kind == LOGISTIC:
        return max(score, 0.0) + math.log1p(math.exp(-abs(score))) - label * score
    if kind == HINGE:
        return max(1.0 - (2.0 * label - 1.0) * score, 0.0)
    if kind == ABSOLUTE:
        return abs(score - label)
    return 0.5 * (score - label) ** 2


@kernel
def _layer(weights, inputs, bias, out):
    """Write weights @ inputs + bias; without a bias it is empty."""
    for i in range(out.size):
        out[i] = dot(weights[i * inputs.size : (i + 1) * inputs.size], inputs) + (bias[i] if bias.size else 0.0)


@inlined
def _cross_entropy(logits, label):
    """Turn logits into probabilities less the label's indicator, the gradient; return the loss."""
    top = logits[0]
    for i in range(1, logits.size):
        top = max(top, logits[i])
    total = 0.0
    own = logits[label] - top
    for i in range(logits.size):
        logits[i] = math.exp(logits[i] - top)
        total += logits[i]
    for i in range(logits.size):
        logits[i] /= total
    logits[label] -= 1.0
    return math.log(total) - own


@kernel
def _forward(data, w, x, units):
    """Write the hidden units, if there are any, and the logits after them."""
    hidden, outputs = data.hidden, data.outputs
    if hidden == 0:
        _layer(w, x, w[:0], units)
        return
    first = hidden * x.size
    second = first + hidden + outputs * hidden
    _layer(w[:first], x, w[first : first + hidden], units[:hidden])
    for i in range(hidden):
        units[i] = math.tanh(units[i])
    _layer(w[first + hidden : second], units[:hidden], w[second:], units[hidden:])


@kernel
def _backward(data, w, x, units, out):
    """Write the gradient from what `_cross_entropy` left in the logits' place."""
    hidden, outputs = data.hidden, data.outputs
    errors = units[hidden:]
    if hidden == 0:
        for i in range(outputs):
            for k in range(x.size):
                out[i * x.size + k] = errors[i] * x[k]
        return
    first = hidden * x.size
    second = first + hidden
    copy(errors, out[second + outputs * hidden :])
    for j in range(first, second):
        out[j] = 0.0
    for i in range(outputs):
        row = second + i * hidden
        for j in range(hidden):
            out[row + j] = errors[i] * units[j]
            out[first + j] += errors[i] * w[row + j]
    for j in range(hidden):
        out[first + j] *= 1.0 - units[j] * units[j]
        for k in range(x.size):
            out[j * x.size + k] = out[first + j] * x[k]


@kernel
def gradient(data, w, row, units, out):
    """Write the gradient of a record's loss; `units` has room for hidden units and outputs."""
    x, label = data.features[row], data.labels[row]
    if data.kind == OWN:
        found = call_gradient(data.gradient, (w, x, label))
        for j in range(out.size):
            out[j] = found[j] if found.size == out.size else math.nan
    elif is_linear(data.kind):
        factor = slope(data.kind, data.curvature, dot(x, w), label)
        for j in range(x.size):
            out[j] = factor * x[j]
    elif data.kind == QUADRATIC:
        for j in range(x.size):
            out[j] = data.curvature * (w[j] - x[j])
    else:
        _forward(data, w, x, units)
        _cross_entropy(units[data.hidden :], int(label))
        _backward(data, w, x, units, out)


@kernel
def value(data, w, row, units):
    """Return the loss of a record."""
    x, label = data.features[row], data.labels[row]
    if data.kind == OWN:
        return call_value(data.value, (w, x, label))
    if is_linear(data.kind):
        return _score_loss(data.kind, dot(x, w), label)
    if data.kind == QUADRATIC:
        total = 0.0
        for j in range(x.size):
            total += (w[j] - x[j]) ** 2
        return 0.5 * data.curvature * total
    _forward(data, w, x, units)
    return _cross_entropy(units[data.hidden :], int(label))


@spliced
def predict(data, w, row, units):
    """Return the class that a model gives a record; where a function of the user's own raises, none that is a label."""
    x = data.features[row]
    if data.kind == OWN:
        return call_predict(data.predict, (w, x))
    if data.kind <= LINEAR_IN_RECORD or data.kind == HINGE:
        return 1 if dot(x, w) > 0.0 else 0
    _forward(data, w, x, units)
    logits, best = units[data.hidden :], 0
    for i in range(1, logits.size):
        if logits[i] > logits[best]:
            best = i
    return best


# Sums over a batch


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
    return p * same_bits((int(k) + 1023) << 52, np.float64)  # times 2^k


@contracted
def _sigmoid(scores):
    """Turn scores into probabilities, in a loop of its own, of which the compiler makes vectors."""
    for k in range(scores.size):
        scores[k] = 1.0 / (1.0 + exponential(-scores[k]))


@inlined
def _slopes(kind, curvature, labels, rows, scores):
    """Turn scores into the derivatives of the losses with respect to them."""
    if kind == LOGISTIC:
        _sigmoid(scores)
    for k in range(scores.size):
        score, label = scores[k], labels[rows[k]]
        scores[k] = score - label if kind == LOGISTIC else slope(kind, curvature, score, label)


@inlined
def clipping(norm, clip_norm):
    """Return min(1, clip_norm/norm), the factor with which a vector of this norm is clipped."""
    return clip_norm / norm if norm > clip_norm else 1.0


@inlined
def _clip(slopes, norms, rows, factor, weight, clip_norm):
    """Turn slopes into what the records are multiplied by; gradients whose norm overflows become 0, as in `clients.clip`."""
    for k in range(slopes.size):
        slope = factor * slopes[k]
        norm = abs(slope) * norms[rows[k]]
        kept = math.isfinite(norm) or clip_norm == math.inf
        slopes[k] = slope * (weight * clipping(norm, clip_norm)) if kept else 0.0


@inlined
def _fill(count, rows):
    """Fill the last eight with the last record, and return how many there are then; what is added for it is a multiple by 0."""
    full = (count + LANES - 1) // LANES * LANES
    for k in range(count, full):
        rows[k] = rows[count - 1]
    return full


@inlined
def _products(few, features, models, runs, rows, first, scores):
    """Write the scores of some rows in the models of one or two runs; of two, each row is read once for both."""
    if few:
        for k in range(rows.size):
            scores[0, first + k] = dot(features[rows[k]], models[0])
        return
    for k in range(0, rows.size, LANES):
        eight, a, b = rows[k : k + LANES], first + k, first + k + LANES
        if runs == 1:
            dot_eight(features, eight, (models[0],), (scores[0, a:b],))
        else:
            dot_eight(features, eight, (models[0], models[1]), (scores[0, a:b], scores[1, a:b]))


@inlined
def _add_products(few, factors, features, runs, rows, first, outs):
    """Add multiples of some rows."""
    if few:
        for k in range(rows.size):
            add(factors[0, first + k], features[rows[k]], outs[0])
        return
    for k in range(0, rows.size, LANES):
        eight, a, b = rows[k : k + LANES], first + k, first + k + LANES
        if runs == 1:
            add_eight((factors[0, a:b],), features, eight, (outs[0],))
        else:
            add_eight((factors[0, a:b], factors[1, a:b]), features, eight, (outs[0], outs[1]))


@spliced
def add_linear(data, models, runs, client, rows, count, weight, clip_norm, scores, outs):
    """Add the clipped gradients of the first `count` of a silo's rows at each run's model; `rows` and `scores` have room for seven more.

    Rows are numbered in the silo. Each sum is that of one run alone, in the same order, so that a second run changes no bit.
    """
    for k in range(count):
        rows[k] += data.offsets[client]
    few = runs == 1 and (models.shape[1] < LANES or count < FEWEST)  # eight at once would cost more
    full = count if few else _fill(count, rows)
    block = max(LANES, NEAREST // models.shape[1] // LANES * LANES)
    for first in range(0, full, block):
        last = min(first + block, full)
        mine = rows[first:last]
        _products(few, data.features, models, runs, mine, first, scores)
        for r in range(runs):
            factors = scores[r, first:last]
            _slopes(data.kind, data.curvature, data.labels, mine, factors)
            _clip(factors, data.norms, mine, data.factors[client], weight, clip_norm)
            for k in range(count - first, last - first):
                factors[k] = 0.0
        _add_products(few, scores, data.features, runs, mine, first, outs)


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
        left = factor * (weight * clipping(norm, clip_norm))
        for c in range(outputs):
            logits[c * LANES + k] = logits[c * LANES + k] * left if kept else 0.0


@spliced
def add_softmax(data, w, client, rows, count, weight, clip_norm, room, out):
    """Add the clipped gradients of the first `count` of a silo's rows; `room` is for eight times two more numbers than there are classes."""
    for k in range(count):
        rows[k] += data.offsets[client]
    outputs, size = data.outputs, data.features.shape[1]
    top, totals = room[outputs * LANES : (outputs + 1) * LANES], room[(outputs + 1) * LANES : (outputs + 2) * LANES]
    for first in range(0, _fill(count, rows), LANES):
        mine = rows[first : first + LANES]
        for c in range(outputs):
            dot_eight(data.features, mine, (w[c * size : (c + 1) * size],), (room[c * LANES : (c + 1) * LANES],))
        _probabilities(room, outputs, top, totals)
        for k in range(LANES):
            room[int(data.labels[mine[k]]) * LANES + k] -= 1.0
        _clip_errors(room, outputs, data.norms, mine, count - first, data.factors[client], weight, clip_norm)
        for c in range(outputs):
            add_eight((room[c * LANES : (c + 1) * LANES],), data.features, mine, (out[c * size : (c + 1) * size],))
