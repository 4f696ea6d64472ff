"""The figure scripts of docs/figures, run as a reader would run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

image = pytest.importorskip("matplotlib.image")

SCRIPTS = Path(__file__).parents[2] / "docs" / "figures"
PICTURES = {
    "fedavg_refutation": ["fedavg_refutation"],
    "hidden_states": [
        "hidden_states_bounds",
        "hidden_states_every_round",
        "hidden_states_every_round_regions",
        "hidden_states_regions",
    ],
    "isrl_experiments": ["isrl_experiments"],
    "sensitivity_study": ["sensitivity_study"],
    "projected_sgd": ["projected_sgd_figure_2", "projected_sgd_figure_3"],
    "trusted_aggregator": ["trusted_aggregator_figure_2"],
}


def run_script(name: str, *arguments: str) -> None:
    """Run one script as `python docs/figures/NAME.py`."""
    subprocess.run([sys.executable, SCRIPTS / f"{name}.py", *arguments], check=True, timeout=120)


def test_every_script_is_tested() -> None:
    """Each script in the folder has its pictures listed above."""
    assert {path.stem for path in SCRIPTS.glob("*.py")} - {"style"} == set(PICTURES)


@pytest.mark.parametrize("name", PICTURES)
def test_script_draws_its_pictures(name: str, tmp_path: Path) -> None:
    """A script writes its pictures and nothing else, with ink on them that is neither all there is nor a speck."""
    run_script(name, "-o", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{picture}.png" for picture in PICTURES[name]]
    for path in tmp_path.iterdir():
        pixels = image.imread(path)[..., :3]
        assert min(pixels.shape[:2]) >= 600
        coloured = pixels.max(axis=2) - pixels.min(axis=2) > 0.2  # curves, not axes or letters
        assert 0.002 < coloured.mean() < 0.2


def test_svg_is_reproducible(tmp_path: Path) -> None:
    """With --svg a picture is written as SVG too, the same bytes every time, into a folder that need not exist."""
    for folder in ("first", "second"):
        run_script("trusted_aggregator", "--svg", "-o", str(tmp_path / folder))
    first, second = (
        (tmp_path / folder / "trusted_aggregator_figure_2.svg").read_bytes() for folder in ("first", "second")
    )
    assert first == second
    assert b"<svg" in first
