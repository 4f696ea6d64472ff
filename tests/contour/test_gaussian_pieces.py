"""Cumulants of Gaussian mixtures against mpmath's quadrature: moments, nodes, decay; and brackets of few steps."""

from __future__ import annotations

import itertools
import math
import random
from typing import NamedTuple

import mpmath
import numpy as np
import pytest

import effort
from hockeystick import _core

CUTOFF = 26.0  # what is left out beyond is below 1e-25 of every moment here


def density_ratio(x, rate, shifts, weights):
    """Return the density of (1-q) N(0,1) + q sum_k w_k N(r_k,1) over that of N(0,1)."""
    grown = mpmath.fsum(w * mpmath.exp(r * x - mpmath.mpf(r) ** 2 / 2) for r, w in zip(shifts, weights, strict=True))
    return (1 - mpmath.mpf(rate)) + mpmath.mpf(rate) * grown


def exact_nodes(degree=30):
    """Return the rule of Gauss and Legendre to all digits; numpy's is its start."""
    rule = []
    for start in np.polynomial.legendre.leggauss(degree)[0]:
        x = mpmath.findroot(lambda t: mpmath.legendre(degree, t), mpmath.mpf(float(start)))
        slope = degree * (mpmath.legendre(degree - 1, x) - x * mpmath.legendre(degree, x)) / (1 - x * x)
        rule.append((x, 2 / ((1 - x * x) * slope**2)))
    return rule


class Law:
    """A law of losses: strands (density of P, loss) on ranges of x, and an atom at loss 0."""

    rule = None

    def __init__(self, strands, atom=0, slope=1.0):
        """Take (log density of P, loss, low, high) of every strand."""
        self.strands, self.atom, self.slope = strands, atom, slope

    def moment(self, s):
        """Return E_P e^{sL}."""
        if Law.rule is None:
            Law.rule = exact_nodes()
        total = mpmath.mpf(self.atom)
        for log_density, loss, low, high in self.strands:
            panels = int((high - low) * (0.4 + 0.1 * self.slope * (2 + abs(mpmath.im(s))))) + 2
            half = (mpmath.mpf(high) - low) / (2 * panels)
            for i in range(panels):
                centre = low + (2 * i + 1) * half
                for x, w in Law.rule:
                    at = centre + half * x
                    total += w * half * mpmath.exp(log_density(at) + s * loss(at))
        return total


def log_normal(x):
    """Return the logarithm of the standard normal density."""
    return -x * x / 2 - mpmath.log(2 * mpmath.pi) / 2


def mixture_law(rate, shifts, weights, forward, share=1, *, log_ratio=0):
    """Return the law of a sampled mixture against N(0,1), or the reverse; its mass is `share` under Q."""

    def loss(x):
        value = mpmath.log(density_ratio(x, rate, shifts, weights)) + log_ratio
        return value if forward else -value

    def log_density(x):
        return log_normal(x) + mpmath.log(share) + (loss(x) if forward else 0)

    return Law([(log_density, loss, -12, 12 + 3 * max(shifts))], slope=max(shifts))


def replaced_law(rate, shift, share=1):
    """Return the law where a record of a Poisson sample is replaced."""

    def ratio(x):
        return density_ratio(x, rate, [shift], [1])

    def loss(x):
        return mpmath.log(ratio(x)) - mpmath.log(ratio(-x))

    def log_density(x):
        return log_normal(x) + mpmath.log(share) + mpmath.log(ratio(x))

    return Law([(log_density, loss, -12 - 3 * shift, 12 + 3 * shift)], slope=2 * shift)


def fixed_size_law(rate, shift, share=1):
    """Return the law where a record of a batch of fixed size is replaced."""

    def loss(x):
        return mpmath.log(density_ratio(x, rate, [shift], [1]))

    high, low = 12 + 3 * shift, mpmath.mpf(shift) / 2
    upper = (lambda x: log_normal(x) + mpmath.log(share) + loss(x), loss, low, high)
    lower = (lambda x: log_normal(x) + mpmath.log(share), lambda x: -loss(x), low, high)
    atom = share * (1 - mpmath.mpf(rate)) * mpmath.erf(mpmath.mpf(shift) / (2 * mpmath.sqrt(2)))
    return Law([upper, lower], atom, slope=shift)


def joined(laws):
    """Return the law that shows which of several laws it is of."""
    return Law(
        [strand for law in laws for strand in law.strands],
        sum(law.atom for law in laws),
        max(law.slope for law in laws),
    )


class Case(NamedTuple):
    """What the members of the families differ by."""

    rate: float
    shift: float
    forward: bool
    share: float  # of truncated samples
    replace: bool


def sampled_mixture(case):
    """Return a mixture's pair on a Poisson sample, and its law."""
    shifts, weights = [case.shift, 1.7 * case.shift], [0.75, 0.25]
    pair = _core.poisson_sampled(_core.gaussian_mixture(shifts, weights), case.rate)
    return pair, mixture_law(case.rate, shifts, weights, case.forward)


