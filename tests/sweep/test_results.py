"""Tables that are there: opened, checked, by axes, and asked for their best cell; held against the formulas and SQL."""

import importlib.util
import itertools
import json
import math
import os
import re
import shlex
import shutil
import sqlite3
import sys
import warnings
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import hockeystick as hs
import processes
from hockeystick import sweep
from hockeystick.cli import main
from hockeystick.sweep import OutputError, run
from sweep_plans import content

pytest.importorskip("pyarrow")

from hockeystick.sweep import results

EPS, R = [0.0, 1.0, 2.0, 4.0], [0.5, 1.0, 2.0]
PLAN = {
    "title": "theta",
    "shard_rows": 5,
    "outputs": {"delta": "theta", "tail": {"function": "q_inv", "arguments": {"p": 0.0}}},
    "axes": {"epsilon": EPS, "r": R},
}
# Counts, words, failed cells (mu < 0) and fixed arguments; 24 cells in five parts.
FEDERATION = {
    "shard_rows": 5,
    "outputs": {"mu": "federated.fedavg_gdp", "delta": {"function": "gdp_delta", "arguments": {"mu": 1.0}}},
    "fixed": {"clip_norm": 10.0, "learning_rate": 0.01, "smoothness": 1.0, "num_clients": 50, "epsilon": 1.0},
    "axes": {"schedule": ["constant", "cyclic"], "noise_std": [-1.0, 0.1, 0.5]},
    "zip": [{"local_steps": [50, 100, 200, 50], "rounds": [600, 300, 150, 600]}],
}


@pytest.fixture(scope="module")
def thetas(done):
    """Return a finished table."""
    return done(PLAN)


@pytest.fixture(scope="module")
def federation(done):
    """Return a finished table, a third of whose cells failed."""
    return done(FEDERATION)


@pytest.fixture
def out(tmp_path, thetas):
    """Return a copy of the finished run of the thetas, which a test may damage."""
    return Path(shutil.copytree(thetas, tmp_path / "out"))


def rows_of(out):
    """Return all rows in the order of cells."""
    return sweep.open(out).table().to_table().sort_by("cell").to_pylist()


def test_open(thetas, federation):
    """The object tells the plan, the manifest and that nothing is missing; its table has the values of the formula."""
    table = sweep.open(thetas)
    assert table.plan == PLAN
    assert table.manifest == json.loads((thetas / "_manifest.json").read_text())
    assert (table.num_cells, table.missing_cells, table.damaged, table.verify()) == (12, 0, (), ())
    assert str(table) == "12 cells"
    assert [row["delta"] for row in rows_of(thetas)] == hs.theta(np.array(EPS)[:, None], R).ravel().tolist()
    field = table.table().schema.field("delta")
    assert (field.metadata[b"unit"], field.metadata[b"status"]) == (b"probability", b"exact")
    assert {row["schedule"] for row in rows_of(federation)} == {"constant", "cyclic"}
    texts = [row["error"] for row in rows_of(federation)]
    assert sum(text is not None for text in texts) == 8
    assert all("noise_std" in text for text in texts if text)


def test_missing_parts(out):
    """A table without some parts opens, says how many cells are missing, and gives no best cell unless told to."""
    (out / "cells/part-000001.parquet").unlink()
    table = sweep.open(out)
    assert (table.missing_cells, str(table)) == (5, "12 cells, of which 5 are missing")
    assert len(rows_of(out)) == 7
    with pytest.raises(OutputError, match=r"without 5 of 12: the best may be among those; run the sweep to its end"):
        table.best(minimise="delta")
    best = table.best(minimise="delta", partial=True)
    assert best["delta"] == min(
        hs.theta(eps, r) for cell, (eps, r) in enumerate((e, r) for e in EPS for r in R) if not 5 <= cell < 10
    )
    (out / "cells/part-000001.parquet").write_bytes(b"")
    table = sweep.open(out)
    assert (table.missing_cells, table.damaged) == (5, ("part-000001.parquet",))
    assert table.verify() == ("part-000001.parquet: it has no content",)
    for part in (out / "cells").iterdir():
        part.unlink()
    assert sweep.open(out).missing_cells == 12
    assert rows_of(out) == []


