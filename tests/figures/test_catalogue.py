"""The list of figures: names, files, and what is said when something is missing."""

import csv
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import drawn_figures
import processes
from hockeystick import figures
from hockeystick.cli import main
from hockeystick.figures.table import stacked

NAMES = [entry.name for entry in figures.catalogue()]
PACKAGE = Path(figures.__file__).parents[2]


def test_names_are_the_papers() -> None:
    """A name is used once, by papers that have figures; all numbered ones with something to compute are there."""
    assert len(set(NAMES)) == len(NAMES)
    numbered = {"000/2", "003/1", "003/2", "002/2", "002/3", *(f"003/{n}" for n in range(3, 10)), "004/2", "004/3"}
    assert numbered <= set(NAMES)
    assert {f"004/table-{n}" for n in (1, 3, 4, 6, 7)} <= set(NAMES)


@pytest.mark.parametrize("names", [[], ["list"]], ids=str)
def test_command_lists_all(capsys: pytest.CaptureFixture[str], names: list[str]) -> None:
    """Without the name of a figure, or with the word list, each figure has its line, with the paper, the seconds, what it shows, and what stands in for its data."""
    assert main(["figures", *names]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    for line, entry in zip(lines, figures.catalogue(), strict=True):
        assert all(word in line for word in (entry.paper, f"{entry.seconds} s", entry.shows, entry.data))
        assert ("needs the extra data" in line) == bool(entry.data)


@pytest.mark.parametrize(
    ("wrong", "meant"), [("002/22", "002/2"), ("004/table6", "004/table-6"), ("table-1", "004/table-1"), ("", None)]
)
def test_unknown_names_get_the_nearest(wrong: str, meant: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that does not exist is refused with the one that is nearest, as wrong usage; to an empty one all are as near."""
    with pytest.raises(ValueError, match=re.escape(f"not {wrong!r}; did you mean '")):
        figures.find(wrong)
    assert main(["figures", wrong]) == 2
    told = capsys.readouterr().err
    assert told.startswith("hockeystick figures: name must be one of those that `hockeystick figures` lists")
    if meant:
        assert f"did you mean {meant!r}?" in told


def test_all_names_are_checked_first(tmp_path: Path) -> None:
    """Nothing is computed for a command with a wrong name in it."""
    assert main(["figures", "004/3", "nonsense", "-o", str(tmp_path)]) == 2
    assert not list(tmp_path.iterdir())


def test_runs_are_counts() -> None:
    """Repetitions are an integer of at least 1."""
    with pytest.raises(ValueError, match=r"runs must be an integer in \[1, \d+\], not 0"):
        figures.find("003/4").table(runs=0)


@pytest.mark.slow
def test_command_from_elsewhere(tmp_path: Path) -> None:
    """In a folder without the checkout, the command writes data and pictures, the same bytes in every process."""
    environment = {"PYTHONPATH": str(PACKAGE), "PATH": "", "MPLCONFIGDIR": str(tmp_path / "config")}
    command = [sys.executable, "-m", "hockeystick", "figures", "004/3", "-o", "first"]
    told = processes.run(command, cwd=tmp_path, env=environment)
    assert told.stdout.splitlines() == [str(Path("first") / f"004-3.{kind}") for kind in ("csv", "png", "svg")]
    assert "the four schedules" in told.stderr
    for path in figures.write(figures.find("004/3"), tmp_path / "second"):
        if path.suffix != ".png":
            assert path.read_bytes() == (tmp_path / "first" / path.name).read_bytes()
    assert b"<svg" in (tmp_path / "first" / "004-3.svg").read_bytes()


ELSEWHERE = {  # whose tests have their tables: those of test_data and test_experiments
    *("000/2", "002/every-round-regions"),
    *(f"003/{number}" for number in range(4, 10)),
    *("004/2", "004/2-network", "004/table-7", "004/table-7-network", "004/table-6"),
}


@pytest.mark.share(6)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ELSEWHERE])
def test_picture_has_ink(name: str) -> None:
    """A picture has ink that is neither all there is nor a speck."""
    pytest.importorskip("matplotlib")
    drawn_figures.check(name, figures.find(name).table())


def test_without_matplotlib_the_data_remain(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without Matplotlib the tables are written, all that were asked for, and the pictures ask for the extra."""
    for name in [name for name in sys.modules if name.startswith(("matplotlib", "hockeystick.plot"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["figures", "002/3", "004/3", "-o", str(tmp_path)]) == 1
    assert 'pip install ".[plot]" in a clone' in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["002-3.csv", "004-3.csv"]


def test_csv_is_the_table(tmp_path: Path) -> None:
    """The file has the units in its first line and gives every number back as it was; what is no number is an empty cell."""
    curves = [
        {"curve": "a", "epsilon": np.array([0.1, 1 / 3]), "delta": [1e-300, np.nan]},
        {"curve": "b", "epsilon": 2.0, "delta": 1},
    ]
    table = stacked("two curves", {"epsilon": "nats"}, curves, "sigma = 1")
    table.to_csv(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        title, header, *rows = csv.reader(file)
    assert title == ["# two curves; sigma = 1"]
    assert header == ["curve", "epsilon [nats]", "delta"]
    assert rows == [["a", "0.1", "1e-300"], ["a", repr(1 / 3), ""], ["b", "2.0", "1.0"]]
    assert [name for name, _ in table.groups("curve")] == ["a", "b"]
    assert table.where(curve="a", epsilon=0.1)["delta"].tolist() == [1e-300]
