"""Accountants of all adapters are their ledgers: copied or pickled, they are small and answer as before."""

from __future__ import annotations

import copy
import pickle

import pytest

import hockeystick as hs
from hockeystick.interop import flower, opacus, pfl, prv

SAMPLED = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)


def of_opacus():
    """Return a trained one."""
    accountant = opacus.HockeyStickAccountant()
    accountant.history = [(1.0, 0.01, 1000), (2.0, 0.01, 10)]
    return accountant


def of_flower():
    """Return one with rounds."""
    accountant = flower.Accountant(flower.PrivacyConfig(1e-5, 1000, "add-or-remove-one", "poisson", 2.0))
    accountant.compose(flower.GaussianPrivacyEvent(1.0, 10, 1000), 1000)
    return accountant


CASES = {
    "Accountant": (lambda: hs.Accountant().compose(SAMPLED, 1000), lambda a: a.epsilon(1e-5)),
    "PrivacyLossDistribution": (
        lambda: hs.PrivacyLossDistribution.from_mechanism(SAMPLED).self_compose(1000),
        lambda a: a.epsilon_bracket(1e-5),
    ),
    "opacus": (of_opacus, lambda a: a.get_epsilon(1e-5)),
    "flower": (of_flower, lambda a: a.get_privacy_spent()),
    "prv": (lambda: prv.PRVAccountant(SAMPLED), lambda a: a.compute_epsilon(1e-5, 1000)),
    "pfl": (
        lambda: pfl.PrivacyAccountant(1000, 0.01, "gaussian", delta=1e-5, noise_parameter=1.0),
        lambda a: a.epsilon,
    ),
}


@pytest.mark.parametrize(("make", "ask"), CASES.values(), ids=CASES)
def test_copies(make, ask):
    """After questions, too, a copy is a few hundred bytes, gives the same answers, and shares nothing."""
    accountant = make()
    answer = ask(accountant)
    stored = pickle.dumps(accountant)
    assert len(stored) < 1000
    for other in (copy.deepcopy(accountant), pickle.loads(stored)):
        assert ask(other) == answer
        assert len(pickle.dumps(other)) < 1000
    if isinstance(accountant, hs.Accountant):
        other.compose(hs.Gaussian(1.0))
        assert ask(other) > ask(accountant) == answer
