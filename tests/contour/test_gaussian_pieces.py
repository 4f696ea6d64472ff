"""Cumulants of Gaussian mixtures against quadrature in extended precision: moments, nodes, decay; and brackets of two steps."""

import math
import random
from typing import NamedTuple

import mpmath
import numpy as np
import pytest

from enumeration import encloses
from hockeystick import _core
from loss_pieces import DIGITS, EXTENDED, Law, Strand, log_normal, log_ratio, mixture_law, two_steps

CUTOFF = 26.0  # what is left out beyond is below 1e-25 of every moment here


def replaced_law(rate, shift, share=1):
    """Return the law where a record of a Poisson sample is replaced."""
    loss = lambda x: log_ratio(x, rate, [shift]) - log_ratio(-x, rate, [shift])
    log_density = lambda x: log_normal(x, share) + log_ratio(x, rate, [shift])
    return Law([Strand(log_density, loss, -12 - 3 * shift, 12 + 3 * shift)], [], slope=2 * shift)


def fixed_size_law(rate, shift, share=1):
    """Return the law where a record of a batch of fixed size is replaced."""
    loss = lambda x: log_ratio(x, rate, [shift])
    log_density = lambda x: log_normal(x, share)
    ends = EXTENDED(shift) / 2, 12 + 3 * shift
    with mpmath.workdps(25):
        inside = EXTENDED(mpmath.nstr(mpmath.erf(mpmath.mpf(shift) / (2 * mpmath.sqrt(2))), 24))
    strands = [Strand(lambda x: log_density(x) + loss(x), loss, *ends), Strand(log_density, lambda x: -loss(x), *ends)]
    return Law(strands, [(0, share * (1 - EXTENDED(rate)) * inside)], slope=shift)


def joined(laws, atom=0):
    """Return the law that shows which of several laws it is of."""
    strands, atoms = ([part for law in laws for part in law[k]] for k in (0, 1))
    return Law(strands, [*atoms, (0, atom)], max(law.slope for law in laws))


class Case(NamedTuple):
    """What the members of the families differ by."""

    rate: float
    shift: float
    forward: bool
    share: float  # of truncated samples
    replace: bool

    @property
    def mixture(self):
        """Return shifts and weights."""
        return [self.shift, 1.7 * self.shift], [0.75, 0.25]


def sampled_mixture(case):
    """Return a mixture's pair on a Poisson sample, and its law."""
    pair = _core.poisson_sampled(_core.gaussian_mixture(*case.mixture), case.rate)
    return pair, mixture_law(case.rate, *case.mixture, case.forward)


def whole_mixture(case):
    """Return a mixture's pair without sampling, and its law."""
    return _core.gaussian_mixture(*case.mixture), mixture_law(1, *case.mixture, case.forward)


def replaced(case):
    """Return the pair where a record of a Poisson sample is replaced, and its law."""
    return _core.replaced_gaussian(case.shift, case.rate), replaced_law(case.rate, case.shift)


def fixed_size(case):
    """Return the pair where a record of a batch of fixed size is replaced, and its law."""
    pair = _core.fixed_size_sampled(_core.gaussian_of_shift(case.shift), case.rate)
    return pair, fixed_size_law(case.rate, case.shift)


def labelled(case):
    """Return the same where the record may be in the batch twice, which is shown."""
    laws = [fixed_size_law(case.rate, r, w) for r, w in zip(*case.mixture, strict=True)]
    return _core.fixed_size_sampled(_core.labelled_gaussian(*case.mixture), case.rate), joined(laws)


def sample(case, kind):
    """Return the pair of a truncated sample of a kind, and its rates, its shares and the atom of its law."""
    q, last, excess, swapped = EXTENDED(case.rate), EXTENDED(case.share) / 4, 0.5, EXTENDED(case.share)
    pair = _core.truncated_poisson(case.shift, case.rate, case.share / 4, excess, case.share, kind)
    fuller = 1 + q * excess
    return pair, (q, q * (1 + excess) / fuller), (1 - last * (1 + excess) - swapped, last, swapped), fuller


def truncated(case):
    """Return the pair of a truncated sample, of which a record is removed or replaced, and its law."""
    pair, (q, full), (first, last, swapped), fuller = sample(case, int(case.replace))
    r, excess = case.shift, 0.5
    if case.replace:
        laws = [replaced_law(q, r, first), replaced_law(full, r, last * fuller), fixed_size_law(q, 2 * r, swapped)]
        return pair, joined(laws, last * excess * (1 - q))
    rows = [(q, r, first, 1), (full, r, last, fuller), (0, r, last * excess, 1 - q), (q, 2 * r, swapped, 1)]
    return pair, joined([mixture_law(q, [r], [1], case.forward, w, ratio=ratio) for q, r, w, ratio in rows])


