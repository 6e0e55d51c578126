"""Parameters that get no gradient.

Parameters that require a gradient and had none when the optimizer stepped. Or `find_unused_parameters=True` of
DistributedDataParallel where all parameters are used.

Why it matters: An unused parameter takes memory, and often it is a mistake: a layer that was left out of `forward`, or
a loss that was dropped. Under DDP it costs time in each step: the ranks walk the graph to find it and sum up zeros in
its place. They wait at the end of the backward pass to agree on who used what.

What to change: Remove the parameters, use them, or freeze them with `requires_grad_(False)` before the model is
wrapped; then leave `find_unused_parameters` out.

When to leave it: Other steps use them: layers dropped at random, experts, or losses that take turns.

Read on:
- [PyTorch: DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
"""

from __future__ import annotations

import math

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.gpu_memory import gigabytes
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import Saving, stated
from tb_dlprof_plugin.advice.text import milliseconds
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.parallel_settings import parallel_settings
from tb_dlprof_plugin.model.intervals import covered, union
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Ints, Role
from tb_dlprof_plugin.model.shapes import first_tensor, shape_at
from tb_dlprof_plugin.names.ops import AUTOGRAD_NODE
from tb_dlprof_plugin.names.parallel_ranges import SEARCH_UNUSED
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.PROCESS, Need.GRADIENTS_SEEN),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "STEP_NOISE"),
)

_ALL_REDUCE = ("AllReduce", "allreduce")
_BYTES = 4
_LARGE = 1_000_000
_HOOK = "AccumulateGrad"
_MARKING = SpeedupRange(1.0, 5.0, 12.0)
"""CPU time of the search over that of the calls that mark parameters as used, where the CPU sets the pace: on two H200s
a step with 256 parameters became 11.3 ms longer, with 384 18.7 ms, and 0.9 and 1.9 ms were in these calls
(lab/ranks; the hosts vary by 10 % of 42 and 79 ms)."""
_FILLS = frozenset({"aten::fill_", "aten::zero_"})
_FREEZE = "model.{module}.requires_grad_(False)  # before DistributedDataParallel(model)\n"
_PLAIN = "model = DistributedDataParallel(model)  # without find_unused_parameters=True\n"


