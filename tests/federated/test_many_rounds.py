"""Noisy-FedAvg after many rounds: limits and powers of T, against sums by mpmath, closed forms and `fedavg_gdp` itself."""

import math

import mpmath as mp
import numpy as np
import pytest

from hockeystick import federated

UNIT = {"num_clients": 1, "clip_norm": 1.0, "noise_std": 1.0, "smoothness": 1.0}  # where a is the learning rate
ROUNDS = [10**k for k in range(1, 7)]
FALLING = ("stagewise", "continuous")


def after(rounds: object, schedule: str, steps: int, rate: float, diameter: float | None = None) -> object:
    """Return mu after so many rounds."""
    return federated.fedavg_gdp(
        rounds=rounds, local_steps=steps, learning_rate=rate, schedule=schedule, diameter=diameter, **UNIT
    )


def limit(schedule: str, steps: int, rate: float, diameter: float | None = None) -> federated.GdpLimit:
    """Return limit and exponent."""
    return federated.fedavg_gdp_limit(
        local_steps=steps, learning_rate=rate, schedule=schedule, diameter=diameter, **UNIT
    )


def summed(schedule: str, steps: int, rate: float) -> float:
    """Return 2 y/sqrt(x) by sums to infinity at 40 digits, in units in which gamma is learning_rate times a sum of 1/j."""
    a = mp.mpf(rate)

    def product(t: mp.mpf) -> mp.mpf:
        n, power = (t * steps, 1) if schedule == "continuous" else (t, steps)
        return (mp.gammaprod([n + 1 + a], [1 + a, n + 1])) ** power

    def gap(t: mp.mpf) -> mp.mpf:
        if schedule == "stagewise":
            return a * steps / t
        return a * (mp.digamma(t * steps + 1) - mp.digamma((t - 1) * steps + 1))

    def total(term: object) -> mp.mpf:
        first = mp.fsum(term(mp.mpf(t)) for t in range(1, 40))
        return first + mp.sumem(term, [40, mp.inf], tol=mp.mpf(10) ** -14)

    with mp.workdps(40):
        y, x = total(lambda t: gap(t) / product(t)), total(lambda t: product(t) ** -2)
        return float(2 * y / mp.sqrt(x))


def test_continuous_steps_forget() -> None:
    """Five local steps at a = .1, from ten rounds to a million: the parameter falls towards 0 by a power that nears a - 1/2."""
    mus = after(ROUNDS, "continuous", 5, 0.1)
    np.testing.assert_allclose(mus, [0.308, 0.166, 0.0804, 0.0366, 0.0160, 0.00684], rtol=2e-3)
    assert limit("continuous", 5, 0.1) == (0.0, pytest.approx(-0.4, rel=1e-12))


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.3, 0.45])
@pytest.mark.parametrize("schedule", FALLING)
def test_one_local_step(schedule: str, rate: float) -> None:
    """The closed form for K = 1 and a < 1/2, to the order of what it leaves out; .005697 for a = .1 and a million rounds."""
    for rounds in (10**4, 10**6):
        closed = 2 * math.sqrt(1 - 2 * rate) / math.gamma(1 + rate) * rounds ** (rate - 0.5)
        closed *= 1 - math.gamma(1 + rate) * rounds**-rate
        assert after(rounds, schedule, 1, rate) == pytest.approx(
            closed, rel=3 * rounds ** (2 * rate - 1) / (1 - 2 * rate)
        )
    if rate == 0.1:
        assert after(10**6, schedule, 1, rate) == pytest.approx(0.005697, rel=2e-3)
    assert limit(schedule, 1, rate) == (0.0, pytest.approx(rate - 0.5, rel=1e-12))