def zeroed(case):
    """Return the pair of a truncated sample, of which a record is zeroed out, and its law."""
    pair, (q, full), (first, last, swapped), fuller = sample(case, 2)
    removed = [mixture_law(q, [case.shift], [1], case.forward, w) for q, w in ((q, first), (full, last * fuller))]
    return pair, joined([*removed, fixed_size_law(q, 2 * case.shift, swapped)], last * 0.5 * (1 - q))


def gaussian_sample(case):
    """Return a truncated Poisson sample that is never truncated, nearly, one record removed, and its law."""
    pair = _core.truncated_poisson(case.shift, case.rate, 0.0, 0.0, 1e-300, False)
    return pair, mixture_law(case.rate, [case.shift], [1], True)


FAMILIES = [sampled_mixture, whole_mixture, replaced, fixed_size, labelled, truncated, zeroed]


def random_case(draw):
    """Return a random case."""
    return Case(
        rate=10 ** draw.uniform(-4, -0.4),
        shift=math.exp(draw.uniform(math.log(0.1), math.log(1.7))),
        forward=draw.random() < 0.5,
        share=draw.choice([0.125, 2.0**-20]),
        replace=draw.random() < 0.5,
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(2))
def test_moments_nodes_and_decay_are_right_within_their_own_errors(family, seed):
    """Log M(c), phi at the nodes and its bound beyond them against quadrature; the errors are honest and small."""
    draw = random.Random(f"{family.__name__}{seed}")
    case = random_case(draw)
    pair, law = family(case)
    for c in (draw.uniform(-0.9, -0.1), 10 ** draw.uniform(-1, 0.3)):
        whole = law.moment(EXTENDED(c))
        spread = math.sqrt(20 * abs(math.log(law.moment(EXTENDED(-0.5)))))
        h = min(10 ** draw.uniform(-1, 0.5) / spread, 8.0)
        ((value, error), rows), log_missing = _core.pair_nodes(pair, case.forward, CUTOFF, c, h, 4)
        assert log_missing < -300.0
        assert abs(value - np.log(whole)) <= error + DIGITS
        assert error < 1e-12
        assert len(rows) == 5
        for k in (1, 4):
            log_size, phase, node_error, decay = rows[k]
            phi = law.moment(np.clongdouble(complex(c, k * h))) / whole
            told = np.exp(EXTENDED(log_size) + 1j * EXTENDED(phase))
            assert abs(told - phi) <= node_error * abs(phi) + DIGITS
            assert node_error * abs(phi) < 1e-11
            assert np.log(abs(phi)) <= decay * (1 - 1e-12)
            assert decay <= 0.0


def test_a_pair_without_a_cumulant_is_refused():
    """Nothing is said about a pair whose law is not made of points."""
    with pytest.raises(ValueError, match="pair must have a cumulant"):
        _core.pair_nodes(_core.bounded_range(1.0), True, CUTOFF, 1.0, 1.0, 4)


@pytest.mark.share(6, by_day=3)
@pytest.mark.parametrize("family", [replaced, fixed_size, gaussian_sample, whole_mixture, sampled_mixture])
@pytest.mark.parametrize("seed", range(4))
def test_two_steps_lie_in_the_bracket(family, seed):
    """Delta of two steps, by quadrature over one step's loss, lies between the contour's certified ends."""
    draw = random.Random(f"two {family.__name__}{seed}")
    case = random_case(draw)._replace(rate=10 ** draw.uniform(-2, -0.4), shift=draw.uniform(0.5, 1.7), forward=True)
    pair, law = family(case)
    for eps in (0.05, 0.3, 1.0):
        found = _core.contour_bracket([(pair, 2.0)], case.forward, False, eps)
        exact = two_steps(law, eps, [math.log1p(-case.rate)])
        encloses((found["lower"], found["upper"]), exact, 1e-10)
        assert found["upper"] - found["lower"] <= 2e-3 * exact


def test_a_rare_atom_keeps_the_mass_of_the_other_law():
    """Where nearly all are drawn, a truncated sample's last label is rarer under P by 1 - q. A nearby rate has nearly the same delta."""
    deltas = []
    for rest in (6e-15, 4e-15):
        pair = _core.truncated_poisson(1e-6, 1 - rest, 8e-19, 0.5, 0.0, False)
        deltas.append(_core.contour_bracket([(pair, 1e12)], True, False, 0.5))
    # one step of both differs by 2e-15 r/sqrt(2 pi) in total variation
    assert deltas[1]["upper"] >= deltas[0]["lower"] - 1e-9
    assert deltas[0]["upper"] >= deltas[1]["lower"] - 1e-9
