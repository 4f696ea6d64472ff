"""What is certified of a run: each algorithm and each view has its mechanism or bound, and nothing without a proof."""

import contextlib
import dataclasses
import itertools
import math
from collections import Counter
from functools import partial

import numpy as np
import pytest
from scipy import integrate, stats

import effort
import high_precision as exact
import hockeystick as hs
from hockeystick import simulate
from hockeystick.federated.released_models import Guarantee
from hockeystick.simulate.running.run import affordable_rounds
from small_runs import EVERYONE, LEARNT, SGD, SILOS, run

pytest.importorskip("numba")

from hockeystick import audit, federated, isrl, last_iterate
from hockeystick.mechanisms.base import plain
from hockeystick.simulate.algorithms import ftrl
from hockeystick.sweep.training_settings import training


def test_minibatch_sgd_is_a_composition_of_the_worst_silo():
    """Every silo is charged for all rounds with its own size, and the largest epsilon counts."""
    result = run(SGD, record_every=2)
    silos = [hs.FixedSizeSampled(hs.Gaussian(0.2 * 5), n, 5, replacement=False) for n in SILOS.sizes]
    worst = [max(hs.Accountant("replace").compose(s, t).epsilon(1e-5) for s in silos) for t in (2, 4, 6)]
    assert result.epsilon(1e-5) == pytest.approx(worst, rel=1e-12)
    ledger = result.accountant(1e-5)
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
        assert plain(spent.ledger) == expected.ledger


@pytest.mark.parametrize("loss", ["least_squares", "quadratic"])
@pytest.mark.parametrize("clipping", ["batch", "record"])
def test_no_record_makes_a_clipped_run_diverge(loss, clipping):
    """A gradient that overflows is clipped to 0: a model that is not finite would tell of the record, whatever the noise."""
    labels = [1.0, 1.0, 1.0] if loss == "least_squares" else None
    problem = simulate.Problem(loss, [[1e308, 1e308], [1.0, 1.0], [2.0, 1.0]], labels, curvature=10.0)
    steps = {"learning_rate": 1.0, "local_steps": 2, "clip_norm": 1.0, "noise_std": 5.0}
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
    settings = {"batch_size": 4, "learning_rate": 0.5, "noise_std": 1.5, "lipschitz": 1.0}
    settings |= {"radius": 1.0, "loss": "convex", "smoothness": 0.25}
    for rounds in (3, 10):
        epsilon = algorithm.guarantee(problem, rounds=10).epsilon(rounds, 1e-4)
        best = federated.best(epsilon, num_users=4 * rounds, **settings)
        assert best.delta * rounds / 10 == pytest.approx(1e-4, rel=1e-6)
        assert best.delta * rounds / 10 <= 1e-4


def brute_tree(rounds, period):
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
    shared = {"clip_norm": 1.0, "protocol": simulate.BinomialNoise(levels=8, bits=60, probability=0.25)}
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
    settings = {"learning_rate": 0.1, "clip_norm": 1.0, "noise_std": 8.0, "shuffled": True}
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
def test_more_draws_than_records(size):
    """A mean of gradients -e_j has coordinates that sum to -1, however often a record is drawn."""
    problem = simulate.Problem("linear", np.tile(np.eye(3), (2, 1)), sizes=[3, 3])
    algorithm = dataclasses.replace(EVERYONE, clip_norm=1.0, records=simulate.WithReplacement(size))
    assert run(algorithm, problem, rounds=1).last_iterates[0].sum() == pytest.approx(-1.0, abs=1e-7)


# What may be seen is an argument: each guarantee covers what can be computed from what it covers, and the smallest counts.


FEATURES = [[0.6 * math.cos(k), 0.6 * math.sin(k)] for k in range(24)]
CIRCLE = simulate.Problem("logistic", FEATURES, [k % 2 for k in range(24)], sizes=[6] * 4, feature_bound=1.0)
POOLED_CIRCLE = CIRCLE.pooled()
FEDAVG = simulate.NoisyFedAvg(learning_rate=0.1, local_steps=3, clip_norm=0.5, noise_std=0.4)
SHIFT = 2 * 0.5 * 3 * 0.1 / 0.4  # of a client's messages, in deviations of their noise
AGGREGATOR = simulate.TrustedAggregator(learning_rate=0.5, clip_norm=1.0, noise_std=1.5, batch_size=2, radius=1.0)
PROJECTED = simulate.ProjectedNoisySGD(learning_rate=0.5, clip_norm=1.0, noise_std=2.0, radius=1.0)
SHUFFLED = simulate.NoisyMinibatchSGD(
    learning_rate=0.5, clip_norm=1.0, noise_std=0.4, records=simulate.FixedSize(2), shuffled=True
)
CASES = {
    "fedavg": (FEDAVG, CIRCLE, ("messages", "every_model", "last_model")),
    "aggregator": (AGGREGATOR, CIRCLE, ("every_model", "last_model")),
    "projected": (PROJECTED, POOLED_CIRCLE, ("every_model", "last_model")),
    "shuffled": (SHUFFLED, CIRCLE, ("messages", "shuffled_messages", "every_model", "last_model")),
}


