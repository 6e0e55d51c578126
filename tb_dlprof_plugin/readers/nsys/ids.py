"""Nsight Systems' ids of threads and processes.

    globalTid = hardware (8 bits) | virtual machine (8) | process (24) | thread (24)

The key of a process is the globalTid without the thread, which NVIDIA's own reports join by, too.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.timeline import Ints
from tb_dlprof_plugin.readers.sqlite_tables import MISSING

_BITS = 24
_MASK = (1 << _BITS) - 1


def process_key(global_id: Ints) -> Ints:
    """The process's key of each globalTid or globalPid; `MISSING` stays."""
    return np.where(global_id == MISSING, MISSING, global_id & ~np.int64(_MASK))


def pid_of(key: int) -> int:
    """The process's number on its machine."""
    return (key >> _BITS) & _MASK
