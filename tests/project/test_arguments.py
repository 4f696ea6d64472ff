"""Arguments: what a docstring says of a number is what is checked, in every room; and docstrings have their sections."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
import refused_calls
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
