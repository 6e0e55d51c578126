"""The parallel dimension of a process group: from its description, else from the pattern of its members.

DeviceMesh calls the groups of a dimension "mesh_<dimension>", Megatron "TENSOR_MODEL_PARALLEL_GROUP" and the like.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tb_dlprof_plugin.fleet.rank_facts import Group

_BY_DESCRIPTION = (
    # Of several dimensions together.
    (r"embedding|_and_|model_pipeline|(^|expert_)model_parallel_group_with|^model_parallel", ""),
    (r"dp_shard", "dp_shard"),
    (r"dp_replicate", "dp_replicate"),
    (r"expert.*data|data.*expert", "dp"),
    (r"expert.*tensor", "tp"),
    (r"data_parallel|(^|_)(dp|ddp|fsdp|batch)($|_)", "dp"),
    (r"tensor_model_parallel|(^|_)tp($|_)", "tp"),
    (r"expert_model_parallel|expert_parallel|(^|_)ep($|_)", "ep"),
    (r"pipeline_model_parallel|(^|_)pp($|_)", "pp"),
    (r"context_parallel|(^|_)cp($|_)", "cp"),
)
"""The first that matches the description in lower case."""
UNNAMED = ("", "default_pg", "undefined", "mesh_default")
"""Descriptions that do not show the dimension."""


def dimension_of(group: Group, world_size: int, point_to_point: bool, alone: bool, tensor: bool = False) -> str:
    """The dimension of a group: dp, tp, pp, cp, ep, dp_shard, dp_replicate, another mesh dimension's own name, or "".

    Args:
        group: without its dimension.
        world_size: of the job, UNKNOWN where not recorded.
        point_to_point: whether its calls are sends and receives.
        alone: whether no other group has several members.
        tensor: whether ranks sum up activations, without a wrapper that makes the model data parallel.
    """
    text = group.description.lower()
    if text not in UNNAMED:
        dimension = next((name for pattern, name in _BY_DESCRIPTION if re.search(pattern, text)), None)
        if dimension is not None:
            return dimension
        return text.removeprefix("mesh_") if text.startswith("mesh_") else ""
    if point_to_point:
        return "pp"
    # One group of all ranks that sums gradients or gathers parameters is data parallel, whatever it is called.
    return ("tp" if tensor else "dp") if alone and len(group.members) == world_size > 1 else ""


def mesh_of(groups: Sequence[Group], rank: int) -> tuple[tuple[str, int], ...]:
    """The rank's place in each dimension of the job's mesh, outermost (largest stride of members) first.

    Groups of a dimension that hold the rank twice, such as Megatron's data-parallel groups with and without context
    parallelism, count once: the smallest. Where only one group of all ranks is known, the mesh has this one dimension.
    """
    chosen: dict[str, Group] = {}
    for group in groups:
        if group.dimension and rank in group.members and len(group.members) > 1:
            held = chosen.get(group.dimension)
            if held is None or len(group.members) < len(held.members):
                chosen[group.dimension] = group

    def stride(group: Group) -> int:
        return group.members[1] - group.members[0]

    ordered = sorted(chosen.items(), key=lambda item: -stride(item[1]))
    return tuple((name, group.members.index(rank)) for name, group in ordered)
