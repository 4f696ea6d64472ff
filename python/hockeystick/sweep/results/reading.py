"""The parts of a table that is there, read: as one data set, or one by one with their digests checked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import dataset as data_sets

from hockeystick.sweep.errors import OutputError
from hockeystick.sweep.store.parquet_part import DamagedPartError, decode, schema_of, whole_table
from hockeystick.sweep.store.store import Store
from hockeystick.sweep.store.stored import part_content


def data_set(store: Store, shards: Sequence[int]) -> data_sets.Dataset:
    """Return these parts as a data set, whose pages are checked by their checksums as they are read."""
    schema = readable(schema_of(store.plan))
    if not shards:
        return data_sets.dataset(schema.empty_table())
    folder: Any = store.folder
    system = getattr(folder, "system", None)  # of fsspec, at a URL
    root = folder.root if system else os.fspath(Path(folder.root).absolute())
    names = [f"{root.rstrip('/')}/cells/{store.name(index)}" for index in shards]
    checked = data_sets.ParquetFragmentScanOptions(page_checksum_verification=True)
    kind = data_sets.ParquetFileFormat(default_fragment_scan_options=checked)
    return data_sets.dataset(names, schema=schema, format=kind, filesystem=system)


def parts(store: Store, shards: Sequence[int]) -> Iterator[tuple[range, pa.Table]]:
    """Yield the cells and the rows of each of these parts, once its digest is right."""
    for index in shards:
        try:
            table = whole_table(store.plan, store.manifest, index, part_content(store, index))
        except DamagedPartError as error:
            message = (
                f"out must hold whole parts, not {store.folder}/cells/{store.name(index)}: {error}; "
                "run the sweep again to repair it"
            )
            raise OutputError(message) from error
        yield store.plan.shard(index), table.cast(readable(table.schema))


def faults(store: Store, shards: Sequence[int]) -> Iterator[str]:
    """Read these parts, and yield what is wrong with each that is not as its run wrote it."""
    yield from filter(None, (_fault(store, index) for index in shards))


def _fault(store: Store, index: int) -> str:
    try:
        decode(store.plan, store.manifest, index, part_content(store, index))
    except DamagedPartError as error:
        return f"{store.name(index)}: {error}"
    return ""


def readable(schema: pa.Schema) -> pa.Schema:
    """Return a schema without dictionaries: words are strings to whoever reads a table."""
    for at, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            schema = schema.set(at, field.with_type(field.type.value_type))
    return schema
