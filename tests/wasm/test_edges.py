"""The npm package at its edges: shuffled batches, texts and null for numbers, freed handles, memory that grows, messages, types."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
import npm_package
import processes

pytestmark = pytest.mark.slow
Answers = Callable[[Sequence[Any]], list[Any]]

NODE_PROGRAM = """import { load } from "%s/hockeystick.js";
const hs = await load();
const said = (f) => {
    try {
        return JSON.stringify(f());
    } catch (error) {
        return `${error.name}: ${error.message}`;
    }
};
const training = { noiseMultiplier: 1, samplingRate: 0.01, steps: 10 };
const freed = hs.accountant().compose(hs.gaussian(1));
freed.free();
freed.free();
const kept = hs.accountant();
for (let i = 0; i < 200; ++i) kept.compose(hs.discreteGaussian(1000 + i)); // 60 MB of tables, so that the memory grows
const lines = [
    said(() => hs.dpsgdDelta({ ...training, epsilon: "" })),
    said(() => hs.dpsgdDelta({ ...training, epsilon: null })),
    said(() => hs.dpsgdEpsilon({ ...training, steps: 10n, delta: 1e-5 })),
    said(() => hs.dpsgdEpsilon({ ...training, samplingrate: 0.1, noiseMultiplier: undefined, delta: 1e-5 })),
    said(() => hs.accountant().compose(hs.gaussian("1"))),
    said(() => hs.accountant().compose(hs.gaussian(1), null)),
    said(() => hs.accountant().compose(hs.poissonSampled(3, 0.1))),
    said(() => hs.accountant().compose(hs.gaussian(1)).epsilons([1e-5, "1e-6"])),
    said(() => hs.q("") === hs.q(""))  /* NaN */,
    said(() => hs.formatLower("1.5")),
    said(() => freed.epsilon(1e-5)),
    said(() => freed.compose(hs.gaussian(1))),
    said(() => kept.epsilons(Float64Array.from({ length: 3000 }, (_, i) => 1e-5 / (i + 1))).every((e) => e.upper >= e.lower)),
];
console.log(lines.join("\\n"));
"""
SAID = """HockeystickError: eps must be non-negative, not nan
HockeystickError: eps must be non-negative, not nan
HockeystickError: steps must be an integer in [1, 2^53], not nan
HockeystickError: noise_multiplier must be positive and finite, not nan
HockeystickError: noise_multiplier must be positive and finite, not nan
HockeystickError: count must be an integer in [1, 2^53], not nan
TypeError: mechanism must be made by a function of this module, not 3
HockeystickError: delta must lie in [0, 1), not nan
false
HockeystickError: value must be a number, not '1.5'
HockeystickError: the accountant has been freed
HockeystickError: the accountant has been freed
true
"""
CONSUMER = """import { load, HockeystickError, type Bracket, type Hockeystick, type Mechanism } from "./hockeystick.js";
const hs: Hockeystick = await load();
const step: Mechanism = hs.poissonSampled(hs.gaussian(1), 0.01);
const epsilon: Bracket = hs.accountant("replace").compose(step, 10).epsilon(1e-5);
if (epsilon.upper > 1) throw new HockeystickError(hs.formatUpper(epsilon.upper));
// @ts-expect-error: a bracket cannot be written to
epsilon.upper = 0;
// @ts-expect-error: there is no such adjacency
hs.accountant("swap");
// @ts-expect-error: delta is missing
hs.dpsgdEpsilon({ noiseMultiplier: 1, samplingRate: 0.01, steps: 10 });
"""


def test_shuffled_batches(answers: Answers) -> None:
    """48 brackets of shuffled batches overlap Python's; upper ends agree, and lower ends to four digits."""
    cells, expected = [], []
    for noise, batches, epochs in [
        (0.5, 1000, 1),
        (1.0, 7, 3),
        (1.5, 1, 2),
        (3.0, 200, 5),
        (2.0, 2, 1),
        (0.8, 10**5, 2),
    ]:
        python = {"noise_multiplier": noise, "num_batches": batches, "epochs": epochs}
        asked = npm_package.camel(python)
        for eps in (0.0, 0.5, 3.0, 6.0):
            cells.append(["shuffledBatchesDelta", asked | {"epsilon": eps}])
            expected.append(hs.shuffled_batches_delta(eps, **python))
        for delta in (1e-9, 1e-6, 1e-3, 0.2):
            cells.append(["shuffledBatchesEpsilon", asked | {"delta": delta}])
            expected.append(hs.shuffled_batches_epsilon(delta, **python))
    for cell, ours, theirs in zip(cells, expected, answers(cells), strict=True):
        assert theirs["lower"] <= ours.upper, cell
        assert ours.lower <= theirs["upper"], cell
        assert theirs["lower"] == pytest.approx(ours.lower, rel=1e-4, abs=1e-12), cell
        assert theirs["upper"] == pytest.approx(ours.upper, rel=1e-8, abs=1e-12), cell


