"""The rooms of the core: who may include whom, what a room may hold, and how large a file may be."""

from __future__ import annotations

import graphlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "cpp" / "include" / "hockeystick"
HEADERS = sorted(CORE.glob("*/*.hpp"))
DOORS = {"hockeystick.hpp", "accountant.hpp", "dpsgd.hpp", "pld.hpp", "c_api.h", "version.hpp"}

LAYERS = {  # room -> rooms it may include; a room stands below those that may include it
    "numeric": "",
    "divergence": "numeric",
    "simd": "numeric divergence",
    "loss": "numeric divergence",
    "allocation": "numeric divergence loss",
    "cumulant": "numeric divergence simd",
    "hidden_state": "numeric divergence simd",
    "chain": "numeric divergence",
    "mechanism": "numeric divergence loss cumulant",
    "contour": "numeric divergence simd cumulant mechanism",
    "pld": "numeric divergence loss",
    "release": "numeric divergence loss allocation cumulant mechanism pld",
    "federated": "numeric divergence hidden_state",
    "accounting": "numeric divergence loss simd mechanism contour pld release",
}


def included(header):
    """Return the (room, file) pairs that a header includes."""
    return re.findall(r"#include <hockeystick/(\w+)/(\w+)\.hpp>", header.read_text(encoding="utf-8"))


def name_of(header):
    """Return room/file of a header, without its suffix."""
    return header.relative_to(CORE).with_suffix("").as_posix()


def test_rooms_are_the_listed_ones():
    """Every folder of the core stands in LAYERS, and every room of LAYERS exists."""
    assert {path.name for path in CORE.iterdir() if path.is_dir()} == set(LAYERS)


@pytest.mark.parametrize("room", LAYERS)
def test_rooms_include_downwards(room):
    """A header includes its own room and those that LAYERS allows it, which all stand before it."""
    allowed = set(LAYERS[room].split())
    used = {other for header in (CORE / room).glob("*.hpp") for other, _ in included(header)} - {room}
    assert used <= allowed
    order = list(LAYERS)
    assert all(order.index(other) < order.index(room) for other in allowed)


def test_no_circles():
    """No header includes itself, however far the way."""
    graph = {name_of(header): {f"{room}/{file}" for room, file in included(header)} for header in HEADERS}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_only_doors_at_the_root():
    """Whoever embeds the core finds doors at its root, and nothing else."""
    assert {path.name for path in CORE.iterdir() if path.is_file()} == DOORS


@pytest.mark.parametrize("header", HEADERS, ids=name_of)
def test_a_header_lives_in_its_room(header):
    """A header's namespace is its folder, and its instruction set's namespace lies inside."""
    if header.stem == "registry":  # includes alone
        return
    text = header.read_text(encoding="utf-8")
    assert re.search(rf"^namespace hockeystick::{header.parent.name} {{$", text, re.MULTILINE)
    assert not re.search(r"^namespace (?!hockeystick::)\w*detail", text, re.MULTILINE)


@pytest.mark.parametrize("header", sorted((CORE / "simd").glob("*.hpp")), ids=name_of)
def test_simd_room_is_bare(header):
    """What is compiled once per instruction set allocates nothing: its weak symbols could be merged by the linker."""
    assert not re.search(r"std::(vector|shared_ptr|unique_ptr|string)|\bnew \w|\bvirtual\b", header.read_text("utf-8"))


def test_instruction_set_is_named_in_one_place():
    """Only the kernels' build says which instruction set it compiles for."""
    users = [path for path in (ROOT / "cpp").rglob("*.?pp") if "define HOCKEYSTICK_ISA" in path.read_text("utf-8")]
    assert [path.name for path in users] == ["version.hpp"]


@pytest.mark.parametrize("header", HEADERS, ids=name_of)
def test_margins_have_names(header):
    """No bare 2^-40 to 2^-59 stands outside numeric/rounding.hpp, where each has its reason."""
    if name_of(header) in ("numeric/rounding", "numeric/coefficients"):
        return
    assert not re.search(r"0x1p-[45]\d\b", re.sub(r"//.*", "", header.read_text(encoding="utf-8")))


def test_a_mechanism_is_one_file():
    """The class of a pair is named in its own header, where another builds on it, in the registry, the bindings and C."""
    for header in (CORE / "mechanism").glob("*.hpp"):
        for name in re.findall(r"^class (\w+) final : public Pair", header.read_text(encoding="utf-8"), re.MULTILINE):
            users = {
                path.relative_to(ROOT / "cpp").as_posix()
                for path in (ROOT / "cpp").rglob("*.?pp")
                if re.search(rf"\b(mechanism::{name}|{name}::of_shift|make_shared<{name}>)\b", path.read_text("utf-8"))
            }
            rooms = (
                "include/hockeystick/mechanism/",
                "include/hockeystick/release/",
            )  # pairs, and what is made of them
            outside = {user for user in users if not user.startswith(rooms)}
            assert outside <= {"bindings/bind_mechanism.cpp", "src/c_api_mechanisms.cpp", *USERS_OF.get(name, ())}, name


USERS_OF = {"Gaussian": ("include/hockeystick/accounting/steps.hpp", "include/hockeystick/accounting/closed_forms.hpp")}
