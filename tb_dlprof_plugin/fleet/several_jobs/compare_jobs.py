"""Two jobs in, what changed out: the step, its parts, each rank, delays and collectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tb_dlprof_plugin.fleet.answers.verdict import CAUSES
from tb_dlprof_plugin.fleet.job import CollectiveRow, Delay, Job
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN
from tb_dlprof_plugin.fleet.several_jobs.comparison import (
    CollectiveChange,
    DelayChange,
    JobComparison,
    JobSide,
    PairedBy,
    PartChange,
    RankChange,
)
from tb_dlprof_plugin.fleet.several_jobs.parts import (
    PARTS,
    SAME,
    TITLES,
    flops_per_sample_note,
    mean_parts,
    parts_of,
    relative_work,
)
from tb_dlprof_plugin.model.formatting import listed


def compare_jobs(base: Job, candidate: Job, names: tuple[str, str] = ("base", "candidate")) -> JobComparison:
    """The candidate against the base, which may have another number of ranks.

    Args:
        base: the job that is compared with.
        candidate: the other one.
        names: of both, for sentences.

    Raises:
        ValueError: of one of them no step was recorded.
    """
    for name, job in zip(names, (base, candidate), strict=True):
        if not job.account or job.step is None:
            raise ValueError(f"where the steps of {name} go is not known: no rank recorded a whole step")
    assert base.step is not None
    assert candidate.step is not None
    paired = paired_ranks(base, candidate)
    work = relative_work(base, candidate)
    low = candidate.step.low_ms - base.step.high_ms
    high = candidate.step.high_ms - base.step.low_ms
    comparison = JobComparison(
        sentence="",
        base=_side(names[0], base),
        candidate=_side(names[1], candidate),
        difference_ms=candidate.step.ms - base.step.ms,
        low_ms=low,
        high_ms=high,
        beyond_intervals=low > 0 or high < 0,
        work=work,
        throughput=None if work is None else work.ratio * base.step.ms / candidate.step.ms,
        parts=_parts(base, candidate),
        paired_by=paired.by,
        rank_changes=_ranks(base, candidate, paired),
        delays=_delays(base, candidate, paired),
        collectives=_collectives(base, candidate),
        notes=_notes(base, candidate, names, paired),
    )
    return replace(comparison, sentence=_sentence(comparison))


def _side(name: str, job: Job) -> JobSide:
    assert job.step is not None
    factors = job.efficiency
    return JobSide(
        name,
        job.world_size,
        len(job.ranks),
        job.step,
        job.sentence,
        factors.parallel,
        factors.wasted_gpu_share,
        factors.flops_utilization,
    )


def _parts(base: Job, candidate: Job) -> list[PartChange]:
    before, after = (mean_parts((parts_of(row), 1.0) for row in job.account) for job in (base, candidate))
    if before.waiting_ms is None or after.waiting_ms is None:
        before, after = before.without_waiting, after.without_waiting
    changes = []
    for part in PARTS:
        values = before.of(part), after.of(part)
        if part == "waiting" and before.waiting_ms is None:
            changes.append(PartChange(part, None, None, None))
        else:
            changes.append(PartChange(part, *values, values[1] - values[0]))
    return changes


def _ranks(base: Job, candidate: Job, paired: PairedRanks) -> list[RankChange]:
    before, after = ({row.rank: parts_of(row) for row in job.account} for job in (base, candidate))
    changes = []
    for pair in paired.pairs:
        own, other = after[pair.rank], mean_parts((before[rank], weight) for rank, weight in pair.base)
        if own.waiting_ms is None or other.waiting_ms is None:
            own, other = own.without_waiting, other.without_waiting
        changes.append(RankChange(pair.rank, list(pair.base), other, own, own.step_ms - other.step_ms))
    return changes


def _delays(base: Job, candidate: Job, paired: PairedRanks) -> list[DelayChange]:
    """Those beyond chance, new ones first, then by what they cost."""
    before = {row.rank: row for row in base.delays if row.certain}
    counterpart = {pair.rank: [rank for rank, _ in pair.base] for pair in paired.pairs}
    changes = []
    for row in candidate.delays:
        if not row.certain:
            continue
        same = [rank for rank in counterpart.get(row.rank, ()) if rank in before and before[rank].cause == row.cause]
        changes.append(_delay(before.pop(same[0]) if same else None, row))
    changes += [_delay(row, None) for row in before.values()]
    order = ("new", "stays", "gone")
    return sorted(
        changes, key=lambda one: (order.index(one.what), -max(one.saving_ms or 0.0, one.base_saving_ms or 0.0))
    )


def _delay(before: Delay | None, after: Delay | None) -> DelayChange:
    said = after or before
    assert said is not None
    return DelayChange(
        what="stays" if before and after else "new" if after else "gone",
        cause=said.cause,
        base_rank=before.rank if before else None,
        rank=after.rank if after else None,
        base_saving_ms=before.saving_ms if before else None,
        saving_ms=after.saving_ms if after else None,
        why=said.why,
    )


def _collectives(base: Job, candidate: Job) -> list[CollectiveChange]:
    """Largest change of exposed time first."""
    before, after = ({_kind(row): row for row in job.collective_rows} for job in (base, candidate))
    changes = [_collective(kind, before.get(kind), after.get(kind)) for kind in dict.fromkeys([*after, *before])]
    return sorted(changes, key=lambda one: -abs(one.difference_ms))


def _kind(row: CollectiveRow) -> tuple[str, str, str, str]:
    return row.operation, row.dimension, row.size, row.module


def _collective(
    kind: tuple[str, str, str, str], before: CollectiveRow | None, after: CollectiveRow | None
) -> CollectiveChange:
    return CollectiveChange(
        *kind,
        base_calls_per_step=before.calls_per_step if before else None,
        calls_per_step=after.calls_per_step if after else None,
        base_transfer_ms=before.transfer_ms if before else None,
        transfer_ms=after.transfer_ms if after else None,
        base_waiting_ms=before.waiting_ms if before else None,
        waiting_ms=after.waiting_ms if after else None,
        base_exposed_ms=before.exposed_ms if before else None,
        exposed_ms=after.exposed_ms if after else None,
        difference_ms=(after.exposed_ms if after else 0.0) - (before.exposed_ms if before else 0.0),
        base_bus_gb_s=before.bus_gb_s if before else None,
        bus_gb_s=after.bus_gb_s if after else None,
    )


def _notes(base: Job, candidate: Job, names: tuple[str, str], paired: PairedRanks) -> list[str]:
    notes = []
    for name, job in zip(names, (base, candidate), strict=True):
        if job.missing_ranks:
            notes.append(f"{len(job.missing_ranks)} of {job.world_size} ranks of {name} are missing.")
    if paired.by == "share":
        notes.append(
            f"The jobs have {base.world_size} and {candidate.world_size} ranks: a rank is compared with those at the "
            "same part of the list of ranks."
        )
    for name, alone in zip(names, (paired.alone_base, paired.alone_candidate), strict=True):
        if alone:
            ranks, have = ("Rank", "has") if len(alone) == 1 else ("Ranks", "have")
            notes.append(f"{ranks} {listed(alone)} of {name} {have} no counterpart.")
    if base.mesh and candidate.mesh and base.mesh != candidate.mesh:
        notes.append(f"Meshes: {_mesh(base)} in {names[0]}, {_mesh(candidate)} in {names[1]}.")
    if any(row.waiting_ms is None for job in (base, candidate) for row in job.account):
        notes.append(
            "Of some ranks waiting is not known, because no other rank of their collectives was recorded: where that "
            "is so, it is part of the transfer on both sides."
        )
    sources = {job.step.source for job in (base, candidate) if job.step is not None}
    if len(sources) > 1:
        notes.append(f"The steps are known in different ways ({', '.join(sorted(sources))}): see their intervals.")
    different = flops_per_sample_note(base, candidate)
    return [*notes, different] if different else notes


def _mesh(job: Job) -> str:
    return " x ".join(f"{name} {size}" for name, size in job.mesh)


@dataclass(frozen=True, slots=True)
class Counterpart:
    """Of a rank of the candidate those of the base, with weights that sum to 1."""

    rank: int
    base: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class PairedRanks:
    """``by`` mesh: by the place in each dimension; by rank: by number; by share: by position among all ranks, where the
    jobs have other numbers of ranks. Ranks without counterpart are left out and named in ``alone_base`` and
    ``alone_candidate``.
    """

    by: PairedBy
    pairs: tuple[Counterpart, ...]
    alone_base: tuple[int, ...] = ()
    alone_candidate: tuple[int, ...] = ()


def paired_ranks(base: Job, candidate: Job) -> PairedRanks:
    """The ranks that have an account, each with its counterpart."""
    before, after = [row.rank for row in base.account], [row.rank for row in candidate.account]
    if base.world_size != candidate.world_size:
        return PairedRanks("share", _by_share(before, after))
    places, others = _places(base), _places(candidate)
    if base.mesh and base.mesh == candidate.mesh and places is not None and others is not None:
        at = {place: rank for rank, place in places.items() if rank in before}
        counterparts = {rank: at[others[rank]] for rank in after if others[rank] in at}
        return _paired("mesh", before, after, counterparts)
    return _paired("rank", before, after, {rank: rank for rank in after if rank in set(before)})


def _paired(by: PairedBy, before: Sequence[int], after: Sequence[int], found: dict[int, int]) -> PairedRanks:
    used = set(found.values())
    return PairedRanks(
        by,
        tuple(Counterpart(rank, ((other, 1.0),)) for rank, other in found.items()),
        tuple(rank for rank in before if rank not in used),
        tuple(rank for rank in after if rank not in found),
    )


def _places(job: Job) -> dict[int, tuple[int, ...]] | None:
    """The place of each rank; None where one is unknown or two ranks have the same."""
    places = dict(zip(job.ranks, job.mesh_places, strict=True))
    if any(UNKNOWN in place for place in places.values()) or len(set(places.values())) < len(places):
        return None
    return places


def _by_share(before: Sequence[int], after: Sequence[int]) -> tuple[Counterpart, ...]:
    """Each rank with the ranks at the same part of the list, so that each list counts whole."""
    if not before:
        return ()
    pairs, own, other = [], len(after), len(before)
    for position, rank in enumerate(after):
        # In units of 1 / (own * other), so that the borders are exact.
        low, high = position * other, (position + 1) * other
        first, last = low // own, -(-high // own)
        weights = [(before[at], (min(high, (at + 1) * own) - max(low, at * own)) / other) for at in range(first, last)]
        pairs.append(Counterpart(rank, tuple(weights)))
    return tuple(pairs)


_NAMED = 0.01
"""Of the base's step: a part that changes by less is not named."""
_MOST = 3


