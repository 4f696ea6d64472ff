"""Certificates as the library writes them: proved by the checker, exact, the same from every door, and refused where no rule covers them."""

import contextlib
import datetime as dt
import importlib
import json
import math
import os
import random
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
import high_precision as exact
import hockeystick as hs
import processes
from compositions import composed
from hockeystick.accounting import certificate as writer
from hockeystick.cli import main

flint = pytest.importorskip("flint", reason="pip install python-flint")
FOLDER = Path(__file__).parents[2] / "checker"
GAUSSIAN, NOISE = hs.Gaussian(2.0), hs.DiscreteGaussian(3.0, 2)
TRAINING = {"num_records": 60_000, "batch_size": 256, "epochs": 15, "noise_multiplier": 1.1}


@pytest.fixture(name="check", scope="module")
def fixture_check() -> ModuleType:
    """Import the program from where it stands: it is a package of its own."""
    sys.path.insert(0, str(FOLDER))
    module = importlib.import_module("hockeystick_check")
    sys.path.remove(str(FOLDER))
    flint.ctx.prec = module.BITS
    return module


def is_proved(check: ModuleType, text: str, **claim: str) -> bool:
    """Say whether a certificate is proved, perhaps with another claim."""
    data = json.loads(text)
    data["claim"] |= claim
    try:
        check.Claim(json.dumps(data)).prove()
    except check.NotProved:
        return False
    return True


def number(text: str) -> float:
    """Return the double that is written so."""
    return float.fromhex(text) if "x" in text else float(text)


BOTH, ADDED, REPLACED = ("add_or_remove", "replace"), ("add_or_remove",), ("replace",)
STEPS = {  # steps, adjacencies, and what is proved: both ends to the last bit, both with a thousandth to spare, or what only dominates
    "Gaussian": ([(GAUSSIAN, 9)], BOTH, "both"),
    "DP-SGD": ([(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 1000)], BOTH, "both"),
    "no samples": ([(hs.PoissonSampled(GAUSSIAN, 0.0), 5), (GAUSSIAN, 5)], BOTH, "both"),
    "Laplace": ([(hs.Laplace(20.0), 300)], BOTH, "nearly"),
    "whole samples": ([(hs.PoissonSampled(hs.DiscreteLaplace(0.125), 1.0), 200)], BOTH, "nearly"),
    "DiscreteGaussian": ([(NOISE, 50)], BOTH, "nearly"),
    "integer samples": ([(hs.PoissonSampled(NOISE, 0.25), 50)], ADDED, "nearly"),
    "DiscreteLaplace": ([(hs.DiscreteLaplace(0.1, 3), 40)], BOTH, "nearly"),
    "RandomizedResponse": ([(hs.RandomizedResponse(0.9, 5), 100)], REPLACED, "nearly"),
    "Discrete": ([(hs.Discrete([0.5, 0.25, 0.25], [0.25, 0.5, 0.25]), 30)], BOTH, "nearly"),
    "revealing": ([(hs.Discrete([1 - 2.0**-20, 2.0**-20], [1.0, 0.0]), 3), (GAUSSIAN, 3)], BOTH, "nearly"),
    "ApproximateDP": ([(hs.ApproximateDP(0.1, 1e-9), 200)], BOTH, "dominates"),
    "FixedSizeSampled": ([(hs.FixedSizeSampled(hs.Gaussian(4.0), 100, 10, replacement=False), 300)], ADDED, "dominates"),
    "several": ([(hs.PoissonSampled(GAUSSIAN, 0.1), 200), (hs.Laplace(20.0), 20), (hs.DiscreteLaplace(0.05), 9)], ADDED, "nearly"),
}  # fmt: skip
CASES = [(name, adjacency) for name, (_, adjacencies, _) in STEPS.items() for adjacency in adjacencies]


