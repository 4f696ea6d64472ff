"""Fit the polynomial coefficients of the kernels and write ``cpp/include/hockeystick/numeric/coefficients.hpp``.

    python tests/reference/generate_coefficients.py          # rewrite the header
    python tests/reference/generate_coefficients.py --check  # exit 1 if the header differs

Every polynomial interpolates its function at Chebyshev nodes with 50 digits, which costs at most a
factor of about two against the minimax polynomial, and is rounded to double once at the end.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import mpmath as mp

import high_precision as exact

HEADER = Path(__file__).parents[2] / "cpp" / "include" / "hockeystick" / "numeric" / "coefficients.hpp"

# Mills ratio: m(x) = u R(t), u = 1/(x + SHIFT), t = 1 - 2u/U_MAX, for x >= -REACH.
SHIFT = 5
REACH = mp.mpf("0.25")

# Q^{-1}: one rational function where |p - 1/2| <= CENTRE, another in the tails.
CENTRE = mp.mpf("0.425")


def chebyshev_interpolant(function: Callable, degree: int, lower=-1, upper=1) -> list:
    """Return monomial coefficients, lowest first, of the interpolant on [lower, upper]."""
    n = degree + 1
    middle, half = (mp.mpf(upper) + lower) / 2, (mp.mpf(upper) - lower) / 2
    angles = [(2 * j + 1) * mp.pi / (2 * n) for j in range(n)]
    values = [function(x) for x in chebyshev_nodes(n, lower, upper)]
    chebyshev = [
        2 / mp.mpf(n) * mp.fsum(v * mp.cos(k * a) for v, a in zip(values, angles, strict=True)) for k in range(n)
    ]
    chebyshev[0] /= 2
    return monomials(chebyshev, middle, half)


def monomials(chebyshev: list, middle, half) -> list:
    """Rewrite sum c_k T_k((x - middle)/half) in powers of x, by Clenshaw's recurrence on polynomials."""
    n = len(chebyshev)
    later, latest = [mp.mpf(0)] * n, [mp.mpf(0)] * n

    def times_argument(p: list) -> list:
        shifted = [mp.mpf(0), *p[:-1]]
        return [(s - middle * c) / half for s, c in zip(shifted, p, strict=True)]

    for c in reversed(chebyshev[1:]):
        product = times_argument(latest)
        later, latest = latest, [2 * p - q for p, q in zip(product, later, strict=True)]
        latest[0] += c
    product = times_argument(latest)
    result = [p - q for p, q in zip(product, later, strict=True)]
    result[0] += chebyshev[0]
    return result


def mills(x) -> mp.mpf:
    """Return Q(x)/phi(x)."""
    return mp.sqrt(mp.pi / 2) * mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2))


def mills_polynomial(degree: int = 23) -> list:
    """Fit R'(t), so that divided differences of R are as accurate as R, and integrate from R(1) = 1."""
    u_max = 1 / (SHIFT - REACH)

    def slope(t):
        u = (1 - t) / 2 * u_max
        if u < mp.mpf("1e-8"):  # R = 1 + SHIFT u + (SHIFT^2 - 1) u^2 + O(u^3) near x = infinity
            return -u_max / 2 * (SHIFT + 2 * (SHIFT**2 - 1) * u)
        with mp.workdps(120):
            x = 1 / u - SHIFT
            m = mills(x)
            dr_dx = (x * m - 1) * (x + SHIFT) + m
            return u_max / 2 * dr_dx / u**2

    derivative = chebyshev_interpolant(slope, degree - 1)
    integral = [mp.mpf(0), *(c / (k + 1) for k, c in enumerate(derivative))]
    integral[0] = 1 - mp.fsum(integral)
    return integral


def tail_centre(degree: int = 11) -> list:
    """Fit S in Q(x) = 1/2 - x S(x^2), |x| <= 1."""

    def quotient(z):
        x = mp.sqrt(z)
        return mp.erf(x / mp.sqrt(2)) / (2 * x) if x > mp.mpf("1e-20") else 1 / mp.sqrt(2 * mp.pi)

    return chebyshev_interpolant(quotient, degree, 0, 1)