@pytest.mark.parametrize(("algorithm", "problem", "views"), CASES.values(), ids=CASES)
def test_who_sees_less_learns_no_more(algorithm, problem, views):
    """Epsilon does not rise from a view to what can be computed from it, at any number of rounds."""
    for rounds in (1, 2):
        for delta in (1e-3, 1e-6):
            found = [algorithm.guarantee(problem, rounds=2, released=view).epsilon(rounds, delta) for view in views]
            assert all(more >= less for more, less in itertools.pairwise(found)), found


def test_the_smallest_counts_and_all_are_shown():
    """Epsilon is the smallest of the bounds by name, and that is the first."""
    guarantee = FEDAVG.guarantee(CIRCLE, rounds=40, released="last_model")
    bounds = guarantee.bounds(40, 1e-5)
    assert len(bounds) >= 2
    assert list(bounds.values()) == sorted(bounds.values())
    assert guarantee.epsilon(40, 1e-5) == min(bounds.values())
    assert any(name.startswith("federated.fedavg_gdp") for name in bounds)


def test_every_model_of_the_aggregator():
    """All models: a user is in one round of a random partition, so delta is that of one mean, times the share of users so far."""
    guarantee = AGGREGATOR.guarantee(CIRCLE, rounds=2, released="every_model")
    epsilon = guarantee.epsilon(1, 1e-4)
    one = hs.gdp_delta(2.0 / (1.5 * math.sqrt(2.0)), epsilon)
    assert 0.5 * one <= 1e-4
    assert 0.5 * hs.gdp_delta(2.0 / (1.5 * math.sqrt(2.0)), epsilon * (1 - 1e-6)) >= 1e-4 * (1 - 1e-4)
    unbounded = dataclasses.replace(AGGREGATOR, radius=math.inf)  # hides nothing: its last model leaks as much
    last = unbounded.guarantee(CIRCLE, rounds=2, released="last_model")
    assert (last.epsilon(1, 1e-4), last.source) == (epsilon, guarantee.source)


@pytest.mark.parametrize("view", [None, "messages", "every_model", "last_model"])
def test_a_budget_is_that_of_what_is_released(view):
    """A run stops before the first round that would exceed its budget, and its epsilon is that of the view which the run was given."""
    result = simulate.run(FEDAVG, CIRCLE, rounds=200, seed=1, budget=(9.0, 1e-5), released=view)
    assert (result.stopped, result.released) == ("budget", view)
    lengths = (result.completed, result.completed + 1)
    spent = [FEDAVG.guarantee(CIRCLE, rounds=t, released=view).epsilon(t, 1e-5) for t in lengths]
    assert spent[0] <= 9.0 < spent[1]
    if view == "messages":
        assert spent[0] == pytest.approx(hs.gdp_epsilon(SHIFT * math.sqrt(result.completed), 1e-5), rel=1e-9)
    assert result.epsilon(1e-5).tolist() == [spent[0]]
    assert result.guarantee().released == FEDAVG.guarantee(CIRCLE, rounds=200, released=view).released
    messages = max(t for t in range(1, 200) if hs.gdp_epsilon(SHIFT * math.sqrt(t), 1e-5) <= 9.0)
    assert result.completed == messages if view == "messages" else result.completed > messages
    assert simulate.run(FEDAVG, CIRCLE, rounds=2, seed=1, budget=(900.0, 1e-5), released=view).stopped == "rounds"


def test_the_view_of_a_run_is_that_of_its_questions():
    """Without a budget, too, a result tells epsilon for what the run was said to release; a question may name another view."""
    result = simulate.run(FEDAVG, CIRCLE, rounds=3, seed=1, record_every=1, released="messages")
    assert (result.models == simulate.run(FEDAVG, CIRCLE, rounds=3, seed=1, record_every=1).models).all()
    for asked, view in ((None, "messages"), ("every_model", "every_model"), ("last_model", "last_model")):
        expected = [FEDAVG.guarantee(CIRCLE, rounds=3, released=view).epsilon(t, 1e-5) for t in (1, 2, 3)]
        assert result.epsilon(1e-5, released=asked).tolist() == expected


