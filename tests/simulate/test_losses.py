"""Losses that have a name: gradients and sums over batches, against textbooks, NumPy, differences and envelopes."""

import contextlib
import dataclasses
import functools
import math
import pickle
import runpy
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

import processes
from small_runs import EVERYONE, core, gradient, run

pytest.importorskip("numba")

import numba

from hockeystick import simulate
from hockeystick.simulate.kernels import loops
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


# Losses of the user's own: against losses that have a name, plain NumPy and closed forms; what is refused; and the examples.


SILOS = simulate.synthetic("logistic", sizes=[12, 18], num_features=3, seed=1)
SGD = simulate.NoisyMinibatchSGD(learning_rate=0.5, clip_norm=0.3, noise_std=0.2, records=simulate.FixedSize(5))


@numba.njit
def product(model, features):
    """Return the score; a loop is compiled much quicker than products of arrays."""
    total = 0.0
    for j in range(model.size):
        total += model[j] * features[j]
    return total


@numba.njit
def logistic(model, features, label):
    """Return the logistic loss."""
    score = product(model, features)
    return max(score, 0.0) + math.log1p(math.exp(-abs(score))) - label * score


@numba.njit
def logistic_slope(model, features, label):
    """Return its slope in the score."""
    return 1.0 / (1.0 + math.exp(-product(model, features))) - label


@numba.njit
def logistic_gradient(model, features, label):
    """Return its gradient."""
    return logistic_slope(model, features, label) * features


def sign(model, features):
    """Return the class."""
    return 1 if product(model, features) > 0 else 0


def writes(model, features, label):
    """Return a gradient, and change the model."""
    model[0] = label
    return features


@functools.cache  # a loss is compiled when it is made: not by whoever collects the tests alone
def own_logistic():
    """Return the logistic loss with its constants."""
    return simulate.Loss(logistic, logistic_gradient, smoothness=0.25, lipschitz=1.0, convex=True, predict=sign)


@functools.cache
def unstated():
    """Return the logistic loss without constants or classes."""
    return simulate.Loss(logistic, logistic_gradient)


def silos(loss=None, **settings):
    """Return the records of `SILOS` with another loss, the own logistic one if none is given."""
    return simulate.Problem(loss or own_logistic(), SILOS.data.features, SILOS.data.labels, SILOS.sizes, **settings)


def test_an_own_logistic_loss_is_the_named_one():
    """8,000 runs with the same seed are those of the named loss but for rounding; with another seed they have the same law."""
    settings = {"rounds": 6, "num_runs": 8000}
    own, named = simulate.run(SGD, silos(), seed=3, **settings), simulate.run(SGD, SILOS, seed=3, **settings)
    np.testing.assert_allclose(own.models, named.models, atol=1e-12)
    np.testing.assert_allclose(own.loss()[0], named.loss()[0], atol=1e-12)
    assert (own.accuracy() == named.accuracy()).mean() > 0.999  # a score of 1e-17 may have either sign
    other = simulate.run(SGD, SILOS, seed=4, **settings)
    assert (own.models != other.models).any()
    for j in range(3):
        assert stats.ks_2samp(own.models[0, :, j], other.models[0, :, j]).pvalue > 1e-3 / 3
    both = [np.cov(result.models[0].T) for result in (own, other)]
    np.testing.assert_allclose(both[0], both[1], atol=5 * both[1].max() * math.sqrt(2 / 8000))


def test_every_number_of_threads_gives_the_same_bits():
    """Own losses are called by many threads at once."""
    one, *others = (simulate.run(SGD, silos(), rounds=9, seed=1, num_runs=7, num_threads=n) for n in (1, 2, 4))
    assert all(one.models.tobytes() == other.models.tobytes() for other in others)


@pytest.mark.slow
def test_loops_are_compiled_once():
    """A second loss runs in the loops that the first one compiled."""
    simulate.run(SGD, silos(), rounds=1, seed=1)
    before = len(loops.advance.signatures)
    other = simulate.Loss(lambda w, x, _: 0.5 * np.sum((w - x) ** 2), lambda w, x, _: w - x)
    simulate.run(SGD, silos(other), rounds=1, seed=1)
    assert len(loops.advance.signatures) == before


@numba.njit
def _bounded(model, features, label):
    return 1.0 / (1.0 + math.exp((2 * label - 1) * product(model, features)))


