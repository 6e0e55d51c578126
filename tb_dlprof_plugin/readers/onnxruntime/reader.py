"""Makes a Timeline of ONNX Runtime's profile: nodes are ops, runs of the model are iterations.

Events are complete events of Chrome's format with times in microseconds. A node's time on a GPU is that of launching;
what ran there are events of the category "Kernel", which stand behind their node in the file.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tb_dlprof_plugin.model.dtypes import InputDtypes, dtype_named
from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.model.shapes import InputShapes, InputTable
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import (
    DeviceKind,
    HostKind,
    LaunchConfig,
    StatedOp,
    StepMarks,
    Timeline,
    TraceNote,
)
from tb_dlprof_plugin.readers.errors import UNDECODABLE, TraceError
from tb_dlprof_plugin.readers.json_file import number, text_of
from tb_dlprof_plugin.readers.op_names import module_of
from tb_dlprof_plugin.readers.small_tables import DeviceRows, HostRows

_NODE_TIME = "_kernel_time"
_FENCES = ("_fence_before", "_fence_after")
_RUN = "model_run"
_ON_GPU = re.compile(r"(?i)cuda|tensorrt|rocm|migraphx|dml")
_MOST_INPUTS = 16


def read_onnxruntime(path: Path) -> Timeline:
    """The Timeline of a profile.

    Raises:
        TraceError: the file cannot be read, or holds no node.
    """
    events, cut = _events(path)
    tables = _Tables()
    for event in events:
        tables.add(event)
    if not tables.nodes:
        raise TraceError(
            f"{path} holds no node of a model: no inference ran while ONNX Runtime profiled; run the session, then end "
            "it by session.end_profiling()."
        )
    notes = [TraceNote("cut_short", "The file ends early, as after a crash; what was written is read.")] if cut else []
    if tables.gpu_nodes and not tables.device.rows:
        text = (
            "Nodes ran on a GPU, whose kernels were not recorded: times of nodes are those of launching; profile with "
            "Nsight Systems for the GPU's times."
        )
        notes.append(TraceNote("launch_times", text, tables.gpu_nodes))
    return Timeline(
        source=str(path),
        base_time_unix_ns=0,
        strings=tables.strings.values,
        host=tables.host.table(),
        device=tables.device.table(),
        launch_configs=list(tables.configs),
        device_properties=[],
        notes=notes,
        events=len(events),
        input_shapes=tables.shapes.values,
        input_dtypes=tables.dtypes.values,
        record_shapes=len(tables.shapes.values) > 1,
        format="onnxruntime",
        framework="onnxruntime",
        step_marks=tables.steps(),
        stated_ops=tables.stated,
    )


def _events(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """The events, and whether the end of the file is missing: a list that was not closed."""
    text = text_of(path).decode(errors="replace").rstrip().rstrip("\0")
    cut = False
    try:
        content = msgspec.json.decode(text)
    except UNDECODABLE:
        cut = True
        # Up to the end of the last event that is whole.
        end = text.rfind("}\n,") if "}\n," in text else text.rfind("},")
        closed = (text.rstrip(", \n") + "]", text[: end + 1] + "]")
        content = next((found for one in closed if (found := _decoded(one)) is not None), None)
    if not isinstance(content, list):
        raise TraceError(f"{path} is damaged: it is no valid JSON; copy it again, or record again.")
    return [one for one in content if isinstance(one, dict) and isinstance(one.get("name"), str)], cut


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except UNDECODABLE:
        return None


class _Tables:
    """The tables of the Timeline while they are filled."""

    def __init__(self) -> None:
        self.strings = StringTable()
        self.shapes: InputTable[InputShapes] = InputTable(())
        self.dtypes: InputTable[InputDtypes] = InputTable(())
        self.stated: dict[int, StatedOp] = {}
        self.host, self.device = HostRows(), DeviceRows()
        self.configs: dict[LaunchConfig, int] = {LaunchConfig(): 0}
        self.nodes = self.gpu_nodes = 0
        self._runs: list[tuple[int, int]] = []
        self._threads: dict[int, int] = {}
        self._last_node = -1

    def add(self, event: dict[str, Any]) -> None:
        """Takes one event."""
        name, category = event["name"], event.get("cat")
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        start, duration = round(number(event.get("ts")) * 1000), max(0, round(number(event.get("dur")) * 1000))
        thread = self._threads.setdefault(int(number(event.get("tid"))), len(self._threads))
        if category == "Kernel":
            self._kernel(name, args, start, duration)
        elif category == "Node" and name.endswith(_NODE_TIME):
            self._node(name.removesuffix(_NODE_TIME), args, thread, start, duration)
        elif category == "Session" or (category == "Node" and not name.endswith(_FENCES)):
            self.host.add(self.strings.add(name), HostKind.ANNOTATION, thread, start, duration)
            if name == _RUN:
                self._runs.append((start, start + duration))

    def _node(self, name: str, args: dict[str, Any], thread: int, start: int, duration: int) -> None:
        self.nodes += 1
        op = self.strings.add(name or "(no name)")
        self.stated.setdefault(op, StatedOp(str(args.get("op_name") or "node"), module_of(name), Role.FORWARD))
        shapes, dtypes = _inputs(args.get("input_type_shape"))
        self.gpu_nodes += _ON_GPU.search(str(args.get("provider") or "")) is not None
        self._last_node = self.nodes
        self.host.add(
            op, HostKind.OP, thread, start, duration, external_id=self.nodes,
            shapes=self.shapes.add(shapes) if shapes else 0, dtypes=self.dtypes.add(dtypes) if dtypes else 0,
        )  # fmt: skip

    def _kernel(self, name: str, args: dict[str, Any], start: int, duration: int) -> None:
        grid, block = (_sizes(args, side) for side in ("grid", "block"))
        config = self.configs.setdefault(LaunchConfig(grid=grid, block=block), len(self.configs))
        lower = name.lower()
        kind = DeviceKind.KERNEL
        if lower.startswith("memcpy"):
            kind = DeviceKind.MEMCPY
        elif lower.startswith("memset"):
            kind = DeviceKind.MEMSET
        stream = int(number(args.get("stream")))
        row = self.strings.add(name)
        self.device.add(row, kind, stream, start, duration, external_id=self._last_node, config=config)

    def steps(self) -> StepMarks | None:
        """Runs of the model; None without, and where they overlap because several threads ran it."""
        runs = sorted(self._runs)
        if not runs or any(after[0] < before[1] for before, after in itertools.pairwise(runs)):
            return None
        start, stop = (np.array(column, dtype=np.int64) for column in zip(*runs, strict=True))
        return StepMarks(np.arange(len(runs), dtype=np.int64), start, stop, "inference")


def _inputs(value: object) -> tuple[InputShapes, InputDtypes]:
    """Shapes and types of `[{"float": [8, 64]}, ...]`."""
    pairs = [
        (name, sizes)
        for one in (value[:_MOST_INPUTS] if isinstance(value, list) else [])
        if isinstance(one, dict)
        for name, sizes in one.items()
        if isinstance(sizes, list) and all(isinstance(size, int) and 0 <= size < 2**40 for size in sizes)
    ]
    return tuple(tuple(sizes) for _, sizes in pairs), tuple(dtype_named(_DTYPES.get(name, name)) for name, _ in pairs)


_DTYPES = {"double": "float64", "float8e4m3fn": "float8_e4m3fn", "float8e5m2": "float8_e5m2"}


def _sizes(args: dict[str, Any], side: str) -> tuple[int, int, int] | None:
    x, y, z = (number(args.get(f"{side}_{axis}")) for axis in "xyz")
    return (int(x), int(y), int(z)) if x and y and z else None
