"""Aligns what ran inside one call of a compiled graph with the launches of its wrapper, in order.

Generated kernels have names of their own and are anchors: each must come where the wrapper has it, or nothing of the
call is known. Library calls that were recorded as ops are anchors, too. A CUDA graph's replay records kernels alone:
those of library calls lie between two anchors, and are distinguished by what they do, if that leaves one way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tb_dlprof_plugin.names.compiled import is_generated
from tb_dlprof_plugin.names.kernel_verdicts import classify_kernel

_OF_TORCH_OPS = re.compile(r"(?:torch\.ops\.)?([a-z]\w*)\.(\w+)(?:\.\w+)?$")
_RENAMED = {"bias_addmm": "addmm"}
_PRODUCTS = frozenset(f"aten::{name}" for name in ("mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "_int_mm"))
_ATTENTION = re.compile(r"attention")
_CONVOLUTION_BACKWARD = "aten::convolution_backward"
_GRADIENT = re.compile(r"dgrad|wgrad", re.IGNORECASE)
_REDUCES_PRODUCT = re.compile(r"split_?k|cublas\w*reduce", re.IGNORECASE)
_CPP_EVENT = re.compile(r"graph_\d+_(cpp_\w+)$")


@dataclass(frozen=True, slots=True)
class Work:
    """Something that ran: an op, or an activity of a replayed graph.

    Attributes:
        name: of the op, or of the activity's kernel.
        replayed: whether it is an activity of a graph.
        is_kernel: False for copies and sets.
    """

    name: str
    replayed: bool = False
    is_kernel: bool = True

    @property
    def is_anchor(self) -> bool:
        """Whether its name alone must be that of the next launch."""
        return not self.replayed or is_generated(self.name)


def recorded_name(handle: str) -> str:
    """The name of the op that a launch leaves in a trace, by the name in its provenance handle."""
    if handle.startswith("extern_kernels."):
        name = handle.removeprefix("extern_kernels.")
        return f"aten::{_RENAMED.get(name, name)}"
    op = _OF_TORCH_OPS.match(handle)
    return f"{op[1]}::{op[2]}" if op else handle


def work_name(event: str) -> str:
    """The name of an op's event, for C++ kernels that of the kernel."""
    cpp = _CPP_EVENT.match(event)
    return cpp[1] if cpp else event


@lru_cache(maxsize=1024)
def aligned(launches: tuple[str, ...], work: tuple[Work, ...]) -> tuple[int, ...] | None:
    """Per work the index of its launch, -1 where that is not known; None where the order is not the wrapper's.

    Args:
        launches: `recorded_name` of the wrapper's launches, in order.
        work: what ran, in order; ops that are no launch of the wrapper are left out.
    """
    has_cpp = any(one.name.startswith("cpp_") for one in work)
    # C++ kernels leave an event only where Inductor was configured to write one.
    kept = [index for index, name in enumerate(launches) if has_cpp or not name.startswith("cpp_")]
    names = [launches[index] for index in kept]
    result, pending, at = [-1] * len(work), list[int](), 0
    for row, one in enumerate(work):
        if not one.is_anchor:
            pending.append(row)
            continue
        ways = [
            (stop, placed)
            for stop in _stops(names, at, one.name, bool(pending))
            if (placed := _between(names[at:stop], [work[index] for index in pending])) is not None
        ]
        if len(ways) != 1:
            return None
        stop, placed = ways[0]
        for index, launch in zip(pending, placed, strict=True):
            result[index] = kept[at + launch] if launch >= 0 else -1
        result[row] = kept[stop]
        pending, at = [], stop + 1
    if any(map(is_generated, names[at:])):
        return None
    placed = _between(names[at:], [work[index] for index in pending])
    if placed is None:
        return None
    for index, launch in zip(pending, placed, strict=True):
        result[index] = kept[at + launch] if launch >= 0 else -1
    return tuple(result)


def _stops(names: Sequence[str], at: int, wanted: str, may_skip: bool) -> list[int]:
    """Where the wanted launch may be from ``at`` on: library calls whose kernels were replayed may come before it."""
    found = []
    for stop in range(at, len(names)):
        if names[stop] == wanted:
            found.append(stop)
        if not may_skip or is_generated(names[stop]):
            break
    return found


def _between(calls: Sequence[str], work: Sequence[Work]) -> list[int] | None:
    """Per work of a replay the library call between two anchors that launched it, -1 where several ways are left;
    None where calls left nothing."""
    if not calls:
        return [-1] * len(work)
    units = _with_preparation(work)
    if len(units) < len(calls):
        return None
    unit_of = [-1] * len(units)
    ways: dict[tuple[int, int], int] = {}

    def count(call: int, unit: int) -> int:
        """In how many ways, at most 2, the calls from this one on launched the units from this one on."""
        if call == len(calls):
            return int(unit == len(units))
        if (call, unit) not in ways:
            total = 0
            for stop in range(unit + 1, len(units) - (len(calls) - call - 1) + 1):
                if total < 2 and _may_launch(calls[call], units[unit:stop]):
                    total += count(call + 1, stop)
            ways[call, unit] = min(2, total)
        return ways[call, unit]

    if count(0, 0) == 1:
        unit = 0
        for call in range(len(calls)):
            stop = next(
                stop
                for stop in range(unit + 1, len(units) + 1)
                if _may_launch(calls[call], units[unit:stop]) and count(call + 1, stop) == 1
            )
            unit_of[unit:stop] = [call] * (stop - unit)
            unit = stop
    return [call for call, unit in zip(unit_of, units, strict=True) for _ in unit]


def _with_preparation(work: Sequence[Work]) -> list[list[Work]]:
    """Each kernel with the sets right before it, which prepare its memory; what is left at the end joins the last."""
    units: list[list[Work]] = []
    before: list[Work] = []
    for one in work:
        before.append(one)
        if one.is_kernel:
            units.append(before)
            before = []
    if before:
        units[-1:] = [[*units[-1], *before]] if units else [before]
    return units


def _may_launch(call: str, units: Sequence[Sequence[Work]]) -> bool:
    names = [one.name for unit in units for one in unit if one.is_kernel]
    kinds = [classify_kernel(name).kind for name in names]
    if call in _PRODUCTS:
        return kinds[:1] == ["gemm"] and all(map(_REDUCES_PRODUCT.search, names[1:]))
    if call == _CONVOLUTION_BACKWARD:
        # The gradient of the image comes before that of the weight.
        passes = [found[0].lower() for name in names if (found := _GRADIENT.search(name))]
        return bool(passes) and passes == sorted(passes)
    if _ATTENTION.search(call):
        return "attention" in kinds and "gemm" not in kinds
    return True
