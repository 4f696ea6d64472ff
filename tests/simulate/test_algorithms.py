"""The simulator's algorithms, against the values of their definitions, plain NumPy, and closed forms."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from small_runs import core, step_divisors

pytest.importorskip("numba")

from hockeystick import simulate
from hockeystick.simulate.running.rule import PROTOCOL, STREAM_WORDS

FREE = {"clip_norm": math.inf, "noise_std": 0.0}


def quadratic(*centres, sizes=None):
    """Return losses (w - x)^2/2, one silo for each x."""
    return simulate.Problem("quadratic", np.array(centres)[:, np.newaxis], sizes=sizes or (1,) * len(centres))


def last(algorithm, problem, rounds, **arguments):
    """Return the released model of one run."""
    return simulate.run(algorithm, problem, rounds=rounds, seed=1, num_threads=1, **arguments).models[-1, 0]


def minibatch(**settings):
    """Return noise-free full-batch SGD with steps of 1/2."""
    return simulate.NoisyMinibatchSGD(**(FREE | {"learning_rate": 0.5, "records": simulate.EveryRound()} | settings))


# The values of the algorithms' definitions; each can be found by hand.


def test_minibatch_sgd_by_hand():
    """Models 0, 1/2, 3/4 have the mean 5/12, and 4/7 with the weights 2, 4, 8; the silos 1 and 3 pull to 2."""
    assert last(minibatch(), quadratic(1.0), 3) == pytest.approx(5 / 12, rel=1e-15)
    assert last(minibatch(strong_convexity=1.0), quadratic(1.0), 3) == pytest.approx(4 / 7, rel=1e-15)
    assert last(minibatch(), quadratic(1.0, 3.0), 2) == pytest.approx(0.5, rel=1e-15)


@pytest.mark.parametrize(("mu", "values"), [(0.0, (0.25, 0.5, 0.7265625)), (1.0, (0.2, 0.35238095238, 0.47619047619))])
def test_accelerated_sgd_by_hand(mu, values):
    """Accelerated SGD with phi = 2 gives the rationals of its recursion."""
    algorithm = simulate.AcceleratedMinibatchSGD(scale=2.0, strong_convexity=mu, records=simulate.EveryRound(), **FREE)
    for rounds, value in enumerate(values, 1):
        assert last(algorithm, quadratic(1.0), rounds) == pytest.approx(value, rel=1e-10)


def test_multistage_schedule_by_hand():
    """Stages have the rounds and scales of the corrected formula, whose product of rounds is in the numerator."""
    arguments = {"smoothness": 1.0, "strong_convexity": 0.1, "gradient_std": 1.0, "initial_gap": 1.0}
    length, scale = simulate.multistage_schedule(**arguments, rounds=1707)[0]
    assert (length, round(scale, 3)) == (1707, 12887.572)
    with pytest.raises(ValueError, match="at least 1707, those of the first stage"):
        simulate.multistage_schedule(**arguments, rounds=1706)
    arguments |= {"smoothness": 10.0, "gradient_std": 2.0, "initial_gap": 5.0}
    length, scale = simulate.multistage_schedule(**arguments, rounds=10**5)[2]
    assert (length, round(scale, 1)) == (5462, 131874.6)


def test_a_stage_starts_from_the_last_ones_result():
    """Two stages are two runs of accelerated SGD, the second from the first's result."""
    shared = {"records": simulate.EveryRound(), "strong_convexity": 0.5} | FREE
    problem = quadratic(1.0, 2.5)
    first = last(simulate.AcceleratedMinibatchSGD(scale=2.0, **shared), problem, 4)
    second = last(simulate.AcceleratedMinibatchSGD(scale=5.0, **shared), problem, 3, initial=first)
    stages = simulate.MultistageMinibatchSGD(stages=((4, 2.0), (3, 5.0)), **shared)
    assert last(stages, problem, 7) == pytest.approx(second, rel=1e-14)


def test_scalar_protocol_by_hand():
    """Without noise bits, 0 and 1 on two levels of [0, 1] are sent as they are: their sum is 1."""
    words = np.zeros(STREAM_WORDS, np.uint64)
    core("start_stream", words, 1, PROTOCOL, 0, 0, 0, 0)
    assert sum(core("encode", words, x, 1.0, 2, 0, 0.25) for x in (0.0, 1.0)) == 1.0


def test_vector_protocol_is_unbiased():
    """The sum of 200 encoded vectors has no bias, and a mean squared error of 9 to 10.5, noise and rounding (corrected recentring)."""
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(200, 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) * rng.uniform(1, 2, size=(200, 1))
    problem = simulate.Problem("linear", vectors, sizes=[1] * 200)
    protocol = simulate.BinomialNoise(20, 8, 0.25)
    algorithm = simulate.ShuffledMinibatchSGD(learning_rate=1.0, clip_norm=1.0, protocol=protocol)
    result = simulate.run(algorithm, problem, rounds=1, seed=3, num_runs=2000)
    error = -200 * result.last_iterates - vectors.sum(axis=0)
    assert np.all(abs(error.mean(axis=0)) < 3 * error.std(axis=0) / math.sqrt(2000))
    assert 9.0 <= np.mean(np.sum(error**2, axis=1)) <= 10.5


