"""DLProf's Iteration Report (User Guide 1.8, section 10.4): every launch of a kernel, copy or set, in order of start.

Times of start are ns since the profile's own zero, which is the same for CPU and GPU. DLProf's columns are followed by
those that PyTorch adds.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.metrics.op_inputs import inputs_of_calls
from tb_dlprof_plugin.metrics.unattributed_ops import activity_iteration, all_ops, selected_activities
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import CallKind, Ints
from tb_dlprof_plugin.pages.common import KernelText
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.detail import ANSWERS
from tb_dlprof_plugin.reports.kernel import NO_GPU
from tb_dlprof_plugin.reports.op_names import Inputs, inputs_text, op_names
from tb_dlprof_plugin.reports.table import Cell, Report
from tb_dlprof_plugin.store.run_ref import RunRef

COLUMNS = (
    "Iteration", "Op ID", "Op Name", "Direction", "Op Type", "Kernel Name", "Device ID", "GPU Start Time (ns)",
    "GPU Time (ns)", "API Call Start (ns)", "API Call Time (ns)", "Uses TC", "Grid X", "Grid Y", "Grid Z", "Block X",
    "Block Y", "Block Z", "Data Type", "Input Shapes", "Parameters", "Output Shapes", "Long Kernel Name",
    "Stream ID", "API Call", "Registers per Thread", "Shared Memory (bytes)", "Occupancy (%)", "Copied or Set (bytes)",
    "Precision", "Module",
)  # fmt: skip
_NOT_RECORDED = "Parameters and Output Shapes are empty: recordings do not have them."


def iteration_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """One row per piece of GPU work of the selected iterations."""
    profile = view.profile
    launches, configs, calls, strings = profile.launches, profile.launch_configs, profile.calls, profile.strings
    every, names, iteration = all_ops(view), op_names(view), activity_iteration(view)
    rows = selected_activities(view, selection)
    kernels = _KernelCells(view)
    call = _runtime_calls(view, rows)
    inputs = _inputs(view, rows)
    config_cells = _config_cells(view)
    cells: list[tuple[Cell, ...]] = []
    columns = (
        profile.iterations.number[iteration[rows]], every.of_launch[rows], launches.kernel[rows], launches.config[rows],
        launches.device[rows], launches.stream[rows], launches.start_ns[rows], launches.duration_ns[rows],
        launches.bytes[rows], call, every.api_call[rows], inputs,
    )  # fmt: skip
    api_start, api_ns = calls.start_ns.tolist(), calls.duration_ns.tolist()
    api_name = profile.ops.name[calls.op].tolist()
    of_inputs: dict[int, Inputs] = {}
    for number, op, kernel, config, device, stream, start, duration, moved, called, timed, taken in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        name = names[op]
        short, long, uses, precision = kernels[kernel]
        grid, block, rest = config_cells[config] if len(configs) else ((None,) * 3, (None,) * 3, (None,) * 3)
        text = of_inputs.setdefault(taken, inputs_text(view, taken)) if taken not in of_inputs else of_inputs[taken]
        cells.append(
            (
                number, name.id, name.name, name.direction, name.op_type, short, device, start, duration,
                api_start[called] if called >= 0 else None, api_ns[timed] if timed >= 0 else None, uses, *grid, *block,
                text.data_type, text.shapes, None, None, long,
                stream, strings[api_name[called]] if called >= 0 else None, *rest, moved if moved >= 0 else None,
                precision, name.module,
            )
        )  # fmt: skip
    return Report(COLUMNS, cells, notes=(_NOT_RECORDED,) if profile.has_gpu else (NO_GPU,))


class _KernelCells(dict[int, tuple[str, str, bool | None, str | None]]):
    """By row of `Profile.kernels` the cells that describe the kernel, created on first use."""

    def __init__(self, view: ProfileView) -> None:
        self._view = view

    def __missing__(self, kernel: int) -> tuple[str, str, bool | None, str | None]:
        text = KernelText(self._view, kernel)
        self[kernel] = text.short_name, text.name, ANSWERS[text.tensor_core], text.precision or None
        return self[kernel]


def _runtime_calls(view: ProfileView, rows: Ints) -> Ints:
    """The CUDA call that launched each activity, -1 where none was recorded."""
    call = view.profile.launches.call[rows]
    if not len(view.profile.calls):
        return call
    runtime = (view.profile.ops.kind == CallKind.RUNTIME)[view.profile.calls.op]
    return np.where(take_or(runtime, call, False), call, -1)


def _inputs(view: ProfileView, rows: Ints) -> Ints:
    """Row of `Profile.ops` with the inputs of the op that launched each activity, -1 where none were recorded."""
    call = view.profile.launches.call[rows]
    if not len(view.profile.calls):
        return call
    return take_or(inputs_of_calls(view), call, -1)


_Three = tuple[Cell, Cell, Cell]


def _config_cells(view: ProfileView) -> list[tuple[_Three, _Three, _Three]]:
    """Per row of `Profile.launch_configs` grid, block, and registers, shared memory and occupancy."""
    configs = view.profile.launch_configs

    def known(values: list[int]) -> _Three:
        x, y, z = (None if value < 0 else value for value in values)
        return x, y, z

    # Kineto writes 0 percent without an estimate.
    occupancy = np.where(configs.occupancy_percent > 0, configs.occupancy_percent, -1)
    rest = np.stack((configs.registers_per_thread, configs.shared_memory_bytes, occupancy), axis=1)
    return [
        (known(grid), known(block), known(other))
        for grid, block, other in zip(configs.grid.tolist(), configs.block.tolist(), rest.tolist(), strict=True)
    ]
