"""Secure aggregation: norms of rounded vectors by trying all roundings, sums modulo a number, settings and what they refuse."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
import integer_laws as exact
from hockeystick.training.federated_setup import rounded_norm

SETTINGS = {
    "clients": 1000,
    "dropouts": 100,
    "rounds": 20,
    "dimension": 4096,
    "clip_norm": 1.0,
    "client_noise_std": 0.1,
    "granularity": 0.002,
    "bits": 20,
}


def parameters(**changes):
    """Return what the settings describe."""
    return hs.training.secure_aggregation_parameters(**{**SETTINGS, **changes})


def roundings(vector):
    """Yield all roundings up and down of a vector, and their probabilities."""
    low = np.floor(vector)
    for ups in itertools.product((0, 1), repeat=len(vector)):
        yield low + ups, math.prod(f if up else 1 - f for f, up in zip(vector - low, ups, strict=True))


@pytest.mark.parametrize("dimension", [1, 2, 3, 7])
def test_norms_of_rounded_vectors(dimension):
    """No rounding exceeds the norm of a random one; and that of a conditional one is exceeded with a probability of at most beta."""
    rng, compared = np.random.default_rng(dimension), 0
    for norm in (0.3, 1.0, 2.5, 10.0):
        for _ in range(20):
            vector = rng.normal(size=dimension)
            vector *= norm / np.linalg.norm(vector) * rng.choice([1.0, 0.7])
            nearest = np.linalg.norm(np.rint(vector))
            assert nearest <= rounded_norm(norm, dimension, "nearest", 0.5)
            for beta in (0.9, math.exp(-0.5), 0.1, 0.01):
                limit = rounded_norm(norm, dimension, "conditional", beta)
                found = list(roundings(vector))
                assert all(np.linalg.norm(v) <= rounded_norm(norm, dimension, "random", beta) for v, _ in found)
                assert sum(p for v, p in found if np.linalg.norm(v) > limit) <= beta * (1 + 1e-12)
                compared += 1
    assert compared == 320


@pytest.mark.parametrize("modulus", [3, 8, 16])
def test_wrapping_around_leaks_no_more(modulus):
    """The sum modulo a number has a delta that is at most that of the sum, by enumeration, and so below the upper end."""
    law = exact.sum_of_discrete_gaussians(1.0, 3)
    middle = len(law) // 2
    ledger = hs.Accountant().compose(hs.DistributedDiscreteGaussian(1.0, 3, 2.0, 1))
    with mp.workdps(40):
        wrapped = [[mp.mpf(0)] * modulus for _ in range(2)]
        for k, mass in enumerate(law):
            wrapped[0][(k - middle + 2) % modulus] += mass
            wrapped[1][(k - middle) % modulus] += mass
        for eps in (0.0, 0.3, 1.0, 2.5):
            seen = exact.delta(list(zip(*wrapped, strict=True)), eps)
            assert seen <= exact.delta(exact.moved(law, 2), eps) <= ledger.delta(eps)


def test_a_client_in_two_dimensions():
    """Three clients of which one drops out: the noise of two protects a vector of the largest norm, by enumeration."""
    training = parameters(
        clients=3, dropouts=1, rounds=1, dimension=2, clip_norm=2.0, client_noise_std=1.0, granularity=1.0, bits=8
    )
    norm = training.mechanism.sensitivity
    assert norm**2 == pytest.approx(4 + 0.5 + 2 + 0.5 * math.sqrt(2))
    law = exact.sum_of_discrete_gaussians(1.0, 2)
    off = len(law) // 2 - 16
    short = law[off : len(law) - off]  # what is left out only makes delta smaller
    with mp.workdps(20):
        for vector in ((2, 1), (1, 2), (2, 0), (1, 1)):
            assert math.hypot(*vector) <= norm
            outcomes = exact.product(*(exact.moved(short, part) for part in vector))
            for eps in (0.5, 2.0):
                assert exact.delta(outcomes, eps) <= training.accountant().delta(eps)


def test_more_dropouts_leak_more():
    """Epsilon rises with the number that may drop out, and falls with the noise; that of no rounding is below."""
    epsilons = [parameters(dropouts=dropouts).accountant().epsilon(1e-6) for dropouts in (0, 100, 500, 900)]
    assert epsilons == sorted(epsilons)
    whole = hs.Accountant().compose(hs.Gaussian(0.1 * math.sqrt(900)), 20).epsilon(1e-6)
    found = parameters().accountant().epsilon_bracket(1e-6)
    assert whole * 0.999 <= found.lower <= found.upper <= whole * 1.01


def test_skellam_noise_adds_up():
    """Skellam noise has the variance of all that remain, and nearly the epsilon of the Gaussian."""
    training = parameters(noise="skellam")
    assert training.mechanism.variance == pytest.approx(900 * 50.0**2)
    assert training.accountant().epsilon(1e-6) <= 1.1 * parameters().accountant().epsilon(1e-6)


def test_replaced_clients():
    """Under replacement the norm counts twice, and the assumptions say so."""
    training = parameters(adjacency="replace")
    assert training.accountant().adjacency == "replace"
    assert "updates are replaced" in training.assumptions[-1]
    assert training.accountant().epsilon(1e-6) > 1.9 * parameters().accountant().epsilon(1e-6)


BAD = [
    (ValueError, r"dropouts must be at most clients - 1 \(999\), not 1000", {"dropouts": 1000}),
    (ValueError, "dropouts must be an integer in", {"dropouts": -1}),
    (ValueError, r"bits must lie in \[13, 64\], as the noise of all clients has the deviation", {"bits": 12}),
    (ValueError, "bits must lie in", {"bits": 65}),
    (ValueError, "granularity must be positive", {"granularity": 0.0}),
    (ValueError, r"beta must lie in \(0, 1\), not 1", {"beta": 1.0}),
    (ValueError, "rounding must be one of", {"rounding": "stochastic"}),
    (ValueError, r"clip_norm over granularity, rounded, must lie in \[1, 1e9\]", {"granularity": 1e-10, "bits": 64}),
    (ValueError, "client_noise_std over granularity must lie in", {"client_noise_std": 1e3, "bits": 60}),
    (ValueError, "client_noise_std over granularity must be finite", {"granularity": 1e-320}),
    (TypeError, "clients must be an integer", {"clients": 10.5}),
]


@pytest.mark.parametrize(("error", "message", "changes"), BAD)
def test_bad_settings(error, message, changes):
    """A setting outside its domain is named, with its value."""
    with pytest.raises(error, match=message):
        parameters(**changes)
