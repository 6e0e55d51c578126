"""Nsight Systems' databases, made row by row: what their tables say, and what is odd about them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from support.nsys_database import COPY, GRAPH, KERNEL, RANGES, RUNTIME, NsysDatabase, thread

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.metrics.op_statistics import op_statistics
from tb_dlprof_plugin.metrics.unattributed_ops import all_ops
from tb_dlprof_plugin.model.profile import Attribution, Profile, Role, Verdict
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.options import Markers, ReadOptions
from tb_dlprof_plugin.readers.registry import files_below, format_of, read_timelines


@pytest.fixture
def database(tmp_path: Path) -> NsysDatabase:
    return NsysDatabase(tmp_path / "report.sqlite")


def only(database: NsysDatabase, markers: Markers = Markers.AUTO) -> Profile:
    (profile,) = analyze_ranks(database.write(), options=ReadOptions(markers))
    return profile


def gpu_time_of_types(profile: Profile) -> dict[str, int]:
    """GPU time in ns of each op by its module and type."""
    view = ProfileView(profile)
    every, found = all_ops(view), op_statistics(view, view.selection())
    strings = profile.strings
    names = [
        f"{strings[m]}/{strings[t]}" if m else strings[t]
        for m, t in zip(view.groups.module.tolist(), view.groups.op_type.tolist(), strict=True)
    ] + every.names
    return {name: time for name, time in zip(names, found.gpu.total.tolist(), strict=True) if time}


def note_codes(profile: Profile) -> set[str]:
    return {note.code for note in profile.notes}


class TestAttribution:
    def test_the_gpu_time_of_an_op_is_the_union_of_what_was_launched_in_its_outermost_marker(self, database) -> None:
        # GIVEN DLProf's markers: an op dict, and PyTorch's range in it
        tensor = "{'type': 'tensor', 'shape': (8, 3, 32, 32), 'dtype': 'float16'}"
        dict_ = f"{{'mod': 'torch.nn.functional', 'op': 'conv2d', 'args': [{tensor}]}}"
        database.range(dict_, 0, 20)
        database.range("aten::conv2d, seq = 4", 1, 18)
        database.launch("first", 2, 30, 10)
        database.launch("overlaps", 4, 35, 10, streamId=8)
        copy = database.call(6, 1, name="cudaMemcpyAsync_v3020")
        database.activity(COPY, 50, 5, copy, copyKind=8, srcKind=2, dstKind=2, bytes=64)
        profile = only(database)
        # THEN its GPU time is 15 + 5 µs, its CPU time that of the dict's range, and the kernels' sums are exact
        assert gpu_time_of_types(profile) == {"conv2d": 20_000}
        view = ProfileView(profile)
        assert op_statistics(view, view.selection()).cpu.total.tolist()[0] == 20_000
        assert sorted(profile.launches.duration_ns.tolist()) == [5_000, 10_000, 10_000]
        (row,) = [r for r in range(len(profile.ops)) if profile.strings[profile.ops.name[r]] == "conv2d"]
        assert profile.shapes_of(row) == ((8, 3, 32, 32),)
        assert [one.label for one in profile.dtypes_of(row)] == ["fp16"]

    def test_two_ranks_with_the_same_correlation_ids_are_joined_by_process(self, database) -> None:
        for rank, pid in enumerate((200, 300)):
            database.range("aten::mm, op_id = 1" if rank else "aten::relu, op_id = 1", 0, 10, pid=pid)
            database.call(2, 1, 77, pid=pid)
            database.activity(KERNEL, 20, 10 * (rank + 1), 77, pid=pid, demangledName=database.text(f"kernel{rank}"))
        profiles = analyze_ranks(database.write())
        assert [profile.source.rank for profile in profiles] == [0, 1]
        assert [gpu_time_of_types(profile) for profile in profiles] == [{"relu": 10_000}, {"mm": 20_000}]
        for profile in profiles:
            (note,) = (note for note in profile.notes if note.code == "several_processes")
            assert "2 processes, each of which is a rank: 200, 300, from rank 0 on" in note.text

    def test_ranks_are_mpi_s_where_they_were_recorded(self, database) -> None:
        for pid, rank in ((200, 1), (300, 0)):
            database.launch("k", 0, 10, 10, pid=pid)
            database.row("MPI_RANKS", globalTid=thread(1, pid), rank=rank)
        first, second = analyze_ranks(database.write())
        assert (first.source.rank, second.source.rank) == (0, 1)
        assert "several_processes" not in note_codes(first)

    def test_a_backward_node_of_another_thread_belongs_to_its_forward_op(self, database) -> None:
        database.range("aten::linear, seq = 5, op_id = 1", 0, 10)
        database.launch("forward", 2, 20, 10)
        database.range("autograd::engine::evaluate_function: AddmmBackward0, op_id = 2", 40, 20, tid=2)
        database.range("AddmmBackward0, seq = 5, op_id = 3", 42, 10, tid=2)
        database.launch("backward", 45, 60, 30, tid=2)
        profile = only(database)
        view = ProfileView(profile)
        groups = view.groups
        found = {
            (profile.strings[t], Role(r)): int(profile.launches.duration_ns[view.launch_group == g].sum())
            for g, (t, r) in enumerate(zip(groups.op_type.tolist(), groups.role.tolist(), strict=True))
        }
        assert found == {("linear", Role.FORWARD): 10_000, ("linear", Role.BACKWARD): 30_000}

    def test_launches_of_a_thread_without_ranges_belong_to_the_range_another_waits_in(self, database) -> None:
        database.range("forward", 0, 10)
        database.launch("one", 2, 10, 5)
        database.range("backward", 20, 30)
        for at in (25, 30, 35):
            database.launch("two", at, at + 20, 4, tid=2)
        profile = only(database)
        assert gpu_time_of_types(profile) == {"forward": 5_000, "backward": 12_000}
        assert profile.launches.attribution.tolist() == [Attribution.LINKED, *[Attribution.BY_TIME] * 3]
        # They add time to the range's call, and are no calls of their own.
        view = ProfileView(profile)
        assert sorted(op_statistics(view, view.selection()).instances.tolist()) == [1, 1]
        assert {note.code: note.count for note in profile.notes}["by_time"] == 3

    def test_nothing_is_attributed_by_time_where_the_other_thread_works_too(self, database) -> None:
        database.range("both work", 0, 50)
        database.launch("own", 25, 60, 5)
        for at in (20, 30):
            database.launch("other", at, 70 + at, 4, tid=2)
        profile = only(database)
        assert gpu_time_of_types(profile) == {"both work": 5_000, "other": 8_000}
        assert Attribution.BY_TIME not in profile.launches.attribution.tolist()

    def test_nothing_is_attributed_by_time_where_two_threads_wait(self, database) -> None:
        for tid in (1, 3):
            database.range(f"thread {tid}", 0, 50, tid=tid)
        database.launch("other", 20, 70, 4, tid=2)
        assert set(only(database).launches.attribution.tolist()) == {Attribution.UNATTRIBUTED}

    def test_a_range_that_ends_on_another_thread_is_around_no_call_of_its_thread(self, database) -> None:
        database.domain("TensorFlow", 1)
        database.range("layer", 0, 50, eventType=60, domainId=1, endGlobalTid=thread(9))
        database.range("own", 10, 10)
        database.launch("k", 12, 60, 5)
        assert gpu_time_of_types(only(database)) == {"own": 5_000}


class TestTables:
    def test_the_second_row_of_a_call_with_a_backtrace_is_none(self, database) -> None:
        correlation = database.launch("k", 0, 10, 5)
        database.rows[RUNTIME].append(database.rows[RUNTIME][0] | {"eventClass": 67})
        profile = only(database)
        assert (len(profile.calls), correlation) == (1, 1)

    def test_a_graph_that_was_recorded_whole_is_one_activity_of_which_nothing_more_is_known(self, database) -> None:
        call = database.call(0, 5, name="cudaGraphLaunch_v10000")
        database.activity(GRAPH, 10, 30, call, graphExecId=4)
        database.launch("direct", 6, 50, 10)
        profile = only(database)
        rows = {profile.strings[name]: row for row, name in enumerate(profile.kernels.name.tolist())}
        assert profile.kernels.tensor_core[rows["CUDA graph 4"]] == Verdict.UNKNOWN
        (note,) = [note for note in profile.notes if note.code == "whole_graphs"]
        assert note.text.startswith("75 % of the GPU's time ran in CUDA graphs")
        assert "--cuda-graph-trace=node" in note.text
        assert gpu_time_of_types(profile)["cudaGraphLaunch"] == 30_000

    def test_copies_are_named_as_kineto_names_them(self, database) -> None:
        call = database.call(0, 5, name="cudaMemcpyAsync_v3020")
        database.activity(COPY, 10, 5, call, copyKind=1, srcKind=1, dstKind=2, bytes=4096)
        database.activity(COPY, 20, 5, 0, copyKind=11, srcKind=4, dstKind=4, bytes=64)
        profile = only(database)
        names = [profile.strings[name] for name in profile.kernels.name.tolist()]
        assert names == ["Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Managed -> Managed)"]
        assert profile.launches.bytes.tolist() == [4096, 64]
        assert "unified_memory" in note_codes(profile)

    def test_the_device_is_cuda_s_ordinal_and_not_the_row_of_the_gpu(self, database) -> None:
        for gpu, ordinal in ((0, 3), (1, 0)):
            database.row(
                "TARGET_INFO_GPU", id=gpu, cuDevice=ordinal, name=f"GPU {ordinal}", computeMajor=8, computeMinor=0
            )
        database.launch("k", 0, 10, 5)
        assert [(gpu.id, gpu.name) for gpu in only(database).system.gpus] == [(0, "GPU 0")]
        database.row("TARGET_INFO_CUDA_DEVICE", pid=100, cudaId=0, gpuId=0)
        assert [(gpu.id, gpu.name) for gpu in only(database).system.gpus] == [(0, "GPU 3")]

    def test_what_the_machine_is_comes_from_the_environment(self, database) -> None:
        for name, value in (("NvDriverVersion", "52510517"), ("CpuDescription", "EPYC"), ("CpuCores", "64")):
            database.row("TARGET_INFO_SYSTEM_ENV", name=name, value=value)
        database.launch("k", 0, 10, 5)
        system = only(database).system
        assert (system.driver_version, system.cpu_model, system.cpu_count) == ("525.105.17", "EPYC", 64)

    def test_columns_that_are_missing_are_unknown(self, database) -> None:
        database.row(KERNEL, start=1000, end=2000, shortName=database.text("k"))
        profile = only(database)
        assert (len(profile.launches), profile.launches.duration_ns.tolist()) == (1, [1000])
        assert profile.launch_configs.grid.tolist()[-1] == [-1, -1, -1]

    def test_occupancy_is_computed_from_the_limits_of_the_gpu(self, database) -> None:
        database.row(
            "TARGET_INFO_GPU", id=0, name="A100", smCount=108, maxWarpsPerSm=64, maxBlocksPerSm=32,
            maxRegistersPerSm=65536, maxShmemPerSm=167936, threadsPerWarp=32, computeMajor=8, computeMinor=0,
        )  # fmt: skip
        shape = {"gridY": 1, "gridZ": 1, "blockY": 1, "blockZ": 1, "staticSharedMemory": 0, "dynamicSharedMemory": 0}
        # 128 registers leave room for 4 blocks of 4 warps; one block an SM is a quarter of that.
        database.launch("full", 0, 10, 5, gridX=1080, blockX=128, registersPerThread=128, **shape)
        database.launch("few", 1, 20, 5, gridX=108, blockX=128, registersPerThread=128, **shape)
        assert sorted(only(database).launch_configs.occupancy_percent.tolist()) == [-1, 6, 25]

    def test_reports_from_before_2021_name_the_gpu_in_another_table(self, database) -> None:
        database.row(
            "TARGET_INFO_CUDA_GPU", deviceId=0, name="Tesla V100-SXM2-16GB", computeCapabilityMajor=7,
            computeCapabilityMinor=0, numMultiprocessors=80, globalMemorySize=17 * 10**9,
        )  # fmt: skip
        database.launch("k", 0, 10, 5)
        (gpu,) = only(database).system.gpus
        assert (gpu.name, gpu.compute_capability, gpu.sm_count, gpu.memory_bytes) == (
            "Tesla V100-SXM2-16GB", (7, 0), 80, 17 * 10**9,
        )  # fmt: skip

    def test_a_gpu_of_which_the_name_alone_is_known_has_its_capability(self, database) -> None:
        database.row("TARGET_INFO_GPU", id=0, name="NVIDIA TITAN RTX")
        database.launch("k", 0, 10, 5)
        assert only(database).system.gpus[0].compute_capability == (7, 5)

    def test_times_before_the_recording_are_kept_and_impossible_ones_are_not(self, database) -> None:
        database.range("aten::mm, op_id = 1", -500, 600)
        database.launch("k", 0, 10, 5)
        database.activity(KERNEL, 10**15, 5, 99, demangledName=database.text("absurd"))
        profile = only(database)
        assert (len(profile.launches), profile.calls.start_ns.min()) == (1, 0)
        assert {note.code: note.count for note in profile.notes}["absurd_time"] == 1

    def test_a_range_that_was_open_at_the_end_ends_with_the_recording(self, database) -> None:
        database.range("aten::mm, op_id = 1", 0, None)
        database.launch("k", 2, 10, 5)
        assert gpu_time_of_types(only(database)) == {"mm": 5_000}

    def test_a_process_without_gpu_work_is_left_out_where_others_have_some(self, database) -> None:
        database.range("loads data", 0, 10, pid=500)
        database.launch("k", 2, 10, 5)
        (note,) = (note for note in only(database).notes if note.code == "processes_left_out")
        assert note.text.startswith("Process 500 of the file used no GPU, and is left out")

    def test_a_gzip_file_is_read_as_what_is_in_it(self, database, tmp_path) -> None:
        import gzip

        database.launch("k", 0, 10, 5)
        packed = tmp_path / "packed.sqlite.gz"
        packed.write_bytes(gzip.compress(database.write().read_bytes()))
        assert len(analyze_ranks(packed)[0].launches) == 1
        packed.write_bytes(packed.read_bytes()[:-200])
        with pytest.raises(TraceError, match="is a damaged gzip file"):
            read_timelines(packed)


class TestNothingThere:
    def test_a_recording_without_gpu_work_says_which_option_records_it(self, database) -> None:
        database.row("OSRT_API", start=0, end=1)
        with pytest.raises(
            TraceError, match=r"report.sqlite holds only calls of the operating system: .* --trace=cuda,nvtx"
        ):
            analyze_ranks(database.write())

    def test_calls_without_kernels_are_told_apart(self, database) -> None:
        database.call(0, 1, name="cudaMalloc_v3020")
        with pytest.raises(TraceError, match="holds CUDA calls, but no kernel, copy or NVTX range"):
            analyze_ranks(database.write())

    def test_ranges_without_kernels_are_a_profile_that_says_so(self, database) -> None:
        database.range("aten::mm, op_id = 1", 0, 10)
        profile = only(database)
        assert (profile.has_gpu, "no_gpu_trace" in note_codes(profile)) == (False, True)


class TestHostileDatabases:
    def test_hostile_text_is_text(self, database) -> None:
        names = [
            "<script>alert(1)</script>",
            "'; DROP TABLE StringIds; --",
            "\x1b[31m",
            "= 1 + 1",
            "{'op': __import__('os')}",
        ]
        for at, name in enumerate(names):
            database.range(name, at * 10, 9)
            database.launch(f"kernel {name}", at * 10 + 2, 100 + at, 1)
        profile = only(database)
        assert set(names[:4]) <= set(gpu_time_of_types(profile))
        with sqlite3.connect(database.path) as db:
            assert db.execute("SELECT count(*) FROM StringIds").fetchone()[0] > 0

    def test_no_dict_of_a_range_is_executed(self, database, tmp_path) -> None:
        made = tmp_path / "made"
        database.range(f"{{'op': open({str(made)!r}, 'w')}}", 0, 9)
        database.range("{'op': 'mm', 'args': " + "(" * 5000, 10, 9)
        database.launch("k", 12, 100, 1)
        assert gpu_time_of_types(only(database)) == {"mm": 1_000}
        assert not made.exists()

    def test_tables_and_columns_of_any_name_change_nothing(self, database) -> None:
        database.launch("k", 2, 10, 5)
        path = database.write()
        with sqlite3.connect(path) as db:
            db.execute('CREATE TABLE "x""; DROP TABLE StringIds; --" (a)')
            db.execute('ALTER TABLE StringIds ADD COLUMN "value"" FROM sqlite_master; --" TEXT')
        assert len(analyze_ranks(path)[0].launches) == 1

    def test_a_view_is_no_table(self, database) -> None:
        database.launch("k", 2, 10, 5)
        path = database.write()
        with sqlite3.connect(path) as db:
            endless = (
                'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS "end" FROM n'
            )
            db.execute(f"CREATE VIEW {COPY} AS {endless}")
        assert len(analyze_ranks(path)[0].launches) == 1

    def test_values_of_other_types_are_missing(self, database) -> None:
        database.launch("k", 2, 10, 5)
        database.row(KERNEL, start="now", end=b"\xff", deviceId=1.5, globalPid="x", correlationId=2**70 // 2**8)
        database.rows[RANGES] = [
            {"start": 0, "end": 10**4, "eventType": 59, "text": b"\xff\xfe", "globalTid": thread()}
        ]
        assert len(only(database).launches) == 1

    @pytest.mark.parametrize("size", [100, 1000, 5000, 9000])
    def test_a_file_that_was_cut_is_one_sentence_or_what_is_left(self, database, size: int) -> None:
        for at in range(50):
            database.launch("k", at, 100 + at, 1)
        path = database.write()
        path.write_bytes(path.read_bytes()[:size])
        try:
            said, launches = "", len(analyze_ranks(path)[0].launches)
        except TraceError as error:
            said, launches = str(error), 0
        assert launches <= 50
        assert bool(launches) != said.startswith(str(path))


def report_with_nsys(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """A report, and a shell script in the place of the nsys that exports it."""
    nsys = folder / "bin-nsys"
    nsys.write_text(f"#!/bin/sh\n{script}")
    nsys.chmod(0o755)
    monkeypatch.setattr("tb_dlprof_plugin.readers.nsys.report_file.find_nsys", lambda: str(nsys))
    report = folder / "a.nsys-rep"
    report.write_bytes(b"closed")
    return report


class TestReports:
    def test_without_nsys_the_command_to_run_is_named(self, tmp_path, monkeypatch) -> None:
        monkeypatch.setattr("tb_dlprof_plugin.readers.nsys.report_file.find_nsys", lambda: None)
        report = tmp_path / "my run.nsys-rep"
        report.write_bytes(b"closed")
        assert format_of(report).NAME == "nsys"
        with pytest.raises(TraceError, match=r"nsys export --type sqlite -o 'my run.sqlite' '.*my run.nsys-rep'"):
            read_timelines(report)

    @pytest.mark.parametrize(
        ("says", "sentence"),
        [
            (
                "Report was created in Nsight Systems version (2026.1.1), newer than your current version (2023.4.4).",
                "was recorded by Nsight Systems 2026.1.1, and .* is 2023.4.4",
            ),
            ("cannot open", "says: cannot open. Run `nsys export"),
        ],
    )
    def test_what_nsys_says_is_told(self, tmp_path, monkeypatch, says: str, sentence: str) -> None:
        report = report_with_nsys(tmp_path, monkeypatch, f"echo '{says}' >&2\nexit 1\n")
        with pytest.raises(TraceError, match=sentence):
            read_timelines(report.rename(tmp_path / "a.qdrep"))

    def test_an_exported_report_is_read_and_the_copy_removed(self, database, tmp_path, monkeypatch) -> None:
        database.launch("k", 0, 10, 5)
        copy = f'cp "{database.write()}" "$2"; echo "$2" > "{tmp_path}/where"\n'
        report = report_with_nsys(tmp_path, monkeypatch, f"while [ $1 != --output ]; do shift; done\n{copy}")
        assert len(analyze_ranks(report)[0].launches) == 1
        assert not Path((tmp_path / "where").read_text().strip()).exists()

    def test_an_nsys_without_the_option_for_payloads_exports_all_else(self, database, tmp_path, monkeypatch) -> None:
        database.launch("k", 0, 10, 5)
        refuse = 'case "$*" in *include-blobs*) echo "unknown include-blobs"; exit 1;; esac\n'
        copy = f'while [ $1 != --output ]; do shift; done\ncp "{database.write()}" "$2"\n'
        report = report_with_nsys(tmp_path, monkeypatch, refuse + copy)
        assert len(analyze_ranks(report)[0].launches) == 1

    def test_of_a_report_and_its_database_the_database_is_found(self, tmp_path) -> None:
        for name in ("a.nsys-rep", "a.sqlite", "b.qdrep"):
            (tmp_path / name).write_bytes(b"")
        assert [one.name for one in files_below(tmp_path)] == ["a.sqlite", "b.qdrep"]


def test_several_batches_are_joined(database, monkeypatch) -> None:
    monkeypatch.setattr("tb_dlprof_plugin.readers.sqlite_tables._BATCH_ROWS", 3)
    for at in range(10):
        database.range(f"aten::mm, seq = {at}, op_id = {at}", at * 10, 9)
        database.launch("k", at * 10 + 1, 200 + at * 10, at + 1)
    seen: list[float] = []
    (timeline,) = read_timelines(database.write(), progress=seen.append)
    assert timeline.device.duration_ns.tolist() == [1000 * (at + 1) for at in range(10)]
    assert sorted(timeline.host.sequence_number[timeline.host.sequence_number >= 0].tolist()) == list(range(10))
    assert seen == sorted(seen)
    assert 0 < seen[-1] < 1
    assert np.all(timeline.device.correlation > 0)
