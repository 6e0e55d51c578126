"""Collectives do not use the fast link.

Large collectives between GPUs of one host that reach less than 15 % of what NVLink carries. Groups whose equal
transfers take 1.5 times as long as those of other groups. Variables of NCCL that switch a transport off.

Why it matters: NCCL falls back without a word: from NVLink to copies through the host's memory where peer access is
off. Or from InfiniBand to TCP where it finds no device. Data then moves several times slower.

What to change: Leave out the variable that switches the transport off, or repair what keeps NCCL from using it.

When to leave it: The GPUs have no better link, or the variable works around a fault of the machine.

To confirm: Record all ranks again: a higher bus bandwidth in the table of collectives.

Read on:
- [NCCL: environment variables](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html)
- [nccl-tests: bus bandwidth](https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule import Finding, JobNeed, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import of_job_step, stated
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.fleet.answers.collectives import USED
from tb_dlprof_plugin.fleet.job import Delay, Job
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(JobNeed.OTHER_RANKS,),
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
)

OFF: dict[str, tuple[tuple[str, ...], str]] = {
    "NCCL_P2P_DISABLE": (("1",), "GPUs of one host exchange data through its memory instead of NVLink or PCIe"),
    "NCCL_P2P_LEVEL": (("LOC", "0"), "GPUs of one host exchange data through its memory instead of NVLink or PCIe"),
    "NCCL_SHM_DISABLE": (("1",), "GPUs of one host without peer access exchange data over the network"),
    "NCCL_IB_DISABLE": (("1",), "hosts exchange data over TCP instead of InfiniBand or RoCE"),
    "NCCL_NET": (("Socket", "socket"), "hosts exchange data over TCP instead of InfiniBand or RoCE"),
    "NCCL_NET_GDR_LEVEL": (("LOC", "0"), "data of other hosts goes through this host's memory instead of to the GPU"),
}
"""Variables of NCCL whose value switches a transport off, and what NCCL does then (its user guide)."""
_BETWEEN_HOSTS = frozenset({"NCCL_IB_DISABLE", "NCCL_NET", "NCCL_NET_GDR_LEVEL"})


def check(context: RuleContext) -> Finding | Silent:
    """Fires on slow transfers that win `WORTHWHILE_SAVING_PERCENT`, or on a variable that slows this job's "
    "transfers."""
    job = context.job
    assert job is not None
    assert job.step is not None
    off = switched_off(context)
    slow = next((delay for delay in job.delays if delay.cause == "slow_link" and delay.certain), None)
    won_ns = 0.0 if slow is None else of_job_step(context, job, slow.saving_ms)
    share = percent(won_ns, context.step_ns) or 0.0
    if slow is not None and share >= thresholds.WORTHWHILE_SAVING_PERCENT:
        return _slow(context, job, slow, won_ns, off)
    if off and slow is None and not _rates(job):
        return _unknown(off)
    rates = _rates(job)
    if not rates:
        return Silent("No transfer was large enough to show what the links carry.", applicable=False)
    best, attainable = max(rates)
    link = "" if attainable is None else f" of {attainable:,.0f}"
    return Silent(f"Large transfers reach {best:,.1f}{link} GB/s; faster links would win {ms(won_ns)} a step.")


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Variables that switch a transport off are gone."""
    before, after = (set(_off_in(view.profile.facts.communication_settings)) for view in (base, candidate))
    gone = sorted(before - after)
    return f"without {', '.join(gone)}" if gone else ""


def switched_off(context: RuleContext) -> dict[str, str]:
    """Settings of this job's processes that switch a transport off which it could use, and what that does."""
    found = _off_in(context.facts.communication_settings)
    replayed = context.replayed_job
    several = replayed is not None and len({one.host for one in replayed.facts}) > 1
    return {text: what for text, what in found.items() if several or text.partition("=")[0] not in _BETWEEN_HOSTS}


def _off_in(settings: list[str]) -> dict[str, str]:
    pairs = [(text, *text.partition("=")[::2]) for text in settings]
    return {text: OFF[name][1] for text, name, value in pairs if name in OFF and value in OFF[name][0]}


def _rates(job: Job) -> list[tuple[float, float | None]]:
    """Bus bandwidth and what is attainable of each kind of collective, in GB/s."""
    return [(row.bus_gb_s, row.attainable_gb_s) for row in job.collective_rows if row.bus_gb_s is not None]


def _slow(context: RuleContext, job: Job, slow: Delay, won_ns: float, off: dict[str, str]) -> Finding:
    rates = _rates(job)
    best = max(rates, default=None)
    ranks = sorted(one.rank for one in job.delays if one.cause == "slow_link" and one.certain)
    named = ", ".join(map(str, ranks[:8])) + (" ..." if len(ranks) > 8 else "")
    low_ns = of_job_step(context, job, slow.saving_low_ms)
    most_ns = max(won_ns, _without_transfers_ns(context))
    because = "".join(f" {text} is set: {what}." for text, what in off.items())
    return RULE.finding(
        title=f"Data between ranks {named} moves slower than the links allow",
        seen=f"{slow.why}{because}",
        readings=[
            *_reached(best),
            Reading("Step that faster links win", won_ns, "ns"),
        ],
        change=f"Leave {', '.join(off)} out."
        if off
        else 'Look which transport NCCL chose (NCCL_DEBUG=INFO prints "via P2P", "via SHM" or "via NET/Socket"), '
        "and at the links (nvidia-smi topo -m, nvidia-smi nvlink --status, ibstat). In a container peer access needs "
        "--ipc=host and all GPUs.",
        code="".join(f"unset {text.partition('=')[0]}\n" for text in off),
        saving=stated(
            context,
            low_ns,
            won_ns,
            most_ns,
            "The recorded job, replayed with transfers as fast as half of what the links carry, or as in the other "
            f"groups, has a step that is {ms(won_ns)} shorter. At best, without any transfer time, {ms(most_ns)}.",
        ),
    ).but(confidence="high" if off else "medium", group="slow_link")


def _reached(best: tuple[float, float | None] | None) -> list[Reading]:
    if best is None or best[1] is None:
        return []
    return [Reading("Best bus bandwidth of what is attainable", 100 * best[0] / best[1], "percent", 100 * USED)]


def _without_transfers_ns(context: RuleContext) -> float:
    """By how much the step is shorter if transfers take no time."""
    replayed = context.replayed_job
    if replayed is None or replayed.job.step is None or not replayed.job.step.ms:
        return 0.0
    free = replayed.scenarios.free_network_ms
    return 0.0 if free is None else max(1 - free / replayed.job.step.ms, 0.0) * context.step_ns


def _unknown(off: dict[str, str]) -> Finding:
    return RULE.finding(
        title=f"{' and '.join(off)} slows communication down",
        seen="".join(f"{text} is set: {what}. " for text, what in off.items()).strip(),
        change=f"Leave {', '.join(off)} out.",
        code="".join(f"unset {text.partition('=')[0]}\n" for text in off),
        saving="No transfer of this recording is large enough to show the bandwidth.",
    ).but(severity="low")
