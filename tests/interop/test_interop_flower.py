"""Flower: rounds, budgets, and states through JSON."""

import enum
import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
import processes
from hockeystick.interop.flower import Accountant, GaussianPrivacyEvent, PrivacyConfig
from racing import race

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower_budget.py"
POISSON = PrivacyConfig(1e-5, 1000, "add-or-remove-one", "poisson", max_epsilon=2.0)
ROUND = GaussianPrivacyEvent(1.0, 10, 1000)


@pytest.mark.parametrize(
    ("relation", "method", "mechanism"),
    [
        ("add-or-remove-one", "poisson", hs.PoissonSampled(hs.Gaussian(1.0), 0.01)),
        ("replace-one", "without-replacement", hs.FixedSizeSampled(hs.Gaussian(1.0), 1000, 10, replacement=False)),
        ("add-or-remove-one", "no-amplification", hs.Gaussian(1.0)),
        ("replace-one", "no-amplification", hs.Gaussian(1.0)),
        ("replace-one", "poisson", hs.PoissonSampled(hs.Gaussian(1.0), 0.01)),
    ],
)
def test_models(relation, method, mechanism):
    """Each sampling method is the mechanism that it says."""
    accountant = Accountant(PrivacyConfig(1e-5, 1000, relation, method))
    accountant.compose(ROUND, 3)
    assert dict(accountant.accountant.ledger) == {mechanism: 3}
    assert accountant.accountant.adjacency == ("replace" if relation == "replace-one" else "add_or_remove")
    spent = accountant.get_privacy_spent()
    assert spent == (accountant.get_epsilon(1e-5), 1e-5, 3, "hockeystick", None)
    assert accountant.get_delta(spent.epsilon) <= 1e-5 * (1 + 1e-9)


def test_budget():
    """The largest number of rounds that does not exceed the budget is that of dpsgd_steps; asking composes nothing."""
    most = int(hs.dpsgd_steps(1.0, 0.01, 2.0, 1e-5))
    accountant = Accountant(POISSON)
    assert not accountant.would_exceed(ROUND, count=most)
    assert accountant.would_exceed(ROUND, count=most + 1)
    assert accountant.num_releases == 0
    accountant.compose(ROUND, most)
    assert accountant.would_exceed(ROUND)
    assert not accountant.would_exceed(ROUND, max_epsilon=3.0)
    with pytest.raises(ValueError, match="max_epsilon must be given"):
        Accountant(PrivacyConfig(1e-5, 1000, "add-or-remove-one", "poisson")).would_exceed(ROUND)


def test_what_is_spent_is_of_one_moment():
    """Epsilon and the number of releases belong together, though rounds are added meanwhile."""
    accountant, seen = Accountant(POISSON), {}

    def look():
        spent = accountant.get_privacy_spent()
        seen[spent.num_releases] = spent.epsilon

    race(lambda: accountant.compose(ROUND), 50, meanwhile=look)
    for rounds, epsilon in seen.items():
        alone = Accountant(POISSON)
        if rounds:
            alone.compose(ROUND, rounds)
        assert alone.get_epsilon(1e-5) == epsilon


def test_enumerations_and_foreign_classes():
    """Flower's own configuration and events, whose words are enumerations, are taken by their attributes."""
    relation = enum.Enum("NeighboringRelation", {"ADD": "add-or-remove-one"})
    method = enum.Enum("SamplingMethod", {"POISSON": "poisson"})
    words = {"neighboring_relation": relation.ADD, "sampling_method": method.POISSON, "max_epsilon": None}
    config = types.SimpleNamespace(**vars(POISSON) | words)
    foreign, own = Accountant(config), Accountant(POISSON)
    for accountant in (foreign, own):
        accountant.compose(ROUND, 10)
    assert foreign.config is config
    assert foreign.get_epsilon(1e-5) == own.get_epsilon(1e-5)


def test_state_goes_through_json():
    """A restored accountant goes on as if nothing had happened, also where NumPy made the counts; what is no mapping is no state."""
    accountant = Accountant(POISSON)
    accountant.compose(GaussianPrivacyEvent(np.float64(1.0), np.int64(10), 1000), np.int64(10))
    accountant.compose(GaussianPrivacyEvent(2.0, 20, 1000))
    restored = Accountant(POISSON)
    restored.load_state_dict(json.loads(json.dumps(accountant.state_dict())))
    assert restored.state_dict() == accountant.state_dict()
    for each in (accountant, restored):
        each.compose(ROUND)
    assert restored.get_epsilon(1e-5) == accountant.get_epsilon(1e-5)
    assert restored.num_releases == 12
    for state in (None, []):
        with pytest.raises(TypeError, match="state must be a mapping"):
            restored.load_state_dict(state)


def test_the_configuration_is_flowers_own_where_it_is_loaded():
    """Strategies of Flower ask for its enumerations: our configuration has them then; a combination that is ours alone stays ours."""
    flower = pytest.importorskip("flwr.serverapp")
    strategies = pytest.importorskip("flwr.serverapp.strategy")
    accountant = Accountant(PrivacyConfig(1e-5, 20, "add-or-remove-one", "no-amplification", 8.0))
    assert accountant.config == flower.PrivacyConfig(
        1e-5, 20, flower.NeighboringRelation.ADD_OR_REMOVE_ONE, flower.SamplingMethod.NO_AMPLIFICATION, 8.0
    )
    for side in ("Server", "Client"):
        strategy = getattr(strategies, f"DifferentialPrivacy{side}SideFixedClipping")
        made = strategy(strategies.FedAvg(), 2.0, 1.0, 10, accountant=accountant)
        assert made.privacy_spent() == (0.0, 1e-5, 0, "hockeystick", None)
    ours = PrivacyConfig(1e-5, 20, "replace-one", "poisson")
    assert Accountant(ours).config is ours


@pytest.mark.slow
def test_a_training_stops_on_its_budget():
    """The example's simulation, with real clients, ends at the round that theta allows."""
    pytest.importorskip("flwr.simulation")
    pytest.importorskip("ray")
    out = processes.run([sys.executable, EXAMPLE], limit=300).stdout
    rounds = max(n for n in range(1, 13) if hs.Accountant().compose(hs.Gaussian(2.0), n).epsilon(1e-5) <= 8.0)
    assert f"{rounds} of 12 rounds, epsilon 7.9553 at delta 1e-05" in out
    assert "would exceed max_epsilon" in out
