"""Opacus: the accountant by itself, in Opacus' registry and calibration, and in its engine where torch is installed."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
import types

import numpy as np
import pytest

import hockeystick as hs
import processes
from hockeystick.interop.opacus import HockeyStickAccountant


def trained(*history):
    """Return an accountant with this history."""
    accountant = HockeyStickAccountant()
    accountant.history = list(history)
    return accountant


@pytest.fixture(scope="module")
def opacus():
    """Return Opacus' accountants; without torch, of which they use one name in an annotation, beside an empty module for it."""
    spec = importlib.util.find_spec("opacus")
    if spec is None:
        pytest.skip("Opacus is not installed: pip install --no-deps opacus==1.6.0")
    before = set(sys.modules)
    if importlib.util.find_spec("torch") is None:
        package, optimizers = types.ModuleType("opacus"), types.ModuleType("opacus.optimizers")
        package.__path__ = list(spec.submodule_search_locations)
        vars(optimizers)["DPOptimizer"] = object
        sys.modules |= {"opacus": package, "opacus.optimizers": optimizers}
    yield pytest.importorskip("opacus.accountants")
    for name in set(sys.modules) - before:
        if name.split(".")[0] == "opacus":
            del sys.modules[name]


def test_no_torch():
    """Neither torch nor Opacus is imported."""
    code = "import sys, hockeystick.interop.opacus; print({'torch', 'opacus'} & set(sys.modules))"
    assert processes.python(code).stdout == "set()\n"


def test_steps_are_the_history():
    """Steps one at a time are the history with their count, and its epsilon is that of DP-SGD."""
    accountant = HockeyStickAccountant()
    assert (accountant.get_epsilon(1e-5), len(accountant)) == (0.0, 0)
    for _ in range(500):
        accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    assert accountant.history == [(1.0, 0.01, 500)]
    assert len(accountant) == 500
    assert accountant.get_epsilon(1e-5) == pytest.approx(float(hs.dpsgd_epsilon(1.0, 0.01, 500, 1e-5)), rel=1e-6)
    accountant.step(noise_multiplier=2.0, sample_rate=0.01)
    assert accountant.history == [(1.0, 0.01, 500), (2.0, 0.01, 1)]
    assert accountant.accountant().epsilon_bracket(1e-5).lower <= accountant.get_epsilon(1e-5)


def test_history_may_be_assigned():
    """What counts is the history's value at the time of the question, not how it came about, and asking changes nothing."""
    accountant = HockeyStickAccountant()
    epsilons = []
    for sigma in (1.0, 2.0, 1.0):
        accountant.history = [(sigma, 0.01, 1000)]
        epsilons.append(accountant.get_epsilon(1e-5, eps_error=0.1, alphas=[2.0]))
        assert accountant.history == [(sigma, 0.01, 1000)]
    assert epsilons[0] == epsilons[2] > epsilons[1] > 0


def test_no_noise_is_no_privacy():
    """A step without noise costs infinity, unless nobody is sampled."""
    assert trained((1.0, 0.01, 10), (0.0, 0.01, 1)).get_epsilon(1e-5) == math.inf
    assert trained((0, 0.0, 5)).get_epsilon(1e-5) == 0
    with pytest.raises(ValueError, match="history must have noise in every step"):
        trained((0.0, 0.01, 1)).accountant()


@pytest.mark.parametrize(
    ("step", "match"),
    [
        ({"noise_multiplier": -1.0, "sample_rate": 0.1}, "noise_multiplier must be positive"),
        ({"noise_multiplier": math.nan, "sample_rate": 0.1}, "noise_multiplier must be positive"),
        ({"noise_multiplier": 1.0, "sample_rate": 1.5}, "sampling_rate must lie in"),  # too many accumulated batches
    ],
)
def test_refused_steps(step, match):
    """A bad step raises and leaves the history as it was."""
    accountant = trained((1.0, 0.1, 3))
    with pytest.raises(ValueError, match=match):
        accountant.step(**step)
    assert accountant.history == [(1.0, 0.1, 3)]


