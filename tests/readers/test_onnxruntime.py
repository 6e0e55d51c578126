"""ONNX Runtime's profiles: nodes are ops, runs of the model iterations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.registry import format_of, read_timelines


def _event(category: str, name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    return {"cat": category, "pid": 1, "tid": 7, "dur": dur, "ts": ts, "ph": "X", "name": name, "args": args}


def _run(at: float, provider: str = "CPUExecutionProvider") -> list[dict[str, Any]]:
    return [
        _event("Node", "/net/fc/MatMul_fence_before", at, 0, op_name="MatMul"),
        _event(
            "Node", "/net/fc/MatMul_kernel_time", at + 1, 20, op_name="MatMul", provider=provider,
            input_type_shape=[{"float": [8, 64]}, {"float": [64, 32]}],
        ),
        _event("Session", "model_run", at, 30),
    ]  # fmt: skip


def _write(tmp_path: Path, events: list[dict[str, Any]]) -> Path:
    path = tmp_path / "onnxruntime_profile_1.json"
    path.write_text(json.dumps(events))
    return path


def test_nodes_are_ops_and_runs_of_the_model_iterations(tmp_path: Path) -> None:
    path = _write(tmp_path, [_event("Session", "model_loading_uri", 0, 90), *_run(100), *_run(150)])
    profile = analyze_ranks(path)[0]
    strings, ops = profile.strings, profile.ops
    assert (profile.source.format, profile.iterations.found_by) == ("onnxruntime", "inference")
    assert profile.iterations.host_start_ns.tolist() == [100_000, 150_000]
    (row,) = [row for row in range(len(ops)) if ops.top[row]]
    assert [strings[column[row]] for column in (ops.name, ops.op_type, ops.module)] == [
        "/net/fc/MatMul",
        "MatMul",
        "net.fc",
    ]
    assert profile.input_shapes[ops.shapes[row]] == ((8, 64), (64, 32))
    assert format_of(path).run_name(path) == "onnxruntime_profile_1"


def test_kernels_belong_to_the_node_before_them_in_the_file(tmp_path: Path) -> None:
    sizes = {"grid_x": 4, "grid_y": 1, "grid_z": 1, "block_x": 128, "block_y": 1, "block_z": 1}
    kernel = _event("Kernel", "volta_sgemm_128x64_tn", 115, 9, stream=3, **sizes)
    *nodes, run = _run(100, "CUDAExecutionProvider")
    profile = analyze_ranks(_write(tmp_path, [*nodes, kernel, run]))[0]
    assert profile.launches.duration_ns.tolist() == [9000]
    assert profile.strings[profile.ops.name[profile.calls.op[profile.launches.call[0]]]] == "/net/fc/MatMul"
    assert profile.launch_configs.grid[profile.launches.config[0]].tolist() == [4, 1, 1]


def test_nodes_on_a_gpu_without_kernels_say_that_times_are_launches(tmp_path: Path) -> None:
    notes = read_timelines(_write(tmp_path, _run(100, "CUDAExecutionProvider")))[0].notes
    assert [(note.code, note.count) for note in notes] == [("launch_times", 1)]


@pytest.mark.parametrize("end", [",\n", ',\n{"cat" : "Node","pi'])
def test_a_file_without_its_end_is_read_up_to_there(end: str, tmp_path: Path) -> None:
    path = _write(tmp_path, [])
    path.write_text("[\n" + ",\n".join(json.dumps(event) for event in _run(100)) + end)
    timeline = read_timelines(path)[0]
    assert "/net/fc/MatMul" in timeline.strings
    assert [note.code for note in timeline.notes] == ["cut_short"]


def test_a_profile_without_nodes_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no inference ran.*end_profiling"):
        read_timelines(_write(tmp_path, [_event("Session", "model_loading_uri", 0, 90)]))
