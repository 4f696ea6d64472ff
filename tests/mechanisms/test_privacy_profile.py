"""Profiles from numbers, functions and densities: what is refused, and no certified delta is below the exact one."""

import ctypes
import math
import random

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from enumeration import bracket, ends


def bounds(profile, eps):
    """Return the upper ends of one step in both directions."""
    return [ends(profile, eps, forward=forward)[1] for forward in (True, False)]


@given(
    deltas=st.lists(st.floats(0.0, 0.9), min_size=1, max_size=8),
    gaps=st.lists(st.floats(1e-3, 1.5), min_size=7, max_size=7),
)
def test_any_falling_numbers_are_a_pair(deltas, gaps):
    """Upper bounds need not be convex: what results is a pair whose curve does not exceed them."""
    deltas = sorted(deltas, reverse=True)
    epsilons = np.concatenate([[0.0], np.cumsum(gaps)])[: len(deltas)]
    profile = hs.PrivacyProfile(epsilons, deltas)
    parameters = profile._pair("replace").parameters
    p, q = np.split(np.array(parameters), 2)
    assert p.min() >= 0.0
    assert q.min() >= 0.0
    assert p.sum() == pytest.approx(1.0, rel=1e-12)
    assert q.sum() == pytest.approx(1.0, rel=1e-12)
    for eps, delta in zip(epsilons, deltas, strict=True):
        assert max(bounds(profile, eps)) <= delta * (1 + 1e-9) + 1e-11


def test_pure_and_approximate_profiles():
    """The two points of (epsilon, delta)-DP give its pair back, composed too."""
    tv = (math.expm1(0.5) + 2e-6) / (math.exp(0.5) + 1)  # delta(0) of the pair of Kairouz, Oh and Viswanath
    known = hs.PrivacyProfile([0.0, 0.5], [tv, 1e-6])
    for count, eps in ((1, 0.2), (7, 0.9), (7, 3.6)):
        truth, found = (bracket(step, eps, count) for step in (hs.ApproximateDP(0.5, 1e-6), known))
        assert found.upper >= truth.lower
        assert found.upper == pytest.approx(truth.upper, rel=2e-3)
        assert found.lower == pytest.approx(truth.lower, rel=2e-3)
        assert found.status == "certified"


@pytest.mark.parametrize("count", [1, 25, 400])
def test_composed_gaussian(count):
    """The profile of a Gaussian step composes to the Gaussian of all steps, from above and closely."""
    step = hs.PrivacyProfile.from_function(lambda eps: hs.theta(eps, 0.2))
    mu = 0.2 * math.sqrt(count)
    total = hs.Accountant().compose(step, count)
    for share in (0.5, 2.0):
        truth = hs.gdp_delta(mu, share * mu)
        assert truth <= total.delta(share * mu) <= truth * (1 + 4e-3)
    for delta in (1e-4, 1e-8):
        assert hs.gdp_epsilon(mu, delta) <= total.epsilon(delta) <= hs.gdp_epsilon(mu, delta) * (1 + 4e-3)


def test_two_directions_of_a_sampled_gaussian():
    """With a function for each direction a sampled step composes as the library's own does, far below its worse direction alone."""
    base = hs.PoissonSampled(hs.Gaussian(1.0), 0.1)

    def curve(forward):
        return lambda eps: base._pair("add_or_remove").one_step(forward, False, eps)[1]

    profile = hs.PrivacyProfile.from_function(curve(True), curve(False))
    for count in (1, 50):
        truth = hs.Accountant().compose(base, count)
        found = hs.Accountant().compose(profile, count)
        for eps in (0.3, 1.5):
            expected = truth.delta_bracket(eps)
            assert expected.lower <= found.delta(eps) <= expected.upper * (1 + 4e-3)
        directions = {name: bracket.upper for name, bracket in found.explain(epsilon=0.3).directions.items()}
        assert directions["remove"] > 1.05 * directions["add"]
    worse = hs.PrivacyProfile(profile.epsilons, np.maximum(profile.remove, profile.add))
    assert hs.Accountant().compose(worse, 50).delta(1.5) >= hs.Accountant().compose(profile, 50).delta(1.5)


def naive_gaussian(eps):
    """Return delta of a Gaussian step with the cancellation of a textbook."""
    root = math.sqrt(2.0)
    return 0.5 * math.erfc((eps - 0.5) / root) - math.exp(eps) * 0.5 * math.erfc((eps + 0.5) / root)


