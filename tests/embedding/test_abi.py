"""The binary interface of the C library, against the record of each ABI version in abi/.

The record has what a compiled program relies on: functions with the types of their arguments, constants, and the sizes and
offsets of structures. A change other than a new function or constant breaks programs, so it needs the next HS_ABI_VERSION and a
new record, which ``python tests/embedding/test_abi.py`` prints.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

import compiled
import processes

ROOT = Path(__file__).parents[2]
INCLUDE = ROOT / "cpp" / "include"
HEADER = INCLUDE / "hockeystick" / "c_api.h"
RECORDS = Path(__file__).parent / "abi"


def code():
    """Return the header without comments and the preprocessor's lines, in one line."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    return re.sub(r"[ \n]+", " ", text)


def functions():
    """Return the prototypes, without the names of their arguments, which no binary has."""
    found = compiled.prototypes(HEADER)
    return sorted(
        f"{result} {name}({', '.join(map(compiled.type_of, arguments))})" for name, (result, arguments) in found.items()
    )


def constants():
    """Return the names of the constants, each of which is a number."""
    return re.findall(r"#define (HS_\w+) \d+", HEADER.read_text(encoding="utf-8"))


def structures():
    """Return the members of every structure whose layout is public."""
    return {
        name: [
            member.strip() for member in members.replace("double", "").replace(";", ",").split(",") if member.strip()
        ]
        for members, name in re.findall(r"typedef struct \{([^}]*)\} (\w+);", code())
    }


def layouts(folder):
    """Return constants, sizes and offsets, as a compiled C program sees them."""
    prints = [f'printf("{name} = %d\\n", (int){name});' for name in constants()]
    prints += [f'printf("sizeof({name}) = %d\\n", (int)sizeof({name}));' for name in ("hs_status", *structures())]
    for name, members in structures().items():
        prints += [f'printf("{name}.{at} at %d\\n", (int)offsetof({name}, {at}));' for at in members]
    source, program = folder / "layout.c", folder / "layout"
    body = "\n    ".join(prints)
    source.write_text(
        f"#include <stdio.h>\n#include <hockeystick/c_api.h>\nint main(void) {{\n    {body}\n    return 0;\n}}\n",
        encoding="utf-8",
    )
    processes.run(["cc", "-std=c99", "-Wall", "-Werror", f"-I{INCLUDE}", source, "-o", program], limit=60)
    return processes.run([program], limit=10).stdout.splitlines()


def record_of_this_version():
    """Return the file of the header's own ABI version."""
    (version,) = re.findall(r"#define HS_ABI_VERSION (\d+)", HEADER.read_text(encoding="utf-8"))
    return RECORDS / f"{version}.txt"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_interface_is_the_recorded_one(tmp_path):
    """Nothing that the record of this version promises has changed, and what is new is recorded."""
    recorded = record_of_this_version().read_text(encoding="utf-8").splitlines()
    assert [*layouts(tmp_path), *functions()] == recorded


def test_records_are_of_all_versions():
    """There is a record for every version up to the header's."""
    versions = sorted(int(path.stem) for path in RECORDS.glob("*.txt"))
    assert versions == list(range(1, int(record_of_this_version().stem) + 1))


def test_prototypes_are_read_whole():
    """The reading of the header drops names of arguments, and no type."""
    assert "double hs_theta(double, double)" in functions()
    assert "void hs_mechanism_free(hs_mechanism*)" in functions()
    assert "hs_status hs_theta_batch(const double*, const double*, double*, size_t)" in functions()
    assert len(functions()) == HEADER.read_text(encoding="utf-8").count("\nHS_API ")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write("\n".join([*layouts(Path(folder)), *functions()]) + "\n")
