"""What torch.compile writes: Triton's pointwise kernels and reductions, its matrix templates, flex attention.

Names of generated kernels are all that a trace holds; two kernels written by hand are added, which no rule can know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .numerics import FORMATS, normal
from .registry import Call, add

GROUP = "compiled"
TEMPLATES = {
    "max_autotune": True,
    "max_autotune_gemm": True,
    "max_autotune_gemm_backends": "TRITON",
    "max_autotune_conv_backends": "TRITON",
    "test_configs.autotune_choice_name_regex": r"triton_.*[37]$",  # a few of the dozens of tilings: each is compiled
}


def _compiled(function: Callable[..., Any], options: dict[str, Any] | None = None) -> Callable[..., Any]:
    import torch._dynamo

    torch._dynamo.config.recompile_limit = 256
    torch._dynamo.config.accumulated_recompile_limit = 4096
    compiled: Callable[..., Any] = torch.compile(function, dynamic=False, options=options)
    return compiled


def _pointwise(kind: str, dtype: torch.dtype) -> Callable[[], Call]:
    functions: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "pointwise": lambda x: F.gelu(x * 2 + 1).sin(),
        "reduction": lambda x: (x * x).sum(),
        "persistent": lambda x: F.softmax(x, 1),
        "norm": lambda x: F.layer_norm(x, (1024,)) * 3,
        "scan": lambda x: x.cumsum(1) + 1,
    }

    def build() -> Call:
        x = normal(256, 1024, dtype=dtype)
        function = _compiled(functions[kind])
        return lambda: function(x)

    return build


def _train(dtype: torch.dtype, options: dict[str, Any] | None) -> Callable[[], Call]:
    def build() -> Call:
        model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 256)).to("cuda", dtype)
        x = normal(128, 256, dtype=dtype)
        step = _compiled(lambda x: model(x).float().pow(2).mean(), options)

        def call() -> None:
            model.zero_grad()
            step(x).backward()

        return call

    return build


def _template(kind: str, dtype: torch.dtype) -> Callable[[], Call]:
    def build() -> Call:
        if kind == "bmm":
            a, b = normal(16, 256, 256, dtype=dtype), normal(16, 256, 256, dtype=dtype)
            function = _compiled(lambda a, b: torch.bmm(a, b).relu(), TEMPLATES)
        elif kind == "conv":
            a, b = normal(4, 64, 28, 28, dtype=dtype), normal(64, 64, 3, 3, dtype=dtype)
            function = _compiled(lambda a, b: F.conv2d(a, b, padding=1).relu(), TEMPLATES)
        elif kind == "addmm":
            a, b = normal(512, 512, dtype=dtype), normal(512, 512, dtype=dtype)
            function = _compiled(lambda a, b: torch.addmm(a[0], a, b).relu(), TEMPLATES)
        else:
            a, b = normal(512, 512, dtype=dtype), normal(512, 512, dtype=dtype)
            function = _compiled(lambda a, b: torch.mm(a, b), TEMPLATES)
        return lambda: function(a, b)

    return build


def _flex(dtype: torch.dtype) -> Callable[[], Call]:
    def build() -> Call:
        from torch.nn.attention.flex_attention import flex_attention

        q, k, v = (normal(2, 4, 256, 64, dtype=dtype, grad=True) for _ in range(3))
        function = _compiled(flex_attention)

        def call() -> None:
            function(q, k, v).sum().backward()
            q.grad = k.grad = v.grad = None

        return call

    return build


def _resnet(dtype: torch.dtype) -> Callable[[], Call]:
    def build() -> Call:
        import torchvision

        model = torchvision.models.resnet18().to("cuda", dtype)
        x = normal(8, 3, 128, 128, dtype=dtype)
        step = _compiled(lambda x: model(x).float().pow(2).mean())

        def call() -> None:
            model.zero_grad()
            step(x).backward()

        return call

    return build


def _mixed_int8() -> Call:
    a, b = (
        torch.randint(-9, 9, (256, 256), device="cuda", dtype=torch.int8),
        torch.randint(-9, 9, (256, 256), device="cuda", dtype=torch.int8),
    )
    function = _compiled(lambda a, b: torch._int_mm(a, b), TEMPLATES)
    return lambda: function(a, b)


for _name, _dtype, _tf32 in FORMATS:
    for _kind in ("mm", "bmm", "conv", "addmm"):
        add(f"compile/template/{_kind}/{_name}", GROUP, _template(_kind, _dtype), tf32=_tf32)
    if _name != "tf32":
        for _kind in ("pointwise", "reduction", "persistent", "norm", "scan"):
            add(f"compile/{_kind}/{_name}", GROUP, _pointwise(_kind, _dtype), tf32=_tf32)
    add(f"compile/train/{_name}", GROUP, _train(_dtype, None), tf32=_tf32)
    add(f"compile/flex/{_name}", GROUP, _flex(_dtype), tf32=_tf32)
add("compile/train-autotune/fp16", GROUP, _train(torch.float16, TEMPLATES))
add("compile/resnet18/fp16", GROUP, _resnet(torch.float16))
add("compile/template/int8", GROUP, _mixed_int8)


def _by_hand(product: bool, dtype: torch.dtype) -> Callable[[], Call]:
    def build() -> Call:
        from .triton_kernels import launch_product, launch_sum

        a, b = normal(64, 64, dtype=dtype), normal(64, 64, dtype=dtype)
        out = torch.empty(64, 64, device="cuda", dtype=torch.float32)
        return (lambda: launch_product(a, b, out)) if product else (lambda: launch_sum(a, b, out))

    return build


add("triton/product/fp16", GROUP, _by_hand(True, torch.float16))
add("triton/sum/fp16", GROUP, _by_hand(False, torch.float16))
