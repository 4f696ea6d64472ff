"""The share of a bracket's width that lies between dominating and attained pairs is named apart from the numerical width."""

from __future__ import annotations

import mpmath as mp
import pytest

import hockeystick as hs


def sampled_gaussian_delta(eps: float, shift: float, rate: float) -> mp.mpf:
    """Return delta of one Poisson-sampled Gaussian step, a record removed, for eps >= 0."""
    loss = mp.log1p(mp.expm1(eps) / rate)
    return rate * (mp.ncdf(shift / 2 - loss / shift) - mp.exp(loss) * mp.ncdf(-shift / 2 - loss / shift))


def test_share_of_a_truncated_sample():
    """One truncated step: above it a mixture with twice the shift, below it a sample of lower rate, both known exactly."""
    sigma, n, q, largest, eps = 1.0, 1000, 0.01, 12, 0.5
    step = hs.TruncatedPoissonSampled(hs.Gaussian(sigma), n, q, largest)
    explained = hs.Accountant().compose(step).explain(eps=eps)
    with mp.workdps(30):
        sizes = [mp.binomial(n, k) * mp.mpf(q) ** k * (1 - mp.mpf(q)) ** (n - k) for k in range(n + 1)]
        rate = mp.fsum(min(k, largest) * p for k, p in enumerate(sizes)) / n
        attained = sampled_gaussian_delta(eps, 1 / sigma, rate)
    upper = explained.bracket.upper
    assert explained.bracket.lower == pytest.approx(float(attained), rel=1e-9)
    assert explained.shares["pairs"] == pytest.approx((upper - float(attained)) / upper, rel=1e-9)
    assert explained.shares["rounding"] < 1e-9


@pytest.mark.parametrize("steps", [1, 30])
def test_no_share_where_the_pair_is_attained(steps):
    """A mechanism whose pair is attained has a numerical width alone."""
    explained = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), steps).explain(delta=1e-6)
    assert "pairs" not in explained.shares


def test_share_of_many_steps():
    """Both pairs are composed by themselves. What is left beside the share is as narrow as either bracket."""
    step = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 1000, 0.01, 20)
    explained = hs.Accountant().compose(step, 100).explain(delta=1e-5)
    bracket = explained.bracket
    width = (bracket.upper - bracket.lower) / bracket.upper
    assert 0.0 < explained.shares["pairs"] < width
    assert width - explained.shares["pairs"] < 3e-3
    assert "pairs" in str(explained)


def test_share_beside_a_step_that_reveals():
    """What another step reveals leaves the two pairs' share in place."""
    truncated = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 1000, 0.01, 12)
    accountant = hs.Accountant().compose(truncated, 3).compose(hs.ApproximateDP(0.1, 1e-3))
    explained = accountant.explain(eps=0.5)
    width = (explained.bracket.upper - explained.bracket.lower) / explained.bracket.upper
    assert 0.0 < explained.shares["pairs"] <= width


def test_tables_of_one_law_have_no_share():
    """One of several steps is between tables of one law, a numerical width; several of them have another pair below."""
    one, several = (
        hs.Accountant().compose(hs.RandomAllocation(hs.Gaussian(2.0), 12, selected), 30).explain(delta=1e-6).shares
        for selected in (1, 3)
    )
    assert "pairs" not in one
    assert several["pairs"] > 0.0
