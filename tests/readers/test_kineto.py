"""Kineto files become Timelines: times exact, ids kept, old names known, damage named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kineto_file import read_kineto

from tb_dlprof_plugin.model.dtypes import FLOAT
from tb_dlprof_plugin.model.timeline import DeviceKind, DeviceProperties, HostKind, LaunchConfig, TraceNote
from tb_dlprof_plugin.readers.errors import TraceError

BASE_NS = 1_726_000_000_000_000_000


def test_times_are_exact_to_the_nanosecond_far_from_their_base(new_trace) -> None:
    # GIVEN timestamps of thirteen digits before the point, as machines with a long uptime write them
    trace = new_trace(baseTimeNanoseconds=BASE_NS)
    trace.op("aten::mm", 6155213405438.456, 12.345)
    trace.op("aten::add", 6155213405450.999, 0.001)

    timeline = trace.timeline()

    # THEN nothing is rounded, and times count from the first event
    assert timeline.base_time_unix_ns == BASE_NS + 6_155_213_405_438_456
    assert timeline.host.start_ns.tolist() == [0, 12_543]
    assert timeline.host.duration_ns.tolist() == [12_345, 1]


HOUR_NS = 3600 * 10**9
_OFFSETS = st.lists(st.integers(0, HOUR_NS), min_size=1, max_size=20)


@given(base=st.integers(0, 2**43 * 1000 - HOUR_NS - 1), offsets=_OFFSETS, duration=st.integers(0, 10**12))
def test_every_nanosecond_below_2_to_the_43_microseconds_survives(
    new_trace, base: int, offsets: list[int], duration: int
) -> None:
    starts = [base + offset for offset in offsets]
    trace = new_trace()
    for start in starts:
        trace.op("aten::mm", start / 1000, duration / 1000)

    timeline = trace.timeline()

    assert (timeline.host.start_ns + timeline.base_time_unix_ns).tolist() == sorted(starts)
    assert set(timeline.host.duration_ns.tolist()) == {duration}


@given(base=st.integers(10**18, 2 * 10**18), offsets=_OFFSETS)
def test_starts_counted_from_1970_with_three_decimals_are_read_digit_by_digit(
    tmp_path_factory, base: int, offsets: list[int]
) -> None:
    # GIVEN microseconds since 1970, where neighbouring float64 values lie 250 ns apart
    starts = [base + offset for offset in offsets]
    events = [
        f'{{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": {s // 1000}.{s % 1000:03}, "dur": 1}}' for s in starts
    ]
    path = tmp_path_factory.mktemp("epoch") / "trace.json"
    path.write_text(f'{{"traceEvents": [{", ".join(events)}]}}')

    timeline = read_kineto(path)

    assert (timeline.host.start_ns + timeline.base_time_unix_ns).tolist() == sorted(starts)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_plain_and_a_gzip_file_give_the_same(new_trace, name: str) -> None:
    trace = new_trace()
    trace.op("aten::mm", 1, 2, ext=3)

    timeline = read_kineto(trace.write(name))

    assert timeline.source.endswith(name)
    assert [timeline.strings[i] for i in timeline.host.name] == ["aten::mm"]
    assert timeline.host.external_id.tolist() == [3]


def test_gzip_is_known_by_its_content_not_its_name(new_trace, tmp_path: Path) -> None:
    trace = new_trace()
    trace.op("aten::mm", 1, 2)
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(json.dumps(trace.document()).encode()))
    assert len(read_kineto(path).host) == 1


def test_ids_shapes_and_launch_configurations_are_kept(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 10, ext=11, seq=12, fwd=13, dims=[[2, 3], [3, 4]], types=["float", "float"])
    trace.runtime(1, 2, 14, ext=11)
    trace.kernel(
        "k", 5, 6, 14, ext=11, device=1, stream=20, grid=[4, 5, 6], block=[32, 2, 1], registers_per_thread=40,
        shared_memory=1024, **{"est._achieved_occupancy_%": 33.4},
    )  # fmt: skip
    trace.kernel("Memcpy DtoH", 12, 1, 15, cat="gpu_memcpy", bytes=4096)

    timeline = trace.timeline()
    host, device, _strings = timeline.host, timeline.device, timeline.strings

    assert host.kind.tolist() == [HostKind.OP, HostKind.RUNTIME]
    assert host.external_id.tolist() == [11, 11]
    assert host.sequence_number.tolist() == [12, -1]
    assert host.forward_thread.tolist() == [13, -1]
    assert host.correlation.tolist() == [-1, 14]
    assert [timeline.input_shapes[row] for row in host.shapes] == [((2, 3), (3, 4)), ()]
    assert [timeline.input_dtypes[row] for row in host.dtypes] == [(FLOAT, FLOAT), ()]
    assert device.kind.tolist() == [DeviceKind.KERNEL, DeviceKind.MEMCPY]
    assert device.correlation.tolist() == [14, 15]
    assert device.external_id.tolist() == [11, -1]
    assert (device.device.tolist(), device.stream.tolist()) == ([1, 0], [20, 7])
    assert device.bytes.tolist() == [-1, 4096]
    assert [timeline.launch_configs[i] for i in device.config] == [
        LaunchConfig((4, 5, 6), (32, 2, 1), 40, 1024, 33),
        LaunchConfig(),
    ]


def test_sizes_whose_difference_would_not_fit_into_an_integer_are_unknown(new_trace) -> None:
    trace = new_trace()
    for at, size in enumerate((2**62 - 1, 2**62, 2**80, -1)):
        trace.kernel("Memcpy DtoH", 10 * at, 1, at + 1, cat="gpu_memcpy", bytes=size)
    assert trace.timeline().device.bytes.tolist() == [2**62 - 1, -1, -1, -1]


def test_device_properties_and_ranks_are_kept_and_absent_ones_stay_none(new_trace) -> None:
    trace = new_trace(distributedInfo={"rank": 3, "world_size": 8}, cuda_runtime_version=12040, record_shapes=1)
    trace.gpu(9, 0)
    trace.rest["deviceProperties"].append({"id": 1, "name": "AMD"})
    trace.op("aten::mm", 0, 1)
    timeline = trace.timeline()
    assert timeline.device_properties == [
        DeviceProperties(0, "NVIDIA H200", 9, 0, 132, 150_000_000_000),
        DeviceProperties(1, "AMD", None, None, None, None),
    ]
    assert (timeline.rank, timeline.world_size, timeline.record_shapes) == (3, 8, True)

    bare = new_trace()
    bare.op("aten::mm", 0, 1)
    timeline = bare.timeline()
    assert timeline.device_properties == []
    assert (timeline.rank, timeline.world_size, timeline.cuda_runtime_version, timeline.record_shapes) == (None,) * 4


def test_old_category_names_are_read(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 10, cat="Operator", ext=1)
    trace.runtime(1, 1, 7, cat="Runtime")
    trace.event("volta_sgemm_128x64_nn", "Kernel", 3, 4, pid=0, tid="stream 7", correlation=7, device=0)
    trace.event("Memcpy HtoD", "Memcpy", 8, 1, pid=2, tid="stream 9", correlation=8)
    trace.event("Memset", "Memset", 9, 1, pid=2, tid=9, correlation=9)

    timeline = trace.timeline()

    assert timeline.host.kind.tolist() == [HostKind.OP, HostKind.RUNTIME]
    assert timeline.device.kind.tolist() == [DeviceKind.KERNEL, DeviceKind.MEMCPY, DeviceKind.MEMSET]
    assert timeline.device.device.tolist() == [0, 2, 2]
    assert timeline.device.stream.tolist() == [7, 9, 9]


def test_only_complete_events_of_known_categories_become_rows(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 1)
    trace.event("main.py(1): main", "python_function", 0, 5)
    trace.event("ProfilerStep#1", "gpu_user_annotation", 0, 5)
    trace.events.append({"ph": "s", "id": 1, "cat": "ac2g", "name": "ac2g", "ts": 0, "pid": 1, "tid": 1})
    trace.events.append({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}})

    timeline = trace.timeline()

    assert [timeline.strings[i] for i in timeline.host.name] == ["aten::mm"]
    assert len(timeline.device) == 0
    assert [(note.code, note.count) for note in timeline.notes] == [("python_frames", 1)]


def test_host_events_stand_by_thread_then_start_then_parents_first(new_trace) -> None:
    trace = new_trace()
    trace.op("second thread", 0, 1, tid=9)
    trace.op("inner", 5, 2)
    trace.op("outer", 5, 10)
    trace.op("earlier", 1, 1)
    trace.event("same thread id, other process", "cpu_op", 0, 1, pid=7, tid=9)

    timeline = trace.timeline()

    names = [timeline.strings[i] for i in timeline.host.name]
    assert names == ["second thread", "earlier", "outer", "inner", "same thread id, other process"]
    assert timeline.host.thread.tolist() == [0, 1, 1, 1, 2]


def test_a_negative_duration_becomes_zero_and_a_note(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mm", 5, -3)
    trace.op("aten::add", 6, 2)
    timeline = trace.timeline()
    assert timeline.host.duration_ns.tolist() == [0, 2000]
    assert timeline.notes == [
        TraceNote("negative_duration", "Events with a negative duration were read as lasting 0 ns.", 1)
    ]


def test_an_id_above_int64_counts_as_not_recorded(new_trace) -> None:
    # GIVEN ids that Kineto wrote as unsigned
    trace = new_trace()
    trace.op("aten::mm", 0, 9, seq=2**64 - 1, ext=5)
    trace.kernel("k", 1, 2, 2**63, ext=5)
    timeline = trace.timeline()
    assert timeline.host.sequence_number.tolist() == [-1]
    assert timeline.device.correlation.tolist() == [-1]
    assert timeline.device.external_id.tolist() == [5]


def test_times_are_64_bit_integers(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 1)
    trace.kernel("k", 0, 1)
    timeline = trace.timeline()
    columns = [timeline.host.start_ns, timeline.host.duration_ns, timeline.device.start_ns, timeline.device.duration_ns]
    assert [column.dtype for column in columns] == [np.dtype(np.int64)] * 4


VALID = b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1.0, "dur": 2.0}]}'
UNREADABLE = {
    "empty": (b"", "is empty"),
    "blank": (b" \n", "is empty"),
    "zeros, as after a crash of the machine": (b"\0" * 4096, "is empty"),
    "cut in the only event": (VALID[:-20], "ends in the middle of the JSON"),
    "cut in the header": (b'{"schemaVersion": 1, "devicePr', "ends in the middle of the JSON, before the first event"),
    "text": (b"hello, world", "is not a PyTorch profiler trace"),
    "broken header": (b'{"schemaVersion" 1}', "is not a PyTorch profiler trace"),
    "only a duration that is no number": (VALID.replace(b"2.0", b"NaN"), "holds events without a usable time (1)"),
    "only events that are none": (b'{"traceEvents": [{"ph": "X" 1}]}', "holds events that cannot be read (1)"),
    "list": (b"[1, 2, 3]", "not a PyTorch profiler trace"),
    "other object": (b'{"name": "package", "version": "1.0"}', "not a PyTorch profiler trace"),
    "events of another kind": (b'{"traceEvents": {"a": 1}}', "not a PyTorch profiler trace"),
    "no events": (b'{"traceEvents": []}', "no op and no kernel"),
    "gzip cut": (gzip.compress(VALID)[:-12], "is a gzip file that ends early"),
    "gzip cut in its header": (gzip.compress(VALID)[:5], "is a gzip file that ends early, before the first event"),
    "gzip damaged": (gzip.compress(VALID)[:12] + b"\xff" * 9 + gzip.compress(VALID)[21:], "is a damaged gzip file"),
    "gzip of nothing": (gzip.compress(b""), "is empty"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_is_no_trace_gives_one_sentence_that_names_it(tmp_path: Path, case: str) -> None:
    content, reason = UNREADABLE[case]
    path = tmp_path / "broken.pt.trace.json"
    path.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        read_kineto(path)
    message = str(caught.value)
    assert str(path) in message
    assert reason in message
    assert "\n" not in message
    assert message.endswith(".")
    assert ". " not in message, "one sentence"


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(TraceError, match="cannot be read") as caught:
            read_kineto(path)
        assert str(path) in str(caught.value)


def test_of_calls_with_equal_times_the_one_with_the_lower_id_is_outside(new_trace) -> None:
    # GIVEN whole microseconds, in which an op, the op inside it and its launch begin and end together
    trace = new_trace()
    trace.runtime(5, 2, 1, ext=8)
    trace.op("aten::mm", 5, 2, ext=8)
    trace.op("aten::linear", 5, 2, ext=7)
    timeline = trace.timeline()
    names = [timeline.strings[i] for i in timeline.host.name]
    assert names == ["aten::linear", "aten::mm", "cudaLaunchKernel"]


def test_overloads_are_one_op(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::add_.Tensor", 0, 1)
    trace.op("aten::add_", 5, 1)
    trace.op("my.namespace::op.out", 10, 1)
    timeline = trace.timeline()
    names = [timeline.strings[i] for i in timeline.host.name]
    assert names == ["aten::add_", "aten::add_", "my.namespace::op.out"]


def test_ids_of_old_traces_are_found(new_trace) -> None:
    # GIVEN runtime calls and kernels of torch 1.9, whose "external id" begins with a small letter
    trace = new_trace()
    trace.event("cudaLaunchKernel", "Runtime", 0, 1, **{"external id": 5, "correlation": 7})
    trace.event("k", "Kernel", 3, 1, pid=0, tid="stream 7", **{"external id": 5, "correlation": 7})
    timeline = trace.timeline()
    assert (timeline.host.external_id.tolist(), timeline.device.external_id.tolist()) == ([5], [5])
    assert timeline.device.stream.tolist() == [7]


def test_the_python_exporters_streams_are_told_from_its_threads(tmp_path: Path) -> None:
    # GIVEN a file of EventList.export_chrome_trace(): no categories, and all claim to be CPU functions
    def event(name: str, start: float, thread: int) -> dict[str, Any]:
        return {"name": name, "ph": "X", "ts": start, "dur": 2.0, "tid": thread, "pid": "CPU functions", "args": {}}

    path = tmp_path / "exported.json"
    events = [
        event("ProfilerStep#3", 0, 1), event("aten::mm", 1, 1), event("Memcpy HtoD (Pageable -> Device)", 2, 7),
        event("ampere_sgemm_128x64_nn", 5, 7), event("void at::native::fill()", 9, 20),
    ]  # fmt: skip
    path.write_text(json.dumps(events))
    timeline = read_kineto(path)
    assert timeline.host.kind.tolist() == [HostKind.ANNOTATION, HostKind.OP]
    assert timeline.device.kind.tolist() == [DeviceKind.MEMCPY, DeviceKind.KERNEL, DeviceKind.KERNEL]
    assert len(set(timeline.device.stream.tolist())) == 2
    assert "python_exporter" in [note.code for note in timeline.notes]
