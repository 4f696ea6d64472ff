"""Sensitivities of correlated noise against all participation patterns, and the mechanisms that they make."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick import correlated_noise
from hockeystick.correlated_noise import (
    check_participants,
    cyclic_poisson,
    matrix_sensitivity,
    square_root_coefficients,
    tree_sensitivity,
)
from participation import patterns, toeplitz

ROUNDING = 1e-9


def brute(strategy, allowed):
    """Return the longest C u where u is 1 or -1 in the steps of a pattern: all that updates of one dimension can do."""
    return max(
        np.linalg.norm(strategy[:, steps] @ signs)
        for steps in allowed
        for signs in itertools.product((1.0,), *[(1.0, -1.0)] * (len(steps) - 1))
    )


def tree(num_steps, nodes):
    """Return a row for each node of the tree that is complete, or that prefix sums are made of."""
    complete = [(n << level, (n + 1) << level) for level in range(8) for n in range(num_steps >> level)]
    prefixes = {
        (stop - (stop & -stop), stop)
        for end in range(1, num_steps + 1)
        for stop in itertools.accumulate(iter(1 << bit for bit in reversed(range(8)) if end >> bit & 1))
    }
    chosen = complete if nodes == "all" else sorted(prefixes)
    return np.array([[float(start <= step < stop) for step in range(num_steps)] for start, stop in chosen])


SCHEMES = [
    {"participation": "single"},
    {"participation": "cyclic", "separation": 1},
    {"participation": "cyclic", "separation": 3},
    {"participation": "cyclic", "separation": 20},
    {"participation": "min_separation", "separation": 1, "max_participations": 2},
    {"participation": "min_separation", "separation": 2},
    {"participation": "min_separation", "separation": 2, "max_participations": 3},
    {"participation": "min_separation", "separation": 3, "max_participations": 9},
    {"participation": "min_separation", "separation": 20},
]


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("signs", ["non-negative", "any"])
def test_matrix_against_all_patterns(scheme, signs):
    """The bracket holds what all patterns and signs attain; its lower end is what its steps attain with the best signs."""
    rng = np.random.default_rng(3)
    allowed = patterns(8, **scheme)
    for rows in (1, 5, 8, 11):
        strategy = rng.normal(size=(rows, 8)) * rng.choice([0.0, 1.0], (rows, 8))
        strategy[0] += 0.1
        strategy = np.abs(strategy) if signs == "non-negative" else strategy
        found, truth = matrix_sensitivity(strategy, **scheme), brute(strategy, allowed)
        assert found.lower <= truth * (1 + ROUNDING)
        assert truth <= found.upper
        assert any(set(found.steps) <= set(steps) for steps in allowed)
        assert found.lower == pytest.approx(brute(strategy, [list(found.steps)]), rel=1e-12)
        exact = scheme["participation"] == "single" or (signs == "non-negative" and scheme["participation"] == "cyclic")
        if exact:
            assert found.lower == pytest.approx(truth, rel=1e-12)
            assert found.upper == pytest.approx(truth, rel=1e-12)
        if signs == "non-negative":
            assert found.upper <= 1.3 * truth  # the bounds are no trivial ones


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize(
    ("coefficients", "exact"),
    [
        (square_root_coefficients(9), True),
        (square_root_coefficients(3), True),
        ([2.0, 2.0, 2.0], True),
        ([7.0], True),
        ([1.0, 0.5, 0.75, 0.125], False),
        ([1.0, -0.5, -0.125, -0.0625], False),
        ([0.0, 1.0, -1.0, 1.0], False),
        ([1.0, 0.0, 0.0, 0.9], False),
    ],
    ids=str,
)
def test_toeplitz_against_all_patterns(scheme, coefficients, exact):
    """The bracket from coefficients holds the truth, closes where it says so, and is no narrower than the matrix's."""
    for num_steps in (3, 9):
        found = matrix_sensitivity(coefficients, steps=num_steps, **scheme)
        strategy = toeplitz(coefficients, num_steps)
        truth = brute(strategy, patterns(num_steps, **scheme))
        assert found.lower <= truth * (1 + ROUNDING)
        assert truth <= found.upper
        if exact or len(coefficients) <= scheme.get("separation", num_steps):
            assert found.lower == pytest.approx(found.upper, rel=1e-12)
        assert matrix_sensitivity(strategy, **scheme).upper <= found.upper * (1 + ROUNDING)


@pytest.mark.parametrize("separation", [3, 4, 7])
@pytest.mark.parametrize("most", [1, 2, None])
def test_band_no_wider_than_the_separation(separation, most):
    """A banded matrix of any signs is exact if its band is no wider than the separation."""
    rng = np.random.default_rng(5)
    below = np.subtract.outer(np.arange(11), np.arange(11))
    strategy = np.where((below >= 0) & (below < 3), rng.normal(size=(11, 11)), 0.0)
    truth = brute(strategy, patterns(11, "min_separation", separation, most))
    found = matrix_sensitivity(strategy, participation="min_separation", separation=separation, max_participations=most)
    assert found.method == ("longest column" if most == 1 else "orthogonal columns")
    assert found.lower == pytest.approx(truth, rel=1e-12)
    assert truth <= found.upper <= truth * (1 + 1e-12)


