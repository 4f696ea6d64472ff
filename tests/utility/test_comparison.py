"""The comparison of algorithms and trust models: every epsilon and every risk by hand, and what is left out on the way."""

import json
import math

import numpy as np
import pytest

from high_precision import theta
from hockeystick import last_iterate, utility
from hockeystick.cli import main, plan
from hockeystick.utility.algorithms import least_risk, risk_of_batches
from hockeystick.utility.settings import Candidate, Problem, Setting, checked_inputs, smallest

COMMON = {
    "num_silos": 12, "num_records": 500, "dimension": 5, "lipschitz": 1.5, "diameter": 2.0, "smoothness": 1.0,
    "epsilon": 2.0, "delta": 1e-5, "max_rounds": 32,
}  # fmt: skip
STRONG = COMMON | {"strong_convexity": 0.1}
PARTIES = {"central": 1, "inter-silo": 12, "local": 6000}


@pytest.fixture(scope="module")
def found() -> utility.Comparison:
    """All algorithms for strongly convex losses."""
    return utility.compare(**STRONG)


def rows(comparison: utility.Comparison, algorithm: str) -> list[utility.Row]:
    """Return the rows of an algorithm."""
    return [row for row in (*comparison.ranked, *comparison.unranked) if row.algorithm == algorithm]


def parties(row: utility.Row) -> int:
    """Return how many add noise in a round."""
    return 1 if row.trust == "central" else row.setting.silos_per_round


def variance(row: utility.Row) -> float:
    """Return the mean squared error of a round's gradient."""
    return (1.5**2 / row.setting.batch_size + 5 * row.setting.noise_std**2) / parties(row)


def test_all_algorithms_and_trust_models(found: utility.Comparison) -> None:
    """Every pair has a place: ranked, without a bound, or with a reason; the ranking has the smallest bound first."""
    assert {row.algorithm for row in found.ranked} == {
        "MB-SGD", "one-pass SGD", "one-pass AC-SA", "multi-stage AC-SA", "PNSGD, random stop", "trusted aggregator"
    }  # fmt: skip
    assert [row.algorithm for row in found.unranked] == ["FedAvg", "FedProx", "FedAvg, uploads seen"]
    assert {row.trust for row in found.ranked} == {"central", "inter-silo", "local", "last-iterate"}
    reasons = {row.trust: row.reason for row in found.impossible}
    assert "for the shuffler to help" in reasons["shuffle"]
    bounds = [row.setting.risk_bound for row in found.ranked]
    assert bounds == sorted(bounds)
    assert all(row.setting.epsilon <= 2.0 for row in (*found.ranked, *found.unranked))


@pytest.mark.parametrize("algorithm", ["one-pass SGD", "one-pass AC-SA", "multi-stage AC-SA"])
def test_single_passes_are_one_gaussian_release(found: utility.Comparison, algorithm: str) -> None:
    """A record is in one batch: delta at the epsilon shown is that of 2 L/(K sigma), and no record is used twice."""
    for row in rows(found, algorithm):
        s = row.setting
        assert theta(s.epsilon, 2 * 1.5 / (s.batch_size * s.noise_std)) == pytest.approx(1e-5, rel=1e-6)
        assert s.rounds * s.batch_size * parties(row) <= 6000


@pytest.mark.parametrize("trust", PARTIES)
def test_many_passes_with_full_batches(trust: str) -> None:
    """Full batches are T Gaussian releases: delta at epsilon is that of 2 L sqrt(T)/(K sigma)."""
    comparison = utility.compare(**COMMON, num_rows=None)
    (row,) = (row for row in rows(comparison, "MB-SGD") if row.trust == trust)
    s = row.setting
    assert s.batch_size == 6000 / PARTIES[trust]
    distance = 2 * 1.5 * math.sqrt(s.rounds) / (s.batch_size * s.noise_std)
    assert theta(s.epsilon, distance) == pytest.approx(1e-5, rel=1e-6)


