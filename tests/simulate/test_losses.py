"""Losses that have a name: gradients and sums over batches, against textbooks, NumPy, differences and envelopes."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import special

from small_runs import EVERYONE, core, gradient, run

pytest.importorskip("numba")

from hockeystick import simulate
from hockeystick.simulate.kernels.core import words
from hockeystick.simulate.problem.problem import row_norms

PROBLEMS = {
    "linear": {},
    "least_squares": {"labels": [0.3, -1.0, 2.0]},
    "logistic": {"labels": [0, 1, 1]},
    "quadratic": {"curvature": 1.7},
    "softmax": {"labels": [0, 2, 1]},
    "network": {"labels": [0, 2, 1], "hidden": 4},
}


def numpy_loss(problem, w, row):
    """Return a record's loss, written as in a textbook."""
    x, y, data = problem.data.features[row], problem.data.labels[row], problem.data
    if problem.loss == "quadratic":
        return 0.5 * data.curvature * float(np.sum((w - x) ** 2))
    if problem.loss == "network":
        h, p, c = data.hidden, x.size, data.outputs
        units = np.tanh(w[: h * p].reshape(h, p) @ x + w[h * p : h * (p + 1)])
        logits = w[h * (p + 1) : h * (p + 1) + c * h].reshape(c, h) @ units + w[-c:]
    elif problem.loss == "softmax":
        logits = w.reshape(-1, x.size) @ x
    else:
        score = float(w @ x)
        return {"linear": score, "least_squares": 0.5 * (score - y) ** 2}.get(
            problem.loss, math.log1p(math.exp(score)) - y * score
        )
    return float(np.log(np.sum(np.exp(logits))) - logits[int(y)])


@pytest.mark.parametrize("loss", PROBLEMS)
def test_gradients(loss):
    """Losses are a textbook's, and gradients their central differences."""
    rng = np.random.default_rng(3)
    problem = simulate.Problem(loss, rng.normal(size=(3, 5)), **PROBLEMS[loss])
    data = words(problem.data)
    units, found = np.empty(problem.data.hidden + problem.data.outputs), np.empty(problem.dimension)
    w = rng.normal(size=problem.dimension)
    for row in range(3):
        core("record_gradient", data, w, row, units, found)
        assert core("record_value", data, w, row, units) == pytest.approx(numpy_loss(problem, w, row), rel=1e-12)
        for j, step in enumerate(1e-5 * np.eye(w.size)):
            slope = (numpy_loss(problem, w + step, row) - numpy_loss(problem, w - step, row)) / 2e-5
            assert found[j] == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_large_scores_do_not_overflow():
    """Logistic and softmax losses are finite where exponentials are not."""
    for loss in ("logistic", "softmax"):
        problem = simulate.Problem(loss, [[1.0], [1.0]], [0, 1])
        data, w = words(problem.data), np.full(problem.dimension, 2000.0)
        w[1:] = -2000.0
        out, units = np.empty(w.size), np.empty(problem.data.outputs)
        values = [core("record_value", data, w, row, units) for row in (0, 1)]
        core("record_gradient", data, w, 0, units, out)
        assert np.isfinite(out).all()
        assert np.isfinite(values).all()
        assert max(values) == pytest.approx(2000.0 if loss == "logistic" else 4000.0)


# Gradients of batches as matrix products: the sums that NumPy takes, at every shape of the last vector and the last eight records


SIZES = [1, 3, 4, 7, 8, 9, 20, 67]


def problem(loss, features, classes):
    """Return silos of all sizes; records of norm 0 to 3, whose gradients are clipped in part."""
    rng, count = np.random.default_rng(features), sum(SIZES)
    x = rng.normal(size=(count, features)) * rng.uniform(0, 3 / math.sqrt(features), size=(count, 1))
    y = rng.integers(0, classes, count) * 1.0 if classes else rng.normal(size=count)
    settings = {"num_classes": classes} if loss == "softmax" else {}
    if loss in {"hinge", "absolute"}:
        settings = {"curvature": 1.7, "feature_bound": 30.0}
    return simulate.Problem(loss, x, y, SIZES, **settings)


def gradients(silos, x, y, w):
    """Return the gradients of records at a model: the derivative by the score, or by the logits, times the record."""
    scores, curvature, sign = x @ w.reshape(-1, x.shape[1]).T, silos.data.curvature, 2 * y[:, np.newaxis] - 1
    label = y[:, np.newaxis]
    slopes = {
        "linear": lambda: np.ones_like(scores),
        "least_squares": lambda: scores - label,
        "logistic": lambda: 1 / (1 + np.exp(-scores)) - label,
        "hinge": lambda: -sign * np.clip(curvature * (1 - sign * scores), 0, 1),
        "absolute": lambda: np.clip(curvature * (scores - label), -1, 1),
        "softmax": lambda: special.softmax(scores, axis=1) - np.eye(scores.shape[1])[y.astype(int)],
    }[str(silos.loss)]()
    return (slopes[:, :, np.newaxis] * x[:, np.newaxis]).reshape(len(x), -1)


