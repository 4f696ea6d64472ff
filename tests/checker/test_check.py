"""The checker of certificates: its bounds against quadratures and sums, one by one; true claims, false ones, and what is no certificate."""

import gc
import importlib
import itertools
import json
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import mpmath as mp
import pytest

import high_precision as exact
import hockeystick as hs
import processes

flint = pytest.importorskip("flint", reason="pip install python-flint")
PROGRAM = Path(__file__).parents[2] / "checker" / "hockeystick_check.py"


@pytest.fixture(name="check", scope="module")
def fixture_check() -> ModuleType:
    """Import the program from where it stands: it is a package of its own."""
    sys.path.insert(0, str(PROGRAM.parent))
    module = importlib.import_module(PROGRAM.stem)
    sys.path.remove(str(PROGRAM.parent))
    assert Path(str(module.__file__)) == PROGRAM
    flint.ctx.prec = module.BITS
    return module


def gaussian(sigma: float, rate: float = 1.0) -> dict[str, Any]:
    """Return Gaussian noise, on a Poisson sample if the rate is below 1."""
    noise = {"name": "Gaussian", "noise_multiplier": repr(sigma)}
    return noise if rate == 1.0 else {"name": "PoissonSampled", "sampling_rate": repr(rate), "mechanism": noise}


def certificate(
    epsilon: object,
    delta: object,
    *ledger: tuple[dict[str, Any], int],
    at: str = "most",
    adjacency: str = "add_or_remove",
) -> dict[str, Any]:
    """Return a certificate; floats are the numbers that they hold."""
    steps = [{"mechanism": mechanism, "count": str(count)} for mechanism, count in ledger]
    numbers = [x.hex() if isinstance(x, float) else str(x) for x in (epsilon, delta)]
    claim = {"epsilon": numbers[0], "delta": numbers[1], "delta_is": f"at {at}"}
    return {"format": "hockeystick-certificate 1", "adjacency": adjacency, "claim": claim, "ledger": steps}


def is_proved(check: ModuleType, claim: dict[str, Any]) -> bool:
    """Say whether a claim is proved."""
    try:
        check.Claim(json.dumps(claim)).prove()
    except check.NotProved:
        return False
    return True


LAWS = {
    "removed": lambda c: c.SampledGaussian(Fraction(3, 10), Fraction(5, 4), 1, 0),
    "added": lambda c: c.SampledGaussian(Fraction(3, 10), Fraction(5, 4), 0, 1),
    "replaced": lambda c: c.SampledGaussian(Fraction(3, 10), Fraction(5, 4), 1, 1),
    "Laplace": lambda c: c.Laplace(Fraction(3, 2)),
}


def by_quadrature(name: str, z: Any) -> Any:
    """Return M(z) of a law by mpmath, from the densities."""
    if name == "Laplace":
        d, pieces = mp.mpf(3) / 2, [-40, 0, mp.mpf(3) / 2, 40]
        return mp.quad(lambda x: mp.exp(-abs(x - d) + z * (abs(x) - abs(x - d))) / 2, pieces)

    def mixture(x: Any) -> Any:
        return (7 * mp.npdf(x) + 3 * mp.npdf(x - mp.mpf(5) / 4)) / 10

    pairs = {"removed": (mixture, mp.npdf), "added": (mp.npdf, mixture), "replaced": (mixture, lambda x: mixture(-x))}
    p, q = pairs[name]
    return mp.quad(lambda x: p(x) * mp.exp(z * mp.log(p(x) / q(x))), [-30, -10, -4, 0, 4, 10, 30])


@pytest.mark.share(6)
@pytest.mark.parametrize("need", [0.0, 3.0, 15.0])
@pytest.mark.parametrize("name", LAWS)
def test_transforms_and_decays(check: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str, need: float) -> None:
    """Transforms lie in their balls, which are large where little is asked for; none is above its decay."""
    monkeypatch.setattr(check, "NEED", need)
    law = LAWS[name](check)
    with mp.workdps(15):
        for c in (0.4, 3.0):
            found = law.transform(flint.arb(c), flint.arb(2), 4)
            whole = by_quadrature(name, mp.mpf(c)).real
            for k in (0, 1, 4):
                truth = by_quadrature(name, mp.mpc(c, 2 * k))
                middle = mp.mpc(float(found[k].real.mid()), float(found[k].imag.mid()))
                error = max(float(part.rad()) for part in (found[k].real, found[k].imag))
                assert abs(middle - truth) <= mp.sqrt(2) * error + 1e-9 * whole
                assert error <= 30 * whole * mp.exp(-need)  # and it is not off by much
                for m, b in law.decay(flint.arb(c)) if k else ():
                    assert abs(truth) <= whole * (1 + 1e-9) - float(m.mid()) + float(b.mid()) / (2 * k)


