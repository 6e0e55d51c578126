"""Copies of recordings without ops, as a recorder writes them that was not asked for any."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

_OPS = ("cpu_op", "python_function", "fwdbwd", "user_annotation")
_LAUNCHES = ("cuda_runtime", "cuda_driver", "ac2g")


def nsys_without_ranges(source: Path, folder: Path) -> Path:
    """A database of Nsight Systems as `nsys profile` writes it of a program without NVTX ranges."""
    path = folder / source.name.removesuffix(".gz")
    path.write_bytes(gzip.decompress(source.read_bytes()))
    database = sqlite3.connect(path)
    database.execute("DROP TABLE NVTX_EVENTS")
    database.commit()
    database.close()
    return path


def kineto_without_ops(source: Path, folder: Path, *, launches: bool) -> Path:
    """A trace of torch.profiler of ``ProfilerActivity.CUDA`` alone; without launches, of the GPU alone."""
    trace = json.loads(gzip.decompress(source.read_bytes()))
    left_out = _OPS if launches else _OPS + _LAUNCHES
    kept = [event for event in trace["traceEvents"] if event.get("cat", "") not in left_out]
    for event in kept:
        event.get("args", {}).pop("External id", None)
    path = folder / f"{'launches' if launches else 'gpu'}_{source.name.removesuffix('.gz')}"
    path.write_text(json.dumps(trace | {"traceEvents": kept}))
    return path
