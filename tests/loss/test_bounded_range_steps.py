"""Adaptive steps of bounded range: laws of explicit adversaries, followed forwards."""

import math

import numpy as np
import pytest
import scipy.stats

import hockeystick as hs
from enumeration import loss_delta

PARTS = 10  # of an interval of losses: an adversary's intervals start on this lattice


def bound(width, count):
    """Return the accountant of equal exponential mechanisms."""
    return hs.Accountant("replace").compose(hs.ExponentialMechanism(width), count)


def follow(width, count, policy):
    """Return (losses, law under P) if step k has its interval end at policy(k, losses) parts above 0, from the loss so far."""
    reach = count * PARTS
    places = np.arange(-reach, reach + 1)
    law = np.zeros(places.size)
    law[reach] = 1.0
    for k in range(count):
        top = policy(k, places)
        high = np.expm1(width * (top / PARTS - 1.0)) / math.expm1(-width)
        moved = np.zeros(places.size + 2 * PARTS)
        np.add.at(moved, np.arange(places.size) + PARTS + top, law * high)
        np.add.at(moved, np.arange(places.size) + top, law * (1.0 - high))
        law = moved[PARTS:-PARTS]
    return places * width / PARTS, law


def adversary(kind, rng, width, count):
    """Return a policy: a table of random intervals, or one that moves towards a goal, the more the fewer steps are left."""
    scale = width * math.sqrt(count) / 2
    table = rng.integers(1, PARTS, (count, 2 * count * PARTS + 1))
    goal, slope = rng.uniform(-1, 4) * scale, rng.uniform(0.0, 1.5)

    def policy(k, places):
        if kind == 0:
            return table[k]
        missing = (goal - places * width / PARTS) / width * slope / (1.0 if kind == 1 else count - k)
        return np.clip(np.rint(PARTS * (0.5 + 0.5 * np.tanh(missing))).astype(int), 1, PARTS - 1)

    return policy


@pytest.mark.share(3)
@pytest.mark.parametrize("width", [0.02, 0.4, 1.5, 6.0])
@pytest.mark.parametrize("count", [2, 5, 17, 40])
def test_adaptive_adversaries(width, count):
    """Adversaries that choose intervals at random, or by what is still missing, stay below the bound."""
    rng, accountant, worst = np.random.default_rng(count), bound(width, count), 0.0
    scale = width * math.sqrt(count) / 2
    upper = {eps: accountant.delta(eps) for eps in (0.0, 0.3 * scale, scale, 2.0 * scale, 3.5 * scale)}
    for trial in range(24):
        losses, law = follow(width, count, adversary(trial % 3, rng, width, count))
        assert law.sum() == pytest.approx(1.0, abs=1e-12)
        for eps, most in upper.items():
            truth = loss_delta(law, losses, eps)
            assert truth <= most * (1 + 1e-11)
            worst = max(worst, truth / most if most > 0 else 0.0)
    assert worst > 0.5


def test_counts_share_a_grid():
    """More steps never leak less, and the order of questions does not matter."""
    alone = [bound(0.5, n).epsilon(1e-5) for n in (3, 9, 16, 17, 30)]
    assert alone == sorted(alone)
    one = hs.Accountant("replace")
    again = []
    for n in (3, 6, 7, 1, 13):
        one.compose(hs.ExponentialMechanism(0.5), n)
        again.append(one.epsilon(1e-5))
    assert again == alone


def shifted(values, places, h, by):
    """Return the divergences as many places further; beyond those known only what no steps leak."""
    none = np.maximum(-np.expm1((places + by) * h), 0.0)
    inside = (places + by >= places[0]) & (places + by <= places[-1])
    return np.where(inside, np.maximum(np.roll(values, -by), none), none)


def best_on_lattice(steps, h, span):
    """Return (epsilons, delta) of the best adversary whose intervals start on a lattice.

    Steps are ("range", parts of h) or ("pure", parts of h), in the order of release.
    """
    places = np.arange(-span, span + 1)
    values = np.maximum(-np.expm1(places * h), 0.0)
    for kind, parts in reversed(steps):
        if kind == "pure":
            high = 1 / (1 + math.exp(-parts * h))
            values = high * shifted(values, places, h, -parts) + (1 - high) * shifted(values, places, h, parts)
            continue
        best = values
        for top in range(1, parts):
            high = math.expm1((top - parts) * h) / math.expm1(-parts * h)
            one = high * shifted(values, places, h, -top) + (1 - high) * shifted(values, places, h, parts - top)
            best = np.maximum(best, one)
        values = best
    return places[span:] * h, values[span:]


