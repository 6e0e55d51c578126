"""One line for each subcommand, for `tb-dlprof --help` and the shell's completion, which import no subcommand."""

from __future__ import annotations

SUMMARIES = {
    "run": "Profile a training script without changing it.",
    "summary": "Show where the time of a step goes.",
    "ops": "List the ops of the model by GPU time.",
    "modules": "Show the module tree by GPU time.",
    "kernels": "List kernels, copies and sets by time.",
    "launches": "Show whether the CPU or the GPU sets the pace.",
    "timeline": "Show one iteration: its parts and what takes longest.",
    "tensor-cores": "List the ops that can use Tensor Cores.",
    "roofline": "Compare matrix ops with the ceilings of the GPU.",
    "report": "Write DLProf's reports from a recorded run.",
    "memory": "Show what fills the memory at its peak.",
    "advise": "Show what to change and the estimated savings.",
    "compare": "Compare two runs: the step time and what changed it.",
    "predict": "Forecast the step time in another precision.",
    "runs": "List runs in one table, each compared with its base.",
    "sweep": "Show a figure of many runs over batch size, model or GPU.",
    "export": "Write runs as one HTML file that needs no server.",
    "import": "Convert existing trace files to runs.",
    "pytorch-views": "Write traces that the PyTorch Profiler tab can read.",
    "info": "Show what a recording contains and what is missing.",
}
"""By subcommand: the first line of its docstring, as its own `--help` begins."""
