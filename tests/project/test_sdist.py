"""The source distribution: every file of the repository is in it, and nothing else."""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

import processes

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))"


@pytest.mark.slow
def test_the_source_distribution_is_complete(tmp_path: Path) -> None:
    """It has all that git has, so that its tests, pages and examples run; and the metadata."""
    pytest.importorskip("scikit_build_core")
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    files = set(
        processes.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT).stdout.splitlines()
    )
    name = processes.run([sys.executable, "-c", BUILD, tmp_path], cwd=ROOT).stdout.split()[-1]
    with tarfile.open(tmp_path / name) as archive:
        packed = {member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()}
    assert packed - files == {"PKG-INFO"}
    assert files <= packed


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
