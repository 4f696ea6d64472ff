"""The contour engine against closed forms, integrals in extended precision, ball arithmetic and itself."""

import itertools
import json
import math
import re
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import high_precision
import hockeystick as hs
import pairs
import tables
from loss_pieces import DIGITS, EXTENDED, mixture_law
from pairs import sampled_gaussians

ROOT = Path(__file__).parents[2]


def law_of(sigma, rate, forward, c):
    """Return the law of losses of one sampled step, for moments up to a tilt."""
    return mixture_law(rate, [1 / EXTENDED(sigma)], [1], forward, tilt=abs(c) + 1)


def assert_nodes_are_right(rows, case, h, nodes, most=5e-12):
    """Check log phi at some nodes, within the errors that they state."""
    law, c = law_of(*case), EXTENDED(case[-1])
    at_tilt = law.moment(c)
    for k in nodes:
        ratio = law.moment(c + 1j * (k * EXTENDED(h))) / at_tilt
        log_abs, phase, error, _ = rows[k]
        computed = np.exp(EXTENDED(log_abs) + 1j * EXTENDED(phase))
        assert abs(computed - ratio) <= (error + 1e-15) * max(abs(ratio), abs(computed)) + DIGITS
        assert error * abs(ratio) <= most


CASES = [
    (1.0, 0.01, True, 6.7),
    (1.0, 0.01, False, 13.0),
    (1.0, 0.01, True, -0.4),
    (0.5, 0.2, True, 2.0),
    (0.5, 0.2, False, 5.0),
    (3.0, 0.5, True, 30.0),
    (3.0, 0.9, False, 12.0),
    (10.0, 0.01, False, 60.0),
    (1.5, 0.999, False, 30.0),  # mixture weights near 1
]


@pytest.mark.parametrize(("sigma", "rate", "forward", "c"), CASES)
def test_moments_and_nodes_are_right_within_their_own_errors(sigma, rate, forward, c):
    """Log M(c) and log phi at the nodes; the errors they state are honest and small."""
    spread = math.sqrt(math.log1p(rate**2 * math.expm1(min(1 / sigma**2, 30))))
    h = 0.5 / spread
    (value, error), rows = pairs.sampled_gaussian_nodes(sigma, rate, forward, c, h, 24)  # to where phi is small
    assert abs(np.log(law_of(sigma, rate, forward, c).moment(EXTENDED(c))) - value) <= error + DIGITS
    assert error <= 1e-12 * (1 + abs(value))
    assert_nodes_are_right(rows, (sigma, rate, forward, c), h, (1, 3, 8, 16, 24))


REFERENCES = tables.load("sampled_gaussian")


def test_sampled_gaussians_agree_with_their_references():
    """Log delta of T steps, by contour integrals in ball arithmetic, lies in every bracket: about 1e-9 wide, or smoothed."""
    answered = sharp = 0
    for row, high in zip(zip(*REFERENCES.arguments, strict=True), REFERENCES.high, strict=True):
        sigma, rate, steps, remove, eps = row
        found = pairs.contour_bracket(sampled_gaussians(sigma, rate, steps), bool(remove), False, eps)
        if found is None:
            continue
        slack = (1e-11 if steps == 2 else 4e-16) * abs(high)  # of two steps' reference; of the value read as a double
        assert found["log_lower"] - slack <= high <= found["log_upper"] + slack, row
        if found["nodes"] == 0:  # Chernoff's bound
            continue
        answered += 1
        width = found["log_upper"] - found["log_lower"]
        sharp += found["smoothing"] == 0.0
        allowed = 1.1e-9 if steps <= 1e6 else 1e-6
        assert width <= (allowed if found["smoothing"] == 0.0 else 2e-3) * max(1.0, abs(high)), row
    assert sharp >= 154
    assert answered >= 158


def test_ledgers_of_several_mechanisms_agree_with_their_references():
    """Mixed ledgers of sampled Gaussians, Gaussians and Laplace steps, from the same ball arithmetic."""
    cells = json.loads((tables.FOLDER / "ledgers.json").read_text())
    assert len(cells) >= 10
    for cell in cells:
        ledger = [
            ("laplace" if kind == "laplace" else "gaussian", [1.0 / p[0]], p[1] if len(p) > 1 else 1.0, float(count))
            for kind, p, count in cell["steps"]
        ]
        found = pairs.contour_bracket(ledger, cell["remove"], False, cell["eps"])
        exact = float(cell["log_delta"])
        assert found["log_lower"] - 4e-16 * abs(exact) <= exact <= found["log_upper"] + 4e-16 * abs(exact)
        assert found["log_upper"] - found["log_lower"] <= 1e-9


