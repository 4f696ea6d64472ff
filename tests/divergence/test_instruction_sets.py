"""A thread can compute with an instruction set of its choice, and gets the bytes of a process that was started with it."""

import inspect
import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import hockeystick as hs
import hockeystick._core as core
import processes

SETS = core.instruction_sets().split(", ")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    core.use_instruction_set(core.instruction_set)


def numbers() -> str:
    """Return what all vectorised loops serve, in hexadecimal digits. Another process runs this text, too."""
    import numpy as np  # noqa: PLC0415

    import hockeystick as hs  # noqa: PLC0415

    rng = np.random.default_rng(20)
    eps, r = rng.exponential(2.0, 3000), rng.exponential(1.0, 3000)
    noise, steps = rng.uniform(0.6, 3.0, 6), rng.integers(10, 3000, 6)
    ledger = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(0.8), 0.01), 700).compose(hs.Laplace(9.0), 3)
    results = [hs.theta(eps, r), hs.log_theta(eps, r), hs.q_inv(r / (1.0 + r)), hs.gdp_delta(r, eps)]
    results += [hs.dpsgd_epsilon(noise, 0.01, steps, 1e-6), hs.dpsgd_delta(noise, 0.01, steps, 1.0)]
    results += [np.array([ledger.epsilon(1e-6), ledger.delta(0.5)])]
    return np.concatenate(results).tobytes().hex()


@pytest.mark.share(2)
@pytest.mark.parametrize("name", SETS)
def test_a_thread_computes_what_a_process_of_that_set_does(name: str) -> None:
    """Same bytes, also right after other sets have filled the caches that all threads share."""
    text = f"from __future__ import annotations\n{inspect.getsource(numbers)}\nprint(numbers())"
    expected = processes.python(text, env=os.environ | {"HOCKEYSTICK_ISA": name}).stdout.strip()
    for other in SETS:
        core.use_instruction_set(other)
        numbers()
    core.use_instruction_set(name)
    assert numbers() == expected


def test_instruction_sets_agree() -> None:
    """Each path gives the default path's value to within twice the error allowed."""
    rng = np.random.default_rng(0)
    r, a = np.exp(rng.uniform(-20, 5, 4000)), rng.uniform(-37, 37, 4000)
    eps = np.clip(r * (a + r / 2), -700, 700)
    ours = hs.log_theta(eps, r)
    for name in SETS:
        core.use_instruction_set(name)
        assert np.all(np.abs(ours - hs.log_theta(eps, r)) <= 2 * np.maximum(4e-15 * np.abs(ours), 1e-14)), name


def test_other_threads_keep_theirs() -> None:
    """The choice of one thread is invisible to another, and the name of what was used before comes back."""
    assert core.use_instruction_set("portable") == core.instruction_set
    told = []
    thread = threading.Thread(target=lambda: told.append(core.use_instruction_set("portable")))
    thread.start()
    thread.join()
    assert told == [core.instruction_set]
    assert core.use_instruction_set(core.instruction_set) == "portable"


def test_an_unknown_set_is_refused() -> None:
    """The error names the argument, its value and what this machine runs."""
    with pytest.raises(ValueError, match=r"instruction_set must be one of portable.*, not 'v9'"):
        core.use_instruction_set("v9")
