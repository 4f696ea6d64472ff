"""The nonlinear contraction and its company: against mpmath, random kernels, and the limits that the mathematics knows."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
import theorems
from hockeystick import federated, last_iterate

mp.mp.dps = 30

DESCENT = {"learning_rate": 0.5, "noise_std": 1.0, "lipschitz": 1.0, "smoothness": 0.5, "diameter": 1.5}
DESCENT |= {"index": 20, "num_records": 25}


def contracted(eps: mp.mpf, e: mp.mpf, r: mp.mpf, theta=theorems.theta) -> mp.mpf:
    """Return F(E) = E theta(log(1 + (e^eps - 1)/E), r)."""
    return e * theta(mp.log(1 + mp.expm1(eps) / e), r) if e > 0 else mp.mpf(0)


def laplace_theta(eps: mp.mpf, r: mp.mpf) -> mp.mpf:
    """Return the divergence of two unit Laplaces at distance r."""
    return max(mp.mpf(0), -mp.expm1((eps - r) / 2))


def expected(eps: float, arguments: dict) -> dict[str, mp.mpf]:
    """Return every bound term by term, the hybrid as the minimum over all switches."""
    a = {name: mp.mpf(value) for name, value in arguments.items()}
    eps = mp.mpf(eps)
    after = int(a["num_records"] - a["index"])
    rho, beta, rate = a.get("strong_convexity", mp.mpf(0)), a["smoothness"], a["learning_rate"]
    c = max(abs(1 - rate * beta), abs(1 - rate * rho))
    g, r = 2 * a["lipschitz"] / a["noise_std"], c * a["diameter"] / (rate * a["noise_std"])
    mu = [g / mp.sqrt(mp.fsum(c ** (-2 * i) for i in range(k + 1))) for k in range(after + 1)]
    shifted = [theorems.theta(eps, m) for m in mu]
    hybrids = []
    for switch in range(after + 1):
        e = shifted[switch]
        for _ in range(after - switch):
            e = contracted(eps, e, r) if e > mp.mpf("1e-340") else mp.mpf(0)
        hybrids.append(e)
    kappa = mu[-1] ** 2 / 2
    return {
        "plain": shifted[0],
        "renyi": mp.exp(-((eps - kappa) ** 2) / (4 * kappa)) if eps > kappa else mp.mpf(1),
        "contraction": shifted[0] * theorems.theta(eps, r) ** after,
        "nonlinear": hybrids[0],
        "shifted": shifted[-1],
        "hybrid": min(hybrids),
    }


SETTINGS = [
    {},
    {"index": 25},
    {"diameter": 0.3},
    {"diameter": 6.0},
    {"strong_convexity": 0.3},
    {"learning_rate": 5.0, "strong_convexity": 0.1},  # the step expands: c = 1.5
    {"noise_std": 5.0, "index": 21},
    {"noise_std": 0.2, "diameter": 0.2},
    {"index": 16, "diameter": 4.0},
]


@pytest.mark.share(4)
@pytest.mark.parametrize("change", SETTINGS, ids=str)
@pytest.mark.parametrize("eps", [0.0, 1e-9, 0.3, 1.0, 5.0])
def test_against_the_formulas(change: dict, eps: float) -> None:
    """Each bound is its formula's value, rounded up by no more than 1e-9 in log delta; best takes the smallest."""
    arguments = DESCENT | change
    best = last_iterate.best(eps, **arguments)
    for name, value in expected(eps, arguments).items():
        if value < mp.mpf("1e-300"):
            assert 0 < best.bounds[name] < 1e-299
            continue
        ratio = mp.mpf(best.bounds[name]) / value
        assert 1 <= ratio <= 1 + mp.mpf("1e-9") * (1 + abs(mp.log(value))), (name, ratio)
    assert best.delta == best.bounds[best.method] <= min(best.bounds.values()) * (1 + 1e-9)


