"""Kernels are too small for the GPU.

Kernels with so few thread blocks that most multiprocessors have nothing to do. They take a notable part of the GPU's
time. Calls of one op are to be made one only where the trace shows that none takes what another returns: a tensor is
taken apart or picked from before them, or they return another number of values. What limits the blocks on one
multiprocessor (registers, shared memory, threads) is said as well.

Why it matters: A kernel of one block uses one multiprocessor of more than a hundred, however busy the GPU looks:
utilization counts time, not multiprocessors.

What to change: Give such a kernel more at once: process the samples of a batch together instead of one by one, or raise
the batch size. Or shape the tensor so that the op has more rows to share out. Batch normalisation in PyTorch's own
layout has one block per channel; `channels_last` has more.

When to leave it: Other streams fill the rest of the GPU meanwhile.

To confirm: Record again: these kernels should be fewer, with more thread blocks (Kernels page).

In other tools:
- nvprof / Visual Profiler: Low Compute Utilization
- torch-tb-profiler: Est. SM efficiency, est. achieved occupancy

Read on:
- [CUDA C++ Best Practices Guide: execution configuration](https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#execution-configuration-optimizations)
- [PyTorch: channels last](https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.idle_gpu.independent_calls import independent_calls
from tb_dlprof_plugin.advice.rules.idle_gpu.sm_occupancy import Filling, filling
from tb_dlprof_plugin.advice.savings import shorter_step
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.profile import Bools, Ints
from tb_dlprof_plugin.names.occupancy import occupancy
from tb_dlprof_plugin.profile_view import kernel_id, op_label, op_name
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("SMALL_KERNEL_FILL", "SMALL_KERNEL_NS", "SMALL_KERNELS_SHARE_PERCENT", "SMALL_KERNELS_SAVING_PERCENT"),
    group="small kernels",
    facts=("batch_size", "channels_last"),
)

_ROWS = 4


def check(context: RuleContext) -> Finding | Silent:
    """Fires where kernels that leave most multiprocessors idle take a notable part of the GPU's time."""
    filled = filling(context.view, context.selection)
    if not filled.kernels.any() or not filled.multiprocessors.any():
        return Silent("The kernels' grids or the GPU's multiprocessors were not recorded.", applicable=False)
    launches = context.profile.launches
    part = filled.blocks / np.maximum(filled.multiprocessors, 1)
    small = filled.kernels & filled.alone & (filled.multiprocessors > 0) & (part <= thresholds.SMALL_KERNEL_FILL)
    small &= launches.duration_ns >= thresholds.SMALL_KERNEL_NS
    time, every = context.per_step(small), context.per_step(filled.kernels)
    share = percent(time, every) or 0.0
    if share < thresholds.SMALL_KERNELS_SHARE_PERCENT:
        return Silent(
            f"Kernels of {thresholds.SMALL_KERNEL_NS / 1e3:.0f} us or more that leave at least half of the "
            f"multiprocessors idle take {share:.1f} % of the kernels' time."
        )
    together = _together(context, small, filled)
    one = np.where(small, 1.0 / together, 1.0)
    alone = small & (together < 2)
    spread = np.where(alone, part, one)
    estimate = shorter_step(
        context,
        Change(gpu=np.where(alone, 1.0, np.minimum(4 * one, 1.0))),
        Change(gpu=np.where(alone, (1 + part) / 2, np.minimum(1.5 * one, 1.0))),
        Change(gpu=np.where(small, 0.5 * spread, 1.0)),
        f"These kernels take {ms(time)}. Those of calls that do not depend on each other could run as one, "
        "as long as their blocks fit on the GPU together; that takes 0.5 to 4 times (expected 1.5) as long as one of "
        "them. Others could at best be spread over all multiprocessors; half of that is expected, and nothing is "
        "certain.",
    )
    if estimate.percent < thresholds.SMALL_KERNELS_SAVING_PERCENT:
        return Silent(
            f"Kernels that leave at least half of the multiprocessors idle take {share:.1f} % of the kernels' time, "
            f"but larger ones should save only {estimate.percent:.1f} % of the step."
        )
    used = float((np.minimum(part, 1.0) * launches.duration_ns)[small].sum() / launches.duration_ns[small].sum())
    count = context.selection.count
    merging = context.per_step(small & (together >= 2))
    return RULE.finding(
        title=f"Kernels that use {100 * used:.0f} % of the multiprocessors take {share:.0f} % of the kernels' time",
        seen=f"{int(small.sum()) // count} kernels a step have too few thread blocks for the "
        f"{int(filled.multiprocessors.max())} multiprocessors: on average they use {100 * used:.1f} % of them, for "
        f"{time / 1e6:.2f} of {ms(every)} of kernel time. {_most(context, small, filled)}",
        readings=[
            Reading("Share of the kernels' time", share, "percent", thresholds.SMALL_KERNELS_SHARE_PERCENT),
            Reading("Time in such kernels per step", time, "ns"),
            Reading("Multiprocessors used in it", 100 * used, "percent", 100 * thresholds.SMALL_KERNEL_FILL),
            Reading("Of it in kernels of calls that do not depend on each other", merging, "ns"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.SMALL_KERNELS_SAVING_PERCENT),
        ],
        evidence=_rows(context, small, filled),
        change=_change(context, small, together),
        code="# Instead of: torch.stack([op(row) for row in rows])\nop(rows)\n" if 2 * merging >= time else "",
        saving=estimate,
    ).but(confidence="medium" if 2 * merging >= time else "low")


