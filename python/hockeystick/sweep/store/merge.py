"""One table of several directories: shares of a plan, or unfinished runs of it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hockeystick.sweep.errors import OutputError
from hockeystick.sweep.plan.axes import shorten
from hockeystick.sweep.store.parquet_part import DamagedPartError, Part, decode
from hockeystick.sweep.store.store import Store, changes, open_store
from hockeystick.sweep.store.stored import part_content, stored_sweep


def merge_into(outs: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> None:
    """Copy the parts of the directories `outs`, each checked, to `out`; its bytes are those of one run of the plan."""
    if isinstance(outs, str | bytes | os.PathLike) or not isinstance(outs, Sequence):
        message = f"outs must be a list of directories or URLs, not {shorten(outs)}"
        raise TypeError(message)
    if not outs:
        message = "outs must name at least one directory, not none"
        raise ValueError(message)
    stores = [stored_sweep(place) for place in outs]
    first = stores[0]
    for other in stores[1:]:
        told = changes(first.manifest, other.manifest)
        if told:
            message = f"outs must be of one sweep, not {first.folder} and {other.folder}: {told[0]}"
            raise OutputError(message)
    holders: list[list[Store]] = [[] for _ in range(first.plan.num_shards)]
    for store in stores:
        for index in store.present():
            holders[index].append(store)
    _check_complete(stores, holders)
    with open_store(out, first.plan, identity=first.manifest) as merged:
        for index, some in enumerate(holders):
            _copy(index, some, merged)


def _check_complete(stores: list[Store], holders: list[list[Store]]) -> None:
    """Refuse to merge less than the whole plan, and say which share is missing or unfinished."""
    absent = [index for index, some in enumerate(holders) if not some]
    if not absent:
        return
    told = []
    for store in stores:
        lacking = len(set(store.shards).intersection(absent))
        name = f"share {store.share} in {store.folder}" if store.share else str(store.folder)
        if lacking:
            told.append(f"{name} lacks {lacking} of its {len(store.shards)} parts; run it again, it resumes")
    jobs = {store.share.jobs for store in stores if store.share}
    if not told and len(jobs) == 1:
        numbers = {store.share.number for store in stores if store.share}
        names = [f"{number}" for number in range(1, 1 + max(jobs)) if number not in numbers]
        told.append(
            f"share {', '.join(names[:20])}{' ...' if len(names) > 20 else ''} of {max(jobs)} is not among them"
        )
    shown = "; ".join(told[:3]) or "run the plan to the end"
    message = f"outs must hold all {len(holders)} parts of the plan; {len(absent)} are missing: {shown}"
    raise OutputError(message)


def _copy(index: int, holders: list[Store], merged: Store) -> None:
    """Publish a part, unless its bytes are there; every copy of it must be whole and the same."""
    source = holders[0]
    try:
        content = part_content(source, index)
        counts = decode(source.plan, source.manifest, index, content)
    except DamagedPartError as error:
        message = f"outs must hold whole parts, not {source.folder}/cells/{source.name(index)}: {error}; run it again to repair it"
        raise OutputError(message) from error
    for other in holders[1:]:
        _check_same(index, content, other, source)
    there = merged.content(index)
    if there == content:
        return
    if there is not None and _is_whole(merged, index, there):
        _check_same(index, content, merged, source)
    merged.write(Part(index, content, counts, 0.0))


def _is_whole(store: Store, index: int, content: bytes) -> bool:
    try:
        decode(store.plan, store.manifest, index, content)
    except DamagedPartError:
        return False
    return True


def _check_same(index: int, content: bytes, other: Store, source: Store) -> None:
    if other.content(index) != content:
        message = (
            f"outs must hold the same bytes, not {source.folder}/cells/{source.name(index)} and another in {other.folder}: "
            "one of them is damaged or was not computed by this sweep"
        )
        raise OutputError(message)
