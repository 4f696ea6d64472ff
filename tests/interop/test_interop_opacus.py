"""Opacus: the accountant by itself, in Opacus' registry and calibration, and in its engine where torch is installed."""

import importlib.util
import json
import math
import re
import sys
import types

import mpmath
import numpy as np
import pytest

import hockeystick as hs
import processes
import refused_calls
from hockeystick.interop.opacus import HockeyStickAccountant, privacy_statement


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


@pytest.mark.parametrize("history", [[(1.0, 0.01, 100), (2.0, 0.01, 50)], [(1.1, 0.01, 2, 4), (1.1, 0.01, 1)]])
def test_state(history):
    """The state goes through JSON, with the number of accumulated batches."""
    accountant = trained(*history)
    other = HockeyStickAccountant()
    other.load_state_dict(json.loads(json.dumps(accountant.state_dict())))
    assert other.history == accountant.history == history
    assert other.get_epsilon(1e-5) == accountant.get_epsilon(1e-5)
    state = {}
    assert accountant.state_dict(state) is state


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


def optimiser(noise_multiplier=1.0, accumulated_iterations=1, **shown):
    """Return an optimiser as the hook sees it after a step, with the gradients of records that it shows."""
    return types.SimpleNamespace(
        noise_multiplier=noise_multiplier, accumulated_iterations=accumulated_iterations, **shown
    )


def after_batch_of(size, **shown):
    """Return an optimiser after a batch of this size."""
    return optimiser(grad_samples=[np.zeros((size, 2))], **shown)


def hooked(rate, optimisers):
    """Return an accountant whose hook has seen these optimisers."""
    accountant = HockeyStickAccountant()
    hook = accountant.get_optimizer_hook_fn(rate)
    for each in optimisers:
        hook(each)
    return accountant


def test_optimizer_hook():
    """The hook records the optimiser's noise, and how many batches were accumulated."""
    accountant = hooked(0.01, [optimiser(1.1, accumulated) for accumulated in (4, 4, 1)])
    assert accountant.history == [(1.1, 0.01, 2, 4), (1.1, 0.01, 1)]
    assert len(accountant) == 3


@pytest.mark.parametrize(("batches", "rate", "noise"), [(4, 0.01, 1.0), (2, 0.25, 1.0), (8, 0.01, 0.7)])
def test_accumulated_batches_hold_a_record_several_times(batches, rate, noise):
    """Of one step, epsilon satisfies the hockey-stick divergence of the binomial mixture by mpmath, and that of one sample of the summed rate does not."""
    accountant = hooked(rate, [optimiser(noise, batches)])

    def loss(x):
        return mpmath.log(sum(p * mpmath.exp((2 * k * x - k * k) / (2 * noise**2)) for k, p in enumerate(shares)))

    def delta(eps):
        """Return what lies beyond the point at which the loss, which rises, is eps."""
        end = mpmath.findroot(lambda x: loss(x) - eps, (0, 50), solver="bisect", tol=1e-25)
        beyond = sum(p * mpmath.ncdf((k - end) / noise) for k, p in enumerate(shares))
        return beyond - mpmath.exp(eps) * mpmath.ncdf(-end / noise)

    with mpmath.workdps(30):
        q = mpmath.mpf(rate)
        shares = [mpmath.binomial(batches, k) * q**k * (1 - q) ** (batches - k) for k in range(batches + 1)]
        assert delta(mpmath.mpf(accountant.get_epsilon(1e-5))) <= mpmath.mpf("1e-5")
        assert delta(mpmath.mpf(trained((noise, batches * rate, 1)).get_epsilon(1e-5))) > mpmath.mpf("1.05e-5")


@pytest.mark.parametrize("rate", [0.01, 0.5])
def test_batches_of_one_size_are_no_poisson_samples(rate):
    """After forty batches of one size the hook warns, once; the steps are recorded all the same."""
    hooked(rate, [after_batch_of(32)] * 39)
    said = r"40 batches of 32 records each .*poisson_sampling=False"
    for count in (40, 41):
        with pytest.warns(hs.ImplausibleSettingWarning, match=said) as warned:
            assert hooked(rate, [after_batch_of(32)] * count).history == [(1.0, rate, count)]
        assert len(warned) == 1


