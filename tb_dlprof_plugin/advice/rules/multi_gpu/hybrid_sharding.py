"""FSDP divides the model over hosts.

Groups of FSDP that gather parameters from several hosts with several GPUs each. The GPUs of one host have room for the
whole model.

Why it matters: Parameters are gathered twice in a step and gradients reduced once, all over the network between hosts.
That network is several times slower than the links within one. With hybrid sharding (HSDP) each host holds a whole
copy: only gradients, divided by the GPUs of a host, cross the network.

What to change: Give `fully_shard` a mesh of two dimensions, hosts by GPUs of a host; FSDP1
`ShardingStrategy.HYBRID_SHARD`.

When to leave it: The memory is needed: each GPU holds as many times more of the model as there are hosts.

To confirm: Record all ranks again: gathers within hosts at a higher bus bandwidth, and a shorter step.

Read on:
- [PyTorch: fully_shard, HSDP by a 2D mesh](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)
- [Zhao et al., PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel](https://arxiv.org/abs/2304.11277)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.gpu_memory import capacity_bytes, gigabytes
from tb_dlprof_plugin.advice.rule import Finding, JobNeed, Need, Reading, Rule, RuleContext, Silent, lacks
from tb_dlprof_plugin.advice.rules.multi_gpu.replayed_calls import (
    ReplayedCalls,
    fsdp_calls,
    replayed_calls,
    worthwhile,
)
from tb_dlprof_plugin.advice.savings import Saving
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.fleet.answers.collectives import LARGE_BYTES, USUAL, bus_gb_s, link_gb_s
from tb_dlprof_plugin.fleet.rank_facts import Operation
from tb_dlprof_plugin.metrics.parallel_settings import parallel_settings
from tb_dlprof_plugin.model.profile import Floats
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.FSDP,),
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
    group="gathers",
)

_CODE = """mesh = init_device_mesh("{device}", ({hosts}, {per_host}), mesh_dim_names=("dp_replicate", "dp_shard"))
for block in model.blocks:
    fully_shard(block, mesh=mesh)
