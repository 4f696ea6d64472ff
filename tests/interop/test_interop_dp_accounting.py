"""dp_accounting: its own conformance tests, its accountant's tests with ours in its place, events, and distributions to and fro."""

import copy
import math
from collections import Counter

import attr
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.interop import events

dp = pytest.importorskip("dp_accounting")
pytest.importorskip("dp_accounting.pld.pld_privacy_accountant_test")

from dp_accounting import privacy_accountant_test
from dp_accounting.pld import privacy_loss_distribution as plds
from dp_accounting.pld.pld_pmf import SparsePLDPmf

import dp_accounting_suites
from hockeystick.interop import dp_accounting as adapter

RELATIONS = list(dp.NeighboringRelation)
ADD, REPLACE, SPECIAL = RELATIONS
GAUSSIAN, LAPLACE = dp.GaussianDpEvent(1.5), dp.LaplaceDpEvent(2.0)


class TestConformance(privacy_accountant_test.PrivacyAccountantTest):
    """The tests that dp_accounting has for every accountant."""

    def _make_test_accountants(self):
        return [adapter.HockeyStickAccountant(relation) for relation in RELATIONS]


SUITES = {
    "privacy_accountant_test": 13,
    "pld_privacy_accountant_test": 13,
    "rdp_privacy_accountant_test": 140,
    "privacy_loss_distribution_test": 140,  # each distribution comes through `from_pld`
}


@pytest.mark.parametrize(
    ("name", "least"), [pytest.param(*suite, marks=[pytest.mark.slow] * (suite[1] > 13)) for suite in SUITES.items()]
)
def test_upstream_suite(name, least):
    """Of dp_accounting's own tests, with ours in the place of theirs, those and only those fail that are listed with a proof."""
    outcome = dp_accounting_suites.SUITES[name]()
    assert len(outcome.ran) >= least
    assert dp_accounting_suites.surprises(outcome) == []


def test_surprises_are_told():
    """A failure that is not listed, and a listed one that passes, are surprises; a listed test that this release lacks is none."""
    suite = "pld_privacy_accountant_test"
    listed = sorted(dp_accounting_suites.known(suite))
    as_listed = dict.fromkeys(listed[1:], "AssertionError")
    outcome = dp_accounting_suites.Outcome(suite, "1.0", frozenset([*listed[1:], "test_new"]), as_listed)
    assert dp_accounting_suites.surprises(outcome) == []
    worse = outcome._replace(failed={**as_listed, "test_new": "ValueError: 1"})
    assert dp_accounting_suites.surprises(worse) == ["fails, and is not listed: test_new: ValueError: 1"]
    better = outcome._replace(failed=dict.fromkeys(listed[2:], "AssertionError"))
    assert dp_accounting_suites.surprises(better) == [f"is listed, and passes: {listed[1]}"]


def test_truncated_samples_leak_no_less_than_a_lone_record():
    """What is not truncated bounds truncated samples from below; a special record is read as a record that is zeroed out."""
    event = dp.TruncatedSubsampledGaussianDpEvent(4, 0.5, 2, 1.0)
    alone = dp.PoissonSampledDpEvent(0.5, dp.GaussianDpEvent(1.0))  # no other record, no truncation
    found = adapter.HockeyStickAccountant(ADD).compose(event).get_epsilon(1e-6)
    assert dp.pld.PLDAccountant(ADD).compose(alone).get_epsilon(1e-6) * 0.999 <= found
    special = adapter.HockeyStickAccountant(SPECIAL).compose(event, 3)
    assert special.accountant.ledger == {hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 4, 0.5, 2, zeroed_out=True): 3}
    nothing = dp.TruncatedSubsampledGaussianDpEvent(4, 0.0, 2, 1.0)
    assert adapter.HockeyStickAccountant(ADD).compose(nothing, 3).get_epsilon(0.0) == 0.0


