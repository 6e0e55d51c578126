"""Debugging aids are on.

Anomaly detection, launches that wait for their kernel, and deterministic algorithms that fill new memory. Also
variables of the environment or Python tracers that are made for debugging.

Why it matters: Anomaly detection keeps a stack trace for every op. It checks every gradient for NaN, with a wait for
the GPU each time. CUDA_LAUNCH_BLOCKING makes the CPU and the GPU take turns. They help to find an error and are easily
left on. (The nested profiler and emit_nvtx, which DLProf's detector names too, cannot run with torch.profiler: the hook
then records nothing and warns. Gradient checks leave no mark in a trace.)

What to change: Switch them off for training, and on again where an error has to be found.

When to leave it: You are looking for that error now, or runs must repeat bit by bit.

To confirm: Record again: the same step without them is shorter on the CPU.

In other tools:
- DLProf: Slow Api Detector

Read on:
- [PyTorch: performance tuning guide, disable debugging APIs](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#disable-debugging-apis)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.op_patterns import launched_in
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import Saving, saved, stated
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Role
from tb_dlprof_plugin.names.cuda_calls import CudaCall
from tb_dlprof_plugin.names.ops import AUTOGRAD_NODE
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.call_names import calls_named
from tb_dlprof_plugin.simulation.change import without_calls

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.CUDA_CALLS,),
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
    confidence="high",
)

NAN_CHECKED_SHARE_PERCENT = 50.0
"""Of the backward nodes that are checked for NaN, from which anomaly detection is on: it checks all that have
gradients, and a hook of the user's a few."""

BLOCKED_LAUNCHES_PERCENT = 95.0
"""Of the launches that return after their kernel has ended, from which they wait for it: others do by chance only."""

_CHECKS = ("aten::isnan", "aten::_is_any_true", "aten::any", "aten::item")
_EMPTY = ("aten::empty", "aten::resize_")
_STACK_AFTER_NS = 20_000
"""An op's own time on the CPU beyond this is that of the stack trace kept for it: launching apart, ops take a third."""
_STACKS = (0.5, 1.0, 1.5)
"""Times the traces seen in forward ops that keeping them costs: nested ops hide some, and freeing them is not seen."""
_LAUNCH_NS = 10_000
_FEWEST_LAUNCHES = 20
_BLOCKING = ("CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL")
_NO_CACHING = "PYTORCH_NO_CUDA_MEMORY_CACHING"
_WORDS = {
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "every tensor is allocated by the driver",
    "TORCH_DISTRIBUTED_DEBUG": "every collective is checked on all ranks first",
    "TORCH_NCCL_BLOCKING_WAIT": "the CPU waits for every collective",
    "NCCL_P2P_DISABLE": "GPUs exchange data through the memory of the CPU",
    "NCCL_SHM_DISABLE": "processes of one machine talk over the network",
    "NVIDIA_TF32_OVERRIDE": "TF32 is forbidden whatever the script asks for",
    "TORCHDYNAMO_DISABLE": "torch.compile compiles nothing",
    "TORCH_COMPILE_DISABLE": "torch.compile compiles nothing",
    "PYTHONDEVMODE": "Python checks its own memory and warns of everything",
    "PYTHONTRACEMALLOC": "Python keeps a stack trace for every allocation",
    "PYTHONMALLOC": "Python checks its own memory",
    "sys.settrace": "a debugger or coverage tool is called for every line of Python",
    "sys.setprofile": "a Python profiler is called for every function",
}


@dataclass(frozen=True)
class _Aid:
    """Something that is on: what it does, how to switch it off, and what of the recorded calls goes with it."""

    name: str
    does: str
    off: str
    gone: Bools | None = None
    stack_ns: int = 0


