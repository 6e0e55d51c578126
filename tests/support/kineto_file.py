"""Reads a trace that holds one process."""

from __future__ import annotations

import os

from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.readers.kineto import reader


def read_kineto(path: str | os.PathLike[str]) -> Timeline:
    """The only Timeline of a trace."""
    (timeline,) = reader.read_kineto(path)
    return timeline
