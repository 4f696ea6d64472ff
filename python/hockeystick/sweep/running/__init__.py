"""A sweep at work: its shards on the cores of this machine or on a cluster."""

from __future__ import annotations
