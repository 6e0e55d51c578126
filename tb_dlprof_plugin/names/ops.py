"""Names that PyTorch gives to ops, autograd nodes and annotations, each known in one place."""

from __future__ import annotations

PROFILER_STEP = "ProfilerStep#"
"""Before the number of a step of ``torch.profiler``."""
OPTIMIZER_STEP = "Optimizer.step#"
"""Before an optimizer's class and method, as in "Optimizer.step#SGD.step"."""
ZERO_GRAD = "Optimizer.zero_grad#"
MODULE_PREFIX = "tb_dlprof::module::"
"""Before a module's path: in the ranges that the hook pushes around each module's forward, and of readers."""
AUTOGRAD_NODE = "autograd::engine::evaluate_function: "
"""Before the name of the backward node that the autograd engine runs."""
ACCUMULATE_GRAD = "torch::autograd::AccumulateGrad"
"""Adds a gradient to that of a parameter."""
COPY = "aten::copy_"
"""Copies between devices, layouts or data types: the first input is written, the second is read."""
TRITON_KERNEL = "triton_"
"""Before the name of a kernel that torch.compile made, and of the op that launches it."""
NCCL_CALL = "NCCL:nccl"
"""Before the name of a call in NCCL's own ranges, as Nsight Systems records them."""
PROCESS_GROUP_OPS = ("c10d::", "_c10d_functional::")
"""Before the names of PyTorch's ops that ask a process group for a call."""
_PREFIXES = (AUTOGRAD_NODE, "torch::autograd::", "aten::")


def short_op_name(name: str) -> str:
    """DLProf's op type: the name without namespaces, of an autograd node's evaluation the node."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name
