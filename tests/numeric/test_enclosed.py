"""Numbers between two doubles: a quotient's error, held against fractions."""

import math
import random
from fractions import Fraction

import pytest

import effort
from hockeystick import _core


def is_enclosed(x, y):
    """Whether the quotient of two sums of doubles is within its error of the exact one, and that error."""
    hi, lo, error = _core.enclosed_quotient(x, y)
    exact = sum(map(Fraction, x)) / sum(map(Fraction, y))
    return abs(exact - Fraction(hi) - Fraction(lo)) <= Fraction(error), error, float(abs(exact))


@pytest.mark.parametrize("lowest", [-30, -1000, -1074])
def test_quotient_encloses(lowest):
    """Sums of two doubles of all sizes, denormal ones too; the error is a few units of the 104th bit, or of 2^-1070."""
    rng = random.Random(lowest)
    for _ in range(effort.at_night(4000, by_day=1000)):
        size = rng.uniform(lowest, 800)  # of the divisor; the quotient stays below 2^200
        y = math.ldexp(rng.uniform(1, 2), int(size))
        x = math.ldexp(rng.uniform(-2, 2), int(rng.uniform(max(lowest, size - 300), min(size + 200, 1000))))
        tail = 2.0 ** -rng.randint(53, 56)
        for dividend, divisor in (((x,), (y,)), ((x, x * tail), (y,)), ((x, x * tail), (y, -y * tail)), ((x,), (-y,))):
            holds, error, exact = is_enclosed(dividend, divisor)
            assert holds, (dividend, divisor)
            assert error <= 2.0**-100 * exact + 2.0**-1066, (dividend, divisor)


def test_exact_quotients():
    """A quotient that is a double has no error, and 0 is exactly 0."""
    assert _core.enclosed_quotient([0.75], [3.0]) == (0.25, 0.0, 0.0)
    assert _core.enclosed_quotient([0.0], [0.1]) == (0.0, 0.0, 0.0)
    assert _core.enclosed_quotient([2.0**-1000], [2.0**-1074])[0] == 2.0**74


def test_division_by_nearly_nothing():
    """Where the divisor may be 0 the error is infinite."""
    assert _core.enclosed_quotient([1.0], [0.0])[2] == math.inf