def whole_mixture(case):
    """Return a mixture's pair without sampling, and its law."""
    shifts, weights = [case.shift, 1.7 * case.shift], [0.75, 0.25]
    return _core.gaussian_mixture(shifts, weights), mixture_law(1, shifts, weights, case.forward)


def replaced(case):
    """Return the pair where a record of a Poisson sample is replaced, and its law."""
    return _core.replaced_gaussian(case.shift, case.rate), replaced_law(case.rate, case.shift)


def fixed_size(case):
    """Return the pair where a record of a batch of fixed size is replaced, and its law."""
    return _core.fixed_size_sampled(_core.gaussian_of_shift(case.shift), case.rate), fixed_size_law(
        case.rate, case.shift
    )


def labelled(case):
    """Return the same where the record may be in the batch twice, which is shown."""
    shifts, weights = [case.shift, 1.7 * case.shift], [0.75, 0.25]
    laws = [fixed_size_law(case.rate, r, mpmath.mpf(w)) for r, w in zip(shifts, weights, strict=True)]
    return _core.fixed_size_sampled(_core.labelled_gaussian(shifts, weights), case.rate), joined(laws)


def truncated(case):
    """Return the pair of a truncated sample, of which a record is removed or replaced, and its law."""
    q, r, last, excess, swapped = mpmath.mpf(case.rate), case.shift, case.share / 4, 0.5, case.share
    pair = _core.truncated_poisson(r, case.rate, last, excess, swapped, case.replace)
    first, fuller = 1 - last * (1 + excess) - swapped, 1 + q * excess
    if not case.replace:
        rows = [
            (q, r, first, 1),
            (q * (1 + excess) / fuller, r, last, fuller),
            (0, r, last * excess, 1 - q),
            (q, 2 * r, swapped, 1),
        ]
        return pair, joined(
            [mixture_law(q, [r], [1], case.forward, w, log_ratio=mpmath.log(ratio)) for q, r, w, ratio in rows]
        )
    law = joined(
        [
            replaced_law(q, r, first),
            replaced_law(q * (1 + excess) / fuller, r, last * fuller),
            fixed_size_law(q, 2 * r, swapped),
        ]
    )
    return pair, Law(law.strands, law.atom + last * excess * (1 - q), law.slope)


def zeroed(case):
    """Return the pair of a truncated sample, of which a record is zeroed out, and its law."""
    q, r, last, excess, swapped = mpmath.mpf(case.rate), case.shift, case.share / 4, 0.5, case.share
    pair = _core.truncated_poisson(r, case.rate, last, excess, swapped, 2)
    fuller = 1 + q * excess
    law = joined(
        [
            mixture_law(q, [r], [1], case.forward, 1 - last * (1 + excess) - swapped),
            mixture_law(q * (1 + excess) / fuller, [r], [1], case.forward, last * fuller),
            fixed_size_law(q, 2 * r, swapped),
        ]
    )
    return pair, Law(law.strands, law.atom + last * excess * (1 - q), law.slope)


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


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("family", "seed"), effort.some_quick([(family, seed) for seed in range(2) for family in FAMILIES], every=2)
)
def test_moments_nodes_and_decay_are_right_within_their_own_errors(family, seed):
    """Log M(c), phi at the nodes and its bound beyond them against mpmath; the errors are honest and small."""
    mpmath.mp.dps = 24
    draw = random.Random(f"{family.__name__}{seed}")
    case = random_case(draw)
    pair, law = family(case)
    for c in (draw.uniform(-0.9, -0.1), 10 ** draw.uniform(-1, 0.3)):
        whole = law.moment(mpmath.mpf(c))
        spread = mpmath.sqrt(20 * abs(mpmath.log(law.moment(mpmath.mpf("-0.5")))))
        h = min(float(10 ** draw.uniform(-1, 0.5) / spread), 8.0)
        ((value, error), rows), log_missing = _core.pair_nodes(pair, case.forward, CUTOFF, c, h, 4)
        assert log_missing < -300.0
        assert abs(value - mpmath.log(whole)) <= error + 1e-25
        assert error < 1e-12
        assert len(rows) == 5
        for k in (1, 4):
            log_size, phase, node_error, decay = rows[k]
            phi = law.moment(mpmath.mpc(c, k * h)) / whole
            told = mpmath.exp(mpmath.mpc(log_size, phase))
            assert abs(told - phi) <= node_error * abs(phi) + 1e-25
            assert node_error * abs(phi) < 1e-11
            assert mpmath.log(abs(phi)) <= decay * (1 - 1e-12)
            assert decay <= 0.0


def test_a_pair_without_a_cumulant_is_refused():
    """Nothing is said about a pair whose law is not made of points."""
    with pytest.raises(ValueError, match="pair must have a cumulant"):
        _core.pair_nodes(_core.bounded_range(1.0), True, CUTOFF, 1.0, 1.0, 4)


RULE = np.polynomial.legendre.leggauss(48)


