"""A larger batch would train faster.

GPU memory that is left for a batch of at least twice the size. The CPU, or what does not grow with the batch, sets the
pace.

Why it matters: A step has costs that do not depend on the batch: the CPU launches the same ops, the optimizer updates
the same parameters. A GPU that idles meanwhile could work on more samples in the same time.

What to change: Raise the batch size in steps of two while samples per second rise.

When to leave it: The batch size is given by the method: large batches need another learning rate and sometimes more
epochs, and batch statistics change with them. A batch of one in inference is a matter of latency.

To confirm: Record again with the larger batch and compare samples per second, not step times.

In other tools:
- DLProf: Batch Size Detector

Read on:
- [Goyal et al., Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour](https://arxiv.org/abs/1706.02677)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.planning.larger_batch import FACTORS, LargerBatch, larger_batch
from tb_dlprof_plugin.planning.memory.plan import batch_that_fits
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.PROCESS, Need.GPU),
    thresholds=("MEMORY_TO_FILL_PERCENT",),
    facts=("batch_size",),
)

BATCH_GAIN = 1.2
"""Times as many samples a second, at the least, from which a larger batch is advised: what a fifth more is worth is
weighed against another learning rate to find. Ours; DLProf names no figure for its Batch Size Detector."""

BATCH_STEP_GAIN = 1.05
"""Times as many samples a second that doubling the batch once more must bring at the least."""

BATCH_LARGE_GAIN = 2.0
"""Times as many samples a second from which the finding is of high severity."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where a batch that fits would train `BATCH_GAIN` times as many samples a second, at the least."""
    batch = context.facts.batch_size
    memory = batch_that_fits(context.view, context.selection, thresholds.MEMORY_TO_FILL_PERCENT / 100)
    if not batch or memory is None:
        what = "The batch size" if not batch else "The GPU's memory"
        return Silent(f"{what} was not recorded.", applicable=False)
    used = 100 * memory.peak / memory.available
    held = f"{memory.peak / 2**30:.1f} of {memory.available / 2**30:.0f} GiB of GPU memory are used at the peak"
    if memory.samples < FACTORS[1] * batch:
        return Silent(f"{held}: a batch twice as large would not fit.")
    known = context.simulation.estimate
    larger = larger_batch(context.view, context.selection, known.ns)
    index = _best(larger, memory.samples / batch)
    least, most = larger.gain(index)
    if index == 0 or least < BATCH_GAIN:
        tried = larger.gain(1)[0]
        return Silent(f"{held}: twice the batch would train only about {tried:.2f} times as many samples a second.")
    factor = FACTORS[index]
    rate = batch * 1e9 / known.ns
    times = f"{least:.1f}" if round(least, 1) == round(most, 1) else f"{least:.1f} to {most:.1f}"
    fits = _two_digits(memory.samples)
    idle = context.idle_ns
    return RULE.finding(
        title=f"A batch of {batch * factor} instead of {batch} would train {times} times as many samples a second",
        seen=f"{held} by batches of {batch}; about {fits:,} samples would fit. The GPU works "
        f"{context.steps.gpu_utilization or 0:.0f} % of the step. Without the profiler a step takes "
        f"{ms(known.ns)} ({known.words}): {rate:,.0f} samples a second.",
        readings=[
            Reading("Times as many samples a second, at the least", least, "ratio", BATCH_GAIN),
            Reading("Times as many samples a second, at best", most, "ratio"),
            Reading("Samples a second now", rate, "count"),
            Reading("GPU memory used at the peak", memory.peak, "bytes"),
            Reading("Of it independent of the batch", memory.steady or None, "bytes"),
            Reading("GPU memory that the process could use", memory.available, "bytes"),
            Reading("Memory per sample", (memory.peak - memory.steady) // batch, "bytes"),
            Reading("Samples that would fit", fits, "count"),
        ],
        evidence=[
            EvidenceRow("GPU idle", idle, percent(idle, context.step_ns), "launches", ""),
            EvidenceRow("GPU memory at the peak", None, used, "memory", ""),
        ],
        change=f"Raise the batch size from {batch} to {batch * factor}, and the learning rate with it as your method "
        "says. Input loading must keep up: it has as many more samples to load a second.",
        code=f"loader = torch.utils.data.DataLoader(dataset, batch_size={batch * factor}, ...)\n",
        saving="A larger batch makes the step longer, not shorter. What it gains is samples per "
        f"second: {times} times as many by the launches of this run, where kernels that fill the GPU take as many "
        "times longer as the batch is larger, and what does not depend on the batch as long as before.",
    ).but(severity="high" if least >= BATCH_LARGE_GAIN else "medium")


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """The batch size, where it was raised."""
    before, after = base.profile.facts.batch_size, candidate.profile.facts.batch_size
    return f"batch size {before} to {after}" if before and after and after > before else ""


def _best(larger: LargerBatch, most: float) -> int:
    """The largest batch that fits and still gains on the one half as large."""
    best = 0
    for index in range(1, len(FACTORS)):
        gained = larger.gain(index)[0] / larger.gain(index - 1)[0]
        if FACTORS[index] > most or gained < BATCH_STEP_GAIN:
            break
        best = index
    return best


def _two_digits(number: int) -> int:
    """Rounded down: more would claim to know the memory of each sample."""
    unit = int(10 ** max(len(str(number)) - 2, 0))
    return number // unit * unit
