"""Who delays the others, in one answer of four: a rank does, a rank is late but hidden, none is, or it cannot be said.

An answer needs all ranks, recorded at the same time, whose collectives are found on all members, in two steps or more.
A rank is named where the replay says that its repair saves a hundredth of the step, its cause was seen, and no single
step carries the delay (`delays`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tb_dlprof_plugin.fleet.answers.causes import OF_HOST
from tb_dlprof_plugin.fleet.answers.delays import WORTH
from tb_dlprof_plugin.fleet.answers.lateness import Lateness
from tb_dlprof_plugin.fleet.job import Cause, Delay, JobStep, MatchedShare, Verdict, VerdictKind
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.formatting import duration, listed

CAUSES: dict[Cause, str] = {
    "slow_gpu": "its GPU is slower or has more to do",
    "slow_host": "its host is slow",
    "slow_input": "its input is slow",
    "uneven_data": "its data is more work",
    "uneven_stage": "its pipeline stage has more work",
    "garbage_collection": "Python's garbage collector runs",
    "slow_link": "its link is slow",
    "expert_load": "its experts get more tokens",
    "unknown": "the cause is not known",
}
MATCHED = 90.0
"""Percent of the collectives that have to be found on all members. Ours: with 5 % of a rank's calls lost answers stay
right, with a step of three lost they do not (`lab.ranks.perturbed`)."""
_OTHER_JOB = 10.0
"""Percent below which the ranks hardly have a collective in common."""
_SAME_HOST_NS, _OTHER_HOST_NS = 1_000_000_000, 60_000_000_000
"""Time between the end of one rank's recording and the begin of another's, from which they are of different trainings:
clocks of hosts differ by less than a minute."""
_DATED_NS = 10**18
"""Times since 1970 in this century are larger; smaller ones are since a machine's start."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What a verdict rests on.

    Attributes:
        facts: of the compared ranks. missing: ranks that were not recorded.
        matching: of their collectives.
        steps: in how many steps they are compared. unreadable: recordings of ranks that cannot be read.
    """

    facts: Sequence[RankFacts]
    missing: Sequence[int]
    matching: MatchedShare
    steps: int
    unreadable: int = 0


def why_unknown(compared: Compared, step: JobStep | None) -> str:
    """What a verdict lacks and what to do, in a sentence; "" where it lacks nothing."""
    facts, matching = compared.facts, compared.matching
    if step is not None and not step.is_step:
        return "No steps are marked: call prof.step(), or the hook's step(), after each iteration on every rank."
    apart = _recorded_apart(facts)
    if apart:
        return apart
    if compared.missing:
        count, world = len(compared.missing), len(facts) + len(compared.missing)
        lack = f"{count} of {world} ranks {'is' if count == 1 else 'are'} missing ({listed(compared.missing)})"
        add = "its recording" if count == 1 else "their recordings"
        return f"{lack}, and may be what the others wait for: add {add}."
    if compared.unreadable:
        return "A rank's recording cannot be read, and may be of what the others wait for: copy or record it again."
    if step is None or not compared.steps:
        return "The ranks recorded no step in common: record the same steps on all of them."
    share = matching.matched_percent
    if share is None or share < MATCHED:
        found = f"{matching.matched:,} of {matching.total:,} collectives were found on all of their members"
        if share is None or share < _OTHER_JOB:
            return f"{found}: are these recordings of one job? Name those of one training."
        lack = f"{found}, and an answer needs {MATCHED:.0f} %"
        return f"{lack}: a recording is cut off or lacks steps. Record the same steps on all ranks."
    if compared.steps < 2:
        return "The ranks have one step in common, and an answer needs several: record three or more."
    return ""


def _recorded_apart(facts: Sequence[RankFacts]) -> str:
    """Two ranks whose recordings do not meet in time; "" where all do, or a recording has no date."""
    spans = [
        (one.base_ns + int(one.steps.start_ns[0]), one.base_ns + int(one.steps.end_ns[-1]), one)
        for one in facts
        if len(one.steps) and one.base_ns > _DATED_NS
    ]
    if len(spans) < 2:
        return ""
    last_begin, _, later = max(spans, key=lambda span: span[0])
    _, first_end, sooner = min(spans, key=lambda span: span[1])
    allowed = _SAME_HOST_NS if later.host == sooner.host else _OTHER_HOST_NS
    if last_begin - first_end <= allowed:
        return ""
    return (
        f"Rank {later.rank} was recorded {(last_begin - first_end) / 1e9:,.0f} s after rank {sooner.rank}: these are "
        "different trainings, or different steps of one. Name recordings of the same steps."
    )


def verdict(
    compared: Compared, step: JobStep | None, delays: Sequence[Delay], late: Lateness | None, unknown: str
) -> Verdict | None:
    """The verdict on a job; None for a rank alone of a job of one.

    Args:
        compared: what it rests on.
        step: of the job.
        delays: the ranks that cost most.
        late: by how much each rank is; None where it is not known.
        unknown: of `why_unknown`.
    """
    if len(compared.facts) + len(compared.missing) < 2:
        return None
    if unknown or step is None or late is None:
        return Verdict("unknown", f"Which rank delays the others cannot be said. {unknown}".strip())
    index_of = {rank.rank: index for index, rank in enumerate(compared.facts)}
    for delay in delays:
        if delay.certain:
            ends = f"{duration(delay.saving_low_ms * 1e6)} to {duration(delay.saving_high_ms * 1e6)}"
            return _of_delay(
                "delays",
                f"Rank {delay.rank} delays the others, because {CAUSES[delay.cause]}: repairing it saves "
                f"{duration(delay.saving_ms * 1e6)} of a step ({ends}).",
                delay,
                late.mean_ns(index_of[delay.rank]),
            )
    hidden = [
        (late.mean_ns(index_of[delay.rank]), delay)
        for delay in delays
        if delay.cause != "unknown"
        and (late.beyond_chance(delay.cause in OF_HOST) & late.comparable)[index_of[delay.rank]]
    ]
    if hidden:
        late_ns, delay = max(hidden, key=lambda one: one[0])
        nothing = max(delay.saving_ms, delay.saving_high_ms) < WORTH * step.ms
        saves = "nothing now"
        if not nothing:
            most = duration(delay.saving_high_ms * 1e6)
            saves = f"0 to {most}, depending on how fast the hosts are without the profiler"
        return _of_delay(
            "hidden",
            f"Rank {delay.rank} is {duration(late_ns)} late in each step, because {CAUSES[delay.cause]}, but "
            f"others {'' if nothing else 'may '}hide it: repairing it saves {saves}.",
            delay,
            late_ns,
        )
    # What no cause explains is within what has to be expected.
    unexplained_ns = max(map(late.mean_ns, range(len(compared.facts))))
    visible_ms = max(late.visible_ns / 1e6, WORTH * step.ms, unexplained_ns / 1e6)
    return Verdict(
        "none",
        "No rank delays the others beyond chance; one that is "
        f"{duration(visible_ms * 1e6)} or more late in each step would have shown.",
        visible_ms=visible_ms,
    )


def _of_delay(kind: VerdictKind, sentence: str, delay: Delay, late_ns: float) -> Verdict:
    return Verdict(
        kind,
        sentence,
        delay.rank,
        delay.cause,
        max(late_ns / 1e6, 0.0),
        delay.saving_ms,
        delay.saving_low_ms,
        delay.saving_high_ms,
    )
