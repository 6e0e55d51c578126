"""Names of operations, groups and trace files mean what frameworks mean by them."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.fleet.dimensions import dimension_of, mesh_of
from tb_dlprof_plugin.fleet.operations import operation_of, whole_bytes
from tb_dlprof_plugin.fleet.rank_facts import Group, Operation
from tb_dlprof_plugin.model.process_groups import members_of_runs, regular_runs
from tb_dlprof_plugin.names.parallel_ranges import fsdp_unit
from tb_dlprof_plugin.readers.kineto.process_groups import members_of
from tb_dlprof_plugin.readers.trace_names import host_of_name, rank_of_name


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("allreduce", "ALL_REDUCE"), ("_allgather_base", "ALL_GATHER"), ("_reduce_scatter_base", "REDUCE_SCATTER"),
        ("allgather_into_tensor_coalesced", "ALL_GATHER"), ("all_to_allv", "ALL_TO_ALL"), ("wait", "UNKNOWN"),
        ("nccl:recv 0<-3", "RECEIVE"), ("send", "SEND"), ("barrier", "BARRIER"), ("reduce", "REDUCE"),
        ("nccl:broadcast", "BROADCAST"),
        ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "REDUCE_SCATTER"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "UNKNOWN"), ("c10d::allreduce_", "ALL_REDUCE"),
        ("void vllm::cross_device_reduce_2stage<__half, 8>", "ALL_REDUCE"), ("gather", "GATHER"),
        ("scatter", "SCATTER"),
    ],
)  # fmt: skip
def test_operations_by_name(name: str, operation: str) -> None:
    assert operation_of(name).name == operation


@pytest.mark.parametrize(
    ("description", "dimension"),
    [
        ("mesh_tp", "tp"), ("mesh_dp_shard", "dp_shard"), ("mesh_dp_shard_mod_ep", "dp_shard"), ("mesh_ep", "ep"),
        ("mesh_dp_replicate", "dp_replicate"), ("mesh_pp", "pp"), ("mesh_cp", "cp"), ("mesh_rows", "rows"),
        ("TENSOR_MODEL_PARALLEL_GROUP", "tp"), ("PIPELINE_MODEL_PARALLEL_GROUP", "pp"), ("EMBEDDING_GROUP", ""),
        ("DATA_PARALLEL_GROUP_WITH_CP", "dp"), ("EXPERT_MODEL_PARALLEL_GROUP", "ep"),
        ("EXPERT_DATA_PARALLEL_GROUP", "dp"), ("TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP", ""),
        ("default_pg", ""), ("CONTEXT_PARALLEL_GROUP", "cp"),
    ],
)  # fmt: skip
def test_dimensions_by_description(description: str, dimension: str) -> None:
    group = Group("3", description, (0, 1))
    assert dimension_of(group, 8, point_to_point=False, alone=False) == dimension


def test_the_only_group_of_all_ranks_is_data_parallel_and_that_of_sends_a_pipeline() -> None:
    world = Group("0", "default_pg", (0, 1))
    assert dimension_of(world, 2, point_to_point=False, alone=True) == "dp"
    assert dimension_of(world, 2, point_to_point=True, alone=True) == "pp"
    assert dimension_of(world, 2, point_to_point=False, alone=True, tensor=True) == "tp"


def test_the_mesh_begins_with_the_outermost_dimension() -> None:
    groups = [Group("a", "", (4, 5), "tp"), Group("b", "", (1, 3, 5, 7), "dp"), Group("c", "", (1, 5), "dp_shard")]
    assert mesh_of(groups, 5) == (("dp_shard", 1), ("dp", 2), ("tp", 1))


@pytest.mark.parametrize(
    ("operation", "expected"),
    [(Operation.ALL_REDUCE, 10), (Operation.ALL_GATHER, 40), (Operation.REDUCE_SCATTER, 10), (Operation.RECEIVE, 40)],
)
def test_bytes_are_those_of_the_formula(operation: Operation, expected: int) -> None:
    assert whole_bytes(operation, 10, 40, 4) == expected
    assert whole_bytes(Operation.ALL_GATHER, 10, -1, 0) == -1


@pytest.mark.parametrize("members", [(), (0, 1, 2, 3), (5,), (0, 8, 16, 17, 18, 3), tuple(range(7, 4096, 64))])
def test_members_come_back_from_runs(members: tuple[int, ...]) -> None:
    assert members_of_runs(regular_runs(members), lambda size: size <= 40 * len(members)) == members
    assert members_of_runs(regular_runs(members), lambda size: size < 40 * len(members)) == ()


@pytest.mark.parametrize("runs", [[1, 2], [0, 1, 2**40], [-5, 1, 2], [0, -1, 3]])
def test_runs_that_no_group_has_are_refused(runs: list[int]) -> None:
    with pytest.raises(ValueError, match="process group"):
        members_of_runs(runs, lambda _: True)


def test_members_of_a_cut_list_follow_from_start_and_stride() -> None:
    assert members_of("[0, 2, 4]") == (0, 2, 4)
    assert members_of("[0, 2, ..., 126]", 64, 0, 2) == tuple(range(0, 128, 2))
    assert members_of("[0, 2, ..., 126]", 64) == ()


@pytest.mark.parametrize(
    ("name", "rank", "host"),
    [
        ("rank3_trace.json.gz", 3, ""), ("iteration_10/rank12_trace.json", 12, ""), ("sampled_rank-1.json.gz", 1, ""),
        ("node7_4711.1700000000000.pt.trace.json", None, "node7"), ("libkineto_trace_gpu-a01_99.json", None, "gpu-a01"),
        ("worker_0.pt.trace.json", None, ""), ("frank5.json", None, ""), ("resnet.pt.trace.json.gz", None, ""),
    ],
)  # fmt: skip
def test_ranks_and_hosts_in_names_of_files(name: str, rank: int | None, host: str) -> None:
    assert (rank_of_name(name), host_of_name(name)) == (rank, host)


def test_units_in_ranges_of_fsdp() -> None:
    assert fsdp_unit("FSDP::post_backward_reduce (layers.3)") == "layers.3"
    assert fsdp_unit("FSDP::backward_prefetch for layers.2") == "layers.2"
    assert fsdp_unit("FSDP::root_pre_forward") == ""
