"""One training step in one of four precisions: SGD with momentum, cross entropy, nothing clever.

``fp32`` and ``tf32`` differ only in the TF32 switches; ``amp-fp16`` adds autocast and a GradScaler to ``fp32``, and
``amp-bf16`` autocast alone, so that a difference between two runs comes from the precision.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

PRECISIONS = ("fp32", "tf32", "amp-fp16", "amp-bf16")
_AUTOCAST_DTYPES = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}


def allow_tf32(allowed: bool) -> None:
    """Turn TF32 on or off for matrix products and for cuDNN, in the way that every torch since 1.7 understands."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Mark:
    """A moment on the device: when it has done what it was given before. Two marks give the time between them.

    The host of a GPU-bound training runs many steps ahead, so that its clock says little; and waiting for the device
    would change what is measured.
    """

    def __init__(self, device: torch.device) -> None:
        self._event = torch.cuda.Event(enable_timing=True) if device.type == "cuda" else None
        if self._event is not None:
            self._event.record()
        self._host_s = time.perf_counter()

    def ms_since(self, earlier: Mark) -> float:
        """Milliseconds from ``earlier`` to this one; waits for the device."""
        if self._event is None or earlier._event is None:
            return (self._host_s - earlier._host_s) * 1e3
        self._event.synchronize()
        elapsed: float = earlier._event.elapsed_time(self._event)
        return elapsed


@dataclass
class Training:
    """A model with all that a step of it needs."""

    model: nn.Module
    device: torch.device
    precision: str
    channels_last: bool = False
    optimizer: torch.optim.Optimizer = field(init=False)
    scaler: torch.amp.GradScaler = field(init=False)
    loss: nn.Module = field(init=False)

    def __post_init__(self) -> None:
        allow_tf32(self.precision == "tf32")
        self.model.to(self.device)
        if self.channels_last:
            self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.model.train()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision == "amp-fp16")
        self.loss = nn.CrossEntropyLoss()

    def to_device(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The batch on the device, images as floats from 0 to 1."""
        images = images.to(self.device, non_blocking=True).float().div_(255)
        if self.channels_last:
            images = images.contiguous(memory_format=torch.channels_last)
        return images, labels.to(self.device, non_blocking=True)

    def step(self, images: Tensor, labels: Tensor) -> Tensor:
        """Forward, backward, update on a batch that is on the device; returns the loss, which stays there."""
        self.optimizer.zero_grad(set_to_none=True)
        dtype = _AUTOCAST_DTYPES.get(self.precision)
        with torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None):
            loss: Tensor = self.loss(self.model(images), labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()
