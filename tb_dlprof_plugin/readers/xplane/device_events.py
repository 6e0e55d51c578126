"""What ran on the GPUs: kernels, copies and sets with their launch configurations."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import DeviceKind, DeviceProperties, Ints, LaunchConfig
from tb_dlprof_plugin.readers.xplane.event_table import (
    EventTable,
    distinct,
    named_stats,
    stat_number,
    stat_text,
    text_of,
)
from tb_dlprof_plugin.readers.xplane.xplane_pb2 import XLine, XPlane

_GPU_PLANE = re.compile(r"/device:GPU:(\d{1,6})", re.IGNORECASE)
_DERIVED = frozenset({
    "steps", "xla modules", "xla ops", "async xla ops", "xla traceme", "tensorflow ops", "tensorflow name scope",
    "framework ops", "framework name scope", "source code", "launch stats", "sparse core steps", "derived",
})  # fmt: skip
"""Lines that the profiler's own analysis adds: they repeat the streams' events."""
_DERIVED_IDS = range(0xDEADBEEF - 16, 0xDEADBEEF + 240)
_STREAM = re.compile(r"#\s*(\d{1,12})")
_DETAIL = re.compile(r"(\w+):(\S+)")
_COPY = re.compile(r"(?i)^(async\s*)?mem_?cpy[\s_]*(?P<direction>[HDPA]2[HDPA]|[HDPA]to[HDPA])?")
_SET = re.compile(r"(?i)^mem_?set")
_PLACES = {"pageable": "Pageable", "pinned": "Pinned", "device": "Device", "array": "Array", "managed": "Managed"}
_SIDES = {"h": "Pageable", "d": "Device", "p": "Device", "a": "Array"}


@dataclass(frozen=True, slots=True)
class XPlaneDeviceRows:
    """The activities of all GPUs in the order of ``events``, which hold their stats."""

    events: EventTable
    name: Ints
    kind: Ints
    device: Ints
    stream: Ints
    bytes: Ints
    config: Ints
    configs: list[LaunchConfig]


def gpu_of(plane: XPlane) -> int | None:
    """The number of the GPU that a plane is about; None for other planes."""
    found = _GPU_PLANE.search(text_of(plane.name))
    return int(found[1]) if found else None


def work_lines(plane: XPlane) -> list[XLine]:
    """The lines of a GPU's plane that hold what it did."""
    return [line for line in plane.lines if not _is_derived(line)]


def _is_derived(line: XLine) -> bool:
    name = text_of(line.name).strip().lower()
    return name in _DERIVED or line.id in _DERIVED_IDS or line.id + 2**32 in _DERIVED_IDS


def properties(plane: XPlane, gpu: int) -> DeviceProperties:
    """What a plane says of its GPU."""
    stats = named_stats(plane, plane.stats)
    vendor = stat_text(plane, stats.get("device_vendor"))
    vendor = {"nvidia": "NVIDIA", "amd": "AMD"}.get(vendor.lower(), vendor)
    major, minor = (stat_number(stats.get(f"compute_cap_{one}")) for one in ("major", "minor"))
    cores = stat_number(stats.get("core_count"))
    named = stat_text(plane, stats.get("gpu_device_name"))
    return DeviceProperties(
        id=gpu,
        name=named or _described(vendor, major, minor, cores),
        compute_major=major,
        compute_minor=minor,
        sm_count=cores or None,
        memory_bytes=stat_number(stats.get("memory_size")) or None,
    )


def _described(vendor: str, major: int | None, minor: int | None, cores: int | None) -> str:
    """A name for a GPU whose own was not recorded: what is known of it."""
    known = f"{vendor} GPU".strip()
    if major is not None and minor is not None and vendor != "AMD":
        known += f" of compute capability {major}.{minor}"
    return known + (f" with {cores} {'CUs' if vendor == 'AMD' else 'SMs'}" if cores else "")


