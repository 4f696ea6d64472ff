"""Random allocation against quadrature, inverted Laplace transforms, adaptive algorithms and closed forms."""

from __future__ import annotations

import functools
import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import hockeystick as hs
from hockeystick import _core


def ends(noise, num_steps, num_selected=1, count=1):
    """Return the accountant of some epochs."""
    return hs.Accountant().compose(hs.RandomAllocation(hs.Gaussian(noise), num_steps, num_selected), count)


def directions(accountant, eps):
    """Return the brackets of delta when a record is removed and when it is added."""
    return accountant.explain(eps=eps).directions


def one_of_two(noise, eps, *, remove):
    """Return delta of one of two steps: over the second log-normal, that of the first in closed form."""
    r = 1 / mp.mpf(noise)

    def call(level):  # E (X - level)_+ of a log-normal of mean 1
        if level <= 0:
            return 1 - level
        at = mp.log(level) / r
        return (mp.erfc((at - r / 2) / mp.sqrt(2)) - level * mp.erfc((at + r / 2) / mp.sqrt(2))) / 2

    def put(level):
        if level <= 0:
            return mp.mpf(0)
        at = mp.log(level) / r
        return (level * mp.erfc(-(at + r / 2) / mp.sqrt(2)) - mp.erfc(-(at - r / 2) / mp.sqrt(2))) / 2

    cut = mp.exp(eps if remove else -eps)
    kink = mp.log(2 * cut) / r + r / 2  # where the second alone reaches the cut

    def weighted(x):
        rest = 2 * cut - mp.exp(r * x - r * r / 2)
        return mp.npdf(x) * (call(rest) if remove else mp.exp(eps) * put(rest)) / 2

    points = sorted([mp.mpf(x) for x in range(-30, 31, 2)] + [kink, kink - r, kink + r])
    return mp.quad(weighted, points)


def put_by_contour(noise, num_steps, cut):
    """Return E (cut - W)_+ by the Laplace transform of W, the mean of log-normals, on a line through its saddle point."""
    r = 1 / noise
    x = np.linspace(-13.0, 13.0, 1_041)
    mass = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    ratio = np.exp(r * x - r * r / 2) / num_steps

    def exponent(s):  # log E e^{s (cut - W)}
        return num_steps * np.log1p(np.expm1(-np.outer(s, ratio)) @ mass) + s * cut

    tilts = np.geomspace(1e-2, 1e4 * num_steps**0.5, 400)
    with np.errstate(divide="ignore"):
        tilt = tilts[np.argmin(np.abs(np.gradient(exponent(tilts) - 2 * np.log(tilts), tilts)))]
    values = []
    for fine in (80.0, 110.0):  # the step of the sum: two must agree
        nodes = tilt + 2j * math.pi * tilt / fine * np.arange(1_500)
        terms = np.exp(exponent(nodes)) / nodes**2
        terms[0] /= 2
        values.append(2 * tilt / fine * float(np.sum(terms.real)))
    assert values[0] == pytest.approx(values[1], rel=1e-5, abs=1e-13)
    return values[1]


def rare_by_sampling(noise, num_steps, cut, shift, samples=10_000):
    """Return E (W - cut)_+ and its standard error: the largest log-normal is the first, drawn around a large value."""
    rng, r = np.random.default_rng(7), 1 / noise
    first = rng.normal(shift, 1.0, samples)
    others = rng.standard_normal((samples, num_steps - 1))
    mean = (np.exp(r * first - r * r / 2) + np.exp(r * others - r * r / 2).sum(1)) / num_steps
    weight = np.exp(shift * shift / 2 - shift * first) * (others.max(1) < first) * num_steps
    values = weight * np.maximum(mean - cut, 0)
    return values.mean(), values.std() / math.sqrt(samples)


@pytest.mark.share(4)
@pytest.mark.parametrize("noise", [0.3, 1.0, 7.0])
@pytest.mark.parametrize(("eps", "remove"), [(0.0, True), (0.3, True), (0.3, False), (1.1, True), (1.1, False)])
def test_one_of_two_agrees_with_quadrature(noise, eps, remove):
    """The ends enclose quadrature to thirty digits, and are close even where delta is tiny."""
    with mp.workdps(30):
        truth = one_of_two(noise, eps, remove=remove)
    found = directions(ends(noise, 2), eps)["remove" if remove else "add"]
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= 8e-3 * max(1.0, -math.log(truth)) * found.upper


