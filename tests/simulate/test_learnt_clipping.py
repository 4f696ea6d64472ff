"""A clip norm that is learnt: against plain NumPy, against laws in closed form, and as one Gaussian release a round."""

import dataclasses
import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from small_runs import LEARNT, SAMPLERS, SILOS, gradient, run

pytest.importorskip("numba")

import hockeystick as hs
from hockeystick import simulate
from hockeystick.training import adaptive_clipping_noise

# With some settings changed, and all records in each batch, as by default
learnt = partial(dataclasses.replace, LEARNT, records=simulate.AdaptiveClippingSGD.records)
SPLIT = adaptive_clipping_noise(0.8, 0.9)
POOLED = SILOS.pooled()


# Against plain NumPy


def numpy_runs(problem, rounds, num_runs, rate, rng):
    """Return last models (num_runs, d) and clip norms (num_runs, rounds) of Poisson batches and least squares, as Algorithm 1 is printed."""
    quantile, clip_rate, z, count_noise = LEARNT.quantile, LEARNT.clip_rate, LEARNT.noise_multiplier, LEARNT.count_noise
    x, y = problem.data.features, problem.data.labels
    expected = rate * len(x)
    split = (z**-2 - (2 * count_noise) ** -2) ** -0.5
    w, clip_norm = np.zeros((num_runs, x.shape[1])), np.full(num_runs, LEARNT.clip_norm)
    path = []
    for _ in range(rounds):
        taken = rng.random((num_runs, len(x))) < rate
        gradients = (w @ x.T - y)[:, :, np.newaxis] * x
        norms = np.linalg.norm(gradients, axis=2)
        kept = taken * np.minimum(1.0, clip_norm[:, np.newaxis] / norms)
        total = np.einsum("rn,rnd->rd", kept, gradients)
        total += split * clip_norm[:, np.newaxis] * rng.standard_normal(w.shape)
        below = np.where(taken, (norms <= clip_norm[:, np.newaxis]) - 0.5, 0.0).sum(axis=1)
        share = 0.5 + (below + count_noise * rng.standard_normal(num_runs)) / expected
        w = w - LEARNT.learning_rate * total / expected
        clip_norm = clip_norm * np.exp(-clip_rate * (share - quantile))
        path.append(clip_norm)
    return w, np.array(path).T


def least_squares():
    """Return records of two features, whose gradients at 0 have norms from 0.02 to 4."""
    rng = np.random.default_rng(11)
    return simulate.Problem("least_squares", rng.normal(size=(12, 2)), rng.normal(size=12))


@pytest.mark.share(2)
@pytest.mark.parametrize("num_runs", [2000, 20_000])
def test_law_is_numpys(num_runs):
    """Models and clip norms of thousands of runs: no mean, covariance or law differs at 1e-3 after correction."""
    problem, rounds, rate = least_squares(), 6, 0.5
    result = simulate.run(learnt(records=simulate.Poisson(rate)), problem, rounds=rounds, seed=3, num_runs=num_runs)
    w, path = numpy_runs(problem, rounds, num_runs, rate, np.random.default_rng(4))
    ours = np.column_stack([result.last_iterates, np.log(result.clip_norm)])
    theirs = np.column_stack([w, np.log(path)])
    found = [stats.ks_2samp(a, b).pvalue for a, b in zip(ours.T, theirs.T, strict=True)]
    found += stats.ttest_ind(ours, theirs, equal_var=False).pvalue.tolist()
    i, j = np.triu_indices(ours.shape[1])  # all entries of the covariance, of models and clip norms together
    products = [centred[:, i] * centred[:, j] for centred in (ours - ours.mean(axis=0), theirs - theirs.mean(axis=0))]
    found += stats.ttest_ind(*products, equal_var=False).pvalue.tolist()
    assert min(found) > 1e-3 / len(found)