def read_rows(events: EventTable, gpu_of_plane: dict[int, int], strings: StringTable) -> XPlaneDeviceRows:
    """The activities on the lines of GPUs' planes.

    Args:
        events: of these lines.
        gpu_of_plane: numbers of the GPUs by the positions of their planes.
        strings: names are added to it.
    """
    stats, count = events.stats, len(events)
    copies = _details(stats["memcpy_details"], strings)
    sets = _details(stats["memset_details"], strings)
    name, kind = events.name.copy(), np.full(count, int(DeviceKind.KERNEL), dtype=np.int64)
    is_kernel = (stats["kernel_details"] > 0).astype(np.int64)
    unique, row = distinct(events.name, stats["memcpy_details"], stats["memset_details"], is_kernel)
    names, kinds, sizes = [], [], []
    for text, copy, fill, kernel in unique.tolist():
        one = _activity(strings.values[text], copies.get(copy), sets.get(fill), bool(kernel))
        names.append(strings.add(one[0]))
        kinds.append(int(one[1]))
        sizes.append(one[2])
    size = np.full(count, -1, dtype=np.int64)
    if count:
        name, kind, size = (np.array(column, dtype=np.int64)[row] for column in (names, kinds, sizes))
    config, configs = _configs(stats["kernel_details"], stats["theoretical_occupancy_pct"], strings)
    return XPlaneDeviceRows(
        events=events,
        name=name,
        kind=kind,
        device=np.array([gpu_of_plane.get(line.plane, 0) for line in events.lines], dtype=np.int64)[events.line],
        stream=np.array([_stream(line.name, line.id) for line in events.lines], dtype=np.int64)[events.line],
        bytes=size,
        config=config,
        configs=configs,
    )


def _stream(name: str, number: int) -> int:
    found = _STREAM.search(name)
    return int(found[1]) if found else number


def _details(column: Ints, strings: StringTable) -> dict[int, dict[str, str]]:
    """The "key:value" pairs of each text."""
    return {one: dict(_DETAIL.findall(strings.values[one])) for one in np.unique(column).tolist() if one}


def _activity(
    name: str, copy: dict[str, str] | None, fill: dict[str, str] | None, is_kernel: bool
) -> tuple[str, DeviceKind, int]:
    """Name in Kineto's words, kind and bytes (-1: not recorded) of an activity."""
    if is_kernel:
        return name, DeviceKind.KERNEL, -1
    if fill is not None or _SET.match(name):
        where = _PLACES.get((fill or {}).get("kind", "").lower(), "Device")
        return f"Memset ({where})", DeviceKind.MEMSET, _bytes(fill)
    found = _COPY.match(name)
    if copy is None and found is None:
        return name, DeviceKind.KERNEL, -1
    direction = (found["direction"] or "").upper().replace("TO", "2") if found else ""
    if len(direction) != 3:
        return name, DeviceKind.MEMCPY, _bytes(copy)
    source, target = (
        _PLACES.get((copy or {}).get(key, "").lower(), _SIDES[side])
        for key, side in (("kind_src", direction[0].lower()), ("kind_dst", direction[2].lower()))
    )
    return f"Memcpy {direction[0]}to{direction[2]} ({source} -> {target})", DeviceKind.MEMCPY, _bytes(copy)


def _bytes(details: dict[str, str] | None) -> int:
    text = (details or {}).get("num_bytes") or (details or {}).get("size") or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1


def _configs(details: Ints, occupancy: Ints, strings: StringTable) -> tuple[Ints, list[LaunchConfig]]:
    """The row of each activity's launch configuration; row 0 is that of which nothing is known."""
    unique, row = distinct(details, np.clip(occupancy, -1, 100))
    configs = [LaunchConfig()]
    rows = []
    for text, percent in unique.tolist():
        if not text:
            rows.append(0)
            continue
        rows.append(len(configs))
        configs.append(_config(dict(_DETAIL.findall(strings.values[text])), percent))
    column = np.array(rows, dtype=np.int64)[row] if rows else np.zeros(0, dtype=np.int64)
    return column, configs


def _config(details: dict[str, str], occupancy_percent: int) -> LaunchConfig:
    shared = [_number(details.get(key)) for key in ("static_shared", "dynamic_shared", "shm", "group_mem")]
    known = [one for one in shared if one is not None]
    percent = occupancy_percent if occupancy_percent > 0 else round(_fraction(details.get("occ_pct")))
    return LaunchConfig(
        grid=_sizes(details.get("grid")),
        block=_sizes(details.get("block")),
        registers_per_thread=_number(details.get("regs")),
        shared_memory_bytes=sum(known) if known else None,
        # 0 stands for unknown: ROCm's tracer does not compute it.
        occupancy_percent=percent if 0 < percent <= 100 else None,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def _fraction(text: str | None) -> float:
    return float(text) if text and re.fullmatch(r"\d{1,3}(\.\d{1,9})?", text) else 0.0


def _sizes(text: str | None) -> tuple[int, int, int] | None:
    parts = [_number(part) for part in (text or "").split(",")]
    if len(parts) != 3 or None in parts:
        return None
    return (parts[0] or 0, parts[1] or 0, parts[2] or 0)
