"""What trtexec exported of an engine's layers, joined by name with a recording of the same engine.

Nsight Systems has a range for each layer, and its kernels; trtexec knows the layer's type, and with
``--profilingVerbosity=detailed`` the shapes and data types of its inputs.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.model.shapes import InputShapes, InputTable
from tb_dlprof_plugin.model.timeline import HostKind, StatedOp, Timeline, TraceNote
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.tensorrt.files import engine_files
from tb_dlprof_plugin.readers.tensorrt.layers import Layer, read_layers


def engine_layers(path: Path) -> list[Layer]:
    """The layers of the engine that a file of trtexec belongs to.

    Raises:
        TraceError: they were not exported.
    """
    files = engine_files(path)
    layers = read_layers(files.layers) if files.layers else []
    if not layers:
        raise TraceError(
            f"{path} has no layers next to it; run trtexec with --exportLayerInfo=layers.json "
            "--profilingVerbosity=detailed and keep the files together."
        )
    return layers


def with_layers(timeline: Timeline, layers: list[Layer]) -> Timeline:
    """The Timeline with types, shapes and data types of those of its ops that are layers of the engine.

    A note says how many layers were found, and how many of the engine's are not in the recording.
    """
    by_name = {_spelled(layer.name): layer for layer in layers}
    host = timeline.host
    is_op = host.kind == HostKind.OP
    shapes, dtypes = host.shapes.copy(), host.dtypes.copy()
    known_shapes: InputTable[InputShapes] = InputTable(())
    known_dtypes: InputTable[InputDtypes] = InputTable(())
    for of_shapes in timeline.input_shapes[1:]:
        known_shapes.add(of_shapes)
    for of_dtypes in timeline.input_dtypes[1:]:
        known_dtypes.add(of_dtypes)
    stated, found = dict(timeline.stated_ops), 0
    for name in np.unique(host.name[is_op]).tolist():
        layer = by_name.get(_spelled(timeline.strings[name]))
        if layer is None:
            continue
        found += 1
        before = stated.get(name)
        if layer.type != "layer" or before is None:
            module = before.module if before is not None else ""
            stated[name] = StatedOp(layer.type, module, Role.FORWARD if before is None else before.role)
        rows = is_op & (host.name == name)
        if layer.shapes:
            shapes[rows] = known_shapes.add(layer.shapes)
            dtypes[rows] = known_dtypes.add(layer.dtypes)
    if not found:
        note = TraceNote("layers_not_found", "No layer of trtexec's files is in this recording: is it another engine?")
        return replace(timeline, notes=[*timeline.notes, note])
    text = f"Types, shapes and data types of {found} layers are those that trtexec exported"
    missing = len(by_name) - found
    text += f"; {missing} other layers of the engine ran no range of their own." if missing else "."
    return replace(
        timeline,
        host=replace(host, shapes=shapes, dtypes=dtypes),
        input_shapes=known_shapes.values,
        input_dtypes=known_dtypes.values,
        record_shapes=True,
        stated_ops=stated,
        notes=[*timeline.notes, TraceNote("layers_joined", text)],
    )


def _spelled(name: str) -> str:
    return " ".join(name.split())
