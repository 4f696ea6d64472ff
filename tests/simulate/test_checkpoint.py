"""Runs that survive: after a kill the same call goes on with the same bits, and a file that does not fit is refused and left alone."""

import pickle
import random
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
import processes
from small_runs import FEDAVG, LEARNT, SGD, SILOS, STAGES, run

pytest.importorskip("numba")

from hockeystick import simulate
from hockeystick.simulate.running import checkpoint
from hockeystick.simulate.running.run import noted

KILLED = """
import pickle, sys
from pathlib import Path
from small_runs import FEDAVG, run
from hockeystick.simulate.running import checkpoint
checkpoint.SECONDS, checkpoint.MAX_SHARE = 0.0, 1.0
result = run(FEDAVG, rounds=120_000, num_runs=3, record_every=40_000, checkpoint=sys.argv[1])
Path(sys.argv[2]).write_bytes(pickle.dumps(result))
"""


def equal(one, other):
    """Say whether two results have the same bits."""
    names = ("models", "last_iterates", "recorded", "diverged", "completed", "stopped", "clip_norm")
    return all(np.array_equal(getattr(one, name), getattr(other, name), equal_nan=name == "models") for name in names)


@pytest.mark.slow
def test_kills_change_no_bit(tmp_path):
    """A run that is killed at random moments ends with the bits of one that is not."""
    here = str(Path(__file__).parents[1] / "reference")
    code = f"import sys; sys.path.insert(0, {here!r})\n{KILLED}"
    file, out = tmp_path / "run", tmp_path / "out"
    run(FEDAVG)  # compiles the loops
    draw = random.Random(5)
    kills = 0
    while not out.exists() and kills < effort.at_night(10, by_day=2):
        with processes.child([sys.executable, "-c", code, file, out]) as process:
            while not file.exists() and process.poll() is None:
                time.sleep(0.01)
            time.sleep(draw.uniform(0.0, 1.0))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
            process.wait()
    processes.python(code, file, out)
    whole = run(FEDAVG, rounds=120_000, num_runs=3, record_every=40_000)
    assert equal(pickle.loads(out.read_bytes()), whole)
    assert kills > 0


class Stop(Exception):
    """What ends a run after a writing."""


@pytest.mark.parametrize("writings", [1, 2, 3, 5])
@pytest.mark.parametrize("algorithm", [SGD, FEDAVG, LEARNT, STAGES], ids=["sgd", "fedavg", "learnt", "stages"])
def test_goes_on_from_any_writing(algorithm, writings, tmp_path, monkeypatch):
    """A run that ends after its n-th writing goes on to the bits of an uninterrupted one, on another number of threads."""
    problem = SILOS.pooled() if algorithm is LEARNT else SILOS
    settings = {"rounds": 40, "num_runs": 3, "record_every": 7}
    whole = run(algorithm, problem, **settings)
    write, left = checkpoint.Checkpoint.write, [writings]

    def counted(self, recording):
        write(self, recording)
        left[0] -= 1
        if not left[0]:
            raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "SECONDS", 0.0)
        patch.setattr(checkpoint, "MAX_SHARE", 1e9)
        patch.setattr(checkpoint.Checkpoint, "write", counted)
        with pytest.raises(Stop):
            run(algorithm, problem, **settings, checkpoint=tmp_path / "run")
    # It ends long before another writing is due; then the file has the result, and nothing is computed
    for _ in range(2):
        assert equal(run(algorithm, problem, **settings, checkpoint=tmp_path / "run", num_threads=2), whole)
        monkeypatch.setattr("hockeystick.simulate.running.engine.Engine.advance", lambda *_: pytest.fail("computed"))


@pytest.mark.skipif(sys.platform == "win32", reason="modes are those of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_mode_of_the_file_is_kept(tmp_path, monkeypatch, mode):
    """What is replaced is as private as it was made, also while it is being written; a new file has the mode of any other."""
    file = tmp_path / "run"
    run(FEDAVG, checkpoint=file)
    (tmp_path / "other").touch()
    assert file.stat().st_mode == (tmp_path / "other").stat().st_mode
    file.chmod(mode)
    seen = []
    write = checkpoint.write_whole

    def looked_at(path, content):
        return write(path, lambda out: (seen.append(Path(out.name).stat().st_mode), content(out)))

    monkeypatch.setattr(checkpoint, "write_whole", looked_at)
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    given = checkpoint.Checkpoint(file, {})
    given.write(type("Recorded", (), {"arrays": lambda _: {}})())
    assert file.stat().st_mode & 0o777 == mode
    assert [found & 0o777 for found in seen] == [mode]


def test_a_diverged_run_is_read(tmp_path):
    """Where all runs have diverged, the file says so, and the warning comes again."""
    wild = simulate.NoisyMinibatchSGD(learning_rate=1e200, clip_norm=float("inf"), records=simulate.EveryRound())
    steep = simulate.Problem("least_squares", [[1e100], [1.0]], [1.0, 2.0])
    results = []
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="1 of 1 runs became non-finite"):
            results.append(run(wild, steep, record_every=1, checkpoint=tmp_path / "run"))
    assert equal(*results)
    assert results[0].stopped == "diverged"


