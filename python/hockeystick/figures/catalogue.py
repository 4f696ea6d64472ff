"""Which figures and tables there are, and how one is found and written."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hockeystick._checks import count_scalar
from hockeystick.figures import style
from hockeystick.figures.table import Table
from hockeystick.published.statements import PAPERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 150
DIGITS = "scikit-learn's digits"


@dataclass(frozen=True)
class Entry:
    """A figure or table: what it shows, and the functions that make it.

    Parameters
    ----------
    name : str
        The paper's number and what is numbered there, such as "002/2" or "004/table-7"; words for what no paper has.
    shows : str
        One clause.
    seconds : int
        Of processor time, about, with the default settings.
    module : str
        Of this package, with the functions that compute and draw.
    suffix : str
        Of the names of these functions.
    data : str
        What stands in for the data of the paper; empty where the figure has none.
    settings : mapping
        Arguments of the function that computes.

    Examples
    --------
    >>> from hockeystick import figures
    >>> entry = figures.find("004/3")
    >>> print(entry.paper, entry.shows, sep=": ")
    Sun, Shen, Tao 2024: the four schedules of step sizes
    """

    name: str
    shows: str
    seconds: int
    module: str
    suffix: str = ""
    data: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def paper(self) -> str:
        """Authors and year."""
        return PAPERS[self.name.partition("/")[0]][1]

    @property
    def file(self) -> str:
        """The name of its files, without a suffix."""
        return self.name.replace("/", "-")

    def table(self, *, runs: int | None = None) -> Table:
        """Compute the data.

        Parameters
        ----------
        runs : int, optional
            How often an experiment is repeated; without it, as often as its module says. Entries without data have no runs.

        Returns
        -------
        Table
            One observation a row.
        """
        repeats = {} if runs is None or not self.data else {"runs": count_scalar("runs", runs)}
        table: Table = self._function("compute")(**self.settings, **repeats)
        return table

    def draw(self, table: Table) -> Figure:
        """Draw the data.

        Parameters
        ----------
        table : Table
            As `table` returns it.

        Returns
        -------
        matplotlib.figure.Figure
            Without pyplot's state.
        """
        figure: Figure = self._function("draw")(table)
        return figure

    def _function(self, verb: str) -> Any:
        module = importlib.import_module(f"hockeystick.figures.{self.module}")
        return getattr(module, f"{verb}_{self.suffix}" if self.suffix else verb)


_REGIONS = "which bound of it is smallest, over eps and rounds"
_NOT_CONVEX = "the same, a model that is not convex"
_SENSITIVITY: dict[str, Any] = {"module": "sensitivity_study", "data": f"{DIGITS} for CIFAR-10"}
_NETWORK: dict[str, Any] = {"model": "network"}
_PAIRS: dict[str, Any] = {"module": "isrl_experiments", "data": f"{DIGITS} for MNIST"}
_REGRESSION: dict[str, Any] = {"module": "isrl_experiments", "data": "scikit-learn's diabetes for insurance charges"}
_CLASSES: dict[str, Any] = {"module": "isrl_experiments", "data": f"{DIGITS} for obesity levels"}
_ENTRIES = (
    Entry("000/2", "delta of Theorem 2 against eps, for three sub-sampling rates", 10, "trusted_aggregator"),
    Entry(
        "001/trade-off",
        "leakage and utility loss over the total variation, as printed and as they are",
        1,
        "distortion",
    ),
    Entry("002/2", "Theorem 4 and Proposition 1, convex losses", 1, "projected_sgd", settings={"number": 2}),
    Entry("002/3", "the same, strongly convex losses", 1, "projected_sgd", settings={"number": 3}),
    Entry("002/once", "exact, certified and published delta of a record used once", 1, "hidden_states", "once"),
    Entry("002/once-regions", _REGIONS, 1, "hidden_states", "once_regions"),
    Entry("002/every-round", "the same of a record used in every round", 2, "hidden_states", "every_round"),
    Entry("002/every-round-regions", _REGIONS, 23, "hidden_states", "every_round_regions"),
    Entry("003/1", "from whom each notion of privacy hides a record", 1, "trust", settings={"number": 1}),
    Entry("003/2", "whom one trusts, by notion of privacy", 1, "trust", settings={"number": 2}),
    Entry("003/3", "upper and lower rates of the excess risk, and rounds", 1, "isrl_rates"),
    Entry("003/4", "error against eps, M = 25 and 12 of 25 silos", 30, settings={"number": 4}, **_PAIRS),
    Entry("003/5", "the same of a regression, N = 10, M = 10 and 5", 45, settings={"number": 5}, **_REGRESSION),
    Entry("003/6", "the same of softmax, N = 7, M = 7 and 3", 60, settings={"number": 6}, **_CLASSES),
    Entry("003/7", "Figure 4 with M = 18", 15, settings={"number": 7}, **_PAIRS),
    Entry("003/8", "Figure 5 with N = 3, M = 3 and 2", 50, settings={"number": 8}, **_REGRESSION),
    Entry("003/9", "Figure 5 with N = 5, M = 3 and N = 15, M = 8", 40, settings={"number": 9}, **_REGRESSION),
    Entry("004/theorems", "Theorems 12(a) and 15 as printed and certified", 1, "fedavg_as_printed", "theorems"),
    Entry("004/table-1", "five parameters as printed and as certified, over rounds", 1, "fedavg_as_printed", "table_1"),
    Entry("004/table-3", "sensitivities of a round as printed and as they are", 1, "fedavg_as_printed", "table_3"),
    Entry("004/table-4", "noise of nine earlier works and of this one, in order", 1, "fedavg_as_printed", "table_4"),
    Entry("004/2", "sensitivity over m, K, V, alpha; softmax", 20, suffix="figure_2", **_SENSITIVITY),
    Entry("004/2-network", _NOT_CONVEX, 40, suffix="figure_2", settings=_NETWORK, **_SENSITIVITY),
    Entry("004/table-7", "accuracy and sensitivity over alpha; softmax", 40, suffix="table_7", **_SENSITIVITY),
    Entry("004/table-7-network", _NOT_CONVEX, 45, suffix="table_7", settings=_NETWORK, **_SENSITIVITY),
    Entry("004/3", "the four schedules of step sizes", 1, "fedavg_as_printed", "schedules"),
    Entry(
        "004/table-6", "accuracy over m, K, sigma, with certified eps", 45, "fedavg_accuracy", "", f"{DIGITS} for MNIST"
    ),
)


def catalogue() -> tuple[Entry, ...]:
    """Return all figures and tables, by paper.

    Returns
    -------
    tuple of Entry
        In the order of their names' papers.

    Examples
    --------
    >>> from hockeystick import figures
    >>> print(*(entry.name for entry in figures.catalogue() if entry.name.startswith("002/")))
    002/2 002/3 002/once 002/once-regions 002/every-round 002/every-round-regions
    """
    return _ENTRIES


def find(name: str) -> Entry:
    """Return the entry of a name.

    Parameters
    ----------
    name : str
        Of one that `catalogue` lists.

    Returns
    -------
    Entry
        With its functions.

    Raises
    ------
    ValueError
        If there is none; the message has the nearest name.

    Examples
    --------
    >>> from hockeystick import figures
    >>> figures.find("002/2").shows
    'Theorem 4 and Proposition 1, convex losses'
    """
    entries = {entry.name: entry for entry in catalogue()}
    if name not in entries:
        near = difflib.get_close_matches(str(name), entries, n=1, cutoff=0.0)[0]
        raise ValueError(
            f"name must be one of those that `hockeystick figures` lists, not {name!r}; did you mean {near!r}?"
        )
    return entries[name]


def write(entry: Entry, folder: str | Path, *, runs: int | None = None) -> list[Path]:
    """Write the data and the picture of an entry.

    Parameters
    ----------
    entry : Entry
        From `find` or `catalogue`.
    folder : str or path
        Made if it is not there.
    runs : int, optional
        See `Entry.table`.

    Returns
    -------
    list of Path
        The files, CSV, PNG and SVG.

    Raises
    ------
    ImportError
        If Matplotlib is not installed; the data are written all the same.

    Examples
    --------
    >>> import tempfile
    >>> from hockeystick import figures
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(*(file.name for file in figures.write(figures.find("004/3"), folder)))
    004-3.csv 004-3.png 004-3.svg
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{entry.file}.{suffix}" for suffix in ("csv", "png", "svg")]
    table = entry.table(runs=runs)
    table.to_csv(files[0])
    with style.look():
        figure = entry.draw(table)
        figure.savefig(files[1], dpi=DOTS_PER_INCH)
        figure.savefig(files[2], metadata={"Date": None})
    return files
