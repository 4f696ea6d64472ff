"""Gradients of batches as matrix products: the sums that NumPy takes, at every shape of the last vector and the last eight records."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from hockeystick import simulate
from hockeystick.simulate.kernels import kernel
from hockeystick.simulate.kernels.losses import exponential
from hockeystick.simulate.problem.problem import row_norms
from hockeystick.simulate.running import engine

LOSSES = ("linear", "least_squares", "logistic", "hinge", "absolute")
SIZES = [1, 3, 4, 7, 8, 9, 20, 67]


def problem(loss: Any, features: int) -> simulate.Problem:
    """Return silos of all sizes; records of norm 0 to 3, whose gradients are clipped in part."""
    rng = np.random.default_rng(features)
    x = rng.normal(size=(sum(SIZES), features)) * rng.uniform(0, 3 / math.sqrt(features), size=(sum(SIZES), 1))
    y = (
        rng.integers(0, 2, sum(SIZES)) * 1.0
        if loss in {"logistic", "hinge", "softmax"}
        else rng.normal(size=sum(SIZES))
    )
    settings: dict[str, Any] = {"num_classes": 2} if loss == "softmax" else {}
    if loss in {"hinge", "absolute"}:
        settings = {"curvature": 1.7, "feature_bound": 30.0}
    return simulate.Problem(loss, x, y, SIZES, **settings)


def slopes(loss: str, scores: np.ndarray, y: np.ndarray, curvature: float) -> np.ndarray:
    """Return the derivatives of the losses by the score."""
    if loss == "linear":
        return np.ones_like(scores)
    if loss == "least_squares":
        return scores - y
    if loss == "logistic":
        return 1 / (1 + np.exp(-scores)) - y
    if loss == "hinge":
        sign = 2 * y - 1
        return -sign * np.clip(curvature * (1 - sign * scores), 0, 1)
    return np.clip(curvature * (scores - y), -1, 1)


@pytest.mark.parametrize("features", [1, 7, 8, 9, 16, 50, 300])
@pytest.mark.parametrize("loss", LOSSES)
def test_batches_are_numpys(loss, features):
    """Three rounds of full batches, clipped record by record, are NumPy's to 1e-12."""
    silos = problem(loss, features)
    algorithm = simulate.NoisyFedAvg(
        learning_rate=0.3, local_steps=2, clip_norm=0.7, noise_std=0.0, clipping="record", records=simulate.EveryRound()
    )
    start = np.random.default_rng(0).normal(size=features)
    w, edges = start, np.cumsum([0, *SIZES])
    for _ in range(3):
        models = []
        for a, b in pairwise(edges):
            v = w.copy()
            for _ in range(2):
                x, y = silos.data.features[a:b], silos.data.labels[a:b]
                gradients = slopes(loss, x @ v, y, silos.data.curvature)[:, np.newaxis] * x
                norms = np.linalg.norm(gradients, axis=1, keepdims=True)
                v -= 0.3 * np.mean(gradients * np.minimum(1, 0.7 / np.maximum(norms, 1e-300)), axis=0)
            models.append(v)
        w = np.mean(models, axis=0)
    result = simulate.run(algorithm, silos, rounds=3, seed=1, initial=start, num_threads=1)
    np.testing.assert_allclose(result.models[-1, 0], w, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("features", [7, 8, 13, 64])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_softmax_is_numpys(classes, features):
    """A round of full batches, clipped record by record is NumPy's to 1e-12."""
    rng = np.random.default_rng(classes)
    x = rng.normal(size=(sum(SIZES), features)) * rng.uniform(0, 3 / math.sqrt(features), size=(sum(SIZES), 1))
    y = np.arange(sum(SIZES)) % classes
    silos = simulate.Problem("softmax", x, y * 1.0, SIZES, num_classes=classes)
    algorithm = simulate.NoisyFedAvg(
        learning_rate=0.3, local_steps=1, clip_norm=0.7, noise_std=0.0, clipping="record", records=simulate.EveryRound()
    )
    start = rng.normal(size=(classes, features))
    logits = x @ start.T
    errors = np.exp(logits - logits.max(axis=1, keepdims=True))
    errors = errors / errors.sum(axis=1, keepdims=True) - np.eye(classes)[y]
    gradients = errors[:, :, np.newaxis] * x[:, np.newaxis, :]
    gradients *= np.minimum(1, 0.7 / np.linalg.norm(gradients, axis=(1, 2)))[:, np.newaxis, np.newaxis]
    means = [gradients[a:b].mean(axis=0) for a, b in pairwise(np.cumsum([0, *SIZES]))]
    result = simulate.run(algorithm, silos, rounds=1, seed=1, initial=start.ravel(), num_threads=1)
    expected = (start - 0.3 * np.mean(means, axis=0)).ravel()
    np.testing.assert_allclose(result.models[-1, 0], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("loss", "features"), [("logistic", 7), ("logistic", 50), ("hinge", 50), ("softmax", 50)])
def test_products_change_no_bit(loss, features, monkeypatch):
    """Neither threads, nor how often is recorded, nor how runs are split into calls."""
    silos = problem(loss, features)
    algorithm = simulate.NoisyFedAvg(
        learning_rate=0.3, local_steps=2, clip_norm=0.7, noise_std=0.2, clipping="record", records=simulate.Poisson(0.4)
    )

    def models(**arguments: Any) -> np.ndarray:
        settings = {"rounds": 6, "seed": 3, "num_threads": 1, "num_runs": 5} | arguments
        return simulate.run(algorithm, silos, **settings).models[-1]

    whole = models()
    assert np.array_equal(models(num_threads=2), whole)
    assert np.array_equal(models(record_every=1), whole)
    for first in range(5):
        assert np.array_equal(models(num_runs=1, first_run=first)[0], whole[first])
    monkeypatch.setattr(engine, "ROUND_SECONDS", 0.0)  # clients are handed out from the second round on
    assert np.array_equal(models(num_runs=1, num_threads=2)[0], whole[0])


@kernel
def exponentials(x, out):
    """Take them in a loop, as the slopes do."""
    for i in range(x.size):
        out[i] = exponential(x[i])


def test_exponential():
    """It agrees with exp of long doubles to two units in the last place; NaN stays, and ends of the range are neither 0 nor infinite."""
    x = np.concatenate([np.linspace(-708, 709, 100_001), np.random.default_rng(1).normal(size=100_000)])
    out = np.empty_like(x)
    exponentials(x, out)
    exact = np.exp(x.astype(np.longdouble))
    assert float(np.max(np.abs(out - exact) / exact)) < 2 * 2**-52
    ends = np.empty(3)
    exponentials(np.array([math.nan, -math.inf, math.inf]), ends)
    assert np.isnan(ends[0])
    assert 0 < ends[1] < 1e-307
    assert 1e307 < ends[2] < math.inf


def test_norms_of_records_do_not_underflow():
    """Squares of tiny numbers would be 0, and a gradient that is a large multiple of such a record would pass unclipped."""
    rows = np.array([[3e-165, 4e-165], [0.0, 0.0], [3e200, 4e200], [1.7e308, 1.7e308], [3.0, 4.0]])
    assert row_norms(rows) == pytest.approx([5e-165, 0.0, 5e200, np.inf, 5.0], rel=1e-15)
    problem = simulate.Problem("least_squares", rows[:1], [1e40])  # its gradient has the norm 5e-125
    everyone = simulate.EveryRound()
    algorithm = simulate.NoisyMinibatchSGD(learning_rate=1.0, clip_norm=1e-130, noise_std=1e-150, records=everyone)
    with pytest.raises(ValueError, match=r"clip_norm must be at least 1.0e-138, .* not 1e-200"):
        simulate.NoisyMinibatchSGD(learning_rate=1.0, clip_norm=1e-200, noise_std=1e-200, records=everyone)
    result = simulate.run(algorithm, problem, rounds=1, seed=0)
    assert math.hypot(*result.models[0, -1]) == pytest.approx(1e-130, rel=1e-9)
