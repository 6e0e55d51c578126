"""Communication is not hidden.

Time in which a GPU runs collectives and nothing else. Where all ranks were recorded, only moving data counts: the
rest is waiting for a rank that comes later.

Why it matters: DistributedDataParallel exchanges gradients while the backward pass still computes others. What is
left after its end, or is exchanged more often than needed, makes the step longer.

What to change: Exchange gradients once per optimizer step: `no_sync` around the other batches of an accumulation.
Exchange fewer bytes with a compression hook. Or give more computation to hide it, with a larger batch.

When to leave it: The ranks are connected by a slow network and the batch cannot grow: then this is its price.

To confirm: Record all ranks again: less time in collectives with nothing else running, and a shorter step.

In other tools:
- torch-tb-profiler: Communication recommendation
- torch-tb-profiler: DistributedDataParallel without NCCL recommendation
- HTA: Communication Computation Overlap

Read on:
- [PyTorch: DistributedDataParallel, no_sync](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
- [PyTorch: DDP communication hooks](https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html)
- [Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training](https://arxiv.org/abs/2006.15704)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.frameworks import XLA_FLAGS, FrameworkRemedy
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.multi_gpu.parallel_kernels import slowdown_shares
from tb_dlprof_plugin.advice.rules.multi_gpu.replayed_calls import replayed_calls
from tb_dlprof_plugin.advice.savings import Saving, stated
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.fleet.operations import operation_of
from tb_dlprof_plugin.fleet.rank_facts import Operation
from tb_dlprof_plugin.metrics.communication import CollectiveKernels, collectives, is_collective
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.parallel_settings import DATA_PARALLEL, DDP, FULLY_SHARDED, parallel_settings
from tb_dlprof_plugin.model.frameworks import JAX, TENSORFLOW
from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.profile import Bools, CallKind
from tb_dlprof_plugin.names.ops import OPTIMIZER_STEP
from tb_dlprof_plugin.names.parallel_ranges import DDP_FORWARD
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.call_names import calls_named

_REMEDIES = {
    JAX: FrameworkRemedy(
        "Let XLA schedule collectives in parallel with computing.",
        'XLA_FLAGS="--xla_gpu_enable_latency_hiding_scheduler=true"\n',
        (XLA_FLAGS,),
    ),
    TENSORFLOW: FrameworkRemedy(
        "Exchange fewer bytes or larger batches less often: a larger batch per GPU, and NCCL as the implementation.",
        "options = tf.distribute.experimental.CommunicationOptions(\n"
        "    implementation=tf.distribute.experimental.CommunicationImplementation.NCCL)\n"
        "strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)\n",
    ),
}
"""In the words of other frameworks and recorders."""

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("COMMUNICATION_SLOWDOWN",),
    remedies=_REMEDIES,
)

COMMUNICATION_SHARE_PERCENT = 10.0
"""torch-tb-profiler's threshold; here of communication with nothing else running, and without waiting if that is
known."""

COMPRESSED_SHARE = SpeedupRange(0.3, 0.5, 0.8)
"""Exposed communication that is left with half the bytes: half of it; less where the rest overlaps with the backward
pass, more because gradients are cast twice."""

_ALL_GRADIENTS = 0.5
"""Of the bytes of the largest exchange in a step: what is less is a loss or a metric, or parameters used in part."""
_FP32 = ("float32",)
_FP32_KERNEL = "f32"
_NO_SYNC = """for number, batch in enumerate(batches):
    last = number == len(batches) - 1
    with contextlib.nullcontext() if last else model.no_sync():
        loss_of(model, batch).backward()
optimizer.step()
"""
_COMPRESS = """from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

