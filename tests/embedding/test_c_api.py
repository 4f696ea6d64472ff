"""The C library, called through ctypes: agreement with the package and closed forms, error codes, threads."""

import ctypes
import itertools
import math
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import compiled
import effort
import hockeystick as hs
import processes
import refused_calls
import sweep_plans
from compiled import Accountant, Bracket
from compositions import composed
from hockeystick import federated, last_iterate, mechanisms
from hockeystick._checks.arguments import table
from hockeystick.mechanisms.privacy_profile import ProfiledMechanism

ROOT = Path(__file__).parents[2]
ONE, TWO = ("q", "log_q", "q_inv"), ("theta", "log_theta", "laplace_theta", "theta_inverse", "gaussian_epsilon")
SCHEDULES = ("constant", "cyclic", "stagewise", "continuous")  # in the order of their codes
ROUNDING = 1e-11  # of mu and log delta 1e-12, in both libraries


def test_the_storm_calls_everything():
    """The program of the sanitizers names every function of the header."""
    storm = (ROOT / "tests" / "embed" / "storm.cpp").read_text(encoding="utf-8")
    assert set(compiled.prototypes()) <= set(re.findall(r"\bhs_\w+", storm))


@pytest.fixture(scope="module")
def library():
    """Return the library."""
    return compiled.library()


def written(library, name, arguments, out):
    """Return what a function writes, or raise what the library says; then it has written nothing."""
    before = bytes(out)
    try:
        compiled.call(library, name, *arguments, ctypes.byref(out))
    except ValueError:
        assert bytes(out) == before
        raise
    return out


def answer(library, name, *arguments):
    """Return the number that a function writes."""
    return written(library, name, arguments, ctypes.c_double(7.0)).value


def bracket(library, name, *arguments):
    """Return the bracket that a function writes."""
    out = written(library, name, arguments, Bracket(7.0, 7.0))
    return out.lower, out.upper


def test_versions(library):
    """The library is the package's."""
    assert library.hs_abi_version() == 1
    assert library.hs_version().decode() == hs.__version__
    assert library.hs_accountant_destroy(None) is None


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_kernels(library, name):
    """Scalar kernels are the ufuncs to a few units in the last place, batch kernels exactly."""
    rng = np.random.default_rng(0)
    first = rng.uniform(0.01, 0.99, 200) if name == "q_inv" else rng.uniform(0.1, 3.0, 200)
    second = rng.uniform(1e-3, 0.3, 200)
    arguments = [first] if name in ONE else [first, second]
    expected = getattr(hs, name)(*arguments)
    scalars = [getattr(library, f"hs_{name}")(*cell) for cell in zip(*(x.tolist() for x in arguments), strict=True)]
    assert scalars == pytest.approx(expected, rel=1e-13)
    if hasattr(library, f"hs_{name}_batch"):
        out = np.empty(200)
        assert getattr(library, f"hs_{name}_batch")(*arguments, out, 200) == 0
        assert out.tolist() == expected.tolist()
    assert math.isnan(getattr(library, f"hs_{name}")(*[math.nan] * len(arguments)))


P, Q = [0.6, 0.3, 0.1], [0.3, 0.6, 0.1]
DOORS = [  # functions that compose at once, their numbers before the count, and Python's mechanism
    ("gaussian", (6.0,), hs.Gaussian(6.0)),
    ("laplace", (9.0,), hs.Laplace(9.0)),
    ("poisson_gaussian", (1.0, 0.02), hs.PoissonSampled(hs.Gaussian(1.0), 0.02)),
    ("poisson_laplace", (2.0, 0.1), hs.PoissonSampled(hs.Laplace(2.0), 0.1)),
    ("fixed_size_gaussian", (2.0, 50, 5), hs.FixedSizeSampled(hs.Gaussian(2.0), 50, 5, replacement=False)),
    ("fixed_size_laplace", (3.0, 50, 5), hs.FixedSizeSampled(hs.Laplace(3.0), 50, 5, replacement=False)),
    ("discrete_gaussian", (4.0, 2), hs.DiscreteGaussian(4.0, 2)),
    ("discrete_laplace", (0.2, 3), hs.DiscreteLaplace(0.2, 3)),
    ("randomized_response", (0.6, 4), hs.RandomizedResponse(0.6, 4)),
    ("exponential", (0.4,), hs.ExponentialMechanism(0.4)),
    ("permute_and_flip", (0.4,), hs.PermuteAndFlip(0.4)),
    ("approximate_dp", (0.1, 1e-8), hs.ApproximateDP(0.1, 1e-8)),
    ("discrete", (P, Q, 3), hs.Discrete(P, Q)),
    ("discrete_pairs", (P, Q, 3, Q, P, 3), hs.DiscretePairs(hs.Discrete(P, Q), hs.Discrete(Q, P))),
]


