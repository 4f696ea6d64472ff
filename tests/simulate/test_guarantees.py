"""What is certified of a run: each algorithm has its mechanism or bound, and nothing without a proof."""

import dataclasses
import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from small_runs import EVERYONE, LEARNT, SGD, SILOS, run

pytest.importorskip("numba")

import hockeystick as hs
from hockeystick import federated, isrl, simulate
from hockeystick.mechanisms.base import plain
from hockeystick.simulate.algorithms import ftrl


def test_minibatch_sgd_is_a_composition_of_the_worst_silo():
    """Every silo is charged for all rounds with its own size, and the largest epsilon counts."""
    result = run(SGD, record_every=2)
    silos = [hs.FixedSizeSampled(hs.Gaussian(0.2 * 5), n, 5, replacement=False) for n in SILOS.sizes]
    worst = [max(hs.Accountant("replace").compose(s, t).epsilon(1e-5) for s in silos) for t in (2, 4, 6)]
    assert result.epsilon(1e-5) == pytest.approx(worst, rel=1e-12)
    ledger = result.accountant(1e-5)
    assert ledger is not None
    assert plain(ledger.ledger) == {silos[2]: 6}
    assert ledger.epsilon_bracket(1e-5).lower == 0.0  # that the training attains the bound is not claimed
    assert ledger.premises.released == (result.guarantee().released,)
    assert result.guarantee().adjacency == "replace"


draws_of_five = partial(hs.FixedSizeSampled, num_records=20, batch_size=5)


def two_at_once(noise):
    """Return the release of what both epochs of six rounds of four bins leak of a record."""
    return hs.Gaussian(noise.noise_multiplier / math.sqrt(2))


@pytest.mark.parametrize(
    ("records", "divisor", "mechanism", "adjacency", "uses"),
    [
        (simulate.Poisson(0.1), 2, lambda noise: hs.PoissonSampled(noise, 0.1), "replace", 6),
        (simulate.Poisson(0.1, 3), 3, lambda noise: hs.PoissonSampled(noise, 0.1), "add_or_remove", 6),
        (simulate.CyclicPoisson(4, 0.1), 0.5, lambda noise: hs.PoissonSampled(noise, 0.1), "replace", 2),
        (simulate.CyclicPoisson(5, 0.1, 3), 3, lambda noise: hs.PoissonSampled(noise, 0.1), "add_or_remove", 2),
        (
            simulate.MinSeparatedPoisson(4, 0.1, False, 3),
            3,
            lambda noise: hs.PoissonSampled(noise, 0.1),
            "add_or_remove",
            6,
        ),
        (simulate.BallsInBins(4, 5), 5, lambda noise: hs.RandomAllocation(two_at_once(noise), 4), "add_or_remove", 1),
        (simulate.BallsInBins(1, 5), 5, lambda noise: noise, "add_or_remove", 6),
        (simulate.EveryRound(), 20, lambda noise: noise, "replace", 6),
        (simulate.Cyclic(5), 5, lambda noise: noise, "replace", 2),  # two passes of four
        (simulate.Shuffled(5), 5, lambda noise: noise, "replace", 2),
        (simulate.Shuffled(3), 3, lambda noise: noise, "replace", 1),
        (simulate.FixedSize(5), 5, lambda noise: draws_of_five(noise, replacement=False), "replace", 6),
        (simulate.WithReplacement(5), 5, lambda noise: draws_of_five(noise, replacement=True), "replace", 6),
    ],
    ids=lambda value: None if callable(value) else repr(value),
)
def test_samplers_have_their_mechanisms(records, divisor, mechanism, adjacency, uses):
    """What a batch leaks is the mechanism of its sampler, under its adjacency; batches of one pass are disjoint.

    A round with a learnt clip norm is one Gaussian of the noise multiplier, not of the larger one of the updates, whatever may be seen.
    """
    problem = simulate.synthetic("logistic", sizes=[20], num_features=3, seed=1)
    alone = dataclasses.replace(SGD, records=records).guarantee(problem, rounds=6)
    expected = hs.Accountant(adjacency).compose(mechanism(hs.Gaussian(0.2 * divisor)), uses).epsilon(1e-5)
    assert alone.adjacency == adjacency
    assert alone.epsilon(6, 1e-5) == pytest.approx(expected, rel=1e-12)
    learnt = dataclasses.replace(LEARNT, records=records)
    expected = hs.Accountant(adjacency).compose(mechanism(hs.Gaussian(0.8)), uses).epsilon(1e-5)
    for view in (None, "messages", "every_model", "last_model"):
        guarantee = learnt.guarantee(problem, rounds=6, released=view)
        assert guarantee.adjacency == adjacency
        assert guarantee.epsilon(6, 1e-5) == pytest.approx(expected, rel=1e-12)
    assert "clip norms" in learnt.guarantee(problem, rounds=6).released


