"""The public docstrings: their form, and their examples, which are executed."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import correlated_noise, simulate

ADAPTERS = [
    importlib.import_module(f"hockeystick.interop.{name}")
    for name in ("dp_accounting", "events", "flower", "jax_privacy", "opacus", "pfl", "prv", "riskcal")
]
MODULES = (
    hs,
    hs.audit,
    correlated_noise,
    hs.distortion,
    hs.federated,
    hs.isrl,
    hs.last_iterate,
    hs.published,
    hs.risk,
    hs.selection,
    hs.utility,
    simulate,
    *ADAPTERS,
)
PUBLIC = sorted(
    {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in MODULES
        for name in module.__all__
        if isinstance(getattr(module, name), np.ufunc) or inspect.isfunction(getattr(module, name))
    }.items()
)
CLASSES = [
    (f"{module.__name__}.{name}", getattr(module, name))
    for module in (hs, simulate, hs.selection, *ADAPTERS)
    for name in module.__all__
    if inspect.isclass(getattr(module, name)) and "Examples\n" in (getattr(module, name).__doc__ or "")
]
CLASSES += [
    (f"hockeystick.{method.__qualname__}", method)
    for method in (
        *(hs.PrivacyProfile.from_function, hs.PrivacyProfile.from_densities, hs.RenyiDP.from_cumulant),
        *(hs.TradeOff.from_function, hs.TradeOff.from_points, hs.ZeroConcentratedFilter.of_epsilon),
    )
]


SLOW = (  # a second or more
    "dp_accounting.from_pld",
    "riskcal.find_noise_multiplier_for_err_rates",
    "simulate.AdaptiveClippingSGD",
    "simulate.Loss",
    "simulate.run",
    "utility.plan",
)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        pytest.param(name, function, id=name, marks=[pytest.mark.slow] if name.endswith(SLOW) else [])
        for name, function in [*PUBLIC, *CLASSES]
    ],
)
def test_examples_run(name, function):
    """Every public function has an example, and it prints what it says."""
    names = dict(vars(inspect.getmodule(function) or hs))
    test = doctest.DocTestParser().get_doctest(function.__doc__, names, name, None, 0)
    assert test.examples
    report: list[str] = []
    assert doctest.DocTestRunner().run(test, out=report.append).failed == 0, "".join(report)


def missing(function):
    """Return the sections that a docstring lacks, and the parameters that it does not document."""
    text = function.__doc__
    if isinstance(function, np.ufunc):
        return [section for section in ("Parameters", "Returns") if f"{section}\n" not in text]
    parameters = inspect.signature(function).parameters
    sections = ("Returns", "Raises") if parameters else ("Returns",)
    lacking = [section for section in sections if f"{section}\n" not in text]
    if "which are those" in " ".join(text.split()):  # refers to the function that it wraps
        return lacking
    return lacking + [p for p in parameters if not re.search(rf"^\s*(\w+, )*{p}(, \w+)* :", text, re.MULTILINE)]


def test_sections_are_there():
    """Every docstring has its sections, and those with parameters document each of them."""
    assert {name: lacking for name, function in PUBLIC if (lacking := missing(function))} == {}


def test_everything_listed_exists():
    """Each name in __all__ can be had."""
    assert [(module, name) for module in MODULES for name in module.__all__ if not hasattr(module, name)] == []
