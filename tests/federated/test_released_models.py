"""What released models leak: small federations by enumeration of who is drawn and by quadrature, exact chains, and sums in many digits."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import binom

import hockeystick as hs
import mixture_chain
import small_federations
import theorems
from enumeration import hockey_stick
from hockeystick import last_iterate
from hockeystick.federated import released_models
from hockeystick.federated.released_models import (
    FROM,
    VIEWS,
    AlikeRounds,
    FixedMean,
    Guarantee,
    PoissonMean,
    RemainingMean,
    smallest_of,
)
from small_federations import EPSILONS, cells, largest, law_of_mean

SHARES = {  # of what some clients' mean tells by its pair: how many are drawn, rates, dropouts, and how often the record is used
    "fixed": [(1, 1.0), (2, 1.0), (3, 0.4), (4, 0.3), (2, 0.2)],
    "poisson": [(0.3, 1.0), (0.6, 0.5), (0.05, 1.0), (1.0, 0.7)],
    "remaining": [(1, 0.3, 1.0), (2, 0.5, 1.0), (3, 0.1, 0.4), (4, 0.3, 1.0), (4, 0.6, 0.3), (2, 0.9, 0.2)],
}


def pair_of(kind, who, use, noise):
    """Return the pair of four clients' mean."""
    if kind == "fixed":
        (size,) = who
        step = FixedMean(2 / (size * noise / math.sqrt(size)), size / 4 * use)
    elif kind == "poisson":
        step = PoissonMean(2 / noise, *who, use, 4)
    else:
        size, dropout = who
        step = RemainingMean(2 / noise, size / 4 * use, size, dropout)
    assert not step._pairs("replace", upper=False)  # no models are known to attain it
    return step._pair("replace")


def attained(kind, eps, noise):
    """Return the share of the pair that models attain: cells have a width; the largest size counts for all dropouts; of Poisson samples none is claimed."""
    if kind == "remaining" and eps > 0:
        return 0.8 if noise == 0.5 else 0.0
    return 0.0 if kind == "poisson" else 1 - 1e-2


@pytest.mark.share(3)
@pytest.mark.parametrize("noise", [0.5, 1.5])
@pytest.mark.parametrize(("kind", "numbers"), [(kind, numbers) for kind in SHARES for numbers in SHARES[kind]])
def test_no_federation_leaks_more(kind, numbers, noise):
    """All places of four clients' models, of which some are drawn and some of these remain: below the pair, and near it where attained."""
    *who, use = numbers
    sets = getattr(small_federations, kind)(*who)
    edges = np.linspace(-1 - 8 * noise, 1 + 8 * noise, 400 if kind == "remaining" else 800)

    def law(*places):
        joint = law_of_mean(sets, *places, use=use, noise=noise, edges=edges)
        return joint.sum(axis=0) if kind == "poisson" else joint  # how many were drawn is not shown

    pair = pair_of(kind, who, use, noise)
    for eps, found in largest(law).items():
        upper = pair.one_step(True, False, eps)[1]
        assert upper * attained(kind, eps, noise) <= found <= upper * (1 + 1e-9) + 1e-13


@pytest.mark.parametrize(
    ("step", "sets", "points"),
    [
        (PoissonMean(2 / 0.7, 0.4, 1.0, 4), small_federations.poisson(0.4), 500),
        (RemainingMean(2 / 0.7, 0.5, 2, 0.3), small_federations.remaining(2, 0.3), 250),
    ],
    ids=["poisson", "remaining"],
)
def test_two_rounds(step, sets, points):
    """Both rounds against opposite models, in the same and in mixed order: below the accountant's bound."""
    others, edges = (-1.0, -1.0, -1.0), np.linspace(-7.0, 7.0, points)
    joint = [law_of_mean(sets, others, mine, 0.0, use=1.0, noise=0.7, edges=edges) for mine in (1.0, -1.0)]
    laws = [law.sum(axis=0) if isinstance(step, PoissonMean) else law.ravel() for law in joint]
    bound = hs.Accountant("replace").compose(step, 2)
    for (p1, q1), (p2, q2) in itertools.product([laws, laws[::-1]], repeat=2):
        for eps in EPSILONS:
            assert hockey_stick(np.outer(p1, p2), np.outer(q1, q2), eps) <= bound.delta(eps) * (1 + 1e-9)


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
    attained = hockey_stick(*laws, eps)
    wrong = FixedMean(2 / math.sqrt(5), rate)._pair("replace").one_step(True, False, eps)[1]
    right = PoissonMean(2.0, rate, 1.0, 100)._pair("replace").one_step(True, False, eps)[1]
    assert 100 * wrong < attained <= right


@pytest.mark.parametrize(("others", "rate"), [(1, 0.5), (99, 0.05), (5000, 0.3), (40, 0.999), (10**5, 1e-4)])
def test_numbers_of_others_are_rounded_down(others, rate):
    """Grouped numbers put at least as much on few others as the binomial law, by its sum in many digits, and as much on all."""
    numbers, weights = released_models._others(others, rate)
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


@pytest.mark.parametrize(("size", "rate", "dropout"), [(5, 0.05, 0.1), (40, 0.2, 0.5), (3, 1.0, 0.25), (7, 0.3, 1e-20)])
def test_pair_is_above_the_mixture_of_fixed_sizes(size, rate, dropout):
    """Given how many remain, they are a smaller sample of a fixed size; the sum over the binomial law, in many digits, is below the pair."""
    pair = RemainingMean(2.0, rate, size, dropout)._pair("replace")
    with mp.workdps(50):
        d = mp.mpf(dropout)
        for eps in (0.0, 0.5, 2.0, 6.0, 20.0):
            total = mp.mpf(0)
            for r in range(1, size + 1):
                mu, q = 2 / mp.sqrt(r), mp.mpf(rate) * r / size
                base = theorems.theta(mp.log(1 + mp.expm1(eps) / q), mu)
                total += mp.binomial(size, r) * (1 - d) ** r * d ** (size - r) * q * base
            found = pair.one_step(True, False, eps)[1]
            assert mp.mpf(found) >= total
            if eps == 0 or (dropout == 1e-20 and eps < 10):
                assert found <= total * (1 + mp.mpf("1e-9"))


