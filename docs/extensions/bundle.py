"""Joins ES modules into one script without imports: a page that is opened as a file may load no modules.

Each module becomes a function that returns what it exports, in the order of its imports. Understood is what our own modules use: imports of
names, with or without ``as``, at the beginning of a line, and exports in front of what they name or as a list in braces. ``import.meta.url``
becomes the address of the script: workers that are modules do not start in a page that is a file, either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|const|let|class) (\w+))", re.MULTILINE)
EXPORT_LIST = re.compile(r"^export \{([^}]*)\};\n", re.MULTILINE)


def bundle(entry: Path, given: Mapping[str, str | Path]) -> str:
    """Return the script of a module and all that it imports; `given` names texts of modules, or files, by what imports call them."""
    done: dict[str, str] = {}  # text of each module, after those that it imports
    _add(_key(entry), entry, given, done, ())
    return "(() => {\nconst modules = {};\n" + "".join(done.values()) + "})();\n"


def constants(**values: object) -> str:
    """Return the text of a module that exports some values."""
    return "".join(
        f"export const {name} = {json.dumps(value, ensure_ascii=False)};\n" for name, value in values.items()
    )


def _key(path: Path) -> str:
    """Return the name of a module: its file and folder, and nothing of the machine."""
    return f"{path.parent.name}/{path.name}"


def _add(
    key: str, source: str | Path, given: Mapping[str, str | Path], done: dict[str, str], above: tuple[str, ...]
) -> None:
    if key in above:
        raise ValueError(f"modules import each other in a circle: {' -> '.join([*above, key])}")
    if key in done:
        return
    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source

    def imported(found: re.Match[str]) -> str:
        names, module = found.groups()
        where = given.get(module) or (source.parent / module if isinstance(source, Path) else Path(module))
        inner = _key(where) if isinstance(where, Path) else module
        _add(inner, where, given, done, (*above, key))
        return f"const {{{names.replace(' as ', ': ')}}} = modules[{json.dumps(inner)}];\n"

    text = IMPORT.sub(imported, text)
    exported = [name for _, name in EXPORT.findall(text)]
    exported += [name.strip() for names in EXPORT_LIST.findall(text) for name in names.split(",")]
    text = text.replace("import.meta.url", "location.href")
    text = EXPORT_LIST.sub("", EXPORT.sub(r"\1", text))
    done[key] = f"modules[{json.dumps(key)}] = (() => {{\n{text}return {{ {', '.join(exported)} }};\n}})();\n"
