"""Run a plan: evaluate the shards that are not there yet, write each, and summarise the whole table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick._checks import thread_count
from hockeystick.sweep.evaluate import Shard, evaluate
from hockeystick.sweep.plan import load

if TYPE_CHECKING:
    import pyarrow as pa

    from hockeystick.sweep.store import Store

Progress = Callable[[int, int], object]  # cells done, cells in all


@dataclass(frozen=True)
class Summary:
    """What a run did and what its table holds."""

    rows: int  # in the table
    computed_rows: int  # by this run; the others were there
    seconds: float
    compute_seconds: float  # in the functions of the plan and around them, without writing
    write_seconds: float  # beside the computation, in another thread
    rows_per_second: float  # computed rows per second of the run
    ranges: dict[str, tuple[float, float]]  # of the finite values of each output
    non_finite: dict[str, int]  # NaN and infinite values of each output
    errors: int  # cells with an error text
    warnings: tuple[str, ...] = ()  # what the functions warned of

    def __str__(self) -> str:
        """Return a few lines for a reader."""
        reused = self.rows - self.computed_rows
        lines = [f"{self.rows:,} cells" + (f", {reused:,} of them from an earlier run" if reused else "")]
        if self.computed_rows:
            shares = f"computing {self.compute_seconds:.2f} s, beside it writing {self.write_seconds:.2f} s"
            lines.append(f"{self.seconds:.2f} s ({shares}), {self.rows_per_second:,.0f} rows/s")
        for name, (least, greatest) in self.ranges.items():
            count = self.non_finite[name]
            lines.append(f"{name}: {least:.6g} to {greatest:.6g}" + (f", {count:,} not finite" if count else ""))
        if self.errors:
            lines.append(f"{self.errors:,} cells have an error; see the column error")
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


def run(
    plan: str | os.PathLike[str] | Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    num_threads: int | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Evaluate every cell of a plan and write the table as a Parquet dataset.

    Interrupted at any moment, even killed, it goes on where it was when called again with the same plan and directory,
    and ends with the same bytes as an uninterrupted run. A cell out of a function's domain gets NaN and a text in the
    column ``error``; it does not stop the run.

    Parameters
    ----------
    plan : path or mapping
        A TOML file, or a mapping with the same content.
    out : path
        A directory that is new, empty, or that of an earlier run of the same plan. Gets ``manifest.json`` and
        ``cells/part-*.parquet``.
    num_threads : int, optional
        Threads that the compiled functions use; all cores if not given.
    progress : callable, optional
        Called as ``progress(cells done, cells in all)`` at the start and after each shard.

    Returns
    -------
    Summary
        Times, ranges and counts.

    Raises
    ------
    PlanError
        If the plan is wrong or its table too large; nothing has been written then.
    OutputError
        If the directory cannot be used, or holds the run of another plan.
    OSError
        If a part cannot be written, say because the disk is full; the parts before it stay.

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
    from hockeystick.sweep.store import open_store  # noqa: PLC0415 - pyarrow is asked for when first needed

    thread_count(num_threads)  # before anything is written
    checked = load(plan)
    tally = Tally([output.column for output in checked.outputs])
    started = time.perf_counter()
    with open_store(Path(out), checked) as store:
        _Run(store, tally, num_threads, progress or (lambda _done, _total: None)).go()
    return tally.summary(time.perf_counter() - started)


class _Run:
    def __init__(self, store: Store, tally: Tally, num_threads: int | None, progress: Progress) -> None:
        self.store = store
        self.tally = tally
        self.num_threads = num_threads
        self.progress = progress

    def go(self) -> None:
        """Take stock of the parts that are there, then compute the others while the one before is written."""
        missing = self.missing()
        self.report()
        with ThreadPoolExecutor(max_workers=1) as writer:
            pending: Future[None] | None = None
            for index in missing:
                shard = self.evaluate(index)
                if pending:
                    pending.result()
                pending = writer.submit(self.write, shard)
            if pending:
                pending.result()

    def missing(self) -> list[int]:
        """Return the shards without a whole part, and tally the others."""
        missing = []
        for index in range(self.store.plan.num_shards):
            table = self.store.read(index)
            if table is None:
                missing.append(index)
            else:
                self.tally.add(table)
        return missing

    def evaluate(self, index: int) -> Shard:
        started = time.perf_counter()
        shard = evaluate(self.store.plan, self.store.plan.shard(index), self.num_threads)
        self.tally.compute_seconds += time.perf_counter() - started
        self.tally.computed_rows += len(shard.cells)
        return shard

    def write(self, shard: Shard) -> None:
        started = time.perf_counter()
        table = self.store.write(shard)
        self.tally.write_seconds += time.perf_counter() - started
        self.tally.add(table)
        self.report()

    def report(self) -> None:
        self.progress(self.tally.rows, self.store.plan.num_cells)


@dataclass
class Tally:
    """Counts over the parts, one at a time in memory."""

    outputs: list[str]
    rows: int = 0
    computed_rows: int = 0
    compute_seconds: float = 0.0
    write_seconds: float = 0.0
    errors: int = 0
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    non_finite: dict[str, int] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)  # a set in the order of arrival

    def add(self, table: pa.Table) -> None:
        """Count one part."""
        from hockeystick.sweep.store import read_warnings  # noqa: PLC0415

        self.rows += table.num_rows
        self.errors += table.num_rows - table["error"].null_count
        self.warnings.update(dict.fromkeys(read_warnings(table)))
        for name in self.outputs:
            values = table[name].to_numpy()
            finite = values[np.isfinite(values)]
            least, greatest = self.ranges.get(name, (np.nan, np.nan))
            if len(finite):
                self.ranges[name] = (float(np.fmin(least, finite.min())), float(np.fmax(greatest, finite.max())))
            else:
                self.ranges[name] = (least, greatest)
            self.non_finite[name] = self.non_finite.get(name, 0) + len(values) - len(finite)

    def summary(self, seconds: float) -> Summary:
        """Return the counts as a summary of a run that took so long."""
        return Summary(
            rows=self.rows,
            computed_rows=self.computed_rows,
            seconds=seconds,
            compute_seconds=self.compute_seconds,
            write_seconds=self.write_seconds,
            rows_per_second=self.computed_rows / seconds,
            ranges=self.ranges,
            non_finite=self.non_finite,
            errors=self.errors,
            warnings=tuple(self.warnings),
        )
