"""Adapters that need no peer to be installed, in the words of prv_accountant, pfl-research, riskcal and Flower; and what they refuse."""

import enum
import json
import math
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
import processes
import refused_calls
from hockeystick import risk
from hockeystick.interop import flower, pfl, prv, riskcal
from hockeystick.interop.flower import Accountant, GaussianPrivacyEvent, PrivacyConfig
from hockeystick.interop.pfl import PrivacyAccountant
from racing import race

CONFIG = flower.PrivacyConfig(1e-5, 1000, "add-or-remove-one", "poisson", max_epsilon=2.0)
NAMES = {
    "hs": hs,
    "math": math,
    "flower": flower,
    "pfl": pfl,
    "prv": prv,
    "riskcal": riskcal,
    "named": lambda name, **attributes: types.new_class(name, (types.SimpleNamespace,))(**attributes),
    "STEP": hs.PoissonSampled(hs.Gaussian(1.0), 0.01),
    "PFL": {"num_compositions": 10, "sampling_probability": 0.1, "mechanism": "gaussian", "noise_parameter": 1.0},
}
REFUSED = r"""
prv.PRVAccountant(object()).compute_epsilon(1e-5, None) -> TypeError: prvs must be mechanisms
prv.PRVAccountant(named("GaussianMechanism", mu=1.0, sensitivity=2.0)).compute_epsilon(1e-5, None)
    -> TypeError: prvs must be
prv.PRVAccountant([STEP]).compute_epsilon(1e-5, [1, 2]) -> must have 1 counts, not 2
prv.PRVAccountant([STEP]).compute_epsilon(1e-5, [-1]) -> count must be an integer
prv.PRVAccountant(named("GaussianMechanism", mu=-1.0)).compute_epsilon(1e-5, None) -> noise_multiplier must be positive
riskcal.get_bayes_risk(hs.Accountant(), 1.5) -> prior must lie in
riskcal.find_noise_multiplier_for_advantage(1.1, 0.01, 10) -> advantage must
riskcal.find_noise_multiplier_for_err_rates(0.0, 0.5, 0.01, 10) -> alpha must lie in
riskcal.find_noise_multiplier_for_err_rates(0.5, 0.5, 0.01, 10) -> beta must lie in
riskcal.get_beta_for_dpsgd(-1.0, 0.01, 10, 0.5) -> noise_multiplier must be positive
riskcal.get_advantage_for_dpsgd(math.inf, 0.01, 10) -> noise_multiplier must be positive
pfl.PrivacyAccountant(**PFL | {"noise_parameter": None}) -> at most one of
pfl.PrivacyAccountant(**PFL | {"epsilon": 0.1, "delta": 1e-5}) -> noise_parameter must be large enough for epsilon=0.1
pfl.PrivacyAccountant(**PFL | {"mechanism": "skellam", "delta": 1e-5}) -> mechanism must be one of
pfl.PrivacyAccountant(**PFL | {"noise_scale": 0.0, "delta": 1e-5}) -> noise_scale must lie in
pfl.PrivacyAccountant(**PFL | {"noise_parameter": -1.0, "delta": 1e-5}) -> noise_multiplier must be positive
flower.Accountant(flower.PrivacyConfig(1.0, 1000, "add-or-remove-one", "poisson")) -> target_delta must lie in
flower.Accountant(flower.PrivacyConfig(1e-5, 0, "add-or-remove-one", "poisson")) -> population_size must be an integer
flower.Accountant(flower.PrivacyConfig(1e-5, 1000, "replace", "poisson")) -> neighboring_relation must be one of
flower.Accountant(flower.PrivacyConfig(1e-5, 1000, "replace-one", "shuffled")) -> sampling_method must be one of
flower.Accountant(flower.PrivacyConfig(1e-5, 1000, "add-or-remove-one", "without-replacement")) -> no proven bound
flower.Accountant(flower.PrivacyConfig(1e-5, 1000, "add-or-remove-one", "poisson", float("nan")))
    -> max_epsilon must be positive
rounds.compose(flower.GaussianPrivacyEvent(0.0, 10, 1000)) -> noise_multiplier must be positive
rounds.compose(flower.GaussianPrivacyEvent(1.0, 0, 1000)) -> sample_size must be an integer
rounds.compose(flower.GaussianPrivacyEvent(1.0, 1001, 1000)) -> sample_size must be at most population_size
rounds.compose(flower.GaussianPrivacyEvent(1.0, 10, 999)) -> population_size must be that of the configuration
rounds.load_state_dict(rounds.state_dict() | {"schema_version": 2}) -> schema_version of state must be 1, not 2
rounds.load_state_dict(rounds.state_dict() | {"backend": "dp-accounting-rdp"}) -> backend of state must be
rounds.load_state_dict(rounds.state_dict() | {"config": {}}) -> config of state must be
rounds.load_state_dict(rounds.state_dict() | {"compositions": [{"event": {}, "count": 1}]})
    -> compositions of state must be
rounds.load_state_dict(rounds.state_dict() | {"compositions": [{"event": {"noise_multiplier": 1.0, "sample_size": 1, "population_size": 9}, "count": 1}]})
    -> population
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """What is refused says why, and an accountant of rounds has those that it had."""
    rounds = flower.Accountant(CONFIG)
    rounds.compose(flower.GaussianPrivacyEvent(1.0, 10, 1000))
    before = rounds.state_dict()
    refused_calls.check(call, reason, NAMES | {"rounds": rounds})
    assert rounds.state_dict() == before


# prv_accountant: triples, its mechanisms and ours, and its words for DP-SGD.


STEP = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)


def named(name, **attributes):
    """Return an object of a class of this name."""
    return types.new_class(name, (types.SimpleNamespace,))(**attributes)


def test_triples_are_brackets():
    """Lower end, estimate and upper end are in this order, and the ends are those of the accountant."""
    accountant = prv.PRVAccountant(
        [STEP, hs.Laplace(10.0)], eps_error=0.1, delta_error=1e-9, max_self_compositions=[1, 1]
    )
    ours = hs.Accountant().compose(STEP, 1000).compose(hs.Laplace(10.0), 3)
    for triple, bracket in [
        (accountant.compute_epsilon(1e-6, [1000, 3]), ours.epsilon_bracket(1e-6)),
        (accountant.compute_delta(1.0, [1000, 3]), ours.delta_bracket(1.0)),
    ]:
        low, estimate, up = triple
        assert (low, up) == (bracket.lower, bracket.upper)
        assert low <= estimate <= up
    assert prv.PRVAccountant(hs.ApproximateDP(0.1, 1e-3)).compute_epsilon(1e-6) == (math.inf, math.inf, math.inf)


def test_a_composition_is_asked_several_times():
    """The composition has the triple of the accountant, and an estimate of delta between its ends."""
    accountant = prv.PRVAccountant([STEP, hs.Laplace(10.0)])
    composed = accountant.compute_composition([1000, 3])
    assert composed.compute_epsilon(1e-6, 1e-9, 0.1) == accountant.compute_epsilon(1e-6, [1000, 3])
    assert composed.compute_delta_estimate(1.0) == accountant.compute_delta(1.0, [1000, 3])[1]
    with pytest.raises(ValueError, match="must have 2 counts"):
        accountant.compute_composition([1])


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (named("PoissonSubsampledGaussianMechanism", p=0.01, sigma=1.0), STEP),
        (named("GaussianMechanism", mu=0.5), hs.Gaussian(2.0)),
        (named("LaplaceMechanism", mu=0.5), hs.Laplace(2.0)),  # mu is one over the scale
        (named("PureDPMechanism", eps=0.3), hs.ApproximateDP(0.3, 0.0)),
        (
            named("ApproximateDPMechanism", pure_dp=named("PureDPMechanism", eps=0.3), delta=1e-5),
            hs.ApproximateDP(0.3, 1e-5),
        ),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_known_mechanisms(theirs, ours):
    """Each of their mechanisms leaks what ours does."""
    of_theirs, of_ours = (prv.PRVAccountant(m).compute_delta(0.2, 20)[2] for m in (theirs, ours))
    assert of_theirs == pytest.approx(of_ours, rel=1e-9)


def test_their_classes():
    """Objects of prv_accountant itself are those mechanisms, and its upper end is not below our lower one."""
    peer = pytest.importorskip("prv_accountant")
    theirs = peer.PoissonSubsampledGaussianMechanism(sampling_probability=0.01, noise_multiplier=1.0)
    assert prv.mechanism_of(theirs) == STEP
    assert prv.mechanism_of(peer.ApproximateDPMechanism(0.3, 1e-5)) == hs.ApproximateDP(0.3, 1e-5)
    for their, our in [(peer.GaussianMechanism(2.0), 2.0), (peer.LaplaceMechanism(0.5), 2.0)]:
        assert prv.mechanism_of(their).noise_multiplier == pytest.approx(our, rel=1e-15)
    low, _, up = peer.PRVAccountant(theirs, 0.1, 1e-8, max_self_compositions=100).compute_epsilon(1e-5, 100)
    certified = prv.PRVAccountant(theirs).compute_epsilon(1e-5, 100)
    assert low <= certified[2]
    assert certified[0] <= up


def test_dpsgd():
    """Their words for DP-SGD: the same triple, and the least noise within the budget."""
    accountant = prv.DPSGDAccountant(noise_multiplier=1.0, sampling_probability=0.01, max_steps=5000)
    assert accountant.compute_epsilon(delta=1e-5, num_steps=1000) == prv.PRVAccountant(STEP).compute_epsilon(1e-5, 1000)
    sigma = prv.find_noise_multiplier(0.01, 1000, target_epsilon=2.0, target_delta=1e-5)
    epsilon = prv.DPSGDAccountant(sigma, 0.01, 1000).compute_epsilon(1e-5, 1000)[2]
    assert 2.0 * (1 - 1e-6) <= epsilon <= 2.0


# pfl-research: the third of epsilon, delta and noise.


@pytest.mark.parametrize("mechanism", ["gaussian", "Laplace"])
def test_the_third_follows(mechanism):
    """From noise and delta comes epsilon, from epsilon and noise delta, from the budget the noise, each within the others."""
    given = {"num_compositions": 200, "sampling_probability": 0.02, "mechanism": mechanism}
    first = PrivacyAccountant(**given, delta=1e-5, noise_parameter=1.5)
    kind = hs.Gaussian if mechanism == "gaussian" else hs.Laplace
    ours = hs.Accountant().compose(hs.PoissonSampled(kind(1.5), 0.02), 200)
    assert first.epsilon == ours.epsilon(1e-5)
    second = PrivacyAccountant(**given, epsilon=first.epsilon, noise_parameter=1.5)
    assert second.delta == pytest.approx(1e-5, rel=1e-2)
    third = PrivacyAccountant(**given, epsilon=first.epsilon, delta=1e-5)
    assert third.accountant().epsilon(1e-5) <= first.epsilon
    assert third.noise_parameter == pytest.approx(1.5, rel=1e-2)
    all_three = PrivacyAccountant(**given, epsilon=first.epsilon, delta=1e-5, noise_parameter=2.0, noise_scale=0.5)
    assert all_three.cohort_noise_parameter == 1.0


def test_in_their_mechanism():
    """The Gaussian mechanism of pfl takes it for one of its own."""
    pfl = pytest.importorskip("pfl.privacy")
    accountant = PrivacyAccountant(100, 0.01, "gaussian", epsilon=1.0, delta=1e-6)
    mechanism = pfl.GaussianMechanism.from_privacy_accountant(accountant=accountant, clipping_bound=1.0)
    assert mechanism.relative_noise_stddev == accountant.noise_parameter


# Attack risk: the package's numbers, the peer's values, and noise from risk.


TRAINING = (1.0, 0.01, 300)
OURS = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 300)


def test_numbers_are_those_of_the_accountant():
    """Advantage, trade-off and Bayes risk, of priors in any shape, are those that the package has under other names."""
    assert riskcal.get_advantage_for_dpsgd(*TRAINING) == OURS.advantage()
    alpha, priors = np.linspace(0.05, 0.9, 7), np.array([[0.0, 0.3], [0.9, 1.0]])
    assert (riskcal.get_beta_for_dpsgd(*TRAINING, alpha) == OURS.trade_off(alpha)).all()
    expected = [[risk.bayes_risk(OURS, prior) for prior in row] for row in priors]
    assert riskcal.get_bayes_risk(OURS, priors).tolist() == expected


def test_noise_from_risk():
    """The noise found is feasible, and a thousandth less is not."""
    sigma = riskcal.find_noise_multiplier_for_advantage(0.1, 0.01, 300, grid_step=1e-4, noise_max=50.0)
    assert (
        riskcal.get_advantage_for_dpsgd(sigma, 0.01, 300)
        <= 0.1
        < riskcal.get_advantage_for_dpsgd(0.999 * sigma, 0.01, 300)
    )
    sigma = riskcal.find_noise_multiplier_for_err_rates(0.1, 0.8, 0.01, 300, beta_tol=1e-3)
    betas = [float(riskcal.get_beta_for_dpsgd(x, 0.01, 300, 0.1)) for x in (sigma, 0.999 * sigma)]
    assert betas[0] >= 0.8 > betas[1]


def test_no_noise_where_none_is_needed():
    """Ten steps that draw a record with probability 1/10 miss it with .35; no step draws one at rate 0."""
    assert riskcal.find_noise_multiplier_for_err_rates(0.1, 0.0, 0.1, 10) == 0.0
    assert riskcal.find_noise_multiplier_for_err_rates(0.1, 0.8, 0.0, 10) == 0.0
    with pytest.raises(ValueError, match="beta must be below 1 - alpha by more than rounding"):
        riskcal.find_noise_multiplier_for_err_rates(0.1, 0.9 - 1e-16, 0.1, 10)


def test_former_names():
    """Names that riskcal will drop are taken, with its warning; the grid of its distributions is taken everywhere."""
    with pytest.warns(DeprecationWarning, match="advantage_error is deprecated"):
        sigma = riskcal.find_noise_multiplier_for_advantage(0.1, 0.01, 300, advantage_error=1e-2)
    assert riskcal.get_advantage_for_dpsgd(sigma, 0.01, 300, grid_step=1e-2) <= 0.1
    with pytest.warns(DeprecationWarning, match="mu_max is deprecated"):
        sigma = riskcal.find_noise_multiplier_for_err_rates(0.1, 0.5, 0.01, 300, mu_max=40.0)
    assert riskcal.get_beta_for_dpsgd(sigma, 0.01, 300, 0.1, grid_step=1e-2) >= 0.5


def test_beside_riskcal():
    """Riskcal's numbers, from connected dots of step 1e-4, agree to what such a grid gives."""
    peer = pytest.importorskip("riskcal.analysis")
    plds = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    pld = plds.from_gaussian_mechanism(1.0, sampling_prob=0.01).self_compose(300)
    assert riskcal.get_advantage_for_dpsgd(*TRAINING) == pytest.approx(peer.get_advantage_from_pld(pld), rel=1e-4)
    assert riskcal.get_beta_for_dpsgd(*TRAINING, 0.1) == pytest.approx(peer.get_beta_from_pld(pld, alpha=0.1), rel=1e-4)
    for prior in (0.3, 0.5, 0.8):
        assert riskcal.get_bayes_risk(OURS, prior) == pytest.approx(peer.get_bayes_risk_from_pld(pld, prior), rel=1e-3)


# Flower: rounds, budgets, and states through JSON.


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
