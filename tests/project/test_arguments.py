"""Arguments: what a docstring says of a number is what is checked, in every room; and docstrings have their sections."""

import enum
import inspect
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import hockeystick as hs
import refused_calls
from compositions import MIXED
from hockeystick._checks import Checks
from hockeystick._checks.arguments import SINGLE, table
from hockeystick.interop import pfl
from hockeystick.sweep.functions import REGISTERED, TRAININGS, lookup

ROOT = Path(__file__).parents[2]


def is_class(call):
    """Say whether a call makes an object of ours."""
    return inspect.isclass(call) and not issubclass(call, Exception)


CHECKED = [one for room in refused_calls.ROOMS for one in refused_calls.arguments(room)]
CHECKED += refused_calls.arguments(hs.simulate)
CHECKED += [one for room in (hs.budgets, hs.simulate, pfl) for one in refused_calls.arguments(room, is_class)]


@pytest.mark.parametrize(("room", "function", "argument"), CHECKED)
def test_every_number_is_checked(room, function, argument):
    """Text, NaN, and what is outside of the domain that the docstring states: refused with the argument's name."""
    refused_calls.check_argument(room, function, argument)


def public_calls():
    """Yield room and call of all public functions, classes and methods."""
    for room in (hs, *filter(inspect.ismodule, (getattr(hs, name) for name in {*dir(hs), *hs._ROOMS}))):
        for name in getattr(room, "__all__", ()):
            found = getattr(room, name)
            members = vars(found).items() if inspect.isclass(found) else ()
            for call in (found, *(getattr(found, member) for member, _ in members if not member.startswith("_"))):
                if inspect.isroutine(call) or (inspect.isclass(call) and not issubclass(call, Exception)):
                    yield room, call


def public():
    """Yield name and signature of all public functions, classes and methods."""
    for room, call in public_calls():
        yield f"{room.__name__}.{call.__qualname__}", inspect.signature(call)


def test_every_call_says_what_it_has_not():
    """An argument that a function, class or method has not is refused with its name, and another program's word is answered, in every room."""
    calls = [call for _, call in public_calls() if not takes_any(call) and not is_made_for_users(call)]
    assert len(calls) > 400
    for call in calls:
        with pytest.raises(TypeError, match=r"^[\w.]+\(\) has no argument 'nothing'"):
            call(nothing=1)


def is_made_for_users(call):
    """Say whether a call is a class that users do not call: a result, or the base of mechanisms."""
    return inspect.isclass(call) and (issubclass(call, tuple) or call is hs.mechanisms.Mechanism)


def takes_any(call):
    """Say whether a call takes arguments of any name."""
    return any(one.kind is one.VAR_KEYWORD for one in inspect.signature(call).parameters.values())


# docs/project/stability.md has the words that took their places.
GONE = {"eps", "dataset_size", "sigma", "num_steps", "num_rounds"}
GONE |= {"parameter", "noise_parameter", "threshold_noise", "query_noise"}
WHO = {"clients", "records", "silos", "users"}  # which ones, never how many


def test_a_quantity_has_one_name():
    """No public call takes a word that another has replaced; a word for those who take part is never a number of them."""
    calls = dict(public())
    assert len(calls) > 500
    for name, signature in calls.items():
        assert not GONE & signature.parameters.keys(), name
        for word in WHO & signature.parameters.keys():
            kind = str(signature.parameters[word].annotation).removesuffix(" | None")
            assert kind not in {"int", "float", "ArrayLike", str(int), str(float)}, name


def test_what_is_asked_stands_first_or_last():
    """Functions of few settings take epsilon or delta last, those of many by position and the settings by keyword."""
    for name, signature in public():
        call = name.removesuffix("_bracket")
        asked = "epsilon" if call.endswith("_delta") else "delta" if call.endswith("_epsilon") else None
        if asked in signature.parameters:
            places = [one for one in signature.parameters.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
            assert asked in {places[0].name, places[-1].name}, name
            assert len(places) <= 4, name


def words_of_stability():
    """Return the names of the table of words that the page on stability has."""
    page = (ROOT / "docs" / "project" / "stability.md").read_text(encoding="utf-8")
    return set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", page.partition("## Words")[2], re.MULTILINE)))
    )


def test_the_table_is_of_arguments():
    """Every row is an argument of some function or a setting of trainings, with a domain that arrays or numbers have a check for."""
    taken = {word for _, signature in public() for word in signature.parameters}
    taken |= {word for name in [*REGISTERED, *TRAININGS] for word in lookup(name).parameters}
    checks = {*vars(Checks), *SINGLE, ""}
    assert {name for name in table() if name not in taken} == set()
    assert {row.domain for row in table().values()} <= checks
    assert {row.like for row in table().values() if row.like} <= table().keys()


def test_a_word_has_one_meaning():
    """No word stands for two notions, and the words of the page on stability are arguments."""
    words = [word for row in table().values() for word in row.words.split()]
    assert len(words) == len(set(words))
    taken = {word for _, signature in public() for word in signature.parameters}
    assert words_of_stability() <= taken


