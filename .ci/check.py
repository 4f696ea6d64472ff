"""Check what differs from origin/main, or from the commit that is given: `python .ci/check.py [COMMIT]`.

Changed files are formatted and linted, mypy runs, a changed core is built anew into an editable installation, and the tests of the changed rooms run:
those in the folder of the room's name, or in the one that `TESTED_IN` names.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALWAYS = {"tests/project/test_rooms.py", "tests/embedding/test_minimal.py"}
TESTED_IN = {
    "_checks": "mechanisms",
    "_files": "sweep",
    "_hidden_states": "hidden_state",
    "_numeric": "numeric",
    "_statements": "training",
    "cli": "show",
    "cumulant": "contour",
    "last_iterate": "hidden_state",
    "mechanism": "mechanisms",
    "plot": "show",
    "release": "mechanisms",
    "report": "show",
    "simd": "contour",
}


def run(*command: str) -> str:
    """Run a command in the repository, or end with its exit code."""
    done = subprocess.run(
        command, cwd=ROOT, check=False, stdout=subprocess.PIPE if command[0] == "git" else None, text=True
    )
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout or ""


def changed(base: str) -> list[str]:
    """Return the files that differ from where this branch left its base, or are new, and still exist."""
    since = run("git", "merge-base", "HEAD", base).strip()
    listed = run("git", "diff", "--name-only", since) + run("git", "ls-files", "--others", "--exclude-standard")
    return [name for name in listed.splitlines() if (ROOT / name).exists()]


def tests(files: list[str]) -> set[str]:
    """Return the changed tests, and the folders of tests of the changed rooms."""
    found = set()
    for path in map(Path, files):
        if path.name.startswith("test_") and path.suffix == ".py":
            found.add(str(path))
        elif path.parts[0] in ("python", "cpp") and "hockeystick" in path.parts[:-2]:
            room = path.parts[path.parts.index("hockeystick") + 1]
            found.add(f"tests/{TESTED_IN.get(room, room)}")
    return found


def main() -> None:
    """Check, and end at the first thing that is wrong."""
    files = changed(*(sys.argv[1:] or ["origin/main"]))
    python = [name for name in files if name.endswith(".py")]
    cpp = [name for name in files if name.endswith((".cpp", ".hpp", ".h", ".c"))]
    module = (sys.executable, "-m")
    if any(name.endswith("/names.txt") for name in files) and "CHANGELOG.md" not in files:
        sys.exit("public names changed: CHANGELOG.md needs a line")
    if python:
        run(*module, "ruff", "format", *python)
        run(*module, "ruff", "check", *python)
        run(*module, "mypy")
    if cpp:
        run(*module, "clang_format", "-i", *cpp)
        run(*module, "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--editable", ".")
    run(*module, "pytest", "-q", "-n", "logical", "--dist", "worksteal", *sorted(ALWAYS | tests(files)))


if __name__ == "__main__":
    main()
