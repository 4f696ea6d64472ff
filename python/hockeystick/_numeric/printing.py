"""Bounds as text: an upper bound is rounded up to the digits shown, a lower bound down."""

from __future__ import annotations

import decimal
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import numpy as np

from hockeystick._checks.shown import shown

__all__ = ["format_lower", "format_upper"]

SPECIFICATION = re.compile(r"(?P<width>[1-9]\d{0,2})?(?:\.(?P<precision>\d{1,3}))?(?P<kind>[efg%])")
EXACT = 2000  # digits: more than a double has in decimal (767), before and after the point, with 999 asked for


def format_upper(value: float, format_spec: str = ".6g") -> str:
    """Return a number as text that is not below it.

    An upper bound that is rounded to the nearest digits may be below itself, and below the truth. This one rounds up.

    Parameters
    ----------
    value : float
        The number: an epsilon, a delta, the least noise multiplier that a budget allows.
    format_spec : str
        Width, precision and kind of Python's format specifications: ".4f", ".3e", "13.4g", ".2%".

    Returns
    -------
    str
        The smallest decimal with so many digits that, read exactly, is at least `value`. "inf", "-inf" and "nan" stay.

    Raises
    ------
    ValueError
        If the format is none of these.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    The number is the double itself, all of its binary digits: 0.1 is a little more than one tenth, and has "0.11" at ".2f".

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.format_upper(6.841719014981, ".4f"), hs.format_lower(6.841719014976, ".4f")
    ('6.8418', '6.8417')
    """
    return _outward(value, format_spec, ROUND_CEILING)


def format_lower(value: float, format_spec: str = ".6g") -> str:
    """Return a number as text that is not above it.

    Parameters
    ----------
    value : float
        The number: the lower end of a bracket, the result of an audit, the most steps that a budget allows.
    format_spec : str
        Width, precision and kind, as in `format_upper`.

    Returns
    -------
    str
        The largest decimal with so many digits that, read exactly, is at most `value`. "inf", "-inf" and "nan" stay.

    Raises
    ------
    ValueError
        If the format is none of these.
    TypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.format_lower(1201.9, ".0f"), hs.format_lower(0.1999, ".2g")
    ('1201', '0.19')
    """
    return _outward(value, format_spec, ROUND_FLOOR)


def _outward(value: float, format_spec: str, rounding: str) -> str:
    exact = _decimal(value)
    if not isinstance(format_spec, str):
        raise TypeError(f"format_spec must be a string, not {shown(format_spec)}")
    found = SPECIFICATION.fullmatch(format_spec)
    if not found:
        raise ValueError(
            f"format_spec must be a width, a precision and one of e, f, g and %, such as '.4g', not {shown(format_spec)}"
        )
    precision = 6 if found["precision"] is None else int(found["precision"])
    text = _digits(exact, precision, found["kind"], rounding) if exact.is_finite() else str(float(value))
    return text.rjust(int(found["width"] or 0))


def _decimal(value: float) -> Decimal:
    """Return the number without any rounding."""
    good = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not good or (isinstance(value, np.floating) and value.itemsize > 8):
        raise TypeError(f"value must be a real number, an integer or at most a double, not {shown(value)}")
    if isinstance(value, int) and abs(value) >= 10**308:
        raise ValueError("value must have at most 308 digits if it is an integer")
    return Decimal(int(value)) if isinstance(value, (int, np.integer)) else Decimal(float(value))


def _digits(exact: Decimal, precision: int, kind: str, rounding: str) -> str:
    """Return a finite number in the notation that Python has for a float."""
    if kind == "f":
        return _fixed(exact, precision, rounding)
    if kind == "%":
        return _fixed(exact.scaleb(2, Context(prec=EXACT)), precision, rounding) + "%"
    significant = precision + 1 if kind == "e" else max(precision, 1)
    rounded = Context(prec=significant, rounding=rounding).plus(exact)
    exponent = 0 if rounded.is_zero() else rounded.adjusted()
    if kind == "e":
        return _scientific(rounded, exponent, significant - 1)
    if -4 <= exponent < significant:
        return _stripped(_fixed(rounded, significant - 1 - exponent, rounding))
    mantissa, _, power = _scientific(rounded, exponent, significant - 1).partition("e")
    return f"{_stripped(mantissa)}e{power}"


def _fixed(exact: Decimal, places: int, rounding: str) -> str:
    with decimal.localcontext(Context(prec=EXACT, rounding=rounding)):
        rounded = exact.quantize(Decimal(1).scaleb(-places))
    return f"{rounded.copy_abs() if rounded.is_zero() else rounded:f}"


def _scientific(rounded: Decimal, exponent: int, places: int) -> str:
    return f"{_fixed(rounded.scaleb(-exponent, Context(prec=EXACT)), places, ROUND_FLOOR)}e{exponent:+03d}"


def _stripped(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
