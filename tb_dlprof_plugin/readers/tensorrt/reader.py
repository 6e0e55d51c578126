"""Makes a Timeline of what ``trtexec`` exports. Times are real ones; what stands for a layer in them is its average.

An inference is an iteration; the warm-up is left out. In each, the layers stand end to end with their average times, as
kernels that have the names of TensorRT's tactics. Profiling by layer makes them slower: where they add up to more than
an inference took, they are shown in proportion.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.model.shapes import InputShapes, InputTable
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import (
    DeviceKind,
    DeviceProperties,
    HostKind,
    Ints,
    LaunchConfig,
    StatedOp,
    StepMarks,
    Timeline,
    TraceNote,
)
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.json_file import decoded, number, text_of
from tb_dlprof_plugin.readers.nvtx.tensorrt import path_of
from tb_dlprof_plugin.readers.op_names import module_of
from tb_dlprof_plugin.readers.small_tables import DeviceRows, HostRows
from tb_dlprof_plugin.readers.tensorrt.files import EngineFiles, engine_files, stem_of
from tb_dlprof_plugin.readers.tensorrt.layers import Layer, read_layers
from tb_dlprof_plugin.readers.tensorrt.times import Inference, Span, read_profile, read_times
from tb_dlprof_plugin.readers.warm_up import steady_part, warm_up_count, warm_up_note

MOST_INFERENCES = 200
"""A measurement has thousands, which differ by microseconds behind its warm-up."""
_CPU, _COMPUTE, _TO_GPU, _FROM_GPU = 0, 0, 1, 2


def read_tensorrt(path: Path) -> Timeline:
    """The Timeline of an engine, from the given file and those next to it that belong to it.

    Raises:
        TraceError: a file cannot be read, or none of them holds times.
    """
    files = engine_files(path)
    count, averages = read_profile(files.profile) if files.profile else (0, [])
    recorded = read_times(files.times) if files.times else []
    if not recorded and not any(time for _, time in averages):
        raise TraceError(
            f"{path} holds no times of TensorRT; run trtexec with --exportTimes=times.json "
            "--exportProfile=profile.json and keep the files together."
        )
    layers = {layer.name: layer for layer in (read_layers(files.layers) if files.layers else [])}
    computing_ns = np.array([one.compute.stop_ns - one.compute.start_ns for one in recorded], dtype=np.int64)
    warm_up = warm_up_count(computing_ns)
    part = steady_part(computing_ns[warm_up:], MOST_INFERENCES)
    chosen = _Inferences(warm_up + part.start, computing_ns, warm_up)
    return _Engine(path, files, averages, layers, recorded[warm_up:][part], chosen, count).timeline()


@dataclass(frozen=True, slots=True)
class _Inferences:
    """Which of the measured inferences are read: from ``first`` on, behind a warm-up of the first ``warm_up``.
    ``computing_ns`` is how long each measured one computed."""

    first: int
    computing_ns: Ints
    warm_up: int


class _Engine:
    """The tables of one Timeline."""

    def __init__(
        self, path: Path, files: EngineFiles, averages: list[tuple[str, int]], layers: dict[str, Layer],
        recorded: list[Inference], chosen: _Inferences, averaged: int,
    ) -> None:  # fmt: skip
        self.path, self.files, self.averages, self.layers = path, files, averages, layers
        self.chosen, self.averaged, self.timed = chosen, averaged, bool(recorded)
        whole = Span(0, sum(time for _, time in averages))
        self.inferences = recorded or [Inference(Span(0, 0), Span(0, 0), whole, Span(0, 0))]
        self.strings = StringTable()
        self.shapes: InputTable[InputShapes] = InputTable(())
        self.dtypes: InputTable[InputDtypes] = InputTable(())
        self.stated: dict[int, StatedOp] = {}
        self.host, self.device = HostRows(), DeviceRows()

    def timeline(self) -> Timeline:
        """The Timeline."""
        for inference in self.inferences:
            self._calls(inference)
            self._layers(inference.compute)
        gpu = _gpu(self.path)
        return Timeline(
            source=str(self.path),
            base_time_unix_ns=0,
            strings=self.strings.values,
            host=self.host.table(),
            device=self.device.table(),
            launch_configs=[LaunchConfig()],
            device_properties=[gpu] if gpu else [],
            notes=self._notes(),
            events=len(self.inferences) + len(self.averages),
            input_shapes=self.shapes.values,
            input_dtypes=self.dtypes.values,
            record_shapes=bool(self.layers),
            format="tensorrt",
            framework="tensorrt",
            step_marks=self._steps(),
            stated_ops=self.stated,
        )

    def _calls(self, inference: Inference) -> None:
        """The CPU's call and the copies."""
        name = self.strings.add("ExecutionContext::enqueue")
        span = inference.enqueue
        if span.stop_ns > span.start_ns:
            self.host.add(name, HostKind.ANNOTATION, _CPU, span.start_ns, span.stop_ns - span.start_ns)
        copies = (
            (inference.to_gpu, "Memcpy HtoD (Pinned -> Device)", _TO_GPU),
            (inference.from_gpu, "Memcpy DtoH (Device -> Pinned)", _FROM_GPU),
        )
        for span, copy, stream in copies:
            if span.stop_ns > span.start_ns:
                self._op("copy of inputs" if stream == _TO_GPU else "copy of outputs", "copy", span, copy, stream)

    def _layers(self, compute: Span) -> None:
        """The layers of one inference, end to end."""
        total = sum(time for _, time in self.averages)
        length = compute.stop_ns - compute.start_ns
        if not total:
            self._op("inference", "inference", compute, "inference", _COMPUTE)
            return
        done = 0
        for name, time in self.averages:
            before, done = done, done + time
            if total > length:
                start, stop = before * length // total, done * length // total
            else:
                start, stop = before, done
            span = Span(compute.start_ns + start, compute.start_ns + stop)
            layer = self.layers.get(name) or Layer(name)
            self._op(name, layer.type, span, layer.kernel or name, _COMPUTE, layer)

    def _op(self, name: str, kind: str, span: Span, kernel: str, stream: int, layer: Layer | None = None) -> None:
        """An op at the start of its work, because the CPU did nothing for it alone, and what it ran."""
        op = self.strings.add(name or "(no name)")
        # A layer's name is its module, where it holds none: a network has many of a type.
        module = module_of(name) or (path_of(name) if layer else "")
        self.stated.setdefault(op, StatedOp(kind, module, Role.FORWARD))
        own_id = len(self.host.rows) + 1
        shapes = self.shapes.add(layer.shapes) if layer and layer.shapes else 0
        dtypes = self.dtypes.add(layer.dtypes) if layer and layer.dtypes else 0
        self.host.add(
            op, HostKind.OP, _CPU + 1, span.start_ns, 0, external_id=own_id, shapes=shapes, dtypes=dtypes
        )  # fmt: skip
        if span.stop_ns > span.start_ns:
            what = DeviceKind.MEMCPY if kernel.startswith("Memcpy") else DeviceKind.KERNEL
            length = span.stop_ns - span.start_ns
            self.device.add(self.strings.add(kernel), what, stream, span.start_ns, length, external_id=own_id)

    def _steps(self) -> StepMarks:
        """An inference lasts until the next one computes."""
        start = np.array([inference.compute.start_ns for inference in self.inferences], dtype=np.int64)
        last = self.inferences[-1].compute.stop_ns
        number = np.arange(len(start), dtype=np.int64) + self.chosen.first
        return StepMarks(number, start, np.append(start[1:], last), "inference")

    def _notes(self) -> list[TraceNote]:
        notes = []
        total = sum(time for _, time in self.averages)
        if total:
            text = (
                f"Times of layers are averages of {self.averaged} profiled inferences, not recorded one by one: in "
                "each inference they stand end to end."
            )
            if self.timed and total > min(
                inference.compute.stop_ns - inference.compute.start_ns for inference in self.inferences
            ):
                text += f" They add up to {total / 1e6:.3f} ms, more than an inference took: they are in proportion."
            notes.append(TraceNote("layer_averages", text))
        else:
            text = "Layers were not timed: run trtexec with --exportProfile=profile.json --separateProfileRun, too."
            notes.append(TraceNote("no_layers", text))
        if not self.timed:
            text = "Inferences were not timed: run trtexec with --exportTimes=times.json, too; one is made of averages."
            notes.append(TraceNote("no_times", text))
        warm_up, measured = self.chosen.warm_up, len(self.chosen.computing_ns)
        if warm_up:
            notes.append(warm_up_note(self.chosen.computing_ns, warm_up))
        left_out = measured - warm_up - len(self.inferences)
        if left_out > 0:
            text = (
                f"Of {measured} measured inferences, {MOST_INFERENCES} that follow each other are read, from number "
                f"{self.chosen.first} on: their median is nearest to that of all."
            )
            notes.append(TraceNote("inferences_left_out", text, left_out))
        return notes


