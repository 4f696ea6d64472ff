"""The parts of a sweep: what each says of itself, and what a resumed run finds wrong with one."""

import hashlib
import json
import logging
import os
import re
import shutil
from pathlib import Path

import pytest

import hockeystick as hs
import processes
from hockeystick.sweep import OutputError, run
from hockeystick.sweep.plan import parse
from sweep_plans import content, rewritten

pq = pytest.importorskip("pyarrow.parquet")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

from hockeystick.plot import plot_sweep
from hockeystick.sweep import functions, parquet_part
from hockeystick.sweep.parquet_part import DamagedPartError, decode
from hockeystick.sweep.store import manifest, stored_sweep
from hockeystick.sweep.view import choose_cells, read_sample

PLAN = {
    "shard_rows": 4,
    "outputs": {
        "mu": "federated.fedavg_gdp",
        "spent": {"function": "federated.fedavg_epsilon", "arguments": {"delta": 1e-5}},
    },
    "fixed": {"clip_norm": 10.0, "learning_rate": 0.01, "smoothness": 1.0, "num_clients": 50, "local_steps": 5},
    "axes": {"rounds": [10, 20, 30], "noise_std": [0.5, 1.0, 2.0, 4.0]},
}


@pytest.fixture(scope="module")
def whole(done):
    """Return the directory of a finished sweep."""
    return done(PLAN)


def test_metadata(whole):
    """A part names its sweep, and of each column the unit, of each output the function and what its values are worth."""
    stored = json.loads((whole / "_manifest.json").read_text())
    schema = pq.read_schema(whole / "cells/part-000001.parquet")
    told = {key.decode(): value.decode() for key, value in schema.metadata.items()}
    assert told["hockeystick.plan_sha256"] == stored["plan_sha256"]
    assert told["hockeystick.version"] == hs.__version__
    assert told["hockeystick.instruction_set"] == stored["instruction_set"]
    assert schema.field("rounds").metadata[b"unit"] == b"count"
    assert schema.field("spent").metadata == {
        b"function": b"federated.fedavg_epsilon",
        b"arguments": b'{"delta": 1e-05}',
        b"unit": b"nats",
        b"status": b"certified",
    }


def test_digest_is_that_of_the_file(whole):
    """Whoever has the file can check it: SHA-256 with zeros in the digest's own place."""
    for path in (whole / "cells").iterdir():
        data = path.read_bytes()
        digest = pq.read_metadata(path).metadata[b"hockeystick.file_sha256"]
        assert data.count(digest) == 1
        assert hashlib.sha256(data.replace(digest, b"0" * 64)).hexdigest() == digest.decode()


def test_every_flipped_bit_is_found(whole):
    """No bit of a part can change unnoticed: not in pages, statistics, page headers, metadata, lengths or magic."""
    plan, data = parse(PLAN), (whole / "cells/part-000000.parquet").read_bytes()
    identity = manifest(plan)
    assert decode(plan, identity, 0, data).rows == 4
    for at in range(len(data)):
        for bit in (0, at % 7 + 1):
            damaged = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
            with pytest.raises(DamagedPartError, match=r"its digest is not|it is cut short"):
                decode(plan, identity, 0, damaged)


def flip(path, at):
    """Flip a bit of a byte, as a bad disk would."""
    data = path.read_bytes()
    path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])


def foreign(path):
    """Put there the part of a plan that clips at 11."""
    other = {**PLAN, "fixed": {**PLAN["fixed"], "clip_norm": 11.0}}
    run(other, path.parents[2] / "other")
    path.write_bytes((path.parents[2] / "other/cells" / path.name).read_bytes())


def zeroed(path):
    """Set all values of an output to 0."""
    path.write_bytes(rewritten(path.read_bytes(), "spent"))