def check(context: RuleContext) -> Finding | Silent:
    """Fires where a debugging aid is on: the hook saw it, or the trace shows it."""
    blocked_ns = _blocked_ns(context)
    aids = [aid for aid in (_anomaly(context), _blocking(context, blocked_ns), _fills(context)) if aid is not None]
    aids += _switches(context)
    if not aids:
        asked = context.facts.anomaly_mode is not None
        return Silent(
            "Anomaly detection is off, and no other debugging aid was seen."
            if asked
            else "The trace shows neither checks for NaN in the backward pass nor launches that wait."
        )
    estimate = _saving(context, aids, blocked_ns)
    names = ", ".join(aid.name for aid in aids)
    return RULE.finding(
        title=f"{names[0].upper()}{names[1:]} {'is' if len(aids) == 1 else 'are'} on",
        seen=" ".join(f"{aid.name[0].upper()}{aid.name[1:]}: {aid.does}." for aid in aids),
        readings=[
            Reading("Debugging aids that are on", len(aids), "count"),
            Reading(
                "Backward nodes checked for NaN",
                _checked_share(context),
                "percent",
                NAN_CHECKED_SHARE_PERCENT,
            ),
            Reading("Launches waiting for their kernel, per step", blocked_ns, "ns"),
        ],
        evidence=_evidence(context, aids),
        change="Switch off what is not needed to train: " + "; ".join(dict.fromkeys(aid.off for aid in aids)) + ".",
        code=_code(aids),
        saving=estimate
        or "It costs time in each op or line of Python, which a trace does not separate from the work itself.",
    ).but(severity=None if estimate else "high")


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """What was switched off."""
    before, after = base.profile.facts, candidate.profile.facts
    changes = ["anomaly detection off"] if before.anomaly_mode and after.anomaly_mode is False else []
    if before.deterministic_algorithms and after.deterministic_algorithms is False:
        changes.append("deterministic algorithms off")
    changes += [f"without {name}" for name in before.slow_switches if name not in after.slow_switches]
    return ", ".join(changes)


def _anomaly(context: RuleContext) -> _Aid | None:
    share = _checked_share(context)
    if not context.facts.anomaly_mode and (share or 0.0) < NAN_CHECKED_SHARE_PERCENT:
        return None
    checks, count = _checks(context.view), context.selection.count
    rows = checks & context.view.selected_calls(context.selection)
    stack = _stack_ns(context)
    does = (
        f"{int(rows.sum()) / count:.0f} calls a step check gradients for NaN, "
        f"{ms(int(context.profile.calls.duration_ns[rows].sum()) / count)} on the CPU"
    )
    if stack:
        does += f", and forward ops spend {ms(stack)} on stack traces"
    return _Aid("anomaly detection", does, "torch.autograd.set_detect_anomaly(False)", checks, stack)


def _blocking(context: RuleContext, blocked_ns: int) -> _Aid | None:
    known = next((name for name in context.facts.slow_switches if name.startswith(_BLOCKING)), None)
    if not known and not blocked_ns:
        return None
    does = f"the CPU waits {ms(blocked_ns)} a step for kernels that it has just launched"
    variable = known.split("=")[0] if known else _BLOCKING[0]
    return _Aid(known or "waiting for each launch", does, f"unset {variable}")


def _fills(context: RuleContext) -> _Aid | None:
    """New memory filled with NaN, which deterministic algorithms ask for and hardly any training needs."""
    if not context.facts.deterministic_algorithms:
        return None
    view = context.view
    fills = calls_named(view, CallKind.OP, lambda name: name == "aten::fill_")
    around = calls_named(view, CallKind.OP, lambda name: name.startswith(_EMPTY))
    parent = view.call_parent
    fills &= take_or(around, parent, False)
    count = int((fills & view.selected_calls(context.selection)).sum()) / context.selection.count
    if not count:
        return None
    return _Aid(
        "filling of new memory",
        f"deterministic algorithms fill {count:.0f} new tensors a step with NaN before they are written",
        "torch.utils.deterministic.fill_uninitialized_memory = False, which leaves the algorithms deterministic",
        fills,
    )


def _switches(context: RuleContext) -> list[_Aid]:
    found = []
    for switch in context.facts.slow_switches:
        name = switch.split("=")[0].split("(")[0]
        if name in _BLOCKING:
            continue
        gone = None
        if name == _NO_CACHING:
            gone = context.view.is_cuda_call(CudaCall.MALLOC, CudaCall.FREE)
        tracer = name.startswith("sys.")
        off = "run without the debugger, coverage tool or profiler" if tracer else f"unset {name}"
        found.append(_Aid(switch, _WORDS.get(name, "made for debugging"), off, gone))
    return found


def _checks(view: ProfileView) -> Bools:
    """The calls with which autograd checks the gradients of a node, directly inside its evaluation."""
    nodes = calls_named(view, CallKind.OP, lambda name: name.startswith(AUTOGRAD_NODE))
    parent = view.call_parent
    result: Bools = calls_named(view, CallKind.OP, _CHECKS.__contains__)
    result &= take_or(nodes, parent, False)
    return result


def _checked_share(context: RuleContext) -> float | None:
    """Percent of the selected backward nodes in which a gradient is checked; None without any."""
    view = context.view
    nodes = calls_named(view, CallKind.OP, lambda name: name.startswith(AUTOGRAD_NODE)) & view.selected_calls(
        context.selection
    )
    isnan = calls_named(view, CallKind.OP, lambda name: name == "aten::isnan") & _checks(view)
    checked = np.zeros(len(nodes), dtype=np.bool_)
    checked[view.call_parent[isnan]] = True
    return percent(int((checked & nodes).sum()), int(nodes.sum()))