OTHER = {
    "seed": ({"seed": 8}, "its seed is 7, not 8"),
    "rounds": ({"rounds": 7}, "its rounds is 6, not 7"),
    "runs": ({"num_runs": 2}, "its num_runs is 1, not 2"),
    "first run": ({"first_run": 1}, "its first_run is 0, not 1"),
    "records": ({"record_every": 2}, "its record_every is 6, not 2"),
    "start": ({"initial": np.ones(5)}, "its initial is"),
    "algorithm": ({"algorithm": SGD}, "its algorithm is NoisyFedAvg"),
    "problem": ({"problem": SILOS.replace_record(3, np.zeros(5), 1.0)}, "its problem is"),
}


@pytest.mark.parametrize(("changes", "told"), OTHER.values(), ids=OTHER)
def test_another_run_is_refused(changes, told, tmp_path):
    """The message says what differs, and the file stays as it is."""
    file = tmp_path / "run"
    run(FEDAVG, checkpoint=file)
    content = file.read_bytes()
    arguments = {"algorithm": FEDAVG} | changes
    with pytest.raises(ValueError, match=re.escape(f"checkpoint {file} is of another run: {told}")):
        run(**arguments, checkpoint=file)
    assert file.read_bytes() == content


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return the file of a complete run, and its content."""
    file = tmp_path_factory.mktemp("written") / "run"
    run(FEDAVG, checkpoint=file)
    return file, file.read_bytes()


@given(data=st.data())
def test_damage_is_seen(written, data):
    """A file with another byte, or without its end, is never gone on from."""
    file, content = written
    if data.draw(st.booleans(), label="cut"):
        damaged = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        place = data.draw(st.integers(0, len(content) - 1))
        damaged = content[:place] + bytes([content[place] ^ data.draw(st.integers(1, 255))]) + content[place + 1 :]
    file.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"checkpoint must name a checkpoint|checkpoint .* is damaged"):
        run(FEDAVG, checkpoint=file)
    assert file.read_bytes() == damaged


def test_a_place_that_does_not_exist(tmp_path):
    """A folder that is not there, a folder in the place of a file, and no path at all are told before the first round."""
    with pytest.raises(ValueError, match="checkpoint must be in a folder that exists, not "):
        run(FEDAVG, checkpoint=tmp_path / "none" / "run")
    with pytest.raises(OSError, match="directory"):
        run(FEDAVG, checkpoint=tmp_path)
    with pytest.raises(TypeError, match="checkpoint must be a path, not 3"):
        run(FEDAVG, checkpoint=3)
    assert not list(tmp_path.iterdir())


INTERRUPTED = """
import sys, warnings
from hockeystick import simulate
warnings.simplefilter("ignore")
algorithm = simulate.ProjectedNoisySGD(learning_rate=0.1, clip_norm=1.0, noise_std=1.0)
problem = simulate.Problem("linear", [[1.0]])
simulate.run(algorithm, problem, rounds=1, seed=1)
print("started", flush=True)
result = simulate.run(algorithm, problem, rounds=10**11, seed=1, num_runs=2, **eval(sys.argv[1]))
again = simulate.run(algorithm, problem, rounds=result.completed, seed=1, num_runs=2)
print(result.stopped, 0 < result.completed < 10**11, result.recorded[-1] == result.completed)
print((again.models[-1] == result.models[-1]).all(), result.epsilon(1e-5)[-1] == again.epsilon(1e-5)[-1])
"""


@pytest.mark.slow
def test_ctrl_c_returns_what_there_is(tmp_path):
    """Ctrl-C returns the model of the last round, and leaves a checkpoint."""
    file = tmp_path / "run"
    with processes.child([sys.executable, "-c", INTERRUPTED, repr({"checkpoint": str(file)})]) as process:
        assert process.stdout.readline() == "started\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=processes.seconds(60))
    assert file.exists()
    assert out == "interrupted True True\nTrue True\n", errors


def test_a_second_ctrl_c_raises_at_once():
    """The first is noted, the second raises, and afterwards Ctrl-C is what it was."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore Ctrl-C
    try:
        with noted() as pressed:
            assert not pressed()
            signal.raise_signal(signal.SIGINT)
            assert pressed()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
