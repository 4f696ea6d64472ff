"""The figure scripts of docs/figures: each draws its pictures, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import processes

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
# Runs each script as `python docs/figures/NAME.py -o OUT/NAME` would, but imports what they share once.
RUN_ALL = """
import runpy, sys
from pathlib import Path
scripts, out, *names = sys.argv[1:]
sys.path.insert(0, scripts)
for name in names:
    sys.argv = [f"{name}.py", "-o", str(Path(out) / name)]
    runpy.run_path(str(Path(scripts) / f"{name}.py"), run_name="__main__")
"""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the pictures of each script in a folder of its name."""
    out = tmp_path_factory.mktemp("figures")
    processes.python(RUN_ALL, SCRIPTS, out, *PICTURES, limit=600)
    return out


def test_every_script_is_tested() -> None:
    """Each script in the folder has its pictures listed above."""
    assert {path.stem for path in SCRIPTS.glob("*.py")} - {"style"} == set(PICTURES)


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_script_draws_its_pictures(name: str, drawn: Path) -> None:
    """A script writes its pictures and nothing else, with ink on them that is neither all there is nor a speck."""
    assert sorted(path.name for path in (drawn / name).iterdir()) == [f"{picture}.png" for picture in PICTURES[name]]
    for path in (drawn / name).iterdir():
        pixels = image.imread(path)[..., :3]
        assert min(pixels.shape[:2]) >= 600
        coloured = pixels.max(axis=2) - pixels.min(axis=2) > 0.2  # curves, not axes or letters
        assert 0.002 < coloured.mean() < 0.2


@pytest.mark.slow
def test_svg_is_reproducible(tmp_path: Path) -> None:
    """Run as a reader would, with --svg, a script writes the same bytes every time, into a folder that need not exist."""
    for folder in ("first", "second"):
        processes.run([sys.executable, SCRIPTS / "trusted_aggregator.py", "--svg", "-o", tmp_path / folder])
    first, second = (
        (tmp_path / folder / "trusted_aggregator_figure_2.svg").read_bytes() for folder in ("first", "second")
    )
    assert first == second
    assert b"<svg" in first
