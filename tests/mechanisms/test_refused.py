"""What mechanisms refuse when they are made or composed, and so those that choose, and what the core refuses: each error names the argument, its value and its domain."""

import inspect
import math

import numpy as np
import pytest

import hockeystick as hs
import refused_calls
from hockeystick import _core

NAMES = vars(hs.mechanisms) | vars(hs.selection)
NAMES |= {
    "hs": hs,
    "inf": math.inf,
    "nan": math.nan,
    "composed": lambda mechanism: hs.Accountant().compose(mechanism),
    "replaced": lambda mechanism: hs.Accountant("replace").compose(mechanism),
    "from_function": hs.PrivacyProfile.from_function,
    "from_densities": hs.PrivacyProfile.from_densities,
    "WIDE": (-9.0, 9.0),
    "from_cumulant": hs.RenyiDP.from_cumulant,
    "normal": lambda mean: lambda x: -0.5 * (x - mean) ** 2 - 0.5 * math.log(2.0 * math.pi),
    "laplace": lambda eps: max(0.0, 1.0 - math.exp(0.5 * (eps - 1.0))),
    "BATCH": hs.FixedSizeSampled(hs.Gaussian(2.0), 10, 10, replacement=False),
    "PAIR": hs.Discrete([0.9, 0.1], [0.5, 0.5]),
    "math": math,
}
TABLE = r"""
votes_renyi([3.0, 1.0], 0.0, [2.0]) -> noise_std must lie in
votes_renyi([3.0, 1.0], 1.0, [1.0]) -> orders must lie in
OptimalPartitions(0.0, 0.1) -> epsilon must lie in
OptimalPartitions(1.0, 0.0) -> delta must lie in
AboveThreshold(1.0, 0.0) -> query_noise_multiplier must be positive
ZeroConcentratedDP(inf) -> rho must be non-negative
Gaussian(True) -> TypeError: noise_multiplier
Gaussian(4e-309) -> noise_multiplier must be (above|at least) .*, not 4e-309
Laplace(8e-309) -> noise_multiplier must be at least .*, not 8
RandomizedResponse(0.5, 1) -> num_buckets must be an integer in
Discrete([0.5, 0.4], [0.5, 0.5]) -> p must be probabilities
Discrete([0.5, 0.5], [1.5, -0.5]) -> q must be probabilities
Discrete([0.5, 0.5], [1.0]) -> as long as p
Discrete([[0.5, 0.5]], [1.0]) -> one-dimensional
Staircase(1.0, 1.5) -> inner must lie in
TruncatedLaplace(1e-3, 1.0) -> noise_multiplier must lie in
Shuffled(1.0, 10**11) -> num_users must be at most
Shuffled(1.0, 10.0) -> TypeError: num_users must be an integer
Shuffled(1.0, 10, "laplace") -> randomizer must be one of
composed(Shuffled(1.0, 10)) -> a report is replaced
DiscreteGaussian(1e6) -> not 1000000
DiscreteGaussian(1.0, 1.5) -> TypeError: sensitivity must be an integer
DiscreteGaussian(1.0, 0) -> sensitivity must be an integer in
DiscreteGaussian(1.0, 10**10) -> sensitivity must be at most
DiscreteLaplace(1e-6, 10**5) -> sensitivity must be at most
DiscreteLaplace(0.301, 1000) -> at most 300, not 301
DiscreteLaplace(1.0, True) -> TypeError: sensitivity
DiscreteGaussianVector(1.0, 0.5) -> sensitivity must lie in \[1, 1e9\], not 0.5
DiscreteGaussianVector(1.0, 1.0, 2.5) -> TypeError: dimension must be an integer
Skellam(1.0, 1.0, 0) -> dimension must be an integer in
Skellam(inf, 1.0) -> noise_variance must lie in \[1e-6, 1e12\], not inf
Skellam(2.0, nan) -> not nan
MixtureOfGaussians(1.0, [], []) -> sensitivities must be one-dimensional
MixtureOfGaussians(1e-3, [11.0], [1.0]) -> sensitivities must be 0 or
MixtureOfGaussians(1.0, [1.0, 2.0], [0.5, 0.6]) -> probabilities must be probabilities
MixtureOfGaussians(1.0, [1.0, 2.0], [1.0]) -> as many as sensitivities \(2\), not 1
MixtureOfGaussians.of_group(1.0, 1001, 0.1) -> group_size must be at most
MixtureOfGaussians.of_group(1.0, 2.5, 0.1) -> TypeError: group_size must be an integer
MixtureOfGaussians.of_group(1.0, 2, 1.5) -> sampling_rate must lie in \[0, 1\]
MixtureOfGaussians.of_group_in_batch(1.0, 3, 10, 8) -> less group_size
MixtureOfGaussians.of_group_in_batch(1.0, 1001, 10**5, 8) -> group_size must be at most
replaced(MixtureOfGaussians(1.0, [1.0], [1.0])) -> not supported under
Composed(Gaussian(1.0)) -> TypeError: steps must be a sequence
Composed([Gaussian(1.0)]) -> TypeError: steps must be pairs
Composed([(1.0, 2)]) -> TypeError: mechanism must be one of
Composed([(Gaussian(1.0), 1.5)]) -> TypeError: count must be an integer
Composed([(Gaussian(1.0), True)]) -> TypeError: count must be an integer
Composed([(Gaussian(1.0), -1)]) -> count must be an integer in
composed(PoissonSampled(Composed([(Gaussian(2.0), 3333), (Laplace(1.0), 10001)]), 0.1)) -> must be at most 10000, not 10002
PoissonSampled(Composed([(BATCH, 1)]), 0.1) -> fixed number of records
composed(Composed([(RandomizedResponse(0.5, 2), 1)])) -> not supported
PoissonSampled(1.0, 0.1) -> TypeError: mechanism must be one of hockeystick
PoissonSampled(BATCH, 0.1) -> fixed number of records
PoissonSampled(ZeroConcentratedDP(0.1), 0.1) -> must have a dominating pair
replaced(PoissonSampled(ApproximateDP(1.0, 0.0), 0.1)) -> a pair for removing a record
replaced(PoissonSampled(Composed([(Gaussian(1.0), 1), (PAIR, 1)]), 0.1)) -> a pair for removing a record
replaced(PoissonSampled(RandomizedResponse(0.5, 3), 0.1)) -> replaced, not added or removed
composed(PoissonSampled(RandomizedResponse(0.5, 3), 0.1)) -> replaced, not added or removed
FixedSizeSampled(1.0, 10, 1, False) -> TypeError: mechanism must be one
FixedSizeSampled(Gaussian(1.0), 10, 11, False) -> at most num_records
FixedSizeSampled(Gaussian(1.0), 10, 1001, True) -> at most 100 times num_records
FixedSizeSampled(Gaussian(1.0), 10, 1, 1) -> TypeError: replacement must be True or False
FixedSizeSampled(BATCH, 10, 2, False) -> must not draw a batch
FixedSizeSampled(Shuffled(1.0, 1000), 100, 10, False) -> at least the num_users
FixedSizeSampled(TruncatedPoissonSampled(Gaussian(1.0), 10, 0.1, 10), 10**4, 1000, False) -> at most the num_records
composed(BATCH) -> a batch of all records
composed(FixedSizeSampled(Gaussian(1.0), 1, 2, True)) -> nothing to draw from
composed(FixedSizeSampled(Gaussian(1e120), 10, 5, True)) -> 2/noise_multiplier must lie
composed(FixedSizeSampled(ApproximateDP(1.0, 0.0), 10, 2, False)) -> a pair for replacing
replaced(FixedSizeSampled(PAIR, 10, 2, False)) -> in either order
replaced(FixedSizeSampled(DiscreteGaussian(3.0), 10, 2, True)) -> with replacement only noise
TruncatedPoissonSampled(Laplace(1.0), 10, 0.1, 5) -> TypeError: mechanism must be Gaussian
TruncatedPoissonSampled(Gaussian(1.0), 10, 0.1, 5, 1) -> TypeError: zeroed_out must be True or False, not 1
RandomAllocation("Gaussian", 10) -> TypeError: mechanism must be one of
RandomAllocation(BATCH, 10) -> fixed number
RandomAllocation(ZeroConcentratedDP(0.1), 10) -> only Renyi divergences
RandomAllocation(Gaussian(1.0), 0) -> steps must be
RandomAllocation(Gaussian(1.0), 10**6 + 1) -> steps must be at most the largest supported .1000000
RandomAllocation(Gaussian(1.0), True) -> TypeError: steps must be
RandomAllocation(Gaussian(1.0), 3, 4) -> num_selected must be at most steps
RandomAllocation(Gaussian(1.0), 3, 0) -> num_selected must be
RandomAllocation(Gaussian(0.2), 3) -> must lie in \[0.25, 1000.0\], not 0.2
composed(RandomAllocation(RandomizedResponse(0.5, 3), 4)) -> not added or removed
replaced(RandomAllocation(ApproximateDP(1.0, 0.0), 3)) -> not supported under
replaced(RandomAllocation(PAIR, 3)) -> not supported under .*: its mechanism must have a pair
replaced(RandomAllocation(PrivacyProfile([0.0, 1.0], [0.3, 0.0]), 3)) -> not supported under .*: its mechanism must have
replaced(RandomAllocation(PoissonSampled(ApproximateDP(1.0, 0.0), 0.5), 3)) -> not supported .*: its mechanism must have
replaced(RandomAllocation(RandomizedResponse(0.5, 3), 4)) -> not supported under .*: its mechanism must have a pair
ZeroConcentratedDP(0.1, -1.0) -> xi must be non-negative
ZeroConcentratedDP(0.1, delta=1.0) -> delta must lie
RenyiDP([2.0, 2.0], [0.1, 0.2]) -> orders must increase
RenyiDP([0.5], [0.1]) -> orders must increase
RenyiDP([2.0, 3.0], [0.1]) -> divergences must be as long
RenyiDP([2.0, 3.0], [0.2, 0.1]) -> must not fall, not by 0.1 from order 2 to 3
from_cumulant(1.0) -> TypeError: cumulant must be a function
from_cumulant(lambda s: (0.1 + s) * (s + 1)) -> cumulant.0. must be 0.*not 0.1
from_cumulant(lambda s: 0.5 * s) -> cumulant.-1. must be 0.*not -0.5
from_cumulant(lambda s: math.sin(s) * (s + 1)) -> must be convex; at
from_cumulant(lambda s: -0.1 * s * (s + 1)) -> must be convex; at s 0 it is
from_cumulant(lambda s: 0.0 if s in (0.0, -1.0) else nan) -> cumulant.*must be non-negative, not nan
from_cumulant(abs, largest_order=1.0) -> largest_order must lie in
PrivateSelection(3, 1, 2.0) -> TypeError: mechanism must be one of
PrivateSelection(Gaussian(1.0), 1, 0.5, 1.0) -> mean must lie in .1
PrivateSelection(Gaussian(1.0), 1, 2.0, -1.0) -> shape must lie in
composed(PrivateSelection(Gaussian(1.0), 1, 1e9, -0.999)) -> mean must be at most
hs.PrivacyLossDistribution.from_mechanism(ZeroConcentratedDP(0.1)) -> must have a dominating pair
hs.Accountant(engine="pld").compose(ZeroConcentratedDP(0.1)).delta(1.0) -> use engine='auto'
PrivacyProfile([0.1, 0.2], [0.3, 0.2]) -> epsilons must increase from 0
PrivacyProfile([0.0, 0.0], [0.3, 0.2]) -> epsilons must increase from 0
PrivacyProfile([0.0, 700.0], [0.3, 0.2]) -> epsilons must increase from 0
PrivacyProfile([0.0, 1.0], [0.3, 0.4]) -> remove must not rise with epsilon, not by 0.1.* from epsilon 0 to 1
PrivacyProfile([0.0, 1.0], [0.3]) -> remove must be as long as epsilons
PrivacyProfile([0.0, 1.0], [0.3, 0.1], [0.2, 0.1]) -> add must begin with the total
PrivacyProfile([0.0], [0.3], None, "sure") -> status must be one of
from_function(3.0) -> TypeError: remove must be a function
from_function(lambda _: nan) -> remove.* must lie in .0, 1., not be nan
from_function(lambda _: 2.0) -> must lie in .0, 1., not be 2.0
from_function(lambda eps: 0.4 + 0.01 * math.sin(eps)) -> must not rise, not by
from_function(lambda eps: max(0.0, 0.5 - 0.1 * eps * eps)) -> must be convex in e.epsilon; at epsilon
from_function(lambda eps: hs.theta(eps, 1.0), lambda eps: hs.theta(eps, 1.1)) -> off by
from_function(lambda eps: max(0.0, 0.4 - 0.1 * eps - 0.06 * eps**2)) -> must be convex in e.epsilon; at epsilon
from_function(laplace, accuracy=-1.0) -> accuracy must lie in
from_function(laplace, tail=0.5) -> tail must lie in
from_function(laplace, num_points=1) -> num_points must be
from_densities(lambda x: normal(0)(x) + math.log(2), normal(0), WIDE) -> integral of exp\(log_p\) is 1\+1
from_densities(normal(-0.5), normal(0.5), [-10.0, 2.5]) -> exp\(log_q\) is 1-0.0228
from_densities(lambda _: nan, normal(0), WIDE) -> log_p must be the logarithm of a density
from_densities(normal(0), normal(1), (1.0, 0.0)) -> breakpoints must be at least two
from_densities(normal(0), normal(1), WIDE, tolerance=0.0) -> tolerance must lie in
TradeOff([0.0, 0.5, 1.0], [1.0, 0.6, 0.0]) -> at most 1 - false_positive_rates
TradeOff([0.0, 0.2, 0.6, 1.0], [0.8, 0.7, 0.1, 0.0]) -> convex; at rate 0.2
TradeOff([0.0, 0.5, 1.0], [0.3, 0.4, 0.0]) -> not rise, not by 0.1 from rate 0 to 0.5
TradeOff([0.1, 1.0], [0.5, 0.0]) -> increase from 0
TradeOff([0.0, 0.5, 0.5], [0.9, 0.3, 0.0]) -> increase from 0
TradeOff([0.0, 1.0], [1.0, 0.0, 0.0]) -> as long as false_positive_rates
TradeOff([0.0, 0.9], [1.0, 0.05]) -> end with 0
TradeOff([0.0, 1.0], [1.0, 0.0], "yes") -> TypeError: symmetric must be True or False
TradeOff.from_function(lambda x: 1 - x**2) -> must lie in
TradeOff.from_function(lambda x: (1 - x) * (0.5 + 0.5 * math.cos(9 * x) ** 2)) -> rise|convex
TradeOff.from_function(lambda x: nan * x) -> must lie in
TradeOff.from_function(lambda x: -x) -> must lie in
TradeOff.from_function(3.0) -> TypeError: function must be
TradeOff.from_function(lambda x: 1 - x, num_points=3) -> num_points
noisy_maximum("uniform", 1.0) -> noise must be one of
noisy_maximum("gaussian", 1.0) -> num_candidates must be given
noisy_maximum("gumbel", 0.0) -> noise_multiplier must be positive
noisy_maximum("gumbel", 1e-3) -> noise_multiplier must be at least
noisy_maximum("gaussian", 1.0, num_candidates=1) -> num_candidates must be an integer
replaced(GaussianNoisyMaximum(1.0, 5, True)) -> use monotone=False
GaussianNoisyMaximum(1e-3, 5) -> noise_multiplier must lie in \[0.01
GaussianNoisyMaximum(1.0, 5, 1) -> TypeError: monotone must be True or False
LaplaceNoisyMaximum(1e-3) -> noise_multiplier must be at least
replaced(LaplaceNoisyMaximum(1.0, True)) -> use monotone=False
AboveThreshold(1.0, 1.0, 0) -> hits must be an integer
AboveThreshold(1.0, 1.0, 1.5) -> TypeError: hits must be an integer
AboveThreshold(1.0, 1.0, 1, "yes") -> TypeError: monotone must be True or False
AboveThreshold(1e-3, 1e-3) -> at most 600 together
replaced(AboveThreshold(1.0, 1.0, monotone=True)) -> use monotone=False
replaced(noisy_maximum("gumbel", 1.0, monotone=True)) -> add_or_remove
replaced(noisy_maximum("exponential", 1.0, monotone=True)) -> add_or_remove
GaussianAboveThreshold(1.0, 1e-3, 5) -> query_noise_multiplier must lie in \[0.01
OptimalPartitions(1.0, 0.1, 10**7) -> partitions must be at most
ThresholdedPartitions(3.0, 1.0) -> TypeError: mechanism must be Laplace or Gaussian
ThresholdedPartitions(Laplace(1.0), inf) -> threshold must lie in
OptimalPartitions(1.0, 0.1).keep_probability(-1) -> num_users must be an integer
OptimalPartitions(1.0, 0.1).keep_probability(1.5) -> TypeError: num_users must be an integer
replaced(OptimalPartitions(1.0, 0.1)) -> adjacency='replace'
votes_renyi([3.0], 1.0, [2.0]) -> votes must be of shape
votes_renyi([3.0, -1.0], 1.0, [2.0]) -> votes\[1\] must
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(TABLE))
def test_refused(call, reason):
    """A wrong argument raises, and names itself, its value and its domain; what has no proven pair is refused with the reason."""
    refused_calls.check(call, reason, NAMES)


@pytest.mark.parametrize(
    ("room", "kind", "argument"),
    [one for room in (hs.mechanisms, hs.selection) for one in refused_calls.arguments(room, inspect.isclass)],
)
def test_every_number_is_checked(room, kind, argument):
    """Text, NaN, and what is outside of the domain that the docstring of a class states: refused with the argument's name."""
    refused_calls.check_argument(room, kind, argument)


