"""No certified delta of a profile is below the exact one, however hostile the numbers; the lower ends are not above it.

A true pair of two to five outcomes gives its exact curve at some epsilons, rounded up: the numbers of a user. The
exact delta of the pair is then compared with the certified ends.
"""

from __future__ import annotations

import math
import random

import mpmath as mp
import pytest

import effort
import hockeystick as hs

DIGITS = 720  # masses of 1e-326 are added to 1, and their squares


def two_losses(rng):
    """Return one positive and one negative loss, of any sizes: curves that are straight through epsilon 0."""
    up, down = mp.mpf(10) ** rng.uniform(-3, 1.6), mp.mpf(10) ** rng.uniform(-3, 1.6)
    q = -mp.expm1(-down) / (mp.exp(up) - mp.exp(-down))
    return [mp.exp(up) * q, mp.exp(-down) * (1 - q)], [q, 1 - q]


def nearly_straight(rng):
    """Return two losses, and outcomes of little mass between them."""
    p, q = two_losses(rng)
    for _ in range(rng.randint(1, 3)):
        mass, loss = mp.mpf(10) ** rng.uniform(-20, -3), mp.mpf(rng.uniform(-2, 2)) * mp.mpf(10) ** rng.uniform(-12, 0)
        p.append(mass * mp.exp(loss))
        q.append(mass)
    return [mass / mp.fsum(p) for mass in p], [mass / mp.fsum(q) for mass in q]


def denormal(rng):
    """Return masses that doubles barely hold, and infinite losses."""
    exponents = [rng.uniform(-326, -280) if rng.random() < 0.5 else rng.uniform(-30, 0) for _ in range(6)]
    p, q = [mp.mpf(10) ** e for e in exponents[:3]], [mp.mpf(10) ** e for e in exponents[3:]]
    if rng.random() < 0.5:
        p.append(mp.mpf(0))
        q.append(mp.mpf(10) ** rng.uniform(-320, 0))
    return [mass / mp.fsum(p) for mass in p], [mass / mp.fsum(q) for mass in q]


def one_sided(rng):
    """Return an outcome that only one data set has, and the other law on a single loss or two."""
    share, second = mp.mpf(10) ** rng.uniform(-18, -0.01), mp.mpf(rng.random()) * mp.mpf(10) ** rng.uniform(-9, 0)
    p, q = [share, (1 - share) * (1 - second), (1 - share) * second], [mp.mpf(0), mp.mpf(1), mp.mpf(0)]
    if rng.random() < 0.5:
        q = [mp.mpf(0), 1 - second / 2, second / 2]
    return (p, q) if rng.random() < 0.5 else (q, p)


def ordinary(rng):
    """Return a few outcomes of ordinary masses."""
    size = rng.randint(2, 5)
    p, q = ([mp.mpf(rng.random()) + 1e-9 for _ in range(size)] for _ in range(2))
    return [mass / mp.fsum(p) for mass in p], [mass / mp.fsum(q) for mass in q]


FAMILIES = (two_losses, nearly_straight, denormal, one_sided, ordinary)


def divergence(p, q, eps):
    """Return the exact sum of max(p - e^eps q, 0)."""
    factor = mp.exp(mp.mpf(eps))
    return min(mp.fsum(max(a - factor * b, 0) for a, b in zip(p, q, strict=True)), mp.mpf(1))


def rounded_up(value):
    """Return the smallest double that is not below."""
    nearest = float(value)
    return min(nearest if mp.mpf(nearest) >= value else math.nextafter(nearest, math.inf), 1.0)


def profile_of(rng, p, q):
    """Return a profile of the pair at some epsilons, among them its own losses; for one direction or for two."""
    losses = [abs(float(mp.log(a / b))) for a, b in zip(p, q, strict=True) if a > 0 and b > 0]
    chosen = {loss * (1.0 + rng.choice([0.0, 1e-9, -1e-3])) for loss in losses if rng.random() < 0.7}
    chosen |= {10.0 ** rng.uniform(-9, 1.6) for _ in range(rng.randint(0, 4))}
    epsilons = [0.0, *sorted(eps for eps in chosen if 0.0 < eps <= 600.0)]
    remove, add = ([rounded_up(divergence(*laws, eps)) for eps in epsilons] for laws in ((p, q), (q, p)))
    remove[0] = add[0] = max(remove[0], add[0])
    if rng.random() < 0.25:
        remove, add = [max(pair) for pair in zip(remove, add, strict=True)], None
    return hs.PrivacyProfile(epsilons, remove, add)


def composed(law):
    """Return the law of two independent outcomes."""
    return [a * b for a in law for b in law]


