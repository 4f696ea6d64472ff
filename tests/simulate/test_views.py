"""What may be seen is an argument: each guarantee covers what can be computed from what it covers, and the smallest counts."""

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest

import high_precision as exact
import hockeystick as hs
from hockeystick import simulate
from hockeystick.federated.released_models import Guarantee
from hockeystick.simulate.running.run import affordable_rounds

pytest.importorskip("numba")


FEATURES = [[0.6 * math.cos(k), 0.6 * math.sin(k)] for k in range(24)]
SILOS = simulate.Problem("logistic", FEATURES, [k % 2 for k in range(24)], sizes=[6] * 4, feature_bound=1.0)
POOLED = SILOS.pooled()
FEDAVG = simulate.NoisyFedAvg(learning_rate=0.1, local_steps=3, clip_norm=0.5, noise_std=0.4)
SHIFT = 2 * 0.5 * 3 * 0.1 / 0.4  # of a client's messages, in deviations of their noise
AGGREGATOR = simulate.TrustedAggregator(learning_rate=0.5, clip_norm=1.0, noise_std=1.5, batch_size=2, radius=1.0)
PROJECTED = simulate.ProjectedNoisySGD(learning_rate=0.5, clip_norm=1.0, noise_std=2.0, radius=1.0)
SHUFFLED = simulate.NoisyMinibatchSGD(
    learning_rate=0.5, clip_norm=1.0, noise_std=0.4, records=simulate.FixedSize(2), shuffled=True
)
CASES = {
    "fedavg": (FEDAVG, SILOS, ("messages", "every_model", "last_model")),
    "aggregator": (AGGREGATOR, SILOS, ("every_model", "last_model")),
    "projected": (PROJECTED, POOLED, ("every_model", "last_model")),
    "shuffled": (SHUFFLED, SILOS, ("messages", "shuffled_messages", "every_model", "last_model")),
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
    guarantee = FEDAVG.guarantee(SILOS, rounds=40, released="last_model")
    bounds = guarantee.bounds(40, 1e-5)
    assert len(bounds) >= 2
    assert list(bounds.values()) == sorted(bounds.values())
    assert guarantee.epsilon(40, 1e-5) == min(bounds.values())
    assert any(name.startswith("federated.fedavg_gdp") for name in bounds)


def test_messages_of_fedavg():
    """A client's own messages: one Gaussian mechanism a round, of shift 2 V K eta over the noise, for the record replaced."""
    for rounds in (1, 7):
        found = FEDAVG.guarantee(SILOS, rounds=7, released="messages").epsilon(rounds, 1e-5)
        assert found == pytest.approx(hs.gdp_epsilon(SHIFT * math.sqrt(rounds), 1e-5), rel=1e-9)


def test_every_model_of_the_aggregator():
    """All models: a user is in one round of a random partition, so delta is that of one mean, times the share of users so far."""
    guarantee = AGGREGATOR.guarantee(SILOS, rounds=2, released="every_model")
    epsilon = guarantee.epsilon(1, 1e-4)
    one = hs.gdp_delta(2.0 / (1.5 * math.sqrt(2.0)), epsilon)
    assert 0.5 * one <= 1e-4
    assert 0.5 * hs.gdp_delta(2.0 / (1.5 * math.sqrt(2.0)), epsilon * (1 - 1e-6)) >= 1e-4 * (1 - 1e-4)
    unbounded = dataclasses.replace(AGGREGATOR, radius=math.inf)  # hides nothing: its last model leaks as much
    last = unbounded.guarantee(SILOS, rounds=2, released="last_model")
    assert (last.epsilon(1, 1e-4), last.source) == (epsilon, guarantee.source)


@pytest.mark.parametrize("view", [None, "messages", "every_model", "last_model"])
def test_a_budget_is_that_of_what_is_released(view):
    """A run stops before the first round that would exceed its budget, and its epsilon is that of the view which the run was given."""
    result = simulate.run(FEDAVG, SILOS, rounds=200, seed=1, budget=(9.0, 1e-5), released=view)
    assert (result.stopped, result.released) == ("budget", view)
    lengths = (result.completed, result.completed + 1)
    spent = [FEDAVG.guarantee(SILOS, rounds=t, released=view).epsilon(t, 1e-5) for t in lengths]
    assert spent[0] <= 9.0 < spent[1]
    assert result.epsilon(1e-5).tolist() == [spent[0]]
    assert result.guarantee().released == FEDAVG.guarantee(SILOS, rounds=200, released=view).released
    messages = max(t for t in range(1, 200) if hs.gdp_epsilon(SHIFT * math.sqrt(t), 1e-5) <= 9.0)
    assert result.completed == messages if view == "messages" else result.completed > messages
    assert simulate.run(FEDAVG, SILOS, rounds=2, seed=1, budget=(900.0, 1e-5), released=view).stopped == "rounds"


def test_the_view_of_a_run_is_that_of_its_questions():
    """Without a budget, too, a result tells epsilon for what the run was said to release; a question may name another view."""
    result = simulate.run(FEDAVG, SILOS, rounds=3, seed=1, record_every=1, released="messages")
    assert (result.models == simulate.run(FEDAVG, SILOS, rounds=3, seed=1, record_every=1).models).all()
    for asked, view in ((None, "messages"), ("every_model", "every_model"), ("last_model", "last_model")):
        expected = [FEDAVG.guarantee(SILOS, rounds=3, released=view).epsilon(t, 1e-5) for t in (1, 2, 3)]
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
    assert affordable_rounds(Planned(), SILOS, 10, (10.0, 1e-5), "last_model") == 10
    with pytest.raises(ValueError, match="budget must allow one round"):
        affordable_rounds(Planned(), SILOS, 10, (9.5, 1e-5), "last_model")


# What models leak where silos' noisy gradients are added up: closed forms; test_algorithms.py has the law of the models


ROUNDS = 5
FOUR = simulate.Problem("linear", np.eye(8, 1), sizes=[2] * 4)  # linear losses; only the first record has a gradient
SETTING: dict[str, Any] = {"learning_rate": 0.5, "clip_norm": 1.0, "records": simulate.EveryRound()}


@pytest.mark.parametrize(
    ("noise", "clients", "variance"),
    [
        (0.7, simulate.EveryRound(), 4 * 0.49),
        ((0.3, 0.9, 0.5, 0.7), simulate.EveryRound(), 0.09 + 0.81 + 0.25 + 0.49),
        ((0.3, 0.9, 0.5, 0.7), simulate.FixedSize(2), 0.09 + 0.25),
        ((0.3, 0.9, 0.5, 0.7), simulate.Poisson(0.5), 0.09),
    ],
)
def test_closed_form(noise: Any, clients: simulate.Participation, variance: float) -> None:
    """Full batches of two: all models are normal laws 2 sqrt(T)/(2 s) deviations apart, s^2 the least sum of variances."""
    algorithm = simulate.NoisyMinibatchSGD(noise_std=noise, clients=clients, **SETTING)
    mu = math.sqrt(ROUNDS / variance)
    guarantee = algorithm.guarantee(FOUR, rounds=ROUNDS, released="every_model")
    for delta in (1e-2, 1e-5):
        epsilon = guarantee.epsilon(ROUNDS, delta)
        assert exact.theta(epsilon, mu) <= delta * (1 + 1e-12)
        assert exact.theta(epsilon - 1e-6, mu) > delta
        assert algorithm.guarantee(FOUR, rounds=ROUNDS, released="last_model").epsilon(ROUNDS, delta) == epsilon
        messages = algorithm.guarantee(FOUR, rounds=ROUNDS, released="messages").epsilon(ROUNDS, delta)
        assert messages >= epsilon
        assert isinstance(clients, simulate.Poisson) or messages > epsilon
        assert epsilon == min(guarantee.bounds(ROUNDS, delta).values())


def test_batches_keep_their_sampler() -> None:
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


def test_accelerated() -> None:
    """The accelerated method's models are functions of the same sums."""
    plain = simulate.NoisyMinibatchSGD(noise_std=0.7, **SETTING)
    fast = simulate.AcceleratedMinibatchSGD(scale=2.0, clip_norm=1.0, noise_std=0.7, records=simulate.EveryRound())
    one, other = (each.guarantee(FOUR, rounds=ROUNDS, released="every_model") for each in (plain, fast))
    assert one.epsilon(ROUNDS, 1e-5) == other.epsilon(ROUNDS, 1e-5)