def test_damaged_parts_are_not_read(out):
    """A flipped bit is named by `verify` and refused by `best`; wherever it is in a page, no value of the table changes."""
    part = out / "cells/part-000001.parquet"
    whole = part.read_bytes()
    right, refused = rows_of(out), 0
    for at in range(4, len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), 23):  # before the footer
        part.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        try:
            assert repr(rows_of(out)) == repr(right)  # a flip in statistics, say
        except (OSError, ValueError):
            refused += 1
    assert refused > 5
    table = sweep.open(out)  # with the last flip
    (told,) = table.verify()
    assert told.startswith("part-000001.parquet: it")
    with pytest.raises(OutputError, match=r"out must hold whole parts, not .*part-000001\.parquet: it"):
        table.best(maximise="delta")
    part.write_bytes(whole)
    pq = pytest.importorskip("pyarrow.parquet")
    column = pq.ParquetFile(part).metadata.row_group(0).column(0)
    at = column.data_page_offset + column.total_compressed_size - 1  # the last byte of the values
    part.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
    with pytest.raises(OSError, match=r"CRC checksum verification failed|could not verify page integrity"):
        table.table().to_table()


def test_shares_open(tmp_path):
    """A share opens as what it is."""
    sweep.run(PLAN, tmp_path, shards=(2, 3))
    assert str(sweep.open(tmp_path)) == "share 2 of 3 of a plan of 12 cells, of which 7 are missing"


def test_what_is_no_sweep(tmp_path):
    """A directory without a manifest, or with a plan of another library, is refused by name."""
    with pytest.raises(OutputError, match=r"it has no _manifest\.json"):
        sweep.open(tmp_path)
    (tmp_path / "_manifest.json").write_text('{"format": 3, "plan": {"outputs": {"a": "os.system"}}}')
    with pytest.raises(OutputError, match=r"a plan that this version can read, not .*must name a registered function"):
        sweep.open(tmp_path)


@pytest.mark.parametrize(("asked", "largest"), [("maximise", 4.0), ("minimise", 0.0)])
def test_ties_and_infinities(thetas, asked, largest):
    """Of equal cells the first is the best, and infinity is a value."""
    best = sweep.open(thetas).best(**{asked: "tail"})
    assert (best["cell"], best["tail"]) == (0, math.inf)
    assert sweep.open(thetas).best("tail > 1e308", **{asked: "epsilon"})["epsilon"] == largest


SIGNS = ("<", "<=", ">", ">=", "==", "!=")


def comparisons(columns, signs, values):
    """Return texts that compare a column with a value."""
    return st.builds("{} {} {!r}".format, st.sampled_from(columns), st.sampled_from(signs), values)