@numba.njit
def _bounded_gradient(model, features, label):
    loss = _bounded(model, features, label)
    return -(2 * label - 1) * loss * (1.0 - loss) * features


def test_a_loss_that_is_not_convex():
    """Noiseless full batches are gradient descent in NumPy; functions may be compiled by the caller."""
    start = np.array([0.5, -1.0, 0.2])
    problem = silos(simulate.Loss(_bounded, _bounded_gradient, initial=start)).pooled()
    found = run(dataclasses.replace(EVERYONE, learning_rate=0.5), problem, rounds=20).last_iterates[0]
    x, sides = problem.data.features, 2 * problem.data.labels - 1
    for _ in range(20):
        losses = 1 / (1 + np.exp(sides * (x @ start)))
        start = start + 0.5 * ((sides * losses * (1 - losses)) @ x) / len(x)
    np.testing.assert_allclose(found, start, rtol=1e-12)
    assert not problem.convex


@pytest.mark.parametrize(
    ("functions", "error", "match"),
    [
        ((3, logistic_gradient), TypeError, "value must be a Python function"),
        ((logistic, lambda w, x, y: len(SILOS) * w * x * y), TypeError, "gradient must be a function that numba compiles: .*SILOS"),
        ((lambda w, x: 0.0, logistic_gradient), TypeError, "value must be a function that numba compiles"),  # noqa: ARG005
        ((lambda w, x, y: w, logistic_gradient), TypeError, r"value must return a float \(float64\), not .*array"),  # noqa: ARG005
        ((lambda w, x, y: 1, logistic_gradient), TypeError, r"value must return a float \(float64\), not .*int"),  # noqa: ARG005
        ((logistic, writes), TypeError, "gradient must be a function that numba compiles: .*readonly"),
        ((logistic, logistic), TypeError, "gradient must return a vector of float64, not float64"),
        ((logistic, lambda w, x, y: x.astype(np.float32)), TypeError, "gradient must return a vector of float64"),  # noqa: ARG005
        ((logistic, lambda w, x, y: x.reshape(1, -1)), TypeError, "gradient must return a vector of float64"),  # noqa: ARG005
        ((logistic, numba.njit(parallel=True)(logistic_gradient.py_func)), ValueError, "must not be compiled with parallel"),
        ((logistic, numba.njit("f8[:](f8[:], f8[:], f8)")(logistic_gradient.py_func)), TypeError, "gradient must be a function that numba compiles"),
    ],
)  # fmt: skip
def test_functions_that_are_none(functions, error, match):
    """What does not compile, writes to a model, or returns something else, is named when the loss is made."""
    with pytest.raises(error, match=match):
        simulate.Loss(*functions)


@numba.njit
def _nan_at_17(features):
    return np.nan if features[0] == SEVENTEEN else 1.0


SEVENTEEN = float(SILOS.data.features[17, 0])


@pytest.mark.share(5)  # each is compiled
@pytest.mark.parametrize(
    ("gradient", "match"),
    [
        (lambda w, x, y: -logistic_slope(w, x, y) * x, r"gradient\(model, features\[0\], labels\[0\]\)\[\d\] must be the derivative of value at the initial model, where differences give"),
        (lambda w, x, y: (1.001 * logistic_slope(w, x, y)) * x, "must be the derivative"),
        (lambda w, x, y: logistic_slope(w, x, y) * x + 0.01 * w, "must be the derivative of value at the initial model [+] 0.1"),
        (lambda w, x, y: logistic_slope(w, x, y) * x * np.nan, r"\[0\] must be finite at the initial model, not nan"),
        (lambda w, x, y: logistic_slope(w, x, y) * x / 0.0, r"\[0\] must be finite at the initial model, not -?inf"),
        (lambda w, x, y: (logistic_slope(w, x, y) * x)[:2], r"must have the model's shape \(3,\), not \(2,\)"),
        (lambda w, x, y: logistic_slope(w, x, y) * x * w[3], r"must not raise, as it did: IndexError"),
        (lambda w, x, y: logistic_slope(w, x, y) * x * (1 + 1e-9 * np.random.random()), "must depend on their arguments alone"),  # noqa: NPY002 - what numba knows
        (lambda w, x, y: logistic_slope(w, x, y) * x * _nan_at_17(x), r"record 17, \(features\[17\], labels\[17\]\), must be finite"),
    ],
)  # fmt: skip
def test_gradients_that_are_none(gradient, match):
    """A gradient that is not the value's, not finite, of another shape or random is refused before the first round."""
    with pytest.raises(ValueError, match=match):
        silos(simulate.Loss(logistic, gradient))


