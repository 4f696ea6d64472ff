"""What a command says on standard error of settings that nearly nobody means."""

from __future__ import annotations

import argparse
import sys


def tell(chosen: argparse.Namespace, *doubts: str | None) -> None:
    """Write the first doubt, one line."""
    text = next(filter(None, doubts), None)
    if text:
        sys.stderr.write(f"hockeystick {chosen.command}: warning: {text}\n")
