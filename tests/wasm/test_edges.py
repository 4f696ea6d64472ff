"""The npm package at its edges: shuffled batches, texts and null for numbers, freed handles, memory that grows, messages, types."""

import math
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
import npm_package
import processes

pytestmark = pytest.mark.slow
Answers = Callable[[Sequence[Any]], list[Any]]
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


def test_shuffled_batches(answers: Answers) -> None:
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


def raised(question: Callable[[], Any]) -> str:
    """Return the message of the ValueError that Python raises."""
    with pytest.raises(ValueError, match="must") as caught:
        question()
    return str(caught.value)


def plain(message: str) -> str:
    """Return a message with its numbers written as Python writes floats, where C writes 2^53 and 1e+06."""
    numbers = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w^])")
    return numbers.sub(lambda found: repr(float(found[0])), message.replace("2^53", "9007199254740992"))


def ledger(*mechanism: Any, adjacency: str = "add_or_remove", count: int = 1, **asked: float) -> list[Any]:
    """Return a cell of one mechanism, which is asked for delta or, by default, for epsilon."""
    ((question, at),) = (asked or {"epsilon": 0.1}).items()
    return ["ledger", adjacency, [[list(mechanism), count]], question, at]


def refusals() -> Iterator[tuple[list[Any], Callable[[], Any]]]:
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


def test_messages_are_pythons(answers: Answers) -> None:
    """20 arguments outside their domains are refused in Python's words."""
    cells = list(refusals())
    for (cell, question), answer in zip(cells, answers([cell for cell, _ in cells]), strict=True):
        assert answer["name"] == "HockeystickError", cell
        assert plain(answer["error"]) == plain(raised(question)), cell


def test_what_is_no_number(package: Path) -> None:
    """The text of an empty field and null are not 0; freed accountants and grown memory do no harm."""
    assert processes.run(["node", HERE / "edges.mjs", package]).stdout == SAID


def test_types(package: Path, tmp_path: Path) -> None:
    """TypeScript takes the package's types, and finds what a caller does wrong; the package's own files pass its check."""
    if shutil.which("tsc") is None:
        pytest.skip("tsc is not installed: apt-get install node-typescript")
    folder = shutil.copytree(package, tmp_path / "package")
    consumer = shutil.copy(HERE / "consumer.ts", folder)
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "node"]
    processes.run(["tsc", *options, consumer], limit=120)
    processes.run(["tsc", *options, "--allowJs", "--checkJs", *sorted(folder.glob("*.js"))], limit=120)


def test_infinite_ends(answers: Answers) -> None:
    """Delta = 0 has no finite epsilon under Gaussian noise, and pure privacy has one."""
    gaussian, laplace = answers([ledger(name, 1.0, epsilon=0.0) for name in ("gaussian", "laplace")])
    assert math.isinf(float(gaussian["upper"]))
    assert laplace["lower"] <= 1.0 <= laplace["upper"]
