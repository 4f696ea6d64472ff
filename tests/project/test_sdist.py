"""The source distribution: every file of the repository is in it, and nothing else."""

import re
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

import processes

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))"


# What a source distribution has at its top. What is new there is written down here, or ignored by git, or does not belong there.
SHIPPED = {
    ".ci",
    ".clang-format",
    ".github",
    ".gitignore",
    "CHANGELOG.md",
    "CITATION.cff",
    "CMakeLists.txt",
    "CMakePresets.json",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "bench",
    "checker",
    "cpp",
    "docs",
    "examples",
    "packaging",
    "pyproject.toml",
    "python",
    "tests",
}


def listed(*which: str) -> set[str]:
    """Return files of the checkout by git; skip the test where there is none."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    return set(processes.run(["git", "ls-files", *which], cwd=ROOT).stdout.splitlines())


def test_nothing_else_lies_at_the_top() -> None:
    """The repository has what the list says: no output of a run, of a page or of an editor is among it."""
    assert {name.partition("/")[0] for name in listed("--cached")} == SHIPPED


@pytest.mark.slow
def test_the_source_distribution_is_complete(tmp_path: Path) -> None:
    """It has all that git has, so that its tests, pages and examples run; the metadata; and nothing that the list has not."""
    pytest.importorskip("scikit_build_core")
    files = listed("--cached", "--others", "--exclude-standard")
    name = processes.run([sys.executable, "-c", BUILD, tmp_path], cwd=ROOT).stdout.split()[-1]
    with tarfile.open(tmp_path / name) as archive:
        packed = {member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()}
    assert packed - files == {"PKG-INFO"}
    assert files <= packed
    assert {name.partition("/")[0] for name in packed} == SHIPPED | {"PKG-INFO"}


def test_the_conda_recipe_asks_for_the_same() -> None:
    """Its version and its requirements are those of the package."""
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "packaging" / "conda-forge" / "recipe.yaml").read_text(encoding="utf-8"))
    header = (ROOT / "cpp" / "include" / "hockeystick" / "version.hpp").read_text(encoding="utf-8")
    assert f'HOCKEYSTICK_VERSION "{recipe["context"]["version"]}"' in header
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.search(r"^dependencies = \[(.*)\]$", project, re.MULTILINE)
    built_with = re.search(r"^requires = \[(.*)\]", project, re.MULTILINE)
    assert needed
    assert built_with
    words = {word.replace(" ", "") for word in [*recipe["requirements"]["run"], *recipe["requirements"]["host"]]}
    assert set(re.findall(r'"([^"]+)"', f"{needed[1]},{built_with[1]}")) <= words
