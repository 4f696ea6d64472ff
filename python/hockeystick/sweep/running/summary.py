"""What a run tells: how far it is, and at last what it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hockeystick._numeric.printing import format_upper

# Cells done, cells in all, seconds that the rest will take (None if nothing is known).
Progress = Callable[[int, int, "float | None"], object]


@dataclass(frozen=True)
class Summary:
    """What a run did and what its table holds."""

    rows: int  # in the table
    computed_rows: int  # by this run; the others were there
    seconds: float
    compute_seconds: float  # in the functions of the plan and around them, on all workers together, without writing
    write_seconds: float  # of all threads together, encoding included; of workers that write, without encoding
    rows_per_second: float  # computed rows per second of the run
    ranges: dict[str, tuple[float, float]]  # of the finite values of each output
    non_finite: dict[str, int]  # NaN and infinite values of each output
    errors: int  # cells with an error text
    warnings: tuple[str, ...] = ()  # what the functions warned of
    first_error: str = ""  # the first cell with an error text, and the text
    damaged: tuple[str, ...] = ()  # the parts of an earlier run that were computed anew, and what was wrong with each
    share: str = ""  # which part of the plan this was, such as "2 of 4"; empty for all of it
    writers: str = ""  # on a cluster: who wrote the parts of this run, and why not the workers
    # How an output is printed; without an entry here it is rounded up.
    printers: Mapping[str, Callable[[float, str], str]] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return a few lines for a reader."""
        reused = self.rows - self.computed_rows
        share = f"share {self.share}: " if self.share else ""
        lines = [f"{share}{self.rows:,} cells" + (f", {reused:,} of them from an earlier run" if reused else "")]
        if self.computed_rows:
            shares = f"of all threads: computing {self.compute_seconds:.2f} s, writing {self.write_seconds:.2f} s"
            lines.append(f"{self.seconds:.2f} s ({shares}), {self.rows_per_second:,.0f} rows/s")
        lines += [self.writers] if self.writers else []
        for name, (least, greatest) in self.ranges.items():
            count = self.non_finite[name]
            printed = self.printers.get(name, format_upper)
            ends = f"{printed(least, '.6g')} to {printed(greatest, '.6g')}"
            lines.append(f"{name}: {ends}" + (f", {count:,} not finite" if count else ""))
        if self.errors:
            lines.append(f"{self.errors:,} cells have an error; see the column error. The first is {self.first_error}")
        lines += [f"computed anew, since damaged: {text}" for text in self.damaged]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])
