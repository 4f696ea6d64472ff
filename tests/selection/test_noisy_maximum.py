"""Noisy maxima against the laws of the winner, by quadrature, and against changes of scores that are chosen to be worst."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import laplace

import hockeystick as hs
from enumeration import either, encloses, hockey_stick
from hockeystick.selection import GaussianNoisyMaximum, LaplaceNoisyMaximum, noisy_maximum

X = np.linspace(-14.0, 14.0, 5601)  # the trapezoid rule is exact to 1e-14 for such integrands


def winners(scores, counts):
    """Return the probability of each group of equal scores that one of it wins, under standard Gaussian noise."""
    found = []
    for i, (score, count) in enumerate(zip(scores, counts, strict=True)):
        x = X + score  # of the winner's noisy score
        log_law = math.log(count) - 0.5 * X**2 - 0.5 * math.log(2 * math.pi)
        for j, (other, many) in enumerate(zip(scores, counts, strict=True)):
            log_law = log_law + (many - (i == j)) * log_ndtr(x - other)
        found.append(float(np.exp(log_law).sum() * (X[1] - X[0])))
    assert sum(found) == pytest.approx(1.0, abs=1e-10)
    return np.array(found)


@pytest.mark.share(8, by_day=2)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("noise", [0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_gaussian(k, noise, monotone):
    """No scores that move by at most one each leak more than the bound, at any epsilon."""
    ledger, rng = hs.Accountant().compose(GaussianNoisyMaximum(noise, k, monotone)), np.random.default_rng(3)
    bounds = {share / noise: ledger.delta(share / noise) for share in (0.0, 0.4, 1.0, 2.0, 3.5)}
    for _ in range(30):
        scores = rng.normal(size=k) * rng.choice([0.2, 1.5, 5.0])
        moves = rng.choice([-1.0, 1.0], size=k) if rng.random() < 0.7 else rng.uniform(-1, 1, size=k)
        if monotone:
            moves = (moves > 0) * 1.0
        p, q = (winners(s / noise, np.ones(k)) for s in (scores, scores + moves))
        for eps, bound in bounds.items():
            assert either(p, q, eps) <= bound + 1e-11


@pytest.mark.share(3)
@pytest.mark.parametrize("noise", [1.0, 4.0])
@pytest.mark.parametrize("k", [2, 10, 100, 3000])
def test_gaussian_with_two_groups(k, noise):
    """A group rises and the rest falls, for groups of any size and any gap: below the bound, and not far from it at some gap."""
    ledger = hs.Accountant().compose(GaussianNoisyMaximum(noise, k))
    bounds = {share / noise: ledger.delta(share / noise) for share in (0.0, 0.5, 1.5, 3.0)}
    largest = dict.fromkeys(bounds, 0.0)
    for some in sorted({1, max(k // 10, 1), k // 2, k - 1}):
        for gap in np.linspace(-6.0, 6.0, 25):
            counts = np.array([some, k - some])
            p = winners(np.array([gap / noise + 1 / noise, -1 / noise]), counts)
            q = winners(np.array([gap / noise, 0.0]), counts)
            for eps, bound in bounds.items():
                found = hockey_stick(p, q, eps)
                assert found <= bound + 1e-11
                largest[eps] = max(largest[eps], found)
    assert largest[0.0] >= (0.9 if k == 2 else 0.45) * bounds[0.0]


def test_two_candidates_are_exact():
    """Two candidates are one Gaussian number, whose curve both ends are."""
    ledger = hs.Accountant().compose(GaussianNoisyMaximum(2.0, 2))
    for eps in (0.0, 0.3, 1.0):
        exact = float(hs.theta(eps, math.sqrt(2.0) / 2.0))
        encloses(ledger.delta_bracket(eps), exact, slack=1e-12)
        assert ledger.delta(eps) <= exact * (1 + 1e-3)
        assert ledger.delta_bracket(eps).lower == pytest.approx(exact, rel=1e-8)


def test_it_grows_as_the_logarithm():
    """A thousand times as many candidates cost less than twice epsilon, and never more than releasing all scores."""
    epsilons = [hs.Accountant().compose(GaussianNoisyMaximum(10.0, k)).epsilon(1e-6) for k in (2, 3, 10, 10**4, 10**9)]
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] < 2 * epsilons[2]
    for k in (2, 3, 10):
        everything = hs.Accountant("replace").compose(hs.Gaussian(10.0 / math.sqrt(k))).epsilon(1e-6)
        assert hs.Accountant().compose(GaussianNoisyMaximum(10.0, k)).epsilon(1e-6) <= everything


@pytest.mark.share(2)
@pytest.mark.parametrize("noise", [100.0, 1999.0, 2001.0, 1e9])
def test_much_noise(noise):
    """At tiny shifts the total variation of two groups is below the bound, which is not infinite work."""
    ledger = hs.Accountant().compose(GaussianNoisyMaximum(noise, 50))
    with_gap = [winners(np.array([gap, 0.0]), np.array([25, 25])) for gap in (0.0, 2 / noise)]
    assert hockey_stick(*with_gap[::-1], 0.0) <= ledger.delta(0.0) + 1e-11


def test_which_mechanism():
    """Gumbel noise is the exponential mechanism, exponential noise permute-and-flip, of twice or once the rate; the others have classes."""
    assert noisy_maximum("gumbel", 4.0).epsilon == pytest.approx(0.5, rel=1e-14)
    assert noisy_maximum("exponential", 4.0, monotone=True).mechanism.epsilon == pytest.approx(0.25, rel=1e-14)
    assert noisy_maximum("laplace", 4.0, monotone=True) == LaplaceNoisyMaximum(4.0, True)
    assert isinstance(noisy_maximum("exponential", 4.0, num_candidates=9), hs.PermuteAndFlip)
    assert noisy_maximum("gaussian", 4.0, num_candidates=9) == GaussianNoisyMaximum(4.0, 9)


LAWS = {  # distribution functions of noise of scale 1
    "gumbel": lambda z: np.exp(-np.exp(-z)),
    "exponential": lambda z: -np.expm1(-np.maximum(z, 0.0)),
    "laplace": laplace.cdf,
}


def winners_by(law, scores, scale):
    """Return the law of the winner by its definition: its noise in a cell, and the others' below."""
    x = np.linspace(scores.min() - 40 * scale, scores.max() + 40 * scale, 40_001)
    below = law((x[:, None] - scores) / scale)
    others = [np.delete(below, i, 1).prod(axis=1) for i in range(scores.size)]
    return np.array([np.diff(below[:, i]) @ (other[1:] + other[:-1]) / 2 for i, other in enumerate(others)])