CORE_PAIR = _core.discrete([0.6, 0.4], [0.4, 0.6])
CORE_STEPS = [(CORE_PAIR, 3.0)]
CORE_NAMES = vars(_core) | {"PAIR": CORE_PAIR, "STEPS": CORE_STEPS, "ONES": np.ones(2), "nan": math.nan}
OF_THE_CORE = r"""
gaussian(nan) -> noise_multiplier must be positive and finite, not nan
gaussian(-1.0) -> noise_multiplier must be positive and finite, not -1
gaussian(0.0) -> noise_multiplier must be positive and finite, not 0
gaussian(4e-309) -> noise_multiplier must be (above|at least) .*, not 4e-309
laplace(4e-309) -> noise_multiplier must be (above|at least) .*, not 4e-309
PAIR.masses(True, nan) -> epsilon must be a number, not nan
PAIR.delta(True, nan) -> epsilon must be a number, not nan
PAIR.one_step(True, False, nan) -> value must be a number, not nan
PAIR.one_step(True, True, nan) -> value must lie in .*, not nan
PAIR.one_step(True, True, -1.0) -> value must lie in .*, not -1
pld_bracket(STEPS, True, False, nan, 0.0, 1e-3) -> value must be a number, not nan
pld_bracket(STEPS, True, True, nan, 0.0, 1e-3) -> value must lie in .*, not nan
pld_bracket(STEPS, True, False, 1.0, -1.0, 1e-3) -> interval must be 0 or positive .*, not -1
pld_bracket(STEPS, True, False, 1.0, 0.0, nan) -> tolerance must be positive .*, not nan
pld_bracket(STEPS, True, False, 1.0, 0.0, 1e-3, nan) -> floor must be non-negative, not
contour_bracket([(gaussian(1.0), 1.0)], True, False, nan) -> value must be a number
last_iterate_bounds([ONES] * 3, 1) -> arguments must hold 10 arrays, not 3
cyclic_bounds([ONES] * 3, 1) -> arguments must hold 10 arrays, not 3
sampled_bounds([], True, True, 1) -> arguments must hold 10 arrays, not 0
sampled_splits([ONES], True) -> arguments must hold 10 arrays, not 1
dpsgd_epsilon([], 1) -> arguments must hold 4 arrays, not 0
pnsgd_gaussian([], 1) -> arguments must hold 9 arrays, not 0
contraction_sum([], 1) -> rounds must hold 3 arrays, not 0
trusted_aggregator([ONES] * 2, [ONES] * 5, True, 1) -> cells must hold 4 arrays, not 2
constant_shifted_interpolation(0.9, 1.0, 1e17, 0.0, 1.0) -> rounds must be an integer .*, not 1e
constant_shifted_interpolation(nan, 1.0, 9.0, 0.0, 1.0) -> rho must be non-negative .*, not
fft_round_trip([]) -> signal must hold two values or more, not 0
normalised([]) -> law must have a positive sum, not 0
shuffled(nan, 10.0, False, True) -> epsilon0 must lie in \(0, 20\], not nan
privacy_profile([], [], [], True) -> epsilons must not be empty
privacy_profile([0.0], [nan], [0.5], True) -> remove\[0\] must lie in \[0, 1\], not nan
privacy_profile([0.0], [0.5], [0.5, 0.1], True) -> add must be as long as epsilons .1., not of length 2
binomial_upper_tail(nan, 0.5, 1.0) -> trials must lie in .*, not nan
replaced_allocation(STEPS, [], nan, 1.0, True, True) -> steps must be an integer .*, not nan
allocated_steps(STEPS, nan, 1.0, True) -> steps must be an integer .*, not nan
allocated_steps([], 3.0, 1.0, True) -> steps must hold at least one
allocated_steps([(gaussian(1e-300), 1.0)], 3.0, 1.0, True) -> noise_multiplier of a random allocation must lie in .*, not 1e-300
allocated_steps([(gaussian(1e300), 1.0)], 3.0, 1.0, True) -> noise_multiplier of a random allocation must lie in .*, not 1e.300
allocated_steps([(gaussian(1.0), 1.0)], -1.0, 1.0, True) -> steps must be an integer .*, not -1
allocated_steps([(gaussian(1.0), 1.0)], 0.0, 1.0, True) -> steps must be an integer .*, not 0
allocated_steps([(gaussian(1.0), 1.0)], nan, 1.0, True) -> steps must be an integer .*, not nan
mixture_of_gaussians(1.0, [nan], [1.0], True) -> sensitivities must be 0 or in .*, not nan
fixed_size_steps(STEPS, nan, 1.0, False, True, True) -> num_records must be .*, not nan
fixed_size_steps([(gaussian(1.0), 1.0)], 10.0, nan, True, False, True) -> batch_size must be .*, not nan
poisson_replaced_steps(STEPS, nan, True, True) -> sampling_rate must lie in .*, not nan
truncated_poisson_sampled(1.0, 9.0, nan, 2.0, 1, True) -> sampling_rate must lie in
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(OF_THE_CORE))
def test_refused_by_the_core(call, reason):
    """The compiled core refuses by itself, whoever calls it: a number outside its domain, and a call with too few arrays, is a ValueError that names the argument."""
    refused_calls.check(call, reason, CORE_NAMES)