@pytest.mark.parametrize(
    ("claims", "match"),
    [
        ({"smoothness": 1e-3}, r"smoothness=0.001 is refuted: gradients of record 0 change per distance by"),
        ({"smoothness": 0.0}, "smoothness=0.0 is refuted"),
        ({"lipschitz": 0.01}, "lipschitz=0.01 is refuted: a gradient of record 0 has the norm"),
        ({"lipschitz": float(np.linalg.norm(SILOS.data.features, axis=1).max()) / 2 - 1e-3}, "lipschitz|refuted"),
        ({"convex": True, "strong_convexity": 0.5}, "strong_convexity=0.5 is refuted"),
        ({"smoothness": -1.0}, "smoothness must be"),
        ({"lipschitz": 0.0}, "lipschitz must be"),
        ({"strong_convexity": 1.0}, "strong_convexity must be 0 where convex is False"),
        ({"strong_convexity": 1.0, "convex": True, "lipschitz": 1.0}, "lipschitz must not be stated"),
        (
            {"strong_convexity": 1.0, "convex": True, "smoothness": 0.5},
            "strong_convexity must be at most the smoothness",
        ),
        ({"initial": [0.0, math.nan, 1.0]}, "initial must be a vector of 3 finite numbers"),
        ({"initial": [0.0, 1.0], "dimension": 3}, "initial must be a vector of 3 finite numbers"),
    ],
)
def test_claims_that_are_refuted(claims, match):
    """No claim is used that a probe refutes, nor two that contradict each other."""
    with pytest.raises(ValueError, match=match):
        silos(simulate.Loss(logistic, logistic_gradient, **claims))


def test_convexity_is_tried():
    """A loss that curves downwards between two probes is not convex."""
    with pytest.raises(ValueError, match="convex=True is refuted"):
        silos(simulate.Loss(lambda w, x, _: -np.sum(w * w), lambda w, x, _: -2.0 * w, convex=True))  # noqa: ARG005


@pytest.mark.slow
def test_subgradients_at_kinks():
    """At a kink every subgradient is one, and what is not between both slopes is none."""
    for at_kink, good in ((-1.0, True), (0.0, True), (0.7, True), (1.1, False)):
        loss = simulate.Loss.of_score(
            lambda s, _: abs(s), lambda s, _, k=at_kink: 1.0 if s > 0 else -1.0 if s < 0 else k
        )
        with contextlib.nullcontext() if good else pytest.raises(ValueError, match="must be the derivative"):
            silos(loss)


def test_what_raises_later_is_clipped_to_nothing():
    """Where a gradient raises in the middle of a run, it is 0 after clipping, and its loss is NaN."""

    def value(model, features, label):
        if model[0] > 0.4:
            raise ValueError
        return -model[0] + 0.0 * features[0] * label

    def gradient(model, features, label):
        out = np.zeros(1 if model[0] <= 0.4 else 2)
        out[0] = -1.0 + 0.0 * features[0] * label
        return out

    problem = simulate.Problem(simulate.Loss(value, gradient, initial=[-9.0]), [[1.0]])
    steps = dataclasses.replace(EVERYONE, clip_norm=1.0)
    assert run(steps, problem, rounds=30).last_iterates[0, 0] == 1.0
    assert np.isnan(run(steps, problem, rounds=1, initial=[2.0]).loss()).all()


def test_guarantees_say_what_is_stated():
    """Guarantees by claims are those of a named loss with the same constants, and say whose they are; without claims they are no smaller."""
    algorithm = simulate.ProjectedNoisySGD(learning_rate=0.5, clip_norm=1.0, noise_std=2.0, radius=1.0)
    epsilons = []
    for problem in (SILOS, silos(feature_bound=1.0), silos(unstated())):
        guarantee = algorithm.guarantee(problem.pooled(), rounds=30, index=2)
        epsilons.append(guarantee.epsilon(30, 1e-5))
        told = "as stated by the caller: smoothness 0.25, lipschitz 1.0, convex"
        assert (told in guarantee.source) == (problem.loss is own_logistic())
    assert epsilons[0] == epsilons[1] <= epsilons[2]


