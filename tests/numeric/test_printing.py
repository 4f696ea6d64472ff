"""Bounds as text: what is printed, read as an exact decimal, is on the outer side of the number, and as near as its digits allow."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def read(text: str) -> Fraction:
    """Return the number that a text says, exactly."""
    return Fraction(Decimal(text.rstrip("%"))) / (100 if text.endswith("%") else 1)


@given(FINITE, st.integers(0, 40), st.sampled_from("efg%"))
def test_outward(value, precision, kind):
    """The upper text is at least the number, the lower at most, and they are one digit apart unless they are equal."""
    spec = f".{precision}{kind}"
    upper, lower = hs.format_upper(value, spec), hs.format_lower(value, spec)
    assert read(lower) <= Fraction(value) <= read(upper)
    assert (read(lower) == read(upper)) == (read(upper) == Fraction(value))
    if kind in "f%":
        assert read(upper) - read(lower) <= Fraction(1, 10 ** (precision + 2 * (kind == "%")))
    elif value:
        significant = precision + 1 if kind == "e" else max(precision, 1)
        unit = Fraction(10) ** (math.floor(Decimal(value).adjusted()) - significant + 1)
        assert read(upper) - read(lower) <= unit


@given(FINITE, st.integers(0, 16), st.sampled_from("efg"))
def test_notation_is_that_of_floats(value, precision, kind):
    """Python's own text of the number is one of the two, a zero apart from its sign; the notation is the same."""
    spec = f".{precision}{kind}"
    nearest = format(value, spec)
    texts = {hs.format_upper(value, spec), hs.format_lower(value, spec)}
    assert nearest in texts or (read(nearest) == 0 and nearest.lstrip("-") in texts)


@given(FINITE, st.integers(0, 10), st.sampled_from("efg"))
def test_mirrored(value, precision, kind):
    """Rounding a number up is rounding its negative down."""
    spec = f".{precision}{kind}"
    assert read(hs.format_upper(value, spec)) == -read(hs.format_lower(-value, spec))


@pytest.mark.parametrize(
    ("value", "spec", "upper", "lower"),
    [
        (6.84171901, ".4f", "6.8418", "6.8417"),
        (1.99996, ".4g", "2", "1.999"),  # trailing zeros go, as Python's do
        (999.96, ".4g", "1000", "999.9"),
        (9999.6, ".4g", "1e+04", "9999"),
        (1.2345e-7, ".3g", "1.24e-07", "1.23e-07"),
        (0.0, ".3g", "0", "0"),
        (-0.0, ".1f", "0.0", "0.0"),
        (-1e-9, ".2f", "0.00", "-0.01"),
        (2.5, "8.1f", "     2.5", "     2.5"),
        (5e-324, ".2e", "4.95e-324", "4.94e-324"),
        (3, ".0f", "3", "3"),
        (2**53 + 1, ".0f", "9007199254740993", "9007199254740993"),
        (np.float32(0.1), ".3f", "0.101", "0.100"),
        (math.inf, ".4f", "inf", "inf"),
        (-math.inf, ".4g", "-inf", "-inf"),
        (math.nan, ".4e", "nan", "nan"),
    ],
)
def test_values(value, spec, upper, lower):
    """Single values, by hand."""
    assert (hs.format_upper(value, spec), hs.format_lower(value, spec)) == (upper, lower)


REFUSED = [
    *((1.0, spec, "format_spec must be a width") for spec in ("", "d", ".4", "+.3f", ",.2f", ".3G", ".1000f", "<9.2f")),
    *((value, ".4g", "value must be a real number") for value in ("1.0", True, None, 1j, [1.0], np.longdouble(1.0))),
    (10**308, ".4g", "at most 308 digits"),  # everything below is exact
]


@pytest.mark.parametrize(("value", "spec", "message"), REFUSED)
def test_refused(value, spec, message):
    """A format that the function does not have, and a value that is no real number or has more bits than a double."""
    with pytest.raises((TypeError, ValueError), match=message):
        hs.format_upper(value, spec)
    assert read(hs.format_upper(10**308 - 1, ".0f")) == 10**308 - 1


def test_a_bracket_prints_its_upper_end_rounded_up():
    """The text is not below the certified lower end, nor below the upper one; without a format it is the whole bracket."""
    training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(0.8), 0.01), 5000)
    bracket = training.epsilon_bracket(1e-5)
    assert f"{bracket:.4f}" == "6.8418"  # the lower end is 6.84171901
    assert bracket.lower <= Fraction(bracket.upper) <= read(format(bracket, ".4f"))
    assert format(bracket) == str(bracket)
