"""README.md, whose commands and numbers are right, and pages of docs/: a page for each room, formulas that the site can write, blocks that leave no files, snippets that are tested."""

import re
import shlex
import sys
import types
from pathlib import Path

import pytest

import explorer_page
import hockeystick as hs
import processes
from hockeystick import federated
from hockeystick.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SPOKEN = {".py", ".md", ".toml", ".hpp", ".cpp", ".h", ".html", ".cff"}


def test_public_rooms_have_a_page():
    """The table of docs/index.md has a line for every public room, with a page that is there."""
    rows = re.findall(r"^\| (.*)", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    for package in (ROOT / "python" / "hockeystick").glob("[a-z]*/__init__.py"):
        lines = [row for row in rows if f"`{package.parent.name}`" in row.split("|")[0]]
        assert len(lines) == 1, package
        pages = re.findall(r"\]\(([\w/]+\.md)\)", lines[0])
        assert pages, package
        assert all((DOCS / page).exists() for page in pages), package


def test_titles_are_the_labels_of_the_navigation():
    """No page has another name in the navigation than its title, and no two pages have the same title."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
    labelled = {line for text in texts.values() for line in re.findall(r"^[^|<>`#\n]+ <[\w/]+>$", text, re.MULTILINE)}
    assert labelled == set()
    titles = [title for text in texts.values() for title in re.findall(r"\A# (.+)$", text, re.MULTILINE)]
    assert len(titles) > 45
    assert len(titles) == len(set(titles))


def test_formulas_are_known(monkeypatch):
    """Every formula becomes MathML: seconds, where building the site takes a minute."""
    latex = pytest.importorskip("docutils.utils.math.latex2mathml")
    monkeypatch.syspath_prepend(DOCS / "extensions")
    mathml = pytest.importorskip("mathml")
    formula, unknown = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$([^$]+?)(?<!\\)\$", re.DOTALL), []
    for page in sorted(DOCS.rglob("*.md")):
        text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for displayed, inline in formula.findall(text):
            if re.search(r"\n *([-+*>]|\d+[.)]) ", inline):
                unknown.append(f"{page.relative_to(DOCS)}: {inline}: a line of it begins a list")
            try:
                latex.tex2mathml(mathml.BIG.sub("", (displayed or inline).strip()))
            except Exception as error:  # noqa: BLE001 - of whatever kind
                unknown.append(f"{page.relative_to(DOCS)}: {displayed or inline}: {error}")
    assert unknown == []


def test_pages_leave_no_files(monkeypatch, tmp_path):
    """A page is built in a folder of its own: what its blocks write is there for the next block, and nowhere for the next page."""
    executed = explorer_page.extension("executed")
    monkeypatch.chdir(tmp_path)
    page = "```python\nfrom pathlib import Path\nprint(sorted(Path().iterdir()))\nPath('out').mkdir()\n```\n"
    seen = "```python\nprint([path.name for path in Path().iterdir()])\n```\n"
    app = types.SimpleNamespace(env=types.SimpleNamespace(doc2path=lambda name: f"{name}.md"), srcdir=str(tmp_path))
    for _ in range(2):
        text = [page + seen]
        executed.run_page(app, "page", text)
        assert re.findall(r"text\n:class: output\n\n(.*)", text[0]) == ["[]", "['out']"]
    assert Path.cwd() == tmp_path
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_plan_is_what_is_printed(capsys):
    """The command of the planning page prints the table shown, to the last digit but one."""
    text = (DOCS / "federated" / "planning.md").read_text(encoding="utf-8")
    ((command, shown),) = re.findall(r"```console\n\$ hockeystick (.*?[^\\])\n(.*?)```", text, re.DOTALL)
    assert main(shlex.split(command.replace("\\\n", " "))) == 0
    tables = [table.splitlines() for table in (capsys.readouterr().out, shown)]
    assert tables[0][:4] == tables[1][:4]
    found, expected = ([list(map(float, line.split())) for line in table[4:] if line.strip()] for table in tables)
    assert len(expected) >= 3
    for row, known in zip(found, expected, strict=True):
        assert row == pytest.approx(known, rel=2e-3)


def test_snippets_are_tested():
    """The lines of the C++ and CMake examples stand in the downstream project."""
    text = (DOCS / "project" / "embedding.md").read_text(encoding="utf-8")
    for line in (
        "find_package(hockeystick 1.0 CONFIG REQUIRED)",
        "    training.compose(hockeystick::poisson_sampled(hockeystick::gaussian(1.1), 0.01), 1000.0);",
    ):
        assert line.strip() in text
        assert any(line in path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "embed").iterdir())


def words(folder, *kinds):
    """Return the words of each source file below a folder of the repository."""
    files = [path for kind in kinds for path in (ROOT / folder).rglob(f"*{kind}")]
    return {path.as_posix(): set(re.findall(r"\w+", path.read_text(encoding="utf-8"))) for path in files}


def test_code_names_of_the_proofs_exist():
    """Every file and name in backticks in docs/core and cpp/README.md is in cpp/, or is a name of the Python package or the checker."""
    sources, python = (
        words("cpp", ".hpp", ".h", ".cpp", ".cxx", ".js"),
        set().union(*words("python", ".py").values(), *words("checker", ".py").values()),
    )
    missing = []
    for page in [*(DOCS / "core").glob("*.md"), ROOT / "cpp" / "README.md"]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for name in re.findall(r"`([\w/.:]+)(?:\(\))?`", text):
            parts = set(re.findall(r"\w+", name))
            is_there = (ROOT / name).exists() or any(source.endswith(f"/{name}") for source in sources)
            in_one_file = any(parts <= found for found in sources.values())
            if not (is_there or in_one_file or ("::" not in name and parts <= python)):
                missing.append(f"{page.name}: {name}")
    assert missing == []


def test_nothing_asks_an_index_for_the_package():
    """No message and no page says to install the package by its name: no index has it, and a stranger may take the name."""
    by_name = re.compile(r"""pip install [^\n`]*?["' ]hockeystick\b""")
    folders = ("python", "docs", "examples", "cpp", "bench")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in SPOKEN]
    files += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    assert len(files) > 300
    found = [str(path) for path in files if by_name.search(path.read_text(encoding="utf-8"))]
    assert not found
    assert by_name.search("pip install 'hockeystick[plot]'")
    assert by_name.search("pip install -U hockeystick")
    assert not by_name.search('pip install ".[plot]" in a clone')


FEDERATION = {"num_clients": 100, "clip_norm": 1.0, "learning_rate": 0.01, "smoothness": 1.0}  # of the example plan
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_lead_somewhere():
    """Every relative link, and every script that a command runs, names a file of the repository."""
    named = re.findall(r"\]\((?!http)([^)#]+)\)", README) + re.findall(r"python ((?:docs|bench)/\S+\.py)", README)
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.slow
def test_main_job_runs(tmp_path):
    """The commands of the main job, without the installation, run on the plan that ships."""
    block = re.search(r"<!-- main job -->\n```sh\n(.*?)```", README, re.DOTALL).group(1)
    commands = [line.strip().removesuffix("&&").strip() for line in block.splitlines()[1:]]
    assert len(commands) == 3
    for command in commands:
        words = [str(tmp_path / "out") if word == "out" else word for word in shlex.split(command)]
        assert words[0] == ".venv/bin/hockeystick"
        told = processes.run([sys.executable, "-m", "hockeystick", *words[1:]], cwd=ROOT).stdout
    shown = float(re.search(r"^epsilon = ([\d.]+)", told, re.MULTILINE).group(1))
    assert 1 <= shown <= 8
    exact = federated.fedavg_epsilon(1e-5, noise_std=0.35, rounds=200, local_steps=10, **FEDERATION)
    assert exact <= shown <= exact + 1e-5  # rounded up
    assert f"ε ≤ {shown}" in README
    assert list((tmp_path / "out" / "cells").glob("*.parquet"))
    assert list((tmp_path / "out").rglob("*.png"))


def test_statement_example():
    """The one-line example prints what the text says, and the text's numbers are rounded outward."""
    command = re.search(r"<!-- statement -->\n```sh\n\.venv/bin/hockeystick (.*?)```", README, re.DOTALL).group(1)
    told = processes.run([sys.executable, "-m", "hockeystick", *shlex.split(command)]).stdout
    upper = hs.format_upper(hs.dpsgd_epsilon(1.1, 256 / 60_000, 3525, 1e-5), ".3f")
    assert f"ε ≤ {upper} holds" in README
    assert f"ε = {upper}" in told
    shuffled = hs.shuffled_batches_epsilon_bracket(1e-5, noise_multiplier=1.1, num_batches=235, epochs=15)
    lower, upper = hs.format_lower(shuffled.lower, ".2f"), hs.format_upper(shuffled.upper, ".2f")
    assert (
        f"Shuffled batches: proven ε ≤ {upper}; with batches of one size at least {lower} in the worst case." in README
    )


def test_what_was_measured_is_repeated():
    """Every time of the table stands on the page that has them all; the error of the kernels is the largest of theirs, rounded up."""
    rows = re.search(r"\| question, one thread \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", README).group(1)
    measured = (ROOT / "docs" / "project" / "benchmarks.md").read_text(encoding="utf-8")
    times = re.findall(r"\d[\d.]* (?:ns|µs|ms|s)\b", rows)
    assert len(times) >= 3
    assert all(time in measured for time in times), times
    named, said = re.search(r"((?:`\w+`(?:, | and )?)+) have errors of at most ([\d.e-]+),", README).groups()
    table = (ROOT / "docs" / "guide" / "numbers.md").read_text(encoding="utf-8")
    kernels = re.findall(r"\w+", named.replace(" and ", " "))
    found = [re.search(rf"^\| `{kernel}` \|.*$", table, re.MULTILINE).group() for kernel in kernels]
    errors = re.findall(r"[\d.]+e-\d+", "\n".join(found))
    assert len(errors) == 3 * len(kernels)
    assert hs.format_upper(max(map(float, errors)), ".1e") == said
