"""The table of docs/audit/audit.md: for each algorithm an attack's lower bound of epsilon beside what is certified and published."""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import hockeystick as hs
from hockeystick import audit, federated, format_lower, format_upper, last_iterate, published

Scores = Callable[
    [np.random.Generator, float, int], NDArray[np.float64]
]  # of runs with the record if the sign is +1: larger ones

JOINT_CONFIDENCE = 0.99
ROUNDS, LOCAL_STEPS, CLIENTS = 20, 5, 10
FEDERATION = {"rounds": ROUNDS, "local_steps": LOCAL_STEPS, "num_clients": CLIENTS, "clip_norm": 1.0}
LATER = 5  # rounds of projected SGD after the record's own


class Row(NamedTuple):
    """An algorithm and its epsilons at one delta; None where nothing is known.

    The threshold of the scores was chosen by runs of other seeds. One that is chosen by the runs themselves may differ between processors, since last
    digits decide between thresholds that are nearly as good.
    """

    algorithm: str
    delta: float
    scores: Scores
    threshold: float
    lower: float | None
    upper: float
    published: float | None


def smallest_epsilon(delta_at: Callable[[float], float], delta: float) -> float:
    """Return the smallest epsilon at which a decreasing delta is at most so large, to 1e-6."""
    low, high = 0.0, 64.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high


def gaussian() -> Row:
    """Gaussian noise of standard deviation 1 on a sum of sensitivity 1."""
    accountant = hs.Accountant().compose(hs.Gaussian(1.0))
    bracket = accountant.epsilon_bracket(1e-5)
    return Row(
        "Gaussian mechanism", 1e-5, lambda rng, sign, runs: rng.normal(sign / 2, 1.0, runs), -3.3, *bracket[:2], None
    )


def noisy_sgd() -> Row:
    """20 steps on Poisson samples, all iterates released; the score is the logarithm of the likelihood ratio."""
    rate, noise, steps = 0.2, 1.0, 20

    def scores(rng: np.random.Generator, sign: float, runs: int) -> NDArray[np.float64]:
        total = np.zeros(runs)
        for _ in range(steps):
            taken = (rng.random(runs) < rate) & (sign > 0)
            sums = taken + rng.normal(0.0, noise, runs)
            total += np.log1p(rate * np.expm1((2 * sums - 1) / (2 * noise**2)))
        return total

    accountant = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), rate), steps)
    return Row(
        "noisy SGD, Poisson samples, all iterates", 1e-5, scores, 4.1, *accountant.epsilon_bracket(1e-5)[:2], None
    )


def projected_sgd(noise: str) -> Row:
    """Projected noisy SGD on linear losses, the last of six iterates released; the record is used in the first step."""
    delta, half, diameter = 1e-3, 1.0, 8.0
    kind = "noise_std" if noise == "Gaussian" else "noise_scale"

    def scores(rng: np.random.Generator, sign: float, runs: int) -> NDArray[np.float64]:
        model = np.zeros(runs)
        for step in range(LATER + 1):
            drawn = rng.normal(size=runs) if noise == "Gaussian" else rng.laplace(size=runs)
            model = np.clip(model - (sign * half if step == 0 else 0.0) - drawn, -diameter / 2, diameter / 2)
        return -model

    settings: dict[str, Any] = {"learning_rate": 1.0, kind: 1.0, "diameter": diameter}
    theorem = last_iterate.pnsgd_gaussian if noise == "Gaussian" else last_iterate.pnsgd_laplace
    settings_of_bounds = settings | {"index": 1, "num_records": LATER + 1, "lipschitz": half, "smoothness": 0.0}

    def exact(eps: float) -> float:
        records = np.zeros((2, LATER + 1))
        records[:, 0] = half, -half
        chain = last_iterate.chain_delta(
            eps, gradient_map="linear", record=records[0], neighbour=records[1], **settings
        )
        return float(chain.lower)

    def certified(eps: float) -> float:
        return float(last_iterate.best(eps, **settings_of_bounds, one_dimensional=True).delta)

    return Row(
        f"projected noisy SGD, {noise} noise, last iterate",
        delta,
        scores,
        diameter / 2,
        smallest_epsilon(exact, delta),
        smallest_epsilon(certified, delta),
        smallest_epsilon(lambda eps: float(theorem(eps, **settings_of_bounds)), delta),
    )