class Planned:
    """An algorithm of which a shorter plan costs more: 1 for each round, and 2 for each of the ten that is not planned."""

    def guarantee(self, _problem, *, rounds, released):
        """Return what it costs."""
        assert released == "last_model"
        return Guarantee("replace", "the last model only", "by hand", lambda t, _: float(t + 2 * (10 - rounds)))


def test_a_budget_holds_for_the_run_that_it_leaves():
    """A result's guarantee is that of a run of which the rounds that were run are all that were planned: that one keeps the budget."""
    # t rounds of t planned cost 20 - t: 10 rounds cost 10, and of fewer none keeps a budget below that
    assert affordable_rounds(Planned(), CIRCLE, 10, (10.0, 1e-5), "last_model") == 10
    with pytest.raises(ValueError, match="budget must allow one round"):
        affordable_rounds(Planned(), CIRCLE, 10, (9.5, 1e-5), "last_model")


# What models leak where silos' noisy gradients are added up: closed forms; test_algorithms.py has the law of the models


ROUNDS = 5
FOUR = simulate.Problem("linear", np.eye(8, 1), sizes=[2] * 4)  # linear losses; only the first record has a gradient
SETTING = {"learning_rate": 0.5, "clip_norm": 1.0, "records": simulate.EveryRound()}


@pytest.mark.parametrize(
    ("noise", "clients", "variance"),
    [
        (0.7, simulate.EveryRound(), 4 * 0.49),
        ((0.3, 0.9, 0.5, 0.7), simulate.EveryRound(), 0.09 + 0.81 + 0.25 + 0.49),
        ((0.3, 0.9, 0.5, 0.7), simulate.FixedSize(2), 0.09 + 0.25),
        ((0.3, 0.9, 0.5, 0.7), simulate.Poisson(0.5), 0.09),
    ],
)
def test_closed_form(noise, clients, variance):
    """Full batches of two: all models are normal laws 2 sqrt(T)/(2 s) deviations apart, s^2 the least sum of variances."""
    algorithm = simulate.NoisyMinibatchSGD(noise_std=noise, clients=clients, **SETTING)
    mu = math.sqrt(ROUNDS / variance)
    guarantee = algorithm.guarantee(FOUR, rounds=ROUNDS, released="every_model")
    settings = {"scale": 2.0, "clip_norm": 1.0, "records": simulate.EveryRound()}
    fast = simulate.AcceleratedMinibatchSGD(
        noise_std=noise, clients=clients, **settings
    )  # whose models are of the same sums
    for delta in (1e-2, 1e-5):
        epsilon = guarantee.epsilon(ROUNDS, delta)
        assert exact.theta(epsilon, mu) <= delta * (1 + 1e-12)
        assert exact.theta(epsilon - 1e-6, mu) > delta
        assert algorithm.guarantee(FOUR, rounds=ROUNDS, released="last_model").epsilon(ROUNDS, delta) == epsilon
        assert fast.guarantee(FOUR, rounds=ROUNDS, released="every_model").epsilon(ROUNDS, delta) == epsilon
        messages = algorithm.guarantee(FOUR, rounds=ROUNDS, released="messages").epsilon(ROUNDS, delta)
        assert messages >= epsilon
        assert isinstance(clients, simulate.Poisson) or messages > epsilon
        assert epsilon == min(guarantee.bounds(ROUNDS, delta).values())


def test_batches_keep_their_sampler():
    """Batches of one of two records: not above full batches' noise of the same message, and Poisson batches keep their adjacency and divisor."""
    one = SETTING | {"records": simulate.FixedSize(1), "noise_std": 0.7}
    guarantee = simulate.NoisyMinibatchSGD(**one).guarantee(FOUR, rounds=ROUNDS, released="every_model")
    wide = simulate.NoisyMinibatchSGD(**(one | {"noise_std": 1.4})).guarantee(FOUR, rounds=ROUNDS)
    assert guarantee.epsilon(ROUNDS, 1e-5) == pytest.approx(wide.epsilon(ROUNDS, 1e-5), rel=1e-9)
    assert guarantee.epsilon(ROUNDS, 1e-5) >= wide.epsilon(ROUNDS, 1e-5)
    poisson = simulate.NoisyMinibatchSGD(**(one | {"records": simulate.Poisson(0.5)}))
    assert poisson.guarantee(FOUR, rounds=ROUNDS, released="every_model").adjacency == "replace"
    public = simulate.NoisyMinibatchSGD(**(one | {"records": simulate.Poisson(1.0, expected_batch_size=4)}))
    guarantee = public.guarantee(FOUR, rounds=ROUNDS, released="every_model")
    mu = 1.0 / 4 / (2 * 0.7) * math.sqrt(ROUNDS)  # one gradient, divided by four, in the noise of four messages
    assert guarantee.adjacency == "add_or_remove"
    assert float(exact.theta(guarantee.epsilon(ROUNDS, 1e-5), mu)) == pytest.approx(1e-5, rel=1e-6)


