"""The sums of e^{i k h L} - 1 over points, from the core's header, are as near the exact ones as Proposition 5 says."""

from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

import compiled

UNIT = 2.0**-53
PROGRAM = r"""
#include <hockeystick/simd/loss_points.hpp>

#include <cstdio>
#include <vector>

namespace simd = hockeystick::simd;

int main() {
    std::size_t n, nodes;
    double h;
    while (std::scanf("%zu %zu %lf", &n, &nodes, &h) == 3) {
        std::vector<double> losses(n), weights(n), real(nodes), imag(nodes), scratch(2 * simd::lanes * nodes);
        for (double& loss : losses) std::scanf("%lf", &loss);
        for (double& weight : weights) std::scanf("%lf", &weight);
        simd::characteristic_sums(losses.data(), weights.data(), n, h, nodes, real.data(), imag.data(), scratch.data());
        for (std::size_t k = 0; k < nodes; ++k) std::printf("%a %a\n", real[k], imag[k]);
    }
}
"""
Case = tuple[np.ndarray, np.ndarray, float, int]


def cases() -> list[Case]:
    """Return losses, weights, a spacing and a number of nodes: all scales, few and many nodes, one loss for all points."""
    rng = np.random.default_rng(31)
    found = []
    for nodes in (1, 7, 8, 9, 16, 17, 25, 26, 43, 150):
        n = int(8 * rng.integers(1, 50))
        scale = 10.0 ** rng.uniform(-6, 0.5) if nodes != 43 else 1e5
        losses = {0: rng.uniform(-1, 1, n), 1: np.exp(rng.uniform(-3, 3, n)), 2: np.ones(n)}[nodes % 3]
        found.append((losses * scale, np.exp(-30 * rng.uniform(0, 1, n)), 0.7, nodes))
    return found


def allowed(k: int, n: int, turn: float) -> float:
    """Return the bound of Proposition 5, and what rounds k h L once: turn is the mean of |h L|."""
    least = min(2.0, k * turn)
    roundings = min(n / 8, 16) + n / 128
    bound = (roundings + 6 * k + 32) * least if k <= 8 else (3.2 * roundings + 1.3 * k + 67) * least
    more = 20 * k if k <= 8 else 2.4 * k + 175
    return UNIT * (bound + k * turn + (more if turn > 0.5 else 0))


@pytest.mark.slow
@compiled.needs_compiler
def test_sums_against_thirty_digits(tmp_path: Path) -> None:
    """Every node of every case, under the flags of the kernels and under none."""
    asked = cases()
    lines = [
        f"{len(losses)} {nodes} {h!r}\n" + " ".join(x.hex() for x in [*losses.tolist(), *weights.tolist()])
        for losses, weights, h, nodes in asked
    ]
    programs = [compiled.program(tmp_path, PROGRAM, *flags) for flags in ((), compiled.KERNEL_FLAGS)]
    found = [iter(compiled.numbers_of(program, lines)) for program in programs]
    for losses, weights, h, nodes in asked:
        total, turn = weights.sum(), float((weights * abs(h * losses)).sum() / weights.sum())
        for k in range(1, nodes + 1):
            with mp.workdps(30):
                angles = [mp.mpf(h) * k * mp.mpf(x) for x in losses.tolist()]
                exact = mp.fsum(w * mp.expm1(1j * x) for w, x in zip(weights.tolist(), angles, strict=True))
                for numbers in found:
                    told = mp.mpc(next(numbers), next(numbers))
                    assert abs(told - exact) <= allowed(k, len(losses), turn) * total
    assert all(next(numbers, None) is None for numbers in found)