DAMAGES = {
    "footer": (lambda path: flip(path, path.stat().st_size - 200), r"its digest is not that of its \d+ bytes"),
    "foreign": (foreign, r"it belongs to another sweep, whose plan_sha256 is [0-9a-f]{64}, not [0-9a-f]{64}"),
    "rewritten": (zeroed, r"its digest is not that of its \d+ bytes"),
    "cut": (lambda path: os.truncate(path, 100), r"it is cut short, or was not written by this version of hockeystick"),
    "text": (lambda path: path.write_bytes(b"not Parquet"), r"it is cut short.*\(11 bytes\)"),
    "empty": (lambda path: path.write_bytes(b""), r"it is cut short.*\(0 bytes\)"),
    "swapped": (
        lambda path: shutil.copy(path.with_name("part-000000.parquet"), path),
        "it holds other cells than 4 to 7",
    ),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.values(), ids=[*DAMAGES])
def test_damaged_parts_are_named_and_computed_anew(tmp_path, whole, caplog, damage, reason):
    """A part that the sweep would not have written is named with the reason, and replaced; the others stay."""
    run(PLAN, tmp_path / "out")
    damage(tmp_path / "out/cells/part-000001.parquet")
    with caplog.at_level(logging.WARNING, "hockeystick.sweep"):
        summary = run(PLAN, tmp_path / "out")
    assert summary.computed_rows == 4
    (told,) = summary.damaged
    assert re.search(rf"out/cells/part-000001\.parquet: {reason}", told)
    assert f"{told}; it is computed anew" in caplog.text
    assert f"computed anew, since damaged: {told}" in str(summary)
    assert content(tmp_path / "out") == content(whole)
    assert run(PLAN, tmp_path / "out").damaged == ()


def test_other_units_or_status(whole, monkeypatch):
    """A part whose columns claim another unit or status than this version's is not kept."""
    plan, data = parse(PLAN), (whole / "cells/part-000000.parquet").read_bytes()
    monkeypatch.setattr(parquet_part, "registered", lambda name: functions.registered(name)._replace(worth="exact"))
    with pytest.raises(DamagedPartError, match="it has other units or another status in its columns"):
        decode(plan, manifest(plan), 0, data)


def test_readers_check_parts(tmp_path):
    """A picture is refused, and a report says which cells are missing, where a part is damaged."""
    run(PLAN, tmp_path)
    zeroed(tmp_path / "cells/part-000001.parquet")
    with pytest.raises(ValueError, match=r"out must hold whole parts, not .*part-000001\.parquet: its digest is not"):
        plot_sweep(tmp_path)
    assert read_sample(stored_sweep(tmp_path), choose_cells(parse(PLAN), None, None, None)).missing == [range(4, 8)]


def test_tables_of_an_older_format(tmp_path):
    """A table of another format is neither resumed nor shown, and the message says what to do."""
    run(PLAN, tmp_path)
    stored = json.loads((tmp_path / "_manifest.json").read_text())
    (tmp_path / "_manifest.json").write_text(json.dumps({**stored, "format": 1}))
    with pytest.raises(OutputError, match="format changed from 1 to 3; use another output directory"):
        run(PLAN, tmp_path)
    with pytest.raises(OutputError, match=r"out must be a sweep of format 3, not .* of format 1, which this version"):
        plot_sweep(tmp_path)


THREADS = """
import os, sys, time
import pyarrow.parquet
from hockeystick.sweep import run
axes = {"epsilon": {"linspace": [0, 8], "num": 50}, "r": {"linspace": [0.1, 9], "num": 200}}
plan = {"shard_rows": 1000, "outputs": {"delta": "theta"}, "axes": axes}
def threads():
    time.sleep(0.2)  # the kernel removes a joined thread a little later
    return len(os.listdir("/proc/self/task"))
run(plan, sys.argv[1], num_threads=1)
before = threads()
assert run(plan, sys.argv[1], num_threads=1).computed_rows == 0
print(threads() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_no_threads_of_arrow_hold_a_part(tmp_path):
    """A resumed run leaves none of Arrow's threads behind.

    One that drops the last reference to a part's bytes while the interpreter ends calls std::terminate (exit code 134).
    """
    assert processes.python(THREADS, tmp_path).stdout == "0\n"
