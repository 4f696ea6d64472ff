"""No false claim is proved: random ones below, or above, what is certified, and files that are damaged at random."""

import datetime as dt
import importlib.util
import json
import random
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import effort
import hockeystick as hs

flint = pytest.importorskip("flint", reason="pip install python-flint")
PROGRAM = Path(__file__).parents[2] / "checker" / "hockeystick_check.py"
MONTH = dt.datetime.now(dt.UTC).strftime("%Y-%m")  # new claims every month


def program(source: str | None = None) -> ModuleType:
    """Return the program from where it stands, or another text of it."""
    spec = importlib.util.spec_from_file_location("hockeystick_check", PROGRAM)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # where its data classes look
    exec(compile(source or PROGRAM.read_text("utf-8"), str(PROGRAM), "exec"), module.__dict__)  # noqa: S102
    flint.ctx.prec = module.BITS
    return module


def text(value: float) -> str:
    """Return a number in full."""
    return Fraction(value).numerator.__str__() if value == int(value) else float(value).hex()


def step(rng: random.Random, *, full: bool, worse: float = 1.0) -> tuple[hs.Mechanism, dict[str, Any]]:
    """Return a mechanism whose pair is attained, and the same for a certificate with noise that is so much smaller."""
    sigma = round(2.0 ** rng.uniform(-0.5, 3), 3)
    noise = {"name": "Gaussian", "noise_multiplier": text(sigma / worse)}
    kind = (
        "sample" if full else rng.choice(["sample", "sample", "Gaussian", "Laplace", "integers", "geometric", "pair"])
    )
    if kind == "sample":
        rate = round(10.0 ** rng.uniform(-2.5, -0.1), 4)
        sampled = {"name": "PoissonSampled", "sampling_rate": text(rate), "mechanism": noise}
        return hs.PoissonSampled(hs.Gaussian(sigma), rate), sampled
    if kind == "Laplace":
        return hs.Laplace(sigma), noise | {"name": "Laplace"}
    if kind == "integers":
        values = {"name": "DiscreteGaussian", "noise_std": text(sigma / worse), "sensitivity": "2"}
        return hs.DiscreteGaussian(sigma, 2), values
    if kind == "geometric":
        values = {"name": "DiscreteLaplace", "inverse_scale": text(worse / sigma), "sensitivity": "2"}
        return hs.DiscreteLaplace(1 / sigma, 2), values
    if kind == "pair":
        p, q = ([k / 64, 0.25, 0.75 - k / 64] for k in (rng.randint(1, 47), rng.randint(1, 47)))
        return hs.Discrete(p, q), {"name": "Discrete", "p": [text(x) for x in p], "q": [text(x) for x in q]}
    return hs.Gaussian(sigma), noise


def false_claim(rng: random.Random, *, full: bool) -> dict[str, Any] | None:
    """Return a claim that what is certified refutes: of many steps, or of one; none where delta is too small to matter."""
    adjacency, how = rng.choice(["add_or_remove", "replace"]), rng.choice(["delta", "delta", "noise", "steps", "least"])
    count = int(10.0 ** rng.uniform(2, 4)) if full else 1
    state = rng.getstate()
    ours = step(rng, full=full)[0]
    rng.setstate(state)
    theirs = step(rng, full=full, worse=1.001 if how == "noise" else 1.0)[1]
    accountant = hs.Accountant(adjacency).compose(ours, count)
    epsilon = accountant.epsilon(10.0 ** rng.uniform(-12, -2)) if full else rng.uniform(0.01, 3)
    found = accountant.delta_bracket(epsilon)
    if not 1e-200 < found.lower < 0.999 or (how == "noise" and theirs["name"] == "Discrete"):
        return None
    claimed = found.upper * (1 + 1e-6) if how == "least" else found.lower * (1 - 1e-6)
    more = count // 100 + 1 if how == "steps" and full else 0
    claim = {"epsilon": text(epsilon), "delta": text(claimed), "delta_is": "at least" if how == "least" else "at most"}
    ledger = [{"mechanism": theirs, "count": str(count + more)}]
    return {"format": "hockeystick-certificate 1", "adjacency": adjacency, "claim": claim, "ledger": ledger}


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True], ids=["one step", "many steps"])
def test_no_false_claim_is_proved(full: bool) -> None:
    """Neither just below what is certified, nor for less noise or more steps, nor at least just above."""
    count = effort.at_night(300, by_day=20) if full else effort.at_night(9000, by_day=40)
    check, rng = program(), random.Random(f"{MONTH} {full}")
    claims = [claim for _ in range(count) if (claim := false_claim(rng, full=full))]
    assert len(claims) > 10
    for claim in claims:
        with pytest.raises(check.NotProved):
            check.Claim(json.dumps(claim)).prove()


