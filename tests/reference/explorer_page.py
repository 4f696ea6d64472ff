"""The explorer of docs/explorer on a page of its own, opened as a file in a headless Chromium."""

import contextlib
import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import npm_package
import processes

ROOT = Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HTML = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Explorer</title><link rel="stylesheet" href="explorer.css">
<script defer src="explorer-worker.js"></script><script defer src="explorer.js"></script>
<body><main><h1>Explorer</h1><h2>Settings</h2><div class="hs-explorer" data-form="FORM"></div></main></body></html>
"""
ASKED = ".hs-explorer[data-state='{}']"


def extension(name: str) -> Any:
    """Return an extension of the site; skip the test without Sphinx."""
    pytest.importorskip("sphinx")
    folder = str(ROOT / "docs" / "extensions")
    if folder not in sys.path:
        sys.path.append(folder)
    return pytest.importorskip(name)


def write(folder: Path) -> Path:
    """Write full.html and small.html with their scripts into a folder; skip the test where em++ is absent."""
    extension("explorer").write_scripts(ROOT / "docs" / "explorer", npm_package.package(), folder)
    for form in ("full", "small"):
        (folder / f"{form}.html").write_text(HTML.replace("FORM", form), encoding="utf-8")
    return folder


def in_node(folder: Path, module: str, expression: str, given: Any, texts: Mapping[str, str] | None = None) -> Any:
    """Return the value of an expression in `m`, the exports of a module of the page, and `given`; skip the test without Node."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    bundle = extension("bundle").bundle(ROOT / "docs" / "explorer" / module, texts or {})
    inside = bundle.removesuffix("})();\n").replace("(() =>", "(async () =>", 1)  # where the modules are known
    names = f'const m = modules["explorer/{module}"], given = {json.dumps(given)};'
    script = folder / "script.mjs"
    script.write_text(
        f"{inside}{names}\nconsole.log(JSON.stringify(await ({expression})));\n}})();\n", encoding="utf-8"
    )
    return json.loads(processes.run(["node", script]).stdout)


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Give a headless Chromium; skip the test where it or playwright is absent."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield started
        finally:
            started.close()


def opened(chromium: Any, folder: Path, name: str = "full.html", **context: Any) -> Any:
    """Open a page in a context of its own, and wait until all is drawn."""
    page = chromium.new_context(**context).new_page()
    page.goto((folder / name).as_uri())
    wait(page, "done")
    return page


def wait(page: Any, state: str) -> None:
    """Wait until the explorer has answered what was asked last."""
    page.wait_for_selector(ASKED.format(state), timeout=1000 * processes.seconds(30), state="attached")


def choose(page: Any, settings: dict[str, Any], state: str = "ends") -> None:
    """Put settings into the link, as a reader would who follows it, and wait for the answer."""
    link = urlencode(settings)
    # Another link is another event; the same one is none.
    page.evaluate(
        """link => new Promise(done => {
            if (location.hash === '#' + link) return done();
            addEventListener('hashchange', () => setTimeout(done), {once: true});
            location.hash = link;
        })""",
        link,
    )
    if state == "ends":
        page.wait_for_function(
            "() => ['ends', 'done', 'error'].includes(document.querySelector('.hs-explorer').dataset.state)",
            timeout=1000 * processes.seconds(30),
        )
    else:
        wait(page, state)
