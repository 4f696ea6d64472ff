"""Where a sweep is kept: parts of a Parquet table in a folder or at a URL."""

from __future__ import annotations