def test_weights_multiply_claims():
    """The loss of a silo is N p_i times as large, and so are its constants."""
    problem = silos(weights=[0.25, 0.75])
    assert (problem.smoothness, problem.lipschitz, problem.strong_convexity) == (0.375, 1.5, 0.0)


@functools.cache
def hinge():
    """Return the hinge loss."""
    return simulate.Loss.of_score(
        lambda s, y: max(0.0, 1.0 - (2 * y - 1) * s),
        lambda s, y: -(2 * y - 1) if (2 * y - 1) * s < 1 else 0.0,
        lipschitz=1.0,
        convex=True,
    )


@functools.cache
def absolute():
    """Return the absolute loss."""
    return simulate.Loss.of_score(
        lambda s, y: abs(s - y), lambda s, y: 1.0 if s > y else -1.0, lipschitz=1.0, convex=True
    )


@pytest.mark.slow
@pytest.mark.parametrize("loss", [hinge, absolute])
def test_moreau_envelopes_are_those_of_named_losses(loss):
    """The same seed gives the same models and constants but for rounding; without a bound of the features no constants are known."""
    unbounded = silos(loss())
    assert (unbounded.smoothness, unbounded.lipschitz) == (None, None)
    own = silos(loss().moreau(3.0), feature_bound=2.0)
    named = silos(loss.__name__, curvature=12.0, feature_bound=2.0)
    assert (own.smoothness, own.lipschitz, own.convex) == (named.smoothness, named.lipschitz, True)
    found = [simulate.run(SGD, problem, rounds=50, seed=1, num_runs=3).models for problem in (own, named)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-13)


@pytest.mark.slow
def test_the_envelope_of_the_absolute_loss_is_hubers():
    """The value is Huber's: b/2 (s - y)^2 within 1/b, |s - y| - 1/(2b) beyond."""
    loss, b = absolute().moreau(4.0), 4.0
    scores = np.array([-3.0, -0.3, -0.25, -0.1, 0.0, 0.2, 1e-9, 7.0, 1e6])
    found = [loss.value(np.array([score]), np.ones(1), 0.0) for score in scores]
    huber = np.where(abs(scores) <= 1 / b, b / 2 * scores**2, abs(scores) - 1 / (2 * b))
    np.testing.assert_allclose(found, huber, rtol=1e-9, atol=1e-15)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "made", [own_logistic, lambda: simulate.Loss.of_score(lambda s, _: math.sin(s), lambda s, _: math.cos(s))]
)
def test_moreau_is_for_convex_losses_of_the_score(made):
    """Other losses have no envelope here."""
    with pytest.raises(ValueError, match="moreau is for losses that"):
        made().moreau(1.0)


PICKLED = """
import pickle, sys
from pathlib import Path
from hockeystick import simulate
algorithm, problems = pickle.loads(Path(sys.argv[1]).read_bytes())
for problem in problems:
    print(simulate.run(algorithm, problem, rounds=5, seed=1).models.tobytes().hex())
"""


@pytest.mark.slow
def test_pickled_problems_run_in_another_process(tmp_path):
    """There the addresses of this process mean nothing: a problem is made anew, and gives the same bits."""
    problems = (silos(hinge().moreau(2.0), feature_bound=1.0), SILOS)
    (tmp_path / "problems").write_bytes(pickle.dumps((SGD, problems)))
    found = processes.python(PICKLED, tmp_path / "problems").stdout.split()
    assert found == [simulate.run(SGD, p, rounds=5, seed=1).models.tobytes().hex() for p in problems]


def problem_far(factor, *, mirrored=False):
    """Return squares whose loss differs, far from where losses are tried, by a number (factor) or by its code (mirrored)."""

    def far(score, label):
        return factor * abs(score - label) if abs(score - label) > 1e6 else 0.5 * (score - label) ** 2

    def far_mirrored(score, label):
        return factor * abs(label - score) if abs(score - label) > 1e6 else 0.5 * (score - label) ** 2

    far_mirrored.__name__ = "far"  # so that both losses print alike
    return silos(simulate.Loss.of_score(far_mirrored if mirrored else far, lambda score, label: score - label))