leaves = st.one_of(
    comparisons(["mu", "noise_std"], SIGNS, st.floats(-1, 2) | st.integers(-2, 2)),
    comparisons(["local_steps", "rounds", "cell"], SIGNS, st.integers(0, 600) | st.floats(0, 600)),
    comparisons(["schedule"], ["==", "!="], st.sampled_from(["constant", "cyclic", "x"])),
)
conditions = st.recursive(
    leaves,
    lambda inner: (
        st.builds("not ({})".format, inner)
        | st.builds(str.format, st.sampled_from(["({}) and ({})", "({}) or {}", "{} and {}"]), inner, inner)
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def database(federation):
    """Return the table in SQLite, where a number that is not known is null."""
    rows, base = rows_of(federation), sqlite3.connect(":memory:")
    base.execute(f"create table cells ({', '.join(rows[0])})")
    base.executemany(f"insert into cells values ({', '.join('?' * len(rows[0]))})", [[*row.values()] for row in rows])
    return base


@hypothesis.given(conditions, st.sampled_from(["mu", "local_steps", "cell", "noise_std"]), st.booleans())
def test_best_is_that_of_sql(federation, database, text, name, largest):
    """Filter and extreme are those of SQL, whose logic is three-valued: NaN is never the best, and no comparison with it is true."""
    order = "desc" if largest else "asc"
    asked = f"select cell from cells where ({text}) and {name} is not null order by {name} {order}, cell"
    expected = database.execute(asked).fetchone()
    found = sweep.open(federation).best(text, **{"maximise" if largest else "minimise": name})
    assert (found and (found["cell"],)) == expected


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("0.1 <= noise_std < 0.5", (*range(4, 8), *range(16, 20))),
        ("1 == local_steps or 199.5 < local_steps <= 200", (2, 6, 10, 14, 18, 22)),
        ("schedule != 'cyclic' and not (rounds >= 150.5)", (2, 6, 10)),
        ("'cyclic' == schedule and cell <= 1e300 and cell > -1e300 and cell != 12.5", range(12, 24)),
        ("local_steps < 1e-300 or rounds > 9223372036854775808", ()),
        ("  - 1 <= noise_std <= +0.1 and cell < 1_0", (*range(8),)),
        ('error == "x"', ()),
        ("not (mu > 0 and rounds == 7)", range(24)),  # NaN and false is false
        ("mu > 0 or cell >= 0", range(24)),
    ],
)
def test_conditions(federation, text, cells):
    """Chains, words, fractions beside counts, numbers beyond 64 bits."""
    table = sweep.open(federation).table().to_table()
    found = table["cell"].to_numpy()[results.where_true(results.parsed(text), table)]
    assert sorted(found) == list(cells)


