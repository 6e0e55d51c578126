"""Reads class, size, dtypes and wrappers of the model, and what only its forward pass shows: autocast, mode, batch
size, memory format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

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


@dataclass(slots=True)
class Observation:
    """What one call of the outermost module shows; None where unknown."""

    training: bool | None = None
    autocast: bool | None = None
    autocast_dtype: str | None = None
    anomaly_mode: bool | None = None
    batch_size: int | None = None
    channels_last: bool | None = None

    def fill(self, facts: RunFacts) -> None:
        """Write the known values to ``facts``."""
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None:
                setattr(facts, name, value)


def observe(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Observation:
    """Observe a call of ``module`` as it begins; reads shapes only, never a value."""
    tensors = list(_tensors([*args, *kwargs.values()]))
    device = tensors[0].device.type if tensors else "cpu"
    autocast = probe(lambda: bool(torch.is_autocast_enabled(device)))
    return Observation(
        training=probe(lambda: bool(module.training)),
        autocast=autocast,
        autocast_dtype=probe(lambda: dtype_name(torch.get_autocast_dtype(device))) if autocast else None,
        anomaly_mode=probe(lambda: bool(torch.is_anomaly_enabled())),
        batch_size=next((int(t.shape[0]) for t in tensors if t.dim()), None),
        channels_last=next((_channels_last(t) for t in tensors if t.dim() == 4), None),
    )


def _channels_last(tensor: torch.Tensor) -> bool | None:
    """None where both formats have the same strides, as with one channel."""
    channels_last = tensor.is_contiguous(memory_format=torch.channels_last)
    return None if channels_last and tensor.is_contiguous() else channels_last


def _tensors(values: list[Any], depth: int = 0) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif depth < 2 and isinstance(value, list | tuple):
            yield from _tensors(list(value[:4]), depth + 1)
        elif depth < 2 and isinstance(value, dict):
            yield from _tensors(list(value.values())[:16], depth + 1)
