"""Title of each report on the page, and the question that it answers."""

from __future__ import annotations

TITLES: dict[str, tuple[str, str]] = {
    "summary": ("Summary", "How well were the GPU and its Tensor Cores used, and on which machine?"),
    "detail": ("Ops", "What does each op cost on the CPU and on the GPU, and does it use Tensor Cores?"),
    "iteration": ("Launches", "When did each kernel, copy and set run, and which op launched it?"),
    "kernel": ("Kernels", "Which kernels take the time, and which ops launch them?"),
    "tensor": ("Tensor Cores", "Which ops can use Tensor Cores, do they, and what would it save?"),
    "op_type": ("Op types", "Which types of op take the time?"),
    "group_node": ("Modules", "Which modules take the time, including their submodules?"),
    "expert_systems": ("Advice", "What should be changed, and what would that save?"),
    "averages": ("Torch's table", "What does prof.key_averages() show: the time by name of op, call and kernel?"),
    "api": ("CUDA calls", "Which calls of the CUDA runtime and driver does the CPU spend its time in?"),
    "copies": ("Memory copies", "What is copied and set, in which sizes, and how fast?"),
    "kernel_groups": (
        "Kernel groups",
        "Which algorithms take the GPU's time: matrix products, convolutions by kind ...?",
    ),
}
"""Title and question by the report's name."""

DLPROF = ("summary", "detail", "iteration", "kernel", "tensor", "op_type", "group_node", "expert_systems")
"""The reports of DLProf."""
