"""Clients that drop out of a round: who remains, what their mean leaks, and what is certified."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from plain_fedavg import least_p_value, trained
from small_federations import EPSILONS, largest, mean_of_remaining

pytest.importorskip("numba")

import hockeystick as hs
from hockeystick import audit, simulate
from hockeystick.federated.released_models import FixedMean, PoissonMean, RemainingMean

SETTINGS: dict[str, Any] = {"learning_rate": 0.1, "local_steps": 5, "clip_norm": 1.0, "noise_std": 1.0}


@pytest.mark.share(3)
@pytest.mark.parametrize("noise", [0.5, 1.5])
@pytest.mark.parametrize(
    ("size", "dropout", "use"),
    [(1, 0.3, 1.0), (2, 0.5, 1.0), (3, 0.1, 0.4), (4, 0.3, 1.0), (4, 0.6, 0.3), (2, 0.9, 0.2)],
)
def test_no_remaining_clients_leak_more(size, dropout, use, noise):
    """All places of four clients' models, of which some are drawn and some of these remain: below the pair."""
    edges = np.linspace(-1 - 8 * noise, 1 + 8 * noise, 400)
    pair = RemainingMean(2 / noise, size / 4 * use, size, dropout)._pair("replace")
    for eps in EPSILONS:
        found = largest(lambda *places: mean_of_remaining(*places, size, dropout, use, noise, edges), eps)
        upper = pair.one_step(True, False, eps)[1]
        assert found <= upper * (1 + 1e-9) + 1e-13
        if eps == 0 or noise == 0.5:  # else the largest size counts for all rates, which costs more the less is leaked
            assert found >= upper * (1 - 1e-2 if eps == 0 else 0.8)


def test_two_rounds_of_remaining_clients():
    """Both rounds against opposite models, in the same and in mixed order: below the accountant's bound."""
    edges = np.linspace(-7.0, 7.0, 250)
    laws = [mean_of_remaining((-1.0, -1.0, -1.0), mine, 0.0, 2, 0.3, 1.0, 0.7, edges) for mine in (1.0, -1.0)]
    bound = hs.Accountant("replace").compose(RemainingMean(2 / 0.7, 0.5, 2, 0.3), 2)
    for (p1, q1), (p2, q2) in itertools.product([laws, laws[::-1]], repeat=2):
        for eps in EPSILONS:
            two = np.maximum(np.outer(p1, p2) - math.exp(eps) * np.outer(q1, q2), 0.0).sum()
            assert two <= bound.delta(eps) * (1 + 1e-9)


@pytest.mark.parametrize(("size", "rate", "dropout"), [(5, 0.05, 0.1), (40, 0.2, 0.5), (3, 1.0, 0.25), (7, 0.3, 1e-20)])
def test_pair_is_above_the_mixture_of_fixed_sizes(size, rate, dropout):
    """Given how many remain, they are a smaller sample of a fixed size; the sum over the binomial law, in many digits, is below the pair."""
    pair = RemainingMean(2.0, rate, size, dropout)._pair("replace")
    with mp.workdps(50):
        d, phi = mp.mpf(dropout), mp.ncdf
        for eps in (0.0, 0.5, 2.0, 6.0, 20.0):
            total = mp.mpf(0)
            for r in range(1, size + 1):
                mu, q = 2 / mp.sqrt(r), mp.mpf(rate) * r / size
                gamma = 1 + mp.expm1(eps) / q
                base = phi(mu / 2 - mp.log(gamma) / mu) - gamma * phi(-mu / 2 - mp.log(gamma) / mu)
                total += mp.binomial(size, r) * (1 - d) ** r * d ** (size - r) * q * base
            found = pair.one_step(True, False, eps)[1]
            assert mp.mpf(found) >= total
            if eps == 0 or (dropout == 1e-20 and eps < 10):
                assert found <= total * (1 + mp.mpf("1e-9"))


def test_everybody_and_dropouts_are_poisson_clients():
    """Where all take part, those that remain are a Poisson sample; with d = 0 nothing changes."""
    for eps in EPSILONS:
        ours = RemainingMean(2.0, 1.0, 20, 0.3)._pair("replace").one_step(True, False, eps)
        assert ours == pytest.approx(
            PoissonMean(2.0, 0.7, 1.0, 20)._pair("replace").one_step(True, False, eps), rel=1e-9
        )


