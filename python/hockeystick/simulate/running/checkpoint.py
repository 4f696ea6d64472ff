"""A file from which runs go on where they were, with the same bits.

It is `MAGIC`, the SHA-256 of what follows, and the arrays as NumPy's `savez` writes them, without pickle: what was recorded, the state,
and of which run they are. It is replaced as a whole, so that a kill at any moment leaves the last one.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from hockeystick._checks.shown import shown
from hockeystick._core import __version__
from hockeystick._files import write_whole
from hockeystick.simulate.algorithms.algorithm import Algorithm
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.result import Recording

MAGIC = b"hockeystick run 1\n"
SECONDS = 30.0  # between two writings
MAX_SHARE = 0.05  # of the time that writing may take


def identity(algorithm: Algorithm, problem: Problem, **settings: Any) -> dict[str, str]:
    """Return what two runs must share to have the same bits, as texts that a message can show."""
    about = {
        "version": __version__,
        "algorithm": repr(algorithm),
        "problem": f"{problem!r}, {_digest(problem.content().values())}",
    }
    return about | {name: _text(value) for name, value in settings.items()}


def _digest(arrays: Iterable[Any]) -> str:
    content = hashlib.sha256()
    for array in map(np.ascontiguousarray, arrays):
        content.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return content.hexdigest()


def _text(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return str(value)
    return f"shape {value.shape}, {_digest([value])}"


class Checkpoint:
    """A file of one run, written now and then."""

    def __init__(self, path: str | os.PathLike[str], about: dict[str, str]) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"checkpoint must be a path, not {shown(path)}")
        self.path, self.about = Path(path).resolve(), about
        self.next = time.monotonic() + SECONDS

    def open(self, recording: Recording) -> None:
        """Set a recording to what the file holds; make the file if there is none, so that what forbids it is found now.

        Raises
        ------
        ValueError
            If the file is damaged, of another run, or no checkpoint, and is left as it is; or if there is no such folder.
        OSError
            If it cannot be read or written.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            if not self.path.parent.is_dir():
                raise ValueError(f"checkpoint must be in a folder that exists, not {self.path}") from None
            self.write(recording)
            return
        found = self._arrays(content)
        theirs = json.loads(found.pop("about").tobytes())
        for name, mine in self.about.items():
            if theirs.get(name) != mine:
                raise ValueError(
                    f"checkpoint {self.path} is of another run: its {name} is {theirs.get(name)}, not {mine}"
                )
        recording.restore(**found)

    def _arrays(self, content: bytes) -> dict[str, np.ndarray[Any, Any]]:
        head, digest = len(MAGIC), hashlib.sha256().digest_size
        if content[:head] != MAGIC:
            raise ValueError(f"checkpoint must name a checkpoint of a run, or a new file, not {self.path}")
        if hashlib.sha256(content[head + digest :]).digest() != content[head : head + digest]:
            raise ValueError(
                f"checkpoint {self.path} is damaged: its content does not match its digest; the run must start anew, with another file"
            )
        try:
            with np.load(io.BytesIO(content[head + digest :]), allow_pickle=False) as arrays:
                return dict(arrays)
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            raise ValueError(f"checkpoint {self.path} cannot be read: {error}") from error

    def write_if_due(self, recording: Recording) -> None:
        """Write the file, if the last writing is long enough ago."""
        if time.monotonic() >= self.next:
            self.write(recording)

    def write(self, recording: Recording) -> None:
        """Write the file."""
        start = time.monotonic()
        about = np.frombuffer(json.dumps(self.about).encode(), np.uint8)
        body = io.BytesIO()
        np.savez(body, about=about, **recording.arrays())
        content = body.getbuffer()
        parts = (MAGIC, hashlib.sha256(content).digest(), content)
        write_whole(self.path, lambda file: file.writelines(parts))
        end = time.monotonic()
        self.next = end + max(SECONDS, (end - start) / MAX_SHARE)
