"""Noise on integers: one number against sums to fifty digits and peers, vectors against every vector that is small."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
import integer_laws as exact
import slow_values
from enumeration import bracket, either, encloses, loss_delta, product
from hockeystick import _core
from hockeystick.mechanisms import integer_laws

inf = math.inf


MECHANISMS = [
    (hs.DiscreteGaussian if kind == "gaussian" else hs.DiscreteLaplace)(scale, sensitivity)
    for kind, scale, sensitivity in slow_values.DISCRETE
]


def described(mechanism):
    """Return the kind and the scale of the noise."""
    if isinstance(mechanism, hs.DiscreteGaussian):
        return "gaussian", mechanism.sigma
    return "laplace", mechanism.parameter


def pair(mechanism, moved):
    """Return the laws of the moved noise and the noise."""
    return slow_values.discrete_pair(*described(mechanism), moved)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize(("adjacency", "rate"), [("add_or_remove", 1.0), ("replace", 1.0), ("add_or_remove", 0.03)])
def test_one_step_agrees_with_the_sum(mechanism, adjacency, rate):
    """Delta of one step, whole or sampled, in both directions, lies between ends that are close."""
    moved = mechanism.sensitivity * (2 if adjacency == "replace" else 1)
    pair = _core.poisson_sampled(mechanism._pair(adjacency), rate)
    with mp.workdps(50):
        for forward in (True, False):
            for eps in slow_values.DISCRETE_EPS:
                truth = slow_values.committed("discrete_noise_delta", *described(mechanism), moved, rate, forward, eps)
                lower, upper = pair.one_step(forward, False, eps)
                assert lower <= truth <= upper
                assert upper - lower <= 1e-11 * (1 + abs(mp.log(truth + mp.mpf("1e-300")))) * truth + mp.mpf("1e-300")


@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
@pytest.mark.parametrize("mechanism", MECHANISMS[1:3], ids=repr)
def test_two_steps_agree_with_a_convolution(mechanism, adjacency):
    """The loss of two discrete Gaussians is that of their outcomes' sum, whose law is a convolution."""
    moved = mechanism.sensitivity * (2 if adjacency == "replace" else 1)
    with mp.workdps(30):
        p = [float(x) for x in pair(mechanism, moved)[0]]
    twice = np.convolve(p, p)
    reach = (len(p) - 1 - moved) // 2
    loss = moved * (np.arange(len(twice)) - 2 * reach - moved) / mechanism.sigma**2
    for eps in (0.0, 0.5, 2.0):
        truth = loss_delta(twice, loss, eps)
        encloses(bracket(mechanism, eps, 2, adjacency), truth, 1e-12, 1e-300, 2e-3)


@given(sigma=st.floats(0.2, 20.0), less=st.integers(1, 6), more=st.integers(0, 6), eps=st.floats(-1.0, 5.0))
def test_moving_less_leaks_less(sigma, less, more, eps):
    """A query that moves by less than the sensitivity is dominated, for both kinds of noise."""
    for of in (hs.DiscreteGaussian, lambda x, s: hs.DiscreteLaplace(1 / x, s)):
        deltas = []
        for sensitivity in (less, less + more):
            pair = of(sigma, sensitivity)._pair("add_or_remove")
            deltas.append(pair.one_step(True, False, eps))
        assert deltas[0][0] <= deltas[1][1]


def test_wide_noise_is_nearly_continuous():
    """From sigma = 10 up a discrete Gaussian is the continuous one to 1e-3, and no table is too long."""
    for sigma in (10.0, 1e3, 1e5):
        moved = int(sigma)
        found = hs.Accountant().compose(hs.DiscreteGaussian(sigma, moved)).delta(1.0)
        assert found == pytest.approx(float(hs.theta(1.0, moved / sigma)), rel=20 / sigma)


def test_far_tails():
    """Delta goes on to the end of the doubles, its lower end too, and is no more than its upper end below them."""
    accountant = hs.Accountant().compose(hs.DiscreteGaussian(1.0))
    with mp.workdps(50):
        for eps in (20.2, 35.7, 39.3, 60.0):
            truth = slow_values.discrete_noise_delta("gaussian", 1.0, 1, 1.0, True, eps)
            encloses(accountant.delta_bracket(eps), truth)
    assert 0 < accountant.delta(35.7) < 1e-270
    assert accountant.epsilon(0.0) == inf


