"""The copy for the PyTorch Profiler tab, read by torch-tb-profiler 0.4.3 itself: its figures are ours."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.interop.torch_tb_profiler.communication import Communication
from tb_dlprof_plugin.interop.torch_tb_profiler.kernel_names import PATTERNS, tab_name
from tb_dlprof_plugin.interop.torch_tb_profiler.trace_copy import NAME_ARGUMENT, write_tab_copy
from tb_dlprof_plugin.metrics.averages import operator_averages
from tb_dlprof_plugin.model.profile import KernelKind, Profile, Verdict
from tb_dlprof_plugin.pages.modules import modules_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.trace_names import is_copy
from tb_dlprof_plugin.store.run_ref import RunRef

pytest.importorskip("torch_tb_profiler")

TRACES = Path(__file__).resolve().parents[1] / "traces"
NS = pytest.approx
GPU_TRACES = [
    "hook_fp32", "hook_amp_bf16", "resnet50_fp32", "resnet50_amp_fp16", "loader_workers", "cuda_graph", "no_steps",
    "nccl_rank0", "nccl_rank1",
]  # fmt: skip


def copied(name: str, folder: Path) -> tuple[Profile, Any, dict[str, Any]]:
    """Our profile, what torch-tb-profiler makes of the copy, and the copy itself."""
    from torch_tb_profiler.profiler.data import RunProfileData

    trace, copy = TRACES / f"{name}.pt.trace.json.gz", folder / "w.pt.trace.json.gz"
    profile = analyze_trace(trace)
    write_tab_copy(profile, trace, copy, "kineto/w.trace.json.gz")
    document = json.loads(gzip.decompress(copy.read_bytes()))
    return profile, RunProfileData.parse("w", None, str(copy), str(folder)), document


@pytest.mark.parametrize("name", GPU_TRACES)
def test_steps_ops_and_tensor_cores_are_ours(name: str, tmp_path: Path) -> None:
    profile, tab, document = copied(name, tmp_path)
    iterations, launches, kernels = profile.iterations, profile.launches, profile.kernels

    assert tab.steps_names == [str(number) for number in iterations.number.tolist()]
    # 1 ns apart, and times are floats of microseconds.
    assert [cost.costs[-1] * 1000 for cost in tab.steps_costs] == NS(iterations.duration_ns.tolist(), abs=2)

    ours = {op.name: op for op in operator_averages(ProfileView(profile))}
    for op in tab.op_list_groupby_name:
        known = ours[op.name]
        assert op.calls == known.calls, op.name
        assert op.device_duration * 1000 == NS(known.device_total_ns, abs=1), op.name
        assert op.self_device_duration * 1000 == NS(known.device_self_ns, abs=1), op.name
        assert op.host_duration * 1000 == NS(known.cpu_total_ns, abs=1), op.name
    assert sum(op.self_device_duration for op in tab.op_list_groupby_name) > 0

    is_kernel = kernels.kind[launches.kernel] == KernelKind.KERNEL
    on_tensor_cores = is_kernel & (kernels.tensor_core[launches.kernel] == Verdict.YES)
    time = launches.duration_ns
    assert tab.tc_used_ratio == NS(time[on_tensor_cores].sum() / time[is_kernel].sum(), abs=1e-9)
    own_names = {e["name"]: e["args"].get(NAME_ARGUMENT, e["name"]) for e in _events(document, "kernel")}
    found = {own_names[str(kernel)]: round(row["sum"] * 1000) for kernel, row in tab.kernel_stat.iterrows()}
    names = [profile.strings[row] for row in kernels.name[launches.kernel[is_kernel]].tolist()]
    expected = dict.fromkeys(names, 0)
    for kernel, duration in zip(names, time[is_kernel].tolist(), strict=True):
        expected[kernel] += duration
    assert found == expected


def test_modules_of_the_hook_fill_its_module_view(tmp_path: Path) -> None:
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    profile, tab, _ = copied("hook_fp32", tmp_path)
    view = RunGenerator("w", None, tab).generate_run_profile().get_module_view()
    frame = ProfileView(profile)
    ours = {row.path: row for row in modules_page(frame, RunRef("run", "s", 0, 0), frame.selection()).rows}
    rows = list(_flat(view["data"]))
    assert {"" if row["name"] == "model" else row["name"] for row in rows} == set(ours)
    for row in rows:
        known = ours["" if row["name"] == "model" else row["name"]]
        assert row["occurences"] == known.calls
        assert row["device_duration"] * 1000 == NS(known.gpu_forward_ns, abs=1)


def test_dataloader_time_is_seen(tmp_path: Path) -> None:
    from torch_tb_profiler.profiler.event_parser import ProfileRole

    _, tab, _ = copied("loader_workers", tmp_path)
    assert tab.avg_costs.costs[ProfileRole.DataLoader] > 0


def test_memory_is_seen(tmp_path: Path) -> None:
    profile, tab, _ = copied("with_memory", tmp_path)
    assert len(tab.memory_snapshot.memory_records) == len(profile.memory)


@pytest.mark.parametrize("rank", [0, 1])
def test_communication_is_seen(rank: int, tmp_path: Path) -> None:
    profile, tab, _ = copied(f"nccl_rank{rank}", tmp_path)
    assert tab.use_ddp
    assert tab.has_communication
    launches, strings = profile.launches, profile.strings
    family = [strings[row] for row in profile.kernels.family[launches.kernel].tolist()]
    times = [
        (start, duration)
        for kind, call, start, duration in zip(
            family, launches.call.tolist(), launches.start_ns.tolist(), launches.duration_ns.tolist(), strict=True
        )
        if kind == "communication" and call >= 0
    ]
    # Each has its kernel and the annotation, which takes no time.
    assert [node.total_time * 1000 for node in tab.comm_node_list] == NS([duration for _, duration in sorted(times)])
    assert [(node.name, node.input_type[0], node.input_shape[0]) for node in tab.comm_node_list][:2] == [
        ("nccl:all_reduce", "float", [33738]),
        ("nccl:all_reduce", "float", [65536]),
    ]


def test_collectives_by_other_names_and_with_odd_sizes_do_not_end_its_reading() -> None:
    event = {"name": "nccl:_all_gather_base", "dur": 5, "args": {"Input Dims": [[[1], [2]]], "Input type": ["float"]}}
    communication = Communication(analyze_trace(TRACES / "nccl_rank0.pt.trace.json.gz"))
    communication.annotation(event, next(iter(communication._ids)))
    assert event["name"] == "nccl:all_gather"
    assert event["args"].keys() == {"External id", "host duration (us)", "name"}


def test_the_rest_of_the_trace_stays(tmp_path: Path) -> None:
    _, _, document = copied("hook_fp32", tmp_path)
    original = json.loads(gzip.decompress((TRACES / "hook_fp32.pt.trace.json.gz").read_bytes()))
    assert next(iter(document)) == "tb_dlprof_copy_for"
    assert document["original"] == "kineto/w.trace.json.gz"
    kept = {"traceEvents", "baseTimeNanoseconds"}
    assert {k: v for k, v in original.items() if k not in kept} == {
        k: v for k, v in document.items() if k not in kept | {"tb_dlprof_copy_for", "original"}
    }
    assert len(document["traceEvents"]) == len(original["traceEvents"])
    # Times still say when.
    shift = (document["baseTimeNanoseconds"] - original["baseTimeNanoseconds"]) / 1000
    for old, new in zip(_events(original, "kernel"), _events(document, "kernel"), strict=True):
        assert new["ts"] + shift == NS(old["ts"], abs=1e-2)
        assert new["args"].get(NAME_ARGUMENT, new["name"]) == old["name"]


def test_a_copy_is_told_from_a_trace(tmp_path: Path) -> None:
    copied("fp8", tmp_path)
    copy = tmp_path / "w.pt.trace.json.gz"
    assert is_copy(copy)
    assert not is_copy(TRACES / "fp8.pt.trace.json.gz")
    with pytest.raises(TraceError, match="is a copy for the PyTorch Profiler tab"):
        analyze_trace(copy)


def test_the_patterns_are_those_of_torch_tb_profiler() -> None:
    from torch_tb_profiler.profiler.tensor_core import TC_Allowlist

    assert list(PATTERNS) == TC_Allowlist.allowlist


@pytest.mark.parametrize("name", ["nvjet_sm90_tst_128x64", "plain", *(f"a_{pattern}_b" for pattern in PATTERNS)])
def test_a_name_matches_exactly_where_the_kernel_is_on_tensor_cores(name: str) -> None:
    from torch_tb_profiler.profiler.tensor_core import TC_Allowlist

    assert tab_name(name, True) in TC_Allowlist
    assert tab_name(name, False) not in TC_Allowlist
    assert tab_name(name, None) not in TC_Allowlist
    assert tab_name(name, None).endswith("[Tensor Cores: unknown]")


def test_names_are_left_alone_where_its_list_is_right() -> None:
    assert tab_name("ampere_fp16_s1688gemm", True) == "ampere_fp16_s1688gemm"
    assert tab_name("vectorized_elementwise_kernel", False) == "vectorized_elementwise_kernel"


def _events(document: dict[str, Any], category: str) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event.get("cat") == category]


def _flat(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield row
        yield from _flat(row["children"])
