"""How much of a law's cases a run of the tests asks: some in the first stage, more in the slow one, all at night."""

import os
import random
import shutil
import subprocess
from typing import Any

import pytest

NIGHT = bool(os.environ.get("HOCKEYSTICK_NIGHTLY"))
AT_NIGHT = pytest.mark.skipif(not NIGHT, reason="runs at night: .ci/nightly")
# CMake's build type of test programs. "None" compiles without optimisation and debugging symbols, in a fraction of the time.
BUILD_TYPE = "Release" if NIGHT else "None"
SEED = int(os.environ.get("HOCKEYSTICK_RANDOM", "1"))  # of storms; another one each night


def at_night(whole: int, *, by_day: int) -> int:
    """Return how many cases of a long loop to try: all of them in the nightly run, which sets HOCKEYSTICK_NIGHTLY."""
    return whole if NIGHT else by_day


def dice_of_commit() -> random.Random:
    """Return dice that fall alike for one commit and otherwise for the next, to try a few of many."""
    git = shutil.which("git")
    asked = [git or "git", "-C", os.path.dirname(__file__), "rev-parse", "HEAD"]  # noqa: PTH120
    return random.Random(subprocess.run(asked, capture_output=True, text=True, check=False).stdout if git else "")


def marks_of_a_share(item: pytest.Item, every: int, *, by_day: int = 1) -> list[Any]:
    """Return what `pytest.mark.share(every)` makes of a case: one in `every` stays in the first stage, the others are slow.

    With `by_day`, which divides `every`, only one in so many is slow, and the rest runs at night.

    Where a test has several tables, the first case of each is followed by the second of the others, as in a Latin square, so
    that each value of one table meets some of the other.
    """
    case, places = next(iter(item.callspec.indices.values())), 0  # type: ignore[attr-defined]  # a share is of a parametrised test
    for mark in reversed(list(item.iter_markers("parametrize"))):  # pytest numbers the cases of all tables in a row
        case, place = divmod(case, len(mark.args[1]))
        places += place
    if places % every == 0:
        return []
    return [pytest.mark.slow] if places % by_day == 0 else [pytest.mark.slow, AT_NIGHT]
