"""The npm package beside the Python package: brackets overlap, ends agree, errors name the same argument."""

import json
import math
import random
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
import npm_package
import processes
import refused_calls
from hockeystick import federated, last_iterate

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")]
Answers = Callable[[Sequence[Any]], list[Any]]

WIDTH = 1e-6  # relative: of ends by different instruction sets, where a bracket is not wide itself
FIVE_LINES = """import { load } from "hockeystick";
const hs = await load();
const epsilon = hs.dpsgdEpsilon({ noiseMultiplier: 1, samplingRate: 0.01, steps: 1000, delta: 1e-5 });
if (!(epsilon.lower >= 1.8282366665 && epsilon.upper <= 1.8282366666)) throw new Error(JSON.stringify(epsilon));
console.log(hs.formatLower(epsilon.lower, ".9f"), hs.formatUpper(epsilon.upper, ".9f"));
"""


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    """Return a number whose decimal exponent is uniform, with few digits."""
    return float(f"{10 ** rng.uniform(low, high):.5g}")


def step(rng: random.Random) -> tuple[list[Any], hs.Mechanism]:
    """Return a mechanism for Node, and for Python."""
    noise, rate = log_uniform(rng, -0.3, 1.2), log_uniform(rng, -4, -0.3)
    base: tuple[list[Any], Any] = rng.choice(
        [(["gaussian", noise], hs.Gaussian(noise)), (["laplace", noise], hs.Laplace(noise))]
    )
    return rng.choice(
        [
            base,
            (["discreteGaussian", noise, 2], hs.DiscreteGaussian(noise, 2)),
            (["discreteLaplace", rate], hs.DiscreteLaplace(rate)),
            (["discreteGaussianVector", noise, 2], hs.DiscreteGaussianVector(noise, 2)),
            (["distributedDiscreteGaussian", noise, 4, 2, 1], hs.DistributedDiscreteGaussian(noise, 4, 2, 1)),
            (["skellam", 9 * noise, 2, 1], hs.Skellam(9 * noise, 2, 1)),
            (["exponentialMechanism", rate], hs.ExponentialMechanism(rate)),
            (["approximateDp", rate, 1e-9], hs.ApproximateDP(rate, 1e-9)),
            (["poissonSampled", base[0], rate], hs.PoissonSampled(base[1], rate)),
            (
                ["fixedSizeSampled", base[0], 1000, 50],
                hs.FixedSizeSampled(base[1], num_records=1000, batch_size=50, replacement=False),
            ),
            (["randomAllocation", noise, 20], hs.RandomAllocation(hs.Gaussian(noise), 20)),
        ]
    )


def trainings(rng: random.Random, count: int) -> list[tuple[list[Any], hs.Bracket]]:
    """Return DP-SGD cells, each with the bracket of Python's accountant."""
    cells: list[tuple[list[Any], hs.Bracket]] = []
    for _ in range(count):
        noise, rate, steps = log_uniform(rng, -0.3, 0.8), log_uniform(rng, -4, 0), int(10 ** rng.uniform(0, 5))
        training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), rate), steps)
        asked = {"noiseMultiplier": noise, "samplingRate": rate, "steps": steps}
        if rng.random() < 0.7:
            delta = log_uniform(rng, -15, -2)
            cells.append((["dpsgdEpsilon", asked | {"delta": delta}], training.epsilon_bracket(delta)))
        else:
            epsilon = log_uniform(rng, -2, 1)
            cells.append((["dpsgdDelta", asked | {"epsilon": epsilon}], training.delta_bracket(epsilon)))
    return cells


def ledgers(rng: random.Random, count: int) -> list[tuple[list[Any], hs.Bracket]]:
    """Return ledgers of up to three mechanisms under either adjacency, where all have a pair."""
    cells: list[tuple[list[Any], hs.Bracket]] = []
    while len(cells) < count:
        adjacency = rng.choice(["add_or_remove", "replace"])
        accountant, steps = hs.Accountant(adjacency), []
        try:
            for _ in range(rng.randint(1, 3)):
                (asked, mechanism), times = step(rng), rng.randint(1, 100)
                accountant = accountant.compose(mechanism, times)
                steps.append([asked, times])
        except ValueError:
            continue
        delta = log_uniform(rng, -12, -2)
        cells.append((["ledger", adjacency, steps, "epsilon", delta], accountant.epsilon_bracket(delta)))
    return cells


def assert_agree(cell: list[Any], ours: hs.Bracket, theirs: dict[str, Any]) -> None:
    """Compare brackets that both hold the truth."""
    assert "error" not in theirs, (cell, theirs)
    lower, upper = float(theirs["lower"]), float(theirs["upper"])
    assert lower <= ours.upper, cell
    assert ours.lower <= upper, cell
    width = max(ours.upper - ours.lower, WIDTH * ours.upper) if math.isfinite(ours.upper) else 0.0
    assert upper == ours.upper or abs(upper - ours.upper) <= width, cell
    assert lower == ours.lower or abs(lower - ours.lower) <= width, cell


def test_five_hundred_cells(answers: Answers) -> None:
    """350 trainings and 150 ledgers: brackets overlap, and ends differ by no more than a bracket's width or a millionth."""
    rng = random.Random(26)
    cells = trainings(rng, 350) + ledgers(rng, 150)
    for (cell, ours), theirs in zip(cells, answers([cell for cell, _ in cells]), strict=True):
        assert_agree(cell, ours, theirs)


