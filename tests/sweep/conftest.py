"""What several tests of sweeps begin with: a finished table, and functions that are registered for a test."""

import sys
import types

import pytest

from hockeystick.sweep import functions, run
from sweep_plans import THETA, content


@pytest.fixture(scope="session")
def done(tmp_path_factory):
    """Return a function that returns the directory of a finished run of a plan, which no test changes."""
    pytest.importorskip("pyarrow")
    made = {}

    def out(plan):
        if repr(plan) not in made:
            made[repr(plan)] = tmp_path_factory.mktemp("done") / "out"
            run(plan, made[repr(plan)], num_threads=1)
        return made[repr(plan)]

    return out


@pytest.fixture(scope="session")
def finished(done):
    """Return the directory of a finished run of `THETA`."""
    return done(THETA)


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