@pytest.mark.slow
def test_truncated_samples_leak_no_more_than_upstream_says():
    """Our bound of truncated Poisson samples is at most upstream's, and that beside a special record between those of other samples."""
    event = dp.TruncatedSubsampledGaussianDpEvent(4, 0.5, 2, 1.0)
    found = adapter.HockeyStickAccountant(ADD).compose(event, 3).get_epsilon(1e-6)
    assert found <= dp.pld.PLDAccountant(ADD).compose(event, 3).get_epsilon(1e-6)
    special = adapter.HockeyStickAccountant(SPECIAL).compose(event, 3)
    kept = dp.PoissonSampledDpEvent((4 * 0.5 - 4 / 16 - 2 / 16) / 4, dp.GaussianDpEvent(1.0))  # E min(M, 2)/4
    assert dp.pld.PLDAccountant(ADD).compose(kept, 3).get_epsilon(1e-6) * 0.99 <= special.get_epsilon(1e-6)
    replaced = adapter.HockeyStickAccountant(REPLACE).compose(event, 3)
    assert special.get_epsilon(1e-6) <= replaced.get_epsilon(1e-6)


def test_replacement_doubles_the_shift():
    """A Gaussian of noise 1 is theta(eps, 2) under replacement, theta(eps, 1) if the other record is special."""
    for relation, shift in [(ADD, 1.0), (REPLACE, 2.0), (SPECIAL, 1.0)]:
        accountant = adapter.HockeyStickAccountant(relation).compose(dp.GaussianDpEvent(1.0))
        assert accountant.get_delta(1.0) == pytest.approx(float(hs.theta(1.0, shift)), rel=1e-12)


@pytest.mark.parametrize("buckets", [2, 4, 10])
def test_responses_beside_a_special_record(buckets):
    """A uniform answer of k buckets against a response: losses log(k (1-p) + p) and log p are the largest of each direction."""
    p = 0.3
    accountant = adapter.HockeyStickAccountant(SPECIAL).compose(dp.RandomizedResponseDpEvent(p, buckets))
    largest = max(math.log(buckets * (1 - p) + p), -math.log(p))
    assert accountant.get_epsilon(0.0) == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize("step_counts", [1, 7, [3, 8, 2], [1000]])
def test_trees_have_the_divergences_of_upstream(step_counts):
    """A pass of tree aggregation is a Gaussian whose divergences are upstream's; where records move others it is refused."""
    event = dp.SingleEpochTreeAggregationDpEvent(2.0, step_counts)
    theirs = dp.rdp.RdpAccountant([1.5, 4.0, 64.0], SPECIAL).compose(event, 3).rdp
    ours = adapter.HockeyStickAccountant(SPECIAL).compose(event, 3).accountant
    assert ours.rdp([1.5, 4.0, 64.0]) == pytest.approx(theirs, rel=1e-12)
    assert not adapter.HockeyStickAccountant(ADD).supports(event)
    replaced = adapter.HockeyStickAccountant(REPLACE).compose(event, 3).accountant
    assert replaced.rdp(4.0) == pytest.approx(4 * ours.rdp(4.0), rel=1e-12)
    nothing = adapter.HockeyStickAccountant(SPECIAL).compose(dp.SingleEpochTreeAggregationDpEvent(2.0, [0]))
    assert nothing.get_epsilon(0.0) == 0.0
    open_book = adapter.HockeyStickAccountant(SPECIAL).compose(dp.SingleEpochTreeAggregationDpEvent(0.0, [4]))
    assert open_book.get_epsilon(1e-6) == math.inf


def test_releases_of_one_sample_are_one():
    """Four Gaussians on one Poisson sample are one of half the noise, and far from four samples."""
    together = dp.PoissonSampledDpEvent(0.01, dp.SelfComposedDpEvent(dp.GaussianDpEvent(2.0), 4))
    apart = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(2.0)), 4)
    epsilons = [
        adapter.HockeyStickAccountant().compose(event, 100).get_epsilon(1e-6)
        for event in (together, dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0)), apart)
    ]
    assert epsilons[0] == pytest.approx(epsilons[1], rel=1e-9)
    assert epsilons[2] < epsilons[0]
    mixed = dp.PoissonSampledDpEvent(0.01, dp.ComposedDpEvent([GAUSSIAN, LAPLACE]))
    steps = [(hs.Gaussian(GAUSSIAN.noise_multiplier), 1), (hs.Laplace(LAPLACE.noise_multiplier), 1)]
    own = hs.Accountant().compose(hs.PoissonSampled(hs.Composed(steps), 0.01), 100)
    assert adapter.HockeyStickAccountant().compose(mixed, 100).get_epsilon(1e-6) == own.epsilon(1e-6)


