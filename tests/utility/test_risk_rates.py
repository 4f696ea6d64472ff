"""Upper and lower rates side by side: every number by the formula of its theorem."""

from __future__ import annotations

import math

import pytest

from hockeystick import utility

N, n, d, L, D, BETA, EPS, DELTA = 25, 1000, 10, 1.5, 2.0, 1.0, 1.2, 1e-5
INPUTS = {
    "num_silos": N,
    "num_records": n,
    "dimension": d,
    "lipschitz": L,
    "diameter": D,
    "smoothness": BETA,
    "epsilon": EPS,
    "delta": DELTA,
    "gradient_std": 0.7,
    "heterogeneity": 2.0,
}
LOG = math.log(1 / DELTA)


def pairs(**change: float) -> dict[str, utility.RatePair]:
    """Return the rates by algorithm."""
    return {pair.algorithm: pair for pair in utility.risk_rates(**INPUTS | change).pairs}


def test_convex_rates() -> None:
    """Figure 3 for convex losses, with the logarithms."""
    found = pairs()
    private = math.sqrt(d * LOG) / (EPS * n)
    reach = math.sqrt(d) / (EPS * n * math.sqrt(N))
    expected = {
        "MB-SGD": (L * D / math.sqrt(N) * (1 / math.sqrt(n) + private), 0.7 * D / math.sqrt(N * n) + L * D * reach),
        "accelerated MB-SGD": (L * D / math.sqrt(N) * private, L * D * reach),
        "shuffled MB-SGD": (
            L * D * (1 / math.sqrt(n * N) + private / N),
            0.7 * D / math.sqrt(N * n) + L * D * reach / math.sqrt(N),
        ),
        "MB-SGD, n = 1": (
            L * D / math.sqrt(N * n) * (1 + math.sqrt(d * LOG) / EPS),
            0.7 * D / math.sqrt(N * n) + L * D * math.sqrt(d / (N * n)) / EPS,
        ),
    }
    for name, (upper, lower) in expected.items():
        assert found[name].upper == pytest.approx(upper, rel=1e-12)
        assert found[name].lower == pytest.approx(lower, rel=1e-12)
    batch = (L / (BETA * D)) ** 0.4 * n**0.6 * (d * LOG) ** 0.2 / (EPS**0.4 * N**0.2)
    assert found["one-pass AC-SA"].rounds == pytest.approx(n / batch, rel=1e-12)
    compositional = 0.7 * D / math.sqrt(N * n) + L * D * reach / (n / batch)  # C^2 = R
    assert found["one-pass AC-SA"].lower == pytest.approx(compositional, rel=1e-12)
    upper = 0.7 * D / math.sqrt(n * N) + (BETA**0.25 * L * D**1.5 * private / math.sqrt(N)) ** 0.8
    assert found["one-pass AC-SA"].upper == pytest.approx(upper, rel=1e-12)
    shuffled = math.sqrt(d) * math.log(d / DELTA) / (EPS * n * N)
    upper = 0.7 * D / math.sqrt(n * N) + (BETA**0.25 * L * D**1.5 * shuffled) ** 0.8
    assert found["shuffled one-pass AC-SA"].upper == pytest.approx(upper, rel=1e-12)


def test_strongly_convex_rates() -> None:
    """The same for strongly convex losses; logarithms stand where batches are sized."""
    found = pairs(strong_convexity=0.1)
    private = d * LOG / (EPS * n) ** 2
    reach = d / (EPS**2 * n**2 * N)
    assert found["MB-SGD"].upper == pytest.approx(L**2 / (0.1 * N) * (1 / n + private), rel=1e-12)
    assert found["MB-SGD"].lower == pytest.approx(0.49 / (0.1 * n * N) + L * D * reach, rel=1e-12)
    assert found["shuffled MB-SGD"].upper == pytest.approx(L**2 / 0.1 * (1 / (n * N) + private / N**2), rel=1e-12)
    assert found["shuffled MB-SGD"].lower == pytest.approx(0.49 / (0.1 * n * N) + L * D * reach / N, rel=1e-12)
    assert found["accelerated MB-SGD"].lower == pytest.approx(L * D * reach, rel=1e-12)
    assert found["shuffled one-pass AC-SA"].lower == found["shuffled MB-SGD"].lower
    upper = 0.49 / (0.1 * n * N) + L**2 / 0.1 * math.sqrt(BETA / 0.1) * private / N**2
    assert found["shuffled one-pass AC-SA"].upper == pytest.approx(upper, rel=1e-12)


def test_upper_rates_are_above_lower_ones() -> None:
    """Where the theorems apply: all silos take part, phi = L."""
    for epsilon in (0.01, 0.1, 1.0, 4.9):
        for pair in pairs(epsilon=epsilon, gradient_std=L).values():
            assert pair.lower <= pair.upper


def test_what_does_not_apply() -> None:
    """A large epsilon and missing silos are remarked on; JSON has no NaN."""
    rates = utility.risk_rates(**INPUTS | {"epsilon": 5.5}, silos_per_round=10)
    found = {pair.algorithm: pair for pair in rates.pairs}
    assert math.isnan(found["MB-SGD"].lower)
    assert found["MB-SGD"].remark == "Theorem 2.2 needs epsilon <= sqrt(N)"
    assert found["shuffled MB-SGD"].remark == "the lower rate is that of M = N"
    assert rates.to_dict()["pairs"][0]["lower"] is None
    assert rates.to_dict()["order_only"] is True
    assert not {"max_rounds", "max_batch_size"} & set(rates.to_dict()["inputs"])
    assert "neither column is a bound" in str(rates)
