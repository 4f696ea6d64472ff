"""Parts of a finished sweep, to draw and to print."""

from __future__ import annotations