@pytest.mark.parametrize("eps", [0.0, 0.4, 2.0])
@pytest.mark.parametrize("diameter", [0.5, 2.0, 9.0])
def test_laplace_against_the_formulas(eps: float, diameter: float) -> None:
    """The same for Laplace noise, where the iterate reaches exactly 0."""
    arguments = {k: v for k, v in DESCENT.items() if k != "noise_std"} | {"noise_scale": 1.0, "diameter": diameter}
    best = last_iterate.best(eps, **arguments)
    r = mp.mpf(diameter) / mp.mpf(0.5)
    e = first = laplace_theta(mp.mpf(eps), mp.mpf(2))
    for _ in range(5):
        e = contracted(mp.mpf(eps), e, r, laplace_theta)
    product = first * laplace_theta(mp.mpf(eps), r) ** 5
    for name, value in (("plain", first), ("contraction", product), ("nonlinear", e)):
        assert value <= best.bounds[name] <= value * (1 + mp.mpf("1e-11")) + mp.mpf("1e-15"), name
    assert best.delta == best.bounds["nonlinear"]


def test_order_of_the_bounds() -> None:
    """The hybrid is below all it is made of, the iterate below the product, the Renyi route above shifted interpolation."""
    rng = np.random.default_rng(1)
    n = 3000
    arguments = {
        "num_records": rng.integers(20, 120, n),
        "index": rng.integers(1, 20, n),
        "learning_rate": rng.uniform(0.05, 2.0, n),
        "noise_std": 10 ** rng.uniform(-1, 1, n),
        "lipschitz": 10 ** rng.uniform(-1, 0.5, n),
        "smoothness": rng.uniform(0.3, 2.0, n),
        "strong_convexity": rng.uniform(0, 0.3, n) * rng.integers(0, 2, n),
        "diameter": 10 ** rng.uniform(-1, 1, n),
    }
    best = last_iterate.best(10 ** rng.uniform(-3, 1, n), **arguments, one_dimensional=True, quick=True)
    b = best.bounds
    slack = 1 + 1e-9
    assert np.all(b["projected"] <= b["hybrid"])
    for name in ("nonlinear", "shifted", "contraction", "plain"):
        assert np.all(b["hybrid"] <= b[name] * slack), name
    assert np.all(b["nonlinear"] <= b["contraction"] * slack)
    assert np.all(b["shifted"] <= b["renyi"] * slack)
    assert np.all(best.delta <= np.min(list(b.values()), axis=0) * slack)
    winners = set(np.unique(best.method))
    assert {"shifted", "nonlinear"} <= winners
    assert not winners & {"renyi"}


def test_what_the_projection_hides() -> None:
    """One step after the record's, in one dimension: F with the supremum over pairs of means within the step's drift."""
    eps, g, width, drift = 0.5, 0.4, 2.0, 0.2
    process = {"learning_rate": 1.0, "noise_std": 1.0, "lipschitz": drift, "smoothness": 0.0, "diameter": width}
    best = last_iterate.best(eps, index=1, num_records=2, **process, one_dimensional=True)
    e = hs.theta(eps, g)
    sharper = math.log(1 + math.expm1(eps) / e)
    starts, moves = np.linspace(-1, 1, 21), np.linspace(-drift, drift, 9)
    means = np.add.outer(starts, moves)
    coefficient = 0.0
    for a, b in itertools.product(range(21), repeat=2):
        for high, low in itertools.product(means[a], means[b]):
            if abs(high - low) > abs(starts[a] - starts[b]) + 1e-12 or high <= low:
                continue
            t = min(1.0, (high + low) / 2 + sharper / (high - low))
            coefficient = max(coefficient, float(hs.q(t - high) - math.exp(sharper) * hs.q(t - low)))
    assert best.method == "projected"
    np.testing.assert_allclose(best.delta, e * coefficient, rtol=1e-9)
    assert best.bounds["hybrid"] > best.delta * 1.001


def test_without_projection() -> None:
    """An infinite diameter leaves shifted interpolation alone: g/sqrt(k + 1) for non-expansive steps."""
    best = last_iterate.best(0.7, **(DESCENT | {"diameter": np.inf, "noise_std": 0.8}))
    np.testing.assert_allclose(best.delta, hs.theta(0.7, 2.5 / math.sqrt(6)), rtol=1e-9)
    assert best.method == "shifted"
    assert best.bounds["nonlinear"] >= best.bounds["plain"] * (1 - 1e-15)


