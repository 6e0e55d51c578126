"""Debugging settings of the process that slow a training down, whatever the training does."""

from __future__ import annotations

import os
import sys

_ON = frozenset(("1", "true", "yes", "on", "y"))
VARIABLES: dict[str, frozenset[str] | None] = {
    "CUDA_LAUNCH_BLOCKING": _ON,
    "HIP_LAUNCH_BLOCKING": _ON,
    "AMD_SERIALIZE_KERNEL": frozenset("123"),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": _ON,
    "TORCH_DISTRIBUTED_DEBUG": frozenset(("detail",)),
    "TORCH_NCCL_BLOCKING_WAIT": _ON,
    "NCCL_P2P_DISABLE": _ON,
    "NCCL_SHM_DISABLE": _ON,
    "NVIDIA_TF32_OVERRIDE": frozenset("0"),
    "TORCHDYNAMO_DISABLE": _ON,
    "TORCH_COMPILE_DISABLE": _ON,
    "PYTHONDEVMODE": None,
    "PYTHONTRACEMALLOC": None,
    "PYTHONMALLOC": frozenset(("debug", "malloc_debug", "pymalloc_debug")),
}
"""Names, and the values that cost time; None: any but an empty one or 0."""


def slow_switches() -> list[str]:
    """Those that are on: ``NAME=value`` of the environment, ``sys.settrace(module)`` for a tracer of this thread."""
    found = [f"{name}={value}" for name in VARIABLES if _is_on(name, value := os.environ.get(name, "").strip())]
    for name, function in (("settrace", sys.gettrace()), ("setprofile", sys.getprofile())):
        if function is not None:
            found.append(f"sys.{name}({getattr(function, '__module__', None) or type(function).__module__})")
    return found


def _is_on(name: str, value: str) -> bool:
    costly = VARIABLES[name]
    return value.lower() in costly if costly is not None else value not in ("", "0")
