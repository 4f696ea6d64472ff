"""Settings that all tests share."""

import contextlib
import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest

import effort
import processes

try:
    import fcntl
except ImportError:  # on Windows each worker compiles for itself
    fcntl = None

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


def compiled_loops():
    """Return the folder where numba keeps the simulator's loops, for all workers and children; other sources, another folder.

    Beside the package, numba would find what it made of the version installed before, and fail where a class has another name.
    """
    spec = importlib.util.find_spec("hockeystick")
    assert spec is not None, "hockeystick is not installed"
    sources = sorted((Path(spec.origin).parent / "simulate").rglob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    return str(Path(__file__).parents[1] / ".pytest_cache" / f"numba-{digest[:12]}")


os.environ.setdefault("NUMBA_CACHE_DIR", compiled_loops())

LONG = 5.0  # seconds; a test that takes longer on a quiet machine should be marked slow, or made quick
HANGS = 900.0  # seconds after which a test is ended, whatever it waits for


COMPILING = """
from hockeystick import simulate
problem = simulate.synthetic("logistic", sizes=[3, 3], num_features=2, seed=1)
algorithm = simulate.NoisyFedAvg(learning_rate=0.1, local_steps=2, clip_norm=1.0, noise_std=0.1)
for threads in (1, 2):  # runs, and clients that share them
    simulate.run(algorithm, problem, rounds=1, seed=1, num_threads=threads).loss()
"""
COMPILED = ("simulate", "test_experiments", "test_trainings")  # in the names of tests that run these loops
CHILDREN = contextlib.ExitStack()


def runs_loops(item):
    """Say whether a test runs the simulator's compiled loops."""
    return any(name in item.nodeid for name in COMPILED)


def pytest_collection_finish(session):
    """Let a child of the first worker compile the simulator's loops, which takes a minute, while other tests run."""
    worker = getattr(session.config, "workerinput", {}).get("workerid")
    if worker == "gw0" and fcntl is not None and any(map(runs_loops, session.items)):
        folder = Path(os.environ["NUMBA_CACHE_DIR"])
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "compiling").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # which the child keeps until it ends
            pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "pass_fds": [lock.fileno()]}
            CHILDREN.enter_context(processes.child([sys.executable, "-c", COMPILING], **pipes))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Let the simulator's tests wait for its loops, rather than compile them once a worker."""
    lock = Path(os.environ["NUMBA_CACHE_DIR"], "compiling")
    if fcntl is not None and runs_loops(item) and lock.exists():
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)


@pytest.hookimpl(tryfirst=True)  # before cases are chosen by their marks
def pytest_collection_modifyitems(config, items):
    """Leave all but a share of long tables to the slow stage, and let no test wait for ever."""
    for item in items:
        if share := item.get_closest_marker("share"):
            for mark in effort.marks_of_a_share(item, *share.args, **share.kwargs):
                item.add_marker(mark)
        if config.pluginmanager.hasplugin("timeout"):
            item.add_marker(pytest.mark.timeout(processes.seconds(HANGS)))


def too_long(reporter):
    """Yield the tests without the mark that took longer than they should."""
    for report in reporter.getreports("passed"):
        if report.when == "call" and report.duration > processes.seconds(LONG) and "slow" not in report.keywords:
            yield f"{report.duration:6.1f} s  {report.nodeid}"


def pytest_terminal_summary(terminalreporter):
    """Name the tests that took long, which on a busy machine means nothing."""
    if found := sorted(too_long(terminalreporter), reverse=True):
        terminalreporter.section(f"not marked slow, and longer than {processes.seconds(LONG):g} s")
        terminalreporter.write_line("\n".join(found))


def pytest_sessionfinish(session):
    """End what compiles; fail for a test that took long, if the machine is said to be quiet by HOCKEYSTICK_STRICT_TIME."""
    CHILDREN.close()
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("HOCKEYSTICK_STRICT_TIME") and reporter and any(too_long(reporter)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