def test_the_bracket_is_narrow_and_right(check: ModuleType) -> None:
    """Of Gaussian noise beside a step that says nothing, whose delta has a closed form: at most and at least, to 1e-8."""
    nothing = {"name": "Discrete", "p": ["0.5", "0.5"], "q": ["0.5", "0.5"]}
    for sigma, count, epsilon in ((2.0, 9, 3), (1.0, 184240, 98185), (0.5, 1, 20)):
        with mp.workdps(60):
            mu = mp.sqrt(count) / mp.mpf(sigma)
            truth = exact.theta(epsilon, mu)
            ledger = (gaussian(sigma), count), (nothing, 1)
            for factor, at in ((1 + mp.mpf("1e-7"), "most"), (1 - mp.mpf("1e-7"), "least")):
                assert is_proved(check, certificate(epsilon, mp.nstr(truth * factor, 25), *ledger, at=at))
            for factor, at in ((1 - mp.mpf("1e-13"), "most"), (1 + mp.mpf("1e-13"), "least")):
                assert not is_proved(check, certificate(epsilon, mp.nstr(truth * factor, 40), *ledger, at=at))


def binomial_delta(p: str, q: str, count: int, epsilon: float) -> Any:
    """Return delta of that many answers which are yes with probability p, or q."""
    odds = [(mp.mpf(a), 1 - mp.mpf(a)) for a in (p, q)]
    laws = [[mp.binomial(count, k) * yes**k * no ** (count - k) for k in range(count + 1)] for yes, no in odds]
    return mp.fsum(max(a - mp.exp(epsilon) * b, 0) for a, b in zip(*laws, strict=True))


def answers(check: ModuleType, p: str, q: str) -> Any:
    """Return the law of an answer which is yes with probability p, or q."""
    return check.Outcomes([(flint.arb(p), flint.arb(q)), (1 - flint.arb(p), 1 - flint.arb(q))])


COARSE = [(rise, small) for rise in (0.0, 0.1) for small in (-3.0, 0.0, 2.0)] + [(1e-3, 20.0)]


def encloses(bracket: tuple[Any, Any], truth: Any) -> bool:
    """Say whether a number lies in a bracket, of which nothing more can be told."""
    return not bracket[0] > truth and not bracket[1] < truth


@pytest.mark.share(4)
@pytest.mark.parametrize(("rise", "small"), COARSE)
def test_brackets_whose_bounds_are_large(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch, rise: float, small: float
) -> None:
    """Where little is asked for, a blur, aliases and what is left out of the sum count, and brackets enclose closed forms all the same."""
    monkeypatch.setattr(check, "PRECISIONS", [(rise, small)])
    for name, law in LAWS.items() if small == 2.0 else ():
        for epsilon in (0.125, 0.5):
            truth = law(check).delta(flint.arb(epsilon))
            if truth > 0:
                found = check.Composition([(law(check), 1)], flint.arb(0), flint.arb(epsilon), float(truth)).bracket()
                assert encloses(found, truth), (name, epsilon)
    nothing = check.Outcomes([(flint.arb(1), flint.arb(1))])
    for mu in (0.5, 1.0, 2.0, 5.0):
        for epsilon in (0.25, 1.0, 4.0):
            truth = flint.arb(mp.nstr(exact.theta(epsilon, mu), 15))
            if mp.log(float(truth)) > small:  # errors above 1 would be wanted
                continue
            found = check.Composition([(nothing, 1)], flint.arb(mu) ** 2, flint.arb(epsilon), float(truth)).bracket()
            assert encloses(found, truth + flint.arb(0, 1e-13) * truth), (mu, epsilon)
    count, law, atom = 12, answers(check, "0.375", "0.625"), float(4 * mp.log(5) - 4 * mp.log(3))
    for epsilon in (
        (atom, 1.75) if rise else (1.75,) * (small == 2.0)
    ):  # a loss of the sum, where noise raises delta, and none
        truth = flint.arb(mp.nstr(binomial_delta("0.375", "0.625", count, epsilon), 15))
        found = check.Composition([(law, count)], flint.arb(0), flint.arb(epsilon), float(truth)).bracket()
        assert encloses(found, truth)