@pytest.mark.filterwarnings("ignore:delta is at least")
@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_what_is_composed_at_once(library, adjacency):
    """Each function is its mechanism: brackets have the bits of the package's, of none, alone and with others; none is left out."""
    made = [name.removeprefix("hs_accountant_") for name in CAN_FAIL if name.startswith("hs_accountant_")]
    assert {*made} - {name for name, *_ in DOORS} == {"create", "compose", "delta", "epsilon"}
    composed = [case for case in DOORS if composable(case[2], adjacency)]
    for cases in [*([case] for case in composed), composed[:4], composed[-4:]]:
        handle, ours = (Accountant(library, adjacency), hs.Accountant(adjacency))
        for count, (kind, numbers, mechanism) in enumerate(cases, start=3 // len(cases)):
            handle.compose(kind, *numbers, count)
            ours.compose(mechanism, count)
        for question, values in (("delta", (0.0, 0.5, math.inf)), ("epsilon", (1e-9, 1e-5, 0.3))):
            expected = [getattr(ours, f"{question}_bracket")(value)[:2] for value in values]
            assert handle.ask(question, *values) == expected


def test_dpsgd(library):
    """DP-SGD's ends and noise are those of the grids; a training of no step leaks nothing, and needs no noise."""
    assert bracket(library, "dpsgd_epsilon", 1.0, 0.1, 0.0, 0.0) == (0.0, 0.0)
    assert answer(library, "dpsgd_noise_multiplier", 0.1, 0.0, 1.0, 1e-5) == 0.0
    lower, upper = bracket(library, "dpsgd_epsilon", 1.0, 0.01, 1000, 1e-5)
    assert lower <= float(hs.dpsgd_epsilon(1.0, 0.01, 1000, 1e-5)) == pytest.approx(upper, rel=1e-6)
    _, upper = bracket(library, "dpsgd_delta", 1.0, 0.01, 1000, 2.0)
    assert float(hs.dpsgd_delta(1.0, 0.01, 1000, 2.0)) == pytest.approx(upper, rel=1e-6)
    noise = answer(library, "dpsgd_noise_multiplier", 0.01, 1000, 2.0, 1e-5)
    assert noise == pytest.approx(float(hs.dpsgd_noise_multiplier(0.01, 1000, 2.0, 1e-5)), rel=1e-6)


SHUFFLED = [(1.0, 7, 3), (0.5, 1000, 1), (1.5, 1, 2), (3.0, 200, 5), (0.1, 50, 1), (2000.0, 2, 1), (0.3, 10**6, 1)]


@pytest.mark.share(7)
@pytest.mark.parametrize(("noise", "batches", "epochs"), SHUFFLED)
def test_shuffled_batches(library, noise, batches, epochs):
    """Both ends of shuffled batches are those of the package."""
    setting = {"noise_multiplier": noise, "num_batches": batches, "epochs": epochs}
    for eps in (0.0, 0.5, 3.0, math.inf):
        found = bracket(library, "shuffled_batches_delta", *setting.values(), eps)
        assert found == hs.shuffled_batches_delta_bracket(eps, **setting)[:2]
    for delta in (0.0, 1e-9, 1e-5, 0.2):
        found = bracket(library, "shuffled_batches_epsilon", *setting.values(), delta)
        assert found == hs.shuffled_batches_epsilon_bracket(delta, **setting)[:2]


def test_gaussian_dp(library):
    """Delta, epsilon and the trade-off function are the package's, and NaN outside of their domains; 300 cells."""
    for mu, k in itertools.product((0.01, 0.3, 1.0, 2.5, 6.0), range(1, 21)):
        for name, value in (("delta", 0.2 * k), ("epsilon", 10.0 ** (-0.6 * k)), ("trade_off", k / 21)):
            found = getattr(library, f"hs_gdp_{name}")(mu, value)
            assert found == pytest.approx(float(getattr(hs, f"gdp_{name}")(mu, value)), rel=1e-13)
    assert library.hs_gdp_epsilon(1.0, 0.0) == math.inf
    outside = [("delta", -1.0, 1.0), ("delta", 1.0, -1.0), ("delta", math.nan, 1.0)]
    outside += [(name, 1.0, wrong) for name in ("epsilon", "trade_off") for wrong in (-0.1, 1.1, math.nan)]
    assert all(math.isnan(getattr(library, f"hs_gdp_{name}")(*cell)) for name, *cell in outside)


@pytest.mark.share(2)
@pytest.mark.parametrize("code", range(4))
def test_federated_averaging_is_the_packages(library, code):
    """Every schedule with and without a diameter gives Python's mu, of as many rounds as it takes; 168 cells."""
    most = 2**53 if code < 2 else 1000
    for rounds, steps, noise, smoothness, diameter in itertools.product(
        (1, 9, 300, most), (1, 4), (0.05, 1.0), (0.0, 0.8), (0.02, 1.0, math.inf)
    ):
        setting = {"clip_norm": 1.0, "noise_std": noise, "smoothness": smoothness, "learning_rate": 0.1}
        mu = federated.fedavg_gdp(
            rounds=rounds, local_steps=steps, num_clients=20, **setting, schedule=SCHEDULES[code], diameter=diameter
        )
        found = answer(library, "fedavg_gdp", code, rounds, steps, 20, *setting.values(), diameter)
        assert found == pytest.approx(mu, rel=ROUNDING)


def test_last_iterate(library):
    """Theorem 4 of Asoodeh, Diaz and Calmon is the package's; 96 cells."""
    cells = itertools.product((0.0, 0.5, 2.0), (1, 20, 39, 40), (0.5, 2.0), (0.0, 0.3), (0.5, 3.0))
    for eps, index, noise, convexity, diameter in cells:
        setting = {"learning_rate": 0.5, "noise_std": noise, "lipschitz": 1.0, "smoothness": 0.8}
        setting |= {"strong_convexity": convexity, "diameter": diameter}
        found = answer(library, "pnsgd_gaussian", eps, index, 40, *setting.values())
        assert found == pytest.approx(
            last_iterate.pnsgd_gaussian(eps, index=index, num_records=40, **setting), rel=1e-9
        )


# A value of every argument of the header that Python's functions do not have by this name, handles and places apart.
GOOD = sweep_plans.GOOD | {each: [0.5, 0.5] for each in ("p", "q", "added_p", "added_q", "probabilities")}
GOOD |= dict.fromkeys(("count", "sensitivity", "query_sensitivity", "epsilon0", "epochs", "num_selected"), 1)
GOOD |= dict.fromkeys(("inverse_scale", "noise_probability"), 0.5) | dict.fromkeys(("n", "added_n"), 2)
GOOD |= dict.fromkeys(("schedule", "randomizer", "replacement"), 0) | {"sensitivities": [0.0, 1.0]}
GOOD |= {"noise_variance": 9, "num_buckets": 3, "num_batches": 7, "num_users": 1000, "max_batch_size": 3}
OUTSIDE = {"positive": [0.0], "count": [1.5], "probability": [1.5]}  # by the domain that the argument has in Python
CAN_FAIL = {name: arguments for name, (result, arguments) in compiled.prototypes().items() if result == "hs_status"}
NUMBERS = [
    (name, argument.removeprefix("double "))
    for name, arguments in CAN_FAIL.items()
    for argument in arguments
    if re.match(r"double \w", argument)
]


@pytest.mark.parametrize(("name", "argument"), NUMBERS)
def test_every_number_is_checked(library, name, argument):
    """Of every function that can fail: NaN, -1 and what is outside of Python's domain are refused by the argument's name."""
    accountant, mechanism, out = Accountant(library), ctypes.c_void_p(), (ctypes.c_double * 2)(7.0, 7.0)
    compiled.call(library, "mechanism_gaussian", 2.0, ctypes.byref(mechanism))
    known = GOOD | {"accountant": accountant.pointer, "mechanism": mechanism}
    *names, last = (one.split()[-1] for one in CAN_FAIL[name])
    given = {one: known[one] for one in names} | {last: known[last] if last == "count" else ctypes.byref(out)}
    domain = table()[argument].domain if argument in table() else ""
    for wrong in (math.nan, -1.0, *OUTSIDE.get(domain, ())):
        with pytest.raises(ValueError, match=rf"^{argument.removeprefix('query_')} must .*, not {wrong:g}"):
            compiled.call(library, name.removeprefix("hs_"), *(given | {argument: wrong}).values())
        assert list(out) == [7.0, 7.0]
    assert accountant.ask("epsilon", 1e-5) == [(0.0, 0.0)]
    library.hs_mechanism_free(mechanism)


FEDERATION = [0, 100, 5, 50, 1.0, 0.1, 1.0, 0.01, math.inf]
DESCENT = [1.0, 20, 40, 0.5, 2.0, 1.0, 0.5, 0.0, 1.0]
REFUSED = r"""
bracket("shuffled_batches_epsilon", 1.0, 2, 0, 0.1) -> ^epochs must be an integer in \[1, 2\^53\], not 0$
bracket("shuffled_batches_epsilon", 1.0, 2, 1, 1.0) -> ^delta must lie in \[0, 1\), not 1$
bracket("dpsgd_epsilon", 1.0, 0.1, 1, 1.0) -> ^delta must lie in \[0, 1\), not 1$
federation(0, 4) -> schedule must be HS_CONSTANT_STEPS, HS_CYCLIC_STEPS
federation(2, 0.0) -> local_steps must be an integer in \[1, 2\^53\], not 0
federation(5, inf) -> noise_std must be positive and finite, not inf
descent(1, 41.0) -> index must lie in \[1, num_records\], not 41
descent(3, 5.0) -> learning_rate must be at most 2/\(smoothness \+ strong_convexity\), not 5
descent(6, inf) -> smoothness must be non-negative and finite, not inf
descent(7, 0.7) -> strong_convexity must lie in \[0, smoothness\], not 0.7
descent(8, inf) -> diameter must be positive and finite, not inf
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(library, call, reason):
    """An argument outside its domain gives its code, its name and its value, and the result is untouched."""

    def changed(name, arguments):
        return lambda place, value: answer(library, name, *arguments[:place], value, *arguments[place + 1 :])

    names = {"bracket": lambda *asked: bracket(library, *asked), "nan": math.nan, "inf": math.inf}
    names |= {"federation": changed("fedavg_gdp", FEDERATION), "descent": changed("pnsgd_gaussian", DESCENT)}
    refused_calls.check(call, reason, names)


@pytest.mark.parametrize(
    ("adjacency", "kind", "arguments", "message"),
    [
        (
            "add_or_remove",
            "randomized_response",
            (0.5, 3.0, 1.0),
            "a response is replaced, not added or removed; use HS_REPLACE",
        ),
        ("replace", "gaussian", (1.0, 0.5), "count must be an integer"),
        ("replace", "discrete", ([0.5, 0.6], [0.5, 0.5], 2, 1), "p must sum to 1"),
        ("replace", "discrete", ([0.5, 0.5], [0.5, 0.5], 0, 1), "p must sum to 1"),  # no outcomes
    ],
)
def test_refused_steps(library, adjacency, kind, arguments, message):
    """A step outside its domain is refused and not composed."""
    handle = Accountant(library, adjacency)
    with pytest.raises(ValueError, match=message):
        handle.compose(kind, *arguments)
    assert handle.ask("epsilon", 1e-5) == [(0.0, 0.0)]


def test_rounds_that_grow_the_cost(library):
    """Schedules that differ from round to round take at most 10^6 rounds, and NULL is refused."""
    for code in (2, 3):
        with pytest.raises(ValueError, match=r"rounds must be an integer in \[1, 1000000\], not 1000001"):
            answer(library, "fedavg_gdp", code, 1000001, *FEDERATION[2:])
    assert library.hs_fedavg_gdp(*FEDERATION, None) == 1
    assert library.hs_last_error_message() == b"mu must not be NULL"


def test_refused_handles(library):
    """NULL and an unknown adjacency are refused rather than followed."""
    pointer = ctypes.c_void_p()
    assert library.hs_accountant_create(2, ctypes.byref(pointer)) == 1
    assert pointer.value is None
    assert library.hs_accountant_create(0, None) == 1
    assert library.hs_accountant_gaussian(None, 1.0, 1) == 1
    assert library.hs_last_error_message() == b"accountant must not be NULL"
    assert library.hs_dpsgd_epsilon(1.0, 0.1, 1, 1e-5, None) == 1
    with pytest.raises(ValueError, match="delta must lie in"):
        Accountant(library).ask("epsilon", 0.1, 2.0)


def test_threads(library):
    """Queries of one handle in several threads give what one thread gives; each thread has its own message."""
    handle = Accountant(library).compose("poisson_gaussian", 1.0, 0.01, 500).compose("laplace", 20.0, 2)
    alone = handle.ask("epsilon", *np.logspace(-9, -2, 8))

    def work(k):
        bad = Bracket()
        library.hs_dpsgd_delta(1.0, 0.1, 1, -float(k + 1), ctypes.byref(bad))
        found = handle.ask("epsilon", *np.logspace(-9, -2, 8))
        return found, compiled.message(library)

    with ThreadPoolExecutor(4) as pool:
        for k, (found, message) in enumerate(pool.map(work, range(8))):
            assert found == alone
            assert message == f"epsilon must be non-negative, not -{k + 1}"


@pytest.mark.skipif(
    not (sys.platform == "linux" and shutil.which("nm") and shutil.which("readelf")), reason="not Linux, or no binutils"
)
def test_exported_symbols(library):
    """The library exports the functions of its header and nothing else, under a name with the ABI version."""
    path = compiled.LIBRARIES[0]
    listing = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in listing.splitlines()} == set(compiled.prototypes())
    dynamic = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    assert f"[libhockeystick_c.so.{library.hs_abi_version()}]" in dynamic


RANDOM_NUMBERS = """
import ctypes, math, random, struct, sys
library, calls = ctypes.CDLL(sys.argv[1]), int(sys.argv[2])
names = "q log_q q_inv theta log_theta laplace_theta theta_inverse gaussian_epsilon gdp_delta gdp_epsilon gdp_trade_off".split()
functions = [(name, getattr(library, "hs_" + name)) for name in names]
for name, function in functions:
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * (1 if name in names[:3] else 2)
generator = random.Random(8)
def number():
    if generator.random() < 0.3:
        return generator.random()
    return abs(struct.unpack("d", struct.pack("Q", generator.getrandbits(64)))[0])
for _ in range(calls):
    name, function = generator.choice(functions)
    x, y = number(), number()
    found = function(x) if len(function.argtypes) == 1 else function(x, y)
    legal = name in {"q", "log_q", "theta", "log_theta", "laplace_theta", "gdp_delta"} or 0 <= (x if name == "q_inv" else y) <= 1
    legal = legal and x < math.inf and y < math.inf
    assert not legal or found == found, (name, x, y)
"""


@pytest.mark.parametrize(
    "calls", [100_000, pytest.param(effort.at_night(10_000_000, by_day=1_000_000), marks=pytest.mark.slow)]
)
def test_random_numbers_end_no_process(calls):
    """Scalar functions answer over the whole range of doubles, inside their domains with a number; none throws through C."""
    processes.run([sys.executable, "-c", RANDOM_NUMBERS, str(compiled.LIBRARIES[0]), str(calls)], limit=600)


def test_largest_epsilon(library):
    """Where eps is the largest double, r is sqrt(2 eps): of Q(eps/r - r/2) - e^eps Q(eps/r + r/2) the second term is nothing."""
    largest = sys.float_info.max
    root = math.sqrt(2.0) * math.sqrt(largest)
    assert library.hs_theta_inverse(largest, 0.5) == pytest.approx(root, rel=1e-15)
    assert hs.theta_inverse([1.0, largest], 0.5)[1] == pytest.approx(root, rel=1e-15)
    for eps in (1e29, 1.2e30, 1.3e30, 1e33, 1e200):
        # theta <= Q(eps/r - r/2), up to a relative 1/r: the root of r^2/2 - 39.4 r - eps
        least = math.sqrt(37.0**2 + 2.0 * eps) - 37.1
        assert least * (1 - 1e-13) <= library.hs_theta_inverse(eps, 1e-300) <= math.sqrt(2.0 * eps)
    assert library.hs_gaussian_epsilon(1e152, 0.9) == pytest.approx(0.5e304, rel=1e-15)


SOURCES = ROOT / "cpp" / "src"
ENDS_IN_GUARD = (
    r"(?:return )?(?:guarded\(\[&\]|number<|unary\(|binary\(|answer\(|make_handle\(|compose_at_once\(|compose_at_once<)"
)
WITHOUT_WORK = {"hs_abi_version", "hs_version", "hs_last_error_message", "hs_accountant_destroy", "hs_mechanism_free"}


def test_no_function_forgets_the_border():
    """Every function of c_api.h is one call of what lets no exception out and sets the floating-point environment right."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("c_api*.cpp")))
    bodies = dict(re.findall(r"^\S[^\n;{}]*?\b(hs_\w+)\([^;{}]*\) \{(.*?)(?:^\}| \}$)", text, re.MULTILINE | re.DOTALL))
    declared = set(compiled.prototypes())
    assert declared
    assert declared - set(bodies) == set()
    for name in declared - WITHOUT_WORK:
        body = bodies[name].strip()
        assert re.match(ENDS_IN_GUARD, body), name
        assert body.endswith(";"), name
        assert "\n}" not in body, name
    for name in WITHOUT_WORK & declared:
        assert re.fullmatch(r"(?:delete \w+|return [\w.()]+);", bodies[name].strip()), name
    support = (SOURCES / "c_api_support.hpp").read_text(encoding="utf-8")
    for template in ("hs_status guarded(", "double number("):
        assert "noexcept" in support.split(template)[1].split("{")[0], template
    helpers = re.findall(
        r"^(?:template.*\n)?(?:template <.*> )?hs_status (?!hs_)(\w+)\([^;{}]*\)(?: noexcept)? \{\n\s*(\w+ \w+)",
        text,
        re.MULTILINE,
    )
    assert {start for _, start in helpers} == {"return guarded"}, helpers


# The mechanisms of the C library: each of Python's, with the same bits; none is forgotten, and none crashes.


ADJACENCIES = ("add_or_remove", "replace")
GAUSSIAN, LAPLACE = hs.Gaussian(2.0), hs.Laplace(3.0)
PAIR = hs.Discrete([0.6, 0.3, 0.1], [0.3, 0.6, 0.1])
MIXED = hs.Composed([(GAUSSIAN, 1), (LAPLACE, 2)])


def vectors_of(mechanism):
    """Return the sensitivity and the dimension of a query of vectors."""
    return mechanism.sensitivity, math.inf if mechanism.dimension is None else mechanism.dimension


# class -> the constructor's name, and its arguments before `out`; a mechanism stands for its own handle
CONSTRUCTORS = {
    hs.ApproximateDP: lambda m: ("approximate_dp", m.epsilon, m.delta),
    # Beside a step that comes 0 times, and so is none.
    hs.Composed: lambda m: (
        "composed",
        [*(part for part, _ in m.steps), LAPLACE],
        [*(count for _, count in m.steps), 0],
        len(m.steps) + 1,
    ),
    hs.Discrete: lambda m: ("discrete", m.p, m.q, len(m.p)),
    hs.DiscreteGaussian: lambda m: ("discrete_gaussian", m.noise_std, m.sensitivity),
    hs.DiscreteGaussianVector: lambda m: ("discrete_gaussian_vector", m.noise_std, *vectors_of(m)),
    hs.DiscreteLaplace: lambda m: ("discrete_laplace", m.inverse_scale, m.sensitivity),
    hs.DiscretePairs: lambda m: (
        *("discrete_pairs", m.remove.p, m.remove.q, len(m.remove.p)),
        *(m.add.p, m.add.q, len(m.add.p)),
    ),
    hs.DistributedDiscreteGaussian: lambda m: (
        *("distributed_discrete_gaussian", m.noise_std, m.num_clients),
        *vectors_of(m),
    ),
    hs.ExponentialMechanism: lambda m: ("exponential", m.epsilon),
    hs.FixedSizeSampled: lambda m: (*("fixed_size_sampled", m.mechanism, m.num_records, m.batch_size), m.replacement),
    hs.Gaussian: lambda m: ("gaussian", m.noise_multiplier),
    hs.Laplace: lambda m: ("laplace", m.noise_multiplier),
    hs.MixtureOfGaussians: lambda m: (
        *("gaussian_mixture", m.noise_multiplier, m.sensitivities, m.probabilities),
        len(m.sensitivities),
    ),
    hs.PrivacyProfile: lambda m: ("privacy_profile", m.epsilons, m.remove, m.add, len(m.epsilons)),
    hs.PermuteAndFlip: lambda m: ("permute_and_flip", m.epsilon),
    hs.PoissonSampled: lambda m: ("poisson_sampled", m.mechanism, m.sampling_rate),
    hs.RandomAllocation: lambda m: (
        *(("random_allocation", GAUSSIAN.noise_multiplier) if m.mechanism == GAUSSIAN else ("allocated", m.mechanism)),
        *(m.steps, m.num_selected),
    ),
    hs.RandomizedResponse: lambda m: ("randomized_response", m.noise_probability, m.num_buckets),
    hs.Skellam: lambda m: ("skellam", m.noise_variance, *vectors_of(m)),
    hs.Shuffled: lambda m: ("shuffled", m.epsilon0, m.num_users, m.randomizer == "randomized_response"),
    hs.TruncatedPoissonSampled: lambda m: (
        *("truncated_poisson" + "_zeroed_out" * m.zeroed_out, m.mechanism.noise_multiplier, m.num_records),
        *(m.sampling_rate, m.max_batch_size),
    ),
}
EXAMPLES = [
    hs.ApproximateDP(0.3, 1e-4),
    MIXED,
    PAIR,
    hs.DiscreteGaussian(4.0, 2),
    hs.DiscreteLaplace(0.2, 3),
    hs.DiscretePairs(PAIR, hs.Discrete([0.5, 0.5], [0.6, 0.4])),
    hs.ExponentialMechanism(0.4),
    hs.FixedSizeSampled(GAUSSIAN, 50, 5, replacement=False),
    hs.FixedSizeSampled(GAUSSIAN, 50, 50, replacement=False),
    hs.FixedSizeSampled(GAUSSIAN, 50, 5, replacement=True),
    hs.FixedSizeSampled(LAPLACE, 50, 5, replacement=True),
    hs.FixedSizeSampled(MIXED, 50, 5, replacement=False),
    hs.FixedSizeSampled(hs.RandomizedResponse(0.5, 4), 100, 5, replacement=False),
    GAUSSIAN,
    LAPLACE,
    hs.MixtureOfGaussians(2.0, [0.0, 1.0, 2.0], [0.7, 0.2, 0.1]),
    hs.MixtureOfGaussians.of_group(1.5, 3, 0.05),
    hs.PermuteAndFlip(0.4),
    hs.PoissonSampled(GAUSSIAN, 0.1),
    hs.PoissonSampled(LAPLACE, 0.1),
    hs.PoissonSampled(PAIR, 0.1),
    hs.PoissonSampled(MIXED, 0.05),
    hs.FixedSizeSampled(hs.Composed([]), 50, 5, replacement=True),
    hs.RandomAllocation(hs.Composed([]), 9, 2),
    hs.PoissonSampled(hs.DiscreteLaplace(0.4), 0.2),
    hs.PoissonSampled(hs.PoissonSampled(LAPLACE, 0.3), 0.5),
    hs.PoissonSampled(hs.Composed([(GAUSSIAN, 3), (hs.Gaussian(5.0), 2)]), 0.02),
    hs.PoissonSampled(hs.TruncatedPoissonSampled(GAUSSIAN, 100, 0.05, 9), 0.5),
    hs.PoissonSampled(hs.PrivacyProfile([0.0, 0.5, 1.0], [0.3, 0.1, 0.0]), 0.1),
    hs.PrivacyProfile([0.0, 0.5, 1.0], [0.3, 0.1, 0.0]),
    hs.PrivacyProfile([0.0, 0.5, 2.0], [0.3, 0.2, 0.0], [0.3, 0.1, 0.01]),
    hs.PrivacyProfile([0.0], [0.25]),
    hs.PrivacyProfile.from_function(lambda eps: hs.theta(eps, 1.0), num_points=300),
    hs.RandomAllocation(GAUSSIAN, 20),
    hs.RandomAllocation(GAUSSIAN, 7, 3),
    hs.RandomAllocation(LAPLACE, 9, 2),
    hs.RandomizedResponse(0.6, 4),
    hs.Shuffled(1.0, 1000),
    hs.Shuffled(0.5, 200, "randomized_response"),
    hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.05, 9),
    hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.05, 9, zeroed_out=True),
]
ALONE = [  # not in the ledger of all below, whose epsilon they would make infinite
    hs.RandomAllocation(GAUSSIAN, 2),
    hs.RandomAllocation(hs.DiscreteLaplace(0.4), 5),
    hs.DiscreteGaussianVector(2.0, 2.0),
    hs.DiscreteGaussianVector(20.0, 3.0, 5),
    hs.DistributedDiscreteGaussian(1.0, 4, 2.0, 1),
    hs.DistributedDiscreteGaussian(6.0, 10, 3.0),
    hs.Skellam(30.0, 2.0, 1),
    hs.PoissonSampled(hs.Skellam(30.0, 2.0, 1), 0.1),
]


