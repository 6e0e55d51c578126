"""The system configuration and what the hook read in the training process, as labelled lines."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.metrics.parallel_settings import parallel_settings
from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.model.found_by import found_by_words
from tb_dlprof_plugin.model.frameworks import PYTORCH, framework_title
from tb_dlprof_plugin.model.run_facts import Gpu, RunFacts, System
from tb_dlprof_plugin.profile_view import ProfileView


class SystemItem(msgspec.Struct, frozen=True):
    """One line of the system configuration; ``value`` is None for what was not recorded."""

    group: str
    label: str
    value: str | None


def system_items(view: ProfileView) -> list[SystemItem]:
    """Everything known about the machine, the software, the model and its settings."""
    profile = view.profile
    is_pytorch = profile.source.framework == PYTORCH
    used = [g for g in profile.system.gpus if g.id in profile.iterations.gpu_ids]
    return [
        *_machine(profile.system, used, len(profile.iterations.gpu_ids)),
        *_software(profile.system, profile.source.framework),
        # Only PyTorch's process is asked for its model and settings.
        *(_model(profile.facts, parallel_settings(view).wrapper) if is_pytorch else []),
        *_precision(profile.facts, precision_mode(view).label)[: None if is_pytorch else 1],
        *(_data(profile.facts) if is_pytorch else []),
        SystemItem("Recording", "Trace file", profile.source.trace_file or None),
        SystemItem("Recording", "Iterations found by", found_by_words(profile.iterations.found_by)),
        SystemItem("Recording", "Written by tb_dlprof_plugin", profile.source.plugin_version or None),
    ]


def _machine(system: System, used: list[Gpu], count: int) -> list[SystemItem]:
    gpu = used[0] if used else None
    capability = gpu.compute_capability if gpu else None
    lines = [
        ("GPUs used", str(count) if count else "none"),
        ("GPU", ", ".join(dict.fromkeys(g.name for g in used)) or None),
        ("Compute capability", f"{capability[0]}.{capability[1]}" if capability else None),
        ("SMs", _text(gpu.sm_count) if gpu else None),
        ("GPU memory", _gib(gpu.memory_bytes) if gpu else None),
        ("CPU", system.cpu_model),
        ("CPU cores", _text(system.cpu_count)),
        ("Host", system.hostname),
    ]
    if not count:
        lines = [line for line in lines if line[0] not in ("GPU", "Compute capability", "SMs", "GPU memory")]
    return _group("Machine", lines)


def _software(system: System, framework: str) -> list[SystemItem]:
    lines = _group(
        "Software",
        [
            ("PyTorch", system.torch_version)
            if framework == PYTORCH
            else ("Framework", framework_title(framework) or None),
            ("CUDA", system.cuda_version),
            ("cuDNN", system.cudnn_version),
            ("NCCL", system.nccl_version),
            ("GPU driver", system.driver_version),
            ("Python", system.python_version),
            ("Operating system", system.os),
        ],
    )
    if framework == PYTORCH:
        return lines
    return [SystemItem("Software", "Framework", framework_title(framework) or None), *lines[1:]]


def _model(facts: RunFacts, wrapper: str | None) -> list[SystemItem]:
    return _group(
        "Model",
        [
            ("Model", facts.model),
            ("Parameters", f"{facts.parameter_count:,}" if facts.parameter_count is not None else None),
            ("Parameter types", ", ".join(facts.parameter_dtypes) or None),
            ("Mode", None if facts.training is None else ("training" if facts.training else "inference")),
            ("Optimizer", facts.optimizer),
            ("torch.compile", _switch(facts.compiled)),
            # Known: the hook recorded a model without a wrapper.
            ("Parallel wrapper", wrapper or ("none" if facts.model else None)),
            ("Rank / world size", _pair(facts.rank, facts.world_size)),
            ("Peak memory allocated", _gib(facts.peak_memory_allocated_bytes)),
            ("Peak memory reserved", _gib(facts.peak_memory_reserved_bytes)),
        ],
    )


def _precision(facts: RunFacts, ran_in: str) -> list[SystemItem]:
    return _group(
        "Precision and libraries",
        [
            ("Ran in", ran_in or None),
            ("autocast", facts.autocast_dtype if facts.autocast else _switch(facts.autocast)),
            ("GradScaler", _switch(facts.grad_scaler)),
            ("Loss scale", _text(facts.grad_scaler_scale)),
            ("TF32 in matmul", _switch(facts.matmul_allow_tf32)),
            ("TF32 in cuDNN", _switch(facts.cudnn_allow_tf32)),
            ("cuDNN", _switch(facts.cudnn_enabled)),
            ("cudnn.benchmark", _switch(facts.cudnn_benchmark)),
            ("cudnn.deterministic", _switch(facts.cudnn_deterministic)),
            ("Deterministic algorithms", _switch(facts.deterministic_algorithms)),
            ("Anomaly mode", _switch(facts.anomaly_mode)),
            ("channels_last input", _switch(facts.channels_last)),
        ],
    )


def _data(facts: RunFacts) -> list[SystemItem]:
    loader = facts.dataloader
    lines = [("Batch size", _text(facts.batch_size))]
    if loader is not None:
        lines += [
            ("DataLoader workers", _text(loader.num_workers)),
            ("pin_memory", _switch(loader.pin_memory)),
            ("prefetch_factor", _text(loader.prefetch_factor)),
            ("persistent_workers", _switch(loader.persistent_workers)),
            ("Dataset", loader.dataset),
        ]
    return _group("Data", lines)


def _group(name: str, lines: list[tuple[str, str | None]]) -> list[SystemItem]:
    return [SystemItem(name, label, value) for label, value in lines]


def _switch(value: bool | None) -> str | None:
    return None if value is None else ("on" if value else "off")


def _text(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _pair(first: int | None, second: int | None) -> str | None:
    return None if first is None or second is None else f"{first} / {second}"


def _gib(value: int | None) -> str | None:
    return None if value is None else f"{value / 2**30:.2f} GiB"