def test_counts_are_compared_exactly():
    """Integers beyond 2^53 are not rounded to doubles before they are compared."""
    pa = pytest.importorskip("pyarrow")
    values = [2**53, 2**53 + 1, 2**53 + 2, -(2**63), 2**63 - 1]
    table = pa.table({"n": pa.array(values, pa.int64())})
    for sign, value in itertools.product(SIGNS, (2**53 + 1, 2.0**53, 2**63, -(2**63), 2**63 - 1, 0.5, -1e300)):
        text = f"n {sign} {value!r}"
        for asked, wanted in ((text, True), (f"not {text}", False)):
            found = results.where_true(results.parsed(asked), table)
            assert found.tolist() == [eval(text, {"n": n}) is wanted for n in values], asked


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os').system('touch pwned')", "where must be comparisons of a column with a number"),
        ("(lambda: 1)() < delta", "where must be comparisons"),
        ("delta.real < 1", "where must be comparisons"),
        ("delta < [x for x in (1,)][0]", "where must be comparisons"),
        ("(delta := 2) < 1", "where must be comparisons"),
        ("delta < f'{r}'", "where must be comparisons"),
        ("delta in (1, 2)", "where must be comparisons"),
        ("delta", "where must be comparisons"),
        ("epsilon < r", "where must be comparisons"),
        ("True", "where must be comparisons"),
        ("delta < True", "where must be comparisons"),
        ("delta & epsilon", "where must be comparisons"),
        ("", "where must be comparisons"),
        ("delta < 2or r < 1", "where must be comparisons"),
        ("delta = 1", "; equality is =="),
        ("delta < 1\0", "where must be comparisons"),
        ("delta < 1; import os", "where must be comparisons"),
        ("delta < 1e999", "where must have numbers that are finite doubles"),
        (f"delta < 1{'0' * 400}", "where must have numbers that are finite doubles"),
        ("delta < 'small'", "where must compare delta with a number, not 'small'"),
        ("error == 1", "where must compare error with a quoted word, not 1"),
        ("error < 'a'", "where must compare the words of error by == or !=, not <"),
        ("dleta < 1", "where must name columns of the table, not 'dleta'; did you mean delta?"),
        ("zzz < 1", "where must name columns of the table, not 'zzz'; did you mean "),
        ("delta < 1 and (" * 100, "where must be comparisons"),
        ("(" * 1000 + "delta < 1" + ")" * 990, "where must be comparisons"),
        ("not " * 490 + "delta < 1", "it is nested too deeply"),
        ("not " * 40 + "delta < 1", None),
        ("-" * 1900 + "1 < delta", None),
        ("-" * 1900 + "delta < 1", None),
        ("(" * 190 + "-" * 1600 + "delta < 1" + ")" * 190, None),
        ("delta < 1 and " * 140 + "r < 1", None),
        ("x" * 2001, "where must have at most 2000 characters, not 2001"),
    ],
)
def test_what_is_no_condition(thetas, text, message):
    """It is refused in one line, and nothing of it is run; deep nesting is refused or followed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            sweep.open(thetas).best(text, minimise="cell")
        except ValueError as error:
            found = str(error)
            assert "\n" not in found
            assert len(found) < 400
            assert found.startswith("where must ")
            assert message is None or message in found
        else:
            assert message is None
    assert not Path("pwned").exists()


@pytest.mark.parametrize(
    ("asked", "kind", "message"),
    [
        ({}, ValueError, "one of maximise and minimise must be given, not neither"),
        ({"maximise": "epsilon", "minimise": "epsilon"}, ValueError, "must be given, not both"),
        ({"maximise": "epsilom"}, ValueError, "maximise must name columns of the table, not 'epsilom'; did you mean"),
        ({"minimise": "error"}, ValueError, "minimise must name a column of numbers, not error"),
        ({"where": 3, "minimise": "epsilon"}, TypeError, "where must be a text"),
    ],
)
def test_what_is_no_question(thetas, asked, kind, message):
    """A column that is none, or words, or both directions, are refused."""
    with pytest.raises(kind, match=re.escape(message)):
        sweep.open(thetas).best(**asked)


def test_unsound_columns_are_warned_of(tmp_path):
    """Who chooses by a formula whose proof does not hold is told so; by another column of the table, not."""
    sound = {key: FEDERATION["fixed"][key] for key in ("clip_norm", "learning_rate", "smoothness", "num_clients")}
    plan = {
        "outputs": {"mu": "published.fedavg_gdp", "certified": "federated.fedavg_gdp"},
        "fixed": {**sound, "schedule": "constant", "rounds": 150, "local_steps": 200},
        "axes": {"noise_std": [0.1, 0.5]},
    }
    sweep.run(plan, tmp_path)
    with pytest.warns(UserWarning, match=r"mu = published.fedavg_gdp: .* no privacy guarantee"):
        sweep.open(tmp_path).best("mu <= 1000", maximise="noise_std")
    assert sweep.open(tmp_path).best("certified <= 1000", maximise="noise_std") is not None


def test_by_axes(thetas, federation):
    """Dimensions are the axes, a zip is one of them; values, units, status and what is fixed are where xarray has them."""
    pytest.importorskip("xarray")
    cube = sweep.open(thetas).to_xarray()
    assert cube["delta"].dims == ("epsilon", "r")
    np.testing.assert_array_equal(cube["delta"].values, hs.theta(np.array(EPS)[:, None], R))
    assert cube["delta"].attrs == {"function": "theta", "arguments": "{}", "status": "exact", "units": "probability"}
    assert float(cube["delta"].sel(epsilon=2.0, r=1.0)) == hs.theta(2.0, 1.0)
    assert cube.attrs["missing_cells"] == cube.attrs["failed_cells"] == 0
    assert cube.attrs["title"] == "theta"
    cube = sweep.open(federation).to_xarray()
    assert dict(cube.sizes) == {"schedule": 2, "noise_std": 3, "local_steps": 4}
    assert cube["rounds"].dims == ("local_steps",)
    assert cube["rounds"].values.tolist() == [600, 300, 150, 600]
    assert cube["rounds"].attrs == {"units": "count"}
    assert (float(cube["clip_norm"]), int(cube["num_clients"]), cube.attrs["failed_cells"]) == (10.0, 50, 8)
    assert np.isnan(cube["mu"].sel(noise_std=-1.0)).all()
    for row in rows_of(federation):
        at = {key: FEDERATION["axes"][key].index(row[key]) for key in ("schedule", "noise_std")}
        value = float(cube["mu"].values[at["schedule"], at["noise_std"], row["cell"] % 4])
        assert value == row["mu"] or math.isnan(row["mu"])


def test_by_axes_without_all_parts(out):
    """Missing cells are NaN, and are counted."""
    pytest.importorskip("xarray")
    (out / "cells/part-000002.parquet").unlink()
    cube = sweep.open(out).to_xarray()
    assert cube.attrs["missing_cells"] == 2
    assert np.isnan(cube["delta"].values.ravel()).tolist() == [False] * 10 + [True] * 2


def test_other_rounding_of_axes(out):
    """Axes whose values another NumPy rounded otherwise are not taken for those of the table."""
    pytest.importorskip("xarray")
    manifest = json.loads((out / "_manifest.json").read_text())
    manifest["axes"][0]["sha256"] = "0"
    (out / "_manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(OutputError, match="axes whose values this machine computes alike"):
        sweep.open(out).to_xarray()


def test_without_xarray(thetas, monkeypatch):
    """The extra is named."""
    monkeypatch.delitem(sys.modules, "hockeystick.sweep.results", raising=False)
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r'needs xarray: pip install "\.\[xarray\]" in a clone'):
        sweep.open(thetas).to_xarray()


def test_at_a_url(tmp_path):
    """A table at a URL is read there."""
    pytest.importorskip("fsspec")
    url = f"memory://{tmp_path.name}"
    sweep.run(PLAN, url)
    table = sweep.open(url)
    assert table.verify() == ()
    assert table.table().to_table()["delta"].to_pylist() == hs.theta(np.array(EPS)[:, None], R).ravel().tolist()
    assert table.best("delta <= 0.1", minimise="epsilon") is not None


# The page on results runs as printed, and so does the script for job arrays.


DOCS = Path(__file__).parents[2] / "docs" / "sweep"
BLOCK = re.compile(r"(?:<!-- needs (\w+) -->\n)?```(python|sh)\n(.*?)```", re.DOTALL)
SCRIPT = re.compile(r"<!-- slurm -->\n```sh\n(.*?)```", re.DOTALL)


def test_page(tmp_path, monkeypatch, capsys):
    """Commands end with 0, blocks of Python pass one after the other, and print what their comments say."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for library, kind, block in BLOCK.findall((DOCS / "results.md").read_text(encoding="utf-8")):
        if library and importlib.util.find_spec(library) is None:
            continue
        if kind == "sh":
            for line in block.splitlines():
                assert main(shlex.split(line, comments=True)[1:]) == 0
            continue
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the other readers
            exec(compile(block, "results.md", "exec"), names)  # noqa: S102 - a page of ours
        told = re.findall(r"^ *print\(.*?\) +# (.*)$", block, re.MULTILINE)
        printed = capsys.readouterr().out.splitlines()
        assert all(text in printed for text in told)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