def log_ratio(x, case, shift, sign=1.0):
    """Return log(1-q + q e^{rx - r^2/2}) in doubles."""
    t = sign * shift * x - shift**2 / 2
    z = case.rate * np.expm1(t)
    return np.where(z > -0.5, np.log1p(np.maximum(z, -0.5)), np.log((1 - case.rate) + case.rate * np.exp(t)))


def double_strands(family, case):
    """Return the strands of a law in doubles, (log of P's density, loss, low, high, direction), and its atom."""
    low, high, shift = -12.0, 12.0 + 3 * case.shift, case.shift
    base = -math.log(2 * math.pi) / 2
    if family is replaced:

        def difference(x):
            return log_ratio(x, case, shift) - log_ratio(x, case, shift, -1.0)

        return [(lambda x: base - x * x / 2 + log_ratio(x, case, shift), difference, -high, high, 1)], 0.0
    upper = (
        lambda x: base - x * x / 2 + log_ratio(x, case, shift),
        lambda x: log_ratio(x, case, shift),
        shift / 2,
        high,
        1,
    )
    lower = (lambda x: base - x * x / 2, lambda x: -log_ratio(x, case, shift), shift / 2, high, -1)
    if family is fixed_size:
        return [upper, lower], (1 - case.rate) * math.erf(shift / math.sqrt(8))
    strand = upper if case.forward else lower
    return [(*strand[:2], low, high, strand[4])], 0.0


def cut(strand, loss):
    """Return where the loss of a strand is `loss`, or the end of its range next to it; for an array of losses."""
    _, of, low, high, direction = strand
    left, right = np.full_like(loss, low), np.full_like(loss, high)
    for _ in range(60):
        middle = (left + right) / 2
        above = direction * (of(middle) - loss) > 0
        left, right = np.where(above, left, middle), np.where(above, middle, right)
    return (left + right) / 2


def over(f, low, high, panels):
    """Integrate f(x) over [low, high], arrays of the same shape."""
    total = 0.0
    for i in range(panels):
        half = (high - low) / (2 * panels)
        centre = low + (2 * i + 1) * half
        x = centre[..., None] + half[..., None] * RULE[0]
        total = total + (f(x) * RULE[1]).sum(-1) * half
    return total


def above(strand, eps):
    """Return what one strand adds to delta(eps), without cancellation."""
    log_density, loss, low, high, direction = strand
    at = cut(strand, eps)
    start, end = (at, np.full_like(at, high)) if direction > 0 else (np.full_like(at, low), at)
    return over(lambda x: np.exp(log_density(x)) * -np.expm1(np.minimum(eps[..., None] - loss(x), 0.0)), start, end, 12)


def one_step(strands, atom, eps):
    """Return delta(eps) of one step."""
    return atom * np.maximum(-np.expm1(eps), 0.0) + sum(above(strand, eps) for strand in strands)


def two_steps(strands, atom, eps, least):
    """Return delta(eps) of two steps: the mean of one step's delta over the other's loss, which is `least` or more."""
    total = atom * one_step(strands, atom, np.array([eps]))[0]
    for strand in strands:
        log_density, loss, low, high, _ = strand
        # one step's delta has a kink at 0, and is infinitely flat at the least loss
        kink, flat = cut(strand, np.array([eps, eps - least]))
        breaks = {kink, flat, *(flat + side * 0.5**k for side in (-1, 1) for k in range(16))}
        ends = [low, *sorted(x for x in breaks if low < x < high), high]
        for left, right in itertools.pairwise(ends):
            x = np.concatenate([left + (right - left) * (i + (RULE[0] + 1) / 2) / 4 for i in range(4)])
            weight = np.tile(RULE[1], 4) * (right - left) / 8
            total += (weight * np.exp(log_density(x)) * one_step(strands, atom, eps - loss(x))).sum()
    return total


def gaussian_sample(case):
    """Return a truncated Poisson sample that is never truncated, nearly: one record is removed."""
    return _core.truncated_poisson(case.shift, case.rate, 0.0, 0.0, 1e-300, False), None


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("family", "seed"), effort.some_quick(itertools.product([replaced, fixed_size, gaussian_sample], range(4)), every=5)
)
def test_two_steps_lie_in_the_bracket(family, seed):
    """Delta of two steps, by quadrature over one step's loss, lies between the contour's certified ends."""
    draw = random.Random(f"two {family.__name__}{seed}")
    case = random_case(draw)._replace(rate=10 ** draw.uniform(-2, -0.4), shift=draw.uniform(0.5, 1.7), forward=True)
    strands, atom = double_strands(family, case)
    for eps in (0.05, 0.3, 1.0):
        found = _core.contour_bracket([(family(case)[0], 2.0)], case.forward, False, eps)
        exact = two_steps(strands, atom, eps, math.log1p(-case.rate))
        assert found["lower"] <= exact * (1 + 1e-10)
        assert found["upper"] >= exact * (1 - 1e-10)
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
