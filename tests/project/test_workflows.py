"""The workflows of GitHub Actions: valid against the schema, actions pinned, and no path or command that is not there."""

import re
import sys
from pathlib import Path

import pytest

import processes

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def violations(path: Path) -> str:
    """Return what the vendored schema of GitHub workflows finds wrong, without a network."""
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
    done = processes.run(command, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_all_are_there() -> None:
    """Tests, the night, wheels, docs and benchmarks each have a workflow of that name."""
    assert {"tests", "nightly", "wheels", "docs", "benchmarks"} <= {path.stem for path in WORKFLOWS}
    for path in WORKFLOWS:
        assert re.search(rf"^name: {path.stem}$", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.share(3)
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_schema(path: Path) -> None:
    """A workflow is valid."""
    assert violations(path) == ""


def test_schema_finds_mistakes(tmp_path: Path) -> None:
    """The check would see a job without a machine to run on."""
    broken = tmp_path / "broken.yml"
    broken.write_text("name: broken\non: push\njobs:\n  one:\n    steps:\n      - run: true\n")
    assert "one" in violations(broken)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned(path: Path) -> None:
    """Each action is named by a commit, with its version beside it; a workflow may only read unless a job says otherwise, and ends some time."""
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (.+)", text)
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action) for action in used)
    assert "\npermissions:\n  contents: read\n" in text
    assert text.count("runs-on:") == text.count("timeout-minutes:")


def test_an_action_has_one_version() -> None:
    """All workflows use the same commit of an action."""
    used = {line for path in WORKFLOWS for line in re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))}
    assert len({line.split("@")[0] for line in used}) == len(used)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_scripts_are_there(path: Path) -> None:
    """A script that a workflow runs is in the repository, and so is every extra that it installs."""
    text = path.read_text(encoding="utf-8")
    for script in re.findall(r"(?:change/)?((?:bench|docs|tests)/\w+\.py|\.ci/\w+)", text):
        assert (ROOT / script).is_file(), script
    extras = re.search(r"\[project.optional-dependencies\](.*?)\n\[", (ROOT / "pyproject.toml").read_text(), re.DOTALL)
    assert extras
    for names in re.findall(r"\.\[([\w,-]+)\]", text):
        for name in names.split(","):
            assert re.search(rf"^{name} = \[", extras.group(1), re.MULTILINE), name
