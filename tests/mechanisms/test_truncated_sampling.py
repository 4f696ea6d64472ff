"""Truncated Poisson samples: every small algorithm by enumeration, labels by hand, binomial tails, and a peer."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import hockeystick as hs
from hockeystick._core import binomial_upper_tail

STEP = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 0.05, 18)


def output(values, rate, most, noise, edges):
    """Return the law of the noisy sum of a truncated sample on cells, by all samples and all subsets of them."""
    law = np.zeros(len(edges) - 1)
    for size in range(len(values) + 1):
        for sample in itertools.combinations(values, size):
            probability = rate**size * (1 - rate) ** (len(values) - size)
            kept = list(itertools.combinations(sample, min(size, most)))
            for subset in kept:
                law += probability / len(kept) * np.diff(ndtr((edges - sum(subset)) / noise))
    return law


@settings(max_examples=60)
@given(
    noise=st.floats(0.3, 3.0),
    rate=st.floats(0.05, 0.95),
    most=st.integers(1, 4),
    others=st.lists(st.floats(-1, 1), min_size=0, max_size=4),
    changed=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    eps=st.floats(0.0, 4.0),
)
def test_no_algorithm_leaks_more(noise, rate, most, others, changed, eps):  # noqa: PLR0917
    """Whatever the records' contributions in [-1, 1], all directions of both adjacencies stay below their bounds."""
    step = hs.TruncatedPoissonSampled(hs.Gaussian(noise), len(others) + 1, rate, most)
    edges = np.linspace(-7 - 8 * noise, 7 + 8 * noise, 1_500)  # merging outcomes only lowers delta
    with_mine, with_instead, without = (
        output(values, rate, most, noise, edges) for values in ([*others, changed[0]], [*others, changed[1]], others)
    )
    for adjacency, forward, p, q in (
        ("add_or_remove", True, with_mine, without),
        ("add_or_remove", False, without, with_mine),
        ("replace", True, with_mine, with_instead),
    ):
        attained = np.sum(np.maximum(p - math.exp(eps) * q, 0.0))
        assert attained <= step._pair(adjacency).one_step(forward, False, eps)[1] + 1e-12


def test_lower_end_is_attained():
    """The lower end is that of a data set whose other records contribute nothing, by enumeration; it was 5.6 times too high."""
    size, rate, most, eps = 4, 0.9, 1, 1.0
    sizes = [math.comb(size, k) * rate**k * (1 - rate) ** (size - k) * min(k, most) for k in range(size + 1)]
    poisson = hs.PoissonSampled(hs.Gaussian(1.0), sum(sizes) / size)
    for adjacency in ("add_or_remove", "replace"):
        step = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), size, rate, most)
        found = hs.Accountant(adjacency).compose(step).delta_bracket(eps)
        assert found.lower == pytest.approx(hs.Accountant(adjacency).compose(poisson).delta(eps), rel=1e-9)
        if adjacency == "add_or_remove":
            assert found.lower <= 0.0799725  # the largest over data sets of a grid, by enumeration


@pytest.mark.parametrize("eps", [0.2, 1.0, 3.0])
def test_labels(eps):
    """One step and two steps are sums over what was truncated, by the accountants of Poisson samples."""
    truncation = STEP._pair("add_or_remove").parameters[2]
    whole, cut = hs.PoissonSampled(hs.Gaussian(1.0), 0.05), hs.PoissonSampled(hs.Gaussian(0.5), 0.05)
    for steps in (1, 2):
        found = hs.Accountant().compose(STEP, steps).explain(eps=eps).directions["remove"]
        lower = upper = 0.0
        for cuts in range(steps + 1):
            accountant = hs.Accountant()
            for mechanism, count in ((whole, steps - cuts), (cut, cuts)):
                accountant = accountant.compose(mechanism, count) if count else accountant
            weight = math.comb(steps, cuts) * truncation**cuts * (1 - truncation) ** (steps - cuts)
            part = accountant.explain(eps=eps).directions["remove"]
            lower, upper = lower + weight * part.lower, upper + weight * part.upper
        assert found.lower <= upper * (1 + 1e-12)
        assert lower * (1 - 1e-12) <= found.upper
        assert found.upper <= upper * (1 + 2e-3)


