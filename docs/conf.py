"""Sphinx settings of the documentation: `sphinx-build -W --keep-going -b html docs docs/_build/html`."""

from __future__ import annotations

import sys
from pathlib import Path

import hockeystick

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

project = "hockeystick"
author = "The hockeystick developers"
copyright = author
version = release = hockeystick.__version__

extensions = [
    "sphinx.ext.autodoc",
    "myst_parser",
    "numpydoc",
    "sphinx_reredirects",
    "computed",  # the rest are in docs/extensions
    "executed",
    "explorer",
    "gallery",
    "mathml",
    "papers",
    "reference",
    "search_terms",
    "sources",
    "support",
]
exclude_patterns = ["_build", "tables", "extensions", "generated/papers", "generated/tables"]

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # numpydoc's sections have the types, in words
numpydoc_show_class_members = False
toc_object_entries = False

default_role = "code"  # docstrings name things in single backticks

html_theme = "furo"
html_title = f"hockeystick {release}"
html_static_path = ["static"]
html_favicon = "static/favicon.svg"  # the function that the package is named after
html_css_files = ["hockeystick.css"]
html_show_copyright = False
html_copy_source = False
html_search_scorer = str(HERE / "extensions" / "guides_first.js")

# Pages that stood at the root of the site before it had rooms.
MOVED = {
    "accounting": ("allocation", "budgets", "correlated_noise", "mechanisms", "sampling"),
    "hidden_state": ("hidden_states",),
    "federated": ("planning",),
    "isrl": ("isrl",),
    "simulate": ("simulate",),
    "audit": ("audit",),
    "sweep": ("reports", "scale"),
    "project": ("benchmarks", "embedding", "switching"),
}
redirects = {page: f"{room}/{page}.html" for room, pages in MOVED.items() for page in pages} | {
    "accuracy": "guide/numbers.html#accuracy-of-the-kernels",
    "accounting/accuracy": "../guide/numbers.html#accuracy-of-the-kernels",
    "accounting/threads": "budgets.html#threads-processes-and-copies",
    "distortion": "papers/distortion.html",
    "distortion/distortion": "../papers/distortion.html",
}
