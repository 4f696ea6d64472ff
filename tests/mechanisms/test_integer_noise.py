"""Noise on integers: one number against sums to fifty digits, vectors against every vector that is small, curvatures and published bounds."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ive

import hockeystick as hs
import integer_laws as exact
import slow_values
from enumeration import bracket, either, encloses, product
from hockeystick import _core

KINDS = {"gaussian": hs.DiscreteGaussian, "laplace": hs.DiscreteLaplace}


@pytest.mark.parametrize(("kind", "scale", "sensitivity"), slow_values.DISCRETE)
@pytest.mark.parametrize(("adjacency", "rate"), [("add_or_remove", 1.0), ("replace", 1.0), ("add_or_remove", 0.03)])
def test_one_step_agrees_with_the_sum(kind, scale, sensitivity, adjacency, rate):
    """Delta of one step, whole or sampled, in both directions, lies between ends that are close."""
    moved = sensitivity * (2 if adjacency == "replace" else 1)
    pair = _core.poisson_sampled(KINDS[kind](scale, sensitivity)._pair(adjacency), rate)
    with mp.workdps(50):
        for forward in (True, False):
            for eps in slow_values.DISCRETE_EPS:
                truth = slow_values.committed("discrete_noise_delta", kind, scale, moved, rate, forward, eps)
                lower, upper = pair.one_step(forward, False, eps)
                assert lower <= truth <= upper
                assert upper - lower <= 1e-11 * (1 + abs(mp.log(truth + mp.mpf("1e-300")))) * truth + mp.mpf("1e-300")


@pytest.mark.parametrize(("adjacency", "times"), [("add_or_remove", 1), ("replace", 2)])
@pytest.mark.parametrize(
    ("noise", "law"),
    [
        (hs.DistributedDiscreteGaussian(1.0, 3, 2.0, 1), exact.sum_of_discrete_gaussians(1.0, 3)),
        (hs.Skellam(3.0, 2.0, 1), exact.skellam(3.0)),
    ],
)
def test_two_steps_agree_with_all_outcomes(noise, law, adjacency, times):
    """Two releases, outcome by outcome, lie in the bracket; what is left out has a mass below 1e-15."""
    middle, reach = len(law) // 2, min(len(law) // 2 - 4, 90)
    p, q = (np.array([float(law[middle + k - shift]) for k in range(-reach, reach + 1)]) for shift in (2 * times, 0))
    for eps in (0.0, 0.5, 2.0):
        encloses(bracket(noise, eps, 2, adjacency), either(product(p, p), product(q, q), eps), 1e-12, 1e-15, 2e-3)


@given(sigma=st.floats(0.2, 20.0), less=st.integers(1, 6), more=st.integers(0, 6), eps=st.floats(-1.0, 5.0))
def test_moving_less_leaks_less(sigma, less, more, eps):
    """A query that moves by less than the sensitivity is dominated, for both kinds of noise."""
    for kind, scale in ((hs.DiscreteGaussian, sigma), (hs.DiscreteLaplace, 1 / sigma)):
        one, other = (
            kind(scale, moved)._pair("add_or_remove").one_step(True, False, eps) for moved in (less, less + more)
        )
        assert one[0] <= other[1]


def test_far_tails():
    """Delta goes on to the end of the doubles, its lower end too, and is no more than its upper end below them."""
    accountant = hs.Accountant().compose(hs.DiscreteGaussian(1.0))
    with mp.workdps(50):
        for eps in (20.2, 35.7, 39.3, 60.0):
            truth = slow_values.discrete_noise_delta("gaussian", 1.0, 1, 1.0, True, eps)
            encloses(accountant.delta_bracket(eps), truth)
    assert 0 < accountant.delta(35.7) < 1e-270
    assert accountant.epsilon(0.0) == math.inf


@pytest.mark.share(2)
@pytest.mark.parametrize("order", [1.5, 2.0, 7.0])
@pytest.mark.parametrize(("kind", "scale", "sensitivity"), slow_values.DISCRETE[1:5])
def test_renyi_divergence(kind, scale, sensitivity, order):
    """Never below the sum, and for discrete Laplace, or Gaussian of an integer order, that sum."""
    with mp.workdps(40):
        p, q = slow_values.discrete_pair(kind, scale, sensitivity)
        truth = mp.log(mp.fsum(a ** mp.mpf(order) * b ** (1 - mp.mpf(order)) for a, b in zip(p, q, strict=True)))
        truth /= order - 1
        found = hs.Accountant().compose(KINDS[kind](scale, sensitivity), 3).rdp(order)
        assert 3 * truth * (1 - mp.mpf("1e-13")) <= found
        if kind == "laplace" or order == int(order):
            assert found <= 3 * truth * (1 + mp.mpf("1e-10"))


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


@pytest.mark.parametrize(("sigma", "squared"), [(0.06, 5), (0.1, 4), (0.5, 4)])
def test_profile_at_its_kinks(sigma, squared):
    """An upper bound holds at the very doubles around a loss, where an outcome's loss is larger by less than a rounding."""
    ledger = hs.Accountant().compose(hs.DiscreteGaussianVector(sigma, math.sqrt(squared)))
    outcomes = [losses_of(sigma, vector) for vector in vectors_within(squared, squared)]
    with mp.workdps(exact.DIGITS):
        for k in range(1, 4):
            kink = (2 * (squared // 2 + k) - squared) / (2 * sigma * sigma)
            for eps in (math.nextafter(kink, 0.0), kink, math.nextafter(kink, math.inf), kink * (1 + 1e-14)):
                assert max(exact.delta(of_vector, eps) for of_vector in outcomes) <= ledger.delta(eps) + 1e-250


@pytest.mark.share(5)
@pytest.mark.parametrize("squared", [1, 2, 3, 4, 5, *(pytest.param(n, marks=pytest.mark.slow) for n in (8, 9))])
@pytest.mark.parametrize(("sigma", "dimension"), [(0.5, None), (1.0, None), (1.0, 2), (1.9, 3), (1.9, 1)])
def test_every_vector_is_dominated(sigma, dimension, squared):
    """One release leaks no less than under any vector, and attains the lower end; the pair is the largest of all at each epsilon."""
    noise = hs.DiscreteGaussianVector(sigma, math.sqrt(squared), dimension)
    outcomes = [losses_of(sigma, vector) for vector in vectors_within(squared, dimension or squared)]
    ledger = hs.Accountant().compose(noise)
    with mp.workdps(exact.DIGITS):
        for eps in EPS:
            truth = max(exact.delta(of_vector, eps) for of_vector in outcomes)
            encloses(ledger.delta_bracket(eps), truth)
            at_lattice = (2 * round(eps * sigma**2 + squared / 2) - squared) / (2 * sigma**2)
            if dimension is None and at_lattice >= 0 and squared >= 4:  # several vectors cannot be made larger
                assert ledger.delta(at_lattice) <= max(exact.delta(o, at_lattice) for o in outcomes) * (1 + 1e-9)


def test_other_vectors_in_other_releases():
    """Two releases, each moved by another of the worst vectors, leak no more than the composition of the pair."""
    with mp.workdps(exact.DIGITS):
        laws = [tuple(q for _, q in losses_of(1.0, vector)) for vector in ((2,), (1, 1, 1, 1))]
        outcomes = exact.moved(exact.convolution(*laws), 8)
        ledger = hs.Accountant().compose(hs.DiscreteGaussianVector(1.0, 2.0), 2)
        for eps in EPS:
            assert exact.delta(outcomes, eps) <= ledger.delta(eps)


VECTORS = [  # noise on vectors, its kind on one coordinate, and its parameters
    *(
        (hs.DiscreteGaussianVector, hs.DiscreteGaussian, (s,), d)
        for s, d in ((17.0, 3.0), (20.0, 9.5), (2.0, 5.2), (30.0, 60.0))
    ),
    *((hs.Skellam, hs.Skellam, (v,), d) for v, d in ((1.0, 2.3), (2500.0, 70.0))),
    (hs.DistributedDiscreteGaussian, hs.DistributedDiscreteGaussian, (1.0, 9), 2.3),
]


@pytest.mark.share(4)
@pytest.mark.parametrize(("kind", "on_one", "parameters", "sensitivity"), VECTORS)
def test_noise_on_vectors(kind, on_one, parameters, sensitivity):
    """Gaussian noise leaks no less than any of some vectors, sampled or not, and little more; the lower end is one of them."""
    noise, squared, vectors = kind(*parameters, sensitivity), math.floor(sensitivity**2), [()]
    while squared and len(vectors) < 9:  # each coordinate as large as it can be
        part = math.isqrt(squared)
        vectors.append((*vectors[-1], part))
        squared -= part * part
    vectors[0] = (1,) * math.floor(sensitivity**2) if sensitivity < 4.5 else vectors[1]

    def on_coordinates(vector, times):
        last = [1] * (kind is on_one)  # the dimension
        parts = [(on_one(*parameters, times * part, *last), vector.count(part)) for part in sorted(set(vector))]
        return hs.mechanisms.Composed(parts)

    for adjacency, times in (("add_or_remove", 1), ("replace", 2)):
        for eps in EPS[::3]:
            found = bracket(noise, eps, adjacency=adjacency)
            alone = [bracket(on_coordinates(vector, times), eps) for vector in vectors]
            assert max(each.lower for each in alone) <= found.upper
            assert found.lower <= max(each.upper for each in alone)
            if found.upper > 1e-3 and parameters[0] > 1.0:
                assert found.upper <= 1.4 * alone[-1].upper
    sampled = bracket(hs.PoissonSampled(noise, 0.1), 0.5)
    assert bracket(hs.PoissonSampled(on_coordinates(vectors[-1], 1), 0.1), 0.5).lower <= sampled.upper
    assert 0 < sampled.lower <= sampled.upper


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


WIDE = [  # noise, steps, the distance of normal noise of the same variance, and how near its epsilon both ends are
    *((hs.DiscreteGaussian(s, round(s)), 1, 1.0, (1 - 20 / s, 1 + 20 / s) * 2) for s in (100.0, 1e3, 1e5)),
    (hs.DistributedDiscreteGaussian(2.0, 1000, math.sqrt(1000) * 2.0, 10**6), 1, 1.0, (0.97, 1.0, 1.0, 1.1)),
    (hs.DiscreteGaussianVector(20.0, 9.0), 40, math.sqrt(40) * 9 / 20, (0.99, 1.001, 1.0, 1.02)),
    (hs.DistributedDiscreteGaussian(3.0, 40, 8.0, 99), 40, 8 / 3, (0.99, 1.001, 1.0, 1.02)),
    (hs.Skellam(400.0, 20.0), 40, math.sqrt(40), (0.97, 1.001, 1.0, 1.01)),
]


@pytest.mark.parametrize(("noise", "count", "mu", "near"), WIDE)
def test_wide_noise_is_nearly_normal(noise, count, mu, near):
    """Noise of a large variance, and the sum of a thousand clients' in any dimension, is nearly normal noise of the same variance."""
    found = hs.Accountant().compose(noise, count).epsilon_bracket(1e-6)
    least, low, above, high = (share * hs.gdp_epsilon(mu, 1e-6) for share in near)
    assert least <= found.lower <= low
    assert above <= found.upper <= high


def test_concentration():
    """The rho of a vector is the sensitivity squared over twice the variance, of a sum too, and Skellam noise has none."""
    rho = hs.zcdp_rho(hs.Accountant().compose(hs.DiscreteGaussianVector(3.0, 7.0), 4))
    assert 4 * 49 / 18 <= rho <= 4 * 49 / 18 * (1 + 1e-12)
    assert hs.zcdp_rho(hs.Accountant().compose(hs.DistributedDiscreteGaussian(3.0, 5, 7.0))) == pytest.approx(49 / 90)
    with pytest.raises(ValueError, match="rho-zCDP"):
        hs.zcdp_rho(hs.Accountant().compose(hs.Skellam(3.0, 7.0)))


SUMS = [(sigma, number) for sigma in (0.4, 0.5, 0.75, 1.0, 1.5) for number in (1, 2, 3, 5)]
VARIANCES = (0.01, 0.3, 1.0, 2.9, 3.1, 10.0, 80.0, 400.0)
ORDERS = (1.1, 1.5, 2.0, 2.5, 3.0, 4.7, 8.0, 17.3)


def curvature(noise):
    """Return the bound of the largest second difference of -log P: the Renyi divergence of order 2, moved by 1."""
    return hs.Accountant().compose(noise).rdp(2.0)


@pytest.mark.share(2)
@pytest.mark.parametrize(("sigma", "number"), SUMS)
def test_curvature_of_sums(sigma, number):
    """The recursion is above every second difference, equal to the largest for one and two, and within 7 % of it for five."""
    law = exact.sum_of_discrete_gaussians(sigma, number)
    middle = len(law) // 2
    found = curvature(hs.DistributedDiscreteGaussian(sigma, number, 1.0))
    with mp.workdps(100):
        around = range(middle - 3 * number, middle + 3 * number + 1)
        largest = max(mp.log(law[k] ** 2 / (law[k - 1] * law[k + 1])) for k in around)
        assert largest <= found <= largest * (1 + 1e-12 if number < 3 else 1.07)


def test_curvature_of_many():
    """Of 10^6 clients it is that of normal noise of the sum's variance, or the discrete Gaussian's where that is the same."""
    with mp.workdps(40):
        for sigma in (0.5, 0.75, 1.0, 2.0):
            law = exact.discrete_gaussian(sigma)
            variance = mp.fsum(p * (k - len(law) // 2) ** 2 for k, p in enumerate(law))
            for number in (10**4, 10**6, 10**12):
                limit = 1 / (number * variance)
                found = curvature(hs.DistributedDiscreteGaussian(sigma, number, 1.0))
                assert limit * (1 - 1e-9) <= found <= limit * 1.01


@pytest.mark.parametrize("variance", [*VARIANCES, 1e3, 9999.0, 1e4, 1e6])
def test_curvature_of_skellam(variance):
    """It is 2 log(I_0/I_1), and no second difference is larger."""
    with mp.workdps(60):
        x = mp.mpf(variance)
        largest = 2 * mp.log(mp.besseli(0, x) / mp.besseli(1, x))
        assert largest <= curvature(hs.Skellam(variance, 1.0)) <= largest * (1 + 1e-8)
        values = [mp.besseli(k, x) for k in range(60)]
        assert all(mp.log(values[k] ** 2 / (values[k - 1] * values[k + 1])) < largest for k in range(1, 59))


@pytest.mark.parametrize(("sigma", "number"), [(0.6, 2), (1.0, 2), (1.0, 5), (0.75, 3), (1.0, 9), (1.5, 5)])
def test_log_range_of_sums(sigma, number):
    """The ratio of a sum's law to the discrete Gaussian varies by no more, and for two by exactly as much."""
    law = exact.sum_of_discrete_gaussians(sigma, number)
    middle, found = len(law) // 2, _core.sum_of_discrete_gaussian_noise(sigma, number).log_range
    with mp.workdps(100):
        logs = [
            mp.log(law[middle + k]) + mp.mpf(k) ** 2 / (2 * number * mp.mpf(sigma) ** 2)
            for k in range(-5 * number, 5 * number + 1)
        ]
        assert max(logs) - min(logs) <= found
        assert number > 2 or found <= (max(logs) - min(logs)) * (1 + 1e-9)


LAWS = [  # noise, its law, and by how much it moves
    *(
        (hs.DistributedDiscreteGaussian(*noise, float(shift)), exact.sum_of_discrete_gaussians, noise, shift)
        for shift, noise in itertools.product((1, 2, 3, 7), SUMS)
    ),
    *(
        (hs.Skellam(variance, float(shift)), exact.skellam, (variance,), shift)
        for shift, variance in itertools.product((1, 2, 5), VARIANCES)
    ),
]


@pytest.mark.share(5)
@pytest.mark.parametrize(("noise", "law", "parameters", "shift"), LAWS)
def test_divergences(noise, law, parameters, shift):
    """The bound is above the sum at every order, whole or not, and equal to it at small whole orders of one discrete Gaussian."""
    outcomes, ledger = exact.moved(law(*parameters), shift), hs.Accountant().compose(noise)
    with mp.workdps(60):
        for order in ORDERS:
            truth, found = exact.renyi(outcomes, order), ledger.rdp(order)
            assert truth <= found
            if getattr(noise, "num_clients", 2) == 1 and order == int(order) and order * shift < 15 * noise.noise_std:
                assert found <= truth * (1 + 1e-12)


@pytest.mark.parametrize(("variance", "rate"), [(1.0, 0.5), (1.0, 0.05), (2.0, 0.5)])
def test_samples_of_two_coordinates_of_a_replaced_record(variance, rate):
    """Both ends beside the worst of all pairs of vectors of norm at most the root of 2, by enumeration: opposite ones need not be the worst."""
    one = ive(np.abs(np.arange(-30, 31)), variance)
    still = np.outer(one, one)
    moved = [np.roll(still, v, (0, 1)) for v in itertools.product((-1, 0, 1), repeat=2)]
    mixed = [(1.0 - rate) * still + rate * law for law in moved]
    bracket = hs.Accountant("replace").compose(hs.PoissonSampled(hs.Skellam(variance, 2.0**0.5, 2), rate)).delta_bracket
    for eps in (0.0, 0.1, 0.7):
        worst = max(np.maximum(p - math.exp(eps) * q, 0.0).sum() for p in mixed for q in mixed)
        assert bracket(eps).lower <= worst * (1 + 1e-9)
        assert 0.0 < worst * (1 - 1e-9) <= bracket(eps).upper
