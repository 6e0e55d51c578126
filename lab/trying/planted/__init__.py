"""Small trainings with one planted fault each, and trainings without: what `tb-dlprof try` has to find.

Each script says in its docstring what is planted. `PLANTED` has the remedies of which one has to be the best one:
several where the fault has several equal remedies.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Script:
    """A script and the remedies of its fault, () for one without a fault."""

    name: str
    remedies: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Its file."""
        return HERE / f"{self.name}.py"

    @property
    def needs_gpu(self) -> bool:
        """Whether it runs on a GPU only."""
        return "_gpu_" in f"_{self.name}"


_WORKERS = ("loader_workers_1", "loader_workers_2", "loader_workers_4", "loader_workers_8")
_HALF = ("bf16_autocast", "fp16_autocast")
_GRAPHS = ("cuda_graphs", "compile_reduce_overhead", "compile_max_autotune")
_COMPILE = ("compile", "compile_max_autotune", "compile_reduce_overhead")

PLANTED = (
    Script("cpu_slow_dataset", _WORKERS),
    Script("cpu_worker_restart", ("persistent_workers",)),
    Script("cpu_one_thread", ("omp_threads_all",)),
    Script("cpu_anomaly_mode", ("slow_switches_off",)),
    Script("cpu_checkpointing", ("no_checkpointing",)),
    Script("cpu_garbage_in_loop", ("frozen_garbage",)),
    Script("cpu_single_tensor_optimizer", ("fused_optimizer", "foreach_optimizer")),
    Script("cpu_pointwise", _COMPILE),
    Script("gpu_fp32", ("tf32", *_HALF)),
    Script("gpu_without_amp", _HALF),
    Script("gpu_channels_first", ("channels_last",)),
    Script("gpu_single_tensor_optimizer", ("fused_optimizer", "foreach_optimizer")),
    Script("gpu_attention_weights", ("fused_attention",)),
    Script("gpu_small_kernels", _GRAPHS),
    Script("gpu_pointwise", _COMPILE),
    Script("gpu_synchronize", ("no_synchronize",)),
    Script("gpu_empty_cache", ("no_empty_cache",)),
    Script("gpu_launch_blocking", ("slow_switches_off",)),
    Script("gpu_checkpointing", ("no_checkpointing",)),
    # One worker alone would still be slower than the GPU.
    Script("gpu_slow_dataset", _WORKERS[::-1]),
)
GOOD = (
    Script("good_cpu_mlp"),
    Script("good_cpu_workers"),
    Script("good_cpu_transformer"),
    Script("good_cpu_convnet"),
    Script("good_cpu_wide"),
    Script("good_gpu_mlp"),
    Script("good_gpu_compiled_transformer"),
    Script("good_gpu_convnet"),
    Script("good_gpu_compiled_mlp"),
    Script("good_gpu_wide"),
)
GRIDS = {
    Script("slow_gpu_transformer"): ("tf32", "bf16_autocast", "fused_optimizer", "fused_attention"),
    Script("slow_gpu_convnet"): ("tf32", "bf16_autocast", "channels_last", "cudnn_benchmark"),
    Script("slow_cpu"): ("loader_workers_1", "fused_optimizer", "omp_threads_all"),
}
"""Scripts with several faults, and the remedies of which each subset is measured."""