def test_state():
    """The state goes through JSON; one that is empty, lacks something or is of another accountant is refused."""
    accountant = trained((1.0, 0.01, 100), (2.0, 0.01, 50))
    other = HockeyStickAccountant()
    other.load_state_dict(json.loads(json.dumps(accountant.state_dict())))
    assert other.history == accountant.history
    assert other.get_epsilon(1e-5) == accountant.get_epsilon(1e-5)
    state = {}
    assert accountant.state_dict(state) is state
    for bad in ({}, None, {"history": []}, {"history": [], "mechanism": "rdp"}):
        with pytest.raises(ValueError, match="state_dict must"):
            other.load_state_dict(bad)
    with pytest.raises(ValueError, match="sampling_rate must"):
        other.load_state_dict({"history": [(1.0, 2.0, 1)], "mechanism": "hockeystick"})
    assert other.history == accountant.history


@pytest.mark.parametrize("steps", [-3, 0, 2.5, math.nan, "3", True])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_refused_histories(noise, steps):
    """Steps that are no positive integer are refused where a state is loaded and where epsilon is asked for, without noise, too."""
    accountant = HockeyStickAccountant()
    history = [(noise, 0.1, steps)]
    with pytest.raises((ValueError, TypeError), match="steps must be"):
        accountant.load_state_dict({"history": history, "mechanism": "hockeystick"})
    assert accountant.history == []
    accountant.history = history
    with pytest.raises((ValueError, TypeError), match="steps must be"):
        accountant.get_epsilon(1e-5)


def test_optimizer_hook():
    """The hook records the optimiser's noise, and accumulated batches as one larger one."""
    accountant = HockeyStickAccountant()
    accountant.get_optimizer_hook_fn(0.01)(types.SimpleNamespace(noise_multiplier=1.1, accumulated_iterations=4))
    assert accountant.history == [(1.1, 0.04, 1)]


def optimiser(batch_size):
    """Return an optimiser as the hook sees it, after a batch of this size."""
    return types.SimpleNamespace(
        noise_multiplier=1.0, accumulated_iterations=1, grad_samples=[np.zeros((batch_size, 2))]
    )


@pytest.mark.parametrize("rate", [0.01, 0.5])
def test_batches_of_one_size_are_no_poisson_samples(rate):
    """After forty batches of one size the hook warns, once; the steps are recorded all the same."""
    accountant = HockeyStickAccountant()
    hook = accountant.get_optimizer_hook_fn(rate)
    for _ in range(39):
        hook(optimiser(32))
    with pytest.warns(hs.ImplausibleSettingWarning, match=r"40 batches of 32 records each .*poisson_sampling=False"):
        hook(optimiser(32))
    hook(optimiser(32))
    assert accountant.history == [(1.0, rate, 41)]


def test_pieces_of_batches_are_not_batches():
    """With BatchMemoryManager the optimiser shows the last piece of a batch, which is mostly of one size: it says nothing of the sampler."""
    hook = HockeyStickAccountant().get_optimizer_hook_fn(0.01)
    for _ in range(60):
        piece = optimiser(32)
        piece._is_last_step_skipped = True
        hook(piece)


@pytest.mark.parametrize("history", [None, [(1.0, 0.1)], 3, [1.0]])
def test_damaged_histories_are_named(history):
    """What are no triples is refused with the word that is wrong."""
    with pytest.raises(ValueError, match="history of state_dict must be triples"):
        HockeyStickAccountant.continuing({"history": history, "mechanism": "rdp"})
    with pytest.raises(ValueError, match="state_dict must be of mechanism"):
        HockeyStickAccountant.continuing({"history": [], "mechanism": []})


@pytest.mark.parametrize("sizes", [[32] * 39 + [31], [0] * 60])
def test_batches_that_may_be_poisson_samples(sizes):
    """Sizes that vary, and batches that are empty or not shown, are taken as they are; and all records at once are."""
    hook = HockeyStickAccountant().get_optimizer_hook_fn(0.01)
    for size in sizes:
        hook(optimiser(size))
    everything = HockeyStickAccountant().get_optimizer_hook_fn(1.0)
    for _ in range(50):
        everything(optimiser(32))


