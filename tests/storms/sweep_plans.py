"""Plans of sweeps that several tests run, and what a run left at a URL."""

import contextlib
import json
from collections.abc import Mapping

THETA = {
    "shard_rows": 7,
    "outputs": {"delta": "theta", "log_delta": "log_theta"},
    "axes": {"epsilon": {"linspace": [0.0, 4.0], "num": 5}, "r": {"logspace": [0.1, 10.0], "num": 4}},
}


# A training a cell. The compiled loops of its two columns are cached by other tests, so that a fresh process need not compile.
TRAINING = {
    "outputs": {"loss": "training.loss", "epsilon": {"function": "training.epsilon", "arguments": {"delta": 1e-5}}},
    "fixed": {
        "algorithm": "NoisyFedAvg",
        "data": "synthetic",
        "record_loss": "logistic",
        "records_per_silo": 12,
        "num_features": 4,
        "num_silos": 6,
        "local_steps": 2,
        "clip_norm": 1.0,
        "learning_rate": 0.5,
        "seed": 3,
        "num_runs": 3,
    },
    "axes": {"noise_std": [0.1, 0.5], "rounds": [3, 5], "clients_per_round": [2, 6]},
}


# Of every argument of the registered functions a value in the domain of each of them.
GOOD = {
    **dict.fromkeys(("epsilon", "noise_std", "noise_scale", "noise_multiplier", "lipschitz", "radius"), 1.0),
    **dict.fromkeys(("clip_norm", "diameter", "distance", "gradient_bound", "gradient_std", "image_radius", "image_high"), 1.0),
    **dict.fromkeys(("batch_size", "index", "dimension", "local_steps", "silos_per_round", "ball_dimension"), 2),
    **dict.fromkeys(("num_clients", "num_records", "num_silos", "num_users", "rounds", "steps", "period"), 8),
    **dict.fromkeys(("learning_rate", "sampling_rate", "fpr", "suffix"), 0.25),
    **dict.fromkeys(("smoothness", "mu", "prox", "first", "weights"), 1.0),
    "delta": 1e-5, "order": 2.0, "image_low": 0.0, "eta": 0.5, "strong_convexity": 0.25,
    "x": 0.5, "r": 0.5, "p": 0.5, "loss": "convex", "schedule": "constant", "c": 1.0, "z": 1.0, "replacement": True, "quick": True,
}  # fmt: skip


def required_of(function):
    """Return the arguments without which a function refuses all cells."""
    one_of_two = ["noise_std"] * ({"noise_std", "noise_scale"} <= {*function.parameters})
    return [*function.required, *one_of_two]


@contextlib.contextmanager
def workers_here(number):
    """Give a Dask client of so many workers in this process, with one thread each."""
    import distributed  # noqa: PLC0415 - for tests of clusters only

    how = {"threads_per_worker": 1, "processes": False, "dashboard_address": ":0", "protocol": "inproc://"}
    with (
        distributed.LocalCluster(n_workers=number, **how) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


def toml(plan):
    """Return the text of a plan file."""

    def value(given):
        if isinstance(given, Mapping):
            return "{" + ", ".join(f"{key} = {value(inner)}" for key, inner in given.items()) + "}"
        return f"[{', '.join(map(value, given))}]" if isinstance(given, list) else json.dumps(given)

    return "".join(f"{key} = {value(given)}\n" for key, given in plan.items())


def written(plan, folder):
    """Return a new plan file in a folder."""
    (folder / "plan.toml").write_text(toml(plan))
    return folder / "plan.toml"


def changed(base, **sections):
    """Return a plan with sections replaced, or left out where None."""
    return {key: value for key, value in {**base, **sections}.items() if value is not None}


def stored(url):
    """Return every file below a URL."""
    import fsspec  # noqa: PLC0415 - for these tests only

    system, root = fsspec.core.url_to_fs(url)
    system.invalidate_cache()
    root = root.strip("/")
    return {path.strip("/").removeprefix(f"{root}/"): system.cat_file(path) for path in system.find(root)}


# What a run left, to be compared byte by byte with what another left.


def content(out):
    """Return every file below a directory."""
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def whole_files(folder):
    """Return the files of a sweep that are whole."""
    names = [name for name in folder.entries() if name == "_manifest.json"]
    names += [f"cells/{name}" for name in folder.entries("cells") if name.startswith("part-")]
    return {name: folder.read(name) or b"" for name in names}


def rows_of(files):
    """Return the rows of all parts as one table."""
    import pyarrow as pa  # noqa: PLC0415 - of sweeps only
    import pyarrow.parquet as pq  # noqa: PLC0415

    return pa.concat_tables(
        pq.ParquetFile(pa.BufferReader(data)).read() for name, data in files.items() if "part-" in name
    )


def rewritten(data, output):
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


def lost_and_doubled(cells, total):
    """Return of how many cells a table has no row, and how many rows are there once more than they should."""
    distinct = len({*cells.to_pylist()})
    return {"rows lost": total - distinct, "rows doubled": len(cells) - distinct}