@pytest.mark.parametrize("sizes", [(2**15, 2**15 + 1), (2**15 + 1, 2**15)])
def test_silos_that_agree_after_many_rounds_may_differ_before(sizes):
    """After 2^15 + 1 rounds of single records the smaller silo is in its second pass, and pays for two, listed first or last."""
    problem = simulate.Problem("linear", np.ones((sum(sizes), 1)), sizes=sizes)
    expected = hs.Accountant("replace").compose(hs.Gaussian(5.0), 2)
    for records in (simulate.Cyclic(1), simulate.Shuffled(1)):
        algorithm = simulate.NoisyMinibatchSGD(learning_rate=0.1, clip_norm=1.0, noise_std=5.0, records=records)
        guarantee = algorithm.guarantee(problem, rounds=2**15 + 1)
        assert guarantee.epsilon(2**15 + 1, 1e-5) == pytest.approx(expected.epsilon(1e-5), rel=1e-12)
        spent = guarantee.accountant(2**15 + 1, 1e-5)
        assert spent is not None
        assert plain(spent.ledger) == expected.ledger


@pytest.mark.parametrize("loss", ["least_squares", "quadratic"])
@pytest.mark.parametrize("clipping", ["batch", "record"])
def test_no_record_makes_a_clipped_run_diverge(loss, clipping):
    """A gradient that overflows is clipped to 0: a model that is not finite would tell of the record, whatever the noise."""
    labels = [1.0, 1.0, 1.0] if loss == "least_squares" else None
    problem = simulate.Problem(loss, [[1e308, 1e308], [1.0, 1.0], [2.0, 1.0]], labels, curvature=10.0)
    steps: dict[str, Any] = {"learning_rate": 1.0, "local_steps": 2, "clip_norm": 1.0, "noise_std": 5.0}
    algorithm = simulate.NoisyFedAvg(**steps, clipping=clipping, clients=simulate.FixedSize(1))
    last = run(algorithm, problem, rounds=4, num_runs=20).last_iterates
    assert abs(last).max() < 100  # and no NaN


def test_local_sgd_composes_every_step():
    """K local steps a round are K mechanisms on single records."""
    algorithm = simulate.LocalSGD(learning_rate=0.1, local_steps=3, clip_norm=2.0, noise_std=4.0)
    problem = simulate.Problem("linear", np.ones((20, 1)))
    step = hs.FixedSizeSampled(hs.Gaussian(2.0), 20, 1, replacement=False)
    expected = hs.Accountant("replace").compose(step, 12).epsilon(1e-5)
    assert algorithm.guarantee(problem, rounds=4).epsilon(4, 1e-5) == pytest.approx(expected, rel=1e-12)


def test_trusted_aggregator_has_its_bound():
    """The certified epsilon is where the smallest certified delta, times the share that took part, meets delta."""
    problem = simulate.synthetic("logistic", sizes=[1] * 40, num_features=3, seed=1)
    algorithm = simulate.TrustedAggregator(learning_rate=0.5, clip_norm=1.0, noise_std=1.5, batch_size=4, radius=1.0)
    settings: dict[str, Any] = {"batch_size": 4, "learning_rate": 0.5, "noise_std": 1.5, "lipschitz": 1.0}
    settings |= {"radius": 1.0, "loss": "convex", "smoothness": 0.25}
    for rounds in (3, 10):
        epsilon = algorithm.guarantee(problem, rounds=10).epsilon(rounds, 1e-4)
        best = federated.best(epsilon, num_users=4 * rounds, **settings)
        assert best.delta * rounds / 10 == pytest.approx(1e-4, rel=1e-6)
        assert best.delta * rounds / 10 <= 1e-4


def brute_tree(rounds: int, period: int) -> int:
    """Return the sensitivity from the nodes of every prefix, one by one."""
    nodes = {(level, n >> level) for n in range(1, rounds + 1) for level in range(n.bit_length()) if n >> level & 1}
    passes = [range(residue + 1, rounds + 1, period) for residue in range(min(period, rounds))]
    return max(sum(sum((k - 1) << j < t <= k << j for t in mine) ** 2 for j, k in nodes) for mine in passes)


# One pass over 8 rounds: the first is in all 4 nodes that prefixes use. Two over 4: rounds 1 and 5 have {1}, {5}; {1,2}, {5,6}; {1..4}; {1..8} twice
BY_HAND = {(8, 8): 4, (7, 7): 3, (8, 4): 2 * 1 + 2 * 1 + 1 + 4}


