"""Truncated Poisson samples of which a record is zeroed out: the lemma in fractions, small algorithms, every data set by labels."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binom

import hockeystick as hs


def kept_subsets(others, rate, most):
    """Return the exact probability of each (set of other records kept, whether the record that differs is), by all samples and subsets."""
    found: dict[tuple[frozenset[int], bool], Fraction] = {}
    everybody = range(others + 1)  # the last one differs
    for size in range(others + 2):
        for sample in itertools.combinations(everybody, size):
            subsets = list(itertools.combinations(sample, min(size, most)))
            for subset in subsets:
                key = frozenset(subset) - {others}, others in subset
                found[key] = found.get(key, 0) + rate**size * (1 - rate) ** (others + 1 - size) / len(subsets)
    return found


def labels(others, rate, most):
    """Return the proof's labels: number of others kept -> (probability, rate of the record), in fractions."""
    law = [math.comb(others, m) * rate**m * (1 - rate) ** (others - m) for m in range(others + 1)]
    rows = {k: (law[k], rate) for k in range(min(most - 1, others + 1))}
    if others >= most - 1:
        there = rate * sum(law[m] * Fraction(most, m + 1) for m in range(most - 1, others + 1))
        whole = there + (1 - rate) * law[most - 1]
        rows[most - 1] = (whole, there / whole)
        rows[most] = (1 - sum(weight for weight, _ in rows.values()), Fraction(0))
    return rows


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 3), Fraction(9, 10)])
@pytest.mark.parametrize(("others", "most"), [(o, b) for o in range(6) for b in range(1, 5)])
def test_labels_are_those_of_all_samples(others, most, rate):
    """Given how many others are kept, they are a uniform subset, and the record is kept at the label's rate, exactly."""
    rows = labels(others, rate, most)
    for (subset, there), probability in kept_subsets(others, rate, most).items():
        weight, kept = rows[len(subset)]
        assert probability == weight * (kept if there else 1 - kept) / math.comb(others, len(subset))


def output(values, rate, most, noise, edges):
    """Return the law of the noisy sum of a truncated sample on cells."""
    law = np.zeros(len(edges) - 1)
    for (subset, there), probability in kept_subsets(len(values) - 1, rate, most).items():
        total = sum(values[i] for i in subset) + (values[-1] if there else 0.0)
        law += float(probability) * np.diff(ndtr((edges - total) / noise))
    return law


def upper(step, forward, eps):
    """Return the certified delta of one step in one direction."""
    return step._pair("add_or_remove").one_step(forward, False, eps)[1]


@settings(max_examples=60)
@given(
    noise=st.floats(0.2, 3.0),
    rate=st.floats(0.05, 0.95),
    most=st.integers(1, 4),
    others=st.lists(st.floats(-1, 1), min_size=0, max_size=4),
    unused=st.integers(0, 20),
    mine=st.floats(-1, 1),
    eps=st.floats(0.0, 4.0),
)
def test_no_algorithm_leaks_more(noise, rate, most, others, unused, mine, eps):  # noqa: PLR0917
    """Whatever the records contribute, and however few they are, both directions stay below; so does a Poisson sample of the records."""
    number = len(others) + 1 + unused
    step = hs.TruncatedPoissonSampled(hs.Gaussian(noise), number, rate, most, zeroed_out=True)
    edges = np.linspace(-7 - 8 * noise, 7 + 8 * noise, 1_500)  # merging outcomes only lowers delta
    with_mine, without = (output([*others, value], rate, most, noise, edges) for value in (mine, 0.0))
    for forward, p, q in ((True, with_mine, without), (False, without, with_mine)):
        assert np.sum(np.maximum(p - math.exp(eps) * q, 0.0)) <= upper(step, forward, eps) + 1e-12
    sampled = hs.PoissonSampled(step, 0.5)
    halves = [np.zeros(len(edges) - 1) for _ in range(2)]
    for flags in itertools.product((False, True), repeat=len(others)):
        here = [value for value, flag in zip(others, flags, strict=True) if flag]
        absent = output(here or [0.0], rate, most, noise, edges)
        present = [output([*here, value], rate, most, noise, edges) for value in (mine, 0.0)]
        halves = [half + 0.5 ** len(flags) * (absent + law) / 2 for half, law in zip(halves, present, strict=True)]
    for forward, p, q in ((True, *halves), (False, *halves[::-1])):
        assert np.sum(np.maximum(p - math.exp(eps) * q, 0.0)) <= upper(sampled, forward, eps) + 1e-12


@pytest.mark.share(3)
@pytest.mark.parametrize("noise", [0.4, 1.0])
@pytest.mark.parametrize(("others", "rate", "most"), [(3, 0.3, 2), (4, 0.1, 1), (5, 0.4, 4), (4, 0.9, 2)])
def test_no_two_steps_leak_more(others, rate, most, noise):
    """Two steps on one data set, or on two of opposite contributions, stay below the bracket, and one is above its lower end."""
    step = hs.TruncatedPoissonSampled(hs.Gaussian(noise), others + 1, rate, most, zeroed_out=True)
    edges = np.linspace(-7 - 8 * noise, 7 + 8 * noise, 400)
    pairs = []
    for value in (-1.0, 0.0, 1.0):
        p, q = (output([*[value] * others, mine], rate, most, noise, edges) for mine in (1.0, 0.0))
        pairs += [(p, q), (q, p)]
    for eps in (0.0, 0.3, 1.0, 2.0):
        bracket = hs.Accountant().compose(step, 2).delta_bracket(eps)
        for (p1, q1), (p2, q2) in itertools.combinations_with_replacement(pairs, 2):
            attained = np.sum(np.maximum(np.outer(p1, p2) - math.exp(eps) * np.outer(q1, q2), 0.0))
            assert attained <= bracket.upper * (1 + 1e-9) + 1e-12
        one = hs.Accountant().compose(step).delta_bracket(eps)
        largest = max(np.sum(np.maximum(p - math.exp(eps) * q, 0.0)) for p, q in pairs)
        assert one.lower * 0.99 <= largest <= one.upper * (1 + 1e-9) + 1e-12