@pytest.mark.parametrize("rate", [0.6, 0.75, 1.0])
def test_limit_of_one_local_step(rate: float) -> None:
    """For a > 1/2 it is 2/sqrt(3F2(1, 1, 1; 1 + a, 1 + a; 1) - 1), for a = 1 2.49042; and it scales as the parameter does."""
    closed = float(2 / mp.sqrt(mp.hyp3f2(1, 1, 1, 1 + rate, 1 + rate, 1) - 1))
    for schedule in FALLING:
        found = limit(schedule, 1, rate)
        assert found.limit == pytest.approx(closed, rel=1e-9)
        assert found.exponent == 0
    if rate == 1.0:
        assert closed == pytest.approx(2 / math.sqrt(math.pi**2 / 6 - 1), rel=1e-14)
        assert round(closed, 5) == 2.49042
    scaled = federated.fedavg_gdp_limit(
        local_steps=1, num_clients=[4, 25], clip_norm=3.0, noise_std=0.5, smoothness=rate / 0.2, learning_rate=0.2,
        schedule="stagewise",
    )  # fmt: skip
    np.testing.assert_allclose(scaled.limit, closed * 3 / 0.5 * 0.2 / rate / np.array([2.0, 5.0]), rtol=1e-9)


@pytest.mark.parametrize(
    ("schedule", "steps", "rate"),
    [
        ("stagewise", 2, 0.4),
        ("stagewise", 7, 0.1),
        ("stagewise", 100, 0.01),
        ("continuous", 3, 0.8),
        ("continuous", 20, 0.6),
        ("continuous", 500, 1.0),
    ],
)
def test_limit_of_many_local_steps(schedule: str, steps: int, rate: float) -> None:
    """Where the slopes fall, 1/2 < p <= 1, the limit is that of one block: sums to infinity by Euler and Maclaurin."""
    assert limit(schedule, steps, rate).limit == pytest.approx(summed(schedule, steps, rate), rel=1e-9)


@pytest.mark.parametrize(("steps", "rate"), [(1, 1.5), (3, 1.0), (10, 0.3), (1, 40.0), (50, 2.0)])
def test_limit_where_gaps_close_as_they_arise(steps: int, rate: float) -> None:
    """For p well above 1 the rounds after a while are plain composition: what is left after T of them is a Hurwitz zeta function."""
    mu = after(10**6, "stagewise", steps, rate)
    rest = (2 * rate * steps) ** 2 * float(mp.zeta(2, 10**6 + 1))
    assert limit("stagewise", steps, rate).limit == pytest.approx(math.sqrt(mu**2 + rest), rel=1e-9)


@pytest.mark.parametrize("rate", [1.0 + 1e-12, 1.001, 1.02, 1.1, 1.2])
@pytest.mark.parametrize(("schedule", "steps"), [("stagewise", 1), ("continuous", 30)])
def test_limit_near_one(schedule: str, steps: int, rate: float) -> None:
    """Just above p = 1 a block may last longer than any sum: H is at most H_T and the later gaps' squares, and at least one block's."""
    found = limit(schedule, steps, rate).limit
    mu = after(10**6, schedule, steps, rate)
    assert summed(schedule, steps, rate) * (1 - 1e-9) <= found <= math.sqrt(mu**2 + (2 * rate) ** 2 * 1.1e-6)
    assert found == pytest.approx(mu, rel=1e-5)


def test_between_both_kinds() -> None:
    """At p = 1/2 the parameter falls like 1/sqrt(ln T): x grows by pi/4 a factor e of rounds, for K = 1; the limit is 0, by no power."""
    for schedule in FALLING:
        assert limit(schedule, 1, 0.5) == (0.0, 0.0)
        inverse = after([10**4, 10**6], schedule, 1, 0.5) ** -2.0
        rest = (1 - math.gamma(1.5) * np.array([1e4, 1e6]) ** -0.5) ** -2
        growth = (inverse / rest)[1] - (inverse / rest)[0]
        assert 4 * growth == pytest.approx(math.gamma(1.5) ** 2 * math.log(100), rel=1e-3)
    assert limit("stagewise", 5, 0.1) == (0.0, 0.0)  # p = K a