@pytest.mark.parametrize(("rounds", "period"), [*BY_HAND, (1, 1), (5, 5), (11, 4), (23, 3), (32, 8), (33, 33)])
def test_tree_sensitivity_counts_nodes(rounds, period):
    """The sensitivity of tree noise is the sum over nodes that its prefixes are made of."""
    found = ftrl.tree_sensitivity(rounds, period)
    assert found == brute_tree(rounds, period) == BY_HAND.get((rounds, period), found)


def test_binomial_noise_is_certified_for_the_shuffled_sums():
    """The bits of all messages of a round hide one, in every round in which its record can take part; one pass is one round."""
    shared: dict[str, Any] = {"clip_norm": 1.0, "protocol": simulate.BinomialNoise(levels=8, bits=60, probability=0.25)}
    shared |= {"clients": simulate.FixedSize(3)}
    fresh = simulate.ShuffledMinibatchSGD(learning_rate=0.1, records=simulate.FixedSize(5), **shared)
    setting = {"num_messages": 15, "levels": 8, "noise_bits": 60, "probability": 0.25, "dimension": SILOS.dimension}
    guarantee = fresh.guarantee(SILOS, rounds=4)
    assert guarantee.adjacency == "replace"
    assert guarantee.epsilon(0, 1e-5) == 0.0
    assert guarantee.epsilon(4, 1e-5) == isrl.vector_sum_epsilon(**setting, delta=1e-5, rounds=4)
    assert guarantee.epsilon(4, 0.0) == math.inf
    one_pass = simulate.AcceleratedMinibatchSGD(scale=2.0, records=simulate.Cyclic(5), **shared)
    once = isrl.vector_sum_epsilon(**setting, delta=1e-5)
    assert one_pass.guarantee(SILOS, rounds=3).epsilon(3, 1e-5) == once
    assert one_pass.guarantee(SILOS, rounds=4).epsilon(4, 1e-5) > once  # the silo of 15 records is in its second pass
    result = run(one_pass, SILOS, rounds=3)
    assert result.epsilon(1e-5) == [once]
    assert result.accountant(1e-5) is None


def test_draws_with_replacement_are_those_of_isrl():
    """Algorithm 2 as printed draws with replacement; its guarantee is that of `isrl`, and above that of draws without."""
    algorithm = dataclasses.replace(SGD, noise_std=2.0, records=simulate.WithReplacement(5))
    problem = simulate.synthetic("logistic", sizes=[50], num_features=3, seed=1)
    found = algorithm.guarantee(problem, rounds=6).epsilon(6, 1e-5)
    silo = {"noise_std": 2.0, "lipschitz": 1.0, "num_records": 50, "batch_size": 5, "rounds": 6, "delta": 1e-5}
    assert isrl.noisy_mb_sgd_epsilon(**silo, replacement=True) == pytest.approx(found, rel=1e-12)
    assert found > isrl.noisy_mb_sgd_epsilon(**silo)


def test_shuffled_gaussian_messages():
    """One record of each silo in a round: the shuffler's guarantee; otherwise that of every silo, which shuffling cannot weaken."""
    problem = simulate.Problem("linear", np.ones((60, 1)), sizes=[2] * 30)
    settings: dict[str, Any] = {"learning_rate": 0.1, "clip_norm": 1.0, "noise_std": 8.0, "shuffled": True}
    once = simulate.NoisyMinibatchSGD(**settings, records=simulate.FixedSize(1), clients=simulate.FixedSize(20))
    silos = {"num_records": 2, "num_silos": 30, "silos_per_round": 20, "rounds": 5}
    expected = isrl.shuffled_mb_sgd_epsilon(**silos, noise_std=8.0, lipschitz=1.0, delta=1e-5)
    found = once.guarantee(problem, rounds=5)
    assert found.epsilon(5, 1e-5) == expected
    assert found.released.startswith("the shuffled messages")
    plain = simulate.NoisyMinibatchSGD(**settings, records=simulate.FixedSize(2))
    alone = dataclasses.replace(plain, shuffled=False)
    assert plain.guarantee(problem, rounds=5).epsilon(5, 1e-5) == alone.guarantee(problem, rounds=5).epsilon(5, 1e-5)


@pytest.mark.parametrize("size", [3, 4, 12, 300])
def test_more_draws_than_records(size: int) -> None:
    """A mean of gradients -e_j has coordinates that sum to -1, however often a record is drawn."""
    problem = simulate.Problem("linear", np.tile(np.eye(3), (2, 1)), sizes=[3, 3])
    algorithm = dataclasses.replace(EVERYONE, clip_norm=1.0, records=simulate.WithReplacement(size))
    assert run(algorithm, problem, rounds=1).last_iterates[0].sum() == pytest.approx(-1.0, abs=1e-7)