def test_accelerated_protocol_is_accelerated_sgd():
    """With many levels and no noise bits the protocol only rounds: the run is the plain one's up to that."""
    problem = quadratic(0.3, 0.9)
    shared = {"scale": 2.0, "records": simulate.EveryRound(), "clip_norm": 5.0}
    plain, coded = (
        last(simulate.AcceleratedMinibatchSGD(protocol=protocol, **shared), problem, 6)
        for protocol in (None, simulate.BinomialNoise(10**9, 0, 0.25))
    )
    assert coded == pytest.approx(plain, abs=1e-7)


def test_local_sgd_by_hand():
    """Two local steps of 1/2 leave a quarter of the distance: 3/4 after one round, 15/16 after two."""
    algorithm = simulate.LocalSGD(learning_rate=0.5, local_steps=2, **FREE)
    assert last(algorithm, quadratic(1.0), 1) == pytest.approx(0.75, rel=1e-15)
    assert last(algorithm, quadratic(1.0), 2) == pytest.approx(0.9375, rel=1e-15)


# Plain NumPy


def numpy_gradient(problem, w, silo, clip_norm, *, batch):
    """Return the mean of a silo's clipped gradients, or their clipped mean."""
    start, stop = problem.data.offsets[silo : silo + 2]
    x, y = problem.data.features[start:stop], problem.data.labels[start:stop]
    each = (1 / (1 + np.exp(-x @ w)) - y)[:, np.newaxis] * x
    if not batch:
        each = each * np.minimum(1, clip_norm / np.linalg.norm(each, axis=1))[:, np.newaxis]
    mean = each.mean(axis=0)
    return mean * min(1, clip_norm / np.linalg.norm(mean)) if batch else mean


@pytest.mark.parametrize("clipping", ["batch", "record"])
@pytest.mark.parametrize("schedule", ["constant", "cyclic", "stagewise", "continuous"])
@pytest.mark.parametrize("prox", [0.0, 0.7])
def test_fedavg_is_numpys(schedule, prox, clipping):
    """Noise-free Noisy-FedAvg with each schedule, and Noisy-FedProx, are a dozen lines of NumPy."""
    problem = simulate.synthetic("logistic", sizes=[5, 9, 4], num_features=6, seed=2, heterogeneity=0.5)
    rate, local, clip_norm = 0.8, 3, 0.2
    w = np.zeros(6)
    for rates in rate / step_divisors(schedule, 4, local):
        models = []
        for silo in range(3):
            v = w.copy()
            for eta in rates:
                gradient = numpy_gradient(problem, v, silo, clip_norm, batch=clipping == "batch")
                v -= eta * (gradient + prox * (v - w))
            models.append(v)
        w = np.mean(models, axis=0)
    kind = partial(simulate.NoisyFedProx, prox=prox) if prox else simulate.NoisyFedAvg
    algorithm = kind(learning_rate=rate, local_steps=local, clip_norm=clip_norm, clipping=clipping, schedule=schedule)
    assert last(algorithm, problem, 4) == pytest.approx(w, rel=1e-12)


def test_projected_sgd_is_numpys():
    """Projected SGD takes the records in their order and stays in its ball."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(6, 3))
    problem = simulate.Problem("quadratic", x)
    w = np.zeros(3)
    for t in range(10):
        w = w - 0.6 * (w - x[t % 6])
        w *= min(1.0, 0.5 / np.linalg.norm(w))
    algorithm = simulate.ProjectedNoisySGD(learning_rate=0.6, radius=0.5, **FREE)
    assert last(algorithm, problem, 10) == pytest.approx(w, rel=1e-13)


def test_tree_is_a_prefix_sum():
    """Without noise DP-FTRL without projection is SGD, restarted or not."""
    problem = simulate.Problem("quadratic", np.random.default_rng(5).normal(size=(8, 2)))
    sgd = last(simulate.ProjectedNoisySGD(learning_rate=0.3, **FREE), problem, 13)
    for restart in (True, False):
        tree = simulate.TreeFTRL(learning_rate=0.3, records=simulate.Cyclic(1), restart=restart, **FREE)
        assert last(tree, problem, 13) == pytest.approx(sgd, rel=1e-12)


def test_each_user_takes_part_once():
    """The trusted aggregator with linear losses sums each user's vector once, over the batch size."""
    vectors = np.random.default_rng(6).normal(size=(12, 2))
    problem = simulate.Problem("linear", vectors, sizes=[1] * 12)
    algorithm = simulate.TrustedAggregator(learning_rate=0.5, batch_size=4, **FREE)
    assert last(algorithm, problem, 3) == pytest.approx(-0.5 * vectors.sum(axis=0) / 4, rel=1e-12)
    with pytest.raises(ValueError, match="rounds must be at most"):
        last(algorithm, problem, 4)