@pytest.mark.parametrize(("noise", "eps"), [(0.6, 2.36), (1.0, 0.5), (4.0, 0.2)])
def test_one_of_three_agrees_with_double_quadrature(noise, eps):
    """The ends enclose a sum over two log-normals of the third's closed form."""
    r, cut = 1 / noise, math.exp(eps)
    x = np.linspace(-9, 9 + r, 1_501)
    weight = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    ratio = np.exp(r * x - r * r / 2)
    rest = 3 * cut - np.add.outer(ratio, ratio)
    at = np.log(np.where(rest > 0, rest, 1.0)) / r
    calls = np.where(rest > 0, ndtr(r / 2 - at) - rest * ndtr(-at - r / 2), 1 - rest)
    truth = float(weight @ calls @ weight) / 3
    found = directions(ends(noise, 3), eps)["remove"]
    assert found.lower <= truth * (1 + 1e-5)
    assert truth * (1 - 1e-5) <= found.upper
    assert found.upper - found.lower <= 5e-3 * found.upper


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("noise", "num_steps", "eps"),
    [(1.0, 1000, 0.1), (0.7, 37, 0.5), (0.7, 37, 1.5), (0.5, 100_000, 0.05), (50.0, 100_000, 2e-4)],
)
def test_many_steps_agree_with_laplace_transforms(noise, num_steps, eps):
    """The ends enclose what the transform of a log-normal gives; E (W - c)_+ is E (c - W)_+ + 1 - c."""
    found = directions(ends(noise, num_steps), eps)
    put, call = put_by_contour(noise, num_steps, math.exp(-eps)), put_by_contour(noise, num_steps, math.exp(eps))
    for name, truth in (("add", math.exp(eps) * put), ("remove", call - math.expm1(eps))):
        assert found[name].lower <= truth * (1 + 1e-5) + 1e-12
        assert truth * (1 - 1e-5) - 1e-12 <= found[name].upper
        assert (
            found[name].upper - found[name].lower <= 5e-3 * max(1.0, -math.log(found[name].upper)) * found[name].upper
        )


@pytest.mark.parametrize(("num_steps", "eps", "shift"), [(200, 1.0, 6.0), (200, 3.0, 8.5), (1000, 0.7, 7.2)])
def test_rare_large_ratios_agree_with_sampling(num_steps, eps, shift):
    """Where one large ratio rules, the ends agree with importance sampling within four standard errors."""
    found = directions(ends(1.0, num_steps), eps)["remove"]
    mean, error = rare_by_sampling(1.0, num_steps, math.exp(eps), shift)
    assert error < 0.05 * mean
    assert found.lower <= mean + 4 * error
    assert mean - 4 * error <= found.upper


@settings(max_examples=30)
@given(
    noise=st.floats(0.5, 4.0),
    first=st.floats(-1, 1),
    slope=st.floats(-3, 3),
    offset=st.floats(-1, 1),
    eps=st.floats(0.0, 2.0),
)
def test_adaptive_steps_leak_less(noise, first, slope, offset, eps):
    """A second step that moves by at most the sensitivity, depending on the first output, stays below the pair."""
    r = 1 / noise
    x = np.linspace(-9, 9, 1_201)
    law = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    moves = r * np.clip(offset + slope * x, -1, 1)[:, None]
    one = np.exp(r * first * x - (r * first) ** 2 / 2)[:, None]
    ratio = (one + np.exp(moves * x - moves**2 / 2)) / 2
    weight = np.outer(law, law)
    upper = directions(pair_of_two(noise), eps)
    assert np.sum(weight * np.maximum(ratio - math.exp(eps), 0)) <= upper["remove"].upper * (1 + 1e-4) + 1e-12
    assert np.sum(weight * np.maximum(1 - math.exp(eps) * ratio, 0)) <= upper["add"].upper * (1 + 1e-4) + 1e-12


def pair_of_two(noise):
    """Return the accountant of one of two steps."""
    return ends(noise, 2)


@pytest.mark.share(2)
@pytest.mark.parametrize("noise", [0.8, 2.0])
@pytest.mark.parametrize(
    ("num_steps", "num_selected"),
    [(2, 1), (3, 1), (3, 2), *(pytest.param(4, selected, marks=pytest.mark.slow) for selected in (2, 3))],
)
@pytest.mark.parametrize("eps", [0.0, 0.4, 1.5])
def test_subsets_by_brute_force(noise, num_steps, num_selected, eps):
    """The ends enclose the mean over all subsets, by a sum over a grid of outputs."""
    r, points = 1 / noise, {2: 2_001, 3: 201, 4: 61}[num_steps]
    x = np.linspace(-7.5, 7.5 + r, points)
    law = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    single = np.exp(r * x - r * r / 2)
    subsets = list(itertools.combinations(range(num_steps), num_selected))
    ratio = sum(
        functools.reduce(np.multiply.outer, [single if i in subset else np.ones(points) for i in range(num_steps)])
        for subset in subsets
    ) / len(subsets)
    weight = functools.reduce(np.multiply.outer, [law] * num_steps)
    found = directions(ends(noise, num_steps, num_selected), eps)
    for name, excess in (
        ("remove", np.maximum(ratio - math.exp(eps), 0)),
        ("add", np.maximum(1 - math.exp(eps) * ratio, 0)),
    ):
        truth, error = float(np.sum(weight * excess)), 2e-2 if num_steps == 4 else 2e-3
        assert found[name].lower <= truth * (1 + error)
        assert truth * (1 - error) <= found[name].upper


