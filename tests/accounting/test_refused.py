"""Accountants and their functions: what is outside its domain is refused with its name and a reason."""

import math

import pytest

import hockeystick as hs
import refused_calls
from compositions import composed

GAUSSIAN = hs.Gaussian(1.0)


def gaussian(noise_multiplier):
    """Return a training of 100 steps with this noise."""
    return hs.Accountant().compose(hs.Gaussian(noise_multiplier), 100)


NAMES = {
    "hs": hs,
    "math": math,
    "GAUSSIAN": GAUSSIAN,
    "gaussian": gaussian,
    "CALIBRATION": {"make_accountant": gaussian, "epsilon": 1.0, "delta": 1e-5, "bracket": (1.0, 100.0)},
    "TRAINING": {"num_records": 60000, "batch_size": 256, "epochs": 15, "noise_multiplier": 1.1},
    "group": lambda step, size, **given: hs.group_accountant(hs.Accountant(**given).compose(step), size),
    "TRUNCATED": hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.1, 30),
    "composed": composed,
    "STATE": composed((GAUSSIAN, 2)).state_dict(),
    "LOADED": {"mechanism": {"name": "Gaussian", "noise_multiplier": 1.0}},
}
REFUSED = r"""
hs.calibrate(**CALIBRATION | {"epsilon": math.inf}) -> epsilon must be non-negative and finite
hs.calibrate(**CALIBRATION | {"bracket": 3.0}) -> TypeError: bracket must be two numbers
hs.calibrate(**CALIBRATION | {"bracket": (1.0, 2.0, 3.0)}) -> TypeError: bracket must be two numbers
hs.calibrate(**CALIBRATION | {"bracket": (2.0, 2.0)}) -> two different numbers
hs.calibrate(**CALIBRATION | {"bracket": (2.0, math.inf)}) -> bracket must hold finite numbers, not inf
hs.calibrate(**CALIBRATION | {"bracket": (1.5, 3.0), "integer": True}) -> bracket must hold integers
hs.calibrate(**CALIBRATION | {"make_accountant": 3}) -> TypeError: make_accountant must be callable
hs.calibrate(**CALIBRATION | {"make_accountant": hs.Gaussian}) -> TypeError: make_accountant must return an Accountant
hs.calibrate(gaussian, tpr=0.1, fpr=0.2, bracket=(1.0, 2.0)) -> tpr
hs.calibrate(gaussian, tpr=1.0, fpr=-1.0, bracket=(1.0, 2.0)) -> fpr
hs.calibrate(gaussian, advantage=2.0, bracket=(1.0, 2.0)) -> advantage
hs.calibrate(gaussian, bracket=(1.0, 2.0)) -> one budget must be given
hs.calibrate(gaussian, epsilon=1.0, bracket=(1.0, 2.0)) -> one budget must be given
hs.calibrate(gaussian, delta=0.1, bracket=(1.0, 2.0)) -> one budget must be given
hs.calibrate(gaussian, tpr=0.5, bracket=(1.0, 2.0)) -> one budget must be given
hs.calibrate(gaussian, fpr=0.1, bracket=(1.0, 2.0)) -> one budget must be given
hs.calibrate(gaussian, advantage=0.1, epsilon=1.0, delta=0.1, bracket=(1.0, 2.0))
    -> one budget must be given
hs.calibrate(gaussian, epsilon=1.0, delta=1e-5, bracket=(-1.0, 100.0)) -> noise_multiplier must be positive
hs.calibrate(gaussian, epsilon=0.1, delta=1e-5, bracket=(1.0, 2.0))
    -> bracket must have an end .* at most 0.1, not .* at 1 and .* at 2
hs.dpsgd_epsilon(1.0, [0.1, 1.5], 1, 1e-5) -> sampling_rate\[1\] must lie in \[0, 1\], not 1.5
hs.dpsgd_epsilon(1.0, 0.1, 10.5, 1e-5) -> steps must be an integer in \[0, .*not 10.5
hs.dpsgd_parameters(**TRAINING | {"batch_size": 60001}) -> batch_size must be at most num_records \(60000\), not 60001
hs.dpsgd_parameters(**TRAINING | {"steps": 3525})
    -> exactly one of epochs and steps must be given, not epochs=15 and steps=3525
hs.dpsgd_parameters(**TRAINING | {"epochs": None})
    -> exactly one of epochs and steps must be given, not epochs=None and steps=None
hs.dpsgd_parameters(**TRAINING | {"noise_std": 1.1}) -> exactly one of noise_multiplier and noise_std must be given
hs.dpsgd_parameters(**TRAINING | {"noise_multiplier": None, "noise_std": 1.1})
    -> clip_norm must be given with noise_std, not None
hs.dpsgd_parameters(**TRAINING | {"noise_on": "gradient"}) -> noise_on must be one of
hs.dpsgd_parameters(**TRAINING | {"noise_on": "mean"}) -> noise_on must be "sum" with noise_multiplier
hs.dpsgd_parameters(**TRAINING | {"sampling": "shuffled"})
    -> sampling must be 'poisson' .* not 'shuffled': .* ask shuffled_batches_epsilon_bracket
hs.dpsgd_parameters(**TRAINING | {"sampling": "fixed"}) -> not 'fixed': .* compose FixedSizeSampled
hs.dpsgd_parameters(**TRAINING | {"sampling": "unknown"}) -> not 'unknown': .* find out how batches are made
hs.dpsgd_parameters(**TRAINING | {"sampling": "possion"}) -> did you mean 'poisson'
group(hs.RandomizedResponse(0.5, 2), 2, adjacency="replace") -> not known of RandomizedResponse
group(hs.PoissonSampled(hs.Gaussian(1.0), 0.1), 2, adjacency="replace") -> not known of PoissonSampled
group(hs.ZeroConcentratedDP(0.1, delta=0.1), 2) -> not known of Zero
group(hs.ExponentialMechanism(500.0), 2) -> not known of Exponential
hs.group_epsilon(hs.Accountant().compose(TRUNCATED), 2, 1e-5) -> must not name the number
hs.group_epsilon(TRUNCATED, 2, 1e-5) -> TypeError: must be an Accountant
hs.group_epsilon(a, 0, 1e-5) -> group_size must be
hs.group_epsilon(a, 2, 1.0) -> delta must lie
hs.shuffled_batches_delta_bracket(1, noise_multiplier=1, num_batches=10**7) -> num_batches must be at most
hs.shuffled_batches_delta_bracket(1, noise_multiplier=1, num_batches=2, epochs=0) -> epochs must
hs.zcdp_delta(1.0, [1.0, -1.0]) -> epsilon\[1\] must be non-negative
hs.zcdp_epsilon(True, 0.1) -> TypeError: rho must be a real number
hs.zcdp_rho(hs.PoissonSampled(GAUSSIAN, 0.1)) -> TypeError: must be an Accountant
hs.zcdp_rho(hs.ApproximateDP(0.1, 1e-9)) -> TypeError: must be an Accountant
hs.zcdp_rho(hs.Accountant().compose(hs.PoissonSampled(GAUSSIAN, 0.1))) -> which is not known of
hs.zcdp_rho(hs.Accountant().compose(hs.ApproximateDP(0.1, 1e-9))) -> which is not known of
hs.DiscretePairs(hs.Discrete([0.5, 0.5], [0.4, 0.6]), 1) -> TypeError: add must be Discrete, not 1
hs.Accountant().compose(GAUSSIAN, 10**7).epsilon_curve(1e-5) -> at most 1000000
hs.Accountant("remove") -> adjacency must be one of
hs.Accountant(engine="fast") -> engine must be one of
a.compose(1.0) -> TypeError: mechanism must be one of
a.compose(a) -> TypeError: mechanism must be one of
a.compose(GAUSSIAN, -1) -> count must be an integer in
a.compose(GAUSSIAN, 10.5) -> TypeError: count must be an integer
a.compose(GAUSSIAN, math.inf) -> TypeError: count must be an integer
a.compose(GAUSSIAN, math.nan) -> TypeError: count must be an integer
a.compose(GAUSSIAN, 2.0**60) -> count must be an integer
a.compose(GAUSSIAN, True) -> TypeError: count must be an integer
a.compose(GAUSSIAN, 2**53) -> count must be an integer in
a.compose(hs.RandomizedResponse(0.5, 2)) -> not supported under adjacency
a.would_exceed(hs.PoissonSampled(hs.RandomizedResponse(0.5, 2), 0.1), epsilon=1.0, delta=0.1)
    -> not supported under adjacency
a.epsilon(1.0) -> delta must lie in \[0, 1\), not 1.0
a.epsilon([0.1, -1e-5]) -> delta\[1\] must lie in \[0, 1\), not -1e-05
a.epsilon(math.nan) -> delta must lie in
a.epsilon("1e-5") -> TypeError: delta must be a real number
a.delta(-1.0) -> epsilon must be non-negative, not -1.0
a.delta_bracket(math.nan) -> epsilon must be non-negative, not nan
a.epsilon_bracket(1.0) -> delta must lie in
a.explain() -> exactly one of epsilon and delta
a.explain(epsilon=1.0, delta=0.1) -> exactly one of epsilon and delta
hs.Accountant().compose(hs.PrivacyProfile([0.0, 1.0], [0.1, 0.01], status="estimate"), 2).statement(0.1)
    -> a statement needs certified numbers
a.certificate() -> exactly one of epsilon and delta
a.certificate(epsilon=1.0, delta=0.1) -> exactly one of epsilon and delta
a.certificate(epsilon=math.inf) -> epsilon of a certificate must lie in \[0, 1e5\], not inf
a.certificate(delta=0.0) -> epsilon of a certificate must lie in \[0, 1e5\], not inf
a.certificate(delta=1e-305) -> delta of a certificate must be 0 or at least 2\^-999, not 1e-305
a.certificate(delta=1.0) -> delta must lie in
a.certificate(delta=0.1, lower=1) -> TypeError: lower must be True or False, not 1
hs.Accountant().certificate(delta=0.1) -> needs 1 to 100 different mechanisms that are composed, not 0
composed(*((hs.Gaussian(1.0 + x), 1) for x in range(101))).certificate(delta=0.1) -> 1 to 100 .* not 101
composed((hs.Discrete([0.9, 0.1], [0.5, 0.5]), 1)).certificate(delta=0.1)
    -> Discrete\(p=\(0.9, 0.1\), .* p must be at most 1000 doubles that sum to exactly 1
composed((hs.PoissonSampled(hs.Laplace(1.0), 0.5), 1)).certificate(delta=0.1) -> no rule for samples of Laplace
composed((hs.PoissonSampled(hs.DiscreteLaplace(1.0), 0.5), 1), adjacency="replace").certificate(delta=0.1)
    -> replace.*no rule for samples of DiscreteLaplace
composed((hs.Discrete([2.0**-10] * 1024, [2.0**-10] * 1024), 1)).certificate(delta=0.1) -> p must be at most 1000
composed((hs.ApproximateDP(1.0, 0.01), 1)).certificate(delta=0.1, lower=True) -> lower must be False: .*ApproximateDP
hs.dpsgd_certificate(1.0, 0.5, 9, delta=0.1, adjacency="remove") -> adjacency must be one of
a.trade_off(1.5) -> fpr must lie in
a.rdp(0.5) -> order must lie in
a.remaining(GAUSSIAN, epsilon=-1.0, delta=0.1) -> epsilon must be non-negative
a.would_exceed(GAUSSIAN, epsilon=1.0, delta=1.0) -> delta must lie in
a.would_exceed(GAUSSIAN, 1.5, epsilon=1.0, delta=0.1) -> TypeError: count must be an integer
hs.Accountant.from_state_dict(STATE | {"version": 3})
    -> must have format 'hockeystick.Accountant' and version 1 or 2, not .* version 3
hs.Accountant.from_state_dict(STATE | {"steps": [{"steps": [], "count": 2}]})
    -> a block of state must have steps in a list, not
hs.Accountant.from_state_dict(STATE | {"steps": [{"steps": [LOADED | {"count": 1}]}]})
    -> a block of state must have count
hs.Accountant.from_state_dict(STATE | {"steps": [{"steps": {"mechanism": 1}, "count": 2}]})
    -> a block of state must have steps in a list, not
hs.Accountant.from_state_dict(STATE | {"format": "opacus"}) -> must have format
hs.Accountant.from_state_dict(STATE | {"adjacency": "both"}) -> adjacency must be one of
hs.Accountant.from_state_dict(STATE | {"engine": None}) -> TypeError: engine must be a string
hs.Accountant.from_state_dict(STATE | {"steps": [{"count": 1}]}) -> must have mechanism
hs.Accountant.from_state_dict(STATE | {"steps": [{"mechanism": {"name": "os.system"}, "count": 1}]})
    -> must be one of ApproximateDP, .*not 'os.system'
hs.Accountant.from_state_dict(STATE | {"steps": [{"mechanism": {"name": "Gaussian"}, "count": 1}]})
    -> must have noise_multiplier
hs.Accountant.from_state_dict(STATE | {"steps": [{"mechanism": {"name": "Gaussian", "noise_multiplier": -1.0}, "count": 1}]})
    -> must be positive
hs.Accountant.from_state_dict(STATE | {"steps": [LOADED | {"count": 0}]})
    -> count must be
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """What is wrong is named, with its value and its domain; an accountant that refuses is as it was."""
    accountant = composed((GAUSSIAN, 1))
    refused_calls.check(call, reason, NAMES | {"a": accountant})
    assert len(accountant) == 1
