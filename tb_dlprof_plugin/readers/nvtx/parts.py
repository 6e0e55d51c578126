"""Which part of the training step a range that a program pushes by hand names: "forward", "loss.backward"."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.model.profile import Bools, Role
from tb_dlprof_plugin.model.timeline import HostKind, Ints, StatedOp
from tb_dlprof_plugin.names.ops import MODULE_PREFIX, short_op_name
from tb_dlprof_plugin.readers.nvtx.nesting import anything_around

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_LAYER = re.compile(r"feed[ _.-]?forward", re.IGNORECASE)
_PARTS = {
    Role.FORWARD: {"forward", "fwd", "fprop"},
    Role.BACKWARD: {"backward", "bwd", "bprop", "backprop", "backpropagation"},
    Role.OPTIMIZER: {"optimizer", "optimiser", "optim"},
}
_STEPS = ({"opt", "step"}, {"zero", "grad"})
"""Words that name the optimizer together."""


def part_named(text: str) -> Role:
    """The part that a range names; `Role.OTHER` where it names none, or several."""
    words = {word.lower() for word in _WORDS.findall(_LAYER.sub("", text))}
    parts = {role for role, names in _PARTS.items() if words & names}
    if any(together <= words for together in _STEPS):
        parts.add(Role.OPTIMIZER)
    return parts.pop() if len(parts) == 1 else Role.OTHER


def stated_parts(
    users: Bools, own_text: Sequence[str], text: Ints, kind: Ints, name: Ints, parent: Ints, strings: Sequence[str]
) -> dict[str, StatedOp]:
    """What to state of names, so that the parts that a program's own ranges name are those of the step.

    Where ranges name parts, an op that lies in none of them is of none: that it is of the forward pass is not said.

    Args:
        users: the program's own ranges.
        own_text: the texts of ranges.
        text: of each range, an index of ``own_text``.
        kind: of each, a `HostKind`.
        name: of each, an index of ``strings``.
        parent: of each the row of the one around it, -1 for none.
        strings: the names, of modules their paths.
    """
    part = np.array([int(part_named(one)) for one in own_text], dtype=np.int64)[text]
    named = users & (part != Role.OTHER)
    if not named.any():
        return {}
    stated: dict[str, StatedOp] = {}
    for row in np.flatnonzero(named)[np.unique(name[named], return_index=True)[1]].tolist():
        of_module = MODULE_PREFIX if kind[row] == HostKind.PYTHON_MODULE else ""
        own = of_module + strings[name[row]]
        stated[own] = StatedOp(short_op_name(own), role=Role(int(part[row])))
    inside = anything_around(named, parent) | named
    ops = users & (kind == HostKind.OP)
    for index in np.setdiff1d(name[ops & ~inside], name[inside]).tolist():
        stated[strings[index]] = StatedOp(short_op_name(strings[index]))
    return stated
