"""A trace that holds several processes is cut into a Timeline for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.registry import read_timelines


def process(pid: int, gpu: int | None, first_id: int, kernel: str) -> list[dict[str, Any]]:
    """Three steps of a process, with a kernel each."""
    events: list[dict[str, Any]] = []
    for step in range(3):
        at, number = 1000 + 100 * step, first_id + step
        host = {"ph": "X", "pid": pid, "tid": pid}
        events.append(host | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": 95})
        for number_of_op in range(4):
            op = {"cat": "cpu_op", "name": f"aten::{kernel}", "ts": at + 5 + 20 * number_of_op, "dur": 20}
            events.append(host | op)
        if gpu is None:
            continue
        args = {"correlation": number}
        call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 8, "dur": 5, "args": args}
        events.append(host | call)
        work = {"ph": "X", "pid": gpu, "tid": 7, "cat": "kernel", "name": kernel, "ts": at + 20, "dur": 40}
        events.append(work | {"args": args | {"device": gpu, "stream": 7}})
    return events


def write(folder: Path, *processes: list[dict[str, Any]]) -> Path:
    path = folder / "merged.pt.trace.json"
    events = [event for process in processes for event in process]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


@pytest.mark.parametrize("second_gpu", [1, 0], ids=["on two GPUs", "on one"])
def test_each_process_is_a_rank_with_the_work_that_it_launched(tmp_path: Path, second_gpu: int) -> None:
    path = write(tmp_path, process(200, second_gpu, 50, "relu"), process(100, 0, 10, "mm"))
    profiles = analyze_ranks(path)
    assert [profile.source.rank for profile in profiles] == [0, 1]
    for profile, kernel in zip(profiles, ("mm", "relu"), strict=True):
        assert [profile.strings[name] for name in profile.kernels.name] == [kernel]
        assert (len(profile.launches), len(profile.iterations)) == (3, 3)
        called = profile.ops.name[profile.calls.op[profile.launches.call]].tolist()
        assert {profile.strings[name] for name in called} == {"cudaLaunchKernel"}
        (note,) = (note for note in profile.notes if note.code == "several_processes")
        assert "2 processes, each of which is a rank: 100, 200, from rank 0 on" in note.text


def test_a_process_without_gpu_work_is_left_out_and_named(tmp_path: Path) -> None:
    (profile,) = analyze_ranks(write(tmp_path, process(100, 0, 10, "mm"), process(200, None, 0, "relu")))
    assert "aten::relu" not in {profile.strings[name] for name in profile.ops.name.tolist()}
    (note,) = (note for note in profile.notes if note.code == "processes_left_out")
    assert note.text.startswith("Process 200 of the file used no GPU, and is left out")


def test_processes_on_the_cpu_alone_are_ranks(tmp_path: Path) -> None:
    timelines = read_timelines(write(tmp_path, process(100, None, 0, "mm"), process(200, None, 0, "relu")))
    assert [len(timeline.host) for timeline in timelines] == [15, 15]


def test_processes_whose_calls_have_the_same_numbers_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, process(100, 0, 10, "mm"), process(200, 1, 10, "relu"))
    with pytest.raises(TraceError, match="holds 2 processes that number their calls alike"):
        read_timelines(path)