# Each name in __all__ can be had, or this fails.
PUBLIC = sorted(
    {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in refused_calls.public_modules()
        for name in module.__all__
        if isinstance(getattr(module, name), np.ufunc) or inspect.isfunction(getattr(module, name))
    }.items()
)


def missing(function):
    """Return the sections that a docstring lacks, its examples among them, and the parameters that it does not document."""
    text = function.__doc__
    if isinstance(function, np.ufunc):
        return [section for section in ("Parameters\n", "Returns\n", ">>> ") if section not in text]
    parameters = inspect.signature(function).parameters
    sections = ("Returns\n", "Raises\n", ">>> ") if parameters else ("Returns\n", ">>> ")
    lacking = [section for section in sections if section not in text]
    if "which are those" in " ".join(text.split()):  # refers to the function that it wraps
        return lacking
    return lacking + [p for p in parameters if not re.search(rf"^\s*(\w+, )*{p}(, \w+)* :", text, re.MULTILINE)]


def test_sections_are_there():
    """Every docstring has its sections, and those with parameters document each of them."""
    assert {name: lacking for name, function in PUBLIC if (lacking := missing(function))} == {}


# Messages: what is refused is named in at most 500 characters, and ledgers are shown in at most 2,000, however large the arguments are.


LONGEST, LONGEST_REPR = 500, 2000
MANY = np.linspace(0.0, 30.0, 3001)


class Shown:
    """An object of no use, with a long repr."""

    def __repr__(self):
        """Return much."""
        return "shown " * 20_000


class Gradients(Shown):
    """What NumPy cannot read, as a tensor of torch that has gradients."""

    requires_grad = True

    def __array__(self, *arguments, **options):
        """Refuse, as torch does."""
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")


def large_accountant():
    """Return an accountant of many mechanisms."""
    accountant = hs.Accountant()
    for noise in range(1, 3000):
        accountant.compose(hs.Gaussian(float(noise)))
    return accountant


PROFILE = hs.PrivacyProfile(MANY.tolist(), (0.5 * np.exp(-MANY)).tolist())
HUGE = {
    "integer": 10**5000,
    "negative integer": -(10**5000),
    "integers": [10**5000] * 3,
    "text": "x" * 100_000,
    "texts": ["x" * 1000] * 1000,
    "mapping": dict.fromkeys(range(10_000), "x"),
    "bytes": b"x" * 100_000,
    "array": np.full((60, 60), np.nan),
    "object": Shown(),
    "gradients": Gradients(),
    "mechanism": PROFILE,
    "accountant": large_accountant(),
    "class": SimpleNamespace(name="x" * 100_000, history=[Shown()], mechanism=Shown),
}
# Public functions and classes of the rooms that compute.
CALLED = {
    f"{room.__name__}.{name}": call
    for room in refused_calls.ROOMS
    for name in room.__all__
    if callable(call := getattr(room, name))
    if not (isinstance(call, type) and issubclass(call, (BaseException, enum.Enum)))
}