# Schedules, random stops and starting laws of the simulator, and what is certified of the one model that is released.


FREE = {"clip_norm": math.inf}
USERS_TRAINING = {
    "learning_rate": 0.8,
    "clip_norm": 1.0,
    "noise_std": 1.5,
    "batch_size": 4,
    "radius": 1.0,
}
PNSGD = {"learning_rate": 0.5, "clip_norm": 1.0, "noise_std": 2.0, "radius": 0.5}
USERS = simulate.synthetic("logistic", sizes=[1] * 40, num_features=3, seed=1)
POOLED = simulate.synthetic("logistic", sizes=[12], num_features=3, seed=1)
PROCESS = {"num_records": 12, "learning_rate": 0.5, "lipschitz": 1.0, "diameter": 1.0}  # of PNSGD, for `last_iterate`
STEPS, NOISES = tuple(1 / t for t in range(1, 11)), tuple(1 + 0.1 * t for t in range(10))


# What runs


def test_schedule_of_steps_is_numpys():
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


def test_schedule_of_noise():
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
def test_stop_is_uniform_among_the_last_rounds(algorithm, more, least):
    """Noise-free linear losses tell the stop: rounds from the first of the suffix on, equally often."""
    silos = [1] * 5 if more else None
    problem = simulate.Problem("linear", -np.ones((5, 1)), sizes=silos)
    algorithm = algorithm(learning_rate=1.0, random_stop=True, **more, **FREE)
    released = simulate.run(algorithm, problem, rounds=5, seed=2, num_runs=4000).models[-1, :, 0]
    values, counts = np.unique(released, return_counts=True)
    assert values.tolist() == list(range(least, 6))
    assert len(counts) == 1 or stats.chisquare(counts).pvalue > 1e-3


def test_starting_law():
    """A law is drawn for each run, the same for a run whichever others there are; an array has one start for each run."""
    problem = simulate.Problem("linear", np.zeros((1, 2)))
    still = simulate.ProjectedNoisySGD(learning_rate=1.0, **FREE)

    def law(rng):
        return rng.uniform(-1, 1, size=2)

    def starts(**changes):
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
def test_trusted_aggregator_by_rounds(loss, suffix, scheduled):
    """At the certified epsilon the theorem's delta, with all users in the run, is the delta asked, and never above it."""
    clip = 1.0 if loss == "convex" else 0.5  # synthetic records have norm at most 1: clipping at .5 is active
    schedules = {"step_factors": STEPS, "noise_factors": NOISES} if scheduled else {}
    stop = {} if suffix is None else {"random_stop": True, "suffix": suffix}
    algorithm = simulate.TrustedAggregator(**(USERS_TRAINING | {"clip_norm": clip} | schedules | stop))
    guarantee = algorithm.guarantee(USERS, rounds=10)
    for delta in (1e-3, 1e-6):
        epsilon = guarantee.epsilon(10, delta)
        assert epsilon > 0
        rates, noises = 0.8 * np.array(STEPS if scheduled else 1.0), 1.5 * np.array(NOISES if scheduled else 1.0)
        users = {"num_users": 40, "batch_size": 4, "lipschitz": clip, "radius": 1.0, "loss": loss}
        if suffix is None:
            theorem = federated.trusted_aggregator(epsilon, **users, learning_rate=rates, noise_std=noises)
        else:
            users |= {"learning_rate": rates, "noise_std": noises, "suffix": suffix}
            theorem = federated.trusted_aggregator_random_stop(epsilon, **users)
        assert theorem <= delta
        assert theorem == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("index", [1, 7, 12])
def test_guarantee_of_a_record(noise, index):
    """At the certified epsilon the smallest bound for the record is delta; Theorem 3 or 4 is never below; a record not yet used has 0.

    It is at most what all models show of any record.
    """
    problem = simulate.synthetic("logistic", sizes=[12], num_features=1, seed=1) if noise == "laplace" else POOLED
    algorithm = simulate.ProjectedNoisySGD(noise=noise, **PNSGD)
    guarantee = algorithm.guarantee(problem, rounds=12, index=index)
    assert guarantee.released == f"the last model only, for record {index}"
    name = "noise_scale" if noise == "laplace" else "noise_std"
    settings = PROCESS | {"index": index, name: 2.0, "smoothness": problem.smoothness}
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


