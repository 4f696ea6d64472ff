"""The trees of tests and pages follow the rooms of the code: what a formula is held against is found by its path."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS, DOCS = ROOT / "tests", ROOT / "docs"
CORE, PACKAGE = ROOT / "cpp" / "include" / "hockeystick", ROOT / "python" / "hockeystick"

CPP_ROOMS = {path.name for path in CORE.iterdir() if path.is_dir()}
PYTHON_ROOMS = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
HEADERS = sorted(path.relative_to(CORE).with_suffix("").as_posix() for path in CORE.glob("*/*.hpp"))

NO_ROOMS = {  # folders of tests that follow no room, and why
    "embed": "the downstream project that tests/embedding builds",
    "embedding": "calls from C, C++, Cython and numba, through the doors",
    "explorer": "the page of the site that computes in a browser",
    "project": "the repository itself: style, pages, figures, workflows",
    "reference": "exact formulas, tables and helpers, which the tests share",
    "show": "what people look at: plot, report and cli",
    "first_ten_minutes": "what an engineer, a planner and a researcher do with README.md alone",
    "wasm": "the npm package, from Node",
    "storms": "processes and threads that work at random and are killed, and what starts and ends them",
}
TESTED_IN = {  # rooms without a folder of tests, and the folder where they are tested
    "_checks": "mechanisms",
    "_files": "sweep",
    "_hidden_states": "hidden_state",
    "_numeric": "numeric",
    "_statements": "training",
    "cli": "show",
    "cumulant": "contour",
    "last_iterate": "hidden_state",
    "mechanism": "mechanisms",
    "plot": "show",
    "report": "show",
    "release": "mechanisms",
    "simd": "contour",
}
TESTED_BY = {  # files of tests, and the headers of their room that they test, beside the one of the same name
    "accounting/test_accounting": "accountant",
    "accounting/test_engine": "closed_answers closed_forms directed_contours question steps warm_steps",
    "accounting/test_rare_jumps": "bulk_curve gaussian_jumps",
    "accounting/test_renyi": "renyi_cap",
    "allocation/test_any_step": "outcome_counts outcome_labels ratio_law",
    "allocation/test_random_allocation": "lattice_law lattice_sum log_normal_law",
    "allocation/test_replaced_records": "replaced_sums",
    "chain/test_markov": (
        "chain_errors density_contrast gaussian_chain gaussian_mixture_divergence gaussian_transition laplace_chain "
        "laplace_mixture_divergence mixture panels projected_kernel scalar_chain scalar_map"
    ),
    "contour/test_contour": (
        "alias_error chernoff ledger_contour line_bracket line_choice line_grid line_sum result strategy truncated_ledger "
        "truncations"
    ),
    "contour/test_contour_cache": "node_cache",
    "contour/test_sliced_contour": "slice_bounds slice_plan slice_sum",
    "hidden_state/test_contraction": "contraction_sum",
    "hidden_state/test_joint": "cell_measure chord_curve sampled_round shifted_round",
    "hidden_state/test_last_iterate": "loss_curve projected_sgd",
    "hidden_state/test_repeated": (
        "bounds cyclic_bounds cyclic_shift participation_patterns projected_sgd_bounds random_participation_bounds split_noise"
    ),
    "hidden_state/test_shifted_interpolation": "shift_certificate",
    "loss/test_mechanism": "bounded_range discrete discrete_gaussian fixed_size_sampled gaussian gaussian_mixture labelled laplace poisson_sampled privacy_loss",
    "loss/test_replaced_loss": "replaced_gaussian",
    "numeric/test_gaussian_tail": "elementary",
    "pld/test_composition": "composed_pair read_off tilted_composition tilted_step",
    "pld/test_grid_plan": "cumulant_sketch discretise grid_limits sparse_convolution spectrum_power",
}
TESTED_ELSEWHERE = {  # headers that no file of their own room's tests holds against anything, and what does
    "accounting/compiled": "embedding/test_embed: the bits of the headers, for every mechanism of accountant.hpp",
    "allocation/mean_moments": "loss/test_curve_integral: multinomial expansions",
    "cumulant/*": "contour/test_contour: nodes and moments against thirty digits; they are the contour's integrand",
    "simd/gaussian_inverses": "divergence/test_inverse_steps: lanes against each other and against mpmath",
    "divergence/chernoff": "contour/test_contour: tails that no line reaches",
    "federated/published_fedavg": "published/test_published: printed formulas",
    "federated/trusted_aggregator_bounds": "hidden_state/test_repeated: chains by quadrature",
    "loss/pure": "accounting/test_revealed: pure steps at their own epsilon, and compositions against all outcomes",
    "loss/replaced_laplace": "contour/test_atoms: one step and two against integrals over the line",
    "numeric/binomial": "hidden_state/test_repeated: records drawn at random",
    "numeric/blocked_dot": "chain/test_markov: chains against quadrature",
    "mechanism/*": "mechanisms/test_specification: what every mechanism must satisfy; loss: the losses of its pairs",
    "numeric/coefficients": "project/test_codebase: the script that writes them writes the same",
    "numeric/compensated_sum": "pld/test_composition: brackets that hold exact values",
    "numeric/domain": "every test of what is refused",
    "numeric/feasible_search": "accounting/test_calibration: the feasible end",
    "numeric/fft": "pld/test_grid_plan: round trips against their bound",
    "numeric/gauss_legendre": "chain/test_markov: integrals by its nodes",
    "numeric/interval": "contour/test_contour and pld/test_composition: brackets",
    "numeric/log_arithmetic": "divergence/test_hockey_stick: logarithms of theta",
    "numeric/parallel": "contour/test_contour_cache: threads, and hidden_state/test_extremes: Ctrl-C",
    "numeric/require": "every test of what is refused",
    "numeric/root": "divergence/test_hockey_stick_inverse: roots, judged by the function at them",
    "numeric/rounding": "loss/test_one_step: ends that enclose exact values, closely",
    "numeric/scaled": "hidden_state/test_extremes: products whose factors leave the doubles",
    "numeric/work_budget": "accounting/test_fuzz: bounded work on every cell",
    "numeric/double_double": "mechanisms/test_gaussian_mixture: the share that moves is rounded up",
    "release/*": "mechanisms/test_sampling, test_composed, test_profile_bounds, test_shuffled, test_gaussian_mixture and test_truncated_sampling",
    "simd/*": "divergence/test_hockey_stick: all instruction sets; contour/test_contour: sums against thirty digits",
}
TABLED = {f"{file.split('/')[0]}/{word}" for file, words in TESTED_BY.items() for word in words.split()}


def test_folders_are_rooms() -> None:
    """A folder of tests has the name of a room of the core or of the package, or stands in the table."""
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))}
    assert folders - CPP_ROOMS - PYTHON_ROOMS == set(NO_ROOMS)


def test_rooms_have_folders() -> None:
    """A room has a folder of tests, or stands in the table with the one where it is tested."""
    without = {room for room in CPP_ROOMS | PYTHON_ROOMS if not (TESTS / room).is_dir()}
    assert without == set(TESTED_IN)
    assert all((TESTS / folder).is_dir() for folder in TESTED_IN.values())


@pytest.mark.parametrize("header", HEADERS)
def test_headers_are_tested(header: str) -> None:
    """ROOM/NAME.hpp is tested by tests/ROOM/test_NAME.py, by a file of the first table, or by what the second says."""
    room, name = header.split("/")
    assert (TESTS / room / f"test_{name}.py").exists() or {header, f"{room}/*"} & (TABLED | set(TESTED_ELSEWHERE)), (
        f"add tests/{room}/test_{name}.py, or {name} to a line of TESTED_BY"
    )


def test_tables_are_needed() -> None:
    """The tables name headers and files that are there."""
    assert TABLED.issubset(HEADERS)
    assert {header for header in TESTED_ELSEWHERE if "*" not in header} <= set(HEADERS)
    files = {*TESTED_BY, *re.findall(r"\w+/test_\w+", " ".join(TESTED_ELSEWHERE.values()))}
    assert not [file for file in files if not (TESTS / f"{file}.py").exists()]


@pytest.mark.parametrize("room", sorted(room for room in PYTHON_ROOMS if not room.startswith("_")))
def test_public_rooms_have_a_page(room: str) -> None:
    """The table of docs/index.md has a line for every public room, with a page that is there."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if re.match(rf"\| [^|]*`{room}`", line)]
    assert len(lines) == 1
    pages = re.findall(r"\]\(([\w/]+\.md)\)", lines[0])
    assert pages
    assert all((DOCS / page).exists() for page in pages)


def test_pages_are_listed_once() -> None:
    """Every page stands in the contents of docs/index.md, once: by its name, or by that of its folder."""
    contents = "".join(
        re.findall(r"```{toctree}\n(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), re.DOTALL)
    )
    listed = re.findall(r"^(?:.* <)?(\w+/(?:\w+|\*))>?$", contents, re.MULTILINE)
    pages = [page for entry in listed for page in DOCS.glob(f"{entry}.md")]
    assert sorted(pages) == sorted(DOCS.glob("*/*.md"))