def raised(question: Callable[[], Any]) -> str:
    """Return the message of the ValueError that Python raises."""
    with pytest.raises(ValueError, match="must") as caught:
        question()
    return str(caught.value)


def plain(message: str) -> str:
    """Return a message with its numbers written as Python writes floats, where C writes 2^53 and 1e+06."""
    numbers = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w^])")
    return numbers.sub(lambda found: repr(float(found[0])), message.replace("2^53", "9007199254740992"))


def test_messages_are_pythons(answers: Answers) -> None:
    """20 arguments outside their domains are refused in Python's words."""
    budget = {"noise_multiplier": 1.0, "num_batches": 10, "epochs": 1, "delta": 1e-5}
    cells: list[tuple[list[Any], Callable[[], Any]]] = []
    for value in (0.0, -2.5):
        for name, mechanism in [("gaussian", hs.Gaussian), ("laplace", hs.Laplace)]:
            steps = [[[name, value], 1]]
            cells.append((["ledger", "add_or_remove", steps, "epsilon", 0.1], lambda m=mechanism, v=value: m(v)))
    for rate in (-0.5, 1.5, 2e6):
        steps = [[["poissonSampled", ["gaussian", 1], rate], 1]]
        cells.append(
            (["ledger", "replace", steps, "epsilon", 0.1], lambda r=rate: hs.PoissonSampled(hs.Gaussian(1.0), r))
        )
    for delta in (-0.1, 1.0, 1.5):
        steps = [[["gaussian", 1], 1]]
        cells.append(
            (
                ["ledger", "add_or_remove", steps, "epsilon", delta],
                lambda d=delta: hs.Accountant().compose(hs.Gaussian(1.0)).epsilon(d),
            )
        )
    for count in (0, -3, -(2**60)):
        steps = [[["gaussian", 1], count]]
        cells.append(
            (
                ["ledger", "replace", steps, "delta", 1.0],
                lambda c=count: hs.Accountant("replace").compose(hs.Gaussian(1.0), c),
            )
        )
    for name, value in [("noise_multiplier", 0.0), ("epochs", 0), ("delta", 1.0)]:
        python = budget | {name: value}
        asked = npm_package.camel(python)
        cells.append((["shuffledBatchesEpsilon", asked], lambda p=python: hs.shuffled_batches_epsilon(**p)))
    federation = {"rounds": 10, "local_steps": 2, "num_clients": 5, "clip_norm": 1.0, "noise_std": 1.0}
    federation |= {"smoothness": 1.0, "learning_rate": 0.1}
    for name, value in [("rounds", 0.5), ("clip_norm", 0.0), ("smoothness", -1.0), ("delta", 1.5)]:
        python = federation | {"delta": 1e-5, name: value}
        cells.append((["fedavgEpsilon", npm_package.camel(python)], lambda p=python: hs.federated.fedavg_epsilon(**p)))
    found = answers([cell for cell, _ in cells])
    for (cell, question), answer in zip(cells, found, strict=True):
        assert answer["name"] == "HockeystickError", cell
        assert plain(answer["error"]) == plain(raised(question)), cell


def test_what_is_no_number(package: Path, tmp_path: Path) -> None:
    """The text of an empty field and null are not 0; freed accountants and grown memory do no harm."""
    program = tmp_path / "edges.mjs"
    program.write_text(NODE_PROGRAM % package.as_uri(), encoding="utf-8")
    assert processes.run(["node", program]).stdout == SAID


def test_types(package: Path, tmp_path: Path) -> None:
    """TypeScript takes the package's types, and finds what a caller does wrong; the package's own files pass its check."""
    if shutil.which("tsc") is None:
        pytest.skip("tsc is not installed: apt-get install node-typescript")
    folder = shutil.copytree(package, tmp_path / "package")
    consumer = folder / "consumer.ts"
    consumer.write_text(CONSUMER, encoding="utf-8")
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "node"]
    processes.run(["tsc", *options, consumer], limit=120)
    processes.run(["tsc", *options, "--allowJs", "--checkJs", *sorted(folder.glob("*.js"))], limit=120)


def test_infinite_ends(answers: Answers) -> None:
    """Delta = 0 has no finite epsilon under Gaussian noise, and pure privacy has one."""
    gaussian, laplace = (
        answers([["ledger", "add_or_remove", [[[name, 1.0], 1]], "epsilon", 0.0]])[0]
        for name in ("gaussian", "laplace")
    )
    assert math.isinf(float(gaussian["upper"]))
    assert laplace["lower"] <= 1.0 <= laplace["upper"]
