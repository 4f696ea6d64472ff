"""Schedules, random stops and starting laws of the simulator, and what is certified of the one model that is released."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("numba")

import hockeystick as hs
from hockeystick import federated, last_iterate, simulate

FREE: dict[str, Any] = {"clip_norm": math.inf}
AGGREGATOR: dict[str, Any] = {"learning_rate": 0.8, "clip_norm": 1.0, "noise_std": 1.5, "batch_size": 4, "radius": 1.0}
PNSGD: dict[str, Any] = {"learning_rate": 0.5, "clip_norm": 1.0, "noise_std": 2.0, "radius": 0.5}
USERS = simulate.synthetic("logistic", sizes=[1] * 40, num_features=3, seed=1)
POOLED = simulate.synthetic("logistic", sizes=[12], num_features=3, seed=1)
PROCESS = {"num_records": 12, "learning_rate": 0.5, "lipschitz": 1.0, "diameter": 1.0}  # of PNSGD, for `last_iterate`
STEPS, NOISES = tuple(1 / t for t in range(1, 11)), tuple(1 + 0.1 * t for t in range(10))


# What runs


def test_schedule_of_steps_is_numpys() -> None:
    """Without noise a quadratic in batches of all users is w - eta_t (w - mean), round by round."""
    x = np.random.default_rng(0).normal(size=(6, 2))
    problem = simulate.Problem("quadratic", x, sizes=[1] * 6)
    factors = (1.0, 0.25, 0.5)
    algorithm = simulate.TrustedAggregator(learning_rate=0.4, batch_size=2, step_factors=factors, **FREE)
    runs = simulate.run(algorithm, problem, rounds=3, seed=3, num_runs=300).last_iterates
    expected = []
    for order in itertools.permutations(range(6)):
        w = np.zeros(2)
        for t, factor in enumerate(factors):
            w = w - 0.4 * factor * (w - x[list(order[2 * t : 2 * t + 2])].mean(axis=0))
        expected.append(w)
    distance = np.abs(runs[:, np.newaxis] - np.array(expected)).max(axis=-1)
    assert distance.min(axis=1).max() < 1e-12
    assert len(set(distance.argmin(axis=1))) > 50  # batches are random


def test_schedule_of_noise() -> None:
    """Linear losses: the variance of the last model is the sum of (eta_t sigma_t)^2/m."""
    problem = simulate.Problem("linear", np.zeros((6, 1)), sizes=[1] * 6)
    steps, noises = (1.0, 0.5, 2.0), (1.0, 3.0, 0.2)
    schedules = {"step_factors": steps, "noise_factors": noises}
    algorithm = simulate.TrustedAggregator(learning_rate=0.4, noise_std=0.7, batch_size=2, **schedules, **FREE)
    w = simulate.run(algorithm, problem, rounds=3, seed=3, num_runs=20_000).last_iterates[:, 0]
    variance = sum((0.4 * a * 0.7 * b) ** 2 / 2 for a, b in zip(steps, noises, strict=True))
    assert abs(w.mean()) < 4 * math.sqrt(variance / 20_000)
    assert stats.kstest(w / math.sqrt(variance), "norm").pvalue > 1e-3


@pytest.mark.parametrize(
    ("algorithm", "more", "least"),
    [
        (simulate.ProjectedNoisySGD, {}, 1),
        *(
            (simulate.TrustedAggregator, {"batch_size": 1, "suffix": suffix}, least)
            for suffix, least in ((1.0, 1), (0.5, 3), (0.4, 4), (0.2, 5), (0.01, 5))
        ),
    ],
)
def test_stop_is_uniform_among_the_last_rounds(algorithm: Any, more: dict[str, Any], least: int) -> None:
    """Noise-free linear losses tell the stop: rounds from the first of the suffix on, equally often."""
    silos = [1] * 5 if more else None
    problem = simulate.Problem("linear", -np.ones((5, 1)), sizes=silos)
    algorithm = algorithm(learning_rate=1.0, random_stop=True, **more, **FREE)
    released = simulate.run(algorithm, problem, rounds=5, seed=2, num_runs=4000).models[-1, :, 0]
    values, counts = np.unique(released, return_counts=True)
    assert values.tolist() == list(range(least, 6))
    assert len(counts) == 1 or stats.chisquare(counts).pvalue > 1e-3


def test_starting_law() -> None:
    """A law is drawn for each run, the same for a run whichever others there are; an array has one start for each run."""
    problem = simulate.Problem("linear", np.zeros((1, 2)))
    still = simulate.ProjectedNoisySGD(learning_rate=1.0, **FREE)

    def law(rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-1, 1, size=2)

    def starts(**changes: Any) -> np.ndarray:
        return simulate.run(still, problem, **({"rounds": 1, "seed": 5, "initial": law} | changes)).last_iterates

    together = starts(num_runs=2000)
    assert stats.kstest(together.ravel(), "uniform", args=(-1, 2)).pvalue > 1e-3
    assert np.array_equal(starts(first_run=7, num_runs=3), together[7:10])
    assert not np.array_equal(starts(seed=6), together[:1])
    given = np.arange(6.0).reshape(3, 2)
    assert np.array_equal(starts(initial=given, num_runs=3), given)


# What is certified


@pytest.mark.parametrize("loss", ["convex", "nonconvex"])
@pytest.mark.parametrize(("suffix", "scheduled"), [(None, True), (1.0, True), (1.0, False), (0.3, True), (0.3, False)])
def test_trusted_aggregator_by_rounds(loss: str, suffix: float | None, scheduled: bool) -> None:
    """At the certified epsilon the theorem's delta, with all users in the run, is the delta asked, and never above it."""
    clip = 1.0 if loss == "convex" else 0.5  # synthetic records have norm at most 1: clipping at .5 is active
    schedules: dict[str, Any] = {"step_factors": STEPS, "noise_factors": NOISES} if scheduled else {}
    stop: dict[str, Any] = {} if suffix is None else {"random_stop": True, "suffix": suffix}
    algorithm = simulate.TrustedAggregator(**(AGGREGATOR | {"clip_norm": clip} | schedules | stop))
    guarantee = algorithm.guarantee(USERS, rounds=10)
    for delta in (1e-3, 1e-6):
        epsilon = guarantee.epsilon(10, delta)
        assert epsilon > 0
        rates, noises = 0.8 * np.array(STEPS if scheduled else 1.0), 1.5 * np.array(NOISES if scheduled else 1.0)
        users: dict[str, Any] = {"num_users": 40, "batch_size": 4, "lipschitz": clip, "radius": 1.0, "loss": loss}
        if suffix is None:
            theorem = federated.trusted_aggregator(epsilon, **users, learning_rate=rates, noise_std=noises)
        else:
            users |= {"learning_rate": rates, "noise_std": noises, "suffix": suffix}
            theorem = federated.trusted_aggregator_random_stop(epsilon, **users)
        assert theorem <= delta
        assert theorem == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("index", [1, 7, 12])