@pytest.mark.parametrize(("sigma", "rate", "forward", "c"), CASES)
def test_decay_bounds_the_characteristic_function_from_there_on(sigma, rate, forward, c):
    """log_decay(omega) >= log |phi(omega')| for omega' >= omega, falls, and is not trivial."""
    spread = math.sqrt(math.log1p(rate**2 * math.expm1(min(1 / sigma**2, 30))))
    _, rows = pairs.sampled_gaussian_nodes(sigma, rate, forward, c, 0.25 / spread, 60)
    log_abs, _, errors, decay = np.array(rows).T
    known = np.where(errors < 0.1, log_abs - errors, -np.inf)
    later = np.maximum.accumulate(known[::-1])[::-1]
    assert (decay >= later - 1e-15).all()
    assert (np.diff(decay) <= 1e-12).all()
    assert decay[-1] < math.log(0.9)


@given(shift=st.floats(0.02, 3.0), steps=st.integers(1, 10**6), depth=st.floats(-690.0, -0.11))
def test_gaussian_steps_agree_with_the_closed_form(shift, steps, depth):
    """T Gaussians of shift r are one of shift r sqrt T, whatever the depth, to 1e-11 in log delta."""
    mu = shift * math.sqrt(steps)
    eps = float(hs.gaussian_epsilon(mu, math.exp(depth)))
    if eps <= 0.0 or mu > 1e4:
        return
    found = pairs.contour_bracket([("gaussian", [shift], 1.0, float(steps))], True, False, eps)
    log_delta = float(hs.log_theta(eps, mu))
    slack = 3e-15 * abs(log_delta) * (1 + eps)  # of the argument's own rounding
    assert found["log_lower"] - slack <= log_delta <= found["log_upper"] + slack
    assert found["log_upper"] - found["log_lower"] <= 1e-11 * max(1.0, abs(log_delta))


@given(shift=st.floats(0.1, 3.0), steps=st.integers(1, 10**4), below=st.floats(0.1, 7.0))
def test_one_minus_delta_is_relatively_accurate(shift, steps, below):
    """Deep inside the bulk 1 - delta is what is small: P(L <= eps) + e^eps Q(L > eps) in closed form."""
    mu = shift * math.sqrt(steps)
    eps = max(mu * mu / 2 - below * mu, 0.0)
    found = pairs.contour_bracket([("gaussian", [shift], 1.0, float(steps))], True, False, eps)
    complement = high_precision.theta_complement(eps, mu)
    with mpmath.workdps(40):
        lower, upper = -mpmath.expm1(found["log_upper"]), -mpmath.expm1(found["log_lower"])
        slack = 1e-13 * (1 + mu * below)
        assert lower * (1 - slack) <= complement <= upper * (1 + slack)
        assert upper - lower <= 1e-9 * complement + 1e-16


@given(
    log_sigma=st.floats(math.log(0.5), math.log(20.0)),
    log_rate=st.floats(math.log(1e-3), -0.01),
    steps=st.integers(20, 10**6),
    log_delta=st.floats(-50.0, -0.2),
    forward=st.booleans(),
)
def test_epsilon_and_delta_are_each_others_inverse(log_sigma, log_rate, steps, log_delta, forward):
    """The delta bracket at the epsilon bracket's ends straddles delta."""
    ledger = sampled_gaussians(math.exp(log_sigma), math.exp(log_rate), steps)
    delta = math.exp(log_delta)
    found = pairs.contour_bracket(ledger, forward, True, delta)
    if found is None:
        return
    assert found["lower"] <= found["upper"]
    at_upper = pairs.contour_bracket(ledger, forward, False, found["upper"])
    assert at_upper is None or at_upper["lower"] <= delta * (1 + 1e-14)
    if found["lower"] > 0:
        at_lower = pairs.contour_bracket(ledger, forward, False, found["lower"])
        assert at_lower is None or at_lower["upper"] >= delta * (1 - 1e-14)


@given(
    log_sigma=st.floats(math.log(0.4), math.log(30.0)),
    log_rate=st.floats(math.log(1e-4), -0.01),
    steps=st.integers(2, 2000),
    log_delta=st.floats(-40.0, -1.0),
    forward=st.booleans(),
)
def test_brackets_overlap_those_of_discretised_losses(log_sigma, log_rate, steps, log_delta, forward):
    """Two engines with nothing in common but the mathematics cannot contradict each other."""
    ledger = sampled_gaussians(math.exp(log_sigma), math.exp(log_rate), steps)
    delta = math.exp(log_delta)
    one = pairs.contour_bracket(ledger, forward, True, delta)
    if one is None:
        return
    other = pairs.pld_bracket(ledger, forward, True, delta, 0.0, 1e-3)
    assert one["lower"] <= other[1] + 1e-15
    assert other[0] <= one["upper"] + 1e-15


