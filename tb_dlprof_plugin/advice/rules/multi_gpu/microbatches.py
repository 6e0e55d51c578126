"""Another number of microbatches would be faster.

Pipelines whose stages wait for their first and after their last microbatch. Or their CPU launches so many small ones
that the GPU waits for it.

Why it matters: Of p stages with m microbatches each is idle for (p - 1) / (m + p - 1) of the step. But the CPU
launches all kernels once for each microbatch: with half as many it has half as much to do, for the same work of the
GPU.

What to change: Choose the number of microbatches for which neither the pipeline's bubble nor the CPU sets the pace.

When to leave it: Memory sets the number: under GPipe the activations of all microbatches are kept, under 1F1B those
of as many as there are stages.

Read on:
- [Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM](https://arxiv.org/abs/2104.04473)
- [PyTorch: pipeline parallelism](https://docs.pytorch.org/docs/stable/distributed.pipelining.html)
"""

from __future__ import annotations

from dataclasses import dataclass

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule import Finding, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import stated
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.fleet.answers.pipeline import bubble_share
from tb_dlprof_plugin.fleet.job import Job, PipelineShape
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.simulation.simulator import simulation

RULE = Rule(
    __name__,
    __doc__,
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
)

MICROBATCH_CPU = SpeedupRange(0.6, 1.0, 1.6)
"""Share of the CPU's time of a step that is in proportion to the number of microbatches. Above one where more of them
wait for each other between stages: on two H200s the CPU took four times as many in six times the time."""

_FACTORS = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0)
_MOST = 64
_UNSURE_PERCENT = 20.0
"""Of the step, that more microbatches must save: kernels of smaller ones are less efficient, and what the CPU needs for
them does not show where it waits for the GPU. On two H200s eight took 1.8 times as long as two, whose bubble is
larger."""
_HOST_SHARE = 0.25
"""Of the step, in which a stage idles for its CPU: such a step has no part that another number leaves as it is."""


@dataclass(frozen=True, slots=True)
class _StepInterval:
    """The step (ns) with a number of microbatches: expected, at best, and at worst."""

    count: int
    expected_ns: float
    best_ns: float
    worst_ns: float


@dataclass(frozen=True, slots=True)
class _Host:
    """CPU time of a step (ns) of the stage that needs most: at the least, as expected, at most; and whether the GPU
    sets the pace of every stage."""

    ends_ns: tuple[float, float, float]
    gpu_paced: bool


def check(context: RuleContext) -> Finding | Silent:
    """Fires where another number of microbatches saves `WORTHWHILE_SAVING_PERCENT`."""
    job = context.job
    if not context.profile.has_gpu or job is None or job.step is None or job.pipeline is None:
        return Silent("No pipeline with several recorded stages.", applicable=False)
    pipeline = job.pipeline
    if pipeline.microbatches is None:
        return Silent("How many microbatches the pipeline has does not show.", applicable=False)
    if job.missing_ranks:
        return Silent(
            "Not applicable: this recording has no profiles of some ranks, so that the slowest stage may be missing.",
            applicable=False,
        )
    now = pipeline.microbatches
    host = _slowest_host(context)
    counts = [round(now * factor) for factor in _FACTORS if (now * factor).is_integer() and 1 <= now * factor <= _MOST]
    steps = [_with(context, job, host, count) for count in counts if count >= pipeline.stages]
    best = min(steps, key=lambda one: one.expected_ns, default=None)
    won = 0.0 if best is None else context.step_ns - best.expected_ns
    numbers = f"{now} microbatches on {pipeline.stages} stages: {pipeline.bubble_percent:.0f} % of the step is bubble."
    share = percent(won, context.step_ns) or 0.0
    if best is None or share < (thresholds.WORTHWHILE_SAVING_PERCENT if best.count < now else _UNSURE_PERCENT):
        return Silent(numbers)
    host_ns = host.ends_ns[1]
    fewer = best.count < now
    estimate = stated(
        context,
        # What the CPU needs for more of them does not show where it waits for the GPU.
        max(context.step_ns - best.worst_ns, 0.0) if fewer else 0.0,
        won,
        context.step_ns - best.best_ns,
        f"A stage's work is the same in {best.count} microbatches; the bubble is then "
        f"{100 * _idle(pipeline, best.count):.0f} % on even stages. The slowest stage's CPU needs "
        f"{ms(host_ns)} of a step for {now}, in proportion to their number; at worst "
        f"{100 * MICROBATCH_CPU.low:.0f} % of it is. What neither explains stays.",
    )
    return RULE.finding(
        title=f"{best.count} microbatches instead of {now} would make the step {share:.0f} % shorter",
        seen=f"{numbers} "
        + (
            f"The CPU sets the pace: it launches every kernel {now} times."
            if fewer
            else f"With so few of them stages are idle for {100 * _idle(pipeline, now):.0f} % of their time."
        ),
        readings=[
            Reading("Microbatches", now, "count", best.count),
            Reading("Pipeline bubble", pipeline.bubble_percent, "percent"),
            Reading("CPU time of a step, slowest stage", host_ns, "ns"),
        ],
        change=f"Split the batch into {best.count} microbatches.",
        code=f"schedule = ScheduleGPipe(stage, n_microbatches={best.count}, loss_fn=loss_fn)\n",
        saving=estimate,
    ).but(
        confirm="Record all stages again: "
        + ("fewer launches, a busier GPU, a shorter step." if fewer else "a smaller bubble and a shorter step."),
        confidence="medium" if fewer else "low",
        group="cpu_paced" if fewer else "bubble",
    )