def test_largest_loss_of_discrete_laplace():
    """At delta = 0 epsilon is parameter times how far a record moves, n times."""
    for adjacency, moved in (("add_or_remove", 3), ("replace", 6)):
        found = hs.Accountant(adjacency).compose(hs.DiscreteLaplace(0.7, 3), 5).epsilon_bracket(0.0)
        assert found.lower <= 3.5 * moved <= found.upper <= 3.5 * moved * (1 + 1e-12)


@pytest.mark.share(2)
@pytest.mark.parametrize("order", [1.5, 2.0, 7.0])
@pytest.mark.parametrize("mechanism", MECHANISMS[1:5], ids=repr)
def test_renyi_divergence(mechanism, order):
    """Never below the sum, and for discrete Laplace, or Gaussian of an integer order, that sum."""
    with mp.workdps(40):
        p, q = pair(mechanism, mechanism.sensitivity)
        truth = mp.log(mp.fsum(a ** mp.mpf(order) * b ** (1 - mp.mpf(order)) for a, b in zip(p, q, strict=True)))
        truth /= order - 1
        found = hs.Accountant().compose(mechanism, 3).rdp(order)
        assert 3 * truth * (1 - mp.mpf("1e-13")) <= found
        if isinstance(mechanism, hs.DiscreteLaplace) or order == int(order):
            assert found <= 3 * truth * (1 + mp.mpf("1e-10"))


@pytest.mark.parametrize("mechanism", [hs.DiscreteGaussian(3.0, 2), hs.DiscreteLaplace(0.4, 2)], ids=repr)
def test_peer(mechanism):
    """Ten steps agree with dp_accounting, whose grid is pessimistic."""
    pld = pytest.importorskip("dp_accounting").pld.privacy_loss_distribution
    if isinstance(mechanism, hs.DiscreteGaussian):
        theirs = pld.from_discrete_gaussian_mechanism(mechanism.sigma, mechanism.sensitivity)
    else:
        theirs = pld.from_discrete_laplace_mechanism(mechanism.parameter, mechanism.sensitivity)
    theirs = theirs.self_compose(10)
    found = hs.Accountant().compose(mechanism, 10)
    for eps in (0.5, 2.0, 5.0):
        assert found.delta_bracket(eps).lower <= theirs.get_delta_for_epsilon(eps) * (1 + 1e-9)
        assert found.delta(eps) == pytest.approx(theirs.get_delta_for_epsilon(eps), rel=1e-2)


EPS = (0.0, 0.05, 0.25, 0.5, 1.0, 1.7, 2.5, 4.0)


