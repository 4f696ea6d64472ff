"""What the numbers of correlated noise rest on: brackets hold the exact divergence, and statements say what it is about."""

import itertools
import json
import math
from functools import partial

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import correlated_noise as cn
from participation import NOTHING, as_arrays, batch_law, mixture_deltas, toeplitz

EPSILONS = (0.0, 0.4)
RULE = 5e-3  # relative error of the trapezoidal rule, whose integrand has a kink


def coins(steps, rate, length=3):
    """Yield the patterns of a record that throws a coin in each of some steps, with their probabilities."""
    for heads in itertools.product((0, 1), repeat=len(steps)):
        pattern = [0] * length
        for step, head in zip(steps, heads, strict=True):
            pattern[step] = head
        yield pattern, math.prod(rate if head else 1 - rate for head in heads)


STRATEGIES = [toeplitz([1.0, 0.5], 3), toeplitz([1.0, 0.6, 0.3], 3), toeplitz([1.0, -0.4], 3)]


def ways(strategy, noise):
    """Yield each way to make batches: the accountant or result, and all laws of patterns that a record may have."""
    bands = max(int(np.abs(np.subtract(*np.nonzero(strategy))).max()) + 1, 1)
    for scheme in ({"participation": "single"}, {"participation": "min_separation", "separation": 2}):
        found = cn.matrix_sensitivity(strategy, **scheme).mechanism(noise)
        patterns = [[1, 0, 0], [0, 1, 0], [0, 0, 1], *([[1, 0, 1]] if len(scheme) > 1 else [])]
        yield hs.Accountant().compose(found), [[(pattern, 1.0)] for pattern in patterns]
    cyclic = cn.cyclic_poisson(strategy, steps=3, separation=bands, sampling_rate=0.3, noise_multiplier=noise)
    yield hs.Accountant().compose(*cyclic), [list(coins(range(part, 3, bands), 0.3)) for part in range(bands)]
    every = cn.conditional_composition(strategy, sampling_rate=0.3, noise_multiplier=noise, failure=1e-4)
    yield every, [list(coins(range(3), 0.3))]
    for bins in (2, 3):
        found = cn.balls_in_bins(strategy, bins=bins, noise_multiplier=noise)
        law = [([float(step % bins == k) for step in range(3)], 1 / bins) for k in range(bins)]
        for ledger in found.bounds:
            yield ledger, [law]


@pytest.mark.share(3)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=["two bands", "three bands", "a negative entry"])
@pytest.mark.parametrize("noise", [0.8, 3.0])
def test_brackets_hold_what_is_exact(strategy, noise):
    """Equal updates leak at least every lower end in one of the patterns, and at most every upper end in all."""
    for ledger, laws in ways(strategy, noise):
        arrays = [[np.array(part) for part in zip(*law, strict=True)] for law in laws]
        leaked = [mixture_deltas(patterns @ strategy.T / noise, weights, EPSILONS, 49) for patterns, weights in arrays]
        for eps, most in zip(EPSILONS, np.max(leaked, axis=0), strict=True):
            bracket = ledger.delta_bracket(eps)
            assert bracket.lower <= most * (1 + RULE)
            assert most <= bracket.upper * (1 + RULE)


