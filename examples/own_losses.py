"""Two networks as losses of one's own, with their gradients by hand: two hidden layers, and a small convolution.

Run it: ``python examples/own_losses.py`` trains both on digits of 8 by 8 pixels, in ten silos, and prints loss, accuracy and epsilon.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from hockeystick import format_upper, simulate


@njit
def cross_entropy(logits: np.ndarray, label: float) -> tuple[float, np.ndarray]:
    """Return the loss of softmax outputs, and its derivative by the logits."""
    shifted = np.exp(logits - logits.max())
    errors = shifted / shifted.sum()
    loss = math.log(shifted.sum()) - (logits[int(label)] - logits.max())
    errors[int(label)] -= 1.0
    return loss, errors


@njit
def dense(weights: np.ndarray, biases: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return weights @ x + biases; the weights' rows lie one after another."""
    out = biases.copy()
    for i in range(out.size):
        for j in range(x.size):
            out[i] += weights[i * x.size + j] * x[j]
    return out


@njit
def dense_back(weights: np.ndarray, x: np.ndarray, errors: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write the derivatives by weights and biases, given those by the outputs; return those by x."""
    back = np.zeros(x.size)
    for i in range(errors.size):
        for j in range(x.size):
            out[i * x.size + j] = errors[i] * x[j]
            back[j] += errors[i] * weights[i * x.size + j]
        out[errors.size * x.size + i] = errors[i]
    return back


def two_hidden_layers(inputs: int, first: int, second: int, classes: int) -> simulate.Loss:
    """Return a network: inputs, `first` tanh units, `second` tanh units, softmax. A model is W1, b1, W2, b2, W3, b3."""
    a, b = first * inputs, first * (inputs + 1)
    c, d = b + second * first, b + second * (first + 1)
    e, dimension = d + classes * second, d + classes * (second + 1)

    @njit
    def layers(model: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        u = np.tanh(dense(model[:a], model[a:b], x))
        v = np.tanh(dense(model[b:c], model[c:d], u))
        return u, v, dense(model[d:e], model[e:], v)

    def value(model: np.ndarray, x: np.ndarray, label: float) -> float:
        return cross_entropy(layers(model, x)[2], label)[0]

    def gradient(model: np.ndarray, x: np.ndarray, label: float) -> np.ndarray:
        u, v, logits = layers(model, x)
        out = np.empty(dimension)
        errors = dense_back(model[d:e], v, cross_entropy(logits, label)[1], out[d:])
        errors = dense_back(model[b:c], u, errors * (1.0 - v * v), out[b:d])
        dense_back(model[:a], x, errors * (1.0 - u * u), out[:b])
        return out

    def predict(model: np.ndarray, x: np.ndarray) -> int:
        return np.argmax(layers(model, x)[2])

    rng = np.random.default_rng(0)
    start = np.zeros(dimension)
    for begin, end, width in ((0, a, inputs), (b, c, first), (d, e, second)):
        start[begin:end] = rng.normal(0.0, 1.0 / math.sqrt(width), end - begin)
    return simulate.Loss(value, gradient, initial=start, predict=predict)


def convolution(side: int, filters: int, classes: int) -> simulate.Loss:
    """Return a network for images: `filters` of 3 by 3 pixels, tanh, means of 2 by 2, softmax. A model is filters, biases, W, b."""
    inner, half = side - 2, (side - 2) // 2
    units = filters * half * half
    a, b = filters * 9, filters * 10
    c, dimension = b + classes * units, b + classes * (units + 1)

    @njit
    def layers(model: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        maps, means = np.empty((filters, inner, inner)), np.zeros(units)
        for f in range(filters):
            for i in range(inner):
                for j in range(inner):
                    total = model[a + f]
                    for k in range(9):
                        total += model[9 * f + k] * x[(i + k // 3) * side + j + k % 3]
                    maps[f, i, j] = math.tanh(total)
                    if i // 2 < half and j // 2 < half:
                        means[(f * half + i // 2) * half + j // 2] += 0.25 * maps[f, i, j]
        return maps, means, dense(model[b:c], model[c:], means)

    def value(model: np.ndarray, x: np.ndarray, label: float) -> float:
        return cross_entropy(layers(model, x)[2], label)[0]

    def gradient(model: np.ndarray, x: np.ndarray, label: float) -> np.ndarray:
        maps, means, logits = layers(model, x)
        out = np.zeros(dimension)
        errors = dense_back(model[b:c], means, cross_entropy(logits, label)[1], out[b:])
        for f in range(filters):
            for i in range(2 * half):
                for j in range(2 * half):
                    error = 0.25 * errors[(f * half + i // 2) * half + j // 2] * (1.0 - maps[f, i, j] ** 2)
                    out[a + f] += error
                    for k in range(9):
                        out[9 * f + k] += error * x[(i + k // 3) * side + j + k % 3]
        return out

    def predict(model: np.ndarray, x: np.ndarray) -> int:
        return np.argmax(layers(model, x)[2])

    rng = np.random.default_rng(0)
    start = np.zeros(dimension)
    start[:a] = rng.normal(0.0, 1.0 / 3.0, a)
    start[b:c] = rng.normal(0.0, 1.0 / math.sqrt(units), c - b)
    return simulate.Loss(value, gradient, initial=start, predict=predict)


def main() -> None:
    """Train both on digits."""
    train, test = simulate.load("digits", num_silos=10, seed=1)
    algorithm = simulate.NoisyMinibatchSGD(
        learning_rate=1.0, clip_norm=0.5, noise_std=0.1, records=simulate.FixedSize(20)
    )
    for name, loss in (
        ("two hidden layers", two_hidden_layers(64, 16, 16, 10)),
        ("convolution", convolution(8, 4, 10)),
    ):
        own, own_test = (
            # pixels without the constant that `load` appends, as large as it made them small
            simulate.Problem(loss, 8.0 * problem.data.features[:, :64], problem.data.labels, problem.sizes)
            for problem in (train, test)
        )
        result = simulate.run(algorithm, own, rounds=300, seed=7)
        epsilon = format_upper(result.epsilon(1e-5)[0], ".3g")
        print(f"{name}: {own.dimension} numbers, accuracy {result.accuracy(own_test)[0, 0]:.2f}, epsilon {epsilon}")


if __name__ == "__main__":
    main()
