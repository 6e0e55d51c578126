"""Names, shapes and numbers as short text."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence

from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.shapes import InputShape, InputShapes, TensorList

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_BYTE_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_FLOP_UNITS = ((10**15, "PFLOP"), (10**12, "TFLOP"), (10**9, "GFLOP"), (10**6, "MFLOP"), (10**3, "kFLOP"))
_FUNCTOR = re.compile(r"at::native::(\w+?)(?:Functor|_kernel_cuda|_functor|Op)\w*\b")
# What a CUTLASS convolution computes, in the middle of a name that the driver left mangled.
_MANGLED_OP = re.compile(r"\d(Conv[23]d(?:Fprop|Dgrad|Wgrad))")
_GENERIC_KERNELS = ("elementwise_kernel", "reduce_kernel", "multi_tensor_apply_kernel")
_NOT_TENSORS = ("Scalar", "ScalarList", "TensorList")


def duration(value_ns: int | float) -> str:
    """Such as "31.2 ms": three significant digits."""
    for size, unit in _UNITS:
        # 999.6 us reads "1.00 ms": the unit is the one that the rounded number has.
        if abs(value_ns) >= 0.9995 * size:
            number = value_ns / size
            digits = f"{number:#.3g}" if size > 1 and abs(number) < 999.5 else f"{number:.0f}"
            return f"{digits.removesuffix('.')} {unit}"
    return "0 ns"


def share(percent: float | None, digits: int = 0) -> str:
    """Such as "41 %". What is neither nothing nor all is not rounded to it: "under 1 %", "over 99 %"."""
    if percent is None:
        return "an unknown share"
    least = 10.0**-digits
    if 0 < percent < least:
        return f"under {least:.{digits}f} %"
    if 100 - least < percent < 100 and float(f"{percent:.{digits}f}") >= 100:
        return f"over {100 - least:.{digits}f} %"
    # All and nothing need no digits.
    return f"{percent:.0f} %" if percent in (0.0, 100.0) else f"{percent:.{digits}f} %"


def share_between(low: float, high: float) -> str:
    """A share of which a part is unknown, such as "67 to 91 %"; one number where both ends read the same."""
    ends = share(low), share(high)
    return ends[0] if ends[0] == ends[1] else f"{ends[0].removesuffix(' %')} to {ends[1]}"


def interval(low: float, high: float, text: Callable[[float], str]) -> str:
    """Such as "2.59 to 2.61"; where both ends read the same one number with half the width, "146 ms ± 0.20 ms".

    Only the number where half the width reads as nothing. ``text`` writes a number with its unit.
    """
    first, last = text(low), text(high)
    if first != last:
        return f"{first} to {last}"
    half = text((high - low) / 2).lstrip("+")
    return f"{first} ± {half}" if any(digit in half for digit in "123456789") else first


def ratio(value: float) -> str:
    """Such as "2.60": three significant digits, a speedup for example."""
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:#.3g}".removesuffix(".")


def energy(joules: float) -> str:
    """Such as "18.7 J" or "640 mJ": three significant digits."""
    for size, unit in ((1e3, "kJ"), (1.0, "J"), (1e-3, "mJ")):
        if abs(joules) >= 0.9995 * size:
            number = joules / size
            digits = f"{number:#.3g}" if abs(number) < 999.5 else f"{number:,.0f}"
            return f"{digits.removesuffix('.')} {unit}"
    return f"{joules * 1e6:.3g} µJ"


def byte_size(value: int | float) -> str:
    """Such as "1.50 GiB": three significant digits in binary units."""
    for size, unit in _BYTE_UNITS:
        # 1023.9 MiB reads "1.00 GiB": the unit is the one that the rounded number has.
        if abs(value) >= 0.9995 * size:
            number = value / size
            digits = f"{number:#.3g}" if abs(number) < 999.5 else f"{number:,.0f}"
            return f"{digits.removesuffix('.')} {unit}"
    return f"{value:,.0f} B"


def flop_count(value: int | float) -> str:
    """Such as "1.06 TFLOP": three significant digits in decimal units."""
    for size, unit in _FLOP_UNITS:
        if abs(value) >= 0.9995 * size:
            number = value / size
            digits = f"{number:#.3g}" if abs(number) < 999.5 else f"{number:,.0f}"
            return f"{digits.removesuffix('.')} {unit}"
    return f"{value:,.0f} FLOP"


def byte_rate(value: int | float) -> str:
    """A bandwidth in bytes per second, such as "4.80 TB/s": decimal units, in which makers give it."""
    size, unit = (1e12, "TB/s") if value >= 0.9995e12 else (1e9, "GB/s")
    return f"{value / size:#.3g}".removesuffix(".") + f" {unit}"


def uncapitalized(text: str) -> str:
    """A sentence or a label within a sentence: with a lower first letter."""
    return f"{text[:1].lower()}{text[1:]}"


def listed(items: Sequence[object], most: int = 8) -> str:
    """ "0, 1, 2 and 4 more"."""
    shown = ", ".join(map(str, items[:most]))
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


@functools.lru_cache(maxsize=65536)
def short_kernel_name(name: str) -> str:
    """A kernel's own name without return type, namespaces and template arguments; a generic one keeps its functor."""
    if name.startswith(("Memcpy ", "Memset ")):
        # What is in brackets is where to and from.
        return name
    if name.startswith("_ZN"):
        return _mangled(name)
    base = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    cut = min((i for i in (base.find("<"), base.find("(")) if i > 0), default=len(base))
    short = base[:cut].rsplit("::", 1)[-1] or base
    if short.endswith(_GENERIC_KERNELS) and (functor := _FUNCTOR.search(base, cut)):
        return f"{short}<{functor[1]}>"
    return short


def _mangled(name: str) -> str:
    """The own name of a function in a mangled C++ name: the last of the identifiers that it starts with."""
    at, short = len("_ZN"), name
    while (length := re.match(r"\d+", name[at:])) is not None:
        start = at + length.end()
        at = start + int(length[0])
        short = name[start:at]
    op = _MANGLED_OP.search(name, at)
    return f"{short}<{op[1]}>" if op else short


def shapes_text(shapes: InputShapes) -> str:
    """Such as "64×3×224×224, 64×3×7×7"; "" where not recorded. Scalars are left out."""
    return ", ".join(_sizes(shape) for shape in shapes if shape)


def dtypes_text(dtypes: InputDtypes) -> str:
    """Such as "fp16, fp32": each tensor type once, in order; "" where not recorded."""
    return ", ".join(dict.fromkeys(dtype.label for dtype in dtypes if dtype.name and dtype.name not in _NOT_TENSORS))


def _sizes(shape: InputShape) -> str:
    return f"[{len(shape)} tensors]" if isinstance(shape, TensorList) else "×".join(map(str, shape or ()))