def test_job_array(tmp_path):
    """Three jobs of the script, one of them twice, leave the bytes of one run."""
    (script,) = SCRIPT.findall((DOCS / "scale.md").read_text(encoding="utf-8"))
    assert len(script.splitlines()) <= 10
    (tmp_path / "sweep.sh").write_text(script)
    (tmp_path / "hockeystick").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hockeystick "$@"\n')
    (tmp_path / "hockeystick").chmod(0o755)
    plan = 'shard_rows = 2\n[outputs]\ndelta = "theta"\n[axes]\nepsilon = [0.0, 1.0, 2.0]\nr = [-1.0, 0.5, 1.5]\n'
    (tmp_path / "plan.toml").write_text(plan)
    for job in (2, 1, 2, 3):
        array = {"SLURM_CPUS_PER_TASK": "1", "SLURM_ARRAY_TASK_ID": str(job)}
        path = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
        command = ["sh", "sweep.sh", "plan.toml", "out", "3"]
        processes.run(command, limit=60, cwd=tmp_path, env={**os.environ, **array, **path})
    places = [str(tmp_path / "out" / name) for name in ("whole", "share-1", "share-2", "share-3")]
    assert main(["sweep", "merge", *places]) == 0
    run(tmp_path / "plan.toml", tmp_path / "alone")
    assert content(tmp_path / "out/whole") == content(tmp_path / "alone")
