"""Accountants are saved and loaded as they were, and states or arguments that are wrong are refused."""

import copy
import itertools
import json
import pickle
import random

import hypothesis.strategies
import pytest

import hockeystick as hs
from compositions import MIXED, REPLACED, composed


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


def one_by_one(steps):
    """Return an accountant with these steps, and their runs."""
    return composed(*steps), [(mechanism, len(list(group))) for mechanism, group in itertools.groupby(steps)]


def runs_of(steps):
    """Return the runs of a state, written out, as mechanisms' fields with counts."""
    found = []
    for step in steps:
        found += runs_of(step["steps"]) * step["count"] if "steps" in step else [(step["mechanism"], step["count"])]
    return found


def states_of(runs):
    """Return runs as they stand in a state."""
    return [(composed((mechanism, 1)).state_dict()["steps"][0]["mechanism"], count) for mechanism, count in runs]


WORDS = hypothesis.strategies.recursive(
    hypothesis.strategies.integers(0, 4).map(lambda number: [number]),
    lambda inner: hypothesis.strategies.tuples(
        hypothesis.strategies.lists(inner, min_size=1, max_size=4), hypothesis.strategies.integers(1, 4)
    ).map(lambda repeated: list(itertools.chain(*repeated[0])) * repeated[1]),
    max_leaves=10,
)


@hypothesis.given(WORDS.filter(lambda word: len(word) < 2000), WORDS.filter(lambda word: len(word) < 300))
def test_order_is_kept(word, more):
    """Whatever repeats in whatever, a state written out is the runs that were composed, and a loaded one goes on with it."""
    accountant, runs = one_by_one([MIXED[letter] for letter in word])
    state = accountant.state_dict()
    assert runs_of(state["steps"]) == states_of(runs)
    loaded = hs.Accountant.from_state_dict(json.loads(json.dumps(state)))
    assert loaded.ledger == accountant.ledger
    for letter in more:
        loaded.compose(MIXED[letter])
        accountant.compose(MIXED[letter])
    steps = [MIXED[letter] for letter in word + more]
    for one in (accountant, loaded, pickle.loads(pickle.dumps(loaded)), copy.deepcopy(accountant)):
        written = [mechanism for mechanism, count in runs_of(one.state_dict()["steps"]) for _ in range(count)]
        assert written == [mechanism for mechanism, _ in states_of([(mechanism, 1) for mechanism in steps])]
        assert one.ledger == accountant.ledger


def test_very_many_mechanisms():
    """More than a thousand mechanisms, each made anew when it comes again, are counted as a dictionary counts them, however they are pickled on the way."""
    draws = random.Random(1)
    accountant, counts = hs.Accountant(), dict[hs.Gaussian, int]()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for noise in draws.choices(range(1, 1500), k=400):
            accountant.compose(hs.Gaussian(float(noise)), noise)
            counts[hs.Gaussian(float(noise))] = counts.get(hs.Gaussian(float(noise)), 0) + noise
        accountant = pickle.loads(pickle.dumps(accountant, protocol))
        assert list(accountant.ledger.items()) == list(counts.items())
        assert len(accountant) == sum(counts.values())


