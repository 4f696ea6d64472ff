"""What averaged models of clients drawn at random leak: small federations by enumeration of who is drawn, and by quadrature."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import binom

from small_federations import EPSILONS, cells, largest, mean_of_fixed, mean_of_poisson

pytest.importorskip("numba")

import hockeystick as hs
from hockeystick import simulate
from hockeystick.federated.released_models import FixedMean, PoissonMean, _others

SETTINGS = {"learning_rate": 0.1, "local_steps": 5, "clip_norm": 1.0, "noise_std": 1.0}


@pytest.mark.parametrize("noise", [0.5, 1.5])
@pytest.mark.parametrize(("size", "use"), [(1, 1.0), (2, 1.0), (3, 0.4), (4, 0.3), (2, 0.2)])
def test_no_fixed_number_leaks_more(size, use, noise):
    """All places of four clients' models, of which some are drawn: below the pair, which opposite models attain if all are used."""
    edges = np.linspace(-1 - 8 * noise, 1 + 8 * noise, 800)
    pair = FixedMean(2 / (size * noise / math.sqrt(size)), size / 4 * use)._pair("replace")
    for eps in EPSILONS:
        found = largest(lambda *places: mean_of_fixed(*places, size, use, noise, edges), eps)
        upper = pair.one_step(True, False, eps)[1]
        assert found <= upper * (1 + 1e-9) + 1e-13
        assert found >= upper * (1 - 1e-2)  # cells have a width


@pytest.mark.share(3)
@pytest.mark.parametrize("noise", [0.5, 1.5])
@pytest.mark.parametrize(("rate", "use"), [(0.3, 1.0), (0.6, 0.5), (0.05, 1.0), (1.0, 0.7)])
def test_no_poisson_sample_leaks_more(rate, use, noise):
    """All places of four clients' models, each drawn independently: below the pair that shows how many are."""
    edges = np.linspace(-1 - 8 * noise, 1 + 8 * noise, 800)
    pair = PoissonMean(2 / noise, rate, use, 4)._pair("replace")
    for eps in EPSILONS:
        found = largest(lambda *places: mean_of_poisson(*places, rate, use, noise, edges), eps)
        assert found <= pair.one_step(True, False, eps)[1] * (1 + 1e-9) + 1e-13


def test_two_rounds_of_a_poisson_sample():
    """Both rounds against opposite models, in the same and in mixed order: below the accountant's bound."""
    edges = np.linspace(-7.0, 7.0, 500)
    laws = [mean_of_poisson((-1.0, -1.0, -1.0), mine, 0.0, 0.4, 1.0, 0.7, edges) for mine in (1.0, -1.0)]
    bound = hs.Accountant("replace").compose(PoissonMean(2 / 0.7, 0.4, 1.0, 4), 2)
    for (p1, q1), (p2, q2) in itertools.product([laws, laws[::-1]], repeat=2):
        for eps in EPSILONS:
            two = np.maximum(np.outer(p1, p2) - math.exp(eps) * np.outer(q1, q2), 0.0).sum()
            assert two <= bound.delta(eps) * (1 + 1e-9)


def test_the_fixed_size_pair_is_false_for_poisson_samples():
    """A hundred clients at the rate 0.05, models two deviations apart: 1.7e-6 is attained, and the pair of five clients says 2.3e-9."""
    rate, eps, edges = 0.05, 2.0, np.linspace(-12.0, 12.0, 20_001)
    laws = []
    for mine in (1.0, -1.0):
        law = np.zeros(edges.size)
        for others in range(60):  # all at -1; more are drawn with probability below 1e-40
            weight = binom.pmf(others, 99, rate)
            law += weight * rate * cells((mine - others) / (others + 1), 1 / math.sqrt(others + 1), edges)
            if others:
                law += weight * (1 - rate) * cells(-1.0, 1 / math.sqrt(others), edges)
            else:
                law[-1] += weight * (1 - rate)
        laws.append(law)
    attained = np.maximum(laws[0] - math.exp(eps) * laws[1], 0.0).sum()
    wrong = FixedMean(2 / math.sqrt(5), rate)._pair("replace").one_step(True, False, eps)[1]
    right = PoissonMean(2.0, rate, 1.0, 100)._pair("replace").one_step(True, False, eps)[1]
    assert 100 * wrong < attained <= right


@pytest.mark.parametrize(("others", "rate"), [(1, 0.5), (99, 0.05), (5000, 0.3), (40, 0.999), (10**5, 1e-4)])
def test_numbers_of_others_are_rounded_down(others, rate):
    """Grouped numbers put at least as much on few others as the binomial law, by its sum in many digits, and as much on all."""
    numbers, weights = _others(others, rate)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert numbers.max() <= others
    assert numbers.size < 800
    with mp.workdps(40):
        total, k = mp.mpf(0), 0
        for number, sum_of_weights in zip(numbers[1:8], np.cumsum(weights), strict=False):
            while k < number:  # the law below the next level
                total += mp.binomial(others, k) * mp.mpf(rate) ** k * (1 - mp.mpf(rate)) ** (others - k)
                k += 1
            assert sum_of_weights >= total * (1 - mp.mpf("1e-15"))


