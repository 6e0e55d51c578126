"""Scaled dot product attention with each backend, forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from .numerics import FORMATS, normal
from .registry import Call, add

GROUP = "attention"
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}
SHAPES = ((4, 8, 256, 64), (2, 4, 197, 80), (2, 4, 512, 128), (2, 2, 100, 32), (2, 2, 128, 256))
"""Batch, heads, length, head dimension."""


def _attention(
    backend: SDPBackend, shape: tuple[int, int, int, int], dtype: torch.dtype, causal: bool, mask: bool, dropout: float
) -> Callable[[], Call]:
    def build() -> Call:
        q, k, v = (normal(*shape, dtype=dtype, grad=True) for _ in range(3))
        length = shape[2]
        bias = normal(1, 1, length, (length + 7) // 8 * 8, dtype=dtype)[..., :length] if mask else None

        def call() -> None:
            with sdpa_kernel(backend):
                F.scaled_dot_product_attention(
                    q, k, v, attn_mask=bias, is_causal=causal, dropout_p=dropout
                ).sum().backward()
            q.grad = k.grad = v.grad = None

        return call

    return build


for _backend, _value in BACKENDS.items():
    for _name, _dtype, _tf32 in FORMATS:
        if _dtype == torch.float32 and _backend in ("flash", "cudnn"):
            continue
        for _shape in SHAPES:
            _tag = "x".join(map(str, _shape))
            add(
                f"sdpa/{_backend}/{_tag}/{_name}",
                GROUP,
                _attention(_value, _shape, _dtype, False, False, 0.0),
                tf32=_tf32,
            )
        add(
            f"sdpa/{_backend}/causal/{_name}",
            GROUP,
            _attention(_value, SHAPES[0], _dtype, True, False, 0.0),
            tf32=_tf32,
        )
        if _backend != "flash":
            add(
                f"sdpa/{_backend}/mask/{_name}",
                GROUP,
                _attention(_value, SHAPES[0], _dtype, False, True, 0.0),
                tf32=_tf32,
            )
        add(
            f"sdpa/{_backend}/dropout/{_name}",
            GROUP,
            _attention(_value, SHAPES[0], _dtype, False, False, 0.1),
            tf32=_tf32,
        )


def _varlen(dtype: torch.dtype) -> Callable[[], Call]:
    """Jagged batches, as nested tensors run them."""

    def build() -> Call:
        q, k, v = (
            torch.nested.nested_tensor(
                [normal(n, 4, 64, dtype=dtype) for n in (30, 100, 64)], layout=torch.jagged
            ).transpose(1, 2)
            for _ in range(3)
        )
        return lambda: F.scaled_dot_product_attention(q, k, v)

    return build


def _multihead(dtype: torch.dtype) -> Callable[[], Call]:
    def build() -> Call:
        module = torch.nn.MultiheadAttention(256, 8, batch_first=True, device="cuda", dtype=dtype)
        x = normal(4, 128, 256, dtype=dtype)

        def call() -> None:
            module.zero_grad()
            module(x, x, x)[0].sum().backward()

        return call

    return build


for _name, _dtype, _tf32 in FORMATS:
    add(f"multihead/{_name}", GROUP, _multihead(_dtype), tf32=_tf32)
    if _dtype != torch.float32:
        add(f"sdpa/nested/{_name}", GROUP, _varlen(_dtype), tf32=_tf32)