@pytest.mark.share(20, by_day=2)
@pytest.mark.parametrize("asked", ["delta", "epsilon"])
@pytest.mark.parametrize(("name", "adjacency"), CASES)
def test_what_is_written_is_proved(check: ModuleType, name: str, adjacency: Any, asked: str) -> None:
    """Claims of epsilon and of delta; and no delta is that is below the lower end, nor at least one above the upper end."""
    steps, _, proved = STEPS[name]
    accountant = composed(*steps, adjacency=adjacency)
    at = {"delta": 2.0**-17} if asked == "epsilon" else {"epsilon": accountant.epsilon(1e-5)}
    slack = 0.0 if proved == "both" else 1e-3
    text = accountant.certificate(**at, slack=slack)
    assert is_proved(check, text)
    if proved == "dominates":
        with pytest.raises(ValueError, match=f"lower must be False: the rule for {name}"):
            accountant.certificate(**at, lower=True)
        return
    lower = accountant.certificate(**at, lower=True, slack=slack)
    assert json.loads(lower)["claim"]["delta_is"] == "at least"
    assert is_proved(check, lower)
    if proved == "both":
        found = accountant.delta_bracket(number(json.loads(text)["claim"]["epsilon"]))
        assert not is_proved(check, text, delta=(found.lower * (1 - 1e-9)).hex())
        assert not is_proved(check, text, delta=(found.upper * (1 + 1e-9)).hex(), delta_is="at least")


def test_claims_of_gaussian_noise_are_its_closed_form() -> None:
    """The delta of the claim, and the delta at the epsilon of the claim, are at least the truth, and it to 1e-9."""
    accountant = hs.Accountant().compose(GAUSSIAN, 9)
    by_delta, by_epsilon = (
        json.loads(accountant.certificate(**at))["claim"] for at in ({"delta": 1e-5}, {"epsilon": 2.0})
    )
    assert number(by_delta["delta"]) == 1e-5
    assert by_epsilon["epsilon"] == "2.0"
    with mp.workdps(40):
        for claim in (by_delta, by_epsilon):
            epsilon, delta = number(claim["epsilon"]), number(claim["delta"])
            assert 1 <= delta / exact.theta(epsilon, mp.mpf(3) / 2) <= 1 + mp.mpf("1e-9")


SHIFTS = [
    {"rho": [1.0, 0.0, 1.3], "gamma": [1.0, 0.0, 0.7]},
    {"rho": 0.4, "gamma": 0.1, "rounds": 1000},  # whose first shifts are below the smallest double
    {"rho": 1.0, "gamma": 0.25, "rounds": 10**9, "diameter": 1.0},
    {"rho": 1.01, "gamma": 0.0, "rounds": 40, "initial_gap": 2.0},
]


@pytest.mark.parametrize("asked", SHIFTS, ids=str)
def test_tables_of_shifts_are_proved(check: ModuleType, asked: dict[str, Any]) -> None:
    """Of runs of every kind: at the delta of Gaussian noise of the least sum of squares, and at no less."""
    found = hs.last_iterate.shifted_interpolation(**asked)
    for at in ({"delta": 1e-5}, {"epsilon": 1.0}):
        text = found.certificate(2.0, **at)
        assert is_proved(check, text)
        epsilon, delta = (number(json.loads(text)["claim"][name]) for name in ("epsilon", "delta"))
        with mp.workdps(40):
            truth = exact.theta(epsilon, mp.sqrt(found.value) / 2)
            assert 1 <= delta / truth <= 1 + mp.mpf("1e-6")
        assert not is_proved(check, text, delta=(float(truth) * (1 - 1e-6)).hex())


@pytest.mark.parametrize("lower", [False, True])
def test_a_claim_with_slack_is_weaker(lower: bool) -> None:
    """By that share of delta, at the delta that was asked for or at the epsilon; other shares are refused."""
    accountant, slack = hs.Accountant().compose(GAUSSIAN, 9), 0.25
    share = 1 / (1 + slack) if lower else 1 + slack  # of the claim over the truth
    for at in ({"delta": 1e-5}, {"epsilon": 2.0}):
        claim = json.loads(accountant.certificate(**at, lower=lower, slack=slack))["claim"]
        assert {name: number(claim[name]) for name in at} == at
        with mp.workdps(40):
            found = number(claim["delta"]) / exact.theta(number(claim["epsilon"]), mp.mpf(3) / 2)
            assert abs(found / share - 1) <= mp.mpf("1e-9")
    for wrong in (-0.1, 1.5):
        with pytest.raises(ValueError, match=r"slack must lie in \[0, 1\]"):
            accountant.certificate(delta=1e-5, slack=wrong)


def test_lower_ends_that_claim_nothing_are_refused() -> None:
    """A delta of at least 0, and the delta at an epsilon of 0 where 0 will do, would be empty, or false."""
    accountant = hs.Accountant().compose(hs.Laplace(10.0))
    for at, words in (
        ({"epsilon": 1.0}, "at epsilon = 1.0 .* delta is 0"),
        ({"delta": 0.5}, "at delta = 0.5 .* epsilon is 0"),
    ):
        assert json.loads(accountant.certificate(**at))["claim"]["delta_is"] == "at most"
        with pytest.raises(ValueError, match=words):
            accountant.certificate(**at, lower=True)


