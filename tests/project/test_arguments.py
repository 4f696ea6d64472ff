"""Arguments: what a docstring says of a number is what is checked, in every room."""

from __future__ import annotations

import inspect

import pytest

import hockeystick as hs
import refused_calls

ROOMS = [hs, *filter(inspect.ismodule, (getattr(hs, name) for name in hs.__all__))]


@pytest.mark.parametrize(
    ("room", "function", "argument"), [one for room in ROOMS for one in refused_calls.arguments(room)]
)
def test_every_number_is_checked(room, function, argument):
    """Text, NaN, and what is outside of the domain that the docstring states: refused with the argument's name."""
    refused_calls.check_argument(room, function, argument)
