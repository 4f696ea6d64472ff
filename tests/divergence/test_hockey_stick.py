"""The kernels against 34-digit tables; theta and its Laplace twin at their limits, and by their identities."""

import os
import sys
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import effort
import hockeystick as hs
import measure_accuracy
import processes
import tables

inf = np.inf
DISTANCES = {"theta": hs.theta, "log_theta": hs.log_theta, "laplace_theta": hs.laplace_theta}
REAL_EPS = st.one_of(st.floats(-700, 700), st.floats(-1, 1), st.sampled_from([0.0, 1e-300, -1e-300, 1e-12, -1e-12]))
SHIFT = st.floats(-12, 4).map(lambda k: 10.0**k)


@pytest.mark.parametrize("name", ["q", "log_q", "q_inv", *DISTANCES, "theta_inverse"])
def test_reference_table(name: str) -> None:
    """Every tabled value is met within the stated error, row by row: 8 units in the last place, 2e-14 (1 + |log theta|) and so on."""
    table = tables.load(name)
    table.assert_holds(getattr(hs, name)(*table.arguments))


FIRST, *OTHERS = measure_accuracy.INSTRUCTION_SETS


@pytest.mark.slow
@pytest.mark.parametrize("instruction_set", [FIRST, *(pytest.param(name, marks=effort.AT_NIGHT) for name in OTHERS)])
def test_every_instruction_set(instruction_set: str) -> None:
    """All kernels keep their stated error on every path that this machine can run."""
    measured = measure_accuracy.measured_elsewhere(instruction_set)
    assert {name: m["worst"] for name, m in measured.items() if not m["worst"] <= 1} == {}


