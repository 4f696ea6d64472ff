"""Pages of docs/: their blocks leave no files, and the snippets of embedding.md are those of tests/embed."""

from __future__ import annotations

import re
import types
from pathlib import Path

import pytest

import explorer_page

ROOT = Path(__file__).parents[2]
SPOKEN = {".py", ".md", ".toml", ".hpp", ".cpp", ".h", ".html", ".cff"}


def test_pages_leave_no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


def test_snippets_are_tested() -> None:
    """The lines of the C++ and CMake examples stand in the downstream project."""
    text = (ROOT / "docs" / "project" / "embedding.md").read_text(encoding="utf-8")
    for line in (
        "find_package(hockeystick 0.1 CONFIG REQUIRED)",
        "    training.compose(hockeystick::poisson_sampled(hockeystick::gaussian(1.1), 0.01), 1000.0);",
    ):
        assert line.strip() in text
        assert any(line in path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "embed").iterdir())


def test_nothing_asks_an_index_for_the_package() -> None:
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
