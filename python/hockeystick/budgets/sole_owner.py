"""One process, one object: connections that a forked child must not touch, and objects that must not be copied."""

from __future__ import annotations

import ctypes
import functools
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from typing import Concatenate, NoReturn, ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Owner = TypeVar("Owner", bound="SoleOwner")


class HasDatabase(Protocol):
    """What has a connection, or had one."""

    @property
    def database(self) -> sqlite3.Connection | None:
        """The connection."""


_HOLDERS: weakref.WeakSet[HasDatabase] = weakref.WeakSet()


def keep_open_in_children(holder: HasDatabase) -> None:
    """See to it that no child of this process closes the connection.

    SQLite forbids a child the use of its parent's connection. Closing it there would delete the parent's rollback journal.
    """
    _HOLDERS.add(holder)


def _after_fork() -> None:
    """Take a reference that is never given back, so that the connection outlives even the interpreter's end."""
    for holder in _HOLDERS:
        if holder.database is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(holder.database))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class SoleOwner:
    """An object that is used in the process that made it, by one thread after the other, and has no copies."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._turn = threading.RLock()
        self._ended = False
        self._writing = False

    def _is_forked(self) -> bool:
        return os.getpid() != self._process

    def _require_own_process(self) -> None:
        if self._is_forked():
            msg = (
                f"{type(self).__name__} belongs to process {self._process}, and this is {os.getpid()}, a fork of it: "
                "each would spend the same budget; open the file after the fork, in one process"
            )
            raise RuntimeError(msg)

    def _end(self, close: Callable[[], None]) -> None:
        """Close what is owned; from then on only this may be called."""
        self._require_own_process()
        with self._turn:
            self._ended = True
            close()

    def _settle(self) -> None:
        """Finish or undo what an interrupt has left half done; called before anything else is."""

    def _leave(self, within: bool) -> None:
        """Give the turn back where an exception came between the end of its `with` and this; `within` a turn, it goes on."""
        if not within and self._turn._is_owned():  # type: ignore[attr-defined]
            self._turn.release()

    def _require_ready(self, within: bool) -> None:
        """Refuse what is closed, and what interrupts a write; begin where no interrupt was."""
        if self._ended:
            msg = f"{type(self).__name__} is closed, by close or after a failure to write: open the file again"
            raise RuntimeError(msg)
        if within and self._writing:  # by this very thread
            msg = f"{type(self).__name__} is being written, and cannot be used by what interrupts that"
            raise RuntimeError(msg)
        if not within:
            self._writing = False  # an interrupt may have left it set
            self._settle()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse copy, deepcopy and pickle."""
        msg = f"{type(self).__name__} cannot be copied or pickled: each would spend the same budget"
        raise TypeError(msg)


def in_turn(
    method: Callable[Concatenate[Owner, Arguments], Answer],
) -> Callable[Concatenate[Owner, Arguments], Answer]:
    """Refuse a method in a forked child and in the middle of a write, and let one thread after the other run it."""

    @functools.wraps(method)
    def guarded(self: Owner, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Answer:
        self._require_own_process()  # before the lock, which a thread of the parent's may hold for ever
        within = self._turn._is_owned()  # type: ignore[attr-defined] # by a call that this one interrupts
        try:
            with self._turn:
                self._require_ready(within)
                return method(self, *arguments, **options)
        except BaseException:
            self._leave(within)
            raise

    return guarded


def alone(
    method: Callable[Concatenate[Owner, Arguments], Answer],
) -> Callable[Concatenate[Owner, Arguments], Answer]:
    """As `in_turn`, for what writes: a signal handler that interrupts it, or an iterator that it was given, may use nothing."""

    @in_turn
    @functools.wraps(method)
    def guarded(self: Owner, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Answer:
        self._writing = True
        try:
            return method(self, *arguments, **options)
        finally:
            self._writing = False

    return guarded
