"""What every mechanism must satisfy: symmetric in the order of steps, monotone, ends in order and around what is leaked, every question answered, weaker settings no dearer.

A new mechanism needs a row in ALL, two data sets in tests/reference/witnesses.py, and a test of its own for its numbers.
"""

import contextlib
import copy
import dataclasses
import io
import itertools
import json
import math
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from compositions import composed
from enumeration import bracket, directions, either, product
from hockeystick import mechanisms, selection
from hockeystick.mechanisms.base import ADJACENCIES
from hockeystick.training.participation import SAMPLERS
from witnesses import witnesses

GAUSSIAN, PAIR = hs.Gaussian(2.0), hs.Discrete([0.6, 0.3, 0.1], [0.3, 0.6, 0.1])
MIXED = hs.Composed([(hs.Gaussian(2.0), 1), (hs.Laplace(5.0), 1)])

ALL = [  # a row tests all laws; every class has one or several
    hs.ApproximateDP(0.3, 1e-4),
    hs.Composed([(GAUSSIAN, 1), (hs.Laplace(3.0), 2)]),
    PAIR,
    hs.Discrete([0.9, 0.1, 0.0], [0.8, 0.1, 0.1]),
    hs.DiscreteGaussian(2.5),
    hs.DiscreteGaussian(4.0, 2),
    hs.DiscreteGaussianVector(2.0, 2.0),
    hs.DiscreteGaussianVector(20.0, 9.5, 100),
    hs.DiscreteGaussianVector(7.0, 4.5),
    hs.DiscreteLaplace(0.4),
    hs.DiscreteLaplace(0.2, 3),
    hs.DiscretePairs(PAIR, hs.Discrete([0.5, 0.5], [0.6, 0.4])),
    hs.DistributedDiscreteGaussian(1.0, 9, 2.0, 1),
    hs.DistributedDiscreteGaussian(3.0, 40, 8.0, 1000),
    hs.DistributedDiscreteGaussian(1.0, 20, 3.0),
    hs.Dominating(GAUSSIAN, hs.Gaussian(2.5), ["updates are clipped"], ["zero-out"], "one client", "sums", 1e-6),
    hs.Dominating(hs.PoissonSampled(hs.Laplace(2.0), 0.1), adjacency="add_or_remove"),
    hs.ExponentialMechanism(0.4),
    *(hs.FixedSizeSampled(GAUSSIAN, 50, 5, replacement) for replacement in (False, True)),
    *(hs.FixedSizeSampled(m, 100, 5, replacement=False) for m in (hs.Laplace(3.0), hs.DiscreteGaussian(3.0), MIXED)),
    hs.FixedSizeSampled(hs.Laplace(3.0), 20, 3, replacement=True),
    GAUSSIAN,
    hs.Laplace(3.0),
    hs.MixtureOfGaussians(2.0, [0.0, 1.0, 2.0], [0.7, 0.2, 0.1]),
    hs.PermuteAndFlip(0.4),
    *(hs.PoissonSampled(base, 0.1) for base in (hs.Gaussian(1.0), hs.Laplace(1.0), PAIR, MIXED)),
    hs.PrivacyProfile([0.0, 0.5, 1.0], [0.3, 0.1, 0.01]),
    hs.PrivateSelection(hs.Gaussian(4.0), 1, 10.0),
    hs.PrivateSelection(hs.Gaussian(3.0), 1, 8.0, 0.5),
    hs.PrivateSelection(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 100, 8.0),
    hs.RandomAllocation(GAUSSIAN, 20),
    hs.RandomAllocation(GAUSSIAN, 7, 3),
    hs.RandomAllocation(hs.Laplace(3.0), 9),
    *(hs.RandomAllocation(noise, t, k) for noise in (GAUSSIAN, hs.Laplace(3.0)) for t, k in ((2, 1), (3, 2))),
    hs.RandomizedResponse(0.6, 4),
    hs.RandomizedResponse(0.5, 2),
    hs.RenyiDP([2.0, 8.0], [0.1, 0.5]),
    hs.Shuffled(1.0, 1000),
    hs.Skellam(20.0, 3.0, 1),
    hs.Skellam(50.0, 4.5),
    hs.Staircase(0.4),
    hs.Staircase(0.4, 0.7),
    hs.TradeOff([0.0, 0.3, 1.0], [1.0, 0.4, 0.0]),
    hs.TradeOff([0.0, 0.4, 0.9], [0.95, 0.3, 0.0], symmetric=False),
    hs.TruncatedLaplace(2.0, 20.0),
    *(hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.05, 9, zeroed_out) for zeroed_out in (False, True)),
    hs.ZeroConcentratedDP(0.05),
    selection.AboveThreshold(5.0, 20.0, 2),
    selection.GaussianAboveThreshold(5.0, 20.0, 50),
    selection.GaussianNoisyMaximum(9.0, 12),
    selection.LaplaceNoisyMaximum(9.0),
    selection.OptimalPartitions(0.3, 1e-4, 2),
    selection.ThresholdedPartitions(hs.Laplace(5.0), 40.0),
]
pytestmark = pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")