def exp_polynomial(degree: int = 9) -> list:
    """Fit p in exp(x) = 1 + x + x^2 p(x), |x| <= log(2)/2."""

    def quotient(x):
        return mp.hyp1f1(1, 3, x) / 2

    edge = mp.log(2) / 2 * (1 + mp.mpf(2) ** -12)  # the tail of exp_sum may push the argument past log(2)/2
    return chebyshev_interpolant(quotient, degree, -edge, edge)


def log_polynomial(degree: int = 6) -> list:
    """Fit p in log(1 + f) = f - f^2/2 + s (f^2/2 + z p(z)), s = f/(2 + f), z = s^2, sqrt(1/2) <= 1 + f <= sqrt(2)."""

    def quotient(z):
        s = mp.sqrt(abs(z))
        if s < mp.mpf("1e-10"):
            return mp.mpf(2) / 3 + mp.mpf(2) / 5 * z
        return (2 * mp.atanh(s) / s - 2) / z

    edge = (3 - 2 * mp.sqrt(2)) ** 2 * (1 + mp.mpf(2) ** -20)
    return chebyshev_interpolant(quotient, degree, 0, edge)


def quantile(p) -> mp.mpf:
    """Return x with Q(x) = p: that of the reference, if mpmath's own tail, which shares nothing with it, agrees."""
    x = exact.q_inv(p)
    if abs(mp.erfc(x / mp.sqrt(2)) / 2 - p) > p * mp.mpf(10) ** -35:
        raise ArithmeticError(f"Q({mp.nstr(x, 40)}) is not {mp.nstr(p, 40)}")
    return x


def rational_interpolant(function: Callable, nodes: list, degree: int) -> tuple[list, list]:
    """Return numerator and denominator, lowest power first, of the rational function through the points at the nodes.

    The denominator has this degree and begins with 1; the numerator has as many coefficients as that leaves unknown.
    """
    size = len(nodes) - degree
    values = [function(x) for x in nodes]
    rows = [
        [*(x**k for k in range(size)), *(-v * x**k for k in range(1, degree + 1))]
        for x, v in zip(nodes, values, strict=True)
    ]
    solution = list(mp.lu_solve(mp.matrix(rows), mp.matrix(values)))
    return solution[:size], [mp.mpf(1), *solution[size:]]


def chebyshev_nodes(count: int, lower, upper) -> list:
    """Return the nodes on [lower, upper]."""
    middle, half = (mp.mpf(upper) + lower) / 2, (mp.mpf(upper) - lower) / 2
    return [middle + half * mp.cos((2 * j + 1) * mp.pi / (2 * count)) for j in range(count)]


def quantile_centre() -> tuple[list, list]:
    """Fit Q^{-1}(1/2 - y)/y, |y| <= CENTRE, in t = CENTRE^2 - y^2."""

    def quotient(t):
        y = mp.sqrt(CENTRE**2 - t)
        return quantile(mp.mpf(1) / 2 - y) / y

    return rational_interpolant(quotient, chebyshev_nodes(17, 0, CENTRE**2), 8)


def quantile_tail() -> tuple[list, list]:
    """Fit s - Q^{-1}(p), 2^-1075 <= p <= 1/2 - CENTRE, s = sqrt(-2 log p), in t = s - s_0, at Chebyshev nodes in 1/(s + 5)."""
    start = tail_start()
    last = mp.sqrt(2 * 1075 * mp.log(2)) * mp.mpf("1.001")
    nodes = [1 / w - 5 - start for w in chebyshev_nodes(21, 1 / (last + 5), 1 / (start * mp.mpf("0.999") + 5))]
    return rational_interpolant(lambda t: t + start - quantile(mp.exp(-((t + start) ** 2) / 2)), nodes, 10)


def tail_start() -> mp.mpf:
    """Return s where the tail begins, as a double."""
    return mp.mpf(float(mp.sqrt(-2 * mp.log(mp.mpf(1) / 2 - CENTRE))))


