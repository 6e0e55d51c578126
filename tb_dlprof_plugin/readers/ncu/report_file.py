"""Reads a report of Nsight Compute (``.ncu-rep``) by NVIDIA's own module, where that is installed.

The format is not documented. The module is ``ncu-report`` on PyPI (the extra ``ncu``) and needs no GPU.
"""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.ncu.csv_export import COMMAND
from tb_dlprof_plugin.readers.ncu.measured_launch import MeasuredLaunch, in_base_unit, measured_launch

ENDING = ".ncu-rep"
_MAGIC = b"NVR\x00"


def is_report(path: Path) -> bool:
    """Whether a file is such a report.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return file.read(4) == _MAGIC or path.name.endswith(ENDING)


def read_report(path: Path) -> list[MeasuredLaunch]:
    """The launches in their order.

    Raises:
        TraceError: the module is missing, or cannot read the file.
    """
    try:
        module: Any = importlib.import_module("ncu_report")
    except ImportError:
        raise TraceError(
            f"{path} is a report of Nsight Compute, which takes NVIDIA's module to read: "
            f"pip install ncu-report; or export it where ncu is, and pass the text: {COMMAND}."
        ) from None
    try:
        context = module.load_report(str(path))
        ranges = [context.range_by_idx(at) for at in range(context.num_ranges())]
        actions = [one.action_by_idx(at) for one in ranges for at in range(one.num_actions())]
        launches = [_launch(action) for action in actions]
    except Exception as error:
        raise TraceError(
            f"{path} cannot be read by ncu_report ({error}); export it by a newer ncu: {COMMAND}."
        ) from None
    if not launches:
        raise TraceError(f"{path} holds no launch of a kernel; let ncu measure some: ncu --set full -o REPORT COMMAND.")
    return launches


def _launch(action: Any) -> MeasuredLaunch:
    metrics: dict[str, float] = {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        value = None if metric is None else metric.value()
        if isinstance(value, (int, float)) and math.isfinite(value):
            metrics[name] = in_base_unit(float(value), metric.unit() or "")

    def sizes(what: str) -> tuple[int, int, int]:
        dimensions = [metrics.get(f"launch__{what}_dim_{axis}", -1) for axis in "xyz"]
        return (int(dimensions[0]), int(dimensions[1]), int(dimensions[2]))

    return measured_launch(_name(action), sizes("grid"), sizes("block"), metrics)


def _name(action: Any) -> str:
    try:
        return str(action.name(action.NameBase_DEMANGLED))
    except (AttributeError, TypeError):
        return str(action.name())
