"""Answers do not depend on how the caller's thread rounds, nor on whether it takes subnormal numbers for zero."""

import inspect
import math
import random
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import effort
import environments
import hockeystick as hs
from compositions import composed
from environments import WRONG, environment
from hockeystick import federated, last_iterate
from hockeystick._checks import doors

ROOT = Path(__file__).parents[2]
needs_glibc = pytest.mark.skipif(not environments.AVAILABLE, reason="no known way to set the environment")


# Texts, since making a mechanism is arithmetic, too, and must happen where it is asked.
MECHANISMS = (
    "Gaussian({noise!r})",
    "Laplace({noise!r})",
    "PoissonSampled(Gaussian({noise!r}), {rate!r})",
    "PoissonSampled(Laplace({noise!r}), {rate!r})",
    "DiscreteGaussian({noise!r})",
    "DiscreteLaplace({small!r})",
    "ExponentialMechanism({small!r})",
    "ApproximateDP({small!r}, {mass!r})",
    "MixtureOfGaussians({noise!r}, [0.0, 0.5, 1.0], [0.1, 0.2, 0.7])",
)
RANGES = {"noise": (0.7, 20.0), "small": (0.05, 1.0), "rate": (1e-4, 0.5), "mass": (1e-310, 1e-6)}


def drawn(generator):
    """Return the code that makes a mechanism."""
    numbers = {name: math.exp(generator.uniform(math.log(low), math.log(high))) for name, (low, high) in RANGES.items()}
    return compile(generator.choice(MECHANISMS).format(**numbers), "mechanism", "eval")


def drawn_ledger(seed):
    """Return what makes an accountant, a delta and an epsilon to ask at."""
    generator = random.Random(seed)
    steps = [(drawn(generator), generator.choice([1, 3, 40, 700])) for _ in range(generator.randint(1, 3))]
    return steps, math.exp(generator.uniform(math.log(1e-12), math.log(1e-3))), generator.uniform(0.0, 5.0)


def answers(ledger):
    """Return the ends of both brackets."""
    steps, delta, eps = ledger
    accountant = composed(*((eval(mechanism, vars(hs.mechanisms)), count) for mechanism, count in steps))
    return *accountant.epsilon_bracket(delta)[:2], *accountant.delta_bracket(eps)[:2]


MANY = range(2, 2 + effort.at_night(200, by_day=12))


@needs_glibc
@pytest.mark.parametrize("seeds", [range(2), pytest.param(MANY, marks=pytest.mark.slow)])
def test_ledgers_keep_their_bits(seeds):
    """Two ledgers at random, and two hundred at night, twelve by day, in every environment."""
    for ledger in map(drawn_ledger, seeds):
        expected = answers(ledger)
        for rounding, flush in WRONG:
            with environment(rounding, flush):
                found = answers(ledger)
            assert found == expected, (rounding, flush)


@needs_glibc
@pytest.mark.parametrize(("rounding", "flush"), WRONG)
def test_rounding_downward_moved_a_certificate(rounding, flush):
    """A ledger whose bracket came out as [2.231, 2.231] where the answer is 4.692, and two subnormal numbers that became 0."""
    with environment(rounding, flush):
        ledger = hs.Accountant().compose(hs.Laplace(18.864243113061587), 100)
        ledger.compose(hs.PoissonSampled(hs.Laplace(3.662700881963422), 0.33429458097439996), 100)
        lower, upper = ledger.epsilon_bracket(3.909742328765628e-06)[:2]
        revealing = hs.Accountant().compose(hs.ApproximateDP(0.1, 1e-310)).epsilon(0.0)
        deep = hs.Accountant().compose(hs.Gaussian(1.0)).delta(38.0)
    assert 4.6918869 <= lower <= upper <= 4.6918870
    assert revealing == math.inf
    # theta(38, 1) by mpmath: Q(37.5) - e^38 Q(38.5)
    assert 1.18e-309 < deep < 1.2e-309


