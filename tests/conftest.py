"""Settings that all tests share."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import processes

# The same examples in every run, so that a red run tells of a change; no deadline and no health check, since a shared machine may
# pause any example and deep tails discard many. HOCKEYSTICK_EXAMPLES asks for more of them, HOCKEYSTICK_RANDOM, a number, for new ones.
hypothesis.settings.register_profile(
    "hockeystick",
    deadline=None,
    derandomize="HOCKEYSTICK_RANDOM" not in os.environ,
    max_examples=int(os.environ.get("HOCKEYSTICK_EXAMPLES", "25")),
    suppress_health_check=[hypothesis.HealthCheck.filter_too_much, hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("hockeystick")


def compiled_loops() -> str:
    """Return the folder where numba keeps the simulator's loops, for all workers and children; other sources, another folder.

    Beside the package, numba would find what it made of the version installed before, and fail where a class has another name.
    """
    spec = importlib.util.find_spec("hockeystick")
    assert spec is not None, "hockeystick is not installed"
    assert spec.origin is not None
    sources = sorted((Path(spec.origin).parent / "simulate").rglob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    return str(Path(__file__).parents[1] / ".pytest_cache" / f"numba-{digest[:12]}")


os.environ.setdefault("NUMBA_CACHE_DIR", compiled_loops())

LONG = 5.0  # seconds; a test that takes longer on a quiet machine should be marked slow, or made quick
HANGS = 900.0  # seconds after which a test is ended, whatever it waits for


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let no test wait for ever."""
    if config.pluginmanager.hasplugin("timeout"):
        for item in items:
            item.add_marker(pytest.mark.timeout(processes.seconds(HANGS)))


def too_long(reporter: Any) -> Iterator[str]:
    """Yield the tests without the mark that took longer than they should."""
    for report in reporter.getreports("passed"):
        if report.when == "call" and report.duration > processes.seconds(LONG) and "slow" not in report.keywords:
            yield f"{report.duration:6.1f} s  {report.nodeid}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name the tests that took long, which on a busy machine means nothing."""
    if found := sorted(too_long(terminalreporter), reverse=True):
        terminalreporter.section(f"not marked slow, and longer than {processes.seconds(LONG):g} s")
        terminalreporter.write_line("\n".join(found))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail for a test that took long, if the machine is said to be quiet by HOCKEYSTICK_STRICT_TIME."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("HOCKEYSTICK_STRICT_TIME") and reporter and any(too_long(reporter)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
