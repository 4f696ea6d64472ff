"""f-divergences of finite laws: by fractions, by their relations to each other, and by the accountant."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import distortion


def laws() -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of random laws."""
    rng = np.random.default_rng(4)
    return [(rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))) for k in (2, 3, 10) for _ in range(20)]


def test_chi_squared() -> None:
    """The sum of p^2/q - 1 in fractions; infinite where q = 0 < p; 0 for equal laws; at least e^KL - 1."""
    for p, q in laws():
        a, b = ([Fraction(float(x)) for x in law] for law in (p, q))
        exact = sum((x - y) ** 2 / y for x, y in zip(a, b, strict=True))
        computed = distortion.chi_squared_divergence(p, q)
        assert computed == pytest.approx(float(exact), rel=1e-13)
        assert computed >= math.expm1(distortion.kl_divergence(p, q)) - 1e-12
    assert distortion.chi_squared_divergence([0.5, 0.5], [1.0, 0.0]) == math.inf
    assert distortion.chi_squared_divergence([1.0, 0.0], [1.0, 0.0]) == 0
    assert distortion.chi_squared_divergence([[0.5, 0.5]] * 2, [0.25, 0.75]).shape == (2,)


def test_hockey_stick() -> None:
    """Total variation at eps = 0, the mass without a counterpart at infinity, and the accountant's bracket between."""
    for p, q in laws():
        assert distortion.hockey_stick_divergence(p, q, 0.0) == pytest.approx(
            distortion.total_variation_distance(p, q), rel=1e-12
        )
        step = hs.Accountant("replace").compose(hs.Discrete(p, q))
        both = max(distortion.hockey_stick_divergence(*pair, 0.3) for pair in ((p, q), (q, p)))
        assert both == pytest.approx(float(step.delta(0.3)), rel=1e-9, abs=0)
    lost = distortion.hockey_stick_divergence([0.5, 0.25, 0.25], [0.0, 1.0 - 1e-323, 1e-323], [math.inf, 1500.0])
    assert lost.tolist() == [0.5, 0.5]
    tiny = distortion.hockey_stick_divergence([0.5, 0.5], [1.0, 5e-324], 743.0)  # e^743 is beyond the doubles
    assert tiny == pytest.approx(0.5 - math.exp(743.0 - 1074 * math.log(2.0)), rel=1e-12)
