"""What several tests of sweeps begin with: a finished table, and functions that are registered for a test."""

import sys
import types

import pytest

from hockeystick.sweep import functions, run
from sweep_plans import THETA, content


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """Return the directory of a finished run of `THETA`, which no test changes."""
    pytest.importorskip("pyarrow")
    out = tmp_path_factory.mktemp("finished") / "out"
    run(THETA, out)
    return out


@pytest.fixture(scope="session")
def whole(finished):
    """Return the files of the finished run."""
    return content(finished)


@pytest.fixture
def register(monkeypatch):
    """Return what registers a function for a test, as `testing.` and its name."""
    module = types.ModuleType("hockeystick_stand_in")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def registered(function):
        setattr(module, function.__name__, function)
        row = functions.Registered(module.__name__)
        monkeypatch.setitem(functions.REGISTERED, f"testing.{function.__name__}", row)

    return registered
