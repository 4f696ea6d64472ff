"""Shuffled batches against a sum over outputs, simulated shuffles and the events of the paper."""

import math

import mpmath as mp
import numpy as np
import pytest
import scipy.fft
from scipy.special import log_ndtr, ndtr

import high_precision as exact
import hockeystick as hs
import hockeystick._core as core

LARGEST, SUM = "the largest output against others of -1", "a sum of the outputs against others of -1"


def attained(noise, num_batches, by, eps):
    """Return the lower ends of delta, removing and adding a record, of one epoch's pair of this name."""
    accountant = core.Accountant()
    pair = dict(core.attained_epochs(noise, float(num_batches)))[by]
    for upper in (True, False):
        accountant.compose(pair, 1.0, upper)
    answers = {answer.forward: answer.lower for answer in accountant.answers(False, eps, "auto", False)}
    return answers[True], answers[False]


def of_largest(noise, num_batches, eps):
    """Return delta of both directions of the largest output, to thirty digits: its density ratio rises."""
    r, t = 1 / mp.mpf(noise), num_batches - 1

    def below(a, m):
        return mp.ncdf(a - m) * mp.ncdf(a) ** t

    def density(a, m):
        return mp.npdf(a - m) * mp.ncdf(a) ** t + t * mp.ncdf(a - m) * mp.npdf(a) * mp.ncdf(a) ** (t - 1)

    def crossing(level):
        low, high = r - 36, 2 * r + 36
        for _ in range(90):
            middle = (low + high) / 2
            low, high = (low, middle) if density(middle, 2 * r) > level * density(middle, r) else (middle, high)
        return low

    def above(a, m):
        q, upper = mp.ncdf(-a), mp.ncdf(m - a)
        return upper + (1 - upper) * -mp.expm1(t * mp.log1p(-q))

    first, second = crossing(mp.exp(eps)), crossing(mp.exp(-eps))
    removed = above(first, 2 * r) - mp.exp(eps) * above(first, r)
    added = below(second, r) - mp.exp(eps) * below(second, 2 * r)
    return float(removed), float(added)


