"""Gaussian DP, federated averaging and the last iterate in the C library: closed forms, the package, refused numbers."""

from __future__ import annotations

import ctypes
import itertools
import math
from statistics import NormalDist

import pytest

import compiled
import hockeystick as hs
from hockeystick import federated, last_iterate

pytestmark = compiled.needs_library
SCHEDULES = ("constant", "cyclic", "stagewise", "continuous")  # in the order of their codes
ROUNDING = 1e-11  # of mu and log delta 1e-12, in both libraries


@pytest.fixture(scope="module")
def library():
    """Return the library."""
    return compiled.library()


def answer(library, name, *arguments):
    """Return what a function writes, or raise what the library says."""
    out = ctypes.c_double(7.0)
    try:
        compiled.call(library, name, *arguments, ctypes.byref(out))
    except ValueError:
        assert out.value == 7.0
        raise
    return out.value


def test_gaussian_dp(library):
    """Delta is theta, epsilon its inverse, and the trade-off function Phi(Phi^-1(1 - fpr) - mu); 300 cells."""
    normal = NormalDist()
    for mu, k in itertools.product((0.01, 0.3, 1.0, 2.5, 6.0), range(1, 21)):
        assert library.hs_gdp_delta(mu, 0.2 * k) == pytest.approx(float(hs.theta(0.2 * k, mu)), rel=1e-13)
        delta = 10.0 ** (-0.6 * k)
        epsilon = library.hs_gdp_epsilon(mu, delta)
        assert library.hs_gdp_delta(mu, epsilon) <= delta * (1.0 + 1e-9)
        assert epsilon == 0.0 or float(hs.theta(epsilon, mu)) == pytest.approx(delta, rel=1e-9)
        missed = normal.cdf(normal.inv_cdf(1.0 - k / 21) - mu)
        assert library.hs_gdp_trade_off(mu, k / 21) == pytest.approx(missed, rel=1e-9)
    assert library.hs_gdp_epsilon(1.0, 0.0) == math.inf
    outside = [(-1.0, 1.0), (1.0, -1.0), (math.nan, 1.0)]
    assert all(math.isnan(library.hs_gdp_delta(*cell)) for cell in outside)
    assert all(math.isnan(library.hs_gdp_epsilon(1.0, delta)) for delta in (-0.1, 1.1, math.nan))
    assert all(math.isnan(library.hs_gdp_trade_off(1.0, rate)) for rate in (-0.1, 1.1, math.nan))


@pytest.mark.parametrize("code", [0, 1])
def test_federated_averaging_of_equal_rounds(library, code):
    """Without a diameter mu = 2 V lr sqrt(T/m)/sigma times the sum of a round's steps over lr; 150 cells."""
    for rounds, steps, clients in itertools.product((1, 7, 100, 10**6, 2**53), (1, 3, 40), (1, 10, 1000)):
        for noise, rate in ((0.01, 0.1), (1.0, 1e-3)):
            length = steps if code == 0 else math.fsum(1.0 / j for j in range(1, steps + 1))
            exact = 2.0 * 1.5 * rate * length * math.sqrt(rounds / clients) / noise
            found = answer(library, "fedavg_gdp", code, rounds, steps, clients, 1.5, noise, 0.7, rate, math.inf)
            assert found == pytest.approx(exact, rel=1e-12)


@pytest.mark.share(2)
@pytest.mark.parametrize("code", range(4))
def test_federated_averaging_is_the_packages(library, code):
    """Every schedule with and without a diameter gives Python's mu; 144 cells."""
    for rounds, steps, noise, smoothness, diameter in itertools.product(
        (1, 9, 300), (1, 4), (0.05, 1.0), (0.0, 0.8), (0.02, 1.0, math.inf)
    ):
        setting = {"clip_norm": 1.0, "noise_std": noise, "smoothness": smoothness, "learning_rate": 0.1}
        mu = federated.fedavg_gdp(
            rounds=rounds, local_steps=steps, num_clients=20, **setting, schedule=SCHEDULES[code], diameter=diameter
        )
        found = answer(library, "fedavg_gdp", code, rounds, steps, 20, *setting.values(), diameter)
        assert found == pytest.approx(mu, rel=ROUNDING)


