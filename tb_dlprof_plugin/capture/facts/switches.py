"""Reads torch's global switches for speed and precision, without changing them."""

from __future__ import annotations

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import RunFacts


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
