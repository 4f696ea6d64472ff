"""Published numbers of releases that choose: votes, queries above a threshold, groups, the best of several runs."""

from __future__ import annotations

from collections.abc import Callable

import hockeystick as hs
from hockeystick import selection
from published_numbers.value import Ends, Value, epsilon

GROUPS = "google/differential-privacy, cc/algorithms/partition-selection_test.cc"
SEARCH = "Papernot and Steinke 2022 (2110.03620); computed by dp_accounting 0.6.0, RdpAccountant"
VOTES = "Papernot et al. 2018 (1802.08908), Theorem 6; computed by tensorflow/privacy, research/pate_2018/core.py"
ONE_WAY = "theirs bounds one of the two orders of the data sets"


def kept(mechanism: selection.OptimalPartitions | selection.ThresholdedPartitions, users: int) -> Callable[[], Ends]:
    """Return a function that gives the probability that a group is shown, twice."""
    return lambda: (mechanism.keep_probability(users),) * 2


def votes(counts: list[int], noise: float, order: float) -> Callable[[], Ends]:
    """Return a function that gives a bound of the Rényi divergence of one answer by these votes."""
    return lambda: (0.0, float(selection.votes_renyi(counts, noise, [order])[0]))


VALUES = [
    Value(
        "PATE, 100 answers to yes-or-no questions, noise 20: ε at δ = 1e-6",
        "yuxiangw/autodp, tutorials/tutorial_PATE_with_autoDP.ipynb",
        "2.2540846502197396",
        "exact",
        epsilon(1e-6, (hs.Gaussian(20.0), 100)),
    ),
    Value(
        "PATE, votes 90 and 10, noise 20: Rényi divergence of order 8",
        VOTES,
        "0.00220018",
        "upper bound",
        votes([90, 10], 20.0, 8.0),
        ONE_WAY,
    ),
    Value(
        "PATE, votes 200, 30 and 20, noise 40: Rényi divergence of order 32",
        VOTES,
        "0.00323554",
        "upper bound",
        votes([200, 30, 20], 40.0, 32.0),
        ONE_WAY,
    ),
    Value(
        "sparse vector, one answer above, Laplace noise 1 on the threshold and 2 on queries: ε at δ = 1e-5",
        "Lyu, Su and Li 2017 (1603.01699); computed by yuxiangw/autodp 0.2.3.1, LaplaceSVT_Mechanism",
        "1.9999799999999983",
        "upper bound",
        epsilon(1e-5, (selection.AboveThreshold(1.0, 2.0, 1), 1)),
        "theirs takes 2δ off the pure ε of 2; ours is a curve",
    ),
    Value(
        "optimal partitions, ε .5, δ .02: probability that a group of 6 users is shown",
        "Desfontaines, Voss and Gipson 2022 (2006.03684); " + GROUPS,
        "0.58840484458",
        "exact",
        kept(selection.OptimalPartitions(0.5, 0.02), 6),
    ),
    Value(
        "the same, 8 users",
        GROUPS,
        "0.86807080625",
        "exact",
        kept(selection.OptimalPartitions(0.5, 0.02), 8),
    ),
    Value(
        "Laplace noise 2, threshold 7.43775164974: probability that a group of one user is shown",
        "Wilson et al. 2020 (1909.01917); " + GROUPS,
        "0.02",
        "exact",
        kept(selection.ThresholdedPartitions(hs.Laplace(2.0), 7.43775164974), 1),
    ),
    Value(
        "the best of a geometric number of trainings, 10 on average, each of 1000 steps at rate .01 and noise 2: ε at δ = 1e-5",
        SEARCH,
        "1.4890116816475532",
        "upper bound",
        epsilon(1e-5, (hs.PrivateSelection(hs.PoissonSampled(hs.Gaussian(2.0), 0.01), 1000, 10, 1), 1)),
    ),
    Value(
        "the best of a Poisson number of releases, 10 on average, Gaussian noise 4: ε at δ = 1e-5",
        SEARCH,
        "2.3538058913156497",
        "upper bound",
        epsilon(1e-5, (hs.PrivateSelection(hs.Gaussian(4.0), 1, 10), 1)),
        "ours searches the theorem's second order",
    ),
]
