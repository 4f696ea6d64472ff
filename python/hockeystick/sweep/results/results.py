"""The table of a sweep, opened for reading: as a data set, by axes, its best cell, its integrity."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero
from pyarrow import dataset as data_sets

from hockeystick.sweep.errors import OutputError
from hockeystick.sweep.plan.functions import MEANING, status
from hockeystick.sweep.results.condition import column_type, columns_of, expression, parsed
from hockeystick.sweep.store.parquet_part import DamagedPartError, decode, schema_of, whole_table
from hockeystick.sweep.store.store import Store

if TYPE_CHECKING:
    import xarray

LEAST_BYTES = 12  # the magic at both ends of a Parquet file and the length of its footer


class Results:
    """The table of a sweep, finished or not, as `open` gives it.

    Attributes
    ----------
    manifest : dict
        What the numbers and the bytes depend on: plan, versions, instruction set, cells, axes.
    plan : dict
        The plan, as it was given.
    num_cells : int
        Cells of the plan.
    missing_cells : int
        Cells whose part is not there, or is an empty file.
    damaged : tuple of str
        The parts that are too small to be one, by name.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        sizes = store.folder.entries("cells")
        present = store.present()
        self.damaged = tuple(store.name(index) for index in present if sizes[store.name(index)] < LEAST_BYTES)
        self._there = [index for index in present if sizes[store.name(index)] >= LEAST_BYTES]
        self.manifest = store.described()
        self.plan: dict[str, Any] = self.manifest["plan"]
        self.num_cells = store.plan.num_cells
        self.missing_cells = self.num_cells - sum(len(store.plan.shard(index)) for index in self._there)

    def __repr__(self) -> str:
        """Return how much is there."""
        share = f"share {self._store.share} of a plan of " if self._store.share else ""
        missing = f", of which {self.missing_cells:,} are missing" if self.missing_cells else ""
        return f"{share}{self.num_cells:,} cells{missing}"

    def table(self) -> data_sets.Dataset:
        """Return the parts that are there as a data set of pyarrow, to filter and to scan; nothing is read yet.

        Its columns are ``cell``, the inputs, the outputs and ``error``, with unit, function and status as metadata of the
        fields. The checksums of pages are checked as they are read, the digests of parts are not: `verify` does that.

        Returns
        -------
        pyarrow.dataset.Dataset
            Its rows are cells; those of missing parts are not among them.
        """
        schema = _readable(schema_of(self._store.plan))
        if not self._there:
            return data_sets.dataset(schema.empty_table())
        folder: Any = self._store.folder
        system = getattr(folder, "system", None)  # of fsspec, at a URL
        root = folder.root if system else os.fspath(Path(folder.root).absolute())
        names = [f"{root.rstrip('/')}/cells/{self._store.name(index)}" for index in self._there]
        checked = data_sets.ParquetFragmentScanOptions(page_checksum_verification=True)
        kind = data_sets.ParquetFileFormat(default_fragment_scan_options=checked)
        return data_sets.dataset(names, schema=schema, format=kind, filesystem=system)

    def best(
        self,
        where: str | None = None,
        *,
        maximise: str | None = None,
        minimise: str | None = None,
        partial: bool = False,
    ) -> dict[str, Any] | None:
        """Return the cell that has the largest or the smallest value of a column, of those that satisfy a condition.

        The table is read part by part, each with its digest checked, in the memory of one part.

        Parameters
        ----------
        where : str, optional
            Comparisons of a column with a number or a quoted word, joined by ``and``, ``or``, ``not`` and parentheses:
            ``"epsilon <= 2 and 10 <= steps < 1000"``. It is parsed, never evaluated as Python. A cell whose value is NaN
            never satisfies a comparison, nor the negation of one; infinite values are compared like others.
        maximise, minimise : str
            The column; one of the two. A cell that has NaN there is left out.
        partial : bool, optional
            Take a table with missing cells, of which the best may be another. It is refused otherwise.

        Returns
        -------
        dict or None
            The row, from column to value, of equal ones the first in the order of cells. None if no cell satisfies the condition.
            A value is worth what the status of its column says; a column that is "unsound" is warned of.

        Raises
        ------
        TypeError, ValueError
            If a column does not exist, the condition is none, or not one of `maximise` and `minimise` is given.
        OutputError
            If cells are missing, unless `partial`, or a part is damaged.

        Examples
        --------
        >>> import tempfile
        >>> from hockeystick import sweep
        >>> plan = {
        ...     "outputs": {"epsilon": "dpsgd_epsilon"},
        ...     "fixed": {"sampling_rate": 0.01, "delta": 1e-5},
        ...     "axes": {"noise_multiplier": [0.8, 1.0, 1.2], "steps": [500, 1000, 2000]},
        ... }
        >>> with tempfile.TemporaryDirectory() as out:
        ...     summary = sweep.run(plan, out)
        ...     row = sweep.open(out).best(where="epsilon <= 2", maximise="steps")
        >>> row["steps"], row["noise_multiplier"]
        (2000, 1.2)
        """
        key, name = _objective(maximise, minimise)
        schema = _readable(schema_of(self._store.plan))
        if pa.types.is_string(column_type(name, schema, key)):
            message = f"{key} must name a column of numbers, not {name}"
            raise ValueError(message)
        tree = None if where is None else parsed(where)
        condition = None if tree is None else expression(tree, schema)
        needed = {"cell", name} | (set() if tree is None else columns_of(tree))
        if self.missing_cells and not partial:
            message = (
                f"out must hold all cells of the plan, not {self._store.folder} without {self.missing_cells:,} of "
                f"{self.num_cells:,}: the best may be among those; run the sweep to its end, or allow partial tables"
            )
            raise OutputError(message)
        self._warn_of_unsound(needed)
        return self._extreme(name, condition, sorted(needed), -1 if key == "minimise" else 1)

    def to_xarray(self) -> xarray.Dataset:
        """Return the outputs by the axes of the plan.

        Every axis is a dimension with its values as coordinate. A zip is one dimension, named after its first argument, with
        the others as coordinates along it. Fixed arguments are coordinates without a dimension. Variables have the attributes
        units, status, function and arguments; the data set has those of the manifest, and how many cells are missing or failed.

        Returns
        -------
        xarray.Dataset
            All outputs, NaN in cells that failed or are missing: eight bytes a cell and output, in memory.

        Raises
        ------
        ImportError
            If the extra `xarray` is not installed.
        OutputError
            If a part is damaged.
        """
        from hockeystick.sweep.results.cube import cube  # noqa: PLC0415 - xarray is asked for when first needed

        return cube(self._store.plan, self.manifest, self.missing_cells, self._parts())

    def verify(self) -> tuple[str, ...]:
        """Read every part that is there and check its digest, its plan, version, columns and cells.

        Returns
        -------
        tuple of str
            What is wrong, a text for each damaged part; none if all are what their run wrote. A digest is no signature.
        """
        told = [f"{name}: it has no content" for name in self.damaged]
        for index in self._there:
            content = self._store.content(index)
            try:
                if content is None:
                    told.append(f"{self._store.name(index)}: it cannot be read")
                else:
                    decode(self._store.plan, self._store.manifest, index, content)
            except DamagedPartError as error:
                told.append(f"{self._store.name(index)}: {error}")
        return tuple(told)

    def _parts(self) -> Iterator[tuple[range, pa.Table]]:
        """Yield the cells and the rows of each part that is there, once its digest is right."""
        plan = self._store.plan
        for index in self._there:
            content = self._store.content(index)
            try:
                if content is None:
                    raise DamagedPartError("it cannot be read")  # noqa: EM101 - told below
                table = whole_table(plan, self._store.manifest, index, content)
            except DamagedPartError as error:
                message = (
                    f"out must hold whole parts, not {self._store.folder}/cells/{self._store.name(index)}: {error}; "
                    "run the sweep again to repair it"
                )
                raise OutputError(message) from error
            yield plan.shard(index), table.cast(_readable(table.schema))

    def _extreme(
        self, name: str, condition: pc.Expression | None, needed: list[str], sign: int
    ) -> dict[str, Any] | None:
        best: dict[str, Any] | None = None
        for cells, table in self._parts():
            rows = table.select(needed)
            if condition is not None:
                # One thread: Arrow's pools must hold nothing of ours when the interpreter ends.
                steps = [
                    acero.Declaration("table_source", acero.TableSourceNodeOptions(rows)),
                    acero.Declaration("filter", acero.FilterNodeOptions(condition)),
                ]
                rows = acero.Declaration.from_sequence(steps).to_table(use_threads=False)
            values = rows[name].to_numpy()
            known = values[~np.isnan(values)]
            if not len(known):
                continue
            extreme = known.max() if sign > 0 else known.min()
            if best is None or (extreme > best[name] if sign > 0 else extreme < best[name]):
                first = int(rows["cell"].to_numpy()[values == extreme].min())
                best = table.slice(first - cells.start, 1).to_pylist()[0]
        return best

    def _warn_of_unsound(self, columns: set[str]) -> None:
        for output in self._store.plan.outputs:
            if output.column in columns and status(output.function.name) == "unsound":
                message = f"{output.column} = {output.function.name}: {MEANING['unsound']}"
                warnings.warn(message, UserWarning, stacklevel=3)


def _objective(maximise: str | None, minimise: str | None) -> tuple[str, str]:
    given = [(key, name) for key, name in (("maximise", maximise), ("minimise", minimise)) if name is not None]
    if len(given) != 1:
        message = f"one of maximise and minimise must be given, not {'both' if given else 'neither'}"
        raise ValueError(message)
    return given[0]


def _readable(schema: pa.Schema) -> pa.Schema:
    """Return a schema without dictionaries: words are strings to whoever reads a table."""
    for at, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            schema = schema.set(at, field.with_type(field.type.value_type))
    return schema