def supported(mechanism, adjacency):
    """Return whether the mechanism can be composed under this adjacency; if not it must say so."""
    try:
        hs.Accountant(adjacency).compose(mechanism)
    except ValueError as error:
        assert f"adjacency={adjacency!r}" in str(error)  # noqa: PT017, only if it raises
        return False
    return True


CASES = [case for case in itertools.product(ALL, ADJACENCIES) if supported(*case)]
EPS = (0.0, 0.2, 1.0, 2.0)


CERTIFIED = (hs.ApproximateDP, hs.Discrete, hs.DiscreteGaussian, hs.DiscreteLaplace, hs.FixedSizeSampled, hs.Gaussian)
CERTIFIED += (hs.Laplace, hs.PoissonSampled, hs.RandomizedResponse)


@pytest.mark.parametrize(("mechanism", "adjacency"), CASES, ids=str)
def test_a_certificate_is_written_or_refused_by_name(mechanism, adjacency):
    """It has the mechanism's fields; where the checker has no rule, the refusal names the mechanism."""
    accountant = hs.Accountant(adjacency).compose(GAUSSIAN).compose(mechanism)
    try:
        last = json.loads(accountant.certificate(delta=0.01))["ledger"][-1]["mechanism"]
    except ValueError as error:
        assert str(error).startswith(type(mechanism).__name__)  # noqa: PT017, only if it raises
        assert f" cannot be certified under adjacency={adjacency!r}: " in str(error)  # noqa: PT017
        return
    assert isinstance(mechanism, CERTIFIED)
    assert last.keys() == {"name", *(field.name for field in dataclasses.fields(mechanism))}


def test_every_class_has_an_example():
    """There is an example of every class that is exported, and each is supported under some adjacency."""
    public = [getattr(room, name) for room in (mechanisms, selection) for name in room.__all__]
    kinds = {kind for kind in public if isinstance(kind, type) and issubclass(kind, mechanisms.Mechanism)}
    assert kinds == {mechanisms.Mechanism, *map(type, ALL)}, "add a row for a new class to ALL"
    assert {repr(mechanism) for mechanism, _ in CASES} == set(map(repr, ALL))


@pytest.mark.parametrize(("mechanism", "adjacency"), CASES, ids=str)
def test_no_times_is_nothing(mechanism, adjacency):
    """Composed 0 times a mechanism leaks nothing, and changes nothing beside another: in a ledger, and as a part of one step."""
    alone, beside = hs.Accountant(adjacency), hs.Accountant(adjacency).compose(GAUSSIAN)
    ledgers = [(alone.compose(mechanism, 0), beside.compose(mechanism, 0))]
    if mechanism._has_pair:
        nothing = hs.Composed([(mechanism, 0)])
        assert nothing == hs.Composed([])
        assert hs.Composed([(mechanism, 0), (GAUSSIAN, 1)]) == hs.Composed([(GAUSSIAN, 1)])
        ledgers.append(
            (hs.Accountant(adjacency).compose(nothing, 3), composed((GAUSSIAN, 1), (nothing, 2), adjacency=adjacency))
        )
    for empty, single in ledgers:
        assert (empty.epsilon(0.0), empty.delta(0.0)) == (0.0, 0.0)
        assert single.delta(0.5) == hs.Accountant(adjacency).compose(GAUSSIAN).delta(0.5)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_sample_of_nothing_is_nothing(adjacency):
    """Whatever runs a step that releases nothing leaks nothing."""
    nothing = hs.Composed([])
    samplers = [hs.PoissonSampled(nothing, rate) for rate in (0.1, 1.0)]
    samplers += [hs.FixedSizeSampled(nothing, 9, 3, replacement) for replacement in (False, True)]
    samplers += [hs.RandomAllocation(nothing, 7, selected) for selected in (1, 3, 7)]
    for step in [*samplers, hs.Composed([(samplers[0], 2)]), hs.Dominating(nothing)]:
        once = hs.Accountant(adjacency).compose(step)
        assert once.epsilon_bracket(0.0)[:2] == once.delta_bracket(0.0)[:2] == (0.0, 0.0), step


