"""Problems, settings and runs that the simulator refuses, each with the argument, its value and its domain."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import refused_calls
from small_runs import LEARNT, SGD, SILOS, run

pytest.importorskip("numba")

from hockeystick import simulate

STEPS = {"learning_rate": 0.1, "clip_norm": 1.0}
POOLED = SILOS.pooled()
BITS = simulate.BinomialNoise(2, 3, 0.5)


# With some arguments changed
problem = partial(replace, simulate.Problem("logistic", [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 1]))
fedavg = partial(replace, simulate.NoisyFedAvg(**STEPS, local_steps=2, noise_std=0.1))
proximal = partial(replace, simulate.NoisyFedProx(**STEPS, local_steps=2, prox=1.3, tolerance=1e-12))
minibatch = partial(replace, simulate.NoisyMinibatchSGD(**STEPS, records=simulate.FixedSize(5)))
learnt = partial(replace, LEARNT)
aggregator = partial(replace, simulate.TrustedAggregator(**STEPS, noise_std=1.5, batch_size=4, radius=1.0))


def weighted(weights):
    """Return three silos of different weight."""
    return problem(sizes=[1, 1, 1], weights=weights)


def start(initial, **changes):
    """Run from somewhere."""
    return run(
        simulate.ProjectedNoisySGD(**STEPS), simulate.Problem("linear", np.zeros((1, 2))), initial=initial, **changes
    )


CALLS = r"""
problem(sizes=[1, 1]) -> sizes must sum to the number of records, 3, not 2
problem(sizes=[1.5, 1.5]) -> TypeError: sizes\[0\]
problem(features=np.empty((0, 2)), labels=[]) -> features must have 2 axes and not be empty
problem(features=[1.0, 2.0, 3.0]) -> features must have 2 axes
problem(labels=[0, 1]) -> Length of labels \(2\) must match number of records \(3\)
problem(labels=[0, 1, 2]) -> labels\[2\] must be an integer in \[0, 1\], not 2
problem(labels=[0, 1, 0.5]) -> labels\[2\]
problem(labels=None) -> labels must be given for loss='logistic'
problem(loss="absolute", labels=None, feature_bound=2.0) -> labels must be given for loss='absolute'
problem(loss="absolute") -> feature_bound must be given for loss='absolute'
problem(loss="hinge", labels=[0, 2, 1], feature_bound=2.0) -> labels\[1\] must be an integer in \[0, 1\]
problem(loss="softmax", num_classes=2, labels=[0, 1, 2]) -> labels\[2\]
problem(loss="softmax", num_classes=1) -> num_classes
problem(loss="network") -> hidden
problem(loss="hinge") -> feature_bound must be given for loss='hinge'
problem(loss=3) -> TypeError: loss
problem(feature_bound=0.1) -> feature_bound must be at least the norm of every record's features
problem(curvature=0.0) -> curvature
weighted([0.5, 0.3, 0.1]) -> weights
weighted([0.5, 0.5, 0.0]) -> weights must be positive, one for each of 3 silos
weighted([0.5, 0.3, 0.2]).pooled() -> weights must not be given for records that are pooled

fedavg(clip_norm=1e-200) -> clip_norm must be at least 1.0e-138, where squares are still doubles, not 1e-200
fedavg(noise_std=(0.1, -0.1)) -> noise_std\[1\]
fedavg(radius=0.0) -> radius must be positive, not 0.0
fedavg(schedule="linear") -> schedule must be one of
fedavg(clipping="silo") -> clipping must be one of
fedavg(records=5) -> TypeError: records must be Participation, not 5
fedavg(clients=(EveryRound(),)) -> TypeError: clients must be Participation
fedavg(dropout=-0.1) -> dropout must lie in \[0, 1\), not -0.1
fedavg(dropout=1.0) -> dropout
fedavg(client_weights="size") -> client_weights must be one of 'equal', 'records', not 'size'
fedavg(client_weights=[0.5, 0.5]) -> TypeError: client_weights must be 'equal', 'records' or a tuple
fedavg(client_weights=(0.5, 0.0)) -> client_weights\[1\] must be positive
fedavg(client_weights="records", clients=FixedSize(2)) -> unless all clients take part
fedavg(client_weights=(1.0, 2.0), clients=Poisson(0.5)) -> clients=Poisson\(.*0.5.*\)
fedavg(client_weights="records", dropout=0.1) -> dropout=0.1
fedavg(client_weights=(1.0, 1.0, 6.0)).data_sensitivity(3, 3) -> num_clients must be 1 where client_weights=\(1.0, 1.0, 6.0\), not 3
run(fedavg(client_weights=(0.5, 0.5))) -> Length of client_weights \(2\) must match number of silos \(4\)
proximal(schedule="cyclic") -> tolerance must be 0 unless
proximal(records=FixedSize(2)) -> tolerance must be 0 unless

