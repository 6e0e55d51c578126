"""Time from the last recorded step to the run in the logdir, and the CPU time that the analysis takes of the training.

    python lab/speed/time_to_result.py [--times 5] [--device cuda]

The hook records five steps of a training and trains on; a run is there as soon as its event file has its name. torch's
own handler records the same model in turns with it: its trace is there when the handler returns, and what TensorBoard's
old profiler tab then computes of it is not counted. Children's CPU time is that of the analysis process alone.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from capture_blocking import make_model, make_step
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

from tb_dlprof_plugin.capture import profile as hook
from tb_dlprof_plugin.capture import wait_for_analysis

_ACTIVE, _WARM, _LONGEST_S = 5, 3, 60.0
_SCHEDULE = {"wait": 1, "warmup": 1, "active": _ACTIVE, "repeat": 1}


def _by_hook(step: Callable[[], None], logdir: Path, model: torch.nn.Module) -> tuple[float, float]:
    """Seconds to the run, and CPU seconds of the analysis."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with hook(logdir, model=model, schedule=_SCHEDULE) as prof:
        for _ in range(1 + 1 + _ACTIVE):
            step()
            began = time.perf_counter()
            prof.step()
        while not list(logdir.rglob("*.tb_dlprof")) and time.perf_counter() < began + _LONGEST_S:
            step()
            prof.step()
        took = time.perf_counter() - began
    wait_for_analysis()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _by_torch(step: Callable[[], None], logdir: Path, device: str) -> float:
    """Seconds to torch's trace."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device == "cuda" else [])]
    with profile(
        activities=activities,
        schedule=schedule(**_SCHEDULE),
        on_trace_ready=tensorboard_trace_handler(str(logdir)),
        record_shapes=True,
    ) as prof:
        for _ in range(1 + 1 + _ACTIVE):
            step()
            began = time.perf_counter()
            prof.step()
    return time.perf_counter() - began


def main() -> None:
    """Prints the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    chosen = parser.parse_args()
    model = make_model()
    step = make_step(model, torch.device(chosen.device))
    for _ in range(_WARM):
        step()
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(chosen.times):
            ours.append(_by_hook(step, Path(folder, f"hook{turn}"), model))
            theirs.append(_by_torch(step, Path(folder, f"torch{turn}"), chosen.device))
    print(f"run there: {statistics.median(one for one, _ in ours):.2f} s after the last recorded step")
    print(f"CPU time of its analysis: {statistics.median(cpu for _, cpu in ours):.2f} s")
    print(f"torch's trace there: {statistics.median(theirs):.2f} s")


if __name__ == "__main__":
    main()