@pytest.mark.parametrize("period", [2, 3, 7, 20, 32])
def test_what_repeats_is_kept_once(period):
    """A schedule that is run again and again is as long as two of it, wherever it stops."""
    noises = [hs.Gaussian(1.0 + number % 19) for number in range(period)]
    once = len(json.dumps(one_by_one(noises)[0].state_dict()))
    for steps in (40 * period, 40 * period + period // 2, 41 * period - 1):
        accountant, _ = one_by_one((noises * 42)[:steps])
        assert len(json.dumps(accountant.state_dict())) <= 3 * once + 100


def test_states_of_before_are_loaded():
    """A state of the version that wrote every run is loaded, with the same order; what does not repeat is still written so."""
    run = {
        mechanism: composed((mechanism, 1)).state_dict()["steps"][0]["mechanism"] for mechanism in (SAMPLED, LAPLACE)
    }
    steps = [{"mechanism": run[SAMPLED], "count": 3}, {"mechanism": run[LAPLACE], "count": 1}]
    old = {
        "format": "hockeystick.Accountant",
        "version": 1,
        "adjacency": "add_or_remove",
        "engine": "auto",
        "steps": steps,
    }
    assert hs.Accountant.from_state_dict(old).state_dict() == old
    repeated = hs.Accountant.from_state_dict(old | {"steps": steps * 500})
    assert repeated.ledger == {SAMPLED: 1500, LAPLACE: 500}
    assert repeated.state_dict()["version"] == 2
    assert runs_of(repeated.state_dict()["steps"]) == runs_of(steps * 500)


@pytest.mark.parametrize("times", [0, -1, 2**53, 1.5, "2", None, True])
def test_hostile_blocks(times):
    """A block that comes no number of times, or so often that its steps cannot be counted, is refused; nothing is written out for that."""
    block = {"steps": [{"steps": composed((LAPLACE, 2)).state_dict()["steps"], "count": 2}], "count": times}
    with pytest.raises((ValueError, TypeError), match="count must be an integer"):
        hs.Accountant.from_state_dict({**STATE, "version": 2, "steps": [block]})


def test_a_block_of_very_many_is_loaded_at_once():
    """A state that stands for 2^52 alternations takes no memory, and a curve of them is refused."""
    steps = composed((LAPLACE, 1), (GAUSSIAN, 1)).state_dict()["steps"]
    loaded = hs.Accountant.from_state_dict({**STATE, "version": 2, "steps": [{"steps": steps, "count": 2**52}]})
    assert loaded.ledger == {LAPLACE: 2**52, GAUSSIAN: 2**52}
    with pytest.raises(ValueError, match="at most 1000000 will do"):
        loaded.epsilon_curve(1e-5)


SAMPLED, LAPLACE = hs.PoissonSampled(hs.Gaussian(1.0), 0.01), hs.Laplace(2.0)
GAUSSIAN = hs.Gaussian(1.0)
STATE = composed((hs.Gaussian(1.0), 2)).state_dict()


def nested(levels, value):
    """Return a value in so many lists, one in the other."""
    for _ in range(levels):
        value = [value]
    return value


def nested_mechanism(levels):
    """Return the state of a mechanism sampled so often."""
    mechanism = {"name": "Gaussian", "noise_multiplier": 1.0}
    for _ in range(levels):
        mechanism = {"name": "PoissonSampled", "mechanism": mechanism, "sampling_rate": 0.5}
    return mechanism


@pytest.mark.parametrize("empty", [hs.Accountant(), hs.GaussianFilter(1.0), hs.RenyiOdometer(delta=0.1)], ids=repr)
@pytest.mark.parametrize(
    "steps",
    [
        nested(1000, 1.0),
        nested(10**5, 1.0),
        [{"mechanism": {"name": "Gaussian", "noise_multiplier": nested(1000, 1.0)}, "count": 1}],
        [{"mechanism": nested_mechanism(1000), "count": 1}],
        [{"mechanism": {"name": "Gaussian", "noise_multiplier": 10**400}, "count": 1}],
        [{"mechanism": {"name": "Gaussian", "noise_multiplier": -(10**5000)}, "count": 1}],
        [{"mechanism": {"name": "Gaussian", "noise_multiplier": 1.0}, "count": 10**5000}],
    ],
    ids=["lists", "very deep", "argument", "mechanisms", "argument 10^400", "argument -10^5000", "count 10^5000"],
)
def test_hostile_states(empty, steps):
    """A state that is nested without end, or has an integer that no double holds, is refused as a wrong value."""
    with pytest.raises(ValueError, match=r"state must (have at most 100 lists|be below 2\^1024)"):
        type(empty).from_state_dict({**empty.state_dict(), "steps": steps})


def test_what_is_saved_can_be_loaded():
    """A mechanism in mechanisms is loaded as it was, up to a depth beyond which it cannot be saved either."""
    mechanism = hs.Gaussian(1.0)
    for depth in range(40):
        mechanism = hs.Composed([(mechanism, 1)])
        accountant = hs.Accountant().compose(mechanism)
        try:
            state = accountant.state_dict()
        except ValueError as error:
            assert depth > 20
            assert "at most 100 lists and mappings" in str(error)  # noqa: PT017
            return
        assert hs.Accountant.from_state_dict(state).ledger == accountant.ledger
    pytest.fail("nothing was too deep")


@pytest.mark.parametrize("large", [10**400, -(10**400), 10**5000], ids=["10^400", "-10^400", "10^5000"])
def test_integers_that_no_double_holds(large):
    """They are refused as values, with the name of the argument; Python's own errors name none."""
    with pytest.raises(
        ValueError, match=r"noise_multiplier must be positive and finite, and fit a double, not a.* bits"
    ):
        hs.Gaussian(large)
    with pytest.raises(ValueError, match=r"epsilon must be non-negative, and fit a double, not a.* bits"):
        hs.Accountant().delta_bracket(large)
    with pytest.raises(ValueError, match=r"count must be an integer in .*, not a.* bits"):
        hs.Accountant().compose(hs.Gaussian(1.0), large)