def _slowest_host(context: RuleContext) -> _Host:
    """Over all ranks, by the share of its own step in which each one's CPU works: where that waits for other stages, it
    does not set the pace."""
    simulations = [simulation(view, view.selection()) for view in context.ranks if view is not context.view]
    simulations.append(context.simulation)
    shares = [[end / max(one.estimate.ns, 1.0) for end in one.host_ends_ns] for one in simulations]
    low, expected, high = (context.step_ns * max(ends) for ends in zip(*shares, strict=True))
    return _Host((low, expected, high), all(one.step().gpu_paced for one in simulations))


def _with(context: RuleContext, job: Job, slowest: _Host, count: int) -> _StepInterval:
    """The step is what the GPUs need with this bubble, or what the CPU needs, whichever is longer."""
    assert job.pipeline is not None
    pipeline, now, step = job.pipeline, job.pipeline.microbatches or 1, float(context.step_ns)
    work = 1e6 * max(row.compute_ms + row.transfer_ms for row in job.account)
    # Next to work and bubble a step has an optimizer, copies and the like, which the number leaves as they are; where
    # the CPU sets the pace they are hidden in it.
    idle = 1e6 * max(row.host_ms for row in job.account)
    host_paced = not slowest.gpu_paced or idle > _HOST_SHARE * step
    explained = work * _stretch(pipeline, now)
    if host_paced:
        explained = max(explained, slowest.ends_ns[1])
    rest = max(step - explained, 0.0)
    gpu = work * _stretch(pipeline, count)

    def host(cpu_ns: float, share: float) -> float:
        return cpu_ns * (1 - share + share * count / now)

    spread = MICROBATCH_CPU
    shares = (spread.high, spread.expected, spread.low) if count < now else (spread.low, spread.expected, spread.high)
    ends = zip(slowest.ends_ns, shares, strict=True)
    if host_paced:
        best, expected, worst = (rest + max(gpu, host(cpu, share)) for cpu, share in ends)
    else:
        best, expected, worst = (max(rest + gpu, host(cpu, share)) for cpu, share in ends)
    return _StepInterval(count, expected, best, worst)


def _stretch(pipeline: PipelineShape, microbatches: int) -> float:
    """Step over a stage's own work, on even stages: `bubble_share`."""
    return 1 / (1 - _idle(pipeline, microbatches))


def _idle(pipeline: PipelineShape, microbatches: int) -> float:
    return bubble_share(pipeline.stages, microbatches, pipeline.chunks)