def test_last_models(answers: Answers) -> None:
    """Federated averaging under every schedule, and the last iterate, are Python's."""
    rng = random.Random(7)
    federation = {"rounds": 40, "local_steps": 5, "num_clients": 20, "clip_norm": 1.0, "smoothness": 0.8}
    federation |= {"learning_rate": 0.1}
    cells: list[Any] = []
    expected: list[Any] = []
    for schedule in ("constant", "cyclic", "stagewise", "continuous"):
        for diameter in (None, 0.3):
            noise, delta = log_uniform(rng, -1.5, 0.5), log_uniform(rng, -9, -2)
            setting: dict[str, Any] = federation | {"noise_std": noise, "schedule": schedule}
            setting |= {} if diameter is None else {"diameter": diameter}
            cells.append(["fedavgEpsilon", npm_package.camel(setting | {"delta": delta})])
            expected.append(federated.fedavg_epsilon(delta, **setting))
            cells.append(["fedavgDelta", npm_package.camel(setting | {"epsilon": 0.7})])
            expected.append(federated.fedavg_delta(0.7, **setting))
    descent = {"num_records": 40, "learning_rate": 0.5, "noise_std": 2.0, "lipschitz": 1.0, "smoothness": 0.5}
    descent |= {"strong_convexity": 0.1, "diameter": 1.0}
    for index in (1, 20, 40):
        cells.append(["pnsgdGaussian", npm_package.camel(descent | {"epsilon": 1.0, "index": index})])
        expected.append(last_iterate.pnsgd_gaussian(1.0, index=index, **descent))
    assert answers(cells) == pytest.approx([float(value) for value in expected], rel=1e-11)


def test_noise_of_a_budget(answers: Answers) -> None:
    """The least noise is Python's, and keeps the budget."""
    budget = {"samplingRate": 0.01, "steps": 1000, "epsilon": 2.0, "delta": 1e-5}
    noise = hs.dpsgd_noise_multiplier(epsilon=2.0, delta=1e-5, sampling_rate=0.01, steps=1000)
    (theirs,) = answers([["dpsgdNoiseMultiplier", budget]])
    assert theirs == pytest.approx(noise, rel=1e-6)
    (spent,) = answers([["dpsgdEpsilon", budget | {"noiseMultiplier": theirs}]])
    assert spent["upper"] <= 2.0


def test_decimals(answers: Answers) -> None:
    """Bounds as text are Python's, digit for digit: 4,000 doubles of all sizes in formats of every kind."""
    rng = random.Random(5)
    values = [0.0, 1.0, 9.9999999, 0.1, 1e-5, 9.99e-5, 123456.5, 999999.5, 5e-324, 1.7e308, math.inf, -math.inf, -9.5]
    values += [rng.choice([1, 1, -1]) * 10 ** rng.uniform(-12, 12) for _ in range(4000)]
    formats = [".4f", ".0f", ".3e", ".0e", ".6g", ".1g", ".2%", "13.4g", ".17g", "e", "f", "g", ".0g"]
    cells = [
        [name, value if math.isfinite(value) else str(value), rng.choice(formats)]
        for value in values
        for name in ("formatUpper", "formatLower")
    ]
    python = {"formatUpper": hs.format_upper, "formatLower": hs.format_lower}
    # JSON writes infinite answers as numbers are written: so do the texts "inf" and "-inf"
    assert answers(cells) == [python[name](float(value), form) for name, value, form in cells]


REFUSED = r"""
["dpsgdEpsilon", {"noiseMultiplier": 1, "samplingRate": 0.1, "steps": 0.5, "delta": 1e-5}]
    -> steps must be an integer in \[0, 2\^53\], not 0.5
["ledger", "swap", [], "epsilon", 0.1] -> adjacency must be one of add_or_remove, replace, not swap
["ledger", "add_or_remove", [[["fixedSizeSampled", ["gaussian", 1], 10, 10], 1]], "epsilon", 0.1]
    -> not supported under adjacency 'add_or_remove': a batch of all records
["fedavgEpsilon", {"rounds": 1}] -> local_steps
["formatUpper", 1, "4x"] -> format must be
"""


@pytest.mark.parametrize(("cell", "message"), refused_calls.rows(REFUSED))
def test_errors(answers: Answers, cell: str, message: str) -> None:
    """What is outside its domain is named, with its value and its domain, as an error of the module's own class."""
    (found,) = answers([json.loads(cell)])
    assert found["name"] == "HockeystickError"
    assert re.search(message, found["error"]), found


def test_npm_package(package: Path, tmp_path: Path) -> None:
    """Packed, and installed in an empty project without a network, five lines print epsilon."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    packed = processes.run(["npm", "pack", "--silent", package], cwd=tmp_path).stdout.strip()
    project = tmp_path / "project"
    project.mkdir()
    processes.run(["npm", "init", "-y"], cwd=project)
    processes.run(["npm", "install", "--offline", "--no-audit", tmp_path / packed], cwd=project)
    (project / "five.mjs").write_text(FIVE_LINES, encoding="utf-8")
    assert processes.run(["node", "five.mjs"], cwd=project).stdout == "1.828236666 1.828236667\n"
