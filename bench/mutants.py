"""Break the code on purpose and see which stage of the tests notices: python bench/mutants.py [--package N] [--core N] [--seed S].

Each mutant changes one place: a comparison, a sign, an operation, an off-by-one, the smaller for the larger, a rounding direction,
a check that is dropped. The places are drawn at random with the seed, rooms in turn, so that a run can be repeated on another
commit. Mutants live in a copy of the installed package; for those of the core its module is compiled anew at -O1. The tests of the
mutant's room run first, then the stages that `--stages` names, each with `-x`. A test that notices must pass without the
mutant. Prints a row a mutant, and how many nobody noticed.

Needs a checkout that is installed with this Python, and its test tools. A mutant takes seconds to minutes.
"""

import argparse
import importlib.util
import io
import itertools
import os
import random
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
import tokenize
import venv
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
STAGES = {"first": [], "slow": ["-m", "slow"]}
TESTED_IN = runpy.run_path(str(ROOT / ".ci" / "check.py"))["TESTED_IN"]


@dataclass(frozen=True)
class Mutant:
    """One place of one file with other text."""

    file: Path
    room: str
    line: int
    column: int
    old: str
    new: str

    def applied(self, text):
        """Return the file's text with it."""
        lines = text.split("\n")
        line = lines[self.line]
        lines[self.line] = line[: self.column] + self.new + line[self.column + len(self.old) :]
        return "\n".join(lines)


def python_places(text):
    """Yield line, column and text of the tokens that can be swapped; annotations and signatures are left alone."""
    signature = False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        signature = token.string in {"def", "class", "import", "@"} or (signature and token.type != tokenize.NEWLINE)
        if not signature and token.string in SWAPS:
            yield token.start[0] - 1, token.start[1], token.string


def cpp_places(text):
    """Yield the same of a header. Signs with spaces on both sides are operators; others may be of a template or a pointer."""
    for number, line in enumerate(text.split("\n")):
        if line.lstrip().startswith(("#", "//", "template", "using", "static_assert", "defined")):
            continue
        for token in CPP_TOKEN.finditer(line):
            at, end = token.span()
            spaced = line[at - 1 : at] == " " and line[end : end + 1] == " "
            if token[0] in SWAPS and token[0] != "if" and (token[0].isalnum() or "." in token[0] or spaced):
                yield number, at, token[0]


def drawn(folder, pattern, count, rng):
    """Draw mutants from a folder of rooms, which come in turn; files beside the rooms are one more. No place is drawn twice."""
    rooms = {}
    for file in sorted(folder.rglob(pattern)):
        parts, text = file.relative_to(folder).parts, file.read_text(encoding="utf-8")
        room = parts[0] if parts[1:] else ""
        for line, column, old in python_places(text) if file.suffix == ".py" else cpp_places(text):
            if old not in RARE or rng.random() < 0.2:
                rooms.setdefault(room, []).append(Mutant(file, room, line, column, old, SWAPS[old]))
    order = sorted(rooms)
    rng.shuffle(order)
    for room in order:
        rng.shuffle(rooms[room])
    turns = itertools.chain.from_iterable(itertools.zip_longest(*(rooms[room] for room in order)))
    return [mutant for mutant in turns if mutant][:count]


