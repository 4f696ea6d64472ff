"""Losses of one record and their gradients, by hand.

`data` is a `problem.Data`; `w` is flat. Kinds that are linear in the record have the gradient slope(<x, w>, y) x.
"""

from __future__ import annotations

import math

from hockeystick.simulate.kernels import inlined, kernel, reassociated
from hockeystick.simulate.kernels.own import call

LINEAR, LEAST_SQUARES, LOGISTIC, QUADRATIC, SOFTMAX, NETWORK, HINGE, ABSOLUTE, OWN = range(9)
LINEAR_IN_RECORD = LOGISTIC  # the last kind that is


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
def slope(kind, score, label):
    """Return the derivative of the loss with respect to the score <x, w>."""
    if kind == LINEAR:
        return 1.0
    if kind == LEAST_SQUARES:
        return score - label
    return 1.0 / (1.0 + math.exp(-score)) - label


@kernel
def _score_loss(kind, score, label):
    if kind == LINEAR:
        return score
    if kind == LEAST_SQUARES:
        return 0.5 * (score - label) ** 2
    return max(score, 0.0) + math.log1p(math.exp(-abs(score))) - label * score


@kernel
def _layer(weights, inputs, bias, out):
    """Write weights @ inputs + bias; without a bias it is empty."""
    for i in range(out.size):
        out[i] = dot(weights[i * inputs.size : (i + 1) * inputs.size], inputs) + (bias[i] if bias.size else 0.0)


@kernel
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
def _smoothed(data, score, label):
    """Return the slope of a loss's envelope, and the loss; `curvature` is the envelope's parameter."""
    if data.kind == HINGE:
        sign = 2.0 * label - 1.0
        missing = 1.0 - sign * score
        return -sign * min(max(data.curvature * missing, 0.0), 1.0), max(missing, 0.0)
    return min(max(data.curvature * (score - label), -1.0), 1.0), abs(score - label)


@kernel
def gradient(data, w, row, units, out):
    """Write the gradient of a record's loss, and return the loss, or 0 for one of the user's own; `units` has room for hidden units and outputs."""
    x, label = data.features[row], data.labels[row]
    if data.kind == OWN:
        return call(data.gradient, w, x, label, out)
    if data.kind <= LINEAR_IN_RECORD:
        score = dot(x, w)
        factor = slope(data.kind, score, label)
        for j in range(x.size):
            out[j] = factor * x[j]
        return _score_loss(data.kind, score, label)
    if data.kind >= HINGE:
        factor, loss = _smoothed(data, dot(x, w), label)
        for j in range(x.size):
            out[j] = factor * x[j]
        return loss
    if data.kind == QUADRATIC:
        total = 0.0
        for j in range(x.size):
            out[j] = data.curvature * (w[j] - x[j])
            total += (w[j] - x[j]) ** 2
        return 0.5 * data.curvature * total
    _forward(data, w, x, units)
    loss = _cross_entropy(units[data.hidden :], int(label))
    _backward(data, w, x, units, out)
    return loss


@kernel
def value(data, w, row, units, unused):
    """Return the loss of a record; what the gradient writes on the way is not used."""
    if data.kind == OWN:
        return call(data.value, w, data.features[row], data.labels[row], unused)
    return gradient(data, w, row, units, unused)


@kernel
def predict(data, w, row, units):
    """Return the class that a model gives a record, as a float; NaN where a function of the user's own raises."""
    x = data.features[row]
    if data.kind == OWN:
        return call(data.predict, w, x, 0.0, units)
    if data.kind <= LINEAR_IN_RECORD or data.kind == HINGE:
        return 1 if dot(x, w) > 0.0 else 0
    _forward(data, w, x, units)
    logits, best = units[data.hidden :], 0
    for i in range(1, logits.size):
        if logits[i] > logits[best]:
            best = i
    return best
