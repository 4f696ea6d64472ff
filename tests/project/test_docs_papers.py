"""The pages on inter-silo privacy, distortion and planning do what they say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from hockeystick.cli import main

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    name: (DOCS / room / f"{name}.md").read_text(encoding="utf-8")
    for room, name in (
        ("isrl", "isrl"),
        ("federated", "planning"),
        ("papers", "fdp_fedavg"),
    )
}
CALLS = re.findall(r"```console\n\$ hockeystick (.*?[^\\])\n(.*?)```", PAGES["planning"], re.DOTALL)
COMMANDS = [call for call in CALLS if "--trust" in call[0]]
COMPARISONS = [call for call in CALLS if "--trust" not in call[0]]


def numbers(table: str) -> list[list[float]]:
    """Return the rows of a printed plan."""
    return [[float(cell) for cell in line.split()] for line in table.splitlines()[4:] if line.strip()]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=["hospitals", "phones", "shuffled", "bank", "pooled"])
def test_plans_are_what_is_printed(command: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command of the planning page prints the table shown, to the last digit but one."""
    assert main(shlex.split(command.replace("\\\n", " "))) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[:4] == shown.splitlines()[:4]
    rows = numbers(shown)
    assert len(rows) >= 3
    for found, expected in zip(numbers(text), rows, strict=True):
        assert found == pytest.approx(expected, rel=2e-3)


@pytest.mark.slow
def test_the_comparison_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The command without a trust model prints the table shown, and below it what is assumed."""
    ((command, shown),) = COMPARISONS
    assert main(shlex.split(command.replace("\\\n", " "))) == 0
    printed, expected = capsys.readouterr().out.splitlines(), shown.splitlines()
    assert len(expected) > 15
    for line, row in zip(printed, expected, strict=False):
        words, wanted = line.split(), row.split()
        assert len(words) == len(wanted)
        for word, want in zip(words, wanted, strict=True):
            assert word == want or float(word) == pytest.approx(float(want), rel=2e-3)


@pytest.mark.slow
def test_table_of_slack() -> None:
    """The page has the rows that the script prints."""
    script = (DOCS / "tables" / "isrl_slack.py").read_text(encoding="utf-8")
    space: dict[str, object] = {"__name__": "table"}
    exec(compile(script, "isrl_slack.py", "exec"), space)  # noqa: S102, the script is ours
    cases = [case for case in space["CASES"] if case.name.startswith(("MNIST", "full"))]
    for case in cases:
        assert space["row"](case) in PAGES["isrl"]


@pytest.mark.parametrize(
    ("path", "was_wrong"),
    [
        ("docs/guide/researcher.md", "its figures draw bounds that are false"),  # that paper has no figure
        ("docs/guide/researcher.md", "Everything printed is callable"),
        (
            "python/hockeystick/figures/isrl_experiments.py",
            "chosen without privacy, as there",
        ),  # by the test records, here
        ("python/hockeystick/isrl/budgets.py", "reveals each of its records and hides the"),  # impossible
        ("python/hockeystick/isrl/unequal_silos.py", "Assumption 1(3)"),  # 1(4)
        ("python/hockeystick/utility/aggregator_risk.py", "printed without d. "),  # and without 1/2
    ],
)
def test_wrong_sentences_are_gone(path: str, was_wrong: str) -> None:
    """Statements about the papers that were wrong, which no formula would notice."""
    assert was_wrong not in (DOCS.parent / path).read_text(encoding="utf-8")