@pytest.mark.parametrize("after", [400, 520, 1000, 20000])
def test_what_is_forgotten_beyond_the_range_of_doubles(after: int) -> None:
    """Halving steps without projection leave mu = g/sqrt(sum 4^j), an equality for quadratics: sums that overflow count too."""
    halving = {"smoothness": 1.0, "strong_convexity": 1.0, "diameter": np.inf}
    best = last_iterate.best(0.0, **(DESCENT | halving | {"index": 1, "num_records": after + 1}))
    mu = 2 / mp.sqrt((mp.mpf(4) ** (after + 1) - 1) / 3)
    with mp.workdps(30):
        truth = mu / mp.sqrt(2 * mp.pi) if mu < 1e-20 else theorems.theta(0, mu)
    assert all(value >= truth * (1 - mp.mpf("1e-20")) for value in best.bounds.values())


@pytest.mark.parametrize("unit", [3e-162, 1e-170, 1e160])
def test_aggregator_does_not_know_its_unit(unit: float) -> None:
    """Noise, gradients and step sizes in another unit leave the gaps over the noise, and so shifted interpolation, as they are."""
    steps, noise = np.array([1.0, 2.0, 0.5, 1.0]), np.array([1.0, 0.7, 1.3, 1.0])
    users = {"num_users": 4, "batch_size": 1, "radius": 1.0, "loss": "convex"}
    shifted = [
        federated.best(0.5, **users, learning_rate=steps * k, noise_std=noise * k, lipschitz=k).bounds["shifted"]
        for k in (1.0, unit)
    ]
    np.testing.assert_allclose(shifted[1], shifted[0], rtol=1e-12)


@pytest.mark.parametrize("one_dimensional", [False, True])
def test_reach_does_not_underflow_on_the_way(one_dimensional: bool) -> None:
    """A diameter of 1e-100 deviations stays that if the quotient by one of its factors has no double."""
    process = {"learning_rate": 1e200, "noise_std": 1e-300, "lipschitz": 1e-300, "smoothness": 0.0, "diameter": 1e-200}
    best = last_iterate.best(0.0, index=1, num_records=2, **process, one_dimensional=one_dimensional)
    alone = hs.theta(0.0, 2.0)
    np.testing.assert_allclose(best.bounds["nonlinear"], alone * 1e-100 / math.sqrt(2 * math.pi), rtol=1e-9)
    assert best.delta >= alone * 1e-100 / math.sqrt(2 * math.pi) * (1 - 1e-13)


def test_many_records_cost_nothing() -> None:
    """A billion later steps: answered at once, between what the limit forbids and what fewer steps give."""
    wide = DESCENT | {"diameter": 60.0, "noise_std": 5.0, "index": 1}  # r = 24: a step contracts by almost nothing
    few, many = (last_iterate.best(0.0, **(wide | {"num_records": n})) for n in (10**4, 10**9))
    assert many.delta <= few.delta
    np.testing.assert_allclose(many.bounds["shifted"], hs.theta(0.0, 0.4 / math.sqrt(1e9)), rtol=1e-6)


def test_random_stop() -> None:
    """The mean over the stop is the mean of the bounds for the first record, and never above the published theorem."""
    arguments = {k: v for k, v in DESCENT.items() if k != "index"} | {"num_records": 12}
    best = last_iterate.best_random_stop(0.6, **arguments)
    for name in ("contraction", "nonlinear", "shifted", "hybrid"):
        terms = [
            last_iterate.best(0.6, **(arguments | {"index": 1, "num_records": n})).bounds[name] for n in range(1, 13)
        ]
        np.testing.assert_allclose(best.bounds[name], np.mean(terms), rtol=1e-9)
    assert best.delta <= last_iterate.pnsgd_gaussian_random_stop(0.6, **arguments)
    long = last_iterate.best_random_stop(0.6, **(arguments | {"num_records": 10**9}))
    np.testing.assert_allclose(long.bounds["nonlinear"], np.sum(terms) / 1e9, rtol=2.0)
    assert long.bounds["hybrid"] <= long.bounds["nonlinear"]


