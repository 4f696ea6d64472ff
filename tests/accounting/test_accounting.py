"""The accountant: closed forms, both directions, bookkeeping, and what queries say about each other."""

import json
import math
import random

import mpmath as mp
import numpy as np
import pytest

import high_precision as exact
import hockeystick as hs
from compositions import MIXED, REPLACED, SAMPLED, composed


@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
@pytest.mark.parametrize("depth", [0.0, 0.5, 3.0, 12.0, 36.0])
def test_gaussians_are_one(depth, adjacency):
    """Any number of Gaussians, unequal ones too, have theta at the root of the summed squares, to 1e-11."""
    shift = 2 if adjacency == "replace" else 1
    steps = [(hs.Gaussian(7.0), 10), (hs.Gaussian(0.9), 1), (hs.Gaussian(123.4), 10**6)]
    accountant = composed(*steps, adjacency=adjacency)
    with mp.workdps(60):
        mu = shift * mp.sqrt(sum(count / mp.mpf(step.noise_multiplier) ** 2 for step, count in steps))
        eps = float(mu * (depth + mu / 2))
        truth = exact.theta(eps, mu)
        bracket = accountant.delta_bracket(eps)
        assert bracket.lower <= truth <= bracket.upper == accountant.delta(eps)
        assert bracket.upper - bracket.lower <= 1e-11 * (1 + abs(mp.log(truth))) * truth
        assert bracket.method == "gaussian closed form"
        spent = accountant.epsilon_bracket(bracket.upper)
        assert exact.theta(spent.upper, mu) <= mp.mpf(bracket.upper) <= exact.theta(spent.lower, mu)
        assert spent.upper - spent.lower <= 1e-9 * eps


def test_log_delta_below_the_doubles():
    """The log of a Gaussian's delta stays an upper end, to 1e-11, where delta itself is no double."""
    accountant = composed((hs.Gaussian(2.0), 4))
    with mp.workdps(60):
        for eps in [1.0, 30.0, 50.0, 1e3, 1e6]:
            truth = exact.log_theta(eps, 1.0)
            assert truth <= accountant.log_delta(eps) <= truth * (1 - 1e-11) + 1e-12
    assert accountant.log_delta(math.inf) == -math.inf
    assert composed((hs.Laplace(1.0), 2)).log_delta(2.1) == -math.inf


def test_nothing_composed():
    """Nothing leaks nothing, and neither does a mechanism without samples or without weight."""
    for accountant in (hs.Accountant(), composed((hs.PoissonSampled(hs.Gaussian(1.0), 0.0), 10**6))):
        assert accountant.epsilon(0.0) == accountant.delta(0.0) == accountant.advantage() == 0
        assert accountant.log_delta(1.0) == -math.inf
        assert accountant.trade_off([0.0, 0.3, 1.0]).tolist() == pytest.approx([1.0, 0.7, 0.0], rel=1e-15)
        assert accountant.rdp(2.0) == 0


def test_single_steps():
    """One step is answered by its exact formula: Laplace 1 - e^{(eps - r)/2}, (epsilon, delta)-DP at its own epsilon."""
    for largest in (0.01, 2.0, 30.0):
        laplace = composed((hs.Laplace(1 / largest), 1))
        for share in (0.0, 0.5, 0.95):
            bracket = laplace.delta_bracket(share * largest)
            truth = -math.expm1((share - 1) * largest / 2)
            assert bracket.lower <= truth * (1 + 1e-12)
            assert truth * (1 - 1e-12) <= bracket.upper <= bracket.lower * (1 + 1e-10)
        assert laplace.delta(1.05 * largest) == 0
    approximate = composed((hs.ApproximateDP(0.7, 1e-6), 1))
    assert 0.7 <= approximate.epsilon(1e-6) <= 0.7 + 1e-12
    assert approximate.epsilon(0.9e-6) == math.inf
    assert approximate.delta(5.0) == 1e-6


def test_bounded_losses():
    """Beyond the sum of the largest losses delta is exactly 0, at delta = 0 epsilon is that sum, for each direction."""
    accountant = composed((hs.Laplace(2.0), 10), (hs.Laplace(4.0), 4))
    assert accountant.delta(6.0001) == 0
    assert accountant.delta_bracket(6.0001).method == "beyond the largest loss"
    assert 6.0 <= accountant.epsilon(0.0) <= 6.0 * (1 + 1e-13)
    assert composed((hs.Gaussian(1.0), 2), (hs.Laplace(1.0), 1)).epsilon(0.0) == math.inf
    assert composed((hs.Gaussian(2.0), 1000)).epsilon_bracket(0.0)[:2] == (math.inf, math.inf)
    assert composed((hs.ApproximateDP(0.1, 1e-6), 3)).epsilon([2.9e-6, 0.0]).tolist() == [math.inf, math.inf]
    added = composed((SAMPLED, 3)).explain(epsilon=0.5).directions["add"]  # a loss of at most -3 log(0.9) = 0.316
    assert added[:3] == (0.0, 0.0, "beyond the largest loss")