def derived(kind):
    """Yield all classes that are derived from one."""
    for each in kind.__subclasses__():
        yield each
        yield from derived(each)


def test_what_others_derive_from_is_no_mechanism():
    """A class that has no parameters, and so is there to be derived from, is refused wherever a mechanism is asked for."""
    bases = [kind for kind in (hs.Mechanism, *derived(hs.Mechanism)) if kind.__init__ is object.__init__]
    assert len(bases) > 4
    runs = (
        hs.Accountant().compose,
        hs.GaussianFilter(1.0).spend,
        hs.Dominating,
        lambda base: hs.PoissonSampled(base, 0.1),
    )
    for kind in bases:
        for run in (*runs, lambda base: hs.Composed([(base, 1)])):
            with pytest.raises(TypeError, match="mechanism must be one of hockeystick's mechanisms, not <"):
                run(kind())


DOUBLES = {  # what the table says of a record that is replaced, and what the docstring does
    "doubles": "Its sensitivity doubles where",
    "the same": "Nothing doubles where",
    "as what it runs": "What it runs doubles, or not, where",
    "-": 'Only under ``adjacency="add_or_remove"``.',
}


def doubling():
    """Yield each class of the page's table with what it says of a record that is replaced."""
    for line in (Path(__file__).parents[2] / "docs" / "accounting" / "mechanisms.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if len(cells) == 5 and cells[0].startswith("| `"):
            yield from ((getattr(mechanisms, name), cells[2]) for name in re.findall(r"`(\w+)`", cells[0]))


def test_what_doubles_is_said():
    """Page and docstring of a class say alike whether its sensitivity doubles under replacement, as the numbers do.

    What doubles leaks as with twice the sensitivity, or half the noise relative to it; what does not as where a record is added or removed.
    """
    said = dict(doubling())
    public = {kind for name in mechanisms.__all__ if (kind := getattr(mechanisms, name)) is not mechanisms.Mechanism}
    assert said.keys() | {mechanisms.Dominating} == public
    for kind, word in said.items():
        assert DOUBLES[word] in kind.__doc__, kind
    for mechanism in ALL:
        word = said.get(type(mechanism))
        if word == "doubles":
            changed = {"sensitivity": 2, "noise_multiplier": 0.5, "reach": 0.5}
            units = {name: changed[name] * value for name, value in vars(mechanism).items() if name in changed}
            twice = dataclasses.replace(mechanism, **units)
        elif word == "the same" and supported(mechanism, "add_or_remove"):
            twice = mechanism
        else:
            continue
        replaced, added = hs.Accountant("replace").compose(mechanism), hs.Accountant().compose(twice)
        assert replaced.delta(0.5) == pytest.approx(added.delta(0.5), rel=1e-12), mechanism


@pytest.mark.parametrize("inner", [GAUSSIAN, hs.ApproximateDP(0.3, 1e-4)], ids=repr)
def test_a_sampler_doubles_what_it_runs(inner):
    """Of all records in every step, a sampler leaks what its mechanism does where a record is replaced, whether that doubles or not."""
    everybody = [
        hs.PoissonSampled(inner, 1.0),
        hs.Composed([(inner, 1)]),
        hs.FixedSizeSampled(inner, 9, 9, replacement=False),
    ]
    alone = hs.Accountant("replace").compose(inner).delta(0.25)
    for step in [*everybody, hs.RandomAllocation(inner, 1), hs.Dominating(inner)]:
        assert hs.Accountant("replace").compose(step).delta(0.25) == pytest.approx(alone, rel=1e-9), step


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


def counts_are_repetitions(mechanism, adjacency):
    """Check that a count of n, n steps one at a time and a saved state answer the same; and steps in another order."""
    together, one_by_one = (
        hs.Accountant(adjacency).compose(mechanism, 5),
        composed(*[mechanism] * 5, adjacency=adjacency),
    )
    loaded = hs.Accountant.from_state_dict(json.loads(json.dumps(one_by_one.state_dict(), allow_nan=False)))
    assert len(together) == len(one_by_one) == len(loaded) == 5
    assert together.delta_bracket(0.5) == one_by_one.delta_bracket(0.5) == loaded.delta_bracket(0.5)
    assert together.ledger == one_by_one.ledger == loaded.ledger == {mechanism: 5}
    other = hs.Gaussian(8.0)
    orders = [mechanism, mechanism, other], [mechanism, other, mechanism], [other, mechanism, mechanism]
    first, *others = (composed(*order, adjacency=adjacency).delta(0.4) for order in orders)
    assert others == pytest.approx([first] * 2, rel=1e-9)


def curves_are_monotone(mechanism, adjacency):
    """Check that delta falls with eps and rises with steps, by no more than basic composition, and that epsilon is its inverse."""
    before = None
    for count in (1, 2, 7):
        accountant = hs.Accountant(adjacency).compose(mechanism, count)
        brackets = [accountant.delta_bracket(eps) for eps in EPS]
        deltas = [accountant.delta(eps) for eps in EPS]
        assert all(0 <= found.lower <= found.upper <= 1 for found in brackets)
        assert all(later <= earlier for earlier, later in itertools.pairwise(deltas))
        if before is not None:  # true deltas rise: no lower end is above what comes after it
            assert all(was.lower <= now <= 1 for was, now in zip(before, deltas, strict=True))
        before = brackets
        for delta in (1e-2, 0.2):
            low, high, *_ = accountant.epsilon_bracket(delta)
            assert 0 <= low <= high
            if math.isfinite(high):
                assert accountant.delta_bracket(high).lower <= delta * (1 + 1e-9)
    one, many = (hs.Accountant(adjacency).compose(mechanism, count) for count in (1, 40))
    alone, leaked = one.delta_bracket(0.05), many.delta_bracket(0.05)
    assert leaked.upper > alone.upper
    assert leaked.lower >= alone.lower * (1 - 1e-9)
    assert many.delta_bracket(40 * 0.05).lower <= 40 * alone.upper


def engines_agree(mechanism, adjacency):
    """Check that the bracket of discretised losses overlaps the one by default, where a pair is known."""
    if mechanism._has_pair:
        auto, pld = (hs.Accountant(adjacency, engine).compose(mechanism, 3) for engine in ("auto", "pld"))
        for eps in EPS[1:]:
            one, other = auto.delta_bracket(eps), pld.delta_bracket(eps)
            assert max(one.lower, other.lower) <= min(one.upper, other.upper)


def participants_are_those_accounted_for(mechanism, adjacency):
    """Check that who is drawn may be charged, and that a sample never has everybody, unless drawing for it is refused."""
    if adjacency != next(word for word in ADJACENCIES if (mechanism, word) in CASES):
        return  # asked already
    clients = range(getattr(mechanism, "num_records", getattr(mechanism, "num_users", 200)))
    try:
        drawn = hs.draw_participants(mechanism, clients)
    except ValueError as error:
        assert "that clients can be drawn for" in str(error)  # noqa: PT017, only if it raises
        return
    if not isinstance(mechanism, SAMPLERS):
        assert len(drawn) == len(clients)
        return
    assert len(drawn) < len(clients)
    with hs.ClientLedgers(":memory:", epsilon=500.0, delta=0.5, adjacency=adjacency) as ledgers:
        ledgers.enrol(clients)
        ledgers.charge(1, mechanism, participants=set(drawn))
        assert [ledgers.log(client)[0].took_part for client in clients] == [client in drawn for client in clients]


def ends_have_a_witness(mechanism, adjacency):
    """Check that what two data sets leak lies between the ends, of two steps too where outcomes are few; without a witness the lower end is 0."""
    if isinstance(mechanism, hs.RandomAllocation) and mechanism.steps > 3:
        return  # too many outcomes to write down
    pairs_of_laws = witnesses(mechanism, adjacency)
    products = any(isinstance(part, (hs.RandomAllocation, hs.Composed)) for part in mechanism._within())
    coarse = 1.03 if products else 1 + 5e-3  # of wider cells: merging outcomes lowers what is leaked
    for count in (1, 2) if pairs_of_laws and len(pairs_of_laws[0][0]) <= 900 else (1,):
        ledger = hs.Accountant(adjacency).compose(mechanism, count)
        for eps in EPS:
            found = ledger.delta_bracket(eps)
            leaked = max(
                (either(*(product(*[law] * count) for law in laws), eps) for laws in pairs_of_laws), default=0.0
            )
            assert found.lower <= (leaked * coarse + 1e-9 if pairs_of_laws else 0.0)
            if not isinstance(mechanism, (hs.PrivacyProfile, hs.TradeOff)):  # these are the caller's own numbers
                assert leaked <= found.upper * (1 + 1e-6) + 1e-9
        assert pairs_of_laws or not ledger.premises.attained


def samples_are_amplified(mechanism, adjacency):
    """Check that a Poisson sample leaks q delta(eps) at log(1 + q (e^eps - 1)), if a record is removed (Balle, Barthe and Gaboardi 2018)."""
    rate = 0.1
    try:
        hs.Accountant().compose(hs.PoissonSampled(mechanism, rate))
    except ValueError:
        return  # not supported
    for eps in EPS if adjacency == "add_or_remove" else ():
        found, _ = directions(hs.PoissonSampled(mechanism, rate), math.log1p(rate * math.expm1(eps)))
        whole, _ = directions(mechanism, eps)
        assert found.lower <= rate * whole.upper * (1 + 1e-9) + 1e-12
        assert rate * whole.lower * (1 - 1e-9) - 1e-12 <= found.upper <= 1.1 * rate * whole.upper + 1e-9


def wrapping_changes_nothing(mechanism, adjacency):
    """Check that a sample of everybody, a composition of one, and steps that all have the record are the mechanism, and a sample of nobody nothing."""
    twice = hs.Accountant(adjacency).compose(mechanism, 2)
    for wrap, count in (
        (lambda: hs.PoissonSampled(mechanism, 1.0), 2),
        (lambda: hs.Composed([(mechanism, 1)]), 2),
        (lambda: hs.Composed([(mechanism, 2)]), 1),
        (lambda: hs.RandomAllocation(mechanism, 2, 2), 1),
    ):
        with contextlib.suppress(ValueError):  # not supported
            assert bracket(wrap(), 0.4, count, adjacency)[:2] == twice.delta_bracket(0.4)[:2]
    with contextlib.suppress(ValueError):
        assert bracket(hs.PoissonSampled(mechanism, 0.0), 0.0, 9, adjacency).upper == 0.0


def statements_can_be_made_again(mechanism, adjacency):
    """Check that the code that a statement ends with prints the same statement."""
    if getattr(mechanism, "num_selected", 1) > 1:
        return  # epsilon takes half a minute
    statement = str(hs.Accountant(adjacency).compose(mechanism).statement(1e-6))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec("\n".join(line.strip() for line in statement.split("Again:\n")[1].splitlines()), {})  # noqa: S102
    assert printed.getvalue().strip() == statement.strip()


LAWS = (
    counts_are_repetitions,
    curves_are_monotone,
    engines_agree,
    participants_are_those_accounted_for,
    ends_have_a_witness,
    samples_are_amplified,
    statements_can_be_made_again,
    wrapping_changes_nothing,
)


@pytest.mark.share(24, by_day=8)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]!r}-{case[1]}")
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law(law, case):
    """Every law holds for every mechanism, under every adjacency that it supports."""
    law(*case)


def test_what_is_dominated_adds_up():
    """Steps that one mechanism dominates are so many of it for upper ends, and it beside them is one more."""
    step = hs.Dominating(GAUSSIAN, assumes=["updates are clipped"])
    three = hs.Accountant("replace").compose(GAUSSIAN, 3)
    for steps in ((step, GAUSSIAN, step), (hs.Dominating(step), step, step)):
        ledger = composed(*steps, adjacency="replace")
        assert ledger.delta(0.5) == three.delta(0.5)
        assert ledger.rdp(3.0) == three.rdp(3.0)


PURE = [
    (hs.ExponentialMechanism(0.7), 0.7, 0.7),
    (hs.PermuteAndFlip(0.7), 0.7, 0.7),
    (hs.DiscreteLaplace(0.7, 3), 2.1, 4.2),
    (hs.Laplace(2.0), 0.5, 1.0),
    (hs.Staircase(0.4), 0.4, 0.4),
    (selection.AboveThreshold(2.0, 10.0, 2), 0.9, 0.9),
    (selection.LaplaceNoisyMaximum(4.0), 0.5, 0.5),
]


@pytest.mark.parametrize(("mechanism", "added", "replaced"), PURE, ids=repr)
def test_largest_loss(mechanism, added, replaced):
    """At delta = 0 epsilon is the sum of the epsilons: just above it, and the lower end just below where it is attained."""
    for adjacency, epsilon in zip(ADJACENCIES, (added, replaced), strict=True):
        found = hs.Accountant(adjacency).compose(mechanism, 5).epsilon_bracket(0.0)
        assert found.lower <= 5 * epsilon <= found.upper <= 5 * epsilon * (1 + 1e-12)
        if isinstance(mechanism, (hs.DiscreteLaplace, hs.Laplace, hs.Staircase)):  # whose pair is attained there
            assert found.lower >= 5 * epsilon * (1 - 1e-12)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (hs.PoissonSampled(MIXED, 0.1), "one and the same sample"),
        (hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 0.05, 18), "more than 18.* at most 200 records"),
        (hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 0.05, 18, zeroed_out=True), "keeps its place"),
        (hs.RandomAllocation(GAUSSIAN, 50, 2), "2 of the 50 steps.* independently"),
    ],
    ids=repr,
)
def test_assumptions_are_told(step, words):
    """The explanation says what was sampled, and of how many records."""
    assert re.search(words, str(hs.Accountant().compose(step).explain(epsilon=1.0)).replace("\n", " "))


SAMPLED = {
    "Poisson": lambda m: hs.PoissonSampled(m, 0.2),
    "fixed size": lambda m: hs.FixedSizeSampled(m, 40, 8, replacement=False),
    "with replacement": lambda m: hs.FixedSizeSampled(m, 40, 8, replacement=True),
    "one of three": lambda m: hs.RandomAllocation(m, 3),
    "two of five": lambda m: hs.RandomAllocation(m, 5, 2),
    "truncated": lambda m: hs.TruncatedPoissonSampled(m, 40, 0.2, 9),
    "composed": lambda m: hs.Composed([(m, 2)]),
    "no sample": lambda m: m,
}


WITHOUT_LOWER_END = (hs.ZeroConcentratedDP, hs.RenyiDP, hs.PrivateSelection)


@pytest.mark.share(48, by_day=8)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mechanism", ALL, ids=repr)
@pytest.mark.parametrize("sampler", SAMPLED)
def test_every_question_is_answered(sampler, mechanism, adjacency):
    """A ledger that is composed answers all questions; delta and epsilon are the upper ends of their brackets; what no data set is known to attain has the lower end 0."""
    try:
        ledger = hs.Accountant(adjacency).compose(SAMPLED[sampler](mechanism))
    except (TypeError, ValueError):
        return  # not supported
    assert ledger.delta(0.4) == pytest.approx(ledger.delta_bracket(0.4).upper, rel=1e-9)
    assert ledger.epsilon(1e-3) == pytest.approx(ledger.epsilon_bracket(1e-3).upper, rel=1e-9)
    assert ledger.explain(delta=1e-3).assumptions == ledger.premises.to_check()
    assert not isinstance(mechanism, WITHOUT_LOWER_END) or ledger.delta_bracket(0.4).lower == 0.0


# An upper end is never above that of a weaker setting.
STEP = 1.25  # what a rate 2^(1/4) times as large may add where rates are rare
CHORDS = 1.01  # of the curve of an allocation, which is known at some points
ROUNDED = 1 + 1e-9  # both ends of a narrow bracket pay for rounding


def log_floats(low, high):
    """Return floats whose logarithms are spread evenly."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


RATES = log_floats(1e-10, 0.9)
SETTINGS = st.tuples(  # kind, noise, steps, delta
    st.sampled_from([hs.Gaussian, hs.Laplace]),
    log_floats(0.3, 30.0),
    log_floats(1, 1e6).map(int),
    log_floats(1e-40, 0.3),
)


def epsilon(step, steps, delta, adjacency):
    """Return the upper end of epsilon of equal steps."""
    return hs.Accountant(adjacency).compose(step, steps).epsilon(delta)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@given(setting=SETTINGS, rate=RATES, more=log_floats(1.0, 30.0))
def test_rate(adjacency, setting, rate, more):
    """Epsilon does not fall where the rate of Poisson samples rises; that of a wide bracket is known to a step of the grid of rates."""
    kind, noise, *asked = setting
    steps = [hs.PoissonSampled(kind(noise), q) for q in (rate, min(rate * more, 1.0))]
    found = [epsilon(step, *asked, adjacency) for step in steps]
    wide = hs.Accountant(adjacency).compose(steps[0], asked[0]).epsilon_bracket(asked[1]).lower < found[0] * (1 - 1e-3)
    assert found[0] <= found[1] * (STEP if wide else 1 + 1e-3) + 1e-12


@pytest.mark.share(2)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_rates_that_are_rare(adjacency):
    """Rates of 3e-10 to 3e-9 in 152616 steps at a delta of 4e-38: a wide bracket takes the end of a larger rate."""
    steps = [hs.PoissonSampled(hs.Gaussian(0.7499253130368225), 3e-10 * 1.2**k) for k in range(14)]
    found = [epsilon(step, 152616, 3.897e-38, adjacency) for step in steps]
    assert all(one <= other * STEP for one, other in itertools.pairwise(found))
    assert found[0] < 0.1


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@given(setting=SETTINGS, rate=st.just(1.0) | RATES, more=log_floats(1.0, 3.0))
def test_noise_and_steps(adjacency, setting, rate, more):
    """Epsilon does not rise where there is more noise, and does not fall where there are more steps."""
    kind, noise, steps, delta = setting
    found = epsilon(hs.PoissonSampled(kind(noise), rate), steps, delta, adjacency)
    noisier = epsilon(hs.PoissonSampled(kind(noise * more), rate), steps, delta, adjacency)
    longer = epsilon(hs.PoissonSampled(kind(noise), rate), math.ceil(steps * more), delta, adjacency)
    assert noisier <= found * ROUNDED + 1e-12
    assert found <= longer * ROUNDED + 1e-12


BASES = [
    hs.Gaussian(0.5),
    hs.Gaussian(2.0),
    hs.Laplace(0.5),
    hs.Laplace(2.0),
    hs.DiscreteLaplace(0.7),
    hs.DiscreteGaussian(1.5),
    hs.ExponentialMechanism(0.5),
    hs.PermuteAndFlip(0.5),
    hs.Composed([(hs.Gaussian(2.0), 1), (hs.Laplace(4.0), 2)]),
]


@pytest.mark.share(9, by_day=3)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("sampler", ["Poisson", "fixed size", "one of three", "truncated"])
@pytest.mark.parametrize("base", BASES, ids=repr)
def test_no_sampling(base, sampler, adjacency):
    """A sample, or an epoch of one release at a place drawn, leaks no more than the release itself where a record is replaced."""
    try:
        sampled = hs.Accountant(adjacency).compose(SAMPLED[sampler](base))
    except (TypeError, ValueError):
        pytest.skip("not supported")
    whole = hs.Accountant("replace").compose(base)
    excess = CHORDS if sampler == "one of three" else ROUNDED
    for delta in (0.1, 1e-3, 1e-6, 1e-10):
        assert sampled.epsilon(delta) <= whole.epsilon(delta) * excess
    for eps in (0.0, 0.4, 1.0, 2.0, 4.0):
        assert sampled.delta(eps) <= whole.delta(eps) * excess + 1e-12