@attr.s(frozen=True, auto_attribs=True)
class EpsilonDeltaDpEvent(dp.DpEvent):
    """As in releases that have it."""

    epsilon: float
    delta: float


@attr.s(frozen=True, auto_attribs=True)
class GaussianDpEvent(dp.DpEvent):
    """Of a release to come, in which a field changes what the others mean."""

    noise_multiplier: float
    group_size: int = 1


@attr.s(frozen=True, auto_attribs=True)
class RenamedDpEvent(dp.GaussianDpEvent):
    """A subclass may mean anything."""


def test_events_are_known_by_name_and_fields():
    """An event that this release of dp_accounting lacks is understood; one with a new field or name is not."""
    accountant = adapter.HockeyStickAccountant().compose(EpsilonDeltaDpEvent(0.5, 1e-7), 2)
    assert accountant.get_epsilon(0.0) == math.inf
    assert accountant.get_epsilon(3e-7) <= 1.0 + 1e-12
    for event in (GaussianDpEvent(1.0), RenamedDpEvent(1.0)):
        assert not accountant.supports(event)
    assert adapter.HockeyStickAccountant().compose(EpsilonDeltaDpEvent(0.1, 1.0)).get_epsilon(0.5) == math.inf


@pytest.mark.parametrize(
    ("event", "relation", "reason"),
    [
        (dp.GaussianDpEvent(math.nan), ADD, "noise_multiplier must be positive"),
        (dp.GaussianDpEvent("1"), ADD, "noise_multiplier must be a real number"),
        (dp.PoissonSampledDpEvent(1.5, GAUSSIAN), ADD, r"sampling_rate must lie in \[0, 1\]"),
        (dp.PoissonSampledDpEvent(0.1, EpsilonDeltaDpEvent(0.5, 0.0)), REPLACE, "is not supported under adjacency"),
        (dp.PoissonSampledDpEvent(0.1, dp.RandomizedResponseDpEvent(0.5, 2)), SPECIAL, "only in a sum"),
        (dp.SampledWithoutReplacementDpEvent(10, 10, GAUSSIAN), ADD, "does not exist where one is missing"),
        (dp.SampledWithoutReplacementDpEvent(10, 5, GAUSSIAN), SPECIAL, "takes a place in it"),
        (dp.SampledWithoutReplacementDpEvent(10, 11, GAUSSIAN), REPLACE, "batch_size must be at most num_records"),
        (dp.SampledWithReplacementDpEvent(10, 5, GAUSSIAN), SPECIAL, "takes a place in it"),
        (dp.SingleEpochTreeAggregationDpEvent(2.0, [4]), ADD, "would move the others"),
        (dp.SingleEpochTreeAggregationDpEvent(2.0, [-4]), SPECIAL, "steps must be an integer"),
        (dp.RandomizedResponseDpEvent(0.5, 2), ADD, "replaced, not added or removed"),
        (dp.SelfComposedDpEvent(GAUSSIAN, 1.5), ADD, "count must be an integer"),
    ],
)
def test_refused_events(event, relation, reason):
    """What is refused says why, and leaves the accountant as it was."""
    accountant = adapter.HockeyStickAccountant(relation).compose(GAUSSIAN)
    with pytest.raises(dp.UnsupportedEventError, match=reason):
        accountant.compose(event)
    assert accountant.ledger == GAUSSIAN
    assert len(accountant.accountant) == 1
    with pytest.raises(events.UnsupportedEvent, match=reason):
        events.accountant_of(event, relation=adapter._RELATIONS[relation.name])


