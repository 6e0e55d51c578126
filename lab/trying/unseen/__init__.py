"""Scripts that were written after the rules of the search of `tb-dlprof try`.

Each has the sets that an expert would measure by hand, of which the best counts. `HELD_OUT` is opened last: rules
may have changed after others were measured.
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
_HALF = "bf16_autocast"
BY_HAND: dict[str, tuple[tuple[str, ...], ...]] = {
    "gpu_gpt_accumulating": (
        ("tf32",),
        (_HALF, "fused_optimizer"),
        ("tf32", _HALF, "fused_optimizer", "compile"),
    ),
    "gpu_gan": (
        ("channels_last", "cudnn_benchmark"),
        ("tf32", "channels_last", "cudnn_benchmark"),
        (_HALF, "channels_last", "cudnn_benchmark"),
        ("fused_optimizer", "compile"),
        ("tf32", _HALF, "channels_last", "cudnn_benchmark", "fused_optimizer", "compile"),
    ),
    "gpu_slow_loader": (
        ("loader_workers_4",),
        ("loader_workers_8",),
        ("loader_workers_8", _HALF, "channels_last", "non_blocking"),
    ),
    "gpu_bert_tokens": (
        ("fused_optimizer",),
        ("tf32", "fused_optimizer"),
        (_HALF, "fused_optimizer"),
        ("fused_optimizer", "compile"),
        ("tf32", _HALF, "fused_optimizer", "compile"),
    ),
    "gpu_segmentation": (
        ("tf32", "channels_last", "cudnn_benchmark", "nondeterministic", "fused_optimizer"),
        (_HALF, "channels_last", "cudnn_benchmark", "nondeterministic", "fused_optimizer", "loader_workers_2"),
        ("tf32", _HALF, "channels_last", "cudnn_benchmark", "nondeterministic", "loader_workers_4", "compile"),
    ),
    "gpu_recommender": (
        ("fused_optimizer", "zero_grad_to_none"),
        ("fused_optimizer", "zero_grad_to_none", "cuda_graphs"),
        ("fused_optimizer", "zero_grad_to_none", "compile"),
        ("tf32", "fused_optimizer", "zero_grad_to_none", "compile_reduce_overhead"),
    ),
    "gpu_vit_half": (
        ("fused_optimizer",),
        ("fused_optimizer", "compile"),
        ("compile_reduce_overhead", "fused_optimizer"),
    ),
    "gpu_translation": (
        ("tf32", "fused_optimizer"),
        (_HALF, "fused_optimizer"),
        ("fused_optimizer",),
        ("tf32", "fused_optimizer", "compile"),
        (_HALF, "fused_optimizer", "compile"),
    ),
    "gpu_denoiser": (
        ("nondeterministic", "cudnn_benchmark"),
        ("tf32", "channels_last", "nondeterministic", "cudnn_benchmark"),
        (_HALF, "channels_last", "nondeterministic", "cudnn_benchmark"),
        (_HALF, "tf32", "channels_last", "nondeterministic", "cudnn_benchmark", "fused_optimizer"),
        (_HALF, "tf32", "channels_last", "nondeterministic", "cudnn_benchmark", "fused_optimizer", "compile"),
    ),
    "gpu_two_towers": (
        ("slow_switches_off", "fused_optimizer"),
        ("slow_switches_off", "fused_optimizer", "tf32"),
        ("slow_switches_off", "fused_optimizer", _HALF),
        ("slow_switches_off", "fused_optimizer", "zero_grad_to_none", _HALF, "tf32"),
        ("slow_switches_off", "fused_optimizer", "zero_grad_to_none", _HALF, "tf32", "compile"),
    ),
    "gpu_llama_checkpointed": (
        ("no_checkpointing", "fused_optimizer"),
        ("tf32", "no_checkpointing", "fused_optimizer"),
        (_HALF, "no_checkpointing", "fused_optimizer"),
        ("tf32", _HALF, "no_checkpointing", "fused_optimizer", "compile"),
        ("tf32", _HALF, "no_checkpointing", "fused_optimizer", "compile_blocks"),
    ),
    "gpu_pictures_packed": (
        ("loader_workers_4",),
        ("loader_workers_8",),
        ("loader_workers_8", "tf32", "channels_last"),
        ("loader_workers_8", _HALF, "channels_last", "fused_optimizer"),
    ),
    "gpu_speech": (
        ("loader_workers_4",),
        ("loader_workers_8",),
        ("loader_workers_8", "fused_optimizer"),
        ("loader_workers_8", "fused_optimizer", "tf32", "cudnn_benchmark"),
        ("loader_workers_8", "fused_optimizer", _HALF),
    ),
    "gpu_lora": (
        ("no_checkpointing",),
        ("no_checkpointing", "fused_attention"),
        ("no_checkpointing", "fused_attention", "fused_optimizer"),
        ("no_checkpointing", "fused_attention", "fused_optimizer", _HALF),
        ("no_checkpointing", "fused_attention", "fused_optimizer", "compile_blocks"),
        ("no_checkpointing", "fused_optimizer", "compile"),
    ),
    "gpu_graph": (
        ("fused_optimizer", "zero_grad_to_none"),
        ("tf32", "fused_optimizer", "zero_grad_to_none"),
        (_HALF, "fused_optimizer", "zero_grad_to_none"),
        ("tf32", "fused_optimizer", "zero_grad_to_none", "compile"),
        ("tf32", _HALF, "fused_optimizer", "zero_grad_to_none", "compile"),
    ),
    "gpu_distilled": (
        ("tf32", "channels_last", "cudnn_benchmark"),
        (_HALF, "channels_last", "cudnn_benchmark"),
        (_HALF, "channels_last", "cudnn_benchmark", "fused_optimizer"),
        (_HALF, "channels_last", "cudnn_benchmark", "fused_optimizer", "compile"),
        ("tf32", "channels_last", "cudnn_benchmark", "fused_optimizer", "compile"),
    ),
    "gpu_music": (
        ("tf32", "fused_optimizer", "zero_grad_to_none"),
        (_HALF, "fused_optimizer", "zero_grad_to_none"),
        ("tf32", "fused_optimizer", "zero_grad_to_none", "compile"),
        (_HALF, "fused_optimizer", "zero_grad_to_none", "compile"),
        (_HALF, "fused_optimizer", "zero_grad_to_none", "compile_blocks"),
    ),
    "gpu_points": (
        ("loader_workers_2",),
        ("loader_workers_4",),
        ("loader_workers_4", "tf32", "cudnn_benchmark"),
        ("loader_workers_4", _HALF, "cudnn_benchmark"),
        ("loader_workers_4", "tf32", "fused_optimizer", "compile"),
    ),
    "gpu_climate": (
        ("slow_switches_off",),
        ("slow_switches_off", "fused_optimizer"),
        ("slow_switches_off", "fused_optimizer", "tf32"),
        ("slow_switches_off", "fused_optimizer", _HALF),
        ("slow_switches_off", "fused_optimizer", "tf32", "compile"),
    ),
    "gpu_good_decoder": (("frozen_garbage",), ("optimizer_cuda_graph",), ("compile_reduce_overhead",)),
    "gpu_good_mixer": (("frozen_garbage",), ("compile_max_autotune",), ("optimizer_cuda_graph",)),
    "gpu_good": (("fused_attention",), ("frozen_garbage",), ("tf32", "zero_grad_to_none")),
    "cpu_deep_narrow": (("fused_optimizer",), ("fused_optimizer", "zero_grad_to_none"), ("foreach_optimizer",)),
    "cpu_waiting_loader": (("loader_workers_1",), ("loader_workers_2",), ("loader_workers_2", "fused_optimizer")),
    "cpu_debugging": (
        ("slow_switches_off",),
        ("slow_switches_off", "fused_optimizer"),
        ("slow_switches_off", "channels_last"),
    ),
    "cpu_good": (("frozen_garbage",), ("host_memory_kept",), (_HALF,), (_HALF, "compile")),
    "cpu_tagger": (
        ("loader_workers_1", "fused_optimizer", "zero_grad_to_none"),
        ("loader_workers_1", "foreach_optimizer", "zero_grad_to_none"),
        ("loader_workers_2", "zero_grad_to_none"),
    ),
    "cpu_autoencoder": (
        ("no_checkpointing",),
        ("no_checkpointing", "nondeterministic", "channels_last"),
        ("no_checkpointing", "nondeterministic", "fused_optimizer", "compile"),
    ),
    "cpu_recomputing": (("no_checkpointing",), ("no_checkpointing", "fused_optimizer"), ("fused_optimizer",)),
    "cpu_collecting": (("frozen_garbage",), ("frozen_garbage", "fused_optimizer"), ("fused_optimizer",)),
    "cpu_forecaster": (
        ("loader_workers_1",),
        ("loader_workers_1", "fused_optimizer", "zero_grad_to_none"),
        ("loader_workers_2", "fused_optimizer", "zero_grad_to_none"),
        ("fused_optimizer", "zero_grad_to_none"),
        ("loader_workers_1", "foreach_optimizer", "zero_grad_to_none"),
        ("loader_workers_1", "fused_optimizer", "zero_grad_to_none", _HALF),
    ),
    "cpu_diffusion": (
        ("loader_workers_1",),
        ("loader_workers_2",),
        ("loader_workers_2", "fused_optimizer"),
        ("loader_workers_2", "channels_last", "fused_optimizer"),
        ("loader_workers_2", "channels_last", "fused_optimizer", _HALF),
        ("loader_workers_2", "fused_optimizer", "compile"),
    ),
    "cpu_tabular": (
        ("slow_switches_off",),
        ("slow_switches_off", "fused_optimizer", "zero_grad_to_none"),
        ("slow_switches_off", "foreach_optimizer", "zero_grad_to_none"),
        ("slow_switches_off", "foreach_optimizer", _HALF),
        ("slow_switches_off", "foreach_optimizer", "compile"),
    ),
    "cpu_folds": (
        ("frozen_garbage",),
        ("fused_optimizer", "zero_grad_to_none"),
        ("frozen_garbage", "fused_optimizer", "zero_grad_to_none"),
        ("frozen_garbage", "foreach_optimizer", "zero_grad_to_none"),
        ("frozen_garbage", "fused_optimizer", "zero_grad_to_none", _HALF),
        ("frozen_garbage", "fused_optimizer", "zero_grad_to_none", "compile"),
    ),
    "cpu_policy": (
        ("fused_optimizer", "zero_grad_to_none"),
        ("foreach_optimizer", "zero_grad_to_none"),
        ("omp_threads_1", "fused_optimizer", "zero_grad_to_none"),
        ("fused_optimizer", "zero_grad_to_none", "compile"),
        ("omp_threads_1", "fused_optimizer", "zero_grad_to_none", "frozen_garbage"),
    ),
    "cpu_accumulating": (
        ("slow_switches_off",),
        ("slow_switches_off", "loader_workers_1"),
        ("slow_switches_off", "fused_optimizer", "loader_workers_1"),
        ("slow_switches_off", "fused_optimizer", _HALF),
        ("slow_switches_off", "fused_optimizer", "compile"),
        ("slow_switches_off", "fused_optimizer", _HALF, "compile_blocks", "loader_workers_1"),
    ),
    "cpu_pictures": (
        ("loader_workers_1",),
        ("loader_workers_2",),
        ("loader_workers_1", "channels_last"),
        ("loader_workers_2", "channels_last", "fused_optimizer"),
        ("loader_workers_2", "channels_last", "fused_optimizer", _HALF),
        ("loader_workers_2", "fused_optimizer", "compile"),
    ),
    "cpu_good_compiled": (("frozen_garbage",), ("host_memory_kept",), ("omp_threads_1",)),
    "cpu_good_half": (("frozen_garbage",), ("host_memory_kept",), ("foreach_optimizer",), ("compile",)),
}
HELD_OUT = (
    "cpu_forecaster",
    "cpu_diffusion",
    "cpu_tabular",
    "cpu_folds",
    "cpu_good_half",
    "cpu_policy",
    "cpu_accumulating",
    "cpu_pictures",
    "cpu_good_compiled",
    "gpu_translation",
    "gpu_denoiser",
    "gpu_two_towers",
    "gpu_llama_checkpointed",
    "gpu_pictures_packed",
    "gpu_speech",
    "gpu_lora",
    "gpu_graph",
    "gpu_good_mixer",
    "gpu_distilled",
    "gpu_music",
    "gpu_points",
    "gpu_climate",
    "gpu_good_decoder",
)
"""Scripts that are opened once, after the rules."""


def path_of(name: str) -> Path:
    """The file of a script."""
    return HERE / f"{name}.py"
