"""nn.DataParallel instead of DistributedDataParallel.

A model in `torch.nn.DataParallel` that uses several GPUs.

Why it matters: DataParallel copies the model to every GPU in every step. It gathers the outputs on the first and adds
up the gradients there. One Python process launches the work of all GPUs in turns. DistributedDataParallel keeps a copy
on each GPU and has a process for each. It exchanges gradients while the backward pass still runs. PyTorch advises it
also within one machine.

What to change: Start one process per GPU with `torchrun` and wrap the model in `DistributedDataParallel`.

When to leave it: The step is short compared with what else the script does.

To confirm: Record all ranks: each shows one GPU and collectives in the backward pass. The step is shorter for the same
number of samples in all.

In other tools:
- torch-tb-profiler: DataParallel recommendation

Read on:
- [PyTorch: DataParallel against DistributedDataParallel](https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import stated
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.communication import other_work
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.parallel_settings import DATA_PARALLEL, parallel_settings
from tb_dlprof_plugin.model.intervals import covered, union
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.names.ops import AUTOGRAD_NODE
from tb_dlprof_plugin.names.parallel_ranges import DATA_PARALLEL_FORWARD
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.call_names import calls_named

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    group="data_parallel",
)

_REPLICATES = ("Broadcast", "Scatter", "Gather")
_BACKWARD = tuple(f"{AUTOGRAD_NODE}{name}Backward" for name in _REPLICATES)
_CODE = """torch.distributed.init_process_group("nccl")
device = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(device)
model = torch.nn.parallel.DistributedDataParallel(model.to(device), gradient_as_bucket_view=True)
sampler = torch.utils.data.DistributedSampler(dataset)  # loader = DataLoader(..., sampler=sampler)
# torchrun --standalone --nproc-per-node={gpus} train.py
"""


@dataclass(frozen=True, slots=True)
class _Parts:
    """CPU time per step (ns): in DataParallel's own work, and in the passes of all replicas together."""

    forward_ns: int
    backward_ns: int
    passes_ns: int