def test_a_count_of_zero_composes_nothing():
    """No step of a mechanism leaves ledger and brackets as they are; what cannot be composed is refused all the same."""
    accountant, alone = (composed((hs.Gaussian(2.0), 3)) for _ in range(2))
    assert accountant.compose(hs.Laplace(1.0), 0).compose(SAMPLED, 0.0) is accountant
    assert accountant.ledger == {hs.Gaussian(2.0): 3}
    assert accountant.delta_bracket(0.5) == alone.delta_bracket(0.5)
    assert repr(alone.compose(SAMPLED, 3.0)) == repr(accountant.compose(SAMPLED, 3))  # also as a float
    spent = alone.epsilon(1e-5)
    assert not accountant.would_exceed(hs.Laplace(1e-3), 0, epsilon=spent, delta=1e-5)
    with pytest.raises(ValueError, match="replaced, not added or removed"):
        accountant.compose(hs.RandomizedResponse(0.5, 3), 0)
    losses = hs.PrivacyLossDistribution.from_mechanism(hs.Laplace(1.0))
    nothing = losses.self_compose(0)
    assert "nothing composed" in repr(nothing)
    assert nothing.delta_bracket(0.0)[:2] == nothing.epsilon_bracket(0.0)[:2] == (0.0, 0.0)
    assert (
        nothing.compose(losses).delta_bracket(0.5)
        == losses.compose(nothing).delta_bracket(0.5)
        == losses.delta_bracket(0.5)
    )
    for count in (-1, 0.5, math.nan):
        for call in (lambda count: accountant.compose(hs.Laplace(1.0), count), losses.self_compose):
            with pytest.raises((ValueError, TypeError), match="count must be an integer"):
                call(count)


def test_pairs_for_each_direction():
    """Each direction is answered by its own pair, alone or composed: a pair with its reverse is Discrete, the larger counts."""
    strong, weak = hs.Discrete([0.7, 0.3], [0.2, 0.8]), hs.Discrete([0.5, 0.5], [0.4, 0.6])
    reverse = hs.Discrete(strong.q, strong.p)
    for count in (1, 20):
        plain = composed((strong, count))
        found, expected = (
            composed((hs.DiscretePairs(strong, reverse), count)).delta_bracket(0.5),
            plain.delta_bracket(0.5),
        )
        assert found.lower <= expected.upper
        assert expected.lower <= found.upper <= expected.upper * (1 + 1e-3)
        both = composed((hs.DiscretePairs(weak, strong), count))
        directions = both.explain(epsilon=0.5).directions
        assert directions["add"].upper == both.delta(0.5)
        assert directions["remove"].upper < directions["add"].upper
    assert hs.Accountant.from_state_dict(json.loads(json.dumps(both.state_dict()))).ledger == both.ledger
    assert both.rdp(2.0) == pytest.approx(count * composed((hs.DiscretePairs(weak, strong), 1)).rdp(2.0), rel=1e-12)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_just_below_the_largest_loss(gap):
    """Two Laplace steps of noise 1, below their largest loss 2: both atoms, one atom with a density, or two densities."""
    with mp.workdps(30):
        eps = 2.0 - gap
        short = mp.mpf(2) - mp.mpf(eps)
        density = lambda x: mp.exp(-x / 2) / 4
        one = mp.quad(lambda x: density(x) * -mp.expm1(x - short), [0, short])
        two = mp.quad(lambda x: x / 16 * mp.exp(-x / 2) * -mp.expm1(x - short), [0, short])
        truth = -mp.expm1(-short) / 4 + one + two
        bracket = composed((hs.Laplace(1.0), 2)).delta_bracket(eps)
        assert bracket.lower <= truth <= bracket.upper <= truth * (1 + 4 * gap + 1e-3)


def asked(accountant):
    """Return what an accountant says, digit by digit."""
    epsilon, delta = accountant.epsilon_bracket(1e-6), accountant.delta_bracket(1.0)
    return (*epsilon[:3], *delta[:3], accountant.log_delta(2.0), accountant.rdp(3.5))


