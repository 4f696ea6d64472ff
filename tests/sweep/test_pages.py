"""The page on results runs as printed, and so does the script for job arrays."""

import importlib.util
import os
import re
import shlex
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import processes
from hockeystick.cli import main
from hockeystick.sweep import run
from written_files import content

pytest.importorskip("pyarrow")

DOCS = Path(__file__).parents[2] / "docs" / "sweep"
BLOCK = re.compile(r"(?:<!-- needs (\w+) -->\n)?```(python|sh)\n(.*?)```", re.DOTALL)
SCRIPT = re.compile(r"<!-- slurm -->\n```sh\n(.*?)```", re.DOTALL)


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands end with 0, blocks of Python pass one after the other, and print what their comments say."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for library, kind, block in BLOCK.findall((DOCS / "results.md").read_text(encoding="utf-8")):
        if library and importlib.util.find_spec(library) is None:
            continue
        if kind == "sh":
            for line in block.splitlines():
                assert main(shlex.split(line, comments=True)[1:]) == 0
            continue
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the other readers
            exec(compile(block, "results.md", "exec"), names)  # noqa: S102 - a page of ours
        told = re.findall(r"^ *print\(.*?\) +# (.*)$", block, re.MULTILINE)
        printed = capsys.readouterr().out.splitlines()
        assert all(text in printed for text in told)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
def test_job_array(tmp_path: Path) -> None:
    """Three jobs of the script, one of them twice, leave the bytes of one run."""
    (script,) = SCRIPT.findall((DOCS / "scale.md").read_text(encoding="utf-8"))
    assert len(script.splitlines()) <= 10
    (tmp_path / "sweep.sh").write_text(script)
    (tmp_path / "hockeystick").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hockeystick "$@"\n')
    (tmp_path / "hockeystick").chmod(0o755)
    plan = 'shard_rows = 2\n[outputs]\ndelta = "theta"\n[axes]\nepsilon = [0.0, 1.0, 2.0]\nr = [-1.0, 0.5, 1.5]\n'
    (tmp_path / "plan.toml").write_text(plan)
    for job in (2, 1, 2, 3):
        array = {"SLURM_CPUS_PER_TASK": "1", "SLURM_ARRAY_TASK_ID": str(job)}
        path = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
        command = ["sh", "sweep.sh", "plan.toml", "out", "3"]
        processes.run(command, limit=60, cwd=tmp_path, env={**os.environ, **array, **path})
    places = [str(tmp_path / "out" / name) for name in ("whole", "share-1", "share-2", "share-3")]
    assert main(["sweep", "merge", *places]) == 0
    run(tmp_path / "plan.toml", tmp_path / "alone")
    assert content(tmp_path / "out/whole") == content(tmp_path / "alone")
