"""The reference samplers draw what their mechanisms assume."""

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs
import refused_calls

DRAWS = 10_000
NOISE = hs.Gaussian(1.0)


def chi_square_exceeds(observed, expected):
    """Say whether Pearson's statistic passes its quantile at 1e-6, by the normal approximation of Wilson and Hilferty."""
    observed, expected = np.asarray(observed, float), np.asarray(expected, float)
    assert expected.min() >= 5
    k = len(expected) - 1
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return (statistic / k) ** (1 / 3) > 1 - 2 / (9 * k) + 4.75 * math.sqrt(2 / (9 * k))


def frequencies(mechanism, clients, subsets, draws=DRAWS):
    """Return how often each subset is drawn."""
    rng = np.random.default_rng(5)
    counts = dict.fromkeys(subsets, 0)
    for _ in range(draws):
        counts[tuple(hs.draw_participants(mechanism, clients, rng))] += 1
    return list(counts.values())


def coins(clients, rate, most):
    """Return the probability of each subset of independent coins, of which larger ones are cut to `most`, uniformly."""
    number = len(clients)
    sizes = [math.comb(number, size) * rate**size * (1 - rate) ** (number - size) for size in range(number + 1)]
    kept = [*sizes[:most], math.fsum(sizes[most:])]
    return {
        subset: kept[size] / math.comb(number, size)
        for size in range(most + 1)
        for subset in itertools.combinations(clients, size)
    }


FIVE = ["a", "b", "c", 4, 5]
ROLLS = {x: math.factorial(3) / math.prod(math.factorial(x.count(k)) for k in range(3)) / 27 for x in itertools.combinations_with_replacement(range(3), 3)}  # fmt: skip
SAMPLERS = {
    "Poisson": (hs.PoissonSampled(NOISE, 0.3), FIVE, coins(FIVE, 0.3, 5)),
    "fixed size": (
        hs.FixedSizeSampled(NOISE, 6, 3, replacement=False),
        range(6),
        dict.fromkeys(itertools.combinations(range(6), 3), 1 / 20),
    ),
    "with replacement": (hs.FixedSizeSampled(NOISE, 3, 3, replacement=True), range(3), ROLLS),
    "truncated": (hs.TruncatedPoissonSampled(NOISE, 5, 0.4, 2), range(5), coins(range(5), 0.4, 2)),
    "a sample of a sample": (
        hs.PoissonSampled(hs.TruncatedPoissonSampled(NOISE, 4, 0.6, 4), 0.5),
        range(4),
        coins(range(4), 0.3, 4),
    ),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_subset_has_its_probability(name):
    """Independent coins, subsets of one size, multinomial draws, samples that are cut, and products of rates: and no other subset."""
    mechanism, clients, law = SAMPLERS[name]
    assert math.fsum(law.values()) == pytest.approx(1.0)
    observed = frequencies(mechanism, clients, law)
    assert not chi_square_exceeds(observed, [DRAWS * chance for chance in law.values()])


def test_a_wrong_law_is_seen():
    """The statistic above notices a rate that is off by 0.01, and draws with replacement that are not multinomial."""
    observed = frequencies(hs.PoissonSampled(NOISE, 0.3), FIVE, coins(FIVE, 0.3, 5), 40_000)
    assert chi_square_exceeds(observed, [40_000 * chance for chance in coins(FIVE, 0.31, 5).values()])
    observed = frequencies(SAMPLERS["with replacement"][0], range(3), ROLLS)
    assert chi_square_exceeds(observed, [DRAWS / len(ROLLS)] * len(ROLLS))


@pytest.mark.parametrize("num_selected", [1, 2])
def test_random_allocation(num_selected):
    """Every choice of steps of two clients together is equally likely: each is uniform, and they are independent."""
    rng, epoch = np.random.default_rng(5), hs.RandomAllocation(hs.Gaussian(1.0), 4, num_selected)
    choices = list(itertools.combinations(range(4), num_selected))
    counts = dict.fromkeys(itertools.product(choices, choices), 0)
    for _ in range(DRAWS):
        batches = hs.draw_batches(epoch, ["a", "b"], rng)
        assert len(batches) == 4
        counts[tuple(tuple(i for i, batch in enumerate(batches) if client in batch) for client in "ab")] += 1
    assert not chi_square_exceeds(list(counts.values()), [DRAWS / len(counts)] * len(counts))


def test_epochs_keep_the_order_of_clients():
    """Ids stand in their order in every batch, and each in as many batches as are selected."""
    clients = [f"client {i}" for i in range(500)]
    batches = hs.draw_batches(hs.RandomAllocation(hs.Gaussian(1.0), 7, 3), clients)
    assert all(batch == [client for client in clients if client in set(batch)] for batch in batches)
    assert sum(map(len, batches)) == 3 * len(clients)
    assert hs.draw_batches(hs.RandomAllocation(hs.Gaussian(1.0), 3), []) == [[], [], []]
    everybody = hs.draw_batches(hs.RandomAllocation(hs.Gaussian(1.0), 2, 2), clients)
    assert everybody == [clients, clients]


def test_releases_of_one_sample():
    """A composition draws one sample for all its releases."""
    step = hs.PoissonSampled(hs.Composed([(hs.Gaussian(1.0), 1), (hs.Laplace(1.0), 2)]), 0.5)
    observed = frequencies(step, range(2), [(), (0,), (1,), (0, 1)])
    assert not chi_square_exceeds(observed, [DRAWS / 4] * 4)


def test_without_sampling_all_take_part():
    """A mechanism that does not sample has everybody; rates 0 and 1 have nobody and everybody."""
    clients = list(range(100))
    assert hs.draw_participants(hs.Gaussian(1.0), clients) == clients
    assert hs.draw_participants(hs.PoissonSampled(hs.Gaussian(1.0), 1.0), clients) == clients
    assert hs.draw_participants(hs.TruncatedPoissonSampled(NOISE, 100, 1.0, 100), clients) == clients
    assert hs.draw_participants(hs.PoissonSampled(hs.Gaussian(1.0), 0.0), clients) == []
    drawn = hs.draw_participants(hs.PoissonSampled(hs.Gaussian(1.0), 0.5), clients)
    assert drawn != hs.draw_participants(hs.PoissonSampled(hs.Gaussian(1.0), 0.5), clients)  # fresh entropy each time


REFUSED = r"""
hs.draw_participants(0.5, [1, 2]) -> TypeError: mechanism must be
hs.draw_participants(hs.Gaussian(1.0), [1, 2, 1]) -> each client once
hs.draw_participants(hs.Gaussian(1.0), [1], 7) -> TypeError: rng must be
hs.draw_participants(hs.RandomAllocation(hs.Gaussian(1.0), 2), [1]) -> draw_batches
hs.draw_participants(hs.Composed([(hs.PoissonSampled(NOISE, 0.5), 2)]), range(2)) -> one sample for all of its releases
hs.draw_batches(hs.Gaussian(1.0), [1]) -> TypeError: mechanism must be RandomAllocation
hs.draw_participants(hs.FixedSizeSampled(hs.Gaussian(1.0), 6, 3, replacement=False), range(7)) -> must be the 6 clients
hs.draw_participants(hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 6, 0.5, 3), range(7)) -> at most the 6 clients
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """What is outside its domain is named with its value, and wrong types are told from wrong values."""
    refused_calls.check(call, reason, {"hs": hs, "NOISE": NOISE})
