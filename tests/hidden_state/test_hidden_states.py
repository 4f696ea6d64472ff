"""Certified bounds of hidden states never fall below exact chains, records used more than once among them."""

import itertools
import math

import numpy as np
import pytest

import effort
import hockeystick as hs
import mixture_chain
from hockeystick import federated, last_iterate

EPS = np.array([0.0, 0.1, 0.5, 1.0, 2.0])
UNIT = {"learning_rate": 1.0, "noise_std": 1.0}
RESOLVED = 1e-10  # what the reference's quadrature is right to
GRADIENTS = {
    "linear": lambda w, x, _: np.full_like(w, x),
    "quadratic": lambda w, x, beta: beta * (w - x),
    "logistic": lambda w, x, _: -x / (1 + np.exp(x * w)),
}


class Instance:
    """A random process on an interval with a record, its neighbour and the others, and its constants."""

    def __init__(self, rng: np.random.Generator, *, noises: tuple[str, ...] = ("noise_std",), cells: int = 12) -> None:
        self.kind = str(rng.choice(list(GRADIENTS)))
        self.diameter = 10 ** rng.uniform(-0.5, 0.8)
        size = 10 ** rng.uniform(-1, 0.5)
        self.record = size
        self.neighbour = -size if rng.random() < 0.7 else size * rng.uniform(-1, 1)
        self.other = size * rng.uniform(-1, 1)
        self.rate = rng.uniform(0.1, 1.5)
        beta = rng.uniform(0.05, 2.5 / self.rate)
        self.beta = {"linear": 0.0, "quadratic": beta, "logistic": size**2 / 4}[self.kind]
        self.rho = beta if self.kind == "quadratic" else 0.0
        self.lipschitz = beta * (self.diameter / 2 + size) if self.kind == "quadratic" else size
        self.noise_name = str(rng.choice(noises))
        self.noise = max(self.lipschitz * 10 ** rng.uniform(-0.5, 1.0), self.diameter / self.rate / cells)
        self.start = rng.uniform(-0.5, 0.5) * self.diameter

    def psi(self, x: float):
        """Return the map of a step with the record x."""
        return lambda w: w - self.rate * GRADIENTS[self.kind](w, x, self.beta)

    def exact(self, first, second) -> np.ndarray:
        """Return the lower end of delta for both sequences of rounds."""
        return mixture_chain.lower_end(EPS, first, second, self.diameter / 2, self.rate * self.noise, self.start)

    def chain(self, uses: list[bool], *, other: float | None = None, **more) -> hs.Bracket:
        """Return the certified delta if the record takes part in some of the steps, and the other one in the rest."""
        other = self.other if other is None else other
        given = {
            "epsilon": EPS,
            "gradient_map": self.kind,
            "record": np.where(uses, self.record, other),
            "neighbour": np.where(uses, self.neighbour, other),
            "learning_rate": self.rate,
            self.noise_name: self.noise,
            "diameter": self.diameter,
            "start": self.start,
            "smoothness": self.beta if self.kind == "quadratic" else None,
        }
        return last_iterate.chain_delta(**given | more)

    @property
    def process(self) -> dict:
        """Return the arguments that all bounds share."""
        return {
            "learning_rate": self.rate,
            self.noise_name: self.noise,
            "lipschitz": self.lipschitz,
            "smoothness": self.beta,
            "strong_convexity": self.rho,
            "diameter": self.diameter,
        }


def compare(best, exact: np.ndarray, error: float, tightest: dict[str, float], *, least: float = 1e-7) -> None:
    """Assert that no bound is missing or below the exact value but for its error, and keep the smallest ratios where that is resolved, from `least` on."""
    for name, bound in best.bounds.items():
        assert np.all(bound + error >= exact), (name, bound, exact)
        resolved = exact > least
        if resolved.any():
            tightest[name] = min(float(np.min(bound[resolved] / exact[resolved])), tightest.get(name, math.inf))


