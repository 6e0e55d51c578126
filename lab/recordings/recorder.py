"""What a recording leaves: the trace as torch exports it, gzip'd, and torch's own averages of the same profile object.

Works with every torch from 1.9 on, so that the same script records the formats of several versions.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

OVERHEAD = {
    "Activity Buffer Request",
    "Buffer Flush",
    "Command Buffer Full",
    "Instrumentation",
    "Lazy Function Loading",
    "Resource",
    "Runtime Triggered Module Loading",
}
"""Events of the profiler's and driver's own overhead, which torch nests by clock into a thread that they are not of."""

_COUNTERS = ("cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage", "flops")


@dataclass
class Recorder:
    """Records one kind into a directory; files are named after the kind."""

    name: str
    out: Path
    device: torch.device
    about: str = ""
    written: list[Path] = field(default_factory=list)

    def activities(self) -> list[ProfilerActivity]:
        """CPU, and CUDA on a GPU."""
        cuda = [ProfilerActivity.CUDA] if self.device.type == "cuda" else []
        return [ProfilerActivity.CPU, *cuda]

    def steps(self, step: Callable[[], object], *, steps: int = 2, warm: int = 1, **options: Any) -> None:
        """Records ``steps`` calls of ``step`` after ``warm`` calls of warm-up, with `prof.step()` after each."""
        options = {"activities": self.activities(), "record_shapes": True, **options}
        with profile(schedule=schedule(wait=0, warmup=warm, active=steps, repeat=1), **options) as prof:
            for _ in range(warm + steps):
                step()
                prof.step()
        self.keep(prof)

    def block(self, body: Callable[[], object], **options: Any) -> None:
        """Records one call of ``body`` without schedule and without steps."""
        options = {"activities": self.activities(), "record_shapes": True, **options}
        with profile(**options) as prof:
            body()
            if self.device.type == "cuda":
                torch.cuda.synchronize()
        self.keep(prof)

    def keep(self, prof: Any, suffix: str = "") -> None:
        """Writes the trace and the averages of a profile object that has ended."""
        with tempfile.TemporaryDirectory() as folder:
            plain = Path(folder) / "trace.json"
            prof.export_chrome_trace(str(plain))
            self.keep_trace(plain.read_bytes(), suffix)
        self.keep_averages(prof.events() if hasattr(prof, "events") else prof.function_events, suffix)

    def keep_trace(self, document: bytes, suffix: str = "") -> None:
        """Writes a trace."""
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / f"{self.name}{suffix}.pt.trace.json.gz"
        path.write_bytes(gzip.compress(document, 9, mtime=0))
        self.written.append(path)

    def keep_averages(self, events: Any, suffix: str = "") -> None:
        """Writes torch's averages of an event list: as they are and, if that differs, without overhead and views."""
        document: dict[str, Any] = {
            "recorded": {"kind": self.name, "about": self.about, **machine(self.device)},
            "rows": rows(events.key_averages()),
        }
        others = rows(without_overhead(events).key_averages())
        if others != document["rows"]:
            document["rows_without_overhead"] = others
        path = self.out / f"{self.name}{suffix}.key_averages.json.gz"
        lines = ",\n".join(
            f"{json.dumps(key)}: " + (_one_a_line(value) if isinstance(value, list) else json.dumps(value))
            for key, value in document.items()
        )
        path.write_bytes(gzip.compress(f"{{\n{lines}\n}}\n".encode(), mtime=0))


def _one_a_line(values: list[dict[str, Any]]) -> str:
    return "[\n " + ",\n ".join(json.dumps(value) for value in values) + "\n]"


def machine(device: torch.device) -> dict[str, Any]:
    """Versions, the GPU and the date."""
    gpu = torch.cuda.get_device_name() if device.type == "cuda" else None
    return {"torch": torch.__version__, "gpu": gpu, "date": time.strftime("%Y-%m-%d", time.gmtime())}


def rows(averages: Iterable[Any]) -> list[dict[str, Any]]:
    """Plain rows of ``key_averages()``; times in µs, memory in bytes, with all digits."""
    result = []
    for row in averages:
        plain = {
            "key": row.key,
            "device_type": str(row.device_type).rsplit(".", 1)[-1],
            "user_annotation": getattr(row, "is_user_annotation", None),
            "count": row.count,
            "self_cpu_us": row.self_cpu_time_total,
            "cpu_us": row.cpu_time_total,
            "self_device_us": _first(row, "self_device_time_total", "self_cuda_time_total"),
            "device_us": _first(row, "device_time_total", "cuda_time_total"),
        }
        result.append(plain | {name: getattr(row, name) for name in _COUNTERS if getattr(row, name, 0)})
    return result


def _first(row: Any, *names: str) -> Any:
    return next(getattr(row, name) for name in names if hasattr(type(row), name) or hasattr(row, name))


def without_overhead(events: Any) -> Any:
    """The event list without overhead events and Python views; what lies in one becomes its parent's."""

    def left_out(event: Any) -> bool:
        return event.name in OVERHEAD or getattr(event, "is_python_function", False)

    def kept_inside(event: Any) -> Iterator[Any]:
        for child in event.cpu_children:
            if left_out(child):
                yield from kept_inside(child)
            else:
                yield child

    for event in events:
        event.cpu_children = list(kept_inside(event))
    events[:] = [event for event in events if not left_out(event)]
    return events