@pytest.mark.slow
def test_the_content_of_a_problem_knows_its_loss():
    """Losses of one name that agree wherever they are tried have other contents; a copy, or one made anew, has the same."""
    first = problem_far(1.0)
    alike = [first, problem_far(1.0), pickle.loads(pickle.dumps(first))]
    made = [*alike, problem_far(2.0), problem_far(1.0, mirrored=True)]
    assert len({repr(problem) for problem in made}) == 1
    content = [[np.asarray(value).tobytes() for value in problem.content().values()] for problem in made]
    assert [one == content[0] for one in content] == [True, True, True, False, False]
    assert {*SILOS.content(), "code"} == {*first.content()}


def test_boolean_labels_are_classes():
    """False and True are 0 and 1."""
    problem = dataclasses.replace(SILOS, labels=SILOS.data.labels.astype(bool))
    assert problem.data.labels.tobytes() == SILOS.data.labels.tobytes()
    assert simulate.Problem("hinge", [[1.0], [0.5]], [True, False], feature_bound=1.0).data.labels.tolist() == [1, 0]


def test_accuracy_needs_predict():
    """A loss without `predict` has no accuracy, and is told so; one whose classes are narrow integers, or which raises, has."""
    with pytest.raises(ValueError, match="accuracy is for classes"):
        simulate.run(SGD, silos(unstated()), rounds=1, seed=1).accuracy()
    problem = silos(simulate.Loss(logistic, logistic_gradient, predict=lambda w, x: np.int8(product(w, x) > 0)))
    found = [simulate.run(SGD, one, rounds=1, seed=1).accuracy() for one in (problem, silos())]
    assert found[0] == found[1]
    raises = simulate.Loss(logistic, logistic_gradient, predict=lambda w, x: int(w[7]) if w[0] != 0.0 * x[0] else 0)
    assert simulate.run(SGD, silos(raises), rounds=2, seed=1).accuracy() == 0.0


# The example losses: gradients by hand against differences in all coordinates, and what the file prints when it is run


EXAMPLE = Path(__file__).parents[2] / "examples" / "own_losses.py"


@pytest.fixture(scope="module")
def example():
    """Return what the file defines."""
    return runpy.run_path(str(EXAMPLE))


@pytest.mark.slow  # seconds of compiling
@pytest.mark.share(3, by_day=3)
@pytest.mark.parametrize(
    ("name", "sizes"), [("two_hidden_layers", (25, 4, 3, 5)), ("convolution", (5, 2, 5)), ("convolution", (6, 3, 5))]
)
def test_gradients_by_hand(example, name, sizes):
    """Central differences of a smooth function err by the square of the step and by rounding over it."""
    loss = example[name](*sizes)
    rng = np.random.default_rng(1)
    record = rng.normal(size=36 if sizes[0] == 6 else 25)
    for label in (0.0, 4.0):
        model = rng.normal(size=loss.dimension)
        found = loss.compiled[1](model, record, label)
        moves = 1e-5 * np.eye(model.size)
        above, below = ([loss.compiled[0](at, record, label) for at in ends] for ends in (model + moves, model - moves))
        differences = (np.array(above) - below) / 2e-5
        np.testing.assert_allclose(found, differences, rtol=1e-6, atol=1e-8)
        assert np.count_nonzero(found) > loss.dimension // 2


@pytest.mark.slow
def test_values_are_those_of_plain_numpy(example):
    """The convolution's outputs are those of slices and means in NumPy."""
    loss = example["convolution"](6, 2, 3)
    rng = np.random.default_rng(2)
    model, image = rng.normal(size=loss.dimension), rng.normal(size=(6, 6))
    filters, biases = model[:18].reshape(2, 3, 3), model[18:20]
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
    maps = np.tanh(np.einsum("ijkl,fkl->fij", windows, filters) + biases[:, None, None])
    means = maps.reshape(2, 2, 2, 2, 2).mean(axis=(2, 4)).ravel()
    logits = model[20:44].reshape(3, 8) @ means + model[44:]
    for label in range(3):
        expected = np.log(np.exp(logits).sum()) - logits[label]
        assert loss.compiled[0](model, image.ravel(), float(label)) == pytest.approx(expected, rel=1e-12)
    assert loss.compiled[2](model, image.ravel()) == np.argmax(logits)


@pytest.mark.slow
def test_the_file_runs(example, capsys):
    """Both networks learn digits: ten classes, of which a guess gets one in ten."""
    pytest.importorskip("sklearn")
    example["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["two hidden layers", "convolution"]
    assert all(float(line.split("accuracy ")[1].split(",")[0]) > 0.7 for line in lines)
