"""The GPU is underutilized.

Kernels, copies and sets that cover less than half of the step. Rules on launching, gaps, stretches and data loading
come first: they name the cause.

Why it matters: The GPU is the expensive part of the machine. Where it idles, something else sets the pace: Python,
launches, data, waiting.

What to change: Give it more work per launch: larger batches, fewer and larger kernels. Or take what the CPU computes
between launches off the training thread.

When to leave it: The model is small and its training fast enough.

To confirm: Record again: GPU utilization on the Overview should rise. With a larger batch compare samples per second,
not the step time.

In other tools:
- DLProf: Underutilized GPU Detector
- torch-tb-profiler: GPU utilization recommendation

Read on:
- [PyTorch: torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
- [PyTorch: CUDA graphs](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice import frameworks, thresholds
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent, lacks
from tb_dlprof_plugin.advice.rules.data_loading import dataloader_bound
from tb_dlprof_plugin.advice.rules.idle_gpu import gpu_gaps, launch_bound, low_utilization_stretch
from tb_dlprof_plugin.advice.rules.idle_gpu.host_phases import launching
from tb_dlprof_plugin.advice.savings import Saving, shorter_step, that_goes
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.run_setup import run_setup
from tb_dlprof_plugin.model.intervals import merge
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.CUDA_CALLS,),
    thresholds=("UNDERUTILIZED_GPU_PERCENT", "PAUSE_NS", "PAUSES_LEFT"),
    group="launching",
    facts=("batch_size", "compiled"),
    remedies=frameworks.LAUNCHING,
)

_COMPILE = """model = torch.compile(model, mode="reduce-overhead")  # fewer launches, replayed as CUDA graphs
"""
_MORE_WORK = "Give the GPU more work per launch: a larger batch, or fewer and larger kernels through torch.compile."
_PAUSES = (
    "Find what the CPU does between the launches (record with with_stack=True, or put record_function around it): do "
    "it once, for all samples at once, in a DataLoader worker, or on the GPU."
)
_LOADING = "Let data be loaded ahead of the steps: in worker processes, and moved to the GPU while it computes."
_SPECIFIC = tuple(
    (module.RULE, module.check) for module in (dataloader_bound, launch_bound, gpu_gaps, low_utilization_stretch)
)
"""Rules that name a cause and its saving."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where kernels, copies and sets cover less than the threshold of the step."""
    utilization = context.steps.gpu_utilization
    busy = context.steps.gpu_busy_ns
    if utilization is None or busy is None:
        return lacks(Need.GPU)
    if utilization >= thresholds.UNDERUTILIZED_GPU_PERCENT:
        return Silent(f"The GPU is busy {utilization:.0f} % of the step.")
    count = context.selection.count
    step = context.step_ns
    without = percent(busy / count, step) or 0.0
    if without >= thresholds.UNDERUTILIZED_GPU_PERCENT:
        return Silent(
            f"The GPU is busy {utilization:.0f} % of the recorded step, but the profiler slows the CPU down: without "
            f"it the GPU should be busy {min(without, 100.0):.0f} % of {ms(step)}."
        )
    idle = context.idle_ns
    labels = {
        "dataloader": f"waits for {context.words.loader}",
        "cpu": "waits for ops and CUDA calls on the CPU",
        "other": context.words.waits_for_python,
    }
    waits = {name: (context.steps.category_ns[name] or 0) // count for name in labels}
    specific = [rule.title for rule, check_it in _SPECIFIC if not isinstance(check_it(context), Silent)]
    if specific:
        return Silent(
            f"The GPU is busy {utilization:.0f} % of the step. Other findings name the causes: {'; '.join(specific)}."
        )
    worst = max(waits, key=lambda name: waits[name])
    unknown = f"For most of the idle time the GPU {labels[worst]}, and no long pause of the CPU explains it."
    found = _saving(context, idle, busy / count)
    estimate = found if found.percent >= thresholds.WORTHWHILE_SAVING_PERCENT else None
    change = _PAUSES if estimate is not None else _LOADING if worst == "dataloader" else _MORE_WORK
    calls = int((context.view.selected_activities(context.selection) & context.view.launch_is_kernel).sum()) // count
    return RULE.finding(
        title=f"The GPU is busy only {utilization:.0f} % of each step",
        seen=f"Kernels, copies and sets cover {busy / count / 1e6:.2f} of {context.step_ns / 1e6:.2f} "
        f"ms. For most of the "
        f"rest, {ms(waits[worst])}, the GPU {labels[worst]}. A step launches {calls} kernels.",
        readings=[
            Reading("GPU utilization", utilization, "percent", thresholds.UNDERUTILIZED_GPU_PERCENT),
            Reading("GPU idle per step", idle, "ns"),
            Reading("Kernels launched per step", calls, "count"),
            Reading("GPU time per kernel", busy / count / calls if calls else None, "ns"),
        ],
        evidence=[
            EvidenceRow(
                f"The GPU {label}", waits[name], percent(waits[name], context.recorded_step_ns), "overview", name
            )
            for name, label in labels.items()
        ],
        change=change,
        code=_COMPILE if change == _MORE_WORK else "",
        saving=estimate or unknown,
    ).but(severity="low" if estimate is None else None)


def _saving(context: RuleContext, idle: int, busy: float) -> Saving:
    """Where no rule names the cause: what the CPU does in pauses between launches, at best its launching as well."""
    times, left = launching(context.view, context.selection), thresholds.PAUSES_LEFT
    pausing = float((times.pauses[1] - times.pauses[0]).sum()) / context.selection.count
    return shorter_step(
        context,
        Change(times.pauses, left.high),
        Change(times.pauses, left.expected),
        Change(merge(times.pauses, times.launching), left.low),
        f"The GPU is idle {ms(idle)} of a step. In pauses of {ms(thresholds.PAUSE_NS, 0)} or more the "
        f"CPU does other things than launch for {ms(pausing)}, of which "
        f"{that_goes(left)} can go, and at best launching as well.",
        at_most_ns=context.step_ns - busy,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """A larger batch, or torch.compile."""
    before, after = run_setup(base), run_setup(candidate)
    changes = []
    if before.batch_size and after.batch_size and after.batch_size > before.batch_size:
        changes.append(f"batch size {before.batch_size} to {after.batch_size}")
    if after.compiled and not before.compiled:
        changes.append("torch.compile")
    return ", ".join(changes)
