"""Reads class, size, dtypes and wrappers of the model."""

from __future__ import annotations

from typing import Any

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.capture.wrappers import is_compiled_region, parallel_wrapper, unwrap
from tb_dlprof_plugin.model.run_facts import RunFacts


def fill_model(facts: RunFacts, model: Any) -> None:
    """Fill the fields of the model; leaves them None where there is none.

    ``parameter_count`` counts the elements that this process holds, shared parameters once: of an FSDP model its shard.
    """
    if model is None:
        return
    facts.model = probe(lambda: type(unwrap(model)).__name__)
    facts.parameter_count = probe(lambda: sum(int(p.numel()) for p in model.parameters()))
    facts.parameter_dtypes = probe(lambda: sorted({dtype_name(p.dtype) for p in model.parameters()})) or []
    facts.training = probe(lambda: bool(model.training))
    facts.compiled = probe(lambda: any(is_compiled_region(module) for module in model.modules()))
    facts.parallel_wrapper = probe(lambda: parallel_wrapper(model))
    facts.find_unused_parameters = probe(lambda: _finds_unused(model))


def _finds_unused(model: Any) -> bool | None:
    """As given to DistributedDataParallel; None for any other model."""
    if parallel_wrapper(model) != "DistributedDataParallel":
        return None
    held = model
    while held is not None and not hasattr(held, "find_unused_parameters"):
        held = getattr(held, "_orig_mod", None)
    return None if held is None else bool(held.find_unused_parameters)


def dtype_name(dtype: Any) -> str:
    """``bfloat16`` for ``torch.bfloat16``."""
    return str(dtype).removeprefix("torch.")
