"""cuDNN's recurrent layers, and PyTorch's cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .numerics import FORMATS, normal
from .registry import Call, add

GROUP = "recurrent"
LAYERS: dict[str, Callable[..., nn.Module]] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
SIZES = {
    "small": (64, 64, 1, 16, False),
    "large": (512, 512, 2, 32, False),
    "both-ways": (128, 256, 1, 32, True),
    "odd": (33, 65, 1, 7, False),
}
"""Input, hidden, layers, batch, bidirectional."""


def _recurrent(kind: str, size: str, dtype: torch.dtype) -> Callable[[], Call]:
    inputs, hidden, layers, batch, both_ways = SIZES[size]

    def build() -> Call:
        module: Any = LAYERS[kind](
            inputs, hidden, num_layers=layers, bidirectional=both_ways, batch_first=True, device="cuda", dtype=dtype
        )
        x = normal(batch, 12, inputs, dtype=dtype, grad=True)

        def call() -> None:
            module.zero_grad()
            x.grad = None
            module(x)[0].sum().backward()

        return call

    return build


def _cell(kind: str, dtype: torch.dtype) -> Callable[[], Call]:
    def build() -> Call:
        module: Any = (nn.LSTMCell if kind == "lstm" else nn.GRUCell)(128, 128, device="cuda", dtype=dtype)
        x = normal(32, 128, dtype=dtype)

        def call() -> None:
            module.zero_grad()
            out = module(x)
            (out[0] if kind == "lstm" else out).sum().backward()

        return call

    return build


for _name, _dtype, _tf32 in FORMATS:
    for _kind in LAYERS:
        for _size in SIZES:
            add(f"{_kind}/{_size}/{_name}", GROUP, _recurrent(_kind, _size, _dtype), tf32=_tf32)
    for _kind in ("lstm", "gru"):
        add(f"{_kind}-cell/{_name}", GROUP, _cell(_kind, _dtype), tf32=_tf32)
