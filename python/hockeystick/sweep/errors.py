"""What a sweep refuses, and what it cannot go on without."""

from __future__ import annotations


class PlanError(ValueError):
    """A plan that cannot be run; the message names the key, its value and its domain."""


class OutputError(ValueError):
    """An output directory that cannot be used; the message says why. Nothing was written."""


class CellError(ValueError):
    """A cell that a function refuses, in a strict run; the message names the cell, its inputs and the reason."""


class OtherRunError(OSError):
    """Another run of the same plan writes to the same place, and has come in between; the message says so. The same command resumes."""


class ClusterError(OSError):
    """A cluster that cannot be used or was lost; the message says why. What had been written stays."""
