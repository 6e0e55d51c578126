"""Finds the instruction of each kernel of a command buffer, by the order in which the program schedules them.

XLA runs the instructions of a command buffer (CUDA graph) in their order on the stream. Kernels that XLA generates have
the name of an instruction, or that of an earlier one with the same code; kernels of libraries (cuBLAS, cuDNN, NCCL) do
not, and belong to the library calls scheduled between their neighbours.
"""

from __future__ import annotations

import bisect
import re

from tb_dlprof_plugin.readers.op_names import base_of
from tb_dlprof_plugin.readers.xplane.hlo import Instruction

_HELPER = re.compile(r"^(Memset|MEMSET)|^memset|splitK|cublasLt::|^Memcpy|reduce_\d+_kernel")


def align(kernels: list[str], schedule: list[Instruction]) -> list[Instruction | None]:
    """For each kernel of one launch, in the order of their starts, its instruction; None where none fits.

    Args:
        kernels: their names.
        schedule: the program's instructions in their order.
    """
    places: dict[str, list[int]] = {}
    for at, instruction in enumerate(schedule):
        if not instruction.is_library:
            places.setdefault(base_of(instruction.name), []).append(at)
    found = _generated(kernels, places)
    result: list[Instruction | None] = [None if at is None else schedule[at] for at in found]
    _fill_library_calls(kernels, schedule, found, result)
    return result


def _generated(kernels: list[str], places: dict[str, list[int]]) -> list[int | None]:
    """Places of the kernels that are named after an instruction: the next of that name, in a loop the first again."""
    result: list[int | None] = []
    reached = -1
    for name in kernels:
        of_name = places.get(base_of(name))
        if of_name is None:
            result.append(None)
            continue
        index = bisect.bisect_right(of_name, reached)
        reached = of_name[index] if index < len(of_name) else of_name[0]
        result.append(reached)
    return result


def _fill_library_calls(
    kernels: list[str], schedule: list[Instruction], found: list[int | None], result: list[Instruction | None]
) -> None:
    """Gives the kernels between two that are known the library calls that are scheduled between them."""
    at = 0
    while at < len(kernels):
        if found[at] is not None:
            at += 1
            continue
        stop = at
        while stop < len(kernels) and found[stop] is None:
            stop += 1
        before = found[at - 1] if at else None
        after = found[stop] if stop < len(kernels) else None
        first = 0 if before is None else before + 1
        last = len(schedule) if after is None or after < first else after
        calls = [one for one in schedule[first:last] if one.is_library]
        _share(kernels, at, stop, calls, result)
        at = stop


def _share(kernels: list[str], at: int, stop: int, calls: list[Instruction], result: list[Instruction | None]) -> None:
    """One library call after the other: a kernel that is no helper begins the next one, with the sets before it."""
    current, main_seen = 0, False
    for row in range(at, stop):
        if not calls:
            return
        is_helper = _HELPER.search(kernels[row]) is not None
        begins = not is_helper or kernels[row].lower().startswith("memset")
        if main_seen and begins and current + 1 < len(calls):
            current, main_seen = current + 1, False
        main_seen = main_seen or not is_helper
        result[row] = calls[current]
