"""How many more modules like one fit: the deepest network of its kind."""

from __future__ import annotations

from collections import defaultdict

from tb_dlprof_plugin.planning.memory.allocator_settings import AllocatorSettings
from tb_dlprof_plugin.planning.memory.change_layers import with_layers
from tb_dlprof_plugin.planning.memory.replay import needs
from tb_dlprof_plugin.planning.memory.step_program import StepProgram

_NEAR, _FAR = 2, 6
"""Copies whose needs span the line: the first copy may replace what was special of the recorded layers."""


def repeated_module(program: StepProgram) -> str | None:
    """The last of the modules with a number in their path that make as many allocations as a neighbour: of several
    groups those that make most. None where no two do."""
    counts: dict[str, int] = defaultdict(int)
    for slot in program.slots:
        parts = slot.module.split(".")
        for depth in range(1, len(parts) + 1):
            if parts[depth - 1].isdigit():
                counts[".".join(parts[:depth])] += 1
    alike: dict[tuple[str, int], list[str]] = defaultdict(list)
    for module, count in counts.items():
        alike[module.rpartition(".")[0], count].append(module)
    groups = [(count * len(modules), modules) for (_, count), modules in alike.items() if len(modules) > 1]
    if not groups:
        return None
    return max(max(groups)[1], key=lambda module: int(module.rpartition(".")[2]))


def most_layers(program: StepProgram, settings: AllocatorSettings, module: str, limit: int) -> int:
    """How many more modules like one run under a limit in bytes, with retries; 0 also where none does.

    Every copy takes as much, so that the least limit grows in a line with their number.

    Raises:
        UnknownModule: the module made nothing in the forward pass.
    """
    near, far = (needs(with_layers(program, module, count), settings).smallest_limit for count in (_NEAR, _FAR))
    each = max((far - near) / (_FAR - _NEAR), 1.0)
    return max(0, int(_NEAR + (limit - near) / each))
