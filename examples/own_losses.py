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


def two_hidden_layers(inputs: int, first: int, second: int, classes: int) -> simulate.Loss:
    """Return a network: inputs, `first` tanh units, `second` tanh units, softmax. A model is W1, b1, W2, b2, W3, b3."""
    ends = np.cumsum([first * inputs, first, second * first, second, classes * second, classes])
    a, b, c, d, e, dimension = (int(end) for end in ends)

    @njit
    def layers(model: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        u = np.tanh((model[:a].reshape(first, inputs) * x).sum(axis=1) + model[a:b])
        v = np.tanh((model[b:c].reshape(second, first) * u).sum(axis=1) + model[c:d])
        return u, v, (model[d:e].reshape(classes, second) * v).sum(axis=1) + model[e:]

    def value(model: np.ndarray, x: np.ndarray, label: float) -> float:
        return cross_entropy(layers(model, x)[2], label)[0]

    def gradient(model: np.ndarray, x: np.ndarray, label: float) -> np.ndarray:
        u, v, logits = layers(model, x)
        errors = cross_entropy(logits, label)[1]
        out = np.empty(dimension)
        out[d:e] = np.outer(errors, v).ravel()
        out[e:] = errors
        errors = (model[d:e].reshape(classes, second).T * errors).sum(axis=1) * (1.0 - v * v)
        out[b:c] = np.outer(errors, u).ravel()
        out[c:d] = errors
        errors = (model[b:c].reshape(second, first).T * errors).sum(axis=1) * (1.0 - u * u)
        out[:a] = np.outer(errors, x).ravel()
        out[a:b] = errors
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
    ends = np.cumsum([filters * 9, filters, classes * units, classes])
    a, b, c, dimension = (int(end) for end in ends)

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
        return maps, means, (model[b:c].reshape(classes, units) * means).sum(axis=1) + model[c:]

    def value(model: np.ndarray, x: np.ndarray, label: float) -> float:
        return cross_entropy(layers(model, x)[2], label)[0]

    def gradient(model: np.ndarray, x: np.ndarray, label: float) -> np.ndarray:
        maps, means, logits = layers(model, x)
        errors = cross_entropy(logits, label)[1]
        out = np.zeros(dimension)
        out[b:c] = np.outer(errors, means).ravel()
        out[c:] = errors
        errors = (model[b:c].reshape(classes, units).T * errors).sum(axis=1)
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