def array(name: str, meaning: str, coefficients: list) -> str:
    """Render one table."""
    lines = ",\n".join(f"    {float(c)!r}" for c in coefficients)
    return f"// {meaning}\ninline constexpr double {name}[] = {{\n{lines},\n}};\n"


def split_log2() -> tuple[float, float]:
    """Return log 2 as a sum whose first term has 32 bits, so that small multiples of it are exact."""
    high = mp.floor(mp.log(2) * 2**32) / mp.mpf(2) ** 32
    return float(high), float(mp.log(2) - high)


def header() -> str:
    """Return the text of numeric/coefficients.hpp."""
    mp.mp.dps = 50
    high, low = split_log2()
    scalars = {
        "mills_shift": (mp.mpf(SHIFT), "u = 1/(x + mills_shift)"),
        "mills_reach": (REACH, "the polynomial holds for x >= -mills_reach"),
        "quantile_centre": (CENTRE, "the centre of Q^{-1} is |p - 1/2| <= quantile_centre"),
        "quantile_tail_start": (tail_start(), "sqrt(-2 log(1/2 - quantile_centre))"),
        "mills_scale": (2 * (SHIFT - REACH), "t = 1 - mills_scale u"),
        "inv_sqrt_2pi": (1 / mp.sqrt(2 * mp.pi), "1/sqrt(2 pi)"),
        "half_log_2pi": (mp.log(2 * mp.pi) / 2, "log(2 pi)/2"),
        "log2_high": (mp.mpf(high), "the first 32 bits of log(2)"),
        "log2_low": (mp.mpf(low), "log(2) - log2_high"),
        "inv_log2": (1 / mp.log(2), "1/log(2)"),
        "sqrt_half": (mp.sqrt(mp.mpf(1) / 2), "sqrt(1/2)"),
    }
    constants = "\n".join(f"inline constexpr double {n} = {float(v)!r};  // {why}" for n, (v, why) in scalars.items())
    centre, tail = quantile_centre(), quantile_tail()
    centre_meaning = (
        "for |y| <= quantile_centre, in t = quantile_centre^2 - y^2: the numerator. All terms are positive."
    )
    tail_meaning = (
        "beyond it, s = sqrt(-2 log p), in t = s - quantile_tail_start: the numerator. All terms are positive."
    )
    tables = "\n".join(
        [
            array(
                "mills_coefficients",
                "R(t): m(x) = u R(t) for the Mills ratio m(x) = Q(x)/phi(x), lowest power first.",
                mills_polynomial(),
            ),
            array("tail_centre_coefficients", "S(z): Q(x) = 1/2 - x S(x^2), |x| <= 1.", tail_centre()),
            array("exp_coefficients", "p(x): exp(x) = 1 + x + x^2 p(x), |x| <= log(2)/2.", exp_polynomial()),
            array(
                "log_coefficients",
                "p(z): log(1 + f) = f - f^2/2 + s (f^2/2 + z p(z)), s = f/(2 + f), z = s^2.",
                log_polynomial(),
            ),
            array("quantile_centre_numerator", f"Q^{{-1}}(1/2 - y)/y {centre_meaning}", centre[0]),
            array("quantile_centre_denominator", "Its denominator.", centre[1]),
            array("quantile_tail_numerator", f"s - Q^{{-1}}(p) {tail_meaning}", tail[0]),
            array("quantile_tail_denominator", "Its denominator.", tail[1]),
        ]
    )
    return (
        "// Written by tests/reference/generate_coefficients.py; do not edit.\n// clang-format off\n"
        "#pragma once\n\n#include <hockeystick/version.hpp>\n\n"
        "namespace hockeystick::numeric {\ninline namespace HOCKEYSTICK_ISA {\n\n"
        f"{constants}\n\n{tables}\n"
        "}  // namespace HOCKEYSTICK_ISA\n}  // namespace hockeystick::numeric\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the header instead of writing it")
    text = header()
    if parser.parse_args().check:
        same = HEADER.read_text(encoding="utf-8") == text
        sys.exit(0 if same else f"{HEADER} differs from what this script computes")
    HEADER.write_text(text, encoding="utf-8")
