"""Literal Kineto traces, event by event. Times are microseconds, as in the files."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

from support.kineto_file import read_kineto

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.profile_view import ProfileView

PROCESS, MAIN_THREAD, BACKWARD_THREAD = 100, 1, 2
BACKWARD = "autograd::engine::evaluate_function: "
MODULE = "tb_dlprof::module::"


class TraceBuilder:
    """A Kineto trace under construction; the methods add one event each, `write` makes the file."""

    _numbers = itertools.count()

    def __init__(self, folder: Path, **document: Any) -> None:
        self.folder = folder
        self.events: list[dict[str, Any]] = []
        self.rest: dict[str, Any] = document
        self._correlation = itertools.count(1000)

    def event(
        self, name: str, cat: str, start: float, dur: float, *, pid: Any = PROCESS, tid: Any = MAIN_THREAD, **args: Any
    ) -> None:
        """A complete event; ``args`` with None are left out, underscores in their names stand for blanks."""
        known = {key.replace("_", " "): value for key, value in args.items() if value is not None}
        event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": dur}
        self.events.append(event | ({"args": known} if known else {}))

    def step(self, number: int, start: float, dur: float) -> None:
        """One training step, on the host and, with other times, on the GPU."""
        self.event(f"ProfilerStep#{number}", "user_annotation", start, dur)

    def annotation(self, name: str, start: float, dur: float, tid: int = MAIN_THREAD) -> None:
        self.event(name, "user_annotation", start, dur, tid=tid)

    def loader(self, start: float, dur: float) -> None:
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        self.event(name, "user_annotation", start, dur)

    def optimizer(self, start: float, dur: float) -> None:
        self.event("Optimizer.step#SGD.step", "user_annotation", start, dur)

    def module(self, path: str, start: float, dur: float) -> None:
        self.event(MODULE + path, "cpu_op", start, dur)

    def op(
        self,
        name: str,
        start: float,
        dur: float,
        *,
        tid: int = MAIN_THREAD,
        ext: int | None = None,
        seq: int | None = None,
        fwd: int | None = None,
        dims: Any = None,
        types: Any = None,
        cat: str = "cpu_op",
    ) -> None:
        self.event(
            name, cat, start, dur, tid=tid, External_id=ext, Sequence_number=seq, Fwd_thread_id=fwd,
            Input_Dims=dims, Input_type=types,
        )  # fmt: skip

    def backward(self, node: str, start: float, dur: float, seq: int) -> None:
        """A backward node on the autograd thread."""
        self.op(BACKWARD + node, start, dur, tid=BACKWARD_THREAD, seq=seq, fwd=MAIN_THREAD)

    def runtime(
        self,
        start: float,
        dur: float,
        corr: int | None = None,
        *,
        name: str = "cudaLaunchKernel",
        cat: str = "cuda_runtime",
        tid: int = MAIN_THREAD,
        ext: int | None = None,
    ) -> None:
        self.event(name, cat, start, dur, tid=tid, correlation=corr, External_id=ext)

    def kernel(
        self,
        name: str,
        start: float,
        dur: float,
        corr: int | None = None,
        *,
        ext: int | None = None,
        device: int = 0,
        stream: int = 7,
        cat: str = "kernel",
        **args: Any,
    ) -> None:
        self.event(
            name, cat, start, dur, pid=device, tid=stream, device=device, stream=stream, correlation=corr,
            External_id=ext, **args,
        )  # fmt: skip

    def launch(
        self, name: str, call: float, start: float, dur: float, *, tid: int = MAIN_THREAD, device: int = 0, **args: Any
    ) -> None:
        """A kernel, copy or set and the runtime call of 2 µs that launched it."""
        corr = next(self._correlation)
        call_name, cat = {"Memcpy": ("cudaMemcpyAsync", "gpu_memcpy"), "Memset": ("cudaMemsetAsync", "gpu_memset")}.get(
            name.split(" ", 1)[0], ("cudaLaunchKernel", "kernel")
        )
        self.runtime(call, 2, corr, name=call_name, tid=tid)
        self.kernel(name, start, dur, corr, device=device, cat=cat, **args)

    def memory(
        self,
        at: float,
        size: int,
        address: int | None,
        *,
        allocated: int | None = None,
        reserved: int | None = 0,
        tid: int = MAIN_THREAD,
        device: int | None = None,
    ) -> None:
        """An allocation, or a free with a negative ``size``, and the device's totals after it; no device is the CPU."""
        where = {"Device Type": 0, "Device Id": -1} if device is None else {"Device Type": 1, "Device Id": device}
        args = {"Bytes": size, "Addr": address, "Total Allocated": allocated, "Total Reserved": reserved, **where}
        self.events.append(
            {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": PROCESS, "tid": tid, "ts": at,
             "args": {key: value for key, value in args.items() if value is not None}}
        )  # fmt: skip

    def gpu(self, major: int | None = 9, minor: int | None = 0, *, id: int = 0, name: str = "NVIDIA H200") -> None:
        """Adds to the trace's device properties."""
        device = {"id": id, "name": name, "computeMajor": major, "computeMinor": minor, "numSms": 132}
        self.rest.setdefault("deviceProperties", []).append(device | {"totalGlobalMem": 150_000_000_000})

    def document(self) -> dict[str, Any]:
        return {"schemaVersion": 1, **self.rest, "traceEvents": self.events}

    def write(self, name: str | None = None) -> Path:
        """The file, gzip'd where its name ends in .gz."""
        path = self.folder / (name or f"worker_{next(self._numbers)}.pt.trace.json")
        data = json.dumps(self.document()).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path

    def timeline(self) -> Timeline:
        path = self.write()
        try:
            return read_kineto(path)
        finally:
            path.unlink()

    def profile(self, **options: Any) -> Profile:
        """Of `analyze_trace` with its options."""
        path = self.write()
        try:
            return analyze_trace(path, **options)
        finally:
            path.unlink()

    def view(self, **options: Any) -> ProfileView:
        return ProfileView(self.profile(**options))