@pytest.mark.parametrize("features", [1, 7, 8, 9, 16, 50, 300])
@pytest.mark.parametrize(
    ("loss", "classes"),
    [("linear", 0), ("least_squares", 0), ("logistic", 2), ("hinge", 2), ("absolute", 0)]
    + [("softmax", classes) for classes in (2, 3, 10)],
)
def test_batches_are_numpys(loss, classes, features):
    """Three rounds of full batches, clipped record by record, are NumPy's to 1e-12."""
    silos = problem(loss, features, classes)
    algorithm = simulate.NoisyFedAvg(learning_rate=0.3, local_steps=2, clip_norm=0.7, clipping="record")
    start = np.random.default_rng(0).normal(size=silos.dimension)
    w, edges = start, np.cumsum([0, *SIZES])
    for _ in range(3):
        models = []
        for a, b in pairwise(edges):
            v = w.copy()
            for _ in range(2):
                each = gradients(silos, silos.data.features[a:b], silos.data.labels[a:b], v)
                norms = np.linalg.norm(each, axis=1, keepdims=True)
                v -= 0.3 * np.mean(each * np.minimum(1, 0.7 / np.maximum(norms, 1e-300)), axis=0)
            models.append(v)
        w = np.mean(models, axis=0)
    result = simulate.run(algorithm, silos, rounds=3, seed=1, initial=start, num_threads=1)
    np.testing.assert_allclose(result.models[-1, 0], w, rtol=1e-12, atol=1e-13)


def test_slopes_of_logistic_losses():
    """The slope at label 0 is the logistic function of long doubles to four units in the last place; NaN stays, and none is infinite."""
    x = np.concatenate([np.linspace(-699, 709, 20_001), np.random.default_rng(1).normal(size=20_000)])
    scores = simulate.Problem("logistic", x[:, np.newaxis], np.zeros(x.size), num_classes=None)
    data, out, units = words(scores.data), np.empty(1), np.empty(1)
    found = np.array([core("record_gradient", data, np.ones(1), row, units, out) or out[0] for row in range(x.size)])
    exact = 1 / (1 + np.exp(-x.astype(np.longdouble))) * x
    assert float(np.max(np.abs(found - exact) / np.abs(exact))) < 4 * 2**-52
    rows = simulate.Problem("logistic", [[1.0]], [0])
    given = words(rows.data)
    core("record_gradient", given, np.array([math.nan]), 0, units, out)
    assert np.isnan(out[0])
    for end, least, most in ((-math.inf, 0.0, 1e-300), (math.inf, 1.0, 1.0)):
        core("record_gradient", given, np.array([end]), 0, units, out)
        assert least <= out[0] <= most


def test_norms_of_records_do_not_underflow():
    """Squares of tiny numbers would be 0, and a gradient that is a large multiple of such a record would pass unclipped."""
    rows = np.array([[3e-165, 4e-165], [0.0, 0.0], [3e200, 4e200], [1.7e308, 1.7e308], [3.0, 4.0]])
    assert row_norms(rows) == pytest.approx([5e-165, 0.0, 5e200, np.inf, 5.0], rel=1e-15, abs=0)
    problem = simulate.Problem("least_squares", rows[:1], [1e40])  # its gradient has the norm 5e-125
    assert math.hypot(*gradient(problem, np.zeros(2), 1e-130)) == pytest.approx(1e-130, rel=1e-9, abs=0)


# Losses that are not smooth: gradients are those of the Moreau envelope of Lowy and Razaviyayn 2023, values their own


ENVELOPES = {"hinge": lambda u, y: np.maximum(0.0, 1.0 - (2 * y - 1) * u), "absolute": lambda u, y: abs(u - y)}
BOUND, BETA = 2.0, 12.0
X = np.array([[1.2, -0.5], [0.3, 1.9], [-1.0, 0.2]])
Y = np.array([1.0, 0.0, 1.0])


def of_record(loss, record):
    """Return the problem of one record."""
    return simulate.Problem(loss, [X[record]], [Y[record]], curvature=BETA, feature_bound=BOUND)


@pytest.mark.parametrize("loss", ENVELOPES)
def test_gradients_are_those_of_the_envelope(loss):
    """The envelope's minimum over a fine grid of scores has its slope; the model's loss is the loss itself."""
    b = BETA / BOUND**2
    grid = np.linspace(-8, 8, 1_600_001)
    for model in ([0.0, 0.0], [1.0, 0.3], [-2.0, 1.0], [0.9, 0.1]):
        for record in range(3):
            score, label = float(X[record] @ model), Y[record]
            nearest = grid[np.argmin(ENVELOPES[loss](grid, label) + b / 2 * (score - grid) ** 2)]
            problem = of_record(loss, record)
            found = gradient(problem, np.array(model))
            np.testing.assert_allclose(found, b * (score - nearest) * X[record], atol=5e-5)
            value = run(EVERYONE, problem, rounds=1, initial=model).loss()[
                0, 0
            ]  # of the mean of the models before rounds
            assert value == pytest.approx(float(ENVELOPES[loss](score, label)), abs=1e-12)


@pytest.mark.parametrize("loss", ENVELOPES)
def test_constants_of_the_envelope(loss):
    """Differences of gradients stay below smoothness times the distance, and gradients below the Lipschitz constant."""
    problem = simulate.Problem(loss, X, Y, curvature=BETA, feature_bound=BOUND)
    assert (problem.smoothness, problem.lipschitz, problem.convex) == (BETA, BOUND, True)
    models = np.random.default_rng(2).uniform(-2, 2, (12, 2))
    for record in range(3):
        found = np.array([gradient(of_record(loss, record), model) for model in models])
        apart = np.linalg.norm(models[:, None] - models, axis=2)
        change = np.linalg.norm(found[:, None] - found, axis=2)
        assert (change <= BETA * apart + 1e-9).all()
        assert (np.linalg.norm(found, axis=1) <= BOUND).all()
