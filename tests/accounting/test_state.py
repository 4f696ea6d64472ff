"""Accountants are saved and loaded as they were, and states or arguments that are wrong are refused."""

from __future__ import annotations

import copy
import json
import math
import pickle

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
    with pytest.raises(ValueError, match=r"eps must be non-negative, and fit a double, not a.* bits"):
        hs.Accountant().delta_bracket(large)
    with pytest.raises(ValueError, match=r"count must be an integer in .*, not a.* bits"):
        hs.Accountant().compose(hs.Gaussian(1.0), large)


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


def test_a_copy_has_steps_of_its_own():
    """What is composed with a shallow copy leaves the accountant as it was, warm or not."""
    accountant = composed((hs.Laplace(1.0), 3))
    before = accountant.epsilon(1e-5)
    longer = copy.copy(accountant).compose(hs.Laplace(1.0), 100)
    assert (len(accountant), len(longer)) == (3, 103)
    assert accountant.epsilon(1e-5) == before
    assert longer.epsilon(1e-5) == composed((hs.Laplace(1.0), 103)).epsilon(1e-5)
