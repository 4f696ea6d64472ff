"""Threads that call the same object at once, and change places as often as Python can."""

import sys
import threading
from contextlib import contextmanager

THREADS = 8


@contextmanager
def restless():
    """Let Python change threads after a microsecond."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def together(*calls):
    """Start each call in a thread of its own."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def race(call, each, *, meanwhile=lambda: None):
    """Call `each` times in each of 8 threads, and `meanwhile` in this one until they end; return how many calls there were.

    What a thread or `meanwhile` raises is raised here.
    """
    start, raised = threading.Barrier(THREADS), []

    def run():
        start.wait()
        try:
            for _ in range(each):
                call()
        except BaseException as error:  # noqa: BLE001 - raised again below, in the thread of the test
            raised.append(error)

    with restless():
        threads = together(*[run] * THREADS)
        while any(thread.is_alive() for thread in threads):
            meanwhile()
        for thread in threads:
            thread.join()
    if raised:
        raise raised[0]
    return THREADS * each