def stretched(law, factor):
    """Return the law of a multiple."""
    zero = mp.mpf(0)
    return tuple(law[k // factor] if k % factor == 0 else zero for k in range(factor * (len(law) - 1) + 1))


def losses_of(sigma, vector):
    """Return the outcomes of T = s.X, moved by |s|^2, for a vector s of integers."""
    with mp.workdps(exact.DIGITS):
        law = (mp.mpf(1),)
        for part in vector:
            law = exact.convolution(law, stretched(exact.discrete_gaussian(sigma), part))
        return exact.moved(law, sum(part * part for part in vector))


def vectors_within(squared, dimension):
    """Return all non-zero vectors of integers up to signs and order, by trying all."""
    most = math.isqrt(squared)
    found = itertools.combinations_with_replacement(range(most + 1), min(dimension, squared))
    return [tuple(part for part in v if part) for v in found if 0 < sum(part * part for part in v) <= squared]


@pytest.mark.parametrize("squared", [1, 2, 3, 4, 5, 6, 8, 9, 12])
@pytest.mark.parametrize("dimension", [1, 2, 3, 12])
def test_largest_vectors(squared, dimension):
    """Each vector is below one of the largest, coordinate by coordinate, and none of these is below another."""
    largest = integer_laws.largest_vectors(squared, dimension)

    def below(small, large):
        padded = sorted((*large, *[0] * dimension), reverse=True)
        return all(a <= b for a, b in zip(sorted(small, reverse=True), padded, strict=False))

    within = vectors_within(squared, dimension)
    assert all(any(below(vector, large) for large in largest) for vector in within)
    assert not any(below(a, b) for a, b in itertools.permutations(largest, 2))
    assert {tuple(sorted(vector)) for vector in largest} <= {tuple(sorted(vector)) for vector in within}


@pytest.mark.parametrize(("sigma", "vector"), [(0.06, (1, 1, 1)), (0.1, (1, 2)), (0.5, (1, 1))])
def test_profile_at_its_kinks(sigma, vector):
    """An upper bound holds at the very double that it is of, where an outcome's loss is larger by less than a rounding."""
    epsilons = integer_laws._losses(sigma, [vector])
    bounds = integer_laws._deltas(sigma, vector, epsilons)
    norm = sum(part * part for part in vector)
    with mp.workdps(exact.DIGITS):
        law = (mp.mpf(1),)
        for part in vector:
            law = exact.convolution(law, stretched(exact.discrete_gaussian(sigma), part))
        variance, centre = mp.mpf(sigma) ** 2, len(law) // 2
        for eps, bound in zip(epsilons[:6], bounds[:6], strict=True):
            beyond = ((p, mp.mpf(float(eps)) - (2 * (i - centre) + norm) / (2 * variance)) for i, p in enumerate(law))
            delta = mp.fsum(-p * mp.expm1(less) for p, less in beyond if less < 0)
            assert delta <= bound + 1e-250


def test_a_vector_is_one_integer():
    """The sum over all outcomes of two coordinates has the delta of the one integer T."""
    law = exact.discrete_gaussian(0.7)
    with mp.workdps(exact.DIGITS):
        both = exact.product(exact.moved(law, 2), exact.moved(law, 1))
        for eps in EPS:
            one, other = exact.delta(both, eps), exact.delta(losses_of(0.7, (2, 1)), eps)
            assert abs(one - other) <= mp.mpf("1e-30")


@pytest.mark.share(4)
@pytest.mark.parametrize("squared", [1, 2, 3, 4, 5, *(pytest.param(n, marks=pytest.mark.slow) for n in (8, 9))])
@pytest.mark.parametrize(("sigma", "dimension"), [(0.5, None), (1.0, None), (1.0, 2), (1.9, 3), (1.9, 1)])
def test_every_vector_is_dominated(sigma, dimension, squared):
    """One release leaks no less than under any vector, and attains the lower end; the pair is the largest of all at each epsilon."""
    noise = hs.DiscreteGaussianVector(sigma, math.sqrt(squared), dimension)
    vectors = integer_laws.largest_vectors(squared, dimension)
    outcomes = [losses_of(sigma, vector) for vector in vectors]
    ledger = hs.Accountant().compose(noise)
    with mp.workdps(exact.DIGITS):
        for eps in EPS:
            truth = max(exact.delta(of_vector, eps) for of_vector in outcomes)
            encloses(ledger.delta_bracket(eps), truth)
            at_lattice = (2 * round(eps * sigma**2 + squared / 2) - squared) / (2 * sigma**2)
            if dimension is None and at_lattice >= 0 and len(vectors) > 1:
                assert ledger.delta(at_lattice) <= max(exact.delta(o, at_lattice) for o in outcomes) * (1 + 1e-9)


@pytest.mark.share(3)
@pytest.mark.parametrize(("first", "second"), [((2,), (1, 1, 1, 1)), ((1, 1, 1, 1), (1, 1, 1, 1)), ((2,), (2,))])
def test_other_vectors_in_other_releases(first, second):
    """Two releases, each moved by another of the worst vectors, leak no more than the composition of the pair."""
    with mp.workdps(exact.DIGITS):
        laws = [tuple(q for _, q in losses_of(1.0, vector)) for vector in (first, second)]
        outcomes = exact.moved(exact.convolution(*laws), 8)
        ledger = hs.Accountant().compose(hs.DiscreteGaussianVector(1.0, 2.0), 2)
        for eps in EPS:
            assert exact.delta(outcomes, eps) <= ledger.delta(eps)


@pytest.mark.share(2)
@pytest.mark.parametrize(("sigma", "sensitivity"), [(17.0, 3.0), (20.0, 9.5), (8.0, 14.5), (30.0, 60.0)])
def test_wide_noise(sigma, sensitivity):
    """Rounded Gaussian noise leaks no less than any of some vectors, and little more; the lower end is one of them."""
    squared = integer_laws.squared_norm(sensitivity)
    noise = hs.DiscreteGaussianVector(sigma, sensitivity)
    vectors = [integer_laws.first_vector(squared, dimension) for dimension in (1, 2, 3, None)]
    for adjacency, times in (("add_or_remove", 1), ("replace", 2)):
        ledger = hs.Accountant(adjacency).compose(noise)
        for eps in EPS:
            found = ledger.delta_bracket(eps)
            for vector in vectors:
                steps = hs.Accountant()
                for part in vector:
                    steps.compose(hs.DiscreteGaussian(sigma, times * part))
                alone = steps.delta_bracket(eps)
                assert alone.lower <= found.upper
            assert found.lower <= alone.upper
            if found.upper > 1e-3:
                assert found.upper <= 1.4 * alone.upper


ONE_DIMENSION = [  # noise, and the law of the one number that it moves
    *(
        (hs.DistributedDiscreteGaussian(*sum_of, float(shift), 1), exact.sum_of_discrete_gaussians, sum_of)
        for shift, sum_of in itertools.product((1, 2, 3), ((0.5, 3), (1.0, 2), (1.0, 5), (1.5, 3)))
    ),
    *(
        (hs.Skellam(variance, float(shift), 1), exact.skellam, (variance,))
        for variance, shift in ((0.3, 1), (2.0, 1), (2.0, 4), (50.0, 7), (400.0, 20))
    ),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("noise", "law", "parameters"), ONE_DIMENSION)
def test_one_dimension(noise, law, parameters):
    """In one dimension the bracket holds the sum, closely, whatever the adjacency."""
    with mp.workdps(60):
        for (adjacency, times), eps in itertools.product((("add_or_remove", 1), ("replace", 2)), EPS):
            found = bracket(noise, eps, adjacency=adjacency)
            truth = exact.delta(exact.moved(law(*parameters), times * int(noise.sensitivity)), eps)
            encloses(found, truth)
            assert found.upper <= truth * (1 + 1e-8) or truth < mp.mpf("1e-200")


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize(
    "noise", [hs.DiscreteGaussianVector(10.0, 10.0, 50), hs.DistributedDiscreteGaussian(5.0, 4, 10.0, 50)], ids=repr
)
def test_deep_deltas_of_rounded_noise(noise, count):
    """Beyond the probability of 1e-20 with which rounded noise tells all, epsilon is finite: the Renyi divergences answer.

    If one coordinate moves by 10, the sum S of its noises over n steps decides: it is a discrete Gaussian of variance 100 n up to 1e-80, moved by
    10 n, and its loss is (S - 5 n)/10.
    """
    ledger = hs.Accountant().compose(noise, count)
    with mp.workdps(120):
        weights = [mp.exp(-(mp.mpf(k) ** 2) / (200 * count)) for k in range(1200 * count)]
        tails = list(itertools.accumulate(reversed(weights), initial=mp.mpf(0)))[::-1]
        moved, total = 10 * count, 2 * tails[0] - weights[0]
        for delta in (1e-12, 1e-21, 1e-40, 1e-100, 1e-300):
            found = ledger.epsilon_bracket(delta)
            for eps, below in ((found.upper, True), (0.95 * found.upper, False)):
                first = math.floor(10 * eps + moved / 2) + 1
                truth = (tails[first - moved] - mp.exp(eps) * tails[first]) / total
                assert (truth <= delta) == below
            assert ledger.delta(found.upper) <= delta * (1 + 1e-6)
            assert ledger.epsilon(delta) == found.upper


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        (hs.DistributedDiscreteGaussian(1.0, 3, 2.0, 1), exact.sum_of_discrete_gaussians(1.0, 3)),
        (hs.Skellam(3.0, 2.0, 1), exact.skellam(3.0)),
    ],
    ids=["sum", "skellam"],
)
def test_releases_add_up(noise, law):
    """Two releases, outcome by outcome, lie in the bracket."""
    middle = len(law) // 2
    p, q = (np.array([float(law[middle + k - moved]) for k in range(-24, 27)]) for moved in (2, 0))
    for eps in EPS:
        encloses(bracket(noise, eps, 2), either(product(p, p), product(q, q), eps), 1e-12, 1e-12, 4e-3)