def test_what_the_sum_has_too_much(check: ModuleType) -> None:
    """Of Gaussian noise, where aliases on one side count most, or on the other: their sum is below the bound."""
    for c, other, period in ((2.0, 4.0, 2.0), (0.5, 4.0, 6.0), (1.0, 3.0, 4.0)):
        composition = check.Composition([], flint.arb(1), flint.arb(0.5), 1.0)
        bound = float(composition.too_much(flint.arb(c), flint.arb(other), flint.arb(period)))
        deltas = [(j, exact.theta(0.5 - j * period, mp.mpf(1))) for j in range(-12, 13) if j]
        truth = mp.fsum(mp.exp(-c * j * period) * delta for j, delta in deltas)
        assert truth <= bound <= 1000 * truth


def test_the_terms_beyond(check: ModuleType) -> None:
    """Of a loss of 0 none has another sign than the first: what is left out of the sum is nearly its bound."""
    nothing = check.Outcomes([(flint.arb(1), flint.arb(1))])
    composition = check.Composition([(nothing, 1)], flint.arb(0), flint.arb(0), 1.0)
    period = 2 * mp.pi
    truth = mp.nsum(lambda j: mp.exp(-j * period) * (1 - mp.exp(-j * period)), [1, 20])
    less, more = composition.sum(flint.arb(1), flint.arb(1), flint.arb(0), -4.0)
    found, beyond = float(more + less) / 2, float(more - less) / 2
    assert 0.4 * beyond <= found - truth <= 0.5 * beyond * (1 + 1e-9)  # whose factor, 2, is there for a blur


@pytest.mark.parametrize("blur", [0.25, 1.0])
def test_either_blurred_function(check: ModuleType, blur: float) -> None:
    """Of a loss of 0: a test that is blurred, or Gaussian noise, summed over aliases; what lies beyond the last term is in the bounds."""
    nothing = check.Outcomes([(flint.arb(1), flint.arb(1))])
    mu, period = mp.sqrt(blur), 2 * mp.pi

    def blurred(epsilon: Any) -> Any:
        return mp.ncdf(-epsilon / mu) * (1 - mp.exp(epsilon))

    for start in (0.5, 1.0):  # what lies beyond has either sign
        composition = check.Composition([(nothing, 1)], flint.arb(0), flint.arb(start), 1.0)
        truths = [
            mp.fsum(mp.exp(-j * period) * delta(start - j * period) for j in range(-20, 21))
            for delta in (blurred, lambda epsilon: exact.theta(epsilon, mu))
        ]
        for wanted in (-60.0, -4.0, 0.0):
            ends = composition.sum(flint.arb(1), flint.arb(1), flint.arb(blur), wanted)
            less, more = (mp.mpf(float(end)) for end in ends)
            room, rounding = mp.exp(wanted) * 2, mp.mpf("1e-13")
            assert truths[0] - room - rounding <= less <= truths[0] + rounding
            assert truths[1] - rounding <= more <= truths[1] + room + rounding


