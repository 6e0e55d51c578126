"""How the ranks of a training exchange gradients and share parameters: the backend, and the settings of
DistributedDataParallel and FSDP."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.capture.facts.model import dtype_name
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.capture.wrappers import class_names, inner, is_optimized_module
from tb_dlprof_plugin.model.run_facts import DdpFacts, FsdpFacts, RunFacts

if TYPE_CHECKING:
    from torch import nn

_SETTINGS = (
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_CUMEM_ENABLE",
    "NCCL_IB_DISABLE",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_NET",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_PROTO",
    "NCCL_SHM_DISABLE",
    "NCCL_SOCKET_NTHREADS",
)
"""Variables that change how fast data moves between ranks. None of them names a host or an interface."""
_KEEP_AFTER_FORWARD = ("SHARD_GRAD_OP", "_HYBRID_SHARD_ZERO2", "NO_SHARD")
"""FSDP1's strategies in which parameters stay whole between forward and backward pass."""


def fill_data_parallel(facts: RunFacts, model: Any) -> None:
    """Fill the fields of the exchange; leaves them None in a training of one process."""
    facts.distributed_backend = probe(_backend)
    if facts.distributed_backend is not None:
        facts.communication_settings = [f"{name}={os.environ[name][:64]}" for name in _SETTINGS if name in os.environ]
    wrapped = None if model is None else _distributed_data_parallel(model)
    if wrapped is not None:
        facts.ddp = DdpFacts(
            bucket_bytes=probe(lambda: int(wrapped.bucket_bytes_cap)),
            gradient_as_bucket_view=probe(lambda: bool(wrapped.gradient_as_bucket_view)),
            static_graph=probe(lambda: bool(wrapped.static_graph)),
            comm_hook=probe(lambda: _hook_name(wrapped)),
        )


def _backend() -> str | None:
    import torch.distributed as dist

    return str(dist.get_backend()) if dist.is_available() and dist.is_initialized() else None


def _distributed_data_parallel(model: nn.Module) -> Any:
    module: nn.Module | None = model
    while module is not None and not hasattr(module, "bucket_bytes_cap"):
        module = module._orig_mod if is_optimized_module(module) else inner(module)  # type: ignore[assignment]
    return module


def _hook_name(wrapped: Any) -> str | None:
    """Of a hook registered in Python; None without one."""
    hooks = wrapped._comm_hooks
    return None if not hooks else str(getattr(hooks[0][0], "__name__", type(hooks[0][0]).__name__))


def fill_sharding(facts: RunFacts, model: Any) -> None:
    """Fill the settings of FSDP1 or FSDP2; leaves them None for any other model."""
    if model is None:
        return
    modules = [(module, class_names(module)) for module in model.modules()]
    second = [module._get_fsdp_state() for module, names in modules if "FSDPModule" in names]
    first = [module for module, names in modules if "FullyShardedDataParallel" in names]
    if second:
        facts.fsdp = _of_fsdp2(second)
    elif first:
        facts.fsdp = _of_fsdp1(first)


def _of_fsdp2(states: list[Any]) -> FsdpFacts:
    groups = [state._fsdp_param_group for state in states if state._fsdp_param_group is not None]
    return FsdpFacts(
        version=2,
        units=len(groups),
        resharded_units=probe(lambda: sum(bool(group._reshard_after_forward) for group in groups)),
        backward_prefetch=True,
        forward_prefetch=probe(lambda: any(state._states_to_forward_prefetch for state in states)),
        parameter_dtypes=_dtypes(group.mp_policy.param_dtype for group in groups),
        reduce_dtypes=_dtypes(group.mp_policy.reduce_dtype for group in groups),
        shard_ranks=probe(lambda: max(int(group.mesh_info.shard_mesh_size) for group in groups)),
        replicas=probe(lambda: max(int(getattr(group.mesh_info, "replicate_mesh_size", 1)) for group in groups)),
    )


def _of_fsdp1(modules: list[Any]) -> FsdpFacts:
    units = [module for module in modules if getattr(module, "_handle", None) is not None]
    strategies = [getattr(module.sharding_strategy, "name", "") for module in units]
    return FsdpFacts(
        version=1,
        units=len(units),
        resharded_units=sum(name not in _KEEP_AFTER_FORWARD for name in strategies) if all(strategies) else None,
        backward_prefetch=probe(lambda: any(module.backward_prefetch is not None for module in units)),
        forward_prefetch=probe(lambda: any(bool(module.forward_prefetch) for module in units)),
        parameter_dtypes=_dtypes(module.mixed_precision.param_dtype for module in units),
        reduce_dtypes=_dtypes(module.mixed_precision.reduce_dtype for module in units),
        limit_all_gathers=probe(lambda: any(bool(module.limit_all_gathers) for module in units)),
        shard_ranks=probe(lambda: max(int(module.process_group.size()) for module in units)),
        replicas=probe(lambda: max(_replicas(module) for module in units)),
    )


def _replicas(module: Any) -> int:
    """Of FSDP1: ranks with the same shard; 1 without a hybrid strategy."""
    group = getattr(module, "_inter_node_pg", None)
    return 1 if group is None else int(group.size())


def _dtypes(found: Iterable[Any]) -> list[str]:
    """Names of the set types, each once; a policy without a type leaves that of the parameters."""
    return probe(lambda: sorted({dtype_name(dtype) for dtype in found if dtype is not None})) or []