def _gpu(path: Path) -> DeviceProperties | None:
    """The GPU, where a file of the engine's name describes it, as TensorRT's Engine Explorer writes."""
    for other in sorted(path.parent.glob("*metadata*.json")):
        if not stem_of(other).startswith(stem_of(path)):
            continue
        try:
            content = decoded(other, text_of(other))
        except TraceError:
            continue
        found = _described(content)
        if found is not None:
            return found
    return None


def _described(content: Any) -> DeviceProperties | None:
    if isinstance(content, list) and content and isinstance(content[0], dict) and "Name" in content[0]:
        one = content[0]
        capability = one.get("ComputeCapability")
        pair = capability if isinstance(capability, list) and len(capability) == 2 else [None, None]
        major, minor = (part if isinstance(part, int) else None for part in pair)
        cores, memory = int(number(one.get("MULTIPROCESSOR_COUNT"))), int(number(one.get("TotalMemory")))
        return DeviceProperties(0, str(one["Name"]), major, minor, cores or None, memory or None)
    information = content.get("device_information") if isinstance(content, dict) else None
    if isinstance(information, dict) and information.get("Selected Device"):
        tenths = round(10 * number(information.get("Compute Capability")))
        major, minor = divmod(tenths, 10) if tenths else (None, None)
        cores = int(number(information.get("SMs")))
        return DeviceProperties(0, str(information["Selected Device"]), major, minor, cores or None, None)
    return None