AGGREGATION = {"learning_rate": 0.5, "noise_std": 1.5, "lipschitz": 1.0, "radius": 1.0, "loss": "convex"}
AGGREGATION |= {"num_users": 120, "batch_size": 10}


@pytest.mark.parametrize(
    "change", [{}, {"smoothness": 1.5, "strong_convexity": 0.4}, {"loss": "nonconvex", "smoothness": 1.0}]
)
@pytest.mark.parametrize("suffix", [None, 0.3, 1.0])
def test_aggregator_constants_and_schedules_agree(change: dict, suffix: float | None) -> None:
    """A schedule of equal values gives what the constants give, and the sum of the terms by hand."""
    arguments = AGGREGATION | change
    best = federated.best(0.8, **arguments, suffix=suffix)
    schedule = {"learning_rate", "noise_std", "lipschitz", "radius", "smoothness", "strong_convexity"}
    spread = {k: np.full(12, v) if k in schedule else v for k, v in arguments.items()}
    spelled = federated.best(0.8, **spread, suffix=suffix)
    for name, value in best.bounds.items():
        np.testing.assert_allclose(value, spelled.bounds[name], rtol=1e-9, err_msg=name)
    printed = {k: v for k, v in arguments.items() if k != "strong_convexity"}
    if suffix is None:
        published = federated.trusted_aggregator(0.8, **printed)
    else:
        published = federated.trusted_aggregator_random_stop(0.8, **printed, suffix=suffix)
    for smaller, larger in itertools.pairwise(
        [best.delta, best.bounds["hybrid"], best.bounds["contraction"], published]
    ):
        assert smaller <= larger * (1 + 2e-9)


def test_aggregator_schedule_by_hand() -> None:
    """Rates, noise and radii that change from round to round: every term by mpmath."""
    rates, noises, radii = [0.5, 0.4, 0.3], [1.0, 2.0, 1.5], [1.0, 0.8, 1.2]
    schedule = {"learning_rate": rates, "noise_std": noises, "lipschitz": 1.0, "radius": radii}
    best = federated.best(0.5, num_users=6, batch_size=2, **schedule, loss="convex")
    root, eps = mp.sqrt(2), mp.mpf(0.5)
    deviation = [mp.mpf(e) * mp.mpf(s) for e, s in zip(rates, noises, strict=True)]
    nonlinear = shifted = mp.mpf(0)
    for t in range(3):
        g = 2 / (root * mp.mpf(noises[t]))
        e = theorems.theta(eps, g)
        for j in range(t + 1, 3):
            e = contracted(eps, e, 2 * mp.mpf(radii[j - 1]) * root / deviation[j])
        nonlinear += e
        # the gap g stays, each later round can hide its share: harmonic sum of the variances
        spread = mp.fsum((deviation[j] / deviation[t]) ** 2 for j in range(t, 3))
        shifted += theorems.theta(eps, g / mp.sqrt(spread))
    np.testing.assert_allclose(best.bounds["nonlinear"], float(nonlinear / 3), rtol=1e-9)
    np.testing.assert_allclose(best.bounds["shifted"], float(shifted / 3), rtol=1e-9)


def test_grids_and_threads() -> None:
    """Arguments broadcast; any number of threads gives the bits of one."""
    grid = DESCENT | {"diameter": np.geomspace(0.1, 20, 4)[:, None], "num_records": np.arange(25, 28)}
    alone = last_iterate.best(0.5, **grid, num_threads=1)
    for threads in (2, 5):
        again = last_iterate.best(0.5, **grid, num_threads=threads)
        for name, value in alone.bounds.items():
            np.testing.assert_array_equal(again.bounds[name], value)
    assert alone.delta.shape == alone.method.shape == (4, 3)
    for i, j in ((0, 0), (1, 2), (3, 1)):
        cell = last_iterate.best(0.5, **(grid | {"diameter": grid["diameter"][i, 0], "num_records": 25 + j}))
        assert cell.delta == alone.delta[i, j]
        assert cell.method == alone.method[i, j]
