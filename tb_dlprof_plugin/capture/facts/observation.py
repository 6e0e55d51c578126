"""Facts that are visible only during the forward pass: autocast, mode, batch size, memory format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tb_dlprof_plugin.capture.facts.model import dtype_name
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import RunFacts


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
