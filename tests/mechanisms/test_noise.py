"""Staircase, truncated Laplace and canonical noise against integrals of their densities, at every smaller shift too."""

import math

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
from enumeration import bracket, encloses


def staircase_level(x, epsilon, inner):
    """Return the density of staircase noise of sensitivity 1."""
    top = -mp.expm1(-epsilon) / (2 * (inner + mp.exp(-epsilon) * (1 - inner)))
    return top * mp.exp(-epsilon * max(mp.floor(abs(x) - inner) + 1, 0))


def staircase_delta(epsilon, inner, shift, eps, reach=40):
    """Return the integral of (f(x) - e^eps f(x - shift))_+, constant between edges; beyond the reach as a geometric series."""
    edges = {side * (inner + k) + move for k in range(reach) for side in (-1, 1) for move in (0, shift)}
    edges = sorted(edges)
    total = mp.mpf(0)
    for left, right in zip(edges, edges[1:]):  # noqa: B905, RUF007
        middle = (left + right) / 2
        gain = staircase_level(middle, epsilon, inner) - mp.exp(eps) * staircase_level(middle - shift, epsilon, inner)
        total += (right - left) * max(gain, 0)
    return total


@pytest.mark.share(6, by_day=2)
@pytest.mark.parametrize("inner", [None, 0.0, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_staircase(inner, epsilon):
    """At the whole shift the pair is exact; smaller shifts leak less; the density is one."""
    step = hs.Staircase(epsilon, inner)
    reach = 3 + int(35 / epsilon)
    with mp.workdps(30):
        mass = staircase_delta(mp.mpf(epsilon), mp.mpf(step.inner), mp.mpf(10**6), 0, reach)  # all of it
        assert abs(mass - 1) < mp.mpf("1e-12")
        for share in (0.0, 0.4, 0.9):
            eps = share * epsilon
            upper = bracket(step, eps).upper
            exact = staircase_delta(mp.mpf(epsilon), mp.mpf(step.inner), mp.mpf(1), mp.mpf(eps), reach)
            encloses(bracket(step, eps), exact, off=mp.mpf("1e-12"))
            assert exact <= upper <= exact * (1 + 1e-9) + mp.mpf("1e-12")
            for shift in (0.05, 0.4, 0.9):
                assert staircase_delta(mp.mpf(epsilon), mp.mpf(step.inner), mp.mpf(shift), mp.mpf(eps), reach) <= upper


def test_staircase_by_default():
    """The default has the least mean absolute error of all inner steps (Geng and Viswanath 2016, Theorem 3)."""

    def error(epsilon, inner):  # E|x|, by the series of the steps
        b = math.exp(-epsilon)
        top = (1 - b) / (2 * (inner + b * (1 - inner)))
        bounds = [0.0, *(k + inner for k in range(400))]
        return sum(top * b**k * (bounds[k + 1] ** 2 - bounds[k] ** 2) for k in range(400))

    for epsilon in (0.5, 1.0, 3.0):
        best = error(epsilon, hs.Staircase(epsilon).inner)
        assert all(best <= error(epsilon, inner) * (1 + 1e-12) for inner in np.linspace(0.0, 1.0, 101))


def truncated_delta(b, reach, shift, eps):
    """Return the integral of (f(x) - e^eps f(x - shift))_+ over outcomes."""
    b, reach, shift, eps = map(mp.mpf, (b, reach, shift, eps))
    unit = 1 / (2 * b * (1 - mp.exp(-reach / b)))

    def density(x):
        return unit * mp.exp(-abs(x) / b) if abs(x) < reach else mp.mpf(0)

    kinks = {moved + end for moved in (0, shift) for end in (-reach, mp.mpf(0), reach)}
    kinks |= {(shift + side * b * eps) / 2 for side in (-1, 1)}
    return mp.quad(lambda x: max(density(x) - mp.exp(eps) * density(x - shift), 0), sorted(kinks))


@pytest.mark.share(8, by_day=2)
@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
@pytest.mark.parametrize(
    ("b", "reach"), [(2.0, 20.0), (1.0, 3.0), (0.3, 5.0), (5.0, 0.8), (1.0, 1.2), (0.2, 0.9), (50.0, 700.0), (3.0, 1.9)]
)
def test_truncated_laplace(b, reach, adjacency):
    """Integrals of the densities are in the bracket, at the whole shift; smaller shifts are below it."""
    step, whole = hs.TruncatedLaplace(b, reach), 2.0 if adjacency == "replace" else 1.0
    with mp.workdps(30):
        for eps in (0.0, 0.4 / b, 0.9 / b, 1.0 / b, 1.7 / b, 2.5 / b):
            lower, upper, *_ = found = bracket(step, eps, adjacency=adjacency)
            exact = truncated_delta(b, reach, whole, eps)
            encloses(found, exact, off=mp.mpf("1e-25"))
            assert upper - lower <= 5e-3 * upper + 1e-9 or exact > 1 - mp.mpf("1e-20")
            for part in (0.1, 0.6, 0.95):
                assert truncated_delta(b, reach, part * whole, eps) <= upper + mp.mpf("1e-25")


@pytest.mark.share(8)
@pytest.mark.parametrize("b", [1 / 299, 0.01, 1.0, 221.0, 1e6])
@pytest.mark.parametrize("wide", [20.0, 211.3, 390.9, 601.7, 655.4, 690.1, 1000.0])
@pytest.mark.parametrize(("adjacency", "moved"), [("add_or_remove", 1), ("replace", 2)])
def test_truncated_laplace_of_wide_reach(b, wide, adjacency, moved):
    """The mass that one data set alone can give is between both ends, however small it is: its exponential is rounded."""
    step = hs.TruncatedLaplace(b, wide * b)
    with mp.workdps(50):
        width, reach = mp.mpf(step.noise_multiplier), mp.mpf(step.reach)
        out = mp.exp(-reach / width)
        exact = out * mp.expm1(moved / width) / (2 * (1 - out)) if reach >= moved else 1
        if moved / 2 < reach < moved:
            exact = 1 - (mp.exp(-(moved - reach) / width) - out) / (2 * (1 - out))
        upper, lower = (step._profile(adjacency, upper=up).remove[-1] for up in (True, False))
        assert exact <= upper
        if exact > mp.mpf("1e-305"):
            assert lower <= exact
            assert upper <= exact * (1 + mp.mpf("1e-11")) + mp.mpf("1e-307")


def tulap_cdf(x, epsilon, delta):
    """Return the distribution function of Tulap noise (Awan and Slavkovic 2018): a uniform plus a two-sided geometric number, cut off."""
    b = mp.exp(-epsilon)
    cut = 2 * delta * b / (1 - b + 2 * delta * b)
    whole = mp.floor(x + mp.mpf("0.5"))
    part = x + mp.mpf("0.5") - whole  # of the cell around the integer `whole`
    below = b ** (-whole + 1) / (1 + b) if whole <= 0 else 1 - b**whole / (1 + b)  # P(integer < whole)
    found = below + part * (1 - b) / (1 + b) * b ** abs(whole)
    return min(max((found - cut / 2) / (1 - cut), mp.mpf(0)), mp.mpf(1))


def test_tulap_noise_is_approximate_dp():
    """Tulap noise, shifted by 1, reaches delta of ApproximateDP at every epsilon; by less it stays below."""
    step = hs.Accountant().compose(hs.ApproximateDP(1.0, 1e-3))
    with mp.workdps(30):
        grid = [mp.mpf(k) / 20 for k in range(-800, 801)]
        table = {x: tulap_cdf(x, mp.mpf(1), mp.mpf(1e-3)) for x in grid}
        for eps in (0.0, 0.3, 0.8, 1.0, 1.5):
            upper = step.delta(eps)
            for shift in (mp.mpf(1), mp.mpf("0.95"), mp.mpf("0.5"), mp.mpf("0.05")):
                largest = max(table[x + shift] - mp.exp(eps) * table[x] for x in grid if x + shift in table)
                assert largest <= upper * (1 + mp.mpf("1e-14")) + mp.mpf("1e-16")
                if shift == 1 and eps <= 1.0:
                    assert largest >= upper * (1 - mp.mpf("0.1")) - mp.mpf("1e-6")