def test_one_participation() -> None:
    """On random chains every bound of `best` is at least the exact value; where that is resolved, by what ratio is told."""
    rng = np.random.default_rng(16)
    tightest: dict[str, float] = {}
    for k in range(effort.at_night(700, by_day=80)):
        eps = EPS[k % 2 :: 2]
        x = Instance(rng, noises=("noise_std", "noise_scale"), cells=40)
        rounds = int(rng.integers(1, 12))
        index = int(rng.integers(max(1, rounds - 4), rounds + 1))
        gaussian = x.noise_name == "noise_std"
        best = last_iterate.best(eps, index=index, num_records=rounds, **x.process, one_dimensional=gaussian)
        uses = [t + 1 == index for t in range(rounds)]
        exact = x.chain(uses, other=x.record if k % 4 < 2 else None, epsilon=eps, tolerance=1.0)
        compare(best, exact.lower, 0.0, tightest, least=1e-11)
    # some instance meets each bound closely: none of the comparisons above was empty
    assert all(ratio < 1.05 for ratio in tightest.values()), tightest


def test_every_round_with_schedules() -> None:
    """On random chains whose steps and noise vary, shifted interpolation with the diameter is at least the exact value."""
    rng = np.random.default_rng(12)
    closest = math.inf
    for _ in range(effort.at_night(300, by_day=12)):
        x = Instance(rng, noises=("noise_std", "noise_scale"), cells=40)
        rounds, eps = int(rng.integers(1, 7)), np.array([0.0, 0.3, 1.0, 3.0])
        rates, noises = x.rate * rng.uniform(0.3, 1, rounds), x.noise * rng.uniform(0.7, 1.5, rounds)
        schedule = {"learning_rate": rates, "noise_std": noises, "noise_scale": None}
        exact = x.chain([True] * rounds, epsilon=eps, tolerance=1.0, **schedule)
        rho = np.maximum(abs(1 - rates * x.beta), abs(1 - rates * x.rho))
        deviation = rates * noises
        # in deviations of each round's noise; what a round inherits is measured in those of the round before
        before = np.concatenate([deviation[:1], deviation[:-1]])
        spans = x.diameter / deviation
        gap = np.full(rounds, 2 * x.lipschitz) / noises
        plain = hs.shifted_interpolation(rho * before / deviation, gap).value
        # a start from the whole domain: the largest diameter over all rounds is an upper bound for each
        bounded = hs.shifted_interpolation(rho * before / deviation, gap, diameter=float(spans.max())).value
        assert bounded <= plain * (1 + 1e-12)
        bound = hs.theta(eps, math.sqrt(bounded))
        assert np.all(bound * (1 + 1e-12) >= exact.lower)
        closest = min(closest, float(bound[0] / exact.lower[0]))
    assert closest < 1.05


def test_large_steps_break_the_papers_contraction() -> None:
    """Equation 14's M is no Lipschitz constant beyond 2/(beta + rho): there Theorem 4's formula is below the exact value, and `best` is not."""
    eps, beta, rho, rate, noise, diameter = 6.0, 1.0, 0.1, 1.99, 0.25, 2.0
    common = {"index": 1, "smoothness": beta, "learning_rate": rate, "noise_std": noise, "diameter": diameter}
    quadratic = {"gradient_map": "quadratic", "record": 1.0, "neighbour": -1.0}  # its strong convexity is at least rho
    exact = last_iterate.chain_delta(eps, **common, **quadratic, rounds=2)
    m = math.sqrt(1 - 2 * rate * beta * rho / (beta + rho))
    assert exact.lower > 0.478
    assert hs.theta(eps, 2 * 2.0 / noise) * hs.theta(eps, m * diameter / (rate * noise)) < 0.2931
    assert last_iterate.best(eps, **common, num_records=2, lipschitz=2.0, strong_convexity=rho).delta >= exact.lower


def test_cyclic() -> None:
    """On random chains every bound is at least the certified one; each comes close to some."""
    rng = np.random.default_rng(25)
    tightest: dict[str, float] = {}
    for _ in range(effort.at_night(500, by_day=50)):
        x = Instance(rng)
        rounds = int(rng.integers(2, 13))
        index, period = int(rng.integers(1, rounds + 1)), int(rng.choice([1, 1, 2, 3, 5]))
        uses = [t + 1 >= index and (t + 1 - index) % period == 0 for t in range(rounds)]
        best = last_iterate.best_cyclic(EPS, index=index, period=period, rounds=rounds, **x.process)
        compare(best, x.chain(uses).lower, 0.0, tightest)
    assert all(ratio < 1.05 for ratio in tightest.values()), tightest