def test_all_steps_and_one_step_are_gaussian():
    """A record in every step has no amplification; epochs compose."""
    for num_steps in (1, 3):
        assert ends(0.1, num_steps, num_steps, 2).delta(3.0) == pytest.approx(
            hs.Accountant().compose(hs.Gaussian(0.1), 2 * num_steps).delta(3.0), rel=1e-10
        )
    accountant = hs.Accountant().compose(hs.RandomAllocation(hs.Gaussian(2.0), 3, 3))
    assert accountant.rdp(2.0) == pytest.approx(3 / 4, rel=1e-12)
    spent = [
        hs.GaussianFilter(epsilon=8.0, delta=1e-6).spend(mechanism, count)
        for mechanism, count in ((hs.RandomAllocation(hs.Gaussian(3.0), 2, 2), 1), (hs.Gaussian(3.0), 2))
    ]
    assert spent[0].remaining(hs.Gaussian(30.0)) == spent[1].remaining(hs.Gaussian(30.0)) > 0


def test_two_epochs_agree_with_an_integral():
    """Delta of two epochs: that of one, over the ratio of the other."""
    noise, num_steps, eps = 1.0, 20, 0.8
    found = directions(ends(noise, num_steps, count=2), eps)
    for upper in (True, False):
        size, *rest = _core.random_allocation(1 / noise, num_steps, upper).parameters
        p, q = np.split(np.array(rest), 4)[:2]
        p, q = p[q > 0], q[q > 0]
        ratio = np.outer(p, p) - math.exp(eps) * np.outer(q, q)
        delta = float(np.sum(np.maximum(ratio, 0)))
        assert size == len(rest) / 4
        if upper:
            assert delta <= found["remove"].upper <= delta * 1.01
        else:
            assert delta * 0.99 <= found["remove"].lower <= delta


@given(noise=st.floats(0.25, 1000.0), num_steps=st.integers(2, 40))
@settings(max_examples=5)
def test_more_steps_leak_less(noise, num_steps):
    """Means of more log-normals are smaller in convex order; the upper pair's ends lie above the lower one's."""
    eps = [0.0, 0.3 / noise, 1.5 / noise]
    few, more = ends(noise, num_steps), ends(noise, num_steps + 3)
    for at in eps:
        low, high = few.delta_bracket(at), more.delta_bracket(at)
        assert low.lower <= low.upper
        assert high.lower <= low.upper
        assert low.upper <= hs.theta(at, 1 / noise) * (1 + 1e-3) + 1e-140


def test_poisson_sampling_is_another_number():
    """Neither dominates the other: the mean of large losses leaks more than a sample, that of moderate ones less."""
    allocation = ends(1.0, 100)
    poisson = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 100)
    assert allocation.delta_bracket(0.5).upper < poisson.delta_bracket(0.5).lower
    removed = [directions(accountant, 1e-3) for accountant in (allocation, poisson)]
    assert removed[0]["add"].lower > 0
    assert removed[1]["add"].lower > 0


def test_deep_tails_keep_their_digits():
    """Deltas far below the doubles' epsilon are enclosed relatively, for one epoch and for several."""
    for count, eps in ((1, 5.0), (1, 12.0), (10, 12.0)):
        bracket = ends(1.0, 100, count=count).delta_bracket(eps)
        assert 0 < bracket.lower <= bracket.upper < 1e-20
        assert math.log(bracket.upper / bracket.lower) <= 5e-3 * -math.log(bracket.upper)


def test_assumptions_are_told():
    """The explanation says how records are allocated."""
    text = str(ends(1.0, 50, 2).explain(eps=1.0))
    assert "2 of the 50 steps" in text
    assert "independently" in text


BAD = [
    (TypeError, "mechanism must be one of", lambda: hs.RandomAllocation("Gaussian", 10)),
    (ValueError, "num_steps must be", lambda: hs.RandomAllocation(hs.Gaussian(1.0), 0)),
    (ValueError, "num_steps must be at most 1000000", lambda: hs.RandomAllocation(hs.Gaussian(1.0), 10**6 + 1)),
    (TypeError, "num_steps must be", lambda: hs.RandomAllocation(hs.Gaussian(1.0), True)),
    (ValueError, "num_selected must be at most num_steps", lambda: hs.RandomAllocation(hs.Gaussian(1.0), 3, 4)),
    (ValueError, "num_selected must be", lambda: hs.RandomAllocation(hs.Gaussian(1.0), 3, 0)),
    (ValueError, r"must lie in \[0.25, 1000.0\], not 0.2", lambda: hs.RandomAllocation(hs.Gaussian(0.2), 3)),
    (
        ValueError,
        "not supported under",
        lambda: hs.Accountant("replace").compose(hs.RandomAllocation(hs.ApproximateDP(1.0, 0.0), 3)),
    ),
]


@pytest.mark.parametrize(("error", "message", "make"), BAD)
def test_bad_arguments(error, message, make):
    """A wrong argument raises, and names itself, its value and its domain."""
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("shift", "num_steps"), [(math.nan, 10), (-1.0, 10), (0.0, 10), (math.inf, 10), (1e300, 3), (1.0, -1), (1.0, 1)]
)
def test_core_refuses(shift, num_steps):
    """The core checks what it recurses on."""
    with pytest.raises(ValueError, match="must lie in"):
        _core.random_allocation(shift, num_steps, True)
