"""What the grids of DP-SGD keep between calls changes no answer, in no thread and no fork, and stays small."""

import concurrent.futures
import os
import sys
import textwrap

import numpy as np
import pytest

import hockeystick as hs
import processes
from hockeystick import _core

CELLS = [
    (sigma, rate, steps, delta)
    for sigma, rate in [(1.0, 0.01), (0.7, 0.2), (3.0, 0.001)]
    for steps in (3, 40, 1000, 50_000)
    for delta in (1e-12, 1e-5, 0.2)
]


def alone(cell):
    """Return epsilon from an engine that has seen nothing and is forgotten."""
    return _core.dpsgd_epsilon_work(*cell)[0]


@pytest.fixture(scope="module")
def truth():
    """Return what each cell says when it is asked alone."""
    return [alone(cell) for cell in CELLS]


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
def test_no_answer_depends_on_what_was_asked_before(truth):
    """Cell by cell in any order, then all in one call, epsilon is the same bit for bit as asked alone."""
    for seed in range(3):
        for k in np.random.default_rng(seed).permutation(len(CELLS)):
            assert hs.dpsgd_epsilon(*CELLS[k]) == truth[k]
    for threads in (1, 2):
        np.testing.assert_array_equal(hs.dpsgd_epsilon(*np.transpose(CELLS), num_threads=threads), truth)
    steps, eps = (a.ravel() for a in np.meshgrid([2.0, 3, 5, 9, 14, 30], np.geomspace(0.01, 6.0, 9)))  # in slices
    deltas = hs.dpsgd_delta(1.0, 0.01, steps, eps)
    np.testing.assert_array_equal(deltas, hs.dpsgd_delta(1.0, 0.01, steps[::-1], eps[::-1])[::-1])
    np.testing.assert_array_equal(deltas, [hs.dpsgd_delta(1.0, 0.01, *cell) for cell in zip(steps, eps, strict=True)])


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
def test_threads_may_ask_at_once(truth):
    """Eight threads that ask for the same noises and rates get the same answers."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda cell: hs.dpsgd_epsilon(*cell, num_threads=2), CELLS * 4))
    assert found == truth * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_gets_the_same_answers():
    """A child that is forked from a process with warm contours answers as its parent does."""
    script = """
        import os, sys
        import hockeystick as hs
        ask = lambda: [float(hs.dpsgd_epsilon(1.0, 0.01, steps, 1e-5)) for steps in (30, 300, 3000)]
        parents = ask()
        child = os.fork()
        if child == 0:
            os._exit(0 if ask() == parents else 1)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    processes.python(textwrap.dedent(script))


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_what_is_kept_is_bounded():
    """After a hundred noises, and deep tables of one, less than 48 MB more than at first stay with the process."""
    script = """
        import numpy as np
        import hockeystick as hs
        def megabytes():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096e-6
        hs.dpsgd_epsilon(1.0, 0.5, 100, 1e-5)
        before = megabytes()
        hs.dpsgd_epsilon(np.linspace(0.6, 3.0, 100), 0.01, 300, 1e-9)
        hs.dpsgd_epsilon(1.0, 0.01, np.arange(10, 60), np.logspace(-12, -1, 50))
        print(megabytes() - before)
    """
    result = processes.python(textwrap.dedent(script))
    assert float(result.stdout) < 48.0