@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_large_batches_are_poisson_samples(adjacency):
    """A batch for everybody is Poisson sampling; smaller ones leak more and more; nobody sampled leaks nothing."""
    poisson = hs.PoissonSampled(hs.Gaussian(1.0), 0.05)
    everybody = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 0.05, 200)
    assert everybody._pair(adjacency) == poisson._pair(adjacency)
    bounds = [
        hs.Accountant(adjacency)
        .compose(hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 0.05, most), 20)
        .epsilon(1e-5)
        for most in (200, 25, 18, 12)
    ]
    assert all(low <= high * (1 + 1e-3) for low, high in itertools.pairwise(bounds))
    assert bounds[0] < bounds[2] < bounds[3]
    nobody = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 0.0, 1)
    assert hs.Accountant(adjacency).compose(nobody, 20).delta(0.0) == 0
    shift = 2 if adjacency == "add_or_remove" else 4  # all are sampled, and one of them is kept
    certain = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 1.0, 1)
    assert hs.Accountant(adjacency).compose(certain).delta(1.0) == pytest.approx(float(hs.theta(1.0, shift)), rel=1e-11)


@pytest.mark.parametrize(
    ("trials", "rate", "least"),
    [
        (1, 0.5, 1),
        (2000, 0.5, 10),
        (10, 0.3, 10),
        (50, 0.5, 20),
        (999, 0.01, 20),
        (1000, 1e-7, 900),
        (10**5, 1e-3, 150),
    ],
)
def test_binomial_tails(trials, rate, least):
    """Never below the sum, and close to it; below the doubles at least 1e-300."""
    with mp.workdps(60):
        p, last = mp.mpf(rate), min(trials, least + 2000)
        terms = (mp.binomial(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(least, last + 1))
        truth = mp.fsum(terms)
        found = binomial_upper_tail(trials, rate, least)
        assert truth <= found <= max(truth * (1 + mp.mpf("1e-6")), mp.mpf("1.0001e-300"))


def test_binomial_tail_where_all_is_likely():
    """Far below the mean, and for numbers beyond what logarithms of factorials resolve, the bound is one; at the ends exact."""
    assert binomial_upper_tail(10**6, 0.5, 10) == 1
    assert binomial_upper_tail(2**53, 0.5, 2**52) == 1
    assert binomial_upper_tail(5, 0.5, 6) == binomial_upper_tail(5, 0.0, 1) == 0
    assert binomial_upper_tail(5, 1.0, 5) == 1


def test_peer():
    """Close to dp_accounting, which takes the pair of a replaced record for truncated samples, where few are truncated."""
    pld = pytest.importorskip("dp_accounting").pld.privacy_loss_distribution
    theirs = pld.from_truncated_subsampled_gaussian_mechanism(
        200, 0.05, 25, 1.0, value_discretization_interval=1e-3
    ).self_compose(20)
    found = hs.Accountant().compose(hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 0.05, 25), 20)
    for eps in (1.0, 2.0, 4.0):
        assert found.delta(eps) == pytest.approx(theirs.get_delta_for_epsilon(eps), rel=0.2)


def test_assumptions_are_told():
    """The explanation says what was sampled, and of how many records."""
    text = str(hs.Accountant().compose(STEP).explain(eps=1.0))
    assert "more than 18" in text
    assert "at most 200 records" in text


BAD = [
    (TypeError, "mechanism must be Gaussian", lambda: hs.TruncatedPoissonSampled(hs.Laplace(1.0), 10, 0.1, 5)),
    (ValueError, "dataset_size must be", lambda: hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 0, 0.1, 5)),
    (ValueError, "sampling_rate must lie in", lambda: hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 10, 1.1, 5)),
    (ValueError, "max_batch_size must be", lambda: hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 10, 0.1, 0)),
    (TypeError, "max_batch_size must be", lambda: hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 10, 0.1, 2.5)),
]


@pytest.mark.parametrize(("error", "message", "make"), BAD)
def test_bad_arguments(error, message, make):
    """A constructor names the argument, its value and its domain."""
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_rates_whose_product_underflows(adjacency):
    """A sample of a truncated sample that is all but empty has a bracket, of which the lower end is 0."""
    mechanism = hs.PoissonSampled(STEP, 1e-323)
    bracket = hs.Accountant(adjacency).compose(mechanism).delta_bracket(0.1)
    assert bracket.lower == 0.0 < bracket.upper < 1e-300