def _together(context: RuleContext, small: Bools, filled: Filling) -> Ints:
    """Per launch how many of the kernels that independent calls of an op launch in a step would fit on the GPU at once.

    Calls of which the trace does not show that none takes what another returns are a chain as far as is known.
    """
    launches, calls = context.profile.launches, context.profile.calls
    rows = np.flatnonzero(small)
    top = context.view.call_top[np.maximum(launches.call[rows], 0)]
    independent = np.ones(len(rows), dtype=np.int64)
    known = (launches.call[rows] >= 0) & (top >= 0)
    independent[known] = independent_calls(context.view, context.selection)[calls.op[top[known]]]
    keys = np.stack(
        (
            launches.kernel[rows],
            launches.config[rows],
            context.view.launch_group[rows],
            context.view.launch_iteration[rows],
        )
    )
    _, inverse = np.unique(keys, axis=1, return_inverse=True)
    inverse = inverse.reshape(-1)
    number = np.minimum(np.bincount(inverse)[inverse], independent)
    fit = filled.multiprocessors[rows] // np.maximum(filled.blocks[rows], 1)
    result = np.ones(len(launches), dtype=np.int64)
    result[rows] = np.maximum(np.minimum(number, fit), 1)
    return result


def _by_kernel(context: RuleContext, small: Bools) -> list[tuple[int, Ints]]:
    """Kernels with their launches, by falling time."""
    launches = context.profile.launches
    time = np.bincount(
        launches.kernel[small], weights=launches.duration_ns[small], minlength=len(context.profile.kernels)
    )
    order = [kernel for kernel in np.argsort(-time, kind="stable").tolist() if time[kernel] > 0]
    return [(kernel, np.flatnonzero(small & (launches.kernel == kernel))) for kernel in order[:_ROWS]]


def _shape(context: RuleContext, row: int, filled: Filling) -> str:
    """Such as "8 blocks of 1024 threads; of such blocks registers let 2 onto a multiprocessor"."""
    configs, at = context.profile.launch_configs, int(context.profile.launches.config[row])
    blocks = int(filled.blocks[row])
    text = f"{blocks} block{'' if blocks == 1 else 's'}"
    block = configs.block[at]
    if (block <= 0).any():
        return text
    threads = int(block.prod())
    found = occupancy(
        context.view.compute_capability,
        threads,
        int(configs.registers_per_thread[at]),
        int(configs.shared_memory_bytes[at]),
    )
    text += f" of {threads} threads"
    if found is None:
        return text
    return f"{text}; {found.limiter} let {found.blocks} of them onto a multiprocessor, the grid is what is missing"


def _most(context: RuleContext, small: Bools, filled: Filling) -> str:
    _, rows = _by_kernel(context, small)[0]
    longest = int(rows[context.profile.launches.duration_ns[rows].argmax()])
    return f"The one that takes most has {_shape(context, longest, filled)}."


def _rows(context: RuleContext, small: Bools, filled: Filling) -> list[EvidenceRow]:
    launches, count = context.profile.launches, context.selection.count
    whole = float(launches.duration_ns[small].sum())
    strings = context.profile.strings
    rows = []
    for kernel, mine in _by_kernel(context, small):
        time = int(launches.duration_ns[mine].sum())
        group = int(context.view.launch_group[mine[0]])
        of_op = f" of {op_label(context.view, group)}" if group >= 0 else ""
        label = f"{_short_name(strings[context.profile.kernels.name[kernel]])}{of_op}, {len(mine) / count:.3g} a step: "
        rows.append(
            EvidenceRow(
                label + _shape(context, int(mine[0]), filled).partition(";")[0],
                time // count,
                percent(time, whole),
                "kernels",
                kernel_id(context.view, kernel),
            )
        )
    return rows


def _short_name(name: str) -> str:
    """The function's own name, without its return type, namespaces and template arguments."""
    return name.removeprefix("void ").replace("(anonymous namespace)::", "").split("<")[0].split("(")[0].split("::")[-1]


def _change(context: RuleContext, small: Bools, together: Ints) -> str:
    launches, profile = context.profile.launches, context.profile
    time = launches.duration_ns
    if 2 * context.per_step(small & (together >= 2)) >= context.per_step(small):
        row = int(np.flatnonzero(small & (together >= 2))[0])
        group, where = int(context.view.launch_group[row]), ""
        if group >= 0:
            groups, strings = context.view.groups, profile.strings
            where = f" in {op_name(strings[groups.module[group]], strings[groups.op_type[group]])}"
        number = int(together[row])
        return (
            f"The same small kernel runs {number} times or more a step{where}, in calls that do not depend on each "
            "other: call the op once on all of it."
        )
    families = [profile.strings[i] for i in profile.kernels.family.tolist()]
    normalizes = np.array([family == "normalization" for family in families], dtype=np.bool_)
    normalization = small & normalizes[launches.kernel]
    if 2 * int(time[normalization].sum()) >= int(time[small].sum()) and not context.facts.channels_last:
        return (
            "Use memory_format=torch.channels_last, or a larger batch: these normalisations have a block per channel."
        )
    return "Give these ops more rows at once: a larger batch, more heads or groups, or another shape of their input."
