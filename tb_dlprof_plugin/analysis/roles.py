"""Assigns each call to a part of the training step, and each backward node to its forward op.

Autograd gives the forward op that creates a node and the node's backward op the same ``Sequence number``; backward
ops carry a positive ``Fwd thread id``. Several forward ops share a number (an op and those inside it that create no
node): the one that started last made the node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.analysis.module_paths import module_paths
from tb_dlprof_plugin.analysis.optimizer_closures import outermost_closure_calls
from tb_dlprof_plugin.model.frameworks import JAX
from tb_dlprof_plugin.model.grouping import group_rows
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, Role
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import HostEvents, HostKind, Timeline
from tb_dlprof_plugin.model.tree import any_in_subtree, inherit, outermost, subtree_ends
from tb_dlprof_plugin.names.ops import AUTOGRAD_NODE, MODULE_PREFIX, OPTIMIZER_STEP, PROFILER_STEP, ZERO_GRAD

_KINDS = {
    HostKind.RUNTIME: CallKind.RUNTIME,
    HostKind.ANNOTATION: CallKind.ANNOTATION,
    HostKind.OVERHEAD: CallKind.OVERHEAD,
    HostKind.PYTHON_MODULE: CallKind.MODULE,
}
_OPTIMIZER_PREFIXES = (OPTIMIZER_STEP, ZERO_GRAD)
_AMP_PREFIX = "aten::_amp_"
_DATALOADER_PREFIX = "enumerate(DataLoader)#"


@dataclass(frozen=True, slots=True)
class Roles:
    """Per call: kind, role, string index of the module path, forward call of a backward node, whether it is an
    outermost op, and the outermost op around it. Calls are rows; -1 stands for none."""

    kind: Ints
    role: Ints
    module: Ints
    forward_call: Ints
    top: Bools
    top_call: Ints


def assign_roles(timeline: Timeline, parent: Ints, compiled: Ints, compiled_modules: Ints, repeats: Ints) -> Roles:
    """Roles, modules and forward calls of all host events. Module paths are appended to ``timeline.strings``.

    Args:
        timeline: the trace.
        parent: per host event the row of its parent.
        compiled: per host event the row of `CompiledKernels` that it is, -1 for none. These are ops of their own, and
            the ops around them no more than ranges.
        compiled_modules: per row of `CompiledKernels` the string index of its module's path below the module that was
            compiled, -1 for unknown.
        repeats: per host event the row of the captured op that it repeats, -1 for none; ops of their own, too, of the
            module and the part of the step that was captured.
    """
    none = np.full(len(compiled), -1, dtype=np.int64)
    repeated = repeats >= 0
    if not (compiled >= 0).any():
        return _repeating(_roles(timeline, parent, repeated, none), repeats)
    # The module that was compiled is the one around the graph's call: in the backward pass, around its forward call.
    around = _roles(timeline, parent, repeated, none).module
    own = take_or(compiled_modules, compiled, -1)
    paths = _paths_below(timeline.strings, around, own)
    return _repeating(_roles(timeline, parent, (compiled >= 0) | repeated, paths), repeats)


def _repeating(roles: Roles, repeats: Ints) -> Roles:
    """The roles in which an op of a replay has those of the op that it repeats."""
    rows = np.flatnonzero(repeats >= 0)
    if not len(rows):
        return roles
    source = repeats[rows]
    # An op inside an autograd node has neither role nor forward op of its own.
    whole = np.where(roles.top_call[source] >= 0, roles.top_call[source], source)
    role, module, forward = roles.role.copy(), roles.module.copy(), roles.forward_call.copy()
    role[rows], module[rows] = roles.role[whole], roles.module[whole]
    forward[rows] = np.where(whole == source, roles.forward_call[source], -1)
    return replace(roles, role=role, module=module, forward_call=forward)


def _paths_below(strings: list[str], around: Ints, own: Ints) -> Ints:
    """String index of each path below the one around it; -1 where the own path is not known."""
    result = np.full(len(own), -1, dtype=np.int64)
    table = StringTable.over(strings)
    rows = np.flatnonzero(own >= 0)
    (above, below), pair = group_rows(around[rows], own[rows])
    pairs = zip(above.tolist(), below.tolist(), strict=True)
    paths = [table.add(".".join(filter(None, (strings[outer], strings[inner])))) for outer, inner in pairs]
    result[rows] = np.array(paths, dtype=np.int64)[pair]
    return result


def _roles(timeline: Timeline, parent: Ints, launch: Bools, compiled_module: Ints) -> Roles:
    """The roles; ``launch`` says which host events stand for launches of compiled code or of replays.
    ``compiled_module`` has a string index for each host event, -1 for none."""
    host = timeline.host
    kind = _kinds(timeline, parent)
    kind[any_in_subtree(launch, subtree_ends(parent)) & ~launch & (kind == CallKind.OP)] = CallKind.ANNOTATION
    is_op = kind == CallKind.OP
    top_call = outermost(is_op, parent)
    top = is_op & (top_call == np.arange(len(host)))

    module = module_paths(timeline, parent)
    stated = _state_modules(timeline, module)
    module = np.where(compiled_module >= 0, compiled_module, module)
    stated |= compiled_module >= 0
    has_path = (kind == CallKind.MODULE) | stated
    in_module = inherit(kind == CallKind.MODULE, kind == CallKind.MODULE, parent)
    module = inherit(module, has_path, parent)

    seed = _seed_roles(timeline, kind)
    # Of an op of a training that the format itself describes, nothing is guessed from what is around it.
    described = is_op & np.isin(host.name, list(timeline.stated_ops)) & bool((seed == Role.BACKWARD).any())
    # What an optimizer's closure runs is not the optimizer's because of the range around it.
    in_closure = outermost_closure_calls(timeline, (kind == CallKind.MODULE) | (seed == Role.BACKWARD), parent)
    role = inherit(seed, (seed != Role.OTHER) | described | in_closure, parent)
    forward_call = _forward_calls(timeline, is_op, role, top_call)
    linked = np.zeros(len(host), dtype=np.bool_)
    linked[forward_call[forward_call >= 0]] = True
    rest = (role == Role.OTHER) & is_op
    forward = rest & (in_module | linked | launch) & ~described
    if not (role == Role.BACKWARD).any():
        # Inference without module ranges: all that is left is the forward pass. XLA's ranges name instructions, which
        # are of either pass.
        forward = rest & (timeline.framework != JAX or timeline.format == "xplane")
    seed = np.where(forward, int(Role.FORWARD), role)
    role = inherit(seed, (seed != Role.OTHER) | described | in_closure, parent)

    # A backward node works for the module that ran its forward op.
    has_forward = forward_call >= 0
    module[has_forward] = module[forward_call[has_forward]]
    module = inherit(module, has_forward | stated | (role != Role.BACKWARD), parent)
    return Roles(kind, role, module, forward_call, top, top_call)


def _kinds(timeline: Timeline, parent: Ints) -> Ints:
    host = timeline.host
    kind = np.select(
        [host.kind == trace_kind for trace_kind in _KINDS], [int(kind) for kind in _KINDS.values()], int(CallKind.OP)
    ).astype(np.int64)
    of_name = np.full(len(timeline.strings), -1, dtype=np.int64)
    for index, text in enumerate(timeline.strings):
        if text.startswith(MODULE_PREFIX):
            of_name[index] = CallKind.MODULE
        elif text.startswith((PROFILER_STEP, _DATALOADER_PREFIX, *_OPTIMIZER_PREFIXES)):
            # Older torch recorded annotations as ops.
            of_name[index] = CallKind.ANNOTATION
    known = of_name[host.name] >= 0
    kind[known] = of_name[host.name[known]]
    if not (host.kind == HostKind.ANNOTATION).any():
        kind[_ranges_among_ops(timeline, kind, parent)] = CallKind.ANNOTATION
    return kind


def _ranges_among_ops(timeline: Timeline, kind: Ints, parent: Ints) -> Bools:
    """The user's ``record_function`` ranges in traces of torch 1.9, which have the category of ops: outside every
    namespace, with neither number nor shapes where ops have them, and with ops inside."""
    host = timeline.host
    is_op = kind == CallKind.OP
    if not (host.shapes > 0).any():
        return np.zeros(len(host), dtype=np.bool_)
    plain = np.array(["::" not in text for text in timeline.strings], dtype=np.bool_)
    ranges: Bools = is_op & plain[host.name] & (host.sequence_number < 0) & (host.shapes == 0)
    has_ops = np.zeros(len(host), dtype=np.bool_)
    has_ops[parent[is_op & (parent >= 0)]] = True
    return ranges & has_ops


def _seed_roles(timeline: Timeline, kind: Ints) -> Ints:
    host = timeline.host
    of_name = np.zeros(len(timeline.strings), dtype=np.int64)
    for index, text in enumerate(timeline.strings):
        if text.startswith(AUTOGRAD_NODE):
            of_name[index] = Role.BACKWARD
        elif text.startswith(_OPTIMIZER_PREFIXES) or text.startswith(_AMP_PREFIX):
            of_name[index] = Role.OPTIMIZER
        elif text.startswith(_DATALOADER_PREFIX):
            of_name[index] = Role.DATALOADER
    for index, stated in timeline.stated_ops.items():
        if stated.role != Role.OTHER:
            of_name[index] = stated.role
    seed = of_name[host.name]
    backward = (host.forward_thread > 0) & (host.sequence_number >= 0) & (seed == Role.OTHER)
    seed[backward & (kind == CallKind.OP)] = Role.BACKWARD
    return seed


def _state_modules(timeline: Timeline, module: Ints) -> Bools:
    """Writes the modules that the format states into the column, and says which rows they are."""
    of_name = np.zeros(len(timeline.strings), dtype=np.int64)
    stated = {index: op.module for index, op in timeline.stated_ops.items() if op.module}
    table = StringTable.over(timeline.strings)
    for index, module_path in stated.items():
        of_name[index] = table.add(module_path)
    path = of_name[timeline.host.name]
    has_path: Bools = path > 0
    module[has_path] = path[has_path]
    return has_path


def _forward_calls(timeline: Timeline, is_op: Bools, role: Ints, top_call: Ints) -> Ints:
    """For each outermost backward op, the outermost forward op that created its node; -1 where there is none."""
    host = timeline.host
    result = np.full(len(host), -1, dtype=np.int64)
    has_number = is_op & (host.sequence_number >= 0)
    forward = np.flatnonzero(has_number & (role != Role.BACKWARD) & (role != Role.DATALOADER))
    number = _numbers_of_backward(host, has_number & (role == Role.BACKWARD), top_call)
    backward = np.flatnonzero(is_op & (number >= 0) & (role == Role.BACKWARD) & (top_call == np.arange(len(host))))
    if not len(forward) or not len(backward):
        return result
    forward = forward[np.lexsort((host.start_ns[forward], host.sequence_number[forward]))]
    numbers = host.sequence_number[forward]
    position = np.searchsorted(numbers, number[backward], side="right") - 1
    has_creator = (position >= 0) & (numbers[np.maximum(position, 0)] == number[backward])
    creators = forward[position[has_creator]]
    earlier = host.start_ns[creators] <= host.start_ns[backward[has_creator]]
    result[backward[has_creator][earlier]] = top_call[creators[earlier]]
    return result


def _numbers_of_backward(host: HostEvents, numbered: Bools, top_call: Ints) -> Ints:
    """Sequence numbers, where a backward node without one takes that of the first op inside it: in traces of torch 1.12
    ``evaluate_function`` has none."""
    result = host.sequence_number.copy()
    inner = np.flatnonzero(numbered & (host.forward_thread > 0) & (top_call >= 0))[::-1]
    inner = inner[host.sequence_number[top_call[inner]] < 0]
    # The last write stays: backwards, that of the first.
    result[top_call[inner]] = host.sequence_number[inner]
    return result