learnt(noise_std=1.0) -> noise_std must not be given, noise_multiplier decides the noise, not 1.0
learnt(count_noise=0.4) -> count_noise must be above half the noise_multiplier \(0\.8\), not 0\.4
learnt(records=5) -> TypeError: records must be Participation, not 5
run(learnt()) -> AdaptiveClippingSGD is for one silo, not 4; see Problem\.pooled
run(learnt(records=FixedSize(101)), POOLED) -> records of silo 0 must draw at most 100, the number there is, not 101
run(learnt(clip_norm=1e-130, noise_multiplier=1e-180, count_noise=1e-180), POOLED) -> clip_norm must leave the noise among the normal doubles, not
run(learnt(clip_norm=1e308, noise_multiplier=1e4, count_noise=1e4), POOLED) -> clip_norm must leave the noise among the normal doubles, not 1e\+308
run(learnt(), POOLED, rounds=100_000, num_runs=100_000) -> num_runs=100000 and rounds=100000 need 74\.5 GiB for the clip norms

aggregator(step_factors=(1.0, 0.0)) -> step_factors\[1\] must be positive and finite, not 0.0
aggregator(noise_factors=(-1.0,)) -> noise_factors\[0\] must be positive and finite, not -1.0
aggregator(noise_factors=[1.0]) -> TypeError: noise_factors must be a tuple of numbers
aggregator(random_stop=1) -> TypeError: random_stop must be True or False, not 1
aggregator(suffix=0.0) -> suffix must lie in \(0, 1\], not 0.0
aggregator(suffix=0.5) -> suffix must be 1 without a random stop, not 0.5
run(aggregator(step_factors=(1.0, 0.5), batch_size=1), rounds=3) -> rounds must be at most the length of step_factors \(2\), not 3
run(aggregator(), rounds=2) -> rounds must be at most num_silos // batch_size \(1\), not 2: each user takes part once

FixedSize(0) -> size
FixedSize(2.5) -> TypeError: size
FixedSize(8).draw(7, rounds=1, seed=1) -> population must draw at most 7, the number there is, not 8
Cyclic(8).draw(7, rounds=1, seed=1) -> population must draw at most 7
Shuffled(8).draw(7, rounds=1, seed=1) -> population must draw at most 7

run(SGD, num_runs=0) -> num_runs
run(SGD, first_run=-1) -> first_run
run(SGD, seed=2**64) -> seed
run(SGD, num_threads=0) -> num_threads
run(SGD, budget=1.0) -> TypeError: budget must be a tuple \(epsilon, delta\), not 1.0
run(SGD, budget=(-1.0, 1e-5)) -> budget\[0\]
run(SGD, budget=(0.1, 1e-5)) -> budget must allow one round
run(SGD, budget=(1.0, 1.0)) -> budget\[1\]
run(SGD, released="all") -> released must be one of .*, not 'all'
run(SGD, progress=1) -> TypeError: progress must be True, False or None, not 1
run(SGD, num_runs=10**6, rounds=10**6, record_every=1) -> record_every=1 of rounds=1000000 needs
run(SGD, initial=[0.0]) -> initial must be finite and of shape \(5,\)
run(SGD, initial=[math.nan] * 5) -> initial must be finite and of shape \(5,\)
start(np.zeros((3, 2)), num_runs=2) -> initial must be finite and of shape \(2, 2\)
start(lambda _: [math.nan, 0.0]) -> initial\(generator\) must be finite and of shape \(2,\)
start(lambda _: 1.0) -> initial\(generator\) must be finite and of shape \(2,\)

run(minibatch(records=FixedSize(16))) -> of silo 2 must
run(minibatch(records=Shuffled(16))) -> of silo 2 must
run(minibatch(records=FixedSize(5), clients=FixedSize(5))) -> clients must draw at most 4
run(minibatch(records=FixedSize(5), clients=WithReplacement(2))) -> at most once in a round
run(minibatch(records=FixedSize(5), clients=BallsInBins(2))) -> a sampler of clients
minibatch(records=BallsInBins(2), noise_std=1.0).guarantee(SILOS, rounds=3) -> NoGuaranteeError: give a public expected_batch_size
minibatch(records=MinSeparatedPoisson(2, 0.1), noise_std=1.0).guarantee(SILOS, rounds=3) -> NoGuaranteeError: give a public expected_batch_size
MinSeparatedPoisson(2, 0.1, warm_start=1) -> TypeError: warm_start must be
run(minibatch(records=FixedSize(1), clients=Poisson(0.5, 5))) -> clients must have no expected_batch_size \(5.0\)
run(minibatch(records=FixedSize(5), noise_std=(0.1, 0.2))) -> Length of noise_std
run(ProjectedNoisySGD(**STEPS)) -> one silo
run(TreeFTRL(**STEPS, records=Cyclic(5), restart=True)) -> one silo
run(MultistageMinibatchSGD(stages=((2, 3.0),), clip_norm=1.0, records=FixedSize(5))) -> at most those of all stages