def test_pieces_of_batches_are_not_batches():
    """With BatchMemoryManager the optimiser shows the last piece of a batch, which is mostly of one size: it says nothing of the sampler."""
    hooked(0.01, [after_batch_of(32, _is_last_step_skipped=True)] * 60)


@pytest.mark.parametrize("sizes", [[32] * 39 + [31], [0] * 60])
def test_batches_that_may_be_poisson_samples(sizes):
    """Sizes that vary, and batches that are empty or not shown, are taken as they are; and all records at once are."""
    hooked(0.01, map(after_batch_of, sizes))
    hooked(1.0, [after_batch_of(32)] * 50)


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


class RandomSampler(list):
    """The indices of a pass, with the names that torch's sampler has."""

    replacement = False


class WeightedRandomSampler(list):
    """The same, drawn with replacement."""

    replacement = True


class Loader(types.SimpleNamespace):
    """A data loader with the attributes of torch's and of Opacus', and no others."""

    def __len__(self):
        """Return the batches of a pass."""
        return self.batches


def statement(history, loader, delta=1e-5, **options):
    """Return the statement of an engine as it is after a training."""
    engine = types.SimpleNamespace(accountant=types.SimpleNamespace(history=history))
    return privacy_statement(engine, loader, delta, **options)


def headline(text):
    """Return the epsilon to quote."""
    return float(re.search(r"with ε = (\S+) at", " ".join(text.split()))[1])


def poisson_loader(rate, sampler="UniformWithReplacementSampler"):
    """Return Opacus' own loader, whose length is one over its rate."""
    drawn = types.new_class(sampler)()
    return Loader(dataset=range(1000), sample_rate=rate, batches=int(1 / rate), batch_size=None, batch_sampler=drawn)


def plain_loader(size, batches, sampler, *, drop_last=False):
    """Return torch's loader of a thousand records."""
    return Loader(dataset=range(1000), batch_size=size, batches=batches, sampler=sampler, drop_last=drop_last)


def test_a_statement_has_the_rate_of_the_engine():
    """The statement of an engine is that of its history: 1/3 where a thousand records in batches of 300 lose the last one."""
    text = statement([(1.0, 1 / 3, 30)], poisson_loader(1 / 3))
    truth = float(hs.dpsgd_epsilon(1.0, 1 / 3, 30, 1e-5))
    assert truth <= headline(text) <= truth * 1.001
    assert "probability 0.3333333333333333, independently" in " ".join(text.split())
    assert text == hs.privacy_statement(
        num_records=1000, sampling_rate=1 / 3, steps=30, noise_multiplier=1.0, delta=1e-5, sampling="poisson"
    )
    entry = json.loads(statement([(1.0, 1 / 3, 30)], poisson_loader(1 / 3), format="json"))
    assert entry["dp_flavor"]["epsilon"] == truth


def test_a_statement_of_several_noises_or_accumulated_batches():
    """Every entry of a history counts; accumulated Poisson batches are what they are, whichever accountant wrote them down."""
    history = [(1.0, 0.1, 20), (2.0, 0.1, 10)]
    text = statement(history, poisson_loader(0.1))
    assert headline(text) == pytest.approx(trained(*history).get_epsilon(1e-5), rel=1e-3)
    assert "the models after all steps" in text
    exact = hs.Accountant().compose(hs.MixtureOfGaussians.of_group(1.0, 4, 0.1), 20).epsilon(1e-5)
    for entry in ((1.0, 0.4, 20), (1.0, 0.1, 20, 4)):  # Opacus' accountants, and ours
        assert exact <= headline(statement([entry], poisson_loader(0.1))) <= exact * 1.001
    large = statement(history, poisson_loader(0.1), 1e-3)
    assert "δ = 0.001 is not below 1/1000" in " ".join(large.split("\n\n")[1].split())