def trusted_aggregator() -> Row:
    """Ten rounds with one user each, in a random order, linear losses; the last model released."""
    delta, users, radius = 1e-3, 10, 1.5
    settings: dict[str, Any] = {
        "num_users": users,
        "batch_size": 1,
        "learning_rate": 1.0,
        "noise_std": 1.0,
        "lipschitz": 1.0,
        "radius": radius,
        "loss": "convex",
        "smoothness": 0.0,
    }

    def scores(rng: np.random.Generator, sign: float, runs: int) -> NDArray[np.float64]:
        model, own = np.zeros(runs), rng.integers(users, size=runs)
        for step in range(users):
            model = np.clip(model - sign * (own == step) - rng.normal(size=runs), -radius, radius)
        return -model

    return Row(
        "trusted aggregator, last model",
        delta,
        scores,
        radius,
        None,
        smallest_epsilon(lambda eps: float(federated.best(eps, **settings).delta), delta),
        smallest_epsilon(lambda eps: float(federated.trusted_aggregator(eps, **settings)), delta),
    )


def federation(steps: NDArray[np.float64], prox: float = 0.0) -> tuple[Scores, float]:
    """Return the scores of 20 rounds on linear losses, and the noise that makes one round's sensitivity half a deviation.

    One of ten clients has the loss +w or -w, at the clip norm 1; the others' losses are 0, and their models all the same.
    """

    def own(model: NDArray[np.float64], gradient: float) -> NDArray[np.float64]:
        local = model
        for step in steps:
            local = local - step * (np.clip(gradient, -1.0, 1.0) + prox * (local - model))
        return local

    shift = float(-own(np.zeros(1), 1.0)[0])
    noise = 2 * shift / (math.sqrt(CLIENTS) * 0.5)

    def scores(rng: np.random.Generator, sign: float, runs: int) -> NDArray[np.float64]:
        model = np.zeros(runs)
        for _ in range(ROUNDS):
            average = (own(model, sign) + (CLIENTS - 1) * own(model, 0.0)) / CLIENTS
            model = average + rng.normal(0.0, noise / math.sqrt(CLIENTS), runs)
        return -model

    return scores, noise


def noisy_fedavg(schedule: str, learning_rate: float, smoothness: float, threshold: float) -> Row:
    """Noisy-FedAvg on linear losses, the last model released; Theorem 12 (a) or (b) as printed."""
    divisors = np.arange(1, LOCAL_STEPS + 1) if schedule == "cyclic" else np.ones(LOCAL_STEPS)
    scores, noise = federation(learning_rate / divisors)
    settings: dict[str, Any] = FEDERATION | {
        "noise_std": noise,
        "smoothness": smoothness,  # that of linear losses is 0, and the printed bound claims more for larger ones
        "learning_rate": learning_rate,
        "schedule": schedule,
    }
    largest_c = {"c": 1.543} if schedule == "cyclic" else {}  # the most generous that the paper allows
    exact = hs.gdp_epsilon(math.sqrt(ROUNDS) / 2, 1e-5)
    return Row(
        f"Noisy-FedAvg, {schedule} steps, last model",
        1e-5,
        scores,
        threshold,
        exact,
        federated.fedavg_epsilon(1e-5, **settings),
        hs.gdp_epsilon(published.fedavg_gdp(**settings, **largest_c), 1e-5),
    )


