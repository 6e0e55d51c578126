"""The process that runs one group of workloads, either under torch.profiler or below Nsight Compute.

All workloads of the group are built and warmed up first, then each is called once, in order. Before each call a marker
kernel is launched (``torch.cuda._sleep``): both recordings are cut at it. A line of the log gives the outcome of each.

    python -m lab.tensor_core_oracle.child GROUP profile|count DIRECTORY BUILD_S MEASURE_S
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import torch

from .workloads import WORKLOADS, Workload

WARM_UP_CALLS = 3
MARKER_CYCLES = 1000
MARKER = "spin_kernel"


def _set_switches(workload: Workload) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.backends.cuda.matmul.allow_tf32 = workload.tf32
        torch.backends.cudnn.allow_tf32 = workload.tf32
    torch.backends.cudnn.benchmark = workload.benchmark


class Log:
    """One JSON object a line, written at once: what a killed process did is known."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", buffering=1)

    def write(self, **fields: Any) -> None:
        self._file.write(json.dumps(fields) + "\n")


def prepare(workloads: list[Workload], log: Log, deadline: float) -> list[tuple[Workload, Any]]:
    """Build and warm up; what fails is logged and left out."""
    ready = []
    for workload in workloads:
        if time.monotonic() > deadline:
            log.write(workload=workload.name, stage="build", error="no time left")
            continue
        _set_switches(workload)
        torch.manual_seed(0)
        try:
            call = workload.build()
            for _ in range(WARM_UP_CALLS):
                call()
            torch.cuda.synchronize()
            ready.append((workload, call))
        except Exception as error:
            log.write(workload=workload.name, stage="build", error=f"{type(error).__name__}: {str(error)[:300]}")
    return ready


def measure(ready: list[tuple[Workload, Any]], log: Log, deadline: float, counted: bool) -> None:
    """Call each workload once behind a marker; below Nsight Compute only these calls are counted."""
    runtime = torch.cuda.cudart()
    for workload, call in ready:
        if time.monotonic() > deadline:
            log.write(workload=workload.name, stage="measure", error="no time left")
            continue
        _set_switches(workload)
        torch.manual_seed(0)
        torch.cuda.synchronize()
        error = ""
        if counted:
            runtime.cudaProfilerStart()
        torch.cuda._sleep(MARKER_CYCLES)
        try:
            call()
        except Exception:
            error = traceback.format_exc(limit=2)[-500:]
        torch.cuda.synchronize()
        if counted:
            runtime.cudaProfilerStop()
        log.write(workload=workload.name, stage="measured", error=error)


def _measured(log: Path) -> frozenset[str]:
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return frozenset(line["workload"] for line in lines if line["stage"] == "measured" and not line["error"])


def _wait_for(path: Path, deadline: float) -> None:
    """Nothing else may run on the GPU while launches are counted: the counters are the whole GPU's."""
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.1)


def main(group: str, mode: str, directory: Path, build_s: float, measure_s: float) -> None:
    """Run the group; leaves ``GROUP.MODE.log`` and, when profiling, ``GROUP.trace.json``."""
    start = time.monotonic()
    deadline = start + measure_s
    log = Log(directory / f"{group}.{mode}.log")
    workloads = [w for w in WORKLOADS if w.group == group]
    if mode == "count":
        profiled = _measured(directory / f"{group}.profile.log")
        workloads = [w for w in workloads if w.name in profiled]
    ready = prepare(workloads, log, start + build_s)
    log.write(stage="prepared", seconds=time.monotonic() - start)
    if mode == "count":
        _wait_for(directory / f"{group}.go", deadline)
        measure(ready, log, deadline, True)
    else:
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as warm_up, contextlib.suppress(Exception):
            torch.cuda._sleep(MARKER_CYCLES)
        del warm_up
        with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
            measure(ready, log, float("inf"), False)
        profiler.export_chrome_trace(str(directory / f"{group}.trace.json.gz"))
    log.write(stage="done", seconds=time.monotonic() - start)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]))