def test_guarantee_of_a_record(noise: str, index: int) -> None:
    """At the certified epsilon the smallest bound for the record is delta; Theorem 3 or 4 is never below; a record not yet used has 0.

    It is at most what all models show of any record.
    """
    problem = simulate.synthetic("logistic", sizes=[12], num_features=1, seed=1) if noise == "laplace" else POOLED
    algorithm = simulate.ProjectedNoisySGD(noise=noise, **PNSGD)
    guarantee = algorithm.guarantee(problem, rounds=12, index=index)
    assert guarantee.released == f"the last model only, for record {index}"
    name = "noise_scale" if noise == "laplace" else "noise_std"
    settings: dict[str, Any] = PROCESS | {"index": index, name: 2.0, "smoothness": problem.smoothness}
    theorem = getattr(last_iterate, f"pnsgd_{noise}")
    for delta in (1e-2, 1e-6):
        epsilon = guarantee.epsilon(12, delta)
        least = delta * (1 - 1e-3) if epsilon > 0 else 0.0
        assert least <= last_iterate.best(epsilon, **settings).delta <= delta
        if epsilon > 1e-6:
            assert theorem(epsilon - 1e-6, **settings) >= delta
        everything = algorithm.guarantee(problem, rounds=12).epsilon(12, delta)
        assert epsilon <= everything + 1e-8
        last, every = (
            algorithm.guarantee(problem, rounds=12, index=index, released=view).epsilon(12, delta)
            for view in ("last_model", "every_model")
        )
        assert last <= every == everything
    if index > 1:
        assert guarantee.epsilon(index - 1, 1e-6) == 0


