"""The reference samplers draw what their mechanisms assume."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs

DRAWS = 40_000


def chi_square_exceeds(observed, expected):
    """Say whether Pearson's statistic passes its quantile at 1e-6, by the normal approximation of Wilson and Hilferty."""
    observed, expected = np.asarray(observed, float), np.asarray(expected, float)
    assert expected.min() >= 5
    k = len(expected) - 1
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return (statistic / k) ** (1 / 3) > 1 - 2 / (9 * k) + 4.75 * math.sqrt(2 / (9 * k))


def frequencies(mechanism, clients, subsets):
    """Return how often each subset is drawn."""
    rng = np.random.default_rng(5)
    counts = dict.fromkeys(subsets, 0)
    for _ in range(DRAWS):
        counts[tuple(hs.draw_participants(mechanism, clients, rng))] += 1
    return list(counts.values())


def test_poisson_sampling():
    """Every subset of five clients has the probability of independent coins."""
    rate, clients = 0.3, ["a", "b", "c", 4, 5]
    subsets = [subset for size in range(6) for subset in itertools.combinations(clients, size)]
    expected = [DRAWS * rate ** len(subset) * (1 - rate) ** (5 - len(subset)) for subset in subsets]
    observed = frequencies(hs.PoissonSampled(hs.Gaussian(1.0), rate), clients, subsets)
    assert not chi_square_exceeds(observed, expected)
    skewed = [DRAWS * 0.31 ** len(subset) * 0.69 ** (5 - len(subset)) for subset in subsets]
    assert chi_square_exceeds(observed, skewed)  # a rate off by 0.01 is seen


def test_fixed_size_sampling():
    """Every subset of three of six clients is equally likely, and there is no other."""
    subsets = list(itertools.combinations(range(6), 3))
    step = hs.FixedSizeSampled(hs.Gaussian(1.0), 6, 3, replacement=False)
    observed = frequencies(step, range(6), subsets)
    assert not chi_square_exceeds(observed, [DRAWS / len(subsets)] * len(subsets))


def test_truncated_poisson_sampling():
    """Subsets below the largest batch have the probability of coins; the rest is shared evenly by those of that size."""
    rate, most, clients = 0.4, 2, range(5)
    subsets = [subset for size in range(most + 1) for subset in itertools.combinations(clients, size)]
    full = math.fsum(math.comb(5, size) * rate**size * (1 - rate) ** (5 - size) for size in range(most, 6))
    small = [DRAWS * rate ** len(subset) * (1 - rate) ** (5 - len(subset)) for subset in subsets if len(subset) < most]
    expected = [*small, *[DRAWS * full / math.comb(5, most)] * math.comb(5, most)]
    observed = frequencies(hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 5, rate, most), clients, subsets)
    assert not chi_square_exceeds(observed, expected)
    assert hs.draw_participants(hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 5, 1.0, 5), clients) == list(clients)


@pytest.mark.parametrize("num_selected", [1, 2])
def test_random_allocation(num_selected):
    """Every choice of steps of two clients together is equally likely: each is uniform, and they are independent."""
    rng, epoch = np.random.default_rng(5), hs.RandomAllocation(hs.Gaussian(1.0), 4, num_selected)
    choices = list(itertools.combinations(range(4), num_selected))
    counts = dict.fromkeys(itertools.product(choices, choices), 0)
    draws = DRAWS // 4
    for _ in range(draws):
        batches = hs.draw_batches(epoch, ["a", "b"], rng)
        assert len(batches) == 4
        counts[tuple(tuple(i for i, batch in enumerate(batches) if client in batch) for client in "ab")] += 1
    assert not chi_square_exceeds(list(counts.values()), [draws / len(counts)] * len(counts))


def test_epochs_keep_the_order_of_clients():
    """Ids stand in their order in every batch, and each in as many batches as are selected."""
    clients = [f"client {i}" for i in range(500)]
    batches = hs.draw_batches(hs.RandomAllocation(hs.Gaussian(1.0), 7, 3), clients)
    assert all(batch == [client for client in clients if client in set(batch)] for batch in batches)
    assert sum(map(len, batches)) == 3 * len(clients)
    assert hs.draw_batches(hs.RandomAllocation(hs.Gaussian(1.0), 3), []) == [[], [], []]
    everybody = hs.draw_batches(hs.RandomAllocation(hs.Gaussian(1.0), 2, 2), clients)
    assert everybody == [clients, clients]


