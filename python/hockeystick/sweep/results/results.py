"""The table of a sweep, opened for reading: as a data set, by axes, its best cell, its integrity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray
    from pyarrow import dataset as data_sets

    from hockeystick.sweep.store.store import Store

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
        Cells whose part is not there, or has fewer than the 12 bytes of the shortest Parquet file.
    damaged : tuple of str
        The parts that are too small to be one, by name.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        sizes = store.folder.entries("cells")
        present = [index for index in store.shards if store.name(index) in sizes]
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
        from hockeystick.sweep.results.reading import data_set  # noqa: PLC0415 - pyarrow is asked for when first needed

        return data_set(self._store, self._there)

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
        from hockeystick.sweep.results.best import best_row  # noqa: PLC0415

        missing = 0 if partial else self.missing_cells
        return best_row(self._store, self._there, where=where, maximise=maximise, minimise=minimise, missing=missing)

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
        from hockeystick.sweep.results.reading import parts  # noqa: PLC0415

        return cube(self._store.plan, self.manifest, self.missing_cells, parts(self._store, self._there))

    def verify(self) -> tuple[str, ...]:
        """Read every part that is there and check its digest, its plan, version, columns and cells.

        Returns
        -------
        tuple of str
            What is wrong, a text for each damaged part; none if all are what their run wrote. A digest is no signature.
        """
        from hockeystick.sweep.results.reading import faults  # noqa: PLC0415

        return (*(f"{name}: it has no content" for name in self.damaged), *faults(self._store, self._there))