class Library:
    """The C library: makes mechanisms, and composes them."""

    def __init__(self):
        """Load it."""
        self.loaded = compiled.library()

    def make(self, name, *arguments):
        """Return a new handle from arguments of Python's types."""
        inner = []  # handles, which the new one copies

        def converted(value):
            if isinstance(value, mechanisms.Mechanism):
                inner.append(self.mechanism(value))
                return inner[-1]
            if isinstance(value, (list, tuple)) and value and isinstance(value[0], mechanisms.Mechanism):
                return (ctypes.c_void_p * len(value))(*[converted(part) for part in value])
            return value

        handle = ctypes.c_void_p()
        try:
            compiled.call(self.loaded, f"mechanism_{name}", *map(converted, arguments), ctypes.byref(handle))
        finally:
            for one in inner:
                self.loaded.hs_mechanism_free(one)
        return handle

    def mechanism(self, mechanism):
        """Return the handle of what a mechanism of Python is."""
        return self.make(*CONSTRUCTORS[type(mechanism)](mechanism))

    def brackets(self, steps, adjacency, eps, delta):
        """Return (delta, epsilon) of a ledger."""
        accountant = Accountant(self.loaded, adjacency)
        for mechanism, count in steps:
            handle = self.mechanism(mechanism)
            try:
                accountant.compose("compose", handle, count)
            finally:
                self.loaded.hs_mechanism_free(handle)
        return accountant.ask("delta", eps) + accountant.ask("epsilon", delta)