@pytest.mark.share(6)
@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("monotone", [False, True])
def test_winners(noise, scale, monotone):
    """The winner stays below the upper end; choices between two candidates are above the lower one; with exponential noise they reach the bound."""
    rng, ledger = np.random.default_rng(9), hs.Accountant().compose(noisy_maximum(noise, scale, monotone=monotone))
    shares = np.linspace(0.0, 0.95, 5) * (1 if monotone else 2) / scale
    for k in (2, 2, 3, 5):
        scores = rng.normal(size=k) * scale
        moves = rng.choice([0.0, 1.0], size=k) if monotone else rng.choice([-1.0, 1.0], size=k)
        p, q = (winners_by(LAWS[noise], at, scale) for at in (scores, scores + moves))
        assert all(either(p, q, eps) <= ledger.delta(eps) + 1e-6 for eps in shares)
    half = 0.25 if monotone else 0.5
    gaps = np.linspace(2 * half, 2 * half - 12 * scale, 60)  # of two candidates' scores
    if noise == "exponential":  # whose law has a kink, near which the worst ones are
        gaps = np.linspace(2 * half, -2 * half, 121)
    pairs = [[winners_by(LAWS[noise], np.array([x, 0.0]), scale) for x in (gap, gap - 4 * half)] for gap in gaps]
    for eps in shares:
        assert ledger.delta_bracket(eps).lower <= max(hockey_stick(*pair, eps) for pair in pairs) * 1.005 + 1e-5
    if noise == "exponential" and not monotone:
        moved = (
            [winners_by(LAWS[noise], np.array([up, gap - up]), scale) for up in (1.0, 0.0)]
            for gap in np.linspace(-2.0, 4.0, 61)
        )
        assert max(hockey_stick(p, q, 0.0) for p, q in moved) == pytest.approx(ledger.delta(0.0), rel=2e-3)


NOISES = [0.02, 0.5, 0.9, 1.1, 3.0, 1489.0, 9694.4, 1e5, 1e9]


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_lower_end(kind, noise, monotone):
    """In 40 digits, for little noise and much: two candidates that change places are exactly what the pair for lower ends says, just above."""
    step = noisy_maximum(kind, noise, num_candidates=2, monotone=monotone)
    pair = step._pairs("add_or_remove", upper=False)[0][0]
    told, largest = pair.one_step(True, False, 0.0)[0], pair.limits(True)[0]
    with mp.workdps(40):
        distance = mp.mpf(1 if monotone else 2) / mp.mpf(noise)
        loser = (1 + distance / 4) * mp.exp(-distance / 2) / 2 if kind == "laplace" else mp.ncdf(-distance / mp.sqrt(8))
        assert told <= 1 - 2 * loser <= told * (1 + mp.mpf("1e-11"))
        loss = mp.log((1 - loser) / loser)
        assert largest <= loss
        assert kind == "gaussian" or loss <= largest * (1 + mp.mpf("1e-11"))
    moved = float(distance)  # all scores' noise is a Gaussian release, or an epsilon-DP one
    whole = hs.gdp_epsilon(moved / math.sqrt(2), 1e-6) if kind == "gaussian" else moved
    assert hs.Accountant().compose(step).epsilon_bracket(1e-6).lower <= whole * (1 + 1e-9)
