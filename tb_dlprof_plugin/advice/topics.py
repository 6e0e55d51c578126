"""The rules by subject, in the order in which pages and docs list them."""

from __future__ import annotations

OTHER = "Other"
"""Of a rule that no topic names."""

TOPICS: dict[str, tuple[str, ...]] = {
    "Precision and Tensor Cores": (
        "amp_not_used",
        "amp_defeated",
        "amp_will_not_pay",
        "scaler_with_bf16",
        "loss_scale_overflow",
        "tf32_off",
        "bad_tensor_shape",
    ),
    "Data loading": ("dataloader_bound", "synchronous_dataloader", "worker_restart"),
    "CPU, launches and idle GPU": (
        "gpu_underutilized",
        "low_utilization_stretch",
        "gpu_gaps",
        "launch_bound",
        "small_kernels",
        "no_fusion",
        "for_loop_indexing",
        "kernel_concurrency",
        "batch_size",
    ),
    "Copies and waits": (
        "synchronising_calls",
        "host_reads",
        "blocking_copies",
        "blocking_sets",
        "pageable_copies",
        "copies_not_overlapped",
        "small_copies",
        "slow_copies",
        "extra_copies",
    ),
    "Layers": (
        "cudnn_benchmark_off",
        "channels_last",
        "attention_not_fused",
        "bias_before_batch_norm",
        "relu_before_maxpool",
        "unused_parameters",
    ),
    "Optimizer and gradients": ("optimizer_not_fused", "single_tensor_optimizer", "zero_grad_to_zero"),
    "Memory": ("optimizer_state", "recomputation", "allocation_in_steps", "allocator_churn"),
    "Several GPUs": ("data_parallel", "communication_bound", "imbalanced_gpu"),
    "The recording": (
        "slow_api",
        "profiler_overhead",
        "profiling_window",
        "bad_iteration_range",
        "no_iterations",
        "missing_annotations",
    ),
}
"""The ids of the rules of each topic."""

_TOPIC_OF = {rule: topic for topic, rules in TOPICS.items() for rule in rules}
_PLACES = {rule: place for place, rule in enumerate(_TOPIC_OF)}


def topic_of(rule: str) -> str:
    """The topic of a rule."""
    return _TOPIC_OF.get(rule, OTHER)


def place_of(rule: str) -> tuple[int, str]:
    """What sorts rules by topic, those that no topic names last."""
    return _PLACES.get(rule, len(_PLACES)), rule
