"""The kernels as NumPy ufuncs: element by element, whatever the types, strides and shapes."""

import math

import numpy as np
import pytest

import hockeystick as hs

inf, nan = np.inf, np.nan
DISTANCES = {"theta": hs.theta, "log_theta": hs.log_theta, "laplace_theta": hs.laplace_theta}


@pytest.fixture(params=["q", "log_q", "q_inv", *DISTANCES, "theta_inverse", "gaussian_epsilon"])
def ufunc(request: pytest.FixtureRequest) -> np.ufunc:
    """Each kernel in turn."""
    return getattr(hs, request.param)


def sample(ufunc: np.ufunc, shape: int | tuple[int, ...] = 5000) -> list[np.ndarray]:
    """Legal arguments for any kernel: all of them in (0, 1)."""
    rng = np.random.default_rng(5)
    return [rng.uniform(0.01, 0.99, shape) for _ in range(ufunc.nin)]


def test_is_a_ufunc(ufunc: np.ufunc) -> None:
    """Every kernel is a NumPy ufunc with one double loop, and is found by the same name."""
    assert isinstance(ufunc, np.ufunc)
    assert ufunc is getattr(hs.kernels, ufunc.__name__)
    assert ufunc.types == ["d" * ufunc.nin + "->d"]


def test_elementwise(ufunc: np.ufunc) -> None:
    """An array gives what its elements give one by one, at any length and offset within a vector register."""
    arguments = sample(ufunc, 1100)
    whole = ufunc(*arguments)
    assert whole.dtype == np.float64
    for i in range(0, 1100, 97):
        assert whole[i] == ufunc(*(a[i] for a in arguments))
    for length in (1, 2, 3, 7, 8, 9, 31, 1023, 1024, 1025):
        np.testing.assert_array_equal(ufunc(*(a[5 : 5 + length] for a in arguments)), whole[5 : 5 + length])


def test_scalars_and_empty(ufunc: np.ufunc) -> None:
    """Scalars and 0-d arrays give scalars, empty arrays give empty arrays."""
    arguments = (0.3, 0.7)[: ufunc.nin]
    assert isinstance(ufunc(*arguments), np.float64)
    assert isinstance(ufunc(*map(np.asarray, arguments)), np.float64)
    assert ufunc(*(np.empty((0, 3)) for _ in arguments)).shape == (0, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint64, np.bool_, np.longdouble])
def test_other_input_types(ufunc: np.ufunc, dtype: type) -> None:
    """Smaller types are computed in double; what does not cast safely is refused."""
    arguments = [np.array([0, 1], dtype=dtype) for _ in range(ufunc.nin)]
    if dtype is np.longdouble:
        with pytest.raises(TypeError, match=ufunc.__name__):
            ufunc(*arguments)
        return
    result = ufunc(*arguments)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, ufunc(*(a.astype(float) for a in arguments)))


def off_by_a_byte(shape: tuple[int, ...]) -> np.ndarray:
    """Return an array that begins one byte after where doubles do."""
    return np.empty(8 * math.prod(shape) + 1, np.uint8)[1:].view(np.float64).reshape(shape)


def test_strides(ufunc: np.ufunc) -> None:
    """Reversed, strided, transposed, repeated, byte-unaligned and byte-swapped arrays give the same values."""
    arguments = sample(ufunc, (60, 50))
    expected = ufunc(*arguments)
    np.testing.assert_array_equal(ufunc(*(a[::-1, ::-1] for a in arguments)), expected[::-1, ::-1])
    np.testing.assert_array_equal(ufunc(*(a[:, ::3] for a in arguments)), expected[:, ::3])
    np.testing.assert_array_equal(ufunc(*(a.T for a in arguments)), expected.T)
    one, *rest = arguments  # of stride 0 beside others
    np.testing.assert_array_equal(ufunc(one[:, :1], *rest)[:, 0], expected[:, 0])
    np.testing.assert_array_equal(ufunc(*(np.asfortranarray(a) for a in arguments)), expected)
    np.testing.assert_array_equal(ufunc(*(a.astype(">f8") for a in arguments)), expected)
    unaligned = [off_by_a_byte(a.shape) for a in arguments]
    for a, copy in zip(arguments, unaligned, strict=True):
        copy[...] = a
    assert not unaligned[0].flags.aligned
    np.testing.assert_array_equal(ufunc(*unaligned), expected)
    into = off_by_a_byte(expected.shape)
    ufunc(*arguments, out=into)
    np.testing.assert_array_equal(into, expected)
    spaced = np.zeros((60, 100))
    ufunc(*arguments, out=spaced[:, ::2])
    np.testing.assert_array_equal(spaced[:, ::2], expected)
    assert not spaced[:, 1::2].any()


