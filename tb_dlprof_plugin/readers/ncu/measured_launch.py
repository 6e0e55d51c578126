"""What the metrics of one launch in a report of Nsight Compute say, in base units.

Metrics: https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#metrics-structure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_SECONDS = {
    "nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1.0, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0,
}  # fmt: skip
_COUNTED = re.compile(r"([kmgtp]?)(byte|bytes|inst|cycle|cycles|thread|op|ops)", re.IGNORECASE)

_DURATION = ("gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration.max", "gpu__time_duration")
_OCCUPANCY = ("sm__warps_active.avg.pct_of_peak_sustained_active",)
_DRAM = ("dram__bytes.sum", "dram__bytes")
_DRAM_PARTS = ("dram__bytes_read.sum", "dram__bytes_write.sum")
_TENSOR = re.compile(
    r"sm(sp)?__(inst_executed_pipe_tensor|pipe_tensor_|ops_path_tensor_)\w*"
    r"\.(sum|avg|max)(\.pct_of_peak_sustained_(active|elapsed)|\.per_\w+)?"
)
"""Without what the GPU could reach at most, such as ".peak_sustained"."""
_TENSOR_OPS = re.compile(r"sm__ops_path_tensor_\w+\.sum")
_SASS = re.compile(r"(?P<unit>smsp|sm)__sass_thread_inst_executed_op_[fhd](?P<op>add|mul|fma)_pred_on\.sum")
_LARGEST = 2**61


@dataclass(frozen=True, slots=True)
class MeasuredLaunch:
    """A kernel's launch: name, and sizes in x, y and z, (-1, -1, -1) where not recorded; other numbers -1 likewise.

    See `tb_dlprof_plugin.model.profile.KernelCounters`.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    duration_ns: int
    tensor_instructions: int
    occupancy_permille: int
    dram_bytes: int
    flops: int


def measured_launch(
    name: str, grid: tuple[int, int, int], block: tuple[int, int, int], metrics: Mapping[str, float]
) -> MeasuredLaunch:
    """The counters of a launch.

    Args:
        name: the kernel's.
        grid: blocks in x, y and z.
        block: threads in x, y and z.
        metrics: values in base units (seconds, bytes) by name.
    """
    tensor = _tensor(metrics)
    seconds, percent = _first(metrics, _DURATION), _first(metrics, _OCCUPANCY)
    dram = _first(metrics, _DRAM)
    if dram is None and all(part in metrics for part in _DRAM_PARTS):
        dram = sum(metrics[part] for part in _DRAM_PARTS)
    return MeasuredLaunch(
        name=name,
        grid=grid,
        block=block,
        duration_ns=_whole(None if seconds is None else seconds * 1e9),
        tensor_instructions=_whole(tensor),
        occupancy_permille=_whole(None if percent is None or not 0 <= percent <= 100 else percent * 10),
        dram_bytes=_whole(dram),
        flops=_whole(_flops(metrics, tensor)),
    )


def in_base_unit(value: float, unit: str) -> float:
    """The value in seconds, bytes or a count, for units such as "usecond", "Kbyte" or "Minst"; others as they are."""
    unit = unit.strip()
    if unit in _SECONDS:
        return value * _SECONDS[unit]
    counted = _COUNTED.fullmatch(unit)
    return value * _SCALES[counted[1].lower()] if counted else value


def _tensor(metrics: Mapping[str, float]) -> float | None:
    """Instructions of the Tensor Core pipe, else the largest of its other metrics; None where none was measured."""
    known = {name: value for name, value in metrics.items() if _TENSOR.fullmatch(name)}
    counted = [value for name, value in known.items() if "__inst_executed" in name and name.endswith(".sum")]
    found = counted or list(known.values())
    # A share of the peak below one counts, too.
    return None if not found else max(1.0, max(found)) if max(found) > 0 else 0.0


def _flops(metrics: Mapping[str, float], tensor: float | None) -> float | None:
    """FLOPs of all pipes; None where those of the Tensor Cores, which worked, or of the others were not measured."""
    counted = {name: found for name in metrics if (found := _SASS.fullmatch(name))}
    units = {found["unit"] for found in counted.values()}
    unit = "smsp" if "smsp" in units else "sm"
    scalar = [
        value * (2 if counted[name]["op"] == "fma" else 1)
        for name, value in metrics.items()
        if name in counted and counted[name]["unit"] == unit
    ]
    ops = [value for name, value in metrics.items() if _TENSOR_OPS.fullmatch(name)]
    if tensor is None or (tensor and not ops) or not (scalar or ops):
        return None
    return sum(scalar) + sum(ops)


def _first(metrics: Mapping[str, float], names: tuple[str, ...]) -> float | None:
    return next((metrics[name] for name in names if name in metrics), None)


def _whole(value: float | None) -> int:
    return round(value) if value is not None and 0 <= value < _LARGEST else -1
