"""Break the code on purpose and see which stage of the tests notices: python bench/mutants.py [--package N] [--core N] [--seed S].

Each mutant changes one place: a comparison, a sign, an operation, an off-by-one, the smaller for the larger, a rounding direction,
a check that is dropped. The places are drawn at random with the seed, rooms in turn, so that a run can be repeated on another
commit. A mutant of the package changes a file of the installed hockeystick, one of the core a header of the checkout, which is
installed again; both are put back. The tests of the mutant's room run first, then the first stage, each with `-x`; what
survives that meets the slow stage if `--slow` says so. Prints a row a mutant, and how many nobody noticed.

Needs a checkout that is installed with this Python, and its test tools. A mutant takes seconds to minutes.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import random
import re
import subprocess
import sys
import time
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SWAPS = {
    "<=": "<", "<": "<=", ">=": ">", ">": ">=", "==": "!=", "+": "-", "-": "+", "*": "/", "/": "*", "and": "or", "or": "and",
    "&&": "||", "||": "&&", "min": "max", "max": "min", "inf": "-inf", "ceil": "floor", "floor": "ceil", "1": "2", "0": "1",
    "1.0": "2.0", "0.5": "0.25", "if": "if not", "up": "down", "down": "up",
}  # fmt: skip
RARE = {"1", "0", "1.0", "+", "-", "*", "if"}  # there are so many that the others would hardly be drawn
CPP_TOKEN = re.compile(r'"(?:\\.|[^"])*"|//.*|[A-Za-z_]\w*|\d[\w.]*|<=|>=|==|&&|\|\||[-+*/<>]|\S')
LIMIT = 1800.0  # seconds for the tests of a mutant; one that hangs is noticed, too


@dataclass(frozen=True)
class Mutant:
    """One place of one file with other text."""

    file: Path
    room: str
    line: int
    column: int
    old: str
    new: str

    def applied(self, text: str) -> str:
        """Return the file's text with it."""
        lines = text.split("\n")
        line = lines[self.line]
        lines[self.line] = line[: self.column] + self.new + line[self.column + len(self.old) :]
        return "\n".join(lines)


def python_places(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield line, column and text of the tokens that can be swapped; annotations and signatures are left alone."""
    signature = False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        signature = token.string in {"def", "class", "import", "@"} or (signature and token.type != tokenize.NEWLINE)
        if not signature and token.string in SWAPS:
            yield token.start[0] - 1, token.start[1], token.string


def cpp_places(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the same of a header. Signs with spaces on both sides are operators; others may be of a template or a pointer."""
    for number, line in enumerate(text.split("\n")):
        if line.lstrip().startswith(("#", "//", "template", "using")):
            continue
        for token in CPP_TOKEN.finditer(line):
            at, end = token.span()
            spaced = line[at - 1 : at] == " " and line[end : end + 1] == " "
            if token[0] in SWAPS and token[0] != "if" and (token[0].isalnum() or "." in token[0] or spaced):
                yield number, at, token[0]


def drawn(folder: Path, pattern: str, count: int, rng: random.Random) -> list[Mutant]:
    """Draw mutants from a folder of rooms, which come in turn; the file of a room is drawn, and the place in it."""
    rooms: dict[str, list[Path]] = {}
    for file in folder.rglob(pattern):
        if file.name != "__init__.py":
            rooms.setdefault(file.relative_to(folder).parts[0], []).append(file)
    order = sorted(rooms)
    rng.shuffle(order)
    found: list[Mutant] = []
    while len(found) < count:
        room = order[len(found) % len(order)]
        file = rng.choice(sorted(rooms[room]))
        text = file.read_text(encoding="utf-8")
        places = list(python_places(text) if file.suffix == ".py" else cpp_places(text))
        places = [place for place in places if place[2] not in RARE or rng.random() < 0.2]
        if places:
            line, column, old = rng.choice(places)
            found.append(Mutant(file, room, line, column, old, SWAPS[old]))
        else:
            order.remove(room)  # nothing of it was drawn: the next room's turn
    return found


def passes(*arguments: object) -> tuple[bool, str]:
    """Run the tests until one fails; return whether none did, and the first that did."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-n",
        "logical",
        "--dist",
        "worksteal",
    ]
    try:
        done = subprocess.run(
            [*command, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return False, "no end"
    named = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return done.returncode in {0, 5}, named[1] if named else f"exit {done.returncode}"


def fate(mutant: Mutant, *, slow: bool) -> str:
    """Say which tests notice a mutant that is installed."""
    room = ROOT / "tests" / mutant.room
    stages: list[tuple[str, tuple[object, ...]]] = [("first stage", ())]
    if room.is_dir():
        stages.insert(0, ("its room", (room,)))
    if slow:
        stages.append(("slow stage", ("-m", "slow")))
    for stage, arguments in stages:
        passed, test = passes(*arguments)
        if not passed:
            return f"{stage}: {test}"
    return "SURVIVES"


def installed_package() -> Path:
    """Return the folder of the installed package, which is not that of the checkout."""
    spec = importlib.util.find_spec("hockeystick")
    if spec is None or spec.origin is None or Path(spec.origin).is_relative_to(ROOT / "python"):
        sys.exit("install hockeystick with this Python first: mutants of the package are made in the installation")
    return Path(spec.origin).parent


def install() -> None:
    """Install the checkout as it is, with a build folder that is kept."""
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "-C", "build-dir=build/mutants", "."],
        cwd=ROOT, check=True,
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--package", type=int, default=40, help="mutants of the Python package")
    parser.add_argument("--core", type=int, default=0, help="mutants of the C++ headers, a minute of compiling each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="leave out so many of the first")
    parser.add_argument("--slow", action="store_true", help="the slow stage for survivors")
    options = parser.parse_args()
    package = installed_package()
    mutants = drawn(package, "*.py", options.package, random.Random(options.seed))
    mutants += drawn(ROOT / "cpp/include/hockeystick", "*.hpp", options.core, random.Random(options.seed))
    survivors = 0
    for mutant in mutants[options.skip :]:
        text, begun = mutant.file.read_text(encoding="utf-8"), time.monotonic()
        name = mutant.file.relative_to(package if package in mutant.file.parents else ROOT)
        try:
            mutant.file.write_text(mutant.applied(text), encoding="utf-8")
            if mutant.file.suffix == ".hpp":
                install()
            found = fate(mutant, slow=options.slow)
        except subprocess.CalledProcessError:
            found = "does not compile"
        finally:
            mutant.file.write_text(text, encoding="utf-8")
        survivors += found == "SURVIVES"
        row = f"{name}:{mutant.line + 1} `{mutant.old}` -> `{mutant.new}`"
        sys.stdout.write(f"| {row} | {found} | {time.monotonic() - begun:.0f} s |\n")
        sys.stdout.flush()
    if any(mutant.file.suffix == ".hpp" for mutant in mutants):
        install()
    sys.stdout.write(f"{survivors} of {len(mutants[options.skip :])} survive\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