@pytest.mark.parametrize(
    ("sigma", "rate", "steps"),
    [(1.0, 0.01, 10), (1.9, 0.001, 10), (2.6, 0.001, 10), (0.9667, 0.001, 100), (0.7333, 0.001, 100)],
)
def test_few_steps_with_rare_samples_are_sharp(sigma, rate, steps):
    """One large loss against a narrow bulk: epsilon to 1e-6 without smoothing, inside the bracket of discretised losses."""
    ledger = sampled_gaussians(sigma, rate, steps)
    found = pairs.contour_bracket(ledger, True, True, 1e-5)
    assert found["smoothing"] == 0.0
    assert found["nodes"] <= 4100
    assert found["upper"] - found["lower"] <= 1e-6 * found["upper"]
    low, high = pairs.pld_bracket(ledger, True, True, 1e-5, 0.0, 1e-4)[:2]
    assert low <= found["upper"]
    assert found["lower"] <= high


def test_large_losses_that_never_happen_do_no_harm():
    """At sigma = 10, q = 1e-4, E e^{2000 L} is made at 200 sigma; the cut leaves that out, and the Gaussian limit is near."""
    found = pairs.contour_bracket(sampled_gaussians(10.0, 1e-4, 1000), True, True, 1e-12)
    limit = float(hs.gaussian_epsilon(math.sqrt(1000 * math.expm1(0.01)) * 1e-4, 1e-12))
    assert found["upper"] == pytest.approx(limit, rel=0.05)
    assert found["missing"] < 1e-12


def test_what_has_no_cumulant_here_is_left_to_others():
    """Outcomes of one distribution only, and mechanisms of bounded range."""
    for ledger in ([("discrete", [0.5, 0.5, 0.0, 1.0], 1.0, 3.0)], [("bounded_range", [1.0], 1.0, 3.0)]):
        assert pairs.contour_bracket(ledger, True, True, 1e-5) is None


@pytest.mark.parametrize(
    ("ledger", "names"),
    [
        (sampled_gaussians(1.0, 0.01, 1000), ["line"]),
        (sampled_gaussians(1.0, 0.01, 10), ["line", "slices"]),
        ([("laplace", [2.0], 1.0, 2.0)], ["line", "slightly smoothed line", "smoothed line"]),
        (sampled_gaussians(1.0, 1e-4, 1), ["line", "slices"]),
    ],
    ids=["usual", "few steps with rare samples", "atoms", "one rare step"],
)
def test_strategies_are_tried_in_order(ledger, names):
    """The log has what was tried, up to the first narrow bracket, which is the answer; no other contradicts it."""
    found = pairs.contour_bracket(ledger, True, True, 1e-5)
    assert [name for name, _, _ in found["tried"]] == names
    assert found["tried"][-1][1:] == ((found["lower"], found["upper"]), found["nodes"])
    for _, bracket, _ in found["tried"]:
        assert bracket is None or (bracket[0] <= found["upper"] and found["lower"] <= bracket[1])


@pytest.mark.parametrize("forward", [True, False])
def test_many_nodes_are_right_within_their_own_errors(forward):
    """Where nodes are many an FFT sums them: log phi within the errors it states, which are small."""
    sigma, rate, c, h, count = 0.7, 0.01, 3.0, 0.05, 6000
    _, rows = pairs.sampled_gaussian_nodes(sigma, rate, forward, c, h, count)
    assert_nodes_are_right(rows, (sigma, rate, forward, c), h, (1, 2, 777, 2500, count), most=1e-11)


def test_deltas_that_leave_the_doubles_ask_for_no_endless_cut():
    """At an epsilon of 1e18 the cut that would be negligible beside delta is no integer; the answer is still one."""
    for sigma, rate, steps, eps in (
        (1e8, 1e-27, 3e14, 2e15),
        (240.0, 6e-29, 31404.0, 4e13),
        (13000.0, 3e-22, 3e5, 5e-8),
    ):
        found = pairs.contour_bracket(sampled_gaussians(sigma, rate, steps), True, False, eps)
        assert found is None or 0 <= found["lower"] <= found["upper"] <= 1e-20


@pytest.mark.parametrize(
    ("header", "page", "title"),
    [("contour/contour.hpp", "contour.md", "## Strategies"), ("accounting/engine.hpp", "accounting.md", "## The list")],
)
def test_the_pages_have_the_lists(header, page, title):
    """The table of a page has the entries of the list that is walked, in its order; rows of one name in a row are one."""
    code = (ROOT / "cpp" / "include" / "hockeystick" / header).read_text(encoding="utf-8")
    text = (ROOT / "docs" / "core" / page).read_text(encoding="utf-8").split(f"{title}\n")[1].split("\n\n## ")[0]
    listed = re.split(r"\n *\};", code.split("[] = {\n")[1])[0]
    entries = re.findall(r'^ +\{"([^"]+)",', listed, re.MULTILINE)
    rows = [row.removesuffix(", four times") for row in re.findall(r"^\| ([^|]+?) \|", text, re.MULTILINE)[1:]]
    assert len(rows) >= 10
    assert rows == [name for name, _ in itertools.groupby(entries)]