MIXTURE = dp.dp_event.MixtureOfGaussiansDpEvent(2.0, [0.0, 1.0, 2.0], [0.5, 0.3, 0.2])
LEAVES = st.sampled_from(
    [
        (dp.NoOpDpEvent(), {}),
        (GAUSSIAN, {hs.Gaussian(1.5): 1}),
        (LAPLACE, {hs.Laplace(2.0): 1}),
        (dp.PoissonSampledDpEvent(0.1, GAUSSIAN), {hs.PoissonSampled(hs.Gaussian(1.5), 0.1): 1}),
        (dp.PoissonSampledDpEvent(0.0, dp.NonPrivateDpEvent()), {}),
        (EpsilonDeltaDpEvent(0.1, 1e-9), {hs.ApproximateDP(0.1, 1e-9): 1}),
        (dp.PoissonSampledDpEvent(0.1, LAPLACE), {hs.PoissonSampled(hs.Laplace(2.0), 0.1): 1}),
        (dp.dp_event.DiscreteLaplaceDpEvent(0.3, 2), {hs.DiscreteLaplace(0.3, 2): 1}),
        (MIXTURE, {hs.MixtureOfGaussians(2.0, [0.0, 1.0, 2.0], [0.5, 0.3, 0.2]): 1}),
        (
            dp.TruncatedSubsampledGaussianDpEvent(100, 0.1, 12, 2.0),
            {hs.TruncatedPoissonSampled(hs.Gaussian(2.0), 100, 0.1, 12): 1},
        ),
    ]
)


def composed(parts):
    """Return the composition of (event, counts of mechanisms), with its counts."""
    return dp.ComposedDpEvent([event for event, _ in parts]), dict(
        sum((Counter(counts) for _, counts in parts), Counter())
    )


def repeated(part, count):
    """Return an event repeated, with its counts."""
    event, counts = part
    return dp.SelfComposedDpEvent(event, count), {mechanism: count * n for mechanism, n in counts.items() if count}


TREES = st.recursive(
    LEAVES,
    lambda trees: st.lists(trees, max_size=3).map(composed) | st.builds(repeated, trees, st.integers(0, 5)),
    max_leaves=12,
)


@given(TREES)
def test_trees_are_their_leaves(tree):
    """However events are nested, each mechanism is composed as often as it stands there."""
    event, counts = tree
    assert dict(events.accountant_of(event).ledger) == counts
    alone = dp.ComposedDpEvent([event])
    five = adapter.HockeyStickAccountant().compose(alone, 3).compose(alone).compose(alone).accountant
    assert dict(five.ledger) == {mechanism: 5 * count for mechanism, count in counts.items()}


def test_events_as_named_tuples():
    """An event that went through to_named_tuple, names in bytes too, is the same event."""
    event = dp.ComposedDpEvent([dp.PoissonSampledDpEvent(0.1, GAUSSIAN), dp.SelfComposedDpEvent(LAPLACE, 3)])
    direct = events.accountant_of(event)
    assert dict(events.accountant_of(event.to_named_tuple()).ledger) == dict(direct.ledger)
    named = GAUSSIAN.to_named_tuple()
    assert events.steps_of(named._replace(class_name=b"GaussianDpEvent"), "replace") == [(hs.Gaussian(1.5), 1)]
    with pytest.raises(events.UnsupportedEvent, match="no mechanism for dict"):
        events.steps_of({"class_name": "GaussianDpEvent", "noise_multiplier": 1.0}, "replace")


def test_calibration():
    """dp_accounting's own calibration finds the noise that ours does, to its tolerance, and stays within the budget."""

    def event(sigma):
        return dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(sigma)), 1000)

    sigma = dp.calibrate_dp_mechanism(adapter.HockeyStickAccountant, event, 2.0, 1e-6)
    assert adapter.HockeyStickAccountant().compose(event(sigma)).get_epsilon(1e-6) <= 2.0
    assert sigma == pytest.approx(float(hs.dpsgd_noise_multiplier(0.01, 1000, 2.0, 1e-6)), rel=1e-4)


def test_constructor():
    """A relation that is none is a TypeError; the class is what dp_accounting says it must be."""
    assert issubclass(adapter.HockeyStickAccountant, dp.PrivacyAccountant)
    with pytest.raises(TypeError, match="neighboring_relation must be a NeighboringRelation, not 'replace'"):
        adapter.HockeyStickAccountant("replace")
    with pytest.raises(TypeError, match="`event` must be `DpEvent`"):
        adapter.HockeyStickAccountant().compose(hs.Gaussian(1.0))


