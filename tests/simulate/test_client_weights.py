"""Clients whose models count more or less in the server's mean: what is computed, and what is certified."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtr

from plain_fedavg import least_p_value, trained

pytest.importorskip("numba")

import hockeystick as hs
from hockeystick import audit, simulate
from hockeystick.federated.released_models import FixedMean

SETTINGS: dict[str, Any] = {"learning_rate": 0.1, "local_steps": 3, "clip_norm": 1.0, "noise_std": 0.4}
SIZES, SHARES = [1, 2, 5, 2], (0.1, 0.2, 0.5, 0.2)
MOVE = 2 * 0.1 * 3  # of a client's model, by one record


def silos(first: float = 0.0, heavy: float = 0.0) -> simulate.Problem:
    """Return linear losses of four silos; gradients of the first client's record and of all of the heaviest client's are given."""
    gradients = np.zeros((10, 1))
    gradients[0], gradients[3:8] = first, heavy
    return simulate.Problem("linear", gradients, sizes=SIZES, feature_bound=1.0)


def test_a_mean_is_weighted():
    """One noiseless round: the shares times the clients' moves; by records as by their shares, and equal weights are as before."""
    problem = simulate.Problem("linear", np.repeat(np.diag([1.0, -2.0, 4.0, 8.0]), SIZES, axis=0), sizes=SIZES)
    settings = {"learning_rate": 0.1, "local_steps": 3, "clip_norm": math.inf}

    def moved(**more: Any) -> np.ndarray:
        return -simulate.run(simulate.NoisyFedAvg(**settings, **more), problem, rounds=1, seed=1).last_iterates[0]

    expected = 0.3 * np.array(SHARES) * [1.0, -2.0, 4.0, 8.0]
    np.testing.assert_allclose(moved(client_weights=SHARES), expected, rtol=1e-12)
    np.testing.assert_allclose(moved(client_weights="records"), expected, rtol=1e-12)
    np.testing.assert_allclose(moved(client_weights=(1e307, 2e307, 5e307, 2e307)), expected, rtol=1e-12)
    assert (moved(client_weights=(3.0, 3.0, 3.0, 3.0)) == moved()).all()


def test_the_heaviest_client_is_certified():
    """Linear losses attain it: all models leak as one Gaussian of the heaviest client's share over the noise of the mean."""
    rounds = 7
    deviation = 0.4 * math.sqrt(sum(p * p for p in SHARES))
    expected = [float(hs.gdp_epsilon(math.sqrt(rounds) * p * MOVE / deviation, 1e-5)) for p in SHARES]
    for weights in (SHARES, "records", (1e-300, 2e-300, 5e-300, 2e-300)):
        algorithm = simulate.NoisyFedAvg(**SETTINGS, client_weights=weights)
        found = algorithm.guarantee(silos(), rounds=rounds, released="every_model").epsilon(rounds, 1e-5)
        assert max(expected) <= found <= max(expected) * (1 + 1e-9)
    equal = simulate.NoisyFedAvg(**SETTINGS).guarantee(silos(), rounds=rounds, released="every_model")
    assert equal.epsilon(rounds, 1e-5) < max(expected)


def test_equal_numbers_are_equal_weights():
    """A tuple of equal numbers has the guarantees of the default, in every view, with and without a ball."""
    for radius in (math.inf, 0.05):
        for kind, more in ((simulate.NoisyFedAvg, {}), (simulate.NoisyFedProx, {"prox": 2.0})):
            plain = kind(**SETTINGS, radius=radius, **more)
            tuples = kind(**SETTINGS, radius=radius, client_weights=(0.25,) * 4, **more)
            for view in ("messages", "every_model", "last_model"):
                one, other = (
                    algorithm.guarantee(silos(), rounds=40, released=view).epsilon(40, 1e-5)
                    for algorithm in (plain, tuples)
                )
                assert one == pytest.approx(other, rel=1e-9)


def test_the_noise_of_weighted_means_is_less():
    """Against the exact deviation in many digits: the weights' squares add up, from one dominant client to a thousand."""
    rng = np.random.default_rng(1)
    for size in (2, 40, 1000):
        weights = tuple(np.exp(2 * rng.standard_normal(size)).tolist())
        problem = simulate.Problem("linear", np.zeros((size, 1)), sizes=[1] * size)
        algorithm = simulate.NoisyFedAvg(**SETTINGS, client_weights=weights)
        found = algorithm.guarantee(problem, rounds=1, released="every_model").epsilon(1, 1e-5)
        with mp.workdps(40):
            exact = [mp.mpf(w) for w in weights]
            mu = max(exact) * 2 * mp.mpf(0.1) * 3 / (mp.mpf(0.4) * mp.sqrt(sum(w * w for w in exact)))
            delta = mp.ncdf(mu / 2 - found / mu) - mp.exp(found) * mp.ncdf(-mu / 2 - found / mu)
            assert delta <= mp.mpf(1e-5)  # at the epsilon that is certified
            assert delta >= mp.mpf(1e-5) * (1 - mp.mpf("1e-9"))