@pytest.mark.parametrize("loss", ["least_squares", "logistic", "softmax", "network"])
def test_rounds_are_numpys_almost_without_noise(loss):
    """With noise of 1e-9 and full batches the run is a recursion; the gradients are those that `NoisyMinibatchSGD` steps by."""
    problem = simulate.synthetic(loss, sizes=[20], num_features=9, seed=5, num_classes=3, hidden=4)
    problem = least_squares() if loss == "least_squares" else problem
    tiny = {"noise_multiplier": 1e-9, "count_noise": 1e-9}
    result = simulate.run(learnt(**tiny), problem, rounds=5, seed=1, record_every=1)
    w, clip_norm = problem.initial(), LEARNT.clip_norm
    for rnd in range(5):
        norms, mean = gradients_at(problem, w, clip_norm)
        assert np.abs(np.log(norms / clip_norm)).min() > 1e-6  # no tie that noise could decide
        w = w - LEARNT.learning_rate * mean
        clip_norm *= math.exp(-LEARNT.clip_rate * (np.mean(norms <= clip_norm) - LEARNT.quantile))
        np.testing.assert_allclose(result.models[rnd, 0], w, rtol=0, atol=1e-6)
        assert result.clip_norm[0, rnd] == pytest.approx(clip_norm, rel=1e-6)


def gradients_at(problem, w, clip_norm):
    """Return the norms of all gradients, and the mean of the clipped ones: each by a step of noise-free SGD on one record."""
    found = []
    for features, label in zip(problem.features, problem.labels, strict=True):
        one = dataclasses.replace(problem, features=[features], labels=[label], sizes=None)
        found.append(gradient(one, w))
    norms = np.linalg.norm(found, axis=1)
    return norms, np.mean(np.array(found) * np.minimum(1.0, clip_norm / norms)[:, np.newaxis], axis=0)


@pytest.mark.parametrize("records", SAMPLERS, ids=repr)
def test_a_clip_norm_that_stays_is_noisy_sgd(records):
    """At a clip rate of 1e-300 batches, noise and models are those of `NoisyMinibatchSGD` with the noise of the updates."""
    noise = SPLIT * 1.5 / records._divisor(POOLED.num_records)
    plain = simulate.NoisyMinibatchSGD(learning_rate=0.3, clip_norm=1.5, noise_std=noise, records=records)
    one = run(learnt(clip_rate=1e-300, records=records), POOLED, num_runs=3)
    other = run(plain, POOLED, num_runs=3)
    np.testing.assert_allclose(one.last_iterates, other.last_iterates, rtol=1e-12)
    assert (one.clip_norm == 1.5).all()
    assert other.clip_norm is None


# Against closed forms


def log_uniform(num_records):
    """Return linear losses whose gradients have the norms e^u, u evenly spread in (0, 1): their quantile p is e^p."""
    return simulate.Problem("linear", np.exp((np.arange(num_records) + 0.5) / num_records)[:, np.newaxis])


def test_law_of_the_clip_norm():
    """Where the quantile p is e^p, log C is an autoregression: its mean, variance and normal law are known after every round."""
    num_runs, rate, n, clip_rate, quantile, count_noise = 2000, 0.5, 2000, 0.3, 0.5, 40.0
    setting = {"quantile": quantile, "clip_norm": math.exp(0.3), "clip_rate": clip_rate, "count_noise": count_noise}
    algorithm = learnt(records=simulate.Poisson(rate), **setting)
    path = np.log(simulate.run(algorithm, log_uniform(n), rounds=12, seed=5, num_runs=num_runs).clip_norm)
    expected = rate * n
    # The variances of a term of +-1/2 each, and of the noise
    step = rate * (1 - rate) * n / 4 / expected**2 + (count_noise / expected) ** 2
    keeps = 1 - clip_rate
    for t in (1, 2, 5, 12):
        mean = quantile + (0.3 - quantile) * keeps**t
        variance = clip_rate**2 * step * (1 - keeps ** (2 * t)) / (1 - keeps**2)
        standard = (path[:, t - 1] - mean) / math.sqrt(variance)
        assert abs(standard.mean()) < 4 / math.sqrt(num_runs) + 1 / (n * math.sqrt(variance))  # a norm is one of n
        assert abs(standard.var() - 1) < 4 * math.sqrt(2 / num_runs) + 0.01
        assert stats.kstest(standard, "norm").pvalue > 1e-3


