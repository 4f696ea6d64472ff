"""Federated training without a framework: many complete runs, fast, reproducible, with what is certified about them.

`run` runs an algorithm on a problem; `sensitivity` runs it on two adjacent ones with shared noise. Algorithms and samplers are
settings, checked once; their `repr` rebuilds them. The compiled loops are numba's (``pip install 'hockeystick[simulate]'``),
the data sets of `load` scikit-learn's (``hockeystick[data]``).
"""

from __future__ import annotations

from hockeystick.simulate.accelerated import AcceleratedMinibatchSGD, MultistageMinibatchSGD, multistage_schedule
from hockeystick.simulate.algorithm import Algorithm
from hockeystick.simulate.data import dirichlet_silos, load, synthetic
from hockeystick.simulate.fedavg import LocalSGD, NoisyFedAvg, NoisyFedProx
from hockeystick.simulate.files import read
from hockeystick.simulate.ftrl import TreeFTRL
from hockeystick.simulate.guarantee import Guarantee, NoGuaranteeError
from hockeystick.simulate.minibatch import NoisyMinibatchSGD
from hockeystick.simulate.participation import (
    Cyclic,
    EveryRound,
    FixedSize,
    Participation,
    Poisson,
    Shuffled,
    WithReplacement,
)
from hockeystick.simulate.problem import Problem
from hockeystick.simulate.projected import ProjectedNoisySGD, TrustedAggregator
from hockeystick.simulate.result import Result
from hockeystick.simulate.run import run
from hockeystick.simulate.sensitivity import Sensitivity, sensitivity
from hockeystick.simulate.shuffled import BinomialNoise, ShuffledMinibatchSGD

__all__ = [
    "AcceleratedMinibatchSGD",
    "Algorithm",
    "BinomialNoise",
    "Cyclic",
    "EveryRound",
    "FixedSize",
    "Guarantee",
    "LocalSGD",
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