fully_shard(model, mesh=mesh)
"""
_WORST, _BEST = 0.3, 0.8
"""Of what NVLink carries, that large transfers of a host reach at the least and at best: two H200s reach half of it
with 30 MB and 0.6 with a GB."""


@dataclass(frozen=True, slots=True)
class _Hosts:
    """Recorded hosts of the job, ranks on each, and the ranks that FSDP divides the model among."""

    hosts: int
    per_host: int
    members: int


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the model is divided over hosts and not known not to fit; silent where HSDP saves too little."""
    settings = context.parallel.fsdp
    assert settings is not None
    if settings.replicas is not None and settings.replicas > 1:
        return Silent(f"HSDP is used: {settings.replicas} copies, each over {settings.shard_ranks} ranks.")
    # Of several groups any may be the one that shares the model.
    if settings.shard_ranks is None and sum(len(group.members) > 1 for group in context.profile.process_groups) > 1:
        return Silent("How many ranks share the model does not show.", applicable=False)
    calls = replayed_calls(context)
    if calls is None:
        return lacks(JobNeed.REPLAYED_JOB)
    found = _hosts(calls, settings.shard_ranks)
    if isinstance(found, Silent):
        return found
    needed, room = _needed_bytes(context, found), _free_bytes(context)
    if needed is not None and room is not None and needed > room:
        return Silent(
            f"A copy of the model on each host takes {gigabytes(needed)} more on each GPU, and {gigabytes(room)} are "
            "free at the peak."
        )
    exchanged = fsdp_calls(calls, Operation.ALL_GATHER) | fsdp_calls(calls, Operation.REDUCE_SCATTER)
    exposed_ns = calls.per_step(calls.exposed, exchanged)
    seen = (
        f"Parameters are gathered over {found.hosts} hosts with {found.per_host} ranks each, {ms(exposed_ns)} "
        "of a step with nothing else running."
    )
    if exposed_ns < thresholds.WORTHWHILE_SAVING_PERCENT / 100 * context.recorded_step_ns:
        return Silent(seen)
    estimate = _saving(context, calls, found)
    if estimate is not None and not worthwhile(context, estimate):
        return Silent(f"{seen} With HSDP the step is {ms(estimate.expected_ns)} shorter.")
    return RULE.finding(
        title=f"FSDP gathers parameters over {found.hosts} hosts, which one could hold"
        if needed is not None and room is not None
        else f"FSDP gathers parameters over {found.hosts} hosts",
        seen=f"{seen} {_memory(needed, room)}",
        readings=[
            Reading("Hosts that the model is divided over", found.hosts, "count", 1),
            Reading("Gathers and reductions with nothing else running per step", exposed_ns, "ns"),
            Reading("Memory for a copy on each host", needed, "bytes", room),
        ],
        change=f"Divide the model over the {found.per_host} ranks of a host, and keep a copy on each host.",
        code=_CODE.format(
            device="cuda" if context.profile.has_gpu else "cpu", hosts=found.hosts, per_host=found.per_host
        ),
        saving=estimate
        or "How fast data moves within a host does not show: these GPUs are not in the table of NVLink rates, or "
        "no gather is large enough.",
    ).but(
        confidence="medium" if estimate is not None and room is not None else "low",
        severity=None if estimate is not None else "medium",
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """There are several copies."""
    before, after = parallel_settings(base).fsdp, parallel_settings(candidate).fsdp
    if before is None or after is None or before.replicas != 1 or (after.replicas or 1) < 2:
        return ""
    return f"HSDP: {after.replicas} copies, each over {after.shard_ranks} ranks"


def _hosts(calls: ReplayedCalls, shard_ranks: int | None) -> _Hosts | Silent:
    job, facts = calls.replayed.job, calls.replayed.facts
    if job.missing_ranks:
        return Silent(
            "Not applicable: this recording has no profiles of some ranks, so that hosts may be missing.", False
        )
    by_host = Counter(one.host for one in facts)
    if "" in by_host:
        return Silent("Not applicable: this recording has no names of hosts.", False)
    if len(by_host) < 2:
        return Silent(f"All {len(facts)} ranks are on one host.")
    per_host = min(by_host.values())
    # Older recordings do not say how many ranks share the model: all, if nothing else is known.
    members = shard_ranks or len(facts)
    if members <= per_host:
        return Silent(f"The model is divided over the {members} ranks of a host.")
    if per_host < 2:
        return Silent(f"The {len(by_host)} hosts have one rank each: a copy on each would be no division at all.")
    return _Hosts(len(by_host), per_host, members)


def _needed_bytes(context: RuleContext, found: _Hosts) -> int | None:
    """What tensors hold between two steps is divided: a copy on each host takes as many times of it as hosts."""
    steady = context.facts.steady_memory_bytes
    return None if steady is None else round(steady * (found.members / found.per_host - 1))


def _free_bytes(context: RuleContext) -> int | None:
    capacity, peak = capacity_bytes(context), context.facts.peak_memory_allocated_bytes
    return None if capacity is None or peak is None else max(capacity - peak, 0)


def _memory(needed: int | None, room: int | None) -> str:
    if needed is None:
        return "Whether a host has room for the whole model was not recorded."
    known = "how much is free was not recorded." if room is None else f"{gigabytes(room)} are free at the peak."
    return f"A copy on each host takes {gigabytes(needed)} more on each GPU; {known}"


def _saving(context: RuleContext, calls: ReplayedCalls, found: _Hosts) -> Saving | None:
    """None where nothing says how fast data moves within a host."""
    links = {link_gb_s(one.gpu) for one in calls.replayed.facts}
    link = links.pop() if len(links) == 1 else None
    large = fsdp_calls(calls, Operation.ALL_GATHER) & (calls.bytes >= LARGE_BYTES)
    if link is None or not large.any():
        return None
    unit = bus_gb_s(int(Operation.ALL_GATHER), 1, found.members, 1.0) or 0.0
    between = float(np.median(calls.bytes[large] * unit / np.maximum(calls.transfer[large], 1)))
    gone = [_gone(calls, found, between, share * link) for share in (_WORST, USUAL, _BEST)]
    return calls.saving(
        context,
        gone,
        f"Gathers over hosts reach {between:,.1f} GB/s (bus bandwidth); NVLink carries {link:,.0f}, of which "
        f"{100 * _WORST:.0f} to {100 * _BEST:.0f} % are reached, expected {100 * USUAL:.0f} %. By the formulas of "
        f"nccl-tests gathers and reductions move (r - 1) / r of their bytes within a host of r = {found.per_host} "
        f"ranks; gradients then cross the network once more, divided by r, in an all-reduce over {found.hosts} hosts.",
    )


def _gone(calls: ReplayedCalls, found: _Hosts, between: float, within: float) -> Floats:
    """What of each transfer goes, ns: GB/s are bytes per ns."""
    inside = (found.per_host - 1) / found.per_host
    size = np.maximum(calls.bytes, 0).astype(np.float64)
    gather = size * inside / within
    hosts = found.members / found.per_host
    reduce = gather + 2 * (hosts - 1) / hosts * size / found.per_host / between
    gathers, reductions = (fsdp_calls(calls, which) for which in (Operation.ALL_GATHER, Operation.REDUCE_SCATTER))
    after = np.where(gathers, gather, np.where(reductions, reduce, calls.transfer))
    return np.where((calls.bytes > 0) & (gathers | reductions), np.maximum(calls.transfer - after, 0.0), 0.0)