def test_last_iterate(library):
    """Theorem 4 of Asoodeh, Diaz and Calmon: theta(2L/sigma) theta(M D/(lr sigma))^(n - i), as in the package; 96 cells."""
    cells = itertools.product((0.0, 0.5, 2.0), (1, 20, 39, 40), (0.5, 2.0), (0.0, 0.3), (0.5, 3.0))
    for eps, index, noise, convexity, diameter in cells:
        setting = {"learning_rate": 0.5, "noise_std": noise, "lipschitz": 1.0, "smoothness": 0.8}
        setting |= {"strong_convexity": convexity, "diameter": diameter}
        found = answer(library, "pnsgd_gaussian", eps, index, 40, *setting.values())
        assert found == pytest.approx(
            last_iterate.pnsgd_gaussian(eps, index=index, num_records=40, **setting), rel=1e-9
        )
        contraction = math.sqrt(1.0 - 2.0 * 0.5 * 0.8 * convexity / (0.8 + convexity))
        later = float(hs.theta(eps, contraction * diameter / (0.5 * noise)))
        exact = float(hs.theta(eps, 2.0 / noise)) * later ** (40 - index)
        assert found == pytest.approx(exact, rel=1e-9, abs=1e-300)


FEDERATION = [0, 100, 5, 50, 1.0, 0.1, 1.0, 0.01, math.inf]
DESCENT = [1.0, 20, 40, 0.5, 2.0, 1.0, 0.5, 0.0, 1.0]


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("fedavg_gdp", 0, 4, "schedule must be HS_CONSTANT_STEPS, HS_CYCLIC_STEPS"),
        ("fedavg_gdp", 0, -1, "schedule must be HS_CONSTANT_STEPS"),
        ("fedavg_gdp", 1, 0.5, r"rounds must be an integer in \[1, 2\^53\], not 0.5"),
        ("fedavg_gdp", 2, 0.0, r"local_steps must be an integer in \[1, 2\^53\], not 0"),
        ("fedavg_gdp", 3, math.nan, r"num_clients must be an integer in \[1, 2\^53\], not nan"),
        ("fedavg_gdp", 4, 0.0, "clip_norm must be positive and finite, not 0"),
        ("fedavg_gdp", 5, math.inf, "noise_std must be positive and finite, not inf"),
        ("fedavg_gdp", 6, -1.0, "smoothness must be non-negative and finite, not -1"),
        ("fedavg_gdp", 7, 0.0, "learning_rate must be positive and finite, not 0"),
        ("fedavg_gdp", 8, 0.0, "diameter must be positive, not 0"),
        ("fedavg_gdp", 8, math.nan, "diameter must be positive, not nan"),
        ("pnsgd_gaussian", 0, -1.0, "epsilon must be non-negative, not -1"),
        ("pnsgd_gaussian", 1, 0.0, r"index must be an integer in \[1, 2\^53\], not 0"),
        ("pnsgd_gaussian", 1, 41.0, r"index must lie in \[1, num_records\], not 41"),
        ("pnsgd_gaussian", 2, 1.5, r"num_records must be an integer in \[1, 2\^53\], not 1.5"),
        ("pnsgd_gaussian", 3, 5.0, r"learning_rate must be at most 2/\(smoothness \+ strong_convexity\), not 5"),
        ("pnsgd_gaussian", 4, 0.0, "noise_std must be positive and finite, not 0"),
        ("pnsgd_gaussian", 5, math.nan, "lipschitz must be positive and finite, not nan"),
        ("pnsgd_gaussian", 6, math.inf, "smoothness must be non-negative and finite, not inf"),
        ("pnsgd_gaussian", 7, 0.7, r"strong_convexity must lie in \[0, smoothness\], not 0.7"),
        ("pnsgd_gaussian", 8, math.inf, "diameter must be positive and finite, not inf"),
    ],
)
def test_refused_numbers(library, name, place, value, message):
    """An argument outside its domain is named with its value, and the result is untouched."""
    arguments = list(FEDERATION if name == "fedavg_gdp" else DESCENT)
    arguments[place] = value
    with pytest.raises(ValueError, match=message):
        answer(library, name, *arguments)


def test_rounds_that_grow_the_cost(library):
    """Schedules that differ from round to round take at most 10^6 rounds, and NULL is refused."""
    for code in (2, 3):
        with pytest.raises(ValueError, match=r"rounds must be an integer in \[1, 1000000\], not 1000001"):
            answer(library, "fedavg_gdp", code, 1000001, *FEDERATION[2:])
    assert library.hs_fedavg_gdp(*FEDERATION, None) == 1
    assert library.hs_last_error_message() == b"mu must not be NULL"