@pytest.mark.parametrize("steps", [1, 5])
def test_linear_losses(steps: int) -> None:
    """With L = 0 falling steps give H = (sum of gamma)^2/T: the exponent is -1/2, with a logarithm."""
    for schedule in FALLING:
        found = federated.fedavg_gdp_limit(
            local_steps=steps, learning_rate=1.0, schedule=schedule, **UNIT | {"smoothness": 0.0}
        )
        assert found == (0.0, -0.5)
        mu = federated.fedavg_gdp(
            rounds=10**5, local_steps=steps, learning_rate=1.0, schedule=schedule, **UNIT | {"smoothness": 0.0}
        )
        n, factor = (10**5, steps) if schedule == "stagewise" else (10**5 * steps, 1)
        assert mu == pytest.approx(2 * factor * float(mp.harmonic(n)) / math.sqrt(1e5), rel=1e-9)


@pytest.mark.parametrize("schedule", ["constant", "cyclic"])
def test_equal_rounds(schedule: str) -> None:
    """Constant and cyclic steps grow without end; in a ball they reach their limit."""
    assert limit(schedule, 5, 0.1) == (math.inf, 0.5)
    for diameter in (0.01, 1.0, 30.0):
        found = limit(schedule, 5, 0.1, diameter)
        assert found.exponent == 0
        assert found.limit == pytest.approx(after(10**9, schedule, 5, 0.1, diameter), rel=1e-12)
        assert found.limit >= after(1, schedule, 5, 0.1)


@pytest.mark.share(4)
@pytest.mark.parametrize("schedule", FALLING)
@pytest.mark.parametrize("rate", [0.02, 0.3, 1.0, 2.0])
def test_falling_steps_in_a_ball(schedule: str, rate: float) -> None:
    """In a ball the parameter falls like T^(-1/2), whatever p: sqrt(T) mu is at least the smaller of D and y_0, at most an even fall of the gap."""
    assert limit(schedule, 2, rate, 0.5) == (0.0, -0.5)
    scaled = np.sqrt([1e4, 1e5, 1e6]) * after([10**4, 10**5, 10**6], schedule, 2, rate, 0.5)
    power = rate * (2 if schedule == "stagewise" else 1)
    first = 2 * rate * (2 / (1 + rate) ** 2 if schedule == "stagewise" else 1.5 / (1 + rate) / (1 + rate / 2))
    assert (scaled >= min(0.5, first)).all()
    # from T/2 on a shift is at most (2 p D + 2 gamma + 2 D)/T, gamma being 2 p in these units
    assert (scaled <= (2 * power * 0.5 + 2 * 2 * power + 2 * 0.5) / math.sqrt(2) * 1.001).all()
    if rate > 0.02:  # below, the start without the ball's gap is still the better one
        assert scaled[2] == pytest.approx(scaled[1], rel=2e-2)


def test_cells_outside_the_domain() -> None:
    """A cell outside the domain is NaN in both values if asked for, and else an error that names it."""
    found = federated.fedavg_gdp_limit(
        local_steps=1, learning_rate=[0.1, -1.0], schedule="continuous", on_error="nan", **UNIT
    )
    np.testing.assert_array_equal(np.isnan(found.limit), [False, True])
    np.testing.assert_array_equal(np.isnan(found.exponent), [False, True])
    with pytest.raises(ValueError, match="learning_rate must be positive"):
        limit("constant", 1, -1.0)


@pytest.mark.parametrize(("schedule", "steps"), [("stagewise", 1), ("continuous", 1), ("continuous", 7)])
def test_side_of_the_limit(schedule: str, steps: int) -> None:
    """For p = .7 the parameter falls to its limit in the end, as slopes fall to 0; for p = 1 and one local step it rises to it from 2."""
    late = after([10**4, 10**5, 10**6], schedule, steps, 0.7)
    assert late[0] > late[1] > late[2] > limit(schedule, steps, 0.7).limit
    if steps == 1:
        early = after([1, 2, 10, 1000], schedule, steps, 1.0)
        assert early[0] == pytest.approx(2.0, rel=1e-12)
        assert early[0] < early[1] < early[2] < early[3] < limit(schedule, steps, 1.0).limit