def test_sampled() -> None:
    """On random chains with a record drawn at random, every bound is at least the exact value of the mixture."""
    rng = np.random.default_rng(22)
    tightest: dict[str, float] = {}
    for k in range(effort.at_night(300, by_day=12)):
        x, some = Instance(rng), slice(k % 2, None, 2)  # bounds are milliseconds for each eps: every second one
        rounds, rate = int(rng.integers(1, 10)), float(rng.choice([0.05, 0.3, 0.7, 0.95]))
        if k % 3 == 0:  # a Poisson sample: the record's gradient is added to the others'
            x.kind, x.beta, x.rho, x.lipschitz = "linear", 0.0, 0.0, x.record
            others = x.psi(0.0)
        else:  # one record a step
            others = x.psi(x.other)
        first, second = ([[(rate, x.psi(r)), (1 - rate, others)]] * rounds for r in (x.record, x.neighbour))
        best = last_iterate.best_sampled(EPS[some], sampling_rate=rate, rounds=rounds, **x.process)
        compare(best, x.exact(first, second)[some], RESOLVED, tightest)
    assert all(ratio < 1.3 for ratio in tightest.values()), tightest


@pytest.mark.parametrize("c", [0.2, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("rounds", [1, 2, 10, 1000])
def test_strongly_convex_closed_form(c: float, rounds: int) -> None:
    """Without a domain: g sqrt((1 + c)/(1 - c) (1 - c^T)/(1 + c^T)), which quadratics attain."""
    process = UNIT | {"lipschitz": 0.1, "smoothness": 1 - c, "strong_convexity": 1 - c, "diameter": np.inf}
    best = last_iterate.best_cyclic(0.3, index=1, period=1, rounds=rounds, **process)
    mu = 0.2 * math.sqrt((1 + c) / (1 - c) * (1 - c**rounds) / (1 + c**rounds))
    np.testing.assert_allclose(best.delta, hs.theta(0.3, mu), rtol=1e-9)


@pytest.mark.parametrize("c", [0.3, 0.9, 1.0, 1.2])
@pytest.mark.parametrize(("index", "period", "rounds"), [(1, 3, 10), (2, 4, 13), (5, 2, 9), (1, 7, 40), (3, 50, 30)])
@pytest.mark.parametrize("diameter", [0.5, 3.0, np.inf])
def test_cyclic_is_shifted_interpolation_over_rounds(
    c: float, index: int, period: int, rounds: int, diameter: float
) -> None:
    """Participations as blocks of rounds give what shifted interpolation gives round by round with zero gaps in between.

    With a diameter, starts are looked for at participations and right after them only, and a gap is never counted as larger
    than that of coupled runs: the value lies between the optimum and those starts'.
    """
    beta, rho = (1 + c, 0.0) if c > 1 else (1 - c, 1 - c)
    process = UNIT | {"lipschitz": 0.2, "smoothness": beta, "strong_convexity": rho, "diameter": diameter}
    best = last_iterate.best_cyclic(0.0, index=index, period=period, rounds=rounds, **process)
    gamma = np.where((np.arange(1, rounds + 1) - index) % period == 0, 0.4, 0.0)
    gamma[: index - 1] = 0
    bound = None if np.isinf(diameter) else diameter
    optimum = hs.theta(0.0, math.sqrt(hs.shifted_interpolation(np.full(rounds, c), gamma, diameter=bound).value))
    if bound is None:
        np.testing.assert_allclose(best.bounds["shifted"], optimum, rtol=1e-9)
        return
    starts = [i for i in range(index - 1, rounds) if gamma[i] > 0 or (i > 0 and gamma[i - 1] > 0)]
    values = [hs.shifted_interpolation(np.full(rounds, c), gamma).value]
    values += [
        hs.shifted_interpolation(np.full(rounds - i, c), gamma[i:], initial_gap=bound).value for i in starts if i > 0
    ]
    assert optimum * (1 - 1e-9) <= best.bounds["shifted"] <= hs.theta(0.0, math.sqrt(min(values))) * (1 + 1e-9)


def test_pattern_is_below_the_sum_over_patterns() -> None:
    """The mean over all patterns by enumeration, F after the last use, is never below; for two rounds it is equal."""
    process = UNIT | {"lipschitz": 0.25, "smoothness": 0.0, "diameter": 2.0}
    for rounds, rate, eps in itertools.product((1, 2, 6), (0.1, 0.6), (0.2, 1.0)):
        found = last_iterate.best_sampled(eps, sampling_rate=rate, rounds=rounds, **process).bounds["pattern"]
        total = 0.0
        for pattern in itertools.product((False, True), repeat=rounds):
            uses = sum(pattern)
            if uses == 0:
                continue
            later = pattern[::-1].index(True)
            e = hs.theta(eps, 0.5 * math.sqrt(uses))
            for _ in range(later):
                e *= hs.theta(math.log1p(math.expm1(eps) / e), 2.0)
            total += rate**uses * (1 - rate) ** (rounds - uses) * e
        assert found <= total * (1 + 1e-7)
        if rounds <= 2:
            np.testing.assert_allclose(found, total, rtol=1e-7)


@pytest.mark.parametrize("loss", ["convex", "nonconvex"])
def test_aggregator_that_draws_every_round(loss: str) -> None:
    """A batch of two among users with linear or, for nonconvex losses, concave quadratic ones: the chain's mixture is never above."""
    rng = np.random.default_rng(23)
    for _ in range(effort.at_night(60, by_day=6)):
        users, rounds = int(rng.integers(2, 7)), int(rng.integers(1, 8))
        radius, lipschitz, rate = rng.uniform(0.3, 2.0), rng.uniform(0.1, 1.0), rng.uniform(0.2, 1.0)
        noise = max(lipschitz * 10 ** rng.uniform(-0.2, 0.8), radius / rate / 4)
        beta = 0.0 if loss == "convex" else 0.5 * lipschitz / radius

        def psi(slopes, beta=beta, lipschitz=lipschitz, rate=rate):
            return lambda w: w - rate * ((1 - 0.5 * (beta > 0)) * lipschitz * np.mean(slopes) - beta * w)

        drawn = 2 / users
        first, second = ([[(drawn, psi([own, 0.3])), (1 - drawn, psi([0.3, 0.3]))]] * rounds for own in (1.0, -1.0))
        exact = mixture_chain.lower_end(EPS, first, second, radius, rate * noise / math.sqrt(2))
        lengths = {"learning_rate": rate, "noise_std": noise, "lipschitz": lipschitz, "radius": radius}
        settings = {"num_users": users, "batch_size": 2, "rounds": rounds, "loss": loss, "smoothness": beta}
        best = federated.best_sampled(EPS, **lengths, **settings)
        compare(best, exact, RESOLVED, {})


@pytest.mark.parametrize("scale", [1e-12, 1e-15, 1e-100])
def test_divided_scales_with_small_losses(scale: float) -> None:
    """What a record does in proportion to a small gradient, at losses in the same proportion, is in that proportion."""

    def divided(size: float, rate: float) -> float:
        process = UNIT | {"lipschitz": size / 2, "smoothness": 0.0, "diameter": 2.0}
        best = last_iterate.best_sampled(1.3 * size, sampling_rate=rate, rounds=10, **process)
        return float(best.bounds["divided"]) / size

    for rate in (0.5, 1.0):
        assert divided(scale, rate) == pytest.approx(divided(1e-6, rate), rel=1e-4)


LINEAR = {"gradient_map": "linear", "record": 0.5, "neighbour": -0.5, "learning_rate": 1.0}
USERS = {"batch_size": 1, "learning_rate": 1.0, "lipschitz": 0.5, "loss": "convex", "smoothness": 0.0}


def test_single_participation_meets_the_aggregators_sum() -> None:
    """Averaged over the round in which the record takes part, the exact chains stay below every bound of federated.best."""
    rounds, eps = 6, np.array([0.0, 0.5, 1.0])
    settings = LINEAR | {"rounds": rounds, "noise_std": 0.8, "diameter": 2.0}
    lower = [last_iterate.chain_delta(eps, **settings, index=t).lower for t in range(1, rounds + 1)]
    exact = np.mean(lower, axis=0)
    best = federated.best(eps, **USERS, num_users=rounds, noise_std=0.8, radius=1.0)
    for name, bound in best.bounds.items():
        assert np.all(bound >= exact), name
    assert best.delta[0] < 2 * exact[0]
