"""What a run left, to be compared byte by byte with what another left."""

from pathlib import Path
from typing import Any

from hockeystick.sweep.folders import Folder


def content(out: Path) -> dict[str, bytes]:
    """Return every file below a directory."""
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def whole_files(folder: Folder) -> dict[str, bytes]:
    """Return the files of a sweep that are whole."""
    names = [name for name in folder.entries() if name == "_manifest.json"]
    names += [f"cells/{name}" for name in folder.entries("cells") if name.startswith("part-")]
    return {name: folder.read(name) or b"" for name in names}


def rows_of(files: dict[str, bytes]) -> Any:
    """Return the rows of all parts as one table."""
    import pyarrow as pa  # noqa: PLC0415 - of sweeps only
    import pyarrow.parquet as pq  # noqa: PLC0415

    return pa.concat_tables(
        pq.ParquetFile(pa.BufferReader(data)).read() for name, data in files.items() if "part-" in name
    )


def rewritten(data: bytes, output: str) -> bytes:
    """Return a part with all values of an output set to 0, and the rest as it is, metadata included."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    file = pq.ParquetFile(pa.BufferReader(data))
    told = {key: value for key, value in file.metadata.metadata.items() if key != b"ARROW:schema"}
    table, sink = file.read(use_threads=False).replace_schema_metadata(told), pa.BufferOutputStream()
    at, zeros = table.column_names.index(output), pa.array(np.zeros(table.num_rows))
    pq.write_table(table.set_column(at, table.schema.field(at), zeros), sink, version="2.6", compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def lost_and_doubled(cells: Any, total: int) -> dict[str, int]:
    """Return of how many cells a table has no row, and how many rows are there once more than they should."""
    distinct = len({*cells.to_pylist()})
    return {"rows lost": total - distinct, "rows doubled": len(cells) - distinct}
