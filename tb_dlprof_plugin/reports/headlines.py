"""The headline of a report: that of the page on the same subject, or about the row with most time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.formatting import byte_size, duration
from tb_dlprof_plugin.pages.advice import advice_page
from tb_dlprof_plugin.pages.kernels import kernels_page
from tb_dlprof_plugin.pages.modules import modules_page
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.pages.overview import overview
from tb_dlprof_plugin.pages.tensor_cores import tensor_cores_page
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.table import Cell, Report
from tb_dlprof_plugin.store.run_ref import RunRef

_Row = dict[str, Cell]

_PAGES: dict[str, Callable[[ProfileView, RunRef, Selection], Any]] = {
    "summary": overview,
    "detail": ops_page,
    "kernel": kernels_page,
    "tensor": tensor_cores_page,
    "group_node": modules_page,
    "expert_systems": advice_page,
}


def report_headline(name: str, report: Report, view: ProfileView, ref: RunRef, selection: Selection) -> str:
    """The sentence of one report over the selected iterations.

    Args:
        name: a key of `REPORTS`.
        report: the report of that name.
        view: the recording.
        ref: its identity.
        selection: the iterations that the report adds up.
    """
    if name in _PAGES:
        return str(_PAGES[name](view, ref, selection).headline)
    if not report.rows:
        return _EMPTY[name]
    keys = report.json_keys()
    return _LEADS[name]([dict(zip(keys, row, strict=True)) for row in report.rows])


def _number(cell: Cell) -> float:
    return float(cell) if isinstance(cell, int | float) else 0.0


def _most(rows: list[_Row], key: str) -> _Row:
    return max(rows, key=lambda row: _number(row[key]))


def _count(many: int, one: str, more: str) -> str:
    return f"1 {one}" if many == 1 else f"{many:,} {more}"


def _time(row: _Row, key: str, share: Cell) -> str:
    """Such as "222 ms (40.8 %)"; without the share where there is none."""
    return duration(_number(row[key])) + (f" ({_number(share):.1f} %)" if share is not None else "")


def _iteration(rows: list[_Row]) -> str:
    first = _most(rows, "gpu_time_ns")
    ran = f"{_count(len(rows), 'kernel, copy or set', 'kernels, copies and sets')} ran"
    longest = f"{first['kernel_name']}, {_time(first, 'gpu_time_ns', None)} in iteration {first['iteration']}"
    return f"{ran}; the longest is {longest}."


def _op_type(rows: list[_Row]) -> str:
    unit = "gpu" if any(_number(row["total_gpu_time_ns"]) for row in rows) else "cpu"
    key = f"total_{unit}_time_ns"
    first = _most(rows, key)
    share = percent(_number(first[key]), sum(_number(row[key]) for row in rows))
    ran = f"{_count(len(rows), 'type of op', 'types of op')} ran"
    return f"{ran}; {first['op_name']} takes the most {unit.upper()} time, {_time(first, key, share)}."


def _averages(rows: list[_Row]) -> str:
    first = _most(rows, "self_cpu_ns")
    text = f"{_count(len(rows), 'name', 'names')}; {first['name']} takes the most CPU time of its own, "
    text += _time(first, "self_cpu_ns", first["self_cpu_percent"])
    cuda = _most(rows, "self_cuda_ns")
    if not cuda["self_cuda_ns"]:
        return f"{text}."
    return f"{text}; {cuda['name']} the most GPU time, {_time(cuda, 'self_cuda_ns', cuda['self_cuda_percent'])}."


def _api(rows: list[_Row]) -> str:
    first = _most(rows, "total_time_ns")
    ran = _count(len(rows), "CUDA call", "different CUDA calls")
    longest = f"{first['api_call']}, {_time(first, 'total_time_ns', first['time_percent'])}"
    return f"{ran}; the CPU spends most time in {longest}."


def _copies(rows: list[_Row]) -> str:
    first = _most(rows, "total_time_ns")
    size = f" of {byte_size(_number(first['size_bytes']))}" if first["size_bytes"] is not None else ""
    rate = first["avg_bandwidth_gb_per_s"]
    speed = f", at {_number(rate):.3g} GB/s" if rate is not None else ""
    return (
        f"Copies and sets take {duration(sum(_number(row['total_time_ns']) for row in rows))} of GPU time; most takes "
        f"{first['copy']}{size}, {_time(first, 'total_time_ns', first['time_percent'])}{speed}."
    )


def _kernel_groups(rows: list[_Row]) -> str:
    first = _most(rows, "total_gpu_time_ns")
    ran = _count(len(rows), "group of kernels", "groups of kernels")
    most = _time(first, "total_gpu_time_ns", first["time_percent"])
    return f"{ran} ran; {first['kernel_group']} takes the most GPU time, {most}."


_LEADS: dict[str, Callable[[list[_Row]], str]] = {
    "iteration": _iteration,
    "op_type": _op_type,
    "averages": _averages,
    "api": _api,
    "copies": _copies,
    "kernel_groups": _kernel_groups,
}
_EMPTY = {
    "iteration": "No kernel, copy or set was launched in the selected iterations.",
    "op_type": "No op was called in the selected iterations.",
    "averages": "No op was called in the selected iterations.",
    "api": "No CUDA call was recorded in the selected iterations.",
    "copies": "Nothing was copied or set on a GPU in the selected iterations.",
    "kernel_groups": "No kernel was launched in the selected iterations.",
}
