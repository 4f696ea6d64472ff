"""Run a plan: evaluate the shards that are not there yet, write each, and summarise the whole table."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hockeystick._checks import thread_count
from hockeystick.sweep.plan.plan import load
from hockeystick.sweep.plan.shares import share_of
from hockeystick.sweep.running import instructions

if TYPE_CHECKING:
    import distributed
from hockeystick.sweep.running.summary import Progress, Summary


def run(
    plan: str | os.PathLike[str] | Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    num_threads: int | None = None,
    progress: Progress | None = None,
    client: distributed.Client | None = None,
    strict: bool = False,
    shards: tuple[int, int] | None = None,
) -> Summary:
    """Evaluate every cell of a plan and write the table as a Parquet dataset.

    Interrupted at any moment, even killed, it goes on where it was when called again with the same plan and directory,
    and ends with the same bytes as an uninterrupted run. A cell out of a function's domain gets NaN and a text in the
    column ``error``; it does not stop the run, unless `strict`.

    Parameters
    ----------
    plan : path or mapping
        A TOML file, or a mapping with the same content.
    out : path
        A directory that is new, empty, or that of an earlier run of the same plan; or the URL of one that fsspec knows, such
        as ``s3://bucket/sweep``. Gets ``_manifest.json`` and ``cells/part-*.parquet``.
    num_threads : int, optional
        Threads that compute, encode and write: all cores if not given, on a cluster one for each task.
    progress : callable, optional
        Called as ``progress(cells done, cells in all, seconds left)`` at the start and after each shard. The time is None
        until something is known of it.
    client : distributed.Client, optional
        Of a Dask cluster that computes the shards. Its workers need hockeystick, in the same version and with the same
        instruction set, so that the table is the same as without a cluster. A worker that sees `out`, on a shared disk or
        in an object store, writes its parts there; for the others this process writes. Whoever can connect to the cluster
        can run code on it and in this process: give it TLS (``distributed.Security``) on a shared network.
    strict : bool, optional
        Stop at the first part that has a cell with an error; the parts before it stay.
    shards : (int, int), optional
        ``(i, n)`` computes share i of n, counted from 1, for job arrays: every n-th part, in a directory of its own. `merge`
        makes one table of all shares, byte for byte that of one run.

    Returns
    -------
    Summary
        Times, ranges and counts.

    Raises
    ------
    TypeError, ValueError
        If `num_threads` is no positive integer, `client` is not a synchronous client, `shards` names no share, or this machine
        does not have the instruction set of the plan.
    PlanError
        If the plan is wrong or its table too large; nothing has been written then.
    OutputError
        If the directory cannot be used, or holds the run of another plan.
    CellError
        If `strict`, and a function refuses a cell.
    OSError
        If a part cannot be written, say because the disk is full, or the cluster is lost; the parts before it stay.

    Examples
    --------
    >>> import tempfile
    >>> from hockeystick.sweep import run
    >>> plan = {"outputs": {"delta": "theta"}, "axes": {"r": [0.5, 1.0], "eps": {"linspace": [0, 8], "num": 5}}}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     summary = run(plan, out)
    >>> summary.rows, summary.errors
    (10, 0)
    """
    from hockeystick.sweep.running.runner import Runner  # noqa: PLC0415
    from hockeystick.sweep.store.store import open_store  # noqa: PLC0415 - pyarrow is asked for when first needed

    thread_count(num_threads)  # before anything is written
    if client is not None:
        from hockeystick.sweep.running.cluster import check_client  # noqa: PLC0415 - Dask is asked for when first needed

        check_client(client)
    checked = load(plan)
    if client is None:
        instructions.check(checked.instruction_set)  # before anything is written
    if checked.has_trainings:
        from hockeystick.sweep.trainings.check import check  # noqa: PLC0415 - the simulator is for such plans only

        check(checked)
    started = time.perf_counter()
    share = None if shards is None else share_of(shards, checked.num_shards)
    with open_store(out, checked, share) as store:
        runner = Runner(store, num_threads, progress or (lambda *_progress: None), client, strict=strict)
        try:
            runner.go()
        except OSError as error:
            kept = f"{runner.counts.rows:,} cells are kept, the same command resumes"
            if error.errno is None:
                message = f"{error}; {kept}"
                raise type(error)(message) from error
            reason = f"{error.strerror}; {kept}"
            raise OSError(error.errno, reason, os.fspath(out)) from error
    return runner.summary(time.perf_counter() - started)