def test_federated_averaging_is_certified(found: utility.Comparison) -> None:
    """Uploads move by 2 eta K V: averaged over m clients in the last model, alone where they are seen."""
    for name, clients in (("FedAvg", 12), ("FedAvg, uploads seen", 1)):
        (row,) = rows(found, name)
        s = row.setting
        assert s.learning_rate == min(2.0 / (1.5 * 5 * math.sqrt(32)), 1.0)
        mu = 2 * s.learning_rate * 5 * 1.5 * math.sqrt(s.rounds) / (math.sqrt(clients) * s.noise_std)
        assert theta(s.epsilon, mu) == pytest.approx(1e-5, rel=1e-6)
        assert row.status == "epsilon certified, no bound on the risk"
    (row,) = rows(found, "FedProx")
    eta, moved = row.setting.learning_rate, 0.0
    for _ in range(
        5
    ):  # the drift of a local model whose gradient differs by 2 V throughout, pulled back by alpha = 2 beta
        moved = moved * (1 - eta * 2.0) + eta * 2 * 1.5
    least = math.sqrt(32) * moved / (math.sqrt(12) * row.setting.noise_std)  # attained by linear losses
    assert theta(row.setting.epsilon, least) <= 1e-5 * (1 + 1e-9)
    assert theta(0.99 * row.setting.epsilon, least) > 0.9e-5


def test_random_stop_is_the_mean_over_the_stops(found: utility.Comparison) -> None:
    """Delta is the mean, over the step at which the run ends, of that of the record used first."""
    (row,) = rows(found, "PNSGD, random stop")
    s = row.setting
    process = {"learning_rate": s.learning_rate, "noise_std": s.noise_std, "lipschitz": 1.5 / s.batch_size}
    losses = {"smoothness": 1.0, "strong_convexity": 0.1, "diameter": 2.0}
    records = np.arange(1, s.rounds + 1)
    deltas = last_iterate.best(2.0, index=1, num_records=records, **process, **losses).delta
    assert 0.99e-5 < deltas.mean() * (1 - 1e-9) <= 1e-5
    moment = 1.5**2 + 5 * s.noise_std**2
    step = min(1.0, 2.0 / math.sqrt(s.rounds * moment))
    assert s.learning_rate == pytest.approx(step, rel=1e-12)
    bound = 4.0 / (2 * step * s.rounds) + step * moment / 2
    assert s.risk_bound == pytest.approx(min(bound, 3.0), rel=1e-12)


def test_risk_of_a_single_pass() -> None:
    """Convex losses: D sqrt(c/T), c = L^2 + d sigma^2/M; accelerated by the formula of Ghadimi and Lan."""
    comparison = utility.compare(**COMMON)
    for row in rows(comparison, "one-pass SGD"):
        s = row.setting
        moment = 1.5**2 + 5 * s.noise_std**2 / parties(row)
        assert s.risk_bound == pytest.approx(2.0 * math.sqrt(moment / s.rounds), rel=1e-12)
    for row in rows(comparison, "one-pass AC-SA"):
        s, t = row.setting, row.setting.rounds
        phi = max(2.0, math.sqrt(variance(row) * t * (t + 1) * (t + 2) / 6) / 2.0)
        bound = 2 * phi * 4.0 / (t * (t + 1)) + variance(row) * (t + 2) / (3 * phi)
        assert s.risk_bound == pytest.approx(min(bound, 3.0), rel=1e-12)


def test_stages_halve_the_bound() -> None:
    """The risk of multi-stage AC-SA, stage by stage with the bound of each, is at most what is shown."""
    comparison = utility.compare(**STRONG | {"num_records": 10**6, "max_rounds": 4096, "delta": 1e-8})
    seen = 0
    for row in rows(comparison, "multi-stage AC-SA"):
        gap, left = 3.0, row.setting.rounds
        while True:
            r = math.ceil(max(4 * math.sqrt(20.0), 512 * variance(row) / (0.3 * gap)))
            if r > left:
                break
            phi = max(2.0, math.sqrt(0.1 * variance(row) * r * (r + 1) * (r + 2) / (3 * gap)))
            after = 2 * phi * (2 * gap / 0.1) / (r * (r + 1)) + variance(row) * (r + 2) / (3 * phi)
            assert after <= gap / 2
            gap, left, seen = gap / 2, left - r, seen + 1
        assert row.setting.risk_bound == gap
    assert seen > 5


@pytest.mark.parametrize("seed", range(30))
def test_search_leaves_out_only_what_is_worse(seed: int) -> None:
    """Groups of candidates with random risks: the answer is that of calibrating all, whatever is left out."""
    rng = np.random.default_rng(seed)
    risks = [rng.choice([0.5, 1.0, *rng.random(5)], size=rng.integers(0, 6)) for _ in range(7)]
    groups = [
        [
            Candidate(risk * rng.choice([0.3, 0.95, 1.0]), lambda risk=risk, k=k: Setting(1.0, k, 1, 1, 1.0, 1.0, risk))
            for k, risk in enumerate(group)
        ]
        for group in risks
    ]
    expected = sorted((group.min(), number, group.argmin()) for number, group in enumerate(risks) if group.size)
    for most in (1, 2, 7):
        found = smallest(groups, most)
        assert [(s.risk_bound, number, s.rounds) for number, s in found.found] == expected[:most]
        assert found.calibrated <= sum(map(len, groups))


