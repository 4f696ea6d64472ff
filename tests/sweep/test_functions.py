"""Plans to begin with, and descriptions: for every registered function, from its documentation."""

import importlib.util
import itertools
import re
from pathlib import Path

import pytest

from hockeystick.sweep import PlanError
from hockeystick.sweep.evaluate import evaluate
from hockeystick.sweep.functions import (
    MEANING,
    REGISTERED,
    TRAININGS,
    arguments,
    example,
    lookup,
    registered,
    returns,
    summary,
    unit_of_argument,
    with_unit,
)
from hockeystick.sweep.plan import load

pytestmark = pytest.mark.filterwarnings("ignore::hockeystick.published.UnsoundBoundWarning")
numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba")
EVERY = [*sorted(REGISTERED), *(pytest.param(name, marks=numba) for name in sorted(TRAININGS))]


@pytest.mark.parametrize("name", EVERY)
def test_every_function_is_described(name: str) -> None:
    """Each argument has a domain, the values have a sentence, and both come from the documentation."""
    described = arguments(name)
    assert [argument.name for argument in described] == list(lookup(name).parameters)
    assert [argument.name for argument in described if not argument.domain.endswith((".", ".)"))] == []
    assert returns(name).endswith(".")
    assert summary(name).endswith(".")
    assert registered(name).cost in (("training",) if name in TRAININGS else ("cheap", "costly"))
    assert registered(name).worth in MEANING


@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_every_function_has_a_label(name: str) -> None:
    """Somebody has looked at what the values of each registered function are worth; those called certified say so."""
    assert registered(name).worth != "unlabelled"
    documentation = (lookup(name).call.__doc__ or "").lower()
    if registered(name).worth == "certified":
        assert re.search(r"certified|upper bound|feasible|budget", documentation)
    if registered(name).worth == "unsound":
        assert "no upper bound" in documentation


def test_units() -> None:
    """Probabilities and privacy losses have their units at the axes; what has the user's units has none."""
    assert with_unit("epsilon", unit_of_argument("epsilon")) == "epsilon (nats)"
    assert with_unit("clip_norm", unit_of_argument("clip_norm")) == "clip_norm"
    assert {registered(name).unit for name in REGISTERED if name.endswith("_delta")} == {"probability"}
    assert {registered(name).unit for name in REGISTERED if name.endswith("_epsilon")} == {"nats"}
    assert {registered(name).unit for name in REGISTERED if name.endswith("_gdp")} == {"μ, Gaussian DP"}


@pytest.mark.parametrize("name", EVERY)
def test_every_example_runs(tmp_path: Path, name: str) -> None:
    """The plan for a function runs as it is, every cell of it is good, and every value has a comment."""
    text = example([name])
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    plan = load(tmp_path / "plan.toml")
    shard = evaluate(plan, range(plan.num_cells))
    assert not shard.errors.texts
    lines = text.splitlines()
    values = [at for at, line in enumerate(lines) if " = " in line and not line.startswith(("#", "[", "title"))]
    assert all(lines[at - 1].startswith("# ") for at in values)


def test_examples_of_two_functions(tmp_path: Path) -> None:
    """Two functions make a plan that is accepted, with columns of their own."""
    for names in itertools.islice(itertools.combinations(sorted(REGISTERED), 2), 0, None, 5):
        (tmp_path / "plan.toml").write_text(example(names), encoding="utf-8")
        assert [output.function.name for output in load(tmp_path / "plan.toml").outputs] == list(names)


def test_unknown_function() -> None:
    """The nearest names are told."""
    with pytest.raises(
        PlanError, match=r"function must be a registered one, not 'dpsgd_epsilom'; did you mean dpsgd_eps"
    ):
        example(["dpsgd_epsilom"])


def test_known_words() -> None:
    """A few descriptions, as a reader of the documentation finds them."""
    (noise, *_, delta) = arguments("dpsgd_epsilon")
    assert (noise.label, noise.required) == ("number, noise / sensitivity", True)
    assert noise.domain == "Noise standard deviation over clip norm, positive; infinity leaks nothing."
    assert delta.domain == "Target delta in [0, 1]."
    assert (registered("dpsgd_epsilon").cost, registered("theta").cost) == ("costly", "cheap")