def test_in_place(ufunc: np.ufunc) -> None:
    """Writing over an argument, in place or shifted by one, does not disturb the result."""
    arguments = sample(ufunc)
    expected = ufunc(*arguments)
    for k in range(ufunc.nin):
        copies = [a.copy() for a in arguments]
        assert ufunc(*copies, out=copies[k]) is copies[k]
        np.testing.assert_array_equal(copies[k], expected)
    later, earlier, reverse = slice(1, None), slice(None, -1), slice(None, None, -1)
    for here, there in ((later, earlier), (earlier, later), (reverse, reverse)):
        copies = [a.copy() for a in arguments]
        ufunc(*(c[here] for c in copies), out=copies[0][there])
        np.testing.assert_array_equal(copies[0][there], expected[here])
    whole = arguments[0].copy()
    ufunc(*[whole] * ufunc.nin, out=whole[::-1])
    np.testing.assert_array_equal(whole[::-1], ufunc(*[arguments[0]] * ufunc.nin))


def test_where(ufunc: np.ufunc) -> None:
    """`where=` leaves the other cells alone, and illegal values there raise nothing."""
    arguments = sample(ufunc)
    mask = np.arange(5000) % 3 == 0
    poisoned = [np.where(mask, a, -5.0) for a in arguments]
    out = np.full(5000, 42.0)
    with np.errstate(all="raise"):
        ufunc(*poisoned, out=out, where=mask)
    np.testing.assert_array_equal(out, np.where(mask, ufunc(*arguments), 42.0))


def test_large_array() -> None:
    """Three million cells, more than any block or cache, agree with a few of them computed alone."""
    eps, r = np.linspace(-5, 50, 3_000_017), np.linspace(0.01, 20, 3_000_017)
    whole = hs.theta(eps, r)
    picked = np.random.default_rng(1).integers(0, len(eps), 500)
    np.testing.assert_array_equal(whole[picked], [hs.theta(eps[i], r[i]) for i in picked])


def test_nan_in_nan_out(ufunc: np.ufunc) -> None:
    """A NaN passes through silently, whatever the other argument."""
    cases = [(nan,)] if ufunc.nin == 1 else [(nan, 0.5), (0.5, nan), (nan, nan), (nan, inf)]
    with np.errstate(all="raise"):
        assert all(np.isnan(ufunc(*case)) for case in cases)


OUTSIDE = {
    "q_inv": [(p,) for p in (-5e-324, -0.1, -inf, np.nextafter(1.0, 2.0), 1.1, inf)],
    **{name: [(eps, r) for eps in (-inf, -1.0, 0.0, 1.0, inf) for r in (-5e-324, -1.0, -inf)] for name in DISTANCES},
    "theta_inverse": [
        (-1.0, 0.5),  # below 1 - 1/e
        *((eps, 0.0) for eps in (-1.0, -1e-300)),
        (-40.0, 1 - 2.0**-53),
        *((eps, 0.5) for eps in (-inf, inf)),  # theta(inf, r) is 0 or 1
        *((1.0, delta) for delta in (-0.1, 1.1, inf, -inf)),
    ],
    "gaussian_epsilon": [*((r, 0.5) for r in (-1.0, -inf)), *((1.0, delta) for delta in (-0.1, 1.1, inf, -inf))],
}


def test_outside_of_the_domain(ufunc: np.ufunc) -> None:
    """Outside of the domain, or where no distance gives delta, the answer is NaN with the invalid flag."""
    for case in OUTSIDE.get(ufunc.__name__, ()):  # Q takes all numbers
        with np.errstate(invalid="ignore"):
            assert np.isnan(ufunc(*case)), case
        with np.errstate(invalid="raise"), pytest.raises(FloatingPointError, match=ufunc.__name__):
            ufunc(*case)


def test_legal_input_is_quiet() -> None:
    """No legal argument, however extreme, raises a flag, not even underflow, and none gives NaN."""
    x = np.concatenate([[-1.0], np.logspace(-320, 308, 2000)])
    eps = np.array([0, 1e-310, 1e-300, 1e-20, 1e-8, 0.3, 1, 30, 700, 1e6, 1e100, 1e300, inf])[:, None]
    r = np.array([0, 5e-324, 1e-310, 1e-300, 1e-12, 1e-3, 1, 40, 1e4, 1e100, 1e154, 1e200, 1e308, inf])
    delta = np.array([1e-300, 1e-100, 1e-10, 0.1, 0.5, 0.9, 1 - 1e-15, 1 - 2.0**-53])
    with np.errstate(all="raise"):
        for sign in (1, -1):
            assert not any(np.isnan(function(sign * x)).any() for function in (hs.q, hs.log_q))
            assert not any(np.isnan(function(sign * eps, r)).any() for function in DISTANCES.values())
        assert np.isfinite(hs.theta_inverse(np.logspace(-12, np.log10(700), 30)[:, None], delta)).all()
        assert np.isfinite(hs.gaussian_epsilon(np.logspace(-12, 4, 30)[:, None], delta)).all()


def test_one_bad_cell_among_many() -> None:
    """A single negative r in a large array raises the flag and spoils its own cell only."""
    r = np.ones(10_000)
    r[7777] = -1.0
    with np.errstate(invalid="ignore"):
        result = hs.theta(1.0, r)
    assert np.flatnonzero(np.isnan(result)).tolist() == [7777]
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError):
        hs.theta(1.0, r)
