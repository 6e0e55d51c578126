"""Facts of a rank from recordings: real ones of two ranks, and small ones with the arguments of newer versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.operations import operations

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.fleet import calls_of_profile
from tb_dlprof_plugin.fleet.calls_of_profile import notes_of_launches
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.matching import match
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Operation, RankFacts
from tb_dlprof_plugin.fleet.run_writer import write_run
from tb_dlprof_plugin.fleet.stored_facts import facts_of_job
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store import reclassify
from tb_dlprof_plugin.store.choice import of_common_cycle
from tb_dlprof_plugin.store.codec import decode, encode
from tb_dlprof_plugin.store.event_file import read_blobs, write_profile

TRACES = Path(__file__).resolve().parents[1] / "traces"
NCCL = [TRACES / f"nccl_rank{rank}.pt.trace.json.gz" for rank in (0, 1)]
GLOO = [TRACES / f"cpu_gloo_rank{rank}.pt.trace.json.gz" for rank in (0, 1)]


@pytest.fixture(scope="module")
def recorded() -> dict[Path, ProfileView]:
    return {path: ProfileView(analyze_trace(path)) for path in (*NCCL, *GLOO)}


def names(facts: RankFacts) -> list[str]:
    return [Operation(one).name for one in facts.collectives.operation.tolist()]


@pytest.mark.parametrize("path", [*NCCL, *GLOO], ids=lambda path: path.name.split(".")[0])
def test_the_account_of_each_step_adds_up(recorded: dict[Path, ProfileView], path: Path) -> None:
    facts = facts_of_profile(recorded[path])
    steps, calls = facts.steps, facts.collectives
    parts = steps.compute_ns + steps.copy_ns + steps.communication_ns + steps.idle_ns
    assert np.array_equal(parts, steps.end_ns - steps.start_ns)
    assert min(steps.compute_ns.min(), steps.communication_ns.min(), steps.idle_ns.min()) >= 0
    assert len(calls) > 0
    assert (calls.exposed_ns <= calls.duration_ns).all()
    assert (np.diff(calls.start_ns) >= 0).all()


def test_work_and_idle_time_fill_the_time_between_calls(recorded: dict[Path, ProfileView]) -> None:
    facts = facts_of_profile(recorded[NCCL[0]])
    calls = facts.collectives
    first = np.flatnonzero(np.diff(calls.iteration, prepend=-1))
    since = calls.start_ns[first] - calls.work_ns[first] - calls.idle_ns[first]
    assert np.array_equal(since, facts.steps.start_ns[calls.iteration[first]])


@pytest.mark.parametrize("paths", [NCCL, GLOO], ids=["nccl", "gloo"])
def test_all_calls_of_a_recorded_job_are_matched(recorded: dict[Path, ProfileView], paths: list[Path]) -> None:
    found = match([facts_of_profile(recorded[path]) for path in paths]).matching
    assert found.total > 0
    assert (found.matched, found.contradictions) == (found.total, 0)


def test_ranks_of_equal_work_have_equal_hashes(recorded: dict[Path, ProfileView]) -> None:
    one, two = (facts_of_profile(recorded[path]) for path in NCCL)
    assert set(one.steps.work_hash.tolist()) & set(two.steps.work_hash.tolist())
    assert set(one.kernels.key.tolist()) & set(two.kernels.key.tolist())


ARGUMENTS: dict[str, Any] = {
    "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "BFloat16",
    "Process Group Name": "7", "Process Group Description": "mesh_dp_shard", "Process Group Ranks": "[1, 3]",
}  # fmt: skip
KERNEL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


@pytest.fixture
def two_steps(new_trace: Callable[..., Any]) -> Any:
    """A trace of rank 1 of 4 with a kernel of 300 us in each of two steps of 1000 us."""
    groups = [
        {"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1, 2, 3]},
        {"pg_name": "7", "pg_desc": "mesh_dp_shard", "ranks": [1, 3]},
    ]
    trace = new_trace(
        distributedInfo={"backend": "nccl", "rank": 1, "world_size": 4, "pg_config": groups}, host_name="node3"
    )
    trace.gpu()
    for index in range(2):
        trace.step(index, 1000 * index, 1000)
        trace.op("aten::mm", 1000 * index + 10, 50)
        trace.launch("gemm", 1000 * index + 20, 1000 * index + 100, 300)
    return trace


def facts_of(trace: Any) -> RankFacts:
    """Of the profile as it comes back from an event file."""
    return facts_of_profile(ProfileView(decode(encode(trace.profile()))))


def note(trace: Any, at: float, **more: Any) -> None:
    """A call of the process group that launches nothing by itself."""
    trace.event("record_param_comms", "cpu_op", at, 20)
    trace.events[-1]["args"] = ARGUMENTS | more


def test_arguments_of_the_kernel_and_of_its_call_complete_each_other(two_steps: Any) -> None:
    note(two_steps, 150, **{"Process Group Ranks": "[1, 3]", "Seq": 41})
    two_steps.launch(KERNEL, 155, 450, 200)
    two_steps.events[-1]["args"] |= ARGUMENTS | {"Process Group Ranks": "[1, ..., 3]"}
    note(two_steps, 1150, Seq=42)
    two_steps.launch(KERNEL, 1155, 1450, 200)  # Kineto before 2026-04 leaves the kernel's out now and then.
    facts = facts_of(two_steps)
    calls = facts.collectives
    assert names(facts) == ["ALL_REDUCE", "ALL_REDUCE"]
    assert calls.sequence.tolist() == [41, 42]
    assert calls.bytes.tolist() == [2000, 2000]
    assert [facts.strings[one] for one in calls.dtype.tolist()] == ["BFloat16", "BFloat16"]
    own = facts.groups[calls.group[0]]
    assert (own.members, own.dimension) == ((1, 3), "dp_shard")
    assert (facts.world_size, facts.host, facts.backend, facts.rank) == (4, "node3", "nccl", 1)
    assert facts.mesh == (("dp_shard", 0),)


def test_calls_sent_off_together_share_their_kernel(two_steps: Any) -> None:
    note(two_steps, 150, **{"Collective name": "send", "Dst Rank": 3})
    note(two_steps, 180, **{"Collective name": "recv", "Src Rank": "3"})
    two_steps.launch("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 210, 450, 200)
    two_steps.launch("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 1210, 1450, 200)
    facts = facts_of(two_steps)
    assert names(facts) == ["SEND", "RECEIVE", "UNKNOWN"]
    assert facts.collectives.peer.tolist() == [3, 3, UNKNOWN]
    assert facts.collectives.start_ns[0] == facts.collectives.start_ns[1]


def sent_together(new_trace: Callable[..., Any], kernels: int) -> ProfileView:
    """A kernel on one thread, then others on a second thread, each for two calls that were sent off together."""
    trace = new_trace(distributedInfo={"backend": "nccl", "rank": 1, "world_size": 4})
    trace.gpu()
    trace.step(0, 0, 200 * kernels + 200)
    trace.launch(KERNEL, 10, 50, 5, tid=2)
    for index in range(kernels):
        at = 200 * index + 100
        note(trace, at, **{"Collective name": "send", "Dst Rank": 3})
        note(trace, at + 30, **{"Collective name": "recv", "Src Rank": 3})
        trace.launch("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", at + 60, at + 80, 50)
    view: ProfileView = trace.view()
    return view


def test_calls_sent_off_together_are_looked_at_once(new_trace: Callable[..., Any]) -> None:
    def steps(kernels: int) -> int:
        view = sent_together(new_trace, kernels)
        assert len(facts_of_profile(view).collectives) == 2 * kernels + 1
        return operations(lambda: notes_of_launches(view, np.arange(len(view.profile.launches))))

    assert steps(160) < 6 * steps(40)


def test_bytes_that_arguments_lack_are_found_for_all_calls_at_once(
    two_steps: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in (155, 255, 1155):
        two_steps.launch("ncclKernel_ReduceScatter_RING_LL_Sum_float(ncclWorkElem)", at, at + 300, 20)
    asked: list[int] = []
    found = calls_of_profile.bytes_of

    def counted(view: ProfileView, rows: Any) -> Any:
        asked.append(len(rows))
        return found(view, rows)

    monkeypatch.setattr(calls_of_profile, "bytes_of", counted)
    assert facts_of(two_steps).collectives.bytes.tolist() == [UNKNOWN] * 3
    assert asked == [3]


def test_a_unit_of_fsdp_is_the_calls_module(two_steps: Any) -> None:
    two_steps.annotation("FSDP::backward_prefetch for layers.2", 140, 100)
    two_steps.annotation("FSDP::all_gather (layers.1)", 1140, 100)
    for at in (150, 1150):
        note(two_steps, at, **{"Collective name": "_allgather_base", "Out msg nelems": 2000})
        two_steps.launch("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", at + 5, at + 300, 200)
    facts = facts_of(two_steps)
    assert [facts.strings[one] for one in facts.collectives.module.tolist()] == ["layers.2", "layers.1"]
    assert facts.collectives.bytes.tolist() == [4000, 4000]


def test_a_rank_without_calls_has_its_steps(two_steps: Any) -> None:
    facts = facts_of(two_steps)
    assert len(facts.collectives) == 0
    assert facts.steps.compute_ns.tolist() == [300_000, 300_000]


def test_kernels_without_arguments_are_known_by_name(two_steps: Any) -> None:
    two_steps.launch("ncclKernel_ReduceScatter_RING_LL_Sum_float(ncclWorkElem)", 155, 450, 200)
    two_steps.launch("void deep_ep::intranode::dispatch<8>()", 1155, 1450, 200)
    facts = facts_of(two_steps)
    assert names(facts) == ["REDUCE_SCATTER", "UNKNOWN"]
    assert facts.collectives.bytes.tolist() == [UNKNOWN, UNKNOWN]


@pytest.mark.parametrize(
    "wrong",
    [
        {"Seq": "x", "In msg nelems": -5, "dtype": 7, "Process Group Ranks": [1, "a"], "Dst Rank": 2**70},
        {"Seq": 2**80, "In msg nelems": 2**62, "Process Group Name": None, "Process Group Ranks": "[9999999999999]"},
        {"Collective name": ["allreduce"], "Group size": "many"},
    ],
)
def test_arguments_that_are_none_are_unknown(two_steps: Any, wrong: dict[str, Any]) -> None:
    note(two_steps, 150, **wrong)
    two_steps.launch(KERNEL, 155, 450, 200)
    calls = facts_of(two_steps).collectives
    assert (calls.sequence.tolist(), calls.peer.tolist()) == ([UNKNOWN], [UNKNOWN])
    assert len(calls) == 1


def test_facts_are_read_without_opening_the_profile(
    tmp_path: Path, recorded: dict[Path, ProfileView], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in NCCL:
        write_run(tmp_path / path.name, recorded[path].profile)
    blobs = [blob for file in sorted(tmp_path.rglob("*tfevents*")) for blob in read_blobs(file, "run")]
    expected = [facts_of_profile(recorded[path]) for path in NCCL]
    with monkeypatch.context() as patch:
        patch.setattr(reclassify, "decode", lambda blob: pytest.fail("the profile is opened"))
        found = facts_of_job(blobs, 2)
    assert found.unreadable == []
    assert [one.rank for one in found.facts] == [0, 1]
    assert match(found.facts).matching == match(expected).matching


def test_ranks_are_compared_in_a_recording_that_all_of_them_have(
    tmp_path: Path, recorded: dict[Path, ProfileView]
) -> None:
    """The first rank is a recording ahead of the second."""
    for path, cycles in zip(NCCL, (2, 1), strict=True):
        profile = recorded[path].profile
        for cycle in range(cycles):
            write_run(tmp_path, replace(profile, source=replace(profile.source, cycle=cycle)))
    blobs = [blob for file in sorted(tmp_path.rglob("*tfevents*")) for blob in read_blobs(file, "run")]
    assert [(one.ref.rank, one.ref.cycle) for one in of_common_cycle(blobs)] == [(0, 0), (1, 0)]
    assert match(facts_of_job(blobs, 2).facts).matching.matched_percent == 100
    # A rank that has nothing else is there with what it has.
    late = [one for one in blobs if (one.ref.rank, one.ref.cycle) != (0, 0)]
    assert [(one.ref.rank, one.ref.cycle) for one in of_common_cycle(late)] == [(0, 1), (1, 0)]


def test_of_an_old_event_file_facts_are_computed(tmp_path: Path, recorded: dict[Path, ProfileView]) -> None:
    file = write_profile(tmp_path, recorded[NCCL[1]].profile)
    (blob,) = read_blobs(file, "run")
    assert blob.read_facts() is None
    found = facts_of_job([blob], 1)
    assert ([one.rank for one in found.facts], found.unreadable) == ([1], [])
