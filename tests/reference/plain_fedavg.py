"""Noisy-FedAvg and Noisy-FedProx in plain NumPy, many runs at once, and a comparison of two samples of models."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hockeystick import simulate

Floats = NDArray[np.float64]


def draw(clients: Any, num_clients: int, rnd: int, runs: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return who takes part in a round of each run."""
    if isinstance(clients, simulate.Poisson):
        return rng.random((runs, num_clients)) < clients.sampling_rate
    if isinstance(clients, simulate.FixedSize):
        return rng.random((runs, num_clients)).argsort(axis=1) < clients.size
    drawn = np.zeros((runs, num_clients), bool)
    if isinstance(clients, simulate.Cyclic):
        drawn[:, (rnd * clients.size + np.arange(clients.size)) % num_clients] = True
    else:
        assert isinstance(clients, simulate.EveryRound)
        drawn[:] = True
    return drawn


def local_models(algorithm: Any, problem: simulate.Problem, start: Floats) -> Floats:
    """Return every client's model after its local steps of least squares on all its records, shape (runs, clients, 2)."""
    assert problem.loss == "least_squares"
    edges = np.cumsum(problem.sizes)[:-1]
    labels = np.split(np.asarray(problem.labels, float), edges)
    models = np.empty((len(start), problem.num_silos, start.shape[1]))
    for i, (x, y) in enumerate(zip(np.split(problem.features, edges), labels, strict=True)):
        w = start.copy()
        for _ in range(algorithm.local_steps):
            gradient = (w @ x.T - y) @ x / len(y)
            norm = np.linalg.norm(gradient, axis=1, keepdims=True)
            gradient *= np.minimum(1.0, algorithm.clip_norm / norm)
            w -= algorithm.learning_rate * (gradient + getattr(algorithm, "prox", 0.0) * (w - start))
        models[:, i] = w
    return models


def trained(algorithm: Any, problem: simulate.Problem, rounds: int, runs: int, weights: Floats, seed: int) -> Floats:  # noqa: PLR0917
    """Return the last averaged models, shape (runs, 2): means over those drawn that do not drop out, by their weights."""
    rng = np.random.default_rng(seed)
    w = np.zeros((runs, 2))
    for rnd in range(rounds):
        models = local_models(algorithm, problem, w)
        models += algorithm.noise_std * rng.standard_normal(models.shape)
        stays = draw(algorithm.clients, problem.num_silos, rnd, runs, rng)
        stays &= rng.random(stays.shape) >= algorithm.dropout
        shares = stays * weights
        total = shares.sum(axis=1, keepdims=True)
        mean = np.einsum("ri,rij->rj", shares, models) / np.where(total > 0, total, 1.0)
        w = np.where(total > 0, mean, w)
    return w


def least_p_value(a: Floats, b: Floats) -> float:
    """Return the least p-value, times their number, of comparing means, (co)variances and laws of two samples of points in the plane."""
    middle = (a.mean(axis=0) + b.mean(axis=0)) / 2
    found = []
    for i, j in ((0, 0), (0, 1), (1, 1)):
        products = [(x[:, i] - middle[i]) * (x[:, j] - middle[j]) for x in (a, b)]
        found.append(stats.ttest_ind(*products, equal_var=False).pvalue)
    for of in (lambda x: x[:, 0], lambda x: x[:, 1], lambda x: x[:, 0] - x[:, 1], lambda x: np.linalg.norm(x, axis=1)):
        found += [stats.ttest_ind(of(a), of(b), equal_var=False).pvalue, stats.ks_2samp(of(a), of(b)).pvalue]
    return min(found) * len(found)
