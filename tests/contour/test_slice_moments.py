"""The damping of slices bounds their transforms, which are integrated here from their definition."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_ndtr

import compiled
import effort

PROGRAM = r"""
#include <hockeystick/cumulant/loss_slices.hpp>

#include <cstdio>

namespace cumulant = hockeystick::cumulant;

int main() {
    double sigma, rate, cut, c, omega;
    while (std::scanf("%lf %lf %lf %lf %lf", &sigma, &rate, &cut, &c, &omega) == 5) {
        const cumulant::SliceGrid grid(sigma, rate, cumulant::SliceShape::deep(), hockeystick::simd::own_kernels);
        const auto whole = grid.part({-hockeystick::numeric::infinity, cut, grid.width()});
        std::printf("%a\n", cumulant::SliceDamping(grid, whole, c).log_bound(omega));
    }
}
"""
Case = tuple[float, float, float, float]


def cases() -> list[Case]:
    """Return sigma, rate, the upper cut of the slices and the tilt."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(effort.at_night(40, by_day=10)):
        sigma, rate = np.exp(rng.uniform(np.log(0.25), np.log(8.0))), np.exp(rng.uniform(np.log(1e-6), np.log(0.5)))
        cut = 0.5 - sigma**2 * np.log(rate) - 1.4 * sigma**2 * rng.integers(0, 8)
        found.append((float(sigma), float(rate), float(max(cut, -5.0 * sigma)), float(np.exp2(rng.uniform(-4, 10)))))
    return [*found, (0.8, 1e-3, np.inf, 2.0), (2.0, 0.02, np.inf, 0.5)]


def losses_and_weights(case: Case, lower: float) -> tuple[np.ndarray, np.ndarray]:
    """Return losses, and weights of all slices below a cut that is `lower` than the case's, where that one's are not negligible.

    They are in units of the latter's sum: the trapezoid rule, twice, to be fine where it matters.
    """
    sigma, rate, cut, c = case
    left, right = -14.0 * sigma, 1.0 + 48.0 * sigma
    for _ in range(2):
        x = np.linspace(left, right, 20001)
        t = (2.0 * x - 1.0) / (2.0 * sigma**2)
        loss = np.where(t < 30.0, np.log1p(rate * np.expm1(np.minimum(t, 30.0))), t + np.log(rate))
        exponent = (c + 1.0) * loss - x**2 / (2.0 * sigma**2)
        whole = exponent + log_ndtr((cut - x) / (0.15 * sigma**2))
        matters = np.flatnonzero(whole > whole.max() - 50.0)
        left, right = x[max(matters[0] - 1, 0)], x[min(matters[-1] + 1, len(x) - 1)]
    below = exponent + log_ndtr((cut - lower - x) / (0.15 * sigma**2))
    return loss, np.exp(below - whole.max()) / np.exp(whole - whole.max()).sum()


@pytest.mark.slow
@compiled.needs_compiler
def test_transforms_stay_below_the_damping(tmp_path: Path) -> None:
    """From omega on, that of a slice with all below it and that of all below it are at most what is claimed at omega."""
    omegas = np.geomspace(1.0, 1e5, 21)
    asked = [f"{s!r} {q!r} {x!r} {c!r} {w!r}" for s, q, x, c in cases() for w in omegas.tolist()]
    bounds = np.array(compiled.numbers_of(compiled.program(tmp_path, PROGRAM, "-O2"), asked))
    assert (bounds <= 0.0).all()
    assert (bounds < -0.1).mean() > 0.1
    for case, bound in zip(cases(), bounds.reshape(-1, len(omegas)), strict=True):
        for lower in (0.0, 1.4 * case[0] ** 2):
            loss, weights = losses_and_weights(case, lower)
            finer = np.geomspace(1.0, min(3e5, 1.0 / np.diff(loss).max()), 60)  # elsewhere points are too far apart
            found = abs(np.exp(1j * np.outer(finer, loss)) @ weights)
            for omega, log_bound in zip(omegas[omegas <= finer[-1]], bound, strict=False):
                assert found[finer >= omega].max() <= np.exp(log_bound) * (1.0 + 1e-9)