def faults(seed):
    """Return what is wrong with the certified ends of one profile, in words."""
    rng = random.Random(seed)
    with mp.workdps(DIGITS):
        p, q = FAMILIES[seed % len(FAMILIES)](rng)
        profile = profile_of(rng, p, q)
        numbers = profile.remove if profile.add is None else profile.add
        found = []
        if abs(sum_of(profile, 0) - 1) > 4e-15 or abs(sum_of(profile, 1) - 1) > 4e-15:
            found.append(f"{seed}: sums {sum_of(profile, 0)}, {sum_of(profile, 1)}")
        lower = profile._pairs("replace", upper=False)
        for eps in [*profile.epsilons, rng.uniform(0.0, 1.2 * profile.epsilons[-1] + 0.1)]:
            for forward, laws in ((True, (p, q)), (False, (q, p))):
                truth = divergence(*laws, eps)
                upper = profile._dominating.one_step(forward, False, eps)[1]
                if upper < truth:
                    found.append(f"{seed}: delta({eps!r}) {upper!r} < {mp.nstr(truth, 20)}")
            for at, (remove, add) in zip(profile.epsilons, zip(profile.remove, numbers, strict=True), strict=True):
                for forward, number in ((True, remove), (False, add)):
                    if at == eps and lower and lower[0][0].one_step(forward, False, eps)[0] > number:
                        found.append(f"{seed}: the lower end of delta({eps!r}) is above {number!r}")
        if seed % 7 == 0:
            twice = hs.Accountant().compose(profile, 2)
            for eps in (profile.epsilons[-1], rng.uniform(0.0, 2.0 * profile.epsilons[-1])):
                truth = max(
                    divergence(composed(p), composed(q), eps),
                    divergence(composed(q), composed(p), eps),
                )
                if (upper := twice.delta(eps)) < truth:
                    found.append(f"{seed}: composed, delta({eps!r}) {upper!r} < {mp.nstr(truth, 20)}")
    return found


def sum_of(profile, law):
    """Return the exact sum of the masses of P, or of Q."""
    masses = profile._dominating.parameters
    half = len(masses) // 2
    return mp.fsum(masses[:half] if law == 0 else masses[half:])


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
@pytest.mark.parametrize("block", effort.some_quick(range(5), every=5))
def test_no_certified_delta_is_below_the_exact_one(block):
    """Profiles of every family: one step in both directions, the sums of the masses, and some composed twice."""
    assert [fault for seed in range(100 * block, 100 * (block + 1)) for fault in faults(seed)] == []


def test_nearly_straight_through_zero():
    """A curve whose point at epsilon 0 lies above its neighbours' chord by rounding loses no mass and no delta."""
    steep = hs.PrivacyProfile(
        [0.0, 7.67960454238784, 17.750651230165207, 28.83158445691108],
        remove=[0.9998428981504555, 0.6600686857457805, 5e-324, 5e-324],
        add=[0.9998428981504555, 0.9998428976964646, 0.9998321570728009, 0.3025166391485987],
    )
    once = hs.Accountant().compose(steep)
    assert once.delta(7.67960454238784) >= 0.9998428976964646
    assert once.delta_bracket(28.83158445691108).lower <= 0.3025166391485987
    p = hs.PrivacyProfile(
        [0.0, 1.0, 27.5],
        remove=[0.6321205588282816, 5e-324, 5e-324],
        add=[0.6321205588282816, 0.6321205588275305, 0.24872005926441737],
    )
    assert 0.6321205588275305 <= hs.Accountant().compose(p).delta(1.0) <= 0.632120558828
    assert abs(sum_of(p, 1) - 1) < 4e-15


def test_one_sided_profiles():
    """A record that is published with probability 1 % has infinite loss in one direction only, composed too."""
    published = hs.PrivacyProfile.from_function(lambda _: 0.01, lambda eps: max(0.0, 1.0 - 0.99 * math.exp(eps)))
    for count in (1, 3):
        truth = 1.0 - 0.99**count
        assert truth <= hs.Accountant().compose(published, count).delta(0.0) <= truth * (1.0 + 1e-10)
    assert hs.Accountant().compose(hs.PrivacyProfile([0.0], [1.0])).delta(3.0) == 1.0


def test_a_product_that_underflows():
    """Two steps whose exact delta is 1e-549, below the doubles, have no delta of 0."""
    step = hs.PrivacyProfile([0.0, 45.0], [0.9, 0.0], [0.9, 0.0])
    rare = hs.Discrete([4e-275, 1.0 - 4e-275], [4e-295, 1.0 - 4e-295])
    assert hs.Accountant().compose(step, 2).delta(45.0) > 0.0
    assert hs.Accountant().compose(rare, 2).delta(52.0) > 0.0


def test_nearly_told_apart():
    """Where nearly all outcomes tell, the bound of epsilon stays close to that of the pure mechanism, and never below."""
    for pure in (5.0, 20.0, 29.0):
        step = hs.Accountant().compose(hs.PrivacyProfile([0.0, pure], [1.0, 0.0]))
        assert pure <= step.epsilon(0.0) <= pure * (1.0 + 1e-9)
    assert hs.Accountant().compose(hs.PrivacyProfile([0.0, 40.0], [1.0, 0.0])).delta(39.0) <= 1.0


@pytest.mark.parametrize("seed", range(40))
def test_denormal_slopes(seed):
    """Masses near 1e-320 have few digits, which lowers no loss: delta is above 0 below the pure epsilon."""
    rng = random.Random(seed)
    pure, total = 10.0 ** rng.uniform(-2, 0), rng.uniform(1.0, 900.0) * 1e-323
    step = hs.Accountant().compose(hs.PrivacyProfile([0.0, pure], [total, 0.0]))
    assert step.delta(0.999 * pure) > 0.0
    assert step.epsilon(0.0) >= pure
