"""What torch.compile would save of an eager run's step: fused kernels, launches by generated code or by replays.

Matrix products, convolutions and attention stay as they are. Of the other kernels of both passes a share of the time
is left, and so of the CPU's time for launching them; both shares are measured (`FUSED_LEFT`, `LAUNCHING_LEFT`). With
CUDA graphs each pass of the model is one replay.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.rules.idle_gpu.host_phases import intersection, launching, without
from tb_dlprof_plugin.advice.savings import Saving, shorter_step, with_doubt_of_step
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.amp_calls import compiled_calls
from tb_dlprof_plugin.model.intervals import Intervals, merge, union, union_of
from tb_dlprof_plugin.model.profile import Bools, CallKind, KernelKind, Role
from tb_dlprof_plugin.names.cuda_calls import CudaCall
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change
from tb_dlprof_plugin.simulation.step_detection import unmarked

FUSED_LEFT = SpeedupRange(0.25, 0.53, 0.8)
"""Of the GPU time of kernels that are no products: of a GPT's 0.55 and 0.61, of its inference 0.74, of an MLP's 0.52, a
U-Net's 0.44, BERT's 0.62, a ResNet's 0.29, on an H100 (`lab/compiled/pairs.py`)."""
LAUNCHING_LEFT = SpeedupRange(0.6, 0.9, 1.25)
"""Of the CPU's time in both passes, in default mode: steps of these that the CPU paces took 0.75 to 1.2 of the eager
ones."""
REPLAY_NS = SpeedupRange(100_000.0, 500_000.0, 1_200_000.0)
"""CPU time of a replayed graph's call while recorded: the launch, and copies of inputs. Of a GPT's two graphs with 100
and 192 launches on an H100 it was 0.5 and 1.1 ms, in place of 7.6 and 9.6 ms."""
_PRODUCTS = ("gemm", "convolution", "attention", "rnn", "communication")
_ACCUMULATES = "AccumulateGrad"
_VARIES_PERCENT = 2.0


def compile_saving(context: RuleContext, graphs: bool) -> Saving | str:
    """The saving of ``torch.compile(model)``, with ``graphs`` in the mode "reduce-overhead"; or why it is not known.

    Its lower bound is below 0 where the step may get longer.
    """
    found = compiled_as_replayed(context, graphs)
    if isinstance(found, str):
        return found
    least = found.item.low_ns
    found = with_doubt_of_step(context, found)
    return replace(found, item=msgspec.structs.replace(found.item, low_ns=least)) if least < 0 else found


def compiled_as_replayed(context: RuleContext, graphs: bool) -> Saving | str:
    """`compile_saving` of a step that is as long as it is taken to be."""
    view = context.view
    if why := _unknown(context, graphs):
        return why
    products = view.profile.named(view.profile.kernels.family, _PRODUCTS.__contains__)
    fused = _of_passes(view) & ~products[view.profile.launches.kernel]
    cpu = intersection(_passes_on_cpu(context), launching(view, context.selection).launching)
    spent = float((cpu[1] - cpu[0]).sum()) / context.selection.count

    def change(end: str) -> Change:
        stays = np.ones(len(fused))
        stays[fused] = getattr(FUSED_LEFT, end)
        if not graphs:
            return Change(cpu=cpu, keep_cpu=getattr(LAUNCHING_LEFT, end), gpu=stays)
        replays = 2 if (context.profile.ops.role == Role.BACKWARD).any() else 1
        gaps = {"low": 0.0, "expected": 0.5, "high": 1.0}[end]
        return Change(
            cpu=cpu, keep_cpu=min(replays * getattr(REPLAY_NS, end) / max(spent, 1.0), 1.0), gpu=stays, keep_gaps=gaps
        )

    time = context.per_step(fused)
    found = shorter_step(
        context,
        change("high"),
        change("expected"),
        change("low"),
        f"Kernels that are no products take {ms(time)} of both passes; fused, {100 * FUSED_LEFT.low:.0f} to "
        f"{100 * FUSED_LEFT.high:.0f} % of it would be left. Launching takes the CPU {ms(round(spent))} there"
        + (", in place of which come replays." if graphs else f"; wrappers would take {_times(LAUNCHING_LEFT)} that."),
    )
    longer = context.simulation.step([change("high")]).ns - context.simulation.estimate.ns
    if longer <= 0:
        return found
    return replace(found, item=msgspec.structs.replace(found.item, low_ns=-round(longer)))


def _times(left: SpeedupRange) -> str:
    return f"{left.low:.3g} to {left.high:.3g} times"


def _unknown(context: RuleContext, graphs: bool) -> str:
    view, selection = context.view, context.selection
    if not context.of_pytorch:
        return "PyTorch did not run the program."
    if not context.profile.has_gpu:
        return "The run used no GPU."
    if unmarked(view):
        return "No steps are marked."
    if compiled_calls(view).any() or view.is_cuda_call(CudaCall.GRAPH_LAUNCH).any():
        return "Compiled code or CUDA graphs run already."
    passes = _of_passes(view)
    if not passes.any():
        return "No forward pass was recorded."
    chosen = view.selected_launches(selection) & passes
    number = np.bincount(view.launch_iteration[chosen] - selection.first, minlength=selection.count)
    if 100 * (number.max() - number.min()) > (_VARIES_PERCENT if not graphs else 0) * number.max():
        return "The steps launch different numbers of kernels: code for one size would not fit all of them."
    return ""


def _of_passes(view: ProfileView) -> Bools:
    """Kernels of the forward and the backward pass."""
    profile, launches = view.profile, view.profile.launches
    op = view.launch_op
    role = profile.ops.role[np.maximum(op, 0)] if len(profile.ops) else np.zeros(len(op), dtype=np.int64)
    found: Bools = (op >= 0) & np.isin(role, (Role.FORWARD, Role.BACKWARD))
    return found & (profile.kernels.kind[launches.kernel] == KernelKind.KERNEL)


def _passes_on_cpu(context: RuleContext) -> Intervals:
    """The model's forward calls, else from the first forward op of an iteration to the last; and the backward nodes
    without those that accumulate gradients."""
    view, profile, calls = context.view, context.profile, context.profile.calls
    op, chosen = calls.op, view.selected_calls(context.selection)
    role, kind = profile.ops.role[op], profile.ops.kind[op]
    modules = union_of(calls, chosen & (kind == CallKind.MODULE) & (role != Role.OPTIMIZER))
    if not len(modules[0]):
        forward = np.flatnonzero(chosen & profile.ops.top[op] & (role == Role.FORWARD))
        iteration = view.call_iteration[forward]
        begin, end = np.full(len(profile.iterations), 2**62), np.full(len(profile.iterations), -1)
        np.minimum.at(begin, iteration, calls.start_ns[forward])
        np.maximum.at(end, iteration, calls.start_ns[forward] + calls.duration_ns[forward])
        modules = union(begin[end > begin], end[end > begin])
    accumulates = profile.ops_named(lambda name: _ACCUMULATES in name)[op]
    backward = union_of(calls, chosen & profile.ops.top[op] & (role == Role.BACKWARD) & ~accumulates)
    return without(merge(modules, backward), union_of(calls, chosen & accumulates))
