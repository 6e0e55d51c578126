"""Finds the module of a call: from the hook's ranges, or else from Python frames of ``nn.Module``.

The hook's ranges carry the path in ``named_modules()``. A Python frame carries its class and a number ("Conv2d_3"), so
its path is the chain of views around it: "ResNet_0.Sequential_2.Conv2d_3".
"""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import numpy as np

from tb_dlprof_plugin.model.grouping import distinct
from tb_dlprof_plugin.model.lookup import take_rows
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.run_facts import RunFacts
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


_CLASS = re.compile(r"[A-Z][A-Za-z0-9_]+\Z")
"""Names of classes: most ranges by hand for steps and phases are none ("forward", "benchmark_loop")."""
_PHASE = re.compile(
    r"forward|backward|gradient|step|iter|train|eval|valid|test|epoch|batch|warm|benchmark|optim|loss|update|data|load|"
    r"inference|main|profile",
    re.IGNORECASE,
)
_INSTANCE = re.compile(r"(?:_\d+|\[\d+\])\Z")


def with_model_name(facts: RunFacts, timeline: Timeline) -> RunFacts:
    """The facts, with the class that is the outermost in the path of every module as the model.

    Paths of the hook begin below the model: they do not name it, and the hook knows it.
    """
    if facts.model is not None or timeline.format == "kineto":
        return facts
    strings = timeline.strings
    rows = hook_ranges(timeline)
    paths = [strings[name].removeprefix(MODULE_PREFIX) for name in distinct(timeline.host.name[rows]).tolist()]
    roots = {_outermost_class(path) for path in paths if "." in path or _outermost_class(path)}
    if len(roots) != 1 or not any("." in path for path in paths):
        return facts
    (root,) = roots
    return msgspec.structs.replace(facts, model=root) if root else facts


def _outermost_class(path: str) -> str:
    parts = (_INSTANCE.sub("", part) for part in path.split("."))
    return next((part for part in parts if _CLASS.match(part) and not _PHASE.match(part)), "")