def _stack_ns(context: RuleContext) -> int:
    """CPU time per step that forward ops take beyond what ops take; 0 without a GPU, where they compute in it."""
    if not context.profile.has_gpu:
        return 0
    calls, ops = context.profile.calls, context.profile.ops
    rows = (ops.kind[calls.op] == CallKind.OP) & (ops.role[calls.op] == Role.FORWARD)
    rows &= context.view.selected_calls(context.selection)
    return int(np.maximum(context.view.call_self_ns[rows] - _STACK_AFTER_NS, 0).sum()) // context.selection.count


def _blocked_ns(context: RuleContext) -> int:
    """Time per step that launch calls wait for their own kernels; 0 where they do not wait for nearly all of them."""
    launches, calls = context.profile.launches, context.profile.calls
    rows = np.flatnonzero(context.kernel_launches & (launches.call >= 0))
    rows = rows[(context.profile.ops.kind == CallKind.RUNTIME)[calls.op[launches.call[rows]]]]
    if len(rows) < _FEWEST_LAUNCHES:
        return 0
    call = launches.call[rows]
    returned = calls.start_ns[call] + calls.duration_ns[call]
    waited = returned >= launches.start_ns[rows] + launches.duration_ns[rows]
    if 100 * float(waited.mean()) < BLOCKED_LAUNCHES_PERCENT:
        return 0
    return int(np.maximum(calls.duration_ns[call] - _LAUNCH_NS, 0).sum()) // context.selection.count


def _saving(context: RuleContext, aids: list[_Aid], blocked_ns: int) -> Saving | None:
    if not context.profile.has_gpu:
        return None
    if blocked_ns:
        return _unblocked(context, blocked_ns)
    gone = [aid.gone for aid in aids if aid.gone is not None and aid.gone.any()]
    stack = sum(aid.stack_ns for aid in aids)
    if not gone:
        return None
    mask = np.logical_or.reduce(gone)
    estimate = saved(context, without_calls(context.view, mask), "Without the calls that check, fill or allocate.")
    if stack:
        # Formatting a stack is Python's own work, which the profiler does not slow down, and the CPU paces such a step.
        # What belongs to it but not to an op (freeing the traces with their nodes) shows nowhere.
        left = context.busy_ns - context.per_step(
            launched_in(context, mask) & context.view.selected_launches(context.selection)
        )
        room = max(context.step_ns - left, 0.0)
        least, middle, most = _STACKS
        ends = (
            estimate.low_ns + least * stack,
            estimate.expected_ns + middle * stack,
            estimate.high_ns + most * stack,
        )
        low, expected, high = (min(end, max(room, estimate.low_ns)) for end in ends)
        text = (
            f"{estimate.derivation} The stack traces of forward ops come on top: {least:g} to {most:g} of {ms(stack)}."
        )
        estimate = stated(context, low, expected, high, text)
    return estimate


def _unblocked(context: RuleContext, blocked_ns: int) -> Saving:
    step, busy = context.step_ns, context.busy_ns
    room = max(step - busy, 0.0)
    expected = min(blocked_ns, room)
    return stated(
        context,
        0.6 * expected,
        expected,
        room,
        f"Launches wait {ms(blocked_ns)} a step for their kernels; without that it goes on meanwhile. The "
        f"GPU works {ms(busy)} of the {ms(step)} that a step takes without the profiler, and "
        "cannot take less.",
    )


def _evidence(context: RuleContext, aids: list[_Aid]) -> list[EvidenceRow]:
    rows = []
    inside = context.view.selected_calls(context.selection)
    for aid in aids:
        if aid.gone is not None:
            time = int(context.profile.calls.duration_ns[aid.gone & inside].sum()) // context.selection.count
            rows.append(
                EvidenceRow(
                    f"Calls of {aid.name}, on the CPU", time, percent(time, context.recorded_step_ns), "launches", ""
                )
            )
        if aid.stack_ns:
            rows.append(
                EvidenceRow(
                    "Stack traces of forward ops",
                    aid.stack_ns,
                    percent(aid.stack_ns, context.recorded_step_ns),
                    "ops",
                    "",
                )
            )
    return rows


def _code(aids: list[_Aid]) -> str:
    lines = []
    for aid in aids:
        if "=" in aid.off:
            lines.append(aid.off.split(",")[0])
        elif aid.off.startswith(("torch.", "unset ")):
            lines.append(aid.off)
    return "\n".join(dict.fromkeys(lines)) + "\n" if lines else ""
