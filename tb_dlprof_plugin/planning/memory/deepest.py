"""How many more modules like one fit: the deepest network of its kind."""

from __future__ import annotations

import re
from collections import Counter

from tb_dlprof_plugin.planning.memory.allocator_settings import AllocatorSettings
from tb_dlprof_plugin.planning.memory.change_layers import with_layers
from tb_dlprof_plugin.planning.memory.replay import needs
from tb_dlprof_plugin.planning.memory.step_program import StepProgram

_NEAR, _FAR = 2, 6
"""Copies whose needs span the line: the first copy may replace what was special of the recorded layers."""
_NUMBERED = re.compile(r"(.+)\.\d+")


def repeated_module(modules: list[str]) -> str | None:
    """The last of the modules that have a number in their path and the most neighbours; None where no two have."""
    parents = Counter(found[1] for module in modules if (found := _NUMBERED.fullmatch(module)))
    if not parents or max(parents.values()) < 2:
        return None
    parent = max(parents, key=lambda path: parents[path])
    found = [module for module in modules if re.fullmatch(re.escape(parent) + r"\.\d+", module)]
    return max(found, key=lambda module: int(module.rsplit(".", 1)[1]))


def most_layers(program: StepProgram, settings: AllocatorSettings, module: str, limit: int) -> int:
    """How many more modules like one run under a limit in bytes, with retries; 0 also where none does.

    Every copy takes as much, so that the least limit grows in a line with their number.

    Raises:
        UnknownModule: the module made nothing in the forward pass.
    """
    near, far = (
        needs(with_layers(program, module, count), settings).smallest_limit for count in (_NEAR, _FAR)
    )
    each = max((far - near) / (_FAR - _NEAR), 1.0)
    return max(0, int(_NEAR + (limit - near) / each))
