"""The public docstrings: their form; `test_printed_bounds` runs their examples."""

import inspect
import re

import numpy as np

import refused_calls

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
