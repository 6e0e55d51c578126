"""Matrix products: shapes, alignments, layouts and dtypes from INT8 to complex; batched, grouped, with epilogues."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from .numerics import FORMATS, normal
from .registry import Call, add

GROUP = "matmul"
SHAPES = (
    (1024, 1024, 1024), (4096, 4096, 1024), (127, 255, 511), (128, 130, 132), (64, 1000, 2048), (1, 1024, 1024),
    (8, 8, 8), (16, 10000, 768), (32, 32, 65536), (8192, 64, 64), (3, 5, 7), (1024, 1024, 1), (1024, 1, 1024),
    (200, 200, 200), (512, 512, 8), (2048, 256, 4), (33, 4096, 4096), (2, 4096, 4096), (256, 17, 4096),
)  # fmt: skip
"""m, n, k."""
LAYOUT_SHAPES = ((512, 768, 256), (127, 255, 511), (2048, 2048, 512), (40, 4000, 1000))
EXTRA_DTYPES = (("fp64", torch.float64), ("complex64", torch.complex64), ("complex128", torch.complex128))


def _operand(rows: int, columns: int, dtype: torch.dtype, transposed: bool) -> torch.Tensor:
    return normal(columns, rows, dtype=dtype).t() if transposed else normal(rows, columns, dtype=dtype)


def _mm(m: int, n: int, k: int, dtype: torch.dtype, layout: str) -> Callable[[], Call]:
    def build() -> Call:
        a = _operand(m, k, dtype, layout[0] == "t")
        b = _operand(k, n, dtype, layout[1] == "t")
        return lambda: torch.mm(a, b)

    return build


for _name, _dtype, _tf32 in (
    *FORMATS,
    *((name, dtype, False) for name, dtype in EXTRA_DTYPES),
    ("complex64-tf32", torch.complex64, True),
):
    for _m, _n, _k in SHAPES:
        add(f"mm/{_m}x{_n}x{_k}/nn/{_name}", GROUP, _mm(_m, _n, _k, _dtype, "nn"), tf32=_tf32)
    for _m, _n, _k in LAYOUT_SHAPES:
        for _layout in ("nn", "nt", "tn", "tt"):
            if _layout == "nn" and (_m, _n, _k) in SHAPES:
                continue
            add(f"mm/{_m}x{_n}x{_k}/{_layout}/{_name}", GROUP, _mm(_m, _n, _k, _dtype, _layout), tf32=_tf32)


def _bmm(batch: int, m: int, n: int, k: int, dtype: torch.dtype, fused: bool) -> Callable[[], Call]:
    def build() -> Call:
        a, b = normal(batch, m, k, dtype=dtype), normal(batch, k, n, dtype=dtype)
        c = normal(batch, m, n, dtype=dtype)
        return (lambda: torch.baddbmm(c, a, b, beta=0.5)) if fused else (lambda: torch.bmm(a, b.contiguous()))

    return build


def _linear(kind: str, dtype: torch.dtype) -> Callable[[], Call]:
    def build() -> Call:
        x, w = normal(512, 768, dtype=dtype, grad=True), normal(3072, 768, dtype=dtype, grad=True)
        bias = normal(3072, dtype=dtype, grad=True)
        wt = w.detach().t()
        calls: dict[str, Call] = {
            "linear": lambda: F.linear(x, w, bias),
            "linear-nobias": lambda: F.linear(x, w),
            "addmm": lambda: torch.addmm(bias.detach(), x.detach(), wt),
            "addmm-matrix": lambda: torch.addmm(wt.new_ones(512, 3072), x.detach(), wt, beta=0.5),
            "gelu": lambda: torch._addmm_activation(bias.detach(), x.detach(), wt, use_gelu=True),
            "relu": lambda: torch._addmm_activation(bias.detach(), x.detach(), wt, use_gelu=False),
            "backward": lambda: F.linear(x, w, bias).sum().backward(),
            "mlp": lambda: F.gelu(F.linear(x, w, bias)).sum().backward(),
        }
        return calls[kind]

    return build


def _vector(kind: str, dtype: torch.dtype) -> Callable[[], Call]:
    def build() -> Call:
        a, v, u = normal(1024, 768, dtype=dtype), normal(768, dtype=dtype), normal(1024, dtype=dtype)
        calls: dict[str, Call] = {
            "mv": lambda: torch.mv(a, v),
            "mv-t": lambda: torch.mv(a.t(), u),
            "dot": lambda: torch.dot(v, v),
            "addr": lambda: torch.addr(a, u, v),
            "addmv": lambda: torch.addmv(u, a, v),
            "outer": lambda: torch.outer(u, v),
            "einsum": lambda: torch.einsum("ij,j->i", a, v),
        }
        return calls[kind]

    return build


for _name, _dtype, _tf32 in (*FORMATS, ("fp64", torch.float64, False)):
    for _b, _m, _n, _k in (
        (32, 128, 128, 64),
        (96, 197, 64, 197),
        (64, 7, 9, 11),
        (8, 1024, 64, 1024),
        (256, 1, 64, 64),
        (4, 33, 33, 500),
    ):
        add(f"bmm/{_b}x{_m}x{_n}x{_k}/{_name}", GROUP, _bmm(_b, _m, _n, _k, _dtype, False), tf32=_tf32)
    add(f"baddbmm/{_name}", GROUP, _bmm(32, 128, 96, 64, _dtype, True), tf32=_tf32)
    for _kind in ("linear", "linear-nobias", "addmm", "addmm-matrix", "gelu", "relu", "backward", "mlp"):
        add(f"linear/{_kind}/{_name}", GROUP, _linear(_kind, _dtype), tf32=_tf32)
    for _kind in ("mv", "mv-t", "dot", "addr", "addmv", "outer", "einsum"):
        add(f"vector/{_kind}/{_name}", GROUP, _vector(_kind, _dtype), tf32=_tf32)


def _reduced(dtype: torch.dtype) -> Callable[[], Call]:
    """FP16 sums in FP16, as ``allow_fp16_accumulation`` permits."""

    def build() -> Call:
        a, b = normal(512, 512, dtype=dtype), normal(512, 512, dtype=dtype)

        def call() -> object:
            torch.backends.cuda.matmul.allow_fp16_accumulation = True
            try:
                return torch.mm(a, b)
            finally:
                torch.backends.cuda.matmul.allow_fp16_accumulation = False

        return call

    return build


add("mm/fp16-accumulation", GROUP, _reduced(torch.float16))

LOW = "lowprecision"


def _int_mm(m: int, n: int, k: int, transposed: bool) -> Callable[[], Call]:
    def build() -> Call:
        a = torch.randint(-100, 100, (m, k), device="cuda", dtype=torch.int8)
        b = torch.randint(-100, 100, (n, k) if transposed else (k, n), device="cuda", dtype=torch.int8)
        right = b.t() if transposed else b
        return lambda: torch._int_mm(a, right)

    return build


for _m, _n, _k in ((1024, 1024, 1024), (32, 64, 256), (4096, 4096, 512), (17, 1024, 4096), (256, 8, 8)):
    for _transposed in (False, True):
        add(f"int_mm/{_m}x{_n}x{_k}/{'t' if _transposed else 'n'}", LOW, _int_mm(_m, _n, _k, _transposed))


def _fp8(
    m: int, n: int, k: int, left: torch.dtype, right: torch.dtype, scaling: str, fast: bool, out: torch.dtype
) -> Callable[[], Call]:
    def build() -> Call:
        a, b = normal(m, k).to(left), normal(n, k).to(right).t()
        ones = {
            "tensor": (torch.ones((), device="cuda"), torch.ones((), device="cuda")),
            "row": (torch.ones(m, 1, device="cuda"), torch.ones(1, n, device="cuda")),
        }
        bias = normal(n, dtype=out) if out == torch.bfloat16 and scaling == "tensor" else None
        scale_a, scale_b = ones[scaling]
        return lambda: torch._scaled_mm(
            a, b, scale_a=scale_a, scale_b=scale_b, bias=bias, out_dtype=out, use_fast_accum=fast
        )

    return build


_E4, _E5 = torch.float8_e4m3fn, torch.float8_e5m2
for _m, _n, _k in ((1024, 1024, 1024), (32, 64, 256), (4096, 4096, 1024), (128, 512, 2048), (16, 4096, 4096)):
    for _scaling in ("tensor", "row"):
        for _fast in (False, True):
            _tag = f"{_scaling}/{'fast' if _fast else 'exact'}"
            add(
                f"scaled_mm/{_m}x{_n}x{_k}/{_tag}/bf16",
                LOW,
                _fp8(_m, _n, _k, _E4, _E4, _scaling, _fast, torch.bfloat16),
            )
    add(f"scaled_mm/{_m}x{_n}x{_k}/e5m2/bf16", LOW, _fp8(_m, _n, _k, _E5, _E4, "tensor", False, torch.bfloat16))
    add(f"scaled_mm/{_m}x{_n}x{_k}/fp16", LOW, _fp8(_m, _n, _k, _E4, _E4, "tensor", True, torch.float16))
    add(f"scaled_mm/{_m}x{_n}x{_k}/fp32", LOW, _fp8(_m, _n, _k, _E4, _E4, "tensor", True, torch.float32))


def _grouped(kind: str) -> Callable[[], Call]:
    def build() -> Call:
        experts, m, k, n = 8, 512, 256, 384
        offsets = torch.arange(m // experts, m + 1, m // experts, device="cuda", dtype=torch.int32)
        a = normal(m, k, dtype=torch.bfloat16)
        b = normal(experts, n, k, dtype=torch.bfloat16).transpose(-2, -1)
        if kind == "2d-3d":
            return lambda: torch._grouped_mm(a, b, offs=offsets, out_dtype=torch.bfloat16)
        if kind == "3d-3d":
            a3 = normal(experts, 64, k, dtype=torch.bfloat16)
            return lambda: torch._grouped_mm(a3, b, out_dtype=torch.bfloat16)
        if kind == "2d-2d":
            left, right = normal(m, k, dtype=torch.bfloat16), normal(m, n, dtype=torch.bfloat16)
            return lambda: torch._grouped_mm(left.t(), right, offs=offsets, out_dtype=torch.bfloat16)
        a8, b8 = a.to(_E4), b.to(_E4)
        scale_a, scale_b = torch.ones(m, device="cuda"), torch.ones(experts, n, device="cuda")
        return lambda: torch._scaled_grouped_mm(a8, b8, scale_a, scale_b, offs=offsets, out_dtype=torch.bfloat16)

    return build


for _kind in ("2d-3d", "3d-3d", "2d-2d", "fp8"):
    add(f"grouped_mm/{_kind}", LOW, _grouped(_kind))


def _linalg(kind: str, dtype: torch.dtype) -> Callable[[], Call]:
    def build() -> Call:
        a = normal(256, 256, dtype=dtype)
        spd = a @ a.t() + 256 * torch.eye(256, device="cuda", dtype=dtype)
        calls: dict[str, Call] = {
            "cholesky": lambda: torch.linalg.cholesky(spd),
            "solve": lambda: torch.linalg.solve(spd, a),
            "qr": lambda: torch.linalg.qr(a),
            "triangular": lambda: torch.linalg.solve_triangular(a, spd, upper=True),
            "inv": lambda: torch.linalg.inv(spd),
        }
        return calls[kind]

    return build


for _name, _dtype in (("fp32", torch.float32), ("fp64", torch.float64)):
    for _kind in ("cholesky", "solve", "qr", "triangular", "inv"):
        add(f"linalg/{_kind}/{_name}", "linalg", _linalg(_kind, _dtype))
