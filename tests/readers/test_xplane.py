"""XPlane files: what is read, what is left out, and what a broken file says."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support.xplane_files import Space

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.model.profile import Attribution, Profile, Role
from tb_dlprof_plugin.model.timeline import DeviceKind, Timeline
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.registry import format_of, read_timelines
from tb_dlprof_plugin.readers.xplane.xplane_pb2 import HloProto

FIXTURES = Path(__file__).parent / "xplane"
JAX, KERAS = FIXTURES / "jax_h200.xplane.pb.gz", FIXTURES / "keras_cpu.xplane.pb.gz"
DETAILS = "regs:38 static_shared:16 dynamic_shared:32 grid:160,1,1 block:1024,1,1 occ_pct:50"


@pytest.fixture(scope="module")
def jax() -> Profile:
    return analyze_ranks(JAX)[0]


def test_the_recording_of_jax_has_the_kernels_that_jax_wrote_as_json(jax: Profile) -> None:
    events = json.loads(gzip.decompress((FIXTURES / "jax_h200.trace.json.gz").read_bytes()))["traceEvents"]
    names = {one["pid"]: one["args"]["name"] for one in events if one.get("name") == "process_name"}
    theirs = [one for one in events if one.get("ph") == "X" and "GPU" in names.get(one["pid"], "")]
    streams = {
        (one["pid"], one["tid"])
        for one in events
        if one.get("name") == "thread_name" and "Stream" in one["args"]["name"]
    }
    theirs = [one for one in theirs if (one["pid"], one["tid"]) in streams]
    kernels, launches = jax.kernels, jax.launches
    ours = Counter(jax.strings[kernels.name[kernel]] for kernel in launches.kernel.tolist())
    assert ours["Memset (Device)"] == sum(one["name"].startswith("Memset") for one in theirs)
    assert {name: count for name, count in ours.items() if name != "Memset (Device)"} == Counter(
        one["name"] for one in theirs if not one["name"].startswith("Memset")
    )
    assert int(launches.duration_ns.sum()) == round(sum(one["dur"] for one in theirs) * 1000)


def test_all_kernels_of_command_buffers_have_the_instruction_that_the_program_schedules(jax: Profile) -> None:
    strings, ops, launches = jax.strings, jax.ops, jax.launches
    assert (launches.attribution == Attribution.LINKED).all()
    op = jax.calls.op[launches.call]
    pairs = [
        (strings[jax.kernels.name[kernel]], strings[ops.name[row]])
        for kernel, row in zip(launches.kernel.tolist(), op.tolist(), strict=True)
    ]
    generated = [(kernel, name) for kernel, name in pairs if "fusion" in kernel or kernel.startswith("wrapped")]
    # A kernel has the name of its instruction, or that of an earlier one with the same code.
    assert all(
        kernel.rstrip("0123456789_") == name.rstrip("0123456789.").replace("-", "_") for kernel, name in generated
    )
    library = {name.rpartition(".")[0] for kernel, name in pairs if kernel.startswith("nvjet")}
    assert library == {"custom-call"}
    assert len(generated) + sum(kernel.startswith(("nvjet", "Memset")) for kernel, _ in pairs) == len(pairs)


def test_the_recording_of_jax_is_known_by_steps_modules_and_types(jax: Profile) -> None:
    strings, ops = jax.strings, jax.ops
    assert (jax.source.format, jax.source.framework) == ("xplane", "jax")
    assert jax.iterations.found_by == "step_annotation"
    assert jax.iterations.number.tolist() == [0, 1, 2, 3, 4]
    assert jax.iterations.duration_ns[1:].tolist() == pytest.approx([14_780_000] * 4, rel=0.01)
    assert [(gpu.name, gpu.compute_capability, gpu.sm_count) for gpu in jax.system.gpus] == [
        ("NVIDIA H200", (9, 0), 132)
    ]
    modules = {strings[row] for row in ops.module.tolist()}
    assert {"jit__lambda.block_0.attention", "jit__lambda.block_5.mlp"} <= modules
    first = {
        (
            strings[ops.op_type[row]],
            int(ops.role[row]),
            jax.input_shapes[ops.shapes[row]],
            jax.input_dtypes[ops.dtypes[row]][0].label,
        )
        for row in range(len(ops))
        if strings[ops.name[row]] == "gemm_fusion_dot.62"
    }
    assert first == {("dot_general", Role.FORWARD, ((8192, 1024), (1024, 1024)), "bf16")}
    assert {int(role) for role in ops.role} >= {Role.FORWARD, Role.BACKWARD}
    assert [(note.code, note.count) for note in jax.notes] == [("command_buffers", 1695)]


def test_the_recording_of_keras_has_layers_steps_and_the_wait_for_data() -> None:
    profile = analyze_ranks(KERAS)[0]
    strings, ops = profile.strings, profile.ops
    rows = {strings[ops.name[row]]: row for row in range(len(ops))}
    relu = rows["sequential_1/conv2d_1/Relu:_MklNativeFusedConv2D"]
    assert (strings[ops.op_type[relu]], strings[ops.module[relu]]) == ("_MklNativeFusedConv2D", "sequential_1.conv2d_1")
    assert {int(ops.role[row]) for name, row in rows.items() if name.startswith("gradient_tape/")} == {Role.BACKWARD}
    assert {int(ops.role[row]) for name, row in rows.items() if "IteratorGetNext" in name} == {Role.DATALOADER}
    assert profile.source.framework == "tensorflow"
    assert profile.iterations.found_by == "step_annotation"
    assert len(profile.iterations) == 5
    assert [note.code for note in profile.notes] == ["no_gpu", "no_shapes"]


def _timeline(space: Space, tmp_path: Path) -> Timeline:
    return read_timelines(space.write(tmp_path / "host.xplane.pb"))[0]


def _small() -> Space:
    """A GPU with one kernel of an instruction, and its launch."""
    space = Space()
    gpu = space.plane("/device:GPU:0", device_vendor="Nvidia", core_count=80, compute_cap_major=7, compute_cap_minor=0)
    named = {
        "hlo_op": "fusion.7",
        "hlo_module": "jit_step",
        "tf_op": "XlaModule:",
        "name": "jit(step)/jvp(net)/layer/mul",
    }
    gpu.event("Stream #13(Compute)", "fusion_7", 20, 5, correlation_id=9, kernel_details=DETAILS, **named)
    host = space.plane("/host:CPU")
    host.event("thread", "cuLaunchKernel", 2, 3, correlation_id=9, device_id=0)
    return space


def test_a_kernel_gets_its_op_stream_and_configuration_from_its_own_stats(tmp_path: Path) -> None:
    profile = analyze_ranks(_small().write(tmp_path / "a.xplane.pb"))[0]
    strings, ops, launches = profile.strings, profile.ops, profile.launches
    top = int(np.flatnonzero(ops.top)[0])
    assert [strings[column[top]] for column in (ops.name, ops.op_type, ops.module)] == [
        "fusion.7",
        "mul",
        "jit_step.net.layer",
    ]
    assert ops.role[top] == Role.FORWARD
    assert (launches.stream.tolist(), launches.attribution.tolist()) == ([13], [Attribution.LINKED])
    assert strings[ops.name[profile.calls.op[launches.call[0]]]] == "cuLaunchKernel"
    config = int(launches.config[0])
    configs = profile.launch_configs
    assert (configs.grid[config].tolist(), configs.block[config].tolist()) == ([160, 1, 1], [1024, 1, 1])
    assert configs.registers_per_thread[config] == 38
    assert configs.shared_memory_bytes[config] == 48
    assert configs.occupancy_percent[config] == 50


@pytest.mark.parametrize("line", ["XLA Ops", "Steps", "TensorFlow Ops", "Source code", "Framework Name Scope"])
def test_lines_that_the_profiler_derives_are_no_work(line: str, tmp_path: Path) -> None:
    space = _small()
    space.planes[0].event(line, "fusion_7", 20, 5, kernel_details=DETAILS)
    assert len(_timeline(space, tmp_path).device) == 1


def test_a_line_is_derived_by_its_number_too(tmp_path: Path) -> None:
    space = _small()
    space.planes[0].event("something new", "fusion_7", 20, 5, line_id=0xDEADBEEF - 2**32, kernel_details=DETAILS)
    assert len(_timeline(space, tmp_path).device) == 1


def test_copies_and_sets_have_kinetos_words_and_their_bytes(tmp_path: Path) -> None:
    space = _small()
    gpu = space.planes[0]
    gpu.event("Stream #2", "MemcpyH2D", 1, 1, memcpy_details="kind_src:pinned kind_dst:device size:64 dest:0 async:1")
    gpu.event("Stream #2", "MemcpyD2H", 3, 1, memcpy_details="num_bytes:32 async:0")
    gpu.event("Stream #2", "Memset 0", 5, 1, Memset_details="kind:unknown num_bytes:4 async:0")
    timeline = _timeline(space, tmp_path)
    device = timeline.device
    rows = zip(device.name.tolist(), device.kind.tolist(), device.bytes.tolist(), strict=True)
    assert [(timeline.strings[name], kind, size) for name, kind, size in rows] == [
        ("Memcpy HtoD (Pinned -> Device)", DeviceKind.MEMCPY, 64),
        ("Memcpy DtoH (Device -> Pageable)", DeviceKind.MEMCPY, 32),
        ("Memset (Device)", DeviceKind.MEMSET, 4),
        ("fusion_7", DeviceKind.KERNEL, -1),
    ]  # fmt: skip


def test_times_of_lines_count_from_the_recording_or_from_1970(tmp_path: Path) -> None:
    space = Space()
    gpu = space.plane("/device:GPU:0")
    gpu.event("Stream #1", "relative", 1, 1, begin_ns=500)
    gpu.event("Stream #2", "absolute", 1, 1, begin_ns=1_700_000_000_000_000_700)
    space.plane("Task Environment", profile_start_time=1_700_000_000_000_000_000)
    timeline = _timeline(space, tmp_path)
    assert timeline.base_time_unix_ns == 1_700_000_000_000_000_000
    assert timeline.device.start_ns.tolist() == [1500, 1700]


def test_events_years_away_from_the_others_are_left_out(tmp_path: Path) -> None:
    space = _small()
    now = 1_790_000_000 * 10**9
    for plane in space.planes:
        for line in plane.message.lines:
            line.timestamp_ns = now
    space.plane("/host:CPU").event("other thread", "long ago", 5, 2, begin_ns=10**18)
    profile = analyze_ranks(space.write(tmp_path / "a.xplane.pb"))[0]
    assert len(profile.launches) == 1
    assert next(note.count for note in profile.notes if note.code == "events_lost") == 1


def test_each_gpu_that_worked_is_a_rank_and_idle_ones_are_none(tmp_path: Path) -> None:
    space = _small()
    space.plane("/device:GPU:1")
    space.plane("/device:GPU:2").event("Stream #1", "other", 30, 5, correlation_id=11, kernel_details=DETAILS)
    space.planes[1].event("thread", "cuLaunchKernel", 8, 1, correlation_id=11)
    first, second = read_timelines(space.write(tmp_path / "a.xplane.pb"))
    assert (first.device.device.tolist(), second.device.device.tolist()) == ([0], [2])
    assert [one.code for one in first.notes] == ["idle_gpus"]
    # Each rank has the launches of its own GPU alone.
    assert (first.host.correlation.max(), second.host.correlation.max()) == (9, 11)
    assert len(first.host.correlation[first.host.correlation > 0]) == 1


@pytest.mark.parametrize("threads", ["one for each GPU", "one for all"])
def test_the_runs_of_a_program_on_all_gpus_are_one_step(threads: str, tmp_path: Path) -> None:
    space = Space()
    host = space.plane("/host:CPU")
    for gpu in range(4):
        device = space.plane(f"/device:GPU:{gpu}")
        thread = f"py_xla_execute/{gpu if threads == 'one for each GPU' else 0}"
        for step in range(3):
            at, launch = 1000 * step + 100 * gpu, 10 * step + gpu + 1
            host.event(thread, "jit_step:XLA GPU module", at, 80)
            host.event(thread, "cuLaunchKernel", at + 10, 5, correlation_id=launch)
            device.event(
                "Stream #1",
                "fusion",
                at + 50,
                600,
                correlation_id=launch,
                kernel_details=DETAILS,
                hlo_module="jit_step",
            )
    for profile in analyze_ranks(space.write(tmp_path / "a.xplane.pb")):
        assert (profile.iterations.found_by, len(profile.iterations)) == ("program_run", 3)


def test_hosts_of_a_session_are_ranks_in_the_order_of_their_names(tmp_path: Path) -> None:
    session = tmp_path / "plugins" / "profile" / "2026_01_02_03_04_05"
    for host in ("b", "a"):
        _small().write(session / f"{host}.xplane.pb")
    ranks = {host: read_timelines(session / f"{host}.xplane.pb")[0].rank for host in ("a", "b")}
    assert ranks == {"a": 0, "b": 1}
    assert format_of(session / "a.xplane.pb").run_name(session / "a.xplane.pb") == "2026_01_02_03_04_05"


def test_kernels_of_a_command_buffer_without_its_program_keep_the_buffer_and_say_so(tmp_path: Path) -> None:
    space = Space()
    gpu = space.plane("/device:GPU:0")
    for at in range(3):
        gpu.event(
            "Stream #1", f"k{at}", 20 + 5 * at, 4, correlation_id=4, cuda_graph_id=7, kernel_details=DETAILS,
            hlo_op="command_buffer", hlo_module="jit_step",
        )  # fmt: skip
    space.plane("/host:CPU").event("t", "cuGraphLaunch (CudaGraph:7)", 1, 9, correlation_id=4, cuda_graph_id=7)
    profile = analyze_ranks(space.write(tmp_path / "a.xplane.pb"))[0]
    assert (profile.launches.attribution == Attribution.LINKED).all()
    assert {profile.strings[profile.ops.name[row]] for row in profile.calls.op[profile.launches.call]} == {
        "command_buffer"
    }
    note = next(note for note in profile.notes if note.code == "command_buffers")
    assert (note.count, "could not be found" in note.text) == (3, True)


def test_a_kernel_that_comes_again_is_the_next_call_of_its_op(tmp_path: Path) -> None:
    space = Space()
    gpu, host = space.plane("/device:GPU:0"), space.plane("/host:CPU")
    launched = [("x", "f"), ("x", "g"), ("x", "f"), ("x", "f"), ("x", "g"), ("y", "f"), ("x", "f")]
    for number, (op, kernel) in enumerate(launched, 1):
        text = {"hlo_op": op, "hlo_module": "jit_step", "kernel_details": DETAILS}
        gpu.event("Stream #1", kernel, 100 + 10 * number, 5, correlation_id=number, device_id=0, **text)
        host.event("thread", "cuLaunchKernel", 10 * number, 2, correlation_id=number, device_id=0)
    profile = analyze_ranks(space.write(tmp_path / "a.xplane.pb"))[0]
    strings, ops, calls = profile.strings, profile.ops, profile.calls
    of_ops = [row for row in range(len(calls.op)) if strings[ops.name[calls.op[row]]] in ("x", "y")]
    found = [(strings[ops.name[calls.op[row]]], calls.duration_ns[row]) for row in of_ops]
    assert found == [("x", 12_000), ("x", 2_000), ("x", 12_000), ("y", 2_000), ("x", 2_000)]


def test_a_tensorflow_op_on_another_thread_is_found_by_name_and_time(tmp_path: Path) -> None:
    space = Space()
    gpu, host = space.plane("/device:GPU:0"), space.plane("/host:CPU")
    gpu.event("Stream #1", "gemm", 20, 5, correlation_id=3, kernel_details=DETAILS, tf_op="model/dense/MatMul:MatMul")
    host.event("executor", "model/dense/MatMul:MatMul", 1, 10)
    host.event("Host Threads/5", "cuLaunchKernel", 4, 2, correlation_id=3)
    profile = analyze_ranks(space.write(tmp_path / "a.xplane.pb"))[0]
    call = int(profile.launches.call[0])
    assert profile.strings[profile.ops.name[profile.calls.op[call]]] == "model/dense/MatMul:MatMul"
    assert (profile.calls.start_ns[call], profile.calls.duration_ns[call]) == (1000, 10_000)
    assert int((profile.ops.kind == 0).sum()) == 1


def test_a_tpu_is_refused_in_one_sentence(tmp_path: Path) -> None:
    space = Space()
    space.plane("/device:TPU:0").event("XLA Ops", "fusion", 1, 1)
    with pytest.raises(TraceError, match=r"recorded on a TPU.*Profile plugin"):
        _timeline(space, tmp_path)


def test_a_file_cut_short_keeps_its_whole_planes(tmp_path: Path) -> None:
    whole = _small().text()
    path = tmp_path / "cut.xplane.pb"
    path.write_bytes(whole[:-4])
    assert "cut_short" in [note.code for note in read_timelines(path)[0].notes]


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    space = _small()
    evil = "<script>alert(1)</script>\x00\u202e"
    space.planes[1].event("t2", evil, 1, 1)
    space.planes[1].event("t2", "$../../etc/passwd.py:1 " + evil, 3, 1)
    space.planes[1].message.event_metadata[90].name = b"\xff\xfe broken"
    assert evil in _timeline(space, tmp_path).strings


def test_bytes_changed_at_random_give_a_timeline_or_one_sentence(tmp_path: Path) -> None:
    source, path = bytearray(_hlo_space().text()), tmp_path / "fuzz.xplane.pb"
    rng, refused, unnamed = random.Random(7), 0, 0
    for _ in range(400):
        text = bytearray(source)
        for _ in range(rng.randint(1, 6)):
            text[rng.randrange(len(text))] = rng.randrange(256)
        path.write_bytes(text[: rng.randint(1, len(text))] if rng.random() < 0.3 else text)
        try:
            analyze_ranks(path)
        except TraceError as error:
            refused += 1
            unnamed += str(path) not in str(error)
    assert 0 < refused < 400
    assert not unnamed


def _hlo_space() -> Space:
    hlo = HloProto()
    module = hlo.hlo_module
    module.name, module.entry_computation_id = b"jit_step", 1
    module.computations.add(id=1)
    for number, opcode in enumerate((b"parameter", b"dot", b"while"), 1):
        row = module.computations[0].instructions.add(id=number, name=b"i." + str(number).encode(), opcode=opcode)
        row.operand_ids.append(1)
        row.called_computation_ids.append(1)  # a loop around itself
    space = _small()
    space.program("jit_step", 3, hlo)
    return space


def test_a_program_that_calls_itself_ends(tmp_path: Path) -> None:
    space = _hlo_space()
    named = {"hlo_op": "command_buffer", "hlo_module": "jit_step"}
    space.planes[0].event("Stream #1", "gemm", 40, 4, correlation_id=4, cuda_graph_id=7, **named)
    timeline = _timeline(space, tmp_path)
    assert "i.2" in {timeline.strings[name] for name in timeline.host.name}