@pytest.mark.parametrize("convexity", [0.0, 0.01, 0.7])
def test_no_noise_undercuts_the_least_risk(convexity: float) -> None:
    """The bound by which settings are left out is below the risk of any noise, also where Stich's step falls with it."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        given = COMMON | {"smoothness": 1.0, "strong_convexity": convexity, "diameter": float(10 ** rng.uniform(-2, 2))}
        problem = checked_inputs(Problem, given | {"silos_per_round": None, "max_batch_size": None})
        rounds, noise = int(2 ** rng.uniform(0, 14)), float(10 ** rng.uniform(-4, 4))
        for total in (10.0, 1e5, math.inf):
            risk = risk_of_batches(problem, rounds, noise, 3, total)[1]
            assert least_risk(problem, rounds) <= risk


def test_fewer_rows_are_the_first_of_all(found: utility.Comparison) -> None:
    """The first rows are the same when no others are asked for, and fewer settings are calibrated for them."""
    for most in (1, 4):
        few = utility.compare(**STRONG, num_rows=most)
        assert few.ranked == found.ranked[:most]
        assert few.calibrated < found.calibrated <= found.candidates == few.candidates


def test_partial_participation() -> None:
    """FedAvg's theorem has every client in every round; where some are missing it is refused with that reason."""
    comparison = utility.compare(**COMMON, silos_per_round=6)
    refused = {row.algorithm: row.reason for row in comparison.impossible if row.trust == "last-iterate"}
    assert "silos_per_round = num_silos" in refused["FedAvg"]
    assert refused["trusted aggregator"].startswith("strong_convexity must be positive for the trusted aggregator")
    stages = {row.reason for row in comparison.impossible if row.algorithm == "multi-stage AC-SA"}
    assert stages == {"strong_convexity must be positive for multi-stage AC-SA, not 0"}
    assert all(row.setting.silos_per_round <= 6 for row in comparison.ranked if row.trust == "inter-silo")


OPTIONS = [
    *("plan", "--num-silos", "12", "--num-records", "500", "--dimension", "5", "--lipschitz", "1.5", "--diameter", "2"),
    *("--smoothness", "1", "--strong-convexity", "0.1", "--epsilon", "2", "--delta", "1e-5", "--rounds", "32"),
]


def test_command(capsys: pytest.CaptureFixture[str], found: utility.Comparison) -> None:
    """Without a trust model the command prints the comparison; what is printed as a bound is none below it."""
    assert main(OPTIONS) == 0
    text = capsys.readouterr().out
    assert text == f"{found}\n"
    lines = text.splitlines()[3 : 3 + len(found.ranked)]
    for line, row in zip(lines, found.ranked, strict=True):
        assert row.setting.risk_bound <= float(line.split()[-1])
        assert row.setting.epsilon <= float(line.split()[-2]) <= 2.0


def test_command_json(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has no NaN: where no bound is known it has null, and the status says so."""
    assert main([*OPTIONS, "--json", "--top", "2"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["ranked"]) == 2
    assert answer["unranked"][0]["setting"]["risk_bound"] is None
    assert answer["unranked"][0]["status"].endswith("no bound on the risk")
    assert answer["calibrated"] < answer["candidates"]


def test_command_tells_how_far_it_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that takes long writes to standard error how many settings are done."""
    monkeypatch.setattr(plan, "SECONDS", 0.0)
    assert main([*OPTIONS, "--top", "1"]) == 0
    assert "hockeystick plan: 1 of " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--sweep", "x.toml"], "--sweep: needs --trust"),
        (["--simulate", "3"], "--simulate: needs --trust"),
        (["--trust", "central", "--local-steps", "3"], "--local-steps: not allowed with --trust central"),
        (["--batch-size", "501"], "max_batch_size must be at most --num-records"),
        (["--trust", "last-iterate", "--strong-convexity", "0"], "--strong-convexity: must be positive"),
    ],
)
def test_command_rejects(capsys: pytest.CaptureFixture[str], options: list[str], reason: str) -> None:
    """Options that do not fit are refused with code 2 and one line."""
    assert main([*OPTIONS, *options]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1
