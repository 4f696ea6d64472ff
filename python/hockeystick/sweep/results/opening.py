"""What the package offers for tables that are there: `open` and `merge`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hockeystick.sweep.results.results import Results


def open(out: str | os.PathLike[str]) -> Results:
    """Open the table of a sweep, finished or not.

    The manifest is read and the names and sizes of the parts are looked at, no more. `Results.best`, `Results.to_xarray` and
    `Results.verify` check the digest of every part that they read; `Results.table` does not.

    Parameters
    ----------
    out : path
        Directory or URL of a sweep, or of a share of one.

    Returns
    -------
    Results
        The table: as a data set of pyarrow, by its axes, or its best cell. Its values are worth what the status of their
        columns says.

    Raises
    ------
    OutputError
        If there is no sweep, or one of another format, or a manifest that contradicts itself.

    Examples
    --------
    >>> import tempfile
    >>> from hockeystick import sweep
    >>> plan = {"outputs": {"delta": "theta"}, "axes": {"r": [0.5, 1.0], "eps": {"linspace": [0, 8], "num": 5}}}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     summary = sweep.run(plan, out)
    ...     table = sweep.open(out)
    ...     print(table.num_cells, table.missing_cells, table.verify())
    ...     print(table.best(where="delta <= 1e-2 and r == 1.0", minimise="eps")["eps"])
    10 0 ()
    4.0
    """
    from hockeystick.sweep.store.stored import stored_sweep  # noqa: PLC0415 - pyarrow is asked for when first needed

    return Results(stored_sweep(out))


def merge(outs: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> None:
    """Make one table of the shares of a plan, byte for byte that of one run.

    Every part is read and its digest checked before it is copied. A merge that is killed and repeated ends with the same bytes.

    Parameters
    ----------
    outs : sequence of paths
        Directories or URLs of runs of one plan, which together have all parts: those of ``run(..., shards=(i, n))``, or
        unfinished ones. They stay as they are.
    out : path
        A directory or URL that is new, empty, or that of an earlier merge or run of the same plan.

    Raises
    ------
    TypeError, ValueError
        If `outs` is no list, or empty.
    OutputError
        If a share is missing or unfinished, a part is damaged, two have different bytes, or the directories are of different
        plans, versions or instruction sets; the message names them.

    Examples
    --------
    >>> import tempfile
    >>> from hockeystick import sweep
    >>> plan = {"shard_rows": 3, "outputs": {"delta": "theta"}, "axes": {"r": [0.5, 1.0], "eps": [0.0, 1.0, 2.0]}}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     shares = [f"{place}/{number}" for number in (1, 2)]
    ...     rows = [sweep.run(plan, out, shards=(number, 2)).rows for number, out in enumerate(shares, 1)]
    ...     sweep.merge(shares, f"{place}/whole")
    ...     print(rows, sweep.open(f"{place}/whole"))
    [3, 3] 6 cells
    """
    from hockeystick.sweep.store.merge import merge_into  # noqa: PLC0415 - pyarrow is asked for when first needed

    merge_into(outs, out)