def test_compiled_functions():
    """A numba function, a cfunc, a scipy.LowLevelCallable of a ctypes function and of a capsule give the Python function's profile."""
    numba = pytest.importorskip("numba")
    expected = hs.PrivacyProfile.from_function(naive_gaussian, num_points=60)
    scipy = pytest.importorskip("scipy")
    prototype = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    pointer = prototype(naive_gaussian)
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new_capsule(ctypes.cast(pointer, ctypes.c_void_p), b"double (double)", None)
    functions = [
        numba.njit(naive_gaussian),
        numba.cfunc("float64(float64)")(naive_gaussian),
        pointer,
        scipy.LowLevelCallable(pointer),
        scipy.LowLevelCallable(capsule),
        capsule,
    ]
    for function in functions:
        assert hs.PrivacyProfile.from_function(function, num_points=60) == expected
    wrong = new_capsule(ctypes.cast(pointer, ctypes.c_void_p), b"double (double, double)", None)
    for function in (wrong, scipy.LowLevelCallable(wrong)):
        with pytest.raises(ValueError, match=r"double \(double"):
            hs.PrivacyProfile.from_function(function)


def normal(mean):
    """Return the log density of a normal distribution."""
    return lambda x: -0.5 * (x - mean) ** 2 - 0.5 * math.log(2.0 * math.pi)


def test_densities():
    """Two normal densities give an estimate close to their closed form, which says that it is one and is not handed out as a bound."""
    profile, count = hs.PrivacyProfile.from_densities(normal(0.5), normal(0.0), [-9.0, 9.5], num_points=200), 9
    for number in (1, count):
        total = hs.Accountant().compose(profile, number)
        assert total.delta_bracket(1.0).status == "estimate"
        exact = hs.gdp_delta(0.5 * math.sqrt(number), 1.0)
        assert total.delta_bracket(1.0).upper == pytest.approx(exact, rel=5e-3)
    assert total.epsilon_bracket(1e-5).status == "estimate"
    assert total.explain(epsilon=1.0).bracket.status == "estimate"
    assert any("estimate by quadrature" in line for line in total.explain(epsilon=1.0).assumptions)
    pld = hs.PrivacyLossDistribution.from_mechanism(profile).self_compose(count)
    assert pld.delta_bracket(1.0).status == "estimate"
    for query in (total.delta, total.log_delta, total.epsilon, total.advantage, total.trade_off):
        with pytest.raises(ValueError, match="only estimated"):
            query(*([] if query == total.advantage else [0.1]))
    with pytest.raises(ValueError, match="rdp has no bound"):
        total.rdp(2.0)
    sampled = hs.PoissonSampled(profile, 0.1)
    assert hs.Accountant().compose(sampled).delta_bracket(0.1).status == "estimate"


def test_one_sided_densities():
    """Uniform densities on overlapping intervals: an infinite loss has its mass, up to the tolerance."""
    inside = math.log(0.5)
    profile = hs.PrivacyProfile.from_densities(
        lambda x: inside if x < 2.0 else -math.inf, lambda x: inside if x > 1.0 else -math.inf, [0.0, 1.0, 2.0, 3.0]
    )
    found = hs.Accountant().compose(profile).delta_bracket(3.0)
    assert found.upper == pytest.approx(0.5, rel=1e-6)


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
    return p, q


def denormal(rng):
    """Return masses that doubles barely hold, and infinite losses."""
    exponents = [rng.uniform(-326, -280) if rng.random() < 0.5 else rng.uniform(-30, 0) for _ in range(6)]
    p, q = [mp.mpf(10) ** e for e in exponents[:3]], [mp.mpf(10) ** e for e in exponents[3:]]
    if rng.random() < 0.5:
        p.append(mp.mpf(0))
        q.append(mp.mpf(10) ** rng.uniform(-320, 0))
    return p, q


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
    return tuple([mp.mpf(rng.random()) + 1e-9 for _ in range(size)] for _ in range(2))


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


def faults(seed):
    """Return what is wrong with the certified ends of one profile, in words."""
    rng = random.Random(seed)
    with mp.workdps(DIGITS):
        p, q = ([mass / mp.fsum(law) for mass in law] for law in FAMILIES[seed % len(FAMILIES)](rng))
        profile = profile_of(rng, p, q)
        numbers = profile.remove if profile.add is None else profile.add
        found = []
        if any(abs(total - 1) > 4e-15 for total in sums(profile)):
            found.append(f"{seed}: sums {sums(profile)}")
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
            twice, both = hs.Accountant().compose(profile, 2), [[a * b for a in law for b in law] for law in (p, q)]
            for eps in (profile.epsilons[-1], rng.uniform(0.0, 2.0 * profile.epsilons[-1])):
                truth = max(divergence(*laws, eps) for laws in (both, both[::-1]))
                if (upper := twice.delta(eps)) < truth:
                    found.append(f"{seed}: composed, delta({eps!r}) {upper!r} < {mp.nstr(truth, 20)}")
    return found