STEPS = np.linspace(0.1, 4.0, 1500)
RATES = STEPS / 9.0
CLIENTS = {"rounds": 40, "local_steps": 5, "num_clients": 20, "clip_norm": 1.0, "noise_std": 0.7, "smoothness": 1.0}
DESCENT = {"index": 95, "num_records": 100, "learning_rate": 0.8, "lipschitz": 1.0, "smoothness": 1.0}
BATCHES = {"sampling_rate": 0.05, "num_steps": 30, "learning_rate": 0.1, "noise_std": 1.0, "lipschitz": 1.0}
CALLS = {
    "theta": lambda: hs.theta(STEPS, 1.3),
    "log_theta": lambda: hs.log_theta(STEPS[::3], STEPS[::-3]),
    "q_inv": lambda: hs.q_inv(RATES),
    "theta_inverse": lambda: hs.theta_inverse([0.1, 1.0, 1.79e308, -0.2], 0.5),
    "gaussian_epsilon": lambda: hs.gaussian_epsilon(STEPS, 1e-5),
    "subnormal theta": lambda: hs.theta(38.0, 1.0),
    "gdp_delta": lambda: hs.gdp_delta(STEPS, 1.0),
    "gdp_rdp": lambda: hs.gdp_rdp([1e-160, 1e-155, 1.0], 3.0),
    "dpsgd_epsilon": lambda: hs.dpsgd_epsilon([0.8, 1.1], 0.01, [[100], [1000]], 1e-5, num_threads=4),
    "dpsgd_noise_multiplier": lambda: hs.dpsgd_noise_multiplier(0.01, 100, 1.0, 1e-5),
    "shuffled batches": lambda: hs.shuffled_batches_epsilon_bracket(1e-5, noise_multiplier=1.1, num_batches=20, epochs=3),
    "fedavg_delta": lambda: federated.fedavg_delta(STEPS, learning_rate=0.1, **CLIENTS),
    "fedavg_gdp": lambda: federated.fedavg_gdp(learning_rate=STEPS[:50], schedule="stagewise", num_threads=4, **CLIENTS),
    "last iterate": lambda: last_iterate.pnsgd_gaussian(STEPS, noise_std=2.0, diameter=1.0, strong_convexity=0.3, **DESCENT),
    "best": lambda: last_iterate.best(0.5, noise_std=2.0, diameter=1.0, strong_convexity=0.3, **DESCENT).delta,
    "zcdp": lambda: hs.zcdp_epsilon(STEPS, 1e-6),
    "renyi": lambda: hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(2.0), 0.1), 30).rdp([2.0, 2.5, 31.0]),
    "nonlinear contraction": lambda: hs.nonlinear_contraction(np.full((3, 3), 1.0 / 3.0), 0.1, [0.2, 1e-310]),
    "profile": lambda: hs.Accountant().compose(hs.PrivacyProfile([0.0, 1.0], [0.3, 0.01]), 7).epsilon(1e-3),
    "trade-off": lambda: hs.Accountant().compose(hs.TradeOff([0.0, 0.2, 1.0], [1.0, 0.4, 0.0])).delta(0.3),
    "skellam": lambda: hs.Accountant().compose(hs.Skellam(40.0, 1), 3).epsilon(1e-5),
    "group": lambda: hs.group_epsilon(hs.Accountant().compose(hs.Gaussian(3.0), 5), 3, 1e-5),
    "filter": lambda: _spent(hs.RenyiFilter(order=8.0, epsilon=5.0, delta=1e-5)),
    "sampled by the integral": lambda: hs.Accountant("replace").compose(
        hs.FixedSizeSampled(hs.Gaussian(2.0), 1000, 20, replacement=False), 100
    ).rdp(4.0),
}  # fmt: skip


def _spent(budget):
    for _ in range(20):
        budget.spend(hs.PoissonSampled(hs.Gaussian(1.5), 0.02))
    return repr(budget), budget.epsilon(1e-7), budget.remaining(hs.Gaussian(30.0))


@needs_glibc
@pytest.mark.parametrize("name", CALLS)
def test_calls_keep_their_bits(name):
    """Kernels, grids on several threads, and arithmetic in Python give the bits of the default environment."""
    expected = CALLS[name]()
    for rounding, flush in WRONG:
        with environment(rounding, flush):
            found = CALLS[name]()
        same = (
            np.array_equal(found, expected, equal_nan=True) if isinstance(expected, np.ndarray) else found == expected
        )
        assert same, (rounding, flush)


@needs_glibc
def test_threads_have_environments_of_their_own():
    """Threads that round differently ask one accountant at once; each gets the same bits, and keeps how it rounds."""
    accountant = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.3), 0.02), 500).compose(hs.Laplace(30.0), 9)
    deltas = np.geomspace(1e-9, 1e-3, 12)
    expected = accountant.epsilon(deltas).tolist()

    def ask(number):
        with environment(*WRONG[number % len(WRONG)]):
            return accountant.epsilon(deltas).tolist()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(16))) == [expected] * 16


def test_flags_of_numpy_reach_the_caller():
    """A kernel out of its domain still raises NumPy's "invalid", also where the environment had to be set right."""
    with pytest.raises(FloatingPointError), np.errstate(invalid="raise"):
        hs.q_inv(2.0)
    if environments.AVAILABLE:
        with environment("up", flush=False), np.errstate(invalid="raise"):
            try:
                found = hs.q_inv(2.0)
            except FloatingPointError:
                found = None
        assert found is None


def test_bindings_define_through_the_doors():
    """The bindings define functions for Python through door::Module and door::Class alone, and past them only what needs no guard."""
    sources = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "cpp" / "bindings").iterdir()}
    past = {name for name, text in sources.items() if re.search(r"py::(module_|class_)|PYBIND11_MODULE", text)}
    assert past == {"pybind.hpp", "module.cpp", "bind.hpp", "bind_numeric.cpp"}
    loops = re.findall(r"\nvoid \w+_loop\(.*?\n}|> void \w+_loop\(.*?\n}", sources["ufuncs.cpp"], re.DOTALL)
    assert len(loops) == 3
    assert all("    blocks<" in loop for loop in loops)
    assert "FloatingEnvironment environment;" in sources["ufuncs.cpp"].split("> void blocks(")[1].split("\n}")[0]
    assert "reinterpret_cast<void*>(kernel)" not in sources["bind_capsules.cpp"]


MODULES = [hs, *(getattr(hs, name) for name in hs.__all__ if inspect.ismodule(getattr(hs, name)))]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_public_functions_stand_behind_doors(module):
    """Each function of a module's `__all__`, and each public method of its classes, sets the environment right."""
    door = doors.door(lambda: None, "").__code__
    for name in module.__all__:
        public = getattr(module, name)
        if inspect.isfunction(public):
            assert hasattr(public, "__wrapped__"), name
        elif inspect.isclass(public):
            for method, call in inspect.getmembers(public, inspect.isfunction):
                ours = call.__module__.startswith("hockeystick") and not method.startswith("_")
                assert not ours or hasattr(call, "__wrapped__") or call.__code__ == door, (name, method)