@pytest.mark.share(6, by_day=3)
@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_every_order_has_the_same_digits(adjacency, seed):
    """Ten orders of a mixed ledger, steps told apart or together, saved and loaded, have one answer; what users see keeps its order."""
    generator = random.Random(seed)
    everything = REPLACED if adjacency == "replace" else MIXED
    steps = [(mechanism, generator.randint(1, 30)) for mechanism in generator.sample(everything, 4)]
    expected = asked(composed(*steps, adjacency=adjacency))
    for _ in range(10):
        generator.shuffle(steps)
        halves = [(mechanism, count - count // 2) for mechanism, count in steps]
        halves += [(mechanism, count // 2) for mechanism, count in steps[::-1] if count > 1]
        accountant = composed(*halves, adjacency=adjacency)
        assert asked(accountant) == expected
        assert list(accountant.ledger) == [mechanism for mechanism, _ in steps]
    assert asked(hs.Accountant.from_state_dict(accountant.state_dict())) == expected


def test_both_directions():
    """A pair whose reverse leaks more: the larger direction counts, and explain names it."""
    p, q = [0.9, 0.1, 0.0], [0.5, 0.5 - 1e-3, 1e-3]
    eps = 1.0
    reverse = max(0, 0.1 * 0) + max(0.499 - math.e * 0.1, 0) + 1e-3
    accountant = composed((hs.Discrete(p, q), 1))
    assert accountant.delta(eps) == pytest.approx(reverse, rel=1e-11)
    explanation = accountant.explain(epsilon=eps)
    assert explanation.direction == "add"
    assert explanation.directions["remove"].upper == pytest.approx(0.0, abs=1e-15)
    assert explanation.bracket == accountant.delta_bracket(eps)
    assert composed((hs.Discrete(p, q), 1), adjacency="replace").explain(epsilon=eps).direction == "reverse"
    assert composed((hs.Gaussian(1.0), 1)).explain(delta=1e-3).direction == "both"


def test_explanation_names_assumptions():
    """The text names method, direction, errors, and each assumption once."""
    explanation = composed((SAMPLED, 3), (hs.PoissonSampled(hs.Gaussian(2.0), 0.5), 1)).explain(delta=1e-3)
    text = str(explanation)
    assert text.count("Poisson sampling") == 1
    assert "one record, added or removed" in text
    assert "fixed in advance" in text
    assert "direction: remove" in text
    fixed = hs.FixedSizeSampled(hs.Gaussian(2.0), 100, 5, replacement=False)
    assert "without replacement" in str(composed((fixed, 1), adjacency="replace").explain(epsilon=0.1))


def test_queries_are_pure():
    """No query changes the answer of another, or the state."""
    accountant = composed((SAMPLED, 5), (hs.Gaussian(2.0), 1))
    state = accountant.state_dict()
    before = accountant.epsilon(1e-5)
    accountant.delta([0.0, 1.0])
    accountant.would_exceed(hs.Gaussian(1.0), 3, epsilon=1.0, delta=1e-5)
    accountant.remaining(hs.Gaussian(1.0), epsilon=2.0, delta=1e-5)
    accountant.epsilon_curve(1e-5)
    assert accountant.state_dict() == state
    assert accountant.epsilon(1e-5) == before
    with pytest.raises(TypeError):
        accountant.ledger[hs.Gaussian(1.0)] = 3


def test_broadcasting():
    """Arrays are answered number by number, with their shape."""
    accountant = composed((hs.Gaussian(2.0), 3))
    eps = np.array([[0.0, 0.5], [1.0, math.inf]])
    assert accountant.delta(eps).shape == (2, 2)
    assert accountant.delta(eps)[1, 0] == accountant.delta(1.0)
    assert isinstance(accountant.delta(1.0), float)
    assert accountant.epsilon([]).shape == (0,)


def test_log_delta_goes_on_below_the_doubles():
    """At eps = 100 delta is some 1e-400: log delta lies under Chernoff's bound at any tilt, and on the line from eps = 90 down."""
    accountant = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 1000)
    values = [accountant.log_delta(eps) for eps in (80.0, 90.0, 100.0)]
    assert values[2] < -800
    assert values[0] > values[1] > values[2]
    # log delta is concave here: a Gaussian's tail far out
    assert values[1] - values[2] >= (values[0] - values[1]) * (1 - 1e-9)