def calls(call):
    """Return arguments by name, as all may be given: each huge value in every place, and in one place after the other where the others are plain."""
    if isinstance(call, np.ufunc):
        return []
    parameters = [
        p for p in inspect.signature(call).parameters.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    assert all(p.kind is not p.POSITIONAL_ONLY for p in parameters)  # or each call would be refused for that alone
    needed = [p.name for p in parameters if p.default is p.empty]
    found = [dict.fromkeys(needed, value) for value in HUGE.values()]
    return found + [dict.fromkeys(needed, 0.5) | {p.name: value} for p in parameters for value in HUGE.values()]


def check_refusal(call, *values, **named):
    """Call, and check what an error says if there is one."""
    try:
        call(*values, **named)
    except Exception as error:  # noqa: BLE001 - of what kind, is checked
        check_message(error)


def check_message(error):
    """Check what an error says."""
    assert isinstance(error, (TypeError, ValueError, RuntimeError, AttributeError, MemoryError, OverflowError)), error
    text = str(error)
    assert len(text) <= LONGEST, f"{len(text)} characters: {text[:300]}"
    assert "Exceeds the limit" not in text
    assert "Can't call numpy" not in text


@pytest.mark.share(6, by_day=3)
@pytest.mark.parametrize("name", CALLED)
@pytest.mark.filterwarnings("ignore")
def test_refusals_are_short(name):
    """Whatever is given for an argument of whatever function, what is said about it can be read."""
    for named in calls(CALLED[name]):
        check_refusal(CALLED[name], **named)


FILTERS = [
    hs.GaussianFilter(1.0),
    hs.RenyiFilter(1.0, order=2),
    hs.ZeroConcentratedFilter(1.0),
    hs.RenyiOdometer(delta=0.1),
]


@pytest.mark.parametrize(
    "one",
    [*FILTERS, hs.Accountant(), HUGE["accountant"], hs.PlannedFilter(HUGE["accountant"])],
    ids=lambda one: type(one).__name__,
)
def test_refusals_of_methods_are_short(one):
    """So is what each method of a ledger says, and what a whole ledger shows of itself."""
    assert len(repr(one)) <= LONGEST_REPR
    methods = [getattr(one, name) for name in dir(one) if not name.startswith("_")]
    for method in filter(callable, methods):
        for value in HUGE.values():
            check_refusal(method, value)


def test_refusals_of_clients_are_short():
    """So is what ledgers of clients say, of ids too."""
    with hs.ClientLedgers(":memory:", epsilon=1.0, delta=1e-6) as ledgers:
        ledgers.enrol(["a", "é" * 1000])
        for value in HUGE.values():
            for call in (
                ledgers.enrol,
                ledgers.account,
                lambda v: ledgers.charge(1, PROFILE, clients=v),
                lambda v: ledgers.charge(v, PROFILE),
            ):
                check_refusal(call, value)
        with pytest.raises(hs.BudgetExceededError) as error:
            ledgers.charge(1, PROFILE, 1000)
        check_message(error.value)


@pytest.mark.parametrize(
    "mechanism",
    [*MIXED, PROFILE, hs.Discrete(tuple(np.full(500, 0.002)), tuple(np.full(500, 0.002)))],
    ids=lambda m: type(m).__name__,
)
def test_mechanisms_are_shown_whole(mechanism):
    """A repr of a mechanism makes it again, at whatever length; in a ledger's it may be cut."""
    assert eval(repr(mechanism), vars(hs.mechanisms) | {"inf": np.inf}) == mechanism
    accountant = hs.Accountant().compose(mechanism, 3)
    assert repr(accountant).startswith(f"<Accountant: 3 x {type(mechanism).__name__}(")
    assert len(repr(accountant)) <= LONGEST_REPR


def test_a_ledger_says_how_much_it_leaves_out():
    """The repr of a large ledger has its first mechanisms, and the number of the others."""
    text = repr(large_accountant())
    told = text.count("Gaussian(")
    assert text.startswith("<Accountant: 1 x Gaussian(noise_multiplier=1.0), 1 x Gaussian(noise_multiplier=2.0), ")
    assert f"and {2999 - told} more mechanisms; add_or_remove, engine 'auto'>" in text


MASKED = np.ma.masked_array([1.0, 2.0], mask=[False, True])
NO_NUMBERS = {
    "masked array": MASKED,
    "masked array in a list": [MASKED],
    "masked array deeper": [[1.0, 2.0], (MASKED,)],
    "masked number in a list": [1.0, np.ma.masked],
    "bytearray": bytearray(b"ab"),
    "bytearray in a list": [bytearray(b"ab")],
    "view of bytes": memoryview(b"ab"),
    "gradients": Gradients(),
}


@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_what_is_no_number_is_refused(value):
    """NumPy would unmask masked arrays in lists silently, and count bytes; what it cannot read is named as ours names it."""
    for call in (hs.gdp_delta, lambda mu, eps: hs.Accountant().compose(hs.Gaussian(1.0)).epsilon(mu)):  # noqa: ARG005
        with pytest.raises(
            TypeError, match=r"(mu|delta) must be a real number or an array of real numbers, not"
        ) as error:
            call(value, 1.0)
        assert ("detach" in str(error.value)) == (type(value) is Gradients)


@pytest.mark.parametrize(
    "value", [[1.0, 2], (np.float32(1), np.int16(2)), [[1.0], [2]], memoryview(np.array([1.0, 2.0]))]
)
def test_what_are_numbers_are_read(value):
    """Lists of numbers of whatever types, and views of doubles, are still numbers."""
    assert np.all(hs.gdp_delta(value, 1.0).ravel() == hs.gdp_delta([1.0, 2.0], 1.0))


COUNTS = [
    2**53 + 1,
    2**53 + 3,
    2**60 + 1,
    2**63 - 1,
    np.int64(2**53 + 1),
    np.uint64(2**64 - 1),
    np.array([1, 2**53 + 1]),
    [5, 2**53 + 1],
]


@pytest.mark.parametrize("steps", COUNTS, ids=str)
def test_counts_that_no_double_holds(steps):
    """The integer after 2^53 is not taken for it."""
    with pytest.raises(ValueError, match=r"steps(\[1\])? must be an integer in \[0, 9007199254740992\]"):
        hs.dpsgd_delta(1.0, 0.01, steps, 1.0)
    assert np.isnan(np.atleast_1d(hs.dpsgd_delta(1.0, 0.01, steps, 1.0, on_error="nan"))[-1])


@pytest.mark.parametrize("sampling_rate", [5e-324, np.float64(5e-324), 1e-310])
def test_the_smallest_rates_give_no_warning_of_numpy(sampling_rate):
    """At rates whose reciprocal is infinite, only our own doubt is said."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", hs.ImplausibleSettingWarning)
        assert hs.dpsgd_epsilon(1.0, sampling_rate, 10, 1e-5) == 0.0
        assert hs.dpsgd_delta(1.0, sampling_rate, 10, 1.0) >= 0.0
