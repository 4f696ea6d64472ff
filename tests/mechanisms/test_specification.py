"""For every mechanism: symmetric in the order of steps; monotone; brackets nest; engines agree; values copy and save.

A new mechanism needs a line in EXAMPLES, and a test of its own for its numbers.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import math
import pickle

import pytest

import effort
import hockeystick as hs
from hockeystick import mechanisms, selection
from hockeystick.mechanisms.base import ADJACENCIES
from hockeystick.training.participation import SAMPLERS

GAUSSIAN, PAIR = hs.Gaussian(2.0), hs.Discrete([0.6, 0.3, 0.1], [0.3, 0.6, 0.1])

EXAMPLES = {
    hs.ApproximateDP: [hs.ApproximateDP(0.3, 1e-4)],
    hs.Composed: [hs.Composed([(GAUSSIAN, 1), (hs.Laplace(3.0), 2)])],
    hs.Discrete: [PAIR, hs.Discrete([0.9, 0.1, 0.0], [0.8, 0.1, 0.1])],
    hs.DiscreteGaussian: [hs.DiscreteGaussian(2.5), hs.DiscreteGaussian(4.0, 2)],
    hs.DiscreteGaussianVector: [
        hs.DiscreteGaussianVector(2.0, 2.0),
        hs.DiscreteGaussianVector(20.0, 9.5, 100),
        hs.DiscreteGaussianVector(7.0, 4.5),
    ],
    hs.DiscreteLaplace: [hs.DiscreteLaplace(0.4), hs.DiscreteLaplace(0.2, 3)],
    hs.DiscretePairs: [hs.DiscretePairs(PAIR, hs.Discrete([0.5, 0.5], [0.6, 0.4]))],
    hs.DistributedDiscreteGaussian: [
        hs.DistributedDiscreteGaussian(1.0, 9, 2.0, 1),
        hs.DistributedDiscreteGaussian(3.0, 40, 8.0, 1000),
        hs.DistributedDiscreteGaussian(1.0, 20, 3.0),
    ],
    hs.Dominating: [
        hs.Dominating(GAUSSIAN, hs.Gaussian(2.5), ["updates are clipped"], ["zero-out"], "one client", "sums", 1e-6),
        hs.Dominating(hs.PoissonSampled(hs.Laplace(2.0), 0.1), adjacency="add_or_remove"),
    ],
    hs.ExponentialMechanism: [hs.ExponentialMechanism(0.4)],
    hs.FixedSizeSampled: [hs.FixedSizeSampled(GAUSSIAN, 50, 5, replacement=word) for word in (False, True)],
    hs.Gaussian: [GAUSSIAN],
    hs.Laplace: [hs.Laplace(3.0)],
    hs.MixtureOfGaussians: [hs.MixtureOfGaussians(2.0, [0.0, 1.0, 2.0], [0.7, 0.2, 0.1])],
    hs.PermuteAndFlip: [hs.PermuteAndFlip(0.4)],
    hs.PoissonSampled: [hs.PoissonSampled(base, 0.1) for base in (hs.Gaussian(1.0), hs.Laplace(1.0), PAIR)],
    hs.PrivacyProfile: [hs.PrivacyProfile([0.0, 0.5, 1.0], [0.3, 0.1, 0.01])],
    hs.PrivateSelection: [hs.PrivateSelection(hs.Gaussian(4.0), 1, 10.0)],
    hs.RandomAllocation: [
        hs.RandomAllocation(GAUSSIAN, 20),
        hs.RandomAllocation(GAUSSIAN, 7, 3),
        hs.RandomAllocation(hs.Laplace(3.0), 9),
    ],
    hs.RandomizedResponse: [hs.RandomizedResponse(0.6, 4), hs.RandomizedResponse(0.5, 2)],
    hs.RenyiDP: [hs.RenyiDP([2.0, 8.0], [0.1, 0.5])],
    hs.Shuffled: [hs.Shuffled(1.0, 1000)],
    hs.Skellam: [hs.Skellam(20.0, 3.0, 1), hs.Skellam(50.0, 4.5)],
    hs.Staircase: [hs.Staircase(0.4), hs.Staircase(0.4, 0.7)],
    hs.TradeOff: [
        hs.TradeOff([0.0, 0.3, 1.0], [1.0, 0.4, 0.0]),
        hs.TradeOff([0.0, 0.4, 0.9], [0.95, 0.3, 0.0], symmetric=False),
    ],
    hs.TruncatedLaplace: [hs.TruncatedLaplace(2.0, 20.0)],
    hs.TruncatedPoissonSampled: [hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.05, 9, z) for z in (False, True)],
    hs.ZeroConcentratedDP: [hs.ZeroConcentratedDP(0.05)],
}

EXAMPLES |= {
    selection.AboveThreshold: [selection.AboveThreshold(5.0, 20.0, 2)],
    selection.GaussianAboveThreshold: [selection.GaussianAboveThreshold(5.0, 20.0, 50)],
    selection.GaussianNoisyMaximum: [selection.GaussianNoisyMaximum(9.0, 12)],
    selection.LaplaceNoisyMaximum: [selection.LaplaceNoisyMaximum(9.0)],
    selection.OptimalPartitions: [selection.OptimalPartitions(0.3, 1e-4, 2)],
    selection.ThresholdedPartitions: [selection.ThresholdedPartitions(hs.Laplace(5.0), 40.0)],
}

CLASSES = [getattr(mechanisms, name) for name in mechanisms.__all__ if name != "Mechanism"]
CLASSES += [
    kind for kind in vars(selection).values() if isinstance(kind, type) and issubclass(kind, mechanisms.Mechanism)
]
ALL = [example for examples in EXAMPLES.values() for example in examples]


def supported(mechanism, adjacency):
    """Return whether the mechanism can be composed under this adjacency; if not it must say so."""
    try:
        hs.Accountant(adjacency).compose(mechanism)
    except ValueError as error:
        assert f"adjacency={adjacency!r}" in str(error)  # noqa: PT017, only if it raises
        return False
    return True


CASES = [
    pytest.param(mechanism, adjacency, id=f"{mechanism!r}-{adjacency}")
    for mechanism in ALL
    for adjacency in ADJACENCIES
    if supported(mechanism, adjacency)
]
EPS = (0.0, 0.2, 1.0, 3.0)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_class_has_an_example(kind):
    """There is an example of every class that is exported, and it is supported under some adjacency."""
    assert kind in EXAMPLES, f"add a line for {kind.__name__} to EXAMPLES"
    for example in EXAMPLES[kind]:
        assert type(example) is kind
        assert any(supported(example, adjacency) for adjacency in ADJACENCIES)


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_value(mechanism):
    """A mechanism is a value: equal after any copy, hashable, immutable, rebuilt by its repr."""
    for again in (
        pickle.loads(pickle.dumps(mechanism)),
        copy.deepcopy(mechanism),
        eval(repr(mechanism), vars(hs.mechanisms) | vars(selection)),
    ):
        assert again == mechanism
        assert hash(again) == hash(mechanism)
    field = dataclasses.fields(mechanism)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mechanism, field, getattr(mechanism, field))


@pytest.mark.share(4)
@pytest.mark.parametrize(("mechanism", "adjacency"), CASES)
def test_count_is_repetition(mechanism, adjacency):
    """A count of n, n steps one at a time, n steps around another, and a saved state answer the same."""
    together, one_by_one = hs.Accountant(adjacency).compose(mechanism, 5), hs.Accountant(adjacency)
    for _ in range(5):
        one_by_one.compose(mechanism)
    loaded = hs.Accountant.from_state_dict(json.loads(json.dumps(one_by_one.state_dict())))
    assert len(together) == len(one_by_one) == len(loaded) == 5
    assert together.delta_bracket(0.5) == one_by_one.delta_bracket(0.5) == loaded.delta_bracket(0.5)
    assert together.ledger == one_by_one.ledger == loaded.ledger == {mechanism: 5}


@pytest.mark.share(3)
@pytest.mark.parametrize(("mechanism", "adjacency"), CASES)
def test_order_does_not_matter(mechanism, adjacency):
    """The same steps in another order have the same delta."""
    other = hs.Gaussian(8.0)
    orders = ([mechanism, mechanism, other], [mechanism, other, mechanism], [other, mechanism, mechanism])
    deltas = []
    for order in orders:
        accountant = hs.Accountant(adjacency)
        for step in order:
            accountant.compose(step)
        deltas.append(accountant.delta(0.4))
    assert deltas[1:] == pytest.approx([deltas[0]] * 2, rel=1e-9)


@pytest.mark.share(5)
@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
@pytest.mark.parametrize(("mechanism", "adjacency"), CASES)
def test_curve(mechanism, adjacency):
    """Brackets are ordered and in the domain; delta falls with eps, rises with steps; epsilon is its inverse."""
    before = None
    for count in (1, 2, 7):
        accountant = hs.Accountant(adjacency).compose(mechanism, count)
        brackets = [accountant.delta_bracket(eps) for eps in EPS]
        deltas = [accountant.delta(eps) for eps in EPS]
        assert all(0 <= bracket.lower <= bracket.upper <= 1 for bracket in brackets)
        assert all(later <= earlier for earlier, later in itertools.pairwise(deltas))
        if before is not None:  # true deltas rise: no lower end is above what comes after it
            assert all(was.lower <= now <= 1 for was, now in zip(before, deltas, strict=True))
        before = brackets
        for delta in (1e-2, 0.2):
            low, high, *_ = accountant.epsilon_bracket(delta)
            assert 0 <= low <= high
            if math.isfinite(high):
                assert accountant.delta_bracket(high).lower <= delta * (1 + 1e-9)


SAMPLERS_OF = {
    "Poisson": lambda m: hs.PoissonSampled(m, 0.3),
    "fixed size": lambda m: hs.FixedSizeSampled(m, 50, 5, replacement=False),
    "with replacement": lambda m: hs.FixedSizeSampled(m, 50, 5, replacement=True),
    "one of five": lambda m: hs.RandomAllocation(m, 5),
    "two of five": lambda m: hs.RandomAllocation(m, 5, 2),
    "truncated": lambda m: hs.TruncatedPoissonSampled(m, 50, 0.1, 6),
    "composed": lambda m: hs.Composed([(m, 2)]),
    "no sample": lambda m: m,
}


@pytest.mark.share(2)
@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
@pytest.mark.parametrize(
    ("sampler", "adjacency"),
    effort.all_but_slow(
        itertools.product(SAMPLERS_OF, ADJACENCIES),
        *((sampler, "replace") for sampler in ("one of five", "two of five", "composed")),
    ),
)
def test_every_question_is_answered(sampler, adjacency):
    """A ledger that is composed answers all questions; delta and epsilon are the upper ends of their brackets."""
    for mechanism in ALL:
        try:
            ledger = hs.Accountant(adjacency).compose(SAMPLERS_OF[sampler](mechanism))
        except (TypeError, ValueError):
            continue
        assert ledger.delta(0.4) == pytest.approx(ledger.delta_bracket(0.4).upper, rel=1e-9)
        assert ledger.epsilon(1e-3) == pytest.approx(ledger.epsilon_bracket(1e-3).upper, rel=1e-9)
        assert ledger.explain(delta=1e-3).assumptions == ledger.premises.to_check()


@pytest.mark.share(5)
@pytest.mark.parametrize(("mechanism", "adjacency"), CASES)
def test_steps_count(mechanism, adjacency):
    """Forty steps leak more than one, and no more than basic composition allows."""
    one, many = hs.Accountant(adjacency).compose(mechanism), hs.Accountant(adjacency).compose(mechanism, 40)
    leaked = many.delta_bracket(0.05)  # lower ends are 0 where none is known
    assert (leaked.lower or leaked.upper) > one.delta(0.05)
    assert many.delta_bracket(40 * 0.05).lower <= 40 * one.delta(0.05)


@pytest.mark.share(5)
@pytest.mark.parametrize(("mechanism", "adjacency"), CASES)
def test_engines_agree(mechanism, adjacency):
    """The bracket of discretised losses overlaps the one by default."""
    if not mechanism._has_pair:
        pytest.skip("known by its Renyi divergences alone")
    auto, pld = (hs.Accountant(adjacency, engine).compose(mechanism, 3) for engine in ("auto", "pld"))
    for eps in EPS[1:]:
        one, other = auto.delta_bracket(eps), pld.delta_bracket(eps)
        assert one.lower <= other.upper
        assert other.lower <= one.upper


@pytest.mark.share(5)
@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_participants_are_those_accounted_for(mechanism):
    """Who is drawn may be charged; a mechanism that samples never has everybody, unless drawing for it is refused."""
    adjacency = next(word for word in ADJACENCIES if supported(mechanism, word))
    clients = range(getattr(mechanism, "dataset_size", getattr(mechanism, "num_users", 200)))
    try:
        drawn = hs.draw_participants(mechanism, clients)
    except ValueError as error:
        assert "that clients can be drawn for" in str(error)  # noqa: PT017, only if it raises
        return
    assert len(drawn) < len(clients) or not isinstance(mechanism, SAMPLERS)
    with hs.ClientLedgers(":memory:", epsilon=500.0, delta=0.5, adjacency=adjacency) as ledgers:
        ledgers.enrol(clients)
        ledgers.charge(1, mechanism, participants=set(drawn))
        assert [ledgers.log(client)[0].took_part for client in clients] == [client in drawn for client in clients]