def noisy_fedprox() -> Row:
    """Noisy-FedProx on linear losses, the last model released; Theorem 15 as printed."""
    rate, prox = 0.2, 2.0
    scores, noise = federation(np.full(LOCAL_STEPS, rate), prox)
    settings: dict[str, Any] = FEDERATION | {
        "noise_std": noise,
        "smoothness": 1.0,
        "learning_rate": rate,
        "prox": prox,
    }
    return Row(
        "Noisy-FedProx, last model",
        1e-5,
        scores,
        2.4,
        hs.gdp_epsilon(math.sqrt(ROUNDS) / 2, 1e-5),
        federated.fedprox_epsilon(1e-5, **settings),
        hs.gdp_epsilon(published.fedprox_gdp(**settings), 1e-5),
    )


def rows() -> list[Row]:
    """Return all rows; that some printed bounds are unsound is the subject."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", published.UnsoundBoundWarning)
        return [
            gaussian(),
            noisy_sgd(),
            projected_sgd("Gaussian"),
            projected_sgd("Laplace"),
            trusted_aggregator(),
            noisy_fedavg("constant", 0.1, 1.5, 2.9),
            noisy_fedavg("cyclic", 1.0, 1.0, 12.0),
            noisy_fedprox(),
        ]


def audited(runs: int) -> Iterator[tuple[Row, audit.Evidence]]:
    """Audit every algorithm by as many runs of either kind; all bounds hold together with the joint confidence."""
    table = rows()
    confidence = audit.individual_confidence(JOINT_CONFIDENCE, len(table))
    for row, seed in zip(table, np.random.SeedSequence(1).spawn(len(table)), strict=True):
        rng = np.random.default_rng(seed)
        scores = row.scores(rng, +1.0, runs), row.scores(rng, -1.0, runs)
        yield row, audit.evaluate(*scores, delta=row.delta, confidence=confidence, threshold=row.threshold)


def numbers(row: Row, evidence: audit.Evidence) -> str:
    """Return the columns of a row: lower ends are rounded down, upper ends up."""
    columns = [(format_lower, evidence.epsilon), (format_lower, row.lower), (format_upper, row.upper)]
    columns.append((format_upper, row.published))
    return " | ".join("" if value is None else rounded(value, ".3f") for rounded, value in columns)


LAWS: dict[str, tuple[Scores, float]] = {
    "Gaussian": (lambda rng, record, runs: rng.normal(record, 1.0, runs), 1e-5),
    "sampled Gaussian": (lambda rng, record, runs: rng.normal(size=runs) + record * (rng.random(runs) < 0.5), 1e-2),
    "Laplace": (lambda rng, record, runs: rng.laplace(record, 1.0, runs), 0.0),
    "two answers": (lambda rng, record, runs: (rng.random(runs) < 0.25 + 0.5 * record).astype(float), 0.0),
}


def mean_bounds(scores: Scores, delta: float, runs: int) -> Iterator[float]:
    """Yield the mean bound of both methods that assume nothing, at either confidence."""
    rng = np.random.default_rng(11)
    audits = [(scores(rng, 1.0, runs), scores(rng, 0.0, runs)) for _ in range(min(400, 4_000_000 // runs))]
    methods: tuple[audit.many_runs.Method, ...] = ("clopper_pearson", "simultaneous")
    for confidence in (0.95, 0.999):
        for method in methods:
            asked: dict[str, Any] = {"delta": delta, "confidence": confidence, "method": method}
            yield float(np.mean([audit.epsilon_lower_bound(*pair, **asked) for pair in audits]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--power", action="store_true", help="the table of both methods instead")
    if parser.parse_known_args()[0].power:
        for runs, (name, (scores, delta)) in itertools.product((1000, 100_000), LAWS.items()):
            means = " | ".join(format_lower(mean, ".3f") for mean in mean_bounds(scores, delta, runs))
            print(f"| {runs:,} | {name} | {delta:g} | {means} |")  # noqa: T201
        raise SystemExit
    parser.add_argument("--runs", type=int, default=400_000, help="runs with and without the record, each")
    print("| algorithm | δ | audit lower | exact or certified lower | certified upper | published |")  # noqa: T201
    print("|---|---|---|---|---|---|")  # noqa: T201
    for row, evidence in audited(parser.parse_args().runs):
        print(f"| {row.algorithm} | {row.delta:g} | {numbers(row, evidence)} |")  # noqa: T201
