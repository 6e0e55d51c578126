"""Files with counters of kernels: which ones those are, and what they hold, as columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tb_dlprof_plugin.model.profile import KernelCounters
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.ncu.csv_export import is_export, read_export
from tb_dlprof_plugin.readers.ncu.measured_launch import MeasuredLaunch
from tb_dlprof_plugin.readers.ncu.report_file import is_report, read_report

TITLE = "counters of Nsight Compute (*.ncu-rep, or the text of ncu --csv --page raw)"
_NUMBERS = ("duration_ns", "tensor_instructions", "occupancy_permille", "dram_bytes", "flops")


def recognises(path: Path) -> bool:
    """Whether a file holds counters; False for what cannot be read."""
    try:
        return path.is_file() and (is_report(path) or is_export(path))
    except OSError:
        return False


def read_counters(path: Path) -> list[MeasuredLaunch]:
    """The measured launches of a file.

    Raises:
        TraceError: it cannot be read, or holds none.
    """
    try:
        return read_report(path) if is_report(path) else read_export(path)
    except OSError as error:
        raise TraceError(f"{path} cannot be read ({error.strerror}); check the path.") from None


def as_columns(launches: list[MeasuredLaunch], strings: list[str]) -> KernelCounters:
    """The launches as columns; names are added to ``strings``."""
    table = StringTable.over(strings)
    return KernelCounters(
        name=np.array([table.add(launch.name) for launch in launches], dtype=np.int64),
        grid=np.array([launch.grid for launch in launches], dtype=np.int64).reshape(-1, 3),
        block=np.array([launch.block for launch in launches], dtype=np.int64).reshape(-1, 3),
        **{name: np.array([getattr(launch, name) for launch in launches], dtype=np.int64) for name in _NUMBERS},
    )