def test_regulariser_is_never_clipped():
    """Accelerated SGD on F + lambda/2 |w - w_0|^2 tends to its minimiser, a quarter of the way here."""
    algorithm = simulate.AcceleratedMinibatchSGD(
        scale=8.0, regularization=3.0, strong_convexity=3.0, records=simulate.EveryRound(), **FREE
    )
    assert last(algorithm, quadratic(1.0), 400, initial=[0.0]) == pytest.approx(0.25, abs=1e-4)


# Moments of linear chains


RUNS = 20000


def moments(algorithm, problem, rounds, mean, variance):
    """Check mean, variance and normality of the last iterate over many runs."""
    w = simulate.run(algorithm, problem, rounds=rounds, seed=9, num_runs=RUNS).last_iterates[:, 0]
    assert abs(w.mean() - mean) < 4 * math.sqrt(variance / RUNS)
    assert abs(w.var() / variance - 1) < 4 * math.sqrt(5 / RUNS)  # kurtosis of Laplace noise at most
    if getattr(algorithm, "noise", "gaussian") == "gaussian":
        assert stats.kstest((w - mean) / math.sqrt(variance), "norm").pvalue > 1e-3


def test_moments_of_projected_sgd():
    """A contracting chain forgets by a = 1 - eta beta a step: closed forms of mean and variance, Gaussian and Laplace."""
    eta, sigma, rounds, centre = 0.25, 1.5, 7, 2.0
    a = 1 - eta
    spread = eta**2 * sigma**2 * (1 - a ** (2 * rounds)) / (1 - a**2)
    problem = simulate.Problem("quadratic", [[centre]])
    settings = {"learning_rate": eta, "clip_norm": math.inf, "noise_std": sigma}
    moments(simulate.ProjectedNoisySGD(**settings), problem, rounds, centre * (1 - a**rounds), spread)
    laplace = simulate.ProjectedNoisySGD(noise="laplace", **settings)
    moments(laplace, problem, rounds, centre * (1 - a**rounds), 2 * spread)


def test_moments_of_federated_algorithms():
    """Noise is drawn for each client: its variance falls with their number, and adds up over rounds and local steps."""
    problem = simulate.Problem("linear", [[0.5], [-0.1], [0.2], [0.6]], sizes=[1] * 4)
    shared = {"learning_rate": 0.1, "clip_norm": 1.0, "noise_std": 0.7}
    mean = -0.3 * 5
    moments(simulate.NoisyFedAvg(local_steps=3, **shared), problem, 5, 0.1 * 3 * mean, 5 * 0.7**2 / 4)
    moments(simulate.LocalSGD(local_steps=3, **shared), problem, 5, 0.1 * 3 * mean, 0.1**2 * 3 * 5 * 0.7**2 / 4)
    for noise, variance in ((0.7, 4 * 0.7**2), ((0.1, 0.2, 0.3, 2.0), 0.01 + 0.04 + 0.09 + 4.0)):
        sgd = simulate.NoisyMinibatchSGD(**(shared | {"noise_std": noise}), records=simulate.EveryRound())
        moments(sgd, problem, 5, 0.1 * mean, 0.1**2 * 5 * variance / 16)


def test_moments_of_tree_noise():
    """After t rounds the noise is that of as many nodes as t has ones in binary, and of all finished trees."""
    problem = simulate.Problem("linear", np.full((8, 1), 0.5))
    settings = {"learning_rate": 0.1, "clip_norm": 1.0, "noise_std": 2.0, "records": simulate.Cyclic(1)}
    moments(simulate.TreeFTRL(restart=False, **settings), problem, 11, -0.05 * 11, 0.04 * 3)
    moments(simulate.TreeFTRL(restart=True, **settings), problem, 11, -0.05 * 11, 0.04 * (1 + 2))


def test_poisson_batches_divide_by_the_expected_size():
    """The mean gradient of Poisson batches is unbiased, and 0 for an empty batch."""
    problem = simulate.Problem("linear", [[1.0], [0.5], [0.25]])
    algorithm = simulate.NoisyMinibatchSGD(learning_rate=1.0, records=simulate.Poisson(0.4), **FREE)
    w = simulate.run(algorithm, problem, rounds=1, seed=2, num_runs=RUNS).last_iterates[:, 0]
    assert abs(w.mean() + 1.75 / 3) < 4 * w.std() / math.sqrt(RUNS)
    assert np.mean(w == 0) == pytest.approx(0.6**3, abs=4 * math.sqrt(0.25 / RUNS))