@pytest.fixture(scope="module")
def maker():
    """Return what makes mechanisms of the library."""
    return Library()


def by_python(steps, adjacency, eps, delta):
    """Return (delta, epsilon) of a ledger."""
    accountant = composed(*steps, adjacency=adjacency)
    both = accountant.delta_bracket(eps), accountant.epsilon_bracket(delta)
    return [(bracket.lower, bracket.upper) for bracket in both]


def composable(mechanism, adjacency):
    """Say whether Python composes the mechanism under an adjacency."""
    try:
        hs.Accountant(adjacency).compose(mechanism)
    except ValueError:
        return False
    return True


def test_every_mechanism_has_an_example():
    """Every mechanism of the public list that has a pair has a constructor and an example here, but those of a profile; so has each constructor."""
    classes = {getattr(mechanisms, name) for name in mechanisms.__all__} - {mechanisms.Mechanism, mechanisms.Dominating}
    without = {hs.PrivateSelection, hs.RenyiDP, hs.ZeroConcentratedDP}  # of these, only Renyi divergences are known
    paired = {kind for kind in classes - without if not issubclass(kind, ProfiledMechanism)}
    assert paired - set(CONSTRUCTORS) == set()
    assert {type(example) for example in EXAMPLES + ALONE} == set(CONSTRUCTORS)
    made = [name.partition("hs_mechanism_")[2] for name in compiled.prototypes()]
    constructors = {name for name in made if name} - {"free"}
    assert {CONSTRUCTORS[type(example)](example)[0] for example in EXAMPLES + ALONE} == constructors


