"""Normal numbers of the simulator, against NumPy's words, mpmath and the formula of Box and Muller."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

numba = pytest.importorskip("numba")

from hockeystick.simulate.kernels import streams


def drawn(size: int, seed: int = 7, scale: float = 1.0) -> np.ndarray:
    """Return the first numbers of a stream."""
    words, out = np.zeros(streams.STATE_WORDS, np.uint64), np.zeros(size)
    streams.start(words, np.uint64(seed), streams.NOISE, 1, 2, 3, 4)
    streams.add_normals(words, scale, out)
    return out


def units(size: int, seed: int = 7) -> np.ndarray:
    """Return the same stream's uniform numbers, from NumPy's Philox."""
    counter = (1 << 192) + (2 << 128) + (((3 << 32) | 4) << 64) - 1
    words = np.random.Philox(key=seed + (streams.NOISE << 64), counter=counter).random_raw(size)
    return ((words >> np.uint64(11)).astype(float) + 1.0) * 2.0**-53


def test_numbers_are_those_of_box_and_muller():
    """Each pair of numbers is the transform of a pair of uniform ones, in 40 digits, to 1e-15."""
    found, uniform = drawn(1000), units(1000)
    with mpmath.workdps(40):
        for i in range(0, 1000, 2):
            radius, angle = mpmath.sqrt(-2 * mpmath.log(uniform[i])), 2 * mpmath.pi * mpmath.mpf(uniform[i + 1])
            assert abs(found[i] - radius * mpmath.cos(angle)) <= 1e-15 * radius
            assert abs(found[i + 1] - radius * mpmath.sin(angle)) <= 1e-15 * radius


@numba.njit
def transformed(radii, angles):
    """Turn pairs in place."""
    streams._transform(radii, angles, radii.size)


@pytest.mark.parametrize("eighths", range(1, 9))
def test_quarter_turns(eighths):
    """Beside multiples of an eighth of a turn, where the polynomials change, and at them; cosines of 1/4 and 3/4 are 0 exactly."""
    near = [eighths / 8 + step for step in (-(2.0**-50), -(2.0**-53), 0.0, 2.0**-53, 2.0**-50)]
    angles = np.array([angle for angle in near if angle <= 1.0])
    cosines, sines = np.full(angles.size, math.exp(-0.5)), angles.copy()
    transformed(cosines, sines)
    with mpmath.workdps(40):
        for angle, cosine, sine in zip(angles, cosines, sines, strict=True):
            assert abs(cosine - mpmath.cos(2 * mpmath.pi * mpmath.mpf(angle))) <= 1e-15
            assert abs(sine - mpmath.sin(2 * mpmath.pi * mpmath.mpf(angle))) <= 1e-15
    if eighths in (2, 6):
        assert cosines[near.index(eighths / 8)] == 0.0


def test_ends_of_the_uniform_numbers():
    """The least uniform number gives the largest radius, sqrt(2 log 2^53), and 1 gives 0."""
    cosines, sines = np.array([2.0**-53, 1.0]), np.array([1.0, 0.3])
    transformed(cosines, sines)
    assert cosines[0] == pytest.approx(math.sqrt(2 * 53 * math.log(2.0)), rel=1e-15)
    assert cosines[1] == sines[1] == 0.0


@numba.njit
def logarithms(x, out):
    """Write log x."""
    for i in range(x.size):
        out[i] = streams.logarithm(x[i])


def test_logarithm():
    """Within 2 units in the last place, for powers of two, their neighbours, numbers beside sqrt(1/2) and at random."""
    rng = np.random.default_rng(1)
    powers = 2.0 ** np.arange(-53.0, 1.0)
    x = np.concatenate([powers, np.nextafter(powers, 0), np.nextafter(powers, 2), np.nextafter(math.sqrt(0.5), [0, 1])])
    x = np.concatenate([x, rng.random(2000), 2.0 ** rng.uniform(-53, 0, 2000), 1 - 2.0 ** rng.uniform(-53, -1, 2000)])
    found = np.empty(x.size)
    logarithms(x, found)
    with mpmath.workdps(40):
        for number, ours in zip(x, found, strict=True):
            truth = mpmath.log(mpmath.mpf(number))
            assert abs(ours - truth) <= 2 * np.spacing(abs(float(truth)))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 15, 16, 17, 63, 64, 65, 100, 127, 129])
def test_a_prefix_is_a_prefix(size):
    """The first numbers do not depend on how many are drawn, whether vectors or single numbers made them."""
    assert np.array_equal(drawn(size), drawn(200)[:size])
