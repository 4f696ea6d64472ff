"""Upper and lower rates side by side: every number by the formula of its theorem."""

import math

import pytest

from hockeystick import utility

N, n, d, L, D, BETA, EPS, DELTA = 25, 1000, 10, 1.5, 2.0, 1.0, 1.2, 1e-5
INPUTS = {
    "num_silos": N, "num_records": n, "dimension": d, "lipschitz": L, "diameter": D, "smoothness": BETA, "epsilon": EPS,
    "delta": DELTA, "gradient_std": 0.7, "heterogeneity": 2.0,
}  # fmt: skip
LOG = math.log(1 / DELTA)


def pairs(**change: float) -> dict[str, utility.RatePair]:
    """Return the rates by algorithm."""
    return {pair.algorithm: pair for pair in utility.risk_rates(**INPUTS | change).pairs}


def check(found: dict[str, utility.RatePair], expected: dict[str, tuple[float | None, float | None]]) -> None:
    """Compare upper and lower rates, None where nothing is expected."""
    for name, rates in expected.items():
        for rate, wanted in zip((found[name].upper, found[name].lower), rates, strict=True):
            assert wanted is None or rate == pytest.approx(wanted, rel=1e-12), name


def test_convex_rates() -> None:
    """Figure 3 for convex losses, with the logarithms."""
    found = pairs()
    private, reach = math.sqrt(d * LOG) / (EPS * n), L * D * math.sqrt(d) / (EPS * n * math.sqrt(N))
    statistical, shuffled = 0.7 * D / math.sqrt(N * n), math.sqrt(d) * math.log(d / DELTA) / (EPS * n * N)
    batch = (L / (BETA * D)) ** 0.4 * n**0.6 * (d * LOG) ** 0.2 / (EPS**0.4 * N**0.2)
    one_pass = [(BETA**0.25 * L * D**1.5 * noise) ** 0.8 for noise in (private / math.sqrt(N), shuffled)]
    expected = {
        "MB-SGD": (L * D / math.sqrt(N) * (1 / math.sqrt(n) + private), statistical + reach),
        "accelerated MB-SGD": (L * D / math.sqrt(N) * private, reach),
        "shuffled MB-SGD": (L * D * (1 / math.sqrt(n * N) + private / N), statistical + reach / math.sqrt(N)),
        "MB-SGD, n = 1": (
            L * D / math.sqrt(N * n) * (1 + math.sqrt(d * LOG) / EPS),
            statistical + L * D * math.sqrt(d / (N * n)) / EPS,
        ),
        "one-pass AC-SA": (statistical + one_pass[0], statistical + reach / (n / batch)),  # C^2 = R
        "shuffled one-pass AC-SA": (statistical + one_pass[1], None),
    }
    check(found, expected)
    assert found["one-pass AC-SA"].rounds == pytest.approx(n / batch, rel=1e-12)


def test_strongly_convex_rates() -> None:
    """The same for strongly convex losses; logarithms stand where batches are sized."""
    private, reach = d * LOG / (EPS * n) ** 2, L * D * d / (EPS**2 * n**2 * N)
    statistical = 0.49 / (0.1 * n * N)
    shuffled = statistical + reach / N
    expected = {
        "MB-SGD": (L**2 / (0.1 * N) * (1 / n + private), statistical + reach),
        "shuffled MB-SGD": (L**2 / 0.1 * (1 / (n * N) + private / N**2), shuffled),
        "accelerated MB-SGD": (None, reach),
        "shuffled one-pass AC-SA": (statistical + L**2 / 0.1 * math.sqrt(BETA / 0.1) * private / N**2, shuffled),
    }
    check(pairs(strong_convexity=0.1), expected)


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
