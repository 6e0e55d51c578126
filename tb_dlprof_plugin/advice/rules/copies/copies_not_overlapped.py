"""Copies do not overlap with computing.

Asynchronous copies of pinned memory to the GPU during which no kernel runs.

Why it matters: A GPU copies and computes at the same time, with separate engines. On one stream, one waits for the
other. A batch that is copied on a separate stream, while the GPU computes the step before, costs no time.

What to change: Prefetch: start the copy of the next batch on a side stream. Let the main stream wait for it when its
step begins.

When to leave it: A second batch does not fit into the GPU's memory, or the CPU sets the pace.

To confirm: Record again: the copies should run on a stream of their own, and the step be shorter by what they took.

In other tools:
- nvprof / Visual Profiler: Low Memcpy/Compute Overlap
- nvprof / Visual Profiler: Low Memcpy Overlap

Read on:
- [CUDA C++ best practices: overlapping transfers and computation](https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#asynchronous-and-overlapping-transfers-with-computation)
- [PyTorch: CUDA streams](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import frameworks
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.copies.copies import Fault, HostDeviceCopies, copies
from tb_dlprof_plugin.advice.savings import saved
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.intervals import covered, union
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("REPLAYED_WAITS",),
    remedies=frameworks.COPIES,
)

OVERLAP_SAVING_PERCENT = 3.0
"""Of the step: a prefetcher needs additional code and holds a second batch in GPU memory."""

_CODE = """class Prefetcher:
    def __init__(self, loader):
        self.batches, self.stream = iter(loader), torch.cuda.Stream()
        self.fetch()

    def fetch(self):
        batch = next(self.batches, None)  # from pinned memory
        with torch.cuda.stream(self.stream):
            self.upcoming = batch and [part.to("cuda", non_blocking=True) for part in batch]

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.upcoming
        for part in batch or ():
            part.record_stream(torch.cuda.current_stream())
        self.fetch()
        return batch
"""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where moving the copies aside would shorten the step by a notable share."""
    every = copies(context.view, context.selection)
    found = every.where((every.fault == Fault.NONE) & every.to_gpu & ~every.pageable)
    if not len(found):
        return Silent("No asynchronous copy of pinned memory to the GPU was recorded.")
    count = context.selection.count
    time = int(found.duration_ns.sum()) // count
    exposed = int(_alone_ns(context, found).sum()) // count
    share = percent(exposed, context.step_ns) or 0.0
    seen = f"{ms(time)} of copies to the GPU a step, of which {ms(exposed)} run while no kernel does"
    if share < OVERLAP_SAVING_PERCENT:
        return Silent(f"{seen}: {share:.1f} % of the step.")
    launches = found.launches(context)
    estimate = saved(
        context,
        Change(concurrent=launches),
        "Copied during the step before, on a separate stream, the batches delay no kernel.",
        limit_ns=exposed,
    )
    if estimate.percent < OVERLAP_SAVING_PERCENT:
        return Silent(f"{seen}; with them aside the step would be {estimate.percent:.1f} % shorter.")
    return RULE.finding(
        title=f"The GPU computes nothing for {ms(exposed, 1)} a step while it copies",
        seen=f"{seen}. The step takes {ms(context.step_ns)}.",
        readings=[
            Reading("Copies to the GPU, per step", time, "ns"),
            Reading("Of them while no kernel runs", exposed, "ns"),
            Reading("Share of the step", share, "percent", OVERLAP_SAVING_PERCENT),
            Reading("Bytes per step", int(np.maximum(found.bytes, 0).sum()) // count, "bytes"),
        ],
        evidence=op_rows(context, launches),
        change="Copy the next batch on a side stream while this one is trained on.",
        code=_CODE,
        saving=estimate,
    ).but(confidence="high" if context.step_was_timed else "medium")


def _alone_ns(context: RuleContext, found: HostDeviceCopies) -> Ints:
    """How long each copy runs while no kernel does."""
    launches, kernel = context.profile.launches, context.view.launch_is_kernel
    running = union(launches.start_ns[kernel], launches.start_ns[kernel] + launches.duration_ns[kernel])
    start = launches.start_ns[found.launch]
    return found.duration_ns - covered(running, start, start + found.duration_ns)
