"""From a deployment to its mechanism: closed forms, what each way of sampling may claim, and a shuffled training exactly."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs

SETTINGS = {
    "clients": 1000,
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
        ({"sampling": "shuffled", "clients": 1049, "rounds": 41}, 2 * math.sqrt(3) / 1.5),
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


def shuffled_delta(eps, clients, noise):
    """Return delta of a pass over shuffled clients, one a round, where one of them sends +1 or -1, and the others 0.

    The order is not seen: a mixture, over the place of the one, of N(+-1, noise^2) there and N(0, noise^2) elsewhere, on a grid.
    """
    axes = np.meshgrid(*[np.linspace(-9, 9, 121)] * clients, indexing="ij")
    h = (18 / 120) ** clients
    kernel = [np.exp(-(axis**2) / 2) / math.sqrt(2 * math.pi) for axis in axes]

    def density(sign):
        total = 0
        for place in range(clients):
            moved = np.exp(-((axes[place] - sign / noise) ** 2) / 2) / math.sqrt(2 * math.pi)
            others = math.prod(kernel[axis] for axis in range(clients) if axis != place)
            total = total + moved * others / clients
        return total

    return float(h * np.maximum(density(1) - math.exp(eps) * density(-1), 0).sum())


@pytest.mark.share(3)
@pytest.mark.parametrize(("clients", "noise"), list(itertools.product([1, 2, 3], [1.0, 2.0])))
def test_shuffled_clients_stay_below(clients, noise):
    """The exact delta of a shuffled pass is at most what is claimed, and equal where a round has everybody."""
    claimed = hs.federated_parameters(
        clients=clients,
        clients_per_round=1,
        rounds=clients,
        clip_norm=1.0,
        noise_std=noise,
        noise_on="sum",
        sampling="shuffled",
    ).accountant()
    for eps in (0.2, 1.0):
        exact = shuffled_delta(eps, clients, noise)
        if clients == 1:
            assert exact == pytest.approx(claimed.delta(eps), rel=1e-2)
        else:
            assert exact < claimed.delta(eps)


def test_shuffled_is_no_poisson_number():
    """What shuffled clients get is never below the epsilon of a Poisson sample of the same rate."""
    for noise in (0.4, 0.75, 2.0):
        for rounds in (1, 20, 400):
            shuffled = parameters(sampling="shuffled", noise_std=noise, rounds=rounds).accountant().epsilon(1e-6)
            assert shuffled > parameters(noise_std=noise, rounds=rounds).accountant().epsilon(1e-6)


REJECTED = {
    "more in a round than there are": (ValueError, "at most clients", {"clients_per_round": 1001}),
    "all, but only some": (ValueError, "with sampling", {"sampling": "all"}),
    "no clients": (ValueError, "clients must be", {"clients": 0}),
    "no rounds": (ValueError, "rounds must be", {"rounds": 0}),
    "half a round": (TypeError, "rounds must be", {"rounds": 2.5}),
    "no clipping": (ValueError, "clip_norm must be", {"clip_norm": math.inf}),
    "no noise": (ValueError, "noise_std must be", {"noise_std": 0.0}),
    "NaN noise": (ValueError, "noise_std must be", {"noise_std": math.nan}),
    "a word for noise": (ValueError, "noise_on must be", {"noise_on": "server"}),
    "a word for sampling": (ValueError, "sampling must be", {"sampling": "uniform"}),
    "a flag": (TypeError, "sampling must be", {"sampling": True}),
    "noise without end": (ValueError, "over clip_norm", {"noise_std": 1e300, "clip_norm": 1e-300}),
}


@pytest.mark.parametrize("reason", REJECTED)
def test_rejected(reason):
    """What describes no training is refused in words."""
    error, words, changes = REJECTED[reason]
    with pytest.raises(error, match=words):
        parameters(**changes)