def sums(profile):
    """Return the exact sums of the masses of P and of Q."""
    return [mp.fsum(law) for law in np.split(np.array(profile._dominating.parameters), 2)]


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
@pytest.mark.share(8, by_day=2)
@pytest.mark.parametrize("block", range(8))
def test_no_certified_delta_is_below_the_exact_one(block):
    """Profiles of every family: one step in both directions, the sums of the masses, and some composed twice."""
    assert [fault for seed in range(60 * block, 60 * (block + 1)) for fault in faults(seed)] == []


STEEP = hs.PrivacyProfile(
    [0.0, 7.67960454238784, 17.750651230165207, 28.83158445691108],
    remove=[0.9998428981504555, 0.6600686857457805, 5e-324, 5e-324],
    add=[0.9998428981504555, 0.9998428976964646, 0.9998321570728009, 0.3025166391485987],
)
STRAIGHT = hs.PrivacyProfile(
    [0.0, 1.0, 27.5],
    remove=[0.6321205588282816, 5e-324, 5e-324],
    add=[0.6321205588282816, 0.6321205588275305, 0.24872005926441737],
)
PUBLISHED = hs.PrivacyProfile.from_function(lambda _: 0.01, lambda eps: max(0.0, 1.0 - 0.99 * math.exp(eps)))
RARE = hs.Discrete([4e-275, 1.0 - 4e-275], [4e-295, 1.0 - 4e-295])
EDGES = {
    "nothing leaks": (hs.PrivacyProfile([0.0], [0.0]), 100, 0.0, 0.0, 0.0),
    "told apart always": (hs.PrivacyProfile([0.0], [1.0]), 1, 600.0, 1.0, 1.0),
    "told apart sometimes": (hs.PrivacyProfile([0.0], [0.25]), 1, 9.0, 0.25, 0.25 * (1 + 1e-9)),
    "infinite loss in one direction": (PUBLISHED, 1, 0.0, 0.01, 0.01 * (1 + 1e-10)),
    "and composed": (PUBLISHED, 3, 0.0, 1 - 0.99**3, (1 - 0.99**3) * (1 + 1e-10)),
    "large losses add up": (hs.PrivacyProfile([0.0, 45.0], [0.9, 0.0]), 2, 45.0, 0.81, 0.82),
    "a square of 1e-549 is not 0": (RARE, 2, 52.0, 5e-324, 1e-300),
    "nearly all tells": (hs.PrivacyProfile([0.0, 40.0], [1.0, 0.0]), 1, 39.0, 0.6, 1.0),
    "above the chord by rounding, steep": (STEEP, 1, 7.67960454238784, 0.9998428976964646, 1.0),
    "above the chord by rounding, straight": (STRAIGHT, 1, 1.0, 0.6321205588275305, 0.632120558828),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name):
    """At the edges of what doubles hold no delta is lost, and little is added."""
    step, count, eps, least, most = EDGES[name]
    assert least <= hs.Accountant().compose(step, count).delta(eps) <= most


def test_rounding_at_zero():
    """A point at 0 that lies above its neighbours' chord by rounding loses no mass; where nearly all tells, epsilon is near the pure one."""
    assert hs.Accountant().compose(STEEP).delta_bracket(28.83158445691108).lower <= 0.3025166391485987
    assert abs(sums(STRAIGHT)[1] - 1) < 4e-15
    assert hs.PrivacyProfile.from_function(lambda _: 0.0).remove[0] <= 1e-15
    for pure in (5.0, 20.0, 29.0):
        step = hs.Accountant().compose(hs.PrivacyProfile([0.0, pure], [1.0, 0.0]))
        assert pure <= step.epsilon(0.0) <= pure * (1.0 + 1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_denormal_slopes(seed):
    """Masses near 1e-320 have few digits, which lowers no loss: delta is above 0 below the pure epsilon."""
    rng = random.Random(seed)
    pure, total = 10.0 ** rng.uniform(-2, 0), rng.uniform(1.0, 900.0) * 1e-323
    step = hs.Accountant().compose(hs.PrivacyProfile([0.0, pure], [total, 0.0]))
    assert step.delta(0.999 * pure) > 0.0
    assert step.epsilon(0.0) >= pure
