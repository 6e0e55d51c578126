"""Finds the module of a call: from the hook's ranges, or else from Python frames of ``nn.Module``.

The hook's ranges carry the path in ``named_modules()``. A Python frame carries its class and a number ("Conv2d_3"), so
its path is the chain of views around it: "ResNet_0.Sequential_2.Conv2d_3".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.model.lookup import take_rows
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import HostKind, Timeline
from tb_dlprof_plugin.model.tree import inherit
from tb_dlprof_plugin.names.ops import MODULE_PREFIX

FRAME_PREFIX = "nn.Module: "


def with_one_kind_of_module(timeline: Timeline) -> Timeline:
    """The timeline without Python module views where the hook's ranges give better names."""
    host = timeline.host
    frames = host.kind == HostKind.PYTHON_MODULE
    if not frames.any() or not hook_ranges(timeline).any():
        return timeline
    return replace(timeline, host=take_rows(host, ~frames))


def hook_ranges(timeline: Timeline) -> Ints:
    """Rows of the hook's ranges among the host events."""
    named = np.array([text.startswith(MODULE_PREFIX) for text in timeline.strings], dtype=np.bool_)
    return np.flatnonzero(named[timeline.host.name])


def module_paths(timeline: Timeline, parent: Ints) -> Ints:
    """String index of the path of each module range and frame, 0 for other host events. Appends to the strings."""
    host, strings = timeline.host, timeline.strings
    table = StringTable.over(strings)
    result = np.zeros(len(host), dtype=np.int64)
    for row in hook_ranges(timeline).tolist():
        result[row] = table.add(strings[host.name[row]].removeprefix(MODULE_PREFIX))
    is_frame = host.kind == HostKind.PYTHON_MODULE
    frames = np.flatnonzero(is_frame)
    rows = np.arange(len(host), dtype=np.int64)
    around = inherit(np.where(is_frame, rows, -1), is_frame, parent)
    # Rows stand parents first: the path of the view around is there when it is needed.
    for row in frames.tolist():
        name = strings[host.name[row]].removeprefix(FRAME_PREFIX)
        above = int(around[parent[row]]) if parent[row] >= 0 else -1
        result[row] = table.add(f"{strings[result[above]]}.{name}" if above >= 0 else name)
    return result
