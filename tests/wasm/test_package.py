"""The npm package beside the Python package: brackets overlap, ends agree, errors have its words, types, freed handles and texts for numbers."""

import json
import math
import random
import re
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import effort
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


def log_uniform(rng, low, high):
    """Return a number whose decimal exponent is uniform, with few digits."""
    return float(f"{10 ** rng.uniform(low, high):.5g}")


def step(rng):
    """Return a mechanism for Node, and for Python."""
    noise, rate = log_uniform(rng, -0.3, 1.2), log_uniform(rng, -4, -0.3)
    base = rng.choice([(["gaussian", noise], hs.Gaussian(noise)), (["laplace", noise], hs.Laplace(noise))])
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


def trainings(rng, count):
    """Return DP-SGD cells, each with the bracket of Python's accountant."""
    cells = []
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


def ledgers(rng, count):
    """Return ledgers of up to three mechanisms under either adjacency, where all have a pair."""
    cells = []
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


def assert_agree(cell, ours, theirs):
    """Compare brackets that both hold the truth."""
    assert "error" not in theirs, (cell, theirs)
    lower, upper = float(theirs["lower"]), float(theirs["upper"])
    assert lower <= ours.upper, cell
    assert ours.lower <= upper, cell
    width = max(ours.upper - ours.lower, WIDTH * ours.upper) if math.isfinite(ours.upper) else 0.0
    assert upper == ours.upper or abs(upper - ours.upper) <= width, cell
    assert lower == ours.lower or abs(lower - ours.lower) <= width, cell


def test_random_cells(answers):
    """Trainings and ledgers, 500 at night: brackets overlap, and ends differ by no more than a bracket's width or a millionth."""
    rng = random.Random(26)
    cells = trainings(rng, effort.at_night(350, by_day=70)) + ledgers(rng, effort.at_night(150, by_day=30))
    for (cell, ours), theirs in zip(cells, answers([cell for cell, _ in cells]), strict=True):
        assert_agree(cell, ours, theirs)


def test_last_models(answers):
    """Federated averaging under every schedule, and the last iterate, are Python's."""
    rng = random.Random(7)
    federation = {"rounds": 40, "local_steps": 5, "num_clients": 20, "clip_norm": 1.0, "smoothness": 0.8}
    federation |= {"learning_rate": 0.1}
    cells = []
    expected = []
    for schedule in ("constant", "cyclic", "stagewise", "continuous"):
        for diameter in (None, 0.3):
            noise, delta = log_uniform(rng, -1.5, 0.5), log_uniform(rng, -9, -2)
            setting = federation | {"noise_std": noise, "schedule": schedule}
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


def test_noise_of_a_budget(answers):
    """The least noise is Python's, and keeps the budget."""
    budget = {"samplingRate": 0.01, "steps": 1000, "epsilon": 2.0, "delta": 1e-5}
    noise = hs.dpsgd_noise_multiplier(epsilon=2.0, delta=1e-5, sampling_rate=0.01, steps=1000)
    (theirs,) = answers([["dpsgdNoiseMultiplier", budget]])
    assert theirs == pytest.approx(noise, rel=1e-6)
    (spent,) = answers([["dpsgdEpsilon", budget | {"noiseMultiplier": theirs}]])
    assert spent["upper"] <= 2.0


def test_decimals(answers):
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
def test_errors(answers, cell, message):
    """What is outside its domain is named, with its value and its domain, as an error of the module's own class."""
    (found,) = answers([json.loads(cell)])
    assert found["name"] == "HockeystickError"
    assert re.search(message, found["error"]), found


def test_npm_package(package, tmp_path):
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


HERE = Path(__file__).parent

SAID = """HockeystickError: epsilon must be non-negative, not nan
HockeystickError: epsilon must be non-negative, not nan
HockeystickError: steps must be an integer in [0, 2^53], not nan
HockeystickError: noise_multiplier must be positive and finite, not nan
HockeystickError: noise_multiplier must be positive and finite, not nan
HockeystickError: count must be an integer in [0, 2^53], not nan
TypeError: mechanism must be made by a function of this module, not 3
HockeystickError: delta must lie in [0, 1), not nan
false
HockeystickError: value must be a number, not '1.5'
HockeystickError: the accountant has been freed
HockeystickError: the accountant has been freed
true
"""