def guarantee(algorithm, num_clients=100, records=1, rounds=200):
    """Return the certified epsilon at 1e-5."""
    problem = simulate.Problem("linear", np.zeros((num_clients * records, 2)), None, [records] * num_clients)
    return algorithm.guarantee(problem, rounds=rounds).epsilon(rounds, 1e-5)


def test_random_clients_of_the_review():
    """Five of a hundred clients in each of 200 rounds: 1.489, where all rounds of one client say 46.2; FedProx moves less."""
    drawn = simulate.NoisyFedAvg(**SETTINGS, clients=simulate.FixedSize(5))
    shift = 2 * 0.1 * 5 / 5 * math.sqrt(5)
    step = hs.FixedSizeSampled(hs.Gaussian(2 / shift), 100, 5, replacement=False)
    expected = hs.Accountant("replace").compose(step, 200).epsilon(1e-5)
    assert guarantee(drawn) == pytest.approx(expected, rel=1e-6)
    assert guarantee(drawn) < 1.49
    prox = simulate.NoisyFedProx(**SETTINGS, clients=simulate.FixedSize(5), prox=2.0)
    assert guarantee(prox) < guarantee(drawn)


def test_clients_in_turn_pay_for_their_rounds():
    """In 200 rounds of five of a hundred a client takes part in ten; with steps that fall, in the first one of each pass at the earliest."""
    turns = hs.gdp_epsilon(math.sqrt(10) * 2 * 0.1 * 5 / math.sqrt(5), 1e-5)
    stages = math.sqrt(sum((2 * 0.1 * 5 / math.sqrt(5) / (20 * k + 1)) ** 2 for k in range(10)))
    for clients in (simulate.Cyclic(5), simulate.Shuffled(5)):
        assert guarantee(simulate.NoisyFedAvg(**SETTINGS, clients=clients)) == pytest.approx(turns, rel=1e-12)
        falling = simulate.NoisyFedAvg(**SETTINGS, clients=clients, schedule="stagewise")
        assert guarantee(falling) == pytest.approx(hs.gdp_epsilon(stages, 1e-5), rel=1e-12)
    uneven = simulate.NoisyFedAvg(
        **SETTINGS, clients=simulate.Cyclic(30)
    )  # 7 rounds of 30 of 100: three times for some
    per_round = 2 * 0.1 * 5 / math.sqrt(30)
    assert guarantee(uneven, rounds=7) == pytest.approx(hs.gdp_epsilon(math.sqrt(3) * per_round, 1e-5), rel=1e-12)


def test_records_of_a_client_are_sampled_too():
    """A record is used in a round with probability 1 - (1 - b/n)^K, and the rate is multiplied by it."""
    drawn = simulate.NoisyFedAvg(**SETTINGS, clients=simulate.FixedSize(5), records=simulate.FixedSize(4))
    shift = 2 * 0.1 * 5 / math.sqrt(5)
    step = FixedMean(shift, 0.05 * (1 - 0.96**5))
    expected = hs.Accountant("replace").compose(step, 200).epsilon(1e-5)
    assert guarantee(drawn, records=100) == pytest.approx(expected, rel=1e-6)
    twice = simulate.NoisyFedAvg(**SETTINGS, clients=simulate.FixedSize(5), records=simulate.WithReplacement(4))
    assert guarantee(twice, records=100) < guarantee(drawn, records=100) * 1.01
    order = simulate.NoisyFedAvg(**SETTINGS, clients=simulate.FixedSize(5), records=simulate.Shuffled(4))
    assert guarantee(order, records=100) == guarantee(simulate.NoisyFedAvg(**SETTINGS, clients=simulate.FixedSize(5)))


@pytest.mark.parametrize("clients", [simulate.FixedSize(5), simulate.Poisson(0.05)], ids=repr)
def test_steps_that_fall_are_never_charged_too_little(clients):
    """Rounds are grouped by their steps, the longer one's counting: not below their exact sum, and 3 % above it at most."""
    falling = simulate.NoisyFedAvg(**SETTINGS, clients=clients, schedule="stagewise")
    found = guarantee(falling, rounds=12)
    exact = hs.Accountant("replace")
    for t in range(12):
        move = 2 * 0.1 * 5 / (t + 1)
        if isinstance(clients, simulate.Poisson):
            exact = exact.compose(PoissonMean(move, 0.05, 1.0, 100))
        else:
            exact = exact.compose(FixedMean(move / math.sqrt(5), 0.05))
    assert exact.epsilon_bracket(1e-5).lower <= found <= exact.epsilon(1e-5) * 1.03