def _sentence(found: JobComparison) -> str:
    """The steps, the parts that change most, the work where it differs, then delays that are new or gone."""
    before, after, difference = found.base.step, found.candidate.step, found.difference_ms
    steps = f"{after.ms:.2f} ms, that of {found.base.name} {before.ms:.2f} ms"
    sizes = ""
    if found.base.world_size != found.candidate.world_size:
        sizes = f" on {found.candidate.world_size} GPUs in place of {found.base.world_size}"
    text = f"A step of {found.candidate.name}{sizes} takes {steps}: "
    percent, direction = abs(100 * difference / before.ms), "longer" if difference > 0 else "shorter"
    text += f"{abs(difference):.2f} ms ({percent:.1f} %) {direction}" if difference else "equal"
    changes = [
        (part.part, part.difference_ms)
        for part in sorted(found.parts, key=lambda one: -abs(one.difference_ms or 0.0))
        if part.difference_ms is not None and abs(part.difference_ms) >= _NAMED * before.ms
    ]
    if changes:
        text += " (" + ", ".join(f"{TITLES[part]} {value:+.2f} ms" for part, value in changes[:_MOST]) + ")"
    text += "." if found.beyond_intervals or not difference else ", though the intervals of the two steps overlap."
    if found.work is not None and found.throughput is not None and abs(found.work.ratio - 1) > SAME:
        text += (
            f" Its steps are {found.work.ratio:.2f} times the work, by {found.work.by}: it does {found.throughput:.2f} "
            "times as much per time."
        )
    for what, title in (("new", "New"), ("gone", "Gone")):
        delays = [_delay_text(delay) for delay in found.delays if delay.what == what][:_MOST]
        if delays:
            text += f" {title}: {'; '.join(delays)}."
    return text


def _delay_text(one: DelayChange) -> str:
    rank = one.rank if one.rank is not None else one.base_rank
    cost = one.saving_ms if one.saving_ms is not None else one.base_saving_ms or 0.0
    return f"rank {rank} delays the others, because {CAUSES[one.cause]} ({cost:.2f} ms)"