def guarantee(algorithm: simulate.Algorithm, num_clients: int = 100, rounds: int = 200, **more: Any) -> float:
    """Return the certified epsilon at 1e-5, clients having one record each."""
    problem = simulate.Problem("linear", np.zeros((num_clients, 2)), sizes=[1] * num_clients, **more)
    return algorithm.guarantee(problem, rounds=rounds).epsilon(rounds, 1e-5)


@pytest.mark.parametrize(
    ("clients", "step", "uses"),
    [
        (simulate.EveryRound(), RemainingMean(1.0, 1.0, 100, 0.1), 200),
        (simulate.FixedSize(5), RemainingMean(1.0, 0.05, 5, 0.1), 200),
        (simulate.Cyclic(5), RemainingMean(1.0, 1.0, 5, 0.1), 10),
        (simulate.Shuffled(5), RemainingMean(1.0, 1.0, 5, 0.1), 10),
        (simulate.Poisson(0.05), PoissonMean(1.0, 0.045, 1.0, 100), 200),
    ],
    ids=repr,
)
def test_samplers_have_their_rounds(clients, step, uses):
    """A round with dropouts is the pair of its sampler; fewer that are averaged hide less."""
    found = guarantee(simulate.NoisyFedAvg(**SETTINGS, clients=clients, dropout=0.1))
    assert found == pytest.approx(hs.Accountant("replace").compose(step, uses).epsilon(1e-5), rel=1e-6)
    if not isinstance(clients, simulate.Poisson):
        assert found > guarantee(simulate.NoisyFedAvg(**SETTINGS, clients=clients))
    prox = simulate.NoisyFedProx(**SETTINGS, clients=clients, dropout=0.1, prox=2.0)
    assert guarantee(prox) < found


def test_sampled_clients_keep_their_amplification():
    """Five of a hundred clients, a tenth of which drop out, leak 3 % more than five: not as if it were known who is drawn."""
    plain = hs.Accountant("replace").compose(FixedMean(1 / math.sqrt(5), 0.05), 200).epsilon(1e-5)
    assert (
        plain < guarantee(simulate.NoisyFedAvg(**SETTINGS, clients=simulate.FixedSize(5), dropout=0.1)) < 1.03 * plain
    )


def test_bounds_of_the_last_model_alone_are_not_given():
    """Bounds of hidden states are for rounds whose noise is the same: with dropouts the last model has the bound of all of them."""
    for clients in (simulate.EveryRound(), simulate.FixedSize(5)):
        algorithm = simulate.NoisyFedAvg(**SETTINGS, clients=clients, dropout=0.1, radius=0.1)
        problem = simulate.Problem("linear", np.zeros((100, 2)), sizes=[1] * 100, feature_bound=1.0)
        last, every = (
            algorithm.guarantee(problem, rounds=300, released=view) for view in ("last_model", "every_model")
        )
        assert last.epsilon(300, 1e-5) == every.epsilon(300, 1e-5)


# Who remains


def test_clients_drop_out_independently():
    """Gradients 1, 2, 4 and 8 tell who is in the mean: all 16 sets are as frequent as they must be."""
    problem = simulate.Problem("linear", np.eye(4), sizes=[1] * 4)
    algorithm = simulate.NoisyFedAvg(learning_rate=1.0, local_steps=1, clip_norm=9.0, dropout=0.3)
    remains = simulate.run(algorithm, problem, rounds=1, seed=1, num_runs=5000).last_iterates < 0
    counts = np.bincount(remains @ [1, 2, 4, 8], minlength=16)
    chances = [0.7 ** k.bit_count() * 0.3 ** (4 - k.bit_count()) for k in range(16)]
    assert stats.chisquare(counts, 5000 * np.array(chances)).pvalue > 1e-3