def test_draws_with_replacement():
    """Every multiset of three draws of three clients has its multinomial probability."""
    step = hs.FixedSizeSampled(hs.Gaussian(1.0), 3, 3, replacement=True)
    subsets = list(itertools.combinations_with_replacement(range(3), 3))
    orders = [math.factorial(3) / math.prod(math.factorial(subset.count(k)) for k in range(3)) for subset in subsets]
    observed = frequencies(step, range(3), subsets)
    assert not chi_square_exceeds(observed, [DRAWS * ways / 27 for ways in orders])
    assert chi_square_exceeds(observed, [DRAWS / len(subsets)] * len(subsets))


@pytest.mark.parametrize("nested", [False, True])
def test_truncated_and_nested_sampling(nested):
    """Every subset of a truncated Poisson sample has its probability; a sample of a sample is drawn at the product of the rates."""
    rate, most = 0.6, 2
    step = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 4, rate, 4 if nested else most)
    if nested:
        step, rate, most = hs.PoissonSampled(step, 0.5), 0.3, 4
    subsets = [subset for size in range(most + 1) for subset in itertools.combinations(range(4), size)]
    sizes = [math.comb(4, size) * rate**size * (1 - rate) ** (4 - size) for size in range(5)]
    kept = [*sizes[:most], math.fsum(sizes[most:])]
    observed = frequencies(step, range(4), subsets)
    assert not chi_square_exceeds(observed, [DRAWS * kept[len(s)] / math.comb(4, len(s)) for s in subsets])


def test_releases_of_one_sample():
    """A composition draws one sample for all its releases, and none if each would need its own."""
    step = hs.PoissonSampled(hs.Composed([(hs.Gaussian(1.0), 1), (hs.Laplace(1.0), 2)]), 0.5)
    observed = frequencies(step, range(2), [(), (0,), (1,), (0, 1)])
    assert not chi_square_exceeds(observed, [DRAWS / 4] * 4)
    apart = hs.Composed([(hs.PoissonSampled(hs.Gaussian(1.0), 0.5), 2)])
    with pytest.raises(ValueError, match="one sample for all of its releases"):
        hs.draw_participants(apart, range(2))


def test_without_sampling_all_take_part():
    """A mechanism that does not sample has everybody; rates 0 and 1 have nobody and everybody."""
    clients = list(range(100))
    assert hs.draw_participants(hs.Gaussian(1.0), clients) == clients
    assert hs.draw_participants(hs.PoissonSampled(hs.Gaussian(1.0), 1.0), clients) == clients
    assert hs.draw_participants(hs.PoissonSampled(hs.Gaussian(1.0), 0.0), clients) == []
    drawn = hs.draw_participants(hs.PoissonSampled(hs.Gaussian(1.0), 0.5), clients)
    assert drawn != hs.draw_participants(hs.PoissonSampled(hs.Gaussian(1.0), 0.5), clients)  # fresh entropy each time


REJECTED = {
    "no mechanism": (TypeError, "mechanism must be", lambda: hs.draw_participants(0.5, [1, 2])),
    "a client twice": (ValueError, "each client once", lambda: hs.draw_participants(hs.Gaussian(1.0), [1, 2, 1])),
    "a seed": (TypeError, "rng must be", lambda: hs.draw_participants(hs.Gaussian(1.0), [1], 7)),
    "a round of an epoch": (
        ValueError,
        "draw_batches",
        lambda: hs.draw_participants(hs.RandomAllocation(hs.Gaussian(1.0), 2), [1]),
    ),
    "no epoch": (TypeError, "mechanism must be RandomAllocation", lambda: hs.draw_batches(hs.Gaussian(1.0), [1])),
    "another number": (
        ValueError,
        "must be the 6 clients",
        lambda: hs.draw_participants(hs.FixedSizeSampled(hs.Gaussian(1.0), 6, 3, replacement=False), range(7)),
    ),
    "more": (
        ValueError,
        "at most the 6 clients",
        lambda: hs.draw_participants(hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 6, 0.5, 3), range(7)),
    ),
}


@pytest.mark.parametrize("reason", REJECTED)
def test_rejected(reason):
    """What cannot be drawn is refused in words."""
    error, words, call = REJECTED[reason]
    with pytest.raises(error, match=words):
        call()
