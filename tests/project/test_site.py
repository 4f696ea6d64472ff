"""The documentation builds without a warning, its blocks print bounds outward, and its links lead somewhere; tests/figures draws what the gallery shows."""

import contextlib
import importlib.util
import os
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import effort
import explorer_page
import npm_package
import processes

ROOT = Path(__file__).parents[2]
NEEDED = ("sphinx", "myst_parser", "numpydoc", "furo", "matplotlib", "dp_accounting", "numba", "sklearn")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"needs hockeystick[docs]: {', '.join(MISSING)} missing"),
]


class Page(HTMLParser):
    """The anchors of a page and what it refers to."""

    def __init__(self, path):
        """Read a page."""
        super().__init__()
        self.anchors = set()
        self.targets = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Collect."""
        del tag
        found = {name: value for name, value in attrs if value is not None}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        self.targets += [found[name] for name in ("href", "src") if name in found]


# Sphinx with every block's numbers compared with what it prints of them: one on its wrong side is a warning of the page.
BUILD = """
import sys
sys.path[:0] = sys.argv[1:3]
pages = sys.argv[3].split()
import warnings, executed, printed_bounds, pytest
from sphinx.cmd.build import main
run_page = executed.run_page
def run_watched(app, page, text):
    if page not in pages:
        return
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        printed = printed_bounds.watch(patch)
        patch.setattr(executed, "run_block", lambda code, name, space: printed_bounds.run(code, space, printed))
        run_page(app, page, text)
    for fault in printed.faults:
        executed.logger.warning(fault, location=page)
executed.run_page = run_watched
sys.exit(main(sys.argv[4:]))
"""


DOCS = ROOT / "docs"
PRINTING = [  # of which test_printed_bounds runs some by itself
    path.relative_to(DOCS).with_suffix("").as_posix()
    for path in sorted(DOCS.glob("[a-z]*/*.md"))
    if re.search(r"```python\n[^`]*print\(", path.read_text(encoding="utf-8"))
]
EXECUTED = PRINTING if effort.NIGHT else effort.dice_of_commit().sample(PRINTING, len(PRINTING) // 8)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as its readers would, but for the gallery's pictures; by day an eighth of the pages execute their blocks."""
    out = tmp_path_factory.mktemp("site") / "html"
    options = ("-E", "-q", "-W", "--keep-going", "-D", "draw_gallery=0", "-b", "html")
    with contextlib.suppress(pytest.skip.Exception):  # then the explorer's page says that there is none
        npm_package.package()
    options += () if "HOCKEYSTICK_WASM" in os.environ else ("-D", "with_explorer=0")
    folders = (ROOT / "docs" / "extensions", ROOT / "tests" / "reference")
    command = [sys.executable, "-c", BUILD, *map(str, folders), " ".join(EXECUTED), *options, "docs", str(out)]
    before = changed_files()
    processes.run(command, cwd=ROOT, env=os.environ | {"PYTHONWARNINGS": ""}, limit=1800)
    assert changed_files() == before, "the build of the documentation leaves files in the repository"
    return out


def changed_files():
    """Return what git says of the folder; nothing outside of a checkout."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return ""
    return processes.run(["git", "status", "--porcelain"], cwd=ROOT).stdout


def test_it_builds_without_warnings(site):
    """Every page is there, and has what its blocks printed."""
    assert len(PRINTING) > 20
    for page in EXECUTED:
        assert 'class="output highlight-text' in (site / f"{page}.html").read_text(encoding="utf-8")


def test_every_mechanism_is_in_the_support_table(site):
    """The support table has every public mechanism."""
    from hockeystick import mechanisms  # noqa: PLC0415

    table = (site / "guide" / "support.html").read_text(encoding="utf-8")
    assert all(f">{name}" in table for name in mechanisms.__all__ if name != "Mechanism")


def test_links_lead_somewhere(site):
    """Every link within the site names a file, and an anchor that it has."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 40
    broken = []
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            found = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not found.exists() or (anchor and found in pages and anchor not in pages[found].anchors):
                broken.append(f"{path.relative_to(site)}: {target}")
    assert not broken, broken


# What newcomers type into the search box, and the page that answers.
TERMS = {
    "audit": "audit/audit",
    "last iterate": "hidden_state/hidden_states",
    "batch size": "guide/statement",
    "model card": "guide/statement",
    "drop_last": "guide/statement",
    "FedAvg": "guide/federated",
    "secure aggregation": "guide/federated",
    "budget": "accounting/budgets",
    "group privacy": "accounting/budgets",
    "shuffled": "accounting/allocation",
    "balls and bins": "accounting/allocation",
    "Opacus": "project/switching",
    "JAX": "project/switching",
    "TensorFlow Privacy": "project/switching",
    "C++": "project/embedding",
    "Rust": "project/embedding",
    "install": "guide/start",
    "DP-SGD": "guide/start",
    "noise multiplier": "guide/glossary",
    "membership inference": "accounting/risk",
    "Poisson sampling": "accounting/sampling",
    "user level": "accounting/sampling",
    "DP-FTRL": "accounting/correlated_noise",
    "PATE": "accounting/selection",
    "hyperparameter tuning": "guide/recipes",
    "synthetic data": "guide/recipes",
    "cluster": "sweep/scale",
}


@pytest.fixture(scope="module")
def chromium():
    """Start the browser once."""
    with explorer_page.browser() as started:
        yield started


def test_terms_of_newcomers_find_their_page(site, chromium):
    """The search box of the site has the page that answers first or second, and no page twice."""
    page = chromium.new_page()
    page.goto((site / "search.html").as_uri())
    page.wait_for_function("() => typeof Search !== 'undefined' && Search._index !== null")
    ask = "term => Search._performSearch(...Search._parseQuery(term)).map(found => found[0]).reverse()"
    assert len(TERMS) >= 25
    found = {term: page.evaluate(ask, term)[:2] for term in TERMS}
    assert {term: found[term] for term, expected in TERMS.items() if expected not in found[term]} == {}
    page.close()


def test_pages_do_not_scroll_sideways(site, chromium):
    """From a phone to a wide screen no page is wider than the screen, and neither is its text; by day a quarter of the pages."""
    page, wide = chromium.new_page(), []
    widths = [320 + round(1600 * k / 19) for k in range(0, 20, effort.at_night(1, by_day=9))]
    paths = [path for path in sorted(site.rglob("*.html")) if "_modules" not in path.parts]
    for path in paths if effort.NIGHT else effort.dice_of_commit().sample(paths, len(paths) // 4):
        page.goto(path.as_uri())
        for width in widths:
            page.set_viewport_size({"width": width, "height": 800})
            reach = page.evaluate("document.documentElement.scrollWidth")
            if reach > width:
                wide.append(f"{path.relative_to(site)} at {width}: {reach}")
    page.close()
    assert len(paths) > 50
    assert wide == []
