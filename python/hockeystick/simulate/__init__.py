"""Federated training without a framework: many complete runs, fast, reproducible, with what is certified about them.

`run` runs an algorithm on a problem; `sensitivity` runs it on two adjacent ones with shared noise. Algorithms and samplers are
settings, checked once; their `repr` rebuilds them. The compiled loops are numba's (``pip install ".[simulate]"`` in a clone),
the data sets of `load` scikit-learn's (``hockeystick[data]``).
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.federated.released_models import Guarantee, NoGuaranteeError
from hockeystick.isrl import multistage_schedule
from hockeystick.simulate.algorithms.algorithm import Algorithm
from hockeystick.simulate.algorithms.fedavg import NoisyFedAvg, NoisyFedProx
from hockeystick.simulate.algorithms.ftrl import TreeFTRL
from hockeystick.simulate.algorithms.learnt_clipping import AdaptiveClippingSGD
from hockeystick.simulate.algorithms.local_sgd import LocalSGD
from hockeystick.simulate.algorithms.minibatch import (
    AcceleratedMinibatchSGD,
    BinomialNoise,
    MultistageMinibatchSGD,
    NoisyMinibatchSGD,
    ShuffledMinibatchSGD,
)
from hockeystick.simulate.algorithms.projected import ProjectedNoisySGD
from hockeystick.simulate.algorithms.trusted_aggregator import TrustedAggregator
from hockeystick.simulate.problem.data import dirichlet_silos, load, read, synthetic
from hockeystick.simulate.problem.loss import Loss
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.participation import (
    BallsInBins,
    Cyclic,
    CyclicPoisson,
    EveryRound,
    FixedSize,
    MinSeparatedPoisson,
    Participation,
    Poisson,
    Shuffled,
    WithReplacement,
)
from hockeystick.simulate.running.result import Result
from hockeystick.simulate.running.run import Sensitivity, run, sensitivity

__all__ = [
    "AcceleratedMinibatchSGD",
    "AdaptiveClippingSGD",
    "Algorithm",
    "BallsInBins",
    "BinomialNoise",
    "Cyclic",
    "CyclicPoisson",
    "EveryRound",
    "FixedSize",
    "Guarantee",
    "LocalSGD",
    "Loss",
    "MinSeparatedPoisson",
    "MultistageMinibatchSGD",
    "NoGuaranteeError",
    "NoisyFedAvg",
    "NoisyFedProx",
    "NoisyMinibatchSGD",
    "Participation",
    "Poisson",
    "Problem",
    "ProjectedNoisySGD",
    "Result",
    "Sensitivity",
    "Shuffled",
    "ShuffledMinibatchSGD",
    "TreeFTRL",
    "TrustedAggregator",
    "WithReplacement",
    "dirichlet_silos",
    "load",
    "multistage_schedule",
    "read",
    "run",
    "sensitivity",
    "synthetic",
]


open_room(__name__)