def test_without_anybody_the_model_stays():
    """The only client drops out in some rounds: the model takes as many steps as it is there, independently from round to round."""
    problem = simulate.Problem("linear", [[1.0]])
    algorithm = simulate.NoisyFedAvg(learning_rate=1.0, local_steps=1, clip_norm=1.0, dropout=0.6)
    models = simulate.run(algorithm, problem, rounds=10, seed=3, num_runs=4000, record_every=1).models[:, :, 0]
    moved = -np.diff(models, axis=0, prepend=0.0)
    assert set(np.unique(moved)) == {0.0, 1.0}
    counts = np.bincount(moved.sum(axis=0).astype(int), minlength=11)[:8]
    chances = stats.binom.pmf(np.arange(8), 10, 0.4)
    assert stats.chisquare(counts, counts.sum() * chances / chances.sum()).pvalue > 1e-3


def test_no_dropouts_are_the_old_bits_and_threads_share_any():
    """dropout=0 is the default; threads, and clients in blocks, give the same bits as one thread."""
    silos = simulate.synthetic("logistic", sizes=[40] * 12, num_features=6, seed=1)
    for clients in (simulate.EveryRound(), simulate.FixedSize(5)):
        algorithm = simulate.NoisyFedAvg(**SETTINGS, clients=clients, dropout=0.4)
        for runs in (1, 6):
            one, three = (
                simulate.run(algorithm, silos, rounds=40, seed=5, num_runs=runs, num_threads=threads).models
                for threads in (1, 3)
            )
            assert (one == three).all()


# Against plain NumPy

CASES = [
    (simulate.NoisyFedAvg, {"clients": simulate.EveryRound()}),
    (simulate.NoisyFedAvg, {"clients": simulate.FixedSize(4)}),
    (simulate.NoisyFedAvg, {"clients": simulate.Poisson(0.5)}),
    (simulate.NoisyFedAvg, {"clients": simulate.Cyclic(2)}),
    (simulate.NoisyFedProx, {"clients": simulate.FixedSize(4), "prox": 1.5}),
]


def compared(kind: Any, settings: dict[str, Any], runs: int) -> float:
    """Return the least corrected p-value of our models and NumPy's after five rounds."""
    rng = np.random.default_rng(4)
    features, labels = rng.normal(size=(18, 2)), rng.normal(size=18) + 1.0
    problem = simulate.Problem("least_squares", features, labels, sizes=[3] * 6)
    algorithm = kind(learning_rate=0.3, local_steps=3, clip_norm=0.8, noise_std=0.4, dropout=0.35, **settings)
    ours = simulate.run(algorithm, problem, rounds=5, seed=11, num_runs=runs).last_iterates
    return least_p_value(ours, trained(algorithm, problem, 5, runs, np.ones(6), seed=12))


def test_models_are_those_of_numpy():
    """Means, covariances and laws of a few thousand runs."""
    assert compared(*CASES[1], runs=3000) > 1e-3


@pytest.mark.slow
def test_models_are_those_of_numpy_in_20000_runs():
    """Means, covariances and laws of every sampler: none differs significantly after correction."""
    for kind, settings in CASES:
        assert compared(kind, settings, runs=20_000) * len(CASES) > 1e-3, (kind, settings)


@pytest.mark.parametrize(
    ("clients", "runs"),
    [
        (simulate.EveryRound(), 4000),
        pytest.param(simulate.EveryRound(), 20_000, marks=pytest.mark.slow),
        pytest.param(simulate.FixedSize(2), 20_000, marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_audits_stay_below(clients, runs):
    """Opposite gradients of the first of three clients, all others 0: runs tell less than is certified, and something."""
    algorithm = simulate.NoisyFedAvg(
        learning_rate=0.1, local_steps=2, clip_norm=1.0, noise_std=0.2, clients=clients, dropout=0.3
    )
    scores = []
    for seed, gradient in enumerate((1.0, -1.0)):
        problem = simulate.Problem("linear", [[gradient], [0.0], [0.0]], sizes=[1] * 3)
        scores.append(simulate.run(algorithm, problem, rounds=4, seed=seed, num_runs=runs).last_iterates[:, 0])
    lower = audit.epsilon_lower_bound(*scores, delta=1e-2, confidence=0.999)
    assert 0 < lower <= algorithm.guarantee(problem, rounds=4).epsilon(4, 1e-2)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 1.5, math.nan, math.inf, "0.1", None])
def test_refused_dropouts(dropout):
    """A probability below 1, by its name."""
    with pytest.raises((ValueError, TypeError), match="dropout"):
        simulate.NoisyFedAvg(**SETTINGS, dropout=dropout)