@pytest.mark.share(2)
@pytest.mark.parametrize("strategy", [toeplitz([1.0, 0.6], 3), np.eye(3)], ids=["two bands", "DP-SGD"])
@pytest.mark.parametrize("noise", [0.7, 2.0])
@pytest.mark.parametrize("in_bins", [True, False])
def test_replaced_records_and_batches_that_are_cut(strategy, noise, in_bins):
    """Opposite updates of two records; and nine others that fill every batch, of whom one is displaced with probability .9."""
    law = {(0, 2): 0.5, (1,): 0.5} if in_bins else batch_law(3, 2, 0.3)
    apart = {"steps": 3, "separation": 2, "sampling_rate": 0.3}
    bound = partial(cn.balls_in_bins, bins=2) if in_bins else partial(cn.min_separated_poisson, **apart)
    cut = {}
    for taken, chance in law.items():
        for kept in itertools.chain.from_iterable(itertools.combinations(taken, k) for k in range(len(taken) + 1)):
            cut[kept] = cut.get(kept, 0.0) + chance * 0.9 ** len(kept) * 0.1 ** (len(taken) - len(kept))
    replaced = bound(strategy, noise_multiplier=noise, adjacency="replace")
    displacing = bound(strategy, noise_multiplier=noise, truncated=True)
    for update in ([1, 1, 1], [1, -1, 1], [-1, 0.5, 1]):
        columns = (strategy * update / noise).T
        (means, chances), (twice, often) = as_arrays(law, 3), as_arrays(cut, 3)
        means, twice = means @ columns, 2 * twice @ columns
        for found, *pair in ((replaced, means, chances, (-means, chances)), (displacing, twice, often, NOTHING)):
            for eps, truth in zip(EPSILONS, mixture_deltas(*pair[:2], EPSILONS, 49, pair[2]), strict=True):
                assert truth <= found.delta(eps) * (1 + RULE)


def test_lower_ends_of_the_shortest_column():
    """Nine steps in eight parts: a record is in two, whose columns have the lengths |c| and 1. One bin of DP-SGD stands alone: lower ends."""
    c = cn.square_root_coefficients(8)
    step, count = cn.cyclic_poisson(c, steps=9, separation=8, sampling_rate=0.5, noise_multiplier=1.0)
    columns = hs.Accountant()
    for length in (math.sqrt(float(c @ c)), 1.0):
        columns.compose(hs.PoissonSampled(hs.Gaussian(1.0 / length), 0.5))
    found, expected = (ledger.epsilon_bracket(1e-5) for ledger in (hs.Accountant().compose(step, count), columns))
    assert found.lower <= expected.upper
    assert found.upper == pytest.approx(expected.upper, rel=1e-9)
    assert found.upper < 6.10142
    for ledger in cn.balls_in_bins(c, steps=200, bins=20, noise_multiplier=6.0).bounds:
        assert ledger.epsilon_bracket(1e-6).lower == 0.0


def results():
    """Yield every result of the room that promises something, with words that its statement must hold."""
    c = cn.square_root_coefficients(4)
    fixed = cn.matrix_sensitivity(c, steps=40, participation="min_separation", separation=10, max_participations=3)
    yield hs.Accountant().compose(fixed.mechanism(6.0)), ("zero-out", "at least 10 apart, 3 of them at most")
    tree = cn.tree_sensitivity(30, participation="cyclic", separation=10)
    yield hs.Accountant("replace").compose(tree.mechanism(9.0)), ("zero-out", "equal modulo 10")
    cyclic = {"steps": 41, "separation": 4, "sampling_rate": 0.1, "noise_multiplier": 2.0}
    yield hs.Accountant().compose(*cn.cyclic_poisson(c, **cyclic)), ("one of 4 in turn", "probability 0.1")
    bounded = cn.cyclic_truncated_poisson(c, **cyclic, part_size=50, max_batch_size=9, zeroed_out=True)
    yield hs.Accountant().compose(*bounded), ("zero-out", "uniform subset")
    steps = {"steps": 40, "noise_multiplier": 6.0}
    yield (
        cn.conditional_composition(c, **steps, sampling_rate=0.02, failure=1e-7),
        ("at most 1e-07", "every δ includes"),
    )
    yield cn.balls_in_bins(c, **steps, bins=20), ("bin, one of 20", "in secret")
    apart = {"separation": 8, "sampling_rate": 0.02}
    yield (
        cn.min_separated_poisson(c, **steps, **apart, warm_start=True),
        ("not in the 7 steps", "random step of its own"),
    )