@pytest.mark.parametrize(
    "noise",
    [
        hs.DiscreteGaussianVector(0.0257, 2.9),
        hs.DiscreteGaussianVector(0.1, 3.6, 7),
        hs.DiscreteGaussianVector(0.2, 4.0),
        hs.DistributedDiscreteGaussian(0.01, 3, 1.0, 1),
        hs.DistributedDiscreteGaussian(0.3, 5, 40.0, 1),
        hs.Skellam(1e-6, 1.0, 1),
        hs.Skellam(4.0, 90.0, 1),
        hs.Skellam(4.0, 1e6, 1),
    ],
    ids=repr,
)
@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_too_little_noise(noise, adjacency):
    """Laws that hardly overlap have a delta of nearly 1, and no less than the mass of what only one of them has."""
    found = bracket(noise, 3.0, adjacency=adjacency)
    assert 0 <= found.lower <= 1
    assert 0.999 <= found.upper <= 1


@pytest.mark.parametrize("law", [integer_laws.skellam(7.0), integer_laws.sum_of_discrete_gaussians(1.0, 5)])
def test_masses(law):
    """Both ends enclose every mass, and what is missing is beyond the reach."""
    with mp.workdps(60):
        truth = exact.skellam(7.0) if law is integer_laws.skellam(7.0) else exact.sum_of_discrete_gaussians(1.0, 5)
        off = len(truth) // 2 - law.reach
        inside = truth[off : len(truth) - off] if off >= 0 else [0.0] * -off + list(truth) + [0.0] * -off
        for low, mass, high in zip(law.low, inside, law.high, strict=True):
            assert mass == 0 or (low <= mass <= high <= low * (1 + 1e-10))
        assert sum(truth[:off]) + sum(truth[len(truth) - off :]) <= law.missing or off < 0