@pytest.mark.parametrize("bad", ["v9", " v3"])
def test_unknown_instruction_set(bad: str) -> None:
    """A bogus HOCKEYSTICK_ISA stops the import with an error that names the variable and the value."""
    done = processes.python("import hockeystick", env=os.environ | {"HOCKEYSTICK_ISA": bad}, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(("ValueError", "ImportError"))
    assert "HOCKEYSTICK_ISA" in last
    assert bad in last


@pytest.mark.parametrize(
    ("eps", "r", "expected"),
    [
        (inf, inf, 1.0),  # r = inf wins
        (700.0, inf, 1.0),
        (0.0, inf, 1.0),
        (-inf, inf, 1.0),
        (0.0, 0.0, 0.0),
        (1.0, 0.0, 0.0),
        (inf, 0.0, 0.0),
        (-1.0, 0.0, -np.expm1(-1.0)),
        (-1e-300, 0.0, 1e-300),
        (-1.0, -0.0, -np.expm1(-1.0)),  # -0 is 0
        (inf, 1.0, 0.0),
        (inf, 1e308, 0.0),
        (-inf, 0.0, 1.0),
        (-inf, 1.0, 1.0),
        (1.0, 1e200, 1.0),  # r^2 overflows
        (-1.0, 1e308, 1.0),
        (1e6, 1.0, 0.0),  # underflow
        (1.0, 5e-324, 0.0),
    ],
)
def test_limits(eps: float, r: float, expected: float) -> None:
    """Infinite, zero and extreme arguments give the limits of theta, log theta and the Laplace twin, quietly."""
    with np.errstate(all="raise"):
        theta, log_theta, laplace = (f(eps, r) for f in DISTANCES.values())
    np.testing.assert_allclose(theta, expected, rtol=1e-15)
    np.testing.assert_allclose(laplace, expected, rtol=1e-15)
    assert not np.signbit(theta)
    assert not np.signbit(laplace)
    if expected > 0:
        np.testing.assert_allclose(log_theta, np.log(expected), rtol=1e-15, atol=1e-15)
    elif r == 0 or eps == inf:
        assert log_theta == -inf
    else:
        assert log_theta < -700


def test_caller_flags_survive() -> None:
    """A flag raised by NumPy before is neither lost nor blamed on the kernel."""
    with np.errstate(divide="warn"), pytest.warns(RuntimeWarning, match="divide"):
        hs.theta(np.array([1.0]) / np.array([0.0]), 1.0)


@hypothesis.given(REAL_EPS, REAL_EPS, SHIFT)
def test_decreasing_in_eps(x: float, y: float, r: float) -> None:
    """Theta and log theta never increase in eps by more than their error."""
    low, high = sorted((x, y))
    before, after = hs.log_theta(low, r), hs.log_theta(high, r)
    assert after <= before + 2 * max(4e-15 * abs(before), 1e-14)
    assert hs.theta(high, r) <= hs.theta(low, r) * (1 + 4e-14 * (1 + abs(before)))
    assert hs.laplace_theta(high, r) <= hs.laplace_theta(low, r) * (1 + 1e-15)


@hypothesis.given(REAL_EPS, SHIFT, SHIFT)
def test_increasing_in_distance(eps: float, x: float, y: float) -> None:
    """Theta and log theta never decrease in r by more than their error."""
    low, high = sorted((x, y))
    before, after = hs.log_theta(eps, low), hs.log_theta(eps, high)
    assert after >= before - 2 * max(4e-15 * abs(before), 1e-14)
    assert hs.theta(eps, high) >= hs.theta(eps, low) * (1 - 4e-14 * (1 + abs(before)))
    assert hs.laplace_theta(eps, high) >= hs.laplace_theta(eps, low) * (1 - 1e-15)


@hypothesis.given(st.floats(0, 700), SHIFT)
def test_reflection(eps: float, r: float) -> None:
    """theta(-eps) = 1 - e^-eps + e^-eps theta(eps): exchanging the two Gaussians."""
    expected = -np.expm1(-eps) + np.exp(-eps) * hs.theta(eps, r)
    np.testing.assert_allclose(hs.theta(-eps, r), expected, rtol=4e-14 * (1 + abs(hs.log_theta(-eps, r))))
    laplace = -np.expm1(-eps) + np.exp(-eps) * hs.laplace_theta(eps, r)
    np.testing.assert_allclose(hs.laplace_theta(-eps, r), laplace, rtol=1e-14)


@hypothesis.given(REAL_EPS, SHIFT)
def test_bounds(eps: float, r: float) -> None:
    """max(0, 1 - e^eps) <= theta <= min(1, Q(a)), a = eps/r - r/2, up to the rounding of a."""
    theta, log_theta = hs.theta(eps, r), hs.log_theta(eps, r)
    assert 0 <= theta <= 1
    assert log_theta <= 0
    assert theta >= max(0.0, -np.expm1(eps)) * (1 - 4e-15)
    a = (eps - 0.5 * r * r) / r
    bound = hs.log_q(a - 4e-16 * (abs(a) + r))
    assert log_theta <= bound + 1e-14 * (1 + abs(bound))


@hypothesis.given(REAL_EPS, SHIFT)
def test_logarithm(eps: float, r: float) -> None:
    """Exp(log theta) is theta wherever that is a normal double."""
    log_theta = hs.log_theta(eps, r)
    hypothesis.assume(log_theta > -700)
    np.testing.assert_allclose(np.exp(log_theta), hs.theta(eps, r), rtol=4e-14 * (1 + abs(log_theta)))


@hypothesis.given(st.floats(0, 700), st.floats(0.01, 1e3))
def test_laplace_is_bounded(eps: float, r: float) -> None:
    """The Laplace mechanism is pure: its theta vanishes exactly from eps = r on."""
    assert (hs.laplace_theta(eps, r) == 0) == (eps >= r)


@pytest.mark.slow
def test_tables_are_reproducible() -> None:
    """Recomputing a subsample of the committed tables gives their digits."""
    script = Path(__file__).parents[1] / "reference" / "generate_kernels.py"
    processes.run([sys.executable, script, "--check"], limit=600)