@given(st.integers(2, 12), st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_vectors_move_no_further(num_steps, separation, dimension, seed):
    """Updates of any dimension and norm up to 1 move C x by no more than the upper end."""
    rng = np.random.default_rng(seed)
    strategy = np.tril(rng.normal(size=(num_steps, num_steps))) + 1e-3
    steps = rng.permutation(patterns(num_steps, "min_separation", separation)[-1])
    updates = rng.normal(size=(len(steps), dimension))
    updates /= np.linalg.norm(updates, axis=1, keepdims=True)
    found = matrix_sensitivity(strategy, participation="min_separation", separation=separation)
    assert np.linalg.norm(strategy[:, steps] @ updates) <= found.upper


@pytest.mark.parametrize("nodes", ["all", "prefix"])
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("num_steps", [1, 2, 7, 8, 13])
def test_tree_against_all_patterns(num_steps, scheme, nodes):
    """The bracket of a tree holds the truth; single and cyclic participation are exact; its matrix has the rows in the order of release."""
    strategy = tree(num_steps, nodes)
    rows = correlated_noise.tree_strategy(num_steps, nodes=nodes)
    assert sorted(map(tuple, rows)) == sorted(map(tuple, strategy))
    assert np.all(np.diff([np.flatnonzero(row).max() for row in rows]) >= 0)
    truth = max(np.linalg.norm(strategy[:, steps].sum(axis=1)) for steps in patterns(num_steps, **scheme))
    found = tree_sensitivity(num_steps, nodes=nodes, **scheme)
    assert found.lower <= truth * (1 + ROUNDING)
    assert truth <= found.upper <= 1.25 * truth
    assert found.lower == pytest.approx(np.linalg.norm(strategy[:, list(found.steps)].sum(axis=1)))
    if scheme["participation"] != "min_separation":
        assert found.lower == pytest.approx(found.upper, rel=1e-12) == truth


def test_tree_of_one_pass_is_the_peers():
    """One participation costs as many levels as dp_accounting counts."""
    peer = pytest.importorskip("dp_accounting")
    for num_steps in (1, 2, 3, 4, 7, 8, 9, 1000, 1023, 1024, 1025):
        event = peer.SingleEpochTreeAggregationDpEvent(3.0, [num_steps, 1])
        special = peer.NeighboringRelation.REPLACE_SPECIAL
        divergence = peer.rdp.RdpAccountant([2.0, 8.0], special).compose(event).rdp
        mechanism = tree_sensitivity(num_steps, participation="single").mechanism(3.0)
        assert hs.Accountant().compose(mechanism).rdp([2.0, 8.0]) == pytest.approx(divergence, rel=1e-12)


def test_replacement_moves_twice_as_far():
    """Under replacement the accountant takes twice the sensitivity."""
    mechanism = matrix_sensitivity(toeplitz([1, 0.5], 6), participation="single").mechanism(4.0)
    assert mechanism.mechanism.noise_multiplier == pytest.approx(4 / math.sqrt(1.25), rel=1e-12)
    assert mechanism.mechanism.noise_multiplier <= 4 / math.sqrt(1.25) <= mechanism.attained.noise_multiplier
    for adjacency, moved in (("add_or_remove", 1.0), ("replace", 2.0)):
        mu = moved * math.sqrt(1.25) / 4
        assert hs.Accountant(adjacency).compose(mechanism).delta(0.5) == pytest.approx(hs.gdp_delta(mu, 0.5), rel=1e-9)


def test_the_upper_end_counts():
    """Where the ends differ, the noise over the upper one dominates, and that over the lower one is attained."""
    found = correlated_noise.Sensitivity(2.0, 3.0, (0,), "by hand").mechanism(1.0)
    assert found.mechanism.noise_multiplier < 1 / 3
    assert found.mechanism.noise_multiplier == pytest.approx(1 / 3, rel=1e-15)
    bracket = hs.Accountant().compose(found).delta_bracket(1.0)
    assert bracket.lower == pytest.approx(hs.gdp_delta(2.0, 1.0), rel=1e-9)
    assert bracket.upper == pytest.approx(hs.gdp_delta(3.0, 1.0), rel=1e-9)


def test_rounding():
    """The upper end is above the sum of exact fractions, by little, though every square of the coefficients rounds."""
    rng = np.random.default_rng(6)
    for num_steps in (30, 300):
        coefficients = np.sort(rng.uniform(size=num_steps))[::-1]
        exact = [Fraction(c) for c in coefficients]
        columns = range(0, num_steps, num_steps // 3)
        square = sum(sum(exact[row - step] for step in columns if step <= row) ** 2 for row in range(num_steps))
        for form in ({"steps": num_steps}, {}):
            strategy = coefficients if form else toeplitz(coefficients, num_steps)
            for participation in ("cyclic", "min_separation"):
                found = matrix_sensitivity(strategy, participation=participation, separation=num_steps // 3, **form)
                assert square <= Fraction(found.upper) ** 2 <= square * (1 + Fraction(1, 10**11))


def test_scale():
    """Sensitivity is homogeneous, also where squares leave the doubles."""
    strategy = np.tril(np.ones((5, 5)))
    one = matrix_sensitivity(strategy, participation="cyclic", separation=2)
    for scale in (1e-300, 1e-200, 1e200, 1e300):
        for form in ({"strategy": scale * strategy}, {"strategy": [scale] * 5, "steps": 5}):
            found = matrix_sensitivity(**form, participation="cyclic", separation=2)
            assert found.upper == pytest.approx(one.upper * scale, rel=1e-12)
            assert found.lower == pytest.approx(one.lower * scale, rel=1e-12)


def test_independent_noise_is_dp_sgd():
    """The identity has the sensitivity of its participations; with one part cyclic sampling is DP-SGD."""
    for most in (1, 3, 10):
        found = matrix_sensitivity(
            [1.0], steps=10, participation="min_separation", separation=1, max_participations=most
        )
        assert found.upper == pytest.approx(math.sqrt(most), rel=1e-12)
    step, count = cyclic_poisson([1.0], steps=10, separation=1, sampling_rate=0.1, noise_multiplier=2.0)
    assert (step.mechanism.sampling_rate, count) == (0.1, 10)
    assert step.mechanism.mechanism.noise_multiplier == pytest.approx(2.0, rel=1e-12)
    assert step.premises().attained


def test_columns_of_other_norms():
    """The longest columns of any part dominate, one by one; those of the part whose squares add up to most are attained."""
    strategy = np.diag([1.0, 3.0, 2.0, 1.0, 1.0])
    step, count = cyclic_poisson(strategy, steps=5, separation=2, sampling_rate=0.5, noise_multiplier=6.0)
    assert count == 1
    for mechanism, lengths in ((step.mechanism, (3.0, 1.0, 1.0)), (step.attained, (3.0, 1.0))):
        sampled = [part.mechanism.noise_multiplier for part, times in mechanism.steps for _ in range(times)]
        assert sampled == pytest.approx([6.0 / length for length in lengths], rel=1e-12)


@pytest.mark.parametrize("noise", [1e20, 1e160, 1e308])
def test_noise_beyond_all_entries(noise):
    """A strategy that is nothing beside the noise has a step all the same, which leaks next to nothing; so has its lower end."""
    setting = {"steps": 4, "separation": 3, "sampling_rate": 0.5, "noise_multiplier": noise}
    for strategy in ([1e-300, 5e-324], [1.0, 1e-300], [5e-324]):
        bracket = hs.Accountant().compose(*cyclic_poisson(strategy, **setting)).delta_bracket(0.0)
        assert 0.0 <= bracket.lower <= bracket.upper <= 1e-19


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_participants_are_checked(scheme):
    """Exactly the sets of steps that some pattern holds are let through, whatever the others do."""
    allowed = [set(steps) for steps in patterns(6, **scheme)]
    for size in range(1, 7):
        for steps in itertools.combinations(range(6), size):
            participants = [["Bo"] * (step == 3) + ["Ada"] * (step in steps) for step in range(6)]
            if any(set(steps) <= pattern for pattern in allowed):
                check_participants(participants, **scheme)
            else:
                with pytest.raises(ValueError, match=r"participants\[\d\] must not have 'Ada'"):
                    check_participants(participants, **scheme)
    with pytest.raises(ValueError, match="'Cy', which was in step 0, 2 times"):
        check_participants([["Cy", "Cy"]], **scheme)
    check_participants([], **scheme)


def test_many_steps():
    """A band of a hundred over a hundred thousand steps is no work; nor is a tree over a million."""
    found = matrix_sensitivity(
        square_root_coefficients(100), steps=10**5, participation="min_separation", separation=100
    )
    whole = np.linalg.norm(square_root_coefficients(100))
    assert found.upper == pytest.approx(math.sqrt(1000) * whole, rel=1e-9)
    assert found.lower == pytest.approx(found.upper, rel=1e-9)
    assert tree_sensitivity(2**52, participation="single").upper == pytest.approx(math.sqrt(53), rel=1e-12)
    many = tree_sensitivity(10**6, participation="cyclic", separation=10**6 - 1)
    assert many.upper >= math.sqrt(20)
