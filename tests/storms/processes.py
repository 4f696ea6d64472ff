"""Child processes of the tests: each hears Ctrl-C, has a time limit, and ends before its test does.

The limits are generous for a quiet machine; HOCKEYSTICK_PATIENCE multiplies them all.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading

PATIENCE = float(os.environ.get("HOCKEYSTICK_PATIENCE", "1"))


def seconds(limit):
    """Return how long to wait on this machine for what a quiet one does well within `limit` seconds."""
    return limit * PATIENCE


@contextlib.contextmanager
def child(command, **options):
    """Give a process with pipes, and kill it, with all that it started, if it still runs when the block ends."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True} | options
    # Whoever started the tests in the background may have had them ignore Ctrl-C, which a child inherits.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        process = subprocess.Popen([str(word) for word in command], **options)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        try:
            yield process
        finally:
            end(process)


def end(process):
    """Kill a child that still runs, and its own children, if it leads a session."""
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError):  # it may end by itself just now
        if sys.platform != "win32" and os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    process.wait(seconds(30))


def run(command, *, limit=120.0, check=True, **options):
    """Run a command to its end and return what it printed; fail with that if `check` and its exit code is not 0."""
    with child(command, **options) as process:
        out, errors = process.communicate(timeout=seconds(limit))
    assert not check or process.returncode == 0, f"{out}{errors}"
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def in_fork(work, kill_after):
    """Run some work in a fork, kill it after so many seconds, if it is to be, and return what it wrote to its descriptor."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with contextlib.suppress(BaseException):  # what the parent should hear of it is said by then
            work(writing)
        os._exit(0)
    os.close(writing)
    with contextlib.ExitStack() as stack:
        if kill_after is not None:
            timer = threading.Timer(kill_after, os.kill, (child, signal.SIGKILL))
            stack.callback(timer.join)
            stack.callback(timer.cancel)
            timer.start()
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read()
    os.waitpid(child, 0)
    return told


def python(code, *arguments, **options):
    """Run some code in a Python of its own."""
    return run([sys.executable, "-c", code, *arguments], **options)
