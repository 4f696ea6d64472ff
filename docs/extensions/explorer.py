"""Puts the explorer into a page: ``<!-- explorer full -->`` or ``<!-- explorer small -->``.

The accountant in it is the core compiled to WebAssembly by the preset `wasm` of CMake, which needs emscripten's ``em++`` and
pythran; HOCKEYSTICK_WASM names the folder of a package that is already built. Where there is none the build fails.
``-D with_explorer=0`` builds the site without the explorer, whose page then says so.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bundle import bundle, constants
from sphinx.errors import ExtensionError
from sphinx.util import logging

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

logger = logging.getLogger(__name__)

MARK = re.compile(r"<!-- explorer (full|small) -->")
FOLDER = "generated/explorer"
ROOT = Path(__file__).parents[2]
TEXTS = {
    "SENTENCES": ROOT / "python" / "hockeystick" / "_statements" / "sentences.json",
    "DOUBTS": ROOT / "python" / "hockeystick" / "_checks" / "doubts.json",
}
LEFT_OUT = (
    "*This copy of the site was built without the explorer. The command `hockeystick epsilon` gives the same numbers.*"
)
NO_TOOLS = (
    "the explorer needs em++, CMake and pythran (apt-get install emscripten node-acorn; pip install pythran), or HOCKEYSTICK_WASM, "
    "the folder of its package; -D with_explorer=0 builds the site without it"
)
PLACE = """```{{raw}} html
<div class="hs-explorer" data-form="{form}"><p>The explorer needs JavaScript. The command <code>hockeystick epsilon</code> gives the same numbers.</p></div>
```"""


def build(app: Sphinx) -> None:
    """Write the scripts and the style sheet of the explorer, unless the site shall have none."""
    if not app.config.with_explorer:
        return
    module = package()
    if module is None:
        raise ExtensionError(NO_TOOLS)
    source, folder = Path(app.srcdir) / "explorer", Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    write_scripts(source, module, folder)
    app.config.html_static_path.append(FOLDER)


def write_scripts(source: Path, module: Path, folder: Path) -> None:
    """Write explorer-worker.js, which holds the module, and explorer.js and explorer.css, which are the page."""
    texts = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in TEXTS.items()}
    code = base64.b64encode((module / "hockeystick.wasm").read_bytes()).decode()
    given = {
        "hockeystick": module / "hockeystick.js",
        "./texts.js": constants(**texts),
        "./wasm_bytes.js": constants(BYTES=code),
    }
    worker = json.dumps(bundle(source / "worker.js", given), ensure_ascii=False)
    (folder / "explorer-worker.js").write_text(f"globalThis.hockeystickWorker = {worker};\n", encoding="utf-8")
    (folder / "explorer.js").write_text(bundle(source / "page.js", given), encoding="utf-8")
    shutil.copy(source / "page.css", folder / "explorer.css")


def package() -> Path | None:
    """Return the folder of the package, built first if need be; None where a tool for it is absent."""
    given = os.environ.get("HOCKEYSTICK_WASM")
    if given:
        return Path(given)
    if not (shutil.which("em++") and shutil.which("cmake") and importlib.util.find_spec("pythran")):
        return None
    python = f"-DPython_EXECUTABLE={sys.executable}"  # whose pythran has the header of the transforms
    for command in (["cmake", "--preset", "wasm", python], ["cmake", "--build", "--preset", "wasm"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ExtensionError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return ROOT / "build" / "wasm" / "package"


def place(app: Sphinx, page: str, text: list[str]) -> None:
    """Replace the mark by the element that the script fills, or by that there is none."""
    del page
    with_explorer = app.config.with_explorer
    text[0] = MARK.sub(lambda mark: PLACE.format(form=mark.group(1)) if with_explorer else LEFT_OUT, text[0])


def add_files(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Load the scripts on pages with the explorer, and on no other."""
    del template, context
    if doctree is not None and app.config.with_explorer and 'class="hs-explorer"' in doctree.astext():
        logger.debug("explorer on %s", page)
        app.add_css_file("explorer.css")
        app.add_js_file("explorer-worker.js", loading_method="defer")
        app.add_js_file("explorer.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.add_config_value("with_explorer", default=True, rebuild="env", types=[bool])
    app.connect("builder-inited", build)
    app.connect("source-read", place)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True}