def test_everybody_and_dropouts_are_poisson_clients():
    """Where all take part, those that remain are a Poisson sample."""
    pairs = [step._pair("replace") for step in (RemainingMean(2.0, 1.0, 20, 0.3), PoissonMean(2.0, 0.7, 1.0, 20))]
    for eps in EPSILONS:
        ours, theirs = (pair.one_step(True, False, eps) for pair in pairs)
        assert ours == pytest.approx(theirs, rel=1e-9)


# The last averaged model alone


def moved(expansion, by):
    """Return a map of a model."""
    return lambda x: expansion * x + by


@pytest.mark.parametrize("expansion", [1.0, 1.1])
@pytest.mark.parametrize(
    ("shift", "rate", "radius", "rounds"),
    [(1.0, 0.3, 1.0, 12), (2.0, 0.5, 0.5, 20), (0.5, 0.2, 2.0, 40), (1.0, 1.0, 1.0, 12), (0.3, 1.0, 0.5, 30)],
)
def test_no_chain_leaks_more(shift, rate, radius, rounds, expansion):
    """All starts and moves of either data set, and of rounds that do not use the record, within a shift of each other."""
    bound = AlikeRounds(shift, rate, expansion, 2 * radius).guarantee()
    epsilons = {delta: bound.epsilon(rounds, delta) for delta in (0.3, 1e-2, 1e-4)}
    for unused, start in itertools.product((-shift / 2, 0.0, shift / 2), (0.0, radius)):
        chains = [
            [[(1 - rate, moved(expansion, unused)), (rate, moved(expansion, used))]] * rounds
            for used in (shift / 2, -shift / 2)
        ]
        attained = mixture_chain.lower_end(list(epsilons.values()), *chains, radius, 1.0, start)
        assert np.all(attained <= np.array(list(epsilons)) * (1 + 1e-9))


def test_rounds_that_are_alike():
    """Used in every round, epsilon is that of full batches; nothing is purely private."""
    guarantee = AlikeRounds(0.2, 1.0, 1.0, 2.0).guarantee()
    process = {"learning_rate": 1.0, "noise_std": 1.0, "lipschitz": 0.1, "smoothness": 0.0, "diameter": 2.0}
    best = last_iterate.best_cyclic(guarantee.epsilon(100, 1e-5), index=1, period=1, rounds=100, **process)
    assert best.delta == pytest.approx(1e-5, rel=5e-3)
    assert guarantee.epsilon(100, 0.0) == math.inf


# One hidden model


def test_fewer_rounds_than_planned():
    """After t of T rounds the delta is the larger of those of min(stop, t) and of a stop among t, by enumeration."""
    rng = np.random.default_rng(0)
    for planned, done, suffix in itertools.product((1, 5, 10), (1, 3, 5), (1.0, 0.5, 0.1)):
        if done > planned:
            continue
        deltas = np.sort(rng.random(done))
        first = planned - math.ceil(suffix * planned) + 1
        late = [deltas[min(stop, done) - 1] for stop in range(first, planned + 1)]
        expected = max(np.mean(late), np.mean(deltas[done - math.ceil(suffix * done) :]))
        assert expected <= released_models.at_random_stop(deltas, planned, suffix) <= expected * (1 + 1e-12)
        falling = np.sort(deltas)[::-1]  # deltas after 0, 1, ... later rounds
        worst = released_models.by_later_rounds(falling, planned)
        for later in range(done):
            index = done - later
            stops = [falling[min(s, done) - index] if min(s, done) >= index else 0.0 for s in range(1, planned + 1)]
            again = [falling[s - index] if s >= index else 0.0 for s in range(1, done + 1)]
            expected = max(np.mean(stops), np.mean(again))
            assert expected <= worst[later] <= expected * (1 + 1e-10)


def test_sums_by_definition():
    """Theorem 2's sum after each round, term by term, rounded up."""
    first, later = np.random.default_rng(1).random((2, 7))
    for t, value in enumerate(released_models.running_sums(first, later), 1):
        exact = math.fsum(first[s] * math.prod(later[s + 1 : t]) for s in range(t))
        assert exact <= value <= exact * (1 + 1e-10)


# What may be seen


def test_views_are_ordered():
    """What is computed from a view is computed from all that the view is computed from."""
    for view in VIEWS:
        assert FROM[view][0] == view
        for source in FROM[view]:
            assert set(FROM[source]) <= set(FROM[view])


def test_bounds_of_one_function_are_all_shown():
    """Two bounds by one function have two names, of what they cover; of two that cover the same the smaller is shown."""
    covered = [("all models", 3.0), ("the last model", 2.0), ("the last model", 2.5)]
    parts = [
        Guarantee("replace", name, "one function", lambda _t, _delta, value=value: value) for name, value in covered
    ]
    both = smallest_of("one", parts)
    assert both.bounds(4, 1e-5) == {
        "one function, which covers the last model": 2.0,
        "one function, which covers all models": 3.0,
    }
    assert min(both.bounds(4, 1e-5).values()) == both.epsilon(4, 1e-5)
