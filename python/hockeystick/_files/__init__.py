"""Files that are there as a whole or not at all."""

from __future__ import annotations

from hockeystick._files.whole import unfinished, write_whole

__all__ = ["unfinished", "write_whole"]
