"""The accountant: closed forms, both directions, bookkeeping, and what queries say about each other."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
import time

import mpmath as mp
import numpy as np
import pytest

import high_precision as exact
import hockeystick as hs
from hockeystick.accounting import engines
from slow_values import committed

inf = math.inf

SAMPLED = hs.PoissonSampled(hs.Gaussian(1.0), 0.1)
MIXED = [
    hs.Gaussian(3.0),
    hs.Laplace(5.0),
    SAMPLED,
    hs.PoissonSampled(hs.Laplace(2.0), 0.2),
    hs.ApproximateDP(0.1, 1e-9),
    hs.DiscreteGaussian(4.0),
    hs.DiscreteLaplace(0.3),
    hs.PoissonSampled(hs.DiscreteLaplace(0.5), 0.2),
    hs.MixtureOfGaussians(4.0, [0.0, 1.0, 2.0], [0.5, 0.25, 0.25]),
    hs.TruncatedPoissonSampled(hs.Gaussian(2.0), 200, 0.05, 20),
    hs.RandomAllocation(hs.Gaussian(2.0), 10),
]
REPLACED = [
    hs.Gaussian(4.0),
    hs.Laplace(6.0),
    hs.RandomizedResponse(0.8, 3),
    hs.FixedSizeSampled(hs.Gaussian(2.0), 100, 5, replacement=False),
    hs.PoissonSampled(hs.Gaussian(2.0), 0.05),
    hs.DiscreteGaussian(8.0),
    hs.DiscreteLaplace(0.1),
    hs.TruncatedPoissonSampled(hs.Gaussian(2.0), 200, 0.05, 20),
]


def composed(*steps, **options):
    """Return the accountant of (mechanism, count) pairs."""
    accountant = hs.Accountant(**options)
    for mechanism, count in steps:
        accountant.compose(mechanism, count)
    return accountant


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
    assert accountant.log_delta(inf) == -inf
    assert composed((hs.Laplace(1.0), 2)).log_delta(2.1) == -inf


def test_nothing_composed():
    """Nothing leaks nothing, and neither does a mechanism without samples or without weight."""
    for accountant in (hs.Accountant(), composed((hs.PoissonSampled(hs.Gaussian(1.0), 0.0), 10**6))):
        assert accountant.epsilon(0.0) == accountant.delta(0.0) == accountant.advantage() == 0
        assert accountant.log_delta(1.0) == -inf
        assert accountant.trade_off([0.0, 0.3, 1.0]).tolist() == pytest.approx([1.0, 0.7, 0.0], rel=1e-15)
        assert accountant.rdp(2.0) == 0


def test_single_steps():
    """One step is answered by its exact formula: Laplace 1 - e^{(eps - r)/2}, (epsilon, delta)-DP at its own epsilon."""
    laplace = composed((hs.Laplace(0.5), 1))
    for eps in [0.0, 1.0, 1.9]:
        bracket = laplace.delta_bracket(eps)
        assert bracket.lower <= -math.expm1((eps - 2.0) / 2) <= bracket.upper <= bracket.lower * (1 + 1e-11)
    assert laplace.delta(2.1) == 0
    approximate = composed((hs.ApproximateDP(0.7, 1e-6), 1))
    assert 0.7 <= approximate.epsilon(1e-6) <= 0.7 + 1e-12
    assert approximate.epsilon(0.9e-6) == inf
    assert approximate.delta(5.0) == 1e-6


def test_bounded_losses():
    """Beyond the sum of the largest losses delta is exactly 0, at delta = 0 epsilon is that sum, for each direction."""
    accountant = composed((hs.Laplace(2.0), 10), (hs.Laplace(4.0), 4))
    assert accountant.delta(6.0001) == 0
    assert accountant.delta_bracket(6.0001).method == "beyond the largest loss"
    assert 6.0 <= accountant.epsilon(0.0) <= 6.0 * (1 + 1e-13)
    assert composed((hs.Gaussian(1.0), 2), (hs.Laplace(1.0), 1)).epsilon(0.0) == inf
    assert composed((hs.ApproximateDP(0.1, 1e-6), 3)).epsilon([2.9e-6, 0.0]).tolist() == [inf, inf]
    added = composed((SAMPLED, 3)).explain(eps=0.5).directions["add"]  # a loss of at most -3 log(0.9) = 0.316
    assert added[:3] == (0.0, 0.0, "beyond the largest loss")


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
        directions = both.explain(eps=0.5).directions
        assert directions["add"].upper == both.delta(0.5)
        assert directions["remove"].upper < directions["add"].upper
    assert hs.Accountant.from_state_dict(json.loads(json.dumps(both.state_dict()))).ledger == both.ledger
    for refused in (both, composed((SAMPLED, 1), adjacency="replace")):
        with pytest.raises(ValueError, match="rdp has no bound"):
            refused.rdp(2.0)
    with pytest.raises(TypeError, match="add must be Discrete, not 1"):
        hs.DiscretePairs(weak, 1)


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


@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_order_does_not_matter(adjacency):
    """The same steps in any order and grouping give the same brackets, or brackets of the same number."""
    mechanisms = MIXED if adjacency == "add_or_remove" else REPLACED
    brackets = []
    for order in (mechanisms, mechanisms[::-1]):
        accountant = composed(*((m, 2) for m in order), *((m, 1) for m in order), adjacency=adjacency)
        brackets.append(accountant.epsilon_bracket(1e-6))
    assert brackets[0].lower <= brackets[1].upper
    assert brackets[1].lower <= brackets[0].upper
    assert brackets[0].status == "certified"
    assert brackets[0].upper - brackets[0].lower <= 0.02 * brackets[0].upper


@pytest.mark.parametrize("mechanism", [*MIXED, *REPLACED], ids=repr)
def test_count_is_repetition(mechanism):
    """Composing n times with count 1 is composing once with count n: no mechanism drops its count."""
    adjacency = "replace" if mechanism in REPLACED else "add_or_remove"
    at_once = composed((mechanism, 20), adjacency=adjacency)
    one_by_one = composed(*[(mechanism, 1)] * 20, adjacency=adjacency)
    assert at_once.ledger == one_by_one.ledger
    assert len(at_once) == len(one_by_one) == 20
    bracket = at_once.epsilon_bracket(1e-5)
    assert bracket == one_by_one.epsilon_bracket(1e-5)
    assert bracket.lower > composed((mechanism, 5), adjacency=adjacency).epsilon(1e-5)


def test_engines_agree():
    """Discretised losses enclose what the closed form says, with any part of the composition."""
    for steps in ([(hs.Gaussian(5.0), 10)], [(hs.Laplace(1.0), 1)], [(SAMPLED, 1)]):
        auto, pld = composed(*steps), composed(*steps, engine="pld")
        for eps in (0.1, 0.8):
            one, other = auto.delta_bracket(eps), pld.delta_bracket(eps)
            assert other.lower <= one.upper
            assert one.lower <= other.upper
            assert other.method.startswith("pld")


def test_both_directions():
    """A pair whose reverse leaks more: the larger direction counts, and explain names it."""
    p, q = [0.9, 0.1, 0.0], [0.5, 0.5 - 1e-3, 1e-3]
    eps = 1.0
    reverse = max(0, 0.1 * 0) + max(0.499 - math.e * 0.1, 0) + 1e-3
    accountant = composed((hs.Discrete(p, q), 1))
    assert accountant.delta(eps) == pytest.approx(reverse, rel=1e-11)
    explanation = accountant.explain(eps=eps)
    assert explanation.direction == "add"
    assert explanation.directions["remove"].upper == pytest.approx(0.0, abs=1e-15)
    assert explanation.bracket == accountant.delta_bracket(eps)
    assert composed((hs.Discrete(p, q), 1), adjacency="replace").explain(eps=eps).direction == "reverse"
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
    assert "without replacement" in str(composed((fixed, 1), adjacency="replace").explain(eps=0.1))


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
    eps = np.array([[0.0, 0.5], [1.0, inf]])
    assert accountant.delta(eps).shape == (2, 2)
    assert accountant.delta(eps)[1, 0] == accountant.delta(1.0)
    assert isinstance(accountant.delta(1.0), float)
    assert accountant.epsilon([]).shape == (0,)


def test_a_hundred_thousand_composes():
    """Composing 10^5 equal steps one at a time is cheap, and is one entry of the ledger."""
    accountant = hs.Accountant()
    begin = time.perf_counter()
    for _ in range(10**5):
        accountant.compose(hs.Gaussian(100.0))
    assert time.perf_counter() - begin < 10  # half a second on a quiet machine
    assert dict(accountant.ledger) == {hs.Gaussian(100.0): 10**5}
    assert len(accountant.state_dict()["steps"]) == 1
    assert accountant.epsilon(1e-5) == composed((hs.Gaussian(100.0), 10**5)).epsilon(1e-5)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_trade_off_of_gaussians(mu):
    """The lower bound is below the exact trade-off function, and hardly."""
    fpr = np.array([1e-9, 1e-3, 0.05, 0.3, 0.5, 0.9, 0.999])
    bound = composed((hs.Gaussian(10 / mu), 100)).trade_off(fpr)
    truth = hs.gdp_trade_off(mu, fpr)
    assert np.all(bound <= truth * (1 + 1e-12))
    np.testing.assert_allclose(bound, truth, rtol=2e-3)


def test_trade_off_of_approximate_dp():
    """The trade-off function of (epsilon, delta)-DP is its two lines, and never above."""
    epsilon, delta = 0.8, 1e-3
    fpr = np.array([0.0, 1e-6, 0.1, 0.31, 0.5, 0.99, 1.0])
    truth = np.maximum(0, np.maximum(1 - delta - np.exp(epsilon) * fpr, np.exp(-epsilon) * (1 - delta - fpr)))
    bound = composed((hs.ApproximateDP(epsilon, delta), 1)).trade_off(fpr)
    assert np.all(bound <= truth * (1 + 1e-12) + 1e-16)
    np.testing.assert_allclose(bound, truth, rtol=1e-3, atol=1e-9)


def test_advantage():
    """The advantage is delta(0): the total variation distance."""
    assert composed((hs.Gaussian(2.0), 4)).advantage() == pytest.approx(float(hs.gdp_advantage(1.0)), rel=1e-11)


def test_curve():
    """The curve has epsilon after every step in the order of composition, and never falls."""
    steps = [(hs.Gaussian(5.0), 2), (hs.Laplace(8.0), 1), (hs.Gaussian(5.0), 1)]
    curve = composed(*steps).epsilon_curve(1e-5)
    flat = [mechanism for mechanism, count in steps for _ in range(count)]
    alone = [composed(*((m, 1) for m in flat[: n + 1])).epsilon(1e-5) for n in range(len(flat))]
    np.testing.assert_allclose(curve, alone, rtol=1e-3)
    assert np.all(np.diff(curve) >= 0)
    assert hs.Accountant().epsilon_curve(1e-5).shape == (0,)


@pytest.mark.parametrize("mechanism", MIXED, ids=repr)
def test_curve_of_any_mechanism(mechanism):
    """Equal steps of any mechanism have a curve, which ends at their epsilon."""
    accountant = composed((mechanism, 2))
    assert accountant.epsilon_curve(1e-5)[-1] == pytest.approx(accountant.epsilon(1e-5), rel=1e-3)


def test_curve_of_equal_steps():
    """Equal steps of DP-SGD, sampled or not, take one call of the grid."""
    np.testing.assert_allclose(
        composed((hs.Gaussian(50.0), 500)).epsilon_curve(1e-5),
        hs.gdp_epsilon(np.sqrt(np.arange(1, 501)) / 50, 1e-5),
        rtol=1e-10,
    )
    curve = composed((SAMPLED, 12)).epsilon_curve(1e-5)
    assert curve[-1] == pytest.approx(composed((SAMPLED, 12)).epsilon(1e-5), rel=1e-9)
    with pytest.raises(ValueError, match="at most 1000000"):
        composed((hs.Gaussian(1.0), 10**7)).epsilon_curve(1e-5)


def test_remaining_and_would_exceed():
    """What remains can be composed within the budget, and one step more cannot."""
    accountant = composed((hs.Gaussian(10.0), 10))
    step = hs.Gaussian(20.0)
    count = accountant.remaining(step, epsilon=2.0, delta=1e-6)
    with mp.workdps(30):
        mu = mp.mpf(float(hs.theta_inverse(2.0, 1e-6)))
        assert count == int((mu**2 - mp.mpf(10) / 100) * 400)
    assert not accountant.would_exceed(step, count, epsilon=2.0, delta=1e-6)
    assert accountant.would_exceed(step, count + 1, epsilon=2.0, delta=1e-6)
    assert accountant.remaining(step, epsilon=0.1, delta=1e-6) == 0  # spent already
    assert composed((SAMPLED, 3)).remaining(SAMPLED, epsilon=4.0, delta=1e-5) > 0


def test_remaining_without_limit():
    """A step that leaks nothing, or a budget without end, has the largest count there is, which compose takes."""
    idle = hs.PoissonSampled(hs.Gaussian(1.0), 0.0)
    accountant = composed((idle, 5))
    count = accountant.remaining(idle, epsilon=1.0, delta=0.0)
    assert count == 2**53 - 5
    accountant.compose(idle, count)
    assert accountant.remaining(idle, epsilon=1.0, delta=0.0) == 0
    assert hs.Accountant().remaining(hs.Gaussian(1.0), epsilon=inf, delta=0.0) == 2**53
    assert composed((hs.Gaussian(0.1), 1)).remaining(idle, epsilon=1.0, delta=1e-5) == 0


def test_state_goes_through_json():
    """An accountant saved as JSON, pickled or copied answers and counts as before, in order."""
    accountant = composed(*((m, 3) for m in MIXED), (hs.Gaussian(3.0), 1), (hs.Discrete([0.3, 0.7], [0.6, 0.4]), 2))
    replaced = composed(*((m, 3) for m in REPLACED), adjacency="replace", engine="pld")
    for one in (accountant, replaced):
        text = json.dumps(one.state_dict(), allow_nan=False)
        for other in (
            hs.Accountant.from_state_dict(json.loads(text)),
            pickle.loads(pickle.dumps(one)),
            copy.deepcopy(one),
        ):
            assert other.state_dict() == one.state_dict()
            assert dict(other.ledger) == dict(one.ledger)
            assert repr(other) == repr(one)
    twin = copy.deepcopy(accountant)
    twin.compose(hs.Gaussian(1.0))
    assert len(twin) == len(accountant) + 1


STATE = composed((hs.Gaussian(1.0), 2)).state_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "must have format 'hockeystick.Accountant' and version 1, not .* version 2"),
        ({"format": "opacus"}, "must have format"),
        ({"adjacency": "both"}, "adjacency must be one of"),
        ({"engine": None}, "engine must be a string"),
        ({"steps": [{"count": 1}]}, "must have mechanism"),
        (
            {"steps": [{"mechanism": {"name": "os.system"}, "count": 1}]},
            "must be one of ApproximateDP, .*not 'os.system'",
        ),
        ({"steps": [{"mechanism": {"name": "Gaussian"}, "count": 1}]}, "must have noise_multiplier"),
        ({"steps": [{"mechanism": {"name": "Gaussian", "noise_multiplier": -1.0}, "count": 1}]}, "must be positive"),
        ({"steps": [{"mechanism": {"name": "Gaussian", "noise_multiplier": 1.0}, "count": 0}]}, "count must be"),
    ],
)
def test_bad_states(change, message):
    """A state that is not one of ours is refused, with what is wrong."""
    with pytest.raises((ValueError, TypeError), match=message):
        hs.Accountant.from_state_dict({**STATE, **change})


GAUSSIAN = hs.Gaussian(1.0)
BAD = [
    (ValueError, "adjacency must be one of", lambda a: hs.Accountant("remove")),  # noqa: ARG005
    (ValueError, "engine must be one of", lambda a: hs.Accountant(engine="fast")),  # noqa: ARG005
    (TypeError, "mechanism must be one of", lambda a: a.compose(1.0)),
    (TypeError, "mechanism must be one of", lambda a: a.compose(a)),
    (ValueError, "count must be an integer in", lambda a: a.compose(GAUSSIAN, 0)),
    (ValueError, "count must be an integer in", lambda a: a.compose(GAUSSIAN, -3)),
    (TypeError, "count must be an integer", lambda a: a.compose(GAUSSIAN, 10.5)),
    (TypeError, "count must be an integer", lambda a: a.compose(GAUSSIAN, True)),
    (ValueError, "count must be an integer in", lambda a: a.compose(GAUSSIAN, 2**53)),
    (ValueError, "not supported under adjacency", lambda a: a.compose(hs.RandomizedResponse(0.5, 2))),
    (
        ValueError,
        "not supported under adjacency",
        lambda a: a.would_exceed(hs.PoissonSampled(hs.RandomizedResponse(0.5, 2), 0.1), epsilon=1.0, delta=0.1),
    ),
    (ValueError, r"delta must lie in \[0, 1\), not 1.0", lambda a: a.epsilon(1.0)),
    (ValueError, r"delta\[1\] must lie in \[0, 1\), not -1e-05", lambda a: a.epsilon([0.1, -1e-5])),
    (ValueError, "delta must lie in", lambda a: a.epsilon(math.nan)),
    (TypeError, "delta must be a real number", lambda a: a.epsilon("1e-5")),
    (ValueError, "eps must be non-negative, not -1.0", lambda a: a.delta(-1.0)),
    (ValueError, "eps must be non-negative, not nan", lambda a: a.delta_bracket(math.nan)),
    (ValueError, "delta must lie in", lambda a: a.epsilon_bracket(1.0)),
    (ValueError, "exactly one of eps and delta", lambda a: a.explain()),
    (ValueError, "exactly one of eps and delta", lambda a: a.explain(eps=1.0, delta=0.1)),
    (ValueError, "fpr must lie in", lambda a: a.trade_off(1.5)),
    (ValueError, "order must lie in", lambda a: a.rdp(0.5)),
    (ValueError, "epsilon must be non-negative", lambda a: a.remaining(GAUSSIAN, epsilon=-1.0, delta=0.1)),
    (ValueError, "delta must lie in", lambda a: a.would_exceed(GAUSSIAN, epsilon=1.0, delta=1.0)),
    (TypeError, "count must be an integer", lambda a: a.would_exceed(GAUSSIAN, 1.5, epsilon=1.0, delta=0.1)),
]


@pytest.mark.parametrize(("error", "message", "call"), BAD)
def test_bad_input(error, message, call):
    """A wrong argument raises, names itself, and leaves the ledger as it was."""
    accountant = composed((GAUSSIAN, 1))
    with pytest.raises(error, match=message):
        call(accountant)
    assert len(accountant) == 1


def test_forced_contour_without_answer(monkeypatch):
    """An engine that has no answer raises at the query; left to choose, another one answers."""
    monkeypatch.setattr(engines, "_contour", lambda *_: None)
    forced = composed((SAMPLED, 2), engine="contour")
    with pytest.raises(ValueError, match="engine='contour' has no answer"):
        forced.epsilon(1e-5)
    assert composed((SAMPLED, 2)).epsilon_bracket(1e-5).method.startswith("pld")


def test_contour_is_asked_first(monkeypatch):
    """A narrow contour bracket is the answer; a wide one is intersected with that of discretised losses."""
    pld = composed((SAMPLED, 2), engine="pld").delta_bracket(0.5)
    narrow = engines.Answer(pld.lower, pld.lower * 1.0001, "contour", {"alias": 1e-5})
    monkeypatch.setattr(engines, "_contour", lambda *_: narrow)
    accountant = composed((SAMPLED, 2))
    assert accountant.delta_bracket(0.5) == (*narrow[:2], "contour", "certified")
    assert accountant.explain(eps=0.5).shares == {"alias": 1e-5}
    with monkeypatch.context() as without:  # a narrow answer is not asked for again
        without.setattr(engines, "_pld", None)
        without.setattr(engines, "_rough_pld", None)
        assert accountant.delta(0.5) == narrow.upper
    monkeypatch.setattr(engines, "_contour", lambda *_: narrow._replace(upper=0.5))
    assert accountant.delta_bracket(0.5).upper == pld.upper


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.01), (0.8, 0.3), (3.0, 1e-4)])
@pytest.mark.parametrize("order", [2.0, 3.0, 7.0, 1.5, 4.4])
def test_rdp_of_sampled_gaussian(noise, rate, order):
    """At integer orders exact in the larger direction, between them above and by a chord."""
    step = hs.PoissonSampled(hs.Gaussian(noise), rate)
    truth = max(committed("renyi_of_sampled_gaussian", 1 / noise, rate, order, forward) for forward in (True, False))
    found = composed((step, 10)).rdp(order)
    assert 10 * truth * (1 - 1e-14) <= found
    if order == int(order):
        assert found <= 10 * truth * (1 + 1e-10)


def test_rdp_closed_forms():
    """Gaussian a/(2 s^2), Laplace by its integral, (epsilon, 0)-DP by two terms, and sums over the ledger."""
    assert composed((hs.Gaussian(2.0), 8)).rdp([1.0, 2.0, 17.5]).tolist() == pytest.approx([1.0, 2.0, 17.5], rel=1e-13)
    for scale, order in itertools.product([0.2, 1.0, 1e3], [1.0, 1.1, 2.0, 30.0]):
        with mp.workdps(40):
            r, a = 1 / mp.mpf(scale), mp.mpf(order)
            # Outside of [0, r] the loss is r or -r; between, 2x - r with density e^{-(r - ...)}/2.
            moment = lambda s, r=r: (
                mp.exp(s * r) / 2
                + mp.exp(-(s + 1) * r) / 2
                + mp.quad(lambda x: mp.exp(s * (2 * x - r) - (r - x)) / 2, [0, r])
            )
            truth = mp.diff(lambda s, f=moment: mp.log(f(s)), 0) if a == 1 else mp.log(moment(a - 1)) / (a - 1)
        found = composed((hs.Laplace(scale), 1)).rdp(order)
        assert truth * (1 - mp.mpf("1e-13")) <= found <= truth * (1 + mp.mpf("1e-9"))
    p = 1 / (1 + math.exp(-0.5))
    truth = math.log(p**3 * (1 - p) ** -2 + (1 - p) ** 3 * p**-2) / 2
    assert composed((hs.ApproximateDP(0.5, 0.0), 1)).rdp(3.0) == pytest.approx(truth, rel=1e-12)
    assert composed((hs.ApproximateDP(0.5, 1e-9), 1)).rdp(3.0) == inf
    both = composed((hs.Gaussian(2.0), 1), (hs.Laplace(3.0), 2))
    parts = composed((hs.Gaussian(2.0), 1)).rdp(4.0) + 2 * composed((hs.Laplace(3.0), 1)).rdp(4.0)
    assert both.rdp(4.0) == pytest.approx(parts, rel=1e-13)


@pytest.mark.parametrize(
    ("mechanism", "adjacency"), [(REPLACED[3], "replace"), (REPLACED[4], "replace"), (MIXED[-2], "add_or_remove")]
)
def test_rdp_refuses(mechanism, adjacency):
    """Where no bound is implemented none is made up."""
    with pytest.raises(ValueError, match="no bound"):
        composed((mechanism, 1), adjacency=adjacency).rdp(2.0)


def test_rdp_bounds_epsilon():
    """Epsilon is never above the conversion of any Renyi order (Mironov 2017)."""
    accountant = composed((SAMPLED, 40), (hs.Gaussian(8.0), 3))
    orders = np.array([1.5, 2.0, 4.0, 8.0, 16.0, 32.0])
    delta = 1e-5
    assert accountant.epsilon_bracket(delta).lower <= np.min(
        accountant.rdp(orders) + math.log(1 / delta) / (orders - 1)
    )


def test_everything_public_is_documented():
    """Every public method says what it returns."""
    for name in dir(hs.Accountant):
        method = getattr(hs.Accountant, name)
        if not name.startswith("_") and callable(method):
            assert "Returns\n" in method.__doc__


def test_log_delta_goes_on_below_the_doubles():
    """At eps = 100 delta is some 1e-400: log delta lies under Chernoff's bound at any tilt, and on the line from eps = 90 down."""
    accountant = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 1000)
    values = [accountant.log_delta(eps) for eps in (80.0, 90.0, 100.0)]
    assert values[2] < -800
    assert values[0] > values[1] > values[2]
    # log delta is concave here: a Gaussian's tail far out
    assert values[1] - values[2] >= (values[0] - values[1]) * (1 - 1e-9)
