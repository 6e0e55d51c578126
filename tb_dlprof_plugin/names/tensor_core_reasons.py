"""Finds the reason why a matrix kernel did not run on Tensor Cores: ordered rules over its op, types, sizes, GPU and
settings.

The first rule that applies gives the reason. Rules come from what no setting changes (the GPU, the data type, the kind
of op) to what one does (TF32, autocast), to what only another shape changes; the rest is the library's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.model.dtypes import (
    COMPLEX_DOUBLE,
    COMPLEX_FLOAT,
    InputDtypes,
    dtype_named,
    precision_of_dtypes,
)
from tb_dlprof_plugin.model.profile import Verdict
from tb_dlprof_plugin.model.shapes import InputShapes
from tb_dlprof_plugin.names.alignment import Size, misaligned, multiple, product_sizes
from tb_dlprof_plugin.names.gpu_generations import NO_TENSOR_CORES
from tb_dlprof_plugin.names.kernel_verdicts import cuda_core_precision
from tb_dlprof_plugin.names.tensor_core_eligibility import (
    is_attention,
    is_convolution,
    is_depthwise,
    is_matrix_op,
    is_recurrent,
    is_vector_op,
    tensor_core_precisions,
)

ReasonId = Literal[
    "gpu_has_none", "no_tensor_core_kernel", "dtype", "unknown", "too_small", "amp_off_for_op", "fp32_tf32_off",
    "alignment", "library_choice",
]  # fmt: skip
Remedy = Literal["", "tf32", "amp"]

LABELS: dict[ReasonId, str] = {
    "gpu_has_none": "GPU without Tensor Cores",
    "no_tensor_core_kernel": "no matrix product",
    "dtype": "data type",
    "unknown": "unknown",
    "too_small": "too small",
    "amp_off_for_op": "FP32 within a mixed precision run",
    "fp32_tf32_off": "FP32, TF32 off",
    "alignment": "alignment",
    "library_choice": "the library's choice",
}

_INT8 = dtype_named("int8")
_INTEGERS = tuple(map(dtype_named, ("int64", "int32", "int16")))

SMALLEST_SIDE = 8
"""The smallest side of a Tensor Core instruction's tile: n of m16n8k16 (FP16, BF16) and m16n8k8 (TF32). NVIDIA, *PTX
ISA*, "Matrix multiply-accumulate operation using mma instruction"."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the run and its GPU allow; None is "not recorded".

    ``half`` is True if most of the run's matrix work has FP16, BF16 or FP8 inputs.
    """

    compute_capability: tuple[int, int] | None
    matmul_tf32: bool | None
    cudnn_tf32: bool | None
    half: bool


@dataclass(frozen=True, slots=True)
class Product:
    """A kernel of a matrix op: ``kernel`` is its name, ``verdict`` whether it runs on Tensor Cores.

    ``op`` is "" where no op was recorded around it; then ``of_cudnn`` says which TF32 switch is that of its kind.
    """

    op: str
    shapes: InputShapes
    dtypes: InputDtypes
    kernel: str
    verdict: Verdict
    of_cudnn: bool = False

    @property
    def precision(self) -> str:
        """Of the inputs, "" where not recorded."""
        if COMPLEX_FLOAT in self.dtypes or COMPLEX_DOUBLE in self.dtypes:
            return "fp32" if COMPLEX_FLOAT in self.dtypes else "fp64"
        # Buffers of bytes come along with other types: INT8 is what has nothing else.
        return precision_of_dtypes(self.dtypes) or ("int8" if _INT8 in self.dtypes else "")


@dataclass(frozen=True, slots=True)
class Reason:
    """``text`` is one sentence with the numbers; ``remedy`` names the switch that would change it.

    ``kernel`` is the full name of a kernel that the text names, for printers that shorten it.
    """

    id: ReasonId
    text: str
    remedy: Remedy = ""
    kernel: str = ""


def reason_for(product: Product, settings: Settings) -> Reason:
    """Why the kernel does not run on Tensor Cores, or why that is unknown."""
    return next(found for rule in RULES if (found := rule(product, settings)) is not None)


def _gpu_has_none(product: Product, settings: Settings) -> Reason | None:
    capability = settings.compute_capability
    if capability is None or tensor_core_precisions(capability):
        return None
    if capability == NO_TENSOR_CORES:
        return Reason("gpu_has_none", "The GPU has no Tensor Cores.")
    return Reason(
        "gpu_has_none", f"The GPU's compute capability is {capability[0]}.{capability[1]}; Tensor Cores begin with 7.0."
    )


def _no_tensor_core_kernel(product: Product, settings: Settings) -> Reason | None:
    if is_convolution(product.op) and is_depthwise(product.op, product.shapes):
        return Reason(
            "no_tensor_core_kernel",
            "A depthwise convolution: each filter sees one input channel, so no matrix product is left in it.",
        )
    if is_vector_op(product.op):
        what = (
            "a depthwise convolution: each filter sees one input channel"
            if "depthwise" in product.op
            else "a product with a vector: bound by memory, so that Tensor Cores would gain nothing"
        )
        return Reason("no_tensor_core_kernel", f"{product.op} is {what}.")
    return None


def _dtype(product: Product, settings: Settings) -> Reason | None:
    supported = tensor_core_precisions(settings.compute_capability)
    if not supported or not is_matrix_op(product.op):
        return None
    takes = ", ".join(name.upper() for name in supported)
    if COMPLEX_FLOAT in product.dtypes and "tf32" not in supported:
        return Reason("dtype", f"Its inputs are complex; this GPU's Tensor Cores take {takes}.")
    precision = product.precision
    if precision == "fp32":
        if "tf32" in supported or settings.half:
            return None
        return Reason(
            "dtype", f"Its inputs are FP32; this GPU's Tensor Cores take {takes}, so only under autocast.", "amp"
        )
    if precision and precision not in supported:
        return Reason("dtype", f"Its inputs are {precision.upper()}; this GPU's Tensor Cores take {takes}.")
    if not precision and any(dtype in product.dtypes for dtype in _INTEGERS):
        return Reason("dtype", f"Its inputs are integers; this GPU's Tensor Cores take {takes}.")
    return None


def _without_op(product: Product, settings: Settings) -> Reason | None:
    """Of a kernel around which no op was recorded: what its name says."""
    if product.op or product.verdict == Verdict.UNKNOWN or settings.compute_capability is None:
        return None
    kernel = product.kernel
    if not cuda_core_precision(kernel):
        return Reason(
            "unknown",
            f"No op was recorded around the kernel {kernel}: types and sizes of its product are not known.",
            kernel=kernel,
        )
    said = f"By its name the kernel {kernel} computes in FP32"
    supported = tensor_core_precisions(settings.compute_capability)
    if "tf32" not in supported:
        takes = ", ".join(name.upper() for name in supported)
        return Reason("dtype", f"{said}; this GPU's Tensor Cores take {takes}, so only under autocast.", "amp", kernel)
    name, allowed = _switch(product, settings)
    if allowed is False:
        return Reason("fp32_tf32_off", f"{said}; TF32 is switched off ({name} is False).", "tf32", kernel)
    if allowed:
        return Reason("library_choice", f"{said}, although TF32 is allowed.", kernel=kernel)
    return Reason("unknown", f"{said}; whether TF32 is allowed was not recorded.", kernel=kernel)


def _unknown(product: Product, settings: Settings) -> Reason | None:
    if product.verdict == Verdict.UNKNOWN:
        return Reason(
            "unknown",
            f"Neither the name of the kernel {product.kernel} nor its op shows whether it runs on Tensor Cores."
            if product.op
            else f"The name of the kernel {product.kernel} does not show whether it runs on Tensor Cores.",
            kernel=product.kernel,
        )
    if settings.compute_capability is None:
        return Reason("unknown", "The GPU's compute capability was not recorded.")
    if not is_matrix_op(product.op):
        return Reason(
            "unknown",
            f"{product.op} launched the kernel {product.kernel} without an op of its own (generated code, a CUDA graph "
            "or an operator from outside the framework): types and sizes of the product are not recorded.",
            kernel=product.kernel,
        )
    if not product.precision:
        return Reason("unknown", "The types of its inputs were not recorded.")
    return None


def _vector_like(product: Product, settings: Settings) -> Reason | None:
    """A matrix product with one row or column: a dot product per output value (GEMV), or an outer product."""
    sizes = [] if is_convolution(product.op) else product_sizes(product.op, product.shapes)
    ones = [size for size in sizes if size.value == 1 and size.label in ("M", "N", "K")]
    if not ones:
        return None
    what = "an outer product" if ones[0].label == "K" else "a product of a matrix with a vector"
    return Reason("too_small", f"{' and '.join(map(str, ones))}: {what}, which is bound by memory and not tiled.")


def _amp_off_for_op(product: Product, settings: Settings) -> Reason | None:
    # autocast leaves complex numbers alone.
    if product.precision != "fp32" or not settings.half or COMPLEX_FLOAT in product.dtypes:
        return None
    return Reason(
        "amp_off_for_op",
        "Its inputs are FP32 while most matrix work of the run is in half precision: autocast is off around it, or "
        "something keeps it in FP32.",
        "amp",
    )


def _fp32_tf32_off(product: Product, settings: Settings) -> Reason | None:
    if product.precision != "fp32":
        return None
    if is_attention(product.op):
        # Fused attention in FP32 ignores the TF32 switches.
        return None
    name, allowed = _switch(product, settings)
    if allowed:
        return None
    if allowed is None:
        return Reason("unknown", f"Its inputs are FP32; whether TF32 is allowed ({name}) was not recorded.")
    return Reason("fp32_tf32_off", f"Its inputs are FP32; TF32 is switched off ({name} is False).", "tf32")


def _too_small(product: Product, settings: Settings) -> Reason | None:
    small = [s for s in product_sizes(product.op, product.shapes) if s.value < SMALLEST_SIDE]
    if not small or any("channels" in size.label for size in small):
        # A convolution's input channels are multiplied by the size of its filters: a few of them fill a tile.
        return None
    return Reason(
        "too_small",
        f"{_listed(small)}: less than one tile of a Tensor Core instruction, {SMALLEST_SIDE} a side.",
    )


def _alignment(product: Product, settings: Settings) -> Reason | None:
    precision = _on_tensor_cores(product)
    wrong = misaligned(product_sizes(product.op, product.shapes), precision)
    if not wrong:
        return None
    return Reason(
        "alignment",
        f"{_listed(wrong)}: no multiple of {multiple(precision)}, the 16 bytes that Tensor Core kernels "
        f"want in {precision.upper()}.",
    )


def _library_choice(product: Product, settings: Settings) -> Reason:
    sizes = product_sizes(product.op, product.shapes)
    if not sizes:
        return Reason(
            "unknown",
            f"The library ran {product.kernel}; the shapes of the inputs, which could tell why, were not recorded.",
            kernel=product.kernel,
        )
    return Reason(
        "library_choice",
        f"Types and sizes ({', '.join(map(str, sizes))}) fit Tensor Cores in {_on_tensor_cores(product).upper()}, but "
        f"the library ran {product.kernel}.",
        kernel=product.kernel,
    )


def _listed(sizes: Iterable[Size]) -> str:
    """At the beginning of a sentence."""
    text = ", ".join(map(str, sizes))
    return text[:1].upper() + text[1:]


def _switch(product: Product, settings: Settings) -> tuple[str, bool | None]:
    if product.of_cudnn or is_convolution(product.op) or is_recurrent(product.op):
        return "torch.backends.cudnn.allow_tf32", settings.cudnn_tf32
    return "torch.backends.cuda.matmul.allow_tf32", settings.matmul_tf32


def _on_tensor_cores(product: Product) -> str:
    return "tf32" if product.precision == "fp32" else product.precision


RULES: tuple[Callable[[Product, Settings], Reason | None], ...] = (
    _gpu_has_none,
    _no_tensor_core_kernel,
    _dtype,
    _without_op,
    _unknown,
    _vector_like,
    _amp_off_for_op,
    _fp32_tf32_off,
    _too_small,
    _alignment,
    _library_choice,
)