@pytest.mark.parametrize("width", [0.1, 1.0, 4.0])
def test_two_steps_are_nearly_attained(width):
    """With two steps the bound is that of the best adversary, but for chords."""
    epsilons, deltas = best_on_lattice([("range", 400)] * 2, width / 400, 800)
    for k in (40, 240, 480):
        assert deltas[k] * (1 - 1e-9) <= bound(width, 2).delta(epsilons[k]) <= deltas[k] * 1.02


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("width", "counts"),
    [
        (0.02, {("range", 8): 400}),
        (0.1, {("range", 8): 257, ("pure", 3): 1}),
        (0.4, {("range", 8): 30, ("pure", 12): 4, ("range", 5): 9}),
        (3.0, {("range", 8): 40, ("pure", 2): 3}),
        (30.0, {("range", 6): 12, ("pure", 1): 1}),
    ],
    ids=str,
)
def test_blocks_beside_other_steps(width, counts):
    """The best adversary against steps in any order stays below blocks that are composed, and is close."""
    h = width / next(iter(counts))[1]
    ledger, steps = hs.Accountant("replace"), []
    for (kind, parts), count in counts.items():
        ledger.compose(
            hs.ExponentialMechanism(parts * h) if kind == "range" else hs.ApproximateDP(parts * h, 0.0), count
        )
        steps += [(kind, parts)] * count
    np.random.default_rng(7).shuffle(steps)
    steps = [(str(kind), int(parts)) for kind, parts in steps]
    scale = math.sqrt(sum((parts * h) ** 2 for _, parts in steps)) / 2
    span = int(min(sum(parts for _, parts in steps), (scale**2 / 2 + 9 * scale) / h)) + 1
    epsilons, deltas = best_on_lattice(steps, h, span)
    for share in (0.1, 1.0, 2.5):
        i = min(np.searchsorted(epsilons, scale**2 / 2 + (share - 1) * scale), int(0.8 * span))
        upper = ledger.delta(epsilons[i])
        assert deltas[i] * (1 - 1e-10) <= upper
        assert ledger.epsilon(deltas[i] * (1 + 1e-10)) >= epsilons[i] * (1 - 1e-10)
        assert upper <= deltas[i] * 1.25


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("width", "count", "delta", "share"),
    [
        (1.0, 10, 1e-6, 0.9995),
        (1.0, 100, 1e-6, 0.9995),
        (0.1, 50, 1e-6, 0.9995),
        (0.5, 1, 1e-6, 0.9999),
        (6.0, 7, 1e-3, 0.998),
    ],
)
def test_lower_end_is_that_of_one_interval(width, count, delta, share):
    """The lower end is no more than what the best constant interval attains, by sums over binomial laws, and nearly that."""
    ends = width * np.append(np.linspace(0.3, 0.99, 4000), 1 - np.geomspace(1e-2, 1e-5, 4000))
    k = np.arange(count + 1)[:, None]
    laws = scipy.stats.binom.pmf(k, count, np.expm1(ends - width) / math.expm1(-width))
    losses = k * ends - (count - k) * (width - ends)

    def best(eps):
        return float(np.max(np.sum(laws * np.maximum(-np.expm1(np.minimum(eps - losses, 0.0)), 0.0), axis=0)))

    ledger = bound(width, count)
    lower = ledger.epsilon_bracket(delta).lower
    assert best(lower * (1 - 1e-6)) >= delta * (1 - 1e-3)  # 1e-3: of a grid of intervals
    assert best(lower / share) <= delta
    assert ledger.delta_bracket(lower).lower <= best(lower) * (1 + 1e-3)


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_just_below_the_largest_loss(count):
    """There some interval of losses leaks next to nothing, which is not nothing."""
    assert hs.Accountant().compose(hs.ExponentialMechanism(1.0), count).delta(np.nextafter(count, 0.0)) > 0.0


@pytest.mark.parametrize("epsilon", [5e-324, 2e-308, 1e-250, 1e-161, 1e-150])
def test_ranges_that_are_nearly_zero(epsilon):
    """One step's delta at 0 is a quarter of the range, and no number of steps has less."""
    for count in (1, 2, 300):
        assert hs.Accountant().compose(hs.ExponentialMechanism(epsilon), count).delta(0.0) >= 0.25 * epsilon * (
            1 - 1e-9
        )