@given(double=st.floats(0.0, 1e5).filter(lambda x: x == 0.0 or x >= writer.SMALLEST))
def test_doubles_survive(check: ModuleType, double: float) -> None:
    """The checker reads the number that was written, to the last bit."""
    assert check.Fields({"some": writer._written("some", double)}, "").number("some", 0.0, 1e5) == Fraction(double)


@given(count=st.integers(1, 10**9))
def test_counts_are_whole(check: ModuleType, count: int) -> None:
    """The checker reads a count as the whole number that it is."""
    assert writer._written("count", count) == str(count)
    assert check.Fields({"count": str(count)}, "").whole("count", 1e9) == count


EDGES = {  # of `DOMAINS`: a ledger with the number
    "count": lambda x: [(hs.Gaussian(1e4), int(x))],
    "inverse_scale": lambda x: [(hs.DiscreteLaplace(x), 1)],
    "noise_multiplier": lambda x: [(hs.Laplace(x), 1)],
    "noise_std": lambda x: [(hs.DiscreteGaussian(x), 1)],
    "num_records": lambda x: [(hs.FixedSizeSampled(GAUSSIAN, max(int(x), 2), 1, replacement=False), 1)],
    "sensitivity": lambda x: [(hs.DiscreteGaussian(1e4, int(x)), 1)],
}


@pytest.mark.share(6)
@pytest.mark.parametrize("name", EDGES)
def test_numbers_that_the_checker_does_not_take_are_refused(check: ModuleType, name: str) -> None:
    """At both ends of a domain the checker reads what is written; outside it is refused by name, with the domain."""
    inside, domain = writer.DOMAINS[name]
    low, high = (float(Fraction(end)) for end in domain.partition("[")[2].rstrip("]").split(","))
    whole = name in ("count", "num_records", "sensitivity")
    for edge in (low, high):
        assert inside(edge)
        with contextlib.suppress(check.NotProved):  # too many values
            check.Claim(composed(*EDGES[name](edge)).certificate(delta=0.5))
    above = high + 1 if whole else math.nextafter(high, math.inf)
    below = [] if whole else [math.nextafter(low, 0)]
    for beyond in below if name == "inverse_scale" else [*below, above]:  # of which the mechanism has the upper end
        with pytest.raises(ValueError, match=rf"^{name} of a certificate must lie in \["):
            composed(*EDGES[name](beyond)).certificate(delta=0.5)