def test_records_that_are_sampled_count_the_worst_of_both():
    """The heaviest client's share with the largest probability that a record is used: above every client's own."""
    algorithm = simulate.NoisyFedAvg(**SETTINGS, client_weights="records", records=simulate.FixedSize(1))
    problem = simulate.Problem("linear", np.zeros((20, 1)), sizes=[4, 6, 10])
    found = algorithm.guarantee(problem, rounds=5, released="every_model").epsilon(5, 1e-5)
    deviation = 0.4 * math.sqrt(4**2 + 6**2 + 10**2)
    own = [(n * MOVE / deviation, 1 - (1 - 1 / n) ** 3) for n in (4, 6, 10)]
    for shift, rate in own:
        assert hs.Accountant("replace").compose(FixedMean(shift, rate), 5).epsilon(1e-5) <= found
    worst = FixedMean(own[2][0], own[0][1])
    assert found == pytest.approx(hs.Accountant("replace").compose(worst, 5).epsilon(1e-5), rel=1e-6)


def last_law(move: float, deviation: float, radius: float, rounds: int) -> np.ndarray:
    """Return the law of a projected walk from 0 on cells of the interval, the ends being cells of their own."""
    edges = np.linspace(-radius, radius, 402)
    places = np.concatenate([[-radius], (edges[1:] + edges[:-1]) / 2, [radius]])
    below = ndtr((edges - places[:, np.newaxis] - move) / deviation)
    kernel = np.diff(below, axis=1, prepend=0.0, append=1.0)
    law = (np.arange(places.size) == places.size // 2).astype(float)
    for _ in range(rounds):
        law = law @ kernel
    return law


@pytest.mark.parametrize("radius", [0.1, 0.3, 3.0])
def test_no_walk_tells_more_by_its_last_model(radius):
    """Opposite gradients of the heaviest client's records, in one dimension: the law of the last model is below the bound of it alone."""
    algorithm = simulate.NoisyFedAvg(**SETTINGS, radius=radius, client_weights="records")
    deviation = 0.4 * math.sqrt(sum(p * p for p in SHARES))
    for rounds in (1, 5, 40):
        bound = algorithm.guarantee(silos(), rounds=rounds, released="last_model")
        one, two = (last_law(sign * 0.5 * MOVE / 2, deviation, radius, rounds) for sign in (1, -1))
        for delta in (0.3, 1e-2, 1e-5):
            found = np.maximum(one - math.exp(bound.epsilon(rounds, delta)) * two, 0.0).sum()
            assert found <= delta * (1 + 1e-3)  # cells have a width


def test_hidden_states_count_the_heaviest_client():
    """The bound of the last model is that of one client whose moves and noise are those of the heaviest in the mean."""
    algorithm = simulate.NoisyFedAvg(**SETTINGS, radius=0.05, client_weights="records")
    found = algorithm.guarantee(silos(), rounds=200, released="last_model").epsilon(200, 1e-5)
    norm = math.sqrt(sum(p * p for p in SHARES))
    moves = {"local_steps": 3, "learning_rate": 0.1, "clip_norm": 0.5, "noise_std": 0.4 * norm, "diameter": 0.1}
    mu = hs.federated.fedavg_gdp(rounds=200, num_clients=1, smoothness=0.0, schedule="constant", **moves)
    assert found == pytest.approx(float(hs.gdp_epsilon(mu, 1e-5)), rel=1e-9)
    assert found < algorithm.guarantee(silos(), rounds=200, released="every_model").epsilon(200, 1e-5) / 2


def test_distances_are_within_gamma():
    """A record of the heaviest client moves the mean by its share times gamma of one client, and linear losses by as much."""
    for weights, share in (((0.6, 0.3, 0.1), 0.6), ((1.0, 1.0, 6.0), 0.125)):
        one, two = (simulate.Problem("linear", [[g], [0.3], [0.1]], sizes=[1] * 3) for g in (1.0, -1.0))
        algorithm = simulate.NoisyFedAvg(**SETTINGS, client_weights=weights)
        gap = simulate.sensitivity(algorithm, one, two, rounds=3, seed=2).data[:, 0]
        assert gap == pytest.approx(share * algorithm.data_sensitivity(3, 1), rel=1e-9)
    with pytest.raises(ValueError, match=r"num_clients must be 1 where client_weights=\(1.0, 1.0, 6.0\), not 3"):
        algorithm.data_sensitivity(3, 3)


def test_threads_share_any_weights():
    """Runs in blocks and a run's clients in blocks give the same bits as one thread."""
    problem = simulate.synthetic("logistic", sizes=[300 + 10 * i for i in range(12)], num_features=6, seed=1)
    algorithm = simulate.NoisyFedAvg(**(SETTINGS | {"local_steps": 40}), client_weights="records")
    for runs in (1, 6):
        one, three = (
            simulate.run(algorithm, problem, rounds=20, seed=5, num_runs=runs, num_threads=threads).models
            for threads in (1, 3)
        )
        assert (one == three).all()


def compared(kind: Any, weights: Any, more: dict[str, Any], runs: int) -> float:
    """Return the least corrected p-value of our models and NumPy's after five rounds."""
    rng = np.random.default_rng(4)
    sizes = [1, 2, 3, 5, 7]
    features, labels = rng.normal(size=(18, 2)), rng.normal(size=18) + 1.0
    problem = simulate.Problem("least_squares", features, labels, sizes=sizes)
    algorithm = kind(learning_rate=0.3, local_steps=3, clip_norm=0.8, noise_std=0.4, client_weights=weights, **more)
    ours = simulate.run(algorithm, problem, rounds=5, seed=11, num_runs=runs).last_iterates
    shares = np.array(sizes if weights == "records" else weights, float)
    return least_p_value(ours, trained(algorithm, problem, 5, runs, shares / shares.sum(), seed=12))


CASES = [
    (simulate.NoisyFedAvg, "records", {}),
    (simulate.NoisyFedAvg, (0.7, 0.1, 0.1, 0.05, 0.05), {}),
    (simulate.NoisyFedProx, "records", {"prox": 1.5}),
]


def test_models_are_those_of_numpy():
    """Means, covariances and laws of a few thousand runs."""
    assert compared(*CASES[0], runs=3000) > 1e-3


@pytest.mark.slow
def test_models_are_those_of_numpy_in_20000_runs():
    """Means, covariances and laws: none differs significantly after correction."""
    for kind, weights, more in CASES:
        assert compared(kind, weights, more, runs=20_000) * len(CASES) > 1e-3, (kind, weights)


@pytest.mark.parametrize("runs", [4000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_audits_stay_below(runs):
    """Opposite gradients of the heaviest client: runs tell less than is certified, and more than of a light one."""
    algorithm = simulate.NoisyFedAvg(**SETTINGS, client_weights="records")
    found = []
    for settings in ({"heavy": 1.0}, {"first": 1.0}):
        scores = [
            simulate.run(
                algorithm, silos(**{k: sign * v for k, v in settings.items()}), rounds=4, seed=seed, num_runs=runs
            ).last_iterates[:, 0]
            for seed, sign in enumerate((1.0, -1.0))
        ]
        found.append(audit.epsilon_lower_bound(*scores, delta=1e-2, confidence=0.999))
    assert 0 <= found[1] < found[0] <= algorithm.guarantee(silos(), rounds=4).epsilon(4, 1e-2)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"client_weights": "size"}, ValueError, "client_weights must be one of 'equal', 'records', not 'size'"),
        ({"client_weights": [0.5, 0.5]}, TypeError, "client_weights must be 'equal', 'records' or a tuple"),
        ({"client_weights": (0.5, 0.0)}, ValueError, r"client_weights\[1\] must be positive"),
        ({"client_weights": (0.5, math.nan)}, ValueError, r"client_weights\[1\]"),
        ({"client_weights": (-0.5, 1.5)}, ValueError, r"client_weights\[0\]"),
        ({"client_weights": "records", "clients": simulate.FixedSize(2)}, ValueError, "unless all clients take part"),
        ({"client_weights": (1.0, 2.0), "clients": simulate.Poisson(0.5)}, ValueError, r"clients=Poisson\(.*0.5.*\)"),
        ({"client_weights": "records", "dropout": 0.1}, ValueError, "dropout=0.1"),
    ],
)
def test_refused_weights(settings, error, message):
    """Weights are positive and of rounds in which all take part."""
    with pytest.raises(error, match=message):
        simulate.NoisyFedAvg(**SETTINGS, **settings)


def test_weights_are_as_many_as_silos():
    """A tuple of another length is refused before the first round."""
    algorithm = simulate.NoisyFedAvg(**SETTINGS, client_weights=(0.5, 0.5))
    with pytest.raises(ValueError, match=r"Length of client_weights \(2\) must match number of silos \(4\)"):
        simulate.run(algorithm, silos(), rounds=1, seed=1)
    with pytest.raises(ValueError, match="Length of client_weights"):
        algorithm.guarantee(silos(), rounds=1)