def check(context: RuleContext) -> Finding | Silent:
    """Fires where DataParallel's forward pass is in the trace, or the hook saw it, and several GPUs were used."""
    profile = context.profile
    gpus = len(profile.iterations.gpu_ids)
    if context.parallel.wrapper != DATA_PARALLEL:
        return Silent(f"DataParallel is not used; the process works on {gpus} GPU{'s' if gpus > 1 else ''}.")
    if gpus < 2:
        return Silent("DataParallel over one GPU only calls the model.")
    parts, step = _parts(context), context.simulation.estimate.ns
    own, recorded_ns = parts.forward_ns + parts.backward_ns, context.recorded_step_ns
    work = max(int(covered(other_work(context.view, gpu), *_window(context))[0]) for gpu in profile.iterations.gpu_ids)
    work //= context.selection.count
    shorter = step / max(recorded_ns, 1)
    # The GPU with most work of its own is the least that a step takes.
    room = max(step - work, 0.0)
    expected = min(own * shorter, 0.8 * room)
    high = min((own + parts.passes_ns * (1 - 1 / gpus)) * shorter, room)
    estimate = stated(
        context,
        0.6 * expected,
        expected,
        max(high, expected),
        f"DataParallel's own work, {ms(own)} of the recorded {ms(recorded_ns)} step, is not "
        f"there with DistributedDataParallel: {own * shorter / 1e6:.2f} of {ms(step)} without the profiler. "
        f"At best the passes of the replicas, {ms(parts.passes_ns)} that one process launches for {gpus} "
        f"GPUs, run side by side as well. The GPU with most to do works {ms(work)}. Exchanging gradients "
        "takes some of it back.",
    )
    names = {
        "Copying the model and starting threads, before and after the replicas' forward passes": parts.forward_ns,
        "Gathering outputs and adding up gradients in the backward pass": parts.backward_ns,
    }
    return RULE.finding(
        title=f"nn.DataParallel spends {percent(own, recorded_ns) or 0:.0f} % of the step on copying the model to "
        f"{gpus} GPUs",
        seen=f"Of each recorded {ms(recorded_ns)} step, {ms(parts.forward_ns)} go to "
        f"DataParallel's forward pass outside of the replicas' own, {ms(parts.backward_ns)} to its part of "
        "the backward pass. The "
        f"GPUs work {context.steps.gpu_utilization or 0:.0f} % of the step.",
        readings=[
            Reading("DataParallel's own work per step", own, "ns"),
            Reading("GPUs", gpus, "count"),
            Reading("Work of the busiest GPU per step, without collectives", work, "ns"),
            Reading("Step without the profiler", step, "ns"),
        ],
        evidence=[
            EvidenceRow(label, time, percent(time, recorded_ns), "launches", "") for label, time in names.items()
        ],
        change=f"Start {gpus} processes, one per GPU, and wrap the model in DistributedDataParallel in each. The batch "
        "size is then per GPU: divide yours by their number.",
        code=_CODE.format(gpus=gpus),
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """The other wrapper."""
    before, after = (parallel_settings(view).wrapper for view in (base, candidate))
    changed = before == DATA_PARALLEL and after not in (None, DATA_PARALLEL)
    return f"{after} in place of DataParallel" if changed else ""


def _parts(context: RuleContext) -> _Parts:
    view, calls, count = context.view, context.profile.calls, context.selection.count
    inside = view.selected_calls(context.selection)
    stop = calls.start_ns + calls.duration_ns
    forward = np.flatnonzero(
        inside & calls_named(view, CallKind.ANNOTATION, lambda name: name == DATA_PARALLEL_FORWARD)
    )
    backward = inside & calls_named(view, CallKind.OP, lambda name: name.startswith(_BACKWARD))
    # The replicas' forward passes run in threads of their own, in which only CUDA calls are recorded.
    own_threads = np.unique(calls.thread[forward])
    is_cuda = (context.profile.ops.kind == CallKind.RUNTIME)[calls.op]
    elsewhere = inside & is_cuda & ~np.isin(calls.thread, own_threads) & _in_forward(context, forward)
    first, last = np.minimum.reduceat, np.maximum.reduceat
    replicas = 0
    rows = np.flatnonzero(elsewhere)
    if len(rows):
        rows = rows[np.argsort(view.call_iteration[rows], kind="stable")]
        cuts = np.flatnonzero(np.diff(view.call_iteration[rows], prepend=-1))
        replicas = int((last(stop[rows], cuts) - first(calls.start_ns[rows], cuts)).sum())
    in_backward = inside & calls_named(view, CallKind.OP, lambda name: name.startswith("autograd::engine::"))
    passes = union(calls.start_ns[in_backward & ~backward], stop[in_backward & ~backward])
    return _Parts(
        forward_ns=max(int(calls.duration_ns[forward].sum()) - replicas, 0) // count,
        backward_ns=int(calls.duration_ns[backward].sum()) // count,
        passes_ns=(replicas + int((passes[1] - passes[0]).sum())) // count,
    )


def _in_forward(context: RuleContext, forward: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """Which calls begin while one of DataParallel's forward passes runs."""
    calls = context.profile.calls
    starts, stops = union(calls.start_ns[forward], calls.start_ns[forward] + calls.duration_ns[forward])
    if not len(starts):
        return np.zeros(len(calls), dtype=np.bool_)
    at = np.searchsorted(starts, calls.start_ns, side="right") - 1
    inside: np.ndarray = (at >= 0) & (calls.start_ns < stops[np.maximum(at, 0)])  # type: ignore[type-arg]
    return inside


def _window(context: RuleContext) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    iterations, selection = context.profile.iterations, context.selection
    return iterations.start_ns[selection.first : selection.first + 1], iterations.stop_ns[
        selection.last : selection.last + 1
    ]