@pytest.mark.share(9, by_day=3)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mechanism", EXAMPLES + ALONE, ids=repr)
def test_same_bits(maker, mechanism, adjacency):
    """A mechanism gives the bits of Python's, alone and beside Gaussian noise, or is refused as Python refuses it."""
    ledger = [(mechanism, 3), (hs.Gaussian(7.0), 2)]
    if not composable(mechanism, adjacency):
        with pytest.raises(ValueError, match="is not supported under HS_"):
            maker.brackets(ledger, adjacency, 0.5, 1e-5)
        return
    for steps in (ledger[:1], ledger):
        assert maker.brackets(steps, adjacency, 0.5, 1e-5) == by_python(steps, adjacency, 0.5, 1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:delta is at least")
def test_ledger_of_many(maker):
    """All mechanisms of an adjacency in one ledger give the same bits; what they reveal together leaves a finite epsilon to a huge delta only."""
    for adjacency in ADJACENCIES[: effort.at_night(2, by_day=1)]:
        steps = [(mechanism, k + 1) for k, mechanism in enumerate(EXAMPLES) if composable(mechanism, adjacency)]
        assert len(steps) > 10
        for delta in (1e-4, 1 - 1e-10)[effort.at_night(0, by_day=1) :]:
            found = maker.brackets(steps, adjacency, 50.0, delta)
            assert found == by_python(steps, adjacency, 50.0, delta)
        assert 0.0 < found[1][1] < math.inf


NAMES = {"hs": hs, "math": math, "ctypes": ctypes, "GAUSSIAN": GAUSSIAN}
REFUSED_MECHANISMS = r"""
make("gaussian", 5e-309) -> noise_multiplier must be above 2\^-1024
make("discrete_gaussian", 1e6, 1.0) -> noise_std must lie in \[0\.001, 100000\], not 1e\+06
make("discrete_gaussian", 1.0, 0.5) -> sensitivity must be an integer in \[1, 1000000000\], not 0\.5
make("discrete_laplace", 1.0, 1e5) -> sensitivity must be an integer in \[1, 10000\], not 1e\+05
make("discrete_laplace", 100.25, 4.0) -> inverse_scale times sensitivity must be at most 300, not 401
make("discrete_gaussian_vector", 1.0, 0.5, 2.0) -> sensitivity must lie in \[1, 1000000000\], not 0\.5
make("skellam", 0.0, 1.0, 1.0) -> noise_variance must lie in \[1e-6, 1e12\], not 0
make("randomized_response", 0.5, 1.0) -> num_buckets must be an integer of at least 2, not 1
make("discrete", [0.5, 0.6], [0.5, 0.5], 2) -> p must sum to 1 within 1e-12, not 1\.1
make("discrete", [0.5, 0.5], [math.nan, 0.5], 2) -> q must hold probabilities, not nan
make("privacy_profile", [0.1, 0.2], [0.3, 0.2], None, 2) -> epsilons must increase from 0 to at most 600, not 0\.1
make("privacy_profile", [0.0, math.nan], [0.3, 0.2], None, 2) -> increase from 0 to at most 600, not nan
make("privacy_profile", [0.0, 1.0], [0.3, math.nan], None, 2) -> remove\[1\] must lie in \[0, 1\], not nan
make("privacy_profile", [0.0, 1.0], [0.5, 0.25], [0.5, 0.75], 2) -> add must not rise with epsilon, not by 0\.25 from epsilon 0 to 1
make("privacy_profile", [0.0, 1.0], [0.3, 0.1], [0.2, 0.1], 2) -> add must begin with the total variation distance, as remove \(0\.3\), not with 0\.2
make("privacy_profile", [], [], None, 0) -> epsilons must not be empty
make("gaussian_mixture", 1.0, [0.0, 1e-10], [0.5, 0.5], 2) -> sensitivities must be 0 or in \[1e-9, 1e4\] noise mul
make("gaussian_mixture", 1.0, [0.0, 1.0], [0.5, 0.6], 2) -> probabilities must sum to 1 within 1e-12, not 1\.1
make("gaussian_mixture", 1.0, [], [], 0) -> sensitivities and probabilities must have the same length, not 0
make("random_allocation", 0.1, 10.0, 1.0) -> noise_multiplier of a random allocation must lie in \[0\.25, 1000\]
make("random_allocation", 1.0, 10.0, 11.0) -> num_selected must be an integer in \[1, steps\], not 11
make("shuffled", 21.0, 10.0, 0) -> epsilon0 must lie in \(0, 20\], not 21
make("shuffled", 1.0, 10.0, 2) -> randomizer must be HS_ANY_RANDOMIZER or HS_RANDOMIZED_RESPONSE
make("composed", [GAUSSIAN], [0.5], 1) -> counts must be an integer in \[0, 2\^53\], not 0\.5
make("poisson_sampled", hs.FixedSizeSampled(GAUSSIAN, 10, 2, replacement=False), 0.1) -> mechanism must not need a fixed number of records
make("fixed_size_sampled", GAUSSIAN, 10.0, 11.0, 0) -> batch_size must be at most num_records
make("fixed_size_sampled", GAUSSIAN, 10.0, 2.0, 2) -> replacement must be 0 or 1, not 2
make("fixed_size_sampled", hs.Shuffled(1.0, 20), 100.0, 10.0, 0) -> batch_size must be at least the num_users
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED_MECHANISMS))
def test_refused_parameters(maker, call, reason):
    """A parameter outside its domain is refused at construction, by name, with its value."""
    refused_calls.check(call, reason, NAMES | {"make": maker.make})


def test_null(maker):
    """NULL is refused by name where a function needs something, and freed as nothing."""
    assert maker.loaded.hs_mechanism_free(None) is None
    handle, accountant = maker.mechanism(GAUSSIAN), compiled.Accountant(maker.loaded)
    out = ctypes.byref(handle)
    for message, name, *arguments in (
        ("out must not be NULL", "mechanism_gaussian", 1.0, None),
        ("accountant must not be NULL", "accountant_compose", None, handle, 1.0),
        ("mechanism must not be NULL", "accountant_compose", accountant.pointer, None, 1.0),
        ("mechanism must not be NULL", "mechanism_poisson_sampled", None, 1.0, out),
        ("mechanism must not be NULL", "mechanism_fixed_size_sampled", None, 1.0, 1.0, 0, out),
        ("p must not be NULL", "mechanism_discrete", None, None, 2, out),
        ("remove must not be NULL", "mechanism_privacy_profile", [0.0, 1.0], None, None, 2, out),
        ("sensitivities must not", "mechanism_gaussian_mixture", 1.0, None, None, 2, out),
        ("mechanisms must not be NULL", "mechanism_composed", None, [1.0, 1.0], 2, out),
    ):
        before = handle.value
        with pytest.raises(ValueError, match=message):
            compiled.call(maker.loaded, name, *arguments)
        assert handle.value == before
    maker.loaded.hs_mechanism_free(handle)


def test_refused_composition_leaves_the_ledger(maker):
    """What is refused is not composed, at either end."""
    accountant = compiled.Accountant(maker.loaded)
    response = maker.mechanism(hs.RandomizedResponse(0.5, 3))
    with pytest.raises(ValueError, match=r"randomized_response is not supported under HS_ADD_OR_REMOVE: a response"):
        accountant.compose("compose", response, 1.0)
    many = maker.mechanism(hs.Composed([(GAUSSIAN, 2**50)]))
    with pytest.raises(ValueError, match=r"count in all must be an integer in \[0, 2\^53\]"):
        accountant.compose("compose", many, 2.0**10)
    assert accountant.ask("epsilon", 1e-5) == [(0.0, 0.0)]
    for handle in (response, many):
        maker.loaded.hs_mechanism_free(handle)
