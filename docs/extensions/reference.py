"""Writes a page for each public module, from its ``__all__``: a table of names, then their docstrings."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

import hockeystick
from hockeystick import interop

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = "generated/reference"


def write_pages(app: Sphinx) -> None:
    """Write the pages, afresh."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.rst"):
        old.unlink()
    in_rooms: set[str] = set()
    for package in (hockeystick, interop):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if "._" not in found.name:
                module = importlib.import_module(found.name)
                names = getattr(module, "__all__", [])
                _write(folder, module, names)
                in_rooms.update(names)
    _write(folder, hockeystick, [name for name in hockeystick.__all__ if name not in in_rooms | {"__version__"}])


def _write(folder: Path, module: ModuleType, listed: list[str]) -> None:
    values = {name: getattr(module, name) for name in listed if not isinstance(getattr(module, name), ModuleType)}
    if not values:
        return
    lines = [module.__name__, "=" * len(module.__name__), "", inspect.getdoc(module) or "", ""]
    lines += [".. list-table::", "   :widths: auto", ""]
    at_top = {name for name in values if name in hockeystick.__all__ and getattr(hockeystick, name) is values[name]}
    whose = {name: "hockeystick" if name in at_top else module.__name__ for name in values}
    for name, value in values.items():
        lines += [f"   * - :py:obj:`~{whose[name]}.{name}`", f"     - {_escaped(_summary(value))}"]
    lines.append("")
    for name, value in values.items():
        kind = "autoclass" if inspect.isclass(value) else "autofunction" if callable(value) else "autodata"
        lines += [f".. {kind}:: {whose[name]}.{name}{_ufunc_signature(value)}", *_members(value), ""]
    (folder / f"{module.__name__}.rst").write_text("\n".join(lines), encoding="utf-8")


def _summary(value: Any) -> str:
    """Return the first sentence of a docstring, below the signature that NumPy puts before that of a ufunc."""
    text = inspect.getdoc(value) or ""
    paragraphs = text.split("\n\n")
    return " ".join(paragraphs[1 if isinstance(value, np.ufunc) else 0].split())


def _ufunc_signature(value: Any) -> str:
    """Return a ufunc's arguments as its docstring names them; others sign for themselves."""
    if not isinstance(value, np.ufunc):
        return ""
    parameters = re.search(r"Parameters\n-+\n(.*?)\n\s*\n", value.__doc__ or "", re.DOTALL)
    names = re.findall(r"^(\w+) :", parameters.group(1), re.MULTILINE) if parameters else []
    return f"({', '.join(names)})"


def sign_ufunc(app: Sphinx, what: str, name: str, value: Any, *options: Any) -> tuple[str, str] | None:
    """Tell autodoc the arguments of a ufunc."""
    del app, what, name, options
    return (_ufunc_signature(value), "") if isinstance(value, np.ufunc) else None


def escape_bars(*event: Any) -> None:
    """Let a bar be a bar, as in ``|x|``: docstrings use no substitutions."""
    lines: list[str] = event[-1]
    lines[:] = [line if line.lstrip().startswith((">>>", "...")) else _escaped(line) for line in lines]


def _escaped(line: str) -> str:
    """Escape the bars outside code and formulas."""
    parts = re.split(r"(`[^`]+`+)", line)
    return "".join(part if part.startswith("`") else part.replace("|", r"\|") for part in parts)


def _members(value: Any) -> list[str]:
    """Return the option that shows the public methods of a class, those that it documents itself or inherits from us."""
    if not inspect.isclass(value):
        return []
    own = [
        name
        for kind in value.__mro__
        if kind.__module__.split(".")[0] == "hockeystick"
        for name, member in vars(kind).items()
        if not name.startswith("_")
        and (inspect.isroutine(member) or isinstance(member, property))
        and inspect.getdoc(member)
    ]
    return [f"   :members: {', '.join(dict.fromkeys(own))}"] if own else []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-signature", sign_ufunc, priority=400)  # before numpydoc's
    app.connect("autodoc-process-docstring", escape_bars, priority=600)  # after numpydoc's
    return {"parallel_read_safe": True}