@pytest.mark.share(8, by_day=4)
@pytest.mark.parametrize("noise", [0.35, 0.7, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("num_batches", [2, 30, 1000, 10**6])
def test_cells_lie_below_the_largest_output(noise, num_batches):
    """The cells of the largest output attain what it leaks, but for their width, and no more, down to 1e-200."""
    with mp.workdps(30):
        for eps in (0.0, 0.3, 2.0, 8.0, 30.0, 100.0):
            found, truth = attained(noise, num_batches, LARGEST, eps), of_largest(noise, num_batches, eps)
            assert found[0] <= max(truth[0], 0.0)
            assert found[1] <= max(truth[1], 0.0)
            assert truth[0] < 1e-100 or found[0] >= 0.97 * truth[0]
            assert truth[1] < 1e-10 or found[1] >= 0.97 * truth[1]


def labels_of_the_page(r, num_batches):
    """Return labels, cells and the cap as docs/accounting/allocation.md describes them."""
    cap = float(hs.q_inv(1e-4 / num_batches))
    edges = np.linspace(-9.0, cap, 20_001)
    x = np.concatenate([[-9.0], 0.5 * (edges[1:] + edges[:-1])])
    value = np.exp(2 * r * (x - r)) - np.exp(r * (x - r / 2))
    still = np.diff(ndtr(edges), prepend=0.0)
    spread = math.sqrt(num_batches * (still @ (value - still @ value) ** 2))
    step = max(spread / 256, 4 * np.abs(value).max() / 2**16)
    return np.rint(value / step).astype(np.int64) % 2**16, edges, cap


def masses_of_outputs(edges, mean):
    """Return the masses of cells, of which the first has no lower end, each to long double."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = np.diff(edges.astype(np.longdouble)) / 2
    x = (edges[:-1] + half) + half * nodes.astype(np.longdouble)[:, np.newaxis] - np.longdouble(mean)
    cells = half * (weights.astype(np.longdouble) @ np.exp(-x * x / 2)) / np.sqrt(2 * np.longdouble(math.pi))
    return np.concatenate([[np.longdouble(ndtr(edges[0] - mean))], cells])


@pytest.mark.share(6, by_day=3)
@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is no longer than double")
@pytest.mark.parametrize("noise", [0.4, 0.8, 1.5, 4.0])
@pytest.mark.parametrize("num_batches", [2, 3, 10, 300, 100_000])
def test_sums_lie_below_their_own_law(noise, num_batches):
    """The pair attains what the law of the sum, by a transform of long doubles, and of the largest output leak, up to merging, and no more."""
    r = 1 / noise
    labels, edges, cap = labels_of_the_page(r, num_batches)

    def spectrum(mean):
        law = np.zeros(2**16, np.longdouble)
        np.add.at(law, labels, masses_of_outputs(edges, mean))
        return scipy.fft.rfft(law)

    others = np.ones(2**15 + 1, np.clongdouble)
    base = spectrum(0.0)
    for bit in bin(num_batches - 1)[2:]:
        others = others * others * (base if bit == "1" else 1)
    tops = np.linspace(cap, cap + 2 * r + 37, 4001)
    laws = []
    for moved in (2 * r, r):
        sums = np.maximum(scipy.fft.irfft(spectrum(moved) * others, 2**16), 0)
        above = -np.expm1(log_ndtr(tops - moved) + (num_batches - 1) * log_ndtr(tops))
        laws.append(np.concatenate([sums, above[:-1] - above[1:]]))
    for eps in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        found = attained(noise, num_batches, SUM, eps)
        for (p, q), lower in zip((laws, laws[::-1]), found, strict=True):
            exact = float(np.maximum(p - np.exp(np.longdouble(eps)) * q, 0).sum())
            assert lower <= exact * (1 + 1e-6) + 1e-14
            if exact > 1e-5:
                assert lower >= 0.99 * exact


@pytest.mark.parametrize(("noise", "num_batches"), [(0.4, 10), (0.5, 1000), (1.0, 1000), (3.0, 50)])
@pytest.mark.parametrize("eps", [0.5, 2.0, 6.0])
def test_lower_end_is_not_below_the_largest_output(noise, num_batches, eps):
    """The bracket knows at least what the largest output does, up to the width of its cells, and stops at a Gaussian step."""
    bracket = hs.shuffled_batches_delta_bracket(eps, noise_multiplier=noise, num_batches=num_batches)
    with mp.workdps(30):
        assert max(of_largest(noise, num_batches, eps)) * 0.97 <= bracket.lower <= bracket.upper
    assert bracket.upper == pytest.approx(float(hs.theta(eps, 1 / noise)), rel=1e-9)
    assert bracket.status == "certified"


@pytest.mark.share(4)
@pytest.mark.parametrize("noise", [0.3, 0.5, 1.0, 1.5, 4.0])
@pytest.mark.parametrize("num_batches", [2, 3])
def test_sums_of_outputs_know_nearly_all(noise, num_batches):
    """Both pairs lie below the outputs' own, by a sum over all of them, that of the sum within 4 % of it at its first order; so do the ends."""
    r = 1 / noise
    points, coarse = {2: (1_501, 1e-4), 3: (221, 1e-3)}[num_batches]
    x = np.linspace(-7.0, 7.0 + 2 * r, points)
    grids = np.meshgrid(*[x] * num_batches, sparse=True)
    base = (x[1] - x[0]) ** num_batches / (2 * math.pi) ** (num_batches / 2)
    base = base * np.exp(-0.5 * sum(g * g for g in grids))
    p, q = (base * sum(np.exp(m * g - m * m / 2) for g in grids) / num_batches for m in (2 * r, r))
    for eps in (0.0, 0.1, 0.5, 1.5):
        exact = [float(np.maximum(a - math.exp(eps) * b, 0.0).sum()) for a, b in ((p, q), (q, p))]
        for by in (LARGEST, SUM):
            for found, truth in zip(attained(noise, num_batches, by, eps), exact, strict=True):
                assert found <= truth * (1 + coarse) + 1e-12
        assert eps > 0 or max(attained(noise, num_batches, SUM, eps)) >= 0.96 * max(exact)
        bracket = hs.shuffled_batches_delta_bracket(eps, noise_multiplier=noise, num_batches=num_batches)
        assert 0.5 * max(exact) - 1e-12 <= bracket.lower  # 1e-12: the grid ends
        assert bracket.lower <= max(exact) * (1 + coarse) + 1e-12 <= bracket.upper * (1 + 2 * coarse) + 2e-12


def test_two_epochs_of_the_review():
    """At noise 2, 50 batches, two epochs and eps = 0 the example's delta, by simulated likelihood ratios, is attained."""
    r, runs = 0.5, 30_000
    rng = np.random.default_rng(3)
    ratio = np.ones(runs)
    for _ in range(2):
        x = rng.standard_normal((runs, 50))
        x[:, 0] += 2 * r
        ratio *= np.exp(2 * r * (x - r)).sum(1) / np.exp(r * (x - r / 2)).sum(1)
    loss = np.maximum(1 - 1 / ratio, 0.0)
    found = hs.shuffled_batches_delta_bracket(0.0, noise_multiplier=2.0, num_batches=50, epochs=2)
    assert found.lower >= 0.0636
    assert abs(found.lower - loss.mean()) < 5 * loss.std() / math.sqrt(runs)


def test_epochs_and_inverse():
    """Both ends grow with the epochs; epsilon is the inverse of delta; one batch is a Gaussian step."""
    few, many = (
        hs.shuffled_batches_epsilon_bracket(1e-5, noise_multiplier=1.0, num_batches=200, epochs=e) for e in (1, 5)
    )
    assert few.lower < many.lower < many.upper
    assert few.lower <= few.upper < many.upper
    back = hs.shuffled_batches_delta_bracket(few.lower, noise_multiplier=1.0, num_batches=200)
    assert back.lower == pytest.approx(1e-5, rel=1e-2)
    single = hs.shuffled_batches_epsilon_bracket(1e-5, noise_multiplier=2.0, num_batches=1, epochs=3)
    assert single.lower == pytest.approx(single.upper, rel=1e-9)
    assert single.upper == hs.Accountant().compose(hs.Gaussian(2.0), 3).epsilon(1e-5)


@pytest.mark.share(4, by_day=2)
@pytest.mark.parametrize("noise", [0.3, 1.0, 4.0, 30.0])
def test_upper_end_is_that_of_gaussian_steps(noise):
    """The upper end is not below the delta of as many Gaussian steps, to thirty digits, and hardly above; the lower end is below it."""
    with mp.workdps(30):
        for epochs in (1, 3, 40):
            shift = mp.sqrt(epochs) / mp.mpf(noise)
            for eps in (0.0, 0.2, 1.0, 3.0, 9.0):
                truth = exact.theta(eps, shift)
                found = hs.shuffled_batches_delta_bracket(eps, noise_multiplier=noise, num_batches=60, epochs=epochs)
                assert found.lower <= truth <= found.upper
                assert found.upper <= max(truth * (1 + mp.mpf("1e-9")), 1e-320)


@pytest.mark.parametrize(
    ("noise", "num_batches"),
    [(0.05, 10**6), (0.25, 10**6), (0.3, 10**6), (0.33, 10**6), (1000.0, 10**6), (5000.0, 10**6), (0.41, 6448)],
)
def test_ends_of_the_domain(noise, num_batches):
    """There is a bracket at the ends of the domain, also where the errors of all sums together are large."""
    setting = {"noise_multiplier": noise, "num_batches": num_batches, "epochs": 2}
    found = hs.shuffled_batches_epsilon_bracket(1e-6, **setting)
    assert 0 <= found.lower <= found.upper
    assert found.upper == hs.Accountant().compose(hs.Gaussian(noise), 2).epsilon(1e-6)
    assert hs.shuffled_batches_delta_bracket(0.0, **setting).lower > 0


def test_tiny_noise_and_ends_of_the_questions():
    """Noise whose reciprocal is nearly the largest double has a bracket, and so have delta 0 and an infinite epsilon."""
    for noise in (1e-300, 1e-7, 1.0):
        setting = {"noise_multiplier": noise, "num_batches": 7, "epochs": 2}
        low, high = (
            hs.shuffled_batches_delta_bracket(1.0, **setting),
            hs.shuffled_batches_delta_bracket(math.inf, **setting),
        )
        assert (1 - 1e-9 < low.lower <= low.upper <= 1) or noise == 1.0
        assert high.lower == high.upper == 0
        assert hs.shuffled_batches_epsilon_bracket(0.0, **setting).upper == math.inf