def test_ends_that_are_near(check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies beyond them is within the error of the transforms."""
    ends = check.SampledGaussian.ends

    def near(law: Any, c: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(check, "NEED", -8.5)
            return ends(law, c)

    monkeypatch.setattr(check.SampledGaussian, "ends", near)
    for name in ("removed", "added", "replaced"):
        found = LAWS[name](check).transform(flint.arb(2), flint.arb(0), 0)[0].real
        with mp.workdps(20):
            assert abs(mp.mpf(float(found.mid())) - by_quadrature(name, mp.mpf(2)).real) <= float(found.rad())
        assert 1e-6 < found.rad() < 10


def test_claims_that_are_far_above_the_truth(check: ModuleType) -> None:
    """Chernoff's bound proves them, and is above the truth."""
    for mu in (0.25, 1.0):
        law = check.SampledGaussian(Fraction(1), Fraction(mu), 1, 0)
        for epsilon in (0.5, 2.0):
            found = check.Composition([(law, 1)], flint.arb(0), flint.arb(epsilon), 0.9).bracket()
            assert found[0] == 0
            assert found[1] > float(exact.theta(epsilon, mu))


def test_masses_that_are_not_listed(check: ModuleType) -> None:
    """Of discrete Gaussian noise, whose few values leave out much: single steps are enclosed, whatever is left out."""
    with mp.workdps(30):
        for sigma, s, depth in ((3, 2, 0.5), (2, 1, 2.0), (1, 1, 8.0)):
            law = check.discrete_gaussian(Fraction(sigma), s, Fraction(1), depth).laws[0]
            masses = {k: mp.exp(-(mp.mpf(k) ** 2) / (2 * sigma**2)) for k in range(-60, 61)}
            z = mp.fsum(masses.values())
            truth = mp.fsum(max(masses[k - s] - mp.exp(0.25) * masses[k], 0) / z for k in range(-50, 51))
            listed = dict(zip(range(-60, 61), [0] * 121, strict=True))
            wide = (len(law.finite) - 1 - s) // 2
            for k, (p, _, _) in enumerate(law.finite):
                listed[k - wide] = exactly = masses[k - wide - s] / z
                assert abs(mp.mpf(p.mid().str(30, radius=False)) - exactly) <= float(p.rad()) * (1 + 1e-6) + 1e-25
            assert law.aside.upper() >= float(1 - mp.fsum(listed.values()))
            ball = law.delta(flint.arb(0.25))
            assert ball.contains(flint.arb(mp.nstr(truth, 25))) or abs(float(ball.mid()) - truth) <= ball.rad()


def test_mass_that_is_aside(check: ModuleType) -> None:
    """Of infinite losses, it is added to what the sum bounds."""
    pair = {"name": "Discrete", "p": ["0.125", "0.4375", "0.4375"], "q": ["0", "0.5", "0.5"]}
    one = {"name": "Discrete", "p": ["0.125", "0.875"], "q": ["0", "1"]}
    for mechanism in (pair, one):
        truth = 1 - 0.875**3
        assert is_proved(check, certificate("1", truth + 1e-3, (mechanism, 3)))
        assert not is_proved(check, certificate("1", truth - 1e-9, (mechanism, 3)))
        with_noise = (mechanism, 3), (gaussian(2.0), 1)
        truth += 0.875**3 * exact.theta(1 - 3 * mp.log("0.875"), mp.mpf(1) / 2)
        assert is_proved(check, certificate("1", float(truth * (1 + 1e-6)), *with_noise))
        assert not is_proved(check, certificate("1", float(truth * (1 - 1e-6)), *with_noise))


def test_everything_is_revealed(check: ModuleType) -> None:
    """Where no loss is finite, delta is 1: neither less is proved, nor is there a sum of nothing."""
    pair = {"name": "Discrete", "p": ["1", "0"], "q": ["0", "1"]}
    anything = {"name": "ApproximateDP", "epsilon": "0", "delta": "1"}
    for count in (1, 2):
        assert is_proved(check, certificate("1", "1", (pair, count), at="least"))
        assert not is_proved(check, certificate("1", "0." + "9" * 30, (pair, count)))
        for mechanism in (pair, anything):
            assert is_proved(check, certificate("1", "1", (mechanism, count), (gaussian(2.0), 1)))


def test_no_loss_is_larger(check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps without delta have none at the sum of their largest losses, or what they reveal; just below some is left, or with noise."""
    monkeypatch.setattr(check, "TERMS", 1000)  # what is false has no proof by a short sum either
    laplace = {"name": "Laplace", "noise_multiplier": "2"}, 3
    response = {"name": "RandomizedResponse", "noise_probability": "0.5", "num_buckets": "2"}, 3  # odds of 3
    approximate = {"name": "ApproximateDP", "epsilon": "0.5", "delta": "0.25"}, 2
    for step, adjacency, epsilon, delta in (
        (laplace, "add_or_remove", "1.5", "0"),
        (laplace, "replace", "3", "0"),
        (response, "replace", mp.nstr(3 * mp.log(3) + mp.mpf("1e-12"), 15), "0"),
        (approximate, "add_or_remove", "1", "0.4375"),
    ):
        assert is_proved(check, certificate(epsilon, delta, step, adjacency=adjacency))
        less = mp.nstr(mp.mpf(epsilon) * (1 - mp.mpf("1e-9")), 15)
        assert not is_proved(check, certificate(less, delta, step, adjacency=adjacency))
        assert not is_proved(check, certificate(epsilon, delta, step, (gaussian(1e3), 1), adjacency=adjacency))


@pytest.mark.share(2)
@pytest.mark.parametrize(("at", "room"), [("most", "0.001"), ("least", "-0.001")])
def test_just_below_the_largest_loss(check: ModuleType, at: str, room: str) -> None:
    """Of answers all of which must be yes: where the tilt is large the sum goes on for as many terms as its tail needs."""
    response, gap = {"name": "RandomizedResponse", "noise_probability": "0.5", "num_buckets": "2"}, mp.mpf("1e-6")
    epsilon, delta = 3 * mp.log(3) - gap, mp.mpf(27) / 64 * (1 - mp.exp(-gap)) * (1 + mp.mpf(room))
    claim = certificate(mp.nstr(epsilon, 15), mp.nstr(delta, 15), (response, 3), at=at, adjacency="replace")
    assert is_proved(check, claim)


@pytest.mark.share(2)
@pytest.mark.parametrize("lower", [False, True])
def test_rare_samples_whose_sum_is_nearly_too_long(check: ModuleType, lower: bool) -> None:
    """A row of the table of corners: the sum is short enough if it may be 1e-8 off, and both ends are proved."""
    sample = gaussian(0.5, 1e-4) | {"sampling_rate": (1e-4).hex()}
    claim = json.loads(hs.dpsgd_certificate(0.5, 1e-4, 10**6, delta=1e-15, lower=lower))["claim"]
    epsilon, at = float.fromhex(claim["epsilon"]), "least" if lower else "most"
    factor = 1 - 1e-6 if lower else 1 + 1e-6
    assert is_proved(check, certificate(epsilon, 1e-15 * factor, (sample, 10**6), at=at))


@pytest.mark.share(2)
@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
def test_single_steps(check: ModuleType, adjacency: str) -> None:
    """Against hockey-stick divergences by quadrature and sums, in the direction that is worse: no more and no less is proved."""
    replaced, half, rate, epsilon = adjacency == "replace", mp.mpf(1) / 2, mp.mpf(1) / 4, 0.25
    twice = 2 if replaced else 1

    def densities(p: Any, q: Any) -> Any:  # whose ratio crosses e^epsilon once
        low, high = mp.mpf(-14), mp.mpf(14)
        rises = p(high) > mp.exp(epsilon) * q(high)
        for _ in range(60):
            x = (low + high) / 2
            low, high = (low, x) if (p(x) > mp.exp(epsilon) * q(x)) == rises else (x, high)
        pieces = sorted([-14, -5, -2, 2, 5, 14, low])
        return mp.quad(lambda x: max(p(x) - mp.exp(epsilon) * q(x), 0), pieces)

    def sampled(shift: float) -> Any:
        return lambda x: (1 - rate) * mp.npdf(x) + rate * mp.npdf(x - shift)

    one, other = (sampled(half), sampled(-half)) if replaced else (sampled(half), mp.npdf)
    noise = {"name": "Laplace", "noise_multiplier": "2"}
    fixed = {"name": "FixedSizeSampled", "num_records": "40", "batch_size": "10", "replacement": False}
    cases = [
        (gaussian(2.0), exact.theta(epsilon, mp.mpf(twice) / 2)),
        (noise, 1 - mp.exp((epsilon - twice * half) / 2)),
        ({"name": "PoissonSampled", "sampling_rate": "1", "mechanism": noise}, 1 - mp.exp((epsilon - twice * half) / 2)),
        (gaussian(2.0, 0.25), max(densities(one, other), densities(other, one))),
        ({"name": "GaussianDP", "mu": "0.5"}, exact.theta(epsilon, half)),
        ({"name": "DiscreteLaplace", "inverse_scale": "0.5", "sensitivity": "1"}, geometric(twice, epsilon)),
        ({"name": "Discrete", "p": ["0.5", "0.5"], "q": ["0.875", "0.125"]}, 0.5 - mp.exp(epsilon) / 8),
        ({"name": "Discrete", "q": ["0.5", "0.5"], "p": ["0.875", "0.125"]}, 0.5 - mp.exp(epsilon) / 8),
        ({"name": "ApproximateDP", "epsilon": "1", "delta": "0.125"}, mp.mpf(1) / 8 + (mp.e - mp.exp(epsilon)) / (1 + mp.e) * 7 / 8),
    ]  # fmt: skip
    if replaced:
        response = {"name": "RandomizedResponse", "noise_probability": "0.75", "num_buckets": "3"}
        cases.append((response, half - mp.exp(epsilon) / 4))
    else:
        pair = (lambda x: (3 * mp.npdf(x) + mp.npdf(x - 1)) / 4, mp.npdf)
        cases.append((fixed | {"mechanism": gaussian(2.0)}, max(densities(*pair), densities(*pair[::-1]))))
    for mechanism, truth in cases:
        for factor, at in ((1 + 1e-6, "most"), (1 - 1e-6, "least")):
            claim = certificate(epsilon, mp.nstr(truth * factor, 18), (mechanism, 1), at=at, adjacency=adjacency)
            dominates = mechanism["name"] in {"ApproximateDP", "FixedSizeSampled", "GaussianDP"}
            assert is_proved(check, claim) == (at == "most" or not dominates), mechanism
        for factor, at in ((1 - 1e-6, "most"), (1 + 1e-6, "least")):
            claim = certificate(epsilon, mp.nstr(truth * factor, 18), (mechanism, 1), at=at, adjacency=adjacency)
            assert not is_proved(check, claim), mechanism


TABLE = {"name": "ShiftedInterpolation", "noise_std": "2", "initial_gap": "1"}
TABLE |= {"rho": ["0.5", "3"], "gamma": ["0.5", "0.25"], "weights": ["0.25", "1"]}


def test_a_table_of_shifts(check: ModuleType) -> None:
    """Of a gap of 1/2 + 1/2 a quarter is closed, then all of 9/4 + 1/4: no number of the table may be worse, and no gap be left."""
    with mp.workdps(30):
        truth = exact.theta(1, mp.sqrt(mp.mpf(1) / 16 + mp.mpf(25) / 4) / 2)
        less, more = (mp.nstr(truth * factor, 20) for factor in (1 - 1e-9, 1 + 1e-9))
    worse = {"noise_std": ["1.999", "1e-300"], "initial_gap": ["1.001"], "rho": [["0.501", "3"], ["0.5", "3.001"]]}
    worse |= {"gamma": [["0.501", "0.25"], ["0.5", "0.251"]], "weights": [["0.24", "1"], ["0.26", "0.999"], ["1", "0"]]}
    for adjacency in ("add_or_remove", "replace"):
        for weights in (["0.25", "1"], ["0.26", "1"]):  # the second hides more, as it happens
            assert is_proved(check, certificate(1, more, (TABLE | {"weights": weights}, 1), adjacency=adjacency))
        assert not is_proved(check, certificate(1, less, (TABLE, 1), adjacency=adjacency))
    for key, value in ((key, value) for key, values in worse.items() for value in values):
        assert not is_proved(check, certificate(1, more, (TABLE | {key: value}, 1))), (key, value)
    assert not is_proved(check, certificate(1, more, (TABLE, 2)))
    assert not is_proved(check, certificate(1, "1e-9", (TABLE, 1), at="least"))


def geometric(shift: int, epsilon: float) -> Any:
    """Return delta of discrete Laplace noise of inverse scale 1/2, by its sum."""
    masses = {k: mp.tanh(mp.mpf(1) / 4) * mp.exp(-mp.mpf(abs(k)) / 2) for k in range(-200, 201)}
    return mp.fsum(max(masses[k - shift] - mp.exp(epsilon) * masses[k], 0) for k in range(-190, 191))


def damaged() -> dict[str, tuple[str, str]]:
    """Return certificates that are none, and words of the answer."""

    def text(**changes: Any) -> str:
        return json.dumps(certificate(1, "1e-5", (gaussian(1.0, 0.5), 10)) | changes)

    def ledger(mechanism: object, count: object = "1") -> str:
        return text(ledger=[{"mechanism": mechanism, "count": count}])

    claim = {"epsilon": "1", "delta": "1e-5", "delta_is": "at most"}
    return {
        "no JSON": ("{", "no JSON"),
        "deep": ("[" * 100_000, "no JSON"),
        "twice": ('{"format": 1, "format": 2}', "twice"),
        "another format": (text(format="hockeystick-certificate 2"), "the format must be"),
        "a list for a word": (text(adjacency=[]), "adjacency must be"),
        "a field too many": (ledger(gaussian(1.0) | {"sensitivity": "50"}), "not known: 'sensitivity'"),
        "in a sample": (ledger(gaussian(1.0, 0.5) | {"mechanism": gaussian(1.0) | {"x": 1}}), "not known: 'x'"),
        "a number": (text(claim=claim | {"epsilon": 1.0}), "epsilon must be a number in a string"),
        "other digits": (text(claim=claim | {"epsilon": "\u0661"}), "epsilon must be a number in a string"),
        "negative": (text(claim=claim | {"epsilon": "-1"}), "epsilon must be a number"),
        "too large": (text(claim=claim | {"delta": "1.5"}), "delta must be in"),
        "half a step": (ledger(gaussian(1.0), "1.5"), "whole number"),
        "unread": (ledger(gaussian(1.0, 0.0) | {"mechanism": gaussian(-1.0)}), "noise_multiplier must be a number"),
        "a gap below 0": (ledger(TABLE | {"weights": ["1.1", "1"]}), "weights must be in [0, 1]"),
        "a round too many": (ledger(TABLE | {"rho": ["0.5", "3", "0"]}), "lists of one length"),
        "no rounds": (ledger(TABLE | {"rho": [], "gamma": [], "weights": []}), "lists of one length, from 1"),
        "no sum": (ledger({"name": "Discrete", "p": ["0.5"], "q": ["1"]}), "sum to exactly 1"),
    }


@pytest.mark.parametrize("name", damaged())
def test_what_is_no_certificate(
    check: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """It ends with 2 and one line."""
    content, words = damaged()[name]
    (tmp_path / "file.json").write_text(content, encoding="utf-8")
    assert check.main([str(tmp_path / "file.json")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert words in printed.err


def test_a_false_claim_about_nearly_everything_is_not_proved(check: ModuleType) -> None:
    """Nearly all is revealed, and the finite losses have less mass than what is proved aside: delta is 1 - 2e-16, not 1 - 5e-15."""
    p, q = ["0.999999899", "0.0000001", "0.000000001"], ["0", "1e-138", "0." + "9" * 138]
    claim = certificate(580, "0.999999999999995", ({"name": "Discrete", "p": p, "q": q}, 2))
    assert not is_proved(check, claim)


def test_a_line_tells_how_long_it_takes(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal, beyond three seconds, and the time that is up ends it once."""
    slow = {"name": "DiscreteGaussian", "noise_std": "2000", "sensitivity": "1"}
    (tmp_path / "file.json").write_text(json.dumps(certificate(1, "1e-5", (slow, 3000))), encoding="utf-8")
    times = itertools.chain([0.0, 2.0, 5.0], itertools.repeat(200.0))
    monkeypatch.setattr(check, "time", SimpleNamespace(monotonic=lambda: next(times)))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    gc.disable()  # Python drops what a signal raises in a callback of the collector, and hypothesis has one
    try:
        assert check.main([str(tmp_path / "file.json"), "--limit", "100"]) == 1
    finally:
        gc.enable()
    said = capsys.readouterr()
    assert said.out == "not proved: it takes more than 100 seconds\n"
    assert said.err == "\r5 of at most 100 seconds\r"


def test_the_program(tmp_path: Path) -> None:
    """It says what it proved, what it did not and why, and when the time is up, in one line each."""
    file = tmp_path / "file.json"

    def run(claim: dict[str, Any], *options: str) -> tuple[int, str]:
        file.write_text(json.dumps(claim), encoding="utf-8")
        done = processes.run([sys.executable, PROGRAM, file, *options], check=False)
        return done.returncode, done.stdout

    ledger = gaussian(1.0, 0.01), 1000
    assert run(certificate("1.82824", "1e-5", ledger)) == (0, "proved: delta(1.82824) is at most 1e-5\n")
    code, said = run(certificate("1.8282", "1e-5", ledger))
    assert code == 1
    assert said.startswith("not proved: this proof says at most about 1.00")
    assert run(certificate(1, "1e-5", ({"name": "a\nproved"}, 1))) == (
        1,
        "not proved: no rule for a\\nproved where a record is added or removed\n",
    )
    slow = {"name": "DiscreteGaussian", "noise_std": "2000", "sensitivity": "1"}
    assert run(certificate(1, "1e-5", (slow, 3000)), "--limit", "1") == (
        1,
        "not proved: it takes more than 1 seconds\n",
    )