def test_many_clients_are_normal_noise():
    """A thousand clients with sigma 2 are within a percent of normal noise of the same variance, in any dimension."""
    norm = math.sqrt(1000) * 2.0
    found = hs.Accountant().compose(hs.DistributedDiscreteGaussian(2.0, 1000, norm, 10**6)).epsilon_bracket(1e-6)
    assert 0.97 * hs.gdp_epsilon(1.0, 1e-6) <= found.lower <= hs.gdp_epsilon(1.0, 1e-6)
    assert hs.gdp_epsilon(1.0, 1e-6) <= found.upper <= 1.1 * hs.gdp_epsilon(1.0, 1e-6)


@pytest.mark.parametrize(
    "noise", [hs.DiscreteGaussianVector(20.0, 9.0), hs.DistributedDiscreteGaussian(3.0, 40, 8.0, 99)]
)
def test_many_steps_of_wide_noise(noise):
    """The lower end of forty steps is that of forty of one coordinate, which no grid of losses is needed for, and close."""
    found = hs.Accountant().compose(noise, 40).epsilon_bracket(1e-6)
    sigma = 20.0 if isinstance(noise, hs.DiscreteGaussianVector) else math.sqrt(40) * 3.0
    normal = hs.gdp_epsilon(math.sqrt(40) * noise.sensitivity / sigma, 1e-6)
    assert 0.99 * normal <= found.lower <= normal * 1.001
    assert normal <= found.upper <= 1.02 * normal


def test_concentration():
    """The rho of a vector is the sensitivity squared over twice the variance, of a sum too, and Skellam noise has none."""
    rho = hs.zcdp_rho(hs.Accountant().compose(hs.DiscreteGaussianVector(3.0, 7.0), 4))
    assert 4 * 49 / 18 <= rho <= 4 * 49 / 18 * (1 + 1e-12)
    assert hs.zcdp_rho(hs.Accountant().compose(hs.DistributedDiscreteGaussian(3.0, 5, 7.0))) == pytest.approx(49 / 90)
    with pytest.raises(ValueError, match="rho-zCDP"):
        hs.zcdp_rho(hs.Accountant().compose(hs.Skellam(3.0, 7.0)))
