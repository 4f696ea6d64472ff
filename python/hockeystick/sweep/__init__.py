"""Sweeps: a plan of cells in a file, evaluated in shards, resumable, as a Parquet dataset.

A plan is a TOML file (or a mapping of the same form). It is data: it names registered functions and never runs code.

.. code-block:: toml

    title = "Noisy-FedAvg"             # optional; on top of the pictures
    shard_rows = 65536                 # optional; cells in a part of the table, by default 2048 of costly functions, 1 of trainings
    instruction_set = "v3"             # optional; what all machines compute with, by default the best of the machine that begins

    [outputs]                          # column = function, or a table with arguments that only this output takes
    certified = "federated.fedavg_gdp"
    epsilon = { function = "federated.fedavg_epsilon", arguments = { delta = 1e-5 } }

    [fixed]                            # the same in all cells
    clip_norm = 10.0
    learning_rate = 0.01
    smoothness = 1.0
    schedule = "constant"

    [axes]                             # every combination; the last axis runs fastest
    num_clients = [50, 100]
    noise_std = { logspace = [1e-3, 1.0], num = 4 }    # from value to value, both included; linspace likewise

    [[zip]]                            # these move together, as one axis
    local_steps = [50, 100, 200]
    rounds = [600, 300, 150]           # elsewhere also { range = [150, 600], step = 150 }, whole numbers, ends included

An output takes those of the axes and fixed arguments that its function has. The table in ``out/cells`` has the columns
``cell``, the inputs, the outputs, and ``error``, which says for a cell out of a function's domain why its value is NaN.
The column of a ``best`` function holds its smallest bound.

A cell may be a training: the columns ``training.accuracy``, ``training.epsilon`` and so on take the settings of `hockeystick.simulate`, as
numbers and words under their own names. All columns of a cell share its runs.

An argument that counts something, such as ``steps``, must have whole values. A `logspace` seldom has them: list them.

A sweep runs on the cores of this machine or on a Dask cluster, and writes to a directory or to a URL that fsspec knows.
`open` reads its table, and `merge` makes one table of the shares of a job array.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hockeystick._checks.doors import opened
from hockeystick._checks.hints import missing
from hockeystick.sweep.errors import CellError, ClusterError, OutputError, PlanError

if TYPE_CHECKING:  # what `__getattr__` finds, for those that read and do not run
    from hockeystick.sweep.results import Results, merge, open
    from hockeystick.sweep.running import Summary, run

__all__ = ["CellError", "ClusterError", "OutputError", "PlanError", "Results", "Summary", "merge", "open", "run"]

# Asked for when first needed, since pyarrow is.
_FOUND_IN = {"Results": "results", "Summary": "running", "merge": "results", "open": "results", "run": "running"}


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _FOUND_IN:
            return missing(__name__, __dir__)(name)
        found = getattr(importlib.import_module(f"{__name__}.{_FOUND_IN[name]}"), name)
        globals()[name] = found = opened(found, name, __name__)
        return found