def divergence(moved, shift, gamma):
    """Return E_gamma of (1 - moved) N(0, 1) + moved N(shift, 1) against N(0, 1)."""
    if gamma <= 1 - moved or moved == 0:
        return max(1.0 - gamma, 0.0)
    cut = math.log((gamma - 1 + moved) / moved) / shift + shift / 2
    return (1 - moved - gamma) * ndtr(-cut) + moved * ndtr(shift - cut)


def rows_by_number(others, rate, most):
    """Return (weight, rate) of the proof's labels: fewer others than leave one place, one place, none."""
    law = binom(others, rate)
    last, full = float(law.pmf(most - 1)), float(law.sf(most - 1))
    extra = float(binom(others + 1, rate).sf(most)) * most / (others + 1)
    rows = [(float(law.cdf(most - 2)), rate), (full - extra, 0.0)]
    return [*rows, (last + extra, (rate * last + extra) / (last + extra))] if last + extra > 0 else rows


@pytest.mark.slow
def test_every_smaller_data_set_leaks_less():
    """The pair lies above the labelled one of every number of other records, at every gamma."""
    rng = np.random.default_rng(6)
    compared = 0
    for _ in range(80):
        others, rate, shift = int(rng.integers(2, 60)), rng.uniform(0.01, 0.9), rng.uniform(0.3, 6)
        most = int(rng.integers(1, others + 1))
        step = hs.TruncatedPoissonSampled(hs.Gaussian(1 / shift), others + 1, rate, most, zeroed_out=True)
        numbers = [rows_by_number(number, rate, most) for number in range(1, others + 1)]
        for gamma in np.concatenate([np.exp(rng.uniform(-2, 4, 4)), 1 - rate * rng.uniform(0, 1, 3)]):
            eps = math.log(gamma)
            # the curve below gamma = 1 is that of the reverse direction
            found = upper(step, True, eps) if gamma >= 1 else 1 - gamma + gamma * upper(step, False, -eps)
            for rows in numbers:
                shown = sum(weight * divergence(kept, shift, gamma) for weight, kept in rows)
                assert shown <= found * (1 + 1e-9) + 1e-12
                compared += 1
    assert compared > 10_000


def test_a_record_that_leaves_is_not_enough():
    """A data set of clear labels leaks more, where a record is zeroed out, than the pair of a record that leaves allows."""
    others, rate, most, shift = 3, 0.5, 2, 40.0
    leaves = hs.TruncatedPoissonSampled(hs.Gaussian(1 / shift), others + 1, rate, most)
    zeroed = hs.TruncatedPoissonSampled(hs.Gaussian(1 / shift), others + 1, rate, most, zeroed_out=True)
    edges = np.linspace(-4, 4, 40_001)
    p, q = (output([1.0] * others + [mine], Fraction(1, 2), most, 1 / shift, edges) for mine in (-1 / 3, 0.0))
    eps = math.log(2)  # gamma = 1/2 = 1 - rate, from the other side
    attained = np.sum(np.maximum(q - math.exp(eps) * p, 0.0))
    assert attained <= upper(zeroed, False, eps)
    assert attained > upper(leaves, False, eps)


def test_what_leaks_nothing_more():
    """A batch for everybody is a Poisson sample, and replacing a record leaks what it did."""
    everybody = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 0.05, 200, zeroed_out=True)
    assert everybody._pair("add_or_remove") == hs.PoissonSampled(hs.Gaussian(1.0), 0.05)._pair("add_or_remove")
    two = [hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 200, 0.05, 12, zeroed_out=z) for z in (False, True)]
    assert two[0]._pair("replace") == two[1]._pair("replace")
    assert two[0]._pair("add_or_remove") != two[1]._pair("add_or_remove")
    rare = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 1000, 0.01, 20, zeroed_out=True)
    whole = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 100).epsilon(1e-5)
    assert whole * 0.99 <= hs.Accountant().compose(rare, 100).epsilon(1e-5) <= 1.02 * whole


def test_state_and_words():
    """A state holds the word; one of an older version, without it, is of a record that comes or goes; explanations say it."""
    step = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.05, 9, zeroed_out=True)
    accountant = hs.Accountant().compose(step, 3)
    state = accountant.state_dict()
    assert hs.Accountant.from_state_dict(state).ledger == accountant.ledger
    del state["steps"][0]["mechanism"]["zeroed_out"]
    older = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.05, 9)
    assert hs.Accountant.from_state_dict(state).ledger == {older: 3}
    assert "keeps its place" in str(accountant.explain(eps=1.0))
    with pytest.raises(TypeError, match="zeroed_out must be True or False, not 1"):
        hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.05, 9, zeroed_out=1)