def test_last_record_is_plain_noise() -> None:
    """No later round hides it: epsilon is that of two normal laws 2L/sigma apart."""
    for clip in (1.0, 0.1):  # at .1, clipping is active
        algorithm = simulate.ProjectedNoisySGD(**(PNSGD | {"clip_norm": clip}))
        epsilon = algorithm.guarantee(POOLED, rounds=12, index=12).epsilon(12, 1e-3)
        assert epsilon == pytest.approx(hs.gaussian_epsilon(clip, 1e-3), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("index", [None, 1, 6, 12])
def test_random_stop(index: int | None) -> None:
    """The mean over stops of the bound for the later rounds; below Theorem 5 for the worst record, and below composition."""
    algorithm = simulate.ProjectedNoisySGD(random_stop=True, **PNSGD)
    guarantee = algorithm.guarantee(POOLED, rounds=12, index=index)
    settings: dict[str, Any] = PROCESS | {"noise_std": 2.0, "smoothness": POOLED.smoothness}
    delta = 1e-3
    epsilon = guarantee.epsilon(12, delta)
    theorem_5 = last_iterate.pnsgd_gaussian_random_stop(epsilon, **settings)
    assert theorem_5 >= delta * (1 - 1e-6) or index not in {None, 1}
    last = 12 - (index or 1)
    later = [last_iterate.best(epsilon, index=12 - k, **settings).delta for k in range(last + 1)]
    assert sum(later) / 12 == pytest.approx(delta, rel=1e-5)
    plain = simulate.ProjectedNoisySGD(**PNSGD).guarantee(POOLED, rounds=12)
    assert epsilon < plain.epsilon(12, delta)
    two_passes = algorithm.guarantee(POOLED, rounds=13)
    assert two_passes.released == "all models, for the record that loses most"


def test_result_forwards_the_record() -> None:
    """A result answers for one record after every recorded round."""
    result = simulate.run(simulate.ProjectedNoisySGD(**PNSGD), POOLED, rounds=12, seed=1, record_every=4)
    epsilons = result.epsilon(1e-3, index=6)
    assert epsilons[0] == 0
    assert epsilons[1] > epsilons[2] > 0
    assert result.guarantee(index=6).epsilon(12, 1e-3) == epsilons[2]


def released(
    setting: dict[str, Any], pulls: np.ndarray, steps: np.ndarray, noises: np.ndarray, stops: range
) -> np.ndarray:
    """Return the exact law of the model after a uniformly random stop, on cells of [-radius, radius] and its two ends."""
    edges = np.linspace(-setting["radius"], setting["radius"], 201)
    points = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
    law, total = np.eye(points.size)[np.argmin(np.abs(points))], np.zeros(points.size)
    for t, (pull, step, noise) in enumerate(zip(pulls, steps, noises, strict=True), 1):
        below = stats.norm.cdf((edges - points[:, np.newaxis] + step * pull) / (step * noise))
        law = law @ np.diff(below, axis=1, prepend=0.0, append=1.0)
        total += law * (t in stops) / len(stops)
    return total


@pytest.mark.parametrize("seed", range(6))
def test_exact_chains_stay_below(seed: int) -> None:
    """Linear losses with random settings: the exact laws of the released model never exceed what is certified."""
    rng = np.random.default_rng(seed)
    rounds, suffix = int(rng.integers(2, 6)), float(rng.choice([1.0, 0.5]))
    setting: dict[str, Any] = {"radius": rng.uniform(0.3, 2), "learning_rate": rng.uniform(0.2, 1.2), "clip_norm": 1.0}
    setting["noise_std"] = rng.uniform(0.3, 2)
    factors, noises = rng.uniform(0.3, 1.5, (2, rounds))
    others, index = rng.uniform(-1, 1), int(rng.integers(1, rounds + 1))
    users = simulate.Problem("linear", np.ones((rounds, 1)), sizes=[1] * rounds, feature_bound=1.0)
    records = simulate.Problem("linear", np.ones((rounds, 1)), feature_bound=1.0)
    every, last = range(1, rounds + 1), range(rounds - math.ceil(suffix * rounds) + 1, rounds + 1)

    def law(sign: float, place: int, stops: range, step: Any = 1.0, noise: Any = 1.0) -> np.ndarray:
        pulls, ones = np.where(np.arange(rounds) == place, sign, others), np.ones(rounds)
        return released(
            setting, pulls, ones * setting["learning_rate"] * step, ones * setting["noise_std"] * noise, stops
        )

    schedules: dict[str, Any] = {"step_factors": tuple(factors.tolist()), "noise_factors": tuple(noises.tolist())}
    aggregator = simulate.TrustedAggregator(random_stop=True, suffix=suffix, batch_size=1, **schedules, **setting)
    mixed = [np.mean([law(sign, t, last, factors, noises) for t in range(rounds)], axis=0) for sign in (1.0, -1.0)]
    cases = [(aggregator.guarantee(users, rounds=rounds), mixed)]
    for stop, stops in ((False, range(rounds, rounds + 1)), (True, every)):
        sgd = simulate.ProjectedNoisySGD(random_stop=stop, **setting).guarantee(records, rounds=rounds, index=index)
        cases.append((sgd, [law(sign, index - 1, stops) for sign in (1.0, -1.0)]))
    for guarantee, (p, q) in cases:
        for delta in (0.1, 1e-3):
            gamma = math.exp(guarantee.epsilon(rounds, delta))
            assert max(np.maximum(p - gamma * q, 0).sum(), np.maximum(q - gamma * p, 0).sum()) <= delta * (1 + 1e-9)


@pytest.mark.parametrize("records", [1, 2, 3])
def test_last_model_of_many_passes(records: int) -> None:
    """Linear losses: the exact laws of the last of 2 to 12 models, whichever record differs, never exceed what is certified, which is less than composition."""
    rng = np.random.default_rng(records)
    problem = simulate.Problem("linear", np.ones((records, 1)), feature_bound=1.0)
    for _ in range(4):
        rounds, others = int(rng.integers(2, 13)), rng.uniform(-1, 1)
        setting: dict[str, Any] = {
            "radius": rng.uniform(0.3, 1),
            "learning_rate": rng.uniform(0.2, 1),
            "clip_norm": 1.0,
        }
        setting["noise_std"] = rng.uniform(0.5, 2)
        algorithm = simulate.ProjectedNoisySGD(**setting)
        last, every = (
            algorithm.guarantee(problem, rounds=rounds, released=view) for view in ("last_model", "every_model")
        )
        epsilon = last.epsilon(rounds, 1e-3)
        assert epsilon <= every.epsilon(rounds, 1e-3)
        for place in range(records):
            p, q = (
                released(
                    setting,
                    np.where(np.arange(rounds) % records == place, sign, others),
                    np.full(rounds, setting["learning_rate"]),
                    np.full(rounds, setting["noise_std"]),
                    range(rounds, rounds + 1),
                )
                for sign in (1.0, -1.0)
            )
            for eps, delta in ((epsilon, 1e-3), (last.epsilon(rounds, 0.1), 0.1)):
                gamma = math.exp(eps)
                assert max(np.maximum(p - gamma * q, 0).sum(), np.maximum(q - gamma * p, 0).sum()) <= delta * (1 + 1e-9)


@pytest.mark.parametrize(
    ("records", "rounds", "noise", "known"),
    [(5, 500, 2.0, 4.49), (1, 100, 4.0, 2.98)],  # the bounds of `last_iterate` for the record of the last round
)
def test_last_model_has_the_bound_of_its_room(records: int, rounds: int, noise: float, known: float) -> None:
    """Where all models together leak 91.8 and 33.1; what clipping leaves of a linear loss is one."""
    problem = simulate.Problem("linear", np.ones((records, 1)))
    algorithm = simulate.ProjectedNoisySGD(learning_rate=0.5, clip_norm=1.0, noise_std=noise, radius=1.0)
    guarantee = algorithm.guarantee(problem, rounds=rounds, released="last_model")
    assert guarantee.epsilon(rounds, 1e-5) == pytest.approx(known, abs=5e-3)
    least, *others = guarantee.bounds(rounds, 1e-5)
    assert least == "last_iterate.best_cyclic"
    assert others
    steep = simulate.Problem("quadratic", np.ones((records, 1)), curvature=9.0)  # steps that expand
    assert list(algorithm.guarantee(steep, rounds=rounds, released="last_model").bounds(rounds, 1e-5)) == others


GAUSSIAN = {"learning_rate": 0.5, "clip_norm": 1.0, "noise_std": 2.0, "radius": math.inf}


@pytest.mark.parametrize(
    ("algorithm", "index"),
    [
        (simulate.ProjectedNoisySGD(**GAUSSIAN), 3),
        (simulate.ProjectedNoisySGD(random_stop=True, **GAUSSIAN), None),
        (simulate.TrustedAggregator(batch_size=1, random_stop=True, **GAUSSIAN), None),
        (simulate.TrustedAggregator(batch_size=1, step_factors=(1.0,) * 3, **GAUSSIAN), None),
    ],
)
def test_gaussian_noise_is_never_purely_private(algorithm: simulate.Algorithm, index: int | None) -> None:
    """A delta that underflows is no delta of 0: the losses of Gaussian noise have no end."""
    users = [1] * 3 if isinstance(algorithm, simulate.TrustedAggregator) else None
    problem = simulate.Problem("linear", np.ones((3, 1)), feature_bound=1.0, sizes=users)
    guarantee = algorithm.guarantee(problem, rounds=3, **({} if index is None else {"index": index}))
    assert guarantee.epsilon(3, 0.0) == math.inf
    assert guarantee.epsilon(3, 1e-300) < 40


def test_laplace_noise_is_purely_private() -> None:
    """Its largest loss is 2V/b: one record's gradient moves by 2V = 2 at most, and b = 2."""
    problem = simulate.Problem("linear", np.ones((3, 1)), feature_bound=1.0)
    algorithm = simulate.ProjectedNoisySGD(noise="laplace", **GAUSSIAN)
    assert algorithm.guarantee(problem, rounds=3, index=3).epsilon(3, 0.0) == pytest.approx(1.0, rel=1e-8)