NUMBERS = ["", "1", "-1", "1e400", "0x1p+3", "0x1p-9999", "nan", "1e-5", "0." + "9" * 300]
WORDS = [*NUMBERS, "\ud800", "Gaussian", "PoissonSampled", "Discrete"]
SOME = {"name": "Gaussian", "noise_multiplier": "1"}
VALUES = [None, True, 0, 1e308, -1, 10**400, [], {}, [[]], {"name": []}, [["1"]], SOME]


def damage(rng: random.Random, value: Any) -> Any:
    """Return the value of a certificate with some part put for another."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        kept = {k: v for k, v in value.items() if k != key or rng.random() < 0.9}
        if rng.random() < 0.1:
            return kept | {rng.choice(WORDS): rng.choice(VALUES)}
        return {k: damage(rng, v) if k == key else v for k, v in kept.items()}
    if isinstance(value, list) and value and rng.random() < 0.85:
        return [damage(rng, value[0]), *value[1:]] if rng.random() < 0.9 else [*value, rng.choice(VALUES)]
    return rng.choice(WORDS + VALUES)


def damaged_file(rng: random.Random) -> bytes:
    """Return a false certificate with a part put for another, or some of its bytes."""
    noise = {"name": "Gaussian", "noise_multiplier": "0.5"}
    pair = {"name": "Discrete", "p": ["0.5", "0.5"], "q": ["0.25", "0.75"]}
    sample = {"name": "PoissonSampled", "sampling_rate": "0.5", "mechanism": noise}
    table = {"name": "ShiftedInterpolation", "noise_std": "1", "initial_gap": "3", "rho": ["1", "2"]}
    table |= {"gamma": ["1", "0.5"], "weights": ["0.5", "1"]}
    ledger = rng.choice([[noise, noise], [pair], [sample], [table]])
    claim = {"epsilon": "0.125", "delta": "1e-9", "delta_is": "at most"}
    steps = [{"mechanism": mechanism, "count": "1"} for mechanism in ledger]
    whole = {"format": "hockeystick-certificate 1", "adjacency": "add_or_remove", "claim": claim, "ledger": steps}
    if rng.random() < 0.8:
        return json.dumps(damage(rng, whole)).encode()
    data = bytearray(json.dumps(whole).encode())
    at = rng.randrange(len(data))
    data[at : at + rng.choice([0, 1, 1, 50])] = rng.randbytes(rng.choice([0, 1, 3]))
    return bytes(data)


def test_damaged_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They get one line, and most are no certificate."""
    check, file, rng = program(), tmp_path / "file.json", random.Random(MONTH)
    codes = {0: 0, 1: 0, 2: 0}
    for _ in range(effort.at_night(10_000, by_day=300)):
        data = damaged_file(rng)
        file.write_bytes(data)
        code = check.main([str(file), "--limit", "20"])
        said = capsys.readouterr()
        assert (said.out + said.err).count("\n") == 1, data
        assert (code == 2) == said.err.startswith("not a certificate: "), data
        codes[code] += 1
    assert codes[2] > sum(codes.values()) / 2
    assert codes[0] < sum(codes.values()) / 30