@pytest.mark.share(3)
@pytest.mark.parametrize(("result", "words"), list(results()))
def test_statements(result, words):
    """A statement's epsilon is `epsilon()`, rounded up; it names adjacency, participation, release order and failure."""
    delta = 1e-6
    text = " ".join(result.statement(delta).split())
    epsilon = float(result.epsilon(delta))
    assert f"ε = {hs.format_upper(epsilon, '.4g')} " in text
    assert json.loads(result.statement(delta, format="json"))["dp_flavor"]["epsilon"] == epsilon
    for word in (
        *words,
        "the strategy matrix does not depend on the data",
        "is not released before",
        "each record takes part in",
    ):
        assert word in text


def test_failure_is_in_every_answer():
    """Delta at any epsilon is at least the failure; epsilon, trade-off and explanation have it too."""
    found = cn.conditional_composition([1.0, 0.5], steps=20, sampling_rate=0.05, noise_multiplier=5.0, failure=1e-3)
    (step,) = found.ledger
    alone = hs.Accountant().compose(step.mechanism)
    assert found.epsilon(2e-3) == pytest.approx(alone.epsilon(1e-3), rel=1e-9)
    for ledger in (found, hs.Accountant().compose(step).compose(hs.Gaussian(50.0))):
        assert ledger.delta(math.inf) >= 1e-3
        assert ledger.trade_off(0.0) <= 1 - 1e-3
        assert ledger.premises.failure == 1e-3
        assert any("0.001" in text for text in ledger.explain(delta=1e-2).assumptions)
    assert found.epsilon(2e-3) > alone.epsilon(2e-3)
    assert found.delta(0.3) >= alone.delta(0.3) + 1e-3


def test_failure_adds():
    """Where outputs of probability .1 tell all, and .1 of the others do, delta is .2: failures are no independent coins."""
    p, q, eps = np.array([0.1, 0.1, 0.8]), np.array([0.0, 0.0, 1.0]), 1.0
    truth = float(np.maximum(p - math.exp(eps) * q, 0.0).sum())
    step = hs.Dominating(hs.ApproximateDP(0.0, 0.1), failure=0.1)
    assert truth <= hs.Accountant().compose(step).delta(eps) <= truth * (1 + 1e-9)
    many = hs.Accountant().compose(hs.Dominating(hs.Gaussian(50.0), failure=1e-3), 30).compose(hs.Gaussian(20.0))
    assert many.delta(math.inf) == pytest.approx(0.03, rel=1e-9)
    assert math.isinf(many.epsilon(0.02))
    assert many.premises.failure == pytest.approx(0.03)
    plain = hs.Accountant().compose(hs.Gaussian(50.0), 30).compose(hs.Gaussian(20.0))
    assert many.epsilon(0.05) == pytest.approx(plain.epsilon(0.02), rel=1e-9)
    assert math.isinf(many.rdp(2.0))


@pytest.mark.parametrize("door", ["composed", "sampled", "allocated", "losses", "filter", "zcdp"])
def test_failure_is_lost_at_no_door(door):
    """What cannot count a failure refuses it."""
    step = hs.Dominating(hs.Gaussian(2.0), failure=0.01)
    doors = {
        "composed": lambda: hs.Accountant().compose(hs.Composed([(step, 100)])),
        "sampled": lambda: hs.Accountant().compose(hs.PoissonSampled(step, 0.5)),
        "allocated": lambda: hs.Accountant().compose(hs.RandomAllocation(step, 10)),
        "losses": lambda: hs.PrivacyLossDistribution(step).epsilon_bracket(1e-3),
        "filter": lambda: hs.GaussianFilter(mu=10.0).spend(step),
        "zcdp": lambda: hs.zcdp_rho(hs.Accountant().compose(step)),
    }
    with pytest.raises((ValueError, TypeError)):
        doors[door]()


def test_an_adjacency_is_lost_at_no_door():
    """A step that is known under one adjacency is refused under the other, also inside others; a simulated ledger is too."""
    inner = hs.Dominating(hs.Gaussian(2.0), adjacency="replace")
    for step in (inner, hs.Dominating(inner), hs.Composed([(inner, 2)]), hs.PoissonSampled(hs.Dominating(inner), 0.5)):
        with pytest.raises(ValueError, match="known under 'replace' alone"):
            hs.Accountant("add_or_remove").compose(step)