minibatch(records=FixedSize(5)).guarantee(SILOS, rounds=3) -> NoGuaranteeError: without noise
minibatch(records=FixedSize(5), clip_norm=math.inf, noise_std=1.0).guarantee(SILOS, rounds=3) -> NoGuaranteeError: without clipping
run(minibatch(records=FixedSize(5)), budget=(1.0, 1e-5)) -> NoGuaranteeError: without noise
ShuffledMinibatchSGD(**STEPS, protocol=BITS, records=BallsInBins(20)).guarantee(SILOS, rounds=3) -> NoGuaranteeError: of known number
ShuffledMinibatchSGD(**STEPS, protocol=BITS, records=WithReplacement(2)).guarantee(SILOS, rounds=3) -> NoGuaranteeError: at most once in a round
ShuffledMinibatchSGD(**STEPS, protocol=BITS, records=EveryRound()).guarantee(SILOS, rounds=3) -> NoGuaranteeError: batches of the same size
NoisyFedProx(learning_rate=0.9, local_steps=2, clip_norm=1.0, noise_std=1.0, prox=2.0).guarantee(SILOS, rounds=3)
  -> NoGuaranteeError: learning_rate must be at most 1/prox
NoisyFedProx(**STEPS, local_steps=2, noise_std=1.0, prox=0.1).guarantee(SILOS, rounds=3) -> NoGuaranteeError: prox must be larger than the smoothness
fedavg(clipping="record", records=Poisson(0.3)).guarantee(SILOS, rounds=3) -> NoGuaranteeError: Poisson batches of records clipped one by one
fedavg().guarantee(SILOS, rounds=6).accountant(-1, 1e-5) -> rounds
aggregator(batch_size=2).guarantee(SILOS, rounds=2, index=3) -> NoGuaranteeError: TrustedAggregator has one guarantee for all records, none for index=3
run(aggregator(batch_size=2), rounds=2, budget=(9.0, 1e-5), released="messages") -> NoGuaranteeError: nothing is certified for released='messages'
TreeFTRL(**STEPS, noise_std=1.0, records=Cyclic(4), restart=True).guarantee(POOLED, rounds=3, released="messages")
  -> NoGuaranteeError: nothing is certified for released='messages', only for 'every_model'
ProjectedNoisySGD(**STEPS, noise_std=2.0).guarantee(POOLED, rounds=101, index=3) -> NoGuaranteeError: nothing is certified for index=3 in more rounds
ProjectedNoisySGD(**STEPS, noise_std=2.0).guarantee(POOLED, rounds=12, index=101) -> index must be at most num_records
ProjectedNoisySGD(**STEPS, noise_std=2.0).guarantee(POOLED, rounds=5, index=3).epsilon(6, 1e-3) -> rounds must be at most those planned
ProjectedNoisySGD(**STEPS, noise_std=2.0, random_stop=True).guarantee(POOLED, rounds=5).epsilon(6, 1e-3) -> rounds must be at most those planned
aggregator(random_stop=True, batch_size=1).guarantee(SILOS, rounds=3).epsilon(4, 1e-3) -> rounds must be at most those planned
aggregator(batch_size=2).guarantee(SILOS, rounds=1).epsilon(2, 1e-3) -> rounds must be at most those planned
fedavg().guarantee(SILOS, rounds=6).epsilon(7, 1e-5) -> rounds must be at most those planned \(6\), not 7
fedavg().guarantee(SILOS, rounds=6, released="all") -> released must be one of
fedavg().guarantee(SILOS, rounds=6).epsilon(6, math.nan) -> delta must lie in \[0, 1\), not nan
fedavg().guarantee(SILOS, rounds=6).epsilon(-1, 1e-5) -> rounds
fedavg().guarantee(SILOS, rounds=6).epsilon(2.0, 1e-5) -> TypeError: rounds
"""
TABLE = "\n".join(line for line in CALLS.splitlines() if line)


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(TABLE))
def test_refused(call, reason):
    """Before anything runs, and with the reason."""
    refused_calls.check(call, reason, vars(simulate) | globals() | {"math": math, "SGD": SGD})


def test_what_the_changes_are_made_of_is_legal():
    """Each default that the table changes is accepted as it is."""
    assert weighted([0.5, 0.3, 0.2]).num_silos == problem().num_records
    run(learnt(), POOLED)
    for algorithm in (fedavg(), proximal(), minibatch(), aggregator()):
        run(algorithm, rounds=1)
