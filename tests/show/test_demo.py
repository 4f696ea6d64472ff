"""The demo: what it prints is ordered as it says, and it draws a picture."""

import re
import sys

import numpy as np
import pytest

from hockeystick.cli import demo


def test_certified_is_between_exact_and_nothing_else():
    """The certified values are never below the exact ones; the printed theorem is, from two rounds on."""
    fedavg, hidden = demo.compare_fedavg(), demo.compare_last_iterate()
    for found in (fedavg, hidden):
        assert np.all(found.certified >= found.exact * (1 - 1e-10))
    assert np.all(fedavg.published[1:] < fedavg.exact[1:])
    assert np.all(hidden.published >= hidden.certified)


def test_it_prints_and_draws(tmp_path, written):
    """The command prints its tables and the count of the cells, and leaves a picture that is not blank."""
    image = pytest.importorskip("matplotlib.image")
    printed = written(f"demo -o {tmp_path}/demo.png")
    assert re.search(r"1,000,000 certified epsilons of Noisy-FedAvg in \d+\.\d+ s", printed)
    assert len(re.findall(r"^ +\d+( +[\d.e-]+){3}$", printed, re.MULTILINE)) == 2 * demo.SHOWN
    assert image.imread(tmp_path / "demo.png")[..., :3].std() > 0.05


def test_without_matplotlib_the_tables_remain(monkeypatch, tmp_path, run):
    """Without Matplotlib the numbers are printed, and the picture asks for the extra."""
    for name in [name for name in sys.modules if name.startswith(("matplotlib", "hockeystick.plot"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = run(f"demo -o {tmp_path}/demo.png")
    assert told.code == 1
    assert "certified epsilons" in told.out
    assert 'pip install ".[plot]" in a clone' in told.err