def check(context: RuleContext) -> Finding | Silent:
    """Fires on unused parameters, and on a search for them that finds none."""
    facts = context.facts
    unused, looked_at = facts.unused_parameters, facts.trainable_parameters
    assert unused is not None
    searches = bool(context.parallel.find_unused_parameters)
    if not unused and not searches:
        return Silent(f"All {looked_at} parameters of the optimizer get a gradient.")
    size = facts.unused_parameter_bytes or 0
    names = facts.unused_parameter_names
    listed = ", ".join(names[:4]) + (f" and {unused - 4} more" if unused > 4 else "") if names else ""
    estimate = _estimate(context, size) if searches else None
    if not unused and (estimate is None or estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT):
        return Silent("DDP looks for unused parameters and finds none, which costs less than 2 % of the step.")
    modules = list(dict.fromkeys(name.rpartition(".")[0] for name in names if "." in name))
    looks = " DistributedDataParallel looks for unused ones in each step." if searches else ""
    if unused:
        title = f"{gigabytes(size)} of parameters get no gradient"
        title += ", and DDP sums up zeros for them" if searches else ""
        seen = f"{unused} of {looked_at} parameters of the optimizer require a gradient and got none while recorded"
        seen += f" ({listed}): {gigabytes(size)}." if listed else f": {gigabytes(size)}."
        do = "Remove them from the model, use them in forward, or freeze them before the model is wrapped"
        do += ", and leave find_unused_parameters out." if searches else "."
    else:
        title = "DDP looks for unused parameters in each step, and there are none"
        seen, do = f"All {looked_at} parameters get a gradient.", "Leave find_unused_parameters out."
    code = _FREEZE.format(module=modules[0]) if unused and modules else ""
    unknown = "Without DDP's search they take memory, and hardly any time: the optimizer passes over them."
    return RULE.finding(
        title=title,
        seen=seen + looks,
        readings=[
            Reading("Parameters without a gradient", unused, "count", 0),
            Reading("Their size", size, "bytes"),
            Reading("Parameters that require one", looked_at, "count"),
        ],
        evidence=_evidence(context),
        change=do,
        code=code + (_PLAIN if searches else ""),
        saving=estimate or unknown,
    ).but(
        confirm="Record again: this finding is gone"
        + (", and the step has no search_unused_parameters and less communication." if searches else "."),
        confidence="high" if unused else "medium",
        severity=None if estimate else "low",
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Fewer unused parameters, or no search for them."""
    before, after = base.profile.facts, candidate.profile.facts
    changes = []
    if before.unused_parameters and after.unused_parameters == 0:
        changes.append("no unused parameters")
    if parallel_settings(base).find_unused_parameters and after.find_unused_parameters is False:
        changes.append("no search for unused parameters")
    return ", ".join(changes)


def _estimate(context: RuleContext, size: int) -> Saving | None:
    """What the search costs: communication of zeros that nothing hides, filling them in, and the wait at the end."""
    if not context.profile.has_gpu:
        return None
    reduces = context.view.selected_launches(context.selection) & _kernels(context, _ALL_REDUCE)
    share = min(size / max(_reduced_bytes(context, reduces), 1), 1.0)
    communication = share * context.per_step(reduces)
    exposed = _exposed_ns(context, reduces)
    zeros = context.per_step(_zeros(context, size))
    wait = _starved_after_search(context)
    walk = _cpu_ns(context, _search(context)[context.profile.calls.op])
    # Where the GPU sets the pace, what the CPU does next to it costs nothing.
    marking = 0 if context.simulation.step().gpu_paced else _cpu_ns(context, _marks(context))
    noise = thresholds.STEP_NOISE * context.step_ns
    hidden = min(exposed, communication)
    low = 0.6 * (hidden + zeros) + _MARKING.low * marking
    expected = hidden + zeros + context.simulation.share.expected * wait + _MARKING.expected * marking
    high = communication + zeros + wait + walk + _MARKING.high * marking
    return stated(
        context,
        low - noise,
        expected,
        max(high, expected) + noise,
        f"{100 * share:.0f} % of what the all-reduces sum up are zeros for unused parameters, "
        f"{milliseconds(round(communication))} a step; {milliseconds(exposed)} of all communication overlaps with no "
        f"other kernel, so that {milliseconds(round(hidden))} should go. Filling the zeros in takes "
        f"{milliseconds(zeros)}, and the GPU is idle for {milliseconds(wait)} after the ranks have agreed, as "
        f"recorded."
        + (
            f" The CPU, which sets the pace, marks each parameter as used: {milliseconds(marking)} in the calls that "
            f"show, {_MARKING.low:g} to {_MARKING.high:g} times that in all, expected {_MARKING.expected:g} times."
            if marking
            else ""
        ),
    )


def search_calls(context: RuleContext) -> Bools:
    """Which calls of the selected iterations are the search that DDP's reducer makes."""
    chosen: Bools = _search(context)[context.profile.calls.op] & context.view.selected_calls(context.selection)
    return chosen


def _search(context: RuleContext) -> Bools:
    """Rows of `Profile.ops` of the reducer's search."""
    ops, strings = context.profile.ops, context.profile.strings
    return np.array([SEARCH_UNUSED in strings[name] for name in ops.name.tolist()], dtype=np.bool_)


def _marks(context: RuleContext) -> Bools:
    """Which calls mark a parameter as used, in the hook of its gradient: DDP makes no others of them there."""
    profile = context.profile
    names = [profile.strings[name] for name in profile.ops.name.tolist()]
    hook = np.array([name.startswith(AUTOGRAD_NODE) and _HOOK in name for name in names], dtype=np.bool_)
    marks = np.array([name == "aten::select" for name in names], dtype=np.bool_)[profile.calls.op]
    parent = context.view.call_parent
    chosen: Bools = marks & take_or(hook, take_or(profile.calls.op, parent, -1), False)
    return chosen


def _cpu_ns(context: RuleContext, calls: Bools) -> int:
    chosen = calls & context.view.selected_calls(context.selection)
    return int(context.profile.calls.duration_ns[chosen].sum()) // context.selection.count


def _kernels(context: RuleContext, words: tuple[str, ...]) -> Bools:
    named = context.profile.kernels_where(name=lambda name: any(word in name for word in words))
    return named[context.profile.launches.kernel] & context.view.launch_is_kernel


def _reduced_bytes(context: RuleContext, reduces: Bools) -> int:
    """Bytes per step that the all-reduces sum up, by the sizes that torch.distributed records with them."""
    strings, kernels = context.profile.strings, context.profile.kernels
    row, kernel = context.view.launch_op[reduces], context.profile.launches.kernel[reduces]
    keys, counts = np.unique(np.stack((row, kernel)), axis=1, return_counts=True)
    total = 0
    for (op, which), count in zip(keys.T.tolist(), counts.tolist(), strict=True):
        first = (first_tensor(context.profile.shapes_of(op)) if op >= 0 else None) or (0,)
        size = 2 if "f16" in strings[kernels.name[which]] else _BYTES
        total += count * size * first[0]
    return total // context.selection.count


def _exposed_ns(context: RuleContext, reduces: Bools) -> int:
    """Time per step in which an all-reduce runs and nothing else does."""
    launches = context.profile.launches
    stop = launches.start_ns + launches.duration_ns
    others = ~reduces & (launches.duration_ns > 0)
    busy = union(launches.start_ns[others], stop[others])
    start, end = union(launches.start_ns[reduces], stop[reduces])
    return int((end - start - covered(busy, start, end)).sum()) // context.selection.count


def _zeros(context: RuleContext, size: int) -> Bools:
    """Kernels that fill large tensors, none larger than what is unused, outside forward pass and optimizer."""
    ops, strings = context.profile.ops, context.profile.strings
    row = context.view.launch_op
    wanted = np.zeros(len(ops) + 1, dtype=np.bool_)
    for op, name in enumerate(ops.name.tolist()):
        if strings[name] in _FILLS and ops.role[op] not in (Role.FORWARD, Role.OPTIMIZER):
            elements = math.prod(shape_at(context.profile.shapes_of(op), 0) or (0,))
            wanted[op] = _LARGE <= elements * _BYTES <= size
    zeros: Bools = context.view.selected_launches(context.selection) & (row >= 0) & wanted[row]
    return zeros


def _starved_after_search(context: RuleContext) -> int:
    """Idle time of the GPU per step after the ranks have agreed: the CPU waited, and launches the optimizer only "
    "then."""
    profile, launches = context.profile, context.profile.launches
    ops, strings = profile.ops, profile.strings
    shape = (context.facts.trainable_parameters,)
    inputs = [profile.input_shapes[which] for which in ops.shapes.tolist()]
    agreed = np.array([len(shapes) > 1 and shapes[0] == shape for shapes in inputs], dtype=np.bool_)
    row = context.view.launch_op
    read = context.view.selected_launches(context.selection) & take_or(agreed, row, False)
    read &= np.array(["DtoH" in strings[name] for name in profile.kernels.name.tolist()])[launches.kernel]
    ends: Ints = launches.start_ns[read] + launches.duration_ns[read]
    after = np.searchsorted(launches.start_ns, ends, side="left")
    known = after < len(launches)
    return int((launches.start_ns[after[known]] - ends[known]).clip(min=0).sum()) // context.selection.count


def _evidence(context: RuleContext) -> list[EvidenceRow]:
    searched = _cpu_ns(context, _search(context)[context.profile.calls.op])
    rows = [EvidenceRow(name, None, None, "overview", "") for name in context.facts.unused_parameter_names[:5]]
    if searched:
        rows.append(EvidenceRow("search_unused_parameters, on the CPU", searched, None, "launches", ""))
    return rows