LEDGERS = [
    [(hs.PoissonSampled(hs.Gaussian(1.0), 0.05), 1)],
    [(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 300), (hs.Gaussian(8.0), 3)],
    [(hs.Laplace(3.0), 10)],
    [(hs.PoissonSampled(hs.Laplace(1.0), 0.1), 40), (hs.ApproximateDP(0.3, 1e-7), 1)],
]


@pytest.mark.slow
@pytest.mark.parametrize("ledger", LEDGERS, ids=str)
def test_distributions_go_out_and_come_back(ledger):
    """A distribution made by connecting dots bounds epsilon from above, within its grid step a step; coming back it still does."""
    accountant = hs.Accountant()
    for mechanism, count in ledger:
        accountant.compose(mechanism, count)
    pld = adapter.to_pld(accountant, value_discretization_interval=1e-3)
    back = hs.Accountant().compose(adapter.from_pld(pld))
    for delta in (1e-3, 1e-5):
        bracket = accountant.epsilon_bracket(delta)
        for epsilon in (pld.get_epsilon_for_delta(delta), back.epsilon(delta)):
            assert bracket.lower <= epsilon <= bracket.upper * (1 + 1e-3) + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("add", [False, True])
def test_a_distribution_of_theirs_is_composed(add):
    """Their asymmetric distribution of one step, composed by us, brackets what ours says of the steps, in either direction."""
    theirs = plds.from_gaussian_mechanism(1.0, sampling_prob=0.05, value_discretization_interval=1e-3)
    mechanism = adapter.from_pld(theirs)
    if add:  # the direction that leaks less, alone
        mechanism = hs.DiscretePairs(mechanism.add, mechanism.add)
    composed = hs.Accountant().compose(mechanism, 50)
    answers = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.05), 50).explain(epsilon=1.0).directions
    truth = answers["add" if add else "remove"]
    assert truth.lower <= composed.delta(1.0) <= truth.upper * 1.01


@pytest.mark.parametrize("noise", [0.3, 0.9])
def test_few_atoms_come_back_as_they_are(noise):
    """Randomised response as two atoms on a grid that holds them is randomised response."""
    loss = math.log((2 - noise) / noise)
    theirs = plds.PrivacyLossDistribution(SparsePLDPmf({-1: noise / 2, 1: 1 - noise / 2}, loss, 0.0, True))
    back = hs.Accountant("replace").compose(adapter.from_pld(theirs), 3)
    ours = hs.Accountant("replace").compose(hs.RandomizedResponse(noise, 2), 3)
    for eps in (0.0, 0.5 * loss, 2.5 * loss):
        assert back.delta(eps) == pytest.approx(ours.delta(eps), rel=1e-5)
        assert back.delta_bracket(eps).lower <= ours.delta(eps)


def test_rounding_of_a_distribution_is_raised():
    """Noise far below, where Q would have more than mass 1, lost mass, and an optimistic distribution are dealt with."""
    pmf = plds.from_gaussian_mechanism(1.0, value_discretization_interval=1e-2)._pmf_remove.to_dense_pmf()
    noisy = copy.deepcopy(pmf)
    noisy._lower_loss -= 5000
    noisy._probs = np.concatenate([np.full(5000, 1e-17), 0.999999 * pmf._probs])
    mechanism = adapter.from_pld(plds.PrivacyLossDistribution(noisy))
    assert sum(mechanism.remove.q) == pytest.approx(1.0, abs=1e-12)
    spent = hs.Accountant().compose(mechanism)
    assert spent.delta(math.inf) == pytest.approx(1e-6, rel=1e-3)
    assert spent.delta(1.0) >= noisy.get_delta_for_epsilon(1.0)
    optimistic = plds.from_gaussian_mechanism(1.0, pessimistic_estimate=False, value_discretization_interval=1e-2)
    with pytest.raises(ValueError, match="pld must be pessimistic"):
        adapter.from_pld(optimistic)
    with pytest.raises(TypeError, match="pld must be a PrivacyLossDistribution of dp_accounting, not 1"):
        adapter.from_pld(1)
    with pytest.raises(ValueError, match="needs more than 4000000 points"):
        adapter.to_pld(hs.Accountant().compose(hs.Gaussian(0.01)), value_discretization_interval=1e-4)