def test_every_door_writes_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The accountant, the function, the command and the statement: one file for one question."""
    rate, steps = 256 / 60_000, 15 * 235
    step = hs.PoissonSampled(hs.Gaussian(1.1), rate)
    files = [tmp_path / f"{name}.json" for name in "abcde"]
    words = f"--num-records 60000 --batch-size 256 --epochs 15 --noise-multiplier 1.1 --certificate {files[0]}".split()
    accountant = composed((step, steps))
    for command, at in (("epsilon", {"delta": 1e-5}), ("delta", {"epsilon": 1.0})):
        given_at = [word for name, value in at.items() for word in (f"--{name}", str(value))]
        assert main([command, *words, *given_at]) == 0
        wanted = accountant.certificate(**at)
        assert files[0].read_bytes() == wanted.encode()
        assert hs.dpsgd_certificate(1.1, rate, steps, **at) == wanted
        rates = ["--noise-multiplier", "1.1", "--sampling-rate", repr(rate), "--steps", str(steps)]
        assert main([command, *rates, *given_at, "--certificate", str(files[1]), "--json"]) == 0
        assert files[1].read_bytes() == wanted.encode()
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["certificate"] == str(files[1])
        assert main([command, *words, *given_at, "--slack", "0.25"]) == 0
        assert files[0].read_text() == accountant.certificate(**at, slack=0.25)
    wanted = accountant.certificate(delta=1e-5)
    assert main(["statement", *words, "--delta", "1e-5"]) == 0
    hs.privacy_statement(**TRAINING, delta=1e-5, certificate=files[2])
    accountant.statement(1e-5, certificate=str(files[3]))
    for file in (files[0], files[2], files[3]):
        assert file.read_bytes() == wanted.encode()
    noise = ["--num-records", "60000", "--batch-size", "256", "--epochs", "15", "--epsilon", "1", "--delta", "1e-5"]
    assert main(["calibrate", *noise, "--certificate", str(files[4]), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert files[4].read_text() == hs.dpsgd_certificate(answer["noise_multiplier"], rate, steps, delta=1e-5)
    claim = json.loads(files[4].read_text())["claim"]
    assert number(claim["epsilon"]) == answer["epsilon"] <= 1.0


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "json"])
def test_a_statement_names_the_certificate_beside_it(tmp_path: Path, form: Any) -> None:
    """And the line that checks it, with quotes where a shell needs them; without a certificate it says nothing of one."""
    file, accountant = tmp_path / "my training.json", hs.Accountant().compose(GAUSSIAN, 9)
    told, plain = accountant.statement(1e-5, format=form, certificate=file), accountant.statement(1e-5, format=form)
    assert file.read_text() == accountant.certificate(delta=1e-5)
    assert " ".join(told.split()).count("hockeystick-check 'my training.json'") == 1
    assert str(tmp_path) not in told
    assert "certificate" not in plain.lower()
    if form == "json":
        proof = {"file": "my training.json", "check": "hockeystick-check 'my training.json'"}
        assert json.loads(told)["accounting"] == json.loads(plain)["accounting"] | {"certificate": proof}


def test_what_has_no_certificate_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other batches, other mechanisms, no limit, federated targets: refused by name, and nothing is written."""
    file = tmp_path / "file.json"
    words = f"--num-records 60000 --batch-size 256 --epochs 15 --certificate {file}"
    federated = "--num-clients 9 --local-steps 5 --clip-norm 1 --learning-rate 0.1 --noise-std 1"
    for line, reason in {
        f"epsilon {words} --noise-multiplier 1 --delta 1e-5 --sampling shuffled": "--sampling shuffled",
        f"statement {words} --noise-multiplier 1 --delta 1e-5 --sampling unknown": "--sampling unknown",
        f"delta {words} --noise-multiplier 1 --epsilon 1 --sampling fixed": "FixedSizeSampled",
        f"calibrate {words} --epsilon inf --delta 1e-5": "epsilon",
        "delta --noise-multiplier 1 --steps 2 --epsilon 1 --slack 1e-3": "--slack: not allowed without --certificate",
        f"calibrate --target rounds {federated} --epsilon 2 --delta 1e-5 --certificate {file}": "--certificate",
        f"calibrate --target steps --noise-multiplier 1 --sampling-rate 0 --epsilon 1 --delta 1e-5 --certificate {file}": "no limit",
    }.items():
        with contextlib.suppress(SystemExit):  # of argparse
            assert main(line.split()) == 2, line
        assert reason in capsys.readouterr().err
    for sampling in ("shuffled", "fixed", "unknown"):
        with pytest.raises(ValueError, match="certif"):
            hs.privacy_statement(**TRAINING, delta=1e-5, sampling=sampling, certificate=file)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="certificate must be a path, not 3"):
        hs.privacy_statement(**TRAINING, delta=1e-5, certificate=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unit must be a text"):
        hs.Accountant().compose(GAUSSIAN).statement(1e-5, unit=3, certificate=file)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_the_command_calls_the_checker(tmp_path: Path) -> None:
    """It ends as the checker does, and says how to install it where it is not."""
    file = tmp_path / "file.json"
    file.write_text(hs.dpsgd_certificate(1.0, 0.01, 1000, delta=1e-5))
    (tmp_path / "none.json").write_text("{}")
    (tmp_path / "false.json").write_text(file.read_text().replace('"1000"', '"1001"'))

    def run(name: str, *options: str, installed: bool = True) -> tuple[int, str, str]:
        path = {"PYTHONPATH": str(FOLDER)} if installed else {}
        command = [sys.executable, "-m", "hockeystick", "check", tmp_path / name, *options]
        done = processes.run(command, check=False, env={**os.environ, **path})
        return done.returncode, done.stdout, done.stderr

    code, said, wrong = run("file.json")
    assert (code, said[:7], wrong) == (0, "proved:", "")
    code, said, wrong = run("false.json", "--limit", "300")
    assert (code, said[:11], wrong) == (1, "not proved:", "")
    assert run("none.json")[::2] == (2, "not a certificate: the format must be 'hockeystick-certificate 1'\n")
    code, said, wrong = run("file.json", installed=False)
    assert (code, said) == (1, "")
    assert wrong == "hockeystick check: hockeystick-check must be installed: pip install ./checker in a clone\n"


def test_the_schema(check: ModuleType) -> None:
    """Whatever is written fits the schema; what lacks a field or has another does not."""
    jsonschema = pytest.importorskip("jsonschema", reason="pip install check-jsonschema")
    schema = json.loads((FOLDER / "certificate-1.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert schema["properties"]["format"]["const"] == check.FORMAT == writer.FORMAT
    for name, adjacency in CASES:
        assert valid(json.loads(composed(*STEPS[name][0], adjacency=adjacency).certificate(delta=1e-5))), name
    good = json.loads(hs.dpsgd_certificate(1.0, 0.25, 10, epsilon=1.0))
    assert valid(json.loads(hs.last_iterate.shifted_interpolation([1.0], [1.0]).certificate(1.0, epsilon=1.0)))
    assert not any(valid({key: value for key, value in good.items() if key != left}) for left in list(good)[:4])
    for more in ({"unit": "user"}, {"adjacency": "remove"}, {"format": "hockeystick-certificate 2"}, {"ledger": []}):
        assert not valid(good | more)
    for wrong in (1.0, "-1", "0x3p1", "1e-5555", "one"):
        assert not valid(good | {"claim": good["claim"] | {"epsilon": wrong}})


# --- Random claims, of settings as people use them


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    """Return a number with three digits."""
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")


def drawn_step(rng: random.Random, adjacency: str) -> tuple[Any, int]:
    """Return a mechanism that the checker covers, and a count."""
    count, noise = round(log_uniform(rng, 1, 1000)), log_uniform(rng, 1, 50)
    kinds = {
        "dpsgd": lambda: (
            hs.PoissonSampled(hs.Gaussian(log_uniform(rng, 0.6, 10)), log_uniform(rng, 1e-3, 0.5)),
            round(log_uniform(rng, 100, 20_000)),
        ),
        "gaussian": lambda: (hs.Gaussian(noise), count),
        "laplace": lambda: (hs.Laplace(noise), count),
        "integers": lambda: (hs.DiscreteGaussian(noise, rng.choice([1, 1, 3])), count),
        "geometric": lambda: (hs.DiscreteLaplace(1 / noise, rng.choice([1, 1, 3])), count),
        "any": lambda: (hs.ApproximateDP(1 / noise, rng.choice([0.0, 1e-15])), min(count, 100)),
        "shares": lambda: (hs.Discrete([0.625, 0.25, 0.125], [0.5, 0.25, 0.25]), count),
    }
    if adjacency == "replace":
        kinds["response"] = lambda: (hs.RandomizedResponse(rng.choice([0.5, 0.9]), rng.choice([2, 10])), count)
    else:
        rate = log_uniform(rng, 1e-2, 0.5)
        kinds |= {
            "integer samples": lambda: (hs.PoissonSampled(hs.DiscreteGaussian(noise), rate), count),
            "geometric samples": lambda: (hs.PoissonSampled(hs.DiscreteLaplace(1 / noise), rate), count),
            "batches": lambda: (hs.FixedSizeSampled(hs.Gaussian(noise), 10_000, round(rate * 10_000), replacement=False), count),
        }  # fmt: skip
    return kinds[rng.choice([*kinds, "dpsgd", "dpsgd", "dpsgd"])]()


def drawn(rng: random.Random) -> tuple[hs.Accountant, dict[str, float]]:
    """Return a ledger and a question."""
    adjacency = rng.choice(["add_or_remove", "replace"])
    accountant = hs.Accountant(adjacency)  # type: ignore[arg-type]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        accountant.compose(*drawn_step(rng, adjacency))
    delta = 10.0 ** -rng.randint(3, 12)
    return accountant, {"delta": delta} if rng.random() < 0.5 else {"epsilon": accountant.epsilon(delta)}


MONTH = f"{dt.datetime.now(dt.UTC):%Y-%m}"


@pytest.mark.slow
@pytest.mark.parametrize("case", range(effort.at_night(100, by_day=15)))
def test_random_claims(check: ModuleType, case: int) -> None:
    """Other ones every month: both ends are proved with a thousandth to spare, and no delta a millionth below the lower end is."""
    accountant, at = drawn(random.Random(f"{MONTH} {case}"))
    text = accountant.certificate(**at, slack=1e-3)
    assert is_proved(check, text)
    truth = accountant.delta_bracket(number(json.loads(text)["claim"]["epsilon"])).lower
    if truth > 0.0 and not any(isinstance(step, writer.ONLY_DOMINATE) for step in accountant.ledger):
        assert is_proved(check, accountant.certificate(**at, lower=True, slack=1e-3))
        assert not is_proved(check, text, delta=(truth * (1 - 1e-6)).hex())