def test_last_record_is_plain_noise():
    """No later round hides it: epsilon is that of two normal laws 2L/sigma apart."""
    for clip in (1.0, 0.1):  # at .1, clipping is active
        algorithm = simulate.ProjectedNoisySGD(**(PNSGD | {"clip_norm": clip}))
        epsilon = algorithm.guarantee(POOLED, rounds=12, index=12).epsilon(12, 1e-3)
        assert epsilon == pytest.approx(hs.gaussian_epsilon(clip, 1e-3), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("index", [None, 1, 6, 12])
def test_random_stop(index):
    """The mean over stops of the bound for the later rounds; below Theorem 5 for the worst record, and below composition."""
    algorithm = simulate.ProjectedNoisySGD(random_stop=True, **PNSGD)
    guarantee = algorithm.guarantee(POOLED, rounds=12, index=index)
    settings = PROCESS | {"noise_std": 2.0, "smoothness": POOLED.smoothness}
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


def test_result_forwards_the_record():
    """A result answers for one record after every recorded round."""
    result = simulate.run(simulate.ProjectedNoisySGD(**PNSGD), POOLED, rounds=12, seed=1, record_every=4)
    epsilons = result.epsilon(1e-3, index=6)
    assert epsilons[0] == 0
    assert epsilons[1] > epsilons[2] > 0
    assert result.guarantee(index=6).epsilon(12, 1e-3) == epsilons[2]


def released(setting, pulls, steps, noises, stops):
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
def test_exact_chains_stay_below(seed):
    """Linear losses with random settings: the exact laws of the released model never exceed what is certified."""
    rng = np.random.default_rng(seed)
    rounds, suffix = int(rng.integers(2, 10)), float(rng.choice([1.0, 0.5]))
    setting = {"radius": rng.uniform(0.3, 2), "learning_rate": rng.uniform(0.2, 1.2), "clip_norm": 1.0}
    setting["noise_std"] = rng.uniform(0.3, 2)
    factors, noises = rng.uniform(0.3, 1.5, (2, rounds))
    others, index = rng.uniform(-1, 1), int(rng.integers(1, rounds + 1))
    users = simulate.Problem("linear", np.ones((rounds, 1)), sizes=[1] * rounds, feature_bound=1.0)
    records = simulate.Problem("linear", np.ones((rounds, 1)), feature_bound=1.0)
    every, last = range(1, rounds + 1), range(rounds - math.ceil(suffix * rounds) + 1, rounds + 1)

    def law(sign, used, stops, step=1.0, noise=1.0):
        pulls, ones = np.where(used, sign, others), np.ones(rounds)
        return released(
            setting, pulls, ones * setting["learning_rate"] * step, ones * setting["noise_std"] * noise, stops
        )

    schedules = {"step_factors": tuple(factors.tolist()), "noise_factors": tuple(noises.tolist())}
    aggregator = simulate.TrustedAggregator(random_stop=True, suffix=suffix, batch_size=1, **schedules, **setting)
    once, end = np.eye(rounds, dtype=bool), range(rounds, rounds + 1)
    mixed = [np.mean([law(sign, at, last, factors, noises) for at in once], axis=0) for sign in (1.0, -1.0)]
    cases = [(aggregator.guarantee(users, rounds=rounds), mixed)]
    for stop, stops in ((False, end), (True, every)):
        sgd = simulate.ProjectedNoisySGD(random_stop=stop, **setting).guarantee(records, rounds=rounds, index=index)
        cases.append((sgd, [law(sign, once[index - 1], stops) for sign in (1.0, -1.0)]))
    for count in (1, 2, 3):  # in several passes, whichever record differs
        few, sgd = (
            simulate.Problem("linear", np.ones((count, 1)), feature_bound=1.0),
            simulate.ProjectedNoisySGD(**setting),
        )
        seen, whole = (sgd.guarantee(few, rounds=rounds, released=view) for view in ("last_model", "every_model"))
        assert seen.epsilon(rounds, 1e-3) <= whole.epsilon(rounds, 1e-3)
        for place in range(min(count, rounds)):
            used = np.arange(rounds) % count == place
            cases.append((seen, [law(sign, used, end) for sign in (1.0, -1.0)]))
    for guarantee, (p, q) in cases:
        for delta in (0.1, 1e-3):
            gamma = math.exp(guarantee.epsilon(rounds, delta))
            assert max(np.maximum(p - gamma * q, 0).sum(), np.maximum(q - gamma * p, 0).sum()) <= delta * (1 + 1e-9)


@pytest.mark.parametrize(
    ("records", "rounds", "noise", "known"),
    [(5, 500, 2.0, 4.49), (1, 100, 4.0, 2.98)],  # the bounds of `last_iterate` for the record of the last round
)
def test_last_model_has_the_bound_of_its_room(records, rounds, noise, known):
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
def test_gaussian_noise_is_never_purely_private(algorithm, index):
    """A delta that underflows is no delta of 0: the losses of Gaussian noise have no end."""
    users = [1] * 3 if isinstance(algorithm, simulate.TrustedAggregator) else None
    problem = simulate.Problem("linear", np.ones((3, 1)), feature_bound=1.0, sizes=users)
    guarantee = algorithm.guarantee(problem, rounds=3, **({} if index is None else {"index": index}))
    assert guarantee.epsilon(3, 0.0) == math.inf
    assert guarantee.epsilon(3, 1e-300) < 40


def test_laplace_noise_is_purely_private():
    """Its largest loss is 2V/b: one record's gradient moves by 2V = 2 at most, and b = 2."""
    problem = simulate.Problem("linear", np.ones((3, 1)), feature_bound=1.0)
    algorithm = simulate.ProjectedNoisySGD(noise="laplace", **GAUSSIAN)
    assert algorithm.guarantee(problem, rounds=3, index=3).epsilon(3, 0.0) == pytest.approx(1.0, rel=1e-8)


# Which records are adjacent: a record is really removed or replaced, and the law of what is released is held against the guarantee.


# The samplers at places 1, 5 and 9, from 0, have no case in the first stage, by share(4) below: those of draws take long.
SAMPLERS = (
    simulate.EveryRound(),
    simulate.Poisson(0.1),
    simulate.Poisson(0.5),
    simulate.Poisson(1.0),
    simulate.Poisson(0.5, expected_batch_size=3),
    simulate.FixedSize(2),
    simulate.Poisson(1.0, expected_batch_size=4),
    simulate.Shuffled(2),
    simulate.Cyclic(2),
    simulate.WithReplacement(3),
)
SILO = {"clip_norm": 1.0, "noise_std": 0.6}
VIEWS = (None, "messages", "every_model", "last_model")
Law = dict[float, float]  # means of normal laws, and their probabilities


def minibatch(records):
    """Return the algorithms whose messages are noisy mean gradients of batches."""
    return [
        simulate.NoisyMinibatchSGD(learning_rate=1.0, records=records, **SILO),
        simulate.AcceleratedMinibatchSGD(scale=2.0, records=records, **SILO),
        simulate.MultistageMinibatchSGD(stages=((2, 2.0), (2, 4.0)), records=records, **SILO),
    ]


def batches(sampler, mine, others):
    """Return the law of the first round's batch: how often the first record is in it, which may be absent, and how many others."""
    population = mine + others
    size = getattr(sampler, "size", population)
    if isinstance(sampler, simulate.Poisson):
        rate = sampler.sampling_rate
        return {
            (i, k): float(stats.binom.pmf(i, mine, rate) * stats.binom.pmf(k, others, rate))
            for i in range(mine + 1)
            for k in range(others + 1)
        }
    if isinstance(sampler, simulate.WithReplacement):
        return {(i, size - i): float(stats.binom.pmf(i, size, mine / population)) for i in range(size + 1)}
    if isinstance(sampler, (simulate.FixedSize, simulate.Shuffled)):
        used = mine * size / population
        return {(1, size - 1): used, (0, size): 1 - used}
    return {(mine, size - mine): 1.0}


def mean_law(sampler, mine, others, count, rounds):
    """Return the law of the mean of all messages' sum; `mine` is the first record's gradient, None if it is absent."""
    present = int(mine is not None)
    divisor = getattr(sampler, "expected_batch_size", None) or (
        getattr(sampler, "size", count + present) * getattr(sampler, "sampling_rate", 1.0)
    )
    once = Counter()
    for (i, k), probability in batches(sampler, present, count).items():
        if probability < 1e-12:
            continue  # one that leaves out is a lower end
        once[(i * (mine or 0.0) + k * others) / divisor] += probability
    law = {0.0: 1.0}
    for _ in range(rounds):
        longer = Counter()
        for (a, p), (b, q) in itertools.product(law.items(), once.items()):
            longer[round(a + b, 9)] += p * q
        law = longer
    return law


def exact_delta(one, other, deviation, epsilon):
    """Return the larger hockey-stick divergence of two mixtures of normal laws, by the trapezoidal rule."""
    means = [*one, *other]
    x = np.linspace(min(means) - 9 * deviation, max(means) + 9 * deviation, 100_001)

    def density(law):
        bells = sum(weight * np.exp(-0.5 * ((x - mean) / deviation) ** 2) for mean, weight in law.items())
        return bells / (deviation * math.sqrt(2 * math.pi))

    p, q = density(one), density(other)
    ends = (np.maximum(p - math.exp(epsilon) * q, 0.0), np.maximum(q - math.exp(epsilon) * p, 0.0))
    return max(float(integrate.trapezoid(end, x)) for end in ends)


def neighbours(adjacency, mine):
    """Yield what a record may become: another one, or none."""
    yield from (None,) if adjacency == "add_or_remove" else (-mine, 0.0)


def test_the_exact_law_by_hand():
    """Ten records in full Poisson batches of nine +1 and one -1: without the latter the mean is 1, a fifth above, at noise .1."""
    laws = [mean_law(simulate.Poisson(1.0), mine, 1.0, 9, 1) for mine in (-1.0, None)]
    assert [{mean: p for mean, p in law.items() if p > 0} for law in laws] == [{0.8: 1.0}, {1.0: 1.0}]
    expected = stats.norm.cdf(1 - 7.58 / 2) - math.exp(7.58) * stats.norm.cdf(-1 - 7.58 / 2)
    assert exact_delta(*laws, 0.1, 7.58) == pytest.approx(expected, rel=1e-6)
    assert expected > 1e-3  # epsilon at 1e-3 is 7.581, and that of a record whose removal rescales none 3.14


@pytest.mark.share(4, by_day=2)
@pytest.mark.parametrize("others", [1.0, -1.0, 0.0])
@pytest.mark.parametrize("records", SAMPLERS, ids=repr)
def test_messages_leak_no_more_than_is_certified(records, others):
    """Every algorithm with batches, every view: what a record that is removed, added or replaced changes, in one round and in three."""
    mine, count = 1.0, 7
    problem = simulate.Problem("linear", [[mine]] + [[others]] * count)
    guarantees = [
        algorithm.guarantee(problem, rounds=4, released=view) for algorithm in minibatch(records) for view in VIEWS
    ]
    (adjacency,) = {guarantee.adjacency for guarantee in guarantees}
    fresh = not isinstance(records, (simulate.Shuffled, simulate.Cyclic))
    for rounds in (1, 3) if fresh else (1,):
        one = mean_law(records, mine, others, count, rounds)
        for changed in neighbours(adjacency, mine):
            other = mean_law(records, changed, others, count, rounds)
            for delta in (0.1, 1e-3, 1e-5):
                epsilon = min(guarantee.epsilon(rounds, delta) for guarantee in guarantees)
                found = exact_delta(one, other, SILO["noise_std"] * math.sqrt(rounds), epsilon)
                assert found <= delta * (1 + 1e-6), (changed, rounds, delta)


@pytest.mark.parametrize("records", SAMPLERS, ids=repr)
def test_learnt_clip_norms_leak_no_more_than_is_certified(records):
    """All gradients have the clip norm: mean and count move along one line, on which both releases are one normal law."""
    count, noise = 7, 2.0
    problem = simulate.Problem("linear", [[1.0]] * (1 + count))
    algorithm = dataclasses.replace(LEARNT, clip_norm=1.0, noise_multiplier=noise, count_noise=1.5, records=records)
    guarantee = algorithm.guarantee(problem, rounds=1)
    # A record's gradient and half a count, in deviations of their noise, are 1/noise long. Sums are divided by the divisor.
    divisor = records._divisor(1 + count)
    one = mean_law(records, 1.0, 1.0, count, 1)
    for changed in neighbours(guarantee.adjacency, 1.0):
        other = mean_law(records, changed, 1.0, count, 1)
        for delta in (0.1, 1e-3):
            assert exact_delta(one, other, noise / divisor, guarantee.epsilon(1, delta)) <= delta * (1 + 1e-6)


def test_a_public_divisor_is_for_records_added_or_removed():
    """Without one a record is replaced; models are what the divisor says."""
    problem = simulate.Problem("linear", [[1.0]] * 8)
    for size, adjacency, end in ((None, "replace", -1.0), (5, "add_or_remove", -8 / 5)):
        records = simulate.Poisson(1.0, expected_batch_size=size)
        algorithm = dataclasses.replace(EVERYONE, clip_norm=1.0, noise_std=1e-9, records=records)
        assert algorithm.guarantee(problem, rounds=1).adjacency == adjacency
        assert run(algorithm, problem, rounds=1).last_iterates[0, 0] == pytest.approx(end, rel=1e-6)


def test_plans_say_which_records_are_adjacent():
    """`batch_rate` alone is a record replaced, and with `expected_batch_size` one added or removed; no other sampler has it."""
    plan = {"algorithm": "NoisyMinibatchSGD", "data": "synthetic", "record_loss": "logistic"}
    plan |= {"num_silos": 2, "records_per_silo": 8, "num_features": 2, "rounds": 3, "seed": 1, "learning_rate": 0.5}
    plan |= SILO
    for more, adjacency in (({}, "replace"), ({"expected_batch_size": 4}, "add_or_remove")):
        told = training(plan | {"batch_rate": 0.5} | more)
        assert told.algorithm.guarantee(told.problem, rounds=3).adjacency == adjacency
    assert "expected_batch_size" not in training(plan | {"batch_size": 4, "expected_batch_size": 4}).used


# Runs of every algorithm, whatever moves with a record


def every_algorithm():
    """Yield each algorithm that is run on one silo of eight records, or on silos of one, with each sampler that it takes."""
    steps = {"learning_rate": 0.5, "clip_norm": 1.0, "noise_std": 0.6}
    local = {**steps, "local_steps": 2}
    for records in SAMPLERS:
        yield from ((algorithm, [8]) for algorithm in minibatch(records))
        yield simulate.NoisyFedAvg(**local, records=records), [8]
        yield simulate.NoisyFedAvg(**local, records=records, client_weights="records"), [4, 4]
        yield simulate.NoisyFedProx(**local, prox=1.0, records=records), [8]
        learnt = {"learning_rate": 0.5, "clip_norm": 1.0, "quantile": 0.5, "noise_multiplier": 1.0, "count_noise": 1.0}
        yield dataclasses.replace(LEARNT, **learnt, records=records), [8]
        if isinstance(records, (simulate.Shuffled, simulate.Cyclic)):
            yield simulate.TreeFTRL(**steps, records=records, restart=True), [8]
    for clients in (simulate.EveryRound(), simulate.Poisson(0.5), simulate.FixedSize(2), simulate.Cyclic(2)):
        yield simulate.NoisyMinibatchSGD(**steps, records=simulate.Poisson(0.5), clients=clients), [2] * 4
        yield simulate.NoisyFedAvg(**local, clients=clients, dropout=0.2), [2] * 4
        yield simulate.LocalSGD(**local, clients=clients), [2] * 4
        yield simulate.NoisyFedAvg(**local | {"noise_std": 0.2}, clients=clients, dropout=0.3), [1] * 4
    yield simulate.TrustedAggregator(**steps, batch_size=2, radius=2.0), [1] * 8
    yield simulate.ProjectedNoisySGD(**steps, radius=2.0), [8]
    yield simulate.ProjectedNoisySGD(**steps, radius=2.0, noise="laplace"), [8]


def guarantees_of(algorithm, problem, rounds):
    """Yield the guarantee of each view that has one."""
    for view in VIEWS:
        with contextlib.suppress(simulate.NoGuaranteeError):
            yield view, algorithm.guarantee(problem, rounds=rounds, released=view)


def attacked(runs):
    """Yield each algorithm and view with the epsilon that an audit of really adjacent problems shows, and the certified one."""
    rounds, delta = 3, 1e-2
    for seed, (algorithm, sizes) in enumerate(every_algorithm()):
        problem = simulate.Problem("linear", [[-1.0]] + [[1.0]] * (sum(sizes) - 1), sizes=sizes, feature_bound=1.0)
        guarantees = dict(guarantees_of(algorithm, problem, rounds))
        if not guarantees:
            continue
        (adjacency,) = {guarantee.adjacency for guarantee in guarantees.values()}
        left = [sizes[0] - (adjacency == "add_or_remove"), *sizes[1:]]
        other = simulate.Problem("linear", [[1.0]] * sum(left), sizes=left, feature_bound=1.0)
        ends = [
            simulate.run(algorithm, one, rounds=rounds, seed=2 * seed + k, num_runs=runs).last_iterates[:, 0]
            for k, one in enumerate((problem, other))
        ]
        shown = audit.epsilon_lower_bound(*ends, delta=delta, confidence=1 - 1e-5)
        for view, guarantee in guarantees.items():
            yield algorithm, view, shown, guarantee.epsilon(rounds, delta)


@pytest.mark.slow
def test_attacks_stay_below():
    """Thousands of runs of every algorithm with every sampler, each audit of confidence 1 - 1e-5."""
    shown = []
    for algorithm, view, lower, upper in attacked(effort.at_night(100_000, by_day=3000)):
        assert lower <= upper, (algorithm, view)
        shown.append(lower)
    assert np.mean(np.array(shown) > 0) > 0.5  # the attack sees most of them