# One Gaussian release a round


def test_one_round_leaks_what_is_certified():
    """A record at the clip norm, replaced by a longer opposite one: the likelihood ratio of both releases is that of N(0, 1) and N(2/z, 1).

    So the guarantee is attained: delta of a shift by 2/z at its epsilon is the delta that was asked.
    """
    algorithm = learnt(learning_rate=1.0, clip_norm=1.0, quantile=0.5)
    direction = np.array([1 / SPLIT, 0.5 / 0.9]) * 0.8  # of the shift, in deviations of the noise; a unit vector
    for seed, vector, sign in ((1, 1.0, 1), (2, -1.0001, -1)):
        problem = simulate.Problem("linear", [[vector], [0.0], [0.0], [0.0]])
        result = simulate.run(algorithm, problem, rounds=1, seed=seed, num_runs=20_000)
        total = -4 * result.last_iterates[:, 0] / SPLIT
        count = (-4 * np.log(result.clip_norm[:, 0]) / LEARNT.clip_rate - 1.5) / 0.9  # the others are below
        ratio = np.column_stack([total, count]) @ direction
        assert stats.kstest(ratio - sign / 0.8, "norm").pvalue > 1e-3
    guarantee = algorithm.guarantee(problem, rounds=1)
    assert guarantee.adjacency == "replace"
    epsilon, mu = guarantee.epsilon(1, 1e-3), 2 / 0.8
    delta = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
    assert delta == pytest.approx(1e-3, rel=1e-6)
    assert delta <= 1e-3


def likelihood_ratio(algorithm, result, records):
    """Return the logarithm of the likelihood ratio of all that a run releases: one record is the first of two, three others are 0."""
    split = adaptive_clipping_noise(algorithm.noise_multiplier, algorithm.count_noise)
    models = np.vstack([np.zeros((1, result.num_runs)), result.models[:, :, 0]])
    logs = np.log(np.vstack([np.full((1, result.num_runs), algorithm.clip_norm), result.clip_norm.T]))
    clip_norm = np.exp(logs[:-1])
    total = -4 * np.diff(models, axis=0) / algorithm.learning_rate / (clip_norm * split)
    count = 4 * (algorithm.quantile - np.diff(logs, axis=0) / algorithm.clip_rate - 0.5) / algorithm.count_noise
    ratio = np.zeros(result.num_runs)
    for vector, sign in zip(records, (1, -1), strict=True):
        clipped = math.copysign(1, vector) * np.minimum(abs(vector), clip_norm) / (clip_norm * split)
        below = (np.where(abs(vector) <= clip_norm, 0.5, -0.5) + 1.5) / algorithm.count_noise
        ratio -= sign * ((total - clipped) ** 2 + (count - below) ** 2).sum(axis=0) / 2
    return ratio


def test_audit_of_all_rounds_stays_below():
    """The best attack on models and clip norms of five rounds: below the certified epsilon, and near it, as the clip norm stays between the records."""
    records = (0.9, -1.1)
    algorithm = learnt(clip_norm=1.0, clip_rate=0.02, quantile=0.9, noise_multiplier=4.0, count_noise=2.5)
    scores = []
    for seed, vector in enumerate(records):
        problem = simulate.Problem("linear", [[vector], [0.0], [0.0], [0.0]])
        result = simulate.run(algorithm, problem, rounds=5, seed=seed, num_runs=40_000, record_every=1)
        scores.append(likelihood_ratio(algorithm, result, records))
    certified = algorithm.guarantee(problem, rounds=5).epsilon(5, 1e-2)
    found = hs.audit.evaluate(*scores, delta=1e-2, confidence=0.999)
    assert 0.7 * certified < found.epsilon <= certified


