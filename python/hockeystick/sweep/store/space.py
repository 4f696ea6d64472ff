"""Whether the table of a plan fits on the disk."""

from __future__ import annotations

from hockeystick.sweep.errors import OutputError
from hockeystick.sweep.plan.plan import Plan
from hockeystick.sweep.store.folder import Folder


def check_space(folder: Folder, plan: Plan, num_cells: int, stored_bytes: int) -> None:
    """Refuse what cannot fit. Inputs repeat and compress to little; computed doubles do not."""
    free = folder.free_bytes()
    if free is None:
        return
    needed = num_cells * bytes_per_cell(plan) - stored_bytes
    if needed > free:
        message = (
            f"axes must make a table that fits on the disk, not {num_cells} cells: "
            f"about {needed / 1e9:.3g} GB are needed, {free / 1e9:.3g} GB are free"
        )
        raise OutputError(message)


def bytes_per_cell(plan: Plan) -> int:
    """Return about how many bytes of a part a cell takes."""
    return 8 * len(plan.outputs) + 4