model.register_comm_hook(None, bf16_compress_hook)
"""
_LARGER_BATCH = "loader = torch.utils.data.DataLoader(dataset, batch_size=..., sampler=sampler)\n"


@dataclass(frozen=True, slots=True)
class _Seen:
    """Per step (ns): in collectives, of it with nothing else running, of that moving data (None: not known).

    ``rounds`` is how often all gradients were exchanged for one step of the optimizer, None where unknown, and
    ``early_ns`` and ``early_hidden_ns`` the exposed and the hidden time of all rounds but the last.
    """

    collective_ns: int
    exposed_ns: int
    transfer_ns: int | None
    bytes: int | None
    rounds: int | None
    early_ns: int
    early_hidden_ns: int


def check(context: RuleContext) -> Finding | Silent:
    """Fires where collectives that nothing hides take `COMMUNICATION_SHARE_PERCENT` of the step."""
    found = collectives(context.view, context.selection)
    if not len(found) and context.facts.distributed_backend == "gloo" and (context.facts.world_size or 1) > 1:
        return _through_the_cpu(context)
    if not len(found):
        return Silent("No collective ran on the GPU.", applicable=False)
    if context.parallel.wrapper == DATA_PARALLEL:
        return Silent("The collectives are those of DataParallel, which has a rule of its own.", applicable=False)
    seen = _seen(context, found)
    share = percent(seen.exposed_ns, context.step_ns) or 0.0
    numbers = (
        f"Collectives take {ms(seen.collective_ns)} of each {ms(context.step_ns)} step, "
        f"{ms(seen.exposed_ns)} ({share:.1f} %) with nothing else running"
    )
    if seen.transfer_ns is not None:
        share = percent(seen.transfer_ns, context.step_ns) or 0.0
        numbers += f"; {ms(seen.transfer_ns)} ({share:.1f} %) of that move data, the rest waits for other ranks"
    accumulates = seen.rounds is not None and seen.rounds > 1
    # What is exchanged too often costs time also where kernels hide it.
    if share < COMMUNICATION_SHARE_PERCENT and not accumulates:
        return Silent(f"{numbers}.")
    estimate = _of_rounds(context, seen) if accumulates else _of_compression(context, seen)
    if (percent(estimate.high_ns, context.step_ns) or 0.0) < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{numbers}. The CPU sets the pace: hiding it would save at most {ms(estimate.high_ns)}.")
    change, code = _change(context, seen)
    size = ""
    if seen.bytes is not None:
        per_step = len(found) // context.selection.count
        size = f" Each rank gives {seen.bytes / 2**20:,.0f} MiB into {per_step} of them per step"
        size += f", {seen.rounds} times the gradients." if accumulates else "."
    unsplit = " How much of it waits for other ranks is unknown: only this rank was opened."
    return RULE.finding(
        title=f"Gradients are exchanged {seen.rounds} times for each optimizer step"
        if accumulates
        else f"{share:.0f} % of the step is communication that nothing hides",
        seen=f"{numbers}.{size}{unsplit if seen.transfer_ns is None else ''}",
        readings=[
            Reading("Communication not hidden", share, "percent", COMMUNICATION_SHARE_PERCENT),
            Reading("Collectives per step", seen.collective_ns, "ns"),
            Reading("With nothing else running", seen.exposed_ns, "ns"),
            Reading("Of it moving data", seen.transfer_ns, "ns"),
            Reading("Given into collectives per step", seen.bytes, "bytes"),
            Reading("Exchanges of all gradients per optimizer step", seen.rounds, "count", 1),
        ],
        evidence=op_rows(context, is_collective(context.view) & context.view.selected_launches(context.selection)),
        change=change,
        code=code,
        saving=estimate,
    ).but(confidence="high" if accumulates else "medium")


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """A hook that compresses, the settings of DDP that were switched on, or fewer exchanges."""
    before, after = parallel_settings(base).ddp, parallel_settings(candidate).ddp
    changes = []
    if before is not None and after is not None:
        if after.comm_hook and after.comm_hook != before.comm_hook:
            changes.append(f"communication hook {after.comm_hook}")
        if before.gradient_as_bucket_view is False and after.gradient_as_bucket_view:
            changes.append("gradient_as_bucket_view on")
        if before.static_graph is False and after.static_graph:
            changes.append("static_graph on")
    rounds = [_rounds(view, collectives(view, view.selection())) for view in (base, candidate)]
    if rounds[0] and rounds[1] and rounds[1] < rounds[0]:
        changes.append(f"gradients exchanged {rounds[1]} instead of {rounds[0]} times")
    return ", ".join(changes)


def _seen(context: RuleContext, found: CollectiveKernels) -> _Seen:
    count = context.selection.count
    rank = context.profile.source.rank
    own = next((row for row in context.job.account if row.rank == rank), None) if context.job is not None else None
    transfer = None if own is None or own.waiting_ms is None else round(1e6 * own.transfer_ms)
    rounds = _rounds(context.view, found)
    early = (
        _not_last(found, _reductions(context.view, found), rounds)
        if rounds and rounds > 1
        else np.zeros(len(found), dtype=np.bool_)
    )
    exposed = int(found.exposed_ns[early].sum()) // count
    return _Seen(
        collective_ns=int(found.duration_ns.sum()) // count,
        exposed_ns=int(found.exposed_ns.sum()) // count,
        transfer_ns=transfer,
        bytes=int(found.bytes.sum()) // count if (found.bytes >= 0).all() else None,
        rounds=rounds,
        early_ns=exposed,
        early_hidden_ns=int(found.duration_ns[early].sum()) // count - exposed,
    )


def _rounds(view: ProfileView, found: CollectiveKernels) -> int | None:
    """Exchanges of all gradients per step of the optimizer; None where they are not known.

    Each is what reduces after a forward pass of DistributedDataParallel, up to the next one.
    """
    profile, iterations = view.profile, len(set(found.iteration.tolist()))
    call = profile.launches.call[found.launch]
    gradients = _reductions(view, found) & (call >= 0)
    forward = calls_named(view, CallKind.ANNOTATION, lambda name: name == DDP_FORWARD)
    if parallel_settings(view).wrapper != DDP or not forward.any():
        return None
    if not gradients.any() or (found.bytes[gradients] < 0).any():
        return None
    steps = calls_named(view, CallKind.ANNOTATION, lambda name: name.startswith(OPTIMIZER_STEP))
    updates = int((steps & np.isin(view.call_iteration, found.iteration)).sum())
    if updates != iterations:
        return None
    after = np.searchsorted(np.sort(profile.calls.start_ns[forward]), profile.calls.start_ns[call[gradients]], "right")
    counts, summed = [], found.bytes[gradients]
    for _, rows in rows_of_each(found.iteration[gradients]):
        size = np.bincount(after[rows], weights=summed[rows])
        counts.append(int((size >= _ALL_GRADIENTS * size.max()).sum()))
    return int(np.median(counts))


def _reductions(view: ProfileView, found: CollectiveKernels) -> Bools:
    """Which collectives sum up, as DDP exchanges gradients: tokens of experts and the like are moved otherwise."""
    kernels, strings = view.profile.kernels, view.profile.strings
    sums = np.array(
        [operation_of(strings[name]) in (Operation.ALL_REDUCE, Operation.UNKNOWN) for name in kernels.name.tolist()],
        dtype=np.bool_,
    )
    # SendRecv, of all-to-all, names no operation either.
    moves = np.array(["SendRecv" in strings[name] for name in kernels.name.tolist()], dtype=np.bool_)
    result: Bools = (sums & ~moves)[view.profile.launches.kernel[found.launch]]
    return result


def _not_last(found: CollectiveKernels, gradients: Bools, rounds: int) -> Bools:
    """Which collectives belong to any but the last exchange of their iteration; the launches are in order."""
    result = np.zeros(len(found), dtype=np.bool_)
    among = np.flatnonzero(gradients)
    for _, rows in rows_of_each(found.iteration[among]):
        rows = among[rows]
        result[rows[: len(rows) - len(rows) // rounds]] = True
    return result


def _of_rounds(context: RuleContext, seen: _Seen) -> Saving:
    """What exchanging once saves: the exposed time of the other rounds, and what they slowed down in parallel."""
    known = context.simulation
    slower = slowdown_shares(context)
    low, expected, high = (
        seen.early_ns * exposed + share * seen.early_hidden_ns
        for exposed, share in zip((0.6, 1.0, 1.0), (slower.low, slower.expected, slower.high), strict=True)
    )
    room = max(context.step_ns - known.host_ends_ns[0], high if known.timed else 0.0)
    low, expected, high = (min(value, room) for value in (low, expected, high))
    return stated(
        context,
        low,
        expected,
        high,
        f"All exchanges but the last one take {ms(seen.early_ns)} a step with nothing else running. They "
        f"also run for {ms(seen.early_hidden_ns)} in parallel with kernels, whose multiprocessors they share: "
        f"{100 * slower.low:.0f} to {100 * slower.high:.0f} % of that, expected {100 * slower.expected:.0f} %, is "
        "added. At the least six tenths of the exposed time, because launches may come late.",
    )


def _of_compression(context: RuleContext, seen: _Seen) -> Saving:
    """What half the bytes save, where gradients are FP32; else what is exposed is the bound."""
    least_cpu = context.simulation.host_ends_ns[0]
    moved = seen.exposed_ns if seen.transfer_ns is None else seen.transfer_ns
    factor = COMPRESSED_SHARE
    room = max(context.step_ns - least_cpu, 0.0)
    calls = replayed_calls(context)
    if calls is not None:
        # What other ranks or hosts hide saves nothing.
        room = min(room, calls.saved_ns(context, calls.exposed))
    low = 0.0 if seen.transfer_ns is None else moved * (1 - factor.high)
    expected, high = moved * (1 - factor.expected), float(moved)
    low, expected, high = (min(value, room) for value in (low, expected, high))
    return stated(
        context,
        low,
        expected,
        high,
        f"{ms(moved)} of communication are not hidden"
        + (", in which waiting for other ranks is not separated" if seen.transfer_ns is None else "")
        + f". With half the bytes {100 * factor.expected:.0f} % stay, {100 * factor.high:.0f} % at worst because "
        "casts come on top; at best more work hides all of it. A step cannot get shorter than the CPU needs for it, "
        f"{ms(least_cpu)} or more.",
    )


def _change(context: RuleContext, seen: _Seen) -> tuple[str, str]:
    ddp, wrapper = context.parallel.ddp, context.parallel.wrapper
    if seen.rounds is not None and seen.rounds > 1:
        change = (
            f"The optimizer steps once for {seen.rounds} backward passes, and each of them exchanges all gradients: "
        )
        return change + "put model.no_sync() around all but the last.", _NO_SYNC
    settings = []
    if ddp is not None and ddp.gradient_as_bucket_view is False:
        settings.append("gradient_as_bucket_view=True saves copying gradients out of the buckets")
    if ddp is not None and ddp.static_graph is False:
        settings.append(
            "static_graph=True, where every step uses the same parameters, lets DDP order its buckets better"
        )
    more = f" Settings of DistributedDataParallel: {'; '.join(settings)}." if settings else ""
    if wrapper == DDP and _sums_fp32(context) and (ddp is None or not ddp.comm_hook):
        change = "Exchange gradients in BF16: half the bytes. Check that the loss falls as before. "
        return f"{change}A larger batch per GPU hides more of it as well.{more}", _COMPRESS
    if wrapper in FULLY_SHARDED:
        change = (
            "Shard within a node only (a 2-D device mesh, HSDP), prefetch the next layer's parameters, or give each "
        )
        return change + "GPU a larger batch.", _LARGER_BATCH
    return f"Give each GPU a larger batch, so that there is more to compute while data moves.{more}", _LARGER_BATCH


def _sums_fp32(context: RuleContext) -> bool:
    """Whether gradients are exchanged in FP32: NCCL's kernels name what they sum up."""
    if context.facts.parameter_dtypes:
        return tuple(context.facts.parameter_dtypes) == _FP32
    found, profile = collectives(context.view, context.selection), context.profile
    kernels = profile.launches.kernel[found.launch[_reductions(context.view, found)]]
    names = {profile.strings[name] for name in profile.kernels.name[np.unique(kernels)].tolist()}
    return bool(names) and all(_FP32_KERNEL in name.lower() for name in names)


def _through_the_cpu(context: RuleContext) -> Finding:
    """The gradients of GPUs, exchanged by gloo."""
    return RULE.finding(
        title="Gradients are exchanged through the CPU",
        seen=f"The {context.facts.world_size or 'several'} ranks use the backend gloo, and no collective ran on the "
        f"GPU: "
        "gradients are copied to the CPU, added up there and copied back.",
        readings=[Reading("Ranks", context.facts.world_size, "count")],
        change="Use the backend nccl, which exchanges them between the GPUs.",
        code='torch.distributed.init_process_group("nccl")\n',
        saving="What the exchange would take between these GPUs does not show in this recording.",
    ).but(
        confirm="Record again: collectives run on the GPU, and the step is shorter.", confidence="high", severity="high"
    )