def test_a_history_is_carried_over():
    """Another accountant's history, or that of a check point, goes on; what it means is the same."""
    history = [(1.0, 0.01, 100), (2.0, 0.02, 50)]
    whole = trained(*history).get_epsilon(1e-5)
    for mechanism in ("rdp", "prv", "gdp", "hockeystick"):
        assert HockeyStickAccountant.continuing({"history": history, "mechanism": mechanism}).get_epsilon(1e-5) == whole
    other = types.SimpleNamespace(history=history, mechanism=lambda: "prv")
    ours = HockeyStickAccountant.continuing(other)
    ours.step(noise_multiplier=2.0, sample_rate=0.02)
    assert ours.history[-1] == (2.0, 0.02, 51)
    assert other.history == history
    with pytest.raises(ValueError, match="state_dict must be of mechanism 'hockeystick', not 'renyi'"):
        HockeyStickAccountant.continuing({"history": history, "mechanism": "renyi"})
    with pytest.raises(ValueError, match="noise_multiplier must"):
        HockeyStickAccountant.continuing({"history": [(-1.0, 0.1, 1)], "mechanism": "rdp"})
    with pytest.raises(TypeError, match="source must be an accountant of Opacus"):
        HockeyStickAccountant.continuing(3)


def test_registry_and_calibration(opacus):
    """Registered in one line, it is found by name, and Opacus' own search finds the noise that our calibration does."""
    opacus.register_accountant("hockeystick", HockeyStickAccountant, force=True)
    assert isinstance(opacus.create_accountant("hockeystick"), HockeyStickAccountant)
    utils = pytest.importorskip("opacus.accountants.utils")
    budget = {"target_epsilon": 0.05, "target_delta": 1e-5, "sample_rate": 0.01, "steps": 1000}
    sigma = utils.get_noise_multiplier(**budget, accountant="hockeystick", epsilon_tolerance=1e-4)
    least = float(hs.dpsgd_noise_multiplier(0.01, 1000, 0.05, 1e-5))
    assert least <= sigma <= least * 1.01


def test_interface_is_theirs(opacus):
    """Every public method of Opacus' IAccountant is there."""
    public = {name for name in vars(opacus.IAccountant) if not name.startswith("_")}
    assert public <= set(dir(HockeyStickAccountant))


@pytest.mark.parametrize("poisson", [True, False])
def test_the_engine_is_watched(opacus, poisson, recwarn):
    """Batches of Opacus' own loaders: those of poisson_sampling=False are noticed, the others are not."""
    torch = pytest.importorskip("torch")
    opacus.register_accountant("hockeystick", HockeyStickAccountant, force=True)
    data = torch.utils.data.TensorDataset(torch.randn(2000, 3), torch.randint(0, 2, (2000,)))
    model = torch.nn.Linear(3, 2)
    engine = pytest.importorskip("opacus").PrivacyEngine(accountant="hockeystick")
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=40, shuffle=True),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=poisson,
    )
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    noticed = [warning for warning in recwarn if "no Poisson samples" in str(warning.message)]
    assert len(noticed) == (0 if poisson else 1)


@pytest.mark.filterwarnings("ignore")
def test_engine(opacus):
    """A PrivacyEngine trains with it, calibrates with it, and saves and loads its state."""
    torch = pytest.importorskip("torch")
    engine_class = pytest.importorskip("opacus").PrivacyEngine
    opacus.register_accountant("hockeystick", HockeyStickAccountant, force=True)
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(200, 3), torch.randint(0, 2, (200,)))
    model = torch.nn.Linear(3, 2)
    engine = engine_class(accountant="hockeystick")
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=20),
        target_epsilon=1.5,
        target_delta=1e-5,
        epochs=2,
        max_grad_norm=1.0,
    )
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert len(engine.accountant) == 2 * len(loader)
    theirs = opacus.create_accountant("rdp")
    theirs.history = list(engine.accountant.history)
    assert HockeyStickAccountant.continuing(theirs).get_epsilon(1e-5) == engine.get_epsilon(1e-5)
    spent = engine.get_epsilon(1e-5)
    assert 1.3 <= spent <= 1.5
    assert spent == pytest.approx(float(hs.dpsgd_epsilon(optimizer.noise_multiplier, 0.1, 20, 1e-5)), rel=1e-6)
