"""The CPU's launching sets the pace.

Steps in which the GPU runs out of work again and again. The CPU launches the next kernel too late: its time goes into
PyTorch's ops and the launches themselves, not into other code.

Why it matters: Each kernel costs the CPU some microseconds: Python, the dispatcher, autograd, the driver. Kernels
that take less than that leave the GPU waiting, and no faster kernel makes the step shorter.

What to change: Launch less: CUDA graphs replay all launches at once (`torch.compile` with `mode="reduce-overhead"`,
or `torch.cuda.make_graphed_callables`), `torch.compile` alone fuses kernels, optimizers have fused versions. Or give
each launch more to do: a larger batch takes about as long.

When to leave it: The GPU is shared with other processes that use the rest of it, or the training is fast enough.

To confirm: Record again: on the Launches page the GPU should wait less for launches. With a larger batch compare
samples per second, not the step time.

In other tools:
- torch-tb-profiler: GPU utilization recommendation
- Nsight Systems: GPU time utilization
- HTA: Idle time breakdown: host wait

Read on:
- [PyTorch: torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
- [PyTorch: CUDA graphs](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs)
- [Daydream: replaying launches to estimate savings](https://www.usenix.org/conference/atc20/presentation/zhu-hongyu)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import frameworks, thresholds
from tb_dlprof_plugin.advice.compile_saving import compiled_as_replayed
from tb_dlprof_plugin.advice.optimizer_work import optimizer_work
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.idle_gpu.host_phases import launching
from tb_dlprof_plugin.advice.rules.idle_gpu.low_utilization_window import low_stretch
from tb_dlprof_plugin.advice.savings import shorter_step, that_goes
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iteration_pace import Pace, iteration_pace
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.run_setup import run_setup
from tb_dlprof_plugin.names.cuda_calls import CudaCall
from tb_dlprof_plugin.profile_view import ProfileView, op_label
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.CUDA_CALLS, Need.GPU),
    thresholds=("LAUNCHING_LEFT", "PAUSE_NS"),
    group="launching",
    facts=("batch_size", "compiled"),
    remedies=frameworks.LAUNCHING,
)

LAUNCHING_SHARE_PERCENT = 50.0
"""Of the CPU's own time per step, from which launching is the main cause. Half: the other half would be another
cause."""

LAUNCH_BOUND_SAVING_PERCENT = 10.0
"""Of the step without the profiler: compiling a model, or putting it into graphs, is work that a few percent do not
repay."""

_COMPILE = 'model = torch.compile(model, mode="reduce-overhead")  # launches are replayed as CUDA graphs\n'
_GRAPH = """# Forward and backward are replayed as CUDA graphs; inputs must keep their shapes.
model = torch.cuda.make_graphed_callables(model, (sample_inputs,))
"""
_ROWS = 4
_OPTIMIZER_PERCENT = 15.0
"""Of the launching time, from which the optimizer is named as a part of its own."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the GPU starves in most iterations, launching is most of what the CPU does, and less of it pays."""
    pace = iteration_pace(context.view, context.selection)
    paced = np.isin(pace.of_iteration, (Pace.CPU, Pace.MIXED))
    starved = percent(int(pace.starved_ns.sum()), int(pace.window_ns.sum())) or 0.0
    if 2 * int(paced.sum()) <= len(paced):
        return Silent(
            f"While recorded the GPU waits for launches {starved:.1f} % of the time; the CPU sets the pace of "
            f"{int(paced.sum())} of {len(paced)} iterations."
        )
    times = launching(context.view, context.selection)
    share = percent(times.launching_ns, times.needed_ns) or 0.0
    if share < LAUNCHING_SHARE_PERCENT:
        return Silent(f"The CPU sets the pace, but launching is only {share:.0f} % of what it does.")
    if low_stretch(context) is not None:
        return Silent("The GPU waits in one part of the step only, which has a finding of its own.")
    gone = times.launching
    estimate = shorter_step(
        context,
        Change(cpu=gone, keep_cpu=thresholds.LAUNCHING_LEFT.high),
        Change(cpu=gone, keep_cpu=thresholds.LAUNCHING_LEFT.expected, keep_gaps=0.5),
        Change(cpu=gone, keep_cpu=thresholds.LAUNCHING_LEFT.low, keep_gaps=0.0),
        f"Launching takes the CPU {ms(times.launching_ns)} of a recorded step, of which "
        f"{that_goes(thresholds.LAUNCHING_LEFT)} go: {context.words.fewest_graphs}most with all of the step in CUDA "
        "graphs. Kernels stay as they are, and graphs shorten the gaps between them.",
        at_most_ns=context.idle_ns,
    )
    with_fusion = compiled_as_replayed(context, graphs=True)
    if not isinstance(with_fusion, str):
        # Generated kernels do the work of several: at best that goes as well.
        estimate = estimate.between(estimate.low_ns, max(estimate.high_ns, with_fusion.high_ns), with_fusion.high_ns)
    if estimate.percent < LAUNCH_BOUND_SAVING_PERCENT:
        return Silent(
            f"The CPU sets the pace of the recorded steps, but without the profiler it is faster: less launching "
            f"should save {estimate.percent:.1f} % of the step."
        )
    count = context.selection.count
    base = context.simulation.step()
    rows = context.view.selected_launches(context.selection) & (context.profile.launches.call >= 0)
    launches = int(rows.sum()) // count
    busy = (context.steps.gpu_busy_ns or 0) // count
    room = base.ns / base.gpu_ns if base.gpu_ns else 0.0
    compiled = run_setup(context.view).compiled
    return RULE.finding(
        title=f"The CPU's launching sets the pace: the GPU waits "
        f"{context.steps.gpu_idle_percent or 0:.0f} % of each step",
        seen=f"A step launches {launches} kernels, copies and sets, which keep the GPU busy for {busy / 1e6:.2f} of "
        f"{ms(context.step_ns)}: {busy / max(launches, 1) / 1e3:.0f} us each. The CPU takes "
        f"{times.launching_ns / max(launches, 1) / 1e3:.0f} us to launch one, as recorded.",
        readings=[
            Reading("Launching, of the CPU's time", share, "percent", LAUNCHING_SHARE_PERCENT),
            Reading("Expected saving", estimate.percent, "percent", LAUNCH_BOUND_SAVING_PERCENT),
            Reading("GPU waits for launches, while recorded", starved, "percent"),
            Reading("Launches per step", launches, "count"),
            Reading("CPU time per launch", times.launching_ns / max(launches, 1), "ns"),
            Reading("GPU time per launch", busy / max(launches, 1), "ns"),
        ],
        evidence=[
            EvidenceRow(
                "GPU waits for launches, while recorded", int(pace.starved_ns.sum()) // count, starved, "launches", ""
            ),
            *_busiest(context),
        ],
        change=_change(context, compiled, room),
        code=_GRAPH if _graphs(context.view) else _COMPILE,
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """A larger batch, torch.compile, or CUDA graphs."""
    before, after = run_setup(base), run_setup(candidate)
    changes = []
    if before.batch_size and after.batch_size and after.batch_size > before.batch_size:
        changes.append(f"batch size {before.batch_size} to {after.batch_size}")
    if after.compiled and not before.compiled:
        changes.append("torch.compile")
    if _graphs(candidate) and not _graphs(base):
        changes.append("CUDA graphs")
    return ", ".join(changes)


def _graphs(view: ProfileView) -> bool:
    return bool(view.is_cuda_call(CudaCall.GRAPH_LAUNCH).any())


def _change(context: RuleContext, compiled: bool | None, room: float) -> str:
    if _graphs(context.view):
        text = "CUDA graphs are in use already: move more of the step into them."
    elif compiled:
        text = 'torch.compile is in use: add mode="reduce-overhead", which replays its kernels as CUDA graphs.'
    else:
        text = 'Compile the model with mode="reduce-overhead", which replays its launches as CUDA graphs.'
    work = optimizer_work(context.view, context.selection)
    share = percent(work.cpu_ns, launching(context.view, context.selection).launching_ns) or 0.0
    if share >= _OPTIMIZER_PERCENT and not work.fused.any():
        text += f" The optimizer's step is {share:.0f} % of the launching: fused=True removes most of that."
    if room >= 1.5:
        text += f" Or raise the batch size: one {room:.1f} times as large should take about as long."
    return text


def _busiest(context: RuleContext) -> list[EvidenceRow]:
    """The ops that take the CPU longest."""
    groups, time = context.view.groups, context.ops.cpu_total_ns
    whole, count = int(time.sum()), context.selection.count
    rows = []
    for group in np.argsort(-time, kind="stable")[:_ROWS].tolist():
        rows.append(
            EvidenceRow(
                f"{op_label(context.view, group)} on the CPU",
                int(time[group]) // count,
                percent(int(time[group]), whole),
                "ops",
                groups.ids[group],
            )
        )
    return rows
