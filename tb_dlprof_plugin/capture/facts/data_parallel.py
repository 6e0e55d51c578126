"""How the ranks of a training exchange gradients: the backend, and the settings of DistributedDataParallel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.capture.wrappers import inner, is_optimized_module
from tb_dlprof_plugin.model.run_facts import DdpFacts, RunFacts

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
