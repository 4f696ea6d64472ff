"""The exponential mechanism and permute-and-flip against their definitions."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
import pairs
from enumeration import exponential, hockey_stick, permute_and_flip

RANGES = [1e-4, 0.3, 1.0, 5.0, 40.0]


def two_point(width, t, eps):
    """Return delta of the pair with losses t and t - width."""
    width, t, eps = map(mp.mpf, (width, t, eps))
    high = -mp.expm1(t - width) / -mp.expm1(-width)
    ratio = mp.exp(eps)
    return max(high * (1 - ratio * mp.exp(-t)), 0) + max((1 - high) * (1 - ratio * mp.exp(width - t)), 0)


def laws(epsilon, *scores, kind=exponential):
    """Return the output distributions of a choice of sensitivity 1 on several score vectors."""
    return [kind(0.5 * epsilon * np.array(one)) for one in scores]


@pytest.mark.parametrize("width", RANGES)
def test_curve_is_the_largest_of_all_intervals(width):
    """Delta is the maximum over t of the two-point pairs, found by a search, at positive and negative epsilons."""
    with mp.workdps(40):
        for share in (-0.99, -0.3, 0.0, 0.1, 0.7, 0.999):
            eps = mp.mpf(share) * mp.mpf(width)
            grid = [two_point(width, mp.mpf(width) * k / 60, eps) for k in range(61)]
            best = two_point(width, (eps + mp.mpf(width)) / 2, eps)
            assert max(grid) <= best * (1 + mp.mpf("1e-30"))
            lower, upper = pairs.pair("bounded_range", [width]).one_step(True, False, float(eps))
            blur = mp.mpf("1e-11") + mp.mpf("1e-14") / (1 - share)
            assert lower <= best * (1 + blur)
            assert upper >= best * (1 - blur)
            assert upper - lower <= 4e-11 * upper


@pytest.mark.parametrize("width", RANGES)
def test_masses_integrate_the_density(width):
    """Masses are integrals of e^{l/2}/(4 sinh(width/2)) under P and of e^{-l/2} under Q, in either tail."""
    with mp.workdps(40):
        w = mp.mpf(width)
        unit = 1 / (4 * mp.sinh(w / 2))
        for share in (-0.9, 0.0, 0.4, 0.97):
            x = float(share * w)
            found = pairs.pair("bounded_range", [width]).masses(True, x)
            for i, (sign, low, high) in enumerate([(1, -w, x), (1, x, w), (-1, -w, x), (-1, x, w)]):
                truth = unit * mp.quad(lambda l, sign=sign: mp.exp(sign * l / 2), [low, high])
                assert found[i] == pytest.approx(float(truth), rel=1e-12)


@given(
    epsilon=st.floats(0.01, 6.0),
    scores=st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=6),
    moves=st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6),
    share=st.floats(-1.0, 1.0),
)
def test_every_exponential_mechanism_is_dominated(epsilon, scores, moves, share):
    """No score vectors that differ by at most the sensitivity leak more, at any epsilon."""
    p, q = laws(epsilon, scores, [s + m for s, m in zip(scores, moves, strict=False)])
    truth = hockey_stick(p, q, share * epsilon)
    upper = pairs.pair("bounded_range", [epsilon]).one_step(True, False, share * epsilon)[1]
    assert truth <= upper + 1e-14


@pytest.mark.share(6, by_day=2)
@pytest.mark.parametrize("order", [1.0, 1.001, 1.2, 2.0, 7.0, 17.0, 1000.0])
@pytest.mark.parametrize("width", [0.001, 0.1, 0.5, 3.0, 6.0, 40.0])
def test_renyi_divergence_is_the_supremum(width, order):
    """The Renyi bound is the largest over t of the two-point pairs, and below order width^2/8, which zCDP has, too."""
    ledger = hs.Accountant("replace").compose(hs.ExponentialMechanism(width))
    found, rho = ledger.rdp(order), hs.zcdp_rho(ledger)
    assert width**2 / 8 <= rho <= width**2 / 8 * (1 + 1e-12)
    with mp.workdps(40):
        values = []
        for k in range(1, 300):
            t = mp.mpf(width) * k / 300
            high = -mp.expm1(t - width) / -mp.expm1(-mp.mpf(width))
            if order == 1.0:
                values.append(t - (1 - high) * width)
            else:
                less = mp.mpf(order) - 1
                values.append(mp.log(high * mp.exp(less * t) + (1 - high) * mp.exp(less * (t - width))) / less)
        truth = max(values)
    assert truth <= found <= float(truth) * (1 + 5e-3)
    assert truth <= order * rho
    assert found <= order * width**2 / 8 * (1 + 2e-6)


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
@given(
    epsilon=st.floats(0.01, 4.0),
    scores=st.lists(st.floats(-2.0, 2.0), min_size=2, max_size=4),
    moves=st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=4, max_size=4),
    share=st.floats(0.0, 1.0),
)
def test_permute_and_flip_is_dominated(epsilon, scores, moves, share):
    """The law by enumeration of all orders stays below the pair of Laplace noise."""
    p, q = laws(epsilon, scores, [s + m for s, m in zip(scores, moves, strict=False)], kind=permute_and_flip)
    assert p.sum() == pytest.approx(1.0)
    upper = hs.Accountant().compose(hs.PermuteAndFlip(epsilon)).delta(share * epsilon)
    assert hockey_stick(p, q, share * epsilon) <= upper + 1e-13