@pytest.mark.parametrize("fpr", [1e-3, 0.01, 0.1])
def test_a_record_whose_gradient_is_zero_is_a_replacement(fpr):
    """A gradient above the clip norm against one of 0: both counts show, and the best test of them finds no more than is certified."""
    algorithm = learnt(clip_norm=1.0, noise_multiplier=1.0, count_noise=0.51, records=simulate.Poisson(1.0))
    shift = math.hypot(1.0 / adaptive_clipping_noise(1.0, 0.51), 1.0 / 0.51)  # the sum moves by C, and the count by 1
    played = stats.norm.sf(stats.norm.isf(fpr) - shift)
    guarantee = algorithm.guarantee(simulate.Problem("linear", [[1.5], [0.0]]), rounds=1)
    assert guarantee.adjacency == "replace"
    release = hs.Accountant("replace").compose(hs.Gaussian(1.0))
    assert guarantee.epsilon(1, 1e-5) == release.epsilon(1e-5)
    assert fpr < played <= hs.risk.true_positive_rate(release, fpr)


def test_a_clip_norm_that_falls_below_the_squares_of_doubles_ends_its_run():
    """Gradients that are far smaller than the clip norm pull it down; the run ends before lengths of gradients can no longer be told apart."""
    problem = simulate.Problem("linear", [[1e-165], [0.0]])
    algorithm = learnt(clip_norm=1.0, clip_rate=2.0, quantile=0.01, learning_rate=1.0)
    with pytest.warns(RuntimeWarning, match="became non-finite"):
        result = run(algorithm, problem, rounds=400)
    assert 0 < result.diverged[0] < 400
    assert np.nanmin(result.clip_norm) >= 1e-138


# The same bits, and what is left behind


def test_clip_norms_of_a_run_that_diverges():
    """They are NaN from the round on that is not finite; a clip norm that leaves the doubles is such a round."""
    steep = simulate.Problem("least_squares", [[1e3], [2e3]], [1.0, 2.0])
    with pytest.warns(RuntimeWarning, match="became non-finite"):
        wild = run(learnt(learning_rate=1e308, clip_norm=100.0), steep, rounds=9)
    assert wild.diverged[0] >= 1
    assert wild.clip_norm.shape == (1, wild.completed)
    zero = simulate.Problem("linear", [[0.0]] * 4)  # below every clip norm, which falls to 0
    with pytest.warns(RuntimeWarning, match="1 of 2 runs became non-finite|2 of 2 runs became non-finite"):
        falls = run(learnt(clip_rate=500.0, count_noise=8.0, noise_multiplier=0.1), zero, rounds=9, num_runs=2)
    for lost, path in zip(falls.diverged, falls.clip_norm, strict=True):
        finished = falls.completed if lost == 0 else lost - 1
        assert np.isfinite(path[:finished]).all()
        assert np.isnan(path[finished:]).all()


def test_sensitivity_knows_the_clip_norm():
    """From one state, one round on adjacent problems moves the model by at most 2 C/n, at the clip norm of each run and round."""
    adjacent = POOLED.replace_record(0, [0.0, 0.0, 0.0, 0.0, 1.0], 1)
    algorithm = learnt(learning_rate=1.0)
    gap = simulate.sensitivity(algorithm, POOLED, adjacent, rounds=6, seed=7, num_runs=4)
    norms = simulate.run(algorithm, POOLED, rounds=6, seed=7, num_runs=4).clip_norm.T
    before = np.vstack([np.full((1, 4), 1.5), norms[:-1]])
    assert (gap.data <= 2 * before / POOLED.num_records + 1e-12).all()
    assert (gap.data > 0).any()
