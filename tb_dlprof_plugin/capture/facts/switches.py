"""Reads what a process is set to, without changing it: torch's switches for speed and precision, debugging settings
that slow a training down, and the amp of NVIDIA Apex."""

from __future__ import annotations

import os
import sys
from typing import Any

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import RunFacts

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
_APEX_STATE = "apex.amp._amp_state"


def fill_switches(facts: RunFacts) -> None:
    """Fill the fields of the TF32, cuDNN, determinism and anomaly switches."""
    import torch

    cudnn = torch.backends.cudnn
    facts.matmul_allow_tf32 = _allows_tf32("matmul")
    facts.cudnn_allow_tf32 = _allows_tf32("conv")
    facts.cudnn_enabled = probe(lambda: bool(cudnn.enabled))
    facts.cudnn_benchmark = probe(lambda: bool(cudnn.benchmark))
    facts.cudnn_deterministic = probe(lambda: bool(cudnn.deterministic))
    facts.deterministic_algorithms = probe(lambda: bool(torch.are_deterministic_algorithms_enabled()))
    facts.anomaly_mode = probe(lambda: bool(torch.is_anomaly_enabled()))


def _allows_tf32(op: str) -> bool | None:
    """Whether FP32 ``matmul`` or ``conv`` on CUDA may use TF32.

    torch 2.9 has a precision per operator in addition to the older on-off switches, and reading the old ones raises
    once the new ones were used. The new getter returns what was set either way, so it is tried first.
    """
    import torch

    getter = getattr(torch._C, "_get_fp32_precision_getter", None)
    if getter is not None:
        precision = probe(lambda: getter("cuda", op))
        if precision is not None:
            return bool(precision == "tf32")
    if op == "matmul":
        return probe(lambda: bool(torch.backends.cuda.matmul.allow_tf32))
    return probe(lambda: bool(torch.backends.cudnn.allow_tf32))


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


def fill_apex(facts: RunFacts) -> None:
    """Fill opt_level and, of the first loss, the scale; leaves them None where Apex' amp is not in use."""
    state: Any = getattr(sys.modules.get(_APEX_STATE), "_amp_state", None)
    properties = getattr(state, "opt_properties", None)
    if properties is None or not properties.enabled:
        return
    facts.apex_opt_level = probe(lambda: None if properties.opt_level is None else str(properties.opt_level))
    scaler: Any = next(iter(getattr(state, "loss_scalers", ())), None)
    if scaler is None or facts.grad_scaler_scale is not None:
        return
    facts.grad_scaler_scale = probe(lambda: float(scaler.loss_scale()))
    facts.grad_scaler_growth_tracker = probe(lambda: int(scaler._unskipped))
