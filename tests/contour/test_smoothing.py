"""Contours of losses whose characteristic function does not decay: atoms, rare large losses, smoothed by a small Gaussian."""

import itertools
import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import high_precision
import hockeystick as hs
import pairs

WIDTH = 2e-3  # of log delta; ten times what is usual


def contained(found, exact):
    """Say whether the bracket of log delta has the exact value, up to the digits of the reference."""
    slack = 1e-13 * abs(exact)
    return found["log_lower"] - slack <= exact <= found["log_upper"] + slack


def discrete_delta(p, q, steps, eps):
    """Return delta of equal discrete steps by the multinomial law, in 50 digits."""
    total = mpmath.mpf(0)
    for counts in itertools.product(range(steps + 1), repeat=len(p) - 1):
        last = steps - sum(counts)
        if last < 0:
            continue
        paths = mpmath.factorial(steps) / mpmath.fprod(mpmath.factorial(n) for n in (*counts, last))
        masses = [mpmath.fprod(mpmath.mpf(x) ** n for x, n in zip(law, (*counts, last), strict=True)) for law in (p, q)]
        total += paths * max(masses[0] - mpmath.exp(eps) * masses[1], 0)
    return total


@given(
    weights=st.lists(st.floats(0.05, 1.0), min_size=6, max_size=6),
    steps=st.integers(1, 12),
    share=st.floats(0.0, 0.97),
    forward=st.booleans(),
    rate=st.sampled_from([1.0, 0.3, 0.01]),
)
def test_discrete_steps_agree_with_the_multinomial_law(weights, steps, share, forward, rate):
    """Three outcomes, sampled or not, up to twelve steps, in both directions: the bracket has the exact sum."""
    p, q = ([w / sum(part) for w in part] for part in (weights[:3], weights[3:]))
    mixed = [(1 - mpmath.mpf(rate)) * y + mpmath.mpf(rate) * x for x, y in zip(p, q, strict=True)]
    above, below = (mixed, q) if forward else (q, mixed)
    eps = share * steps * float(max(mpmath.log(x / y) for x, y in zip(above, below, strict=True)))
    found = pairs.contour_bracket([("discrete", [*p, *q], rate, float(steps))], forward, False, eps)
    assert found is not None
    with mpmath.workdps(50):
        exact = discrete_delta(above, below, steps, mpmath.mpf(eps))
        assert exact == 0 or contained(found, float(mpmath.log(exact)))
    back = pairs.contour_bracket([("discrete", [*p, *q], rate, float(steps))], forward, True, float(exact))
    if 1e-12 < exact < 0.5 and back is not None:
        assert back["lower"] - 1e-12 <= eps * (1 + 1e-12)
        assert back["upper"] + 1e-12 >= eps * (1 - 1e-9) or eps < 1e-9


@pytest.mark.parametrize(
    ("p", "q", "steps", "eps"),
    [
        ([0.40200267173843385, 0.5979973282615662], [0.02130318395484184, 0.9786968160451581], 2, 5.875204383440651),
        ([0.5871295440301211, 0.4128704559698789], [1.172710923906784e-227, 1.0], 3, 1565.9849646504745),
        ([0.9747126806552654, 0.025287319344734605], [4.138936806690942e-70, 1.0], 3, 479.20471508035416),
        ([0.75, 0.25], [0.25, 0.75], 4, 4 * math.log(3) * (1 - 2**-50)),
    ],
)
def test_a_delta_just_below_the_largest_loss_is_not_zero(p, q, steps, eps):
    """Within rounding of the largest loss the frequencies are beyond the digits of their angles, and the bracket says so."""
    found = pairs.contour_bracket([("discrete", [*p, *q], 1.0, float(steps))], True, False, eps)
    with mpmath.workdps(50):
        exact = discrete_delta(p, q, steps, mpmath.mpf(eps))
        assert exact > 0
        assert found is None or contained(found, float(mpmath.log(exact)))


def test_lower_ends_among_the_subnormal_numbers_are_rounded_down():
    """A lower end is not above delta where doubles are 5e-324 apart."""
    for step in range(60):
        eps = 37.5 + 0.02 * step
        found = pairs.contour_bracket([("gaussian", [1.0], 1.0, 1.0)], True, False, eps)
        assert found["lower"] <= high_precision.theta(eps, 1.0) <= found["upper"]


@pytest.mark.parametrize("rate", [1 - 2**-40, 1 - 2**-53])
def test_a_sampling_rate_close_to_one_keeps_the_digits_of_losses(rate):
    """The rarest outcome's loss is log(1 - rate + rate p/q), a sum without cancellation."""
    p, q, steps = [1e-9, 1.0 - 1e-9], [0.4, 0.6], 5
    mixed = [(1 - mpmath.mpf(rate)) * y + mpmath.mpf(rate) * x for x, y in zip(p, q, strict=True)]
    found = pairs.contour_bracket([("discrete", [*p, *q], rate, float(steps))], False, False, 30.0)
    with mpmath.workdps(50):
        exact = float(mpmath.log(discrete_delta(q, mixed, steps, mpmath.mpf(30))))
    assert contained(found, exact)
    assert found["log_upper"] - found["log_lower"] < WIDTH


def test_discrete_laws_are_divided_by_their_sums():
    """What a law may lack to 1, 1e-12, would else be multiplied by the steps: a billion of them."""
    s, steps = 3e-5, 10**9
    ends = []
    for lack in (-9.9e-13, 0.0, 9.9e-13):
        mechanism = hs.Discrete([0.5 + s, 0.5 - s + lack], [0.5 - s, 0.5 + s])
        bracket = hs.Accountant("replace").compose(mechanism, steps).delta_bracket(0.0)
        ends.append((bracket.lower, bracket.upper))
    assert max(lower for lower, _ in ends) <= min(upper for _, upper in ends)


def test_smoothing_is_charged_to_the_lower_end_only():
    """At an atom smoothing adds a first-order part, which the lower end gives up and the upper one keeps."""
    p, q = [0.75, 0.25], [0.25, 0.75]
    eps = 3 * math.log(3)  # the largest loss but one of five steps
    found = pairs.contour_bracket([("discrete", [*p, *q], 1.0, 5.0)], True, False, eps)
    with mpmath.workdps(50):
        exact = float(mpmath.log(discrete_delta(p, q, 5, mpmath.mpf(eps))))
    assert contained(found, exact)
    assert found["smoothing"] > 0.0
    assert found["log_upper"] - found["log_lower"] < 0.02


def test_chernoff_answers_where_the_sum_is_out_of_proportion():
    """No nodes: an upper end that is one, and no more than losses discretised coarsely say; the lower end is 0."""
    delta, ledger = 3e-105, [("gaussian", [1 / 2.31], 4e-9, 7.5e7)]
    found = pairs.contour_bracket(ledger, True, True, delta)
    assert found["nodes"] == 0
    assert found["lower"] == 0.0
    lower = pairs.pld_bracket(ledger, True, True, delta, 0.0, 1e-3)[0]
    assert lower <= found["upper"] < math.inf
    below = pairs.contour_bracket(ledger, True, False, found["upper"])  # delta there is at most the one asked for
    assert below["upper"] <= delta * (1 + 1e-6)