@dataclass(frozen=True)
class Workshop:
    """A virtual environment with a copy of the installed package, and the sources of its core."""

    folder: Path

    @property
    def python(self):
        """Its Python, which imports the copy even if the checkout is installed editable."""
        return self.folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def site(self):
        """Where its packages lie."""
        return next((self.folder / "venv").rglob("site-packages"))

    @property
    def package(self):
        """Its hockeystick."""
        return self.site / "hockeystick"

    @property
    def sources(self):
        """Its CMakeLists.txt and cpp/."""
        return self.folder / "sources"

    def prepare(self, *, core):
        """Copy what is installed, and compile the core as it is."""
        spec = importlib.util.find_spec("hockeystick")
        if spec is None or not spec.submodule_search_locations:
            sys.exit("install hockeystick with this Python first: mutants are made in a copy of the installation")
        venv.create(self.folder / "venv", symlinks=os.name != "nt")
        tools = [path for path in sys.path if path.endswith("-packages")]  # they come after the copy
        (self.site / "tools.pth").write_text("\n".join(tools), encoding="utf-8")
        for part in spec.submodule_search_locations:  # the sources of an editable installation, and what was compiled
            shutil.copytree(part, self.package, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        if core:
            self.sources.mkdir()
            shutil.copy(ROOT / "CMakeLists.txt", self.sources)
            shutil.copytree(ROOT / "cpp", self.sources / "cpp")
            options = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1", "-DHOCKEYSTICK_LEVELS=native"]
            options += ["-DHOCKEYSTICK_C=OFF", "-DHOCKEYSTICK_INSTALL=OFF", f"-DPython_EXECUTABLE={sys.executable}"]
            options += [f"-DCMAKE_LIBRARY_OUTPUT_DIRECTORY={self.package}"]
            options += [f"-DPOCKETFFT_INCLUDE_DIR={self.package / 'include/hockeystick/pocketfft'}"]
            command = ["cmake", "-G", "Ninja", "-S", self.sources, "-B", self.folder / "build"]
            subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
            self.compile()

    def compile(self):
        """Compile the module."""
        subprocess.run(
            ["cmake", "--build", self.folder / "build", "--target", "_core"], check=True, capture_output=True
        )

    def passes(self, *arguments):
        """Run tests of the checkout on the copy until one fails; return whether none did, and the first that did."""
        options = ["-x", "-q", "-p", "no:cacheprovider", "-n", "logical", "--dist", "worksteal"]
        try:
            done = subprocess.run(
                [self.python, "-m", "pytest", *options, *map(str, arguments)],
                cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False, ""
        named = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        return done.returncode in {0, 5}, named[1] if named else ""

    def noticed(self, mutant, stages):
        """Return the stage and the test that notice a mutant, or two empty texts."""
        room = ROOT / "tests" / TESTED_IN.get(mutant.room, mutant.room)
        steps = [(f"{stage} stage", STAGES[stage]) for stage in stages]
        if mutant.room and room.is_dir():
            steps = [(f"its room, {stage}", [*STAGES[stage], str(room)]) for stage in stages] + steps
        for stage, arguments in steps:
            passed, test = self.passes(*arguments)
            if not passed:
                return stage, test
        return "", ""

    def fate(self, mutant, stages):
        """Make the mutant, say who notices it, and put back what was there."""
        text, module = mutant.file.read_text(encoding="utf-8"), next(self.package.glob("_core*.so"))
        kept = module.read_bytes()
        try:
            mutant.file.write_text(mutant.applied(text), encoding="utf-8")
            if mutant.file.suffix == ".hpp":
                self.compile()
            stage, test = self.noticed(mutant, stages)
        except subprocess.CalledProcessError:
            return "does not compile"
        finally:
            mutant.file.write_text(text, encoding="utf-8")
            module.unlink()
            module.write_bytes(kept)
        if test and not self.passes("-m", "slow or not slow", test)[0]:
            return f"{test} fails without it, too"
        return f"{stage}: {test or 'no end'}" if stage else "SURVIVES"


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--package", type=int, default=40, help="mutants of the Python package")
    parser.add_argument("--core", type=int, default=0, help="mutants of the C++ headers, a minute of compiling each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--stages", nargs="*", choices=STAGES, default=["first"], help="for what its room does not notice"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder))
        workshop.prepare(core=options.core > 0)
        mutants = drawn(workshop.package, "*.py", options.package, random.Random(options.seed))
        headers = workshop.sources / "cpp/include/hockeystick"
        mutants += drawn(headers, "*.hpp", options.core, random.Random(options.seed))
        survivors = 0
        for number, mutant in enumerate(mutants):
            begun, found = time.monotonic(), workshop.fate(mutant, options.stages)
            survivors += found == "SURVIVES"
            place = mutant.file.as_posix().rpartition("/hockeystick/")[2]
            row = f"{place}:{mutant.line + 1} `{mutant.old}` -> `{mutant.new}`"
            sys.stdout.write(f"| {number} | {row} | {found} | {time.monotonic() - begun:.0f} s |\n")
            sys.stdout.flush()
        sys.stdout.write(f"{survivors} of {len(mutants)} survive\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