def test_shuffled_batches(answers):
    """48 brackets of shuffled batches overlap Python's; upper ends agree, and lower ends to four digits."""
    cells, expected = [], []
    settings = [(0.5, 1000, 1), (1.0, 7, 3), (1.5, 1, 2), (3.0, 200, 5), (2.0, 2, 1), (0.8, 10**5, 2)]
    for noise, batches, epochs in settings:
        python = {"noise_multiplier": noise, "num_batches": batches, "epochs": epochs}
        asked = npm_package.camel(python)
        for eps in (0.0, 0.5, 3.0, 6.0):
            cells.append(["shuffledBatchesDelta", asked | {"epsilon": eps}])
            expected.append(hs.shuffled_batches_delta_bracket(eps, **python))
        for delta in (1e-9, 1e-6, 1e-3, 0.2):
            cells.append(["shuffledBatchesEpsilon", asked | {"delta": delta}])
            expected.append(hs.shuffled_batches_epsilon_bracket(delta, **python))
    for cell, ours, theirs in zip(cells, expected, answers(cells), strict=True):
        assert theirs["lower"] <= ours.upper, cell
        assert ours.lower <= theirs["upper"], cell
        assert theirs["lower"] == pytest.approx(ours.lower, rel=1e-4, abs=1e-12), cell
        assert theirs["upper"] == pytest.approx(ours.upper, rel=1e-8, abs=1e-12), cell


def raised(question):
    """Return the message of the ValueError that Python raises."""
    with pytest.raises(ValueError, match="must") as caught:
        question()
    return str(caught.value)


def plain(message):
    """Return a message with its numbers written as Python writes floats, where C writes 2^53 and 1e+06."""
    numbers = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w^])")
    return numbers.sub(lambda found: repr(float(found[0])), message.replace("2^53", "9007199254740992"))


def ledger(*mechanism, adjacency="add_or_remove", count=1, **asked):
    """Return a cell of one mechanism, which is asked for delta or, by default, for epsilon."""
    ((question, at),) = (asked or {"epsilon": 0.1}).items()
    return ["ledger", adjacency, [[list(mechanism), count]], question, at]


def refusals():
    """Yield cells with an argument outside its domain, each with what Python refuses likewise."""
    for value in (0.0, -2.5):
        yield ledger("gaussian", value), partial(hs.Gaussian, value)
        yield ledger("laplace", value), partial(hs.Laplace, value)
    gaussian = hs.Gaussian(1.0)
    for rate in (-0.5, 1.5, 2e6):
        cell = ledger("poissonSampled", ["gaussian", 1], rate, adjacency="replace")
        yield cell, partial(hs.PoissonSampled, gaussian, rate)
    for delta in (-0.1, 1.0, 1.5):
        yield ledger("gaussian", 1, epsilon=delta), partial(hs.Accountant().compose(gaussian).epsilon, delta)
    for count in (-1, -3, -(2**60)):
        cell = ledger("gaussian", 1, adjacency="replace", count=count, delta=1.0)
        yield cell, partial(hs.Accountant("replace").compose, gaussian, count)
    budget = {"noise_multiplier": 1.0, "num_batches": 10, "epochs": 1, "delta": 1e-5}
    for wrong in ({"noise_multiplier": 0.0}, {"epochs": 0}, {"delta": 1.0}):
        cell = ["shuffledBatchesEpsilon", npm_package.camel(budget | wrong)]
        yield cell, partial(hs.shuffled_batches_epsilon_bracket, **budget | wrong)
    federation = {"rounds": 10, "local_steps": 2, "num_clients": 5, "clip_norm": 1.0, "noise_std": 1.0}
    federation |= {"smoothness": 1.0, "learning_rate": 0.1, "delta": 1e-5}
    for wrong in ({"rounds": 0.5}, {"clip_norm": 0.0}, {"smoothness": -1.0}, {"delta": 1.5}):
        cell = ["fedavgEpsilon", npm_package.camel(federation | wrong)]
        yield cell, partial(hs.federated.fedavg_epsilon, **federation | wrong)


def test_messages_are_pythons(answers):
    """20 arguments outside their domains are refused in Python's words."""
    cells = list(refusals())
    for (cell, question), answer in zip(cells, answers([cell for cell, _ in cells]), strict=True):
        assert answer["name"] == "HockeystickError", cell
        assert plain(answer["error"]) == plain(raised(question)), cell


def test_what_is_no_number(package):
    """The text of an empty field and null are not 0; freed accountants and grown memory do no harm."""
    assert processes.run(["node", HERE / "edges.mjs", package]).stdout == SAID


def test_types(package, tmp_path):
    """TypeScript takes the package's types, and finds what a caller does wrong; the package's own files pass its check."""
    if shutil.which("tsc") is None:
        pytest.skip("tsc is not installed: apt-get install node-typescript")
    folder = shutil.copytree(package, tmp_path / "package")
    consumer = shutil.copy(HERE / "consumer.ts", folder)
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "node"]
    processes.run(["tsc", *options, consumer], limit=120)
    processes.run(["tsc", *options, "--allowJs", "--checkJs", *sorted(folder.glob("*.js"))], limit=120)


def test_infinite_ends(answers):
    """Delta = 0 has no finite epsilon under Gaussian noise, and pure privacy has one."""
    gaussian, laplace = answers([ledger(name, 1.0, epsilon=0.0) for name in ("gaussian", "laplace")])
    assert math.isinf(float(gaussian["upper"]))
    assert laplace["lower"] <= 1.0 <= laplace["upper"]