@pytest.mark.parametrize(
    ("size", "drop_last", "batches", "steps", "accumulated", "uses"),
    [(300, False, 4, 30, 1, 8), (300, True, 3, 30, 1, 10), (250, False, 4, 8, 2, 4), (300, False, 4, 8, 2, 4)],
)
def test_a_statement_of_shuffled_batches(size, drop_last, batches, steps, accumulated, uses):  # noqa: PLR0917 - a table
    """With poisson_sampling=False each record is used once a pass of the loader, and epsilon is that of so many Gaussian releases."""
    loader = plain_loader(size, batches, RandomSampler(range(1000)), drop_last=drop_last)
    text = statement([(4.0, accumulated / batches, steps)], loader)
    exact = hs.Accountant().compose(hs.Gaussian(4.0), uses).epsilon(1e-5)
    assert exact <= headline(text) <= exact * 1.001
    assert "(shuffled)" in text


PASS = RandomSampler(range(1000))
REFUSED = r"""
statement([], poisson_loader(0.1)) -> must have steps
statement([(0.0, 0.1, 1)], poisson_loader(0.1)) -> noise in every one
statement([(1.0, 0.1)], poisson_loader(0.1)) -> history must be triples of noise, rate and steps
statement([(1.0, 0.1, 5)], poisson_loader(0.19)) -> must be that of the training
statement([(1.0, 0.1, 5)], poisson_loader(0.1, "WeightedRandomSampler")) -> not WeightedRandomSampler; if each has a rate of its own
statement([(1.0, 0.25, 5)], plain_loader(250, 4, WeightedRandomSampler(range(1000)))) -> go through all records
statement([(1.0, 0.2, 5)], plain_loader(250, 5, RandomSampler(range(1250)))) -> go through all records
statement([(4.0, 0.1, 100)], plain_loader(10, 10, RandomSampler(range(100)))) -> data.Subset
statement([(4.0, 0.1, 100)], plain_loader(10, 10, PASS)) -> data.Subset
statement([(1.0, 0.25, 5)], plain_loader(None, 4, PASS)) -> in batches of one size
statement([(1.0, 2 / 3, 5)], plain_loader(350, 3, PASS)) -> must be a multiple
statement([(1.0, 0.25, 5), (2.0, 0.25, 5)], plain_loader(250, 4, PASS)) -> one noise multiplier
continuing({"history": None, "mechanism": "rdp"}) -> history of state_dict must be triples
continuing({"history": [(1.0, 0.1)], "mechanism": "rdp"}) -> history of state_dict must be triples
continuing({"history": 3, "mechanism": "rdp"}) -> history of state_dict must be triples
continuing({"history": [1.0], "mechanism": "rdp"}) -> history of state_dict must be triples
continuing({"history": [], "mechanism": []}) -> state_dict must be of mechanism
continuing({"history": [], "mechanism": "renyi"}) -> state_dict must be of mechanism 'hockeystick', not 'renyi'
continuing({"history": [(-1.0, 0.1, 1)], "mechanism": "rdp"}) -> noise_multiplier must
continuing(3) -> TypeError: source must be an accountant of Opacus
a.load_state_dict({}) -> state_dict must
a.load_state_dict(None) -> state_dict must
a.load_state_dict({"history": []}) -> state_dict must
a.load_state_dict({"history": [], "mechanism": "rdp"}) -> state_dict must
a.load_state_dict({"history": [(1.0, 2.0, 1)], "mechanism": "hockeystick"}) -> sampling_rate must
a.step(noise_multiplier=-1.0, sample_rate=0.1) -> noise_multiplier must be positive
a.step(noise_multiplier=math.nan, sample_rate=0.1) -> noise_multiplier must be positive
a.step(noise_multiplier=1.0, sample_rate=1.5) -> sampling_rate must lie in
trained((0.0, 0.01, 1)).accountant() -> history must have noise in every step
trained((1.0, 0.01)).get_epsilon(1e-5) -> history must be triples of noise, rate and steps, not \(\(1.0, 0.01\),\)
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """No statement where its numbers would not be those of the training; bad steps and states leave the history as it was."""
    accountant = trained((1.0, 0.1, 3))
    own = {"a": accountant, "continuing": HockeyStickAccountant.continuing}
    refused_calls.check(call, reason, globals() | own)
    assert accountant.history == [(1.0, 0.1, 3)]


def private_training(opacus, records, batch_size, accountant="hockeystick", *, drop_last=False, poisson=True, **budget):
    """Return an engine, its optimiser, its loader, and a function that trains for a pass."""
    torch = pytest.importorskip("torch")
    opacus.register_accountant("hockeystick", HockeyStickAccountant, force=True)
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(records, 3), torch.randint(0, 2, (records,)))
    model = torch.nn.Linear(3, 2)
    engine = pytest.importorskip("opacus").PrivacyEngine(accountant=accountant)
    make = engine.make_private_with_epsilon if budget else engine.make_private
    model, optimizer, loader = make(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=batch_size, shuffle=True, drop_last=drop_last),
        max_grad_norm=1.0,
        poisson_sampling=poisson,
        **(budget or {"noise_multiplier": 1.0}),
    )

    def train():
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

    return engine, optimizer, loader, train


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accountant", ["hockeystick", "rdp"])
@pytest.mark.parametrize(
    ("drop_last", "poisson", "rate"), [(False, True, 1 / 4), (True, True, 1 / 3), (True, False, None)]
)
def test_statements_of_real_engines(opacus, accountant, drop_last, poisson, rate):
    """A thousand records in batches of 300: Opacus samples at one over the length of the loader, and the statement has the epsilon of that."""
    engine, _, loader, train = private_training(opacus, 1000, 300, accountant, drop_last=drop_last, poisson=poisson)
    for _ in range(10):
        train()
    steps = 10 * len(loader)
    said = headline(privacy_statement(engine, loader, 1e-5))
    step = hs.PoissonSampled(hs.Gaussian(1.0), rate) if poisson else hs.Gaussian(1.0)
    exact = hs.Accountant().compose(step, steps if poisson else 10).epsilon(1e-5)
    assert exact <= said <= exact * 1.001
    known = {"num_records": 1000, "batch_size": 300, "steps": steps, "noise_multiplier": 1.0, "delta": 1e-5}
    sampling = "poisson" if poisson else "shuffled"
    words = hs.privacy_statement(**known, drop_last=drop_last, sampling=sampling)
    assert headline(words) >= exact  # without the engine: by records, batch size and what the loader does


@pytest.mark.parametrize("poisson", [True, False])
def test_the_engine_is_watched(opacus, poisson, recwarn):
    """Batches of Opacus' own loaders: those of poisson_sampling=False are noticed, the others are not."""
    private_training(opacus, 2000, 40, poisson=poisson)[-1]()
    noticed = [warning for warning in recwarn if "no Poisson samples" in str(warning.message)]
    assert len(noticed) == (0 if poisson else 1)


@pytest.mark.filterwarnings("ignore")
def test_engine(opacus):
    """A PrivacyEngine trains with it, calibrates with it, and saves and loads its state."""
    budget = {"target_epsilon": 1.5, "target_delta": 1e-5, "epochs": 2}
    engine, optimizer, loader, train = private_training(opacus, 200, 20, **budget)
    train()
    train()
    assert len(engine.accountant) == 2 * len(loader)
    theirs = opacus.create_accountant("rdp")
    theirs.history = list(engine.accountant.history)
    spent = engine.get_epsilon(1e-5)
    assert HockeyStickAccountant.continuing(theirs).get_epsilon(1e-5) == spent
    assert 1.3 <= spent <= 1.5
    assert spent == pytest.approx(float(hs.dpsgd_epsilon(optimizer.noise_multiplier, 0.1, 20, 1e-5)), rel=1e-6)
