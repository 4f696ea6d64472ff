"""From a deployment to its mechanism, with a trusted server in closed forms, with secure aggregation by all roundings."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
import integer_laws as exact
import refused_calls
from hockeystick.training.federated_setup import rounded_norm

SETTINGS = {
    "num_clients": 1000,
    "clients_per_round": 50,
    "rounds": 40,
    "clip_norm": 0.5,
    "noise_std": 0.75,
    "noise_on": "sum",
    "sampling": "poisson",
}
EVERYONE = {"sampling": "all", "clients_per_round": 1000}


def parameters(**changes):
    """Return the parameters of the settings with changes."""
    return hs.federated_parameters(**(SETTINGS | changes))


def test_poisson_is_dpsgd_over_clients():
    """Poisson-sampled clients are DP-SGD's records, whether the noise is given for the sum or for the mean."""
    truth = hs.dpsgd_epsilon(1.5, 0.05, 40, 1e-6)
    assert parameters().accountant().epsilon(1e-6) == pytest.approx(truth, rel=1e-9)
    assert parameters(noise_std=0.75 / 50, noise_on="mean") == parameters()


@pytest.mark.parametrize(
    ("changes", "mu"),
    [
        (EVERYONE, math.sqrt(40) / 1.5),
        (EVERYONE | {"noise_on": "mean", "noise_std": 0.001}, math.sqrt(40) / 2),
        ({"noise_on": "client"}, 2 * math.sqrt(40) / 1.5),  # replaced updates are twice the clip norm apart
        ({"sampling": "shuffled"}, 2 * math.sqrt(2) / 1.5),  # 20 rounds are a pass, 40 are two
        ({"sampling": "shuffled", "rounds": 41}, 2 * math.sqrt(3) / 1.5),
        ({"sampling": "shuffled", "rounds": 1}, 2 / 1.5),
        ({"sampling": "shuffled", "num_clients": 1049, "rounds": 41}, 2 * math.sqrt(3) / 1.5),
    ],
)
def test_without_amplification_it_is_gaussian_dp(changes, mu):
    """Where nothing is amplified, delta is that of Gaussian DP at the worst client's root of squares."""
    accountant = parameters(**changes).accountant()
    for eps in (0.0, 1.0, 5.0):
        assert accountant.delta(eps) == pytest.approx(hs.gdp_delta(mu, eps), rel=1e-9)


def test_fixed_size_has_its_mechanism():
    """Fixed-size samples are accounted for under replacement, by their own mechanism."""
    found = parameters(sampling="fixed_size")
    assert found.mechanism == hs.FixedSizeSampled(hs.Gaussian(1.5), 1000, 50, replacement=False)
    assert (found.adjacency, found.steps) == ("replace", 40)
    assert found.accountant().epsilon(1e-6) > parameters().accountant().epsilon(1e-6)


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
@pytest.mark.parametrize("sampling", ["poisson", "fixed_size", "all", "shuffled"])
@pytest.mark.parametrize("noise_on", ["sum", "mean", "client"])
def test_assumptions_are_told(sampling, noise_on):
    """Every result says how many rounds, how clients come about, what is clipped, where the noise is, and who is adjacent."""
    found = parameters(**(EVERYONE if sampling == "all" else {"sampling": sampling}) | {"noise_on": noise_on})
    text = " ".join(found.assumptions)
    assert "40 rounds" in text
    assert "clipped as one vector" in text
    assert "adjacent" in text
    assert ("secret" in text) == (sampling in ("poisson", "fixed_size") and noise_on != "client")
    assert ("server is trusted" in found.privacy_unit) == (noise_on != "client")
    assert ("without amplification" in text) == (sampling == "shuffled" and noise_on != "client")


SECURE = {
    "num_clients": 1000,
    "dropouts": 100,
    "rounds": 20,
    "dimension": 4096,
    "clip_norm": 1.0,
    "client_noise_std": 0.1,
    "granularity": 0.002,
    "bits": 20,
}


def secure(**changes):
    """Return what the settings describe."""
    return hs.training.secure_aggregation_parameters(**{**SECURE, **changes})


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


def test_a_client_in_two_dimensions():
    """Three clients of which one drops out: the noise of two protects a vector of the largest norm, by enumeration."""
    training = secure(
        num_clients=3, dropouts=1, rounds=1, dimension=2, clip_norm=2.0, client_noise_std=1.0, granularity=1.0, bits=8
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
    epsilons = [secure(dropouts=dropouts).accountant().epsilon(1e-6) for dropouts in (0, 100, 500, 900)]
    assert epsilons == sorted(epsilons)
    whole = hs.Accountant().compose(hs.Gaussian(0.1 * math.sqrt(900)), 20).epsilon(1e-6)
    found = secure().accountant().epsilon_bracket(1e-6)
    assert whole * 0.999 <= found.lower <= found.upper <= whole * 1.01


def test_skellam_noise_adds_up():
    """Skellam noise has the variance of all that remain, and nearly the epsilon of the Gaussian."""
    training = secure(noise="skellam")
    assert training.mechanism.noise_variance == pytest.approx(900 * 50.0**2)
    assert training.accountant().epsilon(1e-6) <= 1.1 * secure().accountant().epsilon(1e-6)


def test_replaced_clients():
    """Under replacement the norm counts twice, and the assumptions say so."""
    training = secure(adjacency="replace")
    assert training.accountant().adjacency == "replace"
    assert "updates are replaced" in training.assumptions[-1]
    assert training.accountant().epsilon(1e-6) > 1.9 * secure().accountant().epsilon(1e-6)


REFUSED = r"""
parameters(clients_per_round=1001) -> at most num_clients
parameters(sampling="all") -> with sampling
parameters(noise_on="server") -> noise_on must be
parameters(sampling="uniform") -> sampling must be
parameters(sampling=True) -> TypeError: sampling must be
parameters(noise_std=1e+300, clip_norm=1e-300) -> over clip_norm
secure(dropouts=1000) -> dropouts must be at most num_clients - 1 \(999\), not 1000
secure(bits=12) -> bits must lie in \[13, 64\], as the noise of all clients has the deviation
secure(beta=1.0) -> beta must lie in \(0, 1\), not 1
secure(rounding="stochastic") -> rounding must be one of
secure(granularity=1e-10, bits=64) -> clip_norm over granularity, rounded, must lie in \[1, 1e9\]
secure(client_noise_std=1000.0, bits=60) -> client_noise_std over granularity must lie in
secure(granularity=1e-320) -> client_noise_std over granularity must be finite
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """What is outside its domain is named with its value, and wrong types are told from wrong values."""
    refused_calls.check(call, reason, {"parameters": parameters, "secure": secure, "math": math})
